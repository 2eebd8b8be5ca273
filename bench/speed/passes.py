"""Measure a pass over the data, its lower bound on this machine, and iterations of peers.

All methods take turns on the same features; peers that are not installed are left out and named.
The lower bound is the time of the matrix products of the pass at the rate of gemm, plus that of its
sines and cosines, measured in the same run. Problems are numbers of the list in problems.py. The
table has all results of FILE.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

from bench import commands, records, tables
from bench.speed.adapters import ADAPTERS, Setting
from bench.speed.problems import PROBLEMS, Machine
from bench.timing import Measure, alternate, pinned
from rffpk import show_config


def run(args: argparse.Namespace) -> None:
    """Time all methods in turn, `repeats` times, with the machine's rates in each turn."""
    done = records.by_method(args.out, "problem", "dtype", "threads")
    for index, dtype, threads in product(args.problems, args.dtypes, args.threads):
        if (PROBLEMS[index].name, dtype, threads) in done:
            continue
        setting, machine = Setting(PROBLEMS[index], dtype, threads), Machine(dtype, threads)
        measures: dict[str, Measure] = {"floor": partial(machine.lower_bound, setting.problem)}
        for name in args.methods:
            try:
                measures[name] = partial(pinned, ADAPTERS[name](setting), threads)
            except ImportError as missing:
                print(f"left out {name}: {missing}", file=sys.stderr)
        times = {name: median(t) for name, t in alternate(measures, args.repeats, True).items()}
        bound = times.pop("floor")
        key = {"problem": setting.problem.name, "dtype": dtype, "threads": threads}
        for name, seconds in times.items():
            records.append(args.out, {**key, "method": name, "seconds": seconds, "floor": bound})


def report(path: Path) -> None:
    """Print the seconds of our pass, its lower bound over it, and our time over each peer's."""
    table = records.by_method(path, "problem", "dtype", "threads")
    peers = [m for m in ADAPTERS if m != "rffpk_pass" and any(m in row for row in table.values())]
    ratios = "bound / pass", *(f"pass / {m}" for m in peers)
    tables.print_heading("problem", "dtype", "threads", "pass, s", *ratios)
    for key, row in table.items():
        took, bound = row["rffpk_pass"]["seconds"], row["rffpk_pass"]["floor"]
        ratios = [took / row[m]["seconds"] if m in row else None for m in peers]
        tables.print_row(*key, f"{took:.4f}", *tables.cells([bound / took, *ratios], ".2f"))


def main() -> None:
    args = commands.arguments(
        __doc__, problems=(*range(len(PROBLEMS)),), dtypes=("float32", "float64"),
        threads=(show_config()["threads"],), methods=commands.Names(ADAPTERS, list(ADAPTERS)[:5]),
        repeats=7, out=commands.OUT,
    )  # fmt: skip
    run(args)
    report(args.out)


if __name__ == "__main__":
    main()

"""Measure a pass over the data, its lower bound on this machine, and iterations of peers.

    python -m bench.speed run --out FILE        # one JSON line per problem and method
    python -m bench.speed report FILE           # a Markdown table
    python -m bench.speed profile               # share of each part of the pass

`run` and `profile` take --problems (numbers of the list in problems.py), --dtypes and --threads,
`run` also --repeats and --methods. All methods take turns on the same features; peers that are not
installed are left out and named. The lower bound is the time of the matrix products of the pass at
the rate of gemm, plus that of its sines and cosines, measured in the same run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from statistics import median

from bench import commands, records, tables
from bench.speed.adapters import ADAPTERS, Setting, profile
from bench.speed.problems import PROBLEMS, Machine
from bench.timing import Measure, alternate, pinned
from rffpk import show_config


def settings(args: argparse.Namespace) -> Iterator[Setting]:
    for index in args.problems:
        for dtype in args.dtypes:
            for threads in args.threads:
                yield Setting(PROBLEMS[index], dtype, threads)


def run(args: argparse.Namespace) -> None:
    """Time all methods in turn, `repeats` times, with the machine's rates in each turn."""
    for setting in settings(args):
        machine = Machine(setting.dtype, setting.threads)
        measures: dict[str, Measure] = {"floor": partial(machine.lower_bound, setting.problem)}
        for name in args.methods:
            try:
                measures[name] = partial(pinned, ADAPTERS[name](setting), setting.threads)
            except ImportError as missing:
                print(f"left out {name}: {missing}", file=sys.stderr)
        times = {name: median(t) for name, t in alternate(measures, args.repeats, True).items()}
        bound = times.pop("floor")
        key = {"problem": setting.problem.name, "dtype": setting.dtype, "threads": setting.threads}
        for name, seconds in times.items():
            records.append(args.out, {**key, "method": name, "seconds": seconds, "floor": bound})
        print(*key.values(), tables.cells(times.values(), ".4f"), file=sys.stderr)


def report(args: argparse.Namespace) -> None:
    """Print the seconds of our pass, its lower bound over it, and our time over each peer's."""
    table = records.by_method(args.results, "problem", "dtype", "threads")
    peers = [m for m in ADAPTERS if m != "rffpk_pass" and any(m in row for row in table.values())]
    ratios = "bound / pass", *(f"pass / {m}" for m in peers)
    tables.print_heading("problem", "dtype", "threads", "pass, s", *ratios)
    for key, row in table.items():
        took, bound = row["rffpk_pass"]["seconds"], row["rffpk_pass"]["floor"]
        ratios = [took / row[m]["seconds"] if m in row else None for m in peers]
        tables.print_row(*key, f"{took:.4f}", *tables.cells([bound / took, *ratios], ".2f"))


def show_profile(args: argparse.Namespace) -> None:
    """Print the nanoseconds a row of each part, which runs alone, as the core has no timers."""
    for setting in settings(args):
        parts = profile(setting)
        print(setting.problem.name, setting.dtype)
        print("  " + "  ".join(f"{name} {value:.1f}" for name, value in parts.items()))


def main() -> None:
    chosen = {
        "problems": (*range(len(PROBLEMS)),),
        "dtypes": ("float32", "float64"),
        "threads": (show_config()["threads"],),
    }
    methods = commands.Names(ADAPTERS, list(ADAPTERS)[:5])
    commands.run(
        __doc__,
        run=(run, {**chosen, "methods": methods, "repeats": 7, "out": commands.OUT}),
        report=(report, {"results": True}),
        profile=(show_profile, chosen),
    )


if __name__ == "__main__":
    main()

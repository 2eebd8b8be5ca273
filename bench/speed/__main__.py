"""Seconds of a pass over the data, of its lower bound on this machine, and of iterations of peers.

    python -m bench.speed run --out FILE        # one JSON line per problem and method
    python -m bench.speed report FILE           # a Markdown table; --plot FILE: a figure
    python -m bench.speed compare BASE HEAD     # of two such files; fails where HEAD is slower
    python -m bench.speed profile               # share of each part of the pass

`run` and `profile` take --problems (numbers of the list in problems.py), --dtypes and --threads,
`run` also --repeats and --methods. All methods take turns on the same features; peers that are not
installed are left out and named. The lower bound is the time that the matrix products of the pass
would take at the rate of gemm, plus that of its sines and cosines, measured in the same run.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

from bench import commands, plots, records, tables
from bench.speed.adapters import ADAPTERS, Setting, profile
from bench.speed.problems import PROBLEMS, Machine
from bench.timing import Measure, alternate, pinned
from rffpk import show_config

# compare: a slowdown counts if it exceeds both, so that noise of short runs does not.
RELATIVE, ABSOLUTE = 1.10, 2e-3

Table = dict[tuple[str, str, int], dict[str, records.Record]]


def _settings(args: argparse.Namespace) -> Iterator[Setting]:
    for index in args.problems:
        for dtype in args.dtypes:
            for threads in args.threads:
                yield Setting(PROBLEMS[index], dtype, threads)


def run(args: argparse.Namespace) -> None:
    """Time all methods in turn, `repeats` times, with the machine's rates in each turn."""
    for setting in _settings(args):
        machine = Machine(setting.dtype, setting.threads)
        measures: dict[str, Measure] = {"floor": partial(machine.lower_bound, setting.problem)}
        for name in args.methods:
            try:
                measures[name] = partial(pinned, ADAPTERS[name](setting), setting.threads)
            except ImportError as missing:
                print(f"left out {name}: {missing}", file=sys.stderr)
        times = alternate(measures, args.repeats, warm_up=True)
        bound = median(times.pop("floor"))
        for name, measured in times.items():
            record = {
                "problem": setting.problem.name,
                "dtype": setting.dtype,
                "threads": setting.threads,
                "method": name,
                "seconds": median(measured),
                "all": measured,
                "floor": bound,
                "machine": platform.processor() or platform.machine(),
                "isa": show_config()["isa"],
            }
            records.append(args.out, record)
        ours = median(times.get("rffpk_pass", [float("nan")]))
        print(
            f"{setting.problem.name} {setting.dtype} {setting.threads} threads: "
            f"{ours:.4f} s, lower bound / pass {bound / ours:.2f}",
            file=sys.stderr,
        )


def _read(path: Path) -> Table:
    return records.by_method(path, "problem", "dtype", "threads")


def report(args: argparse.Namespace) -> None:
    """Seconds of our pass, its lower bound over it, and our time over that of each peer."""
    table = _read(args.results)
    peers = [m for m in ADAPTERS if any(m in row for row in table.values())]
    peers = [m for m in peers if m not in ("rffpk_pass", "null")]
    tables.print_heading(
        "problem", "dtype", "threads", "pass, s", "bound / pass", *(f"pass / {m}" for m in peers)
    )
    for key, row in table.items():
        took, bound = row["rffpk_pass"]["seconds"], row["rffpk_pass"]["floor"]
        ratios = [f"{took / row[m]['seconds']:.2f}" if m in row else "" for m in peers]
        tables.print_row(*key, f"{took:.4f}", f"{bound / took:.2f}", *ratios)
    if args.plot:
        _plot(table, args.plot)


def _plot(table: Table, path: Path) -> None:
    names = [" ".join(map(str, key)) for key in table]
    figure, axes = plots.subplots(figsize=(9, 0.35 * len(names) + 1))
    for method in ADAPTERS:
        points = [
            (row[method]["seconds"] / row[method]["floor"], i)
            for i, row in enumerate(table.values())
            if method in row and method != "null"
        ]
        if points:
            axes.plot(*zip(*points), "o", label=method)
    axes.axvline(1, color="black", lw=0.8)
    axes.set(xscale="log", xlabel="seconds of an iteration / lower bound of our pass")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.legend(fontsize=7)
    plots.save(figure, path)


def compare(args: argparse.Namespace) -> None:
    """Exit with status 1 if head is slower than base, relative to the lower bounds of their
    runs."""
    base, head = _read(args.base), _read(args.head)
    slower = 0
    for key in base.keys() & head.keys():
        for method in base[key].keys() & head[key].keys():
            before, after = base[key][method], head[key][method]
            ratio = (after["seconds"] / after["floor"]) / (before["seconds"] / before["floor"])
            change = after["seconds"] - before["seconds"]
            if ratio > RELATIVE and change > ABSOLUTE and method.startswith("rffpk"):
                slower += 1
                print(f"{' '.join(map(str, key))} {method}: {ratio:.2f} times the base")
    print(f"{slower} slower")
    sys.exit(slower > 0)


def show_profile(args: argparse.Namespace) -> None:
    """Nanoseconds a row of each part, which runs alone, as the core has no timers."""
    for setting in _settings(args):
        parts = profile(setting)
        print(setting.problem.name, setting.dtype)
        print("  " + "  ".join(f"{name} {value:.1f}" for name, value in parts.items()))


def main() -> None:
    parser = commands.parser(__doc__)
    subcommands = parser.add_subparsers(dest="command", required=True)

    def choose(command: argparse.ArgumentParser) -> None:
        everything = list(range(len(PROBLEMS)))
        command.add_argument("--problems", type=int, nargs="+", default=everything)
        command.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
        command.add_argument("--threads", type=int, nargs="+", default=[show_config()["threads"]])

    command = subcommands.add_parser("run", help=run.__doc__)
    choose(command)
    command.add_argument("--methods", nargs="+", choices=ADAPTERS, default=list(ADAPTERS)[:6])
    command.add_argument("--repeats", type=int, default=7)
    command.add_argument("--out", type=Path, required=True)
    command.set_defaults(action=run)
    command = subcommands.add_parser("report", help=report.__doc__)
    command.add_argument("results", type=Path)
    command.add_argument("--plot", type=Path)
    command.set_defaults(action=report)
    command = subcommands.add_parser("compare", help=compare.__doc__)
    command.add_argument("base", type=Path)
    command.add_argument("head", type=Path)
    command.set_defaults(action=compare)
    command = subcommands.add_parser("profile", help=show_profile.__doc__)
    choose(command)
    command.set_defaults(action=show_profile)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()

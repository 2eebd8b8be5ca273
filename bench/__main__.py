"""Run, compare and report benchmarks.

python -m bench run --out results.jsonl        # one JSON line per problem and method
python -m bench report results.jsonl           # a Markdown table (and --plot FILE)
python -m bench compare base.jsonl head.jsonl  # fails where head is slower
python -m bench profile                        # share of each part of the pass
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.adapters import ADAPTERS, Setting, limited, profile
from bench.problems import PROBLEMS, Machine
from rffpk import show_config

# compare: a slowdown counts when it is beyond both, so that noise on short runs does not.
RELATIVE, ABSOLUTE = 1.10, 2e-3


def _settings(args: argparse.Namespace) -> Iterator[Setting]:
    for index in args.problems:
        for dtype in args.dtypes:
            for threads in args.threads:
                yield Setting(PROBLEMS[index], dtype, threads)


def run(args: argparse.Namespace) -> None:
    """Time all methods in turn, `repeats` times, with the machine's rates in each turn."""
    with open(args.out, "a") as out:
        for setting in _settings(args):
            machine = Machine(setting.dtype, setting.threads)
            iterations = {}
            for name in args.methods:
                try:
                    iterations[name] = ADAPTERS[name](setting)
                    limited(iterations[name], setting.threads)  # warm up
                except ImportError as missing:
                    print(f"left out {name}: {missing}", file=sys.stderr)
                    iterations.pop(name, None)
            times: dict[str, list[float]] = {name: [] for name in iterations}
            floors = []
            for _ in range(args.repeats):
                floors.append(machine.floor(setting.problem))
                for name, iteration in iterations.items():
                    times[name].append(limited(iteration, setting.threads))
            for name, measured in times.items():
                record = {
                    "problem": setting.problem.name,
                    "dtype": setting.dtype,
                    "threads": setting.threads,
                    "method": name,
                    "seconds": statistics.median(measured),
                    "all": measured,
                    "floor": statistics.median(floors),
                    "machine": platform.processor() or platform.machine(),
                    "isa": show_config()["isa"],
                }
                print(json.dumps(record), file=out, flush=True)
            ours = statistics.median(times.get("rffpk_pass", [float("nan")]))
            print(
                f"{setting.problem.name} {setting.dtype} {setting.threads} threads: "
                f"{ours:.4f} s, floor ratio {statistics.median(floors) / ours:.2f}",
                file=sys.stderr,
            )


def _read(path: str) -> dict[tuple[str, str, int], dict[str, dict[str, Any]]]:
    """Records by problem, dtype and threads, then by method; the last of equals counts."""
    table: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for line in Path(path).read_text().splitlines():
        record = json.loads(line)
        key = (record["problem"], record["dtype"], record["threads"])
        table.setdefault(key, {})[record["method"]] = record
    return table


def report(args: argparse.Namespace) -> None:
    """Seconds of our pass, its floor over it, and our time over each rival's."""
    table = _read(args.results)
    rivals = [m for m in ADAPTERS if any(m in row for row in table.values())]
    rivals = [m for m in rivals if m not in ("rffpk_pass", "null")]
    print("| problem | dtype | threads | pass, s | floor / pass | " + " | ".join(
        f"pass / {name}" for name in rivals) + " |")  # fmt: skip
    print("|---" * (5 + len(rivals)) + "|")
    for (problem, dtype, threads), row in table.items():
        ours = row["rffpk_pass"]
        cells = [
            f"{ours['seconds'] / row[name]['seconds']:.2f}" if name in row else ""
            for name in rivals
        ]
        head = [problem, dtype, str(threads), f"{ours['seconds']:.4f}"]
        print("| " + " | ".join([*head, f"{ours['floor'] / ours['seconds']:.2f}", *cells]) + " |")
    if args.plot:
        _plot(table, args.plot)


def _plot(table: dict[tuple[str, str, int], dict[str, dict[str, Any]]], path: str) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        sys.exit("--plot needs matplotlib: pip install matplotlib")
    names = [" ".join(map(str, key)) for key in table]
    _, axes = plt.subplots(figsize=(9, 0.35 * len(names) + 1))
    for method in ADAPTERS:
        points = [
            (row[method]["seconds"] / row[method]["floor"], i)
            for i, row in enumerate(table.values())
            if method in row and method != "null"
        ]
        if points:
            axes.plot(*zip(*points), "o", label=method)
    axes.axvline(1, color="black", lw=0.8)
    axes.set(xscale="log", xlabel="seconds of an iteration / floor of our pass")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.legend(fontsize=7)
    plt.tight_layout()
    plt.savefig(path)


def compare(args: argparse.Namespace) -> None:
    """Exit with 1 where head is slower than base, in units of the floor of its own run."""
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
    """Nanoseconds a row of each part, run alone: the hot path holds no timers."""
    for setting in _settings(args):
        parts = profile(setting)
        print(setting.problem.name, setting.dtype)
        print("  " + "  ".join(f"{name} {value:.1f}" for name, value in parts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)

    def choose(command: argparse.ArgumentParser) -> None:
        everything = list(range(len(PROBLEMS)))
        command.add_argument("--problems", type=int, nargs="+", default=everything)
        command.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
        command.add_argument("--threads", type=int, nargs="+", default=[show_config()["threads"]])

    command = commands.add_parser("run", help=run.__doc__)
    choose(command)
    command.add_argument("--methods", nargs="+", choices=ADAPTERS, default=list(ADAPTERS)[:6])
    command.add_argument("--repeats", type=int, default=7)
    command.add_argument("--out", required=True)
    command.set_defaults(action=run)
    command = commands.add_parser("report", help=report.__doc__)
    command.add_argument("results")
    command.add_argument("--plot")
    command.set_defaults(action=report)
    command = commands.add_parser("compare", help=compare.__doc__)
    command.add_argument("base")
    command.add_argument("head")
    command.set_defaults(action=compare)
    command = commands.add_parser("profile", help=show_profile.__doc__)
    choose(command)
    command.set_defaults(action=show_profile)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()

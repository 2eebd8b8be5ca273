"""CPU seconds of default fits over rows, clusters and columns: do they grow smoothly?

    python -m bench.speed.growth run --out FILE [--rows N ...] [--clusters K ...]
        [--columns D ...] [--classes NAME ...] [--fits M]
    python -m bench.speed.growth report FILE [--plot FILE]             # Markdown

Float32 rows in Gaussian clusters that overlap (the mixture of bench.speed.clusters), 20 columns
unless others are named; RFFMultiKernelPowerKMeans gets two views of half of them. For each of the
numbers, which double from one to the next, the median of --fits fits by one thread, which differ in
their random numbers. Left out are fewer than five rows a cluster, and more rows than those of a fit
of more than --longest seconds. Runs are resumable. The report has the seconds, and the largest
factor between neighbours of which one takes 50 ms or more: below, the part of a fit that does not
depend on the numbers counts.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench import commands, plots, records, tables
from bench.speed.clusters import COLUMNS, mixture
from bench.timing import clocks
from rffpk import (
    DiffusionPowerKMeans,
    FuzzyCMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
)

CLASSES = {
    each.__name__: each
    for each in (
        PowerKMeans,
        FuzzyCMeans,
        RFFKernelPowerKMeans,
        RFFMultiKernelPowerKMeans,
        DiffusionPowerKMeans,
    )
}
ROWS = (500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000)
CLUSTERS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
LEAST_ROWS = 5  # a cluster
LEAST_SECONDS = 0.05  # of a fit that is compared


def measure(name: str, columns: int, k: int, n: int, fits: int) -> float:
    X: Any = mixture(n, k, columns)
    if name == "RFFMultiKernelPowerKMeans":
        X = [np.ascontiguousarray(x) for x in np.array_split(X, 2, axis=1)]
    seconds = []
    for seed in range(fits):
        before = clocks()
        CLASSES[name](k, random_state=seed, n_jobs=1).fit(X)
        seconds.append(float((clocks() - before)[1]))
    return statistics.median(seconds)


def run(args: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    measure("PowerKMeans", COLUMNS, 2, 500, 1)  # what is imported at a first fit
    done = table_of(args.out) if args.out.exists() else {}
    for name, columns, k in itertools.product(args.classes, args.columns, args.clusters):
        for n in args.rows:
            if n < LEAST_ROWS * k:
                continue
            key = name, columns, k, n
            if key not in done:
                done[key] = cpu = measure(*key, args.fits)
                record = {"class": name, "columns": columns, "k": k, "rows": n, "cpu": cpu}
                records.append(args.out, record)
                print(record, flush=True)
            if done[key] > args.longest:
                break


# CPU seconds by class, columns, clusters and rows
Found = dict[tuple[str, int, int, int], float]


def table_of(path: Path) -> Found:
    return {(r["class"], r["columns"], r["k"], r["rows"]): r["cpu"] for r in records.read(path)}


def report(args: argparse.Namespace) -> None:
    found = table_of(args.results)
    sizes = sorted({(d, n) for _, d, _, n in found})
    for name in dict.fromkeys(name for name, *_ in found):
        print(f"\n{name}: {worst(found, name)}\n")
        tables.print_heading("k", *(f"n = {n}, d = {d}" for d, n in sizes))
        for k in sorted({k for each, _, k, _ in found if each == name}):
            cells = [found.get((name, d, k, n)) for d, n in sizes]
            tables.print_row(k, *("" if cpu is None else f"{cpu:.2f}" for cpu in cells))
    if args.plot:
        plot(found, args.plot)


def worst(found: Found, name: str) -> str:
    """The largest factors between neighbours in columns, clusters and rows."""
    parts = []
    for place, what in ((1, "columns"), (2, "clusters"), (3, "rows")):
        factors = [
            (cpu / found[half], key)
            for key, cpu in found.items()
            if key[0] == name
            and (half := (*key[:place], key[place] // 2, *key[place + 1 :])) in found
            and max(cpu, found[half]) >= LEAST_SECONDS
        ]
        if factors:
            factor, (_, d, k, n) = max(factors)
            parts.append(f"{factor:.1f} for twice the {what} to n = {n}, d = {d}, k = {k}")
    return "at most " + ", and ".join(parts)


def plot(found: Found, path: Path) -> None:
    """CPU seconds against rows, a line for each k, a panel for each class."""
    names = list(dict.fromkeys(name for name, *_ in found))
    figure, axes = plots.subplots(1, len(names), figsize=(4 * len(names), 4), squeeze=False)
    for axis, name in zip(axes[0], names):
        for k in sorted({k for each, _, k, _ in found if each == name}):
            points = sorted(
                (n, cpu) for (each, _, j, n), cpu in found.items() if (each, j) == (name, k)
            )
            axis.loglog(*zip(*points), "o-", label=f"k = {k}")
        axis.set(title=name, xlabel="rows n", ylabel="CPU seconds of a fit")
    plots.legend_beside(axes[0])
    plots.save(figure, path)


def main() -> None:
    parser = commands.parser(__doc__)
    subcommands = parser.add_subparsers(required=True)
    command = subcommands.add_parser("run")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--rows", type=int, nargs="+", default=ROWS)
    command.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
    command.add_argument("--columns", type=int, nargs="+", default=[COLUMNS])
    command.add_argument("--classes", nargs="+", choices=CLASSES, default=CLASSES, metavar="NAME")
    command.add_argument("--fits", type=int, default=3)
    command.add_argument("--longest", type=float, default=30.0)
    command.set_defaults(action=run)
    command = subcommands.add_parser("report")
    command.add_argument("results", type=Path)
    command.add_argument("--plot", type=Path, metavar="FILE")
    command.set_defaults(action=report)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()

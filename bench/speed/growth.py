"""CPU seconds of default fits over the number of rows and of clusters: do they grow smoothly?

    python -m bench.speed.growth run --out FILE [--rows N ...] [--clusters K ...]
        [--classes NAME ...] [--fits M]
    python -m bench.speed.growth report FILE [--plot FILE]             # Markdown

Float32 rows in Gaussian clusters that overlap (the mixture of bench.speed.clusters), 20 columns;
RFFMultiKernelPowerKMeans gets two views of ten. For each pair of numbers, which double from one to
the next, the median of --fits fits by one thread, which differ in their random numbers; pairs with
fewer than five rows a cluster are left out, and so are those after a fit of more than --longest
seconds, for a class and a number of clusters. Runs are resumable. The report has the seconds, and
the largest factor between neighbours of which one takes 50 ms or more: below, the part of a fit
that does not depend on the numbers counts.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bench import commands, plots, records, tables
from bench.speed.clusters import mixture
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


def measure(name: str, n: int, k: int, fits: int) -> float:
    X: Any = mixture(n, k)
    if name == "RFFMultiKernelPowerKMeans":
        X = [np.ascontiguousarray(X[:, :10]), np.ascontiguousarray(X[:, 10:])]
    seconds = []
    for seed in range(fits):
        before = clocks()
        CLASSES[name](k, random_state=seed, n_jobs=1).fit(X)
        seconds.append(float((clocks() - before)[1]))
    return statistics.median(seconds)


def run(args: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    measure("PowerKMeans", 500, 2, 1)  # what is imported at a first fit
    done = {(r["class"], r["k"], r["rows"]): r["cpu"] for r in records.resume(args.out)}
    for name in args.classes:
        for k in args.clusters:
            for n in args.rows:
                if n < LEAST_ROWS * k:
                    continue
                if (name, k, n) not in done:
                    done[name, k, n] = cpu = measure(name, n, k, args.fits)
                    record = {"class": name, "k": k, "rows": n, "cpu": cpu}
                    records.append(args.out, record)
                    print(record, flush=True)
                if done[name, k, n] > args.longest:
                    break


def report(args: argparse.Namespace) -> None:
    found = {(r["class"], r["k"], r["rows"]): r["cpu"] for r in records.read(args.results)}
    sizes = sorted({n for _, _, n in found})
    for name in dict.fromkeys(name for name, _, _ in found):
        print(f"\n{name}: {worst(found, name)}\n")
        tables.print_heading("k", *(f"n = {n}" for n in sizes))
        for k in sorted({k for each, k, _ in found if each == name}):
            cells = [found.get((name, k, n)) for n in sizes]
            tables.print_row(k, *("" if cpu is None else f"{cpu:.2f}" for cpu in cells))
    if args.plot:
        plot(found, args.plot)


Found = dict[tuple[str, int, int], float]


def worst(found: Found, name: str) -> str:
    """The largest factors between neighbours in rows and in clusters."""
    parts = []
    for what, place in (("rows", 2), ("clusters", 1)):
        factors = [
            (cpu / found[key], key)
            for key, cpu in ((before(each, place), cpu) for each, cpu in found.items())
            if key in found and key[0] == name and max(cpu, found[key]) >= LEAST_SECONDS
        ]
        factor, (_, k, n) = max(factors, default=(1.0, (name, 0, 0)))
        parts.append(f"{factor:.1f} for twice the {what} of n = {n}, k = {k}")
    return "at most " + ", and ".join(parts)


def before(key: tuple[str, int, int], place: int) -> tuple[str, int, int]:
    """The neighbour with half as many rows (2) or clusters (1)."""
    name, k, n = key
    return (name, k, n // 2) if place == 2 else (name, k // 2, n)


def plot(found: Found, path: Path) -> None:
    """CPU seconds against rows, a line for each k, a panel for each class."""
    names = list(dict.fromkeys(name for name, _, _ in found))
    figure, axes = plots.subplots(1, len(names), figsize=(4 * len(names), 4), squeeze=False)
    for axis, name in zip(axes[0], names):
        for k in sorted({k for each, k, _ in found if each == name}):
            points = sorted(
                (n, cpu) for (each, j, n), cpu in found.items() if (each, j) == (name, k)
            )
            axis.loglog(*zip(*points), "o-", label=f"k = {k}")
        axis.set(title=name, xlabel="rows n", ylabel="CPU seconds of a fit")
    lines = axes[0][0].get_legend_handles_labels()
    axes[0][-1].legend(*lines, loc="upper left", bbox_to_anchor=(1.02, 1))  # beside all panels
    plots.save(figure, path)


def main() -> None:
    parser = commands.parser(__doc__)
    subcommands = parser.add_subparsers(required=True)
    command = subcommands.add_parser("run")
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--rows", type=int, nargs="+", default=ROWS)
    command.add_argument("--clusters", type=int, nargs="+", default=CLUSTERS)
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

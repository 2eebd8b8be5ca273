"""Measure CPU seconds of default fits over rows, clusters and columns: do they grow smoothly?

Float32 rows in Gaussian clusters that overlap (the mixture of bench.speed.clusters), 20 columns by
default; RFFMultiKernelPowerKMeans gets two views of half of the columns. The numbers double from
one to the next. A time is the median of --fits fits by one thread with other random numbers. Left
out are fewer than five rows a cluster, and more rows after a fit of more than --longest seconds.
Runs are resumable. The tables have the seconds of all results of FILE, and the largest factor
between neighbours where a fit takes 50 ms or more. Below, the part of a fit that does not depend on
the numbers counts.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from pathlib import Path
from typing import Any

import numpy as np

import rffpk
from bench import commands, records, tables
from bench.datasets import mixture
from bench.timing import cpu_timed

CLASSES = (
    "PowerKMeans", "FuzzyCMeans", "RFFKernelPowerKMeans", "RFFMultiKernelPowerKMeans",
    "DiffusionPowerKMeans",
)  # fmt: skip
ROWS = (500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000)
CLUSTERS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
COLUMNS = 20
LEAST_ROWS = 5  # a cluster
LEAST_SECONDS = 0.05  # of a fit that is compared


def measure(name: str, columns: int, k: int, n: int, fits: int) -> float:
    X: Any = mixture(n, 1.4, k, columns)
    if name == "RFFMultiKernelPowerKMeans":
        X = [np.ascontiguousarray(x) for x in np.array_split(X, 2, axis=1)]
    models = (getattr(rffpk, name)(k, random_state=seed, n_jobs=1) for seed in range(fits))
    return statistics.median(cpu_timed(lambda model=model: model.fit(X))[0] for model in models)


def run(args: argparse.Namespace) -> None:
    measure("PowerKMeans", COLUMNS, 2, 500, 1)  # what is imported at a first fit
    done = table_of(args.out)
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
Seconds = dict[tuple[str, int, int, int], float]


def table_of(path: Path) -> Seconds:
    return {(r["class"], r["columns"], r["k"], r["rows"]): r["cpu"] for r in records.read(path)}


def report(table: Seconds) -> None:
    sizes = sorted({(d, n) for _, d, _, n in table})
    for name in dict.fromkeys(name for name, *_ in table):
        print(f"\n{name}: {worst(table, name)}\n")
        tables.print_heading("k", *(f"n = {n}, d = {d}" for d, n in sizes))
        for k in sorted({k for owner, _, k, _ in table if owner == name}):
            cells = [table.get((name, d, k, n)) for d, n in sizes]
            tables.print_row(k, *("" if cpu is None else f"{cpu:.2f}" for cpu in cells))


def worst(table: Seconds, name: str) -> str:
    """Name the largest factors between neighbours in columns, clusters and rows."""
    parts = []
    for place, what in ((1, "columns"), (2, "clusters"), (3, "rows")):
        factors = [
            (cpu / table[half], key)
            for key, cpu in table.items()
            if key[0] == name
            and (half := (*key[:place], key[place] // 2, *key[place + 1 :])) in table
            and max(cpu, table[half]) >= LEAST_SECONDS
        ]
        if factors:
            factor, (_, d, k, n) = max(factors)
            parts.append(f"{factor:.1f} for twice the {what} to n = {n}, d = {d}, k = {k}")
    return "at most " + ", and ".join(parts)


def plot(table: Seconds, path: Path) -> None:
    """Plot CPU seconds against rows by matplotlib, a line for each k, a panel for each class."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for name, *_ in table))
    figure = Figure(figsize=(4 * len(names), 4))
    axes = figure.subplots(1, len(names), squeeze=False)[0]
    for axis, name in zip(axes, names):
        for k in sorted({k for owner, _, k, _ in table if owner == name}):
            points = sorted(
                (n, cpu) for (owner, _, j, n), cpu in table.items() if (owner, j) == (name, k)
            )
            axis.loglog(*zip(*points), "o-", label=f"k = {k}")
        axis.set(title=name, xlabel="rows n", ylabel="CPU seconds of a fit")
    lines = axes[0].get_legend_handles_labels()
    axes[-1].legend(*lines, loc="upper left", bbox_to_anchor=(1.02, 1))
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    args = commands.arguments(
        __doc__, out=commands.OUT, rows=ROWS, clusters=CLUSTERS, columns=(COLUMNS,),
        classes=commands.Names(CLASSES), fits=3, longest=30.0, plot=Path,
    )  # fmt: skip
    run(args)
    report(table_of(args.out))
    if args.plot:
        plot(table_of(args.out), args.plot)


if __name__ == "__main__":
    main()

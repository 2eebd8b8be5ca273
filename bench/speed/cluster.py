"""Measure fits on a cluster of Dask on this machine: passes, what Dask adds to them, and a peer.

    python -m bench.speed.cluster [--parts passes fits kills model] [--workers N ...] [--rows N]

Workers are processes with one thread.

passes: "added" is the time of a pass over a few rows. Dask takes nearly all of this time: the
    arguments go to the workers, one task for each partition runs, and the merged sums come back.
    "Pass" is the time of a pass over all rows at fixed centroids, "one thread" the time over an
    array.

fits: default fits beside KMeans of dask-ml, which is left out if it is missing.

    The mean squared distance of rows to the nearest center is computed alike for both.

kills: fits during which a worker is killed at a random moment.

    The table says whether they have the bits of an undisturbed fit.

model: the seconds of a pass over many rows on many machines (bench/results/full_tables.md), by the
    --rate of a machine in Gflop/s, its --link in GB/s, and the seconds of a --task.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from operator import itemgetter
from statistics import median
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import around
from bench.internals import TUNING, Rows, column_rows, make_partitions, one_pass, ones
from bench.timing import timed
from rffpk import Annealing, PowerKMeans, RFFKernelPowerKMeans

COLUMNS, CLUSTERS, D, FEW = 50, 10, 108, 100


@contextmanager
def cluster(n: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        yield client


def collection(rows: int, count: int) -> Any:
    """Make rows about random centers on the workers."""
    import dask.array

    generator = np.random.default_rng(0)
    centers = 0.35 * generator.standard_normal((CLUSTERS, COLUMNS), dtype=np.float32)

    def block(block_info: Any = None) -> np.ndarray:
        (first, last), _ = block_info[None]["array-location"]
        return around(centers, last - first, np.random.default_rng(first))

    chunks = tuple(map(len, np.array_split(range(rows), count)))
    return dask.array.map_blocks(block, chunks=(chunks, (COLUMNS,)), dtype=np.float32)


def rows_of(X: Any, client: Any) -> Rows:
    """Return all rows as a fit passes over them."""
    stream = make_partitions(X, None, client, None, PowerKMeans()._schema())
    stream = replace(stream, n=X.shape[0])
    return replace(rows_in([stream.head[0][:0]]), stream=stream)


def rows_in(xs: list[np.ndarray]) -> Rows:
    return column_rows(xs[0], ones(len(xs[0])), 1, np.zeros(COLUMNS, dtype=np.float32))


def seconds_of_passes(rows: Rows, theta: np.ndarray, repeats: int) -> list[float]:
    one_pass(rows, theta, -math.inf)
    return [timed(partial(one_pass, rows, theta, -math.inf))[0] for _ in range(repeats)]


def passes(args: argparse.Namespace) -> None:
    """Print the seconds of passes over a few rows and over all."""
    added = "added, ms: least", "median"
    tables.print_heading("workers", "k", *added, "pass, s", "one thread, s")
    for n in args.workers:
        with cluster(n) as client:
            short = rows_of(collection(FEW * n, n).persist(), client)
            X = collection(args.rows, args.partitions).persist()
            kinds = [short, rows_of(X, client), rows_in([X.compute()])]
            for k in (CLUSTERS, 1000):
                theta = 0.35 * np.random.default_rng(1).standard_normal((k, COLUMNS))
                counts = 5 * args.repeats, args.repeats, args.repeats
                times = [seconds_of_passes(r, theta, m) for r, m in zip(kinds, counts)]
                added = f"{1e3 * min(times[0]):.0f}", f"{1e3 * median(times[0]):.0f}"
                tables.print_row(n, k, *added, *tables.cells(map(min, times[1:])))


def fits(args: argparse.Namespace) -> None:
    """Print the seconds of default fits, beside KMeans of dask-ml."""
    print()
    tables.print_heading("workers", "method", "seconds", "mean squared distance", "iterations")
    for n in args.workers:
        with cluster(n):
            X = collection(args.rows, args.partitions).persist()
            for name, make in methods().items():
                seconds, fitted = timed(lambda make=make, X=X: make().fit(X))
                centers = np.asarray(fitted.cluster_centers_)
                cost = "" if "RFF" in name else f"{mean_cost(X, centers):.4f}"
                tables.print_row(n, name, f"{seconds:.2f}", cost, fitted.n_iter_)


def methods() -> dict[str, Any]:
    models: dict[str, Any] = {
        "PowerKMeans": lambda: PowerKMeans(CLUSTERS, random_state=0),
        "RFFKernelPowerKMeans": lambda: RFFKernelPowerKMeans(
            CLUSTERS, n_frequencies=D, random_state=0
        ),
    }
    if find_spec("dask_ml"):
        from dask_ml.cluster import KMeans

        models["dask-ml KMeans"] = lambda: KMeans(CLUSTERS, random_state=0)
    return models


def mean_cost(X: Any, centers: np.ndarray) -> float:
    """Return the mean squared distance of rows to the nearest center."""

    def costs(block: np.ndarray) -> np.ndarray:
        block = block.astype(np.float64)
        return np.min([((block - center) ** 2).sum(axis=1) for center in centers], axis=0)

    return float(X.map_blocks(costs, drop_axis=1, dtype=np.float64).mean().compute())


def kills(args: argparse.Namespace) -> None:
    """Print whether fits have the same bits while workers are killed."""
    print()
    tables.print_heading("killed after, s", "seconds of the fit", "the same bits")
    schedule = {"annealing": Annealing(swaps=0), "n_init": 1, "tol": 0, "max_iter": 30}
    make = partial(PowerKMeans, CLUSTERS, random_state=0, sample=None, **schedule)
    with cluster(2):
        X = collection(args.rows, args.partitions).persist()
        usual, expected = min((timed(lambda: make().fit(X)) for _ in range(3)), key=itemgetter(0))
    tables.print_row("none", f"{usual:.2f}", "yes")
    chance = random.Random(0)
    for _ in range(args.repeats):
        with cluster(2) as client:
            X = collection(args.rows, args.partitions).persist()
            make().fit(X)
            after, pids = chance.uniform(0, usual), sorted(client.run(os.getpid).values())
            kill = threading.Timer(after, os.kill, (chance.choice(pids), signal.SIGKILL))
            kill.start()
            seconds, fitted = timed(lambda X=X: make().fit(X))
            kill.join()
        same = (fitted.cluster_centers_ == expected.cluster_centers_).all()
        same &= fitted.inertia_ == expected.inertia_
        tables.print_row(f"{after:.2f}", f"{seconds:.2f}", "yes" if same else "NO")


def model(args: argparse.Namespace) -> None:
    """Print the seconds of passes of the hard rule by the cost model."""
    print()
    tables.print_heading(
        "rows", "F", "k", "machines", "computing, s", "a sum, MB", "sums, s", "tasks, s",
    )  # fmt: skip
    for n, F, k in ((1e9, 50, 10), (1e9, 128, 32_768), (1e12, 50, 1000), (1e12, 128, 32_768)):
        for machines in (10, 100, 1000):
            computing = 2 * n * k * F / (machines * args.rate * 1e9)
            size = 8 * k * (F + 3)
            # sixteen partitions on each machine, whose sums are mostly joined elsewhere
            group = TUNING.workers.group
            steps = math.ceil(math.log(16 * machines, group))
            transfer = steps * group * size / (args.link * 1e9)
            tasks = 16 * machines * group / (group - 1)
            tables.print_row(
                f"{n:.0e}", F, k, machines, f"{computing:.3g}", f"{size / 1e6:.3g}",
                f"{transfer:.3g}", f"{tasks * args.task:.3g}",
            )  # fmt: skip


PARTS = {"passes": passes, "fits": fits, "kills": kills, "model": model}


def main() -> None:
    args = commands.arguments(
        __doc__, parts=commands.Names(PARTS), workers=(1, 2), rows=1_000_000, partitions=16,
        repeats=7, rate=1000.0, link=1.25, task=0.001,
    )  # fmt: skip
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    main()

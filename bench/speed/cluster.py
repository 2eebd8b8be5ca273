"""Measure passes on a cluster of Dask on this machine, and what Dask adds to them.

    python -m bench.speed.cluster [--workers N ...] [--rows N] [--partitions N] [--repeats N]

Workers are processes with one thread. "Added" is the time of a pass over a few rows. Dask takes
nearly all of this time: the arguments go to the workers, one task for each partition runs, and the
merged sums come back. "Pass" is the time of a pass over all rows at fixed centroids, "one thread"
the time over an array.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import around
from bench.internals import Rows, column_rows, make_partitions, one_pass, ones
from bench.timing import timed
from rffpk import PowerKMeans

COLUMNS, CLUSTERS, FEW = 50, 10, 100


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


def main() -> None:
    args = commands.arguments(__doc__, workers=(1, 2), rows=1_000_000, partitions=16, repeats=7)
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


if __name__ == "__main__":
    main()

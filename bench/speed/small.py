"""Measure whole fits of small data sets as multiples of KMeans(n_init=10) of scikit-learn.

    python -m bench.speed.small [--data DIR] [--repeats N] [--threads N] [--cpu]
        [--sets NAME ...] [--classes NAME ...] [--several]

Default fits of each class with the number of classes as k, on the data sets of scikit-learn and of
the folder that have 100 to 2000 rows. Of several views the first is taken. Columns are
standardised, and counts of words are rows of length one. With --several RFFMultiKernelPowerKMeans
takes all views of the sets that have several, and KMeans their columns side by side. All take
turns, with a new seed in each turn; a cell is the median over the turns of the ratio of seconds
within a turn. CPU seconds of one thread (--threads 1 --cpu) serve where other work disturbs the
clock.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import rffpk
from bench import commands, tables
from bench.datasets import BUNDLED, MULTI_VIEW, bundled, first_view, prepare, prepared_views
from bench.timing import spent

FILES = (
    "yale", "3sources", "seeds", "msrc_v1", "tr11", "bbcsport", "prokaryotic", "proteinfold",
    "binaryalphadigs", "coil20", "leaves100", "mfeat",
)  # fmt: skip
CLASSES = (
    "PowerKMeans", "RFFKernelPowerKMeans", "KernelPowerKMeans", "DiffusionPowerKMeans",
    "FuzzyCMeans", "RFFMultiKernelPowerKMeans",
)  # fmt: skip


def sets(data: Path | None, several: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names of data sets, and functions that load their rows and classes."""
    if several:
        yield from ((name, partial(prepared_views, data, name)) for name in MULTI_VIEW)
        return
    yield from ((name, partial(bundled, name)) for name in BUNDLED)
    yield from ((name, partial(first_view, data, name)) for name in (FILES if data else ()))


def turn(X: Any, k: int, seed: int, classes: list[str], cpu: bool) -> list[float]:
    """Return the seconds of KMeans, and the seconds of a fit of each class over them."""
    side_by_side = np.hstack(X) if isinstance(X, list) else X
    peer = KMeans(k, n_init=10, random_state=seed)
    took = spent(partial(peer.fit, side_by_side))[0][int(cpu)]
    models = (getattr(rffpk, name)(k, random_state=seed) for name in classes)
    return [took, *(spent(partial(model.fit, X))[0][int(cpu)] / took for model in models)]


def measure(args: argparse.Namespace) -> None:
    classes = ["RFFMultiKernelPowerKMeans"] if args.several else args.classes
    tables.print_heading("set", "n", "d", "k", "KMeans, ms", *classes)
    ratios = []
    for name, load in sets(args.data, args.several):
        if args.sets and name not in args.sets:
            continue
        X, y = load()
        X, k = X if args.several else prepare(name, X), len(np.unique(y))
        turn(X, k, 0, classes, args.cpu)  # warm-up
        turns = [turn(X, k, seed, classes, args.cpu) for seed in range(args.repeats)]
        peer, *medians = map(median, zip(*turns))
        ratios.append(medians)
        shape = (len(y), sum(x.shape[1] for x in X)) if args.several else X.shape
        tables.print_row(name, *shape, k, f"{1e3 * peer:.1f}", *tables.cells(medians, ".2f"))
    tables.print_row("median", "", "", "", "", *tables.cells(map(median, zip(*ratios)), ".2f"))


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.DATA, repeats=7, threads=rffpk.show_config()["threads"],
        several=False, cpu=False, sets={"nargs": "+"}, classes=commands.Names(CLASSES),
    )  # fmt: skip
    with threadpool_limits(args.threads):
        measure(args)


if __name__ == "__main__":
    main()

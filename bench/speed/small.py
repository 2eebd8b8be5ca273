"""Measure whole fits of small data sets as multiples of a fit of a peer.

Default fits of each class with the number of classes as k, on the data sets of scikit-learn and of
the folder that have 100 to 2000 rows, and on generated rows. Of several views the first is taken.
Columns are standardised, and counts of words are rows of length one. With --several
RFFMultiKernelPowerKMeans takes all views of the sets that have several, and the peer their columns
side by side. All take turns, with a new seed in each turn; a cell is the median over the turns of
the ratio of seconds within a turn. CPU seconds of one thread (--threads 1 --cpu) serve where other
work disturbs the clock. KMeans has n_init=10, SpectralClustering a graph of nearest neighbors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_moons
from threadpoolctl import threadpool_limits

import rffpk
from bench import commands, peers, tables
from bench.datasets import BUNDLED, MULTI_VIEW, bundled, prepare, prepared_views, single_view
from bench.timing import spent

GENERATED = {
    "moons": partial(make_moons, 2000, noise=0.06, random_state=0),
    "five blobs": partial(make_blobs, 2000, 10, centers=5, cluster_std=2.0, random_state=0),
    "thirty blobs": partial(make_blobs, 3000, 50, centers=30, cluster_std=4.0, random_state=1),
}
FILES = (
    "yale", "3sources", "seeds", "msrc_v1", "tr11", "bbcsport", "prokaryotic", "proteinfold",
    "binaryalphadigs", "coil20", "leaves100", "mfeat",
)  # fmt: skip
CLASSES: dict[str, Callable[..., Any]] = {
    "PowerKMeans": rffpk.PowerKMeans,
    "RFFKernelPowerKMeans": rffpk.RFFKernelPowerKMeans,
    "KernelPowerKMeans": rffpk.KernelPowerKMeans,
    "DiffusionPowerKMeans": rffpk.DiffusionPowerKMeans,
    "FuzzyCMeans": rffpk.FuzzyCMeans,
    "RFFMultiKernelPowerKMeans": rffpk.RFFMultiKernelPowerKMeans,
    'DiffusionPowerKMeans("auto")': lambda k, random_state: rffpk.DiffusionPowerKMeans(
        "auto", random_state=random_state
    ),
    'DiffusionPowerKMeans(noise="auto")': partial(rffpk.DiffusionPowerKMeans, noise="auto"),
}


def sets(data: Path | None, several: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names of data sets, and functions that load their rows and classes."""
    if several:
        yield from ((name, partial(prepared_views, data, name)) for name in MULTI_VIEW)
        return
    yield from ((name, partial(bundled, name)) for name in BUNDLED)
    yield from GENERATED.items()
    yield from ((name, partial(single_view, data, name)) for name in (FILES if data else ()))


def turn(X: Any, k: int, seed: int, args: argparse.Namespace) -> list[float]:
    """Return the seconds of the peer, and the seconds of a fit of each class over them."""
    side_by_side = np.hstack(X) if isinstance(X, list) else X
    peer = peers.METHODS[args.peer](k, random_state=seed)
    took = spent(partial(peer.fit, side_by_side))[0][int(args.cpu)]
    models = (CLASSES[name](k, random_state=seed) for name in args.classes)
    return [took, *(spent(partial(model.fit, X))[0][int(args.cpu)] / took for model in models)]


def measure(args: argparse.Namespace) -> None:
    tables.print_heading("set", "n", "d", "k", f"{args.peer}, ms", *args.classes)
    ratios = []
    for name, load in sets(args.data, args.several):
        if args.sets and name not in args.sets:
            continue
        X, y = load()
        X, k = X if args.several else prepare(name, X), len(np.unique(y))
        turn(X, k, 0, args)  # warm-up
        turns = [turn(X, k, seed, args) for seed in range(args.repeats)]
        peer, *medians = map(median, zip(*turns))
        ratios.append(medians)
        shape = (len(y), sum(x.shape[1] for x in X)) if args.several else X.shape
        tables.print_row(name, *shape, k, f"{1e3 * peer:.1f}", *tables.cells(medians, ".2f"))
    tables.print_row("median", "", "", "", "", *tables.cells(map(median, zip(*ratios)), ".2f"))


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.DATA, repeats=7, threads=rffpk.show_config()["threads"],
        several=False, cpu=False, sets={"nargs": "+"}, peer="KMeans",
        classes=commands.Names(CLASSES, list(CLASSES)[:6]),
    )  # fmt: skip
    if args.several:
        args.classes = ["RFFMultiKernelPowerKMeans"]
    with threadpool_limits(args.threads):
        measure(args)


if __name__ == "__main__":
    main()

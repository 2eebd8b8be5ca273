"""Whole fits of small data sets as multiples of KMeans(n_init=10) of scikit-learn.

    python -m bench.speed.small [--data DIR] [--repeats N] [--threads N] [--cpu]
        [--sets NAME ...] [--classes NAME ...] [--several]

Default fits of each class with the number of classes as k, on the data sets of scikit-learn and
of the folder that have 100 to 2000 rows (of several views the first): columns are standardised,
counts of words are rows of length one. With --several RFFMultiKernelPowerKMeans takes all views of
the sets that have several, and KMeans their columns side by side. All take turns, with a new seed
in each turn; a cell is the median over the turns of the ratio of seconds within a turn. CPU seconds
of one thread (--threads 1 --cpu) serve where other work disturbs the clock.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from threadpoolctl import threadpool_limits

from bench import commands, tables
from bench.datasets import MULTI_VIEW, prepare, prepared_views, single_view
from bench.timing import clocks
from rffpk import (
    DiffusionPowerKMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    show_config,
)

BUNDLED = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
# file, key of the view
FILES = (
    ("yale", "X"), ("3sources", "X0"), ("seeds", "X"), ("msrc_v1", "X0"), ("tr11", "X"),
    ("bbcsport", "X0"), ("prokaryotic", "X0"), ("proteinfold", "X0"), ("binaryalphadigs", "X"),
    ("coil20", "X"), ("leaves100", "X0"), ("mfeat", "X0"),
)  # fmt: skip
CLASSES = (
    PowerKMeans,
    RFFKernelPowerKMeans,
    KernelPowerKMeans,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    RFFMultiKernelPowerKMeans,
)

Rows = Callable[[], tuple[np.ndarray, np.ndarray]]


def bundled(name: str) -> tuple[np.ndarray, np.ndarray]:
    return BUNDLED[name](return_X_y=True)


def sets(data: Path | None, several: bool = False) -> Iterator[tuple[str, Rows]]:
    """Names of data sets, and what loads their rows and classes."""
    if several:
        yield from ((name, partial(prepared_views, data, name)) for name in MULTI_VIEW)
        return
    for name in BUNDLED:
        yield name, partial(bundled, name)
    for name, key in FILES if data else ():
        yield name, partial(single_view, data, name, key)


def turn(X: Any, k: int, seed: int, classes: list[Any], cpu: bool) -> list[float]:
    """Seconds of KMeans, and those of a fit of each class over them, in one turn."""
    models: list[Any] = [KMeans(k, n_init=10, random_state=seed)]
    models += [estimator(k, random_state=seed) for estimator in classes]
    spent = []
    for model in models:
        given = np.hstack(X) if isinstance(X, list) and model is models[0] else X
        before = clocks()
        model.fit(given)
        spent.append(float((clocks() - before)[int(cpu)]))
    peer, *ours = spent
    return [peer, *(time / peer for time in ours)]


def measure(args: argparse.Namespace) -> None:
    classes = [each for each in CLASSES if not args.classes or each.__name__ in args.classes]
    classes = [RFFMultiKernelPowerKMeans] if args.several else classes
    names = [estimator.__name__ for estimator in classes]
    tables.print_heading("set", "n", "d", "k", "KMeans, ms", *names)
    ratios = []
    for name, load in sets(args.data, args.several):
        if args.sets and name not in args.sets:
            continue
        X, y = load()
        X, k = X if args.several else prepare(name, X), len(np.unique(y))
        turn(X, k, 0, classes, args.cpu)  # warm-up
        turns = [turn(X, k, seed, classes, args.cpu) for seed in range(args.repeats)]
        peer, *found = map(median, zip(*turns))
        ratios.append(found)
        cells = (f"{ratio:.2f}" for ratio in found)
        shape = (len(y), sum(x.shape[1] for x in X)) if args.several else X.shape
        tables.print_row(name, *shape, k, f"{1e3 * peer:.1f}", *cells)
    tables.print_row("median", "", "", "", "", *(f"{median(each):.2f}" for each in zip(*ratios)))


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser, required=False)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=show_config()["threads"])
    parser.add_argument("--several", action="store_true", help="sets of several views")
    parser.add_argument("--cpu", action="store_true", help="CPU seconds of all threads")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--classes", nargs="+")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(args.threads):
        measure(args)


if __name__ == "__main__":
    main()

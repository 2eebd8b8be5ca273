"""Scores of the fusions of kernels and of their peers on multi-view sets.

    python -m bench.quality.fusion --data DIR [--sets NAME ...] [--seeds N]

ACC, NMI, purity (means of the seeds), seconds of a fit and the most megabytes that Python allocated
in one. k is the number of classes, each view's Gaussian kernel is centered and normalised; methods
that are not installed are named.
"""

from __future__ import annotations

import importlib
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import MULTI_VIEW, prepared_views
from bench.timing import timed
from rffpk import MKKM, AverageMKKM, SimpleMKKM
from rffpk.metrics import scores_of_labels

LANDMARKS = 400
OTHERS = (
    ("rffpk.fusion.smkc", "SMKC"),
    ("rffpk.fusion.famkkm", "FAMKKM"),
    ("imml.cluster", "EEIMVC"),
    ("imml.cluster", "LFIMVC"),
)


def methods() -> Iterator[tuple[str, Callable[[int, int], Any]]]:
    """Names, and functions of k and a seed that return the estimator; missing ones are reported."""
    for estimator in (SimpleMKKM, MKKM, AverageMKKM):
        yield estimator.__name__, estimator_of(estimator)
        name = f"{estimator.__name__}, {LANDMARKS} landmarks"
        yield name, estimator_of(estimator, n_landmarks=LANDMARKS)
    for module, name in OTHERS:
        try:
            yield name, estimator_of(getattr(importlib.import_module(module), name))
        except (ImportError, AttributeError) as error:
            print(f"{name}: {module} is not installed ({error})", file=sys.stderr)


def estimator_of(estimator: Any, **parameters: Any) -> Callable[[int, int], Any]:
    return lambda k, seed: estimator(n_clusters=k, random_state=seed, **parameters)


def score(models: list[Any], views: list[np.ndarray], y: np.ndarray) -> np.ndarray:
    found = []
    for model in models:
        elapsed, labels = timed(partial(model.fit_predict, views))
        found.append((*scores_of_labels(y, np.asarray(labels).astype(int)), elapsed))
    tracemalloc.start()  # it slows a fit down, so an extra fit is measured
    models[0].fit_predict(views)
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return np.append(np.mean(found, axis=0), most)


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=MULTI_VIEW, default=MULTI_VIEW)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("set (n, views, k)", "method", "ACC", "NMI", "purity", "s", "MB")
    found = list(methods())
    for name in args.sets:
        views, y = prepared_views(args.data, name)
        k = len(np.unique(y))
        for method, make in found:
            title = f"{name} ({len(y)}, {len(views)}, {k})"
            try:
                cells = score([make(k, seed) for seed in range(args.seeds)], views, y)
                tables.print_row(title, method, *(f"{cell:.3f}" for cell in cells))
            except Exception as error:  # an error of a peer; the other methods continue
                tables.print_row(title, method, f"{type(error).__name__}: {error}", *[""] * 4)


if __name__ == "__main__":
    main()

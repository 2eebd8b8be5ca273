"""Score the fusions of kernels and their peers on multi-view sets.

    python -m bench.quality.fusion --data DIR [--sets NAME ...] [--seeds N]

ACC, NMI, purity (means of the seeds), seconds of a fit and the most megabytes that Python allocated
in one fit. The number of classes is k, and the Gaussian kernel of each view is centered and
normalised. Methods that are not installed are named and left out.
"""

from __future__ import annotations

import importlib
import sys
import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import MULTI_VIEW, prepared_views
from bench.timing import timed
from rffpk import FAMKKM, MKKM, SMKC, AverageMKKM, SimpleMKKM
from rffpk.metrics import scores_of_labels

LANDMARKS = 400


def methods() -> Iterator[tuple[str, Any]]:
    """Yield names, and functions of k and a seed that return the estimator."""
    for estimator in (SimpleMKKM, MKKM, AverageMKKM):
        yield estimator.__name__, estimator
        name = f"{estimator.__name__}, {LANDMARKS} landmarks"
        yield name, partial(estimator, n_landmarks=LANDMARKS)
    yield from (("SMKC", SMKC), ("FAMKKM", FAMKKM))
    for name in ("EEIMVC", "LFIMVC"):
        try:
            yield name, getattr(importlib.import_module("imml.cluster"), name)
        except (ImportError, AttributeError) as error:
            print(f"{name}: imml is not installed ({error})", file=sys.stderr)


def score(models: list[Any], views: list[np.ndarray], y: np.ndarray) -> np.ndarray:
    scores = []
    for model in models:
        elapsed, labels = timed(partial(model.fit_predict, views))
        scores.append((*scores_of_labels(y, np.asarray(labels).astype(int)), elapsed))
    tracemalloc.start()  # it slows a fit down, so an extra fit is measured
    models[0].fit_predict(views)
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return np.append(np.mean(scores, axis=0), most)


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.NEEDS_DATA, seeds=3, sets=commands.Names(MULTI_VIEW)
    )
    tables.print_heading("set (n, views, k)", "method", "ACC", "NMI", "purity", "s", "MB")
    makers = list(methods())
    for name in args.sets:
        views, y = prepared_views(args.data, name)
        k = len(np.unique(y))
        title = f"{name} ({len(y)}, {len(views)}, {k})"
        for method, make in makers:
            models = [make(n_clusters=k, random_state=seed) for seed in range(args.seeds)]
            try:
                tables.print_row(title, method, *tables.cells(score(models, views, y)))
            except Exception as error:  # an error of a peer; the other methods continue
                tables.print_row(title, method, f"{type(error).__name__}: {error}", *[""] * 4)


if __name__ == "__main__":
    main()

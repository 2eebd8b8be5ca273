"""Compare ways to cluster several views: features and kernels, and weights of views.

    python -m bench.quality.views methods --data DIR [--sets NAME ...] [--methods NAME ...]
    python -m bench.quality.views weights --data DIR [--sets NAME ...] [--typicality]

methods: random and diffusion features, exact kernels and the mean kernel. NMI, ACC and ARI with the
    classes are means of the seeds. In brackets is the kernel k-means objective of the labels with
    the mean of the exact kernels, over the least of any run on the set. Where labels that agree
    better with the classes have a larger objective, no better search for its minimum finds them.
    Kernels are Gaussian with "mean" gamma, columns are not scaled, and counts of words are scaled
    to rows of length one.

weights: NMI of the labels for single views (mean and best by the labels) and for all views by
    `weight_entropy`, and the largest view weight. Columns are standardised where they are no
    counts. Without --typicality there is none.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

from bench import commands, tables
from bench.datasets import COUNTS, MULTI_VIEW, prepared_views, views
from bench.scores import kernel_objective
from rffpk import (
    AverageMKKM,
    MultiKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    center_kernel,
    clustering_accuracy,
    normalize_kernel,
)

Arrays = list[np.ndarray]
Fit = Callable[[Arrays, Arrays, int, int], np.ndarray]  # of views, kernels, k and a seed: labels


def of_views(estimator: Any, **parameters: Any) -> Fit:
    return lambda xs, Ks, k, seed: estimator(k, random_state=seed, **parameters).fit(xs).labels_


def exact(xs: Arrays, Ks: Arrays, k: int, seed: int, prepare: Any = None) -> np.ndarray:
    Ks = Ks if prepare is None else [prepare(K) for K in Ks]
    return MultiKernelPowerKMeans(k, kernels="precomputed", random_state=seed).fit(Ks).labels_


def k_means_side_by_side(xs: Arrays, Ks: Arrays, k: int, seed: int) -> np.ndarray:
    """Label all views side by side, each with a total variance of one."""
    together = np.hstack([x / np.sqrt(x.var(axis=0).sum()) for x in xs])
    return KMeans(k, n_init=10, random_state=seed).fit_predict(together)


centered = partial(exact, prepare=lambda K: normalize_kernel(center_kernel(K)))
METHODS: dict[str, Fit] = {
    "default": of_views(RFFMultiKernelPowerKMeans),
    "random features": of_views(RFFMultiKernelPowerKMeans, kernels="rbf", typicality="auto"),
    "random, no typicality": of_views(RFFMultiKernelPowerKMeans, kernels="rbf"),
    "diffusion features": of_views(RFFMultiKernelPowerKMeans, kernels="diffusion"),
    "exact kernels": exact,
    "exact, centered and normalized": centered,
    "mean kernel": of_views(AverageMKKM),
    "mean kernel, rows not scaled": of_views(AverageMKKM, normalize_rows=False),
    "k-means": k_means_side_by_side,
}


def methods(args: argparse.Namespace) -> None:
    """Print scores and objectives of all methods."""
    tables.print_heading("set", *args.methods)
    for name in args.sets:
        xs, y = views(args.data, name)
        xs = [normalize(x) for x in xs] if name in COUNTS else xs
        k = len(np.unique(y))
        Ks = [rbf_kernel(x, gamma=1 / (4 * x.var(axis=0).sum())) for x in xs]
        mean = sum(Ks) / len(Ks)

        def scores(labels: np.ndarray, y: Any = y, k: int = k, mean: Any = mean) -> list[float]:
            compared = (normalized_mutual_info_score, clustering_accuracy, adjusted_rand_score)
            return [*(score(y, labels) for score in compared), kernel_objective(mean, labels, k)]

        table = np.array([
            [scores(METHODS[method](xs, Ks, k, seed)) for seed in range(args.seeds)]
            for method in args.methods
        ])  # fmt: skip
        table[..., 3] /= table[..., 3].min()
        numbers = (tables.cells(row) for row in table.mean(axis=1))
        tables.print_row(
            name, *(f"{nmi} {acc} {ari} ({ratio})" for nmi, acc, ari, ratio in numbers)
        )


ENTROPIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 1e6)


def weights(args: argparse.Namespace) -> None:
    """Print NMI and the largest view weight by the weight of the entropy."""

    def score(xs: Arrays, y: np.ndarray, **parameters: Any) -> np.ndarray:
        values = []
        for seed in range(args.seeds):
            model = RFFMultiKernelPowerKMeans(
                len(np.unique(y)), random_state=seed, kernels=None,
                typicality="auto" if args.typicality else None, **parameters,
            ).fit(xs)  # fmt: skip
            nmi = normalized_mutual_info_score(y, model.labels_)
            values.append((nmi, model.kernel_weights_.max()))
        return np.mean(values, axis=0)

    tables.print_heading("set", "views", "single views: mean, best", *(f"{e:g}" for e in ENTROPIES))
    for name in args.sets:
        xs, y = prepared_views(args.data, name)
        single = [score([x], y)[0] for x in xs]
        pairs = (score(xs, y, weight_entropy=entropy) for entropy in ENTROPIES)
        cells = (f"{nmi:.3f} ({largest:.2f})" for nmi, largest in pairs)
        tables.print_row(name, len(xs), f"{np.mean(single):.3f}, {max(single):.3f}", *cells)


def main() -> None:
    common = {"data": commands.NEEDS_DATA, "sets": commands.Names(MULTI_VIEW), "seeds": 5}
    commands.run(
        __doc__,
        methods=(methods, {**common, "methods": commands.Names(METHODS)}),
        weights=(weights, {**common, "typicality": False}),
    )


if __name__ == "__main__":
    main()

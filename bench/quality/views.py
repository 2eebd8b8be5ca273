"""Compare features and kernels of several views.

NMI, ACC and ARI with the classes are means of the seeds. In brackets is the kernel k-means
objective of the labels with the mean of the exact kernels, over the least of any run on the set.
Where labels that agree better with the classes have a larger objective, no better search for its
minimum finds them. Kernels are Gaussian with "mean" gamma, columns are not scaled, and counts of
words are scaled to rows of length one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

from bench import commands, tables
from bench.datasets import COUNTS, MULTI_VIEW, views
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


def scores(y: np.ndarray, labels: np.ndarray, K: np.ndarray, k: int) -> list[float]:
    compared = (normalized_mutual_info_score, clustering_accuracy, adjusted_rand_score)
    return [*(score(y, labels) for score in compared), kernel_objective(K, labels, k)]


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.NEEDS_DATA, sets=commands.Names(MULTI_VIEW), seeds=5,
        methods=commands.Names(METHODS),
    )  # fmt: skip
    tables.print_heading("set", *args.methods)
    for name in args.sets:
        xs, y = views(args.data, name)
        xs = [normalize(x) for x in xs] if name in COUNTS else xs
        k = len(np.unique(y))
        Ks = [rbf_kernel(x, gamma=1 / (4 * x.var(axis=0).sum())) for x in xs]
        mean = sum(Ks) / len(Ks)
        runs = [[METHODS[m](xs, Ks, k, seed) for seed in range(args.seeds)] for m in args.methods]
        table = np.array([[scores(y, labels, mean, k) for labels in row] for row in runs])
        table[..., 3] /= table[..., 3].min()
        numbers = (tables.cells(row) for row in table.mean(axis=1))
        tables.print_row(
            name, *(f"{nmi} {acc} {ari} ({ratio})" for nmi, acc, ari, ratio in numbers)
        )


if __name__ == "__main__":
    main()

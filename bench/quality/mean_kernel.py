"""Several views: random and diffusion features, exact kernels and the mean kernel.

    python -m bench.quality.mean_kernel --data DIR [--sets NAME ...] [--seeds N]
        [--methods NAME ...]

NMI, ACC and ARI with the classes (means of the seeds), and in brackets the kernel k-means objective
of the labels with the mean of the exact kernels, over the least of any run on the set: where labels
that agree better with the classes have a larger objective, no better search for its minimum finds
them. Kernels are Gaussian with "mean" gamma, columns are not scaled, and counts of words are scaled
to rows of length one.
"""

from __future__ import annotations

import warnings
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
    Typicality,
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
    """Of all views, each with a total variance of one."""
    together = np.hstack([x / np.sqrt(x.var(axis=0).sum()) for x in xs])
    return KMeans(k, n_init=10, random_state=seed).fit_predict(together)


METHODS: dict[str, Fit] = {
    "default": of_views(RFFMultiKernelPowerKMeans),
    "random features": of_views(RFFMultiKernelPowerKMeans, kernels="rbf", typicality="auto"),
    "random, no typicality": of_views(RFFMultiKernelPowerKMeans, kernels="rbf"),
    "random, eta=mean": of_views(
        RFFMultiKernelPowerKMeans, kernels="rbf", typicality=Typicality(eta="mean")
    ),
    "diffusion features": of_views(RFFMultiKernelPowerKMeans, kernels="diffusion"),
    "exact kernels": exact,
    "exact, centered and normalized": partial(
        exact, prepare=lambda K: normalize_kernel(center_kernel(K))
    ),
    "mean kernel": of_views(AverageMKKM),
    "mean kernel, rows not scaled": of_views(AverageMKKM, normalize_rows=False),
    "k-means": k_means_side_by_side,
}


def lines(name: str, xs: Arrays, y: np.ndarray, methods: list[str], seeds: int) -> None:
    k = len(np.unique(y))
    Ks = [rbf_kernel(x, gamma=1 / (4 * x.var(axis=0).sum())) for x in xs]
    mean, found = sum(Ks) / len(Ks), {}
    scores = (normalized_mutual_info_score, clustering_accuracy, adjusted_rand_score)
    for method in methods:
        labels = [METHODS[method](xs, Ks, k, seed) for seed in range(seeds)]
        found[method] = np.array(
            [[*(score(y, z) for score in scores), kernel_objective(mean, z, k)] for z in labels]
        )
    least = min(values[:, 3].min() for values in found.values())
    cells = []
    for values in found.values():
        nmi, acc, ari, objective = values.mean(axis=0)
        cells.append(f"{nmi:.3f} {acc:.3f} {ari:.3f} ({objective / least:.3f})")
    tables.print_row(name, *cells)


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=MULTI_VIEW, default=MULTI_VIEW)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("set", *args.methods)
    for name in args.sets:
        xs, y = views(args.data, name)
        xs = [normalize(x) for x in xs] if name in COUNTS else xs
        lines(name, xs, y, args.methods, args.seeds)


if __name__ == "__main__":
    main()

"""Rows far from all others, in heavy tails or a few by themselves: objectives beside KMeans.

    python -m bench.quality.far_rows [--data DIR] [--rows N] [--seeds N] [--half first second]

Of each set and of 8 and 23 clusters the objective over that of KMeans(n_init=1) with the same
seed, and for FuzzyCMeans over that of `cmeans` from the centroids of KMeans: means (and worst
values) over numbers of clusters and seeds, and CPU seconds of one thread over those of KMeans. The
constants of the step that gives such rows centroids were chosen on the sets of the first half;
the second was looked at once. Prints Markdown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from bench import commands, tables
from bench.datasets import single_view
from bench.scores import k_means_objective
from rffpk import FuzzyCMeans, PowerKMeans, cmeans

CLUSTERS = (8, 23)
Random = np.random.Generator
Rows = Callable[[int, Random], np.ndarray]


def blobs(n: int, random: Random, d: int = 5) -> np.ndarray:
    return make_blobs(n, d, centers=10, random_state=int(random.integers(1 << 31)))[0]


def beside(count: int, far: float, n: int, random: Random, spread: float = 0.0) -> np.ndarray:
    """Blobs and a few rows about so far away, in several places or, with a `spread`, in one."""
    X = blobs(n, random)
    away = random.standard_normal((1 if spread else count, 5))
    away *= far / np.linalg.norm(away, axis=1, keepdims=True)
    X[:count] = away + spread * random.standard_normal((count, 5))
    return X


def connections(n: int, random: Random, d: int = 20) -> np.ndarray:
    """Columns that are zero in most rows, and Pareto's in the others; with copies."""
    there = random.random((n, d)) < 0.5 ** random.integers(0, 10, d)
    X = np.where(there, random.pareto(random.uniform(1, 3, d), (n, d)), 0.0)
    X[: n // 2] = X[random.integers(20, size=n // 2)]
    return np.asarray(scale(X))


def sensors(n: int, random: Random) -> np.ndarray:
    """Narrow clusters of Zipf's sizes, of which one row in 2000 has wrong numbers."""
    share = 1 / np.arange(1.0, 8) ** 2
    y = random.choice(7, n, p=share / share.sum())
    X = 20 * random.standard_normal((7, 9))[y] + random.standard_normal((n, 9))
    wrong = random.random(n) < 5e-4
    X[wrong] *= random.lognormal(2, 2, (wrong.sum(), 9))
    return np.asarray(scale(X))


def mixed_lognormal(n: int, random: Random) -> np.ndarray:
    return np.exp(random.standard_normal((n, 6)) @ random.standard_normal((6, 6)))


def cauchy(n: int, random: Random) -> np.ndarray:
    """Of several columns, about ten places."""
    X = random.standard_normal((n, 4)) / np.abs(random.standard_normal((n, 1)))
    return X + 5 * random.standard_normal((10, 4))[random.integers(10, size=n)]


def two_scales(n: int, random: Random) -> np.ndarray:
    X = blobs(n, random, 10)
    wide = random.random(n) < 1e-3
    X[wide] += 100 * random.standard_normal((wide.sum(), 10))
    return X


def anisotropic(n: int, random: Random) -> np.ndarray:
    return blobs(n, random, 8) @ random.standard_normal((8, 8))


HALVES: dict[str, dict[str, Rows]] = {
    "first": {
        "blobs": blobs,
        "blobs and 1 far row": partial(beside, 1, 1e4),
        "blobs and 3 far rows": partial(beside, 3, 1e4),
        "blobs and 20 rows in one far place": partial(beside, 20, 300.0, spread=1.0),
        "Student's t, 1.5 degrees": lambda n, random: random.standard_t(1.5, (n, 5)),
        "lognormal, 2": lambda n, random: random.lognormal(0, 2, (n, 4)),
        "connections": connections,
        "even in a cube": lambda n, random: random.random((n, 4)),
    },
    "second": {
        "anisotropic blobs": anisotropic,
        "blobs and 2 far rows": partial(beside, 2, 2e3),
        "blobs and 5 far rows": partial(beside, 5, 3e4),
        "blobs and 8 rows in one far place": partial(beside, 8, 1e3, spread=10.0),
        "blobs and wide ones": two_scales,
        "Cauchy, by columns": lambda n, random: random.standard_t(1, (n, 3)),
        "Cauchy, of rows": cauchy,
        "mixed lognormal": mixed_lognormal,
        "Weibull, .4": lambda n, random: random.weibull(0.4, (n, 6)),
        "sensors": sensors,
        "connections, 8 columns": partial(connections, d=8),
    },
}
REAL = {"shuttle": (7, 50), "kddcup99_10pct": (23,)}

METHODS: dict[str, Callable[[int, int], Any]] = {
    "default": lambda k, seed: PowerKMeans(k, random_state=seed, n_jobs=1),
    "sample=None": lambda k, seed: PowerKMeans(k, sample=None, random_state=seed, n_jobs=1),
    "paper": lambda k, seed: PowerKMeans(k, annealing="paper", random_state=seed, n_jobs=1),
    "FuzzyCMeans": lambda k, seed: FuzzyCMeans(k, random_state=seed, n_jobs=1),
}


def fuzzy_reference(X: np.ndarray, centers: np.ndarray) -> float:
    """The objective of fuzzy c-means that begins at these centroids."""
    squares = np.maximum(((X[:, None] - centers) ** 2).sum(axis=2), 1e-12)
    return float(cmeans(X, len(centers), 2, maxiter=100, init=(1 / squares).T).jm[-1])


def measured(X: np.ndarray, k: int, seed: int, methods: list[str]) -> dict[str, tuple[float, ...]]:
    """Objectives and CPU seconds over those of KMeans."""
    started = time.process_time()
    peer = KMeans(k, n_init=1, random_state=seed).fit(X)
    seconds, found = time.process_time() - started, {}
    for name in methods:
        started = time.process_time()
        model = METHODS[name](k, seed).fit(X)
        spent = (time.process_time() - started) / seconds
        if name == "FuzzyCMeans":
            objective = model.objective_ / fuzzy_reference(X, peer.cluster_centers_)
        else:
            objective = k_means_objective(X, model.labels_) / k_means_objective(X, peer.labels_)
        found[name] = objective, spent
    return found


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser, required=False)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--half", nargs="+", choices=HALVES, default=list(HALVES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("rows", *args.methods)

    def row(name: str, rows: Callable[[int], np.ndarray], clusters: tuple[int, ...]) -> None:
        found = [
            measured(rows(seed), k, seed, args.methods)
            for k in clusters
            for seed in range(args.seeds)
        ]
        cells = []
        for method in args.methods:
            objectives, times = zip(*(each[method] for each in found))
            mean, worst, spent = np.mean(objectives), max(objectives), np.mean(times)
            cells.append(f"{mean:.3f} ({worst:.3f}), {spent:.1f}")
        tables.print_row(name, *cells)

    with threadpool_limits(1):
        for half in args.half:
            for name, rows in HALVES[half].items():
                row(
                    name,
                    lambda seed, rows=rows: rows(args.rows, np.random.default_rng(seed)),
                    CLUSTERS,
                )
        for name, clusters in (REAL if args.data else {}).items():
            X = scale(single_view(args.data, name, "X")[0]).astype(np.float32)
            row(name, lambda seed, X=X: X, clusters)


if __name__ == "__main__":
    main()

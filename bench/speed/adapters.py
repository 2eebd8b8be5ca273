"""Measure one iteration of each peer over the same features, by one adapter per peer.

The time of a peer's iteration is the difference between two fits with different numbers of
iterations, so that set-up and seeding do not count. Adapters of missing packages are left out, and
named.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from bench.speed.problems import Problem
from bench.timing import Measure, seconds, timed
from rffpk import RandomFourierFeatures
from rffpk.rows.arrays import Fourier, Identity
from rffpk.rows.passes import centered, make_rows, one_pass, shifted_features
from rffpk.rows.rows import Rows
from rffpk.rows.weights import ones


class Setting:
    """The data of one problem: rows, frequencies, centroids, and stored features for peers."""

    def __init__(self, problem: Problem, dtype: str, threads: int) -> None:
        self.problem, self.dtype, self.threads = problem, dtype, threads
        random = np.random.default_rng(1)
        X = problem.rows(dtype)
        mapped: Fourier | Identity = Identity(problem.d)
        if problem.D:
            omega = random.standard_normal((problem.d, problem.D)) / np.sqrt(2 * problem.d)
            mapped = Fourier(omega.astype(dtype))
        self.rows: Rows = centered(make_rows([X], [mapped], ones(len(X)), threads))
        chosen = np.sort(random.choice(problem.n, problem.k, replace=False))
        self.theta = shifted_features(self.rows.take(chosen)).astype(np.float64)
        self._stored: np.ndarray | None = None

    @property
    def stored(self) -> np.ndarray:
        if self._stored is None:
            self._stored = shifted_features(self.rows) if self.problem.D else self.rows.xs[0]
        return self._stored

    @property
    def stored_start(self) -> np.ndarray:
        shift = 0 if self.problem.D else self.rows.shift
        return (self.theta + shift).astype(self.dtype)


def _difference(fit: Callable[[int], int], least: int = 2, most: int = 16) -> Measure:
    """Time an iteration; `fit` runs at most so many, and returns how many it ran."""

    def run() -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            short, before = timed(partial(fit, least))
            long, after = timed(partial(fit, most))
            return (long - short) / (after - before)

    return run


def passes(rows: Rows, theta: np.ndarray, s: float) -> Measure:
    """Time consecutive passes of 0.1 s, after one that wakes the threads."""

    def run() -> float:
        one = seconds(lambda: one_pass(rows, theta, s))
        n = 1 + int(0.1 / one)
        return seconds(lambda: [one_pass(rows, theta, s) for _ in range(n)]) / n

    return run


def rffpk_pass(setting: Setting, s: float = -3.0) -> Measure:
    return passes(setting.rows, setting.theta, s)


def rffpk_structured(setting: Setting) -> Measure:
    """Time the pass with as many structured frequencies."""
    if not setting.problem.D:
        raise ImportError("identity features have no frequencies.")
    X = setting.rows.xs[0]
    mapped = RandomFourierFeatures(setting.problem.D, sampling="structured", random_state=0)
    mapped.fit(X[:1000])
    fourier = Fourier(mapped.structure_)
    rows = centered(make_rows([X], [fourier], ones(len(X)), setting.threads))
    theta = shifted_features(rows.take(np.arange(setting.problem.k)))
    return passes(rows, theta, -3.0)


def rffpk_harmonic(setting: Setting) -> Measure:
    """Time the pass at s = -1, which is fuzzy c-means with m = 2."""
    return rffpk_pass(setting, -1.0)


def k_means(X: np.ndarray, start: np.ndarray, estimator: Any = KMeans) -> Measure:
    def fit(n: int) -> int:
        # without a copy: page faults of new memory would exceed the difference of two fits
        model = estimator(len(start), init=start, n_init=1, max_iter=n, tol=0, copy_x=False)
        return int(model.fit(X).n_iter_)

    return _difference(fit)


def sklearn_lloyd(setting: Setting) -> Measure:
    return k_means(setting.stored, setting.stored_start)


def sklearnex_lloyd(setting: Setting) -> Measure:
    from sklearnex.cluster import KMeans as IntelKMeans

    return k_means(setting.stored, setting.stored_start, IntelKMeans)


def faiss_kmeans(setting: Setting) -> Measure:
    import faiss

    X = np.asarray(setting.stored, dtype=np.float32)
    start = setting.stored_start.astype(np.float32)

    def fit(n: int) -> int:
        faiss.omp_set_num_threads(setting.threads)
        most = -(-len(X) // len(start)) + 1  # no silent subsampling
        model = faiss.Kmeans(X.shape[1], len(start), niter=n, max_points_per_centroid=most, seed=1)
        model.train(X, init_centroids=start)
        return n

    return _difference(fit)


def scikit_fuzzy(setting: Setting) -> Measure:
    from skfuzzy import cmeans

    X = setting.stored.T

    def fit(n: int) -> int:
        return int(cmeans(X, setting.problem.k, 2.0, error=0.0, maxiter=n, seed=0)[5])

    return _difference(fit, 2, 6)


ADAPTERS: dict[str, Callable[[Setting], Measure]] = {
    adapter.__name__: adapter
    for adapter in (
        rffpk_pass, rffpk_structured, rffpk_harmonic, sklearn_lloyd, sklearnex_lloyd, faiss_kmeans,
        scikit_fuzzy,
    )
}  # fmt: skip

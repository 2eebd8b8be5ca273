"""Measure accuracy and centroid errors under noise and outliers, with and without typicality.

    python -m bench.quality.robustness [--seeds N]

Five Gaussian clusters in eight dimensions, with 0 to 30 % of uniform background rows, or with 1 %
of rows a hundred times as far away. ACC is that of the clean rows. The centroid error is the root
mean square distance between the estimated centroids and the true means after the best matching, in
standard deviations of a cluster. The centroid of a kernel method is the mean of the rows of a
cluster, weighted with the membership and, if there is one, the typicality to the power m.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from bench import commands, tables
from rffpk import (
    FuzzyCMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    Typicality,
    clustering_accuracy,
)

K, COLUMNS, CLEAN = 5, 8, 1000
Fit = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]  # labels, centroids


def data(share: float, gross: bool, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows, clean rows first; and return their classes and true means, too."""
    random = np.random.default_rng(seed)
    centers = random.uniform(-5, 5, (K, COLUMNS))
    y = random.integers(K, size=CLEAN)
    X = centers[y] + random.standard_normal((CLEAN, COLUMNS))
    extra = round(share * CLEAN / (1 - share))
    noise = random.uniform(-10, 10, (extra, COLUMNS)) * (100 if gross else 1)
    return np.vstack([X, noise]), y, centers


def weighted_means(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights.T @ X / np.maximum(weights.sum(axis=0), 1e-300)[:, None]


def k_means(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    model = KMeans(K, n_init=10, random_state=seed).fit(X)
    return model.labels_, model.cluster_centers_


def fuzzy(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    model = FuzzyCMeans(K, m=1.5, n_init=3, random_state=seed).fit(X)
    return model.labels_, model.cluster_centers_


def kernel(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    model = RFFKernelPowerKMeans(K, gamma="median", random_state=seed).fit(X)
    return model.labels_, weighted_means(X, model.predict_proba(X))


def typical(eta: str, m: float) -> Fit:
    def fit(X: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        model = RFFMultiKernelPowerKMeans(
            K, typicality=Typicality(m=m, eta=eta), kernels=[("rbf", "median")], random_state=seed
        ).fit(X)
        weights = model.predict_proba(X) * model.predict_typicality(X) ** m
        return model.labels_, weighted_means(X, weights)

    return fit


METHODS: dict[str, Fit] = {
    "k-means": k_means,
    "fuzzy c-means, m=1.5": fuzzy,
    "kernel, no typicality": kernel,
    "typicality, mean, m=2": typical("mean", 2.0),
    "typicality, median, m=2": typical("median", 2.0),
    "typicality, median, m=1.5": typical("median", 1.5),
}
CASES = [(0.0, False), (0.1, False), (0.2, False), (0.3, False), (0.01, True)]


def evaluate(fit: Fit, share: float, gross: bool, seed: int) -> tuple[float, float]:
    X, y, centers = data(share, gross, seed)
    labels, estimated = fit(X, seed)
    gaps = cdist(estimated, centers, "sqeuclidean")
    error = float(np.sqrt(gaps[linear_sum_assignment(gaps)].mean()))
    return clustering_accuracy(y, labels[:CLEAN]), error


def main() -> None:
    args = commands.arguments(__doc__, seeds=10)
    names = [f"{share:.0%} {'outliers' if gross else 'noise'}" for share, gross in CASES]
    tables.print_heading("method", *names)
    for method, fit in METHODS.items():
        means = [
            np.mean([evaluate(fit, *case, seed) for seed in range(args.seeds)], axis=0)
            for case in CASES
        ]
        tables.print_row(method, *(f"{accuracy:.3f}, {error:.2f}" for accuracy, error in means))


if __name__ == "__main__":
    main()

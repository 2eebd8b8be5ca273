"""Convergence of random features to the exact kernel: errors of weights, labels and objective by D.

    python -m bench.quality.approximation [--seeds N] [--plot FILE]

Then the objective of the features' labels under the exact kernel at the D of theorem 3, and the
excess risk by the number of rows, which theorem 1 bounds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from bench import commands, plots, tables
from bench.internals import power_weights, squared_distances
from bench.scores import kernel_objective
from rffpk import Annealing, KernelPowerKMeans, RandomFourierFeatures, RFFKernelPowerKMeans

SAMPLINGS = ("iid", "orthogonal", "structured")
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)


def errors_of(X: np.ndarray, k: int, gamma: float, D: int, sampling: str, seed: int) -> np.ndarray:
    """Errors after five steps from the same centroids: of the weights (root mean square), the
    labels (1 - ARI) and the objective (relative)."""
    rows, s = np.random.default_rng(seed).choice(len(X), k, replace=False), -3.0
    W = np.eye(len(X))[rows]
    exact = _steps(rbf_kernel(X, gamma=gamma), W, s)
    mapped = RandomFourierFeatures(D, gamma=gamma, sampling=sampling, random_state=seed)
    phi = mapped.fit_transform(X)
    found = _steps(phi @ phi.T, W, s)
    return np.array(
        [
            np.sqrt(((found[0] - exact[0]) ** 2).mean()),
            1 - adjusted_rand_score(exact[1], found[1]),
            abs(found[2] / exact[2] - 1),
        ]
    )


def _steps(K: np.ndarray, W: np.ndarray, s: float, steps: int = 5) -> tuple:
    for _ in range(steps):
        Y = K @ W.T
        d = np.maximum(np.diag(K)[:, None] + np.einsum("kn,nk->k", W, Y) - 2 * Y, 1e-15)
        v, means, _ = power_weights(d, s)
        W = (v / v.sum(axis=0)).T
    return v, d.argmin(axis=1), means.sum()


def approximation(X: np.ndarray, seeds: int, k: int = 10) -> dict[tuple[str, int], np.ndarray]:
    """Errors by the sampling of the frequencies and their number D."""
    gamma = 1 / (2 * 2 * X.var(axis=0).sum())
    errors = {}
    tables.print_heading("D", *(f"{s}: weights, 1 - ARI, objective" for s in SAMPLINGS))
    for D in SIZES:
        for sampling in SAMPLINGS:
            found = [errors_of(X, k, gamma, D, sampling, seed) for seed in range(seeds)]
            errors[sampling, D] = np.mean(found, axis=0)
        cells = (", ".join(f"{e:.1e}" for e in errors[sampling, D]) for sampling in SAMPLINGS)
        tables.print_row(D, *cells)
    for sampling in SAMPLINGS:
        weights, _, objective = np.array([errors[sampling, D] for D in SIZES]).T
        slopes = [slope(SIZES, found + 1e-12) for found in (weights, objective)]
        print(f"\n{sampling}: the errors of weights and objective fall like D^{slopes[0]:.2f}, "
              f"D^{slopes[1]:.2f}.")  # fmt: skip
    return errors


def slope(x: Sequence[float], y: np.ndarray) -> float:
    """Slope of the regression line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def rule(X: np.ndarray, seeds: int) -> None:
    """D = ceil(4 log^3(2k)): the objective of the features' labels under the exact kernel, over
    that of the exact method. The bound of theorem 3 is 1 + 0.5."""
    print()
    tables.print_heading("k", "D", "exact objective of RFF's labels over that of KPK, mean, worst")
    for k in (2, 5, 10, 20, 40):
        gamma = 1 / (2 * 2 * X.var(axis=0).sum())
        K = rbf_kernel(X, gamma=gamma)
        exact = KernelPowerKMeans(k, gamma=gamma, random_state=0).fit(X).inertia_
        ratios = []
        for seed in range(seeds):
            labels = RFFKernelPowerKMeans(
                k, gamma=gamma, n_frequencies="paper", sampling="iid", random_state=seed
            ).fit_predict(X)
            ratios.append(kernel_objective(K, labels, k) / exact)
        D = math.ceil(4 * math.log(2 * k) ** 3)
        tables.print_row(k, D, f"{np.mean(ratios):.4f}, {max(ratios):.4f}")


def excess_risk(seeds: int, k: int = 5, s: float = -3.0) -> None:
    """Mean M_s on 20 000 fresh rows at centroids learned on n rows, above that of those learned on
    50 000: theorem 1 bounds it by O(sqrt(k^(3 - 2/s) / n))."""
    print()
    tables.print_heading("n", "excess risk", "times sqrt(n)")
    X, _ = make_blobs(90_000, 4, centers=k, cluster_std=3.0, random_state=0)
    fresh = X[70_000:]
    common = {
        "gamma": 0.01,
        "annealing": Annealing(start=s, end=s),
        "n_frequencies": 64,
        "sample": None,
    }

    def risk(rows: np.ndarray) -> float:
        model = RFFKernelPowerKMeans(k, random_state=0, **common)
        model.set_params(init=X[:k], tol=1e-6)
        model.fit(rows)
        phi = model.feature_map_.transform(fresh)
        return float(power_weights(squared_distances(phi, model.cluster_centers_), s)[1].mean())

    best = risk(X[:50_000])
    sizes, found = [100, 300, 1000, 3000, 10_000], []
    random = np.random.default_rng(0)
    for n in sizes:
        excess = np.mean([risk(X[random.choice(50_000, n)]) - best for _ in range(4 * seeds)])
        found.append(excess)
        tables.print_row(n, f"{excess:.2e}", f"{excess * math.sqrt(n):.2e}")
    rate = slope(sizes, np.maximum(found, 1e-12))
    print(f"\nThe excess risk falls like n^{rate:.2f}; the bound falls like n^-0.5.")


def plot(errors: dict[tuple[str, int], np.ndarray], path: Path) -> None:
    figure, axes = plots.subplots(1, 3, figsize=(12, 3.6))
    names = ("weights (root mean square)", "labels (1 - ARI)", "objective (relative)")
    for i, (axis, name) in enumerate(zip(axes, names)):
        for sampling in SAMPLINGS:
            axis.plot(SIZES, [errors[sampling, D][i] for D in SIZES], marker="o", label=sampling)
        first = errors["iid", SIZES[0]][i]
        axis.plot(SIZES, [first * math.sqrt(SIZES[0] / D) for D in SIZES], "k:", label="1/sqrt(D)")
        axis.set(xscale="log", yscale="log", xlabel="D", title=f"error of the {name}")
    axes[0].legend()
    plots.save(figure, path, dpi=110)


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    X, _ = load_digits(return_X_y=True)
    X = X[::3]
    errors = approximation(X, args.seeds)
    rule(X, args.seeds)
    excess_risk(args.seeds)
    if args.plot:
        plot(errors, args.plot)


if __name__ == "__main__":
    main()

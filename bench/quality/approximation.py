"""Measure how near random features are to the exact kernel.

    python -m bench.quality.approximation exact [--seeds N] [--plot FILE]
    python -m bench.quality.approximation kernel [--seeds N] [--frequencies D] [--columns d ...]

exact: errors of weights, labels and objective by the number of frequencies D. Then the objective of
    the features' labels under the exact kernel at the D of theorem 3, and the excess risk by the
    number of rows, which theorem 1 bounds.

kernel: the error of the rbf kernel by the sampling of the frequencies and the number of columns.
    Rows are Gaussian, gamma is 1 / (2 mean ||x - y||^2), errors are averaged over all pairs of rows
    and over seeds. Bias is the error of the mean over seeds, which averaging over features does not
    remove.
"""

from __future__ import annotations

import argparse
import itertools
import math
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
COLUMNS = (2, 4, 8, 16, 32, 50, 64, 128, 512, 2048)


def errors_of(X: np.ndarray, k: int, gamma: float, D: int, sampling: str, seed: int) -> np.ndarray:
    """Return errors after five steps from the same centroids.

    They are the errors of the weights (root mean square), the labels (1 - ARI) and the objective
    (relative).
    """
    rows, s = np.random.default_rng(seed).choice(len(X), k, replace=False), -3.0
    W = np.eye(len(X))[rows]
    exact = _steps(rbf_kernel(X, gamma=gamma), W, s)
    mapped = RandomFourierFeatures(D, gamma=gamma, sampling=sampling, random_state=seed)
    phi = mapped.fit_transform(X)
    near = _steps(phi @ phi.T, W, s)
    weights = np.sqrt(((near[0] - exact[0]) ** 2).mean())
    return np.array(
        [weights, 1 - adjusted_rand_score(exact[1], near[1]), abs(near[2] / exact[2] - 1)]
    )


def _steps(K: np.ndarray, W: np.ndarray, s: float, steps: int = 5) -> tuple:
    for _ in range(steps):
        Y = K @ W.T
        d = np.maximum(np.diag(K)[:, None] + np.einsum("kn,nk->k", W, Y) - 2 * Y, 1e-15)
        v, means, _ = power_weights(d, s)
        W = (v / v.sum(axis=0)).T
    return v, d.argmin(axis=1), means.sum()


def approximation(X: np.ndarray, seeds: int, k: int = 10) -> dict[tuple[str, int], np.ndarray]:
    """Return errors by the sampling of the frequencies and their number D."""
    gamma = 1 / (2 * 2 * X.var(axis=0).sum())
    errors = {}
    tables.print_heading("D", *(f"{s}: weights, 1 - ARI, objective" for s in SAMPLINGS))
    for D in SIZES:
        for sampling in SAMPLINGS:
            runs = [errors_of(X, k, gamma, D, sampling, seed) for seed in range(seeds)]
            errors[sampling, D] = np.mean(runs, axis=0)
        cells = (", ".join(f"{e:.1e}" for e in errors[sampling, D]) for sampling in SAMPLINGS)
        tables.print_row(D, *cells)
    for sampling in SAMPLINGS:
        weights, _, objective = np.array([errors[sampling, D] for D in SIZES]).T
        slopes = [slope(SIZES, values + 1e-12) for values in (weights, objective)]
        print(f"\n{sampling}: the errors of weights and objective fall like D^{slopes[0]:.2f}, "
              f"D^{slopes[1]:.2f}.")  # fmt: skip
    return errors


def slope(x: Sequence[float], y: np.ndarray) -> float:
    """Return the slope of the regression line through the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def rule(X: np.ndarray, seeds: int) -> None:
    """Print the exact objective of the features' labels over that of the exact method.

    D is ceil(4 log^3(2k)), and the bound of theorem 3 is 1 + 0.5.
    """
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
    """Print how much larger the mean M_s on 20 000 fresh rows is at centroids of n rows.

    It is compared with centroids of 50 000 rows. The bound of theorem 1 is
    O(sqrt(k^(3 - 2/s) / n)).
    """
    print()
    tables.print_heading("n", "excess risk", "times sqrt(n)")
    X, _ = make_blobs(90_000, 4, centers=k, cluster_std=3.0, random_state=0)
    fresh = X[70_000:]
    common = {"gamma": 0.01, "annealing": Annealing(start=s, end=s), "n_frequencies": 64}

    def risk(rows: np.ndarray) -> float:
        model = RFFKernelPowerKMeans(k, random_state=0, sample=None, **common)
        model.set_params(init=X[:k], tol=1e-6).fit(rows)
        phi = model.feature_map_.transform(fresh)
        return float(power_weights(squared_distances(phi, model.cluster_centers_), s)[1].mean())

    best = risk(X[:50_000])
    sizes, excesses = [100, 300, 1000, 3000, 10_000], []
    random = np.random.default_rng(0)
    for n in sizes:
        excess = np.mean([risk(X[random.choice(50_000, n)]) - best for _ in range(4 * seeds)])
        excesses.append(excess)
        tables.print_row(n, f"{excess:.2e}", f"{excess * math.sqrt(n):.2e}")
    rate = slope(sizes, np.maximum(excesses, 1e-12))
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


def exact(args: argparse.Namespace) -> None:
    """Print the convergence of random features to the exact kernel."""
    X = load_digits().data[::3]
    errors = approximation(X, args.seeds)
    rule(X, args.seeds)
    excess_risk(args.seeds)
    if args.plot:
        plot(errors, args.plot)


def kernel_errors(d: int, D: int, sampling: str, seeds: int, n: int = 150) -> list[float]:
    """Return the mean error of the kernel, and its bias."""
    X = np.random.default_rng(0).standard_normal((n, d))
    total, absolute = np.zeros((n, n)), 0.0
    for seed in range(seeds):
        mapped = RandomFourierFeatures(D, sampling=sampling, random_state=seed).fit(X)
        phi = mapped.transform(X)
        error = phi @ phi.T - rbf_kernel(X, gamma=mapped.gamma_)
        total += error / seeds
        absolute += float(np.abs(error).mean()) / seeds
    return [absolute, float(np.abs(total).mean())]


def kernel(args: argparse.Namespace) -> None:
    """Print the error of the kernel by the sampling of the frequencies."""
    tables.print_heading("d", *(name for s in SAMPLINGS for name in (s, "bias")))
    for d in args.columns:
        pairs = (kernel_errors(d, args.frequencies, s, args.seeds) for s in SAMPLINGS)
        tables.print_row(d, *tables.cells(itertools.chain(*pairs), ".4f"))


def main() -> None:
    commands.run(
        __doc__,
        exact=(exact, {"seeds": 5, "plot": Path}),
        kernel=(kernel, {"seeds": 40, "frequencies": 128, "columns": COLUMNS}),
    )


if __name__ == "__main__":
    main()

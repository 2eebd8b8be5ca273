"""Kernel error and seconds of a pass, for growing numbers of random features.

    python -m bench.speed.error_per_second [--rows N] [--repeats N] [--plot FILE]

For rows drawn from the digits, with noise, and for blobs: the mean |error| of the rbf kernel over
pairs and seeds, and the seconds of one pass (ours) or of one Lloyd iteration of scikit-learn on
stored RBFSampler features. Peers whose features do not fit in memory are timed on fewer rows, and
the time is scaled to all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import rbf_kernel

from bench import commands, plots, tables
from bench.internals import Fourier, centered, make_rows, ones
from bench.speed.adapters import k_means, passes
from bench.timing import median, pinned
from rffpk import RandomFourierFeatures, show_config
from rffpk.rows.passes import shifted_features

OURS = ("iid", "orthogonal", "structured")
FREQUENCIES = (32, 64, 128, 256, 512)
PEER_FEATURES = (64, 256, 1024, 4096)
ERROR_ROWS, K = 300, 10
PEER_NUMBERS = 2**28  # stored features of the peer, 1 GB in float32


def data_sets(n: int) -> dict[str, np.ndarray]:
    """Float32 rows, n of each."""
    random = np.random.default_rng(0)
    digits = load_digits().data
    noisy = digits[random.integers(len(digits), size=n)] + random.standard_normal((n, 64))
    blobs, _ = make_blobs(n, 50, centers=K, cluster_std=5.0, random_state=0)
    return {"digits": noisy.astype(np.float32), "blobs": blobs.astype(np.float32)}


def mean_error(X: np.ndarray, gamma: float, transform: Callable[[int], np.ndarray]) -> float:
    exact = rbf_kernel(X, gamma=gamma)
    approximations = (transform(seed) for seed in range(5))
    return float(np.mean([np.abs(phi @ phi.T - exact).mean() for phi in approximations]))


def ours(X: np.ndarray, gamma: float, sampling: str, D: int, repeats: int) -> tuple[float, float]:
    def mapped(seed: int) -> RandomFourierFeatures:
        return RandomFourierFeatures(D, gamma=gamma, sampling=sampling, random_state=seed)

    some = X[:ERROR_ROWS].astype(np.float64)
    error = mean_error(some, gamma, lambda seed: mapped(seed).fit_transform(some))
    fitted = mapped(0).fit(X[:ERROR_ROWS])
    threads = show_config()["threads"]
    rows = centered(
        make_rows([X], [Fourier(fitted.structure_ or fitted.frequencies_)], ones(len(X)), threads)
    )
    run = passes(rows, shifted_features(rows.take(np.arange(K))), -3.0)
    return error, median(partial(pinned, run, threads), repeats)


def peer(X: np.ndarray, gamma: float, F: int, repeats: int) -> tuple[float, float]:
    def mapped(seed: int) -> RBFSampler:
        return RBFSampler(gamma=gamma, n_components=F, random_state=seed)

    some = X[:ERROR_ROWS].astype(np.float64)
    error = mean_error(some, gamma, lambda seed: mapped(seed).fit_transform(some))
    n = min(len(X), PEER_NUMBERS // F)
    stored = mapped(0).fit_transform(X[:n]).astype(np.float32)
    run, threads = k_means(stored, stored[:K]), show_config()["threads"]
    lloyd = median(partial(pinned, run, threads), repeats)
    return error, lloyd * len(X) / n


def curves(X: np.ndarray, repeats: int) -> dict[str, list[tuple[int, float, float]]]:
    """(features, error, seconds) by method."""
    gamma = 1 / (2 * 2 * float(X.var(axis=0, dtype=np.float64).sum()))
    found = {
        name: [(2 * D, *ours(X, gamma, name, D, repeats)) for D in FREQUENCIES] for name in OURS
    }
    found["RBFSampler + Lloyd"] = [(F, *peer(X, gamma, F, repeats)) for F in PEER_FEATURES]
    return found


def peer_seconds(points: list[tuple[int, float, float]], error: float) -> float:
    """Seconds of the peer at the same error, by a regression line of log time on log error."""
    _, errors, seconds = np.log(np.array(points)).T
    slope, offset = np.polyfit(errors, seconds, 1)
    return float(np.exp(offset + slope * np.log(error)))


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    found = {name: curves(X, args.repeats) for name, X in data_sets(args.rows).items()}
    tables.print_heading(
        "data", "method", "features", "mean error", "seconds a pass", "peer at equal error / ours"
    )
    for data, methods in found.items():
        peer_points = methods["RBFSampler + Lloyd"]
        for name, points in methods.items():
            for F, error, seconds in points:
                is_peer = points is peer_points
                ratio = "" if is_peer else f"{peer_seconds(peer_points, error) / seconds:.1f}"
                tables.print_row(data, name, F, f"{error:.4f}", f"{seconds:.4f}", ratio)
    if args.plot:
        plot(found, args.plot)


def plot(found: dict[str, dict[str, list[tuple[int, float, float]]]], path: Path) -> None:
    figure, axes = plots.subplots(1, len(found), figsize=(9, 3.6), sharey=True)
    for axis, (data, methods) in zip(axes, found.items()):
        for name, points in methods.items():
            _, errors, seconds = zip(*points)
            axis.loglog(seconds, errors, "o-", label=name)
        axis.set(title=data, xlabel="seconds a pass")
    axes[0].set_ylabel("mean |kernel error|")
    axes[0].legend(fontsize=8)
    plots.save(figure, path, dpi=110)


if __name__ == "__main__":
    main()

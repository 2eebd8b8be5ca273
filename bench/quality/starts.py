"""Compare numbers of starts, and ways to start, by the objectives at the end.

    python -m bench.quality.starts kernels --data DIR [--seeds N] [--sets NAME ...]
    python -m bench.quality.starts merged --data DIR [--seeds N]

kernels: kernel power k-means with the default n_init and with 1, 3, 8 and 16. Objectives are over
    the best of twenty k-means++ runs with the same kernel, mean (worst) over the seeds. Seconds are
    the means of a default fit and of the twenty runs.

merged: default fits of PowerKMeans with many clusters, which begin at merged centroids. Beside them
    are the same swaps after one start from k-means++, and KMeans(n_init=1). Mean objective over
    that of the default, mean ARI with the classes, and mean CPU seconds.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler, normalize, scale

from bench import commands, tables
from bench.datasets import single_view
from bench.scores import k_means_objective
from bench.timing import cpu_timed, seconds
from rffpk import Annealing, KernelKMeans, KernelPowerKMeans, PowerKMeans

SETS = ("glioma", "lung_discrete", "yale", "seeds", "tr11", "binaryalphadigs", "coil20")
COUNTS = ("auto", 1, 3, 8, 16)

Problem = tuple[np.ndarray, np.ndarray, int]  # rows, classes, number of clusters


def kernels(args: argparse.Namespace) -> None:
    """Print the objectives of exact kernels by the number of starts."""
    counts = (f"n_init={c}" for c in COUNTS)
    tables.print_heading("set", "n", "k", *counts, "s, auto", "s, 20 runs")
    for name in args.sets:
        X, y = single_view(args.data, name)
        X, k = StandardScaler().fit_transform(X), len(np.unique(y))
        ratios: dict[int | str, list[float]] = {c: [] for c in COUNTS}
        times = []
        for seed in range(args.seeds):
            peer = KernelKMeans(k, n_init=20, random_state=seed)
            twenty = seconds(partial(peer.fit, X))
            models = {c: KernelPowerKMeans(k, n_init=c, random_state=seed) for c in COUNTS}
            took = {c: seconds(partial(model.fit, X)) for c, model in models.items()}
            times.append((took["auto"], twenty))
            for count, model in models.items():
                ratios[count].append(model.inertia_ / peer.inertia_)
        cells = [f"{np.mean(r):.4f} ({max(r):.4f})" for r in ratios.values()]
        tables.print_row(name, len(X), k, *cells, *tables.cells(np.mean(times, axis=0), ".2f"))


def directions(k: int, power: float, within: float, n: int = 15_000) -> Problem:
    """Draw unit rows around k directions in 384 columns, at a mean squared distance `within`.

    The sizes fall by a power of their rank.
    """
    random = np.random.default_rng(0)
    centers = normalize(random.standard_normal((k, 384), dtype=np.float32))
    size = np.arange(1.0, k + 1) ** -power
    y = random.choice(k, n, p=size / size.sum())
    spread = np.float32(np.sqrt(within / (1 - within) / 384))
    return normalize(centers[y] + spread * random.standard_normal((n, 384), dtype=np.float32)), y, k


def heavy_tailed(n: int = 15_000, d: int = 256, k: int = 300) -> Problem:
    """Draw clusters with tails of Student's t, of other scales in each column."""
    random = np.random.default_rng(0)
    y, falling = random.integers(k, size=n), np.arange(1.0, d + 1) ** -0.4
    centers, spread = random.standard_normal((k, d)) * falling, random.gamma(1, size=(k, d))
    X = centers[y] + 0.5 * (spread * falling)[y] * random.standard_t(3, size=(n, d))
    return X.astype(np.float32), y, k


def plane(k: int, n: int = 5000) -> Problem:
    random = np.random.default_rng(0)
    y = random.integers(k, size=n)
    X = random.uniform(-1, 1, (k, 2))[y] + 0.04 * random.standard_normal((n, 2))
    return X.astype(np.float32), y, k


def noise() -> Problem:
    rows = np.random.default_rng(0).standard_normal((10_000, 20), dtype=np.float32)
    return rows, np.zeros(len(rows), int), 200


def real(data: Path, name: str, k: int) -> Problem:
    X, y = single_view(data, name)
    return scale(X).astype(np.float32), y, k


UNEVEN = {
    "20 directions, Zipf, overlapping": partial(directions, 20, 1, 0.8),
    "50 directions, Zipf, overlapping": partial(directions, 50, 1, 0.75),
    "200 directions, Zipf": partial(directions, 200, 1, 0.3),
    "200 directions, Zipf, overlapping": partial(directions, 200, 1, 0.75),
    "200 equal directions": partial(directions, 200, 0, 0.3),
    "heavy tails, k = 300": heavy_tailed,
    "100 in the plane": partial(plane, 100),
    "noise, k = 200": noise,
}
REAL = {"letter": (26, 100), "pendigits": (200,), "shuttle": (50,)}


def merged(args: argparse.Namespace) -> None:
    """Print the objectives of many clusters by the way to start."""
    tables.print_heading("rows", "n", "k", "default", "k-means++ and swaps", "KMeans(n_init=1)")
    plain = Annealing(start=-1e9, swaps=20)  # one start from k-means++, not annealed
    made = {f"{n}, k = {k}": partial(real, args.data, n, k) for n in REAL for k in REAL[n]}
    for name, make in (UNEVEN | made).items():
        X, y, k = make()
        table = []
        for seed in range(args.seeds):
            for model in (
                PowerKMeans(k, random_state=seed),
                PowerKMeans(k, random_state=seed, annealing=plain),
                KMeans(k, n_init=1, random_state=seed),
            ):
                took, labels = cpu_timed(lambda model=model, X=X: model.fit(X).labels_)
                table.append((k_means_objective(X, labels), adjusted_rand_score(y, labels), took))
        means = np.mean(np.reshape(table, (args.seeds, 3, 3)), axis=0)
        cells = [f"{a / means[0, 0]:.4f}, {b:.3f}, {c:.2f} s" for a, b, c in means]
        tables.print_row(name, len(X), k, *cells)


def main() -> None:
    common = {"data": commands.NEEDS_DATA, "seeds": 5}
    commands.run(
        __doc__,
        kernels=(kernels, {**common, "sets": commands.Names(SETS)}),
        merged=(merged, common),
    )


if __name__ == "__main__":
    main()

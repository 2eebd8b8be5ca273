"""Measure whole fits for growing numbers of clusters, beside peers: seconds and objectives.

Float32 rows of 20 columns without clusters (sheet) and with clusters that overlap (mixture), and
with --data the letters and the colours of skin. --columns adds rows as wide as embeddings. Topics
are unit rows around topics of uneven sizes, at a mean squared distance of .24, and features are
random features of noisy digits. With --data noisy letter has columns of noise. Peers that are
missing are left out. Runs are resumable, and the fits of a problem alternate. The table has all
results of FILE. It has CPU seconds beside seconds of the clock, as other work on the machine
affects them less. Objectives of all but RFFKernelPowerKMeans are comparable.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize, scale
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from bench import commands, records, tables
from bench.datasets import mixture, single_view
from bench.peers import Fit, fit
from bench.scores import k_means_objective
from bench.timing import spent
from rffpk import Annealing, PowerKMeans, RFFKernelPowerKMeans

COLUMNS, LATENT = 20, 5
_WITHIN = 0.24  # mean squared distance of a row of `topics` from the center of its topic
CLUSTERS = (2, 10, 50, 100, 200, 500, 1000, 2000)


def sheet(n: int, k: int) -> np.ndarray:
    """Draw rows near a curved sheet, without clusters, in columns of unequal scale."""
    random = np.random.default_rng(0)
    at = random.standard_normal((n, LATENT)) @ random.standard_normal((LATENT, COLUMNS))
    X = np.sin(at) + 0.2 * random.standard_normal((n, COLUMNS))
    return (X * random.gamma(2, size=COLUMNS)).astype(np.float32)


def topics(columns: int, n: int, k: int) -> np.ndarray:
    """Draw unit rows around k topics of fewer themes; sizes fall by a power law."""
    random = np.random.default_rng(0)
    scale = np.arange(1, columns + 1, dtype=np.float32) ** -0.25

    def drawn(m: int) -> np.ndarray:
        return random.standard_normal((m, columns), dtype=np.float32) * scale

    themes = drawn(max(2, math.isqrt(k)))
    centers = normalize(themes[random.integers(len(themes), size=k)] + drawn(k))
    size = np.arange(1, k + 1) ** -0.7
    X = centers[random.choice(k, n, p=size / size.sum())]
    spread = math.sqrt(_WITHIN / (1 - _WITHIN) / float((scale**2).sum()))
    for rows in gen_batches(n, 1 << 15):
        X[rows] += spread * drawn(len(X[rows]))
    return normalize(X, copy=False)


def features(columns: int, n: int, k: int) -> np.ndarray:
    """Draw digits with noise, and return rectified random features of them."""
    random = np.random.default_rng(0)
    X = load_digits(return_X_y=True)[0].astype(np.float32) / 16
    weights = random.standard_normal((X.shape[1], columns), dtype=np.float32) / 3
    X = X[random.integers(len(X), size=n)]
    X += 0.1 * random.standard_normal(X.shape, dtype=np.float32)
    return np.maximum(X @ weights, 0)


def noisy_letter(data: Path, columns: int, n: int, k: int) -> np.ndarray:
    X = real(data, "letter", n, k)
    random = np.random.default_rng(0)
    noise = random.standard_normal((len(X), columns - X.shape[1]), dtype=np.float32)
    return np.hstack([X, 0.5 * noise])


def real(data: Path, name: str, n: int, k: int) -> np.ndarray:
    return scale(single_view(data, name)[0])[:n].astype(np.float32)


def small_sample(**parameters: Any) -> Fit:
    """Return fits with 20 rows a cluster in the sample."""
    return lambda X, k, seed: fit(PowerKMeans, sample=20 * k, **parameters)(X, k, seed)


def faiss(X: np.ndarray, k: int, seed: int, **parameters: Any) -> np.ndarray:
    from faiss import Kmeans

    peer = Kmeans(X.shape[1], k, seed=seed, **parameters)
    peer.train(X)
    return np.asarray(peer.index.search(X, 1)[1][:, 0])


def super_k_means(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from superkmeans import SuperKMeans

    peer = SuperKMeans(k, X.shape[1])
    return np.asarray(peer.assign(X, peer.train(X)))


METHODS: dict[str, Fit] = {
    "PowerKMeans": fit(PowerKMeans),
    "PowerKMeans, plain": fit(PowerKMeans, annealing=None, tol=1e-2),
    "PowerKMeans, small sample": small_sample(),
    "PowerKMeans, small sample, one swap": small_sample(annealing=Annealing(swaps=1), tol=1e-2),
    "PowerKMeans, small sample, no swaps": small_sample(annealing=Annealing(swaps=0), tol=0.1),
    "PowerKMeans, small sample, plain": small_sample(annealing=None, tol=0.1),
    "KMeans": fit(KMeans, n_init=1),
    "MiniBatchKMeans": fit(MiniBatchKMeans, n_init=1),
    "Faiss, 25 iterations": partial(faiss, niter=25, max_points_per_centroid=1 << 30),
    "Faiss, a sample": faiss,
    "BisectingKMeans": fit(BisectingKMeans),
    "SuperKMeans": super_k_means,
    "RFFKernelPowerKMeans": fit(RFFKernelPowerKMeans),
}
DEFAULTS = ["PowerKMeans", "KMeans", "MiniBatchKMeans", "Faiss, 25 iterations"]


def sources(args: argparse.Namespace) -> dict[str, Callable[[int, int], np.ndarray]]:
    """Return functions of n and k that make rows, by name."""
    makers: dict[str, Any] = {"sheet": sheet, "mixture": lambda n, k: mixture(n, 1.4, k, COLUMNS)}
    if args.columns:
        makers |= {"topics": partial(topics, args.columns)}
        makers |= {"features": partial(features, args.columns)}
    if args.data and args.columns:
        makers |= {"noisy letter": partial(noisy_letter, args.data, args.columns)}
    if args.data:
        makers |= {name: partial(real, args.data, name) for name in ("letter", "skin")}
    return makers


def measured(method: str, X: np.ndarray, k: int, seed: int, threads: int) -> records.Record:
    with threadpool_limits(threads):
        (wall, cpu), labels = spent(partial(METHODS[method], X, k, seed))
    return {"seconds": wall, "cpu": cpu, "objective": k_means_objective(X, labels)}


def run(args: argparse.Namespace) -> None:
    makers = sources(args)
    for name, k in product(args.only or makers, args.clusters):
        X = makers[name](args.rows, k)
        for seed, method in product(range(args.seeds), args.methods):
            rows = f"{name} {len(X)} x {X.shape[1]}"
            key = {"rows": rows, "k": k, "method": method, "seed": seed}
            records.add(args.out, key, measured, method, X, k, seed, args.threads)


def table_of(path: Path) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Return median seconds, median CPU seconds, least and mean objective of each method."""
    runs: dict[tuple[str, int], dict[str, list[list[float]]]] = {}
    for r in records.read(path):
        of_method = runs.setdefault((r["rows"], r["k"]), {}).setdefault(r["method"], [])
        of_method.append([r["seconds"], r["cpu"], r["objective"]])

    def summary(values: list[list[float]]) -> np.ndarray:
        cost = np.array(values)[:, 2]
        return np.array([*np.median(values, axis=0)[:2], cost.min(), cost.mean()])

    return {
        key: {method: summary(values) for method, values in methods.items()}
        for key, methods in sorted(runs.items())
    }


def report(path: Path) -> None:
    """Print seconds, CPU seconds and objectives of all methods."""
    table = table_of(path)
    methods = [m for m in METHODS if any(m in row for row in table.values())]
    tables.print_heading("rows", "k", *(f"{m}: s (CPU s), objective" for m in methods))
    for (rows, k), row in table.items():
        cells = []
        for m in methods:
            cell = f"{row[m][0]:.2f} ({row[m][1]:.2f})" if m in row else ""
            if m in row and "PowerKMeans" in row and m != "RFFKernelPowerKMeans":
                cell += f", {row[m][2] / row['PowerKMeans'][3]:.4f}"
            cells.append(cell)
        tables.print_row(rows, k, *cells)
    print("\nObjectives are of the best run over the mean of PowerKMeans.")


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.DATA, out=commands.OUT, rows=100_000, clusters=CLUSTERS,
        only={"nargs": "+"}, columns=int, threads=int, methods=commands.Names(METHODS, DEFAULTS),
        seeds=3,
    )  # fmt: skip
    run(args)
    report(args.out)


if __name__ == "__main__":
    main()

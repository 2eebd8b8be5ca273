"""Compare objectives and seconds of annealed clustering with twenty k-means++ runs.

Without --data the only real set is digits. The table has all results of FILE. The problems were
fixed before any schedule was tried on them. Both sides cluster the same stored random Fourier
features (float32) with the number of classes as k. The objective is the weighted sum of squared
distances to the means of the labels, in float64.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.preprocessing import scale

from bench import commands, records, tables
from bench.datasets import single_view
from bench.scores import k_means_objective
from bench.timing import timed
from rffpk import Annealing, PowerKMeans, RandomFourierFeatures
from rffpk.spaces.fourier import default_n_frequencies

# file, key of the view, whether columns are standardised (where their units differ)
REAL = [
    ("glioma", "X", False), ("lung_discrete", "X", False), ("yale", "X", False),
    ("seeds", "X", True), ("msrc_v1", "X1", False), ("tr11", "X", False),
    ("bbcsport", "X0", False), ("prokaryotic", "X0", False), ("binaryalphadigs", "X", False),
    ("coil20", "X", False), ("leaves100", "X0", False), ("mfeat", "X0", False),
    ("landuse21", "X1", False), ("pendigits", "X", False), ("letter", "X", False),
    ("shuttle", "X", True), ("skin", "X", False), ("kddcup99_10pct", "X", True),
]  # fmt: skip
# dimensions, clusters; standard deviation 1, means in [-5, 5], so that clusters overlap less in
# more dimensions
BLOBS = [(2, 5), (2, 25), (2, 100), (8, 25), (8, 100), (64, 10), (64, 50), (256, 5)]
KMEANS_RUNS = 20

Problem = tuple[np.ndarray, int]  # rows and the number of clusters


def rings(n: int = 3000) -> Problem:
    """Draw ten concentric circles in the plane."""
    random = np.random.default_rng(0)
    angle, radius = random.uniform(0, 2 * np.pi, n), 1.0 + np.arange(n) % 10
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.1 * random.standard_normal((n, 2)), 10


def directions(k: int = 50) -> Problem:
    """Draw 20 rows about each of k directions in 20 dimensions, by von Mises and Fisher."""
    random = np.random.default_rng(0)
    means = random.standard_normal((k, 20))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    draws = [stats.vonmises_fisher(mu, 30).rvs(20, random_state=random) for mu in means]
    return np.concatenate(draws), k


def blobs(d: int, k: int) -> Problem:
    n = max(2000, 50 * k)
    return make_blobs(n, d, centers=k, cluster_std=1.0, center_box=(-5, 5), random_state=0)[0], k


def real(data: Path, name: str, key: str, standard: bool) -> Problem:
    X, y = single_view(data, name, key)
    return scale(X) if standard else X, len(np.unique(y))


def problems(data: Path | None) -> dict[str, Callable[[], Problem]]:
    """Return functions that return rows and the number of clusters, by name."""
    made: dict[str, Callable[[], Problem]] = {
        **{f"blobs {d}-d {k}": partial(blobs, d, k) for d, k in BLOBS},
        "rings 10": rings,
        "directions 50": directions,
        "digits": lambda: (load_digits().data, 10),
    }
    if data:
        made |= {name: partial(real, data, name, *view) for name, *view in REAL}
    return made


def features(X: np.ndarray, k: int) -> np.ndarray:
    """Return random Fourier features with the defaults of the estimator."""
    D = max(64, default_n_frequencies(k))
    return RandomFourierFeatures(D, random_state=0).fit(X).transform(X.astype(np.float32))


def papers(k: int, random_state: int, start: float, passes: int) -> PowerKMeans:
    """Return a model with the schedule of a paper."""
    schedule = Annealing(start=start, factor=1.04, passes=passes)
    return PowerKMeans(k, annealing=schedule, sample=None, n_init=1, random_state=random_state)


METHODS: dict[str, Callable[..., Any]] = {
    "k-means++": partial(KMeans, n_init=1),
    "default": PowerKMeans,
    "all rows": partial(PowerKMeans, sample=None),
    "from s=-1, 1.04 every 5": partial(papers, start=-1.0, passes=5),
    "from s=-5, 1.04 every 3": partial(papers, start=-5.0, passes=3),
}
SLOW_ROWS = 50_000  # the papers' schedules run on fewer rows


def scored(method: str, phi: np.ndarray, k: int, seeds: int) -> records.Record:
    runs = range(KMEANS_RUNS if method == "k-means++" else seeds)
    models = [METHODS[method](k, random_state=seed) for seed in runs]
    seconds = [timed(partial(model.fit, phi))[0] for model in models]
    objectives = [k_means_objective(phi, model.labels_) for model in models]
    size = {"n": len(phi), "F": phi.shape[1], "k": k}
    return size | {"objectives": objectives, "seconds": seconds}


def run(args: argparse.Namespace) -> None:
    for name, make in problems(args.data).items():
        if args.only and name not in args.only:
            continue
        X, k = make()
        phi = features(X, k)
        for method in args.methods:
            if "every" not in method or len(phi) <= SLOW_ROWS:
                key = {"problem": name, "method": method}
                records.add(args.out, key, scored, method, phi, k, args.seeds)


def report(path: Path) -> None:
    """Print the objectives of all methods over the best of the k-means++ runs."""
    table = {name: row for (name,), row in records.by_method(path, "problem").items()}
    methods = [m for m in METHODS if m != "k-means++" and any(m in row for row in table.values())]
    ours = (f"{m}: mean (worst)" for m in methods)
    times = "time of default / 20 k-means++"
    tables.print_heading("problem", "n", "F", "k", "k-means++: mean / best", *ours, times)
    for name, row in table.items():
        reference = row["k-means++"]
        best = min(reference["objectives"])
        over = {m: np.array(record["objectives"]) / best for m, record in row.items()}
        cells = (f"{over[m].mean():.4f} ({over[m].max():.4f})" if m in row else "" for m in methods)
        size = (reference[key] for key in ("n", "F", "k"))
        ratio = np.mean(row["default"]["seconds"]) / sum(reference["seconds"])
        tables.print_row(name, *size, f"{over['k-means++'].mean():.4f}", *cells, f"{ratio:.3f}")


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.DATA, out=commands.OUT, only={"nargs": "+"},
        methods=commands.Names(METHODS), seeds=5,
    )  # fmt: skip
    run(args)
    report(args.out)


if __name__ == "__main__":
    main()

"""Compare objectives and seconds of annealed clustering with twenty k-means++ runs.

    python -m bench.quality.objectives run --out FILE [--data DIR]     # resumable
    python -m bench.quality.objectives report FILE                     # Markdown

Results that FILE holds are not computed again; without --data the only real set is digits. The
problems were fixed before any schedule was tried on them. Both sides cluster the same stored
random Fourier features (float32) with the number of classes as k. The objective is the weighted sum
of squared distances to the means of the labels, in float64.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.preprocessing import scale

from bench import commands, records, tables
from bench.datasets import n_classes, single_view
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
KMEANS_RUNS, SEEDS = 20, 5


def rings(n: int = 3000) -> np.ndarray:
    """Draw ten concentric circles in the plane."""
    random = np.random.default_rng(0)
    angle, radius = random.uniform(0, 2 * np.pi, n), 1.0 + np.arange(n) % 10
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.1 * random.standard_normal((n, 2))


def directions(k: int = 50) -> np.ndarray:
    """Draw 20 rows about each of k directions in 20 dimensions, by von Mises and Fisher."""
    random = np.random.default_rng(0)
    means = random.standard_normal((k, 20))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    draws = [stats.vonmises_fisher(mu, 30).rvs(20, random_state=random) for mu in means]
    return np.concatenate(draws)


def blobs(d: int, k: int) -> np.ndarray:
    n = max(2000, 50 * k)
    return make_blobs(n, d, centers=k, cluster_std=1.0, center_box=(-5, 5), random_state=0)[0]


def load(data: Path, name: str, key: str, standard: bool) -> np.ndarray:
    X, _ = single_view(data, name, key)
    return scale(X) if standard else X


def problems(data: Path | None) -> Iterator[tuple[str, Callable[[], np.ndarray], int]]:
    """Yield names, functions that return rows, and numbers of clusters."""
    for d, k in BLOBS:
        yield f"blobs {d}-d {k}", partial(blobs, d, k), k
    yield "rings 10", rings, 10
    yield "directions 50", directions, 50
    yield "digits", lambda: load_digits().data, 10
    if data:
        for name, key, standard in REAL:
            yield name, partial(load, data, name, key, standard), n_classes(data, name)


def features(X: np.ndarray, k: int) -> np.ndarray:
    """Return random Fourier features with the defaults of the estimator."""
    D = max(64, default_n_frequencies(k))
    mapped = RandomFourierFeatures(D, random_state=0).fit(X)
    return mapped.transform(X.astype(np.float32))


def papers(k: int, seed: int, start: float, passes: int) -> PowerKMeans:
    """Return a model with the schedule of a paper."""
    schedule = Annealing(start=start, factor=1.04, passes=passes)
    return PowerKMeans(k, annealing=schedule, sample=None, n_init=1, random_state=seed)


METHODS: dict[str, Callable[[int, int], Any]] = {
    "k-means++": lambda k, seed: KMeans(k, n_init=1, random_state=seed),
    "default": lambda k, seed: PowerKMeans(k, random_state=seed),
    "all rows": lambda k, seed: PowerKMeans(k, sample=None, random_state=seed),
    "from s=-1, 1.04 every 5": partial(papers, start=-1.0, passes=5),
    "from s=-5, 1.04 every 3": partial(papers, start=-5.0, passes=3),
}
SLOW_ROWS = 50_000  # the papers' schedules run on fewer rows


def run(args: argparse.Namespace) -> None:
    """Fit all methods, and append the results to a file."""
    done = records.known(args.out, "problem", "method")
    for name, rows, k in problems(args.data):
        if args.only and name not in args.only:
            continue
        phi = None
        for method in args.methods:
            if (name, method) in done:
                continue
            phi = features(rows(), k) if phi is None else phi
            if "every" in method and len(phi) > SLOW_ROWS:
                continue
            models = [
                METHODS[method](k, seed)
                for seed in range(KMEANS_RUNS if method == "k-means++" else args.seeds)
            ]
            seconds = [timed(partial(model.fit, phi))[0] for model in models]
            objectives = [k_means_objective(phi, model.labels_) for model in models]
            key = {"problem": name, "method": method, "n": len(phi), "F": phi.shape[1], "k": k}
            records.append(args.out, {**key, "objectives": objectives, "seconds": seconds})
            print(name, method, f"{sum(seconds):.2f} s", flush=True)


def report(args: argparse.Namespace) -> None:
    """Print the objectives of all methods over the best of the k-means++ runs."""
    table = {name: row for (name,), row in records.by_method(args.results, "problem").items()}
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
    summarise(table)


def summarise(table: dict[str, dict[str, Any]]) -> None:
    """Print ratios to the best of 20 k-means++ runs, and the time on large sets."""
    ratio = {
        name: np.mean(row["default"]["objectives"]) / min(row["k-means++"]["objectives"])
        for name, row in table.items()
    }
    real = {name for name, _, _ in REAL} | {"digits"}
    print()
    for kind, names in (("real", ratio.keys() & real), ("generated", ratio.keys() - real)):
        values = np.array([ratio[name] for name in names])
        within, better = (values <= 1.001).sum(), (values < 0.999).sum()
        print(f"{kind}: {within} of {len(names)} within 1.001, {better} below 0.999, "
              f"worst mean {max(values, default=np.nan):.4f}")  # fmt: skip
    large = [row for row in table.values() if row["k-means++"]["n"] >= 5000]
    ours = sum(np.mean(row["default"]["seconds"]) for row in large)
    theirs = sum(sum(row["k-means++"]["seconds"]) for row in large)
    if large:
        print(f"n >= 5000: {ours:.2f} s against {theirs:.2f} s, {ours / theirs:.3f}")


def main() -> None:
    measured = {
        "data": commands.DATA, "out": commands.OUT, "only": {"nargs": "+"},
        "methods": commands.Names(METHODS), "seeds": SEEDS,
    }  # fmt: skip
    commands.run(__doc__, run=(run, measured), report=(report, {"results": True}))


if __name__ == "__main__":
    main()

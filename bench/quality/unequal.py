"""Score labels of separated clusters of unequal size, beside other methods, k known.

Thirteen kinds of rows. In 2 to 50 columns there are 2 to 50 blobs ten standard deviations apart,
whose sizes follow Zipf's law, or a quarter of which weighs 3 % of the rest, with 12 rows at least.
The rest are two moons with a dense third group of 2 %, a ring around 3 %, and long bands of
50 : 5 : 1. Prints the mean ARI, the mean recall of the clusters under the best matching, and the
least ARI of each method: of all rows, and of each kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.cluster import HDBSCAN
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from bench import commands, peers, records, tables
from bench.datasets import Labelled
from bench.timing import cpu_timed

_APART = 10  # standard deviations
_ZIPF = 1.2
_RARE, _RARE_WEIGHT = 0.25, 0.03
_LEAST = 12  # rows of a cluster


def zipf(k: int) -> np.ndarray:
    return 1 / np.arange(1, k + 1) ** _ZIPF


def rare(k: int) -> np.ndarray:
    weights = np.ones(k)
    weights[: max(1, round(_RARE * k))] = _RARE_WEIGHT
    return weights


def drawn(n: int, weights: np.ndarray) -> np.ndarray:
    """Return the cluster of each of about n rows, in proportion to the weights."""
    sizes = np.maximum(np.round(n * weights / weights.sum()).astype(int), _LEAST)
    return np.repeat(np.arange(len(weights)), sizes)


def blobs(k: int, d: int, sizes: Callable[[int], np.ndarray], n: int, random: Any) -> Labelled:
    y = drawn(n, sizes(k))
    centers = random.normal(size=(k, d))
    centers *= _APART / pdist(centers).min()
    return centers[y] + random.normal(size=(len(y), d)), y


def moons(n: int, random: Any) -> Labelled:
    dense_rows = n // 50
    X, y = make_moons(n - dense_rows, noise=0.05, random_state=random.integers(2**31))
    dense = [0.5, 1.6] + 0.03 * random.normal(size=(dense_rows, 2))
    return np.vstack([X, dense]), np.r_[y, np.full(dense_rows, 2)]


def ring(n: int, random: Any) -> Labelled:
    inside = 3 * n // 100
    y = np.repeat([0, 1], [n - inside, inside])
    turn = random.uniform(0, 2 * np.pi, n)
    X = np.where(y, 0, [np.cos(turn), np.sin(turn)]).T
    return X + 0.05 * random.normal(size=(n, 2)), y


def bands(n: int, random: Any) -> Labelled:
    y = drawn(n, np.array([50, 5, 1]))
    along, across = random.uniform(-1, 1, len(y)), 0.02 * random.normal(size=len(y))
    X = np.column_stack([along, 0.3 * y + across])
    return X, y


KINDS: dict[str, Callable[[int, Any], Labelled]] = {
    **{
        f"{k} blobs, {d} columns, {sizes.__name__}": partial(blobs, k, d, sizes)
        for k, d, sizes in (
            (2, 2, rare), (2, 10, rare), (3, 2, zipf), (5, 5, zipf), (8, 2, rare),
            (10, 10, zipf), (20, 10, rare), (20, 50, zipf), (50, 5, rare), (50, 20, zipf),
        )
    },
    "moons and a dense group": moons,
    "ring around a group": ring,
    "bands": bands,
}  # fmt: skip

METHODS = {
    **{name: peers.METHODS[name] for name in ("DiffusionPowerKMeans", "PowerKMeans", "KMeans")},
    "HDBSCAN": lambda k, random_state: HDBSCAN(min_cluster_size=10, copy=True),
    "SpectralClustering": peers.METHODS["SpectralClustering"],
}
_MOST_ROWS = {"HDBSCAN": 100_000, "SpectralClustering": 10_000}


def recall(y: np.ndarray, labels: np.ndarray) -> float:
    """Return the mean over clusters of the part of the rows that one label has, each label once."""
    names = np.unique(labels, return_inverse=True)[1]
    size = max(y.max(), names.max()) + 1
    shared = confusion_matrix(y, names, labels=np.arange(size))
    shares = shared / np.maximum(shared.sum(axis=1, keepdims=True), 1)
    return float(shares[linear_sum_assignment(-shares)].sum() / len(np.unique(y)))


def scored(method: str, X: np.ndarray, y: np.ndarray, seed: int) -> records.Record:
    model = METHODS[method](len(np.unique(y)), random_state=seed)
    seconds, labels = cpu_timed(partial(model.fit_predict, X))
    ari = adjusted_rand_score(y, labels)
    return {"ARI": ari, "recall": recall(y, labels), "CPU seconds": seconds}


def run(args: argparse.Namespace) -> None:
    for n, seed, (i, kind) in product(args.sizes, range(args.seeds), enumerate(KINDS)):
        X, y = KINDS[kind](n, np.random.default_rng([seed, i]))
        for method in args.methods:
            if n <= _MOST_ROWS.get(method, n):
                key = {"kind": kind, "n": n, "seed": seed, "method": method}
                records.add(args.out, key, scored, method, X, y, seed)


def report(args: argparse.Namespace) -> None:
    """Print the mean ARI, the mean recall and the least ARI."""
    runs = records.read(args.out)
    parts = {f"n = {n}": [run for run in runs if run["n"] == n] for n in sorted(args.sizes)}
    parts |= {kind: [run for run in runs if run["kind"] == kind] for kind in KINDS}
    tables.print_heading("rows", *args.methods)
    for title, part in parts.items():
        cells = []
        for method in args.methods:
            scores = [(run["ARI"], run["recall"]) for run in part if run["method"] == method]
            numbers = (*np.mean(scores, axis=0), min(scores)[0]) if scores else ()
            cells.append(" ".join(tables.cells(numbers)))
        tables.print_row(title, *cells)


def main() -> None:
    args = commands.arguments(
        __doc__, out=commands.OUT, seeds=20, sizes=(3000,), methods=commands.Names(METHODS)
    )
    run(args)
    report(args)


if __name__ == "__main__":
    main()

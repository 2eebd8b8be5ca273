"""Labels of separated clusters of unequal size, beside other methods, the number of clusters known.

    python -m bench.quality.unequal --out FILE               # resumable

Thirteen kinds of rows: blobs ten standard deviations apart, from 2 to 50 in 2 to 50 columns, whose
sizes follow Zipf's law or of which a quarter weighs 3 % of the others, each of 12 rows at least;
two moons with a dense third group of 2 %; a ring around 3 %; long bands of 50 : 5 : 1. Prints as
Markdown the mean ARI, the mean recall of the clusters under the best matching, and the least ARI of
each method: of all rows, of each kind, and of seeds of even and of odd number.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from bench import commands, records, tables
from rffpk import DiffusionPowerKMeans, PowerKMeans

Rows = tuple[np.ndarray, np.ndarray]

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
    """The cluster of each of about n rows, in proportion to the weights."""
    sizes = np.maximum(np.round(n * weights / weights.sum()).astype(int), _LEAST)
    return np.repeat(np.arange(len(weights)), sizes)


def blobs(k: int, d: int, sizes: Callable[[int], np.ndarray], n: int, random: Any) -> Rows:
    y = drawn(n, sizes(k))
    centers = random.normal(size=(k, d))
    centers *= _APART / pdist(centers).min()
    return centers[y] + random.normal(size=(len(y), d)), y


def moons(n: int, random: Any) -> Rows:
    few = n // 50
    X, y = make_moons(n - few, noise=0.05, random_state=random.integers(2**31))
    dense = [0.5, 1.6] + 0.03 * random.normal(size=(few, 2))
    return np.vstack([X, dense]), np.r_[y, np.full(few, 2)]


def ring(n: int, random: Any) -> Rows:
    few = 3 * n // 100
    y = np.repeat([0, 1], [n - few, few])
    turn = random.uniform(0, 2 * np.pi, n)
    X = np.where(y, 0, [np.cos(turn), np.sin(turn)]).T
    return X + 0.05 * random.normal(size=(n, 2)), y


def bands(n: int, random: Any) -> Rows:
    y = drawn(n, np.array([50, 5, 1]))
    along, across = random.uniform(-1, 1, len(y)), 0.02 * random.normal(size=len(y))
    X = np.column_stack([along, 0.3 * y + across])
    return X, y


KINDS: dict[str, Callable[[int, Any], Rows]] = {
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

METHODS: dict[str, Callable[[int, int], Any]] = {
    "DiffusionPowerKMeans": lambda k, seed: DiffusionPowerKMeans(k, random_state=seed),
    "PowerKMeans": lambda k, seed: PowerKMeans(k, random_state=seed),
    "KMeans(n_init=10)": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "HDBSCAN": lambda k, seed: HDBSCAN(min_cluster_size=10, copy=True),
    "SpectralClustering": lambda k, seed: SpectralClustering(
        k, affinity="nearest_neighbors", random_state=seed
    ),
}
_MOST_ROWS = {"HDBSCAN": 100_000, "SpectralClustering": 10_000}


def problems(n: int, seeds: int) -> Iterator[tuple[str, int, Rows]]:
    """Kind, seed, rows and their clusters."""
    for seed in range(seeds):
        for number, (kind, make) in enumerate(KINDS.items()):
            yield kind, seed, make(n, np.random.default_rng([seed, number]))


def recall(y: np.ndarray, labels: np.ndarray) -> float:
    """The mean over clusters of the part of the rows that one label has, each label once."""
    names = np.unique(labels, return_inverse=True)[1]
    size = max(y.max(), names.max()) + 1
    shared = confusion_matrix(y, names, labels=np.arange(size))
    shares = shared / np.maximum(shared.sum(axis=1, keepdims=True), 1)
    return float(shares[linear_sum_assignment(-shares)].sum() / len(np.unique(y)))


def run(args: argparse.Namespace) -> None:
    done = {tuple(record[key] for key in ("kind", "n", "seed", "method"))
            for record in records.resume(args.out)}  # fmt: skip
    for n in args.sizes:
        for kind, seed, (X, y) in problems(n, args.seeds):
            for method in args.methods:
                if (kind, n, seed, method) in done or n > _MOST_ROWS.get(method, n):
                    continue
                begin = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    labels = METHODS[method](len(np.unique(y)), seed).fit_predict(X)
                record = {
                    "kind": kind, "n": n, "seed": seed, "method": method,
                    "ARI": adjusted_rand_score(y, labels), "recall": recall(y, labels),
                    "CPU seconds": time.process_time() - begin,
                }  # fmt: skip
                records.append(args.out, record)
                print(*record.values(), file=sys.stderr, flush=True)


def report(args: argparse.Namespace) -> None:
    found = [record for record in records.read(args.out) if record["method"] in args.methods]
    tables.print_heading("rows", *args.methods)
    parts = [
        *((f"n = {n}", lambda each, n=n: each["n"] == n) for n in sorted(args.sizes)),
        *((kind, lambda each, kind=kind: each["kind"] == kind) for kind in KINDS),
        ("even seeds", lambda each: each["seed"] % 2 == 0),
        ("odd seeds", lambda each: each["seed"] % 2 == 1),
    ]
    for title, is_in in parts:
        tables.print_row(title, *(summary(found, method, is_in) for method in args.methods))


def summary(found: list[records.Record], method: str, is_in: Callable[[Any], bool]) -> str:
    """Mean ARI, mean recall, least ARI."""
    own = [each for each in found if each["method"] == method and is_in(each)]
    if not own:
        return ""
    scores = np.array([[each["ARI"], each["recall"]] for each in own])
    return " ".join(f"{x:.3f}" for x in (*scores.mean(axis=0), scores[:, 0].min()))


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="results, as lines of JSON")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3000])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    args: Any = parser.parse_args()
    run(args)
    report(args)


if __name__ == "__main__":
    main()

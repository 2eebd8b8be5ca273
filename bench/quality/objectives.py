"""Objectives and seconds of annealed clustering against twenty k-means++ runs of scikit-learn.

    python -m bench.quality.objectives run --out FILE [--data DIR]     # resumable
    python -m bench.quality.objectives report FILE                     # Markdown

Results that FILE holds are not computed again; without --data the only real set is digits. The
problems were fixed before any schedule was tried on them. Both sides cluster the same stored
random Fourier features (float32) with the number of classes as k; the objective is the weighted
sum of squared distances to the means of the labels, in float64.
"""

from __future__ import annotations

import argparse
import warnings
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
    ("glioma", "X", False),
    ("lung_discrete", "X", False),
    ("yale", "X", False),
    ("seeds", "X", True),
    ("msrc_v1", "X1", False),
    ("tr11", "X", False),
    ("bbcsport", "X0", False),
    ("prokaryotic", "X0", False),
    ("binaryalphadigs", "X", False),
    ("coil20", "X", False),
    ("leaves100", "X0", False),
    ("mfeat", "X0", False),
    ("landuse21", "X1", False),
    ("pendigits", "X", False),
    ("letter", "X", False),
    ("shuttle", "X", True),
    ("skin", "X", False),
    ("kddcup99_10pct", "X", True),
]
# dimensions, clusters; standard deviation 1, means in [-5, 5], so that clusters overlap less in
# more dimensions
BLOBS = [(2, 5), (2, 25), (2, 100), (8, 25), (8, 100), (64, 10), (64, 50), (256, 5)]
KMEANS_RUNS, SEEDS = 20, 5


def rings(n: int = 3000) -> np.ndarray:
    """Ten concentric circles in the plane."""
    random = np.random.default_rng(0)
    angle, radius = random.uniform(0, 2 * np.pi, n), 1.0 + np.arange(n) % 10
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.1 * random.standard_normal((n, 2))


def directions(k: int = 50) -> np.ndarray:
    """The von Mises-Fisher simulation: 20 rows about each of k directions in 20 dimensions."""
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
    """(name, rows, clusters); without `data` the only real set is digits."""
    for d, k in BLOBS:
        yield f"blobs {d}-d {k}", partial(blobs, d, k), k
    yield "rings 10", rings, 10
    yield "directions 50", directions, 50
    yield "digits", lambda: load_digits().data, 10
    if data:
        for name, key, standard in REAL:
            yield name, partial(load, data, name, key, standard), n_classes(data, name)


def features(X: np.ndarray, k: int) -> np.ndarray:
    """Random Fourier features with the defaults of the estimator, one draw for all methods."""
    D = max(64, default_n_frequencies(k))
    mapped = RandomFourierFeatures(D, random_state=0).fit(X)
    return mapped.transform(X.astype(np.float32))


Method = Callable[[int, int], Any]
METHODS: dict[str, Method] = {
    "k-means++": lambda k, seed: KMeans(k, n_init=1, random_state=seed),
    "default": lambda k, seed: PowerKMeans(k, random_state=seed),
    "all rows": lambda k, seed: PowerKMeans(k, sample=None, random_state=seed),
    "from s=-1, 1.04 every 5": lambda k, seed: PowerKMeans(
        k,
        annealing=Annealing(start=-1.0, factor=1.04, passes=5),
        sample=None,
        n_init=1,
        random_state=seed,
    ),
    "from s=-5, 1.04 every 3": lambda k, seed: PowerKMeans(
        k,
        annealing=Annealing(start=-5.0, factor=1.04, passes=3),
        sample=None,
        n_init=1,
        random_state=seed,
    ),
}
SLOW_ROWS = 50_000  # the papers' schedules are run on fewer rows than these


def fit(method: Method, phi: np.ndarray, k: int, seed: int) -> tuple[float, float]:
    """Objective and seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spent, model = timed(partial(method(k, seed).fit, phi))
    return k_means_objective(phi, model.labels_), spent


def run(args: argparse.Namespace) -> None:
    done = {(record["problem"], record["method"]) for record in records.resume(args.out)}
    for name, rows, k in problems(args.data):
        if args.only and name not in args.only:
            continue
        phi = None
        for label in args.methods:
            if (name, label) in done:
                continue
            phi = features(rows(), k) if phi is None else phi
            if "every" in label and len(phi) > SLOW_ROWS:
                continue
            seeds = KMEANS_RUNS if label == "k-means++" else args.seeds
            pairs = [fit(METHODS[label], phi, k, seed) for seed in range(seeds)]
            record = {
                "problem": name,
                "method": label,
                "n": len(phi),
                "F": phi.shape[1],
                "k": k,
                "objectives": [value for value, _ in pairs],
                "seconds": [seconds for _, seconds in pairs],
            }
            records.append(args.out, record)
            print(name, label, f"{sum(record['seconds']):.2f} s", flush=True)


def report(args: argparse.Namespace) -> None:
    table = {name: row for (name,), row in records.by_method(args.results, "problem").items()}
    methods = [m for m in METHODS if m != "k-means++" and any(m in row for row in table.values())]
    tables.print_heading(
        "problem",
        "n",
        "F",
        "k",
        "k-means++: mean / best",
        *(f"{m}: mean (worst)" for m in methods),
        "time of default / 20 k-means++",
    )
    for name, row in table.items():
        reference = row["k-means++"]
        best = min(reference["objectives"])
        cells = [
            f"{np.mean(row[m]['objectives']) / best:.4f} ({max(row[m]['objectives']) / best:.4f})"
            if m in row
            else ""
            for m in methods
        ]
        tables.print_row(
            name,
            *(reference[key] for key in ("n", "F", "k")),
            f"{np.mean(reference['objectives']) / best:.4f}",
            *cells,
            f"{np.mean(row['default']['seconds']) / sum(reference['seconds']):.3f}",
        )
    summarise(table)


def summarise(table: dict[str, dict[str, Any]]) -> None:
    """Ratios to the best of 20 k-means++ runs, and the time on large sets."""
    ratio = {
        name: np.array(row["default"]["objectives"]) / min(row["k-means++"]["objectives"])
        for name, row in table.items()
    }
    real = {name for name, _, _ in REAL} | {"digits"}
    print()
    for kind, names in (("real", ratio.keys() & real), ("generated", ratio.keys() - real)):
        within = sum(ratio[name].mean() <= 1.001 for name in names)
        better = sum(ratio[name].mean() < 0.999 for name in names)
        worst = max((ratio[name].mean() for name in names), default=np.nan)
        print(
            f"{kind}: {within} of {len(names)} within 1.001, {better} below 0.999, "
            f"worst mean {worst:.4f}"
        )
    large = [row for row in table.values() if row["k-means++"]["n"] >= 5000]
    ours = sum(np.mean(row["default"]["seconds"]) for row in large)
    theirs = sum(sum(row["k-means++"]["seconds"]) for row in large)
    if large:
        print(f"n >= 5000: {ours:.2f} s against {theirs:.2f} s, {ours / theirs:.3f}")


def main() -> None:
    parser = commands.parser(__doc__)
    subcommands = parser.add_subparsers(required=True)
    command = subcommands.add_parser("run")
    commands.add_data(command, required=False)
    command.add_argument("--out", type=Path, required=True)
    command.add_argument("--only", nargs="+")
    command.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    command.add_argument("--seeds", type=int, default=SEEDS)
    command.set_defaults(action=run)
    command = subcommands.add_parser("report")
    command.add_argument("results", type=Path)
    command.set_defaults(action=report)
    args = parser.parse_args()
    args.action(args)


if __name__ == "__main__":
    main()

"""Which class for which rows: the classes of the first pages beside k-means on a newcomer's sets.

    python -m bench.quality.which [--seeds N] [--sets NAME ...] [--out FILE]

Sets of scikit-learn and generated ones, k known. Columns whose units differ are standardised, and
tables of numbers and words go through `TablePreprocessor`, for all classes alike; embeddings have
the cosine metric where a class has it. A seed is that of a draw and of a fit. Prints the mean ARI
with the classes and, in brackets, the least difference to `KMeans(n_init=10)` of the same seed, as
Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize, scale

from bench import commands, records, tables
from rffpk import DiffusionPowerKMeans, PowerKMeans, RFFKernelPowerKMeans
from rffpk.tables import TablePreprocessor

Rows = tuple[np.ndarray, np.ndarray]

METHODS: dict[str, Callable[..., Any]] = {
    "DiffusionPowerKMeans": DiffusionPowerKMeans,
    "PowerKMeans": PowerKMeans,
    "RFFKernelPowerKMeans": RFFKernelPowerKMeans,
    "KMeans": partial(KMeans, n_init=10),
}
_EMBEDDINGS = "topics"
_WITH_COSINE = DiffusionPowerKMeans, PowerKMeans


# ---- the sets ------------------------------------------------------------------------------------


def blobs(n: Any, d: int, spread: Any, k: int | None, seed: int) -> Rows:
    X, y = make_blobs(n, d, centers=k, cluster_std=spread, random_state=seed)
    return X, y


def of_sizes(ratios: list[int], n: int) -> list[int]:
    return [n * ratio // sum(ratios) for ratio in ratios]


def customers(seed: int) -> Rows:
    """Four segments of unlike quantities: age, income, visits, days since the last one, spending."""
    random = np.random.default_rng(seed)
    y = random.choice(4, 1000, p=[0.4, 0.3, 0.2, 0.1])
    X = np.column_stack(
        [
            np.array([25, 38, 52, 67])[y] + random.normal(0, 5, 1000),
            np.array([28e3, 60e3, 85e3, 40e3])[y] + random.normal(0, 8e3, 1000),
            random.poisson(np.array([12, 6, 20, 3])[y]),
            random.exponential(np.array([10, 30, 8, 60])[y]),
            np.exp(np.array([3.5, 4.5, 5.5, 4.0])[y] + random.normal(0, 0.5, 1000)),
        ]
    )
    return X, y


def customers_with_words(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The same with a plan and a channel that follow the segment, and a region that does not."""
    X, y = customers(seed)
    random = np.random.default_rng([seed, 1])
    table = pd.DataFrame(X, columns=["age", "income", "visits", "days", "spent"])
    plans = np.array(["basic", "family", "pro", "basic"])[y]
    table["plan"] = np.where(random.random(len(y)) < 0.15, "family", plans)
    table["channel"] = np.where(random.random(len(y)) < 0.2, "shop", np.array([*"wwpp"])[y])
    table["region"] = random.choice([*"nesw"], len(y))
    return table, y


def penguins(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Three kinds by four lengths and weights; the island follows the kind in part, the sex does
    not, and moves the lengths."""
    random = np.random.default_rng(seed)
    y = random.choice(3, 340, p=[0.44, 0.2, 0.36])
    male = random.random(340) < 0.5
    means = np.array([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3730], [47.5, 15.0, 217, 5080]])
    sexes = np.array([3.3, 1.3, 6, 650])
    X = means[y] + (male - 0.5)[:, None] * sexes + random.normal(0, [2.0, 0.8, 5.3, 290], (340, 4))
    table = pd.DataFrame(X, columns=["bill", "depth", "flipper", "mass"])
    island = np.array(["Torgersen", "Biscoe", "Dream"])
    shares = np.array([[0.34, 0.29, 0.37], [0, 0, 1], [0, 1, 0]])
    table["island"] = [island[random.choice(3, p=shares[j])] for j in y]
    table["sex"] = np.where(male, "male", "female")
    return table, y


def topics(seed: int) -> Rows:
    """Embeddings of length one, in topics of Zipf's sizes."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, 21)
    y = random.choice(20, 3000, p=share / share.sum())
    centers = normalize(random.normal(size=(20, 384)))
    return normalize(centers[y] + random.normal(size=(3000, 384)) / np.sqrt(384)), y


def stored(load: Callable[..., Any], seed: int, unlike: bool = False) -> Rows:
    X, y = load(return_X_y=True)
    return scale(X) if unlike else X, y


SETS: dict[str, Callable[[int], Any]] = {
    "blobs": lambda seed: blobs(1000, 2, 1.0, 5, seed),
    "blobs, unequal sizes": lambda seed: blobs(of_sizes([70, 20, 10], 1000), 2, 1.0, None, seed),
    "blobs, unequal spreads": lambda seed: blobs(1000, 5, [1.0, 2.5, 0.5], 3, seed),
    "blobs, 20 columns": lambda seed: blobs(1000, 20, 6.0, 8, seed),
    "iris": partial(stored, load_iris),
    "wine": partial(stored, load_wine, unlike=True),
    "breast cancer": partial(stored, load_breast_cancer, unlike=True),
    "digits": partial(stored, load_digits),
    "customers": lambda seed: (scale(customers(seed)[0]), customers(seed)[1]),
    "customers, words": customers_with_words,
    "penguins, words": penguins,
    _EMBEDDINGS: topics,
    "moons": lambda seed: make_moons(1000, noise=0.08, random_state=seed),
    "circles": lambda seed: make_circles(1000, factor=0.5, noise=0.05, random_state=seed),
}


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    args: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("set", *args.methods)
    for name in args.sets:
        found: dict[str, list] = {m: [] for m in args.methods}
        for seed in range(args.seeds):
            X, y = SETS[name](seed)
            if isinstance(X, pd.DataFrame):
                X = TablePreprocessor().fit_transform(X)
            for m in args.methods:
                model = METHODS[m](len(np.unique(y)), random_state=seed)
                if name == _EMBEDDINGS and isinstance(model, _WITH_COSINE):
                    model.set_params(metric="cosine")
                labels = model.fit_predict(X)
                a = adjusted_rand_score(y, labels)
                t = getattr(getattr(model, "feature_map_", None), "time_", 1)
                found[m].append(f"{a:.3f}" + ("c" if t == 0 else ""))
        tables.print_row(name, *(" ".join(v) for v in found.values()))


if __name__ == "__main__":
    main()

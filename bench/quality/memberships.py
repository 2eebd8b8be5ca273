"""Compare memberships with the shares of right labels, by exponent and by fuzzifier.

    python -m bench.quality.memberships exponents --data DIR [--battery DIR]
    python -m bench.quality.memberships fuzzifier

exponents: each set is clustered with the number of its classes; a cluster stands for the class that
    most of its rows have. The expected calibration error (ECE) is the mean distance between the
    largest membership in a class and the share of right classes, over ten parts of the rows by
    membership. The Brier score is the mean squared distance of the memberships from the classes.
    Resampling is this error against the share of five refits to 70 % of the rows that keep the
    label of a row, each refit matched to the fit. Exponents: `s_`, where annealing ends;
    `membership_exponent_`, the default; -1 and -2; and the best Brier score of a grid, which needs
    the classes. Sets of more than 3000 rows are sampled. Columns are standardised where they are at
    most 40, except in the battery. Means are over all sets, and over sets of even and of odd
    position, counted from zero through the battery and then by name.

fuzzifier: labels and memberships of fuzzy c-means over the number of columns. Ten Gaussians of 200
    rows with variance one, the nearest centroids five apart: the ARI of the labels and the
    calibration error over ten bins. "By size" is the rule of Schwämmle and Jensen (Bioinformatics
    2010), which knows the numbers of rows and columns alone, cut at 6.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score, confusion_matrix
from sklearn.preprocessing import scale

import rffpk
from bench import commands, tables
from bench.datasets import first_view
from bench.quality.battery import problems
from rffpk import FuzzyCMeans, PowerKMeans

# ---- exponents -----------------------------------------------------------------------------------

CLASSES = ("PowerKMeans", "RFFKernelPowerKMeans", "DiffusionPowerKMeans")
GRID = tuple(-np.geomspace(0.3, 300, 31))
EXPONENTS = ("s_", "default", "-1", "-2", "best")
SCORES = ("ECE", "Brier", "largest membership", "resampling")
Set = tuple[str, np.ndarray, np.ndarray]


def sets(args: argparse.Namespace) -> Iterator[Set]:
    """Yield names, rows and classes; -1: not scored."""
    for load in (load_breast_cancer, load_digits, load_iris, load_wine):
        X, y = load(return_X_y=True)
        yield load.__name__.removeprefix("load_"), X, y
    for path in sorted(args.data.glob("*.npz")):
        yield path.stem, *first_view(args.data, path.stem)
    for name, X, references in problems(args.battery) if args.battery else ():
        yield name, X, references[0] - 1
    for d in (2, 8, 32, 128):
        for apart in (2, 3, 4, 6):
            random = np.random.RandomState(10 * d + apart)
            centers = np.linalg.qr(random.normal(size=(max(d, 5), max(d, 5))))[0][:5, :d]
            gaps = np.linalg.norm(centers[:, None] - centers, axis=2) + 9 * np.eye(5)
            y = random.randint(5, size=2000)
            X = apart / gaps.min() * centers[y] + random.normal(size=(2000, d))
            yield f"gaussians {d} {apart}", X, y


def prepared(name: str, X: np.ndarray, y: np.ndarray, battery: bool) -> tuple[np.ndarray, Any]:
    rows = np.sort(np.random.RandomState(0).permutation(len(X))[:3000])
    X, y = X[rows], y[rows]
    y = np.where(y < 0, -1, np.unique(y, return_inverse=True)[1] - (y < 0).any())
    plain = battery or name.startswith("gaussians") or X.shape[1] > 40
    return X if plain else scale(X), y


def calibration_error(claimed: np.ndarray, seen: np.ndarray) -> float:
    parts = np.array_split(np.argsort(claimed, kind="stable"), 10)
    return sum(abs((claimed[i] - seen[i]).sum()) for i in parts) / len(claimed)


def kept_labels(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the share of refits that keep the label of a row."""
    kept, n = np.zeros(len(X)), len(X)
    for seed in range(5):
        rows = np.random.RandomState(seed).permutation(n)[: max(model.n_clusters, int(0.7 * n))]
        labels = clone(model).set_params(random_state=seed + 1).fit(X[rows]).predict(X)
        table = np.zeros((model.n_clusters, model.n_clusters))
        np.add.at(table, (labels, model.labels_), 1)
        kept += linear_sum_assignment(-table)[1][labels] == model.labels_
    return kept / 5


def scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, ...]]:
    """Return the scores at each exponent."""
    k, scored = model.n_clusters, y >= 0
    table = np.zeros((k, y.max() + 1))
    np.add.at(table, (model.labels_[scored], y[scored]), 1)
    stands_for = np.eye(table.shape[1])[table.argmax(axis=1)]
    kept, values = kept_labels(model, X), {}
    named = {"s_": model.s_, "default": model.membership_exponent_, "-1": -1, "-2": -2}
    for name, s in (named | {str(s): s for s in GRID}).items():
        u = model.predict_proba(X, s=min(s, -0.2))
        shares = (u @ stands_for)[scored]
        right = shares.argmax(axis=1) == y[scored]
        brier = ((shares - np.eye(shares.shape[1])[y[scored]]) ** 2).sum(axis=1).mean()
        top = shares.max(axis=1)
        stays = calibration_error(u[np.arange(len(u)), model.labels_], kept)
        values[name] = calibration_error(top, right), brier, top.mean(), stays
    values["best"] = min((values[str(s)] for s in GRID), key=lambda of_one: of_one[1])
    return values


def exponents(args: argparse.Namespace) -> None:
    """Print the scores of memberships at several exponents."""
    battery = {path.stem for path in args.battery.glob("*.npz")} if args.battery else set()
    rows: dict[str, list[Any]] = {name: [] for name in args.classes}
    for name, X, y in sorted(sets(args), key=lambda row: (row[0] not in battery, row[0])):
        X, y = prepared(name, X, y, name in battery)
        for cls in args.classes:
            model = getattr(rffpk, cls)(int(y.max()) + 1, random_state=0).fit(X)
            rows[cls].append(scores(model, X, y))
    tables.print_heading("class", "sets", "score", *EXPONENTS)
    for cls, table in rows.items():
        for title, part in (("all", table), ("even", table[::2]), ("odd", table[1::2])):
            for i, score in enumerate(SCORES):
                means = (np.mean([values[column][i] for values in part]) for column in EXPONENTS)
                tables.print_row(cls, f"{title}, {len(part)}", score, *tables.cells(means))


# ---- fuzzifier -----------------------------------------------------------------------------------

COLUMNS = (2, 5, 10, 20, 50, 100, 200, 384, 768)


def by_size(n: int, d: int) -> float:
    """Return the fuzzifier of Schwämmle and Jensen, eq. (5)."""
    power = -0.0406 * math.log(n) - 0.1134
    return min(6.0, 1 + (1418 / n + 22.05) / d**2 + (12.33 / n + 0.243) * d**power)


def fuzzy_scores(y: np.ndarray, model: Any, X: np.ndarray) -> tuple[float, float, float]:
    """Return the ARI, the calibration error over ten bins, and the fuzzifier."""
    largest = model.predict_proba(X).max(axis=1)
    right = confusion_matrix(y, model.labels_).argmax(axis=0)[model.labels_] == y
    bins = np.minimum((10 * largest).astype(int), 9)
    parts = [bins == i for i in range(10)]
    error = sum(abs(largest[b].mean() - right[b].mean()) * b.mean() for b in parts if b.any())
    return adjusted_rand_score(y, model.labels_), error, getattr(model, "m_", 0.0)


def fuzzifier(args: argparse.Namespace) -> None:
    """Print the labels and memberships of fuzzy c-means by its fuzzifier."""
    k, n, apart = 10, 2000, 5.0
    tables.print_heading("columns", "k-means, annealed", "m = 2", "m = 1.2", "by size", 'm="auto"')
    for d in args.columns:
        cells = []
        for seed in range(args.seeds):
            random = np.random.default_rng([seed, d])
            centers = random.standard_normal((k, d))
            centers *= apart / pdist(centers).min()
            y = np.arange(n) % k
            X = centers[y] + random.standard_normal((n, d))
            models = [PowerKMeans(k, random_state=seed)]
            models += [
                FuzzyCMeans(k, m=m, random_state=seed) for m in (2, 1.2, by_size(n, d), "auto")
            ]
            cells.append([fuzzy_scores(y, model.fit(X), X) for model in models])
        means = np.mean(cells, axis=0)
        texts = [f"{ari:.2f}, {error:.2f}" for ari, error, _ in means]
        texts[3:] = [f"{text} ({m:.3f})" for text, m in zip(texts[3:], means[3:, 2])]
        tables.print_row(d, *texts)


def main() -> None:
    battery = {"type": commands.folder, "metavar": "DIR"}
    real = {"data": commands.NEEDS_DATA, "battery": battery, "classes": commands.Names(CLASSES)}
    plain = {"columns": COLUMNS, "seeds": 3}
    commands.run(__doc__, exponents=(exponents, real), fuzzifier=(fuzzifier, plain))


if __name__ == "__main__":
    main()

"""Whether memberships are the shares of right labels, at several exponents.

    python -m bench.quality.memberships --data DIR [--battery DIR]

Each set is clustered with the number of its classes; a cluster stands for the class that most of
its rows have. The expected calibration error (ECE) is the mean distance between the largest
membership in a class and the share of right classes, over ten parts of the rows by membership; the
Brier score is the mean squared distance of the memberships from the classes. Resampling: the same
error against the share of five refits to 70 % of the rows, each matched to the fit, in which a row
keeps its label. Exponents: `s_`, where annealing ends; `membership_exponent_`, the default; -1 and
-2; and the best Brier score of a grid, which needs the classes. Sets of more than 3000 rows are
sampled; columns are standardised where they are at most 40, except those of the battery. Prints
means over all sets, and over those of even and of odd position, counted from zero through the
battery and then the others in the order of their names, as Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

import rffpk
from bench import commands, tables
from bench.quality.battery import problems

CLASSES = ("PowerKMeans", "RFFKernelPowerKMeans", "DiffusionPowerKMeans")
GRID = tuple(-np.geomspace(0.3, 300, 31))
COLUMNS = ("s_", "default", "-1", "-2", "best")
SCORES = ("ECE", "Brier", "largest membership", "resampling")
Set = tuple[str, np.ndarray, np.ndarray]


def sets(args: argparse.Namespace) -> Iterator[Set]:
    """Names, rows and classes; -1: not scored."""
    for load in (load_breast_cancer, load_digits, load_iris, load_wine):
        X, y = load(return_X_y=True)
        yield load.__name__.removeprefix("load_"), X, y
    for path in sorted(args.data.glob("*.npz")):
        with np.load(path) as stored:
            yield path.stem, stored["X" if "X" in stored else "X0"].astype(float), stored["y"]
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
    some = np.sort(np.random.RandomState(0).permutation(len(X))[:3000])
    X, y = X[some], y[some]
    y = np.where(y < 0, -1, np.unique(y, return_inverse=True)[1] - (y < 0).any())
    plain = battery or name.startswith("gaussians") or X.shape[1] > 40
    return X if plain else scale(X), y


def calibration_error(claimed: np.ndarray, seen: np.ndarray) -> float:
    parts = np.array_split(np.argsort(claimed, kind="stable"), 10)
    return sum(abs((claimed[i] - seen[i]).sum()) for i in parts) / len(claimed)


def kept_labels(model: Any, X: np.ndarray) -> np.ndarray:
    """The share of refits in which a row keeps its label."""
    kept, n = np.zeros(len(X)), len(X)
    for seed in range(5):
        some = np.random.RandomState(seed).permutation(n)[: max(model.n_clusters, int(0.7 * n))]
        labels = clone(model).set_params(random_state=seed + 1).fit(X[some]).predict(X)
        table = np.zeros((model.n_clusters, model.n_clusters))
        np.add.at(table, (labels, model.labels_), 1)
        kept += linear_sum_assignment(-table)[1][labels] == model.labels_
    return kept / 5


def scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, ...]]:
    """The scores at each exponent."""
    k, scored = model.n_clusters, y >= 0
    table = np.zeros((k, y.max() + 1))
    np.add.at(table, (model.labels_[scored], y[scored]), 1)
    stands_for = np.eye(table.shape[1])[table.argmax(axis=1)]
    kept, found = kept_labels(model, X), {}
    default = model.membership_exponent_
    for name, s in [("s_", model.s_), ("default", default), ("-1", -1), ("-2", -2),
                    *((str(s), s) for s in GRID)]:  # fmt: skip
        u = model.predict_proba(X, s=min(s, -0.2))
        shares = (u @ stands_for)[scored]
        right = shares.argmax(axis=1) == y[scored]
        brier = ((shares - np.eye(shares.shape[1])[y[scored]]) ** 2).sum(axis=1).mean()
        top = shares.max(axis=1)
        stays = calibration_error(u[np.arange(len(u)), model.labels_], kept)
        found[name] = calibration_error(top, right), brier, top.mean(), stays
    found["best"] = min((found[str(s)] for s in GRID), key=lambda values: values[1])
    return found


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--battery", type=commands.folder, metavar="DIR")
    parser.add_argument("--classes", nargs="+", choices=CLASSES, default=CLASSES)
    args: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    battery = {path.stem for path in Path(args.battery).glob("*.npz")} if args.battery else set()
    found: dict[str, list[tuple[str, Any]]] = {name: [] for name in args.classes}
    for name, X, y in sorted(sets(args), key=lambda each: (each[0] not in battery, each[0])):
        X, y = prepared(name, X, y, name in battery)
        for cls in args.classes:
            model = getattr(rffpk, cls)(int(y.max()) + 1, random_state=0).fit(X)
            found[cls].append((name, scores(model, X, y)))
    tables.print_heading("class", "sets", "score", *COLUMNS)
    for cls, rows in found.items():
        for title, part in (("all", rows), ("even", rows[::2]), ("odd", rows[1::2])):
            for i, score in enumerate(SCORES):
                means = (np.mean([values[column][i] for _, values in part]) for column in COLUMNS)
                cells = (f"{mean:.3f}" for mean in means)
                tables.print_row(cls, f"{title}, {len(part)}", score, *cells)


if __name__ == "__main__":
    main()

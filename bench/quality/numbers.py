"""The number of clusters that `select_n_clusters` finds, beside that of reference labellings.

    python -m bench.quality.numbers --data DIR --battery DIR

DIR holds NAME.npz (bench/README.md); the battery is that of bench.quality.battery. Made besides:
rows without clusters, uniform and of one Gaussian, and well-separated blobs. Prints a table as
Markdown: the shares of sets whose number is right, is within a quarter, and is among the
numbers returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets

from bench import commands, tables
from bench.quality.battery import problems
from rffpk import select_n_clusters

Problem = tuple[str, np.ndarray, list[int]]

TEXTS = {"3sources", "bbcsport", "tr11", "prokaryotic"}  # rows of length one
MIXED = {"shuttle", "kddcup99_10pct", "wine", "breast_cancer"}  # columns of one variance


def labelled(folder: Path) -> Iterator[Problem]:
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as stored:
            X, y = stored["X" if "X" in stored else "X0"].astype(float), stored["y"]
        yield path.stem, scaled(path.stem, X), [len(np.unique(y))]
    for name in ("iris", "wine", "digits", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, scaled(name, X), [len(np.unique(y))]


def scaled(name: str, X: np.ndarray) -> np.ndarray:
    if name in TEXTS:
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    if name in MIXED:
        X = X[:, X.std(axis=0) > 0]
        return (X - X.mean(axis=0)) / X.std(axis=0)
    return X


def without_clusters() -> Iterator[Problem]:
    for d in (2, 3, 5, 10, 20, 50):
        for n in (200, 500, 2000):
            random = np.random.RandomState(1000 * d + n)
            yield "uniform", random.rand(n, d), [1]
            yield "Gaussian", random.randn(n, d), [1]
            yield "Gaussian", random.randn(n, d) @ random.randn(d, d), [1]


def blobs() -> Iterator[Problem]:
    """Of 50 rows each, whose centers are at least 8 standard deviations apart."""
    for k in (2, 3, 5, 8, 15, 40):
        for d in (2, 10, 50):
            random, centers, side = np.random.RandomState(k * 100 + d), list[np.ndarray](), 10.0
            while len(centers) < k:
                center = random.uniform(-side, side, d)
                if all(np.linalg.norm(center - other) > 8 for other in centers):
                    centers.append(center)
                side *= 1.01
            y = np.repeat(np.arange(k), 50)
            yield "blobs", np.array(centers)[y] + random.randn(len(y), d), [k]


def shares(sets: Iterator[Problem]) -> list[tuple[bool, bool, bool]]:
    found = []
    for name, X, right in sets:
        selection = select_n_clusters(X, random_state=0)
        k = selection.n_clusters
        near = any(abs(k - each) <= each / 4 for each in right)
        found.append((k in right, near, not {*right}.isdisjoint(selection.numbers.tolist())))
        print(f"<!-- {name} {right}: {selection.numbers} -->", flush=True)
    return found


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser, required=False)
    parser.add_argument("--battery", type=commands.folder, metavar="DIR")
    args: Any = parser.parse_args()
    parts = {"without clusters": without_clusters(), "blobs": blobs()}
    if args.data:
        parts["labelled"] = labelled(args.data)
    if args.battery:
        sets = problems(args.battery)
        parts["battery"] = ((name, X, [*{int(y.max()) for y in ys}]) for name, X, ys in sets)
    table = {name: shares(part) for name, part in parts.items()}
    tables.print_heading("data", "sets", "right", "within a quarter", "among the numbers")
    for name, found in table.items():
        tables.print_row(name, len(found), *(f"{each:.2f}" for each in np.mean(found, axis=0)))


if __name__ == "__main__":
    main()

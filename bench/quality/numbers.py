"""The number of clusters that `select_n_clusters` finds, beside that of reference labellings.

    python -m bench.quality.numbers --data DIR --battery DIR --half other

DIR holds NAME.npz (bench/README.md); the battery is that of bench.quality.battery. The families of
bench.quality.generated come first. The rule was chosen on the first, third, ... of each family, of
lists of views on the first 132, and on the second, fourth, ... of the stored sets.

Prints a table as Markdown: the shares of sets whose number is right by the sum and by each witness
alone (eigengaps: of the graphs that were asked), is within a quarter, or is among the numbers
returned; the mean adjusted Rand index of `DiffusionPowerKMeans` with the number that is found, and
with that of the labels; and the largest CPU seconds of sets of at most 2000 rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

from bench import commands, tables
from bench.quality import generated
from bench.quality.battery import problems
from rffpk import DiffusionPowerKMeans, select_n_clusters

Problem = tuple[str, Any, list[int], list[np.ndarray]]

TEXTS = {"3sources", "bbcsport", "tr11", "prokaryotic"}  # rows of length one
MIXED = {"shuttle", "kddcup99_10pct", "wine", "breast_cancer"}  # columns of one variance

# What one cluster begins with where a witness is alone.
ALONE = {"eigengaps": 0.3, "heights": 0.2, "modes": 0.0}


def labelled(folder: Path) -> Iterator[Problem]:
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as stored:
            X, y = stored["X" if "X" in stored else "X0"].astype(float), stored["y"]
        yield path.stem, scaled(path.stem, X), [len(np.unique(y))], [y + 1]
    for name in ("iris", "wine", "digits", "breast_cancer"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield name, scaled(name, X), [len(np.unique(y))], [y + 1]


def scaled(name: str, X: np.ndarray) -> np.ndarray:
    if name in TEXTS:
        return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    if name in MIXED:
        X = X[:, X.std(axis=0) > 0]
        return (X - X.mean(axis=0)) / X.std(axis=0)
    return X


def battery(folder: Path) -> Iterator[Problem]:
    for name, X, ys in problems(folder):
        yield name, np.ascontiguousarray(X), sorted({int(y.max()) for y in ys}), ys


def rand_index(X: np.ndarray, k: int, ys: list[np.ndarray]) -> float:
    """The best over reference labellings, in which 0 is not scored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = DiffusionPowerKMeans(k, random_state=0).fit(X).labels_
    return max(adjusted_rand_score(y[y > 0], labels[y > 0]) for y in ys)


def row_of(name: str, X: Any, right: list[int], ys: list[np.ndarray]) -> dict[str, float]:
    """What is measured of a set."""
    begin = time.process_time()
    selection = select_n_clusters(X, random_state=0)
    seconds = time.process_time() - begin
    k = selection.n_clusters
    found: dict[str, float] = {
        "sum": k in right,
        "within a quarter": any(abs(k - each) <= each / 4 for each in right),
        "among the numbers": not {*right}.isdisjoint(selection.numbers.tolist()),
        "seconds": seconds if len(X[0] if isinstance(X, list) else X) <= 2000 else 0.0,
    }
    for witness, one in ALONE.items():
        scores = getattr(selection, witness).copy()
        scores[0] += one
        found[witness] = 1 + int(scores.argmax()) in right
    if ys:
        found["ARI"] = rand_index(X, k, ys)
        found["ARI, k given"] = max(rand_index(X, each, ys) for each in right)
    print(f"<!-- {name} {right}: {selection.numbers}, levels {selection.levels} -->", flush=True)
    return found


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser, required=False)
    parser.add_argument("--battery", type=commands.folder, metavar="DIR")
    parser.add_argument("--half", choices=["chosen", "other"], help="by the rule's choice")
    args: Any = parser.parse_args()
    parts: dict[str, list[Any]] = {
        family.__name__: [(*each, []) for each in family()] for family in generated.FAMILIES
    }
    if args.half:
        parts = {name: sets[args.half == "other" :: 2] for name, sets in parts.items()}
    stored = {"battery": (battery, args.battery), "labelled": (labelled, args.data)}
    for name, (read, folder) in stored.items():
        if folder and args.half:
            parts[name] = [*read(folder)][args.half == "chosen" :: 2]
        elif folder:
            parts[name] = [*read(folder)]
    columns = ["sum", *ALONE, "within a quarter", "among the numbers", "ARI", "ARI, k given"]
    table = {name: [row_of(*each) for each in sets] for name, sets in parts.items()}
    tables.print_heading("data", "sets", *columns, "seconds")
    for name, found in table.items():
        shown = [
            f"{np.mean([each[column] for each in found]):.2f}" if column in found[0] else ""
            for column in columns
        ]
        tables.print_row(name, len(found), *shown, f"{max(each['seconds'] for each in found):.2f}")


if __name__ == "__main__":
    main()

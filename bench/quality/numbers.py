"""Compare the number of clusters of `select_n_clusters` with that of reference labellings.

DIR holds NAME.npz (bench/README.md); the battery is that of bench.quality.battery. The families of
bench.quality.generated come first. The rule was chosen on the first, third, ... of each family, of
lists of views on the first 132, and on the second, fourth, ... of the stored sets.
`python -m bench pages number_of_clusters` has the rest of the families.

Prints the shares of sets whose number is right by the sum and by each criterion alone, is within a
quarter, or is among the numbers returned. Then come the mean adjusted Rand index of
`DiffusionPowerKMeans` with this number and with that of the labels, and the largest CPU seconds of
sets of at most 2000 rows. Eigengaps are of the graphs that were asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import bundled, single_view
from bench.quality import generated
from bench.quality.battery import problems
from bench.scores import rand_index
from bench.timing import cpu_timed
from rffpk import DiffusionPowerKMeans, select_n_clusters

Problem = tuple[str, Any, list[int], list[np.ndarray]]

TEXTS = {"3sources", "bbcsport", "tr11", "prokaryotic"}  # rows of length one
MIXED = {"shuttle", "kddcup99_10pct", "wine", "breast cancer"}  # columns of one variance

# What one cluster begins with where a criterion is alone.
ALONE = {"eigengaps": 0.3, "heights": 0.2, "modes": 0.0}


def labelled(folder: Path) -> Iterator[Problem]:
    for path in sorted(folder.glob("*.npz")):
        X, y = single_view(folder, path.stem)
        yield path.stem, scaled(path.stem, X), [len(np.unique(y))], [y + 1]
    for name in ("iris", "wine", "digits", "breast cancer"):
        X, y = bundled(name)
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


def best_index(X: np.ndarray, k: int, ys: list[np.ndarray]) -> float:
    """Return the best ARI over reference labellings, in which 0 is not scored."""
    labels = DiffusionPowerKMeans(k, random_state=0).fit(X).labels_
    return max(rand_index(y - 1, labels) for y in ys)


def row_of(name: str, X: Any, right: list[int], ys: list[np.ndarray]) -> dict[str, float]:
    """Measure a set."""
    seconds, selection = cpu_timed(partial(select_n_clusters, X, random_state=0))
    k = selection.n_clusters
    row: dict[str, float] = {
        "sum": k in right,
        "within a quarter": any(abs(k - number) <= number / 4 for number in right),
        "among the numbers": not {*right}.isdisjoint(selection.numbers.tolist()),
        "seconds": seconds if len(X[0] if isinstance(X, list) else X) <= 2000 else 0.0,
    }
    for criterion, one in ALONE.items():
        scores = getattr(selection, criterion).copy()
        scores[0] += one
        row[criterion] = 1 + int(scores.argmax()) in right
    if ys:
        row["ARI"] = best_index(X, k, ys)
        row["ARI, k given"] = max(best_index(X, number, ys) for number in right)
    print(f"<!-- {name} {right}: {selection.numbers}, levels {selection.levels} -->", flush=True)
    return row


def main() -> None:
    names = [family.__name__ for family in generated.FAMILIES]
    args = commands.arguments(
        __doc__, data=commands.DATA, battery=commands.DATA, families=commands.Names(names)
    )
    parts: dict[str, Iterable[Problem]] = {
        family.__name__: ((*problem, []) for problem in family())
        for family in generated.FAMILIES
        if family.__name__ in args.families
    }
    if args.battery:
        parts["battery"] = battery(args.battery)
    if args.data:
        parts["labelled"] = labelled(args.data)
    columns = ["sum", *ALONE, "within a quarter", "among the numbers", "ARI", "ARI, k given"]
    table = {name: [row_of(*problem) for problem in sets] for name, sets in parts.items()}
    tables.print_heading("data", "sets", *columns, "seconds")
    for name, rows in table.items():
        values = ([row.get(column) for row in rows] for column in columns)
        means = [None if None in column else np.mean(column) for column in values]
        longest = max(row["seconds"] for row in rows)
        tables.print_row(name, len(rows), *tables.cells([*means, longest], ".2f"))


if __name__ == "__main__":
    main()

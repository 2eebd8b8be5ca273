"""Labels on a public battery of small sets, beside the published figures of other methods.

    python -m bench.quality.battery --data DIR --out FILE    # resumable

DIR holds SET.npz with X and reference labellings labels0, labels1, ... (0: not scored), and
published.csv. Columns without variance are dropped, X is centred and divided by one standard
deviation. k is that of a reference labelling; the ARI of a set is the best over its labellings,
the mean of the seeds. Prints a table of the sets and the means of all sets, and of those of even
and of odd position in the alphabet, as Markdown.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from bench import commands, records, tables
from bench.timing import timed
from rffpk import DiffusionPowerKMeans, PowerKMeans


class Cut:
    """A fit with `times` as many clusters, merged."""

    def __init__(self, kind: Any, times: int, k: int, random_state: int) -> None:
        self.kind, self.times, self.k, self.seed = kind, times, k, random_state

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        k = min(self.times * self.k, len(X) // 5)
        return self.kind(k, random_state=self.seed).fit(X).cut(self.k)


OURS = {
    "DiffusionPowerKMeans": DiffusionPowerKMeans,
    "DiffusionPowerKMeans(whitening=None)": partial(DiffusionPowerKMeans, whitening=None),
    "PowerKMeans": PowerKMeans,
    **{
        f"{kind.__name__}, cut of {times} k": partial(Cut, kind, times)
        for kind in (DiffusionPowerKMeans, PowerKMeans)
        for times in (2, 4)
    },
}
PUBLISHED = {"Genie_G0.3": "Genie .3", "GIc": "GIc", "sklearn_gm": "mixture"}


def problems(folder: Path) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
    """Names, rows and reference labellings."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as stored:
            X = stored["X"].astype(np.float64)
            references = [stored[key] for key in sorted(stored) if key.startswith("labels")]
        X = X[:, X.std(axis=0) > 0]
        X -= X.mean(axis=0)
        yield path.stem, X / X.std(), references


def best(
    method: str, X: np.ndarray, references: list[np.ndarray], seed: int
) -> tuple[float, float]:
    """The ARI of a set, and the mean seconds of a fit."""
    found, seconds = [], []
    for k in sorted({int(reference.max()) for reference in references}):
        model = OURS[method](k, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spent, labels = timed(partial(model.fit_predict, X))
        seconds.append(spent)
        for reference in references:
            if reference.max() == k:
                scored = reference > 0
                found.append(adjusted_rand_score(reference[scored], labels[scored]))
    return float(max(found)), float(np.mean(seconds))


def published(folder: Path) -> dict[str, dict[str, float]]:
    """The published ARI of sets, by method."""
    table: dict[str, dict[str, float]] = {}
    with (folder / "published.csv").open() as file:
        for row in csv.DictReader(file):
            if row["method"] in PUBLISHED:
                row_of_set = table.setdefault(f"{row['battery']}_{row['set']}", {})
                row_of_set[PUBLISHED[row["method"]]] = float(row["ARI"])
    return table


def run(args: argparse.Namespace) -> None:
    done = {(record["set"], record["method"]) for record in records.resume(args.out)}
    for name, X, references in problems(args.data):
        for method in args.methods:
            if (name, method) in done:
                continue
            pairs = [best(method, X, references, seed) for seed in range(args.seeds)]
            scores, seconds = zip(*pairs)
            record = {"set": name, "method": method, "n": len(X), "ARI": scores}
            records.append(args.out, {**record, "seconds": seconds})
            print(name, method, f"{np.mean(scores):.3f}", file=sys.stderr, flush=True)


def report(args: argparse.Namespace) -> None:
    others = published(args.data)
    table: dict[str, dict[str, float]] = {}
    for (name,), row in records.by_method(args.out, "set").items():
        ours = {method: float(np.mean(record["ARI"])) for method, record in row.items()}
        table[name] = ours | others.get(name, {})
    methods = [*args.methods, *PUBLISHED.values()]
    tables.print_heading("set", *methods)
    for name, row in table.items():
        tables.print_row(name, *(f"{row[m]:.2f}" if m in row else "" for m in methods))
    names = sorted(table)
    print()
    tables.print_heading("mean of", "sets", *methods)
    for title, part in (("all", names), ("even", names[1::2]), ("odd", names[::2])):
        both = [name for name in part if all(method in table[name] for method in methods)]
        for label, chosen in ((title, part), (f"{title}, published by all", both)):
            cells = (mean_of(table, chosen, method) for method in methods)
            tables.print_row(label, len(chosen), *cells)


def mean_of(table: dict[str, dict[str, float]], names: list[str], method: str) -> str:
    found = [table[name][method] for name in names if method in table[name]]
    return f"{np.mean(found):.3f}" if len(found) == len(names) else ""


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="results, as lines of JSON")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", choices=list(OURS), default=list(OURS))
    args: Any = parser.parse_args()
    run(args)
    report(args)


if __name__ == "__main__":
    main()

"""Score labels on a public battery of small sets, beside the published figures of other methods.

    python -m bench.quality.battery --data DIR --out FILE    # resumable

DIR holds SET.npz with X and reference labellings labels0, labels1, ... (0: not scored), and
published.csv. Columns without variance are dropped, X is centred and divided by one standard
deviation. Each reference labelling gives k. The ARI of a set is the best over its labellings, the
mean of the seeds. Cuts are of fits with 2 k and 4 k clusters. Prints a table of the sets and
the means of all sets, and of sets of even and of odd position in the alphabet.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import commands, records, tables
from bench.scores import rand_index
from bench.timing import timed
from rffpk import DiffusionPowerKMeans, PowerKMeans

Fit = Callable[[np.ndarray, int, int], np.ndarray]  # of rows, k and a seed: labels


def fit(kind: Any, **parameters: Any) -> Fit:
    return lambda X, k, seed: kind(k, random_state=seed, **parameters).fit(X).labels_


def cut(kind: Any, times: int) -> Fit:
    """Return fits with `times` as many clusters, merged."""
    return lambda X, k, seed: kind(min(times * k, len(X) // 5), random_state=seed).fit(X).cut(k)


OURS: dict[str, Fit] = {
    "DiffusionPowerKMeans": fit(DiffusionPowerKMeans),
    "DiffusionPowerKMeans(whitening=None)": fit(DiffusionPowerKMeans, whitening=None),
    "PowerKMeans": fit(PowerKMeans),
    **{
        f"{kind.__name__}, cut of {times} k": cut(kind, times)
        for kind in (DiffusionPowerKMeans, PowerKMeans)
        for times in (2, 4)
    },
}
PUBLISHED = {"Genie_G0.3": "Genie .3", "GIc": "GIc", "sklearn_gm": "mixture"}


def problems(folder: Path) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
    """Yield names, rows and reference labellings."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as stored:
            X = stored["X"].astype(np.float64)
            references = [stored[key].astype(int) for key in sorted(stored) if "labels" in key]
        X = X[:, X.std(axis=0) > 0]
        X -= X.mean(axis=0)
        yield path.stem, X / X.std(), references


def best(
    method: str, X: np.ndarray, references: list[np.ndarray], seed: int
) -> tuple[float, float]:
    """Return the ARI of a set, and the mean seconds of a fit."""
    scores, seconds = [], []
    for k in sorted({int(reference.max()) for reference in references}):
        took, labels = timed(partial(OURS[method], X, k, seed))
        seconds.append(took)
        scores += [rand_index(y - 1, labels) for y in references if y.max() == k]
    return max(scores), float(np.mean(seconds))


def published(folder: Path) -> dict[str, dict[str, float]]:
    """Read the published ARI of sets, by method."""
    table: dict[str, dict[str, float]] = {}
    with (folder / "published.csv").open() as file:
        for row in csv.DictReader(file):
            if row["method"] in PUBLISHED:
                row_of_set = table.setdefault(f"{row['battery']}_{row['set']}", {})
                row_of_set[PUBLISHED[row["method"]]] = float(row["ARI"])
    return table


def run(args: argparse.Namespace) -> None:
    done = records.known(args.out, "set", "method")
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
    table = published(args.data)
    for (name,), row in records.by_method(args.out, "set").items():
        ours = {method: float(np.mean(record["ARI"])) for method, record in row.items()}
        table[name] = ours | table.get(name, {})
    methods, names = [*args.methods, *PUBLISHED.values()], sorted({*table})
    names = [name for name in names if args.methods[0] in table[name]]
    tables.print_heading("set", *methods)
    for name in names:
        tables.print_row(name, *tables.cells((table[name].get(m) for m in methods), ".2f"))
    print()
    tables.print_heading("mean of", "sets", *methods)
    for title, part in (("all", names), ("even", names[1::2]), ("odd", names[::2])):
        both = [name for name in part if all(method in table[name] for method in methods)]
        for label, chosen in ((title, part), (f"{title}, published by all", both)):
            rows = [[table[name].get(m) for name in chosen] for m in methods]
            means = (None if None in row or not row else np.mean(row) for row in rows)
            tables.print_row(label, len(chosen), *tables.cells(means))


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.NEEDS_DATA, out=commands.OUT, seeds=3, methods=commands.Names(OURS)
    )
    run(args)
    report(args)


if __name__ == "__main__":
    main()

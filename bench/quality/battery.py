"""Score labels on a public battery of small sets, beside the published figures of other methods.

DIR holds SET.npz with X and reference labellings labels0, labels1, ... (0: not scored), and
published.csv. Columns without variance are dropped, X is centred and divided by one standard
deviation. Each reference labelling gives k. The ARI of a set is the best over its labellings, the
mean of the seeds. Cuts are of fits with 2 k and 4 k clusters. Prints a table of the sets and
the means of all sets, and of sets of even and of odd position in the alphabet.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import commands, records, tables
from bench.peers import Fit, fit
from bench.scores import rand_index
from bench.timing import timed
from rffpk import DiffusionPowerKMeans, PowerKMeans


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


def scored(method: str, X: np.ndarray, references: list[np.ndarray], seeds: int) -> records.Record:
    """Return the best ARI over the references, and the mean seconds of a fit, by the seed."""
    scores, seconds = [], []
    for seed in range(seeds):
        numbers = {int(y.max()) for y in references}
        fits = {k: timed(partial(OURS[method], X, k, seed)) for k in numbers}
        scores.append(max(rand_index(y - 1, fits[y.max()][1]) for y in references))
        seconds.append(float(np.mean([took for took, _ in fits.values()])))
    return {"n": len(X), "ARI": scores, "seconds": seconds}


def published(folder: Path) -> dict[str, dict[str, float]]:
    """Read the published ARI of sets, by method."""
    table: dict[str, dict[str, float]] = {}
    with (folder / "published.csv").open() as file:
        for row in csv.DictReader(file):
            if row["method"] in PUBLISHED:
                row_of_set = table.setdefault(f"{row['battery']}_{row['set']}", {})
                row_of_set[PUBLISHED[row["method"]]] = float(row["ARI"])
    return table


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
    for name, X, references in problems(args.data):
        for method in args.methods:
            key = {"set": name, "method": method}
            records.add(args.out, key, scored, method, X, references, args.seeds)
    report(args)


if __name__ == "__main__":
    main()

"""Run the cells of the tables: a data set, a method, a point of its grid; in a new process."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import datasets, records
from bench.papers import methods
from bench.timing import timed
from rffpk.metrics import scores_of_labels
from rffpk.rows.weights import ones
from rffpk.spaces.kernels import FittedKernel, du2015

SINGLE = ["yale", "seeds", "lung_discrete", "coil20", "glioma"]
MORE_SINGLE = ["tr11", "binaryalphadigs"]
MULTI = ["leaves100", "mfeat"]
MORE_MULTI = ["msrc_v1", "3sources", "bbcsport", "proteinfold", "landuse21", "prokaryotic"]

# experiment -> its data sets; sets that the paper does not use have no published values
EXPERIMENTS = {
    "rff-kpkm": ["yale", "leaves100:0"],
    "ip-rff-mkpkm": ["hw2"],
    "kpk": SINGLE,
    "kpk, k-means++": SINGLE,
    "kpk, more sets": MORE_SINGLE,
    "mkpk": ["yale", "coil20"],
    "smkc": MULTI,
    "mkc-ae": ["mfeat"],
    "famkkm": MORE_MULTI,
    "large": ["pendigits", "letter", "shuttle", "skin", "kddcup99_10pct"],
}

# methods of n x n kernels are not run above this many rows
EXACT = {"kernel k-means", "KPK", "spectral"}
MOST_ROWS = 12_000


@dataclass(frozen=True)
class Cell:
    experiment: str
    dataset: str
    method: str
    protocol: str
    variant: str

    @property
    def key(self) -> str:
        return " / ".join((self.experiment, self.dataset, self.method, self.protocol, self.variant))


def methods_of(experiment: str, dataset: str) -> list[methods.Method]:
    """Return the rows of a table."""
    if experiment.startswith("kpk"):
        return methods.kpk("k-means++" if "++" in experiment else "random")
    if experiment not in ("smkc", "famkkm"):
        return getattr(methods, experiment.replace("-", "_"))()
    n_views = {"leaves100": 3, "mfeat": 6, "msrc_v1": 5, "bbcsport": 2, "proteinfold": 12}
    step = 3 if experiment == "famkkm" else 1
    return [*methods.single_views(n_views.get(dataset, 3)), *methods.fusion(step)]


def stored_name(dataset: str) -> str:
    return "mfeat" if dataset == "hw2" else dataset.split(":")[0]


def load(dataset: str, data: Path) -> tuple[list[np.ndarray], np.ndarray]:
    """Load the views without preprocessing, and the classes."""
    views, y = datasets.views(data, stored_name(dataset), order=lambda key: int(key[1:] or 0))
    if dataset == "hw2":
        views = [views[0], views[2]]
    elif ":" in dataset:
        views = [views[int(dataset.split(":")[1])]]
    return views, y


def prepared(cell: Cell, data: Path) -> tuple[list[np.ndarray], np.ndarray]:
    """Load the views as an experiment prepares them; twelve kernels of one array for MKPK."""
    views, y = load(cell.dataset, data)
    if cell.experiment in ("rff-kpkm", "ip-rff-mkpkm"):
        return views, y
    views = [datasets.prepare(cell.dataset, view) for view in views]
    if cell.experiment == "mkpk":
        views = [
            FittedKernel(views[0], spec, weight=ones(len(views[0]))).matrix()
            for spec in du2015(views[0])
        ]
    return views, y


def run(cell: Cell, data: Path, repeats: int, limit: float) -> dict[str, Any]:
    """Return the scores of the repeats that end within `limit` seconds, and a note."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_repeat, args=(cell, data, repeats, theirs), daemon=True)
    process.start()
    theirs.close()
    rows: list[list[float]] = []
    note, end = "", time.monotonic() + limit + 10  # the start of an interpreter
    try:
        while len(rows) < repeats:
            if not ours.poll(max(0.0, end - time.monotonic())):
                note = f"stopped at {limit:g} s"
                break
            row = ours.recv()
            if isinstance(row, str):
                note = row
                break
            rows.append(row)
    except EOFError:
        note = "the process was killed, most likely for lack of memory"
    process.kill()
    process.join()
    return {"key": cell.key, "rows": rows, "note": note, "limit": limit}


def _repeat(cell: Cell, data: Path, repeats: int, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    try:
        views, y = prepared(cell, data)
        if cell.experiment == "large" and cell.method in EXACT and len(y) > MOST_ROWS:
            return pipe.send(f"not run: an n x n kernel, n = {len(y)}")
        known = methods_of(cell.experiment, cell.dataset.split(":")[0])
        method = next(m for m in known if (m.name, m.protocol) == (cell.method, cell.protocol))
        for seed in range(repeats):
            fit = method.grid[cell.variant]
            took, labels = timed(partial(fit, views, len(np.unique(y)), seed))
            took = fit.seconds if isinstance(fit, methods.OneEmbedding) else took
            pipe.send([*(100 * score for score in scores_of_labels(y, labels)), took])
    except Exception as error:  # the cell records its error; the others continue
        pipe.send(f"{type(error).__name__}: {error}")


class Cache:
    """Results by key, in a file of JSON lines, so that an interrupted run continues."""

    def __init__(self, path: Path) -> None:
        self.path = path
        known = records.read(path) if path.exists() else []
        self.found = {record["key"]: record for record in known}

    def wants(self, key: str, repeats: int, limit: float) -> bool:
        """Check whether the cell is missing, or a run with these bounds would have more repeats."""
        record = self.found.get(key)
        if record is None:
            return True
        stopped = record["note"].startswith("stopped")
        return len(record["rows"]) < repeats and (
            record["limit"] < limit if stopped else not record["note"]
        )

    def put(self, record: dict[str, Any]) -> None:
        self.found[record["key"]] = record
        records.append(self.path, record)

"""Cells of the tables: a data set, a method, a point of its grid; each in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import normalize, scale

from bench.papers import methods
from bench.papers.published import PUBLISHED
from bench.views import SETS
from rffpk.kernels import FittedKernel, du2015

SINGLE = ["yale", "seeds", "lung_discrete", "coil20", "glioma"]
MORE_SINGLE = ["tr11", "binaryalphadigs"]
MULTI = ["leaves100", "mfeat"]
MORE_MULTI = ["msrc_v1", "3sources", "bbcsport", "proteinfold", "landuse21", "prokaryotic"]

# experiment -> its data sets; those beyond the paper's own have nothing published beside them
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

PREPARATIONS = SETS | {"tr11": normalize}  # of the others: `scale`

# methods of n x n kernels are not tried above so many rows
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
    if experiment == "rff-kpkm":
        return methods.rff_kpkm()
    if experiment == "ip-rff-mkpkm":
        return methods.ip_rff_mkpkm()
    if experiment == "mkpk":
        return methods.mkpk()
    if experiment.startswith("kpk"):
        return methods.kpk("k-means++" if "++" in experiment else "random")
    if experiment == "large":
        return methods.large()
    if experiment == "mkc-ae":
        return methods.mkc_ae()
    n_views = {"leaves100": 3, "mfeat": 6, "msrc_v1": 5, "bbcsport": 2, "proteinfold": 12}
    return [*methods.single_views(n_views.get(dataset, 3)), *methods.fusion()]


def cells(experiments: list[str], data: Path) -> Iterator[Cell]:
    """All that the data allow, tables in their order."""
    for experiment in experiments:
        for dataset in EXPERIMENTS[experiment]:
            if not path_of(dataset, data).exists():
                continue
            name = dataset.split(":")[0]
            for method in methods_of(experiment, name):
                for variant in method.grid:
                    yield Cell(experiment, dataset, method.name, method.protocol, variant)


def path_of(dataset: str, data: Path) -> Path:
    return data / f"{'mfeat' if dataset == 'hw2' else dataset.split(':')[0]}.npz"


def load(dataset: str, data: Path) -> tuple[list[np.ndarray], np.ndarray]:
    """The views, as they are stored, and the classes."""
    stored = np.load(path_of(dataset, data))
    names = sorted((n for n in stored if n.startswith("X")), key=lambda n: int(n[1:] or 0))
    if dataset == "hw2":
        names = ["X0", "X2"]
    elif ":" in dataset:
        names = ["X" + dataset.split(":")[1]]
    return [stored[name].astype(np.float64) for name in names], stored["y"]


def prepared(cell: Cell, data: Path) -> tuple[list[np.ndarray], np.ndarray]:
    """The views as an experiment takes them; twelve kernels of a single array for MKPK."""
    views, y = load(cell.dataset, data)
    if cell.experiment in ("rff-kpkm", "ip-rff-mkpkm"):
        return views, y
    views = [PREPARATIONS.get(cell.dataset, scale)(view) for view in views]
    if cell.experiment == "mkpk":
        views = [FittedKernel(views[0], spec).matrix() for spec in du2015(views[0])]
    return views, y


def published(cell: Cell) -> Any:
    """What the paper reports for a method, in whichever variant, and set, or None."""
    sets = PUBLISHED.get(cell.experiment, {})
    return sets.get(cell.dataset.split(":")[0], {}).get(cell.method.split(", ")[0])


def run(cell: Cell, data: Path, repeats: int, limit: float) -> dict[str, Any]:
    """Scores of so many repeats, or of as many as end within `limit` seconds; a note where those
    are fewer."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_repeat, args=(cell, data, repeats, theirs), daemon=True)
    process.start()
    theirs.close()
    rows: list[list[float]] = []
    note, end = "", time.monotonic() + limit + 10  # an interpreter has to start
    try:
        while len(rows) < repeats:
            if not ours.poll(max(0.0, end - time.monotonic())):
                note = f"stopped at {limit:g} s"
                break
            found = ours.recv()
            if isinstance(found, str):
                note = found
                break
            rows.append(found)
    except EOFError:
        note = "the process was killed, for memory most likely"
    process.kill()
    process.join()
    return {"key": cell.key, "rows": rows, "note": note, "limit": limit}


def _repeat(cell: Cell, data: Path, repeats: int, pipe: Any) -> None:
    from rffpk import clustering_accuracy, purity_score

    warnings.simplefilter("ignore")
    try:
        views, y = prepared(cell, data)
        if cell.experiment == "large" and cell.method in EXACT and len(y) > MOST_ROWS:
            return pipe.send(f"not run: an n x n kernel, n = {len(y)}")
        found = methods_of(cell.experiment, cell.dataset.split(":")[0])
        method = next(m for m in found if (m.name, m.protocol) == (cell.method, cell.protocol))
        for seed in range(repeats):
            started = time.perf_counter()
            labels = method.grid[cell.variant](views, len(np.unique(y)), seed)
            took = time.perf_counter() - started
            scores = (clustering_accuracy, normalized_mutual_info_score, purity_score)
            pipe.send([*(100 * float(score(y, labels)) for score in scores), took])
    except Exception as error:  # a cell that fails says so; the others go on
        pipe.send(f"{type(error).__name__}: {error}")


class Cache:
    """Results by key, in a file of lines: a run that was killed goes on where it stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.found = {record["key"]: record for record in map(json.loads, lines)}

    def wants(self, key: str, repeats: int, limit: float) -> bool:
        """Whether it is not known, or a run with these bounds would have more repeats."""
        record = self.found.get(key)
        if record is None:
            return True
        stopped = record["note"].startswith("stopped")
        return len(record["rows"]) < repeats and (
            record["limit"] < limit if stopped else not record["note"]
        )

    def put(self, record: dict[str, Any]) -> None:
        self.found[record["key"]] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as out:
            out.write(json.dumps(record) + "\n")

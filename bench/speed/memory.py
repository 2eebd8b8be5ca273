"""Measure the peak memory of fits beyond X, and compare it with the limits of docs/scale.md.

Each fit runs in a process of its own. Its peak is the peak of resident pages, by Linux, less the
resident pages after X was made. Ends with 1 if a fit takes more than its limit. `--scale`
multiplies the numbers of rows.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np

import rffpk
from bench import commands, tables, timing


class Case(NamedTuple):
    """A fit, and the memory that it may take beyond X.

    The limit is the sum of parts of X, bytes of a row, float64 matrices of all pairs of rows, and
    60 MB.
    """

    name: str
    n: int
    d: int
    of_x: float
    of_row: float = 0
    matrices: float = 0
    parameters: Any = ()  # pairs of names and values
    from_source: bool = False

    def limit(self) -> float:
        n = min(self.n, _KEPT) if self.from_source else self.n
        return self.of_x * 4 * n * self.d + self.of_row * n + self.matrices * 8 * n**2 + 60e6


_KEPT = 220_000  # rows of a source that diffusion maps learn from
_KERNELS = [("kernels", ["rbf", "linear"])]
_OF_ONE_KERNEL = ["KernelPowerKMeans", "KernelKMeans"]
_OF_KERNELS = [
    "AverageMKKM", "CoregSC", "FAMKKM", "LKAM", "MKKM", "MKKMMR", "MVCLFA",
    "MultiKernelPowerKMeans", "ONKC", "RMKKM", "SimpleMKKM",
]  # fmt: skip
CASES = [
    Case("PowerKMeans", 400_000, 20, 0.5, 30),
    Case("FuzzyCMeans", 400_000, 20, 0.5, 30),
    Case("RFFKernelPowerKMeans", 400_000, 20, 0.5, 30, parameters=[("cache", False)]),
    Case("RandomFourierFeatures", 400_000, 20, 0.5, 30),
    Case("RFFMultiKernelPowerKMeans", 20_000, 20, 1.5, 8000),
    Case("NystroemKernelKMeans", 10_000, 20, 1.5, 8000),
    Case("SMKC", 5000, 20, 1.5, 16_000, parameters=_KERNELS),
    Case("DiffusionMap", 20_000, 20, 1.5, 4000),
    Case("DiffusionPowerKMeans", 20_000, 2, 1.5, 2000),
    Case("DiffusionPowerKMeans", 100_000, 600, 1.5, 2000),
    Case("DiffusionPowerKMeans", 200_000, 2, 1.5, 2000),
    Case("DiffusionPowerKMeans", 400_000, 50, 2.7, from_source=True),
    *(Case(name, 1500, 20, 0, matrices=6) for name in _OF_ONE_KERNEL),
    Case("LMKKM", 1500, 20, 0, matrices=24, parameters=_KERNELS),
    *(Case(name, 1500, 20, 0, matrices=6, parameters=_KERNELS) for name in _OF_KERNELS),
]


def blocks(n: int, d: int, size: int = 10_000) -> Any:
    """Yield float32 rows of ten Gaussian clusters that overlap."""
    random = np.random.default_rng(0)
    centers = random.standard_normal((10, d), dtype="f") / 2
    for begin in range(0, n, size):
        rows = random.standard_normal((min(size, n - begin), d), dtype="f")
        yield rows + centers[random.integers(0, 10, len(rows))]


def measure(case: Case) -> float:
    """Return the peak of a fit in this process, in bytes beyond X."""
    warnings.simplefilter("ignore")

    def model() -> Any:
        new = getattr(rffpk, case.name)(random_state=0, n_jobs=1, **dict(case.parameters))
        return new.set_params(n_clusters=10) if "n_clusters" in new.get_params() else new

    model().fit(next(blocks(1000, case.d)))  # threads and libraries
    X: Any = lambda: blocks(case.n, case.d)  # noqa: E731
    if not case.from_source:
        X = np.empty((case.n, case.d), dtype="f")
        for i, rows in enumerate(blocks(*X.shape)):
            X[10_000 * i : 10_000 * i + len(rows)] = rows
    timing.forget_peak()
    before = timing.status("VmRSS")
    model().fit(X)
    return 1024 * (timing.status("VmHWM") - before)


def main() -> None:
    names = commands.Names(sorted({case.name for case in CASES}))
    args = commands.arguments(__doc__, classes=names, scale=1.0)
    failed = False
    tables.print_heading("class", "rows", "columns", "MB of X", "MB beyond X", "limit, MB")
    for case in CASES:
        if case.name not in args.classes:
            continue
        case = case._replace(n=max(1000, int(args.scale * case.n)))
        beyond = timing.in_own_process(measure, case)
        failed |= beyond > case.limit()
        name = case.name + ", a source" * case.from_source
        sizes = [4 * case.n * case.d / 1e6, beyond / 1e6, case.limit() / 1e6]
        tables.print_row(name, case.n, case.d, *tables.cells(sizes, ".0f"))
    sys.exit(failed)


if __name__ == "__main__":
    main()

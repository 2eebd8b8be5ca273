"""Seconds and memory of FAMKKM by rows and approximation: with and without an n x n matrix.

    python -m bench.speed.famkkm [--rows N ...] [--jobs N]

Two views of mixtures of ten Gaussians, 20 and 30 columns, float32. For each number of rows and each
approximation a new process runs a fit of eleven iterations without k-means. Seconds of an iteration
are medians, of wall-clock time and of CPU time (summed over the threads); peak memory is that of
the process. ACC is that of a whole fit.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from bench import commands, tables
from bench.datasets import gaussian_views
from bench.timing import clocks, in_own_process, peak_memory, seconds
from rffpk import FAMKKM, clustering_accuracy

OPERATORS = {
    "dense": {},
    "rff, 64 frequencies": {"approximation": ("rff", 64)},
    "nystroem, 128 anchors": {"approximation": ("nystroem", 128)},
}
MOST_ROWS = {"dense": 10_000}
ACC_ROWS = 100_000  # ACC is measured up to this many rows


class Fused(FAMKKM):
    """FAMKKM without k-means, which records the times at which iterations end."""

    def _record(self, *record: object) -> None:
        super()._record(*record)
        self.times_ = [*getattr(self, "times_", []), clocks()]

    def _label(self, k: int, random: object) -> None:
        pass


class Measured(NamedTuple):
    total: float
    iteration: float
    processors: float
    peak: float
    acc: float | None


def measure(n: int, name: str, n_jobs: int | None) -> Measured:
    xs, y = gaussian_views(n, (20, 30))
    model = Fused(10, max_iter=11, tol=0, random_state=0, n_jobs=n_jobs, **OPERATORS[name])
    total = seconds(partial(model.fit, xs))
    iteration, processors = np.median(np.diff(model.times_, axis=0), axis=0)
    peak, acc = peak_memory(), None
    if n <= ACC_ROWS:
        whole = FAMKKM(10, random_state=0, n_jobs=n_jobs, **OPERATORS[name]).fit(xs)
        acc = clustering_accuracy(y, whole.labels_)
    return Measured(total, iteration, processors, peak, acc)


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--jobs", type=int)
    args = parser.parse_args()
    tables.print_heading(
        "rows", "operator", "s, 11 iterations", "s an iteration", "CPU s", "peak MB", "ACC"
    )
    for n in args.rows:
        for name in OPERATORS:
            if n > MOST_ROWS.get(name, n):
                continue
            found = in_own_process(measure, n, name, args.jobs)
            tables.print_row(
                n,
                name,
                f"{found.total:.2f}",
                f"{found.iteration:.3f}",
                f"{found.processors:.3f}",
                f"{found.peak:.0f}",
                "" if found.acc is None else f"{found.acc:.3f}",
            )


if __name__ == "__main__":
    main()

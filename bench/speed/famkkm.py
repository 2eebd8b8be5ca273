"""Measure FAMKKM with kernel matrices and with approximations: seconds and memory by rows.

    python -m bench.speed.famkkm [--rows N ...] [--jobs N]

Two views of mixtures of ten Gaussians, 20 and 30 columns, float32. For each number of rows and each
approximation a new process runs a fit of eleven iterations without k-means. Seconds of an iteration
are medians, of wall-clock time and of CPU time (summed over the threads); peak memory is that of
the process. ACC is that of a whole fit.
"""

from __future__ import annotations

from functools import partial

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


def measure(n: int, name: str, n_jobs: int | None) -> list[str]:
    """Return the cells of a row."""
    xs, y = gaussian_views(n, (20, 30))
    model = Fused(10, max_iter=11, tol=0, random_state=0, n_jobs=n_jobs, **OPERATORS[name])
    total = seconds(partial(model.fit, xs))
    iteration, processors = np.median(np.diff(model.times_, axis=0), axis=0)
    row = [f"{total:.2f}", f"{iteration:.3f}", f"{processors:.3f}", f"{peak_memory():.0f}"]
    if n > ACC_ROWS:
        return [*row, ""]
    whole = FAMKKM(10, random_state=0, n_jobs=n_jobs, **OPERATORS[name]).fit(xs)
    return [*row, f"{clustering_accuracy(y, whole.labels_):.3f}"]


def main() -> None:
    args = commands.arguments(__doc__, rows=(10_000, 100_000, 1_000_000), jobs=int)
    times = "s, 11 iterations", "s an iteration", "CPU s"
    tables.print_heading("rows", "operator", *times, "peak MB", "ACC")
    for n in args.rows:
        for name in OPERATORS:
            if n <= MOST_ROWS.get(name, n):
                tables.print_row(n, name, *in_own_process(measure, n, name, args.jobs))


if __name__ == "__main__":
    main()

"""Measure the last passes of a fit with bounds of distances, and without.

Fits of 10^6 x 50 rows, k = 10, float32; fits with and without bounds alternate, and seconds are
medians. "Visited" is the share of the rows that a pass visits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bench import commands, tables
from bench.datasets import mixture
from rffpk import PowerKMeans, RFFKernelPowerKMeans
from rffpk.anneal import hard_pass, steps
from rffpk.system.tuning import TUNING

VISITED: list[float] = []  # the share of the rows that each pass visits


def recorded(rows: Any, theta: np.ndarray, before: Any, need: Any) -> Any:
    """Make a pass, and keep the share of its rows that it visits."""
    sums, assigned = hard_pass.step(rows, theta, before, need)
    if assigned.bounds is not None:
        VISITED.append(assigned.bounds.visited / rows.n)
    return sums, assigned


def last_passes(estimator: Any, X: np.ndarray, tol: float, bounded: bool) -> np.ndarray:
    """Return the seconds of the passes over all rows."""
    before = TUNING.hardpasses
    if not bounded:
        TUNING.hardpasses = replace(before, bounds_rows=len(X) + 1)
    VISITED.clear()
    model = estimator(10, tol=tol, random_state=0).fit(X)
    TUNING.hardpasses = before
    return np.array([r["seconds"] for r in model.history_ if r["rows"] == len(X) and "s" in r])


def main() -> None:
    args = commands.arguments(__doc__, rows=1_000_000, repeats=5, tol=1e-3)
    steps.step = recorded
    tables.print_heading(
        "estimator", "clusters", "passes over all rows", "visited in the last five",
        "last five, s", "last five without, s", "two without, s",
    )  # fmt: skip
    for apart, kind in ((0.35, "overlap"), (1.0, "do not overlap")):
        X = mixture(args.rows, apart)
        for estimator in (RFFKernelPowerKMeans, PowerKMeans):
            runs: dict[bool, list[np.ndarray]] = {True: [], False: []}
            for _ in range(args.repeats):
                for bounded in (False, True):
                    runs[bounded].append(last_passes(estimator, X, args.tol, bounded))
            fast, plain = (np.median(np.stack(times), axis=0) for times in runs.values())
            visited = ", ".join(f"{share:.1%}" for share in VISITED[-len(fast) :][-5:])
            times = fast[-5:].sum(), plain[-5:].sum(), 2 * np.median(plain)
            tables.print_row(estimator.__name__, kind, len(fast), visited, *tables.cells(times))


if __name__ == "__main__":
    main()

"""Seconds of the passes over all rows that end a fit, with bounds of distances and without.

    python -m bench.speed.bounds [--rows N] [--repeats N] [--tol X]

Fits of 10^6 x 50 rows, k = 10, float32; fits with and without bounds alternate, and seconds are
medians. "Visited" is the share of the rows that a pass visits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bench import commands, tables
from bench.internals import TUNING, hard_pass, steps
from bench.speed.end_to_end import CLUSTERS, mixture
from rffpk import PowerKMeans, RFFKernelPowerKMeans

VISITED: list[float] = []  # the share of the rows that each pass visits


def recorded(rows: Any, theta: np.ndarray, before: Any, need: Any) -> Any:
    """Make a pass, and keep the share of its rows that it visits."""
    sums, assigned = hard_pass.step(rows, theta, before, need)
    if assigned.bounds is not None:
        VISITED.append(assigned.bounds.visited / rows.n)
    return sums, assigned


def last_passes(estimator: Any, X: np.ndarray, tol: float, bounded: bool) -> np.ndarray:
    """Seconds of the passes over all rows."""
    before = TUNING.hardpasses
    if not bounded:
        TUNING.hardpasses = replace(before, bounds_rows=len(X) + 1)
    VISITED.clear()
    model = estimator(CLUSTERS, tol=tol, random_state=0).fit(X)
    TUNING.hardpasses = before
    return np.array([r["seconds"] for r in model.history_ if r["rows"] == len(X) and "s" in r])


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tol", type=float, default=1e-3)
    args = parser.parse_args()
    steps.step = recorded
    tables.print_heading(
        "estimator", "clusters", "passes over all rows", "visited in the last five",
        "last five, s", "last five without, s", "two without, s",
    )  # fmt: skip
    for apart, kind in ((0.35, "overlap"), (1.0, "do not overlap")):
        X = mixture(args.rows, apart)
        for estimator in (RFFKernelPowerKMeans, PowerKMeans):
            found: dict[bool, list[np.ndarray]] = {True: [], False: []}
            for _ in range(args.repeats):
                for bounded in (False, True):
                    found[bounded].append(last_passes(estimator, X, args.tol, bounded))
            fast, plain = (np.median(np.stack(runs), axis=0) for runs in found.values())
            tables.print_row(
                estimator.__name__,
                kind,
                len(fast),
                ", ".join(f"{share:.1%}" for share in VISITED[-len(fast) :][-5:]),
                f"{fast[-5:].sum():.3f}",
                f"{plain[-5:].sum():.3f}",
                f"{2 * np.median(plain):.3f}",
            )


if __name__ == "__main__":
    main()

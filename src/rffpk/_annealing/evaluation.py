"""The end of a search over features: passes over all rows, and what is published of these."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rffpk._annealing import swaps
from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Result, Schedule
from rffpk._annealing.seeding import MANY
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, Sums, accurate_cost, one_pass


def finish(
    run: FeatureRun, levels: list[Rows], end: Result, schedule: Schedule, patience: int
) -> None:
    """Passes over growing samples and then over all rows, at the exponent of the end; many clusters
    are improved on each of them, as a sample has few rows of each."""
    s, stage = (-math.inf, "hard") if schedule.ends_hard else (end.s, "settle")
    for rows in levels:
        run.rows = replace(rows, alpha=run.rows.alpha)
        if patience and len(run.theta) >= MANY:
            swaps.improve(run, math.inf, patience)
        # the sampling error of the centroids is larger than this
        coarse = 0.1 * math.sqrt(len(run.theta) / rows.n) if rows is not levels[-1] else 0.0
        converged = run.settle(stage, s, max(schedule.tol, coarse), schedule.max_iter)
    # these passes do not lower s, so a final exponent that was not reached stays so
    end.converged = converged and (schedule.ends_hard or end.converged)


@dataclass(frozen=True)
class Evaluation:
    """The end of a run, evaluated at the centroids in the dtype of X, as they are published."""

    centers: Array  # (k, F), the dtype of X
    theta: Array  # the same, shifted, float64
    labels: NDArray[np.int32]
    nearest: Array
    soft_sums: Sums
    hard_sums: Sums
    inertia: float


def evaluate(rows: Rows, theta: Array, s: float) -> Evaluation:
    """The sums and labels of all rows at the end, at the exponent `s` and in the hard limit."""
    centers = (theta + rows.shift).astype(rows.dtype)
    theta = centers.astype(np.float64) - rows.shift
    soft_sums, _ = one_pass(rows, theta, s)
    plain = replace(rows, eta=None)
    sums, outputs = one_pass(plain, theta, -math.inf, want=("labels", "nearest"))
    labels = outputs["labels"]
    estimate = float((sums.view_costs() @ rows.alpha).sum())
    means = sums.centroids(theta, rows.dtype)
    inertia = accurate_cost(plain, estimate, sums, means, labels)
    return Evaluation(centers, theta, labels, outputs["nearest"], soft_sums, sums, inertia)

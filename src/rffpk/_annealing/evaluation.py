"""The end of a search over features: passes over all rows, and what is published of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rffpk._annealing import swaps
from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Result, Schedule
from rffpk._annealing.seeding import MANY
from rffpk._data.arrays import Array
from rffpk._data.passes import accurate_cost, pass_of_block
from rffpk._data.rows import Rows
from rffpk._data.sums import Sums


def finish(
    run: FeatureRun, levels: list[Rows], end: Result, schedule: Schedule, patience: int
) -> None:
    """Passes over growing samples and then over all rows, at the exponent of the end; many clusters
    are improved on each of them, as a sample has few rows of each, except on rows that are read."""
    s, stage = (-math.inf, "hard") if schedule.ends_hard else (end.s, "settle")
    for rows in levels:
        run.rows = replace(rows, alpha=run.rows.alpha)
        if patience and len(run.theta) >= MANY and rows.stream is None:
            swaps.improve(run, math.inf, patience)
        # the sampling error of the centroids is larger than this
        coarse = 0.1 * math.sqrt(len(run.theta) / rows.n) if rows is not levels[-1] else 0.0
        converged = run.settle(stage, s, max(schedule.tol, coarse), schedule.max_iter)
    # these passes do not lower s, so a final exponent that was not reached stays so
    end.converged = converged and (schedule.ends_hard or end.converged)


Publish = Callable[[Rows, Array, Array], None]


@dataclass(frozen=True)
class Evaluation:
    """The end of a run, evaluated at the centroids in the dtype of X, as they are published."""

    centers: Array  # (k, F), the dtype of X
    theta: Array  # the same, shifted, float64
    soft_sums: Sums  # without N
    hard_sums: Sums  # without N
    inertia: float


def evaluate(rows: Rows, theta: Array, s: float, publish: Publish | None) -> Evaluation:
    """The sums of all rows at the end, at the exponent `s` and in the hard limit, in one reading;
    `publish` is given the rows, their labels and the squared distances to the nearest centroids,
    block by block."""
    centers = (theta + rows.shift).astype(rows.dtype)
    theta = centers.astype(np.float64) - rows.shift
    soft, hard = rows.fold(partial(_evaluated, theta, s, publish, rows.stream is None), _both)
    estimate = float((hard.view_costs() @ rows.alpha).sum())
    means = hard.centroids(theta, rows.dtype)
    inertia = accurate_cost(replace(rows, eta=None), estimate, hard, means, theta)
    return Evaluation(centers, theta, soft.without_moments(), hard.without_moments(), inertia)


_Pair = tuple[Sums, Sums]  # at an exponent, and in the hard limit


def _evaluated(
    theta: Array, s: float, publish: Publish | None, alone: bool, block: Rows, before: _Pair | None
) -> _Pair:
    """The sums of a block; `alone`: no other follows, which would add to N."""
    soft, hard = before or (None, None)
    soft, _ = pass_of_block(block, theta, s, before=soft)
    if alone:
        soft = soft.without_moments()
    plain, wanted = replace(block, eta=None), ("labels", "nearest") if publish else ()
    hard, outputs = pass_of_block(plain, theta, -math.inf, want=wanted, before=hard)
    if publish is not None:
        publish(plain, outputs["labels"], outputs["nearest"])
    return soft, hard


def _both(first: _Pair, second: _Pair) -> _Pair:
    return first[0] + second[0], first[1] + second[1]

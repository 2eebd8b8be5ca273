"""Swaps: single centroids are moved far, and the move is kept if it lowers the hard objective.

Annealing moves all centroids a little, a swap moves one of them far: from where its removal raises
the objective least to a costly row.
"""

from __future__ import annotations

import math

import numpy as np

from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Stage
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, one_pass

# After a swap at most _PASSES passes follow. They end when the centroids move by at most _TOL, or
# when the cost exceeds that before the swap by more than _HOPE times the gain of the last pass.
_TOL, _PASSES, _HOPE = 1e-3, 8, 4.0

# Number of candidate rows for the new position of a centroid, and largest numbers of rows and of
# their distances on which the change of the cost is estimated.
_CANDIDATES, _ROWS, _DISTANCES = 5, 20_000, 2**24

_TRIALS = 10  # most swaps are `patience` and this many for each centroid
_GAIN = 1e-5  # the least relative gain that counts


def improve(run: FeatureRun, cost: float, patience: int) -> None:
    """Swap centroids until `patience` swaps in a row have not lowered the hard objective `cost`, or
    no row is away from the centroids."""
    failed = 0
    for _ in range(patience + _TRIALS * len(run.theta)):
        before = run.theta, run.rows
        if failed == patience or not _swap(run):
            break
        new = _descend(run, cost)
        if new < (1 - _GAIN) * cost:
            cost, failed = new, 0
        else:
            (run.theta, run.rows), failed = before, failed + 1


def _descend(run: FeatureRun, cost: float) -> float:
    """A few hard passes, fewer if they will not reach `cost`; returns the objective after them."""
    last = math.inf
    for _ in range(_PASSES):
        result = run.step(Stage("swap", -math.inf))
        gain, last = last - result.objective, result.objective
        if result.shift <= _TOL or last - cost > _HOPE * gain:
            break
    return run.cost(-math.inf)


def _swap(run: FeatureRun) -> bool:
    """Move the centroid whose removal raises the objective least to the one of a few rows, drawn as
    k-means++ draws them, that lowers it most. Returns False if no row is away from the
    centroids."""
    rows, k = _some_rows(run), len(run.theta)
    _, outputs = one_pass(rows, run.theta, -math.inf, want=("distances", "labels"))
    distances, labels = rows.effective_distances(outputs["distances"]), outputs["labels"]
    each = np.arange(rows.n)
    least = distances[each, labels].astype(np.float64)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight.astype(np.float64)
    share = weight * least
    if not share.any():
        return False
    places = run.random.choice(rows.n, _CANDIDATES, p=share / share.sum())
    candidates = rows.take(places).features()
    chosen, new = _best_candidate(rows, candidates, least, weight)
    distances[each, labels] = np.inf
    raised = weight * (np.minimum(distances.min(axis=1), new) - np.minimum(least, new))
    theta = np.array(run.theta, dtype=np.float64)
    theta[int(np.bincount(labels, raised, minlength=k).argmin())] = candidates[chosen]
    run.theta = theta
    return True


def _some_rows(run: FeatureRun) -> Rows:
    """Random rows on which changes of the cost are estimated: O(k) memory for each."""
    rows, k = run.rows, len(run.theta)
    most = max(2 * k, min(_ROWS, _DISTANCES // k))
    if rows.n <= most:
        return rows
    return rows.take(np.sort(run.random.randint(rows.n, size=most)))


def _best_candidate(
    rows: Rows, candidates: Array, least: Array, weight: Array
) -> tuple[int, Array]:
    """The candidate that lowers the cost most, and the distances of the rows to it."""
    _, outputs = one_pass(rows, candidates, -math.inf, want=("distances",))
    distances = rows.effective_distances(outputs["distances"])
    chosen = int((weight @ np.minimum(least[:, None], distances)).argmin())
    return chosen, distances[:, chosen]

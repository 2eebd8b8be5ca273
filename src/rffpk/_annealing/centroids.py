"""Which centroids coincide, and where the centroids of empty clusters move to."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from rffpk import _config
from rffpk._data.arrays import Array
from rffpk._data.passes import one_pass, shifted_features
from rffpk._data.rows import Rows

# Centroids whose squared distance is at most this fraction of the mean cost of a row coincide.
_COINCIDENT = 1e-6


def coincidence(variance: float, dtype: Any) -> tuple[float, float]:
    """The squared distance up to which centroids coincide, as a fraction of the mean cost of a row,
    and that of the rounding error: the larger of the two counts."""
    return _COINCIDENT, float((8 * np.finfo(dtype).eps) ** 2 * variance)


def count_distinct(theta: Array, close: float) -> int:
    """The number of centroids whose squared distance to all distinct ones before them exceeds
    `close`. O(k^2 F), but few features decide most pairs."""
    return _config.backend().count_distinct(theta, close)


def costliest_rows(rows: Rows, theta: Array, count: int, variance: float) -> Array:
    """The features of up to `count` rows with the largest costs, the costliest first."""
    visit = partial(_costliest_of, theta, count, variance)
    return rows.fold(visit, partial(_costliest_of_both, count))[1]


_Costly = tuple[Array, Array]  # costs, the largest first, and features


def _costliest_of(
    theta: Array, count: int, variance: float, block: Rows, before: _Costly | None
) -> _Costly:
    """The costliest rows of a block and those before."""
    _, outputs = one_pass(block, theta, -math.inf, want=("nearest",))
    cost = row_costs(outputs["nearest"], block.weight, variance, block.dtype)
    found = costliest(cost, count)
    features = np.empty((0, theta.shape[1]), dtype=block.dtype)
    if len(found):
        features = features_at(block, found, theta)
    here = cost[found], features
    return here if before is None else _costliest_of_both(count, before, here)


def _costliest_of_both(count: int, first: _Costly, second: _Costly) -> _Costly:
    costs = np.concatenate([first[0], second[0]])
    kept = costliest(costs, count)
    return costs[kept], np.concatenate([first[1], second[1]])[kept]


def features_at(rows: Rows, places: Array, theta: Array) -> Array:
    """The features of some rows as new centroids: in a view that a row lacks, those of the nearest
    of the centroids `theta`."""
    some = rows.take(places)
    features = shifted_features(some)
    if some.present is None:
        return features
    nearest = one_pass(some, theta, -math.inf, want=("labels",))[1]["labels"]
    return np.where(some.present_features(), features, theta[nearest])


def row_costs(nearest: Array, weight: Array | None, variance: float, dtype: Any) -> Array:
    """Weighted squared distances of rows to their nearest centroids.

    Those that are rounding errors are zero: if there are fewer distinct rows than centroids, the
    centroids of empty clusters stay where they were.
    """
    least = 64 * float(np.finfo(dtype).eps) * variance
    nearest = nearest.astype(np.float64)
    nearest[nearest <= least] = 0
    return nearest if weight is None else nearest * weight


def costliest(costs: Array, count: int) -> Array:
    """The places of the largest positive costs, the largest first, of equal ones the first."""
    order = np.argsort(-costs, kind="stable")[:count]
    return np.asarray(order[costs[order] > 0])

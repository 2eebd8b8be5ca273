"""Which centroids coincide, and where the centroids of empty clusters move to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rffpk import _config
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, one_pass

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
    costs, features = np.empty(0), np.empty((0, theta.shape[1]), dtype=rows.dtype)
    for block in rows.blocks():
        _, outputs = one_pass(block, theta, -math.inf, want=("nearest",))
        cost = row_costs(outputs["nearest"], block.weight, variance, rows.dtype)
        found = costliest(cost, count)
        if len(found):
            costs = np.r_[costs, cost[found]]
            features = np.concatenate([features, block.take(found).features()])
            kept = costliest(costs, count)
            costs, features = costs[kept], features[kept]
    return features


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

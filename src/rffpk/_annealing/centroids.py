"""Which centroids coincide, and where the centroids of empty clusters move to."""

from __future__ import annotations

from typing import Any

import numpy as np

from rffpk import _config
from rffpk._data.arrays import Array

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


def costliest_rows(
    nearest: Array, weight: Array | None, count: int, variance: float, dtype: Any
) -> Array:
    """Up to `count` rows with the largest weighted squared distance to their nearest centroid.

    Rows whose distance to a centroid is a rounding error are left out: if there are fewer distinct
    rows than centroids, the centroids of empty clusters stay where they were.
    """
    nearest = nearest.astype(np.float64)
    nearest[nearest <= 64 * np.finfo(dtype).eps * variance] = 0
    cost = nearest if weight is None else nearest * weight
    order = np.argsort(-cost, kind="stable")[:count]
    return order[cost[order] > 0]

"""Which centroids coincide, which clusters are empty, and where the centroids of these go."""

from __future__ import annotations

from typing import Any

import numpy as np

from rffpk._data.arrays import Array

# Centroids whose squared distance is at most this fraction of the mean cost of a row coincide.
_COINCIDENT = 1e-6

_PRODUCT_ERROR = 1e-12  # of squared distances from a product, relative to the squared norms


def coincidence(cost: float, variance: float, dtype: Any) -> float:
    """The squared distance up to which centroids coincide: small compared with the mean cost of a
    row, or rounding."""
    rounding = (8 * np.finfo(dtype).eps) ** 2 * variance
    return float(max(_COINCIDENT * cost, rounding))


def count_distinct(theta: Array, close: float) -> int:
    """Centroids farther than `close` (squared) from all distinct ones before them. O(k^2 F): one
    product, and differences for the pairs that it leaves in doubt."""
    theta = np.asarray(theta, dtype=np.float64)
    norms = np.einsum("jf,jf->j", theta, theta)
    sums = norms[:, None] + norms
    doubtful = sums - 2 * (theta @ theta.T) <= close + _PRODUCT_ERROR * sums
    distinct = np.ones(len(theta), dtype=bool)
    for j in np.flatnonzero(np.tril(doubtful, -1).any(axis=1)):
        earlier = np.flatnonzero(doubtful[j, :j] & distinct[:j])
        gaps = ((theta[earlier] - theta[j]) ** 2).sum(axis=1)
        distinct[j] = not (gaps <= close).any()
    return int(distinct.sum())


def costliest_rows(
    nearest: Array, weight: Array | None, count: int, variance: float, dtype: Any
) -> Array:
    """Up to `count` rows with the largest weighted squared distance to their nearest centroid.

    Rows at rounding distance from a centroid are left out: with fewer distinct rows than centroids
    there is no place for the centroids of empty clusters, and they stay where they were.
    """
    nearest = nearest.astype(np.float64)
    nearest[nearest <= 64 * np.finfo(dtype).eps * variance] = 0
    cost = nearest if weight is None else nearest * weight
    order = np.argsort(-cost, kind="stable")[:count]
    return order[cost[order] > 0]

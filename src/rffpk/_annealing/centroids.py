"""Which centroids coincide, and where the centroids of empty clusters move to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rffpk._data.arrays import Array
from rffpk._data.passes import make_rows, one_pass

# Centroids whose squared distance is at most this fraction of the mean cost of a row coincide.
_COINCIDENT = 1e-6

# Error of squared distances that come from a matrix product, relative to the squared norms.
_PRODUCT_ERROR = 1e-12

# From so many centroids on a pass finds those that may coincide with another one.
_MANY = 64


def coincidence(cost: float, variance: float, dtype: Any) -> float:
    """The squared distance up to which centroids coincide: a small fraction of the mean cost of a
    row, or the rounding error."""
    rounding = (8 * np.finfo(dtype).eps) ** 2 * variance
    return float(max(_COINCIDENT * cost, rounding))


def count_distinct(theta: Array, close: float) -> int:
    """The number of centroids whose squared distance to all distinct ones before them exceeds
    `close`. O(k^2 F): one product, and differences for the pairs that it does not decide."""
    theta = np.asarray(theta, dtype=np.float64)
    if len(theta) < _MANY:
        return _count_distinct(theta, close)
    shift = np.zeros(theta.shape[1])
    rows = make_rows([theta], [None], None, 1, [shift])
    gaps = one_pass(rows, theta, -math.inf, want=("second",))[1]["second"]
    alone = gaps > close + 4 * _PRODUCT_ERROR * np.einsum("jf,jf->j", theta, theta).max()
    return int(alone.sum()) + _count_distinct(theta[~alone], close)


def _count_distinct(theta: Array, close: float) -> int:
    norms = np.einsum("jf,jf->j", theta, theta)
    sums = norms[:, None] + norms
    doubtful = sums - 2 * (theta @ theta.T) <= close + _PRODUCT_ERROR * sums
    distinct = np.ones(len(theta), dtype=bool)
    for j in np.flatnonzero(np.tril(doubtful, -1).any(axis=1)):
        earlier = np.flatnonzero(doubtful[j, :j] & distinct[:j])
        gaps = ((theta[earlier] - theta[j]) ** 2).sum(axis=1)
        distinct[j] = not (gaps <= close).any()
    return int(distinct.sum())


def merger_message(distinct: int, k: int, xs: list[Array], ends_hard: bool, name: str = "X") -> str:
    """The warning that only `distinct` of k centroids are distinct, with the cause and the remedy.
    `xs` are the views of the rows that count, and `name` what the message calls them."""
    rows = len(np.unique(np.hstack(xs), axis=0))
    if rows < k:
        cause = f"{name} has {rows} distinct rows; take n_clusters <= {rows}."
    else:
        lower = "" if ends_hard else " or a lower final exponent"
        cause = f"centroids merged; take fewer clusters{lower}."
    return f"{distinct} of n_clusters={k} centroids are distinct: {cause}"


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

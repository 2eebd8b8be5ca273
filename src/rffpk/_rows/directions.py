"""Directions in which distances from many centroids are bounded from below.

The coordinates of a row in q orthonormal directions, and the length of what is left of it, bound
its distances. Passes over many centroids then compute few of them (_core/bounds.h).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rffpk._rows.passes import pass_of_block, shifted_features
from rffpk._rows.rows import Rows
from rffpk._rows.sums import Sums
from rffpk._utils.arrays import Array, Unit
from rffpk._utils.linalg import basis_of
from rffpk._utils.sparse_rows import SparseRows

# They pay from so many multiply-adds of a pass on.
_LEAST_WORK = 1 << 31
_LEAST_COLUMNS = 32

_NUMBERS = (8, 12, 16, 24, 32, 48, 64, 96, 128)  # of directions that are tried, ...
_ROWS = 256  # ... on so many rows
_ITERATIONS = 2
# A distance that is computed alone takes the time of so many in a product of matrices; ...
_ALONE = 6.0
_EACH = 12.0  # ... a bound that of so many columns, beyond those of the directions; ...
_MOST = 0.7  # ... and all that must take less than this part of a pass without.


def find_directions(rows: Rows, theta: Array, s: float = -math.inf) -> Array | None:
    """Directions (q, F) for passes of the hard rule at many centroids like `theta`, with power
    means of the exponent `s`; None where all distances are computed as fast."""
    k, F = theta.shape
    if not _possible(rows) or rows.n * k * F < _LEAST_WORK:
        return None
    theta = theta.astype(np.float64)
    numbers = [q for q in _NUMBERS if 2 * q <= F]
    basis = _leading(theta, numbers[-1])
    reach = _reach(k, s, rows.dtype)
    counts = _within_reach(_some(rows), theta, basis, numbers, reach)
    costs = [k * (q + _EACH) + q * F + _ALONE * F * count for q, count in zip(numbers, counts)]
    best = int(np.argmin(costs))
    if costs[best] > _MOST * k * F:
        return None
    return np.ascontiguousarray(basis[:, : numbers[best]].T, dtype=rows.dtype)


def _some(rows: Rows) -> Array:
    some = rows.take(np.arange(0, rows.n, max(1, rows.n // _ROWS)))
    return shifted_features(some).astype(np.float64)


def bounded_pass(
    directions: Array | None, rows: Rows, theta: Array, s: float = -math.inf, **options: Any
) -> tuple[Sums, dict[str, Array]]:
    """A pass of the hard rule over rows in arrays, by the directions if there are some; `options`
    are those of `pass_of_block`."""
    given = None
    if directions is not None:
        given = directions, coordinates(theta, directions), _reach(len(theta), s, rows.dtype)
    return pass_of_block(rows, theta, s, directions=given, **options)


def _reach(k: int, s: float, dtype: Any) -> float:
    """The ratio of distances to the least of a row beyond which the terms of k centroids are less
    than the rounding error of its power mean."""
    return 1.0 if math.isinf(s) else float(-s * np.finfo(dtype).eps / k) ** (1 / s)


def coordinates(theta: Array, directions: Array) -> Array:
    """The coordinates (k, q + 1) of centroids, with the lengths of what is left, at least."""
    at, basis = theta.astype(np.float64), directions.astype(np.float64)
    along, eps = at @ basis.T, float(np.finfo(directions.dtype).eps)
    squares = (at**2).sum(axis=1)
    error = 8 * (np.sqrt(len(basis)) + 2) * eps * squares
    rest = np.sqrt(np.maximum(squares - (along**2).sum(axis=1), 0) + error)
    return np.column_stack([along, rest]).astype(directions.dtype)


def _possible(rows: Rows) -> bool:
    one = len(rows.xs) == 1 and isinstance(rows.maps[0], (Unit, type(None)))
    fixed = rows.eta is None and rows.stream is None and rows.present is None
    plain = one and fixed and not isinstance(rows.xs[0], SparseRows) and rows.alpha[0] == 1
    return plain and len(rows.shift) >= _LEAST_COLUMNS


def _leading(theta: Array, q: int) -> Array:
    """Directions (F, q) in which centroids are farthest apart, nearly."""
    start = np.random.RandomState(0).standard_normal((len(theta), q))
    found = basis_of(theta.T @ start)[0]
    for _ in range(_ITERATIONS):
        found = basis_of(theta.T @ (theta @ found))[0]
    values, vectors = np.linalg.eigh((theta @ found).T @ (theta @ found))
    return found @ vectors[:, ::-1]


def _within_reach(
    x: Array, theta: Array, basis: Array, numbers: list[int], reach: float
) -> list[float]:
    """The mean number of centroids that bounds by so many directions leave open for a row."""
    norm, square = (x**2).sum(axis=1)[:, None], (theta**2).sum(axis=1)
    least = (norm + square - 2 * x @ theta.T).min(axis=1, keepdims=True) * reach
    y, at, found, inner = x @ basis, theta @ basis, [], np.zeros((len(x), len(theta)))
    for low, high in zip([0, *numbers], numbers):
        inner += y[:, low:high] @ at[:, low:high].T
        left = norm[:, 0] - (y[:, :high] ** 2).sum(axis=1)
        rest = np.sqrt(np.maximum(np.outer(left, square - (at[:, :high] ** 2).sum(axis=1)), 0))
        found.append(float((norm + square - 2 * (inner + rest) <= least).sum(axis=1).mean()))
    return found

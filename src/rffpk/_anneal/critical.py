"""The critical exponent s_c, above which the merged state, all centroids at one point, is stable.

docs/math.md, section 8, derives the formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rffpk._rows.rows import Rows
from rffpk._rows.sums import typicality
from rffpk._utils.arrays import Array
from rffpk._utils.linalg import DENSE, eigh, leading_eigenvectors
from rffpk._utils.sparse_rows import Columns, SparseRows, centered_products

# Numbers of rows that it is computed from. With an exact kernel, vectors for m rows cost O(m^3), so
# that fewer rows are taken.
_FEATURE_ROWS, KERNEL_ROWS = 1000, 500


def critical_exponent(features: Array, weight: Array | None, present: Array | None = None) -> float:
    """s_c = 1 - 1/(2 lambda_max), above which the merged state of all centroids is stable.

    lambda_max is the largest eigenvalue of sum p zz'/sum p over the unit vectors z from the mean
    to the rows. O(m F) times some tens of steps for m rows, by Lanczos' method where
    both m and F are above 300. With a mask (m, F) of the features that rows have, the others are 0,
    and so are their directions; those of each view are divided by the root of the share of the rows
    that have it.
    """
    p = np.ones(len(features)) if weight is None else weight.astype(np.float64)
    z = _about(features, (p @ features) / _weights(p, present), present)
    z, kept = _directions(z, p)
    if not len(z):
        return -math.inf
    p = p[kept]
    if present is not None:
        z = _scaled(z, p, present[kept])
    return 1 - 1 / (2 * _largest_squared_singular_value(z * np.sqrt(p / p.sum())[:, None]))


def _weights(p: Array, present: Array | None) -> Array:
    """The weights of the rows that have each feature; of all rows without a mask."""
    if present is None:
        return np.asarray(p.sum())
    weights = p @ present
    return np.where(weights > 0, weights, 1)


def _about(features: Array, center: Array, present: Array | None) -> Array:
    """Features from a center on, 0 where rows lack them."""
    z = features - center
    return z if present is None else np.where(present, z, 0)


def _scaled(z: Array, p: Array, present: Array) -> Array:
    """Directions over the roots of the shares of the rows that have each feature."""
    total = p.sum()
    if total < np.finfo(float).tiny:  # no row counts
        return z
    return np.asarray(z / np.sqrt(_weights(p, present) / total))


def _directions(z: Array, p: Array) -> tuple[Array, Array]:
    """z / ||z||, and the numbers of its rows: those of a weight p > 0 where z is not zero to
    rounding."""
    norms = np.linalg.norm(z, axis=1)
    apart = _apart(norms, p)
    return z[apart] / norms[apart, None], np.flatnonzero(apart)


def _apart(norms: Array, p: Array) -> Array:
    """A mask of the rows of a weight p > 0 whose distance from the mean is not zero to rounding."""
    norms = np.where(p > 0, norms, 0)
    return np.asarray(norms > 1e-6 * max(norms.max(), np.finfo(float).tiny))


def typical_critical_exponent(
    features: Array, weight: Array | None, eta: Any, m: float, present: Array | None = None
) -> float:
    """The critical exponent with typicality, for one reference distance `eta` of all centroids, or
    for one of each row; with a mask of the features that rows have as in `critical_exponent`.

    The centroids merge where sum q z = 0, q ~ p u^m; with R = sum q u zz' and
    P = m/(m-1) sum q (1-u) zz' over the directions z, s_c = 1 - 1/lambda_max((I/2 - P)^-1 R), and
    every s < 0 is unstable (0.5 is returned) where lambda_max(P) >= 1/2. O(m F min(m, F)).
    """
    p = np.ones(len(features)) if weight is None else weight.astype(np.float64)
    center = (p @ features) / _weights(p, present)
    for _ in range(100):
        distances = (_about(features, center, present) ** 2).sum(axis=1)
        u = typicality(distances, np.array(eta), m)
        q = p * u**m
        if not q.any():  # every row is noise
            return -math.inf
        center, before = (q @ features) / _weights(q, present), center
        if ((center - before) ** 2).sum() <= 1e-16 * np.max(eta):
            break
    z, kept = _directions(_about(features, center, present), p)
    if not len(z):
        return -math.inf
    u, q = u[kept], q[kept] / q.sum()
    if present is not None:
        z = _scaled(z, q, present[kept])
    if len(z) < z.shape[1]:  # coordinates in the space of the rows
        z = np.transpose(np.linalg.qr(z.T)[1])
    R = (z.T * (q * u)) @ z
    P = m / (m - 1) * (z.T * (q * (1 - u))) @ z
    values, vectors = eigh(P)
    if values[-1] >= 0.5:
        return 0.5
    roots = vectors / np.sqrt(0.5 - values)  # of the inverse of I/2 - P
    growth = _largest_eigenvalue(roots.T @ R @ roots)
    return 1 - 1 / growth if growth > 0 else -math.inf


def _largest_squared_singular_value(z: Array) -> float:
    if min(z.shape) <= DENSE:
        return _largest_eigenvalue(z @ z.T if len(z) < z.shape[1] else z.T @ z)
    tall = z if len(z) >= z.shape[1] else z.T
    return float(leading_eigenvectors(lambda v: tall.T @ (tall @ v), 1, tall.shape[1])[0][0])


def of_rows(rows: Rows, features: Columns) -> float:
    """The critical exponent of rows, from their `some_features`; 0 if they are equal."""
    some = slice(None, None, max(1, len(features) // _FEATURE_ROWS))
    features, rows = features[some], rows.take(some)
    if isinstance(features, SparseRows) and rows.eta is None:
        exponent = _of_sparse_rows(features, rows.weight)
        return exponent if math.isfinite(exponent) else 0.0
    if isinstance(features, SparseRows):
        features = features_of(centered_products(features, rows.shift))
    z = rows.scaled(features.astype(np.float64))
    present = None if rows.present is None else rows.present_features()
    if rows.eta is None:
        exponent = critical_exponent(z, rows.weight, present)
    else:
        eta = rows.combined(rows.eta)
        eta = eta if present is None else eta[:, 0]
        exponent = typical_critical_exponent(z, rows.weight, eta, rows.m, present)
    return exponent if math.isfinite(exponent) else 0.0


def _of_sparse_rows(x: SparseRows, weight: Array | None) -> float:
    """`critical_exponent` by the inner products of the directions, whose Gram matrix has the same
    eigenvalues."""
    p = np.ones(len(x)) if weight is None else weight.astype(np.float64)
    gram = centered_products(x, (x.matrix.T @ p) / p.sum())
    norms = np.sqrt(np.maximum(np.diagonal(gram), 0))
    apart = _apart(norms, p)
    if not apart.any():
        return -math.inf
    scale = np.where(apart, np.sqrt(p / p[apart].sum()), 0) / np.where(apart, norms, 1)
    return 1 - 1 / (2 * _largest_eigenvalue(gram * scale * scale[:, None]))


def _largest_eigenvalue(gram: Array) -> float:
    return float(leading_eigenvectors(gram, 1, len(gram))[0][0])


def of_gram(gram: Array, weight: Array | None) -> float:
    """The critical exponent of rows with these inner products; 0 if the rows are equal. O(m^3)."""
    exponent = critical_exponent(features_of(gram), weight)
    return exponent if math.isfinite(exponent) else 0.0


def of_grams(grams: Array, alpha: Array, present: Array, weight: Array | None) -> float:
    """The critical exponent of rows with these inner products (L, m, m) in the views that they
    have, a mask (L, m). O(L m^3)."""
    parts = [
        math.sqrt(a) * features_of(np.where(has[:, None] & has, gram, 0).astype(np.float64))
        for gram, a, has in zip(grams, alpha, present)
    ]
    mask = np.repeat(present.T, len(grams[0]), axis=1)
    exponent = critical_exponent(np.hstack(parts), weight, mask)
    return exponent if math.isfinite(exponent) else 0.0


def features_of(gram: Array) -> Array:
    """Vectors with these inner products, as the rows of a matrix."""
    values, vectors = eigh((gram + gram.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))

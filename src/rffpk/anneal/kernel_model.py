"""A fitted model whose centroids are weights of the fitted rows: what it says of new rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.door import Schema, check_views
from rffpk.rows.sums import hard_weights, power_weights
from rffpk.system import config
from rffpk.system.tiles import by_blocks

# Distances have errors of this part of the numbers that they are differences of.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class KernelCentroids:
    """What a fit leaves of centroids of exact kernels, besides its public attributes."""

    kernels: list[Any]  # fitted
    squares: Array  # (L, k), squared norms of the centroids
    alpha: Array  # (L,), weights of the kernels
    between: Array  # (k, k), squared distances between centroids
    masses: Array  # (k,), of the clusters


@dataclass(frozen=True)
class KernelModel:
    """Centroids as weights of the fitted rows, with the kernels that lead to new rows."""

    fitted: KernelCentroids
    schema: Schema  # of new rows
    several: bool  # whether X has a view of each kernel
    coef: Array  # (k, n), weights of the rows
    exponent: float  # of memberships
    n_threads: int

    def labels(self, X: Any) -> Array:
        """Return the nearest centroid of each row, the first of equals."""
        # without k(x, x), as it does not change the order of distances
        gaps, _ = self._squares(X)
        return gaps.argmin(axis=1).astype(np.int32)

    def memberships(self, X: Any, s: float | None) -> Array:
        """Return memberships (n, k) at an exponent; None: the exponent of the fit."""
        squares, dtype = self._squares(X, "predict_proba")
        return memberships_at(squares, self.exponent if s is None else s, dtype)

    def distances(self, X: Any) -> Array:
        """Return distances (n, k) from the centroids."""
        squares, dtype = self._squares(X, "transform")
        return np.sqrt(squares).astype(dtype, copy=False)

    def nearest_rows(self, X: Any) -> Array:
        """Return the row that is nearest to each centroid, (k,)."""
        return np.asarray(self._squares(X, "medoids")[0].argmin(axis=0))

    def cost(self, X: Any, weight: Any) -> float:
        """Return the weighted sum of squared distances from the nearest centroids."""
        least = self._squares(X, "score")[0].min(axis=1)
        weight = checks.check_sample_weight(weight, len(least), X)
        return float((weight * least).sum())

    def gaps(self) -> tuple[Array, Array]:
        """Return squared distances (k, k) between centroids, and the masses (k,) of clusters."""
        return self.fitted.between, self.fitted.masses

    @config.one_blas_thread()
    def _squares(self, X: Any, caller: str = "") -> tuple[Array, Any]:
        """Return squared distances (n, k) and the dtype of rows; without a `caller` less k(x, x).

        The caller is named if k(x, x) is not known."""
        xs, _ = check_views(X, self.schema)
        if caller and any(kernel.precomputed for kernel in self.fitted.kernels):
            raise ValueError(
                f"{caller} needs k(x, x), which precomputed kernels of new rows do not "
                "contain. For the fitted rows, the score is -inertia_, and "
                "store_memberships=True keeps the memberships."
            )
        weights, kernels = unit_weights(self.coef), self.fitted.kernels

        def of_block(xs: list[Array]) -> Array:
            views = xs if self.several else xs * len(kernels)
            blocks, diagonals = zip(*(kernel.cross(x) for kernel, x in zip(kernels, views)))
            products = [block @ weights.T for block in blocks]
            gaps = gaps_to_centroids(products, self.fitted.squares, self.fitted.alpha)
            if not caller:
                return gaps
            return np.maximum(gaps + (self.fitted.alpha @ np.stack(diagonals))[:, None], 0)

        return by_blocks(of_block, xs, kernels[0].n, self.n_threads), xs[0].dtype


def unit_weights(coef: Array) -> Array:
    """Return weights of the rows (k, n) in double precision and of sum one.

    Centroids that are far from the origin of the kernel would move with their sum."""
    coef = coef.astype(np.float64)
    sums = coef.sum(axis=1, keepdims=True)
    return np.asarray(coef / np.where(sums != 0, sums, 1))


def gaps_to_centroids(products: Iterable[Array], squares: Array, alpha: Array) -> Array:
    """Return squared distances (n, k), less the squared norms of the rows.

    `products` (n, k) are of rows with centroids in each kernel, `squares` (L, k) are the squared
    norms of centroids. Distances that exceed the least by rounding errors are equal to it, so that
    labels do not depend on the order of sums."""
    gaps, sizes = alpha @ squares, alpha @ np.abs(squares)
    for weight, product in zip(alpha, products):
        gaps = gaps - 2 * weight * product
        sizes = sizes + 2 * weight * np.abs(product)
    at = gaps.argmin(axis=1)[:, None]
    least = np.take_along_axis(gaps, at, 1)
    error = _ROUNDING * (sizes + np.take_along_axis(sizes, at, 1))
    return np.where(gaps - least <= error, least, gaps)


def memberships_at(squares: Array, s: float, dtype: Any) -> Array:
    """Return memberships of rows with these squared distances, at an exponent."""
    shares = hard_weights(squares) if math.isinf(s) else power_weights(squares, s)
    return shares[2].astype(dtype, copy=False)

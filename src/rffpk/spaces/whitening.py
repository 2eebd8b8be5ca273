"""Leading principal components, whitened wholly or in part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rffpk.rows import checks, table
from rffpk.rows.arrays import Array, Identity
from rffpk.rows.sample import Opened
from rffpk.rows.table import Columns
from rffpk.spaces.neighbors import drawn_rows
from rffpk.system.linalg import leading_eigenvectors, row_tiles
from rffpk.system.tuning import TUNING

# bench/results/trials.md has the alternatives.
PER_CLUSTER = 2  # components for each cluster, at most

# Components whose standard deviation is below this part of the largest are rounding errors.
_RESOLVED = 1e-6


@dataclass(frozen=True)
class Whitening:
    """Rows as leading principal components over a power of their standard deviations."""

    mean: Array  # (d,)
    matrix: Array  # (d, m)
    unit: bool  # whether rows are scaled to length one
    n_threads: int
    columns: Array | None = None  # (d,): indices of the columns that are used; None: all

    @np.errstate(over="ignore", invalid="ignore")  # overflow is refused by name
    def __call__(self, X: Columns) -> Array:
        """Return the components (n, m) of the rows of X, in their dtype. O(n d m) time.

        The components of a row do not depend on other rows."""
        X = X if self.columns is None else table.some_columns(X, self.columns)
        components = table.centered_product(X, self.mean, self.matrix, self.n_threads, self._scaled)
        sums = components.sum(axis=1, dtype=np.float64)  # NaN where rows lack the view
        checks.check_overflow(float(sums[table.has_view(X)].sum()), X.dtype)
        return components

    def _scaled(self, components: Array) -> Array:
        """Scale rows of components to length one if `unit` is True."""
        if not self.unit:
            return components
        lengths = np.linalg.norm(components, axis=1, keepdims=True)
        return np.divide(components, lengths, out=components, where=lengths > 0)

    def _view(self, X: Columns) -> tuple[Array, Identity]:
        """Return the components (n, m) of the rows of X, and the identity as the map of passes."""
        return self(X), Identity(self.matrix.shape[1])


@dataclass(frozen=True)
class Components:
    """The leading principal components of rows."""

    mean: Array  # (d,)
    deviations: Array  # (m,): standard deviations over the largest, falling
    directions: Array  # (d, m): axes, divided by the largest standard deviation
    columns: Array | None = None  # (d,): indices of columns that are not all zero; None: all

    def whitening(self, exponent: float | None, n_threads: int) -> Whitening:
        """Return the map from rows to components divided by a power of their standard deviations.

        `exponent` is the power; None: the components are not divided. Standard deviations are
        measured in units of the largest one. With many components the results are scaled to length
        one."""
        matrix, unit = self.directions, False
        if exponent is not None:
            matrix = matrix * self.deviations**-exponent
            unit = matrix.shape[1] >= TUNING.graph.unit_components
        return Whitening(self.mean, matrix, unit, n_threads, self.columns)


def fit_components(
    X: Columns, weight: Array, k: int, random: Any, scales: Array | None = None
) -> Components:
    """Return leading principal components, at most `PER_CLUSTER` k, of the rows of X.

    Columns are multiplied by `scales` (d,) first. Many rows are sampled. O(n d min(n, d)) time for
    n sampled rows; O(n_entries k) for sparse rows."""
    # so many rows have few enough entries; but more rows than components are needed
    fitting = int(TUNING.sampling.whitened_numbers / max(1, table.entries_a_row(X)))
    most = max(2 * PER_CLUSTER * k, min(TUNING.sampling.whitened_rows, fitting))
    index, p = drawn_rows(weight, most, random)
    x, columns = X if len(index) == len(X) else X[index], table.occupied_columns(X)
    if columns is not None:
        x, scales = table.some_columns(x, columns), None if scales is None else scales[columns]
    x = x if scales is None else table.scaled_columns(x, scales)
    checks.check_overflow(float(table.squared_norms(x).sum()), np.dtype(np.float64))
    share = p / p.sum()
    m, root = min(PER_CLUSTER * k, *x.shape), np.sqrt(share)[:, None]
    if table.skip_zeros(x):
        mean = np.asarray(share @ table.operand(x), dtype=np.float64)
        deviations, vectors = _of_sparse(x, mean, root, m)
    else:
        mean = np.asarray(sum(share[tile] @ x[tile] for tile in row_tiles(*x.shape)))
        deviations, vectors = _of_dense(x, mean, root, m)
    largest = deviations[0]
    if not table.rows_differ(x[share > 0]):  # equal rows have one component, which is zero
        return Components(mean, np.ones(1), np.zeros((x.shape[1], 1)), columns)
    checks.check_underflow(float(largest**2), [x])
    kept = deviations >= _RESOLVED * largest
    directions = vectors[:, kept] / largest
    if scales is not None:  # the components map columns that are not scaled
        mean, directions = mean / scales, scales[:, None] * directions
    return Components(mean, deviations[kept] / largest, directions, columns)


@np.errstate(over="ignore", invalid="ignore")  # overflow is refused by name
def _of_sparse(x: Columns, mean: Array, root: Array, m: int) -> tuple[Array, Array]:
    """Compute m leading principal components of sparse rows.

    `root` (n, 1) has the square roots of the shares of the rows in the total weight. Return the
    standard deviations (m,), falling, and the directions (d, m)."""
    wide, matrix = x.shape[0] < x.shape[1], table.operand(x).astype(np.float64)

    def centered(v: Array) -> Array:  # the centered rows, times `root`, times the columns v
        return root * (matrix @ v - mean @ v)

    def transposed(u: Array) -> Array:  # the transpose of the same matrix, times the columns u
        u = root * u
        return matrix.T @ u - np.outer(mean, u.sum(axis=0))

    def squares(v: Array) -> Array:  # the smaller of the two products of matrix and transpose
        columns = v.reshape(len(v), -1)
        products = centered(transposed(columns)) if wide else transposed(centered(columns))
        return np.asarray(products.reshape(v.shape))

    variances, vectors = leading_eigenvectors(squares, m, min(x.shape))
    deviations = np.sqrt(np.maximum(variances, 0))
    if wide:  # from eigenvectors (n, m) of the rows to directions (d, m)
        vectors = transposed(vectors) / np.where(deviations > 0, deviations, 1)
    return deviations, vectors


@np.errstate(over="ignore", invalid="ignore")  # overflow is refused by name
def _of_dense(x: Array, mean: Array, root: Array, m: int) -> tuple[Array, Array]:
    """Compute m leading principal components of an array, as `_of_sparse` does."""

    def weighed(tile: slice) -> Array:
        part: Array = x[tile] - mean
        part *= root[tile]
        return part

    if wide := x.shape[0] < x.shape[1]:
        rows = weighed(slice(None))
        gram = rows @ rows.T
    else:  # a tile at a time: a copy of all rows in float64 has twice their memory
        gram = np.asarray(sum(part.T @ part for part in map(weighed, row_tiles(*x.shape))))
    checks.check_overflow(float(np.trace(gram)), np.float64)
    variances, vectors = leading_eigenvectors(gram, m, len(gram))
    deviations = np.sqrt(np.maximum(variances, 0))
    if wide:  # from eigenvectors (n, m) of the rows to directions (d, m)
        vectors = rows.T @ vectors / np.where(deviations > 0, deviations, 1)
    return deviations, vectors


@dataclass(frozen=True)
class WhiteningSpec:
    """How the columns of a view become whitened components: checked parameters."""

    exponent: float  # the power of standard deviations that components are divided by
    scales: Array | None = None  # (d,): factors of the columns before whitening; None: ones
    unit_variance: bool = False  # whether the total variance is one, if rows are not of length one

    def fit(
        self, sample: Opened, view: int, k: int, random: np.random.RandomState, n_threads: int
    ) -> Whitening:
        """Fit a whitening map to a sample of the rows of a view, for k clusters.

        With `unit_variance` the components are divided by the root of their total variance, unless
        they are scaled to length one anyway."""
        components = fit_components(*sample.some_with(view), k, random, self.scales)
        mapped = components.whitening(self.exponent, n_threads)
        if mapped.unit or not self.unit_variance:
            return mapped
        # the norm of the deviations after the division by their power
        spread = np.linalg.norm(components.deviations ** (1 - self.exponent))
        return replace(mapped, matrix=mapped.matrix / spread)

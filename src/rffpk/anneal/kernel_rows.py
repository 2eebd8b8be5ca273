"""The rows of a fit with their kernels, which are stored or recomputed by blocks.

Products with few vectors give variances and principal components.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk.anneal.decompositions import (
    components_for_clusters,
    exponent_of_gram,
    total_squares,
)
from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import FitContext
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.passes import column_rows
from rffpk.rows.rows import Rows
from rffpk.spaces.kernels import FittedKernel
from rffpk.system import config
from rffpk.system.tiles import run_all, tiles
from rffpk.system.tuning import TUNING


class KernelRows:
    """The rows of a fit: weights, objective, and kernels K_l relative to a point near the rows."""

    def __init__(
        self, kernels: list[FittedKernel], weight: Array, objective: PowerMean,
        context: FitContext,
    ) -> None:  # fmt: skip
        self.kernels, self.objective, self.context = kernels, objective, context
        self.n, self.p = kernels[0].n, weight  # (n,), float64, in the range of float32
        self.dtype = np.result_type(*(kernel.dtype for kernel in kernels))
        self.diagonals = np.stack([kernel.diagonal for kernel in kernels])  # (L, n)
        self.definite = True  # whether no kernel is known to be indefinite
        for number, kernel in enumerate(kernels):
            if not kernel.is_finite():
                raise ValueError(
                    f"kernel {number} has values that are NaN or overflow {self.dtype}; rescale X, "
                    "pass float64, or choose other parameters of the kernel."
                )
        line = -(-self.n // _core.SKINNY_STRIDE) * _core.SKINNY_STRIDE
        needed = sum(self.n * line * kernel.dtype.itemsize for kernel in kernels)
        stored = context.storage.check_fits(needed, "the kernel matrices")
        self.stored = self._matrices() if stored else None
        self.counted = self.p > 0
        index = np.flatnonzero(self.counted)
        # at most so many rows that count
        self.some = index[:: -(-len(index) // TUNING.sampling.decomposed_rows)]
        self.equal = np.full(len(kernels), 1 / len(kernels))  # kernel weights
        self.total_weight = float(self.p.sum())
        # the total variance of the features, with equal kernel weights
        self.variance = self.squares(self.equal, self.p) / self.total_weight
        plain = self.squares(self.equal, 1.0 * self.counted) / len(index)
        resolved = 1e3 * float(np.finfo(self.dtype).eps)
        checks.check_weighted_variance(self.variance, plain, resolved, self.dtype)

    def _matrices(self) -> list[Array]:
        matrices = [_core.empty_matrix(self.n, self.n, self.dtype) for _ in self.kernels]

        def fill(tile: tuple[slice, slice]) -> None:
            for kernel, matrix in zip(self.kernels, matrices):
                matrix[tile] = kernel.block(*tile)

        run_all(fill, tiles(self.n, self.n), self.context.n_threads)
        return matrices

    def multiply(self, W: Array, precise: bool = False) -> Array:
        """Return W K_l of all kernels, (L, m, n), for W (m, n).

        `precise`: in double precision. Kernels that are stored in single precision are
        recomputed."""
        dtype, n_threads = np.dtype(np.float64) if precise else self.dtype, self.context.n_threads
        W = np.ascontiguousarray(W, dtype=dtype)
        out = np.empty((len(self.kernels), *W.shape), dtype=dtype)
        if self.stored is not None and dtype == self.dtype:
            for matrix, product in zip(self.stored, out):
                config.backend().skinny_product(W, matrix, product, n_threads)
            return out

        def fill(row_tiles: list[tuple[slice, slice]]) -> None:
            rows = row_tiles[0][0]
            for kernel, product in zip(self.kernels, out):
                parts = (
                    W[:, columns] @ kernel.block(rows, columns).astype(dtype, copy=False).T
                    for _, columns in row_tiles
                )
                product[:, rows] = sum(parts)

        by_rows = groupby(tiles(self.n, self.n), key=lambda tile: tile[0].start)
        run_all(fill, [list(group) for _, group in by_rows], n_threads)
        return out

    def combined(self, W: Array, alpha: Array) -> NDArray[np.float64]:
        """Return W sum_l alpha_l K_l, (m, n), for W (m, n)."""
        return np.tensordot(alpha, self.multiply(W).astype(np.float64), 1)

    def squares(self, alpha: Array, p: Array) -> float:
        """Return sum_i p_i ||phi_i - c||^2 with the mean c by p, of sum_l alpha_l k_l."""
        share = p / p.sum()
        mean = self.combined(share[None], alpha)[0]
        return max(float(p @ (alpha @ self.diagonals) - p.sum() * (share @ mean)), 0.0)

    def means(self, labels: Array, k: int) -> tuple[Array, Array]:
        """Return the means of clusters as weights of the rows, (k, n), and the masses (k,).

        Weights are zero if a cluster is empty."""
        members = (np.arange(k)[:, None] == labels) * self.p
        masses = members.sum(axis=1)
        return members / np.where(masses > 0, masses, 1)[:, None], masses

    def gram(self, alpha: Array) -> Array:
        """Return the inner products (m, m) of evenly spaced rows with these kernel weights."""
        if self.stored is None:
            parts = [kernel.block(self.some, self.some) for kernel in self.kernels]
        else:
            parts = [matrix[np.ix_(self.some, self.some)] for matrix in self.stored]
        return np.tensordot(alpha, np.asarray(parts, dtype=np.float64), 1)

    def exponent(self, gram: Array, labels: Array | None = None) -> float:
        """Return the critical exponent of rows with these inner products (m, m).

        With labels (n,) of the rows it is the exponent inside of the clusters; -inf if rows are
        equal."""
        labels = np.zeros(len(gram), int) if labels is None else labels[self.some]
        p = self.p[self.some]
        inside = p * (labels[:, None] == labels)
        apart = np.eye(len(p)) - inside / inside.sum(axis=1, keepdims=True)  # from the means
        return exponent_of_gram(apart @ gram @ apart.T, p)

    def components(self, alpha: Array) -> tuple[Rows, float]:
        """Return rows whose features are principal components of a weighted sum of kernels.

        The kernel sum_l alpha_l k_l is centered at the mean. The part of the total of squares
        that components leave out is returned, too. There are enough of them for the hard
        objective of the clusters where that pays and memory allows it, else the leading ones.
        O(L n^2 r) time for r components, O(L n^3) where few rows have more components."""
        n, storage, total = self.n, self.context.storage, self.squares(alpha, self.p)
        root, share = np.sqrt(self.p), self.p / self.total_weight

        def multiply(V: Array) -> Array:
            """Multiply the centered and weighted kernel with columns."""
            columns = root[:, None] * V
            columns = columns - share[:, None] * columns.sum(axis=0)
            product = self.combined(columns.T, alpha).T
            return np.asarray(root[:, None] * (product - share @ product))

        whole: Callable[[], Array] | None = None
        if n <= TUNING.components.kernel_rows:
            whole = partial(multiply, np.eye(n))
        squares, _, images = components_for_clusters(
            multiply, whole, total, n, self.context.k,
            lambda r: storage.fits(5 * 8 * n * r),  # five copies in float64
        )  # fmt: skip
        resolved = squares > n * float(np.finfo(self.dtype).eps) * squares[0]
        scale = np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=resolved)
        x = np.ascontiguousarray(images * scale / np.where(root > 0, root, 1)[:, None])
        rows = column_rows(x, self.p, self.context.n_threads)
        return rows, max(total - total_squares(rows), 0.0)


def kernel_coordinates(kernel: FittedKernel) -> NDArray[np.float64]:
    """Return coordinates of rows, (n, r), whose inner products are nearly a kernel.

    They are the columns of its Cholesky decomposition, with the rows that count as pivots. O(n
    r^2) time. A kernel with negative eigenvalues has the columns before its first negative
    pivot."""
    most, r = min(TUNING.number.coordinates, len(kernel.counted)), 0
    left = np.zeros(kernel.n)  # squared norms of what the columns leave
    left[kernel.counted] = kernel.diagonal[kernel.counted]
    least, columns = 1e-6 * left.max(), np.zeros((kernel.n, max(most, 1)))
    while r < most and left.max() > least:
        pivot = left.argmax()
        row = kernel.block(np.array([pivot]))[0]
        column = row - columns[:, :r] @ columns[pivot, :r]
        columns[:, r] = column / math.sqrt(left[pivot])
        left -= columns[:, r] ** 2
        r += 1
    return np.ascontiguousarray(columns[:, : max(r, 1)])

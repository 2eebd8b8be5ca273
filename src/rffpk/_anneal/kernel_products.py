"""Products of centered kernels with a few vectors, from stored kernels or recomputed blocks, and
principal components by these products."""

from __future__ import annotations

import math
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk._anneal.decompositions import components_for_clusters
from rffpk._rows.passes import make_rows
from rffpk._rows.rows import Rows
from rffpk._rows.store import Storage
from rffpk._utils import config
from rffpk._utils.arrays import Array
from rffpk._utils.tiles import run_all, tiles
from rffpk.maps.kernels import FittedKernel

# Of up to so many rows all components of a kernel may be computed; of more, products with the
# kernel are as fast as passes over so many.
_DENSE = 1000
_COORDINATES, _LEAST_PIVOT = 300, 1e-6  # of a kernel; the latter is a part of the largest norm
_COPIES = 5  # of the components of a kernel, while they are computed

# Kernels are centered at the mean of this many rows, so that their values are of the size of the
# distances and float32 resolves them. Any point near the data serves.
_CENTER_ROWS = 256


class CenteredKernel:
    """A kernel less the mean feature c of some rows that count: <phi(x) - c, phi(x_j) - c>."""

    def __init__(self, kernel: FittedKernel) -> None:
        self.kernel, self.n, self.dtype = kernel, kernel.n, kernel.dtype
        self._places = kernel.counted[:: -(-len(kernel.counted) // _CENTER_ROWS)]
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused
            self.offsets = kernel.block(self._places).mean(axis=0)  # <phi_j, c>
            self._mean = self.offsets[self._places].mean()  # ||c||^2
            self.diagonal = self._squared_norms(kernel.diagonal, self.offsets)

    def _squared_norms(self, diagonal: Array, offsets: Array) -> Array:
        return np.maximum(diagonal - 2 * offsets + self._mean, 0)

    def _centered(self, block: Array, offsets: Array, columns: slice) -> Array:
        block -= self.offsets[columns] - self._mean
        block -= offsets[:, None]
        return block

    def block(self, rows: slice | Array, columns: slice, dtype: Any) -> Array:
        """Some rows and columns, in a dtype."""
        block = self._centered(self.kernel.block(rows, columns), self.offsets[rows], columns)
        return block.astype(dtype, copy=False)

    def cross(self, x: Array) -> tuple[Array, Array | None]:
        """The kernel between new rows x and all fitted ones, float64, and the squared norms of the
        features of x, None if the kernel is precomputed."""
        block, diagonal = self.kernel.cross(x)
        offsets = block[:, self._places].mean(axis=1)
        squares = None if diagonal is None else self._squared_norms(diagonal, offsets)
        return self._centered(block, offsets, slice(None)), squares


class Products:
    """Products of the centered kernels K_l of n rows: <phi_i - c, phi_j - c>, view by view."""

    def __init__(self, kernels: list[FittedKernel], n_threads: int, stored: bool) -> None:
        self.kernels = [CenteredKernel(kernel) for kernel in kernels]
        self.n, self.n_threads = kernels[0].n, n_threads
        self.dtype = np.result_type(*(kernel.dtype for kernel in kernels))
        self.diagonals = np.stack([kernel.diagonal for kernel in self.kernels])  # (L, n)
        self._check_finite()
        self.definite = True  # whether no kernel is known to be indefinite
        self.stored = self._all() if stored else None

    def _check_finite(self) -> None:
        largest = np.finfo(self.dtype).max
        for number, kernel in enumerate(self.kernels):
            values = kernel.offsets, kernel.diagonal
            if not all(np.isfinite(v).all() and np.abs(v).max() < largest for v in values):
                raise ValueError(
                    f"kernel {number} has values that are NaN or overflow {self.dtype}; rescale X, "
                    "pass float64, or choose other parameters of the kernel."
                )

    @staticmethod
    def stored_bytes(kernels: list[FittedKernel]) -> int:
        """Bytes that the stored kernels take."""
        n = kernels[0].n
        line = -(-n // _core.SKINNY_STRIDE) * _core.SKINNY_STRIDE
        return sum(n * line * kernel.dtype.itemsize for kernel in kernels)

    def _all(self) -> list[Array]:
        matrices = [_core.empty_matrix(self.n, self.n, self.dtype) for _ in self.kernels]

        def fill(tile: tuple[slice, slice]) -> None:
            for number, matrix in enumerate(matrices):
                matrix[tile] = self.kernels[number].block(*tile, self.dtype)

        run_all(fill, tiles(self.n, self.n), self.n_threads)
        return matrices

    def multiply(self, W: Array, precise: bool = False) -> Array:
        """W K_l of all kernels, (L, m, n), for W (m, n); `precise`: in double precision, which the
        kernels are recomputed for if they are stored in single precision."""
        dtype = np.dtype(np.float64) if precise else self.dtype
        W = np.ascontiguousarray(W, dtype=dtype)
        out = np.empty((len(self.kernels), *W.shape), dtype=dtype)
        if self.stored is not None and dtype == self.dtype:
            for matrix, product in zip(self.stored, out):
                config.backend().skinny_product(W, matrix, product, self.n_threads)
            return out

        def fill(row_tiles: list[tuple[slice, slice]]) -> None:
            rows = row_tiles[0][0]
            for kernel, product in zip(self.kernels, out):
                parts = (
                    W[:, columns] @ kernel.block(rows, columns, dtype).T for _, columns in row_tiles
                )
                product[:, rows] = sum(parts)

        by_rows = groupby(tiles(self.n, self.n), key=lambda tile: tile[0].start)
        run_all(fill, [list(group) for _, group in by_rows], self.n_threads)
        return out

    def combined(self, W: Array, alpha: Array) -> NDArray[np.float64]:
        """W sum_l alpha_l K_l, (m, n), for W (m, n)."""
        return np.tensordot(alpha, self.multiply(W).astype(np.float64), 1)

    def rows(self, index: Array) -> Array:
        """Rows of all centered kernels, (L, m, n)."""
        if self.stored is not None:
            return np.stack([matrix[index, : self.n] for matrix in self.stored])
        every = slice(0, self.n)
        return np.stack([kernel.block(index, every, self.dtype) for kernel in self.kernels])


def squared_norms(W: Array, Y: Array) -> NDArray[np.float64]:
    """Squared norms of the centroids, (L, k)."""
    return np.einsum("kn,lkn->lk", W, Y, dtype=np.float64)


# ---- principal components ----------------------------------------------------------------------


def kernel_components(
    products: Products, alpha: Array, weight: Array | None, k: int, storage: Storage
) -> Rows:
    """Rows whose features are the leading principal components of the kernel sum_l alpha_l k_l,
    centered at the mean: enough of them for the hard objective of k clusters where that pays and
    their memory is within the limit, the leading ones otherwise.

    O(L n^2 r) time for r components, O(L n^3) where few rows have more of them.
    """
    n = products.n
    p = np.ones(n) if weight is None else weight
    root, share = np.sqrt(p), p / p.sum()

    def multiply(V: Array) -> Array:
        """The product of the centered and weighted kernel with columns."""
        columns = root[:, None] * V
        columns = columns - share[:, None] * columns.sum(axis=0)
        product = products.combined(columns.T, alpha).T
        return np.asarray(root[:, None] * (product - share @ product))

    def fits(r: int) -> bool:
        return storage.fits(_COPIES * 8 * n * r)

    dense_matrix = partial(multiply, np.eye(n)) if n <= _DENSE else None
    variance = kernel_variance(products, alpha, p)
    squares, _, images = components_for_clusters(multiply, dense_matrix, variance, n, k, fits)
    resolved = squares > n * float(np.finfo(products.dtype).eps) * squares[0]
    scale = np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=resolved)
    x = images * scale / np.where(root > 0, root, 1)[:, None]
    xs, shifts = [np.ascontiguousarray(x)], [np.zeros(len(squares))]
    return make_rows(xs, [None], weight, products.n_threads, shifts)


def kernel_variance(products: Products, alpha: Array, p: Array) -> float:
    """sum_i p_i ||phi_i - c||^2 with the weighted mean c, of the kernel sum_l alpha_l k_l."""
    share = p / p.sum()
    mean = products.combined(share[None], alpha)[0]
    return max(float(p @ (alpha @ products.diagonals) - p.sum() * (share @ mean)), 0.0)


def kernel_coordinates(centered: CenteredKernel) -> NDArray[np.float64]:
    """Coordinates of rows, (n, r), whose inner products are nearly a kernel: the columns of its
    Cholesky decomposition, with the rows that count as pivots.

    O(n r^2) time. A kernel with negative eigenvalues has those before the first negative pivot.
    """
    counted, n = centered.kernel.counted, centered.n
    most, r = min(_COORDINATES, len(counted)), 0
    left = np.zeros(n)  # squared norms of what the columns leave
    left[counted] = centered.diagonal[counted]
    least, found = _LEAST_PIVOT * left.max(), np.zeros((n, max(most, 1)))
    while r < most and left.max() > least:
        pivot = left.argmax()
        row = centered.block(np.array([pivot]), slice(None), np.float64)[0]
        column = row - found[:, :r] @ found[pivot, :r]
        found[:, r] = column / math.sqrt(left[pivot])
        left -= found[:, r] ** 2
        r += 1
    return np.ascontiguousarray(found[:, : max(r, 1)])

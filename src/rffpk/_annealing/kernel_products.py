"""Products of centered kernels with a few vectors, from stored kernels or recomputed blocks."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from rffpk import _config, _core
from rffpk._data.arrays import Array
from rffpk._data.tiles import run_all, tiles
from rffpk.kernels import FittedKernel

# Kernels are centered at the mean of this many rows, so that their values are of the size of the
# distances and float32 resolves them. Any point near the data serves.
_CENTER_ROWS = 256


class Products:
    """Products of the centered kernels K_l of n rows: <phi_i - c, phi_j - c>, view by view."""

    def __init__(self, kernels: list[FittedKernel], n_threads: int, stored: bool) -> None:
        self.kernels, self.n, self.n_threads = kernels, kernels[0].n, n_threads
        self.dtype = np.result_type(*(kernel.dtype for kernel in kernels))
        step = -(-self.n // _CENTER_ROWS)
        self._places = np.arange(0, self.n, step)
        with_places = [kernel.block(self._places) for kernel in kernels]
        diagonals = np.stack([kernel.diagonal for kernel in kernels])
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused
            self.offsets = np.stack([block.mean(axis=0) for block in with_places])  # (L, n)
            self.means = self.offsets[:, self._places].mean(axis=1)
            self.diagonals = np.maximum(diagonals - 2 * self.offsets + self.means[:, None], 0)
            self._check_finite()
        self.stored = self._all() if stored else None

    def _check_finite(self) -> None:
        largest = np.finfo(self.dtype).max
        for number, values in enumerate(zip(self.offsets, self.diagonals)):
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
        matrices = []
        for number in range(len(self.kernels)):
            matrix = _core.empty_matrix(self.n, self.n, self.dtype)

            def fill(
                tile: tuple[slice, slice], number: int = number, matrix: Array = matrix
            ) -> None:
                matrix[tile] = self._block(number, *tile)

            run_all(fill, tiles(self.n, self.n), self.n_threads)
            matrices.append(matrix)
        return matrices

    def _block(self, number: int, rows: slice | Array, columns: slice) -> Array:
        """A block of a centered kernel."""
        block = self.kernels[number].block(rows, columns)
        block -= self.offsets[number, columns] - self.means[number]
        block -= self.offsets[number, rows, None]
        return block.astype(self.dtype, copy=False)

    def multiply(self, W: Array) -> Array:
        """W K_l of all kernels, (L, m, n), for W (m, n)."""
        W = np.ascontiguousarray(W, dtype=self.dtype)
        out = np.empty((len(self.kernels), *W.shape), dtype=self.dtype)
        if self.stored is not None:
            for matrix, product in zip(self.stored, out):
                _config.backend().skinny_product(W, matrix, product, self.n_threads)
            return out

        def fill(row_tiles: list[tuple[slice, slice]]) -> None:
            rows = row_tiles[0][0]
            for number, product in enumerate(out):
                parts = (
                    W[:, columns] @ self._block(number, rows, columns).T for _, columns in row_tiles
                )
                product[:, rows] = sum(parts)

        by_rows = groupby(tiles(self.n, self.n), key=lambda tile: tile[0].start)
        run_all(fill, [list(group) for _, group in by_rows], self.n_threads)
        return out

    def rows(self, index: Array) -> Array:
        """Rows of all centered kernels, (L, m, n)."""
        if self.stored is not None:
            return np.stack([matrix[index, : self.n] for matrix in self.stored])
        every = slice(0, self.n)
        return np.stack([self._block(number, index, every) for number in range(len(self.kernels))])

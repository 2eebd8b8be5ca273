"""Products of centred kernels with a few vectors, of stored kernels or of blocks made anew."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from rffpk import _config, _core
from rffpk._data.arrays import Array
from rffpk._data.tiles import run_all, tiles
from rffpk.kernels import FittedKernel

# Kernels are centred at the mean of so many rows, so that what is left is about distances and
# float32 holds it. Any point near the data does.
_CENTER_ROWS = 256


class Products:
    """Products of the centred kernels K_l of n rows: <phi_i - c, phi_j - c>, view by view."""

    def __init__(self, kernels: list[FittedKernel], n_threads: int, stored: bool) -> None:
        self.kernels, self.n, self.n_threads = kernels, kernels[0].n, n_threads
        self.dtype = np.result_type(*(kernel.dtype for kernel in kernels))
        step = -(-self.n // _CENTER_ROWS)
        self._places = np.arange(0, self.n, step)
        with_places = [kernel.block(self._places) for kernel in kernels]
        own = np.stack([kernel.diagonal for kernel in kernels])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            self.offsets = np.stack([block.mean(axis=0) for block in with_places])  # (L, n)
            self.means = self.offsets[:, self._places].mean(axis=1)
            self.diagonals = np.maximum(own - 2 * self.offsets + self.means[:, None], 0)
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
        """Memory that the kernels take."""
        n = kernels[0].n
        line = -(-n // _core.SKINNY_STRIDE) * _core.SKINNY_STRIDE
        return sum(n * line * kernel.dtype.itemsize for kernel in kernels)

    def _all(self) -> list[Array]:
        found = []
        for number in range(len(self.kernels)):
            matrix = _core.empty_matrix(self.n, self.n, self.dtype)

            def fill(
                tile: tuple[slice, slice], number: int = number, matrix: Array = matrix
            ) -> None:
                matrix[tile] = self._block(number, *tile)

            run_all(fill, tiles(self.n, self.n), self.n_threads)
            found.append(matrix)
        return found

    def _block(self, number: int, rows: slice | Array, columns: slice) -> Array:
        """A part of a centred kernel."""
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
        """Centred rows of all kernels, (L, m, n)."""
        if self.stored is not None:
            return np.stack([matrix[index, : self.n] for matrix in self.stored])
        every = slice(0, self.n)
        return np.stack([self._block(number, index, every) for number in range(len(self.kernels))])

"""A sample of distinct rows, which depends on the rows and their weights alone.

The order of the rows, the cuts into blocks, and equal rows in place of weights make no difference.

Each row has a hash of its numbers. The distinct rows with the least hashes are a random sample of
all distinct rows (Broder: On the resemblance and containment of documents. SEQUENCES 1997).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns, hash_terms, row_bytes
from rffpk.system.linalg import row_tiles
from rffpk.system.tuning import TUNING

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # multipliers of splitmix64


@lru_cache(maxsize=16)
def _factors(view: int, d: int) -> NDArray[np.uint64]:
    """Draw random odd factors (d,) for the hash, one for each column of a view."""
    random = np.random.Generator(np.random.Philox(key=view))
    return random.integers(1 << 64, size=d, dtype=np.uint64) | np.uint64(1)


class DistinctRows:
    """The distinct rows with the smallest hashes among all rows that were added.

    Each distinct row has the total weight of the rows that equal it. With `keep`, copies of the
    rows are kept."""

    def __init__(self, *, keep: bool = False) -> None:
        self.size, self.keep = TUNING.noise.sample_rows, keep
        self._parts: list[list[Array]] = []  # hashes, weights and indices of rows, then copies
        self._count, self._bound = 0, np.uint64(2**64 - 1)

    def add(self, begin: int, xs: list[Columns], weight: Array) -> None:
        """Add a block of rows with their weights; `begin` is the index of its first row.

        Rows of weight zero are skipped."""
        for tile in row_tiles(len(xs[0]), row_bytes(xs), TUNING.tiles.hashed_bytes):
            parts = [x[tile] for x in xs]
            p = weight[tile].astype(np.float64, copy=False)
            # Equal rows have equal hashes. Zeros add nothing, so that a sparse row has the hash of
            # the equal dense row.
            hashes = np.zeros(len(p), dtype=np.uint64)
            for number, x in enumerate(parts):
                hashes += hash_terms(x, _factors(number, x.shape[1]))
            # the last steps of splitmix64, after which all bits of the sums count alike
            for shift, factor in zip((30, 27), _MIX):
                hashes = (hashes ^ (hashes >> np.uint64(shift))) * factor
            hashes = hashes ^ (hashes >> np.uint64(31))
            index = np.flatnonzero((hashes <= self._bound) & (p > 0))
            rows = [x[index] for x in parts] if self.keep else []
            self._parts.append([hashes[index], p[index], begin + tile.start + index, *rows])
            self._count += len(index)
            if self._count > 2 * self.size:
                self._shrink()

    def _shrink(self) -> None:
        """Merge rows with equal hashes, and keep the `size + 1` smallest hashes.

        The last row shows later whether the sample lacks distinct rows."""
        hashes, weight, *rest = (np.concatenate(parts) for parts in zip(*self._parts))
        hashes, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        weight, n = np.bincount(inverse.ravel(), weight), self.size + 1
        self._parts = [[hashes[:n], weight[:n], *(each[first[:n]] for each in rest)]]
        self._count = len(self._parts[0][0])
        if len(hashes) >= n:
            self._bound = hashes[n - 1]

    def sample(self) -> tuple[NDArray[np.intp], list[Any], NDArray[np.float64], bool]:
        """Return the sample as a tuple (indices, copies, weights, complete).

        For each sampled row, `indices` has the index of one equal row of the data set. `copies` is
        one array per view, or [] without `keep`. `complete` says whether the sample has all
        distinct rows."""
        self._shrink()
        [[_, weight, index, *rows]] = self._parts
        m = self.size
        return index[:m], [x[:m] for x in rows], weight[:m], len(index) <= m

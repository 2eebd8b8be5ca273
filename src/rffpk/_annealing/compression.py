"""Principal components of wide features: the search for centroids needs few of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh

from rffpk._data.arrays import Array
from rffpk._data.passes import Rows
from rffpk._data.store import Storage, has_maps

# Components are left out that have this part of the variance together: less than the error of the
# random features themselves. All features follow in the last passes.
_LEFT_OUT = 1e-3

# Passes that a search makes, and the costs of a decomposition of (m, m), in operations of a pass.
_PASSES, _DECOMPOSITION, _MARGIN = 300, 10.0, 5.0

# Features that are copied, twice with row weights: at most 64 MB each in float64.
_NUMBERS = 1 << 23


@dataclass(frozen=True)
class Compressed:
    """Rows of fewer features, and the way back from their centroids."""

    rows: Rows
    bases: list[Array]  # (F_l, r_l), orthonormal columns

    def expand(self, theta: Array) -> Array:
        """Centroids in the space of all features, shifted."""
        edges = np.cumsum([basis.shape[1] for basis in self.bases])[:-1]
        parts = np.split(theta, edges, axis=1)
        return np.hstack([part @ basis.T for part, basis in zip(parts, self.bases)])


def compressed(rows: Rows, k: int, storage: Storage) -> Compressed | None:
    """The rows with the principal components of each view as features, if these are at most half as
    many and a search for k centroids is longer than the decompositions; else None.

    O(n F min(n, F)) time.
    """
    widths = [len(shift) for shift in rows.shifts]
    sizes = [min(rows.n, F) for F in widths]
    cost = sum(2.0 * rows.n * F * m + _DECOMPOSITION * m**3 for F, m in zip(widths, sizes))
    search = 2.0 * _PASSES * rows.n * sum(widths) * k
    if _MARGIN * cost > search or rows.n * sum(widths) > _NUMBERS:
        return None
    rows = storage.sample(rows)
    if has_maps(rows):  # features may not be stored
        return None
    pairs = [_components(rows, i) for i in range(len(widths))]
    if 2 * sum(basis.shape[1] for _, basis in pairs) > sum(widths):
        return None
    xs, bases = [x for x, _ in pairs], [basis for _, basis in pairs]
    shifts = [np.zeros(x.shape[1], dtype=rows.dtype) for x in xs]
    return Compressed(replace(rows, xs=xs, shifts=shifts), bases)


def _components(rows: Rows, view: int) -> tuple[Array, Array]:
    """The principal components of a view, (n, r), and their basis (F, r)."""
    x = rows.xs[view].astype(np.float64) - rows.shifts[view]
    weighted = x if rows.weight is None else x * np.sqrt(rows.weight, dtype=np.float64)[:, None]
    wide = x.shape[1] > len(x)
    squares, vectors = eigh(weighted @ weighted.T if wide else weighted.T @ weighted)
    squares, vectors = np.maximum(squares[::-1], 0), vectors[:, ::-1]
    left = squares.sum() - np.cumsum(squares)
    r = 1 + int((left > _LEFT_OUT * squares.sum()).sum())
    basis = vectors[:, :r]
    if wide:
        lengths = np.sqrt(squares[:r])  # zero if all rows are equal
        basis = weighted.T @ (basis / np.where(lengths > 0, lengths, 1))
    return np.ascontiguousarray(x @ basis, dtype=rows.dtype), basis

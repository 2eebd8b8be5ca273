"""Array types for annotations, and arrays that belong together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from rffpk.system.tuning import TUNING

Array = NDArray[Any]


class HasArray(Protocol):
    """An array, or a frame or tensor that NumPy converts to an array."""

    def __array__(self) -> Any:
        """Return the array."""


Numbers = HasArray | list[Any] | tuple[Any, ...]  # an argument that is not a word

# Weights of landmarks below this part of the largest weight of a row are set to zero. Otherwise
# negligible weights would connect separate components of a graph.
LEAST_WEIGHT = 1e-7


class Structure(NamedTuple):
    """Structured frequencies: blocks of p columns of Omega, the last cut to D columns in total.

    The transpose of a block is scale H S1 H S2 H S3, with the Walsh-Hadamard matrix H of p rows and
    diagonal matrices S of signs."""

    signs: NDArray[np.int8]  # (blocks, 3, p): S3, S2, S1
    scale: float
    n_frequencies: int

    def matrix(self, d: int) -> Array:
        """Return Omega, (d, D), in float64. O(D p log p) time and O(D p) memory."""
        p, D = self.signs.shape[-1], self.n_frequencies
        return np.hstack([self.columns(d, slice(a, min(a + p, D))) for a in range(0, D, p)])

    def columns(self, d: int, part: slice) -> Array:
        """Return the columns `part` of Omega, (d, m), which lie in one block."""
        p = self.signs.shape[-1]
        block, first = divmod(part.start, p)
        third, second, one = self.signs[block].astype(np.float64)[:, :, None]
        # the transform of columns of the identity: from `first` on, as many as `part` has. Rows
        # from d on would meet the zeros that pad x to length p.
        y = second * _hadamard(one * _hadamard(np.eye(p, part.stop - part.start, -first)))
        return np.asarray(self.scale * (third * _hadamard(y))[:d])


def _hadamard(lines: Array) -> Array:
    """Return the Walsh-Hadamard transform of each column of `lines` (p, m), in natural order.

    It is a chain of products with small Hadamard matrices."""
    p, m = lines.shape
    h = 1  # the order of the transform so far
    while h < p:
        order = min(TUNING.fourier.hadamard_order, p // h)
        lines = hadamard(order, np.float64) @ lines.reshape(-1, order, h * m)
        h *= order
        lines = lines.reshape(p, m)
    return lines


@dataclass(frozen=True)
class Fourier:
    """The map of rows x to random Fourier features D^(-1/2) [sin(x Omega), cos(x Omega)]."""

    frequencies: Array | Structure  # Omega (d, D), in the dtype of the rows, or its structure

    def astype(self, dtype: Any) -> Fourier:
        """Return the map for rows of a dtype."""
        given = self.frequencies
        return self if isinstance(given, Structure) else Fourier(given.astype(dtype, copy=False))

    @property
    def n_frequencies(self) -> int:
        """The number of frequencies, D."""
        given = self.frequencies
        return given.n_frequencies if isinstance(given, Structure) else given.shape[1]

    @property
    def width(self) -> int:
        """The number of features."""
        return 2 * self.n_frequencies


@dataclass(frozen=True)
class Landmarks:
    """The map of rows x to landmark features phi = sum_t z_t C_t / sum_t z_t.

    The sums are over the r landmarks y_t nearest to x, with z_t = exp(-scale ||x - y_t||^2). If
    landmarks are equally near, the first are taken."""

    points: Array  # (m, d): y_t
    n_neighbours: int  # r, from 1 to min(m, MOST_NEIGHBOURS of the core)
    scale: float  # finite, >= 0; 0: for each row, 1 / (2 mean of its r squared distances)
    coordinates: Array  # (m, q): C_t
    least_weight: float = LEAST_WEIGHT

    @property
    def width(self) -> int:
        """The number of features."""
        return self.coordinates.shape[1]


@dataclass(frozen=True)
class Unit:
    """The map of dense rows to rows of length one; rows of zeros stay."""

    width: int  # the number of features, and of columns


@dataclass(frozen=True)
class Identity:
    """The map of rows to their columns. A fitted model has it where the features are the columns
    of X, and a pass where the features are in memory."""

    width: int  # the number of features, and of columns

    def _view(self, X: Any) -> tuple[Any, Identity]:
        """Return the rows and their map, which has fewer columns if empty columns are left out."""
        return X, Identity(X.shape[1])

    def _features(self, X: Any) -> Any:
        """Return a copy of the rows."""
        return X.copy()


# What a pass applies to the columns of a view.
Map = Fourier | Landmarks | Unit | Identity

View = tuple[Array, Map]  # the columns (n, d) of a view and its map


def label_order(labels: Array, n: int) -> NDArray[np.intp]:
    """Return the order that sorts rows by their labels from 0 to n - 1.

    NumPy sorts up to 2^16 different labels in linear time, because small integers hold them."""
    return np.argsort(labels.astype(np.min_scalar_type(n - 1)), kind="stable")


def adjusted_rand_index(a: Array, b: Array) -> float:
    """Return the adjusted Rand index of two arrays of labels (n,), which count from zero.

    scikit-learn's function takes longer than the passes, and its warnings of many clusters could
    only be silenced in all threads. The index is 1 if both have one cluster, or only single
    rows."""
    shape = int(a.max()) + 1, int(b.max()) + 1
    numbers = np.ravel_multi_index((a, b), shape)
    table = np.bincount(numbers, minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    # twice the numbers of pairs of rows: together in a and b, together in a, together in b, and all
    both, in_a, in_b, pairs = (
        float((counts * (counts - 1)).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    chance, most = in_a * in_b / max(pairs, 1), (in_a + in_b) / 2
    return (both - chance) / (most - chance) if most > chance else 1.0

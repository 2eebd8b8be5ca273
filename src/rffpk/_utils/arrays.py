"""Array types for annotations, and arrays that belong together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Most neighbours that the compiled pass keeps for a row.
MOST_NEIGHBOURS = 64

# Weights of landmarks below this part of the largest of a row are zero: they would connect, by an
# amount that nothing resolves, what is disconnected.
LEAST_WEIGHT = 1e-7


# Columns of structured frequencies that are computed together, and the order of the matrices in
# products that do so.
SOME_COLUMNS, _ORDER = 32, 64


class Structure(NamedTuple):
    """Structured frequencies: Omega' = scale H S1 H S2 H S3, block by block of p columns of Omega,
    with Walsh-Hadamard matrices H of p rows and diagonal matrices S of signs; of the last block,
    and of the rows, as many as there are."""

    signs: NDArray[np.int8]  # (blocks, 3, p): S3, S2, S1
    scale: float
    n_frequencies: int

    def matrix(self, d: int) -> Array:
        """Omega, (d, D), in float64. O(D p log p) time and O(D p) memory."""
        p, D = self.signs.shape[-1], self.n_frequencies
        columns = []
        for first, (third, second, one) in zip(range(0, D, p), self.signs):
            unit = np.eye(p, min(p, D - first))  # the rows of the product, transposed
            y = second[:, None] * _hadamard(one[:, None] * _hadamard(unit))
            columns.append(third[:, None] * _hadamard(y))
        return np.asarray(self.scale * np.hstack(columns)[:d])

    def some_columns(self, d: int, begin: int) -> Array:
        """Some of its columns from `begin` on, all of one block, faster where p is large."""
        p = self.signs.shape[-1]
        block, first = divmod(begin, p)
        m = min(SOME_COLUMNS, self.n_frequencies - begin, p - first)
        third, second, one = self.signs[block].astype(np.float64)[:, :, None]
        y = one * _hadamard_by_products(np.eye(p, m, -first))
        y = third * _hadamard_by_products(second * _hadamard_by_products(y))
        return np.asarray(self.scale * y[:d])


def _hadamard_by_products(lines: Array) -> Array:
    """`_hadamard` by products with small matrices, which is faster where p is large."""
    p, m = lines.shape
    h = 1
    while h < p:
        order = min(_ORDER, p // h)
        factor = _hadamard(np.eye(order))
        lines = np.matmul(factor, lines.reshape(-1, order, h * m)).reshape(p, m)
        h *= order
    return lines


def _hadamard(lines: Array) -> Array:
    """The Walsh-Hadamard transform of the columns of (p, m), in natural order."""
    p, m = lines.shape
    h = 1
    while h < p:
        pairs = lines.reshape(-1, 2, h, m)
        lines = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        lines = lines.reshape(p, m)
        h *= 2
    return lines


@dataclass(frozen=True)
class Fourier:
    """What makes random Fourier features of rows x: D^(-1/2) [sin(x Omega), cos(x Omega)]."""

    frequencies: Array | Structure  # Omega: (d, D) in the dtype of the rows, or what it comes from

    def astype(self, dtype: Any) -> Fourier:
        """The same for rows of a dtype."""
        given = self.frequencies
        return self if isinstance(given, Structure) else Fourier(given.astype(dtype, copy=False))

    @property
    def n_frequencies(self) -> int:
        """D."""
        given = self.frequencies
        return given.n_frequencies if isinstance(given, Structure) else given.shape[1]

    @property
    def width(self) -> int:
        """The number of features."""
        return 2 * self.n_frequencies


@dataclass(frozen=True)
class Landmarks:
    """What makes landmark features of rows x: phi = sum_t z_t C_t over the r landmarks y_t that are
    nearest to x, with the weights z_t = exp(-scale ||x - y_t||^2) / (their sum over the r).
    Weights below `least_weight` times the largest of the row are zero, before the sum.

    Of landmarks equally far away the one of smaller index is nearer. Arrays have the dtype of the
    rows.

    Raises
    ------
    ValueError
        If a parameter is out of its range or shapes do not match.
    """

    points: Array  # (m, d): y_t
    n_neighbours: int  # r, from 1 to min(m, 16)
    scale: float  # >= 0; 0: 1 / (2 mean of the r squared distances) of each row
    coordinates: Array  # (m, q): C_t
    least_weight: float = LEAST_WEIGHT

    def __post_init__(self) -> None:
        most = min(len(self.points), MOST_NEIGHBOURS)
        if not 1 <= self.n_neighbours <= most:
            raise ValueError(
                f"n_neighbours == {self.n_neighbours}, must be from 1 to {most} with "
                f"{len(self.points)} landmarks."
            )
        if not (self.scale >= 0 and math.isfinite(self.scale)):
            raise ValueError(f"scale == {self.scale}, must be finite and >= 0.")
        if len(self.coordinates) != len(self.points):
            raise ValueError(
                f"coordinates has {len(self.coordinates)} rows, must have one for each of the "
                f"{len(self.points)} landmarks."
            )

    @property
    def width(self) -> int:
        """The number of features."""
        return self.coordinates.shape[1]


# What a pass applies to the columns of a view; None: the features are the columns themselves.
Map = Fourier | Landmarks | None

View = tuple[Array, Map]  # the columns (n, d) of a view and its map

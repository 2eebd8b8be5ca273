"""Array types for annotations, and arrays that belong together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Of structured frequencies: the signs S3, S2, S1, int8 of shape (blocks, 3, p), and the scale.
Structure = tuple[NDArray[np.int8], float]

# Most neighbours that the compiled pass keeps for a row.
MOST_NEIGHBOURS = 16


@dataclass(frozen=True)
class Fourier:
    """What makes random Fourier features of rows x: D^(-1/2) [sin(x Omega), cos(x Omega)]."""

    frequencies: Array  # (d, D): Omega
    structure: Structure | None = None  # of the frequencies, if they have one

    @property
    def width(self) -> int:
        """The number of features."""
        return 2 * self.frequencies.shape[1]


@dataclass(frozen=True)
class Landmarks:
    """What makes landmark features of rows x: phi = sum_t z_t C_t over the r landmarks y_t that are
    nearest to x, with the weights z_t = exp(-scale ||x - y_t||^2) / (their sum over the r).

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

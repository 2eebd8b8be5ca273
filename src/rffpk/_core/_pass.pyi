from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.arrays import Landmarks
from rffpk.rows.table import Columns

Array = NDArray[Any]

POWER: int
HARD: int
TYPICALITY: int
BOTH: int
MOST_NEIGHBOURS: int
SLOT_ROWS: int
STAGES: dict[str, int]

def fused_pass(
    xs: list[Columns],
    omegas: list[Array | None],
    shifts: list[Array],
    theta: Array,
    alpha: NDArray[np.float64],
    weight: Array | None,
    rule: int,
    s: float,
    n_threads: int,
    *,
    structures: list[tuple[NDArray[np.int8], float, int] | None] | None = None,
    landmarks: list[Landmarks | None] | None = None,
    eta: NDArray[np.float64] | None = None,
    m: float = 0,
    labels: NDArray[np.int32] | None = None,
    memberships: Array | None = None,
    distances: Array | None = None,
    nearest: Array | None = None,
    second: Array | None = None,
    features: Array | None = None,
    neighbours: NDArray[np.int32] | None = None,
    neighbour_weights: Array | None = None,
    carry: tuple[Array, Array, Array, Array, float, float] | None = None,
    directions: tuple[Array, Array, float] | None = None,
    stages: int = ...,
) -> tuple[Array, Array, Array, Array, float, float]: ...

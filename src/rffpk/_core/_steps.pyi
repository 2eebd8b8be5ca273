from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.arrays import Landmarks
from rffpk.rows.table import Columns

Array = NDArray[Any]

def take_steps(
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
    view_eta: NDArray[np.float64] | None = None,
    unit: float,
    variance: float,
    entropy: float,
    tol: float,
    most: int,
    goal: float,
    hope: float,
    least_share: float,
    close: tuple[float, float],
) -> tuple[
    list[tuple[float, float, float, float, int, float]],
    list[NDArray[np.float64]],
    Array,
    Array,
    int,
    bool,
    tuple[Array, Array, Array, Array, float, float],
]: ...
def move(
    sums: tuple[Array, Array, Array, Array, float, float],
    shifts: list[Array],
    theta: Array,
    alpha: NDArray[np.float64],
    s: float,
    *,
    view_eta: NDArray[np.float64] | None = None,
    unit: float,
    variance: float,
    entropy: float,
    least_share: float,
    close: tuple[float, float],
    coverage: NDArray[np.float64] | None = None,
    least_length: float = 0,
) -> tuple[tuple[float, float, float, float, int], NDArray[np.float64], Array, int]: ...
def count_distinct(theta: Array, close: float) -> int: ...
def costs_with(
    distances: Array, nearest: Array, weight: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def lowered(
    distances: Array, added: int, nearest: Array, weight: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def ward_mergers(gaps: Array, masses: Array) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
def near_pass(
    x: Array,
    unit: bool,
    shift: Array,
    weight: Array | None,
    theta: Array,
    near: NDArray[np.int32],
    order: NDArray[np.int32],
    ends: NDArray[np.int64],
    n_threads: int,
) -> tuple[NDArray[np.int32], Array, Array, NDArray[np.float64]]: ...

CELL_BLOCK: int

def nearest_in_cells(
    x: Array,
    centers: Array,
    blocks: Array,
    squares: Array,
    numbers: NDArray[np.int32],
    ends: NDArray[np.int64],
    visits: NDArray[np.int32],
    order: NDArray[np.int64],
    r: int,
    n_threads: int,
) -> NDArray[np.int32]: ...
def squares_of_pairs(
    x: Array, points: Array, index: NDArray[np.int32], n_threads: int
) -> Array: ...

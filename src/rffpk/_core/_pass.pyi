from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk._data.arrays import Landmarks

Array = NDArray[Any]

POWER: int
HARD: int
TYPICALITY: int
MOST_NEIGHBOURS: int
SKINNY_STRIDE: int
SLOT_ROWS: int
STAGES: dict[str, int]

def fused_pass(
    xs: list[Array],
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
    stages: int = ...,
) -> tuple[Array, Array, Array, Array, float, float]: ...
def weigh_products(
    products: Array,
    diagonal: Array,
    squares: Array,
    weight: Array | None,
    rule: int,
    s: float,
    n_threads: int,
    *,
    weights: Array | None = None,
    labels: NDArray[np.int32] | None = None,
) -> tuple[Array, float, float]: ...
def call_all(function: Callable[[Any], Any], items: list[Any], n_threads: int) -> list[Any]: ...
def empty_matrix(lines: int, columns: int, dtype: Any) -> Array: ...
def skinny_product(coefficients: Array, matrix: Array, out: Array, n_threads: int) -> None: ...
def isa_levels() -> list[str]: ...
def isa() -> str: ...
def use_isa(name: str) -> str: ...
def use_thread_work(work: float) -> float: ...
def vecmath(name: str, array: Array, out: Array | None = None) -> Array: ...

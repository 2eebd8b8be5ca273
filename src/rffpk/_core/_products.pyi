from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SKINNY_STRIDE: int

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
def csr_product(matrix: Any, v: Array, n_threads: int) -> Array: ...
def empty_matrix(lines: int, columns: int, dtype: Any) -> Array: ...
def skinny_product(coefficients: Array, matrix: Array, out: Array, n_threads: int) -> None: ...

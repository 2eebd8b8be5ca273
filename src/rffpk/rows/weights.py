"""Weights of rows: an array with a number >= 0 for each row.

Weights that are all one take the memory of one number, whatever the number of rows is: the array
repeats the number with a stride of zero. Samples and the core then need no weights.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns

ENDLESS = sys.maxsize // 8  # number of weights of a source whose number of rows is not yet known

# Read-only, as `ones` returns views.
_ONE = {np.dtype(t): np.frombuffer(np.ones(1, t).tobytes(), t) for t in (np.float32, np.float64)}


def ones(n: int, dtype: Any = np.float64) -> Array:
    """Return n weights of one, in the memory of one number."""
    # `numpy.broadcast_to` takes five times as long, which a prediction of one row would notice
    return np.ndarray((n,), dtype, buffer=_ONE[np.dtype(dtype)], strides=(0,))


def are_ones(weight: Array) -> bool:
    """Return whether weights come from `ones`.

    One row may have a stride of zero, too."""
    return weight.strides == (0,) and bool(not len(weight) or weight[0] == 1)


def weight_unit(weight: Array) -> float:
    """Return the least power of two above all weights, by which weights are divided.

    It is 1 for weights from `ones`."""
    return 1.0 if are_ones(weight) else 2.0 ** math.frexp(float(weight.max()))[1]


def with_unit(weight: Array, dtype: Any) -> tuple[Array, float]:
    """Return weights divided by their `weight_unit`, in a dtype, and this unit."""
    if are_ones(weight):
        return weight if weight.dtype == dtype else ones(len(weight), dtype), 1.0
    unit = weight_unit(weight)
    return in_units(weight, unit, dtype), unit


def in_units(weight: Array, unit: float, dtype: Any) -> Array:
    """Return weights divided by `unit`, in a dtype. Weights from `ones` stay `ones`."""
    if are_ones(weight):
        return weight if weight.dtype == dtype else ones(len(weight), dtype)
    return np.ascontiguousarray(weight / unit, dtype=dtype)


def weights_at(weight: Array, index: Array | slice) -> Array:
    """Return the weights at an index or a mask of rows. Weights from `ones` stay `ones`."""
    if isinstance(index, slice) or not are_ones(weight):
        return weight[index]
    return ones(int(index.sum()) if index.dtype == bool else len(index), weight.dtype)


def for_core(weight: Array) -> Array | None:
    """Return the weights as the core takes them: None if all weights come from `ones`."""
    return None if are_ones(weight) else weight


def of_positive_weight(x: Columns, weight: Array) -> Columns:
    """Return the rows of positive weight; no copy if they are all rows."""
    return x if weight.all() else x[np.flatnonzero(weight)]

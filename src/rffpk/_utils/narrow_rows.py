"""Rows of small numbers, which a pass reads as they are and widens to float32 tile by tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The names of the types, and the types of their numbers in memory.
_TYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.uint16),
    "int8": np.dtype(np.int8),
    "uint8": np.dtype(np.uint8),
}

SMALL = set(_TYPES.values())

# The bits of exponents, which are all ones where a number is infinite or NaN.
_EXPONENTS = {_TYPES["float16"]: 0x7C00, _TYPES["bfloat16"]: 0x7F80}

_BLOCK = 1 << 20  # numbers that are looked at together


@dataclass(frozen=True, eq=False)
class NarrowRows:
    """Dense rows of float16, bfloat16, int8 or uint8, with as much of the interface of an array of
    float32 as passes use. Some rows by their numbers, a copy or a conversion are float32."""

    stored: NDArray[Any]  # (n, d), in C order; of bfloat16 the bits, as uint16

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.stored.shape
        return n, d

    @property
    def size(self) -> int:
        return self.stored.size

    def __len__(self) -> int:
        return len(self.stored)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            return NarrowRows(self.stored[rows])
        return _widened(self.stored[rows])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return _widened(self.stored).astype(dtype or self.dtype, copy=False)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return self if dtype == self.dtype and not copy else self.__array__(dtype)

    def copy(self) -> NDArray[Any]:
        return self.__array__()

    def is_finite(self) -> bool:
        """Whether no number is infinite or NaN."""
        mask = _EXPONENTS.get(self.stored.dtype)
        if mask is None:
            return True
        bits = self.stored.view(np.uint16).reshape(-1)
        blocks = (bits[i : i + _BLOCK] for i in range(0, len(bits), _BLOCK))
        return not any(((block & mask) == mask).any() for block in blocks)

    def mean_square(self) -> float:
        """The mean of the squares of the numbers."""
        step = max(1, _BLOCK // max(self.shape[1], 1))
        blocks = (_widened(self.stored[i : i + step]) for i in range(0, len(self), step))
        with np.errstate(over="ignore"):
            return sum(float(np.vdot(x, x)) for x in blocks) / max(self.size, 1)


def _widened(stored: NDArray[Any]) -> NDArray[np.float32]:
    if stored.dtype == np.uint16:
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float32)


def narrow_rows(x: Any) -> NarrowRows | None:
    """A table of small numbers as rows, in place if it is in C order; None for anything else."""
    kind = _TYPES.get(getattr(getattr(x, "dtype", None), "name", ""))
    if kind is None or not isinstance(x, np.ndarray) or x.ndim != 2 or not x.size:
        return None
    if not x.dtype.isnative:
        return None
    return NarrowRows(np.require(np.asarray(x), requirements=["C", "A"]).view(kind))


def as_type(x: Any, dtype: Any = None) -> Any:
    """numpy.asarray, which leaves small numbers as they are unless they are to be float64."""
    return x.astype(dtype or x.dtype, False) if isinstance(x, NarrowRows) else np.asarray(x, dtype)


def plain(x: Any) -> Any:
    """Small numbers as float32; anything else as it is."""
    return x.copy() if isinstance(x, NarrowRows) else x

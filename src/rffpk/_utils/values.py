"""What the values of a column are, whatever type the column has: numbers, words, gaps or times."""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Hashable, Iterable
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

Kind: TypeAlias = Literal["gap", "time", "boolean", "number", "word", "other"]

_GAPS = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # names of classes
_TIMES = ("strftime", "total_seconds", "freqstr")  # of dates and periods, durations, offsets


def kinds_of(values: Iterable[Any]) -> dict[type, Kind]:
    """The kind of each class that values have."""
    return {cls: _kind_of(cls) for cls in {*map(type, values)}}


def _kind_of(cls: type) -> Kind:
    if cls.__name__ in _GAPS:
        return "gap"
    # numpy.timedelta64 says that it is an integer, and dates of NumPy become numbers like any
    if issubclass(cls, (np.datetime64, np.timedelta64)) or any(hasattr(cls, a) for a in _TIMES):
        return "time"
    if issubclass(cls, (bool, np.bool_)):
        return "boolean"
    if issubclass(cls, (numbers.Real, decimal.Decimal)):
        return "number"
    return "word" if issubclass(cls, Hashable) and not issubclass(cls, complex) else "other"


def gaps_in(values: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Where values are missing: None and its like, and NaN of any class."""
    kinds = kinds_of(values)
    missing = {cls for cls, kind in kinds.items() if kind == "gap"}
    may_be = {cls for cls, kind in kinds.items() if kind == "number"}
    return np.array(
        [type(v) in missing or (type(v) in may_be and v != v) for v in values], dtype=bool
    )


def are_times(values: Any) -> bool:
    """Whether an array or a series has dates, times, periods or durations."""
    kind = getattr(values.dtype, "kind", "")
    temporal = getattr(values.dtype, "is_temporal", None)  # polars
    if kind in ("m", "M") or (temporal is not None and temporal()):
        return True
    if kind == "O" or str(values.dtype) == "Object":
        return "time" in kinds_of(np.asarray(values, dtype=object).ravel()).values()
    return False


def are_numbers(values: Any) -> bool:
    """Whether an array or a series has numbers or booleans alone, without gaps in objects."""
    if getattr(values.dtype, "kind", "") != "O":
        return values.dtype.kind in "fiub"
    objects = np.asarray(values, dtype=object)
    return {*kinds_of(objects).values()} <= {"number", "boolean"}


def refuse_times(name: str, column: Any = None) -> NoReturn:
    """Raise a TypeError for the dates or durations in an argument."""
    where = "" if column is None else f" in column {column!r}"
    raise TypeError(
        f"{name} has dates or durations{where}, which are not numbers: leave them out, or convert "
        "them to numbers that matter, such as an age in days or the hour."
    )

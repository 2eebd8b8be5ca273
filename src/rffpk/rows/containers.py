"""Containers of rows, such as frames, and the kinds of the values in a column: numbers, words, gaps
or times. Classes of the values decide, not the type of the column."""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Hashable, Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Kind: TypeAlias = Literal["gap", "time", "boolean", "number", "word", "other"]

_GAPS = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # names of classes
_TIMES = ("strftime", "total_seconds", "freqstr")  # in dates and periods, durations, offsets


def kinds_of(values: Iterable[Any]) -> dict[type, Kind]:
    """Return a dictionary with the kind of each class that occurs among the values."""
    return {cls: _kind_of(cls) for cls in {*map(type, values)}}


def _kind_of(cls: type) -> Kind:
    """Return the kind of the values of a class."""
    if cls.__name__ in _GAPS:
        return "gap"
    # a numpy.timedelta64 is registered as an integer, and NumPy converts both to numbers
    if issubclass(cls, (np.datetime64, np.timedelta64)) or any(hasattr(cls, a) for a in _TIMES):
        return "time"
    if issubclass(cls, (bool, np.bool_)):
        return "boolean"
    if issubclass(cls, (numbers.Real, decimal.Decimal)):
        return "number"
    return "word" if issubclass(cls, Hashable) and not issubclass(cls, complex) else "other"


def gaps_in(values: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Return a mask of missing values: None, NA, NaT, masked constants, and NaN of any class."""
    kinds = kinds_of(values)
    missing = {cls for cls, kind in kinds.items() if kind == "gap"}
    may_be = {cls for cls, kind in kinds.items() if kind == "number"}
    return np.array(
        [type(v) in missing or (type(v) in may_be and v != v) for v in values], dtype=bool
    )


def is_arrow(x: Any) -> bool:
    """Return whether this is an Arrow table, whose `columns` are not names."""
    return hasattr(x, "column_names") and not hasattr(x, "dtypes")


def are_times(values: Any) -> bool:
    """Return whether an array or a series has dates, times, periods or durations."""
    kind = getattr(values.dtype, "kind", "")
    temporal = getattr(values.dtype, "is_temporal", None)  # polars
    if kind in ("m", "M") or (temporal is not None and temporal()):
        return True
    if kind == "O" or str(values.dtype) == "Object":
        return "time" in kinds_of(np.asarray(values, dtype=object).ravel()).values()
    return False


def are_numbers(values: Any) -> bool:
    """Return whether an array or a series holds only numbers or booleans.

    Missing values in an array of objects are not numbers."""
    if getattr(values.dtype, "kind", "") != "O":
        return values.dtype.kind in "fiub"
    objects = np.asarray(values, dtype=object)
    return {*kinds_of(objects).values()} <= {"number", "boolean"}


def is_list_of_views(X: Any) -> bool:
    """Return whether X is a list or tuple that contains a two-dimensional array."""
    return isinstance(X, (list, tuple)) and any(dimensions(x) == 2 for x in X)


def length(x: Any) -> int:
    """Return the number of rows of an array, a frame or a sparse matrix."""
    return int(x.shape[0]) if sparse.issparse(x) else len(x)


def dimensions(x: Any) -> int:
    """Return the number of dimensions of an array, of nested lists or of a number.

    It is 0 for ragged lists, which are refused by name where they are converted.
    """
    try:
        return np.ndim(x)
    except ValueError:
        return 0


def labels_of(X: Any, width: int) -> list[Any]:
    """Return the column names of a frame or an Arrow table, or 0 to width - 1 for other X."""
    names = "column_names" if is_arrow(X) else "columns"
    return list(getattr(X, names, range(width)))


def has_index(x: Any, n_dimensions: int) -> bool:
    """Return whether x is a frame or a series of `n_dimensions` whose index can be compared.

    Dask collections have no index that is known."""
    known = hasattr(getattr(x, "index", None), "equals") and not hasattr(x, "__dask_graph__")
    return known and x.ndim == n_dimensions


def converts(word: str, kind: type) -> bool:
    """Return whether `kind`, such as float, accepts a word."""
    try:
        kind(word)
    except ValueError:
        return False
    return True

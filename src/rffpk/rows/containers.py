"""What rows come in, and what the values of a column are, whatever type the column has: numbers,
words, gaps or times. Objects that NumPy would read item by item, and frames whose rows are in
another order than those of others, are refused with what to pass."""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

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


def is_arrow(x: Any) -> bool:
    """Whether this is a table of Arrow, whose `columns` are not names."""
    return hasattr(x, "column_names") and not hasattr(x, "dtypes")


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


# Attributes of objects that hold rows, and what to pass in place of such an object {x}.
_CONTAINERS = {
    ("mod", "obs"): "views, such as [part.to_df() for part in {x}.mod.values()]",  # MuData
    ("obsm", "to_df"): "adata.X or adata.obsm['X_pca']",  # AnnData
    ("with_format", "column_names"): "a column, {x}.with_format('numpy')[:]['NAME']",  # datasets
    ("tensors",): "{x}.tensors[0].numpy()",  # a TensorDataset
    ("toPandas",): "{x}.toPandas()",
    ("to_pandas",): "{x}.to_pandas()",
    ("collect",): "{x}.collect()",  # a lazy frame
}


def is_list_of_views(X: Any) -> bool:
    """Whether X is a list or tuple that contains a two-dimensional array."""
    return isinstance(X, (list, tuple)) and any(dimensions(x) == 2 for x in X)


def refuse_labels(X: Any, several: bool) -> None:
    """Raise a ValueError if a view has one dimension, as labels in (X, y) have."""
    sizes = [dimensions(x) for x in X]
    if 1 not in sizes or all(value is None for value in X[sizes.index(1)]):
        return
    name = f"X[{sizes.index(1)}]"
    column = f"numpy.reshape({name}, (-1, 1)) in its place" if several else "numpy.column_stack(X)"
    raise ValueError(
        f"{name}: has one dimension, as labels have. Pass X[{sizes.index(2)}] alone, or {column} "
        f"if {name} is a column."
    )


def length(x: Any) -> int:
    """The number of rows of an array, a frame or a sparse matrix."""
    return int(x.shape[0]) if sparse.issparse(x) else len(x)


def dimensions(x: Any) -> int:
    """The number of dimensions of an array, of nested lists or of a number; 0 of ragged lists,
    which are refused by name where they are converted."""
    try:
        return np.ndim(x)
    except ValueError:
        return 0


# ---- objects that are no arrays -----------------------------------------------------------------


def check_container(values: Any, name: str) -> None:
    """Raise a TypeError for an object with items that is no array, or for a list with such a one:
    NumPy would ask it for its items one by one."""
    if not _is_array_like(type(values)):
        raise TypeError(_refusal(values, name))
    kinds = {*map(type, values)} if isinstance(values, (list, tuple)) else ()
    if others := {kind for kind in kinds if not _is_array_like(kind)}:
        number = next(i for i, part in enumerate(values) if type(part) in others)
        raise TypeError(_refusal(values[number], f"{name}[{number}]"))


def _is_array_like(kind: type) -> bool:
    """Whether NumPy takes objects of a type as a whole, or as a sequence: not those with items of
    which it knows nothing else."""
    if not any(hasattr(kind, method) for method in ("__iter__", "__getitem__")):
        return True
    arrays = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")
    known = any(hasattr(kind, method) for method in arrays)
    return known or issubclass(kind, (Sequence, sparse.spmatrix, sparse.sparray))


def _refusal(values: Any, name: str) -> str:
    must = "must be an array, a data frame, a sparse matrix or a list of rows"
    instead = _instead(values, name)
    return f"{name} is of type {type(values).__name__}, {must}{instead and ': pass ' + instead}."


def _instead(values: Any, name: str) -> str:
    """What to pass in place of an object that holds rows; empty if that is not known."""
    if isinstance(values, Iterator):
        return f"numpy.vstack([*{name}])" if name == "X" else f"[*{name}]"
    if isinstance(values, Mapping):
        return _instead_of_mapping(values, name)
    if hasattr(values, "to_df") and name != "X":  # AnnData
        return f"{name}.to_df(), whose rows are compared with those of other views"
    known = (each for each in _CONTAINERS if all(hasattr(values, attribute) for attribute in each))
    return _CONTAINERS.get(next(known, ()), "").format(x=name)


def _instead_of_mapping(values: Mapping[Any, Any], name: str) -> str:
    parts = [*values.values()]
    if not all(_is_array_like(type(part)) for part in parts):
        return f"one of its values, such as {name}[{next(iter(values))!r}]"
    if all(dimensions(part) == 0 for part in parts):
        rows, bracket, _ = name.partition("[")
        if bracket:  # a row in a list of such
            return f"pandas.DataFrame({rows})"
        return "" if name == "X" else f"pandas.Series({name})"
    if any(hasattr(part, "index") and hasattr(part, "iloc") for part in parts):
        return f"pandas.concat([*{name}.values()], axis=1)"
    return f"numpy.column_stack([*{name}.values()])"


# ---- labels of rows -----------------------------------------------------------------------------


def check_row_labels(X: Any, sample_weight: Any = None, table: Any = None) -> None:
    """Raise a ValueError if the indices of views, or of X and its weights or a table of the same
    rows, differ: their rows are matched by place.

    A default index is compared, too. It may be what `reset_index` has left of a frame whose rows
    were in another order, which nobody can tell.
    """
    if isinstance(X, (list, tuple)):
        labelled = [(f"X[{i}]", x) for i, x in enumerate(X) if _has_index(x, 2)]
    else:
        labelled = [("X", X)] if _has_index(X, 2) else []
    if _has_index(sample_weight, 1):
        labelled.append(("sample_weight", sample_weight))
    if _has_index(table, 2):
        labelled.append(("table", table))
    for name, other in labelled[1:]:
        _compare(*labelled[0], name, other)


def check_labels_of_pairs(X: Any) -> None:
    """Raise a ValueError if the columns of a square frame are its rows in another order. Rows or
    columns that are numbered in their order may have no names."""
    if not _has_index(X, 2) or len(X) != X.shape[1]:
        return
    rows, columns, numbers = list(X.index), list(X.columns), [*range(len(X))]
    if rows != columns and numbers not in (rows, columns) and {*rows} == {*columns}:
        raise ValueError(
            "X has a value for each pair of rows, but the columns are not in the order of the "
            "index: pass X.loc[:, X.index]."
        )


def _has_index(x: Any, n_dimensions: int) -> bool:
    """Whether x is a frame or a series whose index is known."""
    known = hasattr(getattr(x, "index", None), "equals") and not hasattr(x, "__dask_graph__")
    return known and x.ndim == n_dimensions


def _compare(first_name: str, first: Any, name: str, other: Any) -> None:
    if len(first) != len(other) or first.index.equals(other.index):
        return  # other numbers of rows are refused elsewhere
    a, b = (x.index.astype(object) for x in (first, other))
    if a.equals(b):
        return
    row = next(i for i in range(len(a)) if not a[i : i + 1].equals(b[i : i + 1]))
    remedy = f"{name}.to_numpy() if its rows are in the order of {first_name}"
    # labels that repeat do not tell rows apart
    shared = a.intersection(b) if a.is_unique and b.is_unique else ()
    if len(shared) == len(a):
        remedy = f"{name}.loc[{first_name}.index]"
    elif len(shared):
        common = f"common = {first_name}.index.intersection({name}.index)"
        remedy += f", or both {first_name}.loc[common] and {name}.loc[common] with {common}"
    raise ValueError(
        f"{name} has other rows than {first_name}, or in another order: row {row} has the index "
        f"{b[row]!r}, in {first_name} {a[row]!r}; pass {remedy}."
    )

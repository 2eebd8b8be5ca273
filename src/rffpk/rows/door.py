"""Checks of X in `fit` and `predict`: one array, a list of views, or views in one array."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from rffpk.rows import advice, checks, table
from rffpk.rows.arrays import Array
from rffpk.rows.containers import dimensions, is_list_of_views
from rffpk.rows.table import Columns
from rffpk.system.config import fits_memory
from rffpk.system.report import are_wanted

Kind = Literal["rows", "kernels", "graph"]


class Shape(NamedTuple):
    """What a fitted model remembers of X."""

    n_columns: int  # summed over all arrays of X
    widths: tuple[int, ...]  # numbers of columns of the views
    listed: bool = False  # whether X was a list of views
    columns: tuple[slice | NDArray[np.intp], ...] = ()  # views as columns of one X; (): all
    names: tuple[tuple[str, ...], ...] = ((),)  # column names of each array; (): no names
    in_float64: bool = False  # whether squares of fitted rows leave the range of float32
    # index of the table of each fitted view; index len(widths) is the table of all columns
    views: tuple[int, ...] = (0,)

    @property
    def has_views(self) -> bool:
        """Whether X was given as views, not as one array for all kernels."""
        return self.listed or bool(self.columns)


class Schema(NamedTuple):
    """What an estimator takes as X."""

    name: str  # name of the class
    kind: Kind = "rows"  # X holds rows, kernels between rows, or the affinities of a graph
    several: bool = False  # whether X may be a list of views
    views: Any = None  # the parameter `views`: columns of each view in one array
    may_lack: bool | None = None  # whether rows may lack views; None: the class has no such option
    narrow: bool = False  # whether rows of float16, bfloat16, int8 and uint8 stay as they are
    warns_of_kernels: bool = False  # whether X that looks like a kernel matrix may be a mistake
    # computes `Shape.views` from the shape of X, as several views may share a table; None:
    # each view has its own
    arrange: Callable[[Shape], tuple[int, ...]] | None = None
    fitted: Shape | None = None  # shape of the fitted rows; None: X is to be fitted

    def of_new_rows(self, fitted: Shape) -> Schema:
        """Return the schema for new rows of a model that was fitted to rows of shape `fitted`."""
        return self._replace(fitted=fitted, arrange=None)


def check_views(X: Any, schema: Schema) -> tuple[list[Columns], Shape]:
    """Check X; return its distinct tables, of one dtype, and its shape.

    Arrays of float32 and float64 in C order are not copied. Other dtypes become float64, and other
    layouts are copied. float32 becomes float64 where squares of the fitted rows leave its range. If
    rows may lack views, a row without a view has NaN in all columns of the view. If a view needs
    all columns side by side, a table of all columns comes last."""
    listed = False
    # a plain table of numbers needs none of these checks
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "fiub":
        if isinstance(X, np.ndarray) and X.ndim == 3 and schema.kind == "kernels":
            # a stack of kernel matrices becomes a list
            is_stack = schema.several and (schema.fitted or X.shape[1] == X.shape[2])
            X = list(X) if is_stack else X
        checks.check_container(X, "X")
        if schema.may_lack and isinstance(X, (list, tuple)):
            X = [with_nan_rows(x, f"X[{i}]") for i, x in enumerate(X)]
        advice.give(advice.CONTAINERS, "X", X, several=schema.several)
        checks.check_row_labels(X)
        listed = is_list_of_views(X)
    if listed or (schema.fitted and schema.fitted.listed):
        advice.give(advice.LISTS, "X", X, schema=schema)
    xs, shape = (_check_list if listed else _check_array)(X, schema)
    if schema.may_lack:
        name = "X[{}]" if listed else "views[{}]" if shape.columns else "X"
        check_missing(xs, [name.format(i) for i in range(len(xs))])
    dtype = np.float64 if shape.in_float64 else np.result_type(*map(attrgetter("dtype"), xs))
    if schema.fitted is None:
        views = schema.arrange(shape) if schema.arrange else range(len(shape.widths))
        shape = shape._replace(views=(*views,))
    tables = [table.as_type(x, dtype) for x in xs]
    joined = [table.side_by_side(tables)] if len(tables) in shape.views else []
    return tables + joined, shape


# ---- one array -----------------------------------------------------------------------------------


def _check_array(X: Any, schema: Schema) -> tuple[list[Columns], Shape]:
    """Check X that is one array; return one table for each view, and the shape of X."""
    fitted = schema.fitted
    x, names, mean = _read_array(X, schema)
    d = x.shape[1]
    if fitted is None:
        if len(x) == d:
            _warn_if_kernel(x, "X", schema)
        columns, views = tuple[slice | NDArray[np.intp], ...](), schema.views
        if views is not None:
            if not isinstance(views, (list, tuple)) or not views:
                raise TypeError(
                    f"views={views!r}: is no list. Pass a list of the columns of each view."
                )
            if schema.kind == "kernels":
                raise ValueError(
                    f"views={views!r}: kernels='precomputed' has no columns. Pass None."
                )
            columns = tuple(_columns(v, f"views[{i}]", [*names], d) for i, v in enumerate(views))
        fitted = Shape(d, (d,), False, columns, (names,), table.beyond_float32(x, mean))
    if not fitted.columns:
        return [x], fitted
    xs = [table.some_columns(x, index) for index in fitted.columns]
    return xs, fitted._replace(widths=tuple(x.shape[1] for x in xs))


def _read_array(X: Any, schema: Schema) -> tuple[Columns, tuple[str, ...], float]:
    """Check one array; return the table, the column names, and the mean square of its numbers."""
    fitted, names = schema.fitted, tuple[str, ...]()
    if schema.kind == "kernels":
        X = _written_out(X, "X")
    x, small = X, None  # small: the rows in low precision, which passes widen
    # arrays of float32 and float64 need only the test for finite numbers
    if type(X) is not np.ndarray or X.dtype.char not in "fd":
        if not sparse.issparse(X):
            checks.check_plain(X, "X")
        small = table.narrow_rows(X) if schema.narrow else None
        x = X if small is None else small
    with np.errstate(over="ignore", invalid="ignore"), checks.named("X", X):
        if schema.kind != "rows":
            advice.give(advice.PAIRS, "X", X, schema=schema)
        if fitted is None or not _is_plain(x, fitted):
            if small is None:
                x = check_array(  # numbers that are not finite are refused by name
                    x, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False,
                    accept_sparse="csr", input_name="X", estimator=schema.name,
                )  # fmt: skip
                x = table.sparse_rows(x) if sparse.issparse(x) else x
            names = _check_columns(X, schema)
        mean = table.mean_square(x)  # one reading of all rows also finds NaN
        if not math.isfinite(mean):
            checks.check_finite(table.operand(x), "X", X, schema)
    return x, names, mean


def _is_plain(x: Any, fitted: Shape) -> bool:
    """Return whether `x` is an array of new rows that scikit-learn's checks would return unchanged.

    Its checks take some 200 calls, so they are skipped then."""
    plain = type(x) is np.ndarray and x.dtype.char in "fd" and x.dtype.isnative and x.ndim == 2
    known = plain and x.shape[1] == fitted.n_columns
    # scikit-learn warns of columns without names
    named_columns = any(fitted.names) and are_wanted(UserWarning)
    return known and len(x) > 0 and x.flags.c_contiguous and not named_columns


def _check_columns(X: Any, schema: Schema) -> tuple[str, ...]:
    """Check number and names of the columns against the fitted rows; return the names.

    scikit-learn compares by attributes of an estimator, so a class without other attributes stands
    in for the estimator."""
    memory: Any = _memory_of(schema.name)()
    if schema.fitted is not None:
        memory.n_features_in_ = schema.fitted.n_columns
        if any(schema.fitted.names):
            memory.feature_names_in_ = np.array(schema.fitted.names[0], dtype=object)
    validate_data(memory, X, reset=schema.fitted is None, skip_check_array=True)
    return tuple(vars(memory).get("feature_names_in_", ()))


@cache
def _memory_of(name: str) -> type[BaseEstimator]:
    """Return a class of this name, by which scikit-learn's messages call an estimator."""
    return type(name, (BaseEstimator,), {})


def _warn_if_kernel(x: Columns, name: str, schema: Schema) -> None:
    """Warn if rows look like a kernel matrix, but the model will compute kernels from the rows."""
    if schema.warns_of_kernels and schema.kind != "kernels":
        advice.give(advice.FEATURES, name, advice.likeness(x))


def _columns(view: Any, name: str, names: list[str], width: int) -> slice | NDArray[np.intp]:
    """Convert one entry of the parameter `views` to a slice or an array of column indices."""
    with checks.named(name):
        index = np.arange(width)[view] if isinstance(view, slice) else np.asarray(view)
    advice.give(advice.CHOICES, name, view, index=index, names=names, width=width)
    if isinstance(view, slice):
        return view
    if index.dtype.kind == "b":
        return np.flatnonzero(index)
    if index.dtype.kind in "UO":
        return np.array([names.index(column) for column in index])
    return index.astype(np.intp)


def _check_list(X: Any, schema: Schema) -> tuple[list[Columns], Shape]:
    """Check X that is a list of views; return one table for each view, and the shape of X."""
    xs: list[Columns] = []
    for name, x in ((f"X[{i}]", x) for i, x in enumerate(X)):
        x = _written_out(x, name) if schema.kind == "kernels" else x
        with checks.named(name):
            x = checks.finite_array(
                x, name, [np.float64, np.float32], schema, order="C", accept_sparse="csr"
            )
            xs.append(table.sparse_rows(x) if sparse.issparse(x) else x)
    advice.give(advice.VIEWS, "X", xs, fitted=schema.fitted, kind=schema.kind)
    widths, labels = tuple(x.shape[1] for x in xs), [tuple(getattr(x, "columns", ())) for x in X]
    # as in scikit-learn, names count only if all are strings
    names = tuple(own if all(isinstance(name, str) for name in own) else () for own in labels)
    if schema.fitted is None:
        for i, x in enumerate(xs):
            _warn_if_kernel(x, f"X[{i}]", schema)
        in_float64 = any(table.beyond_float32(x, table.mean_square(x)) for x in xs)
        return xs, Shape(sum(widths), widths, True, (), names, in_float64)
    for i, own in enumerate(names):
        advice.give(advice.NAMES, f"X[{i}]", own, fitted=schema.fitted.names[i])
    return xs, schema.fitted


def with_nan_rows(x: Any, name: str) -> Any:
    """Replace the entries None in a list of rows by rows of NaN; return other views as they are.

    Raise a ValueError if all entries are None."""
    if not isinstance(x, (list, tuple)) and getattr(x, "ndim", 2) != 1:
        return x
    rows = list(x)
    known = [row for row in rows if row is not None]
    if len(known) == len(rows) or any(dimensions(row) != 1 for row in known):
        return x
    if not known:
        raise ValueError(
            f"{name}: is None in all rows. Pass numpy.full((n_samples, n_columns), numpy.nan)."
        )
    dtype = np.asarray(known[0]).dtype
    dtype = dtype.newbyteorder("=") if dtype.kind == "f" else np.dtype(float)  # NaN is a float
    none = np.full(len(known[0]), np.nan, dtype)
    return np.array([none if row is None else row for row in rows])


def check_missing(xs: list[Columns], names: list[str]) -> None:
    """Raise a ValueError if a row has some but not all columns of a view, or lacks all views."""
    lacks = np.zeros((len(xs[0]), len(xs)), dtype=bool)
    for view, (x, name) in enumerate(zip(xs, names)):
        counts = table.nan_counts(x)
        lacks[:, view] = counts == x.shape[1]
        parts = np.flatnonzero((counts > 0) & ~lacks[:, view])
        if len(parts):
            raise ValueError(
                f"{name}: has NaN in {counts[parts[0]]} of the {x.shape[1]} columns of row "
                f"{parts[0]}. Fill in numbers, such as by sklearn.impute.SimpleImputer, or set all "
                "columns of the row to NaN."
            )
    without = np.flatnonzero(lacks.all(axis=1))
    if len(without):
        raise ValueError(f"X: has no view of row {without[0]}. Drop the row.")


# ---- rows that a model takes as they are, and pictures and profiles look at ----------------------


def rows_as_given(x: Any, name: str) -> Any:
    """Return a frame or a sparse matrix as it is, and other rows as a two-dimensional array."""
    if sparse.issparse(x) or hasattr(x, "dtypes"):
        return x
    x = with_nan_rows(x, name)
    checks.check_plain(x, name)
    with checks.named(name, x):
        array = np.asarray(x)
    if array.ndim != 2:
        raise ValueError(f"{name} has {array.ndim} dimensions. Pass rows: (n_samples, n_features).")
    return array


def rows_at(x: Any, index: Array) -> Any:
    """Return the rows at `index` of an array, a frame or a sparse matrix, without conversion."""
    if sparse.issparse(x):
        return x.tocsr()[index]
    x = with_nan_rows(x, "X")
    if hasattr(x, "dtypes"):
        return x.iloc[index] if hasattr(x, "iloc") else x[index]
    checks.check_plain(x, "X")
    return np.asarray(x)[index]


def table_of(x: Any, dtype: Any = None) -> Columns:
    """Return the rows of a sparse matrix as sparse rows, other rows as an array."""
    if sparse.issparse(x):
        return table.sparse_rows(sparse.csr_array(x, dtype=dtype))
    return np.asarray(x, dtype=dtype)


def numbers_of(x: Any, name: str) -> Columns:
    """Return a table in float64. NaN is allowed in dense rows, infinity is not."""
    if sparse.issparse(x):
        return table_of(x, np.float64)
    x = with_nan_rows(x, name)
    checks.check_plain(x, name)
    with checks.named(name, x):
        return check_array(x, dtype=np.float64, input_name=name, ensure_all_finite="allow-nan")


# ---- views ---------------------------------------------------------------------------------------


def _written_out(K: Any, name: str) -> Any:
    """Return a sparse kernel matrix with its zeros, another kernel matrix as it is."""
    if not sparse.issparse(K):
        return K
    needed = math.prod(K.shape) * 8
    if not fits_memory(needed):
        raise MemoryError(
            f"{name}: is a sparse kernel that takes {needed:.2g} bytes with its zeros. Pass it as "
            "a graph to DiffusionPowerKMeans with metric='precomputed', which stays sparse."
        )
    with checks.named(name):
        return table.sparse_rows(K.tocsr()).toarray()

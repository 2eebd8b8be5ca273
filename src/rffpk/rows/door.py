"""The views that `fit` and `predict` are given: a list of arrays, or columns of one table."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from rffpk.rows.arrays import Array
from rffpk.rows.checks import check_finite, check_plain, finite_array, named
from rffpk.rows.containers import (
    check_container,
    check_labels_of_pairs,
    check_row_labels,
    dimensions,
    is_list_of_views,
    refuse_labels,
)
from rffpk.rows.square import OF_AFFINITIES, OF_DISTANCES, looks_like_kernel
from rffpk.rows.table import (
    Columns,
    as_type,
    beyond_float32,
    mean_square,
    nan_counts,
    narrow_rows,
    operand,
    side_by_side,
    skip_zeros,
    some_columns,
    sparse_rows,
)
from rffpk.system.config import fits_memory
from rffpk.system.report import are_wanted, warn

Kind = Literal["rows", "kernels", "graph"]


class Shape(NamedTuple):
    """What a fitted model remembers of X."""

    n_columns: int  # of all arrays of X
    widths: tuple[int, ...]  # numbers of columns of the views
    listed: bool = False  # whether X was a list of views
    columns: tuple[slice | NDArray[np.intp], ...] = ()  # of each view in one array; (): all columns
    names: tuple[tuple[str, ...], ...] = ((),)  # of the columns of each array; (): no names
    in_float64: bool = False  # whether float32 does not hold squares of the fitted rows
    # of each view of the fit the number of its table; that after the given views is all of them
    views: tuple[int, ...] = (0,)

    @classmethod
    def of_columns(cls, d: int, in_float64: bool) -> Shape:
        """Return the shape of one array of d columns without names."""
        return cls(d, (d,), in_float64=in_float64)

    @classmethod
    def of_tables(cls, tables: list[Columns]) -> Shape:
        """Return the shape of a list of views."""
        widths = tuple(x.shape[1] for x in tables)
        return cls(sum(widths), widths, listed=True, views=tuple(range(len(tables))))

    @property
    def has_views(self) -> bool:
        """Whether X was given as views, not as one array for all kernels."""
        return self.listed or bool(self.columns)


def one_of_each(shape: Shape) -> tuple[int, ...]:
    """Return the numbers of the tables of views that are the given views."""
    return tuple(range(len(shape.widths)))


class Schema(NamedTuple):
    """What an estimator takes as X."""

    name: str  # of the class
    kind: Kind = "rows"  # X holds rows, kernels between rows, or the affinities of a graph
    several: bool = False  # whether X may be a list of views
    views: Any = None  # the parameter `views`: columns of each view in one array
    may_lack: bool | None = None  # whether rows may lack views; None: the class has no such option
    narrow: bool = False  # whether rows of float16, bfloat16, int8 and uint8 stay as they are
    warns_of_kernels: bool = False  # whether X that looks like a kernel matrix may be a mistake
    # numbers of the tables of a fit's views, which may repeat tables
    arrange: Callable[[Shape], tuple[int, ...]] = one_of_each
    fitted: Shape | None = None  # shape of the fitted rows; None: X is to be fitted

    def of_new_rows(self, fitted: Shape) -> Schema:
        """Return what a model that was fitted takes."""
        return self._replace(fitted=fitted, arrange=one_of_each)


def check_views(X: Any, schema: Schema) -> tuple[list[Columns], Shape]:
    """Check X; return the distinct tables of its views, of one dtype, and the shape of X.

    Arrays of float32 and float64 in C order stay as they are. Other dtypes become float64, other
    layouts are copied. float32 becomes float64 where it does not hold squares of the fitted rows.
    A row that lacks a view has NaN in all columns of the view.
    """
    listed = False
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype.kind not in "fiub":
        X = _kernels_of_stack(X, schema)
        _check_container(X, schema.several)
        if schema.may_lack and isinstance(X, (list, tuple)):
            X = [with_nan_rows(x, f"X[{i}]") for i, x in enumerate(X)]
        listed = is_list_of_views(X)
    xs, shape = (_check_list if listed else _check_array)(X, schema)
    if schema.may_lack:
        name = "X[{}]" if listed else "views[{}]" if shape.columns else "X"
        check_missing(xs, [name.format(i) for i in range(len(xs))])
    dtype = np.float64 if shape.in_float64 else np.result_type(*[x.dtype for x in xs])
    if schema.fitted is None:
        shape = shape._replace(views=schema.arrange(shape))
    tables = [as_type(x, dtype) for x in xs]
    joined = [side_by_side(tables)] if len(tables) in shape.views else []
    return tables + joined, shape


# ---- one array -----------------------------------------------------------------------------------


def _check_array(X: Any, schema: Schema) -> tuple[list[Columns], Shape]:
    """Check X that is one array; return its views and its shape."""
    fitted = schema.fitted
    if fitted is not None and fitted.listed:
        raise ValueError(f"X is one array, but was a list of {len(fitted.widths)} in fit.")
    x, names, mean = _read_array(X, schema)
    d = x.shape[1]
    if fitted is None:
        if schema.kind == "graph" and len(x) != d:
            raise ValueError(
                f"X.shape == {x.shape}, must be square: with metric='precomputed' it is a graph, "
                "the affinities of all pairs of rows."
            )
        if len(x) == d:
            _warn_if_kernel(x, "X", schema)
        columns = () if schema.views is None else _columns_of_views(schema, names, d)
        fitted = Shape(d, (d,), False, columns, (names,), beyond_float32(x, mean))
    if not fitted.columns:
        return [x], fitted
    xs = [some_columns(x, index) for index in fitted.columns]
    return xs, fitted._replace(widths=tuple(x.shape[1] for x in xs))


def _read_array(X: Any, schema: Schema) -> tuple[Columns, tuple[str, ...], float]:
    """Return the checked numbers of one array, the names of the columns, and the mean square."""
    fitted, names = schema.fitted, tuple[str, ...]()
    if schema.kind != "rows" and fitted is None:
        check_labels_of_pairs(X)
    if schema.kind == "kernels":
        X = _written_out(X, "X")
    x, small = X, None
    # of an array of float32 or float64 there is nothing to ask but whether its numbers are finite
    if type(X) is not np.ndarray or X.dtype.char not in "fd":
        if not sparse.issparse(X):
            check_plain(X, "X")
        small = narrow_rows(X) if schema.narrow else None
        x = X if small is None else small
    if schema.kind != "rows" and fitted is not None:
        _check_pairs(X, schema.kind, fitted.n_columns)
    with np.errstate(over="ignore", invalid="ignore"), named("X", X):
        if fitted is None or not _is_plain(x, fitted):
            if small is None:
                x = check_array(  # numbers that are not finite are refused by name
                    x, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False,
                    accept_sparse="csr", input_name="X", estimator=schema.name,
                )  # fmt: skip
                x = sparse_rows(x) if sparse.issparse(x) else x
            names = _check_columns(X, schema)
        mean = mean_square(x)  # in one reading of all rows
        if not math.isfinite(mean):
            remedy = partial(_remedy, schema, "X")
            check_finite(operand(x), "X", X, bool(schema.may_lack), remedy)
    return x, names, mean


def _is_plain(x: Any, fitted: Shape) -> bool:
    """Return whether new rows are an array that scikit-learn would not change or refuse.

    Its checks take some 200 calls."""
    plain = type(x) is np.ndarray and x.dtype.char in "fd" and x.dtype.isnative and x.ndim == 2
    known = plain and x.shape[1] == fitted.n_columns
    # scikit-learn warns of columns without names
    named_columns = any(fitted.names) and are_wanted(UserWarning)
    return known and len(x) > 0 and x.flags.c_contiguous and not named_columns


def _check_columns(X: Any, schema: Schema) -> tuple[str, ...]:
    """Compare number and names of the columns with the fitted rows; return the names.

    scikit-learn compares by attributes of an estimator, which has no other attributes here.
    """
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


def _check_pairs(X: Any, kind: Kind, n: int) -> None:
    """Refuse rows in the place of kernels or affinities between the rows."""
    shape = np.shape(X)
    if len(shape) == 2 and shape[1] != n:
        option, values = ("metric", "affinities") if kind == "graph" else ("kernel", "values")
        raise ValueError(
            f"X.shape == {shape}, must be (n_new, {n}): with {option}='precomputed' it holds the "
            f"{values} of new rows with the {n} fitted ones, not columns of the rows."
        )


def _remedy(schema: Schema, name: str, missing: bool) -> str:
    """Return what to do about NaN (`missing`) or infinities in an array of X."""
    if schema.kind == "kernels":
        return "must be finite"
    if not missing:
        return "replace it, or drop these rows"
    remedy = "fill it in, such as by rffpk.tables.TablePreprocessor, or drop these rows"
    if schema.may_lack:
        remedy += "; allow_missing_views=True is for dense views"
    elif schema.several and (name != "X" or schema.views is not None):
        own = "" if schema.may_lack is not None else " of RFFMultiKernelPowerKMeans"
        remedy += (
            f"; allow_missing_views=True{own} takes rows that are NaN in all columns of a view"
        )
    return remedy


def _warn_if_kernel(x: Columns, name: str, schema: Schema) -> None:
    """Warn if rows of which kernels are to be computed look like a kernel matrix."""
    if len(x) != x.shape[1] or not schema.warns_of_kernels or schema.kind == "kernels":
        return
    if looks_like_kernel(x):
        kind, remedy = "kernel values or affinities", ""
        if skip_zeros(x):
            kind, remedy = "affinities", f" These are dense: {name}.toarray(). {OF_AFFINITIES}"
        elif not np.diagonal(x).any():
            kind, remedy = "distances or affinities", f" {OF_DISTANCES} {OF_AFFINITIES}"
        warn(
            f"{name} is symmetric like a matrix of {kind}, but its rows are taken as features. "
            "Kernel values need 'precomputed' as the kernel, which KernelPowerKMeans and the "
            f"fusions of several kernels take.{remedy}",
            UserWarning,
        )


def _kernels_of_stack(X: Any, schema: Schema) -> Any:
    """Return the kernels that the first axis of an array counts; another X as it is."""
    is_stack = isinstance(X, np.ndarray) and X.ndim == 3 and schema.kind == "kernels"
    if not is_stack or not schema.several:
        return X
    return list(X) if schema.fitted or X.shape[1] == X.shape[2] else X


def _check_container(X: Any, several: bool) -> None:
    """Say how to pass views that come in other containers than a list, to a class of several
    kernels or of one."""
    tables = isinstance(X, dict) and all(len(getattr(x, "shape", ())) == 2 for x in X.values())
    if tables and several:
        raise TypeError(f"X is a dict of {len(X)} views, must be a list: pass [*X.values()].")
    check_container(X, "X")
    if several and isinstance(X, (list, tuple)) and X and all(map(_is_column, X)):
        raise ValueError(
            f"X: a list of {len(X)} one-dimensional arrays is no list of views. Pass "
            "[numpy.reshape(x, (-1, 1)) for x in X] for views of one column, or numpy.array(X) for "
            "a table whose rows they are."
        )
    if isinstance(X, np.ndarray) and X.ndim == 3:
        raise ValueError(f"X.shape == {X.shape}, {_instead_of_stack(X, several)}.")
    cells = X.ravel() if isinstance(X, np.ndarray) and X.dtype == object else ()
    if any(dimensions(x) == 2 for x in cells):
        raise TypeError("X is an array of arrays, such as a cell array: pass [*X.ravel()].")
    if is_list_of_views(X):
        refuse_labels(X, several)
    check_row_labels(X)


def _is_column(x: Any) -> bool:
    """Return whether x is an array or a series of numbers; of objects it may be a view of rows."""
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    return getattr(x, "ndim", 0) == 1 and kind != "O"


def _instead_of_stack(X: Array, several: bool) -> str:
    """What to pass in place of a stack of kernel matrices, of views, or of tables that are a row
    each."""
    first, last = "list(X)", "[X[:, :, i] for i in range(X.shape[2])]"
    kernels = [
        way
        for way, stack in ((first, X), (last, np.moveaxis(X, 2, 0)))
        if stack.shape[1] == stack.shape[2] and np.allclose(stack, stack.transpose(0, 2, 1))
    ]
    if kernels and not several:
        one = "X[0]" if kernels[0] == first else "X[:, :, 0]"
        return (
            f"a stack of kernel matrices: pass one, such as {one} with kernel='precomputed', or "
            "all to a class of several kernels"
        )
    if kernels:
        ways = " or, if the last axis counts them, ".join(kernels)
        return f"a stack of kernel matrices: pass {ways} with kernels='precomputed'"
    table = "X.reshape(len(X), -1) if the first axis counts samples"
    if not several:
        return f"must have two dimensions: pass {table}"
    return (
        "must have two dimensions or be a list of views: "
        f"pass {first} if the first axis counts views, {last} if the last one does, or {table}"
    )


def _columns_of_views(
    schema: Schema, names: tuple[str, ...], width: int
) -> tuple[slice | NDArray[np.intp], ...]:
    """Return the columns of each entry of the parameter `views` in an array of this width."""
    views = schema.views
    if not isinstance(views, (list, tuple)) or not views:
        raise TypeError(f"views == {views!r}, must be a list with the columns of each view.")
    if schema.kind == "kernels":
        raise ValueError("views needs columns, but kernels == 'precomputed'.")
    return tuple(_columns(view, f"views[{i}]", [*names], width) for i, view in enumerate(views))


def _columns(view: Any, name: str, names: list[str], width: int) -> slice | NDArray[np.intp]:
    """Return the indices of the columns that an entry of `views` names."""
    if isinstance(view, slice):
        with named(name):
            chosen = range(*view.indices(width))
        if not chosen:
            raise ValueError(f"{name} == {view!r} has none of the {width} columns of X.")
        return view
    given = np.asarray(view)
    if given.ndim != 1 or not given.size:
        raise ValueError(f"{name} == {view!r}, must be a slice, or a list of columns.")
    if given.dtype.kind == "b" and len(given) == width and given.any():
        return np.flatnonzero(given)
    if given.dtype.kind in "UO":
        unknown = [column for column in given.tolist() if column not in names]
        if unknown:
            raise ValueError(f"{name} has {unknown}, must have names of columns of X, or indices.")
        return np.array([names.index(column) for column in given])
    if given.dtype.kind not in "iu" or not ((-width <= given) & (given < width)).all():
        raise ValueError(f"{name} == {view!r}, must have indices of the {width} columns of X.")
    return given.astype(np.intp)


def _refuse_split_views() -> None:
    """Raise a ValueError inside a cross-validation of scikit-learn that is given a list of views:
    the parts of the list that it fits and scores are some of the views, of all rows."""
    frame = inspect.currentframe()
    while frame is not None:
        inside = frame.f_globals.get("__name__", "").startswith("sklearn.model_selection")
        if inside and is_list_of_views(frame.f_locals.get("X")):
            raise ValueError(
                "X is a list of views, and cross-validation would split the list, not the rows: "
                "pass one table, and the columns of each view by the parameter views."
            )
        frame = frame.f_back


def _check_list(X: Any, schema: Schema) -> tuple[list[Columns], Shape]:
    """Check X that is a list of views; return the views and the shape of X."""
    if not schema.several:
        package = "scipy.sparse" if any(map(sparse.issparse, X)) else "numpy"
        raise ValueError(
            f"X is a list of {len(X)} views, must be one array for {schema.name}: "
            f"{package}.hstack(X) puts their columns side by side."
        )
    if schema.views is not None or (schema.fitted and schema.fitted.columns):
        raise ValueError("X is a list of views, must be one array if views is given.")
    _refuse_split_views()
    xs = [_checked_view(x, f"X[{i}]", schema) for i, x in enumerate(X)]
    for number, x in enumerate(xs):
        if len(x) != len(xs[0]):
            same = len({each.shape[1] for each in xs}) == 1
            remedy = " Rows are samples: pass the transposes." if same else ""
            raise ValueError(f"X[{number}] has {len(x)} rows, X[0] has {len(xs[0])}.{remedy}")
    widths, names = tuple(x.shape[1] for x in xs), tuple(map(_column_names, X))
    if schema.fitted is None:
        _check_no_kernels(xs, schema)
        in_float64 = any(beyond_float32(x, mean_square(x)) for x in xs)
        return xs, Shape(sum(widths), widths, True, (), names, in_float64)
    _compare_views(widths, names, schema.fitted)
    return xs, schema.fitted


def _compare_views(
    widths: tuple[int, ...], names: tuple[tuple[str, ...], ...], fitted: Shape
) -> None:
    """Refuse a list of views in which other columns are than in the fitted rows."""
    if not fitted.listed or len(fitted.widths) != len(widths):
        before = len(fitted.widths) if fitted.has_views else "one array, not a list"
        raise ValueError(f"X has {len(widths)} views, in fit it had {before}.")
    for i, (d, width) in enumerate(zip(widths, fitted.widths)):
        if d != width:
            raise ValueError(f"X[{i}] has {d} columns, in fit it had {width}.")
        _check_names(names[i], fitted.names[i], f"X[{i}]")


def _check_no_kernels(xs: list[Columns], schema: Schema) -> None:
    """Raise a ValueError if all views of a list look like kernel matrices but are to be features;
    warn of some that do."""
    if schema.kind != "kernels" and all(map(looks_like_kernel, xs)):
        raise ValueError(
            f"X is a list of {len(xs)} symmetric matrices, whose rows would be taken as features. "
            "If they are kernel matrices, pass kernels='precomputed' to a class of several "
            "kernels. If they are features, pass one table, and the columns of each view by the "
            "parameter views."
        )
    for number, x in enumerate(xs):
        _warn_if_kernel(x, f"X[{number}]", schema)


def _column_names(x: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame if all are strings."""
    names = tuple(getattr(x, "columns", ()))
    return names if all(isinstance(name, str) for name in names) else ()


def _check_names(names: tuple[str, ...], fitted: tuple[str, ...], view: str) -> None:
    """Compare names of columns of a view with the fitted ones, as scikit-learn does for X."""
    if names == fitted:
        return
    if not names or not fitted:
        which = ("has", "had none") if names else ("has no", "had some")
        warn(f"{view} {which[0]} column names, but {which[1]} in fit.", UserWarning)
        return
    unseen, missing = ([n for n in a if n not in b] for a, b in ((names, fitted), (fitted, names)))
    how = f"{unseen} are new, {missing} are missing" if unseen or missing else "their order differs"
    raise ValueError(f"{view} must have the columns that it had in fit, in their order: {how}.")


def with_nan_rows(x: Any, name: str) -> Any:
    """A view, with rows of NaN in place of the entries None of a list of rows."""
    if not isinstance(x, (list, tuple)) and getattr(x, "ndim", 2) != 1:
        return x
    rows = list(x)
    given = [row for row in rows if row is not None]
    if len(given) == len(rows) or any(dimensions(row) != 1 for row in given):
        return x
    if not given:
        raise ValueError(
            f"{name} is None in all rows: pass numpy.full((n_samples, n_columns), numpy.nan), with "
            "the number of its columns."
        )
    none = np.full(len(given[0]), np.nan, dtype=np.asarray(given[0]).dtype.type(0).dtype)
    return np.array([none if row is None else row for row in rows])


def check_missing(xs: list[Columns], names: list[str]) -> None:
    """Raise a ValueError if a row has NaN in some columns of a view, or no view at all."""
    lacks = np.zeros((len(xs[0]), len(xs)), dtype=bool)
    for view, (x, name) in enumerate(zip(xs, names)):
        found = nan_counts(x)
        lacks[:, view] = found == x.shape[1]
        parts = np.flatnonzero((found > 0) & ~lacks[:, view])
        if len(parts):
            raise ValueError(
                f"{name} has NaN in {found[parts[0]]} of the {x.shape[1]} columns of row "
                f"{parts[0]}, must have it in none or in all of them. Fill in the numbers, such as "
                "by sklearn.impute.SimpleImputer, or set all columns of the row to NaN."
            )
    without = np.flatnonzero(lacks.all(axis=1))
    if len(without):
        raise ValueError(f"X has no view of row {without[0]}, must have at least one: drop it.")


# ---- rows that a model takes as they are, and pictures and profiles look at ----------------------


def rows_as_given(x: Any, name: str) -> Any:
    """Return a frame or a sparse matrix as it is, other rows as an array."""
    if sparse.issparse(x) or hasattr(x, "dtypes"):
        return x
    x = with_nan_rows(x, name)
    check_plain(x, name)
    with named(name, x):
        table = np.asarray(x)
    if table.ndim != 2:
        raise ValueError(f"{name} has {table.ndim} dimensions. Pass rows: (n_samples, n_features).")
    return table


def rows_at(x: Any, index: Array) -> Any:
    """Return the rows of an array, a frame or a sparse matrix at an index."""
    if sparse.issparse(x):
        return x.tocsr()[index]
    x = with_nan_rows(x, "X")
    if hasattr(x, "dtypes"):
        return x.iloc[index] if hasattr(x, "iloc") else x[index]
    check_plain(x, "X")
    return np.asarray(x)[index]


def table_of(x: Any, dtype: Any = None) -> Columns:
    """Return the rows of a sparse matrix as sparse rows, other rows as an array."""
    if sparse.issparse(x):
        return sparse_rows(sparse.csr_array(x, dtype=dtype))
    return np.asarray(x, dtype=dtype)


def numbers_of(x: Any, name: str) -> Columns:
    """Return a table in float64. NaN is allowed in dense rows, infinity is not."""
    if sparse.issparse(x):
        return table_of(x, np.float64)
    x = with_nan_rows(x, name)
    check_plain(x, name)
    with named(name, x):
        return check_array(x, dtype=np.float64, input_name=name, ensure_all_finite="allow-nan")


# ---- views ---------------------------------------------------------------------------------------


def _checked_view(x: Any, name: str, schema: Schema) -> Columns:
    """Check a view of a list; return an array, or `Csr` if the view is sparse."""
    if schema.kind == "kernels":
        x = _written_out(x, name)
    with named(name):
        checked = finite_array(
            x, name, [np.float64, np.float32], bool(schema.may_lack),
            partial(_remedy, schema, name), order="C", accept_sparse="csr",
        )  # fmt: skip
        return sparse_rows(checked) if sparse.issparse(checked) else checked


def _written_out(K: Any, name: str) -> Any:
    """Return a sparse kernel matrix with its zeros, another kernel matrix as it is."""
    if not sparse.issparse(K):
        return K
    needed = math.prod(K.shape) * 8
    if not fits_memory(needed):
        raise MemoryError(
            f"{name} is a sparse kernel that takes {needed:.2g} bytes with its zeros: pass it as a "
            "graph to DiffusionPowerKMeans with metric='precomputed', which stays sparse."
        )
    try:
        return sparse_rows(K.tocsr()).toarray()
    except ValueError as error:
        raise ValueError(f"{name} is not acceptable: {error}") from error

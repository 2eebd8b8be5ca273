"""The views that `fit` and `predict` are given: a list of arrays, or columns of one table."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rffpk.rows.arrays import Array
from rffpk.rows.checks import (
    check_rows,
    finite_array,
    is_option,
    named,
    pairs_of,
    warn_if_kernel,
)
from rffpk.rows.containers import (
    check_container,
    check_row_labels,
    dimensions,
    is_list_of_views,
    refuse_labels,
)
from rffpk.rows.square import looks_like_kernel
from rffpk.rows.table import (
    Columns,
    SparseRows,
    as_type,
    beyond_float32,
    mean_square,
    some_columns,
    sparse_rows,
)
from rffpk.system.config import fits_memory
from rffpk.system.report import warn


def check_views(estimator: Any, X: Any, *, reset: bool) -> list[Columns]:
    """The views of X as `check_rows` returns them, of equal dtypes; one array is one view, or has
    those of the parameter `views`.

    Sets `_view_columns`, `_n_views` (0: one array) and `_widths` in fit, and compares new rows with
    them. With the parameter `allow_missing_views` rows may lack views that are arrays, where they
    are NaN then.
    """
    table = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub"
    if not table:
        X = _kernels_of_stack(estimator, X, reset)
        _check_container(X, hasattr(estimator, "kernels"))
    may_lack = getattr(estimator, "allow_missing_views", False)
    if may_lack and isinstance(X, (list, tuple)):
        X = [with_nan_rows(x, f"X[{i}]") for i, x in enumerate(X)]
    if reset:
        estimator._view_columns = getattr(estimator, "views", None)
    listed, views = not table and is_list_of_views(X), estimator._view_columns
    xs = (_check_list if listed else _check_table)(estimator, X, reset)
    if may_lack:
        name = "X[{}]" if listed else "X" if views is None else "views[{}]"
        check_missing(xs, [name.format(i) for i in range(len(xs))])
    return xs


def _check_table(estimator: Any, X: Any, reset: bool) -> list[Columns]:
    """The views of one array."""
    views = estimator._view_columns
    if not reset and estimator._n_views and views is None:
        raise ValueError(f"X is one array, but was a list of {estimator._n_views} in fit.")
    if pairs_of(estimator) == "kernels":
        X = _written_out(X, "X")
    X = check_rows(estimator, X, reset=reset)
    xs = [X] if views is None else _columns_of_views(X, views, estimator)
    if reset:
        estimator._n_views = 0 if views is None else len(xs)
        estimator._widths = [x.shape[1] for x in xs]
    return xs


def _kernels_of_stack(estimator: Any, X: Any, reset: bool) -> Any:
    """The list of the precomputed kernels that the first axis of one array counts; another X as it
    is."""
    if not (isinstance(X, np.ndarray) and X.ndim == 3 and pairs_of(estimator) == "kernels"):
        return X
    if not hasattr(estimator, "kernels") or (reset and X.shape[1] != X.shape[2]):
        return X  # refused by what follows
    return list(X)


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


def _columns_of_views(X: Columns, views: Any, estimator: Any) -> list[Columns]:
    """The columns, in arrays or sparse rows of their own, for each entry of the parameter
    `views`."""
    if not isinstance(views, (list, tuple)) or not views:
        raise TypeError(f"views == {views!r}, must be a list with the columns of each view.")
    if is_option(getattr(estimator, "kernels", None), "precomputed"):
        raise ValueError("views needs columns, but kernels == 'precomputed'.")
    names = list(getattr(estimator, "feature_names_in_", []))
    return [
        some_columns(X, _columns(view, f"views[{i}]", names, X.shape[1]))
        for i, view in enumerate(views)
    ]


def _columns(view: Any, name: str, names: list[str], width: int) -> slice | NDArray[np.intp]:
    """The indices of the columns that an entry of `views` names."""
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


def _check_list(estimator: Any, X: Any, reset: bool) -> list[Columns]:
    if estimator._view_columns is not None:
        raise ValueError("X is a list of views, must be one array if views is given.")
    _refuse_split_views()
    names = [_column_names(x) for x in X]
    xs = [_checked_view(estimator, x, f"X[{i}]") for i, x in enumerate(X)]
    for number, x in enumerate(xs):
        if len(x) != len(xs[0]):
            same = len({each.shape[1] for each in xs}) == 1
            remedy = " Rows are samples: pass the transposes." if same else ""
            raise ValueError(f"X[{number}] has {len(x)} rows, X[0] has {len(xs[0])}.{remedy}")
    widths = [x.shape[1] for x in xs]
    if reset:
        _check_no_kernels(estimator, xs)
        estimator._in_float64 = any(beyond_float32(x, mean_square(x)) for x in xs)
        estimator._n_views, estimator._widths, estimator._view_names = len(xs), widths, names
        estimator.n_features_in_ = sum(widths)
    elif estimator._n_views != len(xs):
        before = estimator._n_views or "one array, not a list"
        raise ValueError(f"X has {len(xs)} views, in fit it had {before}.")
    else:
        for i, (d, fitted) in enumerate(zip(widths, estimator._widths)):
            if d != fitted:
                raise ValueError(f"X[{i}] has {d} columns, in fit it had {fitted}.")
            _check_names(names[i], estimator._view_names[i], f"X[{i}]")
    dtype = np.float64 if estimator._in_float64 else np.result_type(*(x.dtype for x in xs))
    return [as_type(x, dtype) for x in xs]


def _check_no_kernels(estimator: Any, xs: list[Columns]) -> None:
    """Raise a ValueError if all views of a list look like kernel matrices but are to be features;
    warn of some that do."""
    if pairs_of(estimator) != "kernels" and all(map(looks_like_kernel, xs)):
        raise ValueError(
            f"X is a list of {len(xs)} symmetric matrices, whose rows would be taken as features. "
            "If they are kernel matrices, pass kernels='precomputed' to a class of several "
            "kernels. If they are features, pass one table, and the columns of each view by the "
            "parameter views."
        )
    for number, x in enumerate(xs):
        warn_if_kernel(estimator, x, f"X[{number}]")


def _column_names(x: Any) -> list[str] | None:
    """The names of the columns of a frame, if all are strings."""
    names = list(getattr(x, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


def _check_names(names: list[str] | None, fitted: list[str] | None, view: str) -> None:
    """Compare the names of the columns of a view with those in fit, as scikit-learn does for X."""
    if names == fitted:
        return
    if names is None or fitted is None:
        which = ("has no", "had some") if names is None else ("has", "had none")
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
        if isinstance(x, SparseRows):  # which are finite
            continue
        found = np.isnan(x).sum(axis=1)
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


def _checked_view(estimator: Any, x: Any, name: str) -> Columns:
    """The view in an array, or as `SparseRows` if it is sparse."""
    if pairs_of(estimator) == "kernels":
        x = _written_out(x, name)
    dtypes = [np.float64, np.float32]
    with named(name):
        given = finite_array(x, name, dtypes, estimator=estimator, order="C", accept_sparse="csr")
        return sparse_rows(given) if sparse.issparse(given) else given


def _written_out(K: Any, name: str) -> Any:
    """A sparse kernel matrix with its zeros, another one as it is."""
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

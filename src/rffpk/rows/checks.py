"""Validation: every error names the argument, its value, and the values that are accepted."""

from __future__ import annotations

import contextlib
import math
import numbers
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import sklearn.utils
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, check_scalar

from rffpk.rows.arrays import Array
from rffpk.rows.containers import (
    are_times,
    check_container,
    check_row_labels,
    is_arrow,
    refuse_times,
)
from rffpk.rows.table import (
    Columns,
    rows_differ,
)
from rffpk.rows.weights import ENDLESS, ones

Auto = Literal["auto"]
Level = Literal["coarse", "auto", "fine"]  # of the numbers of clusters that are found

# Of rows and of terms of objectives: products with squared distances do not overflow then.
MAX_WEIGHT = 1e100
MIN_RATIO = 1e-30  # of the largest weight; float32 holds both then
_MIN_WEIGHT = 1e-275  # of the largest one; others have all of their bits then

_MAX_INT = 2**63 - 1  # the core counts in int64

MAX_S = -0.2  # the largest exponent whose weights stay in the range of float32 up to k = 10^4

# How the dtypes of nominal columns print in pandas, polars and Arrow.
NOMINAL = ("category", "Categorical", "Enum", "dictionary")


@contextlib.contextmanager
def named(name: str, *tables: Any) -> Iterator[None]:
    """Add the name of an argument to an error, and the reason where the tables show it."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"{name} has numbers that float64 cannot hold: {error}.") from error
    except (ValueError, TypeError) as error:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)):
            raise
        reason = "".join(_reason(table, name) for table in tables)
        raise type(error)(f"{name} is not acceptable: {reason or error}") from error


@contextlib.contextmanager
def of_two_rows(function: Any, name: str) -> Iterator[None]:
    """Describe in an error of a user's function what the function gets and must return."""
    try:
        yield
    except (ValueError, TypeError, IndexError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        first_line = str(error).partition("\n")[0]
        raise kind(
            f"{name}={getattr(function, '__name__', function)}: gets two rows, arrays of one "
            f"dimension, and must return a number. Its error was: {first_line}"
        ) from error


def _reason(X: Any, name: str) -> str:
    """Return why values are no table of numbers; empty if the reason is not known."""
    if X is None:
        return "it is None. Pass an array of shape (n_samples, n_features)."
    if sparse.issparse(X):
        return ""
    try:
        table = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    except ValueError:  # arrays whose first dimensions agree alone
        return ""
    if table.ndim and not any(table.shape):
        return "it has no rows. Pass an array of shape (n_samples, n_features)."
    if table.ndim not in (1, 2) or table.dtype.kind in "fiubc":
        return ""
    wide = table.ndim == 2
    columns = table.T if wide else [table]
    for column, values in zip(_labels_of(X, len(columns)), columns):
        for value in values:
            if wide and isinstance(value, str) and not converts(value, float):
                return (
                    f"could not convert string to float: {str(value)!r} in column {column!r}; "
                    "replace it by NaN if a number is missing, drop the column, or encode its "
                    "words, such as by rffpk.tables.TablePreprocessor."
                )
            if isinstance(value, (list, tuple, np.ndarray)):
                index = repr(column) if hasattr(X, "columns") else f":, {column}"
                return _of_vectors(values, f"{name}[{index}]" if wide else name)
    return ""


def _of_vectors(values: Any, name: str) -> str:
    """Return a message for vectors in the place of numbers."""
    lengths = sorted({np.size(value) for value in values})
    if len(lengths) == 1:
        return f"{name} has a vector in each entry. Pass numpy.vstack({name}) in its place."
    return (
        f"{name} has vectors of {lengths[0]} to {lengths[-1]} numbers. Make their lengths equal, "
        "such as by padding or by means, and stack them by numpy.vstack."
    )


def _labels_of(X: Any, width: int) -> list[Any]:
    """The names of the columns of a frame, or of a table of Arrow, whose columns are arrays; else
    their numbers."""
    names = "column_names" if is_arrow(X) else "columns"
    return list(getattr(X, names, range(width)))


def converts(word: str, kind: type) -> bool:
    """Whether a word is a number of this type."""
    try:
        kind(word)
    except ValueError:
        return False
    return True


def check_random_state(random_state: Any) -> np.random.RandomState:
    """scikit-learn's, with a message that names the argument."""
    with named("random_state"):
        return sklearn.utils.check_random_state(random_state)


def is_option(value: Any, option: str) -> bool:
    """Whether a parameter is this string; False for arrays, which `==` would compare by entry."""
    return isinstance(value, str) and value == option


def check_int(value: Any, name: str, low: int, high: int = _MAX_INT) -> int:
    """Return an integer between `low` and `high`; refuse booleans."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an instance of int, not bool.")
    return int(check_scalar(value, name, numbers.Integral, min_val=low, max_val=high))


def check_bool(value: Any, name: str) -> bool:
    """True or False, of Python or NumPy."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} == {value!r}, must be True or False.")
    return bool(value)


def check_real(
    value: Any,
    name: str,
    low: float | None = None,
    high: float | None = None,
    include: str = "both",
    also: str = "",
) -> float:
    """A finite number between `low` and `high`; `include` says which bounds are allowed values,
    `also` names other accepted values in the error message."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        also = f" or {also}" if also else ""
        raise TypeError(f"{name} == {value!r}, must be a number{also}.")
    value = value.item() if isinstance(value, np.generic) else value  # bounds may exceed its range
    with named(name):  # an integer may be beyond the range of float64
        finite = math.isfinite(value)
    if not finite:
        raise ValueError(f"{name} == {value}, must be finite.")
    check_scalar(value, name, numbers.Real, min_val=low, max_val=high, include_boundaries=include)
    return float(value)


def check_exponent(s: Any) -> float:
    """`s` of memberships: at most MAX_S, or minus infinity."""
    if isinstance(s, (float, np.floating)) and s == -math.inf:
        return -math.inf
    return check_real(s, "s", high=MAX_S)


def check_choice(value: Any, name: str, choices: tuple[str, ...], also: str = "") -> None:
    """One of some strings; `also` names other accepted values in the error message."""
    if not isinstance(value, str) or value not in choices:
        also = f" or {also}" if also else ""
        raise ValueError(f"{name} == {value!r}, must be one of {list(choices)}{also}.")


def word_and_size(
    value: Any, name: str, words: tuple[str, ...], low: int, also: str = ""
) -> tuple[str, int | None]:
    """The word, and the int from `low` on or None, of a parameter that is one of some words or a
    pair of one and an int."""
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    word, size = value if pair else (value, None)
    check_choice(word, name, words, f"a pair of one of these and an int{also and f', {also}'}")
    return word, None if size is None else check_int(size, f"{name}[1]", low)


def check_plain(values: Any, name: str) -> None:
    """Raise a TypeError for what NumPy would take as numbers, or not name: objects that are no
    arrays, dates, durations, masked entries, nominal columns, and structured arrays."""
    check_container(values, name)
    parts = values if isinstance(values, (list, tuple)) else ()
    if any(map(np.ma.is_masked, [values, *parts])):
        raise TypeError(f"{name} has masked entries, which are not supported: fill or drop them.")
    if callable(values) and not hasattr(values, "__array__"):
        raise TypeError(
            f"{name} is a source or another function, must be an array; fit of PowerKMeans, "
            "RFFKernelPowerKMeans, DiffusionPowerKMeans, RFFMultiKernelPowerKMeans and FuzzyCMeans "
            "takes sources, and partial_fit their blocks."
        )
    columns = _columns_of(values, name)
    for label, column in columns:
        if are_times(column):
            refuse_times(name, label)
    nominal = [label for label, column in columns if str(column.dtype).startswith(NOMINAL)]
    if nominal:
        raise TypeError(
            f"{name} has the nominal columns {nominal}, must have numbers: encode their "
            "categories, such as by rffpk.tables.TablePreprocessor, or convert them to numbers."
        )
    for _, column in columns:
        if getattr(column.dtype, "names", None):
            raise TypeError(
                f"{name} is a structured array with the fields {[*column.dtype.names]}, must be a "
                "plain one: numpy.lib.recfunctions.structured_to_unstructured converts it."
            )


def _columns_of(values: Any, name: str) -> list[tuple[Any, Any]]:
    """The columns of a frame by their labels, or of objects by their numbers, or the array that
    NumPy makes of other values, without a label; none of ragged lists, which are refused later."""
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        at = values.iloc if hasattr(values, "iloc") else values
        return [(label, at[:, j]) for j, label in enumerate(values.columns)]
    try:
        array = np.asarray(values)
    except ValueError:
        return []
    except (TypeError, RuntimeError) as error:  # of tensors, which say what to call
        raise TypeError(
            f"{name} is of type {type(values).__name__}, which does not become an array: {error}"
        ) from error
    objects = array.dtype == object and array.ndim == 2
    return [*enumerate(array.T)] if objects else [(None, array)]


def finite_array(
    x: Any, name: str, dtype: Any = np.float64, may_lack: bool = False,
    remedy: Callable[[bool], str] = lambda missing: "must be finite", **options: Any,
) -> Array:  # fmt: skip
    """Return scikit-learn's `check_array`, with `check_plain` and `check_finite`."""
    if not sparse.issparse(x):
        check_plain(x, name)
    with np.errstate(over="ignore", invalid="ignore"), named(name, x):
        checked = check_array(x, dtype=dtype, input_name=name, ensure_all_finite=False, **options)
    check_finite(checked, name, x, may_lack, remedy)
    return checked


def check_finite(
    x: Any, name: str, given: Any, may_lack: bool, remedy: Callable[[bool], str]
) -> None:
    """Raise a ValueError that says where x, made of what was `given`, first has NaN or infinity.

    x is an array or a CSR matrix. Dense rows that `may_lack` views may have NaN. `remedy` returns
    what to do about NaN (True) or infinity (False)."""
    values = x.data if sparse.issparse(x) else x  # its own sum would sum duplicates in place
    with np.errstate(over="ignore", invalid="ignore"):
        if sklearn.get_config()["assume_finite"] or np.isfinite(values.sum()):
            return
    entries = sparse.coo_array(x)
    allowed = may_lack and not sparse.issparse(x)
    missing = not allowed and bool(np.isnan(entries.data).any())
    bad = np.isnan(entries.data) if missing else np.isinf(entries.data)
    rows, columns = entries.row[bad], entries.col[bad]
    if not len(rows):
        return
    names = _labels_of(given, x.shape[1])
    raise ValueError(
        f"{name} contains {'NaN' if missing else 'infinity'} in {len(np.unique(rows))} of "
        f"{x.shape[0]} rows, first in row {rows[0]}, column {names[columns[0]]!r}: "
        f"{remedy(missing)}."
    )


def refuse_sparse(X: Any, name: str, taker: str) -> None:
    """Raise a TypeError for sparse rows; `taker` does not take them."""
    if sparse.issparse(X):
        raise TypeError(
            f"{name} is sparse, and {taker} takes dense rows: convert them by toarray, if memory "
            "allows it. Estimators take sparse rows and views in memory."
        )


def written_out(values: Any) -> Any:
    """Return a sparse matrix of a caller with its zeros, other values as they are."""
    return values.toarray() if sparse.issparse(values) else values


def check_sample_weight(
    sample_weight: Any, n: int | None, X: Any = None, zeros: bool = False
) -> NDArray[np.float64]:
    """Return row weights as a float64 array (n,).

    Refuse weights that are not finite or negative, whose largest is not from 1e-275 to 1e100, that
    are all zero unless `zeros`, or that have another index than the rows X. Without weights, and
    where all are one, return `ones`. n=None: a source has a number of rows that is not known yet.
    """
    if sample_weight is None:
        return ones(ENDLESS if n is None else n)
    check_plain(sample_weight, "sample_weight")
    check_row_labels(X, sample_weight)
    with named("sample_weight"):
        given = np.asarray(sample_weight)
    if np.iscomplexobj(given):
        raise ValueError("sample_weight is complex, must be real.")
    try:
        weight = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"sample_weight is not numeric: {error}") from error
    if n is None and weight.ndim == 0:
        raise TypeError("sample_weight is a number, must be an array where X is a source.")
    n = len(weight) if n is None else n
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, must be ({n},) as X has rows.")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity, must be finite.")
    if (weight < 0).any():
        raise ValueError(f"sample_weight contains {weight.min()}, must be >= 0.")
    if (weight > MAX_WEIGHT).any():
        raise ValueError(f"sample_weight contains {weight.max()}, must be <= {MAX_WEIGHT}.")
    if (weight == 1).all():
        return ones(n)
    if not weight.any():
        if zeros:
            return weight
        raise ValueError("sample_weight is zero everywhere, must be positive somewhere.")
    _check_small_weights(weight)
    return weight


def _check_small_weights(weight: Array) -> None:
    """Refuse weights that are all too small, or whose positive weights are too far apart."""
    least, most = weight[weight > 0].min(), weight.max()
    if most < _MIN_WEIGHT:
        raise ValueError(f"sample_weight has the maximum {most}, must be >= {_MIN_WEIGHT}.")
    if least < MIN_RATIO * most:
        raise ValueError(
            f"sample_weight contains {least} and {most}, but positive weights must be >= "
            f"{MIN_RATIO} times the largest."
        )


def check_finite_kernel(values: Array) -> None:
    """Raise an error if values of kernels are not finite."""
    if not np.isfinite(values).all():
        raise ValueError(
            "X has values with which a kernel is NaN or overflows; rescale X, or choose other "
            "parameters of the kernel."
        )


def check_weighted_variance(weighted: float, plain: float, resolved: float, dtype: Any) -> None:
    """Raise an error if row weights leave less of the variance of the rows than `resolved` of it:
    then rounding errors of the heavy rows hide the light ones."""
    if weighted < resolved * plain:
        remedy = ", or pass float64" if dtype == np.float32 else ""
        raise ValueError(
            f"sample_weight is so much larger on rows that are nearly equal that {dtype} does not "
            f"tell the other rows apart: take weights closer to each other{remedy}."
        )


def check_underflow(variance: float, xs: list[Columns]) -> None:
    """Raise an error if the variance of rows is zero although they differ in one of these views."""
    if variance <= 0 and any(rows_differ(x) for x in xs):
        raise ValueError(
            f"X differs by so little that squared distances underflow {xs[0].dtype}; rescale X."
        )


def check_overflow(distance: float, dtype: Any) -> None:
    """Raise an error if `distance`, squared, or a sum of such, is not finite."""
    if not math.isfinite(distance):
        remedy = "rescale X or pass float64" if dtype == np.float32 else "rescale X"
        raise ValueError(
            f"X has values so large that squared distances overflow {np.dtype(dtype)}; {remedy}."
        )

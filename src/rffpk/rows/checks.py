"""Validation: every error names the argument, its value, and the values that are accepted."""

from __future__ import annotations

import contextlib
import math
import numbers
import re
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import sklearn.utils
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, check_scalar

from rffpk.rows import advice
from rffpk.rows.arrays import Array
from rffpk.rows.containers import has_index, labels_of
from rffpk.rows.table import Columns, rows_differ
from rffpk.rows.weights import ENDLESS, ones

Auto = Literal["auto"]
Level = Literal["coarse", "auto", "fine"]  # values of n_clusters, whose number the fit finds

MAX_WEIGHT = advice.MAX_WEIGHT
_MAX_INT = 2**63 - 1  # the core counts in int64

MAX_S = -0.2  # the largest exponent whose weights float32 can hold up to k = 10^4


@contextlib.contextmanager
def named(name: str, *tables: Any) -> Iterator[None]:
    """Add the name of an argument to errors raised inside.

    If one of the `tables`, values that were to be converted, shows the cause, add it, too."""
    try:
        yield
    except OverflowError as error:
        raise ValueError(f"{name}: has numbers beyond float64. Pass smaller ones.") from error
    except (ValueError, TypeError) as error:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)):  # names the argument already
            raise
        for table in tables:
            advice.give(advice.UNREADABLE, name, table)
        raise type(error)(f"{name}: {error}") from error


@contextlib.contextmanager
def of_two_rows(function: Any, name: str) -> Iterator[None]:
    """Explain in errors of a user's kernel function what it gets and must return."""
    try:
        yield
    except (ValueError, TypeError, IndexError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        first_line = str(error).partition("\n")[0]
        raise kind(
            f"{name}={getattr(function, '__name__', function)}: gets two rows, arrays of one "
            f"dimension, and must return a number. Its error was: {first_line}"
        ) from error


def check_random_state(random_state: Any) -> np.random.RandomState:
    """Return scikit-learn's random state; an error names the argument."""
    with named("random_state"):
        return sklearn.utils.check_random_state(random_state)


def is_option(value: Any, option: str) -> bool:
    """Return whether a parameter is the string `option`; False for arrays of any kind."""
    return isinstance(value, str) and value == option


def check_int(value: Any, name: str, low: int, high: int = _MAX_INT) -> int:
    """Return an integer between `low` and `high`; refuse booleans."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an instance of int, not bool.")
    return int(_scalar(value, name, numbers.Integral, low, high))


def _scalar(value: Any, name: str, kind: type, low: Any, high: Any, include: str = "both") -> Any:
    """Check the type and the range of a number; reword scikit-learn's error message."""
    try:
        return check_scalar(
            value, name, kind, min_val=low, max_val=high, include_boundaries=include
        )
    except ValueError as error:
        text = str(error).replace(" == ", "=", 1).replace(", must", ": must", 1)
        raise ValueError(text) from None


def check_bool(value: Any, name: str) -> bool:
    """Return True or False of Python or NumPy as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}={value!r}: must be True or False.")
    return bool(value)


def check_real(
    value: Any,
    name: str,
    low: float | None = None,
    high: float | None = None,
    include: str = "both",
    also: str = "",
) -> float:
    """Return a finite number between `low` and `high`; None is no bound.

    `include` says which bounds are allowed values: "both", "left", "right" or "neither". `also`
    names further values in the message.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        also = f" or {also}" if also else ""
        raise TypeError(f"{name}={value!r}: must be a number{also}.")
    value = value.item() if isinstance(value, np.generic) else value  # bounds may exceed its dtype
    with named(name):  # an integer may be beyond the range of float64
        finite = math.isfinite(value)
    if not finite:
        raise ValueError(f"{name}={value}: must be finite.")
    return float(_scalar(value, name, numbers.Real, low, high, include))


def check_exponent(s: Any) -> float:
    """Check the exponent s of memberships, at most MAX_S or minus infinity; return it."""
    if isinstance(s, (float, np.floating)) and s == -math.inf:
        return -math.inf
    return check_real(s, "s", high=MAX_S)


def check_choice(value: Any, name: str, choices: tuple[str, ...], also: str = "") -> None:
    """Raise a ValueError if a value is not one of some strings.

    `also` names other accepted values in the message."""
    if not isinstance(value, str) or value not in choices:
        also = f" or {also}" if also else ""
        raise ValueError(f"{name}={value!r}: must be one of {list(choices)}{also}.")


def word_and_size(
    value: Any, name: str, words: tuple[str, ...], low: int, also: str = ""
) -> tuple[str, int | None]:
    """Parse a parameter that is a word, or a pair (word, size); return the word and the size.

    The size is None without a pair, and None or at least `low` in a pair. `also` names other
    accepted values in the message."""
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    word, size = value if pair else (value, None)
    check_choice(word, name, words, f"a pair of one of these and an int{also and f', {also}'}")
    return word, None if size is None else check_int(size, f"{name}[1]", low)


def check_plain(values: Any, name: str) -> None:
    """Raise a TypeError for values that are no plain numbers, such as dates or categories.

    NumPy would take some of them as numbers, and refuse the rest without naming the argument."""
    check_container(values, name)
    advice.give(advice.VALUES, name, values)
    advice.give(advice.COLUMNS, name, _columns_of(values, name))


def check_container(values: Any, name: str) -> None:
    """Raise a TypeError for an object that is not array-like, or a list with such an object."""
    parts = values if isinstance(values, (list, tuple)) else ()
    # the types of values that are not array-like
    loose = {kind for kind in {type(values), *map(type, parts)} if not advice.is_array_like(kind)}
    if loose:
        named = [(name, values), *((f"{name}[{i}]", part) for i, part in enumerate(parts))]
        advice.give(advice.OBJECTS, *next(each for each in named if type(each[1]) in loose))


def _columns_of(values: Any, name: str) -> list[tuple[Any, Any]]:
    """Return (label, column) pairs of a frame or an array of objects, for checks by column.

    Other values are one pair with the label None. Ragged lists, which are refused later, give an
    empty list."""
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        at = values.iloc if hasattr(values, "iloc") else values
        return [(label, at[:, j]) for j, label in enumerate(values.columns)]
    try:
        array = np.asarray(values)
    except ValueError:
        return []
    except (TypeError, RuntimeError) as error:  # tensors say what to call
        raise TypeError(f"{name}: does not become an array. {error}") from error
    objects = array.dtype == object and array.ndim == 2
    return [*enumerate(array.T)] if objects else [(None, array)]


def finite_array(
    x: Any, name: str, dtype: Any = np.float64, schema: Any = None, **options: Any
) -> Array:
    """Convert with scikit-learn's `check_array`, after `check_plain`; refuse NaN and infinity.

    `schema` may allow NaN for missing views. `options` are passed to `check_array`."""
    if not sparse.issparse(x):
        check_plain(x, name)
    with np.errstate(over="ignore", invalid="ignore"), named(name, x):
        checked = check_array(x, dtype=dtype, input_name=name, ensure_all_finite=False, **options)
    check_finite(checked, name, x, schema)
    return checked


def check_finite(x: Any, name: str, raw: Any, schema: Any) -> None:
    """Raise a ValueError that names the first row and column with NaN or infinity.

    x is an array or a CSR matrix, converted from `raw`, whose column names the message uses. NaN is
    allowed in dense rows if the schema says that rows may lack views. Nothing is checked if
    scikit-learn is configured to assume finite numbers."""
    values = x.data if sparse.issparse(x) else x  # a sparse sum would merge duplicates
    with np.errstate(over="ignore", invalid="ignore"):
        if sklearn.get_config()["assume_finite"] or np.isfinite(values.sum()):
            return
    entries = sparse.coo_array(x)
    allowed = schema is not None and schema.may_lack and not sparse.issparse(x)
    missing = not allowed and bool(np.isnan(entries.data).any())  # NaN comes before infinity
    bad = np.isnan(entries.data) if missing else np.isinf(entries.data)
    rows, columns = entries.row[bad], entries.col[bad]
    if not len(rows):  # the sum of finite numbers overflowed, or NaN is allowed
        return
    label = labels_of(raw, x.shape[1])[columns[0]]
    where = f"{len(np.unique(rows))} of {x.shape[0]} rows, first in row {rows[0]}, column {label!r}"
    advice.give(
        advice.FINITE, name, f"{'NaN' if missing else 'infinity'} in {where}",
        missing=missing, schema=schema, is_view=name != "X",
    )  # fmt: skip


def refuse_sparse(X: Any, name: str, taker: str) -> None:
    """Raise a TypeError if X is sparse; `taker` names what cannot take sparse rows."""
    if sparse.issparse(X):
        raise TypeError(
            f"{name}: is sparse, but {taker} takes dense rows. Pass {name}.toarray() if memory "
            "allows it, or sparse rows in memory to an estimator."
        )


def written_out(values: Any) -> Any:
    """Convert a sparse matrix of a caller to an array; return other values as they are."""
    return values.toarray() if sparse.issparse(values) else values


def check_sample_weight(
    sample_weight: Any, n: int | None, X: Any = None, zeros: bool = False
) -> NDArray[np.float64]:
    """Check the weights of rows; return a float64 array (n,), or `ones` if all weights are one.

    None stands for weights of one, and a number for equal weights of all rows. Weights must be
    finite, nonnegative and within the range of `advice.WEIGHTS`. At least one is positive unless
    `zeros` is set. A pandas index must agree with the index of X. n is None for a source, whose
    number of rows is not known yet, so that a number is refused."""
    if sample_weight is None:
        return ones(ENDLESS if n is None else n)
    check_plain(sample_weight, "sample_weight")
    check_row_labels(X, sample_weight)
    with named("sample_weight"):
        given = np.asarray(sample_weight)
        if np.iscomplexobj(given):
            raise ValueError("complex numbers are no weights. Pass real weights.")
        weight = given.astype(np.float64)
    if n is None and weight.ndim == 0:
        raise TypeError("sample_weight: is a number. Pass a weight for each row of the source.")
    n = len(weight) if n is None else n
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    advice.give(advice.WEIGHTS, "sample_weight", weight, n=n, zeros=zeros)
    return ones(n) if (weight == 1).all() else weight


def check_row_labels(X: Any, sample_weight: Any = None, table: Any = None) -> None:
    """Raise a ValueError if the pandas indices of the arguments differ.

    The arguments are the views of X or X itself, the weights, and a table of the rows. Rows are
    matched by position, which is wrong if indices differ. Default indices are compared, too. If
    `reset_index` has hidden another order of the rows, that cannot be detected."""
    several = isinstance(X, (list, tuple))
    labelled = [(f"X[{i}]", x) for i, x in enumerate(X if several else ()) if has_index(x, 2)]
    labelled += [(name, x) for name, x in (("X", X), ("table", table)) if has_index(x, 2)]
    if has_index(sample_weight, 1):
        labelled.append(("sample_weight", sample_weight))
    for name, other in labelled[1:]:
        _compare(*labelled[0], name, other)


def _compare(first: str, frame: Any, name: str, other: Any) -> None:
    """Raise a ValueError if two frames of equal length have different indices.

    `first` and `name` are the names of `frame` and `other` in the message. Different lengths are
    refused elsewhere."""
    if len(frame) != len(other) or frame.index.equals(other.index):
        return  # other numbers of rows are refused elsewhere
    a, b = (x.index.astype(object) for x in (frame, other))  # equal labels may differ in dtype
    if a.equals(b):
        return
    row = next(i for i in range(len(a)) if not a[i : i + 1].equals(b[i : i + 1]))
    unique = a.is_unique and b.is_unique  # labels that repeat do not tell rows apart
    shared = len(a.intersection(b)) / len(a) if unique else 0
    advice.give(advice.ORDERS, name, shared, first=first, row=row, label=b[row], other=a[row])


def check_finite_kernel(values: Array) -> None:
    """Raise an error if values of kernels are not finite."""
    if not np.isfinite(values).all():
        raise ValueError("X: has kernel values that are NaN or overflow. Rescale X or the kernel.")


def check_weighted_variance(weighted: float, plain: float, resolved: float, dtype: Any) -> None:
    """Raise a ValueError if `weighted` is less than the share `resolved` of `plain`.

    `weighted` and `plain` are the variances with row weights and without. If the weighted variance
    is that small, rounding errors of the heavy rows hide the light rows."""
    if weighted < resolved * plain:
        remedy = ", or pass float64" if dtype == np.float32 else ""
        raise ValueError(
            f"sample_weight: hides the rows of small weights in {dtype}. Pass weights closer to "
            f"each other{remedy}."
        )


def check_underflow(variance: float, xs: list[Columns]) -> None:
    """Raise a ValueError if the variance is zero although rows of a view differ."""
    if variance <= 0 and any(rows_differ(x) for x in xs):
        raise ValueError(f"X: squared distances underflow {xs[0].dtype}. Rescale X.")


def check_overflow(distance: float, dtype: Any) -> None:
    """Raise a ValueError if a squared distance, or a sum of squared distances, is not finite."""
    if not math.isfinite(distance):
        remedy = ", or pass float64" if dtype == np.float32 else ""
        dtype = np.dtype(dtype)
        raise ValueError(f"X: squared distances overflow {dtype}. Rescale X{remedy}.")

"""Advice: what is wrong with an argument that holds rows, and what to pass in its place.

`give` applies the first rule of a table whose test finds something. A sentence names the argument
{name}, the value {x}, the {type} of the value, the result of the test {found}, and further facts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rffpk.rows import containers
from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns, operand
from rffpk.system.report import warn


class Advice(NamedTuple):
    """A rule: an error or a warning, a test of the facts, and a sentence about the facts."""

    kind: type[Exception]
    test: Callable[..., Any]
    sentence: str


def give(rules: Iterable[Advice], name: str, x: Any, **facts: Any) -> None:
    """Apply the first rule whose test returns something true: raise its error, or warn.

    `x` is the value of the argument `name`. `facts` are passed to the tests and the sentence."""
    for kind, test, sentence in rules:
        if found := test(x, **facts):
            text = sentence.format(name=name, x=x, type=type(x).__name__, found=found, **facts)
            if not issubclass(kind, Warning):
                raise kind(text)
            warn(text, kind)
            break


# ---- objects that are no arrays ------------------------------------------------------------------


def is_array_like(kind: type) -> bool:
    """Return whether NumPy converts objects of this type as an array, a sequence or a scalar.

    NumPy would read the items of any other object one at a time."""
    if not any(hasattr(kind, method) for method in ("__iter__", "__getitem__")):
        return True  # a scalar
    arrays = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")
    known = any(hasattr(kind, method) for method in arrays)
    return known or issubclass(kind, (Sequence, sparse.spmatrix, sparse.sparray))


def _has(*attributes: str) -> Callable[[Any], bool]:
    """Return a test of whether an object has all of these attributes."""
    return lambda x: all(hasattr(x, attribute) for attribute in attributes)


def _holds(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test of whether an object is a nonempty mapping whose values all pass `test`."""
    return lambda x: isinstance(x, Mapping) and len(x) > 0 and all(map(test, x.values()))


OBJECTS = (
    Advice(TypeError, lambda x: isinstance(x, Iterator),
           "{name}: is an iterator. Pass numpy.vstack([*{name}]) if it yields rows or blocks of "
           "rows, [*{name}] if it yields numbers."),
    Advice(TypeError,
           lambda x: isinstance(x, Mapping)
           and not all(is_array_like(type(part)) for part in x.values()) and repr(next(iter(x))),
           "{name}: is a {type} of objects. Pass one of its values, such as {name}[{found}]."),
    Advice(TypeError, _holds(lambda part: containers.dimensions(part) == 0),
           "{name}: is a {type} of numbers. Convert a list of rows by pandas.DataFrame, or weights "
           "by pandas.Series."),
    Advice(TypeError, _holds(lambda part: len(getattr(part, "shape", ())) == 2),
           "{name}: is a {type} of tables. Pass [*{name}.values()] as views, or "
           "numpy.column_stack([*{name}.values()]) as one table."),
    Advice(TypeError, _holds(_has("index", "iloc")),
           "{name}: is a {type} of columns. Pass pandas.concat([*{name}.values()], axis=1)."),
    Advice(TypeError, _holds(lambda part: True),
           "{name}: is a {type} of columns. Pass numpy.column_stack([*{name}.values()])."),
    Advice(TypeError, _has("mod", "obs"),  # MuData
           "{name}: is of type {type}. Pass views, such as "
           "[part.to_df() for part in {name}.mod.values()]."),
    Advice(TypeError, _has("obsm", "to_df"),  # AnnData
           "{name}: is of type {type}. Pass {name}.X, {name}.obsm['X_pca'], or {name}.to_df(), "
           "whose names of rows are compared with the names in other views."),
    Advice(TypeError, _has("with_format", "column_names"),  # of the package datasets
           "{name}: is of type {type}. Pass a column, {name}.with_format('numpy')[:]['NAME']."),
    Advice(TypeError, _has("tensors"),
           "{name}: is of type {type}. Pass {name}.tensors[0].numpy()."),
    Advice(TypeError, _has("toPandas"), "{name}: is of type {type}. Pass {name}.toPandas()."),
    Advice(TypeError, _has("to_pandas"), "{name}: is of type {type}. Pass {name}.to_pandas()."),
    Advice(TypeError, _has("collect"), "{name}: is of type {type}. Pass {name}.collect()."),
    Advice(TypeError, lambda x: True,
           "{name}: is of type {type}. Pass an array, a data frame, a sparse matrix or a list of "
           "rows."),
)  # fmt: skip

# ---- values that are no numbers ------------------------------------------------------------------

# How the dtypes of nominal columns print in pandas, polars and Arrow.
NOMINAL = ("category", "Categorical", "Enum", "dictionary")

VALUES = (
    Advice(TypeError,
           lambda x: any(map(np.ma.is_masked, [x, *(x if isinstance(x, (list, tuple)) else ())])),
           "{name}: has masked entries, which are not supported. Fill or drop the entries."),
    Advice(TypeError, lambda x: callable(x) and not hasattr(x, "__array__"),
           "{name}: is a source or another function. Pass an array. Sources are for fit of "
           "PowerKMeans, RFFKernelPowerKMeans, DiffusionPowerKMeans, RFFMultiKernelPowerKMeans and "
           "FuzzyCMeans, and their blocks for partial_fit."),
)  # fmt: skip

# Rules about columns, each with its label, or about an array with the label None.
TIMES = (
    Advice(TypeError,
           lambda x: next(("in the entries" if label is None else f"in column {label!r}"
                           for label, column in x if containers.are_times(column)), ""),
           "{name}: has dates or durations {found}, which are not numbers. Leave them out, or "
           "convert them to numbers that matter, such as an age in days or the hour."),
)  # fmt: skip
COLUMNS = (
    *TIMES,
    Advice(TypeError, lambda x: [label for label, v in x if str(v.dtype).startswith(NOMINAL)],
           "{name}: has the nominal columns {found}. Encode their categories, such as by "
           "rffpk.tables.TablePreprocessor, or convert them to numbers."),
    Advice(TypeError, lambda x: [n for _, v in x for n in getattr(v.dtype, "names", ()) or ()],
           "{name}: is a structured array with the fields {found}. Convert it by "
           "numpy.lib.recfunctions.structured_to_unstructured."),
)  # fmt: skip


def _table_of(x: Any) -> Array:
    """Return values as an array; of no dimension if they have no common shape."""
    try:
        return x if isinstance(x, np.ndarray) else np.asarray(x, dtype=object)
    except ValueError:  # arrays that agree only in their first dimension
        return np.array(None)


def _columns_of_objects(x: Any) -> Iterator[tuple[Any, str, Array]]:
    """Yield (label, text, entries) of each column of a table that is no array of numbers.

    The text selects the column in a message, such as "[:, 0]". An array of one dimension, even of
    numbers, is one column with the label None and an empty text."""
    table = _table_of(x)
    if table.ndim == 1:
        yield None, "", table
    elif table.ndim == 2 and table.dtype.kind not in "fiubc":
        for label, column in zip(containers.labels_of(x, table.shape[1]), table.T):
            yield label, f"[{label!r}]" if hasattr(x, "columns") else f"[:, {label}]", column


def _word_in(x: Any) -> tuple[str, Any] | None:
    """Return the first word of a table that is no number, and the label of its column.

    Return None if there is no word, and for an array of one dimension, which has no columns."""
    words = (
        (str(value), label)
        for label, selection, column in _columns_of_objects(x)
        for value in column
        if selection and isinstance(value, str) and not containers.converts(value, float)
    )
    return next(words, None)


def _vectors_in(x: Any) -> tuple[str, int, int] | None:
    """Return the text that selects the first column of vectors, and their least and largest length.

    The text is empty for an array of one dimension. Return None if no column has vectors."""
    for _, selection, column in _columns_of_objects(x):
        if any(isinstance(value, (list, tuple, np.ndarray)) for value in column):
            lengths = [np.asarray(value, dtype=object).size for value in column]
            return selection, min(lengths), max(lengths)
    return None


# Rules about values that did not become an array of numbers.
UNREADABLE = (
    Advice(ValueError, lambda x: x is None,
           "{name}: is None. Pass an array of shape (n_samples, n_features)."),
    Advice(ValueError, lambda x: isinstance(x, str),
           "{name}={x!r}: is a string, must be rows. For rows in a file pass "
           "rffpk.sources.from_npy or rffpk.sources.from_parquet of its path."),
    Advice(ValueError, lambda x: _table_of(x).ndim > 0 and not any(_table_of(x).shape),
           "{name}: has no rows. Pass an array of shape (n_samples, n_features)."),
    Advice(ValueError, _word_in,
           "{name}: could not convert string to float: {found[0]!r} in column {found[1]!r}. "
           "Replace it by NaN if a number is missing, drop the column, or encode the words, such "
           "as by rffpk.tables.TablePreprocessor."),
    Advice(ValueError, _vectors_in,
           "{name}{found[0]}: has vectors of {found[1]} to {found[2]} numbers as entries. Make the "
           "lengths equal, such as by padding, and pass numpy.vstack({name}{found[0]})."),
)  # fmt: skip

# Rules about numbers that are not finite: x says what they are, and where.
FINITE = (
    Advice(ValueError, lambda x, schema, **_: schema is None or schema.kind != "rows",
           "{name}: contains {x}. Pass finite numbers."),
    Advice(ValueError, lambda x, missing, **_: not missing,
           "{name}: contains {x}. Replace infinity, or drop these rows."),
    Advice(ValueError,
           lambda x, schema, is_view, **_: (is_view or schema.views is not None) and schema.several
           and "allow_missing_views=True"
           + (" of RFFMultiKernelPowerKMeans" if schema.may_lack is None else ""),
           "{name}: contains {x}. Fill in numbers, such as by rffpk.tables.TablePreprocessor, or "
           "drop these rows. {found} takes dense rows that are NaN in a view."),
    Advice(ValueError, lambda x, **_: True,
           "{name}: contains {x}. Fill in numbers, such as by rffpk.tables.TablePreprocessor, or "
           "drop these rows."),
)  # fmt: skip

# ---- the form of X -------------------------------------------------------------------------------


def _labels_beside(x: Any) -> tuple[int, ...]:
    """Return the positions of the first vector and the first table of a list that has both.

    The vector may be labels. Return () for anything else, and if the vector is None in all rows: it
    may be a view that rows lack."""
    sizes = [containers.dimensions(part) for part in x] if containers.is_list_of_views(x) else []
    if 1 not in sizes or all(value is None for value in x[sizes.index(1)]):
        return ()
    return sizes.index(1), sizes.index(2)


CONTAINERS = (
    # not for arrays of objects, which may be views as lists of rows
    Advice(ValueError,
           lambda x, several: several and isinstance(x, (list, tuple)) and len(x) > 0
           and all(getattr(v, "ndim", 0) == 1
                   and getattr(getattr(v, "dtype", None), "kind", "") != "O" for v in x),
           "{name}: is a list of one-dimensional arrays, not of views. Pass "
           "[numpy.reshape(x, (-1, 1)) for x in {name}] for views of one column, or "
           "numpy.array({name}) for a table with the arrays as rows."),
    Advice(ValueError, lambda x, several: several and getattr(x, "ndim", 2) == 3,
           "{name}.shape={x.shape}: has three dimensions. Pass list({name}) if the first axis "
           "counts views or kernels, [{name}[:, :, i] for i in range({name}.shape[2])] if the last "
           "axis does, or {name}.reshape(len({name}), -1) if the first axis counts samples. "
           "Kernels need kernels='precomputed'."),
    Advice(ValueError, lambda x, several: getattr(x, "ndim", 2) == 3,
           "{name}.shape={x.shape}: has three dimensions. Pass {name}.reshape(len({name}), -1) if "
           "the first axis counts samples. Of kernels pass one, such as {name}[0] or "
           "{name}[:, :, 0], with kernel='precomputed'."),
    Advice(TypeError,
           lambda x, several: isinstance(x, np.ndarray) and x.dtype == object
           and any(containers.dimensions(cell) == 2 for cell in x.flat),
           "{name}: is an array of arrays, such as a cell array. Pass [*{name}.ravel()]."),
    Advice(ValueError, lambda x, several: _labels_beside(x),
           "{name}[{found[0]}]: has one dimension, as labels have. Pass {name}[{found[1]}] alone, "
           "or numpy.reshape({name}[{found[0]}], (-1, 1)) in its place if it is a column."),
)  # fmt: skip


def _is_split(x: Any, schema: Any) -> bool:
    """Return whether scikit-learn's cross-validation was called with a list of views.

    It then splits the list instead of the rows, so that X holds some of the views."""
    frame = inspect.currentframe()
    while frame is not None:
        inside = frame.f_globals.get("__name__", "").startswith("sklearn.model_selection")
        if inside and containers.is_list_of_views(frame.f_locals.get("X")):
            return True
        frame = frame.f_back
    return False


# Rules about a list of views, or one array where views were fitted.
LISTS = (
    Advice(ValueError,
           lambda x, schema: not containers.is_list_of_views(x) and len(schema.fitted.widths),
           "{name}: is one array, but was a list of views in fit. Pass a list of {found} views."),
    Advice(ValueError,
           lambda x, schema: not schema.several
           and ("scipy.sparse" if any(map(sparse.issparse, x)) else "numpy"),
           "{name}: is a list of views, but {schema.name} takes one array. Pass "
           "{found}.hstack({name}), which puts the columns side by side."),
    Advice(ValueError,
           lambda x, schema: schema.views is not None or (schema.fitted and schema.fitted.columns),
           "{name}: is a list of views, but the parameter views names columns of one array. Pass "
           "one array, or fit with views=None."),
    Advice(ValueError, _is_split,
           "{name}: is a list of views, and cross-validation would split the list, not the rows. "
           "Pass one table, and the columns of each view by the parameter views."),
)  # fmt: skip


def _first_other(sizes: Iterable[int], expected: Iterable[int]) -> tuple[int, int, int] | None:
    """Return (index, size, expected size) of the first mismatch, or None if there is none."""
    pairs = enumerate(zip(sizes, expected))
    return next(((i, n, m) for i, (n, m) in pairs if n != m), None)


# Rules about the checked views of a list.
VIEWS = (
    Advice(ValueError, lambda x, fitted, **_: _first_other(map(len, x), [len(x[0])] * len(x)),
           "{name}[{found[0]}]: has {found[1]} rows, and {name}[0] has {found[2]}. Pass the same "
           "rows in all views, or the transposes if the columns are samples."),
    Advice(ValueError, lambda x, fitted, **_: fitted and not fitted.listed,
           "{name}: is a list of views, but was one array in fit. Pass one array."),
    Advice(ValueError,
           lambda x, fitted, **_: fitted and _first_other([len(x)], [len(fitted.widths)]),
           "{name}: has {found[1]} views, but had {found[2]} in fit. Pass the views of the fit."),
    Advice(ValueError,
           lambda x, fitted, **_: fitted and _first_other([v.shape[1] for v in x], fitted.widths),
           "{name}[{found[0]}]: has {found[1]} columns, but had {found[2]} in fit. Pass the same "
           "columns."),
    Advice(ValueError,
           lambda x, fitted, kind: not fitted and kind != "kernels"
           and all(map(likeness, x)),
           "{name}: is a list of symmetric matrices, whose rows would be taken as features. Pass "
           "kernels='precomputed' to a class of several kernels if they are kernel matrices, else "
           "one table, and the columns of each view by the parameter views."),
)  # fmt: skip

# Rules about names of the columns of a view.
NAMES = (
    Advice(UserWarning, lambda x, fitted: x and not fitted,
           "{name}: has column names, but had none in fit. Pass {name}.to_numpy()."),
    Advice(UserWarning, lambda x, fitted: fitted and not x,
           "{name}: has no column names, but had some in fit. Pass a frame with names."),
    Advice(ValueError, lambda x, fitted: x != fitted and {*x} == {*fitted} and [*fitted],
           "{name}: has the columns of the fit in another order. Pass {name}[{found}]."),
    Advice(ValueError,
           lambda x, fitted: x != fitted and (sorted({*x} - {*fitted}), sorted({*fitted} - {*x})),
           "{name}: has other columns than in fit. {found[0]} are new, {found[1]} are missing. "
           "Choose or rename columns."),
)  # fmt: skip


def _is_no_choice(index: Array, width: int) -> bool:
    """Return whether an index array selects no columns, or is no valid index of `width` columns.

    Names are valid here: another rule compares them with the names of the columns."""
    kind = index.dtype.kind
    if index.ndim != 1 or not index.size or kind not in "biuUO":
        return True
    if kind == "b":
        return len(index) != width or not index.any()
    return kind in "iu" and not ((-width <= index) & (index < width)).all()


# Rules about an entry of the parameter `views`, which is x, and an array `index` by NumPy.
CHOICES = (
    Advice(ValueError, lambda x, index, names, width: _is_no_choice(index, width),
           "{name}={x!r}: must select some of the {width} columns of X. Pass a slice, a mask, or a "
           "list of names or indices."),
    Advice(ValueError,
           lambda x, index, names, width: index.dtype.kind in "UO"
           and [column for column in index.tolist() if column not in names],
           "{name}={x!r}: X has no columns {found}. Pass names of columns of X, or indices."),
)  # fmt: skip

# ---- weights and labels of rows ------------------------------------------------------------------

# Up to MAX_WEIGHT, products of weights, squared distances and factors of objectives do not
# overflow. From MIN_WEIGHT on they keep all bits. float32 holds ratios from MIN_RATIO on.
MAX_WEIGHT, MIN_WEIGHT, MIN_RATIO = 1e100, 1e-275, 1e-30

WEIGHTS = (
    Advice(ValueError, lambda x, n, zeros: x.shape != (n,),
           "{name}.shape={x.shape}: must be ({n},). Pass a weight for each row of X."),
    Advice(ValueError, lambda x, n, zeros: not np.isfinite(x).all(),
           "{name}: contains NaN or infinity. Pass finite weights."),
    Advice(ValueError, lambda x, n, zeros: x.min(initial=0),
           "{name}: contains {found}. Pass weights of zero or more."),
    Advice(ValueError, lambda x, n, zeros: x.max(initial=0) > MAX_WEIGHT and x.max(),
           "{name}: contains {found}, which is above 1e100. Divide all weights by a number."),
    Advice(ValueError, lambda x, n, zeros: not (zeros or x.any()),
           "{name}: is zero everywhere. Pass a positive weight for at least one row."),
    Advice(ValueError, lambda x, n, zeros: 0 < x.max(initial=0) < MIN_WEIGHT and x.max(),
           "{name}: has the maximum {found}, which is below 1e-275. Multiply all weights by a "
           "number."),
    Advice(ValueError,
           lambda x, n, zeros: x[x > 0].min(initial=np.inf) < MIN_RATIO * x.max(initial=0)
           and (x[x > 0].min(), x.max()),
           "{name}: contains {found[0]} and {found[1]}, whose ratio is below 1e-30. Pass zero for "
           "the small weights, or weights closer to each other."),
)  # fmt: skip

# Rules about a frame whose index differs from the index of the frame `first`, first in `row`. x is
# the share of the labels that both frames have, or 0 if labels repeat.
ORDERS = (
    Advice(ValueError, lambda x, **_: x == 1,
           "{name}: row {row} is {label!r}, but {other!r} in {first}. Pass "
           "{name}.loc[{first}.index]."),
    Advice(ValueError, lambda x, **_: x > 0,
           "{name}: row {row} is {label!r}, but {other!r} in {first}. Pass {name}.to_numpy() if "
           "the order of rows agrees, else both {first}.loc[common] and {name}.loc[common] with "
           "common = {first}.index.intersection({name}.index)."),
    Advice(ValueError, lambda x, **_: True,
           "{name}: row {row} is {label!r}, but {other!r} in {first}. Pass {name}.to_numpy() if "
           "the order of rows agrees."),
)  # fmt: skip

# ---- pairs of rows -------------------------------------------------------------------------------


def _is_disordered(x: Any) -> bool:
    """Return whether a square frame has the same row and column labels in different orders.

    A frame whose row or column labels are just 0, 1, 2, ... may have no names and does not
    count."""
    if not containers.has_index(x, 2) or len(x) != x.shape[1]:
        return False
    rows, columns, numbers = list(x.index), list(x.columns), [*range(len(x))]
    return rows != columns and numbers not in (rows, columns) and {*rows} == {*columns}


def _other_width(x: Any, n: int | None) -> tuple[int, ...]:
    """Return the shape of a two-dimensional x that does not have n columns, else ().

    n=None stands for the number of rows."""
    shape = np.shape(x)
    return shape if len(shape) == 2 and shape[1] != (shape[0] if n is None else n) else ()


# Rules about X that is a graph or a kernel matrix.
PAIRS = (
    Advice(ValueError, lambda x, schema: not schema.fitted and _is_disordered(x),
           "{name}: has columns in another order than the index. Pass "
           "{name}.loc[:, {name}.index]."),
    Advice(ValueError,
           lambda x, schema: not schema.fitted and schema.kind == "graph" and _other_width(x, None),
           "{name}.shape={found}: must be square. With metric='precomputed' pass the affinities of "
           "all pairs of rows."),
    Advice(ValueError,
           lambda x, schema: schema.fitted and _other_width(x, schema.fitted.n_columns),
           "{name}.shape={found}: must be (n_new, {schema.fitted.n_columns}). With 'precomputed' "
           "pass the kernel values or affinities of new rows with the fitted rows."),
)  # fmt: skip

# How to convert matrices whose diagonal is zero to kernel values. A multiple of the identity adds
# the same number to the association of all partitions. The least that makes W semidefinite is used.
_VALUES_OF_DISTANCES = "numpy.exp(-D**2 / (2 * (D**2).mean())) of distances D"
_VALUES_OF_AFFINITIES = "W - numpy.linalg.eigvalsh(W)[0] * numpy.eye(len(W)) of affinities W"

# Rules about rows of features that look like another matrix: x is their `likeness`.
FEATURES = (
    Advice(UserWarning, lambda x: x.startswith("distances"),
           "{name}: is symmetric like a matrix of {x}, but read as features. Pass 'precomputed' as "
           "the kernel with dense " + _VALUES_OF_DISTANCES + " or " + _VALUES_OF_AFFINITIES
           + ", or W to DiffusionPowerKMeans with metric='precomputed'."),
    Advice(UserWarning, lambda x: x,
           "{name}: is symmetric like a matrix of {x}, but read as features. Pass 'precomputed' as "
           "the kernel, which KernelPowerKMeans and the fusions of several kernels take."),
)  # fmt: skip

# Rules about a kernel matrix whose diagonal is zero: x is its `likeness`.
DISTANCES = (
    Advice(ValueError, lambda x, square: square,
           "{name}: looks like a matrix of {x}, not of kernel values. Pass "
           + _VALUES_OF_DISTANCES + ", " + _VALUES_OF_AFFINITIES + ", or W to "
           "DiffusionPowerKMeans with metric='precomputed'."),
    Advice(ValueError, lambda x, square: True,
           "{name}: looks like a matrix of {x}, not of kernel values. Pass "
           + _VALUES_OF_DISTANCES + "."),
)  # fmt: skip

_SYMMETRY = 1e-6  # mirrored entries may differ by this part of the largest entry, by rounding


def likeness(x: Columns) -> str:
    """Return what a symmetric matrix may be; "" for other rows.

    It is "distances or affinities" for a zero diagonal, else "kernel values or affinities". A
    diagonal of kernel values is constant, or bounds the other entries: K_ij^2 <= K_ii K_jj. For
    most tables, comparing the first row with the first column already decides."""
    n = len(x)
    if x.shape != (n, n) or n < 4:  # fewer rows may be symmetric by chance
        return ""
    table = operand(x)
    with np.errstate(over="ignore", invalid="ignore"):
        close = _SYMMETRY * max(table.max(), -table.min())
        if abs(table[[0]] - table[:, [0]].T).max() > close or abs(table - table.T).max() > close:
            return ""
        diagonal, entries = table.diagonal(), sparse.coo_array(table)
        norms = np.sqrt(np.maximum(diagonal, 0))
        bounds = norms[entries.row] * norms[entries.col] + close
        likely = np.ptp(diagonal) <= close or (np.abs(entries.data) <= bounds).all()
    if not (likely and (entries.row != entries.col).any()):  # a diagonal matrix may be anything
        return ""
    return f"{'kernel values' if diagonal.any() else 'distances'} or affinities"

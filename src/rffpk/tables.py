"""Tables of numbers, words and missing values, made columns of numbers for clustering."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rffpk.estimators.base import Estimator
from rffpk.rows import advice, checks
from rffpk.rows.arrays import Array
from rffpk.rows.containers import are_times, converts, gaps_in, is_arrow, kinds_of
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING

_MOST = 50  # categories of a column that have columns of their own; further categories share one
_OTHERS = "(others)"
# This part of the squared length of a row is added to its distances: their rounding errors then
# vanish in single precision.
_ALIKE = 1e-7
_LARGEST = 1e150  # numbers whose squares do not overflow
_INDEX = 511  # the last bits of a distance, which hold the index of a reference
_FAR = np.float64(np.inf).view(np.int64)


@dataclass(eq=False, repr=False)
class TablePreprocessor(Estimator):
    """Columns of numbers for clustering, from a table of numbers, booleans, words and gaps.

    A column of numbers is centered and divided by its standard deviation. A column with a word, of
    categories or of booleans becomes an indicator of each category, centered and divided by the
    root of two. So rows of different categories are one standard deviation apart. A gap, or a
    category that `fit` did not see, gets the mean, or the most frequent category, of ten rows that
    are near in the other columns (``docs/for/tables.md``).

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of the columns, and their names.
    categories_ : list
        Of each column the categories with indicators; None: numbers. Of more than 50 categories,
        the rarest share "(others)" with categories that `fit` did not see.
    means_ : list of ndarray
        For each column the mean that is subtracted, of the numbers or of each indicator.
    scales_ : ndarray of shape (n_features_in_,)
        What each column is divided by; 0 for a column of equal values, which is left out.
    references_ : ndarray of shape (n_references, n_columns)
        At most 500 evenly spaced rows of `fit`, scaled, with NaN for gaps. Gaps are filled by them.

    Raises
    ------
    ValueError, TypeError
        If a column has dates, durations, infinite numbers or values of other types, or a word where
        there were numbers in `fit`; it is named.

    Examples
    --------
    >>> import pandas as pd
    >>> from rffpk.tables import TablePreprocessor
    >>> table = pd.DataFrame({"size": [1.0, 3.0, None], "color": ["red", "blue", "red"]})
    >>> TablePreprocessor().fit_transform(table).shape
    (3, 3)
    """

    feature_names_in_: NDArray[np.object_] = field(init=False)
    n_features_in_: int = field(init=False)
    categories_: list[Any] = field(init=False)
    means_: list[Array] = field(init=False)
    scales_: Array = field(init=False)
    references_: Array = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means, the scales and the categories of the columns.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            A frame of pandas or polars, a table of Arrow, or an array.
        y : Ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        self : object
            The fitted preprocessor.
        """
        columns = _columns_of(X)
        categories, means, scales = [], [], []
        for column in columns:
            own = _categories(_words_in(column)) if column.is_nominal else None
            given = _encoded(column, own)
            known = given[~np.isnan(given[:, 0])]
            mean = known.mean(axis=0) if len(known) else np.zeros(given.shape[1])
            scale = math.sqrt(2)  # the distance between the indicators of two categories
            if own is None:  # divided by a power of two, squares neither overflow nor vanish
                exponent = int(np.frexp(np.abs(known - mean).max(initial=0.0))[1])
                squares = np.ldexp(known - mean, -exponent) ** 2
                variance = squares.sum() / max(1, len(known))
                scale = float(np.ldexp(math.sqrt(variance), exponent))
            checks.check_overflow(scale, np.dtype(np.float64))
            equal = not len(known) or bool((known == known[0]).all())
            categories.append(own)
            means.append(mean)
            scales.append(0.0 if equal else scale)
        if not any(scales):
            raise ValueError("X has no column with different values.")
        _warn_of_names(columns, categories)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        self.n_features_in_ = len(columns)
        self.categories_, self.means_, self.scales_ = categories, means, np.array(scales)
        step = -(-len(X) // TUNING.tables.references)
        self.references_ = self._scaled(columns)[::step]
        return self

    def transform(self, X: Any) -> Array:
        """Return the columns of numbers.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            With the columns of `fit`; in a frame they are found by their names.

        Returns
        -------
        columns : ndarray of float64, shape (n_samples, n_columns)
            Without NaN.
        """
        check_is_fitted(self)
        columns = _columns_of(X, list(self.feature_names_in_))
        scaled = self._scaled(columns)
        unknown = [str(name) for name, *_, part in self._parts() if np.isnan(scaled[:, part]).all()]
        if unknown and len(scaled) >= 10:  # the words of these columns may have changed since `fit`
            warn(
                f"X: all values in the columns {unknown} are missing, or words that fit did not "
                "see. The rows are placed by the other columns.",
                UserWarning,
            )
        gaps = np.flatnonzero(np.isnan(scaled).any(axis=1))
        for some in np.array_split(gaps, len(gaps) // TUNING.tiles.filled_rows + 1):
            scaled[some] = self._filled(scaled[some])
        return scaled

    def _filled(self, rows: Array) -> Array:
        """Return the rows (n, d) with gaps (NaN) filled from the nearest reference rows.

        A gap in a column of numbers gets the mean of the nearest references that know the column.
        A gap in a column of words gets the most frequent word of these references. The result of a
        row does not depend on the other rows."""
        lacks, known = np.isnan(rows), ~np.isnan(self.references_)
        filled, y = np.where(lacks, 0.0, rows), np.where(known, self.references_, 0.0).T
        x = np.clip(filled, -_LARGEST, _LARGEST)
        # Squared distances (n, references) over the columns that the row and the reference know.
        # One product for each row: rounding in a joint product may depend on the number of rows.
        left, right = np.hstack([x * x, -2 * x, ~lacks]), np.vstack([known.T, y, y * y])
        squares = (left[:, np.newaxis] @ right)[:, 0]
        shared = (~lacks).astype(np.float64) @ known.T
        distances = squares / np.maximum(shared, 1) + _ALIKE * (x * x).sum(axis=1, keepdims=True)
        # only references that share no known column with a row are infinitely far
        distances = np.minimum(distances, np.finfo(np.float32).max)
        # Keys (n, references): integers that sort by distance, then by index of the reference.
        # Single precision makes distances equal that differ by rounding only.
        distances = np.where(shared > 0, distances, np.inf).astype(np.float32).astype(np.float64)
        keys = distances.view(np.int64) | np.arange(len(known))
        most = min(TUNING.tables.neighbors, len(known))
        for _, own, mean, scale, part in self._parts():
            lacking = np.flatnonzero(lacks[:, part.start])
            near = keys[lacking]
            near[:, ~known[:, part.start]] = _FAR
            near = np.sort(np.partition(near, most - 1)[:, :most])
            counted = (near < _FAR)[:, :, np.newaxis]
            values = np.where(counted, self.references_[near & _INDEX, part], 0.0).sum(axis=1)
            values /= np.maximum(counted.sum(axis=1), 1)
            if own is not None:
                # `values * scale + mean` undoes the scaling: shares of the categories. They are
                # rounded, because equal shares may differ in their last digits.
                most_frequent = np.round(values * scale + mean, 9).argmax(axis=1)
                values = (np.eye(len(mean))[most_frequent] - mean) / scale
            filled[lacking, part] = values
        return filled

    def _count_unknown(self, X: Any) -> int:
        """Count the rows with a word that `fit` did not see, in columns that are not left out."""
        unknown = np.zeros(len(X), dtype=bool)
        columns = _columns_of(X, list(self.feature_names_in_))
        for column, own, scale in zip(columns, self.categories_, self.scales_):
            if own is not None and scale:
                given = np.array([value is not None for value in column.values])
                unknown |= given & np.isnan(_encoded(column, own)[:, 0])
        return int(unknown.sum())

    def _parts(self) -> Iterator[tuple[str, Any, Array, float, slice]]:
        """Yield the name, categories, mean, scale and place of each column that is not left out.

        The place is among the columns of numbers."""
        start = 0
        fitted = (self.feature_names_in_, self.categories_, self.means_, self.scales_)
        for name, own, mean, scale in zip(*fitted):
            if scale:
                yield name, own, mean, scale, slice(start, start + len(mean))
                start += len(mean)

    def _scaled(self, columns: list[_Column]) -> Array:
        """Return the columns of numbers, with NaN where a value is missing or unknown."""
        fitted = zip(columns, self.categories_, self.means_, self.scales_)
        parts = [
            (_encoded(column, own) - mean) / scale for column, own, mean, scale in fitted if scale
        ]
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            None, or the names of the columns in `fit`.

        Returns
        -------
        names : ndarray of str, shape (n_columns,)
            The name of a column of numbers, or ``column=category``.

        Raises
        ------
        ValueError
            If `input_features` are not the names of the columns in `fit`.
        """
        check_is_fitted(self)
        if input_features is not None and not np.array_equal(
            np.asarray(input_features, dtype=object), self.feature_names_in_
        ):
            raise ValueError(
                "input_features is not equal to feature_names_in_. Leave input_features out, or "
                f"pass {[*self.feature_names_in_]}."
            )
        found = []
        for name, own, *_ in self._parts():
            found += [name] if own is None else [f"{name}={category}" for category in own]
        return np.array(found, dtype=object)


def _warn_of_names(columns: list[_Column], categories: list[Any]) -> None:
    """Warn of columns with so many words that they may be names of rows."""
    for column, own in zip(columns, categories):
        if own is not None and len(own) > _MOST:
            known = [word for word in _words_in(column) if word is not None]
            words = sorted({*known})
            # commas may be decimal points, or between thousands
            not_numbers = [w for w in words if not converts(w.replace(",", ""), float)]
            remedy = "Leave it out if it names rows, and make numbers of dates."
            if len(not_numbers) < len(words) / 2:  # most words are numbers
                but = f" but {not_numbers[:3]}, which may be gaps" if not_numbers else ""
                remedy = f"They are numbers{but}: convert the column, or leave out names of rows."
            warn(
                f"The column {column.name!r} has {len(words)} categories in {len(known)} rows: "
                f"the {_MOST} most frequent have indicators of their own, the rest share one. "
                f"{remedy}",
                UserWarning,
            )


class _Column(NamedTuple):
    name: str
    values: NDArray[np.object_]  # with None for gaps
    is_nominal: bool  # whether `fit` takes the values as categories, not as numbers


def described_columns(frame: Any) -> tuple[list[str], Array, list[str]]:
    """Return the columns of a frame as numbers to take means of, with their names and units.

    A unit is "number", "share" of the indicator of a category, or "date" in days since 1970."""
    names, parts, units = [], [], []
    # frames of polars have no `iloc`, and take positions themselves
    at = frame.iloc if hasattr(frame, "iloc") else frame
    for j, label in enumerate(frame.columns):
        found, values, unit = _described(at[:, j], str(label))
        names += found
        parts.append(values)
        units += [unit] * len(found)
    return names, np.hstack(parts), units


def _described(values: Any, name: str) -> tuple[list[str], Array, str]:
    """Return the names, numbers (n, m) and unit that describe one column of a frame.

    Booleans have only the share of True. A column of categories without any value has m = 0.
    """
    if are_times(values):
        with checks.named(f"column {name!r}"):  # errors, as for times of the day, name the column
            days, are_dates = _days(values)
        return [name if are_dates else f"{name} (days)"], days, "date" if are_dates else "number"
    column = _column_of(values, name)
    if not column.is_nominal:
        return [name], _encoded(column, None), "number"
    categories = _categories(_words_in(column))
    if not len(categories):  # all values are missing
        return [], np.zeros((len(column.values), 0)), "share"
    if {*categories} <= {"True", "False"}:
        categories = np.array(["True", "False"], dtype=object)
        return [f"{name}=True"], _encoded(column, categories)[:, :1], "share"
    return [f"{name}={each}" for each in categories], _encoded(column, categories), "share"


def _days(column: Any) -> tuple[Array, bool]:
    """Return dates or durations in days, NaN for gaps, and whether they are dates.

    The first known object says whether objects are durations."""
    values = np.array(column)
    is_duration = values.dtype.kind == "m"
    if values.dtype == object:
        gaps = gaps_in(values)
        is_duration = any(hasattr(value, "total_seconds") for value in values[~gaps][:1])
        values[gaps] = None
        for i, value in enumerate(values):
            # convert to UTC, as NumPy does with a warning of each value
            if getattr(value, "tzinfo", None):
                values[i] = value.astimezone(UTC).replace(tzinfo=None)
    seconds = values.astype("timedelta64[s]" if is_duration else "datetime64[s]")
    days = np.where(np.isnat(seconds), np.nan, seconds.astype(np.int64) / 86_400)
    return days[:, None], not is_duration


def _columns_of(X: Any, names: list[str] | None = None) -> list[_Column]:
    """Return the columns of a table, or only the columns called `names`."""
    checks.check_container(X, "X")
    X = X.to_pandas() if is_arrow(X) else X
    framed = hasattr(X, "columns") and hasattr(X, "__getitem__")
    if not framed:
        checks.refuse_sparse(X, "X", "TablePreprocessor")
    table = X
    if not framed and not isinstance(X, np.ma.MaskedArray):
        # NumPy would turn a list with a word into text: `object` keeps the numbers
        table = np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    if not framed and table.ndim != 2:
        raise ValueError(
            f"X: has the shape {table.shape}. Pass a frame or an array of two dimensions."
        )
    labels = X.columns if framed else range(table.shape[1])
    own = [str(label) for label in labels]
    if len({*own}) < len(own):
        raise ValueError("X has columns of equal names.")
    if missing := [name for name in names or () if name not in own]:
        raise ValueError(f"X lacks the columns {missing}, which it had in fit.")
    at = dict(zip(own, labels))
    if not len(X):
        raise ValueError("X has no rows.")
    chosen = own if names is None else names
    return [_column_of(X[at[n]] if framed else table[:, at[n]], n) for n in chosen]


def _column_of(column: Any, name: str) -> _Column:
    """Check the values of a column; return them, and whether they are categories."""
    advice.give(advice.TIMES, "X", [(name, column)])
    given = column.astype(object) if hasattr(column, "astype") else column.to_list()
    values = np.fromiter(given, object, len(given))
    gaps = gaps_in(values)
    values[gaps] = None
    kinds = kinds_of(values[~gaps])
    if refused := [cls.__name__ for cls, kind in kinds.items() if kind == "other"]:
        raise TypeError(
            f"X has values of type {refused[0]} in column {name!r}, must have numbers, words or "
            "booleans: convert them, or leave the column out."
        )
    # booleans alone are categories, and so is any column with a word; gaps alone are numbers
    are_numbers = {*kinds.values()} <= {"number", "boolean"} and {*kinds.values()} != {"boolean"}
    nominal = str(column.dtype).startswith(advice.NOMINAL) or not are_numbers
    return _Column(name, values, nominal)


def _numbers_in(column: _Column) -> Array:
    """Return the numbers of a column, NaN for gaps. Refuse words and infinity."""
    known = np.array([value is not None for value in column.values], dtype=bool)
    values = column.values[known]
    kinds = kinds_of(values)
    if words := [value for value in values if kinds[type(value)] == "word"]:
        raise TypeError(
            f"X has the word {str(words[0])!r} in column {column.name!r}, which had numbers in fit."
        )
    numbers = np.full(len(column.values), np.nan)
    with checks.named("X"):
        numbers[known] = values.astype(np.float64)
    if np.isinf(numbers).any():
        raise ValueError(
            f"X has infinity in column {column.name!r}: replace it, or drop these rows."
        )
    return numbers


def _words_in(column: _Column) -> list[str | None]:
    """Return the category of each value as text; None for gaps.

    Equal numbers of different types get equal texts. Booleans are numbers only beside numbers."""
    kinds = kinds_of(column.values)
    numbers = {"number", "boolean"} if "number" in kinds.values() else {"number"}
    words: list[str | None] = []
    with checks.named("X"):
        for v in column.values:
            if v is not None and kinds[type(v)] in numbers:
                v = int(v) if float(v).is_integer() else float(v)
            words.append(None if v is None else str(v))
    return words


def _categories(words: list[str | None]) -> Any:
    """Return the categories, the most frequent first; at the end "(others)" if there are many."""
    found, counts = np.unique([word for word in words if word is not None], return_counts=True)
    order = np.lexsort([found, -counts])
    names = [str(name) for name in found[order]]
    return np.array(names if len(names) <= _MOST else [*names[:_MOST], _OTHERS], dtype=object)


def _encoded(column: _Column, categories: Any) -> Array:
    """Return the numbers (n, 1), or an indicator of each category (n, m).

    Lines of missing values, and of unknown categories, are NaN. Without any categories there is
    one column, of NaN."""
    if categories is None:
        return _numbers_in(column)[:, None]
    places = {name: j for j, name in enumerate(categories[:_MOST])}
    for pair in (("True", "1"), ("False", "0")):  # Python compares each pair as equal
        for name, other in (pair, pair[::-1]):
            if name in places:
                places.setdefault(other, places[name])
    others = _MOST if len(categories) > _MOST else -1
    at = np.array([-1 if word is None else places.get(word, others) for word in _words_in(column)])
    if not len(categories):
        return np.full((len(at), 1), np.nan)
    # the place -1 sets the last column at first
    found = np.zeros((len(at), len(categories)))
    found[np.arange(len(at)), at] = 1
    found[at < 0] = np.nan
    return found

"""Tables of numbers, words and missing values, made columns of which each counts alike."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import Estimator

_MOST = 50  # categories of a column that have columns of their own; the others share one
_OTHERS = "(others)"
_REFERENCES = 500  # rows, at most, whose values fill gaps
_NEIGHBOURS = 10  # of a row with gaps, whose mean fills them


@dataclass(eq=False, repr=False)
class TablePreprocessor(TransformerMixin, Estimator):
    """Columns of numbers for clustering, from a table of numbers, booleans, words and gaps.

    A column of numbers is centered and divided by its standard deviation. A column of words,
    categories or booleans becomes an indicator of each category, centered, all of the column
    divided by one number so that their variances sum to one: it counts as much as a column of
    numbers. Where a value is missing, or a category was not there in `fit`, the row has the mean
    of ten rows that are near it in the columns that it has, and no indicator tells that it was
    missing.

    Attributes
    ----------
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns.
    n_features_in_ : int
        Number of columns.
    categories_ : list
        For each column the categories that have an indicator, as strings, or None for numbers. Of
        more than 50 the rarest share the indicator "(others)".
    means_ : list of ndarray
        For each column the mean that is subtracted, of the numbers or of each indicator.
    scales_ : ndarray of shape (n_features_in_,)
        What each column is divided by; 0 for a column of equal values, which is left out.
    references_ : ndarray of shape (n_references, n_columns)
        At most 500 evenly spaced rows of `fit`, scaled, with NaN for gaps: those that fill gaps.

    Raises
    ------
    ValueError, TypeError
        If a column has dates, durations or infinite numbers; they are named.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the means, the scales and the categories of the columns.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            A frame of pandas or polars, or an array.
        y : Ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        self : object
            The fitted preprocessor.
        """
        names, columns = _columns_of(X)
        categories, means, scales = [], [], []
        for values in columns:
            own = None if values.dtype.kind == "f" else _categories(values)
            given = _indicators(values, own)
            known = given[~np.isnan(given[:, 0])]
            mean = known.mean(axis=0) if len(known) else np.zeros(given.shape[1])
            scale = math.sqrt(((known - mean) ** 2).sum() / max(1, len(known)))
            validation.check_overflow(scale, np.dtype(np.float64))
            equal = not len(known) or bool((known == known[0]).all())
            categories.append(own)
            means.append(mean)
            scales.append(0.0 if equal else scale)
        if not any(scales):
            raise ValueError("X has no column with different values.")
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.categories_, self.means_, self.scales_ = categories, means, np.array(scales)
        step = -(-len(X) // _REFERENCES)
        self.references_ = self._scaled(columns)[::step]
        return self

    def transform(self, X: Any) -> Array:
        """The columns of numbers.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            With the columns of `fit`; those of a frame are found by their names.

        Returns
        -------
        columns : ndarray of float64, shape (n_samples, n_columns)
            Without NaN.
        """
        check_is_fitted(self)
        found = self._scaled(_columns_of(X, list(self.feature_names_in_))[1])
        gaps = np.flatnonzero(np.isnan(found).any(axis=1))
        if len(gaps):
            from sklearn.impute import KNNImputer  # which takes long to import

            imputer = KNNImputer(n_neighbors=_NEIGHBOURS, keep_empty_features=True)
            found[gaps] = imputer.fit(self.references_).transform(found[gaps])
        return found

    def _scaled(self, columns: list[Any]) -> Array:
        """The columns of numbers, with NaN where a value is missing or unknown."""
        parts = []
        for i, (values, scale) in enumerate(zip(columns, self.scales_)):
            name, own = self.feature_names_in_[i], self.categories_[i]
            if own is None and values.dtype.kind != "f":
                raise TypeError(f"X has words in column {name!r}, had numbers in fit.")
            if scale:
                words = values if own is None else _as_words(values)
                parts.append((_indicators(words, own) - self.means_[i]) / scale)
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns of `transform`.

        Parameters
        ----------
        input_features : Ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        names : ndarray of str, shape (n_columns,)
            The name of a column of numbers, or ``column=category``.
        """
        check_is_fitted(self)
        found = []
        for name, own, scale in zip(self.feature_names_in_, self.categories_, self.scales_):
            if scale:
                found += [name] if own is None else [f"{name}={category}" for category in own]
        return np.array(found, dtype=object)


def _columns_of(X: Any, names: list[str] | None = None) -> tuple[list[str], list[Any]]:
    """The names of the columns, and each as float64 with NaN where it is missing, or as strings
    with None there; those of `names`, if given."""
    framed = hasattr(X, "columns") and hasattr(X, "__getitem__")
    table = X if framed else np.asarray(X)
    if not framed and table.ndim != 2:
        raise ValueError(f"X.shape == {table.shape}, must be a frame or have two dimensions.")
    own = [str(name) for name in (X.columns if framed else range(table.shape[1]))]
    if len({*own}) < len(own):
        raise ValueError("X has columns of equal names.")
    if missing := [name for name in names or () if name not in own]:
        raise ValueError(f"X lacks the columns {missing}, which it had in fit.")
    at = dict(zip(own, X.columns if framed else range(table.shape[1])))
    if not len(X):
        raise ValueError("X has no rows.")
    chosen = own if names is None else names
    return chosen, [_values(X[at[n]] if framed else table[:, at[n]], n) for n in chosen]


def _values(column: Any, name: str) -> Any:
    dtype = column.dtype
    temporal = getattr(dtype, "is_temporal", None)  # polars
    kind = getattr(dtype, "kind", "")
    if kind in ("m", "M") or (temporal is not None and temporal()):
        raise TypeError(
            f"X has dates or durations in column {name!r}: leave it out, or convert it to numbers "
            "that matter, such as an age in days or the hour."
        )
    given = column.astype(object) if hasattr(column, "astype") else np.array(column.to_list(), "O")
    values = np.asarray(given, dtype=object)
    missing = np.array([_is_missing(value) for value in values])
    is_number = [isinstance(v, numbers.Real) and not isinstance(v, (bool, np.bool_))
                 for v in values[~missing]]  # fmt: skip
    if all(is_number) and not _is_nominal(dtype):
        found = np.full(len(values), np.nan)
        found[~missing] = values[~missing].astype(np.float64)
        if np.isinf(found).any():
            raise ValueError(f"X has infinity in column {name!r}: replace it, or drop these rows.")
        return found
    words = np.array([str(value) for value in values], dtype=object)
    words[missing] = None
    return words


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _is_nominal(dtype: Any) -> bool:
    return str(dtype).startswith(("category", "Categorical", "Enum", "bool"))


def _as_words(values: Any) -> Any:
    """Numbers, or a column of gaps alone, where there were categories in fit."""
    if values.dtype.kind == "f":
        return np.array([None if math.isnan(v) else f"{v:g}" for v in values], dtype=object)
    return values


def _categories(values: Any) -> Any:
    """The categories, most frequent first and then by name, the rarest of many as one."""
    found, counts = np.unique([v for v in values if v is not None], return_counts=True)
    order = np.lexsort([found, -counts])
    names = [str(name) for name in found[order]]
    return np.array(names if len(names) <= _MOST else [*names[:_MOST], _OTHERS], dtype=object)


def _indicators(values: Any, categories: Any) -> Array:
    """Numbers as a column, words as indicators; NaN where missing or unknown."""
    if categories is None:
        return np.asarray(values, dtype=np.float64)[:, None]
    found = np.zeros((len(values), len(categories)))
    places = {name: j for j, name in enumerate(categories)}
    at = np.array([-1 if v is None else places.get(v, places.get(_OTHERS, -1)) for v in values])
    found[np.arange(len(values)), at] = 1
    found[at < 0] = np.nan
    return found

"""Profiles of clusters: their sizes, examples, distinguishing columns, and stability."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

from rffpk.estimators.base import Clusterer
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.containers import is_arrow, is_list_of_views
from rffpk.rows.dask_collections import kind_of
from rffpk.rows.door import numbers_of, rows_at
from rffpk.rows.table import Columns, over_powers, side_by_side, skip_zeros, squared, weighted_sums
from rffpk.rows.weights import are_ones, weights_at
from rffpk.system.report import without
from rffpk.tables import described_columns

_ROUNDING = 1e-12  # part of a sum up to which results are rounding errors


@dataclass(frozen=True, eq=False)
class ClusterProfiles:
    """The result of `describe`; its text is a table with a line for each cluster.

    Attributes
    ----------
    sizes : ndarray of int, shape (n_clusters,)
        Numbers of rows.
    shares : ndarray of shape (n_clusters,)
        Fractions of the weight of all rows. If they sum to less than one, the rest is noise.
    medoids : ndarray of int, shape (n_clusters,), or None
        An example of each cluster, by the method `medoids` of the model. None: kernels are
        precomputed, which tell no distances.
    stability : ndarray of shape (n_clusters,), or None
        Mean, over refits, of the largest Jaccard index with a cluster of the refit, on the rows
        that the refit saw. 1: always found; NaN: too few rows. None: no refits.
    columns : list of str
        Names of the columns; ``column=category`` of the indicator of a category.
    units : list of str
        "number", "share" of the rows in a category, or "date", in days since 1970.
    means : ndarray of shape (n_clusters, n_columns)
        Means of the columns in each cluster, NaN in one that is empty.
    differences : ndarray of shape (n_clusters, n_columns)
        Mean of the cluster less the mean of all other rows, over the standard deviation within
        both groups (Cohen's d). Infinite if neither group varies.
    """

    sizes: NDArray[np.int64]
    shares: NDArray[np.float64]
    medoids: NDArray[np.intp] | None
    stability: NDArray[np.float64] | None
    columns: list[str] = field(repr=False)
    units: list[str] = field(repr=False)
    means: NDArray[np.float64] = field(repr=False)
    differences: NDArray[np.float64] = field(repr=False)

    def __str__(self) -> str:
        """Return a table with a line for each cluster."""
        heads, cells = ["cluster", "rows", "share"], [range(len(self.sizes)), self.sizes]
        cells.append([f"{100 * share:.1f} %" for share in self.shares])
        if self.stability is not None:
            heads.append("stability")
            cells.append([f"{value:.2f}" for value in self.stability])
        if self.medoids is not None:
            heads.append("medoid")
            cells.append(self.medoids)
        lines = [heads, *([str(cell) for cell in line] for line in zip(*cells))]
        widths = [max(map(len, column)) for column in zip(*lines)]
        texts = ["means (standardized differences from the rest)"]
        texts += [self._text(cluster) for cluster in range(len(self.sizes))]
        return "\n".join(
            "  ".join([*(cell.rjust(width) for cell, width in zip(line, widths)), text])
            for line, text in zip(lines, texts)
        )

    def _text(self, cluster: int) -> str:
        """Return the columns that set a cluster apart most, with their means and differences.

        There are at most four."""
        means, gaps = self.means[cluster], self.differences[cluster]
        order = np.argsort(-np.abs(gaps), kind="stable")[:4]
        first = [j for j in order if round(gaps[j], 1)]  # smaller gaps would be shown as zero
        texts = []
        for j in first:
            mean = f"{100 * means[j]:.0f} %" if self.units[j] == "share" else f"{means[j]:.3g}"
            if self.units[j] == "date" and not math.isnan(means[j]):
                mean = str(np.datetime64(round(means[j]), "D"))
            texts.append(f"{self.columns[j]} {mean} ({gaps[j]:+.1f})")
        return ", ".join(texts)


def describe(
    model: Any,
    X: Any,
    *,
    table: Any = None,
    sample_weight: Any = None,
    n_resamples: int = 10,
    random_state: Any = None,
) -> ClusterProfiles:
    """Describe the clusters of a fitted model: sizes, examples, distinguishing columns, stability.

    Parameters
    ----------
    model : fitted estimator
        A clusterer of this package, or a scikit-learn pipeline that ends with one.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
        The rows, as in `predict`; for the stability, the rows that were fitted. A data frame may
        have whatever columns the first step of a pipeline takes.
    table : {array-like, sparse matrix, data frame} of shape (n_samples, n_columns), optional
        Columns that describe the same rows, such as columns before they were scaled; gaps are left
        out. In a frame, words are described by the share of each word, dates by their mean. By
        default X, views side by side.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each.
    n_resamples : int
        Number of refits that the stability is computed from; 0: none. Each costs a fit to 70 % of
        the rows of positive weight, which are drawn at random, by the model's own parameters,
        except an `init` that holds a number for each row.
    random_state : int, RandomState instance or None
        Draws the rows and seeds of the refits. An int gives the same result in each call.

    Returns
    -------
    profiles : ClusterProfiles
        ``print(profiles)`` shows a line for each cluster; `rffpk.plot.profile` draws them.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; if kernels are precomputed, which cannot be drawn from,
        and `n_resamples` is not 0.

    Notes
    -----
    The stability is that of Hennig (Cluster-wise assessment of cluster stability, Computational
    Statistics & Data Analysis 2007): below 0.6 a cluster should not be relied on, above 0.85 it is
    there whatever rows are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import PowerKMeans, describe
    >>> X = load_iris().data
    >>> profiles = describe(PowerKMeans(3, random_state=0).fit(X), X, random_state=0)
    >>> sorted(int(size) for size in profiles.sizes)
    [38, 50, 62]
    """
    last = _clusterer(model)
    if kind_of(X) != "memory":
        raise TypeError("X is a source or a Dask collection, must be rows in memory.")
    n_resamples = checks.check_int(n_resamples, "n_resamples", 0)
    random = checks.check_random_state(random_state)
    is_precomputed = last._schema().kind != "rows"
    if is_precomputed and (n_resamples or table is None):
        raise ValueError(
            "With precomputed kernels or a graph, n_resamples must be 0 and table must be given."
        )
    # the tree of k clusters has k - 1 mergers
    labels, k = np.asarray(model.predict(X)), len(last.linkage_) + 1
    p = checks.check_sample_weight(sample_weight, len(labels), X)
    inside = np.flatnonzero(labels >= 0)
    members = sparse.csr_array(
        (p[inside], (labels[inside], inside)), shape=(k, len(labels)), dtype=np.float64
    )
    columns, values, units = _columns(X, table, len(labels), model)
    means, differences = _differences(members, p, values)
    before = model[:-1].transform(X) if isinstance(model, Pipeline) and not is_precomputed else X
    medoids = None if is_precomputed else np.asarray(last.medoids(before))
    stability = None
    if n_resamples:
        stability = _stability(model, X, labels, p, k, n_resamples, random)
    return ClusterProfiles(
        np.bincount(labels[inside], minlength=k), members.sum(axis=1) / p.sum(), medoids,
        stability, columns, units, means, differences,
    )  # fmt: skip


def _clusterer(model: Any) -> Any:
    """Return the fitted clusterer that a model is or ends with."""
    last = model[-1] if isinstance(model, Pipeline) and len(model) else model
    if not isinstance(last, Clusterer):
        raise TypeError(
            f"model is a {type(last).__name__}, must be a clusterer of rffpk or a pipeline that "
            "ends with one."
        )
    check_is_fitted(last)
    return last


# ---- columns -------------------------------------------------------------------------------------


def _columns(X: Any, table: Any, n: int, model: Any) -> tuple[list[str], Any, list[str]]:
    """Return the names of the columns, their array or sparse matrix, and their units."""
    checks.check_row_labels(X, table=table)
    views = X if table is None and is_list_of_views(X) else [X if table is None else table]
    columns: list[tuple[list[str], Any, list[str]]] = []  # names as far as they are known
    for x in views:
        x = x.to_pandas() if is_arrow(x) else x
        argument = "X" if table is None else "table"
        if hasattr(x, "columns") and hasattr(x, "dtypes"):
            with checks.named(argument):
                columns.append(described_columns(x))
        else:
            x = numbers_of(x, argument)
            columns.append(([], x, ["number"] * x.shape[1]))
    names, values, units = map(list, zip(*columns))
    if any(x.shape[0] != n for x in values):
        raise ValueError(f"table has {values[0].shape[0]} rows, must have {n} like X.")
    if table is None and not names[0]:  # an array has the columns that the fit knows by name
        names[0] = [*map(str, getattr(model, "feature_names_in_", ()))]
    names = [
        known if len(known) == x.shape[1] else [f"column {j}" for j in range(x.shape[1])]
        for known, x in zip(names, values)
    ]
    if len(views) == 1:
        return names[0], values[0], units[0]
    named = [f"view {i}: {name}" for i, known in enumerate(names) for name in known]
    return named, side_by_side(values), [unit for known in units for unit in known]


def _differences(members: Any, p: Array, values: Columns) -> tuple[Array, Array]:
    """Return the means in each cluster, and their differences from the means of all other rows.

    Differences are in units of the standard deviation within the cluster and within the rest.
    `members` (k, n) has the weight of each row in its cluster, and `p` (n,) has all weights.
    Columns are centered for precision, unless they are sparse. Gaps (NaN) are left out.
    Results that are only rounding errors become zero."""
    values, exponents = over_powers(values)  # squares must not overflow; undone at the end
    if skip_zeros(values):
        center, weights, all_weights = np.zeros(values.shape[1]), members.sum(axis=1), p.sum()
        weights, x = weights[:, None], values
    else:
        there = ~np.isnan(values)
        filled = np.where(there, values, 0)
        all_weights, weights = p @ there, members @ there.astype(np.float64)
        center = p @ filled / np.where(all_weights > 0, all_weights, 1)
        x = np.where(there, values - center, 0)
    squares, of_clusters = squared(x), members.T
    totals = (all_weights, weighted_sums(x, p), weighted_sums(squares, p))
    groups = [weights, weighted_sums(x, of_clusters), weighted_sums(squares, of_clusters)]
    rest = [total - inside for total, inside in zip(totals, groups)]
    mean, spread = _moments(*groups)
    mean_of_rest, spread_of_rest = _moments(*rest)
    seen = np.where(all_weights > 0, all_weights, 1)
    within, total = (spread + spread_of_rest) / seen, totals[2] / seen
    within = np.where(within > _ROUNDING * total, within, 0)
    gaps = np.nan_to_num(mean - mean_of_rest)
    gaps = np.where(np.abs(gaps) > _ROUNDING * np.sqrt(total), gaps, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where(gaps == 0, 0, gaps / np.sqrt(within))
    means = mean + center
    means[np.abs(means) <= _ROUNDING * np.abs(center)] = 0
    return np.ldexp(means, exponents), gaps


def _moments(weights: Array, sums: Array, squares: Array) -> tuple[Array, Array]:
    """Return means, NaN without weight, and sums of squared deviations from them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(weights > 0, sums / weights, np.nan)
    return means, np.maximum(squares - np.nan_to_num(sums * means), 0)


# ---- stability -----------------------------------------------------------------------------------


def _stability(
    model: Any, X: Any, labels: Array, weight: Array, k: int, n_resamples: int, random: Any
) -> NDArray[np.float64]:
    """Return the `stability` (k,) of `ClusterProfiles`, from `n_resamples` refits.

    It is NaN for a cluster that no refit saw, and everywhere if there are fewer than k rows."""
    counted = np.flatnonzero(weight)
    n, total, seen = len(counted), np.zeros(k), np.zeros(k)
    for _ in range(n_resamples if n >= k else 0):  # fewer rows than clusters cannot be fitted
        size = max(k, math.ceil(0.7 * n))
        index = counted[np.sort(sample_without_replacement(n, size, random_state=random))]
        part = [rows_at(x, index) for x in X] if is_list_of_views(X) else rows_at(X, index)
        p = weights_at(weight, index)
        again = _refit(model, part, p, k, random.randint(2**31 - 1))
        # `indices` has the largest Jaccard index of each cluster with a cluster of the refit, or
        # NaN if the cluster has no rows. Noise, with the label -1, takes the last line and column.
        table = np.zeros((k + 1, k + 1))
        np.add.at(table, (labels[index], again), p)
        sizes, sizes_again = table.sum(axis=1)[:k], table.sum(axis=0)[:k]
        with np.errstate(invalid="ignore"):
            indices = table[:k, :k] / (sizes[:, None] + sizes_again - table[:k, :k])
        indices = np.where(sizes > 0, np.nan_to_num(indices).max(axis=1), np.nan)
        total += np.nan_to_num(indices)
        seen += ~np.isnan(indices)
    with np.errstate(invalid="ignore"):
        return total / seen


def _refit(model: Any, X: Any, weight: Array, k: int, seed: int) -> Array:
    """Return labels of a fit with k clusters to the rows X, with the parameters of `model`."""
    again, fitted = clone(model), _clusterer(model)
    last = again[-1] if isinstance(again, Pipeline) else again
    last.set_params(n_clusters=k, random_state=seed, store_memberships=False, verbose=0)
    init = getattr(last, "init", "")
    centers = np.shape(getattr(fitted, "cluster_centers_", ()))
    if not isinstance(init, str) and not callable(init) and np.shape(init) != centers:
        # `init` has numbers for all rows, and the refit has a part of the rows
        last.set_params(init=type(last)().init)
    name = f"{again.steps[-1][0]}__sample_weight" if again is not last else "sample_weight"
    with without(Warning):  # the fit of all rows has given these warnings
        again.fit(X, **({} if are_ones(weight) else {name: weight}))
    return np.asarray(last.labels_)

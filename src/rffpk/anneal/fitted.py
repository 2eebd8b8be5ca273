"""What a fitted model whose centroids are points in a feature space says of rows, and how it learns
from batches of them: the method `partial_fit`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rffpk.anneal.hard_pass import find_directions
from rffpk.anneal.plan import SearchParameters
from rffpk.estimators.base import fit_of
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Identity, Map
from rffpk.rows.passes import accurate_cost, make_rows, one_pass, pass_of_block
from rffpk.rows.rows import Rows, present_bits
from rffpk.rows.sample import parts_of, sample_size
from rffpk.rows.store import Storage, UnitRows, mapped_views
from rffpk.rows.sums import Sums, onto_sphere
from rffpk.rows.table import (
    Columns,
    column_means,
    concatenated,
    entries,
    occupied_columns,
    operand,
    skip_zeros,
    some_columns,
    squared_distances,
    unit_rows,
)
from rffpk.rows.weights import ones, weights_at
from rffpk.system import config
from rffpk.system.linalg import gaps_of

M = TypeVar("M")

Visit = tuple[Rows, Array, Sums, dict[str, Array]]  # rows, centroids, and what a pass gives

# What a fit says of its rows, which are not those of a stream of batches.
_OF_ROWS = ("labels_", "inertia_", "objective_", "memberships_", "outlier_scores_")


_CENTRAL_ROWS = 2000  # of a cluster, among which one in the middle is looked for, at most


@config.one_blas_thread()  # rows that are fitted have the features of the fit, to the bit
def visit(
    model: Any, xs: list[Array], weight: Array, s: float, want: tuple[str, ...] = (),
    typical: bool = False, whole: bool = False,
) -> Visit:  # fmt: skip
    """A pass at the fitted centroids over views and weights that have been checked, without
    typicality unless `typical`. Where nothing is wanted of the rows, the sums are those of the rows
    that are no noise. Empty columns of sparse rows are left out unless `whole`."""
    shifts, centers = model._shifts, model.cluster_centers_
    n_threads, noise = config.n_threads(model.n_jobs), None
    views = mapped_views(model._feature_maps, model._shape.views, xs)
    views = Storage(getattr(model, "cache", "auto")).landmark_views(views, n_threads)
    columns, maps = map(list, zip(*views))
    if not whole:
        columns, maps, shifts, centers = _without_empty(columns, maps, shifts, centers)
    shifts = [shift.astype(xs[0].dtype) for shift in shifts]
    if (outliers := vars(model).get("_outliers")) is not None:
        noise = outliers.are_noise(xs)
        if not want:
            weight = np.where(noise, 0.0, weight)
    may_lack = getattr(model, "allow_missing_views", False)
    present = present_bits(columns) if may_lack else None
    rows = make_rows(columns, maps, weight, n_threads, shifts)
    objective = model._objective
    rows = replace(
        rows, alpha=model._alpha, eta=objective.eta if typical else None, m=objective.m,
        coverage=objective.coverage, present=present,
    ).with_present_views()  # fmt: skip
    if rows.present is not None:
        rows = rows.renormalised()
    theta = centers.astype(np.float64) - rows.shift
    if want == ("labels",) and math.isinf(s):
        bounds = find_directions(rows, theta)
        sums, outputs = pass_of_block(rows, theta, s, want=want, directions=bounds)
    else:
        sums, outputs = one_pass(rows, theta, s, want=want)
    checks.check_overflow(sums.hard, rows.dtype)
    if "distances" in want:
        checks.check_overflow(float(outputs["distances"].max()), rows.dtype)
    if noise is not None and "labels" in outputs:
        outputs["labels"] = np.where(noise, np.int32(-1), outputs["labels"])
    if noise is not None and "memberships" in outputs:
        outputs["memberships"][noise] = 0
    return rows, theta, sums, outputs


def _without_empty(
    xs: list[Columns], maps: list[Map], shifts: list[Array], centers: Array
) -> tuple[list[Columns], list[Map], list[Array], Array]:
    """Return columns, maps, shifts and centroids without empty columns of sparse views.

    In an empty column neither rows nor centroids have a number. Only sparse views have such."""
    if not skip_zeros(*xs):
        return xs, maps, shifts, centers
    occupied, edges = [], np.cumsum([len(shift) for shift in shifts])[:-1]
    for x, mapped, shift, part in zip(xs, maps, shifts, np.split(centers, edges, axis=1)):
        own = isinstance(mapped, Identity)
        index = occupied_columns(x, (shift != 0) | part.any(axis=0)) if own else None
        if index is not None:
            x, shift, part = some_columns(x, index), shift[index], part[:, index]
            mapped = Identity(len(index))
        occupied.append((x, mapped, shift, part))
    columns, left, shifts, parts = map(list, zip(*occupied))
    return columns, left, shifts, parts[0] if len(parts) == 1 else np.hstack(parts)


def visits(
    model: Any, X: Any, s: float, want: tuple[str, ...], weight: Any = None, typical: bool = False
) -> Iterator[Visit]:
    """Passes over new rows: one over rows in memory, one for each block of a source."""
    for part in parts_of(X, weight, model._schema().of_new_rows(model._shape)):
        yield visit(model, part.tables, part.weight, s, want, typical)


def joined(parts: Iterator[Array]) -> Array:
    """The results of all blocks."""
    found = [*parts]
    return found[0] if len(found) == 1 else np.concatenate(found)


def measure(
    model: Any, X: Any, want: str, s: float | None = None, sample_weight: Any = None
) -> Any:
    """What `want` names of rows; see `Clusterer._measure`."""
    if want == "gaps":
        return _gaps(model)
    if vars(model).get("n_buffered_"):
        check_is_fitted(model, msg=model._of_buffer("This"))
    check_is_fitted(model)
    if want == "cost":
        found = visits(model, X, -math.inf, (), sample_weight)
        return sum(accurate_cost(rows, sums, at) for rows, at, sums, _ in found)
    if want == "memberships":
        s = model.membership_exponent_ if s is None else s
        found = visits(model, X, s, (want,), typical=True)
        return joined(outputs[want] for *_, outputs in found)
    if want == "labels":
        found = visits(model, X, -math.inf, (want,))
        return joined(outputs[want] for *_, outputs in found)
    if want == "medoids":
        found = visits(model, X, -math.inf, ("distances", "labels"))
        parts = ((_distances(rows, out["distances"]), out["labels"]) for rows, *_, out in found)
        distances = joined(np.where(labels[:, None] < 0, np.inf, d) for d, labels in parts)
        return distances.argmin(axis=0)
    found = visits(model, X, -math.inf, ("distances",))
    return joined(_distances(rows, outputs["distances"]) for rows, *_, outputs in found)


def central_rows(model: Any, X: Any, labels: Array) -> list[int | None]:
    """Return a row in the middle of each cluster, by its columns; None for a cluster without rows.
    In a large cluster only rows spread evenly over X are looked at."""
    members = [np.flatnonzero(labels == j) for j in range(len(model.cluster_centers_))]
    looked_at = [index[:: max(1, -(-len(index) // _CENTRAL_ROWS))] for index in members]
    chosen = np.sort(np.concatenate(looked_at))
    new = parts_of(X, None, model._schema().of_new_rows(model._shape))
    parts = ((part.tables[0], chosen - part.begin) for part in new)
    rows = concatenated([x[at[(at >= 0) & (at < len(x))]] for x, at in parts])
    if getattr(model, "metric", "") == "cosine":
        rows = unit_rows(rows)
    places = [np.searchsorted(chosen, index) for index in looked_at]
    return [
        int(index[_middle(rows[at])]) if len(at) else None for index, at in zip(looked_at, places)
    ]


def _middle(x: Columns) -> int:
    """Return a row inside of the rows, even if they are not a ball.

    It is the row nearest to the mean of all rows, then of the half nearest to this row, and so
    on."""
    index, least = np.arange(len(x)), math.isqrt(len(x))
    while True:
        nearest = index[squared_distances(x[index], column_means(x[index])).argmin()]
        if len(index) <= least:
            return int(nearest)
        squares = squared_distances(x[index], column_means(x[[nearest]]))
        index = index[np.argsort(squares, kind="stable")[: (len(index) + 1) // 2]]


def _gaps(model: Any) -> tuple[Array, Array]:
    """The squared distances (k, k) between centroids, and the masses (k,) of their clusters."""
    shift = np.concatenate(model._shifts).astype(np.float64)
    widths = [len(each) for each in model._shifts]
    theta = (model.cluster_centers_ - shift) * np.sqrt(np.repeat(model._alpha, widths))
    running = vars(model).get("_running")
    masses = model._masses if running is None else running.G
    if masses.ndim == 2:  # in each view, of rows that lack some
        masses = masses @ (model._alpha / model._alpha.sum())
    with config.one_blas_thread():
        return gaps_of(theta @ theta.T), masses


def _distances(rows: Rows, squares: Array) -> Array:
    """Euclidean distances, over the views that rows have."""
    if rows.present is not None:
        squares /= rows.combined(np.ones(len(rows.xs))).astype(squares.dtype)
    return np.sqrt(squares, out=squares)


# ---- learning from batches of rows, one after the other ------------------------------------------


@dataclass(frozen=True)
class RunningSums:
    """Discounted sums over all rows of a stream (docs/math.md, section 18)."""

    N: Array  # (k, F), of features less their shift
    G: Array  # (k,)
    s: float  # the exponent of all passes


def partial_fit(
    self: M, X: Any, y: Any = None, sample_weight: Any = None, *, half_life: float | None = None
) -> M:
    """Cluster a stream of rows, batch by batch.

    The first rows are kept until they are as many as `sample` says, 20 000 or 50 for each
    cluster if that is more for "auto" or None; `fit` then clusters them. Each later batch moves
    the centroids by one pass, at the exponent at which that fit ended: a centroid is the mean of
    all rows so far, with the weights that they had for it in their pass, discounted by
    `half_life`. The feature map stays. After `fit` the stream goes on from there. The result is
    near that of `fit` on all rows where these do not drift, but not the same.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or iterator
        A batch of one row or more, as in `fit`; or an iterator of batches, such as a
        generator, which is read to its end, without sample_weight.
    y : Ignored
        Present for scikit-learn's conventions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each. A row of weight zero has no influence.
    half_life : float, optional
        Number > 0 of later rows, of weight above zero, after which a row has half its weight;
        the same for all batches. By default rows keep their weights.

    Returns
    -------
    self : object
        The estimator. It is fitted when no rows are kept (`n_buffered_` is 0). `labels_` are
        then those of the rows of this batch: their nearest centroids before it moved them, or
        after the first fit where that took the batch. Other attributes that describe rows, such
        as `inertia_`, are not set. The others are those of the fit of the first rows, except
        `cluster_centers_`.

    Raises
    ------
    ValueError, TypeError
        If a parameter, X or sample_weight is not as described; nothing is changed then, except
        by the batches of an iterator before.

    Warns
    -----
    ConvergenceWarning
        As `fit` does, once, for the first rows.
    """
    model: Any = self
    given: SearchParameters = model._problem().search
    config.n_threads(model.n_jobs)
    if half_life is not None:
        half_life = checks.check_real(half_life, "half_life", 0, include="neither", also="None")
    if model._schema().kind == "graph":
        raise ValueError("partial_fit takes rows, not parts of a graph: metric == 'precomputed'.")
    if isinstance(X, Iterator):
        if sample_weight is not None:
            raise ValueError("sample_weight is given for an iterator: pass batches one by one.")
        for batch in X:
            model.partial_fit(batch, half_life=half_life)
        return self
    with fit_of(model, anew=False), config.one_blas_thread():
        fitted, buffered = "cluster_centers_" in vars(model), "n_buffered_" in vars(model)
        [x] = model._check_views(X, reset=not (fitted or buffered))
        weight = checks.check_sample_weight(sample_weight, len(x), X, zeros=True)
        counted = weight > 0
        if "_outliers" in vars(model):
            counted &= ~model._outliers.are_noise([x])
        labels = np.empty(len(x), dtype=np.int32)
        if fitted and not counted.all():
            labels[~counted] = _labels(model, x[~counted])
        some = x if counted.all() else x[counted]
        weight = weights_at(weight, counted)
        if not fitted:
            _collect(model, some, weight, given)
        elif len(some):
            labels[counted] = _follow(model, some, weight, half_life)
        if "cluster_centers_" in vars(model):
            model.n_buffered_ = 0
            for name in _OF_ROWS:
                vars(model).pop(name, None)
            model.labels_ = labels if fitted else _labels(model, x)
    return self


def _labels(model: Any, X: Columns) -> Array:
    """What `predict` gives of rows that have been checked."""
    labels: Array = visit(model, [X], ones(len(X)), -math.inf, ("labels",))[-1]["labels"]
    return labels


def _collect(model: Any, X: Columns, weight: Array, given: SearchParameters) -> None:
    """Keep the rows of a batch, and fit all that are kept if they are enough."""
    _check_squares(X)
    parts = [*vars(model).get("_buffer", []), *([(X.copy(), weight)] if len(X) else [])]
    n = vars(model).get("n_buffered_", 0) + len(X)
    first = sample_size(given.k, "auto" if given.sample is None else given.sample)
    if n < first:  # with a new list, so that the one before it can be restored
        model._buffer, model.n_buffered_, model._n_first = parts, n, first
        return
    names = model._shape.names
    model.fit(
        operand(concatenated([x for x, _ in parts])),
        sample_weight=np.concatenate([weight for _, weight in parts]),
    )
    model._remember(model._shape._replace(names=names))


def _check_squares(X: Columns) -> None:
    """Refuse rows that no fit takes: once they are kept, each later batch would be refused."""
    numbers = entries(X)
    largest = float(np.abs(numbers).max(initial=0))
    checks.check_overflow(largest * largest * numbers.size, np.float64)


def _follow(model: Any, X: Array, weight: Array, half_life: float | None) -> Array:
    """Move the centroids by one pass over a batch; its labels in that pass."""
    n, k, discount = len(X), len(model.cluster_centers_), 1.0
    if not isinstance(model.n_clusters, str) and model.n_clusters != k:
        raise ValueError(
            f"n_clusters == {model.n_clusters}, must be {k}, the number of centroids that earlier "
            "rows have: partial_fit moves these."
        )
    if half_life is not None:
        discount = 2.0 ** (-n / half_life)
        discounts = 2.0 ** (-np.arange(n)[::-1] / half_life)  # after the last row
        weight = weight * discounts
    shift = np.concatenate(model._shifts).astype(np.float64)
    theta = model.cluster_centers_.astype(np.float64) - shift
    before = vars(model).get("_running") or _sums_of_fit(model, theta, half_life)
    rows, _, sums, outputs = visit(model, [X], weight, before.s, ("labels",), whole=True)
    # the shift of the rows is rounded to their dtype
    N = sums.N + sums.G[:, None] * (rows.shift - shift)
    model._running = RunningSums(discount * before.N + N, discount * before.G + sums.G, before.s)
    all_sums = replace(sums, N=model._running.N, G=model._running.G)
    moved = rows.centroids(all_sums, theta)
    if isinstance(model._feature_maps[0], UnitRows):
        moved = onto_sphere(moved, theta, shift, 0.0)
    model.cluster_centers_ = (moved + shift).astype(model.cluster_centers_.dtype)
    return outputs["labels"]


def _sums_of_fit(model: Any, theta: Array, half_life: float | None) -> RunningSums:
    """The sums of the fitted rows at their centroids, with the mean discount of n rows with d of
    one row: (1 - d^n) / (n (1 - d))."""
    n, mean = model._n_counted, 1.0
    if half_life is not None:
        rate = math.log(2) / half_life
        mean = math.expm1(-n * rate) / (n * math.expm1(-rate))
    G = mean * model._cluster_weights
    return RunningSums(G[:, None] * theta, G, model._s_of_batches)

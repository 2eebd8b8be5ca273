"""The method `partial_fit`: estimators of features learn from batches of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from rffpk.anneal.fitted import RunningSums
from rffpk.anneal.plan import SearchParameters
from rffpk.estimators.base import fit_of
from rffpk.estimators.fitting import centroid_model
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.sample import sample_size
from rffpk.rows.table import Columns, concatenated, entries, operand
from rffpk.rows.weights import ones, weights_at
from rffpk.system import config

M = TypeVar("M")

# Attributes that describe the rows of a fit, and would be wrong after further batches.
_OF_ROWS = ("labels_", "inertia_", "objective_", "memberships_", "outlier_scores_")


def partial_fit(
    self: M, X: Any, y: Any = None, sample_weight: Any = None, *, half_life: float | None = None
) -> M:
    """Cluster a stream of rows, batch by batch.

    The first rows are kept until there are `sample` rows, and then clustered by `fit`. "auto" and
    None mean 20 000 rows, or 50 for each cluster if that is more. Each later batch moves the
    centroids by one pass, at the exponent at which this fit ended. A centroid is a weighted mean
    of all rows so far: the weight of a row is its membership in its pass, discounted by
    `half_life`. The feature map does not change. A stream may also continue a `fit`. The result
    is near the result of `fit` on all rows, unless rows drift.

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
        Number > 0 of later rows, of weight above zero, after which a row has half its weight.
        Pass one number for all batches. By default rows keep their weights.

    Returns
    -------
    self : object
        The estimator. It is fitted when no rows are kept (`n_buffered_` is 0). `labels_` are
        then of this batch: the nearest centroids before the batch moved them, or after the first
        fit, if that took the batch. Attributes that describe rows, such as `inertia_`, are not
        set. All attributes but `cluster_centers_` are of the fit of the first rows.

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
    search: SearchParameters = model._problem().search
    config.n_threads(model.n_jobs)
    if half_life is not None:
        half_life = checks.check_real(half_life, "half_life", 0, include="neither", also="None")
    if model._schema().kind == "graph":
        raise ValueError(
            "metric='precomputed': partial_fit takes rows, not parts of a graph. Call fit."
        )
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
        # Rows of weight zero, and noise, get labels, but move no centroid.
        counted = weight > 0
        if fitted and model._centroids.outliers is not None:
            counted &= ~model._centroids.outliers.are_noise([x])
        labels = np.empty(len(x), dtype=np.int32)
        if fitted and not counted.all():
            labels[~counted] = _labels(model, x[~counted])
        some = x if counted.all() else x[counted]
        weight = weights_at(weight, counted)
        if not fitted:
            _collect(model, some, weight, search)
        elif len(some):
            labels[counted] = _follow(model, some, weight, half_life)
        if "cluster_centers_" in vars(model):
            model.n_buffered_ = 0
            for name in _OF_ROWS:
                vars(model).pop(name, None)
            model.labels_ = labels if fitted else _labels(model, x)
    return self


def _labels(model: Any, X: Columns) -> Array:
    """Return the labels (n,) that `predict` would give checked rows."""
    visit = centroid_model(model).one_pass([X], ones(len(X)), -math.inf, ("labels",))
    return visit.outputs["labels"]


def _collect(model: Any, X: Columns, weight: Array, search: SearchParameters) -> None:
    """Add the rows of a batch to the kept rows; fit the model once there are enough."""
    # rows whose squares overflow must not be kept, because each later batch would then fail
    numbers = entries(X)
    largest = float(np.abs(numbers).max(initial=0))
    checks.check_overflow(largest * largest * numbers.size, np.float64)
    parts = [*vars(model).get("_buffer", []), *([(X.copy(), weight)] if len(X) else [])]
    n = vars(model).get("n_buffered_", 0) + len(X)
    first = sample_size(search.k, "auto" if search.sample is None else search.sample)
    if n < first:  # `parts` is a new list: the earlier list can be restored
        model._buffer, model.n_buffered_, model._n_first = parts, n, first
        return
    names = model._shape.names
    model.fit(
        operand(concatenated([x for x, _ in parts])),
        sample_weight=np.concatenate([weight for _, weight in parts]),
    )
    # the fit has not seen the names of the columns
    model._remember(model._shape._replace(names=names))


def _follow(model: Any, X: Array, weight: Array, half_life: float | None) -> Array:
    """Move the centroids by one pass over a batch; return the labels (n,) of the batch.

    The labels are of the centroids before the move. Weights of earlier rows halve every `half_life`
    rows; None: they stay."""
    n, k, discount = len(X), len(model.cluster_centers_), 1.0
    if not isinstance(model.n_clusters, str) and model.n_clusters != k:
        raise ValueError(
            f"n_clusters={model.n_clusters}: earlier rows have {k} centroids, which partial_fit "
            f"moves. Pass {k}, or call fit."
        )
    if half_life is not None:
        discount = 2.0 ** (-n / half_life)  # of earlier rows
        discounts = 2.0 ** (-np.arange(n)[::-1] / half_life)  # of rows of the batch, at its end
        weight = weight * discounts
    centroids = model._centroids
    before = centroids.running or _sums_of_fit(model, half_life)
    model.cluster_centers_, running, labels = centroid_model(model).updated(
        before, X, weight, discount
    )
    model._centroids = replace(centroids, running=running)
    return labels


def _sums_of_fit(model: Any, half_life: float | None) -> RunningSums:
    """Return running sums for a stream that goes on after `fit`.

    The sums follow from the centroids and the weights of the clusters, with the mean discount of
    the fitted rows. If one row discounts by d, the mean over n rows is (1 - d^n) / (n (1 - d))."""
    centroids, mean = model._centroids, 1.0
    if half_life is not None:
        rate = math.log(2) / half_life
        mean = math.expm1(-centroids.counted * rate) / (centroids.counted * math.expm1(-rate))
    G = mean * centroids.weights
    shift = np.concatenate(centroids.shifts).astype(np.float64)
    theta = model.cluster_centers_.astype(np.float64) - shift
    return RunningSums(G[:, None] * theta, G, centroids.s)

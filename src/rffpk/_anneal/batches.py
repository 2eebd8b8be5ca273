"""Learning from batches of rows, one after the other: the method `partial_fit`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from rffpk._anneal.centroid_model import first_rows, visit
from rffpk._rows.sample import is_source
from rffpk._rows.sums import Sums
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array
from rffpk._utils.sparse_rows import Columns, SparseRows, concatenated

M = TypeVar("M")

# What a fit says of its rows, which are not those of the stream.
_OF_ROWS = ("labels_", "inertia_", "objective_", "memberships_", "k_means_agreement_")


@dataclass(frozen=True)
class RunningSums:
    """Discounted sums over all rows of a stream (docs/math.md, section 18)."""

    N: Array  # (k, F), of features less their shift
    G: Array  # (k,)
    s: float  # the exponent of all passes

    def followed_by(self, sums: Sums, discount: float) -> RunningSums:
        """The sums after those of a batch."""
        return replace(self, N=discount * self.N + sums.N, G=discount * self.G + sums.G)


def _discounts(n: int, half_life: float | None) -> Array | None:
    """What each of n rows counts after the last of them; None: all count one."""
    return None if half_life is None else 2.0 ** (-np.arange(n)[::-1] / half_life)


def _discount(n: int, half_life: float | None) -> float:
    """What a row counts n rows later."""
    return 1.0 if half_life is None else 2.0 ** (-n / half_life)


def _mean_discount(n: int, half_life: float | None) -> float:
    """The mean of `_discounts`: (1 - d^n) / (n (1 - d)) with d that of one row."""
    if half_life is None:
        return 1.0
    rate = math.log(2) / half_life
    return math.expm1(-n * rate) / (n * math.expm1(-rate))


def partial_fit(self: M, X: Any, y: Any = None, sample_weight: Any = None) -> M:
    """Cluster a stream of rows, batch by batch.

    The first rows are kept until they are as many as `sample` says, 20 000 or 100 for each
    cluster if that is more for "auto", None, or a class without `sample`; `fit` then clusters
    them. Each later batch moves the centroids by one pass, at the exponent at which that fit
    ended: a centroid is the mean of all rows so far, with the weights that they had for it in
    their pass, discounted by `half_life`. The feature map stays. After `fit` the stream goes on
    from there. The result is near that of `fit` on all rows where these do not drift, but not
    the same.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or iterator
        A batch of any number of rows, as in `fit`; or an iterator of batches, such as a
        generator, which is read to its end, without sample_weight.
    y : Ignored
        Present for scikit-learn's conventions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each. A row of weight zero has no influence.

    Returns
    -------
    self : object
        The estimator. It is fitted when no rows are kept (`n_buffered_` is 0). Attributes that
        describe rows, such as `labels_` and `inertia_`, are not set: `predict` labels any rows.
        The others are those of the fit of the first rows, except `cluster_centers_`.

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
    model._check_parameters()
    if isinstance(X, Iterator):
        if sample_weight is not None:
            raise ValueError("sample_weight is given for an iterator: pass batches one by one.")
        for batch in X:
            model.partial_fit(batch)
        return self
    if is_source(X):
        raise TypeError("X is a source: pass it to fit, or its blocks to partial_fit.")
    with validation.unchanged_on_error(model), config.one_blas_thread():
        fitted, buffered = "cluster_centers_" in vars(model), "n_buffered_" in vars(model)
        [x] = model._check_views(X, reset=not (fitted or buffered))
        weight = validation.check_sample_weight(sample_weight, len(x), X, zeros=True)
        if weight is not None:
            x, weight = x[weight > 0], weight[weight > 0]
        if not fitted:
            _collect(model, x, weight)
        elif len(x):
            _follow(model, x, weight)
        if "cluster_centers_" in vars(model):
            model.n_buffered_ = 0
            for name in _OF_ROWS:
                vars(model).pop(name, None)
    return self


def _collect(model: Any, X: Columns, weight: Array | None) -> None:
    """Keep the rows of a batch, and fit all that are kept if they are enough."""
    _check_squares(X)
    parts = [*vars(model).get("_buffer", []), *([(X.copy(), weight)] if len(X) else [])]
    model._buffer = parts  # a new list, so that the one before it can be restored
    model.n_buffered_ = vars(model).get("n_buffered_", 0) + len(X)
    model._n_first = first_rows(model)
    if model.n_buffered_ < model._n_first:
        return
    weights = [np.ones(len(x)) if w is None else w for x, w in parts]
    weighted = any(w is not None for _, w in parts)
    names = vars(model).get("feature_names_in_")
    model.fit(
        concatenated([x for x, _ in parts]),
        sample_weight=np.concatenate(weights) if weighted else None,
    )
    if names is not None:
        model.feature_names_in_ = names


def _check_squares(X: Columns) -> None:
    """Refuse rows that no fit takes: once they are kept, each later batch would be refused."""
    entries = X.data if isinstance(X, SparseRows) else X
    largest = float(np.abs(entries).max(initial=0))
    validation.check_overflow(largest * largest * entries.size, np.float64)


def _follow(model: Any, X: Array, weight: Array | None) -> None:
    """Move the centroids by one pass over a batch."""
    discounts = _discounts(len(X), model.half_life)
    if discounts is not None:
        weight = discounts if weight is None else weight * discounts
    shift = np.concatenate(model._shifts).astype(np.float64)
    theta = model.cluster_centers_.astype(np.float64) - shift
    running = vars(model).get("_running") or _sums_of_fit(model, theta)
    rows, _, sums, _ = visit(model, [X], weight, running.s, ())
    # the shift of the rows is rounded to their dtype
    sums = replace(sums, N=sums.N + sums.G[:, None] * (rows.shift - shift))
    running = running.followed_by(sums, _discount(len(X), model.half_life))
    model._running = running
    moved = replace(sums, N=running.N, G=running.G).centroids(theta, rows.dtype)
    model.cluster_centers_ = (moved + shift).astype(model.cluster_centers_.dtype)


def _sums_of_fit(model: Any, theta: Array) -> RunningSums:
    """The sums of the fitted rows at their centroids."""
    G = _mean_discount(model._n_counted, model.half_life) * model._cluster_weights
    return RunningSums(G[:, None] * theta, G, model._s_of_batches)

"""The base class of the clusterers that also learn from batches of rows, one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing.centroid_clusterer import CentroidClusterer, automatic_sample_size
from rffpk._annealing.parameters import Plan
from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Result
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.rows import Rows
from rffpk._data.sparse_rows import concatenated
from rffpk._data.streams import is_source
from rffpk._data.sums import Sums
from rffpk._data.validation import is_option

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


class IncrementalClusterer(CentroidClusterer):
    """Base of the clusterers of one view with `partial_fit`."""

    half_life: float | None
    n_buffered_: int  # what `partial_fit` sets
    _n_first: int  # rows that the first fit takes, while some are kept
    _n_counted: int  # rows of a fit with positive weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.half_life is not None:
            validation.check_real(self.half_life, "half_life", 0, include="neither", also="None")

    def _publish(self, rows: Rows, some: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        super()._publish(rows, some, run, end, plan)
        self._n_counted = rows.n_counted
        self._s_of_batches = -math.inf if plan.ends_hard else end.s
        # of a stream before this fit
        for name in ("_running", "_buffer", "n_buffered_", "_n_first"):
            self.__dict__.pop(name, None)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        self._check_parameters()
        if isinstance(X, Iterator):
            return self._follow_all(X, sample_weight)
        if is_source(X):
            raise TypeError("X is a source: pass it to fit, or its blocks to partial_fit.")
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            fitted, buffered = self.__sklearn_is_fitted__(), hasattr(self, "n_buffered_")
            [x] = self._check_views(X, reset=not (fitted or buffered))
            weight = validation.check_sample_weight(sample_weight, len(x), X, zeros=True)
            if weight is not None:
                x, weight = x[weight > 0], weight[weight > 0]
            if not fitted:
                self._collect(x, weight)
            elif len(x):
                self._follow(x, weight)
            if self.__sklearn_is_fitted__():
                self.n_buffered_ = 0
                for name in _OF_ROWS:
                    self.__dict__.pop(name, None)
        return self

    def _follow_all(self, batches: Iterator[Any], sample_weight: Any) -> Self:
        if sample_weight is not None:
            raise ValueError("sample_weight is given for an iterator: pass batches one by one.")
        for batch in batches:
            self.partial_fit(batch)
        return self

    def _collect(self, X: Array, weight: Array | None) -> None:
        """Keep the rows of a batch, and fit all that are kept if they are enough."""
        parts = [*vars(self).get("_buffer", []), *([(X.copy(), weight)] if len(X) else [])]
        self._buffer = parts  # a new list, so that the one before it can be restored
        self.n_buffered_ = vars(self).get("n_buffered_", 0) + len(X)
        self._n_first = self._first_rows()
        if self.n_buffered_ < self._n_first:
            return
        weights = [np.ones(len(x)) if w is None else w for x, w in parts]
        weighted = any(w is not None for _, w in parts)
        names = vars(self).get("feature_names_in_")
        self.fit(
            concatenated([x for x, _ in parts]),
            sample_weight=np.concatenate(weights) if weighted else None,
        )
        if names is not None:
            self.feature_names_in_ = names

    def _first_rows(self) -> int:
        """The number of rows that the first fit of a stream takes."""
        k = int(self.n_clusters)
        if self.sample is None or is_option(self.sample, "auto"):
            return automatic_sample_size(k)
        return max(int(self.sample), k)

    def _follow(self, X: Array, weight: Array | None) -> None:
        """Move the centroids by one pass over a batch."""
        discounts = _discounts(len(X), self.half_life)
        if discounts is not None:
            weight = discounts if weight is None else weight * discounts
        shift = np.concatenate(self._shifts).astype(np.float64)
        theta = self.cluster_centers_.astype(np.float64) - shift
        running = vars(self).get("_running") or self._begun(theta)
        rows, _, sums, _ = self._pass([X], weight, running.s, ())
        # the shift of the rows is rounded to their dtype
        sums = replace(sums, N=sums.N + sums.G[:, None] * (rows.shift - shift))
        self._running = running.followed_by(sums, _discount(len(X), self.half_life))
        moved = replace(sums, N=self._running.N, G=self._running.G).centroids(theta, rows.dtype)
        self.cluster_centers_ = (moved + shift).astype(self.cluster_centers_.dtype)

    def _begun(self, theta: Array) -> RunningSums:
        """The sums of the fitted rows at their centroids."""
        G = _mean_discount(self._n_counted, self.half_life) * self._cluster_weights
        return RunningSums(G[:, None] * theta, G, self._s_of_batches)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_") and not name.startswith("_") and vars(self).get("n_buffered_"):
            raise AttributeError(f"{name} is not there yet: {self._of_buffer('this')}")
        return super().__getattr__(name)

    def _of_buffer(self, this: str) -> str:
        """What is missing for a fit of the rows that are kept."""
        return (
            f"{this} {type(self).__name__} has {self.n_buffered_} of the {self._n_first} rows "
            "that its first fit takes: give partial_fit more rows, or call fit."
        )

    def _check_fitted(self) -> None:
        if vars(self).get("n_buffered_"):
            check_is_fitted(self, msg=self._of_buffer("This"))
        super()._check_fitted()

"""Models whose centroids are points in a feature space: what they say of new rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.parameters import check_exponent
from rffpk._data import validation
from rffpk._data.arrays import Array, View
from rffpk._data.collections import by_partitions, is_dask, sources_of
from rffpk._data.estimator import Estimator
from rffpk._data.passes import accurate_cost, make_rows, one_pass
from rffpk._data.presence import present_bits
from rffpk._data.rows import Rows
from rffpk._data.streams import is_source, make_stream
from rffpk._data.sums import Sums


def mapped_views(xs: list[Array], maps: list[Any]) -> list[View]:
    """The columns and the map of each view, as passes take them."""
    return [(x, None) if fitted is None else fitted._view(x) for x, fitted in zip(xs, maps)]


class CentroidModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Base of the estimators whose clusters have centroids in a feature space."""

    n_jobs: int | None
    # what a fit sets
    cluster_centers_: Array
    s_: float
    allow_missing_views: bool = False  # a parameter of classes that take rows without some views
    _feature_maps: list[Any]  # of each view, None if the features are the columns themselves
    _shifts: list[Array]  # of the features, by views
    _alpha: Array  # the view weights
    _objective: PowerMean

    def __getattr__(self, name: str) -> Any:
        if name == "labels_" and "cluster_centers_" in vars(self):
            raise AttributeError(
                "labels_ of the rows of a source are not kept, nor those of batches: pass "
                "labels_to to fit, or call predict."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _check_views(self, X: Any, reset: bool) -> list[Array]:
        """The checked views of X, of one dtype; a single array is one view."""
        return [validation.check_rows(self, X, reset=reset)]

    def _without_noise(self, rows: Rows, labels: Array, nearest: Array) -> Array:
        """The labels of rows to publish; `nearest` are the squared distances to the centroids."""
        return labels

    def _views(self, xs: list[Array]) -> list[View]:
        """The columns and the map of each view, as passes take them."""
        return mapped_views(xs, self._feature_maps)

    def _rows(
        self, views: list[View], weight: Array | None, shifts: list[Array] | None = None
    ) -> Rows:
        xs, maps = [x for x, _ in views], [each for _, each in views]
        present = present_bits(xs) if self.allow_missing_views else None
        return make_rows(xs, maps, weight, _config.n_threads(self.n_jobs), shifts, present)

    def _theta(self, rows: Rows) -> Array:
        """The fitted centroids, shifted like the features of the rows."""
        return np.asarray(self.cluster_centers_.astype(np.float64) - rows.shift)

    def _check_fitted(self) -> None:
        """Raise a NotFittedError before a fit."""
        check_is_fitted(self)

    def _visits(
        self,
        X: Any,
        s: float,
        want: tuple[str, ...],
        sample_weight: Any = None,
        typical: bool = False,
    ) -> Iterator[tuple[Rows, Array, Sums, dict[str, Array]]]:
        """Passes over new rows at the fitted centroids, without typicality unless `typical`: one
        over rows in memory, one for each block of a source."""
        self._check_fitted()
        for xs, weight in self._new_views(X, sample_weight):
            yield self._pass(xs, weight, s, want, typical)

    def _pass(
        self,
        xs: list[Array],
        weight: Array | None,
        s: float,
        want: tuple[str, ...],
        typical: bool = False,
    ) -> tuple[Rows, Array, Sums, dict[str, Array]]:
        """A pass over views and weights that have been checked."""
        shifts = [shift.astype(xs[0].dtype) for shift in self._shifts]
        rows = self._objective.restore(self._rows(self._views(xs), weight, shifts), self._alpha)
        rows = replace(rows, eta=rows.eta if typical else None, coverage=self._objective.coverage)
        rows = rows.marked()
        if rows.present is not None:
            rows = rows.renormalised()
        theta = self._theta(rows)
        sums, outputs = one_pass(rows, theta, s, want=want)
        validation.check_overflow(sums.hard, rows.dtype)
        if "distances" in want:
            validation.check_overflow(float(outputs["distances"].max()), rows.dtype)
        return rows, theta, sums, outputs

    def _new_views(self, X: Any, sample_weight: Any) -> Iterator[tuple[list[Array], Array | None]]:
        """The checked views of new rows and their weights; of a source block by block."""

        def check(block: Any, first: bool = False) -> list[Array]:
            return self._check_views(block, reset=False)

        X = sources_of(X) if is_dask(X) else X
        if is_source(X):
            given = False
            for views in make_stream(X, sample_weight, check).blocks():
                given = True
                yield views
            if not given:
                raise ValueError("X gave no rows, must give at least one.")
        else:
            xs = check(X)
            yield xs, validation.check_sample_weight(sample_weight, len(xs[0]), X)

    def _visit(self, X: Any, s: float, want: str, typical: bool = False) -> Array:
        """A result of a pass for each row."""
        found = [outputs[want] for *_, outputs in self._visits(X, s, (want,), typical=typical)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    @by_partitions
    def predict(self, X: Any) -> NDArray[np.int32]:
        """Label each row with its nearest centroid.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            Indices of the clusters. For collections of Dask a Dask array.
        """
        return self._visit(X, -math.inf, "labels")

    @by_partitions
    def predict_proba(self, X: Any, *, s: float | None = None) -> Array:
        """Memberships of the rows in the clusters, at the exponent `s_` or any other.

        u_ij = d_ij^s / sum_l d_il^s with the squared distances d_ij of rows to centroids: the
        memberships of fuzzy c-means. If the class has typicality, d_ij are the distances d'_ij of
        its objective.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.
        s : float, optional
            Exponent, at most -0.2, by default `s_`. The nearer it is to zero, the softer are the
            memberships; minus infinity gives 0 and 1. The fuzzifier m of fuzzy c-means is
            s = -1/(m-1), so that -1 stands for m = 2.

        Returns
        -------
        memberships : ndarray of shape (n_samples, n_clusters)
            In [0, 1]; rows sum to one. For collections of Dask a Dask array.
        """
        self._check_fitted()
        s = self.s_ if s is None else check_exponent(s)
        return self._visit(X, s, "memberships", typical=True)

    @by_partitions
    def transform(self, X: Any) -> Array:
        """Euclidean distances of the rows to the centroids, in the space of `cluster_centers_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the dtype of X. If there are several views, their squared distances are combined with
            `kernel_weights_`. The squares are precise to a few eps of the squared distance from the
            mean of the fitted rows. For collections of Dask a Dask array.
        """
        found = []
        for rows, *_, outputs in self._visits(X, -math.inf, ("distances",)):
            distances = outputs["distances"]
            if rows.present is not None:
                distances /= rows.combined(np.ones(len(rows.xs))).astype(distances.dtype)
            found.append(np.sqrt(distances, out=distances))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def fit_predict(self, X: Any, y: Any = None, **options: Any) -> NDArray[np.int32]:
        """Fit, and return the labels of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
            As in `fit`.
        y : Ignored
            Present for scikit-learn's conventions.
        **options : dict
            Other arguments of `fit`.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            `labels_`; of the rows of a source, what `predict` gives.
        """
        self.fit(X, y, **options)
        return vars(self)["labels_"] if "labels_" in vars(self) else self.predict(X)

    def medoids(self, X: Any) -> NDArray[np.intp]:
        """The row of X that is nearest to each centroid: an example of each cluster.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.

        Returns
        -------
        indices : ndarray of shape (n_clusters,)
            Indices of rows; the first of equals. O(n_samples n_clusters) memory.
        """
        return np.asarray(self.transform(X)).argmin(axis=0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances of the rows to their nearest centroids.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each.

        Returns
        -------
        score : float
            At most 0; the higher the better.
        """
        visits = self._visits(X, -math.inf, (), sample_weight)
        costs = (
            accurate_cost(rows, sums.hard, sums, theta, theta) for rows, theta, sums, _ in visits
        )
        return -sum(costs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

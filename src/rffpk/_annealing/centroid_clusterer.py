"""The base class of the estimators whose centroids are points in a feature space."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing import critical, swaps
from rffpk._annealing.centroids import coincidence, count_distinct
from rffpk._annealing.compression import compressed
from rffpk._annealing.ends import Cause, Ending, few_rows, warn_of_ending
from rffpk._annealing.evaluation import evaluate, finish
from rffpk._annealing.history import History, Record
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.parameters import Plan, check_exponent, is_automatic
from rffpk._annealing.primal import FeatureRun, FeatureSpace
from rffpk._annealing.schedule import Result
from rffpk._annealing.search import search
from rffpk._annealing.seeding import nested_samples, seed_centroids, seeding_rows
from rffpk._data import validation
from rffpk._data.arrays import Array, View
from rffpk._data.estimator import Estimator
from rffpk._data.messages import warn
from rffpk._data.passes import Rows, accurate_cost, make_rows, one_pass, total_variance
from rffpk._data.store import ALL_PASSES, LAST_PASSES, Storage, has_maps
from rffpk._data.validation import is_option

INITS = ("k-means++", "random", "k-means")

# Starts run on a sample of this many rows, or of this many for each cluster if that is more.
_SAMPLE_ROWS, _ROWS_A_CLUSTER = 20_000, 100


class CentroidClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Base of the estimators that minimise a power mean of squared distances to centroids.

    A subclass defines how rows become features, what is minimised, and which starts are run. A
    parameter that a subclass does not have keeps the value below.
    """

    n_clusters: int
    _k: int  # n_clusters, checked
    init: Any
    n_init: Any
    max_iter: int
    tol: float
    random_state: Any
    n_jobs: int | None
    verbose: int
    s_final: str | float = "hard"
    sample: str | int | None = None
    cache: str | bool = False
    memory_limit: int | None = None
    # what a fit sets
    labels_: NDArray[np.int32]
    cluster_centers_: Array
    inertia_: float
    objective_: float
    s_: float
    n_iter_: int
    sample_size_: int
    history_: list[Record]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    _rows_name = "X"  # what warnings call the rows that are clustered
    _automatic_starts = False  # whether starts may differ in kind

    # ---- what subclasses define -------------------------------------------------------------

    def _check_parameters(self) -> None:
        also = "an array or a callable"
        validation.check_search_parameters(self, INITS, also)

    def _check_views(self, X: Any, reset: bool) -> list[Array]:
        """The checked views of X, of one dtype; a single array is one view."""
        return [validation.check_rows(self, X, reset=reset)]

    def _fit_maps(self, xs: list[Array], weight: Array | None, random: Any) -> list[Any]:
        """The fitted feature map of each view, None if the features are the columns themselves."""
        return [None]

    def _make_objective(self, rows: Rows) -> PowerMean:
        return PowerMean()

    def _without_noise(self, labels: Array, nearest: Array) -> Array:
        """The labels to publish; `nearest` are the squared distances to the centroids."""
        return labels

    def _plan(self, critical: float) -> Plan:
        """The starts and the number of swaps, which may depend on the critical exponent."""
        raise NotImplementedError

    # ---- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of views
            Finite numbers. A list of views, arrays of shape (n_samples, n_features_l) with the same
            rows, is for classes with the parameter `kernels` only. C-ordered float32 and float64
            arrays, memory-mapped ones too, are read in place; anything else is converted (integers
            and float16 to float64).
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each. A row of weight zero has no influence.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or sample_weight is not as described; nothing is changed then.
        MemoryError
            If the class has the parameter `cache`, it is True, and the features take more than
            `memory_limit`.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` ended a run before it converged, or centroids coincide at the end, or are
            so near each other that memberships are nearly equal.
        """
        return self._fit(X, sample_weight, [])

    def _fit(self, X: Any, sample_weight: Any, causes: list[Cause]) -> Any:
        """`fit`; `causes` of coincident centroids are those in what X was computed from."""
        self._check_parameters()
        random = validation.check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            xs = self._check_views(X, reset=True)
            weight = validation.check_sample_weight(sample_weight, len(xs[0]))
            self._k = validation.check_n_clusters(self.n_clusters, len(xs[0]), weight)
            self._causes = causes or [few_rows("X", xs, weight)]
            self._feature_maps = self._fit_maps(xs, weight, random)
            self._fit_rows(self._fitted_rows(xs, weight), random)
            del self._causes
        return self

    def _fitted_rows(self, xs: list[Array], weight: Array | None) -> Rows:
        """The rows that are fitted, with their mean features as shifts."""
        storage = Storage(self.cache, self.memory_limit)
        views = storage.landmark_views(self._views(xs), _config.n_threads(self.n_jobs))
        return self._rows(views, weight)

    def _fit_rows(self, rows: Rows, random: Any) -> None:
        """`fit` for rows and parameters that have been checked."""
        variance = total_variance(rows)
        storage = Storage(self.cache, self.memory_limit)
        storage.check(rows)
        init = self._given_init(rows)
        self._objective = self._make_objective(rows)
        rows = self._objective.begin(rows)
        history = History([], self.verbose)
        samples = self._samples(rows, storage, random)
        base = samples[0] if samples else self._whole(rows, storage, ALL_PASSES)
        automatic = self._automatic_starts and is_automatic(self)
        hard = automatic and is_option(self.s_final, "hard")
        small = compressed(base, self._k, storage, hard) if automatic else None
        searched = base if small is None else small.rows
        history.left_out = 0.0 if small is None else small.left_out

        seeding = seeding_rows(searched, self._k, random)
        features = seeding.features()
        critical_exponent = critical.of_rows(seeding, features)
        plan = self._plan(critical_exponent)
        history.unit = plan.unit

        def seed() -> Array:
            return self._initial_centroids(init, seeding, features, history, random)

        space = FeatureSpace(searched, variance, self._objective, seed, history, random)
        run, end, cost = search(space, plan.starts)
        schedule = plan.starts[-1].schedule  # all starts end alike
        if plan.swaps:
            swaps.improve(run, cost, plan.swaps)
            end.converged = run.settle("hard", -math.inf, schedule.tol, schedule.max_iter)
        if math.isinf(end.s):  # no start was annealed
            end.s = run.nearly_hard_exponent()
        if small is not None:
            run.theta, history.left_out = small.expand(run.theta), 0.0
        if samples:
            whole = self._whole(rows, storage, LAST_PASSES)
            finish(run, [*samples[1:], whole], end, schedule, plan.swaps)
        elif small is not None:
            finish(run, [base], end, schedule, 0)
        self.history_, self.sample_size_ = history.records, base.n
        self._publish(rows, run, end, plan)

    def _samples(self, rows: Rows, storage: Storage, random: Any) -> list[Rows]:
        """Samples of growing size, the first for the starts; none if these run on all rows."""
        counted = rows.n if rows.weight is None else int(np.count_nonzero(rows.weight))
        size = self._sample_size(counted)
        if size == counted:
            return []
        first, *others = nested_samples(rows, size, self._k, random)
        return [storage.sample(first), *others]

    def _whole(self, rows: Rows, storage: Storage, passes: int) -> Rows:
        """All rows, with stored features if that pays for so many passes."""
        rows = storage.all_rows(rows, self._k, passes)
        if any(self._feature_maps):
            self.cache_ = not has_maps(rows)
        return rows

    def _sample_size(self, n: int) -> int:
        """The number of rows, out of n, that starts run on."""
        if self.sample is None:
            return n
        if is_option(self.sample, "auto"):
            return min(n, max(_SAMPLE_ROWS, _ROWS_A_CLUSTER * self._k))
        return min(n, max(int(self.sample), self._k))

    def _views(self, xs: list[Array]) -> list[View]:
        """The columns and the map of each view, as passes take them."""
        pairs = zip(xs, self._feature_maps)
        return [(x, None) if fitted is None else fitted._view(x) for x, fitted in pairs]

    def _rows(
        self, views: list[View], weight: Array | None, shifts: list[Array] | None = None
    ) -> Rows:
        xs, maps = [x for x, _ in views], [each for _, each in views]
        return make_rows(xs, maps, weight, _config.n_threads(self.n_jobs), shifts)

    def _initial_centroids(
        self, init: Any, seeding: Rows, features: Array, history: History, random: Any
    ) -> Array:
        """Shifted initial centroids (k, F), chosen from the seeding rows unless they are given."""
        k, width = self._k, features.shape[1]
        if isinstance(init, str):
            history.add_seeding(seeding.n)
            with config_context(assume_finite=True, skip_parameter_validation=True):
                return seed_centroids(features, seeding.weight, k, init, seeding.n_threads, random)
        if callable(init):
            history.add_seeding(seeding.n)
            drawn = init(features + seeding.shift, k, random_state=random)
            init = self._checked_centroids(drawn, width)
        return np.asarray(init - seeding.shift)

    def _draws_init(self) -> bool:
        return isinstance(self.init, str) or callable(self.init)

    def _given_init(self, rows: Rows) -> Any:
        """`init`; if it is an array, the initial centroids that it stands for."""
        if self._draws_init():
            return self.init
        return self._checked_centroids(self.init, len(rows.shift))

    def _checked_centroids(self, centroids: Any, width: int) -> Array:
        validation.check_plain(centroids, "init")
        with validation.named("init"):
            centroids = np.array(centroids, dtype=np.float64)
        expected = (self._k, width)
        if centroids.shape != expected:
            raise ValueError(
                f"init has shape {centroids.shape}, must be {expected}: (n_clusters, number of "
                "features that the rows are mapped to)."
            )
        if not np.isfinite(centroids).all():
            raise ValueError("init contains NaN or infinity, must be finite.")
        return centroids

    def _publish(self, rows: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        """Set the fitted attributes; warn if the run did not converge or centroids coincide."""
        alpha, self._alpha = run.rows.alpha, run.rows.alpha
        rows = replace(rows, alpha=alpha)
        final = evaluate(rows, run.theta, end.s)
        self.cluster_centers_ = final.centers
        self.labels_ = self._without_noise(final.labels, final.nearest)
        self.inertia_ = final.inertia
        self.s_ = end.s
        objective = final.soft_sums.objective(end.s) + self._objective.penalty(
            alpha, rows.total_weight
        )
        self.objective_ = plan.unit * objective
        self.n_iter_ = run.passes
        self._shifts = rows.shifts
        self._n_features_out = self._k
        if not end.converged:
            warn(
                f"max_iter={self.max_iter} passes ended the run before it converged.",
                ConvergenceWarning,
            )
        cost = final.hard_sums.hard / rows.total_weight
        relative, absolute = coincidence(run.variance, rows.dtype)
        close = max(relative * cost, absolute)
        self._n_distinct = count_distinct(rows.scaled(final.theta), close)
        s, sums = -math.inf if plan.ends_hard else end.s, final.soft_sums
        ending = Ending(
            self._k, self._n_distinct, s, sums.soft, sums.hard, plan.critical, plan.lowered_by
        )
        warn_of_ending(ending, [*self._causes, few_rows(self._rows_name, rows.xs, rows.weight)])

    # ---- prediction ------------------------------------------------------------------------

    def _visit(
        self,
        X: Any,
        s: float,
        want: tuple[str, ...],
        sample_weight: Any = None,
        typical: bool = False,
    ) -> Any:
        """One pass over new rows at the fitted centroids, without typicality unless `typical`."""
        check_is_fitted(self)
        xs = self._check_views(X, reset=False)
        weight = validation.check_sample_weight(sample_weight, len(xs[0]))
        shifts = [shift.astype(xs[0].dtype) for shift in self._shifts]
        rows = self._objective.restore(self._rows(self._views(xs), weight, shifts), self._alpha)
        rows = rows if typical else replace(rows, eta=None)
        theta = self.cluster_centers_.astype(np.float64) - rows.shift
        sums, outputs = one_pass(rows, theta, s, want=want)
        farthest = outputs["distances"].max() if "distances" in want else 0.0
        validation.check_overflow(sums.hard + float(farthest), rows.dtype)
        return rows, theta, sums, outputs

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Label each row with its nearest centroid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            Indices of the clusters.
        """
        return self._visit(X, -math.inf, ("labels",))[-1]["labels"]

    def predict_proba(self, X: Any, *, s: float | None = None) -> Array:
        """Memberships of the rows in the clusters, at the exponent `s_` or any other.

        u_ij = d_ij^s / sum_l d_il^s with the squared distances d_ij of rows to centroids: the
        memberships of fuzzy c-means. If the class has typicality, d_ij are the distances d'_ij of
        its objective.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.
        s : float, optional
            Exponent, at most -0.2, by default `s_`. The nearer it is to zero, the softer are the
            memberships; minus infinity gives 0 and 1. The fuzzifier m of fuzzy c-means is
            s = -1/(m-1), so that -1 stands for m = 2.

        Returns
        -------
        memberships : ndarray of shape (n_samples, n_clusters)
            In [0, 1]; rows sum to one.
        """
        check_is_fitted(self)
        s = self.s_ if s is None else check_exponent(s)
        return self._visit(X, s, ("memberships",), typical=True)[-1]["memberships"]

    def transform(self, X: Any) -> Array:
        """Euclidean distances of the rows to the centroids, in the space of `cluster_centers_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or a list of views
            As in `fit`.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the dtype of X. If there are several views, their squared distances are combined with
            `kernel_weights_`. The squares are precise to a few eps of the squared distance from the
            mean of the fitted rows.
        """
        distances = self._visit(X, -math.inf, ("distances",))[-1]["distances"]
        return np.sqrt(distances, out=distances)

    def medoids(self, X: Any) -> NDArray[np.intp]:
        """The row of X that is nearest to each centroid: an example of each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or a list of views
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
        X : array-like of shape (n_samples, n_features_in_), or a list of views
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
        rows, theta, sums, outputs = self._visit(X, -math.inf, ("labels",), sample_weight)
        return -accurate_cost(rows, sums.hard, sums, theta, outputs["labels"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

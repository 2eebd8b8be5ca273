"""The base class of the estimators whose centroids are points in a feature space."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing import critical, swaps
from rffpk._annealing.centroids import coincidence, count_distinct
from rffpk._annealing.checkpoint import Journal, make_journal, words_of_rows
from rffpk._annealing.compression import compressed
from rffpk._annealing.ends import Cause, Ending, few_rows, warn_of_ending
from rffpk._annealing.evaluation import evaluate, finish
from rffpk._annealing.history import History, Record
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.parameters import Plan, check_exponent, is_automatic
from rffpk._annealing.primal import FeatureRun, FeatureSpace
from rffpk._annealing.schedule import Hard, Result
from rffpk._annealing.search import search
from rffpk._annealing.seeding import seed_centroids, seeding_rows
from rffpk._data import validation
from rffpk._data.arrays import Array, View
from rffpk._data.estimator import Estimator
from rffpk._data.messages import warn
from rffpk._data.passes import (
    Rows,
    Sums,
    accurate_cost,
    make_rows,
    mean_features,
    one_pass,
    total_variance,
    weight_unit,
    width,
)
from rffpk._data.progress import Progress, observed, reporting
from rffpk._data.sinks import LabelSink, check_labels_to, label_sink
from rffpk._data.store import ALL_PASSES, LAST_PASSES, Storage, has_maps
from rffpk._data.streams import is_source, make_stream
from rffpk._data.survey import Survey, survey_arrays, survey_stream
from rffpk._data.validation import Auto, is_option

Init = Literal["k-means++", "random", "k-means"]

# Starts run on a sample of this many rows, or of this many for each cluster if that is more.
_SAMPLE_ROWS, _ROWS_A_CLUSTER = 20_000, 100


def automatic_sample_size(k: int) -> int:
    """The number of rows that starts for k clusters run on, where there are as many."""
    return max(_SAMPLE_ROWS, _ROWS_A_CLUSTER * k)


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
    s_final: Hard | float = "hard"
    sample: Auto | int | None = None
    cache: Auto | bool = False
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

    _sink: LabelSink  # in fit
    _progress: Progress | None  # while rows are fitted, and ...
    _journal: Journal
    _rows_name = "X"  # what warnings call the rows that are clustered
    _automatic_starts = False  # whether starts may differ in kind

    def __getattr__(self, name: str) -> Any:
        if name == "labels_" and "cluster_centers_" in vars(self):
            raise AttributeError(
                "labels_ of the rows of a source are not kept: pass labels_to to fit, or call "
                "predict."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # ---- what subclasses define -------------------------------------------------------------

    def _check_parameters(self) -> None:
        also = "an array or a callable"
        validation.check_search_parameters(self, get_args(Init), also)

    def _check_views(self, X: Any, reset: bool) -> list[Array]:
        """The checked views of X, of one dtype; a single array is one view."""
        return [validation.check_rows(self, X, reset=reset)]

    def _fit_maps(self, survey: Survey, random: Any) -> list[Any]:
        """The fitted feature map of each view, None if the features are the columns themselves."""
        return [None]

    def _survey_rows(self) -> int:
        """The number of rows that maps are fitted on, at most."""
        return automatic_sample_size(self._k)

    def _make_objective(self, rows: Rows) -> PowerMean:
        return PowerMean()

    def _without_noise(self, labels: Array, nearest: Array) -> Array:
        """The labels to publish; `nearest` are the squared distances to the centroids."""
        return labels

    def _plan(self, critical: float) -> Plan:
        """The starts and the number of swaps, which may depend on the critical exponent."""
        raise NotImplementedError

    # ---- fitting ----------------------------------------------------------------------------

    @observed
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, labels_to: Any = None,
        checkpoint: Any = None, checkpoint_seconds: float = 60.0, resume: bool = True,
    ) -> Self:  # fmt: skip
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of views
            Finite numbers. A list of views, arrays of shape (n_samples, n_features_l) with the same
            rows, is for classes with the parameter `kernels` only. C-ordered float32 and float64
            arrays, memory-mapped ones too, are read in place; anything else is converted (integers
            and float16 to float64). Rows that are not in memory are a source, a function without
            arguments that returns an iterator of blocks of rows (`rffpk.sources`), or a list of
            such for views; they are read several times, and `labels_` is not set.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each. A row of weight zero has no influence.
        labels_to : str, path or callable, optional
            Where the labels of a source go, which are not kept: a file that ends in .npy or
            .parquet, or a function that is called with the labels of consecutive rows, block by
            block.
        checkpoint : str or path, optional
            A file that is replaced as the fit proceeds, and removed at its end. It needs a
            `random_state`. If it is there already, as after a fit that was killed, the fit goes on
            from it to the same bits.
        checkpoint_seconds : float, default=60
            Least time between two checkpoints, >= 0. They are written after a pass, or after a swap
            with its passes.
        resume : bool, default=True
            Whether to go on from a checkpoint that is there. One of other rows, parameters, random
            numbers or versions is refused; False begins anew.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter, X, sample_weight or a checkpoint is not as described; nothing is changed
            then.
        MemoryError
            If the class has the parameter `cache`, it is True, and the features take more than
            `memory_limit`.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` ended a run before it converged, or centroids coincide at the end, or are
            so near each other that memberships are nearly equal.
        UserWarning
            If a checkpoint could not be written; the one before stays.
        """
        journal = make_journal(checkpoint, checkpoint_seconds, resume)
        with reporting(self, X) as progress:
            return self._fit(X, sample_weight, [], labels_to, progress, journal)

    def _fit(
        self,
        X: Any,
        sample_weight: Any,
        causes: list[Cause],
        labels_to: Any = None,
        progress: Progress | None = None,
        journal: Journal | None = None,
    ) -> Any:
        """`fit`; `causes` of coincident centroids are those in what X was computed from."""
        self._check_parameters()
        check_labels_to(labels_to)
        random = check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            self._k, self._journal = int(self.n_clusters), journal or Journal()
            self._journal.open(self, random)
            survey = self._survey(X, sample_weight, random)
            self._k = validation.check_n_clusters(self.n_clusters, survey.n, survey.counted)
            self._causes = causes or [few_rows("X", *survey.some())]
            self._feature_maps = self._fit_maps(survey, random)
            self._progress, keep = progress, survey.stream is None
            with label_sink(labels_to, survey.n, keep) as self._sink:
                self._fit_rows(self._fitted_rows(survey), survey, random)
            self._journal.remove()
            del self._causes, self._sink, self._progress, self._journal
        return self

    def _survey(self, X: Any, sample_weight: Any, random: Any) -> Survey:
        """What is known of all rows; those of a source are read once."""
        size, n_threads = self._survey_rows(), _config.n_threads(self.n_jobs)
        first = None if self.sample is None else self._sample_size(2**62)
        seed = deepcopy(random).randint(2**31 - 1)  # so that small fits do not depend on samples
        sizes = max(size, first or 0), first, seed, n_threads
        if not is_source(X):
            xs = self._check_views(X, reset=True)
            return survey_arrays(
                xs, validation.check_sample_weight(sample_weight, len(xs[0])), *sizes
            )
        stream = make_stream(X, sample_weight, lambda x, first: self._check_views(x, reset=first))
        return survey_stream(stream, *sizes)

    def _fitted_rows(self, survey: Survey) -> tuple[Rows, Rows]:
        """Some of the rows that are fitted, and all of them, with mean features as shifts: of all
        rows if these are columns, else of some."""
        rows = self._mapped(*survey.some())
        means = mean_features(rows) if any(self._feature_maps) else []
        shifts = [
            means[i] if mapped else survey.moments(i).mean.astype(rows.dtype)
            for i, mapped in enumerate(self._feature_maps)
        ]
        some = replace(rows, shifts=shifts)
        if survey.stream is not None:
            return some, self._read_rows(survey, some)
        if len(survey.xs[0]) == some.n:
            return some, some
        return some, self._mapped(survey.xs, survey.weight, shifts)

    def _read_rows(self, survey: Survey, some: Rows) -> Rows:
        """The rows of a stream, with the maps and shifts of some of them."""
        assert survey.stream is not None
        stream = survey.stream.prepared(lambda xs: [x for x, _ in self._views(xs)])
        unit = 1.0 if stream.weight is None else weight_unit(stream.weight)
        views = self._views([x[:1] for x in survey.some()[0]])
        xs, maps = [x[:0] for x, _ in views], [each for _, each in views]
        return replace(some, xs=xs, maps=maps, weight=None, weight_unit=unit, stream=stream)

    def _mapped(
        self, xs: list[Array], weight: Array | None, shifts: list[Array] | None = None
    ) -> Rows:
        """Rows with the fitted maps; without `shifts` with shifts of zero."""
        n_threads = _config.n_threads(self.n_jobs)
        views = self._storage().landmark_views(self._views(xs), n_threads)
        zeros = [np.zeros(width(x, each), dtype=x.dtype) for x, each in views]
        return self._rows(views, weight, zeros if shifts is None else shifts)

    def _storage(self) -> Storage:
        return Storage(self.cache, self._journal.memory_limit(self.memory_limit))

    def _fit_rows(self, pair: tuple[Rows, Rows], survey: Survey, random: Any) -> None:
        """`fit` for some rows and all rows, and parameters that have been checked."""
        some, rows = pair
        variance = total_variance(some)
        storage = self._storage()
        storage.check(rows)
        init = self._given_init(rows)
        self._objective = self._make_objective(some)
        some, rows = self._objective.begin(some), self._objective.begin(rows)
        history = History([], self._progress)
        samples = self._samples(rows, survey, storage)
        base = samples[0] if samples else self._whole(rows, storage, ALL_PASSES)
        automatic = self._automatic_starts and is_automatic(self) and base.stream is None
        hard = automatic and is_option(self.s_final, "hard")
        small = compressed(base, self._k, storage, hard) if automatic else None
        searched = base if small is None else small.rows
        history.left_out = 0.0 if small is None else small.left_out

        pool = searched if samples or small is not None else some
        seeding = seeding_rows(pool, self._k, random)
        features = seeding.features()
        critical_exponent = critical.of_rows(seeding, features)
        if self._journal.keeps:
            self._journal.begin(words_of_rows(survey, features, critical_exponent, variance))
        plan = self._plan(critical_exponent)
        history.unit = plan.unit
        if history.progress is not None and samples:
            history.progress.later = [*(each.n for each in samples[1:]), rows.n]

        def seed() -> Array:
            return self._initial_centroids(init, seeding, features, history, random)

        space = FeatureSpace(
            searched, variance, self._objective, seed, history, random, self._journal
        )
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
        self._publish(rows, some, run, end, plan)

    def _samples(self, rows: Rows, survey: Survey, storage: Storage) -> list[Rows]:
        """Samples of growing size, the first for the starts; none if these run on all rows."""
        if self.sample is None:
            return []
        samples = [
            self._objective.begin(self._mapped(*survey.some(size), rows.shifts))
            for size in survey.sizes(self._sample_size(survey.counted))
        ]
        return [storage.sample(samples[0]), *samples[1:]] if samples else []

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
            return min(n, automatic_sample_size(self._k))
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
        centroids, expected = np.array(centroids, dtype=np.float64), (self._k, width)
        if centroids.shape != expected:
            raise ValueError(
                f"init has shape {centroids.shape}, must be {expected}: (n_clusters, number of "
                "features that the rows are mapped to)."
            )
        if not np.isfinite(centroids).all():
            raise ValueError("init contains NaN or infinity, must be finite.")
        return centroids

    def _publish(self, rows: Rows, some: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        """Set the fitted attributes; warn if the run did not converge or centroids coincide."""
        alpha, self._alpha = run.rows.alpha, run.rows.alpha
        rows = replace(rows, alpha=alpha)

        def publish(labels: Array, nearest: Array) -> None:
            self._sink(self._without_noise(labels, nearest))

        final = evaluate(rows, run.theta, end.s, publish)
        self.cluster_centers_ = final.centers
        self.__dict__.pop("labels_", None)  # of an earlier fit
        if rows.stream is None:
            self.labels_ = self._sink.labels()
        self.inertia_ = final.inertia
        self.s_ = end.s
        objective = final.soft_sums.objective(end.s) + self._objective.penalty(
            alpha, rows.total_weight
        )
        self.objective_ = plan.unit * objective
        self.n_iter_ = run.passes
        self._shifts = rows.shifts
        self._cluster_weights = (final.hard_sums if plan.ends_hard else final.soft_sums).G
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
        warn_of_ending(ending, [*self._causes, few_rows(self._rows_name, some.xs, some.weight)])

    def _theta(self, rows: Rows) -> Array:
        """The fitted centroids, shifted like the features of the rows."""
        return np.asarray(self.cluster_centers_.astype(np.float64) - rows.shift)

    # ---- prediction ------------------------------------------------------------------------

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
        rows = rows if typical else replace(rows, eta=None)
        theta = self._theta(rows)
        sums, outputs = one_pass(rows, theta, s, want=want)
        farthest = outputs["distances"].max() if "distances" in want else 0.0
        validation.check_overflow(sums.hard + float(farthest), rows.dtype)
        return rows, theta, sums, outputs

    def _new_views(self, X: Any, sample_weight: Any) -> Iterator[tuple[list[Array], Array | None]]:
        """The checked views of new rows and their weights; of a source block by block."""

        def check(block: Any, first: bool = False) -> list[Array]:
            return self._check_views(block, reset=False)

        if is_source(X):
            yield from make_stream(X, sample_weight, check).blocks()
        else:
            xs = check(X)
            yield xs, validation.check_sample_weight(sample_weight, len(xs[0]))

    def _visit(self, X: Any, s: float, want: str, typical: bool = False) -> Array:
        """A result of a pass for each row."""
        found = [outputs[want] for *_, outputs in self._visits(X, s, (want,), typical=typical)]
        return found[0] if len(found) == 1 else np.concatenate(found)

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
        return self._visit(X, -math.inf, "labels")

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
        self._check_fitted()
        s = self.s_ if s is None else check_exponent(s)
        return self._visit(X, s, "memberships", typical=True)

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
        distances = self._visit(X, -math.inf, "distances")
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
        visits = self._visits(X, -math.inf, (), sample_weight)
        costs = (
            accurate_cost(rows, sums.hard, sums, theta, theta) for rows, theta, sums, _ in visits
        )
        return -sum(costs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

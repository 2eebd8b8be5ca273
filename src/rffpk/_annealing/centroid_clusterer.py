"""The base class of the estimators whose centroids are points in a feature space."""

from __future__ import annotations

import math
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rffpk import _config
from rffpk._annealing import critical, swaps
from rffpk._annealing.centroid_model import CentroidModel, mapped_views
from rffpk._annealing.centroids import coincidence, count_distinct
from rffpk._annealing.checkpoint import Journal, make_journal, words_of_rows
from rffpk._annealing.compression import compressed
from rffpk._annealing.ends import Cause, Ending, few_rows, warn_of_ending
from rffpk._annealing.evaluation import evaluate, finish
from rffpk._annealing.history import History, Record
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.parameters import Plan, is_automatic
from rffpk._annealing.primal import FeatureRun, FeatureSpace
from rffpk._annealing.schedule import Hard, Result
from rffpk._annealing.search import search
from rffpk._annealing.seeding import Parts, seed_centroids, seeding_rows
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.collections import active_client, is_dask, sources_of
from rffpk._data.messages import warn
from rffpk._data.partitions import Partitions, make_partitions
from rffpk._data.passes import mean_features, one_pass, some_features, total_variance
from rffpk._data.progress import Progress, observed, reporting
from rffpk._data.rows import Rows, weight_unit, width
from rffpk._data.sinks import LabelSink, check_labels_to, label_sink
from rffpk._data.sparse_rows import Columns, SparseRows
from rffpk._data.store import ALL_PASSES, LAST_PASSES, Storage, has_maps
from rffpk._data.streams import is_source, make_stream
from rffpk._data.survey import Survey, survey_arrays, survey_stream
from rffpk._data.validation import Auto, is_option

Init = Literal["k-means++", "random", "k-means"]

# Starts run on a sample of this many rows, or of this many for each cluster if that is more.
_SAMPLE_ROWS, _ROWS_A_CLUSTER = 20_000, 100


# Attributes that checks of rows set in fit and read later.
_OF_CHECKS = {
    *("n_features_in_", "feature_names_in_", "_in_float64", "_view_columns", "_view_names"),
    *("_n_views", "_n_kernels", "_widths"),
}


def automatic_sample_size(k: int) -> int:
    """The number of rows that starts for k clusters run on, where there are as many."""
    return max(_SAMPLE_ROWS, _ROWS_A_CLUSTER * k)


def _prepared(maps: list[Any], xs: list[Array]) -> list[Array]:
    return [x for x, _ in mapped_views(xs, maps)]


class CentroidClusterer(CentroidModel):
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
    verbose: int
    s_final: Hard | float = "hard"
    sample: Auto | int | None = None
    cache: Auto | bool = False
    memory_limit: int | None = None
    store_memberships: bool = False
    # what a fit sets
    labels_: NDArray[np.int32]
    inertia_: float
    objective_: float
    n_iter_: int
    sample_size_: int
    history_: list[Record]
    memberships_: Array
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    _sink: LabelSink  # in fit
    # in fit to rows of which some lack views: the share that has each view
    _coverage: NDArray[np.float64] | None
    _progress: Progress | None = None  # while rows are fitted, and ...
    _journal: Journal
    _rows_name = "X"  # what warnings call the rows that are clustered
    _automatic_starts = False  # whether starts may differ in kind

    # ---- what subclasses define -------------------------------------------------------------

    def _check_parameters(self) -> None:
        also = "an array or a callable"
        validation.check_search_parameters(self, get_args(Init), also)

    def _fit_maps(self, survey: Survey, random: Any) -> list[Any]:
        """The fitted feature map of each view, None if the features are the columns themselves."""
        return [None]

    def _survey_rows(self) -> int:
        """The number of rows that maps are fitted on, at most."""
        return automatic_sample_size(self._k)

    def _make_objective(self, rows: Rows) -> PowerMean:
        return PowerMean()

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
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
            Finite numbers. A list of views, arrays of shape (n_samples, n_features_l) with the same
            rows, is for classes with the parameter `kernels` only. C-ordered float32 and float64
            arrays, memory-mapped ones too, are read in place; anything else is converted (integers
            and float16 to float64). Rows that are not in memory are a source, a function without
            arguments that returns an iterator of blocks of rows (`rffpk.sources`), or a list of
            such for views; they are read several times, and `labels_` is not set. So it is with
            arrays and frames of Dask, or a list of such, whose partitions stay where they are.
            X, or some or all views of a list, may be sparse: CSR of float32 or float64 is read in
            place, other formats are converted to it.
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
        random = validation.check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            self._k, self._journal = int(self.n_clusters), journal or Journal()
            self._journal.open(self, random)
            survey = self._survey(X, sample_weight, random)
            self._k = validation.check_n_clusters(self.n_clusters, survey.n, survey.counted)
            self._causes = causes or [few_rows("X", *survey.some())]
            self._coverage = survey.coverage(self._k) if self.allow_missing_views else None
            self._feature_maps = self._fit_maps(survey, random)
            self._progress, keep = progress, not (is_dask(X) or is_source(X))
            with label_sink(labels_to, survey.n, keep) as self._sink:
                self._fit_rows(self._fitted_rows(survey), survey, random)
            self._journal.remove()
            del self._causes, self._coverage, self._sink, self._progress, self._journal
        return self

    def _survey(self, X: Any, sample_weight: Any, random: Any) -> Survey:
        """What is known of all rows; those of a source are read once."""
        size, n_threads = self._survey_rows(), _config.n_threads(self.n_jobs)
        first = None if self.sample is None else self._sample_size(2**62)
        seed = deepcopy(random).randint(2**31 - 1)  # so that small fits do not depend on samples
        sizes = max(size, first or 0), first, seed, n_threads
        if is_dask(X):
            if (client := active_client()) is not None:
                return survey_stream(self._partitions(X, sample_weight, client), *sizes)
            X = sources_of(X)
        if not is_source(X):
            xs = self._check_views(X, reset=True)
            return survey_arrays(
                xs, validation.check_sample_weight(sample_weight, len(xs[0]), X), *sizes
            )
        stream = make_stream(X, sample_weight, lambda x, first: self._check_views(x, reset=first))
        return survey_stream(stream, *sizes)

    def _partitions(self, X: Any, sample_weight: Any, client: Any) -> Partitions:
        """The rows of a collection of Dask on the workers of a cluster."""
        stream = make_partitions(X, sample_weight, client, self.n_jobs)
        head = self._check_views(stream.head, reset=True)
        reader, kept = copy(self), {*self.get_params(deep=False), *_OF_CHECKS}
        for name in vars(self).keys() - kept:  # of an earlier fit, or what a fit adds later
            delattr(reader, name)
        return replace(stream, head=head, dtype=head[0].dtype, check=reader._check_views)

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
        stream = survey.stream.prepared(partial(_prepared, self._feature_maps))
        unit = 1.0 if stream.weight is None else weight_unit(stream.weight)
        views = self._views([x[:1] for x in survey.some()[0]])
        xs, maps = [x[:0] for x, _ in views], [each for _, each in views]
        return replace(
            some, xs=xs, maps=maps, weight=None, weight_unit=unit, stream=stream, present=None
        )

    def _mapped(
        self, xs: list[Array], weight: Array | None, shifts: list[Array] | None = None
    ) -> Rows:
        """Rows in a fit with the fitted maps; without `shifts` with shifts of zero."""
        n_threads = _config.n_threads(self.n_jobs)
        views = self._storage().landmark_views(self._views(xs), n_threads)
        zeros = [np.zeros(width(x, each), dtype=x.dtype) for x, each in views]
        rows = self._rows(views, weight, zeros if shifts is None else shifts)
        return rows.covered(self._coverage)

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
        features = some_features(seeding)
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
        samples = [self._objective.begin(each) for each in self._drawn(rows, survey)]
        if survey.stream is not None and not samples:  # it has many rows of weight zero
            samples = [self._objective.begin(self._mapped(*survey.some(), rows.shifts))]
        return [storage.sample(samples[0]), *samples[1:]] if samples else []

    def _drawn(self, rows: Rows, survey: Survey) -> list[Rows]:
        """Random rows of growing number, in proportion to their weights; none if the first would be
        all."""
        sizes = survey.sizes(self._sample_size(survey.counted))
        return [self._mapped(*survey.some(size), rows.shifts) for size in sizes]

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

    def _initial_centroids(
        self, init: Any, seeding: Rows, features: Columns, history: History, random: Any
    ) -> Array:
        """Shifted initial centroids (k, F), chosen from the seeding rows unless they are given."""
        k, width = self._k, features.shape[1]
        if isinstance(init, str):
            history.add_seeding(seeding.n)
            parts = None if seeding.present is None else Parts(seeding, features)
            weight, n_threads = seeding.weight, seeding.n_threads
            drawn = seed_centroids(features, weight, k, init, n_threads, random, parts)
            return drawn - seeding.shift if isinstance(features, SparseRows) else drawn
        if callable(init):
            history.add_seeding(seeding.n)
            given = (
                features.matrix if isinstance(features, SparseRows) else features + seeding.shift
            )
            drawn = init(given, k, random_state=random)
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

    def _publish(self, rows: Rows, some: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        """Set the fitted attributes; warn if the run did not converge or centroids coincide."""
        alpha, self._alpha = run.rows.alpha, run.rows.alpha
        rows = replace(rows, alpha=alpha)

        def publish(block: Rows, labels: Array, nearest: Array) -> None:
            self._sink(self._without_noise(block, labels, nearest))

        elsewhere = isinstance(rows.stream, Partitions)
        final = evaluate(rows, run.theta, end.s, None if elsewhere else publish)
        if elsewhere and self._sink.wanted:
            plain, wanted = replace(rows, eta=None), ("labels", "nearest")
            publish(plain, **one_pass(plain, final.theta, -math.inf, want=wanted)[1])
        self.cluster_centers_ = final.centers
        self.__dict__.pop("labels_", None)  # of an earlier fit
        if self._sink.keeps:
            self.labels_ = self._sink.labels()
        self.inertia_ = final.inertia
        self.s_ = end.s
        objective = final.soft_sums.objective(end.s) + self._objective.penalty(
            alpha, rows.total_weight
        )
        self.objective_ = plan.unit * objective
        self.n_iter_ = run.passes
        self.__dict__.pop("memberships_", None)  # of an earlier fit
        if self.store_memberships:
            _, outputs = one_pass(rows, final.theta, end.s, want=("memberships",))
            self.memberships_ = outputs["memberships"]
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

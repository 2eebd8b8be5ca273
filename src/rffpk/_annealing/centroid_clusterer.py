"""The common skeleton: validation, starts, annealing and the fitted attributes."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing import primal
from rffpk._annealing.parameters import given_starts
from rffpk._annealing.primal import Run, sample_critical_exponent
from rffpk._annealing.schedule import Result, Schedule, Start
from rffpk._annealing.search import search
from rffpk._annealing.seeding import nested_samples, seed_centers, seed_rows
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, Sums, accurate_cost, make_rows, one_pass, total_variance
from rffpk._data.validation import is_word
from rffpk.feature_maps import RandomFourierFeatures

INITS = ("k-means++", "random", "k-means")


class PowerMeanClusterer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Base of the estimators that minimise a power mean of squared distances to centroids.

    A subclass checks its own parameters, says how rows become features and how s falls.
    """

    n_clusters: int
    init: Any
    n_init: Any
    max_iter: int
    tol: float
    random_state: Any
    n_jobs: int | None
    verbose: int
    _auto_starts = False  # whether `n_init` may be "auto"

    # ---- what subclasses decide -------------------------------------------------------------

    def _check_parameters(self) -> None:
        validation.check_int(self.n_clusters, "n_clusters", 1)
        if isinstance(self.init, str):
            validation.check_choice(self.init, "init", INITS, also="an array or a callable")
        if not (self._auto_starts and is_word(self.n_init, "auto")):
            validation.check_int(self.n_init, "n_init", 1)
        validation.check_int(self.max_iter, "max_iter", 1)
        validation.check_real(self.tol, "tol", 0)
        validation.check_n_jobs(self.n_jobs)

    def _check_views(self, X: Any, reset: bool) -> list[Array]:
        """The views of X, of one dtype, checked: X itself where there is one."""
        return [validation.check_rows(self, X, reset=reset)]

    def _fit_maps(self, xs: list[Array], weight: Array | None, random: Any) -> None:
        """Fit what turns rows into features; nothing where the features are the rows."""

    def _maps(self) -> list[RandomFourierFeatures | None]:
        """The fitted map of each view, None for identity features."""
        return [None]

    def _begin(self, rows: Rows) -> Rows:
        """The rows with the state that annealing starts from, beyond centroids."""
        return rows

    def _keep_state(self, rows: Rows) -> None:
        """Set what else has been learned, from the rows of the best run."""

    def _with_state(self, rows: Rows) -> Rows:
        """New rows with what has been learned."""
        return rows

    def _reweigh(self, rows: Rows, sums: Sums, s: float) -> Rows:
        """The rows after a pass, with new view weights where those are learned."""
        return rows

    def _without_noise(self, labels: Array, nearest: Array) -> Array:
        """The labels to publish, which may leave out rows by their squared distance."""
        return labels

    def _penalty(self, rows: Rows) -> float:
        """What the objective has beside sum M_s."""
        return 0.0

    def _check_memory(self, rows: Rows) -> None:
        """Refuse what would not fit into memory, before any work."""

    def _working_rows(self, rows: Rows, annealed: bool) -> Rows:
        """All rows, as passes should visit them: `annealed`, or after a sample was."""
        return rows

    def _working_sample(self, sample: Rows) -> Rows:
        """A sample, as the passes of the starts should visit it."""
        return sample

    def _sample_size(self, n: int) -> int:
        """How many of n rows starts run on."""
        return n

    def _schedule(self, critical: float) -> Schedule:
        """The schedule, which may depend on the critical exponent."""
        raise NotImplementedError

    def _starts(self, schedule: Schedule, critical: float) -> list[Start]:
        """What `init` and `n_init` ask for."""
        return given_starts(schedule, self.init, self.n_init)

    def _swaps(self) -> int:
        """Failed trials in a row that end the swaps of centroids; 0: none are tried."""
        return 0

    def _on_merger(self, critical: float) -> str:
        """What to add to the warning that centroids coincide."""
        return ""

    def _objective_unit(self, s: float) -> float:
        """What the objective sum M_s is reported in multiples of."""
        return 1.0

    # ---- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or a list of such views, where several are taken. Finite numbers. C-ordered float32 and
            float64 arrays, memory-mapped ones too, are read in place; anything else is converted
            (integers and float16 to float64).
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each. A row of weight zero has no influence.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or sample_weight is not as described; nothing is changed then.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` ended a run, or centroids coincide at the end.
        """
        self._check_parameters()
        random = check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            xs = self._check_views(X, reset=True)
            weight = validation.check_sample_weight(sample_weight, len(xs[0]))
            k = validation.check_n_clusters(self.n_clusters, len(xs[0]), weight)
            self._fit_rows(xs, weight, k, random)
        return self

    def _fit_rows(self, xs: list[Array], weight: Array | None, k: int, random: Any) -> None:
        """`fit` for rows and parameters that have been checked."""
        self._fit_maps(xs, weight, random)
        rows = self._rows(xs, weight)
        variance = total_variance(rows)
        self._check_memory(rows)
        self._check_init(len(rows.shift))
        rows = self._begin(rows)
        self.history_: list[dict[str, Any]] = []
        counted = rows.n if rows.weight is None else int(np.count_nonzero(rows.weight))
        size = self._sample_size(counted)
        samples = nested_samples(rows, size, k, random) if size < counted else []
        base = self._working_sample(samples[0]) if samples else self._working_rows(rows, True)

        def new_run(theta: Array, number: int) -> Run:
            unit = self._objective_unit(schedule.s0)
            return Run(
                base, theta, variance, self.history_, random, self._reweigh, self._penalty,
                self.verbose, unit, start=number,
            )  # fmt: skip

        looked_at = seed_rows(base, k, random)
        features = looked_at.features()
        critical = sample_critical_exponent(looked_at, features)
        schedule = self._schedule(critical)

        def seed() -> Array:
            return self._initial_centers(looked_at, features, random)

        run, result = search(self._starts(schedule, critical), seed, new_run, self._swaps())
        if samples:
            self._finish(run, [*samples[1:], self._working_rows(rows, False)], result, schedule)
        self.sample_size_ = base.n
        self._publish(rows, run, result, critical)

    def _finish(self, run: Run, levels: list[Rows], result: Result, schedule: Schedule) -> None:
        """Passes over larger and larger samples and then over all rows, at the end's exponent."""
        hard = math.isinf(schedule.s_final) and schedule.stop == "annealed"
        s, stage = (-math.inf, "hard") if hard else (result.s, "settle")
        for rows in levels:
            run.rows = replace(rows, alpha=run.rows.alpha)
            # the centroids of a sample are no more precise than this
            coarse = 0.1 * math.sqrt(self.n_clusters / rows.n) if rows is not levels[-1] else 0.0
            rests = run.settle(stage, s, max(schedule.tol, coarse), schedule.max_iter)
        # a soft end that the sample did not reach has not been reached
        result.converged = rests and (hard or result.converged)

    def _rows(
        self, xs: list[Array], weight: Array | None = None, shifts: list[Array] | None = None
    ) -> Rows:
        maps, dtype = self._maps(), xs[0].dtype
        omegas = [m and m.frequencies_.astype(dtype, copy=False) for m in maps]
        structures = [m and m.structure_ for m in maps]
        n_threads = _config.n_threads(self.n_jobs)
        return make_rows(xs, omegas, weight, n_threads, shifts, structures)

    def _initial_centers(self, looked_at: Rows, features: Array, random: Any) -> Array:
        """Shifted initial centroids (k, F); logs how many rows were looked at."""
        k, width = self.n_clusters, features.shape[1]
        if isinstance(self.init, str):
            self.history_.append({"stage": "seeding", "rows": looked_at.n})
            return seed_centers(features, looked_at.weight, k, self.init, random)
        centers = self.init
        if callable(centers):
            self.history_.append({"stage": "seeding", "rows": looked_at.n})
            centers = centers(features + looked_at.shift, k, random_state=random)
        return self._checked_centers(centers, width) - looked_at.shift

    def _check_init(self, width: int) -> None:
        """Refuse an array of initial centres that is none."""
        if not isinstance(self.init, str) and not callable(self.init):
            self._checked_centers(self.init, width)

    def _checked_centers(self, centers: Any, width: int) -> Array:
        centers, expected = np.array(centers, dtype=np.float64), (self.n_clusters, width)
        if centers.shape != expected:
            raise ValueError(
                f"init has shape {centers.shape}, must be {expected}: (n_clusters, number of "
                "features that the rows are mapped to)."
            )
        if not np.isfinite(centers).all():
            raise ValueError("init contains NaN or infinity, must be finite.")
        return centers

    def _publish(self, rows: Rows, run: Run, result: Result, critical: float) -> None:
        """Set the fitted attributes; warn of what did not go well."""
        rows = replace(rows, alpha=run.rows.alpha)
        self._keep_state(rows)
        end = _evaluate(rows, run.theta, result.s)
        theta, plain = end.theta, replace(rows, eta=None)
        self.cluster_centers_ = end.centers
        self.labels_ = self._without_noise(end.labels, end.nearest)
        quick = float((end.hard_sums.view_costs() @ rows.alpha).sum())
        means = end.hard_sums.centers(theta, rows.dtype)
        self.inertia_ = accurate_cost(plain, quick, end.hard_sums, means, end.labels)
        self.s_ = result.s
        objective = end.soft_sums.objective(result.s) + self._penalty(rows)
        self.objective_ = self._objective_unit(result.s) * objective
        self.n_iter_ = run.passes
        self._shifts = rows.shifts
        self._n_features_out = self.n_clusters
        if not result.converged:
            warnings.warn(
                f"max_iter={self.max_iter} passes ended the run before it converged.",
                ConvergenceWarning,
                stacklevel=4,
            )
        cost = end.hard_sums.floor / rows.total_weight
        close_by = primal.coincidence(cost, run.variance, rows.dtype)
        distinct = primal.count_distinct(rows.scaled(theta), close_by)
        if distinct < self.n_clusters:
            warnings.warn(
                f"{distinct} of n_clusters={self.n_clusters} centroids are distinct: X has no more "
                f"distinct rows, or centroids merged.{self._on_merger(critical)}",
                ConvergenceWarning,
                stacklevel=4,
            )

    # ---- using ------------------------------------------------------------------------------

    def _visit(
        self,
        X: Any,
        s: float,
        want: tuple[str, ...],
        sample_weight: Any = None,
        typical: bool = False,
    ) -> Any:
        """One pass over new rows at the fitted centroids, plain distances unless `typical`."""
        check_is_fitted(self)
        xs = self._check_views(X, reset=False)
        weight = validation.check_sample_weight(sample_weight, len(xs[0]))
        shifts = [shift.astype(xs[0].dtype) for shift in self._shifts]
        rows = self._with_state(self._rows(xs, weight, shifts))
        rows = rows if typical else replace(rows, eta=None)
        theta = self.cluster_centers_.astype(np.float64) - rows.shift
        sums, outputs = one_pass(rows, theta, s, want=want)
        farthest = outputs["distances"].max() if "distances" in want else 0.0
        validation.check_overflow(sums.floor + float(farthest), rows.dtype)
        return rows, theta, sums, outputs

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Label each row with its nearest centroid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or what `fit` takes

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
        """
        return self._visit(X, -math.inf, ("labels",))[-1]["labels"]

    def predict_proba(self, X: Any) -> Array:
        """Memberships of the rows in the clusters at the exponent `s_`.

        u_ij = d_ij^s / sum_l d_il^s with squared distances d, or with what typicality makes of
        them: the memberships of fuzzy c-means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or what `fit` takes

        Returns
        -------
        memberships : ndarray of shape (n_samples, n_clusters)
            In [0, 1]; rows sum to one.
        """
        check_is_fitted(self)
        return self._visit(X, self.s_, ("memberships",), typical=True)[-1]["memberships"]

    def transform(self, X: Any) -> Array:
        """Euclidean distances of the rows to the centroids, in feature space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or what `fit` takes

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the dtype of X. Their squares are precise to a few eps of the squared distance from
            the mean of the rows that were fitted.
        """
        distances = self._visit(X, -math.inf, ("distances",))[-1]["distances"]
        return np.sqrt(distances, out=distances)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances of the rows to their nearest centroids.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in_), or what `fit` takes
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
            <= 0; the higher the better.
        """
        rows, theta, sums, outputs = self._visit(X, -math.inf, ("labels",), sample_weight)
        return -accurate_cost(rows, sums.floor, sums, theta, outputs["labels"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(frozen=True)
class _End:
    """A run's end, seen through the centroids as they are published."""

    centers: Array  # (k, F), the dtype of X
    theta: Array  # the same, shifted, float64
    labels: NDArray[np.int32]
    nearest: Array
    soft_sums: Sums
    hard_sums: Sums


def _evaluate(rows: Rows, theta: Array, s: float) -> _End:
    centers = (theta + rows.shift).astype(rows.dtype)
    theta = centers.astype(np.float64) - rows.shift
    soft_sums, _ = one_pass(rows, theta, s)
    plain = replace(rows, eta=None)
    hard_sums, outputs = one_pass(plain, theta, -math.inf, want=("labels", "nearest"))
    return _End(centers, theta, outputs["labels"], outputs["nearest"], soft_sums, hard_sums)

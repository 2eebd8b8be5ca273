"""The base class of the estimators whose centroids are weights of the fitted rows."""

from __future__ import annotations

import math
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing import critical
from rffpk._annealing.dual import KernelRun, KernelSpace
from rffpk._annealing.ends import Ending, few_rows, warn_if_indefinite, warn_of_ending
from rffpk._annealing.history import History
from rffpk._annealing.kernel_components import kernel_components, search_components
from rffpk._annealing.kernel_products import Products
from rffpk._annealing.kernel_seeding import given_weights, initial_weights, weights_of_views
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.parameters import Plan, check_exponent, is_automatic
from rffpk._annealing.schedule import Result, Start
from rffpk._annealing.search import search
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.decompositions import ritz_values
from rffpk._data.estimator import Estimator
from rffpk._data.messages import warn
from rffpk._data.presence import coverage_of, has_view, present_bits
from rffpk._data.progress import Progress, observed, reporting
from rffpk._data.rules import hard_weights, positive, power_weights
from rffpk._data.store import check_cache, check_fits
from rffpk._data.tiles import by_blocks
from rffpk._data.validation import Auto, is_option
from rffpk._data.views import check_views
from rffpk.kernels import PRECOMPUTED, FittedKernel, matched

KernelInit = Literal["k-means++", "random", "k-means", "spectral"]


class KernelClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Base of the estimators whose centroids are weights of the fitted rows.

    A subclass defines which kernels are used, what is minimised, and which starts are run.
    """

    n_clusters: int
    init: Any
    n_init: Auto | int
    max_iter: int
    tol: float
    cache: Auto | bool
    memory_limit: int | None
    store_memberships: bool
    random_state: Any
    n_jobs: int | None
    verbose: int
    allow_missing_views: bool = False  # a parameter of classes of several kernels
    # in fit: (L, n), 1 where a row has a view, and the shares of such rows; None: all have all
    _present: Array | None
    _coverage: Array | None
    _takes_sparse = True
    _several = False  # whether `fit` accepts several views
    _space: type[KernelSpace] = KernelSpace
    _soft = True  # whether starts have soft steps, before which centroids may be moved at random

    # ---- what subclasses define -------------------------------------------------------------

    def _check_parameters(self) -> None:
        validation.check_search_parameters(self, get_args(KernelInit), "an array")
        check_cache(self.cache, self.memory_limit)

    def _kernel_parameter(self) -> Any:
        """The argument `kernels` of `matched`."""
        raise NotImplementedError

    def _make_objective(self) -> PowerMean:
        return PowerMean()

    def _starts(self, critical: float) -> list[Start]:
        """The starts, which may depend on the critical exponent."""
        raise NotImplementedError

    def _plan_in_components(self, k: int, critical: float) -> Plan:
        """The starts and the number of swaps on the principal components of a kernel."""
        return Plan(self._starts(critical), critical=critical)

    # ---- fitting ----------------------------------------------------------------------------

    @observed
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
            Finite numbers; with precomputed kernels a kernel matrix of shape (n_samples,
            n_samples). A list of views, arrays of shape (n_samples, n_features_l) with the same
            rows, some or all of them sparse, or of kernel matrices, is for classes with the
            parameter `kernels` only. Sparse rows are for the kernels "rbf", "linear", "polynomial",
            "cosine", "sigmoid" and "laplacian".
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each. A weight of two minimises the same as a
            repeated row, but draws differ where rows are repeated, so that another optimum may be
            found. Costs are precise to eps times the largest weight.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or sample_weight is not as described; nothing is changed then.
        MemoryError
            If ``cache=True`` and the kernels take more than `memory_limit`.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` ended the best start before it converged, or centroids coincide at the
            end, or are so near each other that memberships are nearly equal.
        UserWarning
            If a kernel has a clearly negative eigenvalue: negative squared distances then count as
            0 while fitting.
        """
        with reporting(self, X) as progress:
            return self._fit(X, sample_weight, progress)

    def _fit(self, X: Any, sample_weight: Any, progress: Progress) -> Self:
        self._check_parameters()
        random = validation.check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            xs = check_views(self, X, reset=True)
            if self._n_views and not self._several:
                raise ValueError(f"X is a list of {len(xs)} views, must be one array.")
            n, weight = len(xs[0]), validation.check_sample_weight(sample_weight, len(xs[0]), X)
            counted = n if weight is None else int(np.count_nonzero(weight))
            k = validation.check_n_clusters(self.n_clusters, n, counted)
            given = None if isinstance(self.init, str) else given_weights(self.init, k, n)
            self._present, self._coverage = self._missing(xs, weight, k)
            products = self._products(xs, weight, random)
            run, end, plan = self._search(products, k, weight, given, History([], progress), random)
            self._publish(xs, run, end)
            self._warn(xs, run, end, plan)
            for centered in self._kernels:
                centered.kernel.drop_matrix()
            del self._present, self._coverage
        return self

    def _missing(
        self, xs: list[Array], weight: Array | None, k: int
    ) -> tuple[Array | None, Array | None]:
        """Which views rows have, (L, n), and the share of the rows that has each; None twice where
        all rows have all."""
        coverage = coverage_of(xs, weight, k) if self.allow_missing_views else None
        if coverage is None:
            return None, None
        if is_option(self.init, "spectral"):
            raise ValueError("init == 'spectral' needs all views of all rows.")
        return np.stack([has_view(x) for x in xs]).astype(np.float64), coverage

    def _products(self, xs: list[Array], weight: Array | None, random: Any) -> Products:
        xs, specs = matched(xs, self._kernel_parameter(), not self._n_views)
        n_threads = _config.n_threads(self.n_jobs)
        kernels = [
            FittedKernel(x, spec, weight=p, random=random, n_threads=n_threads, differences=True)
            for (x, p), spec in zip((_filled(x, weight) for x in xs), specs)
        ]
        needed = Products.stored_bytes(kernels)
        self.cache_ = check_fits(needed, "the kernel matrices", self.cache, self.memory_limit)
        products = Products(kernels, n_threads, self.cache_)
        self._kernels = products.kernels
        for number, kernel in enumerate(kernels):

            def multiply(v: Array, number: int = number) -> Array:
                return np.asarray(products.multiply(v[None])[number, 0], dtype=np.float64)

            if not kernel.definite:
                values = ritz_values(multiply, kernel.n)
                products.definite &= not warn_if_indefinite(f"kernel {number}", values)
        return products

    def _search(
        self,
        products: Products,
        k: int,
        weight: Array | None,
        given: Array | None,
        history: History,
        random: Any,
    ) -> tuple[KernelRun, Result, Plan]:
        """The best run, its end, and the plan, for products and parameters that have been
        checked."""
        unit = 1.0
        if weight is not None:  # scaled to the range of float32
            unit = 2.0 ** math.frexp(float(weight.max()))[1]
            weight = weight / unit

        def seed(space: KernelSpace) -> Array:
            return initial_weights(space, k, self.init) if given is None else given

        present = self._present
        if given is not None and present is not None:
            given = weights_of_views(given, present)

        history.unit = unit
        objective = self._make_objective()
        single = self._soft and len(products.kernels) == 1 and products.definite
        small = single and self._searches_components()
        rows = kernel_components(products, weight, k, self._fits) if small else None
        if rows is not None:
            exponent = critical.of_rows(rows, rows.xs[0])
            plan = self._plan_in_components(k, exponent)
            space = KernelSpace(products, weight, objective, seed, history, random, 0)
            run, end = search_components(rows, space, k, plan)
            self.history_ = history.records
            return run, end, plan
        n_directions = 2 * k if self._soft else 0
        space = self._space(
            products, weight, objective, seed, history, random, n_directions, present
        )
        exponent = space.critical_exponent() if self._soft else 0.0
        plan = Plan(self._starts(exponent), critical=exponent)
        run, end, _ = search(space, plan.starts)
        self.history_ = history.records
        return run, end, plan

    def _fits(self, needed: int) -> bool:
        return check_fits(needed, "components", "auto", self.memory_limit)

    def _searches_components(self) -> bool:
        """Whether starts on the principal components of a kernel differ from those with the kernel
        itself by little: those of kinds of their own, which end with the hard rule."""
        return is_automatic(self) and is_option(self.s_final, "hard")

    def _publish(self, xs: list[Array], run: KernelRun, end: Result) -> None:
        """Set the fitted attributes."""
        unit = run.space.history.unit
        self.dual_coef_, self._alpha, self._squares = run.W, run.alpha, run.squares
        self.labels_ = self._labels(xs)
        self.objective_ = unit * run.cost(end.s)
        self.inertia_ = unit * run.inertia(self.labels_)
        self.s_, self.n_iter_ = end.s, run.passes
        self._n_features_out = run.k
        self.__dict__.pop("memberships_", None)  # of an earlier fit
        if self.store_memberships:
            given = any(centered.kernel.precomputed for centered in self._kernels)
            d = self._distances(xs, not given)
            if given:  # k(x, x) is the diagonal
                d += (run.alpha @ run.space.products.diagonals)[:, None]
            self.memberships_ = _memberships(np.maximum(d, 0), end.s, xs[0].dtype)

    def _warn(self, xs: list[Array], run: KernelRun, end: Result, plan: Plan) -> None:
        """Warn if the run did not converge or centroids coincide."""
        if not end.converged:
            warn(
                f"max_iter={self.max_iter} passes ended the run before it converged.",
                ConvergenceWarning,
            )
        distinct, s = run.count_distinct(run.hard_cost()), -math.inf if plan.ends_hard else end.s
        ending = Ending(run.k, distinct, s, *run.costs(s), plan.critical, plan.lowered_by)
        if run.space.products.definite:  # else that warning has named the cause
            warn_of_ending(ending, [few_rows("X", xs, run.space.weight)])

    # ---- prediction ------------------------------------------------------------------------

    def _visit(self, X: Any, caller: str) -> tuple[Array, Any]:
        """Squared distances (n, k) of new rows to the centroids, and the dtype of X."""
        check_is_fitted(self)
        xs = check_views(self, X, reset=False)
        if any(centered.kernel.precomputed for centered in self._kernels):
            raise ValueError(
                f"{caller} needs k(x, x), which precomputed kernels of new rows do not contain; of "
                "the fitted rows, inertia_ is minus the score, and store_memberships=True keeps "
                "the memberships."
            )
        with _config.one_blas_thread():
            return np.maximum(self._distances(xs, True), 0), xs[0].dtype

    def _labels(self, xs: list[Array]) -> NDArray[np.int32]:
        """The nearest centroids, the first of equals, of rows that were fitted and of new ones."""
        return self._distances(xs, False).argmin(axis=1).astype(np.int32)

    def _distances(self, xs: list[Array], whole: bool) -> Array:
        """Squared distances (n, k); `whole`: with k(x, x), which does not change their order."""
        if self.dual_coef_.ndim == 3 or (self._n_views and present_bits(xs) is not None):
            return self._distances_of_views(xs, whole)
        coef, squares = self.dual_coef_.T.astype(np.float64), self._alpha @ self._squares

        def distances(parts: list[Array]) -> Array:
            views = parts if self._n_views else parts * len(self._kernels)
            total = np.tile(squares, (len(parts[0]), 1))
            for alpha, centered, x in zip(self._alpha, self._kernels, views):
                block, diagonal = centered.cross(x)
                total -= 2 * alpha * (block @ coef)
                if whole and diagonal is not None:
                    total += alpha * diagonal[:, None]
            return total

        return by_blocks(distances, xs, self._kernels[0].n, _config.n_threads(self.n_jobs))

    def _distances_of_views(self, xs: list[Array], whole: bool) -> Array:
        """The same of rows, fitted or new ones, that lack views: over those that a row has."""
        coefs = np.broadcast_to(self.dual_coef_, (len(xs), *self.dual_coef_.shape[-2:]))

        def distances(parts: list[Array]) -> Array:
            total, weights = np.zeros((len(parts[0]), coefs.shape[1])), np.zeros(len(parts[0]))
            each = zip(positive(self._alpha), self._kernels, coefs, self._squares, parts)
            for alpha, centered, coef, squares, x in each:
                there = has_view(x)
                filled = x if there.all() else np.where(there[:, None], x, centered.kernel.x[0])
                block, diagonal = centered.cross(filled)
                gaps = squares - 2 * (block @ coef.T.astype(np.float64))
                if whole and diagonal is not None:
                    gaps += diagonal[:, None]
                total += np.where(there[:, None], alpha * gaps, 0)
                weights += alpha * there
            return total / weights[:, None]

        return by_blocks(distances, xs, self._kernels[0].n, _config.n_threads(self.n_jobs))

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Label each row with its nearest centroid.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`; with precomputed kernels those between the new rows and the fitted ones, of
            shape (n_samples, n_samples_fit).

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            Indices of the clusters.
        """
        check_is_fitted(self)
        xs = check_views(self, X, reset=False)
        with _config.one_blas_thread():
            return self._labels(xs)

    def predict_proba(self, X: Any, *, s: float | None = None) -> Array:
        """Memberships of the rows in the clusters, at the exponent `s_` or any other.

        u_ij = d_ij^s / sum_l d_il^s with the squared distances d_ij of rows to centroids; at minus
        infinity, one for the nearest centroid and zero for the others.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`, with kernels that are not precomputed.
        s : float, optional
            Exponent, at most -0.2, by default `s_`. The nearer it is to zero, the softer are the
            memberships; minus infinity gives 0 and 1.

        Returns
        -------
        memberships : ndarray of shape (n_samples, n_clusters)
            In [0, 1], in the dtype of X; rows sum to one.

        Raises
        ------
        ValueError
            If the kernels are precomputed: k(x, x) of the rows is then not known.
        """
        check_is_fitted(self)
        s = self.s_ if s is None else check_exponent(s)
        d, dtype = self._visit(X, "predict_proba")
        return _memberships(d, s, dtype)

    def transform(self, X: Any) -> Array:
        """Distances of the rows to the centroids, in the space of the kernel.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`, with kernels that are not precomputed.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the dtype of X. If there are several kernels, their squared distances are combined
            with `kernel_weights_`.

        Raises
        ------
        ValueError
            If the kernels are precomputed: k(x, x) of the rows is then not known.
        """
        d, dtype = self._visit(X, "transform")
        return np.sqrt(d).astype(dtype, copy=False)

    def medoids(self, X: Any) -> NDArray[np.intp]:
        """The row of X that is nearest to each centroid: an example of each cluster.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`, with kernels that are not precomputed.

        Returns
        -------
        indices : ndarray of shape (n_clusters,)
            Indices of rows; the first of equals. O(n_samples n_clusters) memory.

        Raises
        ------
        ValueError
            If the kernels are precomputed: k(x, x) of the rows is then not known.
        """
        return np.asarray(self._visit(X, "medoids")[0]).argmin(axis=0)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances of the rows to their nearest centroids.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
            As in `fit`, with kernels that are not precomputed.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each.

        Returns
        -------
        score : float
            At most 0; the higher the better.

        Raises
        ------
        ValueError
            If the kernels are precomputed: k(x, x) of the rows is then not known.
        """
        least = self._visit(X, "score")[0].min(axis=1)
        weight = validation.check_sample_weight(sample_weight, len(least), X)
        return -float(least.sum() if weight is None else weight @ least)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_option(self._kernel_parameter(), PRECOMPUTED)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _memberships(squares: Array, s: float, dtype: Any) -> Array:
    """Memberships of rows with these squared distances, at an exponent."""
    shares = hard_weights(squares) if math.isinf(s) else power_weights(squares, s)
    return shares[2].astype(dtype, copy=False)


def _filled(x: Array, weight: Array | None) -> tuple[Array, Array | None]:
    """A view and the weights of its rows: those that lack it count nothing, and are one of the
    others."""
    there = has_view(x)
    if there.all():
        return x, weight
    filled = np.where(there[:, None], x, x[there.argmax()])
    return filled, there * (1.0 if weight is None else weight)

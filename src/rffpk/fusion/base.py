"""Base of the methods that fuse kernels into an embedding of the rows, and annealed k-means on it.

The method `_embedded` of a model embeds rows whose views have been checked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from rffpk.anneal.convergence_warnings import Cause, few_rows, low_rank, warn_if_indefinite
from rffpk.anneal.fitted import CentroidModel
from rffpk.estimators.annealing import check_search_parameters
from rffpk.estimators.base import Clusterer, fit_of, parameters, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.estimators.fitting import centroid_model, find_number, fit_model, rows_in_memory
from rffpk.estimators.power import PowerKMeans
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.dask_collections import by_partitions
from rffpk.rows.door import Schema
from rffpk.rows.draws import uneven
from rffpk.rows.sample import Opened
from rffpk.rows.table import Columns, rows_differ
from rffpk.rows.weights import ones
from rffpk.spaces.kernels import (
    PRECOMPUTED,
    FittedKernel,
    Kernels,
    Specification,
    check_kernels,
    matched,
)
from rffpk.system import config
from rffpk.system.interrupts import interruptible
from rffpk.system.linalg import (
    by_blocks,
    eigh,
    leading_eigenvectors,
    over_eigenvalues,
    ritz_values,
    row_tiles,
)
from rffpk.system.report import Progress, warn
from rffpk.system.tuning import TUNING

# Values for keys that records of passes have, and records of iterations lack.
_OF_PASSES = {"start": 0, "kept": True, **dict.fromkeys(("s", "shift", "distinct", "repairs"))}

Iterated = TypeVar("Iterated", bound="Iteration")


# ---- k-means on an embedding ---------------------------------------------------------------------


def cluster(
    model: Any, k: int, weighted: Opened, random: Any, causes: list[Cause],
    progress: Progress | None,
) -> None:  # fmt: skip
    """Run annealed k-means with restarts on `embedding_`, and set the fitted attributes.

    `weighted` are the rows that were fitted, with their weights.

    If clusters are missing, the warning names the first cause that applies: `causes` are tried
    first, and then causes in the embedding."""
    seed, rows = random.randint(2**31 - 1), _prepared(model, model.embedding_)
    model._clusterer = PowerKMeans(k, n_init=model.n_init, random_state=seed, n_jobs=model.n_jobs)
    fit_model(
        model._clusterer, rows, weighted.weight, progress=progress, causes=causes,
        rows_name="the embedding of X",
    )  # fmt: skip
    for name in ("labels_", "cluster_centers_", "inertia_", "s_", "membership_exponent_"):
        setattr(model, name, getattr(model._clusterer, name))
    model._n_features_out = model.embedding_.shape[1]
    if model.store_memberships:
        memberships = model._clusterer.predict_proba(rows)
        model.memberships_ = memberships.astype(weighted.tables[0].dtype, copy=False)


@by_partitions
def transform(model: Any, X: Any) -> Array:
    """Embed rows.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
        As in `fit`. Precomputed kernels are between the new rows and the fitted rows (or the
        anchors), of shape (n_samples, n_samples_fit or s).

    Returns
    -------
    embedding : ndarray of shape (n_samples, n_columns)
        In the space of `embedding_`, with its columns, in the dtype of X. For collections of Dask a
        Dask array.
    """
    embedding, dtype = _embedded(model, X)
    return embedding.astype(dtype, copy=False)


def _embedded(model: Any, X: Any) -> tuple[Array, Any]:
    """Return the embedding of new rows in float64, and the dtype of X."""
    check_is_fitted(model)
    xs = model._check_views(X, reset=False)
    with config.one_blas_thread():
        return model._embedded(xs), xs[0].dtype


@dataclass(frozen=True)
class EmbeddingModel:
    """Centroids in an embedding, with the model that embeds new rows."""

    model: Any
    clusters: CentroidModel

    def labels(self, X: Any) -> Array:
        """Return the index of the nearest centroid of each row, (n,)."""
        return self.clusters.labels(embedded_rows(self.model, X))

    def memberships(self, X: Any, s: float | None) -> Array:
        """Return memberships (n, k) at an exponent; None: the exponent of the fit."""
        embedding, dtype = _embedded(self.model, X)
        found = self.clusters.memberships(_prepared(self.model, embedding), s)
        return found.astype(dtype, copy=False)

    def distances(self, X: Any) -> Array:
        """Return distances (n, k) from the centroids."""
        return self.clusters.distances(embedded_rows(self.model, X))

    def nearest_rows(self, X: Any) -> Array:
        """Return the index of the row that is nearest to each centroid, (k,)."""
        return self.clusters.nearest_rows(embedded_rows(self.model, X))

    def cost(self, X: Any, weight: Any) -> float:
        """Return the weighted sum of squared distances from the nearest centroids."""
        rows = embedded_rows(self.model, X)
        checks.check_row_labels(X, weight)
        return self.clusters.cost(rows, weight)

    def gaps(self) -> tuple[Array, Array]:
        """Return squared distances (k, k) between centroids, and the masses (k,) of clusters."""
        return self.clusters.gaps()


def embedding_model(model: Any) -> EmbeddingModel:
    """Return the centroids of a fitted model in its embedding."""
    check_is_fitted(model)
    return EmbeddingModel(model, centroid_model(model._clusterer))


def embedded_rows(model: Any, X: Any) -> Array:
    """Return the embedding of new rows as k-means takes it, normalized if the model says so."""
    return _prepared(model, _embedded(model, X)[0])


def _prepared(model: Any, embedding: Array) -> Array:
    """Scale rows of an embedding to length one if the parameter `normalize_rows` is set."""
    return normalize(embedding) if getattr(model, "normalize_rows", False) else embedding


# ---- fusions -------------------------------------------------------------------------------------


@parameters
class KernelFusion(Clusterer):
    """Base of the methods that embed rows by kernels, for k-means.

    A subclass has `_learn`, which learns from kernels between rows or landmarks. Or it has `_fuse`,
    which learns from views, and `_embedded`."""

    _of_affinities = False  # whether kernels are not centered, and may have a diagonal of zeros
    _needs_every_kernel = True  # whether one zero kernel among several is refused
    _stage = "weights"  # the name of iterations in `history_`
    _remedy = "take more iterations, or a larger tol"  # if max_iter is too small
    _takes = Schema("", "kernels", several=True, warns_of_kernels=True)
    _balances_terms = False  # whether a common factor of all weights changes the result
    _positive: ClassVar[tuple[str, ...]] = ()  # parameters above zero
    _weights: ClassVar[tuple[str, ...]] = ()  # parameters that weight terms of the objective

    kernels: Kernels = None
    views: Any = None
    standardize: bool = True
    normalize_rows: bool = True
    n_landmarks: int | None = None
    max_iter: int = 100
    tol: float = 1e-6
    # what a fit sets
    embedding_: Array = field(init=False)
    cluster_centers_: Array = field(init=False)
    kernel_weights_: Array = field(init=False)
    eigenvalues_: Array = field(init=False)
    landmarks_: NDArray[np.intp] | None = field(init=False)
    # matrix that maps kernels between rows and the rows learned on to the embedding
    _map: Any = field(init=False)
    # indices of the columns of precomputed kernels that belong to the rows learned on; None: all
    _columns: NDArray[np.intp] | None = field(init=False)
    _clusterer: Any = field(init=False)  # a PowerKMeans of the embedding

    _fitted_model, transform = embedding_model, transform

    def _check_parameters(self) -> None:
        """Check the parameters that need no data. A fit checks the number of clusters again."""
        k = check_search_parameters(self)
        for name in ("standardize", "normalize_rows"):
            checks.check_bool(getattr(self, name), name)
        check_kernels(self.kernels)
        self._check_number(k)
        checks.check_int(self.max_iter, "max_iter", 1)
        checks.check_real(self.tol, "tol", 0)
        for name in self._positive:
            checks.check_real(getattr(self, name), name, 0, include="neither")
        for name in self._weights:
            checks.check_real(getattr(self, name), name, 0, checks.MAX_WEIGHT)

    def _check_number(self, k: int) -> None:
        """Check the parameters that must not be below k."""
        if self.n_landmarks is not None:
            checks.check_int(self.n_landmarks, "n_landmarks", k)

    # ---- what subclasses define ------------------------------------------------------------------

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        """Learn from the kernels between all rows or landmarks; set `_map` and fitted attributes.

        `_weight` has the weights of these rows. With P the diagonal matrix of the weights, `_map`
        maps P^(1/2) K_l P^(1/2) to P^(1/2) times the embedding."""
        raise NotImplementedError

    def _mapped(self, Ks: list[Array]) -> Array:
        """Map kernels between new rows and the rows learned on to the embedding."""
        return combined(Ks, self.kernel_weights_) @ self._map

    def _scale_matters(self) -> bool:
        return self._balances_terms

    # ---- fitting ---------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fuse the kernels and cluster the rows.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_samples, n_features_l), or one
            The views; with ``kernels="precomputed"`` kernel matrices of shape (n_samples,
            n_samples), which are taken as they are. One array with several `kernels` is a view of
            each. Views may be sparse for the kernels "rbf", "linear", "polynomial", "cosine",
            "sigmoid" and "laplacian": CSR of float32 or float64 is read in place.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights p >= 0 of the rows, by default one each. A row of weight two counts like two
            equal rows, in the kernels, in the objective and in k-means on the embedding
            (`docs/math.md`, section 12), but draws from repeated rows differ. A row of weight zero
            has no influence; it is embedded and labelled like a new row. If the columns of
            `embedding_` are orthonormal without weights, the columns of diag(p)^(1/2) `embedding_`
            are with weights. Results are precise to eps times the largest weight.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter, a view or sample_weight is not as described; nothing is changed then.

        Warns
        -----
        ConvergenceWarning
            If clusters have no rows, if the rank of the embedding is below n_clusters, or where the
            class says so.
        UserWarning
            If a kernel has a clearly negative eigenvalue and its spectrum is used. If weights that
            are no integers have a mean below 0.1 or above 10, and their common factor matters
            (`docs/maintainers/fusion.md`).
        """
        self._check_parameters()
        random = checks.check_random_state(self.random_state)
        with reporting(self, X) as progress, fit_of(self), config.one_blas_thread():
            rows = rows_in_memory(self, X, sample_weight, random)
            k = find_number(self, rows, random, progress)
            self._check_number(k)
            if self._scale_matters():
                self._warn_of_scale(rows.weight)
            xs = rows.tables if rows.positive is None else [x[rows.positive] for x in rows.tables]
            self._check_no_zero_kernel(xs)
            self.history_: list[dict[str, Any]] = []
            self._progress, self._begun = progress, time.perf_counter()
            self._fuse(rows, k, random)
            del self._progress, self._begun
            scaled = np.sqrt(rows.weight)[:, None] * self.embedding_  # has orthonormal columns
            flaw = partial(low_rank, scaled, xs, uneven(rows.weight))
            causes: list[Cause] = [partial(few_rows, "X", rows.tables, rows.weight), flaw]
            cluster(self, k, rows, random, causes, progress)
            # if a cluster is empty, `cluster` has warned, and named the cause
            if self._clusterer._centroids.masses.all() and (text := flaw(k)):
                warn(text, ConvergenceWarning)
        return self

    def _fuse(self, rows: Opened, k: int, random: Any) -> None:
        """Learn the fusion and set `embedding_`, without k-means; append iterations to `history_`.

        Landmarks are drawn first if `n_landmarks` is smaller than the number of rows."""
        self.landmarks_ = None
        if self.n_landmarks is not None and self.n_landmarks < rows.counted:
            self.landmarks_ = rows.drawn(self.n_landmarks, random)
        learned = rows.positive if self.landmarks_ is None else self.landmarks_
        weight = rows.weight if learned is None else rows.weight[learned]
        self._weight = np.ascontiguousarray(weight)
        xs, specs = self._matched(rows.tables, learned)
        self._kernels = [self._fitted(*pair, self._weight, random) for pair in zip(xs, specs)]
        self._learn(self._kernels, k)
        self._map = np.sqrt(self._weight)[:, None] * self._map  # rows are embedded by K P^(1/2)
        self.embedding_ = self._embedded(rows.tables)  # by the same products as in `transform`
        for kernel in self._kernels:
            kernel.drop_matrix()

    def _matched(
        self, xs: list[Columns], rows: NDArray[np.intp] | None
    ) -> tuple[list[Columns], list[Specification]]:
        """Return for each kernel the rows of its view, and its specification.

        `rows` has the indices of the rows to return, or None for all rows. Precomputed kernels are
        cut to these rows and the corresponding columns, and `_columns` is set."""
        precomputed = checks.is_option(self.kernels, PRECOMPUTED)
        self._columns = rows if precomputed else None
        if not precomputed:  # kernels keep copies, because the caller may change X
            xs = [x.copy() if rows is None else x[rows] for x in xs]
        # rows of weight zero have been left out, so all weights may be one here
        single, weight = not self._shape.has_views, ones(len(xs[0]))
        xs, specs = matched(xs, self.kernels, single, weight, self._of_affinities)
        if self._columns is not None:
            chosen = np.ix_(self._columns, self._columns)
            xs = [np.ascontiguousarray(x[chosen]) for x in xs]
        return xs, specs

    def _view_of_each(self, xs: list[Columns], n_kernels: int) -> list[Columns]:
        """Return the view of each kernel; one view is repeated for several kernels.

        Precomputed kernels are cut to the columns of the rows learned on."""
        xs = xs if self._shape.has_views else xs * n_kernels
        return xs if self._columns is None else [x[:, self._columns] for x in xs]

    def _embedded(self, xs: list[Columns]) -> Array:
        """Return the embedding of rows whose views have been checked."""
        return self._in_blocks(
            xs, [each.values for each in self._kernels], self._kernels[0].n, self._mapped
        )

    def _in_blocks(
        self, xs: list[Columns], functions: list[Callable[[Columns], Array]], width: int,
        mapping: Callable[[list[Array]], Array],
    ) -> Array:  # fmt: skip
        """Embed rows block by block, on threads.

        Each of `functions` maps a view to kernel values, with about `width` columns. `mapping`
        then maps all values to the embedding."""
        k = len(functions)
        return by_blocks(
            lambda parts: mapping([f(x) for f, x in zip(functions, self._view_of_each(parts, k))]),
            xs, width, config.n_threads(self.n_jobs),
        )  # fmt: skip

    def _fitted(
        self, x: Columns, spec: Specification, weight: Array, random: Any = None
    ) -> FittedKernel:
        """Return a kernel fitted to the rows `x`, centered and normalized as parameters say."""
        return FittedKernel(
            x, spec, weight=weight, random=random, n_threads=config.n_threads(self.n_jobs),
            center=self.standardize and not self._of_affinities, normalize=self.standardize,
        )  # fmt: skip

    def _check_no_zero_kernel(self, xs: list[Columns]) -> None:
        """Raise a ValueError if one of several kernels is zero.

        A zero kernel has no cost in any clustering, so that it would get all of the learned
        weight. Kernels that are computed and not centered are not tested."""
        precomputed = checks.is_option(self.kernels, PRECOMPUTED)
        centered = self.standardize and not self._of_affinities
        if not self._needs_every_kernel or not (precomputed or centered):
            return
        zero = [not (x.any() if precomputed else rows_differ(x)) for x in xs]
        if any(zero) and not all(zero):
            name = "views" if self._shape.columns else "X"
            what = "has equal rows, so that its centered kernel is zero"
            what = "is zero everywhere" if precomputed else what
            raise ValueError(f"{name}[{zero.index(True)}] {what}: leave it out.")

    def _warn_of_scale(self, weight: Array) -> None:
        """Warn if weights are no counts and their mean is far from one.

        The scale of the weights may then be accidental, but it changes the result."""
        mean = weight[weight > 0].mean()
        if not 0.1 <= mean <= 10.0 and (weight != np.rint(weight)).any():
            warn(
                f"sample_weight has the mean {mean:.3g}, which changes the balance of the terms "
                f"that {type(self).__name__} minimises: pass sample_weight / {mean:.6g}, or scale "
                "the parameters of these terms.",
                UserWarning,
            )

    # ---- iterating -------------------------------------------------------------------------------

    def _converge(
        self, iterations: Iterator[Iterated], rows: int, rising: bool = False
    ) -> Iterated:
        """Run and record iterations until they converge; return the last. Warn if they do not.

        `rows` is the number of rows, for the records. If iterations have a `change`, they converge
        when it is at most `tol`. Otherwise they converge when the relative fall (or rise, if
        `rising`) of the objective is at most `tol`."""
        max_iter, tol, before = int(self.max_iter), float(self.tol), math.nan
        for last in islice(iterations, max_iter):
            named = {} if last.change is None else {"change": last.change}
            self._record(last.alpha, last.objective, rows, **named)
            # the change for the better; NaN in the first iteration, which never converges by it
            fall = last.objective - before if rising else before - last.objective
            settled = fall <= tol * abs(last.objective)
            if settled if last.change is None else last.change <= tol:
                return last
            before = last.objective
        warn(
            f"{type(self).__name__} did not reach tol={tol:g} in max_iter={max_iter} iterations: "
            f"{self._remedy}.",
            ConvergenceWarning,
        )
        return last

    def _record(self, alpha: Array, objective: float, rows: int, **more: float) -> None:
        """Append an iteration that has just ended to `history_`, and report it as progress."""
        begun, self._begun = self._begun, time.perf_counter()
        record = {"stage": self._stage, "rows": rows, "objective": objective,
                  "kernel_weights": alpha, **more, "seconds": self._begun - begun}  # fmt: skip
        self.history_.append(_OF_PASSES | record)
        if self._progress is not None:
            self._progress.passed(self.history_[-1])
        # the last record sets the fitted attributes
        self.objective_, self.kernel_weights_ = objective, alpha
        self.n_iter_ = len(self.history_)

    def _keep(self, last: Iteration) -> None:
        """Set `eigenvalues_` and `_map` from the eigenvectors of the last iteration."""
        self.eigenvalues_, self._map = last.values, over_eigenvalues(last.vectors, last.values)


def by_matrices(model: KernelFusion, Ks: list[Array]) -> Array:
    """Return sum_l K_l B_l of kernels K_l; `_map` of the model has the matrices B_l, (n, k)."""
    return np.asarray(sum(K @ B for K, B in zip(Ks, model._map)))


# ---- spectral steps ------------------------------------------------------------------------------


# Of equal minima the minimum of least norm is taken, by a multiple of the identity of this size.
_RIDGE = 1e-12


@dataclass(frozen=True)
class Iteration:
    """The kernel weights, the objective and the eigenpairs of an iteration of a fusion."""

    alpha: Array
    objective: float
    values: Array = field(default_factory=lambda: np.empty(0))  # leading eigenvalues, if any
    vectors: Array = field(default_factory=lambda: np.empty(0))  # (n, k): their eigenvectors
    change: float | None = None  # compared with `tol`; None: compare the objective instead


def inverse_shares(costs: Array) -> Array:
    """Return weights alpha_l ~ 1 / cost_l, (L,), of sum one.

    They minimize sum_l alpha_l^2 cost_l. If no cost is positive, they are equal."""
    if not costs.max() > 0:
        return np.full(len(costs), 1 / len(costs))
    shares = costs.max() / np.maximum(costs, np.finfo(np.float64).eps * costs.max())
    return np.asarray(shares / shares.sum())


def simplex_minimum(Q: Array) -> Array:
    """Minimize x'Qx over x >= 0 of sum one, for a positive semidefinite Q (m, m); return x.

    For Q = 0 the entries of x are equal.

    The constraint on the sum becomes a term (1'x - 1)^2. With x = t alpha and alpha of sum one, the
    minimum over t is q / (1 + q) with q = alpha'Q alpha, and it rises with q. So the best alpha
    stays the best, and x is scaled to the sum one at the end. `scipy.optimize.nnls` solves this
    nonnegative least squares problem exactly up to rounding."""
    size = Q.diagonal().max()
    if not size > 0:
        return np.full(len(Q), 1 / len(Q))
    values, vectors = eigh(Q / size)
    root = np.sqrt(np.maximum(values, 0) + _RIDGE)[:, None] * vectors.T
    rows = np.vstack([root, np.ones(len(Q))])
    x, _ = nnls(rows, np.append(np.zeros(len(Q)), 1.0), maxiter=100 * len(Q))  # of active sets
    return np.asarray(x / x.sum())


def weighed(K: Array, weight: Array) -> Array:
    """Multiply K in place to P^(1/2) K P^(1/2), for the diagonal matrix P of the row weights.

    The product is exactly symmetric if K is. Raise a ValueError if it overflows."""
    roots = np.sqrt(weight)

    def multiply() -> None:
        with np.errstate(over="ignore"):
            for rows in row_tiles(*K.shape):
                K[rows] *= roots[rows, None] * roots

    interruptible(TUNING.linalg.written_work * K.size, multiply)
    if not np.isfinite(K).all():
        raise ValueError(
            "sample_weight is so large that weighted kernels overflow: scale it, or normalize the "
            "kernels."
        )
    return K


def inner_products(Ks: list[Array], others: list[Array]) -> Array:
    """Return the matrix of Tr(K_p C_q), with the C_q in `others`, made exactly symmetric.

    It takes O(n^2) time for each pair."""
    M = np.array([[np.vdot(K, other) for other in others] for K in Ks])
    if not np.isfinite(M).all():
        raise ValueError(
            "X has kernels whose products overflow: scale the views or sample_weight, or normalize "
            "the kernels."
        )
    return np.asarray(M + M.T) / 2


def combined(Ks: list[Array], alpha: Array) -> Array:
    """Compute the combined kernel sum_l alpha_l^2 K_l."""

    def total() -> Array:
        found = alpha[0] ** 2 * Ks[0]
        for weight, K in zip(alpha[1:], Ks[1:]):
            found += weight**2 * K
        return found

    return interruptible(TUNING.linalg.written_work * len(Ks) * Ks[0].size, total)


def mean_of(Ks: list[Array]) -> Array:
    """Compute the mean of the kernels."""
    return combined(Ks, np.full(len(Ks), len(Ks) ** -0.5))  # their squares are 1 / L


def alternation(Ks: list[Array], k: int, penalty: Array | None = None) -> Iterator[Iteration]:
    """Optimize H and alpha in turn, from equal weights; yield an iteration after each H.

    The objective is sum_l alpha_l^2 Tr(K_l (I - HH')) + alpha' penalty alpha / 2. It is minimized
    over H with k orthonormal columns, and over alpha >= 0 of sum one. The sum of the columns
    of H starts the search for the eigenvectors of the next combined kernel."""
    alpha, start = np.full(len(Ks), 1 / len(Ks)), None
    while True:
        values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]), start)
        start = H.sum(axis=1)
        costs = spectral_costs(Ks, H)
        objective = float(alpha**2 @ costs)
        if penalty is not None:
            objective += float(alpha @ penalty @ alpha) / 2
        yield Iteration(alpha, objective, values, H)
        if penalty is None:
            alpha = inverse_shares(costs)
        else:  # twice the objective, as a quadratic form in alpha
            alpha = simplex_minimum(2 * np.diag(np.maximum(costs, 0)) + penalty)


def matrices(kernels: list[FittedKernel], weight: Array) -> list[Array]:
    """Return the weighted matrix P^(1/2) K_l P^(1/2) of each kernel."""
    return [weighed(K, weight) for K in map(matrix_of, kernels, count())]


def matrix_of(kernel: FittedKernel, number: int) -> Array:
    """Return the matrix of a kernel; warn if it is indefinite."""
    K = kernel.matrix()
    if not kernel.definite:
        warn_if_indefinite(f"kernel {number}", ritz_values(K.dot, kernel.n))
    return K


def spectral_costs(Ks: list[Array], H: Array) -> Array:
    """Return Tr(K_l (I - HH')) of each kernel, or zero if it is only rounding error."""
    traces = np.array([np.trace(K) for K in Ks])
    left = traces - np.array([np.einsum("ik,ik->", H, K @ H) for K in Ks])
    rounding = 4 * len(H) * float(np.finfo(np.float64).eps) * np.abs(traces)
    return np.where(np.abs(left) <= rounding, 0.0, left)

"""The common skeleton of the estimators whose centroids are weights of the fitted rows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import k_means
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing import dual
from rffpk._annealing.schedule import Result, Start, course
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.decompositions import leading_eigenvectors, ritz_values
from rffpk._data.rules import hard_weights, power_weights
from rffpk._data.store import check_cache, check_fits
from rffpk._data.tiles import row_tiles, run_all
from rffpk._data.validation import is_word
from rffpk.kernels import (
    PRECOMPUTED,
    FittedKernel,
    matched,
    positive_definite,
)

INITS = ("k-means++", "random", "k-means", "spectral")

# An eigenvalue below minus this fraction of the largest is no rounding.
_INDEFINITE = 1e-6


class DualClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Base of the estimators whose centroids are weights of the fitted rows."""

    _several = False  # whether several views are taken
    _soft = True  # whether starts have soft steps, before which centroids may be disturbed

    n_clusters: int
    init: Any
    n_init: str | int
    max_iter: int
    tol: float
    cache: str | bool
    memory_limit: int | None
    random_state: Any
    n_jobs: int | None
    verbose: int

    # ---- what subclasses decide -------------------------------------------------------------

    def _check_parameters(self) -> None:
        validation.check_int(self.n_clusters, "n_clusters", 1)
        if isinstance(self.init, str):
            validation.check_choice(self.init, "init", INITS, also="an array")
        if not is_word(self.n_init, "auto"):
            validation.check_int(self.n_init, "n_init", 1)
        validation.check_int(self.max_iter, "max_iter", 1)
        validation.check_real(self.tol, "tol", 0)
        check_cache(self.cache, self.memory_limit)
        validation.check_n_jobs(self.n_jobs)

    def _asked_kernels(self) -> Any:
        """What `matched` takes as kernels."""
        raise NotImplementedError

    def _lambda(self, total_weight: float) -> float | None:
        """The entropy weight of the kernel weights; None: there is one kernel."""
        return None

    def _starts(self, critical: float) -> list[Start]:
        raise NotImplementedError

    # ---- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers, or what the class takes besides: kernel matrices of shape (n_samples,
            n_samples) where those are precomputed, a list of views where there are several.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or sample_weight is not as described; nothing is changed then.
        MemoryError
            If ``cache=True`` and the kernels take more than `memory_limit`.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` ended the best start, or centroids coincide at the end.
        UserWarning
            If a kernel has a clearly negative eigenvalue: squared distances below 0 then count as
            0 while fitting, and `predict` may differ from `labels_`.
        """
        self._check_parameters()
        random = check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            xs = validation.check_views(self, X, reset=True)
            if self._n_views and not self._several:
                raise ValueError(f"X is a list of {len(xs)} views, must be one array.")
            weight = validation.check_sample_weight(sample_weight, len(xs[0]))
            k = validation.check_n_clusters(self.n_clusters, len(xs[0]), weight)
            given = None if isinstance(self.init, str) else self._given_weights(len(xs[0]))
            products = self._products(xs, weight, random)
            self._fit_products(products, weight, k, given, random)
        return self

    def _products(self, xs: list[Array], weight: Array | None, random: Any) -> dual.Products:
        xs, specs = matched(xs, self._asked_kernels(), not self._n_views)
        n_threads = _config.n_threads(self.n_jobs)
        self._kernels = [
            FittedKernel(x, spec, weight=weight, random=random, n_threads=n_threads)
            for x, spec in zip(xs, specs)
        ]
        needed = dual.Products.stored_bytes(self._kernels)
        self.cache_ = check_fits(needed, "the kernel matrices", self.cache, self.memory_limit)
        products = dual.Products(self._kernels, n_threads, self.cache_)
        if not all(positive_definite(spec) for spec in specs):
            _warn_if_indefinite(products)
        return products

    def _fit_products(
        self, products: dual.Products, weight: Array | None, k: int, given: Array | None,
        random: Any,
    ) -> None:  # fmt: skip
        total = float(products.n if weight is None else weight.sum())
        lam, n_threads = self._lambda(total), _config.n_threads(self.n_jobs)
        directions = 2 * k if self._soft else 0
        shared = dual.make_dual(products, weight, lam, directions, random, n_threads)
        self.history_: list[dict[str, Any]] = []
        critical = dual.critical(shared, random) if self._soft else 0.0
        starts = self._starts(critical)
        runs = []
        for number in range(len(starts)):
            W = self._initial(shared, k, random) if given is None else given
            W = W.astype(products.dtype)
            run = dual.DualRun(shared, W, self.history_, random, number, self.verbose)
            runs.append(run)
        costs: dict[int, float] = {}
        ends: dict[int, Result] = {}

        def best() -> float:
            return min(costs.values(), default=math.inf)

        def ended(number: int, end: Result) -> None:
            schedule = starts[number].schedule
            s = schedule.s_final if schedule.stop == "annealed" else -math.inf
            ends[number] = end
            costs[number] = math.inf if end.dropped else runs[number].cost(s)

        courses = [course(start, best, products.dtype) for start in starts]
        dual.advance(runs, courses, ended)
        kept = min(costs, key=lambda number: (costs[number], number))
        for number, start in enumerate(starts):
            lost = "dropped" if ends[number].dropped else "lost"
            self.history_.append(
                {
                    "stage": "start", "start": number, "kind": start.kind, "rows": products.n,
                    "passes": runs[number].passes, "objective": shared.unit * costs[number],
                    "outcome": "kept" if number == kept else lost,
                }
            )  # fmt: skip
        s = ends[kept].s
        if math.isinf(s):  # k-means has no soft exponent: that of a start that was annealed
            s = max((end.s for end in ends.values()), key=lambda s: (math.isfinite(s), -s))
        self._publish(runs[kept], ends[kept], s)

    def _initial(self, shared: dual.Dual, k: int, random: Any) -> Array:
        """Centroids that a start begins at, (k, n)."""
        n = shared.products.n
        if is_word(self.init, "spectral"):
            return _spectral(shared, k, random)
        W = np.zeros((k, n))
        init = "random" if is_word(self.init, "random") else "k-means++"
        W[np.arange(k), dual.seed_rows(shared, k, init, random)] = 1
        return W

    def _given_weights(self, n: int) -> Array:
        """Centroids from an array `init`: labels of the rows, or weights of the rows."""
        init, k = np.asarray(self.init), self.n_clusters
        if init.shape == (n,) and np.issubdtype(init.dtype, np.integer):
            if not np.array_equal(np.unique(init), np.arange(k)):
                raise ValueError(f"init has other labels than 0 to {k - 1}, each at least once.")
            W = (np.arange(k)[:, None] == init).astype(np.float64)
        elif init.shape == (k, n):
            W = init.astype(np.float64)
            if not np.isfinite(W).all() or (W.sum(axis=1) == 0).any():
                raise ValueError("init must be finite, and its rows must not sum to zero.")
        else:
            raise ValueError(
                f"init has shape {init.shape}, must be labels of shape ({n},), integers, or "
                f"weights of the rows of shape ({k}, {n})."
            )
        return W / W.sum(axis=1, keepdims=True)

    def _publish(self, run: dual.DualRun, end: Result, s: float) -> None:
        """Set the fitted attributes; warn of what did not go well."""
        dual, k = run.dual, len(run.W)
        dtype = dual.products.dtype
        self.dual_coef_ = run.W
        self.labels_ = run.labels()
        self.objective_ = dual.unit * run.cost(s)
        self.inertia_ = self._inertia(run)
        self.s_, self.n_iter_ = s, run.passes
        self._alpha = run.alpha
        self._squares = _uncentred_squares(run)
        self._n_features_out = k
        if not end.converged:
            warnings.warn(
                f"max_iter={self.max_iter} passes ended the run before it converged.",
                ConvergenceWarning,
                stacklevel=5,
            )
        run.cost(-math.inf)
        distinct = run.distinct()
        if distinct < k:
            warnings.warn(
                f"{distinct} of n_clusters={k} centroids are distinct: X has no more distinct "
                f"rows ({np.dtype(dtype)}), or centroids merged.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _inertia(self, run: dual.DualRun) -> float:
        """sum p ||phi - mean of its cluster||^2 of the labels."""
        shared, k = run.dual, len(run.W)
        p = np.ones(shared.products.n) if shared.weight is None else shared.weight
        members = (np.arange(k)[:, None] == self.labels_) * p
        G = members.sum(axis=1)
        W = members / np.where(G > 0, G, 1)[:, None]
        Y = shared.products.multiply(W)
        squares = dual.squared_norms(W, Y)
        costs = shared.products.diagonals @ p - squares @ G
        return shared.unit * float(max(run.alpha @ costs, 0.0))

    # ---- using ------------------------------------------------------------------------------

    def _visit(self, X: Any, own_needed: str = "") -> tuple[Array, Any]:
        """Squared distances (n, k) of new rows to the centroids, without k(x, x) where only their
        order counts, and the dtype of X."""
        check_is_fitted(self)
        xs = validation.check_views(self, X, reset=False)
        if not self._n_views:
            xs = xs * len(self._kernels)
        if own_needed and any(kernel.precomputed for kernel in self._kernels):
            raise ValueError(
                f"{own_needed} needs k(x, x), which precomputed kernels of new rows do not tell."
            )
        coef = self.dual_coef_.T.astype(np.float64)

        def distances(rows: slice) -> Array:
            total = np.tile(self._alpha @ self._squares, (len(xs[0][rows]), 1))
            for alpha, kernel, x in zip(self._alpha, self._kernels, xs):
                block, own = kernel.cross(x[rows])
                total -= 2 * alpha * (block @ coef)
                if own_needed and own is not None:
                    total += alpha * own[:, None]
            return np.maximum(total, 0) if own_needed else total

        blocks = row_tiles(len(xs[0]), self._kernels[0].n)
        with _config.one_blas_thread():
            parts = run_all(distances, blocks, _config.n_threads(self.n_jobs))
        return np.concatenate(parts), xs[0].dtype

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Label each row with its nearest centroid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or what `fit` takes
            With precomputed kernels the cross-kernel of new rows and fitted ones, of shape
            (n_samples, n_samples_fit).

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
        """
        return self._visit(X)[0].argmin(axis=1).astype(np.int32)

    def predict_proba(self, X: Any) -> Array:
        """Memberships of the rows in the clusters at the exponent `s_`.

        u_ij = d_ij^s / sum_l d_il^s with squared distances d; one for the nearest centroid where
        s is -inf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of views as in `fit`

        Returns
        -------
        memberships : ndarray of shape (n_samples, n_clusters)
            In [0, 1]; rows sum to one.

        Raises
        ------
        ValueError
            If the kernels are precomputed.
        """
        d, dtype = self._visit(X, "predict_proba")
        shares = hard_weights(d) if math.isinf(self.s_) else power_weights(d, self.s_)
        return shares[2].astype(dtype, copy=False)

    def transform(self, X: Any) -> Array:
        """Distances of the rows to the centroids, in the space of the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of views as in `fit`

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the dtype of X.

        Raises
        ------
        ValueError
            If the kernels are precomputed.
        """
        d, dtype = self._visit(X, "transform")
        return np.sqrt(d).astype(dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the weighted sum of squared distances of the rows to their nearest centroids.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of views as in `fit`
        y : Ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
            <= 0; the higher the better.
        """
        least = self._visit(X, "score")[0].min(axis=1)
        weight = validation.check_sample_weight(sample_weight, len(least))
        return -float(least.sum() if weight is None else weight @ least)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_word(self._asked_kernels(), PRECOMPUTED)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _uncentred_squares(run: dual.DualRun) -> NDArray[np.float64]:
    """(W K_l W')_jj of the kernels as they are, (L, k)."""
    products = run.dual.products
    sums = run.W.sum(axis=1, dtype=np.float64)
    about = products.offsets @ run.W.T.astype(np.float64)
    return np.asarray(run.squares + 2 * about * sums - products.means[:, None] * sums**2)


def _spectral(dual: dual.Dual, k: int, random: Any) -> Array:
    """Means of the clusters that k-means finds among the rows of the k leading eigenvectors of the
    kernel, centred at its mean and weighted."""
    n = dual.products.n
    p = np.ones(n) if dual.weight is None else dual.weight
    share, root = p / p.sum(), np.sqrt(p)

    def multiply(v: Array) -> Array:
        columns = root[:, None] * v.reshape(n, -1)
        columns = columns - share[:, None] * columns.sum(axis=0)
        found = dual.products.multiply(columns.T).mean(axis=0, dtype=np.float64).T
        return np.asarray(root[:, None] * (found - share @ found)).reshape(v.shape)

    H = normalize(leading_eigenvectors(multiply, k, n)[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of few distinct rows
        labels = k_means(H, k, sample_weight=p, n_init=10, random_state=random)[1]
    W = (np.arange(k)[:, None] == labels) * p
    empty = np.flatnonzero(~W.any(axis=1))
    W[empty, np.flatnonzero(p)[: len(empty)]] = 1
    return np.asarray(W / W.sum(axis=1, keepdims=True))


def _warn_if_indefinite(products: dual.Products) -> None:
    for number, kernel in enumerate(products.kernels):

        def multiply(v: Array, number: int = number) -> Array:
            return np.asarray(products.multiply(v[None])[number, 0], dtype=np.float64)

        values = ritz_values(multiply, kernel.n)
        if values[0] < -_INDEFINITE * max(values[-1], 0):
            warnings.warn(
                f"kernel {number} is indefinite: it has an eigenvalue <= {values[0]:.3g} beside "
                f"one >= {values[-1]:.3g}; squared distances may be negative, and count as 0.",
                UserWarning,
                stacklevel=5,
            )

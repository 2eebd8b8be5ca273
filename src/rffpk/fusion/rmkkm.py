"""RMKKM: robust multiple kernel k-means, by sums of distances that are not squared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import logsumexp

from rffpk.anneal.kernel_fit import KernelProblem
from rffpk.anneal.kernel_steps import KernelLevel
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Plan, Schedule, given_starts
from rffpk.estimators.annealing import check_search_parameters
from rffpk.estimators.base import Clusterer, parameters
from rffpk.estimators.fitting import fit_kernels, kernel_model
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Numbers
from rffpk.rows.door import Schema
from rffpk.rows.store import Cache, check_cache
from rffpk.spaces.kernels import Kernels, check_kernels
from rffpk.system.tuning import TUNING

Init = Literal["k-means++", "random", "spectral"]


@dataclass(frozen=True)
class NormedWeights(PowerMean):
    """Weights alpha >= 0 with sum_l alpha_l^gamma = 1, 0 < gamma < 1."""

    gamma: float

    learns_weights = True

    def equal(self, L: int) -> Array:
        """Return equal weights (L,) that satisfy the constraint."""
        return np.full(L, L ** (-1 / self.gamma))

    def penalty(self, alpha: Array, total_weight: float) -> float:
        return 0.0

    def reweigh(self, costs: Array, constant: float, total_weight: float) -> Array:
        """Return the weights (L,) that minimize sum_l alpha_l costs_l.

        They are alpha_l ~ costs_l^(1 / (gamma - 1))."""
        if not costs.max() > 0:
            return self.equal(len(costs))
        costs = np.maximum(costs / costs.max(), np.finfo(np.float64).eps)
        logs = np.log(costs) / (self.gamma - 1)
        return np.asarray(np.exp(logs - logsumexp(self.gamma * logs) / self.gamma))


class RobustLevel(KernelLevel):
    """Steps of a fit in which each row has the weight p_i / (2 distance_i).

    A start first moves its initial centroids to the means of their clusters."""

    def first(self, W: Array, alpha: Array) -> State:
        """Return the initial state of a start: the means of the clusters of the centroids W."""
        assert isinstance(self.rows.objective, NormedWeights)
        state = super().first(W, alpha)
        members = super()._weigh(state, -math.inf)[0].astype(np.float64)
        masses = members.sum(axis=1, keepdims=True)
        means = np.where(masses > 0, members / np.where(masses > 0, masses, 1), state.theta)
        return self.moved(state, means)._replace(alpha=self.rows.objective.equal(len(alpha)))

    def _weigh(self, state: State, s: float) -> tuple[Array, float, float]:
        """Return weights (k, n) of the rows, and the sum of distances, twice.

        The exponent `s` is ignored. Callers expect the soft and the hard objective, which are
        equal."""
        weights = super()._weigh(state, -math.inf)[0]
        Y, diagonal, squares = self._combined(state)
        nearest = (squares[:, None] - 2 * Y).min(axis=0) + diagonal
        p = self.rows.p
        least = TUNING.fusion.rmkkm_smoothing * float(np.average(diagonal, weights=p))
        distances = np.sqrt(np.maximum(nearest.astype(np.float64), least))
        total = float((p * distances).sum())
        if not least > 0:  # equal rows
            return weights, total, total
        return weights * (0.5 / distances).astype(weights.dtype), total, total

    def count_distinct(self, state: State, hard: float) -> int:
        """Count the distinct centroids. `hard` is a sum of distances, which are not squared."""
        return super().count_distinct(state, hard**2 / self.rows.total_weight)


@parameters
class RMKKM(Clusterer):
    """Robust multiple kernel k-means (RMKKM).

    Minimizes sum_i min_j (sum_l alpha_l ||phi_l(x_i) - theta_jl||^2)^(1/2), distances and not their
    squares, so that outliers count less (Du et al.: Robust multiple kernel k-means using l21-norm.
    IJCAI 2015), over centroids theta_jl and weights alpha >= 0 with sum_l alpha_l^gamma = 1, gamma
    = `weight_norm`. A pass updates both in O(L n^2 k) for n rows, with O(L n^2) memory if the
    kernels are stored; the objective never rises. See ``docs/maintainers/fusion.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts, at least 1; the best is kept. "auto": ten; one if `init` is an array.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
        Of several, kernels that follow the scale of X, as "linear", get a total variance of one.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    weight_norm : float, default=0.5
        Exponent gamma, 0.05 to 0.95: the larger, the more weight goes to kernels of least cost.
    init : {"k-means++", "random", "spectral"} or array, default="k-means++"
        Initial centroids: clusters of rows by the mean kernel, or by its eigenvectors ("spectral").
        An array: labels of rows, each in use, or weights, (n_clusters, n_samples).
    max_iter : int, default=300
        Largest number of passes of a start.
    tol : float, default=0.0001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
    cache : "auto", bool or int, default="auto"
        Bytes for stored kernels. "auto": a quarter of free memory. True: all, or a MemoryError.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    dual_coef_ : ndarray of shape (n_clusters, n_samples)
        Centroids as weights of the fitted rows: theta_j = sum_i dual_coef_[j, i] phi(x_i).
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0, sum of alpha^gamma one; `inertia_` is of the kernel sum_l alpha_l k_l.
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimized sum; its s, -inf; s of `predict_proba`.
    n_iter_, history_, cache_ : int and list of dict and bool
        Passes of the best start; records (keys: ``docs/api.md``); whether kernels were stored.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import RMKKM
    >>> a, b, c, d = RMKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    kernels: Kernels = None
    views: Any = None
    weight_norm: float = 0.5
    init: Init | Numbers = "k-means++"
    max_iter: int = 300
    tol: float = 1e-4
    cache: Cache = "auto"
    # what a fit sets
    dual_coef_: Array = field(init=False)
    kernel_weights_: Array = field(init=False)
    cache_: bool = field(init=False)

    fit, _fitted_model = fit_kernels, kernel_model
    _takes = Schema("", "kernels", several=True, warns_of_kernels=True)

    def _problem(self) -> KernelProblem:
        check_search_parameters(self, get_args(Init), "an array")
        check_kernels(self.kernels)
        checks.check_real(self.weight_norm, "weight_norm", 0.05, 0.95)
        return KernelProblem(
            self.kernels, self._plan, self.init, check_cache(self.cache),
            NormedWeights(float(self.weight_norm)), several=True, exact=True, level=RobustLevel,
            smoothing=TUNING.fusion.rmkkm_smoothing,
        )  # fmt: skip

    def _plan(self, context: FitContext, critical: float) -> Plan:
        schedule = Schedule(-math.inf, -math.inf, int(self.max_iter), float(self.tol))
        starts = given_starts(schedule, self.init, self.n_init, TUNING.fusion.rmkkm_starts)
        return Plan(starts, context.k)

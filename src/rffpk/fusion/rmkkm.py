"""RMKKM: robust multiple kernel k-means, by sums of distances that are not squared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import logsumexp

from rffpk._anneal.kernel_fit import KernelProblem, check_search, measure
from rffpk._anneal.kernel_fit import fit as fit_by_kernels
from rffpk._anneal.kernel_steps import KernelRun, KernelSpace, cluster_means
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.search import Plan, Schedule, given_starts
from rffpk._rows.store import Cache
from rffpk._utils import validation
from rffpk._utils.arrays import Array, Numbers
from rffpk._utils.estimator import Clusterer, parameters
from rffpk.maps.kernels import Kernels, check_kernels

Init = Literal["k-means++", "random", "spectral"]

# Squared distances have this fraction of the mean squared norm added, so that a row on a centroid
# does not hold it there alone.
_SMOOTHING = 1e-8

_AUTO_STARTS = 10


@dataclass(frozen=True)
class NormedWeights(PowerMean):
    """Weights alpha >= 0 with sum_l alpha_l^gamma = 1, 0 < gamma < 1."""

    gamma: float

    learns_weights = True

    def equal(self, L: int) -> Array:
        return np.full(L, L ** (-1 / self.gamma))

    def penalty(self, alpha: Array, total_weight: float) -> float:
        return 0.0

    def reweigh(self, costs: Array, constant: float, total_weight: float) -> Array:
        """The minimum of sum_l alpha_l costs_l: alpha_l ~ costs_l^(1 / (gamma - 1))."""
        if not costs.max() > 0:
            return self.equal(len(costs))
        costs = np.maximum(costs / costs.max(), np.finfo(np.float64).eps)
        logs = np.log(costs) / (self.gamma - 1)
        return np.asarray(np.exp(logs - logsumexp(self.gamma * logs) / self.gamma))


class RobustSpace(KernelSpace):
    """Starts from the means of the clusters of the first centroids."""

    objective: NormedWeights

    def _run(self, W: Array, number: int) -> KernelRun:
        Y = self.products.multiply(W).astype(np.float64)
        squares = np.einsum("kn,lkn->k", W, Y)
        labels = (squares[:, None] - 2 * Y.sum(axis=0)).argmin(axis=0)
        means = cluster_means(self.members(labels, len(W)))
        kept = means.any(axis=-1, keepdims=True)
        return RobustRun(self, np.where(kept, means, W).astype(self.dtype), number)


class RobustRun(KernelRun):
    """A start whose rows have the weights p_i / (2 distance_i)."""

    def __init__(self, space: RobustSpace, W: Array, number: int) -> None:
        super().__init__(space, W, number)
        self.alpha = space.objective.equal(len(self.alpha))

    def _weigh(self, s: float) -> tuple[Array, float, float]:
        """Weights (k, n) of the rows, and the sum of distances, twice."""
        weights = super()._weigh(-math.inf)[0]
        Y, diagonal, squares = self._combined()
        nearest = (squares[:, None] - 2 * Y).min(axis=0) + diagonal
        p = self.space.weight
        least = _SMOOTHING * float(np.average(diagonal, weights=p))
        distances = np.sqrt(np.maximum(nearest.astype(np.float64), least))
        total = float(distances.sum() if p is None else p @ distances)
        if not least > 0:  # equal rows
            return weights, total, total
        return weights * (0.5 / distances).astype(weights.dtype), total, total

    def count_distinct(self, hard: float) -> int:
        """`hard` is a sum of distances, the tolerance relative to one of squares."""
        return super().count_distinct(hard**2 / self.space.total_weight)


@parameters
class RMKKM(Clusterer):
    """Robust multiple kernel k-means (RMKKM).

    Minimises the sum of the distances of the rows to their centroids, not squared, an l21-norm, so
    that outliers count less than in kernel k-means [1]_:

        sum_i min_j (sum_l alpha_l ||phi_l(x_i) - theta_jl||^2)^(1/2)

    over centroids theta_jl and kernel weights alpha >= 0 with sum_l alpha_l^gamma = 1, gamma =
    `weight_norm`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k, from 1 to n_samples.
    n_init : "auto" or int, default="auto"
        Number of starts, at least 1; the best result is kept. "auto": ten. An array as `init` is
        always one start. All starts advance together, with one product of matrices in each pass.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that gammas are estimated from, the initial centroids and their disturbances.
        An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, from -1024 to 1024 except 0. None and -1: all that the affinity mask of
        the process, the quota of the container, OMP_NUM_THREADS and threadpoolctl allow; -2: all of
        these except one, and so on. `rffpk info` prints the limits. Small problems take fewer.
        Results are the same to the bit for any number of threads.
    verbose : int, default=0
        If not 0, each pass is reported with the start, the stage, the exponent, the objective, the
        rows visited in a second, the time elapsed, and a rough time left once a start has ended: on
        a terminal in one line that changes, if tqdm is installed, else in a line for each pass. The
        logger "rffpk" gets the same lines at level DEBUG, whatever `verbose` is.
    kernels : None, list, "du2015" or "precomputed", default=None
        A kernel for each view: a name of scikit-learn's pairwise kernels, a callable, or a pair of
        one of those and its gamma or a dict of its parameters. One array becomes as many views as
        there are kernels. "du2015": twelve kernels of one array (Du et al., IJCAI 2015): seven
        Gaussian, four polynomial and the cosine, scaled to a diagonal of one and then to [0, 1].
        "precomputed": X holds kernel matrices. None: "rbf" for each view. Unless given, the gamma
        of "rbf" and "laplacian" is 1 / (2 mean distance) over pairs of rows, squared Euclidean for
        "rbf" and the sum of absolute differences for "laplacian".
    views : list or None, default=None
        The columns of each view, if X is one array: lists or arrays of their indices or names,
        boolean masks, or slices. Such an X can be split by rows, as cross-validation does. None: X
        is a list of views, or one view. Views that are frames must have equal indices.
    weight_norm : float, default=0.5
        Exponent gamma in the constraint on the weights, from 0.05 to 0.95. The larger, the more
        weight goes to the kernels of the smallest costs. The paper chooses it by the labels from
        0.1, 0.2, ..., 0.9.
    init : {"k-means++", "random", "spectral"} or array, default="k-means++"
        Initial centroids: the means of the clusters of rows that "k-means++" (greedy, in the space
        of the mean kernel) or "random" choose, or "spectral" ones: the clusters that k-means finds
        among the rows, scaled to length one, of the n_clusters leading eigenvectors of the centered
        mean kernel. An array holds integer labels of the rows, shape (n_samples,), each of 0 to
        n_clusters - 1 at least once, or weights of the rows, shape (n_clusters, n_samples), which
        are scaled to sums of one.
    max_iter : int, default=300
        Largest number of passes of a start.
    tol : float, default=0.0001
        Tolerance >= 0: a start ends when the root mean square shift of the centroids in one pass is
        at most `tol` times the standard deviation of the features (the root of their total
        variance).
    cache : "auto", bool or int, default="auto"
        Whether kernel matrices are stored, in the dtype of X, or computed anew in each pass, block
        by block. "auto": stored if they take no more than a quarter of what the machine, or the
        container, has available, or 16 MB. A number: stored if they take no more bytes than this.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of its nearest centroid.
    dual_coef_ : ndarray of shape (n_clusters, n_samples)
        Centroids as weights of the fitted rows: theta_j = sum_i dual_coef_[j, i] phi(x_i).
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels; the sum of alpha^gamma is one.
    inertia_ : float
        Kernel k-means objective of `labels_` with the kernel sum_l alpha_l k_l: the weighted sum of
        squared distances of the rows to the means of their clusters.
    objective_ : float
        The minimised sum, weighted by the sample weights, at `dual_coef_`.
    s_ : float
        -inf: the minimum is the power mean with this exponent.
    n_iter_ : int
        Number of passes of the best start.
    cache_ : bool
        Whether the kernel matrices were stored.
    history_ : list of dict
        A record for each pass, with "stage" ("hard"), "start", "kept", "rows", "s" (minus
        infinity), "objective" at the centroids before the pass, "shift" of the centroids,
        "distinct" (number of distinct centroids), "repairs" (number of centroids moved to a row as
        no row was near them), "kernel_weights" before the pass and "seconds"; and for each start a
        record of stage "start" with "start", "kind" ("given"), "rows", "passes", "objective" and
        "outcome" ("kept", "lost" or "dropped").
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows in the clusters, as `predict_proba` returns them, of precomputed
        kernels too; set only if `store_memberships`.
    probabilities_ : ndarray of shape (n_samples,)
        Membership of each row in its own cluster, 0 for noise; there only if `store_memberships`.
    n_features_in_ : int
        Number of columns of X in `fit`; if X was a list of views, of all of them together.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns of X in `fit`; set only if X was one array and all of its columns have
        names that are strings.
    membership_exponent_ : float
        Exponent of the memberships that `predict_proba` gives unless told otherwise: -(1 + d)/2
        with the effective dimension d of the clusters: 1/lambda_max of the mean of zz' over the
        unit vectors z from centroids to their rows.
    linkage_ : ndarray of shape (n_clusters - 1, 4)
        Ward's tree of the clusters, by centroids and weights, as a linkage matrix of SciPy: half
        the square of a height is what the merger adds to the k-means objective, in the space of the
        centroids. The last column counts clusters. Computed when it is asked for, in
        O(n_clusters^2) time and memory.

    Raises
    ------
    ValueError, TypeError
        If a parameter or a view is not as described; the view is named.
    MemoryError
        If ``cache=True`` and the kernels take more than a quarter of the available memory.

    Notes
    -----
    The concave square root lies below its tangents: with D_i = 1 / (2 distance_i) the sum of
    D_i distance_i^2 bounds the objective from above, up to a constant, and touches it. A pass
    assigns the rows to the nearest centroids, moves these to the means weighted by D, and takes the
    weights alpha_l ~ h_l^(1 / (gamma - 1)) that minimise sum_l alpha_l h_l, h_l = sum_i D_i
    ||phi_l(x_i) - theta_l||^2. So the objective never rises (but for rounding, and the dtype of
    X). Squared distances have 1e-8 of the mean squared norm added, so that D is finite.

    The paper's release iterates centroids to convergence between two updates of the weights; here
    each pass updates all. With n rows O(L n^2) memory if the kernels are stored; a pass of all
    starts is one product of matrices for each kernel, O(L n^2 n_clusters n_init). Sample weights,
    which the paper does not have, are factors of the rows' distances.

    References
    ----------
    .. [1] Du, Zhou, Shi, Wang, Fan, Yang, Shen: Robust multiple kernel k-means using l21-norm.
       IJCAI 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import RMKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> RMKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
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

    fit, _measure = fit_by_kernels, measure

    def _check_parameters(self) -> None:
        check_search(self, get_args(Init))
        check_kernels(self.kernels)
        validation.check_real(self.weight_norm, "weight_norm", 0.05, 0.95)

    def _problem(self) -> KernelProblem:
        return KernelProblem(
            self.kernels, self._plan, self.init, NormedWeights(float(self.weight_norm)),
            several=True, space=RobustSpace, smoothing=_SMOOTHING, published=self._published,
        )  # fmt: skip

    def _plan(self, k: int, critical: float, in_components: bool) -> Plan:
        schedule = Schedule(-math.inf, -math.inf, int(self.max_iter), float(self.tol))
        return Plan(given_starts(schedule, self.init, self.n_init, _AUTO_STARTS))

    def _published(self, run: KernelRun) -> None:
        self.kernel_weights_ = run.alpha

"""Kernel k-means and kernel power k-means with exact kernels, of one and of several kernels."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

from rffpk._anneal import search
from rffpk._anneal.kernel_fit import KernelInit, KernelProblem, check_search, measure
from rffpk._anneal.kernel_fit import fit as fit_by_kernels
from rffpk._anneal.kernel_steps import KernelRun
from rffpk._anneal.objective import WeightedViews
from rffpk._docs import EXACT, HARD_EXACT, VIEWS, documented
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import Clusterer, parameters
from rffpk._utils.validation import Auto, is_option
from rffpk.maps.fourier import Gamma
from rffpk.maps.kernels import PRECOMPUTED, check_kernels, check_one_kernel, one_kernel

# Numbers of starts if n_init is "auto" (docs/exact.md): ...
_AUTO_STARTS = 8  # ... of different kinds, ...
_STARTS_BEFORE_SWAPS = 5  # ... with swaps after them, ...
_AUTO_EQUAL_STARTS = 10  # ... and of one kind.


@documented(
    HARD_EXACT, "labels_", "dual_coef_", "inertia_", "objective_", "s_", "n_iter_", "cache_",
    "history_", "memberships_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class KernelKMeans(Clusterer):
    """Kernel k-means, by Lloyd's iterations in the space of an exact kernel.

    Minimises sum_i min_j ||phi(x_i) - theta_j||^2 over centroids theta_j in the space of the
    kernel, where distances follow from the kernel alone [1]_.

    Parameters
    ----------
    n_init : "auto" or int
        Number of starts, at least 1; the best result is kept. "auto": ten. An array as `init` is
        always one start. All starts advance together, with one product of matrices in each pass.
    tol : float
        Tolerance >= 0: a start ends when the root mean square shift of the centroids in one pass is
        at most `tol` times the standard deviation of the features (the root of their total
        variance); 0: when no label changes.
    random_state : int, RandomState instance or None
        Draws the rows that gamma is estimated from and the initial centroids. An int gives the same
        result in each call.

    Attributes
    ----------
    objective_ : float
        The minimised sum, weighted by the sample weights, at `dual_coef_`.
    s_ : float
        -inf: the minimum is the power mean with this exponent.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the kernel takes more than `memory_limit`.

    Notes
    -----
    With n rows O(n^2) memory if the kernel is stored, otherwise O(n n_clusters n_init); a pass of
    all starts is one product of an n x n with an n x (n_clusters n_init) matrix. The kernel of a
    float32 X has errors of some 1e-7 of its spread.

    References
    ----------
    .. [1] Dhillon, Guan, Kulis: Kernel k-means, spectral clustering and normalized cuts. KDD 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from rffpk import KernelKMeans
    >>> X, _ = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> KernelKMeans(2, gamma=5.0, random_state=0).fit(X).dual_coef_.shape
    (2, 200)
    """

    kernel: Any = "rbf"
    gamma: Gamma | float | None = "mean"
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    init: KernelInit | Any = "k-means++"
    max_iter: int = 300
    tol: float = 0.0
    cache: Auto | bool = "auto"
    memory_limit: int | None = None
    # what a fit sets
    dual_coef_: Array = field(init=False)
    cache_: bool = field(init=False)

    fit, _measure = fit_by_kernels, measure

    def _check_parameters(self) -> None:
        check_search(self)
        check_one_kernel(self, PRECOMPUTED)

    def _problem(self, **more: Any) -> KernelProblem:
        precomputed = is_option(self.kernel, PRECOMPUTED)
        kernels = PRECOMPUTED if precomputed else [one_kernel(self)]
        return KernelProblem(kernels, self._plan, **more)

    def _plan(self, k: int, critical: float, in_components: bool) -> search.Plan:
        schedule = search.Schedule(-math.inf, -math.inf, int(self.max_iter), float(self.tol))
        starts = search.given_starts(schedule, self.init, self.n_init, _AUTO_EQUAL_STARTS)
        return search.Plan(starts)


@documented(
    EXACT, "labels_", "dual_coef_", "inertia_", "objective_", "s_", "n_iter_", "cache_", "history_",
    "memberships_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class KernelPowerKMeans(KernelKMeans):
    """Kernel power k-means with an exact kernel (KPK).

    Power k-means in the space of a kernel [1]_: minimises sum_i M_s(d_i1, ..., d_ik) over k
    centroids theta_j, with d_ij = ||phi(x_i) - theta_j||^2 and the power mean M_s(y) = ((1/k) sum_j
    y_j^s)^(1/s) with exponent s < 0. While s falls to minus infinity the power mean falls to the
    minimum, and the objective becomes that of kernel k-means. `RFFKernelPowerKMeans` does the same
    with random features, in time and memory linear in n_samples.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the kernel takes more than `memory_limit`.

    Notes
    -----
    With n rows O(n^2) memory if the kernel is stored, otherwise O(n n_clusters n_init); a pass of
    all starts is one product of an n x n with an n x (n_clusters n_init) matrix. Default starts run
    one after the other on the r leading principal components of the kernel that the hard objective
    needs, if these are fewer than n / 4 or n is at most 1000, and `memory_limit` allows O(n r)
    memory. The kernel of a float32 X has errors of some 1e-7 of its spread.

    The protocol of [1]_ is ``s0=-1.0, anneal_factor=1.04, anneal_every=5, init="random",
    n_init=20``.

    References
    ----------
    .. [1] Paul, Chakraborty, Das, Xu: Kernel k-means, by all means: algorithms and strong
       consistency.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from rffpk import KernelPowerKMeans
    >>> X, _ = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> KernelPowerKMeans(2, gamma=5.0, random_state=0).fit(X).predict_proba(X).shape
    (200, 2)
    """

    s0: Auto | float = "auto"
    anneal_factor: Auto | float = "auto"
    anneal_every: Auto | int = "auto"
    s_final: search.Hard | float = "hard"
    stop: search.Stop = "annealed"
    max_iter: int = 1000
    tol: float = 1e-4

    def _check_parameters(self) -> None:
        super()._check_parameters()
        search.check_annealing(self)

    def _problem(self, **more: Any) -> KernelProblem:
        default = search.is_automatic(self) and is_option(self.s_final, "hard")
        return super()._problem(annealed=True, components=default, **more)

    def _plan(self, k: int, critical: float, in_components: bool) -> search.Plan:
        if in_components and is_option(self.n_init, "auto"):
            starts = search.annealed_starts(self, critical, _STARTS_BEFORE_SWAPS)
            return search.Plan(starts, search.automatic_swaps(k))
        return search.Plan(search.annealed_starts(self, critical, _AUTO_STARTS))


@documented(
    EXACT | VIEWS, "labels_", "dual_coef_", "kernel_weights_", "inertia_", "objective_", "lambda_",
    "s_", "n_iter_", "cache_", "history_", "memberships_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class MultiKernelPowerKMeans(Clusterer):
    """Kernel power k-means of several views or exact kernels at once (MKPK).

    Minimises [1]_

        sum_i M_s(d_i1, ..., d_ik) + lambda sum_l alpha_l log(L alpha_l),
        d_ij = sum_l alpha_l ||phi_l(x_i) - theta_jl||^2,

    over centroids theta_jl and weights alpha >= 0, of sum one, of L kernels, while the exponent s
    of the power mean M_s(y) = ((1/k) sum_j y_j^s)^(1/s) falls to minus infinity.
    `RFFMultiKernelPowerKMeans` does the same with random features.

    Attributes
    ----------
    inertia_ : float
        Kernel k-means objective of `labels_` with the kernel sum_l alpha_l k_l: the weighted sum of
        squared distances of the rows to the means of their clusters.
    objective_ : float
        What is minimised, with the sum over rows weighted by the sample weights, at the exponent
        `s_` and `dual_coef_`.

    Raises
    ------
    ValueError, TypeError
        If a parameter or a view is not as described; the view is named.
    MemoryError
        If ``cache=True`` and the kernels take more than `memory_limit`.

    Notes
    -----
    A pass takes one product of matrices for each kernel, which also gives the sums of squared
    distances that the kernel weights depend on. With n rows O(L n^2) memory if the kernels are
    stored. The centroids of kernel l are theta_jl = sum_i dual_coef_[j, i] phi_l(x_i), and `init`
    chooses them with the mean of the kernels. The kernels "du2015" are those of [2]_. Where rows
    lack views `dual_coef_` is of shape (n_views, n_clusters, n_samples), a matrix for each kernel;
    this takes views, not precomputed kernels, and no ``init="spectral"``.

    References
    ----------
    .. [1] Paul, Chakraborty, Das, Xu: Kernel k-means, by all means: algorithms and strong
       consistency.
    .. [2] Du et al.: Robust multiple kernel k-means using l21-norm. IJCAI 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import MultiKernelPowerKMeans
    >>> X, _ = load_iris(return_X_y=True)
    >>> MultiKernelPowerKMeans(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
    """

    kernels: Any = None
    views: Any = None
    weight_entropy: float = 1.0
    s0: Auto | float = "auto"
    anneal_factor: Auto | float = "auto"
    anneal_every: Auto | int = "auto"
    s_final: search.Hard | float = "hard"
    stop: search.Stop = "annealed"
    init: KernelInit | Any = "k-means++"
    allow_missing_views: bool = False
    max_iter: int = 1000
    tol: float = 1e-4
    cache: Auto | bool = "auto"
    memory_limit: int | None = None
    # what a fit sets
    dual_coef_: Array = field(init=False)
    kernel_weights_: Array = field(init=False)
    lambda_: float = field(init=False)
    cache_: bool = field(init=False)

    fit, _measure = fit_by_kernels, measure

    def _check_parameters(self) -> None:
        check_search(self)
        search.check_annealing(self)
        check_kernels(self.kernels)
        may_lack = validation.check_bool(self.allow_missing_views, "allow_missing_views")
        if may_lack and is_option(self.kernels, PRECOMPUTED):
            raise ValueError("allow_missing_views needs views, but kernels == 'precomputed'.")
        validation.check_real(self.weight_entropy, "weight_entropy", 1e-30, 1e30)

    def _problem(self) -> KernelProblem:
        default = search.is_automatic(self) and is_option(self.s_final, "hard")
        return KernelProblem(
            self.kernels, self._plan, self._objective, several=True, annealed=True,
            components=default, published=self._published,
        )  # fmt: skip

    def _objective(self, coverage: Array | None) -> WeightedViews:
        return WeightedViews(float(self.weight_entropy), coverage=coverage)

    def _plan(self, k: int, critical: float, in_components: bool) -> search.Plan:
        return search.Plan(search.annealed_starts(self, critical, _AUTO_STARTS))

    def _published(self, run: KernelRun) -> None:
        space, total = run.space, run.alpha.sum()
        self.kernel_weights_ = run.alpha if space.present is None else run.alpha / total
        unit = space.context.history.unit
        self.lambda_ = float(self.weight_entropy) * space.total_weight * unit

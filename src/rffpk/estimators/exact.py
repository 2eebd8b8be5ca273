"""Kernel k-means and kernel power k-means with exact kernels, of one and of several kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import Any, get_args

from rffpk.anneal.kernel_fit import KernelInit, KernelProblem
from rffpk.anneal.plan import SearchParameters
from rffpk.anneal.records import PowerMean, WeightedViews
from rffpk.anneal.schedule import FitContext, Plan
from rffpk.estimators.annealing import OF_KERNELS, Annealing, Word, search_parameters
from rffpk.estimators.base import Clusterer, parameters
from rffpk.estimators.fitting import fit_kernels, kernel_model
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Numbers
from rffpk.rows.door import Schema
from rffpk.rows.store import Cache, check_cache
from rffpk.spaces.fourier import Gamma
from rffpk.spaces.kernels import (
    PRECOMPUTED,
    Kernels,
    PairwiseKernel,
    Precomputed,
    check_kernels,
    one_kernel,
)
from rffpk.system.tuning import TUNING


@parameters
class KernelKMeans(Clusterer):
    """Kernel k-means, by Lloyd's iterations in the space of an exact kernel.

    Minimizes sum_i min_j ||phi(x_i) - theta_j||^2 over centroids theta_j in the space of the kernel
    (Dhillon, Guan, Kulis: Kernel k-means, spectral clustering and normalized cuts. KDD 2004).
    Starts run on principal components of the kernel; the best ends with passes over the kernel, of
    O(n^2 k) time for n rows, and O(n^2) memory if it is stored, else O(n k). The kernel of a
    float32 X has errors of some 1e-7 of its spread. ``docs/maintainers/exact.md`` has the starts
    and times.

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
    kernel : str or callable, default="rbf"
        A pairwise kernel of scikit-learn, a function of two rows, or "precomputed" (X is it).
    gamma : {"mean", "median", "scale"}, float or None, default="mean"
        A number > 0. "mean", "median": 1 / (2 mean or median distance), for "rbf" squared; "scale":
        1 / (n_features X.var()). None, and words for other kernels: scikit-learn's default.
    kernel_params : dict or None, default=None
        Of a callable; of a name: "degree" >= 0 (default 3), "coef0" (1), "gamma" (over `gamma`).
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        Initial centroids: rows; "k-means" adds passes; "spectral": clusters of eigenvectors. An
        array: labels of rows, each in use, or weights of rows, shape (n_clusters, n_samples).
    max_iter : int, default=300
        Largest number of passes of a start, and of passes of ``init="k-means"`` before it.
    tol : float, default=0.0
        Passes end when centroids move by `tol` >= 0 deviations at most; 0: when no label changes.
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
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimized sum; its s, -inf; s of `predict_proba`.
    n_iter_, history_, cache_ : int and list of dict and bool
        Passes of the best start; records (keys: ``docs/api.md``); whether kernels were stored.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.

    Examples
    --------
    >>> from rffpk import KernelKMeans
    >>> KernelKMeans(2, random_state=0).fit_predict([[0.0], [0.2], [5.0], [5.2]]).tolist()
    [1, 1, 0, 0]
    """

    kernel: PairwiseKernel | Precomputed | Callable[..., float] = "rbf"
    gamma: Gamma | float | None = "mean"
    kernel_params: dict[str, Any] | None = None
    init: KernelInit | Numbers = "k-means++"
    max_iter: int = 300
    tol: float = 0.0
    cache: Cache = "auto"
    # what a fit sets
    dual_coef_: Array = field(init=False)
    cache_: bool = field(init=False)

    fit, _fitted_model = fit_kernels, kernel_model

    annealing: Any = field(default=None, init=False)  # a parameter of KernelPowerKMeans

    _annealed, _takes = False, Schema("", "kernels", warns_of_kernels=True)

    def _problem(self) -> KernelProblem:
        kernel = one_kernel(self.kernel, self.gamma, self.kernel_params, PRECOMPUTED)
        given = PRECOMPUTED if kernel.metric == PRECOMPUTED else [kernel]
        return _problem_of(self, given, PowerMean())


@parameters
class KernelPowerKMeans(KernelKMeans):
    """Kernel power k-means with an exact kernel (KPK).

    Minimizes sum_i M_s(d_i1, ..., d_ik) over k centroids theta_j in the space of a kernel, with
    d_ij = ||phi(x_i) - theta_j||^2 and M_s(y) = ((1/k) sum_j y_j^s)^(1/s), while s < 0 falls to
    minus infinity, where this is kernel k-means (Paul, Chakraborty, Das, Xu: Kernel k-means, by all
    means: algorithms and strong consistency; its protocol is ``annealing="paper", n_init=20``).
    Starts run on principal components of the kernel; the best ends with passes over the kernel, of
    O(n^2 k) time for n rows, and O(n^2) memory if it is stored, else O(n k); `RFFKernelPowerKMeans`
    takes time linear in n. Kernels of a float32 X have errors of 1e-7 of its spread or so.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Starts, >= 1; the best is kept. "auto": 8, or 5 and swaps; 1 for another `init` or schedule.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernel : str or callable, default="rbf"
        A pairwise kernel of scikit-learn, a function of two rows, or "precomputed" (X is it).
    gamma : {"mean", "median", "scale"}, float or None, default="mean"
        A number > 0. "mean", "median": 1 / (2 mean or median distance), for "rbf" squared; "scale":
        1 / (n_features X.var()). None, and words for other kernels: scikit-learn's default.
    kernel_params : dict or None, default=None
        Of a callable; of a name: "degree" >= 0 (default 3), "coef0" (1), "gamma" (over `gamma`).
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        Initial centroids: rows; "k-means" adds passes; "spectral": clusters of eigenvectors. An
        array: labels of rows, each in use, or weights of rows, shape (n_clusters, n_samples).
    max_iter : int, default=1000
        Largest number of passes of a start, and of passes of ``init="k-means"`` before it.
    tol : float, default=0.0001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
    cache : "auto", bool or int, default="auto"
        Bytes for stored kernels. "auto": a quarter of free memory. True: all, or a MemoryError.
    annealing : {"auto", "paper"}, Annealing or None, default="auto"
        How s falls. "auto": adaptively, then k-means; None: k-means alone; "paper": as published.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    dual_coef_ : ndarray of shape (n_clusters, n_samples)
        Centroids as weights of the fitted rows: theta_j = sum_i dual_coef_[j, i] phi(x_i).
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimized sum; its last finite s; s of `predict_proba`.
    n_iter_, history_, cache_ : int and list of dict and bool
        Passes of the best start; records (keys: ``docs/api.md``); whether kernels were stored.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.

    Examples
    --------
    >>> from rffpk import KernelPowerKMeans
    >>> KernelPowerKMeans(2, random_state=0).fit_predict([[0.0], [0.2], [5.0], [5.2]]).tolist()
    [1, 1, 0, 0]
    """

    annealing: Annealing | Word | None = "auto"
    max_iter: int = 1000
    tol: float = 1e-4

    _annealed, _paper = True, OF_KERNELS


@parameters
class MultiKernelPowerKMeans(Clusterer):
    """Kernel power k-means of several views or exact kernels at once (MKPK).

    Minimizes (Paul et al.: Kernel k-means, by all means: algorithms and strong consistency)

        sum_i M_s(d_i1, ..., d_ik) + lambda sum_l alpha_l log(L alpha_l),
        d_ij = sum_l alpha_l ||phi_l(x_i) - theta_jl||^2,

    over centroids theta_jl and weights alpha >= 0, of sum one, of L kernels, while the exponent s
    of M_s(y) = ((1/k) sum_j y_j^s)^(1/s) falls to minus infinity. Starts run on principal
    components of the weighted sum of the kernels; the best ends with passes over the kernels, of
    O(L n^2 k) time for n rows, and O(L n^2) memory if they are stored
    (``docs/maintainers/exact.md``).

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Starts, >= 1; the best is kept. "auto": 8, or 5 and swaps; 1 for another `init` or schedule.
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
    weight_entropy : float, default=1.0
        Lambda over the sum of sample weights, 1e-30 to 1e30; small: few views get the weight.
    annealing : {"auto", "paper"}, Annealing or None, default="auto"
        How s falls. "auto": adaptively, then k-means; None: k-means alone; "paper": as published.
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        Initial centroids: rows; "k-means" adds passes; "spectral": clusters of eigenvectors. An
        array: labels of rows, each in use, or weights of rows, shape (n_clusters, n_samples).
    max_iter : int, default=1000
        Largest number of passes of a start, and of passes of ``init="k-means"`` before it.
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
        Weights alpha >= 0 of the views, of sum one; `inertia_` is of the kernel sum_l alpha_l k_l.
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimized sum; its last finite s; s of `predict_proba`.
    lambda_ : float
        Entropy weight: `weight_entropy` times the sum of the sample weights.
    n_iter_, history_, cache_ : int and list of dict and bool
        Passes of the best start; records (keys: ``docs/api.md``); whether kernels were stored.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import MultiKernelPowerKMeans
    >>> views = [[[0.0], [0.2], [5.0], [5.2]], [[1.0], [1.1], [7.0], [7.1]]]  # of four rows
    >>> MultiKernelPowerKMeans(2, random_state=0).fit_predict(views).tolist()
    [1, 1, 0, 0]
    """

    kernels: Kernels = None
    views: Any = None
    weight_entropy: float = 1.0
    annealing: Annealing | Word | None = "auto"
    init: KernelInit | Numbers = "k-means++"
    max_iter: int = 1000
    tol: float = 1e-4
    cache: Cache = "auto"
    # what a fit sets
    dual_coef_: Array = field(init=False)
    kernel_weights_: Array = field(init=False)
    lambda_: float = field(init=False)
    cache_: bool = field(init=False)

    fit, _fitted_model = fit_kernels, kernel_model
    _annealed, _paper = True, OF_KERNELS
    _takes = Schema("", "kernels", several=True, warns_of_kernels=True)

    def _problem(self) -> KernelProblem:
        check_kernels(self.kernels)
        entropy = checks.check_real(self.weight_entropy, "weight_entropy", 1e-30, 1e30)
        return _problem_of(self, self.kernels, WeightedViews(entropy))


# ---- the starts ----------------------------------------------------------------------------------


def _problem_of(model: Any, kernels: Any, objective: PowerMean) -> KernelProblem:
    """Return the problem of a fit with the `kernels`: its objective and the plan of its starts.

    Starts run on principal components of the kernels if annealing has its defaults and ends hard,
    or if there is no annealing. With any other schedule they run on the kernels themselves."""
    given = search_parameters(model, get_args(KernelInit), "an array")
    if not model._annealed and given.n_init is None:
        given = replace(given, n_init=TUNING.starts.exact_equal)
    on_components = given.ends_hard and (given.is_default or given.start == -math.inf)
    return KernelProblem(
        kernels, partial(_plan, given, on_components), given.init, check_cache(model.cache),
        objective, several=objective.learns_weights, annealed=model._annealed,
        exact=not on_components,
    )  # fmt: skip


def _plan(search: SearchParameters, hard: bool, context: FitContext, critical: float) -> Plan:
    """Return the plan of a search: its starts and its swaps.

    `hard`: the starts run on principal components. Only then are centroids swapped, which may add
    centroids for some passes, up to `most` in all. `critical` is the critical exponent."""
    # an infinite critical exponent becomes 0, which lowers no start
    critical = critical if math.isfinite(critical) else 0.0
    swaps, most = 0, context.k
    if hard:
        swaps, most = search.swaps_of(context, search.differs and search.n_init is None)
    tuning = TUNING.starts
    starts = search.starts(critical, tuning.exact_before_swaps if swaps else tuning.exact)
    return Plan(starts, most, swaps, critical=critical)

"""Kernel k-means and kernel power k-means with exact kernels, of one and of several kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any

from rffpk._anneal import search
from rffpk._anneal.annealing import (
    OF_KERNELS,
    Annealing,
    SearchParameters,
    Word,
    automatic_swaps,
    check_annealing,
    search_parameters,
)
from rffpk._anneal.kernel_fit import KernelInit, KernelProblem, check_search, measure
from rffpk._anneal.kernel_fit import fit as fit_by_kernels
from rffpk._anneal.kernel_steps import KernelRun
from rffpk._anneal.objective import WeightedViews
from rffpk._rows.store import Cache
from rffpk._utils import validation
from rffpk._utils.arrays import Array, Numbers
from rffpk._utils.estimator import Clusterer, parameters
from rffpk._utils.validation import is_option
from rffpk.maps.fourier import Gamma
from rffpk.maps.kernels import (
    PRECOMPUTED,
    Kernels,
    PairwiseKernel,
    Precomputed,
    check_kernels,
    check_one_kernel,
    one_kernel,
)

# Numbers of starts if n_init is "auto" (docs/exact.md): ...
_AUTO_STARTS = 8  # ... of different kinds, ...
_STARTS_BEFORE_SWAPS = 5  # ... with swaps after them, ...
_AUTO_EQUAL_STARTS = 10  # ... and of one kind.


@parameters
class KernelKMeans(Clusterer):
    """Kernel k-means, by Lloyd's iterations in the space of an exact kernel.

    Minimises sum_i min_j ||phi(x_i) - theta_j||^2 over centroids theta_j in the space of the
    kernel, where distances follow from the kernel alone [1]_.

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
        Draws the rows that gamma is estimated from and the initial centroids. An int gives the same
        result in each call.
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
    kernel : str or callable, default="rbf"
        Kernel: a name of scikit-learn's pairwise kernels, "precomputed" (X is then the kernel
        matrix), or a function of two rows.
    gamma : {"mean", "median", "scale"}, float or None, default="mean"
        Parameter of the kernels that have one; a callable does not get it. The words are for "rbf"
        and "laplacian"; other kernels then take scikit-learn's default, as all do for None. "mean":
        1 / (2 mean distance) over all pairs of rows, in the kernel's own distance: squared
        Euclidean, for "laplacian" the sum of absolute differences. "median": the same with the
        median. "scale": 1 / (n_features * X.var()). The mean of squared Euclidean distances is
        exact; other means and medians are over the pairs of at most 1000 random rows. A few far
        rows may make a mean so large that the kernel is constant on the others, with a warning; not
        a median. If all rows are equal, gamma is 1. A number must be > 0.
    kernel_params : dict or None, default=None
        Parameters of a callable; of a named kernel "degree" (>= 0, by default 3) and "coef0" (the
        constant term, by default 1) of "polynomial", "coef0" of "sigmoid", and "gamma", which comes
        before the parameter `gamma`.
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        Initial centroids. "k-means++" (greedy, in the space of the kernel) and "random" choose them
        among the rows. "k-means" chooses as "k-means++" and goes on with passes of k-means, at most
        `max_iter`, before a start. "spectral": the clusters that k-means finds among the rows,
        scaled to length one, of the n_clusters leading eigenvectors of the centered kernel. An
        array holds integer labels of the rows, shape (n_samples,), each of 0 to n_clusters - 1 at
        least once, or weights of the rows, shape (n_clusters, n_samples), which are scaled to sums
        of one.
    max_iter : int, default=300
        Largest number of passes of a start. ``init="k-means"`` may take as many before.
    tol : float, default=0.0
        Tolerance >= 0: a start ends when the root mean square shift of the centroids in one pass is
        at most `tol` times the standard deviation of the features (the root of their total
        variance); 0: when no label changes.
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
    inertia_ : float
        Kernel k-means objective of `labels_`: the weighted sum of squared distances of the rows to
        the means of their clusters, in the space of the kernel.
    objective_ : float
        The minimised sum, weighted by the sample weights, at `dual_coef_`.
    s_ : float
        -inf: the minimum is the power mean with this exponent.
    n_iter_ : int
        Number of passes of the best start.
    cache_ : bool
        Whether the kernel matrices were stored.
    history_ : list of dict
        Records of what was done, in order. Each pass has a record with "stage", "start" (number of
        its start, from 0), "kept" (whether the result goes back to this start), "rows" (number of
        rows visited), "s" (the exponent; -inf for hard assignment), "objective" (before the
        centroids moved), "shift" (of the centroids, relative as in `tol`), "distinct" (number of
        centroids that do not coincide; swaps of batches have more centroids than n_clusters for
        some passes), "repairs" (number of empty clusters whose centroid was moved to one of the
        rows farthest from theirs), "kernel_weights" (of the views, before the pass) and "seconds".
        The stages are "k-means" (of ``init="k-means"``) and "hard" (of the start after that). After
        all starts each of them has a record of stage "start" with "start", "kind" ("given"),
        "rows", "passes", "objective" (at its end) and "outcome" ("kept" or "lost").
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows in the clusters, as `predict_proba` returns them, of precomputed
        kernels too; set only if `store_memberships`.
    probabilities_ : ndarray of shape (n_samples,)
        Membership of each row in its own cluster, 0 for noise; there only if `store_memberships`.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns of X in `fit`; set only if all of them have names that are strings.
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
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the kernel takes more than a quarter of the available memory.

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

    fit, _measure = fit_by_kernels, measure

    def _check_parameters(self) -> None:
        check_search(self)
        check_one_kernel(self, PRECOMPUTED)

    def _problem(self, **more: Any) -> KernelProblem:
        precomputed = is_option(self.kernel, PRECOMPUTED)
        kernels = PRECOMPUTED if precomputed else [one_kernel(self)]
        return KernelProblem(kernels, **{"plan": self._plan, "init": self.init, **more})

    def _plan(self, k: int, critical: float, in_components: bool) -> search.Plan:
        schedule = search.Schedule(-math.inf, -math.inf, int(self.max_iter), float(self.tol))
        starts = search.given_starts(schedule, self.init, self.n_init, _AUTO_EQUAL_STARTS)
        return search.Plan(starts)


@parameters
class KernelPowerKMeans(KernelKMeans):
    """Kernel power k-means with an exact kernel (KPK).

    Power k-means in the space of a kernel [1]_: minimises sum_i M_s(d_i1, ..., d_ik) over k
    centroids theta_j, with d_ij = ||phi(x_i) - theta_j||^2 and the power mean M_s(y) = ((1/k) sum_j
    y_j^s)^(1/s) with exponent s < 0. While s falls to minus infinity the power mean falls to the
    minimum, and the objective becomes that of kernel k-means. `RFFKernelPowerKMeans` does the same
    with random features, in time and memory linear in n_samples.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k, from 1 to n_samples.
    n_init : "auto" or int, default="auto"
        Number of starts; the best result is kept. If `init` is "k-means++", and `annealing` is
        "auto" or sets `end` and `swaps` alone, the starts differ: the last one is annealed slowly
        from the critical exponent, with random disturbances of the centroids before each stage; the
        others are, in turn, annealed quickly from the smaller of -5 and twice the critical
        exponent, and not annealed at all (plain k-means++). A start is dropped when the power mean
        is within 1 % of its limit and the objective 2 % above the best result so far. "auto": if
        the starts differ, eight, or five if they run on principal components of one kernel, where
        single centroids are then swapped; otherwise one. An array as `init` is always one start.
        Starts with the kernel itself advance together, with one product of matrices in each pass.
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
    kernel : str or callable, default="rbf"
        Kernel: a name of scikit-learn's pairwise kernels, "precomputed" (X is then the kernel
        matrix), or a function of two rows.
    gamma : {"mean", "median", "scale"}, float or None, default="mean"
        Parameter of the kernels that have one; a callable does not get it. The words are for "rbf"
        and "laplacian"; other kernels then take scikit-learn's default, as all do for None. "mean":
        1 / (2 mean distance) over all pairs of rows, in the kernel's own distance: squared
        Euclidean, for "laplacian" the sum of absolute differences. "median": the same with the
        median. "scale": 1 / (n_features * X.var()). The mean of squared Euclidean distances is
        exact; other means and medians are over the pairs of at most 1000 random rows. A few far
        rows may make a mean so large that the kernel is constant on the others, with a warning; not
        a median. If all rows are equal, gamma is 1. A number must be > 0.
    kernel_params : dict or None, default=None
        Parameters of a callable; of a named kernel "degree" (>= 0, by default 3) and "coef0" (the
        constant term, by default 1) of "polynomial", "coef0" of "sigmoid", and "gamma", which comes
        before the parameter `gamma`.
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        Initial centroids. "k-means++" (greedy, in the space of the kernel) and "random" choose them
        among the rows. "k-means" chooses as "k-means++" and goes on with passes of k-means, at most
        `max_iter`, before a start. "spectral": the clusters that k-means finds among the rows,
        scaled to length one, of the n_clusters leading eigenvectors of the centered kernel. An
        array holds integer labels of the rows, shape (n_samples,), each of 0 to n_clusters - 1 at
        least once, or weights of the rows, shape (n_clusters, n_samples), which are scaled to sums
        of one. Centroids that are given are kept: if `annealing` is "auto", or sets `end` and
        `swaps` alone, they are not annealed, but moved at once by passes at the end of annealing.
    max_iter : int, default=1000
        Largest number of passes of a start. ``init="k-means"`` may take as many before.
    tol : float, default=0.0001
        Tolerance >= 0: passes have converged when the root mean square shift of the centroids in
        one pass is at most `tol` times the standard deviation of the features (the root of their
        total variance). At 1e-3 a pass of k-means lowers the objective by some millionths of
        itself.
    cache : "auto", bool or int, default="auto"
        Whether kernel matrices are stored, in the dtype of X, or computed anew in each pass, block
        by block. "auto": stored if they take no more than a quarter of what the machine, or the
        container, has available, or 16 MB. A number: stored if they take no more bytes than this.
    annealing : {"auto", "paper"}, Annealing or None, default="auto"
        How the exponent s falls. "auto": as an `Annealing` with its defaults says, from the
        critical exponent, while the centroids converge at each stage, to passes of k-means; its
        other values are for other schedules, and for rows that stay assigned softly. None: not at
        all, which is plain k-means from `init`. "paper": as the source paper says,
        ``Annealing(start=-1.0, factor=1.04, passes=5)`` with `init` "random" in place of its
        default.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of its nearest centroid.
    dual_coef_ : ndarray of shape (n_clusters, n_samples)
        Centroids as weights of the fitted rows: theta_j = sum_i dual_coef_[j, i] phi(x_i).
    inertia_ : float
        Kernel k-means objective of `labels_`: the weighted sum of squared distances of the rows to
        the means of their clusters, in the space of the kernel.
    objective_ : float
        sum_i M_s, weighted by the sample weights, at the exponent `s_` and `dual_coef_`.
    s_ : float
        Last finite exponent of the best start. If that start was plain k-means: the last finite
        exponent of the last start; if no start was annealed, the exponent at which annealing would
        end at the best centroids.
    n_iter_ : int
        Number of passes of the best start.
    cache_ : bool
        Whether the kernel matrices were stored.
    history_ : list of dict
        Records of what was done, in order. Each pass has a record with "stage", "start" (number of
        its start, from 0), "kept" (whether the result goes back to this start), "rows" (number of
        rows visited), "s" (the exponent; -inf for hard assignment), "objective" (before the
        centroids moved), "shift" (of the centroids, relative as in `tol`), "distinct" (number of
        centroids that do not coincide; swaps of batches have more centroids than n_clusters for
        some passes), "repairs" (number of empty clusters whose centroid was moved to one of the
        rows farthest from theirs), "kernel_weights" (of the views, before the pass) and "seconds".
        The stages are "k-means" (of ``init="k-means"``), "anneal" (while s falls), "hard" (passes
        of k-means after annealing), "settle" (passes at a finite exponent until convergence) and
        "swap" (passes after a centroid was swapped, see `n_init`). On principal components the
        passes of a start follow a record of stage "seeding" with the number of "rows". After all
        starts each of them has a record of stage "start" with "start", "kind" ("given": as the
        parameters say; "critical", "low", "k-means++": slowly annealed, quickly annealed and not
        annealed starts, see `n_init`), "rows", "passes", "objective" (at its end; infinite if it
        was dropped) and "outcome" ("kept", "lost" or "dropped").
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows in the clusters, as `predict_proba` returns them, of precomputed
        kernels too; set only if `store_memberships`.
    probabilities_ : ndarray of shape (n_samples,)
        Membership of each row in its own cluster, 0 for noise; there only if `store_memberships`.
    n_features_in_ : int
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns of X in `fit`; set only if all of them have names that are strings.
    membership_exponent_ : float
        Exponent of the memberships that `predict_proba` gives unless told otherwise: `s_` if rows
        were assigned softly, else -(1 + d)/2 with the effective dimension d of the clusters:
        1/lambda_max of the mean of zz' over the unit vectors z from centroids to their rows.
    linkage_ : ndarray of shape (n_clusters - 1, 4)
        Ward's tree of the clusters, by centroids and weights, as a linkage matrix of SciPy: half
        the square of a height is what the merger adds to the k-means objective, in the space of the
        centroids. The last column counts clusters. Computed when it is asked for, in
        O(n_clusters^2) time and memory.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the kernel takes more than a quarter of the available memory.

    Notes
    -----
    With n rows O(n^2) memory if the kernel is stored, otherwise O(n n_clusters n_init); a pass of
    all starts is one product of an n x n with an n x (n_clusters n_init) matrix. Default starts run
    one after the other on the r leading principal components of the kernel that the hard objective
    needs, if these are fewer than n / 4 or n is at most 1000, and memory for O(n r) numbers is
    available. The kernel of a float32 X has errors of some 1e-7 of its spread.

    The protocol of [1]_ is ``annealing="paper", n_init=20``.

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

    annealing: Annealing | Word | None = "auto"
    max_iter: int = 1000
    tol: float = 1e-4

    _paper = OF_KERNELS

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_annealing(self.annealing)

    def _problem(self, **more: Any) -> KernelProblem:
        return super()._problem(**_annealed(self, swaps=True), **more)


@parameters
class MultiKernelPowerKMeans(Clusterer):
    """Kernel power k-means of several views or exact kernels at once (MKPK).

    Minimises [1]_

        sum_i M_s(d_i1, ..., d_ik) + lambda sum_l alpha_l log(L alpha_l),
        d_ij = sum_l alpha_l ||phi_l(x_i) - theta_jl||^2,

    over centroids theta_jl and weights alpha >= 0, of sum one, of L kernels, while the exponent s
    of the power mean M_s(y) = ((1/k) sum_j y_j^s)^(1/s) falls to minus infinity.
    `RFFMultiKernelPowerKMeans` does the same with random features.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k, from 1 to n_samples.
    n_init : "auto" or int, default="auto"
        Number of starts; the best result is kept. If `init` is "k-means++", and `annealing` is
        "auto" or sets `end` and `swaps` alone, the starts differ: the last one is annealed slowly
        from the critical exponent, with random disturbances of the centroids before each stage; the
        others are, in turn, annealed quickly from the smaller of -5 and twice the critical
        exponent, and not annealed at all (plain k-means++). A start is dropped when the power mean
        is within 1 % of its limit and the objective 2 % above the best result so far. "auto": if
        the starts differ, eight, or five if they run on principal components of one kernel, where
        single centroids are then swapped; otherwise one. An array as `init` is always one start.
        Starts with the kernel itself advance together, with one product of matrices in each pass.
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
    weight_entropy : float, default=1.0
        Entropy weight lambda, divided by the sum of the sample weights, from 1e-30 to 1e30. The
        smaller it is, the more weight goes to the views with small sums of squared distances.
    annealing : {"auto", "paper"}, Annealing or None, default="auto"
        How the exponent s falls. "auto": as an `Annealing` with its defaults says, from the
        critical exponent, while the centroids converge at each stage, to passes of k-means; its
        other values are for other schedules, and for rows that stay assigned softly. None: not at
        all, which is plain k-means from `init`. "paper": as the source paper says,
        ``Annealing(start=-1.0, factor=1.04, passes=5)`` with `init` "random" in place of its
        default.
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        Initial centroids. "k-means++" (greedy, in the space of the kernel) and "random" choose them
        among the rows. "k-means" chooses as "k-means++" and goes on with passes of k-means, at most
        `max_iter`, before a start. "spectral": the clusters that k-means finds among the rows,
        scaled to length one, of the n_clusters leading eigenvectors of the centered kernel. An
        array holds integer labels of the rows, shape (n_samples,), each of 0 to n_clusters - 1 at
        least once, or weights of the rows, shape (n_clusters, n_samples), which are scaled to sums
        of one. Centroids that are given are kept: if `annealing` is "auto", or sets `end` and
        `swaps` alone, they are not annealed, but moved at once by passes at the end of annealing.
    max_iter : int, default=1000
        Largest number of passes of a start. ``init="k-means"`` may take as many before.
    tol : float, default=0.0001
        Tolerance >= 0: passes have converged when the root mean square shift of the centroids in
        one pass is at most `tol` times the standard deviation of the features (the root of their
        total variance). At 1e-3 a pass of k-means lowers the objective by some millionths of
        itself.
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
        Weights alpha >= 0 of the views, of sum one.
    inertia_ : float
        Kernel k-means objective of `labels_` with the kernel sum_l alpha_l k_l: the weighted sum of
        squared distances of the rows to the means of their clusters.
    objective_ : float
        What is minimised, with the sum over rows weighted by the sample weights, at the exponent
        `s_` and `dual_coef_`.
    lambda_ : float
        Entropy weight: `weight_entropy` times the sum of the sample weights.
    s_ : float
        Last finite exponent of the best start. If that start was plain k-means: the last finite
        exponent of the last start; if no start was annealed, the exponent at which annealing would
        end at the best centroids.
    n_iter_ : int
        Number of passes of the best start.
    cache_ : bool
        Whether the kernel matrices were stored.
    history_ : list of dict
        Records of what was done, in order. Each pass has a record with "stage", "start" (number of
        its start, from 0), "kept" (whether the result goes back to this start), "rows" (number of
        rows visited), "s" (the exponent; -inf for hard assignment), "objective" (before the
        centroids moved), "shift" (of the centroids, relative as in `tol`), "distinct" (number of
        centroids that do not coincide; swaps of batches have more centroids than n_clusters for
        some passes), "repairs" (number of empty clusters whose centroid was moved to one of the
        rows farthest from theirs), "kernel_weights" (of the views, before the pass) and "seconds".
        The stages are "k-means" (of ``init="k-means"``), "anneal" (while s falls), "hard" (passes
        of k-means after annealing), "settle" (passes at a finite exponent until convergence) and
        "swap" (passes after a centroid was swapped, see `n_init`). On principal components the
        passes of a start follow a record of stage "seeding" with the number of "rows". After all
        starts each of them has a record of stage "start" with "start", "kind" ("given": as the
        parameters say; "critical", "low", "k-means++": slowly annealed, quickly annealed and not
        annealed starts, see `n_init`), "rows", "passes", "objective" (at its end; infinite if it
        was dropped) and "outcome" ("kept", "lost" or "dropped").
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
        Exponent of the memberships that `predict_proba` gives unless told otherwise: `s_` if rows
        were assigned softly, else -(1 + d)/2 with the effective dimension d of the clusters:
        1/lambda_max of the mean of zz' over the unit vectors z from centroids to their rows.
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
    A pass takes one product of matrices for each kernel, which also gives the sums of squared
    distances that the kernel weights depend on. With n rows O(L n^2) memory if the kernels are
    stored. The centroids of kernel l are theta_jl = sum_i dual_coef_[j, i] phi_l(x_i), and `init`
    chooses them with the mean of the kernels. The kernels "du2015" are those of [2]_.

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

    fit, _measure, _paper = fit_by_kernels, measure, OF_KERNELS

    def _check_parameters(self) -> None:
        check_search(self)
        check_annealing(self.annealing)
        check_kernels(self.kernels)
        validation.check_real(self.weight_entropy, "weight_entropy", 1e-30, 1e30)

    def _problem(self) -> KernelProblem:
        return KernelProblem(
            self.kernels, objective=WeightedViews(float(self.weight_entropy)), several=True,
            published=self._published, **_annealed(self, swaps=False),
        )  # fmt: skip

    def _published(self, run: KernelRun) -> None:
        self.kernel_weights_, unit = run.alpha, run.space.context.history.unit
        self.lambda_ = float(self.weight_entropy) * run.space.total_weight * unit


# ---- the starts ----------------------------------------------------------------------------------


def _annealed(model: Any, swaps: bool) -> dict[str, Any]:
    """The parts of a problem with annealed starts; `swaps`: whether centroids are swapped after
    them by default."""
    given = search_parameters(model)
    return {
        "plan": partial(_plan, given, swaps),
        "init": given.init,
        "annealed": True,
        "components": given.differs and given.ends_hard,
    }


def _plan(
    given: SearchParameters, swaps: bool, k: int, critical: float, in_components: bool
) -> search.Plan:
    """The starts, and the number of swaps, which are made with principal components only."""
    number = given.swaps
    if number is None:
        number = automatic_swaps(k) if swaps and given.n_init is None else 0
    number = number if in_components and k > 1 else 0
    starts = given.starts(critical, _STARTS_BEFORE_SWAPS if number else _AUTO_STARTS)
    return search.Plan(starts, number, critical=critical)

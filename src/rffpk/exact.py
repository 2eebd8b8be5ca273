"""Kernel k-means and kernel power k-means with exact kernels, of one and of several kernels."""

from __future__ import annotations

import math
from typing import Any

from rffpk._annealing.dual import KernelRun
from rffpk._annealing.kernel_clusterer import KernelClusterer
from rffpk._annealing.objective import WeightedViews
from rffpk._annealing.parameters import annealed_starts, check_annealing, given_starts
from rffpk._annealing.schedule import Result, Schedule, Start
from rffpk._data import validation
from rffpk._data.validation import is_option
from rffpk.kernels import PRECOMPUTED, check_kernels, check_one_kernel, one_kernel


class KernelKMeans(KernelClusterer):
    """Kernel k-means, by Lloyd's iterations in the space of an exact kernel.

    Minimises sum_i min_j ||phi(x_i) - theta_j||^2, with distances from the kernel alone.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    kernel : str or callable, default="rbf"
        A name of scikit-learn's pairwise kernels, "precomputed", or a function of two rows.
    gamma : {"mean", "median", "scale"}, float or None, default="mean"
        Of the kernels that have one. The words are for "rbf" and "laplacian" and mean what they do
        in `RandomFourierFeatures`; other kernels then take scikit-learn's default, as for None.
    degree, coef0 : float, default=3, 1
        Of the polynomial and the sigmoid kernel.
    kernel_params : dict or None, default=None
        Parameters of a callable; for a named kernel they go before `gamma`, `degree` and `coef0`.
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        "k-means++" (greedy, in the space of the kernel) and "random" choose rows. "k-means" goes on
        with passes of k-means, as many as `max_iter` before a start. "spectral": k-means on the k
        leading eigenvectors of the centred kernel, with rows of length one. An array holds integer
        labels of the rows (n_samples,), or weights of the rows (n_clusters, n_samples), and is one
        start.
    n_init : int, default=10
        Starts; the best end is kept. All of them advance together, in one product a pass.
    max_iter : int, default=300
        Most passes of a start.
    tol : float, default=0
        A start ends when the root mean square shift of the centroids in a pass is at most `tol`
        times the standard deviation of the features; 0: when no label changes.
    cache : {"auto", True, False}, default="auto"
        Whether the kernel matrix is stored, in the dtype of X, or made anew in each pass, block by
        block. "auto": where the memory allows it.
    memory_limit : int or None, default=None
        Most bytes of stored kernels; None: a quarter of what the machine, or the container, has
        available.
    random_state : int, RandomState instance or None, default=None
        Draws the seeds, and what gamma is estimated from.
    n_jobs : int or None, default=None
        Threads; None takes all that affinity, OMP_NUM_THREADS and threadpoolctl allow. Results do
        not depend on it, to the bit.
    verbose : int, default=0
        Prints a line for each pass if not 0.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Nearest centroid of each row.
    dual_coef_ : ndarray of shape (n_clusters, n_samples)
        Centroids as weights of the fitted rows: theta_j = sum_i dual_coef_[j, i] phi(x_i).
    inertia_ : float
        The kernel k-means objective of `labels_`.
    objective_ : float
        What was minimised, at `dual_coef_`.
    s_ : float
        -inf.
    n_iter_ : int
        Passes of the best start.
    cache_ : bool
        Whether the kernel was stored.
    history_ : list of dict
        A record for each pass and start, and of each start's end, as in `PowerKMeans`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, if X had column names

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the kernel takes more than `memory_limit`.

    Notes
    -----
    O(n^2) memory where the kernel is stored, else O(n n_clusters n_init); a pass of all starts is
    one product of n x n with n x (k n_init). A float32 X has a kernel with errors of some 1e-7 of
    its spread.

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

    _soft = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: str | float | None = "mean",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        cache: str | bool = "auto",
        memory_limit: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.cache = cache
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_one_kernel(self, PRECOMPUTED)

    def _asked_kernels(self) -> Any:
        return PRECOMPUTED if is_option(self.kernel, PRECOMPUTED) else [one_kernel(self)]

    def _starts(self, critical: float) -> list[Start]:
        schedule = Schedule(-math.inf, -math.inf, self.max_iter, self.tol)
        return given_starts(schedule, self.init, self.n_init)


# Starts that differ, where they are left to us; docs/exact.md.
_AUTO_STARTS = 8


class KernelPowerKMeans(KernelKMeans):
    """Kernel power k-means with an exact kernel (KPK).

    Power k-means in the space of a kernel [1]_: minimises sum_i M_s(d_i1, ..., d_ik) with
    d_ij = ||phi(x_i) - theta_j||^2, the power mean M_s with exponent s < 0, while s falls to minus
    infinity, where it is kernel k-means. `RFFKernelPowerKMeans` does the same with random features,
    in time and memory linear in n_samples.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    kernel, gamma, degree, coef0, kernel_params : optional
        As in `KernelKMeans`.
    s0, anneal_factor, anneal_every, s_final, stop : optional
        As in `PowerKMeans`. The protocol of [1]_ is ``s0=-1.0, anneal_factor=1.04, anneal_every=5,
        init="random", n_init=20``.
    init : {"k-means++", "random", "k-means", "spectral"} or array, default="k-means++"
        As in `KernelKMeans`.
    n_init : "auto" or int, default="auto"
        Number of starts; the best end is kept. With all of `init`, `s0`, `anneal_factor`,
        `anneal_every` and `stop` at their defaults the starts differ as in `PowerKMeans`; "auto" is
        eight then; else 1. All of them advance together, in one product a pass.
    max_iter : int, default=1000
        Most passes of a start.
    tol : float, default=1e-4
        The centroids rest when their root mean square shift in a pass is at most `tol` times the
        standard deviation of the features.
    cache, memory_limit, random_state, n_jobs, verbose : optional
        As in `KernelKMeans`.

    Attributes
    ----------
    labels_, dual_coef_, inertia_, n_iter_, cache_, history_, n_features_in_, feature_names_in_
        As in `KernelKMeans`.
    objective_ : float
        sum_i M_s at `s_` and `dual_coef_`, weighted.
    s_ : float
        The last soft exponent; `predict_proba` uses it.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the kernel takes more than `memory_limit`.

    Notes
    -----
    Costs are those of `KernelKMeans`.

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

    _soft = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: str | float | None = "mean",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        s0: str | float = "auto",
        anneal_factor: str | float = "auto",
        anneal_every: str | int = "auto",
        s_final: str | float = "hard",
        stop: str = "annealed",
        init: Any = "k-means++",
        n_init: str | int = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        cache: str | bool = "auto",
        memory_limit: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            kernel=kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            kernel_params=kernel_params,
            init=init,
            n_init=n_init,  # type: ignore[arg-type]
            max_iter=max_iter,
            tol=tol,
            cache=cache,
            memory_limit=memory_limit,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.s0 = s0
        self.anneal_factor = anneal_factor
        self.anneal_every = anneal_every
        self.s_final = s_final
        self.stop = stop

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_annealing(self)

    def _starts(self, critical: float) -> list[Start]:
        return annealed_starts(self, critical, _AUTO_STARTS)


class MultiKernelPowerKMeans(KernelClusterer):
    """Kernel power k-means of several views or exact kernels at once (MKPK).

    Minimises sum_i M_s(d_i1, ..., d_ik) + lambda sum_l alpha_l log(L alpha_l) with
    d_ij = sum_l alpha_l ||phi_l(x_i) - theta_jl||^2 over centroids and weights alpha of L kernels
    on the simplex [1]_, while s falls to minus infinity. `RFFMultiKernelPowerKMeans` does the same
    with random features.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel: a name of scikit-learn's pairwise kernels, a callable, or a pair of
        one of those and its gamma or a dict of its parameters. One array becomes as many views as
        there are kernels. "du2015": twelve kernels of one array [2]_, scaled to a diagonal of one
        and then to [0, 1]. "precomputed": X holds kernel matrices. None: "rbf" for each view.
    weight_entropy : float, default=1.0
        lambda over the sum of the sample weights, from 1e-30 to 1e30. The smaller, the more the
        kernels with small costs count.
    s0, anneal_factor, anneal_every, s_final, stop : optional
        As in `PowerKMeans`.
    init, n_init, max_iter, tol, cache, memory_limit, random_state, n_jobs, verbose : optional
        As in `KernelPowerKMeans`, with the mean of the kernels for seeds.

    Attributes
    ----------
    labels_, dual_coef_, inertia_, s_, n_iter_, cache_, history_, n_features_in_
        As in `KernelPowerKMeans`; inertia_ with the kernel sum_l alpha_l k_l, n_features_in_ counts
        the columns of all views, and records of several kernels have "kernel_weights".
    kernel_weights_ : ndarray of shape (n_kernels,)
        alpha, >= 0, of sum one.
    lambda_ : float
        weight_entropy times the sum of the sample weights.
    objective_ : float
        What is minimised, at `s_` and `dual_coef_`.

    Raises
    ------
    ValueError, TypeError
        If a parameter or a view is not as described; the view is named.
    MemoryError
        If ``cache=True`` and the kernels take more than `memory_limit`.

    Notes
    -----
    A pass is one product for each kernel; the costs of the kernels come out of the same products.

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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        weight_entropy: float = 1.0,
        s0: str | float = "auto",
        anneal_factor: str | float = "auto",
        anneal_every: str | int = "auto",
        s_final: str | float = "hard",
        stop: str = "annealed",
        init: Any = "k-means++",
        n_init: str | int = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        cache: str | bool = "auto",
        memory_limit: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.weight_entropy = weight_entropy
        self.s0 = s0
        self.anneal_factor = anneal_factor
        self.anneal_every = anneal_every
        self.s_final = s_final
        self.stop = stop
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.cache = cache
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _several = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_annealing(self)
        check_kernels(self.kernels)
        validation.check_real(self.weight_entropy, "weight_entropy", 1e-30, 1e30)

    def _asked_kernels(self) -> Any:
        return self.kernels

    def _make_objective(self) -> WeightedViews:
        return WeightedViews(self.weight_entropy)

    def _starts(self, critical: float) -> list[Start]:
        return annealed_starts(self, critical, _AUTO_STARTS)

    def _publish(self, run: KernelRun, end: Result) -> None:
        super()._publish(run, end)
        self.kernel_weights_ = run.alpha
        space = run.space
        self.lambda_ = self.weight_entropy * space.total_weight * space.history.unit

"""Power k-means, fuzzy c-means and kernel power k-means on random Fourier features."""

from __future__ import annotations

from typing import Any

from rffpk._annealing.centroid_clusterer import CentroidClusterer
from rffpk._annealing.parameters import (
    Plan,
    annealed_starts,
    check_annealing,
    given_starts,
    is_automatic,
)
from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Result, Schedule
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, power_constant
from rffpk._data.store import check_cache
from rffpk._data.validation import is_option
from rffpk.feature_maps import (
    check_kernel,
    check_n_frequencies,
    fit_map,
)

# docs/annealing.md: on 29 sets three starts and these swaps end within 0.1 % of the best of twenty
# k-means++ runs, and below it on most.
_AUTO_STARTS, _AUTO_SWAPS = 3, 20

MAX_M = 6.0  # the fuzzifier at s = MAX_S


class PowerKMeans(CentroidClusterer):
    """Power k-means: k-means annealed from a smooth objective.

    Minimises sum_i M_s(||x_i - theta_1||^2, ..., ||x_i - theta_k||^2), the power mean M_s with
    exponent s < 0 [1]_, while s falls to minus infinity, where it is k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    s0 : "auto" or float, default="auto"
        The exponent to start from, <= -0.2. "auto" is the critical exponent, above which the state
        of all centroids in one point is stable, or -0.5 where that is less; it is taken from a
        sample.
    anneal_factor : "auto" or float, default="auto"
        s is multiplied by this number > 1 after each stage. "auto": from 1.05, where centroids
        part, to 1.5, where they rest (1.1 if `anneal_every` is a number).
    anneal_every : "auto" or int, default="auto"
        Passes of a stage. "auto": until the centroids rest, 10 at most. The papers use a factor
        of 1.04 and 3 to 5 passes.
    s_final : "hard" or float, default="hard"
        "hard": anneal until the power mean is within 0.1 % of the minimum, then run passes of
        k-means until the centroids rest. A number <= s0: anneal to that exponent and rest there,
        for soft results; "auto" then starts no lower than it.
    stop : {"annealed", "objective"}, default="annealed"
        "annealed": a start ends when annealing is over. "objective": it ends when the objective
        changes by at most `tol` of itself from one pass to the next, as in the papers, wherever s
        is by then; no hard passes follow, and `s_final` only bounds s.
    sample : "auto", int or None, default="auto"
        Rows that all starts run on: a random sample of so many (no fewer than n_clusters), whose
        best end is then improved on larger samples and on all rows until it rests. "auto": 20 000,
        or 200 a cluster if that is more. None, or no fewer than n_samples: all rows.
    init : {"k-means++", "random", "k-means"}, array or callable, default="k-means++"
        "k-means++" and "random" choose among the rows of the sample, or among some of them: as
        many as have two million features together, 20 000 rows at most, but 20 * n_clusters at
        least. "k-means" goes on with k-means passes. An array holds initial
        centres, shape (n_clusters, n_output_features). A callable gets (features of the rows to
        choose from, n_clusters, random_state=...) and returns such an array.
    n_init : "auto" or int, default="auto"
        Number of starts; the best end is kept. With all of `init`, `s0`, `anneal_factor`,
        `anneal_every` and `stop` at their defaults the starts differ: the last is annealed slowly
        from the critical exponent, with its centroids disturbed at random before each stage; those
        before it in turn quickly, from the lower of -5 and twice that exponent, and not at all:
        plain k-means++. "auto" is three then; else 1. An array or a callable is one start. A start
        that is all but hard and 2 % above the best end is dropped.
    swaps : "auto" or int, default="auto"
        After the starts one centroid at a time is moved far: the one that is missed least, to a
        costly row. What lowers the objective is kept; so many failures in a row end the trials,
        which are no more than 10 a cluster besides.
        "auto": 20 where the starts differ and `s_final` is "hard", else 0, none.
    max_iter : int, default=1000
        Most passes of a start, and of what follows on each larger sample and on all rows;
        ``init="k-means"`` may take as many before a start, swaps are not counted.
    tol : float, default=1e-3
        The centroids rest when their root mean square shift in a pass is at most `tol` times the
        standard deviation of the features. At 1e-3 a hard pass lowers the objective by some
        millionths of itself.
    random_state : int, RandomState instance or None, default=None
        Draws the sample and the seeds.
    n_jobs : int or None, default=None
        Threads; None takes all that affinity, OMP_NUM_THREADS and threadpoolctl allow. Results do
        not depend on it, to the bit.
    verbose : int, default=0
        Prints a line for each pass if not 0.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        Centroids, in the dtype of X.
    labels_ : ndarray of int32, shape (n_samples,)
        Nearest centroid of each row.
    inertia_ : float
        The k-means objective of `labels_`: squared distances of the rows to the means of their
        clusters, weighted and summed.
    objective_ : float
        sum_i M_s at `s_` and `cluster_centers_`, weighted.
    s_ : float
        The last soft exponent; `predict_proba` uses it.
    n_iter_ : int
        Passes of the best start and of all that followed.
    sample_size_ : int
        Rows that the starts ran on.
    history_ : list of dict
        What was done, in its order. A record for each pass: "stage" ("k-means", "anneal", "hard",
        "settle" or "swap"), "start" (its number), "rows", "s" (-inf in the hard rule), "objective"
        (before the step), "shift" (relative, see `tol`), "distinct" (centroids that do not
        coincide), "repairs" (vanished centroids that were moved to the costliest rows),
        "seconds". A start opens with a record of stage "seeding" and the rows that were looked
        at, unless `init` is an array. After all starts there is a record of stage "start" for
        each: "start", "kind" ("given", "critical", "low" or "k-means++"), "rows", "passes",
        "objective" at its end (infinite if it was dropped) and "outcome" ("kept", "lost" or
        "dropped").
    n_features_in_ : int
    feature_names_in_ : ndarray of str, if X had column names

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    Notes
    -----
    A pass costs O(n k d) time; memory beyond X is O(n) for the labels, and the features
    of the rows that seeding looks at. Sums are kept in float64.

    References
    ----------
    .. [1] Xu, Lange: Power k-means clustering. ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from rffpk import PowerKMeans
    >>> X, _ = make_blobs(500, centers=5, cluster_std=0.5, random_state=0)
    >>> PowerKMeans(5, random_state=0).fit(X).cluster_centers_.shape
    (5, 2)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        s0: str | float = "auto",
        anneal_factor: str | float = "auto",
        anneal_every: str | int = "auto",
        s_final: str | float = "hard",
        stop: str = "annealed",
        sample: str | int | None = "auto",
        init: Any = "k-means++",
        n_init: str | int = "auto",
        swaps: str | int = "auto",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.s0 = s0
        self.anneal_factor = anneal_factor
        self.anneal_every = anneal_every
        self.s_final = s_final
        self.stop = stop
        self.sample = sample
        self.init = init
        self.n_init = n_init
        self.swaps = swaps
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    _automatic_starts = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_annealing(self)
        if self.sample is not None and not is_option(self.sample, "auto"):
            validation.check_int(self.sample, "sample", 1)
        if not is_option(self.swaps, "auto"):
            validation.check_int(self.swaps, "swaps", 0)
            if self.swaps and not (is_option(self.s_final, "hard") and self.stop == "annealed"):
                raise ValueError(
                    f"swaps == {self.swaps} needs s_final='hard' and stop='annealed': swaps lower "
                    "the objective of k-means."
                )

    def _plan(self, critical: float) -> Plan:
        return Plan(annealed_starts(self, critical, _AUTO_STARTS), self._n_swaps())

    def _n_swaps(self) -> int:
        if self.n_clusters == 1:
            return 0
        if is_option(self.swaps, "auto"):
            return _AUTO_SWAPS if is_automatic(self) and is_option(self.s_final, "hard") else 0
        return int(self.swaps)


class FuzzyCMeans(CentroidClusterer):
    """Fuzzy c-means, as the power mean with fixed exponent s = -1/(m-1).

    Minimises J_m = sum_ij u_ij^m ||x_i - theta_j||^2 over memberships u with rows that sum to one
    and centroids theta [1]_. The memberships are never stored: a pass over the rows computes, uses
    and drops them.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    m : float, default=2.0
        Fuzzifier, 1 < m <= 6. The closer to one, the harder the memberships.
    init, n_init, random_state, n_jobs, verbose
        As in `PowerKMeans`.
    max_iter : int, default=300
        Most passes of a start.
    tol : float, default=1e-4
        The run ends when the root mean square shift of the centroids in a pass is at most `tol`
        times the standard deviation of the features.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_iter_, history_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.
    objective_ : float
        J_m at `cluster_centers_`, weighted; so is the objective in `history_`.
    s_ : float
        -1/(m-1).

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    Notes
    -----
    J_m = k^(-(m-1)) sum_i M_s, and u^m is the weight of a row in the update of a centroid. In many
    dimensions all centroids of fuzzy c-means may fall into one point; a `ConvergenceWarning` says
    how many stayed distinct. A pass costs O(n k d).

    References
    ----------
    .. [1] Bezdek, Ehrlich, Full: FCM: the fuzzy c-means clustering algorithm. Computers &
       Geosciences 1984.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from rffpk import FuzzyCMeans
    >>> X, _ = make_blobs(500, centers=3, random_state=0)
    >>> FuzzyCMeans(3, random_state=0).fit(X).predict_proba(X).shape
    (500, 3)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        m: float = 2.0,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.m = m
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_real(self.m, "m", 1, MAX_M, include="right")

    def _plan(self, critical: float) -> Plan:
        s = -1 / (self.m - 1)
        schedule = Schedule(s0=s, s_final=s, every=1, max_iter=self.max_iter, tol=self.tol)
        unit = 1 / power_constant(self.n_clusters, s)
        starts = given_starts(schedule, self.init, self.n_init)
        return Plan(starts, unit=unit, merger_advice=_fuzzifier_advice(self.m, critical))


def _fuzzifier_advice(m: float, critical: float) -> str:
    """What to do where all centroids of fuzzy c-means merge."""
    if critical >= 0 or m <= 1 - 1 / critical:
        return ""
    return (
        f" Above m_c = 1 - 1/s_c = {1 - 1 / critical:.4g} the state in which all of them are "
        "one is stable; a smaller m keeps them apart."
    )


class RFFKernelPowerKMeans(PowerKMeans):
    """Kernel power k-means on random Fourier features (RFF-KPKM).

    Power k-means in the feature space of a shift-invariant kernel [1]_: rows are mapped to
    D^(-1/2) [sin(x Omega), cos(x Omega)] on the fly, in the same pass that measures distances and
    moves the centroids, so the features are never stored.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    kernel, gamma, sampling
        As in `RandomFourierFeatures`.
    n_frequencies : {"auto", "paper"} or int, default="auto"
        D. "paper": ceil(4 log^3(2 k)), theorem 3 of [1]_. "auto": that, and at least 64. Counts of
        words and the like, where all rows are nearly equally far apart, need some 500 to 2000.
    s0, anneal_factor, anneal_every, s_final, stop, sample : optional
        As in `PowerKMeans`.
    cache : {"auto", True, False}, default="auto"
        Whether the features of all rows are made once and stored, 2 D numbers a row in the dtype
        of X, instead of made anew in each pass. "auto": where a model of the costs says that it at
        least halves the time of 30 passes, of 5 after a sample, and the memory allows it. The
        features of a sample are stored but for False. Results are the same to rounding.
    memory_limit : int or None, default=None
        Most bytes of stored features, of all rows or of the sample; None: a quarter of what the
        machine, or the container, has available.
    init, n_init, swaps, max_iter, tol, n_jobs, verbose : optional
        As in `PowerKMeans`. Centres live in the feature space of 2 D dimensions. The protocol of
        [1]_ is a number for `s0` with ``anneal_factor=1.04, anneal_every=3, init="k-means",
        stop="objective", sample=None``.
    random_state : int, RandomState instance or None, default=None
        Draws the frequencies, the sample and the seeds.

    Attributes
    ----------
    feature_map_ : RandomFourierFeatures
        Fitted; `feature_map_.frequencies_` is Omega, of shape (n_features_in_, D).
    cluster_centers_ : ndarray of shape (n_clusters, 2 D)
        Centroids in feature space, in the dtype of X.
    cache_ : bool
        Whether the features were stored.
    inertia_ : float
        The kernel k-means objective of `labels_`, in feature space.
    labels_, objective_, s_, n_iter_, history_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the features take more than `memory_limit`.

    Notes
    -----
    A pass costs O(n (d + k) D) time; memory beyond X is O(n) for the labels, and O(n D) where
    features are stored.

    References
    ----------
    .. [1] Chen et al.: Enhancing kernel power k-means: scalable and robust clustering with random
       Fourier features and possibilistic method. Algorithm 1, eqs. (2) to (5).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from rffpk import RFFKernelPowerKMeans
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = RFFKernelPowerKMeans(10, random_state=0).fit(X)
    >>> model.feature_map_.frequencies_.shape
    (64, 108)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str = "rbf",
        gamma: str | float = "mean",
        n_frequencies: str | int = "auto",
        sampling: str = "auto",
        s0: str | float = "auto",
        anneal_factor: str | float = "auto",
        anneal_every: str | int = "auto",
        s_final: str | float = "hard",
        stop: str = "annealed",
        sample: str | int | None = "auto",
        cache: str | bool = "auto",
        memory_limit: int | None = None,
        init: Any = "k-means++",
        n_init: str | int = "auto",
        swaps: str | int = "auto",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            s0=s0,
            anneal_factor=anneal_factor,
            anneal_every=anneal_every,
            s_final=s_final,
            stop=stop,
            sample=sample,
            init=init,
            n_init=n_init,
            swaps=swaps,
            max_iter=max_iter,
            tol=tol,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.kernel = kernel
        self.gamma = gamma
        self.n_frequencies = n_frequencies
        self.sampling = sampling
        self.cache = cache
        self.memory_limit = memory_limit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_frequencies(self.n_frequencies)
        check_kernel(self.kernel, self.gamma, self.sampling)
        check_cache(self.cache, self.memory_limit)

    def _fit_maps(self, xs: list[Array], weight: Array | None, random: Any) -> list[Any]:
        return [fit_map(self, xs[0], self.kernel, self.gamma, weight, random)]

    def _publish(self, rows: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        self.feature_map_ = self._feature_maps[0]
        super()._publish(rows, run, end, plan)

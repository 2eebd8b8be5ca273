"""Power k-means, fuzzy c-means and kernel power k-means on random Fourier features."""

from __future__ import annotations

from typing import Any

from rffpk._annealing.centroid_clusterer import PowerMeanClusterer
from rffpk._annealing.parameters import Annealed
from rffpk._annealing.schedule import Schedule, Start
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, power_constant
from rffpk._data.store import (
    ALL_PASSES,
    LAST_PASSES,
    cached,
    check_cache,
    check_memory,
    stored_sample,
)
from rffpk._data.validation import is_word
from rffpk._docs import FUZZY, POWER, RANDOM_FEATURES, documented
from rffpk.feature_maps import (
    RandomFourierFeatures,
    check_kernel,
    check_n_frequencies,
    n_frequencies,
)

# docs/annealing.md: on 29 sets three starts and these swaps end within 0.1 % of the best of twenty
# k-means++ runs, and below it on most.
_AUTO_STARTS, _AUTO_SWAPS = 3, 20

# Starts run on this many rows, or on this many for each cluster where that is more.
_SAMPLE_ROWS, _ROWS_A_CLUSTER = 20_000, 200

MAX_M = 6.0  # the fuzzifier at s = MAX_S


@documented(
    POWER, "cluster_centers_", "labels_", "inertia_", "objective_", "s_", "n_iter_", "sample_size_",
    "history_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
class PowerKMeans(Annealed, PowerMeanClusterer):
    """Power k-means: k-means annealed from a smooth objective.

    Minimises sum_i M_s(||x_i - theta_1||^2, ..., ||x_i - theta_k||^2) over k centroids theta_j,
    where M_s(y) = ((1/k) sum_j y_j^s)^(1/s) is the power mean with exponent s < 0 [1]_. While s
    falls to minus infinity the power mean falls to the minimum, and the objective becomes that of
    k-means.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    Notes
    -----
    With n rows of d columns a pass costs O(n k d) time; memory beyond X is O(n) for the labels, and
    the features of the seeding rows (see `init`). Sums are kept in float64.

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

    _auto_starts = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_annealing()
        if self.sample is not None and not is_word(self.sample, "auto"):
            validation.check_int(self.sample, "sample", 1)
        if not is_word(self.swaps, "auto"):
            validation.check_int(self.swaps, "swaps", 0)
            if self.swaps and not (is_word(self.s_final, "hard") and self.stop == "annealed"):
                raise ValueError(
                    f"swaps == {self.swaps} needs s_final='hard' and stop='annealed': swaps lower "
                    "the objective of k-means."
                )

    def _sample_size(self, n: int) -> int:
        if self.sample is None:
            return n
        if not is_word(self.sample, "auto"):
            return min(n, max(int(self.sample), self.n_clusters))
        return min(n, max(_SAMPLE_ROWS, _ROWS_A_CLUSTER * self.n_clusters))

    def _starts(self, schedule: Schedule, critical: float) -> list[Start]:
        return self._annealed_starts(critical, _AUTO_STARTS)

    def _swaps(self) -> int:
        if self.n_clusters == 1:
            return 0
        if is_word(self.swaps, "auto"):
            return _AUTO_SWAPS if self._is_default() and is_word(self.s_final, "hard") else 0
        return int(self.swaps)


@documented(
    FUZZY, "cluster_centers_", "labels_", "inertia_", "objective_", "s_", "n_iter_", "sample_size_",
    "history_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
class FuzzyCMeans(PowerMeanClusterer):
    """Fuzzy c-means, as the power mean with fixed exponent s = -1/(m-1).

    Minimises J_m = sum_ij u_ij^m ||x_i - theta_j||^2 over memberships u with rows that sum to one
    and centroids theta [1]_. The memberships are never stored: they are computed, used and dropped
    in a pass over the rows.

    Parameters
    ----------
    m : float
        Fuzzifier, 1 < m <= 6. The closer it is to one, the closer memberships are to 0 and 1.
    n_init : int
        Number of starts, at least 1, from initial centroids of their own; the best result is kept.
        An array or a callable as `init` is always one start.
    random_state : int, RandomState instance or None
        Draws the seeding rows and the initial centroids. An int gives the same result in each call.

    Attributes
    ----------
    objective_ : float
        J_m, weighted by the sample weights, at `cluster_centers_`; the objective in `history_` is
        J_m too.
    s_ : float
        The exponent -1/(m-1).
    sample_size_ : int
        Number of rows that the starts ran on: n_samples.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    Notes
    -----
    J_m = k^(-(m-1)) sum_i M_s with the power mean M_s, and u^m is proportional to the weight of a
    row in the update of a centroid.

    In many dimensions all centroids of fuzzy c-means may coincide; a `ConvergenceWarning` says how
    many are distinct. With n rows of d columns a pass costs O(n k d) time; memory beyond X is O(n).

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

    def _schedule(self, critical: float) -> Schedule:
        s = -1 / (self.m - 1)
        return Schedule(s0=s, s_final=s, every=1, max_iter=self.max_iter, tol=self.tol)

    def _on_merger(self, critical: float) -> str:
        if critical >= 0 or self.m <= 1 - 1 / critical:
            return ""
        return (
            f" Above m_c = 1 - 1/s_c = {1 - 1 / critical:.4g} the state in which all of them are "
            "one is stable; a smaller m keeps them apart."
        )

    def _objective_unit(self, s: float) -> float:
        return 1 / power_constant(self.n_clusters, s)


class OnRandomFeatures(PowerKMeans):
    """What the estimators on random Fourier features share: their maps, and whether to store."""

    n_frequencies: str | int
    sampling: str
    cache: str | bool
    memory_limit: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_frequencies(self.n_frequencies)
        check_cache(self.cache, self.memory_limit)

    def _fit_map(
        self, x: Array, kernel: str, gamma: Any, weight: Array | None, random: Any
    ) -> RandomFourierFeatures:
        mapped = RandomFourierFeatures(
            n_frequencies(self.n_frequencies, self.n_clusters),
            kernel=kernel,
            gamma=gamma,
            sampling=self.sampling,
            random_state=random.randint(2**31 - 1),
            n_jobs=self.n_jobs,
        )
        return mapped.fit(x, sample_weight=weight)

    def _check_memory(self, rows: Rows) -> None:
        check_memory(rows, self.cache, self.memory_limit)

    def _working_rows(self, rows: Rows, annealed: bool) -> Rows:
        passes = ALL_PASSES if annealed else LAST_PASSES
        rows, self.cache_ = cached(rows, self.n_clusters, self.cache, self.memory_limit, passes)
        return rows

    def _working_sample(self, sample: Rows) -> Rows:
        return stored_sample(sample, self.cache, self.memory_limit)


@documented(
    RANDOM_FEATURES, "cluster_centers_", "labels_", "inertia_", "objective_", "s_", "n_iter_",
    "sample_size_", "cache_", "history_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
class RFFKernelPowerKMeans(OnRandomFeatures):
    """Kernel power k-means on random Fourier features (RFF-KPKM).

    Power k-means in the feature space of a shift-invariant kernel [1]_: a row x is mapped to phi(x)
    = D^(-1/2) [sin(x Omega), cos(x Omega)] with D random frequencies, the columns of Omega, and
    sum_i M_s(||phi(x_i) - theta_1||^2, ..., ||phi(x_i) - theta_k||^2) is minimised over k centroids
    theta_j, where M_s(y) = ((1/k) sum_j y_j^s)^(1/s) is the power mean with exponent s < 0. While s
    falls to minus infinity the objective becomes that of kernel k-means. Features are computed in
    the same pass that measures distances and sums up the new centroids, and need not be stored.

    Attributes
    ----------
    feature_map_ : RandomFourierFeatures
        Fitted feature map; `feature_map_.frequencies_` is Omega, of shape (n_features_in_, D).

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the features take more than `memory_limit`.

    Notes
    -----
    With n rows of d columns a pass costs O(n (d + k) D) time; memory beyond X is O(n) for the
    labels, and O(n D) if features are stored.

    The protocol of [1]_ is a number for `s0` with ``anneal_factor=1.04, anneal_every=3,
    init="k-means", stop="objective", sample=None``.

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
        check_kernel(self.kernel, self.gamma, self.sampling)

    def _fit_maps(self, xs: list[Array], weight: Array | None, random: Any) -> None:
        self.feature_map_ = self._fit_map(xs[0], self.kernel, self.gamma, weight, random)

    def _maps(self) -> list[RandomFourierFeatures | None]:
        return [self.feature_map_]

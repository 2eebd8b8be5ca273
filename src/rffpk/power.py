"""Power k-means, and kernel power k-means on random Fourier features."""

from __future__ import annotations

from typing import Any

from rffpk._annealing.agreement import SAME, k_means_agreement
from rffpk._annealing.centroid_clusterer import CentroidClusterer, Init
from rffpk._annealing.incremental import IncrementalClusterer
from rffpk._annealing.parameters import (
    Plan,
    annealed_starts,
    automatic_swaps,
    check_annealing,
    is_automatic,
)
from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Hard, Result, Stop, coarse_start
from rffpk._annealing.seeding import MANY
from rffpk._data import validation
from rffpk._data.rows import Rows
from rffpk._data.store import check_cache
from rffpk._data.survey import Survey
from rffpk._data.validation import Auto, is_option
from rffpk._docs import POWER, RANDOM_FEATURES, documented
from rffpk.feature_maps import (
    Frequencies,
    Gamma,
    Kernel,
    Sampling,
    check_kernel,
    check_n_frequencies,
    fit_map,
)

_AUTO_STARTS = 3  # followed by swaps; see docs/annealing.md


class AnnealedClusterer(CentroidClusterer):
    """Base of the clusterers that are annealed, from several starts, and then improved by swaps."""

    swaps: Auto | int
    s0: Auto | float
    anneal_factor: Auto | float
    anneal_every: Auto | int
    stop: Stop
    _automatic_starts, _takes_sparse = True, True

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
        starts = annealed_starts(self, critical, _AUTO_STARTS)
        swaps = self._n_swaps()
        plain = not self._objective.learns_weights and self._objective.eta is None
        if plain and swaps and self._k >= MANY and self._is_default():
            starts = [coarse_start(starts[-1].schedule)]
        return Plan(starts, swaps, critical=critical)

    def _is_default(self) -> bool:
        return is_automatic(self) and is_option(self.n_init, "auto")

    def _n_swaps(self) -> int:
        if self._k == 1:
            return 0
        if is_option(self.swaps, "auto"):
            automatic = is_automatic(self) and is_option(self.s_final, "hard")
            return automatic_swaps(self._k) if automatic else 0
        return int(self.swaps)


@documented(
    POWER, "cluster_centers_", "labels_", "inertia_", "objective_", "s_", "n_iter_", "sample_size_",
    "n_buffered_", "history_", "memberships_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
class PowerKMeans(IncrementalClusterer, AnnealedClusterer):
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
    With n rows of d columns a pass costs O(n k d) time; memory beyond X is O(n) for the labels, the
    features of the seeding rows (see `init`), and at most some 200 MB where starts run on the
    principal components of a wide X. Sums are kept in float64.

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
        s0: Auto | float = "auto",
        anneal_factor: Auto | float = "auto",
        anneal_every: Auto | int = "auto",
        s_final: Hard | float = "hard",
        stop: Stop = "annealed",
        sample: Auto | int | None = "auto",
        init: Init | Any = "k-means++",
        n_init: Auto | int = "auto",
        swaps: Auto | int = "auto",
        store_memberships: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-3,
        half_life: float | None = None,
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
        self.store_memberships = store_memberships
        self.max_iter = max_iter
        self.tol = tol
        self.half_life = half_life
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose


@documented(
    RANDOM_FEATURES, "cluster_centers_", "labels_", "inertia_", "objective_", "s_", "n_iter_",
    "sample_size_", "n_buffered_", "cache_", "history_", "memberships_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip
class RFFKernelPowerKMeans(PowerKMeans):
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
    k_means_agreement_ : float
        Adjusted Rand index of `labels_` with those of plain k-means on the columns that starts at
        these clusters, on at most 2000 rows. Above 0.98, which `verbose` reports, the kernel finds
        the clusters of k-means; `DiffusionPowerKMeans`, or a larger `gamma`, finds others.

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
    (64, 128)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Kernel = "rbf",
        gamma: Gamma | float = "mean",
        n_frequencies: Frequencies | int = "auto",
        sampling: Sampling = "auto",
        s0: Auto | float = "auto",
        anneal_factor: Auto | float = "auto",
        anneal_every: Auto | int = "auto",
        s_final: Hard | float = "hard",
        stop: Stop = "annealed",
        sample: Auto | int | None = "auto",
        cache: Auto | bool = "auto",
        memory_limit: int | None = None,
        init: Init | Any = "k-means++",
        n_init: Auto | int = "auto",
        swaps: Auto | int = "auto",
        store_memberships: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-3,
        half_life: float | None = None,
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
            store_memberships=store_memberships,
            max_iter=max_iter,
            tol=tol,
            half_life=half_life,
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

    def _fit_maps(self, survey: Survey, random: Any) -> list[Any]:
        return [fit_map(self, survey, 0, self.kernel, self.gamma, random)]

    def _publish(self, rows: Rows, some: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        self.feature_map_ = self._feature_maps[0]
        super()._publish(rows, some, run, end, plan)
        self.k_means_agreement_ = k_means_agreement(some, self._theta(rows))
        if self._progress is not None and self.k_means_agreement_ > SAME:
            self._progress.say(
                "The clusters are those of plain k-means (adjusted Rand index "
                f"{self.k_means_agreement_:.3f}): this kernel sees no others."
            )

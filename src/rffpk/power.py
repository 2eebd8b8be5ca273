"""Power k-means, and kernel power k-means on random Fourier features."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rffpk._anneal import centroid_model, search
from rffpk._anneal.fit import FitResult, Init, Problem, check_search
from rffpk._anneal.fit import fit as fit_by_passes
from rffpk._anneal.objective import PowerMean
from rffpk._docs import POWER, RANDOM_FEATURES, documented
from rffpk._rows.passes import make_rows, one_pass
from rffpk._rows.rows import Rows
from rffpk._rows.sample import RowSample
from rffpk._rows.store import check_cache
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import Clusterer, parameters
from rffpk._utils.sparse_rows import Columns, SparseRows
from rffpk._utils.validation import Auto, is_option
from rffpk.maps import fourier
from rffpk.maps.whitening import whitened_columns

_AUTO_STARTS = 3  # followed by swaps; see docs/annealing.md

# From so many rows the agreement with k-means is known to some thousandths, in a few milliseconds.
_AGREEMENT_ROWS = 2000
_AGREEMENT_PASSES = 30  # of k-means, at most
_SAME = 0.98  # Above this agreement a kernel sees nothing that plain k-means does not.


@parameters
class AnnealedClusterer(Clusterer):
    """Base of the estimators of centroids in a feature space that anneal the power mean."""

    s0: Auto | float = "auto"
    anneal_factor: Auto | float = "auto"
    anneal_every: Auto | int = "auto"
    s_final: search.Hard | float = "hard"
    stop: search.Stop = "annealed"
    sample: Auto | int | None = "auto"
    init: Init | Any = "k-means++"
    swaps: Auto | int = "auto"
    max_iter: int = 1000
    tol: float = 1e-3
    # what a fit sets
    cluster_centers_: Array = field(init=False)
    sample_size_: int = field(init=False)

    fit = fit_by_passes
    _measure = centroid_model.measure

    def _check_parameters(self) -> None:
        check_search(self)
        search.check_annealing(self)
        if self.sample is not None and not is_option(self.sample, "auto"):
            validation.check_int(self.sample, "sample", 1)
        if not is_option(self.swaps, "auto"):
            validation.check_int(self.swaps, "swaps", 0)
            if self.swaps and not (is_option(self.s_final, "hard") and self.stop == "annealed"):
                raise ValueError(
                    f"swaps == {self.swaps} needs s_final='hard' and stop='annealed': swaps lower "
                    "the objective of k-means."
                )

    def _problem(self, **more: Any) -> Problem:
        """The problem of centroids of the columns; `more` are other parts of it."""
        hard, automatic = is_option(self.s_final, "hard"), search.is_automatic(self)
        return Problem(
            self._plan, self.init, sample=self.sample, automatic=automatic, hard=hard, **more
        )

    def _plan(self, k: int, critical: float, objective: PowerMean) -> search.Plan:
        """The starts and the number of swaps."""
        starts = search.annealed_starts(self, critical, _AUTO_STARTS)
        automatic, swaps = search.is_automatic(self), 0 if k == 1 else self.swaps
        if isinstance(swaps, str):
            hard = automatic and is_option(self.s_final, "hard")
            swaps = search.automatic_swaps(k) if hard else 0
        plain = not objective.learns_weights and objective.eta is None
        if plain and swaps and k >= search.MANY and automatic and is_option(self.n_init, "auto"):
            starts = [search.coarse_start(starts[-1].schedule)]
        return search.Plan(starts, int(swaps), critical=critical)


@documented(
    POWER, "cluster_centers_", "labels_", "inertia_", "objective_", "s_", "n_iter_", "sample_size_",
    "n_buffered_", "history_", "memberships_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class PowerKMeans(AnnealedClusterer):
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

    whitening: float | None = None
    half_life: float | None = None
    n_buffered_: int = field(init=False)  # what `partial_fit` sets

    partial_fit = centroid_model.partial_fit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_whitening(self.whitening)

    def _problem(self, **more: Any) -> Problem:
        return super()._problem(maps=partial(whitened_columns, self), **more)


@documented(
    RANDOM_FEATURES, "cluster_centers_", "labels_", "inertia_", "objective_", "s_", "n_iter_",
    "sample_size_", "n_buffered_", "cache_", "history_", "memberships_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class RFFKernelPowerKMeans(AnnealedClusterer):
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

    kernel: fourier.Kernel = "rbf"
    gamma: fourier.Gamma | float = "mean"
    n_frequencies: fourier.Frequencies | int = "auto"
    sampling: fourier.Sampling = "auto"
    cache: Auto | bool = "auto"
    memory_limit: int | None = None
    half_life: float | None = None
    n_buffered_: int = field(init=False)  # what `partial_fit` sets

    partial_fit = centroid_model.partial_fit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        fourier.check_n_frequencies(self.n_frequencies)
        fourier.check_kernel(self.kernel, self.gamma, self.sampling)
        check_cache(self.cache, self.memory_limit)

    def _problem(self, **more: Any) -> Problem:
        limits = {"cache": self.cache, "memory_limit": self.memory_limit}
        return super()._problem(maps=self._maps, published=self._published, **limits, **more)

    def _maps(self, sample: RowSample, context: search.FitContext) -> list[Any]:
        return [fourier.fit_map(self, sample, 0, self.kernel, self.gamma, context.random)]

    def _published(self, result: FitResult, context: search.FitContext) -> None:
        self.feature_map_ = self._feature_maps[0]
        self.k_means_agreement_ = k_means_agreement(result.prepared.some, result.theta)
        progress = context.history.progress
        if progress is not None and self.k_means_agreement_ > _SAME:
            progress.say(
                "The clusters are those of plain k-means (adjusted Rand index "
                f"{self.k_means_agreement_:.3f}): this kernel sees no others."
            )


# ---- whether plain k-means would find the clusters of a kernel too -------------------------------


def k_means_agreement(rows: Rows, theta: Array) -> float:
    """Adjusted Rand index of the labels at the centroids theta (k, F) with those of plain k-means
    on the columns that starts at their clusters, on at most 2000 rows of those that count, evenly
    spaced; both with the weights of the rows."""
    rows = rows.counted()
    rows = rows.take(np.arange(0, rows.n, -(-rows.n // _AGREEMENT_ROWS)))
    labels = one_pass(rows, theta, -np.inf, want=("labels",))[1]["labels"]
    return agreement_of_labels(rows.xs[0], labels, rows.n_threads, rows.weight)


@np.errstate(over="ignore", invalid="ignore")  # columns whose squares overflow do not agree
def agreement_of_labels(
    x: Columns, labels: Array, n_threads: int, weight: Array | None = None
) -> float:
    """Adjusted Rand index of the labels of all rows with those of plain k-means that starts at
    their clusters."""
    p = np.ones(len(x)) if weight is None else weight.astype(np.float64)
    rows = make_rows([x], [None], None if weight is None else p, n_threads)
    found, index = np.unique(labels, return_inverse=True)
    masses = np.bincount(index, p)[:, None]
    members = csr_array((p, (index, np.arange(len(x)))), shape=(len(found), len(x)))
    sums = members @ (x.matrix if isinstance(x, SparseRows) else x)
    theta = (sums.toarray() if isinstance(x, SparseRows) else sums) / masses - rows.shift
    before = index
    for _ in range(_AGREEMENT_PASSES):
        sums, outputs = one_pass(rows, theta, -np.inf, want=("labels",))
        if np.array_equal(outputs["labels"], index):
            break
        theta, index = sums.centroids(theta, rows.dtype), outputs["labels"]
    return adjusted_rand_index(before, index)


def adjusted_rand_index(a: Array, b: Array) -> float:
    """That of two sets of labels from 0 on. scikit-learn's function takes longer than the passes,
    and its warnings of many clusters could only be silenced in all threads."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    both, in_a, in_b, pairs = (
        float((counts * (counts - 1)).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    chance, most = in_a * in_b / max(pairs, 1), (in_a + in_b) / 2
    return (both - chance) / (most - chance) if most > chance else 1.0

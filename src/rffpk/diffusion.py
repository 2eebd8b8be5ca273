"""Power k-means on the features of a diffusion map: annealed spectral clustering."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from rffpk._anneal import batches
from rffpk._anneal.fit import FitResult, Problem
from rffpk._anneal.schedule import check_half_life
from rffpk._anneal.search import FitContext
from rffpk._docs import DIFFUSION_POWER, documented
from rffpk._rows.sample import RowSample
from rffpk._rows.store import check_cache
from rffpk._utils.estimator import parameters
from rffpk._utils.validation import Auto
from rffpk.maps.diffusion_map import (
    Metric,
    check_diffusion,
    fit_diffusion_map,
    warn_of_components,
)
from rffpk.maps.neighbours import map_rows
from rffpk.power import AnnealedClusterer


@documented(
    DIFFUSION_POWER, "feature_map_", "cluster_centers_", "labels_", "inertia_", "objective_", "s_",
    "n_iter_", "sample_size_", "n_buffered_", "cache_", "history_", "memberships_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class DiffusionPowerKMeans(AnnealedClusterer):
    """Power k-means on diffusion features: annealed spectral clustering.

    Rows are mapped to the features of a `DiffusionMap`, in which clusters of whatever shape are
    groups that are far apart, and power k-means runs on these. Its objective is a normalised cut of
    the graph of neighbours after a time of diffusion [1]_.

    Parameters
    ----------
    time : "auto" or float
        Length of the walks, in steps, > 0. "auto": three relaxation times of the k-th slowest
        function; at most 10^6.

    Attributes
    ----------
    feature_map_ : DiffusionMap
        Fitted feature map, with the time and the components that were chosen.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Centroids in the space of the diffusion features, in the dtype of X.
    inertia_ : float
        K-means objective of `labels_` in the space of the features: the weighted sum of squared
        distances of the rows to the means of their clusters.

    Raises
    ------
    ValueError, TypeError
        If a parameter or X is not as described.
    MemoryError
        If ``cache=True`` and the features take more than `memory_limit`.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended a run, if centroids coincide at the end, or if the graph of neighbors
        has more than `n_clusters` connected components. Those that cover less than 0.2/k of the
        rows are left out: their rows are labeled by the nearest other nodes.

    Notes
    -----
    The map costs O(n_samples n_landmarks n_features), a pass O(n_samples n_components k); there are
    no more than 3 k components. `predict` gives rows that were fitted their labels.

    References
    ----------
    .. [1] Dhillon, Guan, Kulis: Kernel k-means, spectral clustering and normalized cuts. KDD 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from rffpk import DiffusionPowerKMeans
    >>> X, y = make_circles(500, factor=0.4, noise=0.04, random_state=0)
    >>> model = DiffusionPowerKMeans(2, random_state=0).fit(X)
    >>> float(adjusted_rand_score(y, model.labels_))
    1.0
    """

    n_components: Auto | int = "auto"
    n_neighbors: Auto | int = "auto"
    n_landmarks: Auto | int = "auto"
    time: Auto | float = "auto"
    metric: Metric = "euclidean"
    cache: Auto | bool = "auto"
    memory_limit: int | None = None
    half_life: float | None = None
    n_buffered_: int = field(init=False)  # what `partial_fit` sets

    partial_fit = batches.partial_fit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_half_life(self.half_life)
        check_diffusion(self)
        check_cache(self.cache, self.memory_limit)

    def _problem(self, **more: Any) -> Problem:
        return super()._problem(
            maps=self._maps, cache=self.cache, memory_limit=self.memory_limit,
            n_map_rows=map_rows(self.n_landmarks), rows_name="the diffusion map of X",
            published=self._published, **more,
        )  # fmt: skip

    def _maps(self, sample: RowSample, context: FitContext) -> list[Any]:
        xs, weight = sample.some()
        return [fit_diffusion_map(self, self, xs[0], weight, context.random)]

    def _published(self, result: FitResult, context: FitContext) -> None:
        self.feature_map_ = self._feature_maps[0]
        warn_of_components(self.feature_map_, context.k)

"""Power k-means on the features of a diffusion map: annealed spectral clustering."""

from __future__ import annotations

from typing import Any

import numpy as np

from rffpk import _config
from rffpk._annealing.centroid_clusterer import Init
from rffpk._annealing.parameters import Plan
from rffpk._annealing.primal import FeatureRun
from rffpk._annealing.schedule import Hard, Result, Stop
from rffpk._data.passes import make_rows
from rffpk._data.rows import Rows
from rffpk._data.store import check_cache
from rffpk._data.survey import Survey, survey_arrays
from rffpk._data.validation import Auto
from rffpk._docs import DIFFUSION_POWER, documented
from rffpk.diffusion_map import (
    Metric,
    check_diffusion,
    fit_diffusion_map,
    map_rows,
    warn_of_components,
)
from rffpk.power import PowerKMeans


@documented(
    DIFFUSION_POWER, "feature_map_", "cluster_centers_", "labels_", "inertia_", "objective_", "s_",
    "n_iter_", "sample_size_", "n_buffered_", "cache_", "history_", "memberships_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip
class DiffusionPowerKMeans(PowerKMeans):
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
        distances of the rows to the means of their clusters. With ``n_landmarks=None`` the weights
        are `feature_map_.degrees_`.

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
    no more than 3 k components. `predict` gives rows that were fitted their labels, except with
    ``n_landmarks=None``, where they are mapped by an extension.

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

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: Auto | int = "auto",
        n_neighbors: Auto | int = "auto",
        n_landmarks: Auto | int | None = "auto",
        time: Auto | float = "auto",
        metric: Metric = "euclidean",
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
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_landmarks = n_landmarks
        self.time = time
        self.metric = metric
        self.cache = cache
        self.memory_limit = memory_limit

    _rows_name = "the diffusion map of X"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_diffusion(self)
        check_cache(self.cache, self.memory_limit)

    def _survey_rows(self) -> int:
        rows = super()._survey_rows()
        return rows if self.n_landmarks is None else max(rows, map_rows(self))

    def _fit_maps(self, survey: Survey, random: Any) -> list[Any]:
        if self.n_landmarks is None and survey.stream is not None:
            raise ValueError("n_landmarks=None needs all rows in memory, but X is a source.")
        size = None if self.n_landmarks is not None else survey.n
        xs, weight = survey.some(size)
        return [fit_diffusion_map(self, self, xs[0], weight, random)]

    def _fitted_rows(self, survey: Survey) -> tuple[Rows, Rows]:
        if self.n_landmarks is not None:
            return super()._fitted_rows(survey)
        mapped = self._feature_maps[0]
        counted = np.count_nonzero(mapped.degrees_)
        if counted < self._k:
            raise ValueError(
                f"n_clusters == {self._k}, but only {counted} rows are in connected components "
                "that are large enough; a larger n_neighbors connects them."
            )
        rows = make_rows(
            [mapped.embedding_], [None], mapped.degrees_, _config.n_threads(self.n_jobs)
        )
        return rows, rows

    def _drawn(self, rows: Rows, survey: Survey) -> list[Rows]:
        """Rows of the graph of all have features and degrees already, unlike those of new rows."""
        if self.n_landmarks is not None:
            return super()._drawn(rows, survey)
        mapped = self._feature_maps[0]
        first = self._sample_size(int(np.count_nonzero(mapped.degrees_)))
        seed, n_threads = mapped.random_state, rows.n_threads
        fitted = survey_arrays(rows.xs, mapped.degrees_, first, first, seed, n_threads)
        drawn = [fitted.some(size) for size in fitted.sizes(first)]
        return [self._rows([(x, None)], weight, rows.shifts) for (x,), weight in drawn]

    def _publish(self, rows: Rows, some: Rows, run: FeatureRun, end: Result, plan: Plan) -> None:
        self.feature_map_ = self._feature_maps[0]
        super()._publish(rows, some, run, end, plan)
        warn_of_components(self.feature_map_, self._k)

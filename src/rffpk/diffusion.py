"""Power k-means on the features of a diffusion map: annealed spectral clustering."""

from __future__ import annotations

from dataclasses import field
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rffpk._anneal import centroid_model
from rffpk._anneal.fit import FitResult, Problem
from rffpk._anneal.search import FitContext
from rffpk._docs import DIFFUSION_POWER, documented
from rffpk._rows.sample import RowSample
from rffpk._rows.store import check_cache
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.messages import without
from rffpk._utils.sparse_rows import Columns
from rffpk._utils.validation import Auto
from rffpk.maps.diffusion_map import (
    DiffusionMap,
    Metric,
    check_diffusion,
    fit_diffusion_map,
    warn_of_components,
)
from rffpk.maps.neighbours import drawn_rows, map_rows
from rffpk.power import AnnealedClusterer, PowerKMeans, adjusted_rand_index


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
    whitening: Auto | float | None = "auto"
    cache: Auto | bool = "auto"
    memory_limit: int | None = None
    half_life: float | None = None
    n_buffered_: int = field(init=False)  # what `partial_fit` sets

    partial_fit = centroid_model.partial_fit

    def _check_parameters(self) -> None:
        super()._check_parameters()
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
        return [chosen_map(self, self, xs[0], weight, context)]

    def _published(self, result: FitResult, context: FitContext) -> None:
        self.feature_map_ = self._feature_maps[0]
        warn_of_components(self.feature_map_, context.k)


# ---- which map: the one whose clusters agree most with those of the others -----------------------

# docs/math.md, section 20, has the trials behind these.
_WHITENINGS = (None, 0.5, 1.0)
_TIMES = (1, 2)  # the default number of neighbours
_TRIED_ROWS = 2000  # on which maps are tried, ...
_ROWS_A_CLUSTER = 20  # ... and for each cluster
_TRIED_PAIRS = 2  # eigenpairs for each cluster of a map that is tried
_ALIKE = 0.01  # Of maps whose agreements differ by less, the plainest is taken.


class Option(NamedTuple):
    """What is chosen of a map."""

    whitening: float | None
    times: int  # the default number of neighbours


def chosen_map(
    estimator: Any,
    parameters: Any,
    X: Columns,
    weight: Array | None,
    context: FitContext,
    unit_variance: bool = False,
) -> DiffusionMap:
    """The map of rows that have been checked, with the parameters of a map or of the estimator
    itself. For those that are "auto" several values are tried on a sample, and those are taken
    whose clusters agree most with the clusters of the others: what follows from one scale or one
    whitening alone is an artefact of it."""
    options = _options(parameters)
    agreements = np.zeros(len(options))
    if len(options) > 1 and context.k > 1:
        agreements = _agreements(estimator, parameters, options, X, weight, context)
    best = int(np.argmax(agreements >= agreements.max() - _ALIKE))
    mapped = fit_diffusion_map(
        estimator, parameters, X, weight, context.random, unit_variance, *options[best]
    )
    mapped.choices_ = [
        {"whitening": option.whitening, "neighbors": option.times, "agreement": float(agreement)}
        for option, agreement in zip(options, agreements)
    ]
    if context.history.progress is not None and len(options) > 1:
        whitening, times = options[best]
        context.history.progress.say(
            f"Of {len(options)} graphs that with whitening={whitening} and {times} times the "
            f"default number of neighbors gives clusters that agree most with those of the others: "
            f"mean adjusted Rand index {agreements[best]:.3f}, {agreements[0]:.3f} with neither."
        )
    return mapped


def _options(parameters: Any) -> list[Option]:
    """The values that are tried, the plainest first, as they are taken where all agree alike."""
    whitenings: tuple[float | None, ...] = (None,)
    if not isinstance(parameters.whitening, str):
        whitenings = (parameters.whitening,)
    elif parameters.metric == "euclidean":
        whitenings = _WHITENINGS
    times = _TIMES if isinstance(parameters.n_neighbors, str) else (1,)
    return [Option(*pair) for pair in product(whitenings, times)]


def _agreements(
    estimator: Any,
    parameters: Any,
    options: list[Option],
    X: Columns,
    weight: Array | None,
    context: FitContext,
) -> Array:
    """The mean adjusted Rand index of the clusters of each map with those of the others, on a
    sample of the rows."""
    random = np.random.RandomState(context.random.randint(2**31 - 1))
    index, p = drawn_rows(X, weight, max(_TRIED_ROWS, _ROWS_A_CLUSTER * context.k), random)
    x, partitions = X[index], []
    for option in options:
        mapped = fit_diffusion_map(
            estimator, parameters, x, p, random, True, *option, pairs_a_cluster=_TRIED_PAIRS
        )
        model = PowerKMeans(context.k, random_state=0, n_jobs=estimator.n_jobs)
        with without(ConvergenceWarning):
            partitions.append(model.fit(mapped.features_of(x), sample_weight=p).labels_)
    found = np.eye(len(options))
    for i, j in combinations(range(len(options)), 2):
        found[i, j] = found[j, i] = adjusted_rand_index(partitions[i], partitions[j])
    return (found.sum(axis=0) - 1) / (len(options) - 1)

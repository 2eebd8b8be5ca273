"""The number of clusters, found without a fit."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from rffpk._anneal.cluster_number import select_number
from rffpk._anneal.selection import NClustersSelection
from rffpk._rows.sample import row_sample
from rffpk._utils import config, validation
from rffpk.diffusion import DiffusionPowerKMeans
from rffpk.maps.diffusion_map import DiffusionMetric


def select_n_clusters(
    X: Any,
    *,
    metric: DiffusionMetric = "euclidean",
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> NClustersSelection:
    """How many clusters rows have: several good numbers, with their partitions.

    What ``n_clusters="auto"`` of an estimator does, without the fit: the same rows have the same
    answer. Three witnesses give a score to each number of clusters, and the largest sum decides:
    gaps between the eigenvalues of random walks on graphs of neighbors, the heights of Ward's tree
    of many small clusters, and modes of the density that last over scales. At most 3000 rows are
    looked at, or 20 000 where many or rare clusters show.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a source
        Finite numbers, a source of blocks as `fit` takes it, or, with ``metric="precomputed"``, a
        graph of affinities of shape (n_samples, n_samples).
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        Distance of rows. "cosine": rows are scaled to length one. "precomputed": X is a graph, as
        `DiffusionPowerKMeans` takes it; its eigengaps and the modes of its degrees decide.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each.
    random_state : int, RandomState instance or None
        Draws the rows that are looked at. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads. None and -1: all; -2: all of these except one, and so on.

    Returns
    -------
    selection : NClustersSelection
        The best number, other good ones, and the partitions of the rows that were looked at.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from rffpk import select_n_clusters
    >>> X, _ = make_blobs(500, centers=5, cluster_std=0.4, random_state=3)
    >>> select_n_clusters(X, random_state=0).n_clusters
    5
    """
    model = DiffusionPowerKMeans("auto", metric=metric, n_jobs=n_jobs)
    model._check_parameters()
    random, graph = validation.check_random_state(random_state), validation.is_graph(model)
    sample = row_sample(model, X, sample_weight, "auto", sys.maxsize if graph else 0, random)
    random = np.random.RandomState(random.randint(2**31 - 1))
    with config.one_blas_thread():
        return select_number(sample, metric, random, config.n_threads(n_jobs))

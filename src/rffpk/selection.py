"""The number of clusters, found from graphs of neighbours without a fit."""

from __future__ import annotations

from typing import Any

from rffpk._utils import config, validation
from rffpk.diffusion import DiffusionPowerKMeans
from rffpk.maps.cluster_number import NClustersSelection, select_number
from rffpk.maps.graphs import NUMBER_OF_GRAPH
from rffpk.power import PowerKMeans, RFFKernelPowerKMeans

_CLASSES = (DiffusionPowerKMeans, PowerKMeans, RFFKernelPowerKMeans)


def select_n_clusters(
    X: Any,
    estimator: Any = None,
    *,
    sample_weight: Any = None,
    random_state: Any = None,
) -> NClustersSelection:
    """How many clusters rows have: several good numbers, with their partitions.

    What ``n_clusters="auto"`` of an estimator does, without the fit. Graphs of neighbors of at most
    3000 rows (12 000 where many clusters show) say after how many slow functions of a random walk
    the eigenvalues have their largest gap. It counts if the clusters of the different graphs agree,
    and are far apart or have a valley of the density between them. Otherwise the number of parts of
    a mixture of Gaussians counts, if its BIC is clearly better than that of one Gaussian; otherwise
    there is one cluster.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Finite numbers.
    estimator : DiffusionPowerKMeans, PowerKMeans or RFFKernelPowerKMeans, optional
        Its `metric`, where it has one, chooses the neighbors, and its `n_jobs` the number of
        threads; it is not changed. None: a `DiffusionPowerKMeans` with its defaults.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each.
    random_state : int, RandomState instance or None
        Draws the rows that are looked at. An int gives the same result in each call.

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
    estimator = DiffusionPowerKMeans() if estimator is None else estimator
    if type(estimator) not in _CLASSES:
        names = ", ".join(kind.__name__ for kind in _CLASSES)
        raise TypeError(f"estimator == {estimator!r}, must be one of {names}.")
    if validation.is_graph(estimator):
        raise ValueError(f"estimator has metric='precomputed', must take rows: {NUMBER_OF_GRAPH}.")
    random = validation.check_random_state(random_state)
    rows = validation.check_rows(PowerKMeans(), X, reset=True)
    weight = validation.check_sample_weight(sample_weight, len(rows), X)
    cosine, threads = vars(estimator).get("metric") == "cosine", config.n_threads(estimator.n_jobs)
    with config.one_blas_thread():
        return select_number(rows, weight, cosine, random, threads)

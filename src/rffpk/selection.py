"""The number of clusters, found without a fit."""

from __future__ import annotations

from typing import Any, Literal

from rffpk.choose.selection import NClustersSelection
from rffpk.estimators.diffusion import DiffusionPowerKMeans
from rffpk.estimators.exact import MultiKernelPowerKMeans
from rffpk.estimators.fitting import find_number, opened_rows, rows_in_memory
from rffpk.estimators.multiview import RFFMultiKernelPowerKMeans
from rffpk.rows import checks
from rffpk.rows.containers import is_list_of_views
from rffpk.rows.dask_collections import kind_of
from rffpk.spaces.diffusion import DiffusionMetric
from rffpk.system import config


def select_n_clusters(
    X: Any,
    *,
    metric: DiffusionMetric | Literal["kernel"] = "euclidean",
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> NClustersSelection:
    """Find how many clusters rows have: several good numbers, with their partitions.

    This is what ``n_clusters="auto"`` of an estimator does, without the fit: the same rows have the
    same answer. Three criteria give a score to each number of clusters, and the largest sum
    decides. They are gaps between eigenvalues of random walks on graphs of neighbors, heights of
    Ward's tree of many small clusters, and modes of the density that last over scales. At most 3000
    rows are looked at, or 20 000 where many or rare clusters show.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), a source, or a list of views
        Finite numbers, or a source of blocks as `fit` takes it. Each of several views is looked
        at, and their columns together: the largest number that is clear decides.
    metric : {"euclidean", "cosine", "precomputed", "kernel"}, default="euclidean"
        Distance of rows. "cosine": rows of one table are scaled to length one. "precomputed": X is
        a graph of affinities, as `DiffusionPowerKMeans` takes it; its eigengaps decide. "kernel": X
        is a kernel matrix of shape (n_samples, n_samples), or a list of them; at most 300
        coordinates are looked at.
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
    model = _model(X, metric, n_jobs)
    problem = model._problem()  # checks the parameters
    random = checks.check_random_state(random_state)
    with config.one_blas_thread():
        if model._schema().kind == "kernels":
            opened = rows_in_memory(model, X, sample_weight, random)
        else:
            opened, _ = opened_rows(model, problem, X, sample_weight, random)
        find_number(model, opened, random, None)
    return model.selection_


def _model(X: Any, metric: Any, n_jobs: int | None) -> Any:
    """Return an estimator that takes X as it is given."""
    checks.check_choice(metric, "metric", ("euclidean", "cosine", "precomputed", "kernel"))
    if checks.is_option(metric, "kernel"):
        return MultiKernelPowerKMeans("auto", kernels="precomputed", n_jobs=n_jobs)
    listed = isinstance(X, (list, tuple))
    # a list of sources or of Dask collections has several views, too
    several = is_list_of_views(X) or (listed and kind_of(X) != "memory")
    if several and checks.is_option(metric, "euclidean"):
        return RFFMultiKernelPowerKMeans("auto", kernels="linear", n_jobs=n_jobs)
    return DiffusionPowerKMeans("auto", metric=metric, n_jobs=n_jobs)

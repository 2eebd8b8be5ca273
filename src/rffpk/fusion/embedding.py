"""Annealed k-means on an embedding of the rows, and predictions by it. A model embeds rows whose
views have been checked by `_embedded`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from rffpk._anneal.convergence_warnings import Cause
from rffpk._anneal.fit import fit_model
from rffpk._utils import config
from rffpk._utils.arrays import Array
from rffpk._utils.containers import check_row_labels
from rffpk._utils.dask_collections import by_partitions
from rffpk._utils.progress import Progress
from rffpk.power import PowerKMeans


def cluster(
    model: Any,
    k: int,
    weight: Array | None,
    random: Any,
    causes: list[Cause],
    progress: Progress | None,
) -> None:
    """Annealed k-means with restarts on `embedding_`; `causes` that its centroids coincide come
    before those in the embedding."""
    seed, rows = random.randint(2**31 - 1), _prepared(model, model.embedding_)
    model._clusterer = PowerKMeans(k, n_init=model.n_init, random_state=seed, n_jobs=model.n_jobs)
    fit_model(
        model._clusterer, rows, weight, progress=progress, causes=causes,
        rows_name="the embedding of X",
    )  # fmt: skip
    for name in ("labels_", "cluster_centers_", "inertia_", "s_"):
        setattr(model, name, getattr(model._clusterer, name))
    model._n_features_out = model.embedding_.shape[1]
    vars(model).pop("memberships_", None)  # of an earlier fit
    if model.store_memberships:
        model.memberships_ = model._clusterer.predict_proba(rows)


@by_partitions
def transform(model: Any, X: Any) -> Array:
    """Embed rows.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features_in_), or a list of views
        As in `fit`; with precomputed kernels those between the new rows and the fitted ones, of
        shape (n_samples, n_samples_fit), or the anchors.

    Returns
    -------
    embedding : ndarray of shape (n_samples, n_columns)
        In the space of `embedding_`, with its columns and its dtype. For collections of Dask a Dask
        array.
    """
    check_is_fitted(model)
    xs = model._check_views(X, reset=False)
    with config.one_blas_thread():
        return model._embedded(xs)


def measure(
    model: Any, X: Any, want: str, s: float | None = None, sample_weight: Any = None
) -> Any:
    """What `want` names of rows; see `Clusterer._measure`."""
    rows = embedded_rows(model, X)
    check_row_labels(X, sample_weight)
    return model._clusterer._measure(rows, want, s, sample_weight)


def embedded_rows(model: Any, X: Any) -> Array:
    """The embedding of rows as k-means takes it, whatever `set_output` says."""
    return _prepared(model, np.asarray(model.transform(X)))


def _prepared(model: Any, embedding: Array) -> Array:
    return normalize(embedding) if getattr(model, "normalize_rows", False) else embedding

"""Initial centroids in the space of exact kernels: weights of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import k_means
from sklearn.preprocessing import normalize

from rffpk._anneal.seeding import k_means_plus_plus, random_rows
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array
from rffpk._utils.linalg import leading_eigenvectors


def initial_weights(space: Any, k: int, init: str) -> Array:
    """Initial centroids of a start, (k, n)."""
    if init == "spectral":
        return _spectral(space, k)
    W = np.zeros((k, space.products.n))
    W[np.arange(k), _seeds(space, k, init)] = 1
    return W


def given_weights(init: Any, k: int, n: int) -> Array:
    """Centroids (k, n) from an array `init`: labels of the rows, or weights of the rows."""
    validation.check_plain(init, "init")
    with validation.named("init"):
        init = np.asarray(init)
    if init.shape == (n,) and np.issubdtype(init.dtype, np.integer):
        if not np.array_equal(np.unique(init), np.arange(k)):
            raise ValueError(f"init must contain each label from 0 to {k - 1}, and no other.")
        W = (np.arange(k)[:, None] == init).astype(np.float64)
    elif init.shape == (k, n):
        with validation.named("init"):
            W = init.astype(np.float64)
        if not np.isfinite(W).all() or (W.sum(axis=1) == 0).any():
            raise ValueError("init must be finite, and its rows must not sum to zero.")
    else:
        raise ValueError(
            f"init has shape {init.shape}, must be labels of shape ({n},), integers, or "
            f"weights of the rows of shape ({k}, {n})."
        )
    return np.asarray(W / W.sum(axis=1, keepdims=True))


def _seeds(space: Any, k: int, init: str) -> NDArray[np.intp]:
    """k rows, drawn at random or by k-means++ in the space of the mean kernel."""
    products, n, random = space.products, space.products.n, space.context.random
    weight = np.ones(n) if space.weight is None else space.weight
    if init == "random":
        return random_rows(space.weight, n, k, random)
    own = products.diagonals.mean(axis=0)

    def distances(index: Array) -> Array:
        y = products.rows(index).mean(axis=0, dtype=np.float64)
        return np.maximum(own + own[index, None] - 2 * y, 0)

    return k_means_plus_plus(distances, weight, k, random)


def _spectral(space: Any, k: int) -> Array:
    """Means of the clusters, (k, n), that k-means finds in the rows of the k leading
    eigenvectors of the kernel, centered at its mean and weighted."""
    n = space.products.n
    p = np.ones(n) if space.weight is None else space.weight
    share, root = p / p.sum(), np.sqrt(p)

    def multiply(v: Array) -> Array:
        columns = root[:, None] * v.reshape(n, -1)
        columns = columns - share[:, None] * columns.sum(axis=0)
        product = space.products.multiply(columns.T).mean(axis=0, dtype=np.float64).T
        return np.asarray(root[:, None] * (product - share @ product)).reshape(v.shape)

    H = normalize(leading_eigenvectors(multiply, k, n)[1])
    with config.one_openmp_thread():  # orthogonal columns: k rows or more differ, as it demands
        labels = k_means(H, k, sample_weight=p, n_init=10, random_state=space.context.random)[1]
    W = (np.arange(k)[:, None] == labels) * p
    empty = np.flatnonzero(~W.any(axis=1))
    W[empty, np.flatnonzero(p)[: len(empty)]] = 1
    return np.asarray(W / W.sum(axis=1, keepdims=True))

"""Initial centroids in the space of exact kernels, as weights of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import k_means
from sklearn.preprocessing import normalize

from rffpk import _config
from rffpk._annealing.dual import KernelSpace, squared_norms
from rffpk._annealing.seeding import k_means_plus_plus
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.decompositions import leading_eigenvectors
from rffpk._data.validation import is_option


def initial_weights(space: KernelSpace, k: int, init: str) -> Array:
    """Initial centroids of a start, (k, n)."""
    if is_option(init, "spectral"):
        return _spectral(space, k)
    if space.present is not None:
        return _completed(space, _seeds(space, k, init))
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
            raise ValueError(f"init has other labels than 0 to {k - 1}, each at least once.")
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
    return W / W.sum(axis=1, keepdims=True)


def weights_of_views(W: Array, present: Array) -> Array:
    """Centroids (L, k, n) from weights (k, n) of rows that lack views; the mean of all rows in a
    view that those of a centroid lack."""
    Ws = W * present[:, None, :]
    totals = Ws.sum(axis=2, keepdims=True)
    Ws = np.where(totals == 0, present[:, None, :], Ws)
    return np.asarray(Ws / Ws.sum(axis=2, keepdims=True))


def _seeds(space: KernelSpace, k: int, init: str) -> NDArray[np.intp]:
    """k rows, drawn at random or by k-means++ in the space of the mean kernel."""
    products, n, random = space.products, space.products.n, space.random
    weight = np.ones(n) if space.weight is None else space.weight
    if init == "random":
        return np.asarray(random.choice(n, k, replace=False, p=weight / weight.sum()))
    diagonal = products.diagonals.mean(axis=0)

    def distances(index: Array) -> Array:
        if space.present is not None:
            return _distances(space, _completed(space, index))
        y = products.rows(index).mean(axis=0, dtype=np.float64)
        return np.maximum(diagonal + diagonal[index, None] - 2 * y, 0)

    return k_means_plus_plus(distances, weight, k, space.random)


def _completed(space: KernelSpace, index: Array) -> Array:
    """Seeds (L, m, n) at rows that lack views: in such a view at the row nearest to it, in the
    views that both have, of those that have the view."""
    products, present = space.products, space.present
    assert present is not None
    W = np.zeros((len(present), len(index), products.n))
    for number, (row, lines) in enumerate(zip(index, products.rows(index).swapaxes(0, 1))):
        has = space.alpha * present[:, row]
        gaps = products.diagonals + products.diagonals[:, [row]] - 2 * lines
        shared = has @ present
        apart = np.divide(has @ (gaps * present), shared, out=np.full(len(shared), np.inf),
                          where=shared > 0)  # fmt: skip
        for view, there in enumerate(present):
            nearest = row if there[row] else int(np.where(there > 0, apart, np.inf).argmin())
            W[view, number, nearest if there[nearest] else int(there.argmax())] = 1
    return W


def _distances(space: KernelSpace, W: Array) -> Array:
    """Squared distances (m, n) of the rows from centroids W (L, m, n), over the views that the rows
    have."""
    assert space.present is not None
    Y = space.products.multiply(W).astype(np.float64)
    gaps = space.products.diagonals[:, None] + squared_norms(W, Y)[:, :, None] - 2 * Y
    return np.maximum(np.einsum("ln,lmn->mn", space.alpha[:, None] * space.present, gaps), 0)


def _spectral(space: KernelSpace, k: int) -> Array:
    """Means of the clusters that k-means finds in the rows of the k leading eigenvectors of the
    kernel, centered at its mean and weighted."""
    n = space.products.n
    p = np.ones(n) if space.weight is None else space.weight
    share, root = p / p.sum(), np.sqrt(p)

    def multiply(v: Array) -> Array:
        columns = root[:, None] * v.reshape(n, -1)
        columns = columns - share[:, None] * columns.sum(axis=0)
        product = space.products.multiply(columns.T).mean(axis=0, dtype=np.float64).T
        return np.asarray(root[:, None] * (product - share @ product)).reshape(v.shape)

    H = normalize(leading_eigenvectors(multiply, k, n)[1])
    with _config.one_openmp_thread():  # orthogonal columns: k rows or more differ, as it demands
        labels = k_means(H, k, sample_weight=p, n_init=10, random_state=space.random)[1]
    W = (np.arange(k)[:, None] == labels) * p
    empty = np.flatnonzero(~W.any(axis=1))
    W[empty, np.flatnonzero(p)[: len(empty)]] = 1
    return np.asarray(W / W.sum(axis=1, keepdims=True))

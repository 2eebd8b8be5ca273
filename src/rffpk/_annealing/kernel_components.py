"""Principal components of an exact kernel: the search for centroids needs few of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, qr

from rffpk._annealing.compression import enough_for_clusters
from rffpk._annealing.kernel_products import Products
from rffpk._data.arrays import Array
from rffpk._data.decompositions import DENSE
from rffpk._data.passes import Rows, make_rows

# Subspace iterations. Components that they do not resolve change the cost of a partition little.
_ITERATIONS = 2

# The first number of components is that of the clusters times the first of these plus the second;
# it is doubled up to this share of the rows, beyond which products with the kernel are as fast.
_FACTOR, _MORE, _SHARE = 8, 16, 0.25


def kernel_components(products: Products, weight: Array | None, k: int) -> Rows | None:
    """Rows whose features are the leading principal components of a kernel: enough of them for the
    hard objective of k clusters; None if that takes too many.

    O(n^2 r) time for r components.
    """
    n = products.n
    p = np.ones(n) if weight is None else weight
    root, share = np.sqrt(p), p / p.sum()

    def multiply(V: Array) -> Array:
        """The product of the kernel, centered at the mean and weighted, with columns."""
        columns = root[:, None] * V
        columns = columns - root[:, None] ** 2 / p.sum() * columns.sum(axis=0)
        product = products.multiply(columns.T)[0].T.astype(np.float64)
        return np.asarray(root[:, None] * (product - share @ product))

    variance = kernel_variance(products, p)
    r, V = _FACTOR * k + _MORE, np.empty((n, 0))
    while r <= _SHARE * n or n <= DENSE:
        r = r if r <= _SHARE * n else n
        fresh = np.random.default_rng(0).standard_normal((n, r - V.shape[1]))
        values, V, coordinates = _leading(multiply, np.hstack([V, fresh]))
        cost = max(variance - values[: k - 1].sum(), 0.0)
        enough = enough_for_clusters(values, cost, k)
        if enough < r or r == n:
            x = coordinates[:, :enough] / np.where(root > 0, root, 1)[:, None]
            shift = np.zeros(enough)
            x = np.ascontiguousarray(x)
            return make_rows([x], [None], weight, products.n_threads, [shift])
        r *= 2
    return None


def kernel_variance(products: Products, p: Array) -> float:
    """sum_i p_i ||phi_i - c||^2 with the weighted mean c, for one kernel."""
    share = p / p.sum()
    mean = products.multiply(share[None])[0, 0].astype(np.float64)
    return float(p @ products.diagonals[0] - p.sum() * (share @ mean))


def _leading(multiply: Callable[[Array], Array], V: Array) -> tuple[Array, Array, Array]:
    """Approximations of the leading eigenvalues, falling, and eigenvectors, by subspace iterations
    from the columns V; and the coordinates of the rows in the space of the kernel that these span,
    which are exact."""
    for _ in range(_ITERATIONS):
        V = qr(multiply(V), mode="economic")[0]
    product = multiply(V)
    values, turn = eigh(V.T @ product)
    values, turn = np.maximum(values[::-1], 0), turn[:, ::-1]
    resolved = values > np.finfo(V.dtype).eps * len(V) * values[0]
    scale = np.divide(1, np.sqrt(values), out=np.zeros_like(values), where=resolved)
    return values, V @ turn, product @ turn * scale

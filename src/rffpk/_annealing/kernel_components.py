"""Principal components of an exact kernel: the search for centroids needs few of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from sklearn import config_context

from rffpk._annealing import swaps
from rffpk._annealing.compression import enough_for_clusters, total_squares
from rffpk._annealing.dual import KernelRun, KernelSpace
from rffpk._annealing.kernel_products import Products
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.parameters import Plan
from rffpk._annealing.primal import FeatureSpace
from rffpk._annealing.schedule import Result, Stage
from rffpk._annealing.search import search
from rffpk._annealing.seeding import seed_centroids
from rffpk._data.arrays import Array
from rffpk._data.decompositions import basis_of, eigh
from rffpk._data.passes import Rows, make_rows, one_pass, total_variance

# Subspace iterations. Components that they do not resolve change the cost of a partition little.
_ITERATIONS = 2

# The first number of components is that of the clusters times the first of these plus the second;
# it is doubled _DOUBLINGS times, but not beyond this share of the rows. Of up to _DENSE rows all
# components are computed instead; of more, products with the kernel are as fast.
_FACTOR, _MORE, _DOUBLINGS, _SHARE, _DENSE = 8, 16, 2, 0.25, 1000

_COPIES = 5  # of the components, while they are computed


def kernel_components(
    products: Products, weight: Array | None, k: int, fits: Callable[[int], bool]
) -> Rows | None:
    """Rows whose features are the leading principal components of a kernel: enough of them for the
    hard objective of k clusters; None if that takes too many, or their memory does not pass `fits`.

    O(n^2 r) time for r components, O(n^3) where few rows have more of them.
    """
    n = products.n
    p = np.ones(n) if weight is None else weight
    root, variance = np.sqrt(p), kernel_variance(products, p)
    for values, coordinates in _components(products, p, _FACTOR * k + _MORE, fits):
        cost = max(variance - values[: k - 1].sum(), 0.0)
        enough = enough_for_clusters(values, cost, k)
        if enough < len(values) or len(values) == n:
            x = coordinates[:, :enough] / np.where(root > 0, root, 1)[:, None]
            xs, shifts = [np.ascontiguousarray(x)], [np.zeros(enough)]
            return make_rows(xs, [None], weight, products.n_threads, shifts)
    return None


def _components(
    products: Products, p: Array, first: int, fits: Callable[[int], bool]
) -> Iterator[tuple[Array, Array]]:
    """The leading eigenvalues, falling, of the kernel, centered at the mean and weighted, and the
    coordinates of the rows in the space of the kernel that their eigenvectors span: `first` of them
    and then more, and finally all if rows are few."""
    n, root, share = products.n, np.sqrt(p), p / p.sum()
    error = n * float(np.finfo(products.dtype).eps)  # relative, below which eigenvalues are zero

    def multiply(V: Array) -> Array:
        """The product of the kernel with columns."""
        columns = root[:, None] * V
        columns = columns - share[:, None] * columns.sum(axis=0)
        product = products.multiply(columns.T)[0].T.astype(np.float64)
        return np.asarray(root[:, None] * (product - share @ product))

    V = np.empty((n, 0))
    for r in [first << doublings for doublings in range(_DOUBLINGS + 1)]:
        if r > _SHARE * n or not fits(_COPIES * 8 * n * r):
            break
        fresh = np.random.default_rng(0).standard_normal((n, r - V.shape[1]))
        values, V, coordinates = _leading(multiply, np.hstack([V, fresh]), error)
        yield values, coordinates
    if n <= _DENSE and fits(_COPIES * 8 * n * n):
        gram = products.rows(np.arange(n))[0].astype(np.float64)
        mean = share @ gram
        gram = root[:, None] * (gram - mean - mean[:, None] + share @ mean) * root
        values, vectors = eigh(gram, driver="evd")
        values = np.where(values > error * values[-1], values, 0)[::-1]
        yield values, vectors[:, ::-1] * np.sqrt(values)


def kernel_variance(products: Products, p: Array) -> float:
    """sum_i p_i ||phi_i - c||^2 with the weighted mean c, for one kernel."""
    share = p / p.sum()
    mean = products.multiply(share[None])[0, 0].astype(np.float64)
    return float(p @ products.diagonals[0] - p.sum() * (share @ mean))


def _leading(
    multiply: Callable[[Array], Array], V: Array, error: float
) -> tuple[Array, Array, Array]:
    """Approximations of the leading eigenvalues, falling, and eigenvectors, by subspace iterations
    from the columns V; and the coordinates of the rows in the space of the kernel that these span,
    which are exact. Eigenvalues of at most `error` times the largest are zero."""
    for _ in range(_ITERATIONS):
        V = basis_of(multiply(V))[0]
    product = multiply(V)
    values, turn = eigh(V.T @ product)
    values, turn = np.maximum(values[::-1], 0), turn[:, ::-1]
    resolved = values > error * values[0]
    scale = np.divide(1, np.sqrt(values), out=np.zeros_like(values), where=resolved)
    return np.where(resolved, values, 0), V @ turn, product @ turn * scale


def search_components(
    rows: Rows, space: KernelSpace, k: int, plan: Plan
) -> tuple[KernelRun, Result]:
    """The best of all starts over the components `rows` of a kernel, improved by swaps, and its
    end; the run goes on with the hard rule and the kernel itself."""
    history, random, weight = space.history, space.random, space.weight
    p = np.ones(rows.n) if weight is None else weight
    history.left_out = max(kernel_variance(space.products, p) - total_squares(rows), 0.0)

    def seed() -> Array:
        history.add_seeding(rows.n)
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return seed_centroids(rows.xs[0], rows.weight, k, "k-means++", rows.n_threads, random)

    found = FeatureSpace(rows, total_variance(rows), PowerMean(), seed, history, random)
    first, end, cost = search(found, plan.starts)
    schedule = plan.starts[-1].schedule
    if plan.swaps:
        swaps.improve(first, cost, plan.swaps)
    history.left_out = 0.0
    labels = one_pass(rows, first.theta, -math.inf, want=("labels",))[1]["labels"]
    means = cluster_means(labels, k, weight)
    for j in np.flatnonzero(~means.any(axis=1)):  # no clusters of their own: at a row, as seeds are
        means[j, _nearest_row(rows, first.theta[j])] = 1.0
    space.seed = lambda _: means
    run, last = space.begin([first.number])[0], None
    while last is None:
        left = max(schedule.max_iter - first.passes, 1)
        stage = Stage("hard", -math.inf, 0.0, schedule.tol, left)
        last = space.advance([run], [stage])[0]
    end.converged = end.converged and last.last.shift <= schedule.tol
    run.passes += first.passes
    return run, end


def _nearest_row(rows: Rows, center: Array) -> int:
    """The row with a weight that is nearest to a centroid."""
    gaps = ((rows.xs[0] - rows.shifts[0] - center) ** 2).sum(axis=1)
    if rows.weight is not None:
        gaps[rows.weight == 0] = np.inf
    return int(gaps.argmin())


def cluster_means(labels: Array, k: int, weight: Array | None) -> Array:
    """The means of the clusters as weights of the rows, (k, n); zero if a cluster is empty."""
    members = (np.arange(k)[:, None] == labels) * (1.0 if weight is None else weight)
    G = members.sum(axis=1)
    return np.asarray(members / np.where(G > 0, G, 1)[:, None])

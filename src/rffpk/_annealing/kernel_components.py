"""Principal components of an exact kernel: the search for centroids needs few of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rffpk._annealing import swaps
from rffpk._annealing.compression import components_for_clusters, total_squares
from rffpk._annealing.dual import KernelRun, KernelSpace, cluster_means
from rffpk._annealing.kernel_products import Products
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.parameters import Plan
from rffpk._annealing.primal import FeatureSpace
from rffpk._annealing.schedule import Result, Stage
from rffpk._annealing.search import search
from rffpk._annealing.seeding import seed_centroids
from rffpk._data.arrays import Array
from rffpk._data.passes import make_rows, one_pass, total_variance
from rffpk._data.rows import Rows

# Of up to so many rows all components may be computed; of more, products with the kernel are as
# fast as passes over so many.
_DENSE = 1000

_COPIES = 5  # of the components, while they are computed


def kernel_components(
    products: Products, weight: Array | None, k: int, fits: Callable[[int], bool]
) -> Rows | None:
    """Rows whose features are the leading principal components of a kernel, centered at the mean:
    enough of them for the hard objective of k clusters; None if that takes too many, or their
    memory does not pass `fits`.

    O(n^2 r) time for r components, O(n^3) where few rows have more of them.
    """
    n = products.n
    p = np.ones(n) if weight is None else weight
    root, share = np.sqrt(p), p / p.sum()

    def multiply(V: Array) -> Array:
        """The product of the centered and weighted kernel with columns."""
        columns = root[:, None] * V
        columns = columns - share[:, None] * columns.sum(axis=0)
        product = products.multiply(columns.T)[0].T.astype(np.float64)
        return np.asarray(root[:, None] * (product - share @ product))

    def matrix() -> Array:
        gram = products.rows(np.arange(n))[0].astype(np.float64)
        mean = share @ gram
        return np.asarray(root[:, None] * (gram - mean - mean[:, None] + share @ mean) * root)

    found = components_for_clusters(
        multiply, matrix if n <= _DENSE else None, kernel_variance(products, p), n, k,
        lambda r: fits(_COPIES * 8 * n * r),
    )  # fmt: skip
    if found is None:
        return None
    squares, _, images = found
    resolved = squares > n * float(np.finfo(products.dtype).eps) * squares[0]
    scale = np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=resolved)
    x = images * scale / np.where(root > 0, root, 1)[:, None]
    xs, shifts = [np.ascontiguousarray(x)], [np.zeros(len(squares))]
    return make_rows(xs, [None], weight, products.n_threads, shifts)


def kernel_variance(products: Products, p: Array) -> float:
    """sum_i p_i ||phi_i - c||^2 with the weighted mean c, for one kernel."""
    share = p / p.sum()
    mean = products.multiply(share[None])[0, 0].astype(np.float64)
    return float(p @ products.diagonals[0] - p.sum() * (share @ mean))


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

"""Random samples of rows, and initial centroids chosen from a sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances

from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, make_rows, one_pass
from rffpk._data.sparse_rows import Columns, SparseRows, dense, squared_norms

# Initial centroids are chosen from a sample of rows, whose features are stored: at most 20 000 rows
# and 16 MB in float64, but at least twenty rows for each centroid. With twenty rows a cluster, a
# given one of equally large clusters is missed with probability 2e-9, and annealing needs no more.
_SEED_NUMBERS = 2**21
_SEED_ROWS = 20_000
_ROWS_A_CENTROID = 20

# From so many clusters on the cost of a fit is proportional to their number: initial centroids are
# drawn, and centroids are moved, in batches. docs/annealing.md has the measurements.
MANY = 100


def seeding_rows(rows: Rows, k: int, random: Any) -> Rows:
    """The random rows that initial centroids are chosen from: all rows if there are few."""
    most = max(_ROWS_A_CENTROID * k, min(_SEED_ROWS, _SEED_NUMBERS // len(rows.shift)))
    index = np.arange(rows.n) if rows.weight is None else np.flatnonzero(rows.weight)
    if len(index) == rows.n <= most:
        return rows
    if len(index) > most:
        index = np.sort(random.choice(index, most, replace=False))
    return rows.take(index)


def seed_centroids(
    features: Columns, weight: Array | None, k: int, init: str, n_threads: int, random: Any
) -> Array:
    """k of the rows of `features`, at random or by k-means++, from MANY on in batches."""
    if init == "random":
        p = None if weight is None else weight.astype(np.float64) / weight.sum(dtype=np.float64)
        return dense(features[random.choice(len(features), k, replace=False, p=p)])
    if k >= MANY:
        return dense(features[_batches(features, weight, k, n_threads, random)])
    x = features.astype(np.float64)
    squares = squared_norms(x)

    def distances(index: Array) -> Array:
        return np.maximum(-2 * _products(x, index) + squares[index, None] + squares, 0)

    p = np.ones(len(x)) if weight is None else weight.astype(np.float64)
    return dense(features[k_means_plus_plus(distances, p, k, random)])


def _products(x: Columns, index: Array) -> Array:
    """The inner products of some rows with all, (m, n)."""
    if isinstance(x, SparseRows):
        return np.asarray((x.matrix @ x[index].toarray().T).T)
    return np.asarray(x[index] @ x.T)


def k_means_plus_plus(
    distances: Callable[[Array], Array], p: Array, k: int, random: Any
) -> NDArray[np.intp]:
    """Indices of k rows with weights p by greedy k-means++: of a few rows, drawn in proportion to
    their costs, the one that lowers the cost most. `distances` returns the squared distances (m, n)
    of m rows from all. O(n k log k) of them."""
    chosen = random.choice(len(p), 1, p=p / p.sum())
    least, trials = distances(chosen)[0], 2 + int(math.log(k))
    while len(chosen) < k:
        cost = p * least
        cost[chosen] = 0
        if not cost.any():  # no more distinct rows
            cost = p.copy()
            cost[chosen] = 0
        sums = cost.cumsum()
        drawn = sums.searchsorted(random.uniform(size=trials) * sums[-1], side="right")
        new = np.minimum(least, distances(drawn))
        best = (new @ p).argmin()
        chosen, least = np.append(chosen, drawn[best]), new[best]
    return np.asarray(chosen)


def _batches(
    features: Columns, weight: Array | None, k: int, n_threads: int, random: Any
) -> NDArray[np.intp]:
    """Indices of k rows, drawn as k-means++ without local trials draws them.

    Half as many rows as are chosen already are drawn at once, in proportion to their costs. One is
    accepted with the probability of its cost after those before it over that before the batch, so
    that each has the distribution of a draw after those. O(n k F), in some tens of passes.
    """
    p = np.ones(len(features)) if weight is None else weight.astype(np.float64)
    zeros = np.zeros(features.shape[1], dtype=features.dtype)
    rows = make_rows([features], [None], None, n_threads, [zeros])
    chosen = random.choice(len(p), 1, p=p / p.sum())
    least = np.full(len(p), np.inf)
    added = chosen
    while len(chosen) < k:
        _, outputs = one_pass(rows, dense(features[added]), -math.inf, want=("nearest",))
        least = np.minimum(least, outputs["nearest"])
        least[added] = 0
        cost = p * least
        if not cost.any():  # fewer distinct rows than centroids
            others = np.setdiff1d(np.flatnonzero(p), chosen)
            return np.r_[chosen, random.choice(others, k - len(chosen), replace=False)]
        count = min(max(1, len(chosen) // 2), k - len(chosen))
        drawn = random.choice(len(p), count, p=cost / cost.sum())
        added = drawn[_accepted(features[drawn], least[drawn], random.uniform(size=count))]
        chosen = np.r_[chosen, added]
    return np.asarray(chosen)


def _accepted(candidates: Columns, least: Array, uniform: Array) -> Array:
    """A mask of the candidates, in their order, that are accepted."""
    given = candidates.matrix if isinstance(candidates, SparseRows) else candidates
    gaps = euclidean_distances(given, squared=True)
    remaining, mask = least.copy(), np.zeros(len(candidates), dtype=bool)
    for i in range(len(candidates)):
        if uniform[i] * least[i] < remaining[i]:
            mask[i], remaining = True, np.minimum(remaining, gaps[i])
    return mask

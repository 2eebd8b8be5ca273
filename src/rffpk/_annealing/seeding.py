"""Random samples of rows, and initial centroids chosen from a sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import euclidean_distances

from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, make_rows, one_pass

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
    features: Array, weight: Array | None, k: int, init: str, n_threads: int, random: Any
) -> Array:
    """k of the rows of `features`, at random or by k-means++, from MANY on in batches."""
    if init == "random":
        p = None if weight is None else weight.astype(np.float64) / weight.sum(dtype=np.float64)
        return features[random.choice(len(features), k, replace=False, p=p)]
    if k < MANY:
        return kmeans_plusplus(features, k, sample_weight=weight, random_state=random)[0]
    return features[_batches(features, weight, k, n_threads, random)]


def _batches(
    features: Array, weight: Array | None, k: int, n_threads: int, random: Any
) -> NDArray[np.intp]:
    """Indices of k rows, drawn as k-means++ without local trials draws them.

    Half as many rows as are chosen already are drawn at once, in proportion to their costs. One is
    accepted with the probability of its cost after those before it over that before the batch, so
    that each has the distribution of a draw after those. O(n k F), in some tens of passes.
    """
    p = np.ones(len(features)) if weight is None else weight.astype(np.float64)
    rows = make_rows([features], [None], None, n_threads, [np.zeros_like(features[0])])
    chosen = random.choice(len(p), 1, p=p / p.sum())
    least = np.full(len(p), np.inf)
    added = chosen
    while len(chosen) < k:
        _, outputs = one_pass(rows, features[added], -math.inf, want=("nearest",))
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


def _accepted(candidates: Array, least: Array, uniform: Array) -> Array:
    """A mask of the candidates, in their order, that are accepted."""
    gaps = euclidean_distances(candidates, squared=True)
    remaining, mask = least.copy(), np.zeros(len(candidates), dtype=bool)
    for i in range(len(candidates)):
        if uniform[i] * least[i] < remaining[i]:
            mask[i], remaining = True, np.minimum(remaining, gaps[i])
    return mask

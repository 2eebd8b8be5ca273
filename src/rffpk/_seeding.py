"""Initial centroids, in the space of the shifted features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus

from rffpk._stats import Rows

Array = NDArray[Any]

# Seeding looks at a sample with stored features: 16 MB of them in float64, or this many rows for
# every centroid where that is more. Twenty rows a cluster find each cluster of even sizes with
# probability 1 - 2e-9, and annealing needs no more than a fair start.
_SEED_NUMBERS = 2**21
_SEED_ROWS = 20_000
_ROWS_A_CENTROID = 20


def seed_rows(rows: Rows, k: int, random: Any) -> Rows:
    """The random rows that seeding looks at: all of them where there are few."""
    most = max(_ROWS_A_CENTROID * k, min(_SEED_ROWS, _SEED_NUMBERS // len(rows.shift)))
    index = np.arange(rows.n) if rows.weight is None else np.flatnonzero(rows.weight)
    if len(index) == rows.n <= most:
        return rows
    if len(index) > most:
        index = np.sort(random.choice(index, most, replace=False))
    return rows.take(index)


def seed_centers(features: Array, weight: Array | None, k: int, init: str, random: Any) -> Array:
    """k of the rows of `features`: "random" or by k-means++, in float64.

    "k-means" starts from k-means++ too.
    """
    if init == "random":
        p = None if weight is None else weight.astype(np.float64) / weight.sum(dtype=np.float64)
        return features[random.choice(len(features), k, replace=False, p=p)].astype(np.float64)
    centers, _ = kmeans_plusplus(
        features.astype(np.float64),
        k,
        sample_weight=None if weight is None else weight.astype(np.float64),
        random_state=random,
    )
    return centers

"""Whether plain k-means would find the clusters of a kernel too."""

from __future__ import annotations

import math

import numpy as np
from sklearn.metrics import adjusted_rand_score

from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, make_rows, one_pass

# From so many rows the index below is known to some thousandths, in a few milliseconds.
_ROWS, _PASSES = 2000, 30

# Above this agreement a kernel sees nothing that plain k-means does not.
SAME = 0.98


def k_means_agreement(rows: Rows, theta: Array) -> float:
    """Adjusted Rand index of the labels at the centroids theta (k, F) with those of plain k-means
    on the columns that starts at their clusters, on at most 2000 rows of those that count, evenly
    spaced; both with the weights of the rows."""
    rows = rows.counted()
    rows = rows.take(np.arange(0, rows.n, -(-rows.n // _ROWS)))
    labels = one_pass(rows, theta, -math.inf, want=("labels",))[1]["labels"]
    return agreement_of_labels(rows.xs[0], labels, rows.n_threads, rows.weight)


@np.errstate(over="ignore", invalid="ignore")  # columns whose squares overflow do not agree
def agreement_of_labels(
    x: Array, labels: Array, n_threads: int, weight: Array | None = None
) -> float:
    """Adjusted Rand index of the labels of all rows with those of plain k-means that starts at
    their clusters."""
    p = np.ones(len(x)) if weight is None else weight.astype(np.float64)
    rows = make_rows([x], [None], None if weight is None else p, n_threads)
    found, index = np.unique(labels, return_inverse=True)
    theta = np.zeros((len(found), x.shape[1]))
    np.add.at(theta, index, p[:, None] * (x - rows.shift))
    theta /= np.bincount(index, p)[:, None]
    for _ in range(_PASSES):
        sums, outputs = one_pass(rows, theta, -math.inf, want=("labels",))
        if np.array_equal(outputs["labels"], index):
            break
        theta, index = sums.centroids(theta, rows.dtype), outputs["labels"]
    if np.array_equal(found[index], labels):  # the score takes longer than the passes
        return 1.0
    return float(adjusted_rand_score(labels, index))

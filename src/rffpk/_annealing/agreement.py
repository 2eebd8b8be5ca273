"""Whether plain k-means would find the clusters of a kernel too."""

from __future__ import annotations

import math

import numpy as np
from sklearn.metrics import adjusted_rand_score

from rffpk._data.arrays import Array
from rffpk._data.passes import make_rows, one_pass

# From so many rows the index below is known to some thousandths, in a few milliseconds.
_ROWS, _PASSES = 2000, 30

# Above this agreement a kernel sees nothing that plain k-means does not.
SAME = 0.98


@np.errstate(over="ignore", invalid="ignore")  # columns whose squares overflow do not agree
def k_means_agreement(x: Array, labels: Array, n_threads: int) -> float:
    """Adjusted Rand index of labels with those of plain k-means that starts at their clusters, on
    at most 2000 rows, evenly spaced."""
    step = -(-len(x) // _ROWS)
    x, labels = np.ascontiguousarray(x[::step]), labels[::step]
    rows = make_rows([x], [None], None, n_threads)
    found, index = np.unique(labels, return_inverse=True)
    counts = np.bincount(index)
    theta = np.zeros((len(found), x.shape[1]))
    np.add.at(theta, index, x - rows.shift)
    theta /= counts[:, None]
    for _ in range(_PASSES):
        sums, outputs = one_pass(rows, theta, -math.inf, want=("labels",))
        if np.array_equal(outputs["labels"], index):
            break
        theta, index = sums.centroids(theta, rows.dtype), outputs["labels"]
    return float(adjusted_rand_score(labels, index))

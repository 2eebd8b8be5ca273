"""Whether plain k-means would find the clusters of a kernel too."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from rffpk._data.arrays import Array
from rffpk._data.passes import make_rows, one_pass
from rffpk._data.rows import Rows
from rffpk._data.sparse_rows import Columns, SparseRows

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
    x: Columns, labels: Array, n_threads: int, weight: Array | None = None
) -> float:
    """Adjusted Rand index of the labels of all rows with those of plain k-means that starts at
    their clusters."""
    p = np.ones(len(x)) if weight is None else weight.astype(np.float64)
    rows = make_rows([x], [None], None if weight is None else p, n_threads)
    found, index = np.unique(labels, return_inverse=True)
    masses = np.bincount(index, p)[:, None]
    if isinstance(x, SparseRows):
        members = csr_array((p, (index, np.arange(len(x)))), shape=(len(found), len(x)))
        theta = (members @ x.matrix).toarray() / masses - rows.shift
    else:
        theta = np.zeros((len(found), x.shape[1]))
        np.add.at(theta, index, p[:, None] * (x - rows.shift))
        theta /= masses
    before = index
    for _ in range(_PASSES):
        sums, outputs = one_pass(rows, theta, -math.inf, want=("labels",))
        if np.array_equal(outputs["labels"], index):
            break
        theta, index = sums.centroids(theta, rows.dtype), outputs["labels"]
    return _adjusted_rand_index(before, index)


def _adjusted_rand_index(a: Array, b: Array) -> float:
    """That of two sets of labels from 0 on; scikit-learn's function takes longer than the
    passes."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    both, in_a, in_b, pairs = (
        float((counts * (counts - 1)).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    chance, most = in_a * in_b / max(pairs, 1), (in_a + in_b) / 2
    return (both - chance) / (most - chance) if most > chance else 1.0

"""Builds with -Ddebug_bounds=true refuse indices that are out of range."""

import numpy as np
import pytest
from contracts.core import laid_out, sparse_rows
from scipy.sparse import csr_array

from rffpk import _core

pytestmark = pytest.mark.skipif(not _core.DEBUG_BOUNDS, reason="needs -Ddebug_bounds=true")

N, D, K = 4, 3, 2


def pairs(index):
    return _core.squares_of_pairs(np.ones((N, D)), np.ones((K, D)), index, 1)


def near(near, order, ends):
    return _core.near_pass(
        np.ones((N, D)), False, np.zeros(D), None, np.eye(K, D), near, order, ends, 1
    )


def cells(ends, visits, order):
    centers = np.zeros((K, D))
    *blocks, _ = laid_out(centers, centers, np.arange(K), np.arange(K + 1))
    return _core.nearest_in_cells(np.ones((N, D)), centers, *blocks, ends, visits, order, 1, 1)


def product(columns, ends):
    matrix = csr_array((N, D))
    matrix.data, matrix.indices, matrix.indptr = np.ones(len(columns)), columns, ends
    return _core.csr_product(matrix, np.ones(D), 1)


def sparse_pass(columns, ends):
    x = sparse_rows(csr_array((N, D)))
    object.__setattr__(x, "data", np.ones(len(columns)))
    object.__setattr__(x, "indices", columns)
    object.__setattr__(x, "indptr", ends)
    theta, alpha = np.eye(K, D), np.ones(1)
    return _core.fused_pass([x], [None], [np.zeros(D)], theta, alpha, None, _core.HARD, 0.0, 1)


def int32(*numbers):
    return np.array(numbers, dtype=np.int32)


ENTRIES = [
    (pairs, {"index": (np.zeros((N, 1), np.int32), K)}),
    (near, {
        "near": (np.zeros((K, 2), np.int32), K), "order": (int32(0, 1, 2, 3), N),
        "ends": (np.array([0, 2, N]), N + 1),
    }),
    (cells, {
        "ends": (np.array([0, 1, K]), K + 1), "visits": (np.zeros((N, 1), np.int32), K),
        "order": (np.arange(N), N),
    }),
    *((entry, {"columns": (int32(0, 1), D), "ends": (np.array([0, 1, 2, 2, 2]), 3)})
      for entry in (product, sparse_pass)),
]  # fmt: skip


@pytest.mark.parametrize("entry, arrays", ENTRIES, ids=[entry.__name__ for entry, _ in ENTRIES])
def test_indices_out_of_range_are_refused(entry, arrays):
    entry(*(array for array, _ in arrays.values()))
    for name, (_, beyond) in arrays.items():
        for index in (-1, beyond):
            wrong = {key: valid.copy() for key, (valid, _) in arrays.items()}
            wrong[name].flat[-1] = index
            with pytest.raises((IndexError, ValueError)):
                entry(*wrong.values())

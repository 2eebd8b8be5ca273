"""Nested partitions: Ward's merging of clusters of given masses, as a linkage matrix of SciPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rffpk._utils.arrays import Array

_LEAST = 1e-30  # of all masses: an empty cluster has this part, and merges at height zero


def ward(gaps: Array, masses: Array) -> NDArray[np.float64]:
    """The linkage matrix (k-1, 4) of clusters with these squared distances (k, k) between their
    centroids and these masses (k,): the merged ones, the height (2 a b/(a + b))^(1/2) times the
    distance of their centroids, a and b their masses, and the number of clusters below.

    By chains of nearest neighbours and the formula of Lance and Williams. O(k^2) time and memory.
    """
    k = len(masses)
    p = np.maximum(masses, _LEAST * masses.sum())
    squares = gaps * 2 / (1 / p + 1 / p[:, None])
    np.fill_diagonal(squares, np.inf)
    merges, heights, chain = np.zeros((k - 1, 2), dtype=np.intp), np.zeros(k - 1), list[int]()
    alive = np.ones(k, dtype=bool)
    for step in range(k - 1):
        i, j = _mutual_neighbours(squares, chain, alive)
        merges[step], heights[step] = (i, j), squares[i, j]
        total = p[i] + p[j]
        line = (p[i] + p) * squares[i] + (p[j] + p) * squares[j] - p * squares[i, j]
        alive[i] = False
        squares[j] = squares[:, j] = np.where(alive, line / (total + p), np.inf)
        squares[i] = squares[:, i] = squares[j, j] = np.inf
        p[j] = total
    return _in_order(merges, np.sqrt(np.maximum(heights, 0)))


def _mutual_neighbours(squares: Array, chain: list[int], alive: Array) -> tuple[int, int]:
    """Two clusters that are nearest to each other, taken from the end of the chain that leads to
    them."""
    if not chain:
        chain.append(int(alive.argmax()))
    while True:
        here = chain[-1]
        nearest = int(squares[here].argmin())
        if len(chain) > 1 and not squares[here, nearest] < squares[here, chain[-2]]:
            return chain.pop(), chain.pop()
        chain.append(nearest)


def _in_order(merges: Array, heights: Array) -> NDArray[np.float64]:
    """The linkage matrix of merges of clusters, each named by one of those it consists of."""
    k = len(merges) + 1
    parents, sizes, linkage = np.arange(2 * k - 1), np.ones(2 * k - 1), np.zeros((k - 1, 4))
    for step, place in enumerate(np.argsort(heights, kind="stable")):
        pair = sorted(_root(parents, int(each)) for each in merges[place])
        parents[pair] = k + step
        sizes[k + step] = sizes[pair].sum()
        linkage[step] = *pair, heights[place], sizes[k + step]
    return linkage


def _root(parents: Array, node: int) -> int:
    root = node
    while parents[root] != root:
        root = int(parents[root])
    while parents[node] != root:  # so that no way is walked twice
        parents[node], node = root, int(parents[node])
    return root


def groups(linkage: Array, n: int) -> NDArray[np.int32]:
    """The groups (k,) of the k clusters when n are left, numbered by their first cluster."""
    k = len(linkage) + 1
    roots = np.arange(2 * k - n)
    for step in reversed(range(k - n)):
        roots[linkage[step, :2].astype(np.intp)] = roots[k + step]
    _, first, group = np.unique(roots[:k], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group].astype(np.int32)

"""Nested partitions: Ward's merging of clusters of given masses, as a linkage matrix of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.system import config
from rffpk.system.linalg import gaps_of
from rffpk.system.tuning import TUNING

Array = NDArray[Any]

_LEAST = 1e-30  # share of the total mass that an empty cluster gets; it merges at height zero


def _positive(masses: Array) -> Array:
    """Return the masses with zeros replaced by a tiny share of the total mass."""
    return np.maximum(masses, _LEAST * masses.sum())


def ward(gaps: Array, masses: Array) -> NDArray[np.float64]:
    """Merge clusters by Ward's method; return the linkage matrix (k-1, 4) in SciPy's format.

    `gaps` (k, k) are squared distances between centroids, and `masses` (k,) are the weights of the
    clusters. Each line has the indices of two merged clusters, a height, and a number of leaves.
    The height is (2 a b/(a + b))^(1/2) times the distance of the centroids, with masses a and b.
    O(k^2) time and memory."""
    # in `merges`, a merged cluster has the index of one of its clusters
    merges, squares = config.backend().ward_mergers(gaps, _positive(masses))
    heights = np.sqrt(np.maximum(squares, 0))
    k, order = len(merges) + 1, np.argsort(heights, kind="stable")
    # SciPy numbers mergers from k on, after the clusters
    parents, sizes, linkage = [*range(2 * k - 1)], [1] * k, list[tuple[float, ...]]()
    for pair, height in zip(merges[order].tolist(), heights[order].tolist()):
        i, j = sorted(root(parents, each) for each in pair)
        parents[i] = parents[j] = len(sizes)
        sizes.append(sizes[i] + sizes[j])
        linkage.append((i, j, height, sizes[-1]))
    return np.array(linkage, dtype=np.float64).reshape(k - 1, 4)


def root(parents: list[int], node: int) -> int:
    """Follow parents from a node to the root, and return the root.

    Nodes on the way are linked to their grandparents, so that later searches are short."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


def groups(linkage: Array, n: int) -> NDArray[np.int32]:
    """Cut a linkage matrix of k clusters into n groups; return the group of each cluster, (k,).

    Groups are numbered in the order of their first clusters."""
    k = len(linkage) + 1
    # the lowest k - n mergers are made; SciPy gives them the numbers k to 2 k - n - 1
    roots, pairs = [*range(2 * k - n)], linkage[: k - n, :2].astype(np.intp).tolist()
    for step in reversed(range(k - n)):  # each step passes the root of a merger to both parts
        i, j = pairs[step]
        roots[i] = roots[j] = roots[k + step]
    _, first, group = np.unique(roots[:k], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group].astype(np.int32)


def merged(points: Array, masses: Array, n: int) -> NDArray[np.int32]:
    """Merge k clusters to n groups by Ward's method; return the group of each cluster, (k,).

    Very many clusters are first cut into blocks of close clusters, each with a tree. The lowest
    mergers of all trees are taken until `TUNING.tree.whole` clusters are left. O(k^2 F) time for
    centroids (k, F), and quadratic memory only in the number of clusters that are left."""
    k, masses = len(masses), _positive(masses)
    if k <= TUNING.tree.whole:
        return groups(ward(gaps_of(points @ points.T), masses), n)
    blocks = _blocks(points, np.arange(k))
    trees = [ward(gaps_of(points[each] @ points[each].T), masses[each]) for each in blocks]
    heights = np.concatenate([tree[:, 2] for tree in trees])
    of_block = np.repeat(np.arange(len(trees)), [len(tree) for tree in trees])
    left, group, count = max(n, TUNING.tree.whole), np.empty(k, dtype=np.int32), 0
    lowest = np.argsort(heights, kind="stable")[: k - left]
    mergers = np.bincount(of_block[lowest], minlength=len(trees))
    # each merger that is taken leaves one cluster less in its block
    for index, tree, here in zip(blocks, trees, [*map(len, blocks)] - mergers):
        group[index] = count + groups(tree, here)
        count += here
    if count <= n:
        return group
    totals = np.bincount(group, masses)
    return merged(means(points, masses, group), totals, n)[group]


def means(points: Array, masses: Array, group: Array) -> Array:
    """Return the weighted mean of the points in each group, in the order of the groups."""
    p = _positive(masses)
    order = np.argsort(group, kind="stable")
    first = np.flatnonzero(np.r_[True, np.diff(group[order]) > 0])
    sums = np.add.reduceat(points[order] * p[order, None], first)
    return np.asarray(sums / np.add.reduceat(p[order], first)[:, None])


def _blocks(points: Array, index: Array) -> list[Array]:
    """Cut points into blocks of close points; return the indices of each block.

    A large block is halved along the direction of its largest spread, recursively."""
    if len(index) <= TUNING.tree.block:
        return [index]
    x = points[index] - points[index].mean(axis=0)
    along = x[(x**2).sum(axis=1).argmax()]
    for _ in range(TUNING.tree.iterations):  # power iterations, for this direction
        along = x.T @ (x @ along)
        along /= max(float(np.linalg.norm(along)), np.finfo(float).tiny)
    first, second = np.array_split(np.argsort(x @ along, kind="stable"), 2)
    return _blocks(points, index[first]) + _blocks(points, index[second])

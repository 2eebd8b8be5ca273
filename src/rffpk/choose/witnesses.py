"""Three independent witnesses of the number of clusters: eigengaps of graphs of neighbours, heights
of a tree of centroids, and modes of the density. docs/math.md, section 22, has the mathematics.

Each gives a score from 0 to 1 for every number k, at the place k of an array, and zero at 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rffpk.rows.arrays import Array
from rffpk.system.tree import root
from rffpk.system.tuning import TUNING

_ROUNDING = 1e-12  # of the largest cost


def eigengap_scores(eigengaps: list[Array]) -> Array:
    """Return the mean over several graphs of the logarithms of their eigengaps.

    Each logarithm is less a part of what the eigenvalues fall from there to the number 2 k
    anyhow."""
    gaps = np.array(eigengaps)
    sums, k = np.cumsum(np.maximum(gaps, 0), axis=1), np.arange(gaps.shape[1])
    usual = sums[:, np.clip(2 * k - 1, 0, k[-1])] - sums
    most = TUNING.number.largest_gap
    return np.asarray(np.clip(gaps - TUNING.number.usual_part * usual, 0, most).mean(axis=0)) / most


def outstanding_scores(eigengaps: Array) -> Array:
    """Score how far eigengap k of a graph stands out above the next eigengaps, up to 2 k + 2.

    Behind the eigenvalues of communities there are eigenvalues that chance spaces evenly."""
    scores = np.zeros(len(eigengaps))
    for k in range(2, len(eigengaps) - 1):
        next_ones = eigengaps[k + 1 : 2 * k + 3].max()
        scores[k] = eigengaps[k] / max(next_ones, TUNING.number.chance_gap)
    return np.clip(np.log(np.maximum(scores, 1)) / TUNING.number.largest_outstanding, 0, 1)


def height_scores(linkage: Array, largest: int) -> Array:
    """Score how much more the merger of k clusters costs than the merger before it in Ward's tree.

    A part of what the costs fall from there to 2 k + 1 clusters is subtracted."""
    scores, most = np.zeros(largest + 1), TUNING.number.largest_height
    costs = linkage[::-1, 2] ** 2  # twice the costs of the mergers of 2, 3, ... clusters
    if len(costs) == 0 or not costs[0] > 0:
        return scores
    logs = np.log(np.maximum(costs, _ROUNDING * costs[0]))
    place = np.arange(len(logs) - 1)
    usual = TUNING.number.usual_part * (logs[1:] - logs[np.minimum(2 * place + 3, len(logs) - 1)])
    scores[2 : len(logs) + 1] = np.clip(logs[:-1] - logs[1:] - usual, 0, most)
    scores[len(logs) // 2 + 2 :] = 0  # of clusters of single leaves
    return scores / most


def mode_scores(distances: Array, index: Array, largest: int) -> Array:
    """Return the share of scales and significances at which the density of rows has k modes.

    `distances` are from rows to their nearest rows, rising, themselves the first. `index` has
    the indices of the nearest rows."""
    if distances.shape[1] == 1:  # a single row
        return shares_of_counts(np.ones(1, dtype=np.intp), largest)
    dimension = intrinsic_dimension(distances, 0, TUNING.number.neighbors[0])
    counts = []
    for r in sorted({min(r, distances.shape[1] - 1) for r in TUNING.number.neighbors}):
        far = distances[:, r]
        least = far[far > 0].min(initial=math.inf)
        # On a line the way between two modes passes the lowest row between them, and not around it.
        # So chance is in its depth, too: below two dimensions d densities fall d/2 as far.
        shown = min(dimension, dimension**2 / 2)
        density = -shown * np.log(np.maximum(far, least)) if least < math.inf else 0 * far
        ends = np.arange(0, len(far) * r + 1, r)
        places = index[:, 1 : r + 1].ravel()
        edges = csr_array((np.ones(len(places)), places, ends), shape=(len(far), len(far)))
        counts.append(mode_counts(density, edges, r))
    return shares_of_counts(np.concatenate(counts), largest)


def shares_of_counts(counts: Array, largest: int) -> Array:
    """Return the share of the counts that equal k; of many, counts near k count in part."""
    k = np.arange(largest + 1)
    apart = np.abs(counts[:, None] - k) / (1 + k // TUNING.number.exact_modes)
    return np.asarray(np.maximum(1 - apart, 0).mean(axis=0))


def mode_counts(density: Array, edges: csr_array, r: float) -> NDArray[np.intp]:
    """Count modes of a logarithm of the density at the nodes of a graph, for each significance.

    The density is known from r neighbors of each node. Modes whose prominence is small are
    merged along the graph in falling density. Chazal, Guibas, Oudot, Skraba: Persistence-based
    clustering in Riemannian manifolds. JACM 2013."""
    prominences = _prominences(density, edges)
    # divided by (2 log(n/r))^(1/2) of a thousand rows and ten neighbors
    deviation = math.sqrt(2 * math.log(max(len(density) / r, 2)) / r) / 3.0
    significances = np.multiply(TUNING.number.significances, deviation)
    return np.array([np.count_nonzero(prominences >= least) for least in significances])


def _prominences(density: Array, edges: csr_array) -> Array:
    """Return how far each mode stands out above the highest way to a higher mode.

    It is infinite where there is no way, and zero of rows that are no modes. The densest rows
    come first."""
    n = len(density)
    order = np.argsort(-density, kind="stable")
    rank = np.empty(n, dtype=np.intp)
    rank[order] = np.arange(n)
    height, pairs = density[order], edges.tocoo()
    ends = rank[pairs.row], rank[pairs.col]
    high, low = np.minimum(*ends), np.maximum(*ends)
    mode = np.arange(n)  # that of the densest neighbour of a row, if this is denser
    np.minimum.at(mode, low, high)
    while (mode != mode[mode]).any():
        mode = mode[mode]
    # an edge is there from the lower of its ends on; the first one between two modes counts
    across = np.flatnonzero(mode[low] != mode[high])
    across = across[np.argsort(low[across], kind="stable")]
    met = np.array([mode[low[across]], mode[high[across]]])
    first = np.sort(np.unique(met.min(axis=0) * n + met.max(axis=0), return_index=True)[1])
    parent, prominences = [*range(n)], np.where(mode == np.arange(n), math.inf, 0.0)
    for i, j, level in zip(*met[:, first].tolist(), height[low[across[first]]].tolist()):
        i, j = sorted((root(parent, i), root(parent, j)))
        if i != j:
            parent[j] = i
            prominences[j] = height[j] - level
    return prominences


def rare_share(distances: Array) -> float:
    """Return the share of rows that have a few near neighbors and then none up to a distance.

    The rows are in clusters that have fewer rows here than neighbors are looked at.

    In a cloud of even density in d dimensions j d log(T_(j+1) / T_j) of the distances to the
    j-th neighbors is exponential, with mean one."""
    last, tuning = distances.shape[1] - 1, TUNING.number
    first, middle = tuning.jump_neighbors, tuning.neighbors[0]
    if last <= first:
        return 0.0
    scales = [intrinsic_dimension(distances, *ring) for ring in ((0, middle), (middle, last))]
    far = np.maximum(distances, distances[distances > 0].min(initial=1.0))
    jumps = np.log(far[:, first + 1 :] / far[:, first:-1]) * np.arange(first, last)
    return float((max(scales) * jumps.max(axis=1) > tuning.jump).mean())


def intrinsic_dimension(distances: Array, first: int, last: int) -> float:
    """Return the dimension in which rows have neighbors at these distances.

    Distances to the neighbors of the numbers after `first` to `last` count. Levina, Bickel:
    Maximum likelihood estimation of intrinsic dimension. NeurIPS 2004."""
    last = min(last, distances.shape[1] - 1)
    number = np.arange(first + 1, last)  # of neighbours
    some = distances[distances[:, min(first + 1, last)] > 0]
    if not len(number) or not len(some):
        return 1.0
    # in d dimensions d log(T_l / T_j) has the mean 1/j + ... + 1/(l - 1)
    expected = np.cumsum(1 / np.arange(last - 1, 0, -1))[::-1][number - 1].mean()
    found = float(np.log(some[:, last : last + 1] / some[:, number]).mean())
    return float(expected) / found if found > 0 else 1.0

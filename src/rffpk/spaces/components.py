"""Connected components of a graph, and which components are kept for clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns
from rffpk.spaces.neighbors import Neighbourhoods
from rffpk.system.tuning import TUNING


@dataclass(frozen=True)
class Components:
    """The connected components of a graph, the largest first."""

    labels: Array  # (m,): the index of each node's component; -1: the node is in no component
    shares: Array  # (n_components,): fractions of the total weight, falling
    rows: Array  # (n_components,): numbers of rows
    evidence: Array  # the larger of `rows` and of a component's weight over the mean row weight
    enough: Array  # (n_components,) mask: components with enough `evidence` to be a cluster


# Takes the components and an index, and returns how deep the valley is, the gap around a component.
Valley = Callable[[Components, int], float]


@dataclass(frozen=True)
class Parts:
    """Connected components of a graph, and which components are kept for clusters."""

    components: Components
    n_rows: int
    least_rows: float  # a small component with fewer rows is not kept
    least_valley: float  # the valley around a component is deep from this value on
    valley: Valley
    counted: Array  # (n_components,) mask: kept components
    left_out: Array  # (n_components,) mask: components of two or more nodes that are not kept
    kept: Array  # (m,) mask: nodes of kept components
    labels: Array  # for each kept node the index of its component among kept components
    n_kept: int  # number of kept components

    def lose_rows(self, k: int) -> bool:
        """Return whether the components in `left_out` may be clusters.

        They may be clusters if together they have as many rows as a large component. They may also
        be if one of them has enough rows, or a deep valley around it. Most graphs leave out a few
        rows on their fringe: the result is then False."""
        rows = self.components.evidence
        if rows[self.left_out].sum() >= max(TUNING.graph.large / k * self.n_rows, self.least_rows):
            return True
        return any(
            self.components.enough[each]
            or self.valley(self.components, int(each)) >= self.least_valley
            for each in np.flatnonzero(self.left_out & (rows >= TUNING.graph.inside - 1e-9))
        )

    def show_clusters(self, k: int) -> bool:
        """Return whether the kept components show clusters that a clustering of columns may miss.

        They do if there are at least k kept components, or if a kept component is small."""
        small = self.components.shares[self.counted] < TUNING.graph.large / k
        return self.n_kept >= k or bool(small.any())


def divided(
    graph: Any, share: Array, held: Array, degrees: Array, k: int, n_rows: int, valley: Valley,
    n_columns: float = math.inf, rows: Array | None = None,
) -> Parts:  # fmt: skip
    """Divide a graph into connected components, and decide which ones are kept for k clusters.

    Nodes that the walk hardly ever leaves are dropped first, unless they are as heavy as a
    component. `_counted` then decides which components are kept.

    `graph` (m, m) is a sparse adjacency matrix. `share` (m,) is the fraction of the total weight at
    each node. `held` (m,) is the weight of the loop from each node to itself, a part of `degrees`
    (m,). `rows` (m,) are numbers of rows at the nodes; None: `n_rows * share`. `n_columns` is the
    number of columns of the rows: with few columns a valley must be deeper."""
    rows = n_rows * share if rows is None else rows
    tuning = TUNING.graph
    least_rows = max(tuning.least_rows, tuning.rows_of_root * math.sqrt(n_rows / k))
    least_valley = max(tuning.valley, tuning.denser / n_columns)
    # The walk hardly leaves dangling nodes. On the fringe of the rows their eigenvectors may be as
    # slow as eigenvectors that separate clusters. A node as heavy as a component does not dangle.
    leave = 1 - np.divide(held, degrees, out=np.ones(len(share)), where=degrees > 0)
    dangle = leave < tuning.dangling * quantile(leave, share, 0.5)
    present = (share > 0) & ~(dangle & (share < min(tuning.large / k, least_rows / n_rows)))
    labels = np.full(len(share), -1)
    nodes = graph if present.all() else graph[present][:, present]
    labels[present] = connected_components(nodes, directed=False)[1]
    shares = np.bincount(labels[present], share[present])
    order = np.argsort(-shares, kind="stable")
    labels[present] = np.argsort(order, kind="stable")[labels[present]]
    shares, rows = shares[order], np.bincount(labels[present], rows[present])
    evidence = np.maximum(rows, shares * n_rows)
    enough = evidence >= least_rows * (1 - 1e-9)
    components = Components(labels, shares, rows, evidence, enough)
    counted = _counted(components, k, valley, least_valley)
    kept = np.append(counted, False)[labels]  # the label -1 takes the appended False
    several = np.bincount(labels[present], minlength=len(counted)) > 1
    return Parts(
        components, n_rows, least_rows, least_valley, valley, counted,
        several & ~counted & (shares > 0), kept, (np.cumsum(counted) - 1)[labels[kept]],
        int(counted.sum()),
    )  # fmt: skip


def _counted(components: Components, k: int, valley: Valley, least_valley: float) -> Array:
    """Return a mask (n_components,) of the components that are kept for k clusters.

    Large components are kept. While fewer than k are kept, smaller components with enough rows are
    visited, the largest first, and are kept if the valley around them is deep. If the kept
    components have less than half of the weight, all components with enough rows are kept. If these
    rules keep no component, all components are kept."""
    shares, enough = components.shares, components.enough
    counted = shares >= TUNING.graph.large / k
    for number in np.flatnonzero(enough & ~counted):
        if counted.sum() >= k:
            break
        counted[number] = valley(components, int(number)) >= least_valley
    if shares[counted].sum() < shares.sum() / 2:  # there are many more components than k
        counted |= enough
    return counted if counted.any() else ~counted


def valley_of_rows(
    X: Columns, mass: Array, node: Array, n_threads: int, components: Components, number: int
) -> float:
    """Return the depth of the valley around a component: log(a / b) of two distances.

    The component has the index `number`. Row i of X has the weight mass[i] and belongs to node[i].
    Distance a is a low quantile, over rows of the component, of distances to the nearest row
    outside. Distance b is the median of distances to the `TUNING.graph.inside`-th nearest row
    inside. Rows outside are in other components with enough rows.

    The result is minus infinity if the component has no row in X, and infinity if there are no rows
    outside."""
    labels = components.labels[node]
    own = labels == number
    outside = components.enough[labels] & ~own & (labels >= 0)
    if not own.any():  # X may be a sample
        return -math.inf
    if not outside.any():
        return math.inf
    rows, p = X[own], mass[own]
    r = TUNING.graph.inside + 1
    near = Neighbourhoods(rows, r, 0.0, n_threads)._nearest(rows)[0].max(axis=1)
    far = Neighbourhoods(X[outside], 1, 0.0, n_threads)._nearest(rows)[0][:, 0]
    inside, around = quantile(near, p, 0.5), quantile(far, p, TUNING.graph.around_quantile)
    with np.errstate(divide="ignore", invalid="ignore"):  # distances may be rounded to zero
        return float(np.log(np.divide(around, inside)) / 2)


def quantile(values: Array, weight: Array, q: float) -> float:
    """Return the least value such that values up to it have the fraction q of the weight."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(sums, q * sums[-1])])

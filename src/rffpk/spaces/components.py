"""Connected components of a graph, which of them count, and nodes that dangle."""

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

    labels: Array  # (m,): the component of each node; -1 of nodes that no component has
    shares: Array  # of the weight of the rows, falling
    rows: Array  # their numbers of rows
    evidence: Array  # `rows`, or the number of rows of mean weight that weigh as much, if larger
    enough: Array  # whether they have so many rows that a valley around them is evidence


Valley = Callable[[Components, int], float]  # around a component


@dataclass(frozen=True)
class Parts:
    """The nodes of a graph that count, and the components that they are in."""

    components: Components
    n_rows: int
    least_rows: float  # of components that count without being large, ...
    least_valley: float  # ... and around them
    valley: Valley
    counted: Array  # which components count
    left_out: Array  # which components of several nodes do not count
    kept: Array  # (m,): whether a node counts
    labels: Array  # the component of each node that counts
    n_kept: int  # components that count

    def lose_rows(self, k: int) -> bool:
        """Return whether components that do not count may be clusters.

        One of them has enough rows, or has fewer rows and a valley around it, or all together
        have the rows of a large component. The few rows that most graphs leave out on their
        fringe are no cluster."""
        rows = self.components.evidence
        if rows[self.left_out].sum() >= max(TUNING.graph.large / k * self.n_rows, self.least_rows):
            return True
        return any(
            self.components.enough[each]
            or self.valley(self.components, int(each)) >= self.least_valley
            for each in np.flatnonzero(self.left_out & (rows >= TUNING.graph.inside - 1e-9))
        )

    def show_clusters(self, k: int) -> bool:
        """Return whether the components that count show clusters that other methods may lose.

        There are k of them, or a component is small."""
        small = self.components.shares[self.counted] < TUNING.graph.large / k
        return self.n_kept >= k or bool(small.any())


def divided(
    graph: Any, share: Array, held: Array, degrees: Array, k: int, n_rows: int, valley: Valley,
    n_columns: float = math.inf, rows: Array | None = None,
) -> Parts:  # fmt: skip
    """Divide a graph into connected components, and decide which components count for k clusters.

    Outlying nodes that the walk hardly ever leaves are left out first. A component counts if it has
    enough rows, or a valley of low density around it.

    `share` (m,) has the part of the total weight at each node. `held` (m,) has the part of each
    degree that is a loop of the node. `rows` (m,) has numbers of rows, where they do not follow
    from the shares of `n_rows` rows."""
    rows = n_rows * share if rows is None else rows
    tuning = TUNING.graph
    least_rows = max(tuning.least_rows, tuning.rows_of_root * math.sqrt(n_rows / k))
    least_valley = max(tuning.valley, tuning.denser / n_columns)
    # Nodes that the walk hardly leaves dangle. On the fringe of the rows their functions may be as
    # slow as functions that separate clusters. A node with a component's share does not dangle.
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
    kept = np.append(counted, False)[labels]  # the label -1 takes the last one
    several = np.bincount(labels[present], minlength=len(counted)) > 1
    return Parts(
        components, n_rows, least_rows, least_valley, valley, counted,
        several & ~counted & (shares > 0), kept, (np.cumsum(counted) - 1)[labels[kept]],
        int(counted.sum()),
    )  # fmt: skip


def _counted(components: Components, k: int, valley: Valley, least_valley: float) -> Array:
    """Return which components count for k clusters.

    Large components count. While they are fewer than k, the largest of the components with a
    valley around them count, too. If the components so far have less than half of the rows, all
    components with enough rows count. If no component counts by these rules, all do."""
    shares, enough = components.shares, components.enough
    counted = shares >= TUNING.graph.large / k
    for number in np.flatnonzero(enough & ~counted):
        if counted.sum() >= k:
            break
        counted[number] = valley(components, int(number)) >= least_valley
    if shares[counted].sum() < shares.sum() / 2:  # there are many more than k
        counted |= enough
    return counted if counted.any() else ~counted


def valley_of_rows(
    X: Columns, mass: Array, node: Array, n_threads: int, components: Components, number: int
) -> float:
    """Return the valley around a component of nodes.

    Row i of X has the weight mass[i] and the node node[i]."""
    labels = components.labels[node]
    own = labels == number
    outside = components.enough[labels] & ~own & (labels >= 0)
    if not own.any():  # in a sample
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
    """Return the least value such that the values up to it have the part q of the weight."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(sums, q * sums[-1])])

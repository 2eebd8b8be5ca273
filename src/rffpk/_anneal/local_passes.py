"""Passes of the hard rule in which each row is compared with the centroids near its own alone.

A row whose centroid was a moves to the nearest of the few centroids that are nearest to a, itself
among them, so the objective falls as it does in passes over all centroids, and not much less: of
many clusters nearly all are far from a row. A pass takes O(n c F) time for c near centroids in
place of O(n k F), as in the closures of Wang et al.: Fast approximate k-means via cluster closures.
CVPR 2012. The labels that a fit ends with are those of passes over all centroids, which follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances

from rffpk._rows.passes import one_pass, shifted_features
from rffpk._rows.rows import Rows
from rffpk._rows.sums import Sums
from rffpk._utils import config
from rffpk._utils.arrays import Array, Unit
from rffpk._utils.sparse_rows import SparseRows
from rffpk._utils.tiles import row_tiles

_NEAR = 16  # centroids that a row is compared with

# They pay from so many multiply-adds of a pass over all of many centroids.
_LEAST_WORK = 1 << 28

_WANTED = ("labels", "nearest")


def pays(rows: Rows, k: int) -> bool:
    """Whether such passes are possible, and faster than those over all centroids."""
    columns = len(rows.xs) == 1 and isinstance(rows.maps[0], (Unit, type(None)))
    dense = columns and not isinstance(rows.xs[0], SparseRows)
    fixed = rows.eta is None and rows.stream is None and rows.present is None
    return dense and fixed and rows.n * k * len(rows.shift) >= _LEAST_WORK


@dataclass
class Assigned:
    """The centroids of the rows."""

    labels: Array  # (n,)
    nearest: Array  # (n,), the squared distances from them


class LocalPasses:
    """Passes over the same rows. Memory: O(n), and O(k^2) where centroids are compared."""

    def __init__(self, rows: Rows, theta: Array) -> None:
        self.rows = rows
        sums, outputs = one_pass(rows, theta, -math.inf, want=_WANTED)
        self.now = Assigned(outputs["labels"], outputs["nearest"])
        self._squares = float(sums.Q.sum())
        self._cost = self._weighted(self.now.nearest)
        self._near: Array | None = None

    def nearest_of(self, theta: Array) -> Assigned:
        """The nearest of all centroids."""
        _, outputs = one_pass(self.rows, theta, -math.inf, want=_WANTED)
        return Assigned(outputs["labels"], outputs["nearest"])

    def compare(self, theta: Array) -> None:
        """Find anew which centroids are near each other."""
        at = theta.astype(self.rows.dtype)
        apart = euclidean_distances(at, squared=True)
        np.fill_diagonal(apart, -1)
        near = np.argpartition(apart, _NEAR - 1, axis=1)[:, :_NEAR]
        self._near = np.sort(near, axis=1).astype(np.int32)

    def sums(self, theta: Array) -> Sums:
        """The sums of a pass at the centroids theta (k, F), in which the labels change."""
        before, (self.now, _, N) = self.now.labels, self._visit(theta)
        rows, labels, k = self.rows, self.now.labels, len(theta)
        self._add(N, np.flatnonzero(labels != before), labels)
        G = np.bincount(labels, rows.weight, k).astype(np.float64)
        hard, unit = self._weighted(self.now.nearest), rows.weight_unit
        Q = np.full((k, 1), self._squares / k)  # of which the sum alone is known
        sums = Sums(N * unit, G * unit, Q, np.zeros(k), hard, hard, rows.widths)
        self._cost = sums.cost_at(rows.centroids(sums, theta), rows.alpha) if hard > 0 else 0.0
        return sums

    def cost(self) -> float:
        """The hard objective of the labels at the centroids of their rows."""
        return self._cost

    def second(self, theta: Array) -> dict[str, Array]:
        """The labels of another pass, with squared distances from the two nearest centroids."""
        self.now, second, _ = self._visit(theta)
        return {"labels": self.now.labels, "nearest": self.now.nearest, "second": second}

    def _weighted(self, costs: Array) -> float:
        """The weighted sum of a number of each row."""
        p, unit = self.rows.weight, self.rows.weight_unit
        total = costs.sum(dtype=np.float64) if p is None else costs @ p.astype(np.float64)
        return unit * float(total)

    def add(self, theta: Array, count: int) -> None:
        """Compare all rows with the last `count` centroids, which are new."""
        first = len(theta) - count
        new = self.nearest_of(theta[first:])
        nearer = new.nearest < self.now.nearest
        self.now = Assigned(
            np.where(nearer, first + new.labels, self.now.labels),
            np.where(nearer, new.nearest, self.now.nearest),
        )
        self._near = None

    def remove(self, theta: Array, removed: Array) -> None:
        """Give the rows of removed centroids to the nearest of the others."""
        number = np.cumsum(~removed) - 1
        lost = np.flatnonzero(removed[self.now.labels])
        labels, nearest = number[self.now.labels], self.now.nearest.copy()
        for part in row_tiles(len(lost), theta.shape[1]) if len(lost) else ():
            rows = self.rows.take(lost[part])
            _, outputs = one_pass(rows, theta[~removed], -math.inf, want=_WANTED)
            labels[lost[part]], nearest[lost[part]] = outputs["labels"], outputs["nearest"]
        self.now = Assigned(labels.astype(np.int32), nearest)
        self._near = None

    def state(self) -> dict[str, Array]:
        """What the passes so far have left."""
        near = np.empty((0, _NEAR), np.int32) if self._near is None else self._near
        return {"labels": self.now.labels, "nearest": self.now.nearest, "near": near}

    def restore(self, state: dict[str, Array]) -> None:
        """Set what `state` returned."""
        self.now = Assigned(state["labels"], state["nearest"])
        self._near = state["near"] if len(state["near"]) else None

    def _visit(self, theta: Array) -> tuple[Assigned, Array, Array]:
        """A pass: the labels, the second least distances, and the sums of the rows that stay."""
        rows, k = self.rows, len(theta)
        if self._near is None or len(self._near) != k:
            self.compare(theta)
        at = np.ascontiguousarray(theta, dtype=rows.dtype)
        order, ends = _by_label(self.now.labels, k)
        labels, nearest, second, stay = config.backend().near_pass(
            rows.xs[0], rows.maps[0] is not None, rows.shifts[0], rows.weight, at, self._near,
            order, ends, rows.n_threads,
        )  # fmt: skip
        return Assigned(labels, nearest), second, stay

    def _add(self, N: Array, moved: Array, labels: Array) -> None:
        """Add moved rows to the sums."""
        for part in row_tiles(len(moved), N.shape[1]) if len(moved) else ():
            index = moved[part]
            index = index[np.argsort(labels[index], kind="stable")]
            x = shifted_features(self.rows.take(index)).astype(np.float64)
            if self.rows.weight is not None:
                x *= self.rows.weight[index][:, None]
            new = labels[index]
            first = np.flatnonzero(np.r_[True, new[1:] != new[:-1]])
            N[new[first]] += np.add.reduceat(x, first)


def _by_label(labels: Array, k: int) -> tuple[Array, Array]:
    """The rows in the order of their labels, and where those of each label begin and end."""
    ones = np.ones(len(labels), dtype=bool)
    by_row = csr_array((ones, labels, np.arange(len(labels) + 1)), shape=(len(labels), k))
    by_label = by_row.tocsc()
    return by_label.indices.astype(np.int32), by_label.indptr.astype(np.int64)

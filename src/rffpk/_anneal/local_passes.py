"""Passes of the hard rule in which each row is compared with the centroids near its own alone.

A row whose centroid was a moves to the nearest of the few centroids that are nearest to a, itself
among them, so the objective falls as it does in passes over all centroids, and not much less: of
many clusters nearly all are far from a row. A pass takes O(n c F) time for c near centroids in
place of O(n k F), as in the closures of Wang et al.: Fast approximate k-means via cluster closures.
CVPR 2012. The labels that a fit ends with are those of passes over all centroids, which follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances

from rffpk._anneal.hamerly import (
    MOST_ACTIVE,
    Bounds,
    bounds_of,
    rounding_errors,
    shifts_of,
    undecided,
)
from rffpk._rows.directions import bounded_pass, find_directions
from rffpk._rows.passes import one_pass, shifted_features
from rffpk._rows.rows import Rows
from rffpk._rows.sums import Sums
from rffpk._utils import config
from rffpk._utils.arrays import Array, Unit
from rffpk._utils.sparse_rows import SparseRows
from rffpk._utils.tiles import row_tiles

_NEAR = 16  # centroids that a row is compared with, ...
_NEW = 8  # ... and this many of those that are new

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


@dataclass
class Kept:
    """What a pass keeps for the next, which leaves out rows whose labels bounds decide."""

    at: Array  # the centroids of the pass
    N: Array  # its sums
    upper: Array  # (n,), of the distances from the own centroids
    lower: Array  # (n,), of those from the others that a row is compared with


class LocalPasses:
    """Passes over the same rows. Memory: O(n), and O(k^2) where centroids are compared.

    `bounded`: they leave out the rows that bounds of distances decide, and no costs of rows are
    known.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.bounded = False
        self.now: Assigned | None = None
        self._kept: Kept | None = None
        self._near: Array | None = None
        self._directions: Array | None = None  # where they pay
        self._squares = self._cost = 0.0  # of a pass over all centroids, the first

    def sums(self, theta: Array, every: bool = False) -> Sums:
        """The sums of a pass at the centroids theta (k, F), in which the labels change; `every`:
        rows are compared with every centroid."""
        kept, self._kept = self._kept, None
        if not every and self.now is not None:
            return self._sums(theta, kept)
        before, sums = self.now, self._visit_all(theta)
        if before is None or not np.array_equal(before.labels, self._labels):
            return sums
        # those of the same labels have the same bits
        return self._sums(theta, None) if kept is None else self._made(theta, kept.N)

    def _sums(self, theta: Array, kept: Kept | None) -> Sums:
        """The sums of a pass over near centroids."""
        at = np.ascontiguousarray(theta, dtype=self.rows.dtype)
        if kept is not None and self._move_active(kept, at):
            self._kept = kept
            return self._made(theta, kept.N)
        before = self._labels
        self.now, self._second, N = self._visit(self.rows, at, before)
        moved = np.flatnonzero(self.now.labels != before)
        self._add(N, moved, self.now.labels)
        sums = self._made(theta, N, self._weighted(self.now.nearest))
        if self.bounded:
            upper, lower = self._bounds(self.now.nearest, self._second, moved, at)
            self._kept = Kept(at, N, upper, lower)
        return sums

    def _bounds(self, nearest: Array, second: Array, moved: Array, at: Array) -> Bounds:
        """The bounds of visited rows, in place of their distances. In the next pass rows that have
        moved are compared with other centroids, of which nothing is known."""
        upper, lower = bounds_of(nearest, second, rounding_errors(self.rows, at))
        lower[moved] = 0
        return upper, lower

    def _made(self, theta: Array, N: Array, hard: float | None = None) -> Sums:
        """The sums at the labels, with these sums of rows, whose `hard` objective may be known."""
        rows, k = self.rows, len(theta)
        G = np.bincount(self._labels, rows.weight, k).astype(np.float64)
        unit = rows.weight_unit
        Q = np.full((k, 1), self._squares / k)  # of which the sum alone is known
        sums = Sums(N * unit, G * unit, Q, np.zeros(k), 0.0, 0.0, rows.widths)
        hard = sums.cost_at(theta, rows.alpha) if hard is None else hard
        sums = replace(sums, soft=hard, hard=hard)
        self._cost = self._cost_of(sums, theta)
        return sums

    def _move_active(self, kept: Kept, at: Array) -> bool:
        """Adjust the bounds to new centroids, and visit the rows that they do not decide; returns
        False, without a visit, if these are most."""
        rows, labels, near = self.rows, self._labels, self._near
        assert near is not None
        shifts = shifts_of(rows, kept.at, at)
        others = np.where(near == np.arange(len(at))[:, None], 0, shifts[near]).max(axis=1)
        bounds, errors = (kept.upper, kept.lower), rounding_errors(rows, at)
        active = np.flatnonzero(undecided(labels, bounds, shifts, others, errors))
        if len(active) > MOST_ACTIVE * rows.n:
            return False
        kept.at = at
        for part in row_tiles(len(active), at.shape[1]) if len(active) else ():
            index = active[part]
            found, second, _ = self._visit(rows.take(index), at, labels[index])
            moved = np.flatnonzero(found.labels != labels[index])
            bounds = self._bounds(found.nearest, second, moved, at)
            kept.upper[index], kept.lower[index] = bounds
            self._add(kept.N, index[moved], labels, -1.0)
            labels[index] = found.labels
            self._add(kept.N, index[moved], labels)
        return True

    @property
    def _labels(self) -> Array:
        assert self.now is not None
        return self.now.labels

    def cost(self, theta: Array) -> float:
        """The hard objective of the labels at the centroids of their rows."""
        if self.now is None:
            self._visit_all(theta)
        return self._cost

    def second(self) -> dict[str, Array]:
        """The labels of the last pass, with squared distances from the two nearest centroids."""
        return vars(self.now) | {"second": self._second}

    def _visit_all(self, theta: Array) -> Sums:
        """A pass over all centroids."""
        if self._directions is None:
            self._directions = find_directions(self.rows, theta)
        sums, outputs = bounded_pass(self._directions, self.rows, theta, want=_WANTED)
        self.now = Assigned(outputs["labels"], outputs["nearest"])
        self._near, self._squares = None, float(sums.Q.sum())
        self._cost = self._cost_of(sums, theta)
        return sums

    def _cost_of(self, sums: Sums, theta: Array) -> float:
        at = self.rows.centroids(sums, theta)
        return sums.cost_at(at, self.rows.alpha) if sums.hard > 0 else 0.0

    def _weighted(self, costs: Array) -> float:
        """The weighted sum of a number of each row."""
        p, unit = self.rows.weight, self.rows.weight_unit
        total = costs.sum(dtype=np.float64) if p is None else costs @ p.astype(np.float64)
        return unit * float(total)

    def add(self, theta: Array, count: int) -> None:
        """Let rows see, in the next pass, the last `count` centroids, which are new, too."""
        k = len(theta) - count
        new = k + _nearest_of_each(theta[:k], theta[k:], min(_NEW, count), self.rows.dtype)
        near = np.hstack([self._near_of(theta[:k]), new]).astype(np.int32)
        self._near = np.vstack([near, np.zeros((count, near.shape[1]), np.int32)])

    def remove(self, theta: Array, removed: Array) -> None:
        """Give the rows of removed centroids to the nearest of the others."""
        assert self.now is not None
        number = np.cumsum(~removed) - 1
        lost = np.flatnonzero(removed[self.now.labels])
        labels, nearest = number[self.now.labels], self.now.nearest.copy()
        for part in row_tiles(len(lost), theta.shape[1]) if len(lost) else ():
            rows = self.rows.take(lost[part])
            _, outputs = one_pass(rows, theta[~removed], -math.inf, want=_WANTED)
            labels[lost[part]], nearest[lost[part]] = outputs["labels"], outputs["nearest"]
        self.go_on(Assigned(labels.astype(np.int32), nearest))

    def go_on(self, before: Assigned) -> None:
        """Go on from these labels."""
        self.now, self._near = before, None

    def state(self) -> dict[str, Array]:
        """What the passes so far have left."""
        assert self.now is not None
        near = np.empty((0, _NEAR), np.int32) if self._near is None else self._near
        directions = np.empty((0, 0)) if self._directions is None else self._directions
        totals, kept = np.array([self._squares, self._cost]), self._kept
        found = vars(self.now) | {"near": near, "totals": totals, "directions": directions}
        return found if kept is None else found | vars(kept)

    def restore(self, state: dict[str, Array]) -> None:
        """Set what `state` returned."""
        self.now = Assigned(state["labels"], state["nearest"])
        self._squares, self._cost = state["totals"].tolist()
        self._near = state["near"] if len(state["near"]) else None
        self._directions = state["directions"] if len(state["directions"]) else None
        kept = {name: state[name] for name in ("at", "N", "upper", "lower") if name in state}
        self._kept = Kept(**kept) if kept else None

    def _near_of(self, theta: Array) -> Array:
        """The centroids that are near each one, itself among them."""
        near = _nearest_of_each(theta, theta, _NEAR, self.rows.dtype)
        return np.sort(near, axis=1).astype(np.int32)

    def _visit(self, rows: Rows, at: Array, labels: Array) -> tuple[Assigned, Array, Array]:
        """A pass over some or all rows: the labels, the second least distances, and the sums of the
        rows that stay."""
        k = len(at)
        if self._near is None or len(self._near) != k:
            self._near = self._near_of(at)
        order, ends = _by_label(labels, k)
        labels, nearest, second, stay = config.backend().near_pass(
            rows.xs[0], rows.maps[0] is not None, rows.shifts[0], rows.weight, at, self._near,
            order, ends, rows.n_threads,
        )  # fmt: skip
        if self._near.shape[1] > _NEAR:
            self._near = None
        return Assigned(labels, nearest), second, stay

    def _add(self, N: Array, moved: Array, labels: Array, sign: float = 1.0) -> None:
        """Add moved rows, times a sign, to the sums of their labels."""
        for part in row_tiles(len(moved), N.shape[1]) if len(moved) else ():
            index = moved[part]
            index = index[np.argsort(labels[index], kind="stable")]
            x = sign * shifted_features(self.rows.take(index)).astype(np.float64)
            if self.rows.weight is not None:
                x *= self.rows.weight[index][:, None]
            new = labels[index]
            first = np.flatnonzero(np.r_[True, new[1:] != new[:-1]])
            N[new[first]] += np.add.reduceat(x, first)


def _nearest_of_each(theta: Array, others: Array, count: int, dtype: Any) -> Array:
    """The `count` of the other centroids that are nearest to each one."""
    found, at, same = (
        np.empty((len(theta), count), dtype=np.intp),
        others.astype(dtype),
        theta is others,
    )
    for part in row_tiles(len(theta), len(others)):
        apart = euclidean_distances(theta[part].astype(dtype), at, squared=True)
        if same:
            apart[np.arange(len(apart)), np.arange(part.start, part.stop)] = -1
        found[part] = np.argpartition(apart, count - 1, axis=1)[:, :count]
    return found


def _by_label(labels: Array, k: int) -> tuple[Array, Array]:
    """The rows in the order of their labels, and where those of each label begin and end."""
    ones = np.ones(len(labels), dtype=bool)
    by_row = csr_array((ones, labels, np.arange(len(labels) + 1)), shape=(len(labels), k))
    by_label = by_row.tocsc()
    return by_label.indices.astype(np.int32), by_label.indptr.astype(np.int64)

"""Passes of the hard rule in which each row is compared with the centroids near its own alone.

A row whose centroid was a moves to the nearest of the few centroids that are nearest to a, itself
among them, so the objective falls as it does in passes over all centroids, and not much less: of
many clusters nearly all are far from a row. A pass takes O(n c F) time for c near centroids in
place of O(n k F), as in the closures of Wang et al.: Fast approximate k-means via cluster closures.
CVPR 2012. The labels that a fit ends with are those of passes over all centroids, which follow.

A pass is a function of what the one before has found, which it leaves as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances

from rffpk._anneal.hamerly import MOST_ACTIVE, bounds_of, rounding_errors, shifts_of, undecided
from rffpk._rows.directions import bounded_pass, find_directions
from rffpk._rows.passes import one_pass, shifted_features
from rffpk._rows.rows import Rows
from rffpk._rows.sums import Sums
from rffpk._utils import config
from rffpk._utils.arrays import Array
from rffpk._utils.tiles import row_tiles

_NEAR = 16  # centroids that a row is compared with, ...
_NEW = 8  # ... and this many of those that are new

# With all of them, from where more than this part of the rows have their nearest one elsewhere ...
_MOST_MISSED = 2e-3
_NONE_MISSED = 5e-4  # ... until at most this part ...
_LOOKED_AT = 1000  # ... of about so many rows has.


class Need(NamedTuple):
    """What is needed of a pass besides labels that lower the objective."""

    every: bool = False  # that rows are compared with all centroids
    second: bool = False  # the squared distances from the next centroids
    bounded: bool = False  # that it leaves out the rows that bounds decide: no distances are needed
    missed: bool = False  # how many rows miss their nearest centroid, and so how passes go on


@dataclass(frozen=True)
class Bounds:
    """Bounds of the distances of the rows from centroids, and what was computed there."""

    at: Array  # the centroids of the pass
    N: Array  # its sums
    upper: Array  # (n,), of the distances from the own centroids
    lower: Array  # (n,), of those from the others that a row is compared with


@dataclass(frozen=True)
class Assignment:
    """What a pass has found of the rows. None: it is not known."""

    labels: Array  # (n,)
    squares: float  # the weighted sum of their squared norms
    every: bool  # whether they were compared with all centroids
    cost: float | None = None  # the hard objective of the labels at the means of their rows
    own: Array | None = None  # (n,), the squared distances from the centroids of the labels, ...
    other: Array | None = None  # ... and from the next ones that rows were compared with
    near: Array | None = None  # (k, c): with which ones the rows of each are to be compared next
    new: int = 0  # the number of the last centroids that were added
    # the part of the rows whose nearest centroid is not among these: the largest that was found
    # since there were none
    missed: float = 0.0
    bounds: Bounds | None = None
    directions: Array | None = None  # for passes over all centroids, where they pay

    def state(self) -> dict[str, Array]:
        """All of it as arrays."""
        found = {} if self.bounds is None else vars(self.bounds)
        found = found | {name: each for name, each in vars(self).items() if name != "bounds"}
        return {name: np.asarray(each) for name, each in found.items() if each is not None}

    @classmethod
    def of_state(cls, state: dict[str, Array]) -> Assignment | None:
        """That with this `state`, which may be among other arrays; None if there is none."""
        if "squares" not in state:
            return None
        values: dict[str, Any] = {n: x if x.ndim else x.item() for n, x in state.items()}
        own, bounds = ({each.name for each in fields(kind)} for kind in (cls, Bounds))
        given = {name: values[name] for name in own & values.keys()}
        if bounds <= values.keys():
            given["bounds"] = Bounds(**{name: values[name] for name in bounds})
        return cls(**given)


def step(
    rows: Rows, theta: Array, before: Assignment | None, need: Need
) -> tuple[Sums, Assignment]:
    """A pass at the centroids theta (k, F): its sums, and what it has found. Memory: O(n), and
    O(k^2) where centroids are compared."""
    at = np.ascontiguousarray(theta, dtype=rows.dtype)
    if before is not None and need.missed:
        before = replace(before, near=_lists(before, at))
        missed = _missed(rows, at, before)
        missed = missed if missed <= _NONE_MISSED else max(missed, before.missed)
        before = replace(before, missed=missed)
    few = before is not None and (need.bounded or before.missed <= _MOST_MISSED)
    if before is not None and few and not need.every:
        return _among_near(rows, theta, before, need)
    sums, found = _among_all(rows, theta, before, need)
    if before is None or not np.array_equal(before.labels, found.labels):
        return sums, found
    # those of the same labels have the same bits
    if before.bounds is None:
        sums, again = _among_near(rows, theta, found, need)
        other = again.other if found.other is None else found.other
        return sums, replace(again, every=True, other=other)
    sums = _sums(rows, theta, found, before.bounds.N)
    return sums, replace(found, cost=_cost(rows, sums, theta))


def _missed(rows: Rows, at: Array, before: Assignment) -> float:
    """The part of some of the rows whose nearest centroid is not among near ones."""
    index = np.arange(0, rows.n, -(-rows.n // _LOOKED_AT))
    some, labels = rows.take(index), before.labels[index]
    _, own, _, _ = _visit(some, at, labels, _lists(before, at))
    nearest = one_pass(some, at, -math.inf, want=("nearest",))[1]["nearest"]
    error = 2 * rounding_errors(rows, at)(np.sqrt(own))
    return float(np.mean(nearest < own - error))


def _among_all(
    rows: Rows, theta: Array, before: Assignment | None, need: Need
) -> tuple[Sums, Assignment]:
    """A pass over all centroids."""
    directions = None if before is None else before.directions
    if need.second:  # by directions it is not known
        sums, found = one_pass(rows, theta, -math.inf, want=("labels", "nearest", "second"))
    else:
        if directions is None and (before is None or need.every):
            directions = find_directions(rows, theta)
        sums, found = bounded_pass(directions, rows, theta, want=("labels", "nearest"))
    return sums, Assignment(
        found["labels"], float(sums.Q.sum()), True, _cost(rows, sums, theta), found["nearest"],
        found.get("second"), new=0 if before is None else before.new,
        missed=0.0 if before is None else before.missed, directions=directions,
    )  # fmt: skip


def _among_near(
    rows: Rows, theta: Array, before: Assignment, need: Need
) -> tuple[Sums, Assignment]:
    """A pass over near centroids."""
    at = np.ascontiguousarray(theta, dtype=rows.dtype)
    if need.bounded and before.bounds is not None:
        moved = _move_active(rows, at, before, before.bounds)
        if moved is not None and moved.bounds is not None:
            sums = _sums(rows, theta, moved, moved.bounds.N)
            return sums, replace(moved, every=False, cost=_cost(rows, sums, theta))
    near = _lists(before, at)
    labels, own, other, N = _visit(rows, at, before.labels, near)
    changed = np.flatnonzero(labels != before.labels)
    _add_rows(rows, N, changed, labels)
    found = replace(
        before, labels=labels, every=False, own=own, other=other, near=near, bounds=None
    )
    sums = _sums(rows, theta, found, N, _weighted(rows, own))
    found = replace(found, cost=_cost(rows, sums, theta))
    if need.bounded:
        bounds = _bounds(rows, at, own, other, changed)
        found = replace(found, own=None, other=None, bounds=Bounds(at, N, *bounds))
    return sums, found


def _bounds(rows: Rows, at: Array, own: Array, other: Array, changed: Array) -> tuple[Array, Array]:
    """The bounds of visited rows, in place of their distances. In the next pass rows that have
    changed are compared with other centroids, of which nothing is known."""
    upper, lower = bounds_of(own, other, rounding_errors(rows, at))
    lower[changed] = 0
    return upper, lower


def _move_active(rows: Rows, at: Array, before: Assignment, bounds: Bounds) -> Assignment | None:
    """Adjust the bounds to new centroids, and visit the rows that they do not decide; None, without
    a visit, if these are most."""
    labels, near, errors = before.labels.copy(), before.near, rounding_errors(rows, at)
    assert near is not None
    upper, lower, N = bounds.upper.copy(), bounds.lower.copy(), bounds.N.copy()
    shifts = shifts_of(rows, bounds.at, at)
    others = np.where(near == np.arange(len(at))[:, None], 0, shifts[near]).max(axis=1)
    active = np.flatnonzero(undecided(labels, (upper, lower), shifts, others, errors))
    if len(active) > MOST_ACTIVE * rows.n:
        return None
    for part in row_tiles(len(active), at.shape[1]) if len(active) else ():
        index = active[part]
        found, own, other, _ = _visit(rows.take(index), at, labels[index], near)
        changed = np.flatnonzero(found != labels[index])
        upper[index], lower[index] = _bounds(rows, at, own, other, changed)
        _add_rows(rows, N, index[changed], labels, -1.0)
        labels[index] = found
        _add_rows(rows, N, index[changed], labels)
    return replace(before, labels=labels, own=None, other=None, bounds=Bounds(at, N, upper, lower))


def _sums(rows: Rows, theta: Array, found: Assignment, N: Array, hard: float | None = None) -> Sums:
    """The sums at the labels, with these sums of rows, whose `hard` objective may be known."""
    k, unit = len(theta), rows.weight_unit
    G = np.bincount(found.labels, rows.weight, k).astype(np.float64)
    Q = np.full((k, 1), found.squares / k)  # of which the sum alone is known
    sums = Sums(N * unit, G * unit, Q, np.zeros(k), 0.0, 0.0, rows.widths)
    hard = sums.cost_at(theta, rows.alpha) if hard is None else hard
    return replace(sums, soft=hard, hard=hard)


def _cost(rows: Rows, sums: Sums, theta: Array) -> float:
    """The hard objective of the labels at the next centroids."""
    at = rows.centroids(sums, theta)
    return sums.cost_at(at, rows.alpha) if sums.hard > 0 else 0.0


def _weighted(rows: Rows, costs: Array) -> float:
    """The weighted sum of a number of each row."""
    p, unit = rows.weight, rows.weight_unit
    total = costs.sum(dtype=np.float64) if p is None else costs @ p.astype(np.float64)
    return unit * float(total)


def add(before: Assignment, count: int) -> Assignment:
    """Let rows see the last `count` centroids of the next passes, which are new, too."""
    return replace(before, near=None, new=count)


def remove(rows: Rows, theta: Array, before: Assignment, removed: Array) -> Assignment:
    """Give the rows of removed centroids to the nearest of the others. No costs are known then."""
    number = np.cumsum(~removed) - 1
    lost = np.flatnonzero(removed[before.labels])
    labels = number[before.labels].astype(np.int32)
    for part in row_tiles(len(lost), theta.shape[1]) if len(lost) else ():
        some = rows.take(lost[part])
        _, outputs = one_pass(some, theta[~removed], -math.inf, want=("labels",))
        labels[lost[part]] = outputs["labels"]
    return replace(before, labels=labels, cost=None, own=None, other=None, near=None, new=0)


def _lists(before: Assignment, at: Array) -> Array:
    """With which centroids the rows of each are compared: those near it, itself among them."""
    if before.near is not None and len(before.near) == len(at):
        return before.near
    old = len(at) - before.new
    near = [_nearest_of_each(at, 0, old, _NEAR)]
    if before.new:
        near.append(_nearest_of_each(at, old, len(at), min(_NEW, before.new)))
    return np.sort(np.hstack(near), axis=1).astype(np.int32)


def _nearest_of_each(at: Array, first: int, end: int, count: int) -> Array:
    """The `count` of some centroids that are nearest to each one, itself where it is of them."""
    found = np.empty((len(at), count), dtype=np.intp)
    for part in row_tiles(len(at), end - first):
        apart = euclidean_distances(at[part], at[first:end], squared=True)
        own = np.arange(max(part.start, first), min(part.stop, end))
        apart[own - part.start, own - first] = -1
        found[part] = first + np.argpartition(apart, count - 1, axis=1)[:, :count]
    return found


def _visit(rows: Rows, at: Array, labels: Array, near: Array) -> tuple[Array, Array, Array, Array]:
    """A pass over some or all rows: the labels, the two least squared distances, and the sums of
    the rows that stay."""
    order, ends = _by_label(labels, len(at))
    found: tuple[Array, Array, Array, Array] = config.backend().near_pass(
        rows.xs[0], rows.maps[0] is not None, rows.shifts[0], rows.weight, at, near, order, ends,
        rows.n_threads,
    )  # fmt: skip
    return found


def _add_rows(rows: Rows, N: Array, moved: Array, labels: Array, sign: float = 1.0) -> None:
    """Add moved rows, times a sign, to the sums of their labels."""
    for part in row_tiles(len(moved), N.shape[1]) if len(moved) else ():
        index = moved[part]
        index = index[np.argsort(labels[index], kind="stable")]
        x = sign * shifted_features(rows.take(index)).astype(np.float64)
        if rows.weight is not None:
            x *= rows.weight[index][:, None]
        new = labels[index]
        first = np.flatnonzero(np.r_[True, new[1:] != new[:-1]])
        N[new[first]] += np.add.reduceat(x, first)


def _by_label(labels: Array, k: int) -> tuple[Array, Array]:
    """The rows in the order of their labels, and where those of each label begin and end."""
    ones = np.ones(len(labels), dtype=bool)
    by_row = csr_array((ones, labels, np.arange(len(labels) + 1)), shape=(len(labels), k))
    by_label = by_row.tocsc()
    return by_label.indices.astype(np.int32), by_label.indptr.astype(np.int64)

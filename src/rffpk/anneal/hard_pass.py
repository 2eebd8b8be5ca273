"""Passes of the hard rule: which of the things that make them faster are used, and these.

**Bounds** (Hamerly: Making k-means even faster. SDM 2010) leave out the rows whose nearest centroid
cannot have changed. Two numbers are kept of each row: an upper bound of the distance to its
centroid, and a lower bound of the distance to every other one. When centroids move, the first grows
by the shift of the row's own centroid and the second falls by the largest shift of the others.
While they are apart by more than the rounding errors of squared distances, a pass would give the
row the label that it has. So the labels are those of passes over all rows.

**Near centroids.** A row whose centroid was a moves to the nearest of the few centroids that are
nearest to a, itself among them, so the objective falls as it does in passes over all centroids, and
not much less: of many clusters nearly all are far from a row. A pass takes O(n c F) time for c near
centroids in place of O(n k F), as in the closures of Wang et al.: Fast approximate k-means via
cluster closures. CVPR 2012. The labels that a fit ends with are those of passes over all centroids,
which follow.

**Directions.** The coordinates of a row in q orthonormal directions, and the length of what is left
of it, bound its distances from below. Passes over many centroids then compute few of them
(_core/bounds.h).

A pass is a function of what the one before has found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import gen_batches

from rffpk.rows.arrays import Array, Identity, Unit
from rffpk.rows.draws import MANY
from rffpk.rows.passes import SLOT_ROWS, one_pass, pass_of_block, shifted_features
from rffpk.rows.rows import Rows
from rffpk.rows.store import pass_costs
from rffpk.rows.sums import Sums
from rffpk.rows.table import entry_counts, row_bytes
from rffpk.rows.weights import for_core
from rffpk.system import config
from rffpk.system.linalg import basis_of
from rffpk.system.tiles import row_tiles
from rffpk.system.tuning import TUNING

# ---- which are used ------------------------------------------------------------------------------


_MOST_ROWS = np.iinfo(np.int32).max  # that near centroids are used for: the core numbers them so


class HardPlan(NamedTuple):
    """How passes over some rows are made, whatever number of centroids they have."""

    near: bool = False  # rows are compared with the centroids near their own, in most passes
    bounded: bool = False  # passes that settle leave out the rows whose labels bounds decide
    directed: bool = False  # passes over all centroids are bounded by directions, if there are some


def hard_plan(rows: Rows, most: int, learns_weights: bool = False) -> HardPlan:
    """The plan of a run that has at most so many centroids, with those that swaps add."""
    if learns_weights or not (rows.eta is None and rows.stream is None and rows.present is None):
        return HardPlan()
    tuning = TUNING.hardpasses
    bounded = most > 1 and rows.n >= tuning.bounds_rows
    bounded = bounded and pass_costs(rows, most)[0] >= tuning.bounds_cost
    # of the columns of one dense view, or these scaled to length one
    plain = len(rows.xs) == 1 and isinstance(rows.maps[0], Unit | Identity)
    if most < MANY or not plain or rows.sparse_columns:
        return HardPlan(bounded=bounded)
    work, wide = rows.n * most * len(rows.shift), len(rows.shift) >= tuning.directions_columns
    directed = wide and work >= tuning.directions_work and rows.alpha[0] == 1
    return HardPlan(work >= tuning.near_work and rows.n <= _MOST_ROWS, bounded, directed)


# ---- bounds --------------------------------------------------------------------------------------


# Of squared distances, from bounds of the distances.
Errors = Callable[[Array], Array]


@dataclass(frozen=True)
class Settling:
    """What a pass with bounds has found of the rows. Memory: a label and two numbers for each row.

    The next pass takes over its arrays, as copies of them would double the memory."""

    at: Array  # (k, F), the centroids of the last pass, in the dtype of the rows
    # its sums; they are those of a visit of all rows and of what has changed since
    sums: Sums
    labels: Array  # (n,)
    upper: Array  # (n,), above the distances from the centroids of the labels, ...
    lower: Array  # ... and below those from every other one
    largest: Array  # (k,), the largest weights of the clusters since the last visit of all rows
    visited: int  # the number of rows that the last pass visited


_WANTED = ("labels", "nearest", "second")


def settling_pass(rows: Rows, theta: Array, before: Settling | None) -> Settling:
    """Make a pass at the centroids theta (k, F) over the rows that bounds do not decide.

    The arrays of the pass `before` are overwritten. The objective is precise to the rounding errors
    of sums."""
    theta = np.ascontiguousarray(theta, dtype=rows.dtype)
    result = None if before is None else _without_decided(rows, theta, before)
    if result is None:
        known = {}
        if before is not None:
            known = dict(zip(_WANTED, (before.labels, before.upper, before.lower)))
        sums, outputs = pass_of_block(rows, theta, -math.inf, want=_WANTED, into=known)
        bounds = bounds_of(outputs["nearest"], outputs["second"], rounding_errors(rows, theta))
        result = Settling(theta, sums, outputs["labels"], *bounds, sums.G.copy(), rows.n)
    hard = result.sums.cost_at(theta, rows.alpha)
    return replace(result, sums=replace(result.sums, soft=hard, hard=hard))


def _without_decided(rows: Rows, theta: Array, found: Settling) -> Settling | None:
    """Make a pass over the rows that bounds do not decide; None if all rows need a visit."""
    shifts = shifts_of(rows, found.at, theta)
    farthest = int(shifts.argmax())
    others = np.full_like(shifts, shifts[farthest])
    others[farthest] = np.delete(shifts, farthest).max()
    errors, sums = rounding_errors(rows, theta), found.sums
    mask = undecided(found.labels, (found.upper, found.lower), shifts, others)
    if np.count_nonzero(mask) > TUNING.hardpasses.most_active * rows.n:
        return None
    active = np.flatnonzero(mask)
    slots = TUNING.hardpasses.copied_bytes // max(1, row_bytes(rows.xs)) // SLOT_ROWS
    size = SLOT_ROWS * max(1, slots)
    for begin in range(0, len(active), size):
        index = active[begin : begin + size]
        _, outputs = one_pass(rows.take(index), theta, -math.inf, want=_WANTED)
        bounds = bounds_of(outputs["nearest"], outputs["second"], errors)
        found.upper[index], found.lower[index] = bounds
        changed = index[outputs["labels"] != found.labels[index]]
        found.labels[index] = outputs["labels"]
        if len(changed):
            moved = rows.take(changed)
            left, joined = (one_pass(moved, at, -math.inf)[0] for at in (found.at, theta))
            sums = replace(
                sums,
                N=sums.N + (joined.N - left.N),
                G=sums.G + (joined.G - left.G),
                Q=sums.Q + (joined.Q - left.Q),
            )
    if (sums.G < TUNING.hardpasses.shrunken * found.largest).any():
        return None
    largest = np.maximum(found.largest, sums.G)
    return replace(found, at=theta, sums=sums, largest=largest, visited=len(active))


def shifts_of(rows: Rows, before: Array, theta: Array) -> Array:
    """Upper bounds (k,) of the distances that centroids have moved, in the dtype of the rows."""
    shift = rows.scaled(theta.astype(np.float64) - before)
    eps = float(np.finfo(rows.dtype).eps)
    return np.asarray(np.sqrt((shift**2).sum(axis=1)) * (1 + 4 * eps), dtype=rows.dtype)


def undecided(
    labels: Array, bounds: tuple[Array, Array], shifts: Array, most_others: Array
) -> NDArray[np.bool_]:
    """Adjust the bounds of rows, in place, and return a mask of the rows that need a pass.

    Centroids have moved by `shifts`. For rows of each centroid, all other centroids that they are
    compared with have moved by at most `most_others`. A row needs a pass if its bounds do not
    decide its label. Each bound allows for the rounding of two distances: the distance that it was
    made of, and the distance that a pass would compute."""
    active, eps = np.empty(len(labels), dtype=bool), float(np.finfo(shifts.dtype).eps)
    for part in gen_batches(len(labels), TUNING.hardpasses.bounds_block):
        at, upper, lower = labels[part], *(bound[part] for bound in bounds)
        upper += shifts[at]
        upper *= 1 + 2 * eps
        lower -= most_others[at]
        lower *= 1 - 2 * eps
        np.maximum(lower, 0, out=lower)
        active[part] = ~(lower > upper)
    return active


def rounding_errors(rows: Rows, theta: Array) -> Errors:
    """Bounds of the rounding errors of computed squared distances, for rows at most so far from one
    of the centroids: those of a sum of F products and two squared norms."""
    longest = math.sqrt((rows.scaled(theta.astype(np.float64)) ** 2).sum(axis=1).max())
    terms = theta.shape[1]
    if rows.sparse_columns:  # whose products are those of the rows as they are
        terms = int(entry_counts(rows.xs[0]).max())
        longest += float(np.linalg.norm(rows.shift.astype(np.float64)))
    unit = (terms + 8) / 2 * float(np.finfo(rows.dtype).eps)
    return lambda distances: np.asarray((distances + 2 * longest) ** 2 * unit)


def bounds_of(nearest: Array, second: Array, errors: Errors) -> tuple[Array, Array]:
    """The bounds of distances, in place of the squared distances that a pass returned."""
    for part in gen_batches(len(nearest), TUNING.hardpasses.bounds_block):
        twice = 2 * errors(np.sqrt(nearest[part]))
        nearest[part] = np.sqrt(nearest[part] + twice)
        second[part] = np.sqrt(np.maximum(second[part] - twice, 0))
    return nearest, second


# ---- directions ----------------------------------------------------------------------------------


# Directions (q, F), the coordinates of centroids there, and their reach: see `_reach`.
Along = tuple[Array, Array, float]


def find_directions(rows: Rows, theta: Array, s: float = -math.inf) -> Along | None:
    """What bounds distances in a pass of the hard rule at many centroids, with power means of the
    exponent `s`; None where all distances are computed as fast."""
    (k, F), tuning = theta.shape, TUNING.hardpasses
    if not hard_plan(rows, k).directed:
        return None
    numbers = [q for q in tuning.directions if 2 * q <= F]
    theta = theta.astype(np.float64)
    basis, reach = _leading(theta, numbers[-1]), _reach(k, s, rows.dtype)
    some = rows.take(np.arange(0, rows.n, max(1, rows.n // tuning.directions_rows)))
    x = shifted_features(some).astype(np.float64)
    counts = _within_reach(x, theta, basis, numbers, reach)
    costs = [
        k * (q + tuning.bound_cost) + q * F + tuning.alone_cost * F * count
        for q, count in zip(numbers, counts)
    ]
    best = int(np.argmin(costs))
    if costs[best] > tuning.directions_part * k * F:
        return None
    return along(np.ascontiguousarray(basis[:, : numbers[best]].T, dtype=rows.dtype), theta, s)


def along(directions: Array, theta: Array, s: float = -math.inf) -> Along:
    """The same at other centroids, by directions that were found before."""
    return directions, coordinates(theta, directions), _reach(len(theta), s, directions.dtype)


def _reach(k: int, s: float, dtype: Any) -> float:
    """The ratio of distances to the least of a row beyond which the terms of k centroids are less
    than the rounding error of its power mean."""
    return 1.0 if math.isinf(s) else float(-s * np.finfo(dtype).eps / k) ** (1 / s)


def coordinates(theta: Array, directions: Array) -> Array:
    """The coordinates (k, q + 1) of centroids, with the lengths of what is left, at least."""
    at, basis = theta.astype(np.float64), directions.astype(np.float64)
    along, eps = at @ basis.T, float(np.finfo(directions.dtype).eps)
    squares = (at**2).sum(axis=1)
    error = 8 * (np.sqrt(len(basis)) + 2) * eps * squares
    rest = np.sqrt(np.maximum(squares - (along**2).sum(axis=1), 0) + error)
    return np.column_stack([along, rest]).astype(directions.dtype)


def _leading(theta: Array, q: int) -> Array:
    """Directions (F, q) in which centroids are farthest apart, nearly."""
    start = np.random.RandomState(0).standard_normal((len(theta), q))
    found = basis_of(theta.T @ start)[0]
    for _ in range(2):
        found = basis_of(theta.T @ (theta @ found))[0]
    values, vectors = np.linalg.eigh((theta @ found).T @ (theta @ found))
    return found @ vectors[:, ::-1]


def _within_reach(
    x: Array, theta: Array, basis: Array, numbers: list[int], reach: float
) -> list[float]:
    """The mean number of centroids that bounds by so many directions leave open for a row."""
    norm, square = (x**2).sum(axis=1)[:, None], (theta**2).sum(axis=1)
    least = (norm + square - 2 * x @ theta.T).min(axis=1, keepdims=True) * reach
    y, at, found, inner = x @ basis, theta @ basis, [], np.zeros((len(x), len(theta)))
    for low, high in zip([0, *numbers], numbers):
        inner += y[:, low:high] @ at[:, low:high].T
        left = norm[:, 0] - (y[:, :high] ** 2).sum(axis=1)
        rest = np.sqrt(np.maximum(np.outer(left, square - (at[:, :high] ** 2).sum(axis=1)), 0))
        found.append(float((norm + square - 2 * (inner + rest) <= least).sum(axis=1).mean()))
    return found


# ---- near centroids ------------------------------------------------------------------------------


class Need(NamedTuple):
    """What is needed of a pass besides labels that lower the objective."""

    every: bool = False  # that rows are compared with all centroids
    second: bool = False  # the squared distances from the next centroids
    bounded: bool = False  # that it leaves out the rows that bounds decide: no distances are needed
    # that rows are counted whose nearest centroid is not among the near ones, by which passes go on
    # with near ones or with all; where bounds decide rows, only passes over all centroids count
    missed: bool = False


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
    few: bool = True  # whether near centroids are enough for the next passes
    bounds: Bounds | None = None
    directions: Array | None = None  # for passes over all centroids, where they pay


def step(
    rows: Rows, theta: Array, before: Assignment | None, need: Need
) -> tuple[Sums, Assignment]:
    """A pass at the centroids theta (k, F): its sums, and what it has found. Memory: O(n), and
    O(k^2) where centroids are compared."""
    if before is None:
        return _among_all(rows, theta, None, need)
    at = np.ascontiguousarray(theta, dtype=rows.dtype)
    if before.few and not need.every:
        if not need.missed:
            return _among_near(rows, theta, before, need)
        before = replace(before, near=_lists(before, at))
        if _missed(rows, at, before) <= TUNING.hardpasses.most_missed:
            return _among_near(rows, theta, before, need)
    sums, found = _among_all(rows, theta, before, need)
    if need.missed or need.bounded:
        found = replace(found, few=_are_enough(before, at, found))
    if not np.array_equal(before.labels, found.labels):
        return sums, found
    # No label has changed: sums are made as by the pass before, so that they have the same bits.
    if before.bounds is None:
        sums, again = _among_near(rows, theta, found, need)
        other = again.other if found.other is None else found.other
        return sums, replace(again, every=True, other=other)
    sums = _sums(rows, theta, found, before.bounds.N)
    return sums, replace(found, cost=_cost(rows, sums, theta))


def _are_enough(before: Assignment, at: Array, found: Assignment) -> bool:
    """Whether a pass over all centroids has moved few rows to one that was not near."""
    moved = np.flatnonzero(found.labels != before.labels)
    old, new = before.labels[moved], found.labels[moved]
    tuning = TUNING.hardpasses
    most, beyond = tuning.few_missed * len(found.labels), 0
    if len(moved) <= most:
        return True
    # of all, only where few have moved
    for part in row_tiles(len(at), len(at), tuning.compared_numbers):
        inside = (old >= part.start) & (old < part.stop)
        near = _lists(before, at, part)[old[inside] - part.start]
        beyond += int((near != new[inside, np.newaxis]).all(axis=1).sum())
        if beyond > most:
            return False
    return True


def _missed(rows: Rows, at: Array, before: Assignment) -> float:
    """The part of some of the rows whose nearest centroid is not among near ones."""
    index = np.arange(0, rows.n, -(-rows.n // TUNING.hardpasses.missed_rows))
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
        bounds = None if directions is None else along(directions, theta)
        if directions is None and (before is None or need.every):
            bounds = find_directions(rows, theta)
            directions = None if bounds is None else bounds[0]
        sums, found = pass_of_block(
            rows, theta, -math.inf, want=("labels", "nearest"), directions=bounds
        )
    return sums, Assignment(
        found["labels"], float(sums.Q.sum()), True, _cost(rows, sums, theta), found["nearest"],
        found.get("second"), new=0 if before is None else before.new,
        few=before is None or before.few, directions=directions,
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
    labels, near = before.labels.copy(), before.near
    assert near is not None
    upper, lower, N = bounds.upper.copy(), bounds.lower.copy(), bounds.N.copy()
    shifts = shifts_of(rows, bounds.at, at)
    others = np.where(near == np.arange(len(at))[:, None], 0, shifts[near]).max(axis=1)
    active = np.flatnonzero(undecided(labels, (upper, lower), shifts, others))
    if len(active) > TUNING.hardpasses.most_active * rows.n:
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
    """Return the weighted sum of a number of each row."""
    return rows.weight_unit * float(np.multiply(costs, rows.weight, dtype=np.float64).sum())


def add(before: Assignment, count: int) -> Assignment:
    """Let rows see the last `count` centroids of the next passes, which are new, too."""
    near = None if before.new else before.near  # lists with new ones besides are longer
    return replace(before, near=near, new=count, bounds=None)


def remove(rows: Rows, theta: Array, before: Assignment, removed: Array) -> Assignment:
    """Give the rows of removed centroids to the nearest of the others. No costs are known then."""
    number = np.cumsum(~removed) - 1
    lost = np.flatnonzero(removed[before.labels])
    labels = number[before.labels].astype(np.int32)
    for part in row_tiles(len(lost), theta.shape[1]) if len(lost) else ():
        some = rows.take(lost[part])
        _, outputs = one_pass(some, theta[~removed], -math.inf, want=("labels",))
        labels[lost[part]] = outputs["labels"]
    unknown = replace(before, cost=None, own=None, other=None, near=None, bounds=None)
    return replace(unknown, labels=labels, new=0)


def _lists(before: Assignment, at: Array, part: slice | None = None) -> Array:
    """With which centroids the rows of each, or of each in a part, are compared: those near it,
    itself among them. Lists of the old ones are kept when others are added: the old ones have
    hardly moved."""
    begin, end = (0, len(at)) if part is None else (part.start, part.stop)
    near, old, tuning = before.near, len(at) - before.new, TUNING.hardpasses
    if near is not None and len(near) == len(at):
        return near[begin:end]
    known = np.empty((0, tuning.near), dtype=np.int32) if near is None else near[begin:end]
    first = begin + len(known)
    near = np.vstack([known, _nearest_of_each(at[first:end], at[:old], tuning.near, first)])
    if before.new:
        count = min(tuning.near_new, before.new)
        near = np.hstack(
            [near, old + _nearest_of_each(at[begin:end], at[old:], count, begin - old)]
        )
    return np.sort(near, axis=1).astype(np.int32)


def _nearest_of_each(at: Array, others: Array, count: int, number: int) -> Array:
    """The `count` of some centroids that are nearest to each of `at`, itself where it is of them:
    the first has this `number` among them."""
    found, squares = np.empty((len(at), count), dtype=np.intp), (others**2).sum(axis=1)
    for part in row_tiles(len(at), len(others)):
        apart = squares - (2 * at[part]) @ others.T
        own = number + np.arange(part.start, part.stop)
        inside = np.flatnonzero((own >= 0) & (own < len(others)))
        apart[inside, own[inside]] = -np.inf
        last = np.partition(apart, count - 1, axis=1)[:, count - 1 : count]
        near = np.nonzero(apart <= last)[1]  # in half the time of argpartition, but with ties
        if len(near) > count * len(apart):
            near = np.argpartition(apart, count - 1, axis=1)[:, :count]
        found[part] = near.reshape(-1, count)
    return found


def _visit(rows: Rows, at: Array, labels: Array, near: Array) -> tuple[Array, Array, Array, Array]:
    """Return the labels, the two least squared distances, and the sums of the rows that stay."""
    (order, ends), is_unit = _by_label(labels, len(at)), isinstance(rows.maps[0], Unit)
    result: tuple[Array, Array, Array, Array] = config.backend().near_pass(
        rows.xs[0], is_unit, rows.shifts[0], for_core(rows.weight), at, near, order, ends,
        rows.n_threads,
    )  # fmt: skip
    return result


def _add_rows(rows: Rows, N: Array, moved: Array, labels: Array, sign: float = 1.0) -> None:
    """Add moved rows, times a sign, to the sums of their labels."""
    for part in row_tiles(len(moved), N.shape[1]) if len(moved) else ():
        index = moved[part]
        index = index[np.argsort(labels[index], kind="stable")]
        x = sign * shifted_features(rows.take(index)).astype(np.float64)
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

"""Passes of the hard rule, and what makes them faster: bounds, candidate lists and directions.

**Bounds** (Hamerly: Making k-means even faster. SDM 2010) leave out the rows whose nearest
centroid cannot have changed. Each row has two numbers: an upper bound of the distance from its
centroid, and a lower bound of the distances from all other centroids. When centroids move, the
upper bound grows by the shift of the row's centroid, and the lower bound falls by the largest other
shift. While the lower bound is larger by more than rounding errors, a pass over the row would not
change its label. So labels are the labels of passes over all rows.

**Candidate lists** (near centroids). A row with the centroid a is compared with c centroids only:
a, and the centroids nearest to a. The objective falls nearly as much as in passes over all
centroids, because nearly all of many centroids are far from a row. A pass takes O(n c F) time in
place of O(n k F), as in the closures of Wang et al.: Fast approximate k-means via cluster closures.
CVPR 2012. A fit ends with passes over all centroids, which give its labels.

**Directions.** The coordinates of a row along q orthonormal directions, and the length of its part
orthogonal to them, bound its distances from below. Passes over many centroids then compute few
distances (_core/bounds.h).

A pass takes the `Assignment` that the pass before it returned. Scaled weights are the weights that
`Rows` stores, which are in units of `weight_unit`.
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
from rffpk.rows.passes import one_pass, pass_of_block, shifted_features
from rffpk.rows.rows import Rows
from rffpk.rows.store import pass_costs
from rffpk.rows.sums import Sums
from rffpk.rows.table import row_bytes
from rffpk.rows.weights import for_core
from rffpk.system import config
from rffpk.system.linalg import basis_of, row_tiles
from rffpk.system.tuning import TUNING

# ---- the accelerations in use --------------------------------------------------------------------


_MOST_ROWS = np.iinfo(np.int32).max  # for candidate lists: the core has row indices of int32


class HardPlan(NamedTuple):
    """The accelerations that the passes over some rows use."""

    near: bool = False  # most passes compare rows with candidate lists
    bounded: bool = False  # the last passes leave out the rows whose labels bounds decide
    directed: bool = False  # passes over all centroids use directions, where they pay


def hard_plan(rows: Rows, most: int, learns_weights: bool = False) -> HardPlan:
    """Decide which accelerations the passes over `rows` use.

    `most` is the largest number of centroids of a pass. It includes the centroids that swaps
    add. No acceleration is used if view weights are learned, or if the rows have typicality, lack
    views or come from a stream."""
    if learns_weights or not (rows.eta is None and rows.stream is None and rows.present is None):
        return HardPlan()
    tuning = TUNING.hardpasses
    bounded = most > 1 and rows.n >= tuning.bounds_rows
    bounded = bounded and pass_costs(rows, most)[0] >= tuning.bounds_cost
    # one dense view, whose features are its columns, or its rows scaled to length one
    plain = len(rows.xs) == 1 and isinstance(rows.maps[0], Unit | Identity)
    if most < MANY or not plain or rows.sparse_columns:
        return HardPlan(bounded=bounded)
    work, wide = rows.n * most * len(rows.shift), len(rows.shift) >= tuning.directions_columns
    # directions are of features without a view weight
    directed = wide and work >= tuning.directions_work and rows.alpha[0] == 1
    return HardPlan(work >= tuning.near_work and rows.n <= _MOST_ROWS, bounded, directed)


# ---- bounds --------------------------------------------------------------------------------------


# A function that maps distances to bounds of the rounding errors of their squares.
Errors = Callable[[Array], Array]


def undecided(
    labels: Array, bounds: tuple[Array, Array], shifts: Array, most_others: Array
) -> NDArray[np.bool_]:
    """Update the bounds of all rows in place; return a mask (n,) of the rows to visit again.

    `bounds` are the upper bounds (n,) of the distances from the centroids of the `labels` (n,),
    and the lower bounds (n,) of the distances from all other centroids. After the bounds were made,
    the centroids moved by `shifts` (k,). `most_others` (k,) has, for the rows of each cluster, the
    largest shift of the other centroids that these rows are compared with.

    The label of a row cannot change while its lower bound exceeds its upper bound. All other rows
    are visited again. Each bound allows for the rounding of two distances: the distance that it was
    made of, and the distance that a pass would compute."""
    active, eps = np.empty(len(labels), dtype=bool), float(np.finfo(shifts.dtype).eps)
    for part in gen_batches(len(labels), TUNING.hardpasses.bounds_block):
        at, upper, lower = labels[part], *(bound[part] for bound in bounds)
        upper += shifts[at]
        upper *= 1 + 2 * eps
        lower -= most_others[at]
        lower *= 1 - 2 * eps
        np.maximum(lower, 0, out=lower)
        active[part] = ~(lower > upper)  # also if a bound is NaN
    return active


def rounding_errors(rows: Rows, theta: Array) -> Errors:
    """Return a function that bounds the rounding errors of squared distances from `theta`.

    The function takes distances (m,) and returns the bounds (m,). A squared distance is computed
    as the sum of F products and two squared norms."""
    longest = math.sqrt((rows.scaled(theta.astype(np.float64)) ** 2).sum(axis=1).max())
    terms = theta.shape[1]
    if rows.sparse_columns:  # products use the unshifted rows
        terms = int(np.diff(rows.xs[0].indptr).max())
        longest += float(np.linalg.norm(rows.shift.astype(np.float64)))
    # the norm of a row is at most its distance plus `longest`, and bounds the terms of the sum
    unit = (terms + 8) / 2 * float(np.finfo(rows.dtype).eps)
    return lambda distances: np.asarray((distances + 2 * longest) ** 2 * unit)


def bounds_of(nearest: Array, second: Array, errors: Errors) -> tuple[Array, Array]:
    """Replace squared distances by bounds of the distances, in place; return both arrays.

    `nearest` (n,) and `second` (n,) are the squared distances of the rows from their nearest and
    their second nearest centroid. They become upper bounds of the nearest distances, and lower
    bounds of the second nearest distances."""
    for part in gen_batches(len(nearest), TUNING.hardpasses.bounds_block):
        # twice, because another pass would compute the distances with errors, too
        twice = 2 * errors(np.sqrt(nearest[part]))
        nearest[part] = np.sqrt(nearest[part] + twice)
        second[part] = np.sqrt(np.maximum(second[part] - twice, 0))
    return nearest, second


# ---- directions ----------------------------------------------------------------------------------


# Directions (q, F), the coordinates (k, q + 1) of the centroids along them, and the ratio that
# `_reach` returns.
Along = tuple[Array, Array, float]


def find_directions(rows: Rows, theta: Array, s: float = -math.inf) -> Along | None:
    """Return directions that bound distances in a pass; None where they would not pay.

    The number of directions q is chosen by the estimated cost of a pass. The estimate counts, on a
    sample of the rows, the distances that the bounds leave to compute. The bounds hold for the hard
    rule, and for power means of the exponent `s`."""
    (k, F), tuning = theta.shape, TUNING.hardpasses
    if not hard_plan(rows, k).directed:
        return None
    numbers = [q for q in tuning.directions if 2 * q <= F]
    theta = theta.astype(np.float64)
    basis, reach = _leading(theta, numbers[-1]), _reach(k, s, rows.dtype)
    some = rows.take(np.arange(0, rows.n, max(1, rows.n // tuning.directions_rows)))
    x = shifted_features(some).astype(np.float64)
    counts = _within_reach(x, theta, basis, numbers, reach)
    # for a row: k bounds, q coordinates, and the distances that are computed one by one
    costs = [
        k * (q + tuning.bound_cost) + q * F + tuning.alone_cost * F * count
        for q, count in zip(numbers, counts)
    ]
    best = int(np.argmin(costs))
    if costs[best] > tuning.directions_part * k * F:
        return None
    return along(np.ascontiguousarray(basis[:, : numbers[best]].T, dtype=rows.dtype), theta, s)


def along(directions: Array, theta: Array, s: float = -math.inf) -> Along:
    """Return directions (q, F) together with the coordinates of the centroids theta (k, F)."""
    return directions, coordinates(theta, directions), _reach(len(theta), s, directions.dtype)


def _reach(k: int, s: float, dtype: Any) -> float:
    """Return the ratio of squared distances beyond which a pass can ignore a centroid.

    Let d be the least squared distance of a row. Centroids at squared distances above the ratio
    times d change the power mean by less than its rounding error, even if there are k of them. The
    ratio is one in the hard limit."""
    return 1.0 if math.isinf(s) else float(-s * np.finfo(dtype).eps / k) ** (1 / s)


def coordinates(theta: Array, directions: Array) -> Array:
    """Return coordinates (k, q + 1) of centroids along q orthonormal directions.

    The last column is an upper bound of the length of the part that is orthogonal to the
    directions. It includes rounding errors, so that bounds of distances hold."""
    at, basis = theta.astype(np.float64), directions.astype(np.float64)
    along, eps = at @ basis.T, float(np.finfo(directions.dtype).eps)
    squares = (at**2).sum(axis=1)
    error = 8 * (np.sqrt(len(basis)) + 2) * eps * squares
    rest = np.sqrt(np.maximum(squares - (along**2).sum(axis=1), 0) + error)
    return np.column_stack([along, rest]).astype(directions.dtype)


def _leading(theta: Array, q: int) -> Array:
    """Return orthonormal directions (F, q) along which the centroids spread most.

    The directions approximate the q leading eigenvectors of theta'theta, the largest first, by
    subspace iteration."""
    start = np.random.RandomState(0).standard_normal((len(theta), q))
    found = basis_of(theta.T @ start)[0]
    for _ in range(2):
        found = basis_of(theta.T @ (theta @ found))[0]
    values, vectors = np.linalg.eigh((theta @ found).T @ (theta @ found))
    return found @ vectors[:, ::-1]


def _within_reach(
    x: Array, theta: Array, basis: Array, numbers: list[int], reach: float
) -> list[float]:
    """Return how many centroids of a row the bounds cannot exclude, on average over the rows.

    The list has an average for each number q in `numbers`, with the first q columns of `basis`
    (F, q) as directions. `x` (m, F) are features of rows. A centroid is not excluded if the lower
    bound of its squared distance is at most `reach` times the least squared distance of the row."""
    norm, square = (x**2).sum(axis=1)[:, None], (theta**2).sum(axis=1)
    least = (norm + square - 2 * x @ theta.T).min(axis=1, keepdims=True) * reach
    # x't is at most the inner product along the directions, plus the product of the lengths of the
    # parts that are orthogonal to them; so ||x||^2 + ||t||^2 - 2x't has a lower bound
    y, at, means, inner = x @ basis, theta @ basis, [], np.zeros((len(x), len(theta)))
    for low, high in zip([0, *numbers], numbers):
        inner += y[:, low:high] @ at[:, low:high].T
        left = norm[:, 0] - (y[:, :high] ** 2).sum(axis=1)
        rest = np.sqrt(np.maximum(np.outer(left, square - (at[:, :high] ** 2).sum(axis=1)), 0))
        means.append(float((norm + square - 2 * (inner + rest) <= least).sum(axis=1).mean()))
    return means


# ---- candidate lists -----------------------------------------------------------------------------


class Need(NamedTuple):
    """What a pass must do, besides finding labels that lower the objective."""

    every: bool = False  # compare rows with all centroids
    second: bool = False  # find the squared distances from the second nearest centroids
    bounded: bool = False  # leave out rows that bounds decide, because no distances are needed
    # Estimate how many rows have a nearest centroid that is missing from their candidate list. If
    # too many have, compare all rows with all centroids.
    missed: bool = False
    # Make bounds of the distances from all centroids, and leave out the rows that they decide. The
    # other needs are then ignored.
    settles: bool = False


@dataclass(frozen=True)
class Bounds:
    """Bounds of the distances of the rows from centroids, and the sums of the clusters.

    The next pass overwrites bounds and labels, because copies would double the memory."""

    at: Array  # (k, F), the centroids of the pass
    N: Array  # (k, F), the sums of the rows of each cluster, times their scaled weights
    G: Array  # (k,), the sums of the scaled weights of each cluster
    largest: Array  # (k,), the largest weight of each cluster since the last visit of all rows
    upper: Array  # (n,), upper bounds of the distances from the centroids of the labels
    lower: Array  # (n,), lower bounds of the distances from all other centroids of the comparison
    visited: int  # number of rows that the pass visited


@dataclass(frozen=True)
class Assignment:
    """What is known of the rows after a pass; None: not known."""

    labels: Array  # (n,)
    squares: Any  # the weighted sum of the squared norms of the rows, or (L,), one for each view
    every: bool  # whether the rows were compared with all centroids
    cost: float | None = None  # the hard objective of the labels at the means of their rows
    own: Array | None = None  # (n,), squared distances from the centroids of the labels
    other: Array | None = None  # (n,), squared distances from the second nearest centroids
    # (k, c), candidate lists: the rows of cluster j are next compared with the centroids near[j]
    near: Array | None = None
    new: int = 0  # how many centroids at the end of theta have just been added
    few: bool = True  # whether the candidate lists are enough for the next passes
    bounds: Bounds | None = None
    directions: Array | None = None  # (q, F), used in passes over all centroids


def step(
    rows: Rows, theta: Array, before: Assignment | None, need: Need
) -> tuple[Sums, Assignment]:
    """Make a pass at the centroids theta (k, F); return its sums and the assignment of the rows.

    `before` is the assignment of the last pass, or None. The pass takes one of three ways:

    1. If `need.settles`, visit only the rows that bounds do not decide. If there are no bounds, or
       many such rows, compare all rows with all centroids, and make bounds.
    2. If `before.few`, and `need.every` does not demand all centroids, compare each row with its
       candidate list. With `need.missed`, lists that miss too many nearest centroids are not used.
    3. Otherwise compare each row with all k centroids.

    Memory: O(n), and O(k^2) where centroids are compared."""
    if need.settles:
        decided = None if before is None else _among_active(rows, theta, before)
        return decided or _with_bounds(rows, theta, before)
    if before is None:
        return _among_all(rows, theta, None, need)
    at = np.ascontiguousarray(theta, dtype=rows.dtype)
    if before.few and not need.every:
        if not need.missed:
            return _among_near(rows, theta, before, need)
        before = replace(before, near=_lists(before, at))
        if _missed(rows, at, before) <= TUNING.hardpasses.most_missed:
            return _among_near(rows, theta, before, need)
    sums, assigned = _among_all(rows, theta, before, need)
    if need.missed or need.bounded:
        assigned = replace(assigned, few=_are_enough(before, at, assigned))
    if not np.array_equal(before.labels, assigned.labels):
        return sums, assigned
    # No label has changed: sums are made as by the pass before, so that they have the same bits.
    if before.bounds is None:
        sums, again = _among_near(rows, theta, assigned, need)
        # second nearest of all centroids, if known, else of the lists
        other = again.other if assigned.other is None else assigned.other
        return sums, replace(again, every=True, other=other)
    sums = _sums(rows, theta, assigned.squares, before.bounds.N, before.bounds.G)
    return sums, replace(assigned, cost=_cost(rows, sums, theta))


def _are_enough(before: Assignment, at: Array, found: Assignment) -> bool:
    """Return whether few rows moved to centroids missing from the candidate lists of `before`."""
    moved = np.flatnonzero(found.labels != before.labels)
    old, new = before.labels[moved], found.labels[moved]
    tuning = TUNING.hardpasses
    most, beyond = tuning.few_missed * len(found.labels), 0
    if len(moved) <= most:
        return True
    # make lists tile by tile, and stop once too many rows miss their lists
    for part in row_tiles(len(at), len(at), tuning.compared_numbers):
        inside = (old >= part.start) & (old < part.stop)
        near = _lists(before, at, part)[old[inside] - part.start]
        beyond += int((near != new[inside, np.newaxis]).all(axis=1).sum())
        if beyond > most:
            return False
    return True


def _missed(rows: Rows, at: Array, before: Assignment) -> float:
    """Return the share of rows whose nearest centroid is missing from their candidate list.

    The share is estimated on evenly spaced rows."""
    index = np.arange(0, rows.n, -(-rows.n // TUNING.hardpasses.missed_rows))
    some, labels = rows.take(index), before.labels[index]
    _, own, _, _ = _visit(some, at, labels, _lists(before, at))
    nearest = one_pass(some, at, -math.inf, want=("nearest",))[1]["nearest"]
    error = 2 * rounding_errors(rows, at)(np.sqrt(own))  # both distances are rounded
    return float(np.mean(nearest < own - error))


def _among_all(
    rows: Rows, theta: Array, before: Assignment | None, need: Need
) -> tuple[Sums, Assignment]:
    """Compare all rows with all centroids; return the sums and the assignment.

    Directions that the last pass used are used again. New directions are looked for in a first
    pass, and where `need` demands all centroids."""
    directions = None if before is None else before.directions
    if need.second:  # directions do not give the second nearest
        sums, outputs = one_pass(rows, theta, -math.inf, want=("labels", "nearest", "second"))
    else:
        bounds = None if directions is None else along(directions, theta)
        if directions is None and (before is None or need.every):
            bounds = find_directions(rows, theta)
            directions = None if bounds is None else bounds[0]
        sums, outputs = pass_of_block(
            rows, theta, -math.inf, want=("labels", "nearest"), directions=bounds
        )
    return sums, Assignment(
        outputs["labels"], float(sums.Q.sum()), True, _cost(rows, sums, theta), outputs["nearest"],
        outputs.get("second"), new=0 if before is None else before.new,
        few=before is None or before.few, directions=directions,
    )  # fmt: skip


def _among_near(
    rows: Rows, theta: Array, before: Assignment, need: Need
) -> tuple[Sums, Assignment]:
    """Compare the rows with the candidate lists of their clusters; return sums and assignment.

    If `need.bounded` and the bounds are known, only rows whose labels the bounds leave open are
    visited, unless they are too many. Otherwise all rows are visited, and with `need.bounded` the
    assignment gets new bounds."""
    is_bounded = need.bounded and before.bounds is not None
    if is_bounded and (decided := _among_active(rows, theta, before)):
        return decided
    at = np.ascontiguousarray(theta, dtype=rows.dtype)
    near = _lists(before, at)
    labels, own, other, N = _visit(rows, at, before.labels, near)
    changed = np.flatnonzero(labels != before.labels)
    _add_rows(rows, N, changed, labels)  # N lacks rows that changed their labels
    G = np.bincount(labels, rows.weight, len(at)).astype(np.float64)
    hard = rows.weight_unit * float(np.multiply(own, rows.weight, dtype=np.float64).sum())
    sums = _sums(rows, theta, before.squares, N, G, hard)
    assigned = replace(
        before, labels=labels, every=False, cost=_cost(rows, sums, theta), own=own, other=other,
        near=near, bounds=None,
    )  # fmt: skip
    if need.bounded:
        upper, lower = bounds_of(own, other, rounding_errors(rows, at))
        lower[changed] = 0  # the candidate list changes with the label: no bound holds
        bounds = Bounds(at, N, G, G.copy(), upper, lower, rows.n)
        assigned = replace(assigned, own=None, other=None, bounds=bounds)
    return sums, assigned


_WANTED = ("labels", "nearest", "second")


def _with_bounds(rows: Rows, theta: Array, before: Assignment | None) -> tuple[Sums, Assignment]:
    """Compare all rows with all centroids; return the sums, and an assignment with bounds.

    The labels and bounds of the last pass are overwritten, which saves memory. The objective
    follows from the sums, and is precise to their rounding errors."""
    at = np.ascontiguousarray(theta, dtype=rows.dtype)
    into, unit = {}, rows.weight_unit
    if before is not None and before.bounds is not None:
        into = dict(zip(_WANTED, (before.labels, before.bounds.upper, before.bounds.lower)))
    sums, outputs = pass_of_block(rows, at, -math.inf, want=_WANTED, into=into)
    upper, lower = bounds_of(outputs["nearest"], outputs["second"], rounding_errors(rows, at))
    bounds = Bounds(at, sums.N / unit, sums.G / unit, sums.G / unit, upper, lower, rows.n)
    hard = sums.cost_at(at, rows.alpha)
    found = Assignment(outputs["labels"], sums.Q.sum(axis=0), True, bounds=bounds)
    return replace(sums, soft=hard, hard=hard), found


def _among_active(rows: Rows, theta: Array, before: Assignment) -> tuple[Sums, Assignment] | None:
    """Assign the active rows again: rows whose labels the bounds do not decide.

    Return the sums of all rows, and their assignment, which takes over the arrays of `before`. The
    cluster sums N and the cluster weights G are corrected by the rows that change their cluster.
    Return None if a pass over all rows is needed: most rows are active, or a cluster lost so much
    weight that its corrected sums are imprecise."""
    labels, near, bounds = before.labels, before.near, before.bounds
    assert bounds is not None
    at = np.ascontiguousarray(theta, dtype=rows.dtype)
    upper, lower, N, G = bounds.upper, bounds.lower, bounds.N.copy(), bounds.G.copy()
    moved = (rows.scaled(at.astype(np.float64) - bounds.at) ** 2).sum(axis=1)
    # upper bounds of the distances that the centroids moved
    shifts = (np.sqrt(moved) * (1 + 4 * float(np.finfo(rows.dtype).eps))).astype(rows.dtype)
    mask = undecided(labels, (upper, lower), shifts, _most_of_others(shifts, near))
    if np.count_nonzero(mask) > TUNING.hardpasses.most_active * rows.n:
        return None
    active, errors = np.flatnonzero(mask), rounding_errors(rows, at)
    width = max(at[0].nbytes, row_bytes(rows.xs))
    for part in row_tiles(len(active), width, TUNING.hardpasses.copied_bytes):
        index = active[part]
        old = labels[index]
        if near is None:
            found = one_pass(rows.take(index), at, -math.inf, want=_WANTED)[1]
            new, own, other = (found[name] for name in _WANTED)
        else:
            new, own, other, _ = _visit(rows.take(index), at, old, near)
        upper[index], lower[index] = bounds_of(own, other, errors)
        changed = index[new != old]
        if near is not None:
            lower[changed] = 0  # the candidate list changes with the label: no bound holds
        _add_rows(rows, N, changed, labels, -1.0)
        G -= np.bincount(labels[changed], rows.weight[changed], len(at))
        labels[index] = new
        _add_rows(rows, N, changed, labels)
        G += np.bincount(labels[changed], rows.weight[changed], len(at))
    if (G < TUNING.hardpasses.shrunken * bounds.largest).any():
        return None
    sums = _sums(rows, theta, before.squares, N, G)
    largest = np.maximum(bounds.largest, G)
    bounds = Bounds(at, N, G, largest, upper, lower, len(active))
    cost, every = _cost(rows, sums, theta), near is None
    return sums, replace(before, every=every, cost=cost, own=None, other=None, bounds=bounds)


def _most_of_others(shifts: Array, near: Array | None) -> Array:
    """Return for each cluster the largest shift (k,) of the other centroids that its rows see.

    Rows of cluster j are compared with the centroids near[j], or with all if `near` is None."""
    if near is not None:
        return np.where(near == np.arange(len(near))[:, None], 0, shifts[near]).max(axis=1)
    farthest = int(shifts.argmax())
    most = np.full_like(shifts, shifts[farthest])
    most[farthest] = np.delete(shifts, farthest).max()
    return most


def _sums(
    rows: Rows, theta: Array, squares: Any, N: Array, G: Array, hard: float | None = None
) -> Sums:
    """Return the sums of a pass from cluster sums N (k, F) and weights G (k,) by scaled weights.

    `squares` is the weighted sum of the squared norms of all rows. The sum of each cluster is not
    known, and not needed, so each gets an equal part. `hard` is the hard objective; None: it
    follows from the sums."""
    k, unit = len(theta), rows.weight_unit
    Q = np.full((k, len(rows.xs)), squares / k)
    sums = Sums(N * unit, G * unit, Q, np.zeros(k), 0.0, 0.0, rows.widths)
    hard = sums.cost_at(theta, rows.alpha) if hard is None else hard
    return replace(sums, soft=hard, hard=hard)


def _cost(rows: Rows, sums: Sums, theta: Array) -> float:
    """Return the hard objective of the labels after the centroids have moved to their means.

    The result is 0 if all rows lie on centroids before the move."""
    at = rows.centroids(sums, theta)
    return sums.cost_at(at, rows.alpha) if sums.hard > 0 else 0.0


def add(before: Assignment, count: int) -> Assignment:
    """Return the assignment after `count` centroids have been appended to theta.

    Bounds are dropped, as they do not hold for new centroids."""
    near = None if before.new else before.near  # lists that include new centroids are longer
    return replace(before, near=near, new=count, bounds=None)


def remove(rows: Rows, theta: Array, before: Assignment, removed: Array) -> Assignment:
    """Assign the rows of removed centroids to the nearest centroid that stays.

    `removed` is a mask (k,). Return an assignment with labels among the centroids that stay, but
    without costs, distances, candidate lists and bounds."""
    index = np.cumsum(~removed) - 1  # the new indices of centroids that stay
    lost = np.flatnonzero(removed[before.labels])
    labels = index[before.labels].astype(np.int32)
    for part in row_tiles(len(lost), theta.shape[1]) if len(lost) else ():
        some = rows.take(lost[part])
        _, outputs = one_pass(some, theta[~removed], -math.inf, want=("labels",))
        labels[lost[part]] = outputs["labels"]
    unknown = replace(before, cost=None, own=None, other=None, near=None, bounds=None)
    return replace(unknown, labels=labels, new=0)


def _lists(before: Assignment, at: Array, part: slice | None = None) -> Array:
    """Return candidate lists (k, c): for each centroid, itself and its nearest centroids.

    The rows of a cluster are compared only with the list of its centroid. When centroids are added,
    old lists are kept, because old centroids have hardly moved. Each list then grows by the nearest
    added centroids. `part`: make the lists of only these centroids."""
    begin, end = (0, len(at)) if part is None else (part.start, part.stop)
    near, old, tuning = before.near, len(at) - before.new, TUNING.hardpasses
    if near is not None and len(near) == len(at):
        return near[begin:end]
    # if centroids were added, `near` has lists of the old centroids only
    known = np.empty((0, tuning.near), dtype=np.int32) if near is None else near[begin:end]
    first = begin + len(known)  # the first centroid without a list
    near = np.vstack([known, _nearest_of_each(at[first:end], at[:old], tuning.near, first)])
    if before.new:  # centroid i is the added centroid i - old, if i >= old
        count = min(tuning.near_new, before.new)
        near = np.hstack(
            [near, old + _nearest_of_each(at[begin:end], at[old:], count, begin - old)]
        )
    return np.sort(near, axis=1).astype(np.int32)


def _nearest_of_each(at: Array, centroids: Array, count: int, offset: int) -> Array:
    """Return indices (m, count) of the centroids nearest to each row of `at` (m, F).

    The rows of `at` are centroids, too. Row i of `at` is row `offset` + i of `centroids`, if
    `centroids` has such a row. Then the list of row i includes itself."""
    nearest, squares = np.empty((len(at), count), dtype=np.intp), (centroids**2).sum(axis=1)
    for part in row_tiles(len(at), len(centroids)):
        # squared distances less ||at||^2, which no order within a row needs
        apart = squares - (2 * at[part]) @ centroids.T
        own = offset + np.arange(part.start, part.stop)
        inside = np.flatnonzero((own >= 0) & (own < len(centroids)))
        apart[inside, own[inside]] = -np.inf  # so each list includes its own centroid
        last = np.partition(apart, count - 1, axis=1)[:, count - 1 : count]
        near = np.nonzero(apart <= last)[1]  # twice as fast as argpartition
        if len(near) > count * len(apart):  # some rows have ties, and so too many neighbors
            near = np.argpartition(apart, count - 1, axis=1)[:, :count]
        nearest[part] = near.reshape(-1, count)
    return nearest


def _visit(rows: Rows, at: Array, labels: Array, near: Array) -> tuple[Array, Array, Array, Array]:
    """Compare the rows with the candidate lists `near` (k, c) of their `labels` (n,).

    Return new labels (n,), the least squared distances (n,), the second least squared distances
    (n,), and the weighted sums (k, F) of the rows that keep their labels."""
    ones = np.ones(rows.n, dtype=bool)
    # the conversion sorts the rows by label in O(n) time
    by_row = csr_array((ones, labels, np.arange(rows.n + 1)), shape=(rows.n, len(at)))
    by_label = by_row.tocsc()  # the rows of the label j: from the j-th pointer to the next
    return config.backend().near_pass(
        rows.xs[0], isinstance(rows.maps[0], Unit), rows.shifts[0], for_core(rows.weight), at, near,
        by_label.indices.astype(np.int32), by_label.indptr.astype(np.int64), rows.n_threads,
    )  # fmt: skip


def _add_rows(rows: Rows, N: Array, moved: Array, labels: Array, sign: float = 1.0) -> None:
    """Add the weighted features of some rows, times `sign`, to cluster sums N (k, F) in place.

    `moved` are the indices of the rows, and `labels` (n,) the clusters of all rows."""
    for part in row_tiles(len(moved), N.shape[1], TUNING.hardpasses.summed_numbers):
        index = moved[part]
        index = index[np.argsort(labels[index], kind="stable")]  # sums run over rows of one label
        x = shifted_features(rows.take(index)).astype(np.float64)
        x *= sign * rows.weight[index][:, None]
        new = labels[index]
        first = np.flatnonzero(np.r_[True, new[1:] != new[:-1]])
        N[new[first]] += np.add.reduceat(x, first)

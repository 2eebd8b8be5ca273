"""The pass over rows, steps that move centroids, and means, variances and costs by one pass."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances

from rffpk import _core
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Fourier, Identity, Landmarks, Map, label_order
from rffpk.rows.rows import Rows, aligned
from rffpk.rows.sums import Step, Sums, is_hard, power_constant, rounding_error, scaled_parts
from rffpk.rows.table import Columns, Csr, skip_zeros
from rffpk.rows.weights import ones, with_unit
from rffpk.system import config
from rffpk.system.linalg import row_tiles
from rffpk.system.tuning import TUNING

_TOGETHER = 96  # number of landmarks in a part: the core searches or skips a part as a whole
LEAST_ORDERED = 3 * _TOGETHER + 1  # from this number of landmarks on, ordering them saves time


def make_rows(
    xs: list[Columns],
    maps: list[Map],
    weight: Array,
    n_threads: int,
    shifts: list[Array] | None = None,
) -> Rows:
    """Combine tables and maps, one for each view, into rows with equal view weights.

    `shifts` are subtracted from the features; None means zeros."""
    dtype = xs[0].dtype
    weight, unit = with_unit(weight, dtype)
    if shifts is None:
        shifts = [np.zeros(each.width, dtype=dtype) for each in maps]
    alpha = np.full(len(xs), 1.0 / len(xs))
    return Rows(xs, maps, shifts, alpha, weight, unit, n_threads)


def column_rows(x: Columns, weight: Array, n_threads: int, shift: Array | None = None) -> Rows:
    """Return rows of one view whose features are the columns of `x`, minus `shift`."""
    shifts = None if shift is None else [shift]
    return make_rows([x], [Identity(x.shape[1])], weight, n_threads, shifts)


def mean_features(rows: Rows) -> list[Array]:
    """Compute the weighted mean feature vector of each view, (F_l,), without the shifts."""
    # with one centroid, all rows are in its cluster
    sums, _ = one_pass(rows, np.zeros((1, len(rows.shift))), -math.inf)
    parts = np.split(sums.N[0], np.cumsum(rows.widths)[:-1])
    weights = np.broadcast_to(sums.G.ravel(), len(parts))  # weights of all rows, or of each view
    return [(N / G).astype(rows.dtype) + shift for N, G, shift in zip(parts, weights, rows.shifts)]


def centered(rows: Rows) -> Rows:
    """Return the rows with shifts equal to their mean features."""
    return replace(rows, shifts=mean_features(rows))


def shifted_features(rows: Rows) -> Array:
    """Compute the shifted features of all rows, (n, F), with zeros for missing views.

    It takes O(n F) memory."""
    origin = np.zeros((1, len(rows.shift)))
    return one_pass(rows, origin, -math.inf, want=("features",))[1]["features"]


def some_features(rows: Rows) -> Columns:
    """Return the features of all rows: sparse columns as they are, else shifted features (n, F)."""
    return rows.xs[0] if rows.sparse_columns else shifted_features(rows)


def unshifted(x: Columns, mapped: Map, n_threads: int) -> Array:
    """Compute the features (n, F) of one view by its map, without a shift.

    For ordered landmarks, a row may be so close to a part that all its nearest landmarks have equal
    coordinates. Such rows get these coordinates without a search."""
    is_sparse = isinstance(x, Csr)
    if not isinstance(mapped, Landmarks) or is_sparse or (parts := parts_of(mapped, x)) is None:
        return shifted_features(make_rows([x], [mapped], ones(len(x)), n_threads))
    out = np.empty((len(x), mapped.width), dtype=x.dtype)
    reach = np.zeros(0) if parts.lines is None else _reach(mapped, parts)
    for tile, order, part in in_parts(x, parts, n_threads):
        rows, features = x[tile], out[tile]
        if parts.lines is not None:  # rows within reach of the mean of their part need no search
            squares = _core.squares_of_pairs(rows, parts.means, part[:, None], n_threads)[:, 0]
            order = order[~(squares < reach.take(part))[order]]
            np.take(parts.lines, part, axis=0, out=features, mode="clip")
        searched = make_rows([rows.take(order, axis=0)], [mapped], ones(len(order)), n_threads)
        features[order] = shifted_features(searched)
    return out


class LandmarkParts(NamedTuple):
    """Parts of consecutive landmarks. Ordered landmarks of one part lie close together."""

    first: Array  # (c,): the index of the first landmark of each part
    means: Array  # (c, d), in the dtype of the rows
    lines: Array | None  # (c, q): the common coordinates of each part; None: coordinates differ


def parts_of(marks: Landmarks, x: Array) -> LandmarkParts | None:
    """Cut ordered landmarks into parts that the core compares together.

    `marks.coordinates` has a row for each landmark. If neighboring landmarks seldom differ in it, a
    part also ends wherever they differ, so that all landmarks of a part have one row in common.
    Return None where parts save no time: for few rows, few landmarks or many columns."""
    m, tuning = len(marks.points), TUNING.passes
    if m < LEAST_ORDERED or len(x) < tuning.ordered_rows or x.shape[1] > tuning.ordered_columns:
        return None
    first = np.arange(0, m, _TOGETHER)
    changes = 1 + np.flatnonzero((marks.coordinates[1:] != marks.coordinates[:-1]).any(axis=1))
    seldom = len(changes) < len(first)
    if seldom:
        first = np.union1d(first, changes)
    with np.errstate(over="ignore", invalid="ignore"):  # a later check names the parameter
        means = np.add.reduceat(marks.points, first) / np.diff(np.append(first, m))[:, None]
    return LandmarkParts(first, means.astype(x.dtype), marks.coordinates[first] if seldom else None)


def in_parts(
    x: Array, parts: LandmarkParts, n_threads: int
) -> Iterator[tuple[slice, NDArray[np.intp], NDArray[np.int32]]]:
    """Yield (tile, order, part) for tiles of rows. `part` has the nearest part of each row.

    `order` sorts the rows of a tile by their part, so that close rows follow each other."""
    # landmarks without coordinates: only the nearest of them is wanted
    mapped, origin = Landmarks(parts.means, 1, 0.0, parts.means[:, :0]), np.zeros((1, 0), x.dtype)
    for tile in row_tiles(len(x), x.shape[1], TUNING.tiles.search_numbers):
        rows = make_rows([x[tile]], [mapped], ones(len(x[tile])), n_threads, [origin[0]])
        part = one_pass(rows, origin, -math.inf, want=("neighbours",))[1]["neighbours"][:, 0]
        yield tile, label_order(part, len(parts.means)), part


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _reach(marks: Landmarks, parts: LandmarkParts) -> Array:
    """Return for each part the squared distance (c,) within which no search is needed.

    The nearest landmarks of a row within this reach of the part's mean all have the coordinates
    of the part. Landmarks of the part lie in a ball of radius R around the mean, and g is the
    distance from the mean to the closest ball of a part with other coordinates. If a row is within
    r of the mean, the landmarks of the part are within r + R of the row. Landmarks with other
    coordinates are beyond g - r. So the reach is (g - R) / 2, minus rounding errors. It is 0 for a
    part with fewer landmarks than neighbors."""
    dtype = parts.means.dtype
    lines = np.unique(np.asarray(parts.lines), axis=0, return_inverse=True)[1].ravel()
    points, means = marks.points.astype(np.float64), parts.means.astype(np.float64)
    sizes, d = np.diff(np.append(parts.first, len(points))), points.shape[1]
    squares = ((points - means.repeat(sizes, axis=0)) ** 2).sum(axis=1)
    radii = np.sqrt(np.maximum.reduceat(squares, parts.first))
    span = float(np.linalg.norm(np.ptp(points, axis=0)))
    gaps = euclidean_distances(means - points.mean(axis=0)) - radii
    gaps[lines[:, None] == lines] = 2 * span  # parts with equal coordinates do not count
    gap = gaps.min(axis=1)
    middle = (gap - radii) / 2
    # (g - r)^2 - (r + R)^2 = 2 (g + R) (middle - r) must exceed the rounding errors of squares
    eps = 8 * (d + 8) * float(np.finfo(dtype).eps)
    reach = middle - eps * (middle + 2 * span) ** 2 / (gap + radii)
    has_reach = (
        (sizes >= marks.n_neighbours) & (reach**2 > np.finfo(dtype).tiny / eps) & (reach > 0)
    )
    return np.where(has_reach, reach**2, 0).astype(dtype)


def total_variance(rows: Rows) -> float:
    """Return the weighted mean squared distance of the feature vectors from their mean.

    It is 0 if all features, or their directions with `unit_centroids`, are equal up to rounding.

    Raises
    ------
    ValueError
        If it overflows or underflows the dtype of the rows, or weights leave nothing of it.
    """
    cost = float(rows.alpha @ view_variances(rows))
    resolved = rounding_error(rows.dtype)
    if rows.unit_centroids and cost <= resolved:
        return 0.0  # all rows have one direction, up to rounding
    # Fourier features have length one, so that a smaller cost may be rounding errors alone
    if cost < 1e3 * resolved and any(isinstance(view, Fourier) for view in rows.maps):
        counted = rows.counted()
        counted = replace(counted, weight=ones(counted.n, rows.dtype), weight_unit=1.0)
        plain = float(rows.alpha @ view_variances(counted))
        if plain > resolved:  # else all rows are equal up to rounding
            checks.check_weighted_variance(cost, plain, resolved, rows.dtype)
    if cost > 0:
        return cost
    views = [rows.counted().view(i) for i in range(len(rows.xs))]
    # different rows may have equal landmark features
    columns = [view.xs[0] for view in views if not isinstance(view.maps[0], Landmarks)]
    checks.check_underflow(cost, columns)
    return 0.0


def view_variances(rows: Rows) -> NDArray[np.float64]:
    """Return the weighted mean squared distance of each view's features from their mean, (L,)."""
    sums, _ = one_pass(rows, np.zeros((1, len(rows.shift))), -math.inf)
    checks.check_overflow(sums.hard, rows.dtype)
    return np.asarray(sums.view_costs()[0] / sums.G[0])


SLOT_ROWS = _core.SLOT_ROWS

# Sums of expanded squares have errors of about eps ||phi||^2. If that is more than this fraction of
# a cost, the cost is summed again from differences.
_IMPRECISE = 1e-5


def accurate_cost(rows: Rows, sums: Sums, theta: Array) -> float:
    """Return the hard objective sum_i p_i min_j ||phi_i - theta_j||^2.

    It is `sums.hard` if this is precise enough. Otherwise another pass sums differences."""
    squares = float((sums.Q @ rows.alpha).sum())
    if sums.hard * _IMPRECISE > float(np.finfo(rows.dtype).eps) * squares or squares == 0:
        return sums.hard
    return rows.weight_unit * rows.fold(partial(_exact_cost, theta), operator.add)


def _exact_cost(theta: Array, block: Rows, before: float | None) -> float:
    """Add the cost of a block, computed from differences, to the cost of the blocks before it."""
    cost, scale, step = before or 0.0, np.repeat(block.alpha, block.widths), SLOT_ROWS
    columns = [x for i, x in enumerate(block.xs) if i not in block.computed]
    if skip_zeros(*columns):  # sparse rows may have many columns
        step = max(1, min(step, TUNING.tiles.row_numbers // len(scale)))
    for begin in range(0, block.n, step):
        part = block.take(slice(begin, begin + step))
        outputs = one_pass(part, theta, -math.inf, want=("labels", "features"))[1]
        apart = outputs["features"] - theta[outputs["labels"]]
        if part.present is not None:
            apart = np.where(part.present_features(), apart, 0)
        squared = apart**2 @ scale
        cost += float((part.weight * squared).sum())
    return cost


def one_pass(
    rows: Rows, theta: Array, s: float, *, want: tuple[str, ...] = ()
) -> tuple[Sums, dict[str, Array]]:
    """Make one fused pass over the rows at the shifted centroids `theta` (k, F).

    Parameters
    ----------
    rows : Rows
    theta : array (k, F)
        Cast to the dtype of the rows.
    s : float
        Exponent; -inf, or anything beyond what the dtype resolves, is the hard rule.
    want : tuple of {"labels", "memberships", "distances", "nearest", "second", "features", \
            "neighbours", "neighbour_weights"}
        Per-row results to return: O(n), O(n k), O(n k), O(n), O(n) and O(n F) memory, and O(n)
        times the number of neighbours for the last two.

    Returns
    -------
    sums : Sums
    outputs : dict
        The requested arrays by name.

    Notes
    -----
    O(n (d D + k F)) time; memory, but for the results in `want`, does not grow with n.
    """
    if rows.stream is None:
        return pass_of_block(rows, theta, s, want=want)
    visit = partial(_pass_of_next, theta, s, want)
    sums, found = rows.fold(visit, added)
    if len(found) == 1:
        return sums, found[0]
    return sums, {name: np.concatenate([part[name] for part in found]) for name in want}


_Found = tuple[Sums, list[dict[str, Array]]]


def _pass_of_next(
    theta: Array, s: float, want: tuple[str, ...], block: Rows, before: _Found | None
) -> _Found:
    """Make a pass over a block, and continue the sums and outputs of the blocks before it."""
    sums, found = before or (None, [])
    sums, outputs = pass_of_block(block, theta, s, want=want, before=sums)
    return sums, [*found, outputs]


def added(first: tuple[Any, Any], second: tuple[Any, Any]) -> tuple[Any, Any]:
    """Combine the sums and outputs of two parts of the rows."""
    return first[0] + second[0], first[1] + second[1]


def pass_of_block(
    rows: Rows,
    theta: Array,
    s: float,
    *,
    want: tuple[str, ...] = (),
    before: Sums | None = None,
    hard: bool = False,
    directions: tuple[Array, Array, float] | None = None,
    into: dict[str, Array] | None = None,
) -> tuple[Sums, dict[str, Array]]:
    """Make one pass over rows in memory; return its sums, and the outputs in `want` by name.

    `before` has the sums of earlier rows, whose number is a multiple of SLOT_ROWS. With `hard`,
    only the soft total uses the exponent, and the other sums follow the hard rule. `directions`
    (see `_reference.fused_pass`) bound distances to `theta`, so that some are not computed. `into`
    has arrays for the outputs; None: new arrays."""
    theta = aligned(np.ascontiguousarray(theta, dtype=rows.dtype))
    k, near = len(theta), sum(x.n_neighbours for x in rows.maps if isinstance(x, Landmarks))
    columns = {"memberships": k, "distances": k, "features": len(rows.shift)}
    columns |= {"neighbours": near, "neighbour_weights": near}
    outputs = into or {
        name: np.empty(
            (rows.n, columns[name]) if name in columns else (rows.n,),
            dtype=np.int32 if name in ("labels", "neighbours") else rows.dtype,
        )
        for name in want
    }
    arguments, options = _arguments(rows, theta, s, before, hard)
    parts = config.backend().fused_pass(*arguments, **options, **outputs, directions=directions)
    return Sums(*scaled_parts(rows.weight_unit, parts), rows.widths), outputs


def _arguments(
    rows: Rows, theta: Array, s: float, before: Sums | None, hard: bool = False
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments of a pass of the core, without outputs."""
    s = -math.inf if is_hard(s, rows.dtype) else s
    rule = _core.HARD if math.isinf(s) else _core.BOTH if hard else _core.POWER
    xs, omegas, shifts, alpha, weight, options, _ = rows.of_core
    if rows.eta is not None:
        # One reference distance for each centroid, or for each view if rows lack views. The sum has
        # the order of `take_steps`, so that the rounding errors are equal.
        combined = np.cumsum(np.atleast_2d(rows.eta) * rows.alpha, axis=1)[:, -1]
        eta = np.array(np.broadcast_to(combined, len(theta)))
        eta = eta if rows.present is None else aligned(rows.eta)
        rule, options = _core.TYPICALITY, options | {"eta": eta, "m": rows.m}
    if before is not None:
        options = options | {"carry": scaled_parts(1 / rows.weight_unit, before.parts())}
    return (xs, omegas, shifts, theta, alpha, weight, rule, s, rows.n_threads), options


@dataclass(frozen=True)
class Moved:
    """The result of steps at one exponent."""

    steps: list[Step]
    alphas: list[Array]  # the view weights in each step, and after the last
    theta: Array  # (k, F), float64
    previous: Array  # theta before the last step
    n_empty: int  # number of empty clusters in the last step; their centroids have not moved
    hopeless: bool  # whether the objective will not fall to its goal
    sums: Sums  # sums of the last step


def take_steps(
    rows: Rows,
    theta: Array,
    s: float,
    *,
    variance: float,
    tol: float,
    most: int,
    close: tuple[float, float],
    goal: float = math.inf,
    entropy: float = 0.0,
) -> Moved:
    """Make passes that each move the centroids `theta` (k, F) to N / G.

    Passes end if the shift is at most `tol`, if the hard objective will not fall to `goal`, if a
    cluster is empty, or after `most` passes. Rows of a stream make only one pass.

    `variance` is the total variance of the features. Two centroids are distinct if their squared
    distance exceeds close[0] times the hard objective, and close[1]. With `entropy` lambda > 0,
    each step also sets view weights alpha_l ~ exp(-cost_l / lambda)."""
    options: dict[str, Any] = {"variance": variance, "close": close, "entropy": entropy}
    if rows.stream is not None:
        started = time.perf_counter()
        rows.stream.clock.lap()
        return move(rows, theta, one_pass(rows, theta, s)[0], s, started, **options)
    arguments, given = _arguments(rows, theta, s, None)
    records, alphas, new, old, n_empty, hopeless, parts = config.backend().take_steps(
        *arguments, **given, **rows.of_core.options_of_moves, **options,
        tol=tol, most=most, goal=goal, hope=TUNING.passes.hope,
    )  # fmt: skip
    steps = [made_step(s, len(theta), record) for record in records]
    sums = Sums(*scaled_parts(rows.weight_unit, parts), rows.widths)
    return Moved(steps, alphas, new, old, n_empty, hopeless, sums)


def move(
    rows: Rows,
    theta: Array,
    sums: Sums,
    s: float,
    started: float,
    *,
    variance: float,
    close: tuple[float, float],
    entropy: float = 0.0,
) -> Moved:
    """Move the centroids once, by the sums of a pass that is done.

    `started` is the time at which the pass began. For the other parameters see `take_steps`."""
    parts = scaled_parts(1 / rows.weight_unit, sums.parts())
    record, alpha, new, n_empty = config.backend().move(
        parts, rows.shifts, theta, rows.alpha, -math.inf if is_hard(s, rows.dtype) else s,
        variance=variance, close=close, entropy=entropy, **rows.of_core.options_of_moves,
    )  # fmt: skip
    step = made_step(s, len(theta), (*record, time.perf_counter() - started))
    return Moved([step], [rows.alpha, alpha], new, theta, n_empty, False, sums)


def made_step(s: float, k: int, record: tuple[float, float, float, float, int, float]) -> Step:
    """Convert a record of the core to a `Step` at exponent `s` with k clusters."""
    soft, hard, penalty, shift, distinct, seconds = record
    objective = power_constant(k, s) * soft + penalty
    return Step(soft, hard, objective, penalty, shift, distinct, distinct < k, seconds)

"""The interface of the pass: it takes rows and returns sums, which are additive over rows."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rffpk import _config, _core
from rffpk._data import validation
from rffpk._data.arrays import Array, Fourier, Landmarks, Map, Structure
from rffpk._data.partitions import Part, Partitions
from rffpk._data.presence import all_present, present_bits, present_views
from rffpk._data.rules import divided, positive, typicality, view_costs
from rffpk._data.sparse_rows import Columns, SparseRows
from rffpk._data.streams import Stream, each

# The power mean multiplies relative errors of the distances by |s|. If |s| eps exceeds 2^-7, the
# hard rule is used instead: s < -65 536 in float32.
_MAX_AMPLIFICATION = 2.0**-7
_EPS = {np.dtype(t): float(np.finfo(t).eps) for t in (np.float32, np.float64)}

# A cluster is empty if its weight is at most this fraction of the total weight.
_EMPTY = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-250}


T = TypeVar("T")


def is_hard(s: float, dtype: Any) -> bool:
    """Whether the exponent `s` is beyond what the power mean resolves in `dtype`."""
    return -s * _EPS[np.dtype(dtype)] > _MAX_AMPLIFICATION


def power_constant(k: int, s: float) -> float:
    """k^(-1/s), the constant between M_s and M' (and between the weights w and v); 1 for -inf."""
    return math.exp(-math.log(k) / s)


def power_objective(soft: float, hard: float, k: int, s: float) -> float:
    """sum_i p_i M_s, the objective of RFF-KPKM's eq. (5), from sum_i p_i M' and, for s = -inf,
    sum_i p_i min_j d_ij."""
    return hard if math.isinf(s) else power_constant(k, s) * soft


def empty_clusters(G: Array, dtype: Any) -> Array:
    """A mask (k,) of the clusters without weight, in any view."""
    return np.asarray(without_weight(G, dtype).reshape(len(G), -1).all(axis=1))


def without_weight(G: Array, dtype: Any) -> Array:
    """A mask of the weights that are nothing beside their sum."""
    return ~(G > _EMPTY[np.dtype(dtype)] * G.sum())


@dataclass(frozen=True)
class Rows:
    """The rows of all views, with the maps and shifts that define their features.

    Arrays share one dtype, float32 or float64, except `alpha`. Row weights are `weight` times
    `weight_unit`, a power of two that keeps float32 sums in range. The rows of a stream are read
    block by block, and the arrays of `xs` have none.
    """

    xs: list[Columns]  # L arrays (n, d_l), or sparse rows
    maps: list[Map]  # L
    shifts: list[Array]  # L arrays (F_l,), the mean features
    alpha: NDArray[np.float64]  # (L,)
    weight: Array | None  # (n,)
    weight_unit: float
    n_threads: int
    # reference distances (L,), the same for all centroids; None: no typicality
    eta: NDArray[np.float64] | None = None
    m: float = 0.0  # fuzzifier of the typicality
    stream: Stream | None = None
    begin: int = 0  # the number of the first row in the stream that these rows are a block of
    present: Array | None = None  # (n, ceil(L / 8)): which views rows have, as bits; None: all
    # (L,), the shares of the rows that have the views, in a fit to rows of which some lack some
    coverage: NDArray[np.float64] | None = None

    @property
    def n(self) -> int:
        """The number of rows; of a stream, once it has been read."""
        if self.stream is None:
            return len(self.xs[0])
        assert self.stream.n is not None
        return self.stream.n

    @property
    def n_counted(self) -> int:
        """The number of rows whose weight is not zero."""
        weight = self.weight if self.stream is None else self.stream.weight
        return self.n if weight is None else int(np.count_nonzero(weight))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.xs[0].dtype

    @property
    def sparse_columns(self) -> bool:
        """Whether the features are the columns of sparse rows."""
        return isinstance(self.xs[0], SparseRows) and self.maps[0] is None

    @property
    def shift(self) -> Array:
        return np.concatenate(self.shifts)

    @cached_property
    def total_weight(self) -> float:
        weight = self.weight
        if self.stream is not None and self.stream.weight is not None:
            weight = self._in_units(self.stream.weight)
        if weight is None:
            return float(self.n)
        return self.weight_unit * float(weight.sum(dtype=np.float64))

    def _in_units(self, weight: Array) -> Array:
        return np.ascontiguousarray(weight / self.weight_unit, dtype=self.dtype)

    def blocks(self) -> Iterator[Rows]:
        """The rows, in arrays: those of a stream block by block."""
        if self.stream is None:
            yield self
            return
        begin = 0
        for xs, weight in self.stream.blocks():
            weight = None if weight is None else self._in_units(weight)
            yield replace(self, xs=xs, weight=weight, stream=None, begin=begin).marked()
            begin += len(xs[0])

    def fold(self, visit: Callable[[Rows, T | None], T], add: Callable[[T, T], T]) -> T:
        """What `visit` makes of each block and of its result for the blocks before, None at the
        first. On a cluster each partition is a first block, and `add` joins the results."""
        if isinstance(self.stream, Partitions):
            alone = replace(self, maps=[], stream=None)
            return self.stream.fold(partial(_visit_part, alone, visit), add, self.maps)
        found = None
        for block in self.blocks():
            found = visit(block, found)
        assert found is not None
        return found

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The numbers of features F_l."""
        return tuple(len(shift) for shift in self.shifts)

    @cached_property
    def maps_by_kind(self) -> tuple[list[Array | None], dict[str, Any]]:
        """The frequencies of the views, and the maps of other kinds, as a pass takes them."""
        maps = [None if each is None else aligned_map(each) for each in self.maps]
        frequencies = [each.frequencies if isinstance(each, Fourier) else None for each in maps]
        omegas = [None if isinstance(each, Structure) else each for each in frequencies]
        structures = [each if isinstance(each, Structure) else None for each in frequencies]
        landmarks = [each if isinstance(each, Landmarks) else None for each in maps]
        return omegas, {"structures": structures, "landmarks": landmarks}

    def scaled(self, theta: Array) -> Array:
        """Feature vectors scaled so that the combined distance of all views is Euclidean."""
        if len(self.xs) == 1:
            return theta
        return theta * np.sqrt(np.repeat(self.alpha, self.widths))

    def effective_distances(self, distances: Array) -> Array:
        """The squared distances of the objective: u^m d + (1-u)^m eta with typicality, else d."""
        if self.eta is None:
            return distances
        eta = self.combined(self.eta).astype(distances.dtype)
        u = typicality(distances, eta, self.m)
        return np.asarray(u**self.m * distances + (1 - u) ** self.m * eta)

    def marked(self) -> Rows:
        """The rows, with the views that they have if some rows of the fit lack some."""
        if self.coverage is None:
            return self
        present = present_bits(self.xs)
        present = all_present(len(self.xs[0]), len(self.xs)) if present is None else present
        return replace(self, present=present)

    def combined(self, numbers: Array) -> Array:
        """sum_l alpha_l of the numbers (L,) of the views; if views are missing (n, 1), over those
        that a row has."""
        if self.present is None:
            return np.asarray(numbers @ self.alpha)
        return (present_views(self.present, len(self.xs)) @ (numbers * self.alpha))[:, None]

    def renormalised(self) -> Rows:
        """The rows, of which some lack views, with weights such that their costs are distances
        with view weights whose sum over the views of a row is one."""
        rows = replace(self, alpha=positive(self.alpha))
        total = rows.combined(np.ones(len(self.xs)))[:, 0]
        weight = (1 if self.weight is None else self.weight) / total
        return replace(rows, weight=np.ascontiguousarray(weight, dtype=self.dtype))

    def present_features(self) -> Array:
        """A mask (n, F) of the features that rows have, of rows of which some lack views."""
        assert self.present is not None
        return np.repeat(present_views(self.present, len(self.xs)), self.widths, axis=1)

    def covered(self, coverage: NDArray[np.float64] | None) -> Rows:
        """The rows with a share of rows for each view, and equal view weights."""
        if coverage is None:
            return self
        alpha = np.full(len(self.xs), 1 / coverage.sum())
        return replace(self, coverage=coverage, alpha=alpha).marked()

    def take(self, index: Array | slice) -> Rows:
        """The rows at `index`, in their order; those of a stream are read."""
        if self.stream is not None:
            return self._taken(np.asarray(index))
        weight = None if self.weight is None else self.weight[index]
        present = None if self.present is None else self.present[index]
        return replace(self, xs=[x[index] for x in self.xs], weight=weight, present=present)

    def _taken(self, index: Array) -> Rows:
        order = np.argsort(index, kind="stable")
        parts = self.fold(partial(_picked, index[order]), operator.add)
        xs = [np.concatenate(blocks) for blocks in zip(*(xs for xs, _ in parts))]
        weights = [weight for _, weight in parts if weight is not None]
        found = replace(
            self, xs=xs, weight=np.concatenate(weights) if weights else None, stream=None
        ).marked()
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return found.take(back)

    def view(self, i: int) -> Rows:
        """The rows that have a view, with this view alone, without typicality."""
        rows = self
        if self.present is not None:
            rows = self.take(np.flatnonzero(present_views(self.present, len(self.xs))[:, i]))
        return replace(
            rows,
            xs=[rows.xs[i]],
            maps=[self.maps[i]],
            shifts=[self.shifts[i]],
            alpha=np.ones(1),
            eta=None,
            present=None,
            coverage=None,
        )

    def counted(self) -> Rows:
        """The rows in arrays whose weight is not zero."""
        return self if self.weight is None else self.take(self.counted_numbers())

    def counted_numbers(self) -> Array:
        """The numbers of the rows whose weight is not zero."""
        weight = self.weight if self.stream is None else self.stream.weight
        return np.arange(self.n) if weight is None else np.flatnonzero(weight)

    def some_features(self) -> Columns:
        """The features of all rows, shifted; of sparse columns these, not shifted."""
        return self.xs[0] if self.sparse_columns else self.features()

    def features(self) -> Array:
        """Shifted features of all rows, (n, F), 0 in views that they lack; O(n F) memory."""
        origin = np.zeros((1, len(self.shift)), dtype=self.dtype)
        return one_pass(self, origin, -math.inf, want=("features",))[1]["features"]


def _visit_part(rows: Rows, visit: Callable[[Rows, T | None], T], part: Part, maps: list[Map]) -> T:
    """A visit of a partition, with the maps and shifts of `rows`."""
    weight = None if part.weight is None else rows._in_units(part.weight)
    block = replace(
        rows, xs=part.xs, maps=maps, weight=weight, n_threads=part.n_threads, begin=part.begin
    )
    return visit(block.marked(), None)


_Picked = list[tuple[list[Array], Array | None]]


def _picked(numbers: Array, block: Rows, before: _Picked | None) -> _Picked:
    """The rows of a block with these numbers, which rise."""
    first, last = np.searchsorted(numbers, [block.begin, block.begin + block.n])
    part = block.take(numbers[first:last] - block.begin)
    return [*(before or []), (part.xs, part.weight)]


def aligned(array: Any) -> Any:
    """The array, copied if its address is no multiple of what its numbers need, as where it is part
    of a message; sparse rows are aligned."""
    return array if isinstance(array, SparseRows) or array.flags.aligned else array.copy()


def aligned_map(each: Fourier | Landmarks) -> Fourier | Landmarks:
    """A map with such arrays."""
    if isinstance(each, Landmarks):
        points, coordinates = aligned(each.points), aligned(each.coordinates)
        return replace(each, points=points, coordinates=coordinates)
    if isinstance(each.frequencies, Structure):
        return each
    return Fourier(aligned(each.frequencies))


def width(x: Columns, each: Map) -> int:
    """The number of features of a view."""
    return x.shape[1] if each is None else each.width


def make_rows(
    xs: list[Columns],
    maps: list[Map],
    weight: Array | None,
    n_threads: int,
    shifts: list[Array] | None = None,
    present: Array | None = None,
) -> Rows:
    """Rows with equal view weights, whose features are shifted by their means unless `shifts` are
    given."""
    dtype = xs[0].dtype
    unit = 1.0
    if weight is not None:
        unit = weight_unit(weight)
        weight = np.ascontiguousarray(weight / unit, dtype=dtype)
    widths = [width(x, each) for x, each in zip(xs, maps)]
    zeros = [np.zeros(F, dtype=dtype) for F in widths]
    alpha = np.full(len(xs), 1.0 / len(xs))
    shifts_or_zeros = zeros if shifts is None else shifts
    rows = Rows(xs, maps, shifts_or_zeros, alpha, weight, unit, n_threads, present=present)
    if shifts is not None:
        return rows
    return replace(rows, shifts=mean_features(rows))


def mean_features(rows: Rows) -> list[Array]:
    """The weighted means of the features of each view, (F_l,), without the shifts."""
    mean = _sums_about(rows).mean()
    parts = np.split(mean, np.cumsum(rows.widths)[:-1])
    return [c.astype(rows.dtype) + shift for c, shift in zip(parts, rows.shifts)]


def weight_unit(weight: Array) -> float:
    """The unit of row weights: the least power of two above all of them."""
    return 2.0 ** math.frexp(float(weight.max()))[1]


def unshifted(x: Columns, each: Map, n_threads: int) -> Array:
    """Features (n, F) of the rows of a view, without a shift."""
    zero = np.zeros(width(x, each), dtype=x.dtype)
    return make_rows([x], [each], None, n_threads, [zero]).features()


def _sums_about(rows: Rows) -> Sums:
    """Sums of all rows as one cluster whose centroid is the origin of the shifted features."""
    origin = np.zeros((1, len(rows.shift)), dtype=rows.dtype)
    return one_pass(rows, origin, -math.inf)[0]


def total_variance(rows: Rows) -> float:
    """Weighted mean squared distance of the feature vectors from their mean.

    Raises
    ------
    ValueError
        If it overflows the dtype of the rows, or weights leave nothing of it.
    """
    cost = float(rows.alpha @ view_variances(rows))
    if rows.weight is not None and any(isinstance(each, Fourier) for each in rows.maps):
        counted = replace(rows.counted(), weight=None, weight_unit=1.0)
        resolved = (8 * float(np.finfo(rows.dtype).eps)) ** 2
        plain = float(rows.alpha @ view_variances(counted)) if cost < 1e3 * resolved else 0.0
        validation.check_weighted_variance(cost, plain, resolved, rows.dtype)
    counted_views = [rows.counted().view(i) for i in range(len(rows.xs))] if cost <= 0 else []
    columns = [one.xs[0] for one in counted_views if not isinstance(one.maps[0], Landmarks)]
    validation.check_underflow(cost, columns)
    return max(cost, 0.0)


def view_variances(rows: Rows) -> NDArray[np.float64]:
    """Weighted mean squared distances of the features from their mean, view by view, (L,)."""
    sums = _sums_about(rows)
    validation.check_overflow(sums.hard, rows.dtype)
    return np.asarray(sums.view_costs()[0] / sums.G[0])


SLOT_ROWS = _core.SLOT_ROWS

# Sums of expanded squares have errors of about eps ||phi||^2. If that is more than this fraction of
# a cost, the cost is summed again from differences.
_IMPRECISE = 1e-5

_EXACT_NUMBERS = 1 << 20  # of the differences from sparse rows that are held at a time


def accurate_cost(rows: Rows, estimate: float, sums: Sums, theta: Array, nearest: Array) -> float:
    """sum_i p_i ||phi_i - theta_j||^2 with j the nearest to phi_i of the centroids `nearest`:
    `estimate` if that is precise, else in another pass."""
    squares = float((sums.Q @ rows.alpha).sum())
    if estimate * _IMPRECISE > float(np.finfo(rows.dtype).eps) * squares or squares == 0:
        return max(estimate, 0.0)
    return rows.weight_unit * rows.fold(partial(_exact_cost, theta, nearest), operator.add)


def _exact_cost(theta: Array, nearest: Array, block: Rows, before: float | None) -> float:
    """The cost of a block, by differences."""
    cost, scale, step = before or 0.0, np.repeat(block.alpha, block.widths), SLOT_ROWS
    if block.sparse_columns:  # which may be many
        step = max(1, min(step, _EXACT_NUMBERS // len(scale)))
    for begin in range(0, block.n, step):
        part = block.take(slice(begin, begin + step))
        outputs = one_pass(part, nearest, -math.inf, want=("labels", "features"))[1]
        apart = outputs["features"] - theta[outputs["labels"]]
        if part.present is not None:
            apart = np.where(part.present_features(), apart, 0)
        squared = apart**2 @ scale
        cost += float(squared.sum() if part.weight is None else part.weight @ squared)
    return cost


@dataclass(frozen=True)
class Sums:
    """What one pass returns, in float64; see `_reference.fused_pass` for the symbols."""

    N: Array  # (k, F)
    G: Array  # (k,), or (k, L) if views are missing
    Q: Array  # (k, L)
    E: Array  # (k,), or (L,) if views are missing
    soft: float  # sum_i p_i M'_i
    hard: float  # sum_i p_i min_j d_ij: the hard objective
    widths: tuple[int, ...]  # F_l

    def parts(self) -> Parts:
        """The sums as a pass returns them."""
        return self.N, self.G, self.Q, self.E, self.soft, self.hard

    def __add__(self, other: Sums) -> Sums:
        """The sums of the rows of both."""
        moments = self.N + other.N, self.G + other.G, self.Q + other.Q, self.E + other.E
        return Sums(*moments, self.soft + other.soft, self.hard + other.hard, self.widths)

    def objective(self, s: float) -> float:
        """sum_i p_i M_s at the centroids of the pass."""
        return power_objective(self.soft, self.hard, len(self.G), s)

    def mean(self) -> Array:
        """The mean of all rows, (F,); for a pass with one centroid."""
        G = self.G[0] if self.G.ndim == 1 else np.repeat(self.G[0], self.widths)
        return np.asarray(self.N[0] / G)

    def centroids(self, previous: Array, dtype: Any) -> Array:
        """theta = N / G; the centroid of an empty cluster stays where it was."""
        return divided(self.N, self.G, previous, self.widths, _EMPTY[np.dtype(dtype)])[0]

    def view_costs(self) -> Array:
        """sum_i p_i g_ij ||phi_il - theta_jl||^2 at the new theta, (k, L)."""
        return view_costs(self.N, self.G, self.Q, self.widths)


Parts = tuple[Array, Array, Array, Array, float, float]

_OUTPUTS = (
    "labels", "memberships", "distances", "nearest", "second", "features", "neighbours",
    "neighbour_weights",
)  # fmt: skip


def one_pass(
    rows: Rows, theta: Array, s: float, *, want: tuple[str, ...] = (), backend: str | None = None
) -> tuple[Sums, dict[str, Array]]:
    """One fused pass over the rows at the shifted centroids `theta` (k, F).

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
    backend : {"core", "numpy"}, optional
        Implementation; the default is RFFPK_BACKEND, else the compiled one.

    Returns
    -------
    sums : Sums
    outputs : dict
        The requested arrays by name.

    Notes
    -----
    O(n (d D + k F)) time; memory, except that of `want`, does not grow with n.
    """
    visit = partial(_pass_of_next, theta, s, want, backend)
    sums, found = rows.fold(visit, _followed)
    if len(found) == 1:
        return sums, found[0]
    return sums, {name: np.concatenate([part[name] for part in found]) for name in want}


_Found = tuple[Sums, list[dict[str, Array]]]


def _pass_of_next(
    theta: Array, s: float, want: tuple[str, ...], backend: str | None, block: Rows,
    before: _Found | None,
) -> _Found:  # fmt: skip
    """A pass over a block after those before."""
    sums, found = before or (None, [])
    sums, outputs = pass_of_block(block, theta, s, want=want, backend=backend, before=sums)
    return sums, [*found, outputs] if want else [outputs]


def _followed(first: _Found, second: _Found) -> _Found:
    return first[0] + second[0], first[1] + second[1]


def pass_of_block(
    rows: Rows,
    theta: Array,
    s: float,
    *,
    want: tuple[str, ...] = (),
    backend: str | None = None,
    before: Sums | None = None,
) -> tuple[Sums, dict[str, Array]]:
    """One pass over rows in arrays; `before` are the sums of the rows before these, whose number is
    a multiple of SLOT_ROWS."""
    theta = aligned(np.ascontiguousarray(theta, dtype=rows.dtype))
    outputs = {name: _empty_output(name, rows, len(theta)) for name in want} if want else {}
    arguments, options = _arguments(rows, theta, s, before)
    parts = _config.backend(backend).fused_pass(*arguments, **options, **outputs)
    return _sums(rows, parts), outputs


def _empty_output(name: str, rows: Rows, k: int) -> Array:
    n, F = rows.n, sum(rows.widths)
    near = sum(each.n_neighbours for each in rows.maps if isinstance(each, Landmarks))
    shapes: dict[str, tuple[int, ...]] = dict(
        zip(_OUTPUTS, ((n,), (n, k), (n, k), (n,), (n,), (n, F), (n, near), (n, near)))
    )
    whole = ("labels", "neighbours")
    return np.empty(shapes[name], dtype=np.int32 if name in whole else rows.dtype)


def _arguments(
    rows: Rows, theta: Array, s: float, before: Sums | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a pass, without the results of rows."""
    s = -math.inf if is_hard(s, rows.dtype) else s
    rule = _core.HARD if math.isinf(s) else _core.POWER
    omegas, options = rows.maps_by_kind
    if rows.present is not None:
        options = {**options, "present": rows.present}
    if rows.eta is not None:
        # added one after the other, as steps that learn the weights do
        combined = np.cumsum(np.atleast_2d(rows.eta) * rows.alpha, axis=1)[:, -1]
        eta = np.array(np.broadcast_to(combined, len(theta)))
        eta = eta if rows.present is None else aligned(rows.eta)
        rule, options = _core.TYPICALITY, {**options, "eta": eta, "m": rows.m}
    if before is not None:
        options = {**options, "carry": _scaled(1 / rows.weight_unit, *before.parts())}
    weight = None if rows.weight is None else aligned(rows.weight)
    xs, shifts, alpha = each(rows.xs, aligned), each(rows.shifts, aligned), aligned(rows.alpha)
    return (xs, omegas, shifts, theta, alpha, weight, rule, s, rows.n_threads), options


def _sums(rows: Rows, parts: Parts) -> Sums:
    return Sums(*_scaled(rows.weight_unit, *parts), rows.widths)


def _scaled(unit: float, N: Array, G: Array, Q: Array, E: Array, soft: float, hard: float) -> Parts:
    """Sums times a power of two."""
    if unit == 1:
        return N, G, Q, E, soft, hard
    return N * unit, G * unit, Q * unit, E * unit, soft * unit, hard * unit


# Steps end if the objective exceeds its goal by more than so many times the gain of the last one.
_HOPE = 4.0

# Of a step: sum_i p_i M'_i, sum_i p_i min_j d_ij, the penalty of the view weights, the root mean
# square shift of the centroids in standard deviations of the features, the number of distinct
# centroids, and seconds.
StepRecord = tuple[float, float, float, float, int, float]


@dataclass(frozen=True)
class Moved:
    """The result of steps at one exponent."""

    records: list[StepRecord]
    alphas: list[Array]  # the view weights in each step, and after the last
    theta: Array  # (k, F), float64
    previous: Array  # theta before the last step
    n_empty: int  # number of empty clusters in the last step, whose centroids have not moved
    hopeless: bool  # whether the objective will not fall to its goal
    sums: Sums  # of the last step


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
    backend: str | None = None,
) -> Moved:
    """Passes that move the centroids `theta` (k, F) to theta = N / G, until the shift is at most
    `tol`, the hard objective will not fall to `goal`, some cluster is empty, or `most` passes are
    made.

    `variance` is the total variance of the features. Centroids are distinct if their squared
    distance is above close[0] times the hard objective and above close[1]. With an `entropy`
    lambda > 0 the view weights follow the centroids in each step: alpha_l ~ exp(-cost_l / lambda).
    Rows of a stream are read once, for one pass.
    """
    before, started = None, time.perf_counter()
    is_read = rows.stream is not None
    if is_read:
        rows, before = _all_but_the_last(rows, theta, s, backend)
        most = 1
    arguments, options = _arguments(rows, theta, s, before)
    records, alphas, new, old, n_empty, hopeless, sums = _config.backend(backend).take_steps(
        *arguments, **options, view_eta=rows.eta, unit=rows.weight_unit, variance=variance,
        entropy=entropy, tol=tol, most=most, goal=goal, hope=_HOPE, least_share=_EMPTY[rows.dtype],
        close=close, coverage=rows.coverage,
    )  # fmt: skip
    if is_read:  # the last block is not all
        records = [(*records[0][:-1], time.perf_counter() - started)]
    return Moved(records, alphas, new, old, n_empty, hopeless, _sums(rows, sums))


def _all_but_the_last(
    rows: Rows, theta: Array, s: float, backend: str | None
) -> tuple[Rows, Sums | None]:
    """The last block of the rows of a stream, without rows on a cluster, and the sums of those
    before it."""
    assert rows.stream is not None
    rows.stream.clock.lap()
    if isinstance(rows.stream, Partitions):
        none = replace(rows, stream=None).marked()
        return none, one_pass(rows, theta, s, backend=backend)[0]
    last: Rows | None = None
    sums: Sums | None = None
    for block in rows.blocks():
        if last is not None:
            sums, _ = pass_of_block(last, theta, s, backend=backend, before=sums)
        last = block
    assert last is not None
    return last, sums

"""What a fit needs to know of all rows before its passes, found in one reading: how many there are,
the means and variances of their columns, and a random sample."""

from __future__ import annotations

import math
import operator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto
from rffpk.rows.dask_collections import active_client, kind_of, source_of
from rffpk.rows.draws import Reservoir, Sample, row_keys
from rffpk.rows.passes import column_rows, pass_of_block
from rffpk.rows.rows import coverage, rows_with, there_of
from rffpk.rows.sums import Sums
from rffpk.rows.table import (
    Columns,
    column_means,
    each,
    plain,
    row_bytes,
    some_columns,
    tables_of,
)
from rffpk.rows.weights import are_ones, in_units, of_positive_weight, ones, weight_unit, weights_at
from rffpk.system import config

if TYPE_CHECKING:
    from rffpk.rows.distinct import DistinctRows
    from rffpk.rows.source import Part, Stream

_GROWTH = 8  # A sample after the first is so many times as large as the one before it, ...
# ... as long as it has at most half of the rows and its copy takes at most so many bytes.
_COPY_BYTES = 32 << 20

# Variances are taken from squares about the mean of the first rows. If that is so far from the mean
# of all that rounding errors are more than this part of the variance, they are taken again.
_IMPRECISE = 1e-6

_KEYS = 1 << 18  # made at a time

# Starts run on a sample of this many rows, ...
_SAMPLE_ROWS = 20_000
_ROWS_A_CLUSTER = 50  # ... or of this many for each cluster if that is more.

Some = tuple[list[Columns], Array]  # views of some rows, and their weights


class Sampling(NamedTuple):
    """How rows are sampled."""

    size: int  # of the sample
    first: int | None  # of growing samples; None: there is one
    seed: int
    n_threads: int

    def sizes(self, xs: list[Array]) -> list[int]:
        """The sizes of growing samples of many rows with such views."""
        sizes = [self.size if self.first is None else self.first]
        while self.first is not None and _GROWTH * sizes[-1] * row_bytes(xs) <= _COPY_BYTES:
            sizes.append(_GROWTH * sizes[-1])
        return sizes

    def reservoir(self, xs: list[Array]) -> Reservoir:
        """What holds the largest sample."""
        return Reservoir(max(self.size, self.sizes(xs)[-1]))


def sample_size(k: int, given: Auto | int = "auto") -> int:
    """The number of rows that starts for k clusters run on, where there are as many, for the
    parameter `sample`."""
    most = max(_SAMPLE_ROWS, _ROWS_A_CLUSTER * k)
    return most if isinstance(given, str) else max(int(given), k)


def sampling(model: Any, random: Any, given: Auto | int | None = None, least: int = 0) -> Sampling:
    """How the rows of a model are sampled: for starts, if `given` is its parameter `sample`, and at
    least so many."""
    k = 1 if isinstance(model.n_clusters, str) else int(model.n_clusters)
    first = None if given is None else sample_size(k, given)
    seed = int(deepcopy(random).randint(2**31 - 1))  # small fits do not depend on samples
    size = max(sample_size(k), least, first or 0)
    return Sampling(size, first, seed, config.n_threads(model.n_jobs))


def opened(
    model: Any, X: Any, sample_weight: Any, *, reset: bool
) -> tuple[list[Columns], NDArray[np.float64], Stream | None]:
    """Return the checked views and weights of rows in memory, or a stream.

    The stream has the rows of a source or of a collection of Dask. A fit (`reset`) visits the
    collection on the workers of a cluster if there is one."""
    kind, check = kind_of(X), model._check_views
    if kind == "memory":
        xs = check(X, reset=reset)
        return xs, checks.check_sample_weight(sample_weight, len(xs[0]), X), None
    from rffpk.rows.source import make_stream

    if kind == "dask":
        if reset and getattr(model, "noise", None) is not None:
            raise TypeError(
                "X is a Dask collection, but noise needs rows in memory or a source: pass its "
                "blocks as a source, or noise=None."
            )
        if reset and (client := active_client()) is not None:
            stream = _partitions(model, X, sample_weight, client)
            return [], stream.weight, stream
        X = source_of(X)
    stream = make_stream(X, sample_weight, lambda x, new: check(x, reset=reset and new))
    return [], stream.weight, stream


def _partitions(model: Any, X: Any, sample_weight: Any, client: Any) -> Stream:
    """The rows of a collection of Dask on the workers of a cluster."""
    from rffpk.rows.dask_workers import make_partitions

    stream = make_partitions(X, sample_weight, client, model.n_jobs)
    head = model._check_views(stream.head, reset=True)
    reader = type(model)(**model.get_params(deep=False))  # without callbacks
    reader._check_views(stream.head, reset=True)
    return replace(stream, head=head, dtype=head[0].dtype, check=reader._check_views)


@dataclass(frozen=True)
class Moments:
    """The weighted mean of rows, (d,), and their mean squared distance from it."""

    mean: NDArray[np.float64]
    variance: float


def column_moments(x: Array, weight: Array, n_threads: int, shift: Array | None = None) -> Moments:
    """Return the moments of rows in an array.

    Raises
    ------
    ValueError
        If squared distances overflow the dtype of the rows.
    """
    about = _first_mean(x, weight) if shift is None else shift
    rows = column_rows(x, weight, n_threads, about)
    sums, _ = pass_of_block(rows, np.zeros((1, x.shape[1])), -math.inf)
    moments, exact = _moments(sums, about)
    if exact or shift is not None:
        return moments
    return column_moments(x, weight, n_threads, moments.mean.astype(x.dtype))


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused by name
def _first_mean(x: Columns, weight: Array) -> Array:
    first = x[: _core.SLOT_ROWS]  # a source has them, too
    first = of_positive_weight(first, weight[: len(first)])  # rows of weight zero may be far away
    if not len(first):  # of a view that the first rows lack
        return np.zeros(x.shape[1], x.dtype)
    return column_means(first).astype(x.dtype)


def _moments(sums: Sums, shift: Array) -> tuple[Moments, bool]:
    """The moments from sums about a shift, and whether they are precise."""
    checks.check_overflow(sums.hard, shift.dtype)
    offset = sums.N[0] / sums.G[0]
    variance = max(float(sums.view_costs()[0, 0] / sums.G[0]), 0.0)
    errors = float(np.finfo(shift.dtype).eps) * float(offset @ offset)
    return Moments(shift + offset, variance), errors <= _IMPRECISE * variance


@dataclass(frozen=True)
class RowSample:
    """All rows, and a random sample of them."""

    xs: list[Array]  # the views; of a stream without rows
    weight: Array  # of all rows
    n: int
    counted: int  # the number of rows whose weight is not zero
    how: Sampling
    sample: Sample | None  # None: all rows are in arrays, and no smaller sample is wanted
    odds: Array  # of all rows, the weights that the sample was drawn by
    stream: Stream | None = None
    _moments: dict[int, Moments] = field(default_factory=dict)  # by the numbers of tables
    _there: list[Array] = field(default_factory=list)  # of a stream, of each view: `there_of`
    left_out: bool = False  # whether rows have lost the weight that they were drawn by
    in_memory: bool = True  # whether X was rows in memory, whose labels are kept

    def without(self, rows: NDArray[np.bool_]) -> RowSample:
        """The same where the rows of this mask have no weight. The moments are those of the rows of
        the sample that are left, so that no others have an influence on them."""
        if not rows.any():
            return self
        weight = np.where(rows, 0.0, self.weight)
        if self.stream is not None and are_ones(self.weight):
            weight = ~rows  # a source may have many
        stream = None if self.stream is None else replace(self.stream, weight=weight)
        return replace(
            self, weight=weight, counted=int(np.count_nonzero(weight)), stream=stream,
            left_out=True, _moments={},
        )  # fmt: skip

    def with_columns(self, columns: list[NDArray[np.intp] | None]) -> RowSample:
        """Return the sample with these columns of each view; None: with all of them."""
        if all(index is None for index in columns):
            return self
        tables = {
            (id(x), index is None): x if index is None else some_columns(x, index)
            for x, index in zip(self.xs, columns)
        }
        xs = [tables[id(x), index is None] for x, index in zip(self.xs, columns)]
        return replace(self, xs=xs, _moments={})

    def moments(self, view: int) -> Moments:
        """The moments of the columns of a view."""
        table = tables_of(self.xs)[view]
        if table not in self._moments:
            xs, weight = self.some() if self.left_out else (self.xs, self.weight)
            there = rows_with(xs[view], weight)
            self._moments[table] = column_moments(*there, self.how.n_threads)
        return self._moments[table]

    def coverage(self, least: int) -> NDArray[np.float64] | None:
        """The share of the weight of the rows that have each view, (L,), None where all have all.
        Raises a ValueError if fewer than `least` rows have a view."""
        there = self._there or [there_of(x, self.weight) for x in self.xs]
        return coverage(there, float(self.weight.sum()), least)

    def some_with(self, view: int) -> tuple[Any, Array]:
        """Return the rows of the sample that have a view, and their weights."""
        xs, weight = self.some()
        return rows_with(xs[view], weight)

    def some(self, size: int | None = None) -> Some:
        """The views and weights of the sample, or of the first `size` rows in it, in the order of
        the rows; of all rows if there are no more."""
        if self.sample is None:
            return self.xs, self.weight
        return self._first if size in (None, self.how.size) else self._taken(size)

    @cached_property
    def _first(self) -> Some:
        return self._taken(self.how.size)

    def _taken(self, size: int) -> Some:
        assert self.sample is not None
        if self.stream is None and self.counted <= size:
            return self.xs, self.weight
        index, arrays, threshold = self.sample.first(size)
        if self.stream is None:
            xs = each(self.xs, lambda x: x[index])
        else:
            tables = tables_of(self.xs)
            found = dict(zip(dict.fromkeys(tables), arrays))
            xs = [found[table] for table in tables]
        left = weights_at(self.weight, index).astype(np.float64, copy=False)
        if are_ones(self.odds):
            return xs, left
        unit = weight_unit(self.odds)  # so that keys of rows do not overflow
        odds = (self.odds[index] / unit).astype(np.float64)
        # over the probability of a row, so that sums have the expectation of those over all rows
        weight = unit * (odds / -np.expm1(-odds * threshold))
        return xs, np.where(left > 0, weight, 0)

    def numbered(self, size: int) -> tuple[NDArray[np.intp], list[Columns], Array]:
        """Return at most `size` random rows of positive weight: sorted indices, views, weights.

        The choice does not depend on the stored sample. Weights that are alike are one."""
        if self.stream is None and self.counted <= size:
            index = np.flatnonzero(self.weight)
            weight = weights_at(self.weight, index)
            xs = self.xs if len(index) == self.n else each(self.xs, lambda x: x[index])
        else:
            sample = self.sample or keyed_rows(self.weight, self.how.seed, Reservoir(size))
            drawn = replace(self, sample=sample)
            index, (xs, weight) = sample.first(size)[0], drawn._taken(size)
        weight = ones(len(index)) if weight.min() == weight.max() else weight
        return index, each(xs, plain), weight

    def sizes_of_starts(self, given: Auto | int | None, k: int) -> list[int]:
        """The sizes of growing samples for the parameter `sample` and k clusters, the first for the
        starts; none if these run on all rows."""
        if given is None:
            return []
        first = sample_size(k, given)
        if first >= self.counted:
            # of a stream that has many rows of weight zero the rows that are kept
            return [] if self.stream is None else [self.how.size]
        sizes = self.how._replace(first=first).sizes(self.xs)
        return [m for m in sizes if m == first or 2 * m <= self.counted]


def sample_arrays(xs: list[Array], weight: Array, how: Sampling) -> RowSample:
    """Return rows in arrays, with samples if there are more rows than the first has."""
    n, counted = len(xs[0]), int(np.count_nonzero(weight))
    rows = RowSample(xs, weight, n, counted, how, None, odds=weight)
    first = how.size if how.first is None else how.first
    if counted <= min(first, how.size):
        return replace(rows, xs=each(xs, plain))
    return replace(rows, sample=keyed_rows(weight, how.seed, how.reservoir(xs)))


def keyed_rows(weight: Array, seed: int, reservoir: Reservoir) -> Sample:
    """Return a sample of rows with these weights, without their arrays."""
    unit = weight_unit(weight)
    for begin in range(0, len(weight), _KEYS):
        part = weight[begin : begin + _KEYS] / unit
        reservoir.add(begin, row_keys(seed, begin, len(part), part), [])
    return reservoir.sample()


# ---- rows that are read --------------------------------------------------------------------------


def sample_stream(stream: Stream, how: Sampling, distinct: DistinctRows | None = None) -> RowSample:
    """Read a stream once, add its rows to `distinct`, and return a sample of them.

    A stream of no more than `how.size` rows is kept in arrays."""
    stream, weight = replace(stream, digests=[]), stream.weight
    reading = _Reading(how, weight_unit(weight), distinct)
    known = None
    if stream.on_workers:
        head = stream.head
        known = _Views.of(head, weight[: len(head[0])])
    found = stream.fold(partial(reading.visit, known), _Found.followed_by)
    views, weight = found.views, weight[: found.n]
    if found.n <= found.most:
        blocks = [xs for _, _, xs in found.waiting]
        found.waiting.clear()
        kept = [np.concatenate(views) for views in zip(*blocks)]
        return replace(sample_arrays([kept[i] for i in views.same], weight, how), in_memory=False)
    stream = replace(stream, n=found.n, dtype=views.empty[0].dtype)
    moments = {}
    for i, sums in found.sums.items():
        moments[i], exact = _moments(sums, views.shifts[i])
        if not exact:  # another reading about the mean
            shift = moments[i].mean.astype(views.empty[i].dtype)
            again = stream.fold(partial(reading.sums_about, i, shift), operator.add)
            moments[i], _ = _moments(again, shift)
    counted = int(np.count_nonzero(weight))
    return RowSample(
        views.empty, weight, found.n, counted, how, found.reservoir.sample(), weight, stream,
        moments, [found.there[i] for i in views.same], in_memory=False,
    )  # fmt: skip


class _Views(NamedTuple):
    """What the first rows tell of the views of all."""

    same: list[int]  # of each view the number of the first with the same columns
    empty: list[Array]  # without rows
    shifts: list[Array]  # about which squares are summed

    @classmethod
    def of(cls, xs: list[Array], weight: Array) -> _Views:
        shifts = each(xs, lambda x: _first_mean(*rows_with(x, weight)))
        return cls(tables_of(xs), each(xs, lambda x: x[:0].copy()), shifts)


@dataclass
class _Found:
    """What is known of rows that have been read."""

    views: _Views
    reservoir: Reservoir
    most: int  # rows that are kept
    n: int = 0
    # of all rows, while they are few, the first index, keys and views of each block
    waiting: list[tuple[int, Array, list[Array]]] = field(default_factory=list)
    # of the views that differ, by their numbers
    sums: dict[int, Sums] = field(default_factory=dict)
    there: dict[int, Array] = field(default_factory=dict)

    def add(self, n: int, blocks: list[tuple[int, Array, list[Array]]]) -> None:
        """Keep n more rows: all rows, or a sample if they are too many. No row is kept twice."""
        self.n += n
        self.waiting += blocks
        while self.n > self.most and self.waiting:
            begin, keys, xs = self.waiting.pop(0)
            self.reservoir.add(
                begin, keys, [x for i, x in enumerate(xs) if self.views.same[i] == i]
            )

    def followed_by(self, other: _Found) -> _Found:
        both = replace(
            self, reservoir=self.reservoir.joined(other.reservoir), waiting=[*self.waiting]
        )
        both.add(other.n, other.waiting)
        both.sums = {i: part + other.sums[i] for i, part in self.sums.items()}
        both.there = {i: part + other.there[i] for i, part in self.there.items()}
        return both


class _Reading(NamedTuple):
    """How blocks of rows are read."""

    how: Sampling
    unit: float  # of weights
    to_distinct: DistinctRows | None = None

    def visit(
        self, known: _Views | None, part: Part, shared: None, before: _Found | None
    ) -> _Found:
        """What is known of a block and those before."""
        xs, weight, begin, _ = part
        if before is None:
            views = known or _Views.of(xs, weight)
            before = _Found(views, self.how.reservoir(views.empty), self.how.size)
        found, views = before, before.views
        keys = row_keys(self.how.seed, begin, len(xs[0]), weight / self.unit)
        distinct = {i: x for i, x in enumerate(xs) if views.same[i] == i}
        if self.to_distinct is not None:
            self.to_distinct.add(begin, [*distinct.values()], weight)
        for i, x in distinct.items():
            found.sums[i] = self.sums_about(i, views.shifts[i], part, None, found.sums.get(i))
            found.there[i] = found.there.get(i, 0) + there_of(x, weight)
        found.add(len(xs[0]), [(begin, keys, xs)])
        return found

    def sums_about(
        self, view: int, shift: Array, part: Part, shared: None, before: Sums | None
    ) -> Sums:
        """The sums of a view about a shift, with those of the rows before."""
        x, weight = rows_with(part.xs[view], part.weight)
        rows = column_rows(x, weight, part.n_threads or self.how.n_threads, shift)
        weight = in_units(weight, self.unit, x.dtype)
        rows = replace(rows, weight=weight, weight_unit=self.unit)
        return pass_of_block(rows, np.zeros((1, x.shape[1])), -math.inf, before=before)[0]

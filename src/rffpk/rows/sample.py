"""Opening X: its rows are checked and sampled in one reading.

Means and variances of columns are found in the same reading.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto, Level
from rffpk.rows.dask_collections import active_client, kind_of, source_of
from rffpk.rows.door import Schema, Shape, check_views
from rffpk.rows.draws import Reservoir, Sample, row_keys
from rffpk.rows.passes import column_rows, pass_of_block
from rffpk.rows.rows import coverage, rows_with, there_of
from rffpk.rows.source import Part, Stream, computed
from rffpk.rows.sums import Sums
from rffpk.rows.table import Columns, column_means, plain, row_bytes, some_columns
from rffpk.rows.weights import are_ones, in_units, of_positive_weight, ones, weight_unit, weights_at
from rffpk.system import config
from rffpk.system.tuning import TUNING

if TYPE_CHECKING:
    from rffpk.rows.distinct import DistinctRows


# Variances are computed from squares about the mean of the first rows. If the mean of all rows is
# so far away that rounding errors exceed this part of the variance, they are computed again.
_IMPRECISE = 1e-6


Some = tuple[list[Columns], Array]  # tables of some rows, and their weights


class Sampling(NamedTuple):
    """How rows are sampled."""

    size: int  # number of rows of the sample
    first: int | None  # the least size of growing samples; None: the sample does not grow
    seed: int
    n_threads: int

    def sizes(self, xs: list[Array]) -> list[int]:
        """Return the sizes of the growing samples, for rows with the tables `xs`.

        The sizes start at `first`, and grow by a fixed factor while a copy of the sample is small
        enough. If `first` is None, return only `size`."""
        sizes = [self.size if self.first is None else self.first]
        growth, copied = TUNING.sampling.growth, TUNING.sampling.copy_bytes
        while self.first is not None and growth * sizes[-1] * row_bytes(xs) <= copied:
            sizes.append(growth * sizes[-1])
        return sizes

    def reservoir(self, xs: list[Array]) -> Reservoir:
        """Return an empty reservoir for the largest sample of rows with the tables `xs`."""
        return Reservoir(max(self.size, self.sizes(xs)[-1]))


def sample_size(k: int, sample: Auto | int = "auto") -> int:
    """Return the number of rows in the sample on which starts for k clusters run.

    `sample` is the parameter of the estimator: "auto", or a number, which is raised to at least
    k."""
    most = max(TUNING.sampling.rows, TUNING.sampling.rows_a_cluster * k)
    return most if isinstance(sample, str) else max(int(sample), k)


def sampling(
    n_clusters: Level | int, n_jobs: int | None, random: Any, sample: Auto | int | None = None,
    least: int = 0,
) -> Sampling:  # fmt: skip
    """Return how to sample rows, with at least `least` rows in the sample.

    `sample` is the parameter of the estimator. None: the samples do not grow. The seed comes from a
    copy of the generator `random`, whose state is not changed."""
    k = 1 if isinstance(n_clusters, str) else int(n_clusters)  # a word: no number is known yet
    first = None if sample is None else sample_size(k, sample)
    seed = int(deepcopy(random).randint(2**31 - 1))  # later draws do not depend on it
    size = max(sample_size(k), least, first or 0)
    return Sampling(size, first, seed, config.n_threads(n_jobs))


def open_rows(
    X: Any, sample_weight: Any, schema: Schema, how: Sampling, n_jobs: int | None = None,
    distinct: DistinctRows | None = None,
) -> Opened:  # fmt: skip
    """Check X and its weights, and sample the rows in one reading; return them as `Opened`.

    Rows of a source are also added to `distinct`, if it is given. The workers of a cluster read a
    Dask collection, with `n_jobs` threads each. Without a cluster it is read here."""
    if kind_of(X) == "memory":
        return open_memory(X, sample_weight, schema, how)
    if kind_of(X) == "dask" and (client := active_client()) is not None:
        from rffpk.rows.dask_workers import make_partitions

        stream: Stream = make_partitions(X, sample_weight, client, n_jobs, schema)
    else:
        stream = _stream_of(X, sample_weight, schema)
    return sample_stream(stream, how, distinct)


def open_memory(X: Any, sample_weight: Any, schema: Schema, how: Sampling) -> Opened:
    """Check rows in memory and their weights; return them with a sample."""
    tables, shape = check_views(X, schema)
    weight = checks.check_sample_weight(sample_weight, len(tables[0]), X)
    return sample_tables(tables, weight, how, shape)


def parts_of(X: Any, sample_weight: Any, schema: Schema) -> Iterator[Part]:
    """Check new rows and their weights, and yield them as parts.

    Rows in memory are one part. Rows of a source are yielded block by block."""
    if kind_of(X) != "memory":
        yield from _stream_of(X, sample_weight, schema).blocks()
        return
    tables, shape = check_views(X, schema)
    weight = checks.check_sample_weight(sample_weight, len(tables[0]), X)
    yield Part(tables, weight, 0, shape)


def _stream_of(X: Any, sample_weight: Any, schema: Schema) -> Stream:
    """Return the rows of sources, or of a collection of Dask that is computed here."""
    X = source_of(X) if kind_of(X) == "dask" else X
    weight = checks.check_sample_weight(computed(sample_weight), None)
    listed = isinstance(X, (list, tuple))
    return Stream([*X] if listed else [X], listed, schema, weight, len(weight))


@dataclass(frozen=True)
class Moments:
    """The weighted mean of rows, (d,), and their mean squared distance from it."""

    mean: NDArray[np.float64]
    variance: float


def column_moments(x: Array, weight: Array, n_threads: int, shift: Array | None = None) -> Moments:
    """Return the weighted mean and variance of the rows of an array (n, d).

    Squares are summed about `shift`, by default the mean of the first rows. Without a given shift
    they are summed again about the mean if the first result is imprecise.

    Raises
    ------
    ValueError
        If squared distances overflow the dtype of the rows."""
    about = _first_mean(x, weight) if shift is None else shift
    rows = column_rows(x, weight, n_threads, about)
    sums, _ = pass_of_block(rows, np.zeros((1, x.shape[1])), -math.inf)
    moments, exact = _moments(sums, about)
    if exact or shift is not None:
        return moments
    return column_moments(x, weight, n_threads, moments.mean.astype(x.dtype))


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused by name
def _first_mean(x: Columns, weight: Array) -> Array:
    """Return the mean (d,) of the first rows of positive weight, or zeros if there is none."""
    first = x[: _core.SLOT_ROWS]  # the first block of a source has them, too
    first = of_positive_weight(first, weight[: len(first)])  # rows of weight zero may be far away
    if not len(first):  # the first rows lack the view
        return np.zeros(x.shape[1], x.dtype)
    return column_means(first).astype(x.dtype)


def _moments(sums: Sums, shift: Array) -> tuple[Moments, bool]:
    """Compute moments from the sums of a pass about `shift`, and whether they are precise."""
    checks.check_overflow(sums.hard, shift.dtype)
    offset = sums.N[0] / sums.G[0]
    variance = max(float(sums.view_costs()[0, 0] / sums.G[0]), 0.0)
    errors = float(np.finfo(shift.dtype).eps) * float(offset @ offset)
    return Moments(shift + offset, variance), errors <= _IMPRECISE * variance


@dataclass(frozen=True)
class Opened:
    """All rows, checked, and a random sample of them."""

    tables: list[Columns]  # distinct tables; without rows where a stream has the rows
    shape: Shape  # `shape.views` are indices of tables
    weight: Array  # weights of all rows
    n: int
    counted: int  # the number of rows of positive weight
    how: Sampling
    sample: Sample | None  # None: the sample is all rows, which are in memory
    odds: Array  # the weights (n,) that rows were sampled with
    stream: Stream | None = None
    _moments: dict[int, Moments] = field(default_factory=dict)  # by the indices of tables
    _there: list[Array] = field(default_factory=list)  # for a stream: `there_of` each table
    left_out: bool = False  # whether rows have got the weight zero after they were sampled
    in_memory: bool = True  # whether X was rows in memory, whose labels are kept

    @property
    def xs(self) -> list[Columns]:
        """The table of each view. Several views may share a table."""
        return [self.tables[i] for i in self.shape.views]

    @property
    def positive(self) -> NDArray[np.intp] | None:
        """Indices of the rows of positive weight, or None if all rows have a positive weight."""
        return None if self.counted == self.n else np.flatnonzero(self.weight)

    def drawn(self, size: int, random: Any) -> NDArray[np.intp]:
        """Draw `size` rows of positive weight without replacement; return their rising indices."""
        chosen, positive = np.sort(random.choice(self.counted, size, replace=False)), self.positive
        return chosen if positive is None else np.asarray(positive[chosen])

    def without(self, rows: NDArray[np.bool_]) -> Opened:
        """Return the opened rows with weight zero for rows in the mask `rows` (n,).

        Moments are computed again, from the sample without the masked rows, so that masked rows
        have no influence."""
        if not rows.any():
            return self
        weight = np.where(rows, 0.0, self.weight)
        if self.stream is not None and are_ones(self.weight):
            weight = ~rows  # a mask takes less memory
        stream = None if self.stream is None else replace(self.stream, weight=weight)
        return replace(
            self, weight=weight, counted=int(np.count_nonzero(weight)), stream=stream,
            left_out=True, _moments={},
        )  # fmt: skip

    def with_columns(self, columns: list[NDArray[np.intp] | None]) -> Opened:
        """Return the rows with a choice of columns for each view. None keeps all columns."""
        if all(index is None for index in columns):
            return self
        cut: dict[tuple[int, bool], Columns] = {}  # tables by number and whether columns are chosen
        keys = [(i, index is None) for i, index in zip(self.shape.views, columns)]
        for key, x, index in zip(keys, self.xs, columns):
            if key not in cut:
                cut[key] = x if index is None else some_columns(x, index)
        views = tuple([*cut].index(key) for key in keys)
        return self.with_tables([*cut.values()], views)

    def with_tables(self, tables: list[Columns], views: tuple[int, ...]) -> Opened:
        """Return the rows with other tables. `views` has the index of the table of each view."""
        return replace(self, tables=tables, shape=self.shape._replace(views=views), _moments={})

    def moments(self, view: int) -> Moments:
        """Return the mean and variance of the columns of a view. They are cached for each table.

        Moments are over all rows, or over the sample if rows were left out."""
        table = self.shape.views[view]
        if table not in self._moments:
            xs, weight = self.some() if self.left_out else (self.tables, self.weight)
            there = rows_with(xs[table], weight)
            self._moments[table] = column_moments(*there, self.how.n_threads)
        return self._moments[table]

    def coverage(self, least: int) -> NDArray[np.float64] | None:
        """Return the share of the total weight on rows that have each view, (L,).

        Return None if all rows have all views. Raise a ValueError if fewer than `least` rows have a
        view."""
        there = self._there or [there_of(x, self.weight) for x in self.tables]
        return coverage([there[i] for i in self.shape.views], float(self.weight.sum()), least)

    def some_with(self, view: int) -> tuple[Any, Array]:
        """Return the rows of the sample that have a view, and their weights."""
        tables, weight = self.some()
        return rows_with(tables[self.shape.views[view]], weight)

    def some(self, size: int | None = None) -> Some:
        """Return the tables and weights of the sample, or of a smaller sample of `size` rows in it.

        The rows are in their original order. If there are not more rows than that, return all
        rows."""
        if self.sample is None:
            return self.tables, self.weight
        return self._first if size in (None, self.how.size) else self._taken(size)

    @cached_property
    def _first(self) -> Some:
        return self._taken(self.how.size)

    def _taken(self, size: int) -> Some:
        """Return the tables and weights of the `size` sampled rows with the smallest keys.

        If rows were sampled with unequal weights, each weight is divided by the probability that
        the row is in the sample. Sums over the sample then are unbiased estimates of sums over all
        rows."""
        assert self.sample is not None
        if self.stream is None and self.counted <= size:
            return self.tables, self.weight
        index, tables, threshold = self.sample.first(size)
        if self.stream is None:
            tables = [x[index] for x in self.tables]
        left = weights_at(self.weight, index).astype(np.float64, copy=False)
        if are_ones(self.odds):
            return tables, left
        unit = weight_unit(self.odds)  # so that keys of rows do not overflow
        odds = (self.odds[index] / unit).astype(np.float64)
        # divided by the probability of a row, so that sums over the sample are unbiased
        weight = unit * (odds / -np.expm1(-odds * threshold))
        return tables, np.where(left > 0, weight, 0)  # rows left out after the draw keep zero

    def numbered(self, size: int) -> tuple[NDArray[np.intp], list[Columns], Array]:
        """Return at most `size` random rows of positive weight, as (indices, tables, weights).

        Indices are rising. The rows have the smallest random keys, so a stored sample changes
        nothing. If all weights are equal, weights of one are returned."""
        if self.stream is None and self.counted <= size:
            index = np.flatnonzero(self.weight)
            weight = weights_at(self.weight, index)
            are_all = len(index) == self.n
            tables = self.tables if are_all else [x[index] for x in self.tables]
        else:
            sample = self.sample or keyed_rows(self.weight, self.how.seed, Reservoir(size))
            drawn = replace(self, sample=sample)
            index, (tables, weight) = sample.first(size)[0], drawn._taken(size)
        weight = ones(len(index)) if weight.min() == weight.max() else weight
        return index, [*map(plain, tables)], weight

    def sizes_of_starts(self, sample: Auto | int | None, k: int) -> list[int]:
        """Return the sizes of the growing samples for k clusters, by the parameter `sample`.

        Starts run on the sample of the first size. An empty list means that starts run on all
        rows."""
        if sample is None:
            return []
        first = sample_size(k, sample)
        if first >= self.counted:
            # a stream with many rows of weight zero: only the sample is in memory
            return [] if self.stream is None else [self.how.size]
        sizes = self.how._replace(first=first).sizes(self.tables)
        # a sample of more than half of the rows would save little
        return [m for m in sizes if m == first or 2 * m <= self.counted]


def sample_tables(
    tables: list[Columns], weight: Array, how: Sampling, shape: Shape | None = None
) -> Opened:
    """Return rows in memory as `Opened`, with a sample unless the smallest sample has all rows."""
    if shape is None:
        widths = tuple(x.shape[1] for x in tables)
        shape = Shape(sum(widths), widths, listed=True, views=tuple(range(len(tables))))
    n, counted = len(tables[0]), int(np.count_nonzero(weight))
    rows = Opened(tables, shape, weight, n, counted, how, None, odds=weight)
    first = how.size if how.first is None else how.first
    if counted <= min(first, how.size):
        return replace(rows, tables=[*map(plain, tables)])
    return replace(rows, sample=keyed_rows(weight, how.seed, how.reservoir(tables)))


def keyed_rows(weight: Array, seed: int, reservoir: Reservoir) -> Sample:
    """Add the keys of all rows to an empty `reservoir`; return its sample, without row values."""
    unit = weight_unit(weight)
    for begin in range(0, len(weight), TUNING.tiles.keys):
        part = in_units(weight[begin : begin + TUNING.tiles.keys], unit, np.float64)
        reservoir.add(begin, row_keys(seed, begin, len(part), part), [])
    return reservoir.sample()


# ---- rows that are read --------------------------------------------------------------------------


def sample_stream(stream: Stream, how: Sampling, distinct: DistinctRows | None = None) -> Opened:
    """Read a stream, and return it as `Opened` with a sample and moments.

    One reading is enough, unless moments of a table are inexact. Then another reading computes the
    moments about the mean. If the stream has at most `how.size` rows, all rows are kept in memory
    and the stream is dropped. All rows are added to `distinct`, if it is given."""
    stream, weight = replace(stream, digests=[]), stream.weight
    reading = _Reading(how, weight_unit(weight), distinct)
    head, shape = None, stream.schema.fitted
    if stream.head is not None and shape is not None:
        head = _First.of(stream.head, weight[: len(stream.head[0])], shape)
    known = stream.fold(partial(reading.visit, head), _Known.followed_by)
    first, weight = known.first, weight[: known.n]
    if known.n <= known.most:  # no block has moved into the reservoir
        blocks = [tables for _, _, tables in known.waiting]
        known.waiting.clear()
        kept = [np.concatenate(parts) for parts in zip(*blocks)]
        return replace(sample_tables(kept, weight, how, first.shape), in_memory=False)
    schema = stream.schema.of_new_rows(first.shape)
    stream = replace(stream, n=known.n, dtype=first.empty[0].dtype, schema=schema)
    moments = {}
    for i, sums in enumerate(known.sums):
        moments[i], exact = _moments(sums, first.shifts[i])
        if not exact:  # another reading about the mean
            shift = moments[i].mean.astype(first.empty[i].dtype)
            again = stream.fold(partial(reading.sums_about, i, shift), operator.add)
            moments[i], _ = _moments(again, shift)
    counted = int(np.count_nonzero(weight))
    return Opened(
        first.empty, first.shape, weight, known.n, counted, how, known.reservoir.sample(), weight,
        stream, moments, known.there, in_memory=False,
    )  # fmt: skip


class _First(NamedTuple):
    """What the first block of rows says about the tables of all rows."""

    shape: Shape
    empty: list[Array]  # the tables, without rows
    shifts: list[Array]  # the points (d,) about which squares are summed

    @classmethod
    def of(cls, tables: list[Array], weight: Array, shape: Shape) -> _First:
        """Return the shape of X, tables without rows, and the shifts, from the first block."""
        shifts = [_first_mean(*rows_with(x, weight)) for x in tables]
        return cls(shape, [x[:0].copy() for x in tables], shifts)


@dataclass
class _Known:
    """What has been read so far: moments, counts, and a sample or all rows."""

    first: _First
    reservoir: Reservoir
    most: int  # up to this number, all rows are kept
    n: int = 0
    # blocks not yet in the reservoir: first index, keys and tables; empty above `most` rows
    waiting: list[tuple[int, Array, list[Array]]] = field(default_factory=list)
    sums: list[Sums] = field(default_factory=list)  # sums of each table
    there: list[Array] = field(default_factory=list)  # `there_of` each table

    def add(self, n: int, blocks: list[tuple[int, Array, list[Array]]]) -> None:
        """Add n rows, given as blocks of (first index, keys, tables).

        Up to `most` rows are kept as blocks. With more rows all blocks move into the reservoir, so
        that no row is kept twice."""
        self.n += n
        self.waiting += blocks
        while self.n > self.most and self.waiting:
            self.reservoir.add(*self.waiting.pop(0))

    def followed_by(self, other: _Known) -> _Known:
        """Merge with what is known of the rows that follow; return the result."""
        both = replace(
            self, reservoir=self.reservoir.joined(other.reservoir), waiting=[*self.waiting]
        )
        both.add(other.n, other.waiting)
        both.sums = [*map(operator.add, self.sums, other.sums)]
        both.there = [*map(operator.add, self.there, other.there)]
        return both


class _Reading(NamedTuple):
    """Functions of blocks that `Stream.fold` calls while rows are read and sampled."""

    how: Sampling
    unit: float  # unit of the weights
    to_distinct: DistinctRows | None = None

    def visit(self, head: _First | None, part: Part, shared: None, before: _Known | None) -> _Known:
        """Add one block to what is known of the rows `before` it, and return the result.

        `head` has the facts of the first rows, or None: they are taken from the first block."""
        tables, weight, begin, shape, _ = part
        if before is None:
            first = _First.of(tables, weight, shape) if head is None else head
            before = _Known(first, self.how.reservoir(first.empty), self.how.size)
        keys = row_keys(
            self.how.seed, begin, len(tables[0]), in_units(weight, self.unit, np.float64)
        )
        if self.to_distinct is not None:
            self.to_distinct.add(begin, tables, weight)
        sums: Sequence[Sums | None] = before.sums or [None] * len(tables)
        before.sums = [
            self.sums_about(i, shift, part, None, own)
            for i, (shift, own) in enumerate(zip(before.first.shifts, sums))
        ]
        there = [there_of(x, weight) for x in tables]
        before.there = [*map(operator.add, before.there, there)] if before.there else there
        before.add(len(tables[0]), [(begin, keys, tables)])
        return before

    def sums_about(
        self, table: int, shift: Array, part: Part, shared: None, before: Sums | None
    ) -> Sums:
        """Add one block of a table to the sums about `shift`; `before` has the sums so far."""
        x, weight = rows_with(part.tables[table], part.weight)
        rows = column_rows(x, weight, part.n_threads or self.how.n_threads, shift)
        weight = in_units(weight, self.unit, x.dtype)
        rows = replace(rows, weight=weight, weight_unit=self.unit)
        return pass_of_block(rows, np.zeros((1, x.shape[1])), -math.inf, before=before)[0]

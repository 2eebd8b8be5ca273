"""What a fit needs to know of all rows before its passes, found in one reading: how many there are,
the means and variances of their columns, and a random sample.

The sample depends on a seed and on the indices of the rows alone: not on how the rows are cut into
blocks, nor on who reads them. Row i has a random number from a counter-based generator at the
position i, from which its key follows: an exponential variable over the weight w_i. A sample of m
rows has the m least keys, so that smaller samples are parts of larger ones, and a row is drawn next
in proportion to its weight (Efraimidis, Spirakis: Weighted random sampling with a reservoir. Inf.
Process. Lett. 2006).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk._rows.dask_workers import Part, Partitions, make_partitions
from rffpk._rows.missing import coverage, coverage_of, rows_with, there_of
from rffpk._rows.passes import make_rows, pass_of_block
from rffpk._rows.rows import Rows, weight_unit
from rffpk._rows.streams import Stream, make_stream
from rffpk._rows.sums import Sums
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array
from rffpk._utils.dask_collections import active_client, sources_of
from rffpk._utils.sparse_rows import Columns, column_means, each, row_bytes
from rffpk._utils.validation import Auto, is_dask

_GROWTH = 8  # A sample after the first is so many times as large as the one before it, ...
# ... as long as it has at most a quarter of the rows and its copy takes at most so many bytes.
_COPY_BYTES = 32 << 20

# Variances are taken from squares about the mean of the first rows. If that is so far from the mean
# of all that rounding errors are more than this part of the variance, they are taken again.
_IMPRECISE = 1e-6

_KEYS = 1 << 18  # made at a time


Some = tuple[list[Columns], Array | None]  # views of some rows, and their weights


# Starts run on a sample of this many rows, ...
_SAMPLE_ROWS = 20_000
_ROWS_A_CLUSTER = 100  # ... or of this many for each cluster if that is more.

# Attributes that checks of rows set in fit and read later.
_OF_CHECKS = {
    *("n_features_in_", "feature_names_in_", "_in_float64", "_view_columns", "_view_names"),
    *("_n_views", "_repetitions", "_widths"),
}


def automatic_sample_size(k: int) -> int:
    """The number of rows that starts for k clusters run on, where there are as many."""
    return max(_SAMPLE_ROWS, _ROWS_A_CLUSTER * k)


def _starting_size(given: Auto | int, k: int, n: int) -> int:
    """The number of rows, out of n, that starts run on, for the parameter `sample`."""
    return min(n, automatic_sample_size(k) if isinstance(given, str) else max(int(given), k))


def is_source(X: Any) -> bool:
    """Whether X is a source, or a list of sources. Raises a TypeError for what can be read once."""
    parts = X if isinstance(X, (list, tuple)) and len(X) else [X]
    for part in parts:
        if isinstance(part, Iterator):
            raise TypeError(
                f"X is of type {type(part).__name__}, which can be read once, and several passes "
                "are needed: pass a function that returns a new one, such as lambda: blocks()."
            )
    return all(callable(part) and not hasattr(part, "__array__") for part in parts)


def row_sample(
    model: Any, X: Any, sample_weight: Any, given: Auto | int | None, least: int, random: Any
) -> RowSample:
    """What a model needs to know of all rows, with samples for its parameter `sample` and of at
    least so many rows; those of a source are read once."""
    k, n_threads = int(model.n_clusters), config.n_threads(model.n_jobs)
    first = None if given is None else _starting_size(given, k, 2**62)
    # a copy draws the seed, so that small fits do not depend on samples
    seed = deepcopy(random).randint(2**31 - 1)
    size = max(automatic_sample_size(k), least, first or 0)
    if is_dask(X):
        if (client := active_client()) is not None:
            found = _partitions(model, X, sample_weight, client)
            return sample_stream(found, size, first, seed, n_threads)
        X = sources_of(X)
    if is_source(X):
        stream = make_stream(X, sample_weight, lambda x, new: model._check_views(x, reset=new))
        return sample_stream(stream, size, first, seed, n_threads)
    xs = model._check_views(X, reset=True)
    weight = validation.check_sample_weight(sample_weight, len(xs[0]), X)
    sample = sample_arrays(xs, weight, size, first, seed, n_threads)
    return replace(sample, may_lack=getattr(model, "allow_missing_views", False))


def _partitions(model: Any, X: Any, sample_weight: Any, client: Any) -> Partitions:
    """The rows of a collection of Dask on the workers of a cluster."""
    stream = make_partitions(X, sample_weight, client, model.n_jobs)
    head = model._check_views(stream.head, reset=True)
    reader, kept = copy(model), {*model.get_params(deep=False), *_OF_CHECKS}
    for name in vars(model).keys() - kept:  # of an earlier fit
        delattr(reader, name)
    return replace(stream, head=head, dtype=head[0].dtype, check=reader._check_views)


@dataclass(frozen=True)
class Moments:
    """The weighted mean of rows, (d,), and their mean squared distance from it."""

    mean: NDArray[np.float64]
    variance: float


def column_moments(
    x: Array, weight: Array | None, n_threads: int, shift: Array | None = None
) -> Moments:
    """The moments of rows in an array.

    Raises
    ------
    ValueError
        If squared distances overflow the dtype of the rows.
    """
    about = _first_mean(x, weight) if shift is None else shift
    rows = make_rows([x], [None], weight, n_threads, [about])
    sums, _ = pass_of_block(rows, np.zeros((1, x.shape[1])), -math.inf)
    moments, exact = _moments(sums, about)
    if exact or shift is not None:
        return moments
    return column_moments(x, weight, n_threads, moments.mean.astype(x.dtype))


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused by name
def _first_mean(x: Columns, weight: Array | None = None) -> Array:
    if weight is not None:  # rows of weight zero may be far away
        x = x[np.flatnonzero(weight)[: _core.SLOT_ROWS]]
    some = rows_with(x, None)[0][: _core.SLOT_ROWS]
    some = some if len(some) else np.zeros_like(x[:1])  # of a view that the first rows lack
    return column_means(some).astype(x.dtype)


def _moments(sums: Sums, shift: Array) -> tuple[Moments, bool]:
    """The moments from sums about a shift, and whether they are precise."""
    validation.check_overflow(sums.hard, shift.dtype)
    offset = sums.mean()
    variance = max(float(sums.view_costs()[0, 0] / sums.G[0]), 0.0)
    errors = float(np.finfo(shift.dtype).eps) * float(offset @ offset)
    return Moments(shift + offset, variance), errors <= _IMPRECISE * variance


@dataclass(frozen=True)
class RowSample:
    """All rows, and a random sample of them."""

    xs: list[Array]  # the views; of a stream without rows
    weight: Array | None  # of the rows in `xs`
    n: int
    counted: int  # the number of rows whose weight is not zero
    size: int  # of the sample, unless fewer rows count
    sample: Sample | None  # None: all rows are in arrays, and no smaller sample is wanted
    n_threads: int
    stream: Stream | None = None
    may_lack: bool = True  # whether rows may lack views
    _moments: dict[int, Moments] = field(default_factory=dict)  # by the id of a view
    _there: list[Array] = field(default_factory=list)  # of a stream, of each view: `there_of`
    _some: list[Some] = field(default_factory=list)  # the sample, once it has been taken

    def moments(self, view: int) -> Moments:
        """The moments of the columns of a view."""
        x = self.xs[view]
        if id(x) not in self._moments:
            there, weight = rows_with(x, self.weight) if self.may_lack else (x, self.weight)
            self._moments[id(x)] = column_moments(there, weight, self.n_threads)
        return self._moments[id(x)]

    def coverage(self, least: int) -> NDArray[np.float64] | None:
        """The share of the weight of the rows that have each view, (L,), None where all have all.
        Raises a ValueError if fewer than `least` rows have a view."""
        if self.stream is None:
            return coverage_of(self.xs, self.weight, least)
        weight = self.stream.weight
        return coverage(self._there, float(self.n if weight is None else weight.sum()), least)

    def some_with(self, view: int) -> tuple[Array, Array | None]:
        """The rows of the sample that have a view, and their weights."""
        xs, weight = self.some()
        return rows_with(xs[view], weight) if self.may_lack else (xs[view], weight)

    def some(self, size: int | None = None) -> Some:
        """The views and weights of the sample, or of the first `size` rows in it, in the order of
        the rows; of all rows if there are no more."""
        if size is not None and size != self.size:
            return self._taken(size)
        if not self._some:
            self._some.append(self._taken(self.size))
        return self._some[0]

    def _taken(self, size: int) -> Some:
        if self.sample is None or (self.stream is None and self.counted <= size):
            return self.xs, self.weight
        index, arrays, threshold = self.sample.first(size)
        if self.stream is None:
            xs = each(self.xs, lambda x: x[index])
            weight = None if self.weight is None else self.weight[index]
        else:
            found = dict(zip({id(x): None for x in self.xs}, arrays))
            xs = [found[id(x)] for x in self.xs]
            given = self.stream.weight
            weight = None if given is None else given[index]
        if weight is None:
            return xs, None
        unit = self.unit
        return xs, unit * inverse_probability(weight / unit, threshold)

    @cached_property
    def unit(self) -> float:
        """The unit of the weights, so that keys of rows do not overflow."""
        weight = self.weight if self.stream is None else self.stream.weight
        return 1.0 if weight is None else weight_unit(weight)

    def sizes(self, first: int) -> list[int]:
        """The sizes of growing samples of the rows that count; none if the first has all."""
        if first >= self.counted:
            return []
        return [m for m in _sizes(first, self.xs) if m == first or 4 * m <= self.counted]

    def sizes_of_starts(self, given: Auto | int | None, k: int) -> list[int]:
        """The sizes of growing samples for the parameter `sample` and k clusters, the first for the
        starts; none if these run on all rows."""
        if given is None:
            return []
        sizes = self.sizes(_starting_size(given, k, self.counted))
        # of a stream that has many rows of weight zero the rows that are kept
        return sizes if sizes or self.stream is None else [self.size]


def _capacity(size: int, first: int | None, xs: list[Array]) -> int:
    """The number of rows in the largest sample."""
    return size if first is None else max(size, _sizes(first, xs)[-1])


def _sizes(first: int, xs: list[Array]) -> list[int]:
    """The sizes of growing samples of many rows."""
    sizes = [first]
    while _GROWTH * sizes[-1] * row_bytes(xs) <= _COPY_BYTES:
        sizes.append(_GROWTH * sizes[-1])
    return sizes


def sample_arrays(
    xs: list[Array],
    weight: Array | None,
    size: int,
    first: int | None,
    seed: int,
    n_threads: int,
) -> RowSample:
    """Rows in arrays, with a sample of at most `size` rows, and growing samples of
    `first` rows or more if that is given."""
    n = len(xs[0])
    counted = n if weight is None else int(np.count_nonzero(weight))
    sample = None
    if counted > min(size, first or size):
        reservoir = Reservoir(_capacity(size, first, xs))
        weight_in_units = None if weight is None else weight / weight_unit(weight)
        for begin in range(0, n, _KEYS):
            part = None if weight_in_units is None else weight_in_units[begin : begin + _KEYS]
            reservoir.add(begin, row_keys(seed, begin, min(_KEYS, n - begin), part), [])
        sample = reservoir.sample()
    return RowSample(xs, weight, n, counted, size, sample, n_threads)


def sample_of_rows(rows: Rows, given: Auto | int | None, k: int, random: Any) -> RowSample:
    """Rows of one view that have features already, with samples for the parameter `sample`."""
    first = None if given is None else _starting_size(given, k, rows.n_counted)
    weight = None if rows.weight is None else rows.weight_unit * rows.weight
    seed = deepcopy(random).randint(2**31 - 1)
    return sample_arrays(rows.xs, weight, first or rows.n, first, seed, rows.n_threads)


def sample_stream(
    stream: Stream, size: int, first: int | None, seed: int, n_threads: int
) -> RowSample:
    """The rows of a stream, which is read once; a stream of no more than `size` rows
    is kept in arrays."""
    stream = replace(stream, digests=[])
    reading = _Reading(stream, size, first, seed, n_threads)
    if isinstance(stream, Partitions):
        reading.add_partitions(stream)
    else:
        for xs, weight in stream.blocks():
            reading.add(xs, weight)
    return reading.sample()


class _Found(NamedTuple):
    """Sums of the views, and the sampled rows."""

    sums: dict[int, Sums]
    there: dict[int, Array]
    reservoir: Reservoir

    def followed_by(self, other: _Found) -> _Found:
        sums = {i: part + other.sums[i] for i, part in self.sums.items()}
        there = {i: part + other.there[i] for i, part in self.there.items()}
        return _Found(sums, there, self.reservoir.joined(other.reservoir))


def _read_part(reading: _Reading, part: Part, shared: None) -> _Found:
    """What is found in a partition; `reading` has begun, without its rows."""
    one = copy(reading)
    one.n, one.n_threads, one.sums, one.there = part.begin, part.n_threads, {}, {}
    one.reservoir = Reservoir(reading.reservoir.size)
    one.add(part.xs, part.weight)
    return _Found(one.sums, one.there, one.reservoir)


def _rows_of_part(part: Part, shared: None) -> list[list[Array]]:
    return [part.xs]


def _sums_of_part(reading: _Reading, view: int, shift: Array, part: Part, shared: None) -> Sums:
    one = copy(reading)
    one.n_threads = part.n_threads
    return one.sums_about(view, shift, part.xs[view], part.weight, None)


class _Reading:
    """What is known of the rows of a stream that have been read."""

    def __init__(
        self, stream: Stream, size: int, first: int | None, seed: int, n_threads: int
    ) -> None:
        self.stream, self.size, self.first = stream, size, first
        self.seed, self.n_threads = seed, n_threads
        self.unit = 1.0 if stream.weight is None else weight_unit(stream.weight)
        self.n = 0
        self.kept: list[tuple[list[Array], Array | None]] = []  # all rows, while they are few
        self.sums: dict[int, Sums] = {}
        self.there: dict[int, Array] = {}
        self.shifts: dict[int, Array] = {}

    def add(self, xs: list[Array], weight: Array | None) -> None:
        """The next block of rows."""
        if not self.shifts:
            self._begin(xs)
        distinct = {i: x for i, x in enumerate(xs) if self.same[i] == i}
        m = len(xs[0])
        keys = row_keys(self.seed, self.n, m, None if weight is None else weight / self.unit)
        self.reservoir.add(self.n, keys, [*distinct.values()])
        for i, x in distinct.items():
            self.sums[i] = self.sums_about(i, self.shifts[i], x, weight, self.sums.get(i))
            self.there[i] = self.there.get(i, 0) + there_of(x, weight)
        self.n += m
        self.kept = [*self.kept, (xs, weight)] if self.n <= self.size else []

    def sums_about(
        self, view: int, shift: Array, x: Array, weight: Array | None, before: Sums | None
    ) -> Sums:
        """The sums of a view about a shift, with those of the rows before."""
        x, weight = rows_with(x, weight)
        rows = make_rows([x], [None], None, self.n_threads, [shift])
        rows = replace(rows, weight=self._in_units(weight, x.dtype), weight_unit=self.unit)
        return pass_of_block(rows, np.zeros((1, x.shape[1])), -math.inf, before=before)[0]

    def add_partitions(self, stream: Partitions) -> None:
        """All rows, which stay where they are unless they are few."""
        self._begin(stream.head)
        alone = copy(self)
        del alone.stream
        found = stream.fold(partial(_read_part, alone), _Found.followed_by)
        self.n, self.stream = stream.n or 0, replace(stream, checked=True)
        self.sums, self.there, self.reservoir = found
        if self.n <= self.size:
            self.kept = [(xs, None) for xs in self.stream.fold(_rows_of_part, operator.add)]

    def _begin(self, xs: list[Array]) -> None:
        numbers = {id(x): i for i, x in reversed([*enumerate(xs)])}
        self.same = [numbers[id(x)] for x in xs]  # the first view with the same columns
        self.empty = each(xs, lambda x: x[:0].copy())
        self.reservoir = Reservoir(_capacity(self.size, self.first, xs))
        self.shifts = dict(enumerate(each(xs, lambda x: _first_mean(rows_with(x, None)[0]))))

    def _in_units(self, weight: Array | None, dtype: Any) -> Array | None:
        if weight is None:
            return None
        return np.ascontiguousarray(weight / self.unit, dtype=dtype)

    def sample(self) -> RowSample:
        """What is known after all rows."""
        if self.n == 0:
            raise ValueError("X gave no rows, must give at least one.")
        if self.kept:
            views = [np.concatenate(blocks) for blocks in zip(*(xs for xs, _ in self.kept))]
            return sample_arrays(
                [views[i] for i in self.same], self.stream.weight, self.size, self.first,
                self.seed, self.n_threads,
            )  # fmt: skip
        weight, dtype = self.stream.weight, self.empty[0].dtype
        counted = self.n if weight is None else int(np.count_nonzero(weight))
        stream = replace(self.stream, n=self.n, dtype=dtype)
        found = {}
        for i, sums in self.sums.items():
            moments, exact = _moments(sums, self.shifts[i])
            found[id(self.empty[i])] = moments if exact else self._again(stream, i, moments)
        return RowSample(
            self.empty, None, self.n, counted, self.size, self.reservoir.sample(),
            self.n_threads, stream, True, found, [self.there[i] for i in self.same],
        )  # fmt: skip

    def _again(self, stream: Stream, view: int, moments: Moments) -> Moments:
        """The moments of a view about its mean, by another reading."""
        shift, sums = moments.mean.astype(self.empty[view].dtype), None
        if isinstance(stream, Partitions):
            alone = copy(self)
            del alone.stream
            visit = partial(_sums_of_part, alone, view, shift)
            return _moments(stream.fold(visit, operator.add), shift)[0]
        for xs, weight in stream.blocks():
            sums = self.sums_about(view, shift, xs[view], weight, sums)
        assert sums is not None
        return _moments(sums, shift)[0]


# ---- samples by random keys ----------------------------------------------------------------------


_DRAWS = 4  # numbers that Philox has at one position of its counter


def row_keys(seed: int, begin: int, n: int, weight: Array | None = None) -> NDArray[np.float64]:
    """The keys of the rows begin, ..., begin + n - 1; infinite for rows of weight zero."""
    first = begin % _DRAWS
    generator = np.random.Generator(np.random.Philox(key=seed, counter=begin // _DRAWS))
    keys = -np.log1p(-generator.random(first + n)[first:])
    if weight is None:
        return np.asarray(keys)
    return np.divide(keys, weight, out=np.full(n, np.inf), where=weight > 0)


@dataclass(frozen=True)
class Sample:
    """Rows in the order of their keys."""

    keys: NDArray[np.float64]
    indices: NDArray[np.intp]
    arrays: list[Array]  # what was kept of the rows

    def first(self, m: int) -> tuple[NDArray[np.intp], list[Array], float]:
        """The indices, rising, of the first m rows, what was kept of them, and the key of the row
        after them, which is infinite if there is none."""
        order = np.argsort(self.indices[:m])
        threshold = float(self.keys[m]) if m < len(self.keys) else math.inf
        return self.indices[order], [array[order] for array in self.arrays], threshold


def inverse_probability(weight: Array, threshold: float) -> NDArray[np.float64]:
    """The weights of rows in a sample with this threshold: w / (1 - exp(-w threshold)), so that
    sums over a sample have the expectation of the sums over all rows."""
    weight = weight.astype(np.float64)
    return np.asarray(weight / -np.expm1(-weight * threshold))


class Reservoir:
    """The rows with the least keys among those that were added."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._parts: list[tuple[Array, Array, list[Array]]] = []
        self._count, self._bound = 0, math.inf

    def add(self, begin: int, keys: Array, arrays: list[Array]) -> None:
        """Add the rows from index `begin` on, of which `arrays` are kept."""
        index = np.flatnonzero(keys < self._bound)
        if len(index):
            self._parts.append((keys[index], begin + index, [array[index] for array in arrays]))
            self._count += len(index)
        if self._count > 2 * self.size:
            self._shrink()

    def _shrink(self) -> None:
        keys, indices, arrays = zip(*self._parts)
        key, index = np.concatenate(keys), np.concatenate(indices)
        order = np.lexsort((index, key))[: self.size + 1]
        kept = [np.concatenate(parts)[order] for parts in zip(*arrays)]
        self._parts, self._count = [(key[order], index[order], kept)], len(order)
        if len(order) > self.size:
            self._bound = key[order[-1]]

    def joined(self, other: Reservoir) -> Reservoir:
        """The rows with the least keys in both."""
        both = Reservoir(self.size)
        both._parts, both._count = self._parts + other._parts, self._count + other._count
        if both._count > both.size:
            both._shrink()
        return both

    def sample(self) -> Sample:
        """The rows with the `size` least keys, and one more."""
        self._shrink()
        return Sample(*self._parts[0])

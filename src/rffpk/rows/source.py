"""Rows that are read block by block, as often as they are needed, from a source.

A source is a function without arguments that returns a new iterator of blocks, two-dimensional
arrays of consecutive rows. Blocks are checked as arrays in memory are, and cut anew, so that passes
over them have the bits of passes over one array.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from rffpk import _core
from rffpk.rows.arrays import Array
from rffpk.rows.checks import check_plain, refuse_sparse
from rffpk.rows.door import Schema, Shape, check_views
from rffpk.rows.table import SMALL, Narrow, as_type, stored
from rffpk.rows.weights import ENDLESS
from rffpk.system.interrupts import Handover
from rffpk.system.tuning import TUNING

Source = Callable[[], Iterable[Any]]
T = TypeVar("T")


@dataclass
class Clock:
    """Seconds since the last lap."""

    reading: float = 0.0  # time of the thread that reads, checks and cuts
    computing: float = 0.0  # time of the caller between the blocks

    def lap(self) -> dict[str, float]:
        """Return both times since the last call, and reset them."""
        found = {"reading": self.reading, "computing": self.computing}
        self.reading = self.computing = 0.0
        return found


class Part(NamedTuple):
    """Consecutive rows, as they are visited."""

    tables: list[Array]  # distinct tables, or the results of `prepare`
    weight: Array
    begin: int  # the index of the first row
    shape: Shape
    n_threads: int | None = None  # set on a worker of a cluster


Visit = Callable[[Part, Any, Any], Any]
Add = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Stream:
    """The rows of a source, or of a source for each view, as checked tables of one dtype."""

    sources: list[Source]
    listed: bool  # whether X is a list of sources
    schema: Schema  # the rules that blocks must follow
    weight: Array  # (n,), or a mask; ENDLESS weights of one for a source without weights
    n_weights: int = ENDLESS  # number of weights that the caller gave
    n: int | None = None  # known after the first read, like `dtype`
    dtype: Any = None
    # converts the tables of a block to the tables of a pass
    prepare: Callable[[list[Array]], list[Array]] = field(default=lambda xs: xs)
    clock: Clock = field(default_factory=Clock)
    # The number of rows and the digest of each block at the first read, which later reads must
    # repeat. None: the rows are read only once.
    digests: list[tuple[int, int]] | None = None

    head: Any = None  # the first rows, if workers in other processes read the blocks

    def blocks(self) -> Iterator[Part]:
        """Yield consecutive rows, in blocks whose sizes are multiples of SLOT_ROWS.

        The last block may have any size. Another thread reads, one block ahead."""
        return prefetched(self._checked, self.clock)

    def fold(self, visit: Visit, add: Add, shared: Any = None) -> Any:
        """Call `visit(block, shared, result)` for each block in turn, and return the last result.

        `result` is what `visit` returned for the block before, and None for the first block. Each
        visit gets `shared`. Workers of Dask visit each partition separately, and `add` combines
        the results of the partitions."""
        found = None
        for part in self.blocks():
            found = visit(part, shared, found)
        return found

    def _checked(self) -> Iterator[Part]:
        """Yield checked parts; refuse a source that contradicts its weights or first reading."""
        begin, first, shapes = 0, None, list[Shape]()
        for number, tables in enumerate(self._cut(shapes)):
            first = first or tables[0].dtype
            if tables[0].dtype != first and self.dtype is None:
                raise ValueError(
                    f"X gave blocks of {first} and then of {tables[0].dtype}, must give one dtype."
                )
            # `_tables` yields low precision as plain arrays
            tables = [as_type(Narrow(x) if x.dtype in SMALL else x, self.dtype) for x in tables]
            end = begin + len(tables[0])
            weight = self.weight[begin:end].astype(float, copy=False)
            if self.n_weights < end:
                self._refuse_weight(end)
            if self.digests is not None:
                self._compare(number, begin, [*map(stored, tables)])
            yield Part(self.prepare(tables), weight, begin, shapes[0])
            begin = end
        if begin < self.n_weights < ENDLESS:
            self._refuse_weight(begin)
        if self.n is not None and begin != self.n:
            raise ValueError(
                f"X: the source gave {begin} rows, and {self.n} in its first reading. Return a new "
                "iterator over the same rows each time, or write a file by `rffpk.sources.spill`."
            )
        if not begin:
            raise ValueError("X gave no rows, must give at least one.")

    def _refuse_weight(self, n: int) -> NoReturn:
        raise ValueError(
            f"sample_weight has {self.n_weights} entries, but X gave {n} rows or more."
        )

    def _compare(self, number: int, begin: int, xs: list[Array]) -> None:
        """Record the digest of a block at the first reading, or compare it with the record later.

        Raise a ValueError if the block has changed."""
        assert self.digests is not None
        n, found = len(xs[0]), digest(xs)
        if self.n is None:
            self.digests.append((n, found))
            return
        before = self.digests[number] if number < len(self.digests) else (0, 0)
        if before[0] == n and before[1] != found:  # other numbers of rows are refused at the end
            raise ValueError(
                f"X: the source gave other numbers in rows {begin} to {begin + n - 1} in a later "
                "reading. Give the same rows in the same order each time: `rffpk.sources.spill` "
                "writes them to a file."
            )

    def _cut(self, shapes: list[Shape]) -> Iterator[list[Array]]:
        """Yield checked tables in blocks of fixed size, and append the shape of X to `shapes`."""
        if not self.listed:
            return recut(self._tables(_blocks_of(self.sources[0], "X"), shapes))
        views = [recut(_plain(source, f"X[{i}]")) for i, source in enumerate(self.sources)]
        return recut(self._tables(_together(views), shapes))

    def _tables(self, blocks: Iterable[Any], shapes: list[Shape]) -> Iterator[list[Array]]:
        """Check blocks and yield their tables. Later blocks must have the columns of the first.

        Tables are copied if the source may overwrite its blocks later. Empty blocks are skipped."""
        begin, schema = 0, self.schema
        fresh = self.listed or hasattr(self.sources[0], "fresh")  # else they may be overwritten
        for block in blocks:
            if isinstance(block, list) or len(block):
                with in_block(begin):
                    tables, shape = check_views(block, schema)
                if not shapes:
                    shapes.append(shape)
                    schema = schema.of_new_rows(shape)
                yield [stored(x) if fresh else stored(x).copy() for x in tables]
                begin += len(tables[0])


@contextmanager
def in_block(begin: int) -> Iterator[None]:
    """Add the row where the block begins, unless it is 0, to the text of an error raised inside."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if not begin:
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{error} The block begins at row {begin} of X.") from error


def computed(sample_weight: Any) -> Any:
    """Return weights as an array if they are a Dask collection, else as they are."""
    return np.asarray(sample_weight) if hasattr(sample_weight, "compute") else sample_weight


def _blocks_of(source: Source, name: str) -> Iterator[Any]:
    """Yield the blocks of a source; refuse sparse blocks and numbers."""
    blocks: Any = source()
    # an array of three dimensions is a sequence of blocks
    if not isinstance(blocks, Iterable) or getattr(blocks, "ndim", 3) < 3:
        raise TypeError(
            f"{name} is a function that returned {type(blocks).__name__}, must return an iterator "
            "of blocks, which are 2-dimensional arrays: return iter([block]) for a single one."
        )
    for block in blocks:
        refuse_sparse(block, name, "a source")
        if not hasattr(block, "__len__"):
            kind = type(block).__name__
            raise TypeError(f"{name} gave a block of type {kind}, must be an array.")
        yield block


def _plain(source: Source, name: str) -> Iterator[list[Array]]:
    """Yield blocks of one of several sources, as lists of one array.

    Finite values are checked later, on all views together, after the views have been cut to equal
    rows."""
    for block in _blocks_of(source, name):
        check_plain(block, name)
        block = np.array(block, copy=None if hasattr(source, "fresh") else True)
        if block.ndim != 2:
            raise ValueError(f"{name} gave a block of shape {block.shape}, must be 2-dimensional.")
        if len(block):
            yield [block]


def _together(views: list[Iterator[list[Array]]]) -> Iterator[list[Array]]:
    """Join the blocks of several sources: yield lists with the same rows of each view.

    Raise a ValueError if a source ends before another source."""
    pending: list[Any] = [()] * len(views)  # rows of each source, ahead of the slowest source
    while True:
        pending = [rows if len(rows) else next(view, [()])[0] for rows, view in zip(pending, views)]
        m = min(map(len, pending))
        if not m:
            break
        yield [rows[:m] for rows in pending]
        pending = [rows[m:] for rows in pending]
    if any(map(len, pending)):
        ended = next(i for i, rows in enumerate(pending) if not len(rows))
        raise ValueError(f"X[{ended}] gave fewer rows than the other sources.")


_LANES = (1021, 1019)  # numbers of sums, which are primes


def digest(arrays: list[Array]) -> int:
    """Return a checksum of arrays, which changes if their bytes or the order of bytes change.

    The checksum is the CRC of sums of words that are a fixed step apart. It takes as long as half a
    copy of the arrays."""
    crc = 0
    for x in arrays:
        words = x.reshape(-1).view(np.uint8)
        # if a row has as many words as there are sums, rows could be exchanged without a change
        lanes = _LANES[x.strides[0] % (8 * _LANES[0]) == 0]
        end = len(words) // (8 * lanes) * (8 * lanes)
        sums = np.add.reduce(words[:end].view(np.uint64).reshape(-1, lanes), axis=0)
        crc = zlib.crc32(words[end:].data, zlib.crc32(sums.data, crc))
    return crc


def recut(blocks: Iterable[list[Array]]) -> Iterator[list[Array]]:
    """Cut blocks anew, so that all blocks except the last have an equal number of rows.

    A block is a list of arrays with the same rows. Nothing is copied where one input block has
    enough rows."""
    parts: list[list[Array]] = []  # rows of the next block
    waiting = size = 0  # the numbers of rows in `parts`, and in a full block
    for arrays in blocks:
        size = size or block_rows(arrays)
        while len(arrays[0]):
            m = min(size - waiting, len(arrays[0]))
            parts.append([x[:m] for x in arrays])
            arrays, waiting = [x[m:] for x in arrays], waiting + m
            if waiting == size:
                yield _joined(parts)
                parts, waiting = [], 0
    if parts:
        yield _joined(parts)


def block_rows(arrays: list[Array]) -> int:
    """Return the number of rows of a block of fixed size: a multiple of SLOT_ROWS."""
    row_bytes = sum(x.dtype.itemsize * x.shape[1] for x in arrays)
    slots = TUNING.storage.block_bytes // (_core.SLOT_ROWS * max(1, row_bytes))
    return int(_core.SLOT_ROWS * max(1, slots))


def _joined(parts: list[list[Array]]) -> list[Array]:
    """Concatenate consecutive blocks, table by table."""
    if len(parts) == 1:
        return parts[0]
    return [np.concatenate(column) for column in zip(*parts)]


def prefetched(make: Callable[[], Iterator[T]], clock: Clock) -> Iterator[T]:
    """Yield the items of an iterator that runs in another thread, one item ahead.

    Errors of the thread are raised here. The thread ends with this iterator. Neither this iterator
    nor the end of the process waits for an item that is being read."""
    wanted: SimpleQueue[bool] = SimpleQueue()  # requests: whether another item is wanted
    found: Handover[Any] = Handover()
    found.start(_read, make, wanted, found, clock)
    wanted.put(True)
    try:
        while (item := found.take()) is not _END:
            if isinstance(item, BaseException):
                raise item
            wanted.put(True)
            started = time.perf_counter()
            yield item
            clock.computing += time.perf_counter() - started
    finally:
        wanted.put(False)


_END: Any = object()


def _read(
    make: Callable[[], Iterator[T]], wanted: SimpleQueue[bool], handed: Handover[Any], clock: Clock
) -> None:
    """Advance an iterator at each request, and hand over its items, then _END, or its error."""
    items: Any = ()
    item: Any = None
    try:
        items = make()
        while item is not _END and wanted.get():
            started = time.perf_counter()
            item = next(items, _END)
            clock.reading += time.perf_counter() - started
            handed.give(item)
    except BaseException as error:
        handed.give(error)
    finally:
        if hasattr(items, "close"):
            items.close()

"""Rows in the partitions of Dask collections, which stay on the workers of a cluster.

A pass is one task for each worker that holds rows, over the partitions there. What the tasks return
is joined along a binary tree over the numbers of the partitions: a worker joins what is below a
node as far as it holds it, and the client does the rest. So the bits do not depend on which worker
visits which partition, and a task may run again elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.utils import gen_batches

from rffpk._rows.streams import Add, Part, Stream, Visit, in_block
from rffpk._utils import config
from rffpk._utils.arrays import Array
from rffpk._utils.columns import as_type, each
from rffpk._utils.dask_collections import check_columns, dask_module
from rffpk._utils.validation import check_sample_weight, refuse_sparse

_HEAD_ROWS = 1024  # that the client checks before the workers check all

# Seconds between looks at the workers, until a cluster without any is given up, and for the
# transfer of what all of them return.
_LOOK, _WITHOUT_WORKERS, _TRANSFER = 2.0, 20.0, 30.0
_ATTEMPTS = 5  # at a pass, whose arguments may be lost with the workers that hold them

_GROUP = 16  # results that one place joins: the client has few, however many workers there are

# From how many bytes on Dask warns of arguments; centroids may take more.
_LARGE = "distributed.admin.large-graph-warning-threshold"
_configuring = threading.Lock()  # Dask's configuration is that of all threads

Views = list[Array]
Nodes = dict[tuple[int, int], Any]


class Block(NamedTuple):
    """A partition, as a worker holds it."""

    xs: Any  # rows, or a list of those of each view
    weight: Array | None
    begin: int  # the number of the first row


class Task(NamedTuple):
    """What is done with each partition, and how results are joined."""

    visit: Visit
    add: Add
    n_parts: int


# ---- in the tasks --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reader:
    """How a worker makes what tasks take out of a partition; the same in all passes."""

    check: Callable[[Any, bool], Views]
    prepare: Callable[[Views], Views]
    shared: Any
    checked: bool
    dtype: Any
    n_jobs: int | None

    def read(self, block: Block, n_threads: int) -> Part | None:
        """The rows of a partition, which are checked unless they have been; None if there are
        none."""
        refuse_sparse(block.xs, "X gave a partition that", "a collection of Dask")
        if not len(block.xs[0] if isinstance(block.xs, list) else block.xs):
            return None
        with config_context(assume_finite=self.checked), in_block(block.begin):
            xs = each(self.check(block.xs, False), as_type, self.dtype)
        return Part(self.prepare(xs), block.weight, block.begin, n_threads)


class Result(NamedTuple):
    """What tasks return."""

    nodes: Nodes  # of the tree of partitions
    seconds: float  # of the task that took longest
    # The first partition that is refused, and why: Dask would log what a task raises.
    refusal: tuple[int, Exception] | None = None


def _head(block: Block) -> Any:
    if isinstance(block.xs, list):
        return [view[:_HEAD_ROWS] for view in block.xs]
    return block.xs[:_HEAD_ROWS]


def _itself(value: Any) -> Any:
    return value


def _visit_parts(reader: _Reader, task: Task, numbers: list[int], blocks: list[Block]) -> Result:
    """The nodes of the tree that partitions of a worker make, and the seconds that it took."""
    started = time.perf_counter()
    n_threads = _threads_of_worker(reader.n_jobs)
    nodes: Nodes = {}
    for number, block in zip(numbers, blocks):
        try:
            part = reader.read(block, n_threads)
        except (ValueError, TypeError) as error:
            return Result({}, 0.0, (block.begin, error))
        value = None if part is None else task.visit(part, reader.shared, None)
        insert(nodes, (0, number), value, task.n_parts, task.add)
    return Result(nodes, time.perf_counter() - started)


def _joined(task: Task, results: list[Result]) -> Result:
    """The results of several workers as one."""
    refusals = [found.refusal for found in results if found.refusal is not None]
    nodes: Nodes = {}
    for found in results:
        for node, value in found.nodes.items():
            insert(nodes, node, value, task.n_parts, task.add)
    seconds = max(found.seconds for found in results)
    return Result(nodes, seconds, min(refusals, key=itemgetter(0), default=None))


def _threads_of_worker(n_jobs: int | None) -> int:
    """n_jobs, of which None stands for the threads of the worker that runs this task."""
    if n_jobs is not None:
        return config.n_threads(n_jobs)
    return int(dask_module("distributed").get_worker().state.nthreads)


def insert(nodes: Nodes, node: tuple[int, int], value: Any, count: int, add: Add) -> None:
    """Add a node (level, number) of a tree over `count` leaves, and join siblings upwards as long
    as both are there. None is the value of leaves without rows."""
    level, number = node
    while (width := -(-count >> level)) > 1:
        sibling = number ^ 1
        if sibling < width:
            if (level, sibling) not in nodes:
                break
            other = nodes.pop((level, sibling))
            left, right = (value, other) if number < sibling else (other, value)
            value = right if left is None else left if right is None else add(left, right)
        level, number = level + 1, number // 2
    nodes[level, number] = value


# ---- on the client -------------------------------------------------------------------------------


@dataclass
class _Sent:
    """The reader that the workers have, and what it was made of."""

    source: tuple[Any, ...] = ()
    future: Any = None


@dataclass(frozen=True)
class Partitions(Stream):
    """The rows of Dask collections in the memory of the workers of a cluster."""

    client: Any = None
    futures: list[Any] = field(default_factory=list)  # of the blocks, in the order of rows
    n_jobs: int | None = None
    sent: _Sent = field(default_factory=_Sent)

    def fold(self, visit: Visit, add: Add, shared: Any = None) -> Any:
        """What `visit` returns for each partition with rows and the object `shared`, joined by
        `add` in the order of the partitions. `shared` is sent once as long as it is the same."""
        lost: Exception | None = None
        for _ in range(_ATTEMPTS):
            try:
                return self._fold(Task(visit, add, len(self.futures)), shared)
            except CancelledError as error:  # arguments or rows that only lost workers had
                lost, self.sent.future = error, None
                wait_for_workers(self.client)
        raise RuntimeError(
            f"each of {_ATTEMPTS} attempts at a pass lost workers, with rows that Dask cannot "
            "compute again."
        ) from lost

    def _fold(self, task: Task, shared: Any) -> Any:
        reader, sent = self._reader(shared), self._send(task)
        results = [
            self.client.submit(
                _visit_parts, reader, sent, numbers, [self.futures[i] for i in numbers],
                workers=[worker], allow_other_workers=True, pure=False,
            )
            for worker, numbers in self._places().items()
        ]  # fmt: skip
        while len(results) > _GROUP:
            results = [
                self.client.submit(_joined, sent, results[group], pure=False)
                for group in gen_batches(len(results), _GROUP)
            ]
        found = _joined(task, results_of(self.client, results))
        if found.refusal is not None:
            raise found.refusal[1]
        self.clock.computing += found.seconds
        return found.nodes.popitem()[1]

    def _reader(self, shared: Any) -> Any:
        checked, sent = self.n is not None, self.sent
        source = (self.check, self.prepare, shared, checked)
        if sent.future is None or any(a is not b for a, b in zip(sent.source, source)):
            sent.source = source
            sent.future = self._send(_Reader(*source, self.dtype, self.n_jobs))
        return sent.future

    def _send(self, value: Any) -> Any:
        """The future of a value that workers get from each other. It is the result of a task, so
        that Dask has it again where the workers that had it are lost."""
        with _configuring, dask_module("dask").config.set({_LARGE: "1 TiB"}):
            return self.client.submit(_itself, value, pure=False)

    def _places(self) -> dict[str, list[int]]:
        """The numbers of the partitions that each worker visits: those it holds, and some of those
        that no worker holds now."""
        workers: list[str] = []
        if not all(held := self._holders()):  # they are computed, again where they were lost
            wait_for(self.client, self.futures)
            held, workers = self._holders(), wait_for_workers(self.client)
        places: dict[str, list[int]] = {}
        for i, there in enumerate(held):
            fewest = min(there or workers, key=lambda w: (len(places.get(w, ())), w))
            places.setdefault(fewest, []).append(i)
        return places

    def _holders(self) -> list[list[str]]:
        """The workers that have each partition."""
        found = self.client.who_has(self.futures)
        return [list(found.get(future.key, ())) for future in self.futures]


def wait_for_workers(client: Any) -> list[str]:
    """The addresses of the workers, as soon as there are any."""
    deadline = time.monotonic() + _WITHOUT_WORKERS
    while not (workers := sorted(client.nthreads())):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the cluster has had no worker for {_WITHOUT_WORKERS:.0f} seconds.")
        time.sleep(0.2)
    return workers


def wait_for(client: Any, futures: list[Any]) -> None:
    """Return when all tasks have ended; an error if the cluster remains without workers."""
    distributed = dask_module("distributed")
    while True:
        try:
            distributed.wait(futures, timeout=_LOOK)
            return
        except TimeoutError:
            wait_for_workers(client)


def results_of(client: Any, futures: list[Any]) -> list[Any]:
    """The results of futures; an error if the cluster remains without workers meanwhile."""
    wait_for(client, futures)
    try:
        return list(
            client.sync(
                lambda: client.gather(futures, asynchronous=True),
                asynchronous=False,
                callback_timeout=_TRANSFER,
            )
        )
    except TimeoutError:  # what was computed is lost, and computed again
        wait_for_workers(client)
        return results_of(client, futures)


def make_partitions(X: Any, sample_weight: Any, client: Any, n_jobs: int | None) -> Partitions:
    """The rows of a collection, or of one for each view, which the workers compute and hold."""
    listed = isinstance(X, (list, tuple))
    wait_for_workers(client)
    views = [_futures(check_columns(x).persist()) for x in (X if listed else [X])]
    lengths = _lengths(client, views)
    *begins, n = accumulate(lengths, initial=0)
    if not n:
        raise ValueError("X gave no rows, must give at least one.")
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(np.asarray(sample_weight), n)
    futures = [
        client.submit(
            Block, [*parts] if listed else parts[0],
            None if weight is None else weight[begin : begin + m], begin, pure=False,
        )
        for begin, m, *parts in zip(begins, lengths, *views)
    ]  # fmt: skip
    first = next(i for i, m in enumerate(lengths) if m)
    (head,) = results_of(client, [client.submit(_head, futures[first], pure=False)])
    return Partitions(
        [], listed, _unchecked, weight, client=client, futures=futures, n_jobs=n_jobs, head=head
    )


def _unchecked(block: Any, first: bool) -> Views:
    raise NotImplementedError  # replaced as soon as the first rows are known


def _futures(X: Any) -> list[Any]:
    """The futures of a persisted collection, in the order of the rows."""
    found = dask_module("distributed").futures_of(X)  # keys are (name, number) or (name, number, 0)
    return sorted(found, key=lambda future: future.key[1])


def _lengths(client: Any, views: list[list[Any]]) -> list[int]:
    """The numbers of rows of the partitions, which are the same in all views."""
    found = [results_of(client, client.map(len, parts, pure=False)) for parts in views]
    for i, lengths in enumerate(found):
        if lengths != found[0]:
            raise ValueError(
                f"X[{i}] has partitions of {_some(lengths)} rows, X[0] of {_some(found[0])}: all "
                "views must have the same partitions; rechunk makes them so."
            )
    return found[0]


def _some(lengths: list[int]) -> str:
    return ", ".join(map(str, lengths[:5])) + (", ..." if len(lengths) > 5 else "")

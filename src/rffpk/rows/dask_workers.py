"""Rows in the partitions of Dask collections, which stay on the workers of a cluster.

A pass has one task for each partition, or for sixteen small partitions. Further tasks join sixteen
results at a time, in the order of the partitions. So the bits do not depend on which worker visits
which partition. Dask computes again what a lost worker held.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.utils import gen_batches

from rffpk.rows.arrays import Array
from rffpk.rows.checks import check_sample_weight, refuse_sparse
from rffpk.rows.dask_collections import check_columns, dask_module
from rffpk.rows.door import Schema, check_views
from rffpk.rows.source import Add, Part, Stream, Visit, computed, in_block
from rffpk.rows.table import as_type
from rffpk.rows.weights import are_ones
from rffpk.system import config
from rffpk.system.tuning import TUNING

# The number of bytes above which Dask warns of large arguments; centroids may take more.
_LARGE = "distributed.admin.large-graph-warning-threshold"
_configuring = threading.Lock()  # all threads share Dask's configuration

Views = list[Array]


class Block(NamedTuple):
    """A partition, as a worker holds it."""

    xs: Any  # rows, or a list with the rows of each view
    weight: Array  # (1,) if all weights are one, else one weight for each row
    begin: int  # the index of the first row


class Refusal(NamedTuple):
    """The error of an invalid partition, returned by a task: Dask would log a raised error."""

    error: Exception


# ---- in the tasks --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reader:
    """What a worker needs to turn a partition into checked rows. Passes share one reader."""

    schema: Schema
    prepare: Callable[[Views], Views]  # converts checked tables to the tables of a pass
    shared: Any  # the argument that all calls of a visit share
    checked: bool  # whether an earlier pass has checked that numbers are finite
    dtype: Any
    n_jobs: int | None

    def read(self, block: Block) -> Part | None:
        """Check a partition, and return it as a part. Return None if it has no rows.

        Finiteness is not checked again if an earlier pass has checked it."""
        refuse_sparse(block.xs, "X", "a collection of Dask")
        if not len(block.xs[0] if isinstance(block.xs, list) else block.xs):
            return None
        with config_context(assume_finite=self.checked), in_block(block.begin):
            tables, shape = check_views(block.xs, self.schema)
            tables = [as_type(x, self.dtype) for x in tables]
        # a worker visits as many partitions at once as it has threads
        n_threads = 1 if self.n_jobs is None else config.n_threads(self.n_jobs)
        weight = np.broadcast_to(block.weight, len(tables[0]))
        return Part(self.prepare(tables), weight, block.begin, shape, n_threads)


def _visited(blocks: list[Block], reader: _Reader, visit: Visit, add: Add) -> Any:
    """Call `visit` for consecutive partitions, and combine the results with `add`.

    Return None if no partition has rows, or a `Refusal` if one is invalid."""
    results: list[Any] = []
    for block in blocks:
        try:
            part = reader.read(block)
        except (ValueError, TypeError) as error:
            results.append(Refusal(error))
            continue
        if part is not None:
            results.append(visit(part, reader.shared, None))
    return _joined(results, add)


def _joined(results: list[Any], add: Add) -> Any:
    """Combine the results of consecutive partitions, or return the first refusal among them.

    Results of None, from empty partitions, are skipped. Return None if all results are None."""
    found = [result for result in results if result is not None]
    refusals = (result for result in found if isinstance(result, Refusal))
    return next(refusals, None) or (functools.reduce(add, found) if found else None)


def _head(block: Block) -> Any:
    """Return the first rows of a partition, as one table or as a list of views."""
    if isinstance(block.xs, list):
        return [view[: TUNING.workers.head_rows] for view in block.xs]
    return block.xs[: TUNING.workers.head_rows]


def _itself(value: Any) -> Any:
    return value


# ---- on the client -------------------------------------------------------------------------------


@dataclass
class _Sent:
    """The reader that the workers have, and the arguments that it was made with."""

    source: tuple[Any, ...] = ()
    future: Any = None


@dataclass(frozen=True)
class Partitions(Stream):
    """The rows of Dask collections in the memory of the workers of a cluster."""

    client: Any = None
    futures: list[Any] = field(default_factory=list)  # futures of lists of blocks, in row order
    n_jobs: int | None = None
    sent: _Sent = field(default_factory=_Sent)

    def fold(self, visit: Visit, add: Add, shared: Any = None) -> Any:
        """Call `visit` for each partition on the workers, and combine the results with `add`.

        `visit` also gets `shared`, which is sent to the workers only when it changes. Results are
        combined in the order of the partitions."""
        started, sent = time.perf_counter(), self.sent
        # once n is known, a reading has checked that numbers are finite
        source = (self.schema, self.prepare, shared, self.n is not None)
        if sent.future is None or any(a is not b for a, b in zip(sent.source, source)):
            sent.source = source
            sent.future = self._send(_Reader(*source, self.dtype, self.n_jobs))
        results = self.client.map(
            _visited, self.futures, pure=False, reader=sent.future, visit=self._send(visit), add=add
        )
        while len(results) > 1:
            groups = [results[group] for group in gen_batches(len(results), TUNING.workers.group)]
            results = self.client.map(_joined, groups, add=add, pure=False)
        found = result_of(self.client, results[0])
        self.clock.computing += time.perf_counter() - started
        if isinstance(found, Refusal):
            raise found.error
        return found

    def _send(self, value: Any) -> Any:
        """Send a value to the workers, and return its future.

        The value is the result of a task, so that Dask can recompute it after a worker is lost."""
        with _configuring, dask_module("dask").config.set({_LARGE: "1 TiB"}):
            return self.client.submit(_itself, value, pure=False)


def wait_for_workers(client: Any) -> None:
    """Wait until the cluster has a worker; raise a RuntimeError after a time limit."""
    seconds = TUNING.workers.workerless_seconds
    deadline = time.monotonic() + seconds
    while not client.nthreads():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the cluster has had no worker for {seconds:.0f} seconds.")
        time.sleep(0.2)


def result_of(client: Any, future: Any) -> Any:
    """Wait for a future and return its result.

    Raise a RuntimeError if the cluster stays without workers, or if the result needs rows that only
    lost workers had."""
    wait = dask_module("distributed").wait
    while True:
        try:
            wait(future, timeout=TUNING.workers.look_seconds)
            return future.result(timeout=TUNING.workers.transfer_seconds)
        except TimeoutError:
            if future.status == "error":  # a task raised it
                raise
            wait_for_workers(client)
        except CancelledError as error:
            raise RuntimeError(
                "workers were lost with rows that Dask cannot compute again."
            ) from error


def make_partitions(
    X: Any, sample_weight: Any, client: Any, n_jobs: int | None, schema: Schema
) -> Partitions:
    """Hold a Dask collection, or a list of one collection a view, on the workers; return its rows.

    The workers compute the partitions once. If there are many small partitions, a task visits a
    group of them. The first rows are checked here, and determine the shape and the dtype."""
    listed = isinstance(X, (list, tuple))
    wait_for_workers(client)
    persisted = [check_columns(x).persist() for x in (X if listed else [X])]
    futures_of = dask_module("distributed").futures_of
    # the keys are (name, number) or (name, number, 0)
    views = [sorted(futures_of(x), key=lambda future: future.key[1]) for x in persisted]
    lengths = _lengths(client, views)
    *begins, n = accumulate(lengths, initial=0)
    if not n:
        raise ValueError("X gave no rows, must give at least one.")
    weight = check_sample_weight(computed(sample_weight), n)
    futures = []
    for begin, m, *parts in zip(begins, lengths, *views):
        sent = weight[:1] if are_ones(weight) else weight[begin : begin + m]
        xs = [*parts] if listed else parts[0]
        futures.append(client.submit(Block, xs, sent, begin, pure=False))
    first = next(i for i, m in enumerate(lengths) if m)
    head = result_of(client, client.submit(_head, futures[first], pure=False))
    tuning, threads = TUNING.workers, sum(client.nthreads().values())
    are_few = len(lengths) < tuning.group * tuning.tasks_a_thread * threads
    # the mean count of numbers in a partition
    numbers = n * sum(np.shape(x)[1] for x in (head if listed else [head])) / len(lengths)
    are_alone = are_few or numbers > tuning.small_numbers  # each partition is a task of its own
    groups = gen_batches(len(lengths), 1 if are_alone else tuning.group)
    futures = [client.submit(list, futures[group], pure=False) for group in groups]
    tables, shape = check_views(head, schema)
    return Partitions(
        [], listed, schema.of_new_rows(shape), weight, dtype=tables[0].dtype, client=client,
        futures=futures, n_jobs=n_jobs, head=tables,
    )  # fmt: skip


def _lengths(client: Any, views: list[list[Any]]) -> list[int]:
    """Return the number of rows of each partition; raise a ValueError if views differ."""
    by_view: list[list[int]] = [
        result_of(client, client.submit(_itself, client.map(len, parts, pure=False), pure=False))
        for parts in views
    ]
    for i, lengths in enumerate(by_view):
        if lengths != by_view[0]:
            here, first = (
                ", ".join(map(str, sizes[:5])) + (", ..." if len(sizes) > 5 else "")
                for sizes in (lengths, by_view[0])
            )
            raise ValueError(
                f"X[{i}] has partitions of {here} rows, X[0] of {first}: all views must have the "
                "same partitions; rechunk makes them so."
            )
    return by_view[0]

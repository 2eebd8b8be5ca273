"""The kinds of X, and collections of Dask: arrays and frames with partitions to be computed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any, Literal, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rffpk.rows.arrays import Array
from rffpk.system.report import optional_module

Method = TypeVar("Method", bound=Callable[..., Any])


Kind = Literal["memory", "source", "dask"]


def kind_of(X: Any) -> Kind:
    """Return how X is read: from "memory", from a "source", or by "dask".

    A list is a source, or read by Dask, if all its entries are, else in memory. Raise a TypeError
    if X is an iterator, or has one as an entry, because it can be read only once."""
    if isinstance(X, np.ndarray):
        return "memory"
    if is_dask(X):
        return "dask"
    parts = X if isinstance(X, (list, tuple)) and len(X) else [X]
    for part in parts:
        if isinstance(part, Iterator):
            raise TypeError(
                f"X: is of type {type(part).__name__}, which can be read only once, but a fit "
                "reads it several times: pass a function that returns a new iterator, such as "
                "lambda: blocks()."
            )
    sources = all(callable(part) and not hasattr(part, "__array__") for part in parts)
    return "source" if sources else "memory"


def is_dask(X: Any) -> bool:
    """Return whether X is a collection of Dask, or a list of collections."""
    parts = X if isinstance(X, (list, tuple)) and len(X) else [X]
    return all(hasattr(part, "__dask_graph__") and hasattr(part, "to_delayed") for part in parts)


def dask_module(name: str) -> Any:
    """Return a module of Dask, or raise an ImportError that names the missing packages."""
    return optional_module(
        name, "collections of Dask need dask (pip install 'dask[array]' distributed)"
    )


def check_columns(X: Any) -> Any:
    """Return X; refuse an array whose rows are not in one chunk each."""
    if hasattr(X, "numblocks") and (X.ndim != 2 or X.numblocks[1] != 1):
        raise ValueError(
            f"X is a Dask array of {X.ndim} dimensions in {X.numblocks} chunks, must have two "
            "dimensions and all columns in one chunk: X.rechunk({1: -1})."
        )
    return X


def active_client() -> Any:
    """Return the client of the cluster that Dask would use; None: Dask computes in this process."""
    get = dask_module("dask.base").get_scheduler()
    owner = getattr(get, "__self__", None)  # the scheduler of a cluster is a method of its client
    return owner if hasattr(owner, "who_has") else None


def source_of(X: Any) -> Any:
    """Return a source that computes a Dask collection partition by partition.

    For a list of collections return a list of sources."""
    if isinstance(X, (list, tuple)):
        return [*map(source_of, X)]
    parts = _delayed(X)

    def blocks() -> Iterator[Any]:
        return (part.compute() for part in parts)

    blocks.fresh = True  # type: ignore[attr-defined]  # new arrays, which need no copy
    return blocks


def _delayed(X: Any) -> list[Any]:
    return list(np.ravel(np.asarray(check_columns(X).to_delayed(), dtype=object)))


def by_partitions(method: Method) -> Method:
    """Wrap a method of a fitted model, so that it processes Dask collections lazily.

    The method returns an array with one line for each row. For a collection it returns a Dask array
    that is not computed yet."""

    @functools.wraps(method)
    def for_rows(self: Any, X: Any, **options: Any) -> Any:
        if not is_dask(X):
            return method(self, X, **options)
        return _lazy(self, method.__name__, X, options)

    return cast(Method, for_rows)


def _lazy(model: Any, name: str, X: Any, options: dict[str, Any]) -> Any:
    """Return a Dask array of the results of a method, without computing it.

    The method is called on one row of zeros to find the dtype and the width of the results."""
    array, delayed = dask_module("dask.array"), dask_module("dask").delayed
    check_is_fitted(model)
    listed = isinstance(X, (list, tuple))
    views = list(X) if listed else [X]
    dummy = [_one_row(x) for x in views]
    meta = getattr(model, name)(dummy if listed else dummy[0], **options)[:0]
    alone = copy(model)
    if alone.n_jobs is None:
        alone.n_jobs = 1  # Dask computes as many partitions at once as it has threads
    apply = delayed(partial(_applied, alone, name, options, meta))
    parts = [_delayed(x) for x in views]
    # frames do not know how many rows their partitions have
    lengths = [x.chunks[0] if hasattr(x, "chunks") else (math.nan,) * x.npartitions for x in views]
    if len({len(chunks) for chunks in lengths}) > 1:
        raise ValueError(f"views have {[*map(len, lengths)]} partitions, must have equally many.")
    results = [
        array.from_delayed(
            apply([*blocks] if listed else blocks[0]), (m, *meta.shape[1:]), meta=meta
        )
        for m, *blocks in zip(lengths[0], *parts)
    ]
    return array.concatenate(results, allow_unknown_chunksizes=True)


def _one_row(X: Any) -> Any:
    """Return a row of zeros, of the type of the partitions."""
    if hasattr(X, "chunks"):
        return np.zeros((1, X.shape[1]), dtype=X.dtype)
    pandas = dask_module("pandas")
    return pandas.DataFrame(np.zeros((1, len(X.columns))), columns=X.columns).astype(X.dtypes)


def _applied(model: Any, name: str, options: dict[str, Any], meta: Array, block: Any) -> Array:
    """Call a method of a model on one partition. Return the empty `meta` if it has no rows."""
    empty = not len(block[0] if isinstance(block, list) else block)
    return meta if empty else getattr(model, name)(block, **options)

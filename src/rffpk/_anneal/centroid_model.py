"""What a fitted model whose centroids are points in a feature space says of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rffpk._anneal.objective import PowerMean
from rffpk._rows.missing import present_bits
from rffpk._rows.passes import accurate_cost, make_rows, one_pass
from rffpk._rows.rows import Rows
from rffpk._rows.sample import automatic_sample_size, is_source
from rffpk._rows.store import mapped_views
from rffpk._rows.streams import make_stream
from rffpk._rows.sums import Sums, typicality
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array
from rffpk._utils.dask_collections import sources_of
from rffpk._utils.validation import is_dask, is_option


def first_rows(model: Any) -> int:
    """The number of rows that the first fit of a stream of batches takes."""
    k, sample = int(model.n_clusters), getattr(model, "sample", None)
    if sample is None or is_option(sample, "auto"):
        return automatic_sample_size(k)
    return max(int(sample), k)


def check_fitted(model: Any) -> None:
    """Raise a NotFittedError before a fit."""
    if vars(model).get("n_buffered_"):
        check_is_fitted(model, msg=model._of_buffer("This"))
    check_is_fitted(model)


Visit = tuple[Rows, Array, Sums, dict[str, Array]]  # rows, centroids, and what a pass gives


def visit(
    model: Any,
    xs: list[Array],
    weight: Array | None,
    s: float,
    want: tuple[str, ...],
    typical: bool = False,
) -> Visit:
    """A pass at the fitted centroids over views and weights that have been checked, without
    typicality unless `typical`."""
    shifts = [shift.astype(xs[0].dtype) for shift in model._shifts]
    columns, maps = zip(*mapped_views(model._feature_maps, xs))
    may_lack = getattr(model, "allow_missing_views", False)
    present = present_bits([*columns]) if may_lack else None
    n_threads = config.n_threads(model.n_jobs)
    rows = make_rows([*columns], [*maps], weight, n_threads, shifts, present)
    objective = model._objective
    rows = objective.restore(rows, model._alpha)
    rows = replace(rows, eta=rows.eta if typical else None, coverage=objective.coverage)
    rows = rows.with_present_views()
    if rows.present is not None:
        rows = rows.renormalised()
    theta = model.cluster_centers_.astype(np.float64) - rows.shift
    sums, outputs = one_pass(rows, theta, s, want=want)
    validation.check_overflow(sums.hard, rows.dtype)
    if "distances" in want:
        validation.check_overflow(float(outputs["distances"].max()), rows.dtype)
    return rows, theta, sums, outputs


def visits(
    model: Any,
    X: Any,
    s: float,
    want: tuple[str, ...],
    sample_weight: Any = None,
    typical: bool = False,
) -> Iterator[Visit]:
    """Passes over new rows: one over rows in memory, one for each block of a source."""
    check_fitted(model)
    X = sources_of(X) if is_dask(X) else X
    if not is_source(X):
        xs = model._check_views(X, reset=False)
        weight = validation.check_sample_weight(sample_weight, len(xs[0]), X)
        yield visit(model, xs, weight, s, want, typical)
        return
    none = True
    stream = make_stream(X, sample_weight, lambda x, first: model._check_views(x, reset=False))
    for part in stream.blocks():
        none = False
        yield visit(model, part.xs, part.weight, s, want, typical)
    if none:
        raise ValueError("X gave no rows, must give at least one.")


def joined(parts: Iterator[Array]) -> Array:
    """The results of all blocks."""
    found = [*parts]
    return found[0] if len(found) == 1 else np.concatenate(found)


def measure(
    model: Any, X: Any, want: str, s: float | None = None, sample_weight: Any = None
) -> Any:
    """What `want` names of rows; see `Clusterer._measure`."""
    if want == "cost":
        found = visits(model, X, -math.inf, (), sample_weight)
        return sum(accurate_cost(rows, sums.hard, sums, at, at) for rows, at, sums, _ in found)
    if want == "memberships":
        check_fitted(model)
        at = model.s_ if s is None else s
        found = visits(model, X, at, ("memberships",), typical=True)
        return joined(outputs["memberships"] for *_, outputs in found)
    if want == "labels":
        check_fitted(model)
        threshold = getattr(model, "noise_threshold", None)
        label = partial(without_noise, model._objective, threshold)
        wanted = ("labels",) if threshold is None else ("labels", "nearest")
        found = visits(model, X, -math.inf, wanted)
        return joined(label(rows, *(out[name] for name in wanted)) for rows, *_, out in found)
    found = visits(model, X, -math.inf, ("distances",))
    distances = joined(_distances(rows, outputs["distances"]) for rows, *_, outputs in found)
    return distances.argmin(axis=0) if want == "medoids" else distances


def _distances(rows: Rows, squares: Array) -> Array:
    """Euclidean distances, over the views that rows have."""
    if rows.present is not None:
        squares /= rows.combined(np.ones(len(rows.xs))).astype(squares.dtype)
    return np.sqrt(squares, out=squares)


def typicalities(rows: Rows, objective: PowerMean, distances: Array) -> Array:
    """Typicalities of rows with these squared distances (n, k) to centroids."""
    assert objective.eta is not None
    eta = rows.combined(objective.eta).astype(distances.dtype)
    return typicality(distances, eta, objective.m)


def without_noise(
    objective: PowerMean, threshold: float | None, rows: Rows, labels: Array,
    nearest: Array | None = None,
) -> Array:  # fmt: skip
    """The labels of rows to publish, -1 where their typicality is below a threshold; `nearest` are
    the squared distances to the centroids."""
    if threshold is None or objective.eta is None or nearest is None:
        return labels
    noise = typicalities(rows, objective, nearest[:, None])[:, 0] < threshold
    return np.where(noise, np.int32(-1), labels)

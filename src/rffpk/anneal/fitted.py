"""A fitted model whose centroids are points in a feature space: what it says of rows, and how it
learns from batches of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rffpk.anneal.hard_pass import find_directions
from rffpk.anneal.records import PowerMean
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Identity, Map
from rffpk.rows.door import Schema
from rffpk.rows.passes import accurate_cost, make_rows, one_pass, pass_of_block
from rffpk.rows.rows import Rows, present_bits
from rffpk.rows.sample import parts_of
from rffpk.rows.store import Storage, UnitRows, mapped_views
from rffpk.rows.sums import Sums, onto_sphere
from rffpk.rows.table import (
    Columns,
    column_means,
    concatenated,
    occupied_columns,
    skip_zeros,
    some_columns,
    squared_distances,
    unit_rows,
)
from rffpk.system import config
from rffpk.system.linalg import gaps_of
from rffpk.system.tuning import TUNING


@dataclass(frozen=True)
class RunningSums:
    """Discounted sums over all rows of a stream (docs/math.md, section 18)."""

    N: Array  # (k, F), of features less their shift
    G: Array  # (k,)
    s: float  # the exponent of all passes


@dataclass(frozen=True)
class Centroids:
    """What a fit leaves of centroids in a feature space, besides its public attributes."""

    maps: list[Any]  # fitted, of the views
    shifts: list[Array]
    alpha: Array  # (L,), view weights
    objective: PowerMean
    masses: Array  # (k,), or (k, L), of the clusters
    weights: Array  # (k,), by which centroids follow from their sums
    counted: int  # number of rows with positive weight
    s: float  # exponent of the passes over batches
    outliers: Any  # what noise is; None: no row is noise
    running: RunningSums | None = None  # of batches since the fit


@dataclass(frozen=True)
class Pass:
    """A pass over rows at the fitted centroids."""

    rows: Rows
    theta: Array  # (k, F), centroids less the shift
    sums: Sums
    outputs: dict[str, Array]  # of the rows

    def distances(self) -> Array:
        """Return Euclidean distances, over the views that rows have."""
        rows, squares = self.rows, self.outputs["distances"]
        if rows.present is not None:
            squares /= rows.combined(np.ones(len(rows.xs))).astype(squares.dtype)
        return np.sqrt(squares, out=squares)


@dataclass(frozen=True)
class CentroidModel:
    """Centroids in a feature space, with the maps that lead there."""

    fitted: Centroids
    schema: Schema  # of new rows
    views: tuple[int, ...]  # the numbers of the tables of the views
    centers: Array  # (k, F)
    exponent: float  # of memberships
    storage: Storage
    n_threads: int

    @config.one_blas_thread()  # rows that are fitted have the features of the fit, to the bit
    def one_pass(
        self, xs: list[Array], weight: Array, s: float, want: tuple[str, ...] = (),
        typical: bool = False, whole: bool = False,
    ) -> Pass:  # fmt: skip
        """Make a pass over checked tables and weights, with typicality if `typical`.

        Where nothing is wanted of the rows, the sums are of the rows that are no noise. Empty
        columns of sparse rows are left out unless `whole`."""
        fitted = self.fitted
        views = mapped_views(fitted.maps, self.views, xs)
        columns, maps = map(list, zip(*self.storage.landmark_views(views, self.n_threads)))
        shifts, centers = fitted.shifts, self.centers
        if not whole:
            columns, maps, shifts, centers = _without_empty(columns, maps, shifts, centers)
        shifts, noise = [shift.astype(xs[0].dtype) for shift in shifts], None
        if fitted.outliers is not None:
            noise = fitted.outliers.are_noise(xs)
            weight = weight if want else np.where(noise, 0.0, weight)
        objective, present = fitted.objective, None
        if self.schema.may_lack:
            present = present_bits(columns)
        rows = make_rows(columns, maps, weight, self.n_threads, shifts)
        rows = replace(
            rows, alpha=fitted.alpha, eta=objective.eta if typical else None, m=objective.m,
            coverage=objective.coverage, present=present,
        ).with_present_views()  # fmt: skip
        if rows.present is not None:
            rows = rows.renormalised()
        theta = centers.astype(np.float64) - rows.shift
        if want == ("labels",) and math.isinf(s):
            bounds = find_directions(rows, theta)
            sums, outputs = pass_of_block(rows, theta, s, want=want, directions=bounds)
        else:
            sums, outputs = one_pass(rows, theta, s, want=want)
        checks.check_overflow(sums.hard, rows.dtype)
        if "distances" in want:
            checks.check_overflow(float(outputs["distances"].max()), rows.dtype)
        if noise is not None and "labels" in outputs:
            outputs["labels"] = np.where(noise, np.int32(-1), outputs["labels"])
        if noise is not None and "memberships" in outputs:
            outputs["memberships"][noise] = 0
        return Pass(rows, theta, sums, outputs)

    def passes(
        self, X: Any, s: float, want: tuple[str, ...], weight: Any = None, typical: bool = False
    ) -> Iterator[Pass]:
        """Make passes over new rows: one over rows in memory, one for each block of a source."""
        for part in parts_of(X, weight, self.schema):
            yield self.one_pass(part.tables, part.weight, s, want, typical)

    def labels(self, X: Any) -> Array:
        """Return the nearest centroid of each row, or -1 for noise."""
        return joined(part.outputs["labels"] for part in self.passes(X, -math.inf, ("labels",)))

    def memberships(self, X: Any, s: float | None) -> Array:
        """Return memberships (n, k) at an exponent; None: the exponent of the fit."""
        s, want = self.exponent if s is None else s, ("memberships",)
        return joined(part.outputs["memberships"] for part in self.passes(X, s, want, typical=True))

    def distances(self, X: Any) -> Array:
        """Return Euclidean distances (n, k) from the centroids."""
        return joined(part.distances() for part in self.passes(X, -math.inf, ("distances",)))

    def nearest_rows(self, X: Any) -> Array:
        """Return the row that is nearest to each centroid, (k,), but noise."""
        parts = self.passes(X, -math.inf, ("distances", "labels"))
        distances = joined(
            np.where(part.outputs["labels"][:, None] < 0, np.inf, part.distances())
            for part in parts
        )
        return np.asarray(distances.argmin(axis=0))

    def cost(self, X: Any, weight: Any) -> float:
        """Return the weighted sum of squared distances from the nearest centroids."""
        parts = self.passes(X, -math.inf, (), weight)
        return float(sum(accurate_cost(part.rows, part.sums, part.theta) for part in parts))

    def gaps(self) -> tuple[Array, Array]:
        """Return squared distances (k, k) between centroids, and the masses (k,) of clusters."""
        shifts, alpha, running = self.fitted.shifts, self.fitted.alpha, self.fitted.running
        masses = self.fitted.masses if running is None else running.G
        theta = self.centers - np.concatenate(shifts).astype(np.float64)
        theta *= np.sqrt(np.repeat(alpha, [len(part) for part in shifts]))
        if masses.ndim == 2:  # in each view, of rows that lack views
            masses = masses @ (alpha / alpha.sum())
        with config.one_blas_thread():
            return gaps_of(theta @ theta.T), masses

    def central_rows(self, X: Any, labels: Array, is_cosine: bool) -> list[int | None]:
        """Return a row in the middle of each cluster, by its columns; None without rows.

        In a large cluster only rows spread evenly over X are looked at."""
        members = [np.flatnonzero(labels == j) for j in range(len(self.centers))]
        most = TUNING.sampling.central_rows
        spread = [index[:: max(1, -(-len(index) // most))] for index in members]
        chosen = np.sort(np.concatenate(spread))
        new = parts_of(X, None, self.schema)
        parts = ((part.tables[0], chosen - part.begin) for part in new)
        rows = concatenated([x[at[(at >= 0) & (at < len(x))]] for x, at in parts])
        rows = unit_rows(rows) if is_cosine else rows
        places = [np.searchsorted(chosen, index) for index in spread]
        return [
            int(index[_middle(rows[at])]) if len(at) else None for index, at in zip(spread, places)
        ]

    def updated(
        self, running: RunningSums, x: Columns, weight: Array, discount: float
    ) -> tuple[Array, RunningSums, Array]:
        """Move the centroids by one pass over a batch of discounted weights.

        Return the centroids, the running sums, and the labels before the move."""
        shift = np.concatenate(self.fitted.shifts).astype(np.float64)
        visit = self.one_pass([x], weight, running.s, ("labels",), whole=True)
        rows, sums = visit.rows, visit.sums
        # the shift of the rows is rounded to their dtype
        N = sums.N + sums.G[:, None] * (rows.shift - shift)
        running = RunningSums(discount * running.N + N, discount * running.G + sums.G, running.s)
        theta = self.centers.astype(np.float64) - shift
        moved = rows.centroids(replace(sums, N=running.N, G=running.G), theta)
        if isinstance(self.fitted.maps[0], UnitRows):
            moved = onto_sphere(moved, theta, shift, 0.0)
        return (moved + shift).astype(self.centers.dtype), running, visit.outputs["labels"]


def joined(parts: Iterator[Array]) -> Array:
    """Return the results of all blocks."""
    results = [*parts]
    return results[0] if len(results) == 1 else np.concatenate(results)


def _without_empty(
    xs: list[Columns], maps: list[Map], shifts: list[Array], centers: Array
) -> tuple[list[Columns], list[Map], list[Array], Array]:
    """Return columns, maps, shifts and centroids without empty columns of sparse views.

    In an empty column neither rows nor centroids have a number. Only sparse views have such."""
    if not skip_zeros(*xs):
        return xs, maps, shifts, centers
    occupied, edges = [], np.cumsum([len(shift) for shift in shifts])[:-1]
    for x, mapped, shift, part in zip(xs, maps, shifts, np.split(centers, edges, axis=1)):
        own = isinstance(mapped, Identity)
        index = occupied_columns(x, (shift != 0) | part.any(axis=0)) if own else None
        if index is not None:
            x, shift, part = some_columns(x, index), shift[index], part[:, index]
            mapped = Identity(len(index))
        occupied.append((x, mapped, shift, part))
    columns, left, shifts, parts = map(list, zip(*occupied))
    return columns, left, shifts, parts[0] if len(parts) == 1 else np.hstack(parts)


def _middle(x: Columns) -> int:
    """Return a row inside of the rows, even if they are not a ball.

    It is the row nearest to the mean of all rows, then of the half nearest to this row, and so
    on."""
    index, least = np.arange(len(x)), math.isqrt(len(x))
    while True:
        nearest = index[squared_distances(x[index], column_means(x[index])).argmin()]
        if len(index) <= least:
            return int(nearest)
        squares = squared_distances(x[index], column_means(x[[nearest]]))
        index = index[np.argsort(squares, kind="stable")[: (len(index) + 1) // 2]]

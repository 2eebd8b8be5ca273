"""Fitted models, which label new rows and measure distances. Centroids are points in a feature
space, which batches of rows may move, or weights of the fitted rows for exact kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rffpk.anneal.hard_pass import find_directions
from rffpk.anneal.records import PowerMean
from rffpk.rows import checks, table
from rffpk.rows.arrays import Array, Identity, Map
from rffpk.rows.door import Schema, check_views
from rffpk.rows.passes import accurate_cost, make_rows, one_pass, pass_of_block
from rffpk.rows.rows import Rows, present_bits
from rffpk.rows.sample import parts_of
from rffpk.rows.store import Storage, mapped_views
from rffpk.rows.sums import Sums, hard_weights, onto_sphere, power_weights
from rffpk.rows.table import Columns, UnitRows
from rffpk.system import config
from rffpk.system.linalg import by_blocks, gaps_of
from rffpk.system.tuning import TUNING


@dataclass(frozen=True)
class RunningSums:
    """Discounted sums over all rows of a stream (docs/math.md, section 18)."""

    N: Array  # (k, F), sums of shifted features
    G: Array  # (k,), sums of weights
    s: float  # the exponent of all passes


@dataclass(frozen=True)
class Centroids:
    """The centroids of a fit in a feature space, with the data that public attributes lack."""

    maps: list[Any]  # the fitted map of each view
    shifts: list[Array]  # the mean features of each view
    alpha: Array  # (L,), view weights
    objective: PowerMean
    masses: Array  # (k,), weights of the clusters; (k, L), for each view, if rows lack views
    weights: Array  # (k,), divisors that turn sums of features into centroids
    counted: int  # number of rows with positive weight
    s: float  # exponent of the passes over batches
    outliers: Any  # decides which rows are noise; None: no row is
    running: RunningSums | None = None  # sums over the batches since the fit


@dataclass(frozen=True)
class Pass:
    """A pass over rows at the fitted centroids."""

    rows: Rows
    theta: Array  # (k, F), centroids less the shift
    sums: Sums
    outputs: dict[str, Array]  # results for the rows, by name

    def distances(self) -> Array:
        """Return Euclidean distances (n, k) of the rows from the centroids.

        If views are missing, squared distances are weighted means over the views of each row. The
        squared distances in `outputs` are overwritten."""
        rows, squares = self.rows, self.outputs["distances"]
        if rows.present is not None:
            squares /= rows.combined(np.ones(len(rows.xs))).astype(squares.dtype)
        return np.sqrt(squares, out=squares)


@dataclass(frozen=True)
class CentroidModel:
    """Centroids in a feature space, with the maps of rows to this space."""

    fitted: Centroids
    schema: Schema  # of new rows
    views: tuple[int, ...]  # the index of the table of each view
    centers: Array  # (k, F)
    exponent: float  # of memberships
    storage: Storage
    n_threads: int

    @config.one_blas_thread()  # so that fitted rows have the features of the fit, to the bit
    def one_pass(
        self, xs: list[Array], weight: Array, s: float, want: tuple[str, ...] = (),
        typical: bool = False, whole: bool = False,
    ) -> Pass:  # fmt: skip
        """Make a pass over checked tables and weights at the exponent s.

        `want` names outputs of each row, as in `passes.one_pass`. If it is empty, noise points get
        weight zero, so that the sums leave them out. Otherwise they get the label -1 and zero
        memberships. `typical`: use the typicality of the objective. `whole`: keep empty columns of
        sparse rows, so that the sums have all features."""
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
        if want == ("labels",) and math.isinf(s):  # labels alone do not need all distances
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
        """Return the index of the nearest centroid of each row, (n,); -1 for noise points."""
        return joined(part.outputs["labels"] for part in self.passes(X, -math.inf, ("labels",)))

    def memberships(self, X: Any, s: float | None) -> Array:
        """Return memberships (n, k) at an exponent; None: the exponent of the fit."""
        s, want = self.exponent if s is None else s, ("memberships",)
        return joined(part.outputs["memberships"] for part in self.passes(X, s, want, typical=True))

    def distances(self, X: Any) -> Array:
        """Return Euclidean distances (n, k) from the centroids."""
        return joined(part.distances() for part in self.passes(X, -math.inf, ("distances",)))

    def nearest_rows(self, X: Any) -> Array:
        """Return the index of the row nearest to each centroid, (k,); noise points do not count."""
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
        if masses.ndim == 2:  # masses of each view, because rows lack views
            masses = masses @ (alpha / alpha.sum())
        with config.one_blas_thread():
            return gaps_of(theta @ theta.T), masses

    def central_rows(self, X: Any, labels: Array, is_cosine: bool) -> list[int | None]:
        """Return the index of a row in the middle of each cluster; None for an empty cluster.

        Distances are measured in the columns of X, not in the features. `labels` (n,) are the
        clusters. In a large cluster only evenly spaced rows are compared. `is_cosine`: scale rows
        to length one."""
        members = [np.flatnonzero(labels == j) for j in range(len(self.centers))]
        most = TUNING.sampling.central_rows
        spread = [index[:: max(1, -(-len(index) // most))] for index in members]
        chosen = np.sort(np.concatenate(spread))  # indices of all compared rows, read in one pass
        new = parts_of(X, None, self.schema)
        parts = ((part.tables[0], chosen - part.begin) for part in new)
        rows = table.concatenated([x[at[(at >= 0) & (at < len(x))]] for x, at in parts])
        rows = table.unit_rows(rows) if is_cosine else rows
        places = [np.searchsorted(chosen, index) for index in spread]  # indices in `rows`
        return [
            int(index[_middle(rows[at])]) if len(at) else None for index, at in zip(spread, places)
        ]

    def updated(
        self, running: RunningSums, x: Columns, weight: Array, discount: float
    ) -> tuple[Array, RunningSums, Array]:
        """Move the centroids by one pass over a batch of rows x (n, d).

        The running sums are multiplied by `discount` before the sums of the batch are added. Return
        the centroids (k, F), the running sums, and the labels (n,) before the move."""
        shift = np.concatenate(self.fitted.shifts).astype(np.float64)
        visit = self.one_pass([x], weight, running.s, ("labels",), whole=True)
        rows, sums = visit.rows, visit.sums
        # the shift of the rows is rounded to their dtype
        N = sums.N + sums.G[:, None] * (rows.shift - shift)
        running = RunningSums(discount * running.N + N, discount * running.G + sums.G, running.s)
        theta = self.centers.astype(np.float64) - shift
        moved = rows.centroids(replace(sums, N=running.N, G=running.G), theta)
        # centroids of rows of length one have length one
        if isinstance(self.fitted.maps[0], UnitRows):
            moved = onto_sphere(moved, theta, shift, 0.0)
        return (moved + shift).astype(self.centers.dtype), running, visit.outputs["labels"]


def joined(parts: Iterator[Array]) -> Array:
    """Concatenate the results of all blocks."""
    results = [*parts]
    return results[0] if len(results) == 1 else np.concatenate(results)


def _without_empty(
    xs: list[Columns], maps: list[Map], shifts: list[Array], centers: Array
) -> tuple[list[Columns], list[Map], list[Array], Array]:
    """Drop the columns of sparse views that are zero in all rows and in all centroids.

    Return columns, maps, shifts and centroids without these columns. Dense views, and views whose
    features are not their columns, stay as they are."""
    if not table.skip_zeros(*xs):
        return xs, maps, shifts, centers
    kept, edges = [], np.cumsum([len(shift) for shift in shifts])[:-1]
    for x, mapped, shift, part in zip(xs, maps, shifts, np.split(centers, edges, axis=1)):
        is_plain = isinstance(mapped, Identity)
        index = table.occupied_columns(x, (shift != 0) | part.any(axis=0)) if is_plain else None
        if index is not None:
            x, shift, part = table.some_columns(x, index), shift[index], part[:, index]
            mapped = Identity(len(index))
        kept.append((x, mapped, shift, part))
    xs, maps, shifts, parts = map(list, zip(*kept))
    return xs, maps, shifts, parts[0] if len(parts) == 1 else np.hstack(parts)


def _middle(x: Columns) -> int:
    """Return the index of a row in a dense middle of the rows, whatever the shape of their cloud.

    Find the row nearest to the mean, keep the half of the rows nearest to that row, and repeat.
    Stop when about the square root of the number of rows is left."""
    index, least = np.arange(len(x)), math.isqrt(len(x))
    while True:
        nearest = index[table.squared_distances(x[index], table.column_means(x[index])).argmin()]
        if len(index) <= least:
            return int(nearest)
        squares = table.squared_distances(x[index], table.column_means(x[[nearest]]))
        index = index[np.argsort(squares, kind="stable")[: (len(index) + 1) // 2]]


# ---- models of exact kernels ---------------------------------------------------------------------


# Squared distances are differences of terms, and have rounding errors of this part of the terms.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class KernelCentroids:
    """The centroids of a fit of exact kernels, with the data that public attributes lack."""

    kernels: list[Any]  # fitted
    squares: Array  # (L, k), squared norms of the centroids
    alpha: Array  # (L,), weights of the kernels
    between: Array  # (k, k), squared distances between centroids
    masses: Array  # (k,), of the clusters


@dataclass(frozen=True)
class KernelModel:
    """Centroids as weights of the fitted rows, with the kernels that lead to new rows."""

    fitted: KernelCentroids
    schema: Schema  # of new rows
    several: bool  # whether X has one view for each kernel
    coef: Array  # (k, n), weights of the rows
    exponent: float  # of memberships
    n_threads: int

    def labels(self, X: Any) -> Array:
        """Return the index of the nearest centroid of each row, (n,); the first of equals."""
        # without k(x, x), as it does not change the order of distances
        gaps, _ = self._squares(X)
        return gaps.argmin(axis=1).astype(np.int32)

    def memberships(self, X: Any, s: float | None) -> Array:
        """Return memberships (n, k) at an exponent; None: the exponent of the fit."""
        squares, dtype = self._squares(X, "predict_proba")
        return memberships_at(squares, self.exponent if s is None else s, dtype)

    def distances(self, X: Any) -> Array:
        """Return distances (n, k) from the centroids."""
        squares, dtype = self._squares(X, "transform")
        return np.sqrt(squares).astype(dtype, copy=False)

    def nearest_rows(self, X: Any) -> Array:
        """Return the index of the row nearest to each centroid, (k,)."""
        return np.asarray(self._squares(X, "medoids")[0].argmin(axis=0))

    def cost(self, X: Any, weight: Any) -> float:
        """Return the weighted sum of squared distances from the nearest centroids."""
        least = self._squares(X, "score")[0].min(axis=1)
        weight = checks.check_sample_weight(weight, len(least), X)
        return float((weight * least).sum())

    def gaps(self) -> tuple[Array, Array]:
        """Return squared distances (k, k) between centroids, and the masses (k,) of clusters."""
        return self.fitted.between, self.fitted.masses

    @config.one_blas_thread()
    def _squares(self, X: Any, caller: str = "") -> tuple[Array, Any]:
        """Return squared distances (n, k) from the centroids, and the dtype of the rows.

        Without a `caller`, the distances lack the summand k(x, x), which does not change labels.
        With a `caller`, an error that names it is raised if k(x, x) is not known."""
        xs, _ = check_views(X, self.schema)
        if caller and any(kernel.precomputed for kernel in self.fitted.kernels):
            raise ValueError(
                f"{caller} needs k(x, x), which precomputed kernels of new rows do not "
                "contain. For the fitted rows, the score is -inertia_, and "
                "store_memberships=True keeps the memberships."
            )
        weights, kernels = unit_weights(self.coef), self.fitted.kernels

        def of_block(xs: list[Array]) -> Array:
            """Return the squared distances of a block of rows."""
            views = xs if self.several else xs * len(kernels)
            blocks, diagonals = zip(*(kernel.cross(x) for kernel, x in zip(kernels, views)))
            products = [block @ weights.T for block in blocks]
            gaps = gaps_to_centroids(products, self.fitted.squares, self.fitted.alpha)
            if not caller:
                return gaps
            return np.maximum(gaps + (self.fitted.alpha @ np.stack(diagonals))[:, None], 0)

        return by_blocks(of_block, xs, kernels[0].n, self.n_threads), xs[0].dtype


def unit_weights(coef: Array) -> Array:
    """Scale the weights (k, n) of the rows so that each centroid's weights sum to one.

    The result is in double precision. Rounding of the sum would move centroids that are far from
    the origin of the kernel."""
    coef = coef.astype(np.float64)
    sums = coef.sum(axis=1, keepdims=True)
    return np.asarray(coef / np.where(sums != 0, sums, 1))


def gaps_to_centroids(products: Iterable[Array], squares: Array, alpha: Array) -> Array:
    """Return squared distances (n, k), less the squared norms of the rows.

    `products` has, for each kernel, the inner products (n, k) of rows and centroids. `squares`
    (L, k) are the squared norms of the centroids, and `alpha` (L,) the weights of the kernels. A
    distance that exceeds the least of its row only by rounding errors is set to the least. So
    labels do not depend on the order of sums."""
    # the sizes are sums of absolute terms, and bound the rounding errors of the gaps
    gaps, sizes = alpha @ squares, alpha @ np.abs(squares)
    for weight, product in zip(alpha, products):
        gaps = gaps - 2 * weight * product
        sizes = sizes + 2 * weight * np.abs(product)
    at = gaps.argmin(axis=1)[:, None]
    least = np.take_along_axis(gaps, at, 1)
    error = _ROUNDING * (sizes + np.take_along_axis(sizes, at, 1))
    return np.where(gaps - least <= error, least, gaps)


def memberships_at(squares: Array, s: float, dtype: Any) -> Array:
    """Return memberships (n, k) from squared distances (n, k), at the exponent s."""
    shares = hard_weights(squares) if math.isinf(s) else power_weights(squares, s)
    # the third result has the memberships
    return shares[2].astype(dtype, copy=False)

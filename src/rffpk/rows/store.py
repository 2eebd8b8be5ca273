"""Fused or stored features: when it pays to compute the features of all rows once and keep them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from rffpk.rows import checks
from rffpk.rows.arrays import Array, Fourier, Identity, Landmarks, Structure, View
from rffpk.rows.checks import Auto
from rffpk.rows.passes import make_rows, mean_features, unshifted
from rffpk.rows.rows import Rows
from rffpk.rows.sample import Opened
from rffpk.rows.table import Columns, divided, entries_a_row, product_cost
from rffpk.rows.weights import with_unit
from rffpk.system import config
from rffpk.system.linalg import run_all
from rffpk.system.tuning import TUNING

Cache = Auto | bool | int


def pass_costs(rows: Rows, k: int) -> tuple[float, float]:
    """Estimate the costs per row of two passes: with computed features, and with stored features.

    With sparse columns the second cost is infinite: they are never stored as dense features."""
    fused, tuning = 0.0, TUNING.storage
    for x, mapped in zip(rows.xs, rows.maps):
        fused += tuning.read_cost * entries_a_row(x)
        if isinstance(mapped, Landmarks):
            fused += 2.0 * mapped.points.size + tuning.search_cost * len(mapped.points)
        if isinstance(mapped, Fourier):
            sincos = tuning.sincos_cost * mapped.n_frequencies
            fused += sincos + projection_cost(x, mapped.frequencies)
    width = len(rows.shift)
    if rows.sparse_columns:
        return fused + 2 * product_cost(rows.xs[0], k) + tuning.weight_cost * k, math.inf
    # a multiplication and an addition of each feature for the distance, and for the sums
    common = 4.0 * width * k + tuning.weight_cost * k
    return fused + common, tuning.read_cost * width + common


def projection_cost(x: Columns, frequencies: Array | Structure) -> float:
    """Estimate the cost of the product of a row with the frequencies."""
    if not isinstance(frequencies, Structure):
        return product_cost(x, frequencies.shape[1])
    blocks, _, p = frequencies.signs.shape
    return TUNING.storage.stage_cost * 3 * blocks * p * math.log2(p)


@dataclass(frozen=True, eq=False)
class _Written(Fourier):
    """Structured frequencies, written out as a matrix."""

    origin: NDArray[np.int8]  # the signs that they come from


# Frequencies in use, by the id of the signs and the dtype.
_written: WeakValueDictionary[tuple[int, str], _Written] = WeakValueDictionary()


def written_out(x: Columns, fourier: Fourier, n_threads: int) -> Fourier:
    """Write structured frequencies out as a matrix (d, D) if that makes products faster.

    A product is faster than a transform for rows that skip many zeros. The matrix has the dtype of
    the rows. The limit of its bytes is fixed and does not follow the available memory, because
    products and transforms round differently."""
    structure, d = fourier.frequencies, x.shape[1]
    if not isinstance(structure, Structure) or entries_a_row(x) >= d:
        return fourier
    needed = d * structure.n_frequencies * x.dtype.itemsize
    cost = product_cost(x, structure.n_frequencies)
    if cost >= projection_cost(x, structure) or needed > TUNING.storage.written_bytes:
        return fourier
    key = id(structure.signs), x.dtype.str
    written = _written.get(key)
    # the id may be that of earlier signs, which are gone
    if written is None or written.origin is not structure.signs:
        written = _Written(_matrix(structure, d, x.dtype, n_threads), structure.signs)
        _written[key] = written
    return written


def _matrix(structure: Structure, d: int, dtype: Any, n_threads: int) -> Array:
    """Compute Omega, (d, D), block by block, with little memory besides the result."""
    omega = np.empty((d, structure.n_frequencies), dtype=dtype)

    def fill(part: slice) -> None:
        omega[:, part] = structure.columns(d, part)

    p, D, step = structure.signs.shape[-1], structure.n_frequencies, TUNING.fourier.columns_together
    # `columns` takes ranges within one block of p columns, so ranges also end at multiples of p
    ends = [(first, min(first + p, D)) for first in range(0, D, p)]
    parts = [slice(b, min(b + step, end)) for first, end in ends for b in range(first, end, step)]
    with config.one_blas_thread():
        run_all(fill, parts, n_threads)
    return omega


def stored_bytes(rows: Rows) -> int:
    """Return how many bytes the features of all rows take, for views with a map."""
    return rows.n * sum(rows.widths[i] for i in rows.computed) * rows.dtype.itemsize


def stored(rows: Rows) -> Rows:
    """Compute the features of all rows, and return rows that have the features as columns."""
    xs = [*rows.xs]
    for i in rows.computed:
        xs[i] = unshifted(xs[i], rows.maps[i], rows.n_threads)
    return rows.with_columns(xs, rows.shifts)


def check_cache(cache: Any) -> Cache:
    """Check the parameter `cache`: "auto", a bool or a number of bytes."""
    if isinstance(cache, (bool, np.bool_)):
        return bool(cache)
    if isinstance(cache, numbers.Integral):
        return checks.check_int(cache, "cache", 0)
    checks.check_choice(cache, "cache", ("auto",), also="True, False or a number of bytes")
    return "auto"


def automatic_limit() -> int:
    """Return the number of bytes that cache="auto" may store at present."""
    return max(TUNING.storage.unseen_bytes, config.available_memory() // TUNING.storage.memory_part)


@dataclass(frozen=True)
class Storage:
    """Whether features are stored: the parameter `cache`, which has been checked."""

    cache: Cache  # "auto": where that pays, within a part of the available memory

    def fits(self, needed: int) -> bool:
        """Return whether `needed` bytes are within the limit that `cache` sets."""
        if isinstance(self.cache, (bool, str)):
            return config.fits_memory(needed, TUNING.storage.memory_part)
        return needed <= self.cache

    def check_fits(self, needed: int, what: str = "the features of all rows") -> bool:
        """Return whether `needed` bytes may be stored; `cache` of False or zero forbids it.

        Raise a MemoryError if `cache` is True and the bytes exceed the limit."""
        fits = self.fits(needed)
        if self.cache is True and not fits:
            raise MemoryError(
                f"cache=True takes {needed} bytes for {what}, more than the {automatic_limit()} "
                "that a quarter of the available memory has."
            )
        return fits and bool(self.cache)

    def check(self, rows: Rows) -> bool:
        """Return whether the features of the rows may be stored.

        Raise a MemoryError if `cache` is True and the features do not fit. For rows of a source,
        `cache` of True raises a ValueError."""
        if rows.stream is None:
            return bool(rows.computed) and self.check_fits(stored_bytes(rows))
        if self.cache is True:
            raise ValueError("cache=True needs all rows in memory, but X is a source.")
        return False

    def landmark_views(self, views: list[View], n_threads: int) -> list[View]:
        """Compute the features of landmark views now, if they may be stored; return the views.

        A search of all landmarks is so costly that storing pays from the first pass on."""
        numbers = sum(len(x) * mapped.width for x, mapped in views if isinstance(mapped, Landmarks))
        if not numbers or not self.check_fits(numbers * views[0][0].dtype.itemsize):
            return views
        return [
            (unshifted(x, mapped, n_threads), Identity(mapped.width))
            if isinstance(mapped, Landmarks)
            else (x, mapped)
            for x, mapped in views
        ]

    def all_rows(self, rows: Rows, k: int, passes: int) -> Rows:
        """Return all rows, with stored features if that saves time in `passes` passes.

        k is the number of clusters. Features are always stored if `cache` is True."""
        if rows.stream is not None or not self.check(rows):
            return rows
        if self.cache is not True:
            fused, stored_pass = pass_costs(rows, k)
            # writing features takes four times as long as reading them
            storing = fused + 4 * TUNING.storage.read_cost * len(rows.shift)
            if 2 * (passes * stored_pass + storing) > passes * fused:  # it must halve the time
                return rows
        return stored(rows)

    def sample(self, rows: Rows) -> Rows:
        """Return a sample, with stored features if `cache` and memory allow it."""
        return stored(rows) if self.cache and self.fits(stored_bytes(rows)) else rows


@dataclass(frozen=True)
class ScaledColumns:
    """The map that divides the columns by a number, `unit`."""

    unit: float

    def __call__(self, X: Columns) -> Columns:
        """Return the scaled columns (n, d)."""
        return divided(X, self.unit)

    def _view(self, X: Columns) -> View:
        return self(X), Identity(X.shape[1])


class Known(NamedTuple):
    """A fitted map, and the features of the fitted rows if they are already computed."""

    map: Any
    view: View | None = None  # the features, as passes take them; None: the map computes them


def mapped_views(
    maps: list[Any], views: tuple[int, ...], tables: Sequence[Columns],
    known: Iterable[View | None] = repeat(None),
) -> list[View]:  # fmt: skip
    """Return the columns and the map of each view, as passes take them.

    `views` has the index of the table of each view. `known` has views that are computed already,
    which are returned as they are, and None for the rest."""
    fits = zip(views, maps, known)
    return [fitted._view(tables[i]) if view is None else view for i, fitted, view in fits]


def _mapped_columns(maps: list[Any], views: tuple[int, ...], tables: list[Array]) -> list[Columns]:
    """Return the columns of each view, as passes take them: `prepare` of a stream."""
    return [x for x, _ in mapped_views(maps, views, tables)]


@dataclass(frozen=True)
class Mapping:
    """Turns the tables of X into rows of features, by a fitted map for each view."""

    maps: list[Any]
    views: tuple[int, ...]  # the index of the table of each view
    storage: Storage
    n_threads: int
    coverage: NDArray[np.float64] | None  # (L,), as in `Rows`; None: no row lacks a view
    unit_centroids: bool = False

    @cached_property
    def mapped(self) -> set[int]:
        """Indices of the views whose features are not simply columns of X."""
        return {i for i, each in enumerate(self.maps) if not isinstance(each, Identity)}

    def __call__(
        self, tables: list[Array], weight: Array, shifts: list[Array] | None = None,
        known: Iterable[View | None] = repeat(None),
    ) -> Rows:  # fmt: skip
        """Return rows of features from tables and weights. Shifts are zero by default."""
        views = mapped_views(self.maps, self.views, tables, known)
        views = self.storage.landmark_views(views, self.n_threads)
        columns, maps = map(list, zip(*views))
        rows = make_rows(columns, maps, weight, self.n_threads, shifts)
        rows = replace(rows, unit_centroids=self.unit_centroids)
        if self.coverage is None:
            return rows
        alpha = np.full(len(columns), 1 / self.coverage.sum())  # equal weights
        return replace(rows, coverage=self.coverage, alpha=alpha).with_present_views()

    def pair(self, sample: Opened, known: list[View | None]) -> tuple[Rows, Rows]:
        """Return rows of features for the sample, and for all rows.

        `known` may have the views of the sample, so that they are not computed again. Features are
        shifted by their mean. The mean is over all rows where features are columns of X, and over
        the sample where they are computed."""
        rows = self(*sample.some(), known=known)
        means = mean_features(rows) if self.mapped else []
        shifts = [
            means[i] if i in self.mapped else sample.moments(i).mean.astype(rows.dtype)
            for i in range(len(self.maps))
        ]
        shifted = replace(rows, shifts=shifts)
        if sample.stream is not None:
            return shifted, self._read(sample, shifted)
        whole = len(sample.tables[0]) == shifted.n
        return shifted, shifted if whole else self(sample.tables, sample.weight, shifts)

    def _read(self, sample: Opened, sampled: Rows) -> Rows:
        """Return the rows of a stream in place of the sampled rows, with their maps and shifts.

        No row is read here. The columns `xs` are empty: they give widths and the dtype."""
        assert sample.stream is not None
        stream = replace(sample.stream, prepare=partial(_mapped_columns, self.maps, self.views))
        weight, unit = with_unit(sample.weight, sampled.dtype)
        views = mapped_views(self.maps, self.views, [x[:1] for x in sample.some()[0]])
        return replace(
            sampled, xs=[x[:0] for x, _ in views], maps=[each for _, each in views],
            weight=weight, weight_unit=unit, stream=stream, present=None,
        )  # fmt: skip

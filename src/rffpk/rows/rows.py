"""The rows of all views, with the maps that define their features."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.arrays import Array, Fourier, Identity, Landmarks, Map, Structure, Unit
from rffpk.rows.sums import (
    EMPTY_SHARE,
    Sums,
    divided,
    onto_sphere,
    positive,
    typicality,
)
from rffpk.rows.table import Columns, has_view, skip_zeros
from rffpk.rows.weights import for_core, in_units, weights_at

if TYPE_CHECKING:
    from rffpk.rows.source import Part, Stream

T = TypeVar("T")


class OfCore(NamedTuple):
    """The arguments of the core that depend on rows alone. All arrays are aligned."""

    xs: list[Columns]
    omegas: list[Array | None]  # frequencies of each view, None without dense ones
    shifts: list[Array]
    alpha: Array
    weight: Array | None  # None: all weights are one
    options: dict[str, Any]  # of passes
    options_of_moves: dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """The rows of all views, with the maps and shifts that define their features.

    Arrays share one dtype, float32 or float64, except `alpha`. `xs` has no rows of a stream."""

    xs: list[Columns]  # L arrays (n, d_l), or sparse rows
    maps: list[Map]  # L
    shifts: list[Array]  # L arrays (F_l,), the mean features
    alpha: NDArray[np.float64]  # (L,)
    weight: Array  # (n,), of all rows of a stream, too; to be multiplied by ...
    weight_unit: float  # ... a power of two that keeps float32 sums in range
    n_threads: int
    # reference distances (L,), equal for all centroids; None: no typicality
    eta: NDArray[np.float64] | None = None
    m: float = 0.0  # fuzzifier of the typicality
    stream: Stream | None = None
    begin: int = 0  # the number of the first row in the stream that these rows are a block of
    present: Array | None = None  # (n, ceil(L / 8)): which views rows have, as bits; None: all
    # (L,), the shares of the rows that have the views, in a fit to rows that may lack views
    coverage: NDArray[np.float64] | None = None
    unit_centroids: bool = False  # whether centroids are scaled to length one

    # these fields follow from the fields above
    n: int = field(init=False)  # the number of rows; for a stream the number of all its rows
    dtype: np.dtype[Any] = field(init=False)
    widths: tuple[int, ...] = field(init=False)  # the numbers of features F_l
    shift: Array = field(init=False)  # (F,)
    computed: tuple[int, ...] = field(init=False)  # views whose features are not their columns
    # the length up to which centroids are rounding errors, and are not scaled to length one; 0 if
    # none is
    least_length: float = field(init=False)

    def __post_init__(self) -> None:
        dtype, maps = self.xs[0].dtype, enumerate(self.maps)
        computed = tuple(i for i, each in maps if not isinstance(each, Identity))
        vars(self).update(
            n=len(self.xs[0]) if self.stream is None else self.stream.n,
            dtype=dtype,
            widths=tuple(map(len, self.shifts)),
            shift=np.concatenate(self.shifts),
            computed=computed,
            least_length=64 * float(np.finfo(dtype).eps) if self.unit_centroids else 0.0,
        )

    @cached_property
    def sparse_columns(self) -> bool:
        """Whether the features are the columns of sparse rows, of one view."""
        return len(self.xs) == 1 and not self.computed and skip_zeros(self.xs[0])

    @cached_property
    def total_weight(self) -> float:
        """Return the sum of the weights of all rows."""
        return self.weight_unit * float(self.weight.sum(dtype=np.float64))

    @cached_property
    def of_core(self) -> OfCore:
        """Return the arguments of the core that depend on rows alone."""
        xs: list[Columns] = []
        omegas: list[Array | None] = []
        options: dict[str, Any] = {"structures": [], "landmarks": [], "units": []}
        for x, mapped in zip(self.xs, self.maps):
            frequencies = mapped.frequencies if isinstance(mapped, Fourier) else None
            structure = frequencies if isinstance(frequencies, Structure) else None
            omega = None if isinstance(frequencies, Structure) else frequencies
            xs.append(aligned(x) if isinstance(x, np.ndarray) else x)
            omegas.append(None if omega is None else aligned(omega))
            options["structures"].append(structure)
            if isinstance(mapped, Landmarks):
                points, coordinates = aligned(mapped.points), aligned(mapped.coordinates)
                options["landmarks"].append(replace(mapped, points=points, coordinates=coordinates))
            else:
                options["landmarks"].append(None)
            options["units"].append(isinstance(mapped, Unit))
        if self.present is not None:
            options["present"] = self.present
        moves = {
            "view_eta": self.eta, "unit": self.weight_unit, "coverage": self.coverage,
            "least_share": EMPTY_SHARE[self.dtype], "least_length": self.least_length,
        }  # fmt: skip
        shifts, weight = [*map(aligned, self.shifts)], for_core(aligned(self.weight))
        return OfCore(xs, omegas, shifts, aligned(self.alpha), weight, options, moves)

    def _in_units(self, weight: Array) -> Array:
        return in_units(weight, self.weight_unit, self.dtype)

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows, in arrays; rows of a stream block by block."""
        if self.stream is None:
            yield self
            return
        for part in self.stream.blocks():
            yield self._of(part, self.maps)

    def fold(self, visit: Callable[[Rows, T | None], T], add: Callable[[T, T], T]) -> T:
        """Return what `visit` makes of each block and of its result for the blocks before.

        That is None at the first block. On workers of Dask each partition is a first block, and
        `add` joins the results."""
        if self.stream is None:
            return visit(self, None)
        alone = replace(self, maps=[], stream=None, weight=self.weight[:0])
        found: T = self.stream.fold(partial(_visit_part, alone, visit), add, self.maps)
        return found

    def _of(self, part: Part, maps: list[Map]) -> Rows:
        """Return rows of the stream, with maps."""
        return replace(
            self, xs=part.tables, maps=maps, begin=part.begin, stream=None,
            weight=self._in_units(part.weight), n_threads=part.n_threads or self.n_threads,
        ).with_present_views()  # fmt: skip

    def centroids(self, sums: Sums, previous: Array) -> Array:
        """Return the centroids that follow from the sums of a pass.

        Centroids of empty clusters stay where they were."""
        least_share = EMPTY_SHARE[self.dtype]
        theta, _ = divided(sums.N, sums.G, previous, self.widths, least_share)
        return self.on_sphere(theta, previous)

    def weights_of_centroids(self, sums: Sums) -> Array:
        """Return weights (k,), or (k, L), by which centroids follow from their sums.

        They are the weights of clusters, or lengths of the sums if centroids have length one."""
        if not self.unit_centroids:
            return sums.G.copy()
        return np.linalg.norm(sums.N + sums.G[:, None] * self.shift.astype(np.float64), axis=1)

    def on_sphere(self, theta: Array, previous: Array) -> Array:
        """Return shifted centroids, of length one if all are.

        Centroids of length zero stay where they were."""
        if not self.unit_centroids:
            return theta
        return onto_sphere(theta, previous, self.shift, self.least_length)

    def scaled(self, theta: Array) -> Array:
        """Scale feature vectors so that the combined distance of all views is Euclidean."""
        if len(self.xs) == 1:
            return theta
        return theta * np.sqrt(np.repeat(self.alpha, self.widths))

    def effective_distances(self, distances: Array) -> Array:
        """Return the squared distances with typicality: u^m d + (1-u)^m eta."""
        assert self.eta is not None
        eta = self.combined(self.eta).astype(distances.dtype)
        u = typicality(distances, eta, self.m)
        return np.asarray(u**self.m * distances + (1 - u) ** self.m * eta)

    def with_columns(self, xs: list[Columns], shifts: list[Array]) -> Rows:
        """Return the rows with these columns as features."""
        return replace(self, xs=xs, maps=[Identity(x.shape[1]) for x in xs], shifts=shifts)

    def with_present_views(self) -> Rows:
        """Return the rows with the bits of their views, if rows of the fit lack views."""
        if self.coverage is None:
            return self
        return replace(self, present=present_bits(self.xs, always=True))

    def combined(self, numbers: Array) -> Array:
        """Return sum_l alpha_l of the numbers (L,) of the views.

        If views are missing, it is a sum (n, 1) over the views that a row has."""
        if self.present is None:
            return np.asarray(numbers @ self.alpha)
        return (present_views(self.present, len(self.xs)) @ (numbers * self.alpha))[:, None]

    def renormalised(self) -> Rows:
        """Return rows that lack views with weights that make their costs distances.

        The view weights of these distances have the sum one over the views of a row."""
        rows = replace(self, alpha=positive(self.alpha))
        total = rows.combined(np.ones(len(self.xs)))[:, 0]
        return replace(rows, weight=np.ascontiguousarray(self.weight / total, dtype=self.dtype))

    def present_features(self) -> Array:
        """Return a mask (n, F) of the features that rows have, where rows lack views."""
        assert self.present is not None
        return np.repeat(present_views(self.present, len(self.xs)), self.widths, axis=1)

    def take(self, index: Array | slice) -> Rows:
        """Return the rows at `index`, in their order; rows of a stream are read."""
        if self.stream is not None:
            return self._taken(np.asarray(index))
        weight = weights_at(self.weight, index)
        present = None if self.present is None else self.present[index]
        return replace(self, xs=[x[index] for x in self.xs], weight=weight, present=present)

    def _taken(self, index: Array) -> Rows:
        """Read the rows at `index` from a stream.

        One reading picks the rows in rising order. Then the order of `index` is restored."""
        order = np.argsort(index, kind="stable")
        parts = self.fold(partial(_picked, index[order]), operator.add)
        xs = [np.concatenate(blocks) for blocks in zip(*parts)]
        weight = weights_at(self.weight, index[order])
        rows = replace(self, xs=xs, weight=weight, stream=None).with_present_views()
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return rows.take(back)

    def view(self, i: int) -> Rows:
        """Return the rows that have a view, with this view alone, without typicality."""
        rows = self
        if self.present is not None:
            rows = self.take(np.flatnonzero(present_views(self.present, len(self.xs))[:, i]))
        return replace(
            rows, xs=[rows.xs[i]], maps=[self.maps[i]], shifts=[self.shifts[i]], alpha=np.ones(1),
            eta=None, present=None, coverage=None,
        )  # fmt: skip

    def counted(self) -> Rows:
        """Return the rows in arrays whose weight is not zero; all rows of a stream."""
        if self.stream is not None or self.weight.all():
            return self
        return self.take(self.counted_indices())

    def counted_indices(self) -> Array:
        """Return the indices of the rows whose weight is not zero."""
        return np.flatnonzero(self.weight)


def _visit_part(
    rows: Rows, visit: Callable[[Rows, T | None], T], part: Part, maps: list[Map], before: T | None
) -> T:
    """Visit a part of a stream; `rows` lack the maps, which workers get once."""
    return visit(rows._of(part, maps), before)


_Picked = list[list[Array]]


def _picked(numbers: Array, block: Rows, before: _Picked | None) -> _Picked:
    """Return the views of the rows of a block with these numbers, which rise."""
    first, last = np.searchsorted(numbers, [block.begin, block.begin + block.n])
    index = numbers[first:last] - block.begin
    return [*(before or []), [x[index] for x in block.xs]]


# ---- which views rows have: one lacks a view where all of its numbers there are NaN --------------


def aligned(array: Array) -> Array:
    """Return an array whose numbers are at addresses that they need; a copy if they are not.

    Parts of messages are not. `np.require` would take ten times the time."""
    return array if array.flags.aligned else array.copy()


def present_bits(xs: list[Columns], always: bool = False) -> NDArray[np.uint8] | None:
    """Return the views that rows have as bits, (n, ceil(L / 8)): bit l % 8 of byte l / 8.

    None, unless `always`, where all rows have all views."""
    masks = np.stack([has_view(x) for x in xs], axis=1)
    return np.packbits(masks, axis=1, bitorder="little") if always or not masks.all() else None


def present_views(bits: Array, n_views: int) -> NDArray[np.bool_]:
    """Return a mask (n, L) from these bits."""
    return np.unpackbits(bits, axis=1, count=n_views, bitorder="little").astype(bool)


def rows_with(x: Columns, weight: Array) -> tuple[Any, Array]:
    """Return the rows that have a view and their weights, the same arrays if all rows have it."""
    there = has_view(x)
    return (x, weight) if there.all() else (x[there], weights_at(weight, there))


def coverage(there: list[Array], total: float, least: int) -> NDArray[np.float64] | None:
    """Return the share of the `total` weight of the rows that have each view, (L,).

    None where all rows have all views. It follows from `there_of` of the views. Raise a
    ValueError if fewer than `least` rows have a view."""
    lacking, counts, weights = np.transpose(there)
    if not lacking.any():
        return None
    for view, count in enumerate(counts):
        if count < least:
            raise ValueError(
                f"X has view {view} of {count:.0f} rows with a positive sample_weight, must have "
                f"it of at least n_clusters={least}: leave the view out."
            )
    return np.asarray(weights / total)


def there_of(x: Array, weight: Array) -> NDArray[np.float64]:
    """Return how many rows lack a view, how many with a weight have it, and their weight."""
    there = has_view(x)
    p = np.where(there, weight, 0)
    return np.array([len(x) - there.sum(), np.count_nonzero(p), p.sum()])

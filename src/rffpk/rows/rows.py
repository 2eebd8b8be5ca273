"""The rows of all views, with the maps that define their features."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.arrays import Array, Fourier, Identity, Landmarks, Map, Structure, Unit
from rffpk.rows.sums import EMPTY_SHARE, Sums, divided, onto_sphere, positive, typicality
from rffpk.rows.table import Columns, has_view, skip_zeros
from rffpk.rows.weights import for_core, in_units, weights_at

if TYPE_CHECKING:
    from rffpk.rows.source import Part, Stream

T = TypeVar("T")


class computed_once(Generic[T]):
    """A property that is computed when it is first read, and then is an attribute.

    `functools.cached_property` of Python 3.11 has a lock. A child that is forked while another
    thread holds the lock would wait forever."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Any, cls: type) -> T:
        value = self.compute(owner)
        vars(owner)[self.compute.__name__] = value
        return value


class OfCore(NamedTuple):
    """The arguments of the core that depend on rows alone. All arrays are aligned."""

    xs: list[Columns]
    omegas: list[Array | None]  # dense frequencies of each view; None: it has none
    shifts: list[Array]
    alpha: Array
    weight: Array | None  # None: all weights are one
    options: dict[str, Any]  # options of all passes
    options_of_moves: dict[str, Any]  # further options of passes that also move centroids


@dataclass(frozen=True)
class Rows:
    """The rows of all views, with the maps and shifts that define their features.

    Arrays share one dtype, float32 or float64, except `alpha`. For a stream, `xs` has no rows."""

    xs: list[Columns]  # L arrays (n, d_l), or sparse rows
    maps: list[Map]  # L maps from columns to features
    shifts: list[Array]  # L arrays (F_l,), the mean features
    alpha: NDArray[np.float64]  # (L,)
    weight: Array  # (n,), also for a stream, in units of `weight_unit`
    weight_unit: float  # a power of two that keeps float32 sums in range
    n_threads: int
    # reference distances (L,), equal for all centroids; None: no typicality
    eta: NDArray[np.float64] | None = None
    m: float = 0.0  # fuzzifier of the typicality
    stream: Stream | None = None
    begin: int = 0  # for a block of a stream: the index in the stream of its first row
    present: Array | None = None  # (n, ceil(L / 8)): bits of the views of a row; None: all views
    # (L,), the shares of the rows that have the views, in a fit to rows that may lack views
    coverage: NDArray[np.float64] | None = None
    unit_centroids: bool = False  # whether centroids are scaled to length one

    # these fields follow from the fields above
    n: int = field(init=False)  # the number of rows; for a stream the number of all its rows
    dtype: np.dtype[Any] = field(init=False)
    widths: tuple[int, ...] = field(init=False)  # the numbers of features F_l
    shift: Array = field(init=False)  # (F,)
    computed: tuple[int, ...] = field(init=False)  # views whose features are not their columns
    # centroids of at most this length are rounding errors, and are not scaled to length one; 0 if
    # no centroids are scaled
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

    @property
    def sparse_columns(self) -> bool:
        """Whether there is one view, and its features are the columns of sparse rows."""
        return len(self.xs) == 1 and not self.computed and skip_zeros(self.xs[0])

    @computed_once
    def total_weight(self) -> float:
        """Return the sum of the weights of all rows."""
        return self.weight_unit * float(self.weight.sum(dtype=np.float64))

    @computed_once
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
        options_of_moves = {
            "view_eta": self.eta, "unit": self.weight_unit, "coverage": self.coverage,
            "least_share": EMPTY_SHARE[self.dtype], "least_length": self.least_length,
        }  # fmt: skip
        shifts, weight = [*map(aligned, self.shifts)], for_core(aligned(self.weight))
        alpha = aligned(self.alpha)
        return OfCore(xs, omegas, shifts, alpha, weight, options, options_of_moves)

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows as arrays: all at once, or block by block if they are a stream."""
        if self.stream is None:
            yield self
            return
        for part in self.stream.blocks():
            yield self._of(part, self.maps)

    def fold(self, visit: Callable[[Rows, T | None], T], add: Callable[[T, T], T]) -> T:
        """Call `visit(block, result)` for each block in turn, and return the last result.

        `result` is what `visit` returned for the block before, and None for the first block. Rows
        in memory are one block. On a Dask cluster, each partition starts with None, and `add`
        combines the results of the partitions."""
        if self.stream is None:
            return visit(self, None)
        alone = replace(self, maps=[], stream=None, weight=self.weight[:0])
        found: T = self.stream.fold(partial(_visit_part, alone, visit), add, self.maps)
        return found

    def _of(self, part: Part, maps: list[Map]) -> Rows:
        """Return a block of the stream as rows in memory, with these maps."""
        weight = in_units(part.weight, self.weight_unit, self.dtype)
        return replace(
            self, xs=part.tables, maps=maps, begin=part.begin, stream=None, weight=weight,
            n_threads=part.n_threads or self.n_threads,
        ).with_present_views()  # fmt: skip

    def centroids(self, sums: Sums, previous: Array) -> Array:
        """Compute centroids (k, F) from the sums of a pass: theta = N / G.

        Centroids of empty clusters keep their `previous` position."""
        least_share = EMPTY_SHARE[self.dtype]
        theta, _ = divided(sums.N, sums.G, previous, self.widths, least_share)
        return self.on_sphere(theta, previous)

    def weights_of_centroids(self, sums: Sums) -> Array:
        """Return the divisors, (k,) or (k, L), that turn sums of features into centroids.

        The divisors are the cluster weights G. For centroids of length one, the lengths of the
        unshifted feature sums are the divisors instead."""
        if not self.unit_centroids:
            return sums.G.copy()
        return np.linalg.norm(sums.N + sums.G[:, None] * self.shift.astype(np.float64), axis=1)

    def on_sphere(self, theta: Array, previous: Array) -> Array:
        """Scale shifted centroids (k, F) to length one if `unit_centroids` is set.

        Centroids whose length is only rounding error keep their `previous` position. Without
        `unit_centroids` return `theta` as it is."""
        if not self.unit_centroids:
            return theta
        return onto_sphere(theta, previous, self.shift, self.least_length)

    def scaled(self, theta: Array) -> Array:
        """Scale feature vectors (k, F) so that the combined distance of all views is Euclidean."""
        if len(self.xs) == 1:
            return theta
        return theta * np.sqrt(np.repeat(self.alpha, self.widths))

    def effective_distances(self, distances: Array) -> Array:
        """Return squared distances that include typicality u: u^m d + (1-u)^m eta."""
        assert self.eta is not None
        eta = self.combined(self.eta).astype(distances.dtype)
        u = typicality(distances, eta, self.m)
        return np.asarray(u**self.m * distances + (1 - u) ** self.m * eta)

    def with_columns(self, xs: list[Columns], shifts: list[Array]) -> Rows:
        """Return rows whose features are the columns of `xs`, minus `shifts`; there is no map."""
        return replace(self, xs=xs, maps=[Identity(x.shape[1]) for x in xs], shifts=shifts)

    def with_present_views(self) -> Rows:
        """Return the rows with the bits of their views, `present`, if the fit has a `coverage`."""
        if self.coverage is None:
            return self
        return replace(self, present=present_bits(self.xs, always=True))

    def combined(self, numbers: Array) -> Array:
        """Combine a number per view, (L,), into sum_l alpha_l numbers_l.

        If rows lack views, the result has shape (n, 1): each row sums over the views that it
        has."""
        if self.present is None:
            return np.asarray(numbers @ self.alpha)
        return (present_views(self.present, len(self.xs)) @ (numbers * self.alpha))[:, None]

    def renormalised(self) -> Rows:
        """Rescale the weights of the rows, so that costs are means over the views of each row.

        Each row's weight is divided by the sum of the view weights of the views that the row has.
        So the row counts as if these view weights summed to one."""
        rows = replace(self, alpha=positive(self.alpha))
        total = rows.combined(np.ones(len(self.xs)))[:, 0]
        return replace(rows, weight=np.ascontiguousarray(self.weight / total, dtype=self.dtype))

    def present_features(self) -> Array:
        """Return a mask (n, F) of the features that each row has; a row may lack views."""
        assert self.present is not None
        return np.repeat(present_views(self.present, len(self.xs)), self.widths, axis=1)

    def take(self, index: Array | slice) -> Rows:
        """Return the rows at `index`, in this order.

        Rows of a stream are read into memory. One pass over the stream picks the rows in rising
        order of their indices. Afterwards they are put in the order of `index`."""
        if self.stream is None:
            weight = weights_at(self.weight, index)
            present = None if self.present is None else self.present[index]
            return replace(self, xs=[x[index] for x in self.xs], weight=weight, present=present)
        index = np.asarray(index)
        order = np.argsort(index, kind="stable")
        parts = self.fold(partial(_picked, index[order]), operator.add)
        xs = [np.concatenate(blocks) for blocks in zip(*parts)]
        weight = weights_at(self.weight, index[order])
        rows = replace(self, xs=xs, weight=weight, stream=None).with_present_views()
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return rows.take(back)

    def view(self, i: int) -> Rows:
        """Return the rows that have view `i`, with only this view and without typicality."""
        rows = self
        if self.present is not None:
            rows = self.take(np.flatnonzero(present_views(self.present, len(self.xs))[:, i]))
        return replace(
            rows, xs=[rows.xs[i]], maps=[self.maps[i]], shifts=[self.shifts[i]], alpha=np.ones(1),
            eta=None, present=None, coverage=None,
        )  # fmt: skip

    def counted(self) -> Rows:
        """Return the rows of nonzero weight. Streams are returned as they are, with all rows."""
        if self.stream is not None or self.weight.all():
            return self
        return self.take(np.flatnonzero(self.weight))


def _visit_part(
    rows: Rows, visit: Callable[[Rows, T | None], T], part: Part, maps: list[Map], before: T | None
) -> T:
    """Call `visit` for one block of a stream, as rows with the given maps.

    `rows` is a template without maps, because workers of a cluster receive the maps only once."""
    return visit(rows._of(part, maps), before)


_Picked = list[list[Array]]


def _picked(numbers: Array, block: Rows, before: _Picked | None) -> _Picked:
    """Append the rows of a block whose indices are in `numbers`, as a list of one array per view.

    `numbers` are rising row indices in the whole stream. `before` has the lists of earlier
    blocks."""
    first, last = np.searchsorted(numbers, [block.begin, block.begin + block.n])
    index = numbers[first:last] - block.begin
    return [*(before or []), [x[index] for x in block.xs]]


# ---- which views rows have: a row lacks a view if it has NaN in the columns of the view ----------


def aligned(array: Array) -> Array:
    """Return an array at a memory address aligned for its dtype, copied if necessary.

    Arrays inside messages from other processes may be unaligned. `np.require` would take ten
    times the time."""
    return array if array.flags.aligned else array.copy()


def present_bits(xs: list[Columns], always: bool = False) -> NDArray[np.uint8] | None:
    """Pack which views each row has into bits, (n, ceil(L / 8)): bit l % 8 of byte l / 8.

    Return None if every row has every view, unless `always` is set."""
    masks = np.stack([has_view(x) for x in xs], axis=1)
    return np.packbits(masks, axis=1, bitorder="little") if always or not masks.all() else None


def present_views(bits: Array, n_views: int) -> NDArray[np.bool_]:
    """Unpack the bits of `present_bits` into a mask (n, L)."""
    return np.unpackbits(bits, axis=1, count=n_views, bitorder="little").astype(bool)


def rows_with(x: Columns, weight: Array) -> tuple[Any, Array]:
    """Return the rows that have a view, and their weights. No copy is made if all rows have it."""
    there = has_view(x)
    return (x, weight) if there.all() else (x[there], weights_at(weight, there))


def coverage(there: list[Array], total: float, least: int) -> NDArray[np.float64] | None:
    """Return for each view the share of the `total` weight that lies on rows with the view, (L,).

    Return None if every row has every view. `there` holds the result of `there_of` for each view.
    Raise a ValueError if fewer than `least` rows of positive weight have a view."""
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
    """Return counts and the weight of the rows that have a view, as an array (3,).

    The first number counts the rows that lack the view. The second counts the rows of positive
    weight that have it. The third is the total weight of the rows that have it."""
    there = has_view(x)
    p = np.where(there, weight, 0)
    return np.array([len(x) - there.sum(), np.count_nonzero(p), p.sum()])

"""Noise: rows that are farther from their nearest rows than others are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rffpk._rows.sample import RowSample
from rffpk._utils import validation
from rffpk._utils.arrays import Array, label_order
from rffpk._utils.columns import (
    Columns,
    SparseRows,
    dense,
    distinct_rows,
    distinct_tables,
    each,
    plain,
    scaled_columns,
    side_by_side,
    squared_norms,
    tables_of,
    unit_rows,
)
from rffpk._utils.tiles import row_tiles, run_all
from rffpk.maps.neighbours import Neighbourhoods, k_means, near_path

# docs/noise.md has the trials behind these.
_NEIGHBOURS = 5  # A row's distance is that to so many other rows, of a sample.
_BINS = 512  # of the histogram of the logarithms of distances, ...
_SEEN = 1 << 18  # ... of so many rows at most
_LEAST_DEPTH = 0.25  # of a valley of the histogram, below the lower of its two sides
_SHARES = (0.005, 0.35)  # of noise that is found, at least and at most
_RARE, _LEAST_RATIO = 1000, 3.0  # of a gap between the largest distances and the others, ...
_SORTED = 1000  # ... which is looked for among so many of them, and the least share
_RESOLVED = 1e-3  # Logarithms of distances that differ by less are equal.
_LEAST_MIXED = 0.05  # mean share of other rows among the neighbours of noise, ...
_LEAST_OF_MIXED = 0.5  # ... and of rows in groups that have it

_EQUAL = 1 + 1e-5  # ratio of variances that are the same
_ROUNDING = 2  # relative errors of the coordinates of a row that change a distance
# The k-means cells of m rows: so many times the root of m, ...
_CELLS_A_ROOT = 2
_CELLS_A_ROW = 3  # ... each row in so many, and at least so many rows in each
_LEAST_MEMBERS = 32
_PART = 4  # Every fourth of these is looked at first where distances up to a threshold are alike.

_TILE_NUMBERS = 1 << 23  # of rows that are looked at together


@dataclass(frozen=True)
class Cells:
    """Parts of a sample, in which the nearest rows are looked for instead of in all of it."""

    centroids: Neighbourhoods  # whose landmarks are those of the cells
    members: Array  # the numbers of the rows of the sample that a row is compared with, ...
    ends: Array  # ... those of one cell after those of the others

    def visit(self, X: Columns, visit: Callable[[Array, Array], None]) -> None:
        """Call a function with the numbers of the rows of X in a cell, and its members."""
        cells = self.centroids.chosen(X).ravel()
        order = label_order(cells, len(self.ends))
        ends = np.cumsum(sizes := np.bincount(cells, minlength=len(self.ends)))

        def visit_cell(cell: int) -> None:
            begin, first = (ends[cell - 1], self.ends[cell - 1]) if cell else (0, 0)
            visit(order[begin : ends[cell]], self.members[first : self.ends[cell]])

        run_all(visit_cell, np.flatnonzero(sizes).tolist(), self.centroids.n_threads)


def cells_of(references: Columns, n_threads: int) -> Cells:
    """Cells of rows. A row is in those whose centroids are nearest to it, and among the members of
    each cell are the rows nearest to its centroid."""
    m = len(references)
    seeds = references[np.linspace(0, m - 1, round(_CELLS_A_ROOT * math.sqrt(m))).astype(int)]
    seeds = seeds[near_path(seeds, n_threads)]  # passes leave out what is far
    centroids = k_means(references, None, seeds, n_threads)
    cells = Neighbourhoods(centroids, _CELLS_A_ROW, 0.0, n_threads).chosen(references)
    near = Neighbourhoods(references, _LEAST_MEMBERS, 0.0, n_threads).chosen(centroids)
    order = np.lexsort(cells.T[1::-1])  # in which members that follow each other are near, too
    place = np.argsort(order)
    places = np.concatenate([
        (cells * np.int64(m) + place[:, None]).ravel(),
        (place[near] + m * np.arange(len(near))[:, None]).ravel(),
    ])  # fmt: skip
    cell, members = np.divmod(np.unique(places), m)
    members = order[members]
    ends = np.cumsum(np.bincount(cell, minlength=len(near)))
    return Cells(Neighbourhoods(centroids, 1, 0.0, n_threads), members, ends)


@dataclass(frozen=True)
class Outliers:
    """Distances of rows to their nearest ones of a sample, beyond one of which rows are noise."""

    nearest: Neighbourhoods  # whose landmarks are the sample
    cells: Cells | None  # of the sample, where all rows are more
    threshold: float
    scales: tuple[float, ...]  # by which the columns of the views are multiplied
    columns: Array | None  # those of the joined views that distances are taken in; None: all
    spherical: bool
    rounding: float  # Distances that differ by no more are equal.

    def distances(self, xs: list[Columns], enough: float | None = None) -> Array:
        """Of rows, to the last of their nearest other rows; (n,), float64. Those up to `enough` may
        be larger than they are, but no larger than that."""
        found = np.empty(len(xs[0]))
        for rows in row_tiles(len(found), sum(x.shape[1] for x in xs), _TILE_NUMBERS):
            part = each(xs, lambda x, rows=rows: plain(x[rows]))
            joined = joined_views(part, self.scales, self.spherical, self.columns)
            found[rows] = self.distances_of(joined, enough)
        return found

    def distances_of(self, X: Columns, enough: float | None = None) -> Array:
        """The same of rows of joined views."""
        squares = np.empty(len(X), dtype=X.dtype)
        if self.cells is None:
            squares[:] = _to_last(X, self.nearest)
        else:
            references, alone = self.nearest.landmarks, replace(self.nearest, n_threads=1)

            def visit(rows: Array, members: Array) -> None:
                some = members[::_PART]  # whose last one is as far as that of all, or farther
                pays = enough is not None and len(some) >= alone.r
                for looked_at in [some, members] if pays else [members]:
                    near = replace(alone, landmarks=references[looked_at])
                    x = X[rows] if isinstance(X, SparseRows) else X.take(rows, axis=0)  # faster
                    squares[rows] = found = _to_last(x, near)
                    rows = rows[np.sqrt(found, dtype=np.float64) > enough] if pays else rows
                    if not len(rows):
                        break

            self.cells.visit(X, visit)
        validation.check_overflow(float(squares.max(initial=0)), squares.dtype)
        return np.sqrt(squares, dtype=np.float64)

    def scores(self, distances: Array) -> Array:
        """Between 0 and 1, 1/2 at the threshold."""
        if not self.threshold > 0:
            return np.where(distances > 0, 1.0, 0.0)
        ratio = (distances / self.threshold) ** 2
        return np.asarray(np.where(np.isfinite(ratio), 1 - 1 / (1 + ratio), 1.0))

    def are_noise(self, xs: list[Columns]) -> Array:
        """A mask of rows."""
        return self.distances(xs, self.threshold) > self.threshold


@np.errstate(over="ignore", invalid="ignore")  # refused by name later
def _to_last(X: Columns, nearest: Neighbourhoods) -> Array:
    """Squared distances of rows to the last of their nearest landmarks that are other rows."""
    squares = np.sort(nearest._nearest(X)[0], axis=1)
    # a row of the sample is none of its own neighbours
    return np.where(squares[:, 0] == 0, squares[:, -1], squares[:, max(nearest.r - 2, 0)])


def joined_views(
    xs: list[Columns], scales: tuple[float, ...], spherical: bool, columns: Array | None = None
) -> Columns:
    """The columns, or some of them, of the first distinct views, times one of the scales each, side
    by side."""
    views = distinct_tables(xs)[: len(scales)]
    if len(views) > 1:
        repeated = [np.full(x.shape[1], scale) for x, scale in zip(views, scales)]
        views = [side_by_side([*map(scaled_columns, views, repeated)])]
    joined = unit_rows(views[0]) if spherical else views[0]
    return joined if columns is None else dense(joined).take(columns, axis=1)


def numbers_beside_words(X: Columns) -> Array | None:
    """The columns that are no words, which are columns of two values that differ by no more than
    the others do, in the mean; None: all columns. Whoever has a rare combination of words would be
    far from others, however many are near it in what can be near."""
    if isinstance(X, SparseRows):
        return None
    low, high = X.min(axis=0), X.max(axis=0)
    two = ((X == low) | (X == high)).all(axis=0)
    step, variance = (high - low).astype(np.float64), X[:, ~two].var(axis=0, dtype=np.float64).sum()
    words = two & (step**2 <= variance * _EQUAL)  # which scaling may make equal
    return np.flatnonzero(~words) if words.any() and variance > 0 else None


def outliers_of_sample(sample: RowSample, n_views: int, spherical: bool) -> Outliers:
    """Distances to a sample of the rows that count, in the first of its distinct views, without a
    threshold yet."""
    xs, weight = sample.some()
    views = [*dict.fromkeys(tables_of(sample.xs))]
    variances = [sample.moments(i).variance for i in views[:n_views]]
    scales = tuple(1 / math.sqrt(v) if v > 0 else 1.0 for v in variances)
    references = joined_views(each(xs, plain), scales, spherical)
    if weight is not None:
        references = references[np.flatnonzero(weight)]
    columns = None if spherical else numbers_beside_words(references)
    if columns is not None:
        references = references.take(columns, axis=1)
    is_part = len(references) < sample.counted
    # copies one after the other, as many as a distance sees
    references, number = distinct_rows(references)
    copies = np.minimum(np.bincount(number), _NEIGHBOURS + 1)
    references = references[np.repeat(np.arange(len(copies)), copies)]
    nearest = Neighbourhoods(references, _NEIGHBOURS + 1, 0.0, sample.how.n_threads)
    length = math.sqrt(float(np.median(squared_norms(references))))
    rounding = _ROUNDING * float(np.finfo(references.dtype).eps) * length
    cells = cells_of(references, sample.how.n_threads) if is_part else None
    return Outliers(nearest, cells, math.inf, scales, columns, spherical, rounding)


def automatic_threshold(found: Outliers, distances: Array) -> float:
    """The distance from which rows are noise; none is beyond it if there is no noise.

    Noise is there if the histogram of the logarithms of the distances has a valley beyond its mode,
    or few rows are beyond a wide gap, and the rows beyond it are no cluster of their own: so few as
    all have to be far from the last of their nearest rows are none, also where no sample has them.
    """
    some = apart = distances[distances > found.rounding]
    if len(apart) > _SEEN:
        some = np.random.default_rng(0).choice(apart, _SEEN)
    for border in (_valley(np.log(some), found.rounding), _gap(apart)):
        if border is None:
            continue
        few = np.count_nonzero(apart > border) <= _NEIGHBOURS
        if few or _is_mixed(replace(found, threshold=border)):
            return border
    return float(distances.max(initial=0)) + found.rounding


def _valley(logs: Array, rounding: float) -> float | None:
    """The distance of the deepest valley of the density of these logarithms of distances beyond its
    mode; None if there is none. Where many distances are equal, the kernel of the density is as
    wide as the steps between their values."""
    if len(logs) < 2:
        return None
    lower, upper = np.quantile(logs, [0.25, 0.75])
    unit = max(_RESOLVED, rounding / math.exp(lower))
    values, counts = np.unique(np.round(logs / unit), return_counts=True)
    if len(values) < 2:
        return None
    step = unit * float(np.median(np.repeat(np.diff(values), counts[:-1])))
    spread = min(float(logs.std()), float(upper - lower) / 1.34) or float(logs.std())
    width = max(0.9 * spread * len(logs) ** -0.2, step)
    edges = np.linspace(logs.min() - 3 * width, logs.max() + 3 * width, _BINS + 1)
    counts, _ = np.histogram(logs, edges)
    bin_width = float(edges[1] - edges[0])
    smooth = gaussian_filter1d(1.0 * counts, width / bin_width, mode="constant")
    beyond = 1 - np.cumsum(counts) / len(logs)
    after = np.maximum.accumulate(smooth[::-1])[::-1]
    depth = np.where(after > 0, 1 - smooth / np.where(after > 0, after, 1), 0)
    depth[(beyond < _SHARES[0]) | (beyond > _SHARES[1])] = 0
    depth[: smooth.argmax() + 1] = 0
    if depth.max() < _LEAST_DEPTH:
        return None
    deepest = np.flatnonzero(depth >= depth.max() - 1e-12)
    return math.exp(float(edges[deepest[len(deepest) // 2]] + bin_width / 2))


def _gap(distances: Array) -> float | None:
    """The middle of the innermost of those gaps between the largest of these distances that hardly
    any tail has; None if there is none. In one as heavy as Cauchy's, whose shares fall as 1 / r,
    the j largest are more than r times the others once in r^j times."""
    n = len(distances)
    most = int(min(_SHARES[1] * n, _SHARES[0] * n + _SORTED))
    if not most:
        return None
    far = np.sort(np.partition(distances, -most - 1)[-most - 1 :])[::-1]
    ratios = far[:-1] / far[1:]
    rare = np.arange(1, most + 1) * np.log(ratios) >= math.log(_RARE)
    wide = np.flatnonzero(rare & (ratios >= _LEAST_RATIO))
    return None if not len(wide) else math.sqrt(far[wide[-1]] * far[wide[-1] + 1])


def _is_mixed(noise: Outliers) -> bool:
    """Whether most rows beyond the threshold belong to groups of nearest neighbours in which some
    are neighbours of other rows: a sparse cluster that is far from all others is a group by itself
    where others of the rows beyond the threshold are at the rim of their clusters."""
    references = noise.nearest.landmarks
    beyond = noise.distances_of(references, noise.threshold) > noise.threshold
    if not beyond.any():
        return False
    index = noise.nearest.chosen(references[np.flatnonzero(beyond)])
    others, number = ~beyond[index], np.cumsum(beyond) - 1
    row, place = np.nonzero(~others)
    links = coo_array((np.ones(len(row)), (row, number[index[row, place]])), shape=[len(index)] * 2)
    group = connected_components(links, directed=False)[1]
    mixed = np.bincount(group, others.mean(axis=1)) >= _LEAST_MIXED * np.bincount(group)
    return bool(mixed[group].mean() >= _LEAST_OF_MIXED)


def share_threshold(distances: Array, weight: Array, share: float, rounding: float) -> float:
    """A distance beyond which there is about this share of the weight. Rows
    whose distances are equal are all on one side: those at the border of the share are kept."""
    order = np.argsort(-distances)
    order = order[weight[order] > 0]
    far, masses = distances[order], np.r_[0.0, np.cumsum(weight[order])]
    n = int(np.abs(masses - share * masses[-1]).argmin())
    if n == len(far):
        return -math.inf
    cuts = np.flatnonzero(far[:n] - far[1 : n + 1] > rounding)
    if not len(cuts):
        return float(far[0]) + rounding
    return float(far[cuts[-1]] + far[cuts[-1] + 1]) / 2

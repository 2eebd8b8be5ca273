"""Noise: rows that are far from other rows, and have the weight zero in a fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rffpk.rows import checks, table
from rffpk.rows.arrays import Array, label_order
from rffpk.rows.checks import Auto, is_option
from rffpk.rows.distinct import DistinctRows
from rffpk.rows.sample import Opened, column_moments
from rffpk.rows.table import Columns
from rffpk.rows.weights import are_ones, ones
from rffpk.spaces.neighbors import Neighbourhoods, k_means, near_path
from rffpk.system.linalg import row_tiles, run_all
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING


@dataclass(frozen=True)
class Noise:
    """Noise that a fit with the parameter `noise` has found before its search."""

    outliers: Outliers
    rows: Array  # (n,) mask: rows that are noise
    scores: Array | None  # (n,): outlier scores; None: the rows are not in memory

    def add_to(self, attributes: dict[str, Any]) -> None:
        """Add outlier scores to the attributes of a fit, and set memberships of noise to zero."""
        if self.scores is not None:
            attributes["outlier_scores_"] = self.scores
        if "memberships_" in attributes:
            attributes["memberships_"][self.rows] = 0


def find_noise(
    noise: Auto | float, sample: Opened, distinct: DistinctRows | None, n_views: int,
    is_cosine: bool,
) -> Noise:  # fmt: skip
    """Find the rows that are noise, by the value of the parameter `noise`.

    Distances are measured in the first `n_views` views. `distinct` has the distinct rows of a
    source that was read before; None: the rows are in memory, and distinct rows are collected here.
    A source is read once more, for the distances."""
    if distinct is None or sample.stream is None:  # all rows are in memory
        distinct = DistinctRows()
        distinct.add(0, sample.tables, sample.weight)
    stream, weight = sample.stream, sample.weight
    outliers, numbers = outliers_of(sample, distinct, n_views, is_cosine)
    squares = np.empty(sample.n, dtype=sample.tables[0].dtype)
    parts = (
        [(0, sample.tables)] if stream is None else ((p.begin, p.tables) for p in stream.blocks())
    )
    for begin, xs in parts:
        squares[begin : begin + len(xs[0])] = outliers.squares(xs)
    own = squares[numbers]  # of the sampled rows
    if is_option(noise, "auto"):
        threshold = automatic_threshold(outliers, own, squares, weight)
    else:
        threshold = share_threshold(outliers, own, squares, weight, float(noise))
    outliers = replace(outliers, threshold=threshold)
    rows = outliers.are_beyond(squares)
    if not is_option(noise, "auto") and not rows.any():
        warn(
            f"noise={noise}: marks no row, because the farthest row, with the rows equally far "
            "away, has more than this share of the weight. Increase noise.",
            UserWarning,
        )
    return Noise(outliers, rows, outliers.scores(squares) if sample.in_memory else None)


# ---- distances to nearby rows --------------------------------------------------------------------


_SAME_MASS = 1e-9  # relative rounding of sums of weights
_EQUAL = 1 + 1e-5  # ratio of equal variances, with rounding


@dataclass(frozen=True)
class Cells:
    """Overlapping parts of a sample. A row looks for its nearest rows in one part only."""

    centroids: Neighbourhoods  # its landmarks are the centroids of the cells
    members: Array  # indices of rows of the sample, cell by cell
    ends: Array  # (number of cells,): the end of each cell in `members`

    def visit(self, X: Columns, visit: Callable[[Array, Array], None]) -> None:
        """Call `visit(rows, members)` for each cell that is nearest to at least one row of X.

        `rows` are the indices of the rows of X for which the centroid of the cell is nearest.
        `members` are the indices of the sampled rows in the cell. Calls run in threads."""
        cells = self.centroids.chosen(X).ravel()  # one for each row
        order = label_order(cells, len(self.ends))
        ends = np.cumsum(sizes := np.bincount(cells, minlength=len(self.ends)))

        def visit_cell(cell: int) -> None:
            begin, first = (ends[cell - 1], self.ends[cell - 1]) if cell else (0, 0)
            visit(order[begin : ends[cell]], self.members[first : self.ends[cell]])

        run_all(visit_cell, np.flatnonzero(sizes).tolist(), self.centroids.n_threads)


def cells_of(references: Columns, n_threads: int) -> Cells:
    """Divide the rows of a sample into overlapping cells.

    Each row is in the cells of its nearest centroids. In addition, each cell has the rows that are
    nearest to its centroid."""
    m = len(references)
    n_cells = round(TUNING.noise.cells_a_root * math.sqrt(m))
    seeds = references[np.linspace(0, m - 1, n_cells).astype(int)]
    seeds = seeds[near_path(seeds, n_threads)]  # passes skip blocks of far centroids
    centroids = k_means(references, ones(m), seeds, n_threads)
    cells = Neighbourhoods(centroids, TUNING.noise.cells_a_row, 0.0, n_threads).chosen(references)
    near = Neighbourhoods(references, TUNING.noise.cell_rows, 0.0, n_threads).chosen(centroids)
    # by two of the cells of each row, so that near members of a cell follow each other
    order = np.lexsort(cells.T[1::-1])
    place = np.argsort(order)
    # each pair of a cell and a place is one number, so that pairs are sorted, and counted once
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
    """Distances of rows to their nearest rows of a sample, and the threshold of noise."""

    nearest: Neighbourhoods  # its landmarks are the sample
    cells: Cells | None  # cells of the sample; None: the sample has all distinct rows
    threshold: float  # rows with larger distances are noise
    scales: tuple[float, ...]  # a factor for the columns of each view
    columns: Array | None  # columns of the joined views in which distances are taken; None: all
    spherical: bool
    rounding: float  # distances that differ by no more are equal

    def squares(self, xs: list[Columns], enough: float | None = None) -> Array:
        """Return squared distances (n,) from each row to its last neighbor in the sample.

        The neighbors are the nearest `TUNING.noise.neighbors` rows of the sample, without the row
        itself. `xs` are the views. A distance that is at most `enough` need not be exact: it may be
        too large, but not larger than `enough`."""
        squares = np.empty(len(xs[0]), dtype=xs[0].dtype)
        width = sum(x.shape[1] for x in xs)
        for rows in row_tiles(len(squares), width, TUNING.tiles.noise_numbers):
            part = [table.plain(x[rows]) for x in xs]
            joined = joined_views(part, self.scales, self.spherical, self.columns)
            squares[rows] = self._squares_of(joined, enough)
        return squares

    def _squares_of(self, X: Columns, enough: float | None) -> Array:
        """Compute `squares` for rows whose views are joined already; `enough` as in `squares`."""
        squares = np.empty(len(X), dtype=X.dtype)
        if self.cells is None:
            squares[:] = _to_last(X, self.nearest)
        else:
            references, alone = self.nearest.landmarks, replace(self.nearest, n_threads=1)

            def visit(rows: Array, members: Array) -> None:
                """Write the squared distances of rows to the members of their cell.

                If `enough` is given, a part of the members is searched first. The distances to a
                part are upper bounds. All members are searched only for rows whose upper bound
                exceeds `enough`."""
                part = members[:: TUNING.noise.member_step]
                pays = enough is not None and len(part) >= alone.r
                for searched in [part, members] if pays else [members]:
                    near = replace(alone, landmarks=references[searched])
                    squares[rows] = found = _to_last(X.take(rows, axis=0), near)
                    rows = rows[np.sqrt(found, dtype=np.float64) > enough] if pays else rows
                    if not len(rows):
                        break

            self.cells.visit(X, visit)
        checks.check_overflow(float(squares.max(initial=0)), squares.dtype)
        return squares

    def scores(self, squares: Array) -> Array:
        """Return outlier scores between 0 and 1 from squared distances; 1/2 is at the threshold.

        If the threshold is 0, distances above 0 get the score 1."""
        distances = np.sqrt(squares, dtype=np.float64)
        if not self.threshold > 0:
            return np.where(distances > 0, 1.0, 0.0)
        ratio = (distances / self.threshold) ** 2
        return np.asarray(np.where(np.isfinite(ratio), 1 - 1 / (1 + ratio), 1.0))

    def are_beyond(self, squares: Array) -> Array:
        """Return a mask of the squared distances that are larger than the threshold allows."""
        mask = np.empty(len(squares), dtype=bool)
        for tile in row_tiles(len(squares), 1):
            mask[tile] = np.sqrt(squares[tile], dtype=np.float64) > self.threshold
        return mask

    def are_noise(self, xs: list[Columns]) -> Array:
        """Return a mask (n,) of the rows that are noise. `xs` are the views of the rows."""
        return self.are_beyond(self.squares(xs, self.threshold))


@np.errstate(over="ignore", invalid="ignore")  # refused by name later
def _to_last(X: Columns, nearest: Neighbourhoods) -> Array:
    """Return squared distances (n,) from each row of X to the last of its nearest landmarks.

    A row that equals a landmark does not count the landmark as a neighbor."""
    squares = np.sort(nearest._nearest(X)[0], axis=1)
    # A row of the sample is its own nearest landmark, which is skipped. Other rows use one landmark
    # less than r, so that all have as many neighbors.
    return np.where(squares[:, 0] == 0, squares[:, -1], squares[:, max(nearest.r - 2, 0)])


def joined_views(
    xs: list[Columns], scales: tuple[float, ...], spherical: bool, columns: Array | None = None
) -> Columns:
    """Join the columns of the first `len(scales)` views, each view multiplied by its scale.

    A single view is not scaled. If `spherical`, rows are scaled to length one. `columns` are
    indices of the joined columns to return; None: all columns."""
    views = xs[: len(scales)]
    if len(views) > 1:
        repeated = [np.full(x.shape[1], scale) for x, scale in zip(views, scales)]
        views = [table.side_by_side([*map(table.scaled_columns, views, repeated)])]
    joined = table.unit_rows(views[0]) if spherical else views[0]
    return joined if columns is None else table.dense(joined).take(columns, axis=1)


def numbers_beside_words(X: Columns, mass: Array) -> Array | None:
    """Return the indices of the columns that are numbers, not words; None: use all columns.

    A word is a column with two values that differ by at most the root of the total variance of the
    other columns. A row with a rare combination of words would be far from all rows, even if many
    rows are near it in the columns of numbers."""
    two, step = table.binary_columns(X)
    if not two.any():
        return None
    variance = 0.0
    if not two.all():
        variance = column_moments(np.ascontiguousarray(X[:, ~two]), mass, 1).variance
    words = two & (step**2 <= variance * _EQUAL)  # scaling may make both sides equal
    return np.flatnonzero(~words) if words.any() and variance > 0 else None


def outliers_of(
    sample: Opened, distinct: DistinctRows, n_views: int, spherical: bool
) -> tuple[Outliers, Array]:
    """Return `Outliers` with a sample of distinct rows, without a threshold yet.

    The second result has the index of a row in the data set for each row of the sample. Distances
    are measured in the first `n_views` views. They depend only on the columns and the weights."""
    numbers, xs, mass, are_all = distinct.sample()
    views = [table.plain(x) for x in (xs or [x[numbers] for x in sample.tables])[:n_views]]
    variances = [column_moments(x, mass, 1).variance for x in views]
    scales = tuple(1 / math.sqrt(v) if v > 0 else 1.0 for v in variances)
    rows = joined_views(views, scales, spherical)
    columns = None if spherical else numbers_beside_words(rows, mass)
    rows, m, least = rows if columns is None else rows.take(columns, axis=1), len(rows), 0.0
    copies = TUNING.noise.neighbors + 1
    if not are_all:  # the sample may lack a row with many copies
        more, xs, weight = sample.numbered(distinct.size)
        mean = sample.weight.sum() / len(more)  # a row drawn by weight stands for this weight
        mass = np.r_[mass, np.full(len(more), mean) if are_ones(weight) else weight]
        numbers, least = np.r_[numbers, more], copies * mean
        rows = table.concatenated([rows, joined_views(xs, scales, spherical, columns)])
    references, index = _references(rows, mass, m, least)
    nearest = Neighbourhoods(references, copies, 0.0, sample.how.n_threads)
    length = math.sqrt(float(np.median(table.squared_norms(references))))
    # the coordinates of two rows are rounded, so that a distance has twice the error
    rounding = 2 * float(np.finfo(references.dtype).eps) * length
    cells = None if are_all else cells_of(references, sample.how.n_threads)
    found = Outliers(nearest, cells, math.inf, scales, columns, spherical, rounding)
    return found, numbers[index]


def _references(rows: Columns, mass: Array, m: int, least: float) -> tuple[Columns, Array]:
    """Return distinct rows in lexicographic order, with copies of heavy rows, and their indices.

    The first m of `rows` are a sample of distinct rows, and are all returned. A row of the sample
    is heavy if its mass is at least `TUNING.noise.neighbors` + 1 times the median mass. The
    remaining rows are drawn by weight. A drawn row is heavy if its mass is at least `least`; else
    it is left out.

    A heavy row is repeated so often that all its neighbors are copies of it. Its distance is then
    zero, and it is never noise. The indices are of `rows`, one for each returned row."""
    copies = TUNING.noise.neighbors + 1
    distinct, number = table.distinct_rows(rows)
    n = len(distinct)
    first = np.unique(number, return_index=True)[1]
    own, rest = (np.bincount(number[part], mass[part], n) for part in (slice(m), slice(m, None)))
    is_own = own > 0
    is_heavy = own * (1 + _SAME_MASS) >= copies * np.median(own[is_own])
    is_heavy |= ~is_own & (rest >= least)
    # light rows of the sample once, light drawn rows not at all
    index = np.repeat(np.arange(n), np.where(is_heavy, copies, is_own))
    return distinct[index], first[index]


def automatic_threshold(outliers: Outliers, own: Array, squares: Array, weight: Array) -> float:
    """Return the distance beyond which rows are noise. If there is no noise, no row is beyond it.

    `own` are squared distances of the sampled rows. `squares` are squared distances of all rows,
    with the weights `weight`.

    Two candidates are tried: a valley in the histogram of log distances of the sample, beyond the
    mode; then a wide gap before the largest distances of all rows. A candidate is taken if the rows
    beyond it are no cluster. At most `TUNING.noise.neighbors` rows are no cluster, because each row
    then has a neighbor that is not beyond the candidate. For more rows `_is_mixed` decides."""
    # squared distances of the sample that are no rounding errors, in rising order
    counted, rising = weight > 0, np.sort(own)
    zeros = np.searchsorted(np.sqrt(rising, dtype=np.float64), outliers.rounding, "right")
    rising = rising[zeros:]
    apart = np.sqrt(rising, dtype=np.float64)
    tuning, n = TUNING.noise, len(apart)
    most = int(min(tuning.most_share * n, tuning.least_share * n + tuning.gap_rows))
    # at most `most` rows are noise: the largest distances, down to the first that is no noise
    tail = squares[(squares >= rising[-1 - most]) & counted] if most else squares[:0]
    far = np.sqrt(np.unique(tail)[::-1], dtype=np.float64)  # copies of a row count once
    valley = _valley(np.log(apart), outliers.rounding)
    for border, distances in ((valley, apart), (_gap(far), far)):
        if border is None:
            continue
        are_few = len(np.unique(distances[distances > border])) <= tuning.neighbors
        if are_few or _is_mixed(replace(outliers, threshold=border), own):
            return border
    return math.sqrt(float(np.max(squares, initial=0, where=counted))) + outliers.rounding


def _valley(logs: Array, rounding: float) -> float | None:
    """Return the distance at the deepest valley of a density, beyond its mode, or None.

    `logs` are logarithms of distances, and the density is a kernel density estimate of them. If
    many distances are equal, the kernel is as wide as the steps between distinct distances.
    `rounding` is the difference up to which distances are equal. None: no valley is deep enough."""
    tuning = TUNING.noise
    if len(logs) < tuning.least_seen:
        return None
    lower, upper = np.quantile(logs, [0.25, 0.75])
    unit = max(1e-3, rounding / math.exp(lower))  # logarithms that differ by less are equal
    values, counts = np.unique(np.round(logs / unit), return_counts=True)
    if len(values) < 2:
        return None
    step = unit * float(np.median(np.repeat(np.diff(values), counts[:-1])))
    spread = min(float(logs.std()), float(upper - lower) / 1.34) or float(logs.std())
    width = max(0.9 * spread * len(logs) ** -0.2, step)  # Silverman's rule
    edges = np.linspace(logs.min() - 3 * width, logs.max() + 3 * width, tuning.bins + 1)
    counts, _ = np.histogram(logs, edges)
    bin_width = float(edges[1] - edges[0])
    smooth = gaussian_filter1d(1.0 * counts, width / bin_width, mode="constant")
    beyond = 1 - np.cumsum(counts) / len(logs)  # the share of the distances after each bin
    # the depth of a bin: by what share the density is below its maximum from the bin on
    after = np.maximum.accumulate(smooth[::-1])[::-1]
    depth = np.where(after > 0, 1 - smooth / np.where(after > 0, after, 1), 0)
    depth[(beyond < tuning.least_share) | (beyond > tuning.most_share)] = 0
    depth[: smooth.argmax() + 1] = 0
    if depth.max() < tuning.least_depth:
        return None
    deepest = np.flatnonzero(depth >= depth.max() - 1e-12)
    return math.exp(float(edges[deepest[len(deepest) // 2]] + bin_width / 2))


def _gap(far: Array) -> float | None:
    """Return the middle of the last wide gap in a falling list of distances, or None.

    A gap must be rare: even a tail as heavy as Cauchy's distribution seldom has it. In such a tail,
    the j largest distances are more than r times all other distances in one of r^j samples."""
    ratios = far[:-1] / far[1:]
    rare = np.arange(1, len(far)) * np.log(ratios) >= math.log(TUNING.noise.tail_samples)
    wide = np.flatnonzero(rare & (ratios >= TUNING.noise.least_ratio))
    return None if not len(wide) else math.sqrt(far[wide[-1]] * far[wide[-1] + 1])


def _is_mixed(noise: Outliers, own: Array) -> bool:
    """Return whether the rows beyond the threshold are noise rather than sparse clusters.

    Rows beyond the threshold are linked to their nearest neighbors that are beyond it, too. Linked
    rows form groups. A group is noise if enough of its neighbors are not beyond the threshold. A
    sparse cluster far from all other rows has no such neighbors. The result is True if most of the
    rows beyond the threshold are in groups of noise."""
    some = slice(None, None, -(-len(own) // TUNING.noise.group_rows))
    references = noise.nearest.landmarks[some]
    beyond = noise.are_beyond(own[some])
    if not beyond.any():
        return False
    nearest = replace(noise.nearest, landmarks=references)
    index = nearest.chosen(references[np.flatnonzero(beyond)])
    inside, number = ~beyond[index], np.cumsum(beyond) - 1  # number: index among the rows beyond
    row, place = np.nonzero(~inside)
    links = coo_array((np.ones(len(row)), (row, number[index[row, place]])), shape=[len(index)] * 2)
    group = connected_components(links, directed=False)[1]
    mixed = np.bincount(group, inside.mean(axis=1)) >= TUNING.noise.least_mixed * np.bincount(group)
    return bool(mixed[group].mean() >= TUNING.noise.mixed_part)


def share_threshold(
    outliers: Outliers, own: Array, squares: Array, weight: Array, share: float
) -> float:
    """Return a threshold such that rows beyond it have at most this share of the total weight.

    The rows beyond the threshold have as much weight as possible. Rows with equal distances are on
    one side of it. If no row may be beyond it, the threshold exceeds all distances. `own` are
    squared distances of the sample, and `squares` and `weight` are of all rows."""
    most = share * weight.sum() * (1 + _SAME_MASS)
    first = min(1.0, TUNING.noise.border_part * share)  # the sample says where the border may be
    for part in (first, 1.0):
        least = np.quantile(own, 1 - part, method="lower") if part < 1 else 0.0
        index = np.flatnonzero((squares >= least) & (weight > 0))
        index = index[np.argsort(-squares[index], kind="stable")]
        masses = np.cumsum(weight[index])
        if len(masses) and masses[-1] > most:
            break
    far = np.sqrt(squares[index], dtype=np.float64)
    # rows after which the threshold may lie: the next row is nearer, and the share is not exceeded
    ends = np.flatnonzero((far[:-1] - far[1:] > outliers.rounding) & (masses[:-1] <= most))
    if not len(ends):
        return float(far[0]) + outliers.rounding
    return float(far[ends[-1]] + far[ends[-1] + 1]) / 2

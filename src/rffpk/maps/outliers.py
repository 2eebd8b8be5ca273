"""Noise: rows that are farther from their nearest rows than others are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.sparse import csr_array, hstack

from rffpk._rows.sample import RowSample
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.narrow_rows import plain
from rffpk._utils.sparse_rows import (
    Columns,
    SparseRows,
    distinct_rows,
    each,
    sparse_rows,
    squared_norms,
)
from rffpk._utils.tiles import row_tiles
from rffpk.maps.neighbours import Neighbourhoods, unit_rows

# docs/noise.md has the trials behind these.
_NEIGHBOURS = 5  # A row's distance is that to so many other rows, of a sample.
_BINS = 512  # of the histogram of the logarithms of distances
_LEAST_DEPTH = 0.25  # of a valley of the histogram, below the lower of its two sides
_SHARES = (0.005, 0.35)  # of noise that is found, at least and at most
_RARE, _LEAST_RATIO = 1000, 3.0  # of a gap between the distances of fewer rows and the others
_LEAST_WIDTH = 1e-3  # of the kernel of the density
_LEAST_MIXED = 0.05  # mean share of other rows among the neighbours of noise

_ROUNDING = 8  # relative errors of the coordinates of a row that change a distance
_TILE_NUMBERS = 1 << 22  # of rows that are looked at together


@dataclass(frozen=True)
class Outliers:
    """Distances of rows to their nearest ones of a sample, beyond one of which rows are noise."""

    nearest: Neighbourhoods  # whose landmarks are the sample
    threshold: float
    scales: tuple[float, ...]  # by which the columns of the views are multiplied
    spherical: bool
    rounding: float  # Distances that differ by no more are equal.

    def distances(self, xs: list[Columns]) -> Array:
        """Of rows, to the last of their nearest other rows; (n,), float64."""
        found = np.empty(len(xs[0]))
        for rows in row_tiles(len(found), sum(x.shape[1] for x in xs), _TILE_NUMBERS):
            part = each(xs, lambda x: plain(x[rows]))
            found[rows] = self._distances(joined_views(part, self.scales, self.spherical))
        return found

    def _distances(self, X: Columns) -> Array:
        squares, _ = self.nearest._nearest(X)
        validation.check_overflow(float(squares.max()), squares.dtype)
        squares = np.sort(squares.astype(np.float64), axis=1)
        equal = squares[:, 0] == 0  # a row of the sample is none of its own neighbours
        return np.sqrt(np.where(equal, squares[:, -1], squares[:, max(squares.shape[1] - 2, 0)]))

    def scores(self, distances: Array) -> Array:
        """Between 0 and 1, 1/2 at the threshold."""
        if not self.threshold > 0:
            return np.where(distances > 0, 1.0, 0.0)
        ratio = (distances / self.threshold) ** 2
        return np.asarray(np.where(np.isfinite(ratio), 1 - 1 / (1 + ratio), 1.0))

    def are_noise(self, xs: list[Columns]) -> Array:
        """A mask of rows."""
        return self.distances(xs) > self.threshold


def joined_views(xs: list[Columns], scales: tuple[float, ...], spherical: bool) -> Columns:
    """The columns of all distinct views side by side."""
    views = list({id(x): x for x in xs}.values())
    if len(views) > 1:
        scaled = [
            scale * x.matrix if isinstance(x, SparseRows) else x * x.dtype.type(scale)
            for x, scale in zip(views, scales)
        ]
        if any(isinstance(x, SparseRows) for x in views):
            together = hstack([csr_array(x) for x in scaled], format="csr", dtype=views[0].dtype)
            views = [sparse_rows(together)]
        else:
            views = [np.hstack(scaled)]
    return unit_rows(views[0]) if spherical else views[0]


def outliers_of_sample(sample: RowSample, spherical: bool) -> Outliers:
    """Distances to a sample of the rows that count, without a threshold yet."""
    xs, weight = sample.some()
    views = {id(x): i for i, x in reversed([*enumerate(sample.xs)])}
    variances = [sample.moments(i).variance for i in sorted(views.values())]
    scales = tuple(1 / math.sqrt(v) if v > 0 else 1.0 for v in variances)
    references = joined_views(each(xs, plain), scales, spherical)
    if weight is not None:
        references = references[np.flatnonzero(weight)]
    references = distinct_rows(references)[0]
    nearest = Neighbourhoods(references, _NEIGHBOURS + 1, 0.0, sample.how.n_threads)
    length = math.sqrt(float(np.median(squared_norms(references))))
    rounding = _ROUNDING * float(np.finfo(references.dtype).eps) * length
    return Outliers(nearest, math.inf, scales, spherical, rounding)


def automatic_threshold(found: Outliers, distances: Array) -> float:
    """The distance from which rows are noise; none is beyond it if there is no noise.

    Noise is there if the histogram of the logarithms of the distances has a valley beyond its mode,
    or few rows are beyond a wide gap, and the rows beyond it are no cluster of their own.
    """
    apart = distances[distances > found.rounding]
    for border in (_valley(np.log(apart), found.rounding), _gap(apart)):
        if border is not None and _is_mixed(replace(found, threshold=border)):
            return border
    return float(distances.max(initial=0)) + found.rounding


def _valley(logs: Array, rounding: float) -> float | None:
    """The distance of the deepest valley of the density of these logarithms of distances beyond its
    mode; None if there is none."""
    if len(logs) < 2:
        return None
    low, middle = np.quantile(logs, [0.25, 0.75])
    spread = min(float(logs.std()), float(middle - low) / 1.34) or float(logs.std())
    resolved = max(_LEAST_WIDTH, rounding / math.exp(low))
    width = max(0.9 * spread * len(logs) ** -0.2, resolved)
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
    """The middle of the outermost gap of these distances that hardly any tail has; None if there is
    none. In a tail as heavy as Cauchy's, 1 / r, the distances of the j farthest rows are more than r
    times those of the others once in r^j times."""
    most = int(_SHARES[0] * len(distances)) + 1
    if most >= len(distances):
        return None
    far = np.sort(np.partition(distances, -most - 1)[-most - 1 :])[::-1]
    ratios = far[:-1] / far[1:]
    rare = np.arange(1, most + 1) * np.log(ratios) >= math.log(_RARE)
    wide = np.flatnonzero(rare & (ratios >= _LEAST_RATIO))
    return None if not len(wide) else math.sqrt(far[wide[-1]] * far[wide[-1] + 1])


def _is_mixed(noise: Outliers) -> bool:
    """Whether rows beyond the threshold have others among their neighbours: a sparse cluster that
    is far from all others has none."""
    references = noise.nearest.landmarks
    squares, index = noise.nearest._nearest(references)
    beyond = np.sort(squares, axis=1)[:, -1] > noise.threshold**2
    if not beyond.any():
        return False
    return float((~beyond[index[beyond]]).mean()) >= _LEAST_MIXED


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

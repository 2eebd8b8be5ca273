"""Noise: rows that are farther from their nearest rows than others are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.sparse import csr_array, hstack

from rffpk._rows.sample import RowSample
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.sparse_rows import Columns, SparseRows, distinct_rows, sparse_rows
from rffpk.maps.neighbours import Neighbourhoods, unit_rows

# docs/noise.md has the trials behind these.
_NEIGHBOURS = 5  # A row's distance is that to so many other rows, of a sample.
_BINS = 512  # of the histogram of the logarithms of distances
_LEAST_DEPTH = 0.25  # of a valley of the histogram, below the lower of its two sides
_SHARES = (0.005, 0.35)  # of noise that is found, at least and at most
_LEAST_MIXED = 0.05  # mean share of other rows among the neighbours of noise


@dataclass(frozen=True)
class Outliers:
    """Distances of rows to their nearest ones of a sample, beyond one of which rows are noise."""

    nearest: Neighbourhoods  # whose landmarks are the sample
    threshold: float
    scales: tuple[float, ...]  # by which the columns of the views are multiplied
    spherical: bool

    def distances(self, xs: list[Columns]) -> Array:
        """Of rows, to the last of their nearest other rows; (n,), float64."""
        squares, _ = self.nearest._nearest(joined_views(xs, self.scales, self.spherical))
        validation.check_overflow(float(squares.max(initial=0)), squares.dtype)
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
    scales = tuple(1 / math.sqrt(each) if each > 0 else 1.0 for each in variances)
    references = joined_views(xs, scales, spherical)
    if weight is not None:
        references = references[np.flatnonzero(weight)]
    references = distinct_rows(references)[0]
    nearest = Neighbourhoods(references, _NEIGHBOURS + 1, 0.0, sample.how.n_threads)
    return Outliers(nearest, math.inf, scales, spherical)


def automatic_threshold(found: Outliers, distances: Array) -> float:
    """The distance from which rows are noise; the largest one if there is no noise.

    Noise is there if the histogram of the logarithms of the distances has a valley beyond its
    mode, and the rows beyond it are no cluster of their own.
    """
    largest = float(distances.max(initial=0))
    logs = np.log(distances[distances > 0])
    valley = _valley(logs)
    if valley is None:
        return largest
    noise = Outliers(found.nearest, math.exp(valley), found.scales, found.spherical)
    if not _is_mixed(noise):
        return largest
    return noise.threshold


def _valley(logs: Array) -> float | None:
    """The deepest valley of the density of these numbers beyond its mode; None if there is none."""
    if len(logs) < 2 or not logs.max() > logs.min():
        return None
    low, middle = np.quantile(logs, [0.25, 0.75])
    spread = min(float(logs.std()), float(middle - low) / 1.34) or float(logs.std())
    width = 0.9 * spread * len(logs) ** -0.2
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
    return float(edges[deepest[len(deepest) // 2]] + bin_width / 2)


def _is_mixed(noise: Outliers) -> bool:
    """Whether rows beyond the threshold have others among their neighbours: a sparse cluster that
    is far from all others has none."""
    references = noise.nearest.landmarks
    squares, index = noise.nearest._nearest(references)
    beyond = np.sort(squares, axis=1)[:, -1] > noise.threshold**2
    if not beyond.any():
        return False
    return float((~beyond[index[beyond]]).mean()) >= _LEAST_MIXED


def trimmed_rows(distances: Array, weight: Array | None, share: float) -> Array:
    """A mask of the rows with the largest distances whose part of the weight is nearest to this
    share; of equal distances the first rows stay."""
    p = np.ones(len(distances)) if weight is None else weight.astype(np.float64)
    order = np.lexsort((-np.arange(len(p)), -distances))
    order = order[p[order] > 0]
    masses = np.r_[0.0, np.cumsum(p[order])]
    n = int(np.abs(masses - share * masses[-1]).argmin())
    trimmed = np.zeros(len(p), bool)
    trimmed[order[:n]] = True
    return trimmed


def share_threshold(distances: Array, trimmed: Array, weight: Array | None) -> float:
    """A distance between those of the rows that are trimmed and of the others that count."""
    counted = np.ones(len(distances), bool) if weight is None else weight > 0
    largest = float(distances[counted & ~trimmed].max(initial=0))
    return (largest + float(distances[trimmed].min(initial=math.inf))) / 2 if trimmed.any() else (
        largest
    )  # fmt: skip

"""Rows as weights of their nearest landmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags
from sklearn.utils.random import sample_without_replacement

from rffpk._data import validation
from rffpk._data.arrays import MOST_NEIGHBOURS, Array, Landmarks
from rffpk._data.passes import make_rows, one_pass, unshifted
from rffpk._data.tiles import row_tiles, run_all

# docs/math.md, section 17: random rows as landmarks lose clusters in background noise, and more
# than five passes of k-means gain nothing.
ROWS_A_LANDMARK, _PASSES = 20, 5

# Weights below this part of the largest of a row are zero: they would connect, by an amount that
# nothing resolves, what is disconnected.
_LEAST_WEIGHT = 1e-7

# Rows whose weights are made at a time where they are summed: some megabytes.
_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True)
class Neighbourhoods:
    """Rows as weights of the r nearest of m landmarks.

    z_j(x) is proportional to exp(-||x - c_j||^2 / (2 bandwidth)) for the r landmarks nearest to x,
    and zero for the others; the weights of a row sum to one.
    """

    landmarks: Array  # (m, d), distinct, in the dtype of the rows
    r: int
    bandwidth: float  # sigma^2; 0: all landmarks at the least distance weigh the same
    n_threads: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", min(self.r, len(self.landmarks)))

    def weights(self, X: Array) -> csr_matrix:
        """z of the rows of X, a sparse matrix (n, m) in their dtype. O(n m d) time."""
        squares, index = self._nearest(X)
        validation.check_overflow(float(squares.sum(dtype=np.float64)), X.dtype)
        z = _gaussian(squares, self.bandwidth).astype(X.dtype)
        ends = np.arange(0, z.size + 1, self.r)
        return csr_matrix((z.ravel(), index.ravel(), ends), shape=(len(X), len(self.landmarks)))

    def combinations(self, X: Array, matrix: Array) -> Array:
        """z(x) times a matrix (m, q), for all rows x of X: (n, q) in their dtype.

        In one pass, where the neighbors are not too many, without the limit of small weights.
        """
        mapped = self.mapped(matrix, X.dtype)
        if mapped is not None:
            features = unshifted(X, mapped, self.n_threads)
            validation.check_overflow(float(features.sum(dtype=np.float64)), X.dtype)
            return features
        features = np.empty((len(X), matrix.shape[1]), dtype=X.dtype)
        for block in row_tiles(len(X), 1, _BLOCK_ROWS):
            features[block] = self.weights(X[block]) @ matrix.astype(X.dtype, copy=False)
        return features

    def mapped(self, matrix: Array, dtype: Any) -> Landmarks | None:
        """What makes the combinations in passes; None where those do not weigh so many neighbors,
        or neighbors of bandwidth zero."""
        if self.r > MOST_NEIGHBOURS or self.bandwidth == 0:
            return None
        points, matrix = (np.ascontiguousarray(a, dtype=dtype) for a in (self.landmarks, matrix))
        return Landmarks(points, self.r, 1 / (2 * self.bandwidth), matrix)

    def sums(self, X: Array, weight: Array | None) -> tuple[Array, csr_matrix]:
        """sum_i p_i z_i, (m,), and sum_i p_i z_i z_i', a sparse matrix (m, m), in float64."""
        m = len(self.landmarks)
        first, second = np.zeros(m), csr_matrix((m, m))
        for block in row_tiles(len(X), 1, _BLOCK_ROWS):
            z = self.weights(X[block]).astype(np.float64)
            weighted = z if weight is None else diags(weight[block]) @ z
            first += np.asarray(weighted.sum(axis=0)).ravel()
            second = second + z.T @ weighted
        return first, second

    def mean_square(self, X: Array, weight: Array | None) -> float:
        """The mean squared distance of the rows of X to their r nearest landmarks."""
        squares, _ = self._nearest(X)
        means = squares.mean(axis=1, dtype=np.float64)
        mean = float(np.average(means, weights=weight))
        validation.check_overflow(mean, X.dtype)
        return mean

    def _nearest(self, X: Array) -> tuple[Array, Array]:
        """Squared distances (n, r) to the nearest landmarks, and the indices of these, rising."""
        index = np.sort(self._chosen(X), axis=1)

        def distances(rows: slice) -> Array:
            squares = np.empty((len(X[rows]), self.r), dtype=X.dtype)
            for j in range(self.r):
                difference = X[rows] - self.landmarks[index[rows, j]]
                squares[:, j] = np.einsum("id,id->i", difference, difference)
            return squares

        tiles = row_tiles(len(X), X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name later
            return np.concatenate(run_all(distances, tiles, self.n_threads)), index

    def _chosen(self, X: Array) -> Array:
        """The indices (n, r) of the nearest landmarks, in any order."""
        if self.r <= MOST_NEIGHBOURS:
            points = self.landmarks.astype(X.dtype, copy=False)
            mapped = Landmarks(points, self.r, 0.0, points[:, :0].copy())
            origin = np.zeros((1, 0), dtype=X.dtype)
            rows = make_rows([X], [mapped], None, self.n_threads, [origin[0]])
            return one_pass(rows, origin, -math.inf, want=("neighbours",))[1]["neighbours"]
        tiles = row_tiles(len(X), len(self.landmarks))
        return np.concatenate(run_all(lambda t: self._many(X[t]), tiles, self.n_threads))

    @np.errstate(over="ignore", invalid="ignore")
    def _many(self, X: Array) -> Array:
        """The same for more neighbors than the pass keeps: by ||c||^2 - 2 x'c about the mean
        landmark."""
        origin = self.landmarks.mean(axis=0)
        c = self.landmarks - origin
        compared = np.einsum("jd,jd->j", c, c) - 2 * (X - origin) @ c.T
        return np.argpartition(compared, self.r - 1, axis=1)[:, : self.r].astype(np.int32)


def _gaussian(squares: Array, bandwidth: float) -> Array:
    """exp(-squares / (2 bandwidth)), scaled so that rows sum to one; float64."""
    excess = squares.astype(np.float64) - squares.min(axis=1, keepdims=True)
    z = np.exp(-excess / (2 * bandwidth)) if bandwidth > 0 else 1.0 * (excess == 0)
    z[z < _LEAST_WEIGHT] = 0
    return z / z.sum(axis=1, keepdims=True)


def make_neighbourhoods(
    X: Array,
    weight: Array | None,
    m: int,
    r: int,
    spherical: bool,
    random: Any,
    n_threads: int,
) -> Neighbourhoods:
    """Neighbourhoods with m landmarks, centroids of a few passes of k-means over a sample of
    20 m rows, scaled to length one if `spherical`; or with all rows that differ where those, or
    those of the sample, are no more."""
    some, weight = _sample(X, weight, ROWS_A_LANDMARK * m, random)
    landmarks = np.unique(some, axis=0)
    if len(landmarks) > m:
        seeds = landmarks[random.choice(len(landmarks), m, replace=False)]
        landmarks = _k_means(some, weight, seeds, n_threads)
        landmarks = np.unique(unit_rows(landmarks) if spherical else landmarks, axis=0)
    found = Neighbourhoods(landmarks, r, 0.0, n_threads)
    return replace(found, bandwidth=found.mean_square(some, weight))


def _sample(X: Array, weight: Array | None, size: int, random: Any) -> tuple[Array, Array | None]:
    """So many random rows, drawn in proportion to their weights; all that count, with their
    weights, where those are no more."""
    if weight is None:
        if len(X) <= size:
            return X, None
        drawn = sample_without_replacement(len(X), size, random_state=random)
        return X[np.sort(drawn)], None
    counted = np.flatnonzero(weight)
    if len(counted) <= size:
        return X[counted], weight[counted]
    return X[np.sort(random.choice(len(X), size, p=weight / weight.sum()))], None


def _k_means(X: Array, weight: Array | None, centroids: Array, n_threads: int) -> Array:
    """Centroids after a few passes over the rows of X."""
    rows = make_rows([X], [None], weight, n_threads)
    theta = centroids.astype(np.float64) - rows.shift
    for _ in range(_PASSES):
        sums, _ = one_pass(rows, theta, -math.inf)
        theta = sums.centroids(theta, rows.dtype)
    return (theta + rows.shift).astype(X.dtype)


def unit_rows(X: Array) -> Array:
    """The rows of X scaled to length one; zeros stay."""
    largest = np.abs(X).max(axis=1, keepdims=True)  # so that squares do not overflow
    X = np.divide(X, largest, out=np.zeros_like(X), where=largest > 0)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.divide(X, lengths, out=X, where=lengths > 0)

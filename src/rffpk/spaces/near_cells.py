"""The nearest of many points to a row, looked for in the few cells of points that are near it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rffpk import _core
from rffpk.rows.arrays import Array
from rffpk.rows.table import centered_product
from rffpk.system.linalg import eigh
from rffpk.system.tuning import TUNING


@dataclass(frozen=True)
class NearCells:
    """Points grouped into cells: each point is in the cell of its nearest center."""

    centers: Array  # (c, q)
    order: Array  # (m,): indices of the points, cell by cell
    ends: Array  # (c + 1,): the points of cell j are order[ends[j]:ends[j + 1]]
    origin: Array | None  # (d,): the mean of the points; None: the points have few columns
    axes: Array | None  # (d, q): principal axes; None: the points have few columns
    points: Array | None  # (m, q): coordinates of the points along the axes

    def of(self, kept: Array) -> NearCells:
        """Return the cells with only the points that the mask `kept` (m,) marks."""
        there = kept[self.order]
        ends = np.r_[0, np.cumsum(there)][self.ends]
        order = (np.cumsum(kept) - 1)[self.order[there]]
        points = None if self.points is None else self.points[kept]
        return replace(self, order=order, ends=ends, points=points)

    def nearest(
        self, points: Array, X: Array, r: int, n_threads: int, visits: Array | None = None
    ) -> Array:
        """Return indices (n, r) of the points nearest to each row of X, the nearest point first.

        Only the cells near a row are searched. If these cells have fewer than r points, the last
        indices are -1. `visits` (n, p) are the cells to search for each row, if the rows of X are
        the points themselves. None: cells are searched whose centers are nearest."""
        if visits is not None:
            points = X = points if self.points is None else self.points
        elif self.points is not None:
            assert self.origin is not None and self.axes is not None
            points, X = self.points, centered_product(X, self.origin, self.axes, n_threads)
        if visits is None:
            tuning = TUNING.search
            p = tuning.cell_visits if r > tuning.few_neighbors else tuning.few_visits
            visits = _visits(self.centers, X, p, n_threads)
        return _found(points, self.centers, self.order, self.ends, X, visits, r, n_threads)


def near_cells(
    points: Array, k_means: Callable[[Array, Array], Array], n_threads: int
) -> tuple[NearCells, Array]:
    """Group points into cells. Return the cells, and for each point the nearest cells (m, p).

    `k_means` takes a sample of the points and initial centers, and returns the centers. Cells are
    given by their indices, the nearest cell first."""
    (m, d), tuning = points.shape, TUNING.search
    c = m // tuning.cell_points
    size = min(m, tuning.cell_sample * c)
    sample = points[np.sort(np.random.default_rng(0).choice(m, size, replace=False))]
    origin = axes = None
    # with many columns, cells and the search use coordinates along the leading principal axes,
    # which are the last, since eigenvalues rise
    if d > tuning.cell_columns:
        origin, last = sample.mean(axis=0), [d - tuning.cell_columns, d - 1]
        scatter = ((sample - origin).T @ (sample - origin)).astype(np.float64)
        axes = eigh(scatter, subset_by_index=last)[1].astype(sample.dtype)
        points = centered_product(points, origin, axes, n_threads)
        sample = centered_product(sample, origin, axes, n_threads)
    centers = k_means(sample, sample[np.linspace(0, len(sample) - 1, c).astype(int)])
    visits = _visits(centers, points, tuning.cell_visits, n_threads)
    order = np.argsort(visits[:, 0], kind="stable")
    ends = np.searchsorted(visits[order, 0], np.arange(c + 1))
    own = None if axes is None else points
    return NearCells(centers, order, ends, origin, axes, own), visits


def _visits(centers: Array, X: Array, p: int, n_threads: int) -> Array:
    """Return indices (n, p) of the p cells whose centers are nearest to each row, nearest first.

    If there are fewer than p cells, all cells are returned."""
    c = len(centers)
    # The centers are the points of a single cell, which all rows visit.
    mean, visits = centers.mean(axis=0, keepdims=True), np.zeros((len(X), 1), dtype=np.int32)
    return _found(centers, mean, np.arange(c), np.array([0, c]), X, visits, min(p, c), n_threads)


def _found(
    points: Array, centers: Array, order: Array, ends: Array, X: Array, visits: Array, r: int,
    n_threads: int,
) -> Array:  # fmt: skip
    """Return indices (n, r) of the nearest points in the cells that each row visits.

    `order` and `ends` are the fields of `NearCells`. `visits` (n, p) are the cells of each row.
    Distances are computed in the dtype of X."""
    points, centers = (a.astype(X.dtype, copy=False) for a in (points, centers))
    by_cell = np.argsort(visits[:, 0], kind="stable")  # rows of one cell follow each other
    return _core.nearest_in_cells(
        np.ascontiguousarray(X), centers, *_laid_out(points, centers, order, ends), visits, by_cell,
        r, n_threads,
    )  # fmt: skip


def _laid_out(
    points: Array, centers: Array, order: Array, ends: Array
) -> tuple[Array, Array, Array, Array]:
    """Return points less the centers of their cells, in the memory layout that the core reads.

    `order` and `ends` are the fields of `NearCells`.

    The results are: blocks of points c times -2, for ||c||^2 - 2 x'c, (n_blocks, d, size); squared
    norms (n_blocks, size); indices of the points (n_blocks, size); and where the blocks of each
    cell begin and end. Unused places have an infinite norm and the index -1."""
    size, d, counts = _core.CELL_BLOCK, points.shape[1], np.diff(ends)
    blocks = np.r_[0, np.cumsum(-(-counts // size))]  # each cell begins a block
    # the place of each point in `order` among the places of all blocks
    place = np.arange(len(order)) + np.repeat(size * blocks[:-1] - ends[:-1], counts)
    lines = np.zeros((size * blocks[-1], d), dtype=points.dtype)
    lines[place] = points[order] - np.repeat(centers, counts, axis=0)
    indices = np.full(len(lines), -1, dtype=np.int32)
    indices[place] = order
    norms = np.where(indices < 0, np.inf, np.einsum("id,id->i", lines, lines))
    squares = _aligned((blocks[-1], size), points.dtype)
    squares[:] = norms.reshape(squares.shape)
    packed = _aligned((blocks[-1], d, size), points.dtype)
    np.multiply(lines.reshape(-1, size, d).transpose(0, 2, 1), -2, out=packed)
    return packed, squares, indices.reshape(-1, size), blocks


def _aligned(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an uninitialized array whose memory begins at a cache line of 64 bytes."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 64, dtype=np.uint8)
    first = -memory.__array_interface__["data"][0] % 64
    return memory[first : first + size].view(dtype).reshape(shape)

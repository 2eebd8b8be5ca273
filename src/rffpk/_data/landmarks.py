"""Sums over rows of the weights of their nearest landmarks, from which the coordinates come."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rffpk._data.arrays import Array, Landmarks
from rffpk._data.passes import make_rows, one_pass
from rffpk._data.tiles import row_tiles

# Products of weights, of as many rows as have so many, that are in memory at a time: 8 MB.
_NUMBERS = 1 << 20


def landmark_sums(
    x: Array,
    landmarks: Landmarks,
    weight: Array | None = None,
    n_threads: int = 1,
    *,
    backend: str | None = None,
) -> tuple[Array, Array]:
    """Sums of the weights z_i of landmarks over rows i with weights p_i.

    Parameters
    ----------
    x : array (n, d)
    landmarks : Landmarks
        m of them, of the dtype of `x`; their coordinates are not used.
    weight : array (n,), optional
        Row weights p >= 0; one each by default.
    n_threads : int
        The bits of the sums do not depend on it.
    backend : {"core", "numpy"}, optional
        As of `one_pass`.

    Returns
    -------
    mass : float64 array (m,)
        sum_i p_i z_i.
    products : float64 array (m, m)
        sum_i p_i z_i z_i'.

    Notes
    -----
    O(n (m d + r^2)) time; O(m^2) memory and what blocks of rows take.
    """
    m, r = len(landmarks.points), landmarks.n_neighbours
    landmarks = replace(landmarks, coordinates=np.zeros((m, 0), dtype=x.dtype))
    origin = np.zeros((1, 0), dtype=x.dtype)
    mass, squares, products = np.zeros(m), np.zeros(m), np.zeros((m, m))
    first, second = np.triu_indices(r, 1)  # each pair of neighbours once
    for here in row_tiles(len(x), r * r, _NUMBERS):
        shift = [origin[0]]
        rows = make_rows([x[here]], [landmarks], None, n_threads, shift)
        out = one_pass(
            rows, origin, -math.inf, want=("neighbours", "neighbour_weights"), backend=backend
        )[1]
        at = out["neighbours"].astype(np.int64)
        z = out["neighbour_weights"].astype(np.float64)
        weighted = z if weight is None else z * np.asarray(weight[here], np.float64)[:, None]
        mass += np.bincount(at.ravel(), weighted.ravel(), m)
        squares += np.bincount(at.ravel(), (z * weighted).ravel(), m)
        pairs = at[:, first] * m + at[:, second]
        products += np.bincount(
            pairs.ravel(), (z[:, first] * weighted[:, second]).ravel(), m * m
        ).reshape(m, m)
    return mass, products + products.T + np.diag(squares)

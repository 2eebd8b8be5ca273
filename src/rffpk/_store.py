"""Fused or stored: when it pays to make the features of all rows once and keep them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rffpk import _config
from rffpk._stats import Rows

# Costs in multiply-adds times two at the rate of a large product. On Zen 4 and Zen 5, in both
# precisions, they were within a third of these; the decision is a matter of factors, not of those.
_READ = 48.0  # a number of a row, from memory
_SINCOS = 70.0
_STAGE = 3.0  # a line of a Walsh-Hadamard transform
_WEIGHT = 200.0  # a centroid's weight

# Storing must halve the time of a fit with this many passes over the rows.
EXPECTED_PASSES = 30


def pass_costs(rows: Rows, k: int) -> tuple[float, float]:
    """Model costs of a row in a fused pass and in one over stored features."""
    fused = 0.0
    for i, (x, omega) in enumerate(zip(rows.xs, rows.omegas)):
        fused += _READ * x.shape[1]
        structure = None if rows.structures is None else rows.structures[i]
        if omega is None:
            continue
        fused += _SINCOS * omega.shape[1]
        if structure is None:
            fused += 2.0 * omega.size
        else:
            blocks, _, p = structure[0].shape
            fused += _STAGE * 3 * blocks * p * math.log2(p)
    width = len(rows.shift)
    common = 4.0 * width * k + _WEIGHT * k
    return fused + common, _READ * width + common


def stored_bytes(rows: Rows) -> int:
    """Memory that the features of all rows take."""
    return rows.n * len(rows.shift) * rows.dtype.itemsize


def stored(rows: Rows) -> Rows:
    """The same rows with their features in place of what makes them."""
    views = range(len(rows.xs))
    return replace(
        rows, xs=[_features(rows, i) for i in views], omegas=[None] * len(views), structures=None
    )


def _features(rows: Rows, i: int) -> np.ndarray:
    """Features of view i, not shifted."""
    view = replace(
        rows,
        xs=[rows.xs[i]],
        omegas=[rows.omegas[i]],
        shifts=[np.zeros_like(rows.shifts[i])],
        alpha=np.ones(1),
        structures=None if rows.structures is None else [rows.structures[i]],
    )
    return view.features()


def cached(rows: Rows, k: int, cache: str | bool, memory_limit: int | None) -> tuple[Rows, bool]:
    """The rows as a fit should visit them, and whether their features are stored.

    Raises
    ------
    MemoryError
        If `cache` is True and the features take more than the limit.
    """
    if cache is False or all(omega is None for omega in rows.omegas):
        return rows, False
    if cache == "auto":
        fused, visit = pass_costs(rows, k)
        making = fused + 4 * _READ * len(rows.shift)
        if 2 * (EXPECTED_PASSES * visit + making) > EXPECTED_PASSES * fused:
            return rows, False
    limit = _config.available_memory() // 4 if memory_limit is None else memory_limit
    needed = stored_bytes(rows)
    if needed > limit:
        if cache == "auto":
            return rows, False
        raise MemoryError(
            f"cache=True takes {needed} bytes for the features of all rows, "
            f"memory_limit allows {limit}."
        )
    return stored(rows), True

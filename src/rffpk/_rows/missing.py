"""Which views rows have: a row lacks a view where all of its numbers there are NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk._utils.arrays import Array
from rffpk._utils.sparse_rows import Columns, SparseRows


def has_view(x: Columns) -> NDArray[np.bool_]:
    """A mask (n,) of the rows that have a view, whose rows have been checked."""
    if isinstance(x, SparseRows):  # which are finite
        return np.ones(len(x), dtype=bool)
    return ~np.isnan(x[:, 0])


def present_bits(xs: list[Columns], always: bool = False) -> NDArray[np.uint8] | None:
    """The views that rows have as bits, (n, ceil(L / 8)): bit l % 8 of byte l / 8; None, unless
    `always`, where all rows have all views."""
    masks = np.stack([has_view(x) for x in xs], axis=1)
    return np.packbits(masks, axis=1, bitorder="little") if always or not masks.all() else None


def present_views(bits: Array, n_views: int) -> NDArray[np.bool_]:
    """A mask (n, L) from these bits."""
    return np.unpackbits(bits, axis=1, count=n_views, bitorder="little").astype(bool)


def rows_with(x: Columns, weight: Array | None) -> tuple[Any, Array | None]:
    """The rows that have a view and their weights; the same arrays where all rows have it."""
    there = has_view(x)
    if there.all():
        return x, weight
    return x[there], None if weight is None else weight[there]


def coverage(there: list[Array], total: float, least: int) -> NDArray[np.float64] | None:
    """The share of the `total` weight of the rows that have each view, (L,), from their `there_of`;
    None where all rows have all views. Raises a ValueError if fewer than `least` have a view."""
    lacking, counts, weights = np.transpose(there)
    if not lacking.any():
        return None
    for view, count in enumerate(counts):
        if count < least:
            raise ValueError(
                f"X has view {view} of {count:.0f} rows with a positive sample_weight, must have "
                f"it of at least n_clusters == {least}: leave the view out."
            )
    return np.asarray(weights / total)


def there_of(x: Array, weight: Array | None) -> NDArray[np.float64]:
    """How many rows lack a view, how many with a weight have it, and the weight of these."""
    there = has_view(x)
    p = there.astype(np.float64) if weight is None else np.where(there, weight, 0)
    return np.array([len(x) - there.sum(), np.count_nonzero(p), p.sum()])

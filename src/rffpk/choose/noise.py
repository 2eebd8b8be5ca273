"""Rows that are left out of a fit: their weight is zero in all of its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rffpk.choose.outliers import (
    Outliers,
    automatic_threshold,
    outliers_of,
    share_threshold,
)
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto, is_option
from rffpk.rows.dask_collections import kind_of
from rffpk.rows.distinct import DistinctRows
from rffpk.rows.sample import Opened
from rffpk.system.report import warn


@dataclass(frozen=True)
class Noise:
    """Noise that a fit with the parameter `noise` has found before its search."""

    outliers: Outliers
    rows: Array  # (n,), a mask
    scores: Array | None  # (n,), of rows in memory

    def add_to(self, attributes: dict[str, Any]) -> None:
        """Add scores to the attributes of a fitted model; take memberships from noise."""
        if self.scores is not None:
            attributes["outlier_scores_"] = self.scores
        if "memberships_" in attributes:
            attributes["memberships_"][self.rows] = 0


def check_no_dask(X: Any) -> None:
    """Refuse a collection of Dask, whose rows are not compared."""
    if kind_of(X) == "dask":
        raise TypeError(
            "X is a Dask collection, but noise needs rows in memory or a source: pass its blocks "
            "as a source, or noise=None."
        )


def find_noise(
    noise: Auto | float, sample: Opened, distinct: DistinctRows | None, n_views: int,
    is_cosine: bool,
) -> Noise:  # fmt: skip
    """Find noise among the rows by the parameter `noise`, in their first `n_views` tables.

    Rows of a source, which `distinct` has seen, are read once."""
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
    own = squares[numbers]
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

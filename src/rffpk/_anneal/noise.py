"""Rows that are left out of a fit: their weight is zero in all of its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rffpk._rows.sample import RowSample, is_source, row_sample
from rffpk._rows.streams import make_stream
from rffpk._utils.arrays import Array
from rffpk._utils.dask_collections import is_dask
from rffpk._utils.validation import check_real, is_option
from rffpk.maps.outliers import (
    Outliers,
    automatic_threshold,
    outliers_of_sample,
    share_threshold,
    trimmed_rows,
)


@dataclass(frozen=True)
class Noise:
    """What a fit with the parameter `noise` found before its search."""

    outliers: Outliers
    rows: Array  # (n,), a mask
    scores: Array  # (n,)
    weight: Array | None  # of the rows that are left

    def add_to(self, attributes: dict[str, Any]) -> None:
        """Add what noise is to the attributes of a fitted model."""
        attributes |= {"outlier_scores_": self.scores, "_outliers": self.outliers}
        if "memberships_" in attributes:
            attributes["memberships_"][self.rows] = 0


def check_noise(noise: Any) -> None:
    """The parameter: None, "auto", or a share of the rows."""
    if noise is not None and not is_option(noise, "auto"):
        check_real(noise, "noise", 0, 1, include="neither", also="'auto' or None")


def find_noise(model: Any, X: Any, sample_weight: Any, random: Any) -> Noise | None:
    """Noise among the rows of X; None where the model has no parameter `noise`, or it is None."""
    noise = getattr(model, "noise", None)
    if noise is None:
        return None
    if is_dask(X):
        raise TypeError(
            "X is a Dask collection, but noise needs rows in memory or a source: pass its blocks "
            "as a source, or noise=None."
        )
    if getattr(model, "allow_missing_views", False):
        raise ValueError("noise needs all views of all rows: pass allow_missing_views=False.")
    sample = row_sample(model, X, sample_weight, None, 0, random)
    found = outliers_of_sample(sample, getattr(model, "metric", None) == "cosine")
    distances, weight = _distances(model, found, X, sample), sample.weight
    if is_option(noise, "auto"):
        counted = distances if weight is None else distances[weight > 0]
        found = replace(found, threshold=automatic_threshold(found, counted))
        rows = distances > found.threshold
    else:
        rows = trimmed_rows(distances, weight, float(noise))
        found = replace(found, threshold=share_threshold(distances, rows, weight))
        if weight is not None:
            rows |= (weight == 0) & (distances > found.threshold)
    left = weight
    if rows.any():
        left = np.where(rows, 0, np.ones(len(rows)) if weight is None else weight)
        if not left.any():
            raise ValueError(f"noise == {noise} removes all rows of positive weight.")
    return Noise(found, rows, found.scores(distances), left)


def _distances(model: Any, found: Outliers, X: Any, sample: RowSample) -> Array:
    """The distances of all rows, block by block where they are read."""
    if not is_source(X):
        return found.distances(sample.xs)
    stream = make_stream(X, sample.weight, lambda x, first: model._check_views(x, reset=False))
    return np.concatenate([found.distances(part.xs) for part in stream.blocks()])


def without_noise(model: Any, xs: list[Any], outputs: dict[str, Array]) -> dict[str, Array]:
    """The outputs of a pass of a fitted model over rows: noise has the label -1 and memberships of
    zero."""
    outliers = vars(model).get("_outliers")
    if outliers is None or not outputs.keys() & {"labels", "memberships"}:
        return outputs
    rows, outputs = outliers.are_noise(xs), dict(outputs)
    if "labels" in outputs:
        outputs["labels"] = np.where(rows, np.int32(-1), outputs["labels"])
    if "memberships" in outputs:
        outputs["memberships"][rows] = 0
    return outputs

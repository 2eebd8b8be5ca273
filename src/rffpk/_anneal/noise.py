"""Rows that are left out of a fit: their weight is zero in all of its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rffpk._rows.sample import RowSample
from rffpk._utils.arrays import Array
from rffpk._utils.dask_collections import is_dask
from rffpk._utils.validation import check_real, is_option

if TYPE_CHECKING:
    from rffpk.maps.outliers import Outliers


@dataclass(frozen=True)
class Noise:
    """What a fit with the parameter `noise` found before its search."""

    outliers: Outliers
    rows: Array  # (n,), a mask
    scores: Array  # (n,)

    def add_to(self, attributes: dict[str, Any]) -> None:
        """Add what noise is to the attributes of a fitted model."""
        attributes |= {"outlier_scores_": self.scores, "_outliers": self.outliers}
        if "memberships_" in attributes:
            attributes["memberships_"][self.rows] = 0


def check_noise(noise: Any) -> None:
    """The parameter: None, "auto", or a share of the rows."""
    if noise is not None and not is_option(noise, "auto"):
        check_real(noise, "noise", 0, 1, include="neither", also="'auto' or None")


def refuse_noise(model: Any, X: Any) -> None:
    """Raise an error if noise is looked for in rows of which not all are known."""
    if getattr(model, "noise", None) is None:
        return
    if is_dask(X):
        raise TypeError(
            "X is a Dask collection, but noise needs rows in memory or a source: pass its blocks "
            "as a source, or noise=None."
        )
    if getattr(model, "allow_missing_views", False):
        raise ValueError("noise needs all views of all rows: pass allow_missing_views=False.")


def find_noise(model: Any, sample: RowSample) -> Noise | None:
    """Noise among the rows; None where the model has no parameter `noise`, or it is None. Rows of a
    source are read once."""
    noise = getattr(model, "noise", None)
    if noise is None:
        return None
    from rffpk.maps.outliers import automatic_threshold, outliers_of_sample, share_threshold

    n_views = getattr(model, "_n_views", 0) or 1  # given ones: others are made of them
    found = outliers_of_sample(sample, n_views, getattr(model, "metric", None) == "cosine")
    parts = [sample.xs] if sample.stream is None else (p.xs for p in sample.stream.blocks())
    distances = np.concatenate([found.distances(xs) for xs in parts])
    weight = np.ones(sample.n) if sample.weight is None else sample.weight
    if is_option(noise, "auto"):
        threshold = automatic_threshold(found, distances[weight > 0])
    else:
        threshold = share_threshold(distances, weight, float(noise), found.rounding)
    found = replace(found, threshold=threshold)
    rows = distances > threshold
    if not weight[~rows].any():
        raise ValueError(f"noise == {noise} removes all rows of positive weight.")
    return Noise(found, rows, found.scores(distances))


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


def weight_left(model: Any, xs: list[Any], weight: Array | None) -> Array | None:
    """The weights of rows for a fitted model, where noise has none."""
    outliers = vars(model).get("_outliers")
    if outliers is None:
        return weight
    return np.where(outliers.are_noise(xs), 0.0, 1.0 if weight is None else weight)

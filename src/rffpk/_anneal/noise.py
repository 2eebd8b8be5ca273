"""Rows that are left out of a fit: their weight is zero in all of its steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rffpk._rows.sample import RowSample
from rffpk._utils.arrays import Array
from rffpk._utils.messages import warn
from rffpk._utils.validation import is_option
from rffpk.maps.outliers import (
    Outliers,
    automatic_threshold,
    outliers_of_sample,
    share_threshold,
)


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


def find_noise(model: Any, sample: RowSample) -> Noise:
    """Noise among the rows by the parameter `noise`. Rows of a source are read once."""
    noise = model.noise
    n_views = getattr(model, "_n_views", 0) or 1  # given ones: others are made of them
    found = outliers_of_sample(sample, n_views, getattr(model, "metric", None) == "cosine")
    parts = [sample.xs] if sample.stream is None else (p.xs for p in sample.stream.blocks())
    distances = np.concatenate([found.distances(xs) for xs in parts])
    weight = np.ones(sample.n) if sample.weight is None else sample.weight
    if is_option(noise, "auto"):
        threshold = automatic_threshold(found, distances[weight > 0])
    else:
        threshold = share_threshold(distances, weight, float(noise), found.rounding)
        if not (distances > threshold).any():
            warn(
                f"noise == {noise} takes no rows: the one farthest from others, with those that "
                "are equally far, has more than this share of the weight. Take a larger share.",
                UserWarning,
            )
    found = replace(found, threshold=threshold)
    rows = distances > threshold
    if not weight[~rows].any():
        raise ValueError(f"noise == {noise} removes all rows of positive weight.")
    return Noise(found, rows, found.scores(distances))

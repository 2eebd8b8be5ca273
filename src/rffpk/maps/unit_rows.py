"""Rows of length one, as spherical k-means has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from rffpk._utils.arrays import Array, Unit
from rffpk._utils.sparse_rows import Columns, SparseRows, unit_rows
from rffpk._utils.validation import check_choice, check_whitening

Metric = Literal["euclidean", "cosine"]


@dataclass(frozen=True)
class UnitRows:
    """Rows scaled to length one; zeros stay. Dense rows are scaled in the pass; sparse ones share
    all but their values with those that they are made of."""

    def _view(self, X: Columns) -> tuple[Columns, Unit | None]:
        if isinstance(X, SparseRows):
            return unit_rows(X), None
        return X, Unit(X.shape[1])


def check_metric(metric: Any, whitening: Any) -> None:
    """The parameters `metric` and `whitening`."""
    check_choice(metric, "metric", get_args(Metric))
    check_whitening(whitening)
    if metric == "cosine" and whitening is not None:
        raise ValueError(
            f"whitening == {whitening} with metric='cosine', must be None: whitened columns have "
            "other angles."
        )


def metric_map(model: Any, sample: Any, context: Any) -> list[Any]:
    """The map of the columns of a model of one view, by its `metric` and `whitening`, in a list."""
    if model.metric == "cosine":
        return [UnitRows()]
    if model.whitening is None:
        return [None]
    from rffpk.maps.whitening import whitened_view

    return [whitened_view(model.whitening, sample, 0, context)]


def unit_lines(x: Columns) -> Array:
    """Rows in memory, scaled to length one, in float64."""
    return unit_rows(x.astype("float64"))

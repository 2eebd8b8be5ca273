"""How passes of the hard rule are made: all conditions of what makes them faster, but for those of
directions (_rows/directions.py), which the last pass of a fit and `predict` ask, too."""

from __future__ import annotations

from typing import NamedTuple

from rffpk._anneal.search import MANY
from rffpk._rows.rows import Rows
from rffpk._rows.store import pass_costs
from rffpk._utils.arrays import Unit
from rffpk._utils.sparse_rows import SparseRows

# Bounds make passes faster from so many rows (`python -m bench.speed.bounds`), ...
LEAST_ROWS = 20_000
# ... and from a modelled cost of a row in a pass that is some times that of the operations on its
# bounds: with 50 columns and 10 clusters they do not.
_COST = 20_000.0

# Near centroids do from so many multiply-adds of a pass over all of many centroids.
LEAST_WORK = 1 << 28


class HardPlan(NamedTuple):
    """How passes over some rows are made, whatever number of centroids they have."""

    near: bool = False  # rows are compared with the centroids near their own, in most passes
    bounded: bool = False  # passes that settle leave out the rows whose labels bounds decide


def hard_plan(rows: Rows, most: int, learns_weights: bool) -> HardPlan:
    """The plan of a run that has at most so many centroids, with those that swaps add."""
    if learns_weights or not (rows.eta is None and rows.stream is None and rows.present is None):
        return HardPlan()
    columns = len(rows.xs) == 1 and isinstance(rows.maps[0], (Unit, type(None)))
    dense = columns and not isinstance(rows.xs[0], SparseRows)
    near = dense and most >= MANY and rows.n * most * len(rows.shift) >= LEAST_WORK
    large = most > 1 and rows.n >= LEAST_ROWS
    return HardPlan(near, large and pass_costs(rows, most)[0] >= _COST)

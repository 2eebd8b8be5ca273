"""The records of a fit: the objective, and the state that passes change.

Passes over features and passes with exact kernels use the same objective, which has no state. It
gets the view weights alpha from the state, and the total weight sum_i p_i from the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rffpk.anneal.hard_pass import Assignment
from rffpk.rows.arrays import Array, Fourier
from rffpk.rows.passes import some_features, view_variances
from rffpk.rows.rows import Rows
from rffpk.rows.sums import rounding_error, view_penalty, view_weights
from rffpk.rows.table import column_blocks, squared_distances
from rffpk.rows.weights import are_ones
from rffpk.system.tuning import TUNING

T = TypeVar("T")

Eta = Literal["mean", "median"]
FLOAT32_RANGE = (1e-30, 1e30)  # range of parameters, so that float32 holds them, too


class State(NamedTuple):
    """What a fit carries from pass to pass."""

    theta: Array  # (k, F), centroids less the shift; with exact kernels (k, n), weights of rows
    alpha: Array  # (L,), view weights
    start: int = 0  # index of the start
    passes: int = 0  # number of passes of the start, and of the stages after the best start
    hard: float = math.inf  # hard objective in the last pass
    assigned: Assignment | None = None  # labels and distances by which passes save work
    drawn: Array | None = None  # indices of the rows on which swaps are estimated
    products: Any = None  # (L, k, n), theta times each of the exact kernels
    best: State | None = None  # the best of the starts before


class Journal:
    """Makes the calls of a fit; the journal of a checkpoint also keeps their results in a file."""

    keeps = False

    def begin(self, history: Any, random: Any, rows: Any, *computed: Any) -> None:
        """Compare the rows with the rows of a checkpoint, before the first call."""

    def run(
        self, call: Callable[..., tuple[State, T]], state: State, *arguments: Any
    ) -> tuple[State, T]:
        """Call `call(state, *arguments)`; return the new state and the result of the call.

        This class only makes the call; `FileJournal` also records the result, or repeats it from a
        file. The result consists of numbers that JSON can hold. A fit decides by results, never by
        the state, which is out of date while results are repeated."""
        return call(state, *arguments)


class PowerMean:
    """The objective sum_i p_i M_s(d_i1, ..., d_ik) of one view, or of views of equal weight."""

    learns_weights = False  # whether the view weights are learned
    # lambda over sum_i p_i, where lambda is the weight of the entropy of the view weights
    weight_entropy: float = 0.0
    eta: Array | None = None  # reference distances of the typicality
    m: float = 0.0  # fuzzifier of the typicality
    coverage: Array | None = None  # as in `FitContext`

    def reweigh(self, costs: Array, constant: float, total_weight: float) -> Array:
        """Return new view weights (L,) from the costs (L,) of the views at the new centroids.

        The cost of view l is sum_ij p_i w_ij d'_ij,l. In `costs`, the weights w are divided by
        `constant`."""
        return view_weights(costs, constant, self.weight_entropy * total_weight, self.coverage)

    def penalty(self, alpha: Array, total_weight: float) -> float:
        """Return the penalty of the view weights, a term that is added to sum_i p_i M_s."""
        if not self.learns_weights:
            return 0.0
        return view_penalty(alpha, self.weight_entropy * total_weight, self.coverage)


@dataclass(frozen=True)
class WeightedViews(PowerMean):
    """The objective with learned view weights: eq. (20) of IP-RFF-MKPKM plus lambda log L.

    This constant makes the penalty >= 0. Without eta it is the objective of MKPK plus the constant.
    For rows that lack views see docs/math.md, section 19."""

    weight_entropy: float
    eta: Array | None = None  # (L,)
    m: float = 0.0
    coverage: Array | None = None  # (L,)

    learns_weights = True


# ---- reference distances: rows at this distance from a centroid have the typicality one half -----


def reference_distances(rows: Rows, eta: Eta | float) -> NDArray[np.float64]:
    """Return the reference distances eta_l of the views, (L,); see `Typicality`.

    A number `eta` is used for all views. With "mean", eta_l is the variance of view l. With
    "median", it is the median squared distance from the median point."""
    if not isinstance(eta, str):
        return np.full(len(rows.xs), float(eta))
    distances, rounding = view_variances(rows), rounding_error(rows.dtype)
    if eta == "median":
        # The median distance is zero up to rounding if most rows of a view are equal. Then the
        # variance takes its place.
        medians = _median_distances(rows.counted())
        distances = np.where(medians > rounding * distances, medians, distances)
    # Fourier features have length one, so the variance of equal rows is zero only up to rounding.
    least = [rounding * isinstance(mapped, Fourier) for mapped in rows.maps]
    return np.where(distances > least, distances, 1.0)  # for equal rows any number > 0 will do


def _median_distances(rows: Rows) -> NDArray[np.float64]:
    """Return, for each view, the weighted median of squared distances from the median point.

    The result (L,) is computed on evenly spaced rows. The median point of a view has the weighted
    median of each feature."""
    sample = rows.take(np.arange(0, rows.n, -(-rows.n // TUNING.sampling.median_rows)))
    medians = []
    for view in range(len(rows.xs)):
        rows_of_view = sample.view(view)
        features, weight = some_features(rows_of_view), rows_of_view.weight
        middle = [_median(part, weight).copy() for part in column_blocks(features)]
        distances = squared_distances(features, np.concatenate(middle))
        medians.append(_median(distances[:, None], weight)[0])
    return np.array(medians)


def _median(values: Array, weight: Array) -> Array:
    """Return the weighted medians (F,) of the columns of values (n, F).

    The median is the least value v such that values up to v have at least half of the weight."""
    if are_ones(weight):  # much faster than a sort
        middle = (len(values) - 1) // 2
        return np.partition(values, middle, axis=0)[middle]
    order = np.argsort(values, axis=0)
    # for each place in the sorted column, the weight of the values up to it
    below = np.cumsum(weight[order], axis=0, dtype=np.float64)
    places = (below < below[-1] / 2).sum(axis=0)
    return np.take_along_axis(values, np.take_along_axis(order, places[None], 0), 0)[0]

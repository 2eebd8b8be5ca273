"""A fit on one page: `fit`, for features of rows and for exact kernels.

A start is one run of the algorithm from its own initial centroids. A pass computes weights of the
rows and moves the centroids once; a stage is a sequence of passes at one exponent. A level is a
form of the rows in which centroids move: features of a sample or of all rows, principal components
of the features, or kernels.

No single start is best on all data: annealing from the critical exponent is best on most data sets
and poor on skewed ones, where k-means++ is good. So several are run, and the best result is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

from rffpk.anneal.records import State
from rffpk.anneal.schedule import FitContext, Plan, Result, StartEnd, anneal, cost_of_start
from rffpk.anneal.swaps import follow_with_swaps, improve, reach_far_rows
from rffpk.rows.rows import Rows
from rffpk.rows.sample import Opened


class Data(Protocol):
    """The rows of a fit, as features or as kernels, with the plan of the fit."""

    plan: Plan  # which starts run, and which stage ends the fit
    search: Any  # level of the starts
    patience: int  # consecutive failures that end swaps on larger samples; 0: no such swaps

    def first(self, start: int) -> State:
        """Return the state of a start at its initial centroids."""

    def settled(self, state: State, end: StartEnd) -> tuple[State, StartEnd]:
        """Make the last passes of the search, if starts and swaps have left them out."""
        return state, end

    def softened(self, state: State, end: StartEnd) -> tuple[Data, State, StartEnd]:
        """Make soft passes after a hard search; return the data for the passes that follow."""
        return self, state, end

    def later(self) -> list[Any]:
        """Return the levels after the search: larger samples, all rows, or the kernels."""

    def sample_of_far_rows(self, level: Any) -> Rows | None:
        """Return the rows of the starts; None if no row of a level can be far from them."""
        return None

    def result(
        self, level: Any, state: State, end: StartEnd, write: Callable[..., Any] | None
    ) -> Result:
        """Evaluate the centroids on all rows. `write`, if given, gets the labels."""


def fit(
    opened: Opened,
    prepare: Callable[[Opened, FitContext], Data],
    context: FitContext,
    write: Callable[..., Any] | None = None,
) -> Result:
    """Cluster opened rows."""
    # Tables become features, or kernels. The plan has the starts and the stages.
    data = prepare(opened, context)
    level, plan = data.search, data.plan
    # Each start lowers the exponent s of the power mean, stage by stage. The best start is kept.
    best: State | None = None
    ends, costs, passes = list[StartEnd](), list[float](), list[int]()
    for number, start in enumerate(plan.starts):
        least = min(costs, default=math.inf)
        state = data.first(number)._replace(start=number, best=best)
        state, end = anneal(level, state, start, least)
        state, cost = cost_of_start(level, state, start, end)
        best = state._replace(best=None) if cost < least or best is None else state.best
        ends, costs, passes = [*ends, end], [*costs, cost], [*passes, state.passes]
    assert best is not None
    context.history.add_starts(plan.starts, costs, passes, level.rows.n)
    kept = costs.index(min(costs))  # the first of equals
    state, end, cost = best, ends[kept], costs[kept]
    if math.isinf(end.s):  # plain k-means has no exponent: that of the last start
        end = end._replace(s=ends[-1].s)
    # Centroids of the best start are swapped, one by one or in batches, to leave local minima.
    if plan.swaps:
        state = improve(level, state, cost, plan.swaps)
    state, end = data.settled(state, end)
    # Memberships that stay soft have an exponent, which the clusters of the search suggest.
    if plan.soft_end is not None:
        data, state, end = data.softened(state, end)
        level = data.search
    # Larger samples follow, then all rows; or the kernels, after a search on their components.
    searched = end
    for following in data.later():
        state, known, level = level.leave(state), level, following
        stage = level.last_stage(data.plan.last(end.s), state)
        state, (last, _) = follow_with_swaps(level, state, stage, known, data.patience)
        end = data.plan.ended(searched, last.shift <= stage.tol)
    # Rows that no start has seen, far from all centroids, get centroids of their own.
    seen = data.sample_of_far_rows(level)
    if seen is not None:
        state, converged = reach_far_rows(level, state, data.plan.last(end.s), seen)
        end = end if converged is None else data.plan.ended(searched, converged)
    # All rows are labeled by their nearest centroids; costs and memberships are evaluated there.
    return data.result(level, state, end, write)

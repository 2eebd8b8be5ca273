"""The starts and the swaps of a search, from its parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import (
    FitContext,
    Plan,
    Schedule,
    Start,
    Until,
    from_merged_centroids,
    given_starts,
)
from rffpk.rows.draws import MANY
from rffpk.system.tuning import TUNING


@dataclass(frozen=True)
class SearchParameters:
    """The parameters of a search for centroids: numbers in place of words."""

    k: int  # the number of clusters; 1 if the fit finds the number
    start: float | None  # None: the critical exponent; -inf: no annealing
    factor: float | None  # None: adaptive, as in a Schedule
    passes: int | None  # passes at each exponent; None: until convergence
    end: float  # -inf: the hard rule
    until: Until
    swaps: int | None  # None: automatic, like n_init
    n_init: int | None  # number of starts
    init: Any
    sample: Any
    max_iter: int
    tol: float
    # whether no parameter sets where annealing begins, how fast it proceeds, or when it stops
    is_default: bool
    differs: bool  # whether the starts differ in kind
    ends_hard: bool  # whether the exponent falls to the hard rule

    def starts(self, critical: float, automatic: int) -> list[Start]:
        """Return the starts, whose schedules may depend on the critical exponent.

        `automatic` is the number of starts if `n_init` is None. If the starts differ in kind,
        plain k-means and annealing from a low exponent take turns, and the last start is slow
        annealing from the critical exponent.

        With given centroids and default annealing, a start begins at the final exponent. At higher
        exponents, the given centroids would be lost."""
        # exponents are negative, but `critical` may be 0 or 0.5
        start = min(-0.5, critical) if self.start is None else self.start
        if not isinstance(self.init, str) and self.is_default:
            start = self.end
        # only stages that end by convergence can adapt the factor
        fixed = self.factor is None and self.passes is not None
        schedule = Schedule(
            start=max(start, self.end),
            end=self.end,
            max_iter=self.max_iter,
            tol=self.tol,
            factor=TUNING.schedule.fixed_factor if fixed else self.factor,
            passes=self.passes,
            until=self.until,
        )
        if not self.differs:
            return given_starts(schedule, self.init, self.n_init or "auto")
        tuning, begin = TUNING.schedule, max(self.end, min(-5.0, 2 * critical))
        low = replace(schedule, start=begin, factor=tuning.fixed_factor, passes=2)
        plain, slow = replace(schedule, start=-math.inf), replace(schedule, noise=tuning.noise)
        others = [Start("low", low), Start("k-means++", plain)]
        count = self.n_init or automatic
        # `reversed`: "low" is always the second last
        return [*(others[i % 2] for i in reversed(range(count - 1))), Start("critical", slow)]

    def swaps_of(self, context: FitContext, automatic: bool) -> tuple[int, int]:
        """Return how many consecutive failures end the swaps, and the most centroids in a pass.

        The first number is 0 if there are no swaps. `automatic`: whether to swap if `swaps` is
        None. Many centroids are swapped in batches, which add centroids for some passes."""
        k, swaps = context.k, self.swaps
        if swaps is None:
            swaps = min(TUNING.swaps.automatic, TUNING.swaps.a_cluster * k) if automatic else 0
        swaps = swaps if k > 1 else 0
        return swaps, k + k // TUNING.swaps.first_part if swaps and k >= MANY else k


def search_plan(
    search: SearchParameters, context: FitContext, critical: float, objective: PowerMean
) -> Plan:
    """Return the plan of a search: its starts and its swaps.

    With enough clusters, starts that are not annealed begin at merged centroids. Learned view
    weights need more clusters for that. With typicality, and if the starts do not differ in kind,
    no start does."""
    starts = search.starts(critical, TUNING.starts.automatic)
    swaps, most = search.swaps_of(context, search.differs and search.ends_hard)
    many = context.k >= MANY  # then a single start is not annealed
    merges = many if objective.learns_weights else context.k >= TUNING.starts.some
    if merges and objective.eta is None and search.differs:
        starts = from_merged_centroids(starts, search.n_init is None, many)
    return Plan(starts, most, swaps, critical=critical)

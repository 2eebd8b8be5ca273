"""How a start is annealed: which exponent each stage takes, and when a start ends.

The records that plan a fit are here, too, and the context that its passes share.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from rffpk.anneal.convergence_warnings import Cause, Ending
from rffpk.anneal.records import Journal, State
from rffpk.rows.arrays import Array
from rffpk.rows.checks import is_option
from rffpk.rows.store import Storage
from rffpk.rows.sums import Step, is_hard
from rffpk.system.report import Progress
from rffpk.system.tuning import TUNING

Until = Literal["settled", "objective"]


@dataclass(frozen=True)
class Schedule:
    """How the exponent s falls, and when a run ends."""

    start: float  # -inf: begin with the hard rule
    end: float  # -inf: end in the hard rule
    max_iter: int
    tol: float
    factor: float | None = None  # s <- factor * s after a stage; None: adaptive
    passes: int | None = None  # passes of a stage; None: until it converges
    until: Until = "settled"
    noise: float = 0.0  # random displacement of the centroids before each stage
    exact: bool = True  # whether a hard end compares rows with all centroids, not with a few

    @property
    def ends_hard(self) -> bool:
        """Return whether a run ends with passes of k-means."""
        return math.isinf(self.end) and self.until == "settled"


@dataclass(frozen=True)
class Start:
    """One start of a search."""

    kind: str  # the name of the start in the history
    schedule: Schedule
    k_means_first: bool = False  # whether plain k-means runs before annealing
    merges: bool = False  # whether more centroids are drawn, and merged to k before the start


class Stage(NamedTuple):
    """Steps at one exponent, until centroids move by at most `tol` or `most` steps are made."""

    name: str  # the name of the stage in the history
    s: float
    noise: float = 0.0  # random displacement of the centroids before the first step
    tol: float = -1.0  # a distance in standard deviations of the features
    most: int = 1
    goal: float = math.inf  # on features: end early if the hard objective will not fall to this
    # the stage ends after a first step whose hard objective is outside of this range
    usual: tuple[float, float] = (-math.inf, math.inf)
    # whether the last passes compare rows with all centroids, if earlier passes use a few
    exact: bool = True
    second: bool = False  # whether the second nearest centroids are needed after the stage
    bounded: bool = False  # whether bounds of distances may decide the labels of rows


class StageEnd(NamedTuple):
    """The end of a stage."""

    last: Step
    steps: int


class StartEnd(NamedTuple):
    """The end of a start."""

    s: float  # the last soft exponent
    converged: bool
    dropped: bool = False  # ended early, because another start is better


@dataclass
class History:
    """The records of a fit: one for each pass, for each seeding, and for the end of each start."""

    records: list[dict[str, Any]] = field(default_factory=list)
    progress: Progress | None = None
    # A reported objective is unit * (objective + left_out). `left_out` is the part of the objective
    # that comes from features that the search leaves out.
    unit: float = 1.0
    left_out: float = 0.0

    def add_step(
        self, stage: Stage, step: Step, start: int, rows: int, alpha: Array,
        parts: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Add the record of a step, and report it to the progress.

        The step belongs to the start with the index `start`, was made over `rows` rows, and has
        the view weights `alpha` (L,). `parts` splits its time into named seconds."""
        record: dict[str, Any] = {
            "stage": stage.name,
            "start": start,
            "kept": True,  # `add_starts` corrects it
            "rows": rows,
            "s": stage.s,
            "objective": self.unit * (step.objective + self.left_out),
            "shift": step.shift,
            "distinct": step.distinct,
            "repairs": step.repairs,
            "kernel_weights": alpha,
            "seconds": step.seconds,
        }
        record |= parts or {}
        self.records.append(record)
        if self.progress is not None:
            self.progress.passed(record)

    def begin(self, n_starts: int, unit: float, left_out: float, later: list[int]) -> None:
        """Set that objectives are reported as `unit` * (objective + `left_out`).

        The progress gets the number of starts, and the numbers of rows of the levels `later`."""
        self.unit, self.left_out = unit, left_out
        if self.progress is not None:
            self.progress.n_starts, self.progress.later = n_starts, later

    def add_starts(
        self, starts: list[Start], costs: list[float], passes: list[int], n: int
    ) -> None:
        """Add a record for the end of each start; the first start of the least cost is kept.

        The starts ran over n rows, with these costs and numbers of passes. An infinite cost means
        that the start was dropped."""
        kept = costs.index(min(costs))
        for record in self.records:
            if "kept" in record:
                record["kept"] = record["start"] == kept
        for number, (start, cost) in enumerate(zip(starts, costs)):
            lost = "dropped" if math.isinf(cost) else "lost"
            self.records.append(
                {
                    "stage": "start",
                    "start": number,
                    "kind": start.kind,
                    "rows": n,
                    "passes": passes[number],
                    "objective": self.unit * (cost + self.left_out),
                    "outcome": "kept" if number == kept else lost,
                }
            )


@dataclass(frozen=True)
class FitContext:
    """What the steps of one fit share."""

    random: Any
    history: History = field(default_factory=History)
    n_threads: int = 1
    k: int = 0  # the number of clusters
    storage: Storage = field(default_factory=lambda: Storage("auto"))  # whether features are kept
    journal: Journal = field(default_factory=Journal)
    # (L,), the share of the rows that has each view; None: all rows have all views
    coverage: Array | None = None


class Level(Protocol):
    """Rows on which the centroids of a state move."""

    @property
    def rows(self) -> Any: ...
    @property
    def context(self) -> FitContext: ...

    def follow(self, state: State, stage: Stage) -> tuple[State, StageEnd]:
        """Make the passes of a stage; return the state and the end of the stage."""

    def cost(self, state: State, s: float) -> tuple[State, float]:
        """Return the state, and the objective at its centroids and the exponent s."""


def cost_of_start(level: Level, state: State, start: Start, end: StartEnd) -> tuple[State, float]:
    """Return the state, and the cost by which starts are compared.

    The cost is infinite if the start was dropped. Otherwise it is the objective at the final
    exponent, or in the hard limit if each start may end at a different exponent."""
    schedule, context, cost = start.schedule, level.context, math.inf
    if not end.dropped:
        s = schedule.end if schedule.until == "settled" else -math.inf
        state, cost = context.journal.run(level.cost, state, s)
    if context.history.progress is not None:
        context.history.progress.start_ended()
    return state, cost


def anneal(
    level: Level, state: State, start: Start, best: float = math.inf
) -> tuple[State, StartEnd]:
    """Make the stages of a start; `best` is the least cost at which another start ended."""
    schedule = start.schedule
    tol = schedule.tol if schedule.exact else max(schedule.tol, TUNING.schedule.coarse_tol)
    most, exact = schedule.max_iter, schedule.exact
    if start.k_means_first:
        first = Stage("k-means", -math.inf, tol=schedule.tol, most=most)
        state = converge(level, state, first)[0]
    if math.isfinite(schedule.start):
        state, end, left = _lower(level, state, schedule, best)
        if schedule.until == "settled" and end.converged:
            name, s = ("hard", -math.inf) if schedule.ends_hard else ("settle", end.s)
            last = Stage(name, s, tol=tol, most=left, exact=exact)
            state, converged, _ = converge(level, state, last)
            end = end._replace(converged=converged)
        return state, end
    last = Stage("hard", -math.inf, tol=tol, most=most, exact=exact)
    state, converged, left = converge(level, state, last)
    if math.isfinite(schedule.end) and converged:
        last = Stage("settle", schedule.end, tol=schedule.tol, most=left)
        state, converged, _ = converge(level, state, last)
    return state, StartEnd(schedule.end, converged)


def converge(level: Level, state: State, stage: Stage) -> tuple[State, bool, int]:
    """Make the passes of a stage.

    Return the state, whether the passes converged, and how many of `stage.most` are left."""
    if stage.most <= 0:
        return state, False, 0
    state, (last, steps) = level.follow(state, stage)
    return state, last.shift <= stage.tol, stage.most - steps


def _lower(
    level: Level, state: State, schedule: Schedule, best: float
) -> tuple[State, StartEnd, int]:
    """Make soft passes while the schedule lowers the exponent s.

    If `schedule` has no factor, s falls faster after short stages than after long stages. Passes
    end when s reaches its end, the memberships are nearly hard, or no passes are left. If
    `schedule.until` is "objective", they end when the objective has converged. The start is dropped
    if its nearly hard objective is hopelessly above `best`. Return the state, the end of the start,
    and how many passes are left."""
    s, left, objective, noise = schedule.start, schedule.max_iter, math.inf, schedule.noise
    tuning = TUNING.schedule
    factor = tuning.first_factor if schedule.factor is None else schedule.factor
    while True:
        # `settled`: the objective has converged, which ends the start
        most, settled = min(left, schedule.passes or tuning.stage_passes), False
        # only stages without a fixed number of passes may end early
        adapts = schedule.until == "settled" and schedule.passes is None
        stage = Stage("anneal", s, noise, tuning.stage_tol if adapts else -1.0, most)
        if schedule.until == "settled":
            state, (result, steps) = level.follow(state, stage)
        else:
            state, (result, steps), settled = _until_objective(
                level, state, stage, schedule.tol, objective
            )
        left, objective = left - steps, result.objective
        # noise separates centroids that coincide
        noise = max(schedule.noise, tuning.separation if result.merged else 0.0)
        # the soft sum approaches the hard sum from below as memberships become hard
        hard = math.isinf(schedule.end) and result.soft >= (1 - tuning.hardness) * result.hard
        if settled or (schedule.until == "settled" and (hard or s <= schedule.end)):
            return state, StartEnd(s, True), left
        nearly = schedule.ends_hard and result.soft >= tuning.nearly_hard * result.hard
        if nearly and result.hard + result.penalty > tuning.hopeless * best:
            return state, StartEnd(s, False, dropped=True), left
        if left <= 0:
            return state, StartEnd(s, False), 0
        # the powers move the factor away from one, or towards it
        if schedule.factor is None and steps <= tuning.quick_passes:
            factor = min(tuning.most_factor, factor**1.3)
        elif schedule.factor is None and steps >= tuning.slow_passes:
            factor = max(tuning.least_factor, factor**0.6)
        lower = max(factor * s, schedule.end)
        if is_hard(lower, level.rows.dtype):  # in this dtype no soft exponent is left
            return state, StartEnd(s, True), left
        s = lower


def _until_objective(
    level: Level, state: State, stage: Stage, tol: float, previous: float
) -> tuple[State, StageEnd, bool]:
    """Make the passes of a stage one by one, until the objective converges.

    The objective has converged if a pass changes it by at most `tol` times its value. `previous` is
    the objective before the stage. Return the state, the end of the stage, and whether the
    objective converged. Convergence ends the start. The schedules of the papers use this rule."""
    for steps in range(1, stage.most + 1):
        alone = stage._replace(noise=stage.noise if steps == 1 else 0.0, most=1)
        state, (result, _) = level.follow(state, alone)
        if abs(previous - result.objective) <= tol * result.objective:
            return state, StageEnd(result, steps), True
        previous = result.objective
    return state, StageEnd(result, steps), False


def from_merged_centroids(starts: list[Start], alone: bool, many: bool) -> list[Start]:
    """Replace starts by starts that begin at merged centroids.

    If `alone`, return one start. It is annealed from a low exponent, or not annealed if there are
    `many` clusters. If not `alone`, only the starts that are not annealed are replaced."""
    if not alone:
        return [
            replace(each, kind="merged", merges=True) if math.isinf(each.schedule.start) else each
            for each in starts
        ]
    [low] = [each.schedule for each in starts if each.kind == "low"]
    start = -math.inf if many else low.start
    # after a hard end swaps move many centroids, so that the end need not be exact
    schedule = replace(low, start=start, exact=not low.ends_hard)
    return [Start("merged", schedule, merges=True)]


def nearly_hard_exponent(totals: Callable[[float], tuple[float, float]], dtype: Any) -> float:
    """Return the first exponent of a falling sequence at which the memberships are nearly hard.

    Annealing would end there. The last exponent is returned if there is none. `totals` takes an
    exponent, and returns two objectives at fixed centroids: the sum of the power means without
    their constant, and the hard objective."""

    def is_nearly_hard(s: float) -> bool:
        soft, hard = totals(s)
        return hard > 0 and soft >= (1 - TUNING.schedule.hardness) * hard

    exponents = [-1.0]
    while not is_hard(1.2 * exponents[-1], dtype):
        exponents.append(1.2 * exponents[-1])
    return exponents[bisect_left(exponents, True, hi=len(exponents) - 1, key=is_nearly_hard)]


# ---- the starts that parameters define -----------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The starts and swaps that an estimator runs."""

    starts: list[Start]
    most: int  # the largest number of centroids, with the centroids that swaps add
    swaps: int = 0  # swaps end after this many consecutive failures; 0: no swaps
    unit: float = 1.0  # objectives are multiplied by it when they are reported
    critical: float = 0.0  # the critical exponent
    fresh: bool = True  # whether stages after the search have `max_iter` passes of their own
    lowered_by: str = "annealing.end"  # the parameter that lowers the last exponent
    # The plan of passes at a finite exponent after a search with a hard end, from the critical
    # exponent and the exponent of memberships.
    soft_end: Callable[[float, float], Plan] | None = None

    @property
    def schedule(self) -> Schedule:
        """Return the schedule of the last start; all starts end alike."""
        return self.starts[-1].schedule

    def last(self, s: float) -> Stage:
        """Return the stage that ends a fit, at the exponent s if memberships stay soft."""
        schedule = self.schedule
        name, s = ("hard", -math.inf) if schedule.ends_hard else ("settle", s)
        return Stage(name, s, tol=schedule.tol, most=schedule.max_iter, bounded=True)

    def ended(self, end: StartEnd, converged: bool) -> StartEnd:
        """Return the end of a fit, from the end of its start and its last passes.

        `converged` says whether the last passes converged. These passes do not lower s. So the
        start must have reached its final exponent, too. Only a hard end with `fresh` passes does
        not need that."""
        reached = (self.fresh and self.schedule.ends_hard) or end.converged
        return end._replace(converged=converged and reached)


@dataclass(frozen=True)
class Result:
    """A fit, evaluated on all rows."""

    attributes: dict[str, Any]  # attributes of the fitted model
    end: StartEnd
    ending: Ending  # how many clusters have rows and differ
    causes: list[Cause]  # why clusters may be missing
    data: Any  # the rows with their features or kernels, and the objective
    rows: Any  # all rows, with the learned view weights


def given_starts(schedule: Schedule, init: Any, n_init: Any, automatic: int = 1) -> list[Start]:
    """Return `n_init` equal starts; only one if `init` is not the name of a method.

    `automatic` is the number of starts if `n_init` is "auto"."""
    count = automatic if is_option(n_init, "auto") else int(n_init)
    return [Start("given", schedule, is_option(init, "k-means"))] * (
        count if isinstance(init, str) else 1
    )

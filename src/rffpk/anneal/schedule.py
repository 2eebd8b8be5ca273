"""How a start is annealed: which exponent each stage takes, and when a start ends.

The records that plan a fit are here, too, and what the passes of a fit share.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rffpk.anneal.convergence_warnings import Cause, Ending
from rffpk.anneal.records import Journal, State
from rffpk.rows.arrays import Array
from rffpk.rows.checks import is_option
from rffpk.rows.draws import MANY
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
    exact: bool = True  # whether rows end at the nearest of all centroids, by the hard rule

    @property
    def ends_hard(self) -> bool:
        """Return whether a run ends with passes of k-means."""
        return math.isinf(self.end) and self.until == "settled"


@dataclass(frozen=True)
class Start:
    """One start of a search."""

    kind: str
    schedule: Schedule
    k_means_first: bool = False
    merges: bool = False  # whether it begins at more centroids, which are merged


class Stage(NamedTuple):
    """Steps at one exponent, until centroids move by at most `tol` or `most` steps are made."""

    name: str  # as the history has it
    s: float
    noise: float = 0.0  # random displacement of the centroids before the first step
    tol: float = -1.0  # in standard deviations of the features
    most: int = 1
    goal: float = math.inf  # over features: it ends if the hard objective will not fall to this
    # the stage ends after a first step whose hard objective is outside of this range
    usual: tuple[float, float] = (-math.inf, math.inf)
    # whether it ends with passes over all centroids where rows are compared with few at first
    exact: bool = True
    second: bool = False  # whether the second nearest centroids are needed after it
    bounded: bool = False  # whether bounds may decide the labels of rows


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
    unit: float = 1.0  # objectives are multiplied by it when they are reported, ...
    left_out: float = 0.0  # ... after this part is added, of features that the search leaves out

    def add_step(
        self, stage: Stage, step: Step, start: int, rows: int, alpha: Array,
        parts: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Record a step of a start with the view weights alpha, and report it.

        The step was over `rows` rows. `parts` are parts of its seconds."""
        record: dict[str, Any] = {
            "stage": stage.name,
            "start": start,
            "kept": True,
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
        """Set the scale of objectives, and for the progress the sizes of the levels `later`."""
        self.unit, self.left_out = unit, left_out
        if self.progress is not None:
            self.progress.n_starts, self.progress.later = n_starts, later

    def add_starts(
        self, starts: list[Start], costs: list[float], passes: list[int], n: int
    ) -> None:
        """Record the ends of all starts over n rows; the first of the least cost is kept."""
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

    def restore(self, records: list[dict[str, Any]]) -> None:
        """Set records that were written as JSON."""
        self.records[:] = records
        for record in self.records:
            if "kernel_weights" in record:
                record["kernel_weights"] = np.array(record["kernel_weights"])


@dataclass(frozen=True)
class FitContext:
    """What the steps of one fit share."""

    random: Any
    history: History = field(default_factory=History)
    n_threads: int = 1
    k: int = 0  # the number of clusters
    storage: Storage = field(default_factory=lambda: Storage("auto"))  # of features
    journal: Journal = field(default_factory=Journal)
    # (L,), the share of the rows that has each view; None: all have all
    coverage: NDArray[np.float64] | None = None

    @property
    def many(self) -> bool:
        """Whether so many are sought that a start alone is not annealed, nor one swapped alone."""
        return self.k >= MANY


class Level(Protocol):
    """Rows on which the centroids of a state move."""

    @property
    def rows(self) -> Any: ...
    @property
    def context(self) -> FitContext: ...

    def follow(self, state: State, stage: Stage) -> tuple[State, StageEnd]:
        """Make the passes of a stage."""

    def cost(self, state: State, s: float) -> tuple[State, float]:
        """Return the objective at the centroids of a state."""


def cost_of_start(level: Level, state: State, start: Start, end: StartEnd) -> tuple[State, float]:
    """Return the cost by which starts are compared; infinite if the start was dropped.

    It is the objective at the final exponent, or in the hard limit if each start may end at a
    different exponent."""
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
    """Make the passes of a stage; return whether they converged, and how many passes are left."""
    if stage.most <= 0:
        return state, False, 0
    state, (last, steps) = level.follow(state, stage)
    return state, last.shift <= stage.tol, stage.most - steps


def _lower(
    level: Level, state: State, schedule: Schedule, best: float
) -> tuple[State, StartEnd, int]:
    """Make soft passes while s is lowered by the schedule.

    Return their end, and how many passes are left."""
    s, left, objective, noise = schedule.start, schedule.max_iter, math.inf, schedule.noise
    tuning = TUNING.schedule
    factor = tuning.first_factor if schedule.factor is None else schedule.factor
    while True:
        most, settled = min(left, schedule.passes or tuning.stage_passes), False
        is_short = schedule.until == "settled" and schedule.passes is None
        stage = Stage("anneal", s, noise, tuning.stage_tol if is_short else -1.0, most)
        if schedule.until == "settled":
            state, (result, steps) = level.follow(state, stage)
        else:
            state, (result, steps), settled = _until_objective(
                level, state, stage, schedule.tol, objective
            )
        left, objective = left - steps, result.objective
        noise = max(schedule.noise, tuning.separation if result.merged else 0.0)
        hard = math.isinf(schedule.end) and result.soft >= (1 - tuning.hardness) * result.hard
        if settled or (schedule.until == "settled" and (hard or s <= schedule.end)):
            return state, StartEnd(s, True), left
        nearly = schedule.ends_hard and result.soft >= tuning.nearly_hard * result.hard
        if nearly and result.hard + result.penalty > tuning.hopeless * best:
            return state, StartEnd(s, False, dropped=True), left
        if left <= 0:
            return state, StartEnd(s, False), 0
        if schedule.factor is None and steps <= tuning.quick_passes:
            factor = min(tuning.most_factor, factor**1.3)
        elif schedule.factor is None and steps >= tuning.slow_passes:
            factor = max(tuning.least_factor, factor**0.6)
        lower = max(factor * s, schedule.end)
        if is_hard(lower, level.rows.dtype):
            return state, StartEnd(s, True), left
        s = lower


def _until_objective(
    level: Level, state: State, stage: Stage, tol: float, previous: float
) -> tuple[State, StageEnd, bool]:
    """Make the passes of a stage of the papers, one by one.

    Return its end, and whether the objective converged and thereby ends the start."""
    for steps in range(1, stage.most + 1):
        alone = stage._replace(noise=stage.noise if steps == 1 else 0.0, most=1)
        state, (result, _) = level.follow(state, alone)
        if abs(previous - result.objective) <= tol * result.objective:
            return state, StageEnd(result, steps), True
        previous = result.objective
    return state, StageEnd(result, steps), False


def from_merged_centroids(starts: list[Start], alone: bool, many: bool) -> list[Start]:
    """Return the starts; a start that is not annealed begins at merged centroids.

    `alone`: there is one start, from a low exponent or, of `many` clusters, not annealed. It
    does not quite converge, as many centroids are moved after it."""
    if not alone:
        return [
            replace(each, kind="merged", merges=True) if math.isinf(each.schedule.start) else each
            for each in starts
        ]
    [low] = [each.schedule for each in starts if each.kind == "low"]
    start = -math.inf if many else low.start
    schedule = replace(low, start=start, exact=not low.ends_hard)
    return [Start("merged", schedule, merges=True)]


def nearly_hard_exponent(totals: Callable[[float], tuple[float, float]], dtype: Any) -> float:
    """Return the exponent at which annealing would end at centroids.

    `totals` returns sum M' and the hard objective at an exponent."""

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
    most: int  # centroids, with the centroids that swaps add
    swaps: int = 0  # swaps end after this many failures in a row; 0: no swaps
    unit: float = 1.0  # objectives are multiplied by it when they are reported
    critical: float = 0.0  # the critical exponent
    fresh: bool = True  # whether passes after the search have `max_iter` passes of their own
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
        """Return the end of a fit whose last passes have converged, or have not.

        These passes do not lower s, so a final exponent that was not reached stays so."""
        reached = (self.fresh and self.schedule.ends_hard) or end.converged
        return end._replace(converged=converged and reached)


@dataclass(frozen=True)
class Result:
    """A fit, evaluated on all rows."""

    attributes: dict[str, Any]  # of the fitted model
    end: StartEnd
    ending: Ending  # which clusters have rows, and can be told apart
    causes: list[Cause]  # why clusters may be missing
    data: Any  # the rows with their features or kernels, and the objective
    rows: Any  # all rows, with the learned view weights


def given_starts(schedule: Schedule, init: Any, n_init: Any, automatic: int = 1) -> list[Start]:
    """Return `n_init` starts of one kind; one start if `init` is not the name of a method.

    `automatic`: their number for "auto"."""
    count = automatic if is_option(n_init, "auto") else int(n_init)
    return [Start("given", schedule, is_option(init, "k-means"))] * (
        count if isinstance(init, str) else 1
    )

"""Which exponent each step of a start takes, and when the start ends.

A start is one run of the algorithm from its own initial centroids. A step computes weights and
moves the centroids once; a stage is a sequence of steps at one exponent. The course of a start is a
generator that yields the next stage and is sent its end. The caller holds the rows, so that
passes over features and products with exact kernels follow the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

from rffpk._data.sums import is_hard

# The words of parameters, which annotations and checks share.
Hard = Literal["hard"]
Stop = Literal["annealed", "objective"]

# Annealing ends when 1 - sum M' / sum d_min, the relative difference of the power mean and the
# minimum, is at most this. Merged centroids give log(k)/|s|, so they do not end it early.
HARDNESS = 1e-3

# The adaptive schedule. A stage ends when the centroids move by less than _STAGE_TOL in a pass, or
# after _STAGE_PASSES passes. The factor between exponents grows after stages of at most _QUICK
# passes and shrinks after stages of at least _SLOW, as happens where centroids separate. Centroids
# that have become equal never separate by themselves: if some are equal, all are moved at random by
# _SEPARATION of the features' standard deviation before the next stage; slow starts move them by
# NOISE before each stage.
_STAGE_TOL, _STAGE_PASSES, NOISE, _SEPARATION = 3e-3, 10, 0.02, 1e-5
_LEAST_FACTOR, _FIRST_FACTOR, _MOST_FACTOR = 1.05, 1.2, 1.5
_QUICK, _SLOW = 2, 5

_COARSE_TOL = 1e-2  # of a start whose centroids are then moved in batches

# If sum M' is at least this fraction of sum d_min, sum d_min is within 0.5 % of its final value (on
# eight data sets); a start that is then 2 % above the best one will not become the best.
_NEARLY_HARD, _HOPELESS = 0.99, 1.02


@dataclass(frozen=True)
class Schedule:
    """How the exponent s falls, and when a run ends."""

    s0: float
    s_final: float  # -inf: end in the hard rule
    max_iter: int
    tol: float
    factor: float | None = None  # s <- factor * s after a stage; None: adaptive
    every: int | None = None  # passes of a stage; None: until it converges
    stop: Stop = "annealed"
    noise: float = 0.0  # random displacement of the centroids before each stage

    @property
    def ends_hard(self) -> bool:
        return math.isinf(self.s_final) and self.stop == "annealed"


@dataclass(frozen=True)
class Start:
    """One start of a search."""

    kind: str
    schedule: Schedule
    k_means_first: bool = False


class Stage(NamedTuple):
    """Steps at one exponent, each of which computes weights and then new centroids, until the
    centroids move by at most `tol` in a step, or `most` steps are made. Over features they also end
    if the hard objective will not fall to `goal`."""

    name: str  # as the history has it
    s: float
    noise: float = 0.0  # random displacement of the centroids before the first step
    tol: float = -1.0  # in standard deviations of the features
    most: int = 1
    goal: float = math.inf

    def is_over(self, steps: int, shift: float) -> bool:
        """Whether the last of so many steps, in which the centroids moved by `shift`, ends it."""
        return steps >= self.most or shift <= self.tol


class StepResult(NamedTuple):
    """The result of a step. Costs are those at the centroids before it; none is negative."""

    soft: float  # sum p M', and ...
    hard: float  # ... sum p d_min; soft / hard tends to one as s falls
    objective: float  # sum p M_s plus the penalty
    penalty: float  # of the view weights
    shift: float  # root mean square shift of the centroids, in standard deviations of the features
    distinct: int  # number of centroids that do not coincide
    merged: bool  # whether some coincide
    repairs: int  # number of centroids of empty clusters that were moved


class StageEnd(NamedTuple):
    """The end of a stage."""

    last: StepResult
    steps: int


@dataclass
class Result:
    """The end of one run."""

    s: float  # the last soft exponent
    converged: bool
    dropped: bool = False  # ended early, because another start is better


T = TypeVar("T")
Course = Generator[Stage, StageEnd, T]


def portfolio(schedule: Schedule, critical: float, n_init: int) -> list[Start]:
    """`n_init` starts, fast ones first: plain k-means and annealing from a low exponent in turn,
    and as the last one slow annealing from the critical exponent."""
    lowest = schedule.s_final
    slow = replace(schedule, s0=max(lowest, min(-0.5, critical)), noise=NOISE)
    low = replace(schedule, s0=max(lowest, min(-5.0, 2 * critical)), factor=1.1, every=2)
    plain = replace(schedule, s0=-math.inf)
    others = [Start("low", low), Start("k-means++", plain)]
    return [*(others[i % 2] for i in reversed(range(n_init - 1))), Start("critical", slow)]


def coarse_start(schedule: Schedule) -> Start:
    """Plain k-means, not quite to convergence: what follows moves many centroids."""
    tol = max(schedule.tol, _COARSE_TOL)
    return Start("k-means++", replace(schedule, s0=-math.inf, tol=tol))


def course(start: Start, best: Callable[[], float], dtype: Any) -> Course[Result]:
    """The course of a start. `best` returns the least cost at which another start has ended."""
    schedule = start.schedule
    if start.k_means_first:
        yield from _settling("k-means", -math.inf, schedule.tol, schedule.max_iter)
    if math.isfinite(schedule.s0):
        return (yield from _annealing(schedule, best, dtype))
    converged, left = yield from _settling("hard", -math.inf, schedule.tol, schedule.max_iter)
    if math.isfinite(schedule.s_final) and converged:
        converged, _ = yield from _settling("settle", schedule.s_final, schedule.tol, left)
    return Result(schedule.s_final, converged)


def _settling(name: str, s: float, tol: float, left: int) -> Course[tuple[bool, int]]:
    """Steps at one exponent until convergence; returns whether it came within `left` steps, and
    how many of these are left."""
    if left <= 0:
        return False, 0
    last, steps = yield Stage(name, s, 0.0, tol, left)
    return last.shift <= tol, left - steps


def _annealing(schedule: Schedule, best: Callable[[], float], dtype: Any) -> Course[Result]:
    """Lower s by the schedule, then iterate with the hard rule or at `s_final` to convergence."""
    end, left = yield from _lowering(schedule, best, dtype)
    if schedule.stop == "annealed" and end.converged:
        stage, s = ("hard", -math.inf) if schedule.ends_hard else ("settle", end.s)
        end.converged, _ = yield from _settling(stage, s, schedule.tol, left)
    return end


def _lowering(
    schedule: Schedule, best: Callable[[], float], dtype: Any
) -> Course[tuple[Result, int]]:
    """The soft steps; returns their end, and how many steps are left."""
    s, left, objective, noise = schedule.s0, schedule.max_iter, math.inf, schedule.noise
    factor = _FIRST_FACTOR if schedule.factor is None else schedule.factor
    while True:
        result, steps, settled = yield from _stage(schedule, s, left, objective, noise)
        left, objective = left - steps, result.objective
        noise = max(schedule.noise, _SEPARATION if result.merged else 0.0)
        if settled or (schedule.stop == "annealed" and _is_over(result, s, schedule)):
            return Result(s, True), left
        if _is_hopeless(result, best(), schedule):
            return Result(s, False, dropped=True), left
        if left <= 0:
            return Result(s, False), 0
        if schedule.factor is None:
            factor = _next_factor(factor, steps)
        lower = max(factor * s, schedule.s_final)
        if is_hard(lower, dtype):
            return Result(s, True), left
        s = lower


def _stage(
    schedule: Schedule, s: float, left: int, previous: float, noise: float
) -> Course[tuple[StepResult, int, bool]]:
    """The steps of a stage; returns the result of the last, how many there were, and whether the
    objective converged and thereby ends the start."""
    adaptive = schedule.every is None
    most = min(left, _STAGE_PASSES if schedule.every is None else schedule.every)
    if schedule.stop == "annealed":
        tol = _STAGE_TOL if adaptive else -1.0
        result, steps = yield Stage("anneal", s, noise, tol, most)
        return result, steps, False
    for steps in range(1, most + 1):
        result, _ = yield Stage("anneal", s, noise if steps == 1 else 0.0)
        if abs(previous - result.objective) <= schedule.tol * result.objective:
            return result, steps, True
        previous = result.objective
    return result, steps, False


def _is_hopeless(result: StepResult, best: float, schedule: Schedule) -> bool:
    nearly = result.soft >= _NEARLY_HARD * result.hard
    return schedule.ends_hard and nearly and result.hard + result.penalty > _HOPELESS * best


def _is_over(result: StepResult, s: float, schedule: Schedule) -> bool:
    hard = math.isinf(schedule.s_final) and result.soft >= (1 - HARDNESS) * result.hard
    return hard or s <= schedule.s_final


def _next_factor(factor: float, passes: int) -> float:
    """Larger if the last stage converged in few passes, smaller if it took many."""
    if passes <= _QUICK:
        return min(_MOST_FACTOR, factor**1.3)
    return max(_LEAST_FACTOR, factor**0.6) if passes >= _SLOW else factor

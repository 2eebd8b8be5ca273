"""Steps over features: a pass computes the weights of the rows and moves the centroids.

Each is a step of majorisation-minimisation: the objective never rises at a fixed exponent s, and,
as M_s increases with s, it never rises when s falls either (docs/math.md, section 2).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rffpk._annealing import bounds
from rffpk._annealing.centroids import coincidence, costliest_rows, count_distinct
from rffpk._annealing.history import History
from rffpk._annealing.objective import PowerMean
from rffpk._annealing.schedule import HARDNESS, Step, StepResult, drive, settling
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, Sums, empty_clusters, is_hard, one_pass, power_constant

# Without annealing the last exponent is found on so many rows, among powers of _FACTOR.
_EXPONENT_ROWS, _HIGHEST, _FACTOR = 2000, -1.0, 1.2


@dataclass
class FeatureRun:
    """One start over features: its rows, with their view weights, and its centroids."""

    rows: Rows
    theta: Array  # (k, F), shifted like the features
    variance: float  # total variance of the features; tolerances are relative to it
    objective: PowerMean
    history: History
    random: Any
    number: int = 0
    passes: int = 0
    bounded: bounds.HardPasses | None = None  # while passes of the hard rule settle

    @property
    def n_rows(self) -> int:
        return self.rows.n

    def cost(self, s: float) -> float:
        """The objective at the current centroids."""
        sums, _ = one_pass(self.rows, self.theta, s)
        return sums.objective(s) + self._penalty()

    def step(self, step: Step) -> StepResult:
        """Make one pass, and update the centroids and the view weights."""
        started = time.perf_counter()
        if step.noise:
            self._disturb(step.noise)
        sums = self._sums(step.s)
        theta = sums.centroids(self.theta, self.rows.dtype)
        empty = empty_clusters(sums.G, self.rows.dtype)
        repairs = self._relocate(theta, empty) if empty.any() else 0
        distinct = self._count_distinct(theta, sums)
        penalty = self._penalty()
        result = StepResult(
            soft=sums.soft,
            hard=sums.hard,
            objective=sums.objective(step.s) + penalty,
            penalty=penalty,
            shift=self._shift(theta),
            distinct=distinct,
            merged=distinct < len(theta),
            repairs=repairs,
        )
        seconds = time.perf_counter() - started
        self.history.add_step(step, result, self.number, self.rows.n, self.rows.alpha, seconds)
        self.theta = theta
        self._reweigh(sums, step.s)
        self.passes += 1
        return result

    def settle(self, stage: str, s: float, tol: float, passes: int) -> bool:
        """Make passes at a fixed `s` until convergence; return whether it came within `passes`."""
        if is_hard(s, self.rows.dtype) and not self.objective.learns_weights:
            k = len(self.theta)
            self.bounded = bounds.HardPasses(self.rows) if bounds.pays(self.rows, k) else None
        converged = drive(self.step, settling(stage, s, tol, passes))
        self.bounded = None
        return converged

    def _sums(self, s: float) -> Sums:
        if self.bounded is not None:
            return self.bounded.sums(self.theta)
        return one_pass(self.rows, self.theta, s)[0]

    def nearly_hard_exponent(self) -> float:
        """The exponent at which annealing would end at these centroids, from some of the rows."""
        rows = self.rows
        rows = rows.take(np.arange(0, rows.n, max(1, rows.n // _EXPONENT_ROWS)))
        s = _HIGHEST
        while not is_hard(_FACTOR * s, rows.dtype):
            sums, _ = one_pass(rows, self.theta, s)
            if sums.soft >= (1 - HARDNESS) * sums.hard:
                break
            s *= _FACTOR
        return s

    def _penalty(self) -> float:
        return self.objective.penalty(self.rows.alpha, self.rows.total_weight)

    def _shift(self, theta: Array) -> float:
        moved = float((self.rows.scaled(theta - self.theta) ** 2).sum()) / len(theta)
        return math.sqrt(moved / self.variance) if self.variance > 0 else 0.0

    def _count_distinct(self, theta: Array, sums: Sums) -> int:
        cost = sums.hard / self.rows.total_weight
        close = coincidence(cost, self.variance, self.rows.dtype)
        return count_distinct(self.rows.scaled(theta), close)

    def _reweigh(self, sums: Sums, s: float) -> None:
        """New view weights from the costs of the views at the new centroids, if the weights are
        learned (IP-RFF-MKPKM, step 5)."""
        if not self.objective.learns_weights:
            return
        costs = sums.view_costs().sum(axis=0)
        if self.rows.eta is not None:
            costs = costs + sums.E.sum() * self.rows.eta
        constant = power_constant(len(sums.G), s)
        alpha = self.objective.reweigh(costs, constant, self.rows.total_weight)
        self.rows = replace(self.rows, alpha=alpha)

    def _disturb(self, size: float) -> None:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        width = float((self.rows.scaled(np.ones(self.theta.shape[1])) ** 2).sum())
        spread = size * math.sqrt(self.variance / width)
        self.theta = self.theta + spread * self.random.standard_normal(self.theta.shape)

    def _relocate(self, theta: Array, empty: Array) -> int:
        """Move the centroids of empty clusters, in place, to the costliest rows; return how many
        moved."""
        rows = self.rows
        _, outputs = one_pass(rows, theta[~empty], -math.inf, want=("nearest",))
        chosen = costliest_rows(
            outputs["nearest"], rows.weight, int(empty.sum()), self.variance, rows.dtype
        )
        if len(chosen):
            theta[np.flatnonzero(empty)[: len(chosen)]] = rows.take(chosen).features()
        return len(chosen)


@dataclass
class FeatureSpace:
    """What starts over features share; they run one after the other."""

    rows: Rows
    variance: float
    objective: PowerMean
    seed: Callable[[], Array]  # draws initial centroids (k, F)
    history: History
    random: Any

    lockstep: bool = field(default=False, init=False)

    @property
    def dtype(self) -> Any:
        return self.rows.dtype

    def begin(self, numbers: list[int]) -> list[FeatureRun]:
        """Runs of the starts with these numbers."""
        return [
            FeatureRun(
                self.rows, self.seed(), self.variance, self.objective, self.history, self.random,
                number,
            )
            for number in numbers
        ]  # fmt: skip

    def advance(self, runs: list[FeatureRun], steps: list[Step]) -> list[StepResult]:
        """One step of each run."""
        return [run.step(step) for run, step in zip(runs, steps)]

"""How centroids move in a feature space: by steps.

A step is a pass that computes the weights of the rows and moves all centroids a little. It is one
of majorisation-minimisation: the objective never rises at a fixed exponent s, and, as M_s increases
with s, it never rises when s falls either (docs/math.md, section 2).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from rffpk import _core
from rffpk.anneal.hard_pass import (
    Assignment,
    HardPlan,
    Need,
    Settling,
    hard_plan,
    settling_pass,
    step,
)
from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import FitContext, Stage, StageEnd, nearly_hard_exponent
from rffpk.rows.arrays import Array
from rffpk.rows.passes import (
    Moved,
    made_step,
    one_pass,
    pass_of_block,
    shifted_features,
    take_steps,
)  # fmt: skip
from rffpk.rows.rows import Rows
from rffpk.rows.sums import Step, Sums, empty_clusters, is_hard
from rffpk.rows.weights import for_core
from rffpk.system import config

T = TypeVar("T")

_EXPONENT_ROWS = 2000  # Without annealing the last exponent is found on so many rows and ...
_EXPONENT_DISTANCES = 1 << 20  # ... distances at most.

# Centroids whose squared distance is at most this fraction of the mean cost of a row coincide, or
# is a rounding error.
COINCIDENT = 1e-6


@dataclass
class FeatureRun:
    """One start over features: its rows, with their view weights, and its centroids."""

    rows: Rows
    theta: Array  # (k, F), shifted like the features
    variance: float  # total variance of the features; tolerances are relative to it
    objective: PowerMean
    context: FitContext
    number: int = 0
    most: int = 0  # centroids, with those that swaps add
    passes: int = 0
    last: Step | None = None  # of the last stage
    settling: Settling | None = None  # by the last pass, while bounds decide labels
    assigned: Assignment | None = None  # by the last pass, while rows see few of many centroids
    drawn: Array | None = None  # while swaps are estimated on some rows: their indices

    def cost(self, s: float) -> float:
        """The objective at the current centroids."""
        if self.assigned is not None and self.assigned.cost is not None and math.isinf(s):
            known = self.assigned.cost
            return self.kept(lambda: known)
        penalty = self.objective.penalty(self.rows.alpha, self.rows.total_weight)
        return self.kept(lambda: one_pass(self.rows, self.theta, s)[0].objective(s) + penalty)

    def kept(self, step: Callable[[], T]) -> T:
        """The result of a step, which a checkpoint keeps or knows already."""
        checkpoint = self.context.checkpoint
        return step() if checkpoint is None else checkpoint.result(self, step)

    def state(self) -> dict[str, Array]:
        """What passes and swaps have changed."""
        found = {"theta": self.theta, "alpha": self.rows.alpha, "passes": np.array(self.passes)}
        if self.drawn is not None:
            found["drawn"] = self.drawn
        for each in (self.settling, self.assigned):
            found |= {} if each is None else each.state()
        return found

    def restore(self, state: dict[str, Array]) -> None:
        """Set what `state` returned."""
        self.theta, self.passes = state["theta"], int(state["passes"])
        self.rows = replace(self.rows, alpha=state["alpha"])
        self.drawn = state.get("drawn")
        self.settling = Settling.of_state(state, self.rows.widths)
        self.assigned = Assignment.of_state(state)

    def go_on(self, rows: Rows) -> None:
        """Go on over other rows."""
        self.rows, self.assigned = replace(rows, alpha=self.rows.alpha), None

    def follow(self, stage: Stage) -> StageEnd:
        """The passes of a stage, one by one or in one call of the core. In the last one of a stage
        that is to be exact rows are compared with every centroid."""
        if stage.noise:
            self._disturb(stage.noise)
        # How rows find their nearest centroids: among those near their own, by bounds, or among
        # all, as in short stages, and in those with a goal, which the core looks at.
        plan, need = HardPlan(), None
        if is_hard(stage.s, self.rows.dtype):
            plan = hard_plan(self.rows, self.most, self.objective.learns_weights)
        among_all = math.isfinite(stage.goal) or (stage.exact and stage.most <= 2)
        if plan.near and not among_all:
            need = Need(second=stage.second, bounded=stage.exact and plan.bounded)
        else:
            self.assigned = None
        by_bounds = need is None and stage.bounded and plan.bounded
        # A checkpoint keeps each pass alone, but not with a goal: whether this is out of reach
        # depends on the gain of the pass before.
        is_kept = self.context.checkpoint is not None and math.isinf(stage.goal)
        steps, over = 0, False
        while not over:
            alone = need is not None or is_kept or (steps == 0 and math.isfinite(stage.usual[1]))
            most = 1 if alone else stage.most - steps
            passes = partial(self._passes, stage, most, by_bounds, need)
            results, hopeless, every = self.kept(passes)
            self.passes += len(results)  # here, so that passes count whose results were kept
            steps, last = steps + len(results), Step(*results[-1])
            converged = last.shift <= stage.tol
            over = hopeless or steps >= stage.most or (converged and (every or not stage.exact))
            over |= steps == 1 and not stage.usual[0] <= last.hard <= stage.usual[1]
            if need is not None:
                is_last = stage.exact and (converged or steps == stage.most - 1)
                need = need._replace(every=is_last, missed=steps == 1 and not need.bounded)
        if need is None or stage.exact:
            self.assigned = None
        self.settling, self.last = None, last
        return StageEnd(last, steps)

    def _passes(
        self, stage: Stage, most: int, by_bounds: bool, need: Need | None
    ) -> tuple[list[Step], bool, bool]:
        """Passes until the stage is over or centroids of empty clusters are moved; their results,
        whether the objective will not fall to the goal of the stage, and whether rows were compared
        with every centroid; they are with few if there is a `need`. `by_bounds`: rows whose labels
        bounds decide are left out."""
        rows, s, every, started = self.rows, stage.s, True, time.perf_counter()
        if need is not None:
            sums, self.assigned = step(rows, self.theta, self.assigned, need)
            every = self.assigned.every
            moved = self._single_step(sums, every and stage.exact, started)
        elif by_bounds:
            self.settling = settling_pass(rows, self.theta, self.settling)
            moved = self._single_step(self.settling.sums, True, started)
        else:
            moved = take_steps(
                rows, self.theta, s, variance=self.variance, tol=stage.tol, most=most,
                close=self._close(), goal=stage.goal,
                entropy=self.objective.weight_entropy * rows.total_weight,
            )  # fmt: skip
        results = moved.steps
        self.theta = moved.theta
        *alphas, last = moved.alphas
        if moved.n_empty:
            self.rows = replace(rows, alpha=alphas[-1])
            results[-1] = self._repaired(results[-1], moved)
        for result, alpha in zip(results, alphas):
            parts = None if rows.stream is None else rows.stream.clock.lap()
            self.context.history.add_step(stage, result, self.number, rows.n, alpha, parts)
        if self.objective.learns_weights:
            self.rows = replace(rows, alpha=last)
        return results, moved.hopeless, every

    def _single_step(self, sums: Sums, repair: bool, started: float) -> Moved:
        """A step of the hard rule with the sums of a pass that `started` then; `repair`: centroids
        of empty clusters move."""
        theta = self.theta
        new = self.rows.centroids(sums, theta)
        distinct = self.count_distinct(new, sums.hard)
        n_empty = int(empty_clusters(sums.G, self.rows.dtype).sum()) if repair else 0
        shift, seconds = self._shift(new, theta), time.perf_counter() - started
        step = made_step(-math.inf, len(theta), sums.soft, sums.hard, 0.0, shift, distinct, seconds)
        return Moved([step], [self.rows.alpha] * 2, new, theta, n_empty, False, sums)

    def _repaired(self, result: Step, moved: Moved) -> Step:
        """The result of a step that left clusters empty, after their centroids have moved."""
        theta, k = moved.theta, len(moved.theta)
        repairs = self._relocate(theta, empty_clusters(moved.sums.G, self.rows.dtype))
        distinct = self.count_distinct(theta, result.hard)
        shift = self._shift(theta, moved.previous)
        return result._replace(shift=shift, distinct=distinct, merged=distinct < k, repairs=repairs)

    def count_distinct(self, theta: Array, hard: float) -> int:
        """The number of distinct centroids; the tolerance is relative to a hard objective, but not
        below rounding errors."""
        relative, absolute = self._close()
        return count_distinct(self.rows.scaled(theta), max(relative * hard, absolute))

    def nearly_hard_exponent(self) -> float:
        """The exponent at which annealing would end at these centroids, from some of the rows."""
        counted = self.rows.counted_indices()
        most = min(_EXPONENT_ROWS, max(1, _EXPONENT_DISTANCES // len(self.theta)))
        rows = self.rows.take(counted[:: max(1, len(counted) // most)])
        distances = pass_of_block(rows, self.theta, -math.inf, want=("distances",))[1]["distances"]
        if rows.eta is not None:
            distances = rows.effective_distances(distances)
        # d = |phi|^2 + |theta|^2 - 2 phi'theta, of which the last part may be all
        squares = np.zeros_like(distances[:, 0]), np.zeros_like(distances[0])
        given = np.ascontiguousarray(distances.T / -2), *squares

        def totals(s: float) -> tuple[float, float]:
            weigh = config.backend().weigh_products
            return weigh(*given, for_core(rows.weight), _core.POWER, s, rows.n_threads)[1:]

        return nearly_hard_exponent(totals, rows.dtype)

    def _shift(self, theta: Array, previous: Array) -> float:
        moved = float((self.rows.scaled(theta - previous) ** 2).sum()) / len(theta)
        return math.sqrt(moved / self.variance) if self.variance > 0 else 0.0

    def _close(self) -> tuple[float, float]:
        """Squared distances up to which centroids coincide: a factor of the hard objective, and a
        distance."""
        rounding = float((8 * np.finfo(self.rows.dtype).eps) ** 2 * self.variance)
        return COINCIDENT / self.rows.total_weight, rounding

    def _disturb(self, size: float) -> None:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        width = float((self.rows.scaled(np.ones(self.theta.shape[1])) ** 2).sum())
        spread = size * math.sqrt(self.variance / width)
        noise = self.context.random.standard_normal(self.theta.shape)
        self.theta = self.rows.on_sphere(self.theta + spread * noise, self.theta)

    def _relocate(self, theta: Array, empty: Array) -> int:
        """Move the centroids of empty clusters, in place, to the costliest rows; return how many
        moved."""
        count, own = int(empty.sum()), None if self.assigned is None else self.assigned.own
        if own is None:
            _, chosen = costliest_rows(self.rows, theta[~empty], count, self.variance)
        else:  # at the centroids before the step
            cost = row_costs(own, self.rows.weight, self.variance, self.rows.dtype)
            chosen = features_at(self.rows, costliest(cost, count), theta)
        if len(chosen):
            theta[np.flatnonzero(empty)[: len(chosen)]] = chosen
        return len(chosen)


# ---- which centroids coincide, and where those of empty clusters move ----------------------------


def count_distinct(theta: Array, close: float) -> int:
    """The number of centroids whose squared distance to all distinct ones before them exceeds
    `close`. O(k^2 F), but few features decide most pairs."""
    return config.backend().count_distinct(theta, close)


_Costly = tuple[Array, Array]  # costs, the largest first, and features


def costliest_rows(rows: Rows, theta: Array, count: int, variance: float) -> _Costly:
    """The costs and the features of up to `count` rows with the largest costs, the costliest
    first."""
    visit = partial(_costliest_of, theta, count, variance)
    return rows.fold(visit, partial(_costliest_of_both, count))


def _costliest_of(
    theta: Array, count: int, variance: float, block: Rows, before: _Costly | None
) -> _Costly:
    """The costliest rows of a block and those before."""
    _, outputs = one_pass(block, theta, -math.inf, want=("nearest",))
    cost = row_costs(outputs["nearest"], block.weight, variance, block.dtype)
    found = costliest(cost, count)
    features = np.empty((0, theta.shape[1]), dtype=block.dtype)
    if len(found):
        features = features_at(block, found, theta)
    here = cost[found], features
    return here if before is None else _costliest_of_both(count, before, here)


def _costliest_of_both(count: int, first: _Costly, second: _Costly) -> _Costly:
    costs = np.concatenate([first[0], second[0]])
    kept = costliest(costs, count)
    return costs[kept], np.concatenate([first[1], second[1]])[kept]


def features_at(rows: Rows, index: Array, theta: Array) -> Array:
    """The features of some rows as new centroids: in a view that a row lacks, those of the nearest
    of the centroids `theta`."""
    some = rows.take(index)
    features = shifted_features(some)
    if some.present is None:
        return features
    nearest = one_pass(some, theta, -math.inf, want=("labels",))[1]["labels"]
    return np.where(some.present_features(), features, theta[nearest])


def row_costs(nearest: Array, weight: Array, variance: float, dtype: Any) -> Array:
    """Return weighted squared distances of rows to their nearest centroids.

    Those that are rounding errors are zero: if there are fewer distinct rows than centroids, the
    centroids of empty clusters stay where they were.
    """
    least = 64 * float(np.finfo(dtype).eps) * variance
    nearest = nearest.astype(np.float64)
    nearest[nearest <= least] = 0
    return nearest * weight


def costliest(costs: Array, count: int) -> Array:
    """The indices of the largest positive costs, the largest first, of equal ones the first."""
    order = np.argsort(-costs, kind="stable")[:count]
    return np.asarray(order[costs[order] > 0])

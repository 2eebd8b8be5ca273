"""How centroids move in a feature space: by steps.

A step is a pass that computes the weights of the rows and moves all centroids a little. By
majorization-minimization, it never raises the objective at a fixed exponent s. As M_s increases
with s, the objective does not rise when s falls either (docs/math.md, section 2).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from rffpk import _core
from rffpk.anneal.decompositions import Compressed
from rffpk.anneal.hard_pass import HardPlan, Need, hard_plan, step
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Stage, StageEnd, nearly_hard_exponent
from rffpk.rows.arrays import Array
from rffpk.rows.passes import Moved, move, one_pass, pass_of_block, shifted_features, take_steps
from rffpk.rows.rows import Rows
from rffpk.rows.sums import Step, empty_clusters, is_hard
from rffpk.rows.table import dense
from rffpk.rows.weights import for_core
from rffpk.system import config
from rffpk.system.tuning import TUNING

# Two centroids coincide if their squared distance is at most this fraction of the mean cost of a
# row, or at most a rounding error.
COINCIDENT = 1e-6


@dataclass(frozen=True)
class FeatureLevel:
    """Rows of features on which the centroids of a state move."""

    rows: Rows
    variance: float  # total variance of the features; tolerances are relative to it
    objective: PowerMean
    context: FitContext
    most: int  # the largest number of centroids, with the centroids that swaps add
    # if the features are principal components: the components, and the rows with all features
    components: Compressed | None = None
    whole: Rows | None = None
    # least tolerance of the last stage, below the sampling error of centroids
    coarse: float = 0.0

    def leave(self, state: State) -> State:
        """Return the state for the next level: centroids (k, F) in the space of all features.

        The assignment is dropped, because the next level has different rows."""
        if self.components is None:
            return state._replace(assigned=None)
        self.context.history.left_out = 0.0  # the next level has all features
        return state._replace(theta=self.components.expand(state.theta), assigned=None)

    def last_stage(self, stage: Stage, state: State) -> Stage:
        """Return the last stage of a fit, with a tolerance that these rows can resolve."""
        return stage._replace(tol=max(stage.tol, self.coarse))

    def at(self, state: State) -> Rows:
        """Return the rows with the view weights of a state."""
        learns = self.objective.learns_weights
        return replace(self.rows, alpha=state.alpha) if learns else self.rows

    def cost(self, state: State, s: float) -> tuple[State, float]:
        """Return the state, and the objective at its centroids and the exponent s."""
        known = state.assigned
        if known is not None and known.cost is not None and math.isinf(s):
            return state, known.cost
        soft = one_pass(self.at(state), state.theta, s)[0].objective(s)
        return state, soft + self.objective.penalty(state.alpha, self.rows.total_weight)

    def follow(self, state: State, stage: Stage) -> tuple[State, StageEnd]:
        """Make the passes of a stage; return the state and the end of the stage.

        Passes are made one by one, or in one call of the core. In the last pass of an exact stage,
        rows are compared with all centroids."""
        journal = self.context.journal
        # Rows are compared with candidate lists, or with all centroids, with or without bounds.
        # Short stages use all centroids. So do stages with a goal, because the core checks it.
        plan, need = HardPlan(), None
        if is_hard(stage.s, self.rows.dtype):
            plan = hard_plan(self.rows, self.most, self.objective.learns_weights)
        among_all = math.isfinite(stage.goal) or (stage.exact and stage.most <= 2)
        if plan.near and not among_all:
            need = Need(second=stage.second, bounded=stage.exact and plan.bounded)
        else:
            state = state if state.assigned is None else state._replace(assigned=None)
            # `settles`: bounds decide the labels of most rows, until the stage ends
            need = Need(settles=True) if stage.bounded and plan.bounded else None
        # A checkpoint needs one pass at a time. Only stages with a goal are made in one call: the
        # core compares the gains of consecutive passes to see whether the goal is out of reach.
        is_kept = journal.keeps and math.isinf(stage.goal)
        steps, over = 0, False
        while not over:
            alone = need is not None or is_kept or (steps == 0 and math.isfinite(stage.usual[1]))
            most = 1 if alone else stage.most - steps
            noise = stage.noise if steps == 0 else 0.0
            state, numbers = journal.run(self._passes, state, stage, most, need, noise)
            # `every`: the pass compared rows with all centroids. An exact stage may only end after
            # such a pass, unless no passes are left.
            results, hopeless, every = numbers
            steps, last = steps + len(results), Step(*results[-1])
            converged = last.shift <= stage.tol
            over = hopeless or steps >= stage.most or (converged and (every or not stage.exact))
            # the stage ends after its first pass if the hard objective is outside of `stage.usual`
            over |= steps == 1 and not stage.usual[0] <= last.hard <= stage.usual[1]
            if need is not None:
                is_last = stage.exact and (converged or steps == stage.most - 1)
                # The second pass checks once whether candidate lists miss nearest centroids. With
                # bounds, the passes over all centroids find that out.
                need = need._replace(every=is_last, missed=steps == 1 and not need.bounded)
        keeps = need is not None and not (need.settles or stage.exact)
        assigned = state.assigned if keeps else None
        state = state._replace(passes=state.passes + steps, hard=last.hard, assigned=assigned)
        return state, StageEnd(last, steps)

    def _passes(
        self, state: State, stage: Stage, most: int, need: Need | None, noise: float
    ) -> tuple[State, tuple[list[Step], bool, bool]]:
        """Make at most `most` passes, until the stage is over or an empty cluster was repaired.

        Before the first pass, centroids are displaced at random by `noise` standard deviations of
        the features. `need` is for one pass of the hard rule by `hard_pass.step`. Without it, the
        core makes the passes over all centroids.

        Return the state and three results: the records of the passes, whether the goal of the stage
        is out of reach, and whether rows were compared with all centroids."""
        rows, started = self.at(state), time.perf_counter()
        theta = self._disturbed(rows, state.theta, noise) if noise else state.theta
        assigned, every, repairs = state.assigned, True, True
        options: dict[str, Any] = {"variance": self.variance, "close": self._close()}
        if need is not None:
            sums, assigned = step(rows, theta, state.assigned, need)
            every = assigned.every
            # passes that only lower the objective leave the centroids of empty clusters in place
            repairs = need.settles or (every and stage.exact)
            moved = move(rows, theta, sums, -math.inf, started, **options)
        else:
            entropy = self.objective.weight_entropy * self.rows.total_weight
            moved = take_steps(
                rows, theta, stage.s, tol=stage.tol, most=most, goal=stage.goal, entropy=entropy,
                **options,
            )  # fmt: skip
        results = moved.steps
        *alphas, last = moved.alphas  # view weights of the passes, and after the last pass
        if moved.n_empty and repairs:
            before = state._replace(alpha=alphas[-1], assigned=assigned)
            results[-1] = self._repaired(before, results[-1], moved)
        for result, alpha in zip(results, alphas):
            parts = None if rows.stream is None else rows.stream.clock.lap()
            self.context.history.add_step(stage, result, state.start, rows.n, alpha, parts)
        state = state._replace(theta=moved.theta, alpha=last, assigned=assigned)
        return state, (results, moved.hopeless, every)

    def _repaired(self, state: State, result: Step, moved: Moved) -> Step:
        """Move the centroids of empty clusters to costly rows, in place.

        Return the record of the step with the shift, and the number of distinct centroids, after
        these moves."""
        rows, theta = self.at(state), moved.theta
        repairs = self._relocate(state, theta, empty_clusters(moved.sums.G, rows.dtype))
        relative, absolute = self._close()
        close = max(relative * result.hard, absolute)
        distinct = config.backend().count_distinct(rows.scaled(theta), close)
        squares = float((rows.scaled(theta - moved.previous) ** 2).sum()) / len(theta)
        shift = math.sqrt(squares / self.variance) if self.variance > 0 else 0.0
        merged = distinct < len(theta)
        return result._replace(shift=shift, distinct=distinct, merged=merged, repairs=repairs)

    def nearly_hard_exponent(self, state: State) -> tuple[State, float]:
        """Return the exponent at which annealing would end at the centroids of a state."""
        counted, k = np.flatnonzero(self.rows.weight), len(state.theta)
        most = min(TUNING.sampling.last_rows, max(1, TUNING.sampling.last_distances // k))
        rows = self.at(state).take(counted[:: max(1, len(counted) // most)])
        distances = pass_of_block(rows, state.theta, -math.inf, want=("distances",))[1]["distances"]
        if rows.eta is not None:
            distances = rows.effective_distances(distances)
        # The core computes d = |phi|^2 + |theta|^2 - 2 phi'theta. So d / -2 is given as products,
        # with zeros for the norms.
        squares = np.zeros_like(distances[:, 0]), np.zeros_like(distances[0])
        fixed = np.ascontiguousarray(distances.T / -2), *squares, for_core(rows.weight), _core.POWER
        weigh = config.backend().weigh_products
        s = nearly_hard_exponent(lambda s: weigh(*fixed, s, rows.n_threads)[1:], rows.dtype)
        return state, float(s)

    def _close(self) -> tuple[float, float]:
        """Return two tolerances for coincident centroids, a relative and an absolute one.

        Centroids coincide if their squared distance is at most the first times the hard objective,
        or at most the second."""
        rounding = float((8 * np.finfo(self.rows.dtype).eps) ** 2 * self.variance)
        return COINCIDENT / self.rows.total_weight, rounding

    def _disturbed(self, rows: Rows, theta: Array, size: float) -> Array:
        """Move every centroid at random, by `size` standard deviations of the features."""
        # the sum of the view weights of all features, over which the variance is divided
        width = float((rows.scaled(np.ones(theta.shape[1])) ** 2).sum())
        spread = size * math.sqrt(self.variance / width)
        noise = self.context.random.standard_normal(theta.shape)
        return rows.on_sphere(theta + spread * noise, theta)

    def _relocate(self, state: State, theta: Array, empty: Array) -> int:
        """Move the centroids of empty clusters to the costliest rows, in place.

        `empty` is a mask (k,) of the clusters. Return how many centroids moved. Some stay if fewer
        rows have a positive cost."""
        rows, count = self.at(state), int(empty.sum())
        own = None if state.assigned is None else state.assigned.own
        if own is None:
            _, chosen = costliest_rows(rows, theta[~empty], count, self.variance)
        else:  # distances from the centroids before the step
            cost = row_costs(own, rows.weight, self.variance, rows.dtype)
            chosen = features_at(rows, costliest(cost, count), theta)
        if len(chosen):
            theta[np.flatnonzero(empty)[: len(chosen)]] = chosen
        return len(chosen)


# ---- where centroids of empty clusters move ------------------------------------------------------


_Costly = tuple[Array, Array]  # costs, the largest first, and features


def costliest_rows(rows: Rows, theta: Array, count: int, variance: float) -> _Costly:
    """Return the costs and the features of the `count` costliest rows, the costliest first.

    There are fewer if fewer rows have a positive cost."""
    visit = partial(_costliest_of, theta, count, variance)
    return rows.fold(visit, partial(_costliest_of_both, count))


def _costliest_of(
    theta: Array, count: int, variance: float, block: Rows, before: _Costly | None
) -> _Costly:
    """Return the `count` costliest rows of a block and of the blocks before it.

    `before` are the costliest rows of the blocks before, or None."""
    _, outputs = one_pass(block, theta, -math.inf, want=("nearest",))
    cost = row_costs(outputs["nearest"], block.weight, variance, block.dtype)
    found = costliest(cost, count)
    features = np.empty((0, theta.shape[1]), dtype=block.dtype)
    if len(found):
        features = features_at(block, found, theta)
    here = cost[found], features
    return here if before is None else _costliest_of_both(count, before, here)


def _costliest_of_both(count: int, first: _Costly, second: _Costly) -> _Costly:
    """Merge the costliest rows of two parts; keep the `count` costliest."""
    costs = np.concatenate([first[0], second[0]])
    kept = costliest(costs, count)
    return costs[kept], np.concatenate([first[1], second[1]])[kept]


def features_at(rows: Rows, index: Array, theta: Array) -> Array:
    """Return the shifted features (m, F) of the rows at `index` (m,) as new centroids.

    In a view that a row lacks, the features are of its nearest centroid in theta (k, F)."""
    if not rows.computed and rows.present is None and rows.stream is None:  # without a pass
        columns = [dense(x[index]) - shift for x, shift in zip(rows.xs, rows.shifts)]
        return np.hstack(columns)
    some = rows.take(index)
    features = shifted_features(some)
    if some.present is None:
        return features
    nearest = one_pass(some, theta, -math.inf, want=("labels",))[1]["labels"]
    return np.where(some.present_features(), features, theta[nearest])


def row_costs(nearest: Array, weight: Array, variance: float, dtype: Any) -> Array:
    """Return the weighted squared distances (n,) of rows from their nearest centroids.

    Distances that may be rounding errors are set to zero. So the centroids of empty clusters do not
    move if there are fewer distinct rows than centroids."""
    least = 64 * float(np.finfo(dtype).eps) * variance
    nearest = nearest.astype(np.float64)
    nearest[nearest <= least] = 0
    return nearest * weight


def costliest(costs: Array, count: int) -> Array:
    """Return the indices of the `count` largest positive costs, the largest first."""
    order = np.argsort(-costs, kind="stable")[:count]
    return np.asarray(order[costs[order] > 0])

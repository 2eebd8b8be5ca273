"""Steps with exact kernels: centroids are weights W of the rows, moved by products W K.

theta_j = sum_i W_ji phi(x_i) with W_j summing to one, so ||phi(x_i) - theta_j||^2 = K_ii +
(W K W')_jj - 2 (W K)_ji. One product of K with the centroids, and O(n k) besides, make a step.
W (k, n) is the same for all kernels.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk.anneal.kernel_rows import KernelRows
from rffpk.anneal.records import State
from rffpk.anneal.schedule import FitContext, Stage, StageEnd, nearly_hard_exponent
from rffpk.anneal.steps import COINCIDENT, costliest, row_costs
from rffpk.rows.arrays import Array
from rffpk.rows.passes import made_step
from rffpk.rows.sums import Step, empty_clusters, is_hard, power_constant
from rffpk.system import config

# Where no row moves kernel weights are final after one more step, up to this.
_EXACT = 1e-12


def squared_norms(W: Array, Y: Array) -> NDArray[np.float64]:
    """Return squared norms (L, k) of centroids, from their products Y = W K_l."""
    return np.einsum("kn,lkn->lk", W, Y, dtype=np.float64)


@dataclass(frozen=True)
class KernelLevel:
    """Rows with their kernels, on which centroids W (k, n) of a state move.

    The state holds their products Y = W K_l (L, k, n), too."""

    rows: KernelRows
    context: FitContext

    def last_stage(self, stage: Stage, state: State) -> Stage:
        """Return the stage that ends a fit, with the passes that are left."""
        return stage._replace(most=max(stage.most - state.passes, 1))

    def first(self, W: Array, alpha: Array) -> State:
        """Return the state of a start with these centroids."""
        return self.moved(State(W, alpha), W)

    def moved(self, state: State, W: Array) -> State:
        """Return the state at other centroids, which are weights of the rows."""
        W = np.asarray(W, dtype=self.rows.dtype)
        return state._replace(theta=W, products=self.rows.multiply(W))

    def follow(self, state: State, stage: Stage) -> tuple[State, StageEnd]:
        """Make the steps of a stage.

        It goes on while kernel weights change, which may move rows after a step in which none
        moved."""
        state = self._disturbed(state, stage.noise) if stage.noise else state
        steps, over = 0, False
        while not over:
            state, (result, change) = self.context.journal.run(self._step, state, stage)
            state = state._replace(passes=state.passes + 1)
            last, steps = Step(*result), steps + 1
            settled = change <= (stage.tol if last.shift else _EXACT)
            over = steps >= stage.most or (settled and last.shift <= stage.tol)
        return state, StageEnd(last, steps)

    def _step(self, state: State, stage: Stage) -> tuple[State, tuple[Step, float]]:
        """Move to the means of the rows with their weights at an exponent.

        Update the kernel weights from the costs there. Return the result, and the largest change
        of a kernel weight."""
        started, rows, objective = time.perf_counter(), self.rows, self.rows.objective
        k, alpha = len(state.theta), state.alpha
        weights, soft, hard = self._weigh(state, stage.s)
        G = weights.sum(axis=1, dtype=np.float64)
        W, repairs = self._means(state, weights, G)
        new = self.moved(state, W)
        penalty = objective.penalty(alpha, rows.total_weight)
        shift, distinct = self._shift(state, new), self.count_distinct(new, hard)
        seconds = time.perf_counter() - started
        step = made_step(stage.s, k, (soft, hard, penalty, shift, distinct, seconds))
        step = step._replace(repairs=repairs)
        self.context.history.add_step(stage, step, state.start, rows.n, alpha)
        if objective.learns_weights:
            squares = squared_norms(new.theta, new.products)
            costs = rows.diagonals @ (G @ new.theta) - squares @ G
            alpha = objective.reweigh(costs, power_constant(k, stage.s), rows.total_weight)
        return new._replace(alpha=alpha), (step, float(np.abs(alpha - state.alpha).max()))

    def cost(self, state: State, s: float) -> tuple[State, float]:
        """Return the objective at the centroids of a state."""
        penalty = self.rows.objective.penalty(state.alpha, self.rows.total_weight)
        soft = self._weigh(state, s)[1]
        return state, float(power_constant(len(state.theta), s) * soft + penalty)

    def nearly_hard_exponent(self, state: State) -> tuple[State, float]:
        """Return the exponent at which annealing would end at the centroids of a state."""
        s = nearly_hard_exponent(lambda s: self._weigh(state, s)[1:], self.rows.dtype)
        return state, float(s)

    def count_distinct(self, state: State, hard: float) -> int:
        """Count distinct centroids; the tolerance is relative to a hard objective."""
        mixed = state.products @ state.theta.T
        gram = np.einsum("l,lij->ij", state.alpha, mixed, dtype=np.float64)
        squares = gram.diagonal()
        eps = float(np.finfo(self.rows.dtype).eps)
        rounding = max((8 * eps) ** 2 * self.rows.variance, 64 * eps * float(squares.max()))
        close = max(COINCIDENT * hard / self.rows.total_weight, rounding)
        near = np.tril(squares[:, None] + squares - gram - gram.T <= close, -1)
        distinct = np.ones(len(gram), dtype=bool)
        for j in np.flatnonzero(near.any(axis=1)):
            distinct[j] = not (near[j] & distinct).any()
        return int(distinct.sum())

    def _means(self, state: State, weights: Array, G: Array) -> tuple[Array, int]:
        """Return the means of rows with these weights (k, n), of the sums G.

        Centroids of empty clusters move to the costliest rows; their number is returned, too."""
        stays = empty_clusters(G, weights.dtype)
        W = weights / np.where(stays, 1, G)[:, None].astype(weights.dtype)
        empty = np.flatnonzero(stays)
        if not len(empty):
            return W, 0
        W[empty] = state.theta[empty]
        Y, diagonal, squares = self._combined(state)
        gaps = squares[:, None] - 2 * Y
        gaps[empty] = np.inf
        nearest = gaps.min(axis=0) + diagonal.astype(np.float64)
        costs = row_costs(nearest, self.rows.p, self.rows.variance, Y.dtype)
        chosen = costliest(costs, len(empty))
        places = empty[: len(chosen)]
        W[places] = 0
        W[places, chosen] = 1
        return W, len(chosen)

    def _shift(self, before: State, after: State) -> float:
        """Return how far the centroids have moved, in standard deviations of the features."""
        W, Y = before.theta, before.products
        if np.array_equal(W, after.theta):
            return 0.0
        k, variance = len(W), self.rows.variance
        mixed = np.einsum("kn,lkn->l", after.theta, Y, dtype=np.float64)
        new = squared_norms(after.theta, after.products)
        squares = squared_norms(W, Y).sum(axis=1) + new.sum(axis=1)
        moved = before.alpha @ (squares - 2 * mixed) / k
        return math.sqrt(max(moved, 0.0) / variance) if variance > 0 else 0.0

    def _combined(self, state: State) -> tuple[Array, Array, Array]:
        """Sum products, and squared norms of rows and of centroids, with the kernel weights."""
        dtype, alpha, products = self.rows.dtype, state.alpha, state.products
        Y = np.einsum("l,lkn->kn", alpha.astype(dtype), products)
        squares = alpha @ squared_norms(state.theta, products)
        return Y, (alpha @ self.rows.diagonals).astype(dtype), squares.astype(dtype)

    def _weigh(self, state: State, s: float) -> tuple[Array, float, float]:
        """Return weights p_i v_ij (k, n) of the rows, sum p M' and the hard objective."""
        rule = _core.HARD if is_hard(s, self.rows.dtype) else _core.POWER
        weight, n_threads = self.rows.p.astype(self.rows.dtype), self.context.n_threads
        result: tuple[Array, float, float] = config.backend().weigh_products(
            *self._combined(state), weight, rule, s, n_threads
        )
        return result

    def _disturbed(self, state: State, size: float) -> State:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        counted = self.rows.counted
        noise = self.context.random.standard_normal(state.theta.shape) * counted
        noise -= noise.sum(axis=1, keepdims=True) / counted.sum() * counted
        return self.moved(state, state.theta + noise * (size / math.sqrt(counted.sum())))

"""Steps with exact kernels: centroids are weights W of the rows, moved by products W K.

theta_j = sum_i W_ji phi(x_i) with W_j summing to one, so ||phi(x_i) - theta_j||^2 = K_ii +
(W K W')_jj - 2 (W K)_ji. One product of K with the centroids, and O(n k) besides, make a step.
W (k, n) is the same for all kernels.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk.anneal.kernel_rows import KernelRows
from rffpk.anneal.schedule import Stage, StageEnd, nearly_hard_exponent
from rffpk.anneal.steps import COINCIDENT, costliest, row_costs
from rffpk.rows.arrays import Array
from rffpk.rows.passes import made_step
from rffpk.rows.sums import Step, empty_clusters, is_hard, power_constant
from rffpk.system import config

# Where no row moves kernel weights are final after one more step, up to this.
_EXACT = 1e-12


def squared_norms(W: Array, Y: Array) -> NDArray[np.float64]:
    """Squared norms (L, k) of centroids, from their products Y = W K_l."""
    return np.einsum("kn,lkn->lk", W, Y, dtype=np.float64)


class KernelRun:
    """One start: centroids W (k, n), products Y = W K_l (L, k, n), squared norms, and alpha."""

    def __init__(
        self, rows: KernelRows, W: Array, alpha: Array, number: int = 0, passes: int = 0
    ) -> None:
        self.rows, self.alpha, self.number, self.passes = rows, alpha, number, passes
        self._move_to(W)

    def _move_to(self, W: Array) -> None:
        self.W = np.asarray(W, dtype=self.rows.dtype)
        self.Y = self.rows.multiply(self.W)
        self.squares = squared_norms(self.W, self.Y)

    def follow(self, stage: Stage) -> StageEnd:
        """The steps of a stage. It goes on while kernel weights change, which may move rows after a
        step in which none moved."""
        if stage.noise:
            self._disturb(stage.noise)
        steps, over = 0, False
        while not over:
            alpha, last, steps = self.alpha, self._step(stage), steps + 1
            change = float(np.abs(self.alpha - alpha).max())
            settled = change <= (stage.tol if last.shift else _EXACT)
            over = steps >= stage.most or (settled and last.shift <= stage.tol)
        return StageEnd(last, steps)

    def _step(self, stage: Stage) -> Step:
        """Move to the means of the rows with their weights at an exponent, and update the kernel
        weights from the costs there."""
        started, rows, objective = time.perf_counter(), self.rows, self.rows.objective
        k, before = len(self.W), (self.W, self.Y, self.squares)
        weights, soft, hard = self._weigh(stage.s)
        G = weights.sum(axis=1, dtype=np.float64)
        W, repairs = self._means(weights, G)
        self._move_to(W)
        penalty = objective.penalty(self.alpha, rows.total_weight)
        shift, distinct = self._shift(*before), self.count_distinct(hard)
        seconds = time.perf_counter() - started
        step = made_step(stage.s, k, soft, hard, penalty, shift, distinct, seconds)
        step = step._replace(repairs=repairs)
        rows.context.history.add_step(stage, step, self.number, rows.n, self.alpha)
        if objective.learns_weights:
            costs = rows.diagonals @ (G @ self.W) - self.squares @ G
            self.alpha = objective.reweigh(costs, power_constant(k, stage.s), rows.total_weight)
        self.passes += 1
        return step

    def cost(self, s: float) -> float:
        """The objective at the current centroids."""
        penalty = self.rows.objective.penalty(self.alpha, self.rows.total_weight)
        return power_constant(len(self.W), s) * self._weigh(s)[1] + penalty

    def nearly_hard_exponent(self) -> float:
        """The exponent at which annealing would end at these centroids."""
        return nearly_hard_exponent(lambda s: self._weigh(s)[1:], self.W.dtype)

    def count_distinct(self, hard: float) -> int:
        """The number of distinct centroids; the tolerance is relative to a hard objective."""
        mixed = self.Y @ self.W.T
        gram = np.einsum("l,lij->ij", self.alpha, mixed, dtype=np.float64)
        squares = gram.diagonal()
        eps = float(np.finfo(self.W.dtype).eps)
        rounding = max((8 * eps) ** 2 * self.rows.variance, 64 * eps * float(squares.max()))
        close = max(COINCIDENT * hard / self.rows.total_weight, rounding)
        near = np.tril(squares[:, None] + squares - gram - gram.T <= close, -1)
        distinct = np.ones(len(gram), dtype=bool)
        for j in np.flatnonzero(near.any(axis=1)):
            distinct[j] = not (near[j] & distinct).any()
        return int(distinct.sum())

    def _means(self, weights: Array, G: Array) -> tuple[Array, int]:
        """The means of rows with these weights (k, n), of the sums G. Centroids of empty clusters
        move to the costliest rows; how many did so is returned too."""
        stays = empty_clusters(G, weights.dtype)
        W = weights / np.where(stays, 1, G)[:, None].astype(weights.dtype)
        empty = np.flatnonzero(stays)
        if not len(empty):
            return W, 0
        W[empty] = self.W[empty]
        Y, diagonal, squares = self._combined()
        gaps = squares[:, None] - 2 * Y
        gaps[empty] = np.inf
        nearest = gaps.min(axis=0) + diagonal.astype(np.float64)
        costs = row_costs(nearest, self.rows.p, self.rows.variance, Y.dtype)
        chosen = costliest(costs, len(empty))
        places = empty[: len(chosen)]
        W[places] = 0
        W[places, chosen] = 1
        return W, len(chosen)

    def _shift(self, W: Array, Y: Array, squares: Array) -> float:
        """How far the centroids have moved from W, of these products and squared norms."""
        if np.array_equal(W, self.W):
            return 0.0
        k, variance = len(W), self.rows.variance
        mixed = np.einsum("kn,lkn->l", self.W, Y, dtype=np.float64)
        moved = self.alpha @ (squares.sum(axis=1) + self.squares.sum(axis=1) - 2 * mixed) / k
        return math.sqrt(max(moved, 0.0) / variance) if variance > 0 else 0.0

    def _combined(self) -> tuple[Array, Array, Array]:
        """Products, and squared norms of rows and of centroids, summed with the kernel weights."""
        dtype = self.W.dtype
        Y = np.einsum("l,lkn->kn", self.alpha.astype(dtype), self.Y)
        diagonal = self.alpha @ self.rows.diagonals
        return Y, diagonal.astype(dtype), (self.alpha @ self.squares).astype(dtype)

    def _weigh(self, s: float) -> tuple[Array, float, float]:
        """Return weights p_i v_ij (k, n) of the rows, sum p M' and the hard objective."""
        dtype = self.W.dtype
        rule = _core.HARD if is_hard(s, dtype) else _core.POWER
        result: tuple[Array, float, float] = config.backend().weigh_products(
            *self._combined(), self.rows.p.astype(dtype), rule, s, self.rows.context.n_threads
        )
        return result

    def _disturb(self, size: float) -> None:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        counted = self.rows.counted
        noise = self.rows.context.random.standard_normal(self.W.shape) * counted
        noise -= noise.sum(axis=1, keepdims=True) / counted.sum() * counted
        self._move_to(self.W + noise * (size / math.sqrt(counted.sum())))

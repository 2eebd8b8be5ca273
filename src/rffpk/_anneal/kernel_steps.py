"""Steps with exact kernels: centroids are weights W of the rows, moved by products W K.

theta_j = sum_i W_ji phi(x_i) with W_j summing to one, so ||phi(x_i) - theta_j||^2 = K_ii +
(W K W')_jj - 2 (W K)_ji. One product of K with the centroids of all starts, and O(n k) besides,
make a step of all starts. W (k, n) is the same for all kernels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rffpk import _core
from rffpk._anneal.decompositions import (
    KERNEL_ROWS,
    exponent_of_kernel_memberships,
    exponent_of_kernels,
)
from rffpk._anneal.feature_steps import COINCIDENT, costliest, row_costs
from rffpk._anneal.kernel_products import Products, squared_norms
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.search import HARDNESS, FitContext, Stage, StageEnd, nearly_hard_exponent
from rffpk._rows.sums import Step, is_hard, power_constant, power_objective, without_weight
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array


@dataclass(frozen=True)
class Proposed:
    """The first half of a step: centroids that a run may move to, once their products are known."""

    W: Array  # (k, n)
    G: Array  # (k,), the weights of the clusters
    soft: float  # sum p M', and ...
    hard: float  # ... the hard objective, at the centroids before
    repairs: int  # number of centroids of empty clusters that were moved
    started: float  # when the step was


@dataclass
class KernelSpace:
    """What starts with exact kernels share; they advance together."""

    products: Products
    weight: Array | None  # (n,) of the rows, float64, scaled to the range of float32
    objective: PowerMean
    seed: Callable[[KernelSpace], Array]  # draws initial centroids, (k, n)
    context: FitContext
    n_directions: int  # random directions whose mixtures are the disturbances

    lockstep: bool = field(default=True, init=False)
    dtype: Any = field(init=False)  # of the products
    total_weight: float = field(init=False)
    variance: float = field(init=False)  # total variance of the features
    alpha: Array = field(init=False)  # (L,): equal kernel weights
    directions: Array = field(init=False)  # (n_directions, n), and ...
    direction_products: Array = field(init=False)  # ... (L, n_directions, n) their products

    def __post_init__(self) -> None:
        """The total variance and the directions, with their products."""
        n, products = self.products.n, self.products
        self.dtype = products.dtype
        self.total_weight = float(n if self.weight is None else self.weight.sum())
        L = len(products.kernels)
        self.alpha = np.full(L, 1 / L)
        counted = np.ones(n) if self.weight is None else 1.0 * (self.weight > 0)
        m = int(counted.sum())
        directions = np.zeros((self.n_directions, n))
        drawn = self.context.random.standard_normal((self.n_directions, m))
        directions[:, counted > 0] = drawn / math.sqrt(m)
        directions = (directions - directions.sum(axis=1, keepdims=True) / m) * counted
        shares = np.stack([counted if self.weight is None else self.weight, counted])
        shares = shares / shares.sum(axis=1, keepdims=True)
        Y = products.multiply(np.concatenate([directions, shares])).astype(np.float64)
        gaps = products.diagonals[:, None] - Y[:, -2:]
        variances = self.alpha @ np.einsum("lmn,mn->lm", gaps, shares)
        self.variance, plain = (max(float(variance), 0.0) for variance in variances)
        resolved = 1e3 * float(np.finfo(self.dtype).eps)
        validation.check_weighted_variance(self.variance, plain, resolved, self.dtype)
        self.directions, self.direction_products = directions, Y[:, :-2]

    def members(self, labels: Array, k: int) -> Array:
        """The weights (k, n) of the rows in their clusters."""
        inside = np.arange(k)[:, None] == labels
        return np.asarray(inside * (1.0 if self.weight is None else self.weight))

    def critical_exponent(self) -> float:
        """The critical exponent of at most 500 random rows; 0 if these are equal."""
        counted = np.arange(self.products.n) if self.weight is None else np.flatnonzero(self.weight)
        index = np.sort(self.context.random.permutation(counted)[:KERNEL_ROWS])
        weight = None if self.weight is None else self.weight[index]
        grams = self.products.rows(index)[:, :, index]
        return exponent_of_kernels(grams, weight)

    def exponent_of_memberships(self, alpha: Array, labels: Array) -> float:
        """The exponent of memberships of the rows with these labels (n,), from at most 500 of
        them, evenly spaced."""
        counted = np.arange(self.products.n) if self.weight is None else np.flatnonzero(self.weight)
        index = counted[:: -(-len(counted) // KERNEL_ROWS)]
        weight = None if self.weight is None else self.weight[index]
        grams = self.products.rows(index)[:, :, index]
        return exponent_of_kernel_memberships(grams, alpha, labels[index], weight)

    def begin(self, numbers: list[int]) -> list[KernelRun]:
        """Runs of the starts with these numbers, with the products of their initial centroids."""
        Ws = [self.seed(self).astype(self.dtype) for _ in numbers]
        return [KernelRun(self, *each) for each in zip(Ws, self._multiply(Ws), numbers)]

    def advance(self, runs: list[KernelRun], stages: list[Stage]) -> list[StageEnd | None]:
        """One step of each run, with one product for all runs."""
        proposed = [run.propose(stage) for run, stage in zip(runs, stages)]
        Ys = self._multiply([each.W for each in proposed])
        moves = zip(runs, stages, proposed, Ys)
        return [run.move(stage, to, Y) for run, stage, to, Y in moves]

    def _multiply(self, Ws: list[Array]) -> list[Array]:
        """The products (L, k, n) of each W."""
        Y, k = self.products.multiply(np.concatenate(Ws)), len(Ws[0])
        return [Y[:, begin : begin + k] for begin in range(0, Y.shape[1], k)]


class KernelRun:
    """One start: its centroids W (k, n), their products, and its kernel weights."""

    def __init__(self, space: KernelSpace, W: Array, Y: Array, number: int) -> None:
        self.space, self.number, self.passes = space, number, 0
        self.n_rows, self.k = space.products.n, len(W)
        self._steps = 0  # of the current stage
        self.alpha = space.alpha
        self.W = W
        self.Y = Y  # W K_l, (L, k, n), and ...
        self.squares = squared_norms(W, Y)  # ... squared norms of the centroids, (L, k)

    def propose(self, stage: Stage) -> Proposed:
        """The next W, from the weights of the rows at the exponent of a stage."""
        started = time.perf_counter()
        if stage.noise and not self._steps:
            self._disturb(stage.noise)
        weights, soft, hard = self._weigh(stage.s)
        G = weights.sum(axis=1, dtype=np.float64)
        stays = without_weight(G, self.space.dtype)
        means = weights / np.where(stays, 1, G)[:, None].astype(weights.dtype)
        W = means.astype(weights.dtype, copy=False)
        empty = np.flatnonzero(stays)
        W[empty] = self.W[empty]
        repairs = self._relocate(W, empty) if len(empty) else 0
        return Proposed(W, G, soft, hard, repairs, started)

    def move(self, stage: Stage, to: Proposed, Y: Array) -> StageEnd | None:
        """Move to the proposed W, whose products are Y, and update the kernel weights; returns the
        end of the stage, None if it is not over."""
        k, objective = self.k, self.space.objective
        squares = squared_norms(to.W, Y)
        shift = self._shift(to.W, squares)
        penalty = objective.penalty(self.alpha, self.space.total_weight)
        value = power_objective(to.soft, to.hard, k, stage.s) + penalty
        self.W, self.Y, self.squares = to.W, Y, squares
        distinct = self.count_distinct(to.hard)
        seconds = time.perf_counter() - to.started
        step = Step(
            to.soft, to.hard, value, penalty, shift, distinct, distinct < k, seconds, to.repairs
        )
        self.space.context.history.add_step(stage, step, self.number, self.n_rows, self.alpha)
        if objective.learns_weights:  # from the costs at the new centroids
            costs = self.space.products.diagonals @ (to.G @ self.W) - squares @ to.G
            constant = power_constant(k, stage.s)
            self.alpha = objective.reweigh(costs, constant, self.space.total_weight)
        self.passes += 1
        self._steps += 1
        if not stage.is_over(self._steps, shift):
            return None
        steps, self._steps = self._steps, 0
        return StageEnd(step, steps)

    def cost(self, s: float) -> float:
        """The objective at the current centroids."""
        _, soft, hard = self._weigh(s)
        penalty = self.space.objective.penalty(self.alpha, self.space.total_weight)
        return power_objective(soft, hard, self.k, s) + penalty

    def nearly_hard_exponent(self) -> float:
        """The exponent at which annealing would end at these centroids."""

        def is_nearly_hard(s: float) -> bool:
            _, soft, hard = self._weigh(s)
            return hard > 0 and soft >= (1 - HARDNESS) * hard

        return nearly_hard_exponent(is_nearly_hard, self.space.dtype)

    def distances(self) -> Array:
        """Squared distances (n, k) of the rows from the centroids."""
        Y, diagonal, squares = (each.astype(np.float64) for each in self._combined())
        return np.maximum(diagonal[:, None] + squares - 2 * Y.T, 0)

    def count_distinct(self, hard: float) -> int:
        """The number of distinct centroids; the tolerance is relative to a hard objective."""
        dtype = self.space.dtype
        mixed = self.Y @ self.W.T
        gram = np.einsum("l,lij->ij", self.alpha, mixed, dtype=np.float64)
        squares = gram.diagonal()
        eps = float(np.finfo(dtype).eps)
        rounding = max((8 * eps) ** 2 * self.space.variance, 64 * eps * float(squares.max()))
        close = max(COINCIDENT * hard / self.space.total_weight, rounding)
        near = np.tril(squares[:, None] + squares - gram - gram.T <= close, -1)
        distinct = np.ones(len(gram), dtype=bool)
        for j in np.flatnonzero(near.any(axis=1)):
            distinct[j] = not (near[j] & distinct).any()
        return int(distinct.sum())

    def _shift(self, W: Array, squares: Array) -> float:
        """How far centroids move to W, of these squared norms."""
        if np.array_equal(W, self.W):
            return 0.0
        k, variance = self.k, self.space.variance
        mixed = np.einsum("kn,lkn->l", W, self.Y, dtype=np.float64)
        moved = self.alpha @ (squares.sum(axis=1) + self.squares.sum(axis=1) - 2 * mixed) / k
        return math.sqrt(max(moved, 0.0) / variance) if variance > 0 else 0.0

    def _combined(self) -> tuple[Array, Array, Array]:
        """Products, and squared norms of rows and of centroids, summed with the kernel weights."""
        dtype = self.space.dtype
        Y = np.einsum("l,lkn->kn", self.alpha.astype(dtype), self.Y)
        diagonal = self.alpha @ self.space.products.diagonals
        return Y, diagonal.astype(dtype), (self.alpha @ self.squares).astype(dtype)

    def _weigh(self, s: float) -> tuple[Array, float, float]:
        """Weights p_i v_ij (k, n) of the rows, sum p M' and the hard objective."""
        dtype, weight = self.space.dtype, self.space.weight
        weight = None if weight is None else weight.astype(dtype)
        rule = _core.HARD if is_hard(s, dtype) else _core.POWER
        n_threads = self.space.products.n_threads
        result: tuple[Array, float, float] = config.backend().weigh_products(
            *self._combined(), weight, rule, s, n_threads
        )
        return result

    def _disturb(self, size: float) -> None:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        directions, dtype = self.space.directions, self.space.dtype
        n_directions = len(directions)
        mix = self.space.context.random.standard_normal((self.k, n_directions))
        mix = mix * size / math.sqrt(n_directions)
        self.W = (self.W + mix @ directions).astype(dtype)
        self.Y = (self.Y + mix @ self.space.direction_products).astype(dtype)
        self.squares = squared_norms(self.W, self.Y)

    def _relocate(self, W: Array, empty: Array) -> int:
        """Move the centroids W of these empty clusters, in place, to the costliest rows; return how
        many moved."""
        Y, diagonal, squares = self._combined()
        gaps = squares[:, None] - 2 * Y
        gaps[empty] = np.inf
        nearest = gaps.min(axis=0) + diagonal.astype(np.float64)
        costs = row_costs(nearest, self.space.weight, self.space.variance, Y.dtype)
        chosen = costliest(costs, len(empty))
        places = empty[: len(chosen)]
        W[places] = 0
        W[places, chosen] = 1
        return len(chosen)


def cluster_means(members: Array) -> Array:
    """The means of clusters as weights of the rows, from the weights of the rows in them, (k, n);
    zero if a cluster is empty."""
    G = members.sum(axis=-1, keepdims=True)
    return np.asarray(members / np.where(G > 0, G, 1))

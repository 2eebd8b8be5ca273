"""Steps with exact kernels: centroids are weights W of the rows, moved by products W K.

theta_j = sum_i W_ji phi(x_i) with W_j summing to one, so ||phi(x_i) - theta_j||^2 = K_ii +
(W K W')_jj - 2 (W K)_ji. A step takes one product of K with the centroids, and O(n k) time besides.
If there are several kernels, W (k, n) is common to all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk.anneal import decompositions
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Stage, StageEnd, nearly_hard_exponent
from rffpk.anneal.steps import COINCIDENT, costliest, row_costs
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.passes import column_rows, made_step
from rffpk.rows.rows import Rows
from rffpk.rows.sums import Step, empty_clusters, is_hard, power_constant
from rffpk.spaces.kernels import FittedKernel
from rffpk.system import config
from rffpk.system.linalg import run_all, tiles
from rffpk.system.tuning import TUNING

# Kernel weights have converged if none changes by more in a step that moves no centroid.
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
        """Return the stage that ends a fit, with the passes that the start has left."""
        return stage._replace(most=max(stage.most - state.passes, 1))

    def first(self, W: Array, alpha: Array) -> State:
        """Return the state of a start with these centroids."""
        return self.moved(State(W, alpha), W)

    def moved(self, state: State, W: Array) -> State:
        """Return the state at the centroids W (k, n), with their products with the kernels."""
        W = np.asarray(W, dtype=self.rows.dtype)
        return state._replace(theta=W, products=self.rows.multiply(W))

    def follow(self, state: State, stage: Stage) -> tuple[State, StageEnd]:
        """Make the steps of a stage; return the state and the end of the stage.

        The stage goes on while kernel weights change, even if no centroid moved in a step. New
        kernel weights may move centroids in the next step."""
        state = self._disturbed(state, stage.noise) if stage.noise else state
        steps, over = 0, False
        while not over:
            state, (result, change) = self.context.journal.run(self._step, state, stage)
            state = state._replace(passes=state.passes + 1)
            last, steps = Step(*result), steps + 1
            settled = change <= (stage.tol if last.shift else _EXACT)  # the kernel weights
            over = steps >= stage.most or (settled and last.shift <= stage.tol)
        return state, StageEnd(last, steps)

    def _step(self, state: State, stage: Stage) -> tuple[State, tuple[Step, float]]:
        """Move the centroids to the weighted means of the rows, at the exponent of the stage.

        Then update the kernel weights from the costs at the new centroids. Return the state, and
        two results: the record of the step, and the largest change of a kernel weight."""
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
            # sum_ij p_i w_ij d_ij = sum_j G_j (sum_i W_ji k(i, i) - ||c_j||^2), for each kernel
            squares = squared_norms(new.theta, new.products)
            costs = rows.diagonals @ (G @ new.theta) - squares @ G
            alpha = objective.reweigh(costs, power_constant(k, stage.s), rows.total_weight)
        return new._replace(alpha=alpha), (step, float(np.abs(alpha - state.alpha).max()))

    def cost(self, state: State, s: float) -> tuple[State, float]:
        """Return the state and the objective at its centroids, at the exponent s."""
        penalty = self.rows.objective.penalty(state.alpha, self.rows.total_weight)
        soft = self._weigh(state, s)[1]
        return state, float(power_constant(len(state.theta), s) * soft + penalty)

    def nearly_hard_exponent(self, state: State) -> tuple[State, float]:
        """Return the exponent at which annealing would end at the centroids of a state."""
        s = nearly_hard_exponent(lambda s: self._weigh(state, s)[1:], self.rows.dtype)
        return state, float(s)

    def count_distinct(self, state: State, hard: float) -> int:
        """Count the distinct centroids of a state.

        Centroids coincide if their squared distance is at most a rounding error, or a tiny part of
        the mean cost of a row. `hard` is the hard objective."""
        mixed = state.products @ state.theta.T
        gram = np.einsum("l,lij->ij", state.alpha, mixed, dtype=np.float64)
        squares = gram.diagonal()
        eps = float(np.finfo(self.rows.dtype).eps)
        # rounding of centroids, and of inner products
        rounding = max((8 * eps) ** 2 * self.rows.variance, 64 * eps * float(squares.max()))
        close = max(COINCIDENT * hard / self.rows.total_weight, rounding)
        # a centroid is distinct if it coincides with no distinct centroid before it
        near = np.tril(squares[:, None] + squares - gram - gram.T <= close, -1)
        distinct = np.ones(len(gram), dtype=bool)
        for j in np.flatnonzero(near.any(axis=1)):
            distinct[j] = not (near[j] & distinct).any()
        return int(distinct.sum())

    def _means(self, state: State, weights: Array, G: Array) -> tuple[Array, int]:
        """Return new centroids (k, n): weights of the rows that sum to one for each centroid.

        `weights` (k, n) have the sums G (k,). Centroids of empty clusters move to the costliest
        rows, or stay if too few rows have a cost. Return also how many centroids moved."""
        is_empty = empty_clusters(G, weights.dtype)
        W = weights / np.where(is_empty, 1, G)[:, None].astype(weights.dtype)
        empty = np.flatnonzero(is_empty)
        if not len(empty):
            return W, 0
        W[empty] = state.theta[empty]  # centroids without a costly row stay
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
        """Return the root mean square shift of centroids, in standard deviations of features.

        The result is 0 if no weight changed, or if the variance is 0."""
        W, Y = before.theta, before.products
        if np.array_equal(W, after.theta):
            return 0.0
        k, variance = len(W), self.rows.variance
        # sum_j ||c_j - c'_j||^2, with the inner products of old and new centroids in `mixed`
        mixed = np.einsum("kn,lkn->l", after.theta, Y, dtype=np.float64)
        new = squared_norms(after.theta, after.products)
        squares = squared_norms(W, Y).sum(axis=1) + new.sum(axis=1)
        moved = before.alpha @ (squares - 2 * mixed) / k
        return math.sqrt(max(moved, 0.0) / variance) if variance > 0 else 0.0

    def _combined(self, state: State) -> tuple[Array, Array, Array]:
        """Return the terms of squared distances, summed over kernels with their weights.

        The results are the products (k, n) of centroids and rows, the squared norms (n,) of the
        rows, and the squared norms (k,) of the centroids."""
        dtype, alpha, products = self.rows.dtype, state.alpha, state.products
        Y = np.einsum("l,lkn->kn", alpha.astype(dtype), products)
        squares = alpha @ squared_norms(state.theta, products)
        return Y, (alpha @ self.rows.diagonals).astype(dtype), squares.astype(dtype)

    def _weigh(self, state: State, s: float) -> tuple[Array, float, float]:
        """Return the weights p_i v_ij (k, n) of the rows in the centroids at an exponent s.

        Also return the sum of p_i M'_i, the power means without their constant, and the hard
        objective."""
        rule = _core.HARD if is_hard(s, self.rows.dtype) else _core.POWER
        weight, n_threads = self.rows.p.astype(self.rows.dtype), self.context.n_threads
        weigh = config.backend().weigh_products
        return weigh(*self._combined(state), weight, rule, s, n_threads)

    def _disturbed(self, state: State, size: float) -> State:
        """Move every centroid at random, by `size` standard deviations of the features."""
        counted = self.rows.counted
        noise = self.context.random.standard_normal(state.theta.shape) * counted
        # the weights of each centroid still sum to one
        noise -= noise.sum(axis=1, keepdims=True) / counted.sum() * counted
        # over m rows, weights of variance 1/m move a centroid by about one standard deviation
        return self.moved(state, state.theta + noise * (size / math.sqrt(counted.sum())))


# ---- rows with kernels ---------------------------------------------------------------------------


class KernelRows:
    """The rows of a fit: weights, objective, and kernels K_l with their origin near the rows."""

    def __init__(
        self, kernels: list[FittedKernel], weight: Array, objective: PowerMean,
        context: FitContext,
    ) -> None:  # fmt: skip
        self.kernels, self.objective, self.context = kernels, objective, context
        self.n, self.p = kernels[0].n, weight  # (n,), float64, in the range of float32
        self.dtype = np.result_type(*(kernel.dtype for kernel in kernels))
        self.diagonals = np.stack([kernel.diagonal for kernel in kernels])  # (L, n)
        self.definite = True  # whether no kernel is known to be indefinite
        for number, kernel in enumerate(kernels):
            if not kernel.is_finite():
                raise ValueError(
                    f"kernel {number} has values that are NaN or overflow {self.dtype}; rescale X, "
                    "pass float64, or choose other parameters of the kernel."
                )
        # rows of a stored matrix are padded to a multiple of SKINNY_STRIDE numbers
        line = -(-self.n // _core.SKINNY_STRIDE) * _core.SKINNY_STRIDE
        needed = sum(self.n * line * kernel.dtype.itemsize for kernel in kernels)
        self.stored: list[Array] | None = None
        if context.storage.check_fits(needed, "the kernel matrices"):
            self.stored = [_core.empty_matrix(self.n, self.n, self.dtype) for _ in kernels]

            def fill(tile: tuple[slice, slice]) -> None:
                for kernel, matrix in zip(kernels, self.stored or ()):
                    matrix[tile] = kernel.block(*tile)

            run_all(fill, tiles(self.n, self.n), context.n_threads)
        self.counted = self.p > 0
        index = np.flatnonzero(self.counted)
        # indices (m,) of evenly spaced rows of positive weight, for decompositions
        self.some = index[:: -(-len(index) // TUNING.sampling.decomposed_rows)]
        self.equal = np.full(len(kernels), 1 / len(kernels))  # kernel weights
        self.total_weight = float(self.p.sum())
        # the total variance of the features, with equal kernel weights
        self.variance = self.squares(self.equal, self.p) / self.total_weight
        # the same without row weights, for a check of rounding errors
        plain = self.squares(self.equal, 1.0 * self.counted) / len(index)
        resolved = 1e3 * float(np.finfo(self.dtype).eps)
        checks.check_weighted_variance(self.variance, plain, resolved, self.dtype)

    def multiply(self, W: Array, precise: bool = False) -> Array:
        """Return the products W K_l with all kernels, (L, m, n), for W (m, n).

        `precise`: compute in double precision. Kernels that are stored in single precision are
        computed again for that."""
        dtype, n_threads = np.dtype(np.float64) if precise else self.dtype, self.context.n_threads
        W = np.ascontiguousarray(W, dtype=dtype)
        out = np.empty((len(self.kernels), *W.shape), dtype=dtype)
        if self.stored is not None and dtype == self.dtype:
            for matrix, product in zip(self.stored, out):
                config.backend().skinny_product(W, matrix, product, n_threads)
            return out

        def fill(row_tiles: list[tuple[slice, slice]]) -> None:
            """Set the products of one block of kernel rows, summed over tiles of columns."""
            rows = row_tiles[0][0]
            for kernel, product in zip(self.kernels, out):
                parts = (
                    W[:, columns] @ kernel.block(rows, columns).astype(dtype, copy=False).T
                    for _, columns in row_tiles
                )
                product[:, rows] = sum(parts)

        by_rows = groupby(tiles(self.n, self.n), key=lambda tile: tile[0].start)
        run_all(fill, [list(group) for _, group in by_rows], n_threads)
        return out

    def combined(self, W: Array, alpha: Array) -> NDArray[np.float64]:
        """Return W sum_l alpha_l K_l, (m, n), for W (m, n)."""
        return np.tensordot(alpha, self.multiply(W).astype(np.float64), 1)

    def squares(self, alpha: Array, p: Array) -> float:
        """Return sum_i p_i ||phi_i - c||^2 in the feature space of sum_l alpha_l k_l.

        c is the mean of the rows with the weights p (n,)."""
        share = p / p.sum()
        mean = self.combined(share[None], alpha)[0]
        return max(float(p @ (alpha @ self.diagonals) - p.sum() * (share @ mean)), 0.0)

    def means(self, labels: Array, k: int) -> tuple[Array, Array]:
        """Return the means of clusters as weights (k, n) of the rows, and the cluster masses (k,).

        `labels` (n,) are the clusters of the rows. The weights of an empty cluster are zero."""
        members = (np.arange(k)[:, None] == labels) * self.p
        masses = members.sum(axis=1)
        return members / np.where(masses > 0, masses, 1)[:, None], masses

    def gram(self, alpha: Array) -> Array:
        """Return the inner products (m, m) of evenly spaced rows with these kernel weights."""
        if self.stored is None:
            parts = [kernel.block(self.some, self.some) for kernel in self.kernels]
        else:
            parts = [matrix[np.ix_(self.some, self.some)] for matrix in self.stored]
        return np.tensordot(alpha, np.asarray(parts, dtype=np.float64), 1)

    def exponent(self, gram: Array, labels: Array | None = None) -> float:
        """Return the critical exponent of rows with these inner products (m, m).

        `gram` is of the evenly spaced rows `some`. With labels (n,) of all rows, it is the critical
        exponent inside of the clusters, relative to their means. The result is -inf if the rows of
        each cluster are equal."""
        labels = np.zeros(len(gram), int) if labels is None else labels[self.some]
        p = self.p[self.some]
        inside = p * (labels[:, None] == labels)
        # `apart` times the features gives the features less the means of their clusters
        apart = np.eye(len(p)) - inside / inside.sum(axis=1, keepdims=True)
        return decompositions.exponent_of_gram(apart @ gram @ apart.T, p)

    def components(self, alpha: Array) -> tuple[Rows, float]:
        """Return rows whose features are principal components of a weighted sum of kernels.

        The kernel sum_l alpha_l k_l is centered at the mean. The second result is the part of the
        total sum of squares that the components leave out. There are as many components as the
        hard objective needs, where that pays and memory allows it. Otherwise there are fewer, the
        leading components.

        O(L n^2 r) time for r components, or O(L n^3) if few rows need many components."""
        n, storage, total = self.n, self.context.storage, self.squares(alpha, self.p)
        root, share = np.sqrt(self.p), self.p / self.total_weight

        def multiply(V: Array) -> Array:
            """Multiply the centered and weighted kernel with columns."""
            columns = root[:, None] * V
            # subtract the mean on both sides of the kernel
            columns = columns - share[:, None] * columns.sum(axis=0)
            product = self.combined(columns.T, alpha).T
            return np.asarray(root[:, None] * (product - share @ product))

        whole: Callable[[], Array] | None = None
        if n <= TUNING.components.kernel_rows:
            whole = partial(multiply, np.eye(n))
        # The images are eigenvectors times eigenvalues. Divided by the roots of eigenvalues and of
        # weights, they are the components.
        squares, _, images = decompositions.components_for_clusters(
            multiply, whole, total, n, self.context.k,
            lambda r: storage.fits(5 * 8 * n * r),  # five copies in float64
        )  # fmt: skip
        resolved = squares > n * float(np.finfo(self.dtype).eps) * squares[0]
        scale = np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=resolved)
        x = np.ascontiguousarray(images * scale / np.where(root > 0, root, 1)[:, None])
        rows = column_rows(x, self.p, self.context.n_threads)
        return rows, max(total - decompositions.total_squares(rows), 0.0)


def kernel_coordinates(kernel: FittedKernel) -> NDArray[np.float64]:
    """Return coordinates (n, r) of the rows whose inner products approximate the kernel matrix.

    The coordinates are the factor of a pivoted Cholesky decomposition, column by column. Only rows
    of positive weight are pivots. If the kernel has negative eigenvalues, the decomposition ends
    before the first negative pivot. r is at most `TUNING.number.coordinates`; without a pivot, the
    result is a column of zeros. O(n r^2) time."""
    most, r = min(TUNING.number.coordinates, len(kernel.counted)), 0
    left = np.zeros(kernel.n)  # diagonal of the kernel less its approximation
    left[kernel.counted] = kernel.diagonal[kernel.counted]
    least, columns = 1e-6 * left.max(), np.zeros((kernel.n, max(most, 1)))
    while r < most and left.max() > least:  # false, too, before a negative pivot
        pivot = left.argmax()
        row = kernel.block(np.array([pivot]))[0]
        column = row - columns[:, :r] @ columns[pivot, :r]
        columns[:, r] = column / math.sqrt(left[pivot])
        left -= columns[:, r] ** 2
        r += 1
    return np.ascontiguousarray(columns[:, : max(r, 1)])

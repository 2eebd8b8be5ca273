"""Annealing with exact kernels: centroids as weights of the rows, moved by products K W.

theta_j = sum_i W_ji phi(x_i) with W_j summing to one, so ||phi(x_i) - theta_j||^2 = K_ii +
(W K W')_jj - 2 (W K)_ji: one product of K with the centroids of all starts and O(n k) beside it
make a step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.special import softmax, xlogy

from rffpk import _config, _core
from rffpk._annealing.primal import (
    Record,
    coincidence,
    count_distinct,
    critical_exponent,
    log,
)
from rffpk._annealing.schedule import Course, Result, Seen, Step
from rffpk._data.arrays import Array
from rffpk._data.passes import is_hard, power_constant
from rffpk._data.tiles import run_all, tiles
from rffpk.kernels import FittedKernel

# Kernels are centred at the mean of so many rows, so that what is left is about distances and
# float32 holds it. Any point near the data does.
_CENTER_ROWS = 256

_VANISHED = 1e-30
_CRITICAL_ROWS = 500


class Products:
    """Products of the centred kernels with a few vectors: stored, or made anew block by block."""

    def __init__(self, kernels: list[FittedKernel], n_threads: int, stored: bool) -> None:
        self.kernels, self.n, self.n_threads = kernels, kernels[0].n, n_threads
        self.dtype = np.result_type(*(kernel.dtype for kernel in kernels))
        step = -(-self.n // _CENTER_ROWS)
        self._places = np.arange(0, self.n, step)
        with_places = [kernel.block(self._places) for kernel in kernels]
        own = np.stack([kernel.diagonal for kernel in kernels])
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            self.offsets = np.stack([block.mean(axis=0) for block in with_places])  # (L, n)
            self.means = self.offsets[:, self._places].mean(axis=1)
            self.diagonals = np.maximum(own - 2 * self.offsets + self.means[:, None], 0)
            self._check_finite()
        self.stored = self._all() if stored else None

    def _check_finite(self) -> None:
        largest = np.finfo(self.dtype).max
        for number, values in enumerate(zip(self.offsets, self.diagonals)):
            if not all(np.isfinite(v).all() and np.abs(v).max() < largest for v in values):
                raise ValueError(
                    f"kernel {number} has values that are NaN or overflow {self.dtype}; rescale X, "
                    "pass float64, or choose other parameters of the kernel."
                )

    @staticmethod
    def stored_bytes(kernels: list[FittedKernel]) -> int:
        """Memory that the kernels take."""
        n = kernels[0].n
        line = -(-n // _core.SKINNY_STRIDE) * _core.SKINNY_STRIDE
        return sum(n * line * kernel.dtype.itemsize for kernel in kernels)

    def _all(self) -> list[Array]:
        found = []
        for number in range(len(self.kernels)):
            matrix = _core.empty_matrix(self.n, self.n, self.dtype)

            def fill(
                tile: tuple[slice, slice], number: int = number, matrix: Array = matrix
            ) -> None:
                matrix[tile] = self._tile(number, *tile)

            run_all(fill, tiles(self.n, self.n), self.n_threads)
            found.append(matrix)
        return found

    def _tile(self, number: int, rows: slice | Array, columns: slice) -> Array:
        """A part of a centred kernel: <phi_i - c, phi_j - c>."""
        tile = self.kernels[number].block(rows, columns)
        tile -= self.offsets[number, columns] - self.means[number]
        tile -= self.offsets[number, rows, None]
        return tile.astype(self.dtype, copy=False)

    def multiply(self, W: Array) -> Array:
        """W K_l of all kernels, (L, m, n), for W (m, n)."""
        W = np.ascontiguousarray(W, dtype=self.dtype)
        out = np.empty((len(self.kernels), *W.shape), dtype=self.dtype)
        if self.stored is not None:
            for matrix, product in zip(self.stored, out):
                _config.backend().skinny_product(W, matrix, product, self.n_threads)
            return out

        def fill(row_tiles: list[tuple[slice, slice]]) -> None:
            rows = row_tiles[0][0]
            for number, product in enumerate(out):
                parts = (
                    W[:, columns] @ self._tile(number, rows, columns).T for _, columns in row_tiles
                )
                product[:, rows] = sum(parts)

        by_rows = groupby(tiles(self.n, self.n), key=lambda tile: tile[0].start)
        run_all(fill, [list(group) for _, group in by_rows], self.n_threads)
        return out

    def rows(self, index: Array) -> Array:
        """Centred rows of all kernels, (L, m, n)."""
        if self.stored is not None:
            return np.stack([matrix[index, : self.n] for matrix in self.stored])
        every = slice(0, self.n)
        return np.stack([self._tile(number, index, every) for number in range(len(self.kernels))])


@dataclass(frozen=True)
class Dual:
    """What all starts share."""

    products: Products
    weight: Array | None  # (n,) of the rows, float64
    lam: float | None  # lambda of the kernel weights; None: they stay equal
    variance: float
    noise: Array  # (b, n) random directions, and ...
    noise_products: Array  # ... (L, b, n) their products
    n_threads: int
    unit: float  # of the weights, which float32 holds: what is reported is in its multiples

    @property
    def total_weight(self) -> float:
        return float(self.products.n if self.weight is None else self.weight.sum())


def make_dual(
    products: Products,
    weight: Array | None,
    lam: float | None,
    directions: int,
    random: Any,
    n_threads: int,
) -> Dual:
    """The shared part, with one product for the variance and the directions of disturbances."""
    n, unit = products.n, 1.0
    if weight is not None:
        unit = 2.0 ** math.frexp(float(weight.max()))[1]
        weight = weight / unit
    lam = None if lam is None else lam / unit
    noise = random.standard_normal((directions, n)) / math.sqrt(n)
    noise -= noise.mean(axis=1, keepdims=True)
    share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    found = products.multiply(np.vstack([noise, share])).astype(np.float64)
    variances = products.diagonals @ share - found[:, -1] @ share
    return Dual(
        products, weight, lam, max(float(variances.mean()), 0.0), noise, found[:, :-1], n_threads,
        unit,
    )  # fmt: skip


def critical(dual: Dual, random: Any) -> float:
    """The critical exponent of a few rows; 0 if those are equal."""
    products = dual.products
    counted = np.arange(products.n) if dual.weight is None else np.flatnonzero(dual.weight)
    index = np.sort(random.permutation(counted)[:_CRITICAL_ROWS])
    gram = products.rows(index)[:, :, index].mean(axis=0, dtype=np.float64)
    weight = None if dual.weight is None else dual.weight[index]
    found = critical_exponent(features_of(gram), weight)
    return found if math.isfinite(found) else 0.0


def features_of(gram: Array) -> Array:
    """Vectors with these inner products, one a row."""
    values, vectors = eigh((gram + gram.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def seed_rows(dual: Dual, k: int, init: str, random: Any) -> NDArray[np.intp]:
    """k rows, at random or by greedy k-means++ in the kernel space. O(n k log k) evaluations."""
    products, n = dual.products, dual.products.n
    weight = np.ones(n) if dual.weight is None else dual.weight
    if init == "random":
        return np.asarray(random.choice(n, k, replace=False, p=weight / weight.sum()))
    diagonal = products.diagonals.mean(axis=0)

    def distances(index: Array) -> Array:
        y = products.rows(index).mean(axis=0, dtype=np.float64)
        return np.maximum(diagonal + diagonal[index, None] - 2 * y, 0)

    chosen = [int(random.choice(n, p=weight / weight.sum()))]
    least = distances(np.array(chosen))[0]
    trials = 2 + int(math.log(k))
    while len(chosen) < k:
        cost = weight * least
        cost[chosen] = 0
        if not cost.any():  # no more distinct rows
            cost = weight.copy()
            cost[chosen] = 0
        candidates = random.choice(n, trials, p=cost / cost.sum())
        new = np.minimum(distances(candidates), least)
        best = int((new @ weight).argmin())
        chosen.append(int(candidates[best]))
        least = new[best]
    return np.array(chosen)


class DualRun:
    """One start on its way: W, its products, and the record that it leaves of every step."""

    def __init__(
        self, dual: Dual, W: Array, history: list[Record], random: Any, start: int, verbose: int
    ) -> None:
        self.dual, self.history, self.random = dual, history, random
        self.start, self.verbose = start, verbose
        n_kernels = len(dual.products.kernels)
        self.alpha = np.full(n_kernels, 1 / n_kernels)
        self.W = W
        self.Y = np.empty(0)  # (L, k, n) and ...
        self.squares = np.empty(0)  # ... (L, k), once the product is known
        self.passes = 0

    def arrive(self, Y: Array) -> None:
        """Take the products of W."""
        self.Y, self.squares = Y, squared_norms(self.W, Y)

    def propose(self, step: Step) -> Array:
        """The next W, from the weights at the exponent of a step."""
        self._started, self._step = time.perf_counter(), step
        if step.noise:
            self._disturb(step.noise)
        weights, self._soft, self._floor = self._weigh(step.s)
        G = weights.sum(axis=1, dtype=np.float64)
        gone = ~(G > _VANISHED * G.sum())
        self._next = weights / np.where(gone, 1, G)[:, None].astype(weights.dtype)
        self._G, self._repairs = G, self._relocate(gone) if gone.any() else 0
        return self._next

    def accept(self, Y: Array) -> Seen:
        """Go there, with its products."""
        dual, step, k = self.dual, self._step, len(self.W)
        squares = squared_norms(self._next, Y)
        shift = 0.0
        if not np.array_equal(self._next, self.W):
            mixed = np.einsum("kn,lkn->l", self._next, self.Y, dtype=np.float64)
            moved = self.alpha @ (squares.sum(axis=1) + self.squares.sum(axis=1) - 2 * mixed) / k
            shift = math.sqrt(max(moved, 0.0) / dual.variance) if dual.variance > 0 else 0.0
        penalty = self.penalty()
        objective = self._objective(step.s) + penalty
        self.W, self.Y, self.squares = self._next, Y, squares
        record: Record = {
            "stage": step.stage,
            "start": self.start,
            "rows": dual.products.n,
            "s": step.s,
            "objective": dual.unit * objective,
            "shift": shift,
            "distinct": self.distinct(),
            "repairs": self._repairs,
            "seconds": time.perf_counter() - self._started,
        }
        if len(self.alpha) > 1:
            record["kernel_weights"] = self.alpha
        log(record, self.history, self.verbose)
        self._reweigh(step.s)
        self.passes += 1
        merged = record["distinct"] < k
        return Seen(self._soft, self._floor, objective, penalty, shift, merged)

    def cost(self, s: float) -> float:
        """The objective where the centroids are."""
        _, self._soft, self._floor = self._weigh(s)
        return self._objective(s) + self.penalty()

    def penalty(self) -> float:
        """lambda sum alpha log(L alpha)."""
        if self.dual.lam is None:
            return 0.0
        return self.dual.lam * float(xlogy(self.alpha, len(self.alpha) * self.alpha).sum())

    def labels(self) -> NDArray[np.int32]:
        """The nearest centroid of each row."""
        labels = np.empty(self.dual.products.n, dtype=np.int32)
        self._weigh(-math.inf, labels)
        return labels

    def distinct(self) -> int:
        """Centroids that do not coincide, beside what rows cost when they were weighed last."""
        dual = self.dual
        gram = np.einsum("l,lij->ij", self.alpha, self.Y @ self.W.T, dtype=np.float64)
        dtype = dual.products.dtype
        close_by = coincidence(self._floor / dual.total_weight, dual.variance, dtype)
        close_by = max(close_by, 64 * float(np.finfo(dtype).eps * gram.diagonal().max()))
        return count_distinct(features_of(gram), close_by)

    def _objective(self, s: float) -> float:
        return self._floor if math.isinf(s) else power_constant(len(self.W), s) * self._soft

    def _combined(self) -> tuple[Array, Array, Array]:
        """Products, squared norms of rows and of centroids, with the kernel weights."""
        dtype = self.dual.products.dtype
        if len(self.alpha) == 1:
            Y = np.ascontiguousarray(self.Y[0])
        else:
            Y = np.einsum("l,lkn->kn", self.alpha.astype(dtype), self.Y)
        diagonal = self.alpha @ self.dual.products.diagonals
        return Y, diagonal.astype(dtype), (self.alpha @ self.squares).astype(dtype)

    def _weigh(self, s: float, labels: Array | None = None) -> tuple[Array, float, float]:
        dual = self.dual
        dtype = dual.products.dtype
        hard = is_hard(s, dtype)
        weight = None if dual.weight is None else dual.weight.astype(dtype)
        rule = _core.HARD if hard else _core.POWER
        found: tuple[Array, float, float] = _config.backend().weigh_products(
            *self._combined(), weight, rule, s, dual.n_threads, labels=labels
        )
        return found

    def _reweigh(self, s: float) -> None:
        """alpha_l ~ exp(-cost_l / lambda), from the costs at the new centroids."""
        if self.dual.lam is None:
            return
        rows = np.einsum("k,kn->n", self._G, self.W)
        costs = self.dual.products.diagonals @ rows - self.squares @ self._G
        scale = 1.0 if math.isinf(s) else power_constant(len(self.W), s)
        self.alpha = softmax(scale * (costs.min() - costs) / self.dual.lam)

    def _disturb(self, size: float) -> None:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        noise, products = self.dual.noise, self.dual.noise_products
        mix = self.random.standard_normal((len(self.W), len(noise))) * size / math.sqrt(len(noise))
        dtype = self.dual.products.dtype
        self.W = (self.W + mix @ noise).astype(dtype)
        self.arrive((self.Y + mix @ products).astype(dtype))

    def _relocate(self, gone: Array) -> int:
        """Move vanished centroids to the rows that cost most; returns how many moved."""
        Y, diagonal, squares = self._combined()
        kept = ~gone
        nearest = (squares[kept, None] - 2 * Y[kept]).min(axis=0) + diagonal.astype(np.float64)
        nearest[nearest <= 64 * np.finfo(Y.dtype).eps * self.dual.variance] = 0
        cost = nearest if self.dual.weight is None else nearest * self.dual.weight
        order = np.argsort(-cost, kind="stable")[: int(gone.sum())]
        order = order[cost[order] > 0]
        places = np.flatnonzero(gone)
        self._next[places] = self.W[places]
        self._next[places[: len(order)]] = 0
        self._next[places[: len(order)], order] = 1
        return len(order)


def squared_norms(W: Array, Y: Array) -> NDArray[np.float64]:
    """Squared norms of the centroids, (L, k)."""
    return np.einsum("kn,lkn->lk", W, Y, dtype=np.float64)


def advance(
    runs: list[DualRun],
    courses: list[Course[Result]],
    ended: Callable[[int, Result], None],
) -> None:
    """Take all starts to their ends together: one product a step for all that still go."""
    steps: dict[int, Step] = {}

    def send(number: int, seen: Seen | None) -> None:
        try:
            steps[number] = courses[number].send(seen)  # type: ignore[arg-type]
        except StopIteration as end:
            steps.pop(number, None)
            ended(number, end.value)

    products, k = runs[0].dual.products, len(runs[0].W)
    for run, Y in zip(runs, _split(products.multiply(np.vstack([run.W for run in runs])), k)):
        run.arrive(Y)
    for number in range(len(runs)):
        send(number, None)
    while steps:
        going = list(steps)
        W = np.vstack([runs[number].propose(steps[number]) for number in going])
        for number, Y in zip(going, _split(products.multiply(W), k)):
            send(number, runs[number].accept(Y))


def _split(Y: Array, k: int) -> list[Array]:
    return [Y[:, begin : begin + k] for begin in range(0, Y.shape[1], k)]

"""Fusion by leading eigenvectors of a sum of kernels, on all rows or on landmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk._anneal.convergence_warnings import warn_if_indefinite
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array
from rffpk._utils.interrupts import A_NUMBER, interruptible
from rffpk._utils.linalg import leading_eigenvectors, over_eigenvalues, ritz_values
from rffpk._utils.tiles import by_blocks
from rffpk._utils.validation import Auto
from rffpk.fusion.base import KernelFusion, counted_rows, drawn_rows
from rffpk.fusion.weights import inverse_shares, simplex_minimum, weighed
from rffpk.maps.kernels import FittedKernel


class SpectralFusion(KernelFusion):
    """Base of the methods whose embedding consists of leading eigenvectors of sum_l alpha_l^2 K_l,
    and that can learn on landmarks."""

    _weight: Array | None  # of the rows learned on
    _map: Array  # from the kernels with the rows learned on to the embedding

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        views: Any = None,
        center: bool = True,
        normalize: bool = True,
        normalize_rows: bool = True,
        n_init: Auto | int = "auto",
        store_memberships: bool = False,
        n_landmarks: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            kernels=kernels,
            views=views,
            center=center,
            normalize=normalize,
            normalize_rows=normalize_rows,
            n_init=n_init,
            store_memberships=store_memberships,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.n_landmarks = n_landmarks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_landmarks is not None:
            validation.check_int(self.n_landmarks, "n_landmarks", self.n_clusters)

    def _learn(self, kernels: list[FittedKernel], k: int, random: Any) -> None:
        """Append to `history_` by `_record`, and end with `_keep`. Kernels of weighted rows are
        P^(1/2) K_l P^(1/2), with P the diagonal matrix of `_weight`."""
        raise NotImplementedError

    def _fuse(self, xs: list[Array], weight: Array | None, k: int, random: Any) -> None:
        """Set the fitted attributes except those of k-means."""
        counted = counted_rows(weight)
        self.landmarks_ = self._choose_landmarks(len(xs[0]), counted, random)
        learned = counted if self.landmarks_ is None else self.landmarks_
        self._weight = weight if weight is None or learned is None else weight[learned]
        xs_learned, specs = self._matched(xs, learned)
        self._kernels = [
            FittedKernel(
                x, spec, weight=self._weight, random=random,
                n_threads=config.n_threads(self.n_jobs), center=self.center,
                normalize=self.normalize,
            )
            for x, spec in zip(xs_learned, specs)
        ]  # fmt: skip
        self._learn(self._kernels, k, random)
        if self._weight is not None:  # rows are embedded by K P^(1/2)
            self._map = np.sqrt(self._weight)[:, None] * self._map
        self.embedding_ = self._embedded(xs)  # by the same products as in `transform`
        for kernel in self._kernels:
            kernel.drop_matrix()

    def _choose_landmarks(
        self, n: int, counted: NDArray[np.intp] | None, random: Any
    ) -> NDArray[np.intp] | None:
        """Indices of the random rows to learn on, in rising order; None: all that are counted."""
        most = n if counted is None else len(counted)
        if self.n_landmarks is None or self.n_landmarks >= most:
            return None
        return drawn_rows(n, self.n_landmarks, counted, random)

    def _matrices(self, kernels: list[FittedKernel]) -> list[Array]:
        """P^(1/2) K_l P^(1/2) of each kernel."""
        return [weighed(K, self._weight) for K in map(matrix_of, kernels, count())]

    def _record(self, alpha: Array, objective: float, **more: float) -> None:
        self._iterations.add("weights", self._kernels[0].n, objective, alpha, **more)
        self.objective_ = objective

    def _keep(self, values: Array, H: Array, alpha: Array) -> None:
        self.eigenvalues_, self.kernel_weights_ = values, alpha
        self.n_iter_ = len(self.history_)
        self._map = over_eigenvalues(H, values)

    def _mapping(self) -> Callable[[list[Array]], Array]:
        """The function from the kernels between some rows and those learned on to the embedding of
        the rows."""
        return lambda crosses: combined(crosses, self.kernel_weights_) @ self._map

    def _embedded(self, xs: list[Array]) -> Array:
        """The embedding of rows, block by block, by threads."""
        mapping = self._mapping()

        def embed(parts: list[Array]) -> Array:
            views = self._view_of_each(parts, len(self._kernels))
            return mapping([kernel.values(x) for kernel, x in zip(self._kernels, views)])

        n_threads = config.n_threads(self.n_jobs)
        return by_blocks(embed, xs, self._kernels[0].n, n_threads)


class AlternatingFusion(SpectralFusion):
    """Base of the methods that update an embedding and kernel weights in turn, until their
    objective falls no more."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        views: Any = None,
        center: bool = True,
        normalize: bool = True,
        normalize_rows: bool = True,
        n_init: Auto | int = "auto",
        store_memberships: bool = False,
        n_landmarks: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            kernels=kernels,
            views=views,
            center=center,
            normalize=normalize,
            normalize_rows=normalize_rows,
            n_init=n_init,
            store_memberships=store_memberships,
            n_landmarks=n_landmarks,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_int(self.max_iter, "max_iter", 1)
        validation.check_real(self.tol, "tol", 0)

    def _converge(self, iterations: Iterator[Iteration], rises: bool = False) -> None:
        """Record iterations until the objective falls, or rises, by at most `tol` of itself, and
        keep the last."""
        sign, before = (-1 if rises else 1), np.inf
        for last in islice(iterations, self.max_iter):
            self._record(last.alpha, last.objective)
            cost = sign * last.objective
            if before - cost <= float(self.tol) * abs(cost):
                break
            before = cost
        else:
            self._warn_unconverged(self.tol, self.max_iter)
        self._keep(last.values, last.vectors, last.alpha)


class LinearFusion(AlternatingFusion):
    """Base of the methods whose embedding is sum_l K_l B_l; `_map` holds the B_l, (L, n, k)."""

    def _keep(self, values: Array, H: Array, alpha: Array) -> None:
        self.kernel_weights_, self.n_iter_ = alpha, len(self.history_)

    def _mapping(self) -> Callable[[list[Array]], Array]:
        return lambda crosses: np.asarray(sum(K @ B for K, B in zip(crosses, self._map)))


@dataclass(frozen=True)
class Iteration:
    """The weights and the leading eigenpairs of an iteration, and the objective of both."""

    alpha: Array
    values: Array
    vectors: Array
    objective: float


def alternation(Ks: list[Array], k: int, penalty: Array | None = None) -> Iterator[Iteration]:
    """Iterations that minimise sum_l alpha_l^2 Tr(K_l (I - HH')) + alpha' penalty alpha / 2 over H
    with k orthonormal columns and over alpha on the simplex in turn, from equal weights."""
    alpha, start = np.full(len(Ks), 1 / len(Ks)), None
    while True:
        values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]), start)
        start = H.sum(axis=1)
        costs = spectral_costs(Ks, H)
        objective = float(alpha**2 @ costs)
        if penalty is None:
            yield Iteration(alpha, values, H, objective)
            alpha = inverse_shares(costs)
        else:
            yield Iteration(alpha, values, H, objective + float(alpha @ penalty @ alpha) / 2)
            alpha = simplex_minimum(2 * np.diag(np.maximum(costs, 0)) + penalty)


def matrix_of(kernel: FittedKernel, number: int) -> Array:
    """The matrix of a kernel, with a warning if it is indefinite."""
    K = kernel.matrix()
    if not kernel.definite:
        warn_if_indefinite(f"kernel {number}", ritz_values(K.dot, kernel.n))
    return K


def combined(Ks: list[Array], alpha: Array) -> Array:
    """sum_l alpha_l^2 K_l."""

    def total() -> Array:
        found = alpha[0] ** 2 * Ks[0]
        for weight, K in zip(alpha[1:], Ks[1:]):
            found += weight**2 * K
        return found

    return interruptible(A_NUMBER * len(Ks) * Ks[0].size, total)


def mean_of(Ks: list[Array]) -> Array:
    return combined(Ks, np.full(len(Ks), len(Ks) ** -0.5))


def spectral_costs(Ks: list[Array], H: Array) -> Array:
    """Tr(K_l (I - HH')) of each kernel."""
    return np.array([remainder(np.trace(K), np.einsum("ik,ik->", H, K @ H), len(H)) for K in Ks])


def remainder(trace: float, kept: float, n: int) -> float:
    """Tr(K) - Tr(H'KH) for a kernel of order n, zero if it is that up to rounding."""
    rounding = 4 * n * float(np.finfo(np.float64).eps) * abs(trace)
    return 0.0 if abs(trace - kept) <= rounding else float(trace - kept)

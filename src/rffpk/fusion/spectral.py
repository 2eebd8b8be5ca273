"""Kernel weights on the simplex, sums of kernels, and their leading eigenvectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from scipy.optimize import nnls

from rffpk.anneal.convergence_warnings import warn_if_indefinite
from rffpk.rows.arrays import Array
from rffpk.spaces.kernels import FittedKernel
from rffpk.system.interrupts import interruptible
from rffpk.system.linalg import eigh, leading_eigenvectors, ritz_values
from rffpk.system.tiles import row_tiles
from rffpk.system.tuning import TUNING

# Of equal minima the minimum of least norm is taken, by a multiple of the identity of this size.
_RIDGE = 1e-12


@dataclass(frozen=True)
class Iteration:
    """The kernel weights and the objective of an iteration of a fusion, and what it found."""

    alpha: Array
    objective: float
    values: Array = field(default_factory=lambda: np.empty(0))  # the leading eigenpairs, if any
    vectors: Array = field(default_factory=lambda: np.empty(0))
    change: float | None = None  # compared with `tol`; None: that of the objective is


def inverse_shares(costs: Array) -> Array:
    """Return alpha_l ~ 1 / cost_l, the minimum of sum alpha_l^2 cost_l on the simplex."""
    if not costs.max() > 0:
        return np.full(len(costs), 1 / len(costs))
    shares = costs.max() / np.maximum(costs, np.finfo(np.float64).eps * costs.max())
    return np.asarray(shares / shares.sum())


def simplex_minimum(Q: Array) -> Array:
    """Return the minimum of x'Qx over x >= 0 of sum one, for semidefinite Q (m, m).

    For x = t alpha, t >= 0 and alpha of sum one, x'Qx + (1'x - 1)^2 is least over t at q / (1 +
    q) with q = alpha'Q alpha, which rises with q. So the minimum without the constraint on the
    sum, a least squares problem with x >= 0, has the same direction. It is solved by the active
    sets of Lawson and Hanson (`scipy.optimize.nnls`), exact up to rounding."""
    size = Q.diagonal().max()
    if not size > 0:
        return np.full(len(Q), 1 / len(Q))
    values, vectors = eigh(Q / size)
    root = np.sqrt(np.maximum(values, 0) + _RIDGE)[:, None] * vectors.T
    rows = np.vstack([root, np.ones(len(Q))])
    x, _ = nnls(rows, np.append(np.zeros(len(Q)), 1.0), maxiter=100 * len(Q))  # of active sets
    return np.asarray(x / x.sum())


def weighed(K: Array, weight: Array) -> Array:
    """Return P^(1/2) K P^(1/2) in the place of K, for the diagonal matrix P of the row weights.

    The product is exactly symmetric if K is."""
    roots = np.sqrt(weight)

    def multiply() -> None:
        with np.errstate(over="ignore"):
            for rows in row_tiles(*K.shape):
                K[rows] *= roots[rows, None] * roots

    interruptible(TUNING.linalg.written_work * K.size, multiply)
    if not np.isfinite(K).all():
        raise ValueError(
            "sample_weight is so large that weighted kernels overflow: scale it, or normalize the "
            "kernels."
        )
    return K


def inner_products(Ks: list[Array], others: list[Array]) -> Array:
    """Return Tr(K_p C_q) of symmetric matrices, symmetric in p and q. O(n^2) for a pair."""
    M = np.array([[np.vdot(K, other) for other in others] for K in Ks])
    if not np.isfinite(M).all():
        raise ValueError(
            "X has kernels whose products overflow: scale the views or sample_weight, or normalize "
            "the kernels."
        )
    return np.asarray(M + M.T) / 2


def diversity_penalty(Ks: list[Array], others: list[Array], weight: float) -> Array | None:
    """Return the matrix weight Tr(K_p C_q); None if the weight is zero."""
    return weight * inner_products(Ks, others) if weight > 0 else None


def combined(Ks: list[Array], alpha: Array) -> Array:
    """Return sum_l alpha_l^2 K_l."""

    def total() -> Array:
        found = alpha[0] ** 2 * Ks[0]
        for weight, K in zip(alpha[1:], Ks[1:]):
            found += weight**2 * K
        return found

    return interruptible(TUNING.linalg.written_work * len(Ks) * Ks[0].size, total)


def mean_of(Ks: list[Array]) -> Array:
    return combined(Ks, np.full(len(Ks), len(Ks) ** -0.5))


def alternation(Ks: list[Array], k: int, penalty: Array | None = None) -> Iterator[Iteration]:
    """Yield iterations over H and alpha in turn, from equal weights.

    They minimise sum_l alpha_l^2 Tr(K_l (I - HH')) + alpha' penalty alpha / 2 over H with k
    orthonormal columns and over alpha on the simplex."""
    alpha, start = np.full(len(Ks), 1 / len(Ks)), None
    while True:
        values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]), start)
        start = H.sum(axis=1)
        costs = spectral_costs(Ks, H)
        objective = float(alpha**2 @ costs)
        if penalty is not None:
            objective += float(alpha @ penalty @ alpha) / 2
        yield Iteration(alpha, objective, values, H)
        if penalty is None:
            alpha = inverse_shares(costs)
        else:
            alpha = simplex_minimum(2 * np.diag(np.maximum(costs, 0)) + penalty)


def matrices(kernels: list[FittedKernel], weight: Array) -> list[Array]:
    """Return P^(1/2) K_l P^(1/2) of each kernel."""
    return [weighed(K, weight) for K in map(matrix_of, kernels, count())]


def matrix_of(kernel: FittedKernel, number: int) -> Array:
    """Return the matrix of a kernel; warn if it is indefinite."""
    K = kernel.matrix()
    if not kernel.definite:
        warn_if_indefinite(f"kernel {number}", ritz_values(K.dot, kernel.n))
    return K


def spectral_costs(Ks: list[Array], H: Array) -> Array:
    """Return Tr(K_l (I - HH')) of each kernel."""
    return np.array([remainder(np.trace(K), np.einsum("ik,ik->", H, K @ H), len(H)) for K in Ks])


def remainder(trace: float, kept: float, n: int) -> float:
    """Return Tr(K) - Tr(H'KH) for a kernel of order n, zero if it is that up to rounding."""
    rounding = 4 * n * float(np.finfo(np.float64).eps) * abs(trace)
    return 0.0 if abs(trace - kept) <= rounding else float(trace - kept)

"""Sums of kernels and their leading eigenvectors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from rffpk._anneal.convergence_warnings import warn_if_indefinite
from rffpk._utils.arrays import Array
from rffpk._utils.linalg import leading_eigenvectors, ritz_values
from rffpk.fusion.base import Iteration
from rffpk.fusion.weights import combined, inverse_shares, simplex_minimum, weighed
from rffpk.maps.kernels import FittedKernel


def alternation(Ks: list[Array], k: int, penalty: Array | None = None) -> Iterator[Iteration]:
    """Iterations that minimise sum_l alpha_l^2 Tr(K_l (I - HH')) + alpha' penalty alpha / 2 over H
    with k orthonormal columns and over alpha on the simplex in turn, from equal weights."""
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


def matrices(kernels: list[FittedKernel], weight: Array | None = None) -> list[Array]:
    """P^(1/2) K_l P^(1/2) of each kernel."""
    return [weighed(K, weight) for K in map(matrix_of, kernels, count())]


def matrix_of(kernel: FittedKernel, number: int) -> Array:
    """The matrix of a kernel, with a warning if it is indefinite."""
    K = kernel.matrix()
    if not kernel.definite:
        warn_if_indefinite(f"kernel {number}", ritz_values(K.dot, kernel.n))
    return K


def spectral_costs(Ks: list[Array], H: Array) -> Array:
    """Tr(K_l (I - HH')) of each kernel."""
    return np.array([remainder(np.trace(K), np.einsum("ik,ik->", H, K @ H), len(H)) for K in Ks])


def remainder(trace: float, kept: float, n: int) -> float:
    """Tr(K) - Tr(H'KH) for a kernel of order n, zero if it is that up to rounding."""
    rounding = 4 * n * float(np.finfo(np.float64).eps) * abs(trace)
    return 0.0 if abs(trace - kept) <= rounding else float(trace - kept)

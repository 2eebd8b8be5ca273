"""Kernel weights on the simplex, kernels of weighted rows, and sums of kernels."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from rffpk._utils.arrays import Array
from rffpk._utils.interrupts import A_NUMBER, interruptible
from rffpk._utils.linalg import eigh
from rffpk._utils.tiles import row_tiles

# Of equal minima the one of least norm is taken, by a multiple of the identity of this size.
_RIDGE = 1e-12

_STEPS = 100  # of the active sets, for each unknown


def inverse_shares(costs: Array) -> Array:
    """alpha_l ~ 1 / cost_l, the minimum of sum alpha_l^2 cost_l on the simplex."""
    if not costs.max() > 0:
        return np.full(len(costs), 1 / len(costs))
    shares = costs.max() / np.maximum(costs, np.finfo(np.float64).eps * costs.max())
    return np.asarray(shares / shares.sum())


def simplex_minimum(Q: Array) -> Array:
    """The minimum of x'Qx over x >= 0 of sum one, for a positive semidefinite Q (m, m).

    For x = t alpha, t >= 0 and alpha of sum one, x'Qx + (1'x - 1)^2 is least over t at q / (1 + q)
    with q = alpha'Q alpha, which rises with q: so the minimum without the constraint on the sum, a
    least squares problem with x >= 0, has the direction of the one with it. Solved by the active
    sets of Lawson and Hanson (`scipy.optimize.nnls`), exact up to rounding.
    """
    size = Q.diagonal().max()
    if not size > 0:
        return np.full(len(Q), 1 / len(Q))
    values, vectors = eigh(Q / size)
    root = np.sqrt(np.maximum(values, 0) + _RIDGE)[:, None] * vectors.T
    rows = np.vstack([root, np.ones(len(Q))])
    x, _ = nnls(rows, np.append(np.zeros(len(Q)), 1.0), maxiter=_STEPS * len(Q))
    return np.asarray(x / x.sum())


def weighed(K: Array, weight: Array | None) -> Array:
    """P^(1/2) K P^(1/2), in the place of K, for the diagonal matrix P of the weights of the rows;
    None: K. Exactly symmetric as K is."""
    if weight is None:
        return K
    roots = np.sqrt(weight)

    def multiply() -> None:
        with np.errstate(over="ignore"):
            for rows in row_tiles(*K.shape):
                K[rows] *= roots[rows, None] * roots

    interruptible(A_NUMBER * K.size, multiply)
    if not np.isfinite(K).all():
        raise ValueError(
            "sample_weight is so large that weighted kernels overflow: scale it, or normalize the "
            "kernels."
        )
    return K


def inner_products(Ks: list[Array], others: list[Array]) -> Array:
    """Tr(K_p C_q) of symmetric matrices, symmetric in p and q. O(n^2) for each pair."""
    M = np.array([[np.vdot(K, other) for other in others] for K in Ks])
    if not np.isfinite(M).all():
        raise ValueError(
            "X has kernels whose products overflow: scale the views or sample_weight, or normalize "
            "the kernels."
        )
    return np.asarray(M + M.T) / 2


def diversity_penalty(Ks: list[Array], others: list[Array], weight: float) -> Array | None:
    """The matrix weight Tr(K_p C_q); None if the weight is zero."""
    return weight * inner_products(Ks, others) if weight > 0 else None


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

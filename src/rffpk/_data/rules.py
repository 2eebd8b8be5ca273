"""Weights of rows from squared distances, in NumPy: power mean, hard rule, typicality; and those of
views from their costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from rffpk._data.arrays import Array

# Of a view that some rows lack: with less, float32 would not hold the distances of a row that has
# no other view.
LEAST_WEIGHT = 1e-9


def power_weights(d: Array, s: float) -> tuple[Array, Array, Array]:
    """Weights v, means M' and memberships u of the power mean, free of overflow.

    With r_j = d_min/d_j: v_j = r_j^(1-s) / (sum_l r_l^(-s))^(1-1/s),
    M' = d_min (sum_l r_l^(-s))^(1/s) and u_j = r_j^(-s) / sum_l r_l^(-s).
    The weights of RFF-KPKM's eq. (4) are k^(-1/s) v, its M_s is k^(-1/s) M'.
    """
    least = d.min(axis=1, keepdims=True)
    r = np.divide(least, d, out=np.ones_like(d), where=d != least)
    powers = r**-s
    total = powers.sum(axis=1, keepdims=True)
    v = r * powers * total ** (1 / s - 1)
    return v, (least * total ** (1 / s))[:, 0], powers / total


def hard_weights(d: Array) -> tuple[Array, Array, Array]:
    """The limit s -> -infinity: all weight on the nearest centroid, the first of equals."""
    v = np.zeros_like(d)
    v[np.arange(len(d)), d.argmin(axis=1)] = 1
    return v, d.min(axis=1), v


def typicality(d: Array, eta: Array, m: float) -> Array:
    """u = 1/(1 + (d/eta)^(1/(m-1))), which minimises u^m d + (1-u)^m eta (IP-RFF-MKPKM, step 2)."""
    inside = d < eta
    e = (np.minimum(d, eta) / np.maximum(d, eta)) ** (1 / (m - 1))  # no power of a large number
    return np.asarray(np.where(inside, 1, e) / (1 + e))


def divided(
    N: Array, G: Array, previous: Array, widths: Sequence[int], least_share: float
) -> tuple[Array, Array]:
    """theta = N / G, (k, F), and a mask (k,) of the clusters whose weight is at most this share of
    the total: their centroids stay, and those in a view that all rows of a cluster lack."""
    G = G.reshape(len(G), -1)
    stays = ~(G > least_share * G.sum())
    counts = 1 if G.shape[1] == 1 else widths
    weight, kept = (np.repeat(each, counts, axis=1) for each in (np.where(stays, 1, G), stays))
    return np.where(kept, previous, N / weight), stays.all(axis=1)


def view_costs(N: Array, G: Array, Q: Array, widths: Sequence[int]) -> Array:
    """sum_i p_i g_ij ||phi_il - theta_jl||^2 at theta = N / G, (k, L): Q - ||N||^2 / G, with the
    sums of a pass over views with so many features; G is (k, L) where views are missing."""
    exponent = np.frexp(G.max())[1]  # squares of sums of small weights would underflow
    scaled, G = np.ldexp(N, -exponent), np.ldexp(G, -exponent).reshape(len(G), -1)
    with np.errstate(over="ignore"):
        squares = np.add.reduceat(scaled**2, np.cumsum([0, *widths[:-1]]), axis=1)
        parts = np.ldexp(squares / np.where(G > 0, G, 1), exponent)
    return np.where(G > 0, Q - parts, 0)


def view_weights(
    costs: Array, factor: float, entropy: float, coverage: Array | None = None
) -> NDArray[np.float64]:
    """alpha_l ~ exp(-factor cost_l / (pi_l lambda)) with sum_l pi_l alpha_l = 1, where
    sum_l alpha_l (factor cost_l + lambda pi_l log alpha_l) is least; `coverage` is pi, the shares
    of the rows that have the views, None where all have all. With it no alpha is below
    LEAST_WEIGHT."""
    if coverage is None:
        return np.asarray(softmax(factor * (costs.min() - costs) / entropy))
    costs = costs / coverage
    alpha, least = np.exp(factor * (costs.min() - costs) / entropy), np.zeros(len(costs), bool)
    while True:
        left = 1 - LEAST_WEIGHT * coverage[least].sum()
        scaled = left / (coverage[~least] @ alpha[~least]) * alpha
        below = ~least & (scaled < LEAST_WEIGHT)
        if not below.any():
            return np.where(least, LEAST_WEIGHT, scaled)
        least |= below


def positive(alpha: Array) -> Array:
    """View weights for rows that lack views, from those of a fit to rows that have all: none is
    zero."""
    return np.maximum(alpha, 1e-3 * LEAST_WEIGHT * alpha.max())


def view_penalty(alpha: Array, entropy: float, coverage: Array | None = None) -> float:
    """lambda sum_l pi_l alpha_l log(alpha_l sum_t pi_t), which is zero for equal weights."""
    pi = np.ones(len(alpha)) if coverage is None else coverage
    return entropy * max(float((pi * xlogy(alpha, pi.sum() * alpha)).sum()), 0.0)

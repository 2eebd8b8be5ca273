"""Weights of rows from squared distances, in NumPy: power mean, hard rule, typicality."""

from __future__ import annotations

import numpy as np

from rffpk._data.arrays import Array


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

"""Weights of rows from squared distances, the sums of a pass, and view weights.

The weights of rows follow from the power mean, the hard rule and typicality. The sums of a pass
give the objectives. Sums of several parts of the rows are added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from rffpk.rows.arrays import Array

# The smallest view weight if rows may lack views. With less, float32 could not hold distances of
# a row that has only this view.
LEAST_WEIGHT = 1e-9

# The power mean multiplies relative errors of the distances by |s|. If |s| eps exceeds 2^-7, the
# hard rule is used instead: s < -65 536 in float32.
_MAX_AMPLIFICATION = 2.0**-7
_EPS = {np.dtype(t): float(np.finfo(t).eps) for t in (np.float32, np.float64)}

# A cluster is empty if its weight is at most this fraction of the total weight.
EMPTY_SHARE = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-250}


def rounding_error(dtype: Any) -> float:
    """Return the squared distance below which features of length one are equal up to rounding."""
    return (8 * _EPS[np.dtype(dtype)]) ** 2


def is_hard(s: float, dtype: Any) -> bool:
    """Return whether `s` is so negative that `dtype` cannot distinguish it from the hard rule."""
    return -s * _EPS[np.dtype(dtype)] > _MAX_AMPLIFICATION


def power_constant(k: int, s: float) -> float:
    """Return k^(-1/s), the ratio of M_s to M', and of w to v. It is 1 at minus infinity."""
    return math.exp(-math.log(k) / s)


def empty_clusters(G: Array, dtype: Any) -> Array:
    """Return a mask (k,) of the empty clusters: they have almost no weight in every view."""
    weights = G.reshape(len(G), -1)
    return np.asarray(~(weights > EMPTY_SHARE[np.dtype(dtype)] * G.sum()).any(axis=1))


@dataclass(frozen=True)
class Sums:
    """The sums of a pass, in float64. See `_reference.fused_pass` for the symbols."""

    N: Array  # (k, F): weighted feature sums of the clusters
    G: Array  # (k,), or (k, L) if views are missing: weights of the clusters
    Q: Array  # (k, L): weighted sums of squared feature norms
    E: Array  # (k,), or (L,) if views are missing
    soft: float  # sum_i p_i M'_i, in the hard rule equal to `hard`
    hard: float  # sum_i p_i min_j d_ij: the hard objective
    widths: tuple[int, ...]  # F_l

    def parts(self) -> Parts:
        """Return the fields, except `widths`, as the tuple that the core returns from a pass."""
        return self.N, self.G, self.Q, self.E, self.soft, self.hard

    def __add__(self, other: Sums) -> Sums:
        """Add the sums of two sets of rows."""
        moments = self.N + other.N, self.G + other.G, self.Q + other.Q, self.E + other.E
        return Sums(*moments, self.soft + other.soft, self.hard + other.hard, self.widths)

    def objective(self, s: float) -> float:
        """Return sum_i p_i M_s at the centroids of the pass, RFF-KPKM's eq. (5)."""
        return power_constant(len(self.G), s) * self.soft

    def cost_at(self, theta: Array, alpha: Array) -> float:
        """Return the cost sum_ij p_i g_ij ||phi_i - theta_j||^2 at any centroids `theta` (k, F).

        `alpha` (L,) are the view weights."""
        at, scale = theta.astype(np.float64), np.repeat(alpha, self.widths)
        inner, squares = float((self.N * at * scale).sum()), float(self.G @ (at**2 @ scale))
        return max(float((self.Q @ alpha).sum()) - 2 * inner + squares, 0.0)

    def view_costs(self) -> Array:
        """Return sum_i p_i g_ij ||phi_il - theta_jl||^2 at the updated centroids N / G, (k, L).

        The formula is Q - ||N||^2 / G. If rows lack views, G has shape (k, L)."""
        exponent = np.frexp(self.G.max())[1]  # squares of sums of small weights would underflow
        scaled = np.ldexp(self.N, -exponent)
        G = np.ldexp(self.G, -exponent).reshape(len(self.G), -1)
        with np.errstate(over="ignore"):
            squares = np.add.reduceat(scaled**2, np.cumsum([0, *self.widths[:-1]]), axis=1)
            parts = np.ldexp(squares / np.where(G > 0, G, 1), exponent)
        return np.where(G > 0, self.Q - parts, 0)


class Step(NamedTuple):
    """A step of a fit. Costs are at the centroids before the step; none is negative."""

    soft: float  # sum p M'
    hard: float  # sum p d_min; soft / hard tends to one as s falls
    objective: float  # sum p M_s plus the penalty
    penalty: float  # of the view weights
    shift: float  # root mean square shift of the centroids, in standard deviations of the features
    distinct: int  # number of centroids that do not coincide
    merged: bool  # whether centroids coincide
    seconds: float
    repairs: int = 0  # number of centroids of empty clusters that were moved


Parts = tuple[Array, Array, Array, Array, float, float]


def scaled_parts(unit: float, parts: Parts) -> Parts:
    """Multiply the fields of `Sums.parts` by a power of two, `unit`."""
    if unit == 1:
        return parts
    N, G, Q, E, soft, hard = parts
    with np.errstate(over="ignore"):  # an objective that overflows is refused by name
        return N * unit, G * unit, Q * unit, E * unit, soft * unit, hard * unit


# ---- rules: weights of rows and of views ---------------------------------------------------------


def power_weights(d: Array, s: float) -> tuple[Array, Array, Array]:
    """Compute weights v (n, k), means M' (n,) and memberships u (n, k) of the power mean.

    The form avoids overflow. With r_j = d_min/d_j: v_j = r_j^(1-s) / (sum_l r_l^(-s))^(1-1/s),
    M' = d_min (sum_l r_l^(-s))^(1/s) and u_j = r_j^(-s) / sum_l r_l^(-s). The weights of RFF-KPKM's
    eq. (4) are k^(-1/s) v, and its M_s is k^(-1/s) M'."""
    least = d.min(axis=1, keepdims=True)
    r = np.divide(least, d, out=np.ones_like(d), where=d != least)
    powers = r**-s
    total = powers.sum(axis=1, keepdims=True)
    v = r * powers * total ** (1 / s - 1)
    return v, (least * total ** (1 / s))[:, 0], powers / total


def hard_weights(d: Array) -> tuple[Array, Array, Array]:
    """Return weights, distances and memberships of the hard rule, the limit s -> -infinity.

    The nearest centroid gets all weight. Among equally near centroids the first gets it."""
    v = np.zeros_like(d)
    v[np.arange(len(d)), d.argmin(axis=1)] = 1
    return v, d.min(axis=1), v


def typicality(d: Array, eta: Array, m: float) -> Array:
    """Compute the typicality u = 1/(1 + (d/eta)^(1/(m-1))) of squared distances `d` (n, k).

    It minimizes u^m d + (1-u)^m eta (IP-RFF-MKPKM, step 2)."""
    inside = d < eta
    e = (np.minimum(d, eta) / np.maximum(d, eta)) ** (1 / (m - 1))  # no power of a large number
    return np.asarray(np.where(inside, 1, e) / (1 + e))


def divided(
    N: Array, G: Array, previous: Array, widths: Sequence[int], least_share: float
) -> tuple[Array, Array]:
    """Compute centroids theta = N / G, (k, F), and a mask (k,) of the empty clusters.

    N and G are as in `Sums`. A cluster is empty if its weight is at most `least_share` of the
    total. Its centroid keeps its `previous` position. If all rows of a cluster lack a view, the
    centroid keeps its position in this view only."""
    G = G.reshape(len(G), -1)
    stays = ~(G > least_share * G.sum())
    counts = 1 if G.shape[1] == 1 else widths
    weight, kept = (np.repeat(each, counts, axis=1) for each in (np.where(stays, 1, G), stays))
    return np.where(kept, previous, N / weight), stays.all(axis=1)


def onto_sphere(theta: Array, previous: Array, shift: Array, least_length: float) -> Array:
    """Scale the centroids theta + shift to length one; return them minus the shift, (k, F).

    Centroids not longer than `least_length` keep their `previous` position."""
    centers = theta + shift.astype(np.float64)
    lengths = np.linalg.norm(centers, axis=1, keepdims=True)
    there = lengths > least_length
    return np.where(there, centers / np.where(there, lengths, 1) - shift, previous)


def view_weights(
    costs: Array, factor: float, entropy: float, coverage: Array | None = None
) -> NDArray[np.float64]:
    """Return alpha_l ~ exp(-factor cost_l / (pi_l lambda)), (L,), with sum_l pi_l alpha_l = 1.

    The weights minimize sum_l alpha_l (factor cost_l + lambda pi_l log alpha_l). `entropy` is
    lambda. `coverage` is pi, the share of the weight on rows that have each view. None means that
    all rows have all views. With a coverage no alpha is below LEAST_WEIGHT."""
    if coverage is None:
        return np.asarray(softmax(factor * (costs.min() - costs) / entropy))
    costs = costs / coverage
    alpha, is_least = np.exp(factor * (costs.min() - costs) / entropy), np.zeros(len(costs), bool)
    # raise weights to the least weight, and scale the rest, until no scaled weight is below
    while True:
        rest = 1 - LEAST_WEIGHT * coverage[is_least].sum()
        scaled = rest / (coverage[~is_least] @ alpha[~is_least]) * alpha
        below = ~is_least & (scaled < LEAST_WEIGHT)
        if not below.any():
            return np.where(is_least, LEAST_WEIGHT, scaled)
        is_least |= below


def positive(alpha: Array) -> Array:
    """Raise view weights of zero to a tiny positive value, so that rows may lack views."""
    return np.maximum(alpha, 1e-3 * LEAST_WEIGHT * alpha.max())


def view_penalty(alpha: Array, entropy: float, coverage: Array | None = None) -> float:
    """Return the penalty lambda sum_l pi_l alpha_l log(alpha_l sum_t pi_t) of the view weights.

    It is zero for equal weights. `entropy` is lambda, and `coverage` is pi as in `view_weights`."""
    pi = np.ones(len(alpha)) if coverage is None else coverage
    return entropy * max(float((pi * xlogy(alpha, pi.sum() * alpha)).sum()), 0.0)

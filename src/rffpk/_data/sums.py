"""The sums that a pass returns, which are additive over rows, and the objectives they hold."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rffpk._data.arrays import Array
from rffpk._data.rules import divided, view_costs

# The power mean multiplies relative errors of the distances by |s|. If |s| eps exceeds 2^-7, the
# hard rule is used instead: s < -65 536 in float32.
_MAX_AMPLIFICATION = 2.0**-7
_EPS = {np.dtype(t): float(np.finfo(t).eps) for t in (np.float32, np.float64)}

# A cluster is empty if its weight is at most this fraction of the total weight.
EMPTY_SHARE = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-250}


def is_hard(s: float, dtype: Any) -> bool:
    """Whether the exponent `s` is beyond what the power mean resolves in `dtype`."""
    return -s * _EPS[np.dtype(dtype)] > _MAX_AMPLIFICATION


def power_constant(k: int, s: float) -> float:
    """k^(-1/s), the constant between M_s and M' (and between the weights w and v); 1 for -inf."""
    return math.exp(-math.log(k) / s)


def power_objective(soft: float, hard: float, k: int, s: float) -> float:
    """sum_i p_i M_s, the objective of RFF-KPKM's eq. (5), from sum_i p_i M' and, for s = -inf,
    sum_i p_i min_j d_ij."""
    return hard if math.isinf(s) else power_constant(k, s) * soft


def empty_clusters(G: Array, dtype: Any) -> Array:
    """A mask (k,) of the clusters without weight, in any view."""
    return np.asarray(without_weight(G, dtype).reshape(len(G), -1).all(axis=1))


def without_weight(G: Array, dtype: Any) -> Array:
    """A mask of the weights that are nothing beside their sum."""
    return ~(G > EMPTY_SHARE[np.dtype(dtype)] * G.sum())


@dataclass(frozen=True)
class Sums:
    """What one pass returns, in float64; see `_reference.fused_pass` for the symbols."""

    N: Array  # (k, F)
    G: Array  # (k,), or (k, L) if views are missing
    Q: Array  # (k, L)
    E: Array  # (k,), or (L,) if views are missing
    soft: float  # sum_i p_i M'_i
    hard: float  # sum_i p_i min_j d_ij: the hard objective
    widths: tuple[int, ...]  # F_l

    def parts(self) -> Parts:
        """The sums as a pass returns them."""
        return self.N, self.G, self.Q, self.E, self.soft, self.hard

    def __add__(self, other: Sums) -> Sums:
        """The sums of the rows of both."""
        moments = self.N + other.N, self.G + other.G, self.Q + other.Q, self.E + other.E
        return Sums(*moments, self.soft + other.soft, self.hard + other.hard, self.widths)

    def objective(self, s: float) -> float:
        """sum_i p_i M_s at the centroids of the pass."""
        return power_objective(self.soft, self.hard, len(self.G), s)

    def mean(self) -> Array:
        """The mean of all rows, (F,); for a pass with one centroid."""
        G = self.G[0] if self.G.ndim == 1 else np.repeat(self.G[0], self.widths)
        return np.asarray(self.N[0] / G)

    def centroids(self, previous: Array, dtype: Any) -> Array:
        """theta = N / G; the centroid of an empty cluster stays where it was."""
        return divided(self.N, self.G, previous, self.widths, EMPTY_SHARE[np.dtype(dtype)])[0]

    def without_moments(self) -> Sums:
        """These sums without the large array N."""
        N = np.empty((len(self.G), 0))
        return replace(self, N=N, G=self.G.copy(), Q=self.Q.copy(), E=self.E.copy())

    def view_costs(self) -> Array:
        """sum_i p_i g_ij ||phi_il - theta_jl||^2 at the new theta, (k, L)."""
        return view_costs(self.N, self.G, self.Q, self.widths)


class Step(NamedTuple):
    """A step of a fit. Costs are those at the centroids before it; none is negative."""

    soft: float  # sum p M', and ...
    hard: float  # ... sum p d_min; soft / hard tends to one as s falls
    objective: float  # sum p M_s plus the penalty
    penalty: float  # of the view weights
    shift: float  # root mean square shift of the centroids, in standard deviations of the features
    distinct: int  # number of centroids that do not coincide
    merged: bool  # whether some coincide
    seconds: float
    repairs: int = 0  # number of centroids of empty clusters that were moved


Parts = tuple[Array, Array, Array, Array, float, float]


def scaled_parts(
    unit: float, N: Array, G: Array, Q: Array, E: Array, soft: float, hard: float
) -> Parts:
    """Sums times a power of two."""
    if unit == 1:
        return N, G, Q, E, soft, hard
    with np.errstate(over="ignore"):  # an objective that overflows is refused by name
        return N * unit, G * unit, Q * unit, E * unit, soft * unit, hard * unit

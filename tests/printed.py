"""The papers' algorithms in their printed order: slow, in float64, and without safeguards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk import _reference

Array = NDArray[Any]


def rff_kpkm(
    x: Array,
    omega: Array | None,
    theta: Array,
    s0: float,
    *,
    anneal_factor: float = 1.04,
    anneal_every: int = 3,
    tol: float = 1e-6,
    max_iter: int = 500,
) -> tuple[Array, Array, list[float]]:
    """Run Algorithm 1 of the RFF-KPKM paper as printed.

    The weights are eq. (4) without its constant 1/k, which the normalisation of line 4 removes;
    distances must be positive. Ends when the objective (eq. 5) changes by at most `tol` of
    itself from one iteration to the next.

    Returns
    -------
    theta : array (k, F)
        Centroids, not shifted.
    labels : array (n,)
        The nearest of them.
    objective : list of float
        sum_i M_s at the centroids that each iteration started from.
    """
    phi = _reference.features(x, omega)
    s, objective = s0, []
    for t in range(max_iter):
        d = _reference.squared_distances(phi, theta)
        objective.append(float(((d**s).mean(axis=1) ** (1 / s)).sum()))
        w = (d**s).sum(axis=1, keepdims=True) ** (1 / s - 1) * d ** (s - 1)
        theta = (w / w.sum(axis=0)).T @ phi
        if t and abs(objective[-2] - objective[-1]) <= tol * objective[-1]:
            break
        if (t + 1) % anneal_every == 0:
            s *= anneal_factor
    return theta, _reference.squared_distances(phi, theta).argmin(axis=1), objective


def ip_rff_mkpkm_step(
    phis: list[Array],
    u: Array,
    theta: list[Array],
    alpha: Array,
    eta: Array,
    lam: float,
    s: float,
    m: float,
) -> tuple[Array, list[Array], Array, float]:
    """Run an iteration of Algorithm 2 of the RFF-KPKM paper in its printed order, at a fixed s.

    The weights w come from the typicalities `u` of the iteration before.

    Parameters
    ----------
    phis : list of L arrays (n, F_l)
        Feature vectors.
    u : array (n, k)
    theta : list of L arrays (k, F_l)
    alpha : array (L,)
    eta : array (k, L)
    lam, s, m : float

    Returns
    -------
    u, theta, alpha : the same, after the iteration
    objective : float
        Eq. (20) before it.
    """
    k = u.shape[1]
    d = np.stack([_reference.squared_distances(phi, t) for phi, t in zip(phis, theta)], axis=-1)
    seen = (u**m)[..., None] * d + ((1 - u) ** m)[..., None] * eta
    mixed = seen @ alpha
    means = ((mixed**s).mean(axis=1)) ** (1 / s)
    objective = float(means.sum() + lam * (alpha * np.log(alpha)).sum())
    w = mixed ** (s - 1) / k / ((mixed**s).mean(axis=1, keepdims=True)) ** (1 - 1 / s)
    u = 1 / (1 + (d @ alpha / (eta @ alpha)) ** (1 / (m - 1)))
    g = w * u**m
    theta = [(g / g.sum(axis=0)).T @ phi for phi in phis]
    d = np.stack([_reference.squared_distances(phi, t) for phi, t in zip(phis, theta)], axis=-1)
    seen = (u**m)[..., None] * d + ((1 - u) ** m)[..., None] * eta
    costs = np.einsum("ij,ijl->l", w, seen)
    alpha = np.exp((costs.min() - costs) / lam)
    return u, theta, alpha / alpha.sum(), objective

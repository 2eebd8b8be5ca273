"""The papers' algorithms in their printed order: slow, in float64, and without safeguards."""

import numpy as np

from rffpk import _reference


def rff_kpkm(x, omega, theta, s0, *, anneal_factor=1.04, anneal_every=3, tol=1e-6, max_iter=500):
    """Run Algorithm 1 of the RFF-KPKM paper as printed; return centroids, labels and objectives.

    The weights are eq. (4) without its constant 1/k, which the normalisation of line 4 removes;
    distances must be positive. Ends when the objective (eq. 5) changes by at most `tol` of
    itself from one iteration to the next. Objectives are those where each iteration began.
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


def ip_rff_mkpkm_step(phis, u, theta, alpha, eta, lam, s, m):
    """Run an iteration of Algorithm 2 of the RFF-KPKM paper in its printed order, at a fixed s.

    The weights w come from the typicalities u (n, k) of the iteration before. There are L features
    (n, F_l) and centroids theta (k, F_l), weights alpha (L,), and reference distances eta (k, L).
    Returns u, theta, alpha after the iteration, and the objective, eq. (20), before it.
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

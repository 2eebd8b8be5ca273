"""Independent oracles, a few lines each, written from the papers' formulas."""

import numpy as np
from sklearn.base import clone

from rffpk import Annealing


def procrustes(V):
    """Return the matrix with orthonormal columns that is nearest to V."""
    left, _, right = np.linalg.svd(V, full_matrices=False)
    return left @ right


def first_exponent(model, X, **weights):
    """Return the exponent at which annealing begins if it is the only start.

    It is the critical exponent, at most -1/2.
    """
    model = clone(model).set_params(n_init=1, max_iter=1, annealing=Annealing(swaps=0))
    model.fit(X, **weights)
    return next(record["s"] for record in model.history_ if "s" in record)


def critical_exponent(X, p=None):
    """Compute docs/math.md, section 8, from the directions of rows from their mean."""
    p = np.ones(len(X)) if p is None else p
    z = X - p @ X / p.sum()
    z, p = z[p > 0], p[p > 0]
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    return 1 - 1 / (2 * np.linalg.norm(z * np.sqrt(p / p.sum())[:, None], 2) ** 2)


def typical_critical_exponent(X, p, eta, m):
    """Compute docs/math.md, (8.5), with the inverse written out, and where the centroids merge."""
    c = p @ X / p.sum()
    for _ in range(300):
        u = 1 / (1 + (((X - c) ** 2).sum(axis=1) / eta) ** (1 / (m - 1)))
        c = (p * u**m) @ X / (p * u**m).sum()
    q, z = p * u**m / (p * u**m).sum(), (X - c) / np.linalg.norm(X - c, axis=1, keepdims=True)
    R = np.einsum("i,ia,ib->ab", q * u, z, z)
    P = m / (m - 1) * np.einsum("i,ia,ib->ab", q * (1 - u), z, z)
    half = np.eye(X.shape[1]) / 2
    assert np.linalg.eigvalsh(half - P).min() > 0  # else every exponent is unstable
    return 1 - 1 / np.linalg.eigvals(np.linalg.solve(half - P, R)).real.max(), c


def fcm_memberships(X, V, m):
    """Compute 1 / sum_l (|x_i - v_j| / |x_i - v_l|)^(2/(m-1)) (Bezdek); distances positive."""
    dist = np.linalg.norm(X[:, None, :] - V[None, :, :], axis=2)
    return 1 / ((dist[:, :, None] / dist[:, None, :]) ** (2 / (m - 1))).sum(axis=2)


def fcm_objective(X, V, m):
    squared = ((X[:, None, :] - V[None, :, :]) ** 2).sum(axis=2)
    return float((fcm_memberships(X, V, m) ** m * squared).sum())


def fcm_step(X, V, m, p=1.0):
    weights = (fcm_memberships(X, V, m) ** m).T * p
    return weights @ X / weights.sum(axis=1, keepdims=True)


def power_mean(Y, s):
    """Compute M_s(y) = ((1/k) sum_j y_j^s)^(1/s) (Xu and Lange), row by row."""
    return (Y**s).mean(axis=1) ** (1 / s)


def kpkm_weights(Y, s):
    """Compute RFF-KPKM, eq. (4), on squared distances Y: the partial derivatives of M_s."""
    k = Y.shape[1]
    return (Y ** (s - 1) / k) / ((Y**s).sum(axis=1, keepdims=True) / k) ** (1 - 1 / s)


def typical_distances(Y, eta, m):
    """Compute u and d~ from combined distances Y: IP-RFF-MKPKM, Algorithm 2, steps 2 and 4."""
    u = 1 / (1 + (Y / eta) ** (1 / (m - 1)))
    return u, u**m * Y + (1 - u) ** m * eta


def rff(X, omega):
    """Compute RFF-KPKM, eq. (2), with all sines before all cosines."""
    D = omega.shape[1]
    return np.hstack([np.sin(X @ omega), np.cos(X @ omega)]) * np.sqrt(1 / D)


def kpkm_step(phi, theta, s, p=1.0):
    """Compute the new centroids and the old objective: RFF-KPKM, eqs. (3) to (5)."""
    Y = ((phi[:, None, :] - theta[None, :, :]) ** 2).sum(axis=2)
    W = kpkm_weights(Y, s) * np.reshape(p, (-1, 1))
    return W.T @ phi / W.sum(axis=0)[:, None], float((power_mean(Y, s) * p).sum())


def lloyd_step(X, V):
    labels = ((X[:, None, :] - V[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
    return np.stack([X[labels == j].mean(axis=0) for j in range(len(V))]), labels


def kernel_kmeans_objective(K, labels):
    """Compute sum_i K_ii - sum_j (1/|C_j|) sum_{i,l in C_j} K_il."""
    within = sum(
        K[np.ix_(labels == j, labels == j)].sum() / (labels == j).sum() for j in set(labels)
    )
    return float(np.trace(K) - within)


def kernel_distances(Ks, W):
    """Compute squared distances (L, n, k) of rows from centroids with weights W in each kernel."""
    return np.array([np.diag(K)[:, None] + np.diag(W @ K @ W.T) - 2 * K @ W.T for K in Ks])


def best_matching_accuracy(y, labels):
    """Find the largest trace over all permutations; for few classes."""
    from itertools import permutations

    classes = sorted(set(y) | set(labels))
    hits = ((np.array([to[classes.index(c)] for c in labels]) == y).mean()
            for to in permutations(classes))  # fmt: skip
    return float(max(hits))

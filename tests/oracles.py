"""Independent oracles, a few lines each, written from the papers' formulas."""

import numpy as np


def fcm_memberships(X, V, m):
    """Bezdek: u_ij = 1 / sum_l (|x_i - v_j| / |x_i - v_l|)^(2/(m-1)); distances positive."""
    dist = np.linalg.norm(X[:, None, :] - V[None, :, :], axis=2)
    return 1 / ((dist[:, :, None] / dist[:, None, :]) ** (2 / (m - 1))).sum(axis=2)


def fcm_objective(X, V, m):
    squared = ((X[:, None, :] - V[None, :, :]) ** 2).sum(axis=2)
    return float((fcm_memberships(X, V, m) ** m * squared).sum())


def fcm_step(X, V, m, p=1.0):
    weights = (fcm_memberships(X, V, m) ** m).T * p
    return weights @ X / weights.sum(axis=1, keepdims=True)


def power_mean(Y, s):
    """Xu and Lange: M_s(y) = ((1/k) sum_j y_j^s)^(1/s), row by row."""
    return (Y**s).mean(axis=1) ** (1 / s)


def kpkm_weights(Y, s):
    """RFF-KPKM, eq. (4), on squared distances Y: the partial derivatives of M_s."""
    k = Y.shape[1]
    return (Y ** (s - 1) / k) / ((Y**s).sum(axis=1, keepdims=True) / k) ** (1 - 1 / s)


def typical_distances(Y, eta, m):
    """IP-RFF-MKPKM, Algorithm 2: u of step 2 and d~ of step 4, from combined distances Y."""
    u = 1 / (1 + (Y / eta) ** (1 / (m - 1)))
    return u, u**m * Y + (1 - u) ** m * eta


def rff(X, omega):
    """RFF-KPKM, eq. (2), with all sines before all cosines."""
    D = omega.shape[1]
    return np.hstack([np.sin(X @ omega), np.cos(X @ omega)]) * np.sqrt(1 / D)


def kpkm_step(phi, theta, s, p=1.0):
    """RFF-KPKM, eq. (3) after eq. (4); the new centroids and the old objective, eq. (5)."""
    Y = ((phi[:, None, :] - theta[None, :, :]) ** 2).sum(axis=2)
    W = kpkm_weights(Y, s) * np.reshape(p, (-1, 1))
    return W.T @ phi / W.sum(axis=0)[:, None], float((power_mean(Y, s) * p).sum())


def lloyd_step(X, V):
    labels = ((X[:, None, :] - V[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
    return np.stack([X[labels == j].mean(axis=0) for j in range(len(V))]), labels


def kernel_kmeans_objective(K, labels):
    """sum_i K_ii - sum_j (1/|C_j|) sum_{i,l in C_j} K_il."""
    within = sum(
        K[np.ix_(labels == j, labels == j)].sum() / (labels == j).sum() for j in set(labels)
    )
    return float(np.trace(K) - within)


def best_matching_accuracy(y, labels):
    """The largest trace over all permutations; for few classes."""
    from itertools import permutations

    classes = sorted(set(y) | set(labels))
    hits = ((np.array([to[classes.index(c)] for c in labels]) == y).mean()
            for to in permutations(classes))  # fmt: skip
    return float(max(hits))

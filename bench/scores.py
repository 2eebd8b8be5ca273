"""Score labels and subspaces."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

NOISE = -1  # the class of rows that count in no score


def rand_index(y: np.ndarray, labels: np.ndarray) -> float:
    """Return the adjusted Rand index of the rows whose class is not noise."""
    return float(adjusted_rand_score(y[y != NOISE], labels[y != NOISE]))


def k_means_objective(phi: np.ndarray, labels: np.ndarray) -> float:
    """Return the sum of squared distances of the rows to the means of their labels, in float64."""
    phi = phi - phi.mean(axis=0, dtype=np.float64).astype(phi.dtype)
    one_hot = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    sizes = np.maximum(one_hot.sum(axis=1), 1)
    total = float(np.einsum("ij,ij->", phi, phi, dtype=np.float64))
    return total - float((((one_hot @ phi) ** 2).sum(axis=1) / sizes).sum())


def kernel_objective(K: np.ndarray, labels: np.ndarray, k: int) -> float:
    """Return this objective in the space of a kernel matrix."""
    total = float(np.trace(K))
    for j in range(k):
        members = np.flatnonzero(labels == j)
        if len(members):
            total -= K[np.ix_(members, members)].sum() / len(members)
    return total


def subspace_distance(U: np.ndarray, H: np.ndarray) -> float:
    """Return ||UU' - HH'||_F of orthonormal columns, without cancellation."""
    return float(np.sqrt(2) * np.linalg.norm(U - H @ (H.T @ U)))

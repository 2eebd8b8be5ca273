"""Scores of labels and distances of subspaces."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def k_means_objective(phi: np.ndarray, labels: np.ndarray) -> float:
    """Sum of squared distances of the rows to the means of their labels, in float64."""
    phi = phi - phi.mean(axis=0, dtype=np.float64).astype(phi.dtype)
    one_hot = sparse.csr_array((np.ones(len(labels)), (labels, np.arange(len(labels)))))
    sizes = np.maximum(one_hot.sum(axis=1), 1)
    total = float(np.einsum("ij,ij->", phi, phi, dtype=np.float64))
    return total - float((((one_hot @ phi) ** 2).sum(axis=1) / sizes).sum())


def kernel_objective(K: np.ndarray, labels: np.ndarray, k: int) -> float:
    """The same objective in the space of a kernel matrix."""
    total = float(np.trace(K))
    for j in range(k):
        members = np.flatnonzero(labels == j)
        if len(members):
            total -= K[np.ix_(members, members)].sum() / len(members)
    return total


def subspace_distance(U: np.ndarray, H: np.ndarray) -> float:
    """||UU' - HH'||_F of orthonormal columns, without cancellation."""
    return float(np.sqrt(2) * np.linalg.norm(U - H @ (H.T @ U)))

"""The few decompositions that exact kernels and their fusion need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigh, qr, svd
from scipy.sparse.linalg import LinearOperator, eigsh

from rffpk._data.arrays import Array

# Up to this order a full decomposition is as fast as a partial one.
DENSE = 300

_NOISE = 1e-3  # relative size of the random part of a given initial vector


def leading_eigenvectors(
    matrix: Array | Callable[[Array], Array], k: int, n: int, start: Array | None = None
) -> tuple[Array, Array]:
    """The k largest eigenvalues of a symmetric matrix, falling, and their eigenvectors (n, k).

    Above the order DENSE they are computed by Lanczos' method (ARPACK), from near the vector
    `start` (n,) if it is given: the sum of the eigenvectors of a similar matrix saves steps.
    `matrix` may be a function that multiplies (n,) and (n, m) arrays. Signs are fixed: the largest
    entry of each vector is > 0.
    """
    if n <= max(DENSE, 2 * k + 1):
        dense = matrix(np.eye(n)) if callable(matrix) else matrix
        values, vectors = eigh((dense + dense.T) / 2, subset_by_index=[n - k, n - 1])
    else:
        operator = matrix
        if callable(matrix):
            operator = LinearOperator((n, n), matvec=matrix, matmat=matrix, dtype=np.float64)
        vector = np.random.default_rng(0).standard_normal(n)
        if start is not None:  # without noise it could be orthogonal to a wanted eigenvector
            vector = start + _NOISE * np.linalg.norm(start) / np.linalg.norm(vector) * vector
        product = matrix(vector) if callable(matrix) else matrix @ vector
        if not product.any():  # ARPACK cannot start
            return np.zeros(k), np.eye(n, k)
        values, vectors = eigsh(operator, k=k, which="LA", v0=vector)
    order = np.argsort(-values, kind="stable")
    return values[order], fixed_signs(vectors[:, order])


_RITZ_STEPS = 30


def ritz_values(multiply: Callable[[Array], Array], n: int) -> Array:
    """The Ritz values of 30 steps of Lanczos' method with full orthogonalisation, in rising order,
    for a symmetric matrix of order n; the extreme ones approach its extreme eigenvalues from
    within."""
    basis = np.zeros((min(_RITZ_STEPS, n), n))
    v = np.random.default_rng(0).standard_normal(n)
    projected = np.zeros((len(basis), len(basis)))
    for step in range(len(basis)):
        v = v - basis.T @ (basis @ v)
        v = v - basis.T @ (basis @ v)  # twice is enough
        norm = np.linalg.norm(v)
        if not norm > 0:
            return np.asarray(eigh(projected[:step, :step], eigvals_only=True))
        basis[step] = v / norm
        v = multiply(basis[step])
        projected[step] = projected[:, step] = basis @ v
    return np.asarray(eigh(projected, eigvals_only=True))


def fixed_signs(vectors: Array) -> Array:
    """The columns with signs such that the entry of largest absolute value is positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)


def over_eigenvalues(vectors: Array, values: Array) -> Array:
    """Eigenvectors divided by their eigenvalues, which are in falling order; vectors whose
    eigenvalue is zero up to rounding become zero."""
    positive = values > np.finfo(values.dtype).eps * len(vectors) * max(values[0], 0)
    return vectors * np.divide(1, values, out=np.zeros_like(values), where=positive)


def procrustes(matrix: Array) -> Array:
    """The matrix U with orthonormal columns that maximises Tr(U'V) for a given V (n, k): M N' from
    V = M S N'. O(n k^2)."""
    left, _, right = svd(matrix, full_matrices=False)
    return left @ right


def orthonormal(n: int, k: int, random: Any) -> Array:
    """A random n x k matrix with orthonormal columns."""
    return np.asarray(qr(random.standard_normal((n, k)), mode="economic")[0])

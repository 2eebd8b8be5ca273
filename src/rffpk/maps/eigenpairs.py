"""The leading eigenpairs of large sparse matrices whose eigenvalues are from zero to one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rffpk._utils.arrays import Array
from rffpk._utils.linalg import basis_of, eigh, fixed_signs

Multiply = Callable[[Array], Array]  # of (n, b) arrays by a symmetric matrix of order n

# docs/math.md, section 17, has the figures behind these.
_BLOCK = 8  # vectors of a block, at least, ...
_PART = 1 / 16  # ... and as a part of those that are wanted
_TIMES = 2  # vectors of a basis: so many times those that are wanted, ...
_MORE = 128  # ... and so many more
_DENSE = 1.2  # up to so many times the vectors of a basis all eigenpairs are computed at once
_AMPLIFIED = 1e4  # the filter of the eigenvalue one, at most: more would drown others in rounding
_HIGHEST = 0.9999  # bound, so that filters have a bounded degree
_GAIN = 0.9  # a bound that leaves more than this part of the way to one was worth no start anew
_RESTARTS = 20  # of a basis that is full, with a filter
_CHECKS = 1.2  # Ritz pairs are looked at whenever the basis has grown by this factor
_TOL = 1e-8  # of residuals
_NOISE = 1e-15  # far below them
_PROBE_STEPS = 10  # within so many from another vector a pair that was missed shows, ...
_APART = 1e-6  # ... by an eigenvalue that is larger by this part of the largest


def leading_pairs(multiply: Multiply, k: int, n: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, falling, and their eigenvectors (n, k), each with the largest
    entry > 0, of a symmetric matrix whose eigenvalues are from zero to one.

    Block Lanczos with full orthogonalisation. Where its basis does not suffice, the Ritz values
    bound the wanted eigenvalues from below, and Lanczos runs on a polynomial of the matrix that is
    small below that bound and rises fast above it. A multiple eigenvalue that a block sees too
    few vectors of shows when the vectors that were found are removed; blocks then grow.
    """
    block, most, low = max(_BLOCK, int(_PART * k)), _TIMES * k + _MORE, 0.0
    while n > _DENSE * most:
        degree = _degree(low)
        filtered, restarts = _filter(multiply, low, degree), 0 if degree == 1 else _RESTARTS
        ritz, vectors, converged = _block_lanczos(filtered, k, n, block, most, restarts)
        if not converged:
            bound = max(low, _unfiltered(ritz[(3 * k) // 2], low, degree))
            most = most if 1 - bound < _GAIN * (1 - low) else 2 * most
            low = min(bound, _HIGHEST)
        elif not _is_one_missed(filtered, ritz[:k], vectors):
            values, turned = eigh(vectors.T @ multiply(vectors))
            return values[::-1], fixed_signs(vectors @ turned[:, ::-1])
        else:
            block *= 2
            most = max(most, k + 2 * block)
    dense = multiply(np.eye(n))
    values, vectors = eigh((dense + dense.T) / 2, subset_by_index=[n - k, n - 1])
    return values[::-1], fixed_signs(vectors[:, ::-1])


def _block_lanczos(
    multiply: Multiply, k: int, n: int, block: int, most: int, restarts: int
) -> tuple[Array, Array, bool]:
    """The Ritz values of a basis of at most `most` vectors, falling, the Ritz vectors (n, k) of the
    k largest, and whether these have converged."""
    basis, projected = np.empty((n, most)), np.zeros((most, most))
    random = np.random.default_rng(0)
    new = basis_of(random.standard_normal((n, block)))[0]
    size, looked = 0, k
    while True:
        here = slice(size, size + new.shape[1])
        basis[:, here], size = new, here.stop
        known = basis[:, :size]
        product = multiply(new)
        projected[:size, here] = known.T @ product
        projected[here, :size] = projected[:size, here].T
        product -= known @ projected[:size, here]
        # twice is enough; noise takes the place of directions that are exhausted
        once, first = basis_of(product + _NOISE * random.standard_normal(product.shape))
        following, second = basis_of(once - known @ (known.T @ once))
        full = size + block > most
        if full or size >= _CHECKS * looked:
            values, vectors = eigh(projected[:size, :size])
            values, vectors = values[::-1], vectors[:, ::-1]
            residuals = np.linalg.norm(second @ first @ vectors[here, :k], axis=0)
            converged = bool((residuals <= _TOL * np.maximum(np.abs(values[:k]), 1)).all())
            if converged or (full and not restarts):
                return values, known @ vectors[:, :k], converged
            if full:  # the best Ritz vectors are the basis of what follows
                restarts, size = restarts - 1, min(k + (most - k) // 3, size - block)
                basis[:, :size] = known @ vectors[:, :size]
                projected[:] = 0
                projected[:size, :size] = np.diag(values[:size])
            looked = size
        new = following


def _degree(low: float) -> int:
    """The degree of the filter."""
    if low <= 0:
        return 1
    return max(1, int(math.acosh(_AMPLIFIED) / math.acosh(2 / low - 1)))


def _filter(multiply: Multiply, low: float, degree: int) -> Multiply:
    """The Chebyshev polynomial of the matrix that is at most one from zero to `low`; of the degree
    one the matrix itself."""
    if degree == 1:
        return multiply

    def mapped(v: Array) -> Array:
        return (2 / low) * multiply(v) - v

    def filtered(v: Array) -> Array:
        before, now = v, mapped(v)
        for _ in range(degree - 1):
            before, now = now, 2 * mapped(now) - before
        return now

    return filtered


def _unfiltered(value: float, low: float, degree: int) -> float:
    """The number above `low` at which the polynomial has a value; `low` if that is at most one."""
    if degree == 1:
        return value
    return low * (1 + math.cosh(math.acosh(max(value, 1.0)) / degree)) / 2


def _is_one_missed(multiply: Multiply, values: Array, vectors: Array) -> bool:
    """Whether the matrix has another eigenvalue above the least of these."""
    v = np.random.default_rng(1).standard_normal((len(vectors), 1))
    basis = np.zeros((len(vectors), _PROBE_STEPS + 1))
    projected = np.zeros((_PROBE_STEPS, _PROBE_STEPS))
    for step in range(_PROBE_STEPS):
        for known in (vectors, basis[:, :step]) * 2:
            v = v - known @ (known.T @ v)
        basis[:, step : step + 1] = v / max(float(np.linalg.norm(v)), np.finfo(float).tiny)
        v = multiply(basis[:, step : step + 1])
        projected[: step + 1, step] = projected[step, : step + 1] = (basis.T @ v)[: step + 1, 0]
    largest = np.abs(values).max()
    return bool(eigh(projected)[0][-1] > values[-1] + _APART * largest)

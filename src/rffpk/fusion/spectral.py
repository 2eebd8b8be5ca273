"""Fusion by leading eigenvectors of a sum of kernels, on all rows or on landmarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk._anneal.convergence_warnings import warn_if_indefinite
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array
from rffpk._utils.interrupts import A_NUMBER, interruptible
from rffpk._utils.linalg import leading_eigenvectors, over_eigenvalues, ritz_values
from rffpk._utils.sparse_rows import Columns
from rffpk._utils.tiles import by_blocks
from rffpk.fusion.base import Iteration, KernelFusion, counted_rows, drawn_rows
from rffpk.fusion.weights import inverse_shares, simplex_minimum, weighed
from rffpk.maps.kernels import FittedKernel


def check_landmarks(model: Any) -> None:
    if model.n_landmarks is not None:
        validation.check_int(model.n_landmarks, "n_landmarks", model.n_clusters)


def check_alternation(model: KernelFusion) -> None:
    """Check the parameters of a method that updates an embedding and kernel weights in turn, until
    their objective falls no more."""
    KernelFusion._check_parameters(model)
    check_landmarks(model)
    validation.check_int(model.max_iter, "max_iter", 1)
    validation.check_real(model.tol, "tol", 0)


def fuse(model: Any, xs: list[Columns], weight: Array | None, k: int, random: Any) -> None:
    """`KernelFusion._fuse` by `_learn`, which takes the kernels between all rows or landmarks and
    k, and sets what it finds: `_map` leads from the kernels with the rows learned on, of weights
    `_weight`, to the embedding. Kernels of weighted rows are P^(1/2) K_l P^(1/2), with P the
    diagonal matrix of these weights."""
    counted = counted_rows(weight)
    model.landmarks_ = _choose_landmarks(model.n_landmarks, len(xs[0]), counted, random)
    learned = counted if model.landmarks_ is None else model.landmarks_
    model._weight = weight if weight is None or learned is None else weight[learned]
    xs_learned, specs = model._matched(xs, learned)
    model._kernels = [
        FittedKernel(
            x, spec, weight=model._weight, random=random,
            n_threads=config.n_threads(model.n_jobs), center=model.center,
            normalize=model.normalize,
        )
        for x, spec in zip(xs_learned, specs)
    ]  # fmt: skip
    model._learn(model._kernels, k)
    if model._weight is not None:  # rows are embedded by K P^(1/2)
        model._map = np.sqrt(model._weight)[:, None] * model._map
    model.embedding_ = embedded(model, xs)  # by the same products as in `transform`
    for kernel in model._kernels:
        kernel.drop_matrix()


def _choose_landmarks(
    size: int | None, n: int, counted: NDArray[np.intp] | None, random: Any
) -> NDArray[np.intp] | None:
    """Indices of the random rows to learn on, in rising order; None: all that are counted."""
    if size is None or size >= (n if counted is None else len(counted)):
        return None
    return drawn_rows(n, size, counted, random)


def embedded(model: Any, xs: list[Columns]) -> Array:
    """The embedding of rows by their kernels with those learned on."""
    kernels = model._kernels
    return in_blocks(model, xs, [kernel.values for kernel in kernels], kernels[0].n)


def in_blocks(
    model: Any, xs: list[Columns], functions: list[Callable[[Columns], Array]], width: int
) -> Array:
    """The embedding of rows, block by block, by threads: what the function that `_mapping` gives
    makes of the values of `functions` of the view of each kernel, which have about `width`
    columns."""
    mapping = model._mapping()

    def embed(parts: list[Columns]) -> Array:
        views = model._view_of_each(parts, len(functions))
        return mapping([function(x) for function, x in zip(functions, views)])

    return by_blocks(embed, xs, width, config.n_threads(model.n_jobs))


def by_eigenvectors(model: Any) -> Callable[[list[Array]], Array]:
    """The mapping by the leading eigenvectors of sum_l alpha_l^2 K_l."""
    return lambda crosses: combined(crosses, model.kernel_weights_) @ model._map


def by_matrices(model: Any) -> Callable[[list[Array]], Array]:
    """The mapping sum_l K_l B_l; `_map` holds the B_l, (n, k) each."""
    return lambda crosses: np.asarray(sum(K @ B for K, B in zip(crosses, model._map)))


def converge(model: Any, iterations: Iterator[Iteration]) -> None:
    """Keep the eigenpairs of the last of the iterations."""
    last = model._converge(iterations, model._kernels[0].n)
    keep(model, last.values, last.vectors)


def keep(model: Any, values: Array, H: Array) -> None:
    model.eigenvalues_, model._map = values, over_eigenvalues(H, values)


def alternation(Ks: list[Array], k: int, penalty: Array | None = None) -> Iterator[Iteration]:
    """Iterations that minimise sum_l alpha_l^2 Tr(K_l (I - HH')) + alpha' penalty alpha / 2 over H
    with k orthonormal columns and over alpha on the simplex in turn, from equal weights."""
    alpha, start = np.full(len(Ks), 1 / len(Ks)), None
    while True:
        values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]), start)
        start = H.sum(axis=1)
        costs = spectral_costs(Ks, H)
        objective = float(alpha**2 @ costs)
        if penalty is not None:
            objective += float(alpha @ penalty @ alpha) / 2
        yield Iteration(alpha, objective, values, H)
        if penalty is None:
            alpha = inverse_shares(costs)
        else:
            alpha = simplex_minimum(2 * np.diag(np.maximum(costs, 0)) + penalty)


def matrices(kernels: list[FittedKernel], weight: Array | None = None) -> list[Array]:
    """P^(1/2) K_l P^(1/2) of each kernel."""
    return [weighed(K, weight) for K in map(matrix_of, kernels, count())]


def matrix_of(kernel: FittedKernel, number: int) -> Array:
    """The matrix of a kernel, with a warning if it is indefinite."""
    K = kernel.matrix()
    if not kernel.definite:
        warn_if_indefinite(f"kernel {number}", ritz_values(K.dot, kernel.n))
    return K


def combined(Ks: list[Array], alpha: Array) -> Array:
    """sum_l alpha_l^2 K_l."""

    def total() -> Array:
        found = alpha[0] ** 2 * Ks[0]
        for weight, K in zip(alpha[1:], Ks[1:]):
            found += weight**2 * K
        return found

    return interruptible(A_NUMBER * len(Ks) * Ks[0].size, total)


def mean_of(Ks: list[Array]) -> Array:
    return combined(Ks, np.full(len(Ks), len(Ks) ** -0.5))


def spectral_costs(Ks: list[Array], H: Array) -> Array:
    """Tr(K_l (I - HH')) of each kernel."""
    return np.array([remainder(np.trace(K), np.einsum("ik,ik->", H, K @ H), len(H)) for K in Ks])


def remainder(trace: float, kept: float, n: int) -> float:
    """Tr(K) - Tr(H'KH) for a kernel of order n, zero if it is that up to rounding."""
    rounding = 4 * n * float(np.finfo(np.float64).eps) * abs(trace)
    return 0.0 if abs(trace - kept) <= rounding else float(trace - kept)

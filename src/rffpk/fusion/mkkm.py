"""Multiple kernel k-means by eigenvectors: with equal, given or learned kernel weights."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from rffpk._docs import FUSION, documented
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.linalg import leading_eigenvectors
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import Iteration, alternation, combined, matrices, spectral_costs
from rffpk.maps.kernels import FittedKernel


@documented(
    FUSION, "labels_", "embedding_", "eigenvalues_", "landmarks_", "kernel_weights_", "objective_",
    "cluster_centers_", "inertia_", "s_", "n_iter_", "history_", "memberships_", "n_features_in_",
    "feature_names_in_",
)  # fmt: skip
@parameters
class AverageMKKM(KernelFusion):
    """Kernel k-means on the mean of the kernels, by spectral relaxation (AMKKM).

    The embedding consists of the n_clusters leading eigenvectors of the combined kernel K_alpha =
    sum_l alpha_l^2 K_l with equal weights alpha_l = 1/L of the L kernels, or with given ones: they
    maximise Tr(H'K_alpha H) over H with orthonormal columns. Annealed k-means on the rows of the
    embedding gives the labels.

    Parameters
    ----------
    kernel_weights : array-like of shape (n_views,) or None
        Given weights alpha >= 0, not all zero, which are scaled to a sum of one. None: equal
        weights.

    Attributes
    ----------
    objective_ : float
        Tr(K_alpha) - Tr(H'K_alpha H): the k-means objective in the space of K_alpha, relaxed;
        weighted by the sample weights.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    Notes
    -----
    For n rows of d columns: O(n^2) memory, O(L n^2 (d + 1)) time for the kernels, and O(n^2 k) for
    some tens of steps of Lanczos' method. New rows are embedded by K_alpha(x, X) H / eigenvalues,
    which on the fitted rows gives those of `embedding_` ([1]_, eq. 8). With `n_landmarks` n is
    their number, and the embedding of all rows costs O(n_samples L n_landmarks (d + k)). The
    kernels "du2015" are those of [2]_.

    References
    ----------
    .. [1] Liang et al.: Stability and generalization of kernel clustering: from single kernel to
       multiple kernel. NeurIPS 2022 (MKC-AE).
    .. [2] Du et al.: Robust multiple kernel k-means using l21-norm. IJCAI 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import AverageMKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> AverageMKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).embedding_.shape
    (150, 3)
    """

    kernel_weights: Any = None
    n_landmarks: int | None = None
    max_iter: int = field(default=1, init=False)  # the eigenvectors for given weights are final
    tol: float = field(default=0.0, init=False)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        alpha = _given_weights(self.kernel_weights, len(kernels))
        Ks = matrices(kernels, self._weight)
        values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]))
        self._record(alpha, float(alpha**2 @ spectral_costs(Ks, H)), len(H))
        self._keep(Iteration(alpha, self.objective_, values, H))


@documented(
    FUSION, "labels_", "embedding_", "eigenvalues_", "landmarks_", "kernel_weights_", "objective_",
    "cluster_centers_", "inertia_", "s_", "n_iter_", "history_", "memberships_", "n_features_in_",
    "feature_names_in_",
)  # fmt: skip
@parameters
class MKKM(KernelFusion):
    """Multiple kernel k-means with learned kernel weights (MKKM).

    Minimises sum_l alpha_l^2 Tr(K_l (I - HH')) over weights alpha >= 0 of sum one and matrices H
    with orthonormal columns, in turn: H from the leading eigenvectors of the combined kernel sum_l
    alpha_l^2 K_l, and alpha_l inversely proportional to Tr(K_l (I - HH')) [1]_. Annealed k-means on
    the rows of H, the embedding, gives the labels.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Tolerance >= 0: the iterations end when the objective falls by at most `tol` of itself.

    Attributes
    ----------
    objective_ : float
        The minimised sum, at the last iteration.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations did not reach `tol`.

    Notes
    -----
    For n rows: O(L n^2) memory; an iteration costs O(L n^2 k) and, for the eigenvectors, O(n^2 k)
    for some tens of steps of Lanczos' method. With `n_landmarks` n is their number.

    References
    ----------
    .. [1] Huang, Chuang, Chen: Multiple kernel fuzzy clustering. IEEE Transactions on Fuzzy Systems
       2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import MKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> MKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
    """

    n_landmarks: int | None = None
    tol: float = 1e-4

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels, self._weight)
        self._keep(self._converge(alternation(Ks, k), len(Ks[0])))


def _given_weights(given: Any, n_kernels: int) -> Array:
    """Weights of sum one; equal ones for None."""
    if given is None:
        return np.full(n_kernels, 1 / n_kernels)
    validation.check_plain(given, "kernel_weights")
    alpha = np.asarray(given, dtype=np.float64)
    if alpha.shape != (n_kernels,):
        raise ValueError(f"kernel_weights.shape == {alpha.shape}, must be ({n_kernels},).")
    if not (np.isfinite(alpha).all() and (alpha >= 0).all() and alpha.any()):
        raise ValueError(f"kernel_weights == {given}, must be >= 0, finite and not all zero.")
    return alpha / alpha.sum()

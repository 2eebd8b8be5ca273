"""Multiple kernel k-means by eigenvectors: the mean kernel, and alternating kernel weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.decompositions import leading_eigenvectors
from rffpk._fusion.skeleton import SpectralFusion, combined, inverse_shares, spectral_costs
from rffpk.kernels import FittedKernel


class AverageMKKM(SpectralFusion):
    """Kernel k-means on the mean of the kernels, by spectral relaxation (AMKKM).

    The embedding consists of the n_clusters leading eigenvectors of sum_l alpha_l^2 K_l with
    alpha_l = 1/L, or with given weights, which maximise Tr(H'KH) over H with orthonormal columns.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel: a name of scikit-learn's pairwise kernels, a callable, or a pair of
        one of those and its gamma or a dict of its parameters. One array becomes as many views as
        there are kernels. "du2015": twelve kernels of one array [1]_. None: "rbf" for each view.
        The gamma of "rbf" and "laplacian" is "mean" unless given, see `RandomFourierFeatures`.
    kernel_weights : array-like of shape (n_views,) or None, default=None
        Given weights alpha >= 0, not all zero, which are scaled to a sum of one. None: equal ones.
    center, normalize : bool, default=True
        Whether kernels are centred, then scaled to a diagonal of one; precomputed ones are taken
        as they are (`center_kernel` and `normalize_kernel` do both).
    normalize_rows : bool, default=True
        Whether rows of the embedding are scaled to length one for k-means.
    n_init : "auto" or int, default="auto"
        Starts of the annealed k-means on the embedding, as in `PowerKMeans`.
    n_landmarks : int or None, default=None
        Learn on so many random rows (at least n_clusters) and embed all rows by what was learned
        there [2]_: time and memory linear in n_samples. None: learn on all.
    random_state : int, RandomState instance or None, default=None
        Draws what gammas are estimated from, the landmarks, and the starts.
    n_jobs : int or None, default=None
        Threads; None takes all that affinity, OMP_NUM_THREADS and threadpoolctl allow.
    verbose : int, default=0
        Prints a line for each iteration if not 0.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Eigenvectors, as columns of length one.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Of the combined kernel, falling.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        The rows that were learned on, rising; None: all.
    kernel_weights_ : ndarray of shape (n_views,)
        alpha, >= 0, of sum one; kernel l counts alpha_l^2 times.
    objective_ : float
        Tr(K_alpha) - Tr(H'K_alpha H) with K_alpha = sum_l alpha_l^2 K_l.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids in the embedding.
    inertia_ : float
        The k-means objective in the embedding.
    n_iter_ : int
    history_ : list of dict
        For each iteration "stage", "objective" and "kernel_weights".
    n_features_in_ : int
        Columns of all views.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    Notes
    -----
    O(n^2) memory, O(L n^2 (d + 1)) time for the kernels and O(n^2 k) for some tens of steps of
    Lanczos' method. New rows are embedded by K_alpha(x, X) H / eigenvalues, which gives the
    rows of `embedding_` on the fitted ones ([2]_, eq. 8).

    References
    ----------
    .. [1] Du et al.: Robust multiple kernel k-means using l21-norm. IJCAI 2015.
    .. [2] Liang et al.: Stability and generalization of kernel clustering: from single kernel to
       multiple kernel. NeurIPS 2022 (MKC-AE).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import AverageMKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> AverageMKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).embedding_.shape
    (150, 3)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        kernel_weights: Any = None,
        center: bool = True,
        normalize: bool = True,
        normalize_rows: bool = True,
        n_init: str | int = "auto",
        n_landmarks: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            kernels=kernels,
            center=center,
            normalize=normalize,
            normalize_rows=normalize_rows,
            n_init=n_init,
            n_landmarks=n_landmarks,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.kernel_weights = kernel_weights

    def _learn(self, kernels: list[FittedKernel], k: int, random: Any) -> None:
        alpha = _given_weights(self.kernel_weights, len(kernels))
        Ks = [kernel.matrix() for kernel in kernels]
        values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]))
        self._record(alpha, float(alpha**2 @ spectral_costs(Ks, H)))
        self._keep(values, H, alpha)


class MKKM(SpectralFusion):
    """Multiple kernel k-means with learned kernel weights (MKKM).

    Minimises sum_l alpha_l^2 Tr(K_l (I - HH')) over alpha on the simplex and H with orthonormal
    columns, in turn: H from the leading eigenvectors of sum_l alpha_l^2 K_l, and alpha_l inversely
    proportional to Tr(K_l (I - HH')) [1]_.

    Parameters
    ----------
    n_clusters, kernels, center, normalize, normalize_rows, n_init, n_landmarks
        As in `AverageMKKM`.
    max_iter : int, default=100
        Most iterations.
    tol : float, default=1e-4
        The iterations end when the objective falls by at most `tol` of itself.
    random_state, n_jobs, verbose
        As in `AverageMKKM`.

    Attributes
    ----------
    labels_, embedding_, eigenvalues_, landmarks_, kernel_weights_, objective_
    cluster_centers_, inertia_, n_iter_, history_, n_features_in_
        As in `AverageMKKM`, with learned weights.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.

    References
    ----------
    .. [1] Huang, Chuang, Chen: Multiple kernel fuzzy clustering. IEEE Transactions on Fuzzy
       Systems 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import MKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> MKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        center: bool = True,
        normalize: bool = True,
        normalize_rows: bool = True,
        n_init: str | int = "auto",
        n_landmarks: int | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            kernels=kernels,
            center=center,
            normalize=normalize,
            normalize_rows=normalize_rows,
            n_init=n_init,
            n_landmarks=n_landmarks,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_int(self.max_iter, "max_iter", 1)
        validation.check_real(self.tol, "tol", 0)

    def _learn(self, kernels: list[FittedKernel], k: int, random: Any) -> None:
        Ks = [kernel.matrix() for kernel in kernels]
        alpha, before = np.full(len(Ks), 1 / len(Ks)), np.inf
        start = None
        for _ in range(self.max_iter):
            values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]), start)
            start = H.sum(axis=1)
            costs = spectral_costs(Ks, H)
            objective = float(alpha**2 @ costs)
            self._record(alpha, objective)
            if before - objective <= self.tol * abs(objective):
                break
            before, alpha = objective, inverse_shares(costs)
        self._keep(values, H, self.history_[-1]["kernel_weights"])


def _given_weights(given: Any, n_kernels: int) -> Array:
    """Weights of sum one; equal ones for None."""
    if given is None:
        return np.full(n_kernels, 1 / n_kernels)
    alpha = np.asarray(given, dtype=np.float64)
    if alpha.shape != (n_kernels,):
        raise ValueError(f"kernel_weights.shape == {alpha.shape}, must be ({n_kernels},).")
    if not (np.isfinite(alpha).all() and (alpha >= 0).all() and alpha.any()):
        raise ValueError(f"kernel_weights == {given}, must be >= 0, finite and not all zero.")
    return alpha / alpha.sum()

"""LMKKM: multiple kernel k-means with kernel weights of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

import numpy as np
from scipy import sparse

from rffpk._docs import FUSION, documented
from rffpk._utils import config
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.interrupts import interruptible
from rffpk._utils.linalg import eigh, leading_eigenvectors
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import Iteration, matrices, mean_of, spectral_costs, weighed
from rffpk.maps.kernels import FittedKernel

# Bytes of the programme and of its factors, over L n^2: measured for L = 1 to 6, n = 300 to 1000.
_PROGRAMME_BYTES = 125

# Multiply-adds of the programme, over (L n)^3: some ten steps, each with a factorisation.
_PROGRAMME_WORK = 10


@documented(
    FUSION, "labels_", "embedding_", "eigenvalues_", "landmarks_", "kernel_weights_",
    "row_weights_", "objective_", "cluster_centers_", "inertia_", "s_", "n_iter_", "history_",
    "memberships_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class LMKKM(KernelFusion):
    """Localised multiple kernel k-means (LMKKM): each row has its own kernel weights.

    The learned kernel has the entries K_ij = sum_l theta_il theta_jl K_l,ij with weights theta >= 0
    whose sum over the kernels is one for each row. Minimised is Tr(K (I - HH')) over theta and
    matrices H with orthonormal columns, in turn [1]_: H from the leading eigenvectors of K, and
    theta by a quadratic programme in n L unknowns. Annealed k-means on the rows of H, the
    embedding, gives the labels. For a few thousand rows at most, or landmarks. Needs the package
    clarabel (``pip install 'rffpk[qp]'``).

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Tolerance >= 0: the iterations end when the objective falls by at most `tol` of itself.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Embedding of the rows, float64: with orthonormal columns, the eigenvectors of the learned
        kernel; if there are landmarks, the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the learned kernel, in falling order.
    kernel_weights_ : ndarray of shape (n_views,)
        Means of `row_weights_`, by the sample weights.
    row_weights_ : ndarray of shape (n_learned, n_views)
        Weights theta >= 0 of the kernels for each row that was learned on, which no row of sample
        weight zero is; rows sum to one.
    objective_ : float
        Tr(K (I - HH')) at the last iteration.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described.
    MemoryError
        If the quadratic programme takes more memory than the machine has available.
    ImportError
        If clarabel is not installed.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations did not reach `tol`.

    Notes
    -----
    With theta_l the weights of kernel l and * the product of entries, the objective is sum_l
    theta_l'(K_l * (I - HH'))theta_l: convex in theta for positive semidefinite K_l. Both updates
    are exact, the second up to the tolerance 1e-8 of an interior-point method (Clarabel), so that
    the objective does not rise by more than this. Where a kernel has negative eigenvalues, the
    programme has it with a multiple of the identity that makes them zero.

    *New rows.* The publication has no weights for them. Here a row takes those of the nearest of
    the rows learned on, by distances in the mean of the kernels: for a fitted row they are its own.
    Then its embedding is K(x, X) H / eigenvalues.

    For n rows: O(L n^2) memory, some 125 L n^2 bytes; an iteration costs O(L n^3) or more: some
    seconds for 600 rows and three kernels, or for 200 rows and twenty, so that fits of tens of
    iterations take a minute or more. Ctrl-C waits for the end of a programme. With `n_landmarks` n
    is their number.

    References
    ----------
    .. [1] Goenen, Margolin: Localized data fusion for kernel k-means clustering with application to
       cancer biology. NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import LMKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> LMKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).row_weights_.shape
    (150, 2)
    """

    n_landmarks: int | None = None
    tol: float = 1e-4
    # what a fit sets
    row_weights_: Array = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _clarabel()

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        check_memory(len(kernels), kernels[0].n)
        Ks = matrices(kernels)
        self._squares = mean_of(Ks).diagonal()
        Ks = [weighed(K, self._weight) for K in Ks]
        convex = [K if one.definite else semidefinite(K) for K, one in zip(Ks, kernels)]
        self._keep(self._converge(self._iterations_of(Ks, convex, k), len(Ks[0])))

    def _iterations_of(self, Ks: list[Array], convex: list[Array], k: int) -> Iterator[Iteration]:
        theta, start = np.full((len(Ks[0]), len(Ks)), 1 / len(Ks)), None
        while True:
            self.row_weights_ = theta
            K = localised(Ks, theta, theta)
            values, H = leading_eigenvectors(K, k, len(K), start)
            start = H.sum(axis=1)
            alpha = np.average(theta, axis=0, weights=self._weight)
            yield Iteration(alpha, float(spectral_costs([K], H)[0]), values, H)
            theta = row_weights(convex, H)

    def _mapping(self) -> Callable[[list[Array]], Array]:
        def embed(Ks: list[Array]) -> Array:
            # squared distances less k(x, x); the first of equal ones
            nearest = (self._squares - 2 * mean_of(Ks)).argmin(axis=1)
            return localised(Ks, self.row_weights_[nearest], self.row_weights_) @ self._map

        return embed


def localised(Ks: list[Array], rows: Array, columns: Array) -> Array:
    """sum_l theta_il theta_jl K_l,ij, from the weights of rows and of columns."""
    found = np.zeros(Ks[0].shape)
    for K, left, right in zip(Ks, rows.T, columns.T):
        found += left[:, None] * K * right
    return found


def semidefinite(K: Array) -> Array:
    """K with a multiple of the identity that makes negative eigenvalues zero."""
    least = float(eigh(K)[0][0])
    return K if least >= 0 else K - least * np.eye(len(K))


def row_weights(Ks: list[Array], H: Array) -> Array:
    """theta (n, L) >= 0 with rows of sum one that minimises sum_l theta_l'(K_l * (I - HH'))theta_l,
    for positive semidefinite kernels."""
    clarabel = _clarabel()
    n, L = len(H), len(Ks)
    rest = np.eye(n) - H @ H.T
    size = max(float(K.diagonal().max()) for K in Ks)
    if not size > 0:
        return np.full((n, L), 1 / L)
    P = sparse.block_diag([np.triu(rest * (K / size)) for K in Ks], format="csc")
    sums = sparse.hstack([sparse.identity(n)] * L)
    A = sparse.vstack([sums, -sparse.identity(n * L)], format="csc")
    b = np.concatenate([np.ones(n), np.zeros(n * L)])
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(n * L)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = interruptible(
        _PROGRAMME_WORK * (n * L) ** 3,
        lambda: clarabel.DefaultSolver(P, np.zeros(n * L), A, b, cones, settings).solve(),
    )
    theta = np.maximum(np.reshape(found.x, (L, n)).T, 0)
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))


def check_memory(L: int, n: int) -> None:
    needed = _PROGRAMME_BYTES * L * n**2
    if not config.fits_memory(needed):
        raise MemoryError(
            f"X has {n} rows to learn on: the quadratic programme of LMKKM takes about "
            f"{needed / 2**30:.3g} GiB. Take n_landmarks, or fewer rows."
        )


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            "LMKKM needs the package clarabel: pip install clarabel, or 'rffpk[qp]'."
        ) from error
    return clarabel

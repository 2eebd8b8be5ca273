"""MVC-LFA: the clusterings of single kernels, fused by alignment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rffpk._docs import FUSION, documented
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.linalg import fixed_signs, leading_eigenvectors, over_eigenvalues, procrustes, svd
from rffpk.fusion.base import KernelFusion, by_matrices
from rffpk.fusion.spectral import Iteration, matrices, mean_of
from rffpk.maps.kernels import FittedKernel


@documented(
    FUSION, "labels_", "embedding_", "landmarks_", "kernel_weights_", "objective_",
    "cluster_centers_", "inertia_", "s_", "n_iter_", "history_", "memberships_", "n_features_in_",
    "feature_names_in_",
)  # fmt: skip
@parameters
class MVCLFA(KernelFusion):
    """Multi-view clustering via late fusion alignment maximisation (MVC-LFA).

    The k leading eigenvectors H_l of each kernel, its relaxed clustering, are fused into one matrix
    F: maximised is [1]_

        Tr(F' sum_l beta_l H_l W_l) + weight Tr(F'M),    sum_l beta_l^2 = 1, beta_l >= 0,

    over F with orthonormal columns, rotations W_l and weights beta in turn, each in closed form, so
    that the objective never falls. M are the leading eigenvectors of the mean of the kernels.
    Annealed k-means on the rows of F, the embedding, gives the labels.

    Parameters
    ----------
    mean_weight : float
        Weight >= 0 of the agreement with M, lambda in the paper, which chooses it by the labels
        from 2^-15, 2^-14, ..., 2^15. With large ones F is M, that of `AverageMKKM`.
    max_iter : int
        Largest number of iterations.
    tol : float
        Tolerance >= 0: the iterations end when the objective rises by at most `tol` of itself.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, with orthonormal columns, float64; if there are landmarks, the extension of theirs to all
        rows.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights beta >= 0 of the clusterings of single kernels; their squares sum to one.
    objective_ : float
        The maximised sum, at the last iteration.

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
    From W_l = I and equal beta, an iteration takes F from the singular value decomposition of
    sum_l beta_l H_l W_l + weight M, then W_l from that of H_l'F, and beta_l in proportion to
    Tr(F'H_l W_l). It costs O(L n k^2), less than the eigenvectors of L + 1 kernels before, O(n^2 k)
    each for some tens of steps of Lanczos' method. O(L n^2) memory. With `n_landmarks` n is their
    number. `FAMKKM` with ``fusion="partition"`` is the same without M.

    *New rows.* H_l and M are linear in the rows of the kernels, and F = (sum_l beta_l H_l W_l +
    weight M)P with a k x k matrix P is too: the row of F for any x is f = sum_l k_l(x, X) B_l with
    matrices B_l of shape (n, k). On the fitted rows this is F. Directions that no kernel determines
    (k above the rank of the kernels) are zero.

    References
    ----------
    .. [1] Wang, Liu, Zhu, Tang, Liu, Hu, Xia, Yin: Multi-view clustering via late fusion alignment
       maximization. IJCAI 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import MVCLFA
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = MVCLFA(3, random_state=0).fit([X[:, :2], X[:, 2:]])
    >>> float(np.round(np.sum(model.kernel_weights_**2), 12))
    1.0
    """

    mean_weight: float = 1.0
    n_landmarks: int | None = None

    _mapping = by_matrices

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_real(self.mean_weight, "mean_weight", 0)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels, self._weight)
        roots = None if self._weight is None else np.sqrt(self._weight)
        state = LateFusion(Ks, k, float(self.mean_weight), roots)
        self._converge(state.iterations(), len(Ks[0]), rising=True)
        self._map = state.maps()


class LateFusion:
    """The variables of the objective, and their updates. The result depends on the signs of the
    eigenvectors, which are therefore those of the rows without the `roots` of their weights."""

    def __init__(self, Ks: list[Array], k: int, weight: float, roots: Array | None = None) -> None:
        self.weight, L, n = weight, len(Ks), len(Ks[0])
        pairs = [leading_eigenvectors(K, k, n) for K in [*Ks, mean_of(Ks)]]
        *self.H, self.M = [fixed_signs(H, roots) for _, H in pairs]
        *self._H_maps, M_map = [
            over_eigenvalues(H, values) for (values, _), H in zip(pairs, [*self.H, self.M])
        ]
        self._M_map = M_map / L
        self.W = [np.eye(k)] * L
        self.beta = np.full(L, L**-0.5)
        self.P = np.empty(0)  # F = (sum_l beta_l H_l W_l + weight M) P

    def iterations(self) -> Iterator[Iteration]:
        while True:
            target = self.weight * self.M
            for beta, H, W in zip(self.beta, self.H, self.W):
                target = target + beta * (H @ W)
            left, sizes, right = svd(target)
            self.P = right.T @ over_eigenvalues(right.T, sizes).T
            F = left @ right
            yield Iteration(self.beta, float(sizes.sum()), vectors=F)
            products = [H.T @ F for H in self.H]
            self.W = [procrustes(product) for product in products]
            agreements = np.array([np.vdot(p, W) for p, W in zip(products, self.W)])
            if agreements.any():
                self.beta = agreements / np.linalg.norm(agreements)

    def maps(self) -> Array:
        """B_l, (L, n, k)."""
        parts = zip(self.beta, self._H_maps, self.W)
        return np.array(
            [(beta * (B @ W) + self.weight * self._M_map) @ self.P for beta, B, W in parts]
        )

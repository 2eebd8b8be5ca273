"""MVC-LFA: the clusterings of single kernels, fused by alignment."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.linalg import fixed_signs, leading_eigenvectors, over_eigenvalues, procrustes, svd
from rffpk.fusion.base import KernelFusion, by_matrices
from rffpk.fusion.spectral import Iteration, matrices, mean_of
from rffpk.maps.kernels import FittedKernel


@parameters
class MVCLFA(KernelFusion):
    """Multi-view clustering via late fusion alignment maximisation (MVC-LFA).

    The k leading eigenvectors H_l of each kernel are fused into one matrix F: maximised is (Wang et
    al.: Multi-view clustering via late fusion alignment maximization. IJCAI 2019)

        Tr(F' sum_l beta_l H_l W_l) + mean_weight Tr(F'M),    sum_l beta_l^2 = 1, beta_l >= 0,

    over F with orthonormal columns, rotations W_l and weights beta in turn; M are the leading
    eigenvectors of the mean of the kernels. Annealed k-means on the rows of F, the embedding, gives
    the labels.

    For n rows O(L n^2) memory, and O(n^2 k) time for the eigenvectors of each of L + 1 kernels; an
    iteration costs O(L n k^2). With `n_landmarks` n is their number. ``docs/fusion.md`` compares
    the methods. `fit` raises a ValueError or TypeError for bad input.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts of k-means on the embedding (`PowerKMeans`). "auto": three.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        Of each view: a name of scikit-learn's pairwise kernels, a callable, or a pair of one and
        its gamma or a dict of parameters. "du2015": twelve of one array (Du et al., IJCAI 2015).
        "precomputed": X holds matrices. None: "rbf". Unless given gamma is 1 / (2 mean distance).
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    center, normalize, normalize_rows : bool, default=True
        Whether kernels are centered, and then scaled to a diagonal of one, precomputed ones not;
        whether rows of the embedding are scaled to length one for k-means.
    n_landmarks : int or None, default=None
        Number of random rows to learn on, at least n_clusters; others are embedded. None: all.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=1e-06
        Tolerance >= 0: iterations end when the objective rises by at most `tol` of itself.
    mean_weight : float, default=1.0
        Weight >= 0 of the agreement with M, lambda in the paper, which chooses it by the labels.
        With large ones F is M, that of `AverageMKKM`.

    Attributes
    ----------
    n_clusters_, selection_ : int and NClustersSelection
        Number of clusters; good numbers with scores and partitions, set if `n_clusters` is none.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, float64, with orthonormal columns; with landmarks the extension of theirs to all rows.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights beta >= 0 of the clusterings of single kernels; their squares sum to one.
    objective_, inertia_, s_, membership_exponent_ : float
        What is optimised; of k-means the objective, last exponent, and that of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids of the rows of the embedding as k-means takes them.
    n_iter_, history_ : int and list of dict
        Number of iterations; a record for each, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.
    probabilities_
    linkage_

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
        validation.check_real(self.mean_weight, "mean_weight", 0, validation.MAX_WEIGHT)

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

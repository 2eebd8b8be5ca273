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

    The k leading eigenvectors H_l of each kernel, its relaxed clustering, are fused into one matrix
    F: maximised is [1]_

        Tr(F' sum_l beta_l H_l W_l) + weight Tr(F'M),    sum_l beta_l^2 = 1, beta_l >= 0,

    over F with orthonormal columns, rotations W_l and weights beta in turn, each in closed form, so
    that the objective never falls. M are the leading eigenvectors of the mean of the kernels.
    Annealed k-means on the rows of F, the embedding, gives the labels.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters k, from 1 to n_samples.
    n_init : "auto" or int, default="auto"
        Number of starts of the annealed k-means on the embedding (`PowerKMeans`); the best result
        is kept. "auto": three.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that gammas are estimated from, the landmarks, and the starts of k-means. An
        int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, from -1024 to 1024 except 0. None and -1: all that the affinity mask of
        the process, the quota of the container, OMP_NUM_THREADS and threadpoolctl allow; -2: all of
        these except one, and so on. `rffpk info` prints the limits. Small problems take fewer.
        Results are the same to the bit for any number of threads.
    verbose : int, default=0
        If not 0, each pass is reported with the start, the stage, the exponent, the objective, the
        rows visited in a second, the time elapsed, and a rough time left once a start has ended: on
        a terminal in one line that changes, if tqdm is installed, else in a line for each pass. The
        logger "rffpk" gets the same lines at level DEBUG, whatever `verbose` is.
    kernels : None, list, "du2015" or "precomputed", default=None
        A kernel for each view: a name of scikit-learn's pairwise kernels, a callable, or a pair of
        one of those and its gamma or a dict of its parameters. One array becomes as many views as
        there are kernels. "du2015": twelve kernels of one array (Du et al., IJCAI 2015): seven
        Gaussian, four polynomial and the cosine, scaled to a diagonal of one and then to [0, 1].
        "precomputed": X holds kernel matrices. None: "rbf" for each view. Unless given, the gamma
        of "rbf" and "laplacian" is 1 / (2 mean distance) over pairs of rows, squared Euclidean for
        "rbf" and the sum of absolute differences for "laplacian".
    views : list or None, default=None
        The columns of each view, if X is one array: lists or arrays of their indices or names,
        boolean masks, or slices. Such an X can be split by rows, as cross-validation does. None: X
        is a list of views, or one view. Views that are frames must have equal indices.
    center : bool, default=True
        Whether kernels are centered, so that their features have mean zero. Precomputed kernels are
        taken as they are (`center_kernel` centers them).
    normalize : bool, default=True
        Whether kernels are scaled to a diagonal of one, after centering. Precomputed kernels are
        taken as they are (`normalize_kernel` scales them).
    normalize_rows : bool, default=True
        Whether the rows of the embedding are scaled to length one for k-means.
    n_landmarks : int or None, default=None
        Number of random rows, at least n_clusters, to learn on; all rows are embedded by what was
        learned there (MKC-AE: Liang et al., NeurIPS 2022), in time and memory linear in n_samples.
        None, or a number >= n_samples: learn on all rows. Sample weights are those of the landmarks
        then, which are drawn from the rows of weight above zero with equal probability.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=1e-06
        Tolerance >= 0: the iterations end when the objective rises by at most `tol` of itself.
    mean_weight : float, default=1.0
        Weight >= 0 of the agreement with M, lambda in the paper, which chooses it by the labels
        from 2^-15, 2^-14, ..., 2^15. With large ones F is M, that of `AverageMKKM`.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, with orthonormal columns, float64; if there are landmarks, the extension of theirs to all
        rows.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all rows, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights beta >= 0 of the clusterings of single kernels; their squares sum to one.
    objective_ : float
        The maximised sum, at the last iteration.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids of the rows of the embedding, scaled to length one if `normalize_rows`.
    inertia_ : float
        k-means objective of the rows of the embedding, scaled to length one if `normalize_rows`,
        weighted by the sample weights.
    s_ : float
        Last finite exponent of the annealed k-means on the embedding.
    n_iter_ : int
        Number of iterations: the length of `history_`, at most `max_iter` if the class has it.
    history_ : list of dict
        A record for each iteration, with "stage" ("weights"), "rows" (number of rows learned on),
        "objective", "kernel_weights" and "seconds"; and with the other keys of the records of
        passes that classes of centroids have, "start" (0), "kept" (True), "s", "shift", "distinct"
        and "repairs" (None).
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows in the clusters, as `predict_proba` returns them; set only if
        `store_memberships`.
    probabilities_ : ndarray of shape (n_samples,)
        Membership of each row in its own cluster, 0 for noise; there only if `store_memberships`.
    n_features_in_ : int
        Number of columns of X in `fit`; if X was a list of views, of all of them together.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns of X in `fit`; set only if X was one array and all of its columns have
        names that are strings.
    membership_exponent_ : float
        Exponent of the memberships that `predict_proba` gives unless told otherwise: -(1 + d)/2
        with the effective dimension d of the clusters in the embedding: 1/lambda_max of the mean of
        zz' over the unit vectors z from centroids to their rows.
    linkage_ : ndarray of shape (n_clusters - 1, 4)
        Ward's tree of the clusters, by centroids and weights, as a linkage matrix of SciPy: half
        the square of a height is what the merger adds to the k-means objective, in the space of the
        centroids. The last column counts clusters. Computed when it is asked for, in
        O(n_clusters^2) time and memory.

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
    number. With ``mean_weight=0`` it is the fusion of partitions of FAMKKM's paper, eq. (10) there.

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

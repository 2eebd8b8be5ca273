"""ONKC: clustering by a kernel near the combinations of the given ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.interrupts import A_NUMBER, interruptible
from rffpk._utils.linalg import (
    DENSE,
    eigh,
    fixed_signs,
    leading_eigenvectors,
    over_eigenvalues,
    ritz_values,
)
from rffpk.fusion.base import KernelFusion, by_matrices
from rffpk.fusion.spectral import Iteration, combined, inner_products, matrices, simplex_minimum
from rffpk.maps.kernels import FittedKernel

# Up to this fraction of all eigenvectors Lanczos' method is faster than a full decomposition
# (orders 550 to 2100). It looks for this many more than there were in the iteration before.
_FEW, _SPARE = 0.125, 8


@parameters
class ONKC(KernelFusion):
    """Optimal neighbourhood kernel clustering with multiple kernels (ONKC).

    The clustering is that of a kernel G which need not be a combination of the given kernels, but
    has to be near one: minimised is [1]_

        Tr(G (I - HH')) + (rho / 2) ||G - K_alpha||^2 + (diversity / 2) alpha'M alpha,
        K_alpha = sum_l alpha_l K_l,    M_pq = Tr(K_p K_q),

    over positive semidefinite G, matrices H with orthonormal columns and weights alpha >= 0 of sum
    one, in turn. Annealed k-means on the rows of H, the embedding, gives the labels.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number of clusters k, from 1 to n_samples. "auto": the number that `select_n_clusters` finds
        in the rows; it may be 1. "coarse" and "fine": the least and the largest of its levels,
        numbers that are better than one.
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
    tol : float, default=0.0001
        Tolerance >= 0: the iterations end when the objective falls by at most `tol` of itself.
    rho : float, default=1.0
        Weight > 0 of the distance between G and the combination. The paper chooses it by the labels
        from 2^-15, 2^-14, ..., 2^15. The larger, the nearer is G to K_alpha: G takes 1 / rho from
        all eigenvalues of K_alpha but those of the clustering.
    diversity : float, default=0.1
        Weight >= 0 of the penalty on weights of kernels that are alike, lambda in the paper, from
        the same numbers. At 0 the weights are those whose K_alpha is nearest to G; only the ratio
        to rho matters for the weights.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, with orthonormal columns, float64; if there are landmarks, the extension of theirs to all
        rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of G, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all rows, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l.
    objective_ : float
        The minimised sum, at the last iteration.
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
    n_clusters_ : int
        Number of clusters.
    selection_ : NClustersSelection
        Good numbers of clusters, with scores and partitions; set only if `n_clusters` is no number.

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described, or if products of kernels overflow.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations did not reach `tol`.

    Notes
    -----
    The iterations start from equal weights and the leading eigenvectors H of the mean kernel. G is
    the positive semidefinite part of B = K_alpha - (I - HH') / rho, which its positive eigenvalues
    and their eigenvectors give; then H are its leading eigenvectors, and alpha minimises (rho / 2)
    ||G - K_alpha||^2 + (diversity / 2) alpha'M alpha, a convex quadratic programme. All three are
    exact, so that the objective never rises.

    *New rows.* As H_new Lambda = (K_alpha + H H' / rho) H_new, with Lambda the eigenvalues of B
    plus 1 / rho, each H is linear in the rows of the kernels: the row of H for any x is h = sum_l
    k_l(x, X) B_l, with matrices B_l of shape (n, k) that every iteration changes as it changes H.
    On the fitted rows this is H, converged or not.

    For n rows: O(L n^2) memory and O(L^2 n^2) time for M. An iteration costs O(n^3) for the
    eigenvectors and G, where all are computed; if B had at most about n / 9 positive eigenvalues
    in the iteration before, these alone are, by Lanczos' method, and G from them, in O(n^2 r) time
    for r of them. What they leave of B is looked at then, and if it has a positive eigenvalue, all
    are computed. With `n_landmarks` n is their number.

    References
    ----------
    .. [1] Liu, Zhou, Wang, Li, Dou, Zhu, Yin: Optimal neighborhood kernel clustering with multiple
       kernels. AAAI 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import ONKC
    >>> X, _ = load_iris(return_X_y=True)
    >>> ONKC(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
    """

    rho: float = 1.0
    diversity: float = 0.1
    n_landmarks: int | None = None
    tol: float = 1e-4

    _mapping = by_matrices

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_real(self.rho, "rho", 0, include="neither")
        validation.check_real(self.diversity, "diversity", 0, validation.MAX_WEIGHT)

    def _scale_matters(self) -> bool:
        return True

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels, self._weight)
        state = NearKernel(Ks, k, float(self.rho), float(self.diversity))
        self.eigenvalues_ = self._converge(state.iterations(), len(Ks[0])).values
        self._map = np.array(state.maps)


class NearKernel:
    """The variables of the objective, and their updates.

    `maps` are the matrices B_l with H = sum_l K_l B_l.
    """

    def __init__(self, Ks: list[Array], k: int, rho: float, diversity: float) -> None:
        self.Ks, self.k, self.rho, self.diversity = Ks, k, rho, diversity
        self.M = inner_products(Ks, Ks)
        self.alpha = np.full(len(Ks), 1 / len(Ks))
        self.K = combined(Ks, np.sqrt(self.alpha))
        values, self.H = leading_eigenvectors(self.K, k, len(self.K))
        start = over_eigenvalues(self.H, values)
        self.maps = [weight * start for weight in self.alpha]
        self._found = self.H  # eigenvectors of the last B, at least k

    def iterations(self) -> Iterator[Iteration]:
        while True:
            values, vectors = self._near()
            G = positive_part(values, vectors)
            self._update_H(values[-self.k :][::-1], vectors[:, -self.k :][:, ::-1])
            largest = np.maximum(values, 0)
            squares = float(largest @ largest)
            products = np.array([np.vdot(G, K) for K in self.Ks])
            self._update_alpha(products, squares)
            size = float(self.alpha @ self.M @ self.alpha)
            apart = max(squares - 2 * float(self.alpha @ products) + size, 0.0)
            lost = float(largest[: -self.k].sum())
            objective = lost + self.rho / 2 * apart + self.diversity / 2 * size
            yield Iteration(self.alpha, objective, largest[-self.k :][::-1])

    def _near(self) -> tuple[Array, Array]:
        """Eigenvalues, rising, and eigenvectors of B = K_alpha - (I - HH') / rho, all those with
        positive eigenvalues and the k leading ones among them."""

        def difference() -> Array:
            B = self.K + self.H @ (self.H.T / self.rho)
            np.fill_diagonal(B, B.diagonal() - 1 / self.rho)
            return B

        B = interruptible(A_NUMBER * self.K.size, difference)
        values, vectors = positive_eigenpairs(B, self._found)
        n_positive = int(np.count_nonzero(values > 0))
        self._found = vectors[:, -max(n_positive, self.k) :]
        return values, vectors

    def _update_H(self, values: Array, vectors: Array) -> None:
        H = fixed_signs(vectors)
        scaled = over_eigenvalues(H, values + 1 / self.rho)
        overlap = self.H.T @ scaled / self.rho
        self.maps = [a * scaled + B @ overlap for a, B in zip(self.alpha, self.maps)]
        self.H = H

    def _update_alpha(self, products: Array, squares: float) -> None:
        """On the simplex ||G - K_alpha||^2 is the quadratic form of the inner products of all K_l -
        G."""
        apart = self.M - products - products[:, None] + squares
        self.alpha = simplex_minimum(self.rho * apart + self.diversity * self.M)
        self.K = combined(self.Ks, np.sqrt(self.alpha))


def positive_eigenpairs(B: Array, similar: Array) -> tuple[Array, Array]:
    """Eigenvalues, rising, and eigenvectors of a symmetric matrix: all positive ones and at least
    as many as the columns of `similar`, which are those of a similar matrix, by Lanczos' method if
    these are few; else all."""
    n, known = similar.shape
    wanted = known + max(_SPARE, known // 8)
    if n > DENSE and wanted <= _FEW * n:
        values, vectors = leading_eigenvectors(B, wanted, n, similar.sum(axis=1))
        rounding = n * np.finfo(np.float64).eps * np.abs(values).max()

        def rest(v: Array) -> Array:
            return B @ v - vectors @ (values * (vectors.T @ v))

        if values[-1] <= 0 and ritz_values(rest, n)[-1] <= rounding:
            return values[::-1], vectors[:, ::-1]
    return eigh(B)


def positive_part(values: Array, vectors: Array) -> Array:
    """The nearest positive semidefinite matrix, from rising eigenvalues and eigenvectors."""
    first = int(np.searchsorted(values, 0, side="right"))
    root = vectors[:, first:] * np.sqrt(values[first:])
    work = float(len(root)) * root.size
    return np.asarray(interruptible(work, np.matmul, root, root.T))

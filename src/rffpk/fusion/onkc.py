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

    The clustering is that of a kernel G near a combination of the given ones: minimised is (Liu et
    al.: Optimal neighborhood kernel clustering with multiple kernels. AAAI 2017)

        Tr(G (I - HH')) + (rho / 2) ||G - K_alpha||^2 + (diversity / 2) alpha'M alpha,
        K_alpha = sum_l alpha_l K_l,    M_pq = Tr(K_p K_q),

    over positive semidefinite G, matrices H with orthonormal columns and weights alpha >= 0 of sum
    one, in turn. Annealed k-means on the rows of H, the embedding, gives the labels.

    For n rows O(L n^2) memory and O(L^2 n^2) time for M; an iteration costs O(n^3), or O(n^2 r)
    where G has the rank r of at most about n / 9. With `n_landmarks` n is their number.
    ``docs/fusion.md`` compares the methods. `fit` raises a ValueError or TypeError for bad input.

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
    tol : float, default=0.0001
        Tolerance >= 0: iterations end when the objective falls by at most `tol` of itself.
    rho : float, default=1.0
        Weight > 0 of the distance between G and K_alpha; the larger, the nearer they are. The paper
        chooses it by the labels.
    diversity : float, default=0.1
        Weight >= 0 of the penalty, lambda in the paper, which chooses it by the labels; only its
        ratio to `rho` matters for alpha. At 0 K_alpha is nearest to G.

    Attributes
    ----------
    n_clusters_, selection_ : int and NClustersSelection
        Number of clusters; good numbers with scores and partitions, set if `n_clusters` is none.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, float64, with orthonormal columns; with landmarks the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of G, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l.
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

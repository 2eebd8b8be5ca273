"""ONKC: clustering by a kernel near the combinations of the given ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rffpk._docs import FUSION, documented
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


@documented(
    FUSION, "labels_", "embedding_", "eigenvalues_", "landmarks_", "kernel_weights_", "objective_",
    "cluster_centers_", "inertia_", "s_", "n_iter_", "history_", "memberships_", "n_features_in_",
    "feature_names_in_",
)  # fmt: skip
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
    rho : float
        Weight > 0 of the distance between G and the combination. The paper chooses it by the labels
        from 2^-15, 2^-14, ..., 2^15. The larger, the nearer is G to K_alpha: G takes 1 / rho from
        all eigenvalues of K_alpha but those of the clustering.
    diversity : float
        Weight >= 0 of the penalty on weights of kernels that are alike, lambda in the paper, from
        the same numbers. At 0 the weights are those whose K_alpha is nearest to G; only the ratio
        to rho matters for the weights.
    max_iter : int
        Largest number of iterations.
    tol : float
        Tolerance >= 0: the iterations end when the objective falls by at most `tol` of itself.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, with orthonormal columns, float64; if there are landmarks, the extension of theirs to all
        rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of G, in falling order.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l.
    objective_ : float
        The minimised sum, at the last iteration.

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
        validation.check_real(self.diversity, "diversity", 0)

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

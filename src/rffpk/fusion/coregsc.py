"""CoregSC: spectral clustering of several affinities whose eigenvectors are drawn together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Literal, get_args

import numpy as np

from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.linalg import leading_eigenvectors, over_eigenvalues, svd
from rffpk.fusion.base import KernelFusion, by_matrices
from rffpk.fusion.spectral import Iteration, matrices, weighed
from rffpk.maps.kernels import FittedKernel

Scheme = Literal["pairwise", "centroid"]


@parameters
class CoregSC(KernelFusion):
    """Co-regularised multi-view spectral clustering (CoregSC).

    With A_l = D_l^(-1/2) K_l D_l^(-1/2), D_l the row sums of kernel l, maximised is pairwise
    (Kumar, Rai, Daume: Co-regularized multi-view spectral clustering. NIPS 2011)

        sum_l Tr(U_l'A_l U_l) + agreement sum_(l < m) Tr(U_l U_l'U_m U_m')

    over U_l with orthonormal columns. With a centroid the second sum is sum_l Tr(U_l U_l'U U'), and
    U has orthonormal columns, too. Annealed k-means on the rows of all U_l side by side, or of U,
    gives the labels.

    For n rows O(L n^2 + L^2 n k) memory; an iteration costs O(L n^2 k). Kernels are affinities and
    are not centered; one with negative values is raised to a least value of zero. With
    `n_landmarks` n is their number. ``docs/fusion.md`` compares the methods. `fit` raises a
    ValueError or TypeError for bad input.

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
    normalize, normalize_rows : bool, default=True
        Whether kernels are scaled to a diagonal of one, precomputed ones not; whether rows of the
        embedding are scaled to length one for k-means.
    n_landmarks : int or None, default=None
        Number of random rows to learn on, at least n_clusters; others are embedded. None: all.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=1e-06
        Tolerance >= 0: iterations end when the objective rises by at most `tol` of itself.
    scheme : {"pairwise", "centroid"}, default="pairwise"
        Whether the views agree with each other or with one more matrix.
    agreement : float, default=0.01
        Weight >= 0 of the agreement, lambda in the paper, the same for all views; of many views or
        wide kernels take less. 0: the spectral clusterings of single views.

    Attributes
    ----------
    n_clusters_, selection_ : int and NClustersSelection
        Number of clusters; good numbers with scores and partitions, set if `n_clusters` is none.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_columns)
        U, or all U_l side by side, float64; with landmarks the extension of theirs to all rows.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        1 / n_views: the method has no weights.
    objective_, inertia_, s_, membership_exponent_ : float
        What is optimised; of k-means the objective, last exponent, and that of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_columns)
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
    >>> from rffpk import CoregSC
    >>> X, _ = load_iris(return_X_y=True)
    >>> CoregSC(3, random_state=0).fit([X[:, :2], X[:, 2:]]).embedding_.shape
    (150, 6)
    """

    center: bool = field(default=False, init=False)  # affinities are not negative
    scheme: Scheme = "pairwise"
    agreement: float = 0.01
    n_landmarks: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        validation.check_choice(self.scheme, "scheme", get_args(Scheme))
        validation.check_real(self.agreement, "agreement", 0, validation.MAX_WEIGHT)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels)
        self._raises = [max(0.0, -float(K.min())) for K in Ks]
        for K, constant in zip(Ks, self._raises):
            K += constant
        self._roots = np.array([inverse_roots(self._degrees(K)) for K in Ks])
        for K, root in zip(Ks, self._roots):
            K *= root
            K *= root[:, None]
            weighed(K, self._weight)
        state = Agreement(Ks, k, float(self.agreement), self.scheme == "centroid")
        self._converge(state.iterations(), len(Ks[0]), rising=True)
        self._map = state.center_map if self.scheme == "centroid" else np.dstack(state.maps)

    def _degrees(self, K: Array) -> Array:
        """Sums over the rows learned on, by their weights."""
        return np.asarray(K.sum(axis=1) if self._weight is None else K @ self._weight)

    def _mapping(self) -> Callable[[list[Array]], Array]:
        total = by_matrices(self)

        def embed(Ks: list[Array]) -> Array:
            raised = [K + constant for K, constant in zip(Ks, self._raises)]
            return total(
                [
                    inverse_roots(self._degrees(K))[:, None] * K * root
                    for K, root in zip(raised, self._roots)
                ]
            )

        return embed


def inverse_roots(degrees: Array) -> Array:
    """1 / sqrt of each, 0 where it is not positive."""
    positive = degrees > 0
    return np.divide(1, np.sqrt(np.where(positive, degrees, 1)), where=positive,
                     out=np.zeros_like(degrees))  # fmt: skip


class Agreement:
    """The variables of the objective, and their updates.

    The maps (L, n, k) of a matrix are those with which it is sum_l A_l map_l.
    """

    def __init__(self, As: list[Array], k: int, weight: float, centroid: bool) -> None:
        self.As, self.k, self.weight, self.centroid = As, k, weight, centroid
        self.U: list[Array] = []
        self.maps: list[Array] = []
        for number, A in enumerate(As):
            values, U = leading_eigenvectors(A, k, len(A))
            mapping = np.zeros((len(As), *U.shape))
            mapping[number] = over_eigenvalues(U, values)
            self.U.append(U)
            self.maps.append(mapping)
        self.center = self.center_map = np.empty(0)
        if centroid:
            self._update_center()

    def iterations(self) -> Iterator[Iteration]:
        alpha = np.full(len(self.As), 1 / len(self.As))
        while True:
            for number in range(len(self.As)):
                self._update(number)
            common = self._update_center() if self.centroid else self._common()
            traces = sum(np.vdot(U, A @ U) for A, U in zip(self.As, self.U))
            yield Iteration(alpha, float(traces + self.weight * common))

    def _update(self, number: int) -> None:
        A, U = self.As[number], self.U[number]
        if self.centroid:
            others, maps = [self.center], [self.center_map]
        else:
            rest = [other for other in range(len(self.As)) if other != number]
            others, maps = [self.U[o] for o in rest], [self.maps[o] for o in rest]

        def multiply(v: Array) -> Array:
            return A @ v + self.weight * sum((other @ (other.T @ v) for other in others), 0 * v)

        values, U = leading_eigenvectors(multiply, self.k, len(A), U.sum(axis=1))
        scaled = over_eigenvalues(U, values)
        mapping = np.zeros((len(self.As), *U.shape))
        for other, other_map in zip(others, maps):
            mapping += self.weight * (other_map @ (other.T @ scaled))
        mapping[number] += scaled
        self.U[number], self.maps[number] = U, mapping

    def _update_center(self) -> float:
        """U, and sum_l Tr(U_l U_l'U U')."""
        left, sizes, right = svd(np.hstack(self.U))
        G = (right[: self.k] / sizes[: self.k, None]).T
        self.center = left[:, : self.k]
        parts = zip(self.maps, np.split(G, len(self.maps)))
        self.center_map = np.asarray(sum(mapping @ part for mapping, part in parts))
        return float((sizes[: self.k] ** 2).sum())

    def _common(self) -> float:
        """sum_(l < m) Tr(U_l U_l'U_m U_m')."""
        pairs = [(a, b) for i, a in enumerate(self.U) for b in self.U[:i]]
        return float(sum(np.sum((a.T @ b) ** 2) for a, b in pairs))

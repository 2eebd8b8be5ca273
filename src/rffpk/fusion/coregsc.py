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

    With A_l = D_l^(-1/2) K_l D_l^(-1/2), D_l the row sums of kernel l, spectral clustering of one
    view takes the leading eigenvectors of A_l. Here the U_l of all views are drawn together [1]_.
    Pairwise, maximised is

        sum_l Tr(U_l'A_l U_l) + agreement sum_(l < m) Tr(U_l U_l'U_m U_m')

    over U_l with orthonormal columns. With a centroid the second sum is sum_l Tr(U_l U_l'U U'), and
    U has orthonormal columns, too. Each is in turn the leading eigenvectors of a matrix, so that
    the objective never falls. Annealed k-means on the rows of all U_l side by side, or of U, gives
    the labels.

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
    normalize : bool, default=True
        Whether kernels are scaled to a diagonal of one. Precomputed kernels are taken as they are.
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
    scheme : {"pairwise", "centroid"}, default="pairwise"
        Whether the views agree with each other or with one more matrix.
    agreement : float, default=0.01
        Weight >= 0 of the agreement, lambda in the paper, the same for all views. It compares with
        the differences of the leading eigenvalues of A_l, which are at most one and for wide
        kernels all small except the first; of many views or wide kernels take less. 0: the spectral
        clusterings of single views.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_columns)
        U, or all U_l side by side, n_clusters columns each; float64. If there are landmarks, the
        extension of theirs to all rows.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all rows, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        1 / n_views: the method has no weights.
    objective_ : float
        The maximised sum, at the last iteration.
    cluster_centers_ : ndarray of shape (n_clusters, n_columns)
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
        If a parameter is not as described.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations did not reach `tol`.

    Notes
    -----
    Kernels are affinities here and are not centered. One with negative values, such as a centered
    one that was precomputed, is raised by the constant that makes its least value among the rows
    learned on zero; that adds the same to the association of all partitions.

    The iterations start from the leading eigenvectors of each A_l. An iteration updates one U_l
    after the other, from A_l + agreement sum_(m != l) U_m U_m' or A_l + agreement U U', and then U,
    the leading left singular vectors of all U_l side by side.

    *New rows.* Each update is linear in the rows: with the eigenvalues Lambda, U_l = (A_l U_l +
    agreement sum_m U_m U_m'U_l) Lambda^-1, and the first U_l are linear in those of A_l. So the row
    of the embedding for any x is sum_l a_l(x, X) B_l with a_l(x, x_j) = k_l(x, x_j) / (d_l(x)
    d_l(x_j))^(1/2), d_l(x) = sum_j k_l(x, x_j), and matrices B_l that every update changes as it
    changes U_l. On the fitted rows this is the embedding, converged or not.

    For n rows: O(L n^2) memory; an iteration costs O(L n^2 k) for some tens of steps of Lanczos'
    method each; the matrices B_l of all U_l take O(L^2 n k) memory. With `n_landmarks` n is their
    number.

    References
    ----------
    .. [1] Kumar, Rai, Daume: Co-regularized multi-view spectral clustering. NIPS 2011.

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

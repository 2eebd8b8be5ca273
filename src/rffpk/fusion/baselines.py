"""Methods of the literature that fuse kernels: CoregSC, LKAM, LMKKM, MVC-LFA, ONKC, RMKKM."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from rffpk.anneal.kernel_fit import KernelProblem
from rffpk.anneal.kernel_steps import KernelLevel
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Plan, Schedule, given_starts
from rffpk.estimators.annealing import check_search_parameters
from rffpk.estimators.base import Clusterer, parameters
from rffpk.estimators.fitting import fit_kernels, kernel_model
from rffpk.fusion import base
from rffpk.fusion.base import Iteration, KernelFusion
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Numbers
from rffpk.rows.door import Schema
from rffpk.rows.store import Cache, check_cache
from rffpk.rows.table import Columns
from rffpk.spaces.kernels import FittedKernel, Kernels, check_kernels
from rffpk.system import config, linalg
from rffpk.system.interrupts import interruptible
from rffpk.system.linalg import row_tiles
from rffpk.system.report import optional_module, warn
from rffpk.system.tuning import TUNING

Scheme = Literal["pairwise", "centroid"]

# Values of the mean kernel that differ by this fraction of the largest are equal: rounding must not
# decide whether a row belongs to a neighbourhood.
_EQUAL = 1e-9


# ---- CoregSC -------------------------------------------------------------------------------------


@parameters
class CoregSC(KernelFusion):
    """Co-regularised multi-view spectral clustering (CoregSC).

    Maximizes sum_l Tr(U_l'A_l U_l) + agreement sum_(l < m) Tr(U_l U_l'U_m U_m') over U_l with
    orthonormal columns. A_l is D_l^(-1/2) K_l D_l^(-1/2), and D_l are the row sums of kernel l.
    With ``scheme="centroid"`` the second sum is sum_l Tr(U_l U_l'U U'), for a common U (Kumar, Rai,
    Daume: Co-regularized multi-view spectral clustering. NIPS 2011). For n rows, or landmarks,
    O(L n^2 + L^2 n k) memory and O(L n^2 k) time an iteration. Kernels are affinities, not
    centered; a kernel with negative values is raised to a least value of zero. Affinities in X may
    be zero on their diagonals. See ``docs/maintainers/fusion.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts of k-means on the embedding. "auto": those of `PowerKMeans`.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    standardize, normalize_rows : bool, default=True
        Whether kernels are scaled to a diagonal of one; embedded rows, to length one.
    n_landmarks : int or None, default=None
        Number of random rows to learn on, at least n_clusters; the rest is embedded. None: all.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=1e-06
        Tolerance >= 0: iterations end when the objective rises by at most `tol` of itself.
    scheme : {"pairwise", "centroid"}, default="pairwise"
        Whether the U_l agree with each other, or with a common U.
    agreement : float, default=0.01
        Weight >= 0 of the agreement of views, lambda in the paper; take less for many views.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_columns)
        U, or all U_l side by side, float64; with landmarks, extended from them to all rows.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        1 / n_views: the method has no weights.
    objective_, inertia_, s_, membership_exponent_ : float
        Objective of the fusion; objective and last s of k-means; s of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_columns)
        Centroids of the rows of the embedding as k-means takes them.
    n_iter_, history_ : int and list of dict
        Number of iterations; a record for each, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import CoregSC
    >>> a, b, c, d = CoregSC(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    _of_affinities = True
    _weights = ("agreement",)

    scheme: Scheme = "pairwise"
    agreement: float = 0.01

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_choice(self.scheme, "scheme", get_args(Scheme))

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        """Normalize the kernels as affinities, find the U_l, and set the map of the embedding.

        A kernel with negative values is raised to a smallest value of zero first."""
        Ks = [kernel.matrix() for kernel in kernels]  # matrices of affinities may be indefinite
        self._raises = [max(0.0, -float(K.min())) for K in Ks]
        for K, constant in zip(Ks, self._raises):
            K += constant
        self._roots = np.array([inverse_roots(K @ self._weight) for K in Ks])
        for K, root in zip(Ks, self._roots):
            K *= root
            K *= root[:, None]
            base.weighed(K, self._weight)
        state = Agreement(Ks, k, float(self.agreement), self.scheme == "centroid")
        self._converge(state.iterations(), len(Ks[0]), rising=True)
        self._map = state.center_map if self.scheme == "centroid" else np.dstack(state.maps)

    def _mapped(self, Ks: list[Array]) -> Array:
        raised = [K + constant for K, constant in zip(Ks, self._raises)]
        left = [inverse_roots(K @ self._weight)[:, None] for K in raised]
        return base.by_matrices(self, [a * K * b for a, K, b in zip(left, raised, self._roots)])


def inverse_roots(degrees: Array) -> Array:
    """Return 1 / sqrt(degrees); 0 where a degree is not positive."""
    positive = degrees > 0
    return np.divide(1, np.sqrt(np.where(positive, degrees, 1)), where=positive,
                     out=np.zeros_like(degrees))  # fmt: skip


class Agreement:
    """The matrices U_l (n, k) of CoregSC, one for each of L views, and their updates.

    The array maps[l] (L, n, k) expresses U_l by the affinity matrices A_m: U_l is the sum of
    A_m @ maps[l][m] over the views m. Such a sum also embeds new rows, by their affinities."""

    def __init__(self, As: list[Array], k: int, weight: float, centroid: bool) -> None:
        """Set each U_l to the k leading eigenvectors of its affinity matrix A_l.

        `As` are the L affinity matrices (n, n). `weight` is the weight of the agreement in the
        objective. If `centroid` is True, the views agree with a common center matrix. Otherwise
        each view agrees with each other view."""
        self.As, self.k, self.weight, self.centroid = As, k, weight, centroid
        self.U: list[Array] = []
        self.maps: list[Array] = []
        for number, A in enumerate(As):
            values, U = linalg.leading_eigenvectors(A, k, len(A))
            mapping = np.zeros((len(As), *U.shape))
            # A_l U_l is U_l times the eigenvalues
            mapping[number] = linalg.over_eigenvalues(U, values)
            self.U.append(U)
            self.maps.append(mapping)
        self.center = self.center_map = np.empty(0)
        if centroid:
            self._update_center()

    def iterations(self) -> Iterator[Iteration]:
        """Yield iterations that update each U_l, and then the center if there is one."""
        alpha = np.full(len(self.As), 1 / len(self.As))
        while True:
            for number in range(len(self.As)):
                self._update(number)
            if self.centroid:
                common = self._update_center()
            else:  # sum_(l < m) Tr(U_l U_l'U_m U_m')
                pairs = [(a, b) for i, a in enumerate(self.U) for b in self.U[:i]]
                common = float(sum(np.sum((a.T @ b) ** 2) for a, b in pairs))
            traces = sum(np.vdot(U, A @ U) for A, U in zip(self.As, self.U))
            yield Iteration(alpha, float(traces + self.weight * common))

    def _update(self, number: int) -> None:
        """Update one U_l to the leading eigenvectors of A_l plus the projections on its partners.

        Partners are all other U_m, or only the center U."""
        A, U = self.As[number], self.U[number]
        if self.centroid:
            partners, maps = [self.center], [self.center_map]
        else:
            rest = [other for other in range(len(self.As)) if other != number]
            partners, maps = [self.U[o] for o in rest], [self.maps[o] for o in rest]
        # 0 * v is the sum if there are no partners
        values, U = linalg.leading_eigenvectors(
            lambda v: A @ v + self.weight * sum((B @ (B.T @ v) for B in partners), 0 * v),
            self.k, len(A), U.sum(axis=1),
        )  # fmt: skip
        # U_l is A_l plus the projections, times `scaled`; partners are replaced by their maps
        scaled = linalg.over_eigenvalues(U, values)
        mapping = np.zeros((len(self.As), *U.shape))
        for other, other_map in zip(partners, maps):
            mapping += self.weight * (other_map @ (other.T @ scaled))
        mapping[number] += scaled
        self.U[number], self.maps[number] = U, mapping

    def _update_center(self) -> float:
        """Update the common center U, and return sum_l Tr(U_l U_l'U U').

        The columns of U are the k leading left singular vectors of all U_l side by side. So U is
        sum_l U_l G_l, with the blocks G_l of G. Its map `center_map` is the same sum of maps."""
        left, sizes, right = linalg.svd(np.hstack(self.U))
        G = (right[: self.k] / sizes[: self.k, None]).T
        self.center = left[:, : self.k]
        parts = zip(self.maps, np.split(G, len(self.maps)))
        self.center_map = np.asarray(sum(mapping @ part for mapping, part in parts))
        return float((sizes[: self.k] ** 2).sum())


# ---- LKAM ----------------------------------------------------------------------------------------


@parameters
class LKAM(KernelFusion):
    """Multiple kernel clustering by local kernel alignment maximisation (LKAM).

    Kernels have to agree with a clustering in the neighborhood i of each row alone, in which K^(i)
    is a kernel and H^(i) the rows of H. The mean over all i of

        sum_l alpha_l^2 Tr(K_l^(i) (I - H^(i)H^(i)')) + (diversity / 2) alpha'M^(i)alpha,
        M^(i)_pq = Tr(K_p^(i) K_q^(i)),

    is minimized over weights alpha >= 0 of sum one and matrices H with orthonormal columns, in turn
    (Li, Liu, Wang, Dou, Yin, Zhu: Multiple kernel clustering with local kernel alignment
    maximization. IJCAI 2016; ``docs/maintainers/fusion.md``). For n rows, or landmarks, O(L n^2)
    memory and O(n^3 + L^2 n^2) time, and as much again for every n rows to embed; O(L n^2 k) an
    iteration. A fitted model keeps n^2 / 8 bytes.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts of k-means on the embedding. "auto": those of `PowerKMeans`.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    standardize, normalize_rows : bool, default=True
        Whether computed kernels are centered, with a diagonal of one; embedded rows of length one.
    n_landmarks : int or None, default=None
        Number of random rows to learn on, at least n_clusters; the rest is embedded. None: all.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=1e-06
        Tolerance >= 0: iterations end when the objective falls by at most `tol` of itself.
    n_neighbors : int or float, default=0.5
        Rows in a neighborhood, at least 1, or their share, in (0, 1]. Equal rows may add more.
    diversity : float, default=0.01
        Weight >= 0 of the penalty, lambda in the paper. M grows with n_samples^2.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, float64, with orthonormal columns; with landmarks, extended from them to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the learned kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
    objective_, inertia_, s_, membership_exponent_ : float
        Objective of the fusion; objective and last s of k-means; s of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids of the rows of the embedding as k-means takes them.
    n_iter_, history_ : int and list of dict
        Number of iterations; a record for each, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import LKAM
    >>> a, b, c, d = LKAM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    n_neighbors: float = 0.5
    diversity: float = 0.01

    _weights = ("diversity",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.n_neighbors, float):
            checks.check_real(self.n_neighbors, "n_neighbors", 0, 1, include="right")
        else:
            checks.check_int(self.n_neighbors, "n_neighbors", 1)

    def _scale_matters(self) -> bool:
        return float(self.diversity) > 0 or not isinstance(self.n_neighbors, float)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        """Restrict the kernels to neighborhoods, and alternate between H and alpha.

        Each entry of a kernel is multiplied by the share of neighborhoods that contain both
        rows."""
        Ks = [base.matrix_of(kernel, number) for number, kernel in enumerate(kernels)]
        mean = base.mean_of(Ks)
        self._least = self._least_values(mean)
        members = mean >= self._least
        self._members = np.packbits(members, axis=1)
        W = shares(members, members, self._weight)
        Ks = [base.weighed(K, self._weight) for K in Ks]
        near = [W * K for K in Ks]
        weight = float(self.diversity)
        # the mean of M^(i) over the neighborhoods, times `diversity`
        penalty = weight * base.inner_products(near, Ks) if weight > 0 else None
        del Ks, mean, members, W
        self._keep(self._converge(base.alternation(near, k, penalty), len(near[0])))

    def _least_values(self, mean: Array) -> Array:
        """Return the smallest value of the mean kernel within each row's neighborhood, (n,).

        Neighborhoods have `n_neighbors` rows, or this share of them, both counted by weight."""
        size, n, p = self.n_neighbors, len(mean), self._weight
        most = float(p.sum())
        # small weights may be counts times a factor, which another warning names
        rows = max(most, np.count_nonzero(p))
        if not isinstance(size, float) and size > rows:
            warn(
                f"n_neighbors={size}: exceeds the {rows:g} rows, so that each neighborhood has all "
                "of them. Set n_neighbors to a smaller number, or to a share up to 1.0.",
                UserWarning,
            )
        if (p == 1).all():
            count = max(1, round(size * n)) if isinstance(size, float) else int(size)
            return least_values(mean, min(n, count))
        share = size if isinstance(size, float) else min(1.0, size / most)
        return least_values_of_mass(mean, p, share * most)

    def _embedded(self, xs: list[Columns]) -> Array:
        """Embed rows by the kernels, restricted to neighborhoods as in `_learn`.

        A row is in the neighborhood of a learned row if their value of the mean kernel is at least
        the smallest value in this neighborhood."""
        n = len(self._least)
        members = np.unpackbits(self._members, axis=1, count=n)
        members = members.astype(exact_dtype(self._weight))

        def embed(Ks: list[Array]) -> Array:
            W = shares(base.mean_of(Ks) >= self._least, members, self._weight)
            return (W * base.combined(Ks, self.kernel_weights_)) @ self._map

        return self._in_blocks(xs, [each.values for each in self._kernels], n, embed)


def least_values(mean: Array, size: int) -> Array:
    """Return for each row the smallest value of a symmetric kernel within its neighborhood, (n,).

    The neighborhood has the `size` largest values. A margin for rounding is subtracted."""
    n = len(mean)
    values = np.partition(mean, n - size, axis=0)
    return np.asarray(values[n - size] - _EQUAL * np.abs(mean).max(axis=0))


def least_values_of_mass(mean: Array, weight: Array, mass: float) -> Array:
    """Return for weighted rows the smallest kernel value within each row's neighborhood, (n,).

    A neighborhood has as few rows as possible, with a total weight of at least `mass`."""
    least = np.empty(len(mean))
    for tile in row_tiles(*mean.shape):
        order = np.argsort(-mean[tile], axis=1, kind="stable")
        # a row is in the neighborhood if the rows nearer to its center lack mass
        before = np.cumsum(weight[order], axis=1) - weight[order]
        # the place of the last such row; the first is always in
        last = np.maximum((before < (1 - _EQUAL) * mass).sum(axis=1), 1) - 1
        index = np.take_along_axis(order, last[:, None], axis=1)
        least[tile] = np.take_along_axis(mean[tile], index, axis=1)[:, 0]
    return least - _EQUAL * np.abs(mean).max(axis=0)


def exact_dtype(weight: Array) -> Any:
    """Return float32 if sums of the weights are exact in it, as for small counts; else float64."""
    # float32 has all integers up to 2^24
    exact = weight.sum() <= 1 << 24 and (weight == np.rint(weight)).all()
    return np.float32 if exact else np.float64


def shares(rows: Array, members: Array, weight: Array) -> Array:
    """Return W (n, m): the share of neighborhoods that contain both row i and row j.

    `rows` (n, q) and `members` (m, q) are masks: column j marks the rows in the neighborhood of the
    j-th row that was learned on. Each neighborhood counts with the `weight` of its row."""
    dtype = exact_dtype(weight)
    work, parts = float(len(rows)) * len(members) ** 2, rows * weight.astype(dtype)
    sums = interruptible(work, np.matmul, parts, members.T.astype(dtype, copy=False))
    return np.asarray(sums.astype(np.float64) / weight.sum())


# ---- LMKKM ---------------------------------------------------------------------------------------

_CLARABEL = "LMKKM needs clarabel (pip install clarabel)"


@parameters
class LMKKM(KernelFusion):
    """Localised multiple kernel k-means (LMKKM): each row has its own kernel weights.

    Minimizes Tr(K (I - HH')), K_ij = sum_l theta_il theta_jl K_l,ij, over matrices H with
    orthonormal columns and weights theta >= 0 of sum one for each row, in turn, theta by a
    quadratic programme (Goenen, Margolin: Localized data fusion for kernel k-means clustering with
    application to cancer biology. NIPS 2014). For n rows, or landmarks, some 125 L n^2 bytes, else
    a MemoryError, and O(L n^3) time or more an iteration: take n of a thousand. Raises an
    ImportError without the package clarabel. See ``docs/maintainers/fusion.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts of k-means on the embedding. "auto": those of `PowerKMeans`.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    standardize, normalize_rows : bool, default=True
        Whether computed kernels are centered, with a diagonal of one; embedded rows of length one.
    n_landmarks : int or None, default=None
        Number of random rows to learn on, at least n_clusters; the rest is embedded. None: all.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=0.0001
        Tolerance >= 0: iterations end when the objective falls by at most `tol` of itself.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, float64, with orthonormal columns; with landmarks, extended from them to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the learned kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        Means of `row_weights_`, weighted by the sample weights.
    row_weights_ : ndarray of shape (n_learned, n_views)
        Weights theta >= 0 of the kernels for each row that was learned on; rows sum to one.
    objective_, inertia_, s_, membership_exponent_ : float
        Objective of the fusion; objective and last s of k-means; s of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids of the rows of the embedding as k-means takes them.
    n_iter_, history_ : int and list of dict
        Number of iterations; a record for each, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import LMKKM
    >>> a, b, c, d = LMKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    tol: float = 1e-4
    # what a fit sets
    row_weights_: Array = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        optional_module("clarabel", _CLARABEL)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        """Learn the weights of each row and H, if a quadratic program of this size fits memory.

        The quadratic program needs semidefinite kernels. H uses the kernels as they are."""
        n = kernels[0].n
        needed = TUNING.fusion.lmkkm_bytes * len(kernels) * n**2
        if not config.fits_memory(needed):
            raise MemoryError(
                f"X has {n} rows to learn on: the quadratic programme of LMKKM takes about "
                f"{needed / 2**30:.3g} GiB. Take n_landmarks, or fewer rows."
            )
        Ks = [base.matrix_of(kernel, number) for number, kernel in enumerate(kernels)]
        self._squares = base.mean_of(Ks).diagonal()
        Ks = [base.weighed(K, self._weight) for K in Ks]
        convex = [K if one.definite else semidefinite(K) for K, one in zip(Ks, kernels)]
        self._keep(self._converge(self._iterations_of(Ks, convex, k), len(Ks[0])))

    def _iterations_of(self, Ks: list[Array], convex: list[Array], k: int) -> Iterator[Iteration]:
        """Yield iterations over H and the row weights theta, from equal weights.

        `convex` are the kernels made positive semidefinite, for the quadratic programme."""
        theta, start = np.full((len(Ks[0]), len(Ks)), 1 / len(Ks)), None
        while True:
            self.row_weights_ = theta
            K = localised(Ks, theta, theta)
            values, H = linalg.leading_eigenvectors(K, k, len(K), start)
            start = H.sum(axis=1)
            alpha = np.average(theta, axis=0, weights=self._weight)
            yield Iteration(alpha, float(base.spectral_costs([K], H)[0]), values, H)
            theta = row_weights(convex, H)

    def _mapped(self, Ks: list[Array]) -> Array:
        # Find the learned row nearest to each new row, by squared distances less k(x, x).
        nearest = (self._squares - 2 * base.mean_of(Ks)).argmin(axis=1)
        return localised(Ks, self.row_weights_[nearest], self.row_weights_) @ self._map


def localised(Ks: list[Array], rows: Array, columns: Array) -> Array:
    """Return the combined kernel sum_l theta_il theta_jl K_l,ij.

    `rows` (n, L) are the theta of the rows of the result, and `columns` (m, L) of its columns."""
    found = np.zeros(Ks[0].shape)
    for K, left, right in zip(Ks, rows.T, columns.T):
        found += left[:, None] * K * right
    return found


def semidefinite(K: Array) -> Array:
    """Add a multiple of the identity to K, so that no eigenvalue is negative."""
    least = float(linalg.eigh(K)[0][0])
    return K if least >= 0 else K - least * np.eye(len(K))


def row_weights(Ks: list[Array], H: Array) -> Array:
    """Solve for the kernel weights theta (n, L) of each row, for positive semidefinite kernels.

    They are nonnegative with a sum of one in each row, and minimize sum_l theta_l'(K_l * (I -
    HH'))theta_l, where * multiplies entries. If all kernels are zero, weights are equal."""
    clarabel = optional_module("clarabel", _CLARABEL)
    n, L = len(H), len(Ks)
    rest = np.eye(n) - H @ H.T
    size = max(float(K.diagonal().max()) for K in Ks)
    if not size > 0:
        return np.full((n, L), 1 / L)
    # the solver takes the upper triangle
    blocks = [sparse.csc_array(np.triu(rest * (K / size))) for K in Ks]
    P = sparse.block_diag(blocks, format="csc")
    # A theta + slack = b: the first n lines set the sums to one, and the rest keep theta >= 0
    sums = sparse.hstack([sparse.diags_array(np.ones(n))] * L)
    A = sparse.vstack([sums, -sparse.diags_array(np.ones(n * L))], format="csc")
    b = np.concatenate([np.ones(n), np.zeros(n * L)])
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(n * L)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = interruptible(
        TUNING.fusion.lmkkm_work * (n * L) ** 3,
        lambda: clarabel.DefaultSolver(P, np.zeros(n * L), A, b, cones, settings).solve(),
    )
    theta = np.maximum(np.reshape(found.x, (L, n)).T, 0)
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))


# ---- MVC-LFA -------------------------------------------------------------------------------------


@parameters
class MVCLFA(KernelFusion):
    """Multi-view clustering via late fusion alignment maximisation (MVC-LFA).

    Fuses the k leading eigenvectors H_l of each kernel in a matrix F. It maximizes Tr(F' sum_l
    beta_l H_l W_l) + mean_weight Tr(F'M), where M has the k leading eigenvectors of the mean
    kernel. In turn it optimizes F with orthonormal columns, rotations W_l, and weights beta >= 0
    with sum_l beta_l^2 = 1 (Wang et al.: Multi-view clustering via late fusion alignment
    maximization. IJCAI 2019; ``docs/maintainers/fusion.md``). For n rows, or landmarks, O(L n^2)
    memory, O(n^2 k) time a kernel, O(L n k^2) an iteration.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts of k-means on the embedding. "auto": those of `PowerKMeans`.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    standardize, normalize_rows : bool, default=True
        Whether computed kernels are centered, with a diagonal of one; embedded rows of length one.
    n_landmarks : int or None, default=None
        Number of random rows to learn on, at least n_clusters; the rest is embedded. None: all.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=1e-06
        Tolerance >= 0: iterations end when the objective rises by at most `tol` of itself.
    mean_weight : float, default=1.0
        Weight >= 0 of the agreement with M, lambda in the paper. Large: F is M.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, float64, with orthonormal columns; with landmarks, extended from them to all rows.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights beta >= 0 of the clusterings of single kernels; their squares sum to one.
    objective_, inertia_, s_, membership_exponent_ : float
        Objective of the fusion; objective and last s of k-means; s of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids of the rows of the embedding as k-means takes them.
    n_iter_, history_ : int and list of dict
        Number of iterations; a record for each, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import MVCLFA
    >>> a, b, c, d = MVCLFA(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    mean_weight: float = 1.0

    _weights = ("mean_weight",)
    _mapped = base.by_matrices

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = base.matrices(kernels, self._weight)
        state = LateFusion(Ks, k, float(self.mean_weight), np.sqrt(self._weight))
        self._converge(state.iterations(), len(Ks[0]), rising=True)
        self._map = state.maps()


class LateFusion:
    """The variables F, W_l and beta of MVC-LFA, and their updates."""

    def __init__(self, Ks: list[Array], k: int, weight: float, roots: Array) -> None:
        """Compute the k leading eigenvectors H_l of each kernel, and M of the mean kernel.

        `weight` is the parameter `mean_weight`. `roots` (n,) are the square roots of the row
        weights. H_l is K_l times its map, and M is the sum of K_l times the map of M."""
        self.weight, L, n = weight, len(Ks), len(Ks[0])
        pairs = [linalg.leading_eigenvectors(K, k, n) for K in [*Ks, base.mean_of(Ks)]]
        # The result depends on the signs of eigenvectors, which must not depend on row weights.
        *self.H, self.M = [linalg.fixed_signs(H, roots) for _, H in pairs]
        *self._H_maps, M_map = [
            linalg.over_eigenvalues(H, values) for (values, _), H in zip(pairs, [*self.H, self.M])
        ]
        self._M_map = M_map / L  # a map of the sum of the kernels, not of their mean
        self.W = [np.eye(k)] * L
        self.beta = np.full(L, L**-0.5)
        self.P = np.empty(0)  # (k, k): F = (sum_l beta_l H_l W_l + weight M) P

    def iterations(self) -> Iterator[Iteration]:
        """Yield iterations that set F, then the rotations W_l, and then beta."""
        while True:
            target = self.weight * self.M
            for beta, H, W in zip(self.beta, self.H, self.W):
                target = target + beta * (H @ W)
            left, sizes, right = linalg.svd(target)
            # with target = U S V', F is U V' and P is V S^+ V'
            self.P = right.T @ linalg.over_eigenvalues(right.T, sizes).T
            F = left @ right
            yield Iteration(self.beta, float(sizes.sum()), vectors=F)
            products = [H.T @ F for H in self.H]
            self.W = [linalg.procrustes(product) for product in products]
            agreements = np.array([np.vdot(p, W) for p, W in zip(products, self.W)])
            if agreements.any():  # else beta stays
                self.beta = agreements / np.linalg.norm(agreements)

    def maps(self) -> Array:
        """Return matrices B_l, (L, n, k), with F = sum_l K_l B_l."""
        parts = zip(self.beta, self._H_maps, self.W)
        return np.array(
            [(beta * (B @ W) + self.weight * self._M_map) @ self.P for beta, B, W in parts]
        )


# ---- ONKC ----------------------------------------------------------------------------------------


@parameters
class ONKC(KernelFusion):
    """Optimal neighbourhood kernel clustering with multiple kernels (ONKC).

    Learns a kernel G near a combination K_alpha of the given kernels. It minimizes (Liu et al.:
    Optimal neighborhood kernel clustering with multiple kernels. AAAI 2017)

        Tr(G (I - HH')) + (rho / 2) ||G - K_alpha||^2 + (diversity / 2) alpha'M alpha,
        K_alpha = sum_l alpha_l K_l,    M_pq = Tr(K_p K_q),

    over positive semidefinite G, matrices H with orthonormal columns and weights alpha >= 0 of sum
    one, in turn. For n rows, or landmarks, O(L n^2) memory, O(L^2 n^2) time for M and O(n^3) an
    iteration, O(n^2 r) where G has a rank r < n / 9. See ``docs/maintainers/fusion.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts of k-means on the embedding. "auto": those of `PowerKMeans`.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    standardize, normalize_rows : bool, default=True
        Whether computed kernels are centered, with a diagonal of one; embedded rows of length one.
    n_landmarks : int or None, default=None
        Number of random rows to learn on, at least n_clusters; the rest is embedded. None: all.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=0.0001
        Tolerance >= 0: iterations end when the objective falls by at most `tol` of itself.
    rho : float, default=1.0
        Weight > 0 of the distance between G and K_alpha.
    diversity : float, default=0.1
        Weight >= 0 of the penalty, lambda in the paper. alpha depends on diversity / rho.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, float64, with orthonormal columns; with landmarks, extended from them to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of G, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l.
    objective_, inertia_, s_, membership_exponent_ : float
        Objective of the fusion; objective and last s of k-means; s of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids of the rows of the embedding as k-means takes them.
    n_iter_, history_ : int and list of dict
        Number of iterations; a record for each, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import ONKC
    >>> a, b, c, d = ONKC(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    rho: float = 1.0
    diversity: float = 0.1
    tol: float = 1e-4

    _balances_terms = True
    _positive, _weights = ("rho",), ("diversity",)
    _mapped = base.by_matrices

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = base.matrices(kernels, self._weight)
        state = NearKernel(Ks, k, float(self.rho), float(self.diversity))
        self.eigenvalues_ = self._converge(state.iterations(), len(Ks[0])).values
        self._map = np.array(state.maps)


class NearKernel:
    """The variables G, H and alpha of ONKC, and their updates. H = sum_l K_l @ maps[l]."""

    def __init__(self, Ks: list[Array], k: int, rho: float, diversity: float) -> None:
        """Start with equal alpha, and the eigenvectors H of K_alpha.

        `rho` and `diversity` are the weights of the terms of the objective."""
        self.Ks, self.k, self.rho, self.diversity = Ks, k, rho, diversity
        self.M = base.inner_products(Ks, Ks)
        self.alpha = np.full(len(Ks), 1 / len(Ks))
        self.K = base.combined(Ks, np.sqrt(self.alpha))  # which squares its weights
        values, self.H = linalg.leading_eigenvectors(self.K, k, len(self.K))
        start = linalg.over_eigenvalues(self.H, values)
        self.maps = [weight * start for weight in self.alpha]
        self._found = self.H  # eigenvectors of the last B, at least k

    def iterations(self) -> Iterator[Iteration]:
        """Yield iterations that set G, then H, and then alpha."""
        while True:
            values, vectors = self._near()
            G = positive_part(values, vectors)
            # H has the leading eigenvectors of G
            H = linalg.fixed_signs(vectors[:, -self.k :][:, ::-1])
            # (K_alpha + H H' / rho) new H = new H (values + 1 / rho), and maps give the last H
            scaled = linalg.over_eigenvalues(H, values[-self.k :][::-1] + 1 / self.rho)
            overlap = self.H.T @ scaled / self.rho
            self.maps = [a * scaled + B @ overlap for a, B in zip(self.alpha, self.maps)]
            self.H = H
            largest = np.maximum(values, 0)
            squares = float(largest @ largest)
            products = np.array([np.vdot(G, K) for K in self.Ks])
            # For alpha of sum one, ||G - K_alpha||^2 is a quadratic form in alpha, whose matrix has
            # the inner products of K_p - G and K_q - G.
            gaps = self.M - products - products[:, None] + squares
            self.alpha = base.simplex_minimum(self.rho * gaps + self.diversity * self.M)
            self.K = base.combined(self.Ks, np.sqrt(self.alpha))
            size = float(self.alpha @ self.M @ self.alpha)
            # ||G - K_alpha||^2
            apart = max(squares - 2 * float(self.alpha @ products) + size, 0.0)
            lost = float(largest[: -self.k].sum())  # Tr(G (I - HH'))
            objective = lost + self.rho / 2 * apart + self.diversity / 2 * size
            yield Iteration(self.alpha, objective, largest[-self.k :][::-1])

    def _near(self) -> tuple[Array, Array]:
        """Return eigenvalues, rising, and eigenvectors of B = K_alpha - (I - HH') / rho.

        All positive eigenvalues are included, and at least the k largest. G is the positive part of
        B."""

        def difference() -> Array:
            B = self.K + self.H @ (self.H.T / self.rho)
            np.fill_diagonal(B, B.diagonal() - 1 / self.rho)
            return B

        B = interruptible(TUNING.linalg.written_work * self.K.size, difference)
        values, vectors = positive_eigenpairs(B, self._found)
        n_positive = int(np.count_nonzero(values > 0))
        self._found = vectors[:, -max(n_positive, self.k) :]
        return values, vectors


def positive_eigenpairs(B: Array, similar: Array) -> tuple[Array, Array]:
    """Return all positive eigenvalues of a symmetric matrix, rising, and their eigenvectors.

    The result has at least as many eigenvectors as `similar` (n, m), which are eigenvectors of a
    similar matrix. If m is small, Lanczos' method is tried before a full decomposition."""
    n, known = similar.shape
    wanted = known + max(TUNING.fusion.lanczos_spare, known // 8)
    if n > TUNING.linalg.full_below and wanted <= TUNING.fusion.lanczos_part * n:
        values, vectors = linalg.leading_eigenvectors(B, wanted, n, similar.sum(axis=1))
        rounding = n * np.finfo(np.float64).eps * np.abs(values).max()
        if values[-1] <= 0:  # all positive eigenvalues were found, unless Lanczos missed copies
            rest = linalg.ritz_values(lambda v: B @ v - vectors @ (values * (vectors.T @ v)), n)
            if rest[-1] <= rounding:
                return values[::-1], vectors[:, ::-1]
    return linalg.eigh(B)


def positive_part(values: Array, vectors: Array) -> Array:
    """Return the nearest positive semidefinite matrix, from rising eigenvalues and eigenvectors."""
    first = int(np.searchsorted(values, 0, side="right"))
    root = vectors[:, first:] * np.sqrt(values[first:])
    work = float(len(root)) * root.size
    return np.asarray(interruptible(work, np.matmul, root, root.T))


# ---- RMKKM: sums of distances that are not squared -----------------------------------------------

Init = Literal["k-means++", "random", "spectral"]


@dataclass(frozen=True)
class NormedWeights(PowerMean):
    """Weights alpha >= 0 with sum_l alpha_l^gamma = 1, 0 < gamma < 1."""

    gamma: float

    learns_weights = True

    def equal(self, L: int) -> Array:
        """Return equal weights (L,) that satisfy the constraint."""
        return np.full(L, L ** (-1 / self.gamma))

    def penalty(self, alpha: Array, total_weight: float) -> float:
        return 0.0

    def reweigh(self, costs: Array, constant: float, total_weight: float) -> Array:
        """Return the weights (L,) that minimize sum_l alpha_l costs_l.

        They are alpha_l ~ costs_l^(1 / (gamma - 1)), and equal if no cost is positive."""
        if not costs.max() > 0:
            return self.equal(len(costs))
        costs = np.maximum(costs / costs.max(), np.finfo(np.float64).eps)
        logs = np.log(costs) / (self.gamma - 1)
        return np.asarray(np.exp(logs - logsumexp(self.gamma * logs) / self.gamma))


class RobustLevel(KernelLevel):
    """Steps of a fit in which each row has the weight p_i / (2 distance_i).

    A start first moves its initial centroids to the means of their clusters."""

    def first(self, W: Array, alpha: Array) -> State:
        """Return the initial state of a start, with equal view weights instead of `alpha`.

        W (k, n) has the initial centroids as coefficients of the rows. Each moves to the mean of
        its cluster, and stays if the cluster is empty."""
        assert isinstance(self.rows.objective, NormedWeights)
        state = super().first(W, alpha)
        members = super()._weigh(state, -math.inf)[0].astype(np.float64)
        masses = members.sum(axis=1, keepdims=True)
        means = np.where(masses > 0, members / np.where(masses > 0, masses, 1), state.theta)
        return self.moved(state, means)._replace(alpha=self.rows.objective.equal(len(alpha)))

    def _weigh(self, state: State, s: float) -> tuple[Array, float, float]:
        """Return weights (k, n) of the rows, and the sum of distances, twice.

        The exponent `s` is ignored. Callers expect the soft and the hard objective, which are
        equal."""
        weights = super()._weigh(state, -math.inf)[0]
        Y, diagonal, squares = self._combined(state)
        nearest = (squares[:, None] - 2 * Y).min(axis=0) + diagonal
        p = self.rows.p
        least = TUNING.fusion.rmkkm_smoothing * float(np.average(diagonal, weights=p))
        distances = np.sqrt(np.maximum(nearest.astype(np.float64), least))
        total = float((p * distances).sum())
        if not least > 0:  # all rows are equal, and all distances are zero
            return weights, total, total
        return weights * (0.5 / distances).astype(weights.dtype), total, total

    def count_distinct(self, state: State, hard: float) -> int:
        """Count the distinct centroids. `hard` is a sum of distances, which are not squared.

        The sum of their squares is at least `hard`^2 over the total weight (Cauchy, Schwarz)."""
        return super().count_distinct(state, hard**2 / self.rows.total_weight)


@parameters
class RMKKM(Clusterer):
    """Robust multiple kernel k-means (RMKKM).

    Minimizes sum_i min_j (sum_l alpha_l ||phi_l(x_i) - theta_jl||^2)^(1/2), distances and not their
    squares, so that outliers count less (Du et al.: Robust multiple kernel k-means using l21-norm.
    IJCAI 2015), over centroids theta_jl and weights alpha >= 0 with sum_l alpha_l^gamma = 1, gamma
    = `weight_norm`. A pass updates both in O(L n^2 k) for n rows, with O(L n^2) memory if the
    kernels are stored; the objective never rises. See ``docs/maintainers/fusion.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts, at least 1; the best is kept. "auto": ten; one if `init` is an array.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
        Of several, kernels that follow the scale of X, as "linear", get a total variance of one.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    weight_norm : float, default=0.5
        Exponent gamma, 0.05 to 0.95: the larger, the more weight goes to kernels of least cost.
    init : {"k-means++", "random", "spectral"} or array, default="k-means++"
        Initial centroids: clusters of rows by the mean kernel, or by its eigenvectors ("spectral").
        An array: labels of rows, each in use, or weights, (n_clusters, n_samples).
    max_iter : int, default=300
        Largest number of passes of a start.
    tol : float, default=0.0001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
    cache : "auto", bool or int, default="auto"
        Bytes for stored kernels. "auto": a quarter of free memory. True: all, or a MemoryError.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    dual_coef_ : ndarray of shape (n_clusters, n_samples)
        Centroids as weights of the fitted rows: theta_j = sum_i dual_coef_[j, i] phi(x_i).
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0, sum of alpha^gamma one; `inertia_` is of the kernel sum_l alpha_l k_l.
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimized sum; its s, -inf; s of `predict_proba`.
    n_iter_, history_, cache_ : int and list of dict and bool
        Passes of the best start; records (keys: ``docs/api.md``); whether kernels were stored.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import RMKKM
    >>> a, b, c, d = RMKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    kernels: Kernels = None
    views: Any = None
    weight_norm: float = 0.5
    init: Init | Numbers = "k-means++"
    max_iter: int = 300
    tol: float = 1e-4
    cache: Cache = "auto"
    # what a fit sets
    dual_coef_: Array = field(init=False)
    kernel_weights_: Array = field(init=False)
    cache_: bool = field(init=False)

    fit, _fitted_model = fit_kernels, kernel_model
    _takes = Schema("", "kernels", several=True, warns_of_kernels=True)

    def _problem(self) -> KernelProblem:
        """Check the parameters, and return the problem that they define."""
        check_search_parameters(self, get_args(Init), "an array")
        check_kernels(self.kernels)
        checks.check_real(self.weight_norm, "weight_norm", 0.05, 0.95)
        return KernelProblem(
            self.kernels, self._plan, self.init, check_cache(self.cache),
            NormedWeights(float(self.weight_norm)), several=True, exact=True, level=RobustLevel,
            smoothing=TUNING.fusion.rmkkm_smoothing,
        )  # fmt: skip

    def _plan(self, context: FitContext, critical: float) -> Plan:
        schedule = Schedule(-math.inf, -math.inf, int(self.max_iter), float(self.tol))
        starts = given_starts(schedule, self.init, self.n_init, TUNING.fusion.rmkkm_starts)
        return Plan(starts, context.k)

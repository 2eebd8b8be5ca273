"""Multiple kernel k-means by eigenvectors, and k-means on features of one kernel.

Kernel weights are equal, given, learned, learned with a penalty on kernels that are alike, or
learned to minimize the largest alignment over relaxed clusterings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from rffpk.anneal.convergence_warnings import few_rows
from rffpk.estimators.annealing import check_search_parameters
from rffpk.estimators.base import Clusterer, fit_of, parameters, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.estimators.fitting import find_number, rows_in_memory
from rffpk.fusion import base
from rffpk.fusion.base import Iteration, KernelFusion, transform
from rffpk.fusion.operators import Nystroem, nystroem_features, with_gamma
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.door import Schema
from rffpk.rows.table import Columns
from rffpk.spaces.fourier import Gamma
from rffpk.spaces.kernels import FittedKernel, PairwiseKernel, check_sparse, one_kernel
from rffpk.system import config
from rffpk.system.interrupts import interruptible
from rffpk.system.linalg import (
    basis_of,
    by_blocks,
    eigh,
    leading_eigenvectors,
    row_tiles,
    run_all,
    svd,
)
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING


@parameters
class AverageMKKM(KernelFusion):
    """Kernel k-means on the mean of the kernels, by spectral relaxation (AMKKM).

    Annealed k-means on the rows of H, the k leading eigenvectors of K_alpha = sum_l alpha_l^2 K_l
    with equal or given alpha_l. H minimizes Tr(K_alpha) - Tr(H'K_alpha H) (MKC-AE, eq. (8) of
    Liang et al.: Stability and generalization of kernel clustering: from single kernel to multiple
    kernel. NeurIPS 2022; ``docs/maintainers/fusion.md``). For n rows, or landmarks, of d columns
    O(n^2) memory, O(L n^2 d) time for L kernels, O(n^2 k) for eigenvectors; O(L n (d + k)) to embed
    another row.

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
    kernel_weights : array-like of shape (n_views,) or None, default=None
        Weights alpha >= 0, not all zero, which are scaled to a sum of one. None: equal weights.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, float64, with orthonormal columns; with landmarks, extended from them to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the combined kernel, in falling order.
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
    >>> from rffpk import AverageMKKM
    >>> a, b, c, d = AverageMKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    kernel_weights: Any = None
    max_iter: int = field(default=1, init=False)  # the eigenvectors for given weights are final
    tol: float = field(default=0.0, init=False)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        alpha = _given_weights(self.kernel_weights, len(kernels))
        Ks = base.matrices(kernels, self._weight)
        values, H = leading_eigenvectors(base.combined(Ks, alpha), k, len(Ks[0]))
        self._record(alpha, float(alpha**2 @ base.spectral_costs(Ks, H)), len(H))
        self._keep(Iteration(alpha, self.objective_, values, H))


@parameters
class MKKM(KernelFusion):
    """Multiple kernel k-means with learned kernel weights (MKKM).

    Minimizes sum_l alpha_l^2 Tr(K_l (I - HH')) over weights alpha >= 0 of sum one and matrices H
    with orthonormal columns, in turn (Huang, Chuang, Chen: Multiple kernel fuzzy clustering. IEEE
    Transactions on Fuzzy Systems 2012). For n rows, or landmarks, O(L n^2) memory and O(L n^2 k)
    time an iteration. See ``docs/maintainers/fusion.md``.

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
        Largest eigenvalues of the combined kernel, in falling order.
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
    >>> from rffpk import MKKM
    >>> a, b, c, d = MKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    tol: float = 1e-4

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = base.matrices(kernels, self._weight)
        self._keep(self._converge(base.alternation(Ks, k), len(Ks[0])))


@parameters
class MKKMMR(KernelFusion):
    """Multiple kernel k-means with matrix-induced regularisation (MKKM-MR).

    Minimizes sum_l alpha_l^2 Tr(K_l (I - HH')) + (diversity / 2) alpha'M alpha, M_pq = Tr(K_p K_q),
    over weights alpha >= 0 of sum one and matrices H with orthonormal columns, in turn (Liu, Dou,
    Yin, Wang, Zhu: Multiple kernel k-means clustering with matrix-induced regularization. AAAI
    2016). The second term penalizes weight on similar kernels. For n rows, or landmarks, O(L n^2)
    memory, O(L^2 n^2) time for M, O(L n^2 k) an iteration. See ``docs/maintainers/fusion.md``.

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
        Largest eigenvalues of the combined kernel, in falling order.
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
    >>> from rffpk import MKKMMR
    >>> a, b, c, d = MKKMMR(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    diversity: float = 0.01

    _weights = ("diversity",)

    def _scale_matters(self) -> bool:
        return float(self.diversity) > 0

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks, weight = base.matrices(kernels, self._weight), float(self.diversity)
        penalty = weight * base.inner_products(Ks, Ks) if weight > 0 else None
        self._keep(self._converge(base.alternation(Ks, k, penalty), len(Ks[0])))


def _given_weights(shares: Any, n_kernels: int) -> Array:
    """Return kernel weights of sum one; equal weights for None."""
    if shares is None:
        return np.full(n_kernels, 1 / n_kernels)
    checks.check_plain(shares, "kernel_weights")
    with checks.named("kernel_weights"):
        alpha = np.asarray(shares, dtype=np.float64)
    if alpha.shape != (n_kernels,):
        raise ValueError(f"kernel_weights: has shape {alpha.shape}. Pass {n_kernels} weights.")
    if not (np.isfinite(alpha).all() and (alpha >= 0).all() and alpha.any()):
        raise ValueError(f"kernel_weights={shares}: must be finite, >= 0, not all 0. Pass shares.")
    return alpha / alpha.sum()


# ---- SimpleMKKM ----------------------------------------------------------------------------------


@parameters
class SimpleMKKM(KernelFusion):
    """Multiple kernel k-means that minimizes over weights a maximum over relaxed clusterings.

    Minimizes F(alpha) = max_H Tr(K_alpha HH') / n, K_alpha = sum_l alpha_l^2 K_l, over weights
    alpha >= 0 of sum one. The maximum is over H with orthonormal columns, and F is convex if
    kernels are semidefinite (Liu: SimpleMKKM: simple multiple kernel k-means. IEEE TPAMI 2022; with
    `n_landmarks` MKC-AE, eq. (12) of Liang et al.: Stability and generalization of kernel
    clustering. NeurIPS 2022). For n rows, or landmarks, O(L n^2) memory and O(L n^2 k) time an
    iteration; five suffice. See ``docs/maintainers/fusion.md``.

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
    tol : float, default=1e-05
        Iterations end when no weight changes by `tol` > 0, or at this gap (``docs/api.md``).

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, float64, with orthonormal columns; with landmarks, extended from them to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the combined kernel, in falling order.
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
    >>> from rffpk import SimpleMKKM
    >>> a, b, c, d = SimpleMKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    tol: float = 1e-5

    _positive = ("tol",)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        """Minimize the alignment over the kernel weights, and record each point."""
        n = kernels[0].n
        Ks = np.empty((len(kernels), n, n))
        for index, kernel in enumerate(kernels):
            K = base.weighed(base.matrix_of(kernel, index), self._weight)
            interruptible(TUNING.linalg.written_work * n**2, np.copyto, Ks[index], K)
        total = float(self._weight.sum())
        for point in minimise(Ks, k, float(self.tol), int(self.max_iter), total):
            self._record(point.alpha, point.objective, n, gap=point.gap)
        self._keep(point)


@dataclass(frozen=True, kw_only=True)
class Point(Iteration):
    """An evaluation of `Alignment` at alpha: the value, the gradient (L,), and the eigenvectors."""

    gradient: Array

    @property
    def gap(self) -> float:
        """The relative duality gap (alpha'g - min g) / alpha'g, with g the gradient.

        For a convex F it is at least (F - min F) / 2F. It is 0 if alpha'g is not positive."""
        total = float(self.alpha @ self.gradient)
        return (total - float(self.gradient.min())) / total if total > 0 else 0.0


@dataclass
class Alignment:
    """The function F(alpha) = max Tr(K_alpha HH') / n over H with k orthonormal columns.

    `Ks` (L, r, r) are the kernels, and K_alpha = sum_l alpha_l^2 K_l."""

    Ks: Array
    k: int
    n: float
    _start: Array | None = None  # start vector of Lanczos' method, from the last evaluation

    def at(self, alpha: Array) -> Point:
        """Evaluate F at alpha, with its gradient 2 alpha_l Tr(K_l HH') / n, by one eigenproblem."""
        L, size, _ = self.Ks.shape
        work = TUNING.linalg.written_work * size**2
        K = interruptible(work, np.matmul, alpha**2, self.Ks.reshape(L, -1)).reshape(size, size)
        values, H = leading_eigenvectors(K, self.k, size, self._start)
        self._start = H.sum(axis=1)
        traces = np.array([np.vdot(H, K @ H) for K in self.Ks])
        gradient = 2 * alpha * traces / self.n
        return Point(alpha, float(values.sum()) / self.n, values, H, gradient=gradient)


class Subspace:
    """The kernels projected to a subspace: `Ks` (L, r, r) holds V'K_l V for a basis V'V = I."""

    def __init__(self, whole: Array) -> None:
        L, n, _ = whole.shape
        self.whole, self.basis, self.Ks = whole, np.empty((n, 0)), np.empty((L, 0, 0))

    def add(self, H: Array) -> None:
        """Extend the subspace by the span of orthonormal vectors H (n, k), in O(L n^2 k) time."""
        V = self.basis
        # keep the directions that the subspace lacks
        left, sizes, _ = svd(H - V @ (V.T @ H))
        new = left[:, sizes > TUNING.fusion.simplemkkm_component]
        # orthogonalize again: the first product lost digits of small components
        new = basis_of(new - V @ (V.T @ new))[0]
        work = float(self.whole.size * new.shape[1])
        products = interruptible(work, np.matmul, self.whole, new)
        # the blocks V'K_l new and new'K_l new, which border the projected kernels
        side = V.T @ products
        corner = new.T @ products
        corner = (corner + corner.swapaxes(1, 2)) / 2
        self.Ks = np.block([[self.Ks, side], [side.swapaxes(1, 2), corner]])
        self.basis = np.hstack([V, new])


def minimise(Ks: Array, k: int, tol: float, max_iter: int, total: float) -> Iterator[Point]:
    """Minimize F over alpha on the simplex, for kernels (L, n, n); yield points of falling F.

    The first point has equal weights. There are at most `max_iter` evaluations of F. `total` is the
    sum of the row weights. docs/maintainers/fusion.md describes the method.

    The kernels projected to a subspace give a lower bound of F, which is fast to minimize. F is
    evaluated at the minimum of the bound, and the subspace is extended by its eigenvectors. The
    iterations end if the gap is at most `tol`, or if no weight moves by `tol`."""
    whole, subspace = Alignment(Ks, k, total), Subspace(Ks)
    point = whole.at(np.full(len(Ks), 1 / len(Ks)))
    yield point
    subspace.add(point.vectors)
    for _ in range(max_iter - 1):
        if point.gap <= tol:
            return
        bound = Alignment(subspace.Ks, k, whole.n)
        inner = TUNING.fusion.simplemkkm_tol * tol
        alpha = least_alignment(bound, bound.at(point.alpha), inner).alpha
        candidate = whole.at(alpha)
        subspace.add(candidate.vectors)
        moved = np.abs(alpha - point.alpha).max()
        if candidate.objective < point.objective:
            point = candidate
            yield point
        if moved < tol:
            return
    if point.gap > tol:
        warn(
            f"SimpleMKKM did not reach tol={tol:g} in max_iter={max_iter} iterations: increase "
            "max_iter or tol.",
            ConvergenceWarning,
        )


def least_alignment(F: Alignment, start: Point, tol: float) -> Point:
    """Minimize F over the simplex by sequential quadratic programming; return the best point.

    `start` is the first point. Weights are to be precise to about `tol`, so F to `tol` squared."""
    scale, evaluated = abs(start.objective) or 1.0, [start]

    def scaled(alpha: Array) -> tuple[float, Array]:
        alpha = np.maximum(alpha, 0)
        evaluated.append(F.at(alpha / alpha.sum()))
        return evaluated[-1].objective / scale, evaluated[-1].gradient / scale

    minimize(
        scaled, start.alpha, jac=True, method="SLSQP", bounds=[(0, 1)] * len(start.alpha),
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like},
        options={"ftol": tol**2, "maxiter": TUNING.fusion.simplemkkm_iterations},
    )  # fmt: skip
    return min(evaluated, key=lambda point: point.objective)


# ---- k-means on Nystroem features ----------------------------------------------------------------


@parameters
class NystroemKernelKMeans(Clusterer):
    """Kernel k-means on Nystroem features.

    Annealed k-means on features whose inner products are Z W^+ Z', with Z the kernel between rows
    and random anchors and W the kernel among anchors, or on their leading directions (Wang,
    Gittens, Mahoney: Scalable kernel k-means clustering with Nystroem approximation: relative-error
    bounds. JMLR 2019). For n rows of d columns, m anchors and F features O(n m (d + F) + m^3) time,
    and O(n F k) a pass of k-means. An indefinite W is refused. See ``docs/maintainers/fusion.md``.

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
    kernel : str or callable, default="rbf"
        A name of scikit-learn's pairwise kernels, or a function of two rows.
    gamma : {"mean", "median", "scale"}, float or None, default="mean"
        A number > 0. "mean", "median": 1 / (2 mean or median distance), for "rbf" squared; "scale":
        1 / (n_features X.var()). None, and words for other kernels: scikit-learn's default.
    kernel_params : dict or None, default=None
        Of a callable; of a name: "degree" >= 0 (default 3), "coef0" (1), "gamma" (over `gamma`).
    n_anchors : int, default=256
        Number of anchors, at least 1: random rows of positive weight, at most all.
    n_components : int or None, default=None
        Number of leading directions of the features, from 1 to `n_anchors`. None: all.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_components)
        Features of the rows, in the dtype of X; if `n_components` is None, as many as W has rank.
    anchors_ : ndarray of int
        Rows that are anchors, in rising order.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Centroids of the features, in the dtype of X.
    inertia_, s_, membership_exponent_ : float
        Objective and last finite s of k-means; s of `predict_proba`.
    n_iter_, history_ : int and list of dict
        Number of passes of k-means; records of passes and starts, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.

    Examples
    --------
    >>> from rffpk import NystroemKernelKMeans
    >>> a, b, c, d = NystroemKernelKMeans(2).fit_predict([[0.0], [0.2], [5.0], [5.2]])
    >>> bool(a == b != c == d)
    True
    """

    kernel: PairwiseKernel | Callable[..., float] = "rbf"
    gamma: Gamma | float | None = "mean"
    kernel_params: dict[str, Any] | None = None
    n_anchors: int = 256
    n_components: int | None = None
    # what a fit sets
    anchors_: NDArray[np.intp] = field(init=False)
    embedding_: Array = field(init=False)
    cluster_centers_: Array = field(init=False)
    _clusterer: Any = field(init=False)  # a PowerKMeans of the embedding

    _fitted_model, transform = base.embedding_model, transform
    _takes = Schema("", warns_of_kernels=True)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the features of the rows and cluster them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite numbers. float32 and float64 are kept, other dtypes become float64.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each: in the gamma that is estimated, the
            leading directions and k-means. A row of weight zero has no influence.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or sample_weight is not as described, or W is not positive
            semidefinite; nothing is changed then.

        Warns
        -----
        ConvergenceWarning
            If clusters have no rows.
        """
        check_search_parameters(self)
        spec = one_kernel(self.kernel, self.gamma, self.kernel_params)
        checks.check_int(self.n_anchors, "n_anchors", 1)
        if self.n_components is not None:
            checks.check_int(self.n_components, "n_components", 1, self.n_anchors)
        random = checks.check_random_state(self.random_state)
        n_threads = config.n_threads(self.n_jobs)
        with reporting(self, X) as progress, fit_of(self), config.one_blas_thread():
            rows = rows_in_memory(self, X, sample_weight, random)
            k = find_number(self, rows, random, progress)
            (x,), weight = rows.tables, rows.weight
            check_sparse(x, spec.metric, "X")
            self.anchors_ = rows.drawn(min(self.n_anchors, rows.counted), random)
            spec = with_gamma(spec, x, weight, random, n_threads)
            raw = nystroem_features(x, spec, "kernel", self.anchors_)
            self._features = self._restricted(raw, x, weight, n_threads)
            self.embedding_ = self._embedded([x])
            base.cluster(self, k, rows, random, [partial(few_rows, "X", [x], weight)], progress)
        self.n_iter_, self.history_ = self._clusterer.n_iter_, self._clusterer.history_
        return self

    def _restricted(self, raw: Nystroem, x: Columns, weight: Array, n_threads: int) -> Nystroem:
        """Project features to the `n_components` leading eigenvectors of their second moments.

        Warn if there are fewer features than `n_components`. None keeps all features."""
        if self.n_components is None:
            return raw

        def moments(tile: slice) -> Array:
            features = raw(x[tile])
            features *= np.sqrt(weight[tile, None])
            return features.T @ features

        rank = raw.root.shape[1]
        if self.n_components > rank:
            warn(
                f"n_components={self.n_components}: exceeds the rank {rank} of the kernel matrix "
                f"between anchors. Set n_components to at most {rank}, or increase n_anchors.",
                UserWarning,
            )
        parts = run_all(moments, row_tiles(len(x), rank), n_threads)
        _, vectors = eigh(sum(parts[1:], parts[0]))
        return replace(raw, root=raw.root @ vectors[:, ::-1][:, : self.n_components])

    def _embedded(self, xs: list[Columns]) -> Array:
        """Return the features of rows in their dtype, computed block by block."""

        def block(parts: list[Columns]) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):
                return self._features(parts[0]).astype(xs[0].dtype, copy=False)

        features = by_blocks(block, xs, len(self.anchors_), config.n_threads(self.n_jobs))
        checks.check_finite_kernel(features)
        return features

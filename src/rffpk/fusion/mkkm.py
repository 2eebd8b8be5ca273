"""Multiple kernel k-means by eigenvectors: with equal, given or learned kernel weights, and with a
penalty on weights of kernels that are alike."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from rffpk.estimators.base import parameters
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import (
    Iteration,
    alternation,
    combined,
    diversity_penalty,
    matrices,
    spectral_costs,
)
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.spaces.kernels import FittedKernel
from rffpk.system.linalg import leading_eigenvectors


@parameters
class AverageMKKM(KernelFusion):
    """Kernel k-means on the mean of the kernels, by spectral relaxation (AMKKM).

    Annealed k-means on the rows of H, the k leading eigenvectors of K_alpha = sum_l alpha_l^2 K_l
    with equal or given alpha_l, which minimise Tr(K_alpha) - Tr(H'K_alpha H) (MKC-AE, eq. (8) of
    Liang et al.: Stability and generalization of kernel clustering: from single kernel to multiple
    kernel. NeurIPS 2022; ``docs/fusion.md``). For n rows, or landmarks, of d columns O(n^2) memory,
    O(L n^2 d) time for L kernels, O(n^2 k) for eigenvectors; O(L n (d + k)) to embed another row.

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
        Of each view a kernel of scikit-learn, a callable, or a pair of one and gamma or parameters;
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": in X. "du2015": 12 of one array.
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
        H, float64, with orthonormal columns; with landmarks the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the combined kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
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
        Ks = matrices(kernels, self._weight)
        values, H = leading_eigenvectors(combined(Ks, alpha), k, len(Ks[0]))
        self._record(alpha, float(alpha**2 @ spectral_costs(Ks, H)), len(H))
        self._keep(Iteration(alpha, self.objective_, values, H))


@parameters
class MKKM(KernelFusion):
    """Multiple kernel k-means with learned kernel weights (MKKM).

    Minimises sum_l alpha_l^2 Tr(K_l (I - HH')) over weights alpha >= 0 of sum one and matrices H
    with orthonormal columns, in turn (Huang, Chuang, Chen: Multiple kernel fuzzy clustering. IEEE
    Transactions on Fuzzy Systems 2012). For n rows, or landmarks, O(L n^2) memory and O(L n^2 k)
    time an iteration. See ``docs/fusion.md``.

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
        Of each view a kernel of scikit-learn, a callable, or a pair of one and gamma or parameters;
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": in X. "du2015": 12 of one array.
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
        H, float64, with orthonormal columns; with landmarks the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the combined kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
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

    Examples
    --------
    >>> from rffpk import MKKM
    >>> a, b, c, d = MKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    tol: float = 1e-4

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels, self._weight)
        self._keep(self._converge(alternation(Ks, k), len(Ks[0])))


@parameters
class MKKMMR(KernelFusion):
    """Multiple kernel k-means with matrix-induced regularisation (MKKM-MR).

    Minimises sum_l alpha_l^2 Tr(K_l (I - HH')) + (diversity / 2) alpha'M alpha, M_pq = Tr(K_p K_q),
    over weights alpha >= 0 of sum one and matrices H with orthonormal columns, in turn (Liu, Dou,
    Yin, Wang, Zhu: Multiple kernel k-means clustering with matrix-induced regularization. AAAI
    2016): large weights of like kernels cost. For n rows, or landmarks, O(L n^2) memory, O(L^2 n^2)
    time for M and O(L n^2 k) an iteration. See ``docs/fusion.md``.

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
        Of each view a kernel of scikit-learn, a callable, or a pair of one and gamma or parameters;
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": in X. "du2015": 12 of one array.
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
        H, float64, with orthonormal columns; with landmarks the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the combined kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all of positive weight.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
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

    Examples
    --------
    >>> from rffpk import MKKMMR
    >>> a, b, c, d = MKKMMR(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    diversity: float = 0.01

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_real(self.diversity, "diversity", 0, checks.MAX_WEIGHT)

    def _scale_matters(self) -> bool:
        return float(self.diversity) > 0

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels, self._weight)
        penalty = diversity_penalty(Ks, Ks, float(self.diversity))
        self._keep(self._converge(alternation(Ks, k, penalty), len(Ks[0])))


def _given_weights(weights: Any, n_kernels: int) -> Array:
    """Return weights of sum one; equal ones for None."""
    if weights is None:
        return np.full(n_kernels, 1 / n_kernels)
    checks.check_plain(weights, "kernel_weights")
    with checks.named("kernel_weights"):
        alpha = np.asarray(weights, dtype=np.float64)
    if alpha.shape != (n_kernels,):
        raise ValueError(f"kernel_weights: has shape {alpha.shape}. Pass {n_kernels} weights.")
    if not (np.isfinite(alpha).all() and (alpha >= 0).all() and alpha.any()):
        raise ValueError(f"kernel_weights={weights}: must be finite, >= 0, not all 0. Pass shares.")
    return alpha / alpha.sum()

"""Multiple kernel k-means by eigenvectors: with equal, given or learned kernel weights."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.linalg import leading_eigenvectors
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import Iteration, alternation, combined, matrices, spectral_costs
from rffpk.maps.kernels import FittedKernel


@parameters
class AverageMKKM(KernelFusion):
    """Kernel k-means on the mean of the kernels, by spectral relaxation (AMKKM).

    The embedding consists of the n_clusters leading eigenvectors of the combined kernel K_alpha =
    sum_l alpha_l^2 K_l with equal weights alpha_l = 1/L of the L kernels, or with given ones: they
    maximise Tr(H'K_alpha H) over H with orthonormal columns. Annealed k-means on the rows of the
    embedding gives the labels.

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
    kernel_weights : array-like of shape (n_views,) or None, default=None
        Given weights alpha >= 0, not all zero, which are scaled to a sum of one. None: equal
        weights.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Embedding of the rows, float64: with orthonormal columns, the eigenvectors of the combined
        kernel; if there are landmarks, the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the combined kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all rows, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
    objective_ : float
        Tr(K_alpha) - Tr(H'K_alpha H): the k-means objective in the space of K_alpha, relaxed;
        weighted by the sample weights.
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
        If a parameter is not as described.

    Notes
    -----
    For n rows of d columns: O(n^2) memory, O(L n^2 (d + 1)) time for the kernels, and O(n^2 k) for
    some tens of steps of Lanczos' method. New rows are embedded by K_alpha(x, X) H / eigenvalues,
    which on the fitted rows gives those of `embedding_` ([1]_, eq. 8). With `n_landmarks` n is
    their number, and the embedding of all rows costs O(n_samples L n_landmarks (d + k)). The
    kernels "du2015" are those of [2]_.

    References
    ----------
    .. [1] Liang et al.: Stability and generalization of kernel clustering: from single kernel to
       multiple kernel. NeurIPS 2022 (MKC-AE).
    .. [2] Du et al.: Robust multiple kernel k-means using l21-norm. IJCAI 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import AverageMKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> AverageMKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).embedding_.shape
    (150, 3)
    """

    kernel_weights: Any = None
    n_landmarks: int | None = None
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
    with orthonormal columns, in turn: H from the leading eigenvectors of the combined kernel sum_l
    alpha_l^2 K_l, and alpha_l inversely proportional to Tr(K_l (I - HH')) [1]_. Annealed k-means on
    the rows of H, the embedding, gives the labels.

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

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Embedding of the rows, float64: with orthonormal columns, the eigenvectors of the combined
        kernel; if there are landmarks, the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the combined kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all rows, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
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
        If a parameter is not as described.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations did not reach `tol`.

    Notes
    -----
    For n rows: O(L n^2) memory; an iteration costs O(L n^2 k) and, for the eigenvectors, O(n^2 k)
    for some tens of steps of Lanczos' method. With `n_landmarks` n is their number.

    References
    ----------
    .. [1] Huang, Chuang, Chen: Multiple kernel fuzzy clustering. IEEE Transactions on Fuzzy Systems
       2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import MKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> MKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
    """

    n_landmarks: int | None = None
    tol: float = 1e-4

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels, self._weight)
        self._keep(self._converge(alternation(Ks, k), len(Ks[0])))


def _given_weights(given: Any, n_kernels: int) -> Array:
    """Weights of sum one; equal ones for None."""
    if given is None:
        return np.full(n_kernels, 1 / n_kernels)
    validation.check_plain(given, "kernel_weights")
    with validation.named("kernel_weights"):
        alpha = np.asarray(given, dtype=np.float64)
    if alpha.shape != (n_kernels,):
        raise ValueError(f"kernel_weights.shape == {alpha.shape}, must be ({n_kernels},).")
    if not (np.isfinite(alpha).all() and (alpha >= 0).all() and alpha.any()):
        raise ValueError(f"kernel_weights == {given}, must be >= 0, finite and not all zero.")
    return alpha / alpha.sum()

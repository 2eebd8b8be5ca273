"""LMKKM: multiple kernel k-means with kernel weights of each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

import numpy as np
from scipy import sparse

from rffpk._utils import config
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.interrupts import interruptible
from rffpk._utils.linalg import eigh, leading_eigenvectors
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import Iteration, matrices, mean_of, spectral_costs, weighed
from rffpk.maps.kernels import FittedKernel

# Bytes of the programme and of its factors, over L n^2: measured for L = 1 to 6, n = 300 to 1000.
_PROGRAMME_BYTES = 125

# Multiply-adds of the programme, over (L n)^3: some ten steps, each with a factorisation.
_PROGRAMME_WORK = 10


@parameters
class LMKKM(KernelFusion):
    """Localised multiple kernel k-means (LMKKM): each row has its own kernel weights.

    The learned kernel has the entries K_ij = sum_l theta_il theta_jl K_l,ij with weights theta >= 0
    whose sum over the kernels is one for each row. Minimised is Tr(K (I - HH')) over theta and
    matrices H with orthonormal columns, in turn [1]_: H from the leading eigenvectors of K, and
    theta by a quadratic programme in n L unknowns. Annealed k-means on the rows of H, the
    embedding, gives the labels. For a few thousand rows at most, or landmarks. Needs the package
    clarabel (``pip install 'rffpk[qp]'``).

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
        Embedding of the rows, float64: with orthonormal columns, the eigenvectors of the learned
        kernel; if there are landmarks, the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the learned kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all rows, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Means of `row_weights_`, by the sample weights.
    row_weights_ : ndarray of shape (n_learned, n_views)
        Weights theta >= 0 of the kernels for each row that was learned on, which no row of sample
        weight zero is; rows sum to one.
    objective_ : float
        Tr(K (I - HH')) at the last iteration.
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
    MemoryError
        If the quadratic programme takes more memory than the machine has available.
    ImportError
        If clarabel is not installed.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` iterations did not reach `tol`.

    Notes
    -----
    With theta_l the weights of kernel l and * the product of entries, the objective is sum_l
    theta_l'(K_l * (I - HH'))theta_l: convex in theta for positive semidefinite K_l. Both updates
    are exact, the second up to the tolerance 1e-8 of an interior-point method (Clarabel), so that
    the objective does not rise by more than this. Where a kernel has negative eigenvalues, the
    programme has it with a multiple of the identity that makes them zero.

    *New rows.* The publication has no weights for them. Here a row takes those of the nearest of
    the rows learned on, by distances in the mean of the kernels: for a fitted row they are its own.
    Then its embedding is K(x, X) H / eigenvalues.

    For n rows: O(L n^2) memory, some 125 L n^2 bytes; an iteration costs O(L n^3) or more: some
    seconds for 600 rows and three kernels, or for 200 rows and twenty, so that fits of tens of
    iterations take a minute or more. Ctrl-C waits for the end of a programme. With `n_landmarks` n
    is their number.

    References
    ----------
    .. [1] Goenen, Margolin: Localized data fusion for kernel k-means clustering with application to
       cancer biology. NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import LMKKM
    >>> X, _ = load_iris(return_X_y=True)
    >>> LMKKM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).row_weights_.shape
    (150, 2)
    """

    n_landmarks: int | None = None
    tol: float = 1e-4
    # what a fit sets
    row_weights_: Array = field(init=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _clarabel()

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        check_memory(len(kernels), kernels[0].n)
        Ks = matrices(kernels)
        self._squares = mean_of(Ks).diagonal()
        Ks = [weighed(K, self._weight) for K in Ks]
        convex = [K if one.definite else semidefinite(K) for K, one in zip(Ks, kernels)]
        self._keep(self._converge(self._iterations_of(Ks, convex, k), len(Ks[0])))

    def _iterations_of(self, Ks: list[Array], convex: list[Array], k: int) -> Iterator[Iteration]:
        theta, start = np.full((len(Ks[0]), len(Ks)), 1 / len(Ks)), None
        while True:
            self.row_weights_ = theta
            K = localised(Ks, theta, theta)
            values, H = leading_eigenvectors(K, k, len(K), start)
            start = H.sum(axis=1)
            alpha = np.average(theta, axis=0, weights=self._weight)
            yield Iteration(alpha, float(spectral_costs([K], H)[0]), values, H)
            theta = row_weights(convex, H)

    def _mapping(self) -> Callable[[list[Array]], Array]:
        def embed(Ks: list[Array]) -> Array:
            # squared distances less k(x, x); the first of equal ones
            nearest = (self._squares - 2 * mean_of(Ks)).argmin(axis=1)
            return localised(Ks, self.row_weights_[nearest], self.row_weights_) @ self._map

        return embed


def localised(Ks: list[Array], rows: Array, columns: Array) -> Array:
    """sum_l theta_il theta_jl K_l,ij, from the weights of rows and of columns."""
    found = np.zeros(Ks[0].shape)
    for K, left, right in zip(Ks, rows.T, columns.T):
        found += left[:, None] * K * right
    return found


def semidefinite(K: Array) -> Array:
    """K with a multiple of the identity that makes negative eigenvalues zero."""
    least = float(eigh(K)[0][0])
    return K if least >= 0 else K - least * np.eye(len(K))


def row_weights(Ks: list[Array], H: Array) -> Array:
    """theta (n, L) >= 0 with rows of sum one that minimises sum_l theta_l'(K_l * (I - HH'))theta_l,
    for positive semidefinite kernels."""
    clarabel = _clarabel()
    n, L = len(H), len(Ks)
    rest = np.eye(n) - H @ H.T
    size = max(float(K.diagonal().max()) for K in Ks)
    if not size > 0:
        return np.full((n, L), 1 / L)
    P = sparse.block_diag([np.triu(rest * (K / size)) for K in Ks], format="csc")
    sums = sparse.hstack([sparse.identity(n)] * L)
    A = sparse.vstack([sums, -sparse.identity(n * L)], format="csc")
    b = np.concatenate([np.ones(n), np.zeros(n * L)])
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(n * L)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = interruptible(
        _PROGRAMME_WORK * (n * L) ** 3,
        lambda: clarabel.DefaultSolver(P, np.zeros(n * L), A, b, cones, settings).solve(),
    )
    theta = np.maximum(np.reshape(found.x, (L, n)).T, 0)
    return np.asarray(theta / theta.sum(axis=1, keepdims=True))


def check_memory(L: int, n: int) -> None:
    needed = _PROGRAMME_BYTES * L * n**2
    if not config.fits_memory(needed):
        raise MemoryError(
            f"X has {n} rows to learn on: the quadratic programme of LMKKM takes about "
            f"{needed / 2**30:.3g} GiB. Take n_landmarks, or fewer rows."
        )


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            "LMKKM needs the package clarabel: pip install clarabel, or 'rffpk[qp]'."
        ) from error
    return clarabel

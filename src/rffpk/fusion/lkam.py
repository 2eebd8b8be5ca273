"""LKAM: multiple kernel clustering by alignment in the neighbourhood of each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import parameters
from rffpk._utils.interrupts import interruptible
from rffpk._utils.tiles import row_tiles
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import (
    alternation,
    combined,
    diversity_penalty,
    matrices,
    mean_of,
    weighed,
)
from rffpk.maps.kernels import FittedKernel

# Values of the mean kernel that differ by this fraction of the largest are equal: rounding must not
# decide whether a row belongs to a neighbourhood.
_EQUAL = 1e-9


@parameters
class LKAM(KernelFusion):
    """Multiple kernel clustering by local kernel alignment maximisation (LKAM).

    The kernels have to agree with a clustering in the neighbourhood of each row alone, not between
    rows that are far apart. With K^(i) the part of a kernel between the rows of neighbourhood i and
    H^(i) their rows of H, the mean over all i of

        sum_l alpha_l^2 Tr(K_l^(i) (I - H^(i)H^(i)')) + (diversity / 2) alpha'M^(i)alpha,
        M^(i)_pq = Tr(K_p^(i) K_q^(i)),

    is minimised over weights alpha >= 0 of sum one and matrices H with orthonormal columns, in turn
    [1]_. Annealed k-means on the rows of H, the embedding, gives the labels.

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
    tol : float, default=1e-06
        Tolerance >= 0: the iterations end when the objective falls by at most `tol` of itself.
    n_neighbors : int or float, default=0.5
        Number of rows in a neighbourhood, at least 1, or their fraction of all rows, > 0 and at
        most 1: the rows of the largest values of the mean of the kernels, the row itself among
        them; more where values are equal. The paper chooses the fraction by the labels from 0.05,
        0.1, ..., 0.95. 1.0: `MKKMMR`. With sample weights these are the fewest such rows whose
        weights reach `n_neighbors`, or this fraction of the sum of all weights.
    diversity : float, default=0.01
        Weight >= 0 of the penalty, lambda in the paper, which chooses it by the labels from 2^-15,
        2^-14, ..., 2^15. It grows with n_samples^2, the other term with n_samples.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Embedding of the rows, float64: with orthonormal columns, the eigenvectors of the learned
        kernel W * sum_l alpha_l^2 K_l (see Notes); if there are landmarks, the extension of theirs
        to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the learned kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all rows, except those of weight zero.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the kernels, of sum one; kernel l has the factor alpha_l^2.
    objective_ : float
        The minimised mean, at the last iteration.
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
    Let W_uv be the share of the neighbourhoods that both rows u and v belong to, and * the product
    of entries. The sums over neighbourhoods are those of the kernels W * K_l: the first term is
    alpha_l^2 Tr((W * K_l)(I - HH')), and M_pq = Tr((W * K_p) K_q). So this is MKKM-MR with W * K_l,
    which are positive semidefinite where the K_l are, and both updates are exact: the objective
    never rises.

    *New rows.* A row x belongs to the neighbourhoods of the fitted rows whose least value of the
    mean kernel it reaches. This gives W(x, X), and the embedding (W * K_alpha)(x, X) H /
    eigenvalues, on the fitted rows that of the fit. A row that belongs to no neighbourhood has the
    embedding zero.

    The published demo leaves a row out of its own neighbourhood; then W, and with it the embedding
    of a row, would depend on whether it was fitted.

    *Sample weights.* W_uv is the share of the weights of the rows to whose neighbourhoods u and v
    belong. Integer weights are repeated rows if `n_neighbors` is an integer, or times the sum of
    the weights is one: without weights this number of rows is rounded.

    For n rows: O(L n^2) memory; O(n^3) time for W, once and for each n rows that are embedded, as
    one product of matrices in float32, with sample weights in float64; O(L^2 n^2) for M; an
    iteration costs O(L n^2 k) and, for the eigenvectors, O(n^2 k) for some tens of steps of
    Lanczos' method. A fitted model holds n^2 / 8 bytes for the neighbourhoods, of which a
    prediction makes 4 n^2, or 8 n^2 with sample weights. With `n_landmarks` n is their number.

    References
    ----------
    .. [1] Li, Liu, Wang, Dou, Yin, Zhu: Multiple kernel clustering with local kernel alignment
       maximization. IJCAI 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import LKAM
    >>> X, _ = load_iris(return_X_y=True)
    >>> LKAM(3, random_state=0).fit([X[:, :2], X[:, 2:]]).kernel_weights_.shape
    (2,)
    """

    n_neighbors: float = 0.5
    diversity: float = 0.01
    n_landmarks: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.n_neighbors, float):
            validation.check_real(self.n_neighbors, "n_neighbors", 0, 1, include="right")
        else:
            validation.check_int(self.n_neighbors, "n_neighbors", 1)
        validation.check_real(self.diversity, "diversity", 0, validation.MAX_WEIGHT)

    def _scale_matters(self) -> bool:
        return float(self.diversity) > 0 or not isinstance(self.n_neighbors, float)

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        Ks = matrices(kernels)
        mean = mean_of(Ks)
        self._least = self._least_values(mean)
        members = mean >= self._least
        self._members = np.packbits(members, axis=1)
        W = shares(members, members, self._weight)
        Ks = [weighed(K, self._weight) for K in Ks]
        near = [W * K for K in Ks]
        penalty = diversity_penalty(near, Ks, float(self.diversity))
        del Ks, mean, members, W
        self._keep(self._converge(alternation(near, k, penalty), len(near[0])))

    def _least_values(self, mean: Array) -> Array:
        """The value of the mean kernel from which on rows belong to the neighbourhood of each
        row."""
        size, n, p = self.n_neighbors, len(mean), self._weight
        if p is None:
            rows = max(1, round(size * n)) if isinstance(size, float) else int(size)
            return least_values(mean, min(n, rows))
        total = float(p.sum())
        share = size if isinstance(size, float) else min(1.0, size / total)
        return least_values_of_mass(mean, p, share * total)

    def _mapping(self) -> Callable[[list[Array]], Array]:
        n = len(self._least)
        members = np.unpackbits(self._members, axis=1, count=n)
        members = members.astype(np.float32 if self._weight is None else np.float64)

        def embed(Ks: list[Array]) -> Array:
            W = shares(mean_of(Ks) >= self._least, members, self._weight)
            return (W * combined(Ks, self.kernel_weights_)) @ self._map

        return embed


def least_values(mean: Array, size: int) -> Array:
    """The value of a symmetric kernel from which on rows belong to the neighbourhood of each row:
    its `size`-th largest one, less what may be rounding."""
    n = len(mean)
    values = np.partition(mean, n - size, axis=0)
    return np.asarray(values[n - size] - _EQUAL * np.abs(mean).max(axis=0))


def least_values_of_mass(mean: Array, weight: Array, mass: float) -> Array:
    """The same for weighted rows, of which the fewest whose weights reach `mass` belong to a
    neighbourhood."""
    found = np.empty(len(mean))
    for tile in row_tiles(*mean.shape):
        order = np.argsort(-mean[tile], axis=1, kind="stable")
        before = np.cumsum(weight[order], axis=1) - weight[order]
        last = np.maximum((before < (1 - _EQUAL) * mass).sum(axis=1), 1) - 1
        index = np.take_along_axis(order, last[:, None], axis=1)
        found[tile] = np.take_along_axis(mean[tile], index, axis=1)[:, 0]
    return found - _EQUAL * np.abs(mean).max(axis=0)


def shares(rows: Array, members: Array, weight: Array | None = None) -> Array:
    """W: the shares of the neighbourhoods (columns of both) that rows and members belong to, by
    the weights of the rows whose neighbourhoods they are. Counts are exact in float32."""
    n, dtype = len(members), np.float32 if weight is None else np.float64
    parts = rows.astype(dtype) if weight is None else rows * (weight / weight.sum())
    work = float(len(rows)) * n**2
    counts = interruptible(work, np.matmul, parts, members.T.astype(dtype, copy=False))
    return np.asarray(counts.astype(np.float64) / n if weight is None else counts)

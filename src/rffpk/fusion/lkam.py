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

    The kernels have to agree with a clustering in the neighbourhood of each row alone. With K^(i)
    the part of a kernel between the rows of neighbourhood i and H^(i) their rows of H, the mean
    over all i of

        sum_l alpha_l^2 Tr(K_l^(i) (I - H^(i)H^(i)')) + (diversity / 2) alpha'M^(i)alpha,
        M^(i)_pq = Tr(K_p^(i) K_q^(i)),

    is minimised over weights alpha >= 0 of sum one and matrices H with orthonormal columns, in turn
    (Li, Liu, Wang, Dou, Yin, Zhu: Multiple kernel clustering with local kernel alignment
    maximization. IJCAI 2016). Annealed k-means on the rows of H, the embedding, gives the labels.

    For n rows O(L n^2) memory and O(n^3 + L^2 n^2) time, O(n^3) for each n rows that are embedded,
    and O(L n^2 k) an iteration; a model has n^2 / 8 bytes. With `n_landmarks` n is their number.
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
    tol : float, default=1e-06
        Tolerance >= 0: iterations end when the objective falls by at most `tol` of itself.
    n_neighbors : int or float, default=0.5
        Number of rows in a neighbourhood, at least 1, or their fraction of all rows, > 0 and at
        most 1, by the mean of the kernels; more where values are equal. 1.0: `MKKMMR`.
    diversity : float, default=0.01
        Weight >= 0 of the penalty, lambda in the paper, which chooses it by the labels. M grows
        with n_samples^2, the other term with n_samples.

    Attributes
    ----------
    n_clusters_, selection_ : int and NClustersSelection
        Number of clusters; good numbers with scores and partitions, set if `n_clusters` is none.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of the centroid nearest to its embedding.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        H, float64, with orthonormal columns; with landmarks the extension of theirs to all rows.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Largest eigenvalues of the learned kernel, in falling order.
    landmarks_ : ndarray of int, shape (n_landmarks,), or None
        Rows that were learned on, in rising order. None: all, except those of weight zero.
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
    probabilities_
    linkage_

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

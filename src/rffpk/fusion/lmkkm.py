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

    Minimises Tr(K (I - HH')), K_ij = sum_l theta_il theta_jl K_l,ij, over matrices H with
    orthonormal columns and weights theta >= 0 whose sum over the kernels is one for each row, in
    turn, theta by a quadratic programme (Goenen, Margolin: Localized data fusion for kernel k-means
    clustering with application to cancer biology. NIPS 2014). Annealed k-means on the rows of H,
    the embedding, gives the labels.

    For n rows some 125 L n^2 bytes, else a MemoryError; an iteration costs O(L n^3) or more: take a
    thousand rows or landmarks. Needs the package clarabel (``pip install 'rffpk[qp]'``), else an
    ImportError. With `n_landmarks` n is their number. ``docs/fusion.md`` compares the methods.
    `fit` raises a ValueError or TypeError for bad input.

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
    tol : float, default=0.0001
        Tolerance >= 0: iterations end when the objective falls by at most `tol` of itself.

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
        Means of `row_weights_`, by the sample weights.
    row_weights_ : ndarray of shape (n_learned, n_views)
        Weights theta >= 0 of the kernels for each row that was learned on; rows sum to one.
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
        raise ImportError("LMKKM needs the package clarabel: pip install 'rffpk[qp]'.") from error
    return clarabel

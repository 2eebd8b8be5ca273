"""SimpleMKKM: kernel weights that minimise the largest alignment over relaxed clusterings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from rffpk.estimators.base import parameters
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.spectral import Iteration, matrix_of, weighed
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.spaces.kernels import FittedKernel
from rffpk.system.interrupts import interruptible
from rffpk.system.linalg import basis_of, leading_eigenvectors, svd
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING


@parameters
class SimpleMKKM(KernelFusion):
    """Multiple kernel k-means that minimises over weights a maximum over relaxed clusterings.

    Minimises F(alpha) = max_H Tr(K_alpha HH') / n, K_alpha = sum_l alpha_l^2 K_l, over weights
    alpha >= 0 of sum one, the maximum over H with orthonormal columns; F is convex if kernels are
    semidefinite (Liu: SimpleMKKM: simple multiple kernel k-means. IEEE TPAMI 2022; with
    `n_landmarks` MKC-AE, eq. (12) of Liang et al.: Stability and generalization of kernel
    clustering. NeurIPS 2022). For n rows, or landmarks, O(L n^2) memory and O(L n^2 k) time an
    iteration; five suffice. See ``docs/fusion.md``.

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
    tol : float, default=1e-05
        Iterations end when no weight changes by `tol` > 0, or at this gap (``docs/api.md``).

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
    >>> from rffpk import SimpleMKKM
    >>> a, b, c, d = SimpleMKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    tol: float = 1e-5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks.check_real(self.tol, "tol", 0, include="neither")

    def _learn(self, kernels: list[FittedKernel], k: int) -> None:
        n = kernels[0].n
        Ks = np.empty((len(kernels), n, n))
        for number, kernel in enumerate(kernels):
            K = weighed(matrix_of(kernel, number), self._weight)
            interruptible(TUNING.linalg.written_work * n**2, np.copyto, Ks[number], K)
        total = float(self._weight.sum())
        for point in minimise(Ks, k, float(self.tol), int(self.max_iter), total):
            self._record(point.alpha, point.objective, n, gap=point.gap)
        self._keep(point)


@dataclass(frozen=True, kw_only=True)
class Point(Iteration):
    """F(alpha), its gradient, and the eigenpairs that give it."""

    gradient: Array

    @property
    def gap(self) -> float:
        """(alpha'g - min g) / alpha'g, which for a convex F is at least (F - min F) / 2F."""
        total = float(self.alpha @ self.gradient)
        return (total - float(self.gradient.min())) / total if total > 0 else 0.0


class Alignment:
    """F(alpha) = max Tr(K_alpha HH') / n over H with k orthonormal columns, for Ks (L, r, r)."""

    def __init__(self, Ks: Array, k: int, n: float) -> None:
        self.Ks, self.k, self.n = Ks, k, n
        self._start: Array | None = None

    def at(self, alpha: Array) -> Point:
        """Return F and its gradient 2 alpha_l Tr(K_l HH') / n, from one eigenproblem."""
        L, size, _ = self.Ks.shape
        work = TUNING.linalg.written_work * size**2
        K = interruptible(work, np.matmul, alpha**2, self.Ks.reshape(L, -1)).reshape(size, size)
        values, H = leading_eigenvectors(K, self.k, size, self._start)
        self._start = H.sum(axis=1)
        traces = np.array([np.vdot(H, K @ H) for K in self.Ks])
        gradient = 2 * alpha * traces / self.n
        return Point(alpha, float(values.sum()) / self.n, values, H, gradient=gradient)


class Subspace:
    """The kernels on the span of vectors: `Ks` (L, r, r) holds V'K_l V, V'V = I."""

    def __init__(self, whole: Array) -> None:
        L, n, _ = whole.shape
        self.whole, self.basis, self.Ks = whole, np.empty((n, 0)), np.empty((L, 0, 0))

    def add(self, H: Array) -> None:
        """Extend the basis by orthonormal vectors (n, k). O(L n^2 k)."""
        V = self.basis
        left, sizes, _ = svd(H - V @ (V.T @ H))
        new = left[:, sizes > TUNING.fusion.simplemkkm_component]
        new = basis_of(new - V @ (V.T @ new))[0]
        work = float(self.whole.size * new.shape[1])
        products = interruptible(work, np.matmul, self.whole, new)
        side = V.T @ products
        corner = new.T @ products
        corner = (corner + corner.swapaxes(1, 2)) / 2
        self.Ks = np.block([[self.Ks, side], [side.swapaxes(1, 2), corner]])
        self.basis = np.hstack([V, new])


def minimise(Ks: Array, k: int, tol: float, max_iter: int, total: float) -> Iterator[Point]:
    """Return points of decreasing F for kernels (L, n, n), from equal weights to the minimum.

    There are at most `max_iter` evaluations. `total` is the sum of the weights of the rows.
    docs/fusion.md describes the method."""
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
        warn(f"max_iter == {max_iter} iterations did not reach tol == {tol}.", ConvergenceWarning)


def least_alignment(F: Alignment, start: Point, tol: float) -> Point:
    """Return the least point on the simplex that quadratic programmes find, from `start`."""
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

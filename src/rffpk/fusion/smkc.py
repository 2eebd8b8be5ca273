"""Scalable multiple kernel clustering, on coordinates of anchor kernels."""

from __future__ import annotations

import math
import numbers
from dataclasses import field
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.cluster import kmeans_plusplus

from rffpk.estimators.base import parameters
from rffpk.fusion.base import KernelFusion
from rffpk.fusion.operators import with_gamma
from rffpk.fusion.smkc_solver import AnchorIteration, AnchorKernels, iterations
from rffpk.fusion.spectral import matrix_of
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Numbers
from rffpk.rows.sample import Opened
from rffpk.rows.table import (
    Columns,
    centered,
    column_means,
    divided,
    operand,
    side_by_side,
    squared_distances,
)
from rffpk.rows.weights import ones
from rffpk.spaces.kernels import (
    PRECOMPUTED,
    FittedKernel,
    Specification,
    check_no_distances,
    check_precomputed,
    matched,
)
from rffpk.system import config
from rffpk.system.linalg import basis_of, fixed_signs
from rffpk.system.report import warn
from rffpk.system.tiles import by_blocks
from rffpk.system.tuning import TUNING

Anchors = Literal["uniform", "k-means++"]


_DEPENDENT = 1e-8  # of columns of length one: the rest of a column beside the columns before it

_RATIO = 1e5  # of sigma_1 and sigma_k; above it eps (sigma_1 / sigma_k)^2 exceeds 1e-6


@parameters
class SMKC(KernelFusion):
    """Scalable multiple kernel clustering (SMKC): rank-k parts of anchor kernels, fused.

    With G_v = k_v(x_i, anchor_t), of shape (n, s), between the rows and s anchors, it minimises
    sum_v ||H_v - G_v||^2 + ||H_v - G||^2 over G and H_v of rank k by G = rank-k part of mean_v H_v
    and H_v = rank-k part of (G_v + G) / 2 in turn (eq. (7) and algorithm 1 of Liang et al.:
    Scalable multiple kernel clustering: learning clustering structure from expectation. ICML 2024).
    For n rows of d columns and V views O(min(n, V s) V s + n k) memory, O(n V s (V s + d)) time for
    two passes over the rows, and O(V r s k + V^2 (r + s) k^2), r = min(n, V s), an iteration. With
    ``kernels="precomputed"`` X holds the G_v. See ``docs/fusion.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to s, or how to find it (``docs/clusters_number.md``).
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
    standardize : bool, default=True
        Whether computed kernels are centered at the mean anchor, with a diagonal of one.
    normalize_rows : bool, default=False
        Whether rows of the embedding are scaled to length one for k-means.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=0.0001
        Tolerance >= 0: iterations end when ||G - previous G|| <= tol ||G||.
    anchors : {"uniform", "k-means++"}, int, pair or array-like of int, default="uniform"
        Random rows, or by k-means++ among 4 s: s = 1000 up to 20 000 rows, else ceil(3
        sqrt(n_samples)), or an int; a pair has a word and s. An array: these rows, all different.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        U, the left singular vectors of G, float64; columns of zeros beyond the rank of G.
    singular_values_ : ndarray of shape (n_clusters,)
        Largest singular values of G, in falling order.
    anchors_ : ndarray of int, shape (s,), or None
        Rows that are anchors, in the given order, or rising. None: kernels were precomputed.
    kernel_weights_ : ndarray of shape (n_views,)
        Equal numbers of sum one: the method learns no weights.
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
    >>> from rffpk import SMKC
    >>> a, b, c, d = SMKC(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    _needs_every_kernel = False  # G is the mean of all H_v: one that is zero scales it

    _stage = "fusion"
    _remedy = (
        "take more iterations, a larger tol, or fewer anchors, such as 500 random columns of each "
        "precomputed kernel"
    )

    anchors: int | Anchors | tuple[Anchors, int] | Numbers = "uniform"
    n_landmarks: None = field(default=None, init=False)  # there are anchors
    tol: float = 1e-4
    normalize_rows: bool = False
    # what a fit sets
    anchors_: NDArray[np.intp] | None = field(init=False)
    singular_values_: Array = field(init=False)

    def _check_number(self, k: int) -> None:
        super()._check_number(k)
        self._drawing(k)

    def _drawing(self, k: int) -> tuple[str, int | None] | None:
        """Return how anchors are drawn, and how many; None if they are given.

        The number None stands for the number that belongs to the number of rows."""
        given: Any = self.anchors
        if isinstance(given, numbers.Integral):
            return "uniform", checks.check_int(given, "anchors", k)
        pair = isinstance(given, (tuple, list)) and any(isinstance(each, str) for each in given)
        if pair or isinstance(given, str):
            words, also = get_args(Anchors), "an int or an array of rows"
            return checks.word_and_size(given, "anchors", words, k, also)
        return None

    # ---- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fuse the kernels and cluster the rows.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_samples, n_features_v), or one
            The views; with ``kernels="precomputed"`` matrices G_v of shape (n_samples, s),
            all of one width; the anchors of square ones are the rows, in their order. One array
            with several `kernels` is a view of each. C-ordered arrays of one dtype, float32 or
            float64, are not copied, nor are memory-mapped ones and CSR.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights p >= 0 of the rows, by default one each. With the same anchors a row of weight
            two counts like two equal rows, in G and all H_v and in k-means on the embedding. A row
            of weight zero is drawn as no anchor and has no influence; it is embedded and labelled
            like a new one. The columns of diag(p)^(1/2) `embedding_` are orthonormal. Results are
            precise to eps times the largest weight.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter, a view or sample_weight is not as described; nothing is changed then.

        Warns
        -----
        ConvergenceWarning, UserWarning
            As the class says; also if clusters have no rows.
        """
        return super().fit(X, y, sample_weight)

    def _fuse(self, rows: Opened, k: int, random: Any) -> None:
        self._columns = None
        xs, weight = rows.tables, rows.weight
        self.anchors_ = self._choose_anchors(rows, k, random)
        self._kernels = self._fit_kernels(xs, weight, random)
        for number, kernel in enumerate(self._kernels):
            if not (kernel.definite or kernel.precomputed):
                matrix_of(kernel, number)  # warns if it is indefinite among the anchors
        B = self._anchored(xs, np.sqrt(weight))
        n_threads = config.n_threads(self.n_jobs)
        endless = iterations(B.coordinates(), len(self._kernels), k, n_threads)
        last = self._converge(endless, len(xs[0]))
        if last.ratio > _RATIO:
            warn(
                f"sigma_1 / sigma_k of the fused kernels is {last.ratio:.2g}, so that singular "
                "vectors may have errors above 1e-6. Take fewer clusters, or kernels with a larger "
                "gamma.",
                UserWarning,
            )
        self.singular_values_ = np.sqrt(last.fused.squares)
        self._finish(B, last)

    def _choose_anchors(self, rows: Opened, k: int, random: Any) -> NDArray[np.intp] | None:
        xs, n, most = rows.tables, len(rows.tables[0]), rows.counted
        if checks.is_option(self.kernels, PRECOMPUTED):
            _check_widths([x.shape[1] for x in xs], k)
            for i, x in enumerate(xs):
                square = x.shape[0] == x.shape[1]
                check = check_precomputed if square else check_no_distances
                check(x, f"X[{i}]" if self._shape.has_views else "X")
            return None
        drawing = self._drawing(k)
        if drawing is None:
            return _check_anchors(self.anchors, n, k)
        tuning = TUNING.fusion
        auto = tuning.smkc_anchors if n <= tuning.smkc_rows else math.ceil(3 * math.sqrt(n))
        how, size = drawing
        s = min(most, max(auto, k) if size is None else size)
        if how == "uniform":
            return rows.drawn(s, random)
        sample = rows.drawn(min(most, tuning.smkc_sample * s), random)
        return np.sort(_spread_rows(xs, sample, s, random))

    def _fit_kernels(self, xs: list[Array], weight: Array, random: Any) -> list[FittedKernel]:
        """Return kernels fitted to the anchors, with gammas estimated from all rows."""
        if self.anchors_ is None:
            spec = Specification(PRECOMPUTED)
            return [FittedKernel(x[:0].copy(), spec, weight=ones(0)) for x in xs]
        anchors, weights = [x[self.anchors_] for x in xs], ones(len(self.anchors_))
        anchors, specs = matched(anchors, self.kernels, not self._shape.has_views, weights)
        n_threads = config.n_threads(self.n_jobs)
        return [
            self._fitted(rows, with_gamma(spec, x, weight, random, n_threads), weights)
            for x, rows, spec in zip(self._view_of_each(xs, len(specs)), anchors, specs)
        ]

    def _anchored(self, xs: list[Array], roots: Array) -> AnchorKernels:
        views = self._view_of_each(xs, len(self._kernels))
        s = xs[0].shape[1] if self.anchors_ is None else len(self.anchors_)
        return AnchorKernels(views, self._kernels, s, config.n_threads(self.n_jobs), roots)

    def _finish(self, B: AnchorKernels, last: AnchorIteration) -> None:
        """Return U = B C with orthonormal columns of P^(1/2) U.

        It has as many columns as G has singular values that are resolved."""
        k, squares, resolved = len(last.fused.squares), last.fused.squares, last.fused.resolved
        L = last.coefficients[:, resolved] / np.sqrt(squares[resolved])
        Y = B.times(L)
        roots = B.roots[:, None]
        Q, triangle = basis_of(roots * Y)
        apart = np.abs(triangle.diagonal()) > _DEPENDENT
        if not apart.all():  # a singular value of rounding alone that is not below all rounding
            L, Y = L[:, apart], Y[:, apart]
            Q, triangle = basis_of(roots * Y)
        signs = np.einsum("ij,ij->j", Q, fixed_signs(Q))
        # SciPy 1.11 refuses an order of zero
        inverse = solve_triangular(triangle, np.diag(signs)) if len(signs) else triangle
        self._left, self._right = L, np.pad(inverse, ((0, 0), (0, k - len(inverse))))
        self.embedding_ = self._rotated(Y)

    def _rotated(self, Y: Array) -> Array:
        """Return U from B L, for rows that were fitted and for new rows."""
        return by_blocks(lambda parts: parts[0] @ self._right, [Y], len(self._right), 1)

    def _embedded(self, xs: list[Array]) -> Array:
        return self._rotated(self._anchored(xs, ones(len(xs[0]))).times(self._left))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False  # a subset of the rows keeps all anchors, the columns
        return tags


# ---- anchors ------------------------------------------------------------------------------------


def _check_widths(widths: list[int], k: int) -> None:
    if len({*widths}) > 1:
        raise ValueError(f"X has precomputed kernels of {widths} columns, must have equally many.")
    if widths[0] < k:
        raise ValueError(f"X has {widths[0]} anchors as columns, must be >= n_clusters == {k}.")


def _check_anchors(anchors: Any, n: int, k: int) -> NDArray[np.intp]:
    rows = np.asarray(anchors)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise TypeError(
            f"anchors == {anchors!r}, must be an int, a str or a 1-d array of integers."
        )
    if len(rows) < k:
        raise ValueError(f"anchors has {len(rows)} rows, must be >= n_clusters == {k}.")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"anchors are {rows.min()} to {rows.max()}, must be from 0 to {n - 1}.")
    if len(np.unique(rows)) < len(rows):
        raise ValueError("anchors contains a row twice, must contain different rows.")
    return rows.astype(np.intp)


def _spread_rows(
    xs: list[Columns], sample: NDArray[np.intp], s: int, random: Any
) -> NDArray[np.intp]:
    """Choose rows by k-means++ from a sample of them, with equal weight of all views."""
    rows = side_by_side([_of_equal_variance(x[sample]) for x in xs])
    _, chosen = kmeans_plusplus(operand(rows), s, random_state=random.randint(2**31 - 1))
    chosen = np.unique(chosen)  # if rows are equal, an index may occur twice
    rest = random.permutation(np.setdiff1d(np.arange(len(sample)), chosen))
    return np.asarray(sample[np.concatenate([chosen, rest[: s - len(chosen)]])])


def _of_equal_variance(x: Columns) -> Columns:
    """Divide rows by the root of their total squared distance from their mean."""
    moved = centered(x, np.float64)
    norm = math.sqrt(squared_distances(moved, column_means(moved)).sum())
    return divided(moved, norm or 1.0)

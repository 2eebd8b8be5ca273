"""Scalable multiple kernel clustering, on coordinates of anchor kernels."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import gen_batches

from rffpk.estimators.base import parameters
from rffpk.fusion.base import Iteration, KernelFusion, matrix_of
from rffpk.fusion.operators import with_gamma
from rffpk.rows import checks, table
from rffpk.rows.arrays import Array, Numbers
from rffpk.rows.sample import Opened
from rffpk.rows.table import Columns
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
from rffpk.system.linalg import (
    basis_of,
    by_blocks,
    fixed_signs,
    leading_eigenvectors,
    pivoted_cholesky,
    row_tiles,
    run_all,
)
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING

Anchors = Literal["uniform", "k-means++"]


# A column of length one depends on the columns before it if its remainder is at most this long.
_DEPENDENT = 1e-8

_RATIO = 1e5  # largest sigma_1 / sigma_k; above it eps (sigma_1 / sigma_k)^2 exceeds 1e-6


@parameters
class SMKC(KernelFusion):
    """Scalable multiple kernel clustering (SMKC): rank-k parts of anchor kernels, fused.

    G_v = k_v(x_i, anchor_t), of shape (n, s), is the kernel between the rows and s anchors. SMKC
    minimizes sum_v ||H_v - G_v||^2 + ||H_v - G||^2 over G and H_v of rank k. In turn it sets G to
    the rank-k part of mean_v H_v, and H_v to the rank-k part of (G_v + G) / 2. See eq. (7) and
    algorithm 1 of Liang et al.: Scalable multiple kernel clustering: learning clustering structure
    from expectation. ICML 2024. For n rows of d columns and V views O(min(n, V s) V s + n k)
    memory, O(n V s (V s + d)) time for two passes over the rows, and O(V r s k + V^2 (r + s) k^2),
    r = min(n, V s), an iteration. With ``kernels="precomputed"`` X holds the G_v. See
    ``docs/maintainers/fusion.md``.

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
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
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
        s random rows, or s rows by k-means++ among 4 s. An int is s; a pair: a word and s. A word:
        s = 1000 up to 20 000 rows, else ceil(3 sqrt(n_samples)). An array: rows, all different.

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
    >>> from rffpk import SMKC
    >>> a, b, c, d = SMKC(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    _needs_every_kernel = False  # G is the mean of all H_v: a zero kernel only scales it

    _stage = "fusion"
    _remedy = (
        "take more iterations, a larger tol, or fewer anchors, such as 500 random columns of each "
        "precomputed kernel"
    )

    anchors: int | Anchors | tuple[Anchors, int] | Numbers = "uniform"
    n_landmarks: None = field(default=None, init=False)  # `anchors` takes its place
    tol: float = 1e-4
    normalize_rows: bool = False
    # what a fit sets
    anchors_: NDArray[np.intp] | None = field(init=False)
    singular_values_: Array = field(init=False)

    def _check_number(self, k: int) -> None:
        super()._check_number(k)
        self._drawing(k)

    def _drawing(self, k: int) -> tuple[str, int | None] | None:
        """Return how anchors are drawn and their number, or None if `anchors` lists the anchors.

        The number is None if it follows from the number of rows."""
        anchors: Any = self.anchors
        if isinstance(anchors, numbers.Integral):
            return "uniform", checks.check_int(anchors, "anchors", k)
        pair = isinstance(anchors, (tuple, list)) and any(isinstance(a, str) for a in anchors)
        if pair or isinstance(anchors, str):
            words, also = get_args(Anchors), "an int or an array of rows"
            return checks.word_and_size(anchors, "anchors", words, k, also)
        return None

    # ---- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fuse the kernels and cluster the rows.

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_samples, n_features_v), or one
            The views; with ``kernels="precomputed"`` matrices G_v of shape (n_samples, s), all of
            one width. If they are square, the anchors are the rows, in their order. With several
            `kernels`, one array is a view for each kernel. C-ordered arrays of one dtype, float32
            or float64, are not copied, nor are memory-mapped arrays and CSR.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights p >= 0 of the rows, by default one each. With the same anchors a row of weight
            two counts like two equal rows, in G and all H_v and in k-means on the embedding. A row
            of weight zero is drawn as no anchor and has no influence; it is embedded and labelled
            like a new row. The columns of diag(p)^(1/2) `embedding_` are orthonormal. Results are
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
        """Choose anchors, run the iterations, and set the fitted attributes.

        The iterations use coordinates of B, the kernels between rows and anchors."""
        self._columns = None
        xs, weight = rows.tables, rows.weight
        self.anchors_ = self._choose_anchors(rows, k, random)
        self._kernels = self._fit_kernels(xs, weight, random)
        for number, kernel in enumerate(self._kernels):
            if not (kernel.definite or kernel.precomputed):
                matrix_of(kernel, number)  # only for its warning of an indefinite kernel
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
        """Return the indices of the anchors, drawn or listed; None if kernels are precomputed."""
        xs, n, most = rows.tables, len(rows.tables[0]), rows.counted
        if checks.is_option(self.kernels, PRECOMPUTED):
            widths = [x.shape[1] for x in xs]
            if len({*widths}) > 1:
                raise ValueError(
                    f"X has precomputed kernels of {widths} columns, must have equally many."
                )
            if widths[0] < k:
                raise ValueError(
                    f"X has {widths[0]} anchors as columns, must have at least n_clusters={k}."
                )
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
        """Fit a kernel to the anchors of each view. Gammas are estimated from all rows."""
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
        """Return B, the kernels between rows and anchors, with the roots of the row weights."""
        views = self._view_of_each(xs, len(self._kernels))
        s = xs[0].shape[1] if self.anchors_ is None else len(self.anchors_)
        return AnchorKernels(views, self._kernels, s, config.n_threads(self.n_jobs), roots)

    def _finish(self, B: AnchorKernels, last: AnchorIteration) -> None:
        """Set `embedding_` to U = B C such that P^(1/2) U has orthonormal columns; keep C.

        C maps new rows later. Beyond the numerical rank of G, the columns of U are zero."""
        k, squares, resolved = len(last.fused.squares), last.fused.squares, last.fused.resolved
        # P^(1/2) B L has orthonormal columns up to rounding, which a QR decomposition corrects
        L = last.coefficients[:, resolved] / np.sqrt(squares[resolved])
        Y = B.times(L)
        roots = B.roots[:, None]
        Q, triangle = basis_of(roots * Y)
        apart = np.abs(triangle.diagonal()) > _DEPENDENT
        if not apart.all():  # drop a singular value that is only rounding, but above the limit
            L, Y = L[:, apart], Y[:, apart]
            Q, triangle = basis_of(roots * Y)
        signs = np.einsum("ij,ij->j", Q, fixed_signs(Q))  # 1 or -1 for each column
        # SciPy 1.11 refuses an order of zero
        inverse = solve_triangular(triangle, np.diag(signs)) if len(signs) else triangle
        self._left, self._right = L, np.pad(inverse, ((0, 0), (0, k - len(inverse))))
        self.embedding_ = self._rotated(Y)

    def _rotated(self, Y: Array) -> Array:
        """Multiply B L with the second factor of C; the same product serves fitted and new rows."""
        return by_blocks(lambda parts: parts[0] @ self._right, [Y], len(self._right), 1)

    def _embedded(self, xs: list[Array]) -> Array:
        return self._rotated(self._anchored(xs, ones(len(xs[0]))).times(self._left))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False  # a subset of the rows keeps all anchors, the columns
        return tags


# ---- anchors ------------------------------------------------------------------------------------


def _check_anchors(anchors: Any, n: int, k: int) -> NDArray[np.intp]:
    """Check anchors that are given as an array of row indices; return the array."""
    rows = np.asarray(anchors)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise TypeError(f"anchors={anchors!r}: must be an int, a str or a 1-d array of integers.")
    if len(rows) < k:
        raise ValueError(f"anchors has {len(rows)} rows, must have at least n_clusters={k}.")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"anchors are {rows.min()} to {rows.max()}, must be from 0 to {n - 1}.")
    if len(np.unique(rows)) < len(rows):
        raise ValueError("anchors contains a row twice, must contain different rows.")
    return rows.astype(np.intp)


def _spread_rows(
    xs: list[Columns], sample: NDArray[np.intp], s: int, random: Any
) -> NDArray[np.intp]:
    """Choose s of the sampled rows by k-means++ on all views, scaled to equal variance.

    Return indices of rows. If there are fewer distinct rows than s, random rows fill up."""
    views = []
    for x in xs:
        moved = table.centered(x[sample], np.float64)
        norm = math.sqrt(table.squared_distances(moved, table.column_means(moved)).sum())
        views.append(table.divided(moved, norm or 1.0))
    rows = table.side_by_side(views)
    _, chosen = kmeans_plusplus(table.operand(rows), s, random_state=random.randint(2**31 - 1))
    chosen = np.unique(chosen)  # if rows are equal, an index may occur twice
    rest = random.permutation(np.setdiff1d(np.arange(len(sample)), chosen))
    return np.asarray(sample[np.concatenate([chosen, rest[: s - len(chosen)]])])


# ---- coordinates in an orthonormal basis of the columns of B = [G_1 ... G_V] ---------------------


@dataclass(frozen=True)
class AnchorKernels:
    """The matrix B = [G_1 ... G_V], (n, V s), of kernels between the rows and s anchors.

    B is stored if it has no more rows than columns, and computed in tiles otherwise. The choice
    depends only on the shapes, so that the bits of results do not depend on the number of
    threads."""

    xs: list[Array]
    kernels: list[FittedKernel]
    s: int
    n_threads: int
    roots: Array  # roots of the row weights, which scale B in its coordinates

    @property
    def width(self) -> int:
        return len(self.kernels) * self.s

    def _filled(self, xs: list[Array], out: Array) -> Array:
        """Write the kernel values of the rows `xs` with the anchors to `out`, view after view."""
        for v, (x, kernel) in enumerate(zip(xs, self.kernels)):
            out[:, v * self.s : (v + 1) * self.s] = kernel.values(x)
        return out

    def _by_blocks(self, function: Callable[[Array], Array]) -> Array:
        """Apply a function to the rows of B, block by block, on threads."""
        return by_blocks(
            lambda xs: function(self._filled(xs, np.empty((len(xs[0]), self.width)))),
            self.xs, self.width, self.n_threads,
        )  # fmt: skip

    def times(self, C: Array) -> Array:
        """Return B C."""
        return self._by_blocks(lambda B: B @ C)

    def coordinates(self) -> Array:
        """Return a matrix R (r, V s) with R'R = B'P B: P^(1/2) B in some orthonormal basis.

        With at most V s rows it is P^(1/2) B itself. Otherwise it is a Cholesky factor of B'P B,
        and r is the numerical rank."""
        if len(self.xs[0]) > self.width:
            return factor(self.gram())
        B = self._by_blocks(lambda B: B)
        B *= self.roots[:, None]
        checks.check_finite_kernel(B)
        return B

    def gram(self) -> Array:
        """Compute B'P B, (V s, V s), tile by tile.

        For each tile, threads first compute its rows, and then add to the blocks of the result."""
        M = np.zeros((self.width, self.width))
        columns = list(gen_batches(self.width, TUNING.tiles.smkc_columns))
        upper = [(a, b) for i, a in enumerate(columns) for b in columns[i:]]
        tiles = row_tiles(len(self.xs[0]), self.width, TUNING.tiles.smkc_numbers)
        store = np.empty((tiles[0].stop, self.width))
        for tile in tiles:
            B = store[: tile.stop - tile.start]

            def fill(rows: slice, B: Array = B, first: int = tile.start) -> None:
                here = slice(first + rows.start, first + rows.stop)
                filled = self._filled([x[here] for x in self.xs], B[rows])
                filled *= self.roots[here, None]

            def add(pair: tuple[slice, slice], B: Array = B) -> None:
                M[pair] += B[:, pair[0]].T @ B[:, pair[1]]

            chunks = row_tiles(len(B), self.width, TUNING.tiles.smkc_chunk_numbers)
            run_all(fill, chunks, self.n_threads)
            run_all(add, upper, self.n_threads)
        for a, b in upper:  # blocks below the diagonal
            M[b, a] = M[a, b].T
        checks.check_finite_kernel(M)
        return M


# ---- the iterations, on the coordinates of B ----------------------------------------------------


def factor(M: Array) -> Array:
    """Return R (r, m) with R'R = M (m, m), where r is the numerical rank of M.

    The pivoted Cholesky decomposition stops where the remainder is only rounding."""
    triangle, pivots = pivoted_cholesky(M, np.finfo(np.float64).eps * M.diagonal().max())
    R = np.empty(triangle.shape)
    for i, line in enumerate(triangle):  # undo the permutation of the columns
        R[i, pivots[:i]] = 0
        R[i, pivots[i:]] = line[i:]
    return R


@dataclass(frozen=True)
class Product:
    """A matrix P R' of rank k, where P has orthogonal columns and R has orthonormal columns."""

    left: Array  # P (r, k)
    right: Array  # R (s, k)
    squares: Array  # (k,): squared singular values, falling

    @property
    def ratio(self) -> float:
        """The ratio of the largest singular value to the smallest that is resolved; 1 for zeros."""
        largest, least = self.squares[0], self.squares[self.resolved].min(initial=np.inf)
        return float(np.sqrt(largest / least)) if largest > 0 else 1.0

    @property
    def resolved(self) -> Array:
        """A mask (k,) of the singular values whose squares are more than rounding errors."""
        most = np.finfo(np.float64).eps * max(len(self.left), len(self.right)) * self.squares[0]
        return np.asarray(self.squares > most)


@dataclass(frozen=True, kw_only=True)
class AnchorIteration(Iteration):
    """An iteration of SMKC; the `change` is ||G - previous G|| / ||G||, at first infinity."""

    fused: Product
    coefficients: Array  # L (V s, k): G = B L R'
    ratio: float  # the largest sigma_1 / sigma_k of G and all H_v


def iterations(B: Array, V: int, k: int, n_threads: int) -> Iterator[AnchorIteration]:
    """Yield the iterations of SMKC without end (Liang et al., ICML 2024, algorithm 1).

    B has the anchor kernels of V views side by side, (n, V s), or their coordinates (r, V s). Each
    iteration fuses the rank-k parts H_v of the views to G, and then fits each H_v to G_v and G. An
    iteration costs O(V r s k + V^2 (r + s) k^2)."""
    views = [View(G, _gram(G, n_threads)) for G in np.split(B, V, axis=1)]
    parts = run_all(lambda view: view.initial_part(k), views, n_threads)
    alpha = np.full(V, 1 / V)  # no weights are learned
    before, L = None, np.zeros((B.shape[1], k))
    while True:
        G, coefficients = _fused(parts, k)
        L = _combined(parts, coefficients, before, L)

        def part(pair: tuple[View, Product], G: Product = G) -> tuple[Product, float]:
            return pair[0].part(G, pair[1])

        found = run_all(part, list(zip(views, parts)), n_threads)
        parts, objective = [H for H, _ in found], sum(cost for _, cost in found)
        change = np.inf if before is None else _relative_change(G, before)
        ratio = max(product.ratio for product in (G, *parts))
        yield AnchorIteration(alpha, objective, change=change, fused=G, coefficients=L, ratio=ratio)
        before = G


def _gram(G: Array, n_threads: int) -> Array:
    """Return G'G, (s, s), in tiles of its rows where it is large."""
    tiles = row_tiles(G.shape[1], len(G), TUNING.tiles.smkc_gram_numbers)
    return np.vstack(run_all(lambda tile: G[:, tile].T @ G, tiles, n_threads))


@dataclass(frozen=True)
class View:
    """An anchor kernel G_v, with functions that return rank-k parts H_v near it."""

    G: Array  # (r, s)
    gram: Array  # G_v'G_v

    def initial_part(self, k: int) -> Product:
        """Return the rank-k part of G_v."""
        squares, Q = leading_eigenvectors(self.gram, k, len(self.gram))
        return Product(self.G @ Q, Q, np.maximum(squares, 0))

    def part(self, G: Product, last: Product) -> tuple[Product, float]:
        """Return H_v, the rank-k part of (G_v + G) / 2, and its term of the objective.

        The term is ||H_v - G_v||^2 + ||H_v - G||^2. `last` is the previous H_v, for a warm
        start."""
        # With G = P R', (G_v + G)'(G_v + G) is G_v'G_v + T R' + R T'.
        R, across = G.right, self.G.T @ G.left
        T = across + R * (G.squares / 2)
        values, Q = leading_eigenvectors(  # of (G_v + G)'(G_v + G)
            lambda x: self.gram @ x + T @ (R.T @ x) + R @ (T.T @ x),
            len(G.squares), len(R), last.right.sum(axis=1),
        )  # fmt: skip
        squares = np.maximum(values, 0) / 4
        H = Product((self.G @ Q + G.left @ (R.T @ Q)) / 2, Q, squares)
        inner, norms = np.einsum("ij,ij->", across, R), self.gram.trace() + G.squares.sum()
        # ||H_v - G_v||^2 + ||H_v - G||^2 = 2 ||H_v - (G_v + G) / 2||^2 + ||G_v - G||^2 / 2
        lost, apart = (norms + 2 * inner) / 4 - squares.sum(), norms - 2 * inner
        return H, float(2 * max(lost, 0.0) + max(apart, 0.0) / 2)  # squares, but for rounding


def _fused(parts: Sequence[Product], k: int) -> tuple[Product, Array]:
    """Return G, the rank-k part of the mean of all H_v, and coefficients (V k, k).

    The mean is [P_1 ... P_V] [R_1 ... R_V]' / V. The left factor of G is [P_1 ... P_V] / V times
    the coefficients."""
    left = np.hstack([part.left for part in parts]) / len(parts)
    Q, triangle = basis_of(np.hstack([part.right for part in parts]))
    squares, Y = leading_eigenvectors(triangle @ (left.T @ left) @ triangle.T, k, len(triangle))
    coefficients = triangle.T @ Y
    return Product(left @ coefficients, Q @ Y, np.maximum(squares, 0)), coefficients


def _combined(
    parts: Sequence[Product], coefficients: Array, before: Product | None, L: Array
) -> Array:
    """Return the new L (V s, k) with G = B L R', from the L of the previous G, `before`.

    It uses that H_v = (G_v + G) Q_v Q_v' / 2: half of the new L comes from the G_v, and half from
    the previous L. Before the first iteration there is no G."""
    V = len(parts)
    each = [part.right @ c for part, c in zip(parts, np.split(coefficients, V))]
    own = np.vstack(each) / V
    if before is None:
        return own
    return (own + L @ (before.right.T @ sum(each) / V)) / 2


def _relative_change(new: Product, old: Product) -> float:
    """Return the relative change ||G - G_old|| / ||G|| of the product G = P R'.

    P is `new.left`, and R is `new.right` with orthonormal columns. Let M = R_old' R, and let
    E = R_old - R M' be the part of R_old outside the columns of R. Then the squared numerator is
    ||P - P_old M||^2 + ||P_old E'||^2. This sum of differences keeps full precision. The expansion
    in squares and an inner product would have errors of the order of sqrt(eps)."""
    M = old.right.T @ new.right
    within = new.left - old.left @ M
    beyond = old.right - new.right @ M.T
    squares = np.sum(within**2) + np.sum(beyond**2 @ old.squares)
    total = new.squares.sum()
    return float(np.sqrt(squares / total)) if total > 0 else 0.0

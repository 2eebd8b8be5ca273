"""Exact kernels by blocks: specifications, centering, normalisation, a published set of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import gen_batches

from rffpk.rows import advice, checks
from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns, centered, dense, inner_products, skip_zeros, squared_norms
from rffpk.rows.weights import of_positive_weight, ones
from rffpk.spaces import fourier
from rffpk.system.linalg import row_tiles, run_all, tiles
from rffpk.system.tuning import TUNING

# The names of scikit-learn's pairwise kernels.
PairwiseKernel = Literal[
    "additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid"
]
Bank = Literal["du2015"]
Precomputed = Literal["precomputed"]
Kernels = Bank | Precomputed | list[Any] | tuple[Any, ...] | None  # of several views
BANKS = get_args(Bank)
PRECOMPUTED = "precomputed"

# A precomputed kernel may differ from its transpose by this fraction of its largest entry.
_ASYMMETRY = 1e-6
_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 16 * _EPS  # relative rounding error of a sum of a few means
_APART = 64 * _EPS  # relative difference of two values that differ by more than rounding


def center_kernel(K: Any) -> Array:
    """Center a kernel matrix: inner products of the features with their mean subtracted.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Kernel matrix.

    Returns
    -------
    centered : ndarray of shape (n_samples, n_samples)
        K - 1K - K1 + 1K1 with 1 the matrix of entries 1 / n_samples; in the dtype of K, float64
        for integers. Its rows sum to zero.

    Raises
    ------
    ValueError
        If K is not square, or has NaN or infinity in it.

    Notes
    -----
    O(n_samples^2) time and memory.

    Examples
    --------
    >>> from rffpk.spaces.kernels import center_kernel
    >>> center_kernel([[2.0, 0.0], [0.0, 2.0]])
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    K = _check_square(K, "K")
    columns = K.mean(axis=0, dtype=np.float64)
    rows = K.mean(axis=1, dtype=np.float64)
    return np.asarray(K - columns - rows[:, None] + columns.mean(), dtype=K.dtype)


def normalize_kernel(K: Any) -> Array:
    """Scale a kernel matrix to a diagonal of one: cosines of the angles between features.

    Parameters
    ----------
    K : array-like of shape (n_samples, n_samples)
        Kernel matrix with a diagonal >= 0.

    Returns
    -------
    normalized : ndarray of shape (n_samples, n_samples)
        K_ij / sqrt(K_ii K_jj), 0 where that is 0 / 0; in the dtype of K, float64 for integers.

    Raises
    ------
    ValueError
        If K is not square, has NaN or infinity in it, or a negative diagonal.

    Notes
    -----
    O(n_samples^2) time and memory.

    Examples
    --------
    >>> from rffpk.spaces.kernels import normalize_kernel
    >>> normalize_kernel([[4.0, 1.0], [1.0, 1.0]])
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    K = check_precomputed(K, "K", symmetric=False)
    inverse = _inverse_norms(np.diagonal(K))
    return np.asarray(K * inverse * inverse[:, None], dtype=K.dtype)


def _inverse_norms(squares: Array) -> Array:
    """Return 1 / sqrt of squares, 0 for 0."""
    norms = np.sqrt(squares)
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)


def _check_square(K: Any, name: str) -> Array:
    """Return a finite square matrix of float32 or float64, or raise a ValueError."""
    K = checks.finite_array(K, name, [np.float64, np.float32], order="C")
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"{name}.shape={K.shape}: must be square, as a precomputed kernel is.")
    return K


def check_precomputed(
    K: Any, name: str, symmetric: bool = True, of_affinities: bool = False
) -> Array:
    """Return a square kernel matrix as float32 or float64, or raise a ValueError.

    The matrix must be finite, symmetric if `symmetric`, and must have a diagonal >= 0. It must not
    look like distances. With `of_affinities` the diagonal may be zero."""
    K = _check_square(K, name)
    (refuse_distances if of_affinities else check_no_distances)(K, name)
    if (np.diagonal(K) < 0).any():
        raise ValueError(f"{name} has {np.diagonal(K).min()} on its diagonal, must be >= 0.")
    if symmetric:
        most = max(np.abs(K).max(), np.finfo(K.dtype).tiny)
        gap = max(np.abs(K[b] - K[:, b].T).max() for b in row_tiles(len(K), len(K)))
        if gap > _ASYMMETRY * most:
            raise ValueError(
                f"{name} is not symmetric: entries differ from the transposed ones by {gap:.3g}."
            )
    return K


def check_no_distances(K: Array, name: str) -> None:
    """Raise a ValueError if a kernel matrix looks like distances, or like affinities without loops.

    Both are zero on the diagonal. With fewer columns than rows, each column has a single zero. A
    nonzero kernel matrix has no zero diagonal, because |K_ij|^2 <= K_ii K_jj."""
    if len(K) < 2 or K.min() < 0 or not K.any():  # distances and affinities are not negative
        return
    square = K.shape[0] == K.shape[1]
    if square:
        is_suspect = not np.diagonal(K).any()  # |K_ij|^2 <= K_ii K_jj does not hold
    else:  # columns are anchors, which are rows, too
        is_suspect = K.shape[1] > 1 and bool((np.count_nonzero(K, axis=0) == len(K) - 1).all())
    if is_suspect:
        kind = "distances or affinities" if have_triangles(K) else "affinities"
        advice.give(advice.DISTANCES, name, kind, square=square)


def refuse_distances(K: Array, name: str) -> None:
    """Raise a ValueError for a square matrix that may hold affinities, but looks like distances."""
    n = len(K)
    # distances are zero on the diagonal alone; two rows make no triangle
    if n < 3 or K.min() < 0 or np.diagonal(K).any() or np.count_nonzero(K) < n * (n - 1):
        return
    if have_triangles(K):
        raise ValueError(
            f"{name}: looks like a matrix of distances, with zeros on the diagonal alone. Pass "
            "affinities, such as numpy.exp(-D**2 / (2 * s**2)) for distances D and the distance s "
            f"of near rows. If {name} has affinities, set the diagonal above zero."
        )


def have_triangles(K: Array) -> bool:
    """Return whether the square roots of the entries satisfy the triangle inequality.

    The roots of distances do, and so do the roots of squared distances. Only some columns are
    tested. A column stands for the row of its smallest entry: a point has distance zero from
    itself."""
    roots = np.sqrt(K.astype(np.float64))
    own = K.argmin(axis=0)  # the rows that the columns stand for
    some = range(0, K.shape[1], -(-K.shape[1] // 16))  # at most 16 columns
    # d(i, l) <= d(i, j) + d(l, j) for rows i and columns l, with a column j
    sums = (roots[:, [j]] + roots[own, j] for j in some)
    return all((roots <= (1 + _ASYMMETRY) * each).all() for each in sums)


# ---- specifications -----------------------------------------------------------------------------


# The values of these kernels of scikit-learn follow the scale of the rows, so that several such
# views need a common scale. Values of functions and of precomputed kernels stay as they are.
_OF_ANY_SCALE = ("linear", "polynomial", "poly", "sigmoid", "additive_chi2")


@dataclass(frozen=True)
class Specification:
    """A kernel as the user specifies it."""

    metric: str | Callable[..., float]
    params: dict[str, Any] = field(default_factory=dict)
    normalize: bool = False
    rescale: bool = False  # whether values are mapped to [0, 1], after the normalization

    def is_definite(self) -> bool:
        """Return whether the kernel is known to be positive semidefinite.

        The result is False for callables and for precomputed kernels."""
        if self.metric in ("poly", "polynomial"):
            degree, coef0 = self.params.get("degree", 3), self.params.get("coef0", 1)
            return coef0 >= 0 and float(degree).is_integer()
        return self.metric in ("linear", "cosine", "rbf", "laplacian", "chi2")


_PARAMETERS = ("gamma", "degree", "coef0")  # of scikit-learn's kernels

# Kernels that a class does not take, and the classes that take them.
_ELSEWHERE = {
    PRECOMPUTED: (
        "KernelPowerKMeans(kernel='precomputed') takes a kernel matrix, and classes of several "
        "kernels take a list of them by kernels='precomputed'."
    ),
    "cauchy": "RFFKernelPowerKMeans takes it, or RFFMultiKernelPowerKMeans for several kernels.",
    "diffusion": "DiffusionPowerKMeans takes it, or RFFMultiKernelPowerKMeans for several kernels.",
}


def check_metric(metric: Any, name: str, params: dict[str, Any], *further: str) -> None:
    """Check a kernel of scikit-learn's pairwise kernels, a callable, or a name in `further`."""
    fourier.refuse_function_of_matrices(metric, name)
    if not callable(metric):
        _check_word(metric, name, (*sorted(PAIRWISE_KERNEL_FUNCTIONS), *further), "a callable")
        given = "kernel_params" if name == "kernel" else name
        if unknown := set(params) - set(_PARAMETERS):
            names = sorted(unknown, key=str)
            raise ValueError(f"{given} has parameters {names}, must be among {list(_PARAMETERS)}.")
        checks.check_real(params.get("degree", 0), f"{given}: degree", 0)
        checks.check_real(params.get("coef0", 0), f"{given}: coef0")
    if params.get("gamma") is not None:
        fourier.check_gamma(params["gamma"], " or None")


def _check_word(word: Any, name: str, known: tuple[str, ...], also: str) -> None:
    """Check the name of a kernel.

    The error for a kernel that another class takes names that class."""
    if isinstance(word, str) and word in _ELSEWHERE and word not in known:
        raise ValueError(f"{name}={word!r}: {_ELSEWHERE[word]}")
    checks.check_choice(word, name, known, also=also)


def one_kernel(metric: Any, gamma: Any, extra: Any, *further: str) -> Specification:
    """Check the parameters `kernel`, `gamma` and `kernel_params`, and return the specification.

    `further` are names of kernels that are accepted besides the kernels of scikit-learn."""
    if not isinstance(extra, (dict, type(None))):
        raise TypeError(f"kernel_params={extra!r}: must be a dict or None.")
    params = {"gamma": gamma} | (extra or {})
    check_metric(metric, "kernel", params, *further)
    # a callable takes no gamma
    return Specification(metric, (extra or {}) if callable(metric) else params)


def specification(given: Any, name: str) -> Specification:
    """Return the specification of a kernel, or of a pair (kernel, gamma or dict of parameters)."""
    pair = given if isinstance(given, (tuple, list)) else (given, {})
    if len(pair) != 2:
        raise ValueError(
            f"{name}={given!r}: must be a kernel, or a pair of a kernel and its gamma or a "
            "dict of its parameters."
        )
    metric, params = pair
    params = dict(params) if isinstance(params, dict) else {"gamma": params}
    with checks.named(name):
        check_metric(metric, name, params)
    return Specification(metric, params)


def specifications(kernels: Any, n_views: int) -> list[Specification]:
    """Return the list of specifications for the parameter `kernels`.

    None stands for "rbf" in each of the `n_views` views."""
    if kernels is None:
        return [specification("rbf", "kernels")] * n_views
    if not isinstance(kernels, (list, tuple)) or not len(kernels):
        raise TypeError(f"kernels={kernels!r}: must be a list of kernels, or one of {list(BANKS)}.")
    return [
        given if isinstance(given, Specification) else specification(given, f"kernels[{i}]")
        for i, given in enumerate(kernels)
    ]


def matched(
    xs: list[Columns], kernels: Any, one_array: bool, weight: Array,
    of_affinities: bool = False,
) -> tuple[list[Columns], list[Specification]]:  # fmt: skip
    """Return a list of views and a list of specifications, one entry of each for each kernel.

    `kernels` is the parameter of that name. With `one_array` all kernels use the same view.
    Precomputed kernel matrices are checked; with `of_affinities` their diagonal may be zero. Sparse
    rows are refused for kernels that need dense rows. Rows of weight zero do not change the
    specifications."""
    names = ["X"] if one_array else [f"X[{i}]" for i in range(len(xs))]
    if isinstance(kernels, str) and kernels == PRECOMPUTED:
        checked = [
            check_precomputed(x, name, of_affinities=of_affinities) for x, name in zip(xs, names)
        ]
        return checked, [Specification(PRECOMPUTED)] * len(xs)
    if isinstance(kernels, str):
        if not one_array:
            raise ValueError(f"kernels={kernels!r}: needs one array, not a list.")
        specs = du2015(of_positive_weight(xs[0], weight))
    else:
        specs = specifications(kernels, len(xs))
    if one_array:
        xs, names = xs * len(specs), names * len(specs)
    if len(specs) != len(xs):
        raise ValueError(f"kernels has {len(specs)} entries for {len(xs)} views.")
    for x, spec, name in zip(xs, specs, names):
        check_sparse(x, spec.metric, name)
    return xs, specs


def check_kernels(kernels: Any) -> None:
    """Check the parameter `kernels` of `matched`."""
    if isinstance(kernels, str):
        _check_word(kernels, "kernels", (*BANKS, PRECOMPUTED), "a list")
    else:
        specifications(kernels, 1)


def du2015(x: Columns) -> list[Specification]:
    """Return twelve kernels: Du et al., Robust multiple kernel k-means using l21-norm, IJCAI 2015.

    They are seven Gaussian kernels exp(-||x-y||^2 / (2 (t d)^2)), with the largest distance d
    and t from 0.01 to 100, four polynomial kernels (a + x'y)^b, and the cosine. All are normalized
    and then rescaled to [0, 1]. O(n^2 d) for the largest distance."""
    wide = centered(x, np.float64)
    norms, tiles = squared_norms(wide), row_tiles(len(x), len(x))
    products = (inner_products(wide[b], wide) for b in tiles)
    distances = (norms[b, None] + norms - 2 * p for b, p in zip(tiles, products))
    largest = max(float(each.max()) for each in distances)
    # Gaussian kernels of equal rows are constant: their gamma is zero.
    unit = 1 / (2 * largest) if largest > _APART * norms.max() else 0.0
    pairs: list[tuple[str, dict[str, Any]]] = [
        ("rbf", {"gamma": unit / t**2}) for t in (0.01, 0.05, 0.1, 1, 10, 50, 100)
    ]
    pairs += [("polynomial", {"gamma": 1, "coef0": a, "degree": b}) for a in (0, 1) for b in (2, 4)]
    return [Specification(*pair, True, True) for pair in [*pairs, ("cosine", {})]]


# Kernels whose products with sparse rows visit the entries alone.
_OF_SPARSE = ("rbf", "linear", "polynomial", "poly", "cosine", "sigmoid", "laplacian")


def check_sparse(x: Columns, metric: Any, name: str) -> None:
    """Raise a TypeError if x, called `name` in messages, is sparse and the kernel needs arrays."""
    if skip_zeros(x) and metric not in _OF_SPARSE:
        taker = "callable kernels take" if callable(metric) else f"the kernel {metric!r} takes"
        taken = ", ".join(_OF_SPARSE)
        raise TypeError(f"{name} is sparse, and {taker} dense rows; {taken} take sparse ones.")


# ---- evaluation ---------------------------------------------------------------------------------


class FittedKernel:
    """A kernel over the `n` rows that it was fitted to, or a precomputed kernel.

    It has the `dtype` of the rows, the `diagonal` (n,), and `params` with a number for gamma.
    `definite` says whether it is known to be positive semidefinite. Values are float64.

    `center` subtracts the mean feature, weighted by `weight`. `normalize` then scales features to
    length one. Both leave precomputed kernels as they are. `shift` subtracts the mean feature of a
    few rows from all kernels, precomputed or not, which makes values small. `unit_variance` divides
    kernels that follow the scale of the rows by their total variance."""

    @np.errstate(over="ignore", invalid="ignore")  # kernels that are not finite are refused later
    def __init__(
        self, x: Columns, spec: Specification, *, weight: Array, random: Any = None,
        n_threads: int = 1, center: bool = False, normalize: bool = False, shift: bool = False,
        unit_variance: bool = False,
    ) -> None:  # fmt: skip
        """Fit the kernel: center, normalize, rescale and shift it, in this order."""
        self.x, self.metric, self.n, self.dtype = x, spec.metric, len(x), x.dtype
        self.n_threads = n_threads
        self.definite = spec.is_definite()
        self.precomputed = spec.metric == PRECOMPUTED
        center = center and not self.precomputed
        self.counted = np.flatnonzero(weight)
        self._origin: Array | None = None
        # if centered or shifted, values do not depend on the origin of the rows
        recentered = center or (shift and not spec.normalize)
        by_differences = spec.metric == "rbf" or (spec.metric == "linear" and recentered)
        # An origin is subtracted from the rows if that changes no value. Otherwise the expanded
        # squares of rows far from zero would lose the digits in which rows differ.
        if by_differences and not skip_zeros(x):
            self._origin = _origin(x, weight)
        self.params = _resolved(spec, x, weight, random, n_threads)
        self._shares = weight / weight.sum()  # weights of the rows in the mean feature
        self._columns: Array | None = None  # (n,): <phi_i, c>, if the kernel is centered
        # <phi_i, c> and ||c||^2 with the mean feature c of some rows, where the kernel is shifted
        self._products: Array | None = None
        self._mean = self._square = 0.0
        self._normalize = (normalize or spec.normalize) and not self.precomputed
        self._scale: tuple[float, float] | None = None  # offset and factor of `_rescaled`
        diagonal = np.diagonal(x).astype("f8") if self.precomputed else self._own(x)
        if center:
            self._columns, self._mean = self._mean_products()
        self._inverse_norms, self.diagonal = self._finished_diagonal(diagonal, self._columns)
        if spec.rescale:
            lows, highs = zip(*run_all(self._ends, row_tiles(self.n, self.n), n_threads))
            low, high = min(lows), max(highs)
            differ = high - low > _APART * max(abs(high), abs(low))  # by more than rounding
            self._scale = low, (1 / (high - low) if differ else 1.0)
            self.diagonal = self._rescaled(self.diagonal)
        if unit_variance and not spec.normalize and spec.metric in _OF_ANY_SCALE:
            squares = _centered_squares(self.diagonal, *self._mean_products())
            variance = float(self._means(squares))
            # equal rows keep the factor one
            self._scale = 0.0, (1 / variance if variance > np.finfo(np.float64).tiny else 1.0)
            self.diagonal = self._rescaled(self.diagonal)
        if shift:
            self._shift()

    def _mean_products(self) -> tuple[Array, float]:
        """Return <phi_i, c> (n,) for all rows, and ||c||^2, with the weighted mean feature c."""
        blocks = row_tiles(self.n, self.n)
        means = np.concatenate(
            run_all(lambda b: self._means(self._pairs(b, slice(None))), blocks, self.n_threads)
        )
        return means, float(self._means(means))

    def _shift(self) -> None:
        """Center the kernel at the mean feature of evenly spaced rows of positive weight."""
        # evenly spaced rows, at most `shift_rows` in all
        self._some = self.counted[:: -(-len(self.counted) // TUNING.sampling.shift_rows)]
        blocks = row_tiles(self.n, TUNING.sampling.shift_rows)
        means = run_all(lambda b: self.block(b, self._some).mean(axis=1), blocks, self.n_threads)
        self._products = np.concatenate(means)
        self._square = float(self._products[self._some].mean())
        self.diagonal = _centered_squares(self.diagonal, self._products, self._square)

    def _apart(self, values: Array, products: Array, columns: slice | Array = slice(None)) -> Array:
        """Replace inner products of features by inner products of features less their mean c.

        `values`, a block of inner products, is changed in place and returned. `products` are the
        inner products of the rows of the block with c. `columns` are the indices of its columns."""
        assert self._products is not None
        values += self._square - self._products[columns]
        values -= products[:, None]
        return values

    def is_finite(self) -> bool:
        """Return whether the diagonal is finite and within the range of the dtype.

        With `shift` the inner products of rows with the mean feature are tested, too."""
        largest = np.finfo(self.dtype).max
        products = self.diagonal if self._products is None else self._products
        return all(bool((np.abs(each) < largest).all()) for each in (self.diagonal, products))

    def drop_matrix(self) -> None:
        """Drop a precomputed matrix after its last use: new rows bring their kernel values."""
        if self.precomputed:
            del self.x

    # ---- values

    def block(self, rows: slice | Array, columns: slice | Array = slice(None)) -> Array:
        """Compute k(x_i, x_j) for fitted rows i and j, as a new float64 array.

        `rows` and `columns` are slices or arrays of indices."""
        means = None if self._columns is None else self._columns[rows]
        norms = None if self._inverse_norms is None else self._inverse_norms[rows]
        values = self._finished(self._pairs(rows, columns), means, norms, columns)
        return (
            values if self._products is None else self._apart(values, self._products[rows], columns)
        )

    @np.errstate(over="ignore", invalid="ignore")  # overflow is refused by name
    def cross(self, x: Array) -> tuple[Array, Array | None]:
        """Compute k(x, x_j) (len(x), n) for new rows x and fitted rows j, and k(x, x) (len(x),).

        The second result is None for precomputed kernels, where x has rows of the kernel matrix."""
        raw = x.astype(np.float64) if self.precomputed else self._raw(x, self.x)
        means = None if self._columns is None else self._means(raw)
        norms = diagonal = None
        if not self.precomputed:
            norms, diagonal = self._finished_diagonal(self._own(x), means)
        values = self._finished(raw, means, norms)
        if self._products is not None:
            products = values[:, self._some].mean(axis=1)
            self._apart(values, products)
            if diagonal is not None:
                diagonal = _centered_squares(diagonal, products, self._square)
        checks.check_finite_kernel(values)
        return values, diagonal

    def values(self, x: Array) -> Array:
        """Compute k(x, x_j) for all j and new rows x."""
        return self.cross(x)[0]

    def matrix(self, dtype: Any = np.float64) -> Array:
        """Compute the whole matrix, exactly symmetric; O(n^2) memory."""
        out = np.empty((self.n, self.n), dtype=dtype)

        def fill(tile: tuple[slice, slice]) -> None:
            out[tile] = self.block(*tile)

        run_all(fill, tiles(self.n, self.n), self.n_threads)
        # values above and below the diagonal may differ by rounding: keep the values above it
        for rows in row_tiles(self.n, self.n):
            checks.check_finite_kernel(out[rows, rows.start :])
            out[rows, : rows.start] = out[: rows.start, rows].T
            out[rows, rows] = (out[rows, rows] + out[rows, rows].T) / 2
        return out

    # ---- computation

    def _ends(self, rows: slice) -> tuple[float, float]:
        """Return the least and the largest kernel value between a slice of rows and all rows.

        Rows of weight zero are left out."""
        counted = np.intersect1d(np.arange(self.n)[rows], self.counted)
        values = self.block(counted, self.counted)
        return values.min(initial=np.inf), values.max(initial=-np.inf)

    def _means(self, values: Array) -> Array:
        """Return weighted means along the last axis, which stands for the n fitted rows.

        If all values are equal, the mean is exactly this value."""
        first = values[..., :1]
        return np.asarray(first[..., 0] + (values - first) @ self._shares)

    def _pairs(self, rows: slice | Array, columns: slice | Array) -> Array:
        """Return kernel values between fitted rows, before centering and scaling, in new memory."""
        if self.precomputed:
            return np.array(self.x[rows][:, columns], dtype=np.float64)
        return self._raw(self.x[rows], self.x[columns])

    def _raw(self, x: Array, y: Array) -> Array:
        """Compute kernel values (len(x), len(y)) in float64, before centering and scaling.

        A callable kernel is not called again for equal rows at the end of x."""
        if callable(self.metric):
            different = np.flatnonzero((x != x[-1]).any(axis=1))
            # the head ends with the first of the equal last rows
            head = x[: different[-1] + 2] if len(different) else x[:1]
            with checks.of_two_rows(self.metric, "kernel"):
                values = pairwise_kernels(head, y, metric=self.metric, **self.params)
            # the last line is repeated for the copies with which `by_blocks` fills a block
            values = np.pad(values, ((0, len(x) - len(head)), (0, 0)), mode="edge")
        else:
            moved = [self._moved(each) for each in (x, y)]
            wide = [getattr(each, "matrix", each) for each in moved]  # if rows are sparse
            options = {"metric": self.metric, "filter_params": True, **self.params}
            with np.errstate(over="ignore", invalid="ignore"):  # callers check for infinity
                values = pairwise_kernels(*wide, **options)
        return np.asarray(values, dtype=np.float64)

    def _moved(self, x: Columns) -> Columns:
        """Return rows in float64, less the origin if the kernel has one."""
        return x.astype(np.float64, copy=False) if self._origin is None else dense(x) - self._origin

    def _own(self, x: Array) -> Array:
        """Return k(x, x) of each row, (len(x),), before centering and scaling."""
        if self.metric in ("rbf", "laplacian", "chi2"):
            return np.ones(len(x))
        if self.metric == "linear":
            return squared_norms(self._moved(x))
        # small blocks, because only their diagonals are used
        parts = (x[rows] for rows in gen_batches(len(x), 64))
        return np.concatenate([np.diagonal(self._raw(part, part)) for part in parts])

    def _finished(
        self, raw: Array, means: Array | None, norms: Array | None,
        columns: slice | Array = slice(None),
    ) -> Array:  # fmt: skip
        """Center, normalize and rescale the kernel values `raw`, in place where possible.

        `means` are inner products of the rows with the mean feature; None: no centering. `norms`
        are inverse norms of the features of the rows; None: no normalization. `columns` are the
        indices of the fitted rows that the columns of `raw` stand for."""
        if means is not None and self._columns is not None:
            raw += self._mean - self._columns[columns]
            raw -= means[:, None]
        if norms is not None and self._inverse_norms is not None:
            raw *= self._inverse_norms[columns]
            raw *= norms[:, None]
        return raw if self._scale is None else self._rescaled(raw)

    def _finished_diagonal(
        self, diagonal: Array, means: Array | None
    ) -> tuple[Array | None, Array]:
        """Return inverse norms of the features of rows, and k(x, x), after centering and scaling.

        The inverse norms are None if the kernel is not normalized. `diagonal` has k(x, x) before
        centering, and `means` the inner products with the mean feature; None: no centering."""
        norms = None
        if means is not None:
            diagonal = _centered_squares(diagonal, means, self._mean)
        if self._normalize:
            norms, diagonal = _inverse_norms(diagonal), (diagonal > 0).astype(np.float64)
        return norms, diagonal if self._scale is None else self._rescaled(diagonal)

    def _rescaled(self, values: Array) -> Array:
        """Subtract the offset of the kernel from values, and multiply them by its scale."""
        assert self._scale is not None
        return (values - self._scale[0]) * self._scale[1]


def _centered_squares(diagonal: Array, means: Array, mean: float) -> Array:
    """Compute ||phi_i - c||^2 from ||phi_i||^2, <phi_i, c> and ||c||^2.

    It is zero where it is zero up to rounding."""
    size = np.abs(diagonal) + 2 * np.abs(means) + abs(mean)
    centered = diagonal - 2 * means + mean
    return np.where(centered > _ROUNDING * size, centered, 0)


def _resolved(
    spec: Specification, x: Columns, weight: Array, random: Any, n_threads: int
) -> dict[str, Any]:
    """Return the parameters of a kernel, with a number in place of a named gamma ("mean", ...)."""
    params = dict(spec.params)
    if spec.metric in ("rbf", "laplacian"):
        gamma = params.setdefault("gamma", "mean")
        if isinstance(gamma, str):
            params["gamma"] = fourier.resolve_gamma(
                x, spec.metric, gamma, weight, random, n_threads
            )
    elif isinstance(params.get("gamma"), str) and not callable(spec.metric):
        del params["gamma"]  # only kernels of distances know the words: use the default gamma
    if params.get("gamma", 0) is None:  # None stands for scikit-learn's default
        del params["gamma"]
    return params


@np.errstate(over="ignore", invalid="ignore")  # kernels that are not finite are refused
def _origin(x: Array, weight: Array) -> Array:
    """Return the mean of the rows of positive weight, or their median if the mean is far from it.

    A few very far rows move the mean. Squared distances about such a mean would lose digits."""
    x = of_positive_weight(x, weight)
    mean = x.mean(axis=0, dtype=np.float64)
    median, spread = fourier.center_and_spread(x, ones(len(x)))
    # far: over 100 times as far as nearly all rows are from the median
    return median if ((mean - median) ** 2).sum() > 1e4 * spread else mean

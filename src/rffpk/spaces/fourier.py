"""Random Fourier features: an explicit map whose inner products approximate a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from functools import partial
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils.validation import check_is_fitted

from rffpk.estimators.base import Estimator, fit_of, parameters, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Fourier, Structure
from rffpk.rows.checks import Auto, is_option
from rffpk.rows.door import Shape
from rffpk.rows.draws import uneven
from rffpk.rows.passes import unshifted
from rffpk.rows.sample import Moments, Opened, column_moments
from rffpk.rows.store import written_out
from rffpk.rows.table import (
    Columns,
    center_and_squares,
    dense,
    occupied_columns,
    operand,
    pair_distances,
    rows_differ,
    some_columns,
    spread_columns,
    squared_norms,
)
from rffpk.rows.weights import of_positive_weight, ones
from rffpk.system import config
from rffpk.system.report import warn

Kernel = Literal["rbf", "laplacian", "cauchy"]
Gamma = Literal["mean", "median", "scale"]
Sampling = Literal["auto", "orthogonal", "structured", "iid"]
Frequencies = Literal["auto", "paper"]

KERNELS = get_args(Kernel)
GAMMAS = get_args(Gamma)
_EXACT = {"precomputed", *PAIRWISE_KERNEL_FUNCTIONS} - {*KERNELS}  # kernels of other classes

# The distances that kernels are functions of, and that gamma is taken from.
_METRICS = {"rbf": "sqeuclidean", "laplacian": "cityblock", "cauchy": "sqeuclidean"}

# Columns: structured frequencies have the smallest error from 16 on, with half as much bias at 32;
# the pass is as fast with them at 32 and faster from 40 on (docs/benchmarks.md).
STRUCTURED_FROM = 32

# The mean squared error of the kernel, over its variance, that "auto" aims at (docs/kernels.md).
_ERROR = 0.02
_FEWEST = 128  # frequencies that "auto" tries first, and then doublings of them
_MOST = 8192  # frequencies that "auto" takes
_MOST_NUMBERS = 1 << 25  # in the features of the rows that starts run on
_ROWS = 20_000  # that starts run on, at most
_ROUNDING = 1e-28  # variance of kernel values that are equal

_FEWEST_PAIRED = 64  # rows whose pairs the error of the kernel is measured on
_MOST_PAIRED = 256  # such rows
_PAIR_NUMBERS = 1 << 24  # in the differences of their pairs, if that gives a number between these

# Rows whose pairs give medians, and means without a closed form: their relative error is then a few
# percent, which suffices for gamma.
_PAIR_ROWS = 1000

_SPREAD_ROWS = 1000  # that tell how far most rows spread
_SPREAD_NUMBERS = 1 << 22  # in these rows
_SHARE = 0.99  # of the rows are most rows
# A mean distance so many times the spread gives a kernel without digits for most rows.
_FAR = 1e10

_PHASE_ROWS = 100  # that phases are estimated for
_PHASE_ERROR = 0.25  # radians, of phases that make features
_NORMAL_MEDIAN = 0.67  # of the absolute value of a standard normal number

_DRAWING = 4  # arrays of the size of the frequencies, while they are drawn
_SEEDING_ROWS = 20  # that starts take for each cluster, at least


def default_n_frequencies(n_clusters: int) -> int:
    """ceil(4 log^3(2k)): theorem 3 of the RFF-KPKM paper with epsilon = delta = 0.5."""
    return math.ceil(4 * math.log(2 * n_clusters) ** 3)


def check_n_frequencies(value: Any, words: tuple[str, ...] = get_args(Frequencies)) -> None:
    """Check the parameter `n_frequencies` of an estimator."""
    if isinstance(value, str):
        checks.check_choice(value, "n_frequencies", words, also="an int >= 1")
    else:
        checks.check_int(value, "n_frequencies", 1)


def n_frequencies(value: Frequencies | int, n_clusters: int) -> Auto | int:
    """`n_frequencies` of a map for that of an estimator."""
    if isinstance(value, str):
        return default_n_frequencies(n_clusters) if value == "paper" else value
    return int(value)


def check_gamma(gamma: Any, also: str = "") -> None:
    """Check the parameter `gamma` of a kernel; a message says what else it may be."""
    if isinstance(gamma, str):
        checks.check_choice(gamma, "gamma", GAMMAS, also=f"a number > 0{also}")
    else:
        words = f"one of {list(GAMMAS)}{also}"
        checks.check_real(gamma, "gamma", 0, include="neither", also=words)


def refuse_function_of_matrices(kernel: Any, name: str) -> None:
    """Raise a ValueError for a kernel of scikit-learn that is given as its function of matrices."""
    for word, function in PAIRWISE_KERNEL_FUNCTIONS.items():
        if kernel is function:
            raise ValueError(
                f"{name}={kernel.__name__}: is a function of two matrices, and a kernel is a "
                f"function of two rows. Pass {word!r}."
            )


def check_kernel(kernel: Any, gamma: Any, sampling: Any) -> None:
    """Check the parameters of a kernel with random Fourier features."""
    refuse_function_of_matrices(kernel, "kernel")
    if callable(kernel) or (isinstance(kernel, str) and kernel in _EXACT):
        raise ValueError(
            f"kernel == {kernel!r} has no random features, must be one of {list(KERNELS)}; "
            "KernelPowerKMeans takes it, or MultiKernelPowerKMeans."
        )
    checks.check_choice(kernel, "kernel", KERNELS)
    check_gamma(gamma)
    checks.check_choice(sampling, "sampling", get_args(Sampling))
    if sampling in ("orthogonal", "structured") and kernel != "rbf":
        raise ValueError(
            f"sampling == {sampling!r} needs kernel == 'rbf', not {kernel!r}: only its "
            "frequencies are isotropic."
        )


@parameters
class RandomFourierFeatures(Estimator):
    """Random Fourier features: map rows x to D^(-1/2) [sin(x Omega), cos(x Omega)].

    The inner product of two mapped rows, of length one, is an unbiased estimate of a
    shift-invariant kernel (Rahimi, Recht: Random features for large-scale kernel machines. NeurIPS
    2007, algorithm 1; ``docs/math.md``, section 9). For n rows of d columns `fit` costs O(n d + d^2
    D), `transform` O(n d D), with structured frequencies (Yu et al.: Orthogonal random features.
    NeurIPS 2016) O(n D log d), and of sparse rows with m entries O(n m D).

    Parameters
    ----------
    n_frequencies : "auto" or int, default="auto"
        Number of frequencies D, at least 1, of two features each. "auto": the least of 128, 256,
        ..., 8192 with a `kernel_error_` of at most 0.02, or a UserWarning.
    kernel : {"rbf", "laplacian", "cauchy"}, default="rbf"
        Kernel: exp(-gamma ||x-y||^2), exp(-gamma ||x-y||_1), or prod_i 1 / (1 + gamma (x_i-y_i)^2).
    gamma : {"mean", "median", "scale"} or float, default="mean"
        Bandwidth > 0. "mean", "median": 1 / (2 mean or median distance) of rows, squared or, for
        "laplacian", absolute; "scale": 1 / (n_features X.var()).
    sampling : {"auto", "orthogonal", "structured", "iid"}, default="auto"
        How frequencies are drawn; "orthogonal" and "structured" are for "rbf". "auto": for "rbf"
        "structured" from 32 columns on, "orthogonal" below; else "iid", independent.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features_in_, n_frequencies_)
        Omega, in the dtype of X; structured frequencies are written out when this is read.
    structure_ : tuple (ndarray of int8, float, int), or None
        Signs, shape (n_blocks, 3, p), scale and number of structured frequencies; None: others.
    n_frequencies_, gamma_ : int and float
        The numbers that `n_frequencies`, D, and `gamma` stand for.
    kernel_error_ : float
        Mean squared error over pairs of at most 256 rows, over the variance; set with "auto".
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.

    Examples
    --------
    >>> from rffpk import RandomFourierFeatures
    >>> RandomFourierFeatures(200, random_state=0).fit_transform([[0.0], [0.2], [5.0]]).shape
    (3, 400)
    """

    n_frequencies: Auto | int = field(default="auto", kw_only=False)
    kernel: Kernel = "rbf"
    gamma: Gamma | float = "mean"
    sampling: Sampling = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose gamma and draw the frequencies.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite numbers. Their values matter only if `gamma` is a str; float32 gives float32
            `frequencies_`, anything else float64.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows in mean distances and variances, by default one each.

        Returns
        -------
        self : object
            The fitted transformer.

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or sample_weight is not as described; nothing is changed then.
        """
        check_n_frequencies(self.n_frequencies, ("auto",))
        check_kernel(self.kernel, self.gamma, self.sampling)
        with reporting(self, X), fit_of(self), config.one_blas_thread():
            [rows] = self._check_views(X, reset=True)
            weight = checks.check_sample_weight(sample_weight, len(rows), X)
            return self._draw(rows, weight)

    def _draw(
        self, X: Columns, weight: Array, moments: Callable[[], Moments] | None = None,
        columns: Array | None = None,
    ) -> Self:  # fmt: skip
        """Fit the map to rows and parameters that have been checked.

        `moments` are of all rows, if X is a part of them. Only `columns` are mapped; None: all."""
        random = checks.check_random_state(self.random_state)
        n_threads = config.n_threads(self.n_jobs)
        self.gamma_ = resolve_gamma(X, self.kernel, self.gamma, weight, random, n_threads, moments)
        weighted = uneven(weight) and isinstance(self.gamma, str)
        origin = " (from distances weighted by sample_weight)" if weighted else ""
        counted = of_positive_weight(X, weight)
        is_given = not isinstance(self.gamma, str)
        _check_phases(counted, self.kernel, self.gamma_, origin, is_given)
        self._columns = columns
        X = self._mapped_columns(X)
        self.__dict__.pop("kernel_error_", None)  # of a fit before
        if isinstance(self.n_frequencies, str):
            self._draw_enough(X, weight, random)
        else:
            self._draw_frequencies(int(self.n_frequencies), X, random)
        self.n_frequencies_ = self._fourier.n_frequencies
        self._n_features_out = self._fourier.width
        return self

    @property
    def frequencies_(self) -> Array:
        """Omega, of shape (n_features_in_, n_frequencies_)."""
        check_is_fitted(self)
        given = self._fourier.frequencies
        if isinstance(given, Structure):
            d = self.n_features_in_ if self._columns is None else len(self._columns)
            given = given.matrix(d)
        given = spread_columns(given.T, self._columns, self.n_features_in_).T
        return np.ascontiguousarray(given, dtype=self._dtype)

    def _mapped_columns(self, X: Columns) -> Columns:
        return X if self._columns is None else some_columns(X, self._columns)

    def _draw_frequencies(self, D: int, X: Columns, random: Any) -> None:
        d, self._dtype, self.structure_ = X.shape[1], X.dtype, None
        automatic = self.sampling == "auto" and self.kernel == "rbf" and d >= STRUCTURED_FROM
        if self.sampling == "structured" or automatic:
            self.structure_ = _draw_structure(self.gamma_, d, D, random)
            self._fourier = Fourier(self.structure_)
            return
        check_memory(_DRAWING * 8 * d * D, D)
        omega = _draw_matrix(self.kernel, self.gamma_, self.sampling, d, D, random)
        with np.errstate(over="ignore"):  # a few of Cauchy may; their features are noise
            self._fourier = Fourier(np.ascontiguousarray(omega, dtype=X.dtype))

    def _draw_enough(self, X: Columns, weight: Array, random: Any) -> None:
        """Frequencies whose kernel error is small, or as many as there may be."""
        rows = _sampled_rows(X, weight, random)
        exact = _kernel_of_pairs(self.kernel, self.gamma_, rows)
        D, most = _FEWEST, min(_MOST, _MOST_NUMBERS // (2 * min(len(X), _ROWS)))
        self._draw_frequencies(D, X, random)
        self.kernel_error_ = _relative_error(self._fourier, rows, exact)
        while self.kernel_error_ > _ERROR and 2 * D <= most:
            D *= 2
            self._draw_frequencies(D, X, random)
            self.kernel_error_ = _relative_error(self._fourier, rows, exact)
        if self.kernel_error_ > _ERROR:  # NaN, where squares overflow, is an error later
            warn(
                f"n_frequencies='auto' ends at its largest number, {D}. The mean squared error of "
                f"the kernel is {self.kernel_error_:.2g} of its variance over pairs of rows, and "
                f"{_ERROR} was wanted. The rows are nearly equally far apart: take exact kernels "
                "or Nystroem features.",
                UserWarning,
            )

    def transform(self, X: Any) -> Array:
        """Map rows to their features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite numbers, with as many columns as in `fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, 2 * n_frequencies)
            float32 for float32 input, else float64; rows of length one.
        """
        check_is_fitted(self)
        [X] = self._check_views(X, reset=False)
        features = unshifted(*self._view(X), config.n_threads(self.n_jobs))
        checks.check_overflow(float(features.sum()), X.dtype)
        return features

    def _view(self, X: Columns) -> tuple[Columns, Fourier]:
        """The columns and the map with which passes over the rows of X compute their features."""
        fourier, X = self._fourier.astype(X.dtype), self._mapped_columns(X)
        return X, written_out(X, fourier, config.n_threads(self.n_jobs))


def check_memory(needed: int, n_frequencies: int) -> None:
    """Raise a MemoryError if what so many frequencies take is more than is available."""
    if not config.fits_memory(needed):
        raise MemoryError(
            f"n_frequencies == {n_frequencies} takes some {needed:.2g} bytes, and "
            f"{config.available_memory():.2g} are available."
        )


def _check_phases(X: Columns, kernel: str, gamma: float, origin: str, is_given: bool) -> None:
    """Refuse a gamma with which most sines and cosines of most rows are rounding errors. Only warn
    if it was computed."""
    some = X[:: max(1, len(X) // _PHASE_ROWS)].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel == "laplacian":  # phases follow Cauchy's distribution
            phases = gamma * np.asarray(abs(operand(some)).sum(axis=1)).ravel()
        else:  # nearly normal
            phases = _NORMAL_MEDIAN * np.sqrt(2 * gamma) * np.sqrt(squared_norms(some))
    phase = float(np.median(phases[phases > 0])) if phases.any() else 0.0
    resolved = phase * float(np.finfo(X.dtype).eps) <= _PHASE_ERROR
    if not resolved and rows_differ(X):  # equal rows have equal features in any case
        remedy = "center X, or pass float64" if X.dtype == np.float32 else "or center X"
        text = (
            f"gamma == {gamma:.3g}{origin} gives phases of {phase:.2g}, which {X.dtype} does not "
            f"resolve; take a smaller gamma, {remedy}."
        )
        if is_given:
            raise ValueError(text)
        warn(text, UserWarning)


def fit_map(
    estimator: Any, sample: Opened, view: int, given: RandomFourierFeatures, random: Any
) -> RandomFourierFeatures:
    """The feature map of a view of an estimator, with the parameters of another, fitted on a sample
    of the rows; "paper" as the number of frequencies are independent ones, as in the paper. Sparse
    columns without an entry are not mapped."""
    x, weight = sample.some_with(view)
    k = int(getattr(estimator, "n_clusters_", estimator.n_clusters))
    D, sampling = n_frequencies(given.n_frequencies, k), given.sampling
    if is_option(given.n_frequencies, "paper") and sampling == "auto":
        sampling = "iid"
    if not isinstance(D, str):
        # the features of the seeding rows, and sums of the clusters, at least once for each thread
        check_memory(16 * D * (min(sample.n, _SEEDING_ROWS * k) + 4 * k), D)
    feature_map = RandomFourierFeatures(
        D, kernel=given.kernel, gamma=given.gamma, sampling=sampling,
        random_state=random.randint(2**31 - 1), n_jobs=estimator.n_jobs,
    )  # fmt: skip
    feature_map._remember(Shape.of_columns(x.shape[1], estimator._shape.in_float64))
    moments = partial(sample.moments, view)
    columns = occupied_columns(sample.xs[view], weight=sample.weight)
    return feature_map._draw(x, weight, moments, columns)


def gamma_of_view(
    estimator: Any, sample: Opened, view: int, kernel: Kernel, gamma: Gamma, random: Any
) -> float:
    """The `gamma_` of the feature map that `fit_map` fits."""
    x, weight = sample.some_with(view)
    random = checks.check_random_state(random.randint(2**31 - 1))
    n_threads = config.n_threads(estimator.n_jobs)
    moments = partial(sample.moments, view)
    return resolve_gamma(x, kernel, gamma, weight, random, n_threads, moments)


def resolve_gamma(
    X: Columns, kernel: str, gamma: str | float, weight: Array, random: Any, n_threads: int,
    moments: Callable[[], Moments] | None = None,
) -> float:  # fmt: skip
    """The number that the parameter `gamma` stands for; see `RandomFourierFeatures`. The `moments`
    of the columns may be those of more rows."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "median" or (gamma == "mean" and kernel == "laplacian"):
        distance = _sampled_distance(X, kernel, gamma, weight, random)
    else:
        found = column_moments(X, weight, n_threads) if moments is None else moments()
        if found.variance <= 0:  # rows may differ that hardly count, or less than is resolved
            counted, eps = of_positive_weight(X, weight), float(np.finfo(X.dtype).eps)
            plain = column_moments(counted, ones(len(counted)), n_threads).variance
            checks.check_weighted_variance(found.variance, plain, eps**2, X.dtype)
            checks.check_underflow(found.variance, [counted])
        distance = 2 * found.variance  # the mean over all ordered pairs
        if gamma == "scale":  # X.var() = (total variance) / d + variance of the means
            distance = (found.variance + X.shape[1] * float(found.mean.var())) / 2
    if gamma != "median":
        _warn_of_far_rows(X, kernel, gamma, weight, distance)
    checks.check_overflow(2 * distance, np.float64)
    if distance > 0 and 2 * distance < np.finfo(np.float64).tiny:
        raise ValueError("X has values so small that squared distances underflow; rescale X.")
    return 1 / (2 * distance) if distance > 0 else 1.0


def _warn_of_far_rows(X: Columns, kernel: str, gamma: str, weight: Array, distance: float) -> None:
    """Warn if a few rows make the mean distance so large that the others are equal beside it."""
    spread = center_and_spread(X, weight)[1]
    if kernel == "laplacian" and gamma != "scale":  # "scale" squares distances for all kernels
        spread = math.sqrt(spread)
    if 0 < spread * _FAR < distance:
        warn(
            f"X has rows so far from the others that gamma={gamma!r} makes the kernel of the "
            "others constant: the far rows dominate the distance that gamma is computed from. "
            "Remove the far rows, or take gamma='median'.",
            UserWarning,
        )


@np.errstate(over="ignore", under="ignore", invalid="ignore")  # overflow is refused by name
def center_and_spread(X: Columns, weight: Array) -> tuple[Array, float]:
    """The median of each column, zero for sparse rows, and the squared distance from there that
    nearly all rows keep: what few rows are does not matter. Of the rows of positive weight."""
    counted = np.flatnonzero(weight)
    most = max(1, min(_SPREAD_ROWS, _SPREAD_NUMBERS // X.shape[1]))
    center, squares = center_and_squares(X[counted[:: len(counted) // most + 1]])
    return center, float(np.quantile(squares, _SHARE, method="lower"))


def _sampled_distance(X: Columns, kernel: str, gamma: str, weight: Array, random: Any) -> float:
    """Mean or median distance between two rows of a sample drawn with the row weights."""
    index = random.permutation(np.flatnonzero(weight))[:_PAIR_ROWS]
    distances = pair_distances(X[np.sort(index)], _METRICS[kernel])
    if not distances.size:
        return 0.0
    with np.errstate(over="ignore"):  # the caller refuses X by name
        return float(np.mean(distances) if gamma == "mean" else np.median(distances))


def _draw_matrix(
    kernel: str, gamma: float, sampling: Sampling, d: int, D: int, random: Any
) -> Array:
    """Omega of shape (d, D); its columns follow the kernel's spectral density."""
    if kernel == "laplacian":
        return gamma * random.standard_cauchy((d, D))
    if kernel == "cauchy":
        return math.sqrt(gamma) * random.laplace(size=(d, D))
    if sampling == "iid":
        return math.sqrt(2 * gamma) * random.standard_normal((d, D))
    return math.sqrt(2 * gamma) * _orthogonal_directions(d, D, random)


def _draw_structure(gamma: float, d: int, D: int, random: Any) -> Structure:
    """Random signs for sqrt(2 gamma) sqrt(p) H1 S1 H1 S2 H1 S3, with H1 = p^(-1/2) H."""
    p = max(2, 1 << (d - 1).bit_length())
    signs = random.choice(np.array([-1, 1], dtype=np.int8), size=(-(-D // p), 3, p))
    return Structure(signs, math.sqrt(2 * gamma) / p, D)


def _uniform(gaussian: Array) -> Array:
    """Orthonormal columns, uniform over the orthogonal group, from standard normal numbers."""
    q, r = np.linalg.qr(gaussian)
    return np.asarray(q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :])


def _orthogonal_directions(d: int, D: int, random: Any) -> Array:
    """Columns distributed as standard normal vectors, orthogonal in blocks of d."""
    whole, rest = divmod(D, d)
    blocks = [_uniform(random.standard_normal((whole, d, d))).swapaxes(0, 1).reshape(d, whole * d)]
    if rest:
        blocks.append(_uniform(random.standard_normal((d, rest))))
    lengths = np.sqrt(random.chisquare(d, size=D))
    return np.hstack(blocks) * lengths


# ---- the error of the kernel at pairs of rows ----------------------------------------------------


def _sampled_rows(X: Columns, weight: Array, random: np.random.RandomState) -> Array:
    """Rows drawn at random, in proportion to their weights, in float64."""
    m = int(np.clip((2 * _PAIR_NUMBERS / X.shape[1]) ** 0.5, _FEWEST_PAIRED, _MOST_PAIRED))
    index = np.flatnonzero(weight)
    if uneven(weight[index]):
        drawn = random.choice(len(X), m, p=weight / weight.sum())
    else:
        drawn = index if len(index) <= m else index[random.randint(len(index), size=m)]
    return dense(X[np.unique(drawn)]).astype(np.float64)


@np.errstate(over="ignore")  # a distance that is infinite has a kernel of zero
def _kernel_of_pairs(kernel: str, gamma: float, rows: Array) -> Array:
    """The kernel of all pairs of rows, in the order of `pdist`."""
    if kernel == "cauchy":
        first, second = np.triu_indices(len(rows), 1)
        logs = sum(np.log1p(gamma * (x[first] - x[second]) ** 2) for x in rows.T)
        return np.exp(-np.asarray(logs))
    return np.exp(-gamma * pdist(rows, _METRICS[kernel]))


def _relative_error(fourier: Fourier, rows: Array, exact: Array) -> float:
    """Mean squared error of the inner products of features of all pairs of rows, over the variance
    of the kernel."""
    if not exact.size or exact.var() <= _ROUNDING:
        return 0.0
    features = unshifted(rows, fourier.astype(rows.dtype), 1)
    found = (features @ features.T)[np.triu_indices(len(rows), 1)]
    return float(np.mean((found - exact) ** 2) / exact.var())

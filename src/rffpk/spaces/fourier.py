"""Random Fourier features: an explicit map whose inner products approximate a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS

from rffpk.rows import checks, table
from rffpk.rows.arrays import Array, Fourier, Structure
from rffpk.rows.checks import Auto
from rffpk.rows.draws import uneven
from rffpk.rows.passes import unshifted
from rffpk.rows.sample import Moments, Opened, column_moments
from rffpk.rows.store import written_out
from rffpk.rows.table import Columns
from rffpk.rows.weights import of_positive_weight, ones
from rffpk.system import config
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING

Kernel = Literal["rbf", "laplacian", "cauchy"]
Gamma = Literal["mean", "median", "scale"]
Sampling = Literal["auto", "orthogonal", "structured", "iid"]
Frequencies = Literal["auto", "paper"]

KERNELS = get_args(Kernel)
GAMMAS = get_args(Gamma)
_EXACT = {"precomputed", *PAIRWISE_KERNEL_FUNCTIONS} - {*KERNELS}  # kernels of other classes

# The distances that kernels are functions of, and that gamma is taken from.
_METRICS = {"rbf": "sqeuclidean", "laplacian": "cityblock", "cauchy": "sqeuclidean"}


_ROUNDING = 1e-28  # kernel values with a variance up to this are equal up to rounding


def default_n_frequencies(n_clusters: int) -> int:
    """Return ceil(4 log^3(2k)).

    It is the number of theorem 3 of the RFF-KPKM paper with epsilon = delta = 0.5."""
    return math.ceil(4 * math.log(2 * n_clusters) ** 3)


def check_n_frequencies(value: Any, words: tuple[str, ...] = get_args(Frequencies)) -> None:
    """Check the parameter `n_frequencies` of an estimator."""
    if isinstance(value, str):
        checks.check_choice(value, "n_frequencies", words, also="an int >= 1")
    else:
        checks.check_int(value, "n_frequencies", 1)


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
            f"kernel={kernel!r}: has no random features. Choose one of {list(KERNELS)}, or pass it "
            "to KernelPowerKMeans or MultiKernelPowerKMeans."
        )
    checks.check_choice(kernel, "kernel", KERNELS)
    check_gamma(gamma)
    checks.check_choice(sampling, "sampling", get_args(Sampling))
    if sampling in ("orthogonal", "structured") and kernel != "rbf":
        raise ValueError(
            f"sampling={sampling!r}: needs kernel='rbf', not {kernel!r}, because only the "
            "frequencies of 'rbf' are isotropic."
        )


@dataclass(frozen=True)
class FourierSpace:
    """Random Fourier features, as they were drawn."""

    fourier: Fourier
    gamma: float
    error: float | None  # mean squared error of the kernel over its variance; None: not measured
    columns: Array | None  # indices of the columns that are mapped; None: all
    dtype: np.dtype[Any]  # dtype of the fitted rows
    n_threads: int

    def _view(self, X: Columns) -> tuple[Columns, Fourier]:
        """Return the columns and the map with which passes compute the features of rows."""
        X = X if self.columns is None else table.some_columns(X, self.columns)
        return X, written_out(X, self.fourier.astype(X.dtype), self.n_threads)

    def frequencies(self, d: int) -> Array:
        """Return Omega, (d, D), for rows of d columns."""
        omega = self.fourier.frequencies
        if isinstance(omega, Structure):
            omega = omega.matrix(d if self.columns is None else len(self.columns))
        omega = table.spread_columns(omega.T, self.columns, d).T
        return np.ascontiguousarray(omega, dtype=self.dtype)


@dataclass(frozen=True)
class FourierSpec:
    """How random Fourier features are drawn: checked parameters of `RandomFourierFeatures`."""

    n_frequencies: Auto | int = "auto"
    kernel: Kernel = "rbf"
    gamma: Gamma | float = "mean"
    sampling: Sampling = "auto"

    def fit(
        self, sample: Opened, view: int, k: int, random: np.random.RandomState, n_threads: int
    ) -> FourierSpace:
        """Draw random Fourier features of a view for k clusters, with gamma from a sample.

        Sparse columns without an entry are left out of the map."""
        x, weight = sample.some_with(view)
        if not isinstance(self.n_frequencies, str):
            D = int(self.n_frequencies)
            # features of the seeding rows, and some four arrays of k centroids or sums, each with
            # two numbers of 8 bytes (sine and cosine) for a frequency
            check_memory(16 * D * (min(sample.n, TUNING.starts.rows_a_centroid * k) + 4 * k), D)
        columns = table.occupied_columns(sample.xs[view], weight=sample.weight)
        moments = partial(sample.moments, view)
        return self.draw(x, weight, random, n_threads, moments, columns)

    def draw(
        self, X: Columns, weight: Array, random: np.random.RandomState, n_threads: int,
        moments: Callable[[], Moments] | None = None, columns: Array | None = None,
    ) -> FourierSpace:  # fmt: skip
        """Choose gamma and draw the frequencies for checked rows.

        `moments` returns the mean and variance of all rows, if X has only a part of the rows.
        `columns` are indices of the columns to map; None: all columns."""
        gamma = resolve_gamma(X, self.kernel, self.gamma, weight, random, n_threads, moments)
        is_given = not isinstance(self.gamma, str)
        weighted = uneven(weight) and not is_given
        origin = " (from distances weighted by sample_weight)" if weighted else ""
        _check_phases(of_positive_weight(X, weight), self.kernel, gamma, origin, is_given)
        X, dtype = X if columns is None else table.some_columns(X, columns), X.dtype
        if isinstance(self.n_frequencies, str):
            fourier, error = self._draw_enough(gamma, X, weight, random)
        else:
            fourier, error = self._draw(int(self.n_frequencies), gamma, X, random), None
        return FourierSpace(fourier, gamma, error, columns, dtype, n_threads)

    def _draw(self, D: int, gamma: float, X: Columns, random: np.random.RandomState) -> Fourier:
        """Draw D frequencies for the columns of X, structured or as a matrix (d, D).

        With the sampling "auto" they are structured for the kernel "rbf" and many columns."""
        d = X.shape[1]
        automatic = self.sampling == "auto" and self.kernel == "rbf"
        automatic &= d >= TUNING.fourier.structured_from
        if self.sampling == "structured" or automatic:
            # Each block of p frequencies is sqrt(2 gamma p) H1 S1 H1 S2 H1 S3, a fast stand-in for
            # a Gaussian matrix. S1, S2 and S3 are diagonal matrices of random signs, drawn here.
            # H1 = H / sqrt(p) is the orthonormal Hadamard matrix, so that H S1 H S2 H S3 gets the
            # factor sqrt(2 gamma) / p. p is the least power of two that is at least max(2, d).
            p = max(2, 1 << (d - 1).bit_length())
            signs = random.choice(np.array([-1, 1], dtype=np.int8), size=(-(-D // p), 3, p))
            return Fourier(Structure(signs, math.sqrt(2 * gamma) / p, D))
        check_memory(4 * 8 * d * D, D)  # drawing takes four arrays of this size
        omega = _draw_matrix(self.kernel, gamma, self.sampling, d, D, random)
        with np.errstate(over="ignore"):  # a few Cauchy frequencies may overflow to infinity
            return Fourier(np.ascontiguousarray(omega, dtype=X.dtype))

    def _draw_enough(
        self, gamma: float, X: Columns, weight: Array, random: np.random.RandomState
    ) -> tuple[Fourier, float]:
        """Draw frequencies, doubling their number until the error of the kernel is small.

        Return the map and its error. Warn if the largest number of frequencies does not suffice."""
        rows, tuning = _sampled_rows(X, weight, random), TUNING.fourier
        exact = _kernel_of_pairs(self.kernel, gamma, rows)
        # the features of the rows that starts run on have at most `most_numbers` numbers
        most = tuning.most_numbers // (2 * min(len(X), TUNING.sampling.rows))
        D, most = tuning.fewest, min(tuning.most, most)
        fourier = self._draw(D, gamma, X, random)
        while (error := _relative_error(fourier, rows, exact)) > tuning.error and 2 * D <= most:
            D *= 2
            fourier = self._draw(D, gamma, X, random)
        if error > tuning.error:  # NaN, of squares that overflow, raises an error later
            warn(
                f"n_frequencies='auto' ends at its largest number, {D}. The mean squared error of "
                f"the kernel is {error:.2g} of its variance over pairs of rows, and {tuning.error} "
                "was wanted. The rows are nearly equally far apart: take exact kernels or Nystroem "
                "features.",
                UserWarning,
            )
        return fourier, error


def check_memory(needed: int, n_frequencies: int) -> None:
    """Raise a MemoryError if `n_frequencies` take `needed` bytes, and fewer are available."""
    if not config.fits_memory(needed):
        raise MemoryError(
            f"n_frequencies={n_frequencies}: takes {needed:.2g} bytes, and "
            f"{config.available_memory():.2g} are available. Choose fewer frequencies."
        )


def _check_phases(X: Columns, kernel: str, gamma: float, origin: str, is_given: bool) -> None:
    """Refuse a gamma with which most sines and cosines of most rows are rounding errors.

    Only warn if gamma was computed. `origin` tells in the message how."""
    some = X[:: max(1, len(X) // 100)].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel == "laplacian":  # phases follow Cauchy's distribution
            phases = gamma * np.asarray(abs(table.operand(some)).sum(axis=1)).ravel()
        else:  # phases are nearly normal, with a median absolute value of 0.67
            phases = 0.67 * np.sqrt(2 * gamma) * np.sqrt(table.squared_norms(some))
    phase = float(np.median(phases[phases > 0])) if phases.any() else 0.0
    resolved = phase * float(np.finfo(X.dtype).eps) <= 0.25  # radians
    if not resolved and table.rows_differ(X):  # equal rows have equal features in any case
        remedy = "center X, or pass float64" if X.dtype == np.float32 else "or center X"
        text = (
            f"gamma={gamma:.3g}{origin}: gives phases of {phase:.2g}, which {X.dtype} does not "
            f"resolve; take a smaller gamma, {remedy}."
        )
        if is_given:
            raise ValueError(text)
        warn(text, UserWarning)


def resolve_gamma(
    X: Columns, kernel: str, gamma: str | float, weight: Array, random: Any, n_threads: int,
    moments: Callable[[], Moments] | None = None,
) -> float:  # fmt: skip
    """Return the number that the parameter `gamma` stands for; see `RandomFourierFeatures`.

    A number stands for itself. A word stands for 1 / (2 t), with a distance t that depends on the
    word and the kernel, and for 1 if t is zero.

    `moments` returns the mean and variance of the columns. It may use more rows than X has; None:
    they are computed from X."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "median" or (gamma == "mean" and kernel == "laplacian"):
        index = random.permutation(np.flatnonzero(weight))[: TUNING.fourier.pair_rows]
        distances = table.pair_distances(X[np.sort(index)], _METRICS[kernel])
        with np.errstate(over="ignore"):  # overflow is refused by name below
            average = np.mean if gamma == "mean" else np.median
            distance = float(average(distances)) if distances.size else 0.0
    else:
        total = column_moments(X, weight, n_threads) if moments is None else moments()
        if total.variance <= 0:  # rows may still differ: by rounding, or with tiny weights
            counted, eps = of_positive_weight(X, weight), float(np.finfo(X.dtype).eps)
            plain = column_moments(counted, ones(len(counted)), n_threads).variance
            checks.check_weighted_variance(total.variance, plain, eps**2, X.dtype)
            checks.check_underflow(total.variance, [counted])
        distance = 2 * total.variance  # the mean over all ordered pairs
        if gamma == "scale":  # X.var() = (total variance) / d + variance of the means
            distance = (total.variance + X.shape[1] * float(total.mean.var())) / 2
    if gamma != "median":
        _warn_of_far_rows(X, kernel, gamma, weight, distance)
    checks.check_overflow(2 * distance, np.float64)
    if distance > 0 and 2 * distance < np.finfo(np.float64).tiny:
        raise ValueError("X has values so small that squared distances underflow; rescale X.")
    return 1 / (2 * distance) if distance > 0 else 1.0


def _warn_of_far_rows(X: Columns, kernel: str, gamma: str, weight: Array, distance: float) -> None:
    """Warn if a few rows make the mean distance so large that other distances vanish beside it."""
    spread = center_and_spread(X, weight)[1]
    if kernel == "laplacian" and gamma != "scale":  # "scale" squares distances for all kernels
        spread = math.sqrt(spread)
    if 0 < spread * 1e10 < distance:  # then the kernel has no digits for most rows
        warn(
            f"X has rows so far from the others that gamma={gamma!r} makes the kernel of the "
            "others constant: the far rows dominate the distance that gamma is computed from. "
            "Remove the far rows, or take gamma='median'.",
            UserWarning,
        )


@np.errstate(over="ignore", under="ignore", invalid="ignore")  # overflow is refused by name
def center_and_spread(X: Columns, weight: Array) -> tuple[Array, float]:
    """Return the median (d,) of each column, and a 99 % quantile of squared distances from it.

    For sparse rows the center is zero. Only rows of positive weight are used, and many rows are
    subsampled. A few extreme rows do not change the result much."""
    counted = np.flatnonzero(weight)
    tuning = TUNING.fourier
    most = max(1, min(tuning.spread_rows, tuning.spread_numbers // X.shape[1]))
    center, squares = table.center_and_squares(X[counted[:: len(counted) // most + 1]])
    return center, float(np.quantile(squares, 0.99, method="lower"))


def _draw_matrix(
    kernel: str, gamma: float, sampling: Sampling, d: int, D: int, random: Any
) -> Array:
    """Draw Omega of shape (d, D); its columns follow the kernel's spectral density."""
    if kernel == "laplacian":
        return gamma * random.standard_cauchy((d, D))
    if kernel == "cauchy":
        return math.sqrt(gamma) * random.laplace(size=(d, D))
    if sampling == "iid":
        return math.sqrt(2 * gamma) * random.standard_normal((d, D))
    # normal vectors whose directions are orthogonal in blocks of d
    whole, rest = divmod(D, d)
    blocks = [_uniform(random.standard_normal((whole, d, d))).swapaxes(0, 1).reshape(d, whole * d)]
    if rest:
        blocks.append(_uniform(random.standard_normal((d, rest))))
    lengths = np.sqrt(random.chisquare(d, size=D))
    return math.sqrt(2 * gamma) * (np.hstack(blocks) * lengths)


def _uniform(gaussian: Array) -> Array:
    """Return uniformly distributed orthonormal columns from a Gaussian matrix, or from a stack."""
    q, r = np.linalg.qr(gaussian)
    return np.asarray(q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :])


# ---- the error of the kernel at pairs of rows ----------------------------------------------------


def _sampled_rows(X: Columns, weight: Array, random: np.random.RandomState) -> Array:
    """Draw rows of X at random, in proportion to their weights, as a dense float64 array."""
    tuning = TUNING.fourier
    m = (2 * tuning.pair_numbers / X.shape[1]) ** 0.5  # m^2 / 2 pairs of d numbers
    m = int(np.clip(m, tuning.fewest_paired, tuning.most_paired))
    index = np.flatnonzero(weight)
    if uneven(weight[index]):
        drawn = random.choice(len(X), m, p=weight / weight.sum())
    else:
        drawn = index if len(index) <= m else index[random.randint(len(index), size=m)]
    return table.dense(X[np.unique(drawn)]).astype(np.float64)


@np.errstate(over="ignore")  # a distance that is infinite has a kernel of zero
def _kernel_of_pairs(kernel: str, gamma: float, rows: Array) -> Array:
    """Return the kernel of all pairs of rows, in the order of `pdist`."""
    if kernel == "cauchy":
        first, second = np.triu_indices(len(rows), 1)
        logs = sum(np.log1p(gamma * (x[first] - x[second]) ** 2) for x in rows.T)
        return np.exp(-np.asarray(logs))
    return np.exp(-gamma * pdist(rows, _METRICS[kernel]))


def _relative_error(fourier: Fourier, rows: Array, exact: Array) -> float:
    """Return the mean squared error of the approximate kernel over the exact kernel's variance.

    The mean and the variance are over all pairs of `rows`. `exact` has the kernel values of the
    pairs. If these values are equal up to rounding, the error is 0."""
    if not exact.size or exact.var() <= _ROUNDING:
        return 0.0
    features = unshifted(rows, fourier.astype(rows.dtype), 1)
    found = (features @ features.T)[np.triu_indices(len(rows), 1)]
    return float(np.mean((found - exact) ** 2) / exact.var())

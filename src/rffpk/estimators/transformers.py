"""Feature maps as transformers of scikit-learn: thin classes over specifications and spaces."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rffpk.estimators.base import Estimator, fit_of, parameters, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Structure
from rffpk.rows.checks import Auto
from rffpk.rows.door import Shape
from rffpk.rows.passes import unshifted
from rffpk.rows.sample import Opened
from rffpk.spaces.fourier import (
    FourierSpace,
    FourierSpec,
    Gamma,
    Kernel,
    Sampling,
    check_kernel,
    check_n_frequencies,
    default_n_frequencies,
)
from rffpk.system import config


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
            random = checks.check_random_state(self.random_state)
            spec = FourierSpec(self.n_frequencies, self.kernel, self.gamma, self.sampling)
            return self._publish(spec.draw(rows, weight, random, config.n_threads(self.n_jobs)))

    def _publish(self, space: FourierSpace) -> Self:
        """Set the attributes that a space has."""
        self._space, fourier = space, space.fourier
        self.gamma_, self.n_frequencies_ = space.gamma, fourier.n_frequencies
        self.structure_ = None
        if isinstance(fourier.frequencies, Structure):
            self.structure_ = fourier.frequencies
        if space.error is not None:
            self.kernel_error_ = space.error
        self._n_features_out = fourier.width
        return self

    @property
    def frequencies_(self) -> Array:
        """Omega, of shape (n_features_in_, n_frequencies_)."""
        check_is_fitted(self)
        return self._space.frequencies(self.n_features_in_)

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
        features = unshifted(*self._space._view(X), config.n_threads(self.n_jobs))
        checks.check_overflow(float(features.sum()), X.dtype)
        return features


def fit_fourier(
    model: Any, parameters: Any, sample: Opened, view: int, k: int, random: Any
) -> RandomFourierFeatures:
    """Fit the transformer of a view of a model for k clusters, with parameters of random features.

    "paper" stands for independent frequencies."""
    D, sampling = parameters.n_frequencies, parameters.sampling
    if D == "paper":
        D, sampling = default_n_frequencies(k), "iid" if sampling == "auto" else sampling
    spec = FourierSpec(D, parameters.kernel, parameters.gamma, sampling)
    seed, n_threads = random.randint(2**31 - 1), config.n_threads(model.n_jobs)
    space = spec.fit(sample, view, k, np.random.RandomState(seed), n_threads)
    mapped = RandomFourierFeatures(**asdict(spec), random_state=seed, n_jobs=model.n_jobs)
    with fit_of(mapped):
        mapped._remember(Shape.of_columns(sample.xs[view].shape[1], model._shape.in_float64))
        return mapped._publish(space)

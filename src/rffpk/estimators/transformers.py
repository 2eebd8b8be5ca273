"""Feature maps as transformers of scikit-learn: thin classes over specifications and spaces."""

from __future__ import annotations

from dataclasses import asdict, field, fields
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rffpk.estimators.base import Estimator, fit_of, parameters, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Structure
from rffpk.rows.checks import Auto
from rffpk.rows.door import Schema, Shape
from rffpk.rows.passes import unshifted
from rffpk.rows.sample import Opened
from rffpk.rows.table import operand
from rffpk.spaces import diffusion, fourier
from rffpk.spaces.graph import Nodes
from rffpk.spaces.spectrum import MAX_CLUSTERS
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
        Signs (n_blocks, 3, p), scale and number of structured frequencies; None: not structured.
    n_frequencies_, gamma_ : int and float
        The numbers that `n_frequencies`, D, and `gamma` stand for.
    kernel_error_ : float
        Mean squared error of the kernel, over its variance, for pairs of at most 256 rows; set with
        "auto".
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.

    Examples
    --------
    >>> from rffpk import RandomFourierFeatures
    >>> RandomFourierFeatures(200, random_state=0).fit_transform([[0.0], [0.2], [5.0]]).shape
    (3, 400)
    """

    n_frequencies: Auto | int = field(default="auto", kw_only=False)
    kernel: fourier.Kernel = "rbf"
    gamma: fourier.Gamma | float = "mean"
    sampling: fourier.Sampling = "auto"
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
        fourier.check_n_frequencies(self.n_frequencies, ("auto",))
        fourier.check_kernel(self.kernel, self.gamma, self.sampling)
        with reporting(self, X), fit_of(self), config.one_blas_thread():
            [rows] = self._check_views(X, reset=True)
            weight = checks.check_sample_weight(sample_weight, len(rows), X)
            random = checks.check_random_state(self.random_state)
            spec = fourier.FourierSpec(self.n_frequencies, self.kernel, self.gamma, self.sampling)
            return self._publish(spec.draw(rows, weight, random, config.n_threads(self.n_jobs)))

    def _publish(self, space: fourier.FourierSpace) -> Self:
        """Set the fitted attributes from a space of random features; return the estimator."""
        self._space, drawn = space, space.fourier
        self.gamma_, self.n_frequencies_ = space.gamma, drawn.n_frequencies
        self.structure_ = None
        if isinstance(drawn.frequencies, Structure):
            self.structure_ = drawn.frequencies
        if space.error is not None:
            self.kernel_error_ = space.error
        self._n_features_out = drawn.width
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


@parameters
class DiffusionMap(Estimator):
    """Map rows to features whose distances are diffusion distances.

    Rows step to their nearest landmarks, the nearer the likelier, and from there to the rows of
    the landmarks. Squared distances between features measure how differently walks that start at
    two rows are distributed after some time (Coifman, Lafon: Diffusion maps. Applied and
    Computational Harmonic Analysis 2006): connected clusters of any shape become groups far apart.

    `fit` and `transform` cost O(n_samples n_landmarks n_features) time and O(n_landmarks
    n_functions) memory. `transform` gives fitted rows the features that they had in `fit`.

    With ``metric="precomputed"`` X is a sparse or dense graph of affinities >= 0, (n_samples,
    n_samples), taken as (A + A') / 2 (``docs/tasks.md``). `fit` raises a ValueError or TypeError
    for bad input. A ConvergenceWarning says if the graph has several components.

    Parameters
    ----------
    n_components : "auto" or int, default="auto"
        Number of diffusion features. "auto": as many as still vary after `time`, at most
        min(2 k, max(k, 200)) for k clusters.
    n_neighbors : "auto" or int, default="auto"
        Number of nearest landmarks that a row is connected to in the graph. "auto": 8 sampled
        landmarks, or 2.5 log(m) mutual neighbors where all m rows are landmarks.
    n_landmarks : "auto" or int, default="auto"
        Number of nodes of the graph. "auto": all distinct rows. Above 200 000 of them (30 000 if
        sparse) it is 5 sqrt(n_samples) centroids, or more for many clusters.
    time : "auto" or float, default="auto"
        How many steps features look along the graph, > 0. A long time keeps large clusters
        alone; a short time keeps details. "auto": long enough that the clusters before the largest
        of the first 20 eigengaps stay, at most 10^6.
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        Distance of neighbors. "cosine": of rows of length one. "precomputed": X has affinities.
    whitening : "auto", None or float, default="auto"
        Which columns the neighbors are searched in. None and "auto": the columns of X. A number
        from 0 to 1: 2 k principal components, divided by this power of their standard deviations
        (``docs/math.md``, eq. (20.1)).
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.

    Attributes
    ----------
    landmarks_ : ndarray of shape (n_nodes, n_features_in_)
        Nodes of the walk, in the dtype of X, CSR if X is sparse; none for given affinities.
    whitening_ : float or None
        The power of the standard deviations that components were divided by. None: the columns.
    choices_ : list of dict
        What a clustering tried: "whitening", "neighbors" (times the default number; 0: columns),
        "unit" (whether features have length one), and "agreement" with all options.
    n_neighbors_, n_components_ : int
        Number of neighbors of each row in the graph, and number of features.
    bandwidth_ : float
        sigma^2 of the weights exp(-||x - c||^2 / (2 sigma^2)) of the neighbors c of a row x.
    eigenvalues_ : ndarray of shape (n_functions,)
        Eigenvalues of the walk in falling order, without that of the constant function. Beyond 5000
        nodes, and in a clustering, 1 - eigenvalue may be .5 % too large, in the second half more.
    time_ : float
        Length of the walks; 0 in a clustering of the columns, which `transform` then returns.
    landmark_features_ : ndarray of shape (n_nodes, n_components_)
        Features of landmarks. A row has the mean of its neighbors, with the weights above.
    component_shares_ : ndarray of shape (n_connected_components,)
        Shares of the weight (of a sample, if there are many rows) in connected components, falling.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from rffpk import DiffusionMap
    >>> X, y = make_circles(500, factor=0.4, noise=0.04, random_state=0)
    >>> DiffusionMap(time=100.0, n_components=3, random_state=0).fit_transform(X).shape
    (500, 3)
    """

    n_components: Auto | int = field(default="auto", kw_only=False)
    n_neighbors: Auto | int = "auto"
    n_landmarks: Auto | int = "auto"
    time: Auto | float = "auto"
    metric: diffusion.DiffusionMetric = "euclidean"
    whitening: Auto | float | None = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    _takes = Schema("", "graph")

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find landmarks and the slow functions of the walk.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite numbers.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows. A row of weight zero is no part of the walk.

        Returns
        -------
        self : object
            The fitted map.
        """
        self._fit(X, sample_weight)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> diffusion.FittedMap:
        """Check X and its weights, fit the map, and set the attributes.

        Return the fitted map, which also holds the features of the rows."""
        spec = diffusion_spec(self)
        with reporting(self, X), fit_of(self), config.one_blas_thread():
            [rows] = self._check_views(X, reset=True)
            weight = checks.check_sample_weight(sample_weight, len(rows), X)
            n_threads = config.n_threads(self.n_jobs)
            inputs = diffusion.MapRows(rows, weight, MAX_CLUSTERS, n_threads, spec, is_told=False)
            whitening = None if isinstance(spec.whitening, str) else spec.whitening
            option = diffusion.Option(whitening, 1)  # 1: the default number of neighbors
            fitted = inputs.draw(option, "always", self.random_state).fitted()
            self._publish(fitted)
        diffusion.warn_of_graph(fitted.space, self.n_neighbors, 1)
        return fitted

    def _publish(self, fitted: diffusion.FittedMap) -> Self:
        """Set the fitted attributes from a fitted map; return the estimator.

        If `fitted.columns` is set, `transform` returns columns of X and no diffusion features, and
        the time of the walk is 0."""
        space, columns = fitted.space, fitted.columns
        self._space = space if columns is None else columns
        self.whitening_, self.choices_ = fitted.spec.whitening, [*fitted.choices]
        if not isinstance(space.neighborhoods, Nodes):
            self.landmarks_ = operand(space.neighborhoods.landmarks)
            self.n_neighbors_ = space.neighborhoods.r
            self.bandwidth_ = space.neighborhoods.bandwidth
        self.eigenvalues_, self.component_shares_ = 1 - space.spectrum.gaps, space.shares
        self.time_ = space.time if columns is None else 0.0
        self.landmark_features_ = space.functions
        width = space.functions.shape[1] if columns is None else self.n_features_in_
        self.n_components_ = self._n_features_out = width
        return self

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> Array:
        """Fit the map, and return the features of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite numbers.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components_)
            What `transform` gives.
        """
        fitted = self._fit(X, sample_weight)
        with config.one_blas_thread():
            return fitted.features()

    def transform(self, X: Any) -> Array:
        """Map rows to their features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Finite numbers.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components_)
            float32 for float32 input, else float64; finite however far a row is. A CSR array if X
            is sparse and `time_` is 0.
        """
        check_is_fitted(self)
        [X] = self._check_views(X, reset=False)
        with config.one_blas_thread():
            return operand(self._space._features(X))


def diffusion_spec(parameters: Any) -> diffusion.DiffusionSpec:
    """Return the specification of a diffusion map from the parameters of an estimator.

    The parameters are checked."""
    return diffusion.DiffusionSpec(
        *(getattr(parameters, each.name) for each in fields(diffusion.DiffusionSpec))
    )


def diffusion_map(model: Any, fitted: diffusion.FittedMap, d: int) -> DiffusionMap:
    """Return a fitted `DiffusionMap` for a map that a fit of `model` has fitted to d columns."""
    parameters = vars(fitted.spec)
    mapped = DiffusionMap(**parameters, random_state=fitted.random_state, n_jobs=model.n_jobs)
    with fit_of(mapped):
        mapped._remember(Shape(d, (d,), in_float64=model._shape.in_float64))
        return mapped._publish(fitted)


def fit_fourier(
    model: Any, parameters: Any, sample: Opened, view: int, k: int, random: Any
) -> RandomFourierFeatures:
    """Fit random features to a view for k clusters; return them as a transformer.

    `parameters` is an estimator with the parameters of random features. n_frequencies="paper" is
    the number of the paper; the frequencies are then independent if `sampling` is "auto"."""
    D, sampling = parameters.n_frequencies, parameters.sampling
    if D == "paper":
        D, sampling = fourier.default_n_frequencies(k), "iid" if sampling == "auto" else sampling
    spec = fourier.FourierSpec(D, parameters.kernel, parameters.gamma, sampling)
    seed, n_threads = random.randint(2**31 - 1), config.n_threads(model.n_jobs)
    space = spec.fit(sample, view, k, np.random.RandomState(seed), n_threads)
    mapped = RandomFourierFeatures(**asdict(spec), random_state=seed, n_jobs=model.n_jobs)
    with fit_of(mapped):
        d = sample.xs[view].shape[1]
        mapped._remember(Shape(d, (d,), in_float64=model._shape.in_float64))
        return mapped._publish(space)

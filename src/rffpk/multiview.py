"""Kernel power k-means of several views or kernels at once, with typicality against noise."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rffpk._anneal.centroid_model import joined, typicalities, visits
from rffpk._anneal.fit import FitResult, Problem
from rffpk._anneal.objective import ETA_RANGE, Eta, WeightedViews, reference_distances
from rffpk._anneal.search import FitContext
from rffpk._docs import RANDOM_FEATURES, VIEWS, documented
from rffpk._rows.dask_workers import Partitions
from rffpk._rows.rows import Rows
from rffpk._rows.sample import RowSample
from rffpk._rows.store import check_cache
from rffpk._rows.views import check_views
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.dask_collections import by_partitions
from rffpk._utils.estimator import parameters
from rffpk._utils.messages import warn
from rffpk._utils.sparse_rows import Columns
from rffpk._utils.validation import Auto, is_option
from rffpk.diffusion import chosen_map
from rffpk.maps import diffusion_map, fourier
from rffpk.maps.diffusion_map import DiffusionMap
from rffpk.maps.neighbours import map_rows
from rffpk.maps.whitening import whitened_view
from rffpk.power import AnnealedClusterer

# Multiples of the "mean" gamma for a single array: bandwidths of one half, one and two times that
# of the mean.
_BANK = (4.0, 1.0, 0.25)

MAX_TYPICALITY_M = 6.0

_WHITENING = 0.5  # of the columns with kernels="auto"

# A kernel and its gamma, the map that has the parameters of another, or None: the columns.
_Kernel = tuple[Any, Any] | DiffusionMap | None

_RANGE = (1e-30, 1e30)  # of weight_entropy, so that float32 holds it too


@documented(
    RANDOM_FEATURES | VIEWS, "feature_maps_", "cluster_centers_", "labels_", "kernel_weights_",
    "eta_", "inertia_", "objective_", "lambda_", "s_", "n_iter_", "sample_size_", "cache_",
    "history_", "memberships_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
@parameters
class RFFMultiKernelPowerKMeans(AnnealedClusterer):
    """Kernel power k-means of several views or kernels on random Fourier features (IP-RFF-MKPKM).

    Minimises [1]_

        sum_i M_s(d'_i1, ..., d'_ik) + lambda sum_l alpha_l log(L alpha_l),
        d'_ij = u_ij^m d_ij + (1 - u_ij)^m sum_l alpha_l eta_l,
        d_ij = sum_l alpha_l ||phi_l(x_i) - theta_jl||^2,

    over centroids theta_jl, weights alpha >= 0, of sum one, of L views, and typicalities u_ij in
    [0, 1], while the exponent s of the power mean M_s(y) = ((1/k) sum_j y_j^s)^(1/s) falls to minus
    infinity. With the reference distances eta_l a row far from every centroid has a low typicality
    for all clusters, and hardly moves their centroids.

    Parameters
    ----------
    possibilistic : bool
        Whether rows have typicalities. False: u_ij = 1, the method RFF-MKPKM.
    m : float
        Fuzzifier of the typicalities, 1 < m <= 6. The closer it is to one, the closer they are to 0
        and 1.
    eta : {"mean", "median", "within"} or float
        Reference distances, fixed before annealing. "mean": the mean squared distance of a view's
        rows from their mean feature, the paper's choice if all centroids are at that mean.
        "median": the median of the squared distances from the median feature, on a sample, which
        outliers do not inflate. "within": 1.44 times the median squared distance of a cluster's
        rows from its centroid, from two fits to a sample: for `noise_threshold`, of which 0.2, with
        ``m=2``, then leaves about 98 % of a normal cluster of two dimensions in it, more if it has
        more, and 80 % of one column. A number from 1e-30 to 1e30: the same for all views.
    kernels : str, list or None
        For each view the name of a kernel of `RandomFourierFeatures` ("rbf", "laplacian" or
        "cauchy"), or a pair of a name and its gamma, a number or one of "mean", "median" and
        "scale"; "mean", the gamma of names alone, is 1 / (2 mean distance) over pairs of rows.
        "diffusion", or a `DiffusionMap` with other parameters, which need not be fitted, gives a
        view diffusion features; "linear" takes its columns, as they are unless `whitening` is
        given, so scale them like those of the other views. A str is the same for all views. "auto"
        takes each view twice: its diffusion features, and its columns with ``whitening=0.5``. A
        single array becomes as many views as there are kernels. None: "rbf" with "mean" gamma for
        each view; a single array becomes three views, with 4, 1 and 1/4 times that gamma.
    whitening : None or float
        A number from 0 to 1: views with the kernel "linear" become their leading principal
        components, two for each cluster at most, each divided by this power of its standard
        deviation; 0 only projects, 1 gives all the same variance. From 8 components on, rows are
        scaled to length one. None: the columns themselves, but see ``kernels="auto"``.
    noise_threshold : float or None
        Rows whose typicality for their cluster is below this number in (0, 1] get the label -1.
        None: no row does. A number needs ``possibilistic=True``.

    Attributes
    ----------
    feature_maps_ : list of RandomFourierFeatures, DiffusionMap and None
        Fitted feature maps, one for each view; those with random frequencies have D each. Diffusion
        features are divided by the root of their total variance, since they have no unit. None:
        the columns are the features.
    eta_ : ndarray of shape (n_views,), or None
        Reference distances; None if ``possibilistic=False``.
    cluster_centers_ : ndarray of shape (n_clusters, total number of features)
        Centroids in feature space, in the dtype of X, those of the views side by side; a view with
        random frequencies has 2 D features.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of its nearest centroid; -1 for noise (see
        `noise_threshold`).
    inertia_ : float
        Kernel k-means objective of the clusters of nearest centroids (noise included) with the
        kernel sum_l alpha_l k_l, without typicality: the weighted sum of squared distances of the
        rows to the means of their clusters.
    objective_ : float
        What is minimised, with the sum over rows weighted by the sample weights, at the exponent
        `s_` and `cluster_centers_`: eq. (20) of [1]_ plus the constant lambda log L, so that it is
        >= 0.

    Raises
    ------
    ValueError, TypeError
        If a parameter or a view is not as described; the view is named.
    MemoryError
        If ``cache=True`` and the features take more than `memory_limit`.

    Notes
    -----
    One pass over the rows covers all views: with n rows, d_l columns of view l and D frequencies a
    view it takes O(n sum_l (d_l + k) D) time; memory beyond X is O(n), and O(n L D) if features are
    stored. Sparse views have their mean number of entries in place of d_l, except with "linear"
    beside other views, where rows are written out, a few at a time. The typicalities are updated
    before the weights of the power mean, not after them as in the printed algorithm: both orders
    have the same fixed points, and the objective falls at each step. The critical exponent (see
    `s0`) is that of the objective with typicality.

    Where rows lack views (see `allow_missing_views`) the terms of the objective are multiplied by
    the sums of the view weights of the rows, whose mean is one, so that it still falls at each
    step (``docs/math.md``, eq. 19.1); centroids are means over the rows that have the view. Starts
    then run on all features, not on principal components, and ``eta="within"`` is refused.

    References
    ----------
    .. [1] Chen et al.: Enhancing kernel power k-means: scalable and robust clustering with random
       Fourier features and possibilistic method. Algorithm 2, eq. (20).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from rffpk import RFFMultiKernelPowerKMeans
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = RFFMultiKernelPowerKMeans(10, random_state=0).fit([X[:, :32], X[:, 32:]])
    >>> model.kernel_weights_.shape
    (2,)
    """

    possibilistic: bool = True
    m: float = 2.0
    eta: Eta | float = "median"
    weight_entropy: float = 1.0
    kernels: Any = None
    views: Any = None
    whitening: float | None = None
    n_frequencies: fourier.Frequencies | int = "auto"
    sampling: fourier.Sampling = "auto"
    noise_threshold: float | None = None
    allow_missing_views: bool = False
    cache: Auto | bool = "auto"
    memory_limit: int | None = None

    # ---- parameters and views --------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.possibilistic, (bool, np.bool_)):
            raise TypeError(f"possibilistic == {self.possibilistic!r}, must be True or False.")
        validation.check_bool(self.allow_missing_views, "allow_missing_views")
        validation.check_whitening(self.whitening)
        fourier.check_n_frequencies(self.n_frequencies)
        check_cache(self.cache, self.memory_limit)
        validation.check_real(self.m, "m", 1, MAX_TYPICALITY_M, include="right")
        if isinstance(self.eta, str):
            validation.check_choice(self.eta, "eta", get_args(Eta), also="a number > 0")
        else:
            validation.check_real(self.eta, "eta", *ETA_RANGE)
        validation.check_real(self.weight_entropy, "weight_entropy", *_RANGE)
        for kernel in self._kernels_of_views(1):
            if isinstance(kernel, DiffusionMap):
                diffusion_map.check_diffusion(kernel)
            elif kernel is not None:
                fourier.check_kernel(*kernel, self.sampling)
        if self.noise_threshold is not None:
            validation.check_real(self.noise_threshold, "noise_threshold", 0, 1, include="right")
            if not self.possibilistic:
                raise ValueError("noise_threshold needs possibilistic=True.")

    def _kernels_of_views(self, n_views: int) -> list[_Kernel]:
        """What defines the features of each view, or of each repetition of the views."""
        kernels = "rbf" if self.kernels is None else self.kernels
        if is_option(kernels, "auto"):
            return [DiffusionMap()] * n_views + [None] * n_views
        if isinstance(kernels, str):
            kernels = [kernels] * n_views
        if not isinstance(kernels, (list, tuple)) or not kernels:
            raise TypeError(
                f"kernels == {kernels!r}, must be a name, or a list with {_ENTRIES} for each view."
            )
        return [_kernel_of_view(kernel) for kernel in kernels]

    def _check_views(self, X: Any, reset: bool) -> list[Columns]:
        xs = check_views(self, X, reset=reset)
        if reset:
            n = len(self._kernels_of_views(len(xs)))
            if self._n_views and n != len(xs) and not is_option(self.kernels, "auto"):
                raise ValueError(f"kernels has {n} entries for {len(xs)} views.")
            bank = self.kernels is None and not self._n_views
            self._repetitions = len(_BANK) if bank else n // len(xs)
        return xs * self._repetitions

    # ---- fitting ---------------------------------------------------------------------------------

    def _problem(self, **more: Any) -> Problem:
        maps = [each for each in self._kernels_of_views(1) if isinstance(each, DiffusionMap)]
        return super()._problem(
            maps=self._maps, objective=self._objective_of, cache=self.cache,
            memory_limit=self.memory_limit, published=self._published,
            n_map_rows=max((map_rows(each.n_landmarks) for each in maps), default=0), **more,
        )  # fmt: skip

    def _maps(self, sample: RowSample, context: FitContext) -> list[Any]:
        apart = context.coverage is not None and isinstance(sample.stream, Partitions)
        if apart and self.noise_threshold is not None:
            raise ValueError(
                "noise_threshold needs all views of all rows where these stay on the workers of a "
                "cluster: compare typicality with it."
            )
        kernels = self._kernels_of_views(self._n_views or 1)
        if self.kernels is None and not self._n_views:
            mean = fourier.gamma_of_view(self, sample, 0, "rbf", "mean", context.random)
            kernels = [("rbf", factor * mean) for factor in _BANK]
        return [self._fit_map(sample, i, kernel, context) for i, kernel in enumerate(kernels)]

    def _fit_map(self, sample: RowSample, view: int, kernel: _Kernel, context: FitContext) -> Any:
        if kernel is None:
            automatic = self.whitening is None and is_option(self.kernels, "auto")
            exponent = _WHITENING if automatic else self.whitening
            return whitened_view(exponent, sample, view, context)
        if isinstance(kernel, DiffusionMap):
            rows = sample.some_with(view)
            return chosen_map(self, kernel, *rows, context, unit_variance=True)
        return fourier.fit_map(self, sample, view, *kernel, context.random)

    def _objective_of(self, rows: Rows, context: FitContext) -> WeightedViews:
        entropy = float(self.weight_entropy)
        if not self.possibilistic:
            return WeightedViews(entropy, coverage=rows.coverage)
        of_columns = partial(
            RFFMultiKernelPowerKMeans, context.k, kernels="linear", m=self.m, random_state=0,
            n_jobs=self.n_jobs,
        )  # fmt: skip
        eta = reference_distances(rows, self.eta, context.k, of_columns)
        return WeightedViews(entropy, eta, float(self.m), rows.coverage)

    def _published(self, result: FitResult, context: FitContext) -> None:
        alpha, whole = result.rows.alpha, context.coverage is None
        self.feature_maps_, self.eta_ = self._feature_maps, result.prepared.objective.eta
        self.kernel_weights_ = alpha if whole else alpha / alpha.sum()
        self.lambda_ = float(self.weight_entropy) * result.rows.total_weight
        for i, mapped in enumerate(self.feature_maps_):
            if isinstance(mapped, DiffusionMap):
                diffusion_map.warn_of_components(mapped, context.k, f" of view {i}")
        if "labels_" in vars(self) and (self.labels_ < 0).all():
            warn(
                "all rows are noise: their typicality is below noise_threshold="
                f"{self.noise_threshold}; take a lower noise_threshold, or a larger eta.",
                ConvergenceWarning,
            )

    # ---- prediction ------------------------------------------------------------------------------

    @by_partitions
    def typicality(self, X: Any) -> Array:
        """Typicality of the rows for each cluster.

        u_ij = 1 / (1 + (d_ij / eta)^(1/(m-1))) with the combined squared distances d_ij and the
        combined reference distance eta = sum_l alpha_l eta_l (Algorithm 2, step 2, of the paper).

        Parameters
        ----------
        X : list of {array-like, sparse matrix} of shape (n_samples, n_features_l), or one
            As in `fit`.

        Returns
        -------
        typicality : ndarray of shape (n_samples, n_clusters)
            In [0, 1]: 1/2 at the reference distance, near zero for noise.

        Raises
        ------
        ValueError
            If the model has no typicality.
        """
        check_is_fitted(self)
        if self.eta_ is None:
            raise ValueError("typicality needs possibilistic=True.")
        found = visits(self, X, -math.inf, ("distances",))
        return joined(
            typicalities(rows, self._objective, outputs["distances"]) for rows, *_, outputs in found
        )


_ENTRIES = "a name, a pair of a name and its gamma, or a DiffusionMap"


def _kernel_of_view(kernel: Any) -> _Kernel:
    """An entry of `kernels`, with what a name alone stands for."""
    if isinstance(kernel, DiffusionMap):
        return kernel
    if isinstance(kernel, str):
        if kernel == "linear":
            return None
        return DiffusionMap() if kernel == "diffusion" else (kernel, "mean")
    if isinstance(kernel, (list, tuple)) and len(kernel) == 2:
        return kernel[0], kernel[1]
    raise ValueError(f"kernels contains {kernel!r}, must have for each view {_ENTRIES}.")

"""Kernel power k-means of several views or kernels at once, with typicality against noise."""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rffpk.anneal.feature_fit import Problem
from rffpk.anneal.records import FLOAT32_RANGE, Eta, WeightedViews, reference_distances
from rffpk.anneal.schedule import FitContext, Result
from rffpk.choose.graph_choice import chosen_map
from rffpk.estimators import transformers
from rffpk.estimators.annealing import OF_VIEWS, search_parameters
from rffpk.estimators.base import parameters
from rffpk.estimators.bases import BaseEstimator
from rffpk.estimators.power import AnnealedClusterer
from rffpk.estimators.transformers import DiffusionMap, RandomFourierFeatures
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Identity
from rffpk.rows.checks import Auto, is_option
from rffpk.rows.dask_collections import by_partitions
from rffpk.rows.door import Schema, Shape
from rffpk.rows.rows import Rows
from rffpk.rows.sample import Opened
from rffpk.rows.store import Cache, ScaledColumns, check_cache
from rffpk.rows.sums import typicality
from rffpk.spaces import fourier
from rffpk.spaces.diffusion import DiffusionSpace, MapRows, Option, warn_of_graph
from rffpk.spaces.graph import PRECOMPUTED
from rffpk.spaces.neighbors import landmark_numbers_of, map_rows
from rffpk.spaces.whitening import WhiteningSpec
from rffpk.system.tuning import TUNING

MAX_TYPICALITY_M = 6.0

_Feature = Literal["diffusion", "linear"]  # entries of `kernels` that are not kernels

# A map that is not fitted; a number, the power of standard deviations that divide principal
# components of the columns; or None, for the columns themselves.
_Kernel = RandomFourierFeatures | DiffusionMap | float | None


@parameters
class Typicality(BaseEstimator):
    """How typical rows are of clusters: the parameter `typicality` of `RFFMultiKernelPowerKMeans`.

    A row at squared distance d from a centroid has the typicality u = 1 / (1 + (d /
    eta)^(1/(m-1))): 1/2 at the reference distance eta, near zero far away (Chen et al., algorithm 2
    of the source paper of that class). The defaults are what the word "auto" stands for.

    Parameters
    ----------
    eta : {"mean", "median"} or float, default="median"
        Reference distances: mean squared distances of the rows of a view from their mean feature,
        or the median of squared distances from the median feature. A number, 1e-30 to 1e30, is for
        all views.
    m : float, default=2.0
        Fuzzifier, 1 < m <= 6. The closer it is to one, the closer typicalities are to 0 and 1.

    Examples
    --------
    >>> from rffpk import RFFMultiKernelPowerKMeans, Typicality
    >>> model = RFFMultiKernelPowerKMeans(2, kernels="rbf", typicality=Typicality(m=1.5))
    >>> model.fit([[0.0], [0.2], [5.0], [5.2]]).predict_typicality([[0.1]]).shape
    (1, 2)
    """

    eta: Eta | float = "median"
    m: float = 2.0


def _check_typicality(typicality: Any) -> None:
    """Check the parameter `typicality`."""
    if typicality is None:
        return
    if not isinstance(typicality, Typicality):
        checks.check_choice(typicality, "typicality", ("auto",), "a Typicality or None")
        return
    checks.check_real(typicality.m, "typicality.m", 1, MAX_TYPICALITY_M, include="right")
    if isinstance(typicality.eta, str):
        checks.check_choice(typicality.eta, "typicality.eta", get_args(Eta), also="a number > 0")
    else:
        checks.check_real(typicality.eta, "typicality.eta", *FLOAT32_RANGE)


@parameters
class RFFMultiKernelPowerKMeans(AnnealedClusterer):
    """Kernel power k-means of several views or kernels on random Fourier features (IP-RFF-MKPKM).

    Minimizes (algorithm 2, eq. (20) of Chen et al.: Enhancing kernel power k-means: scalable and
    robust clustering with random Fourier features and possibilistic method)

        sum_i M_s(d'_i1, ..., d'_ik) + lambda sum_l alpha_l log(L alpha_l),
        d'_ij = u_ij^m d_ij + (1 - u_ij)^m sum_l alpha_l eta_l,
        d_ij = sum_l alpha_l ||phi_l(x_i) - theta_jl||^2,

    over centroids theta_jl, weights alpha >= 0, of sum one, of L views, and typicalities u_ij in
    [0, 1], while the exponent s of M_s(y) = ((1/k) sum_j y_j^s)^(1/s) falls to minus infinity. That
    algorithm is ``annealing="paper", kernels=None, n_frequencies="paper"``.

    With n rows, d_l columns of view l and D frequencies a view a pass costs O(n sum_l (d_l + k) D)
    time; memory beyond X is O(n), with stored features O(n L D). Rules:
    ``docs/maintainers/views.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Starts, >= 1. "auto": 3; 1 for k >= 100 without typicality, another `init` or schedule.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    annealing : {"auto", "paper"}, Annealing or None, default="auto"
        How s falls. "auto": adaptively, then k-means; None: k-means alone; "paper": as published.
    sample : "auto", int or None, default="auto"
        Number of rows, at least k, that starts run on. "auto": max(20 000, 50 k). None: all rows.
    init : {"k-means++", "random", "k-means"}, array or callable, default="k-means++"
        Initial centroids: rows; "k-means" adds passes of k-means. An array has k rows in the form
        of X; a callable (features, n_clusters, random_state=...) returns centroids of features.
    max_iter : int, default=1000
        Largest number of passes of a start, on each larger sample, and on all rows.
    tol : float, default=0.001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
    noise : "auto", float or None, default=None
        Share of weight, in (0, 1), to label -1 as noise; "auto": beyond a gap (``docs/noise.md``).
    typicality : None, "auto" or Typicality, default=None
        Resists outliers, at the cost of small clusters. None: u_ij = 1. "auto": `Typicality()`.
    weight_entropy : float, default=1.0
        Lambda over the sum of sample weights, 1e-30 to 1e30; small: few views get the weight.
    kernels : str, list or None, default="auto"
        One kernel for all views, or a list with one for each: "rbf", "laplacian", "cauchy" or a
        pair with gamma, "diffusion", "linear" (the columns), ("linear", e) (components by
        ``docs/math.md``, eq. (20.1)), or a map. One array is a view of each. "auto": graphs and
        components of each view and of all. None: "rbf", for one array with 4, 1, 1/4 of mean gamma.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    n_frequencies : {"auto", "paper"} or int, default="auto"
        Number of random frequencies D, at least 1. "auto": of 128, 256, ..., 8192 the least with a
        kernel error of 0.02 (``docs/math.md``, eq. (9.5)). "paper": ceil(4 log^3(2 k)), iid.
    allow_missing_views : bool, default=False
        Whether a row may lack views (NaN, or None in a list): distances are over the other views.
    cache : "auto", bool or int, default="auto"
        Bytes for stored features. "auto": if faster, 1/4 of memory. True: all, or a MemoryError.

    Attributes
    ----------
    feature_maps_ : list of RandomFourierFeatures, DiffusionMap, callables and None
        Fitted maps of the views; None: the columns. Of several views, diffusion features and the
        columns of "linear" get a total variance of one.
    cluster_centers_ : ndarray of shape (n_clusters, total number of features)
        Centroids in feature space, in the dtype of X, with the views side by side.
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights alpha >= 0 of sum one: one for each view if `kernels` names one for each view. By
        default there are several for each view (``docs/api.md``).
    eta_ : ndarray of shape (n_views,), or None
        Reference distances; None if `typicality` is None.
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimized sum; its last finite s; s of `predict_proba`.
    lambda_ : float
        Entropy weight: `weight_entropy` times the sum of the sample weights.
    n_iter_, sample_size_ : int
        Number of passes of the best start and of all that followed it; rows that starts ran on.
    cache_ : bool
        Whether the features of all rows were stored.
    history_ : list of dict
        Records of passes and starts, in order; ``docs/api.md`` describes their keys.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.
    outlier_scores_ : ndarray of shape (n_samples,)
        From 0 to 1, rising with the distance from other rows, above 1/2 for noise; set with `noise`
        if rows are in memory.

    Examples
    --------
    >>> from rffpk import RFFMultiKernelPowerKMeans
    >>> views = [[[0.0], [0.2], [5.0], [5.2]], [[1.0], [1.1], [7.0], [7.1]]]  # of four rows
    >>> RFFMultiKernelPowerKMeans(2, random_state=0).fit_predict(views).tolist()
    [1, 1, 0, 0]
    """

    typicality: Auto | Typicality | None = None
    weight_entropy: float = 1.0
    kernels: Auto | fourier.Kernel | _Feature | list[Any] | tuple[Any, ...] | None = "auto"
    views: Any = None
    n_frequencies: fourier.Frequencies | int = "auto"
    allow_missing_views: bool = False
    cache: Cache = "auto"
    cache_: bool = field(init=False)  # what a fit sets

    _paper, _takes = OF_VIEWS, Schema("", several=True, warns_of_kernels=True)

    # ---- parameters and views --------------------------------------------------------------------

    def _problem(self) -> Problem:
        """Check the parameters, and return the problem that they define."""
        search = search_parameters(self)
        _check_typicality(self.typicality)
        may_lack = checks.check_bool(self.allow_missing_views, "allow_missing_views")
        if may_lack and isinstance(self.n_clusters, str):
            raise ValueError(
                f"n_clusters={self.n_clusters!r}: needs all views of all rows. Pass a number with "
                "allow_missing_views=True."
            )
        fourier.check_n_frequencies(self.n_frequencies)
        checks.check_real(self.weight_entropy, "weight_entropy", *FLOAT32_RANGE)
        kernels = self._kernels_of_views(1)  # for checks; the number of views is not yet known
        for i, kernel in enumerate(kernels):
            listed = isinstance(self.kernels, (list, tuple))
            with checks.named(f"kernels[{i}]" if listed else "kernels"):
                _check_kernel(kernel)
        maps = [each for each in kernels if isinstance(each, DiffusionMap)]
        return Problem(
            search, maps=self._maps, objective=self._objective_of,
            cache=check_cache(self.cache), published=self._published,
            n_map_rows=max((map_rows(each.n_landmarks) for each in maps), default=0),
        )  # fmt: skip

    def _kernels_of_views(self, n_views: int) -> list[_Kernel]:
        """Return a checked kernel for each view, from the parameter `kernels`.

        With "auto", each of the `n_views` views, and their columns side by side, have several
        kernels. Each kernel then makes a view of its own."""
        kernels = "rbf" if self.kernels is None else self.kernels
        if is_option(kernels, "auto"):
            n_tables = n_views + self._are_joined(n_views)
            graphs = [DiffusionMap(whitening=None)] * n_views
            graphs += [DiffusionMap(whitening=TUNING.graph.view_whitening)] * n_tables
            return [*graphs, *[TUNING.graph.view_whitening] * n_tables]
        fourier.refuse_function_of_matrices(kernels, "kernels")
        if isinstance(kernels, str):
            kernels = [kernels] * n_views
        if not isinstance(kernels, (list, tuple)) or not kernels:
            raise TypeError(
                f"kernels={kernels!r}: must be a name, or a list with {_ENTRIES} for each view."
            )
        for i, kernel in enumerate(kernels):
            word = kernel[0] if isinstance(kernel, (list, tuple)) and kernel else kernel
            fourier.refuse_function_of_matrices(word, f"kernels[{i}]")
        return [self._kernel_of_view(kernel) for kernel in kernels]

    def _kernel_of_view(self, kernel: Any) -> _Kernel:
        """Return the kernel for an entry of `kernels`.

        The result is a transformer with its parameters. For linear kernels it is None, or the power
        in ("linear", power). A name stands for default parameters."""
        if isinstance(kernel, (DiffusionMap, RandomFourierFeatures)):
            return kernel
        if is_option(kernel, "diffusion"):
            return DiffusionMap()
        pair = isinstance(kernel, (list, tuple)) and len(kernel) == 2
        if not (pair or isinstance(kernel, str)):
            raise ValueError(f"kernels contains {kernel!r}, must have for each view {_ENTRIES}.")
        parameter: Any = None if kernel == "linear" else "mean"
        name, parameter = kernel if pair else (kernel, parameter)
        if is_option(name, "linear"):
            return parameter
        D: Any = self.n_frequencies
        return RandomFourierFeatures(D, kernel=name, gamma=parameter)

    def _schema(self) -> Schema:
        may_lack = bool(self.allow_missing_views)
        return super()._schema()._replace(may_lack=may_lack, arrange=self._views_of)

    def _views_of(self, shape: Shape) -> tuple[int, ...]:
        """Return, for each view of the fit, the index of the table that it is computed from.

        A table is a view of X. With kernels="auto", one more table may have all columns of X, as
        the last. Several views may be computed from one table: kernels=None stands for a bank of
        kernels if X is one table."""
        n = len(shape.widths)
        tables = [*range(n)]
        if is_option(self.kernels, "auto"):  # in the order of `_kernels_of_views`
            return (*tables, *2 * [*range(n + self._are_joined(n))])
        n_kernels = len(self._kernels_of_views(n))
        if shape.has_views and n_kernels != n:
            raise ValueError(f"kernels has {n_kernels} entries for {n} views.")
        bank = self.kernels is None and not shape.has_views
        return (*tables * (len(TUNING.fourier.bank) if bank else n_kernels // n),)

    def _are_joined(self, n_views: int) -> bool:
        """Return whether kernels="auto" adds a table with the columns of all views side by side."""
        return n_views > 1 and not self.allow_missing_views

    # ---- fitting ---------------------------------------------------------------------------------

    def _maps(self, sample: Opened, context: FitContext) -> list[Any]:
        """Fit a feature map to each view, and set `feature_maps_`; return the maps.

        By default a single view has a bank of Gaussian kernels, with factors of one bandwidth."""
        kernels = self._kernels_of_views(len(self._shape.widths))
        if self.kernels is None and not self._shape.has_views:
            x, weight = sample.some_with(0)
            random = np.random.RandomState(context.random.randint(2**31 - 1))
            mean = fourier.resolve_gamma(
                x, "rbf", "mean", weight, random, context.n_threads, partial(sample.moments, 0)
            )
            D: Any = self.n_frequencies
            bank = TUNING.fourier.bank
            kernels = [RandomFourierFeatures(D, gamma=factor * mean) for factor in bank]
        maps = [self._fit_map(sample, i, kernel, context) for i, kernel in enumerate(kernels)]
        self.feature_maps_ = [published for published, _ in maps]
        return [fitted for _, fitted in maps]

    def _fit_map(
        self, sample: Opened, view: int, kernel: _Kernel, context: FitContext
    ) -> tuple[Any, Any]:
        """Fit the feature map of a view; return a transformer for users, and a map for the fit.

        The transformer is None for the columns of a single view."""
        scales = self._scales(sample, view)
        if isinstance(kernel, DiffusionMap):
            X, weight = sample.some_with(view)
            k, spec, n_threads = context.k, transformers.diffusion_spec(kernel), context.n_threads
            if is_option(self.kernels, "auto"):
                tuning = TUNING.landmarks
                # With few columns, eigenvectors of a graph of all rows gather on few rows. So its
                # nodes are fewer landmarks.
                # one view of several, not all columns side by side
                is_alone = scales is None and self._are_joined(len(self._shape.widths))
                if is_alone and len(X) > tuning.view_rows and X.shape[1] <= tuning.view_columns:
                    spec = replace(spec, n_landmarks=landmark_numbers_of(X, "auto", k)[1])
                kept = TUNING.choice.kept
                rows = MapRows(X, weight, k, n_threads, spec, scales=scales, kept=kept)
                whitening = None if kernel.whitening is None else TUNING.graph.view_whitening
                option = Option(whitening, 1, unit=True)  # 1: the default number of neighbors
                seed = context.random.randint(2**31 - 1)
                fitted = rows.draw(option, "combined", seed).fitted(unit_variance=True)
            else:
                fitted, _ = chosen_map(
                    spec, X, weight, k, context.random, n_threads, unit_variance=True
                )
            mapped = transformers.diffusion_map(self, fitted, X.shape[1])
            # without missing views, the features of the fitted rows are known already
            return mapped, fitted.known() if context.coverage is None else fitted.space
        if isinstance(kernel, RandomFourierFeatures):
            fourier_map = transformers.fit_fourier(
                self, kernel, sample, view, context.k, context.random
            )
            return fourier_map, fourier_map._space
        if kernel is None and len(self._shape.views) == 1:
            return None, Identity(sample.xs[view].shape[1])
        if kernel is None:
            return 2 * (ScaledColumns(_spread(sample, view)),)  # the same map for users and the fit
        unit_variance = len(self._shape.views) > 1 and not is_option(self.kernels, "auto")
        powers = WhiteningSpec(kernel, scales, unit_variance)
        return 2 * (powers.fit(sample, view, context.k, context.random, context.n_threads),)

    def _scales(self, sample: Opened, view: int) -> Array | None:
        """Return a scale for each column, if `view` is made of all columns of X; else None.

        The scales give each view of X a total variance of one."""
        if self._shape.views[view] < len(self._shape.widths):
            return None
        roots = [_spread(sample, i) for i in range(len(self._shape.widths))]
        return np.repeat(1 / np.array(roots), self._shape.widths)

    def _objective_of(self, rows: Rows, context: FitContext) -> WeightedViews:
        """Return the objective, with reference distances from `rows` if there is typicality."""
        entropy = float(self.weight_entropy)
        if self.typicality is None:
            return WeightedViews(entropy, coverage=rows.coverage)
        given = Typicality() if isinstance(self.typicality, str) else self.typicality
        eta = reference_distances(rows, given.eta)
        return WeightedViews(entropy, eta, float(given.m), rows.coverage)

    def _published(self, result: Result) -> None:
        """Set the attributes of the objective; warn of graphs that do not suit k clusters."""
        alpha, context = result.rows.alpha, result.data.context
        self.eta_ = result.data.objective.eta
        self.kernel_weights_ = alpha if context.coverage is None else alpha / alpha.sum()
        self.lambda_ = float(self.weight_entropy) * result.rows.total_weight
        maps = zip(self._shape.views, self.feature_maps_, self._centroids.maps)
        for table, mapped, space in maps:
            if isinstance(space, DiffusionSpace):
                # words for the warning: which graph it is
                one = "" if len(self._shape.widths) == 1 else f" of view {table}"
                of = one if table < len(self._shape.widths) else " of all views together"
                of += "" if mapped.whitening_ is None else ", whitened,"
                warn_of_graph(space, mapped.n_neighbors, context.k, of)

    # ---- prediction ------------------------------------------------------------------------------

    @by_partitions
    def predict_typicality(self, X: Any) -> Array:
        """Return the typicality of the rows for each cluster.

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
            raise ValueError("predict_typicality needs typicality in the fit, but it was None.")
        parts, m = list[Array](), self._centroids.objective.m
        for visit in self._fitted_model().passes(X, -math.inf, ("distances",)):
            distances = visit.outputs["distances"]
            eta = visit.rows.combined(self.eta_).astype(distances.dtype)
            parts.append(typicality(distances, eta, m))
        return np.concatenate(parts)


def _spread(sample: Opened, view: int) -> float:
    """Return the root of the total variance of a view, or 1 if the variance is zero."""
    return math.sqrt(sample.moments(view).variance) or 1.0


def _check_kernel(kernel: _Kernel) -> None:
    """Check the parameters of the kernel of a view."""
    if isinstance(kernel, DiffusionMap):
        if transformers.diffusion_spec(kernel).metric == PRECOMPUTED:
            raise ValueError("metric='precomputed': is for DiffusionPowerKMeans only.")
    elif isinstance(kernel, RandomFourierFeatures):
        fourier.check_n_frequencies(kernel.n_frequencies)
        fourier.check_kernel(kernel.kernel, kernel.gamma, kernel.sampling)
    elif kernel is not None:
        checks.check_real(kernel, "the power of 'linear'", 0, 1)


_ENTRIES = (
    "a name, a pair of a name and its gamma, a pair of 'linear' and a power, a DiffusionMap or "
    "RandomFourierFeatures"
)

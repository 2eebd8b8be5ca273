"""Kernel power k-means of several views or kernels at once, with typicality against noise."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rffpk._anneal.annealing import OF_VIEWS
from rffpk._anneal.centroid_model import joined, typicalities, visits
from rffpk._anneal.fit import FitResult, Problem
from rffpk._anneal.objective import ETA_RANGE, Eta, WeightedViews, reference_distances
from rffpk._anneal.search import FitContext
from rffpk._rows.rows import Rows
from rffpk._rows.sample import RowSample
from rffpk._rows.store import Cache, check_cache
from rffpk._rows.views import check_views
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.dask_collections import by_partitions
from rffpk._utils.estimator import parameters
from rffpk._utils.sparse_rows import Columns, side_by_side
from rffpk._utils.validation import Auto, is_option
from rffpk.diffusion import chosen_map
from rffpk.maps import diffusion_map, fourier
from rffpk.maps.diffusion_map import DiffusionMap, fit_diffusion_map
from rffpk.maps.fourier import RandomFourierFeatures
from rffpk.maps.neighbours import map_rows
from rffpk.maps.whitening import whitened_view
from rffpk.power import AnnealedClusterer

# Multiples of the "mean" gamma for a single array: bandwidths of one half, one and two times that
# of the mean.
_BANK = (4.0, 1.0, 0.25)

MAX_TYPICALITY_M = 6.0

_WHITENING = 0.5  # of the columns with kernels="auto"

_Feature = Literal["diffusion", "linear"]  # an entry of `kernels` besides kernels

# The map that has the parameters of another; or the columns, by their principal components with a
# power of the standard deviations, or, None, themselves.
_Kernel = RandomFourierFeatures | DiffusionMap | float | None

_RANGE = (1e-30, 1e30)  # of weight_entropy, so that float32 holds it too


@parameters
class Typicality(BaseEstimator):
    """How typical rows are of clusters: the parameter `typicality` of `RFFMultiKernelPowerKMeans`.

    With the reference distance eta a row at squared distance d from a centroid has the typicality u
    = 1 / (1 + (d / eta)^(1/(m-1))) for its cluster: one at the centroid, 1/2 at eta, and near zero
    far away [1]_. With its defaults it is what the word "auto" stands for.

    Parameters
    ----------
    eta : {"mean", "median"} or float, default="median"
        Reference distances, fixed before annealing. "mean": the mean squared distance of a view's
        rows from their mean feature, the paper's choice if all centroids are at that mean.
        "median": the median of the squared distances from the median feature, on a sample, which
        outliers do not inflate. A number from 1e-30 to 1e30: the same for all views.
    m : float, default=2.0
        Fuzzifier of the typicalities, 1 < m <= 6. The closer it is to one, the closer they are to 0
        and 1.

    References
    ----------
    .. [1] Chen et al.: Enhancing kernel power k-means: scalable and robust clustering with random
       Fourier features and possibilistic method. Algorithm 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import RFFMultiKernelPowerKMeans, Typicality
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = RFFMultiKernelPowerKMeans(3, kernels="rbf", typicality=Typicality(m=1.5))
    >>> model.fit(X).predict_typicality(X).shape
    (150, 3)
    """

    eta: Eta | float = "median"
    m: float = 2.0


def _check_typicality(typicality: Any) -> None:
    """The parameter `typicality`."""
    if typicality is None:
        return
    if not isinstance(typicality, Typicality):
        validation.check_choice(typicality, "typicality", ("auto",), "a Typicality or None")
        return
    validation.check_real(typicality.m, "typicality.m", 1, MAX_TYPICALITY_M, include="right")
    if isinstance(typicality.eta, str):
        validation.check_choice(
            typicality.eta, "typicality.eta", get_args(Eta), also="a number > 0"
        )
    else:
        validation.check_real(typicality.eta, "typicality.eta", *ETA_RANGE)


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
    n_clusters : int, default=8
        Number of clusters k, from 1 to n_samples.
    n_init : "auto" or int, default="auto"
        Number of starts; the best result is kept. If `init` is "k-means++", and `annealing` is
        "auto" or sets `end` and `swaps` alone, the starts differ: the last one is annealed slowly
        from the critical exponent, with random disturbances of the centroids before each stage; the
        others are, in turn, annealed quickly from the smaller of -5 and twice the critical
        exponent, and not annealed at all (plain k-means++). A start is dropped when the power mean
        is within 1 % of its limit and the objective 2 % above the best result so far. "auto": three
        if the starts differ, otherwise one. If neither view weights nor typicality are part of the
        objective, starts that are not annealed begin at merged centroids from 20 clusters on, and
        from 100 clusters on "auto" is one of these: eight centroids for each cluster are drawn as
        "k-means++" draws them and moved by a few passes, one more for each is drawn among the rows
        that are far from them, and Ward's method merges all. An array or a callable as `init` is
        always one start.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that gamma is estimated from, the frequencies, the sample, the initial
        centroids, and their disturbances and swaps. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, from -1024 to 1024 except 0. None and -1: all that the affinity mask of
        the process, the quota of the container, OMP_NUM_THREADS and threadpoolctl allow; -2: all of
        these except one, and so on. `rffpk info` prints the limits. Small problems take fewer.
        Results are the same to the bit for any number of threads.
    verbose : int, default=0
        If not 0, each pass is reported with the start, the stage, the exponent, the objective, the
        rows visited in a second, the time elapsed, and a rough time left once a start has ended: on
        a terminal in one line that changes, if tqdm is installed, else in a line for each pass. The
        logger "rffpk" gets the same lines at level DEBUG, whatever `verbose` is.
    annealing : {"auto", "paper"}, Annealing or None, default="auto"
        How the exponent s falls. "auto": as an `Annealing` with its defaults says, from the
        critical exponent, while the centroids converge at each stage, to passes of k-means; its
        other values are for other schedules, and for rows that stay assigned softly. None: not at
        all, which is plain k-means from `init`. "paper": as the source paper says,
        ``Annealing(start=-5.0, factor=1.04, passes=2, until="objective")`` with `sample` None and
        `init` "k-means" in place of their defaults; its features are ``kernels=None,
        n_frequencies="paper"``. It names no `tol`: ``docs/papers`` has 1e-6, and
        with 1e-3 most fits end near the first exponent.
    sample : "auto", int or None, default="auto"
        Number of rows that the starts run on: a random sample without replacement, in which heavy
        rows are likelier, of at least n_clusters rows. It depends on `random_state` and the numbers
        of the rows alone. The best result is then improved on larger samples and at last on all
        rows until convergence. "auto": 20 000 rows, or 50 for each cluster if that is more. None,
        or a number >= n_samples: all rows.
    init : {"k-means++", "random", "k-means"}, array or callable, default="k-means++"
        Initial centroids. "k-means++" and "random" choose them among the seeding rows. These are
        random rows of those that the starts run on, others for each start: as many as have two
        million features together, at most 20 000 and at least 20 for each cluster, or all if there
        are fewer. "k-means" chooses as "k-means++" and goes on with passes of k-means before a
        start. An array holds initial centroids in the shape of `cluster_centers_`. A callable gets
        (features of the seeding rows, n_clusters, random_state=...) and returns such an array.
        Centroids that are given are kept: if `annealing` is "auto", or sets `end` and `swaps`
        alone, they are not annealed, but moved at once by passes at the end of annealing.
    max_iter : int, default=1000
        Largest number of passes of a start, and of the passes on each larger sample and on all rows
        that follow. ``init="k-means"`` may take as many before a start; swaps are not counted.
    tol : float, default=0.001
        Tolerance >= 0: passes have converged when the root mean square shift of the centroids in
        one pass is at most `tol` times the standard deviation of the features (the root of their
        total variance). At 1e-3 a pass of k-means lowers the objective by some millionths of
        itself.
    noise : "auto", float or None, default=None
        Which rows are noise: those that are far from their nearest rows. They get the label -1, and
        centroids are searched among the other rows. The distance of a row is that to the fifth
        nearest row of a sample, in the columns (``docs/noise.md``). A number in (0, 1): the
        farthest rows, with a share of the weight as near to this number as possible; those at the
        border that are equally far away are kept. "auto": the rows beyond a gap of the distances,
        if there is one. None: no row. Collections of Dask and missing views are refused.
    typicality : None, "auto" or Typicality, default=None
        Whether rows have typicalities, which resist noise and outliers but may take a small cluster
        for noise. None: u_ij = 1, the method RFF-MKPKM. "auto": as a `Typicality` with its defaults
        says, whose other values are for other reference distances eta_l and fuzzifiers m.
    weight_entropy : float, default=1.0
        Entropy weight lambda, divided by the sum of the sample weights, from 1e-30 to 1e30. The
        smaller it is, the more weight goes to the views with small sums of squared distances.
    kernels : str, list or None, default="auto"
        "auto" takes of each view the diffusion features of its columns, those of its columns with
        ``whitening=0.5``, and these columns; of several views side by side, each with a total
        variance of one, the last two, unless rows may lack views. These are the views that have
        weights, in this order. Otherwise for each view the name of a kernel of
        `RandomFourierFeatures` ("rbf", "laplacian" or "cauchy"), or a pair of a name and its gamma,
        a number or one of "mean", "median" and "scale"; "mean", the gamma of names alone, is 1 / (2
        mean distance) over pairs of rows. `RandomFourierFeatures` in their place have a number of
        frequencies and a `sampling` of their own. "diffusion", or a `DiffusionMap` with other
        parameters, gives a view diffusion features; neither of the two need be fitted. "linear"
        takes its columns as they are, so scale them like those of the other views; the pair
        ``("linear", e)`` takes their leading principal components, two for each cluster at most,
        each divided by the power e, from 0 to 1, of its standard deviation; 0 only projects, 1
        gives all the same variance. From 8 components on, rows are scaled to length one. A str is
        the same for all views. A single array becomes as many views as there are kernels. None, the
        source paper's: "rbf" with "mean" gamma for each view; a single array becomes three views,
        with 4, 1 and 1/4 times that gamma.
    views : list or None, default=None
        The columns of each view, if X is one array: lists or arrays of their indices or names,
        boolean masks, or slices. Such an X can be split by rows, as cross-validation does. None: X
        is a list of views, or one view. Views that are frames must have equal indices.
    n_frequencies : {"auto", "paper"} or int, default="auto"
        Number of random frequencies D, at least 1; each gives two features. "paper": ceil(4 log^3(2
        k)) independent ones for k clusters (Chen et al., theorem 3). "auto": the least of 128, 256,
        512, ... whose mean squared error of the kernel, over pairs of a sample of the rows, is at
        most 0.02 of the kernel's variance over these pairs. The most are 8192, or as many as make
        2^25 numbers for 20 000 rows; a warning says if they do not suffice. The number does not
        depend on k.
    allow_missing_views : bool, default=False
        Whether rows may lack views: all columns of the view are NaN then, or, in a view that is a
        list of rows, the entry is None. A row's distance is taken over the views that it has, with
        their weights scaled to a sum of one, and it counts in proportion to the sum of these
        weights (``docs/math.md``, section 19). At least n_clusters rows must have each view. A
        sparse view is one that all rows have.
    cache : "auto", bool or int, default="auto"
        Whether the features of all rows are computed once and stored, in the dtype of X, instead of
        computed anew in each pass. "auto": if they take no more than a quarter of what the machine,
        or the container, has available, or 16 MB, and if by a model of the costs it at least halves
        the time of the passes over all rows (of 30, or of 5 after a sample). A number: the same,
        with at most so many bytes. The features of a sample are stored unless `cache` is False,
        within the same limit. Results are the same up to rounding, in the starts up to that of
        float32.

    Attributes
    ----------
    feature_maps_ : list of RandomFourierFeatures, DiffusionMap and None
        Fitted feature maps, one for each view; those with random frequencies have D each. Diffusion
        features are divided by the root of their total variance, since they have no unit. None:
        the columns are the features. A function of them for principal components.
    cluster_centers_ : ndarray of shape (n_clusters, total number of features)
        Centroids in feature space, in the dtype of X, those of the views side by side; a view with
        random frequencies has 2 D features.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of its nearest centroid; -1 for noise (see `noise`).
    kernel_weights_ : ndarray of shape (n_views,)
        Weights alpha >= 0 of the views, of sum one.
    eta_ : ndarray of shape (n_views,), or None
        Reference distances; None if `typicality` is None.
    inertia_ : float
        Kernel k-means objective of `labels_` with the kernel sum_l alpha_l k_l, without typicality:
        the weighted sum of squared distances of the rows, but noise, to the means of their
        clusters.
    objective_ : float
        What is minimised, with the sum over rows weighted by the sample weights, at the exponent
        `s_` and `cluster_centers_`: eq. (20) of [1]_ plus the constant lambda log L, so that it is
        >= 0.
    lambda_ : float
        Entropy weight: `weight_entropy` times the sum of the sample weights.
    s_ : float
        Last finite exponent of the best start. If that start was plain k-means: the last finite
        exponent of the last start; if no start was annealed, the exponent at which annealing would
        end at the best centroids.
    n_iter_ : int
        Number of passes of the best start and of all that followed it, swaps included.
    sample_size_ : int
        Number of rows that the starts ran on.
    cache_ : bool
        Whether the features of all rows were stored.
    history_ : list of dict
        Records of what was done, in order. Each pass has a record with "stage", "start" (number of
        its start, from 0), "kept" (whether the result goes back to this start), "rows" (number of
        rows visited), "s" (the exponent; -inf for hard assignment), "objective" (before the
        centroids moved), "shift" (of the centroids, relative as in `tol`), "distinct" (number of
        centroids that do not coincide; swaps of batches have more centroids than n_clusters for
        some passes), "repairs" (number of empty clusters whose centroid was moved to one of the
        rows farthest from theirs), "kernel_weights" (of the views, before the pass) and "seconds".
        The stages are "k-means" (of ``init="k-means"``), "anneal" (while s falls), "hard" (passes
        of k-means after annealing), "settle" (passes at a finite exponent until convergence) and
        "swap" (passes of a trial that moves centroids). Unless `init` is an array, the passes of a
        start follow a record of stage "seeding" with "rows", the number of seeding rows (see
        `init`). After all starts each of them has a record of stage "start" with "start", "kind"
        ("given": as the parameters say; "critical", "low", "k-means++": slowly annealed, quickly
        annealed and not annealed starts, and "merged", from merged centroids, see `n_init`),
        "rows", "passes", "objective" (at its end; infinite if it was dropped) and "outcome"
        ("kept", "lost" or "dropped").
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows in the clusters, as `predict_proba` returns them; set only if
        `store_memberships`.
    probabilities_ : ndarray of shape (n_samples,)
        Membership of each row in its own cluster, 0 for noise; there only if `store_memberships`.
    n_features_in_ : int
        Number of columns of X in `fit`; if X was a list of views, of all of them together.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns of X in `fit`; set only if X was one array and all of its columns have
        names that are strings.
    membership_exponent_ : float
        Exponent of the memberships that `predict_proba` gives unless told otherwise: `s_` if rows
        were assigned softly, else -(1 + d)/2 with the effective dimension d of the clusters:
        1/lambda_max of the mean of zz' over the unit vectors z from centroids to their rows.
    linkage_ : ndarray of shape (n_clusters - 1, 4)
        Ward's tree of the clusters, by centroids and weights, as a linkage matrix of SciPy: half
        the square of a height is what the merger adds to the k-means objective, in the space of the
        centroids. The last column counts clusters. Computed when it is asked for, in
        O(n_clusters^2) time and memory.
    outlier_scores_ : ndarray of shape (n_samples,)
        Scores from 0 to 1, which rise with the distance of a row from others; above 1/2 for noise.
        Set if `noise` is not None.

    Raises
    ------
    ValueError, TypeError
        If a parameter or a view is not as described; the view is named.
    MemoryError
        If ``cache=True`` and the features take more than a quarter of the available memory.

    Notes
    -----
    One pass over the rows covers all views: with n rows, d_l columns of view l and D frequencies a
    view it takes O(n sum_l (d_l + k) D) time; memory beyond X is O(n), and O(n L D) if features are
    stored. Sparse views have their mean number of entries in place of d_l, except with "linear"
    beside other views, where rows are written out, a few at a time. The typicalities are updated
    before the weights of the power mean, not after them as in the printed algorithm: both orders
    have the same fixed points, and the objective falls at each step. The critical exponent is that
    of the objective with typicality.

    Where rows lack views (see `allow_missing_views`) the terms of the objective are multiplied by
    the sums of the view weights of the rows, whose mean is one, so that it still falls at each
    step (``docs/math.md``, eq. 19.1); centroids are means over the rows that have the view. Starts
    then run on all features, not on principal components.

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
    >>> model.kernel_weights_.shape  # of graphs and components of each view and of both
    (8,)
    """

    typicality: Auto | Typicality | None = None
    weight_entropy: float = 1.0
    kernels: Auto | fourier.Kernel | _Feature | list[Any] | tuple[Any, ...] | None = "auto"
    views: Any = None
    n_frequencies: fourier.Frequencies | int = "auto"
    allow_missing_views: bool = False
    cache: Cache = "auto"

    _paper = OF_VIEWS

    # ---- parameters and views --------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_typicality(self.typicality)
        validation.check_bool(self.allow_missing_views, "allow_missing_views")
        fourier.check_n_frequencies(self.n_frequencies)
        check_cache(self.cache)
        validation.check_real(self.weight_entropy, "weight_entropy", *_RANGE)
        for kernel in self._kernels_of_views(1):
            if isinstance(kernel, DiffusionMap):
                diffusion_map.check_diffusion(kernel)
                if validation.is_graph(kernel):
                    raise ValueError(
                        "kernels has a DiffusionMap with metric == 'precomputed', which only "
                        "DiffusionPowerKMeans takes."
                    )
            elif isinstance(kernel, RandomFourierFeatures):
                fourier.check_n_frequencies(kernel.n_frequencies)
                fourier.check_kernel(kernel.kernel, kernel.gamma, kernel.sampling)
            elif kernel is not None:
                validation.check_real(kernel, "e in ('linear', e) of kernels", 0, 1)

    def _kernels_of_views(self, n_views: int) -> list[_Kernel]:
        """What defines the features of each view, or of each repetition of the views."""
        kernels = "rbf" if self.kernels is None else self.kernels
        if is_option(kernels, "auto"):
            n_tables = n_views + self._are_joined(n_views)
            graphs = [DiffusionMap(whitening=None)] * n_views
            graphs += [DiffusionMap(whitening=_WHITENING)] * n_tables
            return [*graphs, *[_WHITENING] * n_tables]
        if isinstance(kernels, str):
            kernels = [kernels] * n_views
        if not isinstance(kernels, (list, tuple)) or not kernels:
            raise TypeError(
                f"kernels == {kernels!r}, must be a name, or a list with {_ENTRIES} for each view."
            )
        return [self._kernel_of_view(kernel) for kernel in kernels]

    def _kernel_of_view(self, kernel: Any) -> _Kernel:
        """An entry of `kernels`, with what a name alone stands for."""
        if isinstance(kernel, (DiffusionMap, RandomFourierFeatures)):
            return kernel
        if is_option(kernel, "diffusion"):
            return DiffusionMap()
        pair = isinstance(kernel, (list, tuple)) and len(kernel) == 2
        if not (pair or isinstance(kernel, str)):
            raise ValueError(f"kernels contains {kernel!r}, must have for each view {_ENTRIES}.")
        parameter: Any = None if kernel == "linear" else "mean"
        name, parameter = kernel if pair else (kernel, parameter)
        return parameter if is_option(name, "linear") else self._random_features(name, parameter)

    def _random_features(self, kernel: Any, gamma: Any) -> RandomFourierFeatures:
        D: Any = self.n_frequencies
        return RandomFourierFeatures(D, kernel=kernel, gamma=gamma)

    def _check_views(self, X: Any, reset: bool) -> list[Columns]:
        tables = check_views(self, X, reset=reset)
        if reset:
            self._tables = self._tables_of_views(len(tables))
        if len(tables) in self._tables:
            tables = [*tables, side_by_side(tables)]
        return [tables[i] for i in self._tables]

    def _tables_of_views(self, n: int) -> list[int]:
        """Of each view the number of the table, of n that are given, that it has the columns of; n
        is that of all of them side by side."""
        given = [*range(n)]
        if is_option(self.kernels, "auto"):
            all_tables = [*range(n + self._are_joined(n))]
            return given + 2 * all_tables
        n_kernels = len(self._kernels_of_views(n))
        if self._n_views and n_kernels != n:
            raise ValueError(f"kernels has {n_kernels} entries for {n} views.")
        bank = self.kernels is None and not self._n_views
        return given * (len(_BANK) if bank else n_kernels // n)

    def _are_joined(self, n_views: int) -> bool:
        """Whether all views side by side are another one, with ``kernels="auto"``."""
        return n_views > 1 and not self.allow_missing_views

    # ---- fitting ---------------------------------------------------------------------------------

    def _problem(self, **more: Any) -> Problem:
        maps = [each for each in self._kernels_of_views(1) if isinstance(each, DiffusionMap)]
        return super()._problem(
            maps=self._maps, objective=self._objective_of, cache=self.cache,
            published=self._published,
            n_map_rows=max((map_rows(each.n_landmarks) for each in maps), default=0), **more,
        )  # fmt: skip

    def _maps(self, sample: RowSample, context: FitContext) -> list[Any]:
        kernels = self._kernels_of_views(self._n_views or 1)
        if self.kernels is None and not self._n_views:
            mean = fourier.gamma_of_view(self, sample, 0, "rbf", "mean", context.random)
            kernels = [self._random_features("rbf", factor * mean) for factor in _BANK]
        return [self._fit_map(sample, i, kernel, context) for i, kernel in enumerate(kernels)]

    def _fit_map(self, sample: RowSample, view: int, kernel: _Kernel, context: FitContext) -> Any:
        scales = self._scales(sample, view)
        if isinstance(kernel, DiffusionMap):
            rows = sample.some_with(view)
            if is_option(self.kernels, "auto"):
                whitening = None if kernel.whitening is None else _WHITENING
                return fit_diffusion_map(
                    self, kernel, *rows, context.random, True, whitening, scales=scales
                )
            return chosen_map(self, kernel, *rows, context, unit_variance=True)
        if isinstance(kernel, RandomFourierFeatures):
            return fourier.fit_map(self, sample, view, kernel, context.random)
        return whitened_view(kernel, sample, view, context, scales)

    def _scales(self, sample: RowSample, view: int) -> Array | None:
        """What the columns of all views side by side are multiplied by, so that each view has a
        total variance of one there; None of a single view."""
        if self._tables[view] < len(self._widths):
            return None
        variances = [sample.moments(i).variance for i in range(self._n_views)]
        roots = [math.sqrt(each) if each > 0 else 1.0 for each in variances]
        return np.repeat(1 / np.array(roots), self._widths)

    def _objective_of(self, rows: Rows, context: FitContext) -> WeightedViews:
        entropy = float(self.weight_entropy)
        if self.typicality is None:
            return WeightedViews(entropy, coverage=rows.coverage)
        given = Typicality() if isinstance(self.typicality, str) else self.typicality
        eta = reference_distances(rows, given.eta)
        return WeightedViews(entropy, eta, float(given.m), rows.coverage)

    def _published(self, result: FitResult, context: FitContext) -> None:
        alpha, whole = result.rows.alpha, context.coverage is None
        self.feature_maps_, self.eta_ = self._feature_maps, result.prepared.objective.eta
        self.kernel_weights_ = alpha if whole else alpha / alpha.sum()
        self.lambda_ = float(self.weight_entropy) * result.rows.total_weight
        for i, mapped in enumerate(self.feature_maps_):
            if isinstance(mapped, DiffusionMap):
                diffusion_map.warn_of_components(mapped, context.k, f" of view {i}")

    # ---- prediction ------------------------------------------------------------------------------

    @by_partitions
    def predict_typicality(self, X: Any) -> Array:
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
            raise ValueError("predict_typicality needs typicality in the fit, but it was None.")
        found = visits(self, X, -math.inf, ("distances",))
        return joined(
            typicalities(rows, self._objective, outputs["distances"]) for rows, *_, outputs in found
        )


_ENTRIES = (
    "a name, a pair of a name and its gamma, a pair of 'linear' and a power, a DiffusionMap or "
    "RandomFourierFeatures"
)

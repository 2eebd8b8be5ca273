"""Power k-means, and kernel power k-means on random Fourier features."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import Any, get_args

from rffpk._anneal import centroid_model, search
from rffpk._anneal.annealing import (
    OF_FEATURES,
    Annealing,
    SearchParameters,
    Word,
    automatic_swaps,
    check_annealing,
    search_parameters,
)
from rffpk._anneal.fit import FitResult, GivenInit, Init, Problem, check_search
from rffpk._anneal.fit import fit as fit_by_passes
from rffpk._anneal.noise import check_noise
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.selection import NClustersSelection
from rffpk._rows.sample import RowSample
from rffpk._rows.store import Cache, check_cache
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import Clusterer, parameters
from rffpk._utils.validation import Auto, Level, is_option
from rffpk.maps import fourier
from rffpk.maps.unit_rows import Metric, check_metric, metric_map

_AUTO_STARTS = 3  # followed by swaps; see docs/annealing.md


@parameters
class AnnealedClusterer(Clusterer):
    """Base of the estimators of centroids in a feature space that anneal the power mean."""

    annealing: Annealing | Word | None = "auto"
    sample: Auto | int | None = "auto"
    init: Init | GivenInit = "k-means++"
    max_iter: int = 1000
    tol: float = 1e-3
    noise: Auto | float | None = None
    # what a fit sets
    cluster_centers_: Array = field(init=False)
    sample_size_: int = field(init=False)
    outlier_scores_: Array = field(init=False)

    fit = fit_by_passes
    _measure, _paper = centroid_model.measure, OF_FEATURES

    def _check_parameters(self) -> None:
        check_search(self)
        check_noise(self.noise)
        check_annealing(self.annealing)

    def _problem(self, **more: Any) -> Problem:
        """The problem of centroids of the columns; `more` are other parts of it."""
        given = search_parameters(self)
        return Problem(
            partial(_plan, given), given.init, sample=given.sample, automatic=given.differs,
            hard=given.ends_hard, **more,
        )  # fmt: skip


def _plan(given: SearchParameters, k: int, critical: float, objective: PowerMean) -> search.Plan:
    """The starts and the number of swaps."""
    starts, swaps = given.starts(critical, _AUTO_STARTS), given.swaps
    if swaps is None:
        swaps = automatic_swaps(k) if given.differs and given.ends_hard else 0
    plain = not objective.learns_weights and objective.eta is None
    if plain and k >= search.SOME and given.differs:
        alone = k >= search.MANY and given.n_init is None
        starts = search.from_merged_centroids(starts, alone)
    return search.Plan(starts, 0 if k == 1 else swaps, critical=critical)


def given_number(self: Any) -> Any:
    """The number of clusters that is given; 1 where it is to be found."""
    sought = any(is_option(self.n_clusters, level) for level in get_args(Level))
    return 1 if sought else self.n_clusters


@parameters
class PowerKMeans(AnnealedClusterer):
    """Power k-means: k-means annealed from a smooth objective.

    Minimises sum_i M_s(||x_i - theta_1||^2, ..., ||x_i - theta_k||^2) over k centroids theta_j,
    where M_s(y) = ((1/k) sum_j y_j^s)^(1/s) is the power mean with exponent s < 0 [1]_. While s
    falls to minus infinity the power mean falls to the minimum, and the objective becomes that of
    k-means.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number of clusters k, from 1 to n_samples. "auto": the number that `select_n_clusters` finds
        in the rows; it may be 1. "coarse" and "fine": the least and the largest of its levels,
        numbers that are better than one.
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
        Draws the sample, the initial centroids, and their disturbances and swaps. An int gives the
        same result in each call.
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
        all, which is plain k-means from `init`. "paper": as the paper of RFF-KPKM says,
        ``Annealing(start=-5.0, factor=1.04, passes=3, until="objective")`` with `sample` None and
        `init` "k-means" in place of their defaults. It names no `tol`: ``docs/papers`` has 1e-6,
        and with 1e-3 most fits end near the first exponent.
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
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance of rows and centroids. "cosine": spherical k-means [2]_ and its power means. Rows
        are scaled to length one as they are read, rows of zeros stay; centroids have length one, so
        that squared distances are 2 - 2 cos. Cannot be combined with `whitening`.
    whitening : None or float, default=None
        A number from 0 to 1: the features are the leading principal components, two for each
        cluster at most, each divided by this power of its standard deviation; 0 only projects, 1
        gives all the same variance. From 8 components on, rows are scaled to length one. Centroids
        have these components then. None: the columns themselves.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        Centroids, in the dtype of X; with `whitening` of shape (n_clusters, n_components).
    n_clusters_ : int
        Number of clusters.
    selection_ : NClustersSelection
        Good numbers of clusters, with scores and partitions; set only if `n_clusters` is no number.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of its nearest centroid; -1 for noise (see `noise`).
    inertia_ : float
        k-means objective of `labels_`: the weighted sum of squared distances of the rows to the
        means of their clusters.
    objective_ : float
        sum_i M_s, weighted by the sample weights, at the exponent `s_` and `cluster_centers_`.
    s_ : float
        Last finite exponent of the best start. If that start was plain k-means: the last finite
        exponent of the last start; if no start was annealed, the exponent at which annealing would
        end at the best centroids.
    n_iter_ : int
        Number of passes of the best start and of all that followed it, swaps included.
    sample_size_ : int
        Number of rows that the starts ran on.
    n_buffered_ : int
        Number of rows that `partial_fit` keeps until it has enough of them for the first centroids;
        0 from then on. Set by `partial_fit` only.
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
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns of X in `fit`; set only if all of them have names that are strings.
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
        If a parameter is not as described.

    Notes
    -----
    With n rows of d columns a pass costs O(n k d) time; memory beyond X is O(n) for the labels, the
    sample and the seeding rows with their features (see `sample` and `init`), and at most some
    200 MB where starts run on the principal components of a wide X. Sums are kept in float64.

    References
    ----------
    .. [1] Xu, Lange: Power k-means clustering. ICML 2019.
    .. [2] Dhillon, Modha: Concept decompositions for large sparse text data using clustering.
       Machine Learning 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from rffpk import PowerKMeans
    >>> X, _ = make_blobs(500, centers=5, cluster_std=0.5, random_state=0)
    >>> PowerKMeans(5, random_state=0).fit(X).cluster_centers_.shape
    (5, 2)
    """

    n_clusters: Level | int = field(default=8, kw_only=False)  # type: ignore[assignment]
    metric: Metric = "euclidean"
    whitening: float | None = None
    n_buffered_: int = field(init=False)  # what `partial_fit` sets
    n_clusters_: int = field(init=False)
    selection_: NClustersSelection = field(init=False)

    _given_number = property(given_number)

    partial_fit = centroid_model.partial_fit
    _takes_narrow_rows = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_metric(self.metric, self.whitening)

    def _problem(self, **more: Any) -> Problem:
        return super()._problem(
            maps=partial(metric_map, self), unit_centroids=self.metric == "cosine", **more
        )


@parameters
class RFFKernelPowerKMeans(AnnealedClusterer):
    """Kernel power k-means on random Fourier features (RFF-KPKM).

    Power k-means in the feature space of a shift-invariant kernel [1]_: a row x is mapped to phi(x)
    = D^(-1/2) [sin(x Omega), cos(x Omega)] with D random frequencies, the columns of Omega, and
    sum_i M_s(||phi(x_i) - theta_1||^2, ..., ||phi(x_i) - theta_k||^2) is minimised over k centroids
    theta_j, where M_s(y) = ((1/k) sum_j y_j^s)^(1/s) is the power mean with exponent s < 0. While s
    falls to minus infinity the objective becomes that of kernel k-means. Features are computed in
    the same pass that measures distances and sums up the new centroids, and need not be stored.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number of clusters k, from 1 to n_samples. "auto": the number that `select_n_clusters` finds
        in the rows; it may be 1. "coarse" and "fine": the least and the largest of its levels,
        numbers that are better than one.
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
        all, which is plain k-means from `init`. "paper": as the paper of RFF-KPKM says,
        ``Annealing(start=-5.0, factor=1.04, passes=3, until="objective")`` with `sample` None and
        `init` "k-means" in place of their defaults. It names no `tol`: ``docs/papers`` has 1e-6,
        and with 1e-3 most fits end near the first exponent.
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
    kernel : {"rbf", "laplacian", "cauchy"}, default="rbf"
        Kernel that the features approximate: exp(-gamma ||x-y||^2), exp(-gamma ||x-y||_1), or
        prod_i 1 / (1 + gamma (x_i-y_i)^2).
    gamma : {"mean", "median", "scale"} or float, default="mean"
        Bandwidth parameter of the kernel. "mean": 1 / (2 mean distance) over all pairs of rows, in
        the kernel's own distance: squared Euclidean, for "laplacian" the sum of absolute
        differences. "median": the same with the median. "scale": 1 / (n_features * X.var()). The
        mean of squared Euclidean distances is exact; other means and medians are over the pairs of
        at most 1000 random rows. A few far rows may make a mean so large that the kernel is
        constant on the others, with a warning; not a median. If all rows are equal, gamma is 1. A
        number must be > 0.
    n_frequencies : {"auto", "paper"} or int, default="auto"
        Number of random frequencies D, at least 1; each gives two features. "paper": ceil(4 log^3(2
        k)) independent ones for k clusters (Chen et al., theorem 3). "auto": the least of 128, 256,
        512, ... whose mean squared error of the kernel, over pairs of a sample of the rows, is at
        most 0.02 of the kernel's variance over these pairs. The most are 8192, or as many as make
        2^25 numbers for 20 000 rows; a warning says if they do not suffice. The number does not
        depend on k.
    sampling : {"auto", "orthogonal", "structured", "iid"}, default="auto"
        How frequencies are drawn. "orthogonal", for "rbf" only: blocks of up to d orthogonal
        directions with chi-distributed lengths, d the number of columns (Yu et al., NeurIPS 2016).
        "structured", for "rbf" only: products of Walsh-Hadamard matrices and random signs (the same
        paper); a projection then takes 3 log2(p) additions a frequency, p the next power of two
        from d on, instead of d multiplications and additions. Their frequencies all have one
        length, which biases the kernel in few dimensions (below about 16). "iid": independent draws
        (Rahimi, Recht, NeurIPS 2007). "auto": for "rbf" "structured" from d = 32 on and
        "orthogonal" below, "iid" for the other kernels.
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
    feature_map_ : RandomFourierFeatures
        Fitted feature map; `feature_map_.frequencies_` is Omega, of shape (n_features_in_, D).
    cluster_centers_ : ndarray of shape (n_clusters, 2 D)
        Centroids in feature space, in the dtype of X.
    n_clusters_ : int
        Number of clusters.
    selection_ : NClustersSelection
        Good numbers of clusters, with scores and partitions; set only if `n_clusters` is no number.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of its nearest centroid; -1 for noise (see `noise`).
    inertia_ : float
        Kernel k-means objective of `labels_`, in feature space: the weighted sum of squared
        distances of the rows to the means of their clusters.
    objective_ : float
        sum_i M_s, weighted by the sample weights, at the exponent `s_` and `cluster_centers_`.
    s_ : float
        Last finite exponent of the best start. If that start was plain k-means: the last finite
        exponent of the last start; if no start was annealed, the exponent at which annealing would
        end at the best centroids.
    n_iter_ : int
        Number of passes of the best start and of all that followed it, swaps included.
    sample_size_ : int
        Number of rows that the starts ran on.
    n_buffered_ : int
        Number of rows that `partial_fit` keeps until it has enough of them for the first centroids;
        0 from then on. Set by `partial_fit` only.
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
        Number of columns of X in `fit`.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns of X in `fit`; set only if all of them have names that are strings.
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
        If a parameter is not as described.
    MemoryError
        If ``cache=True`` and the features take more than a quarter of the available memory.

    Notes
    -----
    With n rows of d columns a pass costs O(n (d + k) D) time; memory beyond X is O(n) for the
    labels, and O(n D) if features are stored.

    The algorithm of [1]_ is ``annealing="paper", n_frequencies="paper"``, with
    ``tol=1e-6`` in the comparison of ``docs/papers`` with its tables.

    References
    ----------
    .. [1] Chen et al.: Enhancing kernel power k-means: scalable and robust clustering with random
       Fourier features and possibilistic method. Algorithm 1, eqs. (2) to (5).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from rffpk import RFFKernelPowerKMeans
    >>> X, _ = load_digits(return_X_y=True)
    >>> model = RFFKernelPowerKMeans(10, random_state=0).fit(X)
    >>> model.feature_map_.frequencies_.shape
    (64, 128)
    """

    n_clusters: Level | int = field(default=8, kw_only=False)  # type: ignore[assignment]
    kernel: fourier.Kernel = "rbf"
    gamma: fourier.Gamma | float = "mean"
    n_frequencies: fourier.Frequencies | int = "auto"
    sampling: fourier.Sampling = "auto"
    cache: Cache = "auto"
    n_buffered_: int = field(init=False)  # what `partial_fit` sets
    n_clusters_: int = field(init=False)
    selection_: NClustersSelection = field(init=False)

    _given_number = property(given_number)

    partial_fit = centroid_model.partial_fit
    _takes_narrow_rows = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        fourier.check_n_frequencies(self.n_frequencies)
        fourier.check_kernel(self.kernel, self.gamma, self.sampling)
        check_cache(self.cache)

    def _problem(self, **more: Any) -> Problem:
        return super()._problem(
            maps=self._maps, published=self._published, cache=self.cache, **more
        )

    def _maps(self, sample: RowSample, context: search.FitContext) -> list[Any]:
        given = fourier.RandomFourierFeatures(
            self.n_frequencies, kernel=self.kernel, gamma=self.gamma, sampling=self.sampling
        )
        return [fourier.fit_map(self, sample, 0, given, context.random)]

    def _published(self, result: FitResult, context: search.FitContext) -> None:
        self.feature_map_ = self._feature_maps[0]

"""Power k-means on the features of a diffusion map: annealed spectral clustering."""

from __future__ import annotations

import math
import sys
from dataclasses import field
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rffpk._anneal import centroid_model
from rffpk._anneal.fit import FitResult, Problem
from rffpk._anneal.search import FitContext
from rffpk._anneal.selection import NClustersSelection
from rffpk._rows.sample import RowSample
from rffpk._rows.store import Cache, check_cache
from rffpk._utils.arrays import Array, adjusted_rand_index
from rffpk._utils.estimator import parameters
from rffpk._utils.messages import without
from rffpk._utils.sparse_rows import Columns, SparseRows, squared_distances
from rffpk._utils.validation import Auto, Level, is_graph
from rffpk.maps.diffusion_map import (
    DiffusionMap,
    DiffusionMetric,
    check_diffusion,
    fit_diffusion_map,
    warn_of_components,
)
from rffpk.maps.neighbours import many_on_centroids, map_rows
from rffpk.power import AnnealedClusterer, PowerKMeans, given_number

# Of memberships: centroids of diffusion features stand in corners, and rows between clusters on the
# lines or faces between few of them, whatever the dimension of the clusters (docs/annealing.md).
_LEAST_EXPONENT = -1.5


@parameters
class DiffusionPowerKMeans(AnnealedClusterer):
    """Power k-means on diffusion features: annealed spectral clustering.

    Rows are mapped to the features of a `DiffusionMap`, in which clusters of whatever shape are
    groups that are far apart, and power k-means runs on these. Its objective is a normalised cut of
    the graph of neighbours after a time of diffusion [1]_.

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
        Draws the landmarks, the sample, the initial centroids, and their disturbances and swaps. An
        int gives the same result in each call.
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
    n_components : "auto" or int, default="auto"
        Number of features, the slowest functions of the random walk. "auto": those that have not
        decayed at `time` and do not live on few rows, at most three for each cluster.
    n_neighbors : "auto" or int, default="auto"
        Number of landmarks that the random walk can step to from a row. "auto": 8, if landmarks are
        centroids; 2.5 log(m), if the m distinct rows are the landmarks: then only mutual neighbors
        count.
    n_landmarks : "auto" or int, default="auto"
        Number of landmarks. If there are at most so many distinct rows, all of them are landmarks,
        and a step from a row leads to itself or to a mutual neighbor: each is among the nearest of
        the other. Otherwise the landmarks are centroids of a few passes of k-means on a sample of
        the rows. "auto": all distinct rows, if they are at most 200 000 (sparse rows: 30 000; k >
        44 clusters: 4e8 / k^2); otherwise 5 sqrt(m) centroids, at least 1000 and 5 k, with m the
        size of the sample, in a clustering at most 220 000. From 100 clusters on these are at least
        8 k, and up to 40 k where each has 25 rows.
    time : "auto" or float, default="auto"
        Length of the walks, in steps, > 0. "auto": three relaxation times of the k-th slowest
        function; at most 10^6.
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        Distance by which neighbors are chosen. "cosine": rows are scaled to length one first, as is
        usual for texts; rows of zeros stay. Columns are never scaled: standardize them first if
        their units differ. "precomputed": X is the graph itself, see Notes.
    whitening : "auto", None or float, default="auto"
        A number from 0 to 1: neighbors are found among the leading principal components, two for
        each cluster at most, each divided by this power of its standard deviation; 0 only projects,
        1 gives all the same variance. From 8 components on, rows are scaled to length one. None:
        the columns. "auto": None in a `DiffusionMap` by itself, which knows no clusters. In a
        clustering None, 0.5 and 1 (None with ``metric="cosine"``) are tried on a sample of 2000
        rows, or 20 for each cluster, and each of them with once and twice the default number of
        neighbors, if `n_neighbors` is "auto". Of these a graph on the columns is taken that falls
        apart into as many large components, far apart, or else the one whose clusters agree most
        with those of the others; of two, the first. `DiffusionPowerKMeans` clusters the columns
        themselves where their clusters are much like those of the graph, with few rows between any
        two: columns tell better where clusters that touch end. It does not if a parameter of the
        map is given, or where the graph has k components or small ones that count. From 100
        clusters on None, where landmarks are centroids.
    cache : "auto", bool or int, default="auto"
        Whether the features of all rows are computed once and stored, in the dtype of X, instead of
        computed anew in each pass. "auto": if they take no more than a quarter of what the machine,
        or the container, has available, or 16 MB. A number: if they take no more bytes than this.
        Results are the same. Where all rows are landmarks, or `n_neighbors` exceeds 64, they are
        always stored.

    Attributes
    ----------
    feature_map_ : DiffusionMap
        Fitted feature map, with the time and the components that were chosen. Its `time_` is 0
        where the columns are clustered themselves (see `whitening`): features are the columns.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Centroids in the space of the diffusion features, in the dtype of X.
    n_clusters_ : int
        Number of clusters.
    selection_ : NClustersSelection
        Good numbers of clusters, with scores and partitions; set only if `n_clusters` is no number.
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row: the index of its nearest centroid; -1 for noise (see `noise`).
    inertia_ : float
        K-means objective of `labels_` in the space of the features: the weighted sum of squared
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
        were assigned softly, else -(1 + d)/2, but on diffusion features -1.5 at least, with the
        effective dimension d of the clusters: 1/lambda_max of the mean of zz' over the unit vectors
        z from centroids to their rows.
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
        If a parameter or X is not as described.
    MemoryError
        If ``cache=True`` and the features take more than a quarter of the available memory.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended a run, if clusters have no rows, or if more than `n_clusters` connected
        components of the graph of neighbors count, or some that do not may be clusters. Components
        of at least 0.2/k of the rows count and, while these are fewer than k, smaller ones of at
        least ten rows with few rows around them. Rows of others are labeled by the nearest nodes:
        they are named where one has ten rows, or five with few rows around them, or all together
        0.2/k of the rows and ten. The few rows that most graphs leave out on their fringe are not.

    Notes
    -----
    The map costs O(n_samples n_landmarks n_features), a pass O(n_samples n_components k); there are
    no more than 3 k components. `predict` gives rows that were fitted their labels.

    With ``metric="precomputed"`` X is a graph, a sparse or dense matrix (n_samples, n_samples) of
    affinities >= 0, larger for nearer rows: scanpy's ``obsp["connectivities"]``, UMAP's ``graph_``,
    or scikit-learn's ``kneighbors_graph``. A is taken as (A + A') / 2, and steps lead along its
    edges; a row without any is a component of its own. A graph D of distances, such as
    ``KNeighborsTransformer(mode="distance")`` gives, becomes one of affinities by ``D.data =
    numpy.exp(-D.data**2 / (2 * (D.data**2).mean()))``: sparse distances are not told from
    affinities. New rows are given by their affinities to the fitted rows, (n_new, n_samples), and
    get the mean of the features of these; rows without any, and those of components that are left
    out, get zeros. `n_neighbors`, `n_landmarks` and `whitening` must have their defaults. `noise`
    and `partial_fit` need rows.

    References
    ----------
    .. [1] Dhillon, Guan, Kulis: Kernel k-means, spectral clustering and normalized cuts. KDD 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from rffpk import DiffusionPowerKMeans
    >>> X, y = make_circles(500, factor=0.4, noise=0.04, random_state=0)
    >>> model = DiffusionPowerKMeans(2, random_state=0).fit(X)
    >>> float(adjusted_rand_score(y, model.labels_))
    1.0
    """

    n_clusters: Level | int = field(default=8, kw_only=False)  # type: ignore[assignment]
    n_components: Auto | int = "auto"
    n_neighbors: Auto | int = "auto"
    n_landmarks: Auto | int = "auto"
    time: Auto | float = "auto"
    metric: DiffusionMetric = "euclidean"
    whitening: Auto | float | None = "auto"
    cache: Cache = "auto"
    n_buffered_: int = field(init=False)  # what `partial_fit` sets
    n_clusters_: int = field(init=False)
    selection_: NClustersSelection = field(init=False)

    _given_number = property(given_number)

    partial_fit = centroid_model.partial_fit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_diffusion(self)
        check_cache(self.cache)
        if is_graph(self) and self.noise is not None:
            raise ValueError(
                f"noise == {self.noise!r}, must be None with metric='precomputed': it needs "
                "distances."
            )

    def _problem(self, **more: Any) -> Problem:
        return super()._problem(
            maps=self._maps, cache=self.cache,
            n_map_rows=sys.maxsize if is_graph(self) else map_rows(self.n_landmarks),
            rows_name="the diffusion map of X",
            published=self._published, least_exponent=_LEAST_EXPONENT, **more,
        )  # fmt: skip

    def _maps(self, sample: RowSample, context: FitContext) -> list[Any]:
        xs, weight = sample.some()
        self.feature_map_ = chosen_map(self, self, xs[0], weight, context, or_columns=True)
        return [self.feature_map_ if self.feature_map_.time_ else None]

    def _published(self, result: FitResult, context: FitContext) -> None:
        if self.feature_map_.time_:
            warn_of_components(self.feature_map_, context.k)
        else:
            self.cache_ = False


# ---- which map: one whose graph falls apart, or that agrees most with the others -----------------

# docs/trials.md has the alternatives to these.
_WHITENINGS = (None, 0.5, 1.0)
_TIMES = (1, 2)  # the default number of neighbours
_TRIED_ROWS, _TRIED_ROWS_A_CLUSTER = 2000, 20  # on which maps are tried, at most
_ALIKE = 0.005  # Of maps whose agreements differ by less, the plainest is taken.
_LIKE_COLUMNS = 0.6  # agreement of the columns' own clusters with the graph that is taken, and ...
_BETWEEN = 0.5  # ... the density between them, with which they are taken instead
_MIDDLE = 0.125  # of the way between two centroids, on both sides of the places compared


class Option(NamedTuple):
    """What is chosen of a map."""

    whitening: float | None
    neighbors: int  # times the default number


class Trials(NamedTuple):
    """What fits on a sample say of the options."""

    agreements: Array  # mean adjusted Rand index of the clusters of each with those of the others
    apart: Array  # whether they are components of a graph that decides, with valleys around them
    columns: Array | None  # agreement of each with the columns' own clusters; None: not tried
    between: float  # density between these, see `density_between`

    def best(self) -> int:
        """The number of the option that is taken."""
        judged = np.where(self.apart | ~self.apart.any(), self.agreements, -np.inf)
        return int(np.argmax(judged >= judged.max() - _ALIKE))

    def columns_do(self) -> bool:
        """Whether there is a valley between any two of the columns' own clusters, and they are much
        like those of the graph."""
        if self.columns is None:
            return False
        return bool(self.columns[self.best()] >= _LIKE_COLUMNS) and self.between <= _BETWEEN


def chosen_map(
    estimator: Any,
    parameters: Any,
    X: Columns,
    weight: Array | None,
    context: FitContext,
    unit_variance: bool = False,
    or_columns: bool = False,
) -> DiffusionMap:
    """The map of rows that have been checked, with the parameters of a map or of the estimator
    itself. For those that are "auto" several values are tried on a sample. Those are taken whose
    graph falls apart into the clusters, with valleys around them, and of these or else of all
    those whose clusters agree most with the clusters of the others: what follows from one scale or
    one whitening alone is an artefact of it.

    With `or_columns` the map may be that of no walk, whose features are the columns: where these
    have nearly the same clusters, they tell better where clusters that touch end. Components of the
    graph of all rows are what they may miss: small ones, and as many as there are clusters."""
    options, trials = _options(parameters), None
    is_many = many_on_centroids(
        parameters.n_landmarks, len(X), context.k, isinstance(X, SparseRows)
    )  # a sample has too few rows of each cluster
    if len(options) > 2 and context.k > 1 and not is_many:  # two options agree alike
        or_columns = or_columns and _is_automatic(parameters)
        trials = _trials(estimator, parameters, options, X, weight, context, or_columns)
    best = 0 if trials is None else trials.best()
    mapped = fit_diffusion_map(
        estimator, parameters, X, weight, context.random, unit_variance, *options[best]
    )
    if trials is not None:
        if trials.columns_do() and not mapped._shows_clusters:
            mapped._take_no_step()
        mapped.choices_ = _choices(options, trials)
        if context.history.progress is not None:
            context.history.progress.say(_reason(options, trials, mapped))
    return mapped


def _is_automatic(parameters: Any) -> bool:
    """Whether nothing is asked of the map, so that none may be taken."""
    free = parameters.n_components, parameters.n_landmarks, parameters.time
    return len(_options(parameters)) == len(_WHITENINGS) * len(_TIMES) and all(
        isinstance(each, str) for each in free
    )


def _choices(options: list[Option], trials: Trials) -> list[dict[str, Any]]:
    """What was tried, as users see it."""
    found = [
        {**option._asdict(), "agreement": float(agreement), "apart": bool(separate)}
        for option, agreement, separate in zip(options, trials.agreements, trials.apart)
    ]
    if trials.columns is not None:
        agreement = float(trials.columns.mean())
        found.append({"whitening": None, "neighbors": 0, "agreement": agreement, "apart": False})
    return found


def _reason(options: list[Option], trials: Trials, mapped: DiffusionMap) -> str:
    best = trials.best()
    if not mapped.time_ and trials.columns is not None:
        return (
            "The columns are clustered themselves: their clusters are nearly those of the graph of "
            f"neighbors, adjusted Rand index {trials.columns[best]:.3f}."
        )
    whitening, times = options[best]
    decides = trials.apart[best]
    why = "falls apart into the clusters" if decides else "agrees most with the others"
    return (
        f"Of {len(options)} graphs that with whitening={whitening} and {times} times the default "
        f"number of neighbors {why}: mean adjusted Rand index {trials.agreements[best]:.3f}, "
        f"{trials.agreements[0]:.3f} with neither."
    )


def _options(parameters: Any) -> list[Option]:
    """The values that are tried, the plainest first, as they are taken where all agree alike."""
    whitenings: tuple[float | None, ...] = (None,)
    if not isinstance(parameters.whitening, str):
        whitenings = (parameters.whitening,)
    elif parameters.metric == "euclidean":
        whitenings = _WHITENINGS
    if is_graph(parameters):
        return [Option(None, 1)]
    times = _TIMES if isinstance(parameters.n_neighbors, str) else (1,)
    return [Option(*pair) for pair in product(whitenings, times)]


def _trials(
    estimator: Any,
    parameters: Any,
    options: list[Option],
    X: Columns,
    weight: Array | None,
    context: FitContext,
    or_columns: bool,
) -> Trials:
    """Fits of each map on a sample of the rows, and of the columns themselves."""
    random = np.random.RandomState(context.random.randint(2**31 - 1))
    counted = np.arange(len(X)) if weight is None else np.flatnonzero(weight)
    size = max(_TRIED_ROWS, _TRIED_ROWS_A_CLUSTER * context.k)
    if len(counted) > size:
        counted = np.sort(random.choice(counted, size, replace=False))
    x, p = X[counted], None if weight is None else weight[counted]

    def clusters(features: Any) -> Array:
        model = PowerKMeans(context.k, random_state=0, n_jobs=estimator.n_jobs)
        with without(ConvergenceWarning):
            return model.fit(features, sample_weight=p).labels_

    partitions, apart = [], []
    for option in options:
        mapped = fit_diffusion_map(estimator, parameters, x, p, random, True, *option, tried=True)
        apart.append(mapped._is_apart)
        partitions.append(clusters(mapped._features(x)))
    found = np.eye(len(options))
    for i, j in combinations(range(len(options)), 2):
        found[i, j] = found[j, i] = adjusted_rand_index(partitions[i], partitions[j])
    agreements = (found.sum(axis=0) - 1) / (len(options) - 1)
    # whitening can make components of its own, and too few neighbours can, too
    columns = np.array([option.whitening is None for option in options])
    decides = columns & np.array(apart)[columns].all() & columns.any()
    if not or_columns or decides.any():
        return Trials(agreements, decides, None, math.inf)
    labels = clusters(x.matrix if isinstance(x, SparseRows) else x)
    own = np.array([adjusted_rand_index(labels, each) for each in partitions])
    return Trials(agreements, decides, own, density_between(x, labels, p))


def density_between(X: Columns, labels: Array, weight: Array | None) -> float:
    """The largest density of the rows of two clusters half-way between their centroids, along the
    line that joins these, over the lower one of those at the centroids. For two equal Gaussians it
    is 2 exp(-a^2/8) at a distance of a standard deviations, in any number of columns; where k-means
    cuts a group in two it is about one."""
    x = X.astype(np.float64)
    p = np.ones(len(X)) if weight is None else weight / weight.mean()
    labels = np.unique(labels, return_inverse=True)[1].ravel()  # of clusters with rows
    member = (labels[:, None] == np.arange(labels.max() + 1)) * p[:, None]
    masses = member.sum(axis=0)
    centers = (member / masses).T @ (x.matrix if isinstance(x, SparseRows) else x)
    squares = np.column_stack([squared_distances(x, center) for center in centers])
    # from the centroid of a row's cluster without the row itself, which it draws near
    rest = np.maximum(1 - p / masses[labels], 1e-6)
    squares[np.arange(len(X)), labels] /= rest**2
    found = [0.0]
    for i, j in combinations(range(len(centers)), 2):
        own = (labels == i) | (labels == j)
        way = ((centers[i] - centers[j]) ** 2).sum()
        place = 0.5 + (squares[own, i] - squares[own, j]) / max(2 * way, 1e-300)
        start, middle, end = (
            p[own][np.abs(place - at) <= _MIDDLE].sum() + 0.5 for at in (0, 0.5, 1)
        )  # half a row more, as there may be none
        found.append(float(middle / min(start, end)))
    return max(found)

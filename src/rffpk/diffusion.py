"""Power k-means on the features of a diffusion map: annealed spectral clustering."""

from __future__ import annotations

import math
import sys
from dataclasses import field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin

from rffpk._anneal import centroid_model
from rffpk._anneal.annealing import AUTO_SWAPS, SWAPS_A_CLUSTER, search_parameters
from rffpk._anneal.feature_steps import FeatureRun
from rffpk._anneal.fit import FitResult, FittedMaps, Problem
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.search import FitContext, Stage
from rffpk._anneal.swaps import improve
from rffpk._rows.passes import make_rows, one_pass, total_variance
from rffpk._rows.sample import RowSample
from rffpk._rows.store import Cache, check_cache
from rffpk._utils.arrays import Array, adjusted_rand_index
from rffpk._utils.columns import Columns, SparseRows, dense, squared_distances
from rffpk._utils.estimator import parameters
from rffpk._utils.linalg import gaps_of, in_range
from rffpk._utils.validation import Auto, pairs_of
from rffpk.maps.components import LARGE, LEAST_ROWS
from rffpk.maps.diffusion_map import (
    DiffusionMap,
    DiffusionMetric,
    MapRows,
    check_diffusion,
    fit_diffusion_map,
    tried_clusters,
    warn_of_components,
)
from rffpk.maps.neighbours import (
    cluster_means,
    drawn_rows,
    labels_of_k_means,
    landmark_numbers,
    map_rows,
)
from rffpk.maps.spectrum import UseOfGraph
from rffpk.maps.whitening import PER_CLUSTER
from rffpk.power import AnnealedClusterer

# Of memberships: centroids of diffusion features stand in corners, and rows between clusters on the
# lines or faces between few of them, whatever the dimension of the clusters (docs/annealing.md).
_LEAST_EXPONENT = -1.5


@parameters
class DiffusionPowerKMeans(AnnealedClusterer):
    """Power k-means on diffusion features: annealed spectral clustering.

    Rows are mapped to the features of a `DiffusionMap`, in which clusters of whatever shape are far
    apart. The objective of power k-means is a normalised cut there of the graph of neighbors after
    a time of diffusion (Dhillon, Guan, Kulis: Kernel k-means, spectral clustering and normalized
    cuts. KDD 2004; ``docs/math.md``, eq. (17.6); ``docs/annealing.md``). The map costs O(n_samples
    n_landmarks n_features), a pass O(n_samples n_components k). `predict` gives fitted rows their
    labels. A ConvergenceWarning says if clusters are fewer than the components that count.

    With ``metric="precomputed"`` X is a sparse or dense graph of affinities >= 0, (n_samples,
    n_samples), taken as (A + A') / 2; `noise` and `partial_fit` need rows (``docs/tasks.md``).

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Starts, >= 1; the best is kept. "auto": 3; 1 for k >= 20, another `init` or schedule.
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
        Initial centroids: rows; "k-means" adds passes of k-means. An array, or what a callable
        (features, n_clusters, random_state=...) returns, has the shape of `cluster_centers_`.
    max_iter : int, default=1000
        Largest number of passes of a start, on each larger sample, and on all rows.
    tol : float, default=0.001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
    noise : "auto", float or None, default=None
        Share of weight, in (0, 1), to label -1 as noise; "auto": beyond a gap (``docs/noise.md``).
    n_components : "auto" or int, default="auto"
        "auto": functions not decayed at `time`, at most min(2 k, max(k, 200)) for k clusters.
    n_neighbors : "auto" or int, default="auto"
        Landmarks that a row steps to. "auto": 8 centroids, or of m rows 2.5 log(m) mutual ones.
    n_landmarks : "auto" or int, default="auto"
        Number of landmarks. "auto": the distinct rows, of more than 200 000 (30 000 if sparse)
        5 sqrt(n_samples), or more for many clusters.
    time : "auto" or float, default="auto"
        Steps of the walks, > 0. "auto": three relaxation times of function k, 10^6 at most.
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        Distance of neighbors. "cosine": of rows of length one. "precomputed": X has affinities.
    whitening : "auto", None or float, default="auto"
        What the graph is of: columns (None), components over a power, 0 to 1, of their deviations
        (``docs/math.md``, eq. (20.1)), or by trials, with the columns' clusters ("auto").
    cache : "auto", bool or int, default="auto"
        Bytes for stored features. "auto": a quarter of free memory. True: all, or a MemoryError.
        Always all where all rows are landmarks or `n_neighbors` is above 64.

    Attributes
    ----------
    feature_map_ : DiffusionMap
        Fitted feature map. Its `time_` is 0 where the columns are clustered themselves.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Centroids in the space of the diffusion features, in the dtype of X.
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimised sum; its last finite s; s of `predict_proba`.
    n_iter_, sample_size_ : int
        Number of passes of the best start and of all that followed it; rows that starts ran on.
    n_buffered_ : int
        Number of rows that `partial_fit` keeps for its first fit; set by it alone.
    cache_ : bool
        Whether the features of all rows were stored.
    history_ : list of dict
        Records of passes and starts, in order; ``docs/api.md`` describes their keys.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.
    outlier_scores_ : ndarray of shape (n_samples,)
        From 0 to 1, rising with the distance from others, above 1/2 for noise; set with `noise` if
        rows are in memory.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from rffpk import DiffusionPowerKMeans
    >>> X, y = make_circles(500, factor=0.4, noise=0.04, random_state=0)
    >>> len({*zip(y, DiffusionPowerKMeans(2, random_state=0).fit_predict(X))})  # a cluster a ring
    2
    """

    n_components: Auto | int = "auto"
    n_neighbors: Auto | int = "auto"
    n_landmarks: Auto | int = "auto"
    time: Auto | float = "auto"
    metric: DiffusionMetric = "euclidean"
    whitening: Auto | float | None = "auto"
    cache: Cache = "auto"
    n_buffered_: int = field(init=False)  # what `partial_fit` sets

    partial_fit = centroid_model.partial_fit

    def _problem(self) -> Problem:
        search = search_parameters(self)
        check_diffusion(self)
        if pairs_of(self) == "graph" and self.noise is not None:
            raise ValueError(
                f"noise == {self.noise!r}, must be None with metric='precomputed': it needs "
                "distances. Fit the rows that the graph was made of instead."
            )
        return Problem(
            search, maps=self._maps, cache=check_cache(self.cache),
            n_map_rows=sys.maxsize if pairs_of(self) == "graph" else map_rows(self.n_landmarks),
            rows_name="the diffusion map of X",
            published=self._published, least_exponent=_LEAST_EXPONENT,
        )  # fmt: skip

    def _measure(self, X: Any, want: str, s: float | None = None, sample_weight: Any = None) -> Any:
        found = super()._measure(X, want, s, sample_weight)
        mapped = self.feature_map_
        if want != "gaps" or not mapped.time_ or pairs_of(self) == "graph":
            return found
        return _apart(mapped, self.cluster_centers_, found[0]), found[1]

    def _maps(self, sample: RowSample, context: FitContext) -> FittedMaps:
        xs, weight = sample.some()
        # where nothing is asked of the map, none may be taken
        asked = {self.n_components, self.n_landmarks, self.time} != {"auto"}
        mapped, centroids = chosen_map(self, self, xs[0], weight, context, or_columns=not asked)
        self.feature_map_ = mapped
        return FittedMaps([mapped if mapped.time_ else None], centroids)

    def _published(self, result: FitResult) -> None:
        if self.feature_map_.time_:
            warn_of_components(self.feature_map_, result.prepared.context.k)
        else:
            self.cache_ = False


def _apart(mapped: DiffusionMap, centers: Array, gaps: Array) -> Array:
    """The squared distances between centroids, but in proportion to those of the means of their
    landmarks where they are in other components of the graph, which are farther apart than any in
    one: all components are as far from each other by the functions. Clusters without landmarks are
    where the nearest one is."""
    constant = centers[:, : mapped._spectrum.n_constant].astype(np.float64)
    other = gaps_of(constant @ constant.T) > 1
    if not other.any():
        return gaps
    neighbourhoods: Any = mapped._neighbourhoods
    landmarks = neighbourhoods.landmarks
    labels = pairwise_distances_argmin(mapped.landmark_features_, centers)
    nearest = landmarks[pairwise_distances_argmin(centers, mapped.landmark_features_)]
    means = dense(cluster_means(landmarks, None, labels, nearest))
    near = euclidean_distances(in_range(means), squared=True)
    least = max(near[other].min(), float(np.finfo(float).eps * near.max()))  # means may coincide
    return np.where(other, gaps.max() * np.maximum(near / least, 1), gaps)


# ---- which map: one whose graph falls apart, or that agrees most with the others -----------------

# bench/results/trials.md has the alternatives to these.
_TRIED_ROWS, _TRIED_ROWS_A_CLUSTER = 2000, 20  # on which maps are tried, at most
_SAME = 0.98  # agreement of a whitened map with those before it with which no others are tried
_ALIKE = 0.005  # Of maps whose agreements differ by less, the plainest is taken.
_LIKE_COLUMNS = 0.6  # agreement of the columns' own clusters with the graph that is taken, and ...
_BETWEEN = 0.5  # ... the density between them, with which they are taken instead
_MIDDLE = 0.125  # of the way between two centroids, on both sides of the places compared
_PASSES, _TOL = 100, 1e-3  # that find these, at most, and the move that ends them
_ALL_LIKE_COLUMNS = 0.9  # the agreement with which graphs on the columns go first
_CLEAR = 10_000  # rows up to which all are landmarks where a sample falls apart into the clusters
_CROSSING = 0.4  # differences of near rows in columns of two values, over those of any rows
_CROSSING_ROWS = 500  # on which these are looked at, at most
_RARE = 0.05  # Values of fewer rows are no words, such as that of a pixel at the edge.


class Option(NamedTuple):
    """What is chosen of a map."""

    whitening: float | None
    neighbors: int  # times the default number


# Those that are tried, the plainest first, as they are taken where all agree alike; and those with
# a number of neighbours that is given.
_OPTIONS = [Option(None, 1), Option(None, 2), Option(1.0, 1), Option(1.0, 2)]
_WHITENINGS = [Option(None, 1), Option(0.5, 1), Option(1.0, 1)]
_MOST_NEIGHBORS = max(option.neighbors for option in _OPTIONS)


class Trials(NamedTuple):
    """What fits on a sample say of the options."""

    options: list[Option]  # those that were tried
    # mean adjusted Rand index of the clusters of each with those of the others; of one alone, with
    agreements: Array  # those of the columns
    apart: Array  # whether they are components of a graph that decides, with valleys around them
    columns: Array | None  # agreement of each with the columns' own clusters; None: not tried
    between: float  # density between these where they are alike, see `density_between`
    own: Array | None = None  # these

    @property
    def first(self) -> Array:
        """The options that go before all others, if there are any: those whose graph decides, or
        all on the columns if these find what power k-means finds there, which has other errors."""
        if self.columns is None:
            return self.apart
        plain = np.array([option.whitening is None for option in self.options])
        return plain & (self.columns[plain].min(initial=1.0) >= _ALL_LIKE_COLUMNS)

    @property
    def best(self) -> int:
        """The number of the option that is taken."""
        judged = np.where(self.first | ~self.first.any(), self.agreements, -np.inf)
        return int(np.argmax(judged >= judged.max() - _ALIKE))


def chosen_map(
    estimator: Any, parameters: Any, X: Columns, weight: Array | None, context: FitContext,
    unit_variance: bool = False, or_columns: bool = False,
) -> tuple[DiffusionMap, Array | None]:  # fmt: skip
    """The map of rows that have been checked, with the parameters of a map or of the estimator
    itself; and centroids of its features, if they are known. For those parameters that are "auto"
    several values are tried on a sample. Those are taken whose graph falls apart into the clusters,
    with valleys around them, and of these or else of all those whose clusters agree most with the
    clusters of the others: what follows from one scale or one whitening alone is an artefact of it.
    Before these go graphs on the columns that all find the columns' own clusters.

    With `or_columns` the map may be that of no walk, whose features are the columns: where these
    have nearly the same clusters, they tell better where clusters that touch end. Components of the
    graph of all rows are what they may miss: small ones, and as many as there are clusters. It is
    that map at once where neighborhoods show words."""
    if weight is not None and not weight.all() and pairs_of(parameters) != "graph":
        counted = np.flatnonzero(weight)  # the others are no part of the map
        mapped, centroids = chosen_map(
            estimator, parameters, X[counted], weight[counted], context, unit_variance, or_columns
        )
        mapped._know(X, counted)
        return mapped, centroids
    k, sparse = context.k, isinstance(X, SparseRows)
    all_rows, few = landmark_numbers(parameters.n_landmarks, len(X), k, sparse, X.shape[1])
    options = _options(parameters, context, len(X) > all_rows)
    or_columns, is_choice = or_columns and options == _OPTIONS, len(options) > 1
    # trials on a sample, unless it shows words
    x, p = _sampled(X, weight, context) if is_choice else (X, weight)
    some = MapRows(x, p, k, context.n_threads, parameters, most_times=_MOST_NEIGHBORS)
    use: UseOfGraph = "never" if or_columns and shows_words(x) else "always"
    option, trials = options[0], None
    if is_choice and use != "never":
        trials = _trials(some, options, context, or_columns)
        option = trials.options[trials.best]
        use = "if shown" if trials.between <= _BETWEEN else "always"
    # the map of all rows; of few landmarks if the sample and these fall apart into the clusters; of
    # no walk if the slow functions of all rows are those of far ones
    whole = some
    if is_choice and (x is not X or parameters.n_landmarks != "auto"):  # has graphs of its own
        whole = replace(some, X=X, weight=weight, most_times=1)
    draw = partial(fit_diffusion_map, estimator, context.random, unit_variance, *option)
    is_clear = trials is not None and trials.apart.any() and len(X) > _CLEAR and not sparse
    mapped = draw(replace(whole, n_landmarks=few) if is_clear else whole, use)
    if is_clear and mapped._n_kept < k:
        mapped = draw(whole, use)
    if or_columns and mapped.time_ and not mapped._spectrum.suffices(k):
        mapped = draw(whole, "never")
    mapped.choices_ = _choices(trials)
    if is_choice and context.history.progress is not None:
        context.history.progress.say(_reason(trials, mapped))
    if trials is None or trials.own is None or mapped.time_ or x is not X:
        return mapped, None
    return mapped, dense(cluster_means(X, weight, trials.own, X[:k]))


def _choices(trials: Trials | None) -> list[dict[str, Any]]:
    """What was tried, as users see it."""
    if trials is None:
        return []
    found = [
        {**option._asdict(), "agreement": float(agreement), "apart": bool(separate)}
        for option, agreement, separate in zip(*trials[:3])
    ]
    if trials.columns is not None:
        agreement = float(trials.columns.mean())
        found.append({"whitening": None, "neighbors": 0, "agreement": agreement, "apart": False})
    return found


def _reason(trials: Trials | None, mapped: DiffusionMap) -> str:
    """Describe the choice in a line for people."""
    columns = "Clustering the columns without a graph"
    if trials is None:
        return f"{columns}: neighbors hardly differ in columns of two values, such as words."
    best = trials.best
    if trials.columns is not None and trials.between <= _BETWEEN:
        index = f"adjusted Rand index {trials.columns[best]:.3f}"
        if mapped.time_:
            return f"Using the neighbor graph: the columns agree with it, but miss parts ({index})."
        return f"{columns}: the neighbor graph has nearly the same clusters ({index})."
    whitening, times = trials.options[best]
    why = "agrees most with the other graphs"
    if trials.first[best]:
        why = "falls apart into the clusters" if trials.apart[best] else "agrees with the columns"
    return (
        f"Compared {len(trials.options)} neighbor graphs. The graph with whitening={whitening} and "
        f"{times} times the default number of neighbors {why}. Mean adjusted Rand index: "
        f"{trials.agreements[best]:.3f}, of the plain graph {trials.agreements[0]:.3f}."
    )


def _options(parameters: Any, context: FitContext, is_large: bool) -> list[Option]:
    """Those that parameters leave; the plainest alone where trials cannot tell which is best: two
    agree alike, and a sample of many rows, which X `is_large` for, has too few of each of many
    clusters."""
    options = _OPTIONS if isinstance(parameters.n_neighbors, str) else _WHITENINGS
    is_told = context.k > 1 and not (context.many and is_large)
    if isinstance(parameters.whitening, str) and parameters.metric == "euclidean" and is_told:
        return options
    return [Option(None if isinstance(parameters.whitening, str) else parameters.whitening, 1)]


def _trials(some: MapRows, options: list[Option], context: FitContext, or_columns: bool) -> Trials:
    """Clusters of a sample of the rows by each map, and by the columns themselves. Others are not
    tried where the first has those of the columns, with valleys between them, where those on the
    columns fall apart, or where these are much the same with one that is whitened."""
    random = np.random.RandomState(context.random.randint(2**31 - 1))
    plain = [option for option in options if option.whitening is None]
    whitened = options[: len(plain) - 1 : -1]  # what differs most from these first
    tried, partitions, decides, left = list[Option](), list[Array](), True, plain + whitened
    same = np.eye(len(options))  # the adjusted Rand index of each two
    while left:
        option, i = left.pop(0), len(tried)
        labels, apart = tried_clusters(some, *option, random)
        same[i, :i] = same[:i, i] = [adjusted_rand_index(other, labels) for other in partitions]
        tried.append(option)
        partitions.append(labels)
        # whitening can make components of its own, and too few neighbours can, too
        decides = decides and (apart or option not in plain)
        if or_columns and not decides and i == 0:
            alone = Trials([option], same[:1, 0], np.zeros(1, dtype=bool), None, math.inf)
            alone = _with_columns(alone, partitions, some, context)
            if alone.columns is not None and alone.between <= _BETWEEN:
                return alone._replace(agreements=alone.columns)
        if i > 0 and (decides or (option in whitened and same[: i + 1, : i + 1].min() >= _SAME)):
            break
        if not decides:
            left.sort(key=plain.__contains__)  # whitened ones, which may end this, go first
    order = sorted(range(len(tried)), key=lambda i: options.index(tried[i]))
    tried, partitions = [tried[i] for i in order], [partitions[i] for i in order]
    agreements = (same[np.ix_(order, order)].sum(axis=0) - 1) / (len(tried) - 1)
    first = np.array([decides and option in plain for option in tried])
    trials = Trials(tried, agreements, first, None, math.inf)
    if not or_columns or decides:
        return trials
    return _with_columns(trials, partitions, some, context)


def _with_columns(
    trials: Trials, partitions: list[Array], some: MapRows, context: FitContext
) -> Trials:
    """The same with what the columns say, or the leading components of these where they are many
    more than k clusters need."""
    X, weight, n_threads = some.X, some.weight, some.n_threads
    if X.shape[1] > PER_CLUSTER * some.k:
        X = some.components(np.random.RandomState(0)).plain(n_threads)(X)
    labels = labels_of_k_means(X, weight, partitions[trials.best], n_threads)
    trials = _beside_columns(trials, partitions, X, weight, labels)
    if trials.between <= _BETWEEN or trials.first.any():
        own = _clusters_of_columns(X, weight, labels, context)
        trials = _beside_columns(trials, partitions, X, weight, own)
    return trials


def _beside_columns(
    trials: Trials, partitions: list[Array], X: Columns, weight: Array | None, labels: Array
) -> Trials:
    """The same with what clusters of the columns say. Those of a few rows, which are far from all
    others, have no valleys around them, and other clusters have been merged for them."""
    indices = np.array([adjusted_rand_index(labels, each) for each in partitions])
    trials = trials._replace(columns=indices, own=labels, between=math.inf)
    counts = np.bincount(labels)
    are_large = counts.min() >= min(LEAST_ROWS, LARGE * counts.mean())
    if indices[trials.best] >= _LIKE_COLUMNS and are_large:
        trials = trials._replace(between=density_between(X, labels, weight))
    return trials


def _sampled(X: Columns, weight: Array | None, context: FitContext) -> tuple[Columns, Array | None]:
    """Some of the rows, on which maps are tried, or all: those that are drawn several times once,
    with the number as weight, as copies would be each other's neighbours."""
    size = max(_TRIED_ROWS, _TRIED_ROWS_A_CLUSTER * context.k)
    index, p = drawn_rows(X, weight, size, context.random)
    distinct, times = np.unique(index, return_counts=True)
    if len(distinct) < len(index):
        return X[distinct], times.astype(np.float64)
    return X if len(index) == len(X) else X[index], p


def shows_words(X: Columns) -> bool:
    """Whether rows hardly ever differ from the nearest one in the columns of two values that stand
    beside others, such as indicators of words: a graph of neighbors falls apart along these,
    whether they say anything of the clusters or not."""
    if isinstance(X, SparseRows):
        return False
    x = X.astype(np.float64)
    low, high = x.min(axis=0), x.max(axis=0)
    differ = low < high
    is_rare = np.minimum((x == low).mean(axis=0), (x == high).mean(axis=0)) < _RARE
    two = differ & ~is_rare & ((x == low) | (x == high)).all(axis=0)
    if not two.any() or (two == differ).all():
        return False
    from scipy.spatial import KDTree  # takes a tenth of a second, which few fits need

    words = x[:, two] == high[two]
    chosen = np.arange(0, len(x), -(-len(x) // _CROSSING_ROWS))
    nearest = KDTree(x).query(x[chosen], k=2)[1]
    other = np.where(nearest[:, 0] == chosen, nearest[:, 1], nearest[:, 0])
    crossing = (words[chosen] != words[other]).mean(axis=0).sum()
    return bool(crossing <= _CROSSING * 2 * words.var(axis=0).sum())


def _clusters_of_columns(
    X: Columns, weight: Array | None, labels: Array, context: FitContext
) -> Array:
    """The clusters that the columns have by themselves: an optimum that only those of a graph, the
    labels, lead to is not what they say. So centroids are swapped."""
    x, k = X, context.k
    if not isinstance(X, SparseRows):
        x = np.asarray(X - X.mean(axis=0), dtype=X.dtype)
    rows = make_rows([x], [None], weight, context.n_threads)
    theta = dense(cluster_means(x, weight, labels, x[:k])).astype(np.float64)
    inside = FitContext(np.random.RandomState(0), n_threads=context.n_threads, k=k)
    run = FeatureRun(rows, theta, total_variance(rows), PowerMean(), inside)
    run.follow(Stage("hard", -math.inf, tol=_TOL, most=_PASSES))
    improve(run, run.cost(-math.inf), min(AUTO_SWAPS, SWAPS_A_CLUSTER * k))
    return one_pass(rows, run.theta, -math.inf, want=("labels",))[1]["labels"]


def density_between(X: Columns, labels: Array, weight: Array | None) -> float:
    """The largest density of the rows of two clusters half-way between their centroids, along the
    line that joins these, over the lower one of those at the centroids. For two equal Gaussians it
    is 2 exp(-a^2/8) at a distance of a standard deviations, in any number of columns; where k-means
    cuts a group in two it is about one. The rows half-way are counted less the deviation of such a
    number, as few rows fill a valley by chance."""
    x = X.astype(np.float64)
    p = np.ones(len(X)) if weight is None else weight / weight.mean()
    labels = np.unique(labels, return_inverse=True)[1].ravel()  # of clusters with rows
    member = (labels[:, None] == np.arange(labels.max() + 1)) * p[:, None]
    masses = member.sum(axis=0)
    centers = (member / masses).T @ (x.matrix if isinstance(x, SparseRows) else x)
    origin = centers.mean(axis=0)
    squares = _squares(x, centers, origin)
    ways = gaps_of((centers - origin) @ (centers - origin).T)
    np.fill_diagonal(ways, 1.0)  # what is found there is left out
    # from the centroid of a row's cluster without the row itself, which it draws near
    rest = np.maximum(1 - p / masses[labels], 1e-6)
    own = squares[np.arange(len(X)), labels] / rest**2
    # of each row, on the lines from the centroid of its cluster to all others
    places = 0.5 + (own[:, None] - squares) / np.maximum(2 * ways[labels], 1e-300)
    here, middle, there = (member.T @ (np.abs(places - at) <= _MIDDLE) for at in (0, 0.5, 1))
    least = np.minimum(here + there.T, here.T + there) + 0.5  # half a row more: there may be none
    between = middle + middle.T
    found = (between + 0.5 - np.sqrt(between)) / least
    return float(found[~np.eye(len(found), dtype=bool)].max(initial=0))


def _squares(x: Columns, centers: Array, origin: Array) -> Array:
    """Squared distances (n, k) of rows in float64 to some points; `origin` is near these."""
    if isinstance(x, SparseRows):
        return np.column_stack([squared_distances(x, center) for center in centers])
    x, centers = x - origin, centers - origin
    norms = np.einsum("id,id->i", x, x)[:, None] + np.einsum("jd,jd->j", centers, centers)
    return np.asarray(np.maximum(norms - 2 * x @ centers.T, 0))

"""Power k-means on the features of a diffusion map: annealed spectral clustering."""

from __future__ import annotations

import sys
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin

from rffpk.anneal.feature_fit import Problem
from rffpk.anneal.schedule import FitContext, Result
from rffpk.choose.graph_choice import chosen_map, reason
from rffpk.estimators.annealing import search_parameters
from rffpk.estimators.base import parameters
from rffpk.estimators.partial import partial_fit
from rffpk.estimators.power import AnnealedClusterer
from rffpk.estimators.transformers import diffusion_map, diffusion_spec
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto
from rffpk.rows.door import Schema
from rffpk.rows.sample import Opened
from rffpk.rows.store import Cache, check_cache
from rffpk.rows.table import dense, unit_rows
from rffpk.rows.weights import ones
from rffpk.spaces.diffusion import DiffusionMetric, DiffusionSpace, DiffusionSpec, warn_of_graph
from rffpk.spaces.graph import Nodes, scaled
from rffpk.spaces.neighbors import cluster_means, map_rows
from rffpk.system.linalg import in_range
from rffpk.system.tuning import TUNING


@parameters
class DiffusionPowerKMeans(AnnealedClusterer):
    """Power k-means on diffusion features: annealed spectral clustering.

    Rows are mapped to the features of a `DiffusionMap`, in which clusters of any shape are far
    apart. On these features the objective of power k-means is a normalized cut of the neighbor
    graph after a time of diffusion (Dhillon, Guan, Kulis: Kernel k-means, spectral clustering and
    normalized cuts. KDD 2004; ``docs/math.md``, eq. (17.6); ``docs/maintainers/annealing.md``). The
    map costs O(n_samples n_landmarks n_features), a pass O(n_samples n_components k). `predict`
    gives fitted rows their labels. A ConvergenceWarning says if the graph has more components than
    clusters.

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
        Initial centroids: rows; "k-means" adds passes of k-means. An array has k rows in the form
        of X; a callable (features, n_clusters, random_state=...) returns centroids of features.
    max_iter : int, default=1000
        Largest number of passes of a start, on each larger sample, and on all rows.
    tol : float, default=0.001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
    noise : "auto", float or None, default=None
        Share of weight, in (0, 1), to label -1 as noise; "auto": beyond a gap (``docs/noise.md``).
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
        alone; a short time keeps details. "auto": long enough that k clusters stay, at most 10^6.
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        Distance of neighbors. "cosine": of rows of length one. "precomputed": X has affinities.
    whitening : "auto", None or float, default="auto"
        Which columns the neighbors are searched in. None: the columns of X. A number from 0 to 1:
        principal components, divided by this power of their standard deviations; with 1 all
        components count alike. "auto": graphs of both are compared (``docs/math.md``, eq. (20.1)).
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
        k-means cost, `-score(X)`; the minimized sum; its last finite s; s of `predict_proba`.
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
        From 0 to 1, rising with the distance from other rows, above 1/2 for noise; set with `noise`
        if rows are in memory.

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

    partial_fit = partial_fit
    _takes = Schema("", "graph")

    def _problem(self) -> Problem:
        """Check the parameters, and return the problem that they define."""
        search = search_parameters(self)
        spec = diffusion_spec(self)
        is_graph = self._schema().kind == "graph"
        if is_graph and self.noise is not None:
            raise ValueError(
                f"noise={self.noise!r}: must be None with metric='precomputed', because noise "
                "needs distances. Fit the rows that the graph was made of instead."
            )
        return Problem(
            search, maps=partial(self._maps, spec), cache=check_cache(self.cache),
            n_map_rows=sys.maxsize if is_graph else map_rows(self.n_landmarks),
            rows_name="the diffusion map of X",
            published=self._published, least_exponent=TUNING.choice.least_exponent,
        )  # fmt: skip

    def _gaps(self) -> tuple[Array, Array]:
        """Return squared distances (k, k) between centroids, and cluster masses (k,).

        Distances between components of a neighbor graph come from the rows, as diffusion features
        put all components equally far apart."""
        gaps, masses = super()._gaps()
        [space] = self._centroids.maps
        if isinstance(space, DiffusionSpace) and self._schema().kind != "graph":
            gaps = _apart(space, self.cluster_centers_, gaps)
        return gaps, masses

    def _nearest_rows(self, X: Any) -> NDArray[np.intp]:
        """Return the index (k,) of a row or node of X in the middle of each cluster."""
        nearest, [space] = super()._nearest_rows(X), self._centroids.maps
        if not isinstance(space, DiffusionSpace):
            return nearest
        if isinstance(space.neighborhoods, Nodes):
            return _central_nodes(self, space.neighborhoods.mass, X, nearest)
        # Rows of a component have equal features, so the row nearest to a centroid may lie at the
        # edge. It is the example only if a cluster is empty, and so has no row in its middle.
        model = self._fitted_model()
        rows = model.central_rows(X, model.labels(X), self._is_cosine())
        return np.array([own if row is None else row for own, row in zip(nearest, rows)])

    def _maps(self, spec: DiffusionSpec, sample: Opened, context: FitContext) -> list[Any]:
        """Fit the diffusion map to a sample, and set `feature_map_`; return the map in a list.

        If all parameters of the map are automatic, it may keep the columns as features."""
        xs, weight = sample.some()
        # without parameters for the map, the columns themselves may be chosen as features
        asked = {spec.n_components, spec.n_landmarks, spec.time} != {"auto"}
        fitted, choice = chosen_map(
            spec, xs[0], weight, context.k, context.random, context.n_threads, or_columns=not asked
        )
        self.feature_map_ = diffusion_map(self, fitted, xs[0].shape[1])
        if choice is not None and context.history.progress is not None:
            context.history.progress.say(reason(choice, fitted))
        return [fitted.known()]

    def _published(self, result: Result) -> None:
        """Warn if the neighbor graph does not suit the number of clusters."""
        [space] = self._centroids.maps
        if isinstance(space, DiffusionSpace):
            warn_of_graph(space, self.n_neighbors, result.data.context.k)


def _central_nodes(model: Any, mass: Array, X: Any, nearest: Array) -> Array:
    """Return the index (k,) of a node in the middle of each cluster of a given graph.

    In each cluster, take the half of the nodes that is nearest to the centroid. Among them, choose
    the node with the largest affinities to the fitted nodes of the cluster. `mass` (n,) are the
    masses of the fitted nodes. A cluster without nodes keeps its node in `nearest` (k,)."""
    fitted = model._fitted_model()
    distances, labels = fitted.distances(X), fitted.labels(X)
    [x] = model._check_views(X, reset=False)
    graph = scaled(x)
    if graph.shape[0] == graph.shape[1]:  # X is the graph: a fit counts edges in both directions
        graph = csr_array(graph + graph.T)
    central = nearest.copy()
    for j, own in enumerate(distances.T):
        if len(members := np.flatnonzero(labels == j)):
            near = members[own[members] <= np.median(own[members])]
            central[j] = near[(graph[near] @ (mass * (model.labels_ == j))).argmax()]
    return central


def _apart(space: DiffusionSpace, centers: Array, gaps: Array) -> Array:
    """Return squared distances (k, k) between centroids, which tell graph components apart.

    `gaps` (k, k) are the squared distances of the `centers` (k, F) by diffusion features, which put
    all components equally far apart. Within a component the result is `gaps`. Between components it
    is proportional to the squared distance of the landmark means of the clusters, and at least the
    largest of the `gaps`. A cluster without landmarks is placed at the nearest landmark."""
    # `constant` has the eigenvectors that are constant on components, and the constant column that
    # unit features end with. Scaled to length one, rows of different components are orthogonal.
    last = centers[:, -1:] if space.unit else np.ones_like(centers[:, -1:])
    constant = np.hstack([centers[:, : space.spectrum.n_constant], last]).astype(np.float64)
    constant = unit_rows(constant)
    other = constant @ constant.T < 0.5
    if not other.any():
        return gaps
    near: Any = space.neighborhoods
    landmarks = near.landmarks
    labels = pairwise_distances_argmin(space.functions, centers)
    nearest = landmarks[pairwise_distances_argmin(centers, space.functions)]
    means = dense(cluster_means(landmarks, ones(len(landmarks)), labels, nearest))
    squares = euclidean_distances(in_range(means), squared=True)
    # not zero, because means of different components may coincide
    least = max(squares[other].min(), np.finfo(float).eps * squares.max())
    return np.where(other, gaps.max() * np.maximum(squares / least, 1), gaps)

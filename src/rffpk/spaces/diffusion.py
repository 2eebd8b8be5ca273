"""Diffusion maps: features whose distances tell how well a graph of neighbours connects rows."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rffpk.estimators.base import Estimator, fit_of, graph_schema, parameters, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Identity, Map
from rffpk.rows.checks import Auto, is_option
from rffpk.rows.door import Schema, Shape
from rffpk.rows.store import UnitRows
from rffpk.rows.table import Columns, column_means, has_view, operand, squared_distances, unit_rows
from rffpk.spaces.graph import PRECOMPUTED, GraphDiffusion, check_no_choice, graph_diffusion
from rffpk.spaces.neighbors import NeighbourCount, Shared, landmark_numbers_of
from rffpk.spaces.spectrum import (
    MAX_CLUSTERS,
    Diffusion,
    Graph,
    UseOfGraph,
    Wanted,
    diffusion,
    is_costly,
    neighbour_graph,
    suggested_n_clusters,
    wanted_pairs,
)
from rffpk.spaces.whitening import Components, Whitening, fit_components
from rffpk.system import config
from rffpk.system.report import warn

DiffusionMetric = Literal["euclidean", "cosine", "precomputed"]

_LEAST_VARIANCE = 1e-30  # of features, so that float32 holds their squared distances


@dataclass(frozen=True)
class DiffusionSpec:
    """How a diffusion map is fitted: parameters of `DiffusionMap`."""

    n_components: Auto | int = "auto"
    n_neighbors: Auto | int = "auto"
    n_landmarks: Auto | int = "auto"
    time: Auto | float = "auto"
    metric: DiffusionMetric = "euclidean"
    whitening: Auto | float | None = "auto"


def spec_of(parameters: Any) -> DiffusionSpec:
    """Return the specification by the parameters of an estimator."""
    return DiffusionSpec(*(getattr(parameters, each.name) for each in fields(DiffusionSpec)))


@dataclass(eq=False)
class MapRows:
    """Rows that maps are fitted to, with graphs of their neighbours, which maps share."""

    X: Columns
    weight: Array
    k: int  # clusters that graphs are made for
    n_threads: int
    spec: DiffusionSpec  # of graphs
    is_told: bool = True  # whether k is the number of clusters; else the spectrum suggests one
    n_landmarks: int | None = None  # in place of the parameter
    most_times: float = 1  # times the default number of neighbours: one search is for so many
    kept: int = 0  # nearest neighbours of each row that need not be mutual
    scales: Array | None = None  # of the columns, before they are whitened
    whitened_for: int | None = None  # number of clusters for the components, if it is not k
    _components: Components | None = field(default=None, init=False)
    # by the power of deviations: whitened rows, their whitening, and what their graphs share
    _whitened: dict[float | None, tuple[Columns, Whitening | None, Shared]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def columns(self) -> Columns:
        """The rows, of length one if the metric says so."""
        return unit_rows(self.X) if self.spec.metric == "cosine" else self.X

    def components(self, random: Any) -> Components:
        """The leading principal components."""
        if self._components is None:
            k = self.whitened_for or self.k
            self._components = fit_components(self.columns, self.weight, k, random, self.scales)
        return self._components

    def diffusion(
        self, wanted: Wanted, whitening: float | None, times: float, random: Any
    ) -> tuple[Diffusion, Whitening | None, Columns]:
        """Return a diffusion, the whitening of the rows before it, and the whitened rows. The graph
        has `times` the default number of neighbours."""
        if whitening not in self._whitened:
            prepare = None
            if whitening is not None:
                prepare = self.components(random).whitening(whitening, self.n_threads)
            rows = self.columns if prepare is None else prepare(self.columns)
            self._whitened[whitening] = rows, prepare, Shared(self.most_times)
        rows, prepare, shared = self._whitened[whitening]
        chosen = self.spec
        numbers = landmark_numbers_of(rows, self.n_landmarks or chosen.n_landmarks, self.k)
        r = None if isinstance(chosen.n_neighbors, str) else int(chosen.n_neighbors)
        count = NeighbourCount(r, times, self.kept)
        on_sphere = chosen.metric == "cosine" and prepare is None

        def graph_of(numbers: tuple[int, int], shared: Shared) -> Graph:
            return neighbour_graph(
                rows, self.weight, numbers, count, self.k, on_sphere, random, self.n_threads, shared
            )

        graph = shared(count, lambda: graph_of(numbers, shared))
        most, few = numbers
        if few < most and is_costly(graph, wanted):
            graph = graph_of((few, few), Shared())
        return diffusion(graph, wanted), prepare, rows


@parameters
class DiffusionMap(Estimator):
    """Map rows to features whose distances are diffusion distances.

    Rows step to their nearest landmarks, the nearer the likelier, and from there to the rows of
    these. Squared distances between features measure how differently walks that start at two rows
    are distributed after some time (Coifman, Lafon: Diffusion maps. Applied and Computational
    Harmonic Analysis 2006): connected clusters of whatever shape become groups far apart.

    `fit` and `transform` cost O(n_samples n_landmarks n_features) time and O(n_landmarks
    n_functions) memory. `transform` gives fitted rows the features that they had in `fit`.

    With ``metric="precomputed"`` X is a sparse or dense graph of affinities >= 0, (n_samples,
    n_samples), taken as (A + A') / 2 (``docs/tasks.md``). `fit` raises a ValueError or TypeError
    for bad input; a ConvergenceWarning says if components count beside the largest.

    Parameters
    ----------
    n_components : "auto" or int, default="auto"
        "auto": functions not decayed at `time`, at most min(2 k, max(k, 200)) for k clusters.
    n_neighbors : "auto" or int, default="auto"
        Landmarks that a row steps to. "auto": 8 centroids, or of m rows 2.5 log(m) mutual ones.
    n_landmarks : "auto" or int, default="auto"
        Number of landmarks. "auto": the distinct rows, of more than 200 000 (30 000 if sparse)
        5 sqrt(n_samples), or more for many clusters.
    time : "auto" or float, default="auto"
        Steps of the walks, > 0. "auto": three relaxation times of the slowest functions before the
        largest eigengap among the first 20, at most 10^6.
    metric : {"euclidean", "cosine", "precomputed"}, default="euclidean"
        Distance of neighbors. "cosine": of rows of length one. "precomputed": X has affinities.
    whitening : "auto", None or float, default="auto"
        What the graph is of: the columns (None, "auto"), or 2 k principal components over a power,
        0 to 1, of their standard deviations (``docs/math.md``, eq. (20.1)).
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
        Numbers of neighbors of each row that are considered, and of features.
    bandwidth_ : float
        sigma^2 of the weights exp(-||x - c||^2 / (2 sigma^2)) of the neighbors c of a row x.
    eigenvalues_ : ndarray of shape (n_functions,)
        Eigenvalues of the walk in falling order, without that of the constant function. Beyond 5000
        nodes, and in a clustering, 1 - eigenvalue may be .5 % too large, in the second half more.
    time_ : float
        Length of the walks; 0 in a clustering of the columns, which `transform` then returns.
    landmark_features_ : ndarray of shape (n_nodes, n_components_)
        Features of a row are the mean of those of its neighbors, with the weights above.
    component_shares_ : ndarray of shape (n_connected_components,)
        Shares of the weight of the rows, or a sample, in connected components, in falling order.
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
    metric: DiffusionMetric = "euclidean"
    whitening: Auto | float | None = "auto"
    random_state: Any = None
    n_jobs: int | None = None

    @with_callbacks
    def _schema(self) -> Schema:
        return graph_schema(self, self.metric)

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
        self.__dict__.pop("_fitted", None)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> Columns:
        """`fit`; returns the rows, whose features `_features` then knows."""
        spec = spec_of(self)
        check_diffusion(spec)
        with (
            reporting(self, X),
            fit_of(self),
            config.one_blas_thread(),
        ):
            [rows] = self._check_views(X, reset=True)
            weight = checks.check_sample_weight(sample_weight, len(rows), X)
            n_threads = config.n_threads(self.n_jobs)
            self._draw(MapRows(rows, weight, MAX_CLUSTERS, n_threads, spec, is_told=False))
        warn_of_graph(self, 1)
        return rows

    def _draw(
        self, inputs: MapRows, unit_variance: bool = False, times: float = 1,
        use: UseOfGraph = "always", unit: bool = False,
    ) -> None:  # fmt: skip
        """Fit the map to rows and parameters that have been checked.

        With `unit_variance` the features have a total variance of one. With `unit` a constant is
        appended, and the features of landmarks have length one. `times` multiplies the default
        number of neighbours. `use` is "always" for slow functions of the graph, "combined" for
        random combinations of them with many clusters, and "never" for the columns as features.
        "if shown" stands for "always" if components of the graph show clusters that the columns
        may miss, else for "never"."""
        self.choices_: list[dict[str, Any]] = []
        self._spherical = self.metric == "cosine"
        self.whitening_ = None if self.whitening == "auto" else self.whitening
        self._whitening: Whitening | None = None
        automatic = isinstance(self.n_components, str) and isinstance(self.time, str)
        functions = 0 if isinstance(self.n_components, str) else int(self.n_components)
        wanted = wanted_pairs(inputs.k, inputs.is_told and automatic, functions, use)
        unit = unit and wanted.use != "combined"  # combinations have no scale for the constant
        found: Diffusion | GraphDiffusion
        X = rows = inputs.X
        if self.metric == PRECOMPUTED:
            found = graph_diffusion(X, inputs.weight, wanted)
        else:
            random = checks.check_random_state(self.random_state)
            found, self._whitening, rows = inputs.diffusion(wanted, self.whitening_, times, random)
            landmarks = found.neighbourhoods.landmarks
            self.landmarks_ = operand(landmarks)
            self.n_neighbors_ = found.neighbourhoods.r
            self.bandwidth_ = found.neighbourhoods.bandwidth
            squares = squared_distances(landmarks, column_means(landmarks))
            checks.check_underflow(squares.astype(X.dtype).sum(), [landmarks])
        self._publish(found, rows, inputs, unit_variance, unit)

    def _publish(
        self,
        found: Diffusion | GraphDiffusion,
        rows: Columns,
        inputs: MapRows,
        unit_variance: bool,
        unit: bool,
    ) -> None:
        """Set the fitted attributes. Neighbours are found among `rows`: prepared rows of X."""
        X, parts, self._spectrum = inputs.X, found.parts, found.spectrum
        self._neighbourhoods = found.neighbourhoods
        self.eigenvalues_ = 1 - self._spectrum.gaps
        shares, listed = parts.components.shares, parts.counted | parts.left_out
        self.component_shares_, self._n_kept = shares[listed], parts.n_kept
        left_out = float(parts.components.rows[parts.left_out].sum())
        self._n_left_out = round(len(X) * left_out / parts.n_rows)
        self._loses_rows = parts.lose_rows(inputs.k)
        k = inputs.k if inputs.is_told else None
        time, index, scale = self._chosen(k, unit_variance and not unit, len(found.extension))
        self.time_ = time if found.is_used else 0.0
        lines = _scaled(found.extension, index, scale)
        lines, self._is_unit = _of_length_one(lines) if unit else lines, unit
        self.landmark_features_, self._own_features = lines.astype(X.dtype), None
        if isinstance(found, GraphDiffusion):  # as `transform` computes them
            own = found.neighbourhoods.means(found.graph, self.landmark_features_)
            self._own_features = own.astype(X.dtype)
        elif found.weights is not None:
            self._own_features = (found.weights @ lines).astype(X.dtype)
        self.n_components_ = self.landmark_features_.shape[1]
        if not found.is_used:
            self._columns = UnitRows() if self._spherical else Identity(self.n_features_in_)
            self.n_components_ = self.n_features_in_
        elif self._own_features is not None:
            functions = self.landmark_features_, self._own_features
            self._fitted = X, partial(_of_fitted, found, rows, *functions)
        self._n_features_out = self.n_components_

    def _know(self, X: Columns, counted: Array) -> None:
        """Remember features of all rows of X, after a fit to the `counted` rows only."""
        if "_fitted" in vars(self):
            others = np.delete(np.arange(len(X)), counted)
            known, rest = self._fitted[1](), self._features(X[others])  # `_features` pops `_fitted`
            features = np.empty((len(X), known.shape[1]), dtype=known.dtype)
            features[counted], features[others] = known, rest
            self._fitted = X, partial(np.asarray, features)

    def _chosen(
        self, n_clusters: int | None, unit_variance: bool, n_nodes: int
    ) -> tuple[float, Array, Array]:
        """Return the time of the walk, the indices of the functions to keep, and their scales."""
        spectrum = self._spectrum
        k = n_clusters or suggested_n_clusters(self._spectrum, MAX_CLUSTERS)
        automatic = isinstance(self.time, str)
        time = spectrum.separating_time(k) if automatic else float(self.time)
        if isinstance(self.n_components, str):
            index = spectrum.components(k, time)
        else:
            able = spectrum.able()
            slow = spectrum.slow(k) if n_clusters else able
            # functions that cover few rows count only if slow functions are too few
            index = np.sort(np.r_[slow, np.setdiff1d(able, slow)][: self.n_components])
            if max(1, len(index)) < self.n_components:
                raise ValueError(
                    f"n_components == {self.n_components}, but the walk has {len(index)} slow "
                    f"functions on its {n_nodes} nodes."
                )
        if unit_variance:
            return time, index, spectrum.unit_decay(index, time)
        scale = np.exp(-time * spectrum.gaps[index] / 2)
        if len(index) and scale @ scale < _LEAST_VARIANCE:
            raise ValueError(
                f"time == {time:.4g} is too long: the features have the variance "
                f"{scale @ scale:.2g}, as the slowest function decays in "
                f"{1 / spectrum.gaps[index].min():.4g} steps."
            )
        return time, index, scale

    def _constant(self, features: Array) -> Array:
        """Return the values of the functions that are constant on components, with length one.
        Values of rows in different components are orthogonal."""
        n, last = self._spectrum.n_constant, features[:, -1:]
        ones = last if self._is_unit else np.ones_like(last)
        return unit_rows(np.hstack([features[:, :n], ones]).astype(np.float64))

    def _view(self, X: Columns) -> tuple[Array, Map]:
        """Return the columns and the map with which passes compute features of the rows of X.

        Rows that lack the view have NaN."""
        if not (there := has_view(X)).all():
            found, mapped = self._view(X[there] if there.any() else np.zeros_like(X[:1]))
            spread = np.full((len(X), found.shape[1]), np.nan, dtype=X.dtype)
            spread[there] = found[: int(there.sum())]
            return spread, mapped
        if self._own_features is None:
            rows = self._prepared(X)
            landmarks = self._neighbourhoods.mapped(self.landmark_features_, rows)
            if landmarks is not None:
                return rows, landmarks
        return self._features(X), Identity(self.n_components_)

    @property
    def _space(self) -> DiffusionMap | UnitRows | Identity:
        """The map of rows to features: this map, or a map of the columns if they are clustered."""
        space: DiffusionMap | UnitRows | Identity = vars(self).get("_columns", self)
        return space

    def _prepared(self, X: Columns) -> Columns:
        """The rows among which neighbours are found."""
        rows = unit_rows(X) if self._spherical else X
        return rows if self._whitening is None else self._whitening(rows)

    def _features(self, X: Columns) -> Array:
        """Features of rows; those of the rows that have just been fitted are known: a fit asks for
        these once, with the same object that the map was fitted on."""
        fitted, features = self.__dict__.pop("_fitted", (None, None))
        if X is fitted:
            return features()
        return self._neighbourhoods.combinations(
            self._prepared(X), self.landmark_features_, self._own_features
        )

    def fit_transform(  # type: ignore[override]
        self, X: Any, y: Any = None, sample_weight: Any = None
    ) -> Array:
        """The features of the rows that are fitted.

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
        rows = self._fit(X, sample_weight)
        with config.one_blas_thread():
            return self._features(rows)

    def transform(self, X: Any) -> Array:
        """Map rows to their features.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features_in_)
            Finite numbers.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components_)
            float32 for float32 input, else float64; finite however far a row is. A CSR array where
            X is sparse and `time_` is 0.
        """
        check_is_fitted(self)
        [X] = self._check_views(X, reset=False)
        with config.one_blas_thread():
            features = self._space._features(X)
        return operand(features)


def _scaled(functions: Array, index: Array, scale: Array) -> Array:
    """Some functions, times a scale each; a column of zeros if there are none."""
    return functions[:, index] * scale if len(index) else np.zeros((len(functions), 1))


def _of_length_one(lines: Array) -> Array:
    """Return values of functions at nodes, with a constant appended, scaled to length one.

    The length of the values tells only how far out a node is. On a fringe a few nodes have the
    longest values; with length one they count no more than other nodes."""
    lines = np.column_stack([lines, np.ones(len(lines))])
    return np.asarray(unit_rows(lines))


def _of_fitted(found: Any, X: Columns, functions: Array, own: Array | None) -> Array:
    """Return the means of functions, (m, q), for the rows that a diffusion was made of.

    If all rows are landmarks, `own` has the means at the landmarks, and most rows need no search
    for neighbours."""
    if own is None or found.node is None:
        return np.asarray(found.neighbourhoods.combinations(X, functions))
    features, outside = own[found.node], found.node < 0
    if outside.any():
        features[outside] = found.outside(X[outside], functions, own)
    return features


def check_diffusion(spec: DiffusionSpec) -> None:
    """Check the parameters that `DiffusionMap` and `DiffusionPowerKMeans` share."""
    for name in ("n_components", "n_neighbors", "n_landmarks"):
        if not is_option(getattr(spec, name), "auto"):
            checks.check_int(getattr(spec, name), name, 1)
    if not is_option(spec.time, "auto"):
        checks.check_real(spec.time, "time", 0, include="neither", also="'auto'")
    checks.check_choice(spec.metric, "metric", get_args(DiffusionMetric))
    if is_option(spec.metric, PRECOMPUTED):
        check_no_choice(spec)
    if spec.whitening is not None and not is_option(spec.whitening, "auto"):
        checks.check_real(spec.whitening, "whitening", 0, 1, also="None")


def fit_diffusion_map(
    estimator: Any, random: Any, unit_variance: bool, option: tuple[float | None, float, bool],
    inputs: MapRows, use: UseOfGraph = "always",
) -> DiffusionMap:  # fmt: skip
    """Fit the map of an estimator to checked rows, without warnings of the graph.

    `option` has the whitening, the multiple of the default number of neighbours, and `unit`.
    `DiffusionMap._draw` describes the other parameters."""
    parameters, (whitening, times, unit) = inputs.spec, option
    mapped = DiffusionMap(
        parameters.n_components,
        n_neighbors=parameters.n_neighbors,
        n_landmarks=inputs.n_landmarks or parameters.n_landmarks,
        time=parameters.time,
        metric=parameters.metric,
        whitening=whitening,
        random_state=random.randint(2**31 - 1),
        n_jobs=estimator.n_jobs,
    )
    with fit_of(mapped):
        mapped._remember(Shape.of_columns(inputs.X.shape[1], estimator._shape.in_float64))
        mapped._draw(inputs, unit_variance, times, use, unit)
    return mapped


def features_of_graph(
    inputs: MapRows, whitening: float | None, times: float, unit: bool, random: Any
) -> tuple[Array, int]:
    """Return features of rows by their graph, in float64, and how many of its components count."""
    fitted, _, rows = inputs.diffusion(wanted_pairs(inputs.k, True), whitening, times, random)
    time = fitted.spectrum.separating_time(inputs.k)
    index = fitted.spectrum.components(inputs.k, time)
    lines = _scaled(fitted.extension, index, np.exp(-time * fitted.spectrum.gaps[index] / 2))
    lines = _of_length_one(lines) if unit else lines
    own = None if fitted.weights is None else fitted.weights @ lines
    return _of_fitted(fitted, rows, lines, own).astype(np.float64), fitted.parts.n_kept


def warn_of_graph(mapped: DiffusionMap, expected: int, of: str = "") -> None:
    """Warn of a graph with too few nodes, or with more connected components than expected.

    A graph has too few nodes if it has fewer nodes than `n_neighbors`. Small components are not
    counted, as most graphs leave out a few rows on the fringe. But there is a warning, too, if
    small components may be clusters."""
    is_graph, r = mapped.metric == PRECOMPUTED, mapped.n_neighbors
    # with no more nodes than clusters many rows are equal: the warning of empty clusters says so
    if not is_graph and not isinstance(r, str) and expected < mapped.n_neighbors_ < r:
        warn(
            f"n_neighbors={r}: the graph{of} has {mapped.n_neighbors_} nodes, and a row steps to "
            f"all of them. Set n_neighbors to at most {mapped.n_neighbors_}.",
            UserWarning,
        )
    shares, n_small = mapped.component_shares_, len(mapped.component_shares_) - mapped._n_kept
    if mapped._n_kept <= expected and not mapped._loses_rows:
        return
    named = ", ".join(f"{share:.3g}" for share in shares[:5])
    more = ", ..." if len(shares) > 5 else ""
    left = ""
    if n_small:
        left = (
            f" {n_small} of them, with {mapped._n_left_out} rows, {'is' if n_small == 1 else 'are'}"
            " small and left out: these rows are with the nearest others."
        )
    alone = 1 - float(shares.sum())
    if alone > 1e-9:
        left += f" Nodes without near neighbours, {alone:.3g} of the weight, are left out, too."
    remedy = "More edges connect" if is_graph else "A larger n_neighbors connects"
    warn(
        f"The graph of neighbours{of} has {len(shares)} connected components, which cover {named}"
        f"{more} of the weight of the rows.{left} {remedy} them.",
        ConvergenceWarning,
    )

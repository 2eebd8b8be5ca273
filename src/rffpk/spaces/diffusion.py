"""Diffusion maps: features whose distances tell how well a graph of neighbors connects rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rffpk.rows import checks
from rffpk.rows.arrays import Array, Identity, Map
from rffpk.rows.checks import Auto, is_option
from rffpk.rows.store import Known
from rffpk.rows.table import Columns, UnitRows, column_means, has_view, squared_distances, unit_rows
from rffpk.spaces.graph import (
    PRECOMPUTED,
    Diffusion,
    GraphDiffusion,
    Nodes,
    diffusion,
    graph_diffusion,
    is_costly,
    neighbour_graph,
)
from rffpk.spaces.neighbors import NeighbourCount, Neighbourhoods, Shared, landmark_numbers_of
from rffpk.spaces.spectrum import (
    MAX_CLUSTERS,
    Spectrum,
    UseOfGraph,
    Wanted,
    suggested_n_clusters,
    wanted_pairs,
)
from rffpk.spaces.whitening import Components, Whitening, fit_components
from rffpk.system.report import warn

DiffusionMetric = Literal["euclidean", "cosine", "precomputed"]

_LEAST_VARIANCE = 1e-30  # of features, so that float32 holds their squared distances


@dataclass(frozen=True)
class DiffusionSpec:
    """How a diffusion map is fitted: parameters of `DiffusionMap`, checked."""

    n_components: Auto | int = "auto"
    n_neighbors: Auto | int = "auto"
    n_landmarks: Auto | int = "auto"
    time: Auto | float = "auto"
    metric: DiffusionMetric = "euclidean"
    whitening: Auto | float | None = "auto"

    def __post_init__(self) -> None:
        """Check the fields. With a given graph, fields that shape a graph must have defaults."""
        for name in ("n_components", "n_neighbors", "n_landmarks"):
            if not is_option(getattr(self, name), "auto"):
                checks.check_int(getattr(self, name), name, 1)
        if not is_option(self.time, "auto"):
            checks.check_real(self.time, "time", 0, include="neither", also="'auto'")
        checks.check_choice(self.metric, "metric", get_args(DiffusionMetric))
        for name in ("n_neighbors", "n_landmarks", "whitening"):
            value = getattr(self, name)
            is_default = is_option(value, "auto") or (name == "whitening" and value is None)
            if self.metric == PRECOMPUTED and not is_default:
                raise ValueError(
                    f"{name}={value!r}: must have its default with metric='precomputed', where X "
                    "is the graph."
                )
        if self.whitening is not None and not is_option(self.whitening, "auto"):
            checks.check_real(self.whitening, "whitening", 0, 1, also="None")


class Option(NamedTuple):
    """The features of a trial: the columns, or eigenvectors of a neighbor graph."""

    whitening: float | None  # exponent of the whitening before the search; None: no whitening
    neighbors: float  # number of neighbors over the default number; 0: the columns, no graph
    unit: bool = False  # whether features are scaled to length one


@dataclass(frozen=True)
class DiffusionSpace:
    """A fitted diffusion map: rows have the mean features of their nearest nodes."""

    neighborhoods: Neighbourhoods | Nodes
    spectrum: Spectrum
    functions: Array  # (m, q): features of the nodes, which are scaled eigenvectors
    own: Array | None  # (m, q): features of nodes that are rows; None: nodes are centroids of rows
    whitening: Whitening | None  # applied to rows before the search for neighbors
    spherical: bool  # whether neighbors are looked for among rows of length one
    unit: bool  # whether a constant is appended to `functions`, whose rows have length one then
    time: float  # time of the walk
    shares: Array  # the fraction of the total weight in each connected component, falling
    n_kept: int  # number of kept components
    left_out: Array  # the number of rows in each component that is not kept
    loses_rows: bool  # whether small components may be clusters

    def _view(self, X: Columns) -> tuple[Array, Map]:
        """Return an array with a row for each row of X, and the map from the array to features.

        Passes apply the map. Where passes cannot compute the features, the array has the features
        (n, q) and the map is the identity. Rows of X that lack the view have NaN."""
        if not (there := has_view(X)).all():
            # if no row has the view, a row of zeros gives the map and the number of columns
            known, mapped = self._view(X[there] if there.any() else np.zeros_like(X[:1]))
            spread = np.full((len(X), known.shape[1]), np.nan, dtype=X.dtype)
            spread[there] = known[: int(there.sum())]
            return spread, mapped
        rows = self._prepared(X)
        if self.own is None and isinstance(self.neighborhoods, Neighbourhoods):
            landmarks = self.neighborhoods.mapped(self.functions, rows)
            if landmarks is not None:
                return rows, landmarks
        features = self.neighborhoods.combinations(rows, self.functions, self.own)
        return features, Identity(features.shape[1])

    def _features(self, X: Columns) -> Array:
        """Return the features (n, q) of the rows of X."""
        return self.neighborhoods.combinations(self._prepared(X), self.functions, self.own)

    def _prepared(self, X: Columns) -> Columns:
        """Return rows scaled to length one and whitened, as the search for neighbors needs them.

        The metric and the parameter `whitening` say whether rows are scaled and whitened."""
        rows = unit_rows(X) if self.spherical else X
        return rows if self.whitening is None else self.whitening(rows)


class FittedMap(NamedTuple):
    """A diffusion map and the features of the rows that it was fitted to."""

    spec: DiffusionSpec  # with the whitening that was chosen
    random_state: Any
    space: DiffusionSpace
    columns: UnitRows | Identity | None  # the features if no graph is used; None: `space` has them
    features: Callable[[], Array]  # computes the features of the fitted rows
    choices: Sequence[dict[str, Any]] = ()  # the options that were tried

    def known(self) -> Known | DiffusionSpace | UnitRows | Identity:
        """Return the space for clustering the fitted rows.

        If no graph is used, it is the map of the columns. If passes can compute the features, it is
        the diffusion space. Otherwise it is the space together with the features, computed once."""
        if self.columns is not None:
            return self.columns
        if self.space.own is None:
            return self.space
        features = self.features()
        return Known(self.space, (features, Identity(features.shape[1])))


@dataclass(frozen=True, eq=False)
class MapRows:
    """Rows that maps are fitted to, with graphs of their neighbors, which maps share."""

    X: Columns
    weight: Array
    k: int  # clusters that graphs are made for
    n_threads: int
    spec: DiffusionSpec
    is_told: bool = True  # whether k is the number of clusters; else the spectrum suggests one
    most_times: float = 1  # one search finds this multiple of the default number of neighbors
    kept: int = 0  # nearest neighbors of each row that need not be mutual
    scales: Array | None = None  # factors of the columns before whitening; None: ones
    whitened_for: int | None = None  # number of clusters for the components, if it is not k
    # shared by maps: the components, and for each power of deviations the whitened rows, their
    # whitening, and values that their graphs share
    _made: Shared = field(default_factory=Shared, init=False)
    _whitened: dict[float | None, tuple[Columns, Whitening | None, Shared]] = field(
        default_factory=dict, init=False
    )

    @cached_property
    def columns(self) -> Columns:
        """The rows, scaled to length one with the cosine metric."""
        return unit_rows(self.X) if self.spec.metric == "cosine" else self.X

    def components(self, random: Any) -> Components:
        """Return the leading principal components of the rows; they are computed once."""
        rows, k = (self.columns, self.weight), self.whitened_for or self.k
        made: Components = self._made(
            "components", lambda: fit_components(*rows, k, random, self.scales)
        )
        return made

    def diffusion(
        self, wanted: Wanted, whitening: float | None, times: float, random: Any
    ) -> tuple[Diffusion, Whitening | None, Columns]:
        """Return a diffusion on a neighbor graph, the whitening of the rows, and the whitened rows.

        `whitening` is the power of the standard deviations that components are divided by; None:
        the rows are not whitened. The graph has `times` the default number of neighbors. It has at
        most `most` nodes, or `fewer` landmarks if the graph of all rows is too costly."""
        spec = self.spec
        if whitening not in self._whitened:
            prepare = None
            if whitening is not None:
                prepare = self.components(random).whitening(whitening, self.n_threads)
            rows = self.columns if prepare is None else prepare(self.columns)
            self._whitened[whitening] = rows, prepare, Shared(self.most_times)
        rows, prepare, shared = self._whitened[whitening]
        most, fewer = landmark_numbers_of(rows, spec.n_landmarks, self.k)
        r = None if isinstance(spec.n_neighbors, str) else int(spec.n_neighbors)
        count = NeighbourCount(r, times, self.kept)
        on_sphere = spec.metric == "cosine" and prepare is None
        graph_of = partial(
            neighbour_graph, rows, self.weight, count=count, k=self.k, spherical=on_sphere,
            random=random, n_threads=self.n_threads,
        )  # fmt: skip
        graph = shared(count, lambda: graph_of(numbers=(most, fewer), shared=shared))
        if fewer < most and is_costly(graph, wanted):
            graph = graph_of(numbers=(fewer, fewer), shared=Shared())
        return diffusion(graph, wanted), prepare, rows

    def draw(self, option: Option, use: UseOfGraph, random_state: Any) -> Drawn:
        """Compute the slow eigenvectors of the neighbor graph of an option.

        `use` says which features are clustered. "always": the slow eigenvectors of the graph.
        "combined": the eigenvectors, or random combinations of eigenvectors for many clusters.
        "never": the columns of the data. "if shown": the eigenvectors if components of the graph
        show clusters that the columns may miss, else the columns of the data."""
        spec, is_automatic = self.spec, isinstance(self.spec.n_components, str)
        functions = 0 if is_automatic else int(spec.n_components)
        # `rough`: no user sees the eigenvectors, so that less exact eigenvectors suffice
        rough = self.is_told and is_automatic and isinstance(spec.time, str)
        wanted = wanted_pairs(self.k, rough, functions, use)
        # Random combinations have no scale that fits the constant eigenvector.
        option = option._replace(unit=option.unit and wanted.use != "combined")
        if spec.metric == PRECOMPUTED:
            graph = graph_diffusion(self.X, self.weight, wanted)
            return Drawn(self, option, random_state, graph, None, self.X)
        random = checks.check_random_state(random_state)
        drawn = self.diffusion(wanted, option.whitening, option.neighbors, random)
        return Drawn(self, option, random_state, *drawn)


class Drawn(NamedTuple):
    """The slow eigenvectors of a graph, which become features if the graph is chosen."""

    inputs: MapRows
    option: Option
    random_state: Any
    found: Diffusion | GraphDiffusion
    whitening: Whitening | None
    rows: Columns  # rows among which neighbors are searched: whitened, if `whitening` is set

    def fitted(self, unit_variance: bool = False) -> FittedMap:
        """Return the fitted map: features of the nodes, and neighborhoods that place new rows.

        Features of the fitted rows are computed as `transform` computes them, so that both agree.
        With `unit_variance` the features have a total variance of one."""
        inputs, graph, unit = self.inputs, self.found, self.option.unit
        X, spec, parts = inputs.X, inputs.spec, graph.parts
        k = inputs.k if inputs.is_told else None
        time, of_nodes = node_features(graph, spec, k, unit, unit_variance)
        functions, own, near = of_nodes.astype(X.dtype), None, graph.neighbourhoods
        # `own` has the features of nodes that are rows: each node takes a step as a row does. It
        # stays None if nodes are centroids.
        if isinstance(graph, GraphDiffusion):
            own = graph.neighbourhoods.means(graph.graph, functions).astype(X.dtype)
        else:
            landmarks = graph.neighbourhoods.landmarks
            squares = squared_distances(landmarks, column_means(landmarks))
            checks.check_underflow(squares.astype(X.dtype).sum(), [landmarks])
            if graph.weights is not None:
                own = (graph.weights @ of_nodes).astype(X.dtype)
        # numbers of rows in all of X: the graph may have been computed from a sample
        left_out = parts.components.rows[parts.left_out] * (len(X) / parts.n_rows)
        spherical = spec.metric == "cosine"
        space = DiffusionSpace(
            near, graph.spectrum, functions, own, self.whitening, spherical, unit, time,
            parts.components.shares[parts.counted | parts.left_out], parts.n_kept,
            left_out, parts.lose_rows(inputs.k),
        )  # fmt: skip
        columns = UnitRows() if spherical else Identity(X.shape[1])
        return FittedMap(
            replace(spec, whitening=self.option.whitening), self.random_state, space,
            None if graph.is_used else columns, partial(graph.features, self.rows, functions, own),
        )  # fmt: skip


def node_features(
    graph: Diffusion | GraphDiffusion, spec: DiffusionSpec, k: int | None, unit: bool,
    unit_variance: bool = False,
) -> tuple[float, Array]:  # fmt: skip
    """Return the time of the walk, and features (m, q) of its nodes for k clusters.

    The features are the slow eigenvectors, each times its decay exp(-time (1 - mu) / 2) after half
    of the time. If k is None, the spectrum suggests the number of clusters.

    With `unit` a constant column is appended, and each row of features is scaled to length one. The
    length tells only how far out a node is, and a few nodes on a fringe would have the longest
    features. With `unit_variance` but not `unit` the squared decays are scaled to the sum one,
    which is the total variance of the features."""
    spectrum, is_told = graph.spectrum, k is not None
    k = suggested_n_clusters(spectrum, MAX_CLUSTERS) if k is None else k
    time = spectrum.separating_time(k) if isinstance(spec.time, str) else float(spec.time)
    if isinstance(spec.n_components, str):
        index = spectrum.components(k, time)
    else:
        able = spectrum.able()
        slow = spectrum.slow(k) if is_told else able
        # eigenvectors that cover few rows are used only if there are too few slow eigenvectors
        index = np.sort(np.r_[slow, np.setdiff1d(able, slow)][: spec.n_components])
        if max(1, len(index)) < spec.n_components:  # one feature is always there
            raise ValueError(
                f"n_components={spec.n_components}: the graph has {len(index)} eigenfunctions on "
                f"its {len(graph.extension)} nodes. Choose a smaller n_components."
            )
    gaps = spectrum.gaps[index]
    if unit_variance and not unit:
        scale = spectrum.unit_decay(index, time)
    else:
        scale = np.exp(-time * gaps / 2)
        if len(index) and scale @ scale < _LEAST_VARIANCE:
            raise ValueError(
                f"time={time:.4g}: is too long. The features have the variance "
                f"{scale @ scale:.2g}, because the slowest eigenfunction decays in "
                f"{1 / gaps.min():.4g} steps."
            )
    m = len(graph.extension)
    # without any eigenvectors, all nodes have one feature, which is zero
    features = graph.extension[:, index] * scale if len(index) else np.zeros((m, 1))
    return time, np.asarray(unit_rows(np.c_[features, np.ones(m)])) if unit else features


def warn_of_graph(
    space: DiffusionSpace, n_neighbors: Auto | int, expected: int, of: str = ""
) -> None:
    """Warn of a graph with too few nodes, or with more connected components than expected.

    A graph has too few nodes if it has fewer nodes than `n_neighbors`. Small components are not
    counted, because most graphs leave out a few rows on the fringe. But there is also a warning if
    small components may be clusters. `of` names the view in messages."""
    near, r = space.neighborhoods, n_neighbors
    # A graph with at most `expected` nodes comes from equal rows, which another warning names.
    if not isinstance(near, Nodes) and not isinstance(r, str) and expected < near.r < r:
        warn(
            f"n_neighbors={r}: the graph{of} has {near.r} nodes, and a row steps to all of them. "
            f"Set n_neighbors to at most {near.r}.",
            UserWarning,
        )
    shares, rows = space.shares, np.round(space.left_out).astype(int)
    if space.n_kept <= expected and not space.loses_rows:
        return
    named = ", ".join(f"{share:.3g}" for share in shares[:5])
    dots = ", ..." if len(shares) > 5 else ""
    left = ""
    if len(rows):
        size, verb = f"{rows.sum()} rows", "is"
        if len(rows) > 1:
            size, verb = f"at most {rows.max()} rows each and {size} together", "are"
        left = (
            f" {len(rows)} of them, with {size}, {verb} small and left out: each of these rows "
            "joins the nearest row of another component."
        )
    alone = 1 - float(shares.sum())
    if alone > 1e-9:
        left += f" Nodes without near neighbors, {alone:.3g} of the weight, are left out, too."
    remedy = "add edges" if isinstance(near, Nodes) else "increase n_neighbors"
    warn(
        f"The neighbor graph{of} has {len(shares)} connected components, which cover {named}{dots} "
        f"of the weight of the rows.{left} If clusters are missing, {remedy} or n_clusters.",
        ConvergenceWarning,
    )

"""Graphs of rows, of landmarks, or of given affinities, with their components and walks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, diags, identity
from scipy.sparse.csgraph import connected_components

from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns, dense, entries, operand
from rffpk.spaces import neighbors
from rffpk.spaces.kernels import refuse_distances
from rffpk.spaces.neighbors import NeighbourCount, Neighbourhoods, Shared
from rffpk.spaces.spectrum import Spectrum, Walk, Wanted, decompose
from rffpk.system.linalg import gaps_of, in_range
from rffpk.system.tree import groups, ward
from rffpk.system.tuning import TUNING

PRECOMPUTED = "precomputed"


@dataclass(frozen=True)
class Components:
    """The connected components of a graph, the largest first."""

    labels: Array  # (m,): the index of each node's component; -1: the node is in no component
    shares: Array  # (n_components,): fractions of the total weight, falling
    rows: Array  # (n_components,): numbers of rows
    evidence: Array  # the larger of `rows` and of a component's weight over the mean row weight
    enough: Array  # (n_components,) mask: components with enough `evidence` to be a cluster


# Takes the components and an index, and returns how deep the valley is, the gap around a component.
Valley = Callable[[Components, int], float]


@dataclass(frozen=True)
class Parts:
    """Connected components of a graph, and which components are kept for clusters."""

    components: Components
    n_rows: int
    least_rows: float  # a small component with fewer rows is not kept
    least_valley: float  # the valley around a component is deep from this value on
    valley: Valley
    counted: Array  # (n_components,) mask: kept components
    left_out: Array  # (n_components,) mask: components of two or more nodes that are not kept
    kept: Array  # (m,) mask: nodes of kept components
    labels: Array  # for each kept node the index of its component among kept components
    n_kept: int  # number of kept components

    def lose_rows(self, k: int) -> bool:
        """Return whether the components in `left_out` may be clusters.

        The result is True if together they have as many rows as a large component. It is also True
        if a single component has enough rows, or has `TUNING.graph.inside` rows and a deep valley
        around it. Most graphs leave out only a few rows on their fringe: the result is then False.
        """
        rows = self.components.evidence
        if rows[self.left_out].sum() >= max(TUNING.graph.large / k * self.n_rows, self.least_rows):
            return True
        return any(
            self.components.enough[each]
            or self.valley(self.components, int(each)) >= self.least_valley
            for each in np.flatnonzero(self.left_out & (rows >= TUNING.graph.inside - 1e-9))
        )

    def show_clusters(self, k: int) -> bool:
        """Return whether the kept components show clusters that a clustering of columns may miss.

        The result is True if at least k components are kept, or if a kept component is small."""
        small = self.components.shares[self.counted] < TUNING.graph.large / k
        return self.n_kept >= k or bool(small.any())


def divided(
    graph: Any, share: Array, held: Array, degrees: Array, k: int, n_rows: int, valley: Valley,
    n_columns: float = math.inf, rows: Array | None = None,
) -> Parts:  # fmt: skip
    """Divide a graph into connected components, and decide which ones are kept for k clusters.

    Nodes without weight are dropped first, and also nodes that the walk hardly ever leaves, unless
    they are as heavy as a component. `_counted` then decides which components are kept.

    `graph` (m, m) is a sparse adjacency matrix. `share` (m,) is the fraction of the total weight at
    each node. `held` (m,) is the weight of the loop from each node to itself, a part of `degrees`
    (m,). `rows` (m,) are numbers of rows at the nodes; None: `n_rows * share`. `n_columns` is the
    number of columns of the rows: with few columns a valley must be deeper."""
    rows = n_rows * share if rows is None else rows
    tuning = TUNING.graph
    least_rows = max(tuning.least_rows, tuning.rows_of_root * math.sqrt(n_rows / k))
    least_valley = max(tuning.valley, tuning.denser / n_columns)
    # The walk hardly leaves dangling nodes. On the fringe of the rows their eigenvectors may be as
    # slow as eigenvectors that separate clusters. A node as heavy as a component does not dangle.
    leave = 1 - np.divide(held, degrees, out=np.ones(len(share)), where=degrees > 0)
    dangle = leave < tuning.dangling * quantile(leave, share, 0.5)
    present = (share > 0) & ~(dangle & (share < min(tuning.large / k, least_rows / n_rows)))
    labels = np.full(len(share), -1)
    nodes = graph if present.all() else graph[present][:, present]
    labels[present] = connected_components(nodes, directed=False)[1]
    shares = np.bincount(labels[present], share[present])
    # number the components by falling share
    order = np.argsort(-shares, kind="stable")
    labels[present] = np.argsort(order, kind="stable")[labels[present]]
    shares, rows = shares[order], np.bincount(labels[present], rows[present])
    evidence = np.maximum(rows, shares * n_rows)
    enough = evidence >= least_rows * (1 - 1e-9)  # up to rounding
    components = Components(labels, shares, rows, evidence, enough)
    counted = _counted(components, k, valley, least_valley)
    kept = np.append(counted, False)[labels]  # the label -1 takes the appended False
    several = np.bincount(labels[present], minlength=len(counted)) > 1
    return Parts(
        components, n_rows, least_rows, least_valley, valley, counted,
        several & ~counted & (shares > 0), kept, (np.cumsum(counted) - 1)[labels[kept]],
        int(counted.sum()),
    )  # fmt: skip


def _counted(components: Components, k: int, valley: Valley, least_valley: float) -> Array:
    """Return a mask (n_components,) of the components that are kept for k clusters.

    Large components are kept. While fewer than k are kept, smaller components with enough rows are
    visited, the largest first, and are kept if the valley around them is deep. If the kept
    components have less than half of the weight, all components with enough rows are kept. If these
    rules keep no component, all components are kept."""
    shares, enough = components.shares, components.enough
    counted = shares >= TUNING.graph.large / k
    for number in np.flatnonzero(enough & ~counted):
        if counted.sum() >= k:  # the remaining components are smaller
            break
        counted[number] = valley(components, int(number)) >= least_valley
    if shares[counted].sum() < shares.sum() / 2:  # there are many more components than k
        counted |= enough
    return counted if counted.any() else ~counted


def valley_of_rows(
    X: Columns, mass: Array, node: Array, n_threads: int, components: Components, number: int
) -> float:
    """Return the depth of the valley around a component: log(a / b) of two distances.

    The component has the index `number`. Row i of X has the weight mass[i] and belongs to node[i].
    Distance a is a low quantile, over rows of the component, of distances to the nearest row
    outside. Distance b is the median of distances to the `TUNING.graph.inside`-th nearest row
    inside. Rows outside are in other components with enough rows.

    The result is minus infinity if the component has no row in X, and infinity if there are no rows
    outside."""
    labels = components.labels[node]
    own = labels == number
    outside = components.enough[labels] & ~own & (labels >= 0)
    if not own.any():  # X may be a sample without these rows
        return -math.inf
    if not outside.any():
        return math.inf
    rows, p = X[own], mass[own]
    r = TUNING.graph.inside + 1  # the first neighbor of a row is the row itself
    near = Neighbourhoods(rows, r, 0.0, n_threads)._nearest(rows)[0].max(axis=1)
    far = Neighbourhoods(X[outside], 1, 0.0, n_threads)._nearest(rows)[0][:, 0]
    inside, around = quantile(near, p, 0.5), quantile(far, p, TUNING.graph.around_quantile)
    # distances may be rounded to zero; half the logarithm, because distances are squared
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(np.divide(around, inside)) / 2)


def quantile(values: Array, weight: Array, q: float) -> float:
    """Return the least value such that values up to it have the fraction q of the weight."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(sums, q * sums[-1])])


# ---- graphs of landmarks and of rows -------------------------------------------------------------


@dataclass(frozen=True)
class Graph:
    """A walk over the landmarks in kept components of the graph."""

    neighbourhoods: Neighbourhoods
    weights: csr_matrix  # (m, m): sums of p z z' over rows, or z if all distinct rows are landmarks
    degrees: Array  # (m,)
    mass: Array | None  # (m,): weights of the landmarks; None: they are centroids, not rows
    node: Array | None  # (n,): the index of the landmark that equals each row, or -1
    parts: Parts
    n_sampled: int  # the number of rows that the graph was computed from
    shared: Shared  # what diffusions share: spectra, eigenvectors, steps of rows without a node


@dataclass(frozen=True)
class Diffusion:
    """A diffusion over landmarks, and its slow eigenvectors.

    Landmarks that the walk hardly leaves, and landmarks in components that are not kept, are left
    out. Rows near them step to the nearest kept landmarks."""

    neighbourhoods: Neighbourhoods
    spectrum: Spectrum
    extension: Array  # (m, q): the slow eigenvectors at a row x are z(x) @ extension
    weights: csr_matrix | None  # (m, m): z of the landmarks, if all distinct rows are landmarks
    node: Array | None  # (n,), as in `Graph`
    parts: Parts
    is_used: bool  # False: the columns are the features, and no eigenvectors are computed
    shared: Shared  # what diffusions on the same graph share

    def features(self, X: Columns, functions: Array, own: Array | None) -> Array:
        """Return means (n, q) of `functions` (m, q) for the rows that the diffusion was fitted to.

        If all distinct rows are landmarks, `own` (m, q) has the means at the landmarks. Only rows
        that equal no kept landmark then need a search for neighbors."""
        near = self.neighbourhoods
        if own is None or self.node is None:
            return np.asarray(near.combinations(X, functions))
        features, outside = own[self.node], self.node < 0
        if not outside.any():
            return features
        # if several graphs are tried, steps are kept for the next diffusion on this graph
        if self.shared.times == 1:
            features[outside] = near.combinations(X[outside], functions, own)
        else:
            steps = self.shared(
                "steps", lambda: (s := near.steps(X[outside]))._replace(around=[*s.around])
            )
            features[outside] = steps.means(functions, own, near.n_threads)
        return features


def diffusion(graph: Graph, wanted: Wanted) -> Diffusion:
    """Compute the slow eigenvectors of the walk on a graph, as `wanted` says.

    If eigenvectors are only clustered, and at least k components are kept, eigenvectors that are
    constant on each component suffice. If more than k components are kept, near components are
    merged to k first."""
    parts, labels, k = graph.parts, graph.parts.labels, max(wanted.k, 2)
    is_combined = wanted.use == "combined"
    is_shown = wanted.use == "if shown" and parts.show_clusters(wanted.k)
    is_used = wanted.use == "always" or is_combined or is_shown
    is_constant = is_used and not wanted.exact and parts.n_kept >= k
    if is_constant:
        labels = _nearest_joined(graph, k)
    # k components have k - 1 constant eigenvectors beside the first; unused graphs need none
    pairs = k - 1 if is_constant else wanted.pairs if is_used else 0
    # The new `wanted` is a key: diffusions share eigenvectors that were computed for an equal key.
    wanted = wanted._replace(pairs=pairs, use="combined" if is_combined else "always")
    spectrum, functions = graph.shared(
        wanted,
        lambda: decompose(
            partial(_walk, graph), graph.degrees, labels, wanted, graph.n_sampled, parts.least_rows
        ),
    )
    # the means z(x) @ functions are shorter than eigenvectors by the factor sqrt(mu)
    mu = 1 - spectrum.gaps
    extension = functions / np.sqrt(np.where(mu > 0, mu, np.inf))
    weights = None if graph.mass is None else graph.weights
    return Diffusion(
        graph.neighbourhoods, spectrum, extension, weights, graph.node, parts, is_used, graph.shared
    )


def is_costly(graph: Graph, wanted: Wanted) -> bool:
    """Return whether one Chebyshev filter on the graph of all rows takes too long.

    The result is False if no filter runs: for random combinations, unused graphs, and graphs with
    at least as many kept components as clusters. It is also False for exact eigenvectors, which
    users see: they are computed on all rows at any cost."""
    n_kept, if_shown = graph.parts.n_kept, wanted.use == "if shown"
    is_filtered = wanted.use == "always" or (if_shown and graph.parts.show_clusters(wanted.k))
    # without `mass` the graph has few nodes, the landmarks
    if graph.mass is None or wanted.exact or not is_filtered or n_kept >= max(wanted.k, 2):
        return False
    tuning = TUNING.spectrum
    block = max(wanted.pairs - n_kept + 1, tuning.block)
    work = 2 * tuning.degree * block * graph.weights.nnz  # the walk has two factors
    return work > tuning.most_filtered


def _nearest_joined(graph: Graph, k: int) -> Array:
    """Return the component (m,) of each landmark after merging components to k.

    The components are merged by Ward's method, with the means of their landmarks. If there are no
    more than k, nothing is merged."""
    labels, n = graph.parts.labels, graph.parts.n_kept
    if n <= k:
        return labels
    landmarks, mass = graph.neighbourhoods.landmarks, np.bincount(labels, graph.degrees)
    # no component is empty, so the last argument only gives the shape
    means = dense(neighbors.cluster_means(landmarks, graph.degrees, labels, landmarks[:n]))
    means = in_range(means)
    means -= means.mean(axis=0)
    return groups(ward(gaps_of(means @ means.T), mass), k)[labels]


def neighbour_graph(
    X: Columns,
    weight: Array,
    numbers: tuple[int, int],
    count: NeighbourCount,
    k: int,
    spherical: bool,
    random: Any,
    n_threads: int,
    shared: Shared,
) -> Graph:
    """Return the graph of steps from rows to their nearest landmarks and back to rows.

    `numbers` are the results of `landmark_numbers`. If there are few distinct rows, all are
    landmarks, and neighbors are mutual. Otherwise the landmarks are centroids of a sample. The
    number of clusters k decides which components are kept."""
    mass = node = of_nodes = None
    # `rows`, all distinct rows or a sample, have the weights `p` and the nodes `nearest`. `held` is
    # the weight of the loop at each node.
    find = partial(neighbors.distinct_where_few, X, weight, numbers, random)
    distinct = shared("distinct", find)
    if distinct is None:
        near, rows, p, nearest = neighbors.centroid_landmarks(
            X, weight, numbers[1], k, count, spherical, random, n_threads
        )
        degrees, weights, n_rows = near.sums(X, weight, random)
        held, n_sampled = weights.diagonal(), len(nearest)
    else:
        rows, mass, node = distinct
        near, weights = neighbors.mutual_neighbours(rows, mass, count, n_threads, shared)
        p, nearest, degrees = mass, np.arange(len(rows)), weights.T @ mass
        held, n_sampled = weights.power(2).T @ mass, int((node >= 0).sum())
        n_rows, of_nodes = n_sampled, np.bincount(node[node >= 0], minlength=len(rows))
    valley = partial(valley_of_rows, rows, p, nearest, n_threads)
    # A sparse row whose distances are rounded to zero may be no row's neighbor: its degree is zero.
    share = (degrees if mass is None else np.where(degrees > 0, mass, 0)) / degrees.sum()
    parts = divided(weights, share, held, degrees, k, n_rows, valley, rows.shape[1], of_nodes)
    own = Shared(shared.times)
    graph = Graph(near, weights, degrees, mass, node, parts, n_sampled, own)
    return graph if parts.kept.all() else _of_kept(graph)


def _of_kept(graph: Graph) -> Graph:
    """Return the graph with only the landmarks of kept components, and its degrees.

    Steps to other landmarks are removed, and the remaining weights are rescaled."""
    kept = graph.parts.kept
    near, weights = graph.neighbourhoods.of(kept), graph.weights[kept][:, kept]
    sums = np.asarray(weights.sum(axis=1)).ravel()
    if graph.mass is None or graph.node is None:
        return replace(graph, neighbourhoods=near, weights=weights, degrees=sums)
    # the new index of each node; the node -1 takes the appended -1
    new_index = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    mass, weights = graph.mass[kept], _scaled(weights, 1 / sums)
    return replace(
        graph, neighbourhoods=near, weights=weights, degrees=weights.T @ mass,
        mass=mass, node=new_index[graph.node],
    )  # fmt: skip


def _scaled(graph: csr_matrix, rows: Array, columns: Array | None = None) -> csr_matrix:
    """Return a sparse matrix times numbers for its rows, and numbers for its columns if given."""
    data = graph.data * np.repeat(rows, np.diff(graph.indptr))
    if columns is not None:
        data *= columns[graph.indices]
    return csr_matrix((data, graph.indices, graph.indptr), shape=graph.shape)


def _walk(graph: Graph) -> Walk:
    """Return the symmetric matrix of the walk over landmarks.

    The matrix comes from the sums of p z z' over all rows. If all distinct rows are landmarks, it
    is made as two factors, from the weights z and p of the landmarks."""
    scale, n_threads = 1 / np.sqrt(graph.degrees), graph.neighbourhoods.n_threads
    if graph.mass is None:
        return Walk(_scaled(graph.weights, scale, scale), n_threads=n_threads)
    there = _scaled(graph.weights, np.sqrt(graph.mass), scale)
    return Walk(there, there.T.tocsr(), n_threads)


# ---- graphs that are given as matrices of affinities ---------------------------------------------


@dataclass(frozen=True)
class Nodes:
    """Rows of a graph as the nodes of a walk. New rows get means of the values at the nodes."""

    mass: Array  # (n,): weights; zero for nodes that are left out

    def combinations(self, X: Columns, matrix: Array, own: Array | None = None) -> Array:
        """Return weighted means (len(X), q) of the rows of `matrix` (n, q), in the dtype of X.

        The weights are the affinities of each row of X to the n nodes, times the weights of the
        nodes. A row without positive affinity has zeros. `own` is not used."""
        check_affinities(X)
        return self.means(scaled(X), matrix).astype(X.dtype)

    def means(self, affinities: csr_array, matrix: Array) -> Array:
        """Compute `combinations` in float64 from affinities that have been checked and scaled."""
        sums, total = affinities @ (self.mass[:, None] * matrix), affinities @ self.mass
        there = total[:, None] > 0
        return np.divide(sums, total[:, None], out=np.zeros_like(sums), where=there)


@dataclass(frozen=True)
class GraphDiffusion:
    """A diffusion on a given graph, and its slow eigenvectors."""

    neighbourhoods: Nodes
    graph: csr_array  # symmetric
    spectrum: Spectrum
    extension: Array  # (n, q): eigenvectors over eigenvalues; zeros at nodes that are left out
    parts: Parts
    is_used: bool = True

    def features(self, X: Columns, functions: Array, own: Any) -> Any:
        """Return `own`, the features of the rows: rows are nodes, so nothing is computed."""
        return own


def check_affinities(X: Columns) -> None:
    """Refuse entries below zero."""
    least = float(entries(X).min(initial=0))
    if least < 0:
        raise ValueError(
            f"X contains {least:.4g}, must be >= 0: with metric='precomputed' it holds affinities, "
            "larger for nearer rows."
        )


def scaled(X: Columns) -> csr_array:
    """Return affinities as a sparse float64 matrix, scaled so that no entry exceeds one.

    The factor is a power of two, so that no entry is rounded."""
    table = csr_array(operand(X), dtype=np.float64)
    exponent = np.frexp(table.data.max(initial=0))[1]
    table.data = np.ldexp(table.data, -exponent)
    return table


def symmetric(X: Columns, mass: Array) -> csr_array:
    """Return the symmetric matrix (A + A') / 2 of the scaled affinities A, (n, n).

    A row without affinity to any row of positive weight gets a one on the diagonal. `mass` (n,)
    are the weights."""
    half = scaled(X) / 2
    graph = csr_array(half + half.T)
    alone = graph @ mass == 0
    if alone.any():
        graph = csr_array(graph + diags(alone.astype(np.float64)))
    graph.eliminate_zeros()
    graph.sort_indices()
    return graph


def graph_diffusion(X: Columns, weight: Array, wanted: Wanted) -> GraphDiffusion:
    """Return the random walk along the edges of an affinity graph, with its slow eigenvectors.

    The probability of a step is proportional to the affinity of the edge and to the weight of the
    row at its end. If at least k components are kept, and the eigenvectors need not be exact, only
    eigenvectors that are constant on each component are computed.

    The eigenvalues of the walk are from -1 to 1. The matrix here stays at a node with probability
    one half, so that its eigenvalues are from 0 to 1. Order and eigenvectors do not change."""
    check_affinities(X)
    n = len(X)
    if entries(X).size >= n * (n - 1):  # X may be zero only on its diagonal, as distances are
        refuse_distances(dense(X), "X")
    mass = weight / weight.max()
    graph = symmetric(X, mass)
    weighted = csr_array(diags(mass) @ graph @ diags(mass))
    degrees = np.asarray(weighted.sum(axis=1)).ravel()
    share = np.where(degrees > 0, mass, 0) / mass.sum()
    n_rows = int(np.count_nonzero(mass))
    neighbours = np.diff(weighted.indptr) - (weighted.diagonal() > 0)
    valley = partial(_valley, neighbours, mass)
    held, counted = weighted.diagonal(), 1.0 * (mass > 0)
    parts = divided(weighted, share, held, degrees, wanted.k, n_rows, valley, rows=counted)
    kept = parts.kept
    weighted = weighted[kept][:, kept]
    degrees = np.asarray(weighted.sum(axis=1)).ravel()
    if not wanted.exact and parts.n_kept >= max(wanted.k, 2):
        wanted = wanted._replace(pairs=parts.n_kept - 1)
    scale = diags(1 / np.sqrt(degrees))
    spectrum, functions = decompose(
        lambda: Walk(csr_matrix((identity(len(degrees)) + scale @ weighted @ scale) / 2)),
        degrees, parts.labels, wanted, n_rows, parts.least_rows,
    )  # fmt: skip
    # Undo the halving. In a given graph, an eigenvector may cover any number of rows.
    spectrum = replace(spectrum, gaps=2 * spectrum.gaps, enough=0.0)
    mu = 1 - spectrum.gaps
    extension = np.zeros((n, functions.shape[1]))
    extension[kept] = functions / np.where(mu > 0, mu, np.inf)
    return GraphDiffusion(Nodes(np.where(kept, mass, 0)), graph, spectrum, extension, parts)


def _valley(neighbours: Array, mass: Array, components: Components, number: int) -> float:
    """Return a depth of the valley around a component: infinity or minus infinity.

    No affinity crosses the border of a component, so no finite depth can be computed. The depth is
    infinite if the median row of the component has enough neighbors. `neighbours` (n,) has the
    number of neighbors of each row."""
    own = components.labels == number
    enough = quantile(neighbours[own], mass[own], 0.5) >= TUNING.graph.inside
    return math.inf if enough else -math.inf

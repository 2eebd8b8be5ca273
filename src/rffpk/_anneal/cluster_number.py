"""The number of clusters: the sum of what three independent witnesses say, on some of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse import csr_array

from rffpk._anneal.seeding import seed_centroids
from rffpk._anneal.witnesses import (
    MOST_NEIGHBOURS,
    eigengap_scores,
    height_scores,
    mode_counts,
    mode_scores,
    rare_share,
    shares_of_counts,
)
from rffpk._rows.passes import make_rows
from rffpk._rows.sample import RowSample
from rffpk._utils.arrays import Array
from rffpk._utils.linalg import svd
from rffpk._utils.sparse_rows import (
    Columns,
    SparseRows,
    dense,
    distinct_rows,
    rows_differ,
    sparse_rows,
)
from rffpk._utils.tree import groups, ward
from rffpk.maps.graphs import PRECOMPUTED, graph_diffusion
from rffpk.maps.neighbours import NeighbourCount, Neighbourhoods, k_means, unit_rows
from rffpk.maps.spectrum import Diffusion, diffusion
from rffpk.maps.whitening import fit_whitening

# docs/clusters_number.md has the trials behind these.
_ONE = 0.3  # what one cluster begins with
_ALIKE = 1.25  # of numbers whose ratio is smaller only the best is given
_NUMBERS = 5  # that are given, at most
_PAIRS = 64  # eigenpairs of each graph
_GRAPH_ROWS = 1500  # whose graphs are made
_GRAPHS = ((None, 1), (None, 2), (0.5, 1), (1.0, 1))  # whitening, times the default neighbours
_WHITENED = 20  # clusters that whitening makes components for
_GRAPH_CLUSTERS = 32  # where the others see more, the graphs have too few rows of each
_SEPARATED = 60  # clusters for which the components of a graph must be large enough
_PRODUCTS = 4e9  # for the distances of more rows, at most
_ROWS_A_CENTROID = 6  # of the tree
_CENTROIDS_A_CLUSTER = 6
_PASSES = 2  # of k-means
# More rows are looked at where so many clusters are found, or where such a share of the rows is in
# clusters that have few of them. Of larger ones graphs tell nothing, and then densities.
_MANY, _RARE, _TOO_RARE, _MOST_RARE = 16, 0.02, 0.1, 0.5


Say = Callable[[str], None]


class Size(NamedTuple):
    """How many rows are looked at."""

    modes: int
    tree: int
    centroids: tuple[int, int]  # the fewest and the most

    def modes_of(self, columns: int) -> int:
        """Rows whose density is looked at, fewer of many columns."""
        return max(_FIRST.modes, min(self.modes, round((_PRODUCTS / columns) ** 0.5)))


_FIRST, _MORE = Size(3000, 3000, (500, 500)), Size(12_000, 20_000, (1000, 3300))


@dataclass(frozen=True)
class NClustersSelection:
    """Numbers of clusters that rows may have, as `select_n_clusters` and fits find them.

    Attributes
    ----------
    n_clusters : int
        The best number; 1 where nothing tells clusters apart.
    numbers : ndarray of int64, shape (n_numbers,)
        At most five good numbers of clusters, the best first, none within a quarter of another.
    levels : ndarray of int64, shape (n_levels,)
        Those of them that are better than one cluster, coarse to fine; 1 if there is none.
    scores : ndarray of float64, shape (n_considered,)
        The evidence for 1, 2, ... clusters, from 0 to 3: the sum of the next three; one cluster has
        0.3 more.
    eigengaps : ndarray of float64, shape (n_considered,)
        Scores from 0 to 1 by the gaps between the eigenvalues of random walks on several graphs of
        neighbors.
    heights : ndarray of float64, shape (n_considered,)
        Scores from 0 to 1 by the heights of Ward's tree of many small clusters.
    modes : ndarray of float64, shape (n_considered,)
        Scores from 0 to 1 by the modes of the density that last over scales.
    labels : ndarray of int32, shape (n_numbers, n_rows)
        For each of `numbers`, the clusters of the rows that were looked at, from 0 on.
    rows : ndarray of int64, shape (n_rows,)
        The indices of these rows.
    parents : list of ndarray of int32
        For each level except the first, the cluster of the level before in which most rows of each
        of its clusters lie.
    shares : list of ndarray of float64
        The shares of the rows of these clusters that lie there; 1 where levels are nested.
    """

    n_clusters: int
    numbers: NDArray[np.int64]
    levels: NDArray[np.int64]
    scores: NDArray[np.float64] = field(repr=False)
    eigengaps: NDArray[np.float64] = field(repr=False)
    heights: NDArray[np.float64] = field(repr=False)
    modes: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int32] = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    parents: list[NDArray[np.int32]] = field(repr=False)
    shares: list[NDArray[np.float64]] = field(repr=False)

    def number(self, wanted: str) -> int:
        """The number for ``n_clusters="coarse"``, "auto" or "fine"."""
        ends = {"coarse": int(self.levels[0]), "fine": int(self.levels[-1])}
        return ends.get(wanted, self.n_clusters)


class _Evidence:
    """What the witnesses say of some rows."""

    def __init__(self, rows: Array, *scores: Array) -> None:
        self.sums = _total(*scores)
        self.rows = rows
        self.scores = [np.pad(each, (0, len(self.sums) - len(each))) for each in scores]

    @property
    def best(self) -> int:
        return int(np.argmax(self.sums))

    def labels(self, k: int) -> Array:
        """Clusters of the rows."""
        raise NotImplementedError

    def selection(self) -> NClustersSelection:
        """The good numbers and their partitions."""
        numbers = list[int]()
        for k in np.argsort(-self.sums, kind="stable"):
            apart = all(max(k, other) > _ALIKE * min(k, other) for other in numbers)
            if len(numbers) < _NUMBERS and self.sums[k] > 0 and apart and (k > 1 or not numbers):
                numbers.append(int(k))
        labels = np.stack([self.labels(k) for k in numbers]).astype(np.int32)
        levels = sorted(k for k in numbers if self.sums[k] > self.sums[1]) or [1]
        nested = [labels[numbers.index(k)] for k in levels]
        inside = [_inside(fine, coarse) for coarse, fine in zip(nested, nested[1:])]
        return NClustersSelection(
            numbers[0], np.array(numbers), np.array(levels), self.sums[1:],
            *(each[1:] for each in self.scores), labels, self.rows.astype(np.int64),
            [parent for parent, _ in inside], [share for _, share in inside],
        )  # fmt: skip


def _total(*scores: Array) -> Array:
    """The sum of the scores of several witnesses."""
    total = np.zeros(max(len(each) for each in scores))
    for each in scores:
        total[: len(each)] += each
    total[:2] += -math.inf, _ONE
    return total


def _inside(fine: Array, coarse: Array) -> tuple[Array, Array]:
    """For each cluster of a partition that of a coarser one in which most of its rows lie, and the
    share of them."""
    counts = np.zeros((fine.max() + 1, coarse.max() + 1))
    np.add.at(counts, (fine, coarse), 1)
    sizes = np.maximum(counts.sum(axis=1), 1)
    return counts.argmax(axis=1).astype(np.int32), counts.max(axis=1) / sizes


def select_number(
    sample: RowSample, metric: str, random: Any, n_threads: int, say: Say | None = None
) -> NClustersSelection:
    """The number of clusters of rows that have been checked; of the nodes of a graph of affinities
    with the metric "precomputed". Lines about what is done are passed to `say`."""
    say = say or (lambda text: None)
    if metric == PRECOMPUTED:
        say("Looking for the number of clusters of the graph.")
        xs, weight = sample.some()
        found: _Evidence = _OfGraph(xs[0], weight)
    else:
        spherical = metric == "cosine"
        say(f"Looking for the number of clusters in {min(_FIRST.tree, sample.counted)} rows.")
        found = first = _of_rows(sample, spherical, random, n_threads, _FIRST, None)
        if first.shows_many and sample.counted > _FIRST.tree:
            rows = min(_MORE.tree, sample.counted)
            say(f"There may be {first.best} clusters or more: looking at {rows} rows.")
            found = _of_rows(sample, spherical, random, n_threads, _MORE, first)
    selection = found.selection()
    others = ", ".join(str(k) for k in selection.numbers[1:])
    also = f"; other good numbers are {others}" if others else ""
    say(f"The rows have {selection.n_clusters} clusters{also}.")
    return selection


def _of_rows(
    sample: RowSample, spherical: bool, random: Any, n_threads: int, size: Size, before: Any
) -> _OfRows:
    sizes = (_GRAPH_ROWS, size.modes_of(sample.xs[0].shape[1]), size.tree)
    taken = [sample.numbered(n) for n in sizes]
    parts = [
        Part(rows, unit_rows(xs[0]) if spherical else xs[0], weight) for rows, xs, weight in taken
    ]
    return _OfRows(*parts, spherical, size, before, random, n_threads)


class Part(NamedTuple):
    """Some rows that count."""

    rows: Array  # their indices
    X: Columns
    weight: Array | None


class _OfRows(_Evidence):
    """What all witnesses say; those who saw as many rows before keep what they said."""

    def __init__(
        self, few: Part, some: Part, more: Part, spherical: bool, size: Size,
        before: _OfRows | None, random: Any, n_threads: int,
    ) -> None:  # fmt: skip
        self.few, self.more, self.random, self.n_threads = few, more, random, n_threads
        if before is not None:
            self.graphs, gaps = before.graphs, before.scores[0]
        elif rows_differ(few.X):
            used = [graph for graph in _GRAPHS if not spherical or graph[0] is None]
            self.graphs = [self._graph(*each) for each in used]
            gaps = eigengap_scores([each.spectrum for each in self.graphs], _PAIRS)
        else:
            self.graphs, gaps = [], np.zeros(2)
        least, most = size.centroids
        wanted = least if before is None else _CENTROIDS_A_CLUSTER * before.best
        wanted = (
            most if before is not None and before.rare > _RARE else max(least, min(most, wanted))
        )
        self.tree, self.leaf, distinct = self._tree(wanted)
        near = self._near(some.X)
        self.rare = rare_share(near[0])
        heights = height_scores(self.tree, distinct)
        modes = np.zeros(2) if self.rare > _MOST_RARE else mode_scores(*near, len(heights))
        rare = self.rare if before is None else before.rare
        sampled = len(few.rows) < len(more.rows)
        if np.argmax(_total(heights, modes)) > _GRAPH_CLUSTERS or (sampled and rare > _TOO_RARE):
            gaps = np.zeros(2)
        super().__init__(more.rows, gaps, heights, modes)

    @property
    def shows_many(self) -> bool:
        """Whether there may be clusters with few of the rows."""
        return self.best > _MANY or self.rare > _RARE

    def _graph(self, whitening: float | None, times: int) -> Diffusion:
        x = self.few.X
        if whitening is not None:
            fitted = fit_whitening(
                x, self.few.weight, whitening, _WHITENED, self.random, self.n_threads
            )
            x = fitted(x)
        return diffusion(
            x, self.few.weight, (len(x), len(x)), NeighbourCount(None, times), _SEPARATED,
            _PAIRS, None, False, self.random, self.n_threads,
        )  # fmt: skip

    def _tree(self, wanted: int) -> tuple[Array, Array, bool]:
        """Ward's tree of the centroids of many clusters, that of each row, and whether these are
        all distinct rows."""
        x, weight = self.more.X, self.more.weight
        m = max(1, min(wanted, len(x) // _ROWS_A_CENTROID))
        centroids, leaf = distinct_rows(x)
        distinct = len(centroids) <= m
        if not distinct:
            shift = np.zeros(x.shape[1], dtype=x.dtype)
            rows = make_rows([x], [None], weight, self.n_threads, [shift])
            centroids = seed_centroids(rows, x, m, "k-means++", self.random).astype(x.dtype)
            if isinstance(x, SparseRows):
                centroids = sparse_rows(csr_array(centroids))
            centroids = k_means(x, weight, distinct_rows(centroids)[0], self.n_threads, _PASSES)
            leaf = Neighbourhoods(centroids, 1, 0.0, self.n_threads).chosen(x).ravel()
            there, leaf = np.unique(leaf, return_inverse=True)
            centroids = centroids[there]
        places = dense(centroids).astype(np.float64)
        places -= places.mean(axis=0)
        squares = np.einsum("jd,jd->j", places, places)
        gaps = np.maximum(squares + squares[:, None] - 2 * places @ places.T, 0)
        return ward(gaps, np.bincount(leaf, weight, len(places)).astype(float)), leaf, distinct

    def _near(self, X: Columns) -> tuple[Array, Array]:
        """Distances to the nearest rows, rising, and the indices of these."""
        near = Neighbourhoods(X, MOST_NEIGHBOURS + 1, 0.0, self.n_threads)
        squares, index = near._nearest(X)
        order = np.argsort(squares, axis=1, kind="stable")
        distances = np.sqrt(np.take_along_axis(squares, order, axis=1).astype(np.float64))
        return distances, np.take_along_axis(index, order, axis=1)

    def labels(self, k: int) -> Array:
        """By the witness who says most for this number: a cut of the tree or slow functions."""
        if k == 1:
            return np.zeros(len(self.rows), dtype=np.int32)
        gaps, heights, _ = self.scores
        if self.graphs and k < _PAIRS and (gaps[k] >= heights[k] or k > len(self.tree) + 1):
            return self._by_functions(k)
        return groups(self.tree, k)[self.leaf]

    def _by_functions(self, k: int) -> Array:
        graph = self.graphs[0]
        functions = graph.own if graph.own is not None else graph.extension
        labels = slow_labels(functions, graph.spectrum.slow(k), k)
        return np.asarray(labels[self._nodes])

    @cached_property
    def _nodes(self) -> Array:
        """The node of the first graph that is each row; of rows that it has not the nearest."""
        node = np.asarray(self.graphs[0].node)
        kept = np.flatnonzero(node >= 0)
        nearest = Neighbourhoods(self.few.X[kept], 1, 0.0, self.n_threads)
        found = node[kept[nearest.chosen(self.more.X).ravel()]]
        found[np.searchsorted(self.more.rows, self.few.rows[kept])] = node[kept]
        return np.asarray(found)


class _OfGraph(_Evidence):
    """What the witnesses who need no distances say of the nodes of a graph of affinities."""

    def __init__(self, X: Columns, weight: Array | None) -> None:
        self.graph = graph_diffusion(X, weight, _SEPARATED, _PAIRS, None)
        edges, n = self.graph.graph, X.shape[0]
        degrees = np.asarray(edges.sum(axis=1)).ravel()
        r = max((edges.nnz - np.count_nonzero(edges.diagonal())) / n, 1.0)
        gaps = eigengap_scores([self.graph.spectrum], _PAIRS)
        modes = shares_of_counts(mode_counts(np.log(degrees), edges, r), _PAIRS)
        super().__init__(np.arange(n), gaps, np.zeros(2), modes)

    def labels(self, k: int) -> Array:
        if k == 1:
            return np.zeros(len(self.rows), dtype=np.int32)
        return slow_labels(self.graph.extension, self.graph.spectrum.slow(k), k)


def slow_labels(functions: Array, slow: Array, k: int) -> Array:
    """Clusters of nodes by their slow functions: the rotation of these that makes them
    indicators of the nodes that a QR factorisation with pivots chooses. Damle, Minden, Ying:
    Simple, direct and efficient multi-way spectral clustering. Information and Inference 2019,
    algorithm 1.
    """
    functions = np.column_stack([np.ones(len(functions)), functions[:, slow[: k - 1]]])
    pivots = qr(functions.T, mode="r", pivoting=True)[1][: functions.shape[1]]
    left, _, right = svd(functions[pivots].T)
    return np.argmax(np.abs(functions @ (left @ right)), axis=1)

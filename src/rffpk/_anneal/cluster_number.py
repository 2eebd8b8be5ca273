"""The number of clusters: the sum of what three independent witnesses say, on some of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from rffpk._anneal.kernel_products import CenteredKernel, kernel_coordinates
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
from rffpk._rows.sample import RowSample, column_moments
from rffpk._utils.arrays import Array
from rffpk._utils.columns import (
    Columns,
    SparseRows,
    dense,
    distinct_rows,
    scaled_columns,
    side_by_side,
    sparse_rows,
    unit_rows,
)
from rffpk._utils.selection import NClustersSelection
from rffpk._utils.tree import groups, ward
from rffpk._utils.validation import is_graph, is_option, is_precomputed
from rffpk.maps.graphs import graph_diffusion
from rffpk.maps.kernels import PRECOMPUTED, FittedKernel, matched
from rffpk.maps.neighbours import NeighbourCount, Neighbourhoods, Shared, k_means
from rffpk.maps.spectrum import Diffusion, diffusion, slow_labels
from rffpk.maps.whitening import fit_components

# docs/clusters_number.md has the trials behind these.
_ONE = 0.3  # what one cluster begins with
_ALIKE = 1.25  # of numbers whose ratio is smaller only the best is given
_NUMBERS = 5  # that are given, at most
_PAIRS = 40  # eigenpairs of each graph
_GRAPH_ROWS = 1200  # whose graphs are made
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


_CLEAR = 0.8, 0.3  # of the largest sums of views with one cluster, and with more

Say = Callable[[str], None]
Table = Callable[[list[Columns]], Columns]  # the columns of views that are looked at


class Size(NamedTuple):
    """How many rows are looked at."""

    modes: int
    tree: int
    centroids: tuple[int, int]  # the fewest and the most

    def centroids_of(self, before: _OfRows) -> int:
        """Centroids of the tree, by what has been seen on fewer rows."""
        least, most = self.centroids
        if before.rare > _RARE:
            return most
        return max(least, min(most, _CENTROIDS_A_CLUSTER * before.best))

    def modes_of(self, columns: int) -> int:
        """Rows whose density is looked at, fewer of many columns."""
        return max(_FIRST.modes, min(self.modes, round((_PRODUCTS / columns) ** 0.5)))


_FIRST, _MORE = Size(3000, 3000, (500, 500)), Size(12_000, 20_000, (1000, 3300))


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
        """k > 1 clusters of the rows."""
        raise NotImplementedError

    def selection(self) -> NClustersSelection:
        """The good numbers and their partitions."""
        numbers = list[int]()
        for k in np.argsort(-self.sums, kind="stable"):
            apart = all(max(k, other) > _ALIKE * min(k, other) for other in numbers)
            if len(numbers) < _NUMBERS and self.sums[k] > 0 and apart and (k > 1 or not numbers):
                numbers.append(int(k))
        one = np.zeros(len(self.rows))
        labels = np.stack([one if k == 1 else self.labels(k) for k in numbers]).astype(np.int32)
        levels = sorted(k for k in numbers if self.sums[k] > self.sums[1]) or [1]
        nested = [labels[numbers.index(k)] for k in levels]
        gaps, heights, modes = (each[1:] for each in self.scores)
        inside = [_inside(fine, coarse) for coarse, fine in zip(nested, nested[1:])]
        return NClustersSelection(
            numbers[0], np.array(numbers), np.array(levels), self.sums[1:], gaps, heights, modes,
            labels, self.rows.astype(np.int64),
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
    model: Any, sample: RowSample, random: Any, n_threads: int, say: Say | None = None
) -> NClustersSelection:
    """The number of clusters of rows that the model has checked: of the nodes of a graph of
    affinities with its metric "precomputed". Lines about what is done are passed to `say`."""
    say = say or (lambda text: None)
    if is_graph(model):
        say("Looking for the number of clusters of the graph.")
        xs, weight = sample.some()
        found: _Evidence = _OfGraph(xs[0], weight)
    else:
        if is_precomputed(model):
            sample = _of_kernels(model, sample, n_threads)
        spherical = is_option(getattr(model, "metric", None), "cosine")
        tables = _tables(model, sample, spherical, n_threads)
        found = _finest(
            [
                _look(sample, table, name, spherical, random, n_threads, say)
                for name, table in tables.items()
            ]
        )
    selection = found.selection()
    others = ", ".join(str(k) for k in selection.numbers[1:])
    also = f"; other good numbers are {others}" if others else ""
    say(f"The rows have {selection.n_clusters} clusters{also}.")
    return selection


def _look(
    sample: RowSample, table: Table, name: str, spherical: bool, random: Any, n_threads: int,
    say: Say,
) -> _OfRows:  # fmt: skip
    """What the witnesses say of a table of the rows."""
    look = partial(_OfRows, sample, table, spherical, random=random, n_threads=n_threads)
    say(f"Looking for the number of clusters in {min(_FIRST.tree, sample.counted)} rows{name}.")
    found = look(_FIRST, None)
    if not found.shows_many or sample.counted <= _FIRST.tree:
        return found
    rows = min(_MORE.tree, sample.counted)
    say(f"There may be many clusters, or some with few rows: looking at {rows} rows.")
    return look(_MORE, found)


def _finest(found: list[_OfRows]) -> _OfRows:
    """Of several tables of the same rows that whose number is the largest, of those that are clear:
    a view that knows less merges clusters, and does not split them."""
    most = [0.0, 0.0]  # of tables with one cluster, and with more
    for each in found:
        most[each.best > 1] = max(most[each.best > 1], each.sums.max())
    least = max(clear * each for clear, each in zip(_CLEAR, most))
    return max(found, key=lambda each: (each.sums.max() >= least, each.best, each.sums.max()))


def _of_kernels(model: Any, sample: RowSample, n_threads: int) -> RowSample:
    """The rows by coordinates, from precomputed kernels between them."""
    xs, specs = matched(sample.xs, PRECOMPUTED, not model._n_views)
    if any(x.shape[0] != x.shape[1] for x in xs):
        raise ValueError(
            f"n_clusters == {getattr(model, 'n_clusters', 'auto')!r} needs kernels between all "
            "rows, must be a number with those of some rows."
        )
    kernels = [
        FittedKernel(x, spec, weight=sample.weight, n_threads=n_threads)
        for x, spec in zip(xs, specs)
    ]
    return replace(sample, xs=[kernel_coordinates(CenteredKernel(kernel)) for kernel in kernels])


def _tables(model: Any, sample: RowSample, spherical: bool, n_threads: int) -> dict[str, Table]:
    """What takes the tables that are looked at from the views of some rows, and how messages call
    them: each view, and the columns of all, where each view has a total variance of one."""
    n_views = len(vars(model).get("_widths", "1"))
    if n_views == 1:
        return {"": lambda xs: unit_rows(xs[0]) if spherical else xs[0]}
    _, xs, weight = sample.numbered(_FIRST.tree)
    variances = [column_moments(x, weight, n_threads).variance for x in xs[:n_views]]
    scales = [1 / math.sqrt(each) if each > 0 else 1.0 for each in variances]
    columns = np.repeat(scales, [x.shape[1] for x in xs[:n_views]])
    alone: dict[str, Table] = {f" of view {i}": itemgetter(i) for i in range(n_views)}
    together = {" of all views": lambda xs: scaled_columns(side_by_side(xs[:n_views]), columns)}
    return alone | together


class Part(NamedTuple):
    """Some rows that count."""

    rows: Array  # their indices
    X: Columns
    weight: Array | None


class Tree(NamedTuple):
    """Ward's tree of the centroids of many small clusters."""

    linkage: Array
    leaf: Array  # the centroid of each row


class _OfRows(_Evidence):
    """What all three witnesses say of rows."""

    def __init__(
        self, sample: RowSample, table: Table, spherical: bool, size: Size,
        before: _OfRows | None, random: Any, n_threads: int,
    ) -> None:  # fmt: skip
        self.n_threads = n_threads
        self.few = _part(sample, _GRAPH_ROWS, table)
        sizes = size.modes_of(self.few.X.shape[1]), size.tree
        some, more = (_part(sample, n, table) for n in sizes)
        self.X, wanted = more.X, size.centroids[0]
        if before is None:
            self.graphs = _graphs(self.few, spherical, random, n_threads)
        else:
            self.graphs, wanted = before.graphs, size.centroids_of(before)
        self.tree = _tree(more, wanted, random, n_threads)
        near = _near(some.X, n_threads)
        self.rare = rare_share(near[0])
        gaps = eigengap_scores([each.spectrum for each in self.graphs], _PAIRS)
        heights = height_scores(self.tree.linkage)
        modes = mode_scores(*near, len(heights)) if self.rare <= _MOST_RARE else np.zeros(2)
        rare = (before or self).rare if len(self.few.rows) < len(more.rows) else 0.0
        if rare > _TOO_RARE or np.argmax(_total(heights, modes)) > _GRAPH_CLUSTERS:
            gaps = np.zeros(2)
        super().__init__(more.rows, gaps, heights, modes)

    @property
    def shows_many(self) -> bool:
        """Whether there may be clusters with few of the rows."""
        return self.best > _MANY or self.rare > _RARE

    def labels(self, k: int) -> Array:
        """By the witness who says most for this number: a cut of the tree or slow functions."""
        gaps, heights, _ = self.scores
        n_leaves = len(self.tree.linkage) + 1
        if k <= _PAIRS and (gaps[k] >= heights[k] or k > n_leaves):
            graph = self.graphs[0]
            functions = graph.own if graph.own is not None else graph.extension
            return slow_labels(functions[:, graph.spectrum.slow(k)], k)[self._nodes]
        return groups(self.tree.linkage, k)[self.tree.leaf]

    @cached_property
    def _nodes(self) -> Array:
        """The node of the first graph that is each row; of rows that it has not the nearest."""
        node = np.asarray(self.graphs[0].node)
        kept = np.flatnonzero(node >= 0)
        nearest = Neighbourhoods(self.few.X[kept], 1, 0.0, self.n_threads)
        found = np.full(len(self.rows), -1)
        found[np.searchsorted(self.rows, self.few.rows[kept])] = node[kept]
        others = np.flatnonzero(found < 0)
        if len(others):
            found[others] = node[kept[nearest.chosen(self.X[others]).ravel()]]
        return np.asarray(found)


def _part(sample: RowSample, n: int, table: Table) -> Part:
    rows, xs, weight = sample.numbered(n)
    return Part(rows, table(xs), weight)


def _graphs(some: Part, spherical: bool, random: Any, n_threads: int) -> list[Diffusion]:
    """Several graphs of neighbours; rows on a sphere are not whitened."""
    found, n, shared = list[Diffusion](), len(some.X), Shared()
    most = max(times for _, times in _GRAPHS)

    def whitened(exponent: float) -> Array:
        components = shared(
            "components", lambda: fit_components(some.X, some.weight, _WHITENED, random)
        )
        return np.asarray(components.whitening(exponent, n_threads)(some.X))

    for whitening, times in _GRAPHS:
        if whitening is not None and spherical:
            continue
        x = some.X if whitening is None else whitened(whitening)
        found.append(
            diffusion(
                x, some.weight, (n, n), NeighbourCount(None, times), _SEPARATED, _PAIRS, None,
                False, random, n_threads,
                shared=shared(whitening, partial(Shared, most if whitening is None else 1)),
            )
        )  # fmt: skip
    return found


def _tree(some: Part, wanted: int, random: Any, n_threads: int) -> Tree:
    """The tree of so many centroids, if there are enough rows of each."""
    x = some.X
    m = max(1, min(wanted, len(x) // _ROWS_A_CENTROID))
    centroids, leaf = distinct_rows(x)
    if len(centroids) > m:
        shift = np.zeros(x.shape[1], dtype=x.dtype)
        rows = make_rows([x], [None], some.weight, n_threads, [shift])
        seeds: Columns = seed_centroids(rows, x, m, "k-means++", random).astype(x.dtype)
        if isinstance(x, SparseRows):
            seeds = sparse_rows(csr_array(seeds))
        centroids = k_means(x, some.weight, distinct_rows(seeds)[0], n_threads, _PASSES)
        leaf = Neighbourhoods(centroids, 1, 0.0, n_threads).chosen(x).ravel()
        there, leaf = np.unique(leaf, return_inverse=True)
        centroids = centroids[there]
    places = dense(centroids).astype(np.float64)
    places -= places.mean(axis=0)
    squares = np.einsum("jd,jd->j", places, places)
    gaps = np.maximum(squares + squares[:, None] - 2 * places @ places.T, 0)
    masses = np.bincount(leaf, some.weight, len(places)).astype(np.float64)
    return Tree(ward(gaps, masses), leaf)


def _near(X: Columns, n_threads: int) -> tuple[Array, Array]:
    """Distances to the nearest rows, rising, and the indices of these."""
    squares, index = Neighbourhoods(X, MOST_NEIGHBOURS + 1, 0.0, n_threads)._nearest(X)
    order = np.argsort(squares, axis=1, kind="stable")
    distances = np.sqrt(np.take_along_axis(squares, order, axis=1).astype(np.float64))
    return distances, np.take_along_axis(index, order, axis=1)


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
        return slow_labels(self.graph.extension[:, self.graph.spectrum.slow(k)], k)

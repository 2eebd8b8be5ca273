"""The number of clusters: the sum of the scores of three criteria, on a sample of the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rffpk.anneal.kernel_steps import kernel_coordinates
from rffpk.anneal.starts import seed_rows
from rffpk.choose.selection import NClustersSelection
from rffpk.rows.arrays import Array
from rffpk.rows.door import Kind
from rffpk.rows.passes import column_rows
from rffpk.rows.sample import Opened, column_moments
from rffpk.rows.table import Columns, dense, distinct_rows, scaled_columns, side_by_side, unit_rows
from rffpk.spaces.diffusion import DiffusionSpec, MapRows
from rffpk.spaces.graph import graph_diffusion
from rffpk.spaces.kernels import PRECOMPUTED, FittedKernel, matched
from rffpk.spaces.neighbors import Neighbourhoods, k_means
from rffpk.spaces.spectrum import Wanted, eigengaps, slow_labels
from rffpk.spaces.whitening import PER_CLUSTER, fit_components
from rffpk.system.linalg import gaps_of
from rffpk.system.tree import groups, root, ward
from rffpk.system.tuning import TUNING

Say = Callable[[str], None]
Table = Callable[[list[Columns]], Columns]  # computes an array of columns from the views of rows
Part = tuple[Array, Columns, Array]  # the indices of some rows, the rows, and their weights


class _Evidence(NamedTuple):
    """Scores of three criteria for each number of clusters of a sample of rows."""

    rows: Array  # indices of the rows in the data set
    sums: Array  # sums[k] is the sum of the scores of k clusters
    scores: tuple[Array, Array, Array]  # scores by eigengaps, by heights and by modes
    labels: Callable[[list[int]], list[Array]]  # labels of `rows` for each number > 1 in a list
    rare: float = 0.0  # share of the rows that are in clusters of few rows

    @property
    def best(self) -> int:
        return int(np.argmax(self.sums))


def select_number(
    kind: Kind, spherical: bool, sample: Opened, random: Any, say: Say
) -> NClustersSelection:
    """Find the number of clusters of checked rows, or of the nodes of an affinity graph.

    `kind` is the kind of X. `spherical`: rows are compared by their directions. `say` is called
    with a line of text for each step."""
    if kind == "graph":
        say("Looking for the number of clusters of the graph.")
        xs, weight = sample.some()
        evidence = _of_graph(xs[0], weight)
    else:
        n_views, n_threads = len(sample.shape.widths), sample.how.n_threads
        if kind == "kernels":
            sample = _of_kernels(sample, n_threads)
        sample = _without_copies(sample)
        seen, tables = [], _tables(n_views, sample, spherical, n_threads)
        for name, table in tables.items():
            alone = len(tables) == 1
            look = partial(_of_rows, sample, table, alone, spherical, random, n_threads)
            tuning = TUNING.number
            rows = min(tuning.tree_rows[0], sample.counted)
            say(f"Looking for the number of clusters in {rows} rows{name}.")
            evidence = look()
            if rows < sample.counted and (
                evidence.best > tuning.many or evidence.rare > tuning.rare
            ):
                rows = min(tuning.tree_rows[1], sample.counted)
                say(f"There may be many clusters, or some with few rows: looking at {rows} rows.")
                evidence = look(evidence)
            seen.append(evidence)
        evidence = _finest(seen)
    selection = _selection(evidence)
    rest = ", ".join(str(k) for k in selection.numbers[1:])
    also = f"; other good numbers are {rest}" if rest else ""
    clusters = "1 cluster" if selection.n_clusters == 1 else f"{selection.n_clusters} clusters"
    say(f"The rows have {clusters}{also}.")
    return selection


def _selection(evidence: _Evidence) -> NClustersSelection:
    """Return the record of the best numbers of clusters, their partitions, and how they nest.

    The numbers with positive sums of scores are visited from the best on. A number is left out if
    it is close to a number before it."""
    sums, numbers, tuning = evidence.sums, list[int](), TUNING.number
    order = np.argsort(-sums, kind="stable")
    for k in order[sums[order] > 0].tolist():
        apart = all(max(k, other) > tuning.alike_ratio * min(k, other) for other in numbers)
        # one cluster is listed only as the best number
        if len(numbers) < tuning.most_numbers and apart and (k > 1 or not numbers):
            numbers.append(k)
    one = [np.zeros(len(evidence.rows))] if numbers[0] == 1 else []
    labels = np.array([*one, *evidence.labels(numbers[len(one) :])], dtype=np.int32)
    levels = sorted(k for k in numbers if sums[k] > sums[1]) or [1]
    nested = [labels[numbers.index(k)] for k in levels]
    gaps, heights, modes = (each[1:] for each in evidence.scores)
    parents, shares = list[Array](), list[Array]()
    for coarse, fine in zip(nested, nested[1:]):
        counts = np.zeros((fine.max() + 1, coarse.max() + 1))
        np.add.at(counts, (fine, coarse), 1)
        parents.append(counts.argmax(axis=1).astype(np.int32))
        shares.append(counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1))
    return NClustersSelection(
        numbers[0], np.array(numbers), np.array(levels), sums[1:], gaps, heights, modes, labels,
        evidence.rows.astype(np.int64), parents, shares,
    )  # fmt: skip


def _total(*scores: Array) -> Array:
    """Sum the scores of several criteria for each number of clusters k, at the index k.

    k = 0 gets minus infinity, and k = 1 gets a fixed score."""
    total = np.sum(scores, axis=0)
    total[:2] += -math.inf, TUNING.number.one_cluster
    return np.asarray(total)


def _finest(seen: list[_Evidence]) -> _Evidence:
    """Return the evidence with the largest number of clusters among views with clear evidence.

    `seen` has the evidence of each view and of all views together, on the same rows. A view with
    less information merges clusters, but does not split them: so the largest number is taken.
    Evidence is clear if its best score is large compared with the best scores of all views."""
    most = [0.0, 0.0]  # largest scores of views with one cluster, and of views with more
    for each in seen:
        most[each.best > 1] = max(most[each.best > 1], each.sums.max())
    least = max(TUNING.number.clear_one * most[0], TUNING.number.clear_more * most[1])
    # clear evidence first, then the largest number, then the best score
    return max(seen, key=lambda each: (each.sums.max() >= least, each.best, each.sums.max()))


def _without_copies(sample: Opened) -> Opened:
    """Return a sample where the first of equal rows has the weight of all of them.

    The copies get the weight zero, so that densities and neighbors are of distinct rows. The sample
    is returned unchanged if rows have many copies, because equal rows are then clusters. It is also
    returned unchanged if the data set is so large that few copies are drawn."""
    if sample.sample is not None or sample.n > TUNING.number.tree_rows[1]:
        return sample
    weight = sample.weight
    group = distinct_rows(side_by_side(sample.tables))[1]  # of equal rows
    counted = np.flatnonzero(weight)
    first = counted[np.unique(group[counted], return_index=True)[1]]
    if len(first) == len(counted) or len(counted) > TUNING.number.rows_a_centroid * len(first):
        return sample
    sums = np.zeros(sample.n)
    sums[first] = np.bincount(group, weight)[group[first]]
    return replace(sample, weight=sums, counted=len(first), _moments={})


def _of_kernels(sample: Opened, n_threads: int) -> Opened:
    """Return a sample in which precomputed kernels are replaced by coordinates of the rows."""
    xs, specs = matched(sample.tables, PRECOMPUTED, not sample.shape.has_views, sample.weight)
    if any(x.shape[0] != x.shape[1] for x in xs):
        raise ValueError(
            "n_clusters: needs kernels between all rows where it is no number, and X has the "
            f"shape {xs[0].shape}. Pass n_clusters as an integer."
        )
    kernels = [
        FittedKernel(x, spec, weight=sample.weight, n_threads=n_threads, shift=True)
        for x, spec in zip(xs, specs)
    ]
    tables = [*map(kernel_coordinates, kernels)]
    return sample.with_tables(tables, tuple(range(len(tables))))


def _tables(n_views: int, sample: Opened, spherical: bool, n_threads: int) -> dict[str, Table]:
    """Return functions that compute columns from the views of rows, by their names in messages.

    With several views there is a function for each view, and one for all views. The last joins the
    columns, after scaling each view to a total variance of one."""
    if n_views == 1:
        return {"": lambda xs: unit_rows(xs[0]) if spherical else xs[0]}
    _, xs, weight = sample.numbered(TUNING.number.tree_rows[0])
    variances = [column_moments(x, weight, n_threads).variance for x in xs[:n_views]]
    scales = [1 / math.sqrt(each) if each > 0 else 1.0 for each in variances]
    columns = np.repeat(scales, [x.shape[1] for x in xs[:n_views]])
    alone: dict[str, Table] = {f" of view {i}": itemgetter(i) for i in range(n_views)}
    together = {" of all views": lambda xs: scaled_columns(side_by_side(xs[:n_views]), columns)}
    return alone | together


def _of_graph(X: Columns, weight: Array) -> _Evidence:
    """Return the evidence of an affinity graph: only its eigengaps are scored."""
    pairs = TUNING.number.pairs
    found = graph_diffusion(X, weight, Wanted(TUNING.number.most_clusters, pairs))
    spectrum, none = found.spectrum, np.zeros(pairs + 1)
    scores = outstanding_scores(eigengaps(spectrum, pairs)), none, none
    return _Evidence(
        np.arange(X.shape[0]), _total(*scores), scores,
        lambda numbers: [slow_labels(found.extension[:, spectrum.slow(k)], k) for k in numbers],
    )  # fmt: skip


def _of_rows(
    sample: Opened, table: Table, alone: bool, spherical: bool, random: Any, n_threads: int,
    before: _Evidence | None = None,
) -> _Evidence:  # fmt: skip
    """Score numbers of clusters of a sample of rows by all three criteria.

    `table` computes the columns from the views. `alone` is True if it is the only table, so that
    its scores are not compared with scores of other tables. `before` is the evidence of a first
    look at a smaller sample; None: this is the first look."""
    tuning, look = TUNING.number, int(before is not None)  # the second look takes more rows
    if before is None:
        table = _leading(sample, table, random, n_threads)
    of_graph = _part(sample, tuning.graph_rows, table)
    # m^2 distances in d columns take m^2 d work
    m = round((tuning.distance_work / of_graph[1].shape[1]) ** 0.5)
    m = max(tuning.mode_rows[0], min(tuning.mode_rows[look], m))
    of_tree, of_modes = _part(sample, tuning.tree_rows[look], table), _part(sample, m, table)[1]
    # heights
    # the second look takes as many centroids as the first look suggests
    wanted, most = tuning.least_centroids[look], tuning.most_centroids[look]
    if before is not None:
        many = most if before.rare > tuning.rare else tuning.centroids_a_cluster * before.best
        wanted = max(wanted, min(most, many))
    tree = _tree(of_tree, wanted, random, n_threads)
    largest = max(tuning.pairs, len(tree[0]) + 2)  # all numbers with scores fit in
    heights = height_scores(tree[0], largest)
    # modes
    r = max(tuning.neighbors) + 1  # each row is its own nearest row
    squares, index = Neighbourhoods(of_modes, r, 0.0, n_threads)._nearest(of_modes)
    order = np.argsort(squares, axis=1, kind="stable")
    distances = np.sqrt(np.take_along_axis(squares, order, axis=1).astype(np.float64))
    rare, modes = rare_share(distances), np.zeros(largest + 1)
    if rare <= tuning.most_rare:
        modes = mode_scores(distances, np.take_along_axis(index, order, axis=1), largest)
    # eigengaps
    gaps, times = np.zeros(largest + 1), max(times for _, times in tuning.graphs)
    graphs = MapRows(
        *of_graph[1:], tuning.most_clusters, n_threads, DiffusionSpec(), most_times=times,
        whitened_for=tuning.whitened_for,
    )  # fmt: skip
    # a graph of fewer rows than the tree may miss small clusters
    missed = rare if before is None else before.rare
    if len(of_graph[0]) == len(of_tree[0]):
        missed = 0.0
    if missed <= tuning.too_rare and np.argmax(_total(heights, modes)) <= tuning.graph_clusters:
        # rows on a sphere are not whitened
        options = [each for each in tuning.graphs if not (spherical and each[0])]
        gaps = _gaps_of_graphs(graphs, options, heights, modes, alone, random)
    scores = gaps, heights, modes
    labels = partial(_partitions, of_graph[0], of_tree, graphs, random, tree, gaps, heights)
    return _Evidence(of_tree[0], _total(*scores), scores, labels, rare)


def _gaps_of_graphs(
    graphs: MapRows, options: list[tuple[float | None, int]], heights: Array, modes: Array,
    alone: bool, random: Any,
) -> Array:  # fmt: skip
    """Return the eigengap scores of the numbers of clusters, from several neighbor graphs.

    If the table is `alone`, later graphs are left out once they cannot change the best number, and
    are unlikely to change the levels. A graph that is left out could add at most its share of the
    score to each number from 2 on. Levels, the numbers that are better than one cluster, should
    also stay if the missing graphs agree with the computed graphs."""
    logs, wanted = list[Array](), Wanted(TUNING.number.most_clusters, TUNING.number.pairs)
    for option in options:
        found = graphs.diffusion(wanted, *option, random)[0]
        logs.append(eigengaps(found.spectrum, len(modes) - 1))
        share, likely = len(logs) / len(options), eigengap_scores(logs)
        # totals if the missing graphs add nothing, if they agree, and if they add all they can
        gaps = share * likely
        least, likely = _total(gaps, heights, modes), _total(likely, heights, modes)
        best, most = int(np.argmax(least)), least.copy()
        most[2 : wanted.pairs + 1] += 1 - share
        most[best] = -math.inf
        are_levels = (least > least[1]) == (likely > likely[1])
        if alone and least[best] > most.max() and are_levels.all():
            break
    return gaps


def _part(sample: Opened, n: int, table: Table) -> Part:
    """Return indices, columns and weights of at most n random rows of positive weight."""
    rows, xs, weight = sample.numbered(n)
    return rows, table(xs), weight


def _leading(sample: Opened, table: Table, random: Any, n_threads: int) -> Table:
    """Return a function that computes few columns from views: `table`, or principal components.

    `table` is returned if it has few columns. Noise in many columns would exceed the distances
    between clusters, and the density would hardly fall between clusters."""
    _, x, weight = _part(sample, TUNING.number.tree_rows[0], table)
    if x.shape[1] <= PER_CLUSTER * TUNING.number.whitened_for:
        return table
    reduced = fit_components(x, weight, TUNING.number.whitened_for, random).whitening(
        None, n_threads
    )
    return lambda xs: reduced(table(xs))


def _tree(some: Part, wanted: int, random: Any, n_threads: int) -> tuple[Array, Array]:
    """Return Ward's tree of about `wanted` small clusters, and the cluster (n,) of each row.

    The tree is the linkage matrix of the k-means centroids. There are fewer clusters if there are
    too few rows for each."""
    _, x, weight = some
    m = max(1, min(wanted, len(x) // TUNING.number.rows_a_centroid))
    centroids, leaf = distinct_rows(x)
    if len(centroids) > m:
        rows = column_rows(x, weight, n_threads)
        seeds = distinct_rows(x[seed_rows(rows, x, m, "k-means++", random)])[0]
        centroids = k_means(x, weight, seeds, n_threads, TUNING.number.passes)
        leaf = Neighbourhoods(centroids, 1, 0.0, n_threads).chosen(x).ravel()
        there, leaf = np.unique(leaf, return_inverse=True)
        centroids = centroids[there]
    places = dense(centroids).astype(np.float64)
    places -= places.mean(axis=0)  # smaller rounding errors
    masses = np.bincount(leaf, weight, len(places)).astype(np.float64)
    return ward(gaps_of(places @ places.T), masses), leaf


def _partitions(
    of_graph: Array, of_tree: Part, graphs: MapRows, random: Any, tree: tuple[Array, Array],
    gaps: Array, heights: Array, numbers: list[int],
) -> list[Array]:  # fmt: skip
    """Return labels of the rows for each of `numbers`, a list of numbers of clusters.

    A partition is either a cut of Ward's tree, or a clustering by slow eigenvectors of the graph.
    The graph is used if its eigengap score is at least the height score of the tree. The graph has
    only a part of the rows; other rows get the label of the nearest row in the graph."""
    linkage, leaf = tree
    wanted = Wanted(TUNING.number.most_clusters, TUNING.number.pairs)
    # the graph also gives numbers for which the tree has too few leaves
    by_graph = [
        k <= wanted.pairs and (gaps[k] >= heights[k] or k > len(linkage) + 1) for k in numbers
    ]
    if not any(by_graph):
        return [groups(linkage, k)[leaf] for k in numbers]
    walk, (rows, x, _) = graphs.diffusion(wanted, *TUNING.number.graphs[0], random)[0], of_tree
    functions = walk.weights @ walk.extension  # all rows are landmarks
    nearest = np.full(len(rows), -1)
    nearest[np.searchsorted(rows, of_graph)] = walk.node  # rows of the graph are in the tree, too
    outside = np.flatnonzero(nearest < 0)
    if len(outside):
        nearest[outside] = replace(walk.neighbourhoods, r=1).chosen(x[outside]).ravel()
    return [
        slow_labels(functions[:, walk.spectrum.slow(k)], k)[nearest] if is_slow
        else groups(linkage, k)[leaf]
        for k, is_slow in zip(numbers, by_graph)
    ]  # fmt: skip


# ---- the three criteria --------------------------------------------------------------------------


_ROUNDING = 1e-12  # this part of the largest cost is rounding


def eigengap_scores(eigengaps: list[Array]) -> Array:
    """Return scores (largest + 1,) from 0 to 1 of the numbers k, the mean over several graphs.

    `eigengaps` has an array for each graph, as `spectrum.eigengaps` returns it: logarithms of gaps.
    From each gap k a fraction of the sum of the gaps k + 1 to 2 k - 1 is subtracted. Eigenvalues
    fall by such gaps even without clusters."""
    gaps = np.array(eigengaps)
    sums, k = np.cumsum(np.maximum(gaps, 0), axis=1), np.arange(gaps.shape[1])
    usual = sums[:, np.clip(2 * k - 1, 0, k[-1])] - sums
    most = TUNING.number.largest_gap
    return np.asarray(np.clip(gaps - TUNING.number.usual_part * usual, 0, most).mean(axis=0)) / most


def outstanding_scores(eigengaps: Array) -> Array:
    """Return scores from 0 to 1 of how far eigengap k stands out above the eigengaps after it.

    Eigenvalues after the communities have gaps of similar, random size. So an eigengap stands out
    if it is much larger than the gaps after it. The score is the logarithm of the ratio of eigengap
    k to the largest of the eigengaps k + 1 to 2 k + 2, scaled."""
    scores = np.zeros(len(eigengaps))
    for k in range(2, len(eigengaps) - 1):
        largest = eigengaps[k + 1 : 2 * k + 3].max()
        scores[k] = eigengaps[k] / max(largest, TUNING.number.chance_gap)
    return np.clip(np.log(np.maximum(scores, 1)) / TUNING.number.largest_outstanding, 0, 1)


def height_scores(linkage: Array, largest: int) -> Array:
    """Return scores (largest + 1,) from 0 to 1 of the numbers k, from the costs of Ward's tree.

    Let c_k be the log cost of merging k clusters to k - 1. The score is c_k - c_(k + 1), cut to a
    range. Without clusters costs fall, too, so a fraction of c_(k + 1) - c_(2 k + 1) is subtracted
    before. `linkage` is the linkage matrix of the tree."""
    scores, most = np.zeros(largest + 1), TUNING.number.largest_height
    costs = linkage[::-1, 2] ** 2  # twice the costs of the mergers of 2, 3, ... clusters
    if len(costs) == 0 or not costs[0] > 0:
        return scores
    logs = np.log(np.maximum(costs, _ROUNDING * costs[0]))
    place = np.arange(len(logs) - 1)  # k - 2: c_k is logs[k - 2], c_(2 k + 1) is logs[2 k - 1]
    usual = TUNING.number.usual_part * (logs[1:] - logs[np.minimum(2 * place + 3, len(logs) - 1)])
    scores[2 : len(logs) + 1] = np.clip(logs[:-1] - logs[1:] - usual, 0, most)
    scores[len(logs) // 2 + 2 :] = 0  # clusters would be single leaves
    return scores / most


def mode_scores(distances: Array, index: Array, largest: int) -> Array:
    """Return the share of scales and significances at which the density has k modes, at index k.

    `distances` (n, r) are from rows to their nearest rows, rising; each row is its own nearest row.
    `index` (n, r) has the indices of the nearest rows. A scale is a number of neighbors. A
    significance is how far a mode must stand out."""
    if distances.shape[1] == 1:  # a single row
        return shares_of_counts(np.ones(1, dtype=np.intp), largest)
    dimension = intrinsic_dimension(distances, 0, TUNING.number.neighbors[0])
    counts = []
    for r in sorted({min(r, distances.shape[1] - 1) for r in TUNING.number.neighbors}):
        far = distances[:, r]
        least = far[far > 0].min(initial=math.inf)
        # On a line a path between two modes cannot avoid the lowest row between them, so that
        # chance deepens valleys. So in d < 2 dimensions log densities are scaled by d/2, too.
        shown = min(dimension, dimension**2 / 2)
        density = -shown * np.log(np.maximum(far, least)) if least < math.inf else 0 * far
        ends = np.arange(0, len(far) * r + 1, r)
        neighbors = index[:, 1 : r + 1].ravel()
        edges = csr_array((np.ones(len(neighbors)), neighbors, ends), shape=(len(far), len(far)))
        counts.append(mode_counts(density, edges, r))
    return shares_of_counts(np.concatenate(counts), largest)


def shares_of_counts(counts: Array, largest: int) -> Array:
    """Return the share of `counts` that equal k, at index k, for k from 0 to `largest`.

    For large k, a count near k adds a part: the part falls linearly with the difference."""
    k = np.arange(largest + 1)
    apart = np.abs(counts[:, None] - k) / (1 + k // TUNING.number.exact_modes)
    return np.asarray(np.maximum(1 - apart, 0).mean(axis=0))


def mode_counts(density: Array, edges: csr_array, r: float) -> NDArray[np.intp]:
    """Return the number of modes of a density on a graph, for each significance.

    `density` (n,) has logarithms of the density at the nodes, estimated from r neighbors. A mode is
    counted if its prominence is at least the significance. Chazal, Guibas, Oudot, Skraba:
    Persistence-based clustering in Riemannian manifolds. JACM 2013."""
    prominences = _prominences(density, edges)
    # 3.0 is (2 log(n/r))^(1/2) for a thousand rows and ten neighbors
    deviation = math.sqrt(2 * math.log(max(len(density) / r, 2)) / r) / 3.0
    significances = np.multiply(TUNING.number.significances, deviation)
    return np.array([np.count_nonzero(prominences >= least) for least in significances])


def _prominences(density: Array, edges: csr_array) -> Array:
    """Return the prominence (n,) of each mode: its height above the best path to a higher mode.

    The height of a path is the density of its lowest node, and the best path is the highest path.
    The prominence is infinite if no path leads to a higher mode, and zero at nodes that are no
    modes. The results are in the order of falling density."""
    n = len(density)
    order = np.argsort(-density, kind="stable")
    rank = np.empty(n, dtype=np.intp)
    rank[order] = np.arange(n)
    height, pairs = density[order], edges.tocoo()
    ends = rank[pairs.row], rank[pairs.col]
    high, low = np.minimum(*ends), np.maximum(*ends)
    mode = np.arange(n)  # a node's densest neighbor, if that is denser than itself; later its mode
    np.minimum.at(mode, low, high)
    while (mode != mode[mode]).any():
        mode = mode[mode]
    # As the density falls, nodes appear, and an edge appears with the lower of its two nodes. Only
    # the first edge between two modes matters: there, paths between the modes are highest.
    across = np.flatnonzero(mode[low] != mode[high])
    across = across[np.argsort(low[across], kind="stable")]
    met = np.array([mode[low[across]], mode[high[across]]])
    first = np.sort(np.unique(met.min(axis=0) * n + met.max(axis=0), return_index=True)[1])
    parent, prominences = [*range(n)], np.where(mode == np.arange(n), math.inf, 0.0)
    for i, j, level in zip(*met[:, first].tolist(), height[low[across[first]]].tolist()):
        i, j = sorted((root(parent, i), root(parent, j)))  # the higher mode is first
        if i != j:  # j joins a higher mode for the first time
            parent[j] = i
            prominences[j] = height[j] - level
    return prominences


def rare_share(distances: Array) -> float:
    """Return the share of rows that have a few near neighbors, and a jump to the next neighbor.

    A jump shows that the cluster of the row has fewer rows in this sample than neighbors in
    `distances`. `distances` (n, r) are from rows to their nearest rows, rising; each row is its own
    nearest row.

    Let T_j be the distance to the j-th neighbor. In a cloud of even density in d dimensions, the
    product j d log(T_(j+1) / T_j) is exponential with mean one. A row counts if its largest product
    exceeds `TUNING.number.jump`. With too few neighbors, the result is 0."""
    last, tuning = distances.shape[1] - 1, TUNING.number
    first, middle = tuning.jump_neighbors, tuning.neighbors[0]
    if last <= first:
        return 0.0
    scales = [intrinsic_dimension(distances, *ring) for ring in ((0, middle), (middle, last))]
    far = np.maximum(distances, distances[distances > 0].min(initial=1.0))
    jumps = np.log(far[:, first + 1 :] / far[:, first:-1]) * np.arange(first, last)
    return float((max(scales) * jumps.max(axis=1) > tuning.jump).mean())


def intrinsic_dimension(distances: Array, first: int, last: int) -> float:
    """Estimate the dimension of the data around the rows, from distances to their neighbors.

    `distances` (n, r) rise along each row. Columns `first` + 1 to `last` are used. The result is 1
    if there are too few of them, or if they are zero or equal. Levina, Bickel: Maximum likelihood
    estimation of intrinsic dimension. NeurIPS 2004."""
    last = min(last, distances.shape[1] - 1)
    number = np.arange(first + 1, last)  # j, the number of a neighbor; `last` is l
    apart = distances[distances[:, min(first + 1, last)] > 0]
    if not len(number) or not len(apart):
        return 1.0
    # T_j is the distance to neighbor j: in d dimensions the mean of d log(T_l / T_j) is
    # 1/j + ... + 1/(l - 1)
    expected = np.cumsum(1 / np.arange(last - 1, 0, -1))[::-1][number - 1].mean()
    found = float(np.log(apart[:, last : last + 1] / apart[:, number]).mean())
    return float(expected) / found if found > 0 else 1.0

"""Neighborhoods: rows represented by weights of their nearest landmarks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics import euclidean_distances

from rffpk import _core
from rffpk._core import MOST_NEIGHBOURS
from rffpk.rows import checks, passes, table
from rffpk.rows.arrays import LEAST_WEIGHT, Array, Landmarks
from rffpk.rows.draws import MANY, Draws, uneven
from rffpk.rows.table import Columns
from rffpk.rows.weights import ones, weights_at
from rffpk.spaces.near_cells import NearCells, near_cells
from rffpk.system.linalg import in_range, row_tiles, run_all
from rffpk.system.tuning import TUNING

# In single precision, squared distances above this part of the squared lengths, times the root of
# the number of columns, have relative errors of some thousandths.
_TOLD = 2.0**-11
_UNDER = 2.0**-100  # squares below this part of the largest squared length underflow

# Squared distances below this part of the squared lengths are rounding errors of inner products.
_EQUAL = 4 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class NeighbourCount:
    """How many neighbours a row has: a given number, or a multiple of the default number."""

    given: int | None
    times: float = 1
    kept: int = 0  # so many nearest neighbours have weight even if they are not mutual

    def of(self, default: int) -> int:
        """Return the number of neighbours."""
        return self.given or max(2, round(self.times * default))


@dataclass(frozen=True, eq=False)
class Shared:
    """Values that graphs of the same rows share, by name. They are made when first wanted."""

    times: float = 1  # one search finds this multiple of the default number of neighbours
    _made: dict[Any, Any] = field(default_factory=dict)

    def __call__(self, name: Any, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


class Steps(NamedTuple):
    """Weights with which rows step to landmarks, and rows that are special cases."""

    z: csr_matrix  # (n, m): weights of the nearest landmarks of each row
    equal: Array | None = None  # (n,) mask: rows equal to a landmark; None: landmarks are no rows
    same: Array | None = None  # for each row in `equal` the index of its landmark
    around: Iterable[tuple[Array, csr_matrix]] = ()  # indices of far rows, and their weights z

    def means(self, matrix: Array, own: Array | None, n_threads: int) -> Array:
        """Return weighted means (n, q) of the rows of `matrix` (m, q), as `combinations` does.

        With `own` (m, q) and landmarks that are fitted rows, a row equal to a landmark gets its row
        of `own`, and far rows use the weights in `around`. Otherwise only `z` is used."""
        found = _core.csr_product(self.z, matrix.astype(self.z.dtype, copy=False), n_threads)
        if own is not None and self.same is not None:
            found[self.equal] = own[self.same]
            for rows, z in self.around:
                found[rows] = z @ matrix
        return found


@dataclass(frozen=True)
class Neighbourhoods:
    """Neighborhoods of rows: weights z_j(x) of the r nearest of m landmarks, of sum one.

    Weights are proportional to exp(-||x - c_j||^2 / (2 bandwidth)). A landmark has no weight
    beyond its radius, unless it is the nearest."""

    landmarks: Columns  # (m, d), distinct, in the dtype of the rows, and sparse as rows are
    r: int
    bandwidth: float  # sigma^2; 0: only the nearest landmarks have weight, equally
    n_threads: int
    radii: Array | None = None  # (m,): squared radii of the landmarks
    cells: NearCells | None = None  # of the landmarks, for the search; None: all are compared

    def __post_init__(self) -> None:
        object.__setattr__(self, "r", min(self.r, len(self.landmarks)))

    def of(self, kept: Array) -> Neighbourhoods:
        """Return the neighborhoods with only the landmarks that the mask `kept` (m,) marks."""
        radii = None if self.radii is None else self.radii[kept]
        cells = None if self.cells is None else self.cells.of(kept)
        return replace(self, landmarks=self.landmarks[kept], radii=radii, cells=cells)

    def weights(self, X: Columns) -> csr_matrix:
        """Return the weights z of the rows of X, a sparse matrix (n, m) in their dtype.

        O(n m d) time."""
        # a map without columns: the pass only looks for neighbors and weights
        mapped = self.mapped(np.empty((len(self.landmarks), 0)), X)
        if mapped is not None:
            results = self._visit(X, mapped, ("neighbours", "neighbour_weights"))
            index = results["neighbours"]
            z = results["neighbour_weights"]
            checks.check_overflow(float(z.max()), X.dtype)
            return self._matrix(z, index)
        return self._weighed(*self._nearest(X))

    def _weighed(self, squares: Array, index: Array, kept: int = 0) -> csr_matrix:
        """Compute weights z (n, m) from squared distances (n, r) to landmarks, and their indices.

        A landmark has weight within its radius. The nearest landmark, and the next `kept`
        landmarks, have weight at any distance."""
        checks.check_overflow(float(squares.max()), squares.dtype)
        last = min(kept, self.r - 1)

        def weights(rows: slice) -> Array:
            near = True if self.radii is None else squares[rows] <= self.radii[index[rows]]
            if last:
                near |= squares[rows] <= np.partition(squares[rows], last, axis=1)[:, [last]]
            return _gaussian(squares[rows], self.bandwidth, near).astype(squares.dtype)

        tiles = row_tiles(len(squares), self.r, TUNING.tiles.weighed_numbers)
        return self._matrix(np.concatenate(run_all(weights, tiles, self.n_threads)), index)

    def _matrix(self, z: Array, index: Array) -> csr_matrix:
        """Return a sparse matrix (n, m) with entries `z` (n, r) in the columns `index` (n, r)."""
        ends = np.arange(0, z.size + 1, self.r)  # each row has r entries
        return csr_matrix((z.ravel(), index.ravel(), ends), shape=(len(z), len(self.landmarks)))

    def combinations(self, X: Columns, matrix: Array, own: Array | None = None) -> Array:
        """Return the weighted means z(x) @ matrix, (n, q), for all rows x of X, in their dtype.

        `matrix` (m, q) has a row for each landmark. If the landmarks are fitted rows, a row of X
        equal to a landmark gets its row of `own` (m, q) instead. A row outside the radii of all its
        nearest landmarks steps to more landmarks than r."""
        mapped = self.mapped(matrix, X)
        if mapped is not None:
            features = passes.unshifted(X, mapped, self.n_threads)
            checks.check_overflow(float(features.sum(dtype=np.float64)), X.dtype)
            return features
        features = np.empty((len(X), matrix.shape[1]), dtype=X.dtype)
        for block in row_tiles(len(X), 1, TUNING.tiles.landmark_rows):
            features[block] = self.steps(X[block]).means(matrix, own, self.n_threads)
        return features

    def steps(self, X: Columns) -> Steps:
        """Return the weights of landmarks for each row of X, and the rows that are special cases.

        A row of X steps to nearby landmarks with these weights. With `radii` and many landmarks,
        only the nearest `TUNING.graph.neighbors` are used: landmarks farther away hardly matter.

        If `radii` are known, the result also marks two kinds of rows. Rows equal to a landmark have
        the index of the landmark. Far rows lie outside the radii of all their nearest landmarks,
        and get steps of their own."""
        is_few = self.radii is None or len(self.landmarks) < TUNING.search.cell_landmarks
        some = self if is_few else replace(self, r=min(self.r, TUNING.graph.neighbors))
        squares, index = some._nearest(X)
        z = some._weighed(squares, index)
        if self.radii is None:
            return Steps(z)
        equal, nearest = squares.min(axis=1) == 0, squares.argmin(axis=1)
        same = index[equal, nearest[equal]]
        beyond = np.asarray((squares > self.radii[index]).all(axis=1))
        far = beyond.nonzero()[0]
        tiles = (far[tile] for tile in row_tiles(len(far), 1, TUNING.tiles.far_rows))
        return Steps(z, equal, same, ((tile, self._around(X[tile])) for tile in tiles))

    def _around(self, X: Columns) -> csr_matrix:
        """Compute weights z (n, m) of rows that are far from all landmarks.

        More landmarks than r have weight, because the rows may lie between several groups of
        landmarks. The bandwidth of a row is its squared distance to the nearest landmark."""
        part = len(self.landmarks) // TUNING.graph.around_part
        more = replace(self, r=max(self.r, min(TUNING.graph.around, part)))
        squares, index = more._nearest(X)
        z = _gaussian(squares / squares.min(axis=1, keepdims=True), 1.0, True)
        return more._matrix(z, index)

    def mapped(self, matrix: Array, X: Columns) -> Landmarks | None:
        """Return the map by which passes over X compute `combinations` of a matrix, or None.

        Passes cannot compute them with too many neighbors, with radii, with sparse rows, or with a
        bandwidth that is zero in the dtype of X."""
        many = self.r > MOST_NEIGHBOURS or self.radii is not None
        if many or table.skip_zeros(X, self.landmarks) or self.bandwidth < np.finfo(X.dtype).tiny:
            return None
        return self._landmarks(matrix, 1 / (2 * self.bandwidth), X.dtype)

    def _landmarks(self, matrix: Array, scale: float, dtype: Any) -> Landmarks:
        """Return the map of a pass: the landmarks, and `matrix` (m, q), in the given dtype.

        `scale` is 1 / (2 bandwidth)."""
        points, matrix = (np.ascontiguousarray(a, dtype=dtype) for a in (self.landmarks, matrix))
        return Landmarks(points, self.r, scale, matrix)

    def _visit(self, X: Columns, mapped: Landmarks, want: tuple[str, ...]) -> dict[str, Array]:
        """Run a pass over X, and return arrays (n, r) of the values that `want` names.

        The names are "neighbours", indices of the nearest landmarks, and "neighbour_weights"."""
        # a pass needs a centroid, here without coordinates, since the features have no columns
        origin, parts = np.zeros((1, 0), dtype=X.dtype), passes.parts_of(mapped, X)
        types = {"neighbours": np.int32, "neighbour_weights": X.dtype}
        results = {name: np.empty((len(X), self.r), types[name]) for name in want}
        # if the landmarks have parts, rows are visited tile by tile, sorted by the nearest part
        whole: Any = [(slice(None), slice(None), None)]
        for tile, order, _ in whole if parts is None else passes.in_parts(X, parts, self.n_threads):
            some = X if parts is None else X[tile].take(order, axis=0)
            rows = passes.make_rows([some], [mapped], ones(len(some)), self.n_threads, [origin[0]])
            for name, each in passes.one_pass(rows, origin, -math.inf, want=want)[1].items():
                results[name][tile][order] = each
        return results

    def sums(self, X: Columns, weight: Array, random: Any) -> tuple[Array, csr_matrix, int]:
        """Return the weighted sums of z_i and of z_i z_i', and the number of summed rows.

        Row i has the weights z_i of its nearest landmarks, and p_i is its sample weight. The sums
        are sum_i p_i z_i of shape (m,) and sum_i p_i z_i z_i', sparse (m, m), in float64. With more
        than `TUNING.landmarks.summed_rows` rows for each landmark a random sample is summed. Rows
        of weight zero are left out."""
        m = len(self.landmarks)
        index, p = drawn_rows(weight, TUNING.landmarks.summed_rows * m, random)
        on_one_thread = replace(self, n_threads=1)  # because blocks run on all threads

        def products(block: slice) -> tuple[Array, csr_matrix]:
            z = on_one_thread.weights(X[index[block]]).astype(np.float64)
            data = z.data * np.repeat(p[block], np.diff(z.indptr))
            weighted = csr_matrix((data, z.indices, z.indptr), z.shape)
            return np.asarray(weighted.sum(axis=0)).ravel(), _products(z, weighted, self.r)

        blocks = row_tiles(len(index), 1, TUNING.landmarks.summed_at_once * m)
        first, second = zip(*run_all(products, blocks, self.n_threads))
        return np.sum(first, axis=0), sum(second[1:], second[0]), len(index)

    def _nearest(self, X: Columns, visits: Array | None = None) -> tuple[Array, Array]:
        """Return squared distances (n, r) to the nearest landmarks, and their indices (n, r).

        The indices of each row rise; they are not in the order of the distances. `visits` are the
        cells to search for each row, if X are the landmarks."""
        if table.skip_zeros(X, self.landmarks):
            columns = table.occupied_columns(self.landmarks)
            if columns is not None:
                # entries in other columns add the same number to all squared distances of a row
                outside = np.ones(X.shape[1])
                outside[columns] = 0
                rest = table.squared_norms(table.scaled_columns(X, outside))
                occupied = replace(self, landmarks=table.some_columns(self.landmarks, columns))
                squares, index = occupied._nearest(table.some_columns(X, columns))
                return squares + rest[:, None].astype(X.dtype), index
            # a search among dense copies is faster if there are few columns or few zeros
            d, tuning = X.shape[1], TUNING.search
            work = tuning.taken + tuning.sparse_term * table.entries_a_row(self.landmarks) ** 2 / d
            return self._nearest_of_full(X) if work > d else self._nearest_of_sparse(X)
        index = np.sort(self._of_arrays(X, visits), axis=1)
        points = self.landmarks.astype(X.dtype, copy=False)
        return _core.squares_of_pairs(X, points, index, self.n_threads), index

    def _nearest_of_sparse(self, X: Columns) -> tuple[Array, Array]:
        """Compute `_nearest` from inner products of all rows and landmarks, tile by tile.

        If landmarks are equally far away, the landmarks of smaller index come first."""
        c, norms = _matrix(self.landmarks).T.tocsr(), table.squared_norms(self.landmarks)

        def nearest(rows: slice) -> tuple[Array, Array]:
            """Return squared distances and indices (n, r) for a tile of rows.

            An upper bound of the r-th distance selects a few candidates of each row. They are laid
            out in the lines of `candidates`, (n, most), whose other places are infinite. Distances
            that are rounding errors are set to zero."""
            own, squares = table.squared_norms(X[rows])[:, None], (_matrix(X[rows]) @ c).toarray()
            largest = float(own.max() + norms.max())
            checks.check_overflow(largest, X.dtype)
            squares *= -2
            squares += own + norms
            most = np.maximum(_above_least(squares, self.r), _EQUAL * (own + norms.max()))
            row, point = np.nonzero(squares <= most)
            counts = np.bincount(row)
            place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
            candidates = np.full((len(counts), counts.max()), np.inf)
            indices = np.zeros(candidates.shape, dtype=np.int32)
            candidates[row, place], indices[row, place] = squares[row, point], point
            candidates[candidates < _EQUAL * (own + norms[indices])] = 0
            # of landmarks as far away as the r-th nearest, keep the first until there are r
            last = np.partition(candidates, self.r - 1, axis=1)[:, self.r - 1 : self.r]
            ties, below = candidates == last, candidates < last
            missing = self.r - below.sum(axis=1, keepdims=True)
            kept = below | (ties & (ties.cumsum(axis=1) <= missing))
            shape = len(candidates), self.r
            return candidates[kept].reshape(shape).astype(X.dtype), indices[kept].reshape(shape)

        tiles = row_tiles(len(X), len(self.landmarks))
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused by name later
            squares, index = zip(*run_all(nearest, tiles, self.n_threads))
        return np.concatenate(squares), np.concatenate(index)

    def _nearest_of_full(self, X: Columns) -> tuple[Array, Array]:
        """Compute `_nearest` from dense copies of the rows of X, a tile at a time."""
        whole = replace(self, landmarks=table.dense(self.landmarks))
        tiles = row_tiles(len(X), X.shape[1], TUNING.tiles.search_numbers)
        squares, index = zip(*(whole._nearest(table.dense(X[tile])) for tile in tiles))
        return np.concatenate(squares), np.concatenate(index)

    def chosen(self, X: Columns, visits: Array | None = None) -> Array:
        """Return the indices (n, r) of the landmarks nearest to each row of X, without distances.

        `visits` are the cells to search for each row, if X are the landmarks."""
        if table.skip_zeros(X, self.landmarks):
            return self._nearest(X)[1]
        return self._of_arrays(X, visits)

    def _of_arrays(self, X: Array, visits: Array | None) -> Array:
        """Compute `chosen` for dense rows and landmarks, by the fastest kind of search.

        A search in cells may miss a few nearest landmarks."""
        if self.cells is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                index = self.cells.nearest(self.landmarks, X, self.r, self.n_threads, visits)
            short = index[:, -1] < 0
            if short.any():  # the cells of a row have fewer than r landmarks
                index[short] = replace(self, cells=None).chosen(X[short])
            return index
        tuning, m, (n, d) = TUNING.search, len(self.landmarks), X.shape
        if d <= tuning.tree_columns and n >= tuning.tree_rows and m >= tuning.tree_landmarks:
            from scipy.spatial import KDTree

            tree = KDTree(self.landmarks)
            # a list of ranks gives an array (n, r) even if r is 1
            index = tree.query(X, np.arange(1, self.r + 1), workers=self.n_threads)[1]
            # if squares overflow, there is no neighbor, and the index is m; refused by name later
            return np.minimum(index, m - 1).astype(np.int32)
        if self.r <= MOST_NEIGHBOURS:
            # only indices are wanted: the map has no columns and the scale 0
            nearest = self._landmarks(self.landmarks[:, :0], 0.0, X.dtype)
            is_large = d >= tuning.single_columns and m >= tuning.single_landmarks
            if X.dtype == np.float64 and is_large:
                return self._by_single(X, nearest)
            return self._visit(X, nearest, ("neighbours",))["neighbours"]
        tiles = row_tiles(n, max(m, d))
        return np.concatenate(run_all(lambda t: self._many(X[t]), tiles, self.n_threads))

    @np.errstate(over="ignore", invalid="ignore")  # overflow is refused by name later
    def _by_single(self, X: Array, nearest: Landmarks) -> Array:
        """Compute `chosen` in single precision where it suffices, which is faster.

        Double precision is used for a row that is far from all landmarks, or very near their mean.
        It is also used if single precision cannot tell the row from its last neighbor. Neighbors at
        nearly equal distances may be exchanged."""
        center = self.landmarks.mean(axis=0)
        points = self.landmarks - center
        largest = table.squared_norms(points).max()
        unit = math.sqrt(largest) or 1.0
        near = replace(self, landmarks=(points / unit).astype(np.float32))

        def chosen(tile: slice) -> Array:
            """Return indices (n, r) for a tile of rows."""
            rows = X[tile] - center
            squares = table.squared_norms(rows)
            index = near.chosen((rows / unit).astype(np.float32))
            last = table.squared_norms(rows - points.take(index[:, -1], axis=0))
            suffices = last >= _TOLD * math.sqrt(X.shape[1]) * squares
            suffices &= (squares <= 4 * largest) & (squares >= _UNDER * largest)
            if not suffices.all():
                doubtful = X[tile][~suffices]
                index[~suffices] = self._visit(doubtful, nearest, ("neighbours",))["neighbours"]
            return index

        return np.concatenate([chosen(tile) for tile in row_tiles(len(X), X.shape[1])])

    @np.errstate(over="ignore", invalid="ignore")
    def _many(self, X: Columns) -> Array:
        """Compute `chosen` for more neighbors than a pass can keep.

        Landmarks are compared by ||c||^2 - 2 x'c, with rows and landmarks less the mean landmark.
        """
        origin = self.landmarks.mean(axis=0, dtype=np.float64)
        x, compared = X - origin, np.empty((len(X), len(self.landmarks)))
        for some in row_tiles(*self.landmarks.shape):
            c = self.landmarks[some] - origin
            compared[:, some] = np.einsum("jd,jd->j", c, c) - 2 * x @ c.T
        return np.argpartition(compared, self.r - 1, axis=1)[:, : self.r].astype(np.int32)


def _above_least(squares: Array, r: int) -> Array:
    """Return an upper bound (n, 1) of the r-th smallest number in each row of `squares` (n, m).

    The numbers are divided into groups. The bound is the r-th smallest of the minima of the groups:
    at least r numbers, the minima of r groups, do not exceed it. If groups would have fewer than
    two numbers, the bound is the largest number."""
    (n, m), groups = squares.shape, TUNING.search.groups
    size = m // (groups * r)
    if size < 2:
        return squares.max(axis=1, keepdims=True)
    least = squares[:, : size * groups * r].reshape(n, size, -1).min(axis=1)
    return np.partition(least, r - 1, axis=1)[:, r - 1 : r]


def _mean(squares: Array, weight: Array) -> float:
    """Return the weighted mean of squared distances (n, r), with the weights (n,) of the rows."""
    with np.errstate(over="ignore"):
        mean = float(np.average(squares.mean(axis=1, dtype=np.float64), weights=weight))
    checks.check_overflow(mean, squares.dtype)
    return mean


def _products(z: csr_matrix, weighted: csr_matrix, r: int) -> csr_matrix:
    """Return z' @ weighted, (m, m), for sparse matrices (n, m) with r entries in each row."""
    n, m = z.shape
    # dense blocks are faster if there are many rows and few landmarks
    if n * (TUNING.search.sparse_term * r**2 - m**2) < TUNING.search.sparse_work:
        return z.T @ weighted
    sums = np.zeros((m, m))
    for part in row_tiles(n, m):
        sums += z[part].toarray().T @ weighted[part].toarray()
    return csr_matrix(sums)


@np.errstate(invalid="ignore")  # of squares that overflow, which are refused by name
def _gaussian(squares: Array, bandwidth: float, counted: Array | bool) -> Array:
    """Return exp(-squares / (2 bandwidth)), (n, r), scaled so that rows sum to one, in float64.

    Where the mask `counted` is False the result is zero, except at the smallest square of a row.
    Very small weights are zero, too. With bandwidth 0 only the smallest squares have weight."""
    excess = squares.astype(np.float64) - squares.min(axis=1, keepdims=True)
    z = np.exp(-excess / (2 * bandwidth)) if bandwidth > 0 else 1.0 * (excess == 0)
    z[(z < LEAST_WEIGHT) | ~(counted | (excess == 0))] = 0
    return z / z.sum(axis=1, keepdims=True)


def distinct_where_few(
    X: Columns, weight: Array, numbers: tuple[int, int], random: Any
) -> tuple[Columns, Array, Array] | None:
    """Return distinct rows, their weights, and for each row of X the index of its distinct row.

    The result is None if there are too many distinct rows. `numbers` are the largest number of
    distinct rows, and the number of landmarks m, as `landmark_numbers` returns them.

    With many rows only a sample is examined, whose size depends on both numbers. The index (n,) is
    -1 for rows outside the sample and for rows of weight zero."""
    most, m = numbers
    size = max(TUNING.landmarks.sampled_rows * m, math.ceil(TUNING.landmarks.sought * most))
    index = np.flatnonzero(weight)
    if len(index) > size:
        generator = np.random.default_rng(random.randint(2**31 - 1))  # a RandomState is slower
        index = np.sort(generator.choice(index, size, replace=False, shuffle=False))
    some = X if len(index) == len(X) else X[index]  # no copy of all rows
    # most + 1 different rows suffice to see that there are too many
    distinct, equal_to = _distinct(some, most + 1, random)
    if len(distinct) > most:
        return None
    node = np.full(len(X), -1)
    node[index] = equal_to
    return distinct, np.bincount(equal_to, weight[index]), node


def mutual_neighbours(
    nodes: Columns, mass: Array, count: NeighbourCount, n_threads: int, shared: Shared | None = None
) -> tuple[Neighbourhoods, csr_matrix]:
    """Return neighborhoods whose landmarks are the nodes, and the weights z (m, m) of the nodes.

    The nodes are distinct rows with the weights `mass` (m,). Two nodes are neighbors only if each
    is among the r nearest nodes of the other, where a node is its own first neighbor. The
    `count.kept` nearest nodes are neighbors in any case.

    The radius of a node is the distance to the last of its r nearest nodes, and a little more for
    rounding. `shared` keeps the results of the search for other graphs of the same nodes."""
    shared = shared or Shared()
    default = max(2, round(TUNING.graph.neighbors_a_logarithm * math.log(len(nodes))))
    r = count.of(default)
    # one search finds all neighbors that graphs of the same nodes need
    most = max(r, replace(count, times=shared.times).of(default))
    cells, visits = shared("cells", lambda: _cells(nodes, most, n_threads))
    near = Neighbourhoods(nodes, r, 0.0, n_threads, cells=cells)

    nearest = partial(replace(near, r=most)._nearest, nodes, visits)
    # a single graph does not keep the nearest nodes, which take as much memory as the graph
    squares, index = shared("nearest", nearest) if shared.times > 1 else nearest()
    if near.r < index.shape[1]:  # keep only the nearest, with rising indices
        first = np.sort(np.argpartition(squares, near.r - 1, axis=1)[:, : near.r], axis=1)
        squares, index = (np.take_along_axis(each, first, 1) for each in (squares, index))
    if near.r > 1:  # the first neighbor of a row is the row itself
        checks.check_underflow(float(squares.max()), [nodes])
    radii = squares.max(axis=1) * (1 + 8 * np.finfo(squares.dtype).eps)
    near = replace(near, radii=radii, bandwidth=_mean(squares, mass))
    z = near._weighed(squares, index, count.kept).astype(np.float64, copy=False)
    z.eliminate_zeros()  # the memory of the zeros stays, so that a copy is returned
    return near, z.copy()


def _cells(nodes: Columns, r: int, n_threads: int) -> tuple[NearCells, Array] | tuple[None, None]:
    """Return cells of the nodes, and the cells near each node, or None and None.

    Return None twice if a search without cells is faster: with few nodes or columns, sparse rows,
    or so many neighbors r that most are in other cells."""
    tuning = TUNING.search
    most = tuning.cell_visits * tuning.cell_points // 4
    if table.skip_zeros(nodes) or nodes.shape[1] <= tuning.tree_columns or r > most:
        return None, None
    largest = np.finfo(nodes.dtype).max
    if len(nodes) < tuning.cell_landmarks or not 4 * table.squared_norms(nodes).max() < largest:
        # distances up to twice the largest norm may overflow, which is refused by name later
        return None, None
    return near_cells(
        nodes, lambda x, start: k_means(x, ones(len(x)), start, n_threads, 2), n_threads
    )


def centroid_landmarks(
    X: Columns,
    weight: Array,
    m: int,
    k: int,
    count: NeighbourCount,
    spherical: bool,
    random: Any,
    n_threads: int,
) -> tuple[Neighbourhoods, Columns, Array, Array]:
    """Return neighborhoods with at most m landmarks, and the sample that they were computed from.

    The landmarks are centroids of a few k-means passes over a sample of the rows. They are scaled
    to length one if `spherical`. `k` is the number of clusters that the landmarks are for.

    For many clusters, k-means starts from rows drawn as by k-means++, else from random rows.

    The sample is returned as three arrays: its rows, their weights, and for each row the index of
    the nearest landmark."""
    tuning = TUNING.landmarks
    index, p = drawn_rows(weight, tuning.sampled_rows * m, random)
    rows, many = X[index], k >= MANY
    if many:
        columns = passes.column_rows(rows, ones(len(rows)), n_threads)
        seeds = rows[Draws(columns, rows, p, m, random).chosen]
    else:
        # m + 1 different rows suffice to draw m rows from
        seeds, _ = _distinct(rows, m + 1, random)
        seeds = seeds[random.choice(len(seeds), min(m, len(seeds)), replace=False)]
    seeds = seeds[near_path(seeds, n_threads)]  # passes skip blocks of far centroids
    n_passes = tuning.passes_of_many if many else tuning.passes
    landmarks = k_means(rows, p, seeds, n_threads, n_passes)
    landmarks = table.distinct_rows(table.unit_rows(landmarks) if spherical else landmarks)[0]
    landmarks = landmarks[near_path(landmarks, n_threads)]
    r = count.of(TUNING.graph.neighbors)
    near = Neighbourhoods(landmarks, r, 0.0, n_threads)
    squares, index = near._nearest(rows)
    nearest = index[np.arange(len(rows)), squares.argmin(axis=1)]
    bandwidth = _mean(squares, p) * (tuning.narrow if many else 1)
    return replace(near, bandwidth=bandwidth), rows, p, nearest


def near_path(points: Columns, n_threads: int) -> Array:
    """Return an order (n,) in which consecutive points are near each other.

    The points are grouped into small clusters. The clusters are chained: after each cluster comes
    the nearest cluster that is left. Sparse points, or only a few points, keep their order."""
    if table.skip_zeros(points) or len(points) < passes.LEAST_ORDERED:
        return np.arange(len(points))
    # every `step`-th point starts a cluster: some points for each, and not too many clusters
    step = max(TUNING.landmarks.path_points, -(-len(points) // TUNING.landmarks.path_clusters))
    centers = k_means(points, ones(len(points)), points[::step], n_threads)
    cluster = Neighbourhoods(centers, 1, 0.0, n_threads).chosen(points).ravel()
    with np.errstate(over="ignore", invalid="ignore"):
        apart = euclidean_distances(in_range(centers), squared=True)
    place, here = np.zeros(len(centers), dtype=np.intp), 0
    for position in range(1, len(centers)):
        apart[:, here] = np.inf  # no later step goes back to this cluster
        here = int(apart[here].argmin())
        place[here] = position
    return np.argsort(place[cluster], kind="stable")


def landmark_numbers(
    wanted: Any, n: int, k: int, sparse: bool = False, d: int = 1
) -> tuple[int, int]:
    """Return a limit and a number of landmarks, for n rows of d columns and k clusters.

    If there are no more distinct rows than the limit, all distinct rows are landmarks. If there are
    more, the second number is the number of landmarks. `wanted` is the parameter `n_landmarks`: an
    integer is returned as both numbers. `sparse` says whether the rows are sparse."""
    if not isinstance(wanted, str):
        return int(wanted), int(wanted)
    tuning = TUNING.landmarks
    m = max(tuning.least, tuning.a_cluster * k, round(tuning.a_root * math.sqrt(n)))
    most = tuning.most_sparse_rows if sparse else tuning.most_rows
    most = min(most, int(tuning.most_work / k**2))
    if k >= MANY:  # more landmarks, as far as their work allows
        worth = int(tuning.most_products / (n * d))
        more = min(tuning.most_of_many * k, n // tuning.rows_of_many, most, worth)
        m = max(m, min(tuning.of_many * k, n // 2), more)
    return max(most, m), m


def landmark_numbers_of(X: Columns, wanted: Any, k: int) -> tuple[int, int]:
    """Return `landmark_numbers` for the rows of X and k clusters."""
    return landmark_numbers(wanted, len(X), k, table.skip_zeros(X), X.shape[1])


def map_rows(wanted: Any) -> int:
    """Return the largest number of rows that a map with `wanted` landmarks is fitted to."""
    if isinstance(wanted, str):  # so many rows does `distinct_where_few` examine at most
        return math.ceil(TUNING.landmarks.sought * TUNING.landmarks.most_rows)
    # so many rows does `Neighbourhoods.sums` add
    return TUNING.landmarks.summed_rows * int(wanted)


def drawn_rows(weight: Array, size: int, random: Any) -> tuple[Array, Array]:
    """Return sorted indices of at most `size` rows of positive weight, and the weights of the rows.

    If there are more rows than `size`, rows are drawn in proportion to their weights, and the drawn
    rows have weight one. If weights are unequal, a row may be drawn several times."""
    index = np.flatnonzero(weight)
    if len(index) <= size:
        return index, weights_at(weight, index)
    repeated, total = uneven(weight[index]), weight.sum()
    p = weight[index] / total if repeated else None
    generator = np.random.default_rng(random.randint(2**31 - 1))
    drawn = generator.choice(index, size, replace=repeated, p=p, shuffle=False)
    return np.sort(drawn), ones(size)


def _distinct(X: Columns, least: int, random: Any) -> tuple[Columns, Array]:
    """Return distinct rows of X, and for each row the index of the distinct row that it equals.

    If a random sample of `least` rows has no equal rows, the sample is returned. The indices are
    then of the rows in the sample."""
    if len(X) > least:
        drawn, index = table.distinct_rows(X[random.choice(len(X), least, replace=False)])
        if len(drawn) == least:
            return drawn, index
    return table.distinct_rows(X)


def k_means(
    X: Columns, weight: Array, centroids: Columns, n_threads: int, n_passes: int | None = None
) -> Columns:
    """Return centroids (m, d) after a number of k-means passes over the rows of X.

    Empty clusters keep their centroids. If `n_passes` is None, there are `TUNING.landmarks.passes`.
    """
    for _ in range(TUNING.landmarks.passes if n_passes is None else n_passes):
        labels = Neighbourhoods(centroids, 1, 0.0, n_threads).chosen(X).ravel()
        centroids = cluster_means(X, weight, labels, centroids)
    return centroids


def cluster_means(X: Columns, weight: Array, labels: Array, centroids: Columns) -> Columns:
    """Return the weighted means (m, d) of the rows of X with each label.

    An empty cluster keeps its row of `centroids` (m, d)."""
    ends = np.arange(len(X) + 1)
    members = csr_matrix((weight, labels, ends), shape=(len(X), len(centroids)))
    mass = np.bincount(labels, weight, len(centroids))[:, None]
    return table.group_means(X, members, mass, centroids)


def _matrix(X: Columns) -> csr_array:
    return csr_array(table.operand(X.astype(np.float64, copy=False)))

"""Slow eigenvectors of a diffusion, and which of them are features at a time of the walk."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate
from scipy.linalg import cholesky, qr, solve_triangular
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.exceptions import ConvergenceWarning

from rffpk import _core
from rffpk.rows.arrays import Array
from rffpk.system.linalg import eigh, fixed_signs, leading_eigenvectors, row_tiles, run_all, svd
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING

# If no number of clusters is known, the spectrum suggests a number up to this limit.
MAX_CLUSTERS = 20


# Features. "always": the slow eigenvectors. "combined": random combinations of them, for many
# clusters. "if shown": the slow eigenvectors if components of the graph show clusters, else the
# columns. "never": the columns.
UseOfGraph = Literal["always", "combined", "if shown", "never"]


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues mu of a diffusion, largest first, without the constant eigenvector."""

    gaps: Array  # (q,): 1 - mu
    shares: Array  # (q,): the fraction of the rows that an eigenvector covers (participation)
    enough: float  # an eigenvector with this share is used for any number of clusters
    n_constant: int  # so many first eigenvectors are constant on components

    def able(self) -> Array:
        """Return the indices of the eigenvectors that extend to new rows: their gaps are small."""
        return np.flatnonzero(self.gaps <= TUNING.spectrum.largest_gap)

    def slow(self, k: int) -> Array:
        """Return the indices of the eigenvectors that may be features for k clusters.

        Eigenvectors are taken that are constant on components, or cover enough rows. If fewer than
        k - 1 are, the result has the k - 1 eigenvectors that cover most rows."""
        able, covers = self.able(), self.shares >= min(TUNING.graph.large / k, self.enough)
        covers[: self.n_constant] = True
        enough = able[covers[able]]
        if len(enough) >= k - 1:
            return enough
        return np.sort(able[np.argsort(-self.shares[able], kind="stable")[: k - 1]])

    def separating_time(self, k: int) -> float:
        """Return the time of the walk that separates k clusters.

        It is `TUNING.spectrum.times` the relaxation time 1 / (1 - mu) of the k-th eigenvector, or
        of the last. The constant eigenvector is the first, and only the eigenvectors of `slow` are
        counted. The time has an upper limit. Without slow eigenvectors it is 1."""
        gaps = self.gaps[self.slow(k)]
        if not len(gaps):
            return 1.0
        gap = gaps[min(max(k - 2, 0), len(gaps) - 1)]
        longest = TUNING.spectrum.largest_time
        return float(min(TUNING.spectrum.times / max(gap, 1 / longest), longest))

    def components(self, k: int, time: float) -> Array:
        """Return the indices of the eigenvectors that are features for k clusters at a time.

        The result has the first eigenvectors of `slow` whose mu^time, about exp(-time (1 - mu)), is
        not small. It has at least k - 1 eigenvectors, if `slow` has so many, and at most a number
        that grows with k."""
        slow = self.slow(k)
        lasting = int((np.exp(-time * self.gaps[slow]) >= TUNING.spectrum.least_power).sum())
        most = min(TUNING.spectrum.a_cluster * k, max(TUNING.spectrum.two_a_cluster, k))
        return slow[: max(k - 1, min(lasting, most))]

    def unit_decay(self, index: Array, time: float) -> Array:
        """Return exp(-time (1 - mu) / 2) of some eigenvectors, scaled to a sum of squares of one.

        The smallest 1 - mu is subtracted first, so that not all decays underflow."""
        gaps = self.gaps[index]
        decay = np.exp(-time * (gaps - gaps.min(initial=1)) / 2)
        return np.asarray(decay / np.linalg.norm(decay))


class Wanted(NamedTuple):
    """Which slow eigenvectors of a graph are to be computed, for k clusters."""

    k: int
    pairs: int  # the number of eigenvectors
    # whether all are as accurate as the graph allows; else only the first half is accurate, and
    # eigenvectors that are constant on components may suffice
    exact: bool = False
    use: UseOfGraph = "always"


def wanted_pairs(k: int, rough: bool, functions: int = 0, use: UseOfGraph = "always") -> Wanted:
    """Return how many eigenvectors of a graph k clusters need, and how exactly.

    With `rough` the eigenvectors are only clustered, so that fewer and less exact eigenvectors
    suffice. Otherwise users see the eigenvectors, and there are at least `functions`. The use
    "combined" becomes "always", unless `rough` is set and k is large."""
    tuning = TUNING.spectrum
    pairs = min(tuning.a_cluster * k, max(tuning.two_a_cluster, k + k // 2))
    if use == "combined" and not (rough and k > tuning.combinations):
        use = "always"
    if rough:
        return Wanted(k, max(tuning.least_pairs, pairs), use=use)
    return Wanted(k, max(tuning.pairs, pairs, functions), exact=True, use=use)


def decompose(
    walk: Callable[[], Walk], degrees: Array, labels: Array, wanted: Wanted, n_rows: int,
    least_rows: float,
) -> tuple[Spectrum, Array]:  # fmt: skip
    """Return the spectrum and the slow eigenvectors f of a random walk, D^-1 A f = mu f.

    The eigenvectors are (m, q), with sum_i d_i f_i^2 = sum_i d_i. `degrees` (m,) are d, and
    `labels` (m,) are connected components. The walk is of `n_rows` rows. A small component has at
    least `least_rows`.

    `walk` returns the matrix D^-1/2 A D^-1/2. It is called where the matrix is needed, so that no
    reference is left and a reordered copy can replace the matrix.

    Eigenvectors that are constant on each component have the eigenvalue one, and need no
    computation. They are exactly equal at all nodes of a component, which passes over rows make use
    of."""
    share = degrees / degrees.sum()
    root = np.sqrt(share)
    lengths = np.sqrt(np.bincount(labels, share))  # of components
    # eigenvectors that are constant on components, with the constant eigenvector first
    basis, _ = np.linalg.qr(np.column_stack([lengths, np.eye(len(lengths))]))
    known = (basis * np.where(basis[0] < 0, -1.0, 1.0) / lengths[:, None])[labels]
    enough = max(TUNING.spectrum.least_rows, least_rows) / n_rows
    if wanted.use == "combined":
        return _combinations(walk(), share, known, wanted.k, enough)
    constant, functions = root[:, None] * known, known[:, 1:]
    count = min(wanted.pairs, len(degrees) - 1)
    gaps = np.zeros(constant.shape[1] - 1)
    if (missing := count - len(gaps)) > 0:
        if wanted.exact and len(degrees) <= TUNING.spectrum.exact_nodes:
            values, vectors = leading_eigenvectors(
                partial(walk().without, constant), missing, len(degrees)
            )
        else:
            # only the first half of a block is accurate, or its first `least` vectors
            block = max(2 * missing if wanted.exact else missing, TUNING.spectrum.block)
            least = wanted.k - len(gaps) if wanted.k <= count else 0
            values, vectors = slow_pairs(walk(), root, constant, block, least)
        gaps = np.r_[gaps, np.clip(1 - values, 0, 1)]
        functions = np.hstack([functions, fixed_signs(vectors) / root[:, None]])
    functions = functions[:, :count]
    squares = functions**2  # squaring twice is faster than fourth powers
    shares = 1 / (share @ squares**2)
    return Spectrum(gaps[:count], shares, enough, constant.shape[1] - 1), functions


def suggested_n_clusters(spectrum: Spectrum, largest: int) -> int:
    """Return the number of clusters, at least 2, after which the spectrum has its largest gap.

    If there are fewer than two slow eigenvectors, it is their number plus one."""
    gaps = spectrum.gaps[spectrum.slow(largest)][:largest]
    if len(gaps) < 2:
        return len(gaps) + 1
    # values of 1 - mu far below the last value are not resolved: their ratios must not decide
    gaps = gaps + max(TUNING.spectrum.resolved * gaps[-1], 1 / TUNING.spectrum.largest_time)
    # the constant eigenvector is not in `gaps`, so the first ratio is the gap after two clusters
    return 2 + int(np.argmax(gaps[1:] / gaps[:-1]))


def eigengaps(spectrum: Spectrum, largest: int) -> Array:
    """Return an array (largest + 1,) with log((1 - mu_(k+1)) / (1 - mu_k)) at the index k.

    For each k only the eigenvectors that cover enough rows for k clusters are used. Entries 0 and 1
    are zero, and so are entries with too few eigenvectors."""
    scores = np.zeros(largest + 1)
    for k in range(2, min(largest, len(spectrum.gaps)) + 1):
        gaps = spectrum.gaps[spectrum.slow(k)]
        if len(gaps) >= k:
            considered = gaps[min(k, MAX_CLUSTERS - 1, len(gaps) - 1)]
            # as in `suggested_n_clusters`: ratios of values that are not resolved, since they are
            # far below `considered`, must not count
            least = max(TUNING.spectrum.resolved * considered, 1e-6)
            scores[k] = math.log((gaps[k - 1] + least) / (gaps[k - 2] + least))
    return scores


def slow_labels(functions: Array, k: int) -> Array:
    """Return the clusters (m,) of nodes, from their slow eigenvectors (m, q), slowest first.

    A QR factorization with pivots chooses k nodes. The first k - 1 eigenvectors and the constant
    are rotated so that each is nearly an indicator of one chosen node.

    Damle, Minden, Ying: Simple, direct and efficient multi-way spectral clustering. Information and
    Inference 2019, algorithm 1."""
    functions = np.column_stack([np.ones(len(functions)), functions[:, : k - 1]])
    pivots = qr(functions.T, mode="r", pivoting=True)[1][: functions.shape[1]]
    left, _, right = svd(functions[pivots].T)
    return np.argmax(np.abs(functions @ (left @ right)), axis=1)


# ---- the leading eigenpairs of large graphs -----------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """The symmetric matrix S of a walk, (m, m), or two factors of it: S = back @ there."""

    there: csr_matrix
    back: csr_matrix | None = None
    n_threads: int = 1

    def __matmul__(self, v: Array) -> Array:
        once = _core.csr_product(self.there, v, self.n_threads)
        return once if self.back is None else _core.csr_product(self.back, once, self.n_threads)

    def without(self, known: Array, v: Array) -> Array:
        """Return S v - known known' S v: the product with vectors v without known eigenvectors.

        The columns of `known` are orthonormal."""
        found = self @ v
        found -= known @ (known.T @ v)
        return found

    def ordered(self, order: Array) -> Walk:
        """Return the walk with its nodes in another order.

        `order` (m,) has the indices of the nodes. Entries in a row of the matrix keep their order.
        """
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))

        def moved(graph: csr_matrix) -> csr_matrix:
            rows = graph[order]
            return csr_matrix((rows.data, place[rows.indices], rows.indptr), shape=graph.shape)

        back = None if self.back is None else moved(self.back)
        return Walk(moved(self.there), back, self.n_threads)

    def merged(self, groups: csr_matrix) -> Walk:
        """Return the walk G' S G between groups of nodes, with orthonormal columns G.

        Two factors are multiplied only if their product has so few entries that products are
        faster."""
        once = self.there @ groups
        if self.back is None:
            return Walk(csr_matrix(groups.T @ once), n_threads=self.n_threads)
        back = once.T.tocsr()
        if (np.diff(once.indptr) ** 2).sum() > TUNING.spectrum.product_entries * once.nnz:
            return Walk(once, back, self.n_threads)
        return Walk(back @ once, n_threads=self.n_threads)


def slow_pairs(
    walk: Walk, root: Array, constant: Array, block: int, least: int = 0
) -> tuple[Array, Array]:
    """Return the `block` largest eigenvalues of a walk, falling, and their eigenvectors.

    The eigenvalues of the walk are from zero to one. The first half of the eigenvectors, and at
    least the first `least`, are as accurate as clusters need. `constant` (m, c) are known
    orthonormal eigenvectors, which are left out. On each component they are multiples of `root`
    (m,), the square roots of the shares of the degrees."""
    order = _order(walk, len(root), block)
    if order is not None:
        walk, root, constant = walk.ordered(order), root[order], constant[order]
    values, vectors, error = _pairs_by_groups(walk, root, constant, block, least)
    if error > TUNING.spectrum.settled:
        warn(
            "The slow functions of the graph have not converged: 1 - eigenvalue may be too large "
            f"by {error:.2g} of itself, more than {TUNING.spectrum.settled}. Choose fewer "
            "clusters, or weights of edges that differ less.",
            ConvergenceWarning,
        )
    if order is None:
        return values, vectors
    found = np.empty_like(vectors)
    found[order] = vectors
    return values, found


def _order(walk: Walk, n: int, n_vectors: int) -> Array | None:
    """Return an order of n nodes that puts near nodes side by side, or None.

    Return None for few nodes, and for a walk in factors that are not square. Also return None if
    sorting takes more time than it saves in products with `n_vectors` vectors."""
    there = walk.there
    sorting = (np.diff(there.indptr).astype(np.float64) ** 2).sum()  # work of sorting all neighbors
    gained = TUNING.spectrum.degree * n_vectors * there.nnz
    if n < TUNING.spectrum.ordered_nodes or there.shape[0] != n or sorting > gained:
        return None
    return np.asarray(reverse_cuthill_mckee(there, symmetric_mode=True))


def _pairs_by_groups(
    walk: Walk, root: Array, constant: Array, block: int, least: int
) -> tuple[Array, Array, float]:
    """Compute `slow_pairs` for nodes in their order; return the remaining error, too.

    Neighboring nodes are merged to groups, and the groups to larger groups, until few groups are
    left. The eigenvectors of each graph are started from the eigenvectors of the graph of its
    groups. A subspace iteration with Chebyshev filters of low degree then smooths the vectors
    within groups."""
    multiply, n = partial(walk.without, constant), len(root)
    block = min(block, n)
    accurate = max((block + 1) // 2, min(block, least))
    if n <= max(TUNING.spectrum.full_nodes, TUNING.spectrum.full_a_vector * block):
        # few nodes: the `block` largest eigenvalues of the whole matrix, without error
        matrix, block = multiply(np.eye(n)), max(min(block, n - constant.shape[1]), 1)
        values, vectors = eigh((matrix + matrix.T) / 2, subset_by_index=[n - block, n - 1])
        return values[::-1], vectors[:, ::-1], 0.0
    merging = _merging(walk, root)
    values, vectors = np.empty(0), np.empty((merging.shape[1], 0))
    if len(vectors) < n:  # else no nodes were merged
        values, vectors, _ = _pairs_by_groups(
            walk.merged(merging), merging.T @ root, merging.T @ constant, block, least
        )
    missing = block - len(values)  # if there are few groups, random vectors fill up
    least_value = values[-1] if len(values) else 0.0
    values = np.append(values, np.full(missing, least_value))
    random = np.random.default_rng(0).standard_normal((n, missing))
    vectors = np.hstack([merging @ vectors, random])
    for _ in range(TUNING.spectrum.rounds):
        _filter(walk, constant, vectors, values[-1])
        values, products = _turn(multiply, vectors, accurate)
        error = _error(values, vectors, products)
        if error <= TUNING.spectrum.settled:
            break
        del products  # before the next round, which takes the most memory
    return values, vectors, error


def _turn(multiply: Callable[[Array], Array], v: Array, count: int) -> tuple[Array, Array]:
    """Rotate the vectors v, in place, into approximate eigenvectors of a matrix.

    Return their eigenvalues, falling, and the products of the matrix with the first `count`
    vectors."""
    many = v.shape[1] > TUNING.spectrum.many_vectors
    v[...] = orthonormal_basis(v) if many else np.linalg.qr(v)[0]
    products = multiply(v)
    values, turned = eigh(v.T @ products)
    turned = turned[:, ::-1]
    v[...] = v @ turned
    return values[::-1], products @ turned[:, :count]


def _error(values: Array, vectors: Array, products: Array) -> float:
    """Return a bound on the relative error of 1 - mu of the first eigenvectors.

    1 - mu is too large by at most the squared residual over the distance to the last eigenvalue.
    `products` are the products of the walk with the first vectors. They are overwritten."""
    accurate, tuning = products.shape[1], TUNING.spectrum
    first = values[:accurate]
    products -= first * vectors[:, :accurate]
    apart = np.maximum(1 - first, 1 / tuning.largest_time) * (first - values[-1])
    # faster eigenvectors are not used, and filters of many vectors do not amplify them
    many = vectors.shape[1] > tuning.many_vectors
    slow = first >= (tuning.least_low if many else 1 - tuning.largest_gap)
    # residuals that are rounding errors give a small ratio, even if `apart` is zero
    ratios = (products**2).sum(axis=0) / np.maximum(apart, np.finfo(np.float64).eps)
    return float(ratios[slow].max(initial=0))


def _merging(walk: Walk, root: Array) -> csr_matrix:
    """Group nodes, and return the groups as a matrix (m, n_groups) of orthonormal columns.

    Each column is a multiple of `root` on a group, and zero elsewhere. Each node draws a random
    number. Nodes that see the same largest number among their neighbors form a group. Nodes are not
    merged along weak edges, such as edges between objects in an image, because the walk along
    weak edges is slow. A walk in two factors is not searched for weak edges."""
    n = len(root)
    largest = np.random.default_rng(0).permutation(n).astype(np.int32)
    graphs = [walk.there]
    if walk.back is None:
        graphs = [_strong(walk.there)]
    elif walk.there.shape[0] != n:  # two factors, from groups to nodes and back
        graphs = [walk.there, walk.back]
    for graph in graphs:  # each node takes the largest number among its neighbors
        largest = np.maximum.reduceat(largest[graph.indices], graph.indptr[:-1])
    _, first, group = np.unique(largest, return_index=True, return_inverse=True)
    group = group.ravel()
    if n >= TUNING.spectrum.ordered_nodes:  # groups follow each other as their nodes do
        group = np.argsort(np.argsort(first))[group]
    lengths = np.sqrt(np.bincount(group, root**2))
    return csr_matrix((root / lengths[group], group, np.arange(n + 1)), shape=(n, len(lengths)))


def _strong(graph: csr_matrix) -> csr_matrix:
    """Return the edges of a symmetric graph that are not weak, with weight one.

    An edge is weak if it is much weaker than the strongest edges of both of its nodes. An edge from
    each node to itself is added."""
    edges = graph.tocoo()
    row, column, p = edges.row, edges.col, edges.data
    least = np.zeros(len(graph.indptr) - 1)
    np.maximum.at(least, row, TUNING.spectrum.weak * np.where(row == column, 0, p))
    kept = (p >= np.minimum(least[row], least[column])) | (row == column)
    own = np.arange(len(least))
    there = np.r_[row[kept], own], np.r_[column[kept], own]
    return csr_matrix((np.ones(len(there[0])), there), shape=graph.shape)


def orthonormal_basis(v: Array) -> Array:
    """Return an orthonormal basis (n, q) of the span of the columns of v, for large q.

    The Cholesky factor of v'v is divided out twice: after one division rounding errors are
    multiplied by the square of the condition number. Dependent vectors have no Cholesky factor, so
    QR is used."""
    lengths = np.linalg.norm(v, axis=0)
    found = v / np.where(lengths > 0, lengths, 1)
    with suppress(np.linalg.LinAlgError):
        for _ in range(2):
            found = solve_triangular(cholesky(found.T @ found), found.T, trans="T").T
        return np.asarray(found)
    return np.linalg.qr(v)[0]


def _filter(walk: Walk, known: Array, v: Array, low: float) -> None:
    """Multiply the vectors v, in place, by a Chebyshev polynomial of a walk.

    The part of the walk along `known` eigenvectors is left out. The polynomial is at most one
    between zero and `low`, and large above. `low` is an eigenvalue, and may be lowered or raised to
    limits."""
    before, now, tuning = v, walk.without(known, v), TUNING.spectrum
    low, amplified = min(low, tuning.largest_low), tuning.amplified
    if v.shape[1] > tuning.many_vectors:
        low, amplified = max(low, tuning.least_low), tuning.more_amplified
    if low <= 0:  # no interval to damp: one product with the walk is the filter
        v[...] = now
        return
    # with this degree, the polynomial is at most `amplified` at the eigenvalue one
    degree = min(tuning.degree, int(math.acosh(amplified) / math.acosh(2 / low - 1)))
    now *= 2 / low
    now -= v

    # T_(j+1) = 2 x T_j - T_(j-1), with x = (2 / low) S - 1, overwrites T_(j-1).
    def recur(rows: slice) -> None:
        here = after[rows]
        here -= known[rows] @ part
        here *= 4 / low
        here -= 2 * now[rows]
        np.subtract(here, before[rows], out=before[rows])

    tiles = row_tiles(len(v), v.shape[1], TUNING.tiles.vector_numbers)
    for _ in range(degree - 1):
        after, part = walk @ now, known.T @ now
        run_all(recur, tiles, walk.n_threads)
        before, now = now, before
    v[...] = now


# ---- combinations of the slow eigenvectors ------------------------------------------------------


def _combinations(
    walk: Walk, share: Array, known: Array, k: int, enough: float
) -> tuple[Spectrum, Array]:
    """Return random combinations of slow eigenvectors, for many clusters, without eigenvectors.

    Each eigenvector in a combination is multiplied by its decay at the separating time, so that
    distances between nodes hardly change. A polynomial of the walk filters random vectors to get
    the combinations. The spectrum has the gap of the k-th eigenvector for each combination.

    Eigenvectors that cover few rows are not removed, and place their nodes far from all other
    nodes. Such nodes are moved in, so that they are no farther out than nodes of a cluster of half
    the mean size. `known` are the eigenvectors that are constant on components. If no combination
    lasts a step of the walk, none is returned.

    Tremblay, Puy, Gribonval, Vandergheynst: Compressive spectral clustering. ICML 2016."""
    count = TUNING.spectrum.combinations
    order = _order(walk, len(share), count)
    if order is not None:
        walk, share, known = walk.ordered(order), share[order], known[order]
    root, n_known, gap = np.sqrt(share), known.shape[1], 0.0
    random = np.random.default_rng(0)
    combined = known[:, 1:] @ random.standard_normal((n_known - 1, count))
    if n_known < k:  # else eigenvectors that are constant on components suffice
        slow, gap = _low_pass(walk, root[:, None] * known, k, random)
        slow /= root[:, None]
        squares = (slow**2).mean(axis=1)
        combined += slow / np.sqrt(np.maximum(squares / (2 * k), 1))[:, None]
    combined -= share @ combined
    nodes = root[:, None] * combined
    # Rows are half a step from the nodes, so they have the variance of nodes after half a step.
    variance, most = np.vdot(nodes, walk @ nodes), np.vdot(nodes, nodes)
    if variance <= (1 - TUNING.spectrum.largest_gap) / 2 * most:  # no function lasts a step
        return Spectrum(np.empty(0), np.empty(0), enough, 0), combined[:, :0]
    # Rows get a total variance of `count`: their features are divided by sqrt(1 - gap) later.
    combined *= np.sqrt((1 - gap) * count / variance)
    if order is not None:
        combined[order] = combined.copy()
    ones = np.ones(count)
    return Spectrum(gap * ones, ones, enough, 0), combined


def _low_pass(walk: Walk, known: Array, k: int, random: Any) -> tuple[Array, float]:
    """Return filtered random vectors (m, count), and 1 - mu of the k-th largest eigenvalue mu.

    Random vectors lose their parts along `known` eigenvectors, and along eigenvectors beyond the k
    largest eigenvalues. The `known` eigenvectors are among the first k. The remaining parts are
    multiplied by exp(-t (1 - mu) / 2) mu^(-1/2) at the separating time t."""
    tuning = TUNING.spectrum
    probes, vectors = (
        (v := random.standard_normal((len(known), number))) - known @ (known.T @ v)
        for number in (tuning.probes, tuning.combinations)
    )
    # `probed_degree` moments do not tell smaller angles apart
    angle = max(_angle(walk, probes, k - known.shape[1]), math.pi / (2 * tuning.probed_degree))
    gap = min((1 - math.cos(angle)) / 2, tuning.largest_gap)
    degree = min(math.ceil(tuning.filter_degree / angle), tuning.largest_degree)

    def passed(x: Any) -> Any:  # x = 2 mu - 1 is the cosine of the angle of mu
        mu = (1 + x) / 2
        decay = np.exp(-tuning.times * (1 - mu) / (2 * gap)) / np.sqrt(np.maximum(mu, 1 - gap))
        return np.where(np.arccos(x) <= angle, decay, 0)

    factors = chebinterpolate(passed, 10 * tuning.largest_degree)[: degree + 1] * _damping(degree)
    tiles = row_tiles(len(vectors), vectors.shape[1], TUNING.tiles.vector_numbers)
    sums = factors[0] * vectors

    def add(factor: float, term: Array, rows: slice) -> None:
        sums[rows] += factor * term[rows]

    for factor, (_, term) in zip(factors[1:], _chebyshev(walk, vectors)):
        run_all(partial(add, factor, term), tiles, walk.n_threads)
    return sums, gap


def _angle(walk: Walk, probes: Array, count: int) -> float:
    """Return arccos(2 mu - 1) of the `count`-th largest eigenvalue mu.

    It is estimated from moments of the distribution of all eigenvalues. The moments are sums of
    Chebyshev polynomials of the eigenvalues, estimated from the random vectors `probes`."""
    pairs = itertools.islice(_chebyshev(walk, probes), TUNING.spectrum.probed_degree)
    sums = [2 * np.vdot(each, now) for before, now in pairs for each in (before, now)]
    moments = np.r_[np.vdot(probes, probes), sums] / probes.shape[1]
    # 2 T_a T_b = T_(a + b) + T_(a - b), where a - b is 1 for odd moments and 0 for even moments
    moments[1::2] -= moments[1] / 2
    moments[2::2] -= moments[0]
    # The number of eigenvalues up to an angle, times pi, is a series of sines of the angle.
    j, angles = np.arange(1, len(moments)), np.linspace(0, math.pi, 1000)
    waves = np.sin(np.outer(angles, j)) @ (_damping(len(j))[1:] * moments[1:] / j)
    return float(np.interp(count * math.pi, angles * moments[0] + 2 * waves, angles))


def _chebyshev(walk: Walk, v: Array) -> Iterator[tuple[Array, Array]]:
    """Yield T_j(2 S - 1) v and T_(j+1)(2 S - 1) v for j = 0, 1, ..., with the matrix S of a walk.

    T_j is the Chebyshev polynomial of degree j."""
    before, now = v, 2 * (walk @ v) - v
    tiles = row_tiles(len(v), v.shape[1], TUNING.tiles.vector_numbers)

    # T_(j+1) = 2 x T_j - T_(j-1), with x = 2 S - 1, overwrites the product S T_j.
    def recur(rows: slice) -> None:
        here = after[rows]
        here *= 4
        here -= 2 * now[rows]
        here -= before[rows]

    while True:
        yield before, now
        after = walk @ now
        run_all(recur, tiles, walk.n_threads)
        before, now = now, after


def _damping(degree: int) -> Array:
    """Return Jackson's factors (degree + 1,) of the terms of a Chebyshev series.

    Without these factors a truncated series oscillates on both sides of a step."""
    step, j = math.pi / (degree + 2), np.arange(degree + 1)
    return (1 - j / (degree + 2)) * np.cos(step * j) + np.sin(step * j) / math.tan(step) / (
        degree + 2
    )

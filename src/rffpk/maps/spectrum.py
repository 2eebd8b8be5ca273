"""The slow eigenpairs of a diffusion, and which of them count for how long."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from sklearn.metrics import euclidean_distances

from rffpk._utils.arrays import Array
from rffpk._utils.columns import Columns, dense
from rffpk._utils.linalg import RANDOM, eigh, fixed_signs, in_range, svd
from rffpk._utils.tree import groups, ward
from rffpk.maps.components import Parts, divided, function_share, large_share, valley_of_rows
from rffpk.maps.neighbours import (
    NeighbourCount,
    Neighbourhoods,
    Shared,
    centroid_landmarks,
    cluster_means,
    distinct_where_few,
    mutual_neighbours,
)

# bench/results/trials.md has the alternatives to these.
_PER_CLUSTER = 2  # components a cluster, at most
_LEAST_POWER = 0.01  # exp(-t (1 - mu)) of the last component
_LARGEST_GAP = 0.99  # functions of faster pairs are divided by nearly zero
_TIMES = 3  # relaxation times of the k-th pair
_LARGEST_TIME = 1e6  # what is slower counts as disconnected

# 1 - mu below this part of the largest that is considered is noise: 0.001 to 0.003 find 94 % of the
# numbers of clusters of the sets in tests/test_diffusion.py.
_RESOLVED = 0.002

# Where no number of clusters is known, the time is that of the largest gap among so many.
MAX_CLUSTERS = 20

# Eigenpairs that are computed at least, so that the largest gap shows; and where the number of
# clusters is known, as some functions do not count.
_PAIRS, LEAST_PAIRS = 32, 12


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of a diffusion, without the constant function's one, slowest first."""

    gaps: Array  # 1 - mu, (q,)
    shares: Array  # (q,): participation, the share of the rows that a function covers
    enough: float  # the share from which on it counts for any number of clusters
    n_constant: int  # the first ones, which are constant on components

    def able(self) -> Array:
        """The numbers of the pairs that extend to other rows."""
        return np.flatnonzero(self.gaps <= _LARGEST_GAP)

    def slow(self, k: int) -> Array:
        """The numbers of the pairs that k clusters may use: those that are constant on components
        or cover enough rows, or the k - 1 that cover most where these are fewer."""
        able = self.able()
        covers = self.shares[able] >= min(large_share(k), self.enough)
        enough = able[covers | (able < self.n_constant)]
        if len(enough) >= k - 1:
            return enough
        return np.sort(able[np.argsort(-self.shares[able], kind="stable")[: k - 1]])

    def separating_time(self, k: int) -> float:
        """1 / (1 - mu) of the k-th slowest pair that covers enough rows, the constant one counted,
        three times; infinite times are cut."""
        gaps = self.gaps[self.slow(k)]
        if not len(gaps):
            return 1.0
        gap = gaps[min(max(k - 2, 0), len(gaps) - 1)]
        return float(min(_TIMES / max(gap, 1 / _LARGEST_TIME), _LARGEST_TIME))

    def components(self, k: int, time: float) -> Array:
        """The numbers of the pairs whose power at a time is not small."""
        slow = self.slow(k)
        lasting = int((np.exp(-time * self.gaps[slow]) >= _LEAST_POWER).sum())
        return slow[: max(k - 1, min(lasting, _PER_CLUSTER * k))]

    def decay(self, index: Array, time: float) -> Array:
        """exp(-time (1 - mu) / 2) of some pairs."""
        return np.exp(-time * self.gaps[index] / 2)

    def unit_decay(self, index: Array, time: float) -> Array:
        """The same, scaled so that the squares have the sum one; none underflows for all."""
        if not len(index):
            return np.zeros(0)
        gaps = self.gaps[index]
        decay = np.exp(-time * (gaps - gaps.min()) / 2)
        return np.asarray(decay / np.linalg.norm(decay))


def n_pairs(k: int, wanted: int = 0, least: int = _PAIRS) -> int:
    """How many eigenpairs to compute."""
    return max(least, _PER_CLUSTER * k, wanted)


def decompose(
    walk: Multiply, degrees: Array, labels: Array, pairs: int, n_rows: int, rough: int = 0
) -> tuple[Spectrum, Array]:
    """The slow eigenpairs of the random walk on a graph, D^-1 A f = mu f, sum_i d_i f_i^2 = sum_i
    d_i, from products with D^-1/2 A D^-1/2 and from its connected components; the functions f are
    (m, q). The walk is that of so many rows.

    Functions that are constant on each component have the eigenvalue one. They are known, so that
    Lanczos' method looks for the others only.
    """
    share = degrees / degrees.sum()
    root = np.sqrt(share)
    constant = _indicators(root, labels)
    count = min(pairs, len(degrees) - 1)
    gaps, vectors = np.zeros(constant.shape[1] - 1), constant[:, 1:]
    if count > len(gaps):

        def multiply(v: Array) -> Array:
            return walk(v) - constant @ (constant.T @ v)

        wanted, n = count - len(gaps), len(degrees)
        if rough:
            values, others = rough_pairs(multiply, max(rough - len(gaps), 1), wanted, n)
        else:
            values, others = leading_pairs(multiply, wanted, n)
        gaps = np.r_[gaps, np.clip(1 - values, 0, 1)]
        vectors = np.hstack([vectors, others])
    functions = vectors[:, :count] / root[:, None]
    shares, enough = 1 / (share @ functions**4), function_share(n_rows)
    return Spectrum(gaps[:count], shares, enough, constant.shape[1] - 1), functions


def _indicators(root: Array, labels: Array) -> Array:
    """An orthonormal basis of the vectors that are multiples of `root` on each component; the
    first is `root` itself."""
    index = np.zeros((len(root), labels.max() + 1))
    index[np.arange(len(root)), labels] = root
    lengths = np.linalg.norm(index, axis=0)
    basis, _ = np.linalg.qr(np.column_stack([lengths, np.eye(len(lengths))]))
    signs = np.where(basis[0] < 0, -1.0, 1.0)
    return index / lengths @ (basis * signs)


def suggested_n_clusters(spectrum: Spectrum, largest: int) -> int:
    """The number of clusters, from 2 on, after which the spectrum has its largest gap."""
    gaps = spectrum.gaps[spectrum.slow(largest)][:largest]
    if len(gaps) < 2:
        return len(gaps) + 1
    gaps = gaps + max(_RESOLVED * gaps[-1], 1 / _LARGEST_TIME)
    return 2 + int(np.argmax(gaps[1:] / gaps[:-1]))


def eigengaps(spectrum: Spectrum, largest: int) -> Array:
    """log((1 - mu_(k+1)) / (1 - mu_k)) of the functions that cover enough rows for k clusters, at
    the places k to `largest`; zeros where there are too few, and at 0 and 1."""
    found = np.zeros(largest + 1)
    for k in range(2, min(largest, len(spectrum.gaps)) + 1):
        gaps = spectrum.gaps[spectrum.slow(k)]
        if len(gaps) >= k:
            least = max(_RESOLVED * gaps[min(k, MAX_CLUSTERS - 1, len(gaps) - 1)], 1e-6)
            found[k] = math.log((gaps[k - 1] + least) / (gaps[k - 2] + least))
    return found


def slow_labels(functions: Array, k: int) -> Array:
    """Clusters of nodes by their slow functions (m, q), slowest first: the rotation of the first
    k - 1 of these, and of the constant one, that makes them indicators of the nodes that a QR
    factorisation with pivots chooses. Damle, Minden, Ying: Simple, direct and efficient multi-way
    spectral clustering. Information and Inference 2019, algorithm 1.
    """
    functions = np.column_stack([np.ones(len(functions)), functions[:, : k - 1]])
    pivots = qr(functions.T, mode="r", pivoting=True)[1][: functions.shape[1]]
    left, _, right = svd(functions[pivots].T)
    return np.argmax(np.abs(functions @ (left @ right)), axis=1)


# ---- the leading eigenpairs of large matrices --------------------------------------------------

Multiply = Callable[[Array], Array]  # of (n, b) arrays by a symmetric matrix of order n

# docs/math.md, section 17, has the figures behind these.
_BLOCK = 8  # vectors of a block, at least, ...
_PART = 1 / 16  # ... and as a part of those that are wanted
_VECTORS_A_PAIR = 2  # of a basis, ...
_MORE = 128  # ... and so many besides
_DENSE = 2.5  # up to so many times the vectors of a basis all eigenpairs are computed at once
_AMPLIFIED = 1e4  # the filter of the eigenvalue one, at most: more would drown others in rounding
_HIGHEST = 0.9999  # bound, so that filters have a bounded degree
_GAIN = 0.9  # a bound that leaves more than this part of the way to one was worth no start anew
_RESTARTS = 20  # of a basis that is full, with a filter
_CHECKS = 1.2  # Ritz pairs are looked at whenever the basis has grown by this factor
_TOL = 1e-8  # of residuals
_ROUNDS = 12  # of subspace iteration, at most
_ROUGH = 0.02  # of residuals, as parts of the last gap, where functions serve to find clusters
_NOISE = 1e-15  # far below them
# Of matrices up to this order ARPACK finds so few pairs sooner, with this tolerance
# and so many restarts at most, but some multiple eigenvalues are missed.
_SINGLE = (200_000, 100, 1e-9, 100)
_PROBE_STEPS = 10  # within so many from other vectors a pair that was missed shows, ...
_PROBES = 8  # ... so many of them
_APART = 1e-6  # ... by an eigenvalue that is larger by this part of the largest


def leading_pairs(multiply: Multiply, k: int, n: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, falling, and their eigenvectors (n, k), each with the largest
    entry > 0, of a symmetric matrix whose eigenvalues are from zero to one.

    ARPACK for few pairs of matrices that are not large. Where it misses one, and of others, block
    Lanczos with full orthogonalisation. Where its basis does not suffice, the Ritz values
    bound the wanted eigenvalues from below, and Lanczos runs on a polynomial of the matrix that is
    small below that bound and rises fast above it. A multiple eigenvalue that a block sees too
    few vectors of shows when the vectors that were found are removed; blocks then grow.
    """
    block, most, low = max(_BLOCK, int(_PART * k)), _VECTORS_A_PAIR * k + _MORE, 0.0
    if n > _DENSE * most and (found := _single_vector_lanczos(multiply, k, n)) is not None:
        return found
    while n > _DENSE * most:
        degree = _degree(low)
        filtered, restarts = _filter(multiply, low, degree), 0 if degree == 1 else _RESTARTS
        ritz, vectors, converged = _block_lanczos(filtered, k, n, block, most, restarts)
        if not converged:
            bound = max(low, _unfiltered(ritz[(3 * k) // 2], low, degree))
            most = most if 1 - bound < _GAIN * (1 - low) else 2 * most
            low = min(bound, _HIGHEST)
        elif not _is_one_missed(filtered, ritz[:k], vectors):
            values, turned = eigh(vectors.T @ multiply(vectors))
            return values[::-1], fixed_signs(vectors @ turned[:, ::-1])
        else:
            block *= 2
            most = max(most, k + 2 * block)
    dense = multiply(np.eye(n))
    values, vectors = eigh((dense + dense.T) / 2, subset_by_index=[n - k, n - 1])
    return values[::-1], fixed_signs(vectors[:, ::-1])


def rough_pairs(multiply: Multiply, k: int, most: int, n: int) -> tuple[Array, Array]:
    """The same for `most` pairs, the first k of which are as accurate as clusters need: by subspace
    iteration with filters, whose residuals say how near its vectors are."""
    block = min(max(_BLOCK, most), n)
    vectors, low = np.random.default_rng(0).standard_normal((n, block)), 0.0
    first = slice(0, min(k, block))
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(_filter(multiply, low, _degree(low))(vectors))[0]
        product = multiply(basis)
        values, turned = eigh(basis.T @ product)
        values, turned = values[::-1], turned[:, ::-1]
        vectors = basis @ turned
        residuals = product @ turned[:, first] - vectors[:, first] * values[first]
        largest = np.linalg.norm(residuals, axis=0).max()
        if largest <= _ROUGH * (1 - values[first][-1]):
            break
        low = min(max(low, values[-1]), _HIGHEST)
    return values[:most], fixed_signs(vectors[:, :most])


def _single_vector_lanczos(multiply: Multiply, k: int, n: int) -> tuple[Array, Array] | None:
    """The same by ARPACK; None where it is slower, fails or misses a pair."""
    order, pairs, tol, restarts = _SINGLE
    if n > order or k > pairs:
        return None
    operator = LinearOperator((n, n), matvec=multiply, matmat=multiply, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    try:
        values, vectors = eigsh(
            operator, k=k, which="LA", tol=tol, maxiter=restarts, v0=start, **RANDOM
        )
    except ArpackError:
        return None
    values, vectors = values[::-1], vectors[:, ::-1]
    missed = _is_one_missed(multiply, values, vectors)
    return None if missed else (values, fixed_signs(vectors))


def _block_lanczos(
    multiply: Multiply, k: int, n: int, block: int, most: int, restarts: int
) -> tuple[Array, Array, bool]:
    """The Ritz values of a basis of at most `most` vectors, falling, the Ritz vectors (n, k) of the
    k largest, and whether these have converged."""
    basis, projected = np.empty((n, most)), np.zeros((most, most))
    random = np.random.default_rng(0)
    new = np.linalg.qr(random.standard_normal((n, block)))[0]
    size, looked = 0, k
    while True:
        here = slice(size, size + new.shape[1])
        basis[:, here], size = new, here.stop
        known = basis[:, :size]
        product = multiply(new)
        projected[:size, here] = known.T @ product
        projected[here, :size] = projected[:size, here].T
        product -= known @ projected[:size, here]
        # twice is enough; noise takes the place of directions that are exhausted
        once, first = np.linalg.qr(product + _NOISE * random.standard_normal(product.shape))
        following, second = np.linalg.qr(once - known @ (known.T @ once))
        full = size + block > most
        if full or size >= _CHECKS * looked:
            values, vectors = eigh(projected[:size, :size])
            values, vectors = values[::-1], vectors[:, ::-1]
            residuals = np.linalg.norm(second @ first @ vectors[here, :k], axis=0)
            converged = bool((residuals <= _TOL * np.maximum(np.abs(values[:k]), 1)).all())
            if converged or (full and not restarts):
                return values, known @ vectors[:, :k], converged
            if full:  # the best Ritz vectors are the basis of what follows
                restarts, size = restarts - 1, min(k + (most - k) // 3, size - block)
                basis[:, :size] = known @ vectors[:, :size]
                projected[:] = 0
                projected[:size, :size] = np.diag(values[:size])
            looked = size
        new = following


def _degree(low: float) -> int:
    """The degree of the filter."""
    if low <= 0:
        return 1
    return max(1, int(math.acosh(_AMPLIFIED) / math.acosh(2 / low - 1)))


def _filter(multiply: Multiply, low: float, degree: int) -> Multiply:
    """The Chebyshev polynomial of the matrix that is at most one from zero to `low`; of the degree
    one the matrix itself."""
    if degree == 1:
        return multiply

    def mapped(v: Array) -> Array:
        return (2 / low) * multiply(v) - v

    def filtered(v: Array) -> Array:
        before, now = v, mapped(v)
        for _ in range(degree - 1):
            before, now = now, 2 * mapped(now) - before
        return now

    return filtered


def _unfiltered(value: float, low: float, degree: int) -> float:
    """The number above `low` at which the polynomial has a value; `low` if that is at most one."""
    if degree == 1:
        return value
    return low * (1 + math.cosh(math.acosh(max(value, 1.0)) / degree)) / 2


def _is_one_missed(multiply: Multiply, values: Array, vectors: Array) -> bool:
    """Whether the matrix has another eigenvalue above the least of these."""
    n, found = vectors.shape
    count = min(_PROBES, (n - found) // (_PROBE_STEPS + 1))
    if count < 1:
        return False
    basis = np.zeros((n, count * _PROBE_STEPS))
    new = np.random.default_rng(1).standard_normal((n, count))
    for step in range(_PROBE_STEPS):
        here = slice(count * step, count * (step + 1))
        for known in (vectors, basis[:, : here.start]) * 2:
            new = np.linalg.qr(new - known @ (known.T @ new))[0]
        basis[:, here] = new
        new = multiply(new)
        new = new + _NOISE * np.random.default_rng(2).standard_normal(new.shape)
    projected = basis.T @ multiply(basis)
    largest = np.abs(values).max()
    return bool(eigh((projected + projected.T) / 2)[0][-1] > values[-1] + _APART * largest)


# ---- graphs of landmarks and of rows -------------------------------------------------------------


@dataclass(frozen=True)
class Diffusion:
    """A diffusion over landmarks, and its slow functions.

    Landmarks that dangle, and those of components that do not count, are left out: rows near them
    count with the nearest of the others.
    """

    neighbourhoods: Neighbourhoods
    spectrum: Spectrum
    extension: Array  # (m, q): the slow functions are f(x) = z(x) @ extension
    own: Array | None  # (m, q): those at the landmarks, where these are all rows
    node: Array | None  # (n,): the landmark that is each row, -1 where none is
    parts: Parts


@dataclass(frozen=True)
class Graph:
    """A walk over landmarks, those that count of them."""

    neighbourhoods: Neighbourhoods
    weights: csr_matrix  # sums of p z z' over all rows, or the z of landmarks that are all rows
    degrees: Array
    mass: Array | None  # of landmarks that are all rows
    node: Array | None  # as in a diffusion
    parts: Parts
    n_sampled: int


def diffusion(
    X: Columns,
    weight: Array | None,
    numbers: tuple[int, int],
    count: NeighbourCount,
    k: int,
    pairs: int,
    enough: int | None,
    spherical: bool,
    random: Any,
    n_threads: int,
    only_shown: bool = False,
    rough: bool = False,
    shared: Shared | None = None,
) -> Diffusion:
    """Rows step to their nearest landmarks and from there to the rows of these; `numbers` are those
    of `landmark_numbers`. Where `enough` components count for k clusters, the functions that are
    constant on each of them are all that there is; of more components the nearest are one. There
    are none with `only_shown` where components do not show the clusters. `rough` functions serve to
    find clusters."""
    shared = shared or Shared()
    graph: Graph = shared(
        count,
        lambda: _graph(X, weight, numbers, count, k, spherical, random, n_threads, shared),
    )
    parts = graph.parts
    labels, few = parts.labels, enough is not None and parts.n_kept >= enough
    if enough is not None and few:
        labels, pairs = _nearest_joined(graph, enough), enough - 1
    pairs = 0 if only_shown and not parts.show_clusters(k) else pairs
    walk = _walk(graph.weights, graph.degrees, graph.mass)
    spectrum, functions = shared(
        (count, pairs, few),
        lambda: decompose(walk, graph.degrees, labels, pairs, graph.n_sampled, k if rough else 0),
    )
    mu = 1 - spectrum.gaps
    extension = functions / np.sqrt(np.where(mu > 0, mu, np.inf))
    own = None if graph.mass is None else graph.weights @ extension
    return Diffusion(graph.neighbourhoods, spectrum, extension, own, graph.node, parts)


def _nearest_joined(graph: Graph, k: int) -> Array:
    """The component of each node, where those are merged by Ward's method that are more than k."""
    labels, n = graph.parts.labels, graph.parts.n_kept
    if n <= k:
        return labels
    landmarks, mass = graph.neighbourhoods.landmarks, np.bincount(labels, graph.degrees)
    means = dense(cluster_means(landmarks, graph.degrees, labels, landmarks[:n]))
    return groups(ward(euclidean_distances(in_range(means), squared=True), mass), k)[labels]


def _graph(
    X: Columns,
    weight: Array | None,
    numbers: tuple[int, int],
    count: NeighbourCount,
    k: int,
    spherical: bool,
    random: Any,
    n_threads: int,
    shared: Shared,
) -> Graph:
    mass = node = None
    rows = shared("distinct", lambda: distinct_where_few(X, weight, numbers, random))
    if rows is None:
        found, some, p, nearest = centroid_landmarks(
            X, weight, numbers[1], k, count, spherical, random, n_threads
        )
        degrees, graph, n_rows = found.sums(X, weight, random)
        held, n_sampled = graph.diagonal(), len(nearest)
    else:
        some, mass, node = rows
        found, graph = mutual_neighbours(some, mass, count, n_threads, shared)
        p, nearest, degrees = mass, np.arange(len(some)), _column_sums(graph, mass)
        held, n_sampled = _column_sums(graph, mass, 2), int((node >= 0).sum())
        n_rows = n_sampled
    valley = valley_of_rows(some, p, nearest, n_threads)
    # Of sparse rows whose distances are rounded to zero, some may be nobody's neighbours.
    share = (degrees if mass is None else np.where(degrees > 0, mass, 0)) / degrees.sum()
    parts = divided(graph, share, held, degrees, k, n_rows, valley, some.shape[1])
    if not parts.kept.all():
        found, graph, degrees, mass, node = _without(parts.kept, found, graph, mass, node)
    return Graph(found, graph, degrees, mass, node, parts, n_sampled)


def _without(
    kept: Array,
    found: Neighbourhoods,
    graph: csr_matrix,
    mass: Array | None,
    node: Array | None,
) -> tuple[Neighbourhoods, csr_matrix, Array, Array | None, Array | None]:
    """The walk over the landmarks that are kept, with its degrees: no step leads to others."""
    found, graph = found.of(kept), graph[kept][:, kept]
    sums = np.asarray(graph.sum(axis=1)).ravel()
    if mass is None or node is None:
        return found, graph, sums, None, None
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    mass, graph = mass[kept], _scaled(graph, 1 / sums)
    return found, graph, _column_sums(graph, mass), mass, number[node]


def _column_sums(graph: csr_matrix, mass: Array, power: int = 1) -> Array:
    """The sums of the powers of the entries of each column, the rows of these weights."""
    weights = np.repeat(mass, np.diff(graph.indptr)) * graph.data**power
    return np.bincount(graph.indices, weights, graph.shape[1])


def _scaled(graph: csr_matrix, rows: Array, columns: Array | None = None) -> csr_matrix:
    """A copy with rows and columns that are multiplied by numbers."""
    data = graph.data * np.repeat(rows, np.diff(graph.indptr))
    if columns is not None:
        data *= columns[graph.indices]
    return csr_matrix((data, graph.indices, graph.indptr), shape=graph.shape)


def _walk(graph: csr_matrix, degrees: Array, mass: Array | None) -> Multiply:
    """Products with the symmetric matrix of the walk over landmarks: from the sums of p z z' over
    all rows, or, with the weights p of landmarks that are all rows, from their z."""
    scale = 1 / np.sqrt(degrees)
    if mass is None:
        return _scaled(graph, scale, scale).__matmul__
    there = _scaled(graph, np.sqrt(mass), scale)
    back = there.T.tocsr()
    return lambda v: back @ (there @ v)

"""The slow eigenpairs of a diffusion, and which of them count for how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.sparse.csgraph import connected_components

from rffpk._utils.arrays import Array
from rffpk._utils.linalg import leading_eigenvectors
from rffpk._utils.sparse_rows import Columns, distinct_rows
from rffpk.maps.neighbours import (
    N_NEIGHBOURS,
    NeighbourCount,
    Neighbourhoods,
    make_neighbourhoods,
)

# docs/math.md, section 17, has the trials behind these.
_LEAST_SHARE = 0.2  # of 1/k: eigenvectors and components that cover less are left out
_PER_CLUSTER = 3  # components a cluster, at most
_LEAST_POWER = 0.01  # exp(-t (1 - mu)) of the last component
_LARGEST_GAP = 0.99  # functions of faster pairs are divided by nearly zero
_TIMES = 3  # relaxation times of the k-th pair
_LARGEST_TIME = 1e6  # what is slower counts as disconnected

# 1 - mu below this part of the largest that is considered is noise: 0.001 to 0.003 find 94 % of the
# numbers of clusters of the sets in tests/test_diffusion.py.
_RESOLVED = 0.002

# Where no number of clusters is known: that of `suggest_n_clusters`.
MAX_CLUSTERS = 20

# A matrix with more than this share of its entries not zero multiplies faster with all of them.
_FULL = 1 / 3

# Eigenpairs that are computed at least, so that numbers of clusters can be suggested.
_PAIRS = 64


@dataclass(frozen=True)
class Spectrum:
    """Eigenpairs of a diffusion, without the constant one, slowest first."""

    gaps: Array  # 1 - mu, (q,)
    functions: Array  # (m, q), with the mean square one under `share`
    shares: Array  # (q,): participation, the share of the rows that a function covers

    def able(self) -> Array:
        """The numbers of the pairs that extend to other rows."""
        return np.flatnonzero(self.gaps <= _LARGEST_GAP)

    def slow(self, k: int) -> Array:
        """The numbers of the pairs that k clusters may use: those that cover enough rows, or the
        k - 1 that cover most where these are fewer."""
        able = self.able()
        enough = able[self.shares[able] >= least_share(k)]
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


def least_share(k: int) -> float:
    """The least share of the rows that a component of k clusters covers."""
    return _LEAST_SHARE / k


def n_pairs(k: int, wanted: int = 0) -> int:
    """How many eigenpairs to compute."""
    return max(_PAIRS, (_PER_CLUSTER + 1) * k, wanted)


def connected(affinity: csr_matrix, degrees: Array) -> tuple[Array, Array]:
    """The number of the connected component of each node, and the share of each component."""
    affinity.eliminate_zeros()
    count, labels = connected_components(affinity, directed=False)
    return labels, np.bincount(labels, degrees, minlength=count) / degrees.sum()


def decompose(affinity: csr_matrix, degrees: Array, labels: Array, pairs: int) -> Spectrum:
    """The slow eigenpairs of the random walk on a graph: D^-1 A f = mu f, sum_i d_i f_i^2 = sum_i
    d_i, from its connected components.

    Functions that are constant on each component have the eigenvalue one. They are known, so that
    Lanczos' method looks for the others only.
    """
    share = degrees / degrees.sum()
    root = np.sqrt(share)
    scale = diags(1 / np.sqrt(degrees))
    walk = (scale @ affinity @ scale).tocsr()
    if walk.nnz > _FULL * len(degrees) ** 2:
        walk = walk.toarray()
    constant = _indicators(root, labels)
    n = len(degrees)
    count = min(pairs, n - 1)
    gaps, vectors = np.zeros(constant.shape[1] - 1), constant[:, 1:]
    if count > len(gaps):

        def multiply(v: Array) -> Array:
            return walk @ v - constant @ (constant.T @ v)

        values, others = leading_eigenvectors(multiply, count - len(gaps), n)
        gaps = np.r_[gaps, np.clip(1 - values, 0, 2)]
        vectors = np.hstack([vectors, others])
    functions = vectors[:, :count] / root[:, None]
    fourth = share @ functions**4
    return Spectrum(gaps[:count], functions, 1 / fourth)


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


# ---- graphs of landmarks and of rows -------------------------------------------------------------


@dataclass(frozen=True)
class Diffusion:
    """A diffusion over nodes, landmarks or rows, and its slow functions.

    Nodes of connected components that are too small are left out: rows near them count with the
    nearest of the others.
    """

    neighbourhoods: Neighbourhoods  # of the nodes
    spectrum: Spectrum
    extension: Array  # (m, q): the slow functions are f(x) = z(x) @ extension
    degrees: Array  # (m,), of the nodes
    shares: Array  # of the rows, of connected components, falling; small single nodes left out
    n_kept: int  # components that are not left out
    kept: Array  # which nodes these have, a mask


def over_landmarks(
    X: Columns,
    weight: Array | None,
    numbers: tuple[int, int],
    count: NeighbourCount,
    least_share: float,
    pairs: int,
    spherical: bool,
    random: Any,
    n_threads: int,
) -> Diffusion:
    """Rows step to their nearest landmarks and from there to the rows of these; `numbers` are those
    of `landmark_numbers`."""
    found = make_neighbourhoods(X, weight, *numbers, count, spherical, random, n_threads)
    degrees, affinity = found.sums(X, weight, random)
    return _diffusion(found, affinity, degrees, least_share, pairs, half_steps=1)


def over_rows(
    X: Columns,
    weight: Array | None,
    count: NeighbourCount,
    least_share: float,
    pairs: int,
    n_threads: int,
) -> tuple[Diffusion, Array, Array]:
    """Rows step to their nearest rows, and back. Equal rows are one node, of their weight together,
    if that is not zero.

    Also returns the node of each row, -1 where it has none, and the share of the row in the degree
    of its node, (n,) both.
    """
    p = np.ones(len(X)) if weight is None else weight
    distinct, index = distinct_rows(X)
    masses = np.bincount(index, p)
    counted = masses > 0
    nodes, mass = distinct[counted], masses[counted]
    found = Neighbourhoods(nodes, count.of(N_NEIGHBOURS), 0.0, n_threads)
    found = found.widened(nodes, mass)
    flow = diags(mass) @ found.weights(nodes)
    affinity = ((flow + flow.T) / 2).tocsr()
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    diffusion = _diffusion(found, affinity, degrees, least_share, pairs, half_steps=2)
    number = np.full(len(distinct), -1)
    number[counted] = np.where(diffusion.kept, np.cumsum(diffusion.kept) - 1, -1)
    part = p / np.where(counted, masses, 1)[index]
    return diffusion, number[index], part


def _diffusion(
    found: Neighbourhoods,
    affinity: csr_matrix,
    degrees: Array,
    least_share: float,
    pairs: int,
    half_steps: int,
) -> Diffusion:
    """The diffusion over a graph of nodes, of which z(x) is a step or half of one."""
    labels, shares = connected(affinity, degrees)
    large, several = shares >= least_share, np.bincount(labels) > 1
    kept = large[labels] if large.any() else degrees > 0
    if not kept.all():
        radii = None if found.radii is None else found.radii[kept]
        found = replace(found, landmarks=found.landmarks[kept], radii=radii)
        affinity, degrees = affinity[kept][:, kept], degrees[kept]
        labels = np.unique(labels[kept], return_inverse=True)[1]
    spectrum = decompose(affinity, degrees, labels, pairs)
    mu = 1 - spectrum.gaps
    powers = np.where(mu > 0, mu, np.inf) ** (half_steps / 2)
    extension = spectrum.functions / powers
    n_kept = int(labels.max()) + 1
    # without single rows that have no mutual neighbors, and landmarks that no row steps to
    shares = np.sort(shares[(large | several) & (shares > 0)])[::-1]
    return Diffusion(found, spectrum, extension, degrees, shares, n_kept, kept)

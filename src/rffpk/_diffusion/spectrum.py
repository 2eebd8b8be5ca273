"""The slow eigenpairs of a diffusion, and which of them count for how long."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.sparse.csgraph import connected_components

from rffpk._data.arrays import Array
from rffpk._data.decompositions import leading_eigenvectors

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

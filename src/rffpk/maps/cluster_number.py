"""The number of clusters: an eigengap that several graphs of neighbours share, else mixtures."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from sklearn.cluster import kmeans_plusplus

from rffpk._utils.arrays import Array, adjusted_rand_index
from rffpk._utils.linalg import svd
from rffpk._utils.sparse_rows import Columns, rows_differ
from rffpk.maps.neighbours import (
    NeighbourCount,
    Neighbourhoods,
    drawn_rows,
    k_means,
    unit_rows,
)
from rffpk.maps.spectrum import Diffusion, diffusion, eigengaps
from rffpk.maps.whitening import fit_whitening

# docs/clusters_number.md has the trials behind these.
_ROWS, _PAIRS = 3000, 128  # rows that are looked at, and eigenpairs of each graph
# Where more clusters, or more connected components, are found than this, more rows are looked at,
# and more pairs of graphs without whitening.
_MANY, _MORE_ROWS, _MORE_PAIRS = 16, 12_000, 512
_GRAPHS = ((None, 1), (None, 2), (0.5, 1), (1.0, 1))  # whitening, times the default neighbours
_WHITENED = 20  # clusters that whitening makes components for
_SEPARATED = 60  # clusters for which the components of a graph must be large enough
_LARGEST = 6.0  # logarithm of an eigengap that counts
_GAP = 1.5  # mean logarithm of an eigengap that tells clusters apart, or ...
_VALLEY = 0.2  # ... mean log ratio of distances across borders and inside clusters, ...
_AGREEMENT = 0.25  # ... if the clusters of different graphs agree so well
_GAIN = 0.4  # of the BIC for each row, by which a mixture is better than one Gaussian
_MIXTURE_ROWS, _MIXTURE_COLUMNS, _MOST_PARTS = 1500, 5, 30
_FAILURES = 4  # numbers in a row that do not lower the BIC, which end the search
_NEIGHBOURS, _SCALE = 11, 5  # of a row, itself the first; the one whose distance is the scale there
_NUMBERS = 5  # that are returned, at most


@dataclass(frozen=True)
class NClustersSelection:
    """Numbers of clusters that rows may have, as `select_n_clusters` and fits find them.

    Attributes
    ----------
    n_clusters : int
        The best number; 1 where nothing tells clusters apart.
    numbers : ndarray of int64, shape (n_numbers,)
        At most five good numbers of clusters, the best first.
    scores : ndarray of float64, shape (n_numbers,)
        For each, the mean over several graphs of neighbors of the logarithm of the eigengap, the
        ratio of 1 - mu of the functions number k + 1 and k, from 0 to 6. Above 1.5 clusters are far
        apart. 0 for one cluster.
    labels : ndarray of int32, shape (n_numbers, n_rows)
        For each, the clusters of the rows that were looked at, from 0 on.
    rows : ndarray of int64, shape (n_rows,)
        The indices of these rows; of rows that are not in memory, those in the sample of a fit.
    """

    n_clusters: int
    numbers: NDArray[np.int64]
    scores: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int32] = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)


def select_number(
    X: Columns, weight: Array | None, spherical: bool, random: Any, n_threads: int
) -> NClustersSelection:
    """The number of clusters of rows that have been checked."""
    for size, pairs, graphs in ((_ROWS, _PAIRS, _GRAPHS), (_MORE_ROWS, _MORE_PAIRS, _GRAPHS[:2])):
        rows, p = drawn_rows(X, weight, size, random)
        rows = np.unique(rows)
        if not rows_differ(X[rows]):
            alone, one = np.zeros((1, len(rows)), dtype=np.int32), np.ones(1, dtype=np.int64)
            return NClustersSelection(1, one, np.zeros(1), alone, rows)
        some = unit_rows(X[rows]) if spherical else X[rows]
        used = [graph for graph in graphs if not spherical or graph[0] is None]
        found = _Evidence(some, p, spherical, pairs, used, random, n_threads)
        numbers = found.numbers()
        if max(numbers[0], found.graphs[0].parts.n_kept) <= _MANY or len(X) <= size:
            break
    labels = np.stack([found.labels(k) for k in numbers]).astype(np.int32)
    scores = np.array([found.scores[k] if k < len(found.scores) else 0.0 for k in numbers])
    return NClustersSelection(numbers[0], np.array(numbers), scores, labels, rows)


class _Evidence:
    """What several graphs of some rows, and mixtures of Gaussians, say of numbers of clusters."""

    def __init__(
        self, X: Columns, weight: Array | None, spherical: bool, pairs: int,
        graphs: Any, random: Any, n_threads: int,
    ) -> None:  # fmt: skip
        self.X, self.weight, self.random, self.n_threads = X, weight, random, n_threads
        self.graphs = [
            self._graph(whitening, times, spherical, pairs) for whitening, times in graphs
        ]
        found = [eigengaps(graph.spectrum, pairs) for graph in self.graphs]
        self.scores = np.mean([np.clip(each, 0, _LARGEST) for each in found], axis=0)
        self._mixture: Any = None
        self._points = np.zeros((0, 0))

    def _graph(self, whitening: float | None, times: int, spherical: bool, pairs: int) -> Diffusion:
        x = self.X
        if whitening is not None:
            x = fit_whitening(x, self.weight, whitening, _WHITENED, self.random, self.n_threads)(x)
        n = len(x)
        return diffusion(
            x, self.weight, (n, n), NeighbourCount(None, times), _SEPARATED, pairs,
            None, spherical, self.random, self.n_threads,
        )  # fmt: skip

    def numbers(self) -> list[int]:
        """Good numbers, the best first."""
        order = np.argsort(-self.scores, kind="stable")
        several = [int(k) for k in order[: _NUMBERS + 1] if self.scores[k] > 0]
        best = several[0] if several and self._is_apart(several[0]) else self._parts()
        return [best, *(k for k in several if k != best)][:_NUMBERS]

    def _is_apart(self, k: int) -> bool:
        """Whether the graphs agree on k clusters that are far apart, or have a valley between."""
        partitions = [self._partition(graph, k) for graph in self.graphs]
        pairs = combinations(partitions, 2)
        if np.mean([adjusted_rand_index(a, b) for a, b in pairs]) < _AGREEMENT:
            return False
        return bool(self.scores[k] >= _GAP or self._valley(partitions[0], k) >= _VALLEY)

    def labels(self, k: int) -> Array:
        """Clusters of the rows."""
        if k == 1:
            return np.zeros(len(self.X), dtype=np.int32)
        if self._mixture is not None and self._mixture.n_components == k:
            return self._mixture.predict(self._points)
        return self._partition(self.graphs[0], k)

    def _partition(self, graph: Diffusion, k: int) -> Array:
        """Clusters of the rows by the slow functions of a graph; rows that it leaves out are with
        the nearest of the others."""
        functions = graph.own if graph.own is not None else graph.extension
        nodes = np.asarray(graph.node)
        slow = graph.spectrum.slow(k)[: k - 1]
        labels = rotated_labels(np.column_stack([np.ones(len(functions)), functions[:, slow]]))
        found = labels[nodes]
        outside = nodes < 0
        if outside.any():
            kept = np.flatnonzero(~outside)
            nearest = Neighbourhoods(self.X[kept], 1, 0.0, self.n_threads)
            found[outside] = found[kept[nearest.chosen(self.X[outside]).ravel()]]
        return found

    def _valley(self, labels: Array, k: int) -> float:
        """The mean over clusters of the logarithm of the distances at which their rows have
        neighbours in others, over the median distance to the fifth neighbour."""
        near = Neighbourhoods(self.X, _NEIGHBOURS, 0.0, self.n_threads)
        squares, index = near._nearest(self.X)
        distances = np.sqrt(squares.astype(np.float64))
        scale = np.sort(distances, axis=1)[:, min(_SCALE, near.r - 1)]
        widest = np.maximum(np.maximum(scale[:, None], scale[index]), distances)
        across = labels[:, None] != labels[index]
        found = []
        for cluster in range(k):
            own = labels == cluster
            edges, inside = widest[own][across[own]], np.median(scale[own]) if own.any() else 0
            if not own.any():
                found.append(0.0)
            elif not len(edges) or inside <= 0:
                found.append(_LARGEST / 2)
            else:
                found.append(float(np.log(max(np.quantile(edges, 0.1), inside / 10) / inside)))
        return float(np.mean(found))

    def _parts(self) -> int:
        """The number of Gaussians of the mixture with the least BIC; 1 if that is hardly better
        than one."""
        d = min(_MIXTURE_COLUMNS, *self.X.shape)
        mapped = fit_whitening(self.X, self.weight, 0.0, (d + 1) // 2, self.random, self.n_threads)
        self._points = np.asarray(mapped(self.X)[:, :d], dtype=np.float64)
        drawn, p = drawn_rows(self._points, self.weight, _MIXTURE_ROWS, self.random)
        if p is not None:
            drawn = self.random.choice(drawn, len(drawn), p=p / p.sum())
        points = self._points[drawn]
        models, bics = list[Any](), list[float]()
        for k in range(1, min(_MOST_PARTS, len(np.unique(points, axis=0)) // 5) + 1):
            models.append(self._mixture_of(points, k))
            bics.append(models[-1].bic(points) / len(points))
            if k - 1 - int(np.argmin(bics)) >= _FAILURES:
                break
        if not bics or bics[0] - min(bics) < _GAIN:
            return 1
        self._mixture = models[int(np.argmin(bics))]
        return int(self._mixture.n_components)

    def _mixture_of(self, points: Array, k: int) -> Any:
        """A mixture that starts at the clusters of k-means, which is the same for any number of
        threads."""
        from sklearn.mixture import GaussianMixture  # it takes a while, and few fits need it

        seeds, _ = kmeans_plusplus(points, k, random_state=self.random.randint(2**31 - 1))
        centroids = k_means(points, None, seeds, self.n_threads)
        labels = Neighbourhoods(centroids, 1, 0.0, self.n_threads).chosen(points).ravel()
        rest = points - centroids[labels]
        least = 1e-4 * points.var()
        precision = np.linalg.inv(rest.T @ rest / len(points) + least * np.eye(points.shape[1]))
        masses = np.maximum(np.bincount(labels, minlength=k), 1)
        mixture = GaussianMixture(
            k, reg_covar=least, weights_init=masses / masses.sum(), means_init=centroids,
            precisions_init=np.repeat(precision[None], k, axis=0), init_params="random_from_data",
            max_iter=1000, random_state=0,
        )  # fmt: skip
        return mixture.fit(points)


def rotated_labels(functions: Array) -> Array:
    """Clusters of nodes by their k slow functions (m, k): the rotation of these that makes them
    indicators of the nodes that a QR factorisation with pivots chooses. Damle, Minden, Ying:
    Simple, direct and efficient multi-way spectral clustering. Information and Inference 2019,
    algorithm 1.
    """
    k = functions.shape[1]
    pivots = qr(functions.T, mode="r", pivoting=True)[1][:k]
    left, _, right = svd(functions[pivots].T)
    return np.argmax(np.abs(functions @ (left @ right)), axis=1)

"""Kernels as operators: products with few columns, by a matrix or by explicit features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from rffpk._rows.passes import unshifted
from rffpk._rows.store import written_out
from rffpk._utils.arrays import Array
from rffpk._utils.arrays import Fourier as Frequencies
from rffpk._utils.linalg import eigh, leading_eigenvectors, ritz_values, svd
from rffpk._utils.sparse_rows import Columns, SparseRows
from rffpk._utils.tiles import row_tiles, run_all
from rffpk._utils.validation import Auto
from rffpk.fusion.weights import weighed
from rffpk.maps.fourier import Kernel, RandomFourierFeatures, resolve_gamma
from rffpk.maps.kernels import (
    PRECOMPUTED,
    FittedKernel,
    Specification,
    positive_definite,
)

Features = Callable[[Columns], Array]

_POLAR_ROWS = 8192  # a tile of this many rows and ten columns stays in a core's cache

_ROUNDING = 1e-6  # of the largest eigenvalue; eigenvalues above minus this count as zero
_RANK = 1e-9  # singular values below this fraction of the largest count as zero


def polar(V: Callable[[slice], Array], out: Array, n_threads: int) -> Array:
    """Set `out` (n, k) to the U = VP that maximises Tr(U'V) over orthonormal columns; return P.

    `V` returns slices of its rows; no other array of the size of V is made. V = QR tile by tile;
    with the stacked R = MSN', U = Q MN' and P = N S^+ N'. Where V lacks full rank, singular vectors
    of the value zero are left out of U, which therefore depends on V alone. O(n k^2), as stable as
    a decomposition of V.
    """
    tiles = list(gen_batches(len(out), _POLAR_ROWS))

    def triangle(tile: slice) -> Array:
        Q, R = np.linalg.qr(V(tile))  # NumPy's releases the GIL
        out[tile, : len(R)] = Q
        return R

    triangles = run_all(triangle, tiles, n_threads)
    R = np.vstack(triangles)
    left, values, right = svd(R)
    rank = int((values > _RANK * values[0]).sum())
    small = left[:, :rank] @ right[:rank]
    ends = np.cumsum([len(triangle) for triangle in triangles])

    def fill(number: int) -> None:
        size = len(triangles[number])
        U = out[tiles[number]]
        U[:] = U[:, :size] @ small[ends[number] - size : ends[number]]

    run_all(fill, list(range(len(tiles))), n_threads)
    return np.asarray((right[:rank].T / values[:rank]) @ right[:rank])


class Operator(Protocol):
    """A kernel over n fitted rows: k(x, fitted rows) @ B is features(x) @ gathered(B).

    Where the rows have weights, K stands for P^(1/2) K P^(1/2) with their diagonal matrix P, a line
    of whose products is that of the row times the root of its weight: k(x, fitted rows) P^(1/2) @ B
    is features(x) @ gathered(B).
    """

    n: int
    n_features: int
    trace: float
    roots: Array | None  # of the weights

    @property
    def features(self) -> Features:
        """The features of new rows; holds no array of the size of n except the fitted rows."""

    def times(self, V: Array, out: Array | None = None) -> Array:
        """K V, float64, in `out` if that is given."""

    def gathered(self, B: Array) -> Array:
        """The matrix that maps `features` to k(x, fitted rows) @ B; it may be B itself."""

    def spread(self, sums: Array, out: Array | None = None) -> Array:
        """P^(1/2) features(fitted rows) @ sums, in `out` if that is given."""


def _filled(
    function: Callable[[slice], Array],
    tiles: list[slice],
    shape: tuple[int, ...],
    out: Array | None,
    n_threads: int,
) -> Array:
    """`function` of each tile, in one array; `out` saves the page faults of a new large array."""
    found = np.empty(shape) if out is None else out

    def fill(tile: slice) -> None:
        found[tile] = function(tile)

    run_all(fill, tiles, n_threads)
    return found


class DenseOperator:
    """The kernel matrix: O(n^2) memory, O(n^2 k) a product. `kernel` drops its precomputed matrix,
    of which this is a copy."""

    def __init__(self, kernel: FittedKernel, n_threads: int, weight: Array | None = None) -> None:
        self.roots = None if weight is None else np.sqrt(weight)
        self._n_threads, self.n, self.features = n_threads, kernel.n, Exact(kernel, self.roots)
        self._matrix = weighed(kernel.matrix(), weight)
        kernel.drop_matrix()
        self.n_features, self.trace = self.n, float(np.trace(self._matrix))

    def times(self, V: Array, out: Array | None = None) -> Array:
        return self.spread(V, out)

    def spread(self, sums: Array, out: Array | None = None) -> Array:
        tiles = row_tiles(self.n, self.n)
        shape = (self.n, *sums.shape[1:])
        return _filled(lambda t: self._matrix[t] @ sums, tiles, shape, out, self._n_threads)

    def gathered(self, B: Array) -> Array:
        return B


class FeatureOperator:
    """Inner products of explicit features: O(n F) memory, O(n F k) a product.

    Features are optionally centered at their mean and scaled to length one. They are stored in the
    dtype of x; sums are float64.
    """

    def __init__(
        self,
        x: Array,
        raw: Features,
        *,
        center: bool,
        normalize: bool,
        n_threads: int,
        weight: Array | None = None,
    ) -> None:
        self._n_threads, self.n = n_threads, len(x)
        self.roots = None if weight is None else np.sqrt(weight)
        self.n_features = width = raw(x[:1]).shape[1]
        self._tiles = row_tiles(self.n, width)
        mean = np.zeros(width)
        if center:
            sums = run_all(lambda t: _sum(raw(x[t]), weight, t), self._tiles, n_threads)
            mean = np.sum(sums, axis=0) / (self.n if weight is None else weight.sum())
        self.features = Finished(raw, mean, normalize)
        self.stored = np.empty((self.n, width), dtype=x.dtype)

        def fill(tile: slice) -> float:
            self.stored[tile] = self.features(x[tile])
            return float((self._tile(tile) ** 2).sum())

        self.trace = sum(run_all(fill, self._tiles, n_threads))

    def _tile(self, tile: slice) -> Array:
        stored = self.stored[tile].astype(np.float64, copy=False)
        return stored if self.roots is None else self.roots[tile, None] * stored

    def times(self, V: Array, out: Array | None = None) -> Array:
        return self.spread(self.gathered(V), out)

    def spread(self, sums: Array, out: Array | None = None) -> Array:
        shape = (self.n, *sums.shape[1:])
        return _filled(lambda t: self._tile(t) @ sums, self._tiles, shape, out, self._n_threads)

    def gathered(self, B: Array) -> Array:
        parts = run_all(lambda t: self._tile(t).T @ B[t], self._tiles, self._n_threads)
        return sum(parts[1:], parts[0])


def _sum(features: Array, weight: Array | None, rows: slice) -> Array:
    return np.asarray(features.sum(axis=0) if weight is None else weight[rows] @ features)


# ---- functions from rows to features, float64; they hold no array of the size of n -------------


@dataclass(frozen=True)
class Exact:
    """The values of a kernel between rows and the fitted ones, times the roots of their weights."""

    kernel: FittedKernel
    roots: Array | None = None

    def __call__(self, x: Array) -> Array:
        values = self.kernel.values(x)
        return values if self.roots is None else values * self.roots


@dataclass(frozen=True)
class Finished:
    """Features less their mean and, if `normalize`, scaled to length one; 0 stays 0."""

    raw: Features
    mean: Array
    normalize: bool

    def __call__(self, x: Array) -> Array:
        features = self.raw(x) - self.mean
        if self.normalize:
            features = normalize(features, copy=False)
        return features.astype(x.dtype).astype(np.float64)  # with the digits that are stored


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features."""

    mapping: RandomFourierFeatures

    def __call__(self, x: Columns) -> Array:
        x = x.astype(np.float64, copy=False)
        if isinstance(x, SparseRows):  # as the fit chose, whatever number of entries these have
            return unshifted(x, self.mapping._fourier.astype(x.dtype), 1)
        return self.mapping.transform(x)


@dataclass(frozen=True)
class Nystroem:
    """Z W^(-1/2), with Z the kernel between rows and anchors and W that among the anchors."""

    kernel: FittedKernel
    anchors: Array
    root: Array

    def __call__(self, x: Array) -> Array:
        return self.kernel.values(x[:, self.anchors] if self.kernel.precomputed else x) @ self.root


def fourier_features(
    x: Columns,
    spec: Specification,
    name: str,
    n_frequencies: Auto | int,
    weight: Array | None,
    random: Any,
    n_threads: int,
) -> Fourier:
    """Random Fourier features of a shift-invariant kernel."""
    if spec.metric not in ("rbf", "laplacian"):
        raise ValueError(f"{name} is {spec.metric!r}, 'rff' needs 'rbf' or 'laplacian'.")
    mapping = RandomFourierFeatures(
        n_frequencies,
        kernel=cast(Kernel, spec.metric),
        gamma=_gamma(x, spec, weight, random, 1),
        random_state=random.randint(2**31 - 1),
        n_jobs=1,
    )
    if not isinstance(x, SparseRows):
        return Fourier(mapping.fit(x, sample_weight=weight))
    mapping.fit(
        x.matrix, sample_weight=weight
    )  # whose frequencies are written out once, and not for each tile
    found = written_out(x.astype(np.float64, copy=False), mapping._fourier, n_threads)
    mapping._fourier = Frequencies(found.frequencies)
    return Fourier(mapping)


def nystroem_features(
    x: Array,
    spec: Specification,
    name: str,
    anchors: Array,
    weight: Array | None,
    random: Any,
    n_threads: int,
) -> Nystroem:
    """Features with the inner products Z W^+ Z'; eigenvalues of W that are rounding are left out.

    Z W^(-1/2) agrees with scikit-learn's `Nystroem` up to a rotation, but W may have any scale, a
    precomputed kernel is accepted, and an indefinite W is an error.
    """
    precomputed = spec.metric == PRECOMPUTED
    if precomputed:
        kernel = FittedKernel(np.ascontiguousarray(x[np.ix_(anchors, anchors)]), spec)
    else:
        params = {**spec.params, "gamma": _gamma(x, spec, weight, random, n_threads)}
        params = {key: value for key, value in params.items() if value is not None}
        kernel = FittedKernel(x[anchors], replace(spec, params=params))
    values, vectors = eigh(kernel.matrix())
    kernel.drop_matrix()
    if values[0] < -_ROUNDING * max(values[-1], 0):
        raise ValueError(
            f"{name} is not positive semidefinite: among the anchors it has the eigenvalues "
            f"{values[0]:.3g} and {values[-1]:.3g}."
        )
    eps = np.finfo(x.dtype if precomputed else np.float64).eps
    kept = values > len(values) * eps * values[-1]
    return Nystroem(kernel, anchors, vectors[:, kept] / np.sqrt(values[kept]))


def _gamma(x: Array, spec: Specification, weight: Array | None, random: Any, n_threads: int) -> Any:
    """For kernels of distances, the number, estimated from all rows if it is a name; for other
    kernels the given number, or None."""
    gamma: Any = spec.params.get("gamma", "mean")
    if spec.metric not in ("rbf", "laplacian"):
        return None if isinstance(gamma, str) else gamma
    if gamma is None:
        return 1 / x.shape[1]  # the default of scikit-learn's kernels
    return resolve_gamma(x, str(spec.metric), gamma, weight, random, n_threads)


def check_definite(
    operator: Operator, spec: Specification, name: str, k: int, shift: float
) -> None:
    """Raise an error if the k leading singular vectors of K + `shift` I, shift >= 0, do not belong
    to the k largest eigenvalues of the kernel K.

    They do if least + shift >= -(k-th largest + shift). The least eigenvalue is replaced by an
    upper bound, a Ritz value, so that no kernel is refused wrongly.
    """
    if positive_definite(spec) and not spec.rescale:
        return
    values = ritz_values(operator.times, operator.n)
    if not len(values) or values[0] >= -2 * shift - _ROUNDING * max(values[-1], 0):
        return
    kth = leading_eigenvectors(operator.times, k, operator.n)[0][-1]
    if values[0] + shift < -(kth + shift):
        raise ValueError(
            f"{name} is too far from positive semidefinite: it has an eigenvalue of "
            f"{values[0]:.3g}, n_clusters and lambda1 allow {-(kth + 2 * shift):.3g}."
        )


def operators(
    xs: list[Array],
    specs: list[Specification],
    names: list[str],
    approximation: str | None,
    *,
    n_frequencies: Auto | int,
    n_anchors: int,
    center: bool,
    normalize: bool,
    random: Any,
    n_threads: int,
    weight: Array | None = None,
) -> list[Operator]:
    """One for each view and its kernel: a matrix (None), "rff" or "nystroem" features.

    Precomputed kernels are neither centered nor normalised.
    """
    n = len(xs[0])
    anchors = np.arange(n)
    if approximation == "nystroem" and n_anchors < n:
        anchors = np.sort(random.choice(n, n_anchors, replace=False))
    found: list[Operator] = []
    for x, spec, name in zip(xs, specs, names):
        computed = spec.metric != PRECOMPUTED
        finish: dict[str, Any] = {
            "center": center and computed,
            "normalize": normalize and computed,
        }
        if approximation is None:
            kernel = FittedKernel(
                x, spec, weight=weight, random=random, n_threads=n_threads, **finish
            )
            found.append(DenseOperator(kernel, n_threads, weight))
            continue
        if approximation == "rff":
            raw: Features = fourier_features(
                x, spec, name, n_frequencies, weight, random, n_threads
            )
        else:
            raw = nystroem_features(x, spec, name, anchors, weight, random, n_threads)
        found.append(FeatureOperator(x, raw, n_threads=n_threads, weight=weight, **finish))
    return found

"""Kernels as operators: their products with a few columns, dense or through explicit features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.linalg import eigh
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from rffpk._data.arrays import Array
from rffpk._data.decompositions import leading_eigenvectors, procrustes, ritz_values
from rffpk._data.tiles import row_tiles, run_all
from rffpk.feature_maps import RandomFourierFeatures, resolve_gamma
from rffpk.kernels import (
    PRECOMPUTED,
    FittedKernel,
    Specification,
    positive_definite,
)

Features = Callable[[Array], Array]

_POLAR_ROWS = 8192  # a tile of so many rows and ten columns stays in a core's cache

_ROUNDING = 1e-6  # of the largest eigenvalue: what is negative by less is zero


def polar(V: Callable[[slice], Array], out: Array, n_threads: int) -> Array:
    """Set `out` (n, k) to the U with orthonormal columns that maximises Tr(U'V); P with U = VP.

    `V` gives slices of rows; no other array of the size of V is made. V = QR tile by tile; with
    the stacked R = MSN', U = Q MN' and P = N S^+ N'. O(n k^2), as stable as a decomposition of V.
    """
    tiles = list(gen_batches(len(out), _POLAR_ROWS))

    def triangle(tile: slice) -> Array:
        Q, R = np.linalg.qr(V(tile))  # NumPy's lets other threads run
        out[tile, : len(R)] = Q
        return R

    triangles = run_all(triangle, tiles, n_threads)
    R = np.vstack(triangles)
    small = procrustes(R)
    ends = np.cumsum([len(triangle) for triangle in triangles])

    def fill(number: int) -> None:
        size = len(triangles[number])
        U = out[tiles[number]]
        U[:] = U[:, :size] @ small[ends[number] - size : ends[number]]

    run_all(fill, list(range(len(tiles))), n_threads)
    return np.linalg.pinv(small.T @ R, hermitian=True)


class Operator(Protocol):
    """A kernel over n fitted rows: k(x, fitted rows) @ B is features(x) @ gathered(B)."""

    n: int
    trace: float

    @property
    def features(self) -> Features:
        """All that new rows need; holds no array of the size of n but the fitted rows."""

    def times(self, V: Array, out: Array | None = None) -> Array:
        """K V, float64, in `out` where that is given."""

    def gathered(self, B: Array) -> Array: ...


def _filled(
    function: Callable[[slice], Array],
    tiles: list[slice],
    like: Array,
    out: Array | None,
    n_threads: int,
) -> Array:
    """`function` of each tile, in one array; large arrays that are made anew cost page faults."""
    found = np.empty(like.shape) if out is None else out

    def fill(tile: slice) -> None:
        found[tile] = function(tile)

    run_all(fill, tiles, n_threads)
    return found


class DenseOperator:
    """The kernel matrix: O(n^2) memory, O(n^2 k) a product. A precomputed kernel, read once, lets
    its own go."""

    def __init__(self, kernel: FittedKernel, n_threads: int) -> None:
        self._n_threads, self.n, self.features = n_threads, kernel.n, kernel.values
        self._matrix = kernel.matrix()
        kernel.drop_matrix()
        self.trace = float(np.trace(self._matrix))

    def times(self, V: Array, out: Array | None = None) -> Array:
        tiles = row_tiles(self.n, self.n)
        return _filled(lambda t: self._matrix[t] @ V, tiles, V, out, self._n_threads)

    def gathered(self, B: Array) -> Array:
        return B


class FeatureOperator:
    """Inner products of explicit features: O(n F) memory, O(n F k) a product.

    Features are centered at their mean and scaled to length one as asked, and stored in the dtype
    of x; all that is summed is float64.
    """

    def __init__(
        self, x: Array, raw: Features, *, center: bool, normalize: bool, n_threads: int
    ) -> None:
        self._n_threads, self.n = n_threads, len(x)
        width = raw(x[:1]).shape[1]
        self._tiles = row_tiles(self.n, width)
        mean = np.zeros(width)
        if center:
            sums = run_all(lambda t: raw(x[t]).sum(axis=0), self._tiles, n_threads)
            mean = np.sum(sums, axis=0) / self.n
        self.features = Finished(raw, mean, normalize)
        self.stored = np.empty((self.n, width), dtype=x.dtype)

        def fill(tile: slice) -> float:
            self.stored[tile] = self.features(x[tile])
            return float((self._tile(tile) ** 2).sum())

        self.trace = sum(run_all(fill, self._tiles, n_threads))

    def _tile(self, tile: slice) -> Array:
        return self.stored[tile].astype(np.float64, copy=False)

    def times(self, V: Array, out: Array | None = None) -> Array:
        sums = self.gathered(V)
        return _filled(lambda t: self._tile(t) @ sums, self._tiles, V, out, self._n_threads)

    def gathered(self, B: Array) -> Array:
        return np.sum(
            run_all(lambda t: self._tile(t).T @ B[t], self._tiles, self._n_threads), axis=0
        )


# ---- features of rows, float64; they hold nothing of the size of n -----------------------------


@dataclass(frozen=True)
class Finished:
    """Features centered and, where asked, scaled to length one; 0 stays 0."""

    raw: Features
    mean: Array
    normalize: bool

    def __call__(self, x: Array) -> Array:
        found = self.raw(x) - self.mean
        if not self.normalize:
            return found
        return normalize(found, copy=False)


@dataclass(frozen=True)
class Fourier:
    """Random Fourier features."""

    mapping: RandomFourierFeatures

    def __call__(self, x: Array) -> Array:
        return self.mapping.transform(x.astype(np.float64, copy=False))


@dataclass(frozen=True)
class Nystroem:
    """Z W^(-1/2), with Z the kernel between rows and anchors and W that among the anchors."""

    kernel: FittedKernel
    anchors: Array
    root: Array

    def __call__(self, x: Array) -> Array:
        return self.kernel.values(x[:, self.anchors] if self.kernel.precomputed else x) @ self.root


def fourier_features(
    x: Array, spec: Specification, name: str, n_frequencies: int, random: Any
) -> Fourier:
    """Those of a shift-invariant kernel."""
    if spec.metric not in ("rbf", "laplacian"):
        raise ValueError(f"{name} is {spec.metric!r}, 'rff' needs 'rbf' or 'laplacian'.")
    mapping = RandomFourierFeatures(
        n_frequencies,
        kernel=str(spec.metric),
        gamma=_gamma(x, spec, random, 1),
        random_state=random.randint(2**31 - 1),
        n_jobs=1,
    )
    return Fourier(mapping.fit(x))


def nystroem_features(
    x: Array, spec: Specification, name: str, anchors: Array, random: Any, n_threads: int
) -> Nystroem:
    """Those whose inner products are Z W^+ Z'; eigenvalues of W that are rounding are left out.

    Z W^(-1/2) agrees with scikit-learn's `Nystroem` up to a rotation, but W may be of any scale, is
    precomputed where the kernel is, and is refused where it is not semi-definite.
    """
    precomputed = spec.metric == PRECOMPUTED
    if precomputed:
        kernel = FittedKernel(np.ascontiguousarray(x[np.ix_(anchors, anchors)]), spec)
    else:
        params = {**spec.params, "gamma": _gamma(x, spec, random, n_threads)}
        params = {key: value for key, value in params.items() if value is not None}
        kernel = FittedKernel(x[anchors], replace(spec, params=params))
    values, vectors = eigh(kernel.matrix())
    kernel.drop_matrix()
    if values[0] < -_ROUNDING * max(values[-1], 0):
        raise ValueError(
            f"{name} is not positive semi-definite: among the anchors it has an eigenvalue of "
            f"{values[0]:.3g} beside {values[-1]:.3g}."
        )
    eps = np.finfo(x.dtype if precomputed else np.float64).eps
    kept = values > len(values) * eps * values[-1]
    return Nystroem(kernel, anchors, vectors[:, kept] / np.sqrt(values[kept]))


def _gamma(x: Array, spec: Specification, random: Any, n_threads: int) -> Any:
    """A number from all rows, for the kernels of distances; else what was given, or None."""
    gamma: Any = spec.params.get("gamma", "mean")
    if spec.metric not in ("rbf", "laplacian"):
        return None if isinstance(gamma, str) else gamma
    if gamma is None:
        return 1 / x.shape[1]  # as scikit-learn's kernels have it
    return resolve_gamma(x, str(spec.metric), gamma, None, random, n_threads)


def check_definite(
    operator: Operator, spec: Specification, name: str, k: int, shift: float
) -> None:
    """Refuse a kernel K whose k leading singular vectors, after a multiple `shift` >= 0 of the
    identity is added, are not those of its largest eigenvalues.

    Those need least + shift >= -(k-th largest + shift). Numbers between the extreme eigenvalues
    stand for the least, so what is refused is refused rightly.
    """
    if positive_definite(spec) and not spec.rescale:
        return
    values = ritz_values(operator.times, operator.n)
    if not len(values) or values[0] >= -2 * shift - _ROUNDING * max(values[-1], 0):
        return
    kth = leading_eigenvectors(operator.times, k, operator.n)[0][-1]
    if values[0] + shift < -(kth + shift):
        raise ValueError(
            f"{name} is too far from positive semi-definite: it has an eigenvalue of "
            f"{values[0]:.3g}, n_clusters and lambda1 allow {-(kth + 2 * shift):.3g}."
        )


def operators(
    xs: list[Array],
    specs: list[Specification],
    names: list[str],
    approximation: str | None,
    *,
    n_frequencies: int,
    n_anchors: int,
    center: bool,
    normalize: bool,
    random: Any,
    n_threads: int,
) -> list[Operator]:
    """One for each view and its kernel: a matrix (None), "rff" or "nystroem" features.

    Precomputed kernels are neither centered nor normalised: their owner has made them.
    """
    n = len(xs[0])
    anchors = np.arange(n)
    if approximation == "nystroem" and n_anchors < n:
        anchors = np.sort(random.choice(n, n_anchors, replace=False))
    found: list[Operator] = []
    for x, spec, name in zip(xs, specs, names):
        own = spec.metric != PRECOMPUTED
        finish: dict[str, Any] = {"center": center and own, "normalize": normalize and own}
        if approximation is None:
            kernel = FittedKernel(x, spec, random=random, n_threads=n_threads, **finish)
            found.append(DenseOperator(kernel, n_threads))
            continue
        if approximation == "rff":
            raw: Features = fourier_features(x, spec, name, n_frequencies, random)
        else:
            raw = nystroem_features(x, spec, name, anchors, random, n_threads)
        found.append(FeatureOperator(x, raw, n_threads=n_threads, **finish))
    return found

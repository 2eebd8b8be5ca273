"""Kernels as operators: products with few columns, by a matrix or by explicit features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches

from rffpk.fusion.base import weighed
from rffpk.rows import checks
from rffpk.rows.arrays import Array, Fourier
from rffpk.rows.checks import Auto
from rffpk.rows.passes import unshifted
from rffpk.rows.store import written_out
from rffpk.rows.table import Columns
from rffpk.rows.weights import ones
from rffpk.spaces.fourier import FourierSpec, Kernel, resolve_gamma
from rffpk.spaces.kernels import PRECOMPUTED, FittedKernel, Specification
from rffpk.system.linalg import eigh, leading_eigenvectors, ritz_values, row_tiles, run_all, svd
from rffpk.system.tuning import TUNING

Features = Callable[[Columns], Array]


_ROUNDING = 1e-6  # negative eigenvalues up to this fraction of the largest count as zero
_RANK = 1e-9  # singular values below this fraction of the largest count as zero


def polar(V: Callable[[slice], Array], out: Array, n_threads: int) -> Array:
    """Write to `out` (n, k) the U = VP that maximizes Tr(U'V) over orthonormal columns; return P.

    `V` is a function of slices that returns rows of the matrix V, so that V is never stored. Each
    tile is decomposed as V = QR. With the stacked R = MSN', U = Q MN' and P = N S^+ N'. Singular
    vectors of the value zero are left out, so that U depends on V alone. The cost is O(n k^2), and
    the method is as stable as a decomposition of V."""
    tiles = list(gen_batches(len(out), TUNING.tiles.polar_rows))

    def triangle(tile: slice) -> Array:
        Q, R = np.linalg.qr(V(tile))  # NumPy's function releases the interpreter's lock
        out[tile, : len(R)] = Q
        return R

    triangles = run_all(triangle, tiles, n_threads)
    R = np.vstack(triangles)
    left, values, right = svd(R)
    rank = int((values > _RANK * values[0]).sum())
    rotations = left[:, :rank] @ right[:rank]  # MN', with a block of lines for each tile
    ends = np.cumsum([len(triangle) for triangle in triangles])

    def fill(number: int) -> None:
        size = len(triangles[number])
        U = out[tiles[number]]
        U[:] = U[:, :size] @ rotations[ends[number] - size : ends[number]]

    run_all(fill, list(range(len(tiles))), n_threads)
    return np.asarray((right[:rank].T / values[:rank]) @ right[:rank])


class Operator:
    """A kernel over n rows as inner products of F features, without the kernel matrix.

    With row weights P, the operator is P^(1/2) K P^(1/2). It takes O(n F) memory, and O(n F k) time
    for a product with k columns."""

    def __init__(self, features: Features, stored: Array, n_threads: int, weight: Array) -> None:
        self.features, self._stored, self._n_threads = features, stored, n_threads
        self.n, self.n_features = stored.shape
        self.roots = np.sqrt(weight)
        self._tiles = row_tiles(*stored.shape)

    def times(self, V: Array) -> Array:
        """Return the product P^(1/2) K P^(1/2) V, in float64."""
        return self.values(self.coefficients(V))

    def coefficients(self, B: Array) -> Array:
        """Return C with features(x) @ C = k(x, fitted rows) P^(1/2) @ B, for any row x.

        The result may be B itself."""

        def product(tile: slice) -> Array:
            features = self._stored[tile].astype(np.float64, copy=False)
            return features.T @ (self.roots[tile] * B[tile].T).T

        parts = run_all(product, self._tiles, self._n_threads)
        return sum(parts[1:], parts[0])

    def values(self, coefficients: Array) -> Array:
        """Return P^(1/2) features(fitted rows) @ coefficients, (n, k)."""

        def values(tile: slice) -> Array:
            features = self._stored[tile].astype(np.float64, copy=False)
            return (self.roots[tile] * (features @ coefficients).T).T

        return np.concatenate(run_all(values, self._tiles, self._n_threads))


class DenseOperator(Operator):
    """A kernel as its matrix. The features of a row are its kernel values with the fitted rows."""

    def __init__(self, kernel: FittedKernel, n_threads: int, weight: Array) -> None:
        matrix = weighed(kernel.matrix(), weight)
        kernel.drop_matrix()
        super().__init__(Exact(kernel, np.sqrt(weight)), matrix, n_threads, ones(len(weight)))

    def coefficients(self, B: Array) -> Array:
        """Return B itself, since features are kernel values."""
        return B


# ---- functions from rows to features, float64; they hold no array of the size of n -------------


@dataclass(frozen=True)
class Exact:
    """A function that returns kernel values with the fitted rows, times roots of their weights."""

    kernel: FittedKernel
    roots: Array

    def __call__(self, x: Array) -> Array:
        values = self.kernel.values(x)
        values *= self.roots
        return values


@dataclass(frozen=True)
class Finished:
    """A function that subtracts the mean of features, and normalizes them if `normalize` is set."""

    raw: Features
    mean: Array
    normalize: bool

    def __call__(self, x: Array) -> Array:
        features = self.raw(x) - self.mean
        if self.normalize:
            features = normalize(features, copy=False)
        return features.astype(x.dtype).astype(np.float64)  # rounded as stored features are


@dataclass(frozen=True)
class FourierFeatures:
    """Random Fourier features."""

    mapping: Fourier

    def __call__(self, x: Columns) -> Array:
        features = unshifted(x.astype(np.float64, copy=False), self.mapping, 1)
        checks.check_overflow(float(features.sum()), features.dtype)
        return features


@dataclass(frozen=True)
class Nystroem:
    """Z W^(-1/2), with Z the kernel between rows and anchors, and W the kernel among anchors."""

    kernel: FittedKernel
    anchors: Array
    root: Array

    def __call__(self, x: Array) -> Array:
        return self.kernel.values(x[:, self.anchors] if self.kernel.precomputed else x) @ self.root


# ---- kernels as operators ------------------------------------------------------------------------


@dataclass(frozen=True)
class Approximation:
    """How kernels become operators: by matrices (None), "rff" frequencies or "nystroem" anchors."""

    word: str | None
    size: Auto | int  # number of frequencies or anchors
    standardize: bool
    random: Any
    n_threads: int
    weight: Array  # weights of the rows

    def operators(
        self, xs: list[Columns], specs: list[Specification], names: list[str]
    ) -> list[Operator]:
        """Return one operator for each view and its kernel: a matrix or approximate features.

        `names` name the views in errors."""
        n = len(xs[0])
        anchors = np.arange(n)  # all rows, unless there are more than `size`
        if self.word == "nystroem" and (m := int(self.size)) < n:
            anchors = np.sort(self.random.choice(n, m, replace=False))
        operators: list[Operator] = []
        for x, spec, name in zip(xs, specs, names):
            if self.word is None:
                kernel = FittedKernel(
                    x, spec, weight=self.weight, random=self.random, n_threads=self.n_threads,
                    center=self.standardize, normalize=self.standardize,
                )  # fmt: skip
                operators.append(DenseOperator(kernel, self.n_threads, self.weight))
                continue
            spec = with_gamma(spec, x, self.weight, self.random, self.n_threads)
            features: Features
            if self.word == "rff":
                features = self._fourier(x, spec, name)
            else:
                features = nystroem_features(x, spec, name, anchors)
            operators.append(self._of_features(x, spec, features))
        return operators

    def _fourier(self, x: Columns, spec: Specification, name: str) -> FourierFeatures:
        """Draw random Fourier features; raise a ValueError if the kernel is not shift-invariant."""
        if spec.metric not in ("rbf", "laplacian"):
            raise ValueError(f"{name} is {spec.metric!r}, but 'rff' needs 'rbf' or 'laplacian'.")
        gamma = spec.params["gamma"]
        gamma = 1 / x.shape[1] if gamma is None else gamma  # scikit-learn's default
        random = np.random.RandomState(self.random.randint(2**31 - 1))
        drawn = FourierSpec(self.size, cast(Kernel, spec.metric), gamma)
        space = drawn.draw(x, self.weight, random, 1)
        # Write frequencies out once, not for each tile. So new rows get features of equal bits,
        # whatever their number of entries.
        found = written_out(x.astype(np.float64, copy=False), space.fourier, self.n_threads)
        return FourierFeatures(Fourier(found.frequencies).astype(np.float64))

    def _of_features(self, x: Columns, spec: Specification, raw: Features) -> Operator:
        """Compute the features of all rows with the function `raw`, and return their operator.

        If `standardize` is set and the kernel is not precomputed, features are centered and scaled
        to length one. They are stored in the dtype of x."""
        weight, width = self.weight, raw(x[:1]).shape[1]
        tiles = row_tiles(len(x), width)

        def fill(tile: slice) -> None:  # is called when `features` and `stored` are set
            stored[tile] = features(x[tile])

        mean = np.zeros(width)
        standardize = self.standardize and spec.metric != PRECOMPUTED
        if standardize:
            sums = run_all(
                lambda tile: (weight[tile, None] * raw(x[tile])).sum(axis=0), tiles, self.n_threads
            )
            mean = np.sum(sums, axis=0) / weight.sum()
        features = Finished(raw, mean, standardize)
        stored = np.empty((len(x), width), dtype=x.dtype)
        run_all(fill, tiles, self.n_threads)
        return Operator(features, stored, self.n_threads, weight)


def nystroem_features(
    x: Columns, spec: Specification, name: str, anchors: NDArray[np.intp]
) -> Nystroem:
    """Return Nystroem features of a kernel, whose inner products are Z W^+ Z'.

    W is the kernel among the anchors, and Z the kernel between rows and anchors. Eigenvectors of W
    whose eigenvalue is only rounding are dropped. Up to a rotation, the features agree with
    scikit-learn's `Nystroem`. Here W may have any scale, precomputed kernels are accepted, and an
    indefinite W raises a ValueError."""
    precomputed = spec.metric == PRECOMPUTED
    among = np.ascontiguousarray(x[np.ix_(anchors, anchors)]) if precomputed else x[anchors]
    kernel = FittedKernel(among, spec, weight=ones(len(anchors)))
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


def with_gamma(
    spec: Specification, x: Columns, weight: Array, random: Any, n_threads: int
) -> Specification:
    """Return the specification with gamma as a number, estimated from all rows if it is a word.

    Kernels except "rbf" and "laplacian" keep their gamma."""
    gamma: Any = spec.params.get("gamma", "mean")
    if spec.metric in ("rbf", "laplacian") and isinstance(gamma, str):
        gamma = resolve_gamma(x, str(spec.metric), gamma, weight, random, n_threads)
        return replace(spec, params={**spec.params, "gamma": gamma})
    return spec


def check_definite(
    operator: Operator, spec: Specification, name: str, k: int, shift: float
) -> None:
    """Raise a ValueError if a kernel is so indefinite that singular vectors mislead.

    The k leading singular vectors of K + `shift` I must belong to its largest eigenvalues. They do
    if least + shift >= -(k-th largest + shift). The least eigenvalue is replaced by an upper bound,
    a Ritz value, so that no kernel is refused wrongly."""
    if spec.is_definite() and not spec.rescale:  # `rescale` subtracts a constant
        return
    values = ritz_values(operator.times, operator.n)
    # this suffices if the k-th largest eigenvalue is not negative
    if not len(values) or values[0] >= -2 * shift - _ROUNDING * max(values[-1], 0):
        return
    kth = leading_eigenvectors(operator.times, k, operator.n)[0][-1]
    if values[0] + shift < -(kth + shift):
        raise ValueError(
            f"{name} is too far from positive semidefinite: it has an eigenvalue of "
            f"{values[0]:.3g}, must be >= {-(kth + 2 * shift):.3g} for n_clusters and lambda1."
        )

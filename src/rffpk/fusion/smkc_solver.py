"""SMKC in an orthonormal basis of the columns of B = [G_1 ... G_V].

Iterations run on the coordinates of B in this basis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

from rffpk.fusion.spectral import Iteration
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.spaces.kernels import FittedKernel
from rffpk.system.linalg import basis_of, leading_eigenvectors, pivoted_cholesky
from rffpk.system.tiles import by_blocks, row_tiles, run_all
from rffpk.system.tuning import TUNING


@dataclass(frozen=True)
class AnchorKernels:
    """B = [G_1 ... G_V], stored whole if it has no more rows than columns, else computed in tiles,
    by the shapes alone, so that results have the same bits for any number of threads."""

    xs: list[Array]
    kernels: list[FittedKernel]
    s: int
    n_threads: int
    roots: Array  # of the weights of the rows, which scale B in its coordinates

    @property
    def width(self) -> int:
        return len(self.kernels) * self.s

    def _filled(self, xs: list[Array], out: Array) -> Array:
        for v, (x, kernel) in enumerate(zip(xs, self.kernels)):
            out[:, v * self.s : (v + 1) * self.s] = kernel.values(x)
        return out

    def _weighed(self, B: Array, rows: slice = slice(None)) -> Array:
        """Scale rows of B to rows of P^(1/2) B, in place, for the diagonal matrix P of weights."""
        B *= self.roots[rows, None]
        return B

    def _by_blocks(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of the rows of B, block by block."""

        def of_block(xs: list[Array]) -> Array:
            return function(self._filled(xs, np.empty((len(xs[0]), self.width))))

        return by_blocks(of_block, self.xs, self.width, self.n_threads)

    def times(self, C: Array) -> Array:
        """Return B C."""
        return self._by_blocks(lambda B: B @ C)

    def coordinates(self) -> Array:
        """Return P^(1/2) B in an orthonormal basis of its columns, (r, V s).

        It is the matrix itself if it has at most V s rows, else R of its numerical rank with R'R
        = B'P B."""
        if len(self.xs[0]) > self.width:
            return factor(self.gram())
        B = self._weighed(self._by_blocks(lambda B: B))
        checks.check_finite_kernel(B)
        return B

    def gram(self) -> Array:
        """Return B'P B, tile after tile.

        Threads fill the rows of a tile and then add to the blocks of B'P B."""
        M = np.zeros((self.width, self.width))
        columns = list(gen_batches(self.width, TUNING.tiles.smkc_columns))
        upper = [(a, b) for i, a in enumerate(columns) for b in columns[i:]]
        tiles = row_tiles(len(self.xs[0]), self.width, TUNING.tiles.smkc_numbers)
        store = np.empty((tiles[0].stop, self.width))
        for tile in tiles:
            B = store[: tile.stop - tile.start]

            def fill(rows: slice, B: Array = B, first: int = tile.start) -> None:
                here = slice(first + rows.start, first + rows.stop)
                self._weighed(self._filled([x[here] for x in self.xs], B[rows]), here)

            def add(pair: tuple[slice, slice], B: Array = B) -> None:
                M[pair] += B[:, pair[0]].T @ B[:, pair[1]]

            chunks = row_tiles(len(B), self.width, TUNING.tiles.smkc_chunk_numbers)
            run_all(fill, chunks, self.n_threads)
            run_all(add, upper, self.n_threads)
        for a, b in upper:
            M[b, a] = M[a, b].T
        checks.check_finite_kernel(M)
        return M


# ---- the iterations, on the coordinates of B ----------------------------------------------------


def factor(M: Array) -> Array:
    """Return R (r, len(M)) with R'R = M, where r is the numerical rank of M.

    The Cholesky decomposition with pivots ends where the rest is rounding."""
    triangle, pivots = pivoted_cholesky(M, np.finfo(np.float64).eps * M.diagonal().max())
    R = np.empty(triangle.shape)
    for i, line in enumerate(triangle):
        R[i, pivots[:i]] = 0
        R[i, pivots[i:]] = line[i:]
    return R


@dataclass(frozen=True)
class Product:
    """P R' of rank k, with orthogonal columns of P and orthonormal ones of R."""

    left: Array  # P (r, k)
    right: Array  # R (s, k)
    squares: Array  # (k,): squared singular values, falling

    @property
    def ratio(self) -> float:
        """sigma_1 / sigma_k, or the last singular value that is resolved."""
        largest, least = self.squares[0], self.squares[self.resolved].min(initial=np.inf)
        return float(np.sqrt(largest / least)) if largest > 0 else 1.0

    @property
    def resolved(self) -> Array:
        """A mask (k,) of the singular values whose squares are more than rounding errors."""
        most = np.finfo(np.float64).eps * max(len(self.left), len(self.right)) * self.squares[0]
        return np.asarray(self.squares > most)


@dataclass(frozen=True, kw_only=True)
class AnchorIteration(Iteration):
    """An iteration of SMKC; the `change` is ||G - previous G|| / ||G||."""

    fused: Product
    coefficients: Array  # L (V s, k): G = B L R'
    ratio: float  # the largest sigma_1 / sigma_k of G and all H_v


def iterations(B: Array, V: int, k: int, n_threads: int) -> Iterator[AnchorIteration]:
    """Yield the endless iterations of SMKC, from B or its coordinates (r, V s).

    Liang et al., ICML 2024, algorithm 1. O(V r s k + V^2 (r + s) k^2) each."""
    views = [View(G, _gram(G, n_threads)) for G in np.split(B, V, axis=1)]
    parts = run_all(lambda view: view.initial_part(k), views, n_threads)
    alpha = np.full(V, 1 / V)  # no weights are learned
    before, L = None, np.zeros((B.shape[1], k))
    while True:
        G, coefficients = _fused(parts, k)
        L = _combined(parts, coefficients, before, L)

        def part(pair: tuple[View, Product], G: Product = G) -> tuple[Product, float]:
            return pair[0].part(G, pair[1])

        found = run_all(part, list(zip(views, parts)), n_threads)
        parts, objective = [H for H, _ in found], sum(cost for _, cost in found)
        change = np.inf if before is None else _relative_change(G, before)
        ratio = max(product.ratio for product in (G, *parts))
        yield AnchorIteration(alpha, objective, change=change, fused=G, coefficients=L, ratio=ratio)
        before = G


def _gram(G: Array, n_threads: int) -> Array:
    """Return G'G, (s, s), in tiles of its rows where it is large."""
    tiles = row_tiles(G.shape[1], len(G), TUNING.tiles.smkc_gram_numbers)
    return np.vstack(run_all(lambda tile: G[:, tile].T @ G, tiles, n_threads))


@dataclass(frozen=True)
class View:
    """G_v, and the rank-k parts of matrices near it."""

    G: Array  # (r, s)
    gram: Array  # G_v'G_v

    def initial_part(self, k: int) -> Product:
        """Return the rank-k part of G_v."""
        squares, Q = leading_eigenvectors(self.gram, k, len(self.gram))
        return Product(self.G @ Q, Q, np.maximum(squares, 0))

    def part(self, G: Product, last: Product) -> tuple[Product, float]:
        """Return H_v, the rank-k part of (G_v + G) / 2, and its part of the objective.

        The part is ||H_v - G_v||^2 + ||H_v - G||^2; `last` is the H_v before."""
        R, across = G.right, self.G.T @ G.left
        T = across + R * (G.squares / 2)

        def four_squares(x: Array) -> Array:
            """Multiply (G_v + G)'(G_v + G) with x."""
            return self.gram @ x + T @ (R.T @ x) + R @ (T.T @ x)

        k, s = len(G.squares), len(R)
        values, Q = leading_eigenvectors(four_squares, k, s, last.right.sum(axis=1))
        squares = np.maximum(values, 0) / 4
        H = Product((self.G @ Q + G.left @ (R.T @ Q)) / 2, Q, squares)
        inner, norms = np.einsum("ij,ij->", across, R), self.gram.trace() + G.squares.sum()
        # ||H_v - G_v||^2 + ||H_v - G||^2 = 2 ||H_v - (G_v + G) / 2||^2 + ||G_v - G||^2 / 2
        lost, apart = (norms + 2 * inner) / 4 - squares.sum(), norms - 2 * inner
        return H, float(2 * max(lost, 0.0) + max(apart, 0.0) / 2)  # squares, but for rounding


def _fused(parts: Sequence[Product], k: int) -> tuple[Product, Array]:
    """Return G, the rank-k part of the mean of all H_v, and coefficients of its left factor.

    The mean is [P_1 ... P_V] [R_1 ... R_V]' / V. The coefficients (V k, k) are in [P_1 ... P_V]
    / V."""
    left = np.hstack([part.left for part in parts]) / len(parts)
    Q, triangle = basis_of(np.hstack([part.right for part in parts]))
    squares, Y = leading_eigenvectors(triangle @ (left.T @ left) @ triangle.T, k, len(triangle))
    coefficients = triangle.T @ Y
    return Product(left @ coefficients, Q @ Y, np.maximum(squares, 0)), coefficients


def _combined(
    parts: Sequence[Product], coefficients: Array, before: Product | None, L: Array
) -> Array:
    """Return L of G = B L R', from the L of the G before.

    H_v = (G_v + G) Q_v Q_v' / 2, at first without G."""
    V = len(parts)
    each = [part.right @ c for part, c in zip(parts, np.split(coefficients, V))]
    own = np.vstack(each) / V
    if before is None:
        return own
    return (own + L @ (before.right.T @ sum(each) / V)) / 2


def _relative_change(new: Product, old: Product) -> float:
    """Return ||G - G_old|| / ||G|| from differences, with errors of eps.

    From squares and an inner product errors would be of the root of eps. With R_old = R M' + E,
    where R'E = 0, the square of the numerator is ||P - P_old M||^2 + ||P_old E'||^2."""
    M = old.right.T @ new.right
    within = new.left - old.left @ M
    beyond = old.right - new.right @ M.T
    squares = np.sum(within**2) + np.sum(beyond**2 @ old.squares)
    total = new.squares.sum()
    return float(np.sqrt(squares / total)) if total > 0 else 0.0

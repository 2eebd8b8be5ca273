"""SMKC without the whole of B = [G_1 ... G_V]: the tiles of the anchor kernels, and rank-k parts of
matrices B C from the cross-products of B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from sklearn.utils import gen_batches

from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.decompositions import leading_eigenvectors
from rffpk._data.tiles import by_blocks, row_tiles, run_all
from rffpk.kernels import FittedKernel

_TILE_NUMBERS = 1 << 23  # in a tile of B: 64 MB, so that B'B is read and written few times
_CHUNK_NUMBERS = 1 << 18  # in the part of a tile that one call fills: about a core's cache
_COLUMNS = 512  # of the block of B'B that one call adds to


@dataclass(frozen=True)
class AnchorKernels:
    """B = [G_1 ... G_V], of which only tiles are computed. The tiles depend on the shapes alone, so
    that results have the same bits for any number of threads."""

    xs: list[Array]
    kernels: list[FittedKernel]
    s: int
    n_threads: int

    @property
    def width(self) -> int:
        return len(self.kernels) * self.s

    def _filled(self, xs: list[Array], out: Array) -> Array:
        for v, (x, kernel) in enumerate(zip(xs, self.kernels)):
            out[:, v * self.s : (v + 1) * self.s] = kernel.values(x)
        return out

    def times(self, C: Array) -> Array:
        """B C."""

        def product(xs: list[Array]) -> Array:
            return self._filled(xs, np.empty((len(xs[0]), self.width))) @ C

        return by_blocks(product, self.xs, self.width, self.n_threads)

    def gram(self) -> Array:
        """B'B, tile after tile; threads fill the rows of a tile and then add to the blocks of
        B'B."""
        M = np.zeros((self.width, self.width))
        columns = list(gen_batches(self.width, _COLUMNS))
        upper = [(a, b) for i, a in enumerate(columns) for b in columns[i:]]
        tiles = row_tiles(len(self.xs[0]), self.width, _TILE_NUMBERS)
        store = np.empty((tiles[0].stop, self.width))
        for tile in tiles:
            B = store[: tile.stop - tile.start]

            def fill(rows: slice, B: Array = B, first: int = tile.start) -> None:
                here = slice(first + rows.start, first + rows.stop)
                self._filled([x[here] for x in self.xs], B[rows])

            def add(pair: tuple[slice, slice], B: Array = B) -> None:
                M[pair] += B[:, pair[0]].T @ B[:, pair[1]]

            run_all(fill, row_tiles(len(B), self.width, _CHUNK_NUMBERS), self.n_threads)
            run_all(add, upper, self.n_threads)
        for a, b in upper:
            M[b, a] = M[a, b].T
        validation.check_finite_kernel(M)
        return M


# ---- the iterations, on matrices of V s rows ----------------------------------------------------


@dataclass(frozen=True)
class Product:
    """B L R' of rank k, with orthogonal columns of B L and orthonormal ones of R."""

    left: Array  # L (V s, k)
    right: Array  # R (s, k)
    image: Array  # B'B L (V s, k)
    squares: Array  # (k,): squared singular values, falling
    lost: float = 0.0  # squared norm of the truncated part

    @property
    def ratio(self) -> float:
        """sigma_1 / sigma_k, or the last singular value that is resolved."""
        largest, least = self.squares[0], self.squares[self.resolved].min(initial=np.inf)
        return float(np.sqrt(largest / least)) if largest > 0 else 1.0

    @property
    def resolved(self) -> Array:
        """A mask (k,) of the singular values whose squares are more than rounding errors."""
        most = np.finfo(np.float64).eps * len(self.left) * self.squares[0]
        return np.asarray(self.squares > most)


@dataclass(frozen=True)
class Iteration:
    """The result of an iteration of SMKC, which updates G and then all H_v."""

    fused: Product
    objective: float  # sum_v ||H_v - G_v||^2 + ||H_v - G||^2
    change: float  # ||G - previous G|| / ||G||
    ratio: float  # the largest sigma_1 / sigma_k of G and all H_v


def iterations(M: Array, V: int, k: int, n_threads: int) -> Iterator[Iteration]:
    """The endless iterations of SMKC, from M = B'B: Liang et al., ICML 2024, algorithm 1.
    O(V^2 s^2 k) each, and some tens of products of Lanczos' method with V matrices (s, s)."""
    s = len(M) // V
    blocks = [slice(v * s, (v + 1) * s) for v in range(V)]
    parts = run_all(lambda block: _initial_part(M, block, k), blocks, n_threads)
    before = None
    while True:
        G = _fused(parts, k)

        def part(pair: tuple[slice, Product], G: Product = G) -> Product:
            block, last = pair
            return _part(M, block, k, G, last.right.sum(axis=1))

        parts = run_all(part, list(zip(blocks, parts)), n_threads)
        objective = sum(_cost(M, block, G, H) for block, H in zip(blocks, parts))
        change = np.inf if before is None else _relative_change(G, before)
        yield Iteration(G, objective, change, max(product.ratio for product in (G, *parts)))
        before = G


def _initial_part(M: Array, block: slice, k: int) -> Product:
    """The rank-k part of G_v, whose columns in B are `block`."""
    squares, Q = _squares(M[block, block], k)
    left = np.zeros((len(M), k))
    left[block] = Q
    return Product(left, Q, M[:, block] @ Q, squares)


def _part(M: Array, block: slice, k: int, G: Product, start: Array) -> Product:
    """H_v, the rank-k part of (G_v + G) / 2 = B (E_v + L R') / 2, E_v a block of the identity."""
    cross = (G.image[block] + G.right * (G.squares / 2)) @ G.right.T
    gram = (M[block, block] + cross + cross.T) / 4
    squares, Q = _squares(gram, k, start)
    inner = G.right.T @ Q
    left, image = G.left @ inner, G.image @ inner + M[:, block] @ Q
    left[block] += Q
    return Product(left / 2, Q, image / 2, squares, float(np.trace(gram) - squares.sum()))


def _fused(parts: list[Product], k: int) -> Product:
    """G, the rank-k part of the mean of all H_v: B [L_1 ... L_V] [R_1 ... R_V]' / V."""
    left = np.hstack([part.left for part in parts]) / len(parts)
    image = np.hstack([part.image for part in parts]) / len(parts)
    Q, triangle = qr(np.hstack([part.right for part in parts]), mode="economic")
    squares, Y = _squares(triangle @ (left.T @ image) @ triangle.T, k)
    coefficients = triangle.T @ Y
    return Product(left @ coefficients, Q @ Y, image @ coefficients, squares)


def _squares(gram: Array, k: int, start: Array | None = None) -> tuple[Array, Array]:
    """The k largest squared singular values of a matrix, and its right singular vectors, from the
    cross-products of its columns."""
    values, vectors = leading_eigenvectors(gram, k, len(gram), start)
    return np.maximum(values, 0), vectors


def _cost(M: Array, block: slice, G: Product, H: Product) -> float:
    """||H_v - G_v||^2 + ||H_v - G||^2 = 2 ||H_v - (G_v + G) / 2||^2 + ||G_v - G||^2 / 2."""
    inner = np.einsum("ij,ij->", G.image[block], G.right)
    difference = np.trace(M[block, block]) - 2 * inner + G.squares.sum()
    return 2 * max(H.lost, 0.0) + max(float(difference), 0.0) / 2  # squares, but for rounding


def _relative_change(new: Product, old: Product) -> float:
    inner = np.einsum("ij,ij->", old.left.T @ new.image, old.right.T @ new.right)
    total = new.squares.sum()
    difference = max(total + old.squares.sum() - 2 * inner, 0)
    return float(np.sqrt(difference / total)) if total > 0 else 0.0

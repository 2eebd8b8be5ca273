"""Fusion of anchor kernels B = [G_1 ... G_V] that never holds B: its tiles, and rank-k parts of
matrices B C, from the cross-products of B."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from sklearn.utils import gen_batches

from rffpk._data.arrays import Array
from rffpk._data.decompositions import leading_eigenvectors
from rffpk._data.tiles import row_tiles, run_all
from rffpk.kernels import FittedKernel

_TILE_NUMBERS = 1 << 23  # of a tile of B: 64 MB, so that the sums are not moved too often
_CHUNK_NUMBERS = 1 << 18  # of the part of it that one call fills: near a core's cache
_COLUMNS = 512  # of a block of B'B that one call adds to


@dataclass(frozen=True)
class AnchorKernels:
    """B = [G_1 ... G_V], of which only tiles exist. These are fixed by shapes, and so are the
    bits."""

    xs: list[Array]
    kernels: list[FittedKernel]
    s: int
    n_threads: int

    @property
    def width(self) -> int:
        return len(self.kernels) * self.s

    def _filled(self, rows: slice, out: Array) -> Array:
        for v, (x, kernel) in enumerate(zip(self.xs, self.kernels)):
            out[:, v * self.s : (v + 1) * self.s] = kernel.cross(x[rows])[0]
        return out

    def times(self, C: Array) -> Array:
        """B C."""

        def product(rows: slice) -> Array:
            return self._filled(rows, np.empty((rows.stop - rows.start, self.width))) @ C

        chunks = row_tiles(len(self.xs[0]), self.width, _CHUNK_NUMBERS)
        return np.concatenate(run_all(product, chunks, self.n_threads))

    def gram(self) -> Array:
        """B'B: tile after tile, in each the rows and then the blocks of the sum by threads."""
        M = np.zeros((self.width, self.width))
        columns = list(gen_batches(self.width, _COLUMNS))
        upper = [(a, b) for i, a in enumerate(columns) for b in columns[i:]]
        tiles = row_tiles(len(self.xs[0]), self.width, _TILE_NUMBERS)
        store = np.empty((tiles[0].stop, self.width))
        for tile in tiles:
            B = store[: tile.stop - tile.start]

            def fill(rows: slice, B: Array = B, first: int = tile.start) -> None:
                self._filled(slice(first + rows.start, first + rows.stop), B[rows])

            def add(pair: tuple[slice, slice], B: Array = B) -> None:
                M[pair] += B[:, pair[0]].T @ B[:, pair[1]]

            run_all(fill, row_tiles(len(B), self.width, _CHUNK_NUMBERS), self.n_threads)
            run_all(add, upper, self.n_threads)
        for a, b in upper:
            M[b, a] = M[a, b].T
        return M


# ---- the iterations, on matrices of V s rows ----------------------------------------------------


@dataclass(frozen=True)
class Product:
    """B L R' of rank k, with orthogonal columns of B L and orthonormal ones of R."""

    left: Array  # L (V s, k)
    right: Array  # R (s, k)
    image: Array  # B'B L (V s, k)
    squares: Array  # (k,): squared singular values, falling
    lost: float = 0.0  # squared norm of what the truncation left out

    @property
    def ratio(self) -> float:
        """sigma_1 / sigma_k."""
        least = max(self.squares[-1], np.finfo(np.float64).tiny)
        return float(np.sqrt(self.squares[0]) / np.sqrt(least)) if self.squares[0] > 0 else 1.0


@dataclass(frozen=True)
class Step:
    """An iteration of SMKC: G, then all H_v."""

    fused: Product
    objective: float  # sum_v ||H_v - G_v||^2 + ||H_v - G||^2
    change: float  # ||G - previous G|| / ||G||
    ratio: float  # the largest sigma_1 / sigma_k of G and all H_v


def steps(M: Array, V: int, k: int, n_threads: int) -> Iterator[Step]:
    """The iterations of SMKC, from M = B'B: Liang et al., ICML 2024, algorithm 1; without end.
    O(V^2 s^2 k) each, and some tens of products of Lanczos' method with V matrices (s, s)."""
    s = len(M) // V
    blocks = [slice(v * s, (v + 1) * s) for v in range(V)]
    parts = run_all(lambda own: _initial_part(M, own, k), blocks, n_threads)
    before = None
    while True:
        G = _fused(parts, k)

        def part(block: tuple[slice, Product], G: Product = G) -> Product:
            own, last = block
            return _part(M, own, k, G, last.right.sum(axis=1))

        parts = run_all(part, list(zip(blocks, parts)), n_threads)
        objective = sum(_cost(M, own, G, H) for own, H in zip(blocks, parts))
        change = np.inf if before is None else _relative_change(G, before)
        yield Step(G, objective, change, max(found.ratio for found in (G, *parts)))
        before = G


def _initial_part(M: Array, own: slice, k: int) -> Product:
    """The rank-k part of G_v, whose columns are `own` in B."""
    squares, Q = _squares(M[own, own], k)
    left = np.zeros((len(M), k))
    left[own] = Q
    return Product(left, Q, M[:, own] @ Q, squares)


def _part(M: Array, own: slice, k: int, G: Product, start: Array) -> Product:
    """H_v, the rank-k part of (G_v + G) / 2 = B (E_v + L R') / 2, E_v a block of the identity."""
    cross = (G.image[own] + G.right * (G.squares / 2)) @ G.right.T
    gram = (M[own, own] + cross + cross.T) / 4
    squares, Q = _squares(gram, k, start)
    inner = G.right.T @ Q
    left, image = G.left @ inner, G.image @ inner + M[:, own] @ Q
    left[own] += Q
    return Product(left / 2, Q, image / 2, squares, float(np.trace(gram) - squares.sum()))


def _fused(parts: list[Product], k: int) -> Product:
    """G, the rank-k part of the mean of all H_v: B [L_1 ... L_V] [R_1 ... R_V]' / V."""
    left = np.hstack([part.left for part in parts]) / len(parts)
    image = np.hstack([part.image for part in parts]) / len(parts)
    Q, triangle = qr(np.hstack([part.right for part in parts]), mode="economic")
    squares, Y = _squares(triangle @ (left.T @ image) @ triangle.T, k)
    turn = triangle.T @ Y
    return Product(left @ turn, Q @ Y, image @ turn, squares)


def _squares(gram: Array, k: int, start: Array | None = None) -> tuple[Array, Array]:
    """Squared singular values, and right singular vectors, from cross-products of columns."""
    values, vectors = leading_eigenvectors(gram, k, len(gram), start)
    return np.maximum(values, 0), vectors


def _cost(M: Array, own: slice, G: Product, H: Product) -> float:
    """||H_v - G_v||^2 + ||H_v - G||^2 = 2 ||H_v - (G_v + G) / 2||^2 + ||G_v - G||^2 / 2."""
    inner = np.einsum("ij,ij->", G.image[own], G.right)
    apart = np.trace(M[own, own]) - 2 * inner + G.squares.sum()
    return float(2 * H.lost + apart / 2)


def _relative_change(new: Product, old: Product) -> float:
    inner = np.einsum("ij,ij->", old.left.T @ new.image, old.right.T @ new.right)
    total = new.squares.sum()
    difference = max(total + old.squares.sum() - 2 * inner, 0)
    return float(np.sqrt(difference / total)) if total > 0 else 0.0

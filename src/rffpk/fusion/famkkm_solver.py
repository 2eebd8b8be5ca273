"""The objective of FAMKKM: its variables, their updates, and the embedding of new rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rffpk._utils.arrays import Array
from rffpk._utils.linalg import orthonormal, over_eigenvalues, procrustes
from rffpk.fusion.base import Iteration
from rffpk.fusion.operators import Operator, polar


class Alternation:
    """The variables of eq. (11), and an update of each that maximises over it.

    Each matrix over the rows has a map: the features of all kernels of a row, side by side, times
    the map are its line for that row, whether it is a fitted one or not.

    If `given` holds eigenvalues and eigenvectors of each kernel, H and G are these eigenvectors,
    they stay fixed, and the objective is eq. (10).
    """

    def __init__(
        self,
        kernels: list[Operator],
        k: int,
        lambda1: float,
        lambda2: float,
        random: Any,
        n_threads: int,
        given: list[tuple[Array, Array]] | None = None,
    ) -> None:
        self.kernels, self.lambda1, self.lambda2 = kernels, lambda1, lambda2
        self.n_threads, self.fixed = n_threads, given is not None
        ends = np.cumsum([one.n_features for one in kernels])
        self._blocks = [slice(end - one.n_features, end) for one, end in zip(kernels, ends)]
        if given is None:
            starts = [self._drawn(i, k, random) for i in range(len(kernels))]
            self.G = [H.copy() for H, _ in starts]
            self._sums = [one.gathered(G) for one, G in zip(kernels, self.G)]
            self.KG = [one.spread(sums) for one, sums in zip(kernels, self._sums)]
            self._KH = np.empty_like(self.KG[0])
        else:
            starts = [self._extended(i, *pairs) for i, pairs in enumerate(given)]
            self.G = [H for H, _ in starts]
        self.H = [H for H, _ in starts]
        self._H_maps = [mapping for _, mapping in starts]
        self._G_maps = list(self._H_maps)
        self.R = [np.eye(k)] * len(kernels)
        self.W = [np.eye(k)] * len(kernels)
        self.gamma = np.full(len(kernels), 1 / len(kernels))
        self.F = np.empty((kernels[0].n, k))
        self.update_F()

    def _drawn(self, i: int, k: int, random: Any) -> tuple[Array, Array]:
        """Orthonormal columns in the range of K_i, near it times a random matrix, and their map."""
        one = self.kernels[i]
        sums = one.gathered(orthonormal(one.n, k, random))
        product = one.spread(sums)
        P = polar(lambda rows: product[rows], H := np.empty_like(product), self.n_threads)
        return H, self._map_of_one(i, sums @ P)

    def _extended(self, i: int, values: Array, vectors: Array) -> tuple[Array, Array]:
        """Eigenvectors of K_i, zero where the eigenvalue is, and their map."""
        scaled = over_eigenvalues(vectors, values)
        return scaled * values, self._map_of_one(i, self.kernels[i].gathered(scaled))

    def _map_of_one(self, i: int, sums: Array) -> Array:
        """The map of lines features_i(x) @ sums."""
        mapping = np.zeros((self._blocks[-1].stop, sums.shape[1]))
        mapping[self._blocks[i]] = sums
        return mapping

    @property
    def updates(self) -> list[Callable[[], None]]:
        """The updates of an iteration, in their order."""
        common = [self.update_R, self.update_W, self.update_gamma, self.update_F]
        return common if self.fixed else [self.update_H, self.update_G, *common]

    def iterations(self) -> Iterator[Iteration]:
        while True:
            self.iterate()
            yield Iteration(self.gamma, self.objective())

    def iterate(self) -> None:
        for update in self.updates:
            update()

    def update_F(self) -> None:
        """Eq. (12)."""

        def fused(rows: slice) -> Array:
            parts = zip(self.gamma, self.H, self.R, self.G, self.W)
            return np.asarray(sum(c * (H[rows] @ R + G[rows] @ W) for c, H, R, G, W in parts))

        P = polar(fused, self.F, self.n_threads)
        maps = zip(self.gamma, self._H_maps, self.R, self._G_maps, self.W)
        self._F_map = np.asarray(sum(c * (H @ (R @ P) + G @ (W @ P)) for c, H, R, G, W in maps))

    def update_H(self) -> None:
        """Eq. (13)."""
        for i, (H, G, KG) in enumerate(zip(self.H, self.G, self.KG)):
            P, mapping = self._update(i, KG, G, self._G_maps[i], self.R[i], H)
            mapping[self._blocks[i]] += self._sums[i] @ P
            self._H_maps[i] = mapping

    def update_G(self) -> None:
        """Eq. (14)."""
        for i, (one, H, G) in enumerate(zip(self.kernels, self.H, self.G)):
            sums = one.gathered(H)
            KH = one.spread(sums, self._KH)
            P, mapping = self._update(i, KH, H, self._H_maps[i], self.W[i], G)
            mapping[self._blocks[i]] += sums @ P
            self._G_maps[i], self._sums[i] = mapping, one.gathered(G)
            one.spread(self._sums[i], self.KG[i])

    def _update(
        self, i: int, product: Array, other: Array, other_map: Array, to_F: Array, out: Array
    ) -> tuple[Array, Array]:
        """Update one of H_i and G_i, in `out`, from the `other` and its product with K_i; P with
        out = (K_i other + lambda1 other + F rotation) P, and the map of the last two terms."""
        rotation = self.lambda2 * self.gamma[i] * to_F.T

        def target(rows: slice) -> Array:
            return product[rows] + self.lambda1 * other[rows] + self.F[rows] @ rotation

        P = polar(target, out, self.n_threads)
        return P, other_map @ (self.lambda1 * P) + self._F_map @ (rotation @ P)

    def update_R(self) -> None:
        """Eq. (15)."""
        self.R = [procrustes(H.T @ self.F) for H in self.H]

    def update_W(self) -> None:
        """Eq. (16)."""
        self.W = [procrustes(G.T @ self.F) for G in self.G]

    def update_gamma(self) -> None:
        """Eq. (18). After the updates of R and W no beta_i is negative."""
        beta = np.maximum(self._agreements(), 0)
        if beta.any():
            self.gamma = beta / np.linalg.norm(beta)

    def _agreements(self) -> Array:
        """Tr(F'(H_i R_i + G_i W_i)) of each view."""
        parts = zip(self.H, self.R, self.G, self.W)
        return np.array(
            [np.vdot(H.T @ self.F, R) + np.vdot(G.T @ self.F, W) for H, R, G, W in parts]
        )

    def objective(self) -> float:
        """Eq. (11), or (10)."""
        fused = float(self.gamma @ self._agreements())
        if self.fixed:
            return fused
        parts = zip(self.H, self.KG, self.G)
        kernels = sum(np.vdot(H, KG) + self.lambda1 * np.vdot(H, G) for H, KG, G in parts)
        return float(kernels + self.lambda2 * fused)

    def maps(self) -> list[Array]:
        """B_i with f = sum_i features_i(x) B_i for the line f of F for a row x."""
        return [self._F_map[block] for block in self._blocks]

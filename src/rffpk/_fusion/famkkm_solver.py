"""The objective of FAMKKM: its variables, their updates, and the embedding of new rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rffpk._data.arrays import Array
from rffpk._data.decompositions import orthonormal, over_eigenvalues, procrustes
from rffpk._fusion.operators import Operator, polar

_RANK = 1e-9  # singular values below this fraction of the largest count as zero


class Alternation:
    """The variables of eq. (11), and an update of each that maximises over it.

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
        self.n_threads, self.given = n_threads, given
        if given is None:
            self.H = [np.ascontiguousarray(orthonormal(one.n, k, random)) for one in kernels]
            self.KG = [one.times(H) for one, H in zip(kernels, self.H)]
            self._KH = np.empty_like(self.H[0])
            self.previous_G = [np.empty_like(H) for H in self.H]  # G before its last update
        else:
            self.H = [vectors for _, vectors in given]
        self.G = [H.copy() for H in self.H]
        self.R = [np.eye(k)] * len(kernels)
        self.W = [np.eye(k)] * len(kernels)
        self.gamma = np.full(len(kernels), 1 / len(kernels))
        self.F = np.empty((kernels[0].n, k))
        self.update_F()

    @property
    def updates(self) -> list[Callable[[], None]]:
        """The updates of an iteration, in their order."""
        common = [self.update_R, self.update_W, self.update_gamma, self.update_F]
        return [self.update_H, self.update_G, *common] if self.given is None else common

    def iterate(self) -> None:
        for update in self.updates:
            update()

    def update_F(self) -> None:
        """Eq. (12)."""

        def fused(rows: slice) -> Array:
            parts = zip(self.gamma, self.H, self.R, self.G, self.W)
            return np.asarray(sum(c * (H[rows] @ R + G[rows] @ W) for c, H, R, G, W in parts))

        self.from_F = polar(fused, self.F, self.n_threads)

    def update_H(self) -> None:
        """Eq. (13)."""
        self.from_H = [
            self._partition(KG, G, c * R.T, H)
            for KG, G, c, R, H in zip(self.KG, self.G, self.gamma, self.R, self.H)
        ]

    def update_G(self) -> None:
        """Eq. (14)."""
        self.G, self.previous_G = self.previous_G, self.G
        self.from_G = []
        for i, one in enumerate(self.kernels):
            KH, rotation = one.times(self.H[i], self._KH), self.gamma[i] * self.W[i].T
            self.from_G.append(self._partition(KH, self.H[i], rotation, self.G[i]))
            one.times(self.G[i], self.KG[i])

    def _partition(
        self, product: Array, other: Array, rotation: Array, out: Array
    ) -> tuple[Array, Array]:
        """Update one of H_i and G_i, in `out`, from the `other`. Returns P and Q such that the row
        of a row x is (k_i(x, X) other + lambda1 o) P + f Q, with the rows o of `other` and f of
        F."""
        rotation = self.lambda2 * rotation

        def target(rows: slice) -> Array:
            return product[rows] + self.lambda1 * other[rows] + self.F[rows] @ rotation

        P = polar(target, out, self.n_threads)
        return P, rotation @ P

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
        if self.given is not None:
            return fused
        parts = zip(self.H, self.KG, self.G)
        kernels = sum(np.vdot(H, KG) + self.lambda1 * np.vdot(H, G) for H, KG, G in parts)
        return float(kernels + self.lambda2 * fused)

    def maps(self) -> list[Array]:
        """B_i with f = sum_i k_i(x, X) B_i for the row f of F of a new row x."""
        k = len(self.from_F)
        parts = zip(self.gamma, self.R, self.W)
        tails = [c * np.vstack([R, W]) @ self.from_F for c, R, W in parts]  # f from [h, g]
        if self.given is not None:
            return [
                over_eigenvalues(H, values) @ (T[:k] + T[k:])
                for (values, H), T in zip(self.given, tails)
            ]
        remainder, maps = np.eye(k), []
        updates = zip(self.previous_G, self.from_H, self.H, self.from_G, tails)
        for G, (P, Q), H, (P2, Q2), T in updates:
            # [h, g] (I - C) = [k_i G P, k_i H P2] + f [Q, Q2]
            C = np.zeros((2 * k, 2 * k))
            C[k:, :k], C[:k, k:] = self.lambda1 * P, self.lambda1 * P2
            solved = np.linalg.pinv(np.eye(2 * k) - C, rcond=_RANK) @ T
            remainder -= np.hstack([Q, Q2]) @ solved
            maps.append(G @ (P @ solved[:k]) + H @ (P2 @ solved[k:]))
        closed = np.linalg.pinv(remainder, rcond=_RANK)
        return [B @ closed for B in maps]

"""FAMKKM: two approximate partitions of each kernel, fused with the kernels in one objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, Literal, get_args

import numpy as np

from rffpk.estimators.base import parameters
from rffpk.fusion.base import Iteration, KernelFusion, by_matrices
from rffpk.fusion.operators import Approximation, Operator, check_definite, polar
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto
from rffpk.rows.sample import Opened
from rffpk.rows.table import Columns
from rffpk.spaces.kernels import BANKS
from rffpk.system import config
from rffpk.system.linalg import orthonormal, procrustes
from rffpk.system.tuning import TUNING

Features = Literal["rff", "nystroem"]


@parameters
class FAMKKM(KernelFusion):
    """Fast approximated multiple kernel k-means (FAMKKM).

    Each kernel K_i has partition matrices H_i and G_i with orthonormal columns, fused into F. The
    objective is (eq. (11) of Wang et al.: Fast approximated multiple kernel k-means. IEEE TKDE)

        sum_i Tr(H_i'K_i G_i) + lambda1 Tr(H_i'G_i)
              + lambda2 gamma_i Tr(F'(H_i R_i + G_i W_i)),    sum_i gamma_i^2 = 1, gamma_i >= 0,

    maximized over F, H, G, orthogonal R and W, and gamma in turn. An iteration costs O(n^2 k) with
    matrices, O(n D k) with D features a view. A kernel must nearly be positive semidefinite.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts of k-means on the embedding. "auto": those of `PowerKMeans`.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    kernels : None, list, "du2015" or "precomputed", default=None
        For each view a kernel of scikit-learn, a callable, or a pair: kernel, gamma or parameters.
        None: "rbf". Gamma: 1 / (2 mean distance). "precomputed": X. "du2015": 12 of one array.
    views : list or None, default=None
        Columns of each view, if X is one array: lists of indices or names, masks, or slices.
    standardize, normalize_rows : bool, default=True
        Whether computed kernels are centered, with a diagonal of one; embedded rows of length one.
    max_iter : int, default=100
        Largest number of iterations; a ConvergenceWarning says if they did not reach `tol`.
    tol : float, default=1e-06
        Tolerance >= 0: iterations end when the objective changes by at most `tol` of itself.
    lambda1, lambda2 : float, default=1.0
        Weights >= 0 of the agreement between H_i and G_i, and of the fusion of partitions.
    approximation : None, {"rff", "nystroem"} or pair, default=None
        None: matrices of n_samples^2 numbers. Linear in n_samples, not for "du2015": "rff" (for
        "rbf", "laplacian"), "nystroem" (256 random rows), or ("rff", D), ("nystroem", m).

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        F, float64, with orthonormal columns.
    kernel_weights_ : ndarray of shape (n_views,)
        Weights gamma >= 0 of the kernels; their squares sum to one.
    objective_, inertia_, s_, membership_exponent_ : float
        Objective of the fusion; objective and last s of k-means; s of `predict_proba`.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centroids of the rows of the embedding as k-means takes them.
    n_iter_, history_ : int and list of dict
        Number of iterations; a record for each, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`, of all views together; their names, if X was one frame.

    Examples
    --------
    >>> from rffpk import FAMKKM
    >>> a, b, c, d = FAMKKM(2).fit_predict([[[0], [1], [8], [9]], [[1], [2], [7], [8]]])
    >>> bool(a == b != c == d)
    True
    """

    _stage = "fusion"

    n_landmarks: None = field(default=None, init=False)  # `approximation` takes its place
    lambda1: float = 1.0
    lambda2: float = 1.0
    approximation: Features | tuple[Features, int] | None = None

    _balances_terms = True
    _weights = ("lambda1", "lambda2")
    _mapped = by_matrices

    def _check_parameters(self) -> None:
        """Check the parameters. A bank of kernels excludes approximations."""
        super()._check_parameters()
        word, _ = self._word_and_size()
        if word is not None and isinstance(self.kernels, str) and self.kernels in BANKS:
            raise ValueError(
                f"kernels={self.kernels!r}: needs approximation=None, because the kernels are "
                "scaled by their extreme values over all pairs of rows."
            )

    def _word_and_size(self) -> tuple[str | None, Auto | int]:
        """Return the approximation, and its number of frequencies or anchors.

        Without an approximation the number is 0. A number of frequencies may be "auto"."""
        if self.approximation is None:
            return None, 0
        words = get_args(Features)
        word, size = checks.word_and_size(self.approximation, "approximation", words, 1, "None")
        if size is not None:
            return word, size
        return word, "auto" if word == "rff" else TUNING.fusion.famkkm_anchors

    # ---- fitting ---------------------------------------------------------------------------------

    def _fuse(self, rows: Opened, k: int, random: Any) -> None:
        """Maximize eq. (11) over kernels as operators: matrices, or approximate features."""
        xs, specs = self._matched(rows.tables, rows.positive)
        weight = rows.weight if rows.positive is None else rows.weight[rows.positive]
        listed = isinstance(self.kernels, (list, tuple))
        prefix = "kernels" if listed and not self._shape.has_views else "X"
        names, n_threads = [f"{prefix}[{i}]" for i in range(len(xs))], config.n_threads(self.n_jobs)
        kernels = Approximation(
            *self._word_and_size(), self.standardize, random, n_threads, weight
        ).operators(xs, specs, names)
        lambda1, lambda2 = float(self.lambda1), float(self.lambda2)
        if self.approximation is None:
            for one, spec, name in zip(kernels, specs, names):
                check_definite(one, spec, name, k, lambda1)
        state = Alternation(kernels, k, lambda1, lambda2, random, n_threads)
        self._converge(state.iterations(), kernels[0].n, rising=True)
        self._features, self._map = [one.features for one in kernels], state.maps()
        self.embedding_ = self._embedded(rows.tables)  # by the same products as in `transform`

    def _embedded(self, xs: list[Columns]) -> Array:
        return self._in_blocks(xs, self._features, max(map(len, self._map)), self._mapped)


class Alternation:
    """The variables of eq. (11), with updates that each maximize it over one variable.

    F, H_i and G_i are matrices with a line for each row of the data, and each has a map. The line
    of a row is the product of its features, of all kernels side by side, with the map."""

    def __init__(
        self,
        kernels: list[Operator],
        k: int,
        lambda1: float,
        lambda2: float,
        random: Any,
        n_threads: int,
    ) -> None:
        """Draw H_i for each kernel, and start with G_i = H_i, identities R_i and W_i, equal gamma.

        F follows from all other variables."""
        self.kernels, self.lambda1, self.lambda2 = kernels, lambda1, lambda2
        self.n_threads, L = n_threads, len(kernels)
        # where the features of each kernel are, if the features of all kernels are side by side
        ends = np.cumsum([one.n_features for one in kernels])
        self._blocks = [slice(end - one.n_features, end) for one, end in zip(kernels, ends)]
        starts = [self._drawn(i, k, random) for i in range(L)]
        self.H = [H for H, _ in starts]
        self.G = [H.copy() for H in self.H]
        # K_i G_i, and its coefficients C_i in the features of kernel i
        self._C = [one.coefficients(G) for one, G in zip(kernels, self.G)]
        self.KG = [one.values(C) for one, C in zip(kernels, self._C)]
        self._H_maps = [mapping for _, mapping in starts]
        self._G_maps = list(self._H_maps)
        self.R = [np.eye(k)] * L
        self.W = [np.eye(k)] * L
        self.gamma = np.full(L, 1 / L)
        self.F = np.empty((kernels[0].n, k))
        self.update_F()

    def _drawn(self, i: int, k: int, random: Any) -> tuple[Array, Array]:
        """Draw an initial H_i, and return it with its map.

        Its orthonormal columns are close to K_i times a random matrix."""
        one = self.kernels[i]
        C = one.coefficients(orthonormal(one.n, k, random))
        product = one.values(C)
        P = polar(lambda rows: product[rows], H := np.empty_like(product), self.n_threads)
        mapping = np.zeros((self._blocks[-1].stop, k))
        mapping[self._blocks[i]] = C @ P
        return H, mapping

    @property
    def updates(self) -> list[Callable[[], None]]:
        """The update functions of one iteration, in order."""
        return [
            self.update_H, self.update_G, self.update_R, self.update_W, self.update_gamma,
            self.update_F,
        ]  # fmt: skip

    def iterations(self) -> Iterator[Iteration]:
        while True:
            self.iterate()
            yield Iteration(self.gamma, self.objective())

    def iterate(self) -> None:
        """Run all updates once."""
        for update in self.updates:
            update()

    def update_F(self) -> None:
        """Update F by eq. (12)."""

        def fused(rows: slice) -> Array:
            parts = zip(self.gamma, self.H, self.R, self.G, self.W)
            return np.asarray(sum(c * (H[rows] @ R + G[rows] @ W) for c, H, R, G, W in parts))

        P = polar(fused, self.F, self.n_threads)
        maps = zip(self.gamma, self._H_maps, self.R, self._G_maps, self.W)
        self._F_map = np.asarray(sum(c * (H @ (R @ P) + G @ (W @ P)) for c, H, R, G, W in maps))

    def update_H(self) -> None:
        """Update the H_i by eq. (13)."""
        for i, (G, KG, R) in enumerate(zip(self.G, self.KG, self.R)):
            self._H_maps[i] = self._update(i, self.H[i], G, self._G_maps[i], self._C[i], KG, R)

    def update_G(self) -> None:
        """Update the G_i by eq. (14)."""
        for i, (one, H, W) in enumerate(zip(self.kernels, self.H, self.W)):
            C = one.coefficients(H)
            KH = one.values(C)
            self._G_maps[i] = self._update(i, self.G[i], H, self._H_maps[i], C, KH, W)
            self._C[i] = one.coefficients(self.G[i])
            self.KG[i] = one.values(self._C[i])

    def _update(
        self, i: int, out: Array, other: Array, other_map: Array, C: Array, product: Array,
        to_F: Array,
    ) -> Array:  # fmt: skip
        """Update H_i or G_i in place, in `out`; return its map.

        The result has the orthonormal columns nearest to K_i other + lambda1 other + lambda2
        gamma_i F to_F'. `product` is K_i other, C its coefficients, and `other_map` the map of
        `other`. `to_F` is R_i or W_i."""
        rotation = self.lambda2 * self.gamma[i] * to_F.T
        P = polar(
            lambda rows: product[rows] + self.lambda1 * other[rows] + self.F[rows] @ rotation,
            out, self.n_threads,
        )  # fmt: skip
        mapping = other_map @ (self.lambda1 * P) + self._F_map @ (rotation @ P)
        mapping[self._blocks[i]] += C @ P
        return mapping

    def update_R(self) -> None:
        """Update the R_i by eq. (15)."""
        self.R = [procrustes(H.T @ self.F) for H in self.H]

    def update_W(self) -> None:
        """Update the W_i by eq. (16)."""
        self.W = [procrustes(G.T @ self.F) for G in self.G]

    def update_gamma(self) -> None:
        """Update gamma by eq. (18): scale the agreements beta (L,) to length one.

        After the updates of R and W no beta is negative, except by rounding. If no beta is
        positive, gamma stays."""
        beta = np.maximum(self._agreements(), 0)
        if beta.any():
            self.gamma = beta / np.linalg.norm(beta)

    def _agreements(self) -> Array:
        """Return Tr(F'(H_i R_i + G_i W_i)) of each view, (L,)."""
        parts = zip(self.H, self.R, self.G, self.W)
        return np.array(
            [np.vdot(H.T @ self.F, R) + np.vdot(G.T @ self.F, W) for H, R, G, W in parts]
        )

    def objective(self) -> float:
        """Return the objective, eq. (11)."""
        fused = float(self.gamma @ self._agreements())
        parts = zip(self.H, self.KG, self.G)
        kernels = sum(np.vdot(H, KG) + self.lambda1 * np.vdot(H, G) for H, KG, G in parts)
        return float(kernels + self.lambda2 * fused)

    def maps(self) -> list[Array]:
        """Return the blocks B_i of the map of F: its row for x is sum_i features_i(x) B_i."""
        return [self._F_map[block] for block in self._blocks]

"""The base classes of the methods that fuse kernels into an embedding of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.decompositions import over_eigenvalues
from rffpk._data.tiles import row_tiles, run_all
from rffpk.kernels import PRECOMPUTED, FittedKernel, check_kernels, matched
from rffpk.power import PowerKMeans


class KernelFusion(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Base of the methods that learn an embedding of the rows from kernels and cluster it by
    k-means.

    A subclass learns the embedding in `_learn` and embeds new rows in `_embed`; one that never
    holds the kernels replaces `_fuse` and `_embedded`.
    """

    n_landmarks: int | None = None  # a parameter of `SpectralFusion` only

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        center: bool = True,
        normalize: bool = True,
        normalize_rows: bool = True,
        n_init: str | int = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernels = kernels
        self.center = center
        self.normalize = normalize
        self.normalize_rows = normalize_rows
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # ---- what subclasses define -------------------------------------------------------------

    def _check_parameters(self) -> None:
        validation.check_search_parameters(self)
        for name in ("center", "normalize", "normalize_rows"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise TypeError(f"{name} == {getattr(self, name)!r}, must be True or False.")
        check_kernels(self.kernels)
        if self.n_landmarks is not None:
            validation.check_int(self.n_landmarks, "n_landmarks", self.n_clusters)

    def _learn(self, kernels: list[FittedKernel], k: int, random: Any) -> None:
        """Set `embedding_` (n, k), `kernel_weights_`, `objective_`, `n_iter_`, what `_embed` needs;
        append to `history_`."""
        raise NotImplementedError

    def _embed(self, crosses: list[Array]) -> Array:
        """The embedding (m, k) of new rows from their cross-kernels (m, n) to the fitted rows."""
        raise NotImplementedError

    # ---- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Any:
        """Fuse the kernels and cluster the rows.

        Parameters
        ----------
        X : list of array-likes of shape (n_samples, n_features_l), or array-like
            The views; with ``kernels="precomputed"`` kernel matrices of shape (n_samples,
            n_samples), which are taken as they are. One array with several `kernels` is a view of
            each.
        y : Ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter or a view is not as described; nothing is changed then.

        Warns
        -----
        ConvergenceWarning
            If centroids in the embedding coincide, or where the class says so.
        """
        self._check_parameters()
        random = check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            xs = validation.check_views(self, X, reset=True)
            k = validation.check_n_clusters(self.n_clusters, len(xs[0]), None)
            self.history_: list[dict[str, Any]] = []
            self._fuse(xs, k, random)
            self._label(k, random)
            self._n_features_out = self.embedding_.shape[1]
        return self

    def _fuse(self, xs: list[Array], k: int, random: Any) -> None:
        """Set the fitted attributes except those of k-means."""
        self.landmarks_ = self._choose_landmarks(len(xs[0]), random)
        self._kernels = self._fit_kernels(xs, random)
        self._learn(self._kernels, k, random)
        for kernel in self._kernels:
            kernel.drop_matrix()
        if self.landmarks_ is not None:
            self.embedding_ = self._embedded(xs)

    def _choose_landmarks(self, n: int, random: Any) -> NDArray[np.intp] | None:
        """Indices of the random rows to learn on, in rising order; None: all rows."""
        if self.n_landmarks is None or self.n_landmarks >= n:
            return None
        return np.sort(random.choice(n, self.n_landmarks, replace=False))

    def _fit_kernels(self, xs: list[Array], random: Any) -> list[FittedKernel]:
        precomputed = validation.is_option(self.kernels, PRECOMPUTED)
        if self.landmarks_ is not None and not precomputed:
            xs = [x[self.landmarks_] for x in xs]
        xs, specs = matched(xs, self.kernels, not self._n_views)
        if self.landmarks_ is not None and precomputed:
            chosen = np.ix_(self.landmarks_, self.landmarks_)
            xs = [np.ascontiguousarray(x[chosen]) for x in xs]
        n_threads = _config.n_threads(self.n_jobs)
        return [
            FittedKernel(
                x, spec, random=random, n_threads=n_threads, center=self.center,
                normalize=self.normalize,
            )
            for x, spec in zip(xs, specs)
        ]  # fmt: skip

    def _label(self, k: int, random: Any) -> None:
        """Annealed k-means with restarts on the embedding."""
        self._clusterer = PowerKMeans(
            k, n_init=self.n_init, random_state=random.randint(2**31 - 1), n_jobs=self.n_jobs
        ).fit(self._prepared(self.embedding_))
        self.labels_ = self._clusterer.labels_
        self.cluster_centers_ = self._clusterer.cluster_centers_
        self.inertia_ = self._clusterer.inertia_

    def _prepared(self, embedding: Array) -> Array:
        return normalize(embedding) if self.normalize_rows else embedding

    # ---- prediction ------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Embed rows.

        Parameters
        ----------
        X : list of array-likes of shape (n_samples, n_features_l), or array-like
            As in `fit`; with precomputed kernels those between the new rows and the fitted ones, of
            shape (n_samples, n_samples_fit).

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_clusters)
            In the space of `embedding_`.
        """
        check_is_fitted(self)
        xs = validation.check_views(self, X, reset=False)
        with _config.one_blas_thread():
            return self._embedded(xs)

    def _embedded(self, xs: list[Array]) -> Array:
        """The embedding of rows, block by block, by threads."""
        if not self._n_views:
            xs = xs * len(self._kernels)

        def embed(rows: slice) -> Array:
            crosses = []
            for kernel, x in zip(self._kernels, xs):
                here = x[rows]
                if kernel.precomputed and self.landmarks_ is not None:
                    here = here[:, self.landmarks_]
                crosses.append(kernel.cross(here)[0])
            return self._embed(crosses)

        blocks = row_tiles(len(xs[0]), self._kernels[0].n)
        return np.concatenate(run_all(embed, blocks, _config.n_threads(self.n_jobs)))

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Label each row with the centroid nearest to its embedding.

        Parameters
        ----------
        X : list of array-likes of shape (n_samples, n_features_l), or array-like
            As in `transform`.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            Indices of the clusters.
        """
        embedding = self.transform(X)
        return self._clusterer.predict(self._prepared(embedding))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = validation.is_option(self.kernels, PRECOMPUTED)
        return tags


class SpectralFusion(KernelFusion):
    """Base of the methods whose embedding consists of leading eigenvectors of sum_l alpha_l^2 K_l,
    and that can learn on landmarks."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        center: bool = True,
        normalize: bool = True,
        normalize_rows: bool = True,
        n_init: str | int = "auto",
        n_landmarks: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_clusters,
            kernels=kernels,
            center=center,
            normalize=normalize,
            normalize_rows=normalize_rows,
            n_init=n_init,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.n_landmarks = n_landmarks

    def _record(self, alpha: Array, objective: float) -> None:
        record = {"stage": "weights", "objective": objective, "kernel_weights": alpha}
        self.history_.append(record)
        self.objective_ = objective
        if self.verbose:
            print(f"[weights] objective={objective:.8g} weights={np.round(alpha, 4)}")

    def _keep(self, values: Array, H: Array, alpha: Array) -> None:
        self.eigenvalues_, self.embedding_, self.kernel_weights_ = values, H, alpha
        self.n_iter_ = len(self.history_)
        self._map = over_eigenvalues(H, values)

    def _embed(self, crosses: list[Array]) -> Array:
        return combined(crosses, self.kernel_weights_) @ self._map


def combined(Ks: list[Array], alpha: Array) -> Array:
    """sum_l alpha_l^2 K_l."""
    total = alpha[0] ** 2 * Ks[0]
    for weight, K in zip(alpha[1:], Ks[1:]):
        total += weight**2 * K
    return total


def spectral_costs(Ks: list[Array], H: Array) -> Array:
    """Tr(K_l (I - HH')) of each kernel."""
    return np.array([np.trace(K) - np.einsum("ik,ik->", H, K @ H) for K in Ks])


def inverse_shares(costs: Array) -> Array:
    """alpha_l ~ 1 / cost_l, the minimum of sum alpha_l^2 cost_l on the simplex."""
    if not costs.max() > 0:
        return np.full(len(costs), 1 / len(costs))
    shares = costs.max() / np.maximum(costs, np.finfo(np.float64).eps * costs.max())
    return np.asarray(shares / shares.sum())

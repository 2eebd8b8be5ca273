"""The base classes of the methods that fuse kernels into an embedding of the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._annealing.ends import Cause, few_rows, low_rank
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.estimator import Estimator
from rffpk._data.messages import warn
from rffpk._data.views import check_views
from rffpk.kernels import PRECOMPUTED, check_kernels
from rffpk.power import PowerKMeans


def k_means(
    embedding: Array,
    k: int,
    n_init: str | int,
    random: Any,
    n_jobs: int | None,
    causes: list[Cause],
    verbose: int = 0,
) -> PowerKMeans:
    """Annealed k-means with restarts on the rows of an embedding; `causes` that its centroids
    coincide come before those in the embedding."""
    seed = random.randint(2**31 - 1)
    clusterer = PowerKMeans(k, n_init=n_init, random_state=seed, n_jobs=n_jobs, verbose=verbose)
    clusterer._rows_name = "the embedding of X"
    return clusterer._fit(embedding, None, causes)


class KernelFusion(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Base of the methods that learn an embedding of the rows from kernels and cluster it by
    k-means.

    A subclass learns the embedding in `_fuse` and embeds new rows in `_embedded`.
    """

    _needs_every_kernel = True  # whether a kernel that is zero beside others is refused

    # what a fit sets
    labels_: NDArray[np.int32]
    embedding_: Array
    cluster_centers_: Array
    inertia_: float
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernels: Any = None,
        views: Any = None,
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
        self.views = views
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
            validation.check_bool(getattr(self, name), name)
        check_kernels(self.kernels)

    def _fuse(self, xs: list[Array], k: int, random: Any) -> None:
        """Set the fitted attributes except those of k-means; append to `history_`."""
        raise NotImplementedError

    def _embedded(self, xs: list[Array]) -> Array:
        """The embedding of rows whose views have been checked."""
        raise NotImplementedError

    # ---- fitting ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
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
            If centroids in the embedding coincide, if its rank is below n_clusters, or where the
            class says so.
        UserWarning
            If a kernel has a clearly negative eigenvalue and its spectrum is used.
        """
        self._check_parameters()
        random = validation.check_random_state(self.random_state)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            xs = check_views(self, X, reset=True)
            k = validation.check_n_clusters(self.n_clusters, len(xs[0]), None)
            self._check_no_zero_kernel(xs)
            self.history_: list[dict[str, Any]] = []
            self._fuse(xs, k, random)
            self._label(xs, k, random)
            self._n_features_out = self.embedding_.shape[1]
        return self

    def _check_no_zero_kernel(self, xs: list[Array]) -> None:
        """A kernel that is zero costs nothing in any clustering: learned weights go to it alone."""
        if not self._needs_every_kernel:
            return
        precomputed = validation.is_option(self.kernels, PRECOMPUTED)
        if precomputed:
            zero, what = [not x.any() for x in xs], "is zero everywhere"
        elif self.center:
            zero = [not (x != x[0]).any() for x in xs]
            what = "has equal rows, so that its centered kernel is zero"
        else:
            return
        if any(zero) and not all(zero):
            name = "X" if self._view_columns is None else "views"
            raise ValueError(f"{name}[{zero.index(True)}] {what}: leave it out.")

    def _label(self, xs: list[Array], k: int, random: Any) -> None:
        """Annealed k-means with restarts on the embedding."""
        flaw = low_rank(self.embedding_, xs)
        self._clusterer = k_means(
            self._prepared(self.embedding_), k, self.n_init, random, self.n_jobs,
            [few_rows("X", xs), flaw],
        )  # fmt: skip
        if self._clusterer._n_distinct == k and (text := flaw(k)):
            warn(text, ConvergenceWarning)
        self.labels_ = self._clusterer.labels_
        self.cluster_centers_ = self._clusterer.cluster_centers_
        self.inertia_ = self._clusterer.inertia_

    def _warn_unconverged(self, tol: float, max_iter: int) -> None:
        warn(
            f"{type(self).__name__} did not reach tol={tol:g} in max_iter={max_iter} iterations: "
            "take more iterations, or a larger tol.",
            ConvergenceWarning,
        )

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
        xs = check_views(self, X, reset=False)
        with _config.one_blas_thread():
            return self._embedded(xs)

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

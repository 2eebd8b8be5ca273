"""Kernel k-means on Nystroem features: one kernel, anchors, time linear in the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rffpk import _config
from rffpk._data import validation
from rffpk._data.arrays import Array
from rffpk._data.tiles import row_tiles, run_all
from rffpk._fusion.operators import FeatureOperator, Nystroem, nystroem_features
from rffpk.kernels import Specification, check_one_kernel, one_kernel
from rffpk.power import PowerKMeans


class NystroemKernelKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Kernel k-means on Nystroem features.

    The kernel matrix is replaced by Z W^+ Z', Z the kernel between rows and random anchors and W
    that among the anchors. Annealed k-means runs on features whose inner products these are, or on
    their leading directions [1]_.

    Parameters
    ----------
    n_clusters : int, default=8
        k, from 1 to n_samples.
    kernel, gamma, degree, coef0, kernel_params
        As in `KernelKMeans`, but not "precomputed".
    n_anchors : int, default=256
        Anchors, drawn at random; no more than n_samples.
    n_components : int or None, default=None
        Keep so many leading directions of the features (about their origin, as for the best
        approximation of this rank of Z W^+ Z'); no more than `n_anchors`. None: all.
    n_init : "auto" or int, default="auto"
        Starts of the annealed k-means, as in `PowerKMeans`.
    random_state : int, RandomState instance or None, default=None
        Draws what gamma is estimated from, the anchors, and the starts.
    n_jobs : int or None, default=None
        Threads; None takes all that affinity, OMP_NUM_THREADS and threadpoolctl allow. Results do
        not depend on it, to the bit.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
    embedding_ : ndarray of shape (n_samples, n_components)
        The features, in the dtype of X; all of them are as many as W has rank.
    anchors_ : ndarray of int
        The rows that are anchors, rising.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Centroids of the features.
    inertia_ : float
        The k-means objective of the features.
    n_iter_ : int
        Passes of k-means.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, if X had column names

    Raises
    ------
    ValueError, TypeError
        If a parameter is not as described, or W is not positive semi-definite.

    Notes
    -----
    With m anchors and F features O(n m (d + F)) for the features and O(m^3) for W; k-means adds
    O(n F k) a pass. Eigenvalues of W that are rounding are left out.

    References
    ----------
    .. [1] Wang, Gittens, Mahoney: Scalable kernel k-means clustering with Nystroem approximation:
       relative-error bounds. JMLR 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from rffpk import NystroemKernelKMeans
    >>> X, _ = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> NystroemKernelKMeans(2, n_anchors=30, n_components=5, random_state=0).fit_transform(X).shape
    (200, 5)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        gamma: str | float | None = "mean",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        n_anchors: int = 256,
        n_components: int | None = None,
        n_init: str | int = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_anchors = n_anchors
        self.n_components = n_components
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        validation.check_search_parameters(self)
        check_one_kernel(self)
        validation.check_int(self.n_anchors, "n_anchors", 1)
        if self.n_components is not None:
            validation.check_int(self.n_components, "n_components", 1, self.n_anchors)

    def fit(self, X: Any, y: Any = None) -> NystroemKernelKMeans:
        """Make the features and cluster them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored

        Returns
        -------
        self : object
        """
        self._check_parameters()
        spec = Specification(*one_kernel(self))
        random = check_random_state(self.random_state)
        n_threads = _config.n_threads(self.n_jobs)
        with validation.unchanged_on_error(self), _config.one_blas_thread():
            X = validation.check_rows(self, X, reset=True)
            k = validation.check_n_clusters(self.n_clusters, len(X), None)
            m = min(self.n_anchors, len(X))
            self.anchors_ = np.sort(random.choice(len(X), m, replace=False))
            raw = nystroem_features(X, spec, "kernel", self.anchors_, random, n_threads)
            found = FeatureOperator(X, raw, center=False, normalize=False, n_threads=n_threads)
            self._features = self._restricted(raw, found)
            self.embedding_ = self._embedded(X) if self.n_components else found.stored
            self._clusterer = PowerKMeans(
                k,
                n_init=self.n_init,
                random_state=random.randint(2**31 - 1),
                n_jobs=self.n_jobs,
            ).fit(self.embedding_)
        self.labels_ = self._clusterer.labels_
        self.cluster_centers_ = self._clusterer.cluster_centers_
        self.inertia_ = self._clusterer.inertia_
        self.n_iter_ = self._clusterer.n_iter_
        self._n_features_out = self.embedding_.shape[1]
        return self

    def _restricted(self, raw: Nystroem, found: FeatureOperator) -> Nystroem:
        """The features along their leading directions, the eigenvectors of their sum of squares."""
        if self.n_components is None:
            return raw
        values, vectors = eigh(found.gathered(found.stored))
        return replace(raw, root=raw.root @ vectors[:, ::-1][:, : self.n_components])

    def _embedded(self, X: Array) -> Array:
        tiles = row_tiles(len(X), len(self.anchors_))
        parts = run_all(lambda t: self._features(X[t]), tiles, _config.n_threads(self.n_jobs))
        return np.concatenate(parts, dtype=X.dtype, casting="same_kind")

    def transform(self, X: Any) -> Array:
        """The features of new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        embedding : ndarray of shape (n_samples, n_components)
            In the dtype of X.
        """
        check_is_fitted(self)
        X = validation.check_rows(self, X, reset=False)
        with _config.one_blas_thread():
            return self._embedded(X)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest centroid of new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
        """
        embedding = self.transform(X)
        return self._clusterer.predict(embedding)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

"""Kernel k-means on Nystroem features: one kernel, anchors, time linear in the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rffpk.anneal.convergence_warnings import few_rows
from rffpk.estimators.annealing import check_search_parameters
from rffpk.estimators.base import Clusterer, fit_of, parameters, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.fusion.base import cluster, embedding_model, transform, weighted_rows
from rffpk.fusion.operators import Nystroem, nystroem_features, with_gamma
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.door import Schema
from rffpk.rows.table import Columns
from rffpk.spaces.fourier import Gamma
from rffpk.spaces.kernels import (
    PairwiseKernel,
    check_sparse,
    one_kernel,
)
from rffpk.system import config
from rffpk.system.linalg import eigh
from rffpk.system.report import warn
from rffpk.system.tiles import by_blocks, row_tiles, run_all


@parameters
class NystroemKernelKMeans(Clusterer):
    """Kernel k-means on Nystroem features.

    Annealed k-means on features whose inner products are Z W^+ Z', with Z the kernel between the
    rows and random anchors and W that among the anchors, or on their leading directions (Wang,
    Gittens, Mahoney: Scalable kernel k-means clustering with Nystroem approximation: relative-error
    bounds. JMLR 2019). For n rows of d columns, m anchors and F features O(n m (d + F) + m^3) time,
    and O(n F k) a pass of k-means. An indefinite W is refused. See ``docs/fusion.md``.

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
    kernel : str or callable, default="rbf"
        A name of scikit-learn's pairwise kernels, or a function of two rows.
    gamma : {"mean", "median", "scale"}, float or None, default="mean"
        A number > 0. "mean", "median": 1 / (2 mean or median distance), for "rbf" squared; "scale":
        1 / (n_features X.var()). None, and words for other kernels: scikit-learn's default.
    kernel_params : dict or None, default=None
        Of a callable; of a name "degree" >= 0 (default 3), "coef0" (1), "gamma", before `gamma`.
    n_anchors : int, default=256
        Number of anchors, at least 1: random rows of positive weight, at most all.
    n_components : int or None, default=None
        Number of leading directions of the features, from 1 to `n_anchors`. None: all.

    Attributes
    ----------
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    embedding_ : ndarray of shape (n_samples, n_components)
        Features of the rows, in the dtype of X; if `n_components` is None, as many as W has rank.
    anchors_ : ndarray of int
        Rows that are anchors, in rising order.
    cluster_centers_ : ndarray of shape (n_clusters, n_components)
        Centroids of the features, in the dtype of X.
    inertia_, s_, membership_exponent_ : float
        Of k-means: objective, last finite exponent, that of `predict_proba`.
    n_iter_, history_ : int and list of dict
        Number of passes of k-means; records of passes and starts, with the keys in ``docs/api.md``.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.

    Examples
    --------
    >>> from rffpk import NystroemKernelKMeans
    >>> a, b, c, d = NystroemKernelKMeans(2).fit_predict([[0.0], [0.2], [5.0], [5.2]])
    >>> bool(a == b != c == d)
    True
    """

    kernel: PairwiseKernel | Callable[..., float] = "rbf"
    gamma: Gamma | float | None = "mean"
    kernel_params: dict[str, Any] | None = None
    n_anchors: int = 256
    n_components: int | None = None
    # what a fit sets
    anchors_: NDArray[np.intp] = field(init=False)
    embedding_: Array = field(init=False)
    cluster_centers_: Array = field(init=False)
    _clusterer: Any = field(init=False)  # a PowerKMeans of the embedding

    _fitted_model, transform = embedding_model, transform

    def _schema(self) -> Schema:
        return super()._schema()._replace(warns_of_kernels=True)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Compute the features of the rows and cluster them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite numbers. float32 and float64 are kept, other dtypes become float64.
        y : Ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Weights >= 0 of the rows, by default one each: in the gamma that is estimated, the
            leading directions and k-means. A row of weight zero has no influence.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If a parameter, X or sample_weight is not as described, or W is not positive
            semidefinite; nothing is changed then.

        Warns
        -----
        ConvergenceWarning
            If clusters have no rows.
        """
        check_search_parameters(self)
        spec = one_kernel(self.kernel, self.gamma, self.kernel_params)
        checks.check_int(self.n_anchors, "n_anchors", 1)
        if self.n_components is not None:
            checks.check_int(self.n_components, "n_components", 1, self.n_anchors)
        random = checks.check_random_state(self.random_state)
        n_threads = config.n_threads(self.n_jobs)
        with (
            reporting(self, X) as progress,
            fit_of(self),
            config.one_blas_thread(),
        ):
            rows, k = weighted_rows(self, X, sample_weight, random, progress)
            (x,), weight = rows.tables, rows.weight
            check_sparse(x, spec.metric, "X")
            self.anchors_ = rows.drawn(min(self.n_anchors, rows.counted), random)
            spec = with_gamma(spec, x, weight, random, n_threads)
            raw = nystroem_features(x, spec, "kernel", self.anchors_)
            self._features = self._restricted(raw, x, weight, n_threads)
            self.embedding_ = self._embedded([x])
            cluster(self, k, rows, random, [few_rows("X", [x], weight)], progress)
        self.n_iter_, self.history_ = self._clusterer.n_iter_, self._clusterer.history_
        return self

    def _restricted(self, raw: Nystroem, x: Columns, weight: Array, n_threads: int) -> Nystroem:
        """Return features in the basis of the leading eigenvectors of their second moments."""
        if self.n_components is None:
            return raw

        def moments(tile: slice) -> Array:
            features = raw(x[tile])
            features *= np.sqrt(weight[tile, None])
            return features.T @ features

        rank = raw.root.shape[1]
        if self.n_components > rank:
            warn(
                f"n_components={self.n_components}: exceeds the rank {rank} of the kernel matrix "
                f"between anchors. Set n_components to at most {rank}, or increase n_anchors.",
                UserWarning,
            )
        parts = run_all(moments, row_tiles(len(x), rank), n_threads)
        _, vectors = eigh(sum(parts[1:], parts[0]))
        return replace(raw, root=raw.root @ vectors[:, ::-1][:, : self.n_components])

    def _embedded(self, xs: list[Columns]) -> Array:
        def block(parts: list[Columns]) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):
                return self._features(parts[0]).astype(xs[0].dtype, copy=False)

        features = by_blocks(block, xs, len(self.anchors_), config.n_threads(self.n_jobs))
        checks.check_finite_kernel(features)
        return features

"""Power k-means, and the base of the estimators that anneal."""

from __future__ import annotations

from dataclasses import field

from rffpk.anneal.feature_fit import GivenInit, Metric, Problem, maps_of
from rffpk.anneal.fitted import Centroids
from rffpk.estimators.annealing import OF_FEATURES, Annealing, Init, Word, search_parameters
from rffpk.estimators.base import Clusterer, parameters
from rffpk.estimators.fitting import centroid_model, fit_features
from rffpk.estimators.partial import partial_fit
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto
from rffpk.rows.door import Schema


@parameters
class AnnealedClusterer(Clusterer):
    """Base of the estimators of centroids in a feature space that anneal the power mean."""

    annealing: Annealing | Word | None = "auto"
    sample: Auto | int | None = "auto"
    init: Init | GivenInit = "k-means++"
    max_iter: int = 1000
    tol: float = 1e-3
    noise: Auto | float | None = None
    # what a fit sets
    cluster_centers_: Array = field(init=False)
    sample_size_: int = field(init=False)
    outlier_scores_: Array = field(init=False)
    _centroids: Centroids = field(init=False)

    fit = fit_features
    _fitted_model, _paper = centroid_model, OF_FEATURES


@parameters
class PowerKMeans(AnnealedClusterer):
    """Power k-means: k-means annealed from a smooth objective.

    Minimizes sum_i M_s(||x_i - theta_1||^2, ..., ||x_i - theta_k||^2) over k centroids theta_j,
    with the power mean M_s(y) = ((1/k) sum_j y_j^s)^(1/s), while s < 0 falls to minus infinity,
    where this is k-means (Xu, Lange: Power k-means clustering. ICML 2019). A pass over n rows of d
    columns costs O(n k d) time; memory beyond X is O(n). Rules: ``docs/maintainers/annealing.md``.

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Starts, >= 1; the best is kept. "auto": 3; 1 for k >= 20, another `init` or schedule.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    annealing : {"auto", "paper"}, Annealing or None, default="auto"
        How s falls. "auto": adaptively, then k-means; None: k-means alone; "paper": as published.
    sample : "auto", int or None, default="auto"
        Number of rows, at least k, that starts run on. "auto": max(20 000, 50 k). None: all rows.
    init : {"k-means++", "random", "k-means"}, array or callable, default="k-means++"
        Initial centroids: rows; "k-means" adds passes of k-means. An array has k rows in the form
        of X; a callable (features, n_clusters, random_state=...) returns centroids of features.
    max_iter : int, default=1000
        Largest number of passes of a start, on each larger sample, and on all rows.
    tol : float, default=0.001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
    noise : "auto", float or None, default=None
        Share of weight, in (0, 1), to label -1 as noise; "auto": beyond a gap (``docs/noise.md``).
    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance. "cosine": spherical k-means (Dhillon, Modha 2001), of unit rows; no `whitening`.
    whitening : None or float, default=None
        None: cluster the columns. A number from 0 to 1: cluster at most 2 k principal components,
        divided by this power of their standard deviations (``docs/math.md``, eq. (20.1)).

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        Centroids, in the dtype of X; with `whitening` of shape (n_clusters, n_components).
    n_clusters_, selection_, linkage_ : int and NClustersSelection and ndarray
        Number of clusters; good numbers with scores, if none is given; Ward's tree of clusters.
    labels_, probabilities_ : ndarray of int32, shape (n_samples,) and ndarray of shape (n_samples,)
        Cluster of each row, the index of its nearest centroid; its membership in it, if stored.
    inertia_, objective_, s_, membership_exponent_ : float
        k-means cost, `-score(X)`; the minimized sum; its last finite s; s of `predict_proba`.
    n_iter_, sample_size_ : int
        Number of passes of the best start and of all that followed it; rows that starts ran on.
    n_buffered_ : int
        Number of rows that `partial_fit` keeps for its first fit; set by it alone.
    history_ : list of dict
        Records of passes and starts, in order; ``docs/api.md`` describes their keys.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Memberships of the rows, as `predict_proba` gives them; set if `store_memberships`.
    n_features_in_, feature_names_in_ : int and ndarray of str, shape (n_features_in_,)
        Number of columns of X in `fit`; their names, set if all of them are strings.
    outlier_scores_ : ndarray of shape (n_samples,)
        From 0 to 1, rising with the distance from other rows, above 1/2 for noise; set with `noise`
        if rows are in memory.

    Examples
    --------
    >>> from rffpk import PowerKMeans
    >>> PowerKMeans(2, random_state=0).fit_predict([[0.0], [0.2], [5.0], [5.2]]).tolist()
    [1, 1, 0, 0]
    """

    metric: Metric = "euclidean"
    whitening: float | None = None
    n_buffered_: int = field(init=False)  # what `partial_fit` sets

    partial_fit = partial_fit
    _takes = Schema("", narrow=True)

    def _problem(self) -> Problem:
        search, maps = search_parameters(self), maps_of(self.metric, self.whitening)
        return Problem(search, maps=maps, unit_centroids=self.metric == "cosine")

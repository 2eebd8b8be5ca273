"""Kernel power k-means on random Fourier features."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from rffpk.anneal import schedule
from rffpk.anneal.feature_fit import Problem
from rffpk.estimators.annealing import search_parameters
from rffpk.estimators.base import parameters
from rffpk.estimators.partial import partial_fit
from rffpk.estimators.power import AnnealedClusterer
from rffpk.estimators.transformers import fit_fourier
from rffpk.rows.door import Schema
from rffpk.rows.sample import Opened
from rffpk.rows.store import Cache, check_cache
from rffpk.spaces import fourier


@parameters
class RFFKernelPowerKMeans(AnnealedClusterer):
    """Kernel power k-means on random Fourier features (RFF-KPKM).

    Minimizes sum_i M_s(||phi(x_i) - theta_1||^2, ..., ||phi(x_i) - theta_k||^2) over k centroids
    theta_j. The map phi(x) = D^(-1/2) [sin(x Omega), cos(x Omega)] has D random frequencies, the
    columns of Omega. M_s(y) = ((1/k) sum_j y_j^s)^(1/s) is the power mean. The exponent s < 0 falls
    to minus infinity, where the objective is kernel k-means. See algorithm 1 and eqs. (2) to (5) of
    Chen et al.: Enhancing kernel power k-means: scalable and robust clustering with random Fourier
    features and possibilistic method. The published algorithm is ``annealing="paper",
    n_frequencies="paper"``.

    A pass over n rows of d columns costs O(n (d + k) D) time; memory beyond X is O(n), with stored
    features O(n D). Rules: ``docs/which.md`` and ``docs/maintainers/annealing.md``.

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
    kernel : {"rbf", "laplacian", "cauchy"}, default="rbf"
        Kernel: exp(-gamma ||x-y||^2), exp(-gamma ||x-y||_1), or prod_i 1 / (1 + gamma (x_i-y_i)^2).
    gamma : {"mean", "median", "scale"} or float, default="mean"
        Bandwidth > 0. "mean", "median": 1 / (2 mean or median distance) of rows, squared or, for
        "laplacian", absolute; "scale": 1 / (n_features X.var()).
    n_frequencies : {"auto", "paper"} or int, default="auto"
        Number of random frequencies D, at least 1. "auto": of 128, 256, ..., 8192 the least with a
        kernel error of 0.02 (``docs/math.md``, eq. (9.5)). "paper": ceil(4 log^3(2 k)), iid.
    sampling : {"auto", "orthogonal", "structured", "iid"}, default="auto"
        How frequencies are drawn; "orthogonal" and "structured" are for "rbf". "auto": for "rbf"
        "structured" from 32 columns on, "orthogonal" below; else "iid", independent.
    cache : "auto", bool or int, default="auto"
        Bytes for stored features. "auto": if faster, 1/4 of memory. True: all, or a MemoryError.

    Attributes
    ----------
    feature_map_ : RandomFourierFeatures
        Fitted feature map; `feature_map_.frequencies_` is Omega, of shape (n_features_in_, D).
    cluster_centers_ : ndarray of shape (n_clusters, 2 D)
        Centroids in feature space, in the dtype of X.
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
    cache_ : bool
        Whether the features of all rows were stored.
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
    >>> from rffpk import RFFKernelPowerKMeans
    >>> RFFKernelPowerKMeans(2, random_state=0).fit_predict([[0.0], [0.2], [5.0], [5.2]]).tolist()
    [1, 1, 0, 0]
    """

    kernel: fourier.Kernel = "rbf"
    gamma: fourier.Gamma | float = "mean"
    n_frequencies: fourier.Frequencies | int = "auto"
    sampling: fourier.Sampling = "auto"
    cache: Cache = "auto"
    # what a fit and `partial_fit` set
    cache_: bool = field(init=False)
    n_buffered_: int = field(init=False)

    partial_fit = partial_fit
    _takes = Schema("", narrow=True, warns_of_kernels=True)

    def _problem(self) -> Problem:
        given = search_parameters(self)
        fourier.check_n_frequencies(self.n_frequencies)
        fourier.check_kernel(self.kernel, self.gamma, self.sampling)
        return Problem(given, maps=self._maps, cache=check_cache(self.cache))

    def _maps(self, sample: Opened, context: schedule.FitContext) -> list[Any]:
        """Fit the random features, and set `feature_map_`; return the map in a list."""
        self.feature_map_ = fit_fourier(self, self, sample, 0, context.k, context.random)
        return [self.feature_map_._space]

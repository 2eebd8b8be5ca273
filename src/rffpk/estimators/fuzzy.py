"""Fuzzy c-means, as an estimator and as a function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances

from rffpk.anneal.convergence_warnings import Ending, rows_of_clusters
from rffpk.anneal.feature_fit import GivenInit, Metric, Problem, maps_of
from rffpk.anneal.plan import SearchParameters, search_plan
from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import FitContext, Plan, Result, Schedule, given_starts
from rffpk.estimators.annealing import Init, search_parameters
from rffpk.estimators.base import Clusterer, parameters
from rffpk.estimators.fitting import centroid_model, fit_features
from rffpk.estimators.partial import partial_fit
from rffpk.metrics import checked_memberships, partition_coefficient
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto, is_option
from rffpk.rows.door import Schema
from rffpk.rows.passes import centered, column_rows, one_pass, total_variance
from rffpk.rows.rows import Rows
from rffpk.rows.sums import power_constant
from rffpk.rows.table import Columns, unit_rows, weighted_sums
from rffpk.rows.weights import ones
from rffpk.system import config
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING

MAX_M = 6.0  # the fuzzifier at s = MAX_S


@parameters
class FuzzyCMeans(Clusterer):
    """Fuzzy c-means, as the power mean with fixed exponent s = -1/(m-1).

    Minimizes J_m = sum_ij u_ij^m ||x_i - theta_j||^2 over memberships u with rows that sum to one
    and centroids theta (Bezdek, Ehrlich, Full: FCM: the fuzzy c-means clustering algorithm.
    Computers & Geosciences 1984), which is k^(-(m-1)) times a sum of power means (``docs/math.md``,
    section 5). A pass over n rows of d columns costs O(n k d) time; memory beyond X is O(n).

    Parameters
    ----------
    n_clusters : {"coarse", "auto", "fine"} or int, default=8
        Number k of clusters, 1 to n_samples, or how to find it (``docs/clusters_number.md``).
    n_init : "auto" or int, default="auto"
        Number of starts at `m`, or of the search before if ``m="auto"``, at least 1. "auto": one;
        with ``init="k-means++"`` it follows the starts and swaps of `PowerKMeans`.
    store_memberships : bool, default=False
        Whether `memberships_` is set, which takes O(n_samples n_clusters) memory.
    random_state : int, RandomState instance or None, default=None
        Source of all random draws. An int gives the same result in each call.
    n_jobs : int or None, default=None
        Number of threads, -1024 to 1024 except 0; None and -1: all allowed, -2: all except one.
    verbose : int, default=0
        1: a line every five seconds at most, and one at the end; 2: a line for each pass.
    m : float or "auto", default=2.0
        Fuzzifier, 1 < m <= 6; near 1: k-means. "auto": calibrated (``docs/math.md``, eq. (8.7)).
    sample : "auto", int or None, default="auto"
        Number of rows, at least k, that starts run on. "auto": max(20 000, 50 k). None: all rows.
    init : {"k-means++", "random", "k-means"}, array or callable, default="k-means++"
        Initial centroids: rows; "k-means" adds passes of k-means. An array has k rows in the form
        of X, or memberships; a callable (features, n_clusters, random_state=...) returns centroids.
    max_iter : int, default=300
        Largest number of passes of a start, on each larger sample, and on all rows.
    tol : float, default=0.0001
        Passes end when centroids move by at most `tol` >= 0 times the root of the total variance.
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
    inertia_, objective_, s_, membership_exponent_, m_ : float
        k-means cost, `-score(X)`; J_m, as in `history_`; both -1/(m-1); the fuzzifier m.
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

    Examples
    --------
    >>> from rffpk import FuzzyCMeans
    >>> model = FuzzyCMeans(2, random_state=0).fit([[0.0], [0.2], [5.0], [5.2]])
    >>> model.predict_proba([[2.6]]).round(2).tolist()
    [[0.5, 0.5]]
    """

    m: Auto | float = 2.0
    sample: Auto | int | None = "auto"
    init: Init | GivenInit = "k-means++"
    max_iter: int = 300
    tol: float = 1e-4
    metric: Metric = "euclidean"
    whitening: float | None = None
    # what a fit sets
    cluster_centers_: Array = field(init=False)
    m_: float = field(init=False)
    sample_size_: int = field(init=False)
    n_buffered_: int = field(init=False)

    fit, partial_fit, _fitted_model = fit_features, partial_fit, centroid_model
    _takes = Schema("", narrow=True)

    def _problem(self) -> Problem:
        """Check the parameters, and return the problem that they define."""
        search, maps = search_parameters(self), maps_of(self.metric, self.whitening)
        check_m(self.m)
        # With a number m, and `init` or `n_init` of the user, all passes are at the fuzzifier.
        if not (is_option(self.m, "auto") or (search.differs and search.n_init is None)):
            search = replace(search, differs=False, ends_hard=False)
        return Problem(
            search, self._plan, maps, given=self._centroids_of_memberships,
            unit_centroids=self.metric == "cosine", published=self._published,
        )  # fmt: skip

    def _centroids_of_memberships(self, rows: Rows, k: int) -> Array | None:
        """Return the centroids (k, F) of the memberships (n, k) in `init`.

        Return None if `init` has centroids, or if the rows come from a stream."""
        init: Any = self.init
        with checks.named("init"):
            shape = np.shape(init)
        of_centroids = shape == (k, self.n_features_in_)
        if shape != (rows.n, k) or of_centroids or rows.stream is not None:
            return None
        u = checked_memberships(init, "init") ** (2.0 if isinstance(self.m, str) else float(self.m))
        x = rows.xs[0].astype(np.float64)
        return _centroids(unit_rows(x) if rows.unit_centroids else x, rows.weight[:, None] * u)

    def _plan(
        self, search: SearchParameters, context: FitContext, critical: float, objective: PowerMean
    ) -> Plan:
        """Return the plan: starts at the fuzzifier, or a search that ends hard.

        The search has the starts and swaps of power k-means. Passes at the fuzzifier follow it."""
        if not search.ends_hard:
            return self._fixed(context.k, critical)
        coarse = replace(search, tol=max(search.tol, TUNING.fuzzy.search_tol))
        plan = search_plan(coarse, context, critical, objective)
        return replace(plan, soft_end=partial(self._fixed, context.k))

    def _fixed(self, k: int, critical: float, exponent: float = -math.inf) -> Plan:
        """Return the plan of passes at the exponent of the fuzzifier m.

        With m="auto" the exponent is `exponent`, the exponent of memberships, if it is finite, else
        -1. It is kept well below the critical exponent (docs/math.md, section 8)."""
        s, automatic = -1.0, isinstance(self.m, str)
        if not automatic:
            s = -1 / (float(self.m) - 1)
        elif math.isfinite(exponent):
            # The critical exponent is hugely negative if rows are equal, or have one direction, up
            # to rounding.
            s = max(min(exponent, TUNING.fuzzy.below_critical * critical), -1e6)
        tol = float(self.tol)
        schedule = Schedule(start=s, end=s, passes=1, max_iter=int(self.max_iter), tol=tol)
        starts = given_starts(schedule, self.init, self.n_init)
        unit = 1 / power_constant(k, s)  # fuzzy c-means sums M', not the power mean M_s
        return Plan(
            starts, k, unit=unit, critical=critical, lowered_by="m='auto'" if automatic else "m"
        )

    def _published(self, result: Result) -> None:
        self.m_ = 1 - 1 / self.s_


def check_m(m: Any, highest: float | None = MAX_M) -> None:
    """Check the fuzzifier: "auto", or a number above 1 and at most `highest`, if that is given."""
    if not is_option(m, "auto"):
        include = "neither" if highest is None else "right"
        checks.check_real(m, "m", 1, highest, include=include, also="'auto'")


# ---- the function --------------------------------------------------------------------------------


class CMeansResult(NamedTuple):
    """The result of `cmeans`; c clusters, n rows, d columns."""

    cntr: NDArray[np.float64]  # centroids (c, d)
    u: NDArray[np.float64]  # memberships (c, n)
    u0: NDArray[np.float64]  # initial memberships (c, n)
    d: NDArray[np.float64]  # distances to the centroids (c, n)
    jm: NDArray[np.float64]  # objective of each iteration (p,)
    p: int  # number of iterations
    fpc: float  # partition coefficient of u


def cmeans(
    X: Any,
    c: int,
    m: float | Auto = 2.0,
    error: float = 0.005,
    maxiter: int = 1000,
    init: Any = None,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> CMeansResult:
    """Run fuzzy c-means from given or random memberships, with the results of scikit-fuzzy.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers; rows are samples (scikit-fuzzy's function takes the transpose).
    c : int
        Number of clusters, from 1 to n_samples.
    m : float or "auto"
        Fuzzifier, 1 < m <= 6. "auto": that of a `FuzzyCMeans` with ``m="auto"``.
    error : float
        The iterations end when the memberships change by less than this number >= 0, in the
        Frobenius norm.
    maxiter : int
        Largest number of iterations, at least 1.
    init : array-like of shape (c, n_samples), optional
        Initial memberships >= 0, scaled to columns that sum to one; None: uniform random numbers.
    random_state : int, RandomState instance or None
        Draws the memberships if `init` is None.
    n_jobs : int or None
        Number of threads, as for the estimators.

    Returns
    -------
    result : CMeansResult
        A named tuple (cntr, u, u0, d, jm, p, fpc): centroids (c, n_features), final memberships,
        initial memberships and Euclidean distances (c, n_samples), objectives of the iterations
        (p,), number of iterations, and partition coefficient.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or X seems to have samples as columns: `init` has its
        shape, c is larger than the number of rows, or there are fewer than two rows for each
        cluster and more than four columns for each row.

    Warns
    -----
    UserWarning
        If X has more than four columns for each row, as scikit-fuzzy's data, and no `init`.
    ConvergenceWarning
        If memberships do not tell all clusters apart.

    Notes
    -----
    An iteration computes centroids from memberships, and then memberships from distances; jm is
    sum_ij u_ij^m d_ij^2 of the memberships before and the distances after [1]_. O(n c d) time an
    iteration, O(n c) memory. `FuzzyCMeans` does the same without storing memberships, starts from
    k-means++ and labels new rows.

    References
    ----------
    .. [1] Bezdek, Ehrlich, Full: FCM: the fuzzy c-means clustering algorithm. Computers &
       Geosciences 1984.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from rffpk import cmeans
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> cntr, u, u0, d, jm, p, fpc = cmeans(X, 3, random_state=0)
    >>> cntr.shape, u.shape
    ((3, 2), (3, 300))
    """
    X = checks.finite_array(X, "X", order="C")
    _check_orientation(X, c, init)
    c = checks.check_int(c, "c", 1, len(X))
    check_m(m)
    error = checks.check_real(error, "error", 0)
    maxiter = checks.check_int(maxiter, "maxiter", 1)
    random = checks.check_random_state(random_state)
    if init is None:
        u = random.uniform(size=(len(X), c))
    else:
        u = checks.finite_array(init, "init", copy=True).T
        if u.shape != (len(X), c):
            raise ValueError(f"init.shape={u.T.shape}: must be {(c, len(X))}. Pass (c, n_samples).")
        if (u < 0).any() or not u.any(axis=1).all():
            raise ValueError("init: has negative numbers or columns of zeros. Pass memberships.")
    u /= u.max(axis=1, keepdims=True)  # so that sums of very large numbers do not overflow
    u /= u.sum(axis=1, keepdims=True)
    if isinstance(m, str):
        seed = random.randint(2**31 - 1)
        m = FuzzyCMeans(c, m=m, random_state=seed, n_jobs=n_jobs).fit(X).m_
    with config.one_blas_thread():
        rows = centered(column_rows(X, ones(len(X)), config.n_threads(n_jobs)))
        total_variance(rows)  # raises an error if the variance underflows or overflows
        found = _iterate(rows, u, float(m), error, maxiter)
    warn_of_merged(found, float(m), euclidean_distances)
    return found


def _check_orientation(X: Array, c: Any, init: Any) -> None:
    """Raise an error, or warn, if the rows of X look like columns."""
    remedy = "rows are samples: pass X.T for scikit-fuzzy's data, or use rffpk.compat.skfuzzy."
    n, d = X.shape
    if init is not None and n != d and np.shape(init) == (c, d):
        raise ValueError(f"init has shape {(c, d)}, must be {(c, n)}; {remedy}")
    if isinstance(c, int) and n < c <= d:
        raise ValueError(f"c={c}: must not exceed the number of rows ({n}); {remedy}")
    if init is None and d > 4 * n:
        if isinstance(c, int) and 1 < c <= n < 2 * c:
            raise ValueError(f"X has {n} rows, too few for c={c}, and {d} columns; {remedy}")
        warn(f"X has {n} rows and {d} columns; {remedy}", UserWarning)


def _iterate(rows: Rows, u0: Array, m: float, error: float, most: int) -> CMeansResult:
    """Iterate fuzzy c-means from memberships u0 (n, c) with the fuzzifier m; return the result.

    An iteration is a pass, which returns memberships, distances, and sums for the next centroids.
    At most `most` iterations are made, until the memberships change by less than `error`."""
    s, u = -1 / (m - 1), u0
    jm: list[float] = []
    following = _centroids(rows.xs[0], u**m) - rows.shift
    change = math.inf
    while len(jm) < most and change >= error:
        theta, before = following, u
        sums, outputs = one_pass(rows, theta, s, want=("memberships", "distances"))
        u, squares = outputs["memberships"], outputs["distances"]
        checks.check_overflow(float(squares.max()), rows.dtype)
        jm.append(float(np.einsum("ij,ij->", before**m, squares)))
        change = float(np.linalg.norm(u - before))
        following = rows.centroids(sums, theta)
    return CMeansResult(
        theta + rows.shift, u.T, u0.T, np.sqrt(squares).T, np.array(jm), len(jm),
        partition_coefficient(u),
    )  # fmt: skip


def warn_of_merged(
    result: CMeansResult, m: float, distances: Callable[[Array, Array], Array]
) -> None:
    """Warn if the memberships of several clusters coincide.

    `distances` returns the distances between two sets of centroids."""
    c, labels = len(result.cntr), result.u.argmax(axis=0)
    index = rows_of_clusters(labels, c)
    ending = Ending(c, len(np.unique(labels)), -1 / (m - 1), math.nan, "m").of_memberships(
        result.u.T[index], labels[index], result.d.T[index] ** 2,
        lambda part: distances(result.cntr[part], result.cntr) ** 2,
    )  # fmt: skip
    if ending.found < c:
        warn(
            f"c={c}: memberships tell {ending.found} clusters apart. Choose a smaller c or m, or "
            "take a FuzzyCMeans, which starts from k-means++.",
            ConvergenceWarning,
        )


def _centroids(x: Columns, weights: Array) -> Array:
    """Return weighted means (k, d) of the rows of x (n, d) with the weights (n, k).

    If all weights of a cluster are zero, its mean is the mean of all rows."""
    totals = weights.sum(axis=0)
    weights = np.where(totals > 0, weights, 1.0)
    return np.asarray(weighted_sums(x, weights) / weights.sum(axis=0)[:, None])

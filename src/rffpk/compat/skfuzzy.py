"""scikit-fuzzy's `cmeans` and `cmeans_predict`: columns of `data` are samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import softmax

from rffpk.estimators import fuzzy
from rffpk.metrics import partition_coefficient
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.checks import Auto

_EPS = float(np.finfo(np.float64).eps)  # the least membership and distance


class Prediction(NamedTuple):
    """The result of `cmeans_predict`; c clusters, n samples."""

    u: NDArray[np.float64]  # memberships (c, n)
    u0: NDArray[np.float64]  # initial memberships (c, n)
    d: NDArray[np.float64]  # distances to the centers (c, n)
    jm: NDArray[np.float64]  # objective of each iteration (p,)
    p: int  # number of iterations
    fpc: float  # partition coefficient of u


def cmeans(
    data: Any, c: int, m: float | Auto, error: float, maxiter: int, metric: Any = "euclidean",
    init: Any = None, seed: Any = None,
) -> fuzzy.CMeansResult:  # fmt: skip
    """Fit fuzzy c-means with the arguments of scikit-fuzzy's function.

    Parameters
    ----------
    data : array-like of shape (n_features, n_samples)
        Finite numbers; columns are samples.
    c : int
        Number of clusters, from 1 to n_samples.
    m : float or "auto"
        Fuzzifier > 1. "auto", which scikit-fuzzy does not have: that of a `FuzzyCMeans` with
        ``m="auto"``, for Euclidean distances.
    error : float
        The iterations end when the memberships change by less, in the Frobenius norm.
    maxiter : int
        Largest number of iterations, at least 1.
    metric : str or callable, default="euclidean"
        A metric of `scipy.spatial.distance.cdist`. Centers are means whatever it is. The compiled
        core computes "euclidean" with m <= 6, and NumPy the rest.
    init : array-like of shape (c, n_samples), optional
        Initial memberships >= 0; None: uniform random numbers.
    seed : int, RandomState instance or None
        Draws the memberships if `init` is None, as scikit-fuzzy does. None: NumPy's global
        generator.

    Returns
    -------
    cntr, u, u0, d, jm, p, fpc : CMeansResult
        Centers (c, n_features), memberships, initial memberships and distances (c, n_samples),
        objectives (p,), number of iterations, and partition coefficient.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Warns
    -----
    ConvergenceWarning
        If memberships do not tell all clusters apart.
    """
    fuzzy.check_m(m, highest=None)
    x, u0 = _checked(data, c, error, maxiter, init, seed)
    if isinstance(m, str):
        m = fuzzy.FuzzyCMeans(c, m=m, random_state=0).fit(x).m_
    if isinstance(metric, str) and metric == "euclidean" and m <= fuzzy.MAX_M:
        found = fuzzy.cmeans(x, c, m, error, maxiter, np.fmax(u0, _EPS))
        return found._replace(u0=u0)
    u, change = np.fmax(u0, _EPS), np.inf
    jm: list[float] = []
    while len(jm) < maxiter and change >= error:
        powers = _normalized(u) ** m
        cntr = powers @ x / powers.sum(axis=1, keepdims=True)
        d = _distances(x, cntr, metric)
        before, u = u, _memberships(d, m)
        jm.append(float((powers * d**2).sum()))
        change = float(np.linalg.norm(u - before))
    fpc = partition_coefficient(u.T)
    result = fuzzy.CMeansResult(cntr, u, u0, d, np.array(jm), len(jm), fpc)
    fuzzy.warn_of_merged(result, m, lambda x, y: _distances(y, x, metric))
    return result


def cmeans_predict(
    test_data: Any, cntr_trained: Any, m: float, error: float, maxiter: int,
    metric: Any = "euclidean", init: Any = None, seed: Any = None,
) -> Prediction:  # fmt: skip
    """Predict memberships in given clusters, with the arguments of scikit-fuzzy's function.

    Parameters
    ----------
    test_data : array-like of shape (n_features, n_samples)
        Finite numbers; columns are samples.
    cntr_trained : array-like of shape (c, n_features)
        Centers.
    m : float
        Fuzzifier > 1.
    error, maxiter : float, int
        As of `cmeans`. Memberships follow from the centers at once, so that a second iteration only
        finds that nothing changes.
    metric : str or callable, default="euclidean"
        A metric of `scipy.spatial.distance.cdist`.
    init : array-like of shape (c, n_samples), optional
        Initial memberships, which matter for `u0` and the first number of `jm` alone.
    seed : int, RandomState instance or None
        As of `cmeans`.

    Returns
    -------
    u, u0, d, jm, p, fpc : Prediction
        As of `cmeans`, without centers.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.
    """
    cntr = checks.finite_array(cntr_trained, "cntr_trained")
    checks.check_real(m, "m", 1, include="neither")
    x, u0 = _checked(test_data, len(cntr), error, maxiter, init, seed, most=len(cntr))
    if x.shape[1] != cntr.shape[1]:
        raise ValueError(
            f"test_data has {x.shape[1]} rows, must have {cntr.shape[1]}, a row for each feature."
        )
    d = _distances(x, cntr, metric)
    # The second iteration changes nothing, so that it is the last if `error` is above zero.
    u, before = _memberships(d, m), np.fmax(u0, _EPS)
    p = 1 if maxiter == 1 or np.linalg.norm(u - before) < error else 2
    p = p if error > 0 else maxiter
    # the memberships that each iteration begins with, for its objective
    steps = [_normalized(before), *[u] * (p - 1)]
    jm = np.array([float((each**m * d**2).sum()) for each in steps])
    return Prediction(u, u0, d, jm, len(jm), partition_coefficient(u.T))


def _checked(
    data: Any, c: int, error: float, maxiter: int, init: Any, seed: Any, most: int | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the samples as rows, and the initial memberships (c, n).

    `most` is the largest c that is allowed; None: the number of samples."""
    x = np.ascontiguousarray(checks.finite_array(data, "data").T)
    checks.check_int(c, "c", 1, most or len(x))
    checks.check_real(error, "error", 0)
    checks.check_int(maxiter, "maxiter", 1)
    if init is None:
        return x, _normalized(checks.check_random_state(seed).rand(c, len(x)))
    u0 = checks.finite_array(init, "init", copy=True)
    if u0.shape != (c, len(x)):
        raise ValueError(f"init has shape {u0.shape}, must be {(c, len(x))}: (c, n_samples).")
    if (u0 < 0).any() or not u0.any(axis=0).all():
        raise ValueError("init must be >= 0, with columns that are not zero.")
    return x, u0


def _normalized(u: Array) -> Array:
    return np.asarray(np.fmax(u / u.sum(axis=0), _EPS))


def _distances(x: Array, cntr: Array, metric: Any) -> Array:
    if not isinstance(metric, str) and not callable(metric):
        raise TypeError(f"metric={metric!r}: is no metric. Pass a name or a function of two rows.")
    called = callable(metric)
    with checks.of_two_rows(metric, "metric") if called else checks.named("metric"):
        return np.fmax(cdist(cntr, x, metric=metric), _EPS)


def _memberships(d: Array, m: float) -> Array:
    shares = np.fmax(d / d.max(axis=0), _EPS)
    return np.asarray(softmax(-2 / (m - 1) * np.log(shares), axis=0))

"""The number of clusters: fits for several, compared by indices of validity and by stability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import (
    adjusted_rand_score,
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)
from sklearn.utils.random import sample_without_replacement

from rffpk._anneal.convergence_warnings import few_rows
from rffpk._utils import validation
from rffpk._utils.arrays import Array
from rffpk._utils.messages import warn, without
from rffpk._utils.validation import Auto
from rffpk.diffusion import DiffusionPowerKMeans
from rffpk.fuzzy import FuzzyCMeans
from rffpk.metrics import xie_beni_index
from rffpk.power import PowerKMeans, RFFKernelPowerKMeans

Criterion = Literal["silhouette", "calinski_harabasz", "davies_bouldin", "xie_beni", "stability"]

# Indices, and whether the largest value or the least is the best.
_INDICES: dict[str, Callable[..., Any]] = {
    "silhouette": max,
    "calinski_harabasz": max,
    "davies_bouldin": min,
    "xie_beni": min,
    "stability": max,
}
_SILHOUETTE_ROWS = 2000  # all pairs of distances between them
_RESAMPLE = 0.7  # the part of the rows that a fit for the stability sees
_EQUAL = 1e-9  # indices that differ by less are equal; the larger number of clusters is then better
_QUICK = -5.0  # where fits for the stability begin to anneal, unless s0 of the estimator is given
_SOFT = -1.0  # the exponent of the memberships of the index of Xie and Beni: m = 2


@dataclass(frozen=True)
class NClustersSelection:
    """The result of `select_n_clusters`.

    Attributes
    ----------
    n_clusters : int
        The best number of clusters by `criterion`.
    criterion : str
        Name of the index that decided.
    tried : ndarray of int, shape (n_tried,)
        Numbers of clusters, rising.
    indices : dict of str to ndarray of shape (n_tried,)
        Values of "silhouette", "calinski_harabasz", "stability" (larger is better),
        "davies_bouldin", "xie_beni" (smaller is better), and "inertia", for each number.
    """

    n_clusters: int
    criterion: str
    tried: NDArray[np.int64]
    indices: dict[str, NDArray[np.float64]] = field(repr=False)


def select_n_clusters(
    X: Any,
    n_clusters: Any = range(2, 11),
    *,
    estimator: Any = None,
    criterion: Auto | Criterion = "auto",
    n_resamples: int = 5,
    sample: int = 10_000,
    random_state: Any = None,
) -> NClustersSelection:
    """Fit for several numbers of clusters, and choose one by an index of validity.

    The rows are mapped once, by the feature map that the estimator fits for the largest number, so
    that values for different numbers compare.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers.
    n_clusters : iterable of int
        Numbers of clusters to try, at least 2 and less than the number of rows taken.
    estimator : PowerKMeans, FuzzyCMeans, RFFKernelPowerKMeans or DiffusionPowerKMeans, optional
        Its class and parameters define the features and the search; it is not changed. None: a
        `PowerKMeans` with its defaults.
    criterion : str
        The index that decides: "silhouette", "calinski_harabasz", "davies_bouldin", "xie_beni" or
        "stability". "auto": "stability" with diffusion features, whose compactness
        always grows with their number, else "silhouette".
    n_resamples : int
        Number of fits, at least 2, from which the stability of a number is computed.
    sample : int
        Largest number of rows that are used, at least 2; they are drawn at random.
    random_state : int, RandomState instance or None
        Draws the rows, and all of what the fits draw. An int gives the same result in each call.

    Returns
    -------
    selection : NClustersSelection
        The number chosen, and the values of all indices.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Warns
    -----
    ConvergenceWarning
        If the rows have none of the numbers of clusters tried, as too few are distinct: the least
        one is then returned.

    Notes
    -----
    A number of clusters that the rows do not have has the worst value of each index. The silhouette
    is that of 2000 rows, and one more of each cluster. The stability is the mean adjusted Rand
    index of the labels of all pairs of `n_resamples` fits, of one start each to 70 % of the rows,
    that label all rows. The index of Xie and Beni takes memberships with the fuzzifier 2. Of equal
    values that of the larger number counts. One fit and `n_resamples` small ones for each number.

    The objective, and hence `score`, says nothing about the number of clusters: it always falls.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from rffpk import select_n_clusters
    >>> X, _ = make_blobs(500, centers=5, cluster_std=0.5, random_state=2)
    >>> select_n_clusters(X, range(2, 9), random_state=0).n_clusters
    5
    """
    estimator = PowerKMeans() if estimator is None else estimator
    _check_estimator(estimator)
    validation.check_choice(criterion, "criterion", ("auto", *get_args(Criterion)))
    n_resamples = validation.check_int(n_resamples, "n_resamples", 2)
    random = validation.check_random_state(random_state)
    rows = _some_rows(X, validation.check_int(sample, "sample", 2), random)
    tried = _numbers(n_clusters, len(rows))
    seed = random.randint(2**31 - 1)
    features, model = _features(estimator, rows, tried[-1], seed)
    values = [_indices(model, features, k, n_resamples, seed) for k in tried]
    indices = {name: np.array([each[name] for each in values]) for name in values[0]}
    if criterion == "auto":
        diffusion = isinstance(estimator, DiffusionPowerKMeans)
        criterion = "stability" if diffusion else "silhouette"
    chosen = _best(indices[criterion], _INDICES[criterion])
    if (indices["silhouette"] == -1).all():
        chosen, cause = 0, few_rows("X", [rows])(tried[0]) or "their centroids merge."
        warn(f"The rows have none of the numbers of clusters tried: {cause}", ConvergenceWarning)
    return NClustersSelection(tried[chosen], criterion, np.array(tried), indices)


def _check_estimator(estimator: Any) -> None:
    kinds = (PowerKMeans, FuzzyCMeans, RFFKernelPowerKMeans, DiffusionPowerKMeans)
    if type(estimator) not in kinds:
        names = ", ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"estimator == {estimator!r}, must be one of {names}.")
    if not isinstance(estimator.init, str):
        raise ValueError("estimator has initial centroids, must draw them: set init to a word.")


def _some_rows(X: Any, most: int, random: Any) -> Array:
    validation.refuse_sparse(X, "X", "select_n_clusters")
    rows = validation.check_rows(PowerKMeans(), X, reset=True)
    if len(rows) <= most:
        return rows
    return rows[np.sort(sample_without_replacement(len(rows), most, random_state=random))]


def _numbers(n_clusters: Any, n: int) -> list[int]:
    try:
        given = list(n_clusters)
    except TypeError as error:
        raise TypeError(f"n_clusters == {n_clusters!r}, must be an iterable of int.") from error
    tried = sorted({validation.check_int(k, "n_clusters", 2, n - 1) for k in given})
    if not tried:
        raise ValueError("n_clusters is empty, must have at least one number.")
    return tried


def _features(estimator: Any, rows: Array, most: int, seed: int) -> tuple[Array, Any]:
    """The features of the rows, and the estimator that clusters them."""
    if not isinstance(estimator, (RFFKernelPowerKMeans, DiffusionPowerKMeans)):
        if getattr(estimator, "whitening", None) is not None:
            raise ValueError(
                f"whitening == {estimator.whitening} makes other features for each number of "
                "clusters: whiten the rows first, such as by sklearn.decomposition.PCA."
            )
        return rows, estimator
    fitted = clone(estimator).set_params(n_clusters=most, random_state=seed).fit(rows)
    shared = PowerKMeans().get_params().keys() & estimator.get_params().keys()
    shared.discard("whitening")  # the features are made of whitened rows if it asks for that
    parameters = {name: getattr(estimator, name) for name in shared}
    return fitted.feature_map_.transform(rows), PowerKMeans(**parameters)


def _indices(model: Any, features: Array, k: int, n_resamples: int, seed: int) -> dict[str, float]:
    with without(ConvergenceWarning):
        fitted = clone(model).set_params(n_clusters=k, random_state=seed).fit(features)
    labels = fitted.labels_
    if len(np.unique(labels)) < k:  # the rows have no k clusters
        worst = {name: -1.0 if best is max else np.inf for name, best in _INDICES.items()}
        return {"inertia": fitted.inertia_, **worst}
    memberships = fitted.predict_proba(features, s=_SOFT)
    values = {
        "inertia": fitted.inertia_,
        "xie_beni": xie_beni_index(features, memberships, fitted.cluster_centers_),
        "stability": _stability(model, features, k, n_resamples, seed),
    }
    some = _rows_of_all(labels, np.random.RandomState(seed))
    return values | {
        "silhouette": silhouette_score(features[some], labels[some]),
        "calinski_harabasz": calinski_harabasz_score(features, labels),
        "davies_bouldin": davies_bouldin_score(features, labels),
    }


def _rows_of_all(labels: Array, random: Any) -> Array:
    """At most _SILHOUETTE_ROWS random rows, and one row of each cluster."""
    n = len(labels)
    if n <= _SILHOUETTE_ROWS:
        return np.arange(n)
    drawn = sample_without_replacement(n, _SILHOUETTE_ROWS, random_state=random)
    return np.union1d(drawn, np.unique(labels, return_index=True)[1])


def _stability(model: Any, features: Array, k: int, n_resamples: int, seed: int) -> float:
    random, n = np.random.RandomState(seed), len(features)
    model = clone(model).set_params(n_clusters=k, n_init=1)
    if validation.is_option(getattr(model, "s0", None), "auto"):
        model.set_params(s0=_QUICK)
    labels = []
    for _ in range(n_resamples):
        model.set_params(random_state=random.randint(2**31 - 1))
        part = sample_without_replacement(n, max(k, round(_RESAMPLE * n)), random_state=random)
        with without(ConvergenceWarning):
            labels.append(model.fit(features[np.sort(part)]).predict(features))
    return float(np.mean([adjusted_rand_score(a, b) for a, b in combinations(labels, 2)]))


def _best(values: NDArray[np.float64], extreme: Any) -> int:
    """The last place whose value is the best up to rounding."""
    best = extreme(values)
    near = np.isclose(values, best, rtol=_EQUAL, atol=_EQUAL)
    return int(np.flatnonzero(near | (values == best))[-1])

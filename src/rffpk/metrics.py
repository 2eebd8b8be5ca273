"""Measures of a clustering: against known classes, and of memberships on their own."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist
from scipy.special import entr
from sklearn.base import clone
from sklearn.metrics import normalized_mutual_info_score, silhouette_samples
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import gen_batches
from sklearn.utils.validation import column_or_1d

from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.containers import dimensions, gaps_in, is_list_of_views, length
from rffpk.system.tuning import TUNING


def _classes(labels: Any, name: str) -> Array:
    """Return the labels as an array (n,). Refuse missing labels, which are no class."""
    checks.check_container(labels, name)
    try:
        classes = np.asarray(column_or_1d(labels))
        vectors = classes.dtype.kind == "O" and any(
            np.iterable(label) and not isinstance(label, (str, bytes)) for label in classes
        )
    except ValueError:
        vectors = True
    if vectors:
        raise ValueError(
            f"{name}: is not one-dimensional. Pass one label, a number or a string, for each "
            "sample."
        )
    if classes.dtype.kind in "fO" and (missing := gaps_in(classes.astype(object))).any():
        raise ValueError(
            f"{name}: {missing.sum()} of {len(classes)} samples have no label (NaN or None). "
            "Leave these samples out."
        )
    return classes


def _contingency(labels_true: Any, labels_pred: Any) -> Any:
    """Check labels, and return the numbers of samples by class and cluster."""
    labels_true = _classes(labels_true, "labels_true")
    labels_pred = _classes(labels_pred, "labels_pred")
    if len(labels_true) != len(labels_pred):
        raise ValueError(
            f"labels_pred has {len(labels_pred)} labels, must have {len(labels_true)} like "
            "labels_true."
        )
    if not len(labels_true):
        raise ValueError("labels_true and labels_pred are empty, must have at least one label.")
    return contingency_matrix(labels_true, labels_pred)


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Compute the accuracy of the best one-to-one matching of clusters to classes.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Class of each sample, an integer or a string.
    labels_pred : array-like of shape (n_samples,)
        Cluster of each sample, an integer or a string. There may be more or fewer clusters than
        classes.

    Returns
    -------
    accuracy : float
        Fraction of samples that the matching gets right, in [0, 1]; invariant to renaming of the
        labels, and symmetric.

    Raises
    ------
    ValueError
        If the arguments are empty, not one-dimensional or of different lengths, or labels are
        missing (NaN or None).

    Notes
    -----
    Known as ACC; the matching is the optimal assignment of the contingency table. O(n + c^3) time
    for n samples and c clusters and classes.

    Examples
    --------
    >>> from rffpk.metrics import clustering_accuracy
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    table = _contingency(labels_true, labels_pred)
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / table.sum())


def purity_score(labels_true: Any, labels_pred: Any) -> float:
    """Return the fraction of samples that belong to the most frequent class of their cluster.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Class of each sample, an integer or a string.
    labels_pred : array-like of shape (n_samples,)
        Cluster of each sample, an integer or a string.

    Returns
    -------
    purity : float
        In (0, 1]; never lower after a cluster is split, and one if every cluster has one sample.

    Raises
    ------
    ValueError
        If the arguments are empty, not one-dimensional or of different lengths, or labels are
        missing (NaN or None).

    Examples
    --------
    >>> from rffpk.metrics import purity_score
    >>> purity_score([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = _contingency(labels_true, labels_pred)
    return float(table.max(axis=0).sum() / table.sum())


# ---- repeated runs -------------------------------------------------------------------------------


class RepeatedScores(NamedTuple):
    """Scores of fits of several seeds; its text has means and standard deviations in percent."""

    acc: Array  # `clustering_accuracy`
    nmi: Array  # mutual information over the arithmetic mean of the entropies
    purity: Array  # `purity_score`
    seconds: Array  # of the fits

    def __str__(self) -> str:
        named = zip(("ACC", "NMI", "purity"), self)
        scores = (f"{name} {100 * x.mean():.1f} ± {100 * x.std():.1f}" for name, x in named)
        return f"{', '.join(scores)}; {self.seconds.mean():.2f} s, {len(self.acc)} runs"


def scores_of_labels(labels_true: Any, labels_pred: Any) -> tuple[float, float, float]:
    """Return ACC, NMI and purity, as papers on clustering report them.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Class of each sample.
    labels_pred : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    acc, nmi, purity : float
        `clustering_accuracy`, scikit-learn's `normalized_mutual_info_score`, and `purity_score`.
    """
    scores = (clustering_accuracy, normalized_mutual_info_score, purity_score)
    acc, nmi, purity = (float(score(labels_true, labels_pred)) for score in scores)
    return acc, nmi, purity


def repeated_scores(
    estimator: Any, X: Any, labels_true: Any, n_repeats: int = 20, *, random_state: int = 0
) -> RepeatedScores:
    """Fit a clusterer with several seeds and compare each result with known classes.

    Parameters
    ----------
    estimator : object
        A clusterer with the parameter random_state; clones of it are fitted.
    X : array-like, or a list of views
        As its `fit_predict` takes it.
    labels_true : array-like of shape (n_samples,)
        Class of each sample.
    n_repeats : int, default=20
        Number of fits, at least 1.
    random_state : int, default=0
        Seed of the first fit; the seeds of further fits follow it.

    Returns
    -------
    scores : RepeatedScores
        A named tuple (acc, nmi, purity, seconds) of arrays of shape (n_repeats,), whose text has
        the means and the standard deviations (of the population) in percent.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rffpk import PowerKMeans
    >>> from rffpk.metrics import repeated_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = repeated_scores(PowerKMeans(3), X, y, n_repeats=5)
    >>> scores.acc.shape
    (5,)
    """
    n_repeats = checks.check_int(n_repeats, "n_repeats", 1)
    first = checks.check_int(random_state, "random_state", 0)
    n_labels, view = len(_classes(labels_true, "labels_true")), X[0] if is_list_of_views(X) else X
    if dimensions(view) == 2 and n_labels != length(view):
        raise ValueError(f"labels_true has {n_labels} labels, and X has {length(view)} rows.")
    if isinstance(estimator, type) or not hasattr(estimator, "fit_predict"):
        name = getattr(estimator, "__name__", f"of type {type(estimator).__name__}")
        raise TypeError(f"estimator is {name}: must be a clusterer. Pass one, as PowerKMeans(3).")
    rows = []
    for seed in range(first, first + n_repeats):
        model = clone(estimator).set_params(random_state=seed)
        begun = time.perf_counter()
        labels = model.fit_predict(X)
        seconds = time.perf_counter() - begun
        rows.append((*scores_of_labels(labels_true, labels), seconds))
    return RepeatedScores(*np.array(rows).T)


# ---- memberships ---------------------------------------------------------------------------------


def _checked(X: Any, memberships: Any) -> tuple[Array, Array]:
    """Return rows, and memberships with a line for each row."""
    X, u = checks.finite_array(X, "X"), checked_memberships(memberships)
    if len(X) != len(u):
        raise ValueError(f"memberships has {len(u)} rows, must have {len(X)} like X.")
    return X, u


def _in_range(*arrays: Array) -> list[Array]:
    """Divide arrays by one power of two, so that their squares neither overflow nor underflow."""
    largest = max(float(np.abs(x).max()) for x in arrays)
    return [np.ldexp(x, -math.frexp(largest)[1]) for x in arrays]


def checked_memberships(memberships: Any, name: str = "memberships") -> Array:
    """Return memberships as a float64 array (n, k), >= 0 with rows that sum to one."""
    u = checks.finite_array(memberships, name)
    if n_zeros := np.count_nonzero(~u.any(axis=1)):
        raise ValueError(
            f"{name}: {n_zeros} rows are zero, as the memberships of noise are. Leave noise out: "
            "pass the rows with labels >= 0."
        )
    if (u < 0).any() or np.abs(u.sum(axis=1) - 1).max() > 1e-3:  # stored float32 is rounded
        raise ValueError(f"{name} must be >= 0 with rows that sum to one, a row for each sample.")
    return u


def partition_coefficient(memberships: Any) -> float:
    """Return the mean over the samples of their sum of squared memberships.

    Parameters
    ----------
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one. Leave out the zero rows of noise.

    Returns
    -------
    coefficient : float
        In [1/k, 1] for k clusters: one if all memberships are 0 or 1, 1/k if all are equal.

    Raises
    ------
    ValueError
        If the memberships are negative, not finite, or do not sum to one.

    Notes
    -----
    PC = (1/n) sum_ij u_ij^2 [1]_. It grows as memberships become harder, so it compares numbers of
    clusters only at an equal fuzzifier.

    References
    ----------
    .. [1] Bezdek: Cluster validity with fuzzy sets. Journal of Cybernetics 1973.

    Examples
    --------
    >>> from rffpk.metrics import partition_coefficient
    >>> partition_coefficient([[1.0, 0.0], [0.5, 0.5]])
    0.75
    """
    u = checked_memberships(memberships)
    return float(np.einsum("ij,ij->", u, u) / len(u))


def partition_entropy(memberships: Any) -> float:
    """Return the mean over the samples of the entropy of their memberships, in natural units.

    Parameters
    ----------
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one. Leave out the zero rows of noise.

    Returns
    -------
    entropy : float
        In [0, log k] for k clusters: zero if all memberships are 0 or 1, log k if all are equal.

    Raises
    ------
    ValueError
        If the memberships are negative, not finite, or do not sum to one.

    Notes
    -----
    PE = -(1/n) sum_ij u_ij log u_ij [1]_.

    References
    ----------
    .. [1] Bezdek: Pattern recognition with fuzzy objective function algorithms. 1981.

    Examples
    --------
    >>> from rffpk.metrics import partition_entropy
    >>> round(partition_entropy([[1.0, 0.0], [0.5, 0.5]]), 4)
    0.3466
    """
    u = checked_memberships(memberships)
    return float(entr(u).sum() / len(u))


def xie_beni_index(X: Any, memberships: Any, centers: Any, *, m: float = 2.0) -> float:
    """Return compactness of fuzzy clusters over least separation of centers; lower is better.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers.
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one. Leave out the zero rows of noise.
    centers : array-like of shape (n_clusters, n_features)
        Centers of at least two clusters.
    m : float
        Power of the memberships, at least 1: the fuzzifier that they were computed with.

    Returns
    -------
    index : float
        At least 0; infinite if two centers are equal.

    Raises
    ------
    ValueError
        If shapes do not agree, or an argument is not as described.

    Notes
    -----
    XB = sum_ij u_ij^m ||x_i - v_j||^2 / (n min_(j != l) ||v_j - v_l||^2) [1]_; the paper has m = 2.
    O(n k d) time.

    References
    ----------
    .. [1] Xie, Beni: A validity measure for fuzzy clustering. IEEE Trans. PAMI 1991.

    Examples
    --------
    >>> from rffpk.metrics import xie_beni_index
    >>> xie_beni_index([[0.0], [2.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5], [2.5]])
    0.0625
    """
    X, u = _checked(X, memberships)
    centers = checks.finite_array(centers, "centers", ensure_min_samples=2)
    m = checks.check_real(m, "m", 1, include="left")
    if centers.shape != (u.shape[1], X.shape[1]):
        raise ValueError(
            f"centers has shape {centers.shape}, must be {(u.shape[1], X.shape[1])}: "
            "(n_clusters, n_features)."
        )
    X, centers = _in_range(X, centers)  # a common factor does not change the index
    separation = float(pdist(centers, "sqeuclidean").min())
    batches = gen_batches(len(X), max(1, TUNING.tiles.search_numbers // len(centers)))
    cost = sum(
        float(np.einsum("ij,ij->", u[b] ** m, cdist(X[b], centers, "sqeuclidean"))) for b in batches
    )
    return cost / (len(X) * separation) if separation > 0 else float("inf")


def fuzzy_silhouette(X: Any, memberships: Any, *, alpha: float = 1.0) -> float:
    """Return the mean silhouette, in which samples between clusters count less.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers.
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one. Leave out the zero rows of noise. At least two clusters
        must be the largest membership of some sample.
    alpha : float
        Power of the weights, at least 0; 0 gives the mean silhouette.

    Returns
    -------
    silhouette : float
        In [-1, 1]; higher is better. Not a number if no sample has a larger membership in one
        cluster than in all other clusters.

    Raises
    ------
    ValueError
        If shapes do not agree, or an argument is not as described.

    Notes
    -----
    FS = sum_i w_i s_i / sum_i w_i with the silhouettes s_i of the clusters of largest membership,
    and w_i the difference of the two largest memberships to the power alpha [1]_. O(n^2 d) time.

    References
    ----------
    .. [1] Campello, Hruschka: A fuzzy extension of the silhouette width criterion for cluster
       analysis. Fuzzy Sets and Systems 2006.

    Examples
    --------
    >>> from rffpk.metrics import fuzzy_silhouette
    >>> X, u = [[0.0], [1.0], [8.0], [9.0]], [[0.9, 0.1], [0.6, 0.4], [0.1, 0.9], [0.1, 0.9]]
    >>> round(fuzzy_silhouette(X, u), 4)
    0.8763
    """
    X, u = _checked(X, memberships)
    alpha = checks.check_real(alpha, "alpha", 0, include="left")
    labels = u.argmax(axis=1)
    if len(np.unique(labels)) < 2:
        raise ValueError("memberships put all rows into one cluster, must fill at least two.")
    (X,) = _in_range(X)
    largest = np.partition(u, -2, axis=1)
    weights = (largest[:, -1] - largest[:, -2]) ** alpha
    total = weights.sum()
    # The Minkowski metric sums squared differences. scikit-learn's Euclidean metric would lose
    # digits far from the origin.
    each = silhouette_samples(X, labels, metric="minkowski", p=2)
    return float(weights @ each / total) if total > 0 else float("nan")

"""Measures of a clustering: against known classes, and of memberships on their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist, pdist
from scipy.special import entr
from sklearn.metrics import silhouette_samples
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import gen_batches
from sklearn.utils.validation import column_or_1d

from rffpk._utils import validation
from rffpk._utils.arrays import Array


def _contingency(labels_true: Any, labels_pred: Any) -> Any:
    with validation.named("labels_true"):
        labels_true = column_or_1d(labels_true)
    with validation.named("labels_pred"):
        labels_pred = column_or_1d(labels_pred)
    if len(labels_true) != len(labels_pred):
        raise ValueError(
            f"labels_pred has {len(labels_pred)} labels, must have {len(labels_true)} like "
            "labels_true."
        )
    if not len(labels_true):
        raise ValueError("labels_true and labels_pred are empty, must have at least one label.")
    return contingency_matrix(labels_true, labels_pred)


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Fraction of samples that the best one-to-one matching of clusters to classes gets right.

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
        In [0, 1]; invariant to renaming of the labels, and symmetric.

    Raises
    ------
    ValueError
        If the arguments are empty, not one-dimensional or of different lengths.

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
    """Fraction of samples that belong to the most frequent class of their cluster.

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
        If the arguments are empty, not one-dimensional or of different lengths.

    Examples
    --------
    >>> from rffpk.metrics import purity_score
    >>> purity_score([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = _contingency(labels_true, labels_pred)
    return float(table.max(axis=0).sum() / table.sum())


# ---- memberships ---------------------------------------------------------------------------------

_SUM_ERROR = 1e-3  # of the memberships of a row, which may be float32 and rounded for storage
_BATCH_NUMBERS = 1 << 22  # distances of rows to centroids at once


def _check_rows(X: Array, u: Array) -> None:
    if len(X) != len(u):
        raise ValueError(f"memberships has {len(u)} rows, must have {len(X)} like X.")


def _in_range(*arrays: Array) -> list[Array]:
    """Arrays divided by one power of two, so that their squares neither overflow nor underflow."""
    largest = max(float(np.abs(x).max()) for x in arrays)
    return [np.ldexp(x, -math.frexp(largest)[1]) for x in arrays]


def checked_memberships(memberships: Any, name: str = "memberships") -> Array:
    """Memberships as a float64 array (n, k), >= 0 with rows that sum to one."""
    u = validation.finite_array(memberships, name)
    if (u < 0).any() or np.abs(u.sum(axis=1) - 1).max() > _SUM_ERROR:
        raise ValueError(f"{name} must be >= 0 with rows that sum to one, a row for each sample.")
    return u


def partition_coefficient(memberships: Any) -> float:
    """Mean over the samples of their sum of squared memberships.

    Parameters
    ----------
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one.

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
    """Mean over the samples of the entropy of their memberships, in natural units.

    Parameters
    ----------
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one.

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
    """Compactness of fuzzy clusters over the least separation of their centers: lower is better.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers.
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one.
    centers : array-like of shape (n_clusters, n_features)
        Centers of at least two clusters.
    m : float
        Power of the memberships, at least 1: the fuzzifier with which they were computed.

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
    X = validation.finite_array(X, "X")
    u = checked_memberships(memberships)
    centers = validation.finite_array(centers, "centers", ensure_min_samples=2)
    m = validation.check_real(m, "m", 1, include="left")
    _check_rows(X, u)
    if centers.shape != (u.shape[1], X.shape[1]):
        raise ValueError(
            f"centers has shape {centers.shape}, must be {(u.shape[1], X.shape[1])}: "
            "(n_clusters, n_features)."
        )
    X, centers = _in_range(X, centers)
    separation = float(pdist(centers, "sqeuclidean").min())
    batches = gen_batches(len(X), max(1, _BATCH_NUMBERS // len(centers)))
    cost = sum(
        float(np.einsum("ij,ij->", u[b] ** m, cdist(X[b], centers, "sqeuclidean"))) for b in batches
    )
    return cost / (len(X) * separation) if separation > 0 else float("inf")


def fuzzy_silhouette(X: Any, memberships: Any, *, alpha: float = 1.0) -> float:
    """Mean silhouette, in which samples between clusters count less.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite numbers.
    memberships : array-like of shape (n_samples, n_clusters)
        Memberships >= 0; rows sum to one. At least two clusters must be the largest membership of
        some sample.
    alpha : float
        Power of the weights, at least 0; 0 gives the mean silhouette.

    Returns
    -------
    silhouette : float
        In [-1, 1]; higher is better. Not a number if no sample has a larger membership in one
        cluster than in all others.

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
    X, u = validation.finite_array(X, "X"), checked_memberships(memberships)
    alpha = validation.check_real(alpha, "alpha", 0, include="left")
    _check_rows(X, u)
    labels = u.argmax(axis=1)
    if len(np.unique(labels)) < 2:
        raise ValueError("memberships must be largest for at least two of the clusters.")
    (X,) = _in_range(X)
    largest = np.partition(u, -2, axis=1)
    weights = (largest[:, -1] - largest[:, -2]) ** alpha
    total = weights.sum()
    return float(weights @ silhouette_samples(X, labels) / total) if total > 0 else float("nan")

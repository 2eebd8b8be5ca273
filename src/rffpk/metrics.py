"""External measures of a clustering against known classes."""

from __future__ import annotations

from typing import Any

from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_consistent_length, column_or_1d


def _contingency(labels_true: Any, labels_pred: Any) -> Any:
    labels_true = column_or_1d(labels_true)
    labels_pred = column_or_1d(labels_pred)
    check_consistent_length(labels_true, labels_pred)
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

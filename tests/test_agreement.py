"""Whether the clusters of a kernel are those of plain k-means."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_circles
from sklearn.metrics import adjusted_rand_score

from rffpk import RFFKernelPowerKMeans
from rffpk.power import agreement_of_labels


@pytest.fixture(scope="module")
def rows():
    return make_blobs(1500, 4, centers=5, cluster_std=2.0, random_state=0)


def test_the_agreement_is_that_with_k_means_from_the_same_clusters(rows, dtype):
    X, y = rows
    X = X.astype(dtype)
    means = np.array([X[y == j].mean(axis=0) for j in range(5)])
    expected = KMeans(5, init=means, n_init=1, tol=0, algorithm="lloyd").fit(X).labels_
    assert 0.5 < adjusted_rand_score(y, expected) < 0.999
    assert agreement_of_labels(X, y, 2) == pytest.approx(adjusted_rand_score(y, expected), abs=2e-3)


def test_the_agreement_is_that_of_weighted_rows(rows):
    """A weight of two is a row twice."""
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), weight.astype(int))
    counts = weight > 0
    found = agreement_of_labels(X[counts], y[counts], 1, weight[counts])
    means = np.array([X[repeated][y[repeated] == j].mean(axis=0) for j in range(5)])
    peer = KMeans(5, init=means, n_init=1, tol=0, algorithm="lloyd").fit(X[repeated])
    expected = adjusted_rand_score(y[counts], peer.predict(X[counts]))
    assert found == pytest.approx(expected, abs=3e-3)


def test_a_linear_kernel_agrees_and_says_so(rows, capsys):
    model = RFFKernelPowerKMeans(5, gamma=1e-4, n_frequencies=500, random_state=0, verbose=1)
    assert model.fit(rows[0]).k_means_agreement_ > 0.98
    assert "The clusters are those of plain k-means" in capsys.readouterr().out


def test_a_kernel_that_sees_more_does_not_agree(capsys):
    X, y = make_circles(800, factor=0.3, noise=0.05, random_state=0)
    start = RFFKernelPowerKMeans(2, gamma=5.0, n_frequencies=500, random_state=0, verbose=1).fit(X)
    assert start.k_means_agreement_ < 0.98
    assert "plain k-means" not in capsys.readouterr().out


def test_few_rows_equal_rows_and_absent_clusters():
    assert agreement_of_labels(np.ones((4, 2)), np.array([0, 0, 1, 1]), 1) <= 1
    assert agreement_of_labels(np.eye(3), np.array([5, 5, 7]), 1) == 1.0
    assert np.isfinite(agreement_of_labels(np.eye(3) * 1e300, np.array([0, 1, 2]), 1))

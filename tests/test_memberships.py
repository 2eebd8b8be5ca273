"""Memberships that a fit stores equal the result of `predict_proba`."""

import numpy as np
import pytest
from conventions import CLUSTERERS
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import rffpk

X = make_blobs(150, 4, centers=4, cluster_std=3.0, random_state=0)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cls", CLUSTERERS)
def test_stored_memberships_are_those_predicted(cls, dtype):
    rows = X.astype(dtype)
    model = cls(3, random_state=0, store_memberships=True).fit(rows)
    assert model.memberships_.shape == (150, 3)
    expected = model.predict_proba(rows)
    assert model.memberships_.dtype == expected.dtype
    assert_allclose(model.memberships_, expected, atol=1e-6 if dtype == np.float32 else 1e-12)
    with pytest.raises(TypeError, match="store_memberships='yes': must be True or False"):
        model.set_params(store_memberships="yes").fit(rows)


def in_order(given, model):
    """Match the order of clusters to another fit, as rounding decides the order."""
    found = given.memberships_
    return found[:, linear_sum_assignment(-(model.memberships_.T @ found))[1]]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "cls", [rffpk.KernelKMeans, rffpk.KernelPowerKMeans, rffpk.MultiKernelPowerKMeans]
)
def test_precomputed_kernels_have_stored_memberships(cls, weighted):
    weight, K = np.arange(150) % 3 + 1.0 if weighted else None, rbf_kernel(X, gamma=0.02)
    common = {"n_clusters": 3, "store_memberships": True, "random_state": 0}
    if cls is not rffpk.KernelKMeans:
        common["annealing"] = rffpk.Annealing(end=-3.0)
    if cls is rffpk.MultiKernelPowerKMeans:
        K = [rbf_kernel(X, gamma=0.01), rbf_kernel(X, gamma=0.1)]
        model = cls(kernels=[("rbf", 0.01), ("rbf", 0.1)], **common)
        given = cls(kernels="precomputed", **common)
    else:
        model, given = cls(gamma=0.02, **common), cls(kernel="precomputed", **common)
    model.fit(X, sample_weight=weight), given.fit(K, sample_weight=weight)
    assert_allclose(in_order(given, model), model.memberships_, atol=1e-8)
    assert_array_equal(given.memberships_.argmax(axis=1), given.labels_)


# ---- the exponent of memberships -----------------------------------------------------------------


def exponent(apart, weight=None):
    """Compute -(1 + d)/2 from the vectors between rows and their centroids."""
    norms = np.linalg.norm(apart, axis=1)
    away = norms > 1e-9  # rows that are centroids have no direction
    z, p = apart[away] / norms[away, None], (np.ones(150) if weight is None else weight)[away]
    return -(1 + 1 / np.linalg.eigvalsh((z.T * p) @ z / p.sum())[-1]) / 2


@pytest.mark.parametrize("weighted", [False, True])
def test_the_exponent_follows_from_the_effective_dimension_of_the_clusters(weighted):
    weight = np.arange(150) % 3 + 1.0 if weighted else None
    model = rffpk.PowerKMeans(4, random_state=0).fit(X, sample_weight=weight)
    expected = exponent(X - model.cluster_centers_[model.labels_], weight)
    assert_allclose(model.membership_exponent_, expected, rtol=1e-9)
    kernel = rffpk.KernelKMeans(4, kernel="linear", init=model.labels_).fit(X, sample_weight=weight)
    assert_array_equal(kernel.labels_, model.labels_)
    assert_allclose(kernel.membership_exponent_, expected, rtol=1e-6)
    assert_allclose(kernel.predict_proba(X), model.predict_proba(X), rtol=1e-5)
    given = rffpk.KernelKMeans(4, kernel="precomputed", init=model.labels_)
    assert_allclose(given.fit(X @ X.T, sample_weight=weight).membership_exponent_, expected)


def test_the_exponent_of_few_rows_of_many_features_is_that_of_their_vectors():
    rows = np.random.default_rng(0).standard_normal((150, 400)) / (1 + np.arange(400))
    rows[:, :4] += X
    model = rffpk.PowerKMeans(4, random_state=0).fit(rows)
    expected = exponent(rows - model.cluster_centers_[model.labels_])
    assert_allclose(model.membership_exponent_, expected, rtol=1e-6)


def test_views_are_weighted_as_distances_are():
    model = rffpk.RFFMultiKernelPowerKMeans(
        4, kernels="linear", typicality=None, random_state=0
    ).fit([X[:, :1], X[:, 1:]])
    scale = np.sqrt(np.repeat(model.kernel_weights_, [1, 3]))
    scaled = np.hstack([x / np.sqrt(x.var(axis=0).sum()) for x in (X[:, :1], X[:, 1:])])
    apart = (scaled - model.cluster_centers_[model.labels_]) * scale
    assert_allclose(model.membership_exponent_, exponent(apart), rtol=1e-9)


def test_soft_ends_and_rows_on_centroids_keep_the_exponent_of_the_fit():
    soft = rffpk.PowerKMeans(4, annealing=rffpk.Annealing(end=-3.0), random_state=0).fit(X)
    assert soft.membership_exponent_ == soft.s_ == -3
    assert rffpk.FuzzyCMeans(4, m=1.5, random_state=0).fit(X).membership_exponent_ == -2
    alone = rffpk.PowerKMeans(4, random_state=0).fit(X[:4])
    assert alone.membership_exponent_ == alone.s_
    assert_array_equal(alone.predict_proba(X[:4]).max(axis=1), 1)


def bridge(random, n=200):
    """Return two blobs with rows between them, and the place of each row from 0 to 1."""
    places = np.r_[np.zeros(n), np.ones(n), np.linspace(0, 1, n // 4)]
    noise = np.where(np.arange(len(places)) < 2 * n, 1.0, 0.3)[:, None]
    return np.c_[8 * places, 0 * places] + noise * random.normal(size=(len(places), 2)), places


@pytest.mark.promise(
    "Memberships and trees",
    "Rows between two clusters have memberships between 0 and 1 by default, which follow "
    "their place.",
)
@pytest.mark.parametrize(
    "cls", [rffpk.PowerKMeans, rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans]
)
def test_rows_on_the_way_between_clusters_belong_to_both(cls):
    rows, places = bridge(np.random.RandomState(0))
    model = cls(2, random_state=0).fit(rows)
    u = model.predict_proba(rows)[:, model.predict([[8.0, 0.0]])[0]]
    middle, ends = np.abs(places - 0.5) < 0.1, (places == 0) | (places == 1)
    assert ((u[middle] > 0.05) & (u[middle] < 0.95)).mean() > 0.8
    assert np.abs(u - places)[ends].mean() < 0.1
    along = u[400:].reshape(10, 5).mean(axis=1)
    assert (np.diff(along) > -0.03).all() and along[0] < 0.2 and along[-1] > 0.8
    at_the_end = model.predict_proba(rows, s=model.s_).max(axis=1)
    assert (at_the_end > np.maximum(u, 1 - u) - 1e-9).all()


@pytest.mark.promise(like="test_rows_on_the_way_between_clusters_belong_to_both")
def test_memberships_of_blobs_that_overlap_are_the_shares_of_right_labels():
    rows, y = make_blobs(3000, 4, centers=5, cluster_std=3.0, random_state=3)
    model = rffpk.PowerKMeans(5, random_state=0).fit(rows)
    classes = [np.bincount(y[model.labels_ == j]).argmax() for j in range(5)]
    right, u = np.take(classes, model.labels_) == y, model.predict_proba(rows).max(axis=1)
    order = np.argsort(u)
    for part in np.array_split(order, 5):
        assert abs(right[part].mean() - u[part].mean()) < 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_rows_have_the_exponent_of_arrays(weighted):
    weight = np.arange(150) % 3 + 1.0 if weighted else None
    rows = np.where(np.random.RandomState(0).rand(150, 40) < 0.2, 1.0 + X[:, :1] ** 2, 0)
    model = rffpk.PowerKMeans(4, random_state=0).fit(csr_array(rows), sample_weight=weight)
    expected = exponent(rows - model.cluster_centers_[model.labels_], weight)
    assert_allclose(model.membership_exponent_, expected, rtol=1e-9)


def test_a_few_far_rows_do_not_change_the_exponent():
    rows = make_blobs(2000, 8, centers=5, random_state=0)[0]
    init = rffpk.PowerKMeans(5, random_state=0).fit(rows).cluster_centers_
    far = np.r_[rows, rows[:4] + 40 * np.eye(8)[:4]]
    model, other = (rffpk.PowerKMeans(5, init=init).fit(x) for x in (rows, far))
    assert_allclose(other.membership_exponent_, model.membership_exponent_, rtol=0.05)


@pytest.mark.parametrize("k", [3, 12])
def test_the_exponent_of_diffusion_features_is_that_of_their_clusters_or_the_least(k):
    model = rffpk.DiffusionPowerKMeans(k, whitening=None, random_state=0).fit(X)
    features = model.feature_map_.transform(X)
    expected = exponent(features - model.cluster_centers_[model.labels_])
    assert_allclose(model.membership_exponent_, max(expected, -1.5), rtol=1e-6)
    assert (expected < -1.5) == (k == 12)

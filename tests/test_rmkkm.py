"""RMKKM: its weights and centroids against a general solver, its decrease, and outliers."""

import itertools

import numpy as np
import pytest
from contracts.fusion import NormedWeights
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracles import kernel_distances
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from rffpk import RMKKM, KernelKMeans

KERNELS = [("rbf", 0.1), ("rbf", 0.01), "linear"]
X, Y = make_blobs(150, 4, centers=4, cluster_std=1.5, random_state=0)


def kernels_of(X):
    linear = X @ X.T / X.var(axis=0).sum()  # has a variance of one beside other kernels
    return np.array([rbf_kernel(X, gamma=0.1), rbf_kernel(X, gamma=0.01), linear])


def objective(Ks, W, alpha, labels):
    d = kernel_distances(Ks, W)[:, np.arange(len(labels)), labels]
    return np.sqrt(np.maximum(alpha @ d, 0)).sum()


def passes(model, start=None):
    found = [r for r in model.history_ if r["stage"] == "hard"]
    return [r for r in found if r["kept"] if start is None or r["start"] == start]


# ---- the updates --------------------------------------------------------------------------------


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=6),
    st.sampled_from([0.05, 0.3, 0.5, 0.9, 0.95]),
)
def test_the_weights_minimise_the_sum_of_costs(costs, gamma):
    costs, rule = np.array(costs), NormedWeights(gamma)
    alpha = rule.reweigh(costs, 1.0, 1.0)
    assert_allclose((alpha**gamma).sum(), 1)
    random = np.random.default_rng(len(costs))
    for shares in random.dirichlet(np.ones(len(costs)), 50):  # alpha^gamma is on the simplex
        assert costs @ shares ** (1 / gamma) >= costs @ alpha * (1 - 1e-9)


def test_weights_by_hand():
    """gamma = 1/2: alpha_l ~ costs_l^-2, and the sum of the roots is one."""
    alpha = NormedWeights(0.5).reweigh(np.array([1.0, 2.0]), 1.0, 1.0)
    assert_allclose(alpha, np.array([4 / 9, 1 / 9]))
    assert_allclose(NormedWeights(0.5).reweigh(np.zeros(2), 1.0, 1.0), [0.25, 0.25])
    assert_allclose(NormedWeights(0.25).equal(16), 16.0**-4)
    extreme = NormedWeights(0.95).reweigh(np.array([1e-200, 1.0, 1e200]), 1.0, 1.0)
    assert np.isfinite(extreme).all()
    assert_allclose((extreme**0.95).sum(), 1)


@pytest.mark.parametrize("weight_norm", [0.1, 0.5, 0.9])
def test_the_objective_never_rises(weight_norm):
    model = RMKKM(4, kernels=KERNELS, weight_norm=weight_norm, tol=0, random_state=0).fit(X)
    records = [r for r in model.history_ if r["stage"] == "hard"]
    assert len({r["start"] for r in records}) == 10
    for start in range(10):
        objectives = [r["objective"] for r in records if r["start"] == start]
        for before, after in itertools.pairwise(objectives):
            assert after <= before * (1 + 1e-12)
    assert model.objective_ <= passes(model)[-1]["objective"] * (1 + 1e-12)
    assert_allclose((model.kernel_weights_**weight_norm).sum(), 1)


def test_the_end_is_a_stationary_point():
    model = RMKKM(4, kernels=KERNELS, tol=1e-9, max_iter=2000, random_state=0).fit(X)
    Ks, W, alpha, labels = kernels_of(X), model.dual_coef_, model.kernel_weights_, model.labels_
    least = objective(Ks, W, alpha, labels)
    assert_allclose(model.objective_, least, rtol=1e-6)
    assert_array_equal((alpha @ kernel_distances(Ks, W).swapaxes(0, 1)).argmin(axis=1), labels)
    random = np.random.default_rng(0)
    for shares in random.dirichlet(np.ones(3), 100):
        for step in (0.01, 1.0):
            near = ((1 - step) * alpha**0.5 + step * shares) ** 2  # the sum of roots stays one
            assert objective(Ks, W, near, labels) >= least * (1 - 1e-6)
    for _ in range(20):
        near = W + 0.01 * random.standard_normal(W.shape)
        near /= near.sum(axis=1, keepdims=True)
        assert objective(Ks, near, alpha, labels) >= least * (1 - 1e-6)


def test_the_centroid_of_one_cluster_is_the_geometric_median():
    """Of the linear kernel: the point of the least sum of distances."""
    rows = np.random.default_rng(0).standard_normal((60, 2)) ** 3
    model = RMKKM(1, kernels=["linear"], tol=1e-10, max_iter=5000, random_state=0).fit(rows)
    median = minimize(
        lambda c: np.linalg.norm(rows - c, axis=1).sum(), rows.mean(axis=0), tol=1e-12
    )
    assert_allclose(model.dual_coef_ @ rows, median.x[None], atol=1e-3)
    assert_allclose(model.objective_, median.fun, rtol=1e-6)


def test_outliers_count_less_than_in_kernel_k_means():
    rows, y = make_blobs(200, 2, centers=[[0, 0], [4, 0]], cluster_std=0.5, random_state=1)
    far = np.vstack([rows, [[60.0, 60.0]]])
    robust = RMKKM(2, kernels=["linear"], init="random", random_state=0).fit(far)
    plain = KernelKMeans(2, kernel="linear", random_state=0).fit(far)
    assert adjusted_rand_score(y, robust.labels_[:200]) > 0.98
    assert adjusted_rand_score(y, plain.labels_[:200]) < 0.5  # it gives the row a cluster


@pytest.mark.promise(like="test_weights_are_repetitions_at_a_fixed_start")
def test_sample_weights_are_repeated_rows():
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    seeds, starts = np.arange(4), np.searchsorted(repeated, np.arange(4))
    model = RMKKM(4, kernels=KERNELS, random_state=0)
    once = clone(model).set_params(init=np.eye(len(X))[seeds]).fit(X, sample_weight=weight)
    more = clone(model).set_params(init=np.eye(len(repeated))[starts]).fit(X[repeated])
    assert_allclose(once.objective_, more.objective_, rtol=1e-6)
    assert_allclose(once.kernel_weights_, more.kernel_weights_, rtol=1e-5)
    assert_array_equal(once.labels_[repeated], more.labels_)
    computed = clone(once).set_params(cache=False).fit(X, sample_weight=weight)
    assert_array_equal(computed.labels_, once.labels_)


@pytest.mark.parametrize("init", ["k-means++", "random", "spectral"])
def test_every_start_finds_the_blobs_and_labels_new_rows(init, dtype):
    rows, y = make_blobs(300, 4, centers=4, cluster_std=0.8, random_state=2)
    rows = rows.astype(dtype)
    model = RMKKM(4, kernels=["rbf", ("rbf", 0.05)], init=init, random_state=0).fit(rows[:200])
    assert adjusted_rand_score(y[:200], model.labels_) > 0.95
    assert adjusted_rand_score(y[200:], model.predict(rows[200:])) > 0.95
    assert_array_equal(model.predict(rows[:200]), model.labels_)

"""Principal components of wide features in the search for centroids."""

import numpy as np
import pytest
from contracts.core import Fourier, Identity
from contracts.fusion import FittedKernel, kernels
from contracts.level import FitContext, PowerMean
from contracts.passes import make_rows, ones, shifted_features
from contracts.source import KernelRows, Storage, compressed
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from rffpk import (
    Annealing,
    FuzzyCMeans,
    KernelPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    _reference,
)

STORED = Storage("auto")


def wide_rows(dtype, weight=None, n=80, widths=(300, 500)):
    random = np.random.default_rng(0)
    xs = [(random.standard_normal((n, d)) + 5).astype(dtype) for d in widths]
    return make_rows(xs, [Identity(x.shape[1]) for x in xs], weight, 1)


@pytest.mark.few(2)
@pytest.mark.parametrize("weighted", [False, True])
def test_distances_to_centroids_are_kept(tuning, dtype, weighted):
    tuning(components__left_out=1e-9, components__views_margin=0)
    weight = np.random.default_rng(1).uniform(0.5, 2, 80) if weighted else None
    rows = wide_rows(dtype, weight)
    small = compressed(rows, 40, STORED)
    assert all(x.shape[1] < 80 for x in small.rows.xs)
    theta = shifted_features(small.rows)[:5].astype(float)
    found = _reference.squared_distances(shifted_features(small.rows).astype(float), theta)
    full = _reference.squared_distances(shifted_features(rows).astype(float), small.expand(theta))
    assert_allclose(found, full, rtol=1e-3, atol=1e-3 if dtype == np.float32 else 1e-6)


def test_what_is_left_out_is_a_small_part_of_the_cost(tuning):
    tuning(components__views_margin=0)
    wide = wide_rows(np.float64)
    scales = [1 / (1 + np.arange(x.shape[1])) for x in wide.xs]
    rows = make_rows([x * c for x, c in zip(wide.xs, scales)], wide.maps, None, 1)
    small = compressed(rows, 40, STORED)
    kept = sum(float((x**2).sum()) for x in small.rows.xs)
    whole = float((shifted_features(rows) ** 2).sum())
    cost = KMeans(40, n_init=1, random_state=0).fit(shifted_features(rows)).inertia_
    assert 0 < whole - kept <= 0.04 * cost  # that of rows drawn as by k-means++ is less than twice


@pytest.mark.parametrize(
    "model", [PowerKMeans(10), FuzzyCMeans(10), RFFMultiKernelPowerKMeans(10, kernels="linear")]
)
def test_clusters_that_have_little_of_the_variance(model):
    """Two groups of five clusters are so far apart that one component has 99.9 % of it."""
    random = np.random.default_rng(0)
    y = random.integers(0, 10, 1000)
    centers = 2 * random.standard_normal((10, 128))
    centers[:, [0, 64]] += 1000 * (np.arange(10) % 2)[:, None]
    X = centers[y] + random.standard_normal((1000, 128))
    several = [X[:, :64], X[:, 64:]] if hasattr(model, "kernels") else X
    model = clone(model).set_params(random_state=0).fit(several)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_maps_are_applied_first_if_features_may_be_stored():
    random = np.random.default_rng(0)
    x, omega = random.standard_normal((60, 2)), random.standard_normal((2, 2000))
    rows = make_rows([x], [Fourier(omega)], None, 1)
    small = compressed(rows, 400, STORED)
    assert small.bases[0].shape[0] == 4000 and not small.rows.computed
    assert compressed(rows, 400, Storage(1000)) is None
    assert compressed(rows, 400, Storage(False)) is None


def test_narrow_features_short_searches_and_many_rows_are_left_alone(tuning):
    assert compressed(wide_rows(np.float64), 1, STORED) is None
    flat = wide_rows(np.float64, n=2000, widths=(20,))
    assert compressed(flat, 400, STORED) is None  # more than half of its components count
    for numbers in (80 * 500 - 1, 80 * 500):
        tuning(components__numbers=numbers)
        found = compressed(wide_rows(np.float64), 400, STORED)
        assert (found is None) == (numbers < 80 * 500)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(12), RFFKernelPowerKMeans(12, n_frequencies=3000),
        ip_rff_mkpkm(12, n_frequencies=1500),
    ],
)  # fmt: skip
def test_fits_end_converged_in_the_space_of_all_features(tuning, model):
    X, _ = make_blobs(240, 3000, centers=12, cluster_std=30.0, random_state=0)
    model = clone(model).set_params(random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)

    def init(features, k, random_state):
        assert features.shape[1] == model.cluster_centers_.shape[1]
        return model.cluster_centers_

    again = clone(model).set_params(init=init, n_init=1, annealing=Annealing(start=-1e6)).fit(X)
    assert model.inertia_ <= again.inertia_ * (1 + 1e-6)
    tuning(components__margin=np.inf, components__views_margin=np.inf)
    whole = clone(model).fit(X)
    assert model.cluster_centers_.shape == whole.cluster_centers_.shape
    assert model.inertia_ == pytest.approx(whole.inertia_, rel=0.01)
    assert model.history_[1]["objective"] != whole.history_[1]["objective"]  # of components


@pytest.mark.few(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_all_features_are_halved_where_components_do_not_pay(weighted, tuning):
    tuning(components__margin=np.inf, components__views_margin=np.inf)
    weight = np.random.default_rng(1).uniform(0.5, 2, 2000) if weighted else None
    rows = wide_rows(np.float64, weight, n=2000, widths=(70, 20))
    assert compressed(rows, 4, STORED) is None
    single = wide_rows(np.float32, n=2000, widths=(70, 20))
    assert compressed(single, 4, STORED, single=True) is None
    small = compressed(rows, 4, STORED, single=True)
    assert small.bases is None and small.rows.dtype == np.float32
    assert weight is None or small.rows.weight.dtype == np.float32
    assert small.rows.total_weight == pytest.approx(rows.total_weight, rel=1e-6)
    whole = shifted_features(rows)
    assert_allclose(shifted_features(small.rows), whole, rtol=1e-6, atol=1e-6)
    assert_array_equal(small.expand(whole[:3]), whole[:3])


def decaying(n, widths, k, power=1.0):
    """Draw rows about k points, in views whose columns have falling variances."""
    random = np.random.default_rng(0)
    xs = []
    for d in widths:
        scales = 1 / (1 + np.arange(d)) ** power
        centers = 3 * random.standard_normal((k, d))
        xs.append((centers[np.arange(n) % k] + random.standard_normal((n, d))) * scales)
    return make_rows(xs, [Identity(x.shape[1]) for x in xs], None, 1)


@pytest.mark.parametrize("numbers", [1 << 24, 150_000])  # the second: numbers of 500 rows
def test_partitions_keep_their_order_of_costs_in_few_components(tuning, numbers):
    """The cost of any partition changes by a constant and at most 2 % of the least cost."""
    tuning(components__numbers=numbers)
    n, k = 1000, 5
    rows = decaying(n, (300,), k, power=0.1)
    assert compressed(rows, k, STORED) is None  # more than half have 99 % of the variance
    leading = compressed(rows, k, STORED, True)
    assert leading.rows.xs[0].shape[1] < 100
    whole, small = shifted_features(rows), shifted_features(leading.rows)
    random, changes, costs = np.random.default_rng(1), [], []
    for labels in [np.arange(n) % k, *random.integers(0, k, (20, n))]:
        cost = [
            sum(((x[labels == j] - x[labels == j].mean(axis=0)) ** 2).sum() for j in range(k))
            for x in (whole, small)
        ]
        costs.append(cost[0])
        changes.append(cost[0] - cost[1] - leading.left_out)
    assert -0.02 * min(costs) <= min(changes) and max(changes) <= 1e-9 * max(costs)


def test_components_of_some_rows_are_those_of_few_clusters_of_one_dense_view(tuning):
    tuning(components__numbers=150_000)
    few, many = decaying(1000, (300,), 5, 0.1), decaying(1000, (300,), 20)
    assert compressed(few, 5, STORED, True) is not None
    assert compressed(many, 20, STORED, True) is None
    assert compressed(decaying(1000, (400,), 5, 0.1), 5, STORED, True) is None  # more than rows
    assert compressed(decaying(1000, (300, 150), 5), 5, STORED, True) is None


def test_several_views_keep_the_variance():
    rows = decaying(1000, (200, 150), 20)
    hard, soft = (compressed(rows, 20, STORED, hard) for hard in (True, False))
    for a, b in zip(hard.rows.xs, soft.rows.xs):
        assert_array_equal(a, b)


ONE = np.ones(1)  # the weight of one kernel


def rows_with_kernels(X, names, weight, k):
    fitted = [
        FittedKernel(X, kernels.specification(each, "kernel"), shift=True, weight=ones(len(X)))
        for each in names
    ]
    weight = ones(len(X)) if weight is None else weight
    return KernelRows(fitted, weight, PowerMean(), FitContext(None, k=k, storage=STORED))


@pytest.mark.parametrize("weighted", [False, True])
def test_components_of_a_kernel_are_those_of_its_features(weighted):
    """Of the linear kernel; distances in the components are distances of projections."""
    random, k = np.random.default_rng(0), 5
    X = decaying(900, (60,), k).xs[0]
    weight = random.integers(0, 3, 900).astype(float) if weighted else None
    rows, left_out = rows_with_kernels(X, ["linear"], weight, k).components(ONE)
    p = ones(900) if weight is None else weight
    x, found = X - p @ X / p.sum(), rows.xs[0]
    assert found.shape[1] < 40
    basis = np.linalg.lstsq(x[p > 0], found[p > 0], rcond=None)[0]
    assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-8)
    assert_allclose((x @ basis)[p > 0], found[p > 0], atol=1e-8 * np.abs(x).max())
    left = p @ ((x - x @ basis @ basis.T) ** 2).sum(axis=1)
    assert_allclose(left_out, left, rtol=1e-6)


def test_components_of_several_kernels_are_those_of_their_weighted_sum():
    X = decaying(500, (40,), 4).xs[0]
    alpha, weight = np.array([0.2, 0.8]), np.random.default_rng(0).integers(0, 3, 500) * 1.0
    given = rows_with_kernels(X, ("linear", "rbf"), weight, 4)
    rows = given.components(alpha)[0]
    K = np.tensordot(alpha, [each.matrix() for each in given.kernels], 1)
    H = np.eye(500) - weight / weight.sum()
    root = np.sqrt(weight)
    squares, vectors = eigh(root[:, None] * (H @ K @ H.T) * root)
    r, some = rows.xs[0].shape[1], weight > 0
    assert 2 < r < 100
    expected = vectors[:, ::-1][some, :3] * np.sqrt(squares[::-1][:3]) / root[some, None]
    found = rows.xs[0][some, :3]
    assert_allclose(found @ found.T, expected @ expected.T, atol=1e-4 * squares[-1])


@pytest.mark.parametrize("n", [300, 1100])
def test_all_components_are_computed_of_few_rows_only(n):
    """Where more of them are needed than a quarter of the rows."""
    X = np.random.default_rng(0).standard_normal((n, 290))
    rows = rows_with_kernels(X, ["linear"], None, 40).components(ONE)[0]
    r = rows.xs[0].shape[1]
    assert r > n / 4
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    # of many rows the leading ones, nearly
    assert_allclose((rows.xs[0] ** 2).sum(), squares[:r].sum(), rtol=1e-9 if n <= 1000 else 1e-6)


@pytest.mark.parametrize("cls", [RFFKernelPowerKMeans, KernelPowerKMeans])
def test_no_recorded_objective_is_negative(cls):
    """Components leave nothing out of two distinct rows: the difference of two sums is rounding."""
    X = np.array([[0.0, 1.0], [1.0, 0.0]]).repeat(15, axis=0)
    for seed in range(5):
        model = cls(5, random_state=seed).fit(X)
        assert min(record.get("objective", 0) for record in model.history_) >= 0

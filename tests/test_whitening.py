"""Whitened components against their definition, and the choice among whitenings and graphs."""

import pickle
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from contracts.core import sparse_rows
from contracts.passes import fit_components, ones
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

import rffpk
from rffpk import DiffusionPowerKMeans, FuzzyCMeans, PowerKMeans
from rffpk import RFFMultiKernelPowerKMeans as MultiView
from rffpk.sources import from_array

K = 3


def random_rows(n, d, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((n, d)) @ np.diag(np.linspace(3.0, 0.2, d)) + 5.0


def by_definition(X, p, exponent, m):
    """Project centered rows onto the leading eigenvectors of their covariance.

    Each component is divided by s^e of its standard deviation s in units of the largest. From eight
    components on, rows have length one.
    """
    share = p / p.sum()
    centred = X - share @ X
    variances, vectors = np.linalg.eigh(centred.T * share @ centred)
    deviations = np.sqrt(variances[::-1][:m])
    found = centred @ vectors[:, ::-1][:, :m] / deviations[0]
    found /= (deviations / deviations[0]) ** exponent
    return found / np.linalg.norm(found, axis=1, keepdims=True) if m >= 8 else found


def fitted(X, weight=None, exponent=0.5, k=K):
    weight = ones(len(X)) if weight is None else weight
    return fit_components(X, weight, k, np.random.RandomState(0)).whitening(exponent, 1)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("n", "d", "k"), [(50, 4, 3), (60, 30, 3), (60, 30, 5), (20, 40, 4)])
def test_components_follow_the_definition(n, d, k, exponent):
    X, p = random_rows(n, d), np.random.default_rng(1).integers(0, 3, n).astype(float)
    m = min(2 * k, d)
    expected = by_definition(X, p, exponent, m)
    for rows in (X, sparse_rows(sparse.csr_array(X))):
        found = fitted(rows, p, exponent, k)(rows)
        signs = np.sign((found * expected).sum(axis=0))
        assert_allclose(found * signs, expected, atol=1e-8)


def test_rows_have_the_same_bits_whatever_other_rows_there_are():
    X = random_rows(9000, 30).astype(np.float32)  # in several tiles of many blocks
    whitening = fitted(X)
    whole = whitening(X)
    for some in (slice(0, 1), slice(17, 6950), slice(2999, 3000), slice(4351, 4353)):
        assert_array_equal(whitening(X[some]), whole[some])
    assert_array_equal(replace(whitening, n_threads=3)(X), whole)
    assert whole.dtype == np.float32


def test_components_that_are_rounding_errors_are_left_out():
    X = random_rows(100, 3)
    found = fitted(np.hstack([X, X @ np.ones((3, 2))]), exponent=1.0)
    assert found(np.ones((4, 5))).shape == (4, 3)
    equal = np.full((5, 2), 0.7)
    assert_array_equal(fitted(equal, exponent=1.0)(equal), np.zeros((5, 1)))


def test_full_whitening_is_invariant_to_linear_maps_of_the_columns():
    X, _ = make_blobs(300, 4, centers=3, random_state=0)
    A = np.random.default_rng(0).standard_normal((4, 4))
    for cls in (PowerKMeans, FuzzyCMeans, DiffusionPowerKMeans):
        labels = [cls(3, whitening=1.0, random_state=0).fit(rows).labels_ for rows in (X, X @ A)]
        assert adjusted_rand_score(*labels) == 1.0


@pytest.mark.parametrize("cls", [PowerKMeans, partial(FuzzyCMeans, m=1.1), DiffusionPowerKMeans])
def test_models_on_whitened_components(cls, digits, tmp_path):
    X, y = digits
    model = cls(10, whitening=0.5, random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "model.rffpk")
    assert_array_equal(rffpk.load(tmp_path / "model.rffpk").predict(X), model.labels_)
    read = cls(10, whitening=0.5, random_state=0).fit(from_array(X, block_rows=500))
    assert_array_equal(read.predict(X), model.labels_)
    assert adjusted_rand_score(y, model.labels_) > 0.55
    if cls is not DiffusionPowerKMeans:
        assert model.cluster_centers_.shape == (10, 20)
        assert not hasattr(model, "cache_")
        for i in range(0, len(X), 600):
            read.partial_fit(X[i : i + 600])


@pytest.mark.parametrize("is_lacking", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_views_of_columns_are_whitened(is_lacking, digits):
    """Also of rows that lack a view."""
    views = [digits[0][:, :32].copy(), digits[0][:, 32:]]
    if is_lacking:
        views[0][::7] = np.nan
    kernels = "auto" if is_lacking else [("linear", 1.0)] * 2
    model = MultiView(10, kernels=kernels, allow_missing_views=is_lacking, random_state=0)
    model.fit(views)
    assert is_lacking or model.cluster_centers_.shape == (10, 40)
    assert_array_equal(model.predict(views), model.labels_)


def test_the_default_takes_graphs_and_components_of_each_view_and_of_all(digits):
    views = [digits[0][:600, :32], 5 * digits[0][:600, 32:]]
    model = MultiView(10, random_state=0).fit(views)
    assert_array_equal(model.predict(views), model.labels_)
    kinds = [(type(each).__name__, getattr(each, "whitening", 0)) for each in model.feature_maps_]
    whitened = ("DiffusionMap", 0.5)
    assert kinds == [("DiffusionMap", None)] * 2 + [whitened] * 3 + [("Whitening", 0)] * 3
    # in the last one each view has a total variance of one
    scaled = [view / np.sqrt(view.var(axis=0).sum()) for view in views]
    centered = np.hstack(scaled) - np.hstack(scaled).mean(axis=0)
    directions = np.linalg.svd(centered, full_matrices=False)[2][:20]
    components = centered @ directions.T
    components /= components.std(axis=0) ** 0.5
    components /= np.linalg.norm(components, axis=1, keepdims=True)
    found = model.feature_maps_[-1](np.hstack(views))
    assert_allclose(np.abs(np.sum(found * components, axis=0)), (components**2).sum(axis=0))


def test_one_array_has_two_graphs_and_components(digits):
    X = digits[0][:300]
    model = MultiView(10, random_state=0).fit(X)
    assert model.kernel_weights_.shape == (3,)
    assert_array_equal(model.set_params(kernels="rbf").predict(X), model.labels_)


@pytest.mark.parametrize("form", [sparse.csr_array, np.asarray])
def test_views_side_by_side_may_be_sparse(form, digits):
    views = np.split(digits[0][:200], 2, axis=1)
    dense, model = (
        MultiView(5, random_state=0).fit(xs)
        for xs in (views, [sparse.csr_array(views[0]), form(views[1])])
    )
    assert adjusted_rand_score(dense.labels_, model.labels_) > 0.9


# ---- the choice ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("parameters", "options"), [
    ({}, 9), ({"whitening": None}, 0), ({"n_neighbors": 10}, 5), ({"time": 30.0}, 8),
    ({"metric": "cosine"}, 9), ({"whitening": 0.5, "n_neighbors": 10}, 0),
])  # fmt: skip
def test_only_automatic_parameters_are_tried(parameters, options):
    X = random_rows(200, 5)  # without clusters, so that the first options do not agree
    tried = DiffusionPowerKMeans(3, random_state=0, **parameters).fit(X).feature_map_.choices_
    assert len(tried) == options
    assert all(each["agreement"] > 0 for each in tried)


def test_the_plainest_is_taken_where_all_agree():
    X, y = make_blobs(300, 5, centers=3, random_state=0)
    model = DiffusionPowerKMeans(3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert {tried["agreement"] for tried in model.feature_map_.choices_} == {1.0}
    assert model.feature_map_.whitening_ is None


def touching(n, d, apart, seed=0):
    """Draw equal Gaussians at the corners of a simplex, whose edges have so many deviations."""
    y = np.arange(n) % 3
    centers = np.eye(3, d) * apart / np.sqrt(2)
    return centers[y] + np.random.default_rng(seed).standard_normal((n, d)), y


@pytest.mark.parametrize(("n", "d", "apart"), [(300, 3, 4), (600, 50, 5)])
def test_clusters_that_touch_are_those_of_the_columns(n, d, apart):
    X, y = touching(n, d, apart)
    model = DiffusionPowerKMeans(3, random_state=0).fit(X)
    plain = PowerKMeans(3, random_state=0).fit(X)
    ours, theirs = (adjusted_rand_score(y, fitted.labels_) for fitted in (model, plain))
    assert ours >= theirs - 0.02
    mapped = model.feature_map_
    assert mapped.time_ == 0 and mapped.n_components_ == d and not model.cache_
    assert mapped.choices_[0]["neighbors"] == 0
    assert not len(mapped.eigenvalues_)  # which nothing needs
    features = mapped.transform(X)
    assert_array_equal(features, X)
    assert not np.shares_memory(features, X)
    assert model.cluster_centers_.shape == (3, d)
    assert model.membership_exponent_ == pytest.approx(plain.membership_exponent_, rel=0.1)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)


def test_a_small_cluster_that_a_sample_misses_keeps_the_graph():
    """Of 6000 rows 15 are a cluster of their own: k-means on the columns divides another."""
    X, y = touching(6000, 2, 6)
    X = np.vstack([X, [30, 30] + 0.3 * np.random.default_rng(1).standard_normal((15, 2))])
    model = DiffusionPowerKMeans(4, random_state=0).fit(X)
    assert len(set(model.labels_[6000:])) == 1
    assert np.bincount(model.labels_)[model.labels_[-1]] < 30


@pytest.mark.parametrize(
    "given", [{"time": 10.0}, {"n_components": 4}, {"n_landmarks": 300}, {"whitening": None}]
)
def test_a_parameter_of_the_map_asks_for_one(given):
    X, _ = touching(300, 3, 4)
    mapped = DiffusionPowerKMeans(3, random_state=0, **given).fit(X).feature_map_
    assert mapped.time_ > 0 and all(each["neighbors"] for each in mapped.choices_)


def test_rows_that_weights_draw_several_times_are_found():
    moons, y = make_moons(2500, noise=0.05, random_state=0)
    random = np.random.default_rng(0)
    flags = random.random((2500, 4)) < [0.005, 0.01, 0.02, 0.03]
    X, weight = np.hstack([scale(moons), flags]), random.integers(1, 4, 2500)
    model = DiffusionPowerKMeans(2, random_state=0).fit(X, sample_weight=weight)
    assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.exhaustive
def test_a_heavy_row_leaves_others_in_the_sample():
    X = np.random.default_rng(0).standard_normal((2500, 3))
    weight = np.ones(2500)
    weight[0] = 1e6
    tried = DiffusionPowerKMeans(3, random_state=0).fit(X, sample_weight=weight).feature_map_
    assert len({each["agreement"] for each in tried.choices_}) > 1


def test_components_make_no_copy_of_rows_in_float64():
    X = np.random.default_rng(0).standard_normal((20_000, 200)).astype(np.float32)
    tracemalloc.start()
    found = fit_components(X, ones(len(X)), 4, np.random.RandomState(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.3 * X.nbytes  # 32 MB in float64
    deviations = np.linalg.svd(X - X.mean(axis=0, dtype=np.float64), compute_uv=False)
    assert_allclose(found.deviations, deviations[: len(found.deviations)] / deviations[0])

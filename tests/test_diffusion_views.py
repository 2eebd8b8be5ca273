"""Diffusion features as views of the estimator with several views."""

import numpy as np
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from rffpk import DiffusionMap, DiffusionPowerKMeans


@pytest.fixture(scope="module")
def views():
    """Draw two views of circles, which no straight line separates, and a view of noise."""
    circles = [make_circles(600, factor=0.4, noise=0.05, random_state=seed) for seed in (0, 1)]
    views = [x[np.argsort(y, kind="stable")] for x, y in circles]  # so that their rows match
    return [*views, np.random.default_rng(0).standard_normal((600, 2))], np.repeat([0, 1], 300)


def fitted(xs, **parameters):
    parameters = {"kernels": "diffusion", "random_state": 0, **parameters}
    return ip_rff_mkpkm(2, **parameters).fit(xs)


@pytest.mark.few(2)
@pytest.mark.parametrize("possibilistic", [True, False])
def test_views_of_circles_are_separated(views, dtype, possibilistic):
    xs, y = [x.astype(dtype) for x in views[0][:2]], views[1]
    model = fitted(xs, typicality="auto" if possibilistic else None)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.cluster_centers_.dtype == dtype
    assert_array_equal(model.predict(xs), model.labels_)
    assert_allclose(model.predict_proba(xs).sum(axis=1), 1, rtol=1e-5)
    straight = ip_rff_mkpkm(2, random_state=0).fit(xs)
    assert adjusted_rand_score(y, straight.labels_) < 0.1
    far = [np.full((3, 2), 1e6, dtype), np.full((3, 2), -1e6, dtype)]
    assert np.isfinite(model.transform(far)).all()
    assert not possibilistic or np.isfinite(model.predict_typicality(far)).all()


def test_one_view_is_the_estimator_of_one_view(views):
    """Features of another scale have the same clusters."""
    X = views[0][0]
    model = fitted([X], typicality=None)
    alone = DiffusionPowerKMeans(2, random_state=0).fit(X)
    assert adjusted_rand_score(alone.labels_, model.labels_) == 1
    assert_array_equal(fitted(X, typicality=None).labels_, model.labels_)


def test_features_of_a_view_have_a_total_variance_of_one(views):
    model = fitted(views[0], sample=None)
    for x, mapped in zip(views[0], model.feature_maps_):
        assert isinstance(mapped, DiffusionMap)
        assert_allclose(mapped.transform(x).var(axis=0).sum(), 1, rtol=1e-6)
    widths = [mapped.n_components_ for mapped in model.feature_maps_]
    assert model.cluster_centers_.shape == (2, sum(widths))
    parts = [mapped.transform(x) for x, mapped in zip(views[0], model.feature_maps_)]
    scale = np.sqrt(np.repeat(model.kernel_weights_, widths))
    expected = cdist(np.hstack(parts) * scale, model.cluster_centers_ * scale)
    assert_allclose(model.transform(views[0]), expected, rtol=1e-6, atol=1e-9)


def test_weights_prefer_the_views_with_clusters(views):
    weights = fitted(views[0], typicality=None, weight_entropy=0.3).kernel_weights_
    assert_allclose(weights.sum(), 1)
    assert weights[2] < 0.8 * weights[:2].min()


def test_views_of_both_kinds(views):
    xs, y = views
    model = fitted(xs[:2], kernels=["diffusion", "rbf"], n_frequencies=32)
    diffusion, fourier = model.feature_maps_
    assert model.cluster_centers_.shape == (2, diffusion.n_components_ + 64)
    assert fourier.frequencies_.shape == (2, 32)
    assert_array_equal(model.predict(xs[:2]), model.labels_)
    limited = clone(model).set_params(cache=False).fit(xs[:2])
    assert limited.cache_ is False
    assert adjusted_rand_score(limited.labels_, model.labels_) == 1
    assert_array_equal(model.set_params(kernels="rbf").predict(xs[:2]), model.labels_)
    other = fitted(xs, cache=False, n_jobs=2)
    assert_array_equal(other.cluster_centers_, fitted(xs, cache=True).cluster_centers_)


def test_a_map_gives_the_parameters_of_its_view_and_stays_as_it_is(views):
    given = DiffusionMap(3, n_neighbors=4, n_landmarks=100, metric="cosine")
    before = given.__getstate__()
    model = fitted(views[0][:2], kernels=[given, "diffusion"])
    assert given.__getstate__() == before
    used = model.feature_maps_[0]
    assert used.get_params()["n_neighbors"] == 4 and used.metric == "cosine"
    assert used.n_components_ == 3 and len(used.landmarks_) == 100
    assert_allclose(np.linalg.norm(used.landmarks_, axis=1), 1)
    again = clone(model).fit(views[0][:2])
    assert_array_equal(again.cluster_centers_, model.cluster_centers_)


def test_a_graph_in_pieces_is_named_with_its_view():
    random = np.random.default_rng(0)
    corners = np.repeat([[0, 0], [100, 0], [0, 100]], 100, axis=0)
    pieces = corners + random.standard_normal((300, 2))
    with pytest.warns(ConvergenceWarning, match=r"The neighbor graph of view 1 has \d+ connected"):
        fitted([random.standard_normal((300, 2)), pieces])


def test_a_long_time_is_no_matter_of_precision(views):
    random = np.random.default_rng(1).random((300, 2))
    maps = [DiffusionMap(time=1e5, whitening=None, n_neighbors=14), "rbf"]
    sizes = []
    for dtype in (np.float32, np.float64):
        R = random.astype(np.float32).astype(dtype)
        model = fitted([R, R], kernels=maps, n_frequencies=64)
        assert_allclose(model.feature_maps_[0].transform(R).var(axis=0).sum(), 1, rtol=0.01)
        sizes.append(np.bincount(model.labels_))
    assert_array_equal(*sizes)

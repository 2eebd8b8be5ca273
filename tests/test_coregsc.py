"""CoregSC beside what fusions have in common: affinities and agreement."""

import numpy as np
import pytest
from fusion_cases import affinity, leading, plain, projector, three_views
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score

from rffpk import CoregSC, center_kernel

SCHEMES = ["pairwise", "centroid"]


@pytest.fixture(scope="module")
def views():
    return three_views(120)


def test_one_view_is_spectral_clustering(views):
    x, y = views[0][0], views[1]
    model = CoregSC(4, kernels=[("rbf", 0.05)], random_state=0).fit([x])
    other = SpectralClustering(4, gamma=0.05, random_state=0).fit(x)
    assert adjusted_rand_score(other.labels_, model.labels_) > 0.9
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("n_landmarks", [None, 90])
def test_affinities_may_be_zero_on_their_diagonals(views, scheme, n_landmarks):
    xs, y = views
    Ks = plain(xs)
    for K in Ks:
        np.fill_diagonal(K, 0)
    model = CoregSC(4, kernels="precomputed", scheme=scheme, random_state=0)
    model.set_params(agreement=0.0, n_landmarks=n_landmarks).fit(Ks)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert_array_equal(model.predict(Ks), model.labels_)
    if scheme == "pairwise" and n_landmarks is None:
        for K, part in zip(Ks, np.split(model.embedding_, 3, axis=1)):
            U = leading(affinity(K), 4)[1]
            assert_allclose(projector(part), projector(U), atol=1e-12)


def test_centered_kernels_are_raised_to_affinities(views):
    xs, y = views
    Ks = [center_kernel(K) for K in plain(xs)]
    before = [K.copy() for K in Ks]
    model = CoregSC(4, kernels="precomputed", random_state=0).fit(Ks)
    raised = [K - K.min() for K in Ks]
    expected = CoregSC(4, kernels="precomputed", random_state=0).fit(raised)
    assert_allclose(model.objective_, expected.objective_)
    assert_allclose(model.transform([K[:9] for K in Ks]), model.embedding_[:9], atol=1e-12)
    assert_array_equal(Ks, before)
    assert adjusted_rand_score(y, model.labels_) > 0.9

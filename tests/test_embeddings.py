"""The classes that cluster an embedding: what they have in common with classes of centroids."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import FUSED
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

import rffpk
from rffpk import SMKC, SimpleMKKM

X = load_iris().data[::2]
VIEWS = [X[:, :2], X[:, 2:]]
CLASSES = [*FUSED, rffpk.NystroemKernelKMeans]
KERNELS = [rbf_kernel(view) for view in VIEWS]


def fitted(cls):
    """Fit a model; return it, its rows, and the embedding that it clusters."""
    rows = X if cls is rffpk.NystroemKernelKMeans else VIEWS
    model = cls(3, random_state=0).fit(rows)
    Z = model.embedding_
    return model, rows, normalize(Z) if getattr(model, "normalize_rows", False) else Z


@pytest.mark.parametrize("cls", CLASSES)
def test_memberships_scores_and_medoids_are_those_of_k_means_on_the_embedding(cls):
    model, rows, Z = fitted(cls)
    squares = ((Z[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    for s, given in ((model.membership_exponent_, {}), (-2.0, {"s": -2.0})):
        u = model.predict_proba(rows, **given)
        assert_allclose(u, squares**s / (squares**s).sum(axis=1, keepdims=True), atol=1e-9)
    hard = model.predict_proba(rows, s=-np.inf)
    assert_array_equal(hard.argmax(axis=1), model.labels_)
    assert_array_equal(hard.max(axis=1), 1)
    assert_allclose(model.score(rows), -squares.min(axis=1).sum(), rtol=1e-9)
    assert_allclose(model.score(rows), -model.inertia_, rtol=1e-6)
    assert_array_equal(model.medoids(rows), squares.argmin(axis=0))
    some = [view[:7] for view in rows] if isinstance(rows, list) else rows[:7]
    assert_allclose(model.score(some), -squares[:7].min(axis=1).sum(), rtol=1e-9)


@pytest.mark.parametrize("cls", [cls for cls in FUSED if cls is not SMKC])
def test_precomputed_kernels_have_memberships(cls):
    model = cls(3, kernels="precomputed", random_state=0).fit(KERNELS)
    u = model.predict_proba([K[:5] for K in KERNELS])
    assert_array_equal(u.argmax(axis=1), model.labels_[:5])
    assert np.isfinite(model.score(KERNELS))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cls", CLASSES)
def test_prediction_does_not_depend_on_set_output(cls):
    model, rows, _ = fitted(cls)
    model.set_output(transform="pandas")
    assert_array_equal(model.predict(rows), model.labels_)
    assert model.predict_proba(rows).shape == (len(X), 3)
    assert np.isfinite(model.score(rows)) and len(model.medoids(rows)) == 3


@pytest.mark.parametrize("cls", [cls for cls in FUSED if cls is not rffpk.AverageMKKM])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_iterations_are_at_most_max_iter(cls, most):
    model = cls(3, max_iter=most, tol=1e-12, random_state=0)
    model.fit([X, np.random.RandomState(0).randn(*X.shape)])
    assert model.n_iter_ == len(model.history_) <= most


@pytest.mark.filterwarnings("error")
def test_one_kernel_converges_in_one_iteration():
    assert SimpleMKKM(3, max_iter=1, random_state=0).fit(X).n_iter_ == 1

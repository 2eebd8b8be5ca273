"""MVC-LFA: its updates against general solvers, its ends, and new rows."""

import itertools

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from internals import ones
from numpy.testing import assert_allclose, assert_array_equal
from oracles import procrustes
from scipy.linalg import polar
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_mkkm import GAMMAS, leading, prepared, projector, three_views

from rffpk import MVCLFA, AverageMKKM
from rffpk.fusion.baselines import LateFusion


@parametrize_with_checks([MVCLFA()], expected_failed_checks=weight_and_sparse_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def views():
    return three_views(120)


@pytest.fixture(scope="module")
def kernels(views):
    return prepared(views[0])


def fit(Ks, k=4, **parameters):
    return MVCLFA(k, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def published(Ks, k, weight, iterations):
    """The updates by polar decompositions: F, W, beta and the objective of each iteration."""
    Hs, M = [leading(K, k)[1] for K in Ks], leading(np.mean(Ks, axis=0), k)[1]
    # signs of eigenvectors are free, and the first W are all I: the entry of largest size is > 0
    Hs = [H * np.sign(H[np.abs(H).argmax(axis=0), np.arange(k)]) for H in Hs]
    M = M * np.sign(M[np.abs(M).argmax(axis=0), np.arange(k)])
    Ws, beta = [np.eye(k)] * len(Ks), np.full(len(Ks), len(Ks) ** -0.5)
    for _ in range(iterations):
        F = polar(sum(b * H @ W for b, H, W in zip(beta, Hs, Ws)) + weight * M)[0]
        value = objective(F, Hs, Ws, beta, M, weight)
        yield F, beta, value
        Ws = [polar(H.T @ F)[0] for H in Hs]
        beta = np.array([np.trace(F.T @ H @ W) for H, W in zip(Hs, Ws)])
        beta /= np.linalg.norm(beta)


def objective(F, Hs, Ws, beta, M, weight):
    fused = sum(b * H @ W for b, H, W in zip(beta, Hs, Ws))
    return np.trace(F.T @ fused) + weight * np.trace(F.T @ M)


@pytest.mark.few(2)
@pytest.mark.parametrize("weight", [0, 0.1, 1.0, 100.0])
def test_it_is_the_published_alternation(kernels, weight):
    model = fit(kernels, mean_weight=weight, tol=1e-9)
    states = list(published(kernels, 4, weight, model.n_iter_))
    for record, (_, beta, value) in zip(model.history_, states):
        assert_allclose(record["objective"], value, rtol=1e-8)
        assert_allclose(record["kernel_weights"], beta, rtol=1e-6)
    assert_allclose(model.embedding_, states[-1][0], atol=1e-6)


@pytest.mark.few(2)
@pytest.mark.parametrize("weight", [0, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("k", [1, 4])
def test_the_objective_never_falls_and_no_update_improves_its_end(kernels, weight, k):
    model = fit(kernels, k, mean_weight=weight, tol=1e-13, max_iter=2000)
    for before, after in itertools.pairwise(model.history_):
        assert after["objective"] >= before["objective"] * (1 - 1e-12)
    assert_allclose(np.sum(model.kernel_weights_**2), 1)
    assert (model.kernel_weights_ >= 0).all()
    F, beta = model.embedding_, model.kernel_weights_
    assert_allclose(F.T @ F, np.eye(k), atol=1e-10)
    Hs, M = [leading(K, k)[1] for K in kernels], leading(np.mean(kernels, axis=0), k)[1]
    M *= np.sign(M[np.abs(M).argmax(axis=0), np.arange(k)])
    Ws = [polar(H.T @ F)[0] for H in Hs]
    most = objective(F, Hs, Ws, beta, M, weight)
    assert_allclose(most, model.objective_, rtol=1e-6)
    random = np.random.default_rng(0)
    for _ in range(20):
        near = np.linalg.qr(F + 0.05 * random.standard_normal(F.shape))[0]
        near *= np.sign(np.sum(near * F, axis=0))
        assert objective(near, Hs, Ws, beta, M, weight) <= most * (1 + 1e-7)
        turned = [polar(W + 0.1 * random.standard_normal(W.shape))[0] for W in Ws]
        assert objective(F, Hs, turned, beta, M, weight) <= most * (1 + 1e-7)
        other = np.abs(beta + 0.1 * random.standard_normal(3))
        other /= np.linalg.norm(other)
        assert objective(F, Hs, Ws, other, M, weight) <= most * (1 + 1e-7)


def test_every_iteration_is_linear_in_the_kernels(kernels):
    state = LateFusion(kernels, 4, 0.7, ones(len(kernels[0])))
    for _, last in zip(range(5), state.iterations()):
        found = sum(K @ B for K, B in zip(kernels, state.maps()))
        assert_allclose(found, last.vectors, atol=1e-11)


def test_a_large_weight_gives_the_clustering_of_the_mean_kernel(kernels):
    mean = AverageMKKM(4, kernels="precomputed", random_state=0).fit(kernels)
    model = fit(kernels, mean_weight=1e9)
    assert_allclose(model.embedding_, mean.embedding_, atol=1e-6)


def test_without_the_mean_kernel_it_fuses_the_eigenvectors_of_each_kernel(kernels):
    model = fit(kernels, mean_weight=0, tol=1e-14, max_iter=1000)
    H = [np.linalg.eigh(K)[1][:, -4:] for K in kernels]
    F, beta = model.embedding_, model.kernel_weights_
    agreement = np.array([np.linalg.svd(h.T @ F, compute_uv=False).sum() for h in H])
    assert_allclose(beta, agreement / np.linalg.norm(agreement), atol=1e-6)
    assert_allclose(model.objective_, beta @ agreement, rtol=1e-8)
    turned = sum(b * h @ procrustes(h.T @ F) for b, h in zip(beta, H))
    assert_allclose(F, procrustes(turned), atol=1e-5)


def test_equal_kernels_are_one(kernels):
    alone, thrice = fit(kernels[:1]), fit([kernels[0]] * 3)
    assert_allclose(thrice.kernel_weights_, 3**-0.5)
    assert_allclose(projector(thrice.embedding_), projector(alone.embedding_), atol=1e-9)


def test_new_rows_landmarks_and_threads():
    xs, y = three_views(400)
    model = MVCLFA(4, kernels=GAMMAS, random_state=0).fit([x[:300] for x in xs])
    assert_array_equal(model.predict([x[:300] for x in xs]), model.labels_)
    assert adjusted_rand_score(y[300:], model.predict([x[300:] for x in xs])) > 0.9
    few = clone(model).set_params(n_landmarks=100).fit(xs)
    alone = clone(model).fit([x[few.landmarks_] for x in xs])
    assert_allclose(few.embedding_, alone.transform(xs), atol=1e-11)
    assert adjusted_rand_score(y, few.labels_) > 0.9
    again = clone(few).set_params(n_jobs=3).fit(xs)
    assert_array_equal(again.embedding_, few.embedding_)


def test_the_order_of_rows_and_views_does_not_matter(kernels):
    model = fit(kernels)
    order = np.random.default_rng(0).permutation(120)
    moved = fit([K[np.ix_(order, order)] for K in kernels])
    assert_allclose(moved.kernel_weights_, model.kernel_weights_, atol=1e-6)
    assert_allclose(moved.embedding_, model.embedding_[order], atol=1e-5)
    turned = fit(kernels[::-1])
    assert_allclose(turned.kernel_weights_, model.kernel_weights_[::-1], atol=1e-6)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"mean_weight": -0.1}, "mean_weight == -0.1, must be >= 0"),
        ({"mean_weight": 1e308}, "mean_weight == 1e.308, must be <= 1e.100"),
        ({"mean_weight": "all"}, "mean_weight == 'all', must be a number"),
        ({"max_iter": 0}, "max_iter == 0, must be >= 1"),
    ],
)
def test_bad_parameters(kernels, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(kernels, **parameters)

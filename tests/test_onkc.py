"""ONKC: each update against a general solver, its decrease, its ends, and new rows."""

import itertools

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from internals import leading_eigenvectors
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_mkkm import GAMMAS, leading, prepared, projector, three_views

from rffpk import ONKC, AverageMKKM
from rffpk.fusion import baselines
from rffpk.fusion.baselines import NearKernel, positive_eigenpairs, positive_part


@parametrize_with_checks([ONKC()], expected_failed_checks=weight_and_sparse_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def kernels():
    return prepared(three_views(120)[0])


def fit(Ks, k=4, **parameters):
    return ONKC(k, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def objective(Ks, G, H, alpha, rho, diversity):
    K = np.einsum("l,lij->ij", alpha, Ks)
    cost = np.trace(G) - np.trace(H.T @ G @ H)
    return cost + rho / 2 * np.sum((G - K) ** 2) + diversity / 2 * np.sum(K**2)


def printed_onkc(Ks, k, rho, diversity, iterations):
    """The three updates in turn, by full decompositions and a general solver; all states."""
    n, L = len(Ks[0]), len(Ks)
    alpha = np.full(L, 1 / L)
    H = leading(np.mean(Ks, axis=0), k)[1]
    for _ in range(iterations):
        values, vectors = np.linalg.eigh(
            np.einsum("l,lij->ij", alpha, Ks) - (np.eye(n) - projector(H)) / rho
        )
        G = (vectors * np.maximum(values, 0)) @ vectors.T
        H = vectors[:, ::-1][:, :k]
        alpha = minimize(
            lambda x, G=G, H=H: objective(Ks, G, H, x, rho, diversity), alpha, method="SLSQP",
            bounds=[(0, 1)] * L, options={"ftol": 1e-15},
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        ).x  # fmt: skip
        yield G, H, alpha


@pytest.mark.few(2)
@pytest.mark.parametrize("rho, diversity", [(1.0, 0.0), (0.1, 0.1), (2.0**5, 1e-3), (1e-3, 1.0)])
def test_it_is_the_printed_alternation(kernels, rho, diversity):
    model = fit(kernels, rho=rho, diversity=diversity, tol=0.0, max_iter=6)
    states = printed_onkc(kernels, 4, rho, diversity, 6)
    for record, (G, H, alpha) in zip(model.history_, states):
        assert_allclose(record["kernel_weights"], alpha, atol=2e-4)
        expected = objective(kernels, G, H, alpha, rho, diversity)
        assert_allclose(record["objective"], expected, rtol=1e-6)


@pytest.mark.parametrize("rho", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("diversity", [0, 0.01, 1.0])
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_never_rises(kernels, rho, diversity, k):
    model = fit(kernels, k, rho=rho, diversity=diversity, tol=1e-12, max_iter=60)
    for before, after in itertools.pairwise(model.history_):
        assert after["objective"] <= before["objective"] * (1 + 1e-10)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rho", [0.1, 1.0])
@pytest.mark.parametrize("diversity", [0.01, 1.0])
@pytest.mark.parametrize("k", [1, 4])
def test_no_update_improves_the_end(kernels, rho, diversity, k):
    model = fit(kernels, k, rho=rho, diversity=diversity, tol=1e-12, max_iter=1000)
    alpha, H = model.kernel_weights_, model.embedding_
    K = np.einsum("l,lij->ij", alpha, kernels)
    values, vectors = np.linalg.eigh(K - (np.eye(120) - projector(H)) / rho)
    G = positive_part(values, vectors)
    least = objective(kernels, G, H, alpha, rho, diversity)
    assert_allclose(least, model.objective_, rtol=1e-6)
    random = np.random.default_rng(0)
    for other in random.dirichlet(np.ones(3), 20):
        assert objective(kernels, G, H, other, rho, diversity) >= least * (1 - 1e-6)
    for _ in range(5):
        near = np.linalg.qr(H + 0.1 * random.standard_normal(H.shape))[0]
        assert objective(kernels, G, near, alpha, rho, diversity) >= least * (1 - 1e-6)
        root = np.linalg.cholesky(G + 1e-6 * np.eye(120)) + 0.01 * random.standard_normal(G.shape)
        assert objective(kernels, root @ root.T, H, alpha, rho, diversity) > least


@pytest.mark.exhaustive
def test_the_positive_part_is_the_nearest_semidefinite_matrix():
    A = np.random.default_rng(0).standard_normal((9, 9))
    A = A + A.T
    values, vectors = np.linalg.eigh(A)
    found = positive_part(values, vectors)
    assert_allclose(found, (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-13)
    assert_array_equal(positive_part(-np.ones(9), vectors), np.zeros((9, 9)))

    def distance(root):
        root = root.reshape(9, 9)
        return np.sum((root @ root.T - A) ** 2)

    best = minimize(distance, np.eye(9).ravel()).fun
    assert_allclose(np.sum((found - A) ** 2), best, rtol=1e-6)


@pytest.mark.few(3)
@pytest.mark.parametrize("n_positive", [0, 1, 20, 40, 60, 200])
def test_positive_eigenpairs_are_those_of_all(n_positive):
    """By Lanczos' method where they are about as many as before and few, else with all others."""
    random = np.random.default_rng(n_positive)
    basis = np.linalg.qr(random.standard_normal((400, 400)))[0]
    expected = -random.uniform(0.01, 1, 400)
    expected[400 - n_positive :] = np.geomspace(1e-9, 1, n_positive)
    B = (basis * expected) @ basis.T
    values, vectors = positive_eigenpairs(B, basis[:, 380:])
    assert (len(values) == 400) == (n_positive > 20)
    assert len(values) >= 20 and (np.diff(values) >= 0).all()
    assert_allclose(values, np.sort(expected)[-len(values) :], atol=1e-12)
    assert_allclose(B @ vectors, vectors * values, atol=1e-12)
    expected_part = (basis * np.maximum(expected, 0)) @ basis.T
    assert_allclose(positive_part(values, vectors), expected_part, atol=1e-12)


def test_equal_positive_eigenvalues_are_all_found():
    B = np.diag(np.r_[np.ones(20), -np.ones(380)])
    for known in (1, 12, 20):
        values, vectors = positive_eigenpairs(B, np.eye(400, known))
        assert_allclose(positive_part(values, vectors), np.maximum(B, 0), atol=1e-12)


def test_an_eigenvalue_that_lanczos_method_misses_is_noticed(monkeypatch):
    B = np.diag(np.r_[np.linspace(1, 2, 20), -np.ones(380)])

    def incomplete(B, k, n, start):
        values, vectors = leading_eigenvectors(B, k, n, start)
        return np.delete(values, 7), np.delete(vectors, 7, axis=1)

    monkeypatch.setattr(baselines, "leading_eigenvectors", incomplete)
    values, vectors = positive_eigenpairs(B, np.eye(400, 20))
    assert_allclose(positive_part(values, vectors), np.maximum(B, 0), atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("rho", [2.0**-6, 0.25, 1.0])
@pytest.mark.parametrize("diversity", [0.01, 1.0])
def test_few_eigenvectors_change_no_result(rho, diversity, tuning):
    Ks = prepared(three_views(400)[0])
    parameters = {"rho": rho, "diversity": diversity, "max_iter": 10, "tol": 0.0}
    few = fit(Ks, **parameters)
    tuning(fusion__lanczos_part=0)
    every = fit(Ks, **parameters)
    for one, other in zip(few.history_, every.history_, strict=True):
        assert_allclose(one["objective"], other["objective"], rtol=1e-10)
        assert_allclose(one["kernel_weights"], other["kernel_weights"], atol=1e-10)
    assert_allclose(projector(few.embedding_), projector(every.embedding_), atol=1e-9)
    assert_array_equal(few.labels_, every.labels_)


@pytest.mark.exhaustive
def test_every_iteration_is_linear_in_the_kernels(kernels):
    """H = sum_l K_l B_l, converged or not."""
    state = NearKernel(kernels, 4, 0.5, 0.01)
    for _, _ in zip(range(7), state.iterations()):
        found = sum(K @ B for K, B in zip(kernels, state.maps))
        assert_allclose(found, state.H, atol=1e-11)


def test_without_a_distance_it_is_the_mean_kernel_where_weights_are_equal(kernels):
    """A large rho allows no other G than the combination; one kernel has one weight."""
    alone = fit(kernels[:1], rho=1e6)
    mean = AverageMKKM(4, kernels="precomputed", random_state=0).fit(kernels[:1])
    assert_allclose(projector(alone.embedding_), projector(mean.embedding_), atol=1e-9)
    assert_allclose(alone.eigenvalues_, mean.eigenvalues_, rtol=1e-4)
    assert_allclose(alone.kernel_weights_, [1])


def test_new_rows_have_the_clusters_of_their_blobs():
    X, y = make_blobs(400, 4, centers=4, cluster_std=1.2, random_state=3)
    views = [X[:, :2], X[:, 2:]]
    for parameters in ({}, {"max_iter": 1, "tol": 10.0}, {"n_landmarks": 100}):
        model = ONKC(4, random_state=0, **parameters).fit([x[:300] for x in views])
        assert adjusted_rand_score(y[:300], model.labels_) > 0.9
        assert adjusted_rand_score(y[300:], model.predict([x[300:] for x in views])) > 0.9


def test_landmarks_are_a_fit_of_their_own():
    xs = three_views(360)[0]
    model = ONKC(4, kernels=GAMMAS, n_landmarks=90, random_state=0).fit(xs)
    alone = ONKC(4, kernels=GAMMAS, random_state=0).fit([x[model.landmarks_] for x in xs])
    assert_array_equal(model.kernel_weights_, alone.kernel_weights_)
    assert_allclose(model.embedding_, alone.transform(xs), atol=1e-11)


def test_eigenvalues_are_those_of_the_learned_kernel(kernels):
    model = fit(kernels, tol=1e-13, max_iter=300)
    assert (np.diff(model.eigenvalues_) <= 0).all()
    K = np.einsum("l,lij->ij", model.kernel_weights_, kernels)
    H = model.embedding_
    assert_allclose(H.T @ K @ H, np.diag(model.eigenvalues_), atol=1e-4)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"rho": 0.0}, "rho == 0.0, must be > 0"),
        ({"rho": "near"}, "rho == 'near', must be a number"),
        ({"diversity": -0.1}, "diversity == -0.1, must be >= 0"),
        ({"diversity": 1e308}, "diversity == 1e.308, must be <= 1e.100"),
        ({"max_iter": 0}, "max_iter == 0, must be >= 1"),
    ],
)
def test_bad_parameters(kernels, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(kernels, **parameters)

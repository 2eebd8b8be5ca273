"""LKAM: its objective by loops over the neighbourhoods, its decrease, its ends, and new rows."""

import itertools

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from hypothesis import given
from hypothesis import strategies as st
from internals import ones
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_mkkm import GAMMAS, gaussian, leading, prepared, projector, three_views

from rffpk import LKAM, MKKMMR
from rffpk.fusion.baselines import least_values, shares


@parametrize_with_checks(
    [LKAM(), LKAM(n_neighbors=3)], expected_failed_checks=weight_and_sparse_failures
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def kernels():
    return prepared(three_views(120)[0])


def fit(Ks, **parameters):
    return LKAM(4, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def neighbourhoods(Ks, size):
    """Indices of the rows in each, by sorting."""
    mean = np.mean(Ks, axis=0)
    return [np.argsort(-line, kind="stable")[:size] for line in mean]


def objective(Ks, alpha, H, size, diversity):
    """By its definition, neighbourhood after neighbourhood."""
    total = 0
    for rows in neighbourhoods(Ks, size):
        local = [K[np.ix_(rows, rows)] for K in Ks]
        costs = [np.trace(K) - np.trace(H[rows].T @ K @ H[rows]) for K in local]
        M = [[np.trace(K @ other) for other in local] for K in local]
        total += alpha**2 @ costs + diversity / 2 * alpha @ M @ alpha
    return total / len(H)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**20))
def test_the_shares_count_neighbourhoods(n, size, seed):
    size = min(n, size)
    A = np.random.default_rng(seed).standard_normal((n, n))
    mean = A + A.T
    members = mean >= least_values(mean, size)
    assert (members.sum(axis=0) == size).all()
    found = np.zeros((n, n))
    for rows in neighbourhoods([mean], size):
        found[np.ix_(rows, rows)] += 1
    assert_array_equal(shares(members, members, ones(n)), found / n)


def test_equal_values_belong_to_the_same_neighbourhoods():
    mean = np.kron(np.eye(3), np.ones((4, 4)))
    for size in (1, 3, 4):
        assert_array_equal(mean >= least_values(mean, size), mean > 0)
    near = mean * (1 - 1e-12 * np.random.default_rng(0).random(mean.shape))  # rounding
    assert_array_equal(near >= least_values(near, 2), mean > 0)


@pytest.mark.few(2)
@pytest.mark.parametrize("size", [1, 20, 119])
@pytest.mark.parametrize("diversity", [0, 1e-3, 0.1, 10.0])
def test_it_falls_to_a_point_that_neither_update_improves(kernels, size, diversity):
    model = fit(kernels, n_neighbors=size, diversity=diversity, tol=1e-13)
    for before, after in itertools.pairwise(model.history_):
        assert after["objective"] <= before["objective"] * (1 + 1e-11)
    alpha, H = model.kernel_weights_, model.embedding_
    assert_allclose(H.T @ H, np.eye(4), atol=1e-9)

    def cost(alpha, H=H):
        return objective(kernels, alpha, H, size, diversity)

    assert_allclose(model.objective_, cost(alpha))
    random = np.random.default_rng(0)
    for other in random.dirichlet(np.ones(3), 5):
        assert cost(other) >= model.objective_ * (1 - 1e-12)
    for _ in range(5):
        near = np.linalg.qr(H + 0.1 * random.standard_normal(H.shape))[0]
        assert cost(alpha, near) >= model.objective_ * (1 - 1e-12)


def test_the_weights_are_those_of_a_general_solver(kernels):
    model = fit(kernels, n_neighbors=30, diversity=0.01, tol=1e-13)
    best = minimize(
        objective_of_weights, np.full(3, 1 / 3), args=(kernels, model.embedding_),
        method="SLSQP", bounds=[(0, 1)] * 3, options={"ftol": 1e-14},
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    )  # fmt: skip
    assert_allclose(model.kernel_weights_, best.x, atol=1e-4)


def objective_of_weights(alpha, Ks, H):
    return objective(Ks, alpha, H, 30, 0.01)


def test_with_all_rows_as_neighbours_it_is_mkkm_mr(kernels):
    other = MKKMMR(4, kernels="precomputed", random_state=0).fit(kernels)
    for size in (1.0, 120):
        model = fit(kernels, n_neighbors=size)
        assert_allclose(model.kernel_weights_, other.kernel_weights_, rtol=1e-9)
        assert_allclose(model.objective_, other.objective_)
        assert_allclose(projector(model.embedding_), projector(other.embedding_), atol=1e-9)


def test_a_fraction_is_one_of_the_rows(kernels):
    by_fraction, by_number = (fit(kernels, n_neighbors=size) for size in (0.25, 30))
    assert_array_equal(by_fraction.embedding_, by_number.embedding_)
    assert fit(kernels, n_neighbors=1e-9).objective_ == fit(kernels, n_neighbors=1).objective_


def learned(kernels, model, size):
    """W * K_alpha by loops."""
    W = np.zeros((len(kernels[0]), len(kernels[0])))
    for rows in neighbourhoods(kernels, size):
        W[np.ix_(rows, rows)] += 1 / len(W)
    return W, W * np.einsum("l,lij->ij", model.kernel_weights_**2, kernels)


def test_the_embedding_are_eigenvectors_of_the_learned_kernel(kernels):
    model = fit(kernels, n_neighbors=25)
    values, H = leading(learned(kernels, model, 25)[1], 4)
    assert_allclose(model.eigenvalues_, values)
    assert_allclose(projector(model.embedding_), projector(H), atol=1e-9)


def test_new_rows_belong_to_the_neighbourhoods_that_they_reach():
    """One row after the other is left out: its line of the kernel is by the definition."""
    xs, y = three_views(150)
    model = LKAM(4, kernels=GAMMAS, standardize=False, n_neighbors=20, random_state=0)
    model.fit([x[:120] for x in xs])
    Ks = [gaussian(x, gamma) for x, (_, gamma) in zip(xs, GAMMAS)]
    fitted = [K[:120, :120] for K in Ks]
    found = model.transform([x[120:] for x in xs])
    H = leading(learned(fitted, model, 20)[1], 4)[1]
    signs = np.sign(np.sum(H * model.embedding_, axis=0))
    for row, line in zip(range(120, 150), found):
        share = np.zeros(120)
        for number, rows in enumerate(neighbourhoods(fitted, 20)):
            values = np.mean([K[number] for K in Ks], axis=0)
            if values[row] >= values[rows].min():
                share[rows] += 1 / 120
        K = share * np.einsum("l,lj->j", model.kernel_weights_**2, [K[row, :120] for K in Ks])
        assert_allclose(line, K @ (signs * H) / model.eigenvalues_, atol=1e-9)
    far = [x[:2] + 1e3 for x in xs]  # in no neighbourhood
    assert_array_equal(model.transform(far), np.zeros((2, 4)))
    assert adjusted_rand_score(y[120:], model.predict([x[120:] for x in xs])) > 0.9


def test_landmarks_have_neighbourhoods_of_their_own():
    xs, y = three_views(360)
    model = LKAM(4, kernels=GAMMAS, n_landmarks=90, n_neighbors=0.3, random_state=0).fit(xs)
    few = [x[model.landmarks_] for x in xs]
    alone = LKAM(4, kernels=GAMMAS, n_neighbors=27, random_state=0).fit(few)
    assert_array_equal(model.kernel_weights_, alone.kernel_weights_)
    assert_allclose(model.embedding_, alone.transform(xs), atol=1e-12)
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_neighbors": 0}, "n_neighbors == 0, must be >= 1"),
        ({"n_neighbors": 0.0}, "n_neighbors == 0.0, must be > 0"),
        ({"n_neighbors": 1.5}, "n_neighbors == 1.5, must be <= 1"),
        ({"n_neighbors": "all"}, "n_neighbors must be an instance of int"),
        ({"diversity": -0.1}, "diversity == -0.1, must be >= 0"),
        ({"diversity": 1e308}, "diversity == 1e.308, must be <= 1e.100"),
    ],
)
def test_bad_parameters(kernels, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(kernels, **parameters)

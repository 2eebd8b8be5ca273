"""MKKM-MR: the programme of its weights, its decrease, and its ends, MKKM and the penalty alone."""

import itertools

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_mkkm import combined, leading, prepared, projector, three_views

from rffpk import MKKM, MKKMMR
from rffpk.fusion.spectral import diversity_penalty, inverse_shares, simplex_minimum


@parametrize_with_checks([MKKMMR()], expected_failed_checks=weight_and_sparse_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def kernels():
    return prepared(three_views(120)[0])


def fit(Ks, cls=MKKMMR, **parameters):
    return cls(4, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


# ---- quadratic programmes on the simplex --------------------------------------------------------


def by_slsqp(Q):
    """The minimum of x'Qx over the simplex by a general solver, the best of several starts."""
    Q = Q / Q.max()
    m = len(Q)
    starts = [np.full(m, 1 / m), *(0.9 * np.eye(m) + 0.1 / m)]
    found = [
        minimize(
            lambda x: x @ Q @ x, x, jac=lambda x: 2 * Q @ x, method="SLSQP", bounds=[(0, 1)] * m,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-16, "maxiter": 500},
        )
        for x in starts
    ]  # fmt: skip
    return min(found, key=lambda each: each.fun).x


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**20), st.booleans())
def test_the_programme_is_solved_as_by_a_general_solver(m, rank, seed, positive):
    random = np.random.default_rng(seed)
    root = random.standard_normal((rank, m)) + positive
    Q = root.T @ root
    x, other = simplex_minimum(Q), by_slsqp(Q)
    assert (x >= 0).all() and np.isclose(x.sum(), 1)
    assert x @ Q @ x <= other @ Q @ other + 1e-9 * Q.max()
    gradient = Q @ x  # equal where x > 0, and not less elsewhere
    assert gradient.min() >= x @ gradient - 1e-6 * np.sqrt(Q.max() * max(x @ gradient, 1e-9))


def test_programmes_by_hand():
    costs = np.array([1.0, 2.0, 4.0])
    assert_allclose(simplex_minimum(np.diag(costs)), inverse_shares(costs), rtol=1e-9)
    assert_allclose(simplex_minimum(1e300 * np.diag(costs)), inverse_shares(costs), rtol=1e-9)
    # x = (1 - t, t): 4 - 5 t + 2 t^2 falls up to t = 1, where the first unknown is zero
    assert_allclose(simplex_minimum(np.array([[4.0, 1.5], [1.5, 1.0]])), [0, 1], atol=1e-12)
    # equal kernels share their weight, whatever their order; without cost all weights are equal
    Q = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    assert_allclose(simplex_minimum(Q), [0.25, 0.25, 0.5], atol=1e-4)
    assert_array_equal(simplex_minimum(np.zeros((4, 4))), np.full(4, 0.25))


def test_the_penalty_is_that_of_traces_of_products(kernels):
    M = diversity_penalty(kernels, kernels, 0.3)
    assert_allclose(M, [[0.3 * np.trace(K @ other) for other in kernels] for K in kernels])
    assert diversity_penalty(kernels, kernels, 0.0) is None


# ---- the estimator ------------------------------------------------------------------------------


def objective(Ks, alpha, H, diversity):
    costs = [np.trace(K) - np.trace(H.T @ K @ H) for K in Ks]
    mean = np.einsum("l,lij->ij", alpha, Ks)
    return alpha**2 @ costs + diversity / 2 * np.sum(mean**2)


@pytest.mark.parametrize("diversity", [1e-3, 0.1, 10.0])
def test_it_falls_to_a_point_that_neither_update_improves(kernels, diversity):
    model = fit(kernels, diversity=diversity, tol=1e-13)
    records = model.history_
    assert len(records) == model.n_iter_ > 2
    for before, after in itertools.pairwise(records):
        assert after["objective"] <= before["objective"] * (1 + 1e-11)
    alpha, H = model.kernel_weights_, leading(combined(kernels, model.kernel_weights_), 4)[1]
    assert_allclose(projector(model.embedding_), projector(H), atol=1e-9)
    assert_allclose(model.objective_, objective(kernels, alpha, H, diversity))
    for other in np.random.default_rng(0).dirichlet(np.ones(3), 100):
        assert objective(kernels, other, H, diversity) >= model.objective_
    best = minimize(
        lambda x: objective(kernels, x, H, diversity), alpha, method="SLSQP", bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-14},
    )  # fmt: skip
    assert_allclose(alpha, best.x, atol=1e-4)


def test_without_the_penalty_it_is_mkkm(kernels):
    model, other = fit(kernels, diversity=0, tol=1e-4), fit(kernels, MKKM)
    assert_array_equal(model.kernel_weights_, other.kernel_weights_)
    assert_array_equal(model.embedding_, other.embedding_)
    assert_allclose(
        fit(kernels, diversity=1e-15).objective_, fit(kernels, MKKM, tol=1e-6).objective_
    )


def test_a_large_penalty_gives_the_weights_of_the_smallest_combined_kernel(kernels):
    M = np.einsum("pij,qij->pq", kernels, kernels)
    model = fit(kernels, diversity=1e9)
    assert_allclose(model.kernel_weights_, by_slsqp(M), atol=1e-5)


def test_alike_kernels_share_the_weight_of_one(kernels):
    """Without the penalty a copy of a kernel adds to the weight of both."""
    alone, doubled = kernels[1:], [kernels[1], kernels[1], kernels[2]]
    for diversity in (0, 1e6):
        plain, copied = (fit(Ks, diversity=diversity).kernel_weights_ for Ks in (alone, doubled))
        assert 0.1 < plain[0] < 0.9
        assert_allclose(copied[0], copied[1], atol=1e-4)
        if diversity:
            assert_allclose(copied[:2].sum(), plain[0], atol=1e-4)
        else:
            assert copied[:2].sum() > plain[0] + 0.05


def test_products_that_overflow_are_refused():
    X = np.random.default_rng(0).standard_normal((30, 2)) * 1e100
    with pytest.raises(ValueError, match="^X has kernels whose products overflow"):
        MKKMMR(2, kernels=["linear"], standardize=False).fit([X])


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"diversity": -0.1}, "diversity == -0.1, must be >= 0"),
        ({"diversity": 1e308}, "diversity == 1e.308, must be <= 1e.100"),
        ({"diversity": "much"}, "diversity == 'much', must be a number"),
        ({"tol": -1.0}, "tol == -1.0, must be >= 0"),
        ({"max_iter": 0}, "max_iter == 0, must be >= 1"),
    ],
)
def test_bad_parameters(kernels, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(kernels, **parameters)

"""AverageMKKM, MKKM and MKKM-MR beside what fusions have in common: programmes and penalties."""

import numpy as np
import pytest
from contracts.fusion import base
from contracts.plan import linalg
from fusion_cases import by_slsqp, prepared, three_views
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rffpk import MKKM, MKKMMR


@pytest.fixture(scope="module")
def kernels():
    return prepared(three_views(120)[0])


def fit(Ks, cls=MKKMMR, **parameters):
    return cls(4, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def test_mkkm_of_kernels_that_cost_nothing():
    """If all kernels have rank k, any weights will do; kernels of this rank get all weight."""
    labels = np.repeat(np.eye(2), 5, axis=0)
    K = labels @ labels.T
    assert_allclose(MKKM(2, kernels="precomputed").fit([K, K]).kernel_weights_, 0.5)
    model = MKKM(2, kernels="precomputed", tol=0.0).fit([K, np.eye(10)])
    assert_allclose(model.kernel_weights_, [1, 0], atol=1e-12)
    assert_allclose(model.objective_, 0, atol=1e-12)


def test_an_eigenvector_orthogonal_to_the_start_is_found():
    random = np.random.default_rng(0)
    A = random.standard_normal((200, 200))
    A, Z = A @ A.T, np.zeros((200, 200))
    start = np.r_[np.ones(200), np.zeros(200)]
    values = linalg.leading_eigenvectors(np.block([[A, Z], [Z, 2 * A]]), 3, 400, start)[0]
    assert_allclose(values, 2 * np.linalg.eigvalsh(A)[::-1][:3])


# ---- quadratic programmes on the simplex --------------------------------------------------------


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**20), st.booleans())
def test_the_programme_is_solved_as_by_a_general_solver(m, rank, seed, positive):
    random = np.random.default_rng(seed)
    root = random.standard_normal((rank, m)) + positive
    Q = root.T @ root
    x, other = base.simplex_minimum(Q), by_slsqp(Q)
    assert (x >= 0).all() and np.isclose(x.sum(), 1)
    assert x @ Q @ x <= other @ Q @ other + 1e-9 * Q.max()
    gradient = Q @ x  # equal where x > 0, and not less elsewhere
    assert gradient.min() >= x @ gradient - 1e-6 * np.sqrt(Q.max() * max(x @ gradient, 1e-9))


def test_programmes_by_hand():
    costs = np.array([1.0, 2.0, 4.0])
    assert_allclose(base.simplex_minimum(np.diag(costs)), base.inverse_shares(costs), rtol=1e-9)
    assert_allclose(
        base.simplex_minimum(1e300 * np.diag(costs)), base.inverse_shares(costs), rtol=1e-9
    )
    # x = (1 - t, t): 4 - 5 t + 2 t^2 falls up to t = 1, where the first unknown is zero
    assert_allclose(base.simplex_minimum(np.array([[4.0, 1.5], [1.5, 1.0]])), [0, 1], atol=1e-12)
    # equal kernels share their weight, whatever their order; without cost all weights are equal
    Q = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    assert_allclose(base.simplex_minimum(Q), [0.25, 0.25, 0.5], atol=1e-4)
    assert_array_equal(base.simplex_minimum(np.zeros((4, 4))), np.full(4, 0.25))


# ---- MKKM-MR ------------------------------------------------------------------------------------


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

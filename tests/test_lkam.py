"""LKAM beside what fusions have in common: its neighborhoods."""

import numpy as np
import pytest
from contracts.fusion import baselines
from contracts.passes import ones
from fusion_cases import GAMMAS, prepared, projector, three_views
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rffpk import LKAM, MKKMMR


@pytest.fixture(scope="module")
def kernels():
    return prepared(three_views(120)[0])


def fit(Ks, **parameters):
    return LKAM(4, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**20))
def test_the_shares_count_neighbourhoods(n, size, seed):
    size = min(n, size)
    A = np.random.default_rng(seed).standard_normal((n, n))
    mean = A + A.T
    members = mean >= baselines.least_values(mean, size)
    assert (members.sum(axis=0) == size).all()
    counts = np.zeros((n, n))
    for line in mean:
        rows = np.argsort(-line, kind="stable")[:size]
        counts[np.ix_(rows, rows)] += 1
    assert_array_equal(baselines.shares(members, members, ones(n)), counts / n)


def test_equal_values_belong_to_the_same_neighbourhoods():
    mean = np.kron(np.eye(3), np.ones((4, 4)))
    for size in (1, 3, 4):
        assert_array_equal(mean >= baselines.least_values(mean, size), mean > 0)
    near = mean * (1 - 1e-12 * np.random.default_rng(0).random(mean.shape))  # rounding
    assert_array_equal(near >= baselines.least_values(near, 2), mean > 0)


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
    least = fit(kernels, n_neighbors=1)
    assert fit(kernels, n_neighbors=1e-9).objective_ == least.objective_
    # neighborhoods of one row have the diagonals alone, which are one
    assert_allclose(least.objective_, (1 - 4 / 120) / 3 + 0.01 / 2)


def test_rows_in_no_neighbourhood_are_embedded_at_zero():
    xs = three_views(120)[0]
    model = LKAM(4, kernels=GAMMAS, standardize=False, n_neighbors=20, random_state=0).fit(xs)
    assert_array_equal(model.transform([x[:2] + 1e3 for x in xs]), np.zeros((2, 4)))

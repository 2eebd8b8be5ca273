"""SimpleMKKM beside what fusions have in common: its gradient, its bound, and its optimality."""

import itertools
import warnings

import numpy as np
import pytest
from contracts.fusion import mkkm
from fusion_cases import combined, leading, objective_simple, prepared, three_views
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from rffpk import SimpleMKKM

EPS = np.finfo(float).eps


def four_kernels(n):
    xs = three_views(n)[0]
    return np.array([*prepared(xs), *prepared(xs[1:2])])


@pytest.fixture(scope="module")
def kernels():
    return four_kernels(120)


def fit(Ks, k=4, **parameters):
    return SimpleMKKM(k, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def objective(alpha, Ks, k):
    return objective_simple(Ks, SimpleMKKM(k), alpha)


def gap(alpha, Ks, k):
    """Return the violation of the optimality conditions on the simplex.

    It is 0 if the gradient is equal for all positive weights, and not less for weights of zero.
    """
    vectors = leading(combined(Ks, alpha), k)[1]
    gradient = 2 * alpha * np.einsum("lij,ic,jc->l", Ks, vectors, vectors) / len(vectors)
    return (alpha @ gradient - gradient.min()) / (alpha @ gradient)


@pytest.mark.parametrize("alpha", [[0.25] * 4, [0.7, 0.1, 0.1, 0.1], [0.5, 0.0, 0.2, 0.3]])
@pytest.mark.parametrize("k", [1, 4])
def test_the_gradient_is_that_of_finite_differences(kernels, alpha, k):
    Ks, alpha, step = kernels, np.array(alpha), 1e-5
    point = mkkm.Alignment(Ks, k, 120).at(alpha)
    assert_allclose(point.objective, objective(alpha, Ks, k), rtol=1e-12)
    for number, unit in enumerate(np.eye(4)):
        ahead, behind = (objective(alpha + sign * step * unit, Ks, k) for sign in (1, -1))
        assert_allclose(point.gradient[number], (ahead - behind) / (2 * step), atol=1e-8)
    assert_allclose(alpha @ point.gradient, 2 * point.objective)  # F is of degree two


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [120, 400])
@pytest.mark.parametrize("k", [1, 4, 7])
def test_it_decreases_until_the_optimality_conditions_hold(n, k):
    Ks = four_kernels(n)
    model = fit(Ks, k)
    records = model.history_
    assert len(records) == model.n_iter_ < 15
    for before, after in itertools.pairwise(records):
        assert after["objective"] < before["objective"]
    assert_allclose(records[0]["kernel_weights"], 0.25)
    for record in records:
        alpha = record["kernel_weights"]
        assert_allclose(alpha.sum(), 1)
        assert (alpha >= 0).all()
        assert_allclose(record["objective"], objective(alpha, Ks, k), rtol=1e-12)
        assert_allclose(record["gap"], gap(alpha, Ks, k), atol=1e-8)
    assert gap(model.kernel_weights_, Ks, k) < 1e-5
    assert_array_equal(model.kernel_weights_, records[-1]["kernel_weights"])
    assert model.objective_ == records[-1]["objective"]
    assert_allclose(model.eigenvalues_.sum() / n, model.objective_)
    tight = fit(Ks, k, tol=1e-8)
    assert gap(tight.kernel_weights_, Ks, k) < 100 * EPS**0.5  # where F differs by its rounding
    assert_allclose(tight.kernel_weights_, model.kernel_weights_, atol=1e-4)


@pytest.mark.exhaustive
def test_programmes_on_whole_kernels_converge_to_it_too(kernels):
    whole = mkkm.Alignment(kernels, 4, 120)
    point = mkkm.least_alignment(whole, whole.at(np.full(4, 0.25)), 1e-8)
    assert_allclose(point.alpha, fit(kernels, tol=1e-8).kernel_weights_, atol=1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", [[0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]])
def test_programmes_leave_the_boundary(kernels, start):
    whole = mkkm.Alignment(kernels, 4, 120)
    point = mkkm.least_alignment(whole, whole.at(np.array(start)), 1e-7)
    # the derivative is 0 where a weight is, so it leaves for as long as another's is negative
    assert (point.alpha > 0).all()
    assert gap(point.alpha, kernels, 4) < 1e-5


def test_kernels_of_no_alignment_take_all_weight():
    Ks = np.array([np.diag([3.0, 2.0, 1.0]), np.diag([2.0, 4.0, 1.0]), np.diag([0.0, 0.0, 1e-200])])
    model = fit(Ks, 1)
    assert_allclose(model.kernel_weights_, [0, 0, 1], atol=1e-12)
    assert_allclose(model.objective_, 0, atol=1e-12)


def test_weights_by_hand():
    """K_l = c_l K: F = sum alpha_l^2 c_l, least at alpha_l ~ 1 / c_l."""
    labels = np.repeat(np.eye(3), 4, axis=0)
    K = labels @ labels.T
    model = fit([c * K for c in (1.0, 2.0, 6.0)], 3, tol=1e-10)
    assert_allclose(model.kernel_weights_, np.array([6, 3, 1]) / 10, rtol=100 * EPS**0.5)
    assert_allclose(model.objective_, 12 / (12 * (1 + 1 / 2 + 1 / 6)))
    assert adjusted_rand_score(labels.argmax(axis=1), model.labels_) == 1


def test_a_kink_where_eigenvalues_cross():
    """k = 1, F = max(alpha_1^2, 2 alpha_2^2): least where both are equal, without a gradient."""
    Ks = np.array([np.diag([1.0, 0, 0]), np.diag([0, 2.0, 0])])
    model = fit(Ks, 1)
    ratio = np.sqrt(2)
    assert_allclose(model.kernel_weights_, np.array([ratio, 1]) / (1 + ratio), atol=1e-5)
    objectives = [record["objective"] for record in model.history_]
    assert (np.diff(objectives) < 0).all()


def test_too_few_iterations_give_a_warning(kernels):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
        model = fit(kernels, max_iter=1)
    assert model.n_iter_ <= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(kernels)


def test_verbose_2_prints_a_line_an_iteration(kernels, capsys):
    model = fit(kernels, verbose=2)
    assert capsys.readouterr().out.count("SimpleMKKM: weights, objective=") == model.n_iter_

"""SimpleMKKM: its gradient, its decrease, its optimality, and the published method in full."""

import itertools
import warnings

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from rffpk import center_kernel, normalize_kernel
from rffpk.fusion.simplemkkm import Alignment, SimpleMKKM, Subspace, least_alignment

EPS = np.finfo(float).eps


@parametrize_with_checks([SimpleMKKM()], expected_failed_checks=weight_and_sparse_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def make_kernels(n, widths=(3, 10, 40, 2)):
    """Gaussian kernels of views of blobs, centered and normalised; the last view is noise."""
    random = np.random.default_rng(0)
    y = make_blobs(n, 2, centers=4, random_state=0)[1]
    Ks = []
    for number, width in enumerate(widths):
        strength = 0 if number == len(widths) - 1 else 1 + number
        x = strength * np.eye(4)[y] @ random.standard_normal((4, width))
        x += random.standard_normal((n, width))
        K = np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / (2 * width))
        Ks.append(normalize_kernel(center_kernel(K)))
    return np.array(Ks), y


@pytest.fixture(scope="module")
def kernels():
    return make_kernels(120)


def fit(Ks, k=4, **parameters):
    return SimpleMKKM(k, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def objective(alpha, Ks, k):
    """F by a full decomposition."""
    K = np.einsum("l,lij->ij", np.square(alpha), Ks)
    return eigh(K, eigvals_only=True)[-k:].sum() / len(K)


def gap(alpha, Ks, k):
    """The violation of the optimality conditions on the simplex: 0 if the gradient is the same for
    all positive weights, and not less for weights of zero."""
    vectors = eigh(np.einsum("l,lij->ij", np.square(alpha), Ks))[1][:, -k:]
    gradient = 2 * alpha * np.einsum("lij,ic,jc->l", Ks, vectors, vectors) / len(vectors)
    return (alpha @ gradient - gradient.min()) / (alpha @ gradient)


# ---- F ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [[0.25] * 4, [0.7, 0.1, 0.1, 0.1], [0.5, 0.0, 0.2, 0.3]])
@pytest.mark.parametrize("k", [1, 4])
def test_the_gradient_is_that_of_finite_differences(kernels, alpha, k):
    Ks, alpha, step = kernels[0], np.array(alpha), 1e-5
    point = Alignment(Ks, k, 120).at(alpha)
    assert_allclose(point.objective, objective(alpha, Ks, k), rtol=1e-12)
    for number, unit in enumerate(np.eye(4)):
        ahead, behind = (objective(alpha + sign * step * unit, Ks, k) for sign in (1, -1))
        assert_allclose(point.gradient[number], (ahead - behind) / (2 * step), atol=1e-8)
    assert_allclose(alpha @ point.gradient, 2 * point.objective)  # F is of degree two


def test_in_a_subspace_it_is_a_lower_bound_that_touches(kernels):
    Ks = kernels[0]
    random = np.random.default_rng(1)
    whole, subspace, k = Alignment(Ks, 4, 120), Subspace(Ks), 4
    seen = [whole.at(alpha) for alpha in random.dirichlet(np.ones(4), 4)]
    for point in seen:
        subspace.add(point.vectors)
        subspace.add(point.vectors)  # no new direction
    assert subspace.basis.shape == (120, 16)
    assert_allclose(subspace.basis.T @ subspace.basis, np.eye(16), atol=1e-12)
    assert_allclose(subspace.Ks, subspace.basis.T @ Ks @ subspace.basis, atol=1e-12)
    part = Alignment(subspace.Ks, k, 120)
    for point in seen:
        assert_allclose(part.at(point.alpha).objective, point.objective, rtol=1e-12)
        assert_allclose(part.at(point.alpha).gradient, point.gradient, rtol=1e-9)
    for alpha in random.dirichlet(np.ones(4), 20):
        assert part.at(alpha).objective < whole.at(alpha).objective


# ---- the minimum --------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [120, 400])
@pytest.mark.parametrize("k", [1, 4, 7])
def test_it_decreases_until_the_optimality_conditions_hold(n, k):
    Ks = make_kernels(n)[0]
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


def test_no_other_weights_do_better(kernels):
    """F is convex, so that a general solver finds the same minimum."""
    Ks = kernels[0]
    model = fit(Ks, tol=1e-9)
    found = minimize(
        objective, [0.4, 0.3, 0.2, 0.1], args=(Ks, 4), method="SLSQP", bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda alpha: alpha.sum() - 1},
        options={"ftol": 1e-15},
    )  # fmt: skip
    assert_allclose(model.objective_, found.fun, rtol=1e-9)
    assert_allclose(model.kernel_weights_, found.x, atol=1e-4)
    for alpha in np.random.default_rng(0).dirichlet(np.ones(4), 100):
        assert objective(alpha, Ks, 4) >= model.objective_


def printed_simplemkkm(Ks, k, precision):
    """The published method by full decompositions: steps to the boundary, golden section."""
    golden = (np.sqrt(5) - 1) / 2
    alpha = np.full(len(Ks), 1 / len(Ks))
    while True:
        vectors = eigh(np.einsum("l,lij->ij", alpha**2, Ks))[1][:, -k:]
        gradient = 2 * alpha * np.einsum("lij,ic,jc->l", Ks, vectors, vectors) / len(vectors)
        pivot, before = alpha.argmax(), alpha
        direction = gradient[pivot] - gradient
        direction[pivot] = -direction.sum() + direction[pivot]
        direction /= np.linalg.norm(direction)
        while True:
            falling = np.flatnonzero(direction < 0)
            steps = -alpha[falling] / direction[falling]
            reach, last = steps.min(), falling[steps.argmin()]
            if objective(alpha + reach * direction, Ks, k) >= objective(alpha, Ks, k):
                break
            alpha = alpha + reach * direction
            alpha[last] = direction[last] = 0
            direction[pivot] -= direction.sum()
        low, high = 0.0, reach
        while high - low > precision * reach:
            left, right = high - golden * (high - low), low + golden * (high - low)
            values = [objective(alpha + step * direction, Ks, k) for step in (left, right)]
            low, high = (low, right) if values[0] < values[1] else (left, high)
        alpha = alpha + low * direction
        if np.abs(alpha - before).max() < 1e-5:
            return alpha


@pytest.mark.exhaustive
def test_the_published_method_converges_to_the_same_minimum(kernels):
    Ks = kernels[0]
    alpha = printed_simplemkkm(Ks, 4, 1e-6)
    model = fit(Ks)
    assert_allclose(model.kernel_weights_, alpha, atol=1e-4)
    assert_allclose(model.objective_, objective(alpha, Ks, 4), rtol=1e-7)
    assert model.objective_ <= objective(alpha, Ks, 4) * (1 + 1e-9)


@pytest.mark.exhaustive
def test_programmes_on_whole_kernels_converge_to_it_too(kernels):
    whole = Alignment(kernels[0], 4, 120)
    point = least_alignment(whole, whole.at(np.full(4, 0.25)), 1e-8)
    assert_allclose(point.alpha, fit(kernels[0], tol=1e-8).kernel_weights_, atol=1e-6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", [[0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]])
def test_programmes_leave_the_boundary(kernels, start):
    whole = Alignment(kernels[0], 4, 120)
    point = least_alignment(whole, whole.at(np.array(start)), 1e-7)
    # the derivative is 0 where a weight is, so it leaves for as long as another's is negative
    assert (point.alpha > 0).all()
    assert gap(point.alpha, kernels[0], 4) < 1e-5


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


def test_scales_and_order_of_kernels(kernels):
    Ks = kernels[0]
    model = fit(Ks, tol=1e-9)
    louder = fit(1e6 * Ks, tol=1e-9)
    assert_allclose(louder.kernel_weights_, model.kernel_weights_, atol=100 * EPS**0.5)
    assert_allclose(louder.objective_, 1e6 * model.objective_)
    turned = fit(Ks[::-1], tol=1e-9)
    assert_allclose(turned.kernel_weights_, model.kernel_weights_[::-1], atol=100 * EPS**0.5)
    alone = fit(Ks[:1])
    assert_array_equal(alone.kernel_weights_, [1.0])
    assert alone.n_iter_ == 1
    order = np.random.default_rng(0).permutation(120)
    moved = fit(Ks[:, order][:, :, order], tol=1e-9)
    assert_allclose(moved.embedding_, model.embedding_[order], atol=100 * EPS**0.5)


def test_too_few_iterations_give_a_warning(kernels):
    with pytest.warns(ConvergenceWarning, match="max_iter == 1 iterations"):
        model = fit(kernels[0], max_iter=1)
    assert model.n_iter_ <= 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(kernels[0])


def test_verbose_2_prints_a_line_an_iteration(kernels, capsys):
    model = fit(kernels[0], verbose=2)
    assert capsys.readouterr().out.count("SimpleMKKM: weights, objective=") == model.n_iter_


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"tol": 0.0}, "tol == 0.0, must be > 0"),
        ({"tol": "small"}, "tol == 'small', must be a number"),
        ({"max_iter": 0}, "max_iter == 0, must be >= 1"),
        ({"n_landmarks": 2}, "n_landmarks == 2, must be >= 4"),
    ],
)
def test_bad_parameters(kernels, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fit(kernels[0], **parameters)

"""Fusions of kernels beside what they have in common: programmes, penalties, limits."""

import itertools
import sys

import numpy as np
import pytest
from contracts.fusion import base, baselines, mkkm
from contracts.passes import ones
from contracts.plan import linalg
from fusion_cases import (
    GAMMAS,
    affinity,
    by_slsqp,
    combined,
    leading,
    objective_simple,
    plain,
    prepared,
    projector,
    three_views,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from rffpk import LKAM, LMKKM, MKKM, MKKMMR, MVCLFA, ONKC, AverageMKKM, CoregSC, SimpleMKKM
from rffpk import center_kernel as centered

EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def kernels():
    return prepared(three_views(120)[0])


def fit(cls, Ks, k=4, **parameters):
    return cls(k, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def test_mkkm_of_kernels_that_cost_nothing():
    """If all kernels have rank k, any weights will do; kernels of this rank get all weight."""
    labels = np.repeat(np.eye(2), 5, axis=0)
    K = labels @ labels.T
    assert_allclose(fit(MKKM, [K, K], 2).kernel_weights_, 0.5)
    model = fit(MKKM, [K, np.eye(10)], 2, tol=0.0)
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
    for scale in (1, 1e300):
        found = base.simplex_minimum(scale * np.diag(costs))
        assert_allclose(found, base.inverse_shares(costs), rtol=1e-9)
    # x = (1 - t, t): 4 - 5 t + 2 t^2 falls up to t = 1, where the first unknown is zero
    assert_allclose(base.simplex_minimum(np.array([[4.0, 1.5], [1.5, 1.0]])), [0, 1], atol=1e-12)
    # equal kernels share their weight, whatever their order; without cost all weights are equal
    Q = np.array([[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 2.0]])
    assert_allclose(base.simplex_minimum(Q), [0.25, 0.25, 0.5], atol=1e-4)
    assert_array_equal(base.simplex_minimum(np.zeros((4, 4))), np.full(4, 0.25))


# ---- MKKM-MR ------------------------------------------------------------------------------------


def test_without_the_penalty_it_is_mkkm(kernels):
    model, other = fit(MKKMMR, kernels, diversity=0, tol=1e-4), fit(MKKM, kernels)
    assert_array_equal(model.kernel_weights_, other.kernel_weights_)
    assert_array_equal(model.embedding_, other.embedding_)
    small, none = fit(MKKMMR, kernels, diversity=1e-15), fit(MKKM, kernels, tol=1e-6)
    assert_allclose(small.objective_, none.objective_)


def test_a_large_penalty_gives_the_weights_of_the_smallest_combined_kernel(kernels):
    M = np.einsum("pij,qij->pq", kernels, kernels)
    model = fit(MKKMMR, kernels, diversity=1e9)
    assert_allclose(model.kernel_weights_, by_slsqp(M), atol=1e-5)


def test_alike_kernels_share_the_weight_of_one(kernels):
    """Without the penalty a copy of a kernel adds to the weight of both."""
    alone, doubled = kernels[1:], [kernels[1], kernels[1], kernels[2]]
    for diversity, added in ((0, 0.05), (1e6, -1e-4)):
        one, two = (fit(MKKMMR, Ks, diversity=diversity).kernel_weights_ for Ks in (alone, doubled))
        assert 0.1 < one[0] < 0.9
        assert_allclose(two[0], two[1], atol=1e-4)
        assert one[0] + added < two[:2].sum() < one[0] + (abs(added) if diversity else 1)


# ---- LKAM ---------------------------------------------------------------------------------------


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
    other = fit(MKKMMR, kernels)
    for size in (1.0, 120):
        model = fit(LKAM, kernels, n_neighbors=size)
        assert_allclose(model.kernel_weights_, other.kernel_weights_, rtol=1e-9)
        assert_allclose(model.objective_, other.objective_)
        assert_allclose(projector(model.embedding_), projector(other.embedding_), atol=1e-9)


def test_a_fraction_is_one_of_the_rows(kernels):
    by_fraction, by_number = (fit(LKAM, kernels, n_neighbors=size) for size in (0.25, 30))
    assert_array_equal(by_fraction.embedding_, by_number.embedding_)
    # neighborhoods of one row have the diagonals alone, which are one
    for size in (1, 1e-9):
        least = fit(LKAM, kernels, n_neighbors=size)
        assert_allclose(least.objective_, (1 - 4 / 120) / 3 + 0.01 / 2)


def test_rows_in_no_neighbourhood_are_embedded_at_zero():
    xs = three_views(120)[0]
    model = LKAM(4, kernels=GAMMAS, standardize=False, n_neighbors=20, random_state=0).fit(xs)
    assert_array_equal(model.transform([x[:2] + 1e3 for x in xs]), np.zeros((2, 4)))


# ---- LMKKM --------------------------------------------------------------------------------------


def test_a_multiple_of_the_identity_makes_a_kernel_semidefinite():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert_allclose(np.linalg.eigvalsh(baselines.semidefinite(K)), [0, 4], atol=1e-12)
    assert_array_equal(baselines.semidefinite(np.eye(2)), np.eye(2))


def test_lmkkm_rows_take_the_kernel_that_knows_them():
    """Each kernel separates one half of the rows and says nothing about the other."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], 20)
    views = []
    for half in (y < 2, y >= 2):
        x = 0.3 * random.standard_normal((80, 2)) + 5 * np.eye(2)[y % 2] * half[:, None]
        views.append(np.where(half[:, None], x, 5 * random.standard_normal((80, 2))))
    model = LMKKM(4, kernels=["rbf"] * 2, random_state=0).fit(views)
    assert model.row_weights_[y < 2, 0].mean() > model.row_weights_[y >= 2, 0].mean() + 0.2


def test_lmkkm_beyond_the_memory_is_refused(memory):
    xs = three_views(90)[0]
    memory(125 * 3 * 90**2 - 1)
    model = LMKKM(4, random_state=0)
    with pytest.raises(MemoryError, match="^X has 90 rows to learn on: .* Take n_landmarks"):
        model.fit(xs)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert model.set_params(n_landmarks=80).fit(xs).row_weights_.shape == (80, 3)


def test_lmkkm_without_its_package_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(ImportError, match=r"^LMKKM needs clarabel \(pip install clarabel\)"):
        LMKKM(4).fit(three_views(90)[0])


# ---- ONKC ---------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("n_positive", [0, 1, 20, 40, 60, 200])
def test_positive_eigenpairs_are_those_of_all(n_positive):
    """Lanczos' method is used for few eigenpairs, up to the number of known vectors.

    For more positive eigenvalues, all eigenpairs are computed.
    """
    random = np.random.default_rng(n_positive)
    basis = np.linalg.qr(random.standard_normal((400, 400)))[0]
    expected = -random.uniform(0.01, 1, 400)
    expected[400 - n_positive :] = np.geomspace(1e-9, 1, n_positive)
    B = (basis * expected) @ basis.T
    values, vectors = baselines.positive_eigenpairs(B, basis[:, 380:])
    assert (len(values) == 400) == (n_positive > 20)
    assert len(values) >= 20 and (np.diff(values) >= 0).all()
    assert_allclose(values, np.sort(expected)[-len(values) :], atol=1e-12)
    assert_allclose(B @ vectors, vectors * values, atol=1e-12)
    expected_part = (basis * np.maximum(expected, 0)) @ basis.T
    assert_allclose(baselines.positive_part(values, vectors), expected_part, atol=1e-12)


@pytest.mark.parametrize("last, known", [(1, 1), (1, 12), (1, 20), (2, 20)])
def test_equal_and_missed_positive_eigenvalues_are_all_found(monkeypatch, last, known):
    """Lanczos' method may miss an eigenvalue."""

    complete = linalg.leading_eigenvectors

    def incomplete(B, k, n, start):
        values, vectors = complete(B, k, n, start)
        return np.delete(values, 7), np.delete(vectors, 7, axis=1)

    if last > 1:
        monkeypatch.setattr(linalg, "leading_eigenvectors", incomplete)
    B = np.diag(np.r_[np.linspace(1, last, 20), -np.ones(380)])
    values, vectors = baselines.positive_eigenpairs(B, np.eye(400, known))
    assert_allclose(baselines.positive_part(values, vectors), np.maximum(B, 0), atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("rho", [2.0**-6, 0.25, 1.0])
@pytest.mark.parametrize("diversity", [0.01, 1.0])
def test_few_eigenvectors_change_no_result(rho, diversity, tuning):
    Ks = prepared(three_views(400)[0])
    parameters = {"rho": rho, "diversity": diversity, "max_iter": 10, "tol": 0.0}
    partial = fit(ONKC, Ks, **parameters)
    tuning(fusion__lanczos_part=0)
    every = fit(ONKC, Ks, **parameters)
    for one, other in zip(partial.history_, every.history_, strict=True):
        assert_allclose(one["objective"], other["objective"], rtol=1e-10)
        assert_allclose(one["kernel_weights"], other["kernel_weights"], atol=1e-10)
    assert_allclose(projector(partial.embedding_), projector(every.embedding_), atol=1e-9)
    assert_array_equal(partial.labels_, every.labels_)


# ---- MVC-LFA ------------------------------------------------------------------------------------


def test_a_large_weight_gives_the_clustering_of_the_mean_kernel(kernels):
    mean, model = fit(AverageMKKM, kernels), fit(MVCLFA, kernels, mean_weight=1e9)
    assert_allclose(model.embedding_, mean.embedding_, atol=1e-6)


def test_equal_kernels_are_one(kernels):
    alone, thrice = fit(MVCLFA, kernels[:1]), fit(MVCLFA, [kernels[0]] * 3)
    assert_allclose(thrice.kernel_weights_, 3**-0.5)
    assert_allclose(projector(thrice.embedding_), projector(alone.embedding_), atol=1e-9)


# ---- CoregSC ------------------------------------------------------------------------------------


def test_one_view_is_spectral_clustering():
    (x, *_), y = three_views(120)
    model = CoregSC(4, kernels=[("rbf", 0.05)], random_state=0).fit([x])
    other = SpectralClustering(4, gamma=0.05, random_state=0).fit(x)
    assert adjusted_rand_score(other.labels_, model.labels_) > 0.9
    assert adjusted_rand_score(y, model.labels_) > 0.9


@pytest.mark.parametrize("scheme", ["pairwise", "centroid"])
@pytest.mark.parametrize("n_landmarks", [None, 90])
def test_affinities_may_be_zero_on_their_diagonals(scheme, n_landmarks):
    xs, y = three_views(120)
    Ks = plain(xs)
    for K in Ks:
        np.fill_diagonal(K, 0)
    model = fit(CoregSC, Ks, scheme=scheme, agreement=0.0, n_landmarks=n_landmarks)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert_array_equal(model.predict(Ks), model.labels_)
    if scheme == "pairwise" and n_landmarks is None:
        for K, part in zip(Ks, np.split(model.embedding_, 3, axis=1)):
            U = leading(affinity(K), 4)[1]
            assert_allclose(projector(part), projector(U), atol=1e-12)


def test_centered_kernels_are_raised_to_affinities():
    xs, y = three_views(120)
    Ks = [centered(K) for K in plain(xs)]
    model, expected = fit(CoregSC, Ks), fit(CoregSC, [K - K.min() for K in Ks])
    assert_allclose(model.objective_, expected.objective_)
    assert_allclose(model.transform([K[:9] for K in Ks]), model.embedding_[:9], atol=1e-12)
    assert adjusted_rand_score(y, model.labels_) > 0.9


# ---- SimpleMKKM ---------------------------------------------------------------------------------


def four_kernels(n):
    xs = three_views(n)[0]
    return np.array([*prepared(xs), *prepared(xs[1:2])])


def alignment(alpha, Ks, k):
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
def test_the_gradient_is_that_of_finite_differences(alpha, k):
    Ks, alpha, step = four_kernels(120), np.array(alpha), 1e-5
    point = mkkm.Alignment(Ks, k, 120).at(alpha)
    assert_allclose(point.objective, alignment(alpha, Ks, k), rtol=1e-12)
    for number, unit in enumerate(np.eye(4)):
        ahead, behind = (alignment(alpha + sign * step * unit, Ks, k) for sign in (1, -1))
        assert_allclose(point.gradient[number], (ahead - behind) / (2 * step), atol=1e-8)
    assert_allclose(alpha @ point.gradient, 2 * point.objective)  # F is of degree two


@pytest.mark.few(1)
@pytest.mark.parametrize("n", [120, 400])
@pytest.mark.parametrize("k", [1, 4, 7])
def test_it_decreases_until_the_optimality_conditions_hold(n, k):
    Ks = four_kernels(n)
    model = fit(SimpleMKKM, Ks, k)
    records = model.history_
    assert len(records) == model.n_iter_ < 15
    for before, after in itertools.pairwise(records):
        assert after["objective"] < before["objective"]
    assert_allclose(records[0]["kernel_weights"], 0.25)
    for record in records:
        alpha = record["kernel_weights"]
        assert_allclose(alpha.sum(), 1)
        assert (alpha >= 0).all()
        assert_allclose(record["objective"], alignment(alpha, Ks, k), rtol=1e-12)
        assert_allclose(record["gap"], gap(alpha, Ks, k), atol=1e-8)
    assert gap(model.kernel_weights_, Ks, k) < 1e-5
    assert_array_equal(model.kernel_weights_, records[-1]["kernel_weights"])
    assert model.objective_ == records[-1]["objective"]
    assert_allclose(model.eigenvalues_.sum() / n, model.objective_)
    tight = fit(SimpleMKKM, Ks, k, tol=1e-8)
    assert gap(tight.kernel_weights_, Ks, k) < 100 * EPS**0.5  # where F differs by its rounding
    assert_allclose(tight.kernel_weights_, model.kernel_weights_, atol=1e-4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", [[0.25] * 4, [0.0, 0.5, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]])
def test_programmes_leave_the_boundary(start):
    Ks = four_kernels(120)
    whole = mkkm.Alignment(Ks, 4, 120)
    point = mkkm.least_alignment(whole, whole.at(np.array(start)), 1e-7)
    # the derivative is 0 where a weight is, so it leaves for as long as another's is negative
    assert (point.alpha > 0).all()
    assert gap(point.alpha, Ks, 4) < 1e-5


def test_alignments_by_hand():
    """K_l = c_l K: F = sum alpha_l^2 c_l, least at alpha_l ~ 1 / c_l."""
    labels = np.repeat(np.eye(3), 4, axis=0)
    K = labels @ labels.T
    model = fit(SimpleMKKM, [c * K for c in (1.0, 2.0, 6.0)], 3, tol=1e-10)
    assert_allclose(model.kernel_weights_, np.array([6, 3, 1]) / 10, rtol=100 * EPS**0.5)
    assert_allclose(model.objective_, 12 / (12 * (1 + 1 / 2 + 1 / 6)))
    assert adjusted_rand_score(labels.argmax(axis=1), model.labels_) == 1
    # a kernel of no alignment takes all weight
    Ks = [np.diag([3.0, 2.0, 1.0]), np.diag([2.0, 4.0, 1.0]), np.diag([0.0, 0.0, 1e-200])]
    model = fit(SimpleMKKM, Ks, 1)
    assert_allclose([*model.kernel_weights_, model.objective_], [0, 0, 1, 0], atol=1e-12)
    # a kink, where eigenvalues cross: max(alpha_1^2, 2 alpha_2^2) is least where both are equal
    model = fit(SimpleMKKM, [np.diag([1.0, 0, 0]), np.diag([0, 2.0, 0])], 1)
    ratio = np.sqrt(2)
    assert_allclose(model.kernel_weights_, np.array([ratio, 1]) / (1 + ratio), atol=1e-5)
    assert (np.diff([record["objective"] for record in model.history_]) < 0).all()


def test_too_few_iterations_give_a_warning():
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations"):
        assert fit(SimpleMKKM, four_kernels(120), max_iter=1).n_iter_ <= 2

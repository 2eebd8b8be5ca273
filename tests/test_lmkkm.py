"""LMKKM: its programme against a general solver, its decrease, new rows and its limits."""

import itertools
import sys

import numpy as np
import pytest
from conventions import weight_and_sparse_failures
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_mkkm import GAMMAS, leading, prepared, projector, three_views

from rffpk import LMKKM, AverageMKKM
from rffpk.fusion.baselines import localised, row_weights, semidefinite


@parametrize_with_checks([LMKKM()], expected_failed_checks=weight_and_sparse_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def views():
    return three_views(90)


@pytest.fixture(scope="module")
def kernels(views):
    return prepared(views[0])


def fit(Ks, k=4, **parameters):
    return LMKKM(k, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def objective(theta, Ks, H):
    """By its definition, entry by entry of the learned kernel."""
    K = np.einsum("il,jl,lij->ij", theta, theta, Ks)
    return np.trace(K) - np.trace(H.T @ K @ H)


# ---- the programme ------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_the_programme_is_solved_as_by_a_general_solver(seed):
    random = np.random.default_rng(seed)
    n, L = 9, 3
    Ks = np.array([root @ root.T for root in random.standard_normal((L, n, n))])
    H = np.linalg.qr(random.standard_normal((n, 2)))[0]
    theta = row_weights(list(Ks), H)
    assert (theta >= 0).all()
    assert_allclose(theta.sum(axis=1), 1)
    other = minimize(
        lambda x: objective(x.reshape(n, L), Ks, H), np.full(n * L, 1 / L), method="SLSQP",
        bounds=[(0, 1)] * (n * L), options={"ftol": 1e-14, "maxiter": 1000},
        constraints={"type": "eq", "fun": lambda x: x.reshape(n, L).sum(axis=1) - 1},
    )  # fmt: skip
    assert_allclose(objective(theta, Ks, H), other.fun, rtol=1e-6)
    assert_allclose(theta, other.x.reshape(n, L), atol=1e-3)


def test_a_programme_without_costs_has_equal_weights():
    assert_array_equal(row_weights([np.zeros((4, 4))] * 2, np.eye(4, 1)), np.full((4, 2), 0.5))


def test_a_multiple_of_the_identity_makes_a_kernel_semidefinite():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert_allclose(np.linalg.eigvalsh(semidefinite(K)), [0, 4], atol=1e-12)
    assert semidefinite(np.eye(2)) is not None
    assert_array_equal(semidefinite(np.eye(2)), np.eye(2))


# ---- the estimator ------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("k", [1, 4])
def test_it_falls_to_a_point_that_neither_update_improves(kernels, k):
    model = fit(kernels, k, tol=1e-7)
    assert len(model.history_) == model.n_iter_ > 2
    for before, after in itertools.pairwise(model.history_):
        assert after["objective"] <= before["objective"] * (1 + 1e-6)
    theta, H = model.row_weights_, model.embedding_
    assert_allclose(model.kernel_weights_, theta.mean(axis=0))
    assert_allclose(model.objective_, objective(theta, kernels, H))
    K = np.einsum("il,jl,lij->ij", theta, theta, kernels)
    values, vectors = leading(K, k)
    assert_allclose(model.eigenvalues_, values)
    assert_allclose(projector(H), projector(vectors), atol=1e-9)
    for random in map(np.random.default_rng, range(10)):
        other = random.dirichlet(np.ones(3), 90)
        for step in (1e-3, 0.1, 1.0):  # the objective is convex
            near = (1 - step) * theta + step * other
            assert objective(near, kernels, H) >= model.objective_ * (1 - 1e-5)


def test_one_kernel_leaves_nothing_to_learn(kernels):
    model = fit(kernels[:1])
    mean = AverageMKKM(4, kernels="precomputed", random_state=0).fit(kernels[:1])
    assert_allclose(model.row_weights_, 1)
    assert_allclose(projector(model.embedding_), projector(mean.embedding_), atol=1e-9)


def test_rows_take_the_kernel_that_knows_them():
    """Each kernel separates one half of the rows and says nothing about the other."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], 20)
    views = []
    for half in (y < 2, y >= 2):
        x = 0.3 * random.standard_normal((80, 2)) + 5 * np.eye(2)[y % 2] * half[:, None]
        views.append(np.where(half[:, None], x, 5 * random.standard_normal((80, 2))))
    model = LMKKM(4, kernels=["rbf"] * 2, random_state=0).fit(views)
    assert model.row_weights_[y < 2, 0].mean() > model.row_weights_[y >= 2, 0].mean() + 0.2


def test_the_order_of_rows_and_views_does_not_matter(kernels):
    model = fit(kernels)
    order = np.random.default_rng(0).permutation(90)
    moved = fit([K[np.ix_(order, order)] for K in kernels])
    assert_allclose(moved.row_weights_, model.row_weights_[order], atol=1e-4)
    turned = fit(kernels[::-1])
    assert_allclose(turned.row_weights_, model.row_weights_[:, ::-1], atol=1e-4)


def test_threads_and_copies_have_the_same_bits(views):
    model = LMKKM(4, kernels=GAMMAS, random_state=0, n_landmarks=40)
    fits = [clone(model).set_params(n_jobs=jobs).fit(views[0]) for jobs in (1, 3)]
    assert_array_equal(fits[0].embedding_, fits[1].embedding_)
    assert_array_equal(fits[0].labels_, fits[1].labels_)


def test_new_rows_have_the_weights_of_their_nearest_row(views):
    xs, y = views
    few = [x[:70] for x in xs]
    model = LMKKM(4, kernels=GAMMAS, standardize=False, random_state=0).fit(few)
    assert_array_equal(model.predict(few), model.labels_)
    crosses = [
        np.exp(-gamma * ((x[70:, None] - part) ** 2).sum(axis=2))
        for x, part, (_, gamma) in zip(xs, few, GAMMAS)
    ]
    nearest = np.mean(crosses, axis=0).argmax(axis=1)  # kernels of rows with themselves are one
    K = localised(crosses, model.row_weights_[nearest], model.row_weights_)
    whole = [
        np.exp(-gamma * ((x[:, None] - x) ** 2).sum(axis=2)) for x, (_, gamma) in zip(few, GAMMAS)
    ]
    H = leading(localised(whole, model.row_weights_, model.row_weights_), 4)[1]
    H *= np.sign(np.sum(H * model.embedding_, axis=0))
    found = model.transform([x[70:] for x in xs])
    assert_allclose(found, K @ H / model.eigenvalues_, atol=1e-9)
    assert adjusted_rand_score(y[70:], model.predict([x[70:] for x in xs])) > 0.8


def test_landmarks_make_it_a_method_for_many_rows():
    xs, y = three_views(1500)
    model = LMKKM(4, kernels=GAMMAS, n_landmarks=90, random_state=0).fit(xs)
    alone = LMKKM(4, kernels=GAMMAS, random_state=0).fit([x[model.landmarks_] for x in xs])
    assert_array_equal(model.row_weights_, alone.row_weights_)
    assert_allclose(model.embedding_, alone.transform(xs), atol=1e-11)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_a_programme_beyond_the_memory_is_refused(views, memory):
    memory(125 * 3 * 90**2 - 1)
    model = LMKKM(4, random_state=0)
    with pytest.raises(MemoryError, match="^X has 90 rows to learn on: .* Take n_landmarks"):
        model.fit(views[0])
    assert not [name for name in vars(model) if name.endswith("_")]
    assert model.set_params(n_landmarks=80).fit(views[0]).row_weights_.shape == (80, 3)


def test_without_its_package_it_says_so(views, monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(
        ImportError, match=r"^LMKKM needs the package clarabel: pip install 'rffpk\[qp\]'"
    ):
        LMKKM(4).fit(views[0])

"""LMKKM beside what fusions have in common: its programme and its limits."""

import sys

import numpy as np
import pytest
from fusion_cases import least_on_simplex, objective_lmkkm, three_views
from numpy.testing import assert_allclose, assert_array_equal

from rffpk import LMKKM
from rffpk.fusion.baselines import row_weights, semidefinite


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_the_programme_is_solved_as_by_a_general_solver(seed):
    random = np.random.default_rng(seed)
    Ks = np.array([root @ root.T for root in random.standard_normal((3, 9, 9))])
    H = np.linalg.qr(random.standard_normal((9, 2)))[0]
    theta = row_weights(list(Ks), H)
    assert (theta >= 0).all()
    assert_allclose(theta.sum(axis=1), 1)
    other = least_on_simplex(lambda x: objective_lmkkm(Ks, None, x, H), np.full((9, 3), 1 / 3))
    costs = [objective_lmkkm(Ks, None, x, H) for x in (theta, other)]
    assert_allclose(*costs, rtol=1e-6)
    assert_allclose(theta, other, atol=1e-3)


def test_a_programme_without_costs_has_equal_weights():
    assert_array_equal(row_weights([np.zeros((4, 4))] * 2, np.eye(4, 1)), np.full((4, 2), 0.5))


def test_a_multiple_of_the_identity_makes_a_kernel_semidefinite():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert_allclose(np.linalg.eigvalsh(semidefinite(K)), [0, 4], atol=1e-12)
    assert semidefinite(np.eye(2)) is not None
    assert_array_equal(semidefinite(np.eye(2)), np.eye(2))


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


def test_a_programme_beyond_the_memory_is_refused(memory):
    xs = three_views(90)[0]
    memory(125 * 3 * 90**2 - 1)
    model = LMKKM(4, random_state=0)
    with pytest.raises(MemoryError, match="^X has 90 rows to learn on: .* Take n_landmarks"):
        model.fit(xs)
    assert not [name for name in vars(model) if name.endswith("_")]
    assert model.set_params(n_landmarks=80).fit(xs).row_weights_.shape == (80, 3)


def test_without_its_package_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(
        ImportError, match=r"^LMKKM needs the package clarabel: pip install 'rffpk\[qp\]'"
    ):
        LMKKM(4).fit(three_views(90)[0])

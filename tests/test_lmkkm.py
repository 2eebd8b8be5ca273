"""LMKKM beside what fusions have in common: its programme and its limits."""

import sys

import numpy as np
import pytest
from contracts.fusion import baselines
from fusion_cases import three_views
from numpy.testing import assert_allclose, assert_array_equal

from rffpk import LMKKM


def test_a_multiple_of_the_identity_makes_a_kernel_semidefinite():
    K = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert_allclose(np.linalg.eigvalsh(baselines.semidefinite(K)), [0, 4], atol=1e-12)
    assert baselines.semidefinite(np.eye(2)) is not None
    assert_array_equal(baselines.semidefinite(np.eye(2)), np.eye(2))


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
    with pytest.raises(ImportError, match=r"^LMKKM needs clarabel \(pip install clarabel\)"):
        LMKKM(4).fit(three_views(90)[0])

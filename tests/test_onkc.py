"""ONKC beside what fusions have in common: the eigenpairs that it takes."""

import numpy as np
import pytest
from contracts.fusion import baselines
from contracts.plan import linalg
from fusion_cases import prepared, projector, three_views
from numpy.testing import assert_allclose, assert_array_equal

from rffpk import ONKC


def fit(Ks, **parameters):
    return ONKC(4, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


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


def test_equal_positive_eigenvalues_are_all_found():
    B = np.diag(np.r_[np.ones(20), -np.ones(380)])
    for known in (1, 12, 20):
        values, vectors = baselines.positive_eigenpairs(B, np.eye(400, known))
        assert_allclose(baselines.positive_part(values, vectors), np.maximum(B, 0), atol=1e-12)


def test_an_eigenvalue_that_lanczos_method_misses_is_noticed(monkeypatch):
    B = np.diag(np.r_[np.linspace(1, 2, 20), -np.ones(380)])

    def incomplete(B, k, n, start):
        values, vectors = linalg.leading_eigenvectors(B, k, n, start)
        return np.delete(values, 7), np.delete(vectors, 7, axis=1)

    monkeypatch.setattr(baselines, "leading_eigenvectors", incomplete)
    values, vectors = baselines.positive_eigenpairs(B, np.eye(400, 20))
    assert_allclose(baselines.positive_part(values, vectors), np.maximum(B, 0), atol=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("rho", [2.0**-6, 0.25, 1.0])
@pytest.mark.parametrize("diversity", [0.01, 1.0])
def test_few_eigenvectors_change_no_result(rho, diversity, tuning):
    Ks = prepared(three_views(400)[0])
    parameters = {"rho": rho, "diversity": diversity, "max_iter": 10, "tol": 0.0}
    leading = fit(Ks, **parameters)
    tuning(fusion__lanczos_part=0)
    every = fit(Ks, **parameters)
    for one, other in zip(leading.history_, every.history_, strict=True):
        assert_allclose(one["objective"], other["objective"], rtol=1e-10)
        assert_allclose(one["kernel_weights"], other["kernel_weights"], atol=1e-10)
    assert_allclose(projector(leading.embedding_), projector(every.embedding_), atol=1e-9)
    assert_array_equal(leading.labels_, every.labels_)

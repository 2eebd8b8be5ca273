"""Decompositions of matrices with multiple eigenvalues, at which LAPACK and ARPACK may fail."""

import warnings
from itertools import product
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.linalg
from contracts.plan import config, linalg
from conventions import CLUSTERERS
from numpy.linalg import LinAlgError
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.preprocessing import OneHotEncoder

import rffpk


def one_hot(n, *numbers):
    random = np.random.default_rng(n)
    columns = [random.integers(number, size=n) for number in numbers]
    return OneHotEncoder(sparse_output=False).fit_transform(np.column_stack(columns))


def circle(n):
    angles = 2 * np.pi * np.arange(n) / n
    return np.column_stack([np.cos(angles), np.sin(angles)])


DESIGNS = {
    **{f"simplex {n}": np.eye(n) for n in (9, 19, 26)},
    "each twice": np.tile(np.eye(19), (2, 1)),
    "star": np.vstack([np.zeros(12), np.eye(12)]),
    "cross-polytope": np.vstack([np.eye(20), -np.eye(20)]),
    "cube": np.array(list(product([0.0, 1.0], repeat=5))),
    "Hadamard": scipy.linalg.hadamard(32).astype(float),
    "Kronecker": np.kron(np.eye(8), np.ones((5, 3))),
    **{f"circle {n}": circle(n) for n in (3, 13, 48)},
    "categories": one_hot(40, 4),
    "pairs of categories": one_hot(50, 3, 4),
}


def finding_no_part(matrix, eigh=scipy.linalg.eigh, **options):
    values, vectors = eigh(matrix, **options)
    return (values[:0], vectors[:, :0]) if "subset_by_index" in options else (values, vectors)


@pytest.mark.promise(
    "Input",
    "Every class clusters balanced designs, such as one-hot rows, whose matrices have "
    "multiple eigenvalues.",
)
@pytest.mark.few(2)
@pytest.mark.parametrize("finds_parts", [True, False])
@pytest.mark.parametrize("name", DESIGNS)
def test_balanced_designs_are_clustered_by_every_class(name, finds_parts, monkeypatch):
    """Whether LAPACK finds a part of multiple eigenvalues or, as on some processors, none."""
    X, k = DESIGNS[name], 2 if name == "circle 3" else 3
    if not finds_parts:
        monkeypatch.setattr(scipy.linalg, "eigh", finding_no_part)
    with warnings.catch_warnings(action="ignore"):
        assert rffpk.DiffusionMap(2, random_state=0).fit_transform(X).shape == (len(X), 2)
        for cls in CLUSTERERS:
            rows = [X, X[:, ::2]] if hasattr(cls(), "kernels") else X
            assert len(cls(k, random_state=0).fit(rows).labels_) == len(X)
        if name == "star":
            assert np.isfinite(rffpk.CoregSC(12, random_state=0).fit(X).embedding_).all()
        assert 1 <= rffpk.select_n_clusters(X, random_state=0).n_clusters <= len(X)


def of_spectrum(values):
    normal = np.random.default_rng(0).standard_normal(len(values))
    reflection = np.eye(len(values)) - 2 * np.outer(normal, normal) / (normal @ normal)
    return (reflection * values) @ reflection


def hypercube(d):
    """Return the adjacency of its corners: d + 1 eigenvalues, of up to binom(d, d / 2) vectors."""
    corners = np.array(list(product([0, 1], repeat=d)))
    return (np.abs(corners[:, None] - corners).sum(axis=2) == 1).astype(float)


MULTIPLE = {
    **{f"{factor} times the identity": lambda f=factor: f * np.eye(400) for factor in (0, 1, 3)},
    **{f"centered, times {factor}": lambda f=factor: f * (np.eye(400) - 1 / 400)
       for factor in (1, 1e-300, 1e200)},
    "hypercube": lambda: hypercube(9),
    "groups": lambda: np.kron(np.eye(20), np.ones((20, 20))),
    "eights": lambda: of_spectrum(np.repeat(1.2 ** np.arange(50), 8)),
    "dozens": lambda: of_spectrum(np.r_[np.repeat(np.arange(20, 10.0, -1), 12), np.zeros(280)]),
}  # fmt: skip


@pytest.mark.parametrize("k", [1, 10, 30])
@pytest.mark.parametrize("name", MULTIPLE)
def test_leading_eigenvectors_of_multiple_eigenvalues(name, k):
    matrix = MULTIPLE[name]()
    size = np.abs(matrix).max() or 1.0
    for given in (matrix, lambda v: matrix @ v):
        with config.one_blas_thread():
            values, vectors = linalg.leading_eigenvectors(given, k, len(matrix))
            expected = np.linalg.eigvalsh(matrix / size)[::-1][:k]
        assert_allclose(values / size, expected, atol=1e-9 * np.abs(expected).max() + 1e-300)
        assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-9)
        residuals = matrix / size @ vectors - vectors * (values / size)
        assert_allclose(residuals, 0, atol=1e-8 * max(1, expected[0]))


def test_eigenvectors_of_low_rank_are_the_same_each_time():
    """Lanczos' method goes on from random vectors where it has found all that are not zero."""
    x = np.repeat(np.eye(2), 200, axis=0)
    first, second = (linalg.leading_eigenvectors(x @ x.T, 12, 400)[1] for _ in range(2))
    if linalg.RANDOM:  # SciPy before 1.17 keeps the state of ARPACK's generator between calls
        assert_array_equal(first, second)
        labels = [rffpk.CoregSC(12, random_state=0).fit(x).labels_ for _ in range(2)]
        assert_array_equal(*labels)


def test_another_driver_follows_one_that_fails(monkeypatch):
    A = np.random.default_rng(0).standard_normal((30, 20))
    S, plain = A.T @ A, scipy.linalg.eigh
    values, vectors = np.linalg.eigh(S)
    singular, plain_svd = np.linalg.svd(A, compute_uv=False), scipy.linalg.svd
    failed = Mock(side_effect=LinAlgError("no convergence."))

    def only_by_qr(matrix, driver=None, **options):
        return plain(matrix, driver=driver) if driver == "ev" else failed()

    def only_gesvd(matrix, full_matrices=True, lapack_driver="gesdd"):
        by_gesvd = lapack_driver != "gesdd"
        return plain_svd(matrix, full_matrices, lapack_driver="gesvd") if by_gesvd else failed()

    monkeypatch.setattr(scipy.linalg, "eigh", only_by_qr)
    for module in (scipy.linalg, np.linalg):  # both are broken at the end
        if module is np.linalg:
            monkeypatch.setattr(module, "eigh", failed)
        found = linalg.eigh(S, subset_by_index=[17, 19])
        assert_allclose(found[0], values[17:], rtol=1e-9)
        assert_allclose(np.abs(found[1]), np.abs(vectors[:, 17:]), atol=1e-9)
    monkeypatch.setattr(scipy.linalg, "svd", only_gesvd)
    left, sizes, right = linalg.svd(A)
    assert_allclose(sizes, singular)
    assert_allclose(left * sizes @ right, A, atol=1e-12)


def test_a_full_decomposition_follows_steps_that_do_not_converge(monkeypatch):
    matrix = of_spectrum(np.arange(310.0))
    error = ArpackNoConvergence("no convergence", np.zeros(0), np.zeros((310, 0)))
    monkeypatch.setattr(linalg, "eigsh", Mock(side_effect=error))
    with config.one_blas_thread():
        assert_allclose(linalg.leading_eigenvectors(matrix, 3, 310)[0], [309, 308, 307])

"""Kernels by blocks against scikit-learn and plain formulas."""

from typing import get_args

import numpy as np
import pytest
from contracts.fusion import FittedKernel, Specification, kernels
from contracts.passes import ones
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels, rbf_kernel
from sklearn.preprocessing import KernelCenterer

from rffpk import (
    MKKM,
    KernelKMeans,
    NystroemKernelKMeans,
    RFFKernelPowerKMeans,
    center_kernel,
    normalize_kernel,
)

NAMES = sorted(PAIRWISE_KERNEL_FUNCTIONS)


def test_kernels_that_a_type_checker_knows_are_those_of_scikit_learn():
    assert sorted(get_args(kernels.PairwiseKernel)) == NAMES


CHOICES = [(False, False), (True, False), (False, True), (True, True)]


def gap(x, y):
    """Compute a user-defined kernel."""
    return np.exp(-np.abs(x - y).max())


METRICS = [*NAMES, gap]


@pytest.fixture
def rows():
    """Return nonnegative rows, as the chi2 kernels need; two are equal, and one is zero."""
    X = np.random.default_rng(0).random((40, 5))
    X[3], X[7] = X[4], 0
    return X


@pytest.fixture(params=[None, 100], ids=["one block", "many blocks"])
def blocks(request, tuning):
    if request.param:
        tuning(tiles__row_numbers=request.param)


def fit(X, spec, **options):
    """Fit a kernel, given by its name or its specification."""
    spec = spec if isinstance(spec, Specification) else Specification(spec)
    random = np.random.RandomState(0)
    return FittedKernel(X, spec, random=random, weight=ones(len(X)), **options)


def plain(K, center, normalize):
    """Center and normalize a kernel matrix by the definitions, entry by entry."""
    if center:
        J = np.eye(len(K)) - 1 / len(K)
        K = J @ K @ J
    if normalize:
        norms = np.sqrt(np.maximum(np.diagonal(K), 0))
        products = np.outer(norms, norms)
        K = np.divide(K, products, out=np.zeros_like(K), where=products > 0)
    return K


@pytest.mark.parametrize("center, normalize", CHOICES)
@pytest.mark.parametrize("metric", METRICS)
def test_every_kernel_is_that_of_scikit_learn(rows, blocks, metric, center, normalize):
    """Rows that are given again have the blocks of the fit."""
    fitted = fit(rows, metric, center=center, normalize=normalize)
    known = {"gamma": fitted.params["gamma"]} if "gamma" in fitted.params else {}
    expected = plain(pairwise_kernels(rows, metric=metric, **known), center, normalize)
    assert_allclose(fitted.matrix(), expected, atol=1e-9)
    assert_allclose(fitted.block(slice(5, 12)), expected[5:12], atol=1e-9)
    assert_array_equal(fitted.matrix(), fitted.matrix().T)
    assert fitted.block(slice(0, 3)).dtype == np.float64
    cross, diagonal = fitted.cross(rows[4:20])
    assert_allclose(cross, fitted.block(slice(4, 20)), atol=1e-12)
    assert_allclose(diagonal, fitted.diagonal[4:20], atol=1e-12)
    if not (normalize and metric in ("additive_chi2", "sigmoid")):  # rows with norms^2 < 0
        assert_allclose(fitted.diagonal, np.diagonal(fitted.matrix()), atol=1e-9)


def test_new_rows_are_centered_as_by_scikit_learn(rows):
    new = np.random.default_rng(1).random((7, 5))
    fitted = fit(rows, Specification("rbf", {"gamma": 0.7}), center=True)
    peer = KernelCenterer().fit(pairwise_kernels(rows, metric="rbf", gamma=0.7))
    expected = peer.transform(pairwise_kernels(new, rows, metric="rbf", gamma=0.7))
    assert_allclose(fitted.cross(new)[0], expected, atol=1e-12)


def test_new_rows_of_the_linear_kernel_by_features(rows):
    """Centered features, and their cosines."""
    new = np.random.default_rng(1).random((7, 5))
    far, near = new - rows.mean(axis=0), rows - rows.mean(axis=0)
    centered = fit(rows, "linear", center=True)
    assert_allclose(centered.cross(new)[0], far @ near.T, atol=1e-12)
    assert_allclose(centered.cross(new)[1], (far**2).sum(axis=1), atol=1e-12)
    cosines = fit(rows, "linear", center=True, normalize=True)
    far, near = (a / np.linalg.norm(a, axis=1, keepdims=True) for a in (far, near))
    assert_allclose(cosines.cross(new)[0], far @ near.T, atol=1e-12)
    assert_allclose(cosines.cross(new)[1], 1, atol=1e-12)


def test_public_centering_and_normalising(rows, dtype):
    K = (rows @ rows.T).astype(dtype)
    before = K.copy()
    atol = 1e-12 if dtype == np.float64 else 1e-5
    assert_allclose(center_kernel(K), KernelCenterer().fit_transform(K.copy()), atol=atol)
    assert_allclose(normalize_kernel(K), plain(K.astype(float), False, True), atol=atol)
    assert center_kernel(K).dtype == normalize_kernel(K).dtype == dtype
    assert_array_equal(K, before)
    assert_array_equal(normalize_kernel(np.diag([0.0, 4.0])), np.diag([0.0, 1.0]))
    assert center_kernel([[2, 0], [0, 2]]).dtype == np.float64


def test_rescaling_is_to_the_unit_interval(rows, blocks):
    fitted = fit(rows, Specification("linear", {}, True, True))
    K = plain(rows @ rows.T, False, True)
    K = (K - K.min()) / (K.max() - K.min())
    assert_allclose(fitted.matrix(), K, atol=1e-12)
    assert_allclose(fitted.diagonal, np.diagonal(K), atol=1e-12)
    assert_allclose(fitted.cross(rows)[0], K, atol=1e-12)
    constant = fit(np.ones((4, 2)), Specification("linear", {}, True, True))
    assert_array_equal(constant.matrix(), np.zeros((4, 4)))


def test_the_bank_of_du_2015(rows):
    bank = [fit(rows, spec).matrix() for spec in kernels.du2015(rows)]
    distances = pairwise_distances(rows)
    products = rows @ rows.T
    sigmas = np.multiply((0.01, 0.05, 0.1, 1, 10, 50, 100), distances.max())
    expected = [np.exp(-(distances**2) / (2 * sigma**2)) for sigma in sigmas]
    expected += [(a + products) ** b for a in (0, 1) for b in (2, 4)] + [products]
    assert len(bank) == len(expected) == 12
    for K, formula in zip(bank, expected):
        formula = plain(formula, False, True)
        formula = (formula - formula.min()) / (formula.max() - formula.min())
        assert_allclose(K, formula, atol=1e-7)


@pytest.mark.parametrize("metric, distance", [("rbf", "sqeuclidean"), ("laplacian", "cityblock")])
def test_the_gamma_of_the_mean_distance(rows, metric, distance):
    distances = pairwise_distances(rows, metric=distance)
    pairs = rows.shape[0] * (rows.shape[0] - (metric == "laplacian"))  # of distinct rows there
    assert_allclose(fit(rows, metric).params["gamma"], pairs / (2 * distances.sum()))
    given = fit(rows, Specification(metric, {"gamma": 2.5}))
    assert_allclose(given.matrix(), pairwise_kernels(rows, metric=metric, gamma=2.5))


def test_parameters_reach_the_kernel(rows):
    parameters = {"degree": 2, "coef0": 3.0, "gamma": 0.5}
    spec = kernels.specification(("polynomial", parameters), "kernels[0]")
    assert_allclose(fit(rows, spec).matrix(), (0.5 * rows @ rows.T + 3) ** 2)
    assert kernels.specification(["rbf", 0.5], "k") == Specification("rbf", {"gamma": 0.5})
    assert kernels.specifications(None, 2) == [Specification("rbf")] * 2


def test_narrow_rows_lose_nothing_but_their_own_rounding(rows):
    offset = (rows + 100).astype(np.float32)
    narrow, wide = (fit(offset.astype(dtype), "linear", center=True) for dtype in "fd")
    assert_array_equal(narrow.matrix(), wide.matrix())
    assert narrow.dtype == np.float32
    assert narrow.matrix(np.float32).dtype == np.float32


def test_precomputed_kernels_are_taken_as_they_are(rows):
    K = rows @ rows.T
    fitted = fit(K, "precomputed", center=True, normalize=True)
    assert_array_equal(fitted.matrix(), K)
    assert_array_equal(fitted.diagonal, np.diagonal(K))
    assert_array_equal(fitted.cross(K[:3])[0], K[:3])
    assert fitted.cross(K[:3])[1] is None
    fitted.block(slice(0, 2))[:] = 0
    assert_array_equal(fitted.x, rows @ rows.T)


def test_callables_that_return_no_number_are_named(rows):
    message = "^kernel=<lambda>: gets two rows, .* must return a number. .*error was: .*"
    for function, cause in (
        (lambda x, y: "near", "could not convert string"),
        (lambda x, y: np.exp(-((x[:, None] - y) ** 2)), "setting an array element"),
        (lambda x, y: x[:, 0] @ y, "too many indices"),
        (lambda x: 1.0, "takes 1 positional"),
    ):
        for model in (KernelKMeans(2, kernel=function), MKKM(2, kernels=[function])):
            with pytest.raises((ValueError, TypeError), match=message + cause):
                model.fit(rows)


def test_functions_of_matrices_are_no_kernels(rows):
    for cls in (KernelKMeans, NystroemKernelKMeans, RFFKernelPowerKMeans):
        with pytest.raises(ValueError, match="^kernel=rbf_kernel: .* matrices.* Pass 'rbf'"):
            cls(2, kernel=rbf_kernel).fit(rows)
    with pytest.raises(ValueError, match=r"^kernels\[1\]=rbf_kernel: .* Pass 'rbf'"):
        MKKM(2, kernels=["linear", rbf_kernel]).fit(rows)


@pytest.mark.parametrize("function", [center_kernel, normalize_kernel])
def test_bad_matrices_are_named(function):
    with pytest.raises(ValueError, match=r"K.shape=\(2, 3\): must be square"):
        function(np.ones((2, 3)))
    with pytest.raises(ValueError, match="K: contains NaN"):
        function(np.array([[1.0, np.nan], [0.0, 1.0]]))


def test_asymmetric_kernels_are_refused(blocks):
    K = np.eye(30)
    K[25, 3] = 1e-3
    with pytest.raises(ValueError, match=r"X\[1\] is not symmetric: .* by 0.001"):
        kernels.check_precomputed(K, "X[1]")
    K[25, 3] = 1e-8
    assert kernels.check_precomputed(K, "X[1]") is not None


def test_a_kernel_with_a_negative_diagonal_is_centered_but_not_normalised():
    K = np.diag([1.0, -2.0])
    with pytest.raises(ValueError, match=r"K has -2.0 on its diagonal, must be >= 0"):
        normalize_kernel(K)
    assert_allclose(center_kernel(K).sum(axis=0), 0, atol=1e-15)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1000.1])
def test_the_bank_of_constant_rows_is_constant(value):
    Z = np.full((100, 11), value)
    for spec in kernels.du2015(Z):
        assert np.ptp(fit(Z, spec).matrix()) < 1e-10, spec


def test_no_gamma_is_the_default_of_the_kernel():
    X = np.abs(np.random.default_rng(0).standard_normal((9, 3)))
    for metric in ("chi2", "rbf", "polynomial"):
        fitted = fit(X, kernels.specification((metric, None), "k"))
        assert_allclose(fitted.matrix(), pairwise_kernels(X, metric=metric))

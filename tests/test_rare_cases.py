"""Branches and factors that few fits show, each alone, with what it must give."""

import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import oracles
import pytest
from contracts.core import label_order
from contracts.fusion import famkkm
from contracts.graph import spectrum
from contracts.plan import config, linalg
from contracts.source import starts
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal

import rffpk
from rffpk import _reference

X = np.random.default_rng(0).standard_normal((60, 3))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_that_are_all_noise_of_the_merged_state_have_no_critical_exponent():
    typicality = rffpk.Typicality(eta=1e-30, m=1.05)
    model = ip_rff_mkpkm(1, kernels="linear", typicality=typicality, random_state=0)
    assert oracles.first_exponent(model, [np.array([[0.0], [1.0]])]) == -0.5


def test_the_largest_entry_of_an_eigenvector_is_positive():
    assert_array_equal(linalg.fixed_signs(np.array([[1.0, -3], [-2, 1]])), [[-1, 3], [2, -1]])


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_eigenvalues_that_are_rounding_errors_give_zero_vectors(size):
    values = size * np.array([1.0, 1e-14, 1e-17, -1.0])
    scaled = linalg.over_eigenvalues(np.ones((4, 4)), values)
    assert_allclose(scaled, np.tile([1 / values[0], 1 / values[1], 0, 0], (4, 1)))


def test_weights_of_kernels_are_the_positive_agreements_of_norm_one():
    """Eq. (18) of FAMKKM."""
    for beta, gamma in (([0.3, 0.4], [0.6, 0.8]), ([-1.0, 0.5], [0, 1]), ([-1.0, 0.0], [7, 7])):
        state = SimpleNamespace(_agreements=lambda beta=beta: np.array(beta), gamma=[7, 7])
        famkkm.Alternation.update_gamma(state)
        assert_allclose(state.gamma, gamma)


def test_no_component_has_no_decay():
    walked = spectrum.Spectrum(np.array([0.1, 0.2]), np.ones(2), 0.1, 0)
    assert walked.unit_decay(np.zeros(0, dtype=int), 1.0).shape == (0,)
    assert_allclose((walked.unit_decay(np.arange(2), 1e5) ** 2).sum(), 1)
    first, second = walked.unit_decay(np.arange(2), 3.0)
    assert_allclose(second / first, math.exp(-3 * 0.1 / 2))


@pytest.mark.parametrize("k, most", [(99, 198), (101, 200), (199, 200), (201, 201)])
def test_there_are_two_functions_a_cluster_up_to_two_hundred(k, most):
    walked = spectrum.Spectrum(np.linspace(0, 0.1, 500), np.ones(500), 0.1, 0)
    assert_array_equal(walked.components(k, 1.0), np.arange(most))


def test_the_reference_refuses_reference_distances_of_another_rule():
    origin, rule = np.zeros((1, 3)), _reference.TYPICALITY
    with pytest.raises(ValueError, match="eta must be an array where rule is TYPICALITY"):
        _reference.fused_pass([X], [None], [origin[0]], origin, np.ones(1), None, rule, -1.0, 1)


def test_equal_rows_have_a_reference_distance_of_one():
    model = ip_rff_mkpkm(1, kernels="linear", random_state=0)
    assert_array_equal(model.fit([np.zeros((9, 2))]).eta_, 1.0)
    with pytest.raises(ValueError, match="predict_typicality needs typicality"):
        model.set_params(typicality=None).fit([X]).predict_typicality([X])


def test_a_number_is_the_weight_of_each_row():
    fits = [rffpk.PowerKMeans(3, random_state=0).fit(X, sample_weight=w) for w in (2, [2] * 60)]
    assert fits[0].inertia_ == fits[1].inertia_


@pytest.mark.parametrize("approximation", ["rff", "nystroem"])
def test_no_gamma_of_an_approximated_kernel_is_that_of_scikit_learn(approximation):
    model = rffpk.FAMKKM(2, approximation=approximation, max_iter=3, random_state=0)
    plain, own = (
        model.set_params(kernels=[("rbf", gamma)]).fit([X]).embedding_ for gamma in (None, 1 / 3)
    )
    assert_array_equal(plain, own)


def test_a_second_fit_with_a_number_of_frequencies_has_no_error():
    features = rffpk.RandomFourierFeatures(random_state=0).fit(X)
    assert features.kernel_error_ > 0
    assert not hasattr(features.set_params(n_frequencies=8).fit(X), "kernel_error_")


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", ["mean", "median"])
def test_one_row_has_a_gamma_of_one(kernel, gamma):
    assert rffpk.RandomFourierFeatures(kernel=kernel, gamma=gamma).fit([[1.0, 2.0]]).gamma_ == 1


def test_rows_of_one_cluster_are_drawn_opaque():
    pytest.importorskip("matplotlib")
    from rffpk import plot

    ax = plot.clusters(rffpk.PowerKMeans(1, random_state=0).fit(X), X)
    assert ax.collections


def test_memory_where_the_system_does_not_say(monkeypatch):
    def missing(*arguments, **options):
        raise OSError

    monkeypatch.setattr(Path, "read_text", missing)
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    assert config.available_memory() == half
    monkeypatch.setattr(os, "sysconf", missing)
    assert config.available_memory() == 2**31


def test_draws_in_proportion_to_denormal_costs():
    """A uniform number times their sum may be the sum, beyond which there is no row."""
    sums = np.array([0, 5e-324, 0, 5e-324, 0]).cumsum()
    drawn = [starts.draw(sums, 2, np.random.RandomState(seed)) for seed in range(10)]
    assert set(np.ravel(drawn)) == {1, 3}


def test_the_time_is_that_of_the_slowest_function_that_separates():
    """Three clusters need the two slowest functions, besides the constant one."""
    walked = spectrum.Spectrum(np.array([0.1, 0.2, 0.4]), np.ones(3), 0.1, 0)
    assert_allclose([walked.separating_time(k) for k in (2, 3, 4)], [30, 15, 7.5])


@pytest.mark.parametrize("n", [1, 256, 257, 2**16 + 1, 2**16 + 10])
def test_rows_are_ordered_by_any_number_of_labels(n):
    labels = np.random.default_rng(0).permutation(np.r_[0:n, 0:n]).astype(np.int32)
    assert_array_equal(label_order(labels, n), np.argsort(labels, kind="stable"))

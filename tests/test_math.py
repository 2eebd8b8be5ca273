"""Identities of docs/math.md that no other test certifies."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose
from passes import make_rows, one_pass, power_constant, shifted_features

from rffpk import RFFMultiKernelPowerKMeans


def two_views(n, weight):
    random = np.random.default_rng(0)
    xs = [random.standard_normal((n, d)) * np.linspace(0.3, 2, d) for d in (3, 5)]
    maps = [None, random.standard_normal((5, 4))]
    return make_rows(xs, maps, random.uniform(0.5, 2, n) if weight else None, 1)


@pytest.mark.parametrize("m", [None, 1.4, 2.0, 3.0])
@pytest.mark.parametrize("s", [-0.2, -1.0, -7.0, -np.inf])
def test_the_sums_of_a_pass_are_a_majorant_of_the_objective(backend, s, m):
    """Sections 2, 6 and 7: it equals the objective at the centroids of the pass, and is never below
    it."""
    k, rows = 4, two_views(300, weight=True)
    random = np.random.default_rng(1)
    rows = replace(rows, alpha=np.array([0.3, 0.7]))
    if m is not None:
        rows = replace(rows, eta=np.array([2.0, 0.5]), m=m)
    theta = shifted_features(rows)[:k]  # rows on centroids have distances of zero
    theta[3] = theta[0]
    sums, _ = one_pass(rows, theta, s)
    scale = 1.0 if np.isinf(s) else power_constant(k, s)

    def majorant(new, alpha):
        squares = np.add.reduceat(new**2, [0, 3], axis=1)
        mixed = np.add.reduceat(sums.N * new, [0, 3], axis=1)
        costs = (sums.Q - 2 * mixed + sums.G[:, None] * squares).sum(axis=0)
        if m is not None:
            costs = costs + rows.eta * sums.E.sum()
        return scale * alpha @ costs

    assert_allclose(majorant(theta, rows.alpha), sums.objective(s), rtol=1e-10)
    for size in (1e-3, 0.1, 1.0, 10.0):
        for _ in range(10):
            new = theta + size * random.standard_normal(theta.shape)
            share = random.dirichlet(np.ones(2))
            objective = one_pass(replace(rows, alpha=share), new, s)[0].objective(s)
            assert objective <= majorant(new, share) * (1 + 1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_critical_exponent_of_views_is_where_a_small_perturbation_stops_growing():
    """Section 8: the views side by side, scaled with the square roots of their weights."""
    random = np.random.default_rng(0)
    xs, p = [random.standard_normal((300, d)) for d in (3, 6)], random.uniform(0.5, 2, 300)
    xs[0] /= np.sqrt(np.cov(xs[0].T, aweights=p, bias=True).trace())  # as the views are scaled
    model = RFFMultiKernelPowerKMeans(
        3, kernels=["linear", ("rbf", 0.1)], n_frequencies=4, typicality=None, random_state=0
    )
    critical = oracles.first_exponent(model, xs, sample_weight=p)
    model.set_params(max_iter=1).fit(xs, sample_weight=p)
    omega = model.feature_maps_[1].frequencies_
    rows, s = make_rows(xs, [None, omega], p), -2.0
    assert_allclose(
        critical, oracles.critical_exponent(rows.scaled(shifted_features(rows)), p), rtol=1e-5
    )
    assert critical < -0.5
    delta = np.random.default_rng(2).standard_normal((3, len(rows.shift)))
    for _ in range(300):
        delta *= 1e-7 / np.linalg.norm(rows.scaled(delta - delta.mean(axis=0)))
        moved = rows.centroids(one_pass(rows, delta, s)[0], delta)
        delta = moved - moved.mean(axis=0)
        growth = np.linalg.norm(rows.scaled(delta)) / 1e-7
    assert_allclose(growth, (1 - s) / (1 - critical), rtol=1e-5)

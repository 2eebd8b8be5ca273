"""Passes over many centroids in which few directions bound most of the distances."""

import math
from dataclasses import replace

import numpy as np
import pytest
from contracts.core import Identity
from contracts.hard_pass import along, coordinates, find_directions
from contracts.passes import column_rows, passes
from contracts.passes import make_rows as shifted_rows
from numpy.testing import assert_allclose
from passes import UNIT, assert_digits, make_rows, one_pass, tight_groups

from rffpk import Annealing, PowerKMeans, _core, _reference


def around(n, d, k, spread, dtype, seed=0, offset=0.0):
    """Draw rows around some of k centers, and the centers."""
    random = np.random.default_rng(seed)
    centers = random.standard_normal((k, d)) * np.arange(1, d + 1) ** -0.5
    X = centers[random.integers(k, size=n)] + spread * random.standard_normal((n, d))
    return (X + offset).astype(dtype), centers


def tied(n, d, k, dtype):
    """Draw rows and centers of few small integers, where many are equally far apart."""
    random = np.random.default_rng(0)
    X = random.integers(-1, 2, (n, d)).astype(dtype)
    return X, random.integers(-1, 2, (k, d)).astype(float)


GIVEN = {
    "apart": lambda dtype: around(700, 40, 50, 0.05, dtype),
    "overlap": lambda dtype: around(2500, 67, 120, 0.3, dtype),
    "far from the origin": lambda dtype: around(300, 33, 33, 0.3, dtype, offset=300),
    "large numbers": lambda dtype: tuple(1e15 * x for x in around(99, 34, 40, 0.3, dtype)),
    "small numbers": lambda dtype: tuple(1e-15 * x for x in around(99, 34, 40, 0.3, dtype)),
    "tight": lambda dtype: tight_groups(500, 40, 60, dtype),
    "ties": lambda dtype: tied(400, 35, 60, dtype),
    "one place": lambda dtype: (np.ones((70, 32), dtype), np.zeros((40, 32))),
}


def rows_and_centers(name, dtype, unit=False, weighted=False):
    X, centers = GIVEN[name](dtype)
    weight = np.random.default_rng(1).random(len(X)).astype(dtype) if weighted else None
    rows = make_rows([np.ascontiguousarray(X, dtype)], [UNIT if unit else None], weight)
    return rows, np.ascontiguousarray(centers, dtype)


def leading(theta, q):
    """Compute directions along which centroids are far apart."""
    basis = np.linalg.svd(theta.astype(float), full_matrices=False)[2][:q]
    return np.ascontiguousarray(basis, theta.dtype)


def described(theta, q):
    """Describe centroids by such directions, the coordinates there, and a ratio.

    A centroid is not the nearest beyond this ratio of distances.
    """
    directions = leading(theta, q)
    return directions, coordinates(theta, directions), 1.0


def with_and_without(rows, theta, q, want=("labels", "nearest")):
    directions = described(theta, q), None
    return [one_pass(rows, theta, -np.inf, want=want, directions=each) for each in directions]


def test_what_is_left_of_centroids_is_not_shorter_than_it_is(dtype):
    """Not by rounding, either, where nothing is left."""
    theta = around(1, 40, 50, 0.3, dtype)[1].astype(dtype)
    for q in (8, 40):
        directions = leading(theta, q)
        reduced = coordinates(theta, directions).astype(float)
        assert reduced.shape == (50, q + 1)
        along, basis = reduced[:, :-1], directions.astype(float)
        assert_allclose(along, theta.astype(float) @ basis.T, atol=20 * np.finfo(dtype).eps)
        left = np.linalg.norm(theta - along @ basis, axis=1)
        assert (reduced[:, -1] >= left).all()
        assert_allclose(reduced[:, -1], left, atol=30 * np.finfo(dtype).eps ** 0.5)


def test_directions_are_found_where_they_pay(tuning):
    X, theta = around(5000, 128, 200, 0.05, np.float32)
    rows = column_rows(X, None, 1)
    assert find_directions(rows, theta) is None  # the pass takes no time
    tuning(hardpasses__directions_work=1)
    found, at, reach = find_directions(rows, theta)
    np.testing.assert_array_equal(at, coordinates(theta, found))
    assert reach == 1.0
    assert found.dtype == np.float32
    assert_allclose(found @ found.T, np.eye(len(found)), atol=1e-5)
    random = np.random.default_rng(0)
    even = column_rows(random.standard_normal((5000, 128)).astype(np.float32), None, 1)
    alike = random.standard_normal((200, 128)) / 10
    assert find_directions(even, alike) is None  # no few directions tell them apart
    assert find_directions(shifted_rows([X, X], 2 * [Identity(X.shape[1])], None, 1), theta) is None


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("q", [1, 8, 20])
def test_labels_and_sums_are_those_of_all_distances(isa, dtype, name, unit, q):
    rows, theta = rows_and_centers(name, dtype, unit, weighted=unit)
    (sums, results), (all_sums, expected) = with_and_without(rows, theta, q)
    np.testing.assert_array_equal(results["labels"], expected["labels"])
    np.testing.assert_array_equal(sums.N, all_sums.N)
    np.testing.assert_array_equal(sums.G, all_sums.G)
    three, given = replace(rows, n_threads=3), {"directions": described(theta, q)}
    other, threaded = one_pass(three, theta, -np.inf, want=("nearest",), **given)
    np.testing.assert_array_equal(threaded["nearest"], results["nearest"])
    assert other.hard == sums.hard
    squares = float((rows.xs[0].astype(float) ** 2).sum(axis=1).max()) if not unit else 4.0
    squares += float((theta**2).sum(axis=1).max()) + float((rows.shift.astype(float) ** 2).sum())
    within = float(40 * theta.shape[1] * np.finfo(dtype).eps * squares)
    assert_allclose(results["nearest"], expected["nearest"], atol=within)
    assert sums.hard == pytest.approx(all_sums.hard, abs=within * rows.total_weight)


def test_distances_of_tight_groups_have_digits(isa):
    X, theta = tight_groups(500, 40, 60, np.float32)
    rows = make_rows([X], [None], None, 1, [np.zeros(40, np.float32)])
    (_, found), _ = with_and_without(rows, theta, 8)
    assert_digits(((X[:, None].astype(float) - theta) ** 2).sum(axis=2), **found)


@pytest.mark.parametrize("s", [-3.0, -40.0, -1000.0])
@pytest.mark.parametrize("name", ["apart", "overlap", "ties"])
def test_power_means_leave_out_what_rounding_does(isa, name, s):
    X, theta = GIVEN[name](np.float64)
    rows = column_rows(X, None, 1)
    soft, expected = (
        passes.pass_of_block(rows, theta, s, hard=True, directions=each)[0].soft
        for each in (along(leading(theta, 8), theta, s), None)
    )
    assert soft == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rule", [_core.POWER, _core.HARD])
def test_a_pass_refuses_directions_that_it_cannot_use(rule):
    X, theta = around(100, 40, 40, 0.2, np.float32)
    theta = theta.astype(np.float32)
    options = {"n_threads": 1, "directions": described(theta, 4)}

    def run(module, k=40, rule=_core.HARD, s=-2.0, **outputs):
        given = [X], [None], [X.mean(axis=0)], theta[:k], np.ones(1), None, rule, s
        return module.fused_pass(*given, **options, **outputs)

    with pytest.raises(ValueError, match="directions must be None but for"):
        run(_core, 40 if rule == _core.POWER else 8, rule)
    ours, twin = (run(module, s=-math.inf) for module in (_core, _reference))
    assert_allclose(ours[0], twin[0], rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="memberships or distances"):
        run(_core, distances=np.empty((100, 40), np.float32))


@pytest.mark.parametrize("parameters", [{}, {"annealing": Annealing(swaps=0), "sample": 3000}])
def test_a_fit_ends_at_the_nearest_centroids(monkeypatch, parameters, tuning):
    X = around(6000, 100, 120, 0.05, np.float32)[0]
    tuning(hardpasses__near_work=1)
    model = PowerKMeans(120, random_state=0, **parameters)
    cost = model.fit(X).inertia_
    tuning(hardpasses__directions_work=1)
    used, fused_pass = [], _core.fused_pass

    def watched(*given, directions=None, **options):
        used.append(directions is not None)
        return fused_pass(*given, directions=directions, **options)

    monkeypatch.setattr(_core, "fused_pass", watched)
    model.fit(X)
    assert any(used)
    for work in (1, math.inf):  # by bounds, and by all distances
        tuning(hardpasses__directions_work=work)
        used.clear()
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert (True in used) is (work == 1)
    assert model.inertia_ == pytest.approx(cost, rel=1e-2)
    assert model.objective_ >= model.inertia_
    apart = ((X[:, None].astype(float) - model.cluster_centers_) ** 2).sum(axis=2)
    least = apart.min(axis=1)
    objective = least @ ((apart / least[:, None]) ** model.s_).mean(axis=1) ** (1 / model.s_)
    assert model.objective_ == pytest.approx(objective, rel=1e-4)


def test_ties_within_rounding_are_decided_as_by_all_distances(isa):
    rows, theta = rows_and_centers("tight", np.float32)
    (_, found), (_, expected) = with_and_without(rows, theta, 1, want=("labels",))
    np.testing.assert_array_equal(found["labels"], expected["labels"])

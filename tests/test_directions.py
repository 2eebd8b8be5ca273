"""Passes over many centroids in which few directions bound most of the distances."""

import math

import numpy as np
import pytest
from internals import Unit, hard_passes, make_rows, pass_of_block

from rffpk import Annealing, PowerKMeans, _core, _reference


def around(n, d, k, spread, dtype, seed=0, offset=0.0):
    """Rows around some of k centers, and these."""
    random = np.random.default_rng(seed)
    centers = random.standard_normal((k, d)) * np.arange(1, d + 1) ** -0.5
    X = centers[random.integers(k, size=n)] + spread * random.standard_normal((n, d))
    return (X + offset).astype(dtype), centers


def tied(n, d, k, dtype):
    """Rows and centers of few small integers, of which many are equally far apart."""
    random = np.random.default_rng(0)
    X = random.integers(-1, 2, (n, d)).astype(dtype)
    return X, random.integers(-1, 2, (k, d)).astype(float)


def tight(n, d, k, dtype):
    """Rows in groups far apart, and two centers in each of them."""
    random = np.random.default_rng(0)
    middles = np.repeat(1000 * random.standard_normal((k // 2, d)), 2, axis=0)
    X = middles[random.integers(k, size=n)] + 0.1 * random.standard_normal((n, d))
    return X.astype(dtype), middles + 0.1 * random.standard_normal((k, d))


GIVEN = {
    "apart": lambda dtype: around(700, 40, 50, 0.05, dtype),
    "overlap": lambda dtype: around(1500, 67, 120, 0.3, dtype),
    "far from the origin": lambda dtype: around(300, 33, 33, 0.3, dtype, offset=300),
    "large numbers": lambda dtype: tuple(1e15 * x for x in around(99, 34, 40, 0.3, dtype)),
    "small numbers": lambda dtype: tuple(1e-15 * x for x in around(99, 34, 40, 0.3, dtype)),
    "tight": lambda dtype: tight(500, 40, 60, dtype),
    "ties": lambda dtype: tied(400, 35, 60, dtype),
    "one place": lambda dtype: (np.ones((70, 32), dtype), np.zeros((40, 32))),
}


def rows_and_centers(name, dtype, unit=False, weighted=False):
    X, centers = GIVEN[name](dtype)
    weight = np.random.default_rng(1).random(len(X)).astype(dtype) if weighted else None
    rows = make_rows(
        [np.ascontiguousarray(X, dtype)], [Unit(X.shape[1]) if unit else None], weight, 1
    )
    return rows, centers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("q", [1, 8, 20])
def test_labels_and_sums_are_those_of_all_distances(isa, dtype, name, unit, q):
    rows, theta = rows_and_centers(name, dtype, unit, weighted=unit)
    some = np.ascontiguousarray(hard_passes._leading(theta, q).T, dtype)
    (sums, found), (all_sums, expected) = (
        hard_passes.bounded_pass(each, rows, theta, want=("labels", "nearest"))
        for each in (some, None)
    )
    np.testing.assert_array_equal(found["labels"], expected["labels"])
    np.testing.assert_array_equal(sums.N, all_sums.N)
    np.testing.assert_array_equal(sums.G, all_sums.G)
    squares = float((rows.xs[0].astype(float) ** 2).sum(axis=1).max()) if not unit else 4.0
    squares += float((theta**2).sum(axis=1).max()) + float((rows.shift.astype(float) ** 2).sum())
    within = float(40 * theta.shape[1] * np.finfo(dtype).eps * squares)
    np.testing.assert_allclose(found["nearest"], expected["nearest"], atol=within)
    assert sums.hard == pytest.approx(all_sums.hard, abs=within * rows.total_weight)


def test_distances_of_tight_groups_have_digits(isa):
    X, theta = tight(500, 40, 60, np.float32)
    rows = make_rows([X], [None], None, 1, [np.zeros(40, np.float32)])
    theta = theta.astype(np.float32).astype(float)
    some = np.ascontiguousarray(hard_passes._leading(theta, 8).T, np.float32)
    found = hard_passes.bounded_pass(some, rows, theta, want=("labels", "nearest"))[1]
    apart = ((X[:, None].astype(float) - theta) ** 2).sum(axis=2)
    np.testing.assert_allclose(found["nearest"], apart.min(axis=1), rtol=2**-7)
    picked = apart[np.arange(500), found["labels"]]
    np.testing.assert_allclose(picked, apart.min(axis=1), rtol=2**-7)


@pytest.mark.parametrize("s", [-3.0, -40.0, -1000.0])
@pytest.mark.parametrize("name", ["apart", "overlap", "ties"])
def test_power_means_leave_out_what_rounding_does(isa, name, s):
    rows, theta = rows_and_centers(name, np.float64)
    some = hard_passes._leading(theta, 8).T.copy()
    soft, expected = (
        hard_passes.bounded_pass(each, rows, theta, s, hard=True)[0].soft for each in (some, None)
    )
    assert soft == pytest.approx(expected, rel=1e-12)


def test_bits_do_not_depend_on_threads():
    X, theta = around(5000, 64, 100, 0.2, np.float32)
    rows = [make_rows([X], [None], None, threads) for threads in (1, 3)]
    some = np.ascontiguousarray(hard_passes._leading(theta, 8).T, np.float32)
    one, other = (hard_passes.bounded_pass(some, each, theta, want=("nearest",)) for each in rows)
    np.testing.assert_array_equal(one[1]["nearest"], other[1]["nearest"])
    assert one[0].hard == other[0].hard


def test_directions_are_found_where_they_pay(limits):
    X, theta = around(5000, 128, 200, 0.05, np.float32)
    rows = make_rows([X], [None], None, 1)
    assert hard_passes.find_directions(rows, theta) is None  # the pass takes no time
    limits(directions_work=1)
    found = hard_passes.find_directions(rows, theta)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found @ found.T, np.eye(len(found)), atol=1e-5)
    random = np.random.default_rng(0)
    even = make_rows([random.standard_normal((5000, 128)).astype(np.float32)], [None], None, 1)
    alike = random.standard_normal((200, 128)) / 10
    assert hard_passes.find_directions(even, alike) is None  # no few directions tell them apart
    assert hard_passes.find_directions(make_rows([X, X], [None] * 2, None, 1), theta) is None


@pytest.mark.parametrize("rule", [_core.POWER, _core.HARD])
def test_a_pass_refuses_directions_that_it_cannot_use(rule):
    X, theta = around(100, 40, 40, 0.2, np.float32)
    theta = theta.astype(np.float32)
    some = np.ascontiguousarray(hard_passes._leading(theta, 4).T, np.float32)
    given = some, hard_passes.coordinates(theta, some), 1.0
    k = 40 if rule == _core.POWER else 8
    with pytest.raises(ValueError, match="directions must be None but for"):
        _core.fused_pass(
            [X], [None], [X.mean(axis=0)], theta[:k], np.ones(1), None, rule, -2.0, 1,
            directions=given,
        )  # fmt: skip
    with pytest.raises(ValueError, match="memberships or distances"):
        _core.fused_pass(
            [X], [None], [X.mean(axis=0)], theta, np.ones(1), None, _core.HARD, -2.0, 1,
            directions=given, distances=np.empty((100, 40), np.float32),
        )  # fmt: skip


def test_the_twin_has_the_parameter():
    X, theta = around(100, 40, 40, 0.2, np.float64)
    some = hard_passes._leading(theta, 4).T.copy()
    given = [X], [None], [X.mean(axis=0)], theta, np.ones(1), None, _core.HARD, -math.inf, 1
    named = {"directions": (some, hard_passes.coordinates(theta, some), 1.0)}
    ours, twin = _core.fused_pass(*given, **named), _reference.fused_pass(*given, **named)
    np.testing.assert_allclose(ours[0], twin[0], atol=1e-10)


@pytest.mark.parametrize("parameters", [{}, {"annealing": Annealing(swaps=0), "sample": 3000}])
def test_a_fit_ends_at_the_nearest_centroids(monkeypatch, parameters, limits):
    X = around(6000, 100, 120, 0.05, np.float32)[0]
    limits(near_work=1)
    plain = PowerKMeans(120, random_state=0, **parameters).fit(X)
    limits(directions_work=1)
    used = []
    monkeypatch.setattr(
        hard_passes, "pass_of_block",
        lambda *args, directions, **kw: (
            used.append(directions is not None),
            pass_of_block(*args, directions=directions, **kw),
        )[1],
    )  # fmt: skip
    model = PowerKMeans(120, random_state=0, **parameters).fit(X)
    assert any(used)
    used.clear()
    for work in (1, math.inf):  # by bounds, and by all distances
        limits(directions_work=work)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert used == [True, False]
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-2)
    assert model.objective_ >= model.inertia_
    s, k = model.s_, 120
    assert model.objective_ == pytest.approx(
        power_objective(X, model.cluster_centers_, s, k), rel=1e-4
    )


def power_objective(X, centers, s, k):
    apart = ((X[:, None].astype(float) - centers) ** 2).sum(axis=2)
    least = apart.min(axis=1)
    return float((least * ((apart / least[:, None]) ** s).mean(axis=1) ** (1 / s)).sum())

"""Steps at one exponent: the compiled ones against their NumPy twin and against single passes."""

import gc
import signal
import threading
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from passes import make_rows, move, one_pass, shifted_features, take_steps

from rffpk import Annealing, PowerKMeans, _core, _reference

CLOSE = (1e-8, 1e-12)


def problem(kind, dtype, n=700, k=5, n_threads=1):
    random = np.random.default_rng(0)
    xs = [(random.standard_normal((n, d)) + 3 * random.integers(0, 3, (n, 1))) for d in (4, 7)]
    maps, weight = [None, random.standard_normal((7, 9)).astype(dtype)], None
    if kind == "one view":
        xs, maps = xs[:1], maps[:1]
    if kind == "weighted":
        weight = random.integers(0, 4, n) * 1e3
    rows = make_rows([x.astype(dtype) for x in xs], maps, weight, n_threads)
    if kind == "typical":
        rows = replace(rows, alpha=np.array([0.3, 0.7]), eta=np.array([2.0, 0.5]), m=1.7)
    # no centroid is a row: for a distance eps, which rounding makes of 0, weights err by eps^|s|
    pairs = shifted_features(rows)[random.choice(n, (2, k), replace=False)]
    return rows, pairs.mean(axis=0, dtype=float), rows.variance


def rounding(arguments, dtype):
    """Return tolerances of the numbers of a step (relative) and of its centroids."""
    eps = np.finfo(dtype).eps
    return 1e4 * eps, 200 * eps * np.abs(arguments[1]).max()


def steps(given, s, **options):
    rows, theta, variance = given
    options = {"variance": variance, "tol": -1.0, "most": 6, "close": CLOSE} | options
    return take_steps(rows, theta, s, **options)


@pytest.mark.parametrize("entropy", [0.0, 0.3])
@pytest.mark.parametrize("s", [-0.7, -5.0, -np.inf])
@pytest.mark.parametrize("kind", ["one view", "weighted", "two views", "typical"])
def test_steps_are_those_of_the_twin(kind, s, entropy, dtype):
    """Also with learned weights of views."""
    rows, *_ = given = problem(kind, dtype)
    options = {"entropy": entropy * rows.total_weight}
    compiled, expected = (steps(given, s, backend=name, **options) for name in ("core", "numpy"))
    rtol, atol = rounding(given, dtype)
    assert len(compiled.steps) == len(expected.steps) == 6
    for record, twin in zip(compiled.steps, expected.steps):
        assert_allclose(record[:5], twin[:5], rtol=rtol, atol=rtol * twin[1])
        assert record.distinct == twin.distinct and record.seconds >= 0
    assert_allclose(compiled.theta, expected.theta, rtol=0, atol=atol)
    assert_allclose(compiled.previous, expected.previous, rtol=0, atol=atol)
    assert_allclose(compiled.sums.G, expected.sums.G, rtol=rtol)
    assert compiled.n_empty == expected.n_empty == 0
    if entropy and kind != "one view":
        assert len(compiled.alphas) == 7 and np.ptp(compiled.alphas[-1]) > 0.1
        assert_allclose(compiled.alphas, expected.alphas, rtol=rtol)


@pytest.mark.parametrize("kind", ["one view", "weighted", "typical"])
def test_a_step_is_a_pass_and_a_division(kind, backend, dtype):
    rows, theta, variance = given = problem(kind, dtype)
    kept = theta.copy()
    moved = steps(given, -3.0)
    assert_array_equal(theta, kept)
    for record in moved.steps:
        sums, _ = one_pass(rows, theta, -3.0)
        assert record[:2] == (sums.soft, sums.hard)
        before, theta = theta, rows.centroids(sums, theta)
        gaps = rows.scaled(theta - before)
        assert_allclose(record.shift, np.sqrt((gaps**2).sum() / len(theta) / variance), rtol=1e-12)
    assert_array_equal(moved.theta, theta)
    assert_array_equal(moved.previous, before)


@pytest.mark.parametrize("entropy", [0.0, 200.0])
@pytest.mark.parametrize("kind", ["one view", "two views", "typical"])
def test_a_step_is_a_pass_and_a_move(kind, entropy, backend, dtype):
    """Streams and passes of the hard rule make the move apart."""
    rows, theta, variance = given = problem(kind, dtype)
    options = {"variance": variance, "close": CLOSE, "entropy": entropy, "backend": backend}
    sums, start = one_pass(rows, theta, -3.0, backend=backend)[0], theta.copy()
    found, step = move(rows, theta, sums, -3.0, **options), steps(given, -3.0, most=1, **options)
    assert found.record == step.steps[0][:5] and found.n_empty == step.n_empty
    assert_array_equal(found.alpha, step.alphas[-1])
    assert_array_equal(found.theta, step.theta)
    assert_array_equal(theta, start)


def test_steps_and_moves_leave_the_centroids_of_empty_clusters(backend, dtype):
    """Steps end there, and the caller moves the centroids."""
    rows, theta, variance = given = problem("one view", dtype)
    theta[2] = 1e3
    sums = one_pass(rows, theta, -np.inf, backend=backend)[0]
    moves = move(rows, theta, sums, -np.inf, variance=variance, close=CLOSE, backend=backend)
    taken = steps(given, -np.inf)
    assert len(taken.steps) == moves.n_empty == taken.n_empty == 1
    for found in (moves, taken):
        assert_array_equal((found.theta == theta).all(axis=1), np.arange(len(theta)) == 2)


@pytest.mark.parametrize("kind", ["two views", "typical"])
def test_learned_weights_minimise_the_objective(kind, backend):
    """sum_l alpha_l cost_l + lambda sum_l alpha_l log(L alpha_l) is least over the simplex."""
    rows, theta, variance = problem(kind, np.float64)
    entropy = 30.0 * rows.total_weight
    moved = steps((rows, theta, variance), -2.0, most=1, entropy=entropy)
    sums, factor = moved.sums, len(theta) ** 0.5
    costs = factor * sums.view_costs(rows.widths).sum(axis=0)
    costs = costs if rows.eta is None else costs + factor * sums.E.sum() * rows.eta

    def penalty(alpha):
        return entropy * (alpha * np.log(2 * alpha)).sum()

    assert_array_equal(moved.alphas[0], rows.alpha)
    assert_allclose(moved.steps[0].penalty, penalty(rows.alpha), atol=1e-12)
    best, *others = (
        alpha @ costs + penalty(alpha)
        for alpha in moved.alphas[1] + np.array([[0, 0], [1e-3, -1e-3], [-1e-3, 1e-3]])
    )
    assert min(others) > best


def test_steps_end_where_the_goal_is_out_of_reach(backend):
    arguments = problem("one view", np.float64)
    every = steps(arguments, -np.inf, most=12)
    costs = np.array([record[1] for record in every.steps])
    assert not every.hopeless and len(costs) == 12
    # the gain of the second step times four does not reach what is below the third one's
    goal = costs[1] - 5 * (costs[0] - costs[1])
    ended = steps(arguments, -np.inf, most=12, goal=goal)
    assert ended.hopeless and len(ended.steps) == 2
    assert not steps(arguments, -np.inf, most=2, goal=goal + 2 * (costs[0] - costs[1])).hopeless


def test_steps_do_not_depend_on_the_number_of_threads(dtype):
    one, three = (
        steps(problem("two views", dtype, n=3000, n_threads=threads), -4.0) for threads in (1, 3)
    )
    assert_array_equal(one.theta, three.theta)
    assert [r[:5] for r in one.steps] == [r[:5] for r in three.steps]


def test_steps_end_at_the_tolerance_or_the_number(backend):
    given = problem("one view", np.float64)
    shifts = [record.shift for record in steps(given, -np.inf, most=50).steps]
    assert len(shifts) == 50 and 0 in shifts
    for tol in (0.0, 1e-2):
        first = next(i for i, shift in enumerate(shifts) if shift <= tol)
        assert len(steps(given, -np.inf, most=50, tol=tol).steps) == first + 1


def test_a_repaired_step_counts_its_repairs(backend):
    """Two of three centroids are equal: the hard rule leaves one of them empty."""
    X = np.random.default_rng(0).standard_normal((60, 2))
    X[:20] += 50
    init = np.array([[50.0, 50.0], [0.0, 0.0], [0.0, 0.0]])
    model = PowerKMeans(3, init=init, annealing=Annealing(start=-1e9), random_state=0).fit(X)
    repaired = [record for record in model.history_ if record.get("repairs")]
    assert len(repaired) == 1 and repaired[0]["distinct"] == 3
    assert len(np.unique(model.labels_)) == 3


@pytest.mark.parametrize("count", [_core.count_distinct, _reference.count_distinct])
def test_distinct_centroids_are_compared_with_distinct_ones(count):
    """Of a chain of close pairs every second one is distinct."""
    chain = np.arange(6.0)[:, None] * np.ones((1, 2))
    assert count(chain, 2.0) == 3 and count(chain, 1.9) == 6
    assert count(np.zeros((4, 3)), 0.0) == count(chain[:1], 0.0) == 1
    theta = np.random.default_rng(0).standard_normal((500, 6)) + 100
    theta[400:450], theta[450:] = theta[:50], theta[50:100] + 1e-5
    assert count(theta, 1e-8) == 400
    for close in (0.0, 1e-12, 1.0, 100.0):
        assert count(theta, close) == _reference.count_distinct(theta, close)


def test_counting_distinct_centroids_takes_little_memory():
    tracemalloc.start()
    assert _core.count_distinct(np.ones((300, 400)), 1e-6) == 1
    chain = np.arange(300.0)[:, None] * np.ones((1, 400))  # neighbours are 20 apart
    assert _core.count_distinct(chain, 400.0) == 150
    assert tracemalloc.get_traced_memory()[1] < 30e6
    tracemalloc.stop()


def test_an_interrupt_ends_steps_of_short_passes():
    arguments = problem("one view", np.float64, n=50)
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # it ignores what is raised in its callbacks, and hypothesis has one
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            steps(arguments, -2.0, most=10**8)
    finally:
        gc.enable()
        timer.cancel()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", [_core, _reference])
def test_costs_with_one_more_centroid(module, dtype):
    """Each row has the least of its distances from the nearest one and from the new one."""
    nearest, weight = np.array([1, 4, 0.5], dtype=dtype), np.array([1.0, 2.0, 4.0])
    distances = np.array([[2, 0.5], [1, 9], [0, 1]], dtype=dtype)
    assert module.costs_with(distances, nearest, weight).tolist() == [1 + 2 + 0, 0.5 + 8 + 2]
    assert module.lowered(distances, 1, nearest, weight).tolist() == [0.5, 8.5, 10.5]
    assert nearest.tolist() == [0.5, 4, 0.5]


def test_arrays_of_other_sizes_are_refused():
    ones, distances = np.ones(3), np.ones((3, 2))
    for short in ((ones[:2], ones), (ones, ones[:2])):
        with pytest.raises(ValueError, match="must be"):
            _core.costs_with(distances, *short)
        with pytest.raises(ValueError, match="must be"):
            _core.lowered(distances, 0, *short)
    with pytest.raises(ValueError, match="added=2: must be < 2"):
        _core.lowered(distances, 2, ones, ones)


def test_costs_of_groups_of_four_rows_are_weighted(dtype):
    random = np.random.default_rng(0)
    distances, nearest = random.random((11, 3)).astype(dtype), random.random(11).astype(dtype)
    given = distances, nearest, random.random(11)
    assert_allclose(_core.costs_with(*given), _reference.costs_with(*given), rtol=1e-6)

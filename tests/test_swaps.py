"""Swaps of centroids: what is estimated is what trying every swap gives."""

import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from internals import FeatureRun, FitContext, PowerMean, make_rows, shifted_features, swaps
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

N, K = 300, 6


def run_of(xs, k, weight=None, seed=0):
    """A run over rows whose centroids are some of them."""
    random = np.random.RandomState(seed)
    rows = make_rows(xs, [None] * len(xs), weight, 1)
    theta = shifted_features(rows)[random.choice(len(xs[0]), k, replace=False)].astype(np.float64)
    return FeatureRun(rows, theta, 1.0, PowerMean(), FitContext(random))


def data(dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    return random.standard_normal((N, 3)).astype(dtype), random.uniform(0.1, 5, N)


def hard_cost(X, weight, centers):
    return float(weight @ cdist(X, centers, "sqeuclidean").min(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_other_centroid_is_that_of_the_combined_distance(dtype):
    X, _ = data(dtype)
    run = run_of([X, X[:, :1] * 9], K)
    found = swaps._nearest_others(run.rows, run.theta)
    scaled = run.theta * np.sqrt([0.5] * 4)
    apart = cdist(scaled, scaled)
    np.fill_diagonal(apart, np.inf)
    assert_array_equal(found, apart.argmin(axis=1))
    assert len(set(found)) > 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_swap_removes_the_centroid_whose_loss_is_least(weighted, seed):
    """The moved centroid is the one whose place costs least with the candidate among the others."""
    X, weight = data(seed=seed)
    weight = weight if weighted else np.ones(N)
    run = run_of([X], K, weight if weighted else None, seed)
    before = run.theta.copy()
    assert swaps._swap(run, swaps._nearest(run))
    moved = np.flatnonzero((run.theta != before).any(axis=1))
    assert len(moved) == 1
    shifted = X - np.average(X, axis=0, weights=weight)
    costs = []
    for j in range(K):
        tried = before.copy()
        tried[j] = run.theta[moved[0]]
        costs.append(hard_cost(shifted, weight, tried))
    assert moved[0] == np.argmin(costs)


def test_of_the_drawn_rows_the_best_becomes_a_centroid():
    X, weight = data()
    run = run_of([X], K, weight)
    before, nearest = run.theta, swaps._nearest(run)
    run.context = FitContext(SimpleNamespace(choice=lambda n, count, p: np.arange(20)))
    assert swaps._swap(run, nearest)
    shifted = X - np.average(X, axis=0, weights=weight)
    costs = [hard_cost(shifted, weight, np.vstack([before, row])) for row in shifted[:20]]
    [moved] = np.flatnonzero((run.theta != before).any(axis=1))
    assert_allclose(run.theta[moved], shifted[np.argmin(costs)], rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [1, 2])
def test_centroids_are_removed_where_their_rows_have_another_one_near(weighted, count):
    """Two centroids in each of three clusters: one of two is removed, never both, and first where
    the rows weigh least."""
    random = np.random.default_rng(1)
    X = np.repeat([0.0, 100.0, 200.0], 100)[:, None] + random.standard_normal((N, 1))
    weight = np.repeat([1.0, 50.0, 5.0], 100) if weighted else None
    run = run_of([X], 2, weight)
    mean = np.average(X, axis=0, weights=weight)
    gaps = [2.0, 1.0, 3.0]  # light rows raise the cost least, else a small gap does
    run.theta = np.array([[100.0 * i + side * gaps[i] / 2] for i in range(3) for side in (-1, 1)])
    run.theta -= mean
    kept = swaps._without_cheapest(run, count) + mean
    assert len(kept) == 6 - count
    order = [0, 2, 1] if weighted else [1, 0, 2]
    left = [int(((kept > at - 50) & (kept < at + 50)).sum()) for at in (0, 100, 200)]
    assert left == [1 if i in order[:count] else 2 for i in range(3)]


def test_more_centroids_are_removed_than_have_a_neighbour_that_stays():
    X = np.repeat([0.0, 1.0, 100.0, 101.0], 5)[:, None]
    run = run_of([X], 4)
    run.theta = np.unique(shifted_features(run.rows), axis=0).astype(np.float64)
    assert [len(swaps._without_cheapest(run, count)) for count in (1, 2, 3)] == [3, 2, 1]


@pytest.mark.parametrize("away, added", [(50, 3), (2, 2)])
def test_as_many_centroids_are_added_and_removed_as_rows_are_away(away, added, monkeypatch):
    X = np.repeat(np.eye(4), 25, axis=0)
    X[:away] += np.arange(away)[:, None]
    run, sizes = run_of([X], 4), []
    run.theta = np.vstack([shifted_features(run.rows)[[99, 74]], np.full((2, 4), 99.0)])
    monkeypatch.setattr(FeatureRun, "follow", lambda self, stage: sizes.append(len(self.theta)))
    swaps._exchange(run, np.where(np.arange(100) < away, 1.0, 0.0), 3)
    assert [*sizes, len(run.theta)] == [4 + added, 4, 4]


def test_a_batch_that_does_not_lower_the_objective_is_undone(monkeypatch):
    X, weight = data()
    run = run_of([X], K, weight)
    batches = swaps._Batches(run)
    cost = batches.cost()
    before, rows, nearest = run.theta, run.rows, batches._nearest

    def exchange(run, nearest, count):
        run.theta = run.theta + 9 / count

    monkeypatch.setattr(swaps, "_exchange", exchange)
    assert batches.swap(1, cost) > cost
    assert run.theta is before and run.rows is rows and batches._nearest is nearest
    new = batches.swap(1, math.inf)
    assert new > cost and run.theta is not before and batches._nearest is not nearest


def test_swaps_are_tried_until_so_many_in_a_row_have_failed(monkeypatch):
    X, _ = data()
    run, tried = run_of([X], K), []
    gains = iter([5.0, 9.0, 4.0, 9.0, 9.0, 9.0, 1.0])

    def swap(run, known, cost):
        tried.append(cost)
        return next(gains)

    monkeypatch.setattr(swaps, "_swap_one", swap)
    swaps.improve(run, 8.0, 3)
    assert tried == [8.0, 5.0, 5.0, 4.0, 4.0, 4.0]


def test_batches_are_halved_after_a_failure_until_the_smallest_have_failed(monkeypatch):
    X, _ = data()
    run, tried = run_of([X], 40), []
    costs = iter([8.0, 9.0, 9.0, 9.0, 7.0, 7.0, 7.0 * (1 - 1e-6), 1.0])

    def swap(self, count, cost):
        tried.append((count, cost))
        return next(costs)

    monkeypatch.setattr(swaps._Batches, "cost", lambda self: 10.0)
    monkeypatch.setattr(swaps._Batches, "swap", swap)
    swaps._improve_in_batches(run, 15)
    costs = [10.0, 8.0, 8.0, 8.0, 8.0, 7.0, 7.0]
    assert tried == [*zip([13, 13, 6, 3, 2, 2, 2], costs)]


def test_rows_on_their_centroids_end_the_swaps():
    X = np.repeat(np.eye(4), 10, axis=0)
    run = run_of([X], 4)
    run.theta = np.unique(shifted_features(run.rows), axis=0).astype(np.float64)
    assert swaps._swap_one(run, [], 0.0) is None
    swaps.improve(run, 0.0, 5)
    assert run.cost(-math.inf) == pytest.approx(0, abs=1e-12)


def test_the_objective_falls_by_batches():
    X, weight = data()
    run = run_of([X], 40, weight)
    cost = partial(run.cost, -math.inf)
    before = cost()
    swaps._improve_in_batches(run, 5)
    assert cost() < before and len(run.theta) == 40

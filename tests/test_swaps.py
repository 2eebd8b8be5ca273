"""Swaps of centroids: the history and the result of a fit, and estimates beside trials of each."""

import itertools
import math
import pickle
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from contracts.core import Identity
from contracts.level import FeatureLevel, FitContext, PowerMean, State
from contracts.level import swaps as module
from contracts.passes import make_rows, ones, shifted_features
from contracts.plan import TUNING
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from rffpk import Annealing, FuzzyCMeans, PowerKMeans, RFFMultiKernelPowerKMeans

LINE = 100.0 * np.arange(6)[:, None]


def far_rows(n=30_000, far=1e4, centers=10):
    """Return blobs after three far rows."""
    X, _ = make_blobs(n, 5, centers=centers, random_state=0)
    return np.vstack([far * np.eye(3, 5), X])


def check_far(labels):
    assert len({*labels[:3]}) == 3 and not np.isin(labels[3:], labels[:3]).any()


def fit(X, init, swaps, seed=0):
    annealing = Annealing(start=-6e4, swaps=swaps)
    model = PowerKMeans(len(init), init=init, annealing=annealing, random_state=seed)
    return model.fit(X)


def of_views(k, **parameters):
    """Return a model of views of equal weight."""
    options = {"kernels": "linear", "typicality": None, "weight_entropy": 1e3, "random_state": 0}
    return RFFMultiKernelPowerKMeans(k, **options | parameters)


def swap_passes(model):
    return [record for record in model.history_ if record["stage"] == "swap"]


@pytest.mark.parametrize("seed", range(6))
def test_one_swap_moves_the_centroid_whose_loss_is_least_to_where_it_gains_most(seed):
    """Two centroids are in one narrow cluster, and two are in a wide cluster.

    Another centroid is between two more clusters.
    """
    random = np.random.default_rng(seed)
    centers, spread = np.repeat(LINE[:4], 100, axis=0), np.repeat([1.0, 8.0, 1.0, 1.0], 100)
    X = centers + spread[:, None] * random.standard_normal((400, 1))
    init = np.array([[-0.7], [0.7], [94.0], [106.0], [250.0]])
    centers = fit(X, init, 1, seed).cluster_centers_
    assert [(np.abs(centers - at) < 50).sum() for at in LINE[:4]] == [1, 2, 1, 1]


@pytest.mark.parametrize("swaps", [1, 3, 6])
def test_swaps_are_tried_until_so_many_in_a_row_have_failed(swaps):
    """At the best partition each of them fails after two passes."""
    X, y = make_blobs(300, centers=LINE @ np.ones((1, 2)), random_state=0)
    model = fit(X, LINE @ np.ones((1, 2)), swaps)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert len(swap_passes(model)) == 2 * swaps


@pytest.mark.parametrize("k, swaps, least", [(19, 40, 40), (30, 40, 26), (30, 1, 1), (100, 40, 0)])
def test_from_20_clusters_on_fewer_failures_end_single_swaps(k, swaps, least, monkeypatch):
    """One is tried at least, up to 99 clusters."""
    X, _ = make_blobs(900, 2, centers=k, random_state=0)
    init = PowerKMeans(k, random_state=0).fit(X).cluster_centers_
    failed, swap_one = [False], module._swap_one

    def swap(state, level, estimate, cost):
        state, new = swap_one(state, level, estimate, cost)
        failed.append(new >= (1 - TUNING.swaps.least_gain) * cost)
        return state, new

    monkeypatch.setattr(module, "_swap_one", swap)
    fit(X, init, swaps)
    assert failed[::-1].index(False) == least  # in a row at the end


def test_failed_swaps_are_undone_and_do_not_count_after_one_that_helps():
    """The objective after a swap that helps is the lowest so far, and the result is no worse."""
    X, _ = make_blobs(600, 2, centers=19, cluster_std=0.5, random_state=3)
    local, swapped = (fit(X, X[:19], swaps) for swaps in (0, 5))
    lowest = min(record["objective"] for record in swap_passes(swapped))
    assert swapped.inertia_ <= lowest * (1 + 1e-9) and swapped.inertia_ < 0.97 * local.inertia_
    X = np.random.default_rng(0).standard_normal((1000, 3))
    batches = PowerKMeans(100, n_init=1, random_state=0).fit(X)
    ends = [record["objective"] for record in swap_passes(batches) if record["distinct"] == 100]
    assert batches.inertia_ <= min(ends) * (1 + 1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("cls, parameters, most", [
    (PowerKMeans, {}, 1.05), (PowerKMeans, {"sample": None}, 1.1),
    # of one start: KMeans(n_init=1) has up to 1.28
    (PowerKMeans, {"annealing": "paper"}, 1.28),
    (PowerKMeans, {"annealing": Annealing(end=-4.0)}, 1.28), (FuzzyCMeans, {}, 1.05),
    (FuzzyCMeans, {"sample": None}, 1.05),
], ids=lambda each: getattr(each, "__name__", str(each)))  # fmt: skip
def test_far_rows_that_a_sample_lacks_have_centroids(cls, parameters, most, seed, weighted):
    """Three rows make nearly all of the cost of any ten centroids that are not at them; samples of
    20 000 rows lack some of them. Ten blobs share the other seven centroids."""
    X = far_rows()
    weight = np.random.default_rng(0).integers(1, 4, len(X)) if weighted else np.ones(len(X))
    model = cls(10, random_state=seed, **parameters).fit(X, sample_weight=weight)
    check_far(model.labels_)
    known = cls(7, random_state=seed, **parameters).fit(X[3:], sample_weight=weight[3:])
    assert model.inertia_ <= most * known.inertia_


def test_a_search_for_far_rows_that_does_not_help_changes_nothing(tuning):
    X = far_rows()[3:]
    tuning(swaps__lacked=np.inf)
    without = PowerKMeans(10, random_state=0).fit(X)
    tuning(swaps__lacked=0)
    model = PowerKMeans(10, random_state=0).fit(X)
    assert any(record["stage"] == "swap" for record in model.history_[len(without.history_) :])
    assert_array_equal(model.cluster_centers_, without.cluster_centers_)
    assert_array_equal(model.labels_, without.labels_)
    assert model.inertia_ == without.inertia_


@pytest.mark.parametrize("sample", ["auto", None])
def test_far_rows_of_a_source_and_of_views_have_centroids(sample):
    X = far_rows()
    source = PowerKMeans(10, sample=sample, random_state=0).fit(lambda: iter(np.array_split(X, 5)))
    check_far(source.predict(X))
    check_far(of_views(10, sample=sample).fit([X[:, :3], X[:, 3:]]).labels_)


def test_far_rows_that_the_rows_of_principal_components_lack_have_centroids(tuning):
    """Components of 300 of 2000 rows do not have the columns of most of the six far rows."""
    random, far = np.random.default_rng(0), np.arange(0, 1800, 300)
    X = np.zeros((2000, 200), np.float32)
    X[:, :20] = random.standard_normal((2000, 20))
    X[:, :20] += 5 * random.standard_normal((2, 20)).repeat(1000, 0)
    X[far, 100 + np.arange(6)] = 600
    tuning(components__numbers=60_000, components__margin=0.0)
    model = PowerKMeans(8, random_state=0).fit(X)
    assert len({*model.labels_[far]}) == 6
    assert model.inertia_ < 20 * len(X) * 1.05


def test_far_rows_are_told_by_what_rows_cost_with_the_weights_of_the_views_of_the_fit():
    """With equal weights of the views, a view of noise would cost much more than the far rows."""
    X = far_rows(59_997, 300, 7)
    noise = 100 * np.random.default_rng(0).standard_normal((60_000, 4))
    views = of_views(10, weight_entropy=0.1, n_init=1).fit([X, noise])
    assert views.kernel_weights_[0] > 0.99
    check_far(views.labels_)


def test_far_rows_in_single_precision_and_copies_cost_nothing_else():
    """All costs, or all but the costs of far rows, are rounding errors."""
    far = far_rows(far=1e6) + np.eye(30_003)[:, :3].sum(axis=1)[:, None] * 1e6
    assert math.isfinite(PowerKMeans(10, random_state=0).fit(far.astype(np.float32)).inertia_)
    places = np.random.default_rng(0).standard_normal((300, 20))
    copies = np.repeat(places, 100, axis=0).astype(np.float32)
    assert PowerKMeans(300, random_state=0).fit(copies).inertia_ <= 1e-6 * len(copies)


def test_rows_on_their_centroids_end_the_swaps():
    """Fewer rows than a batch has centroids can be new ones."""
    model = fit(np.repeat(np.eye(4), 10, axis=0), np.eye(4), 5)
    assert not swap_passes(model) and model.inertia_ == pytest.approx(0, abs=1e-12)
    X = np.repeat(np.arange(100.0)[:, None] * 10, 4, axis=0)
    X[:2, 0] += [0.5, 0.25]
    model = PowerKMeans(100, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 100
    assert model.inertia_ == pytest.approx(np.var(X[:4]) * 4, abs=1e-6)


@pytest.mark.parametrize("views", [1, 2])
def test_batches_lower_the_objective_until_the_smallest_fail(views):
    """Each batch has passes after centroids are added, and after as many are removed."""
    X, y = make_blobs(4000, 6, centers=120, cluster_std=0.4, random_state=0)
    given, new = (X, PowerKMeans) if views == 1 else ([X[:, :3], X[:, 3:]], of_views)
    local, swapped = (
        new(120, annealing=Annealing(swaps=swaps), n_init=1, random_state=1).fit(given)
        for swaps in (0, 20)
    )
    assert swapped.objective_ < local.objective_ and len(swapped.cluster_centers_) == 120
    found, before = (adjusted_rand_score(y, model.labels_) for model in (swapped, local))
    assert found > max(0.97, before)
    distinct = [record["distinct"] for record in swap_passes(swapped)]
    runs = [number > 120 for number, _ in itertools.groupby(distinct, lambda n: n > 120)]
    assert max(distinct) > 150 and len(runs) >= 8 and 120 in distinct


def run_of(xs, k, weight=None, seed=0):
    """Return rows, and a state whose centroids are some of the rows."""
    random = np.random.RandomState(seed)
    rows = make_rows(xs, [Identity(x.shape[1]) for x in xs], weight, 1)
    theta = shifted_features(rows)[random.choice(len(xs[0]), k, replace=False)].astype(np.float64)
    return FeatureLevel(rows, 1.0, PowerMean(), FitContext(random), k), State(theta, rows.alpha)


def data(seed=0):
    """Return rows, and weights that differ from place to place."""
    X = np.random.default_rng(seed).standard_normal((300, 3))
    return X, np.exp(2 * X[:, 0])


def hard_cost(X, weight, centers):
    return float(weight @ cdist(X, centers, "sqeuclidean").min(axis=1))


@pytest.mark.parametrize("lacks", [False, True])
def test_rows_become_centroids_with_the_features_of_the_nearest_in_views_that_they_lack(lacks):
    xs = [*map(np.copy, np.split(data()[0], [1], axis=1))]
    level, state = run_of(xs, 6, np.ones(300))
    if lacks:
        xs[1][::2] = np.nan
        coverage = np.array([1.0, 0.5])
        level = replace(level, rows=replace(level.rows, coverage=coverage).with_present_views())
    index = np.array([4, 7, 10])
    rows = [x - shift for x, shift in zip(xs, level.rows.shifts)]
    expected = np.hstack(rows)[index]
    nearest = cdist(expected[:, :1], state.theta[:, :1]).argmin(axis=1)  # by the first view alone
    expected = np.where(np.isnan(expected), state.theta[nearest], expected)
    assert_array_equal(module.features_at(level.rows, index, state.theta), expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_swap_removes_the_centroid_whose_loss_is_least(weighted, seed):
    """The swap moves the centroid whose place costs least once the candidate is a centroid."""
    X, weight = data(seed)
    weight = weight if weighted else np.ones(300)
    level, state = run_of([X], 6, weight, seed)
    before = state.theta.copy()
    theta = module._swap(level, *module._nearest(level, state))
    assert_array_equal(state.theta, before)
    [moved] = np.flatnonzero((theta != before).any(axis=1))
    shifted, costs = X - np.average(X, axis=0, weights=weight), []
    for j in range(6):
        tried = before.copy()
        tried[j] = theta[moved]
        costs.append(hard_cost(shifted, weight, tried))
    assert moved == np.argmin(costs)


@pytest.mark.parametrize("typical", [False, True])
def test_of_the_drawn_rows_the_best_becomes_a_centroid(typical):
    """With typicality and the fuzzifier 2, a squared distance d counts as d eta / (d + eta)."""
    (X, weight), eta = data(), 0.5
    weight = np.ones(300) if typical else weight
    level, state = run_of([X], 6, weight)
    rows = replace(level.rows, eta=np.array([eta]), m=2.0) if typical else level.rows
    random = SimpleNamespace(uniform=lambda size: np.linspace(0, 1, 20))
    level = replace(level, rows=rows, context=FitContext(random))
    before, (_, known) = state.theta, module._nearest(level, state)
    theta = module._swap(level, state, known)
    shifted = X - np.average(X, axis=0, weights=weight)
    drawn = shifted[module.draw(known.sums, 20, random)]
    least = [cdist(np.vstack([before, row]), shifted, "sqeuclidean").min(axis=0) for row in drawn]
    costs = [weight @ (d * eta / (d + eta) if typical else d) for d in least]
    assert np.argmin(costs) > 0
    [moved] = np.flatnonzero((theta != before).any(axis=1))
    assert_allclose(theta[moved], drawn[np.argmin(costs)], rtol=1e-6)


def test_of_equal_keys_those_of_the_first_rows_are_kept():
    keys = np.array([0.5, 0.2, 0.9, 0.2, 0.2, 0.1, 0.7, 0.2, np.inf, 0.3])
    for parts in ([(0, 10)], [(0, 4), (4, 10)], [(7, 10), (0, 4), (4, 7)]):
        kept = module.Reservoir(4)
        for begin, end in parts:
            kept.add(begin, keys[begin:end], [keys[begin:end]])
        index, [found], threshold = kept.sample().first(3)
        assert index.tolist() == [1, 3, 5] and found.tolist() == [0.2, 0.2, 0.1]
        assert threshold == 0.2 and kept.sample().first(9)[2] == math.inf
    kept = module.Reservoir(1)
    for begin, end in ((4, 7), (0, 4)):
        kept.add(begin, np.ones(end - begin), [])
    assert kept.sample().first(1)[0].tolist() == [0]


@pytest.mark.parametrize("size", [1000, 10_000])
def test_rows_that_another_process_kept_lie_in_read_only_arrays(size):
    """Which hold no room that no row has taken."""
    keys = module.row_keys(0, 0, 4000, ones(4000))
    kept, buffers = module.Reservoir(size), list[pickle.PickleBuffer]()
    kept.add(0, keys, [keys])
    sent = pickle.dumps(kept, protocol=5, buffer_callback=buffers.append)
    received = pickle.loads(sent, buffers=[bytes(buffer.raw()) for buffer in buffers])
    assert sum(buffer.raw().nbytes for buffer in buffers) <= 3 * 8 * min(4000, 1.2 * size + 1100)
    assert_array_equal(received.sample().indices, kept.sample().indices)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_drawn_by_cost_and_cluster_whatever_the_blocks(weighted):
    """Sums over drawn rows have the expectation of those over all; the farthest is always drawn."""
    X, weight = data()
    X[7] = 50
    level, state = run_of([X], 6, weight if weighted else None)
    rows, drawn, totals = level.rows, [], []
    _, (expected, of_cluster) = module._expected(state, rows, level)
    p = weight if weighted else np.ones(300)
    assert expected == pytest.approx(hard_cost(shifted_features(rows), p, state.theta))
    for seed in range(200):
        visit = partial(module._keyed, state.theta, 1 / expected, of_cluster, seed, 60)
        index, [odds], threshold = visit(rows, None).sample().first(60)
        kept = None
        for part in (slice(0, 101), slice(101, 300)):
            kept = visit(replace(rows.take(part), begin=part.start), kept)
        assert_array_equal(kept.sample().first(60)[0], index)
        drawn.append(7 in index)
        p = -np.expm1(-odds * threshold)
        totals.append(((1 if rows.weight is None else rows.weight[index]) / p).sum())
    assert all(drawn) and len(index) == 60
    _, found = module.one_pass(rows, state.theta, -np.inf, want=("labels", "nearest"))
    share = found["nearest"] / expected + np.asarray(of_cluster)[found["labels"]]
    assert_allclose(odds, (share * (weight if weighted else 1))[index])
    whole = 300 if rows.weight is None else rows.weight.sum()
    assert abs(np.mean(totals) / whole - 1) < 4 * np.std(totals) / whole / math.sqrt(200)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_centroids_are_removed_where_their_rows_have_another_one_near(weighted, count):
    """Two centroids in each of three clusters: one of two is removed, never both, and first where
    the rows weigh least."""
    random = np.random.default_rng(1)
    X = np.repeat([0.0, 100.0, 200.0], 100)[:, None] + random.standard_normal((300, 1))
    weight = np.repeat([1.0, 50.0, 5.0], 100) if weighted else None
    level, state = run_of([X], 2, weight)
    mean = np.average(X, axis=0, weights=weight)
    gaps = [2.0, 1.0, 3.0]  # light rows raise the cost least, else a small gap does
    theta = np.array([[100.0 * i + side * gaps[i] / 2] for i in range(3) for side in (-1, 1)])
    kept = module._without_cheapest(level, state._replace(theta=theta - mean), count).theta + mean
    assert len(kept) == 6 - count
    order = [0, 2, 1] if weighted else [1, 0, 2]
    left = [(abs(kept - at) < 50).sum() for at in (0, 100, 200)]
    assert left == [1 if i in order[:count] else 2 for i in range(3)]


def test_more_centroids_are_removed_than_have_a_neighbour_that_stays():
    level, state = run_of([np.repeat([0.0, 1.0, 100.0, 101.0], 5)[:, None]], 4)
    theta = np.unique(shifted_features(level.rows), axis=0).astype(np.float64)
    state = state._replace(theta=theta)
    left = [len(module._without_cheapest(level, state, count).theta) for count in (1, 2, 3)]
    assert left == [3, 2, 1]


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_become_centroids_in_proportion_to_their_costs(weighted, monkeypatch):
    """And no row that costs nothing. Passes follow before as many are removed, and after."""
    X, weight = data()
    level, state = run_of([X], 40, weight if weighted else None)
    nearest, drawn, followed = np.where(np.arange(300) < 7, np.arange(300.0), 0), [], []

    def choice(*given, **how):
        drawn.append((given, how))
        return np.arange(1, 7)

    def follow(level, state, stage):
        followed.append((len(state.theta), stage.second))
        return state, None

    monkeypatch.setattr(FeatureLevel, "follow", follow)
    level = replace(level, context=FitContext(SimpleNamespace(choice=choice)))
    state = module._exchange(level, state, nearest, 13)
    [((n, count), how)] = drawn
    cost = nearest * (weight if weighted else 1)
    assert (n, count, how["replace"]) == (300, 6, False)
    assert_allclose(how["p"], cost / cost.sum(), rtol=1e-6)
    assert followed == [(46, True), (40, False)] and len(state.theta) == 40


@pytest.mark.parametrize("is_known", [False, True])
def test_centroids_of_empty_clusters_move_to_the_rows_of_the_largest_weighted_costs(is_known):
    """Also where a pass over near centroids knows the distances of the rows."""
    X, weight = np.array([[0.0], [1.0], [3.0], [5.0]]), np.array([2.0, 1.0, 10.0, 1.0])
    level, state = run_of([X], 3, weight)
    theta = np.array([[0.0], [99.0], [99.0]]) - level.rows.shift
    if is_known:
        state = state._replace(assigned=SimpleNamespace(own=X[:, 0] ** 2))
    assert level._relocate(state, theta, np.array([False, True, True])) == 2
    assert_allclose(theta[:, 0] + level.rows.shift, [0, 3, 5])


def test_batches_are_halved_after_a_failure_until_the_smallest_have_failed(monkeypatch):
    (level, state), tried = run_of([data()[0]], 40), []
    costs = iter([8.0, 9.0, 9.0, 9.0, 7.0, 7.0, 7.0 * (1 - 1e-6), 1.0])

    def swap(self, state, *given):
        tried.append(given)
        return state, next(costs)

    monkeypatch.setattr(module.Batches, "cost", lambda self, state: (state, 10.0))
    monkeypatch.setattr(module.Batches, "swap", swap)
    module._improve_in_batches(level, state, 15)
    assert tried == [*zip([13, 13, 6, 3, 2, 2, 2], [10.0, 8.0, 8.0, 8.0, 8.0, 7.0, 7.0])]


def test_a_level_is_compared_with_the_level_before_it(monkeypatch, tuning):
    """Also after a search on components of the first sample, whose rows have all features."""
    tuning(sampling__rows=200, sampling__rows_a_cluster=1, sampling__growth=2)
    tuning(components__margin=0.0)
    X = make_blobs(2000, 80, centers=4, cluster_std=4.0, random_state=0)[0]
    X *= np.geomspace(1, 1e-3, 80)
    known, expected = [], module._expected

    def noted(state, rows, level):
        known.append((rows.n, len(rows.shift), level.rows.n))
        return expected(state, rows, level)

    monkeypatch.setattr(module, "_expected", noted)
    PowerKMeans(4, random_state=0).fit(X)
    assert len(known) > 1 and {width for _, width, _ in known} == {80}
    assert known[0][0] == 200
    assert [n for n, _, _ in known[1:]] == [n for _, _, n in known[:-1]]


def test_heavy_tails_beyond_the_sample_do_not_make_the_objective_depend_on_the_seed():
    """Samples of 2000 of 6000 Zipf counts have none to all of the largest counts. Without swaps on
    drawn rows the largest objective is 1.2 times the least, or more."""
    X = np.random.default_rng(2).zipf(3.0, 6000).clip(max=212).astype(float)[:, None]
    costs = [PowerKMeans(6, sample=2000, random_state=seed).fit(X).inertia_ for seed in range(6)]
    assert max(costs) <= 1.02 * min(costs)

"""Passes in which rows are compared with the centroids near their own alone."""

import copy
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from contracts.core import Identity, Unit
from contracts.hard_pass import Need, add, remove, step
from contracts.level import FeatureLevel
from contracts.passes import column_rows, make_rows, one_pass
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from passes import assert_digits, tight_groups
from sklearn.base import clone
from sklearn.preprocessing import normalize

from rffpk import Annealing, PowerKMeans, _core, _reference


def given(n, d, k, c, weighted, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = (random.standard_normal((n, d)) + 5).astype(dtype)
    labels = random.integers(k - 1, size=n)  # the last cluster is empty
    order = np.argsort(labels, kind="stable").astype(np.int32)
    ends = np.searchsorted(labels[order], np.arange(k + 1)).astype(np.int64)
    near = np.array([random.choice(k, c, replace=False) for _ in range(k)], dtype=np.int32)
    weight = random.random(n).astype(dtype) if weighted else None
    theta = random.standard_normal((k, d)).astype(dtype)
    return x, x.mean(axis=0), weight, theta, near, order, ends


def pass_over_all(x, shift, theta, dtype):
    """Return the results of a pass in which every row is compared with all 30 centroids."""
    _, _, weight, _, _, order, ends = given(300, x.shape[1], 30, 30, False, dtype)
    near = np.tile(np.arange(30, dtype=np.int32), (30, 1))
    return _core.near_pass(x, False, shift, weight, theta, near, order, ends, 1)[:3]


@pytest.mark.parametrize(("n", "d", "k", "c", "weighted"), [
    (1000, 37, 20, 5, False), (501, 16, 7, 7, True), (99, 1, 5, 1, True), (300, 130, 50, 16, False),
])  # fmt: skip
@pytest.mark.parametrize("unit", [False, True])
def test_passes_are_those_of_the_twin(isa, dtype, n, d, k, c, weighted, unit):
    x, *others = given(n, d, k, c, weighted, dtype)
    if unit:
        x[0], x[1], x[2] = 0, 1e30 * x[1], 1e-30 * x[2]
    ours, by_three = (_core.near_pass(x, unit, *others, threads) for threads in (1, 3))
    twin = _reference.near_pass(x, unit, *others)
    for one, other, expected in zip(ours, by_three, twin):
        assert_array_equal(one, other)
        scale = 10 * d if one.dtype == dtype else d
        assert_allclose(one, expected, atol=scale * 20 * np.finfo(dtype).eps)


def test_the_first_of_equals_is_the_nearest(isa, dtype):
    x, shift, _, theta, *_ = given(300, 8, 30, 30, False, dtype)
    theta = np.repeat(theta[:10], 3, axis=0)[np.random.default_rng(0).permutation(30)]
    labels, nearest, second = pass_over_all(x, shift, theta, dtype)
    apart = (((x - shift)[:, None] - theta) ** 2).sum(axis=2).argmin(axis=1)
    first = [int(np.flatnonzero((theta == theta[j]).all(axis=1))[0]) for j in apart]
    assert_array_equal(labels, first)
    assert_array_equal(nearest, second)


def test_distances_of_tight_groups_have_digits(isa, dtype):
    x, theta = tight_groups(300, 20, 30, dtype)
    exact = ((x[:, None].astype(float) - theta) ** 2).sum(axis=2)
    assert_digits(exact, *pass_over_all(x, np.zeros(20, dtype), theta, dtype))


def clustered(n=6000, d=48, k=120, seed=1, dtype=np.float32, apart=1.0):
    random = np.random.default_rng(seed)
    centers = apart * random.standard_normal((k, d))
    X = centers[random.integers(k, size=n)] + 0.8 * random.standard_normal((n, d))
    return X.astype(dtype)


def rows_of(rows):
    x = rows.xs[0].astype(np.float64)
    return (normalize(x) if rows.computed else x) - rows.shifts[0]


def rows_and_start(weighted=False, unit=False, k=120, **more):
    """Return rows as a fit makes them, and the first of them as centroids."""
    X = clustered(**more)
    weight = np.linspace(0.5, 2, len(X)).astype(X.dtype) if weighted else None
    each = Unit(X.shape[1]) if unit else Identity(X.shape[1])
    rows = make_rows([X], [each], weight, 1, None if unit else [X.mean(axis=0)])
    return replace(rows, unit_centroids=unit), rows_of(rows)[:k]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_the_objective_falls_and_is_that_of_the_labels(weighted, unit):
    rows, theta = rows_and_start(weighted, unit)
    state, cost = None, math.inf
    for _ in range(7):  # the first of them over all centroids
        sums, state = step(rows, theta, state, Need())
        theta = rows.centroids(sums, theta)
        assert state.cost <= sums.hard * (1 + 1e-6) <= cost * (1 + 2e-6)
        cost = state.cost
    exact = one_pass(rows, theta, -math.inf)[0].hard
    assert 0.9 * cost < exact <= cost * (1 + 1e-6)  # random rows are a poor start
    N, p = np.zeros(theta.shape), np.linspace(0.5, 2, rows.n)[:, None] if weighted else 1
    np.add.at(N, state.labels, p * rows_of(rows))
    assert_allclose(sums.N, N, atol=1e-2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_rows_that_bounds_decide_keep_their_labels(monkeypatch, dtype, weighted, unit):
    """At centroids that move less and less, as they do at the end of a fit, to the last bit."""
    rows, theta = rows_and_start(weighted, unit, dtype=dtype)
    random, visited, plain, bounded = np.random.default_rng(0), [], None, None
    near_pass = _core.near_pass

    def watched(x, *given):
        visited.append(len(x))
        return near_pass(x, *given)

    for turn in range(25):
        sums, plain = step(rows, theta, plain, Need())
        with monkeypatch.context() as patch:
            patch.setattr(_core, "near_pass", watched)
            same, bounded = step(rows, theta, bounded, Need(bounded=True))
        assert_array_equal(plain.labels, bounded.labels)
        assert_allclose(sums.G, same.G, rtol=1e-12)
        assert_allclose(sums.N, same.N, atol=1e-9 * rows.n)
        assert same.hard == pytest.approx(sums.hard, rel=1e-5)
        theta = rows.centroids(sums, theta) + random.normal(size=theta.shape) * 0.1**turn
    assert visited[0] == rows.n and sum(visited[1:]) < 15 * rows.n and visited[-1] < rows.n / 10
    _, bounded = step(rows, theta, bounded, Need(every=True, bounded=True))
    near, bounded = step(rows, theta, bounded, Need(bounded=True))
    every, bounded = step(rows, theta, bounded, Need(every=True, bounded=True))
    assert_array_equal(near.N, every.N)  # the labels are equal


def test_a_pass_leaves_what_it_begins_with_as_it_was():
    """So that a batch of swaps is undone by what was known before. Swaps know no bounds."""
    (rows, theta), found = rows_and_start(), None
    for _ in range(12):
        before, kept = found, copy.deepcopy(found)
        sums, found = step(rows, theta, before, Need())
        theta = rows.centroids(sums, theta)
        assert_equal(before and vars(before), kept and vars(kept))


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("bounds", [False, True])
def test_a_pass_gives_what_is_needed(every, bounds):
    """Whatever is known before: nothing, or a pass of either kind."""
    (rows, theta), before = rows_and_start(), None
    for _ in range(3):
        _, state = step(rows, theta, before, Need(every=every, second=True))
        assert state.own is not None and (state.other is not None) and state.cost is not None
        assert state.every or not every
        if state.every:
            outputs = one_pass(rows, theta, -math.inf, want=("labels", "nearest", "second"))[1]
            assert_array_equal(state.labels, outputs["labels"])
            assert_allclose(state.other, outputs["second"], rtol=1e-4)
        _, before = step(rows, theta, state, Need(bounded=bounds))


def test_centroids_that_are_added_and_removed():
    X, k = clustered(), 120
    rows = column_rows(X, None, 1, X.mean(axis=0))
    theta = X[: k + 10] - X.mean(axis=0).astype(np.float64)
    before, state = step(rows, theta[:k], None, Need())
    sums, state = step(rows, theta, add(state, 10), Need())
    assert sums.hard < before.hard
    assert_array_equal(state.labels[: len(theta)], np.arange(len(theta)))
    sums, state = step(rows, theta, state, Need(every=True))
    outputs = one_pass(rows, theta, -math.inf, want=("labels", "nearest"))[1]
    assert_array_equal(state.labels, outputs["labels"])
    assert_array_equal(sums.G, np.bincount(outputs["labels"], minlength=len(theta)))
    removed = np.arange(k + 10) % 13 == 0
    state = remove(rows, theta, state, removed)
    outputs = one_pass(rows, theta[~removed], -math.inf, want=("labels", "nearest"))[1]
    assert_array_equal(state.labels, outputs["labels"])


def test_new_centroids_are_seen_until_as_many_are_removed():
    """The 8 of them that are nearest to each centroid, itself among them."""
    k, count = 120, 40
    rows, theta = rows_and_start(k=k + count)
    _, state = step(rows, theta[:k], None, Need())
    state = add(state, count)
    for _ in range(3):
        sums, state = step(rows, theta, state, Need())
        assert ((state.near >= k).sum(axis=1) == 8).all()
        assert (state.near == np.arange(k + count)[:, None]).any(axis=1).all()
        theta = rows.centroids(sums, theta)
    removed = np.arange(k + count) >= k
    _, state = step(rows, theta[:k], remove(rows, theta, state, removed), Need())
    assert state.near.shape == (k, 16) and state.near.max() < k


@pytest.mark.parametrize("apart", [0.1, 5.0])
def test_rows_are_compared_with_all_centroids_while_near_ones_miss_the_nearest(apart):
    (rows, theta), need = rows_and_start(apart=apart), Need(missed=True)
    _, state = step(rows, theta, None, Need())
    strange = replace(state, labels=np.roll(state.labels, 1))
    _, all_seen = step(rows, theta, strange, need)
    assert all_seen.every and not all_seen.few  # hardly any label is one of a near centroid
    _, again = step(rows, theta, replace(all_seen, labels=strange.labels), Need())
    assert again.every  # it is not looked at each time
    _, enough = step(rows, theta, all_seen, need)
    assert enough.every and enough.few
    _, near = step(rows, theta, enough, need)
    assert not near.every and near.few
    assert_array_equal(near.labels, state.labels)


@pytest.mark.parametrize("need", [Need(missed=True), Need(every=True, bounded=True)])
def test_passes_over_all_centroids_count_every_row_that_near_ones_miss(need):
    rows, theta = rows_and_start(apart=5.0)
    _, found = step(rows, theta, None, Need())
    unseen = np.arange(rows.n) % 300 == 1  # not in the sample of rows that decides
    strange = replace(found, labels=np.where(unseen, np.roll(found.labels, 1), found.labels))
    _, near = step(rows, theta, strange, need._replace(every=False))
    assert not near.every
    _, all_seen = step(rows, theta, replace(strange, few=need.every), need)
    assert all_seen.every and not all_seen.few
    _, again = step(rows, theta, all_seen, need._replace(every=False))
    assert again.every and again.few  # none is missed any more
    _, near = step(rows, theta, again, need._replace(every=False))
    assert not near.every


@pytest.fixture
def always(tuning):
    tuning(hardpasses__near_work=1, hardpasses__bounds_rows=1)


def test_missed_rows_are_looked_for_in_the_second_pass_of_a_stage(always, monkeypatch):
    """Of starts and of swaps. At the end of a fit passes over all centroids count them."""
    stages, passes = [], FeatureLevel._passes

    def watched(level, state, stage, most, need, noise):
        if not (stages and stages[-1][0] is stage):
            stages.append((stage, []))
        if need is not None:
            stages[-1][1].append(need.missed)
        return passes(level, state, stage, most, need, noise)

    monkeypatch.setattr(FeatureLevel, "_passes", watched)
    PowerKMeans(120, random_state=0).fit(clustered(apart=0.3))
    assert {"hard", "swap"} == {stage.name for stage, missed in stages if any(missed)}
    for stage, missed in stages:
        assert missed == [n == 1 and not stage.exact for n in range(len(missed))]


@pytest.mark.few(1)
@pytest.mark.parametrize("parameters", [{}, {"annealing": Annealing(swaps=0)}, {"sample": 3000}])
def test_a_fit_ends_at_the_nearest_centroids(always, parameters):
    X = clustered()
    model = PowerKMeans(120, random_state=0, n_jobs=1, **parameters).fit(X)
    assert_array_equal(model.predict(X), model.labels_)
    means = np.array([X[model.labels_ == j].mean(axis=0) for j in range(120)])
    near = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert np.mean(near == model.labels_) > 0.99
    again = PowerKMeans(120, random_state=0, n_jobs=3, **parameters).fit(X)
    assert_array_equal(again.cluster_centers_, model.cluster_centers_)


@pytest.mark.few(2)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("apart", [1.0, 0.6, 0.3])
def test_objectives_are_as_low_as_those_of_all_centroids(tuning, always, metric, apart):
    X, new = clustered(apart=apart), partial(PowerKMeans, 120, metric=metric, random_state=0)
    ours = new().fit(X).inertia_
    tuning(hardpasses__near_work=math.inf)
    assert ours <= 1.01 * new().fit(X).inertia_


@pytest.mark.parametrize("part", [0.9, 1.05, 1.3, 1.6])
@pytest.mark.parametrize("sample", [None, 2000])
def test_fits_on_both_sides_of_the_least_work(tuning, part, sample):
    """Fit separated clusters, whose centroids hardly move once they are found.

    The least work is between a pass over k centroids and a pass over the centroids that swaps add.
    """
    X, k = clustered(3000, 10, 100, apart=50), 100
    tuning(hardpasses__near_work=int(part * k * X.size))
    model = PowerKMeans(k, sample=sample, random_state=0).fit(X)
    assert_array_equal(model.predict(X), model.labels_)


def test_rows_that_are_all_equal_but_few(always):
    model = PowerKMeans(150, random_state=0).fit(np.repeat(clustered(200), 20, axis=0))
    assert np.isfinite(model.inertia_) and len(np.unique(model.labels_)) == 150


def test_the_tolerance_decides_where_a_fit_of_many_clusters_ends(always):
    X, annealing = clustered(n=3000, seed=2), Annealing(start=-1e9, swaps=0)
    model = PowerKMeans(120, n_init=1, init="random", annealing=annealing, random_state=0)
    loose, tight = (clone(model).set_params(tol=tol).fit(X) for tol in (0.1, 0))
    assert loose.n_iter_ < tight.n_iter_ < 100
    assert tight.inertia_ < loose.inertia_
    means = np.array([X[tight.labels_ == j].mean(axis=0) for j in range(120)])
    assert_allclose(tight.cluster_centers_, means, atol=1e-4)

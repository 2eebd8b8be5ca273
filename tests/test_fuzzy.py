"""Fuzzy c-means as a function, memberships as initial values, and stored memberships."""

import warnings
from functools import partial

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from rffpk import FuzzyCMeans, PowerKMeans, cmeans, partition_coefficient
from rffpk.compat import skfuzzy
from rffpk.sources import from_array

X = load_iris().data


def alternate(X, u, m, error, maxiter):
    objectives = []
    for _ in range(maxiter):
        before = u
        powers = before**m
        centers = np.array([np.average(X, axis=0, weights=p) for p in powers])
        squares = ((centers[:, None] - X) ** 2).sum(axis=2)
        inverse = squares ** (-1 / (m - 1))
        u = inverse / inverse.sum(axis=0)
        objectives.append((powers * squares).sum())
        if np.linalg.norm(u - before) < error:
            break
    return centers, u, np.sqrt(squares), objectives


@pytest.mark.parametrize("c, m, error, maxiter", [(3, 2.0, 0.005, 1000), (4, 1.5, 1e-6, 40)])
def test_function_follows_the_update_rules(c, m, error, maxiter):
    u0 = np.random.RandomState(1).dirichlet(np.ones(c), len(X)).T
    expected = alternate(X, u0, m, error, maxiter)
    result = cmeans(X, c, m, error, maxiter, 7 * u0)  # columns are scaled
    assert result.p == len(expected[3]) <= maxiter
    for value, by_hand in zip((result.cntr, result.u, result.d, result.jm), expected):
        assert_allclose(value, by_hand, rtol=1e-5, atol=1e-8)
    assert_allclose(result.u0, u0)
    assert result.fpc == pytest.approx(partition_coefficient(expected[1].T), rel=1e-5)
    assert (np.diff(result.jm) <= 1e-9 * result.jm[0]).all()


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_function_warns_of_merged_centers(metric):
    """Random memberships give centers near the mean, which merge there in 16 columns."""
    blobs, y = make_blobs(500, 16, centers=12, center_box=(-100, 100), random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"^c=12: memberships tell \d clusters apart"):
        skfuzzy.cmeans(blobs.T, 12, 2.0, 1e-4, 200, metric, seed=0)
    with warnings.catch_warnings(action="error"):
        skfuzzy.cmeans(blobs.T, 12, 2.0, 1e-4, 200, metric, init=np.eye(12)[y].T)


def test_function_draws_memberships_and_leaves_its_arguments():
    first, second = (cmeans(X, 3, random_state=0) for _ in range(2))
    assert_array_equal(first.u, second.u)
    assert not np.array_equal(first.u0, cmeans(X, 3, random_state=1).u0)
    assert_allclose(first.u.sum(axis=0), 1)
    large = cmeans(X, 3, init=np.full((3, 150), 1.7e308) * [[1.0], [0.5], [0.1]])
    assert_allclose(large.u0.sum(axis=0), 1)
    init = np.ones((3, len(X)))
    init[0] = 5
    init.flags.writeable = False
    assert cmeans(X, 3, init=init, maxiter=1).p == 1
    for jobs in (1, 2):
        assert_array_equal(cmeans(X, 3, random_state=0, n_jobs=jobs).u, first.u)


@pytest.mark.parametrize("name, value, message", [
    *((name, value, f"{name}={value}") for name, value in (
        ("c", 0), ("c", 151), ("m", 1.0), ("error", -1.0), ("maxiter", 0), ("n_jobs", 0))),
    ("init", np.ones((150, 3)), r"^init.shape=\(150, 3\): must be \(3, 150\)"),
    ("init", -np.ones((3, 150)), "^init: has negative numbers or columns of zeros"),
    ("init", np.zeros((3, 150)), "^init: has negative numbers or columns of zeros"),
    ("init", np.full((3, 150), np.nan), "init: contains NaN"),
    ("X", np.full((4, 2), np.inf), "X: contains infinity"),
    ("X", X * 1e-170, "underflow"), ("X", X * 1e170, "overflow"),
])  # fmt: skip
def test_bad_arguments_are_named(name, value, message):
    with pytest.raises(ValueError, match=message):
        cmeans(**{"X": X, "c": 3} | {name: value})


def test_memberships_as_initial_values_of_the_estimator(dtype):
    u0 = np.random.RandomState(1).dirichlet(np.ones(3), len(X))
    result = cmeans(X, 3, 2.0, 1e-12, 1000, u0.T)
    model = FuzzyCMeans(3, init=u0, tol=1e-9, store_memberships=True).fit(X.astype(dtype))
    tolerance = 1e-6 if dtype == np.float64 else 1e-3
    assert_allclose(model.cluster_centers_, result.cntr, rtol=tolerance)
    assert_allclose(model.memberships_, result.u.T, atol=tolerance)
    assert_array_equal(model.memberships_, model.predict_proba(X.astype(dtype)))
    centers = (u0**2).T @ X / (u0**2).sum(axis=0)[:, None]  # where the first pass begins
    first = oracles.fcm_objective(X, centers, 2.0)
    assert model.history_[0]["objective"] == pytest.approx(first, rel=1e-4)


def test_weights_count_in_the_centroids_of_given_memberships():
    random = np.random.RandomState(0)
    u0, weight = random.dirichlet(np.ones(2), 30), random.randint(1, 4, 30)
    rows = random.randn(30, 2)
    weighted = FuzzyCMeans(2, init=u0).fit(rows, sample_weight=weight)
    repeated = FuzzyCMeans(2, init=u0.repeat(weight, axis=0)).fit(rows.repeat(weight, axis=0))
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9)
    assert weighted.n_iter_ == repeated.n_iter_


def test_initial_values_that_are_neither_centroids_nor_memberships_are_refused():
    for init, message in (
        (np.full((150, 3), 0.5), "init must be >= 0 with rows that sum to one"),
        (np.ones((3, 5)), r"^init.shape=\(3, 5\)"),
        (np.full((150, 3), np.nan), "init: contains NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            FuzzyCMeans(3, init=init).fit(X)


def test_a_square_array_is_taken_as_centroids():
    rows, _ = make_blobs(3, 3, random_state=0)
    model = FuzzyCMeans(3, init=np.eye(3), max_iter=1).fit(rows)
    first = oracles.fcm_objective(rows, np.eye(3), 2.0)
    assert model.history_[0]["objective"] == pytest.approx(first)


UNEVEN = {"n_samples": [2000, 100, 300], "centers": [[0, 0], [12, 0], [0, 9]], "random_state": 0}
MANY_GROUPS = {"n_samples": 2000, "n_features": 10, "centers": 20, "random_state": 20}


@pytest.mark.parametrize("m", [1.2, 2.0, "auto"])
@pytest.mark.parametrize("groups", [UNEVEN, MANY_GROUPS], ids=["uneven", "many"])
def test_a_search_finds_what_no_start_at_the_fuzzifier_is_below(groups, m):
    rows, y = make_blobs(**groups)
    k = len({*y})
    found = [FuzzyCMeans(k, m=m, random_state=seed).fit(rows) for seed in range(4)]
    assert {adjusted_rand_score(y, model.labels_) for model in found} == {1.0}
    lowest = FuzzyCMeans(k, m=found[0].m_, n_init=20, random_state=0).fit(rows).objective_
    assert_allclose([model.objective_ for model in found], lowest, rtol=1e-4)


def test_starts_at_the_fuzzifier_are_counted():
    model = FuzzyCMeans(3, n_init=2, random_state=0).fit(X)
    starts = [each for each in model.history_ if each["stage"] == "start"]
    assert [each["kind"] for each in starts] == ["given"] * 2
    assert {each["s"] for each in model.history_ if "s" in each} == {-1.0}


@pytest.mark.promise(
    "Memberships and trees",
    'Fuzzy c-means with m="auto" tells clusters in many columns apart; memberships are calibrated.',
)
@pytest.mark.parametrize("d", [2, 10, 50, 200, 768])
def test_the_fuzzifier_follows_from_the_rows(d):
    centers = np.random.default_rng(d).standard_normal((10, d))
    centers *= 5 / pdist(centers).min()
    y = np.arange(2000) % 10
    rows = centers[y] + np.random.default_rng(1).standard_normal((2000, d))
    model = FuzzyCMeans(10, m="auto", random_state=0).fit(rows)
    plain = PowerKMeans(10, random_state=0).fit(rows)
    assert adjusted_rand_score(y, model.labels_) > adjusted_rand_score(y, plain.labels_) - 0.01
    largest = model.predict_proba(rows).max(axis=1)
    right = confusion_matrix(y, model.labels_).max(axis=0).sum() / len(y)
    assert abs(largest.mean() - right) < 0.05
    assert model.m_ == pytest.approx(1 - 1 / model.s_)
    assert model.membership_exponent_ == model.s_


def test_an_automatic_fuzzifier_goes_with_all_that_a_number_does():
    rows = make_blobs(**MANY_GROUPS)[0].astype(np.float32)
    new = partial(FuzzyCMeans, 20, m="auto", random_state=0)
    model = new().fit(rows)
    weighted = new().fit(rows, sample_weight=np.full(len(rows), 3.0))
    assert weighted.m_ == pytest.approx(model.m_)
    assert new(sample=500).fit(rows).m_ == pytest.approx(model.m_, rel=0.05)
    source = new().fit(from_array(rows, block_rows=300))
    assert_array_equal(source.cluster_centers_, model.cluster_centers_)
    given = new(init=model.cluster_centers_).fit(rows)
    assert given.m_ == pytest.approx(model.m_, rel=0.01)
    stream = new(sample=1000)
    for batch in np.array_split(rows, 4):
        stream.partial_fit(batch)
    assert stream.m_ == pytest.approx(model.m_, rel=0.05)
    one = new().set_params(n_clusters=1)
    assert one.fit(rows).m_ > 1
    for metric in ("euclidean", "cosine"):
        one.set_params(metric=metric).fit(np.full((20, 3), 3, np.float32))
        assert 1 < one.m_ < np.inf


@pytest.mark.parametrize("m, hint", [(1.6, " m='auto' finds one.$"), (2.0, "m_c = .*auto' finds")])
def test_warnings_name_the_automatic_fuzzifier(m, hint):
    with pytest.warns(ConvergenceWarning, match=hint):
        FuzzyCMeans(10, m=m, n_init=1, random_state=0).fit(load_digits().data[:500])


def test_the_function_takes_an_automatic_fuzzifier():
    rows, y = make_blobs(**MANY_GROUPS)
    m = FuzzyCMeans(20, m="auto", random_state=0).fit(rows).m_
    found, near = (cmeans(rows, 20, each, random_state=0) for each in ("auto", m))
    assert_allclose(found.jm, near.jm, rtol=0.01)
    with pytest.raises((TypeError, ValueError), match="m='low'"):
        cmeans(rows, 20, "low")


def test_equal_initial_centroids_are_named():
    """They stay equal for every m, so that another m does not help."""
    X, _ = make_blobs(60, 2, centers=[[0, 0], [40, 80], [60, 30]], random_state=0)
    init = np.tile([[20.0, 50.0]], (3, 1))
    with pytest.warns(ConvergenceWarning, match="init has 1 distinct rows.*that differ.$"):
        FuzzyCMeans(3, m=1.1, init=init, random_state=0).fit(X)

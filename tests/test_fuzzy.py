"""Fuzzy c-means as a function, memberships as initial values, and stored memberships."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs

from rffpk import FuzzyCMeans, cmeans, partition_coefficient

X = load_iris().data


def alternate(X, u, m, error, maxiter):
    """Fuzzy c-means as its update rules say, with memberships (c, n)."""
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


def test_function_draws_memberships_and_leaves_its_arguments():
    first, second = (cmeans(X, 3, random_state=0) for _ in range(2))
    assert_array_equal(first.u, second.u)
    assert not np.array_equal(first.u0, cmeans(X, 3, random_state=1).u0)
    assert_allclose(first.u.sum(axis=0), 1)
    init = np.ones((3, len(X)))
    init[0] = 5
    given = init.copy()
    assert cmeans(X, 3, init=init, maxiter=1).p == 1
    assert_array_equal(init, given)
    for jobs in (1, 2):
        assert_array_equal(cmeans(X, 3, random_state=0, n_jobs=jobs).u, first.u)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"c": 0}, "c == 0"),
        ({"c": 151}, "c == 151"),
        ({"m": 1.0}, "m == 1.0"),
        ({"error": -1.0}, "error == -1.0"),
        ({"maxiter": 0}, "maxiter == 0"),
        ({"n_jobs": 0}, "n_jobs == 0"),
        ({"init": np.ones((150, 3))}, r"init has shape \(150, 3\), must be \(3, 150\)"),
        ({"init": -np.ones((3, 150))}, "init must be >= 0"),
        ({"init": np.zeros((3, 150))}, "init must be >= 0"),
        ({"init": np.full((3, 150), np.nan)}, "init contains NaN"),
        ({"X": np.full((4, 2), np.inf)}, "X contains infinity"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        cmeans(**{"X": X, "c": 3} | arguments)


def test_memberships_as_initial_values_of_the_estimator(dtype):
    u0 = np.random.RandomState(1).dirichlet(np.ones(3), len(X))
    result = cmeans(X, 3, 2.0, 1e-12, 1000, u0.T)
    model = FuzzyCMeans(3, init=u0, tol=1e-9, store_memberships=True).fit(X.astype(dtype))
    tolerance = 1e-6 if dtype == np.float64 else 1e-3
    assert_allclose(model.cluster_centers_, result.cntr, rtol=tolerance)
    assert_allclose(model.memberships_, result.u.T, atol=tolerance)
    assert_array_equal(model.memberships_, model.predict_proba(X.astype(dtype)))
    first = model.history_[0]["objective"]
    assert first == pytest.approx(_objective(u0), rel=1e-4)


def _objective(u):
    """J_m at the centroids of memberships, with the best memberships for these."""
    centers = (u**2).T @ X / (u**2).sum(axis=0)[:, None]
    squares = ((X[:, None] - centers) ** 2).sum(axis=2)
    return (1 / (1 / squares).sum(axis=1)).sum()


def test_weights_count_in_the_centroids_of_given_memberships():
    random = np.random.RandomState(0)
    u0, weight = random.dirichlet(np.ones(2), 30), random.randint(1, 4, 30)
    rows = random.randn(30, 2)
    weighted = FuzzyCMeans(2, init=u0).fit(rows, sample_weight=weight)
    repeated = FuzzyCMeans(2, init=u0.repeat(weight, axis=0)).fit(rows.repeat(weight, axis=0))
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9)
    assert weighted.n_iter_ == repeated.n_iter_


def test_initial_values_that_are_neither_centroids_nor_memberships_are_refused():
    for init, message in [
        (np.full((150, 3), 0.5), "init must be >= 0 with rows that sum to one"),
        (np.ones((3, 5)), "init has shape"),
        (np.full((150, 3), np.nan), "init contains NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            FuzzyCMeans(3, init=init).fit(X)
    with pytest.raises(TypeError, match="store_memberships"):
        FuzzyCMeans(3, store_memberships=1).fit(X)
    assert not hasattr(FuzzyCMeans(3).fit(X), "memberships_")


def test_a_square_array_is_taken_as_centroids():
    rows, _ = make_blobs(3, 3, random_state=0)
    model = FuzzyCMeans(3, init=np.eye(3), max_iter=1).fit(rows)
    squares = ((rows[:, None] - np.eye(3)) ** 2).sum(axis=2)
    expected = (1 / (1 / squares).sum(axis=1)).sum()
    assert model.history_[0]["objective"] == pytest.approx(expected)


def test_one_start_is_the_default():
    models = [FuzzyCMeans(3, n_init=n, random_state=0).fit(X) for n in ("auto", 1)]
    assert_array_equal(models[0].cluster_centers_, models[1].cluster_centers_)
    with pytest.raises(ValueError, match="n_init == 0"):
        FuzzyCMeans(3, n_init=0).fit(X)


def test_memberships_of_an_earlier_fit_are_forgotten():
    model = FuzzyCMeans(3, store_memberships=True, random_state=0).fit(X)
    assert not hasattr(model.set_params(store_memberships=False).fit(X), "memberships_")


def test_scales_at_which_squares_underflow_are_refused():
    with pytest.raises(ValueError, match="underflow"):
        cmeans(X * 1e-170, 3)
    with pytest.raises(ValueError, match="overflow"):
        cmeans(X * 1e170, 3)
    large = cmeans(X, 3, init=np.full((3, 150), 1.7e308) * [[1.0], [0.5], [0.1]])
    assert_allclose(large.u0.sum(axis=0), 1)


def test_starts_on_a_sample_end_on_all_rows():
    rows = make_blobs(4000, 4, centers=5, random_state=3)[0]
    whole = FuzzyCMeans(5, m=1.5, random_state=0).fit(rows)
    model = FuzzyCMeans(5, m=1.5, sample=200, random_state=0).fit(rows)
    assert (whole.sample_size_, model.sample_size_) == (4000, 200)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    passes = [record for record in model.history_ if "objective" in record and "kind" not in record]
    assert {record["rows"] for record in passes} >= {200, 4000} and model.s_ == -2
    visited = sum(record["rows"] for record in passes)
    assert visited < 4000 * whole.n_iter_
    same = FuzzyCMeans(5, m=1.5, sample=4000, random_state=0).fit(rows)
    assert_array_equal(same.cluster_centers_, whole.cluster_centers_)
    with pytest.raises(ValueError, match="sample == 0"):
        FuzzyCMeans(5, sample=0).fit(rows)

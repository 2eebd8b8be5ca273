"""Bounds of distances: the same labels and sums as passes over all rows."""

import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from contracts.core import Fourier, Identity, sparse_rows
from contracts.hard_pass import Need, hard_plan, step
from contracts.passes import column_rows, make_rows, one_pass, shifted_features
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rffpk import Annealing, PowerKMeans, RFFKernelPowerKMeans, RFFMultiKernelPowerKMeans


class Passes:
    """Passes with bounds over the same rows, and how many rows they have visited."""

    def __init__(self, rows):
        self.rows, self.known, self.last, self.visited = rows, None, 0, 0

    def sums(self, theta):
        sums, self.known = step(self.rows, theta, self.known, Need(settles=True))
        self.last = self.known.bounds.visited
        self.visited += self.last
        return sums

    def checked(self, theta):
        """Check the labels by a pass over all rows; return the sums of both passes."""
        sums = self.sums(theta)
        whole, outputs = one_pass(self.rows, theta, -np.inf, want=("labels",))
        assert_array_equal(self.known.labels, outputs["labels"])
        return sums, whole


def mixture(n, k, d, dtype, seed, spread=1.0):
    random = np.random.default_rng(seed)
    centers = spread * random.standard_normal((k, d))
    X = centers[random.integers(k, size=n)] + 0.5 * random.standard_normal((n, d))
    return X.astype(dtype), random


def assert_same_passes(rows, theta, passes):
    """Check that bounds leave the labels of Lloyd's iteration, and its sums up to rounding."""
    bounded = Passes(rows)
    for _ in range(passes):
        sums, whole = bounded.checked(theta)
        tolerance = 100 * float(np.finfo(rows.dtype).eps)
        for name in ("N", "G", "hard"):
            expected = np.asarray(getattr(whole, name))
            unit = np.abs(expected).max()
            unit = max(unit, np.abs(whole.Q).max()) if name == "hard" else unit
            assert_allclose(getattr(sums, name), expected, rtol=0, atol=tolerance * unit)
        assert_allclose(sums.Q.sum(axis=0), whole.Q.sum(axis=0), rtol=tolerance)
        theta = rows.centroids(sums, theta)
    return bounded


@pytest.mark.few(1)
@given(
    st.integers(2, 400), st.integers(2, 40), st.integers(1, 12), st.booleans(),
    st.sampled_from([0.0, 0.1, 1.0, 100.0]), st.integers(0, 2**31),
)  # fmt: skip
def test_labels_are_those_of_passes_over_all_rows(backend, n, k, d, weighted, spread, seed):
    for dtype in (np.float32, np.float64):
        X, random = mixture(n, k, d, dtype, seed, spread)
        X[random.integers(n, size=n // 3)] = X[0]  # ties
        weight = random.uniform(0, 2, n) + 1e-3 if weighted else None
        rows = column_rows(X, weight, 2)
        theta = shifted_features(rows.take(random.integers(n, size=k))).astype(np.float64)
        assert_same_passes(rows, theta, 8)


def test_bounds_allow_for_the_rounding_of_distances(backend, dtype, tuning):
    """The rows are nearly as far from both centroids, by differences that rounding may reverse
    where both move on."""
    tuning(hardpasses__most_active=1.0)
    before, unit = np.array([[40.0], [41.0]]), 2000 * np.finfo(dtype).eps
    theta = before * (1 + 2.0**-12)
    X = theta.mean() + unit * np.random.default_rng(0).uniform(-1, 1, (4000, 1))
    X = np.vstack([X, np.repeat(before, 4000, axis=0)])  # so that no cluster shrinks to its half
    rows = column_rows(X.astype(dtype), None, 1, np.zeros(1, dtype))
    passes = Passes(rows)
    for at in (before, theta):
        passes.checked(at)
    assert passes.last < rows.n


@pytest.mark.parametrize("n_threads", [1, 3])
def test_maps_and_views(dtype, n_threads):
    """Random features beside columns, with unequal weights of the views."""
    X, random = mixture(5000, 12, 6, dtype, 0)
    omega = random.standard_normal((6, 40)).astype(dtype)
    rows = make_rows([X, X[:, :4].copy()], [Fourier(omega), Identity(4)], None, n_threads)
    rows = replace(rows, alpha=np.array([0.8, 0.2]))
    theta = shifted_features(rows.take(np.arange(12))).astype(np.float64)
    bounded = assert_same_passes(rows, theta, 30)
    assert bounded.visited < 0.6 * 30 * rows.n


@pytest.mark.promise(
    "Memory",
    "Passes that skip rows keep 13 bytes for each row (21 in float64), and copy at most 4 MB "
    "of the other rows at a time.",
)
def test_memory_is_that_of_the_bounds_and_of_small_copies(dtype):
    """At most eight bytes more for a row where it is active, and four megabytes."""
    X, random = mixture(300_000, 10, 50, dtype, 3, 0.15)
    rows = column_rows(X, None, 1)
    theta = shifted_features(rows.take(np.arange(10))).astype(np.float64)
    bounded = Passes(rows)
    tracemalloc.start()
    for _ in range(12):
        theta = rows.centroids(bounded.sums(theta), theta)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert bounded.visited < 11.5 * rows.n
    bytes_of_bounds = (13 if dtype == np.float32 else 21) * rows.n
    assert kept <= bytes_of_bounds
    assert peak <= bytes_of_bounds + 8 * rows.n + 4.2e6


@pytest.mark.parametrize("estimator", [PowerKMeans, RFFKernelPowerKMeans])
def test_a_fit_is_the_same_with_bounds(tuning, estimator):
    X, _ = mixture(6000, 10, 8, np.float64, 2)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = estimator(10, sample=1000, tol=0, max_iter=60, random_state=0)
    models = []
    for rows in (10**9, 1):
        tuning(hardpasses__bounds_rows=rows, hardpasses__bounds_cost=0.0)
        models.append(clone(model).fit(X, sample_weight=weight))
    plain, bounded = models
    assert_array_equal(bounded.labels_, plain.labels_)
    assert_allclose(bounded.cluster_centers_, plain.cluster_centers_, rtol=0, atol=1e-10)
    costs = [[r["objective"] for r in m.history_ if r["stage"] == "hard"] for m in models]
    # starts on random features run in single precision
    assert_allclose(*costs, rtol=1e-6 if estimator is RFFKernelPowerKMeans else 1e-10)


@pytest.mark.few(2)
@pytest.mark.parametrize("k", [8, 100])
@pytest.mark.parametrize("kind", ["typicality", "weights", "missing views"])
def test_bounds_and_near_centroids_are_not_used_where_they_do_not_hold(tuning, kind, k):
    """Merged centroids, which near ones are used for, are of columns alone: none here."""
    X, random = mixture(1500, 12, 8, np.float64, 3)
    views, typicality = [X[:, :4].copy(), X[:, 4:].copy()], "auto" if kind == "typicality" else None
    if kind == "missing views":
        views[0][random.random(1500) < 0.3] = np.nan
    model = RFFMultiKernelPowerKMeans(
        k, kernels="linear", typicality=typicality, random_state=0, max_iter=40, init="random",
        annealing=Annealing(swaps=5), allow_missing_views=kind == "missing views",
    )  # fmt: skip
    models = []
    for least in (10**12, 1):
        tuning(hardpasses__bounds_rows=least, hardpasses__bounds_cost=0.0)
        tuning(hardpasses__near_work=least)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            models.append(clone(model).fit(views))
    assert_array_equal(models[0].cluster_centers_, models[1].cluster_centers_)
    assert_array_equal(models[0].labels_, models[1].labels_)


def test_bounds_and_near_centroids_are_for_many_rows_whose_passes_are_long():
    rows = column_rows(np.random.default_rng(0).standard_normal((10**5, 50)), None, 1)
    assert hard_plan(rows, 99).bounded
    assert not hard_plan(rows, 10).bounded and not hard_plan(rows, 1).bounded
    assert not hard_plan(rows.take(np.arange(1000)), 99).bounded
    rows = column_rows(np.zeros((30_000, 50), np.float32), None, 1)
    assert all(hard_plan(rows, 200)[:2]) and not hard_plan(rows, 99).near
    assert not any(hard_plan(rows, 200, learns_weights := True))
    assert not any(hard_plan(replace(rows, eta=np.ones(1), m=2.0), 200, not learns_weights))
    assert not any(hard_plan(replace(rows, present=np.ones(rows.n, np.uint8)), 200))
    for other in (
        rows.take(np.arange(20_000)),
        replace(rows, xs=[np.broadcast_to(np.float32(0), (2**31, 50))]),  # row numbers are int32
        replace(rows, xs=2 * rows.xs, maps=2 * rows.maps),
        replace(rows, maps=[Fourier(np.eye(50))]),
    ):
        assert not hard_plan(other, 200).near
    most = replace(rows, xs=[np.broadcast_to(np.float32(0), (2**31 - 1, 50))])
    assert hard_plan(most, 200).near


@pytest.mark.parametrize("weights", [None, (0.1, 1.0, 1e-12)])
def test_a_cluster_that_nearly_vanishes_has_the_sums_of_what_is_left(dtype, weights):
    """One row stays where thousands were: its centroid has no trace of them."""
    random = np.random.default_rng(0)
    X = np.vstack([1000 + random.standard_normal((30_000, 8)), random.standard_normal((30_000, 8))])
    X[0], weight = 1020.0, None
    if weights is not None:
        weight = np.r_[weights[2], random.uniform(*weights[:2], len(X) - 1)]
    rows = column_rows(X.astype(dtype), weight, 2)
    passes = Passes(rows)
    for places in ((1001, 0, 3000), (1001, 0, 990), (1020, 0, 1000)):  # takes rows step by step
        far = np.repeat(np.float64(places)[:, None], 8, axis=1) - rows.shift.astype(np.float64)
        sums, full = passes.checked(far)
    found, expected = (rows.centroids(each, far) for each in (sums, full))
    assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert_allclose(sums.G, full.G, rtol=1e-6)


def test_bounds_of_sparse_rows_allow_for_the_row_of_most_entries(tuning):
    """A row of a single entry is there, too, whose products have no rounding errors to add."""
    tuning(hardpasses__most_active=1.0)
    along, before = np.full(1000, 1000**-0.5), np.array([[38.0], [42.0]])
    X = 40 + 0.03 * np.random.default_rng(0).uniform(-1, 1, (1000, 1))
    X = np.vstack([X, np.repeat(before, 1000, axis=0)]) * along
    X = np.vstack([X, 40 * np.eye(1, 1000)]).astype(np.float32)
    rows = column_rows(sparse_rows(csr_array(X)), None, 1, np.zeros(1000, np.float32))
    passes = Passes(rows)
    for at in (before * along, before * (1 + 2.0**-12) * along):
        passes.checked(at)
    assert passes.last < rows.n

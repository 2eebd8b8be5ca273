"""Cosine metric: unit rows, which are made in the pass, and unit centroids."""

from functools import partial

import numpy as np
import oracles
import pytest
from passes import UNIT, make_rows, shifted_features, take_steps
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from rffpk import FuzzyCMeans, PowerKMeans, _core, _reference

K = 6


def directions(n=900, d=20, k=K, seed=0, spread=0.2, dtype=np.float64):
    """Draw rows about k directions, of any length; the first is zero."""
    rng = np.random.default_rng(seed)
    centers = normalize(rng.standard_normal((k, d)))
    rows = centers[rng.integers(k, size=n)] + spread * rng.standard_normal((n, d))
    rows *= np.exp(rng.uniform(-8, 8, (n, 1)))
    rows[0] = 0
    return rows.astype(dtype)


def sphere(theta, rows):
    return normalize(theta + rows.shift) - rows.shift


def cost(X, labels, k=K):
    """Compute the least cost of unit centroids: n - ||sum|| twice a cluster, 1 of a zero row."""
    U = normalize(X)
    sums = np.stack([U[labels == j].sum(axis=0) for j in range(k)])
    kept = U.any(axis=1).sum()
    return 2 * kept - 2 * np.linalg.norm(sums, axis=1).sum() + len(U) - kept


@pytest.mark.parametrize("shape", [(1, 1, 1), (70, 3, 2), (300, 37, 5), (1500, 130, 40)])
def test_unit_rows_of_a_pass_are_those_of_the_twin(shape, dtype):
    n, d, k = shape
    rng = np.random.default_rng(d)
    X = directions(n, d, dtype=dtype)
    shift, theta = rng.standard_normal(d) / 9, normalize(rng.standard_normal((k, d)))
    shift, theta = shift.astype(dtype), (theta - shift).astype(dtype)
    arguments = [X], [None], [shift], theta, np.ones(1), None, _core.POWER, -3.0
    out = {"distances": np.empty((n, k), dtype), "features": np.empty((n, d), dtype)}
    found = _core.fused_pass(*arguments, 1, units=[True], **out)
    expected = _reference.fused_pass(*arguments, units=[True])
    tolerance = 5e-5 if dtype == np.float32 else 2e-13
    assert np.allclose(out["features"] + shift, normalize(X.astype(float)), atol=tolerance)
    assert (out["features"][0] == -shift).all()
    for a, b in zip(found, expected):
        assert np.allclose(a, b, atol=tolerance * max(1, np.abs(b).max()))


def test_rows_whose_squares_overflow_become_unit_rows():
    X = np.array([[3e30, 4e30], [3e-30, 4e-30], [0, 0], [0, -1]], dtype=np.float32)
    features = shifted_features(make_rows([X], [UNIT], shifts=[np.zeros(2, np.float32)]))
    assert np.allclose(features, [[0.6, 0.8], [0.6, 0.8], [0, 0], [0, -1]])


STEPS = {"variance": 1.0, "tol": 0.0, "close": (0.0, 0.0), "least_length": 1e-14}


@pytest.mark.parametrize("s", [-1.0, -np.inf])
def test_steps_lower_the_objective_and_are_those_of_the_twin(s):
    rows, rng = make_rows([directions()], [UNIT]), np.random.default_rng(1)
    theta = sphere(rng.standard_normal((K, 20)), rows)
    run = partial(take_steps, rows, theta, s, most=8, **STEPS)
    moved, twin = run(), run(backend="numpy")
    assert np.allclose(np.linalg.norm(moved.theta + rows.shift, axis=1), 1)
    assert np.allclose(moved.theta, twin.theta, atol=1e-9)
    costs = [step.hard if np.isinf(s) else step.soft for step in moved.steps]
    assert len(costs) > 3 and all(b <= a * (1 + 1e-12) for a, b in zip(costs, costs[1:]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_critical_exponent_is_where_the_merged_state_begins_to_grow():
    X = normalize(np.random.default_rng(0).standard_normal((400, 12)) + 3 * np.eye(12)[0])
    s = oracles.first_exponent(PowerKMeans(K, metric="cosine", random_state=0), X)
    assert s < -0.5
    rows, noise = make_rows([X], [UNIT]), np.random.default_rng(0).standard_normal((K, 12))
    start = sphere(normalize(rows.shift[None]) - rows.shift + 1e-5 * noise, rows)
    for factor, grows in ((1.2, True), (0.8, False)):
        end = take_steps(rows, start, 1 + (s - 1) * factor, most=60, **STEPS).theta
        assert (end.std(axis=0).max() > start.std(axis=0).max()) == grows


@pytest.mark.parametrize("cls", [PowerKMeans, FuzzyCMeans])
def test_a_fit_of_rows_of_any_length_is_that_of_unit_rows(cls):
    X = directions()
    model = cls(K, metric="cosine", random_state=0).fit(X)
    other = cls(K, metric="cosine", random_state=0).fit(normalize(X))
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    assert np.allclose(model.cluster_centers_, other.cluster_centers_, atol=1e-6)
    assert (model.predict(X) == model.labels_).all()
    assert np.isclose(-model.score(X), model.inertia_)
    angles = normalize(X) @ model.cluster_centers_.T
    assert np.allclose(model.transform(X)[1:] ** 2, 2 - 2 * angles[1:])
    if cls is PowerKMeans:
        assert np.isclose(model.inertia_, cost(X, model.labels_))


def test_many_wide_rows_pass_components_and_bounds():
    X = directions(25_000, 80, 12, dtype=np.float32)
    model = PowerKMeans(12, metric="cosine", random_state=0).fit(X)
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, atol=1e-6)
    assert np.isclose(model.inertia_, cost(X.astype(float), model.labels_, 12), rtol=1e-5)
    assert model.history_[0]["rows"] and (model.predict(X) == model.labels_).all()
    given = sparse.csr_array(X[:3000])
    kept = given.data.copy()
    rows = PowerKMeans(12, metric="cosine", sample=1000, random_state=0).fit(given)
    assert (given.data == kept).all() and (rows.predict(X[:3000]) == rows.labels_).all()


def test_batches_move_unit_centroids():
    X = directions(4000)
    model = PowerKMeans(K, metric="cosine", random_state=0, sample=1000)
    for begin in range(0, 4000, 500):
        model.partial_fit(X[begin : begin + 500])
    assert np.allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)
    best = PowerKMeans(K, metric="cosine", random_state=0).fit(X)
    assert -model.score(X) < 1.01 * best.inertia_


def test_given_centroids_and_memberships_are_those_of_unit_rows():
    X = directions()
    labels = PowerKMeans(K, metric="cosine", random_state=0).fit(X).labels_
    once = PowerKMeans(K, metric="cosine", init=5 * normalize(X)[1 : K + 1], random_state=0).fit(X)
    assert np.allclose(np.linalg.norm(once.cluster_centers_, axis=1), 1)
    given = FuzzyCMeans(K, metric="cosine", init=np.eye(K)[labels], m=1.2, random_state=0).fit(X)
    assert adjusted_rand_score(given.predict(X), labels) > 0.95


def test_whitening_does_not_go_with_directions():
    with pytest.raises(ValueError, match="^whitening=0.5: .* other angles"):
        FuzzyCMeans(2, metric="cosine", whitening=0.5).fit(np.eye(3))

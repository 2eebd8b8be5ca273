"""Diffusion features against their definitions, and the clusterer on them as users meet it."""

import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from contracts.graph import (
    NeighbourCount,
    Neighbourhoods,
    Shared,
    graph,
    mutual_neighbours,
    neighbors,
    spectrum,
)
from contracts.passes import ones
from contracts.plan import TUNING
from conventions import weight_and_sparse_failures
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm
from scipy.sparse import csr_array, csr_matrix
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.neighbors import kneighbors_graph
from sklearn.utils.estimator_checks import parametrize_with_checks

from rffpk import DiffusionMap, DiffusionPowerKMeans, RFFMultiKernelPowerKMeans

T = 3.0  # a time at which many functions last
EVERY = {"time": T, "n_components": 12}


@parametrize_with_checks(
    [DiffusionMap(), DiffusionPowerKMeans()],
    expected_failed_checks=lambda each: (
        weight_and_sparse_failures(each) if hasattr(each, "predict") else {}
    ),
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).standard_normal((80, 2))


def groups(sizes, places, seed=0):
    """Draw Gaussian rows about places of the plane."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    noise = np.random.default_rng(seed).standard_normal((len(y), 2))
    return np.asarray(places, dtype=float)[y] + noise, y


SIZES, PLACES = [400, 350, 20], [[0, 0], [20, 0], [0, 20]]
FAR_PAIRS = [[0, 0], [10, 0], [1000, 0], [1010, 0]]


def squared_distances(features):
    return ((features[:, None] - features[None]) ** 2).sum(axis=-1)


def weights_by_definition(X, landmarks, r, bandwidth, mutual=False):
    """Compute z, one row and one landmark at a time."""
    Z = np.zeros((len(X), len(landmarks)))
    for i, x in enumerate(X):
        squares = ((landmarks - x) ** 2).sum(axis=1)
        nearest = np.argsort(squares)[:r]
        for j in nearest:
            others = np.sort(((landmarks - landmarks[j]) ** 2).sum(axis=1))
            near = squares[j] <= others[r - 1] * (1 + 1e-12)
            if near or not mutual or j == nearest[0]:
                Z[i, j] = np.exp(-squares[j] / (2 * bandwidth))
    return Z / Z.sum(axis=1, keepdims=True)


def walk_over_landmarks(model, X, p):
    """Compute the doubly stochastic kernel B B' between rows by definition."""
    mutual = len(model.landmarks_) == len(X)
    Z = weights_by_definition(X, model.landmarks_, model.n_neighbors_, model.bandwidth_, mutual)
    B = np.sqrt(p)[:, None] * Z / np.sqrt(Z.T @ p)
    return B @ B.T


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_landmarks, r", [(30, 8), ("auto", 11), (80, 11)])
def test_features_and_their_walk_follow_the_definition(rows, n_landmarks, r, weighted):
    """The walk is doubly stochastic, and squared distances of features are diffusion distances.

    On the slowest functions, the objective is a normalized cut of the diffused graph:
    sum_i p_i ||phi_i - theta_j||^2 = tr - k + Ncut.
    """
    p = np.random.default_rng(1).uniform(0.5, 2, 80) if weighted else np.ones(80)
    p /= p.sum()
    model = DiffusionMap(n_landmarks=n_landmarks, random_state=0, **EVERY)
    features = model.fit(rows, sample_weight=p).transform(rows)
    assert model.n_neighbors_ == r  # round(2.5 log(80)) where all rows are landmarks
    S, root = walk_over_landmarks(model, rows, p), np.sqrt(p)
    transition = S * root / root[:, None]
    assert_allclose(transition.sum(axis=1), 1)
    assert_allclose(p @ transition, p)  # the weights are stationary
    values, vectors = np.linalg.eigh(S)
    values, vectors = values[::-1], vectors[:, ::-1]
    assert_allclose(model.eigenvalues_[:17], values[1:18], atol=1e-9)
    assert_allclose(p @ features, 0, atol=1e-9)
    values, vectors = values[: features.shape[1] + 1], vectors[:, : features.shape[1] + 1]
    heat = vectors @ vectors.T @ expm(-T / 2 * (np.eye(80) - S))
    distances = squared_distances(heat / root[:, None])  # of walks at time t / 2
    assert_allclose(squared_distances(features), distances, rtol=1e-7, atol=1e-9)
    heat = (vectors * np.exp(-T * (1 - values))) @ vectors.T
    A = np.outer(root, root) * heat  # the diffused graph; its degrees are p
    assert_allclose(A.sum(axis=1), p)
    labels = np.random.default_rng(2).integers(0, 3, 80)
    objective, cut = 0.0, 0.0
    for j in range(3):
        inside = labels == j
        theta = np.average(features[inside], axis=0, weights=p[inside])
        objective += p[inside] @ ((features[inside] - theta) ** 2).sum(axis=1)
        cut += A[np.ix_(inside, ~inside)].sum() / p[inside].sum()
    assert_allclose(objective, np.trace(heat) - 3 + cut)


@pytest.mark.parametrize("n_landmarks", [30, "auto"])
def test_rows_that_were_fitted_have_the_features_of_the_fit(rows, n_landmarks, dtype):
    """To the bit; features of rows beside them are nearly equal."""
    X = rows.astype(dtype)
    model = DiffusionMap(n_landmarks=n_landmarks, random_state=0, **EVERY)
    features = model.fit_transform(X)
    assert features.dtype == dtype and features.shape == (80, model.n_components_)
    assert_array_equal(model.transform(X), features)
    assert_allclose(model.transform(X[7:9]), features[7:9], rtol=1e-5, atol=1e-6)
    if n_landmarks == "auto":
        assert_array_equal(model.transform(X[::-1]), features[::-1])
        beside = model.transform(X * (1 + 1e-6))
        assert_allclose(np.median(np.abs(beside - features)), 0, atol=1e-4)


def test_order_of_rows_does_not_matter_and_weights_are_repetitions(rows):
    random, model = np.random.default_rng(4), DiffusionMap(**EVERY)
    counts, order = random.integers(0, 4, 80), random.permutation(80)
    plain = squared_distances(clone(model).fit_transform(rows))
    other = squared_distances(clone(model).fit_transform(rows[order]))
    assert_allclose(other, plain[np.ix_(order, order)], atol=1e-8)
    weighted = clone(model).fit(rows, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(rows, counts, axis=0))
    assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, atol=1e-9)
    found, expected = (squared_distances(each.transform(rows)) for each in (weighted, repeated))
    assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", ["auto", 300])
@pytest.mark.parametrize(
    "draw", [make_moons, partial(make_circles, factor=0.3), partial(make_circles, factor=0.5)]
)
def test_clusters_of_any_shape(draw, n_landmarks, dtype):
    X, y = draw(1500, noise=0.05, random_state=0)
    model = DiffusionPowerKMeans(2, n_landmarks=n_landmarks, random_state=0).fit(X.astype(dtype))
    assert adjusted_rand_score(y, model.labels_) >= 0.99
    assert model.cluster_centers_.dtype == dtype
    assert adjusted_rand_score(y, model.predict(X.astype(dtype))) >= 0.99


def test_digits(digits):
    X, y = digits
    model = DiffusionPowerKMeans(10, random_state=0).fit(X)
    assert normalized_mutual_info_score(y, model.labels_) >= 0.84
    assert_array_equal(model.predict(X), model.labels_)
    memberships = model.predict_proba(X)
    assert_allclose(memberships.sum(axis=1), 1)
    assert model.feature_map_.n_components_ == model.cluster_centers_.shape[1] <= 30
    thawed = pickle.loads(pickle.dumps(model))
    assert_array_equal(thawed.transform(X), model.transform(X))


@pytest.mark.parametrize("kind", ["landmarks", "sampled sums", "graph"])
def test_same_bits_for_any_number_of_jobs(kind, digits, dtype, tuning):
    moons = make_moons(3000, noise=0.06, random_state=0)[0]
    X, k, options = {
        "landmarks": (digits[0], 10, {"n_landmarks": 200}),
        "sampled sums": (moons, 2, {"n_landmarks": 20}),
        "graph": (moons, 2, {}),
    }[kind]
    if kind == "sampled sums":
        tuning(landmarks__summed_rows=10, landmarks__summed_at_once=2)  # five blocks
    model = DiffusionPowerKMeans(k, random_state=0, **options)
    first, *others = (clone(model).set_params(n_jobs=n).fit(X.astype(dtype)) for n in (1, 2, 5))
    for other in others:
        for name in ("eigenvalues_", "landmark_features_"):
            assert_array_equal(getattr(other.feature_map_, name), getattr(first.feature_map_, name))
        assert_array_equal(other.cluster_centers_, first.cluster_centers_)
        assert_array_equal(other.labels_, first.labels_)
        assert other.feature_map_.choices_ == first.feature_map_.choices_


@pytest.fixture
def filters(monkeypatch):
    """Return the number of vectors of each filter, and the eigenvalue where it begins."""
    made, compute = [], spectrum._filter

    def noted(walk, known, vectors, low):
        made.append((len(vectors), low))
        return compute(walk, known, vectors, low)

    monkeypatch.setattr(spectrum, "_filter", noted)
    return made


@pytest.fixture
def sampled(tuning):
    """Return a map whose fits with 20 landmarks sum over 200 rows."""
    tuning(landmarks__summed_rows=10)
    return DiffusionMap(4, n_landmarks=20, time=T, random_state=0)


def test_sums_over_a_sample_are_near_those_over_all_rows(sampled, tuning, dtype):
    X = np.random.default_rng(9).standard_normal((20_000, 2)).astype(dtype)
    part = clone(sampled).fit(X)
    tuning(landmarks__summed_rows=1000)
    every, again, other = (clone(sampled).set_params(random_state=i).fit(X) for i in (0, 0, 1))
    assert_array_equal(part.landmarks_, every.landmarks_)
    assert 1e-4 < abs(part.eigenvalues_ - every.eigenvalues_).max() < 0.1
    assert_array_equal(again.eigenvalues_, every.eigenvalues_)
    assert other.eigenvalues_[0] != every.eigenvalues_[0]


def walk_of(model):
    """Return the neighbourhoods of the landmarks of a map."""
    return Neighbourhoods(model.landmarks_, model.n_neighbors_, model.bandwidth_, 1)


def test_sums_over_a_sample_follow_the_weights(sampled):
    """Rows of weight zero are not drawn, and rows of weight nine as often as nine rows."""
    X, _ = groups([2000] * 3, [[0, 0], [4, 0], [50, 50]], 10)
    weight = np.repeat([1.0, 9.0, 0.0], 2000)
    model = sampled.fit(X, sample_weight=weight)
    assert model.landmarks_.max() < 20
    mass, *_ = walk_of(model).sums(X, weight, np.random.RandomState(0))
    assert_allclose(mass.sum(), 200)
    assert_allclose(mass[model.landmarks_[:, 0] > 2].sum() / 200, 0.9, atol=0.1)


def test_landmarks_without_rows_of_the_sample_are_no_components(tuning):
    """One row a landmark leaves some landmarks without any; no warning names them."""
    tuning(landmarks__summed_rows=1)
    X = np.random.default_rng(13).standard_normal((5000, 40))
    model = DiffusionMap(n_landmarks=200, n_neighbors=3, random_state=0).fit(X)
    assert len(model.landmarks_) < 200
    assert (model.component_shares_ > 0).all()


@pytest.mark.parametrize("n_neighbors, is_full", [(4, False), (20, False), (20, True)])
def test_sums_are_those_of_the_weights(rows, n_neighbors, is_full, monkeypatch, tuning):
    """Also of more neighbors than a pass keeps, by products of sparse or of full matrices."""
    model = DiffusionMap(1, n_neighbors=n_neighbors, n_landmarks=25, random_state=0).fit(rows)
    p = np.random.default_rng(12).uniform(0, 2, 80)
    if is_full:
        tuning(search__sparse_work=0)
        monkeypatch.setattr("scipy.sparse.csr_matrix.__matmul__", None)
        monkeypatch.setattr("scipy.sparse.csc_matrix.__matmul__", None)
    Z = weights_by_definition(rows, model.landmarks_, n_neighbors, model.bandwidth_)
    for weight in (p, ones(80)):
        mass, products, _ = walk_of(model).sums(rows, weight, np.random.RandomState(0))
        assert_allclose(mass, weight @ Z, atol=1e-5)
        assert_allclose(products.toarray(), Z.T @ (weight[:, None] * Z), atol=1e-5)


def test_many_clusters_have_fewer_landmarks():
    """Whose eigenvectors, four for each cluster, are a bounded effort; their number is steady."""
    for k, most, m in [(1, 200_000, 1000), (35, 200_000, 1000), (50, 160_000, 1000),
                       (100, 40_000, 1000), (200, 10_000, 1600), (500, 2500, 2500),
                       (5000, 25_000, 25_000)]:  # fmt: skip
        assert neighbors.landmark_numbers("auto", 5000, k) == (most, m)
    assert neighbors.landmark_numbers("auto", 1_000_000, 10) == (200_000, 5000)
    assert neighbors.landmark_numbers("auto", 100_000, 10, sparse=True) == (30_000, 1581)
    assert neighbors.landmark_numbers(300, 1_000_000, 10) == (300, 300)
    assert neighbors.landmark_numbers("auto", 100_000, 100, d=2) == (40_000, 4000)
    assert neighbors.landmark_numbers("auto", 100_000, 300, d=384) == (4444, 2400)


def test_each_of_many_clusters_has_a_landmark():
    """As k-means++ draws them: random rows nearly all come from the one large cluster."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(100), [3000] + 99 * [3])
    X = 100 * random.standard_normal((100, 5))[y] + random.standard_normal((len(y), 5))
    count, weight = NeighbourCount(None), ones(len(X))
    given = X, weight, 400, 100, count, False
    one, two = (
        neighbors.centroid_landmarks(*given, np.random.RandomState(0), n)[0] for n in (1, 2)
    )
    assert len(np.unique(y[cdist(one.landmarks, X).argmin(axis=1)])) == 100
    assert_array_equal(one.landmarks, two.landmarks)
    assert one.bandwidth == two.bandwidth


def test_memberships_show_rows_between_clusters_of_a_graph():
    """Landmarks that no row has in reach are no part of the graph, and see both clusters."""
    X, y = groups([500, 500], [[0, 0], [12, 0]])
    between = [6, 0] + np.random.default_rng(1).standard_normal((6, 2)) / 8
    rows = kneighbors_graph(np.vstack([X, between]), 15)
    model = DiffusionPowerKMeans(2, metric="precomputed", random_state=0)
    largest = model.fit(rows).predict_proba(rows).max(axis=1)
    assert adjusted_rand_score(y, model.labels_[:1000]) == 1
    assert np.median(largest[1000:]) < 0.95 < np.median(largest[:1000])
    assert (largest[1000:, None] < largest[:1000]).mean() > 0.9


def test_components_are_all_that_as_many_clusters_need():
    X, y = make_moons(500, noise=0.02, random_state=0)
    model = DiffusionPowerKMeans(2, whitening=None, random_state=0).fit(X)
    assert_array_equal(model.feature_map_.eigenvalues_, [1.0])
    assert adjusted_rand_score(y, model.labels_) == 1 and model.inertia_ < 1e-3
    for more in {"time": 100.0}, {"n_components": 2}, {"n_clusters": 3}:
        other = clone(model).set_params(**more).fit(X)
        assert len(other.feature_map_.eigenvalues_) > 1


def test_cosine_sees_directions_only(rows):
    X = rows + 3
    lengths = np.random.default_rng(5).uniform(0.1, 10, (80, 1))
    model = DiffusionMap(8, n_landmarks=20, time=T, metric="cosine", random_state=0)
    plain = clone(model).fit_transform(X)
    assert_allclose(clone(model).fit_transform(X * lengths), plain, atol=1e-8)
    assert_allclose(np.linalg.norm(model.fit(X).landmarks_, axis=1), 1)
    assert np.isfinite(model.transform(np.zeros((1, 2)))).all()


def test_small_components_take_no_cluster():
    """Nine far rows are a component; two clusters are the moons nevertheless."""
    X, y = make_moons(1000, noise=0.05, random_state=0)
    far = 50 + 0.01 * np.random.default_rng(6).standard_normal((9, 2))
    model = DiffusionPowerKMeans(2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="connected components.*left out"):
        model.fit(np.vstack([X, far]))
    assert adjusted_rand_score(y, model.labels_[:1000]) >= 0.99
    assert len(set(model.labels_[1000:])) == 1
    assert_allclose(model.feature_map_.component_shares_.sum(), 1)


def test_a_valley_is_what_its_definition_says():
    X, y = groups([60, 30, 20], PLACES)
    distances = np.linalg.norm(X[:, None] - X, axis=-1)
    components = SimpleNamespace(labels=y, enough=np.ones(3, dtype=bool))
    for number in range(3):
        own = y == number
        inside = np.sort(np.sort(distances[own][:, own], axis=1)[:, 5])[(own.sum() - 1) // 2]
        around = np.sort(distances[own][:, ~own].min(axis=1))[int(np.ceil(0.1 * own.sum())) - 1]
        valley = graph.valley_of_rows(X, np.ones(110), np.arange(110), 1, components, number)
        assert_allclose(valley, np.log(around / inside), rtol=1e-6)


def test_the_components_that_a_warning_names_cover_all_rows():
    """Two blobs, a small one, and two rows that are alone and left out of the shares."""
    random = np.random.default_rng(0)
    blobs = [random.normal(c, 0.05, (n, 2)) for c, n in ((0, 60), (9, 60), (5, 3))]
    X = np.vstack([*blobs, [[100.0, 100.0], [-80.0, 50.0]]])
    said = (
        "3 connected components.* 0.024 of the weight of the rows. Nodes without .*0.016 of the w"
    )
    with pytest.warns(ConvergenceWarning, match=said):
        found = DiffusionMap(n_neighbors=16, random_state=0).fit(X)
    assert_allclose(found.component_shares_, [60 / 125, 60 / 125, 3 / 125])


# ---- components of unequal size, and rows that dangle --------------------------------------------


def a_small_group(form=np.asarray, are_equal=False):
    X, y = groups(SIZES, PLACES)
    if are_equal:
        X[y == 2] = [0, 20]
    return form(np.hstack([X - X.min(), np.zeros((len(X), 3))])), y


def noisy_circles():
    """Draw circles and a background, whose rows are no mutual neighbors of rows of circles."""
    X, y = make_circles(2000, factor=0.5, noise=0.05, random_state=0)
    noise = np.random.default_rng(0).uniform(-1.5, 1.5, (200, 2))
    return np.vstack([X, noise]), np.r_[y, np.full(200, -1)]


def hundreds_of_moons():
    """Draw 110 moons of 360 rows: more clusters than graphs of all rows are made for."""
    parts = [make_moons(720, noise=0.06, random_state=i) for i in range(55)]
    X = [part[0] + [4 * (i % 10), 4 * (i // 10)] for i, part in enumerate(parts)]
    return np.vstack(X), np.concatenate([part[1] + 2 * i for i, part in enumerate(parts)])


def heavy_tails():
    """Draw clusters whose far rows would take centroids of k-means, which has an index of .72."""
    random = np.random.default_rng(0)
    y = random.integers(5, size=2000)
    centers = random.normal(size=(5, 5)) * 12 / np.sqrt(10)
    tails = random.normal(size=(2000, 5)) / np.sqrt(random.chisquare(2, (2000, 1)) / 2)
    return centers[y] + tails, y


def unequal_groups():
    """Draw more rows than landmarks, in clusters of very unequal sizes."""
    random = np.random.default_rng(0)
    sizes = np.maximum(12_000 / np.arange(1.0, 301) / 6.3, 12).astype(int)
    y = np.repeat(np.arange(300), sizes)
    noise = 0.5 * random.standard_normal((len(y), 100))
    return 1.2 * random.standard_normal((300, 100))[y] + noise, y


COLUMNS = {"whitening": None}
FOUND = {  # rows and clusters, parameters, and the least index
    "a small cluster": (a_small_group, {}, 1),
    "over landmarks": (a_small_group, {"n_landmarks": 80}, 1),
    "equal rows": (partial(a_small_group, are_equal=True), COLUMNS, 1),
    "sparse rows": (partial(a_small_group, csr_array), COLUMNS, 1),
    "heavy tails": (heavy_tails, {}, 0.85),
    # whitened graphs divide the largest of these blobs
    "unequal blobs": (partial(make_blobs, [700, 200, 100], random_state=2), {}, 0.95),
    "flowers": (partial(load_iris, return_X_y=True), {}, 0.72),
    "far pairs": (partial(groups, [100] * 4, FAR_PAIRS), {}, 1),
    "noisy moons": (partial(make_moons, 600, noise=0.08, random_state=0), {}, 0.99),
    "background": (noisy_circles, {}, 0.99),
    "touching": (partial(groups, [5000, 5000], [[0, 0], [6, 0]]), COLUMNS, 0.98),
    "hundreds": (hundreds_of_moons, {}, 0.98),
    "many rows": (partial(make_moons, 25_000, noise=0.06, random_state=0), COLUMNS, 0.99),
    "unequal": (unequal_groups, {}, 0.99),
}


@pytest.mark.parametrize("kind", [
    *[*FOUND][:10], *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in [*FOUND][10:])
])  # fmt: skip
def test_clusters_that_are_hard_to_find_are_found(kind):
    draw, options, least = FOUND[kind]
    X, y = draw()
    model = DiffusionPowerKMeans(y.max() + 1, random_state=0, **options).fit(X)
    for labels in (model.labels_, model.predict(X)):
        assert adjusted_rand_score(y[y >= 0], labels[y >= 0]) >= least


def test_a_small_cluster_is_found_by_its_weight():
    """Five rows are none, and are one where each has the weight of four."""
    X, y = groups([400, 350, 5], PLACES)
    model = DiffusionPowerKMeans(3, whitening=None, random_state=0)
    model.fit(X, sample_weight=np.where(y == 2, 4.0, 1.0))
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("sizes, k", [(SIZES, 2), ([400, 350, 5], 2), ([400, 9], 2), ([400, 9], 4)])
def test_small_components_are_named_where_they_take_no_cluster(sizes, k):
    """Beside enough large ones, and beside fewer large ones than clusters."""
    X, y = groups(sizes, PLACES)
    message = f"1 of them, with {sizes[-1]} rows, .*left out.* increase n_neighbors"
    model = DiffusionPowerKMeans(k, whitening=None, random_state=0)
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(X)
    if len(sizes) > k:
        assert adjusted_rand_score(y[y < k], model.labels_[y < k]) == 1


@pytest.mark.parametrize("d", [10, 50])
def test_few_rows_on_the_fringe_are_no_cluster(d):
    """Warnings are errors here. Rows of the fringe that are a component have no valley."""
    random = np.random.default_rng(0)
    X = random.standard_t(3, (300, d))
    mapped = DiffusionPowerKMeans(3, whitening=0.5, random_state=0).fit(X).feature_map_
    assert mapped.component_shares_[0] > 0.98 and mapped._space.n_kept == 1
    model = DiffusionMap(whitening=None)
    with pytest.warns(ConvergenceWarning, match="left out"):
        model.fit(np.random.default_rng(2).standard_t(2, size=(3000, 20)))
    assert model._space.n_kept == 1


@pytest.mark.parametrize("sparse", [False, True])
def test_near_groups_are_one_where_there_are_more_than_clusters(sparse):
    X = make_blobs(1000, centers=5, cluster_std=0.4, random_state=4)[0]
    far = np.vstack([X + np.array(place) for place in ([0, 0], [60, 0], [0, 60])])
    y, rows = np.repeat([0, 1, 2], 1000), csr_array(far) if sparse else far
    for n_clusters in (3, "coarse"):
        model = DiffusionPowerKMeans(n_clusters, random_state=0)
        assert adjusted_rand_score(y, model.fit(rows).labels_) == 1
        assert adjusted_rand_score(y, model.predict(rows)) == 1
    model = DiffusionPowerKMeans(15, random_state=0).fit(rows)
    assert adjusted_rand_score(y, model.cut(3)) == 1
    more = DiffusionPowerKMeans(20, random_state=0).fit(rows)  # some in one component
    assert adjusted_rand_score(model.labels_, more.cut(15)) == 1


@pytest.mark.filterwarnings("ignore:The neighbor graph has")
@pytest.mark.parametrize("seed", [0, 1, 4, 5])
def test_clusters_without_landmarks_are_cut_with_the_near_ones(seed):
    """Of two near pairs of groups each has less than eight landmarks for three clusters."""
    X, y = make_blobs(600, centers=[[0, 0], [30, 0], [300, 0], [330, 0]], random_state=seed)
    model = DiffusionPowerKMeans(12, whitening=None, n_landmarks=30, random_state=seed).fit(X)
    features = model.feature_map_.landmark_features_
    nearest = ((features[:, None] - model.cluster_centers_) ** 2).sum(axis=2).argmin(axis=1)
    assert len(set(nearest)) < len(set(model.labels_)) == 12
    assert adjusted_rand_score(model.cut(4), y) == 1
    assert adjusted_rand_score(model.cut(2), y // 2) == 1


def test_rows_that_the_walk_hardly_leaves_are_no_nodes():
    """Rows on the fringe, which have slow functions of their own."""
    X = np.random.default_rng(0).standard_normal((400, 2))
    model = DiffusionMap(n_neighbors=15, whitening=None).fit(X)
    Z = weights_by_definition(X, X, 15, model.bandwidth_, mutual=True)
    leave = 1 - (Z**2).sum(axis=0) / Z.sum(axis=0)
    stays = leave < 0.1 * np.sort(leave)[199]
    assert 1 < stays.sum() < 40 and ((Z[stays] > 0).sum(axis=1) > 1).any()
    assert_array_equal(model.landmarks_, np.unique(X[~stays], axis=0))
    assert len(model.component_shares_) == 1


def test_far_rows_are_finite(rows, dtype):
    model = DiffusionPowerKMeans(3, n_landmarks=30, random_state=0).fit(rows.astype(dtype))
    far = np.array([[1e6, 1e6], [-1e15, 3]], dtype)
    features = model.feature_map_.transform(far)
    nodes = model.feature_map_.landmark_features_
    assert (features >= nodes.min(axis=0) - 1e-5).all()
    assert (features <= nodes.max(axis=0) + 1e-5).all()
    assert np.isfinite(model.predict_proba(far)).all()


@pytest.mark.parametrize("n_landmarks", ["auto", 3])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_and_equal_rows(n, n_landmarks, dtype):
    X = np.random.default_rng(7).standard_normal((n, 3)).astype(dtype)
    for k in (1, n):
        model = DiffusionPowerKMeans(k, n_landmarks=n_landmarks, random_state=0).fit(X)
        assert np.isfinite(model.cluster_centers_).all() and np.isfinite(model.transform(X)).all()
    model.set_params(whitening=None).fit(np.ones((9, 3)))
    assert_array_equal(model.labels_, model.labels_[0])
    assert model.feature_map_.n_components_ == 1


def test_duplicates_are_one_node_and_have_one_label_with_or_without_weight():
    X, y = make_moons(400, noise=0.05, random_state=0)
    X, y = np.repeat(X, 30, axis=0), np.repeat(y, 30)
    model = DiffusionPowerKMeans(2, random_state=0).fit(X)
    assert len(model.feature_map_.landmarks_) == 400
    assert adjusted_rand_score(y, model.labels_) >= 0.99
    X, weight = np.tile(X[::120], (2, 1)), np.repeat([1, 0], 100)
    labels = DiffusionPowerKMeans(5, random_state=0).fit(X, sample_weight=weight).labels_
    assert_array_equal(labels[:100], labels[100:])


def test_the_memory_limit_decides_whether_features_are_stored(rows, dtype):
    """The same results to the last bit, with features of the memory limit or without."""
    X, model = rows.astype(dtype), DiffusionPowerKMeans(3, n_landmarks=30, random_state=0)
    needed = 80 * clone(model).fit(X).cluster_centers_.shape[1] * X.itemsize
    kept, limited = (clone(model).set_params(cache=needed - i).fit(X) for i in (0, 1))
    assert kept.cache_ is True and limited.cache_ is False
    assert_array_equal(kept.cluster_centers_, limited.cluster_centers_)
    assert_array_equal(kept.labels_, limited.labels_)
    assert_array_equal(limited.predict(X), limited.labels_)


def test_a_time_that_leaves_nothing_is_named(rows, dtype):
    with pytest.raises(ValueError, match="time=1e\\+05: is too long"):
        DiffusionPowerKMeans(3, time=1e5, random_state=0).fit(rows.astype(dtype))


def test_parameters_set_after_the_fit_change_no_features(rows):
    model = DiffusionMap(random_state=0, **EVERY).fit(rows)
    expected = model.transform(rows)
    assert_array_equal(model.set_params(metric="cosine").transform(rows), expected)


def of_eigenvalues(values):
    """Build a matrix with these eigenvalues."""
    n = len(values)
    turned = np.linalg.qr(np.random.default_rng(15).standard_normal((n, n)))[0]
    return turned * values @ turned.T


def lattice(n):
    """Build the lazy walk on a ring: all eigenvalues but two are double, the largest are near."""
    step = np.roll(np.eye(n), 1, axis=0)
    return np.eye(n) / 2 + (step + step.T) / 4


MATRICES = {
    "even": lambda: of_eigenvalues(np.linspace(0, 1, 700)),
    "multiple": lambda: of_eigenvalues(
        np.repeat([0.9, 0.5, *np.linspace(0, 0.3, 630)], [30, 40, *[1] * 630])
    ),
    "double": lambda: lattice(700),
    "large": lambda: lattice(1500),
    "components": lambda: np.kron(np.eye(14), np.full((50, 50), 1 / 50)),
    "nearly components": lambda: nearly(np.kron(np.eye(70), np.full((10, 10), 0.1))),
    "apart": lambda: np.kron(np.eye(20), lattice(35)),
    "nearly apart": lambda: nearly(np.kron(np.eye(20), lattice(35))),
    "complete": lambda: np.full((700, 700), 1 / 700),
    "identity": lambda: np.eye(30),
    "without neighbors": lambda: np.eye(300),
    "zero": lambda: np.zeros((30, 30)),
}


def nearly(matrix):
    return (1 - 1e-6) * matrix + 1e-6 / len(matrix)


def slow_pairs(walk, n, *sizes):
    """Return pairs of a walk of `n` nodes with equal weights."""
    if isinstance(walk, np.ndarray):
        walk = spectrum.Walk(csr_matrix(np.where(np.abs(walk) > 1e-12, walk, 0)))
    return spectrum.slow_pairs(walk, np.full(n, n**-0.5), np.zeros((n, 0)), *sizes)


def check_pairs(pairs, matrix, k, skipped=0):
    """Check that `k` of the pairs are accurate and that the vectors are orthonormal."""
    values, vectors = pairs
    expected = np.linalg.eigvalsh(matrix)[::-1][skipped : k + skipped]
    assert (values[:k] <= expected + 1e-9).all()
    # 1 - mu of a few 1e-6 counts as zero, and is not resolved in a block of nearly equal ones
    assert_allclose(values[:k], expected, atol=0.02 * (1 - expected[-1]) + 1e-6)
    assert_allclose(vectors.T @ vectors, np.eye(len(vectors.T)), atol=1e-9)


@pytest.mark.parametrize("name", [name for name in MATRICES if name != "apart"])
@pytest.mark.parametrize("k", [1, 5, 12])
@pytest.mark.parametrize("ordered_nodes", [0, np.inf], ids=["ordered", "as they are"])
def test_slow_pairs_are_those_of_a_full_decomposition(name, k, ordered_nodes, tuning):
    """As accurate as said, of graphs with an entry for each two nodes and of sparse ones."""
    tuning(spectrum__ordered_nodes=ordered_nodes)
    matrix = MATRICES[name]()
    check_pairs(slow_pairs(matrix, len(matrix), max(8, 2 * k)), matrix, k)


@pytest.mark.parametrize("many", [50, 49])
@pytest.mark.parametrize("name", ["double", "apart"])
def test_slow_pairs_of_many_vectors_are_those_of_a_full_decomposition(name, many, tuning):
    """As many as `least` says are accurate."""
    tuning(spectrum__many_vectors=many)
    matrix = MATRICES[name]()
    check_pairs(slow_pairs(matrix, 700, 50, 40), matrix, 40)


@pytest.mark.parametrize("condition", [1.0, 1e6, np.inf])
def test_many_vectors_are_made_orthonormal_whatever_their_condition(condition):
    random = np.random.default_rng(0)
    v = random.standard_normal((300, 40)) @ random.standard_normal((40, 40))
    v[:, -1] = v[:, 0] + random.standard_normal(300) / condition
    basis = spectrum.orthonormal_basis(v)
    assert_allclose(basis.T @ basis, np.eye(40), atol=1e-12)
    assert_allclose(basis @ (basis.T @ v), v, atol=1e-8)


def test_slow_pairs_of_many_vectors_that_a_filter_maps_to_zero(tuning):
    """Where all nodes are neighbors, what is left without the constant vector is zero."""
    tuning(spectrum__many_vectors=7)
    root = np.full((300, 1), 300**-0.5)
    walk = spectrum.Walk(csr_matrix(root @ root.T))
    values, vectors = spectrum.slow_pairs(walk, root[:, 0], root, 90)
    assert_allclose(values, 0, atol=1e-12)
    assert_allclose(vectors.T @ vectors, np.eye(90), atol=1e-10)


@pytest.mark.parametrize("many, amplified, at_low", [(3, 1e4, True), (2, 1e8, False)])
def test_filters_of_many_vectors_are_stronger_and_begin_higher(many, amplified, at_low, tuning):
    tuning(spectrum__many_vectors=many)
    vectors = np.eye(3)
    walk = spectrum.Walk(csr_matrix(np.diag([1.0, 0.09, 0.02])))
    spectrum._filter(walk, np.zeros((3, 0)), vectors, 0.02)
    found = np.abs(vectors.diagonal())
    assert amplified / 160 < found[0] <= amplified  # a degree is a factor of 160
    assert found[2] <= 1 and (found[1] > 1) == at_low


def test_so_many_functions_are_accurate_as_there_are_clusters_or_half_of_them():
    """A number of clusters beyond the functions is that of a choice, which rounds would prolong."""
    walk, share = spectrum.Walk(csr_matrix(lattice(700))), np.full(700, 1 / 700)
    half, every, beyond = (
        spectrum.decompose(lambda: walk, share, np.zeros(700, dtype=np.int32),
                           spectrum.Wanted(k, 40), 700, 1.0)[1]
        for k in (20, 40, 60)
    )  # fmt: skip
    assert_array_equal(beyond, half)
    assert not np.array_equal(every, half)


@pytest.mark.parametrize("size", [10, 40])
def test_slow_pairs_of_more_vectors_than_groups_take_one_round(size, filters):
    """The least eigenvalue of groups stands for the missing ones; half of the vectors count."""
    matrix, degrees, _ = cliques([size] * 40, joined=0.05)
    root = np.sqrt(degrees / degrees.sum())
    pairs = spectrum.slow_pairs(spectrum.Walk(csr_matrix(matrix)), root, root[:, None], 60, 39)
    assert len(filters) == 1 and filters[0][1] > 0.3
    check_pairs(pairs, matrix, 39, skipped=1)


def test_nodes_of_graphs_with_hubs_keep_their_order(tuning, monkeypatch):
    """To sort the neighbors of a hub takes longer than what an order of the nodes saves."""
    tuning(spectrum__ordered_nodes=0)
    asked, order, matrix = [], spectrum.reverse_cuthill_mckee, lattice(2000)
    monkeypatch.setattr(
        spectrum, "reverse_cuthill_mckee", lambda *a, **b: asked.append(0) or order(*a, **b)
    )
    for _ in range(2):
        slow_pairs(matrix, 2000, 8)
        assert asked == [0]
        matrix[0] = matrix[:, 0] = 1e-9


@pytest.mark.parametrize("ordered_nodes", [0, np.inf], ids=["ordered", "as they are"])
@pytest.mark.parametrize("denser", [0, np.inf], ids=["two factors", "one matrix"])
def test_slow_pairs_of_two_factors_are_those_of_their_product(denser, ordered_nodes, tuning):
    """Whether groups of nodes have two factors, too, or one matrix."""
    tuning(spectrum__product_entries=denser, spectrum__ordered_nodes=ordered_nodes)
    n = 400
    mixed = np.random.default_rng(3).permutation(n)  # so that another order is seen
    there = csr_matrix(sum(np.roll(np.eye(n), i, axis=1) for i in range(9))[mixed][:, mixed] / 9)
    matrix, walk = (there.T @ there).toarray(), spectrum.Walk(there, there.T.tocsr())
    groups = csr_matrix(np.kron(np.eye(n // 10), np.full((10, 1), 10**-0.5)))
    merged = walk.merged(groups)
    assert (merged.back is None) == (denser == np.inf)
    assert_allclose(merged @ np.eye(n // 10), groups.T @ matrix @ groups, atol=1e-15)
    values, vectors = pairs = slow_pairs(walk, n, 16)
    check_pairs(pairs, matrix, 8)
    slow = vectors[:, :8]  # at the nodes as they are given
    assert np.abs(matrix @ slow - slow * values[:8]).max() < 1e-3


def cliques(sizes, joined=0.02):
    """Build a graph of cliques that random edges join, its degrees, and the clique of each node."""
    label, random = np.repeat(np.arange(len(sizes)), sizes), np.random.default_rng(0)
    edges = random.uniform(size=(len(label), len(label))) < joined * 2 / len(label)
    matrix = 1.0 * (label == label[:, None]) + 0.5 * (edges + edges.T)
    degrees = matrix.sum(axis=1)
    walk = np.eye(len(label)) / 2 + matrix / np.sqrt(np.outer(degrees, degrees)) / 2
    return walk, degrees, label


def combined(matrix, degrees, k, labels=None, n_threads=1):
    labels = np.zeros(len(degrees), dtype=np.int32) if labels is None else labels
    wanted = spectrum.Wanted(k, k, use="combined")
    walk = spectrum.Walk(csr_matrix(matrix), n_threads=n_threads)
    return spectrum.decompose(lambda: walk, degrees, labels, wanted, len(degrees), 1.0)


@pytest.mark.parametrize("least_ordered", [100, 10_000])
@pytest.mark.parametrize("k", [101, 150])
def test_combinations_have_the_distances_of_decayed_functions(k, least_ordered, tuning):
    """To the tenth that a hundred random directions leave, and the variance one at the rows."""
    tuning(spectrum__ordered_nodes=least_ordered)
    matrix, degrees, label = cliques(np.arange(k) % 8 + 5, joined=1.0)
    walked, functions = combined(matrix, degrees, k)
    mu = 1 - walked.gaps[0]
    features = functions / np.sqrt(100 * mu)
    values, vectors = np.linalg.eigh(matrix)
    kept = (values >= mu) & (np.arange(len(values)) < len(values) - 1)
    assert abs(kept.sum() - (k - 1)) < 0.1 * k
    values, vectors = values[kept], vectors[:, kept]
    root = np.sqrt(degrees / degrees.sum())
    decay = np.exp(-1.5 * (1 - values) / (1 - mu))
    exact = vectors / root[:, None] * decay / np.sqrt(values * (decay**2).sum())
    at_rows = (root[:, None] * features).T @ matrix @ (root[:, None] * features)
    assert_allclose(np.trace(at_rows), 1)
    apart = label[:, None] != label
    distances, expected = (cdist(each, each, "sqeuclidean")[apart] for each in (features, exact))
    ratio = distances / expected
    assert_allclose(np.median(ratio), 1, atol=0.05)
    assert np.quantile(ratio, 0.01) > 0.6 and np.quantile(ratio, 0.99) < 1.5


def test_combinations_move_nodes_that_hold_the_walk_near():
    """They are no farther from the mean than rows of clusters of half the mean size."""
    matrix, degrees, label = cliques([12] * 120 + [1] * 30, joined=1.0)
    functions = combined(matrix, degrees, 120)[1]
    lengths = np.sqrt((functions**2).mean(axis=1))
    assert lengths[label >= 120].max() < 3 * np.median(lengths[label < 120])
    root = np.sqrt(degrees / degrees.sum())  # without it: a node alone has the same eigenvalue
    vectors = np.linalg.eigh(matrix - np.outer(root, root))[1][:, -119:]
    slow = np.sqrt((vectors**2 / degrees[:, None]).sum(axis=1))
    assert slow[label >= 120].max() > 4 * np.median(slow[label < 120])


@pytest.mark.parametrize("k", [110, 111])
def test_combinations_of_components_are_constant_there(k):
    """One function more is found where they are one fewer than clusters."""
    matrix, degrees, label = cliques([9] * 109 + [6, 5], joined=0.0)
    labels = np.minimum(label, k - 1).astype(np.int32)
    _, functions = combined(matrix, degrees, 111, labels)
    means = np.array([functions[labels == each].mean(axis=0) for each in range(k)])
    if k == 111:
        assert_allclose(functions, means[labels], atol=1e-9)
    last = functions[label == 109].mean(axis=0) - functions[label == 110].mean(axis=0)
    assert np.linalg.norm(last) > 3
    assert (cdist(means, means) + 9 * np.eye(k)).min() > 3


def test_combinations_have_the_same_bits_for_any_number_of_threads():
    matrix, degrees, _ = cliques([8] * 400, joined=1.0)  # more nodes than a thread has at a time
    assert_array_equal(*(combined(matrix, degrees, 120, n_threads=n)[1] for n in (1, 3)))


def test_few_rows_a_cluster_take_few_filters(filters):
    """Functions that filters of many vectors do not amplify need not be accurate."""
    random = np.random.default_rng(3)
    y = random.choice(300, 2500)
    X = 12 * random.standard_normal((300, 5))[y] + random.standard_normal((2500, 5))
    labels = DiffusionPowerKMeans(300, whitening=None, random_state=0).fit_predict(X)
    assert len(filters) <= 8 and adjusted_rand_score(y, labels) > 0.9


def test_combinations_of_nodes_that_all_are_neighbours_are_none():
    """No function lasts a step there."""
    walked, functions = combined(np.full((400, 400), 1 / 400), np.ones(400), 120)
    assert functions.shape == (400, 0) and not len(walked.gaps)


def test_combinations_of_a_ring_that_nearly_falls_apart_are_finite():
    """Where more eigenvalues are nearly one than moments tell apart."""
    n = 1000
    matrix = np.kron(np.eye(n), np.ones((3, 3)))
    first = np.arange(0, 3 * n, 3)
    matrix[first, np.roll(first, 1)] = matrix[np.roll(first, 1), first] = 1e-8
    degrees = matrix.sum(axis=1)
    walked, functions = combined(matrix / np.sqrt(np.outer(degrees, degrees)), degrees, 101)
    assert np.isfinite(functions).all() and 1e-4 < walked.gaps[0] < 1e-3
    assert_allclose((functions**2).mean(), 1, atol=0.1)


def views_of(k, n):
    random, y = np.random.default_rng(0), np.arange(n) % k
    for _ in range(2):
        yield 9 * random.standard_normal((k, 4))[y] + random.standard_normal((n, 4))


def test_a_view_of_one_distinct_row_tells_nothing_of_many_clusters():
    view, _ = views_of(110, 1200)
    for other in (np.ones((1200, 3)), csr_matrix((1200, 5))):
        model = RFFMultiKernelPowerKMeans(110, random_state=0).fit([view, other])
        assert adjusted_rand_score(np.arange(1200) % 110, model.labels_) > 0.9


def test_the_number_of_clusters_decides_how_many_functions_are_computed():
    """Two for each cluster, and fewer for many; combinations for many clusters of views."""
    for k, pairs in ((99, 198), (100, 200), (101, 200), (133, 200), (134, 201), (200, 300)):
        wanted = spectrum.wanted_pairs(k, rough=True, use="combined")
        assert wanted.use == ("always" if k <= 100 else "combined")
        assert spectrum.wanted_pairs(k, rough=True) == wanted._replace(pairs=pairs, use="always")
    assert spectrum.wanted_pairs(101, False, use="combined").use == "always"


@pytest.mark.parametrize("k", [100, 101])
def test_clusters_of_views_are_found_on_both_sides_of_combinations(k):
    views = [*views_of(k, 12 * k)]
    model = RFFMultiKernelPowerKMeans(k, random_state=0).fit(views)
    assert adjusted_rand_score(np.arange(12 * k) % k, model.labels_) > 0.98
    numbers = [each.n_components_ for each in model.feature_maps_[:5]]
    assert all(number == 100 for number in numbers) == (k == 101)
    assert_array_equal(model.predict(views), model.labels_)


def test_slow_pairs_have_the_same_bits_for_any_number_of_threads(tuning):
    tuning(spectrum__ordered_nodes=0, tiles__vector_numbers=64)
    graph, known = csr_matrix(np.kron(np.eye(2), lattice(350))), np.kron(np.eye(2), np.ones(350)).T
    root = np.full(700, 700**-0.5)
    walks = (spectrum.Walk(graph, n_threads=threads) for threads in (1, 3))
    one, three = (spectrum.slow_pairs(walk, root, known / 350**0.5, 8) for walk in walks)
    for each, other in zip(one, three):
        assert_array_equal(each, other)
    assert np.abs(known.T @ one[1]).max() < 1e-9


def test_a_search_for_more_neighbours_serves_for_fewer():
    X, mass, both = np.random.default_rng(0).standard_normal((300, 4)), np.ones(300), Shared(2)
    for times in (1, 2):
        count = NeighbourCount(None, times)
        found, graph = mutual_neighbours(X, mass, count, 1, both)
        alone, expected = mutual_neighbours(X, mass, count, 1, Shared())
        assert_array_equal(found.radii, alone.radii)
        assert found.bandwidth == alone.bandwidth
        assert_array_equal(graph.toarray(), expected.toarray())


def test_weights_count_as_repeated_rows_where_a_cluster_has_little_weight():
    for seed in range(4):
        X, y = make_blobs(300, 3, centers=4, cluster_std=0.5, random_state=seed)
        weight, model = np.where(y == 3, 1, 20), DiffusionPowerKMeans(4, random_state=0)
        assert adjusted_rand_score(y, model.fit(X, sample_weight=weight).labels_) == 1
        repeated, truth = np.repeat(X, weight, axis=0), np.repeat(y, weight)
        assert adjusted_rand_score(truth, model.fit(repeated).labels_) == 1


@pytest.mark.parametrize("n_components", [1, 10, 20, 50, 100])
def test_as_many_functions_as_are_asked_for(n_components, digits):
    X = make_blobs(300, 3, centers=4, cluster_std=0.5, random_state=1)[0]
    X = digits[0][:500] if n_components == 10 else X
    model = DiffusionPowerKMeans(4, n_components=n_components, random_state=0).fit(X)
    assert model.feature_map_.n_components_ == model.cluster_centers_.shape[1] == n_components


@pytest.mark.parametrize("noise", [None, "auto"])
def test_rows_without_weight_have_the_features_of_new_rows(noise):
    """Also noise, where rows that count are landmarks and keep the features of the fit."""
    X, _ = make_moons(1500, noise=0.06, random_state=0)
    X[:20] += [[9, 9]] * np.arange(1, 21)[:, None]
    weight = np.ones(1500) if noise else np.arange(1500) >= 20
    model = DiffusionPowerKMeans(2, noise=noise, random_state=0).fit(X, sample_weight=weight)
    assert not noise or (model.labels_[:20] == -1).all()
    assert_array_equal(model.predict(X), model.labels_)


def test_landmarks_stand_for_the_rows_where_clusters_are_clearly_apart(tuning):
    tuning(choice__clear_rows=2500)
    X, y = make_blobs(3000, 8, centers=5, random_state=0)
    model = DiffusionPowerKMeans(5, random_state=0).fit(X)
    assert 900 < len(model.feature_map_.landmarks_) <= 1000
    assert adjusted_rand_score(y, model.labels_) == 1.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    few = DiffusionPowerKMeans(5, random_state=0).fit(X[:2500])
    assert len(few.feature_map_.landmarks_) > 1000
    touching = make_blobs(3000, 8, centers=5, cluster_std=6.0, random_state=0)[0]
    model.set_params(whitening=None).fit(touching)
    assert len(model.feature_map_.landmarks_) > 1000


def test_each_row_keeps_its_three_nearest_neighbors_where_nothing_is_compared():
    """These three need not be mutual; farther neighbors must be."""
    X = np.random.default_rng(0).standard_normal((200, 2))
    squares = cdist(X, X, "sqeuclidean")
    nearest = np.argsort(squares, axis=1)
    three, graph = mutual_neighbours(X, np.ones(200), NeighbourCount(10, kept=3), 1)
    mutual, alone = mutual_neighbours(X, np.ones(200), NeighbourCount(10), 1)
    index = [np.flatnonzero((three.landmarks == x).all(axis=1))[0] for x in X]
    kept = graph.toarray()[index][:, index] > 0
    expected = alone.toarray()[index][:, index] > 0
    assert (kept | ~expected).all() and (kept != expected).any()
    np.put_along_axis(expected, nearest[:, :4], True, axis=1)
    assert_array_equal(kept, expected)
    assert_array_equal(three.radii, mutual.radii)


@pytest.mark.parametrize("is_within", [True, False])
def test_slow_functions_that_cost_too_much_are_learned_on_few_landmarks(filters, tuning, is_within):
    X = np.random.default_rng(0).random((2500, 2))

    def graph_of(X, k):
        return graph.neighbour_graph(X, ones(len(X)), (len(X), 1000), NeighbourCount(None), k,
                                        False, np.random.RandomState(0), 1, Shared())  # fmt: skip

    whole, wanted = graph_of(X, 5), spectrum.wanted_pairs(5, True)
    assert whole.parts.n_kept == 1
    work = 2 * TUNING.spectrum.degree * wanted.pairs * whole.weights.nnz
    tuning(spectrum__most_filtered=work if is_within else work - 1)
    assert graph.is_costly(whole, wanted) != is_within
    assert not graph.is_costly(whole, wanted._replace(exact=True))
    assert not graph.is_costly(whole, wanted._replace(use="never"))
    apart = graph_of(np.r_[X, X + 100], 2)
    assert apart.parts.n_kept == 2
    assert not graph.is_costly(apart, spectrum.wanted_pairs(2, True))  # the components suffice
    model = DiffusionPowerKMeans(5, whitening=None, random_state=0).fit(X)
    n_nodes = 2500 if is_within else 1000
    assert len(model.feature_map_.landmarks_) == max(filters)[0] == n_nodes


# ---- examples of clusters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [np.asarray, csr_array, lambda X: lambda: iter(np.array_split(X, 7))]
)
def test_examples_are_in_the_middle_of_their_clusters(form):
    """All rows of a component have one feature, so that features do not tell its middle."""
    X, y = make_blobs(300, 10, centers=5, center_box=(-8, 8), random_state=3)
    model = DiffusionPowerKMeans(5, random_state=0).fit(form(X))
    examples = model.medoids(form(X))
    labels = model.predict(form(X))
    assert_array_equal(labels[examples], range(5))
    for row in examples:
        own = X[y == y[row]]
        squares = ((own - own.mean(axis=0)) ** 2).sum(axis=1)
        assert (squares < ((X[row] - own.mean(axis=0)) ** 2).sum()).mean() < 0.1


def test_an_example_of_a_winding_cluster_lies_in_it():
    """The mean of a half circle lies beside it, and the row nearest to the mean at its edge."""
    X, y = make_moons(600, noise=0.06, random_state=0)
    model = DiffusionPowerKMeans(2, random_state=0).fit(X)
    for row in model.medoids(X):
        assert abs(np.hypot(*(X[row] - [[0, 0], [1, 0.5]][y[row]])) - 1) < 0.06


def test_a_cluster_without_rows_has_the_row_nearest_to_its_centroid():
    X, y = make_blobs(200, 3, centers=3, random_state=0)
    model = DiffusionPowerKMeans(3, random_state=0).fit(X)
    some = X[y != y[0]]
    found, nearest = model.medoids(some), model.transform(some).argmin(axis=0)
    empty = np.bincount(model.predict(some), minlength=3) == 0
    assert empty.sum() == 1 and found[empty] == nearest[empty]


@pytest.mark.parametrize("is_full", [True, False])
def test_examples_of_a_given_graph_are_in_the_middle_of_clusters(is_full):
    """Nodes of a component of the graph have equal features, at the edge of a cluster as well."""
    X, y = make_blobs(300, 6, centers=3, random_state=1)
    A = np.exp(-0.05 * cdist(X, X) ** 2) if is_full else kneighbors_graph(X, 8)
    model = DiffusionPowerKMeans(3, metric="precomputed", random_state=0).fit(A)
    assert adjusted_rand_score(y, model.labels_) == 1
    for j, example in enumerate(model.medoids(A)):
        own = X[model.labels_ == j]
        far = np.linalg.norm(own - own.mean(axis=0), axis=1)
        assert model.labels_[example] == j
        assert np.linalg.norm(X[example] - own.mean(axis=0)) <= np.quantile(far, 0.1)
        distances = model.transform(A)[:, j]
        assert distances[example] <= np.median(distances[model.labels_ == j])
    some = A[:100]  # rows of other numbers have affinities to the fitted nodes alone
    assert_array_equal(model.predict(some)[model.medoids(some)], [0, 1, 2])


# ---- piles of equal rows -------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("whitening", ["auto", None, 0.5, 1.0])
@pytest.mark.parametrize("copies", [[248, 1], [900, 2, 1], [1000, 1, 1, 1, 1], [40, 30, 1]])
def test_piles_of_equal_rows_are_clusters(copies, whitening, metric, form):
    """Their graph has as many nodes as clusters, and its functions are fast."""
    y = np.repeat(np.arange(len(copies)), copies)
    X = form(np.random.default_rng(1).standard_normal((len(copies), 6))[y])
    model = DiffusionPowerKMeans(len(copies), metric=metric, whitening=whitening, random_state=0)
    assert adjusted_rand_score(y, model.fit(X).labels_) == 1
    if len(copies) > 2:
        assert len({*model.set_params(n_clusters=2).fit_predict(X)}) == 2

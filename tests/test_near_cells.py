"""Search neighbors in cells: the compiled search against its twin, and the recall."""

from dataclasses import replace

import numpy as np
import pytest
from contracts.core import laid_out, sparse_rows
from contracts.graph import NeighbourCount, mutual_neighbours, near_cells
from contracts.plan import TUNING
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

import rffpk
from rffpk import DiffusionMap, DiffusionPowerKMeans, _core, _reference

COUNT = NeighbourCount(None)


def gaussians(n, d, k=10, apart=1.0, seed=0, dtype=np.float32):
    random = np.random.default_rng(seed)
    centers = apart * random.standard_normal((k, d))
    return (centers[random.integers(k, size=n)] + random.standard_normal((n, d))).astype(dtype)


def cells_of(points, n_threads=1):
    def centers(x, start):
        return KMeans(len(start), init=start, max_iter=2).fit(x).cluster_centers_

    return near_cells(points, centers, n_threads)[0]


def given(n, m, d, c, p, dtype, seed=0):
    """Return arguments of the search, for cells of random sizes around any centers."""
    random = np.random.default_rng(seed)
    x, points = (random.standard_normal((k, d)).astype(dtype) for k in (n, m))
    centers = random.standard_normal((c, d)).astype(dtype)
    cell = np.sort(random.integers(c, size=m))
    order = random.permutation(m)
    blocks = laid_out(points, centers, order, np.searchsorted(cell, np.arange(c + 1)))
    visits = np.array([random.permutation(c)[:p] for _ in range(n)], dtype=np.int32)
    return x, points, (centers, *blocks, visits, random.permutation(n))


@pytest.mark.parametrize(("n", "m", "d", "c", "p", "r"), [
    (700, 900, 7, 12, 3, 5), (300, 2000, 33, 5, 5, 130), (5, 70, 1, 1, 1, 1), (9, 40, 16, 9, 2, 9),
])  # fmt: skip
def test_the_search_is_that_of_its_twin(isa, dtype, n, m, d, c, p, r):
    x, points, others = given(n, m, d, c, p, dtype)
    by_one, by_three = (_core.nearest_in_cells(x, *others, r, threads) for threads in (1, 3))
    assert_array_equal(by_one, by_three)
    twin = _reference.nearest_in_cells(x, *others, r)
    assert_array_equal(by_one < 0, twin < 0)
    squares, expected = (
        np.where(index < 0, np.inf, _reference.squares_of_pairs(x, points, index))
        for index in (by_one, twin)
    )
    assert_array_equal(squares[:, 0], squares.min(axis=1))
    eps = np.finfo(dtype).eps
    assert_allclose(np.sort(squares), np.sort(expected), atol=100 * d * eps, rtol=100 * eps)


def test_of_equal_points_the_first_ones_are_kept(isa, dtype):
    x, points, visits = np.zeros((3, 2), dtype), np.ones((150, 2), dtype), np.zeros((3, 1), "i4")
    blocks = laid_out(points, x[:1], np.arange(150), np.array([0, 150]))
    found = _core.nearest_in_cells(x, x[:1], *blocks, visits, np.arange(3), 64, 1)
    assert_array_equal(found, np.tile(np.arange(64), (3, 1)))


@pytest.mark.parametrize(("n", "d", "r"), [(2500, 50, 7), (3, 1, 4), (40, 17, 1)])
def test_distances_of_pairs_are_those_of_the_twin(isa, dtype, n, d, r):
    random = np.random.default_rng(0)
    points = random.standard_normal((90, d)).astype(dtype)
    x = points[random.integers(90, size=n)]
    index = random.integers(90, size=(n, r)).astype(np.int32)
    found, by_three = (_core.squares_of_pairs(x, points, index, threads) for threads in (1, 3))
    assert_array_equal(found, by_three)
    expected = _reference.squares_of_pairs(x, points, index)
    assert_allclose(found, expected, rtol=100 * np.finfo(dtype).eps)
    assert_array_equal(found == 0, (x[:, None] == points[index]).all(axis=2))


@pytest.mark.parametrize("d", [6, 100])
def test_a_row_has_the_same_neighbours_whatever_other_rows_there_are(dtype, d):
    points, x = gaussians(3000, d, dtype=dtype), gaussians(900, d, seed=1, dtype=dtype)
    cells = cells_of(points)
    for one, other in zip(vars(cells).values(), vars(cells_of(points, 3)).values()):
        assert_array_equal(one, other)
    found = cells.nearest(points, x, 20, 1)
    random = np.random.default_rng(2)
    for some, n_threads in ((slice(None), 3), (random.permutation(900)[:333], 1), ([0], 1)):
        assert_array_equal(found[some], cells.nearest(points, x[some], 20, n_threads))


@pytest.mark.parametrize("d", [6, 100])
def test_cells_without_some_points_find_the_others(d):
    points = gaussians(4000, d)
    kept = np.random.default_rng(0).random(4000) < 0.6
    cells, numbers = cells_of(points), np.flatnonzero(kept)
    along = points if cells.points is None else cells.points

    def by_distance(index):
        squares = _reference.squares_of_pairs(along, along, index)
        return np.take_along_axis(index, np.argsort(squares, axis=1), axis=1)

    neighbors = cells.of(kept).nearest(points[kept], points, 9, 1)
    assert_array_equal(neighbors[kept, 0], np.arange(len(numbers)))
    nearest = by_distance(cells.nearest(points, points, 40, 1))
    neighbors = by_distance(numbers[neighbors])
    for row in range(0, 4000, 100):  # the first ones that are left
        left = nearest[row][kept[nearest[row]]][:9]
        assert_array_equal(neighbors[row][: len(left)], left)


def recall(index, nodes, rows):
    """Compute the share of the nearest nodes of the rows that `index` contains."""
    nodes, r = nodes.astype(np.float64), index.shape[1]
    squares = _reference.squared_distances(nodes[rows], nodes)
    last = np.partition(squares, r - 1, axis=1)[:, r - 1 : r]
    return float((np.take_along_axis(squares, index, axis=1) <= last * (1 + 1e-5)).mean())


@pytest.mark.parametrize("n", [19_999, 20_000])
@pytest.mark.parametrize(
    ("d", "apart", "least"),
    [(8, 0.0, 0.97), (20, 2.0, 0.97), (50, 1.0, 0.75), (100, 2.0, 0.8)],
)
def test_few_rows_are_all_compared_and_of_many_most_neighbours_are_found(n, d, apart, least):
    nodes = gaussians(n, min(d, 50), apart=apart)
    if d > 50:  # of more columns components are compared
        nodes = nodes @ np.random.default_rng(1).standard_normal((50, d)).astype(np.float32)
    found = mutual_neighbours(nodes, np.ones(n), COUNT, 1)[0]
    assert (found.cells is None) == (n < 20_000)
    rows = np.arange(0, n, 100)
    index = found.chosen(nodes[rows])
    squares = ((nodes[rows][:, None] - nodes[index]) ** 2).sum(axis=2)
    assert_array_equal(index[np.arange(len(rows)), squares.argmin(axis=1)], rows)
    assert recall(index, nodes, rows) >= (1 - 1e-9 if n < 20_000 else least)


def test_sparse_rows_few_columns_and_many_neighbours_have_no_cells(tuning):
    tuning(search__cell_landmarks=500)
    few, many = gaussians(600, 4), gaussians(600, 5)
    nodes, most = gaussians(2000, 5), TUNING.search.cell_visits * TUNING.search.cell_points // 4
    for rows, count, there in (
        (few, None, False), (many, None, True), (sparse_rows(csr_array(many)), None, False),
        (nodes, most, True), (nodes, most + 1, False),
    ):  # fmt: skip
        found, *_ = mutual_neighbours(rows, np.ones(rows.shape[0]), NeighbourCount(count), 1)
        assert (found.cells is not None) == there


def test_rows_whose_cells_have_too_few_points_are_compared_with_all(tuning):
    tuning(search__cell_landmarks=500, search__cell_visits=1)
    nodes = gaussians(3000, 6)
    found = mutual_neighbours(nodes, np.ones(3000), NeighbourCount(700), 1)[0]
    exact = replace(found, cells=None)
    assert_array_equal(np.sort(found.chosen(nodes[:40])), np.sort(exact.chosen(nodes[:40])))


def test_fits_with_cells_find_the_clusters_and_predict_their_labels(tuning, tmp_path, dtype):
    tuning(search__cell_landmarks=3000)
    X, y = make_blobs(4000, 12, centers=5, random_state=0)
    X = X.astype(dtype)
    models = [DiffusionPowerKMeans(5, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 3)]
    for model in models:
        assert len(np.unique(y * 5 + model.labels_)) == 5
        assert_array_equal(model.labels_, models[0].labels_)
        assert_array_equal(model.predict(X), model.labels_)
    assert models[0].feature_map_._space.neighborhoods.cells is not None
    rffpk.save(models[0], tmp_path / "model.safetensors")
    loaded = rffpk.load(tmp_path / "model.safetensors")
    new = make_blobs(500, 12, centers=5, random_state=0)[0].astype(dtype) + 0.3
    assert_array_equal(loaded.transform(new), models[1].transform(new))


@pytest.mark.parametrize("d", [6, 100])
def test_neighbours_far_from_the_origin_are_found(d):
    points = gaussians(3000, d) + np.float32(3000)
    found = cells_of(points).nearest(points, points, 1, 1)
    assert_array_equal(found[:, 0], np.arange(3000))


@pytest.mark.parametrize("d", [6, 100])
@pytest.mark.parametrize(("fitted", "new"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_rows_of_the_other_precision_have_the_same_features(tuning, d, fitted, new):
    tuning(search__cell_landmarks=2000)
    X, x = gaussians(2500, d, apart=2.0), gaussians(200, d, apart=2.0, seed=1)
    model = DiffusionMap(3, time=10.0, random_state=0).fit(X.astype(fitted))
    features = model.transform(x.astype(new))
    assert features.dtype == new
    assert_allclose(features, model.transform(x.astype(fitted)), rtol=0.05, atol=1e-3)

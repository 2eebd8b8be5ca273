"""Landmark features: the compiled pass against its twin, and both against the definition."""

from dataclasses import replace

import numpy as np
import pytest
from contracts.core import Landmarks
from contracts.graph import Neighbourhoods
from contracts.passes import passes, unshifted
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from passes import make_rows, one_pass, shifted_features
from scipy.spatial.distance import cdist
from test_pass import assert_close, assert_same_pass

from rffpk import _core, _reference

NEAR = ("neighbours", "neighbour_weights")


def definition(x, landmarks):
    """Compute weights of all landmarks, (n, m), in float64 and without shortcuts."""
    squares = cdist(x, landmarks.points, "sqeuclidean")
    z = np.zeros(squares.shape)
    for row, d in enumerate(squares):
        at = np.argsort(d, kind="stable")[: landmarks.n_neighbours]
        scale = landmarks.scale or (1 / (2 * d[at].mean()) if d[at].any() else 1)
        z[row, at] = np.exp(-scale * (d[at] - d[at].min()))
        z[row, z[row] < 1e-7] = 0
    return z / z.sum(axis=1, keepdims=True)


def draw(n, d, m, r, q, dtype, seed=0, scale=0.0):
    rng = np.random.default_rng(seed)
    points, coordinates = rng.standard_normal((m, d)), rng.standard_normal((m, q))
    landmarks = Landmarks(points.astype(dtype), r, scale, coordinates.astype(dtype))
    return rng.standard_normal((n, d)).astype(dtype), landmarks


def clear(x, landmarks):
    """Return rows whose neighbors, and their order, do not depend on rounding."""
    d = np.sort(squared_distances(x, landmarks.points), axis=1)
    size = (np.linalg.norm(x, axis=1) + np.linalg.norm(landmarks.points, axis=1).max()) ** 2
    gaps = np.diff(d[:, : landmarks.n_neighbours + 1], axis=1).min(axis=1, initial=np.inf)
    return gaps > 100 * np.finfo(x.dtype).eps * size


def unshifted_rows(x, landmarks):
    return make_rows([x], [landmarks], None, 2, [np.zeros(landmarks.coordinates.shape[1], x.dtype)])


def neighbours(x, landmarks, backend=None, want=NEAR):
    rows = unshifted_rows(x, landmarks)
    out = one_pass(rows, np.zeros((1, len(rows.shift))), -np.inf, want, backend)[1]
    return [out[name] for name in want]


def squared_distances(x, points):
    return _reference.squared_distances(x.astype(np.float64), points.astype(np.float64))


def nearest(x, points, r):
    """Return the nearest points of each row, the first of equals first."""
    return np.argsort(squared_distances(x, points), axis=1, kind="stable")[:, :r]


def dense(at, weights, m):
    z = np.zeros((len(at), m))
    np.add.at(z, (np.arange(len(at))[:, None], at), weights)
    return z


sizes = st.tuples(st.integers(1, 600), st.integers(1, 40), st.integers(1, 220), st.integers(0, 20))


@given(sizes, st.integers(1, 64), st.sampled_from([0.0, 0.3, 2.0]), st.integers(0, 2**31))
@example((300, 7, 95, 3), 5, 0.0, 0)  # about the edges of blocks
@example((300, 7, 96, 3), 5, 0.0, 0)
@example((300, 7, 97, 3), 5, 0.0, 0)
@example((300, 7, 192, 3), 5, 0.0, 0)
@example((70, 3, 1, 4), 1, 0.0, 0)
def test_core_agrees_with_its_twin_on_random_shapes(isa, dtype, size, r, scale, seed):
    n, d, m, q = size
    x, landmarks = draw(n, d, m, min(r, m), q, dtype, seed, scale)
    x = x[clear(x, landmarks)]
    if not len(x):
        return
    want = (*NEAR, "features") if q else NEAR
    ours, twin = (neighbours(x, landmarks, name, want) for name in ("core", "numpy"))
    assert_array_equal(ours[0], twin[0])
    assert_close(ours[1], twin[1], dtype, 1.0)
    if q:
        assert_close(ours[2], twin[2], dtype, float(abs(landmarks.coordinates).max()))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("s", [-1.0, -2.5, -np.inf])
def test_views_of_all_kinds_in_one_pass(isa, dtype, s, weighted):
    rng = np.random.default_rng(1)
    a, first = draw(900, 5, 150, 4, 7, dtype, 1)
    b, second = draw(900, 23, 17, 16, 19, dtype, 2, 0.1)
    keep = clear(a, first) & clear(b, second)
    assert keep.mean() > 0.9
    c, e = (rng.standard_normal((900, d)).astype(dtype) for d in (6, 3))
    xs = [x[keep] for x in (a, c, b, e)]
    omega = rng.standard_normal((6, 9)).astype(dtype)
    weight = rng.uniform(0.1, 3, len(xs[0])) if weighted else None
    rows = make_rows(xs, [first, omega, second, None], weight, 2)
    rows = replace(rows, alpha=np.array([0.1, 0.2, 0.4, 0.3]))
    theta = rng.standard_normal((6, 7 + 18 + 19 + 3))
    assert_same_pass(rows, theta, s)
    at, expected = (one_pass(rows, theta, s, want=NEAR, backend=b)[1] for b in ("core", "numpy"))
    assert at["neighbours"].shape == (rows.n, 20)
    assert_array_equal(at["neighbours"], expected["neighbours"])
    assert_close(at["neighbour_weights"], expected["neighbour_weights"], dtype, 1.0)


@pytest.mark.parametrize("r", [1, 3, 8, 9, 16])
@pytest.mark.parametrize("scale", [0.0, 0.7])
def test_features_are_those_of_the_definition(implementation, r, scale):
    x, landmarks = draw(300, 4, 16, r, 5, np.float64, scale=scale)
    z = definition(x, landmarks)
    assert_allclose(dense(*neighbours(x, landmarks), 16), z, atol=1e-12)
    rows = make_rows([x], [landmarks], None, 1)
    assert_allclose(shifted_features(rows) + rows.shift, z @ landmarks.coordinates, atol=1e-12)
    assert_allclose(rows.shift, (z @ landmarks.coordinates).mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("r", [1, 4, 5, 12])
def test_of_equally_near_landmarks_the_first_ones_count(implementation, dtype, r):
    """On a grid of whole numbers, with landmarks that are there twice and rows on landmarks."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 4, (120, 3)).astype(dtype)
    x = rng.integers(-1, 5, (400, 3)).astype(dtype)
    landmarks = Landmarks(points, r, 0.0, points)
    at, weights = neighbours(x, landmarks)
    assert_array_equal(at, nearest(x, points, r))
    assert_close(dense(at, weights, 120), definition(x, landmarks), dtype, 1.0)


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_far_rows_have_finite_features_of_their_nearest_landmarks(implementation, dtype, scale):
    x, landmarks = draw(200, 3, 50, 5, 4, dtype, scale=scale)
    x *= 1000
    x = x[clear(x, landmarks)]
    assert len(x) > 100
    at, weights = neighbours(x, landmarks)
    assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    # exponents are known to eps scale ||x||^2
    unit = 1 + scale * float((x.astype(np.float64) ** 2).sum(axis=1).max())
    assert_close(dense(at, weights, 50), definition(x, landmarks), dtype, unit)


def test_tight_clusters_far_apart_keep_their_weights(implementation):
    """Squared distances of 1e-6 beside squared norms of 1 and more, in float32."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((10, 5))
    points, x = (
        np.float32(centers + 1e-3 * rng.standard_normal((n, 10, 5))).reshape(-1, 5) for n in (3, 20)
    )
    landmarks = Landmarks(points, 3, 0.0, points)
    at, weights = neighbours(x, landmarks)
    assert_allclose(dense(at, weights, 30), definition(x, landmarks), atol=1e-5)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_tree_finds_the_neighbours_of_passes(dtype, n_threads, tuning):
    points, x = (np.random.default_rng(i).standard_normal((900, 3)).astype(dtype) for i in (0, 1))
    found = [Neighbourhoods(points, r, 0.0, n_threads) for r in (1, 5, 80)]
    expected = [each._nearest(x) for each in found]
    tuning(search__tree_landmarks=900)
    for each, known in zip(found, expected):
        for part, same in zip(each._nearest(x), known):
            assert_array_equal(part, same)


def test_distances_that_overflow_are_named_behind_a_tree_too(tuning):
    tuning(search__tree_landmarks=1)
    X = 1e160 * np.random.default_rng(0).standard_normal((300, 2))
    with pytest.raises(ValueError, match="overflow"):
        Neighbourhoods(X, 5, 1.0, 1).weights(X)


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("r", [1, 5, 80])
def test_neighbours_within_tight_groups_are_found(isa, dtype, r, d):
    """Products of rows in a tight group that is far from the rest cancel.

    In 40 columns, products in single precision come first. They suffice for rows outside of groups.
    """
    random = np.random.default_rng(0)
    centers = 1000 * random.standard_normal((4, d))
    points, x = (
        (centers[np.arange(n) % 4] + 0.1 * random.standard_normal((n, d))).astype(dtype)
        for n in (600, 300)
    )
    x = np.r_[x, 1e3 * random.standard_normal((50, d))].astype(dtype)  # and rows far from all
    squares = squared_distances(x, points)
    found = Neighbourhoods(points, r, 0.0, 1).chosen(x)
    chosen = np.sort(np.take_along_axis(squares, found, axis=1), axis=1)
    parts = np.full((len(x), 1), {"f": 2**-7, "d": 1e-6}[dtype.char])
    parts[300:] = max(parts[0, 0], 2**-10 if d == 40 else 0)
    least = np.sort(squares, axis=1)[:, :r]
    assert (abs(chosen - least) <= parts * least).all()


@pytest.mark.parametrize("r", [3, 64])
def test_weights_below_the_limit_are_zero(implementation, dtype, r):
    """Two landmarks on either side of the limit, and far ones; more neighbours than the pass keeps
    have the same rule."""
    bandwidth = 0.7
    away = np.sqrt(-2 * bandwidth * np.log(np.array([1, 0.5, 2, 0.5]) * [1, 1, 1e-7, 1e-7]))
    points = np.concatenate([away, 50 + np.arange(70)])[:, None].astype(dtype)
    near = Neighbourhoods(points, r + 1, bandwidth, 1)
    z = near.weights(np.zeros((5, 1), dtype)).toarray()
    assert_allclose(z[:, :3], np.tile([2 / 3, 1 / 3, 4e-7 / 3], (5, 1)), rtol=1e-4)
    assert_array_equal(z[:, 3:], 0)


def test_a_limit_of_zero_keeps_all_weights(implementation, dtype):
    x, landmarks = draw(50, 2, 20, 8, 0, dtype, scale=20.0)
    assert (neighbours(x, landmarks)[1] == 0).any()
    assert (neighbours(x[:1], replace(landmarks, scale=1.0, least_weight=0.0))[1] > 0).all()
    assert (neighbours(x[:1], replace(landmarks, scale=1.0, least_weight=0.5))[1] == 0).any()


def test_the_core_refuses_landmarks_that_do_not_fit():
    x, c = np.zeros((4, 2)), np.zeros(2)
    good = Landmarks(np.zeros((20, 2)), 4, 0.0, np.zeros((20, 2)))

    def run(landmarks, omega=None, **outputs):
        arguments = [x], [omega], [c], x[:1], np.ones(1), None, _core.HARD, -1.0, 1
        _core.fused_pass(*arguments, landmarks=[landmarks], **outputs)

    run(good)
    for name in ("points", "coordinates"):
        for wrong in (np.zeros((20, 2), "f"), np.zeros((20, 3))):
            with pytest.raises(ValueError, match="must be an aligned C-contiguous"):
                run(replace(good, **{name: wrong}))
    with pytest.raises(ValueError, match=r"omegas\[0\] must be None"):
        run(good, omega=np.zeros((2, 1)))
    with pytest.raises(ValueError, match="neighbours must be"):
        run(good, neighbours=np.zeros((4, 3), np.int32))
    for number, m, largest in ((0, 20, 20), (21, 20, 20), (65, 80, 64), (4, 3, 3)):
        with pytest.raises(ValueError, match=f"n_neighbours={number}: must be from 1 to {largest}"):
            run(Landmarks(np.zeros((m, 2)), number, 0.0, np.zeros((m, 2))))


@pytest.mark.parametrize(("m", "d", "r"), [(700, 2, 8), (1500, 7, 3), (9700, 3, 5)])
@pytest.mark.parametrize("far", [0.0, 30.0])
def test_parts_that_are_left_out_have_none_of_the_nearest(isa, dtype, m, d, r, far):
    rng = np.random.default_rng(0)
    centers = far * rng.standard_normal((6, d))
    points, x = (np.repeat(centers, k // 6 + 1, axis=0)[:k] for k in (m, 500))
    # whole numbers: many landmarks are equally near, and the first equal landmarks are taken
    points, x = (np.rint(a + 3 * rng.standard_normal(a.shape)).astype(dtype) for a in (points, x))
    order = np.argsort(points[:, 0], kind="stable") if not far else np.arange(m)
    for each in (points[order], rng.permutation(points)):
        landmarks = Landmarks(each, r, 0.1, np.zeros((m, 0), dtype))
        assert_array_equal(neighbours(x, landmarks)[0], nearest(x, each, r))


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize(("m", "d"), [(1000, 3), (900, 20)])
def test_rounding_leaves_out_no_part_that_is_needed(isa, dtype, offset, m, d):
    rng = np.random.default_rng(0)
    points = offset + np.repeat(rng.standard_normal((10, d)), m // 10, axis=0)
    points = (points + 0.1 * rng.standard_normal(points.shape)).astype(dtype)
    x = (points[:500] + 0.03 * rng.standard_normal((500, d))).astype(dtype)
    found = neighbours(x, Landmarks(points, 8, 0.1, np.zeros((m, 0), dtype)))[0]
    squares = cdist(x, points, "sqeuclidean")
    taken, least = (np.sort(each) for each in (np.take_along_axis(squares, found, 1), squares))
    assert_allclose(taken, least[:, :8], rtol=100 * np.finfo(dtype).eps)


def islands(n, d, m, dtype, apart, offset=0.0):
    """Return rows of four groups, and landmarks with one line of coordinates a group."""
    rng = np.random.default_rng(0)
    centers = offset + apart * rng.standard_normal((4, d))
    group = np.sort(rng.integers(4, size=m))
    points = centers[group] + rng.standard_normal((m, d))
    x = centers[rng.integers(4, size=n)] + rng.standard_normal((n, d))
    x[::50] = centers.mean(axis=0) + apart * rng.standard_normal((len(x[::50]), d))  # between
    lines = rng.standard_normal((4, 3))
    return x.astype(dtype), Landmarks(points.astype(dtype), 8, 0.1, lines[group].astype(dtype))


@pytest.mark.parametrize(("n", "m", "d"), [(1000, 289, 128), (999, 289, 5), (1000, 288, 5),
                                           (1000, 289, 129), (1001, 290, 127)])  # fmt: skip
@pytest.mark.parametrize("apart", [0.0, 30.0])
def test_features_are_the_same_where_rows_begin_and_cease_to_be_ordered(isa, dtype, n, m, d, apart):
    x, landmarks = islands(n, d, m, dtype, apart)
    assert (passes.parts_of(landmarks, x) is not None) == (n >= 1000 and m >= 289 and d <= 128)
    assert_array_equal(unshifted(x, landmarks, 1), shifted_features(unshifted_rows(x, landmarks)))
    found = Neighbourhoods(landmarks.points, 8, 5.0, 1).weights(x)
    some = np.array([0, 7, n - 1])
    alone = Neighbourhoods(landmarks.points, 8, 5.0, 1).weights(x[some])
    assert_array_equal(found[some].toarray(), alone.toarray())


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("apart", [0.5, 3.0, 10.0, 100.0])
@pytest.mark.parametrize("d", [2, 20])
def test_rows_without_a_search_have_the_features_of_one(isa, dtype, d, apart, offset, monkeypatch):
    x, landmarks = islands(4000, d, 700, dtype, apart, offset)
    searched, real = [], passes.shifted_features
    monkeypatch.setattr(passes, "shifted_features", lambda r: searched.append(r.n) or real(r))
    found = unshifted(x, landmarks, 1)
    assert_array_equal(found, shifted_features(unshifted_rows(x, landmarks)))
    assert sum(searched) < 1000 or apart < 100 or (offset and dtype == np.float32)


def test_landmarks_of_the_same_coordinates_give_just_these(dtype, backend):
    x, landmarks = draw(300, 4, 40, 7, 3, dtype)
    alike = replace(landmarks, coordinates=np.repeat(landmarks.coordinates[:1], 40, axis=0))
    found = shifted_features(unshifted_rows(x, alike))
    assert_array_equal(found, alike.coordinates[:1].repeat(300, axis=0))


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e200])
def test_rows_that_overflow_are_not_taken_for_near_ones(value):
    x, landmarks = islands(2000, 3, 400, np.float64, 100.0)
    x[5] = value
    with np.errstate(all="ignore"):
        found = unshifted(x, landmarks, 1)
    assert not np.isfinite(found[5]).all()
    assert np.isfinite(np.delete(found, 5, axis=0)).all()


def test_too_few_landmarks_of_a_group_have_no_reach():
    """Rows near a group of fewer landmarks than neighbors see other landmarks, too."""
    x, landmarks = islands(2000, 3, 400, np.float64, 100.0)
    points = np.r_[landmarks.points, [[1e3] * 3] * 3]
    coordinates = np.r_[landmarks.coordinates, [[9.0] * 3] * 3]
    landmarks = replace(landmarks, points=points, coordinates=coordinates, scale=1e-9)
    x[:500] = 1e3
    found = unshifted(x, landmarks, 1)
    assert_array_equal(found, shifted_features(unshifted_rows(x, landmarks)))
    assert (found[:500] < 8).all()

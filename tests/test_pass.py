"""The fused pass: the compiled core against its twin, and both against the formulas."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import oracles
import pytest
from contracts.core import Fourier
from contracts.passes import make_rows as shifted_rows
from contracts.passes import one_pass as one_pass_of_fits
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from passes import PART, assert_digits, make_rows, one_pass, power_constant, tight_groups
from sklearn.base import clone

from rffpk import (
    Annealing,
    DiffusionMap,
    PowerKMeans,
    RandomFourierFeatures,
    RFFMultiKernelPowerKMeans,
    _core,
    _reference,
)

OUTPUTS = ("labels", "memberships", "distances", "nearest", "second", "features")


def problem(n, dims, k, dtype, seed=0, weighted=False, n_threads=1, spread=1.0):
    """Draw random views; a positive number of frequencies makes a view Fourier, 0 identity."""
    rng = np.random.default_rng(seed)
    xs = [rng.standard_normal((n, d)).astype(dtype) for d, _ in dims]
    omegas = [rng.standard_normal((d, D)).astype(dtype) for d, D in dims]
    maps = [omega if omega.size else None for omega in omegas]
    weight = rng.uniform(0.1, 3, n) if weighted else None
    rows = make_rows(xs, maps, weight, n_threads)
    theta = spread * rng.standard_normal((k, len(rows.shift)))
    return replace(rows, alpha=rng.dirichlet(np.ones(len(dims)))), theta


def assert_close(actual, expected, dtype, unit=0.0, s=0.0, name=""):
    """Compare with the tolerance of the dtype, relative to the largest entry or to `unit`."""
    scale = max(unit, float(np.max(np.abs(expected), initial=0)))
    tolerance = _reference.TOLERANCE[np.dtype(dtype)] * (1 + (abs(s) if np.isfinite(s) else 0))
    assert_allclose(actual, expected, rtol=0, atol=tolerance * scale, err_msg=name)


def assert_same_pass(rows, theta, s):
    # typicality raises ratios of distances to the power 1/(m-1), and their errors with them
    steep = s if rows.eta is None else (abs(s) if np.isfinite(s) else 0) + 1 / (rows.m - 1)
    _, exact = one_pass(rows, theta, s, want=("nearest", "second", "features"), backend="numpy")
    # A result that cancels to zero has the rounding errors of its terms.
    length = float(np.linalg.norm(exact["features"] + rows.shift, axis=1).max())
    square = (length + np.linalg.norm(rows.shift)) ** 2
    # Rows that are too close to a centroid for accurate weights are not compared.
    clear = exact["nearest"] > 0.01 * square
    if np.isinf(s):  # nor are ties, as of rows far away from all centroids with typicality
        clear &= exact["second"] > (1 + 1e-4) * exact["nearest"]
    weight = np.where(clear, 1 if rows.weight is None else rows.weight, 0).astype(rows.dtype)
    rows = replace(rows, weight=weight)
    ours, outputs = one_pass(rows, theta, s, want=OUTPUTS, backend="core")
    twin, expected = one_pass(rows, theta, s, want=OUTPUTS, backend="numpy")
    total = rows.total_weight
    units = {
        "N": (total * length, steep), "G": (total, steep), "Q": (total * square, steep),
        "E": (total, steep), "soft": (total * square, steep), "hard": (total * square, steep),
        "features": (length, 0), "distances": (square, 0), "nearest": (square, steep),
        "second": (square, steep),
    }  # fmt: skip
    found, known = {**ours._asdict(), **outputs}, {**twin._asdict(), **expected}
    for name, (unit, power) in units.items():
        if name != "second" or len(theta) > 1:
            assert_close(found[name], known[name], rows.dtype, unit, power, name)
    assert all(outputs[name].dtype == rows.dtype for name in OUTPUTS[1:])
    shares = (out["memberships"][clear] for out in (outputs, expected))
    assert_close(*shares, rows.dtype, 1, steep)
    # Labels agree, except for ties up to rounding.
    seen = expected["distances"]
    if rows.eta is not None:
        seen = oracles.typical_distances(seen, rows.combined(rows.eta), rows.m)[1]
    picked = np.take_along_axis(seen, outputs["labels"][:, None], 1)[:, 0]
    assert_close(picked, expected["nearest"], rows.dtype, square, 0, "labels")


def assert_same_bits(found, expected, names=None):
    for name in names or expected:
        assert_array_equal(found[name], expected[name], err_msg=name)


shapes = st.tuples(
    st.integers(1, 600),
    st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=3),
    st.integers(1, 15) | st.integers(30, 40),  # from 32 on rows are added one by one
)


def without_some_views(rows, seed, share=0.3):
    """Remove views of the rows: NaN in the columns, where there are any."""
    random, L = np.random.default_rng(seed), len(rows.xs)
    lacks = random.random((rows.n, L)) < share
    lacks[np.arange(rows.n), random.integers(L, size=rows.n)] = False
    xs = [np.where(lack[:, None], x.dtype.type(np.nan), x) for x, lack in zip(rows.xs, lacks.T)]
    present = np.packbits(~lacks, axis=1, bitorder="little")
    return replace(rows, xs=xs, present=present), ~lacks


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("typical", [False, True])
@given(
    shapes,
    st.sampled_from([-0.2, -0.7, -1.0, -1.5, -5.0, -30.0, -np.inf]),
    st.sampled_from([1.2, 1.5, 2.0, 3.0]),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_core_agrees_with_its_twin(isa, dtype, typical, missing, shape, s, m, weighted, seed):
    n, dims, k = shape
    rows, theta = problem(n, dims, k, dtype, seed, weighted)
    if typical:
        eta = np.random.default_rng(seed).uniform(0.3, 3, (1 if missing else k, len(dims)))
        eta *= rows.variance if n > 1 else 1.0
        rows, s = replace(rows, eta=eta[0] if missing else eta, m=m), s if s != -30 else -3.0
    if missing:
        rows, _ = without_some_views(rows, seed)
    assert_same_pass(rows, theta, s)


EDGES = [(n, [(5, 7)], 4) for n in (1, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 2500)]
EDGES += [(700, dims, 9) for dims in ([(300, 1)], [(1, 700)], [(900, 0)], [(40, 600), (600, 0)])]
EDGES += [(300, [(6, 10)], k) for k in (1, 2, 5, 6, 7, 12, 13, 200)]


@pytest.mark.parametrize("n, dims, k", EDGES)
def test_core_agrees_with_its_twin_at_edges_of_tiles(isa, dtype, n, dims, k):
    for s in (-2.5, -np.inf):
        spread = {"spread": 1.0 if k == 4 else 0.1}
        assert_same_pass(*problem(n, dims, k, dtype, n, weighted=True, n_threads=2, **spread), s)


@pytest.mark.parametrize("n_views", [2, 8, 9, 17, 70])
def test_any_number_of_views_may_be_missing(implementation, n_views):
    """The sums equal the sums of passes over the rows of each pattern of views alone."""
    rows, theta = problem(150, [(2, 0)] * n_views, 4, np.float64, weighted=True)
    eta = np.random.default_rng(1).uniform(0.5, 2, n_views)
    rows, has = without_some_views(replace(rows, eta=eta, m=1.5), seed=n_views)
    sums, out = one_pass(rows, theta, -2.0, want=OUTPUTS)
    spread = np.repeat(has, rows.widths, axis=1)
    moments = [np.zeros_like(part) for part in sums[:4]]
    for i in range(rows.n):
        views = np.flatnonzero(has[i])
        one = replace(rows.take([i]), present=None, alpha=rows.alpha[views], eta=eta[views])
        of_views = {
            name: [getattr(one, name)[v] for v in views] for name in ("xs", "maps", "shifts")
        }
        alone = replace(one, **of_views)
        expected, outputs = one_pass(alone, theta[:, spread[i]], -2.0, want=OUTPUTS)
        moments[0][:, spread[i]] += expected.N
        moments[1][:, views] += expected.G[:, None]
        moments[2][:, views] += expected.Q
        moments[3][views] += expected.E.sum()
        for name in OUTPUTS[:-1]:
            assert_allclose(out[name][i], outputs[name][0], rtol=1e-9, err_msg=name)
        assert_allclose(out["features"][i, spread[i]], outputs["features"][0])
    assert not out["features"][~spread].any()
    for part, expected in zip(sums, moments):
        assert_allclose(part, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("offset", range(1, 8))
@pytest.mark.parametrize("view", [RandomFourierFeatures(9), DiffusionMap(2, n_landmarks=20)])
def test_arrays_of_a_model_may_be_parts_of_messages(dtype, offset, view):
    """Read-only, at any address."""
    X = np.random.default_rng(0).standard_normal((300, 4)).astype(dtype)
    view = clone(view).set_params(random_state=0)
    model = RFFMultiKernelPowerKMeans(3, kernels=["linear", view], random_state=0).fit([X, X])
    parts = []
    sent = pickle.dumps(model, protocol=5, buffer_callback=parts.append)
    moved = [memoryview(b"0" * offset + part.raw().tobytes())[offset:] for part in parts]
    received = pickle.loads(sent, buffers=moved)
    assert received.cluster_centers_.flags.aligned == (offset % dtype.itemsize == 0)
    assert_array_equal(received.transform([X, X]), model.transform([X, X]))
    assert_array_equal(received.predict([X, X]), model.labels_)


@pytest.mark.parametrize("m", [1.2, 1.5, 2.0, 3.0])
def test_typicality_is_that_of_the_paper(implementation, m):
    """One pass against the printed formulas: u of step 2, d~ of step 4, w of step 1."""
    rng = np.random.default_rng(0)
    rows, theta = problem(300, [(3, 6), (4, 0)], 5, np.float64, weighted=True)
    eta = rng.uniform(0.5, 2, (5, 2)) * rows.variance
    rows = replace(rows, eta=eta, m=m)
    sums, out = one_pass(rows, theta, -3.0, want=("distances", "features", "nearest"))
    u, typical = oracles.typical_distances(out["distances"], eta @ rows.alpha, m)
    w = oracles.kpkm_weights(typical, -3.0) * rows.weight[:, None]
    c = power_constant(5, -3.0)
    expected = oracles.power_mean(typical, -3.0) @ rows.weight
    assert_allclose(sums.objective(-3.0), expected, rtol=1e-10)
    assert_allclose(c * sums.N, (w * u**m).T @ out["features"], rtol=1e-9, atol=1e-9)
    assert_allclose(c * sums.G, (w * u**m).sum(axis=0), rtol=1e-10)
    assert_allclose(c * sums.E, (w * (1 - u) ** m).sum(axis=0), rtol=1e-10)
    assert_allclose(out["nearest"], typical.min(axis=1), rtol=1e-10)


@pytest.mark.parametrize("m, eta", [(1.01, 1e-4), (1.0001, 0.5), (6.0, 1e-30), (1.5, 1e30)])
def test_extreme_typicalities_neither_overflow_nor_vanish(implementation, dtype, m, eta):
    """The formulas in a form free of overflow, applied to the distances that the pass returns."""
    rows, theta = problem(200, [(4, 9)], 5, dtype)
    rows = replace(rows, eta=np.full((5, 1), eta), m=m)
    sums, out = one_pass(rows, theta, -2.0, want=("distances", "nearest"))
    d, steep = out["distances"].astype(float), 2 + 1 / (m - 1)
    e = np.exp(-np.abs(np.log(d / eta)) / (m - 1))
    small, large = e**m / (1 + e) ** m, 1 / (1 + e) ** m
    um, wm = np.where(d < eta, (large, small), (small, large))
    seen = np.minimum(d, eta) * (1 + e) ** (1 - m)
    v = oracles.kpkm_weights(seen / seen.max(), -2.0) / power_constant(5, -2.0)
    assert_close(out["nearest"], seen.min(axis=1), dtype, s=steep)
    assert_close(sums.G, (v * um).sum(axis=0), dtype, 1.0, steep)
    assert_close(sums.E, (v * wm).sum(axis=0), dtype, 1.0, steep)


@pytest.mark.parametrize("s", [-0.2, -0.5, -1.0, -4.0])
def test_one_pass_is_one_iteration_of_the_papers(implementation, dtype, s):
    """Of power k-means, and of fuzzy c-means with m = 1 - 1 / s."""
    rng = np.random.default_rng(1)
    X, omega = rng.standard_normal((400, 5)), rng.standard_normal((5, 12))
    p, m = rng.uniform(0.5, 2, 400), 1 - 1 / s
    rows = make_rows([X.astype(dtype)], [omega.astype(dtype)], p, 2)
    phi = oracles.rff(*(x.astype(dtype).astype(float) for x in (X, omega)))
    theta = phi[:6] + 0.05 * rng.standard_normal((6, 24))
    expected, objective = oracles.kpkm_step(phi, theta, s, p)
    sums, out = one_pass(rows, theta - rows.shift, s, want=("memberships",))
    assert_close(rows.centroids(sums, theta) + rows.shift, expected, dtype)
    assert_close(sums.objective(s), objective, dtype)
    u, squares = oracles.fcm_memberships(phi, theta, m), ((phi[:, None] - theta) ** 2).sum(axis=2)
    assert_close(out["memberships"], u, dtype, s=s)
    assert_close(sums.G, p @ u**m, dtype, s=s)
    assert_close(sums.soft, p @ (u**m * squares).sum(axis=1), dtype)


def test_the_hard_rule_is_an_iteration_of_lloyd(implementation, dtype):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 4)).astype(dtype)
    rows = make_rows([X], [None], None, 2)
    V = X[:7].astype(float)
    expected, labels = oracles.lloyd_step(X.astype(float), V)
    sums, out = one_pass(rows, V - rows.shift, -np.inf, want=("labels", "memberships"))
    assert_close(rows.centroids(sums, V) + rows.shift, expected, dtype)
    assert_array_equal(out["labels"], labels)
    assert_array_equal(out["memberships"], np.eye(7)[labels])
    assert_array_equal(sums.G, np.bincount(labels))


@pytest.mark.parametrize("k, dims", [(5, [(4, 6), (3, 0)]), (90, [(3, 0)])])
@pytest.mark.parametrize("s", [-1.0, -7.3, -np.inf])
def test_one_pass_has_the_sums_of_the_hard_rule_and_the_power_means(
    implementation, dtype, k, dims, s
):
    rows, theta = problem(700, dims, k, dtype, weighted=True, n_threads=2)
    want = ("labels", "memberships", "nearest")
    both, labels = one_pass(rows, theta, s, want=want, both=True)
    hard, expected = one_pass(rows, theta, -np.inf, want=want)
    power, _ = one_pass(rows, theta, s)
    assert_same_bits(both._asdict(), hard._asdict(), ("N", "G", "Q", "hard"))
    assert_same_bits(labels, expected)
    assert_allclose(both.soft, power.soft, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.promise(like="test_same_bits_for_any_number_of_jobs")
@given(shapes, st.sampled_from([-1.0, -2.3, -np.inf]), st.booleans(), st.integers(0, 2**31))
def test_same_bits_for_any_number_of_threads(dtype, shape, s, missing, seed):
    n, dims, k = shape
    rows, theta = problem(n * 13, dims, k, dtype, seed, weighted=True)
    if missing:
        rows, _ = without_some_views(rows, seed)
    first, *others = (
        one_pass(replace(rows, n_threads=number), theta, s, want=OUTPUTS) for number in (1, 2, 5)
    )
    for sums, out in others:
        assert_same_bits(sums._asdict() | out, first[0]._asdict() | first[1])


@pytest.mark.parametrize("s", [-0.2, -1.0, -3.0, -1000.0, -np.inf])
def test_rows_on_centroids_have_finite_weights(implementation, dtype, s):
    X = np.repeat(np.arange(12, dtype=dtype).reshape(4, 3) ** 2, 3, axis=0)
    rows = make_rows([X])
    theta = np.vstack([X[::3], X[:1]]) - rows.shift  # all distances zero somewhere, one twice
    sums, out = one_pass(rows, theta, s, want=("memberships", "distances"))
    assert all(np.isfinite(a).all() for a in (sums.N, sums.G, sums.Q, *out.values()))
    assert (out["distances"] >= 0).all()
    assert_allclose(out["memberships"].sum(axis=1), 1, rtol=1e-5)
    assert sums.soft <= 1e-3 * rows.variance * rows.n


def test_a_large_bandwidth_in_float32_labels_as_in_float64(implementation):
    """sigma = 1000, the RFF-KPKM paper's setting: squared distances near 1e-6."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((2000, 10))
    X[:, 0] += 6 * rng.integers(4, size=2000)
    omega = rng.standard_normal((10, 60)) / 1000
    labels = []
    for dtype in (np.float32, np.float64):
        rows = make_rows([X.astype(dtype)], [omega.astype(dtype)])
        theta = oracles.rff(X[:5], omega) - rows.shift.astype(np.float64)
        out = one_pass(rows, theta, -3.0, want=("labels", "distances"))[1]
        labels.append(out["labels"])
    assert out["distances"].max() < 1e-3
    # The first rows are the centroids. Elsewhere a label may change only at a tie to 1e-3.
    ordered = np.sort(out["distances"], axis=1)
    clear = ordered[:, 0] < (1 - 1e-3) * ordered[:, 1]
    assert clear.mean() > 0.98
    assert_array_equal(labels[0][clear], labels[1][clear])


@pytest.mark.parametrize("k", [2, 10_000])
def test_weights_do_not_overflow_at_the_largest_exponent(implementation, k):
    X = np.repeat(np.float32([[0], [1e-15], [1e15]]), 2, axis=1)
    rows = make_rows([X])
    theta = np.repeat(np.r_[0, np.linspace(1e-12, 1e12, k - 1)][:, None], 2, axis=1)
    for s in (-0.2, -1.0, -20.0):
        sums, out = one_pass(rows, theta, s, want=("memberships",))
        assert np.isfinite(sums.N).all() and np.isfinite(sums.soft)
        rounding = (k + 10) * np.finfo(np.float32).eps  # of a sum over the centroids
        assert_allclose(out["memberships"].sum(axis=1), 1, rtol=rounding)


@pytest.mark.parametrize(
    "s, share, dtype",
    [(-65536.0, 0.5, "f4"), (-65537.0, 1.0, "f4"), (-1e13, 0.5, "f8"), (-1e14, 1.0, "f8")],
)
def test_the_hard_rule_takes_over_where_the_power_mean_loses_its_digits(backend, s, share, dtype):
    """Then one of two equally near centroids has a row whole."""
    X = np.array([[-1], [-1], [1], [1]], dtype)
    model = PowerKMeans(2, init=X[1:3], annealing=Annealing(end=s)).fit(X)
    assert_array_equal(model.cluster_centers_, X[1:3])
    assert_array_equal(model.predict_proba(0 * X[:1]), [[share, 1 - share]])


def peak_of(call):
    """Return the largest number of bytes that a call takes at a time."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.promise("Memory", "The memory of a pass does not grow with the rows.")
def test_memory_does_not_grow_with_the_rows():
    random, peaks = np.random.default_rng(0), []
    omega = random.standard_normal((4, 32), dtype=np.float32)
    theta = random.standard_normal((20, 64))
    for n in (50_000, 400_000):
        X = random.standard_normal((n, 4), dtype=np.float32)
        rows = shifted_rows([X], [Fourier(omega)], None, 2)
        peaks.append(peak_of(lambda rows=rows: one_pass_of_fits(rows, theta, -2.0)))
    assert peaks[1] <= peaks[0] + 4096
    assert peaks[1] < 400_000 * 4  # less than one number for each row


@pytest.mark.promise(
    "Memory",
    "C-ordered float32 and float64 arrays are read in place, and no input is changed.",
)
def test_input_is_read_in_place_and_left_unchanged(tmp_path, dtype, tuning):
    tuning(sampling__rows=500)
    X = np.random.default_rng(0).standard_normal((40_000, 64)).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    mapped, kept, centers = np.load(tmp_path / "X.npy", mmap_mode="r"), X.copy(), []
    model = PowerKMeans(2, init=X[:2], annealing=Annealing(start=-1e9), sample=500)
    for rows in (X, mapped):
        assert peak_of(lambda rows=rows: model.fit(rows).predict(rows)) < X.nbytes / 2
        centers.append(model.cluster_centers_)
    assert_array_equal(X, kept)
    assert_array_equal(*centers)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("dims", [(5,), (3, 4)])
@pytest.mark.parametrize("s", [-2.0, -np.inf])
def test_distances_of_tight_groups_have_digits(implementation, dtype, dims, missing, s):
    """Rows whose distances are a small part of their squares, of which one view is missing."""
    x, theta = tight_groups(500, sum(dims), 12, dtype)
    xs = [np.ascontiguousarray(part) for part in np.split(x, np.cumsum(dims)[:-1], axis=1)]
    rows = make_rows(xs, [None] * len(xs), None, 1, [np.zeros(d, dtype) for d in dims])
    alpha = np.array([0.25, 0.75])[: len(dims)]
    rows = replace(rows, alpha=alpha if len(dims) > 1 else np.ones(1))
    has = np.ones((500, len(dims)), bool)
    if missing:
        rows, has = without_some_views(rows, 0)
    apart = (x[:, None].astype(float) - theta) ** 2 * np.repeat(rows.alpha, dims)
    exact = (apart * np.repeat(has, dims, axis=1)[:, None]).sum(axis=2)
    _, outputs = one_pass(rows, theta, s, want=OUTPUTS)
    assert_digits(exact, **{name: outputs[name] for name in ("labels", "nearest", "second")})
    part = PART[dtype.char]
    assert_allclose(outputs["distances"], exact, rtol=part)
    if np.isfinite(s):
        shares = exact**s / (exact**s).sum(axis=1, keepdims=True)
        assert_allclose(outputs["memberships"], shares, atol=2 * part)


@pytest.mark.parametrize(
    "kind", ["apart", "few distinct", "some are centroids", "far from the origin", "not finite"]
)
@pytest.mark.parametrize("k", [1, 31, 32, 33, 37, 300])
def test_the_nearest_of_many_centroids_are_the_same_bits_without_distances(isa, dtype, k, kind):
    """They are found in another way if no distances are asked for."""
    rows, theta = problem(333, [(7, 0)], k, dtype, weighted=True)
    [x] = rows.xs
    if kind == "few distinct":
        x[:] = x[np.random.default_rng(k).integers(9, size=333)]
    if kind in ("few distinct", "some are centroids"):
        theta[: k // 2] = x[: k // 2]
    if kind == "far from the origin":
        x += 10_000
    if kind == "not finite":
        theta[0] = np.inf if k % 2 else np.nan
        x[5] = -np.inf
    few = ("labels", "nearest")
    with np.errstate(invalid="ignore", over="ignore"):
        (sums, found), (expected, asked) = (
            one_pass(rows, theta, -np.inf, want=want) for want in (few, (*few, "distances"))
        )
    assert_same_bits(found, asked, few)
    assert_same_bits(sums._asdict(), expected._asdict())


X = np.arange(8.0).reshape(4, 2)
CROOKED = np.frombuffer(b"\0" * 65, dtype=np.float64, count=8, offset=1).reshape(4, 2)
FROZEN = np.zeros(4, dtype=np.int32)
FROZEN.flags.writeable = False
FOURIER = {"shifts": [np.zeros(4)], "theta": np.zeros((1, 4))}
TYPICAL = {"rule": _core.TYPICALITY, "m": 2.0}


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"xs": [X.astype(np.float32)]}, "must be"), ({"xs": [X.T]}, "must"),
        ({"xs": [CROOKED]}, "must be"), ({"omegas": [np.zeros((2, 0))]}, "must have"),
        ({"shifts": [X[0, :1]]}, "must|feat"), ({"theta": np.ones((1, 3))}, "must|feat"),
        ({"alpha": np.ones(2)}, "must be"), ({"labels": np.zeros(4)}, "labels must be"),
        ({"labels": FROZEN}, "labels must be"),
        ({"labels": np.zeros(4, np.int32), "stages": 1}, "stages"),
        ({"theta": X[:1].astype(int)}, "float32 or float64"), ({"rule": 4}, "rule"),
        *(({**FOURIER, "structures": [(signs, 1.0, 2)]}, r"structures\[0\] must") for signs in (
            np.ones((1, 3, 3), np.int8), np.ones((1, 3, 1), np.int8), np.ones((1, 3, 2)),
        )),
        *(({**TYPICAL, "eta": eta}, "eta must be") for eta in (
            None, np.ones(2), np.ones(1, np.float32),
        )),
        ({**TYPICAL, "eta": np.ones(1), "m": 1.0}, "m=1.0: must be > 1"),
    ],
)  # fmt: skip
def test_the_core_refuses_arguments_that_are_not_what_it_needs(wrong, message):
    right = {
        "xs": [X], "omegas": [None], "shifts": [X[0]], "theta": X[:1], "alpha": np.ones(1),
        "weight": None, "rule": _core.HARD, "s": -1.0, "n_threads": 1,
    }  # fmt: skip
    places = [wrong.get(name, value) for name, value in right.items()]
    options = {name: value for name, value in wrong.items() if name not in right}
    _core.fused_pass(*right.values())
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        _core.fused_pass(*places, **options)


def pass_with(theta):
    X = np.zeros((3, 1), theta.dtype)
    _core.fused_pass([X], [None], [X[0]], theta, np.ones(1), None, _core.HARD, 0.0, 1)


def weights_with(products):
    k = np.broadcast_to(products[0], len(products))
    _core.weigh_products(products, k[:1], k, None, _core.HARD, 0.0, 1, weights=products)


@pytest.mark.parametrize("call", [pass_with, weights_with])
@pytest.mark.parametrize("most, dtype", [(2**24, np.float32), (2**31 - 1, np.float64)])
def test_more_centroids_than_there_are_labels_are_refused(call, most, dtype):
    centroids = np.broadcast_to(np.zeros((1, 1), dtype), (most + 1, 1))  # one number in memory
    with pytest.raises(ValueError, match=f"n_clusters={most + 1}: must be <= {most} for float"):
        call(centroids)
    with pytest.raises(ValueError, match="must be an aligned C-contiguous"):  # the next check
        call(centroids[1:])


def test_the_instruction_sets_are_different_code():
    """The order of the sums follows the width of the vectors, so equal bits mean equal code."""
    rows, theta = problem(1000, [(7, 20)], 5, np.float32)
    before, results = _core.isa(), set()
    for level in _core.isa_levels():
        _core.use_isa(level)
        assert _core.isa() == level
        results.add(one_pass(rows, theta, -2.0, backend="core")[0].N.tobytes())
    assert _core.use_isa(before) == level
    assert len(results) == len(_core.isa_levels())
    with pytest.raises(ValueError, match="isa='x86-64-v9': must be one of"):
        _core.use_isa("x86-64-v9")
    assert _core.isa() == before

"""Rows without some of their views: the certificate, independent formulas, refusals."""

from dataclasses import replace

import numpy as np
import oracles
import pandas as pd
import pytest
from conventions import assert_never_rises
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from passes import make_rows, one_pass, shifted_features, take_steps
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import normalized_mutual_info_score

import rffpk
from rffpk import Annealing, MultiKernelPowerKMeans, RFFMultiKernelPowerKMeans, Typicality

K, N = 4, 500
MASKS = ["random", "blocks"]
GIVEN = {"annealing": Annealing(start=-2.0, factor=1.1, passes=3), "random_state": 0}


@pytest.fixture(scope="module")
def complete():
    """Return three views that separate the clusters together, and the classes."""
    random = np.random.default_rng(0)
    y = random.integers(K, size=N)
    return [
        np.eye(K)[y] @ random.standard_normal((K, d)) * 3 + random.standard_normal((N, d))
        for d in (3, 6, 12)
    ], y


def lacking(n, n_views, share, kind="random", seed=0):
    """Draw a mask (n, L) of the views that rows lack; each row has at least one view.

    Views are missing at random, or each row has one block of neighboring views.
    """
    random = np.random.default_rng(seed)
    lacks = random.random((n, n_views)) < share
    if kind == "blocks":
        first = random.integers(n_views, size=n)
        lacks = (np.arange(n_views) - first[:, None]) % n_views < n_views // 2
        lacks &= (random.random(n) < share)[:, None]
    lacks[np.arange(n), random.integers(n_views, size=n)] = False
    return lacks


def without(xs, lacks):
    return [np.where(lack[:, None], x.dtype.type(np.nan), x) for x, lack in zip(xs, lacks.T)]


@pytest.fixture(scope="module")
def views(complete):
    """Return views that no fit may change."""
    xs = without(complete[0], lacking(N, 3, 0.3))
    for x in xs:
        x.flags.writeable = False
    return xs


def model_of(n_clusters=K, allowed=True, **parameters):
    parameters = {"random_state": 0} | parameters
    return RFFMultiKernelPowerKMeans(n_clusters, allow_missing_views=allowed, **parameters)


def with_bits(rows):
    """Return the rows with bits for the views that are present, and equal view weights."""
    has = ~np.stack([np.isnan(x[:, 0]) for x in rows.xs], axis=1)
    coverage = rows.weight.astype(float) @ has / rows.total_weight
    present = np.packbits(has, axis=1, bitorder="little")
    alpha = np.full(len(rows.xs), 1 / coverage.sum())
    return replace(rows, present=present, coverage=coverage, alpha=alpha)


def masked_rows(dtype, typical, n=700):
    random = np.random.default_rng(0)
    xs = [(random.standard_normal((n, d)) + 3 * random.integers(0, 3, (n, 1))) for d in (4, 7, 2)]
    xs = without([x.astype(dtype) for x in xs], lacking(n, 3, 0.4))
    maps = [None, random.standard_normal((7, 9)).astype(dtype), None]
    shifts = [np.zeros(F, dtype) for F in (4, 18, 2)]
    rows = with_bits(make_rows(xs, maps, random.uniform(1, 4, n), 1, shifts))
    rows = replace(rows, eta=np.array([2.0, 0.5, 3.0]), m=1.7) if typical else rows
    return rows, shifted_features(rows)[:5].astype(float)


def steps(rows, theta, s=-2.0, most=1, **options):
    options = {"variance": 1.0, "close": (0.0, 0.0)} | options
    return take_steps(rows, theta, s, tol=-1.0, most=most, **options)


@pytest.mark.parametrize("kind", [*MASKS, "none"])
@pytest.mark.parametrize("m", [None, 1.2, 1.5, 2.0, 3.0])
def test_the_objective_never_rises(complete, m, kind):
    xs = complete[0] if kind == "none" else without(complete[0], lacking(N, 3, 0.4, kind))
    typicality = None if m is None else Typicality(m=m)
    model = model_of(weight_entropy=0.05, typicality=typicality, **GIVEN).fit(xs)
    assert_never_rises(model, 3 if kind == "none" else 10)
    assert np.ptp(model.kernel_weights_) > 0.01  # they were learned


@pytest.mark.promise(
    "Input",
    "Rows may lack views in fits and predictions. The objective falls at each step, and "
    "complete data give the bits of a fit without `allow_missing_views`.",
)
@settings(max_examples=40)
@given(
    st.integers(5, 60),
    st.lists(st.integers(1, 4), min_size=2, max_size=10),
    st.floats(0, 0.8),
    st.sampled_from([1e-4, 0.03, 1.0, 100.0]),
    st.booleans(),
    st.integers(0, 2**31),
)
@example(37, [1, 1, 3, 1, 1], 0.03125, 1e-4, True, 9078)  # views of equal features up to rounding
def test_the_objective_never_rises_on_random_masks(n, widths, share, entropy, typical, seed):
    random = np.random.default_rng(seed)
    xs = [random.standard_normal((n, d)) + 3 * random.integers(0, 3, (n, 1)) for d in widths]
    lacks = lacking(n, len(xs), share, seed=seed)
    lacks[:2] = False
    model = model_of(2, weight_entropy=entropy, typicality="auto" if typical else None, **GIVEN)
    model.fit(without(xs, lacks), sample_weight=random.uniform(1, 2, n))
    assert_never_rises(model)


@pytest.mark.parametrize("typical", [True, False])
@pytest.mark.parametrize("entropy", [0.03, 1.0, 10.0])
def test_view_weights_minimise_their_part_of_the_objective(backend, typical, entropy):
    """sum_l alpha_l c_l + lambda sum_l pi_l alpha_l log(...) with sum_l pi_l alpha_l = 1."""
    rows, theta = masked_rows(np.dtype(float), typical)
    entropy *= rows.total_weight
    moved = steps(rows, theta, entropy=entropy)
    sums, pi, edges = moved.sums, rows.coverage, np.cumsum([0, *rows.widths[:-1]])
    squares = np.add.reduceat(sums.N**2, edges, axis=1)
    costs = 5**0.5 * (sums.Q - squares / sums.G).sum(axis=0)
    if typical:
        costs += 5**0.5 * sums.E * rows.eta

    def objective(alpha):
        return alpha @ costs + entropy * (pi * alpha) @ np.log(alpha * pi.sum())

    alpha = moved.alphas[1]
    assert_allclose(pi @ alpha, 1)
    others = np.random.default_rng(0).dirichlet(np.ones(3), 500) / pi
    others = np.vstack([others, alpha + 1e-3 * (others - alpha)])
    assert objective(alpha) < min(map(objective, others))
    penalty = objective(rows.alpha) - rows.alpha @ costs
    assert_allclose(moved.steps[0].penalty, penalty, atol=1e-9)


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_view_weights_have_a_least_one(backend, scale):
    """With less, float32 would not hold the distances of a row that has no other view."""
    rows, theta = masked_rows(np.dtype(float), False)
    xs = [factor * rows.xs[0] for factor in (1, scale, 2 * scale)]
    rows = with_bits(replace(rows, xs=xs, maps=[None] * 3, shifts=[np.zeros(4)] * 3))
    moved = steps(rows, np.tile(theta[:, :4], 3), entropy=1e-3)
    assert_allclose(moved.alphas[1] @ rows.coverage, 1, rtol=1e-12)
    assert_array_equal(moved.alphas[1][1:], 1e-9)


@pytest.mark.promise(like="test_the_objective_never_rises_on_random_masks")
@pytest.mark.parametrize("possibilistic", [True, False])
@pytest.mark.parametrize("kernels", ["rbf", "linear", ["linear", "rbf", "linear"]])
@pytest.mark.parametrize("is_complete", [False, True])
def test_the_objective_is_that_of_the_formula(views, complete, kernels, possibilistic, is_complete):
    views, p = complete[0] if is_complete else views, np.random.default_rng(0).uniform(0.5, 2, N)
    typicality = "auto" if possibilistic else None
    model = model_of(kernels=kernels, typicality=typicality, annealing=Annealing(end=-3.0))
    model.set_params(allow_missing_views=not is_complete, weight_entropy=0.1)
    model.fit(views, sample_weight=p)
    assert np.ptp(model.kernel_weights_) > 0.01
    has = ~np.stack([np.isnan(x[:, 0]) for x in views], axis=1)
    pi = p @ has / p.sum()
    alpha = model.kernel_weights_ / (pi @ model.kernel_weights_)
    assert_allclose(model.kernel_weights_.sum(), 1)
    d, theta = np.zeros((N, K)), model.cluster_centers_
    for view, (x, each) in enumerate(zip(views, model.feature_maps_)):
        phi = getattr(each, "transform", each)(np.nan_to_num(x))
        own, theta = np.split(theta, [phi.shape[1]], axis=1)
        d += has[:, [view]] * alpha[view] * ((phi[:, None] - own) ** 2).sum(axis=2)
    a = has @ alpha
    assert_allclose(p @ a / p.sum(), 1)  # the mean weight of a row
    assert_allclose(model.transform(views), np.sqrt(d / a[:, None]), rtol=1e-6, atol=1e-6)
    cost = p @ (d / a[:, None]).min(axis=1)
    assert_allclose(model.score(views, sample_weight=p), -cost, rtol=1e-8)
    seen = d
    if possibilistic:
        eta = (has * alpha @ model.eta_)[:, None]
        u, seen = oracles.typical_distances(d, eta, 2.0)
        assert_allclose(model.predict_typicality(views), u, rtol=1e-6, atol=1e-9)
    penalty = model.lambda_ * (pi * alpha) @ np.log(alpha * pi.sum())
    expected = p @ oracles.power_mean(seen, -3.0) + penalty
    assert_allclose(model.objective_, expected, rtol=1e-8)
    shares = seen**-3.0 / (seen**-3.0).sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(views), shares, rtol=1e-5, atol=1e-9)
    assert_array_equal(model.labels_, seen.argmin(axis=1))


@pytest.mark.parametrize("s", [-0.7, -5.0, -np.inf])
@pytest.mark.parametrize("typical", [True, False])
def test_steps_are_those_of_the_twin(dtype, typical, s):
    rows, theta = masked_rows(dtype, typical)
    options = {"variance": rows.variance, "close": (1e-8, 1e-12)}
    options["entropy"] = 0.5 * rows.total_weight
    compiled, expected = (
        steps(rows, theta, s, 6, backend=name, **options) for name in ("core", "numpy")
    )
    rtol = 5e-3 if dtype == np.float32 else 1e-9
    for record, twin in zip(compiled.steps, expected.steps, strict=True):
        assert_allclose(record[:5], twin[:5], rtol=rtol, atol=rtol * twin[1])
    assert_allclose(compiled.theta, expected.theta, atol=rtol * np.abs(theta).max())
    assert_allclose(compiled.alphas, expected.alphas, rtol=rtol)
    assert_allclose(compiled.sums.G, expected.sums.G, rtol=rtol, atol=rtol)
    assert np.ptp(compiled.alphas[-1]) > 0.01


@pytest.mark.parametrize("typicality", [None, Typicality(eta=4.0, m=3.0)])
def test_the_critical_exponent_is_where_the_merged_state_loses_its_stability(typicality):
    """Centroids near the mean return to it above the exponent, and part below it."""
    random = np.random.default_rng(0)
    xs = without([random.standard_normal((700, d)) for d in (5, 7, 3)], lacking(700, 3, 0.4))
    weight = random.uniform(1, 4, 700)
    model = model_of(kernels="linear", typicality=typicality)
    s = oracles.first_exponent(model, xs, sample_weight=weight)
    assert s < -0.5
    fitted = clone(model).set_params(n_init=1, max_iter=1).fit(xs, sample_weight=weight)
    scaled = [each(x) for each, x in zip(fitted.feature_maps_, xs)]
    rows = with_bits(make_rows(scaled, [None] * 3, weight, 1, [np.zeros(d) for d in (5, 7, 3)]))
    if typicality is not None:
        rows = replace(rows, eta=np.full(3, typicality.eta), m=typicality.m)
    merged, start = np.zeros((1, 15)), 1e-4 * np.random.default_rng(0).standard_normal(15)
    for _ in range(50):  # the merged state, which depends on the typicalities
        merged = rows.centroids(one_pass(rows, merged, -1.0)[0], merged)
    sizes = {}
    for factor in (0.9, 1.1):
        theta = merged + np.stack([start, -start])
        for _ in range(1000):
            theta = rows.centroids(one_pass(rows, theta, factor * s)[0], theta)
        sizes[factor] = np.abs(theta[0] - theta[1]).max()
    assert sizes[0.9] < 1e-5 and sizes[1.1] > 1e-3, (s, sizes)


@pytest.mark.promise(like="test_the_objective_never_rises_on_random_masks")
@pytest.mark.few(2)
def test_rows_that_have_all_views_change_nothing(complete, dtype):
    xs = [x.astype(dtype) for x in complete[0]]
    allowed = model_of(kernels=["rbf"] * 3).fit(xs)
    plain = RFFMultiKernelPowerKMeans(K, kernels=["rbf"] * 3, random_state=0).fit(xs)
    for name in ("labels_", "kernel_weights_", "objective_", "inertia_"):
        assert_array_equal(getattr(allowed, name), getattr(plain, name))
    assert_array_equal(allowed.transform(xs), plain.transform(xs))


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("parameters", [
    {}, {"sample": 200}, {"kernels": "diffusion"}, {"kernels": ["linear", "rbf", "diffusion"]},
    {"typicality": Typicality(eta="mean")}, {"typicality": "auto"}, {"init": "random"},
    {"init": "k-means"}, {"cache": True},
])  # fmt: skip
def test_clusters_are_found(complete, kind, dtype, parameters):
    xs, y = complete
    xs = without([x.astype(dtype) for x in xs], lacking(N, 3, 0.2, kind))
    model = model_of(**parameters).fit(xs)
    assert normalized_mutual_info_score(y, model.labels_) > 0.75
    assert_array_equal(model.predict(xs), model.labels_)
    assert model.transform(xs).dtype == dtype
    assert_allclose(model.predict_proba(xs).sum(axis=1), 1, rtol=1e-5)


def test_new_rows_may_lack_views_that_fitted_rows_had(complete):
    xs = complete[0]
    model = model_of().fit(xs)
    rows = without([x[:50] for x in xs], lacking(50, 3, 0.5))
    assert (model.predict(rows) == model.labels_[:50]).mean() > 0.9
    alone = without([x[:1] for x in xs], np.array([[True, False, True]]))
    every = without(xs, np.array([[True, False, True]] * N))
    assert_allclose(model.transform(alone)[0], model.transform(every)[0])
    assert_allclose(model.predict_proba(alone)[0], model.predict_proba(every)[0])


def test_a_view_of_no_weight_labels_the_rows_that_have_no_other():
    random = np.random.default_rng(0)
    y = random.integers(2, size=200)
    xs = [scale * y[:, None] for scale in (1, 50)]
    xs = [x + random.normal(0, *more) for x, more in zip(xs, [(0.1, (200, 2)), (1, (200, 1))])]
    lacks = lacking(200, 2, 0.3)
    xs = [x.astype(np.float32) for x in xs]
    for allowed in (xs, without(xs, lacks)):
        model = model_of(2, kernels="linear", typicality=None, weight_entropy=1e-3).fit(allowed)
        found = model.transform([xs[0], np.full((200, 1), np.nan, np.float32)])
        assert model.kernel_weights_[0] < 1e-8 and np.isfinite(found).all()
        assert normalized_mutual_info_score(y, found.argmin(axis=1)) > 0.9


def test_many_clusters(dtype):
    random = np.random.default_rng(0)
    y = np.arange(2400) % 120
    xs = [random.uniform(-20, 20, (120, 4))[y] + random.standard_normal((2400, 4)) for _ in "ab"]
    xs = without([x.astype(dtype) for x in xs], lacking(2400, 2, 0.2))
    model = model_of(120, kernels="linear", typicality="auto")
    assert normalized_mutual_info_score(y, model.fit(xs).labels_) > 0.9


@pytest.mark.parametrize("typicality", [None, Typicality(eta=5.0)])
def test_weights_count_rows(views, typicality):
    p = np.random.default_rng(0).integers(0, 3, N)
    model = model_of(kernels="linear", weight_entropy=10.0, sample=None)
    random = np.random.default_rng(1)
    centers = [random.standard_normal((K, x.shape[1])) for x in views]
    model.set_params(init=centers, n_init=1, typicality=typicality, **GIVEN)
    repeated = clone(model).fit([np.repeat(x, p, axis=0) for x in views])
    weighted = clone(model).fit(views, sample_weight=p)
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)
    assert_allclose(weighted.kernel_weights_, repeated.kernel_weights_, rtol=1e-5)
    tiny = clone(model).fit(views, sample_weight=1e-6 * p)
    assert_allclose(tiny.kernel_weights_, weighted.kernel_weights_, rtol=1e-6)


def test_entries_that_are_none_and_columns_of_tables_may_be_missing(views):
    listed = [[None if np.isnan(row[0]) else list(row) for row in x] for x in views]
    objects = [np.empty(N, dtype=object) for _ in views]
    for array, rows in zip(objects, listed):
        array[:] = rows
    X, parts = np.hstack(views), [slice(0, 3), slice(3, 9), slice(9, 21)]
    expected = model_of().fit(views)
    for xs in (listed, objects, [objects[0], *views[1:]], X, pd.DataFrame(X).add_prefix("c")):
        model = model_of(views=None if isinstance(xs, list) else parts).fit(xs)
        assert_array_equal(model.labels_, expected.labels_)
        assert_array_equal(model.predict(xs), expected.labels_)


@pytest.mark.few(1)
@pytest.mark.parametrize("kernels", ["rbf", "linear", "diffusion"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("is_dask", [True, False])
def test_sources_and_collections_give_the_results_of_arrays(complete, kernels, weighted, is_dask):
    xs = [np.tile(x, (9, 1)) for x in complete[0]]
    lacks = lacking(9 * N, 3, 0.3)
    lacks[:1500] = [True, False, False]  # blocks without a view
    xs = without(xs, lacks)
    weight = np.random.default_rng(0).uniform(size=9 * N) if weighted else None
    model = model_of(kernels=kernels, sample=300)
    arrays, labels = clone(model).fit(xs, sample_weight=weight), []
    sources = [lambda x=x: iter(np.array_split(x, 7)) for x in xs]
    if is_dask:
        array = pytest.importorskip("dask.array")
        sources = [array.from_array(x, chunks=(700, -1)) for x in xs]
    read = clone(model).fit(sources, sample_weight=weight, labels_to=labels.append)
    assert_allclose(read.cluster_centers_, arrays.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert_array_equal(np.concatenate(labels), arrays.labels_)
    assert_array_equal(np.asarray(read.predict(sources)), arrays.labels_)


def without_first(xs, lacks):
    return without(xs, np.c_[lacks, np.zeros((N, 2), dtype=bool)])


def refused(xs, message, **parameters):
    with pytest.raises((ValueError, TypeError), match=message):
        model_of(**parameters).fit(xs)


def test_what_is_refused(complete):
    xs = complete[0]
    broken = [x.copy() for x in xs]
    broken[1][7, 2] = np.nan
    refused(broken, r"^X\[1\]: has NaN in 1 of the 6 columns of row 7\. Fill")
    broken[1][7, 2] = np.inf
    refused(broken, "infinity")
    nowhere = without(xs, np.arange(N)[:, None] == np.full(3, 5))
    refused(nowhere, "no view of row 5")
    refused(without_first(xs, np.arange(N) > 2), r"X has view 0 of 3 rows .* n_clusters=4")
    unseen = without(xs, np.tile([False, False, True], (N, 1)))
    refused(unseen, "X has view 2 of 0 rows")
    refused([xs[0], [None] * N], r"^X\[1\]: is None in all rows\. Pass numpy\.full")
    refused([xs[0], broken[2], nowhere[1]], "noise needs all views of all rows", noise=0.1)
    refused(xs, "allow_missing_views=1: must be True or False", allowed=1)
    refused(np.where(np.arange(N)[:, None] == 3, np.nan, xs[0]), "no view of row 3")
    table = np.hstack(xs)
    table[4, 1] = np.nan
    refused(table, r"^views\[0\]: has NaN in 1 of the 3 columns of row 4",
            views=[[0, 1, 2], slice(3, None)])  # fmt: skip


def test_without_the_parameter_a_missing_view_is_refused_with_a_hint(views):
    for cls, taker in (
        (RFFMultiKernelPowerKMeans, ""),
        (MultiKernelPowerKMeans, " of RFFMultiKernelPowerKMeans"),
        (rffpk.MKKM, " of RFFMultiKernelPowerKMeans"),
    ):
        hint = rf"\. allow_missing_views=True{taker} takes dense rows that"
        with pytest.raises(ValueError, match=r"^X\[0\]: contains NaN in .*" + hint):
            cls(K).fit(views)
    with pytest.raises(ValueError, match="X: contains NaN") as error:
        rffpk.PowerKMeans(K).fit(views[0])
    assert "allow_missing_views" not in str(error.value)
    refused([*map(csr_array, views)], r"^X\[0\]: .* allow_missing_views=True takes dense rows")


def test_weights_of_zero_do_not_count(complete):
    xs = without_first(complete[0], np.arange(N) > 9)
    with pytest.raises(ValueError, match="X has view 0 of 0 rows"):
        model_of().fit(xs, sample_weight=np.arange(N) > 9)
    outside = without_first(complete[0], np.arange(N) > 470)
    model = model_of().fit(outside, sample_weight=np.arange(N) <= 470)
    assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize("dtype", [int, bool, np.int8, np.float32])
def test_rows_without_a_view_are_none_beside_rows_of_any_numbers(dtype):
    views = np.split(np.random.RandomState(0).randint(0, 2, (60, 6)).astype(float), 2, axis=1)
    model, second = model_of(3, kernels="rbf", n_frequencies=16).fit(views), views[1][:2]
    expected = model.predict_proba([np.vstack([views[0][0], np.full(3, np.nan)]), second])
    row = views[0][0].astype(dtype)
    assert_allclose(model.predict_proba([[row, None], second]), expected, rtol=1e-5)

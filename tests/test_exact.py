"""Exact kernels: the linear case, explicit features, monotone objectives, invariances, errors."""

import warnings

import numpy as np
import oracles
import pytest
from contracts.fusion import kernels
from contracts.level import FitContext, PowerMean
from contracts.passes import ones
from contracts.plan import linalg
from contracts.source import KernelRows, Storage
from conventions import assert_never_rises
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.pairwise import rbf_kernel

from rffpk import (
    RMKKM,
    Annealing,
    KernelKMeans,
    KernelPowerKMeans,
    MultiKernelPowerKMeans,
    PowerKMeans,
    _core,
    _reference,
)

ONE_KERNEL = [KernelKMeans, KernelPowerKMeans]
EVERY = [*ONE_KERNEL, MultiKernelPowerKMeans]


def first_objective(model):
    return next(r["objective"] for r in model.history_ if "s" in r)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(300, 4, centers=5, random_state=3)


# ---- weights from products ----------------------------------------------------------------------


@pytest.mark.parametrize("rule, s", [(0, -3.0), (0, -1.0), (0, -0.2), (1, 0.0)])
@given(st.integers(1, 1500), st.integers(1, 9), st.integers(0, 2**31), st.booleans())
def test_weights_from_products_are_those_of_the_twin(isa, dtype, rule, s, n, k, seed, weighted):
    random = np.random.default_rng(seed)
    phi, theta = random.standard_normal((n, 6)), random.standard_normal((k, 6))
    given_ = [
        (theta @ phi.T).astype(dtype),
        (phi**2).sum(axis=1).astype(dtype),
        (theta**2).sum(axis=1).astype(dtype),
        random.random(n).astype(dtype) if weighted else None,
    ]
    labels = np.empty((2, n), dtype=np.int32)
    core = _core.weigh_products(*given_, rule, s, 2, labels=labels[0])
    twin = _reference.weigh_products(*given_, rule, s, labels=labels[1])
    d = given_[1] + given_[2][:, None] - 2.0 * given_[0]
    clear = np.ones(n, bool) if k == 1 else np.ptp(np.partition(d, 1, axis=0)[:2], axis=0) > 1e-4
    assert_array_equal(labels[0][clear], labels[1][clear])
    precise = clear if rule == _core.HARD else d.min(axis=0) > 0.05 * given_[1]
    tolerance = 100 * _reference.TOLERANCE[dtype]
    assert_allclose(core[0][:, precise], twin[0][:, precise], atol=tolerance, rtol=tolerance)
    assert_allclose(core[1:], twin[1:], rtol=tolerance, atol=tolerance)


def test_weights_may_overwrite_products():
    random = np.random.default_rng(0)
    y, diagonal, squares = random.random((3, 50)), np.full(50, 9.0), np.ones(3)
    expected = _core.weigh_products(y, diagonal, squares, None, _core.POWER, -2.0, 1)[0]
    found = _core.weigh_products(y, diagonal, squares, None, _core.POWER, -2.0, 1, weights=y)[0]
    assert found is y
    assert_array_equal(y, expected)


@pytest.mark.parametrize("module", [_core, _reference])
@pytest.mark.parametrize("rule", [_core.TYPICALITY, _core.BOTH, 4])
def test_other_rules_have_no_weights_from_products(module, rule):
    with pytest.raises(NotImplementedError, match=f"no weights from products by rule {rule}"):
        module.weigh_products(np.ones((1, 2)), np.ones(2), np.ones(1), None, rule, -1.0, 1)


@given(
    st.integers(0, 40), st.integers(1, 700), st.integers(0, 1300), st.integers(0, 2**31),
    st.integers(1, 3),
)  # fmt: skip
def test_skinny_products_are_those_of_the_twin(isa, dtype, m, depth, n, seed, threads):
    random = np.random.default_rng(seed)
    W = random.standard_normal((m, depth)).astype(dtype)
    K = _core.empty_matrix(depth, max(n, 1), dtype)
    assert not K[:, max(n, 1) :].any()
    K[:, :n] = random.standard_normal((depth, n))
    ours, one, twin = np.full((3, m, n), np.nan, dtype=dtype)
    _core.skinny_product(W, K, ours, threads)
    _core.skinny_product(W, K, one, 1)
    _reference.skinny_product(W, K, twin)
    assert_array_equal(ours, one)
    size = np.abs(W.astype(float)) @ np.abs(K[:, :n])
    assert (np.abs(ours.astype(float) - twin) <= 4 * np.finfo(dtype).eps * size * depth**0.5).all()


def test_skinny_products_refuse_what_they_cannot_read():
    W, out = np.ones((2, 5)), np.empty((2, 7))
    with pytest.raises(ValueError, match="matrix must be one of empty_matrix"):
        _core.skinny_product(W, np.ones((5, 7)), out, 1)
    with pytest.raises(ValueError, match="matrix must be an aligned C-contiguous float64 array"):
        _core.skinny_product(W, _core.empty_matrix(4, 7, float), out, 1)
    with pytest.raises(ValueError, match="as many columns as out"):
        _core.skinny_product(W, _core.empty_matrix(5, 7, float), np.empty((2, 9999)), 1)


# ---- what the methods compute -------------------------------------------------------------------


@pytest.mark.parametrize("weighted, end", [(False, "hard"), (True, "hard"), (True, -8.0)])
def test_the_linear_kernel_gives_the_iterates_of_power_k_means(blobs, backend, weighted, end):
    X = blobs[0]
    weight = np.random.default_rng(0).uniform(0.2, 3, 300) if weighted else None
    annealing = Annealing(start=-1.0, end=end, factor=1.1, passes=3)
    common = {"annealing": annealing, "max_iter": 90, "tol": 1e-3}
    exact, plain = (
        model.fit(X, sample_weight=weight)
        for model in (
            KernelPowerKMeans(5, kernel="linear", init=np.eye(300)[:5], **common),
            PowerKMeans(5, init=X[:5], sample=None, **common),
        )
    )
    passes = [[r for r in m.history_ if "s" in r] for m in (exact, plain)]
    assert len(passes[0]) == len(passes[1]) > 20
    for a, b in zip(*passes):
        assert a["s"] == b["s"] and a["stage"] == b["stage"] and a["distinct"] == b["distinct"]
        assert_allclose(a["objective"], b["objective"], rtol=1e-9)
        assert_allclose(a["shift"], b["shift"], rtol=1e-6, atol=1e-7)
    assert_allclose(exact.dual_coef_ @ X, plain.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert_array_equal(exact.labels_, plain.labels_)
    assert_allclose(exact.inertia_, plain.inertia_, rtol=1e-9)
    assert_allclose(exact.objective_, plain.objective_, rtol=1e-9)
    assert_allclose(exact.transform(X), plain.transform(X), rtol=1e-6, atol=1e-6)
    assert_allclose(exact.predict_proba(X), plain.predict_proba(X), rtol=1e-6)
    scores = (model.score(X, sample_weight=weight) for model in (exact, plain))
    assert_allclose(*scores, rtol=1e-9)


@pytest.mark.parametrize("estimator", EVERY)
def test_results_and_methods_agree(blobs, dtype, estimator):
    X, y = blobs[0].astype(dtype), blobs[1]
    model, other = (estimator(5, cache=cache, random_state=0) for cache in (True, False))
    assert_array_equal(model.fit_predict(X), model.labels_)
    assert model.cache_ and not other.fit(X).cache_
    assert_allclose(other.dual_coef_, model.dual_coef_, atol=1e-12 if dtype == "d" else 1e-5)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert model.labels_.dtype == np.int32 and model.dual_coef_.shape == (5, 300)
    assert_allclose(model.dual_coef_.sum(axis=1), 1, rtol=1e-6)
    assert_array_equal(model.predict(X), model.labels_)
    distances, memberships = model.transform(X), model.predict_proba(X)
    assert distances.dtype == memberships.dtype == dtype
    assert_array_equal(distances.argmin(axis=1), model.labels_)
    assert_allclose(memberships.sum(axis=1), 1, rtol=1e-5)
    assert_array_equal(memberships.argmax(axis=1), model.labels_)
    assert_allclose(model.score(X), -model.inertia_, rtol=1e-4)


@pytest.mark.parametrize("estimator", EVERY)
@pytest.mark.parametrize("cache", [True, False])
@given(
    arrays(np.int8, st.tuples(st.integers(3, 30), st.integers(1, 3)), elements=st.integers(-2, 2)),
    st.integers(1, 3),
)
def test_labels_are_those_of_predict_where_rows_are_in_the_middle(estimator, cache, X, k):
    """Rows of small integers are often as far from one centroid as from another."""
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        kernel = {"kernel": "linear"} if estimator in ONE_KERNEL else {}
        model = estimator(k, n_init=2, cache=cache, store_memberships=True, random_state=0)
        model.set_params(**kernel).fit(X := X.astype(float))
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.transform(X).argmin(axis=1), model.labels_)
    assert_allclose(model.predict_proba(X), model.memberships_, atol=1e-6)


def test_a_fit_computes_a_stored_kernel_once():
    X, calls = np.random.default_rng(0).standard_normal((600, 3)), []

    def kernel(a, b):
        calls.append(1)
        return a @ b

    model = KernelKMeans(3, kernel=kernel, cache=True, random_state=0).fit(X)
    assert len(calls) < 1.5 * 600**2  # a third of the rows besides, which tell where the mean is
    assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial", "cosine"])
def test_the_objective_never_rises(blobs, backend, kernel):
    annealing = Annealing(start=-1.0, factor=1.2, passes=2)
    model = KernelPowerKMeans(6, kernel=kernel, annealing=annealing, n_init=3, random_state=0)
    model.fit(blobs[0])
    assert not any(r["repairs"] for r in model.history_ if "s" in r)
    assert_never_rises(model, 30)


def matrices_of(model):
    return [kernel.matrix() for kernel in model._centroids.kernels]


def softmax(model, costs):
    alpha = np.exp((costs.min() - costs) / model.lambda_)
    return alpha / alpha.sum()


def test_the_objective_of_several_kernels_never_rises_and_weights_are_the_softmax(blobs):
    model = MultiKernelPowerKMeans(
        5, kernels=["rbf", ("rbf", 2.0), ("polynomial", {"degree": 2, "gamma": 0.01})],
        weight_entropy=0.05, annealing=Annealing(start=-2.0, end=-4.0, factor=1.2), tol=1e-9,
        max_iter=3000, random_state=0,
    ).fit(blobs[0])  # fmt: skip
    assert_never_rises(model, 10)
    weights, s = model.kernel_weights_, model.s_
    d = oracles.kernel_distances(matrices_of(model), model.dual_coef_)
    combined = np.einsum("l,lij->ij", weights, d)
    w = oracles.kpkm_weights(combined, s)
    assert_allclose(weights, softmax(model, np.einsum("ij,lij->l", w, d)), atol=1e-6)
    assert_allclose(model.lambda_, 0.05 * 300)
    assert np.ptp(weights) > 0.01
    means = oracles.power_mean(combined, s)
    penalty = model.lambda_ * (weights * np.log(3 * weights)).sum()
    assert penalty > 1e-3 * means.sum()
    assert_allclose(model.objective_, means.sum() + penalty, rtol=1e-9)


def test_the_default_search_with_several_kernels_ends_where_neither_labels_nor_weights_change():
    X = make_moons(300, noise=0.08, random_state=0)[0]
    views = [X[:, :1], X[:, 1:]]
    model = MultiKernelPowerKMeans(2, weight_entropy=0.05, random_state=0).fit(views)
    stages = {r["stage"] for r in model.history_}
    assert {"seeding", "swap", "hard"} <= stages  # on components
    starts = [r["start"] for r in model.history_ if "s" in r]
    assert starts[0] == -1 and set(starts) == {-1, 0, 1, 2, 3, 4}
    assert not any(r["kept"] for r in model.history_ if "s" in r and r["start"] == -1)
    objectives = [r["objective"] for r in model.history_ if "s" in r and r["stage"] == "hard"]
    penalty = model.lambda_ * (model.kernel_weights_ @ np.log(2 * model.kernel_weights_))
    assert_allclose(objectives[-1], model.inertia_ + penalty, rtol=1e-9)
    W = np.eye(2)[model.labels_].T
    d = oracles.kernel_distances(matrices_of(model), W / W.sum(axis=1, keepdims=True))
    costs = d[:, np.arange(300), model.labels_].sum(axis=1)
    assert_allclose(model.kernel_weights_, softmax(model, costs), atol=1e-9)
    assert_allclose(model.inertia_, model.kernel_weights_ @ costs)
    again = MultiKernelPowerKMeans(2, weight_entropy=0.05, init=model.dual_coef_).fit(views)
    assert model.inertia_ <= again.inertia_ * (1 + 1e-9)


# Starts that do not end with the hard rule run with the kernel, not in components.
KERNEL_ITSELF = {"annealing": Annealing(end=-1e4)}


def test_the_automatic_exponent_is_the_critical_one_of_the_kernel():
    X, _ = make_blobs(300, 20, centers=12, random_state=0)
    K = rbf_kernel(X, gamma=0.02)
    values, vectors = eigh(K)
    expected = oracles.critical_exponent(vectors * np.sqrt(np.maximum(values, 0)))
    assert expected < -1
    model = KernelPowerKMeans(5, kernel="precomputed", n_init=1, random_state=0, **KERNEL_ITSELF)
    model.fit(K)
    assert_allclose(next(r["s"] for r in model.history_ if "s" in r), expected, rtol=1e-6)


def test_one_kernel_of_several_is_the_single_kernel_estimator(blobs):
    X = blobs[0]
    single = KernelPowerKMeans(5, random_state=0, **KERNEL_ITSELF).fit(X)
    for copies in (1, 3):
        multi = MultiKernelPowerKMeans(5, random_state=0, **KERNEL_ITSELF).fit([X] * copies)
        # which of equal starts is kept depends on rounding, and so does the order of the clusters
        assert adjusted_rand_score(multi.labels_, single.labels_) == 1
        assert_allclose(multi.inertia_, single.inertia_)
        assert_allclose(multi.kernel_weights_, np.full(copies, 1 / copies))


def test_precomputed_kernels_give_what_rows_give(blobs):
    X = blobs[0]
    K = rbf_kernel(X, gamma=0.05)
    rows = KernelPowerKMeans(5, gamma=0.05, random_state=0).fit(X)
    model = KernelPowerKMeans(5, kernel="precomputed", random_state=0).fit(K)
    assert_array_equal(model.labels_, rows.labels_)
    assert_allclose(model.inertia_, rows.inertia_)
    new = X[:20] + 0.1
    assert_array_equal(model.predict(rbf_kernel(new, X, gamma=0.05)), rows.predict(new))
    with pytest.raises(ValueError, match=r"score needs k\(x, x\).* score is -inertia_"):
        model.score(K)
    assert_allclose(rows.score(X), -model.inertia_)
    with pytest.raises(ValueError, match=r"^X.shape=.* values .* of new rows with the fitted"):
        model.predict(X[:3])
    multi = MultiKernelPowerKMeans(5, kernels="precomputed", random_state=0).fit([K, K])
    rows = MultiKernelPowerKMeans(5, kernels=[("rbf", 0.05)] * 2, random_state=0).fit([X, X])
    assert_array_equal(multi.labels_, rows.labels_)
    assert_array_equal(multi.predict([K[:9], K[:9]]), rows.labels_[:9])


def test_permuting_rows_permutes_results(blobs):
    X, order = blobs[0], np.random.default_rng(0).permutation(300)
    labels = np.arange(300) % 5
    model = KernelPowerKMeans(5, init=labels, annealing=Annealing(start=-5.0)).fit(X)
    moved = clone(model).set_params(init=labels[order]).fit(X[order])
    assert_array_equal(moved.labels_, model.labels_[order])
    assert_allclose(moved.objective_, model.objective_, rtol=1e-9)


def test_weights_are_repetitions(blobs):
    X = blobs[0][:80]
    counts = np.random.default_rng(0).integers(1, 4, 80)
    labels = np.arange(80) % 4
    common = {"annealing": Annealing(start=-3.0), "gamma": 0.05}
    one = KernelPowerKMeans(4, init=labels, **common).fit(X, sample_weight=counts)
    weights = (labels == np.arange(4)[:, None]).astype(float)
    expanded = np.repeat(weights / weights.sum(axis=1, keepdims=True) / counts, counts, axis=1)
    many = KernelPowerKMeans(4, init=expanded, **common).fit(np.repeat(X, counts, axis=0))
    assert_array_equal(np.repeat(one.labels_, counts), many.labels_)
    assert_allclose(one.inertia_, many.inertia_, rtol=1e-8)
    assert_allclose(one.objective_, many.objective_, rtol=1e-8)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scaling_a_kernel_scales_the_objective(blobs, scale):
    K = rbf_kernel(blobs[0])
    model = KernelPowerKMeans(5, kernel="precomputed", random_state=0).fit(K)
    scaled = clone(model).fit(scale * K)
    assert_array_equal(scaled.labels_, model.labels_)
    assert_allclose(scaled.objective_, scale * model.objective_, rtol=1e-8)


def test_float32_holds_kernels_with_large_bandwidths(blobs):
    """For sigma = 1000 distances are about 1e-6, and norms are one."""
    X = blobs[0]
    fits = [KernelPowerKMeans(5, gamma=5e-7, random_state=0).fit(X.astype(dtype)) for dtype in "fd"]
    assert adjusted_rand_score(fits[0].labels_, fits[1].labels_) == 1
    assert_allclose(fits[0].inertia_, fits[1].inertia_, rtol=1e-4)


# ---- starts -------------------------------------------------------------------------------------


def test_inits(blobs):
    X, y = blobs
    for init in ("k-means++", "random", "k-means", "spectral"):
        model = KernelKMeans(5, init=init, n_init=8, random_state=0).fit(X)
        starts = [r for r in model.history_ if r["stage"] == "start"]
        assert len(starts) == 8 and sum(r["outcome"] == "kept" for r in starts) == 1
        assert min(r["objective"] for r in starts) == pytest.approx(model.inertia_)
        assert adjusted_rand_score(y, model.labels_) > 0.9, init
    assert model.fit(X).n_iter_ <= 3  # spectral starts are at the result, or nearly


def test_k_means_plus_plus_spreads_seeds(blobs):
    X = make_blobs(600, 2, centers=30, cluster_std=0.3, random_state=0)[0]
    common = {"kernel": "linear", "n_init": 1, "max_iter": 1}
    spread, random = (
        [KernelKMeans(30, init=init, random_state=seed, **common).fit(X) for seed in range(8)]
        for init in ("k-means++", "random")
    )
    assert sum(map(first_objective, spread)) < 0.3 * sum(map(first_objective, random))


@pytest.mark.parametrize("estimator", [KernelPowerKMeans, PowerKMeans])
def test_merged_centroids_separate_again(digits, dtype, estimator):
    """Far above the critical exponent all centroids become exactly equal."""
    X = digits[0][:300].astype(dtype)
    model = estimator(10, annealing=Annealing(start=-0.5, factor=1.1, passes=10), random_state=0)
    if estimator is PowerKMeans:
        model.set_params(sample=None)
    model.fit(X)
    distinct = [r["distinct"] for r in model.history_ if r["stage"] == "anneal"]
    assert min(distinct) == 1 and distinct[-1] == 10


def test_an_empty_cluster_gets_a_row(blobs):
    far = np.vstack([blobs[0][:40], blobs[0][:1] + 1000])
    labels = np.zeros(41, int)
    labels[0] = 1  # inside the first cluster: it loses all of its rows to it at once
    labels[1] = 2
    model = KernelKMeans(3, kernel="linear", init=labels).fit(far)
    assert len(np.unique(model.labels_)) == 3


@pytest.mark.parametrize("k", [1, 12])
def test_one_cluster_and_as_many_as_rows(blobs, k):
    X = blobs[0][:12]
    for estimator in EVERY:
        model = estimator(k, random_state=0).fit(X)
        assert len(np.unique(model.labels_)) == k
        K = model._centroids.kernels[0].matrix()
        expected = np.trace(K) - K.sum() / 12 if k == 1 else 0.0
        assert_allclose(model.inertia_, expected, atol=1e-10)


# ---- components ----------------------------------------------------------------------------------


@given(st.integers(2, 40), st.integers(1, 6), st.integers(0, 1000))
def test_products_are_those_of_the_centered_kernel(n, m, seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, 3))
    fitted = kernels.FittedKernel(
        X, kernels.specification(("rbf", 0.3), "kernel"), shift=True, weight=ones(len(X))
    )
    K, W = rbf_kernel(X, gamma=0.3), random.standard_normal((m, n))
    H = np.eye(n) - np.full((n, n), 1 / n)  # n is below the number of rows that are averaged
    for stored in (True, False):
        context = FitContext(random, n_threads=2, storage=Storage(stored))
        rows = KernelRows([fitted], ones(fitted.n), PowerMean(), context)
        assert_allclose(rows.multiply(W)[0], W @ H @ K @ H, atol=1e-12)
        assert_allclose(rows.diagonals[0], np.diag(H @ K @ H), atol=1e-12)


def test_ritz_values_are_within_the_spectrum_and_near_its_bounds():
    random = np.random.default_rng(0)
    for n in (1, 2, 5, 40, 200):
        A = random.standard_normal((n, n))
        A = A + A.T
        values, ends = eigh(A, eigvals_only=True), linalg.ritz_values(lambda v, A=A: A @ v, n)
        assert ends[0] >= values[0] - 1e-8 and ends[-1] <= values[-1] + 1e-8
        assert ends[0] < 0.9 * values[0] or n <= 2
    assert_allclose(linalg.ritz_values(lambda v: 3 * v, 10), [3.0])


# ---- errors -------------------------------------------------------------------------------------


def test_indefinite_kernels_give_a_warning(blobs):
    K = rbf_kernel(blobs[0]) - 0.5 * np.eye(300)
    with pytest.warns(UserWarning, match="kernel 0 is indefinite: it has an eigenvalue <= -0"):
        KernelKMeans(5, kernel="precomputed", random_state=0).fit(K)
    with pytest.warns(UserWarning, match="kernel 1 is indefinite"):
        both = [rbf_kernel(blobs[0]), K]
        MultiKernelPowerKMeans(5, kernels="precomputed", random_state=0).fit(both)
    with pytest.warns(UserWarning, match="kernel 0 is indefinite"):
        model = KernelKMeans(3, kernel="poly", gamma=0.1, random_state=0)
        model.set_params(kernel_params={"coef0": -50}).fit(blobs[0])
    with warnings.catch_warnings(action="error"):
        KernelKMeans(5, kernel="precomputed", random_state=0).fit(both[0])


@pytest.mark.filterwarnings("ignore:kernel 0 is indefinite")
def test_the_inertia_with_an_indefinite_kernel_is_that_of_the_formula():
    """Squared distances from centroids count as they are in it, negative ones too."""
    X = load_iris().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    small, whole = (
        KernelPowerKMeans(3, kernel="sigmoid", random_state=0, **options).fit(X)
        for options in ({}, KERNEL_ITSELF)
    )
    [kernel] = small._centroids.kernels
    K, diagonal = kernel.matrix(), kernel.diagonal
    inside = small.labels_[:, None] == small.labels_
    means = inside / inside.sum(axis=1, keepdims=True)
    assert (diagonal - 2 * (K * means).sum(axis=1) + (means @ K @ means).diagonal()).min() < 0
    assert_allclose(small.inertia_, diagonal.sum() - (means * K).sum())
    assert small.inertia_ <= 1.001 * whole.inertia_


def test_too_little_memory_is_an_error_before_any_work(blobs, memory):
    memory(1228800)  # a fit takes a part of this
    model = KernelKMeans(5, cache=True)
    with pytest.raises(MemoryError, match="cache=True takes 1228800 bytes for the kernel matrices"):
        model.fit(blobs[0])
    assert not hasattr(model, "labels_")
    assert model.set_params(cache="auto").fit(blobs[0]).cache_ is False


def test_callables_and_their_parameters(blobs):
    X = blobs[0][:60]

    def similarity(x, y, width):
        return np.exp(-((x - y) ** 2).sum() / width)

    model = KernelKMeans(5, kernel=similarity, kernel_params={"width": 20.0}, random_state=0)
    expected = KernelKMeans(5, gamma=1 / 20, random_state=0).fit(X)
    assert_array_equal(model.fit(X).labels_, expected.labels_)
    assert_array_equal(model.predict(X[:7]), expected.labels_[:7])


def test_spectral_starts_do_not_depend_on_rows_without_weight_or_the_order_of_rows(blobs):
    X = blobs[0]
    common = {"init": "spectral", "gamma": 0.02, "n_init": 1, "random_state": 0}
    alone = KernelKMeans(5, **common).fit(X)
    far = np.vstack([X, np.random.default_rng(0).normal(0, 30, (400, 4))])
    weight = np.r_[np.ones(300), np.zeros(400)]
    model = KernelKMeans(5, **common).fit(far, sample_weight=weight)
    moved = KernelKMeans(5, **common).fit(X[np.argsort(X[:, 0])])
    for other in (model, moved):
        assert_allclose(first_objective(other), first_objective(alone), rtol=1e-6)


def test_automatic_starts_of_kernel_k_means_are_ten():
    X = np.random.RandomState(0).randn(40, 3)
    auto, ten = (KernelKMeans(3, n_init=n, random_state=0).fit(X) for n in ("auto", 10))
    assert sum(record["stage"] == "start" for record in auto.history_) == 10
    assert_array_equal(auto.dual_coef_, ten.dual_coef_)


@pytest.mark.parametrize("distinct, k", [(2, 3), (2, 5), (6, 7)])
@pytest.mark.parametrize("weighted", [False, True])
def test_components_leave_no_centroid_away_from_rows_that_count(distinct, k, weighted):
    X = np.repeat(np.random.RandomState(0).randn(distinct + weighted, 2), 300, axis=0)
    weight = np.repeat(np.arange(distinct + 1.0), 300) if weighted else None
    with pytest.warns(ConvergenceWarning, match=f"{distinct} of n_clusters={k} clusters"):
        model = KernelPowerKMeans(k, random_state=0).fit(X, sample_weight=weight)
    assert_allclose(model.dual_coef_.sum(axis=1), 1)
    assert not weighted or not model.dual_coef_[:, :300].any()
    assert_array_equal(model.predict(X), model.labels_)


def test_the_search_in_components_keeps_to_the_largest_number_of_passes():
    X = np.random.RandomState(0).randn(800, 4)
    with pytest.warns(ConvergenceWarning, match="max_iter=10"):
        model = KernelPowerKMeans(4, n_init=1, max_iter=10, random_state=0).fit(X)
    assert model.n_iter_ <= 11  # one with the kernel itself


@pytest.mark.parametrize("n, k", [(40, 3), (1100, 3), (1100, 40), (1100, 1100)])
@pytest.mark.filterwarnings("ignore:max_iter")
def test_components_of_an_identity_suffice(n, k):
    """Where all eigenvalues are equal, and any number of components is a small part."""
    model = KernelPowerKMeans(k, kernel="precomputed", max_iter=1, random_state=0).fit(np.eye(n))
    assert_allclose(model.inertia_, n - k, atol=1e-9)


def test_components_keep_to_the_memory_limit(monkeypatch):
    """Then they are the first that are computed."""
    X, numbers = np.random.RandomState(0).randn(1100, 70), []
    made = KernelRows.components

    def noted(*given):
        rows, left_out = made(*given)
        numbers.append(rows.xs[0].shape[1])
        return rows, left_out

    monkeypatch.setattr(KernelRows, "components", noted)
    for cache in (False, 1000):
        KernelKMeans(4, kernel="linear", cache=cache, random_state=0).fit(X)
    assert numbers == [70, 48]


@pytest.mark.parametrize("cls", [MultiKernelPowerKMeans, RMKKM])
def test_the_kernels_of_a_bank_are_normalised_before_any_shift(cls):
    """Their cosines are taken from the origin, not from the mean of the rows."""
    X = load_iris().data
    model = cls(3, kernels="du2015", random_state=0).fit(X)
    matrices = [
        kernels.FittedKernel(X, spec, weight=ones(len(X))).matrix() for spec in kernels.du2015(X)
    ]
    alpha, W = model._centroids.alpha, model.dual_coef_
    d = np.tensordot(alpha, oracles.kernel_distances(matrices, W), 1)
    assert_allclose(model.inertia_, d.min(axis=1).sum(), rtol=1e-9)
    assert_array_equal(model.predict(X), model.labels_)
    large = cls(3, kernels="du2015", random_state=0).fit((X * 1e5).astype(np.float32))
    assert np.isfinite(large.inertia_)  # what is normalised does not overflow


def scaled_views():
    """Draw three views of the same groups, and a view of noise with few columns."""
    random = np.random.default_rng(0)
    y = np.arange(120) % 6
    views = [random.standard_normal((6, d))[y] for d in (20, 30, 40)]
    views = [x + 0.4 * random.standard_normal(x.shape) for x in views]
    return [*views, random.standard_normal((120, 3))], y


@pytest.mark.parametrize("cls", [MultiKernelPowerKMeans, RMKKM])
@pytest.mark.parametrize("kernel", ["linear", ("polynomial", {"degree": 2})])
def test_kernels_that_follow_the_scale_of_views_have_a_common_scale(cls, kernel):
    views, y = scaled_views()
    model = cls(6, kernels=[kernel] * 4, random_state=0).fit(views)
    assert normalized_mutual_info_score(y, model.labels_) > 0.99
    assert model.kernel_weights_.argmin() == 3
    assert_array_equal(model.predict(views), model.labels_)
    twice = clone(model).fit(views, sample_weight=np.full(120, 2))
    assert_allclose(twice.kernel_weights_, model.kernel_weights_, rtol=1e-5)
    if kernel == "linear":
        scaled = [x * c for x, c in zip(views, (1e3, 1.0, 1e-3, 1e-80))]
        again = clone(model).fit(scaled)
        assert_array_equal(again.labels_, model.labels_)
        assert_allclose(again.kernel_weights_, model.kernel_weights_, rtol=1e-6)
        assert_allclose(again.transform(scaled), model.transform(views), rtol=1e-6)


def test_kernels_whose_scale_is_given_stay_as_they_are():
    """One kernel alone, precomputed kernels and functions have no common scale."""
    X = scaled_views()[0][0]
    linear = [X @ X.T, 9 * X @ X.T]
    precomputed = MultiKernelPowerKMeans(3, kernels="precomputed", random_state=0).fit(linear)
    functions = [np.dot, lambda x, y: 9 * x @ y]
    called = MultiKernelPowerKMeans(3, kernels=functions, random_state=0).fit([X, X])
    assert_allclose(called.kernel_weights_, precomputed.kernel_weights_, rtol=1e-6)
    assert precomputed.kernel_weights_[0] > 0.9
    one = MultiKernelPowerKMeans(3, kernels=["linear"], random_state=0).fit(X)
    assert one.inertia_ > 0.1 * ((X - X.mean(axis=0)) ** 2).sum()

"""Several views: the single-view case, the printed algorithm, view weights, typicality, errors."""

import warnings

import numpy as np
import oracles
import printed
import pytest
from conventions import ip_rff_mkpkm
from fusion_cases import three_views
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import rffpk
from rffpk import (
    Annealing,
    DiffusionMap,
    PowerKMeans,
    RandomFourierFeatures,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
    Typicality,
)

PLAIN = {"sample": None, "n_frequencies": 64, "random_state": 0}


@pytest.fixture(scope="module")
def views():
    return three_views(600)


@pytest.mark.few(4)
@pytest.mark.parametrize("sample", [None, 300])
@pytest.mark.parametrize("kernels, cls", [("rbf", RFFKernelPowerKMeans), ("linear", PowerKMeans)])
def test_one_view_without_typicality_is_the_single_view_estimator(
    views, backend, dtype, sample, kernels, cls
):
    X = views[0][0].astype(dtype)
    common = {"sample": sample, "random_state": 3}
    single = cls(4, **common).fit(X)
    multi = RFFMultiKernelPowerKMeans(4, kernels=kernels, typicality=None, **common).fit([X])
    assert_array_equal(multi.cluster_centers_, single.cluster_centers_)
    assert_array_equal(multi.labels_, single.labels_)
    assert_array_equal(multi.predict([X]), single.labels_)
    assert multi.objective_ == single.objective_ and multi.inertia_ == single.inertia_
    assert_array_equal(multi.kernel_weights_, [1.0])
    assert multi.eta_ is None and (multi.feature_maps_ == [None]) == (cls is PowerKMeans)


@pytest.mark.few(3)
@pytest.mark.parametrize("copies", [1, 2, 6, 12])
def test_results_and_methods_agree(views, backend, copies):
    xs, y = [views[0][0]] * copies, views[1]
    model = ip_rff_mkpkm(4, **PLAIN).fit(xs)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert_allclose(model.kernel_weights_.sum(), 1)
    assert model.cluster_centers_.shape == (4, copies * 128)
    assert len(model.feature_maps_) == copies and model.n_features_in_ == 5 * copies
    assert_array_equal(model.predict(xs), model.labels_)
    memberships, u = model.predict_proba(xs), model.predict_typicality(xs)
    assert_allclose(memberships.sum(axis=1), 1)
    assert u.shape == (600, 4) and ((u > 0) & (u < 1)).all()
    assert_array_equal(u.argmax(axis=1), model.labels_)
    assert_array_equal(model.transform(xs).argmin(axis=1), model.labels_)
    assert_allclose(model.score(xs), -(model.transform(xs).min(axis=1) ** 2).sum(), rtol=1e-8)


@pytest.mark.parametrize("m", [1.2, 1.5, 2.0, 3.0])
def test_view_weights_are_those_of_a_fixed_point_of_the_printed_algorithm(views, m):
    xs, s = views[0], -4.0
    fixed = {"annealing": Annealing(start=s, end=s), "tol": 1e-13, "max_iter": 3000, **PLAIN}
    model = ip_rff_mkpkm(4, typicality=Typicality(m=m), weight_entropy=0.2, **fixed).fit(xs)
    assert_allclose(model.lambda_, 0.2 * 600)
    phis = [mapped.transform(x) for mapped, x in zip(model.feature_maps_, xs)]
    theta = np.split(model.cluster_centers_, len(phis), axis=1)
    alpha, eta = model.kernel_weights_, np.tile(model.eta_, (4, 1))
    u = model.predict_typicality(xs)
    state = (u, theta, alpha)
    for _ in range(3):
        *state, objective = printed.ip_rff_mkpkm_step(phis, *state, eta, model.lambda_, s, m)
        constant = model.lambda_ * np.log(len(xs))  # a term that eq. (20) does not have
        assert_allclose(objective + constant, model.objective_, rtol=1e-10)
    assert_allclose(np.hstack(state[1]), model.cluster_centers_, atol=1e-9)
    assert_allclose(state[0], u, atol=1e-9)
    assert_allclose(state[2], alpha, atol=1e-9)


def test_features_in_kernels_have_parameters_of_their_own(views):
    xs = views[0]
    instances = [
        RandomFourierFeatures(30, kernel="laplacian", gamma=0.2),
        RandomFourierFeatures(40, sampling="iid"), ("linear", 1.0),
    ]  # fmt: skip
    before = [dict(vars(each)) for each in instances[:2]]
    model = RFFMultiKernelPowerKMeans(4, kernels=instances, random_state=0).fit(xs)
    assert [vars(each) for each in instances[:2]] == before
    first, second, _ = model.feature_maps_
    assert (first.n_frequencies_, first.kernel, first.gamma_) == (30, "laplacian", 0.2)
    assert (second.n_frequencies_, second.sampling, second.structure_) == (40, "iid", None)
    assert_array_equal(clone(model).fit(xs).labels_, model.labels_)
    names = ["laplacian", ("rbf", "mean"), ("linear", 1.0)]
    plain = RFFMultiKernelPowerKMeans(4, kernels=names, n_frequencies=30, random_state=0).fit(xs)
    assert plain.cluster_centers_.shape[1] == model.cluster_centers_.shape[1] - 20
    bad = RandomFourierFeatures(kernel="cauchy", sampling="structured")
    with pytest.raises(ValueError, match="sampling='structured': needs kernel='rbf'"):
        RFFMultiKernelPowerKMeans(4, kernels=[bad] * 3).fit(xs)


def test_extreme_entropies_of_the_weights_do_not_overflow(views):
    for entropy, largest in ((1e-9, 1.0), (1e9, 1 / 3)):
        model = ip_rff_mkpkm(4, weight_entropy=entropy, **PLAIN).fit(views[0])
        assert_allclose(model.kernel_weights_.max(), largest, rtol=1e-6)
        assert np.isfinite(model.objective_)


@pytest.mark.parametrize("eta", ["mean", "median", 0.3])
def test_noise_is_detected_by_its_typicality(views, eta):
    random = np.random.default_rng(1)
    far = [np.vstack([x, random.uniform(-30, 30, (60, x.shape[1]))]) for x in views[0][:2]]
    model = ip_rff_mkpkm(4, typicality=Typicality(eta=eta), **PLAIN).fit(far)
    noise = model.predict_typicality(far).max(axis=1) < 0.4
    assert noise[600:].mean() > 0.9 > 0.2 > noise[:600].mean()
    assert (model.eta_ > 0).all() and model.eta_.shape == (2,)


@pytest.mark.parametrize("gross, near", [(False, 0.35), (True, 0.9)])
def test_typicality_keeps_the_centroids_near_the_means_of_the_clusters(gross, near):
    """With 30 % of background rows, or with 1 % of rows a hundred times as far away."""
    random = np.random.default_rng(3)
    centers = random.uniform(-5, 5, (5, 8))
    y = random.integers(5, size=500)
    X = centers[y] + random.standard_normal((500, 8))
    extra = random.uniform(-10, 10, (5 if gross else 200, 8)) * (100 if gross else 1)
    model = ip_rff_mkpkm(5, n_frequencies=64, kernels=[("rbf", "median")], random_state=0)
    spoiled = np.vstack([X, extra])
    labels = model.fit(spoiled).labels_
    assert adjusted_rand_score(y, labels[:500]) == 1
    u = model.predict_typicality(spoiled).max(axis=1)
    for j in range(5):
        own = labels == labels[:500][y == j][0]
        mean = np.average(spoiled[own], axis=0, weights=u[own] ** 2)
        assert np.linalg.norm(mean - X[y == j].mean(axis=0)) < near


def test_the_median_of_distances_resists_outliers():
    X = np.random.default_rng(0).standard_normal((1000, 3))
    spoiled = X.copy()
    spoiled[:100] += 1000

    def eta(rows, choice, weight=None):
        model = ip_rff_mkpkm(2, typicality=Typicality(eta=choice), kernels=[("rbf", 1e-6)], **PLAIN)
        return model.fit([rows], sample_weight=weight).eta_[0]

    assert eta(spoiled, "mean") > 100 * eta(X, "mean")
    assert eta(spoiled, "median") < 1.5 * eta(X, "median")
    weight = np.r_[np.full(100, 20.0), np.ones(900)]
    repeated = np.repeat(spoiled, weight.astype(int), axis=0)
    assert_allclose(eta(spoiled, "median", weight), eta(repeated, "median"))


@pytest.mark.parametrize("eta, m", [(6.0, 2.0), (6.0, 3.0), (20.0, 3.0)])
def test_the_critical_exponent_with_typicality_is_that_of_the_formula(eta, m):
    random = np.random.default_rng(0)
    X = random.standard_normal((400, 6)) * np.linspace(0.3, 1.5, 6)
    p = random.uniform(0.5, 2, 400)
    model = ip_rff_mkpkm(3, typicality=Typicality(eta=eta, m=m), kernels="linear", random_state=0)
    critical = oracles.first_exponent(model, [X], sample_weight=p)
    expected, _ = oracles.typical_critical_exponent(X, p, eta, m)
    assert_allclose(critical, expected, rtol=1e-6)
    assert critical < -0.5


@pytest.mark.parametrize("sample", [None, 200])
@pytest.mark.parametrize("possibilistic", [True, False])
def test_stored_features_change_nothing_but_rounding(views, sample, possibilistic):
    """Starts on stored features have single precision, and end at slightly other places."""
    typicality, common = "auto" if possibilistic else None, {"sample": sample, "random_state": 0}
    model = ip_rff_mkpkm(4, typicality=typicality, n_init=1, annealing=Annealing(swaps=0), **common)
    stored, computed = (
        clone(model).set_params(cache=cache).fit(views[0]) for cache in (True, False)
    )
    assert stored.cache_ is True and computed.cache_ is False
    assert_array_equal(stored.labels_, computed.labels_)
    assert_allclose(stored.cluster_centers_, computed.cluster_centers_, atol=3e-5)
    assert_allclose(stored.kernel_weights_, computed.kernel_weights_, rtol=1e-4)


def test_one_array_gets_a_bank_of_bandwidths(views):
    X = views[0][0]
    model = ip_rff_mkpkm(4, **PLAIN).fit(X)
    gammas = [mapped.gamma_ for mapped in model.feature_maps_]
    alone = RandomFourierFeatures(2, random_state=0).fit(X)
    assert_allclose(gammas, alone.gamma_ * np.array([4, 1, 0.25]))
    assert model.n_features_in_ == 5
    assert_array_equal(model.predict(X), model.labels_)
    model = ip_rff_mkpkm(4, kernels=["rbf", ("laplacian", 0.1)], **PLAIN).fit(X)
    assert [mapped.kernel for mapped in model.feature_maps_] == ["rbf", "laplacian"]


def test_views_that_are_not_those_of_the_fit(views):
    xs = views[0]
    model = ip_rff_mkpkm(4, **PLAIN).fit(xs[:2])
    alone = ip_rff_mkpkm(4, **PLAIN).fit(xs[0])
    for fitted, rows, message in (
        (model, xs, "^X: has 3 views, but had 2 in fit"),
        (model, [xs[0], xs[2]], r"^X\[1\]: has 3 columns, but had 12 in fit"),
        (model, xs[0], "^X: is one array.* Pass a list of 2 views"),
        (alone, xs[:2], "^X: is a list of views, but was one array in fit"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.predict(rows)


def test_starts_are_compared_with_the_penalty_of_the_view_weights(views):
    """Every comparison has the penalty on both sides."""
    xs, y = [views[0][0], views[0][1]], views[1]
    model = ip_rff_mkpkm(4, random_state=0).fit(xs)
    starts = [r for r in model.history_ if r["stage"] == "start"]
    assert [r["kind"] for r in starts] == ["k-means++", "low", "critical"]
    assert min(r["objective"] for r in starts) > 0
    best = min(r["objective"] for r in starts)
    assert [r["objective"] for r in starts if r["outcome"] == "kept"] == [best]
    swaps = [r for r in model.history_ if r["stage"] == "swap"]
    assert 0 < len(swaps) <= 8 * (20 + 10 * 4)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    objective = [r["objective"] for r in model.history_ if r["stage"] == "hard"]
    assert objective[-1] <= best * (1 + 1e-6)  # that of rows in single precision


def test_stop_by_the_objective_ends(views):
    annealing = Annealing(start=-5.0, factor=1.04, passes=2, until="objective")
    model = ip_rff_mkpkm(4, annealing=annealing, tol=1e-4, **PLAIN)
    with warnings.catch_warnings(action="error"):
        model.fit(views[0])
    assert model.n_iter_ < 300


def test_lambda_follows_the_rows_of_a_sample(views):
    """The view weights of a sample and of all rows are comparable."""
    xs = [np.tile(x, (10, 1)) for x in views[0]]
    model = ip_rff_mkpkm(4, sample=600, weight_entropy=0.05, random_state=0).fit(xs)
    weights = [r["kernel_weights"] for r in model.history_ if r.get("s") == -np.inf]
    rows = [r["rows"] for r in model.history_ if r.get("s") == -np.inf]
    assert {600, 6000} <= set(rows)
    ends = dict(zip(rows, weights))
    assert_allclose(ends[600], ends[6000], atol=0.05)
    assert_allclose(model.lambda_, 0.05 * 6000)


def test_many_rows_and_equal_rows_have_reference_distances():
    random = np.random.default_rng(0)
    X = random.standard_normal((21_000, 3))
    model = ip_rff_mkpkm(2, sample=1000, random_state=0).fit([X, X])
    mean = clone(model).set_params(typicality=Typicality(eta="mean")).fit([X, X])
    assert_allclose(model.eta_, mean.eta_, rtol=0.3)
    assert (model.eta_ < mean.eta_).all()
    sparse = np.where(np.arange(400)[:, None] < 250, 0, random.standard_normal((400, 4)))
    model = ip_rff_mkpkm(2, **PLAIN).fit([X[:400], sparse])
    mean = clone(model).set_params(typicality=Typicality(eta="mean")).fit([X[:400], sparse])
    assert model.eta_[0] < mean.eta_[0] and model.eta_[1] == mean.eta_[1] < 1


def test_a_weight_of_a_reference_distance_counts_as_so_many_rows(views):
    X = views[0][0][:50]
    counts = np.random.default_rng(0).integers(1, 4, 50)
    common = {"n_frequencies": 8, "kernels": [("rbf", 0.1)], "random_state": 0}
    one = ip_rff_mkpkm(2, **common).fit([X], sample_weight=counts)
    many = ip_rff_mkpkm(2, **common).fit([np.repeat(X, counts, axis=0)])
    assert_allclose(one.eta_, many.eta_, rtol=1e-6)


@pytest.mark.parametrize("m, eta", [(1.01, 1e-4), (1.0001, 0.5), (6.0, 1e-30), (1.5, 1e30)])
def test_extreme_typicalities_give_no_floating_point_warnings(views, dtype, m, eta):
    X = views[0][0].astype(dtype)
    model = ip_rff_mkpkm(4, typicality=Typicality(m=m, eta=eta), random_state=0).fit([X])
    u = model.predict_typicality([X])
    assert ((u >= 0) & (u <= 1)).all()


# ---- views of columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", ("linear", 0.5), ("linear", 1.0)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_views_of_columns_have_a_common_scale(kernel, form, dtype):
    """A view of noise with few columns, and so a small variance, does not get all of the weight."""
    random, y = np.random.default_rng(0), np.arange(200) % 4
    good = [
        3 * random.standard_normal((4, d))[y] + random.standard_normal((200, d)) for d in (7, 6)
    ]
    views = [form(x.astype(dtype)) for x in (*good, 0.1 * random.standard_normal((200, 3)))]
    model = RFFMultiKernelPowerKMeans(4, kernels=[kernel] * 3, random_state=0).fit(views)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert model.kernel_weights_.argmin() == 2
    assert_array_equal(model.predict(views), model.labels_)
    larger = [form((s * x).astype(dtype)) for s, x in zip((2, 1024, 0.25), views)]
    again = clone(model).fit(larger)
    assert_array_equal(again.labels_, model.labels_)
    assert_allclose(again.kernel_weights_, model.kernel_weights_, rtol=1e-3)


@pytest.mark.parametrize("all_rows", [299, 300])
def test_views_of_few_columns_alone_have_landmarks_for_many_rows(all_rows, tuning):
    """Views of more columns, and all of them side by side, keep the graph of all rows."""
    tuning(landmarks__view_rows=all_rows)
    tuning(landmarks__least=50)
    y, random = np.repeat([0, 1, 2], 100), np.random.default_rng(0)
    views = [
        6 * random.standard_normal((3, d))[y] + random.standard_normal((300, d)) for d in (4, 17)
    ]
    model = RFFMultiKernelPowerKMeans(3, random_state=0).fit(views)
    maps = [each for each in model.feature_maps_ if isinstance(each, DiffusionMap)]
    few = all_rows < 300
    assert [len(each.landmarks_) < 100 for each in maps] == [few, False, few, False, False]
    assert adjusted_rand_score(y, model.labels_) == 1


# ---- the parameter `typicality` ------------------------------------------------------------------


def test_a_component_of_most_rows_has_no_reference_distance_of_rounding(dtype):
    """Its rows have equal diffusion features up to rounding: their median distance is none."""
    y = np.repeat([0, 1, 2], [600, 200, 200])
    random = np.random.default_rng(0)
    X = random.standard_normal((3, 8))[y] * 6 + random.standard_normal((len(y), 8))
    views = [X[:, :4].astype(dtype), X[:, 4:].astype(dtype)]
    model = RFFMultiKernelPowerKMeans(3, kernels="diffusion", typicality="auto", random_state=0)
    model.fit(views)
    assert_allclose(model.eta_, 1.0, rtol=0.01)
    assert adjusted_rand_score(y, model.labels_) > 0.99


def test_typicality_is_a_word_or_parameters_which_are_in_model_files(views, tmp_path):
    model = ip_rff_mkpkm(4, typicality=Typicality(), **PLAIN).fit(views[0])
    word = clone(model).set_params(typicality="auto").fit(views[0])
    assert_array_equal(word.eta_, model.eta_)
    assert word.objective_ == model.objective_
    model.set_params(typicality__m=1.5, typicality__eta=0.5)
    u = model.predict_typicality(views[0])
    assert_array_equal(u, word.predict_typicality(views[0]))  # a fitted model keeps its fuzzifier
    assert_array_equal(model.fit(views[0]).eta_, 0.5)
    model.save(tmp_path / "model")
    found = rffpk.load(tmp_path / "model")
    assert found.typicality.get_params() == {"eta": 0.5, "m": 1.5}
    assert_array_equal(found.predict_typicality(views[0]), model.predict_typicality(views[0]))

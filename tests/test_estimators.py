"""The public interface of the estimators."""

import conventions
import numpy as np
import oracles
import pandas as pd
import pytest
from contracts.source import Sampling, sample_tables
from conventions import ip_rff_mkpkm, weight_and_sparse_failures
from fusion_cases import three_views
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rffpk
from rffpk import (
    Annealing,
    AverageMKKM,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    PowerKMeans,
    RandomFourierFeatures,
    RFFKernelPowerKMeans,
)

CLUSTERERS = [PowerKMeans, FuzzyCMeans, RFFKernelPowerKMeans]
# Their conventions are checked with other tests, or with fewer starts.
ELSEWHERE = [
    DiffusionPowerKMeans, rffpk.KernelKMeans, KernelPowerKMeans, rffpk.MultiKernelPowerKMeans,
]  # fmt: skip


@parametrize_with_checks(
    [
        RandomFourierFeatures(8),
        *(cls() for cls in conventions.CLUSTERERS if cls not in ELSEWHERE),
        *(cls(n_init=2) for cls in ELSEWHERE[1:]),
        ip_rff_mkpkm(), rffpk.LKAM(n_neighbors=3), rffpk.CoregSC(scheme="centroid"),
        rffpk.FAMKKM(approximation="rff"), rffpk.FAMKKM(approximation="nystroem"),
        rffpk.NystroemKernelKMeans(n_components=2),
    ],
    expected_failed_checks=weight_and_sparse_failures,
)  # fmt: skip
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(500, n_features=4, centers=5, random_state=3)


FITS = {  # of an earlier fit and of a later one, with attributes that only the former sets
    "features": (
        DiffusionPowerKMeans(noise="auto", store_memberships=True, random_state=0),
        {"noise": None, "store_memberships": False, "metric": "precomputed"},
    ),
    "kernel": (
        KernelPowerKMeans("auto", store_memberships=True, random_state=0),
        {"n_clusters": 3, "store_memberships": False, "kernel": "precomputed"},
    ),
    "fusion": (
        AverageMKKM("auto", store_memberships=True, random_state=0),
        {"n_clusters": 3, "store_memberships": False, "kernels": "precomputed"},
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_nothing_is_left_of_an_earlier_fit(name, blobs):
    model, later = FITS[name]
    X = blobs[0][:100]
    affinities = rbf_kernel(X)
    model = clone(model).fit(pd.DataFrame(X).add_prefix("x") if name != "fusion" else X)
    new = clone(model).set_params(**later).fit(affinities)
    left = vars(model).keys() - vars(new).keys()
    assert left
    model.set_params(**later).fit(affinities)
    assert vars(model).keys() == vars(new).keys()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 3), np.nan))
    assert vars(model).keys() == vars(new).keys()


def starting_at(estimator, X, k=5):
    """Return the estimator with the first rows as initial centroids."""
    model = estimator(k, init=X[:k], random_state=0)
    if estimator is RFFKernelPowerKMeans:
        model.set_params(gamma=0.05, n_frequencies=64)
    return model


@pytest.mark.few(1)
def test_digits(backend, digits):
    X, y = digits
    model = RFFKernelPowerKMeans(10, random_state=0).fit(X)
    assert normalized_mutual_info_score(y, model.labels_) >= 0.70
    features = model.feature_map_.transform(X)
    peer = KMeans(10, n_init=1, random_state=0).fit(features)
    assert model.inertia_ <= 1.002 * peer.inertia_


@pytest.mark.parametrize("estimator", CLUSTERERS)
def test_attributes_and_methods_agree(backend, blobs, dtype, estimator):
    X, y = blobs
    X = X.astype(dtype)
    X.flags.writeable = False
    model = estimator(5, random_state=0)
    assert_array_equal(model.fit_predict(X), model.labels_)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert model.labels_.dtype == np.int32
    assert model.cluster_centers_.dtype == dtype
    width = 2 * model.feature_map_.n_frequencies_ if estimator is RFFKernelPowerKMeans else 4
    assert model.cluster_centers_.shape == (5, width)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.predict(X[17:18]), model.labels_[17:18])
    distances = model.transform(X)
    assert distances.dtype == dtype and distances.shape == (500, 5)
    assert_array_equal(distances.argmin(axis=1), model.labels_)
    memberships = model.predict_proba(X)
    assert memberships.dtype == dtype
    assert_allclose(memberships.sum(axis=1), 1, rtol=1e-5)
    assert ((memberships >= 0) & (memberships <= 1)).all()
    assert_array_equal(memberships.argmax(axis=1), model.labels_)
    assert_allclose(model.score(X), -(distances.min(axis=1) ** 2).sum(), rtol=1e-4)
    assert model.inertia_ <= -model.score(X) * (1 + 1e-5)
    assert model.n_features_in_ == 4
    prefix = estimator.__name__.lower()
    assert [*model.get_feature_names_out()] == [f"{prefix}{i}" for i in range(5)]


@pytest.mark.parametrize("m", [1.1, 1.5, 2.0, 4.0])
def test_fuzzy_c_means_is_that_of_the_textbooks(backend, blobs, m):
    X, _ = blobs
    model = FuzzyCMeans(5, m=m, tol=1e-10, max_iter=3000, random_state=0).fit(X)
    V = model.cluster_centers_
    assert_allclose(model.s_, -1 / (m - 1))
    assert_allclose(model.predict_proba(X), oracles.fcm_memberships(X, V, m), atol=1e-9)
    assert_allclose(model.objective_, oracles.fcm_objective(X, V, m), rtol=1e-9)
    assert_allclose(V, oracles.fcm_step(X, V, m), atol=1e-6)
    *_, last, start = model.history_
    assert_allclose([last["objective"], start["objective"]], model.objective_, rtol=1e-6)


@pytest.mark.promise(
    "Input",
    "Integer weights give what repeated rows give, where no draw matters. Rows of weight zero "
    "have no influence, and weights of one change no bit.",
)
@pytest.mark.parametrize("estimator", CLUSTERERS)
def test_weights_are_repetitions_at_a_fixed_start(backend, blobs, estimator):
    X, _ = blobs
    repeats = np.random.default_rng(0).integers(0, 4, len(X))
    model = starting_at(estimator, X)
    repeats.flags.writeable = model.init.flags.writeable = False
    if "annealing" in model.get_params():
        model.set_params(annealing=Annealing(start=-2.0))
    weighted = clone(model).fit(X, sample_weight=repeats)
    repeated = clone(model).fit(np.repeat(X, repeats, axis=0))
    assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-9, atol=1e-10)
    assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-10)
    assert_array_equal(np.repeat(weighted.labels_, repeats), repeated.labels_)
    assert_allclose(
        weighted.score(X, sample_weight=repeats), repeated.score(np.repeat(X, repeats, axis=0))
    )


@pytest.mark.parametrize("estimator", CLUSTERERS)
def test_order_of_rows_and_centroids_does_not_matter(blobs, estimator):
    X = blobs[0]
    order = np.random.default_rng(1).permutation(len(X))
    names = np.array([3, 0, 4, 1, 2])
    model = starting_at(estimator, X)
    expected = clone(model).fit(X)
    permuted = clone(model).set_params(init=model.init[names]).fit(X[order])
    assert_array_equal(names[permuted.labels_], expected.labels_[order])
    assert_allclose(permuted.inertia_, expected.inertia_, rtol=1e-10)


# Models, and on how many rows their threads share work.
SHARED = [
    *((cls(5), 4500) for cls in CLUSTERERS),
    *((cls(4), 360) for cls in conventions.CLUSTERERS if cls is not rffpk.LMKKM),
    (rffpk.RFFMultiKernelPowerKMeans(4, n_init=1, allow_missing_views=True), 360),
    (rffpk.LMKKM(4, n_landmarks=50), 360), (KernelPowerKMeans(4, cache=False), 360),
    (AverageMKKM(4, n_landmarks=50), 360), (rffpk.CoregSC(4, scheme="centroid"), 360),
    (rffpk.FAMKKM(4, approximation=("nystroem", 60)), 360), (rffpk.SMKC(4, anchors=60), 360),
    (rffpk.FAMKKM(4, approximation=("rff", 9), max_iter=2, n_init=1), 9000),
]  # fmt: skip


@pytest.mark.promise("Threads", "The bits of a result do not depend on the number of threads.")
@pytest.mark.filterwarnings("ignore:sample_weight has the mean")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("model, n", SHARED, ids=str)
def test_same_bits_for_any_number_of_jobs(dtype, model, n, sparse, weighted, tuning):
    tuning(tiles__row_numbers=5000, tiles__smkc_numbers=18_000, tiles__smkc_chunk_numbers=5400)
    xs = [x.astype(dtype) for x in three_views(n)[0]]
    if "allow_missing_views" in model.get_params() and model.allow_missing_views:
        xs[2][::7] = np.nan
    elif sparse:
        xs[1] = csr_array(np.where(xs[1] > 1, xs[1], 0))
    X = xs if "kernels" in model.get_params() else xs[1]
    weight = np.random.default_rng(0).uniform(0.5, 2, n) if weighted else None
    model = clone(model).set_params(random_state=0)
    one, other = (clone(model).set_params(n_jobs=k).fit(X, sample_weight=weight) for k in (1, 3))
    for name in ("labels_", "inertia_", "objective_", "kernel_weights_"):
        assert_array_equal(getattr(one, name, 0), getattr(other, name, 0))
    assert_array_equal(one.transform(X), other.transform(X))


@pytest.mark.parametrize("estimator", CLUSTERERS)
def test_edge_shapes(backend, dtype, estimator):
    X = np.random.default_rng(0).standard_normal((12, 3)).astype(dtype)
    one = estimator(1, random_state=0).fit(X)
    assert_array_equal(one.labels_, 0)
    if estimator is not RFFKernelPowerKMeans:
        assert_allclose(one.cluster_centers_[0], X.mean(axis=0), atol=1e-5)
    every = estimator(12, random_state=0, **({"m": 1.2} if estimator is FuzzyCMeans else {})).fit(X)
    assert len(set(every.labels_)) == 12
    assert every.inertia_ <= 1e-5 * one.inertia_
    assert estimator(1, random_state=0).fit(X[:1]).inertia_ <= 1e-10


def test_pipeline_and_grid_search(blobs):
    X, _ = blobs
    chain = make_pipeline(StandardScaler(), RandomFourierFeatures(32), PowerKMeans(5))
    assert chain.fit(X).predict(X).shape == (500,)
    search = GridSearchCV(PowerKMeans(random_state=0), {"n_clusters": [2, 5]}, cv=3).fit(X)
    assert search.best_params_ == {"n_clusters": 5}


def test_every_kind_of_initial_centroids(blobs):
    X, y = blobs

    def chosen(features, n_clusters, random_state):
        assert features.shape == (500, 4) and n_clusters == 5
        assert_allclose(features, X, rtol=1e-12, atol=1e-12)
        return features[:n_clusters]

    by_array = PowerKMeans(5, init=X[:5], random_state=0).fit(X)
    by_call = PowerKMeans(5, init=chosen, random_state=0).fit(X)
    assert_allclose(by_call.cluster_centers_, by_array.cluster_centers_)
    for init in ("k-means++", "random", "k-means"):
        model = PowerKMeans(5, init=init, random_state=0).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.9
        assert model.history_[0] == {"stage": "seeding", "rows": 500}


def test_seeding_takes_a_sample_and_records_its_size():
    X = np.random.default_rng(0).standard_normal((30_000, 3)).astype(np.float32)
    model = PowerKMeans(4, random_state=0, sample=None, max_iter=2).fit(X)
    assert model.history_[0] == {"stage": "seeding", "rows": 20_000}
    assert model.history_[1]["rows"] == 30_000


@pytest.mark.parametrize("weighted", [False, True])
def test_starts_run_on_a_sample_and_end_on_all_rows(weighted):
    X, y = make_blobs(28_000, 3, centers=4, random_state=0)
    weight = np.random.default_rng(0).integers(0, 3, len(X)) if weighted else None
    model = PowerKMeans(4, sample=500, random_state=0).fit(X, sample_weight=weight)
    sizes = [record["rows"] for record in model.history_ if "s" in record]
    assert model.sample_size_ == sizes[0] <= 500
    assert sizes == sorted(sizes) and len(set(sizes)) == 3 and sizes[-1] == 28_000
    assert 3000 < sorted(set(sizes))[1] <= 4000
    full = PowerKMeans(4, sample=None, random_state=0).fit(X, sample_weight=weight)
    assert full.sample_size_ == 28_000
    assert_allclose(model.inertia_, full.inertia_, rtol=1e-3)
    assert adjusted_rand_score(y, model.labels_) > 0.85
    auto = PowerKMeans(4, random_state=0, max_iter=3, annealing=Annealing(swaps=0))
    auto.fit(X, sample_weight=weight)
    assert auto.sample_size_ == (28_000 if weighted else 20_000)  # 19 000 rows are weighted


def test_a_sample_finds_a_few_heavy_rows():
    """Ten rows carry half of the weight: a uniform sample of 200 would miss them."""
    X = np.random.default_rng(0).standard_normal((20_000, 2))
    weight = np.ones(20_000)
    weight[:10] = 2000
    row_sample = sample_tables([X], weight, Sampling(200, 200, 0, 1))
    assert row_sample.sizes_of_starts(200, 1)[:2] == [200, 1600]
    for size in (200, 1600):
        (rows,), p = row_sample.some(size)
        heavy = np.isin(rows, X[:10]).all(axis=1)
        assert heavy.sum() == 10 and len(rows) == size
        assert_allclose(p[heavy], 2000, rtol=1e-4)
        assert_allclose(p[~heavy].sum(), 19_990, rtol=0.25)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_a_sample_has_rows_for_all_clusters_when_one_row_has_all_the_weight(backend, init):
    X = np.random.default_rng(0).standard_normal((300, 3))
    weight = np.full(300, 1e-8)
    weight[0] = 1
    model = PowerKMeans(8, sample=20, init=init, random_state=0).fit(X, sample_weight=weight)
    assert len(set(model.labels_)) == 8


def test_rows_of_weight_zero_do_not_make_a_sample():
    X = np.random.default_rng(0).standard_normal((300, 3))
    weight = np.r_[np.ones(200), np.zeros(100)]
    fits = [
        PowerKMeans(4, sample=200, random_state=0).fit(rows, sample_weight=w)
        for rows, w in ((X[:200], None), (X, weight))
    ]
    assert_allclose(fits[0].inertia_, fits[1].inertia_, rtol=1e-3)
    assert {r["rows"] for r in fits[1].history_ if "s" in r} == {300}


def test_a_final_exponent_that_was_not_reached_gives_a_warning(blobs):
    model = PowerKMeans(4, n_init=1, sample=100, max_iter=20, tol=1e-2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        model.set_params(annealing=Annealing(end=-50.0)).fit(blobs[0])


@pytest.mark.parametrize("init", [lambda rows, k, random_state: np.asarray(rows)[:k], None])
@pytest.mark.parametrize("estimator", CLUSTERERS)
def test_starts_beside_a_given_one_are_named(blobs, estimator, init):
    X = blobs[0][:60]
    init = X[:3] if init is None else init
    model = estimator(3, init=init, n_init=2, random_state=0)
    with pytest.warns(UserWarning, match="n_init=2: has no effect, because there is one start"):
        model.fit(X)
    model.set_params(n_init=1).fit(X)
    model.set_params(n_init="auto").fit(X)


@pytest.mark.parametrize("layout", ["fortran", "strided", "unaligned", "integers", "list"])
def test_other_layouts_and_types_are_converted(blobs, layout):
    X = np.round(blobs[0] * 8) / 8
    other = {
        "fortran": np.asfortranarray(X),
        "unaligned": np.frombuffer(b"0" + X.tobytes(), offset=1).reshape(X.shape),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "integers": (X * 8).astype(np.int64),
        "list": X.tolist(),
    }[layout]
    expected = PowerKMeans(5, random_state=0).fit(X * 8 if layout == "integers" else X)
    model = PowerKMeans(5, random_state=0).fit(other)
    assert model.cluster_centers_.dtype == np.float64
    assert_array_equal(model.labels_, expected.labels_)


def test_a_soft_result_is_stationary_at_its_exponent(blobs):
    X, _ = blobs
    model = PowerKMeans(5, annealing=Annealing(start=-1.0, end=-3.0), random_state=0).fit(X)
    assert model.s_ == -3.0 == [r["s"] for r in model.history_ if "s" in r][-1]
    same = FuzzyCMeans(5, m=1 + 1 / 3, init=model.cluster_centers_).fit(X)
    assert_allclose(same.cluster_centers_, model.cluster_centers_, atol=1e-3)
    assert 1e-3 < 1 - model.predict_proba(X).max(axis=1).mean() < 0.5


@pytest.mark.parametrize("cls", [PowerKMeans, RFFKernelPowerKMeans, KernelPowerKMeans])
def test_memberships_at_any_exponent(cls, blobs):
    X, _ = blobs
    model = cls(5, random_state=0).fit(X)
    squares = model.transform(X).astype(np.float64) ** 2
    for s in (-0.2, -1.0, -7.0):
        powers = (squares / squares.min(axis=1, keepdims=True)) ** s
        expected = powers / powers.sum(axis=1, keepdims=True)
        assert_allclose(model.predict_proba(X, s=s), expected, rtol=1e-6, atol=1e-12)
    assert_array_equal(model.predict_proba(X, s=-np.inf), np.eye(5)[model.predict(X)])
    assert_array_equal(model.predict_proba(X, s=model.membership_exponent_), model.predict_proba(X))
    for s in (-0.1, 1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="^s="):
            model.predict_proba(X, s=s)
    with pytest.raises(TypeError, match="^s='soft'"):
        model.predict_proba(X, s="soft")


@pytest.mark.parametrize("cls", [PowerKMeans, RFFKernelPowerKMeans, KernelPowerKMeans])
def test_medoids_are_the_rows_nearest_to_the_centroids(cls, blobs):
    X, _ = blobs
    model = cls(5, random_state=0).fit(X)
    medoids = model.medoids(X)
    assert_array_equal(medoids, [np.argmin(column) for column in model.transform(X).T])
    assert_array_equal(model.labels_[medoids], range(5))

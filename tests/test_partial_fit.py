"""Streams: batches move the centroids by the running sums that the formulas give."""

import copy
import pickle
import warnings

import numpy as np
import oracles
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.validation import check_is_fitted
from test_docs import CLASSES

import rffpk
from rffpk import Annealing, DiffusionPowerKMeans, FuzzyCMeans, PowerKMeans, RFFKernelPowerKMeans

HARD = PowerKMeans(3, sample=60, random_state=0)
SOFT = PowerKMeans(3, sample=60, annealing=Annealing(end=-3.0), random_state=0)
KERNEL = RFFKernelPowerKMeans(3, sample=60, n_frequencies=16, random_state=0)
FUZZY = FuzzyCMeans(3, m=1.5, sample=60, random_state=0)


MODELS = {"hard": HARD, "soft": SOFT, "kernel": KERNEL, "fuzzy": FUZZY}
SIZES = (1, 7, 40, 1, 1, 150)  # of batches


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param])


def rows_of(seed, n=260):
    return make_blobs(n, 4, centers=3, cluster_std=0.8, random_state=seed)[0]


def weights_of(n):
    return np.random.RandomState(n).choice([0.0, 0.5, 1.0, 3.0], n)


def batches(X, sizes=SIZES):
    return np.split(X, np.cumsum(sizes))[: len(sizes)]


def sums_of_batch(model, s, X, weight):
    """Compute N, of features that are not shifted, and G by the formulas."""
    mapped = getattr(model, "feature_map_", None)
    phi = X if mapped is None else mapped.transform(X)
    d = ((phi[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    v = np.eye(d.shape[1])[d.argmin(axis=1)]
    if np.isfinite(s):
        v = oracles.kpkm_weights(d, s) * d.shape[1] ** (1 / s)
    v *= weight[:, None]
    return v.T @ phi, v.sum(axis=0)


@pytest.mark.parametrize("half_life", [None, 50, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_centroids_are_the_discounted_sums_of_all_batches(model, half_life, weighted):
    X, first = rows_of(0), rows_of(0)[:60]
    model.partial_fit(first, half_life=half_life)
    soft = isinstance(model, FuzzyCMeans) or isinstance(model.annealing, Annealing)
    s = model.s_ if soft else -np.inf
    d = 1.0 if half_life is None else 2 ** (-1 / half_life)
    shift = np.concatenate(model._centroids.shifts)
    N, G = sums_of_batch(model, s, first, np.ones(60))
    share = np.mean(d ** np.arange(60))  # of the first rows, had they come one by one
    N, G = share * G[:, None] * model.cluster_centers_, share * G
    for batch in batches(X[60:], SIZES):
        weight = weights_of(len(batch)) if weighted else np.ones(len(batch))
        later = np.array([np.count_nonzero(weight[i + 1 :]) for i in range(len(batch))])
        n = np.count_nonzero(weight)
        moments = sums_of_batch(model, s, batch, weight * d**later)
        N, G = d**n * N + moments[0], d**n * G + moments[1]
        given = weight if weighted else None
        model.partial_fit(batch, sample_weight=given, half_life=half_life)
        if n:
            assert_allclose(model._centroids.running.G, G, rtol=1e-12, atol=1e-12 * G.max())
            unshifted = model._centroids.running.N + model._centroids.running.G[:, None] * shift
            assert_allclose(unshifted, N, rtol=1e-12, atol=1e-12 * np.abs(N).max())
            assert_allclose(model.cluster_centers_, N / G[:, None], rtol=1e-12, atol=1e-12)


def test_rows_of_a_batch_have_weights_in_many_clusters():
    X = np.random.default_rng(0).standard_normal((400, 3))
    with warnings.catch_warnings(action="ignore"):
        model = FuzzyCMeans(100, max_iter=5, random_state=0).fit(X[:200])
    _, G = sums_of_batch(model, model.s_, X[:200], np.ones(200))
    moments = sums_of_batch(model, model.s_, X[200:], np.ones(200))
    N, G = G[:, None] * model.cluster_centers_ + moments[0], G + moments[1]
    assert_allclose(model.partial_fit(X[200:]).cluster_centers_, N / G[:, None], rtol=1e-9)


@pytest.mark.promise("Files", "A stream that was saved and loaded goes on with the same bits.")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saving_and_going_on_gives_the_same_bits(model, dtype, tmp_path):
    X = rows_of(2).astype(dtype)
    pickled, filed = clone(model), clone(model)
    for i, batch in enumerate(batches(X, (1, 30, 29, 1, 60, 1, 100))):
        weight = weights_of(len(batch)) if i % 2 else None
        for each in (model, pickled, filed):
            each.partial_fit(batch, sample_weight=weight, half_life=100.0)
        filed.save(tmp_path / "model")
        pickled, filed = pickle.loads(pickle.dumps(pickled)), rffpk.load(tmp_path / "model")
    assert model.n_buffered_ == 0 and model._centroids.running is not None
    for again in (pickled, filed):
        assert_array_equal(again.cluster_centers_, model.cluster_centers_)
        assert_array_equal(again._centroids.running.N, model._centroids.running.N)
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_first_rows_are_fitted(model):
    X = rows_of(3)
    expected = clone(model).fit(X[:75])
    for batch in batches(X, (1, 20, 38)):
        given = batch.copy()
        assert model.partial_fit(given) is model
        given[:] = 0  # rows are copied
        kept = f"has {model.n_buffered_} of the 60 rows that its first fit takes"
        for method in (model.predict, model.predict_proba, model.transform, model.score):
            with pytest.raises(NotFittedError, match=kept):
                method(X)
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        for name in ("cluster_centers_", "labels_", "inertia_", "s_"):
            message = f"^{name} is not there yet: .* {kept}: give partial_fit more"
            with pytest.raises(AttributeError, match=message):
                getattr(model, name)
        with pytest.raises(AttributeError, match="object has no attribute 'centers'"):
            model.centers  # noqa: B018
    assert model.n_buffered_ == 59 and not hasattr(model, "cluster_centers_")
    model.partial_fit(X[59:75])
    assert model.n_buffered_ == 0
    assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    whole = clone(model).partial_fit(X)
    assert_array_equal(whole.cluster_centers_, clone(model).fit(X).cluster_centers_)
    assert not {"inertia_", "objective_"} & {*vars(whole)}


@pytest.mark.parametrize("cls", [PowerKMeans, FuzzyCMeans])
@pytest.mark.parametrize(
    ("k", "sample", "first"),
    [(8, "auto", 20_000), (600, "auto", 30_000), (600, None, 30_000), (8, 50, 50), (8, 8, 8)],
)
def test_the_number_of_first_rows(cls, k, sample, first):
    model = cls(k, sample=sample)
    for rows, message in ((0, "is not fitted yet"), (3, f"has 3 of the {first} rows")):
        if rows:
            model.partial_fit(rows_of(1, rows))
        with pytest.raises(NotFittedError, match=message):
            model.predict(rows_of(1))


def test_a_stream_goes_on_after_a_fit(model):
    X = rows_of(4, 400)

    def source():
        yield from np.array_split(X[:300], 4)

    fitted, streamed, read = clone(model).fit(X[:300]), clone(model), clone(model).fit(source)
    streamed.partial_fit(X[:300])
    with pytest.raises(AttributeError, match="of the rows of a source are not kept"):
        read.labels_  # noqa: B018
    for batch in np.array_split(X[300:], 3):
        labels = fitted.predict(batch)
        for each in (fitted, streamed, read):
            each.partial_fit(batch)
        assert_array_equal(fitted.labels_, labels)
    iterated = model.partial_fit(iter([X[:300], *np.array_split(X[300:], 3)]))
    for other in (streamed, iterated):
        assert_array_equal(fitted.cluster_centers_, other.cluster_centers_)
    assert_allclose(read.cluster_centers_, fitted.cluster_centers_, rtol=1e-6, atol=1e-9)
    with pytest.raises(TypeError, match="blocks for partial_fit"):
        read.partial_fit(source)


def test_labels_are_those_of_the_last_batch(model):
    X = rows_of(4)
    model.partial_fit(X[:59]).partial_fit(X[59:80])
    assert_array_equal(model.labels_, model.predict(X[59:80]))
    for weight in (None, np.r_[0.0, np.ones(8), 0.0], np.zeros(10)):
        expected = model.predict(X[80:90])
        model.partial_fit(X[80:90], sample_weight=weight)
        assert model.labels_.dtype == np.int32
        assert_array_equal(model.labels_, expected)


def test_a_fit_begins_anew(model):
    X = rows_of(5)
    expected = clone(model).fit(X)
    for first in (30, 100):
        again = clone(model).partial_fit(X[:first]).partial_fit(X[:3], half_life=50).fit(X)
        assert vars(again).keys() == vars(expected).keys()
        assert_array_equal(again.cluster_centers_, expected.cluster_centers_)


# ---- what the batches may be ---------------------------------------------------------------------


def test_rows_of_weight_zero_have_no_influence(model):
    X, weight, sizes = rows_of(6), np.tile([1.0, 2.0, 0.0], 87)[:260], (20, 100, 1, 1, 1, 137)
    alone = clone(model)
    for batch, p in zip(batches(X, sizes), batches(weight, sizes)):
        model.partial_fit(batch, sample_weight=p, half_life=20.0)
        if (p > 0).any():
            alone.partial_fit(batch[p > 0], sample_weight=p[p > 0], half_life=20.0)
        assert model.n_buffered_ == alone.n_buffered_
    assert_array_equal(model.cluster_centers_, alone.cluster_centers_)
    assert_array_equal(model._centroids.running.N, alone._centroids.running.N)


def test_a_batch_of_weight_zero_changes_nothing(model):
    X = rows_of(7)
    for first in (20, 100):
        before = dict(vars(model.partial_fit(X[:first])))
        after = vars(model.partial_fit(X[:5], sample_weight=np.zeros(5)))
        before.pop("labels_", None)  # of the batch before
        assert len(after.pop("labels_", X[:5])) == 5
        assert after.pop("_buffer", None) == before.pop("_buffer", None) and after == before
    fresh = clone(model).partial_fit(X[:1], sample_weight=[0.0])
    assert fresh.n_buffered_ == 0
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@pytest.mark.few(1)
def test_the_centroid_of_an_empty_cluster_stays(dtype):
    X, y = make_blobs(400, 2, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    X = X.astype(dtype)
    model = PowerKMeans(3, sample=100, random_state=0).fit(X)
    label = model.predict(X[y == 2][:1])[0]
    for row in np.vstack([X[y != 2]] * 4):
        before = model.cluster_centers_[label].copy()
        model.partial_fit(row[None], half_life=0.5)
        assert_allclose(
            model.cluster_centers_[label], before, rtol=1e-6 if dtype == "f4" else 1e-12
        )
    # nothing is left of its sums, and it has not moved in the last steps
    assert model._centroids.running.G[label] < 1e-250
    assert_array_equal(model.cluster_centers_[label], before)
    model.partial_fit(X[y == 2][:1])
    assert_allclose(model.cluster_centers_[label], X[y == 2][0], rtol=1e-6)


@pytest.mark.promise("Input", "A batch of a stream that is refused leaves the estimator as it was.")
@pytest.mark.parametrize("first", [0, 20, 100], ids=["at once", "before the fit", "after the fit"])
def test_a_refused_batch_changes_nothing(model, first):
    X = rows_of(8)
    if first:
        model.partial_fit(X[:first]).partial_fit(X[:1])
    before, values = pickle.dumps(model), dict(vars(model))
    refused = [
        (np.full((3, 4), np.nan), {}),
        (X[:3], {"sample_weight": [1, -1, 1]}),
        (X[:3], {"sample_weight": [1, 1]}),
        (X[:0], {}),
        ([["a"] * 4], {}),
        (np.ones(4), {}),
        (iter([X]), {"sample_weight": np.ones(5)}),
        *((rows, {"half_life": half_life}) for half_life in (0, -1.0, np.nan, np.inf, "long", True)
          for rows in (X, iter([X]))),
    ]  # fmt: skip
    if first:
        refused.append((X[:3, :2], {}))
    if first and not isinstance(model, RFFKernelPowerKMeans):
        refused.append((np.full((2, 4), 1e300), {}))
    for batch, options in refused:
        with pytest.raises((ValueError, TypeError), match="".join(options) or "X"):
            model.partial_fit(batch, **options)
        assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="n_jobs=0"):
        clone(model).set_params(n_jobs=0).partial_fit(X[:3])
    assert all(vars(model)[name] is value for name, value in values.items())


def test_a_first_fit_that_is_refused_keeps_the_rows_before_it():
    model = PowerKMeans(3, sample=60, init=np.zeros((2, 4)))
    before = pickle.dumps(model.partial_fit(rows_of(9)[:50]))
    with pytest.raises(ValueError, match=r"^init.shape=\(2, 4\)"):
        model.partial_fit(rows_of(9)[:50])
    assert pickle.dumps(model) == before
    assert model.set_params(init="k-means++").partial_fit(rows_of(9)[50:]).n_buffered_ == 0


def test_names_of_columns_are_those_of_the_first_batch(model):
    frame = pd.DataFrame(rows_of(10), columns=[*"abcd"])
    for begin, end in ((0, 20), (20, 100), (100, 260)):
        model.partial_fit(frame[begin:end])
        assert [*model.feature_names_in_] == [*"abcd"] and model.n_features_in_ == 4
        with pytest.raises(ValueError, match="feature names should match"):
            model.partial_fit(frame[["a", "b", "d", "c"]])
    assert len(model.predict(frame)) == 260


@pytest.mark.parametrize("fitted, given", [("f4", "f4"), ("f4", "f8"), ("f8", "f4")])
def test_dtypes_may_change(model, fitted, given):
    X = rows_of(11) + 30
    model.set_params(init="random", tol=1e-6)
    expected = clone(model).partial_fit(X[:100]).partial_fit(X[100:])
    model.partial_fit(X[:100].astype(fitted)).partial_fit(X[100:].astype(given))
    assert model.cluster_centers_.dtype == fitted
    centers = [np.sort(each.cluster_centers_, axis=0) for each in (model, expected)]
    assert_allclose(*centers, rtol=2e-5, atol=2e-5)


def test_sums_are_about_the_shift_of_the_fit_which_float32_rounds():
    X = (rows_of(11) + 1e4).astype("f4")
    model = clone(HARD).partial_fit(X[:100].astype("f8"))
    narrow, wide = (copy.deepcopy(model).partial_fit(X[100:].astype(t)) for t in ("f4", "f8"))
    assert np.abs(model._centroids.shifts[0].astype("f4") - model._centroids.shifts[0]).max() > 1e-4
    assert_allclose(narrow.cluster_centers_, wide.cluster_centers_, rtol=0, atol=1e-5)


def test_float32_loses_no_small_steps():
    """A row among many moves a centroid by less than float32 resolves."""
    random = np.random.RandomState(0)
    first = (1 + 0.01 * random.randn(20_000, 1)).astype(np.float32)
    model = PowerKMeans(1, random_state=0).fit(first)
    rest = (1.03 + 0.001 * random.randn(500, 1)).astype(np.float32)
    for row in rest:
        model.partial_fit(row[None])
    mean = np.concatenate([first, rest]).mean(dtype=np.float64)
    assert_allclose(model.cluster_centers_[0, 0], mean, rtol=1e-7)


def test_same_bits_for_any_number_of_threads_and_types_of_a_half_life(model):
    X, centers = rows_of(12, 3000), []
    for n_jobs, half_life in ((1, 100.0), (3, np.float16(100.0))):
        each = clone(model).set_params(n_jobs=n_jobs).partial_fit(X[:1000], half_life=half_life)
        centers.append(each.partial_fit(X[1000:], half_life=half_life).cluster_centers_)
    assert_array_equal(*centers)


# ---- what streams are for ------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["blobs", "digits"])
@pytest.mark.parametrize("cls", [PowerKMeans, RFFKernelPowerKMeans, FuzzyCMeans])
def test_without_drift_the_objective_is_near_that_of_a_fit(data, cls, digits):
    X, k = digits[0], 10
    if data == "blobs":
        X, _ = make_blobs(6000, 8, centers=12, cluster_std=2.0, random_state=0)
        k = 12
    X = X[np.random.RandomState(0).permutation(len(X))]
    m = {"m": 1.2} if cls is FuzzyCMeans else {"sample": 500}
    whole = cls(k, random_state=0, **m).fit(X)
    model = cls(k, random_state=0, **m)
    model = model.fit(X[:500]) if cls is FuzzyCMeans else model.partial_fit(X[:500])
    model.partial_fit(X[begin : begin + 100] for begin in range(500, len(X), 100))

    def objective(fitted):
        if cls is FuzzyCMeans:
            return (fitted.predict_proba(X) ** fitted.m * fitted.transform(X) ** 2).sum()
        if cls is PowerKMeans:
            return -fitted.score(X)
        # features differ: use the whole fit's features
        labels, features = fitted.predict(X), whole.feature_map_.transform(X)
        means = [features[labels == j].mean(axis=0) for j in range(k)]
        return ((features - np.take(means, labels, axis=0)) ** 2).sum()

    assert objective(model) <= 1.02 * objective(whole)


def test_diffusion_features_of_the_first_rows_serve_a_stream():
    X, y = make_moons(3000, noise=0.06, random_state=0)
    model = DiffusionPowerKMeans(2, sample=500, random_state=0)
    for batch in np.split(X, 30):
        model.partial_fit(batch, half_life=1000.0)
    assert model.n_buffered_ == 0 and adjusted_rand_score(y, model.predict(X)) > 0.99


@pytest.mark.parametrize("cls", CLASSES)
def test_classes_of_one_view_of_features_take_batches(cls):
    takes = cls in (PowerKMeans, RFFKernelPowerKMeans, DiffusionPowerKMeans, FuzzyCMeans)
    assert hasattr(cls(), "partial_fit") == takes


def test_another_number_of_clusters_is_refused_once_there_are_centroids(model):
    X = rows_of(0)
    before = model.partial_fit(X).cluster_centers_.copy()
    with pytest.raises(ValueError, match="n_clusters=4: earlier rows have 3"):
        model.set_params(n_clusters=4).partial_fit(X)
    assert_array_equal(model.cluster_centers_, before)
    assert len(model.fit(X).cluster_centers_) == 4

"""The parameter `noise`: which rows are left out, and what a fitted model says of them."""

import pickle
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

import rffpk
from rffpk import Annealing, FuzzyCMeans, KernelKMeans, KernelPowerKMeans, PowerKMeans

FEW = {"n_frequencies": 64, "n_init": 1, "annealing": Annealing(swaps=0)}
CLASSES = [
    (PowerKMeans, {}), (rffpk.DiffusionPowerKMeans, {}), (rffpk.RFFKernelPowerKMeans, FEW),
    (rffpk.RFFMultiKernelPowerKMeans, FEW),
]  # fmt: skip


def noisy_rows(n=600, d=5, seed=0):
    """Return four clusters and a tenth of uniform noise; its label is -1."""
    random = np.random.default_rng(seed)
    centers = 12 * random.standard_normal((4, d))
    X, y = make_blobs(n, centers=centers, random_state=seed)
    noise = random.uniform(X.min(axis=0), X.max(axis=0), (n // 10, d))
    order = random.permutation(len(X) + len(noise))
    return np.vstack([X, noise])[order], np.r_[y, np.full(len(noise), -1)][order]


X, Y = noisy_rows()


def noise_of(rows, k=4, noise="auto", **weights):
    return PowerKMeans(k, noise=noise, random_state=0).fit(rows, **weights).labels_ == -1


def agreeing_noise(cls, k, rows, **parameters):
    """Return a model whose labels, memberships, scores and predictions agree, and its noise."""
    model = cls(k, store_memberships=True, random_state=0, **parameters).fit(rows)
    noisy = model.labels_ == -1
    assert_array_equal(model.predict(rows), model.labels_)
    assert_array_equal(model.outlier_scores_ > 0.5, noisy)
    for u in (model.memberships_, model.predict_proba(rows)):
        assert_allclose(u.sum(axis=1), ~noisy, rtol=0, atol=1e-6)
        assert_array_equal(u.sum(axis=1) == 0, noisy)
    return model, noisy


@pytest.mark.promise(
    "Noise",
    "With `noise`, labels, memberships, scores and predictions agree, at most a given share of the "
    "weight is noise, as much as rows of equal distances allow, and no centroid lies in noise.",
)
@pytest.mark.parametrize("cls, parameters", CLASSES)
@pytest.mark.parametrize("noise", ["auto", 0.1])
def test_labels_memberships_and_scores_agree(cls, parameters, noise):
    model, noisy = agreeing_noise(cls, 4, X, noise=noise, **parameters)
    assert adjusted_rand_score(Y, model.labels_) > 0.93
    assert model.outlier_scores_.min() >= 0 and model.outlier_scores_.max() <= 1
    if noise == 0.1:
        assert noisy.sum() == round(0.1 * len(X))
    far = np.full((1, X.shape[1]), 1e4)
    assert model.predict(far) == -1 and not model.predict_proba(far).any()


def quiet_rows():
    """Yield rows without noise, and the largest share of them that may be flagged."""
    for d, (k, seed) in product((2, 50, 300), ((1, 0), (5, 1))):
        yield make_blobs(1500, d, centers=k, random_state=seed)[0], 0.01
    yield make_moons(1000, noise=0.06, random_state=0)[0], 0.0
    random = np.random.default_rng(1)
    for degrees in (1, 2, 3, 5):  # heavy tails
        yield random.standard_normal((1000, 5)) / np.sqrt(random.chisquare(degrees, (1000, 1))), 0.0
    for n, d in ((100, 1), (300, 1), (300, 2), (1000, 2)):
        yield np.round(2 * random.standard_normal((n, d))), 0.02
    # a sparse cluster, and one beside clusters that have few rows at their rims
    centers, spread = [[0, 0], [9, 9]], [0.2, 1.5]
    yield make_blobs([900, 200], centers=centers, cluster_std=spread, random_state=0)[0], 0.0
    y, spread = np.repeat([0, 1, 2], [300, 300, 100]), np.array([1.0, 1.0, 3.0])
    for _ in range(4):
        centers = np.array([[0.0, 0.0], [60.0, 0.0], [20.0, 30.0]])[y]
        yield centers + spread[y][:, None] * random.normal(size=(700, 2)), 0.02
    for (d, words), seed in product([(2, 2), (3, 2), (4, 6)], range(3)):
        yield rows_with_words(2000, d, words, seed), 0.01


def test_without_noise_hardly_a_row_is_flagged():
    for rows, most in quiet_rows():
        assert noise_of(rows, 2).mean() <= most


@pytest.mark.promise(like="test_labels_memberships_and_scores_agree")
def test_no_centroid_of_many_lies_in_noise():
    random = np.random.default_rng(0)
    centers = random.standard_normal((100, 64))
    y = random.choice(100, 4000, p=random.dirichlet(np.full(100, 5.0)))
    rows = centers[y] + 0.5 * random.standard_normal((4000, 64))
    rows[:400], y[:400] = random.standard_normal((400, 64)), -1
    rows = normalize(rows).astype(np.float32)
    model = PowerKMeans(100, noise="auto", random_state=0).fit(rows)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert (model.labels_[400:] == -1).mean() < 0.02
    lengths = np.linalg.norm(model.cluster_centers_, axis=1)
    assert (lengths > 0.7).all()  # the mean of rows of noise is short


@pytest.mark.promise(like="test_labels_memberships_and_scores_agree")
def test_a_share_is_one_of_the_weight():
    """Far rows are heavy, so that the share of the weight is not the share of the rows."""
    weight = np.random.default_rng(1).integers(0, 3, len(X)) + 3.0 * (Y == -1)
    noisy, counted = noise_of(X, noise=0.2, sample_weight=weight), weight > 0
    assert 0 <= 0.2 * weight.sum() - weight[noisy].sum() < weight.max()
    same = noise_of(X[counted], noise=0.2, sample_weight=weight[counted])
    assert_array_equal(same, noisy[counted])


@pytest.mark.promise(like="test_labels_memberships_and_scores_agree")
@pytest.mark.parametrize("cls, parameters", CLASSES)
def test_rows_at_the_border_of_a_share_are_all_kept(cls, parameters):
    """Whole numbers, many of whose distances are equal."""
    rows = np.round(np.random.default_rng(0).standard_normal((400, 2)) * 2)
    model, noisy = agreeing_noise(cls, 3, rows, noise=0.1, **parameters)
    assert 0.05 < noisy.mean() <= 0.1
    assert rffpk.describe(model, rows, n_resamples=0).sizes.sum() == (~noisy).sum()


def test_equal_rows_are_all_noise_or_none():
    """Places of as many rows each count as single rows."""
    for copies in (1, 2, 20):
        rows = np.repeat(np.arange(5.0)[:, None], copies, axis=0)
        for share, n in ((0.25, 0), (0.34, 0), (0.4, 2 * copies)):
            with nullcontext() if n else pytest.warns(UserWarning, match="marks no row"):
                assert noise_of(rows, 2, share).sum() == n
    assert not noise_of(np.ones((30, 2)), 1).any()


@pytest.mark.parametrize("offset", [0, 100])
def test_distances_that_are_equal_up_to_rounding_are_no_noise(dtype, offset):
    angle = np.linspace(-np.pi, np.pi, 100, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) + offset
    for rows, noise in product((circle, np.vstack([circle, circle + 3])), ("auto", 0.1)):
        model = PowerKMeans(2, noise=noise, random_state=0)
        told = pytest.warns(UserWarning, match="noise=0.1: marks no row")
        with told if noise == 0.1 else nullcontext():
            model.fit(rows.astype(dtype))
        assert (model.labels_ >= 0).all() and (model.predict(rows) >= 0).all()


@pytest.mark.parametrize("n_places", [6, 12, 20, 40])
@pytest.mark.parametrize("kind", ["dense", "sparse", "source"])
def test_places_with_many_rows_are_no_noise(n_places, kind):
    """Their rows are as far from other places as rows of noise are, but not from each other."""
    make = {"dense": np.asarray, "sparse": csr_array, "source": as_source}[kind]
    for seed in range(5):
        random = np.random.default_rng(seed)
        places = random.standard_normal((n_places, 3))
        y = random.choice(n_places, 5000, p=random.dirichlet(np.full(n_places, 0.7)))
        model = PowerKMeans(3, noise="auto", random_state=0).fit(make(places[y]))
        flagged = np.bincount(y[model.predict(places)[y] == -1], minlength=n_places)
        assert flagged.max() <= 5 and flagged.sum() <= 50
        assert (model.predict(places[np.bincount(y, minlength=n_places) > 5]) >= 0).all()


@pytest.mark.parametrize("n_far", [1, 3, 5])
def test_a_few_far_rows_are_noise(n_far):
    """Also of many rows, whose sample lacks the far rows."""
    random = np.random.default_rng(0)
    blobs, _ = make_blobs(1000, 2, centers=4, random_state=3)
    far = random.uniform(500, 1000, (n_far, 2))
    far *= 2.0 ** np.arange(n_far)[:, None] if n_far > 1 else 100
    rows = 20 * random.standard_normal((5, 4))[random.integers(0, 5, 60_000)]
    rows += random.standard_normal(rows.shape)
    rows[-n_far:] = 1e6 * (1 + random.standard_normal((n_far, 4)))
    for X in (np.vstack([blobs, far]), rows):
        assert_array_equal(np.flatnonzero(noise_of(X, 5)), len(X) + np.arange(-n_far, 0))


def rows_with_words(n, d, words, seed):
    """Return four clusters of scaled numbers, and indicators of words, many of them rare.

    Two words are as far apart as numbers that differ by one deviation.
    """
    random = np.random.default_rng(seed)
    numbers = 4 * random.standard_normal((4, d))[np.arange(n) % 4] + random.standard_normal((n, d))
    p = 1 / np.arange(1.0, 9) ** 2
    drawn = [np.eye(8)[random.choice(8, n, p=p / p.sum())] / 2**0.5 for _ in range(words)]
    return np.hstack([numbers / numbers.std(axis=0), *drawn])


def check_copies(model, rows, tmp_path):
    """Check that the model and its copies predict the labels of the fit."""
    model.save(tmp_path / "model.safetensors")
    loaded = rffpk.load(tmp_path / "model.safetensors")
    for other in (model, loaded, pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict(rows), model.labels_)


@pytest.mark.parametrize("d, words", [(2, 2), (3, 2), (4, 6)])
def test_rare_combinations_of_words_are_no_noise_beside_noise(d, words, tmp_path):
    rows = rows_with_words(2000, d, words, 2)
    rows[:200, :d] = np.random.default_rng(1).uniform(-4, 4, (200, d))
    model = PowerKMeans(4, noise="auto", random_state=0).fit(rows)
    found = model.labels_ == -1
    assert found[:200].mean() > 0.6 and found[200:].mean() < 0.01
    check_copies(model, rows, tmp_path)
    model.fit(csr_array(rows))
    for X in (rows, csr_array(rows)):
        assert_array_equal(model.predict(X), model.labels_)


def test_words_as_far_apart_as_the_numbers_vary_are_words_whatever_rounding_does():
    random = np.random.default_rng(0)
    number = random.standard_normal(2000)
    words = np.eye(2)[random.integers(2, size=2000)]
    X = np.column_stack([(number - number.mean()) / number.std(), words])
    for scale in (1 - 1e-7, 1 + 1e-7):
        found, alone = (
            PowerKMeans(2, noise=0.1, random_state=0).fit(rows * scale).outlier_scores_
            for rows in (X * [1, 1 / scale, 1 / scale], X[:, :1])
        )
        assert_array_equal(found, alone)


def test_a_far_row_is_noise_though_its_column_has_two_values():
    rows = np.hstack([noisy_rows()[0], np.zeros((660, 1))])
    rows[7, -1] = 1e4
    assert noise_of(rows)[7]


@pytest.mark.parametrize("is_wide", [False, True])
def test_distances_are_those_to_the_fifth_nearest_other_row(is_wide):
    """Many columns are compared in single precision; some of their rows nearly agree."""
    random, rows = np.random.default_rng(0), X
    if is_wide:
        rows = random.standard_normal((700, 40))
        rows = np.vstack([rows, rows[:100] + 1e-6 * random.standard_normal((100, 40))])
    model = PowerKMeans(4, noise="auto", random_state=0).fit(rows)
    expected, scores = np.sort(cdist(rows, rows), axis=1)[:, 5], model.outlier_scores_
    threshold = np.median(expected * np.sqrt(1 / scores - 1))
    assert_array_equal(expected > threshold, model.labels_ == -1)
    ratio = (expected / threshold) ** 2
    assert_allclose(scores, ratio / (1 + ratio), rtol=1e-6)


def as_source(rows, pieces=7):
    return lambda: iter(np.array_split(rows, pieces))


@pytest.fixture
def small_sample(tuning):
    tuning(sampling__rows=1000, noise__sample_rows=1000)


@pytest.mark.parametrize("noise", ["auto", 0.1])
@pytest.mark.parametrize("kind", ["dense", "sparse", "cosine", "views", "float16"])
def test_rows_beyond_a_sample_are_compared_with_the_near_part_of_it(
    small_sample, tmp_path, noise, kind
):
    rows, y = noisy_rows(6000)
    make = {"sparse": csr_array, "views": lambda X: [X, X[:, :2]], "float16": np.float16}
    rows = make.get(kind, np.asarray)(rows)
    cls, parameters = CLASSES[3 if kind == "views" else 0]
    parameters = {**parameters, "metric": "cosine"} if kind == "cosine" else parameters
    model = cls(4, noise=noise, random_state=0, **parameters).fit(rows)
    found = model.labels_ == -1
    assert found[y == -1].mean() > 0.6 and found[y >= 0].mean() < 0.05
    assert_array_equal(model.outlier_scores_ > 0.5, found)
    assert_array_equal(clone(model).set_params(n_jobs=2).fit(rows).labels_, model.labels_)
    check_copies(model, rows, tmp_path)
    if kind not in ("sparse", "views"):
        labels: list = []
        source = clone(model).fit(as_source(rows), labels_to=labels.append)
        assert_array_equal(np.concatenate(labels), model.labels_)
        assert_array_equal(source.cluster_centers_, model.cluster_centers_)
        assert not hasattr(source, "outlier_scores_")


@pytest.mark.parametrize("cls, parameters", CLASSES)
@pytest.mark.parametrize("noise", ["auto", 0.1])
def test_rows_of_noise_have_the_influence_of_rows_of_weight_zero(cls, parameters, noise):
    weights = [None, np.random.default_rng(1).integers(1, 4, len(X)).astype(float)]
    for weight in weights[: 1 + (cls is PowerKMeans)]:
        model = cls(4, noise=noise, random_state=0, **parameters).fit(X, sample_weight=weight)
        left = np.where(model.labels_ == -1, 0, 1.0 if weight is None else weight)
        same = cls(4, random_state=0, **parameters).fit(X, sample_weight=left)
        assert_array_equal(same.cluster_centers_, model.cluster_centers_)
        assert same.inertia_ == model.inertia_
        far = X + 1e6 * (left == 0)[:, None]
        if cls is PowerKMeans and weight is None and noise == 0.1:
            other = cls(4, noise=noise, random_state=0, **parameters).fit(far)
            assert_allclose(other.cluster_centers_, model.cluster_centers_, atol=1e-6)


def test_noise_beyond_a_sample_has_no_influence(small_sample):
    rows, model = noisy_rows(6000)[0].astype(np.float32), PowerKMeans(4, noise=0.1, random_state=0)
    labels, centers = model.fit(rows).labels_, model.cluster_centers_
    assert_array_equal(model.fit(rows + np.float32(1e6) * (labels == -1)[:, None]).labels_, labels)
    assert_allclose(model.cluster_centers_, centers, rtol=1e-4, atol=1e-3)


@pytest.mark.promise(
    "Noise",
    "The noise mask belongs to the rows that were read: X is opened once, noise is found in one "
    "more reading of a source, and a source that changes in any of its readings is refused.",
)
@pytest.mark.parametrize("noise", ["auto", 0.05])
def test_a_source_that_changes_is_refused(small_sample, noise):
    rows = np.vstack([noisy_rows(6000)[0]] * 8)
    reads: list = []
    last = 0

    def changing():
        reads.append(1)
        return as_source(rows[::-1] if last and len(reads) >= last else rows)()

    PowerKMeans(4, random_state=0).fit(changing)
    plain = len(reads)
    reads.clear()
    PowerKMeans(4, noise=noise, random_state=0).fit(changing)
    n_reads = len(reads)
    assert n_reads <= plain + 1
    message = "X: the source gave other numbers in rows 0 to "
    for last in range(2, n_reads + 1):
        reads.clear()
        with pytest.raises(ValueError, match=message):
            PowerKMeans(4, noise=noise, random_state=0).fit(changing)
        assert len(reads) == last


def test_what_is_said_of_X_is_said_once(small_sample):
    model = rffpk.RFFKernelPowerKMeans(2, noise="auto", random_state=0, **FEW)
    with pytest.warns(UserWarning) as found:
        model.fit(rbf_kernel(X[:60], gamma=0.01))
    assert len([w for w in found if "symmetric" in str(w.message)]) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint8, "bfloat16"])
@pytest.mark.parametrize("i, metric", [(0, "euclidean"), (2, "euclidean"), (0, "cosine")])
def test_small_numbers_give_the_results_of_float32(small_sample, i, metric, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    cls, parameters = CLASSES[i]
    parameters = parameters | ({"metric": metric} if i == 0 else {})
    for n in (600, 3000):
        rows = np.clip(np.round(60 + 2 * noisy_rows(n)[0]), 0, 127).astype(dtype)
        wide = rows.astype(np.float32)
        model, same = (cls(4, noise=0.1, random_state=0, **parameters).fit(x) for x in (rows, wide))
        for name in ("labels_", "outlier_scores_"):
            assert_array_equal(getattr(model, name), getattr(same, name))
        for method in ("predict", "predict_proba", "score"):
            assert_array_equal(getattr(model, method)(rows), getattr(same, method)(wide))
        assert_array_equal(model.cut(2, rows) == -1, same.labels_ == -1)
        source = clone(model).fit(as_source(rows))
        assert_array_equal(source.cluster_centers_, model.cluster_centers_)


@pytest.mark.promise(
    "Noise",
    "`score` of the fitted rows is `-inertia_`, after a finite exponent and with typicality too, "
    "unless rows lack views or a kernel is indefinite. Noise counts in neither.",
)
@pytest.mark.parametrize("cls, parameters", CLASSES)
@pytest.mark.parametrize("noise", ["auto", 0.1])
@pytest.mark.parametrize("end", [None, -3.0])
def test_the_score_of_the_fitted_rows_is_that_of_the_fit(cls, parameters, noise, end):
    if end is not None:
        parameters = {**parameters, "annealing": Annealing(end=end)}
    for weight in (None, np.random.default_rng(1).integers(0, 4, len(X)).astype(float)):
        model = cls(4, noise=noise, random_state=0, **parameters).fit(X, sample_weight=weight)
        assert (model.labels_ == -1).any()
        expected = pytest.approx(-model.inertia_, rel=1e-9)
        assert model.score(X, sample_weight=weight) == expected
        if weight is None:
            assert model.score(as_source(X)) == expected
        assert model.score(np.full((2, X.shape[1]), 1e4)) == 0


@pytest.mark.promise(like="test_the_score_of_the_fitted_rows_is_that_of_the_fit")
@pytest.mark.parametrize("model", [
    FuzzyCMeans(4), FuzzyCMeans(4, m=4.0), KernelPowerKMeans(4, annealing=Annealing(end=-2.0)),
    PowerKMeans(4, annealing=Annealing(end=-2.0), metric="cosine"), KernelKMeans(4),
    ip_rff_mkpkm(4, **FEW),
], ids=str)  # fmt: skip
def test_the_score_of_the_fitted_rows_without_noise(model, dtype):
    rows = X.astype(dtype)
    model.set_params(random_state=0).fit(rows)
    assert model.score(rows) == pytest.approx(-model.inertia_, rel=1e3 * float(np.finfo(dtype).eps))


def test_batches_are_compared_with_the_noise_of_the_fit():
    model = PowerKMeans(4, noise="auto", random_state=0).fit(X)
    is_noise, centers = model.labels_ == -1, model.cluster_centers_
    model.partial_fit(X[Y == -1])
    assert_array_equal(model.predict(X) == -1, is_noise)
    assert not hasattr(model, "outlier_scores_")
    assert np.abs(model.cluster_centers_ - centers).max() < 1
    assert model.set_params(noise=None).fit(X).predict(X).min() == 0


def test_views_are_scaled_before_distances_are_taken():
    views = [X, 1e6 * np.random.default_rng(0).standard_normal((len(X), 1))]
    model = ip_rff_mkpkm(4, noise=0.1, random_state=0, **FEW).fit(views)
    assert (Y[model.labels_ == -1] == -1).mean() > 0.6
    assert_array_equal(model.predict(views), model.labels_)


def test_noise_is_no_example_of_a_cluster():
    """The middle of a ring is the row that is nearest to its centroid."""
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    rows = np.vstack([np.eye(3, 2) / 9, 9 * np.column_stack([np.cos(angle), np.sin(angle)])])
    model = PowerKMeans(1, noise="auto", random_state=0).fit(rows)
    assert_array_equal(np.flatnonzero(model.labels_ == -1), [0, 1, 2])
    assert model.medoids(rows) > 2 and model.medoids(as_source(rows)) > 2
    assert PowerKMeans(1, random_state=0).fit(rows).medoids(rows) < 3


def test_noise_is_found_in_float32_rows_far_from_the_origin():
    X = make_blobs(300, 3, centers=4, cluster_std=0.5, random_state=1)[0]
    noise = np.random.default_rng(0).uniform(-15, 15, (30, 3))
    X = (np.vstack([X, noise]) + 3e5).astype(np.float32)
    assert_array_equal(noise_of(X), np.arange(330) >= 300)


@pytest.mark.promise(
    "Noise",
    "The noise mask depends on the columns, the weights, the metric and `noise` alone: it is the "
    "same in all classes, for copies as for integer weights, in any order of the rows, and for any "
    "`random_state`.",
)
@pytest.mark.parametrize("n", [500, 3000])  # all rows are in the sample, and a part of them
@pytest.mark.parametrize("noise", ["auto", 0.07])
def test_the_mask_depends_on_columns_and_weights_alone(small_sample, n, noise):
    rows, _ = noisy_rows(n, 2)
    times = np.random.default_rng(0).integers(1, 4, len(rows))

    def mask(X, weight=None, cls=PowerKMeans, k=4, seed=0, **parameters):
        model = cls(k, noise=noise, random_state=seed, **parameters)
        return model.fit(X, sample_weight=weight).labels_ == -1

    expected, weighted = mask(rows), mask(rows, times)
    assert expected.any() and weighted.any()
    assert_array_equal(mask(rows, np.full(len(rows), 2.0)), expected)
    assert_array_equal(mask(np.vstack([rows, rows])), np.r_[expected, expected])
    assert_array_equal(mask(np.repeat(rows, times, axis=0)), np.repeat(weighted, times))
    assert_array_equal(mask(rows[::-1], k=30, seed=1)[::-1], expected)
    assert_array_equal(mask(csr_array(rows)), expected)
    for cls, parameters in CLASSES[1:]:
        assert_array_equal(mask(rows, cls=cls, **parameters), expected)


@pytest.mark.parametrize("n", [
    3000, *(pytest.param(n, marks=pytest.mark.exhaustive)
            for n in (19_000, 21_000, 190_000, 230_000, 1_000_000)),
])  # fmt: skip
def test_noise_is_found_among_any_number_of_rows(n):
    random = np.random.default_rng(0)
    y = random.choice(6, n, p=[0.3, 0.2, 0.2, 0.12, 0.1, 0.08])
    at = random.uniform(0, 100, (n, 2))  # what is noise
    at[y < 4] = np.array([[20.0, 20], [70, 30], [40, 80], [85, 85]])[y[y < 4]]
    at[y < 4] += random.standard_normal((np.sum(y < 4), 2))
    at[y == 4, 1] = 50 + 0.2 * random.standard_normal(np.sum(y == 4))
    noisy = noise_of(at, 5)
    assert noisy[y == 5].mean() > 0.75 and noisy[y < 5].mean() < 0.02


def test_a_place_of_many_rows_that_the_sample_lacks_is_no_noise(tuning):
    tuning(noise__sample_rows=200)
    rows = np.vstack([noisy_rows(3000, 2)[0], np.full((400, 2), 1e3)])
    noisy = noise_of(rows, 5)
    assert not noisy[-400:].any() and noisy[:-400].mean() > 0.05

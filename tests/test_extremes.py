"""Extremes of scale, size and parameters: the same clusters, or a refusal by name."""

import warnings

import numpy as np
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from refusals import FUSED
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

import rffpk

CENTROIDS = [
    rffpk.PowerKMeans(4), rffpk.FuzzyCMeans(4), rffpk.RFFKernelPowerKMeans(4),
    ip_rff_mkpkm(4, n_frequencies=128), rffpk.DiffusionPowerKMeans(4),
]  # fmt: skip
EXACT = [
    rffpk.KernelKMeans(4), rffpk.KernelPowerKMeans(4), rffpk.MultiKernelPowerKMeans(4),
    rffpk.RMKKM(4),
]  # fmt: skip
ALL = [*CENTROIDS, *EXACT, *(cls(4) for cls in [*FUSED, rffpk.NystroemKernelKMeans])]


BLOBS, GROUPS = make_blobs(120, 5, centers=4, cluster_std=0.5, random_state=0)


def fitted(model, X, **arguments):
    with warnings.catch_warnings(action="error"):
        return clone(model).set_params(random_state=0).fit(X, **arguments)


SCALES = [
    *((np.float64, scale) for scale in (1e-150, 1e-50, 1e50, 1e150)),
    *((np.float32, scale) for scale in (1e-30, 1e-18, 1e-12, 1e12, 1e18, 1e30)),
]


@pytest.mark.promise(
    "Input",
    "Scaling X changes no cluster, from 1e-150 to 1e150 in float64 and from 1e-30 to 1e30 in "
    "float32.",
)
@pytest.mark.parametrize("kind, scale", SCALES)
@pytest.mark.parametrize("model", ALL, ids=str)
def test_a_scale_changes_nothing(model, kind, scale):
    X = (BLOBS * scale).astype(kind)
    scaled = fitted(model, X)
    assert adjusted_rand_score(GROUPS, scaled.labels_) == 1
    assert_array_equal(scaled.predict(X), scaled.labels_)
    assert_array_equal(scaled.predict(X[:1]), scaled.labels_[:1])
    assert np.isfinite(scaled.inertia_) and np.isfinite(scaled.transform(X)).all()
    origin = np.zeros((1, 5))  # it has no scale
    assert_array_equal(scaled.predict(origin.astype(kind)), scaled.predict(origin))


@pytest.mark.parametrize("exponent", [-100, 100])
@pytest.mark.parametrize("model", [*CENTROIDS, *EXACT], ids=str)
def test_a_power_of_two_changes_no_bit_of_the_labels(model, exponent):
    assert_array_equal(fitted(model, BLOBS * 2.0**exponent).labels_, fitted(model, BLOBS).labels_)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_two_rows_are_two_clusters(model, dtype):
    X = np.array([[0.0, 1.0], [1e-3, 1.0]], dtype)
    found = fitted(clone(model).set_params(n_clusters=2), X)
    assert sorted(found.labels_) == [0, 1]
    assert_allclose(found.inertia_, 0, atol=1e-6)


def test_views_of_scales_that_differ_are_clustered_in_one_type():
    views = [(BLOBS[:, :2] * 1e25).astype("f"), (BLOBS[:, 2:] * 1e-25).astype("f")]
    for model in (rffpk.MultiKernelPowerKMeans(4), ip_rff_mkpkm(4), rffpk.AverageMKKM(4)):
        found = fitted(model, views)
        assert adjusted_rand_score(GROUPS, found.labels_) == 1
        assert_array_equal(found.predict(views), found.labels_)


@pytest.mark.few(3)
@pytest.mark.parametrize("model", ALL, ids=str)
def test_a_hundred_thousand_columns(model):
    random = np.random.default_rng(0)
    y = np.arange(12) % 4
    X = random.standard_normal((4, 100_000), np.float32)[y]
    X += random.standard_normal(X.shape, np.float32) / 10
    assert adjusted_rand_score(y, fitted(model, X).labels_) == 1


def test_five_thousand_clusters():
    grid = np.stack(np.divmod(np.arange(5000.0), 100.0), axis=1)
    X = np.repeat(grid, 2, axis=0) + np.random.default_rng(0).normal(0, 1e-3, (10_000, 2))
    model = rffpk.PowerKMeans(5000, init=X[::2], annealing=rffpk.Annealing(start=-50.0, end=-50.0))
    found = fitted(model, X.astype(np.float32))
    assert_array_equal(found.labels_, np.repeat(np.arange(5000), 2))
    assert_array_equal(found.predict_proba(X[:5].astype("f")).argmax(axis=1), found.labels_[:5])


SOFT = [m for m in [*CENTROIDS, *EXACT] if "annealing" in m.get_params()]


@pytest.mark.parametrize("s", [-0.2, -65_536.0, -1e6, -1e300])
@pytest.mark.parametrize("model", SOFT, ids=str)
def test_the_softest_and_the_hardest_exponents(model, s, dtype):
    """The hard rule takes over where the type does not resolve the power mean."""
    X = BLOBS.astype(dtype)
    for final in ("hard", s):
        annealing = rffpk.Annealing(start=s, end=final)
        found = fitted(clone(model).set_params(annealing=annealing), X)
        assert adjusted_rand_score(GROUPS, found.labels_) == 1
        assert_allclose(found.predict_proba(X).sum(axis=1), 1, rtol=1e-5)
    assert found.s_ == s


@pytest.mark.parametrize("m", [1 + 1e-15, 1 + 1e-6, 6.0])
def test_the_hardest_and_the_softest_fuzzifiers(m, dtype):
    X = BLOBS.astype(dtype)
    fuzzy = fitted(rffpk.FuzzyCMeans(4, m=m), X)
    assert adjusted_rand_score(GROUPS, fuzzy.labels_) == 1
    d = ((X[:, None] - fuzzy.cluster_centers_) ** 2).sum(axis=2, dtype=np.float64)
    ratios = d.min(axis=1, keepdims=True) / d
    u = normalize(ratios ** (1 / (m - 1)), "l1")
    assert_allclose(fuzzy.objective_, (u**m * d).sum(), rtol=1e-4)
    typical = fitted(ip_rff_mkpkm(4, typicality=rffpk.Typicality(m=m), n_frequencies=128), X)
    assert np.isfinite(typical.objective_) and np.isfinite(typical.predict_typicality(X)).all()


@pytest.mark.promise(
    "Input",
    "Scaling the sample weights by a power of two, down to 2⁻⁹⁰⁰, scales the costs and "
    "changes no label.",
)
@pytest.mark.parametrize("exponent", [-900, -550, 300])
@pytest.mark.parametrize("model", CENTROIDS, ids=str)
def test_a_power_of_two_of_the_weights_is_one_of_the_costs(model, exponent):
    weight = 1.0 + np.arange(120) % 3
    plain = fitted(model, BLOBS, sample_weight=weight)
    found = fitted(model, BLOBS, sample_weight=np.ldexp(weight, exponent))
    assert_array_equal(found.labels_, plain.labels_)
    assert_allclose(np.ldexp(found.inertia_, -exponent), plain.inertia_, rtol=1e-12)
    assert_allclose(np.ldexp(found.objective_, -exponent), plain.objective_, rtol=1e-12)


@pytest.mark.parametrize("model", [*CENTROIDS, *EXACT], ids=str)
def test_weights_of_extreme_ratios(model, dtype):
    X = BLOBS.astype(dtype)
    weight = np.where(np.arange(120) % 7, 1, 1e-29)
    found = fitted(model, X, sample_weight=weight)
    assert adjusted_rand_score(GROUPS, found.labels_) == 1
    large = fitted(model, X, sample_weight=1e70 * weight)
    rounding = len(X) * (100 * float(np.finfo(dtype).eps)) ** 2  # of rows that are their centroids
    assert_allclose(large.inertia_, 1e70 * found.inertia_, rtol=1e-4, atol=1e70 * rounding)


def tight_groups(dtype):
    """Draw groups of rows 1000 apart, of the size 0.1."""
    random = np.random.default_rng(0)
    centers = 1000.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    return (np.repeat(centers, 50, axis=0) + random.normal(0, 0.1, (200, 2))).astype(dtype)


@pytest.mark.parametrize("model", [
    rffpk.PowerKMeans(8), rffpk.PowerKMeans(8, metric="cosine"), rffpk.FuzzyCMeans(4),
    rffpk.RFFMultiKernelPowerKMeans(4, kernels=["linear"]),
    *(cls(4, kernel="linear") for cls in (rffpk.KernelKMeans, rffpk.KernelPowerKMeans)),
    rffpk.MultiKernelPowerKMeans(4, kernels=["linear", "linear"]),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_distances_within_tight_groups_have_digits(model, dtype, container):
    X = tight_groups(dtype)
    if cosine := getattr(model, "metric", None) == "cosine":  # nearly parallel rows
        X = (np.array([[1, 0], [0, 1], [1, 1], [-1, 1]]) + 1e-3 * X[:50, None]).reshape(-1, 2)
        X = X.astype(dtype)
    contained = container(X)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = clone(model).set_params(random_state=0).fit(contained)
    exact = X.astype(float)
    if cosine:
        exact = normalize(exact)
    if isinstance(model, rffpk.MultiKernelPowerKMeans):  # of several kernels each has variance one
        exact /= np.sqrt(exact.var(axis=0).sum())
    if hasattr(model, "dual_coef_"):
        centers = model.dual_coef_ @ exact / model.dual_coef_.sum(axis=1, keepdims=True)
    else:
        centers = model.cluster_centers_.astype(float)
    apart = np.linalg.norm(exact[:, None] - centers, axis=2)
    found = model.transform(contained)
    # rounding of the rows and of the centroids, and of distances that do not cancel
    rounding = (8 * np.finfo(dtype).eps if dtype == np.float32 else 1e-9) * np.abs(exact).max()
    part = 2**-8 if dtype == np.float32 else 2**-17  # as double precision has it of expansions
    assert_allclose(found, apart, rtol=part, atol=rounding)
    assert_array_equal(model.predict(contained), model.labels_)
    own = apart[np.arange(len(X)), model.labels_]
    assert_allclose(own, apart.min(axis=1), rtol=part, atol=rounding)
    assert_allclose(-model.score(contained), (apart.min(axis=1) ** 2).sum(), rtol=4 * part)


@pytest.mark.parametrize("noise", ["auto", 0.05])
def test_noise_among_tight_groups_is_that_of_double_precision(noise):
    X, model = tight_groups(np.float32), rffpk.PowerKMeans(4, noise=noise, random_state=0)
    single, double = clone(model).fit(X), clone(model).fit(X.astype(float))
    assert_array_equal(single.labels_, double.labels_)
    # the threshold of "auto" depends on which distances are equal up to rounding
    assert_allclose(single.outlier_scores_, double.outlier_scores_, atol=5e-3)


UNDERFLOWS = {"equal": np.ones((40, 3)), "tiny": BLOBS[:, :3] * 1e-150}
UNDERFLOWS["pile"] = np.vstack([UNDERFLOWS["equal"], UNDERFLOWS["tiny"]])
UNDERFLOWS["float32"] = (BLOBS[:, :3] * 1e-25).astype(np.float32)


@pytest.mark.promise(
    "Input",
    "`numpy.errstate` and `numpy.seterr` of the caller make no floating-point error that ends a "
    "fit or a prediction.",
)
@pytest.mark.parametrize("rows", UNDERFLOWS)
@pytest.mark.parametrize(
    "model", [*ALL, rffpk.DiffusionMap(), rffpk.RandomFourierFeatures()], ids=str
)
def test_errors_that_the_caller_raises_end_no_fit(model, rows):
    X = UNDERFLOWS[rows]
    model = clone(model).set_params(random_state=0)
    with warnings.catch_warnings(action="ignore"):
        expected = clone(model).fit(X).transform(X)
        with np.errstate(all="raise"):
            found = model.fit(X)
            assert_array_equal(found.transform(X), expected)
            if hasattr(found, "predict"):
                assert_array_equal(found.predict(X), found.labels_)


def test_the_largest_weights_are_accepted():
    found = fitted(rffpk.PowerKMeans(4, random_state=0), BLOBS, sample_weight=np.full(120, 1e100))
    assert adjusted_rand_score(GROUPS, found.labels_) == 1

"""Input that breaks clusterers: offsets, ties, few distinct rows, odd types. Each is refused by
name or gives a right result, alike in all classes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from refusals import FUSED, MAPS
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

import rffpk

EXACT = [rffpk.KernelKMeans, rffpk.KernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.RMKKM]
HALVES = np.full((2, 2), 0.5)
KERNELS = [*EXACT, *FUSED, rffpk.NystroemKernelKMeans]


def named(models):
    return pytest.mark.parametrize("model", models, ids=str)


def with_kernel(model, kernel):
    several = "kernels" in model.get_params()
    return clone(model).set_params(**{"kernels": [kernel]} if several else {"kernel": kernel})


RANDOM = np.random.default_rng(0)
DISTINCT = RANDOM.permutation(np.repeat(RANDOM.standard_normal((3, 4)), 20, axis=0))
ROWS = np.random.default_rng(0).standard_normal((40, 3))
GROUPS = np.arange(300) % 3
THREE_GROUPS = 5.0 * GROUPS[:, None] + np.random.default_rng(0).normal(0, 0.3, (300, 2))


@pytest.mark.parametrize("offset", [1e6, 1.7e9])
@named([cls(3, random_state=0) for cls in KERNELS])
def test_a_common_offset_changes_nothing(model, offset):
    """Times in seconds since 1970: three groups, five seconds apart."""
    far = offset + THREE_GROUPS
    moved, plain = clone(model).fit(far), clone(model).fit(far - offset)
    assert adjusted_rand_score(GROUPS, moved.labels_) == 1
    assert_allclose(moved.inertia_, plain.inertia_, rtol=1e-4)
    assert_array_equal(moved.predict(far), moved.labels_)
    assert_array_equal(moved.predict(far[:1]), moved.labels_[:1])


@named([cls(3, random_state=0) for cls in EXACT])
def test_the_linear_kernel_loses_nothing_to_an_offset(model):
    X = 1.7e9 + THREE_GROUPS
    model = with_kernel(model, "linear").fit(X)
    assert adjusted_rand_score(GROUPS, model.labels_) == 1
    assert_array_equal(model.predict(X), model.labels_)
    near = X - X.mean(axis=0)
    within = ((near - (model.dual_coef_ @ near)[model.labels_]) ** 2).sum()
    assert_allclose(model.inertia_, within, rtol=1e-5)


@pytest.mark.promise(
    "Input",
    'A row far from all others does not change `gamma="median"`. A warning says so where it '
    "spoils the mean distance.",
)
@named([cls(4, random_state=0) for cls in KERNELS])
def test_a_far_row_is_named_and_changes_no_kernel_of_the_median_distance(model):
    """From 1000 on, the kernel of the row with the rest of the rows is zero."""
    y = np.arange(150) % 3
    X = 5.0 * np.eye(3)[y] + np.random.default_rng(0).normal(0, 0.3, (150, 3))
    X[7] = 1e3
    far = np.where(np.arange(150)[:, None] == 7, 1e11, X)
    message = "X has rows so far from the others that gamma='mean' .* take gamma='median'"
    with pytest.warns(UserWarning, match=message):
        clone(model).fit(far)
    median = {"gamma": "median"} if hasattr(model, "gamma") else {"kernels": [("rbf", "median")]}
    found, near = (clone(model).set_params(**median).fit(each) for each in (far, X))
    assert adjusted_rand_score(near.labels_, found.labels_) == 1


@named([cls(3, kernels="du2015", random_state=0) for cls in (rffpk.MKKM, rffpk.SMKC)])
def test_the_largest_distance_of_a_bank_is_that_of_centered_rows(model):
    X = np.random.default_rng(0).standard_normal((60, 2))
    near, far = (clone(model).fit(x)._kernels[:7] for x in (X, X + 1e8))
    for one, other in zip(near, far, strict=True):
        assert_allclose(one.params["gamma"], other.params["gamma"], rtol=1e-6)


CLUSTERERS = [
    rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans,
    rffpk.RFFMultiKernelPowerKMeans, *KERNELS,
]  # fmt: skip
VARIANTS = [
    rffpk.SimpleMKKM(5, standardize=False, random_state=0),
    rffpk.AverageMKKM(5, kernels="du2015", random_state=0),
    rffpk.MKKM(5, n_landmarks=20, random_state=0),
    rffpk.FAMKKM(5, approximation="rff", random_state=0),
    rffpk.FAMKKM(5, approximation="nystroem", max_iter=1, random_state=0),
    rffpk.KernelKMeans(5, kernel="cosine", random_state=0),
    rffpk.KernelPowerKMeans(5, kernel="laplacian", random_state=0),
    rffpk.NystroemKernelKMeans(5, n_components=2, random_state=0),
]


def assert_ties_are_broken_alike(model, X):
    assert_array_equal(model.predict(X), model.labels_)
    for row, label in zip(X[:9], model.labels_):
        assert_array_equal(model.predict(row[None]), label)
        assert {*model.labels_[(X == row).all(axis=1)]} == {label}


@named([*(cls(5, random_state=0) for cls in CLUSTERERS), *VARIANTS])
@pytest.mark.parametrize("rows", [DISTINCT, np.ones((40, 3))], ids=["three", "one"])
def test_fewer_distinct_rows_than_clusters(model, rows):
    """Equal rows have equal labels, in a fit and alone, and one warning says what to do."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model = clone(model).fit(rows)
    assert_ties_are_broken_alike(model, rows)
    messages = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    [message] = [m for m in messages if "of n_clusters=5 clusters have rows" in m]
    rows_are = "3 distinct rows" if rows is DISTINCT else "1 distinct row"
    assert f"has {rows_are}; take n_clusters <= {rows_are[0]}." in message
    assert not [w for w in caught if issubclass(w.category, RuntimeWarning)]


@pytest.mark.filterwarnings("ignore")
@named([*(cls(4, random_state=0) for cls in CLUSTERERS), *(clone(m) for m in VARIANTS)])
def test_a_row_alone_has_the_label_that_it_has_among_others(model):
    """On a grid many rows are equally near to two centroids."""
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    rows = np.random.default_rng(0).permutation(np.vstack([grid, grid])) + 1
    assert_ties_are_broken_alike(clone(model).fit(rows), rows)


@pytest.mark.few(3)
@pytest.mark.filterwarnings("ignore")
@named([cls(3, random_state=0) for cls in KERNELS])
def test_fitted_labels_are_those_of_predict_with_weights(model, dtype):
    random = np.random.default_rng(1)
    rows = random.integers(0, 3, (50, 2)).astype(dtype)
    weight = random.integers(0, 3, 50)
    for kernel in ("cosine", "rbf", "polynomial"):
        fitted = with_kernel(model, kernel).fit(rows, sample_weight=weight)
        assert_ties_are_broken_alike(fitted, rows)


ALL = [*CLUSTERERS, rffpk.DiffusionPowerKMeans, *MAPS]
VIEWS = [rffpk.RFFMultiKernelPowerKMeans, rffpk.MultiKernelPowerKMeans, *FUSED]


def test_a_masked_array_without_masked_entries_is_an_array():
    whole = np.ma.masked_array(ROWS, mask=np.zeros(ROWS.shape, bool))
    expected = rffpk.PowerKMeans(3, random_state=0).fit(ROWS)
    assert_array_equal(rffpk.PowerKMeans(3, random_state=0).fit(whole).labels_, expected.labels_)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("estimator", VIEWS)
def test_columns_of_views_have_the_names_and_the_order_of_the_fit(estimator):
    first, second = pd.DataFrame(ROWS, columns=["a", "b", "c"]), pd.DataFrame(ROWS[:, :2] * 2)
    model = estimator(3, random_state=0).fit([first, second])
    assert_array_equal(model.predict([first, second]), model.labels_)
    with pytest.raises(ValueError, match=r"^X\[0\]: .*order. Pass X\[0\]\[\['a', 'b', 'c'\]\]"):
        model.predict([first[["b", "a", "c"]], second])
    with pytest.raises(ValueError, match=r"^X\[0\]: .* \['x'\] are new, \['a'\] are missing"):
        model.transform([first.rename(columns={"a": "x"}), second])
    for frames, message in [
        ([ROWS, second], r"^X\[0\]: has no column names, but had some in fit"),
        ([first, second.set_axis(["d", "e"], axis=1)], r"^X\[1\]: has column names, but had none"),
    ]:
        with pytest.warns(UserWarning, match=message):
            model.predict(frames)


SMALL = {
    "n_clusters": np.int8(100), "n_init": np.int8(2), "max_iter": np.int8(100),
    "n_frequencies": np.int8(100), "n_anchors": np.uint8(120), "n_landmarks": np.int8(110),
    "n_components": np.int8(100), "sample": np.int8(120), "anchors": np.uint8(120),
    "n_jobs": np.int8(-2), "tol": np.float16(2.0**-10), "m": np.float16(1.25),
    "weight_entropy": np.float16(4.0), "gamma": np.float16(0.25), "lambda1": np.float16(2.0),
    "lambda2": np.float16(0.5),
    "annealing": rffpk.Annealing(
        start=np.float16(-8.0), factor=np.float16(1.5), passes=np.int8(2), swaps=np.int8(3)
    ),
}  # fmt: skip


@pytest.mark.few(3)
@pytest.mark.parametrize("estimator", ALL)
def test_numbers_of_small_types_are_python_numbers(estimator):
    """100 clusters as an int8: 200 * 100 does not fit into that."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    small = {name: value for name, value in SMALL.items() if name in estimator().get_params()}
    if issubclass(estimator, (rffpk.DiffusionMap, rffpk.DiffusionPowerKMeans)):
        small.pop("n_components")
    plain = {name: value.item() for name, value in small.items() if name != "annealing"}
    if "annealing" in small:
        plain["annealing"] = rffpk.Annealing(start=-8.0, factor=1.5, passes=2, swaps=3)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        expected = estimator(random_state=0, **plain).fit(X)
        warnings.simplefilter("error", RuntimeWarning)
        model = estimator(random_state=0, **small).fit(X)
    assert_array_equal(model.transform(X), expected.transform(X))
    if hasattr(expected, "labels_"):
        assert_array_equal(model.labels_, expected.labels_)
    assert all(getattr(model, name) is value for name, value in small.items())


def test_weights_that_hide_rows_are_named():
    """One row of weight 1e29 among rows of weight one, in kernels and features of float32."""
    weight = np.where(np.arange(40) == 3, 1e29, 1.0)
    X = ROWS.astype(np.float32)
    for model in (
        rffpk.KernelKMeans(3), rffpk.KernelPowerKMeans(3), rffpk.MultiKernelPowerKMeans(3),
        rffpk.RFFKernelPowerKMeans(3), rffpk.RFFKernelPowerKMeans(3, gamma=0.5),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(X, sample_weight=weight)
    plain = rffpk.PowerKMeans(3, random_state=0).fit(X, sample_weight=weight)
    wide = rffpk.PowerKMeans(3, random_state=0).fit(X.astype(float), sample_weight=weight)
    assert_allclose(plain.inertia_, wide.inertia_, rtol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy"])
def test_a_gamma_whose_phases_have_digits_gives_kernel_values(kernel, dtype):
    X = ROWS.astype(dtype)
    gamma = 1e4 if dtype == np.float32 else 1e10
    phi = rffpk.RandomFourierFeatures(2000, kernel=kernel, gamma=gamma, random_state=0)
    assert_allclose(phi.fit_transform(X) @ phi.transform(X).T, np.eye(40), atol=0.15)


def test_more_frequencies_than_memory_holds_are_refused(memory):
    memory(4 << 30)
    for model in (
        rffpk.RandomFourierFeatures(10**9), rffpk.RFFKernelPowerKMeans(8, n_frequencies=10**7),
        ip_rff_mkpkm(8, n_frequencies=10**7),
        rffpk.FAMKKM(8, approximation=("rff", 10**9)),
    ):  # fmt: skip
        with pytest.raises(MemoryError, match="n_frequencies=10.* are available"):
            model.fit(ROWS)


@pytest.mark.exhaustive
def test_available_memory_follows_the_limit_of_the_address_space(python):
    python("""
import resource, rffpk
from rffpk.system import config
before = config.available_memory()
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, resource.RLIM_INFINITY))
found = config.available_memory()
assert found < 4 << 30 and found <= before, (found, before)
filled = bytearray(1 << 30)
assert found - config.available_memory() > 9 << 26, found
""")


@pytest.mark.parametrize("cls, name, message", [
    (rffpk.DiffusionMap, "n_neighbors", "the graph has 30 nodes"),
    (rffpk.DiffusionPowerKMeans, "n_neighbors", "the graph has 30 nodes"),
    (rffpk.LKAM, "n_neighbors", "exceeds the 30 rows"),
    (rffpk.NystroemKernelKMeans, "n_components", "exceeds the rank 30"),
])  # fmt: skip
def test_numbers_above_that_of_the_rows_are_named(cls, name, message):
    with pytest.warns(UserWarning, match=f"{name}=99: {message}"):
        cls(random_state=0, **{name: 99}).fit(ROWS[:30])
    cls(random_state=0, **{name: 29}).fit(ROWS[:30])
    if cls is rffpk.LKAM:
        with pytest.warns(UserWarning, match="n_neighbors=61: exceeds the 60 rows"):
            rffpk.LKAM(3, n_neighbors=61).fit(ROWS[:30], sample_weight=np.full(30, 2))


@pytest.mark.few(3)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimator", ALL)
def test_booleans_are_those_of_python_and_numpy(estimator):
    for name in {"standardize", "normalize_rows", "cache"} & {*estimator().get_params()}:
        labels = [
            estimator(random_state=0, **{name: kind(False)}).fit(ROWS).labels_
            for kind in (bool, np.bool_)
        ]
        assert_array_equal(*labels)


@pytest.mark.parametrize("estimator", [rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.KernelKMeans])
@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score"])
def test_new_rows_are_refused_as_those_of_a_fit(estimator, method):
    with pytest.raises(NotFittedError):
        getattr(estimator(), method)(ROWS)
    model = estimator(2, random_state=0).fit(ROWS.astype(np.float32))
    large = np.float32([[0, 0, 0], [3e38, -3e38, 3e38]])
    large = np.full((1, 3), 1e308) if estimator is rffpk.KernelKMeans else large
    for X in (ROWS[:, :2], np.full((2, 3), np.nan), None, {1, 2}, large):
        with pytest.raises((ValueError, TypeError), match="^X"):
            getattr(model, method)(X)


def test_a_distance_that_overflows_is_refused():
    X = np.array([[0, 0], [0, 1e152], [9e153, 0], [9e153, 1e152]])
    model = rffpk.PowerKMeans(2, init=X[::2]).fit(X)
    with pytest.raises(ValueError, match="^X: .* overflow"):
        model.transform(np.array([[-1.2e154, 0]]))


@pytest.mark.parametrize("cls", [rffpk.PowerKMeans, rffpk.KernelKMeans, rffpk.MKKM])
def test_the_largest_number_of_passes_is_that_of_64_bits(cls):
    usual, most = (cls(2, max_iter=n, random_state=0).fit(ROWS) for n in (300, 2**63 - 1))
    assert_array_equal(usual.labels_, most.labels_)


@pytest.mark.parametrize("function, name", [
    (lambda X: rffpk.cmeans(X, 1), "X"), (lambda X: rffpk.cmeans(HALVES, 2, init=X), "init"),
    (rffpk.center_kernel, "K"), (rffpk.partition_coefficient, "memberships"),
    (lambda X: rffpk.xie_beni_index(X, HALVES, np.eye(2)), "X"),
    (lambda X: rffpk.xie_beni_index(HALVES, HALVES, X), "centers"),
    (lambda X: rffpk.fuzzy_silhouette(X, HALVES), "X"),
])  # fmt: skip
def test_functions_refuse_infinities_of_both_signs_by_name(function, name):
    with pytest.raises(ValueError, match=f"^{name}: contains infinity in 1 of 2 rows, first in"):
        function(np.array([[np.inf, -np.inf], [0, 1]], np.float32))

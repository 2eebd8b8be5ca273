"""Bad input: an error names the argument, the value and the range, before any work."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rffpk
from rffpk import (
    Annealing,
    DiffusionMap,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    PowerKMeans,
    RandomFourierFeatures,
    RFFKernelPowerKMeans,
)

CLUSTERERS = [PowerKMeans, FuzzyCMeans, RFFKernelPowerKMeans]
ALL = [*CLUSTERERS, RandomFourierFeatures]
GOOD = np.random.default_rng(0).standard_normal((20, 3))
VECTORS = pd.DataFrame({"v": [*GOOD], "w": 1.0})

BAD_ROWS = {
    "NaN": (np.where(GOOD == GOOD.max(), np.nan, GOOD), ValueError, "X: contains NaN"),
    "infinity": (np.where(GOOD == GOOD.max(), np.inf, GOOD), ValueError, "X: contains infinity"),
    "no rows": (np.empty((0, 3)), ValueError, r"X: .*0 sample\(s\)"),
    "nothing": ([], ValueError, "^X: has no rows. Pass an array"),
    "None": (None, ValueError, "^X: is None. Pass an array"),
    "vectors in an array": (
        VECTORS.to_numpy(),
        ValueError,
        r"^X\[:, 0\]: .*numpy.vstack\(X\[:, 0",
    ),
    "vectors in a frame": (VECTORS, ValueError, r"^X\['v'\]: .* pass numpy.vstack\(X\['v'\]\)"),
    "vectors in a series": (VECTORS["v"], ValueError, r"^X: .* pass numpy.vstack\(X\)"),
    "ragged rows": ([[1.0], [1.0, 2.0]] * 9, ValueError, "^X: .*vectors of 1 to 2 numbers"),
    "no columns": (np.empty((20, 0)), ValueError, r"X: .*0 feature\(s\)"),
    "one dimension": (GOOD[:, 0], ValueError, "X: .*Expected 2D array"),
    "three dimensions": (GOOD[:, :, None], ValueError, r"^X.shape=\(20, 3, 1\): "),
    "strings": (np.array([["a", "b"]] * 20), ValueError, "^X: could not convert"),
    "complex": (GOOD + 1j, ValueError, "X: .*[Cc]omplex"),
}


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("kind", BAD_ROWS)
def test_bad_rows(estimator, kind):
    X, error, message = BAD_ROWS[kind]
    with pytest.raises(error, match=message):
        estimator().fit(X)


BAD_PARAMETERS = [
    ({"n_clusters": 21}, "n_clusters=21: must not exceed .* samples .20"),
    ({"n_clusters": 0}, "n_clusters=0: must be >= 1"),
    ({"n_clusters": 2.0}, "n_clusters must be an instance of int, not float"),
    ({"n_clusters": True}, "n_clusters must be an instance of int, not bool"),
    ({"n_clusters": "many"}, "n_clusters='many': must be one of .*'auto'.* or a number"),
    ({"n_init": 0}, "n_init=0: must be >= 1"),
    ({"max_iter": 0}, "max_iter=0: must be >= 1"),
    ({"max_iter": 2**63}, "max_iter=9223372036854775808: must be <= "),
    ({"tol": -1e-3}, "tol=-0.001: must be >= 0"),
    ({"tol": "tight"}, "tol='tight': must be a number"),
    ({"n_jobs": 100_000}, "n_jobs=100000: must be <= 1024"),
    ({"n_jobs": 0}, "n_jobs=0: must be None, positive or negative"),
    ({"init": "furthest"}, "init='furthest': must be one of"),
    ({"init": np.zeros((2, 3))}, r"^init.shape=\(2, 3\): must be \(8, "),
    ({"random_state": "x"}, "'x' cannot be used to seed"),
]
BAD_POWER = [
    ({"annealing": Annealing(start=-0.1)}, "annealing.start=-0.1: must be <= -0.2"),
    (
        {"annealing": Annealing(start=np.array([-1, -2]))},
        r"annealing\.start=array.*must be a number or 'critical'",
    ),
    ({"annealing": Annealing(start=1)}, "annealing.start=1: must be <= -0.2"),
    ({"annealing": Annealing(start=np.nan)}, "annealing.start=nan: must be finite"),
    (
        {"annealing": Annealing(start="automatic")},
        "annealing.start='automatic': must be a number or 'critical'",
    ),
    ({"annealing": Annealing(end=-0.1)}, "annealing.end=-0.1: must be <= -0.2"),
    ({"annealing": Annealing(start=-5.0, end=-3.0)}, "annealing.end=-3.0: must be <= -5.0"),
    ({"annealing": Annealing(factor=1.0)}, "annealing.factor=1.0: must be > 1"),
    ({"annealing": Annealing(factor=np.inf)}, "annealing.factor=inf: must be finite"),
    ({"annealing": Annealing(passes=0)}, "annealing.passes=0: must be >= 1"),
    ({"annealing": Annealing(until="never")}, "annealing.until='never': must be one of"),
    ({"sample": 0}, "sample=0: must be >= 8"),
    ({"sample": "all"}, "sample must be an instance of int"),
    ({"annealing": Annealing(swaps=-1)}, "annealing.swaps=-1: must be >= 0"),
    (
        {"annealing": Annealing(swaps=3, end=-5.0)},
        "annealing.swaps=3: needs annealing.end='hard'",
    ),
    (
        {"annealing": Annealing(swaps=3, until="objective")},
        "annealing.swaps=3: needs annealing.end='hard'",
    ),
    ({"annealing": Annealing(swaps=True)}, "annealing.swaps must be an instance of int, not bool"),
]
BAD_KERNEL = [
    ({"gamma": 0.0}, "gamma=0.0: must be > 0"),
    ({"gamma": -1}, "gamma=-1: must be > 0"),
    ({"gamma": "wide"}, "gamma='wide': must be one of"),
    ({"kernel": "linear"}, "kernel='linear': has no random features"),
    ({"kernel": "chi2"}, "kernel='chi2': has no random features.*KernelPowerKMeans"),
    ({"kernel": max}, "has no random features.*KernelPowerKMeans"),
    ({"n_frequencies": 0}, "n_frequencies=0: must be >= 1"),
    ({"n_frequencies": 10**400}, "n_frequencies=10+: must be <= "),
    ({"n_frequencies": "many"}, "n_frequencies='many': must be one of"),
    ({"sampling": "sobol"}, "sampling='sobol': must be one of"),
    ({"kernel": "cauchy", "sampling": "structured"}, "sampling='structured': needs"),
    ({"kernel": "laplacian", "sampling": "orthogonal"}, "sampling='orthogonal': needs"),
]
BAD_FUZZY = [
    ({"n_init": "many"}, "n_init must be an instance of int"),
    ({"m": 1.0}, "m=1.0: must be > 1"),
    ({"m": 6.5}, "m=6.5: must be <= 6"),
    ({"m": None}, "m=None: must be a number"),
]
CASES = [
    *((estimator, *case) for estimator in CLUSTERERS for case in BAD_PARAMETERS),
    *(
        (estimator, *case)
        for estimator in (PowerKMeans, RFFKernelPowerKMeans)
        for case in BAD_POWER
    ),
    *((RFFKernelPowerKMeans, *case) for case in BAD_KERNEL),
    *((FuzzyCMeans, *case) for case in BAD_FUZZY),
]


@pytest.mark.parametrize("estimator, parameters, message", CASES)
def test_bad_parameters(estimator, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        estimator(**parameters).fit(GOOD)


@pytest.mark.parametrize("cls", [*CLUSTERERS, rffpk.KernelKMeans, rffpk.MKKM])
def test_the_largest_number_of_passes_is_that_of_64_bits(cls):
    few, most = (cls(2, max_iter=n, random_state=0).fit(GOOD) for n in (300, 2**63 - 1))
    np.testing.assert_array_equal(few.labels_, most.labels_)


def test_initial_centroids_must_be_finite():
    with pytest.raises(ValueError, match="init: contains NaN or infinity"):
        PowerKMeans(2, init=np.array([[0, 0, 0], [np.nan, 0, 0]])).fit(GOOD)


@pytest.mark.parametrize("estimator", CLUSTERERS)
@pytest.mark.parametrize(
    "weight, message",
    [
        (np.ones(19), r"^sample_weight.shape=\(19,\): must be \(20,\)"),
        (np.ones((20, 1)), "sample_weight.shape"),
        (np.full(20, -1.0), "^sample_weight: contains -1.0. Pass"),
        (np.zeros(20), "^sample_weight: is zero everywhere. Pass"),
        (np.full(20, np.nan), "^sample_weight: contains NaN"),
        (np.full(20, 1e308), "^sample_weight: contains 1e[+]308, which is above 1e100. Divide"),
        (np.full(20, 1e-280), "^sample_weight: has the maximum 1e-280.* below 1e-275. Multiply"),
        (np.full(20, 1j), "^sample_weight: complex numbers"),
        (
            np.r_[1e-40, np.ones(19)],
            "^sample_weight: contains 1e-40 and 1.0, whose ratio is below 1e-30",
        ),
        (["heavy"] * 20, "^sample_weight: .*'heavy'"),
        (10**400, "^sample_weight: .*float64"),
        (np.eye(20)[0], "n_clusters=8: must not exceed .* positive sample_weight .1"),
    ],
)
def test_bad_weights(estimator, weight, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(GOOD, sample_weight=weight)


@pytest.mark.parametrize("estimator", CLUSTERERS)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score"])
def test_use_before_fit_and_with_other_columns(estimator, method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(estimator(), method)(GOOD)
    model = estimator(2, random_state=0).fit(GOOD)
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3"):
        getattr(model, method)(GOOD[:, :2])
    with pytest.raises(ValueError, match="X: contains NaN"):
        getattr(model, method)(np.full((2, 3), np.nan))


def test_values_too_large_for_their_type():
    with pytest.raises(ValueError, match="^X: .* overflow float64. Rescale X"):
        PowerKMeans(2).fit(GOOD * 1e160)


@pytest.mark.parametrize("estimator", CLUSTERERS)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score"])
def test_new_values_too_large_for_their_type(estimator, method):
    model = estimator(2, random_state=0).fit(GOOD.astype(np.float32))
    X = np.array([[0, 0, 0], [3e38, -3e38, 3e38]], dtype=np.float32)
    with pytest.raises(ValueError, match="^X: .* overflow"):
        getattr(model, method)(X)


REFUSED = {
    "rows": (np.full((5, 3), np.nan), {}, {}),
    "clusters": (np.zeros((1, 7)), {}, {}),
    "weights": (np.zeros((9, 7)), {}, {"sample_weight": np.ones(3)}),
    "centroids": (GOOD + 1, {"init": np.zeros((2, 2))}, {}),
    "overflow": (np.full((9, 3), 1e200) * GOOD[:9], {}, {}),
}


@pytest.mark.promise("Input", "A fit that fails leaves the estimator as it was.")
@pytest.mark.parametrize("estimator", CLUSTERERS)
@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_fit_leaves_the_model_as_it_was(estimator, what):
    X, parameters, arguments = REFUSED[what]
    model = estimator(2, random_state=0).fit(GOOD)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    expected = model.transform(GOOD)
    with pytest.raises(ValueError):
        model.set_params(**parameters).fit(X, **arguments)
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(model.transform(GOOD), expected)


def test_values_too_small_for_their_type():
    for estimator in (PowerKMeans(2), DiffusionPowerKMeans(2), DiffusionMap()):
        with pytest.raises(ValueError, match="^X: .* underflow float64. Rescale X"):
            estimator.fit(GOOD * 1e-170)
    with pytest.raises(ValueError, match="^X.*underflow"):
        RFFKernelPowerKMeans(2).fit(GOOD * 1e-158)


def test_a_distance_that_overflows_is_refused():
    model = PowerKMeans(2, init=np.array([[0.0, 0], [9e153, 0]])).fit(
        np.array([[0, 0], [0, 1e152], [9e153, 0], [9e153, 1e152]])
    )
    with pytest.raises(ValueError, match="^X: .* overflow"):
        model.transform(np.array([[-1.2e154, 0]]))


@pytest.mark.parametrize("bad", ["x", 1.5, -1, 2**40])
@pytest.mark.parametrize("model", [rffpk.PowerKMeans(2), rffpk.MKKM(2), rffpk.KernelKMeans(2),
                                   rffpk.NystroemKernelKMeans(2), rffpk.DiffusionMap(),
                                   rffpk.RandomFourierFeatures()], ids=str)  # fmt: skip
def test_a_random_state_that_is_none_is_named(model, bad):
    with pytest.raises(ValueError, match="^random_state"):
        clone(model).set_params(random_state=bad).fit(np.eye(6))


@pytest.mark.parametrize("bad", [slice("a", "b"), slice(0, 2, 0), slice(0.5, 2)], ids=str)
def test_a_slice_that_selects_nothing_is_named(bad):
    with pytest.raises((ValueError, TypeError), match=r"^views\[1\]"):
        rffpk.MKKM(2, views=[[0, 1], bad]).fit(np.eye(6))


@pytest.mark.parametrize("model", [rffpk.PowerKMeans(2), rffpk.FuzzyCMeans(2),
                                   rffpk.KernelKMeans(2)], ids=str)  # fmt: skip
@pytest.mark.parametrize("bad", [[[1.0, 2.0], [3.0]], [["a"] * 6] * 2], ids=str)
def test_initial_centroids_that_are_no_matrix_are_named(model, bad):
    with pytest.raises(ValueError, match=r"^init\b"):
        clone(model).set_params(init=bad).fit(np.eye(6))


FUSIONS = [
    rffpk.MKKM,
    rffpk.MKKMMR,
    rffpk.LKAM,
    rffpk.ONKC,
    rffpk.MVCLFA,
    rffpk.LMKKM,
    rffpk.AverageMKKM,
    rffpk.SimpleMKKM,
    rffpk.FAMKKM,
]


@pytest.mark.parametrize("cls", FUSIONS)
def test_a_view_whose_kernel_is_zero_is_refused_by_name(cls):
    X = np.random.default_rng(0).standard_normal((30, 3))
    with pytest.raises(ValueError, match=r"^X\[1\] has equal rows.*leave it out"):
        cls(2).fit([X, np.ones((30, 2))])
    with pytest.raises(ValueError, match=r"^views\[0\] has equal rows.*leave it out"):
        cls(2, views=[[3], [0, 1]]).fit(np.c_[X, np.ones(30)])
    with pytest.raises(ValueError, match=r"^X\[0\] is zero everywhere: leave it out"):
        cls(2, kernels="precomputed").fit([np.zeros((30, 30)), X @ X.T])


@pytest.mark.parametrize("cls", [rffpk.MKKM, rffpk.SMKC])
def test_an_indefinite_kernel_is_named(cls):
    X = np.random.default_rng(0).standard_normal((40, 3))
    specs = [("sigmoid", {"gamma": 2.0, "coef0": -1.0}), "rbf"]
    with pytest.warns(UserWarning, match="^kernel 0 is indefinite"):
        cls(2, kernels=specs, random_state=0).fit(X)

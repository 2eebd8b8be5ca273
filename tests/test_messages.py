"""Warnings point at the line that called the estimator."""

import warnings

import numpy as np
import pytest
from conventions import ip_rff_mkpkm
from refusals import FUSED
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import rffpk
from rffpk import Annealing, PowerKMeans

ROWS = np.random.default_rng(0).standard_normal((60, 4))
THREE = np.repeat(ROWS[:3], 20, axis=0)  # distinct ones
MOST = "max_iter=1 passes"
SIGMOID = ("sigmoid", {"gamma": 2.0, "coef0": -1.0})
FEW = "3 of n_clusters=5 clusters have rows"
INDEFINITE = {"coef0": -50, "gamma": 0.1}

FEATURES = [PowerKMeans, rffpk.RFFKernelPowerKMeans, ip_rff_mkpkm, rffpk.FuzzyCMeans]
EXACT = [
    rffpk.KernelKMeans, rffpk.KernelPowerKMeans, rffpk.MultiKernelPowerKMeans, rffpk.RMKKM,
]  # fmt: skip
APPROXIMATE = [rffpk.NystroemKernelKMeans, rffpk.SMKC, rffpk.FAMKKM]
SPECTRAL = [cls for cls in FUSED if cls not in APPROXIMATE]
TWO = ["rbf", "laplacian"]
CASES = [
    (PowerKMeans(5, max_iter=1, annealing=Annealing(swaps=0)), ROWS, MOST),
    *((cls(5, max_iter=1), ROWS, MOST) for cls in [*FEATURES[1:], *EXACT]),
    *((cls(5), THREE, FEW) for cls in [*FEATURES, *EXACT, *APPROXIMATE]),
    *((cls(5, n_landmarks=30), THREE, FEW) for cls in SPECTRAL),
    *(
        (cls(5, kernels=TWO, max_iter=1), ROWS, "1 iterations")
        for cls in [*SPECTRAL[1:], rffpk.SMKC]
    ),
    (rffpk.FAMKKM(5, max_iter=1), ROWS, "1 iterations"),
    *((cls(5, kernel="poly", kernel_params=INDEFINITE), ROWS, "indefinite") for cls in EXACT[:2]),
    (EXACT[2](5, kernels=[("poly", INDEFINITE)]), ROWS, "indefinite"),
    (rffpk.MKKM(5, kernels=[SIGMOID, "rbf"]), ROWS, "indefinite"),
    (rffpk.SMKC(5, kernels=["linear"]), ROWS, "the kernels have rank 4, less than n_clusters=5"),
    (rffpk.SMKC(5, kernels=[("rbf", 1e-7)]), ROWS, "sigma_1 / sigma_k"),
]


def call(model, method, X):
    return getattr(model, method)(X)


CALL = call.__code__.co_firstlineno + 1


def caught_in(function, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*arguments)
    return caught


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize(
    "model, X, message", CASES, ids=[f"{type(case[0]).__name__}, {case[2]}" for case in CASES]
)
def test_warnings_name_the_line_of_the_call(model, X, message, method):
    caught = caught_in(call, model.set_params(random_state=0), method, X)
    assert any(message in str(warning.message) for warning in caught)
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, CALL)}


class Subclass(PowerKMeans):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X)


def test_a_subclass_and_a_search_are_callers_too():
    inside = Subclass.fit.__code__.co_firstlineno + 1
    [warning] = caught_in(Subclass(5, random_state=0).fit, THREE)
    assert (warning.filename, warning.lineno) == (__file__, inside)
    search = GridSearchCV(PowerKMeans(random_state=0), {"n_clusters": [5]}, cv=2)
    caught = caught_in(call, search, "fit", THREE)
    of_fits = [warning for warning in caught if warning.category is ConvergenceWarning]
    assert {(warning.filename, warning.lineno) for warning in of_fits} == {(__file__, CALL)}

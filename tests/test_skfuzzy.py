"""Replace scikit-fuzzy's functions by functions of equal names: its tests and its results."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs
from sklearn.metrics import euclidean_distances

import rffpk
from rffpk.compat import skfuzzy as ours

X, Y = make_blobs(200, 4, centers=3, cluster_std=0.7, random_state=1)
DATA = X.T


def theirs():
    return pytest.importorskip("skfuzzy", reason="needs scikit-fuzzy").cluster


@pytest.mark.parametrize(
    "metric, m", [("euclidean", 2.0), ("euclidean", 7.0), ("cityblock", 1.5), ("cosine", 2.0)]
)
def test_results_are_those_of_scikit_fuzzy(metric, m):
    for name, first in (("cmeans", (3,)), ("cmeans_predict", (X[:3],))):
        arguments = DATA, *first, m, 1e-4, 200
        expected = getattr(theirs(), name)(*arguments, metric=metric, seed=4)
        found = getattr(ours, name)(*arguments, metric=metric, seed=4)
        for a, b in zip(found, expected, strict=True):
            assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_its_own_tests_pass(monkeypatch):
    cluster = theirs()
    module = pytest.importorskip("skfuzzy.cluster.tests.test_cmeans")
    for name in ("cmeans", "cmeans_predict"):
        monkeypatch.setattr(cluster, name, getattr(ours, name))
    ran = 0
    for name, test in [*vars(module).items()]:
        if name.startswith("test_fuzzy_cmeans"):
            setup = getattr(module.setup, "__wrapped__", None)
            if setup is None:  # of pytest from version 8.4 on
                setup = module.setup._get_wrapped_function()
            setup()
            test(None)
            ran += 1
    assert ran >= 4


def test_the_core_and_numpy_agree_and_predictions_are_exact():
    core = ours.cmeans(DATA, 3, 2.0, 1e-6, 100, seed=0)
    numpy = ours.cmeans(DATA, 3, 2.0, 1e-6, 100, lambda a, b: np.linalg.norm(a - b), seed=0)
    for a, b in zip(core, numpy):
        assert_allclose(a, b, rtol=1e-7, atol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ours.cmeans_predict(DATA, core.cntr, 2.0, 1e-6, 100, seed=0)
    assert_allclose(found.u, rffpk.cmeans(X, 3, 2.0, 1e-9, 500, core.u).u, atol=1e-5)
    assert found.p == len(found.jm) == 2
    assert_array_equal(found.u, ours.cmeans_predict(DATA, core.cntr, 2.0, 1e-6, 1, init=core.u).u)


def test_the_wrong_orientation_is_named():
    with pytest.raises(ValueError, match=r"^init has shape.*pass X\.T"):
        rffpk.cmeans(DATA, 3, init=np.full((3, 200), 1 / 3))
    with pytest.raises(ValueError, match=r"^c=5.*pass X\.T"):
        rffpk.cmeans(DATA, 5)
    with pytest.raises(ValueError, match=r"^X has 4 rows, too few for c=3.*pass X\.T"):
        rffpk.cmeans(DATA, 3, random_state=0)
    with pytest.raises(TypeError, match="X, but dense"):
        rffpk.cmeans(csr_array(X), 2)
    with pytest.warns(UserWarning, match=r"^X has 4 rows and 200 columns.*pass X\.T"):
        rffpk.cmeans(DATA, 2, random_state=0)
    with pytest.raises(ValueError, match="test_data has 4 rows, must have 2"):
        ours.cmeans_predict(DATA, X[:3, :2], 2.0, 1e-4, 10)


def test_metrics_that_are_no_functions_of_two_rows_are_named():
    for metric, message in [
        (euclidean_distances, "metric=euclidean_distances: gets two rows"),
        (3, "metric=3: is no metric"),
        ("near", "metric: Unknown"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            ours.cmeans(DATA, 3, 2.0, 1e-4, 10, metric=metric)

"""Weights of rows in all classes: weights that change nothing."""

import inspect
import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

import rffpk
from rffpk import _core

CLASSES = [
    each
    for name in rffpk.__all__
    if inspect.isclass(each := getattr(rffpk, name))
    and "sample_weight" in inspect.signature(getattr(each, "fit", len)).parameters
]
N = 60


def variants():
    """Yield each class with its defaults, and with parameters for which rows are drawn."""
    for cls in CLASSES:
        names = inspect.signature(cls).parameters
        parameters = {"random_state": 0} if "random_state" in names else {}
        if "n_clusters" in names:
            parameters["n_clusters"] = 3
        options = {"init": "random", "noise": 0.1, "n_landmarks": 40, "sample": 40}
        options = {name: value for name, value in options.items() if name in names}
        for name in [None, *options]:
            given = parameters | ({} if name is None else {name: options[name]})
            mark = [pytest.mark.exhaustive] if name not in (None, "init") else []
            yield pytest.param(cls, given, id=f"{cls.__name__}-{name or 'default'}", marks=mark)


def given(each):
    """Return rows for a class: one array, or two views."""
    X = make_blobs(N, 4, centers=3, cluster_std=3, random_state=2)[0]
    return [X, X[:, :2] ** 2] if "views" in inspect.signature(each).parameters else X


def with_rows(X, more):
    if isinstance(X, list):
        return [np.r_[x, more[:, : x.shape[1]]] for x in X]
    return np.r_[X, more]


def fit(each, parameters, X, weight=None):
    with warnings.catch_warnings(action="ignore"):
        return each(**parameters).fit(X, sample_weight=weight)


def published(model):
    names = [name for name in vars(model) if re.fullmatch(r"[^_].*_", name)]
    values = {name: np.asarray(getattr(model, name)) for name in names}
    return {name: value for name, value in values.items() if value.dtype.kind in "fiu"}


@pytest.mark.promise(like="test_weights_are_repetitions_at_a_fixed_start")
@pytest.mark.parametrize(("each", "parameters"), list(variants()))
def test_weights_of_one_change_no_bit(each, parameters):
    X = given(each)
    plain = published(fit(each, parameters, X))
    ones = published(fit(each, parameters, X, np.ones(N)))
    assert plain.keys() == ones.keys()
    for name, value in plain.items():
        assert_array_equal(value, ones[name], name)


FAR = {
    "far": 1e3 * np.random.default_rng(0).standard_normal((9, 4)),
    "huge": np.full((2, 4), 1e12),
    "equal": np.ones((50, 4)),
}


@pytest.mark.promise(like="test_weights_are_repetitions_at_a_fixed_start")
@pytest.mark.parametrize("kind", FAR)
@pytest.mark.parametrize(("each", "parameters"), list(variants()))
def test_rows_of_weight_zero_have_no_influence(each, parameters, kind):
    """The same rows are drawn without them, so that all results agree."""
    X, more = given(each), FAR[kind]
    weight = np.r_[np.ones(N), np.zeros(len(more))]
    plain = published(fit(each, parameters, X))
    found = published(fit(each, parameters, with_rows(X, more), weight))
    for name in plain.keys() - {"sample_size_"}:
        expected, value = plain[name], found[name]
        if expected.shape != value.shape:  # one entry for each row
            axis = [a == b for a, b in zip(expected.shape, value.shape)].index(False)
            value = np.take(value, np.arange(N), axis)
        error = 1e-6 * np.abs(expected[np.isfinite(expected)]).max(initial=0)
        if name == "n_iter_" and "sample" in parameters:
            error = 2  # weights of a sample have another unit, whose rounding may end passes
        assert_allclose(value, expected, rtol=0, atol=error, err_msg=name)


@pytest.mark.parametrize("weight", [np.full(N, 3.0), np.r_[np.full(N - 9, 0.7), np.zeros(9)]])
def test_rows_of_equal_weight_are_drawn_as_without_weights(weight):
    """Initial centroids, and the rows whose kernel errors tell the number of frequencies."""
    X = given(rffpk.PowerKMeans)
    counted = X[weight > 0]
    for each in (rffpk.RFFKernelPowerKMeans, rffpk.KernelPowerKMeans):
        parameters = {"n_clusters": 3, "init": "random", "random_state": 0}
        plain = fit(each, parameters, counted)
        model = fit(each, parameters, X, weight)
        assert_array_equal(model.labels_[weight > 0], plain.labels_)
        assert model.inertia_ == pytest.approx(weight.max() * plain.inertia_, rel=1e-6)


def test_weights_of_one_change_no_bit_of_functions_and_batches():
    X, results = given(rffpk.PowerKMeans), []
    for weight in (None, np.ones(N)):
        options = {"sample_weight": weight, "random_state": 0}
        selection = rffpk.select_n_clusters(X, **options)
        model = rffpk.PowerKMeans(3, sample=40, random_state=0)
        for batch in (X, X + 1, X - 1):
            model.partial_fit(batch, sample_weight=weight)
        table = rffpk.describe(model, X, **options)
        results.append([selection.scores, selection.labels, model.cluster_centers_,
                      table.sizes, table.stability])  # fmt: skip
    for plain, weighted in zip(*results):
        assert_array_equal(plain, weighted)


@pytest.mark.parametrize("weight", [None, np.ones(2000)], ids=["none", "ones"])
@pytest.mark.parametrize("is_source", [False, True])
def test_the_core_gets_no_weights_of_one(monkeypatch, weight, is_source):
    X = make_blobs(2000, 4, centers=3, random_state=0)[0]
    rows = (lambda: iter([X[:900], X[900:]])) if is_source else X
    model, handed = rffpk.PowerKMeans(3, random_state=0, sample=500), []

    def spied(function):
        return lambda *given, **options: handed.append(given[5]) or function(*given, **options)

    for name in ("fused_pass", "take_steps"):
        monkeypatch.setattr(_core, name, spied(getattr(_core, name)))
    model.fit(rows, sample_weight=weight)
    # weights of a sample of a source are all one, too
    assert handed and all(each is None for each in handed)
    model.fit(rows, sample_weight=np.linspace(1, 2, 2000))
    assert any(each is not None for each in handed)

"""Rows with little to cluster: each class fits them or refuses them by name, whatever is asked of
the model is finite, and a warning says what is missing."""

import itertools
import traceback
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from test_ends import ALL, FEATURES, soft

import rffpk
from rffpk import describe, plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

RANDOM = np.random.default_rng(0)
ROWS = {
    "one row": np.array([[1.0, 2.0]]),
    "two rows": np.array([[1.0, 2.0], [3.0, 1.0]]),
    "equal rows": np.full((20, 3), 1.7),
    "rows of zeros": np.zeros((20, 3)),
    "two values": np.eye(2).repeat(12, axis=0),
    "three values": np.array([[0.0], [1.0], [5.0]]).repeat(8, axis=0),
    "mostly equal": np.vstack([np.ones((40, 2)), RANDOM.standard_normal((3, 2))]),
    "a constant column": np.c_[RANDOM.standard_normal((25, 2)), np.ones(25)],
    "one direction": np.outer(np.arange(1, 21), [1.0, 2.0]),
    "huge": RANDOM.standard_normal((24, 3)) * 1e100,
    "tiny": RANDOM.standard_normal((24, 3)) * 1e-100,
    "a far row": np.vstack([1e-3 * RANDOM.standard_normal((30, 2)), [[1e6, 1e6]]]),
    "far from zero": 1e8 + RANDOM.standard_normal((24, 2)),
    "float32": (RANDOM.standard_normal((24, 3)) * 1e-15).astype(np.float32),
    "sparse": sp.random_array((30, 7), density=0.2, rng=1, format="csr"),
    "equal sparse rows": sp.csr_array(np.ones((20, 7))),
    "sparse rows of zeros": sp.csr_array((20, 7)),
}
MODELS = [
    *ALL, *map(soft, FEATURES), rffpk.PowerKMeans(metric="cosine"), rffpk.PowerKMeans("auto"),
    rffpk.PowerKMeans(whitening=0.5), rffpk.FuzzyCMeans(metric="cosine"),
    rffpk.DiffusionPowerKMeans(metric="cosine"), rffpk.DiffusionPowerKMeans("auto"),
    rffpk.RFFMultiKernelPowerKMeans(typicality="auto", n_frequencies=32),
    rffpk.RFFMultiKernelPowerKMeans(kernels=["diffusion"]),
]  # fmt: skip


def fitted(model, X, weight):
    """Fit the model to X; return it, or None if refused by name, and whether it gave a warning."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            model.fit(X, sample_weight=weight)
        except ValueError as error:
            assert "rffpk" in traceback.extract_tb(error.__traceback__)[-1].filename
            return None, False
    assert {w.category for w in caught} <= {ConvergenceWarning, UserWarning}, caught
    return model, bool(caught)


def ask(model, X, weight):
    """Check that all that a fitted model says is finite, and that its parts agree."""
    labels, k = model.predict(X), len(model.linkage_) + 1
    assert_array_equal(labels, model.labels_)
    u = model.predict_proba(X)
    assert_allclose(u.sum(axis=1), 1, atol=1e-5)
    assert_allclose(u[np.arange(len(u)), labels], u.max(axis=1), atol=1e-3)
    found = model.transform(X), model.linkage_, [model.score(X), model.inertia_]
    assert all(np.isfinite(each).all() for each in found)
    assert all(r.get("objective", 0) >= 0 for r in model.history_)
    assert not model.cut(1).any() and model.medoids(X).shape == (k,)
    profiles = describe(model, X, sample_weight=weight, n_resamples=1, random_state=0)
    assert profiles.sizes.sum() == len(labels) and str(profiles)


def draw(model, X):
    axes = [plot.clusters(model, X), plot.convergence(model), plot.memberships(model, X)]
    axes.append(plot.profile(describe(model, X, n_resamples=0)))
    axes += [plot.tree(model)] if len(model.linkage_) else []
    for ax in axes:
        ax.figure.canvas.draw()
        pyplot.close(ax.figure)


def check(number, name, weighted):
    X, model = ROWS[name], clone(MODELS[number]).set_params(random_state=0)
    if model.n_clusters != "auto":
        model.set_params(n_clusters=2 + 3 * (number % 2))
    n = X.shape[0]
    weight = np.where(np.arange(n) % max(1, n // 5), 0.0, 1.0) if weighted else None
    model, warned = fitted(model, X, weight)
    if model is not None:
        counted = model.labels_ if weight is None else model.labels_[weight > 0]
        assert warned or len(np.unique(counted)) == len(model.linkage_) + 1
        ask(model, X, weight)
    return model


@pytest.mark.parametrize("number", range(len(MODELS)), ids=[str(m) for m in MODELS])
def test_rows_with_little_to_cluster(number):
    """Of each class one kind of rows, another of the next class."""
    check(number, [*ROWS][(5 * number) % len(ROWS)], number % 4 > 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("number, name", [*itertools.product(range(len(MODELS)), ROWS)])
def test_more_rows_with_little_to_cluster_are_drawn(number, name):
    """Of each class and kind of rows a third."""
    step = number + [*ROWS].index(name)
    if step % 3 == 0 and (model := check(number, name, step % 2 > 0)) is not None:
        draw(model, ROWS[name])


@pytest.mark.parametrize("value", [np.float32(3e9), np.float64(3e17)])
def test_rows_that_differ_by_rounding_far_from_the_origin_are_fitted(value):
    X = np.where(np.arange(100)[:, None] % 3, value, np.nextafter(value, 2 * value))
    with pytest.warns(UserWarning, match=f"which {value.dtype} does not resolve; .* center X"):
        model = rffpk.RFFKernelPowerKMeans(2, random_state=0).fit(X)
    assert np.bincount(model.labels_).tolist() in ([34, 66], [66, 34])
    assert_array_equal(model.predict(X), model.labels_)
    with pytest.raises(ValueError, match="does not resolve"):
        rffpk.RFFKernelPowerKMeans(2, gamma=1.0).fit(X)


@pytest.mark.parametrize("value", [3e9, 1e30])
@pytest.mark.parametrize("cls", [rffpk.RFFKernelPowerKMeans, rffpk.RFFMultiKernelPowerKMeans])
def test_equal_rows_far_from_the_origin_are_fitted(cls, dtype, value):
    with pytest.warns(ConvergenceWarning, match="1 distinct row"):
        labels = cls(2, random_state=0).fit_predict(np.full((100, 1), value, dtype))
    assert len({*labels}) == 1

"""Pictures: what is drawn, where, and how clusters differ."""

import sys

import numpy as np
import pandas as pd
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.metrics import silhouette_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rffpk import (
    MKKM,
    SMKC,
    Annealing,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    MultiKernelPowerKMeans,
    PowerKMeans,
    RFFMultiKernelPowerKMeans,
    describe,
    plot,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

X, Y = make_blobs(300, centers=3, random_state=1)


def places(ax):
    """Return the places of all points that are drawn."""
    return np.vstack([group.get_offsets() for group in ax.collections])


@pytest.fixture
def ax():
    figure, ax = pyplot.subplots()
    yield ax
    figure.canvas.draw()  # whatever was drawn can be shown
    pyplot.close(figure)


def test_rows_are_drawn_where_they_are_with_their_memberships(ax):
    model = FuzzyCMeans(3, random_state=0).fit(X)
    assert plot.clusters(model, X, ax=ax) is ax
    *groups, centers = ax.collections
    assert_allclose(centers.get_offsets(), model.cluster_centers_)
    largest = model.predict_proba(X).max(axis=1)
    for label, group in enumerate(groups):
        here = model.labels_ == label
        assert_allclose(group.get_offsets(), X[here])
        assert np.corrcoef(group.get_alpha(), largest[here])[0, 1] > 0.999
        assert 0.15 <= group.get_alpha().min() and group.get_alpha().max() <= 1


def test_clusters_differ_in_color_and_in_marker():
    styles = [plot._style(label) for label in range(56)]
    assert len({(style["color"], style["marker"]) for style in styles}) == 56
    assert len({style["marker"] for style in styles[:8]}) == 8


def test_places_of_rows(ax):
    rows, _ = make_moons(200, noise=0.05, random_state=0)
    model = DiffusionPowerKMeans(2, random_state=0).fit(rows)
    features = model.feature_map_.transform(rows)
    plot.clusters(model, rows, ax=ax)
    expected = features if features.shape[1] > 1 else rows
    assert_allclose(np.sort(places(ax), axis=0), np.sort(expected[:, :2], axis=0))
    ax.clear()
    scaled = make_pipeline(StandardScaler(), StandardScaler(), DiffusionPowerKMeans(3))
    plot.clusters(scaled.fit(X), X, ax=ax)
    assert ax.get_xlabel() == "diffusion feature 1"
    digits, chosen = load_digits().data, np.random.RandomState(0).randn(1797, 2)
    other = PowerKMeans(3, random_state=0).fit(digits)
    ax.clear()
    plot.clusters(other, digits, ax=ax)
    assert len(places(ax)) == 1797
    ax.clear()
    plot.clusters(other, digits, places=chosen, ax=ax)
    assert_allclose(np.sort(places(ax), axis=0), np.sort(chosen, axis=0))
    with pytest.raises(ValueError, match="places has shape"):
        plot.clusters(other, digits, places=digits, ax=ax)


LACKING = np.where(np.arange(300)[:, None] < 20, np.nan, X)
DRAWN = {  # models, their rows, and how many groups of points there are
    "one column": (KernelPowerKMeans(3), X[:, :1], 3),
    "views": (RFFMultiKernelPowerKMeans(3), [X, X[:, :1]], 3),
    "frame": (KernelPowerKMeans(3), pd.DataFrame(X, columns=["a", "b"]), 3),
    "kernels": (MultiKernelPowerKMeans(3, kernels="precomputed"), [rbf_kernel(X)] * 2, 3),
    "pipeline": (make_pipeline(StandardScaler(), FuzzyCMeans(3)), X, 3),
    "mixture": (GaussianMixture(3, random_state=0), X, 3),
    "lacking": (ip_rff_mkpkm(3, allow_missing_views=True), [X, LACKING], 3),
    # by the columns of the views, with the mean where a view is lacking
    "one cluster": (ip_rff_mkpkm(1, allow_missing_views=True), [X, LACKING], 1),
    "none": (ip_rff_mkpkm(2, allow_missing_views=True), [X, [None] * 20 + [*X[20:]]], 2),
}


@pytest.mark.parametrize("name", DRAWN)
def test_rows_of_all_kinds_are_drawn(ax, name):
    model, rows, groups = DRAWN[name]
    model = clone(model)
    model.set_params(**{key: 0 for key in model.get_params() if key.endswith("random_state")})
    plot.clusters(model.fit(rows), rows, ax=ax)
    assert len(ax.collections) == groups and len(places(ax)) == 300
    assert np.isfinite(places(ax)).all()


def test_at_most_5000_rows_are_drawn(ax):
    rows = np.random.RandomState(0).randn(12_001, 2)
    plot.clusters(PowerKMeans(2, random_state=0).fit(rows), rows, ax=ax)
    *groups, _ = ax.collections
    assert 4000 <= sum(len(group.get_offsets()) for group in groups) <= 5000


def test_convergence_falls_along_each_line(ax):
    model = PowerKMeans(3, annealing=Annealing(start=-1.0), random_state=0).fit(X)
    plot.convergence(model, ax)
    lines = [line for line in ax.lines if len(line.get_xdata())]
    assert len({x for line in lines for x in line.get_xdata()}) == sum(
        record["stage"] in ("anneal", "hard") for record in model.history_
    )
    for line in lines:
        assert (np.diff(line.get_ydata()) <= 1e-9 * line.get_ydata()[0]).all()


@pytest.mark.parametrize("model", [SMKC(3), PowerKMeans(3, n_init=3)])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_only_the_passes_of_the_kept_start_are_drawn(ax, model, in_pipeline):
    """Of a pipeline the passes of its last step, and of fused kernels one line."""
    model = clone(model).set_params(random_state=0)
    shown = make_pipeline(StandardScaler(), model).fit(X) if in_pipeline else model.fit(X)
    plot.convergence(shown, ax)
    history = (shown[-1] if in_pipeline else model).history_
    drawn = [value for line in ax.lines for value in line.get_ydata()]
    stages = ("anneal", "hard", "fusion", "weights")
    kept = [r["objective"] for r in history if r.get("kept") and r["stage"] in stages]
    assert_array_equal(drawn, kept)
    assert len(ax.lines) == 1 or not isinstance(model, SMKC)


def test_memberships_and_noise(ax):
    noisy = np.vstack([X, np.random.RandomState(0).uniform(-15, 15, (60, 2))])
    model = PowerKMeans(3, noise=0.1, random_state=0).fit(noisy)
    plot.clusters(model, noisy, ax=ax)
    (crosses,) = (group for group in ax.collections if group.get_label() == "noise")
    assert len(crosses.get_offsets()) == (model.labels_ == -1).sum()
    ax.clear()
    views = ip_rff_mkpkm(3, random_state=0).fit([X, X[:, :1]])
    plot.memberships(views, [X, X[:, :1]], s=-1.0, ax=ax)
    shown = ax.images[0].get_array()
    assert_allclose(np.sort(shown, axis=0), np.sort(views.predict_proba([X, X[:, :1]], s=-1.0), 0))
    assert (np.diff(shown.argmax(axis=1)) >= 0).all()


def test_new_axes_are_made_where_none_are_given():
    ax = plot.tree(PowerKMeans(4, random_state=0).fit(X))
    assert ax.figure.axes == [ax]
    pyplot.close(ax.figure)


def test_models_without_what_is_drawn_are_refused(ax):
    mixture = GaussianMixture(2, random_state=0).fit(X)
    for draw, name in [(plot.convergence, "history_"), (plot.tree, "linkage_")]:
        with pytest.raises(ValueError, match=f"^model: GaussianMixture has no {name}. Pass"):
            draw(mixture, ax)
    for draw, name in [(plot.clusters, "predict"), (plot.memberships, "predict_proba")]:
        with pytest.raises(ValueError, match=f"^model: StandardScaler has no {name}. Pass"):
            draw(make_pipeline(StandardScaler()).fit(X), X)
        with pytest.raises(TypeError, match="^model: None"):
            draw(None, X)
        with pytest.raises(ValueError, match="^model: is a pipeline without steps. Pass one"):
            draw(Pipeline([]), X)
    with pytest.raises(TypeError, match=r"^profiles is of type Gauss.* Pass .* describe\("):
        plot.profile(mixture)


BAD = [
    ("x", "X has 0 dimensions"), (None, "X has 0 dimensions"), ([1.0, 2.0], "X has 1 dimensions"),
    ([[1.0], [1.0, 2.0]], "X: .* vectors of 1 to 2"), (lambda: iter([X]), "X: is"),
    ([X, X[:5]], r"X: its views have \[300, 5\] rows"), (X[:0], "X has no rows"),
]  # fmt: skip


@pytest.mark.parametrize("bad, message", BAD)
def test_rows_that_cannot_be_drawn_are_named_and_open_no_figure(bad, message):
    model, before = PowerKMeans(2, random_state=0).fit(X), pyplot.get_fignums()
    for draw in (plot.clusters, plot.memberships):
        with pytest.raises((ValueError, TypeError), match=f"^{message}"):
            draw(model, bad)
    assert pyplot.get_fignums() == before


def test_axes_are_those_of_matplotlib():
    model = PowerKMeans(2, random_state=0).fit(X)
    for bad in ("x", [], np.array([None]), pyplot):
        with pytest.raises(TypeError, match="^ax is of type .* Axes"):
            plot.convergence(model, ax=bad)


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot.clusters(PowerKMeans(2, random_state=0).fit(X), X)


def test_sparse_rows_are_drawn_where_dense_ones_are(ax):
    """Up to the signs of principal components."""
    many = np.where(load_digits().data > 8, load_digits().data, 0)
    for rows, model in [
        (many, PowerKMeans(3, random_state=0)), (np.maximum(X, 0), PowerKMeans(3, random_state=0)),
        ([many, many[:, :9]], ip_rff_mkpkm(3, random_state=0)),
    ]:  # fmt: skip
        model.fit(rows)
        given = [*map(csr_array, rows)] if isinstance(rows, list) else csc_array(rows)
        drawn = []
        for shown in (rows, given):
            plot.clusters(model, shown, ax=ax)
            drawn.append(np.abs(places(ax)))
            ax.clear()
            plot.memberships(model, shown, ax=ax)
            ax.clear()
        dense, sparse = drawn
        assert_allclose(sparse, dense, atol=1e-5 * np.abs(dense).max())


def test_centers_of_an_embedding_are_not_drawn_among_the_rows(ax):
    plot.clusters(SMKC(2, random_state=0).fit([X, X]), [X, X], places=X, ax=ax)
    before = len(ax.collections)
    plot.clusters(MKKM(2, random_state=0).fit(X + 1000), X + 1000, ax=ax)
    assert len(ax.collections) == 2 * before == 4


@pytest.mark.few(4)
@pytest.mark.parametrize("cls", [RFFMultiKernelPowerKMeans, MultiKernelPowerKMeans, SMKC, MKKM])
@pytest.mark.parametrize("listed", [True, False])
def test_several_views_are_drawn_by_what_the_model_makes_of_them(cls, listed, ax):
    noise = 1000 * np.random.RandomState(0).randn(300, 4)  # the largest columns, without clusters
    views = [slice(0, 2), slice(2, 6)]
    table = np.hstack([X, noise])
    model = cls(3, views=None if listed else views, random_state=0)
    rows = [table[:, view] for view in views] if listed else table
    plot.clusters(model.fit(rows), rows, ax=ax)
    assert [len(group.get_offsets()) for group in ax.collections] == [*np.bincount(model.labels_)]
    labels = np.repeat(range(3), np.bincount(model.labels_))
    assert silhouette_score(places(ax), labels) > 0.3
    assert "distances" in ax.get_xlabel()


def test_a_tree_has_the_clusters_and_the_heights_of_the_linkage(ax):
    model = PowerKMeans(6, random_state=0).fit(X)
    assert plot.tree(model, ax) is ax
    assert sorted(text.get_text() for text in ax.get_xticklabels()) == [*"012345"]
    drawn = sorted(path.vertices[1, 1] for lines in ax.collections for path in lines.get_paths())
    assert_allclose(drawn, model.linkage_[:, 2])
    ax.clear()
    plot.tree(make_pipeline(StandardScaler(), PowerKMeans(4, random_state=0)).fit(X), ax)
    assert len(ax.get_xticklabels()) == 4
    ax.clear()
    plot.tree(KernelPowerKMeans(60, random_state=0).fit(X), ax)
    assert len(ax.get_xticklabels()) == 50
    with pytest.raises(ValueError, match="model has one cluster, must have at least two"):
        plot.tree(PowerKMeans(1).fit(X), ax)
    ax.clear()
    plot.tree(PowerKMeans(3, random_state=0).fit(np.ones((30, 2))), ax)  # a flat tree
    assert len(ax.get_xticklabels()) == 3


def test_profiles_show_the_columns_with_the_largest_differences(ax):
    rows = np.c_[X, np.random.RandomState(0).randn(300)]
    profiles = describe(PowerKMeans(3, random_state=0).fit(rows), rows, n_resamples=1)
    assert plot.profile(profiles, n_columns=2, ax=ax) is ax
    assert [text.get_text() for text in ax.get_xticklabels()] == ["column 0", "column 1"]
    assert ax.get_yticklabels()[0].get_text() == "0: 100 rows, stability 1.00"
    assert_allclose(ax.images[0].get_array(), profiles.differences[:, :2])
    with pytest.raises(ValueError, match="n_columns=0"):
        plot.profile(profiles, n_columns=0, ax=ax)


@pytest.mark.parametrize("rows", [np.ones((30, 7)), csr_array(np.ones((30, 7))), None])
@pytest.mark.parametrize("k", [1, 2])
def test_equal_rows_are_drawn_at_one_place(rows, k, ax):
    rows, cls = (rows, PowerKMeans) if rows is not None else ([np.ones((30, 7))] * 2, ip_rff_mkpkm)
    plot.clusters(cls(k, random_state=0).fit(rows), rows, ax=ax)
    assert_array_equal(ax.collections[0].get_offsets(), np.zeros((30, 2)))

"""Cells: what is written to an object in the layout of AnnData."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

from rffpk import DiffusionPowerKMeans, PowerKMeans, RFFMultiKernelPowerKMeans
from rffpk.cells import cluster


def cells():
    X, y = make_blobs(120, 4, centers=3, random_state=0)
    names = [f"cell{i}" for i in range(len(X))]
    obs = pd.DataFrame({"truth": y}, index=names)
    return SimpleNamespace(X=X, obs=obs, obsm={"X_pca": X, "protein": X[:, :2]}, uns={})


def test_labels_memberships_and_parameters_are_written():
    adata = cells()
    model = cluster(adata, 3, key_added="kinds", n_neighbors=12)
    expected = DiffusionPowerKMeans(3, n_neighbors=12, random_state=0).fit(adata.obsm["X_pca"])
    labels = adata.obs["kinds"]
    assert isinstance(labels.dtype, pd.CategoricalDtype)
    assert [*labels.cat.categories] == ["0", "1", "2"]
    assert_array_equal(labels.astype(int), expected.labels_)
    assert adata.obsm["kinds_memberships"].shape == (120, 3)
    assert_array_equal(adata.obsm["kinds_memberships"].argmax(axis=1), expected.labels_)
    params = adata.uns["kinds"]["params"]
    assert params["method"] == "DiffusionPowerKMeans" and params["use_rep"] == "X_pca"
    assert (params["n_clusters"], params["n_neighbors"], params["random_state"]) == (3, 12, 0)
    assert_array_equal(model.predict(adata.obsm["X_pca"]), expected.labels_)


def test_the_number_comes_out_of_the_data():
    adata = cells()
    assert cluster(adata, random_state=1).n_clusters_ == 3
    assert adata.uns["rffpk"]["params"]["n_clusters"] == "auto"
    assert 3 in adata.uns["rffpk"]["levels"]
    cluster(adata, 2)
    assert "levels" not in adata.uns["rffpk"]
    assert [*adata.obs["rffpk"].cat.categories] == ["0", "1"] and "rffpk_memberships" in adata.obsm
    cluster(adata, 11, use_rep="X", store_memberships=False)
    assert adata.uns["rffpk"]["params"]["n_clusters"] == 11
    assert [*adata.obs["rffpk"].cat.categories] == [str(j) for j in range(11)]
    assert [*adata.obsm] == ["X_pca", "protein"]


def test_several_representations_are_views():
    adata = cells()
    for n_clusters in ({}, {"n_clusters": 3}):
        model = cluster(adata, use_rep=["X_pca", "protein"], **n_clusters)
        assert isinstance(model, RFFMultiKernelPowerKMeans) and model.n_clusters_ == 3
        assert_array_equal(adata.uns["rffpk"]["params"]["use_rep"], ["X_pca", "protein"])
        assert (3 in adata.uns["rffpk"].get("levels", ())) is not bool(n_clusters)
    assert_array_equal(pd.crosstab(adata.obs.truth, adata.obs.rffpk).max(axis=1), 40)


def test_a_graph_that_is_there_is_used():
    adata = cells()
    graph = kneighbors_graph(adata.X, 12, mode="connectivity")
    adata.uns["nearest"] = {"connectivities_key": "nearest_connectivities"}
    adata.uns["older"] = {"params": {}}  # of files that name no matrix
    adata.obsp = {"nearest_connectivities": graph}
    assert cluster(adata, neighbors_key="nearest").n_clusters_ == 3
    for options, message in [
        ({"neighbors_key": "neighbors"}, "neighbors_key='neighbors': adata.uns has no"),
        ({"neighbors_key": "older"}, r"adata.obsp\['connectivities'\] is missing"),
        ({"neighbors_key": "nearest", "noise": "auto"}, "be None with neighbors_key.*use_rep"),
    ]:
        with pytest.raises(ValueError, match=message):
            cluster(adata, 3, **options)
    with pytest.raises(ValueError, match="noise=.*Fit the rows that the graph was made of"):
        DiffusionPowerKMeans(3, metric="precomputed", noise="auto").fit(graph)
    adata.obsp["connectivities"] = graph
    expected = DiffusionPowerKMeans(3, metric="precomputed", random_state=0).fit(graph)
    for key in ("nearest", "older"):
        model = cluster(adata, 3, neighbors_key=key)
        assert_array_equal(model.labels_, expected.labels_)
        assert_array_equal(pd.crosstab(adata.obs.truth, adata.obs.rffpk).max(axis=1), 40)
        params = adata.uns["rffpk"]["params"]
        assert params["neighbors_key"] == key and "use_rep" not in params
    message = r"^X.shape=\(5, 4\): must be \(n_new, 120\)..* affinities of new rows with the"
    for rows in (adata.X[:5], adata.X[:5].tolist(), pd.DataFrame(adata.X[:5])):
        with pytest.raises(ValueError, match=message):
            model.predict(rows)
    assert model.predict(graph[:5]).shape == (5,)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"use_rep": []}, r"use_rep=\[\]: names nothing"),
        ({"use_rep": None}, "use_rep=None: names nothing"),
        ({"use_rep": [np.eye(2)]}, "(?s)use_rep=array.*must be 'X' or in "),
        ({"use_rep": "X_umap"}, "use_rep='X_umap': must be 'X' or in .*X_pca.*protein"),
        ({"n_clusters": 121}, "n_clusters=121"),
        ({"key_added": 3}, "key_added=3: must be a string"),
        ({"resolution": 1.0}, "resolution=1.0: is not a parameter. Pass n_clusters .* 'fine'"),
    ],
)
def test_what_is_refused_leaves_the_cells_alone(options, message):
    adata = cells()
    with pytest.raises((ValueError, TypeError), match=message):
        cluster(adata, **{"n_clusters": 3, **options})
    assert [*adata.obs] == ["truth"] and len(adata.obsm) == 2 and not adata.uns
    with pytest.raises(TypeError, match="adata is of type ndarray, must be an AnnData object"):
        cluster(np.eye(4), 2)


def test_probabilities_are_memberships_in_the_own_cluster():
    X = cells().X
    model = PowerKMeans(3, random_state=0).fit(X)
    assert not hasattr(model, "probabilities_")
    with pytest.raises(AttributeError, match="store_memberships=True"):
        model.probabilities_  # noqa: B018
    model.set_params(store_memberships=True).fit(X)
    assert_array_equal(model.probabilities_, model.memberships_.max(axis=1))
    model.labels_[:5] = -1
    assert_array_equal(model.probabilities_[:5], 0)
    assert model.probabilities_.dtype == X.dtype
    model.partial_fit(X[:7])
    assert not hasattr(model, "probabilities_")

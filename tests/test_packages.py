"""Other packages that hold rows or take clusterers, as they are installed."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_blobs

from rffpk import PowerKMeans
from rffpk.cells import cluster

pytestmark = [pytest.mark.exhaustive, pytest.mark.filterwarnings("ignore")]


class Unchanged(TransformerMixin, BaseEstimator):
    """In the place of a reduction of dimensions."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def test_annotated_cells_keep_their_clusters_in_files(tmp_path):
    anndata = pytest.importorskip("anndata")
    X, _ = make_blobs(200, 5, centers=3, random_state=0)
    adata = anndata.AnnData(X.astype(np.float32), obsm={"X_pca": X, "protein": X[:, :2]})
    cluster(adata, 3)
    cluster(adata, 3, use_rep=["X_pca", "protein"], key_added="both")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    for key in ("rffpk", "both"):
        assert (again.obs[key] == adata.obs[key]).all()
        assert_array_equal(again.obsm[f"{key}_memberships"], adata.obsm[f"{key}_memberships"])
        assert again.uns[key]["params"]["n_clusters"] == 3
    with pytest.raises(TypeError, match="^X: is of type AnnData. .*obsm"):
        PowerKMeans(3).fit(adata)


def documents_of(y):
    words = [["cell", "gene"], ["ball", "goal"], ["court", "law"]]
    return [" ".join(words[label]) + f" word{i % 7}" for i, label in enumerate(y)]


@pytest.mark.parametrize("calculate", [False, True])
def test_topics_and_their_probabilities(calculate):
    bertopic = pytest.importorskip("bertopic")
    X, y = make_blobs(150, 8, centers=3, random_state=1)
    clusterer = PowerKMeans(3, random_state=0, store_memberships=True)
    model = bertopic.BERTopic(
        embedding_model=None, umap_model=Unchanged(), hdbscan_model=clusterer,
        calculate_probabilities=calculate,
    )  # fmt: skip
    topics, probabilities = model.fit_transform(documents_of(y), embeddings=X)
    assert len({*zip(y, topics)}) == 3
    assert_array_equal(probabilities, clusterer.probabilities_)
    assert_array_equal(model.transform(documents_of(y), embeddings=X)[0], topics)


def test_topics_of_batches():
    bertopic = pytest.importorskip("bertopic")
    from bertopic.vectorizers import OnlineCountVectorizer

    X, y = make_blobs(300, 8, centers=3, random_state=1)
    model = bertopic.BERTopic(
        embedding_model=None, umap_model=Unchanged(), vectorizer_model=OnlineCountVectorizer(),
        hdbscan_model=PowerKMeans(3, sample=100, random_state=0),
    )  # fmt: skip
    documents = np.array(documents_of(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in np.array_split(np.arange(300), 3):
            model.partial_fit([*documents[batch]], embeddings=X[batch])
            assert len({*zip(y[batch], model.topics_)}) == 3


def test_documents_far_from_all_others_have_no_topic():
    bertopic = pytest.importorskip("bertopic")
    X, y = make_blobs(150, 8, centers=3, random_state=1)
    X[:5] = 1000 * np.eye(8)[:5]
    clusterer = PowerKMeans(3, noise=5 / 150, random_state=0, store_memberships=True)
    model = bertopic.BERTopic(embedding_model=None, umap_model=Unchanged(), hdbscan_model=clusterer)
    topics, probabilities = model.fit_transform(documents_of(y), embeddings=X)
    assert [*np.flatnonzero(np.array(topics) == -1)] == [0, 1, 2, 3, 4]
    assert (probabilities[:5] == 0).all() and len({*zip(y[5:], topics[5:])}) == 3
    reduced = model.reduce_outliers(documents_of(y), topics, strategy="c-tf-idf")
    assert -1 not in reduced

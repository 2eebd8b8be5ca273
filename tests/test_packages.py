"""Other packages that hold rows or take clusterers, as they are installed."""

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


def topic_model(clusterer, **options):
    bertopic = pytest.importorskip("bertopic")
    return bertopic.BERTopic(
        embedding_model=None, umap_model=Unchanged(), hdbscan_model=clusterer, **options
    )


@pytest.mark.parametrize("calculate, noise", [(False, None), (True, None), (False, 5 / 150)])
def test_topics_and_their_probabilities(calculate, noise):
    X, y = make_blobs(150, 8, centers=3, random_state=1)
    far = np.arange(150) < (5 if noise else 0)
    X[far] = 1000 * np.eye(8)[: far.sum()]
    clusterer = PowerKMeans(3, noise=noise, random_state=0, store_memberships=True)
    model = topic_model(clusterer, calculate_probabilities=calculate)
    topics, probabilities = model.fit_transform(documents_of(y), embeddings=X)
    assert len({*zip(y[~far], np.array(topics)[~far])}) == 3
    assert_array_equal(np.array(topics) == -1, far)
    assert_array_equal(probabilities, clusterer.probabilities_)
    assert (probabilities[far] == 0).all()
    if noise:
        assert -1 not in model.reduce_outliers(documents_of(y), topics, strategy="c-tf-idf")
    else:
        assert_array_equal(model.transform(documents_of(y), embeddings=X)[0], topics)


def test_topics_of_batches():
    X, y = make_blobs(300, 8, centers=3, random_state=1)
    clusterer = PowerKMeans(3, sample=100, random_state=0)
    pytest.importorskip("bertopic")
    from bertopic.vectorizers import OnlineCountVectorizer

    model = topic_model(clusterer, vectorizer_model=OnlineCountVectorizer())
    documents = np.array(documents_of(y))
    for batch in np.array_split(np.arange(300), 3):
        model.partial_fit([*documents[batch]], embeddings=X[batch])
        assert len({*zip(y[batch], model.topics_)}) == 3

"""The number of clusters that rows have."""

import numpy as np
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rffpk import (
    DiffusionPowerKMeans,
    FuzzyCMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    select_n_clusters,
)
from rffpk.model_files import load

X, Y = make_blobs(400, centers=5, cluster_std=0.4, random_state=3)
CLASSES = [PowerKMeans, RFFKernelPowerKMeans, DiffusionPowerKMeans]


@pytest.mark.promise(
    "Memberships and trees",
    '`n_clusters="auto"` gives the number of `select_n_clusters`, depends on the seed alone, '
    "and is 1 for rows of one Gaussian and for uniform rows.",
)
@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore:The graph of neighbours has")
@pytest.mark.parametrize("cls", CLASSES)
def test_five_blobs_are_five_clusters(cls, tmp_path):
    model = cls("auto", random_state=0).fit(X)
    assert model.n_clusters == "auto" and model.n_clusters_ == len(model.cluster_centers_) == 5
    assert adjusted_rand_score(Y, model.labels_) == 1.0
    selection = model.selection_
    assert selection.n_clusters == selection.numbers[0] == 5
    assert adjusted_rand_score(Y[selection.rows], selection.labels[0]) > 0.98
    assert selection.labels.shape == (len(selection.numbers), len(selection.rows))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.n_clusters_ == 5
    assert_array_equal(again.selection_.labels, selection.labels)
    source = cls("auto", random_state=0).fit(lambda: iter([X[:150], X[150:]]))
    assert source.n_clusters_ == 5
    assert cls(3, random_state=0).fit(X).n_clusters_ == 3
    assert not hasattr(model.set_params(n_clusters=3).fit(X), "selection_")


def test_weights_sparse_rows_pipelines_and_batches():
    weight = (Y > 1) * 1.0
    assert PowerKMeans("auto", random_state=0).fit(X, sample_weight=weight).n_clusters_ == 3
    assert PowerKMeans("auto", random_state=0).fit(csr_array(X)).n_clusters_ == 5
    assert select_n_clusters(csr_array(X), random_state=0).n_clusters == 5
    pipeline = make_pipeline(StandardScaler(), PowerKMeans("auto", random_state=0)).fit(X)
    assert pipeline[-1].n_clusters_ == 5
    model = PowerKMeans("auto", random_state=0, sample=300)
    model.partial_fit(X[:200]).partial_fit(X[200:])
    assert model.n_clusters_ == 5 and len(model.cluster_centers_) == 5


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
def test_moons_are_two_clusters_and_one_gaussian_or_uniform_rows_are_one():
    moons, _ = make_moons(500, noise=0.05, random_state=0)
    assert select_n_clusters(moons, random_state=0).n_clusters == 2
    for d in (2, 10, 50):
        random = np.random.RandomState(100 + d)
        for rows in (random.rand(400, d), random.randn(400, d) @ random.randn(d, d)):
            found = select_n_clusters(rows, random_state=0)
            assert found.n_clusters == 1 and (found.labels[0] == 0).all()


def test_equal_and_few_rows():
    assert select_n_clusters(np.ones((9, 2))).n_clusters == 1
    for n in range(1, 8):
        assert 1 <= select_n_clusters(X[:n], random_state=0).n_clusters <= n


@pytest.mark.promise(like="test_five_blobs_are_five_clusters")
def test_the_result_depends_on_the_seed_alone():
    first, second = (
        select_n_clusters(X, PowerKMeans(n_jobs=jobs), random_state=1) for jobs in (1, 2)
    )
    for name in ("numbers", "scores", "labels", "rows"):
        assert_array_equal(getattr(first, name), getattr(second, name))


def test_refusals():
    with pytest.raises(TypeError, match="estimator == FuzzyCMeans"):
        select_n_clusters(X, FuzzyCMeans())
    with pytest.raises(ValueError, match="n_clusters == 'auto' does not go with given"):
        PowerKMeans("auto", init=X[:3]).fit(X)
    for model in (FuzzyCMeans("auto"), ip_rff_mkpkm("auto")):
        with pytest.raises(TypeError, match="n_clusters must be an instance of int"):
            model.fit(X)

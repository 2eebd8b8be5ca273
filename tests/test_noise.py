"""The parameter `noise`: which rows are left out, and what a fitted model says of them."""

import pickle

import numpy as np
import pytest
from conventions import ip_rff_mkpkm
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

import rffpk
from rffpk import (
    DiffusionPowerKMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
)

FEW = {"n_frequencies": 64, "n_init": 1, "swaps": 0}
CLASSES = [
    (PowerKMeans, {}), (DiffusionPowerKMeans, {}), (RFFKernelPowerKMeans, FEW),
    (RFFMultiKernelPowerKMeans, FEW),
]  # fmt: skip


def noisy_rows(n=600, d=5, seed=0):
    """Four clusters and a tenth of uniform noise; its label is -1."""
    random = np.random.default_rng(seed)
    centers = 12 * random.standard_normal((4, d))
    X, y = make_blobs(n, centers=centers, random_state=seed)
    noise = random.uniform(X.min(axis=0), X.max(axis=0), (n // 10, d))
    order = random.permutation(len(X) + len(noise))
    return np.vstack([X, noise])[order], np.r_[y, np.full(len(noise), -1)][order]


X, Y = noisy_rows()


@pytest.mark.promise(
    "Noise",
    "With `noise`, labels, memberships, scores and predictions agree, a given share is kept "
    "exactly, and no centroid lies in noise.",
)
@pytest.mark.parametrize("cls, parameters", CLASSES)
@pytest.mark.parametrize("noise", ["auto", 0.1])
def test_labels_memberships_and_scores_agree(cls, parameters, noise):
    model = cls(4, noise=noise, store_memberships=True, random_state=0, **parameters).fit(X)
    found = model.labels_ == -1
    assert adjusted_rand_score(Y, model.labels_) > 0.93
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.outlier_scores_ > 0.5, found)
    assert model.outlier_scores_.min() >= 0 and model.outlier_scores_.max() <= 1
    for u in (model.memberships_, model.predict_proba(X)):
        np.testing.assert_allclose(u.sum(axis=1), ~found, atol=1e-6)
    if noise == 0.1:
        assert found.sum() == round(0.1 * len(X))
    far = np.full((1, X.shape[1]), 1e4)
    assert model.predict(far) == -1 and not model.predict_proba(far).any()


@pytest.mark.parametrize("d", [2, 50, 300])
def test_without_noise_hardly_a_row_is_flagged(d):
    for k, seed in ((1, 0), (5, 1)):
        rows, _ = make_blobs(1500, d, centers=k, random_state=seed)
        labels = PowerKMeans(k, noise="auto", random_state=0).fit(rows).labels_
        assert (labels == -1).mean() <= 0.01
    moons, _ = make_moons(1000, noise=0.06, random_state=0)
    assert (PowerKMeans(2, noise="auto", random_state=0).fit(moons).labels_ >= 0).all()


def test_a_sparse_cluster_is_no_noise():
    rows, _ = make_blobs(
        [900, 200], centers=[[0, 0], [9, 9]], cluster_std=[0.2, 1.5], random_state=0
    )
    assert (PowerKMeans(2, noise="auto", random_state=0).fit(rows).labels_ >= 0).all()


@pytest.mark.promise(like="test_labels_memberships_and_scores_agree")
def test_no_centroid_of_many_lies_in_noise():
    random = np.random.default_rng(0)
    centers = random.standard_normal((100, 64))
    y = random.choice(100, 4000, p=random.dirichlet(np.full(100, 5.0)))
    rows = centers[y] + 0.5 * random.standard_normal((4000, 64))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    rows[:400] = random.standard_normal((400, 64))
    rows[:400] /= np.linalg.norm(rows[:400], axis=1, keepdims=True)
    y[:400] = -1
    model = PowerKMeans(100, noise="auto", random_state=0).fit(rows)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert (model.labels_[400:] == -1).mean() < 0.02
    lengths = np.linalg.norm(model.cluster_centers_, axis=1)
    assert (lengths > 0.7).all()  # the mean of rows of noise is short


@pytest.mark.promise(like="test_labels_memberships_and_scores_agree")
def test_a_share_is_one_of_the_weight():
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    model = PowerKMeans(4, noise=0.2, random_state=0).fit(X, sample_weight=weight)
    trimmed = weight[model.labels_ == -1].sum()
    assert abs(trimmed - 0.2 * weight.sum()) <= weight.max() / 2
    same = PowerKMeans(4, noise=0.2, random_state=0).fit(
        X[weight > 0], sample_weight=weight[weight > 0]
    )
    assert_array_equal(same.labels_ == -1, model.labels_[weight > 0] == -1)


def test_equal_rows_keep_the_share():
    rows = np.repeat(np.arange(5.0)[:, None], 20, axis=0)
    model = PowerKMeans(2, noise=0.25, random_state=0).fit(rows)
    assert (model.labels_ == -1).sum() == 25
    assert (PowerKMeans(1, noise="auto").fit(np.ones((30, 2))).labels_ == 0).all()


def test_sources_sparse_rows_files_and_batches(tmp_path):
    model = PowerKMeans(4, noise="auto", random_state=0).fit(X)
    labels: list = []
    source = clone(model).fit(lambda: (X[i : i + 100] for i in range(0, len(X), 100)),
                              labels_to=labels.append)  # fmt: skip
    assert_array_equal(np.concatenate(labels), model.labels_)
    assert_array_equal(source.outlier_scores_, model.outlier_scores_)
    assert_array_equal(clone(model).fit(csr_array(X)).labels_ == -1, model.labels_ == -1)
    model.save(tmp_path / "model.safetensors")
    for other in (rffpk.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict(X), model.labels_)
    before, centers = model._outliers.threshold, model.cluster_centers_
    model.partial_fit(X[Y == -1])
    assert model._outliers.threshold == before and not hasattr(model, "outlier_scores_")
    assert np.abs(model.cluster_centers_ - centers).max() < 1
    assert "_outliers" not in vars(model.set_params(noise=None).fit(X))


def test_views_are_scaled_before_distances_are_taken():
    views = [X, 1e6 * np.random.default_rng(0).standard_normal((len(X), 1))]
    model = ip_rff_mkpkm(4, noise=0.1, random_state=0, **FEW).fit(views)
    assert (Y[model.labels_ == -1] == -1).mean() > 0.6
    assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.parametrize("cls, parameters", CLASSES)
@pytest.mark.parametrize("noise, message", [
    (0.0, "noise == 0.0, must be > 0"), (1.0, "noise == 1.0, must be < 1"),
    ("most", "noise == 'most', must be a number or 'auto' or None"),
])  # fmt: skip
def test_other_values_are_refused(cls, parameters, noise, message):
    with pytest.raises((ValueError, TypeError), match=message):
        cls(4, noise=noise, **parameters).fit(X)

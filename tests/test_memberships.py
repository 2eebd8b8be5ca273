"""Memberships that a fit stores are those that `predict_proba` returns."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

import rffpk

X = make_blobs(150, 4, centers=4, cluster_std=3.0, random_state=0)[0]
CLASSES = [
    rffpk.PowerKMeans, rffpk.FuzzyCMeans, rffpk.RFFKernelPowerKMeans, rffpk.DiffusionPowerKMeans,
    rffpk.RFFMultiKernelPowerKMeans, rffpk.KernelKMeans, rffpk.KernelPowerKMeans,
    rffpk.MultiKernelPowerKMeans, rffpk.RMKKM, rffpk.NystroemKernelKMeans, rffpk.AverageMKKM,
    rffpk.MKKM, rffpk.MKKMMR, rffpk.LKAM, rffpk.ONKC, rffpk.MVCLFA, rffpk.CoregSC, rffpk.LMKKM,
    rffpk.SimpleMKKM, rffpk.SMKC, rffpk.FAMKKM,
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cls", CLASSES)
def test_stored_memberships_are_those_predicted(cls, dtype):
    rows = X.astype(dtype)
    model = cls(3, random_state=0, store_memberships=True).fit(rows)
    assert model.memberships_.shape == (150, 3)
    expected = model.predict_proba(rows)
    assert model.memberships_.dtype == expected.dtype
    assert_allclose(model.memberships_, expected, atol=1e-6 if dtype == np.float32 else 1e-12)
    model.set_params(store_memberships=False).fit(rows)
    assert not hasattr(model, "memberships_")
    with pytest.raises(TypeError, match="store_memberships == 'yes', must be True or False"):
        model.set_params(store_memberships="yes").fit(rows)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cls", [rffpk.KernelKMeans, rffpk.KernelPowerKMeans])
def test_precomputed_kernels_have_stored_memberships(cls, weighted):
    weight = np.arange(150) % 3 + 1.0 if weighted else None
    soft = {} if cls is rffpk.KernelKMeans else {"s_final": -3.0}
    common = {"n_clusters": 3, "store_memberships": True, "random_state": 0, **soft}
    model = cls(gamma=0.02, **common).fit(X, sample_weight=weight)
    given = cls(kernel="precomputed", **common).fit(rbf_kernel(X, gamma=0.02), sample_weight=weight)
    assert_allclose(given.memberships_, model.memberships_, atol=1e-8)
    assert_array_equal(given.memberships_.argmax(axis=1), given.labels_)


def test_several_precomputed_kernels_have_stored_memberships():
    kernels = [rbf_kernel(X, gamma=gamma) for gamma in (0.01, 0.1)]
    common = {"store_memberships": True, "s_final": -3.0, "random_state": 0}
    pairs = [("rbf", 0.01), ("rbf", 0.1)]
    model = rffpk.MultiKernelPowerKMeans(3, kernels=pairs, **common).fit(X)
    given = rffpk.MultiKernelPowerKMeans(3, kernels="precomputed", **common).fit(kernels)
    assert_allclose(given.memberships_, model.memberships_, atol=1e-8)

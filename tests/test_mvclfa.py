"""MVC-LFA beside what fusions have in common: its limits."""

import numpy as np
import pytest
from fusion_cases import prepared, projector, three_views
from numpy.testing import assert_allclose
from oracles import procrustes

from rffpk import MVCLFA, AverageMKKM


@pytest.fixture(scope="module")
def kernels():
    return prepared(three_views(120)[0])


def fit(Ks, **parameters):
    return MVCLFA(4, kernels="precomputed", random_state=0, **parameters).fit(list(Ks))


def test_a_large_weight_gives_the_clustering_of_the_mean_kernel(kernels):
    mean = AverageMKKM(4, kernels="precomputed", random_state=0).fit(kernels)
    model = fit(kernels, mean_weight=1e9)
    assert_allclose(model.embedding_, mean.embedding_, atol=1e-6)


def test_without_the_mean_kernel_it_fuses_the_eigenvectors_of_each_kernel(kernels):
    model = fit(kernels, mean_weight=0, tol=1e-14, max_iter=1000)
    H = [np.linalg.eigh(K)[1][:, -4:] for K in kernels]
    F, beta = model.embedding_, model.kernel_weights_
    agreement = np.array([np.linalg.svd(h.T @ F, compute_uv=False).sum() for h in H])
    assert_allclose(beta, agreement / np.linalg.norm(agreement), atol=1e-6)
    assert_allclose(model.objective_, beta @ agreement, rtol=1e-8)
    turned = sum(b * h @ procrustes(h.T @ F) for b, h in zip(beta, H))
    assert_allclose(F, procrustes(turned), atol=1e-5)


def test_equal_kernels_are_one(kernels):
    alone, thrice = fit(kernels[:1]), fit([kernels[0]] * 3)
    assert_allclose(thrice.kernel_weights_, 3**-0.5)
    assert_allclose(projector(thrice.embedding_), projector(alone.embedding_), atol=1e-9)

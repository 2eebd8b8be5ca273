"""MVC-LFA beside what fusions have in common: its limits."""

import pytest
from fusion_cases import prepared, projector, three_views
from numpy.testing import assert_allclose

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


def test_equal_kernels_are_one(kernels):
    alone, thrice = fit(kernels[:1]), fit([kernels[0]] * 3)
    assert_allclose(thrice.kernel_weights_, 3**-0.5)
    assert_allclose(projector(thrice.embedding_), projector(alone.embedding_), atol=1e-9)

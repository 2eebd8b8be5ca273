"""Models on precomputed kernels keep none of the matrices that they were fitted to."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import rffpk
from rffpk import (
    FAMKKM,
    LKAM,
    LMKKM,
    MKKM,
    MKKMMR,
    MVCLFA,
    ONKC,
    RMKKM,
    SMKC,
    AverageMKKM,
    CoregSC,
    DiffusionMap,
    KernelKMeans,
    KernelPowerKMeans,
    MultiKernelPowerKMeans,
    NystroemKernelKMeans,
    PowerKMeans,
    RandomFourierFeatures,
    SimpleMKKM,
)

GIVEN = {"kernels": "precomputed", "random_state": 0}
ONE = {"kernel": "precomputed", "random_state": 0}
MODELS = [
    KernelKMeans(4, **ONE),
    KernelPowerKMeans(4, **ONE),
    KernelPowerKMeans(4, cache=False, **ONE),
    MultiKernelPowerKMeans(4, **GIVEN),
    RMKKM(4, **GIVEN),
    AverageMKKM(4, **GIVEN),
    MKKM(4, **GIVEN),
    MKKMMR(4, **GIVEN),
    LKAM(4, **GIVEN),
    ONKC(4, **GIVEN),
    MVCLFA(4, **GIVEN),
    CoregSC(4, **GIVEN),
    LMKKM(4, **GIVEN),
    SimpleMKKM(4, **GIVEN),
    AverageMKKM(4, n_landmarks=300, **GIVEN),
    MKKM(4, n_landmarks=300, **GIVEN),
    MKKMMR(4, n_landmarks=300, **GIVEN),
    LKAM(4, n_landmarks=300, **GIVEN),
    ONKC(4, n_landmarks=300, **GIVEN),
    MVCLFA(4, n_landmarks=300, **GIVEN),
    CoregSC(4, n_landmarks=300, **GIVEN),
    LMKKM(4, n_landmarks=300, **GIVEN),
    SimpleMKKM(4, n_landmarks=300, **GIVEN),
    SMKC(4, **GIVEN),
    FAMKKM(4, **GIVEN),
    FAMKKM(4, approximation=("nystroem", 60), **GIVEN),
]


@pytest.fixture(scope="module")
def kernels():
    X = np.random.default_rng(0).standard_normal((450, 5))
    return [rbf_kernel(X, X[:400], gamma=gamma) for gamma in (0.05, 0.2)]


@pytest.mark.promise("Files", "Models of precomputed kernels do not hold the training matrix.")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(str(model).split()))
def test_precomputed_kernels_are_not_kept(kernels, model):
    passed, new = [K[:400].copy() for K in kernels], [K[400:] for K in kernels]
    if "kernel" in model.get_params():
        model.fit(passed[0])
        new = new[0]
    else:
        model.fit(passed)
    for K, same in zip(passed, kernels):
        assert_array_equal(K, same[:400])
    pickled = pickle.dumps(model)
    assert len(pickled) < 400 * 400 * 8 / 8
    again = pickle.loads(pickled)
    assert_array_equal(again.predict(new), model.predict(new))
    if "kernels" in model.get_params() and not isinstance(model, (MultiKernelPowerKMeans, RMKKM)):
        assert_array_equal(again.transform(new), model.transform(new))


@pytest.mark.promise("Files", "Pickles and model files of other minor versions are refused.")
@pytest.mark.parametrize(
    "model", [PowerKMeans(2), KernelPowerKMeans(2), MKKM(2), NystroemKernelKMeans(2),
              RandomFourierFeatures(4), DiffusionMap()]
)  # fmt: skip
def test_pickles_of_other_versions_are_refused(model):
    X = np.random.RandomState(0).randn(30, 3)
    fitted = model.fit(X)
    state = fitted.__getstate__()
    assert state["_rffpk_version"] == rffpk.__version__
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "_rffpk_version")
    for written in ("7.3.1", "0.999.0"):
        with pytest.raises(ValueError, match=f"pickled by rffpk {written}, .* fit it"):
            clone(model).__setstate__({**state, "_rffpk_version": written})
    major, minor, _ = rffpk.__version__.split(".")
    same = clone(model)
    same.__setstate__({**state, "_rffpk_version": f"{major}.{minor}.99"})
    assert vars(same).keys() == vars(fitted).keys()

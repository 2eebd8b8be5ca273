"""Models on precomputed kernels keep none of the matrices that they were fitted to."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from refusals import FUSED, MAPS, ONE, PRECOMPUTED, WHOLE
from sklearn.metrics.pairwise import rbf_kernel

import rffpk

EXACT = [rffpk.KernelKMeans, rffpk.KernelPowerKMeans]
OPTIONS = [
    *((cls, {}) for cls in [*EXACT, *PRECOMPUTED]),
    (rffpk.KernelPowerKMeans, {"cache": False}),
    *((cls, {"n_landmarks": 300}) for cls in WHOLE),
    (rffpk.FAMKKM, {"approximation": ("nystroem", 60)}),
]
MODELS = [
    cls(4, **{"kernel" if cls in EXACT else "kernels": "precomputed"}, random_state=0, **options)
    for cls, options in OPTIONS
]


@pytest.fixture(scope="module")
def kernels():
    X = np.random.default_rng(0).standard_normal((450, 5))
    return [rbf_kernel(X, X[:400], gamma=gamma) for gamma in (0.05, 0.2)]


@pytest.mark.promise("Files", "Models of precomputed kernels do not hold the training matrix.")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: " ".join(str(model).split()))
def test_precomputed_kernels_are_not_kept(kernels, model):
    passed, new = [K[:400].copy() for K in kernels], [K[400:] for K in kernels]
    one = hasattr(model, "kernel")
    model.fit(passed[0] if one else passed)
    new = new[0] if one else new
    assert_array_equal(passed, [K[:400] for K in kernels])
    pickled = pickle.dumps(model)
    assert len(pickled) < 400 * 400 * 8 / 8
    again = pickle.loads(pickled)
    assert_array_equal(again.predict(new), model.predict(new))
    if type(model) in FUSED:
        assert_array_equal(again.transform(new), model.transform(new))


@pytest.mark.promise("Files", "Pickles and model files of other minor versions are refused.")
@pytest.mark.parametrize("cls", [*ONE, rffpk.MKKM, *MAPS])
def test_pickles_of_other_versions_are_refused(cls):
    fitted = cls().fit(np.random.RandomState(0).randn(30, 3))
    state = fitted.__getstate__()
    assert state["_rffpk_version"] == rffpk.__version__
    assert not hasattr(pickle.loads(pickle.dumps(fitted)), "_rffpk_version")
    for written in ("7.3.1", "0.999.0"):
        with pytest.raises(ValueError, match=f"pickled by rffpk {written}, .* fit it"):
            cls().__setstate__({**state, "_rffpk_version": written})
    major, minor, _ = rffpk.__version__.split(".")
    same = cls()
    same.__setstate__({**state, "_rffpk_version": f"{major}.{minor}.99"})
    assert vars(same).keys() == vars(fitted).keys()

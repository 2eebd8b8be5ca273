"""The costs of small calls, as counts.

Functions that a prediction of one row calls, modules that a class and a first fit load, and bytes
of pickles without their arrays."""

import pickle
import sys

import numpy as np
import pytest

import rffpk

X = np.random.default_rng(0).standard_normal((300, 8))


def calls(function):
    """Return the module of each function of Python that a call enters."""
    modules = []

    def note(frame, event, argument):
        if event == "call":
            modules.append(str(frame.f_globals.get("__name__")))

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return modules


@pytest.mark.parametrize(
    "name, most, inside",
    [
        ("PowerKMeans", 219, 83),
        ("FuzzyCMeans", 219, 83),
        ("RFFKernelPowerKMeans", 234, 93),
        ("DiffusionPowerKMeans", 387, 164),
        ("RFFMultiKernelPowerKMeans", 565, 253),
    ],
)
def test_a_prediction_of_one_row_enters_few_functions(name, most, inside):
    """No function validates arrays which need no conversion."""
    model = getattr(rffpk, name)(5, random_state=0).fit(X)
    model.predict(X[:1])
    found = calls(lambda: model.predict(X[:1]))
    assert len(found) <= most
    assert sum(name.partition(".")[0] == "rffpk" for name in found) <= inside
    assert "narwhals.dependencies" not in found and "sklearn.utils._array_api" not in found


def test_a_first_fit_loads_no_module_and_an_import_few(python):
    """Beside the modules of Python, and of the parts of scikit-learn that both need."""
    code = """
import sys
import sklearn.cluster, sklearn.pipeline
before = {*sys.modules}
from rffpk import PowerKMeans
imported = {*sys.modules}
PowerKMeans(2, random_state=0).fit([[0.0], [1.0], [5.0], [6.0]])
ours = [name for name in imported - before if name.split(".")[0] not in sys.stdlib_module_names]
print(len(ours), len({*sys.modules} - imported))
"""
    imported, later = map(int, python(code).split())
    assert imported <= 51 and later <= 2


@pytest.mark.parametrize(
    "name",
    [
        "PowerKMeans", "FuzzyCMeans", "RFFKernelPowerKMeans", "RFFMultiKernelPowerKMeans",
        "DiffusionPowerKMeans", "KernelPowerKMeans", "KernelKMeans", "MultiKernelPowerKMeans",
        "RMKKM",
    ],
)  # fmt: skip
def test_a_pickle_is_hardly_larger_than_the_arrays_in_it(name):
    """Without the records of passes, whose number depends on the rows."""
    model = getattr(rffpk, name)(5, random_state=0).fit(X)
    model.history_ = []
    beside = pickle.dumps(model, protocol=5, buffer_callback=lambda array: None)
    assert len(beside) <= 4000

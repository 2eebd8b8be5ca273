"""Arrays of the caller, which may change after a fit: no fitted model keeps one of them."""

import gc
import types
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import has_fit_parameter

import rffpk

N, NEW = 60, 7
random = np.random.default_rng(0)
ROWS = np.abs(random.standard_normal((N + NEW, 3))) + 3 * (np.arange(N + NEW) % 3)[:, None]
WEIGHTS = 1.0 + np.arange(N) % 2
FITTED = [cls for name in rffpk.__all__ if hasattr(cls := getattr(rffpk, name), "fit")]
SEVERAL = [cls for cls in FITTED if hasattr(cls, "kernels")]
ONE = [cls for cls in FITTED if cls not in SEVERAL]
EXACT = [rffpk.KernelKMeans, rffpk.KernelPowerKMeans]
DIFFUSION, RANDOM_FEATURES = rffpk.DiffusionPowerKMeans, rffpk.RFFMultiKernelPowerKMeans


def clusters(cls, **parameters):
    is_map = not hasattr(cls, "predict")
    return cls(2 if is_map else 3, random_state=0, **parameters)


def rows(index, dtype=np.float64):
    return ROWS[index].astype(dtype)


def single(index):
    return rows(index, np.float32)


def views(index):
    return [rows(index), rows(index)[:, ::-1].copy()]


def entries(index):
    return sparse.csr_array(rows(index))


def kernel(index):
    return rbf_kernel(ROWS[index], ROWS[:N])


def kernels(index):
    return [kernel(index), kernel(index) ** 2]


def graph(index):
    return sparse.csr_array(kernel(index))


def kept(model):
    """Return the arrays that a model refers to, except parameters."""
    parameters, seen, arrays_kept = model.get_params(deep=False), set(), []
    stack = [value for name, value in vars(model).items() if name not in parameters]
    while stack:
        thing = stack.pop()
        if id(thing) in seen or isinstance(thing, (type, types.ModuleType)):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            arrays_kept.append(thing)
        elif isinstance(thing, types.FunctionType):  # not the module that it belongs to
            stack += [cell.cell_contents for cell in thing.__closure__ or ()]
        else:
            stack += gc.get_referents(thing)
    return arrays_kept


def arrays(X):
    if isinstance(X, list):
        return [array for x in X for array in arrays(x)]
    return [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]


def answers(model, X):
    results = {}
    for name in ("predict", "transform", "predict_proba"):
        try:
            results[name] = np.asarray(getattr(model, name)(X))
        except (AttributeError, ValueError):  # the class or precomputed kernels lack the method
            continue
    return results


PRECOMPUTED = [
    *(clusters(cls, kernel="precomputed") for cls in EXACT),
    *(clusters(cls, kernels="precomputed") for cls in SEVERAL if cls is not RANDOM_FEATURES),
]
CASES = [
    *((clusters(cls), form) for cls in ONE for form in (rows, single)),
    *((clusters(cls), views) for cls in SEVERAL),
    *((model, kernels if hasattr(model, "kernels") else kernel) for model in PRECOMPUTED),
    *((clusters(cls), entries) for cls in (rffpk.KernelPowerKMeans, DIFFUSION)),
    *((clusters(DIFFUSION, metric="precomputed"), form) for form in (kernel, graph)),
    (clusters(rffpk.PowerKMeans, init=ROWS[:3].copy()), rows),
    (clusters(rffpk.FuzzyCMeans, init=ROWS[:3].copy()), rows),
    (clusters(rffpk.RFFKernelPowerKMeans, init=ROWS[:3].copy()), rows),
    (clusters(DIFFUSION, init=ROWS[:3].copy()), rows),
    (clusters(rffpk.KernelPowerKMeans, init=np.arange(N) % 3), rows),
    (clusters(rffpk.KernelPowerKMeans, init=np.eye(3, N)), rows),
    (clusters(rffpk.PowerKMeans, noise=0.05), rows),
    (clusters(rffpk.PowerKMeans, metric="cosine"), rows),
    (clusters(DIFFUSION, noise=0.05), rows),
    (clusters(DIFFUSION, whitening=0.5), rows),
    (clusters(rffpk.MKKM, kernels=["rbf", "cosine"]), rows),
    (clusters(rffpk.MKKM, kernels=["rbf", "cosine"], n_landmarks=20), rows),
    (clusters(rffpk.FAMKKM, kernels=["rbf", "cosine"]), rows),
    (clusters(rffpk.FAMKKM, approximation="nystroem"), rows),
    (clusters(rffpk.FAMKKM, approximation="rff"), rows),
    (clusters(rffpk.AverageMKKM, kernels=["rbf"], kernel_weights=np.ones(1)), rows),
]


@pytest.mark.promise("Input", "A fitted model keeps no array of the caller, who may change them.")
@pytest.mark.parametrize("model, form", CASES)
def test_a_model_keeps_no_rows(model, form):
    """Changes of all arrays that a fit is given do not change the model."""
    model, X, new = clone(model), form(np.arange(N)), form(np.arange(N, N + NEW))
    options = {"sample_weight": WEIGHTS.copy()} if has_fit_parameter(model, "sample_weight") else {}
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model.fit(X, **options)
    parameters = model.get_params(deep=False).values()
    own = [*arrays(X), *options.values()]
    own += [value for value in parameters if isinstance(value, np.ndarray)]
    before = answers(model, new)
    assert before
    for array in kept(model):
        assert not any(np.shares_memory(array, one) for one in own)
    for array in own:
        array[...] = array[::-1].copy()
        array += array.dtype.type(1)
    after = answers(model, new)
    for name, expected in before.items():
        assert_array_equal(after[name], expected)


def test_what_a_function_does_with_labels_does_not_change_the_model():
    model, blocks = rffpk.PowerKMeans(3, random_state=0), []

    def take(labels):
        blocks.append(labels.copy())
        labels.fill(7)

    expected = clone(model).fit(rows(slice(N))).labels_
    assert_array_equal(model.fit(rows(slice(N)), labels_to=take).labels_, expected)
    assert_array_equal(np.concatenate(blocks), expected)

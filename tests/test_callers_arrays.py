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


def check(model, form):
    """Check that changes of all arrays that a fit is given do not change the model."""
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


@pytest.mark.promise("Input", "A fitted model keeps no array of the caller, who may change them.")
@pytest.mark.parametrize("model", [clusters(cls) for cls in ONE])
def test_a_model_keeps_no_rows(model):
    check(model, rows)
    check(model, single)


@pytest.mark.promise(like="test_a_model_keeps_no_rows")
@pytest.mark.parametrize("model", [clusters(cls) for cls in SEVERAL])
def test_a_model_keeps_no_views(model):
    check(model, views)


@pytest.mark.promise(like="test_a_model_keeps_no_rows")
@pytest.mark.parametrize(
    "model",
    [
        *(clusters(cls, kernel="precomputed") for cls in EXACT),
        *(clusters(cls, kernels="precomputed") for cls in SEVERAL if cls is not RANDOM_FEATURES),
    ],
)
def test_a_model_keeps_no_kernel_matrices(model):
    check(model, kernels if hasattr(model, "kernels") else kernel)


@pytest.mark.parametrize("model", [clusters(cls) for cls in (rffpk.KernelPowerKMeans, DIFFUSION)])
def test_a_model_keeps_no_sparse_rows(model):
    check(model, entries)


@pytest.mark.parametrize("form", [kernel, graph])
def test_a_model_keeps_no_affinities(form):
    check(clusters(DIFFUSION, metric="precomputed"), form)


@pytest.mark.parametrize(
    "model",
    [
        clusters(rffpk.PowerKMeans, init=ROWS[:3].copy()),
        clusters(rffpk.FuzzyCMeans, init=ROWS[:3].copy()),
        clusters(rffpk.RFFKernelPowerKMeans, init=ROWS[:3].copy()),
        clusters(DIFFUSION, init=ROWS[:3].copy()),
        clusters(rffpk.KernelPowerKMeans, init=np.arange(N) % 3),
        clusters(rffpk.KernelPowerKMeans, init=np.eye(3, N)),
    ],
)
def test_a_model_keeps_no_initial_centers(model):
    check(model, rows)


@pytest.mark.parametrize(
    "model",
    [
        clusters(rffpk.PowerKMeans, noise=0.05),
        clusters(rffpk.PowerKMeans, metric="cosine"),
        clusters(DIFFUSION, noise=0.05),
        clusters(DIFFUSION, whitening=0.5),
        clusters(rffpk.MKKM, kernels=["rbf", "cosine"]),
        clusters(rffpk.MKKM, kernels=["rbf", "cosine"], n_landmarks=20),
        clusters(rffpk.FAMKKM, kernels=["rbf", "cosine"]),
        clusters(rffpk.FAMKKM, approximation="nystroem"),
        clusters(rffpk.FAMKKM, approximation="rff"),
        clusters(rffpk.AverageMKKM, kernels=["rbf"], kernel_weights=np.ones(1)),
    ],
)
def test_a_model_keeps_no_rows_whatever_its_options(model):
    check(model, rows)


def test_what_a_function_does_with_labels_does_not_change_the_model():
    model, blocks = rffpk.PowerKMeans(3, random_state=0), []

    def take(labels):
        blocks.append(labels.copy())
        labels.fill(7)

    expected = clone(model).fit(rows(slice(N))).labels_
    assert_array_equal(model.fit(rows(slice(N)), labels_to=take).labels_, expected)
    assert_array_equal(np.concatenate(blocks), expected)

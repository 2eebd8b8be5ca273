"""Rows in another form than an array: fits and fitted models give equal results."""

import contextlib
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist

from rffpk import (
    Annealing,
    DiffusionPowerKMeans,
    FuzzyCMeans,
    PowerKMeans,
    RFFKernelPowerKMeans,
    RFFMultiKernelPowerKMeans,
)
from rffpk.sources import from_array

N, D, K = 7000, 40, 4
FAST = {"annealing": Annealing(swaps=0), "n_init": 1}


@pytest.fixture(scope="module")
def rows():
    """Return rows that float16 holds: most entries of a cluster are in columns of its own."""
    random = np.random.default_rng(0)
    own = np.arange(D) // (D // K) == np.arange(N)[:, None] % K
    X = (1 + random.random((N, D))) * (random.random((N, D)) < np.where(own, 0.7, 0.05))
    return random.permutation(X).astype(np.float16).astype(np.float64)


def blocks(count, X):
    """Return a source of blocks of equal lengths."""
    return from_array(X, block_rows=-(-len(X) // count))


def divided(X, lengths):
    """Divide X into partitions of these lengths."""
    array = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    blocks = np.split(X, np.cumsum(lengths)[:-1])
    return array.concatenate(
        [array.from_delayed(dask.delayed(x), x.shape, dtype=X.dtype) for x in blocks]
    )


def unknown(X):
    """Build a collection whose chunks have lengths that Dask does not know."""
    array = pytest.importorskip("dask.array")
    parts = [
        array.from_delayed(part, (np.nan, X.shape[1]), dtype=X.dtype)
        for part in X.to_delayed().ravel()
    ]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def partitions(X):
    """Return a collection of Dask with empty and uneven partitions."""
    return divided(X, (N // 3, 0, N // 2 - N // 3, 0, 1, N - N // 2 - 1))


def partitions_of_unknown_lengths(X):
    return unknown(partitions(X))


def half(X):
    return X.astype(np.float16)


@contextlib.contextmanager
def workers(n, threads=1, processes=False):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=n, threads_per_worker=threads, processes=processes, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with workers(2) as client:
        yield client


BITS = {"rtol": 0, "atol": 0}
FORMS = {
    "1 block": (partial(blocks, 1), np.float64, BITS),
    "3 blocks": (partial(blocks, 3), np.float32, BITS),
    "7 blocks": (partial(blocks, 7), np.float64, BITS),
    "Dask": (partitions, np.float64, {"rtol": 1e-9, "atol": 1e-9}),
    "Dask of unknown lengths": (
        partitions_of_unknown_lengths,
        np.float32,
        {"rtol": 1e-4, "atol": 1e-4},
    ),
    "CSR": (sparse.csr_array, np.float64, {"rtol": 1e-7, "atol": 1e-6}),
    "CSR of float32": (sparse.csr_array, np.float32, {"rtol": 1e-2, "atol": 2e-2}),
    "float16": (half, np.float32, BITS),
}
DASK = (partitions, partitions_of_unknown_lengths)
READ_IN_PLACE = (PowerKMeans, FuzzyCMeans, RFFKernelPowerKMeans)  # of float16
MODELS = [
    partial(PowerKMeans),
    partial(PowerKMeans, sample=None, max_iter=30, **FAST),
    partial(PowerKMeans, annealing=Annealing(end=-3.0), sample=500),
    partial(PowerKMeans, metric="cosine", **FAST),
    partial(PowerKMeans, whitening=0.5, **FAST),
    partial(FuzzyCMeans, m=1.2),
    partial(RFFKernelPowerKMeans, n_frequencies=16, sample=1000),
    partial(RFFKernelPowerKMeans, n_frequencies=16, gamma="median", cache=False, sample=500),
    partial(DiffusionPowerKMeans, n_landmarks=40),
    partial(RFFMultiKernelPowerKMeans, kernels=[("rbf", 0.005)], n_frequencies=16, sample=500),
    partial(
        RFFMultiKernelPowerKMeans, kernels="linear", views=[slice(15), slice(15, 40)], sample=500
    ),
    partial(PowerKMeans, init="random", **FAST),
]


@pytest.fixture(params=FORMS)
def form(request, tuning):
    """Return the form, the type of the array, and how near the results must be."""
    # more rows than the first sample has, in blocks of one slot
    tuning(storage__block_bytes=1, sampling__rows=2000)
    if request.param.startswith("Dask"):
        request.getfixturevalue("client")
    return FORMS[request.param]


@pytest.mark.promise(
    "Memory",
    "A source gives the same bits however it is cut into blocks, and with fewer than 100 clusters "
    "(fewer than 20 with `sample=None`) those of an array, but for the "
    "[exceptions below](#sources-and-arrays). It is read once for each pass over all rows and "
    "twice besides. Where centroids are swapped on drawn rows it is read twice more, to draw these "
    "and to fetch them.",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("new", MODELS)
def test_fits_and_fitted_models_are_those_of_an_array(rows, form, new, weighted):
    """Clusters of sparse rows may have other numbers, and starts that end at other exponents."""
    make, dtype, near = form
    if make is half and new.func not in READ_IN_PLACE:
        dtype = np.float64
    exact = make is half  # sums of other rows are rounded
    X, labels = (rows if exact else np.pi * rows).astype(dtype), []
    weight = np.random.default_rng(0).uniform(0.5, 2, N) if weighted else None
    array = new(K, random_state=0, n_jobs=1).fit(X, sample_weight=weight)
    model = new(K, random_state=0, n_jobs=2)
    model.fit(make(X), sample_weight=weight, labels_to=labels.append)
    number = np.arange(K)
    if make is sparse.csr_array:
        number = cdist(array.cluster_centers_, model.cluster_centers_).argmin(axis=1)
    assert model.cluster_centers_.dtype == dtype
    assert_allclose(model.cluster_centers_[number], array.cluster_centers_, **near)
    assert_allclose(model.inertia_, array.inertia_, **near)
    if make is not sparse.csr_array:
        assert_allclose(model.objective_, array.objective_, **near)
    same = np.concatenate(labels) == number[array.labels_]
    assert same.mean() > 0.999 if make is sparse.csr_array else same.all()
    for form_of_new in (make, np.asarray):
        new_rows = form_of_new(X[:3000]) if make not in DASK else form_of_new(X)
        n = len(X) if make in DASK else 3000
        results = {
            method: np.asarray(getattr(model, method)(new_rows))
            for method in ("predict", "predict_proba", "transform")
        }
        same = results["predict"] == number[array.predict(X[:n])]
        assert same.mean() > 0.999 if make is sparse.csr_array else same.all()
        assert_allclose(results["transform"][:, number], array.transform(X[:n]), **near)
        if make is not sparse.csr_array:
            assert_allclose(results["predict_proba"], array.predict_proba(X[:n]), **near)
    assert_allclose(
        model.score(make(X)),
        array.score(X),
        rtol=max(near["rtol"], 1e-6 if dtype == np.float32 else 1e-12),
    )

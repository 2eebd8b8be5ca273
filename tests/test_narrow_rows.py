"""Rows of float16, bfloat16, int8 and uint8: read in place, with the results of float32."""

import math
import tracemalloc
from functools import partial

import numpy as np
import pytest
from contracts.core import Narrow
from sklearn.base import clone

import rffpk
from rffpk import Annealing, FuzzyCMeans, PowerKMeans, RFFKernelPowerKMeans, _core, _reference
from rffpk.sources import from_array, from_npy

TYPES = [np.float16, np.int8, np.uint8, "bfloat16"]
FAST = {"random_state": 0, "n_init": 1, "annealing": Annealing(swaps=0)}


def rows_of(dtype, shape, seed=0):
    """Return rows of a type, and the same numbers as float32."""
    rng = np.random.default_rng(seed)
    x = 12 * rng.integers(0, 9, (shape[0], 1)) + rng.normal(0, 4, shape)
    if dtype == "bfloat16":
        stored = Narrow((x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        return stored, stored.copy()
    x = x.clip(0, 127).astype(dtype)
    return Narrow(x), x.astype(np.float32)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (70, 3), (257, 16), (130, 17), (1100, 100)])
def test_a_pass_over_small_numbers_has_the_bits_of_one_over_float32(isa, dtype, shape):
    small, x = rows_of(dtype, shape, shape[1])
    rng = np.random.default_rng(1)
    shift = rng.normal(40, 9, shape[1]).astype(np.float32)
    theta = rng.normal(0, 30, (5, shape[1])).astype(np.float32)
    omega = rng.normal(0, 0.02, (shape[1], 3)).astype(np.float32)
    coordinates = rng.normal(0, 1, (5, 6)).astype(np.float32)
    columns, fourier = (None, shift, theta), (omega, np.zeros(6, np.float32), coordinates)
    for each, origin, centroids in (fourier, columns):
        rest = [each], [origin], centroids, np.ones(1), None, 0, -2.0
        found, wide = _core.fused_pass([small], *rest, 2), _core.fused_pass([x], *rest, 1)
        assert all(np.array_equal(a, b) for a, b in zip(found, wide))
    twin = _reference.fused_pass([small], *rest)
    assert all(np.allclose(a, b, rtol=1e-3) for a, b in zip(found, twin))


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_every_finite_number_is_widened_exactly(isa, kind):
    bits = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 32)
    stored = bits.view(np.float16) if kind == "float16" else bits
    shift, features = np.zeros(32, np.float32), np.empty(bits.shape, np.float32)
    with np.errstate(all="ignore"):
        finite = np.isfinite(Narrow(stored).copy())
        x = Narrow(np.where(finite, stored, 0).astype(stored.dtype))
        given = [x], [None], [shift], shift[None], np.ones(1), None, 1, -1.0, 1
        _core.fused_pass(*given, features=features)
    assert np.array_equal(features, x.copy())


def as_given(small):
    """Return the numbers as a caller has them."""
    if small.stored.dtype != np.uint16:
        return small.stored
    return small.stored.view(pytest.importorskip("ml_dtypes").bfloat16)


@pytest.mark.promise(
    "Memory",
    "`PowerKMeans`, `FuzzyCMeans` and `RFFKernelPowerKMeans` read arrays of float16, "
    "bfloat16, int8 and uint8 in place, with the bits of a fit in float32.",
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, "bfloat16"])
@pytest.mark.parametrize("model", [
    PowerKMeans(4, metric="cosine", **FAST), FuzzyCMeans(4, random_state=0),
    RFFKernelPowerKMeans(4, n_frequencies=16, sample=1000, **FAST),
], ids=str)  # fmt: skip
def test_a_fit_has_the_bits_of_one_to_float32(model, dtype):
    small, x = rows_of(dtype, (24_000, 5))
    assert_same_fit(model, as_given(small), x)


def assert_same_fit(model, stored, x):
    first, second = clone(model).fit(stored), clone(model).set_params(n_jobs=1).fit(x)
    assert first.cluster_centers_.dtype == np.float32
    assert np.array_equal(first.cluster_centers_, second.cluster_centers_)
    assert np.array_equal(first.labels_, second.labels_)
    assert first.inertia_ == second.inertia_
    assert np.array_equal(first.transform(stored[:99]), second.transform(x[:99]))
    assert np.array_equal(second.predict(stored), first.labels_)
    assert np.array_equal(second.predict(x), first.labels_)


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_fit_of_many_clusters_has_the_bits_of_one_to_float32(
    monkeypatch, dtype, metric, bounded, tuning
):
    """Rows are compared with few of the centroids, or left out of passes by bounds."""
    tuning(hardpasses__near_work=math.inf if bounded else 1)
    if bounded:
        tuning(hardpasses__bounds_rows=1, hardpasses__bounds_cost=0.0)
    name = "fused_pass" if bounded else "near_pass"
    seen, visit = set(), getattr(_core, name)

    def watched(x, *given, **options):
        seen.add(type(x[0] if bounded else x))
        return visit(x, *given, **options)

    monkeypatch.setattr(_core, name, watched)
    small, x = rows_of(dtype, (5000, 16))
    model = PowerKMeans(100, metric=metric, sample=2500, tol=0, n_jobs=2, **FAST)
    assert_same_fit(model, as_given(small), x)
    assert seen == {type(small), np.ndarray}


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [np.float16, np.uint8])
@pytest.mark.parametrize("k, metric", [(4, "euclidean"), (100, "euclidean"), (100, "cosine")])
def test_sources_files_and_batches_of_small_numbers(tuning, dtype, k, metric, tmp_path):
    tuning(hardpasses__near_work=1)
    small, x = rows_of(dtype, (12_000, 4))
    path = tmp_path / "x.npy"
    np.save(path, small.stored)

    def centers(X):
        return PowerKMeans(k, metric=metric, sample=2000, **FAST).fit(X).cluster_centers_

    expected = centers(from_array(x))
    for source in (from_array(small.stored, block_rows=5000), from_npy(path)):
        assert np.array_equal(centers(source), expected)
    assert np.array_equal(centers(np.load(path, mmap_mode="r")), centers(x))
    batches = [PowerKMeans(k, metric=metric, sample=2000, **FAST) for _ in "ab"]
    for model, rows in zip(batches, (small.stored, x)):
        model.partial_fit(iter(np.split(rows[:6000], 6)))
    assert np.array_equal(batches[0].cluster_centers_, batches[1].cluster_centers_)


def test_other_layouts_and_classes():
    small, x = rows_of(np.float16, (300, 4))
    new = partial(PowerKMeans, 3, **FAST)
    turned = new().fit(np.asfortranarray(small.stored))
    assert np.array_equal(turned.cluster_centers_, new().fit(x).cluster_centers_)
    assert new().fit(x.astype(np.int64)).cluster_centers_.dtype == np.float64
    assert rffpk.KernelPowerKMeans(3, random_state=0).fit(small.stored).labels_.shape == (300,)
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    large = (rows_of("bfloat16", (500, 4))[1] * 1e30).astype(bfloat16)
    assert new().fit(large).cluster_centers_.dtype == np.float64


@pytest.mark.promise(
    "Memory",
    '`metric="cosine"` makes no copy of dense rows; of sparse rows it copies the values.',
)
@pytest.mark.few(1)
@pytest.mark.promise(like="test_a_fit_has_the_bits_of_one_to_float32")
@pytest.mark.parametrize(
    "dtype, metric", [(np.float32, "cosine"), (np.float16, "euclidean"), (np.int8, "cosine")]
)
def test_no_copy_of_small_numbers_or_of_unit_rows_is_made(dtype, metric):
    X = rows_of(np.uint8, (250_000, 64))[1].astype(dtype)  # 64 MB in float32
    model = PowerKMeans(3, metric=metric, sample=1000, **FAST)
    tracemalloc.start()
    model.fit(X).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6, peak

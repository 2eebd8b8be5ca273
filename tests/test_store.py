"""Stored features: the same results as computed ones, and the decision to store them."""

import numpy as np
import pytest
from internals import Fourier, config, make_rows, one_pass, shifted_features, store
from sklearn.datasets import make_blobs

from rffpk import RFFKernelPowerKMeans


def rows_of(n, shapes, dtype=np.float64, weight=None):
    random = np.random.default_rng(0)
    xs = [random.standard_normal((n, d)).astype(dtype) for d, _ in shapes]
    omegas = [random.standard_normal(shape).astype(dtype) for shape in shapes]
    return make_rows(xs, [Fourier(om) if om.size else None for om in omegas], weight, 2)


@pytest.mark.parametrize("shapes", [[(3, 8)], [(3, 8), (5, 0), (2, 4)]])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_over_stored_rows_returns_the_same_sums(shapes, weighted, backend):
    weight = np.random.default_rng(1).uniform(0, 2, 700) if weighted else None
    rows = rows_of(700, shapes, weight=weight)
    theta = shifted_features(rows)[:4]
    kept = store.stored(rows)
    assert all(each is None for each in kept.maps)
    expected, _ = one_pass(rows, theta, -2.0, backend=backend)
    found, _ = one_pass(kept, theta, -2.0, backend=backend)
    for name in ("N", "G", "Q", "soft", "hard"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)


def test_a_fit_with_stored_features_is_the_same_to_rounding(dtype):
    X, _ = make_blobs(1000, 20, centers=6, cluster_std=3.0, random_state=0)
    X = X.astype(dtype)
    kept, computed = (
        RFFKernelPowerKMeans(6, cache=cache, random_state=0).fit(X) for cache in (True, False)
    )
    assert kept.cache_ is True and computed.cache_ is False
    np.testing.assert_array_equal(kept.labels_, computed.labels_)
    np.testing.assert_allclose(kept.inertia_, computed.inertia_, rtol=1e-5)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(kept.cluster_centers_, computed.cluster_centers_, atol=tolerance)
    np.testing.assert_array_equal(kept.predict(X), kept.labels_)


@pytest.mark.parametrize(
    ("d", "D", "k", "worth"), [(784, 108, 10, True), (944, 201, 20, True), (5, 64, 10, False)]
)
def test_auto_stores_where_the_projection_dominates(d, D, k, worth):
    rows = rows_of(50, [(d, D)])
    assert (store.Storage("auto").all_rows(rows, k).maps == [None]) is worth


@pytest.mark.promise(
    "Memory",
    "Stored features take no more bytes than `cache` names. Its default is a quarter of what the "
    "machine, the container and `ulimit -v` leave, at least 16 MB; the page cache counts as "
    "free.",
)
def test_the_memory_limit_holds(monkeypatch):
    rows = rows_of(50, [(784, 108)])
    needed = 50 * 216 * 8
    assert store.Storage(needed).all_rows(rows, 10).maps == [None]
    assert store.Storage(needed - 1).all_rows(rows, 10) is rows
    monkeypatch.setattr(config, "fits_memory", lambda bytes, parts=1: bytes < needed)
    monkeypatch.setattr(config, "memory_share", lambda parts: needed - 1)
    with pytest.raises(MemoryError, match=f"takes {needed} bytes.* more than the {needed - 1} "):
        store.Storage(True).all_rows(rows, 10)
    monkeypatch.setattr(config, "fits_memory", lambda needed, parts=1: parts == 1)
    with pytest.raises(MemoryError, match="cache=True"):
        RFFKernelPowerKMeans(2, cache=True).fit(np.eye(5))


def test_a_sample_respects_the_limit_too(monkeypatch):
    sizes, stored = [], store.stored
    monkeypatch.setattr(store, "stored", lambda rows: sizes.append(rows.n) or stored(rows))
    X = np.random.default_rng(0).standard_normal((500, 4))
    for cache, expected in ((False, []), (10, []), ("auto", [100])):
        sizes.clear()
        model = RFFKernelPowerKMeans(3, sample=100, cache=cache, random_state=0)
        assert model.fit(X).cache_ is False
        assert sizes == expected


def test_features_that_do_not_fit_are_an_error_before_any_work(monkeypatch):
    monkeypatch.setattr(store, "stored", None)
    monkeypatch.setattr(config, "fits_memory", lambda needed, parts=1: parts == 1)
    X = np.random.default_rng(0).standard_normal((500, 4))
    model = RFFKernelPowerKMeans(3, sample=100, cache=True)
    with pytest.raises(MemoryError, match="cache=True"):
        model.fit(X)
    with pytest.raises(ValueError, match="init has shape"):
        RFFKernelPowerKMeans(3, sample=100, init=X[:3]).fit(X)


@pytest.mark.promise(like="test_the_memory_limit_holds")
def test_available_memory_follows_the_smallest_limit(tmp_path, monkeypatch):
    free = config.available_memory()
    assert 2**20 < free
    limit, used = tmp_path / "limit", tmp_path / "used"
    parts = tmp_path / "memory.stat"
    monkeypatch.setattr(config, "_CGROUPS", ((str(limit), str(used), str(parts)),))
    limit.write_text("1000000\n")
    used.write_text("400000\n")
    assert config.available_memory() == 600_000
    parts.write_text("cache 9\ninactive_file 30000\nactive_file 20000\n")  # pages of files
    assert config.available_memory() == 650_000
    parts.write_text("inactive_file 0\nactive_file 0\ntotal_inactive_file 3\ntotal_active_file 4\n")
    assert config.available_memory() == 600_007
    limit.write_text("max\n")
    assert config.available_memory() > 2**20


@pytest.mark.parametrize("cache", ["yes", "1G", -1, 2.5, None])
def test_other_values_of_cache_are_refused(cache):
    with pytest.raises(ValueError, match="cache == "):
        RFFKernelPowerKMeans(2, cache=cache).fit(np.eye(5))


def test_few_bytes_are_taken_without_a_look_at_the_memory(monkeypatch):
    monkeypatch.setattr(config, "available_memory", lambda: 2**26)
    assert config.fits_memory(2**26) and not config.fits_memory(2**26 + 1)
    assert not config.fits_memory(2**25, 4)
    monkeypatch.setattr(config, "available_memory", None)
    assert config.fits_memory(2**24, 4)

"""Stored features: the same results as computed ones, and the decision to store them."""

import numpy as np
import pytest
from contracts.plan import config
from scipy.sparse import csr_array
from sklearn.datasets import make_blobs

from rffpk import DiffusionPowerKMeans, RFFKernelPowerKMeans, RFFMultiKernelPowerKMeans


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
    X = np.random.default_rng(0).standard_normal((50, d))
    model = RFFKernelPowerKMeans(k, n_frequencies=D, max_iter=2, random_state=0)
    assert model.fit(X).cache_ is worth


@pytest.mark.promise(
    "Memory",
    "Stored features take no more bytes than `cache` names. Its default is a quarter of what the "
    "machine, the container and `ulimit -v` leave, at least 16 MB; the page cache counts as "
    "free.",
)
def test_the_memory_limit_holds(memory):
    X, needed = np.random.default_rng(0).standard_normal((50, 784)), 50 * 216 * 8
    options = {"n_frequencies": 108, "max_iter": 2, "random_state": 0}
    model = RFFKernelPowerKMeans(10, **options)
    views = RFFMultiKernelPowerKMeans(10, kernels=["linear", "rbf"], **options)
    for cache in (needed, needed - 1):
        assert model.set_params(cache=cache).fit(X).cache_ is (cache == needed)
        # columns take no bytes
        assert views.set_params(cache=cache).fit([X, X]).cache_ is (cache == needed)
    assert views.set_params(kernels="linear", cache=True).fit([X]).cache_ is False
    for left in (4 * needed, 4 * needed - 1):
        memory(left)
        assert model.set_params(cache="auto").fit(X).cache_ is (left == 4 * needed)
    message = f"cache=True takes {needed} bytes.* more than the {needed - 1} "
    with pytest.raises(MemoryError, match=message):
        model.set_params(cache=True).fit(X)


@pytest.mark.parametrize("cache", [True, False])
def test_directions_that_are_clustered_may_be_stored(cache):
    """The graph is not used, and passes scale rows to length one, or rows are scaled once."""
    X = np.random.default_rng(0).standard_normal((300, 20))
    X += 4 * np.eye(3, 20)[np.arange(300) % 3]
    model = DiffusionPowerKMeans(3, metric="cosine", cache=cache, random_state=0).fit(X)
    assert model.feature_map_.time_ == 0 and model.cache_ is cache
    np.testing.assert_array_equal(model.predict(7 * X), model.labels_)
    lengths = np.linalg.norm(model.feature_map_.transform(X), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-12)
    rows = csr_array(X)
    assert not np.shares_memory(model.feature_map_.transform(rows).indices, rows.indices)


def test_a_sample_respects_the_limit_too(memory):
    """Starts on stored features run in single precision, which the objectives tell."""
    X = np.random.default_rng(0).standard_normal((500, 4))

    def objectives(cache):
        model = RFFKernelPowerKMeans(3, sample=100, cache=cache, random_state=0).fit(X)
        assert model.cache_ is False
        return [record["objective"] for record in model.history_ if "s" in record]

    computed = objectives(False)
    assert objectives(10) == computed != objectives("auto")
    model = RFFKernelPowerKMeans(3, sample=100, cache=True)
    memory(10**6)
    with pytest.raises(MemoryError, match="cache=True"):
        model.fit(X)
    assert not hasattr(model, "n_iter_")


@pytest.mark.promise(like="test_the_memory_limit_holds")
def test_available_memory_follows_the_smallest_limit(tmp_path, monkeypatch):
    assert config.available_memory() > 2**20
    paths = limit, used, parts = [tmp_path / name for name in ("limit", "used", "memory.stat")]
    monkeypatch.setattr(config, "_CGROUPS", (tuple(map(str, paths)),))
    limit.write_text("1000000\n")
    used.write_text("400000\n")
    assert config.available_memory() == 600_000
    for pages, available in [  # of files
        ("cache 9\ninactive_file 30000\nactive_file 20000\n", 650_000),
        ("inactive_file 0\nactive_file 0\ntotal_inactive_file 3\ntotal_active_file 4\n", 600_007),
    ]:
        parts.write_text(pages)
        assert config.available_memory() == available
    limit.write_text("max\n")
    assert config.available_memory() > 2**20


def test_few_bytes_are_taken_without_a_look_at_the_memory(monkeypatch):
    monkeypatch.setattr(config, "available_memory", lambda: 2**26)
    assert config.fits_memory(2**26) and not config.fits_memory(2**26 + 1)
    assert not config.fits_memory(2**25, 4)
    monkeypatch.setattr(config, "available_memory", None)
    assert config.fits_memory(2**24, 4)

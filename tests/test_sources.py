"""Rows of sources: the bits of arrays, few reads, and errors that say what is wrong."""

import _thread
import signal
import sys
import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest
from contracts.passes import ones
from contracts.source import Sampling, sample_tables
from contracts.source import source as streams
from conventions import ip_rff_mkpkm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from rffpk import DiffusionPowerKMeans, KernelPowerKMeans, PowerKMeans, RFFKernelPowerKMeans
from rffpk.sources import from_array, from_arrow, from_dask, from_npy, from_parquet, spill

N, D, K = 23_000, 5, 4


@pytest.fixture(scope="module")
def rows():
    X, _ = make_blobs(N, D, centers=K, cluster_std=2.0, random_state=0)
    return X + 30


@pytest.fixture
def small_blocks(tuning):
    """Set blocks of one slot of rows."""
    tuning(storage__block_bytes=1)


def source(X, size=1000):
    return from_array(X, block_rows=size)


class Counting:
    """A source that counts how often it is read."""

    def __init__(self, X, size=1000):
        self.blocks, self.reads = source(X, size), 0

    def __call__(self):
        self.reads += 1
        return self.blocks()


@pytest.mark.promise(like="test_fits_and_fitted_models_are_those_of_an_array")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [25, 90])
def test_rows_of_a_source_that_swaps_are_made_on_are_drawn_as_those_of_an_array(
    k, weighted, small_blocks, tuning
):
    tuning(hardpasses__near_work=1)  # which counts from 100 clusters on
    random = np.random.default_rng(0)
    X = random.standard_t(2, size=(40_000, 3))
    weight = random.uniform(0.5, 2, len(X)) * (random.random(len(X)) > 0.3) if weighted else None
    new = partial(PowerKMeans, k, sample=4000, random_state=0)
    array = new().fit(X, sample_weight=weight)
    assert 250 * k in {step["rows"] for step in array.history_ if step["stage"] == "swap"}
    for size in (1000, 7777):
        model = new().fit(source(X, size), sample_weight=weight)
        assert_array_equal(model.cluster_centers_, array.cluster_centers_)
        assert model.inertia_ == array.inertia_


@pytest.mark.promise(like="test_fits_and_fitted_models_are_those_of_an_array")
def test_one_reading_tells_what_a_fit_needs_and_one_evaluates_it(rows):
    for cls, parameters in ((PowerKMeans, {}), (RFFKernelPowerKMeans, {"n_frequencies": 16})):
        counting = Counting(rows)
        model = cls(K, random_state=0, **parameters).fit(counting)
        settling = [r for r in model.history_ if r.get("rows") == N and "shift" in r]
        assert settling and counting.reads == len(settling) + 2
        assert all(0 < r["computing"] <= r["seconds"] and r["reading"] > 0 for r in settling)


@pytest.mark.exhaustive
@pytest.mark.promise(like="test_fits_and_fitted_models_are_those_of_an_array")
@pytest.mark.parametrize("metric, weighted", [("cosine", False), ("euclidean", True)])
def test_many_clusters_of_a_source_are_nearly_those_of_an_array(rows, metric, weighted):
    """Of an array centroids are swapped in batches and rows compared with few of them."""
    new = partial(PowerKMeans, 100, metric=metric, sample=2000, random_state=0, n_init=1)
    X = (rows - rows.mean(axis=0))[:5000]
    weight = 1.0 * (np.random.default_rng(0).random(5000) < 0.3) if weighted else None
    one = new(n_jobs=2).fit(source(X), sample_weight=weight)
    other = new(n_jobs=1).fit(source(X, 1777), sample_weight=weight)
    assert_array_equal(one.cluster_centers_, other.cluster_centers_)
    assert one.inertia_ == other.inertia_ < 1.05 * new().fit(X, sample_weight=weight).inertia_


def test_few_rows_of_a_source_are_read_once(rows):
    counting = Counting(rows[:600], 100)
    model = DiffusionPowerKMeans(K, random_state=0).fit(counting)
    array = DiffusionPowerKMeans(K, random_state=0).fit(rows[:600])
    assert counting.reads == 1
    assert_array_equal(model.cluster_centers_, array.cluster_centers_)
    assert not hasattr(model, "labels_")  # as with more rows
    assert_array_equal(model.fit_predict(source(rows[:600], 100)), array.labels_)


@pytest.mark.exhaustive
def test_a_graph_of_all_rows_of_a_source(rows):
    """Which are kept in memory."""
    array = DiffusionPowerKMeans(K, whitening=None, random_state=0).fit(rows)
    model = clone(array).fit(source(rows))
    assert_array_equal(model.cluster_centers_, array.cluster_centers_)
    assert_array_equal(model.predict(rows), array.labels_)


def test_views_may_be_cut_into_different_blocks(rows, small_blocks):
    views, labels = [rows[:, :2].astype(np.float32), rows[:, 2:].copy()], []
    model = ip_rff_mkpkm(K, kernels="linear", random_state=0, sample=500)
    array = clone(model).fit(views)
    sources = [source(views[0], 900), source(views[1], 5000)]
    model.fit(sources, labels_to=labels.append)
    assert_array_equal(model.cluster_centers_, array.cluster_centers_)
    assert_array_equal(np.concatenate(labels), array.labels_)
    assert_array_equal(model.predict(sources), array.predict(views))
    with pytest.raises(ValueError, match=r"X\[0\] gave fewer rows than the other sources"):
        model.fit([source(views[0][:5000]), sources[1]])


def test_names_of_columns_are_those_of_the_frames(rows):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=list("abcde"))
    model = PowerKMeans(K, random_state=0).fit(
        lambda: (frame[i : i + 5000] for i in range(0, N, 5000))
    )
    assert [*model.feature_names_in_] == list("abcde") and model.n_features_in_ == D
    with pytest.raises(ValueError, match="feature names"):
        model.predict(lambda: iter([frame[["b", "a", "c", "d", "e"]]]))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=8), st.integers(0, 2**31), st.booleans())
def test_samples_do_not_depend_on_blocks(small_blocks, sizes, seed, weighted):
    """A function that chooses initial centroids sees the sample."""
    n, seen = sum(sizes), []
    assume(n >= 30)
    X = np.arange(n, dtype=float)[:, None]
    weight = np.arange(n) % 3.0 if weighted else None

    def init(rows, k, random_state):
        seen.append(rows)
        return rows[:k]

    for given_X in (X, lambda: iter(np.split(X, np.cumsum(sizes)[:-1]))):
        model = PowerKMeans(2, sample=10, init=init, max_iter=2, random_state=seed)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(given_X, sample_weight=weight)
    assert len(seen[0]) == 10
    assert_array_equal(seen[0], seen[1])
    assert weight is None or (weight[seen[0].astype(int)] > 0).all()


def test_smaller_samples_are_parts_of_larger_ones_and_tiny_weights_are_sampled(rows):
    row_sample = sample_tables([rows], ones(len(rows)), Sampling(500, 500, 3, 1))
    (first,), _ = row_sample.some(500)
    (second,), _ = row_sample.some(4000)
    assert np.isin(first, second).all() and len(second) == 4000
    assert row_sample.sizes_of_starts(500, 1) == [500, 4000]
    (expected, _), (found, weight) = (
        sample_tables([rows], np.full(N, unit), Sampling(500, None, 0, 1)).some()
        for unit in (1.0, 2.0**-1070)
    )
    assert len(found[0]) == 500 and (weight > 0).all()
    assert_array_equal(found[0], expected[0])


def test_rows_of_weight_zero_are_read_no_more_often(rows):
    """Few rows count: starts run on rows of positive weight, not on all rows of the source."""
    weight = np.zeros(N)
    weight[:: N // 500] = 1
    counting = Counting(rows)
    model = PowerKMeans(K, random_state=0).fit(counting, sample_weight=weight)
    array = PowerKMeans(K, random_state=0).fit(rows, sample_weight=weight)
    assert counting.reads < 12
    assert_allclose(model.inertia_, array.inertia_, rtol=1e-6)


def test_a_source_may_use_its_memory_again(rows):
    def reusing():
        buffer = np.empty((1000, D))
        for begin in range(0, N, 1000):
            buffer[:] = rows[begin : begin + 1000]
            yield buffer

    views = ip_rff_mkpkm(K, kernels="linear", random_state=0, sample=500)
    for model, X in ((PowerKMeans(K, random_state=0), rows), (views, [rows, rows.copy()])):
        inertia = clone(model).fit(X).inertia_
        assert model.fit([reusing] * 2 if isinstance(X, list) else reusing).inertia_ == inertia


# ---- what goes wrong --------------------------------------------------------------------------


def of(*blocks):
    return lambda: iter(blocks)


EYE, LONG = np.eye(3), np.ones((2048, 2))
HOLED = of(np.ones((1000, 3)), np.where(np.eye(4, 3), np.nan, 1)[::-1])
HOLED_AT = "contains NaN .* first in row 1, column 2. .* The block begins at row 1000 of X"


@pytest.mark.parametrize(
    "X, message",
    [
        (iter([EYE]), "^X: .*list_iterator, which can be read only once"),
        ([iter([EYE])], "which can be read only once"),
        (of(), "X gave no rows"),
        (of(np.zeros((0, 3))), "X gave no rows"),
        (of(EYE, np.eye(4)), "X has 4 features"),
        (HOLED, HOLED_AT),
        (of(np.arange(3.0)), "2D array"),
        (lambda: None, "X is a function that returned NoneType, must return"),
        (lambda: EYE, r"X is a function that returned ndarray.* iter\(\[block\]\)"),
        ([lambda: 0] * 2, r"X\[0\] is a function that returned int"),
        (of(None), "X gave a block of type NoneType, must be an array"),
        ([of(np.ma.masked_less(EYE, 1))] * 2, "masked entries"),
        (of(EYE), "n_clusters=4: must not exceed .* samples .3"),
        (of(LONG.astype("f"), LONG), "blocks of float32 and then of float64"),
        (of(sparse.csr_array(EYE)), "^X: is sparse, but a source takes dense"),
    ],
)
def test_bad_sources(X, message, small_blocks):
    model = PowerKMeans(4)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        model.predict(of(EYE))


def test_what_a_source_does_not_take_is_named(rows):
    X, model = source(rows), PowerKMeans(K, random_state=0)
    weights = {n: (np.ones(n), f"sample_weight has {n} entries, but X") for n in (N - 1, N + 1, 10)}
    weights["number"] = 2.0, "^sample_weight: is a number. Pass a weight for each row"
    for weight, message in weights.values():
        with pytest.raises((TypeError, ValueError), match=message):
            model.fit(X, sample_weight=weight)
    model.fit(X)
    with pytest.raises(AttributeError, match="labels_ of the rows of a source are not kept"):
        model.labels_  # noqa: B018
    for method in ("predict", "transform", "score"):
        with pytest.raises(ValueError, match="X gave no rows"):
            getattr(model, method)(of())
    with pytest.raises(ValueError, match="cache=True needs all rows in memory"):
        RFFKernelPowerKMeans(K, n_frequencies=16, cache=True).fit(X)
    with pytest.raises(TypeError, match="^X: is a source"):
        KernelPowerKMeans(K).fit(X)


@pytest.mark.promise(
    "Memory",
    "Errors of a source are raised by the fit, its thread ends, and Ctrl-C does not wait for "
    "the next block.",
)
def test_errors_of_a_reader_surface_and_its_thread_ends(rows):
    before, closed = len(sys._current_frames()), []

    def failing():
        try:
            yield rows[:5000]
            raise OSError("the disk is gone.")
        finally:
            closed.append(1)

    model = PowerKMeans(K)
    with pytest.raises(OSError, match="the disk is gone."):
        model.fit(failing)
    assert not hasattr(model, "labels_") and closed == [1]
    assert ends(lambda: len(sys._current_frames()) <= before)


def ends(condition, seconds=5.0):
    """Return whether a condition is met within some seconds."""
    deadline = time.perf_counter() + seconds
    while not condition() and time.perf_counter() < deadline:
        time.sleep(0.01)
    return condition()


@pytest.fixture
def interrupts():
    """Make interrupts raise KeyboardInterrupt.

    A process that a shell started in the background ignores interrupts otherwise.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.promise(like="test_errors_of_a_reader_surface_and_its_thread_ends")
@pytest.mark.usefixtures("interrupts")
def test_an_interrupt_does_not_wait_for_a_block(rows):
    reads, released = [], threading.Event()

    def slow():
        reads.append(1)
        yield rows[:5000]
        if len(reads) == 2:
            threading.Timer(0.2, _thread.interrupt_main).start()
            released.wait(20)
        yield rows[5000:]

    model = PowerKMeans(K, random_state=0)
    before = len(sys._current_frames())
    with pytest.raises(KeyboardInterrupt):
        model.fit(slow)
    assert not released.is_set() and not hasattr(model, "cluster_centers_")
    released.set()
    assert ends(lambda: len(sys._current_frames()) <= before)
    model.fit(slow)
    array = PowerKMeans(K, random_state=0).fit(rows)
    assert_array_equal(model.cluster_centers_, array.cluster_centers_)


LARGE = """
import resource
import numpy as np
from rffpk import PowerKMeans

block = np.random.default_rng(0).standard_normal((50_000, 50), dtype=np.float32)
PowerKMeans(3, random_state=0, max_iter=2).fit(block[:2000])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (450 << 20),) * 2)
found = []
model = PowerKMeans(3, random_state=0, max_iter=2)
model.fit(lambda: (block for _ in range(60)), labels_to=lambda labels: found.append(len(labels)))
print(sum(found))
"""


@pytest.mark.promise(
    "Memory",
    "A source may have more rows than memory holds: nothing that a fit keeps grows with them.",
)
@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_rows_than_memory(python):
    """600 MB of rows where 450 MB may be allocated."""
    assert python(LARGE, PYTHONWARNINGS="ignore").strip() == "3000000"


def test_reading_and_computing_overlap():
    def slow():
        for item in range(10):
            time.sleep(0.02)
            yield item

    clock, started = streams.Clock(), time.perf_counter()
    for _ in streams.prefetched(slow, clock):
        time.sleep(0.02)
    seconds, parts = time.perf_counter() - started, clock.lap()
    assert min(parts.values()) >= 0.2
    assert seconds < 0.9 * sum(parts.values())
    assert clock.lap() == {"reading": 0, "computing": 0}


# ---- where labels go, and where rows come from ------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_labels_go_to_a_file(rows, tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"labels{suffix}"
    model = PowerKMeans(K, random_state=0).fit(source(rows), labels_to=path)
    read = np.load if suffix == ".npy" else from_parquet(path)
    labels = read(path) if suffix == ".npy" else np.concatenate([*read()])[:, 0]
    assert_array_equal(labels, model.predict(rows))
    array = PowerKMeans(K, random_state=0).fit(rows, labels_to=path)
    assert_array_equal(array.labels_, labels)


def test_no_file_of_labels_without_a_fit(rows, tmp_path):
    reads = []

    def stopped(labels):
        raise KeyboardInterrupt("stop")

    def failing():
        reads.append(1)
        if len(reads) > 2:
            raise OSError("gone")
        return iter([rows])

    for X, labels_to, error, message in [
        (source(rows), tmp_path / "labels.txt", ValueError, "must end in .npy or .parquet"),
        (source(rows), 3, TypeError, "labels_to is of type int"),
        (source(rows), stopped, KeyboardInterrupt, "stop"),
        (failing, tmp_path / "labels.npy", OSError, "gone"),
    ]:
        with pytest.raises(error, match=message):
            PowerKMeans(K, random_state=0).fit(X, labels_to=labels_to)
    assert not [*tmp_path.iterdir()]


def test_npy_files(rows, tmp_path, small_blocks):
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    np.save(paths[0], rows[:10_000])
    np.save(paths[1], rows[10_000:])
    assert {len(block) for block in from_npy(paths)()} == {1024, 784, 712}
    assert_gives(from_npy(paths), rows)


def test_npy_files_that_cannot_be_read(tmp_path):
    def path(name, array):
        np.save(tmp_path / name, array)
        return tmp_path / f"{name}.npy"

    np.savez(tmp_path / "archive.npz", EYE)
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "archive.npz").read_bytes()[:-30])
    (tmp_path / "not.npy").write_bytes(b"no")
    wide, empty = path("wide", np.ones((2, 4))), path("empty", np.empty((0, 4)))
    for paths, message in [
        (path("flat", np.arange(3.0)), "flat.npy has an array of shape"),
        (path("text", np.array([["a"]])), "text.npy has an array of shape"),
        (path("order", np.asfortranarray(np.ones((3, 2)))), "order.npy has an array of shape"),
        *((tmp_path / name, f"{name} is not a .npy file")
          for name in ("not.npy", "archive.npz", "damaged.npz")),
        ([path("narrow", EYE), wide], "different numbers of columns"),
        ([], "paths is empty"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            from_npy(paths)
    assert_array_equal(np.concatenate([*from_npy([empty, wide])()]), np.ones((2, 4)))
    cut = path("cut", np.ones((100, 3)))
    source = from_npy(cut)
    cut.write_bytes(cut.read_bytes()[:-8])
    with pytest.raises(ValueError, match="is not a .npy file that can be read: mmap length is"):
        [*source()]


def assert_gives(blocks, rows):
    """Check that a source gives these rows, when it is read again, too."""
    for _ in "ab":
        assert_array_equal(np.concatenate([*blocks()]), rows)


def test_arrow_and_parquet(rows, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    pandas = pytest.importorskip("pandas")
    table = arrow.table({f"c{j}": rows[:, j] for j in range(D)})
    path = tmp_path / "rows.parquet"
    parquet.write_table(table, path, row_group_size=3000)
    for blocks in (from_arrow(table), from_parquet(path)):
        assert_gives(blocks, rows)
    chosen = from_parquet(path, columns=["c3", "c1"], dtype=np.float32)
    assert_gives(chosen, rows[:, [3, 1]].astype(np.float32))
    nominal = arrow.table({"a": arrow.array([1.0, 2.0]).dictionary_encode()})
    for bad, message in [
        (arrow.table({"a": [1.0], "b": [None]}), "column 'b' has missing values"),
        (arrow.table({"a": ["x"]}), "column 'a' has string, must have numbers"),
        (nominal, "column 'a' has dictionary.*, must have numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            [*from_arrow(bad)()]
    with pytest.raises(TypeError, match=r"nominal columns \['a'\]"):
        PowerKMeans(1).fit(nominal.to_pandas(types_mapper=pandas.ArrowDtype))
    for bad, options, message in [
        (table.to_reader(), {}, "which can be read only once"),
        ([[1.0]], {}, "data is of type list"),
        (table, {"columns": "ab"}, "columns='ab': must be a list"),
        (table, {"dtype": np.int64}, "dtype=int64"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            from_arrow(bad, **options)


def test_frames_of_polars(rows):
    polars = pytest.importorskip("polars")
    assert_gives(from_arrow(polars.DataFrame({f"c{j}": rows[:, j] for j in range(D)})), rows)
    for nominal in (polars.Categorical, polars.Enum(["x", "y"])):
        words = polars.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).cast({"b": nominal})
        with pytest.raises(TypeError, match=r"nominal columns \['b'\]"):
            PowerKMeans(1).fit(words)
        with pytest.raises(ValueError, match="column 'b' has .*, must have numbers"):
            [*from_arrow(words)()]


def test_dask_collections(rows):
    dask_array = pytest.importorskip("dask.array")
    X = dask_array.from_array(rows, chunks=(7777, D))
    assert_gives(from_dask(X), rows)
    with pytest.raises(TypeError, match="all columns in one chunk"):
        from_dask(X.rechunk({1: 2}))
    with pytest.raises(TypeError, match="must be an array or frame of Dask"):
        from_dask(rows)


def test_spilled_rows(rows, tmp_path):
    narrow, path = rows.astype(np.float32), tmp_path / "rows.npy"
    spilled = spill(of(np.empty((0, D)), *source(narrow, 900)()), path)
    assert_array_equal(np.load(path), narrow)
    assert_gives(spilled, narrow)
    for bad, name, message in [
        (of(), "bad.npy", "no rows"),
        (of(np.ones(2)), "bad.npy", "shape"),
        (of(np.ones((2, 2)) * 1j), "bad.npy", "a block of complex128"),
        (source(rows), "rows.bin", r"must end in \.npy"),
        ([rows], "rows.npy", "^source is of type list. Pass a function"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            spill(bad, tmp_path / name)
    assert [*tmp_path.iterdir()] == [path]


# ---- rows that are not those of the read before -------------------------------------------------


CHANGES = {
    "one number": "other numbers in rows 4096 to 5119",
    "two rows": "other numbers in rows 4096 to 5119",
    "all rows": "other numbers in rows .*",
    "blocks": "other numbers in rows .*",
    "fewer rows": f"{N - 2} rows, and {N - 1} in its first reading",
}


@pytest.mark.promise(
    "Memory",
    "A source whose numbers or their order change between two reads is refused.",
)
@pytest.mark.few(2)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("views", [False, True])
def test_rows_that_change_between_reads_are_refused(rows, tmp_path, small_blocks, change, views):
    reads = []

    def changing():
        reads.append(1)
        X, at = rows.copy(), 5000
        if len(reads) > 1 and change == "one number":
            X[at, 2] = np.nextafter(X[at, 2], 0)
        elif len(reads) > 1 and change == "two rows":
            X[[at, at + 1]] = X[[at + 1, at]]
        elif change == "all rows":
            X = np.random.default_rng(len(reads)).permutation(X)
        elif change == "blocks":
            X = np.roll(X, 1000 * len(reads), axis=0)
        elif change == "fewer rows":
            X = X[: N - len(reads)]
        return iter(np.array_split(X, 23))

    cls, X = (ip_rff_mkpkm, [changing]) if views else (PowerKMeans, changing)
    with pytest.raises(ValueError, match=f"^X: the source gave {CHANGES[change]}"):
        cls(K, random_state=0).fit(X)
    assert len(reads) == 2
    spilled = spill(changing, tmp_path / "rows.npy")
    assert cls(K, random_state=0).fit([spilled] if views else spilled).n_iter_ > 0


@pytest.mark.parametrize("columns", [1, 3, 1021])
def test_the_digest_of_a_block_sees_the_order_of_its_rows(columns):
    X = np.random.default_rng(0).standard_normal((3000, columns))
    swapped = X.copy()
    swapped[[3, 2000]] = swapped[[2000, 3]]
    found = [streams.digest([x]) for x in (X, X.copy(), swapped, X[:-1], -X)]
    assert found[0] == found[1] and len({*found}) == 4

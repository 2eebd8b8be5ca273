"""Rows in Dask collections: the fits of arrays, whatever the workers and their number."""

import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from contracts.source import dask_workers
from conventions import ip_rff_mkpkm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from test_forms import divided, unknown, workers

from rffpk import Annealing, AverageMKKM, NystroemKernelKMeans, PowerKMeans, RFFKernelPowerKMeans
from rffpk.sources import from_array

dask = pytest.importorskip("dask")
array = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, D, K = 23_000, 5, 4
LENGTHS = (6000, 0, 4999, 1, 12_000, 0)
SECONDS = 120  # of a test, at most


@pytest.fixture(autouse=True)
def time_limit():
    """Raise an error in a test that hangs."""

    def stop(*_):
        raise TimeoutError(f"a test took more than {SECONDS} seconds.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def rows():
    X, _ = make_blobs(N, D, centers=K, cluster_std=2.0, random_state=0)
    return X + 30


@pytest.fixture(scope="module")
def client():
    with workers(2) as client:
        yield client


def test_rows_that_swaps_are_made_on_are_drawn_from_partitions(client):
    X = np.random.default_rng(0).standard_t(2, size=(N, 3))
    new = PowerKMeans(25, sample=5000, random_state=0)
    model, expected = clone(new).fit(divided(X, LENGTHS)), clone(new).fit(X)
    assert 6250 in {step["rows"] for step in model.history_ if step["stage"] == "swap"}
    assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-9)
    assert_allclose(model.inertia_, expected.inertia_, rtol=1e-12)


def test_many_clusters_of_unit_rows_in_half_precision(rows, client):
    X = (rows - rows.mean(axis=0)).astype(np.float16)
    hard = Annealing(swaps=0)
    model = PowerKMeans(100, metric="cosine", sample=2000, annealing=hard, random_state=0)
    read = clone(model).fit(from_array(X.astype(np.float32)))
    model.fit(divided(X, LENGTHS))
    assert model.cluster_centers_.dtype == np.float32
    assert_allclose(model.cluster_centers_, read.cluster_centers_, atol=1e-5)
    assert_allclose(model.inertia_, read.inertia_, rtol=1e-5)


@pytest.mark.promise(
    "Clusters of machines",
    "The bits of a fit of Dask collections depend neither on the number of workers nor on "
    "which worker visits which partition.",
)
def test_the_bits_do_not_depend_on_the_workers(rows, tuning):
    # results are joined in several steps; one worker visits two partitions in a task, more do not
    tuning(workers__group=2)
    X, models = divided(rows, (2000,) * 11 + (1000,)), []
    for n, small in ((1, 2**20), (2, 2**20), (3, 2**20), (1, 0)):
        tuning(workers__small_numbers=small)  # where none is small, each is visited alone
        with workers(n):
            models.append(RFFKernelPowerKMeans(K, n_frequencies=16, random_state=0).fit(X))
    for model in models[1:]:
        assert_array_equal(model.cluster_centers_, models[0].cluster_centers_)
        assert model.inertia_ == models[0].inertia_
        assert model.objective_ == models[0].objective_


def test_frames(rows, client):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(rows, columns=list("abcde")).assign(b=np.arange(N) // 5000)
    X = frames.from_pandas(table, npartitions=3)
    model = PowerKMeans(K, random_state=0).fit(X)
    expected = PowerKMeans(K, random_state=0).fit(table)
    assert [*model.feature_names_in_] == list("abcde")
    assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-12)
    assert_array_equal(model.predict(X).compute(), expected.labels_)
    assert_array_equal(model.predict(X[X.a > 1e9]).compute(), np.empty(0))


@pytest.mark.parametrize("lacking", [False, True])
def test_views(rows, client, lacking):
    views = [rows[:, :2].astype(np.float32), rows[:, 2:].copy()]
    if lacking:
        lacks = np.random.default_rng(0).integers(3, size=N)
        for view in range(2):
            views[view][lacks == view] = np.nan
    model = ip_rff_mkpkm(K, kernels="linear", sample=500, random_state=0)
    model.set_params(allow_missing_views=lacking)
    expected, collections = clone(model).fit(views), [divided(view, LENGTHS) for view in views]
    model.fit(collections)
    assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-11)
    assert_allclose(model.kernel_weights_, expected.kernel_weights_, rtol=1e-9)
    assert_array_equal(model.predict(collections).compute(), expected.labels_)
    with pytest.raises(ValueError, match=r"X\[1\] has partitions of 11500, 11500 rows, X\[0\] of"):
        model.fit([collections[0], divided(views[1], (11_500,) * 2)])
    with pytest.raises(TypeError, match="noise needs rows in memory or a source"):
        model.set_params(noise=0.1, allow_missing_views=False).fit(collections)


def test_few_rows_come_to_the_client(rows, client):
    model = PowerKMeans(K, random_state=0).fit(divided(rows[:300], (100, 0, 200)))
    expected = PowerKMeans(K, random_state=0).fit(rows[:300])
    assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert not hasattr(model, "labels_")  # as with more rows


def test_without_a_cluster_a_collection_is_a_source(rows):
    expected = PowerKMeans(K, random_state=0).fit(rows)
    with dask.config.set(scheduler="threads"):
        for X in (divided(rows, LENGTHS), unknown(divided(rows, LENGTHS))):
            model = PowerKMeans(K, random_state=0).fit(X)
            assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
            assert_allclose(model.score(X), expected.score(rows), rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (ip_rff_mkpkm(K, kernels=["linear"], random_state=0), ["predict_typicality"]),
        (AverageMKKM(K, n_landmarks=50, random_state=0), []),
        (NystroemKernelKMeans(K, n_anchors=50, random_state=0), []),
    ],
)
def test_results_for_rows_are_lazy(rows, model, more):
    model.fit(rows)
    given = rows.astype(np.float32)
    X = divided(given, LENGTHS)
    for method in ("predict", "transform", "predict_proba", *more):
        result, expected = getattr(model, method)(X), getattr(model, method)(given)
        assert isinstance(result, array.Array) and result.chunks[0] == X.chunks[0]
        assert result.shape == expected.shape and result.dtype == expected.dtype
        assert_array_equal(result.compute(), expected)
    assert np.isnan(model.predict(unknown(X)).shape[0])
    cut = model.cut(2, X)
    assert isinstance(cut, array.Array) and cut.dtype == np.int32
    assert_array_equal(cut.compute(), model.cut(2))


def test_a_task_has_one_thread_or_n_jobs(rows):
    with workers(1, threads=3) as client:
        for n_jobs, expected in ((None, 1), (2, 2)):
            schema, X = PowerKMeans()._schema(), divided(rows, LENGTHS)
            partitions = dask_workers.make_partitions(X, None, client, n_jobs, schema)
            threads = partitions.fold(lambda part, *_: [part.n_threads], lambda a, b: a + b)
            assert threads == [expected] * 4


# ---- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.promise(like="test_every_class_refuses_the_value_by_name")
def test_bad_collections(rows, client, caplog):
    X, holed = divided(rows, LENGTHS), rows.copy()
    holed[11_003, 2] = np.nan
    first = r"X: contains NaN .* first in row 5003, column 2\. .* The block begins at row 6000 of X"
    logging.getLogger("distributed.worker").addHandler(caplog.handler)
    for bad, message in (
        (X.rechunk({1: 2}), "all columns in one chunk"),
        (array.zeros((0, 3)), "X gave no rows"),
        (divided(holed, (6000, 6000, 11_000)), first),
    ):
        model = PowerKMeans(K)
        with pytest.raises(ValueError, match=message):
            model.fit(bad)
        assert not hasattr(model, "n_features_in_")
    logging.getLogger("distributed.worker").removeHandler(caplog.handler)
    assert not caplog.records
    with pytest.raises(ValueError, match="sample_weight"):
        PowerKMeans(K).fit(X, sample_weight=np.ones(N - 1))

    def failing(block):
        """Raise an error that looks like that of a slow transfer."""
        raise TimeoutError("the storage did not answer.")

    slow = X.map_blocks(failing, dtype=rows.dtype, meta=np.empty((0, 0), rows.dtype))
    with pytest.raises(TimeoutError, match="the storage did not answer"):
        PowerKMeans(3, random_state=0).fit(slow)


def test_without_dask_a_message_says_what_is_missing(rows, monkeypatch):
    X = divided(rows, LENGTHS)
    monkeypatch.setitem(sys.modules, "dask.base", None)
    with pytest.raises(ImportError, match=r"need dask \(pip install 'dask\[array\]' distributed\)"):
        PowerKMeans(K).fit(X)


LONG = PowerKMeans(
    K, sample=None, annealing=Annealing(swaps=0), n_init=1, max_iter=1000, tol=0, random_state=0
)


@pytest.mark.promise(like="test_a_killed_worker_changes_nothing")
def test_a_fit_ends_when_the_last_worker_has_left(rows, tuning):
    tuning(workers__workerless_seconds=1.0)
    with workers(0), pytest.raises(RuntimeError, match="the cluster has had no worker"):
        PowerKMeans(K).fit(divided(rows, LENGTHS))
    model = clone(LONG)
    with workers(2) as client:
        X = divided(rows, LENGTHS).persist()

        def leave():
            for worker in [*client.cluster.workers.values()]:
                client.cluster.sync(worker.close)

        timer = threading.Timer(0.5, leave)
        timer.start()
        with pytest.raises(RuntimeError, match="the cluster has had no worker for 1 seconds"):
            model.fit(X)
        timer.join()
    assert not hasattr(model, "cluster_centers_")


@pytest.mark.promise(
    "Clusters of machines",
    "A worker that is killed changes no bit. A cluster without workers ends the fit with an error.",
)
@pytest.mark.filterwarnings("ignore")
def test_a_killed_worker_changes_nothing(rows, client):
    X, model = divided(rows, (2000,) * 11 + (1000,)), clone(LONG).set_params(max_iter=20)
    expected = clone(model).fit(X)
    with workers(2, processes=True) as killing:
        held, pid = X.persist(), min(killing.run(os.getpid).values())
        distributed.wait(held)
        kill = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
        kill.start()
        model.fit(held)
        kill.join()
        assert pid not in killing.run(os.getpid).values()
    assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    assert model.inertia_ == expected.inertia_


# ---- what is left as it was ---------------------------------------------------------------------


@pytest.mark.promise(
    "Process-wide state",
    "The size above which Dask warns of large arguments is raised while one is sent, and restored.",
)
def test_calls_that_overlap_leave_the_configuration_of_dask():
    """The first of two threads to send something is the first to end."""
    before = dask.config.get(dask_workers._LARGE)
    first, second, ended = threading.Event(), threading.Event(), threading.Event()

    class Client:
        def submit(self, function, value, pure):
            if value == 1:
                first.set()
                second.wait(1)  # which never comes where calls take turns
            else:
                second.set()
                assert ended.wait(60)

    given = dask_workers.Partitions([], False, PowerKMeans()._schema(), np.ones(1), client=Client())
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(given._send, 1)
        assert first.wait(60)
        other = pool.submit(given._send, 2)
        one.result()
        ended.set()
        other.result()
    assert dask.config.get(dask_workers._LARGE) == before

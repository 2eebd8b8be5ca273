"""The threads of the core: how many there are, forks, signals, errors."""

import hashlib
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import joblib
import numpy as np
import pytest
import threadpoolctl
from contracts.plan import config
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans

import rffpk
from rffpk import _core, _reference

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
needs_tasks = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="no list of threads here"
)
OPENMP = _core.threads_by() == "openmp"


# ---- how many -----------------------------------------------------------------------------------


@pytest.mark.promise(
    "Threads",
    "No more threads run than `n_jobs`, the CPU affinity, the container's quota and the "
    "environment allow, in nested calls too.",
)
def test_threads_follow_n_jobs_and_limits():
    everything = config.n_threads(None)
    assert everything == config.n_threads(-1) >= 1
    assert config.n_threads(3) == 3
    assert config.n_threads(-2) == max(1, everything - 1)
    with threadpoolctl.threadpool_limits(1, user_api="openmp"):
        assert config.n_threads(None) == 1


@pytest.mark.promise(like="test_threads_follow_n_jobs_and_limits")
@pytest.mark.exhaustive
@pytest.mark.parametrize("variable", ["OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT", None])
def test_threads_follow_the_environment_and_the_affinity_mask(python, variable):
    bind = "" if variable else "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    if bind and not hasattr(os, "sched_setaffinity"):
        pytest.skip("no affinity masks here")
    code = f"import os, rffpk\n{bind}\nprint(rffpk.show_config()['threads'])"
    assert python(code, **({variable: "1"} if variable else {})).strip() == "1"


@pytest.mark.promise(like="test_threads_follow_n_jobs_and_limits")
def test_threads_follow_the_quota_of_a_container(monkeypatch, request):
    request.addfinalizer(config._quota.cache_clear)
    config._quota.cache_clear()
    calls = []
    monkeypatch.setattr(joblib, "cpu_count", lambda: calls.append(None) or 1)
    assert [config.n_threads(None) for _ in range(3)] == [1, 1, 1]
    assert len(calls) == 1  # reading it takes longer than a small fit
    assert "quota 1" in rffpk.show_config()["thread_limits"]


def test_openmp_counts_and_without_it_its_variable(monkeypatch):
    nothing = threadpoolctl.ThreadpoolController().select(user_api="none")
    monkeypatch.setattr(config, "_loaded", lambda user_api: nothing)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    limits = config.thread_limits()
    for text, expected in (("1", 1), ("3,2", 3), ("0", None), ("many", None), ("", None)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        wanted = limits if expected is None else {**limits, "OMP_NUM_THREADS": expected}
        assert config.thread_limits() == wanted
    runtimes = SimpleNamespace(lib_controllers=[SimpleNamespace(num_threads=n) for n in (3, 2, 4)])
    monkeypatch.setattr(config, "_loaded", lambda user_api: runtimes)
    assert config.thread_limits()["OpenMP"] == 2  # of the runtime of fewest threads


N_TASKS = """
import os
import numpy as np
import rffpk
from rffpk import _core
X = np.random.default_rng(0).standard_normal(({n}, 40))

def tasks():
    return len(os.listdir("/proc/self/task"))

def fit(n_jobs):
    rffpk.PowerKMeans(5, n_init=1, max_iter=3, n_jobs=n_jobs, random_state=0).fit(X)

def calls(n_threads):
    _core.call_all(lambda _: fit(n_threads), list(range(8)), n_threads)

fit(1)
before = tasks()
for n_jobs in {jobs}:
    {run}(n_jobs)
    print(tasks() - before)
"""


@pytest.mark.promise(like="test_threads_follow_n_jobs_and_limits")
@pytest.mark.exhaustive
@needs_tasks
@pytest.mark.parametrize(
    "n, run, jobs, expected",
    [
        (100_000, "fit", [1, 3, 3, 2, 4], [0, 2, 2, 2, 3]),
        (1500, "fit", [4], [0]),  # where threads do not pay
        (100_000, "calls", [2], [1]),
    ],
)
def test_threads_are_started_once_and_where_they_pay(python, n, run, jobs, expected):
    numbers = [int(line) for line in python(N_TASKS.format(n=n, run=run, jobs=jobs)).split()]
    if OPENMP:  # which may end threads that a smaller team leaves
        assert numbers[:2] == expected[:2]
        assert all(number <= limit for number, limit in zip(numbers, expected))
    else:
        assert numbers == expected


PLACES = """
import os
import threading
import numpy as np
import rffpk
from rffpk import _core
together = threading.Barrier(2, timeout=60)
X = np.random.default_rng(0).standard_normal((100_000, 20))

def processors(_):
    together.wait()
    return len(os.sched_getaffinity(0))

rffpk.PowerKMeans(5, n_init=1, random_state=0).fit(X)
tasks = [os.sched_getaffinity(int(task)) for task in os.listdir("/proc/self/task")]
bound = {tuple(each) for each in tasks if len(each) == 1}
calls = sorted(_core.call_all(processors, [0, 1], 2))
print(rffpk.show_config()["thread_limits"], len(bound), calls)
"""


@pytest.mark.promise(
    "Forks",
    "In the build with OpenMP the threads of passes run in the places of `OMP_PLACES`.",
)
@pytest.mark.skipif(not OPENMP, reason="this core is built without OpenMP")
@pytest.mark.skipif(config.n_threads(None) < 2, reason="there is one place")
@pytest.mark.parametrize("binding", [{"OMP_PLACES": "threads"}, {"OMP_PROC_BIND": "spread"}])
def test_passes_run_in_the_places_of_openmp_and_calls_of_python_in_all(python, binding):
    everywhere = len(os.sched_getaffinity(0))
    found = python(PLACES, OMP_NUM_THREADS="2", **binding)
    assert found.strip() == f"['OpenMP places 2'] 2 [1, {everywhere}]"


class Watch:
    """Counts the calls that run at once."""

    def __init__(self):
        self.inside, self.counts = [], []

    def __enter__(self):
        self.inside.append(None)
        self.counts.append(len(self.inside))

    def __exit__(self, *error):
        self.inside.pop()


def test_calls_run_at_once_but_never_more_than_asked():
    watch, together = Watch(), threading.Barrier(3, timeout=60)

    def wait(item):
        with watch:
            together.wait()
            return -item

    assert _core.call_all(wait, list(range(30)), 3) == [-item for item in range(30)]
    assert max(watch.counts) == 3


@pytest.mark.promise(like="test_threads_follow_n_jobs_and_limits")
def test_nested_loops_use_no_more_threads():
    watch = Watch()

    def inner(item):
        with watch:
            time.sleep(1e-4)
            return item

    def outer(item):
        return sum(_core.call_all(inner, list(range(10)), 3))

    assert _core.call_all(outer, list(range(20)), 3) == [45] * 20
    assert max(watch.counts) <= 3


def test_callers_in_several_threads_share_the_helpers():
    watch, begin = Watch(), threading.Barrier(4, timeout=60)

    def work(item):
        with watch:
            time.sleep(1e-3)
            return item

    def call(_):
        begin.wait()
        return _core.call_all(work, list(range(30)), 2)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(4))) == [list(range(30))] * 4
    assert max(watch.counts) <= 5  # the callers, and a helper that joined the first of them


# ---- the same results ---------------------------------------------------------------------------


def problem(n, d=6, F=20, k=5, dtype=np.float64):
    random = np.random.default_rng(0)
    X = random.standard_normal((n, d)).astype(dtype)
    omega = random.standard_normal((d, F)).astype(dtype)
    theta = random.standard_normal((k, 2 * F)).astype(dtype) / F**0.5
    return [X], [omega], [np.zeros(2 * F, dtype)], theta, np.ones(1), None


def digest(sums):
    bits = b"".join(np.asarray(each).tobytes() for each in sums)
    return hashlib.sha256(bits).hexdigest().encode()


@pytest.mark.parametrize("n_threads", [2, 3, 16])
@pytest.mark.parametrize("large", [False, True])
def test_slots_are_merged_in_their_order(n_threads, large):
    """Large sums have one buffer of 8 MB for each thread, so that threads wait for each other."""
    given, runs = problem(40 * _core.SLOT_ROWS + 17), 20
    if large:
        given, runs = problem(9 * _core.SLOT_ROWS, d=1, F=700, k=500, dtype=np.float32), 3
    expected = digest(_core.fused_pass(*given, _core.POWER, -2.0, 1))
    for _ in range(runs):
        assert digest(_core.fused_pass(*given, _core.POWER, -2.0, n_threads)) == expected


@pytest.mark.promise(like="test_the_core_does_not_need_the_lock")
@pytest.mark.promise("Threads", "Estimators may be fitted in several threads at once.")
def test_passes_in_several_threads_at_once():
    given = problem(20 * _core.SLOT_ROWS)
    expected = digest(_core.fused_pass(*given, _core.POWER, -2.0, 1))
    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(_core.fused_pass, *given, _core.POWER, -2.0, 1 + i % 4) for i in range(80)
        ]
        assert all(digest(run.result()) == expected for run in runs)


# ---- errors and signals -------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_the_first_error_in_the_order_of_the_items_reaches_the_caller(n_threads):
    def fail(item):
        if item in (5, 6, 7):
            time.sleep(0.001 * (8 - item))  # the first ends last
            raise MemoryError(f"item {item}")
        return item

    for _ in range(10):
        with pytest.raises(MemoryError, match="item 5"):
            _core.call_all(fail, list(range(100)), n_threads)
    assert _core.call_all(abs, [-1, 2], n_threads) == [1, 2]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_status_of_a_slot_reaches_the_caller(n_threads):
    given = problem(30 * _core.SLOT_ROWS)
    with pytest.raises(NotImplementedError, match="rule 4"):
        _core.fused_pass(*given, 4, -1.0, n_threads)
    _core.fused_pass(*given, _core.HARD, -1.0, n_threads)


@pytest.fixture
def interrupt():
    """Return a function that makes the process receive SIGINT soon."""

    def start(seconds=0.1):
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.promise(
    "Threads",
    "Ctrl-C ends fits and predictions within a second, and leaves the estimator as it was. "
    "Two calls may take longer: the last call of ARPACK for more than √(2·10⁸/n) and fewer "
    "than n/10 eigenvectors of n rows, and the draw of a sample from 10⁸ rows or more.",
)
@needs_timers
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_ends_a_long_pass(interrupt, n_threads):
    n = 200 * _core.SLOT_ROWS
    given = problem(n, d=2, F=1000, k=100, dtype=np.float32)
    labels = np.full(n, -1, dtype=np.int32)
    interrupt()
    with pytest.raises(KeyboardInterrupt):
        _core.fused_pass(*given, _core.HARD, 0.0, n_threads, labels=labels)
    assert (labels == -1).any()  # it had not ended
    small = problem(5 * _core.SLOT_ROWS)
    expected = _reference.fused_pass(*small, _core.HARD, 0.0, 1)[0]
    found = _core.fused_pass(*small, _core.HARD, 0.0, n_threads)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.promise(like="test_an_interrupt_ends_a_long_pass")
@needs_timers
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(interrupt):
    X = np.random.default_rng(0).standard_normal((400_000, 30), dtype=np.float32)
    model = rffpk.RFFKernelPowerKMeans(5, n_frequencies=20, random_state=0).fit(X[:300])
    before, centers = dict(vars(model)), model.cluster_centers_.copy()
    model.set_params(n_frequencies=1000, cache=False)
    interrupt(0.3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    model.set_params(n_frequencies=20, cache=before["cache"])
    assert vars(model).keys() == before.keys()
    assert_array_equal(model.cluster_centers_, centers)
    assert_array_equal(model.fit(X[:300]).cluster_centers_, centers)


# ---- forks --------------------------------------------------------------------------------------


def fits():
    """Return whether five fits by threads give equal results.

    Before them come calls that need two threads at once, and a fit with scikit-learn's k-means."""
    together = threading.Barrier(2, timeout=20)
    _core.call_all(lambda item: together.wait(), [0, 1], 2)
    X = np.random.default_rng(0).standard_normal((3000, 3))
    rffpk.KernelKMeans(3, init="spectral", n_init=1, n_jobs=3, random_state=0).fit(X[:300])
    model = rffpk.PowerKMeans(4, n_init=1, max_iter=3, n_jobs=3, random_state=0)
    return len({model.fit(X).inertia_ for _ in range(5)}) == 1


@pytest.mark.promise(
    "Forks",
    "A forked child can fit, whatever the other threads of its parent were doing at the fork.",
)
def test_a_child_forked_after_fits_does_not_hang(forked):
    assert fits()
    KMeans(3, n_init=1).fit(np.random.default_rng(0).standard_normal((3000, 3)))
    assert all(forked(lambda: [fits()]) == [True] for _ in range(3))


@pytest.mark.promise(like="test_a_child_forked_after_fits_does_not_hang")
@pytest.mark.exhaustive
def test_a_child_forked_while_another_thread_fits_does_not_hang(forked):
    end = threading.Event()

    def work():
        given = problem(20 * _core.SLOT_ROWS)
        while not end.is_set():
            _core.fused_pass(*given, _core.POWER, -2.0, 3)
            _core.call_all(abs, list(range(10)), 3)

    with ThreadPoolExecutor(2) as pool:
        threads = [pool.submit(work) for _ in range(2)]
        try:
            assert all(forked(lambda: [fits()]) == [True] for _ in range(5))
        finally:
            end.set()
        for thread in threads:
            thread.result()


@pytest.mark.promise(
    "Forks",
    "A child that a signal handler forks inside a pass gets an exception there and can fit "
    "afterwards. With OpenMP the child ends the pass by one thread.",
)
@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@needs_timers
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_a_signal_handler_forks_inside_a_pass_does_not_hang():
    read, write = os.pipe()
    children = []

    def fork(*_):
        children.append(os.fork())

    arguments = problem(100 * _core.SLOT_ROWS, d=2, F=1000, k=100, dtype=np.float32)
    before = signal.signal(signal.SIGALRM, fork)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        result = digest(_core.fused_pass(*arguments, _core.HARD, 0.0, 2))
    except RuntimeError as error:
        result = str(error).encode()
    finally:
        if children == [0]:
            try:
                assert fits()
                os.write(write, result)
            finally:
                os._exit(0)
        signal.signal(signal.SIGALRM, before)
    os.waitpid(children[0], 0)
    os.close(write)
    with os.fdopen(read, "rb") as lines:
        found = lines.read()
    assert result == digest(_core.fused_pass(*arguments, _core.HARD, 0.0, 1))
    if OPENMP:
        assert found == result
    else:
        assert b"a signal handler forked" in found


@pytest.mark.promise(
    "Process-wide state",
    "The OpenMP threads of other libraries are limited in the calling thread alone, and restored.",
)
@pytest.mark.exhaustive
@needs_tasks
def test_spectral_starts_leave_other_threads_alone(python):
    """scikit-learn's k-means starts no thread in them, and the limit of OpenMP is restored."""
    code = """
import os
import numpy as np
import rffpk
from rffpk.system import config
X = np.random.default_rng(0).standard_normal((600, 3))
model = rffpk.KernelKMeans(3, init="spectral", n_init=1, n_jobs=1, random_state=0)
limits = config.thread_limits()
before = len(os.listdir("/proc/self/task"))
model.fit(X)
assert len(os.listdir("/proc/self/task")) == before
assert config.thread_limits() == limits
"""
    python(code, OMP_NUM_THREADS="4")


def test_items_run_in_the_context_of_the_caller():
    """NumPy's handling of floating-point errors is that of the caller, in all threads."""
    largest = np.array([1e308])
    with np.errstate(over="raise"):
        for n_threads in (1, 4):
            with pytest.raises(FloatingPointError):
                _core.call_all(lambda _: time.sleep(0.01) or largest * 10, [*range(8)], n_threads)
    with np.errstate(over="ignore"):
        _core.call_all(lambda _: time.sleep(0.01) or largest * 10, [*range(8)], 4)


def test_an_interrupt_comes_before_an_error():
    begun = threading.Barrier(2, timeout=30)

    def run(item):
        begun.wait()
        raise (ValueError, KeyboardInterrupt)[item]

    with pytest.raises(KeyboardInterrupt):
        _core.call_all(run, [0, 1], 2)


def test_a_limit_that_is_interrupted_is_undone(monkeypatch):
    limit, before, inside = config._BlasLimit(), MagicMock(), MagicMock()
    inside.__enter__.side_effect = KeyboardInterrupt
    blas = Mock(limit=Mock(side_effect=[before, Mock(), inside]))
    monkeypatch.setattr(config, "_loaded", lambda _: blas)
    with pytest.raises(KeyboardInterrupt), limit.held():
        pass
    assert limit._holders == [] and before.__exit__.called


# ---- without the interpreter's lock -------------------------------------------------------------


@pytest.mark.promise(
    "Threads",
    "The core runs without the interpreter's lock, on free-threaded Python.",
)
@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has the interpreter's lock"
)
def test_the_core_does_not_need_the_lock():
    """Importing a module that needs the lock would turn it on, as modules of pandas may."""
    code = (
        "import sys; sys.modules['pandas'] = None; import rffpk; assert not sys._is_gil_enabled()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.promise(like="test_the_core_does_not_need_the_lock")
def test_python_runs_while_a_pass_does():
    """With the lock, another thread would see no labels of a pass, or all of them."""
    n = 400 * _core.SLOT_ROWS  # longer than the turn of another process on a busy machine
    given, seen = problem(n), False
    with ThreadPoolExecutor(1) as pool:
        for _ in range(20):
            labels = np.full(n, -1, np.int32)
            run = pool.submit(_core.fused_pass, *given, _core.POWER, -2.0, 1, labels=labels)
            while not (seen or run.done()):
                seen = labels[0] >= 0 > labels[-1]
            if seen:
                break
    assert seen

"""Ctrl-C ends fits and predictions, long calls of libraries included, and changes nothing.

With `-m ""`, RFFPK_INTERRUPTS=1 interrupts fits of 6000 rows of every class at ten random moments,
2000 where an iteration is O(n^3); by default small ones of a few are.
"""

import _thread
import os
import signal
import threading
import time

import numpy as np
import pytest
from contracts.plan import interruptible, linalg

import rffpk

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")

EVERY = "RFFPK_INTERRUPTS" in os.environ
CLASSES = [name for name in rffpk.__all__ if hasattr(getattr(rffpk, name), "fit")]
SECONDS = 1.0
LONG = np.inf  # work

BEGINNING = """
import os, signal, sys, time, warnings
import numpy as np
import rffpk

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
"""
LONG_CALLS = """
import rffpk.system.config
from rffpk.system import linalg
from rffpk.system.linalg import eigh, leading_eigenvectors, pivoted_cholesky, svd

A = np.random.default_rng(0).standard_normal((2500, 2500))
S = A @ A.T
linalg.eigsh = None  # it would end with a call that is not interrupted
late, begun = 0, time.perf_counter()
calls = {calls}
with rffpk.system.config.one_blas_thread():
    for call in calls:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begun = time.perf_counter()
        try:
            call()
            late = 99
        except KeyboardInterrupt:
            late = max(late, time.perf_counter() - begun - 0.3)
print(late, flush=True)
os._exit(0)
"""


@pytest.mark.promise(like="test_an_interrupt_ends_a_long_pass")
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "calls",
    [
        "[lambda: eigh(S), lambda: eigh(S, subset_by_index=[2490, 2499])]",
        "[lambda: svd(A)]",
        "[lambda M=np.eye(6000) + 0.1: pivoted_cholesky(M, 0.0)]",
        "[lambda: leading_eigenvectors(S, 600, 2500)]",
    ],
    ids=["eigh", "svd", "cholesky", "leading"],
)
def test_an_interrupt_ends_the_wait_for_a_decomposition(python, calls):
    assert float(python(BEGINNING + LONG_CALLS.format(calls=calls))) < SECONDS


def test_long_decompositions_are_those_of_short_ones(tuning):
    A = np.random.default_rng(0).standard_normal((60, 40))
    S = A.T @ A

    def decompositions():
        yield from linalg.eigh(S)
        yield from linalg.eigh(S, subset_by_index=[37, 39])
        yield from linalg.svd(A)
        yield from linalg.basis_of(A)
        yield from linalg.pivoted_cholesky(S, 0.0)

    expected = [*decompositions()]
    tuning(linalg__long_work=0.0)
    for a, b in zip(decompositions(), expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-9, atol=1e-12)


def test_a_pivoted_cholesky_decomposition_has_the_rank_and_the_product():
    B = np.random.default_rng(0).standard_normal((5, 30))
    M = B.T @ B
    triangle, pivots = linalg.pivoted_cholesky(M, 1e-10)
    R = np.triu(triangle)
    assert R.shape == (5, 30) and sorted(pivots) == list(range(30))
    np.testing.assert_allclose(R.T @ R, M[np.ix_(pivots, pivots)], atol=1e-12)


def test_a_long_call_has_the_context_and_the_errors_of_a_short_one():
    def name():
        return threading.current_thread() is threading.main_thread()

    assert interruptible(0, name) and not interruptible(LONG, name)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        interruptible(LONG, lambda: np.array([1e308]) * 10)
    found = []  # of another thread: no signals are handled there
    thread = threading.Thread(target=lambda: found.append(interruptible(LONG, threading.get_ident)))
    thread.start()
    thread.join()
    assert found == [thread.ident]


def test_a_long_call_without_memory_for_a_thread_is_direct(monkeypatch):
    def start(function, arguments):
        raise RuntimeError("can't start new thread.")

    monkeypatch.setattr(_thread, "start_new_thread", start)
    assert interruptible(LONG, threading.get_ident) == threading.get_ident()


def test_a_thread_that_ends_before_its_first_line_is_a_memory_error(monkeypatch):
    monkeypatch.setattr(_thread, "start_new_thread", lambda function, arguments: None)
    with pytest.raises(MemoryError, match="a thread ran out of memory"):
        interruptible(LONG, threading.get_ident)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_a_signal_handler_forks_inside_a_long_call_ends_with_an_error():
    children = []
    before = signal.signal(signal.SIGALRM, lambda *_: children.append(os.fork()))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    status = 1
    try:
        interruptible(LONG, time.sleep, 0.5)
    except RuntimeError as error:
        status = 0 if "a signal handler forked" in str(error) else 1
    finally:
        if children == [0]:
            os._exit(status)
        signal.signal(signal.SIGALRM, before)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


FITS = """
warnings.simplefilter("ignore")
name, n, count = {name!r}, {n}, {count}
random = np.random.default_rng(0)
centers = 2 * np.random.default_rng(0).standard_normal((8, 20))
X = centers[random.integers(8, size=n)] + random.standard_normal((n, 20))
cls, more = getattr(rffpk, name), {more}
if "n_clusters" in cls().get_params():
    more["n_clusters"] = more.get("n_clusters", 5)
small = X[:400]
few = {{"n_clusters": min(more["n_clusters"], 20)}} if "n_clusters" in more else {{}}
begun = time.perf_counter()
cls(random_state=0, **more).fit(X).transform(X)
whole, late = time.perf_counter() - begun, []
first = cls(random_state=0, **few).fit(small).transform(small)
for _ in range(count):
    model = cls(random_state=0, **few).fit(small)
    kept = dict(vars(model))
    model.set_params(**more)
    moment = random.uniform(1e-3, whole)
    signal.setitimer(signal.ITIMER_REAL, moment)
    begun, fitting = time.perf_counter(), True
    try:
        model.fit(X)
        fitting = False
        model.transform(X)
    except KeyboardInterrupt:
        late.append(time.perf_counter() - begun - moment)
        if fitting:
            model.set_params(**{{key: kept[key] for key in more}})
            now = vars(model)
            assert now.keys() == kept.keys(), now.keys() ^ kept.keys()
            assert all(now[key] is kept[key] for key in now if key not in more)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
assert np.array_equal(cls(random_state=0, **few).fit(small).transform(small), first)
print(max(late, default=0.0), flush=True)
os._exit(0)
"""

MANY_FEATURES = {
    "NystroemKernelKMeans": {"n_anchors": 1500},
    "DiffusionPowerKMeans": {"n_clusters": 100, "n_landmarks": 1500},
}
CUBIC = {"ONKC", "LMKKM", "LKAM"}
CASES = [(name, 2000 if name in CUBIC else 6000, {}) for name in CLASSES] if EVERY else []
CASES += [(name, 1500, more) for name, more in MANY_FEATURES.items()]


@pytest.mark.promise(like="test_an_interrupt_ends_a_long_pass")
@pytest.mark.exhaustive
@pytest.mark.parametrize("name, n, more", CASES, ids=lambda value: value if value else "")
def test_an_interrupt_at_any_moment_ends_a_fit_and_changes_nothing(python, name, n, more):
    count = 10 if EVERY else 2
    code = FITS.format(name=name, n=n, count=count, more=more)
    assert float(python(BEGINNING + code)) < SECONDS


def test_debuggers_and_profilers_see_the_threads():
    seen = []
    threading.setprofile(lambda *_: seen.append(threading.get_ident()))
    try:
        number = interruptible(LONG, threading.get_ident)
    finally:
        threading.setprofile(None)
    assert number in seen and number != threading.get_ident()

import faulthandler
import os
import subprocess
import sys
import warnings
from collections import defaultdict
from dataclasses import replace
from importlib.util import find_spec

# Threads of BLAS spin where processors are not free, which takes more time than they save in small
# matrices. The variable is read when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import default_run
import numpy as np
import pytest
from contracts.plan import TUNING
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits

from rffpk import _core

settings.register_profile(
    "few",
    max_examples=10,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.register_profile("many", settings.get_profile("few"), max_examples=100)
settings.load_profile("few")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    cases_of = defaultdict(list)
    for item in items:
        cases_of[item.nodeid.partition("[")[0]].append(item)
        if "lmkkm" in item.nodeid.lower() and find_spec("clarabel") is None:
            item.add_marker(pytest.mark.skip(reason="LMKKM needs clarabel"))
    for cases in cases_of.values():
        for case in set(cases).difference(default_run.chosen(cases)):
            case.add_marker("exhaustive")


@pytest.fixture(autouse=True, scope="session")
def threads_in_small_loops():
    """Share the work of small problems, too, among as many threads as are asked for."""
    before = _core.use_thread_work(0)
    yield before
    _core.use_thread_work(before)


@pytest.fixture(params=["core", "numpy"])
def backend(request, monkeypatch):
    """Return the name of each implementation of the pass, chosen by name."""
    monkeypatch.setenv("RFFPK_BACKEND", request.param)
    return request.param


@pytest.fixture(params=_core.isa_levels())
def isa(request):
    """Use each instruction set that the core is compiled for and this processor runs."""
    before = _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)


@pytest.fixture(params=[*_core.isa_levels(), "numpy"])
def implementation(request, monkeypatch):
    """Use each implementation of the pass: the core at any instruction set, and the NumPy twin."""
    twin = request.param == "numpy"
    monkeypatch.setenv("RFFPK_BACKEND", "numpy" if twin else "core")
    before = _core.use_isa(_core.isa() if twin else request.param)
    yield request.param
    _core.use_isa(before)


@pytest.fixture(params=[np.float32, np.float64], ids=["f32", "f64"])
def dtype(request):
    return np.dtype(request.param)


@pytest.fixture
def tuning(monkeypatch):
    """Replace fields of `TUNING`, by names such as `sampling__rows`."""

    def replace_fields(**values):
        for name, value in values.items():
            group, field = name.split("__")
            monkeypatch.setattr(TUNING, group, replace(getattr(TUNING, group), **{field: value}))

    return replace_fields


@pytest.fixture
def memory(monkeypatch, tuning):
    """Limit the available bytes; few bytes are taken unseen."""

    def available(left):
        monkeypatch.setattr("rffpk.system.config.available_memory", lambda: left)
        tuning(storage__unseen_bytes=0)

    return available


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture
def forked():
    """Call a function in a forked child; return the small numbers that it returns.

    A child that hangs prints where, and ends.
    """
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")

    def call(function):
        read, write = os.pipe()
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            child = os.fork()
        if not child:
            try:
                faulthandler.dump_traceback_later(100, exit=True, file=sys.__stderr__)
                os.write(write, bytes(function()))
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as file:
            numbers = [*file.read()]
        os.waitpid(child, 0)
        return numbers

    return call


@pytest.fixture
def python():
    """Run Python code in a new process; return its standard output."""

    def run(code, check=True, **environment):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=3000 if "RFFPK_ALLOCATIONS" in os.environ else 300,
        )
        if check:
            assert done.returncode == 0, done.stderr
            return done.stdout
        return done

    return run

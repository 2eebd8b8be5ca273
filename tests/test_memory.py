"""Memory: failures of allocations end in a MemoryError and change nothing; fits keep nothing.

RFFPK_ALLOCATIONS=1 lets each allocation of each class fail in turn; by default a few do.
"""

import gc
import os
import platform
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import rffpk

EVERY = "RFFPK_ALLOCATIONS" in os.environ
CLASSES = [name for name in rffpk.__all__ if hasattr(getattr(rffpk, name), "fit")]


HERE = Path(__file__).parent


def test_each_promise_names_a_test_that_exists():
    page = HERE.parent / "docs" / "promises.md"
    if not page.exists():
        pytest.skip("the pages are missing")
    text = page.read_text()
    lines = [line for line in text.splitlines() if line.startswith("| ") and "**" not in line]
    for line in lines[1:]:  # after the titles
        named = re.findall(r"`tests/(\w+\.py)::(\w+)`", line)
        assert named, line
        for file, test in named:
            assert f"def {test}(" in (HERE / file).read_text(), test


# ---- failures -----------------------------------------------------------------------------------

FAIL = """
import ctypes, sys, warnings
import numpy as np
import rffpk
from rffpk import _core

warnings.simplefilter("ignore")
_core.use_thread_work(0)
name, module, step, least, n = *sys.argv[1:3], *map(int, sys.argv[3:])
allocation = ctypes.PyDLL(None)
allocation.calls_left.restype = ctypes.c_long
allocation.fail_after.argtypes = [ctypes.c_long]
allocation.count_calls.argtypes = [ctypes.c_size_t] * 3
lines = [line.split()[0].split("-") for line in open("/proc/self/maps") if f"{module}." in line]
ends = [int(end, 16) for pair in lines for end in pair]
allocation.count_calls(least, min(ends), max(ends))
X = np.random.default_rng(0).standard_normal((n, 3))
cls = getattr(rffpk, name)
small = {"n_init": 1, "swaps": 1, "max_iter": 20, "n_frequencies": 16, "n_anchors": 20,
         "n_landmarks": 20, "n_clusters": 3, "n_jobs": 2}
parameters = {key: value for key, value in small.items() if key in cls().get_params()}
model = cls(random_state=0, **parameters).fit(X)
expected, fails = model.transform(X), 0
while True:
    before = dict(vars(model))
    allocation.fail_after(fails)
    try:
        model.fit(X)
    except MemoryError:
        allocation.fail_after(-1)
        assert vars(model).keys() == before.keys()
        assert all(value is before[key] for key, value in vars(model).items())
    left = allocation.calls_left()
    allocation.fail_after(-1)
    if left >= 0:
        break
    fails += step
assert np.array_equal(model.fit(X).transform(X), expected)
print(fails // step)
"""


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory):
    """A library in which a chosen allocation fails."""
    compiler = shutil.which("cc")
    if not compiler or platform.libc_ver()[0] != "glibc" or "LD_PRELOAD" in os.environ:
        pytest.skip("needs cc, glibc and no other preloaded library")
    library = tmp_path_factory.mktemp("shim") / "failing.so"
    source = HERE / "failing_allocations.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def failures(library, name, module, step, least, n):
    """How many fits of n rows met an allocation that failed, before the one that needs fewer:
    allocations of so many bytes, and all of a module of the core."""
    done = subprocess.run(
        [sys.executable, "-c", FAIL, name, module, *map(str, (step, least, n))],
        env={**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("name", CLASSES if EVERY else ["KernelKMeans"])
def test_an_array_that_cannot_be_allocated_is_a_memory_error(preloaded, name):
    """Arrays above 200 kB: NumPy itself does not survive that its buffers of loops fail."""
    exact = ("Kernel" in name and "RFF" not in name) or "KKM" in name or name == "SMKC"
    step, n = 1 if EVERY else 5, 400 if exact else 10_000
    assert failures(preloaded, name, "_pass", step, 200_000, n) >= 2


@pytest.mark.parametrize("module", ["_pass", "_runtime"])
@pytest.mark.parametrize("name", CLASSES if EVERY else ["FuzzyCMeans"])
def test_an_allocation_of_the_core_that_fails_is_a_memory_error(preloaded, name, module):
    """Also those of `_runtime` without which helpers cannot start: then there are fewer, and no
    error."""
    assert failures(preloaded, name, module, 1, 1 << 60, 300) >= 5


# ---- growth -------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(sys, "getallocatedblocks"), reason="only CPython counts blocks")
@pytest.mark.parametrize(
    "name", CLASSES if EVERY else ["RFFKernelPowerKMeans", "DiffusionPowerKMeans", "KernelKMeans"]
)
def test_fits_keep_no_memory(name):
    """Between fits the interpreter keeps up to some thousand free objects in lists, two to five
    kilobytes a fit at first; a collection empties these, and nothing else is left."""
    cls = getattr(rffpk, name)
    X = np.random.default_rng(0).standard_normal((30, 3))
    small = {"n_init": 1, "swaps": 0, "n_frequencies": 16, "n_clusters": 2, "n_jobs": 1}
    parameters = {key: value for key, value in small.items() if key in cls().get_params()}

    def growth(fits):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(fits):
            cls(random_state=0, **parameters).fit(X)
        gc.collect()
        return sys.getallocatedblocks() - before

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        growth(120)  # until those lists are full
        assert min(growth(30) for _ in range(3)) < 45  # an array a fit would be two or three each

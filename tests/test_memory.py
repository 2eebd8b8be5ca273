"""Memory: failures of allocations end in a MemoryError and change nothing; fits keep nothing.

With `-m ""`, RFFPK_ALLOCATIONS=1 lets each allocation of each class fail in turn, and measures more
peaks and limits; by default a few are.
"""

import gc
import os
import platform
import shutil
import subprocess
import sys
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from contracts.graph import Neighbourhoods, spectrum
from contracts.level import swaps
from contracts.passes import fit_components, ones
from conventions import peak_of
from scipy import sparse

import rffpk

EVERY = "RFFPK_ALLOCATIONS" in os.environ
CLASSES = [name for name in rffpk.__all__ if hasattr(getattr(rffpk, name), "fit")]
HERE = Path(__file__).parent


# ---- failures -----------------------------------------------------------------------------------

FAIL = """
import ctypes, warnings
import numpy as np
import rffpk
from rffpk import _core

warnings.simplefilter("ignore")
_core.use_thread_work(0)
allocation = ctypes.PyDLL(None)
allocation.calls_left.restype = ctypes.c_long
allocation.fail_after.argtypes = [ctypes.c_long]
allocation.count_calls.argtypes = [ctypes.c_size_t] * 3
lines = [line.split()[0].split("-") for line in open("/proc/self/maps") if f"{module}." in line]
ends = [int(end, 16) for pair in lines for end in pair]
allocation.count_calls(least, min(ends), max(ends))
X = np.random.default_rng(0).standard_normal((n, 3))
cls = getattr(rffpk, name)
small = {"n_init": 1, "annealing": rffpk.Annealing(swaps=1), "max_iter": 20,
         "n_frequencies": 16, "n_anchors": 20, "anchors": 20, "n_landmarks": 20, "n_clusters": 3,
         "n_jobs": 2}
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
    """Build a library that makes a chosen allocation fail."""
    compiler = shutil.which("cc")
    if not compiler or platform.libc_ver()[0] != "glibc" or "LD_PRELOAD" in os.environ:
        pytest.skip("needs cc, glibc and no other preloaded library")
    library = tmp_path_factory.mktemp("shim") / "failing.so"
    source = HERE / "failing_allocations.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def failing_allocations():
    """List classes, a module of the core, and which allocations fail in fits of how many rows.

    NumPy does not survive that its buffers of loops fail, so its arrays above 200 kB fail.
    """
    for name in CLASSES if EVERY else ["KernelKMeans"]:
        exact = ("Kernel" in name and "RFF" not in name) or "KKM" in name or name == "SMKC"
        fewest = 1 if name == "RandomFourierFeatures" else 2  # which has one large array
        yield name, "_pass", 1 if EVERY else 5, 200_000, 400 if exact else 10_000, fewest
    for name in CLASSES if EVERY else ["FuzzyCMeans"]:
        fewest = 1 if name in ("RandomFourierFeatures", "RMKKM", "KernelKMeans") else 5
        for module in "_pass", "_runtime":
            yield name, module, 1, 1 << 60, 300, fewest


@pytest.mark.promise(like="test_a_limit_of_the_address_space_is_a_memory_error")
@pytest.mark.exhaustive
@pytest.mark.parametrize("name, module, step, least, n, fewest", [*failing_allocations()])
def test_an_allocation_that_fails_is_a_memory_error(
    preloaded, python, name, module, step, least, n, fewest
):
    """Each allocation of `least` bytes or more, and each of a module of the core, fails in turn.

    If an allocation of `_runtime` for a helper fails, fewer helpers start, without an error.
    """
    code = f"name, module, step, least, n = {(name, module, step, least, n)}\n{FAIL}"
    failures = int(python(code, LD_PRELOAD=str(preloaded), OPENBLAS_NUM_THREADS="1"))
    assert failures >= fewest


# ---- limits -------------------------------------------------------------------------------------

LIMITED = """
import resource, sys, threading, warnings
import numpy as np
import rffpk
from scipy.linalg.blas import dgemm

warnings.simplefilter("ignore")
n, parameters = {n}, {parameters}

# OpenBLAS ends the process where it has no memory for a buffer of its own, one for each thread that
# is inside it: the buffers are there after this.
square, start = np.ones((1500, 1500)), threading.Barrier(4)

def multiply():
    for product in (np.matmul, lambda a, b: dgemm(1.0, a, b)):
        start.wait()
        product(square, square)

threads = [threading.Thread(target=multiply) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

X = np.random.default_rng(0).standard_normal((n, 20))
model = rffpk.{name}(5, random_state=0, n_jobs=4, **parameters)
expected = model.fit(X).labels_
_, hard = resource.getrlimit(resource.RLIMIT_AS)
refused = 0
for megabytes in {limits}:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = dict(vars(model))
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), hard))
    try:
        model.fit(X)
    except MemoryError:
        refused += 1
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        assert all(value is before[key] for key, value in vars(model).items())
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    assert np.array_equal(model.fit(X).labels_, expected)
print(refused)
"""

LIMITS = [
    ("KernelPowerKMeans", 3000, {}),
    ("PowerKMeans", 400_000, {"max_iter": 5}),
    ("RFFKernelPowerKMeans", 100_000, {"max_iter": 5, "n_frequencies": 64}),
    ("DiffusionPowerKMeans", 10_000, {}),
    ("NystroemKernelKMeans", 4000, {"n_anchors": 1200}),
    ("MKKM", 3000, {"kernels": ["rbf", "linear"]}),
    ("SMKC", 10_000, {"kernels": ["rbf", "linear"], "anchors": 300}),
    ("FAMKKM", 3000, {"kernels": ["rbf", "linear"], "max_iter": 3}),
    ("SimpleMKKM", 3000, {"kernels": ["rbf", "linear"]}),
]


@pytest.mark.promise(
    "Memory",
    "If memory for an array or inside the core runs out, also by `ulimit -v`, the fit raises "
    "MemoryError, and the estimator is as it was. NumPy does not survive failures of its own "
    "small buffers, and OpenBLAS ends the process if it cannot allocate its first buffers.",
)
@pytest.mark.exhaustive
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no limits here")
@pytest.mark.parametrize("name, n, parameters", LIMITS if EVERY else LIMITS[:1])
def test_a_limit_of_the_address_space_is_a_memory_error(python, name, n, parameters):
    """Stacks of threads count too: without memory for them there are fewer threads."""
    limits = [0, 1, 2, 4, 8, 16, 32, 64, 128] if EVERY else [0, 8, 64]
    code = LIMITED.format(name=name, n=n, parameters=parameters, limits=limits)
    # freed arrays are given back, and threads reserve nothing: fits under limits need new memory
    heap = {"MALLOC_MMAP_THRESHOLD_": "262144", "MALLOC_ARENA_MAX": "1"}
    assert int(python(code, **heap)) >= 1


# ---- peaks --------------------------------------------------------------------------------------

PEAK = """
import re, sys, warnings
import numpy as np
import rffpk

warnings.simplefilter("ignore")
name, n, d, L, dtype, parameters = {name!r}, {n}, {d}, {L}, {dtype!r}, {parameters}
parameters.setdefault("n_clusters", 10)
random = np.random.default_rng(0)

def kilobytes(field):
    return int(re.search(field + r":\\s+([0-9]+) kB", open("/proc/self/status").read())[1])

def model():
    return getattr(rffpk, name)(random_state=0, n_jobs=2, **parameters)

def views(n):
    xs = [random.standard_normal((n, d), dtype=dtype) for _ in range(L)]
    return xs if L > 1 else xs[0]

model().fit(views(1000))  # threads and libraries
X = views(n)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak so far
before = kilobytes("VmRSS")
model().fit(X)
print(1024 * (kilobytes("VmHWM") - before))
"""

FEW, SOME = {"n_frequencies": 64}, {"n_frequencies": 128}
ALL = {"n_frequencies": 108, "sample": None, "max_iter": 5}
PEAKS = [
    ("PowerKMeans", "", 1_000_000, 20, 1, "f", {"max_iter": 5}),
    ("RFFKernelPowerKMeans", "cache=False", 1_000_000, 50, 1, "f", {}),
    ("RFFKernelPowerKMeans", "cache=True", 200_000, 20, 1, "f", {**FEW, "max_iter": 5}),
    ("DiffusionPowerKMeans", "", 500_000, 20, 1, "f", {"whitening": None}),
    ("KernelPowerKMeans", "cache=True", 4000, 20, 1, "d", {}),
    ("MKKM", "", 3000, 20, 2, "d", {}),
    ("MKKMMR", "", 3000, 20, 2, "d", {}),
    ("PowerKMeans", "n_clusters>=400", 100_000, 256, 1, "f", {"n_clusters": 1000}),
    ("RFFKernelPowerKMeans", "cache=False", 1_000_000, 50, 1, "f", ALL),
    ("PowerKMeans", "", 2_000_000, 20, 1, "d", {"max_iter": 5}),
    ("RFFKernelPowerKMeans", "cache=True", 100_000, 20, 1, "d", {**SOME, "max_iter": 5}),
    ("DiffusionPowerKMeans", "", 1_000_000, 20, 1, "f", {"whitening": None}),
    ("KernelPowerKMeans", "cache=True", 6000, 20, 1, "f", {}),
    ("FAMKKM", "", 4000, 20, 3, "d", {"max_iter": 3}),
    ("AverageMKKM", "", 3000, 20, 3, "d", {}),
    ("SimpleMKKM", "", 3000, 20, 3, "d", {}),
]


def formula(name, cached):
    """Read the line of docs/maintainers/promises.md."""
    page = HERE.parent / "docs" / "maintainers" / "promises.md"
    if not page.exists():
        pytest.skip("the pages are missing")
    title = f"| `{name}`" + (f", `{cached}` |" if cached else " |")
    return next(line for line in page.read_text().splitlines() if line.startswith(title))


@pytest.mark.promise(
    "Memory",
    "The most memory that a fit takes follows the formulas below within 20 %.",
)
@pytest.mark.exhaustive
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="no peaks here")
@pytest.mark.parametrize("name, cached, n, d, L, dtype, parameters", PEAKS if EVERY else PEAKS[:6])
def test_the_memory_of_a_fit_is_what_the_page_says(
    python, name, cached, n, d, L, dtype, parameters
):
    expression = formula(name, cached).split("`")[-2]
    parameters = {**parameters, **({"cache": cached == "cache=True"} if "cache" in cached else {})}
    F = 2 * parameters.get("n_frequencies", 128) if "RFF" in name else 30
    s = 160_000 if n >= 640_000 and "sample" not in parameters else 0
    k, b = parameters.get("n_clusters", 10), np.dtype(dtype).itemsize
    names = {"n": n, "d": d, "k": k, "L": L, "b": b, "F": F, "s": s}
    predicted = eval(expression, {"max": max, "min": min}, names)
    code = PEAK.format(name=name, n=n, d=d, L=L, dtype=dtype, parameters=parameters)
    found = float(python(code, MALLOC_MMAP_THRESHOLD_="262144"))  # freed arrays are given back
    assert abs(found / predicted - 1) < 0.2, (found, predicted)


# ---- growth -------------------------------------------------------------------------------------


@pytest.mark.promise("Memory", "Memory does not grow from fit to fit.")
@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(sys, "getallocatedblocks"), reason="only CPython counts blocks")
@pytest.mark.parametrize(
    "name", CLASSES if EVERY else ["RFFKernelPowerKMeans", "DiffusionPowerKMeans", "KernelKMeans"]
)
def test_fits_keep_no_memory(name):
    """Collect free objects first: between fits the interpreter keeps some thousand in lists."""
    cls, X = getattr(rffpk, name), np.random.default_rng(0).standard_normal((30, 3))
    small = {
        "n_init": 1, "annealing": rffpk.Annealing(swaps=0), "n_frequencies": 16, "n_clusters": 2,
        "n_jobs": 1,
    }  # fmt: skip
    parameters = {key: value for key, value in small.items() if key in cls().get_params()}

    def growth(fits):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(fits):
            cls(random_state=0, **parameters).fit(X)
        gc.collect()
        return sys.getallocatedblocks() - before

    with warnings.catch_warnings(action="ignore"):
        growth(120)  # until those lists are full
        assert min(growth(30) for _ in range(3)) < 45  # an array a fit would be two or three each


# ---- arrays that are counted ---------------------------------------------------------------------


def ring(n, *steps):
    """Return the walk among n nodes that goes so many steps on."""
    around = np.arange(n)
    ends = np.concatenate([(around + step) % n for step in steps])
    share = np.full(len(ends), 1 / len(steps))
    return sparse.csr_matrix((share, (np.tile(around, len(steps)), ends)))


def test_slow_functions_take_five_copies_of_their_vectors():
    """The limit includes the products with the walk and the groups of nodes."""
    n, block = 5000, 16
    edges, root = ring(n, 0, -1, 1), np.full(n, n**-0.5)
    peak = peak_of(lambda: spectrum.slow_pairs(spectrum.Walk(edges), root, root[:, None], block))
    assert peak < 5.5 * 8 * n * block


def test_a_walk_in_another_order_takes_the_place_of_the_first_one(monkeypatch, tuning):
    """No function keeps the first walk while vectors are multiplied."""
    n, made, left = 2000, [], []

    def walk():
        made.append(weakref.ref(first := spectrum.Walk(ring(n, 0, n // 2))))
        return first

    def pairs(*given):
        left.append(made[0]())
        return np.ones(given[3]), np.ones((n, given[3])), 0.0

    tuning(spectrum__ordered_nodes=n)
    monkeypatch.setattr(spectrum, "_pairs_by_groups", pairs)
    wanted = spectrum.Wanted(10, 20)
    spectrum.decompose(walk, np.ones(n), np.zeros(n, dtype=int), wanted, n, 1.0)
    assert left == [None]


def test_components_need_one_copy_of_their_rows_in_float64():
    X = np.random.default_rng(0).standard_normal((10_000, 200), dtype=np.float32)
    weight, random = ones(len(X)), np.random.RandomState(0)
    assert peak_of(lambda: fit_components(X, weight, 5, random)) < 10 * X.size


def test_many_neighbors_need_no_copy_of_all_landmarks_in_float64():
    X = np.random.default_rng(0).standard_normal((1000, 5000), dtype=np.float32)
    found = Neighbourhoods(X, 100, 0.0, 1)
    assert peak_of(lambda: found.chosen(X[:300])) < 7 * X.size


def test_a_sample_of_a_source_keeps_no_row_twice():
    """Neither while blocks are read nor at the end; the blocks themselves are not counted."""
    size, d, block = 40_000, 50, np.ones((10_000, 50), dtype=np.float32)

    def sample():
        kept = swaps.Reservoir(size)
        for i in range(12):
            begin = i * len(block)
            kept.add(begin, swaps.row_keys(0, begin, len(block), ones(len(block))), [block])
        return kept.sample().first(size)

    assert peak_of(sample) < 1.8 * size * d * 4

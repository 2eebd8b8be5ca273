"""Configuration of the process: threads, backend, and a report of both."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import threading
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import distributions, requires, version
from pathlib import Path
from types import ModuleType
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
import threadpoolctl

from rffpk import _core
from rffpk.rows.checks import check_int
from rffpk.system.tuning import TUNING

__version__ = version("rffpk")

_MOST_JOBS = 1024  # each thread has a workspace


# Finds in a requirement the package, and the extra for users that needs it.
_OF_EXTRA = re.compile(r"([\w.-]+).*extra == .(?!docs|test)(\w+)")

# Modules, imported when they are chosen. "numpy" is the core's twin, which few processes need.
_BACKENDS = {"core": "rffpk._core", "numpy": "rffpk._reference"}
_imported = cache(import_module)  # a small fit asks for its backend a hundred times


def n_threads(n_jobs: Any) -> int:
    """Check the parameter `n_jobs`; return the number of threads that it stands for.

    A positive number is the number of threads. None and -1 stand for the smallest of
    `thread_limits()`, -2 for one thread less, and so on."""
    given = -1 if n_jobs is None else check_int(n_jobs, "n_jobs", -_MOST_JOBS, _MOST_JOBS)
    if given == 0:
        raise ValueError("n_jobs=0: must be None, positive or negative.")
    return given if given > 0 else max(1, min(thread_limits().values()) + 1 + given)


def thread_limits() -> dict[str, int]:
    """Return the limits on the number of threads, by the names of their sources.

    Sources are the affinity mask, the quota (the machine's CPUs, a container or
    LOKY_MAX_CPU_COUNT), and the loaded OpenMP runtimes. Runtimes follow OMP_NUM_THREADS and
    threadpoolctl. Without a runtime, OMP_NUM_THREADS is a limit itself. If the core uses OpenMP,
    and OpenMP binds threads to places, OpenMP's number of threads is the only limit: the affinity
    mask then has only one place."""
    if bound := _core.bound_threads():
        return {"OpenMP places": bound}
    limits = {}
    if hasattr(os, "sched_getaffinity"):
        limits["affinity"] = len(os.sched_getaffinity(0))
    limits["quota"] = _quota(limits.get("affinity"), os.environ.get("LOKY_MAX_CPU_COUNT"))
    if runtimes := _loaded("openmp").lib_controllers:
        limits["OpenMP"] = min(runtime.num_threads for runtime in runtimes)
    else:
        first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        if first.isdecimal() and int(first):
            limits["OMP_NUM_THREADS"] = int(first)
    return limits


@cache
def _quota(affinity: int | None, loky: str | None) -> int:
    """Return the number of CPUs that joblib counts, within quotas of a container.

    joblib reads files for 0.1 to 0.3 ms, so the number is cached. It depends on the arguments,
    which may change in a process."""
    return joblib.cpu_count()


@cache
def _loaded(user_api: str) -> threadpoolctl.ThreadpoolController:
    """Return a controller of the loaded "blas" or "openmp" libraries."""
    return threadpoolctl.ThreadpoolController().select(user_api=user_api)


class _BlasLimit:
    """The limit of one BLAS thread in this process, and the threads that hold it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: list[int] = []  # the identity of a thread as often as it holds the limit
        self._before: Any = None  # the limits to be restored

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Limit BLAS to one thread: its idle threads would spin and slow down the pass.

        On two cores a fit of the digits takes 0.05 s with the limit and 0.2 s without it.

        The limit applies to the whole process. If several threads hold it at once, the first thread
        sets it, and the last thread restores the limit that the first thread replaced. A limit that
        other code sets meanwhile is in force until the last thread leaves. Code that saves the
        current limit meanwhile saves a limit of one thread, and later restores this limit. While
        another thread is inside limits of threadpoolctl (3.8 or later), its limits stay in force. A
        forked child has the limit only while the thread that forked holds it.

        Inside the context, NumPy handles floating-point errors in its default way. Passes rely on
        underflow to zero, even if the caller has made underflow an error.
        """
        holder = threading.get_ident()
        with self._lock:
            self._holders.append(holder)
        try:
            with self._lock:
                if self._before is None:
                    blas = _loaded("blas")
                    self._before = blas.limit(limits=None)  # set first: a fork may come any time
                    blas.limit(limits=1)
                    # In threadpoolctl 3.8 a thread that sets limits excludes all other threads
                    # until it leaves a limit. Leave one, so that any thread may restore.
                    with blas.limit(limits=None):
                        pass
            with np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"):
                yield
        finally:
            with self._lock:
                self._holders.remove(holder)
                if not self._holders and self._before is not None:
                    with self._before:
                        pass  # leaving the context restores the limits
                    self._before = None

    def after_fork(self) -> None:
        """Restore the limit in a forked child, unless its thread holds it.

        Threads that the child lacks may hold the limit or the lock."""
        self._lock = threading.Lock()
        alone = threading.get_ident()
        self._holders = [holder for holder in self._holders if holder == alone]
        if self._before is not None:
            with self.held():
                pass  # leaving the context restores the limits, unless this thread holds the limit


_blas_limit = _BlasLimit()
one_blas_thread = _blas_limit.held


@contextlib.contextmanager
def one_openmp_thread() -> Iterator[None]:
    """Limit the OpenMP of other libraries to one thread, in calls from this thread.

    The clustering of scikit-learn has no parameter for the number of threads, but its bits depend
    on the number. GNU's OpenMP hangs in a child that is forked after its threads have started,
    unless the child uses one thread.
    """
    runtimes = _loaded("openmp").lib_controllers
    before = [runtime.num_threads for runtime in runtimes]
    try:
        for runtime in runtimes:
            runtime.set_num_threads(1)
        yield
    finally:
        for runtime, number in zip(runtimes, before):
            runtime.set_num_threads(number)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_limit.after_fork)


# Where Linux reports the memory limit and the memory use of a container: cgroup v2, v1.
_CGROUP = "/sys/fs/cgroup/"
_CGROUP_1 = "/sys/fs/cgroup/memory/"
_CGROUPS = (
    (_CGROUP + "memory.max", _CGROUP + "memory.current", _CGROUP + "memory.stat"),
    (
        _CGROUP_1 + "memory.limit_in_bytes", _CGROUP_1 + "memory.usage_in_bytes",
        _CGROUP_1 + "memory.stat",
    ),
)  # fmt: skip


def fits_memory(needed: float, parts: int = 1) -> bool:
    """Return whether `needed` bytes are few, or at most available memory divided by `parts`."""
    return needed <= TUNING.storage.unseen_bytes or needed <= available_memory() // parts


def available_memory() -> int:
    """Return how many bytes this process may still allocate.

    It is the smallest of the limits of the machine, the container and the address space."""
    limits = [_machine_memory()]
    for most, used, parts in _CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or it has "max"
            left, sizes = int(Path(most).read_text()) - int(Path(used).read_text()), {}
            if os.path.exists(parts):
                sizes = dict(line.split() for line in Path(parts).read_text().splitlines())
            # The system drops file pages when memory is short, and a memory-mapped X has many. In
            # v1, totals include the pages of inner groups.
            prefix = "total_" if "total_inactive_file" in sizes else ""
            kinds = f"{prefix}inactive_file", f"{prefix}active_file"
            limits.append(left + sum(int(sizes.get(kind, 0)) for kind in kinds))
    with contextlib.suppress(ImportError, OSError):  # no module on Windows, or no /proc
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)  # the limit that `ulimit -v` sets
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        if limit != resource.RLIM_INFINITY:
            limits.append(limit - pages * resource.getpagesize())
    return max(0, min(limits))


def _machine_memory() -> int:
    """Return the available memory of the machine in bytes, or a guess."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return 2**31  # a guess: the system does not say


def backend() -> ModuleType:
    """Return the module whose `fused_pass` runs: the compiled core, or what RFFPK_BACKEND names.

    Raises
    ------
    ValueError
        If the name is neither "core" nor "numpy"."""
    name = os.environ.get("RFFPK_BACKEND") or "core"
    if name not in _BACKENDS:
        raise ValueError(f"RFFPK_BACKEND={name!r}: must be one of {sorted(_BACKENDS)}.")
    return _imported(_BACKENDS[name])


def get_include() -> str:
    """Return the folder of the C headers for packages that are compiled with `rffpk.capi`.

    Returns
    -------
    folder : str
        An entry of the include directories of the compiler.

    Examples
    --------
    >>> import os, rffpk
    >>> os.path.exists(os.path.join(rffpk.get_include(), "contract.h"))
    True
    """
    return str(Path(_core.__file__).parent)


def show_config() -> dict[str, Any]:
    """Report version, compiled core, threads and BLAS.

    Returns
    -------
    config : dict
        "version", "backend", "python", "numpy", "scipy", "scikit-learn" and "platform". "isa": the
        instruction set in use. "isa_levels": all compiled instruction sets that this processor
        runs. "threads_by": "own" for threads of the package, or "openmp", depending on the build.
        "threads": the number of threads with `n_jobs=None`, the least of "thread_limits". The
        limits are the affinity mask, the quota of the container or of LOKY_MAX_CPU_COUNT, and the
        loaded OpenMP runtimes, which follow OMP_NUM_THREADS and threadpoolctl. Where "openmp" binds
        threads to places, the places are the only limit. "blas": the loaded BLAS libraries.
        "missing": optional packages that are not installed. "slow": reasons why fits are slower
        than necessary, with remedies.

    Examples
    --------
    >>> import rffpk
    >>> rffpk.show_config()["backend"]
    'core'
    """
    pools = threadpoolctl.threadpool_info()
    blas = {
        f"{p['internal_api']} {p['version']} ({p.get('architecture', '?')})"
        for p in pools
        if p["user_api"] == "blas"
    }
    return {
        "version": __version__,
        "backend": next(each for each, module in _BACKENDS.items() if module == backend().__name__),
        "isa": _core.isa(),
        "isa_levels": _core.isa_levels(),
        "threads_by": _core.threads_by(),
        "threads": n_threads(None),
        "thread_limits": [f"{name} {limit}" for name, limit in thread_limits().items()],
        "blas": sorted(blas),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": platform.platform(),
        "missing": _missing(),
        "slow": _slow(),
    }


def _missing() -> list[str]:
    """Return the optional packages that are not installed, with the extras that bring them."""
    found = [match for each in requires("rffpk") or [] if (match := _OF_EXTRA.match(each))]
    installed = {each.metadata["Name"].lower() for each in distributions()}
    return [f"{name} (extra {extra})" for name, extra in map(re.Match.groups, found)
            if name.lower() not in installed]  # fmt: skip


def _slow() -> list[str]:
    """Return the reasons why fits are slower than necessary on this machine, with remedies."""
    reasons, limits, widest = list[str](), thread_limits(), _core.isa_levels()[-1]
    if backend().__name__ != _BACKENDS["core"]:
        reasons.append("passes run in NumPy: unset RFFPK_BACKEND")
    if _core.isa() != widest:
        reasons.append(f"instructions of {_core.isa()}, where {widest} would run: unset RFFPK_ISA")
    if min(limits.values()) == 1 < (os.cpu_count() or 1):
        named = ", ".join(name for name, limit in limits.items() if limit == 1)
        reasons.append(f"one thread on {os.cpu_count()} processors, by {named}: lift this limit")
    if (left := available_memory()) < 2**29:  # a quarter is for features: too little for many rows
        reasons.append(f"{left >> 20} MB of memory are left: free some, or features are not stored")
    return reasons

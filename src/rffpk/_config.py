"""Configuration of the process: threads, backend, and a report of both."""

from __future__ import annotations

import contextlib
import os
import platform
import threading
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy
import sklearn
import threadpoolctl

from rffpk import _core, _reference

__version__ = version("rffpk")

_BACKENDS: dict[str, ModuleType] = {"core": _core, "numpy": _reference}
_forked = False


def n_threads(n_jobs: int | None) -> int:
    """Threads for `n_jobs`.

    None and -1 stand for all threads that the affinity mask, OMP_NUM_THREADS and threadpoolctl
    allow, -2 for one less and so on; a positive number stands for itself. A forked child gets one
    thread.
    """
    if _forked:
        return 1
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    allowed = _core.max_threads()
    if hasattr(os, "sched_getaffinity"):
        allowed = min(allowed, len(os.sched_getaffinity(0)))
    return allowed if n_jobs is None else max(1, allowed + 1 + int(n_jobs))


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


class _BlasLimit:
    """The limit of one BLAS thread in this process, and the number of threads that hold it."""

    def __init__(self) -> None:
        self.lock, self.holders = threading.Lock(), 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self.lock:
            if not self.holders:
                self._limiter = _blas().limit(limits=1)
                # threadpoolctl 3.8 lets one thread at a time set limits; another may restore them
                with _blas().limit(limits=None):
                    pass
            self.holders += 1

    def leave(self) -> None:
        with self.lock:
            self.holders -= 1
            if not self.holders:
                with self._limiter:
                    pass  # leaving the context restores the limit


_blas_limit = _BlasLimit()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread: its idle threads would spin and slow down those of the pass.

    On two cores a fit of the digits takes 0.05 s with this and 0.2 s without.

    The limit applies to the whole process. If several threads hold it at once, the first sets it,
    and the last restores the limit that the first replaced. So a limit that other code sets
    meanwhile is in force until the last one leaves, and is then replaced; and other code that
    saves the limit meanwhile restores one thread later. While another thread is inside limits of
    threadpoolctl (3.8 or later), those stay in force. In a child that is forked meanwhile, BLAS
    keeps one thread unless the forking thread alone held the limit.
    """
    limit = _blas_limit
    limit.enter()
    try:
        yield
    finally:
        limit.leave()


def _after_fork() -> None:
    """Prepare a forked child. GNU's OpenMP hangs in a child that is forked after its threads were
    started, unless it uses one thread. Threads that the child lacks may hold locks and limits."""
    global _forked, _blas_limit
    _forked = True
    _blas_limit.lock = threading.Lock()  # the forking thread may hold the limit, and will leave it
    _blas_limit = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# Where Linux reports the memory limit and use of a container: cgroup v2, then v1.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
_UNKNOWN_MEMORY = 2**31  # if the system does not report it


def available_memory() -> int:
    """Bytes that this process may still allocate, by the machine, the container's limit and the
    limit of its address space."""
    found = [_machine_memory()]
    for limit, used in _CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            found.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
    with contextlib.suppress(
        ImportError, OSError, ValueError
    ):  # not on Windows; no /proc elsewhere
        found.append(_address_space())
    return max(0, min(found))


def _address_space() -> int:
    """What `ulimit -v` leaves. Raises a ValueError if there is no limit."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        raise ValueError("unlimited")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return limit - pages * resource.getpagesize()


def _machine_memory() -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return _UNKNOWN_MEMORY


def backend(name: str | None = None) -> ModuleType:
    """The module whose `fused_pass` runs: `name`, else RFFPK_BACKEND, else the compiled core.

    Raises
    ------
    ValueError
        If the name is neither "core" nor "numpy".
    """
    source = "backend" if name else "RFFPK_BACKEND"
    name = name or os.environ.get("RFFPK_BACKEND") or "core"
    if name not in _BACKENDS:
        raise ValueError(f"{source}={name!r}, must be one of {sorted(_BACKENDS)}.")
    return _BACKENDS[name]


def show_config() -> dict[str, Any]:
    """Report version, compiled core, OpenMP, threads and BLAS.

    Returns
    -------
    config : dict
        "version", "backend", "isa" (instruction set in use), "isa_levels" (all that this
        processor runs, of those compiled), "openmp" (the _OPENMP date, or None), "threads" (what
        `n_jobs=None` gives), "blas" (of the loaded libraries), "python", "numpy", "scipy",
        "scikit-learn", "platform".

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
        "backend": next(key for key, value in _BACKENDS.items() if value is backend()),
        "isa": _core.isa(),
        "isa_levels": _core.isa_levels(),
        "openmp": _core.openmp_version() or None,
        "threads": n_threads(None),
        "blas": sorted(blas),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "platform": platform.platform(),
    }

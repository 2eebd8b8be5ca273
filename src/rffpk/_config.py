"""What this process runs on: threads, backend, and a report of both."""

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

    None and -1 take all that the affinity mask, OMP_NUM_THREADS and threadpoolctl allow, -2 all
    but one and so on; a positive number is taken as it is. A forked child gets one.
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
    """Who holds BLAS to one thread, in this process."""

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
                    pass  # its end restores


_blas_limit = _BlasLimit()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread: its workers would spin on beside the threads of the pass.

    On two cores, digits: a fit takes 0.05 s with this and 0.2 s without.

    Limits are those of the whole process. Where several threads hold BLAS at once, the first sets
    the limit, and the last restores what the first found. So a limit that other code sets
    meanwhile is in force until the last one leaves, and is then replaced; and what other code finds
    meanwhile and restores later is one thread. While another thread is inside threadpoolctl's
    own limits (3.8 or later), these stand. In a child that is forked meanwhile, BLAS keeps to one
    thread unless the forking thread alone held it.
    """
    limit = _blas_limit
    limit.enter()
    try:
        yield
    finally:
        limit.leave()


def _after_fork() -> None:
    """In a child. GNU's OpenMP hangs in one that is forked after its threads were started; one
    thread works. Locks may be held, and BLAS limited, by threads that are not there any more."""
    global _forked, _blas_limit
    _forked = True
    _blas_limit.lock = threading.Lock()  # the forking thread may be inside, and still leaves
    _blas_limit = _BlasLimit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# Where Linux says what is left to a process: cgroup v2, then v1, as a container sees itself.
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
_UNKNOWN_MEMORY = 2**31  # where the system does not tell


def available_memory() -> int:
    """Bytes that this process may still take: of the machine, and of its container's limit."""
    found = [_machine_memory()]
    for limit, used in _CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            found.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
    return max(0, min(found))


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

"""Timing: seconds, medians, interleaved runs, limits of threads; and the peak memory."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import threadpoolctl

Result = TypeVar("Result")
Key = TypeVar("Key")
Measure = Callable[[], float]


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of a call, and its result."""
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def seconds(call: Callable[[], object]) -> float:
    return timed(call)[0]


def clocks() -> np.ndarray:
    """Wall-clock seconds, and CPU seconds of all threads; only their differences have a meaning."""
    return np.array([time.perf_counter(), time.process_time()])


def median(measure: Measure, repeats: int) -> float:
    return statistics.median(measure() for _ in range(repeats))


def alternate(
    measures: Mapping[Key, Measure], repeats: int, warm_up: bool = False
) -> dict[Key, list[float]]:
    """Interleaved measurements, `repeats` of each: other load on the machine affects all alike."""
    if warm_up:
        for measure in measures.values():
            measure()
    found: dict[Key, list[float]] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, measure in measures.items():
            found[name].append(measure())
    return found


def pinned(measure: Measure, threads: int) -> float:
    """A measurement with all native thread pools limited to `threads`, after idle threads of other
    libraries sleep: those of OpenBLAS spin for a tenth of a second after a product."""
    time.sleep(0.3)
    with threadpoolctl.threadpool_limits(threads):
        return measure()


def peak_memory() -> float:
    """Peak resident memory of this process in megabytes, without that of its parent."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def in_own_process(function: Callable[..., Result], *args: Any) -> Result:
    """Call a module's function in a new process, to measure the peak memory of that call."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args).result()

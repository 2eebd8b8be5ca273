"""Measure seconds, in turns and with limits of threads, and peak memory."""

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
Measure = Callable[[], Any]


def clocks() -> np.ndarray:
    """Return wall-clock seconds and CPU seconds of all threads. Only differences have a meaning."""
    return np.array([time.perf_counter(), time.process_time()])


def timed(call: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds of a call, and its result."""
    (wall, _), result = spent(call)
    return float(wall), result


def cpu_timed(call: Callable[[], Result]) -> tuple[float, Result]:
    """Return the CPU seconds of a call, and its result."""
    (_, cpu), result = spent(call)
    return float(cpu), result


def spent(call: Callable[[], Result]) -> tuple[np.ndarray, Result]:
    """Return wall-clock and CPU seconds of a call, and its result."""
    started = clocks()
    result = call()
    return clocks() - started, result


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    return timed(call)[0]


def median(measure: Measure, repeats: int) -> float:
    """Return the median of several measurements."""
    return statistics.median(measure() for _ in range(repeats))


def alternate(
    measures: Mapping[Key, Measure], repeats: int, warm_up: bool = False
) -> dict[Key, list[Any]]:
    """Measure in turns, so that other load on the machine affects all measures alike."""
    if warm_up:
        for measure in measures.values():
            measure()
    results: dict[Key, list[Any]] = {name: [] for name in measures}
    for _ in range(repeats):
        for name, measure in measures.items():
            results[name].append(measure())
    return results


def pinned(measure: Callable[[], Result], threads: int) -> Result:
    """Measure with all native thread pools limited to `threads`.

    The threads of OpenBLAS spin for a tenth of a second after a product, so first they sleep.
    """
    time.sleep(0.3)
    with threadpoolctl.threadpool_limits(threads):
        return measure()


def peak_memory() -> float:
    """Return the peak resident memory of this process in megabytes, without that of its parent."""
    return status("VmHWM") / 1024


def status(field: str) -> float:
    """Return a number of kilobytes that Linux knows of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    return float("nan")


def forget_peak() -> None:
    """Reset the peak of the memory of this process."""
    Path("/proc/self/clear_refs").write_text("5")


def in_own_process(function: Callable[..., Result], *args: Any) -> Result:
    """Call a module's function in a new process, to measure the peak memory of that call."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args).result()

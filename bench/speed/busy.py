"""Measure fits on a machine at rest and beside busy processes, by one thread and by default.

Beside the fits run none, then as many busy processes as there are processors, then as many with
the lowest priority. `RFFKernelPowerKMeans` by one thread and by default and scikit-learn's KMeans
(n_init=1) fit in turn, each in a process of its own. The table has the least seconds of each, and
the medians of the ratios of neighbouring fits.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from bench import commands, tables, timing
from bench.datasets import mixture
from rffpk import RFFKernelPowerKMeans

PROBLEMS = {200: 8, 2_000: 20, 20_000: 20, 100_000: 20, 1_000_000: 50}  # rows: columns
CLUSTERS = 10
MODELS: dict[str, Any] = {
    "1": RFFKernelPowerKMeans(CLUSTERS, n_jobs=1, random_state=0),
    "default": RFFKernelPowerKMeans(CLUSTERS, random_state=0),
    "KMeans": KMeans(CLUSTERS, n_init=1, random_state=0),
}
LEAST_SECONDS = 0.3  # short fits are repeated in a measurement

rows_of = cache(lambda n: mixture(n, 0.35, CLUSTERS, PROBLEMS.get(n, 20)))


def mean_seconds(method: str, n: int) -> float:
    """Measure the mean seconds of a fit."""
    X, fits, total = rows_of(n), 0, 0.0
    while total < LEAST_SECONDS:
        fits, total = fits + 1, total + timing.seconds(partial(MODELS[method].fit, X))
    return total / fits


@contextmanager
def busy_processes(number: int, niceness: int) -> Iterator[None]:
    spin = f"import os\nos.nice({niceness})\nwhile True: pass"
    processes = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> None:
    args = commands.arguments(__doc__, rows=(*PROBLEMS,), repeats=7)
    cpus = os.cpu_count() or 1
    loads = {"at rest": (0, 0), f"{cpus} busy": (cpus, 0), f"{cpus} niced": (cpus, 19)}
    os.environ.pop("OMP_WAIT_POLICY", None)  # waiting threads do what they do by default
    ratios = (f"{method} / 1" for method in list(MODELS)[1:])
    tables.print_heading("rows", "beside", *(f"{m}, s" for m in MODELS), *ratios, "load")
    with ExitStack() as stack:
        spawn = multiprocessing.get_context("spawn")
        pools = {m: stack.enter_context(ProcessPoolExecutor(1, spawn)) for m in MODELS}
        for n in args.rows:
            measures = {
                m: lambda m=m, n=n: pools[m].submit(mean_seconds, m, n).result() for m in MODELS
            }
            for beside, load in loads.items():
                with busy_processes(*load):
                    times = timing.alternate(measures, args.repeats, warm_up=True)
                least = tables.cells(map(min, times.values()), ".4f")
                ratios = (median(np.divide(times[m], times["1"])) for m in list(MODELS)[1:])
                load_now = f"{os.getloadavg()[0]:.1f}"
                tables.print_row(n, beside, *least, *tables.cells(ratios, ".2f"), load_now)


if __name__ == "__main__":
    main()

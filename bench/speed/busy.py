"""Seconds of fits on a machine at rest and beside busy processes, by one thread and by default.

    python -m bench.speed.busy [--rows N ...] [--repeats N] [--other PYTHON]

Beside the fits run none, then as many busy processes as there are processors, then as many with
the lowest priority. `RFFKernelPowerKMeans` by one thread and by default and scikit-learn's KMeans
(n_init=1) fit in turn, each in a process of its own. The table has the least seconds of each, and
the medians of the ratios of neighbouring fits. --other is the interpreter of an environment with
another version of the package, whose fits are measured beside, by default. Last, passes of several
sizes at rest: the least seconds by one thread and by default.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from bench import commands, tables, timing
from bench.datasets import around
from bench.internals import Fourier, Identity, centered, make_rows, one_pass, ones
from rffpk import RFFKernelPowerKMeans, show_config

PROBLEMS = {200: 8, 2_000: 20, 20_000: 20, 100_000: 20, 1_000_000: 50}  # rows: columns
CLUSTERS = 10
MAIN = (1_000_000, 50, 108)  # rows, columns, frequencies of the largest pass
LEAST_SECONDS = 0.3  # short fits are repeated in a measurement


class Fits:
    """A process that fits one method to the rows of each problem that it is asked for."""

    def __init__(self, method: str, python: str = sys.executable) -> None:
        # waiting threads do what they do by default
        environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
        self.process = subprocess.Popen(
            [python, "-m", "bench.speed.busy", "--serve", method],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def __enter__(self) -> Fits:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait()

    def seconds(self, rows: int) -> float:
        assert self.process.stdin and self.process.stdout
        print(rows, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def serve(method: str) -> None:
    """Answer each number of rows with the mean seconds of a fit."""
    rows, X = 0, np.empty((0, 0))
    model: Any = KMeans(CLUSTERS, n_init=1, random_state=0)
    if method != "KMeans":
        n_jobs = int(method) if method.isdecimal() else None
        model = RFFKernelPowerKMeans(CLUSTERS, n_jobs=n_jobs, random_state=0)
    for line in sys.stdin:
        if int(line) != rows:
            rows, random = int(line), np.random.default_rng(0)
            centers = 0.35 * random.standard_normal((CLUSTERS, PROBLEMS[rows]), dtype=np.float32)
            X = around(centers, rows, random)
            model.fit(X)
        fits, total = 0, 0.0
        while total < LEAST_SECONDS:
            fits, total = fits + 1, total + timing.seconds(partial(model.fit, X))
        print(total / fits, flush=True)


def passes(repeats: int) -> None:
    """The least times of passes; each repeat runs them in turn for some tenths of a second."""
    print()
    tables.print_heading("rows", "columns", "frequencies", "1, µs", "default, µs", "default / 1")
    for n, d, D in ((4096, 20, 0), (2048, 20, 60), (2048, 50, 108), (20_000, 20, 108), MAIN):
        random = np.random.default_rng(0)
        X = random.standard_normal((n, d), dtype=np.float32)
        omega = random.standard_normal((d, D), dtype=np.float32) / d
        maps = [Fourier(omega) if D else Identity(d)]
        rows = centered(make_rows([X], maps, ones(len(X)), 1))
        theta = random.standard_normal((CLUSTERS, 2 * D or d), dtype=np.float32)
        runs = {
            name: partial(
                timing.seconds, partial(one_pass, replace(rows, n_threads=t), theta, -3.0)
            )
            for name, t in (("1", 1), ("default", show_config()["threads"]))
        }
        found = timing.alternate(runs, repeats * max(1, MAIN[0] // n), warm_up=True)
        one, default = (1e6 * min(each) for each in found.values())
        tables.print_row(n, d, D, f"{one:.0f}", f"{default:.0f}", f"{default / one:.2f}")


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
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--other", metavar="PYTHON", type=Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve)
        return
    cpus = os.cpu_count() or 1
    loads = {"at rest": (0, 0), f"{cpus} busy": (cpus, 0), f"{cpus} niced": (cpus, 19)}
    methods = {"1": sys.executable, "default": sys.executable, "KMeans": sys.executable}
    if args.other:
        methods["other default"] = str(args.other)
    tables.print_heading(
        "rows", "beside", *(f"{method}, s" for method in methods),
        *(f"{method} / 1" for method in list(methods)[1:]), "load",
    )  # fmt: skip
    with ExitStack() as stack:
        fits = {m: stack.enter_context(Fits(m, python)) for m, python in methods.items()}
        for rows in args.rows:
            for beside, load in loads.items():
                with busy_processes(*load):
                    measures = {m: partial(fits[m].seconds, rows) for m in fits}
                    found = timing.alternate(measures, args.repeats, warm_up=True)
                least = [f"{min(found[m]):.4f}" for m in found]
                ratios = [f"{median(np.divide(found[m], found['1'])):.2f}" for m in list(found)[1:]]
                tables.print_row(rows, beside, *least, *ratios, f"{os.getloadavg()[0]:.1f}")
    passes(args.repeats)


if __name__ == "__main__":
    main()

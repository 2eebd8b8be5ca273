"""Measure exact kernel methods: a pass beside the machine's rates, and fits of many rows.

A pass: a step on a stored kernel of 5000 rows. The peer: tslearn's KernelKMeans, if it is
installed. Last, fits of many rows (--sizes) beyond the memory limit, which recompute the blocks of
the kernel.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.datasets import make_blobs
from threadpoolctl import threadpool_limits

from bench import commands, tables, timing
from bench.speed.problems import Machine
from bench.timing import seconds
from rffpk import Annealing, KernelPowerKMeans
from rffpk.anneal.kernel_steps import KernelLevel, KernelRows
from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import FitContext, Stage
from rffpk.rows.weights import ones
from rffpk.spaces.kernels import FittedKernel, specification


def data(n: int, dtype: str, k: int = 20, d: int = 20) -> np.ndarray:
    X, _ = make_blobs(n, d, centers=k, cluster_std=4.0, random_state=0)
    return X.astype(dtype)


def pass_seconds(n: int, k: int, dtype: str, threads: int, repeats: int) -> float:
    """Measure the median seconds of a whole step on a stored kernel."""
    random = np.random.RandomState(0)
    spec = specification("rbf", "kernel")
    kernel = FittedKernel(data(n, dtype), spec, n_threads=threads, shift=True, weight=ones(n))
    W = np.eye(n)[random.choice(n, k, replace=False)]
    context = FitContext(random, n_threads=threads)
    rows = KernelRows([kernel], ones(kernel.n), PowerMean(), context)
    level = KernelLevel(rows, context)
    step = partial(level.follow, level.first(W, rows.equal), Stage("anneal", -3.0))
    step()
    return timing.median(partial(seconds, step), repeats)


def speed(threads: int, repeats: int = 7) -> None:
    n, k = 5000, 20
    tables.print_heading("type", "s a pass", "Gflop/s", "of gemm", "GB/s", "of reading")
    for dtype in ("float64", "float32"):
        machine = Machine(dtype, threads)
        machine.gemm()
        with threadpool_limits(1, user_api="blas"):  # as in a fit
            took = pass_seconds(n, k, dtype, threads, repeats)
        gemm, read = timing.median(machine.gemm, 5), timing.median(machine.read, 5)
        rate = 2 * n * n * k / took
        bandwidth = n * n * np.dtype(dtype).itemsize / took
        shares = f"{rate / gemm:.2f}", f"{bandwidth / 1e9:.1f}", f"{bandwidth / read:.2f}"
        tables.print_row(dtype, f"{took:.4f}", f"{rate / 1e9:.0f}", *shares)


def large_fit(n: int, passes: int) -> tuple[bool, int, float, float, float]:
    """Return whether kernels were stored, passes, seconds, and peak megabytes before and after."""
    X = data(n, "float32")
    annealing = Annealing(start=-5.0, factor=1.5, passes=2)
    common = {"n_init": 1, "max_iter": passes, "cache": 1 << 28, "random_state": 0}
    model = KernelPowerKMeans(20, annealing=annealing, **common)
    before = timing.peak_memory()
    took = seconds(partial(model.fit, X))
    return model.cache_, model.n_iter_, took, before, timing.peak_memory()


def main() -> None:
    args = commands.arguments(__doc__, threads=2, sizes=(10_000, 20_000, 50_000))
    speed(args.threads)
    print()
    tables.print_heading("n", "stored", "s, 10 passes and seeding", "MB before", "peak MB")
    for n in args.sizes:
        stored, passes, took, before, peak = timing.in_own_process(large_fit, n, 10)
        tables.print_row(n, stored, f"{took:.1f} ({passes})", f"{before:.0f}", f"{peak:.0f}")


if __name__ == "__main__":
    main()

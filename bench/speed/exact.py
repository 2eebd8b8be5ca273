"""Seconds of exact kernel methods: a pass relative to the machine's rates, a fit and that of a
peer.

    python -m bench.speed.exact [--threads N] [--sizes N ...]

A pass: a step on a stored kernel of 5000 rows. The peer: tslearn's KernelKMeans, if it is
installed. Last, fits of many rows (--sizes) beyond the memory limit, which recompute the blocks of
the kernel.
"""

from __future__ import annotations

import warnings
from functools import partial
from statistics import median

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from bench import commands, tables, timing
from bench.internals import FitContext, KernelLevel, KernelRows, PowerMean, Stage, ones
from bench.scores import kernel_objective
from bench.speed.problems import Machine
from bench.timing import seconds
from rffpk import Annealing, KernelKMeans, KernelPowerKMeans
from rffpk.spaces.kernels import FittedKernel, specification


def data(n: int, dtype: str, k: int = 20, d: int = 20) -> np.ndarray:
    X, _ = make_blobs(n, d, centers=k, cluster_std=4.0, random_state=0)
    return X.astype(dtype)


def pass_seconds(n: int, k: int, dtype: str, threads: int, repeats: int) -> float:
    """Median seconds of a whole step on a stored kernel."""
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
        tables.print_row(
            dtype,
            f"{took:.4f}",
            f"{rate / 1e9:.0f}",
            f"{rate / gemm:.2f}",
            f"{bandwidth / 1e9:.1f}",
            f"{bandwidth / read:.2f}",
        )


def peer(threads: int) -> None:
    """Fits of both with the same kernel and the same numbers of starts and iterations."""
    try:
        from tslearn.clustering import KernelKMeans as Peer
    except ImportError:
        print("\ntslearn is not installed: its KernelKMeans is left out.")
        return
    print()
    tables.print_heading(
        "n", "k", "starts", "iterations", "tslearn, s", "ours, s", "ratio", "objectives"
    )
    for n, k, n_init in ((1000, 10, 1), (3000, 20, 8), (5000, 20, 1)):
        X = data(n, "float64", k)
        gamma = 1 / 800
        common = {"n_init": n_init, "max_iter": 10, "random_state": 0}

        models = {
            "tslearn": Peer(k, kernel="rbf", kernel_params={"gamma": gamma}, tol=0, **common),
            "ours": KernelKMeans(k, gamma=gamma, init="random", n_jobs=threads, **common),
        }
        K = rbf_kernel(X, gamma=gamma)
        ends = [kernel_objective(K, model.fit(X).labels_, k) for model in models.values()]
        fits = {
            name: partial(timing.pinned, partial(seconds, partial(model.fit, X)), threads)
            for name, model in models.items()
        }
        a, b = map(median, timing.alternate(fits, 3).values())
        cells = (f"{a:.2f}", f"{b:.2f}", f"{a / b:.1f}", f"{ends[0]:.4f}, {ends[1]:.4f}")
        tables.print_row(n, k, n_init, 10, *cells)


def large_fit(n: int, passes: int) -> tuple[bool, int, float, float, float]:
    """Whether kernels were stored, passes, seconds, and the peak megabytes before and after."""
    warnings.simplefilter("ignore")
    X = data(n, "float32")
    model = KernelPowerKMeans(
        20,
        n_init=1,
        annealing=Annealing(start=-5.0, factor=1.5, passes=2),
        max_iter=passes,
        cache=1 << 28,
        random_state=0,
    )
    before = timing.peak_memory()
    took = seconds(partial(model.fit, X))
    return model.cache_, model.n_iter_, took, before, timing.peak_memory()


def large(sizes: list[int]) -> None:
    """Fits beyond the memory limit, with recomputed blocks."""
    print()
    tables.print_heading("n", "stored", "s, 10 passes and seeding", "MB before", "peak MB")
    for n in sizes:
        stored, passes, took, before, peak = timing.in_own_process(large_fit, n, 10)
        tables.print_row(n, stored, f"{took:.1f} ({passes})", f"{before:.0f}", f"{peak:.0f}")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = commands.parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 20_000, 50_000])
    args = parser.parse_args()
    speed(args.threads)
    peer(args.threads)
    large(args.sizes)


if __name__ == "__main__":
    main()

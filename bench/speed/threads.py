"""Measure default fits by several threads beside one, and the part that one thread does alone.

Float32 rows of ten Gaussian clusters that overlap, 20 columns (two views of ten each for several
kernels), 5000 rows for exact kernels. Fits by one thread and by --threads take turns; "2 / 1" are
the least seconds of each, which mean something on an idle machine only. "Alone" is the part of the
CPU seconds of a fit that is outside of loops which threads share, or in loops too short for that,
by the first number of threads. Other processes change it little. T threads take at least
(1 + (T - 1) alone) / T of the time of one.
"""

from __future__ import annotations

import time
from threading import current_thread, main_thread
from typing import Any

import numpy as np

import rffpk
from bench import commands, tables
from bench.datasets import mixture
from bench.timing import clocks
from rffpk import _core

K, EXACT_ROWS = 10, 5000
SHARED = 1.5e-4  # CPU seconds of a loop that is worth waking a helper
MODELS: dict[str, Any] = {
    **{name: getattr(rffpk, name)(K, random_state=0) for name in (
        "PowerKMeans", "FuzzyCMeans", "RFFKernelPowerKMeans", "RFFMultiKernelPowerKMeans",
        "DiffusionPowerKMeans", "KernelPowerKMeans",
    )},
    'PowerKMeans("auto")': rffpk.PowerKMeans("auto", random_state=0),
    'DiffusionPowerKMeans("auto")': rffpk.DiffusionPowerKMeans("auto", random_state=0),
}  # fmt: skip


def rows(name: str, n: int) -> Any:
    X = mixture(n, 1.4, K, 20)
    if name.startswith("RFFMulti"):
        return [np.ascontiguousarray(X[:, :10]), np.ascontiguousarray(X[:, 10:])]
    return X


class Loops:
    """CPU seconds of the process in the loops that the core shares among threads."""

    NAMES = (
        "call_all", "csr_product", "fused_pass", "near_pass", "nearest_in_cells", "skinny_product",
        "squares_of_pairs", "take_steps", "weigh_products",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seconds = 0.0
        self.began: float | None = None
        self.before = {name: getattr(_core, name) for name in self.NAMES}

    def __enter__(self) -> Loops:
        for name, function in self.before.items():
            setattr(_core, name, self.counted(function))
        return self

    def __exit__(self, *_: object) -> None:
        for name, function in self.before.items():
            setattr(_core, name, function)

    def counted(self, function: Any) -> Any:
        def run(*args: Any, **keywords: Any) -> Any:
            if self.began is not None or current_thread() is not main_thread():  # within another
                return function(*args, **keywords)
            self.began = began = time.process_time()
            try:
                return function(*args, **keywords)
            finally:
                took = time.process_time() - began
                self.seconds += took if took >= SHARED else 0.0
                self.began = None

        return run

    def outside(self) -> float:
        """Return the time of a clock that stands in loops."""
        return (time.process_time() if self.began is None else self.began) - self.seconds


def fitted(name: str, X: Any, threads: int) -> tuple[float, float, float]:
    """Return seconds, CPU seconds, and CPU seconds outside of loops."""
    model = MODELS[name].set_params(n_jobs=threads)
    with Loops() as loops:
        before = (*clocks(), loops.outside())
        model.fit(X)
        wall, cpu, outside = np.subtract((*clocks(), loops.outside()), before)
    return wall, cpu, outside


def main() -> None:
    args = commands.arguments(
        __doc__, rows=(20_000, 100_000), threads=(2,), only=commands.Names(MODELS), turns=5
    )
    ratios = [f"{threads} / 1" for threads in args.threads]
    tables.print_heading("class", "rows", "one thread, s", *ratios, "CPU s", "alone")
    for name in args.only:
        for n in [EXACT_ROWS] if name == "KernelPowerKMeans" else args.rows:
            X = rows(name, n)
            fitted(name, rows(name, 1000), max(args.threads))  # imports
            turns = [
                [fitted(name, X, threads) for threads in (1, *args.threads)]
                for _ in range(args.turns)
            ]
            one, *several = np.array(turns).transpose(1, 0, 2)
            least = one[:, 0].min()
            shares = [times[:, 0].min() / least for times in several]
            alone = np.median(several[0][:, 2] / several[0][:, 1])
            numbers = least, *shares, several[0][:, 1].min(), alone
            tables.print_row(name, n, *tables.cells(numbers, ".2f"))


if __name__ == "__main__":
    main()

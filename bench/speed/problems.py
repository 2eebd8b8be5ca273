"""Define the problems of the speed benchmarks, and lower bounds of the time of a pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import threadpoolctl

from bench.datasets import around
from bench.timing import seconds
from rffpk import _core


@dataclass(frozen=True)
class Problem:
    """A pass over n rows of d columns, with D frequencies (0: identity features) and k clusters."""

    n: int
    d: int
    D: int
    k: int

    @property
    def name(self) -> str:
        features = f"D={self.D}" if self.D else "identity"
        return f"n={self.n} d={self.d} {features} k={self.k}"

    @property
    def width(self) -> int:
        return 2 * self.D or self.d

    @property
    def flops(self) -> float:
        """Count the floating-point operations of the projection, the distances and the sums."""
        return self.n * (2.0 * self.d * self.D + 4.0 * self.width * self.k)

    def rows(self, dtype: str) -> np.ndarray:
        """Draw k Gaussians that overlap, so that no peer converges while it is timed."""
        random = np.random.default_rng(0)
        centers = random.standard_normal((self.k, self.d), dtype=dtype) / np.sqrt(self.d)
        return around(centers.astype(dtype), self.n, random)


# Wide problems have fewer rows, so that the stored features of peers fit in memory; a pass is
# linear in the rows.
PROBLEMS = [
    Problem(1_000_000, 50, 108, 10),
    Problem(1_000_000, 3, 24, 2),
    Problem(1_000_000, 10, 108, 10),
    Problem(400_000, 50, 108, 50),
    Problem(100_000, 200, 595, 100),
    Problem(200_000, 784, 108, 10),
    Problem(1_000_000, 16, 0, 10),
    Problem(1_000_000, 64, 0, 50),
    Problem(100_000, 64, 0, 10),
]


class Machine:
    """Rates of this machine, measured in each call, as they change on shared hardware."""

    def __init__(self, dtype: str, threads: int) -> None:
        random = np.random.default_rng(0)
        self.threads = threads
        self.a = random.standard_normal((2000, 2000)).astype(dtype)
        self.product = np.empty_like(self.a)
        self.quarters = random.uniform(-4, 4, 16384).astype(dtype)
        self.memory = np.ones(1 << 26, dtype=np.float32)

    def gemm(self) -> float:
        """Measure flops a second of NumPy's BLAS in a product of 2000 x 2000 matrices."""
        with threadpoolctl.threadpool_limits(self.threads, user_api="blas"):
            took = seconds(lambda: np.matmul(self.a, self.a, out=self.product))
        return 2 * len(self.a) ** 3 / took

    def sincos(self) -> float:
        """Measure sine-cosine pairs a second of the core on data in cache, for all threads."""

        def calls(n: int) -> float:
            x, out = self.quarters[:n], np.empty((2, n), dtype=self.quarters.dtype)
            return seconds(lambda: [_core.vecmath("sincos", x, out) for _ in range(1000)])

        calls(16384)  # warm up
        return self.threads * 1000 * 16384 / (calls(16384) - calls(1))

    def read(self) -> float:
        """Measure bytes a second read from memory."""
        parts = np.array_split(self.memory, self.threads)
        with ThreadPoolExecutor(self.threads) as pool:
            return self.memory.nbytes / seconds(lambda: list(pool.map(np.max, parts)))

    def lower_bound(self, problem: Problem) -> float:
        """Return a lower bound of the seconds of a pass.

        It is the time of its products at the rate of gemm and of its sines and cosines, or the time
        of reading X if that is longer.
        """
        self.gemm()  # warm up
        work = problem.flops / self.gemm()
        if problem.D:
            work += problem.n * problem.D / self.sincos()
        return max(work, problem.n * problem.d * self.a.itemsize / self.read())

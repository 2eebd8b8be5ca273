"""The problems of the speed benchmarks, and lower bounds for the time of a pass over them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import threadpoolctl

from bench.datasets import around
from bench.internals import _core
from bench.timing import seconds


@dataclass(frozen=True)
class Problem:
    """n rows of d columns, D frequencies (0: identity features), k clusters."""

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
        """Floating-point operations of the projection, the distances and the sums."""
        return self.n * (2.0 * self.d * self.D + 4.0 * self.width * self.k)

    def rows(self, dtype: str) -> np.ndarray:
        """A mixture of k Gaussians that overlap, so that no peer converges while it is timed."""
        random = np.random.default_rng(0)
        centers = random.standard_normal((self.k, self.d), dtype=dtype) / np.sqrt(self.d)
        return around(centers.astype(dtype), self.n, random)


# The first is the one that the targets are stated for. Wide problems have fewer rows, so that
# the peers' stored features fit in memory; a pass is linear in them.
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
        """Flops a second of NumPy's BLAS in a product of 2000 x 2000 matrices."""
        with threadpoolctl.threadpool_limits(self.threads, user_api="blas"):
            return (
                2 * len(self.a) ** 3 / seconds(lambda: np.matmul(self.a, self.a, out=self.product))
            )

    def sincos(self) -> float:
        """Sine-cosine pairs a second of the core's routine on data in cache, for all threads."""

        def calls(n: int) -> float:
            x, out = self.quarters[:n], np.empty((2, n), dtype=self.quarters.dtype)
            return seconds(lambda: [_core.vecmath("sincos", x, out) for _ in range(1000)])

        calls(16384)  # warm up
        return self.threads * 1000 * 16384 / (calls(16384) - calls(1))

    def read(self) -> float:
        """Bytes a second read from memory."""
        parts = np.array_split(self.memory, self.threads)
        with ThreadPoolExecutor(self.threads) as pool:
            return self.memory.nbytes / seconds(lambda: list(pool.map(np.max, parts)))

    def lower_bound(self, problem: Problem) -> float:
        """A lower bound of the seconds of a pass: its products at the rate of gemm and its sines
        and cosines, or the reading of X if that is longer."""
        self.gemm()  # warm up
        work = problem.flops / self.gemm()
        if problem.D:
            work += problem.n * problem.D / self.sincos()
        return max(work, problem.n * problem.d * self.a.itemsize / self.read())

"""Fits of 30 passes with features stored, made anew, and as cache="auto" decides.

`python -m bench.stored` prints a Markdown table.
"""

from __future__ import annotations

import statistics
import warnings
from functools import partial

import numpy as np

from bench.problems import Problem, seconds
from rffpk import RFFKernelPowerKMeans

SHAPES = [(784, 108, 10), (944, 201, 20), (50, 108, 10)]  # d, D, k
CACHES: list[bool | str] = [True, False, "auto"]


def fit(problem: Problem, X: np.ndarray, sampling: str, cache: bool | str) -> RFFKernelPowerKMeans:
    return RFFKernelPowerKMeans(
        problem.k,
        n_frequencies=problem.D,
        sampling=sampling,
        cache=cache,
        s0=-5.0,
        anneal_factor=1.1,
        anneal_every=2,
        sample=None,
        n_init=1,
        max_iter=30,
        random_state=0,
    ).fit(X)


def main(repeats: int = 5) -> None:
    warnings.simplefilter("ignore")
    print("| d | D | k | sampling | stored, s | made anew, s | auto, s | auto stored |")
    print("|---" * 8 + "|")
    for shape in SHAPES:
        problem = Problem(60_000, *shape)
        X = problem.rows("float32")
        for sampling in ("structured", "orthogonal"):
            times: dict[bool | str, list[float]] = {cache: [] for cache in CACHES}
            for _ in range(repeats):
                for cache in CACHES:
                    times[cache].append(seconds(partial(fit, problem, X, sampling, cache)))
            cells = " | ".join(f"{statistics.median(times[cache]):.3f}" for cache in CACHES)
            stored = fit(problem, X, sampling, "auto").cache_
            print(
                f"| {problem.d} | {problem.D} | {problem.k} | {sampling} | {cells} | {stored} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

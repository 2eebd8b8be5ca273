"""Seconds of fits of 30 passes with stored features, computed features, and cache="auto".

    python -m bench.speed.stored [--rows N] [--repeats N]

Float32 rows of three widths; medians of interleaved fits.
"""

from __future__ import annotations

import warnings
from functools import partial
from statistics import median

import numpy as np

from bench import commands, tables
from bench.speed.problems import Problem
from bench.timing import alternate, seconds
from rffpk import Annealing, RFFKernelPowerKMeans

SHAPES = [(784, 108, 10), (944, 201, 20), (50, 108, 10)]  # d, D, k
CACHES: list[bool | str] = [True, False, "auto"]


def fit(problem: Problem, X: np.ndarray, sampling: str, cache: bool | str) -> RFFKernelPowerKMeans:
    return RFFKernelPowerKMeans(
        problem.k,
        n_frequencies=problem.D,
        sampling=sampling,
        cache=cache,
        annealing=Annealing(start=-5.0, factor=1.1, passes=2),
        sample=None,
        n_init=1,
        max_iter=30,
        random_state=0,
    ).fit(X)


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading(
        "d", "D", "k", "sampling", "stored, s", "computed, s", "auto, s", "auto stored"
    )
    for shape in SHAPES:
        problem = Problem(args.rows, *shape)
        X = problem.rows("float32")
        for sampling in ("structured", "orthogonal"):
            fits = {c: partial(seconds, partial(fit, problem, X, sampling, c)) for c in CACHES}
            times = alternate(fits, args.repeats)
            stored = fit(problem, X, sampling, "auto").cache_
            cells = [f"{median(times[cache]):.3f}" for cache in CACHES]
            tables.print_row(*shape, sampling, *cells, stored)


if __name__ == "__main__":
    main()

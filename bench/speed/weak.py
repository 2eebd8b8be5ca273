"""Weak mixtures of many clusters: fits with passes over near centroids, and without.

    python -m bench.speed.weak [--rows N] [--columns D] [--clusters K] [--apart X ...]
        [--metrics METRIC ...] [--threads N]

Float32 rows with noise one around centers whose spread in each column is `apart`. Default fits of
PowerKMeans with one seed: CPU seconds of each, and the objective with near centroids over that
without.
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np

from bench import commands, tables
from bench.datasets import around
from bench.internals import hard_passes
from bench.timing import clocks
from rffpk import PowerKMeans


def fitted(X: np.ndarray, args: argparse.Namespace, metric: str, near: bool) -> tuple[float, float]:
    """CPU seconds and the objective."""
    work = hard_passes.LEAST_WORK
    hard_passes.LEAST_WORK = work if near else math.inf  # type: ignore[assignment]
    try:
        before = clocks()
        model = PowerKMeans(args.clusters, metric=metric, random_state=0, n_jobs=args.threads)
        inertia = model.fit(X).inertia_
        return float((clocks() - before)[1]), inertia
    finally:
        hard_passes.LEAST_WORK = work


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--apart", type=float, nargs="+", default=[0.1, 0.2, 0.3, 0.4, 0.6, 1.0])
    parser.add_argument("--metrics", nargs="+", default=["euclidean", "cosine"])
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("metric", "apart", "near, CPU s", "without, CPU s", "objective ratio")
    for apart in args.apart:
        random = np.random.default_rng(0)
        shape = args.clusters, args.columns
        centers = np.float32(apart) * random.standard_normal(shape, dtype=np.float32)
        X = around(centers, args.rows, random)
        for metric in args.metrics:
            near, without = (fitted(X, args, metric, near) for near in (True, False))
            ratio = near[1] / without[1]
            tables.print_row(metric, apart, f"{near[0]:.1f}", f"{without[0]:.1f}", f"{ratio:.4f}")


if __name__ == "__main__":
    main()

"""Weak mixtures of many clusters: fits with passes over near centroids, and without.

    python -m bench.speed.weak [--rows N] [--columns D] [--clusters K] [--apart X ...]
        [--metrics METRIC ...] [--seeds N] [--threads N]

Float32 rows with noise one around centers whose spread in each column is `apart`. Default fits of
PowerKMeans: means over seeds of the CPU seconds of each, and of the objective with near centroids
over that without; and the largest objective over the least, of each alone.

By .3, between separations at which hardly any cluster is found and at which all are, the last
passes find one cluster after another, and small differences before them grow: fits without near
centroids end up to .15 % apart over seeds, so that ratios of one seed say no more than that.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from bench import commands, tables
from bench.datasets import around
from bench.internals import TUNING
from bench.timing import clocks
from rffpk import PowerKMeans


def fitted(
    X: np.ndarray, args: argparse.Namespace, metric: str, near: bool
) -> tuple[float, np.ndarray]:
    """Mean CPU seconds, and the objective of each seed."""
    default = TUNING.hardpasses
    if not near:
        TUNING.hardpasses = replace(default, near_work=sys.maxsize)
    try:
        before = clocks()
        new = partial(PowerKMeans, args.clusters, metric=metric, n_jobs=args.threads)
        found = [new(random_state=seed).fit(X).inertia_ for seed in range(args.seeds)]
        return float((clocks() - before)[1]) / args.seeds, np.array(found)
    finally:
        TUNING.hardpasses = default


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--columns", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--apart", type=float, nargs="+", default=[0.1, 0.2, 0.3, 0.4, 0.6, 1.0])
    parser.add_argument("--metrics", nargs="+", default=["euclidean", "cosine"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    seconds = "near, CPU s", "without, CPU s"
    tables.print_heading("metric", "apart", *seconds, "objective ratio", "largest over least")
    for apart in args.apart:
        random = np.random.default_rng(0)
        shape = args.clusters, args.columns
        centers = np.float32(apart) * random.standard_normal(shape, dtype=np.float32)
        X = around(centers, args.rows, random)
        for metric in args.metrics:
            seconds, found = zip(*(fitted(X, args, metric, near) for near in (True, False)))
            ratio = f"{found[0].mean() / found[1].mean():.4f}"
            spread = ", ".join(f"{each.max() / each.min():.4f}" for each in found)
            tables.print_row(metric, apart, *(f"{each:.1f}" for each in seconds), ratio, spread)


if __name__ == "__main__":
    main()

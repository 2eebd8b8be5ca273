"""ONKC with the positive eigenvalues alone against full decompositions.

    python -m bench.speed.onkc [--data DIR] [--iterations N] [--sets NAME ...]

CPU seconds on one thread of fits of `--iterations` iterations and the k-means after them, by rho,
in two ways in turn: with all eigenvectors in each iteration, and with those of positive eigenvalues
by Lanczos' method where they are few. Beside them the number of positive eigenvalues at the end and
the largest relative difference of the objectives of an iteration. Without --data: two Gaussian
views of 2000 rows about ten centers.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from bench import commands, tables, timing
from bench.datasets import MULTI_VIEW, gaussian_views, prepared_views
from bench.internals import TUNING, baselines

RHOS = (2.0**-6, 0.25, 1.0)
SETS = ("prokaryotic", "proteinfold", "leaves100", "mfeat", "landuse21")


def fit(views: list[np.ndarray], k: int, rho: float, few: float, iterations: int) -> tuple:
    """CPU seconds, objectives, and the number of positive eigenvalues of the last B."""
    before, TUNING.fusion = TUNING.fusion, replace(TUNING.fusion, lanczos_part=few)
    counts = []
    part = baselines.positive_part

    def counted(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        counts.append(int((values > 0).sum()))
        return part(values, vectors)

    baselines.positive_part = counted
    try:
        started = timing.clocks()
        model = baselines.ONKC(k, rho=rho, max_iter=iterations, tol=0.0, random_state=0, n_jobs=1)
        model.fit(views)
        took = timing.clocks() - started
    finally:
        TUNING.fusion, baselines.positive_part = before, part
    return took[1], np.array([record["objective"] for record in model.history_]), counts[-1]


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser, required=False)
    parser.add_argument("--sets", nargs="+", choices=MULTI_VIEW, default=SETS)
    parser.add_argument("--iterations", type=int, default=8)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("set (n, k)", "rho", "positive", "all, s", "few, s", "ratio", "difference")
    for name in args.sets if args.data else ["generated"]:
        views, y = prepared_views(args.data, name) if args.data else gaussian_views(2000, (20, 30))
        k = len(np.unique(y))
        share = TUNING.fusion.lanczos_part
        for rho in RHOS:
            every, expected, _ = fit(views, k, rho, 0.0, args.iterations)
            few, found, positive = fit(views, k, rho, share, args.iterations)
            tables.print_row(
                f"{name} ({len(y)}, {k})", f"{rho:g}", positive, f"{every:.2f}", f"{few:.2f}",
                f"{every / few:.1f}", f"{np.abs(found / expected - 1).max():.0e}",
            )  # fmt: skip


if __name__ == "__main__":
    main()

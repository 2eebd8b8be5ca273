"""Measure ONKC with the positive eigenvalues alone, beside full decompositions.

    python -m bench.speed.onkc [--data DIR] [--iterations N] [--sets NAME ...]

CPU seconds on one thread of fits of `--iterations` iterations and the k-means after them, by rho.
Fits compute all eigenvectors in each iteration or, in turn, the eigenvectors of positive
eigenvalues alone, by Lanczos' method where they are few. Beside them the number of positive
eigenvalues at the end and the largest relative difference of the objectives of an iteration.
Without --data: two Gaussian views of 2000 rows about ten centers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench import commands, tables
from bench.datasets import MULTI_VIEW, gaussian_views, prepared_views
from bench.internals import TUNING, baselines
from bench.timing import cpu_timed

RHOS = (2.0**-6, 0.25, 1.0)
SETS = ("prokaryotic", "proteinfold", "leaves100", "mfeat", "landuse21")


def fit(views: list[np.ndarray], k: int, rho: float, part: float, iterations: int) -> tuple:
    """Return CPU seconds, objectives, and the number of positive eigenvalues of the last B."""
    before, TUNING.fusion = TUNING.fusion, replace(TUNING.fusion, lanczos_part=part)
    counts, positive_part = [], baselines.positive_part

    def counted(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        counts.append(int((values > 0).sum()))
        return positive_part(values, vectors)

    baselines.positive_part = counted
    model = baselines.ONKC(k, rho=rho, max_iter=iterations, tol=0.0, random_state=0, n_jobs=1)
    try:
        seconds, _ = cpu_timed(lambda: model.fit(views))
    finally:
        TUNING.fusion, baselines.positive_part = before, positive_part
    return seconds, np.array([record["objective"] for record in model.history_]), counts[-1]


def main() -> None:
    args = commands.arguments(
        __doc__, data=commands.DATA, sets=commands.Names(MULTI_VIEW, SETS), iterations=8
    )
    tables.print_heading("set (n, k)", "rho", "positive", "all, s", "few, s", "ratio", "difference")
    for name in args.sets if args.data else ["generated"]:
        views, y = prepared_views(args.data, name) if args.data else gaussian_views(2000, (20, 30))
        k = len(np.unique(y))
        share = TUNING.fusion.lanczos_part
        for rho in RHOS:
            slow, expected, _ = fit(views, k, rho, 0.0, args.iterations)
            fast, objectives, positive = fit(views, k, rho, share, args.iterations)
            tables.print_row(
                f"{name} ({len(y)}, {k})", f"{rho:g}", positive, f"{slow:.2f}", f"{fast:.2f}",
                f"{slow / fast:.1f}", f"{np.abs(objectives / expected - 1).max():.0e}",
            )  # fmt: skip


if __name__ == "__main__":
    main()

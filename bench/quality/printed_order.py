"""Results of Algorithm 2 in our order of the steps and in the printed one.

    python -m bench.quality.printed_order      # in the repository's root: needs tests/

Ours computes the typicality first and the weights from it; the printed Algorithm 2 computes the
weights from the typicality of the previous iteration. Both run from the same centroids at a fixed s
until they converge; the printed one begins with the typicality at those centroids, or with the
value one for all rows. The table shows how often they converge to different points, which objective
is lower then, and the largest relative rise of either objective in an iteration.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
from sklearn.datasets import make_blobs
from tests.printed import ip_rff_mkpkm_step

from bench import commands, tables
from bench.internals import squared_distances, typicality
from rffpk import Annealing, RFFMultiKernelPowerKMeans, Typicality

K, S, RUNS = 6, -6.0, 20


def views(seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    first, y = make_blobs(300, 4, centers=K, cluster_std=3.0, random_state=seed)
    second = np.eye(K)[y] @ random.standard_normal((K, 6)) * 2 + random.standard_normal((300, 6))
    return [first, second]


def compare(m: float, seed: int, ones: bool) -> tuple[float, float, float]:
    """Objectives of both results, and the largest relative rise."""
    xs = views(seed)
    ours = RFFMultiKernelPowerKMeans(
        K, typicality=Typicality(m=m, eta="mean"), annealing=Annealing(start=S, end=S, passes=1),
        tol=1e-10, max_iter=5000, sample=None, init="random", random_state=seed, kernels=None,
    )  # fmt: skip
    start = ours.set_params(max_iter=1, tol=1.0).fit(xs).cluster_centers_
    ours.set_params(max_iter=5000, tol=1e-10, init=lambda *_, **__: start).fit(xs)
    phis = [mapped.transform(x) for mapped, x in zip(ours.feature_maps_, xs)]
    theta, alpha = np.split(start, 2, axis=1), np.full(2, 0.5)
    eta = np.tile(ours.eta_, (K, 1))
    gaps = [squared_distances(phi, t) for phi, t in zip(phis, theta)]
    u = typicality(0.5 * (gaps[0] + gaps[1]), eta @ alpha, m)
    u = np.ones_like(u) if ones else u
    printed: list[float] = []
    while len(printed) < 2 or abs(printed[-2] - printed[-1]) > 1e-13 * abs(printed[-1]):
        u, theta, alpha, value = ip_rff_mkpkm_step(phis, u, theta, alpha, eta, ours.lambda_, S, m)
        printed.append(value + ours.lambda_ * np.log(2))  # eq. (20) does not have this constant
    passes = [record["objective"] for record in ours.history_ if "s" in record]
    rise = max(np.diff(values).max() / abs(values[-1]) for values in (passes, printed))
    return ours.objective_, printed[-1], rise


def main() -> None:
    commands.parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading(
        "m", "first typicality", "runs", "different results", "ours is lower", "largest rise"
    )
    for m, ones in itertools.product((1.2, 1.5, 2.0, 3.0), (False, True)):
        ends = np.array([compare(m, seed, ones) for seed in range(RUNS)])
        apart = np.abs(ends[:, 0] - ends[:, 1]) > 1e-7 * np.abs(ends[:, 0])
        lower = apart & (ends[:, 0] < ends[:, 1])
        first = "one" if ones else "of the start"
        rise = f"{ends[:, 2].max():.1e}"
        tables.print_row(m, first, RUNS, apart.sum(), lower.sum(), rise)


if __name__ == "__main__":
    main()

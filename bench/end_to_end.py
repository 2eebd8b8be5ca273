"""A whole fit against RBFSampler + KMeans of scikit-learn: `python -m bench.end_to_end`.

10^6 x 50 rows, k = 10, D = 108, float32, one gamma for both, scikit-learn's defaults with
n_init=1. The objective is that of kernel k-means of both label sets, in one feature map that
neither side used, on 100 000 of the rows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import normalized_mutual_info_score

from bench.objectives import objective
from rffpk import RandomFourierFeatures, RFFKernelPowerKMeans

D, COLUMNS, CLUSTERS = 108, 50, 10
JUDGED_ROWS = 100_000


def mixture(n: int, apart: float) -> np.ndarray:
    random = np.random.default_rng(0)
    centers = apart * random.standard_normal((CLUSTERS, COLUMNS), dtype=np.float32)
    X = random.standard_normal((n, COLUMNS), dtype=np.float32)
    X += centers[random.integers(CLUSTERS, size=n)]
    return X


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--apart",
        type=float,
        default=0.35,
        help="spread of the centres in each column, in standard deviations: at 0.35 they overlap",
    )
    args = parser.parse_args()
    X = mixture(args.rows, args.apart)
    gamma = RandomFourierFeatures(D).fit(X[:10_000]).gamma_
    judge = RandomFourierFeatures(1024, gamma=gamma, random_state=1234)
    phi = judge.fit_transform(X[:JUDGED_ROWS])
    print("| seed | fit, s | sampler, s | KMeans, s | both / fit | objective: fit / KMeans | NMI |")
    print("|---" * 7 + "|")
    for seed in range(args.repeats):
        started = time.perf_counter()
        ours = RFFKernelPowerKMeans(CLUSTERS, gamma=gamma, n_frequencies=D, random_state=seed).fit(
            X
        )
        fitted = time.perf_counter()
        sampler = RBFSampler(gamma=gamma, n_components=2 * D, random_state=seed)
        features = sampler.fit_transform(X)
        sampled = time.perf_counter()
        theirs = KMeans(CLUSTERS, n_init=1, random_state=seed).fit(features)
        ended = time.perf_counter()
        del features
        values = [objective(phi, m.labels_[:JUDGED_ROWS]) for m in (ours, theirs)]
        agreement = normalized_mutual_info_score(ours.labels_, theirs.labels_)
        print(
            f"| {seed} | {fitted - started:.2f} | {sampled - fitted:.2f} | {ended - sampled:.2f} | "
            f"{(ended - fitted) / (fitted - started):.1f} | {values[0] / values[1]:.5f} | "
            f"{agreement:.3f} |",
            flush=True,
        )
        full = [r for r in ours.history_ if r["rows"] == args.rows and "s" in r]
        print(f"passes over all rows: {len(full)}; scikit-learn: {theirs.n_iter_}")


if __name__ == "__main__":
    main()

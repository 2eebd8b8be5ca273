"""A whole fit against RBFSampler + KMeans of scikit-learn: `python -m bench.end_to_end`.

10^6 x 50 rows, k = 10, D = 108, float32, one gamma for both, scikit-learn's defaults with
n_init=1. The objective is that of kernel k-means of both label sets, in one feature map that
neither side used, on 100 000 of the rows.
"""

from __future__ import annotations

import argparse
import time

from sklearn.cluster import KMeans
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import normalized_mutual_info_score

from bench.objectives import objective
from bench.problems import Problem
from rffpk import RandomFourierFeatures, RFFKernelPowerKMeans

JUDGED_ROWS = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    problem = Problem(args.rows, 50, 108, 10)
    X = problem.rows("float32")
    gamma = RandomFourierFeatures(problem.D).fit(X[:10_000]).gamma_
    judge = RandomFourierFeatures(1024, gamma=gamma, random_state=1234)
    phi = judge.fit_transform(X[:JUDGED_ROWS])
    print("| seed | fit, s | sampler, s | KMeans, s | both / fit | objective: fit / KMeans | NMI |")
    print("|---" * 7 + "|")
    for seed in range(args.repeats):
        started = time.perf_counter()
        ours = RFFKernelPowerKMeans(
            problem.k, gamma=gamma, n_frequencies=problem.D, random_state=seed
        ).fit(X)
        fitted = time.perf_counter()
        sampler = RBFSampler(gamma=gamma, n_components=2 * problem.D, random_state=seed)
        features = sampler.fit_transform(X)
        sampled = time.perf_counter()
        theirs = KMeans(problem.k, n_init=1, random_state=seed).fit(features)
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

"""Seconds and objective of a whole fit against RBFSampler + KMeans of scikit-learn.

    python -m bench.speed.end_to_end [--rows N] [--repeats N] [--apart X]

10^6 x 50 rows, k = 10, D = 108, float32, the same gamma for both, scikit-learn's defaults with
n_init=1. The objective is that of kernel k-means for the labels of each, in one feature map that
neither used, on 100 000 of the rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import normalized_mutual_info_score

from bench import commands, tables
from bench.datasets import around
from bench.scores import k_means_objective
from bench.timing import timed
from rffpk import RandomFourierFeatures, RFFKernelPowerKMeans

D, COLUMNS, CLUSTERS = 108, 50, 10
EVALUATION_ROWS = 100_000


def mixture(n: int, apart: float) -> np.ndarray:
    random = np.random.default_rng(0)
    centers = apart * random.standard_normal((CLUSTERS, COLUMNS), dtype=np.float32)
    return around(centers, n, random)


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--apart",
        type=float,
        default=0.35,
        help="spread of the cluster means in each column, in standard deviations: at 0.35 clusters "
        "overlap",
    )
    args = parser.parse_args()
    X = mixture(args.rows, args.apart)
    gamma = RandomFourierFeatures(D).fit(X[:10_000]).gamma_
    evaluation = RandomFourierFeatures(1024, gamma=gamma, random_state=1234)
    phi = evaluation.fit_transform(X[:EVALUATION_ROWS])
    tables.print_heading(
        "seed", "fit, s", "sampler, s", "KMeans, s", "both / fit", "objective: fit / KMeans", "NMI"
    )
    for seed in range(args.repeats):
        model = RFFKernelPowerKMeans(CLUSTERS, gamma=gamma, n_frequencies=D, random_state=seed)
        fitting, ours = timed(partial(model.fit, X))
        sampler = RBFSampler(gamma=gamma, n_components=2 * D, random_state=seed)
        sampling, features = timed(partial(sampler.fit_transform, X))
        peer = KMeans(CLUSTERS, n_init=1, random_state=seed)
        clustering, theirs = timed(partial(peer.fit, features))
        del features
        values = [k_means_objective(phi, m.labels_[:EVALUATION_ROWS]) for m in (ours, theirs)]
        tables.print_row(
            seed,
            f"{fitting:.2f}",
            f"{sampling:.2f}",
            f"{clustering:.2f}",
            f"{(sampling + clustering) / fitting:.1f}",
            f"{values[0] / values[1]:.5f}",
            f"{normalized_mutual_info_score(ours.labels_, theirs.labels_):.3f}",
        )
        full = [r for r in ours.history_ if r["rows"] == args.rows and "s" in r]
        print(f"passes over all rows: {len(full)}; scikit-learn: {theirs.n_iter_}")


if __name__ == "__main__":
    main()

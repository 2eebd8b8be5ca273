"""Measure a whole fit beside RBFSampler and KMeans of scikit-learn: seconds and objective.

50 columns, k = 10, D = 108, float32, with one gamma on both sides; KMeans has n_init=1. The
objective is that of kernel k-means for the labels of each side, in one feature map that neither
side used, on 100 000 of the rows. `--apart` is the deviation of the cluster means in each column,
in deviations of the rows: at 0.35 clusters overlap.
"""

from __future__ import annotations

from functools import partial

from sklearn.cluster import KMeans
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import normalized_mutual_info_score

from bench import commands, tables
from bench.datasets import mixture
from bench.scores import k_means_objective
from bench.timing import timed
from rffpk import RandomFourierFeatures, RFFKernelPowerKMeans

D, CLUSTERS = 108, 10
EVALUATION_ROWS = 100_000


def main() -> None:
    args = commands.arguments(__doc__, rows=1_000_000, repeats=3, apart=0.35)
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
        nmi = normalized_mutual_info_score(ours.labels_, theirs.labels_)
        times = tables.cells((fitting, sampling, clustering), ".2f")
        ratio = f"{(sampling + clustering) / fitting:.1f}"
        tables.print_row(seed, *times, ratio, f"{values[0] / values[1]:.5f}", f"{nmi:.3f}")


if __name__ == "__main__":
    main()

"""Labels and memberships of fuzzy c-means by its fuzzifier, over the number of columns.

    python -m bench.quality.fuzzifier

Ten Gaussians of 200 rows with variance one, the nearest centroids five apart. For each fuzzifier
the ARI of the labels, and how far the largest memberships are from the share of rows that they
label rightly: the calibration error over ten bins. The rule of Schwämmle and Jensen (A simple and
fast method to determine the parameters for fuzzy c-means cluster analysis, Bioinformatics 2010)
knows the numbers of rows and columns alone; it is cut at 6.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score, confusion_matrix

from rffpk import FuzzyCMeans, PowerKMeans

COLUMNS = (2, 5, 10, 20, 50, 100, 200, 384, 768)
K, N, APART, SEEDS = 10, 2000, 5.0, 3


def by_size(n: int, d: int) -> float:
    """The fuzzifier of Schwämmle and Jensen, eq. (5)."""
    power = -0.0406 * math.log(n) - 0.1134
    return min(6.0, 1 + (1418 / n + 22.05) / d**2 + (12.33 / n + 0.243) * d**power)


def calibration_error(y, model, X) -> float:
    """Mean gap of the largest memberships and the shares of right labels, over ten bins."""
    largest = model.predict_proba(X).max(axis=1)
    right = confusion_matrix(y, model.labels_).argmax(axis=0)[model.labels_] == y
    bins = np.minimum((10 * largest).astype(int), 9)
    parts = [bins == i for i in range(10)]
    return sum(abs(largest[b].mean() - right[b].mean()) * b.mean() for b in parts if b.any())


def main() -> None:
    warnings.simplefilter("ignore")
    print('| columns | k-means, annealed | m = 2 | m = 1.2 | by size | m="auto" |')
    print("|---|---|---|---|---|---|")
    for d in COLUMNS:
        cells = []
        for seed in range(SEEDS):
            random = np.random.default_rng([seed, d])
            centers = random.standard_normal((K, d))
            centers *= APART / pdist(centers).min()
            y = np.arange(N) % K
            X = centers[y] + random.standard_normal((N, d))
            plain = PowerKMeans(K, random_state=seed).fit(X)
            line = [(adjusted_rand_score(y, plain.labels_), calibration_error(y, plain, X), 0.0)]
            for m in (2.0, 1.2, by_size(N, d), "auto"):
                model = FuzzyCMeans(K, m=m, random_state=seed).fit(X)
                ari = adjusted_rand_score(y, model.labels_)
                line.append((ari, calibration_error(y, model, X), model.m_))
            cells.append(line)
        means = np.mean(cells, axis=0)
        texts = [f"{ari:.2f}, {error:.2f}" for ari, error, _ in means]
        texts[3] += f" ({means[3, 2]:.3f})"
        texts[4] += f" ({means[4, 2]:.3f})"
        print(f"| {d} | {' | '.join(texts)} |", flush=True)


if __name__ == "__main__":
    main()

"""Score labels of embeddings in background noise beside peers, with the noise as a class.

Unit rows of 384 columns in 200 topics of uneven sizes, with a mean squared distance of .24 from the
means of their topics. They come without noise, with a tenth uniform on the sphere, and with a tenth
uniform in the bounding box. The table has the adjusted Rand index with the noise as a class, the
shares of the other rows and of the noise with the label -1, and CPU seconds. HDBSCAN is left out
above 20 000 rows, EVoC where the package evoc is not installed. Shapes in noise are a table of
`python -m bench pages noise_shapes`.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin_min

from bench import commands, peers, tables
from bench.datasets import Labelled
from bench.peers import Fit, fit
from bench.timing import cpu_timed
from rffpk import PowerKMeans

TOPICS, COLUMNS, SPREAD = 200, 384, 0.24


def embeddings(n: int, noise: str) -> Labelled:
    random = np.random.default_rng(0)
    centers = unit(random.standard_normal((TOPICS, COLUMNS)))
    y = random.choice(TOPICS, n, p=random.dirichlet(np.full(TOPICS, 2.0)))
    X = random.standard_normal((n, COLUMNS), dtype=np.float32)
    X = unit(centers[y] + np.sqrt(SPREAD / (1 - SPREAD) / COLUMNS) * X)
    if noise != "none":
        m = n // 10
        low, high = X.min(axis=0), X.max(axis=0)
        box = random.uniform(low, high, (m, COLUMNS))
        X[:m] = box if noise == "box" else unit(random.standard_normal((m, COLUMNS)))
        y[:m] = -1
    return X.astype(np.float32), y


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def trimmed_k_means(X: np.ndarray, k: int, seed: int, share: float = 0.1) -> np.ndarray:
    """Label rows by passes of k-means over the rows nearest to the centroids before."""
    theta = kmeans_plusplus(X, k, random_state=seed)[0]
    for _ in range(50):
        labels, far = pairwise_distances_argmin_min(X, theta)
        kept = far <= np.quantile(far, 1 - share)
        theta = np.array([
            X[kept & (labels == j)].mean(axis=0) if (kept & (labels == j)).any() else theta[j]
            for j in range(k)
        ])  # fmt: skip
    return np.where(kept, labels, -1)


def evoc(X: np.ndarray, k: int, seed: int) -> np.ndarray:
    from evoc import EVoC

    return np.asarray(EVoC(random_state=seed).fit_predict(X))


METHODS: dict[str, Fit] = {
    "PowerKMeans": fit(PowerKMeans),
    'PowerKMeans(noise="auto")': fit(PowerKMeans, noise="auto"),
    "PowerKMeans(noise=0.1)": fit(PowerKMeans, noise=0.1),
    "KMeans": fit(KMeans),
    "trimmed k-means, share .1": trimmed_k_means,
    "HDBSCAN": fit(peers.METHODS["HDBSCAN"]),
    "EVoC": evoc,
}


def main() -> None:
    args = commands.arguments(__doc__, rows=20_000)
    tables.print_heading("noise", "method", "ARI", "flagged of others", "flagged of noise", "CPU s")
    for kind in ("none", "sphere", "box"):
        X, y = embeddings(args.rows, kind)
        for method, fitted in METHODS.items():
            if method == "HDBSCAN" and len(X) > 20_000:
                continue
            try:
                seconds, labels = cpu_timed(partial(fitted, X, TOPICS, 0))
            except ImportError:
                continue
            noise = None if kind == "none" else (labels == -1)[y < 0].mean()
            scores = adjusted_rand_score(y, labels), (labels == -1)[y >= 0].mean(), noise
            tables.print_row(kind, method, *tables.cells(scores), f"{seconds:.1f}")


if __name__ == "__main__":
    main()

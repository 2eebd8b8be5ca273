"""Labels of rows in background noise beside those of peers, with the noise as a class.

    python -m bench.quality.noise --rows N

Embeddings: unit rows of 384 columns in 200 topics of uneven sizes, with a mean squared distance of
.24 from the means of their topics; without noise, with a tenth uniform on the sphere, and with a
tenth uniform in the bounding box. Shapes: those of bench/results/full_tables.md with noise. The
adjusted Rand index with the noise as a class, the share of the other rows with the label -1, the
share of the noise with it, and CPU seconds. HDBSCAN is left out above 20 000 rows, EVoC where the
package evoc is not installed or the rows have two columns. Prints Markdown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans, kmeans_plusplus
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin_min

from bench import commands, tables
from bench.quality.diffusion import Labelled, generated
from rffpk import DiffusionPowerKMeans, PowerKMeans

TOPICS, COLUMNS, SPREAD = 200, 384, 0.24


def embeddings(n: int, noise: str) -> Labelled:
    random = np.random.default_rng(0)
    centers = unit(random.standard_normal((TOPICS, COLUMNS)))
    y = random.choice(TOPICS, n, p=random.dirichlet(np.full(TOPICS, 2.0)))
    X = random.standard_normal((n, COLUMNS), dtype=np.float32)
    X = unit(centers[y] + np.sqrt(SPREAD / (1 - SPREAD) / COLUMNS) * X)
    if noise:
        m = n // 10
        low, high = X.min(axis=0), X.max(axis=0)
        box = random.uniform(low, high, (m, COLUMNS))
        X[:m] = box if noise == "box" else unit(random.standard_normal((m, COLUMNS)))
        y[:m] = -1
    return X.astype(np.float32), y


def unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def trimmed_k_means(X: np.ndarray, k: int, share: float = 0.1) -> np.ndarray:
    """Passes of k-means, each over the rows nearest to the centroids before it."""
    theta = kmeans_plusplus(X, k, random_state=0)[0]
    for _ in range(50):
        labels, far = pairwise_distances_argmin_min(X, theta)
        kept = far <= np.quantile(far, 1 - share)
        theta = np.array([
            X[kept & (labels == j)].mean(axis=0) if (kept & (labels == j)).any() else theta[j]
            for j in range(k)
        ])  # fmt: skip
    return np.where(kept, labels, -1)


def evoc(X: np.ndarray, k: int) -> np.ndarray:
    from evoc import EVoC

    return np.asarray(EVoC(random_state=0).fit_predict(X))


Method = Callable[[np.ndarray, int], np.ndarray]
EMBEDDED: dict[str, Method] = {
    "PowerKMeans": lambda X, k: PowerKMeans(k, random_state=0).fit(X).labels_,
    'PowerKMeans(noise="auto")': lambda X, k: (
        PowerKMeans(k, noise="auto", random_state=0).fit(X).labels_
    ),
    "PowerKMeans(noise=0.1)": lambda X, k: PowerKMeans(k, noise=0.1, random_state=0).fit(X).labels_,
    "KMeans": lambda X, k: KMeans(k, random_state=0).fit(X).labels_,
    "trimmed k-means, share .1": trimmed_k_means,
    "HDBSCAN": lambda X, k: HDBSCAN(copy=True).fit(X).labels_,
    "EVoC": evoc,
}
SHAPED: dict[str, Method] = {
    'DiffusionPowerKMeans(noise="auto")': lambda X, k: (
        DiffusionPowerKMeans(k, noise="auto", random_state=0).fit(X).labels_
    ),
    "DiffusionPowerKMeans(noise=0.09)": lambda X, k: (
        DiffusionPowerKMeans(k, noise=0.09, random_state=0).fit(X).labels_
    ),
    "trimmed k-means, share .1": trimmed_k_means,
    "HDBSCAN": lambda X, k: HDBSCAN(copy=True).fit(X).labels_,
}


def problems(n: int) -> Iterator[tuple[str, Labelled, dict[str, Method]]]:
    for name in ("", "sphere", "box"):
        yield f"embeddings, {name or 'no noise'}", embeddings(n, name), EMBEDDED
    for name, rows in generated():
        yield name, rows, SHAPED


def measured(method: Method, X: np.ndarray, y: np.ndarray) -> tuple[str, ...]:
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = method(X, len(np.unique(y[y >= 0])))
    seconds, flagged = time.process_time() - begin, labels == -1
    noise = f"{flagged[y < 0].mean():.2f}" if (y < 0).any() else "-"
    clean = f"{flagged[y >= 0].mean():.3f}"
    return f"{adjusted_rand_score(y, labels):.3f}", clean, noise, f"{seconds:.1f}"


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="of the embeddings")
    rows = parser.parse_args().rows
    tables.print_heading("rows", "method", "ARI", "flagged of others", "flagged of noise", "CPU s")
    for name, (X, y), methods in problems(rows):
        for method, fit in methods.items():
            if method == "HDBSCAN" and len(X) > 20_000:
                continue
            try:
                tables.print_row(name, method, *measured(fit, X, y))
            except ImportError:
                continue


if __name__ == "__main__":
    main()

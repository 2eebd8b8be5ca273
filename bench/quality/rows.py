"""Labels and CPU seconds of diffusion features over the number of rows, beside k-means.

    python -m bench.quality.rows --data DIR [--set NAME ...] [--sizes N ...] [--threads N]

Random rows of each set, in float32, k the number of classes; NMI and ARI with the classes. `graph`
is `DiffusionPowerKMeans` without a choice among graphs, of the leading 50 principal components
where columns are more, whose time counts. Its `defaults`, and KMeans of ten starts, get the
columns. Prints Markdown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

from bench import commands, datasets, tables, timing
from rffpk import DiffusionPowerKMeans
from rffpk.metrics import scores_of_labels

COLUMNS = 50
SETS = ("pendigits", "letter")
SIZES = (2000, 5000, 10_000, 20_000, 50_000, 70_000)


def graph(X: np.ndarray, k: int, threads: int) -> np.ndarray:
    if X.shape[1] > COLUMNS:
        X = PCA(COLUMNS, svd_solver="covariance_eigh").fit_transform(X)
    alone = {"whitening": None, "n_neighbors": round(2.5 * np.log(len(X)))}
    return DiffusionPowerKMeans(k, random_state=0, n_jobs=threads, **alone).fit(X).labels_


def defaults(X: np.ndarray, k: int, threads: int) -> np.ndarray:
    return DiffusionPowerKMeans(k, random_state=0, n_jobs=threads).fit(X).labels_


def k_means(X: np.ndarray, k: int, threads: int) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=0).fit(X).labels_


METHODS: dict[str, Callable[[np.ndarray, int, int], np.ndarray]] = {
    "graph": graph, "defaults": defaults, "KMeans": k_means,
}  # fmt: skip


def main() -> None:
    parser = commands.parser(__doc__)
    commands.add_data(parser)
    parser.add_argument("--set", nargs="+", default=SETS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    scores = [f"{method} {of}" for method in METHODS for of in ("NMI", "ARI", "CPU s")]
    tables.print_heading("set", "n", "d", "k", *scores)
    for name in args.set:
        X, y = datasets.single_view(args.data, name)
        order, k = np.random.default_rng(0).permutation(len(X)), len(np.unique(y))
        for n in dict.fromkeys(min(size, len(X)) for size in args.sizes):
            some, classes = X[order[:n]].astype(np.float32), y[order[:n]]
            cells = []
            for method in METHODS.values():
                started = timing.clocks()
                labels = timing.pinned(partial(method, some, k, args.threads), args.threads)
                spent = (timing.clocks() - started)[1]
                ari = adjusted_rand_score(classes, labels)
                cells += [
                    f"{scores_of_labels(classes, labels)[1]:.3f}",
                    f"{ari:.3f}",
                    f"{spent:.1f}",
                ]
            tables.print_row(name, n, some.shape[1], k, *cells)


if __name__ == "__main__":
    main()

"""Whether memberships show the rows between clusters.

    python -m bench.quality.between [--seeds N]

Eight Gaussians of 5000 rows in all, equal or of sizes as 1 : 1/2 : 1/3 and so on, whose nearest
centers are so many standard deviations apart. Up to 3 % of the rows, five for each pair of
clusters at most, are midpoints of two rows of a pair between whose centers no third is. Prints as
Markdown the mean (least) AUC of one less the largest membership for midpoints against the other
rows. Graphs are those of 15 nearest neighbours, given as they are.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import kneighbors_graph

from bench import commands, tables
from rffpk import DiffusionPowerKMeans, PowerKMeans

K, ROWS, MIDPOINTS, OF_A_PAIR = 8, 5000, 0.03, 5
CASES = [(d, apart, unequal) for d in (2, 10, 50) for apart in (6, 10) for unequal in (0, 1)]


def rows(d: int, apart: float, unequal: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and whether they are midpoints."""
    random = np.random.default_rng([seed, d, int(10 * apart), unequal])
    centers = random.normal(size=(K, d))
    centers *= apart / (cdist(centers, centers) + 1e9 * np.eye(K)).min()
    middle = (centers[:, None] + centers) / 2
    pairs = [
        (a, b) for a in range(K) for b in range(a)
        if cdist([middle[a, b]], np.delete(centers, [a, b], 0)).min()
        > np.linalg.norm(centers[a] - centers[b]) / 2
    ]  # fmt: skip
    share = 1 / np.arange(1.0, K + 1) ** unequal
    few = min(int(MIDPOINTS * ROWS), OF_A_PAIR * len(pairs))
    y = random.choice(K, ROWS - few, p=share / share.sum())
    a, b = np.array(pairs)[random.integers(len(pairs), size=few)].T
    between = (centers[a] + centers[b] + random.normal(size=(2, few, d)).sum(axis=0)) / 2
    X = np.vstack([centers[y] + random.normal(size=(len(y), d)), between])
    return X, np.arange(len(X)) >= len(y)


def scores(X: np.ndarray, is_between: np.ndarray, seed: int) -> list[float]:
    graph, found = kneighbors_graph(X, 15), []
    for model, given in (
        (PowerKMeans(K, random_state=seed), X),
        (DiffusionPowerKMeans(K, random_state=seed), X),
        (DiffusionPowerKMeans(K, metric="precomputed", random_state=seed), graph),
    ):
        largest = model.fit(given).predict_proba(given).max(axis=1)
        found.append(float(roc_auc_score(is_between, 1 - largest)))
    return found


def main() -> None:
    parser = commands.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    args: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    tables.print_heading("columns", "apart", "sizes", "PowerKMeans", "diffusion", "graph")
    for d, apart, unequal in CASES:
        each = np.array([scores(*rows(d, apart, unequal, s), s) for s in range(args.seeds)])
        cells = (f"{column.mean():.3f} ({column.min():.3f})" for column in each.T)
        tables.print_row(d, apart, ("equal", "unequal")[unequal], *cells)


if __name__ == "__main__":
    main()

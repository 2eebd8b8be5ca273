"""Measure the growth of a small perturbation of the merged state, and predict it.

In the merged state all centroids are at the mean. The table has the growth factor of a pass on both
sides of the critical exponent. Beside it is the number of distinct centroids after fits at that
exponent, from the perturbed merged state and from k-means++.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from sklearn.datasets import load_digits, load_iris, make_blobs

from bench import commands, tables
from rffpk import Annealing, PowerKMeans
from rffpk.anneal.decompositions import critical_exponent
from rffpk.rows.passes import centered, column_rows, one_pass, shifted_features
from rffpk.rows.rows import Rows
from rffpk.rows.weights import ones

SIZE = 1e-7  # of the perturbation, relative to the data's standard deviation
PASSES = 200


def growth(rows: Rows, k: int, s: float) -> float:
    """Return the growth factor of the differences of the centroids in a pass.

    It is measured after many passes, when the fastest direction dominates.
    """
    delta = SIZE * np.random.default_rng(0).standard_normal((k, len(rows.shift)))
    for _ in range(PASSES):
        delta *= SIZE / np.linalg.norm(delta - delta.mean(axis=0))
        new = rows.centroids(one_pass(rows, delta, s)[0], delta)
        factor = np.linalg.norm(new - new.mean(axis=0)) / SIZE
        delta = new - new.mean(axis=0)
    return float(factor)


def distinct(X: np.ndarray, k: int, s: float, merged: bool) -> int:
    init = "k-means++"
    if merged:
        noise = 1e-3 * X.std() * np.random.default_rng(0).standard_normal((k, X.shape[1]))
        init = X.mean(axis=0) + noise
    common = {"sample": None, "tol": 1e-8, "max_iter": 5000, "random_state": 0}
    model = PowerKMeans(k, annealing=Annealing(start=s, end=s), init=init, **common)
    passes = [record for record in model.fit(X).history_ if "distinct" in record]
    return int(passes[-1]["distinct"])


def data_sets() -> dict[str, tuple[np.ndarray, int]]:
    blobs = partial(make_blobs, center_box=(-5, 5), random_state=0)
    return {
        "iris": (np.ascontiguousarray(load_iris().data), 3),
        "digits": (np.ascontiguousarray(load_digits().data), 10),
        "blobs, 8-d": (blobs(2000, 8, centers=25)[0], 25),
        "blobs, 64-d": (blobs(2500, 64, centers=50)[0], 50),
    }


def main() -> None:
    commands.arguments(__doc__)
    distincts = "distinct: from merged", "from k-means++", "of"
    tables.print_heading("data", "s_c", "s", "predicted", "measured", *distincts)
    for name, (X, k) in data_sets().items():
        rows = centered(column_rows(X, ones(len(X)), 2))
        critical = critical_exponent(shifted_features(rows), np.ones(rows.n), None)
        largest = 1 / (2 * (1 - critical))
        base = min(critical, -0.4)
        for s in (0.5 * base, 0.9 * base, 1.1 * base, 2 * base):
            if not math.isfinite(s) or s > -0.2:
                continue
            ends = [distinct(X, k, s, merged) for merged in (True, False)]
            factors = (f"{2 * (1 - s) * largest:.4f}", f"{growth(rows, k, s):.4f}")
            tables.print_row(name, f"{critical:.2f}", f"{s:.2f}", *factors, *ends, k)


if __name__ == "__main__":
    main()

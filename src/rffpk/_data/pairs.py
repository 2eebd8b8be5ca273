"""Kernel values between pairs of a sample of rows, and the error of random features there."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from rffpk._data.arrays import Array, Fourier
from rffpk._data.passes import unshifted
from rffpk._data.sparse_rows import Columns, dense

# Rows of a sample: so few, so many, and between these as many as have so many numbers in the
# differences of all pairs.
_FEWEST, _MOST, _NUMBERS = 64, 256, 1 << 24


def sampled_rows(X: Columns, weight: Array | None, random: np.random.RandomState) -> Array:
    """Rows drawn at random, in proportion to their weights, in float64."""
    m = int(np.clip((2 * _NUMBERS / X.shape[1]) ** 0.5, _FEWEST, _MOST))
    if weight is None:
        drawn = np.arange(len(X)) if len(X) <= m else random.randint(len(X), size=m)
    else:
        drawn = random.choice(len(X), m, p=weight / weight.sum())
    return dense(X[np.unique(drawn)]).astype(np.float64)


@np.errstate(over="ignore")  # a distance that is infinite has a kernel of zero
def kernel_of_pairs(kernel: str, gamma: float, rows: Array) -> Array:
    """The kernel of all pairs of rows, in the order of `pdist`."""
    if kernel == "cauchy":
        first, second = np.triu_indices(len(rows), 1)
        logs = sum(np.log1p(gamma * (x[first] - x[second]) ** 2) for x in rows.T)
        return np.exp(-np.asarray(logs))
    metric = "sqeuclidean" if kernel == "rbf" else "cityblock"
    return np.exp(-gamma * pdist(rows, metric))


def square_error(fourier: Fourier, rows: Array, exact: Array) -> float:
    """Mean squared error of the inner products of features of all pairs of rows."""
    features = unshifted(rows, fourier.astype(rows.dtype), 1)
    found = (features @ features.T)[np.triu_indices(len(rows), 1)]
    return float(np.mean((found - exact) ** 2))

"""Rows drawn as initial centroids, many at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances

from rffpk._rows.passes import make_rows, one_pass
from rffpk._rows.rows import Rows
from rffpk._utils.arrays import Array
from rffpk._utils.sparse_rows import Columns, SparseRows, dense


class Draws:
    """Indices of k rows, drawn as k-means++ without local trials draws them, and which of them are
    nearest to the rows.

    Half as many rows as are chosen already are drawn at once, in proportion to their costs. One is
    accepted with the probability of its cost after those before it over that before the batch, so
    that each has the distribution of a draw after those. O(n k F), in some tens of passes.
    """

    def __init__(self, rows: Rows, seeds: Any, weight: Array | None, k: int, random: Any) -> None:
        p = np.ones(rows.n) if weight is None else weight.astype(np.float64)
        self.rows, self.seeds = rows, seeds
        self.chosen = self._added = random.choice(len(p), 1, p=p / p.sum())
        self.labels, self.nearest = np.zeros(len(p), np.int32), np.full(len(p), np.inf, rows.dtype)
        while len(self.chosen) < k:
            self.see_added()
            cost = p * self.nearest
            if not cost.any():  # fewer distinct rows than centroids
                others = np.setdiff1d(np.flatnonzero(p), self.chosen)
                added = random.choice(others, k - len(self.chosen), replace=False)
            else:
                count = min(max(1, len(self.chosen) // 2), k - len(self.chosen))
                drawn = random.choice(len(p), count, p=cost / cost.sum())
                accepted = _accepted(seeds[drawn], self.nearest[drawn], random.uniform(size=count))
                added = drawn[accepted]
            self.chosen, self._added = np.r_[self.chosen, added], added

    def see_added(self) -> None:
        """Compare the rows with those that were added last."""
        added = self._added
        seeds = dense(self.seeds[added])
        _, found = one_pass(self.rows, seeds, -math.inf, want=("nearest", "labels"))
        nearer = found["nearest"] < self.nearest
        first = len(self.chosen) - len(added)
        self.labels[nearer] = first + found["labels"][nearer]
        self.nearest = np.minimum(self.nearest, found["nearest"])
        self.nearest[added] = 0


def as_rows(features: Columns, n_threads: int) -> Rows:
    """The rows with the features as columns."""
    zeros = np.zeros(features.shape[1], dtype=features.dtype)
    return make_rows([features], [None], None, n_threads, [zeros])


def _accepted(candidates: Columns, least: Array, uniform: Array) -> Array:
    """A mask of the candidates, in their order, that are accepted."""
    given = candidates.matrix if isinstance(candidates, SparseRows) else candidates
    gaps = euclidean_distances(given, squared=True)
    remaining, mask = least.copy(), np.zeros(len(candidates), dtype=bool)
    for i in range(len(candidates)):
        if uniform[i] * least[i] < remaining[i]:
            mask[i], remaining = True, np.minimum(remaining, gaps[i])
    return mask

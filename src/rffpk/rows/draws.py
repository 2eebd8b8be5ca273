"""Rows drawn at random: samples of rows that are read in any order, and initial centroids.

A sample depends on a seed, and on the indices and weights of the rows. It does not depend on the
blocks or on who reads them. Row i has a key: an exponential variable, from a counter-based
generator at position i, divided by its weight w_i. A sample of m rows has the m least keys. So
smaller samples are parts of larger samples, and each next row is drawn in proportion to its weight
(Efraimidis, Spirakis: Weighted random sampling with a reservoir. Inf. Process. Lett. 2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.arrays import Array
from rffpk.rows.passes import one_pass
from rffpk.rows.rows import Rows
from rffpk.rows.table import Columns, dense, inner_products
from rffpk.rows.weights import are_ones
from rffpk.system.linalg import gaps_of
from rffpk.system.tuning import TUNING

# From this number of clusters on, initial centroids are drawn in batches, and centroids are swapped
# in batches. The cost of a fit is then proportional to the number. docs/maintainers/annealing.md
# has the measurements.
MANY = 100


def row_keys(seed: int, begin: int, n: int, weight: Array) -> NDArray[np.float64]:
    """Compute the random keys (n,) of rows begin to begin + n - 1.

    Rows of weight zero have an infinite key, so that they are never drawn."""
    first = begin % 4  # Philox has four numbers at one position of its counter
    generator = np.random.Generator(np.random.Philox(key=seed, counter=begin // 4))
    keys = -np.log1p(-generator.random(first + n)[first:])
    if are_ones(weight):
        return np.asarray(keys)
    return np.divide(keys, weight, out=np.full(n, np.inf), where=weight > 0)


def uneven(weight: Array) -> bool:
    """Return whether the weights (n,) differ. Draws with equal weights use other random numbers."""
    return bool((weight != weight[:1]).any())


@dataclass(frozen=True)
class Sample:
    """The rows with the least keys, in any order."""

    keys: NDArray[np.float64]
    indices: NDArray[np.intp]
    arrays: list[Array]  # what was kept of the rows

    def first(self, m: int) -> tuple[NDArray[np.intp], list[Array], float]:
        """Return the m rows with the smallest keys: rising indices, kept arrays, and a threshold.

        The threshold is the next larger key, or infinity if the sample has no further rows. Among
        rows with equal keys the rows of smaller index win. Selecting by partition is several times
        as fast as sorting all keys."""
        keys, least, threshold = self.keys, np.arange(len(self.keys)), math.inf
        if m < len(keys):
            threshold = float(np.partition(keys, m)[m])
            least = np.flatnonzero(keys <= threshold)
        order = least[np.argsort(self.indices[least], kind="stable")]  # fast, as most rise already
        if len(order) > m:  # of the rows at the threshold, leave out the last
            order = np.delete(order, np.flatnonzero(keys[order] == threshold)[m - len(order) :])
        are_first = np.array_equal(order, np.arange(len(order)))  # then a slice saves a copy
        part: Any = slice(len(order)) if are_first else order
        return self.indices[part], [array[part] for array in self.arrays], threshold


class Reservoir:
    """Collects the `size` rows with the smallest keys among all rows that are added.

    The rows are in any order. The arrays have some spare room, so that they shrink seldom."""

    def __init__(self, size: int) -> None:
        self.size, tuning = size, TUNING.sampling
        # the number of rows that are looked at together, and of spare rows
        self._step = max(size // tuning.reservoir_part, tuning.reservoir_rows)
        self._arrays: list[Array] = []  # keys, indices, and what is kept of the rows
        self._count, self._bound = 0, math.inf  # number of stored rows; larger keys are skipped

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the unused room of the arrays."""
        return {**self.__dict__, "_arrays": [each[: self._count] for each in self._arrays]}

    def add(self, begin: int, keys: Array, arrays: list[Any]) -> None:
        """Add a block of rows by its keys, and copy the entries of `arrays` for the kept rows.

        `begin` is the index of the first row. Rows with infinite keys are skipped."""
        for first in range(0, len(keys), self._step):
            part = keys[first : first + self._step]
            index = first + np.flatnonzero((part <= self._bound) & (part < math.inf))
            if len(index):
                self._append([keys[index], begin + index, *(array[index] for array in arrays)])
            if self._count > self.size + self._step:
                self._shrink()

    def _append(self, added: list[Array]) -> None:
        """Append rows, as keys, indices and arrays, to the stored rows. Grow arrays if needed."""
        end = self._count + len(added[0])
        if not self._arrays or len(self._arrays[0]) < end:
            full = self.size + 2 * self._step
            # pages without rows take no memory, so arrays soon get their full room
            room = max(end, full if 4 * end > full else 2 * end)
            grown = [np.empty((room, *each.shape[1:]), each.dtype) for each in added]
            for new, old in zip(grown, self._arrays):
                new[: self._count] = old[: self._count]
            self._arrays = grown
        for kept, rows in zip(self._arrays, added):
            kept[self._count : end] = rows
        self._count = end

    def _shrink(self) -> None:
        """Keep the `size + 1` rows with the smallest keys; break ties by the smaller row index.

        The largest of the keys becomes the threshold of `Sample.first`."""
        most = self.size + 1
        if self._count <= most:
            return
        keys, indices = (array[: self._count] for array in self._arrays[:2])
        self._bound = float(np.partition(keys, self.size)[self.size])
        kept, tied = keys < self._bound, np.flatnonzero(keys == self._bound)
        kept[tied[np.argsort(indices[tied], kind="stable")][: most - np.count_nonzero(kept)]] = True
        # kept rows beyond the first `most` places move to the places of dropped rows
        holes, moved = np.flatnonzero(~kept[:most]), most + np.flatnonzero(kept[most:])
        # arrays from another process may be read-only
        self._arrays = [np.require(each, requirements="W") for each in self._arrays]
        for array in self._arrays:
            array[holes] = array[moved]
        self._count = most

    def joined(self, other: Reservoir) -> Reservoir:
        """Merge two reservoirs: return one with the smallest keys of both."""
        both = Reservoir(self.size)
        for part in (self, other):
            if part._count:
                both._append([each[: part._count] for each in part._arrays])
        both._shrink()
        return both

    def sample(self) -> Sample:
        """Return the sample of the `size` smallest keys, in the order of the rows.

        The row with the next larger key comes last, if there is one. Without rows, the sample
        has no arrays."""
        self._shrink()
        if not self._arrays:
            return Sample(np.empty(0), np.empty(0, np.intp), [])
        kept = [np.require(each[: self._count], requirements="W") for each in self._arrays]
        keys, indices, *arrays = kept
        order = np.argsort(indices, kind="stable")
        if self._count > self.size:
            last = np.flatnonzero(keys[order] == keys.max())[-1]
            order = np.r_[np.delete(order, last), order[last]]
        for array in kept:  # in place, and a few columns at a time, which saves a full copy
            columns = array.reshape(len(array), -1)
            step = max(1, TUNING.tiles.row_numbers // max(1, len(array)))
            for begin in range(0, columns.shape[1], step):
                part = slice(begin, begin + step)
                columns[:, part] = columns[order, part]
        return Sample(keys, indices, arrays)


# ---- initial centroids ---------------------------------------------------------------------------


class Draws:
    """Draws of k rows as by k-means++ without local trials, in batches.

    `chosen` are their indices. `labels` says which chosen row is nearest to each row. A batch has
    half as many rows as are already chosen. Rows are drawn in proportion to their costs. Some are
    rejected, so that an accepted row has the distribution of a single draw after the rows before
    it. The cost is O(n k F) time in some tens of passes."""

    def __init__(self, rows: Rows, seeds: Any, weight: Array, k: int, random: Any) -> None:
        """Draw k of the n rows, batch by batch.

        `rows` compute distances of all rows from drawn rows. `seeds` (n, F) are the features of the
        rows, and `weight` (n,) are their weights."""
        p = weight.astype(np.float64)
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
                # Probability to accept: cost after the earlier rows of the batch / cost before it.
                accepted = _accepted(seeds[drawn], self.nearest[drawn], random.uniform(size=count))
                added = drawn[accepted]
            self.chosen, self._added = np.r_[self.chosen, added], added

    def see_added(self) -> None:
        """Update `labels` and `nearest` with the rows that the last batch added."""
        added = self._added
        seeds = dense(self.seeds[added])
        _, found = one_pass(self.rows, seeds, -math.inf, want=("nearest", "labels"))
        nearer = found["nearest"] < self.nearest
        first = len(self.chosen) - len(added)
        self.labels[nearer] = first + found["labels"][nearer]
        self.nearest = np.minimum(self.nearest, found["nearest"])
        self.nearest[added] = 0


def _accepted(candidates: Columns, least: Array, uniform: Array) -> Array:
    """Return a mask of the candidates of a batch that rejection sampling accepts.

    `least` are the squared distances of the candidates from the rows chosen before the batch. A
    candidate close to an accepted candidate of the same batch is likely to be rejected."""
    wide: Columns = candidates.astype(np.float64, copy=False)
    gaps = gaps_of(inner_products(wide, wide)).astype(candidates.dtype)
    # squared distances from the chosen rows and from accepted candidates
    remaining, mask = least.copy(), np.zeros(len(candidates), dtype=bool)
    for i in range(len(candidates)):
        if uniform[i] * least[i] < remaining[i]:
            mask[i], remaining = True, np.minimum(remaining, gaps[i])
    return mask

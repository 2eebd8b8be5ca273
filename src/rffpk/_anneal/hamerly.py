"""Passes of the hard rule that leave out the rows whose nearest centroid cannot have changed.

Two numbers are kept of each row: an upper bound of the distance to its centroid, and a lower bound
of the distance to every other one (Hamerly: Making k-means even faster. SDM 2010). When centroids
move, the first grows by the shift of the row's own centroid and the second falls by the largest
shift of the others. While they are apart by more than the rounding errors of squared distances,
a pass would give the row the label that it has. So the labels are those of passes over all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from rffpk._rows.passes import SLOT_ROWS, one_pass
from rffpk._rows.rows import Rows
from rffpk._rows.sums import Sums
from rffpk._utils.arrays import Array
from rffpk._utils.sparse_rows import row_bytes

MOST_ACTIVE = 0.6  # All rows are visited if more than this part of them is active.
_COPY_BYTES = 4 << 20  # Active rows are copied in parts of so many bytes.

_BOUNDS = 1 << 16  # rows whose bounds change at a time, so that intermediate results are small

# All rows are visited, too, if the weight of a cluster is less than this part of its largest since
# the last such visit: what is left of its sums has the rounding errors of what was subtracted.
_SHRUNKEN = 0.5


# Of each row, above the distance from its centroid and below that from every other one: (n,) each.
Bounds = tuple[Array, Array]
# Of squared distances, from bounds of the distances.
Errors = Callable[[Array], Array]


class HardPasses:
    """Passes of the hard rule over the same rows, at centroids that move little by little.

    Memory: a label and two numbers for each row.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._theta: Array | None = None  # of the last pass, in the dtype of the rows

    def sums(self, theta: Array) -> Sums:
        """The sums of a pass at the centroids theta (k, F). The objective is precise to the
        rounding errors of the sums."""
        theta = np.ascontiguousarray(theta, dtype=self.rows.dtype)
        active = None if self._theta is None else self._move(self._theta, theta)
        if active is None or np.count_nonzero(active) > MOST_ACTIVE * self.rows.n:
            self._visit_all(theta)
        else:
            self._visit(np.flatnonzero(active), theta)
            if (self._sums.G < _SHRUNKEN * self._largest).any():
                self._visit_all(theta)
            np.maximum(self._largest, self._sums.G, out=self._largest)
        self._theta = theta
        hard = self._sums.cost_at(theta, self.rows.alpha)
        return replace(self._sums, soft=hard, hard=hard)

    def state(self) -> dict[str, Array]:
        """What the passes so far have left: with the sums of a new visit of all rows, which are
        rounded otherwise, the next pass would give other bits."""
        assert self._theta is not None
        sums = {name: getattr(self._sums, name) for name in _SUMS}
        bounds = {"labels": self._labels, "upper": self._upper, "lower": self._lower}
        return {"at": self._theta, "largest": self._largest} | bounds | sums

    def restore(self, state: dict[str, Array]) -> None:
        """Set what `state` returned."""
        self._theta, self._largest = state["at"], state["largest"]
        self._labels, self._upper, self._lower = state["labels"], state["upper"], state["lower"]
        sums = {name: state[name] for name in _SUMS}
        self._sums = Sums(**sums, soft=0.0, hard=0.0, widths=self.rows.widths)

    def _move(self, before: Array, theta: Array) -> Array:
        """Adjust the bounds to new centroids; return a mask of the rows that they do not decide."""
        shifts = shifts_of(self.rows, before, theta)
        farthest = int(shifts.argmax())
        others = np.full_like(shifts, shifts[farthest])
        others[farthest] = np.delete(shifts, farthest).max()
        bounds = self._upper, self._lower
        return undecided(self._labels, bounds, shifts, others, rounding_errors(self.rows, theta))

    def _visit_all(self, theta: Array) -> None:
        for name in ("_sums", "_labels", "_upper", "_lower"):  # not held beside the new ones
            vars(self).pop(name, None)
        self._sums, outputs = one_pass(self.rows, theta, -math.inf, want=_WANTED)
        self._largest = self._sums.G.copy()
        self._labels = outputs["labels"]
        self._upper, self._lower = self._bounds(outputs, theta)

    def _bounds(self, outputs: dict[str, Array], theta: Array) -> Bounds:
        errors = rounding_errors(self.rows, theta)
        return bounds_of(outputs["nearest"], outputs["second"], errors)

    def _visit(self, active: Array, theta: Array) -> None:
        """Visit the active rows; the sums change by the rows whose labels do."""
        assert self._theta is not None
        slots = _COPY_BYTES // max(1, row_bytes(self.rows.xs)) // SLOT_ROWS
        size = SLOT_ROWS * max(1, slots)
        for begin in range(0, len(active), size):
            changed = self._relabelled(active[begin : begin + size], theta)
            if not len(changed):
                continue
            rows = self.rows.take(changed)
            left, joined = (one_pass(rows, at, -math.inf)[0] for at in (self._theta, theta))
            self._sums = replace(
                self._sums,
                N=self._sums.N + (joined.N - left.N),
                G=self._sums.G + (joined.G - left.G),
                Q=self._sums.Q + (joined.Q - left.Q),
            )

    def _relabelled(self, index: Array, theta: Array) -> Array:
        """Visit rows; return the numbers of those whose labels have changed."""
        _, outputs = one_pass(self.rows.take(index), theta, -math.inf, want=_WANTED)
        self._upper[index], self._lower[index] = self._bounds(outputs, theta)
        changed = index[outputs["labels"] != self._labels[index]]
        self._labels[index] = outputs["labels"]
        return changed


def shifts_of(rows: Rows, before: Array, theta: Array) -> Array:
    """Upper bounds (k,) of the distances that centroids have moved, in the dtype of the rows."""
    shift = rows.scaled(theta.astype(np.float64) - before)
    eps = float(np.finfo(rows.dtype).eps)
    return np.asarray(np.sqrt((shift**2).sum(axis=1)) * (1 + 4 * eps), dtype=rows.dtype)


def undecided(
    labels: Array, bounds: Bounds, shifts: Array, others: Array, errors: Errors
) -> NDArray[np.bool_]:
    """Adjust the bounds of rows, in place, to centroids that have moved by these `shifts`, and
    those that their rows are compared with by `others` at most; return a mask of the rows whose
    labels the bounds do not decide."""
    active, eps = np.empty(len(labels), dtype=bool), float(np.finfo(shifts.dtype).eps)
    for part in gen_batches(len(labels), _BOUNDS):
        at, upper, lower = labels[part], *(bound[part] for bound in bounds)
        upper += shifts[at]
        upper *= 1 + 2 * eps
        lower -= others[at]
        lower *= 1 - 2 * eps
        np.maximum(lower, 0, out=lower)
        active[part] = ~((lower - upper) * (lower + upper) > 2 * errors(upper))
    return active


def rounding_errors(rows: Rows, theta: Array) -> Errors:
    """Bounds of the rounding errors of computed squared distances, for rows at most so far from one
    of the centroids: those of a sum of F products and two squared norms."""
    longest = math.sqrt((rows.scaled(theta.astype(np.float64)) ** 2).sum(axis=1).max())
    terms, x = theta.shape[1], rows.xs[0]
    if rows.sparse_columns:  # whose products are those of the rows as they are
        terms = int(np.diff(x.indptr).max())
        longest += float(np.linalg.norm(rows.shift.astype(np.float64)))
    unit = (terms + 8) / 2 * float(np.finfo(rows.dtype).eps)
    return lambda distances: np.asarray((distances + 2 * longest) ** 2 * unit)


def bounds_of(nearest: Array, second: Array, errors: Errors) -> Bounds:
    """The bounds of distances, in place of the squared distances that a pass returned."""
    for part in gen_batches(len(nearest), _BOUNDS):
        twice = 2 * errors(np.sqrt(nearest[part]))
        nearest[part] = np.sqrt(nearest[part] + twice)
        second[part] = np.sqrt(np.maximum(second[part] - twice, 0))
    return nearest, second


_WANTED = ("labels", "nearest", "second")
_SUMS = ("N", "G", "Q", "E")

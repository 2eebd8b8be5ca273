"""Warnings of fits that end in a state without the clusters that were asked for: one for each fit,
with the cause and the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns, distinct_rows
from rffpk.system.linalg import eigh, row_tiles
from rffpk.system.report import warn
from rffpk.system.tuning import TUNING

# Two clusters coincide if the squared distance of their centroids is at most this part of the mean
# squared distance of their rows.
_COINCIDENT = 1e-6

# A function of the keyword k that returns a sentence on why k clusters are impossible, or "" if the
# cause does not apply.
Cause = Callable[..., str]

# Eigenvalues of the cross-products of an embedding below this fraction of the largest are zero.
_RANK = 1e-12

# An eigenvalue below minus this fraction of the largest is more than a rounding error.
_INDEFINITE = 1e-6


@dataclass(frozen=True)
class Ending:
    """How a run ended, by which missing clusters are explained."""

    k: int
    found: int  # number of clusters with rows, less the clusters that coincide with another
    s: float  # the exponent of the last passes; -inf: the hard rule
    critical: float  # exponent above which the state of coincident centroids is stable
    parameter: str  # the parameter that lowers the exponent: "annealing.end", "m" or "m='auto'"
    merged: bool = False  # whether some clusters with rows coincide
    flat: bool = False  # whether memberships are nearly 1/k

    def cause(self) -> str:
        """Return the cause of missing clusters among distinct rows, with a remedy."""
        of_m = self.parameter.startswith("m")
        lower = "a smaller m" if of_m else f"a lower {self.parameter}"
        hint = " m='auto' finds one." if self.parameter == "m" else ""
        if not self.flat:
            what = "centroids merged" if self.merged else "no row is nearest to the other centroids"
            also = "" if math.isinf(self.s) else f" or {lower}"
            return f"{what}; take fewer clusters{also}.{hint}"
        text = f"all converge to the mean of the rows, and memberships to 1/k = {1 / self.k:.3g}"
        if not self.critical < min(self.s, 0.0):  # then s_c does not explain the state
            return f"{text}; take {lower}.{hint}"
        where = f"exponents above s_c = {self.critical:.4g}"
        if of_m:
            where = f"fuzzifiers above m_c = 1 - 1/s_c = {1 - 1 / self.critical:.4g}"
        text += f", a state that is stable for {where}"
        return f"{text}; take {lower} than this.{hint}"

    def of_memberships(
        self, u: Array, labels: Array, squares: Array, gaps: Callable[[slice], Array]
    ) -> Ending:
        """Return this ending with `found`, `merged` and `flat` set from m rows of all clusters.

        The rows have memberships u (m, k), `labels` (m,), and squared distances `squares` (m, k)
        from the centroids. `gaps` takes a slice of the centroids, and returns their squared
        distances from all centroids.

        Two clusters coincide if their memberships agree to one percent. They also coincide if
        their centroids are close, compared with the distances of their rows. The second test does
        not depend on rows that are far, or equally far, from all centroids. `flat` is set if all
        pairs of clusters coincide. O(k^2 m) time, in products."""
        counts, columns = np.bincount(labels, minlength=self.k), np.ascontiguousarray(u.T)
        costs = np.bincount(labels, squares[np.arange(len(labels)), labels], self.k)
        lengths = np.einsum("ji,ji->j", columns, columns)
        first, flat = np.empty(self.k, dtype=np.intp), True
        for part in row_tiles(self.k, self.k):
            # mean squared distances of the rows of two clusters from their centroids
            mean = (costs + costs[part, None]) / np.maximum(counts + counts[part, None], 1)
            sums = lengths + lengths[part, None]
            # the squared distance of two membership columns, against their squared norms
            same = sums - 2 * (columns[part] @ u) <= 0.01**2 * sums
            same |= gaps(part) <= _COINCIDENT * mean
            first[part] = (same & (counts > 0)).argmax(axis=1)  # first cluster that coincides
            flat &= bool(same.all())
        merged = int(((counts > 0) & (first < np.arange(self.k))).sum())
        return replace(self, found=self.found - merged, merged=merged > 0, flat=flat)


def warn_of_ending(ending: Ending, causes: Iterable[Cause]) -> None:
    """Warn that there are fewer clusters than asked for, with the first cause that applies."""
    found = (text for text in (cause(k=ending.k) for cause in causes) if text)
    what = f"{ending.found} of n_clusters={ending.k} clusters have rows"
    if ending.merged:
        what = f"memberships tell {ending.found} of n_clusters={ending.k} clusters apart"
    warn(f"{what}: {next(found, '') or ending.cause()}", ConvergenceWarning)


def rows_of_clusters(labels: Array, k: int) -> Array:
    """Return the indices of some rows of each cluster, evenly spaced among the rows of the cluster.

    `labels` (n,) are the clusters of the rows. Every step-th row of a cluster is returned. The
    step grows with the cluster, so that at most about `TUNING.sampling.warned_rows` / k are
    returned of each."""
    counts = np.bincount(labels, minlength=k)
    # the place of each row among the rows of its cluster
    places = np.empty(len(labels), dtype=np.intp)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places[np.argsort(labels, kind="stable")] = np.arange(len(labels)) - first
    step = -(-counts // max(1, TUNING.sampling.warned_rows // k))
    return np.flatnonzero(places % step[labels] == 0)


def few_rows(
    name: str, xs: list[Columns], weight: Array, k: int, least: int = 0,
    which: str = "of positive weight",
) -> str:  # fmt: skip
    """Return the message that fewer than k rows are distinct; "" if enough are.

    The message calls the views `xs` by `name`. Rows of weight zero are ignored, and `which`
    describes the rest. If the rows are a sample, `least` is the number of clusters with rows, and
    the message suggests no smaller number."""
    counted = None if weight.all() else weight > 0
    views = xs if counted is None else [x[counted] for x in xs]
    if _n_distinct([x[: 4 * k] for x in views]) >= k:  # often the first rows are enough
        return ""
    rows = _n_distinct(views)
    what = "distinct row" if rows == 1 else "distinct rows"
    what += "" if counted is None else f" {which}"
    # times False, the message is empty
    return f"{name} has {rows} {what}; take n_clusters <= {max(rows, least)}." * (rows < k)


def equal_centroids(init: Array, k: int) -> str:
    """Return the message that initial centroids are equal, and stay equal; "" if none are."""
    distinct = _n_distinct([init])
    if distinct == k:
        return ""
    return (
        f"init has {distinct} distinct rows, and equal centroids stay equal. Pass "
        "centroids that differ."
    )


def low_rank(embedding: Array, xs: list[Columns], weighted: bool, k: int) -> str:
    """Return the message that an embedding has fewer than k dimensions; "" if it has enough.

    `embedding` (n, r) has leading eigenvectors of kernels of the views `xs`. Return "" also if few
    distinct rows explain the rank: m distinct rows have centered kernels of rank m - 1.
    `weighted`: the rows have weights. Small weights can make eigenvalues mere rounding errors."""
    values = eigh(embedding.T @ embedding)[0]
    rank = int((values > _RANK * values[-1]).sum())
    if rank >= k or rank >= _n_distinct(xs) - 1:
        return ""
    rows = " of the weighted rows" if weighted else ""
    also = ", or weights nearer to each other" if weighted else ""
    return (
        f"the kernels{rows} have rank {rank}, less than n_clusters={k}, and so has the "
        f"embedding; take n_clusters <= {max(rank, 1)}, or kernels of higher rank, such as "
        f"'rbf' with a larger gamma{also}."
    )


def _n_distinct(xs: list[Columns]) -> int:
    """Count the rows that differ in at least one view."""
    indices = [distinct_rows(x)[1][:, None] for x in xs]
    return len(distinct_rows(np.hstack(indices))[0])


def warn_if_indefinite(name: str, values: Array) -> bool:
    """Warn if a kernel has a negative eigenvalue; return whether it has one.

    `values` are Ritz values of the kernel matrix, estimates of its extreme eigenvalues, in rising
    order. `name` is the name of the kernel in the message."""
    indefinite = bool(len(values) and values[0] < -_INDEFINITE * max(values[-1], 0))
    if indefinite:
        warn(
            f"{name} is indefinite: it has an eigenvalue <= {values[0]:.3g} and one >= "
            f"{values[-1]:.3g}. Negative squared distances count as 0, and the objective "
            "may rise. Take a positive semidefinite kernel, or add "
            f"{-values[0]:.3g} or more to the diagonal of a precomputed one.",
            UserWarning,
        )
    return indefinite

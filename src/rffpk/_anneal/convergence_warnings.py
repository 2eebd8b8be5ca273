"""Warnings of fits that end in a state without the clusters that were asked for: one for each fit,
with the cause and the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rffpk._rows.sums import nearly_equal_memberships
from rffpk._utils.arrays import Array
from rffpk._utils.linalg import eigh
from rffpk._utils.messages import warn
from rffpk._utils.sparse_rows import Columns, SparseRows, distinct_rows

# Why k clusters may be impossible: a sentence, or "" if they are not for this reason.
Cause = Callable[[int], str]

# Eigenvalues of the cross-products of an embedding below this fraction of the largest are zero.
_RANK = 1e-12

# An eigenvalue below minus this fraction of the largest is more than a rounding error.
_INDEFINITE = 1e-6


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    k: int
    distinct: int  # number of distinct centroids
    s: float  # the exponent of its last passes; -inf: the hard rule
    soft: float  # sum p M' at the end, and ...
    hard: float  # ... sum p d_min
    critical: float  # exponent above which the state of coincident centroids is stable
    parameter: str  # what lowers the exponent: "s_final" or "m"

    @property
    def flat(self) -> bool:
        """Whether memberships are nearly 1/k."""
        return nearly_equal_memberships(self.soft, self.hard, self.k, self.s)

    @property
    def merged(self) -> bool:
        """Whether centroids coincide, or memberships are nearly equal."""
        return self.flat or self.distinct < self.k

    def cause(self) -> str:
        """Why centroids of enough distinct rows coincide, and what to do."""
        if not self.flat:
            also = "" if math.isinf(self.s) else f" or {self._lower()}"
            return f"centroids merged; take fewer clusters{also}."
        text = f"all converge to the mean of the rows, and memberships to 1/k = {1 / self.k:.3g}"
        if not self.critical < min(self.s, 0.0):
            return f"{text}; take {self._lower()}."
        where = f"exponents above s_c = {self.critical:.4g}"
        if self.parameter == "m":
            where = f"fuzzifiers above m_c = 1 - 1/s_c = {1 - 1 / self.critical:.4g}"
        return f"{text}, a state that is stable for {where}; take {self._lower()} than this."

    def _lower(self) -> str:
        return "a smaller m" if self.parameter == "m" else f"a lower {self.parameter}"


def warn_of_ending(ending: Ending, causes: Iterable[Cause]) -> None:
    """Warn that centroids coincide, or memberships are nearly equal, with the first cause that
    applies."""
    found = (text for text in (cause(ending.k) for cause in causes) if text)
    text = next(found, "") or ending.cause()
    distinct = ending.distinct if ending.distinct < ending.k else "hardly any"
    warn(f"{distinct} of n_clusters={ending.k} centroids are distinct: {text}", ConvergenceWarning)


def few_rows(name: str, xs: list[Columns], weight: Array | None = None) -> Cause:
    """Fewer distinct rows than clusters, in the views `xs` that a message calls `name`; rows of
    weight zero do not count."""

    def cause(k: int) -> str:
        rows = _n_distinct(xs if weight is None else [x[weight > 0] for x in xs])
        return f"{name} has {rows} distinct rows; take n_clusters <= {rows}." if rows < k else ""

    return cause


def low_rank(embedding: Array, xs: list[Columns], weighted: bool) -> Cause:
    """An embedding by leading eigenvectors with fewer dimensions than clusters. The views `xs` are
    those of its rows: m distinct rows have kernels of rank m - 1 if these are centered. Those of
    `weighted` rows may have less than eps times the largest eigenvalue in other directions."""

    def cause(k: int) -> str:
        values = eigh(embedding.T @ embedding)[0]
        rank = int((values > _RANK * values[-1]).sum())
        if rank >= k or rank >= _n_distinct(xs) - 1:
            return ""
        rows = " of the weighted rows" if weighted else ""
        also = ", or weights nearer to each other" if weighted else ""
        return (
            f"the kernels{rows} have rank {rank}, less than n_clusters={k}, and so has the "
            f"embedding; take n_clusters <= {max(rank, 1)}, or kernels of higher rank, such as "
            f"'rbf'{also}."
        )

    return cause


def _n_distinct(xs: list[Columns]) -> int:
    if any(isinstance(x, SparseRows) for x in xs):
        xs = [distinct_rows(x)[1][:, None] for x in {id(x): x for x in xs}.values()]
    return len(np.unique(np.hstack(xs), axis=0))


def warn_if_indefinite(name: str, values: Array) -> bool:
    """Warn if a kernel has a negative eigenvalue, and return whether; `values` are its Ritz values,
    in rising order."""
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

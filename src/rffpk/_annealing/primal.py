"""Annealing: from a smooth objective to kernel k-means by lowering the exponent s.

Each pass is a step of majorisation-minimisation: sum_i M_s never rises while s stands, and, M_s
growing with s, it never rises when s falls either.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import svds

from rffpk._annealing.schedule import Course, Seen, Step, T, settling
from rffpk._data.arrays import Array
from rffpk._data.passes import Rows, Sums, one_pass
from rffpk._data.rules import typicality

Record = dict[str, Any]

# Centroids whose squared distance is at most this fraction of the mean cost of a row count as one.
_COINCIDENT = 1e-6


@dataclass
class Run:
    """One start on its way: its centroids, and the record that it leaves of every pass."""

    rows: Rows
    theta: Array
    variance: float  # total variance of the features: the unit of all tolerances
    history: list[Record]
    random: Any
    reweigh: Callable[[Rows, Sums, float], Rows]  # the rows after a pass
    penalty: Callable[[Rows], float]  # what the objective has beside sum M_s
    verbose: int = 0
    objective_unit: float = 1.0
    start: int = 0
    passes: int = 0
    objective: float = math.inf  # before the last pass

    def step(self, step: Step) -> Seen:
        """One pass; moves the centroids."""
        started = time.perf_counter()
        if step.noise:
            self._disturb(step.noise)
        sums, _ = one_pass(self.rows, self.theta, step.s)
        theta = sums.centers(self.theta, self.rows.dtype)
        gone = sums.vanished(self.rows.dtype)
        repairs = _relocate(self.rows, theta, gone, self.variance) if gone.any() else 0
        moved = float((self.rows.scaled(theta - self.theta) ** 2).sum()) / len(theta)
        shift = math.sqrt(moved / self.variance) if self.variance > 0 else 0.0
        penalty = self.penalty(self.rows)
        self.objective = sums.objective(step.s) + penalty
        close_by = coincidence(sums.floor / self.rows.total_weight, self.variance, self.rows.dtype)
        record: Record = {
            "stage": step.stage,
            "start": self.start,
            "rows": self.rows.n,
            "s": step.s,
            "objective": self.objective_unit * self.objective,
            "shift": shift,
            "distinct": count_distinct(self.rows.scaled(theta), close_by),
            "repairs": repairs,
            "seconds": time.perf_counter() - started,
        }
        if len(self.rows.xs) > 1:
            record["kernel_weights"] = self.rows.alpha
        log(record, self.history, self.verbose)
        self.theta, self.rows = theta, self.reweigh(self.rows, sums, step.s)
        self.passes += 1
        merged = record["distinct"] < len(theta)
        return Seen(sums.soft, sums.floor, self.objective, penalty, shift, merged)

    def follow(self, course: Course[T]) -> T:
        """Take the steps of a course to its end."""
        try:
            step = next(course)
            while True:
                step = course.send(self.step(step))
        except StopIteration as end:
            return end.value

    def settle(self, stage: str, s: float, tol: float, passes: int) -> bool:
        """Passes at a fixed `s` until the centroids rest; whether they did within `passes`."""
        return self.follow(settling(stage, s, tol, passes))

    def _disturb(self, size: float) -> None:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        width = float((self.rows.scaled(np.ones(self.theta.shape[1])) ** 2).sum())
        spread = size * math.sqrt(self.variance / width)
        self.theta = self.theta + spread * self.random.standard_normal(self.theta.shape)


def log(record: Record, history: list[Record], verbose: int) -> None:
    """Keep the record of a step, and print it if asked to."""
    history.append(record)
    if verbose:
        print(
            f"[{record['stage']}] rows={record['rows']} s={record['s']:.4g} "
            f"objective={record['objective']:.8g} shift={record['shift']:.2e} "
            f"distinct={record['distinct']} repairs={record['repairs']}"
        )


def coincidence(cost: float, variance: float, dtype: Any) -> float:
    """The squared distance up to which centroids count as one: small beside what a row costs on
    average, or rounding."""
    rounding = (8 * np.finfo(dtype).eps) ** 2 * variance
    return float(max(_COINCIDENT * cost, rounding))


def count_distinct(theta: Array, close_by: float) -> int:
    """Centroids farther than `close_by` (squared) from all earlier ones that are. O(k^2 F), as one
    product and the pairs that it leaves in doubt."""
    theta = np.asarray(theta, dtype=np.float64)
    norms = np.einsum("jf,jf->j", theta, theta)
    sums = norms[:, None] + norms
    doubtful = sums - 2 * (theta @ theta.T) <= close_by + _PRODUCT_ERROR * sums
    distinct = np.ones(len(theta), dtype=bool)
    for j in np.flatnonzero(np.tril(doubtful, -1).any(axis=1)):
        earlier = np.flatnonzero(doubtful[j, :j] & distinct[:j])
        gaps = ((theta[earlier] - theta[j]) ** 2).sum(axis=1)
        distinct[j] = not (gaps <= close_by).any()
    return int(distinct.sum())


_PRODUCT_ERROR = 1e-12  # of squared distances from a product, relative to the squared norms


def _relocate(rows: Rows, theta: Array, gone: Array, variance: float) -> int:
    """Move vanished centroids, in place, to the rows that cost most; returns how many moved.

    Rows at rounding distance from a centroid are no place to go: with fewer distinct rows than
    centroids the vanished ones stay where they were.
    """
    _, outputs = one_pass(rows, theta[~gone], -math.inf, want=("nearest",))
    nearest = outputs["nearest"].astype(np.float64)
    nearest[nearest <= 64 * np.finfo(rows.dtype).eps * variance] = 0
    cost = nearest if rows.weight is None else nearest * rows.weight
    order = np.argsort(-cost, kind="stable")[: int(gone.sum())]
    order = order[cost[order] > 0]
    places = np.flatnonzero(gone)[: len(order)]
    if len(order):
        theta[places] = rows.take(order).features()
    return len(order)


def critical_exponent(features: Array, weight: Array | None) -> float:
    """s_c = 1 - 1/(2 lambda_max), above which the merged state of all centroids is stable.

    lambda_max is the largest eigenvalue of sum p zz'/sum p over the rows' directions z from their
    mean (docs/annealing.md). O(m F) times some tens of steps for m rows, by Lanczos' method where
    both m and F are above 200.
    """
    p = np.ones(len(features)) if weight is None else weight.astype(np.float64)
    z = features - (p @ features) / p.sum()
    z, p = _directions(z, p)
    if not len(z):
        return -math.inf
    return 1 - 1 / (2 * _largest_squared_singular_value(z * np.sqrt(p / p.sum())[:, None]))


def _directions(z: Array, p: Array) -> tuple[Array, Array]:
    """z / ||z|| and p, without the rows where z is zero to rounding."""
    norms = np.linalg.norm(z, axis=1)
    apart = norms > 1e-6 * max(norms.max(), np.finfo(float).tiny)
    return z[apart] / norms[apart, None], p[apart]


def typical_critical_exponent(features: Array, weight: Array | None, eta: float, m: float) -> float:
    """The same with typicality, for one reference distance `eta` of all centroids.

    The centroids merge where sum q z = 0, q ~ p u^m; with R = sum q u zz' and
    P = m/(m-1) sum q (1-u) zz' over the directions z, s_c = 1 - 1/lambda_max((I/2 - P)^-1 R), and
    every s < 0 is unstable (0.5 is returned) where lambda_max(P) >= 1/2. O(m F min(m, F)).
    """
    p = np.ones(len(features)) if weight is None else weight.astype(np.float64)
    center = (p @ features) / p.sum()
    for _ in range(100):
        u = typicality(((features - center) ** 2).sum(axis=1), np.array(eta), m)
        q = p * u**m
        if not q.any():  # every row is noise
            return -math.inf
        center, before = (q @ features) / q.sum(), center
        if ((center - before) ** 2).sum() <= 1e-16 * eta:
            break
    z, kept = _directions(features - center, np.arange(len(features)))
    if not len(z):
        return -math.inf
    u, q = u[kept], q[kept] / q.sum()
    if len(z) < z.shape[1]:  # coordinates in the space of the rows
        z = np.transpose(np.linalg.qr(z.T)[1])
    R = (z.T * (q * u)) @ z
    P = m / (m - 1) * (z.T * (q * (1 - u))) @ z
    top = len(P) - 1
    if eigvalsh(P, subset_by_index=[top, top])[0] >= 0.5:
        return 0.5
    growth = float(eigvalsh(R, 0.5 * np.eye(len(P)) - P, subset_by_index=[top, top])[0])
    return 1 - 1 / growth if growth > 0 else -math.inf


_DENSE = 200  # up to this order a full decomposition is as quick


def _largest_squared_singular_value(z: Array) -> float:
    if min(z.shape) > _DENSE:
        start = np.random.default_rng(0).standard_normal(min(z.shape))  # the same in every run
        return float(svds(z, k=1, return_singular_vectors=False, v0=start)[0]) ** 2
    gram = z @ z.T if len(z) < z.shape[1] else z.T @ z
    top = len(gram) - 1
    return float(eigvalsh(gram, subset_by_index=[top, top])[0])


# Rows that the critical exponent is taken from.
_CRITICAL_ROWS = 1000


def sample_critical_exponent(rows: Rows, features: Array) -> float:
    """The critical exponent of at most about _CRITICAL_ROWS of the rows; 0 if those are equal."""
    some = slice(None, None, max(1, len(features) // _CRITICAL_ROWS))
    z = rows.scaled(features[some].astype(np.float64))
    weight = None if rows.weight is None else rows.weight[some]
    if rows.eta is None:
        found = critical_exponent(z, weight)
    else:
        found = typical_critical_exponent(z, weight, float(rows.eta @ rows.alpha), rows.m)
    return found if math.isfinite(found) else 0.0

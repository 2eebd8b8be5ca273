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
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import svds

from rffpk._reference import typicality
from rffpk._stats import Rows, Sums, is_hard, one_pass

Array = NDArray[Any]
Record = dict[str, Any]

# Annealing is over when the power mean is this close to the minimum: 1 - sum M' / sum d_min.
# Merged centroids give log(k)/|s|, so they cannot end it early.
HARDNESS = 1e-3

# Centroids whose squared distance is at most this fraction of the mean cost of a row count as one.
_COINCIDENT = 1e-6


# The adaptive schedule. At each exponent passes go on until the centroids move by less than
# _REST in one, _STAGE_PASSES at most; the factor between exponents grows while they rest at once
# and shrinks while they keep moving, as they do near a split. Before each stage centroids are
# moved at random by NOISE of the features' standard deviation, so that merged ones can part.
_REST, _STAGE_PASSES, NOISE = 3e-3, 10, 0.02
_LEAST_FACTOR, _FIRST_FACTOR, _MOST_FACTOR = 1.05, 1.2, 1.5
_QUICK, _SLOW = 2, 5  # passes

# Where the power mean is this close to the minimum, sum d_min is within 0.5 % of where it ends (on
# eight sets); a start that is 2 % above the best one then will not win.
_NEARLY_HARD, _HOPELESS = 0.99, 1.02


@dataclass(frozen=True)
class Schedule:
    """How s falls, and when a run ends."""

    s0: float
    s_final: float  # -inf: end in the hard rule
    max_iter: int
    tol: float
    factor: float | None = None  # s <- factor * s after a stage; None: adaptive
    every: int | None = None  # passes of a stage; None: until the centroids rest
    stop: str = "annealed"
    noise: float = 0.0  # moves the centroids before each stage


@dataclass
class Result:
    """The end of one run."""

    s: float  # the last soft exponent
    converged: bool
    dropped: bool = False  # left before its end, as another start is better


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
    best: float = math.inf  # the least cost at which other starts ended in the hard rule
    passes: int = 0
    objective: float = math.inf  # before the last pass

    def step(self, stage: str, s: float) -> tuple[Sums, float]:
        """One pass at `s`; moves the centroids. Returns the sums and the relative shift."""
        started = time.perf_counter()
        sums, _ = one_pass(self.rows, self.theta, s)
        theta = sums.centers(self.theta, self.rows.dtype)
        gone = sums.vanished(self.rows.dtype)
        repairs = _relocate(self.rows, theta, gone, self.variance) if gone.any() else 0
        moved = float((self.rows.scaled(theta - self.theta) ** 2).sum()) / len(theta)
        shift = math.sqrt(moved / self.variance) if self.variance > 0 else 0.0
        objective = sums.objective(s) + self.penalty(self.rows)
        close_by = coincidence(self.rows, sums, self.variance)
        record = {
            "stage": stage,
            "start": self.start,
            "rows": self.rows.n,
            "s": s,
            "objective": self.objective_unit * objective,
            "shift": shift,
            "distinct": count_distinct(self.rows.scaled(theta), close_by),
            "repairs": repairs,
            "seconds": time.perf_counter() - started,
        }
        self.history.append(record)
        if self.verbose:
            print(
                f"[{stage}] rows={self.rows.n} s={s:.4g} objective={record['objective']:.8g} "
                f"shift={shift:.2e} distinct={record['distinct']} repairs={repairs}"
            )
        if len(self.rows.xs) > 1:
            record["kernel_weights"] = self.rows.alpha
        self.theta, self.rows = theta, self.reweigh(self.rows, sums, s)
        self.objective = objective
        self.passes += 1
        return sums, shift

    def settle(self, stage: str, s: float, tol: float, passes: int) -> bool:
        """Passes at a fixed `s` until the centroids rest; whether they did within `passes`."""
        return any(self.step(stage, s)[1] <= tol for _ in range(passes))

    def disturb(self, size: float) -> None:
        """Move every centroid at random, by `size` of the features' standard deviation."""
        spread = size * math.sqrt(self.variance / self.theta.shape[1])
        self.theta = self.theta + spread * self.random.standard_normal(self.theta.shape)


def anneal(run: Run, schedule: Schedule) -> Result:
    """Lower s by the schedule, then finish: in the hard rule, or at `s_final`."""
    before = run.passes
    end = _lower(run, schedule)
    left = schedule.max_iter - (run.passes - before)
    if schedule.stop == "annealed" and end.converged:
        hard = math.isinf(schedule.s_final)
        stage, s = ("hard", -math.inf) if hard else ("settle", end.s)
        end.converged = run.settle(stage, s, schedule.tol, left)
    return end


def _lower(run: Run, schedule: Schedule) -> Result:
    """The soft passes."""
    s, left = schedule.s0, schedule.max_iter
    run.objective = math.inf
    factor = _FIRST_FACTOR if schedule.factor is None else schedule.factor
    while left > 0:
        if schedule.noise:
            run.disturb(schedule.noise)
        before = run.passes
        sums, settled = _stage(run, schedule, s, left)
        left -= run.passes - before
        if settled or (schedule.stop == "annealed" and _is_over(sums, s, schedule)):
            return Result(s, True)
        if _is_hopeless(sums, run.best, schedule):
            return Result(s, False, dropped=True)
        if schedule.factor is None:
            factor = _next_factor(factor, run.passes - before)
        lower = max(factor * s, schedule.s_final)
        if is_hard(lower, run.rows.dtype):
            return Result(s, True)
        s = lower
    return Result(s, False)


def _stage(run: Run, schedule: Schedule, s: float, left: int) -> tuple[Sums, bool]:
    """Passes at one exponent; the sums of the last, and whether the objective settled where that
    is to end the run."""
    for _ in range(min(left, _STAGE_PASSES if schedule.every is None else schedule.every)):
        previous = run.objective
        sums, shift = run.step("anneal", s)
        if schedule.stop == "objective":
            if abs(previous - run.objective) <= schedule.tol * run.objective:
                return sums, True
        elif schedule.every is None and shift <= _REST:
            break
    return sums, False


def _is_hopeless(sums: Sums, best: float, schedule: Schedule) -> bool:
    hard = math.isinf(schedule.s_final) and schedule.stop == "annealed"
    nearly = sums.soft >= _NEARLY_HARD * sums.floor
    return hard and nearly and sums.floor > _HOPELESS * best


def _is_over(sums: Sums, s: float, schedule: Schedule) -> bool:
    hard = math.isinf(schedule.s_final) and sums.soft >= (1 - HARDNESS) * sums.floor
    return hard or s <= schedule.s_final


def _next_factor(factor: float, passes: int) -> float:
    """Faster where the last stage came to rest at once, slower where it did not."""
    if passes <= _QUICK:
        return min(_MOST_FACTOR, factor**1.3)
    return max(_LEAST_FACTOR, factor**0.6) if passes >= _SLOW else factor


def coincidence(rows: Rows, sums: Sums, variance: float) -> float:
    """The squared distance up to which centroids count as one: small beside what a row costs, or
    rounding."""
    rounding = (8 * np.finfo(rows.dtype).eps) ** 2 * variance
    return float(max(_COINCIDENT * sums.floor / rows.total_weight, rounding))


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
    return 1 - 1 / float(eigvalsh(R, 0.5 * np.eye(len(P)) - P, subset_by_index=[top, top])[0])


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

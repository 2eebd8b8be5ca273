"""A fit of exact kernels: its rows, on whose components starts run, and what is evaluated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.cluster import k_means
from sklearn.preprocessing import normalize

from rffpk.anneal import convergence_warnings, decompositions
from rffpk.anneal.convergence_warnings import Cause, Ending
from rffpk.anneal.fit import Data
from rffpk.anneal.fitted import KernelCentroids, gaps_to_centroids, memberships_at, unit_weights
from rffpk.anneal.kernel_steps import KernelLevel, KernelRows, squared_norms
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Plan, Result, StartEnd, anneal
from rffpk.anneal.starts import random_rows, seed_rows
from rffpk.anneal.steps import FeatureLevel
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.passes import one_pass
from rffpk.rows.rows import Rows
from rffpk.rows.sample import Opened
from rffpk.rows.store import Cache
from rffpk.rows.sums import power_weights
from rffpk.rows.weights import weight_unit
from rffpk.spaces.kernels import PRECOMPUTED, FittedKernel, matched
from rffpk.system import config
from rffpk.system.linalg import gaps_of, ritz_values

KernelInit = Literal["k-means++", "random", "k-means", "spectral"]


@dataclass(frozen=True)
class KernelProblem:
    """The problem that the parameters define: the kernels, the objective, and the starts."""

    kernels: Any  # the parameter, as `matched` takes it
    plan: Callable[[FitContext, float], Plan]  # returns the plan for a critical exponent
    init: Any
    cache: Cache
    objective: PowerMean = field(default_factory=PowerMean)
    several: bool = False  # whether X may be a list of views
    annealed: bool = False  # whether starts may have soft steps
    # whether starts run on the kernels themselves, not on principal components
    exact: bool = False
    level: type[KernelLevel] = KernelLevel
    smoothing: float = 0.0  # squared distances grow by this part of the mean squared norm
    stores_memberships: bool = False  # set by the fit

    def prepare(self, opened: Opened, context: FitContext) -> KernelData:
        """Return the rows with their kernels, and the plan of the starts.

        Exact fits, and fits with given centroids, search on the kernels. All other fits search on
        principal components of the weighted sum of the kernels. If kernel weights are learned, one
        start with equal weights finds the weights of this sum."""
        xs, named = opened.tables, isinstance(self.init, str)
        initial = None if named else _given_weights(self.init, context.k, len(xs[0]))
        rows = _kernel_rows(self, opened, context)
        kernels, alpha = self.level(rows, context), rows.equal
        computed = rows.variance, rows.diagonals
        context.journal.begin(context.history, context.random, opened, *computed)
        data = partial(KernelData, self, opened, kernels)
        if self.exact or initial is not None:
            is_random = initial is not None or self.init == "random"
            # only for initial centroids that are neither given nor random
            components = None if is_random else rows.components(alpha)[0]
            critical = rows.exponent(rows.gram(alpha)) if self.annealed else 0.0
            # the last passes share `max_iter` with the start
            plan = replace(self.plan(context, critical), fresh=False)
            context.history.begin(len(plan.starts), context.history.unit, 0.0, [])
            return data(alpha, initial, components, kernels, plan)
        found = data(alpha, None, *_search_of_components(self, kernels, alpha))
        if rows.objective.learns_weights and len(alpha) > 1:
            alpha = _weights_after_one_start(found)
            found = data(alpha, None, *_search_of_components(self, kernels, alpha))
        return found


@dataclass(frozen=True)
class ComponentLevel(FeatureLevel):
    """Rows whose features are principal components of a weighted sum of kernels."""

    kernels: KernelLevel | None = None
    of: Array | None = None  # (L,), the weights of the kernels

    def leave(self, state: State) -> State:
        """Return the state on the kernels: centroids (k, n) are weights of the rows.

        Each centroid is the mean of the rows of its cluster. The centroid of an empty cluster is
        the nearest row."""
        assert self.kernels is not None and self.of is not None
        self.context.history.left_out = 0.0  # the kernels leave nothing out
        x, rows = self.rows.xs[0], self.kernels.rows
        labels = one_pass(self.rows, state.theta, -math.inf, want=("labels",))[1]["labels"]
        W, masses = rows.means(labels, len(state.theta))
        for j in np.flatnonzero(masses == 0):  # empty clusters: at the nearest row, like seeds
            gaps = np.where(rows.counted, ((x - state.theta[j]) ** 2).sum(axis=1), math.inf)
            W[j, gaps.argmin()] = 1.0
        return self.kernels.moved(state._replace(alpha=self.of, assigned=None), W)


@dataclass(frozen=True)
class KernelData(Data):
    """The rows of a fit with their kernels, or with principal components of the kernels."""

    problem: KernelProblem
    opened: Opened
    kernels: KernelLevel
    alpha: Array  # (L,), the weights of the kernels in the sum whose components are used
    given: Array | None  # (k, n), initial centroids
    components: Rows | None  # where initial centroids are chosen; None: chosen at random
    search: Any  # level of the starts: components, or the kernels
    plan: Plan
    patience: int = 0  # no swaps on larger samples

    def first(self, start: int) -> State:
        """Return the state of a start at its initial centroids.

        If starts run on the kernels, centroids are weights (k, n) of the rows. On components they
        are points (k, r)."""
        W = self.given
        if W is None:
            W = initial_weights(self.kernels.rows, self.components, self.problem.init)
        if isinstance(self.search, KernelLevel):
            return self.kernels.first(W, self.alpha)
        return State(W @ self.search.rows.xs[0], self.search.rows.alpha)

    def later(self) -> list[KernelLevel]:
        """Return the level of the kernels, if starts ran on components."""
        return [] if self.search is self.kernels else [self.kernels]

    def result(
        self, level: KernelLevel, state: State, end: StartEnd, write: Callable[..., Any] | None
    ) -> Result:
        """Evaluate the centroids on all rows, and return the result of the fit.

        `end` is the end of the start that was kept. `write` is not used, as the rows are in
        memory."""
        problem, rows, plan = self.problem, level.rows, self.plan
        history, journal = level.context.history, level.context.journal
        if problem.annealed and math.isinf(end.s):  # no start was annealed
            state, s = journal.run(level.nearly_hard_exponent, state)
            end = end._replace(s=s)
        # without swaps, the record of the kept start gets the objective by the kernels
        if level is not self.search and not plan.swaps:
            state, cost = journal.run(level.cost, state, -math.inf)
            kept = next(r for r in reversed(history.records) if r.get("outcome") == "kept")
            kept["objective"] = history.unit * cost
        state, objective = journal.run(level.cost, state, end.s)
        attributes, d = _evaluated(problem, rows, state, plan.schedule.ends_hard, end.s)
        attributes["objective_"] = history.unit * objective
        if problem.stores_memberships:
            exponent = attributes["membership_exponent_"]
            attributes["memberships_"] = memberships_at(d, exponent, rows.dtype)
        for kernel in rows.kernels:  # fitted models keep no kernel matrix
            kernel.drop_matrix()
        ending = _ending(rows, attributes, d, -math.inf if plan.schedule.ends_hard else end.s, plan)
        if not rows.definite:  # the warning of an indefinite kernel says more
            ending = replace(ending, found=ending.k)
        causes = list[Cause]()
        if ending.found < ending.k:
            causes = [
                partial(convergence_warnings.few_rows, "X", self.opened.tables, self.opened.weight)
            ]
        return Result(attributes, end, ending, causes, self, rows)


# ---- prepare: rows, kernels and objective --------------------------------------------------------


def _search_of_components(
    problem: KernelProblem, kernels: KernelLevel, alpha: Array
) -> tuple[Rows, ComponentLevel, Plan]:
    """Return principal components of the kernels, their level, and the plan of the starts.

    `alpha` (L,) are the weights of the kernels in the sum that is decomposed."""
    rows, context = kernels.rows, kernels.context
    components, left_out = rows.components(alpha)
    # on components the kernel weights are fixed, and so is their penalty
    left_out += rows.objective.penalty(alpha, rows.total_weight)
    x = components.xs[0][rows.some]
    critical = rows.exponent(x @ x.T) if problem.annealed else 0.0
    plan = replace(problem.plan(context, critical), fresh=False)
    context.history.begin(len(plan.starts), context.history.unit, left_out, [])
    level = ComponentLevel(
        components, rows.variance, PowerMean(), context, plan.most, kernels=kernels, of=alpha
    )
    return components, level, plan


def _weights_after_one_start(data: KernelData) -> Array:
    """Return the kernel weights (L,) that one start learns.

    The start runs on components. Its last passes, on the kernels, learn the weights."""
    level, kernels, plan = data.search, data.kernels, data.plan
    # the index -1 distinguishes it from the starts that are compared
    state, end = anneal(level, data.first(-1)._replace(start=-1), plan.starts[-1])
    state = level.leave(state)
    state, _ = kernels.follow(state, kernels.last_stage(plan.last(end.s), state))
    # a checkpoint must have these numbers, because components are computed from them
    return np.array(
        kernels.context.journal.run(lambda state: (state, state.alpha.tolist()), state)[1]
    )


def _kernel_rows(problem: KernelProblem, opened: Opened, context: FitContext) -> KernelRows:
    """Fit the kernels to the rows; return the rows with kernels, scaled weights and objective.

    Warn if a kernel is indefinite."""
    xs, weight = opened.tables, opened.weight
    if not checks.is_option(problem.kernels, PRECOMPUTED):
        xs = [x.copy() for x in xs]  # the kernels keep them, and the caller may change X
    views, specs = matched(xs, problem.kernels, not opened.shape.has_views, weight)
    kernels = [
        FittedKernel(
            x, spec, weight=weight, shift=True, random=context.random, n_threads=context.n_threads,
            unit_variance=len(specs) > 1,
        )
        for x, spec in zip(views, specs)
    ]  # fmt: skip
    unit = weight_unit(weight)
    context.history.unit = unit  # weights are scaled to the range of float32
    rows = KernelRows(kernels, weight / unit, problem.objective, context)
    for view, kernel in enumerate(kernels):
        if not kernel.definite:
            values = ritz_values(partial(_product, rows, view), rows.n)
            rows.definite &= not convergence_warnings.warn_if_indefinite(f"kernel {view}", values)
    if problem.smoothing:
        means = np.average(rows.diagonals, axis=1, weights=weight, keepdims=True)
        rows.diagonals = rows.diagonals + problem.smoothing * means
    return rows


def _product(rows: KernelRows, view: int, v: Array) -> Array:
    """Return the product (n,) of the kernel matrix of a view with the vector v (n,)."""
    return np.asarray(rows.multiply(v[None])[view, 0], dtype=np.float64)


def _given_weights(init: Any, k: int, n: int) -> Array:
    """Check an array `init`; return initial centroids (k, n), rows of weights that sum to one.

    `init` has labels (n,) of the rows, or weights (k, n) of the rows for each cluster."""
    checks.check_plain(init, "init")
    with checks.named("init"):
        init = np.asarray(init)
    if init.shape == (n,) and np.issubdtype(init.dtype, np.integer):
        if not np.array_equal(np.unique(init), np.arange(k)):
            raise ValueError(f"init: has other labels than 0 to {k - 1}, or not all. Pass each.")
        W = (np.arange(k)[:, None] == init).astype(np.float64)
    elif init.shape == (k, n):
        with checks.named("init"):
            W = init.astype(np.float64)
        if not np.isfinite(W).all() or (W.sum(axis=1) == 0).any():
            raise ValueError("init: has rows that are not finite or sum to zero. Pass weights.")
    else:
        raise ValueError(
            f"init.shape={init.shape}: must be ({n},) or ({k}, {n}). Pass integer labels of "
            "the rows, or weights of the rows for each cluster."
        )
    return np.asarray(W / W.sum(axis=1, keepdims=True))


def initial_weights(rows: KernelRows, components: Rows | None, init: str) -> Array:
    """Return initial centroids (k, n) of a start, as weights of the rows.

    The centroids are k rows, or for "spectral" the means of k clusters. Rows are chosen on the
    principal components of the kernels, or at random if `components` is None."""
    n, k, random = rows.n, rows.context.k, rows.context.random
    rows.context.history.records.append({"stage": "seeding", "rows": n})
    if components is None:
        chosen = random_rows(rows.p, k, random)
    elif init == "spectral":
        return rows.means(_spectral(components, k, random), k)[0]
    else:
        chosen = seed_rows(components, components.xs[0], k, init, random)
    W = np.zeros((k, n))
    W[np.arange(k), chosen] = 1
    return W


def _spectral(components: Rows, k: int, random: Any) -> Array:
    """Return labels (n,) by spectral clustering: k-means on k leading eigenvectors of the kernel.

    The eigenvectors follow from the principal components, by scaling their columns. Then each row
    (k,) of the eigenvectors is scaled to length one."""
    x, p = components.xs[0][:, :k], components.weight
    lengths = np.linalg.norm(x * np.sqrt(p)[:, None], axis=0)
    H = normalize(x / np.where(lengths > 0, lengths, 1))
    with config.one_openmp_thread():
        labels: Array = k_means(H, k, sample_weight=p, n_init=10, random_state=random)[1]
    return labels


# ---- evaluate ------------------------------------------------------------------------------------


def _evaluated(
    problem: KernelProblem, rows: KernelRows, state: State, ends_hard: bool, s: float
) -> tuple[dict[str, Any], Array]:
    """Return attributes of the fitted model, and squared distances (n, k) from the centroids.

    After a hard end the exponent of memberships follows from the shape of the clusters. The
    exponent is s for all other fits, and if all rows of each cluster are equal."""
    W, alpha, unit = state.theta, state.alpha, rows.context.history.unit
    weights = unit_weights(W)
    Y = rows.multiply(weights, precise=True)
    squares = squared_norms(weights, Y)
    gaps = gaps_to_centroids(Y.swapaxes(1, 2), squares, alpha)
    labels = gaps.argmin(axis=1).astype(np.int32)
    diagonals = np.stack([kernel.diagonal for kernel in rows.kernels])  # without smoothing
    # indefinite kernels may have negative squared distances
    d = gaps + (alpha @ diagonals)[:, None]
    inertia = float(rows.p @ d[np.arange(rows.n), labels])
    d = np.maximum(d, 0)
    # the critical exponent inside clusters, less BELOW, is the exponent of memberships
    inside = rows.exponent(rows.gram(alpha), labels) if ends_hard else -math.inf
    exponent = inside - decompositions.BELOW if math.isfinite(inside) else s
    attributes = {
        "labels_": labels,
        "dual_coef_": W,
        "inertia_": unit * max(inertia, 0.0),
        "n_iter_": state.passes,
        "membership_exponent_": exponent,
        "cache_": rows.stored is not None,
        "_centroids": KernelCentroids(
            rows.kernels, squares, alpha, gaps_of(np.einsum("l,in,ljn->ij", alpha, weights, Y)),
            unit * np.bincount(labels, rows.p, len(W)),
        ),
    }  # fmt: skip
    if problem.several:
        attributes["kernel_weights_"] = alpha
    if rows.objective.weight_entropy:
        attributes["lambda_"] = rows.objective.weight_entropy * rows.total_weight * unit
    return attributes, d


def _ending(rows: KernelRows, fitted: dict[str, Any], d: Array, s: float, plan: Plan) -> Ending:
    """Return the ending of a fit: how many clusters have rows, and different memberships.

    `fitted` are the attributes of the fitted model, and `d` (n, k) squared distances from its
    centroids. s is the exponent of the memberships. In the hard limit, memberships are not
    compared."""
    k, labels, centroids = rows.context.k, fitted["labels_"], fitted["_centroids"]
    used = int(np.count_nonzero(centroids.masses))
    ending = Ending(k, used, s, plan.critical, plan.lowered_by)
    if math.isinf(s):
        return ending
    counted = np.flatnonzero(rows.counted)
    index = counted[convergence_warnings.rows_of_clusters(labels[counted], k)]
    u = power_weights(d[index], s)[2]
    return ending.of_memberships(u, labels[index], d[index], lambda part: centroids.between[part])

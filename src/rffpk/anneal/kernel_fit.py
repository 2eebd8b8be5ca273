"""The fit of centroids that are weights of the rows, with exact kernels, in three steps: prepare,
search, finish."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.cluster import k_means
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from rffpk.anneal import decompositions
from rffpk.anneal.convergence_warnings import (
    Ending,
    few_rows,
    rows_of_clusters,
    warn_if_indefinite,
    warn_of_ending,
)
from rffpk.anneal.fit import find_number, publish_end
from rffpk.anneal.kernel_rows import KernelRows
from rffpk.anneal.kernel_steps import KernelRun, squared_norms
from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import FitContext, History, Plan, Stage, StartEnd, follow, search
from rffpk.anneal.starts import random_rows, seed_rows
from rffpk.anneal.steps import FeatureRun
from rffpk.anneal.swaps import improve
from rffpk.estimators.base import fit_of, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.passes import one_pass
from rffpk.rows.rows import Rows
from rffpk.rows.sample import open_memory, sampling
from rffpk.rows.store import Cache, Storage
from rffpk.rows.sums import hard_weights, power_weights
from rffpk.rows.weights import weight_unit
from rffpk.spaces.kernels import PRECOMPUTED, FittedKernel, matched
from rffpk.system import config
from rffpk.system.linalg import gaps_of, ritz_values
from rffpk.system.tiles import by_blocks

M = TypeVar("M", bound=Any)

# Distances have errors of this part of the numbers that they are differences of.
_ROUNDING = 1e-12

KernelInit = Literal["k-means++", "random", "k-means", "spectral"]


@dataclass(frozen=True)
class KernelProblem:
    """What parameters say: the kernels, what is minimised, which starts run."""

    kernels: Any  # as `matched` takes them
    plan: Callable[[FitContext, float], Plan]  # from the critical exponent, among others
    init: Any
    cache: Cache
    objective: PowerMean = field(default_factory=PowerMean)
    several: bool = False  # whether X may be a list of views
    annealed: bool = False  # whether starts may have soft steps
    # whether all steps of the starts are made with the kernels, none on components of them
    exact: bool = False
    run: type[KernelRun] = KernelRun
    smoothing: float = 0.0  # part of the mean squared norm that is added to squared distances


@with_callbacks
def fit(self: M, X: Any, y: Any = None, sample_weight: Any = None) -> M:
    """Cluster the rows of X.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
        Finite numbers; with precomputed kernels a kernel matrix of shape (n_samples,
        n_samples). A list of views, arrays of shape (n_samples, n_features_l) with the same
        rows, some or all of them sparse, or of kernel matrices, is for classes with the
        parameter `kernels` only. Sparse rows are for the kernels "rbf", "linear", "polynomial",
        "cosine", "sigmoid" and "laplacian".
    y : Ignored
        Present for scikit-learn's conventions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each. A weight of two minimises the same as a
        repeated row, but draws differ where rows are repeated, so that another optimum may be
        found. Costs are precise to eps times the largest weight.

    Returns
    -------
    self : object
        The fitted estimator.

    Raises
    ------
    ValueError, TypeError
        If a parameter, X or sample_weight is not as described; nothing is changed then.
    MemoryError
        If ``cache=True`` and the kernels take more than a quarter of the available memory.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended the best start before it converged, if clusters have no rows, or if
        memberships at a finite exponent do not tell some of them apart.
    UserWarning
        If a kernel has a clearly negative eigenvalue: negative squared distances then count as
        0 while fitting.
    """
    with (
        reporting(self, X) as progress,
        fit_of(self),
        config.one_blas_thread(),
    ):
        problem: KernelProblem = self._problem()
        random = checks.check_random_state(self.random_state)
        how = sampling(self.n_clusters, self.n_jobs, random)
        opened = open_memory(X, sample_weight, self._schema(), how)
        self._remember(opened.shape)
        k = find_number(self, opened, random, progress)
        xs, weight = opened.tables, opened.weight
        n_threads = config.n_threads(self.n_jobs)
        context = FitContext(
            random, History(progress=progress), n_threads, k, Storage(problem.cache)
        )
        rows, given = prepare(self, problem, xs, weight, context)
        if problem.exact or given is not None:
            run, end, plan = search_kernels(problem, rows, given)
        else:
            run, end, plan = search_components(problem, rows)
        ending = finish(self, problem, run, end, plan)
        if ending.found < ending.k and rows.definite:  # else that warning names it
            warn_of_ending(ending, [few_rows("X", xs, weight)])
        for kernel in rows.kernels:
            kernel.drop_matrix()
    return self


# ---- prepare: rows, kernels and objective --------------------------------------------------------


def prepare(
    model: Any, problem: KernelProblem, xs: list[Array], weight: Array, context: FitContext
) -> tuple[KernelRows, Array | None]:
    """The rows with their kernels and what is minimised, and centroids that are given; sets the
    kernels of the model, and whether they are stored."""
    named = isinstance(problem.init, str)
    given = None if named else _given_weights(problem.init, context.k, len(xs[0]))
    if not checks.is_option(problem.kernels, PRECOMPUTED):
        xs = [x.copy() for x in xs]  # the kernels keep them, and the caller may change X
    views, specs = matched(xs, problem.kernels, not model._shape.has_views, weight)
    model._kernels = [
        FittedKernel(
            x, spec, weight=weight, shift=True, random=context.random, n_threads=context.n_threads,
            unit_variance=len(specs) > 1,
        )
        for x, spec in zip(views, specs)
    ]  # fmt: skip
    unit = weight_unit(weight)
    context.history.unit = unit  # weights are scaled to the range of float32
    rows = KernelRows(model._kernels, weight / unit, problem.objective, context)
    model.cache_ = rows.stored is not None
    for view, kernel in enumerate(model._kernels):
        if not kernel.definite:
            values = ritz_values(partial(_product, rows, view), rows.n)
            rows.definite &= not warn_if_indefinite(f"kernel {view}", values)
    if problem.smoothing:
        means = np.average(rows.diagonals, axis=1, weights=weight, keepdims=True)
        rows.diagonals = rows.diagonals + problem.smoothing * means
    return rows, given


def _product(rows: KernelRows, view: int, v: Array) -> Array:
    """The product of a kernel with a vector."""
    return np.asarray(rows.multiply(v[None])[view, 0], dtype=np.float64)


def _given_weights(init: Any, k: int, n: int) -> Array:
    """Centroids (k, n) from an array `init`: labels of the rows, or weights of the rows."""
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


# ---- search --------------------------------------------------------------------------------------


def search_components(problem: KernelProblem, rows: KernelRows) -> tuple[KernelRun, StartEnd, Plan]:
    """The best of all starts over the principal components of the kernels, improved by swaps, which
    ends with the hard rule and the kernels themselves; its end, and the plan of the starts.

    The weights of several kernels are those at the end of one start with equal weights.
    """
    context, alpha = rows.context, rows.equal
    history, first = context.history, rows.objective.learns_weights and len(alpha) > 1
    while True:
        components, left_out = rows.components(alpha)
        history.left_out = left_out + rows.objective.penalty(alpha, rows.total_weight)
        x = components.xs[0][rows.some]
        plan = problem.plan(context, rows.exponent(x @ x.T) if problem.annealed else 0.0)
        begin = partial(_begin, rows, components, problem.init, plan.most)
        if first:
            if history.progress is not None:
                history.progress.n_starts = len(plan.starts)
            best = begin(-1)
            end = follow(best, plan.starts[-1], components.dtype)
        else:
            best, end, cost = search(begin, plan.starts, history, components.n, components.dtype)
            if plan.swaps:
                improve(best, cost, plan.swaps)
        history.left_out = 0.0
        run = _go_on_with_kernels(problem, rows, best, alpha, end, plan)
        if not first:
            if not plan.swaps:  # the start that was kept ends here
                kept = next(r for r in reversed(history.records) if r.get("outcome") == "kept")
                kept["objective"] = history.unit * run.cost(-math.inf)
            return run, end, plan
        alpha, first = run.alpha, False


def _begin(rows: KernelRows, components: Rows, init: str, most: int, number: int) -> FeatureRun:
    """The run of a start over components."""
    theta = initial_weights(rows, components, init) @ components.xs[0]
    return FeatureRun(components, theta, rows.variance, PowerMean(), rows.context, number, most)


def _go_on_with_kernels(
    problem: KernelProblem, rows: KernelRows, best: FeatureRun, alpha: Array, end: StartEnd,
    plan: Plan,
) -> KernelRun:  # fmt: skip
    """The run with the kernels themselves that goes on from the clusters of one over components, to
    the end by the hard rule."""
    x, schedule = best.rows.xs[0], plan.schedule
    labels = one_pass(best.rows, best.theta, -math.inf, want=("labels",))[1]["labels"]
    W, masses = rows.means(labels, len(best.theta))
    for j in np.flatnonzero(masses == 0):  # empty clusters: at the nearest row, as seeds are
        gaps = np.where(rows.counted, ((x - best.theta[j]) ** 2).sum(axis=1), math.inf)
        W[j, gaps.argmin()] = 1.0
    run = problem.run(rows, W, alpha, best.number, best.passes)
    left = max(schedule.max_iter - best.passes, 1)
    last = run.follow(Stage("hard", -math.inf, 0.0, schedule.tol, left)).last
    end.converged = end.converged and last.shift <= schedule.tol
    if problem.annealed and math.isinf(end.s):  # no start was
        end.s = run.nearly_hard_exponent()
    return run


def search_kernels(
    problem: KernelProblem, rows: KernelRows, given: Array | None
) -> tuple[KernelRun, StartEnd, Plan]:
    """The best of all starts whose steps are made with the kernels, its end, and the plan."""
    context, init, components = rows.context, problem.init, None
    if given is None and init != "random":
        components = rows.components(rows.equal)[0]

    def begin(number: int) -> KernelRun:
        W = initial_weights(rows, components, init) if given is None else given
        return problem.run(rows, W, rows.equal, number)

    critical = rows.exponent(rows.gram(rows.equal)) if problem.annealed else 0.0
    plan = problem.plan(context, critical)
    run, end, _ = search(begin, plan.starts, context.history, rows.n, rows.dtype)
    if problem.annealed and math.isinf(end.s):  # it began at given centroids
        end.s = run.nearly_hard_exponent()
    return run, end, plan


def initial_weights(rows: KernelRows, components: Rows | None, init: str) -> Array:
    """Initial centroids of a start, (k, n): rows, or means of clusters of rows. Components of the
    kernels are needed unless rows are chosen at random."""
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
    """The clusters (n,) that k-means finds in the rows of the k leading eigenvectors, scaled to
    length one, of the kernel with these principal components."""
    x, p = components.xs[0][:, :k], components.weight
    lengths = np.linalg.norm(x * np.sqrt(p)[:, None], axis=0)
    H = normalize(x / np.where(lengths > 0, lengths, 1))
    with config.one_openmp_thread():
        labels: Array = k_means(H, k, sample_weight=p, n_init=10, random_state=random)[1]
    return labels


# ---- finish --------------------------------------------------------------------------------------


def finish(model: Any, problem: KernelProblem, run: KernelRun, end: StartEnd, plan: Plan) -> Ending:
    """Set the fitted attributes; how the run ended."""
    rows, k, unit = run.rows, len(run.W), run.rows.context.history.unit
    ends_hard = plan.schedule.ends_hard
    weights = unit_weights(run.W)
    Y = rows.multiply(weights, precise=True)
    squares = squared_norms(weights, Y)
    gaps = gaps_to_centroids(Y.swapaxes(1, 2), squares, run.alpha)
    labels = gaps.argmin(axis=1).astype(np.int32)
    diagonals = np.stack([kernel.diagonal for kernel in rows.kernels])  # without smoothing
    # of indefinite kernels negative ones too
    d = gaps + (run.alpha @ diagonals)[:, None]
    inertia = float(rows.p @ d[np.arange(rows.n), labels])
    d = np.maximum(d, 0)
    inside = rows.exponent(rows.gram(run.alpha), labels) if ends_hard else -math.inf
    exponent = inside - decompositions.BELOW if math.isfinite(inside) else end.s
    attributes = {
        "labels_": labels,
        "dual_coef_": run.W,
        "objective_": unit * run.cost(end.s),
        "inertia_": unit * max(inertia, 0.0),
        "n_iter_": run.passes,
        "membership_exponent_": exponent,
        "_alpha": run.alpha,
        "_squares": squares,
        "_gaps": gaps_of(np.einsum("l,in,ljn->ij", run.alpha, weights, Y)),
        "_masses": unit * np.bincount(labels, rows.p, k),
    }
    if problem.several:
        attributes["kernel_weights_"] = run.alpha
    if rows.objective.weight_entropy:
        attributes["lambda_"] = rows.objective.weight_entropy * rows.total_weight * unit
    if model.store_memberships:
        attributes["memberships_"] = _memberships(d, exponent, rows.dtype)
    publish_end(model, attributes, end, rows.context)
    return _ending(rows, attributes, d, -math.inf if ends_hard else end.s, plan)


def _ending(rows: KernelRows, fitted: dict[str, Any], d: Array, s: float, plan: Plan) -> Ending:
    """How the run ended: which clusters have rows, and can be told apart at an exponent."""
    k, labels = rows.context.k, fitted["labels_"]
    used = int(np.count_nonzero(fitted["_masses"]))
    ending = Ending(k, used, s, plan.critical, plan.lowered_by)
    if math.isinf(s):
        return ending
    counted = np.flatnonzero(rows.counted)
    index = counted[rows_of_clusters(labels[counted], k)]
    u = power_weights(d[index], s)[2]
    return ending.of_memberships(u, labels[index], d[index], lambda part: fitted["_gaps"][part])


def unit_weights(coef: Array) -> Array:
    """Weights of the rows (k, n) in double precision and of sum one: centroids that are far from
    the origin of the kernel would move with their sum."""
    coef = coef.astype(np.float64)
    sums = coef.sum(axis=1, keepdims=True)
    return np.asarray(coef / np.where(sums != 0, sums, 1))


def gaps_to_centroids(products: Iterable[Array], squares: Array, alpha: Array) -> Array:
    """Squared distances (n, k), less the squared norms of the rows, from the products (n, k) of
    rows with centroids in each kernel and the squared norms (L, k) of these. Those that exceed the
    least by rounding errors are equal to it, so that labels do not depend on the order of sums."""
    gaps, sizes = alpha @ squares, alpha @ np.abs(squares)
    for weight, product in zip(alpha, products):
        gaps = gaps - 2 * weight * product
        sizes = sizes + 2 * weight * np.abs(product)
    at = gaps.argmin(axis=1)[:, None]
    least = np.take_along_axis(gaps, at, 1)
    error = _ROUNDING * (sizes + np.take_along_axis(sizes, at, 1))
    return np.where(gaps - least <= error, least, gaps)


# ---- what a fitted model says of rows ------------------------------------------------------------

# The methods that need k(x, x).
_CALLERS = {
    "memberships": "predict_proba",
    "distances": "transform",
    "medoids": "medoids",
    "cost": "score",
}


def measure(
    model: Any, X: Any, want: str, s: float | None = None, sample_weight: Any = None
) -> Any:
    """What `want` names of rows; see `Clusterer._measure`."""
    check_is_fitted(model)
    if want == "gaps":
        return model._gaps, model._masses
    xs = model._check_views(X, reset=False)
    precomputed = any(kernel.precomputed for kernel in model._kernels)
    if want != "labels" and precomputed:
        raise ValueError(
            f"{_CALLERS[want]} needs k(x, x), which precomputed kernels of new rows do not "
            "contain. For the fitted rows, the score is -inertia_, and "
            "store_memberships=True keeps the memberships."
        )
    # without k(x, x) where labels are wanted, as it does not change the order of distances
    with config.one_blas_thread():
        squares = _distances(model, xs, whole=want != "labels")
    if want == "labels":
        return squares.argmin(axis=1).astype(np.int32)  # the first of equals
    squares = np.maximum(squares, 0)
    if want == "memberships":
        s = model.membership_exponent_ if s is None else s
        return _memberships(squares, s, xs[0].dtype)
    if want == "distances":
        return np.sqrt(squares).astype(xs[0].dtype, copy=False)
    if want == "medoids":
        return squares.argmin(axis=0)
    least = squares.min(axis=1)
    weight = checks.check_sample_weight(sample_weight, len(least), X)
    return float((weight * least).sum())


def _distances(model: Any, xs: list[Array], whole: bool) -> Array:
    """Squared distances (n, k) of rows from the centroids; `whole`: with k(x, x)."""
    weights, kernels = unit_weights(model.dual_coef_), model._kernels

    def of_block(xs: list[Array]) -> Array:
        views = xs if model._shape.has_views else xs * len(kernels)
        blocks, diagonals = zip(*(kernel.cross(x) for kernel, x in zip(kernels, views)))
        products = [block @ weights.T for block in blocks]
        gaps = gaps_to_centroids(products, model._squares, model._alpha)
        return gaps + (model._alpha @ np.stack(diagonals))[:, None] if whole else gaps

    return by_blocks(of_block, xs, kernels[0].n, config.n_threads(model.n_jobs))


def _memberships(squares: Array, s: float, dtype: Any) -> Array:
    """Memberships of rows with these squared distances, at an exponent."""
    shares = hard_weights(squares) if math.isinf(s) else power_weights(squares, s)
    return shares[2].astype(dtype, copy=False)

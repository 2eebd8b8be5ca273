"""The fit of centroids that are weights of the rows, with exact kernels, in four steps: prepare,
search, finish, publish."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import k_means
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from rffpk._anneal import decompositions
from rffpk._anneal.convergence_warnings import (
    Ending,
    few_rows,
    rows_of_clusters,
    warn_if_indefinite,
    warn_of_ending,
)
from rffpk._anneal.decompositions import total_squares
from rffpk._anneal.feature_steps import FeatureRun
from rffpk._anneal.fit import find_number, publish_end
from rffpk._anneal.kernel_products import (
    CenteredKernel,
    Products,
    kernel_components,
    kernel_variance,
    squared_norms,
)
from rffpk._anneal.kernel_steps import KernelRows, KernelRun, cluster_means
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.search import (
    FitContext,
    History,
    Plan,
    Schedule,
    Stage,
    StartEnd,
    follow,
    search,
)
from rffpk._anneal.seeding import random_rows, seed_rows
from rffpk._anneal.swaps import improve, most_centroids
from rffpk._rows.passes import one_pass
from rffpk._rows.rows import Rows
from rffpk._rows.sample import sample_of_fit
from rffpk._rows.store import Storage, check_cache
from rffpk._rows.sums import hard_weights, power_weights
from rffpk._rows.views import check_views
from rffpk._utils import config, validation
from rffpk._utils.arrays import Array
from rffpk._utils.estimator import reporting
from rffpk._utils.linalg import gaps_of, ritz_values
from rffpk._utils.messages import observed
from rffpk._utils.tiles import by_blocks
from rffpk.maps.kernels import FittedKernel, matched

M = TypeVar("M", bound=Any)

# Distances have errors of this part of the numbers that they are differences of.
_ROUNDING = 1e-12

KernelInit = Literal["k-means++", "random", "k-means", "spectral"]


@dataclass(frozen=True)
class KernelProblem:
    """What an estimator makes of its parameters: its kernels, what is minimised, and which starts
    run."""

    kernels: Any  # as `matched` takes them
    plan: Callable[[int, float], Plan]  # from the number of clusters and the critical exponent
    init: Any
    objective: PowerMean = field(default_factory=PowerMean)
    several: bool = False  # whether X may be a list of views
    annealed: bool = False  # whether starts may have soft steps
    # whether all steps of the starts are made with the kernels, none on components of them
    exact: bool = False
    run: type[KernelRun] = KernelRun
    smoothing: float = 0.0  # part of the mean squared norm that is added to squared distances
    # sets what else is fitted, after the rest
    published: Callable[[KernelRun], None] = lambda run: None


@dataclass(frozen=True)
class PreparedKernels:
    """The rows of a fit with their kernels, and what is to be done."""

    problem: KernelProblem
    xs: list[Array]  # views, or kernel matrices
    rows: KernelRows
    given: Array | None  # initial centroids (k, n)
    several: bool  # whether each kernel has a view of its own

    def plan(self, components: Rows | None) -> Plan:
        """The starts, by the critical exponent of what they run on: components of the rows, or the
        kernels with equal weights."""
        rows, critical = self.rows, 0.0
        if self.problem.annealed:
            if components is None:
                gram = rows.gram(rows.equal)
            else:
                x = components.xs[0][rows.some]
                gram = x @ x.T
            critical = rows.exponent(gram)
            critical = critical if math.isfinite(critical) else 0.0
        return replace(self.problem.plan(rows.context.k, critical), critical=critical)

    def components(self, alpha: Array) -> Rows:
        """Principal components of the kernel that these kernel weights give."""
        rows, context = self.rows, self.rows.context
        return kernel_components(rows.products, alpha, rows.weight, context.k, context.storage)


@dataclass(frozen=True)
class KernelCentroids:
    """Centroids as weights of the fitted rows, and the kernels of these."""

    weights: Array  # (k, n), as `unit_weights` returns them
    alpha: Array  # (L,)
    squares: Array  # (L, k), their squared norms in each kernel
    kernels: list[CenteredKernel]
    several: bool  # whether each kernel has a view of its own
    n_threads: int

    def labels(self, xs: list[Array]) -> NDArray[np.int32]:
        """The nearest centroids, the first of equals, of rows that were fitted and of new ones."""
        return self.distances(xs, False).argmin(axis=1).astype(np.int32)

    def distances(self, xs: list[Array], whole: bool) -> Array:
        """Squared distances (n, k) of rows from the centroids; `whole`: with k(x, x), which does
        not change their order."""

        def of_block(xs: list[Array]) -> Array:
            products, diagonals = zip(*self._crossed(xs))
            gaps = gaps_to_centroids(products, self.squares, self.alpha)
            return gaps + (self.alpha @ np.stack(diagonals))[:, None] if whole else gaps

        return by_blocks(of_block, xs, self.kernels[0].n, self.n_threads)

    def _crossed(self, xs: list[Array]) -> Iterator[tuple[Array, Array | None]]:
        """For each kernel the products of rows with the centroids, and their squared norms."""
        for centered, x in zip(self.kernels, xs if self.several else xs * len(self.kernels)):
            block, diagonal = centered.cross(x)
            yield block @ self.weights.T, diagonal


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


@observed
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
        validation.fit_of(self),
        config.one_blas_thread(),
    ):
        self._check_parameters()
        random = validation.check_random_state(self.random_state)
        problem: KernelProblem = self._problem()
        context = FitContext(
            random, History(progress=progress), config.n_threads(self.n_jobs),
            storage=Storage(self.cache),
        )  # fmt: skip
        found = prepare(self, problem, X, sample_weight, context)
        search = _search_kernels if found.problem.exact else _search_components
        run, end, plan = search(found)
        ending, attributes = finish(self, found, run, end, plan)
        publish(self, attributes, found, end, ending)
        problem.published(run)
    return self


def check_search(model: Any, inits: tuple[str, ...] = get_args(KernelInit)) -> None:
    """The parameters of all searches with exact kernels."""
    validation.check_search_parameters(model, inits, "an array")
    check_cache(model.cache)


# ---- prepare: rows, kernels, objective and plan --------------------------------------------------


def prepare(
    model: Any, problem: KernelProblem, X: Any, sample_weight: Any, context: FitContext
) -> PreparedKernels:
    """The rows with their kernels, what is minimised, and the starts."""
    xs = check_views(model, X, reset=True)
    if model._n_views and not problem.several:
        raise ValueError(f"X is a list of {len(xs)} views, must be one array.")
    n, weight = len(xs[0]), validation.check_sample_weight(sample_weight, len(xs[0]), X)
    sample = sample_of_fit(model, xs, weight, context.random)
    k = find_number(model, sample, context.random, context.history.progress)
    given = None if isinstance(problem.init, str) else given_weights(problem.init, k, n)
    products = _products(model, problem, xs, weight, context)
    if weight is not None:  # scaled to the range of float32
        context.history.unit = 2.0 ** math.frexp(float(weight.max()))[1]
        weight = weight / context.history.unit
    if given is not None:
        problem = replace(problem, exact=True)
    rows = KernelRows(products, weight, problem.objective, replace(context, k=k))
    return PreparedKernels(problem, xs, rows, given, model._n_views > 0)


def given_weights(init: Any, k: int, n: int) -> Array:
    """Centroids (k, n) from an array `init`: labels of the rows, or weights of the rows."""
    validation.check_plain(init, "init")
    with validation.named("init"):
        init = np.asarray(init)
    if init.shape == (n,) and np.issubdtype(init.dtype, np.integer):
        if not np.array_equal(np.unique(init), np.arange(k)):
            raise ValueError(f"init must contain each label from 0 to {k - 1}, and no other.")
        W = (np.arange(k)[:, None] == init).astype(np.float64)
    elif init.shape == (k, n):
        with validation.named("init"):
            W = init.astype(np.float64)
        if not np.isfinite(W).all() or (W.sum(axis=1) == 0).any():
            raise ValueError("init must be finite, and its rows must not sum to zero.")
    else:
        raise ValueError(
            f"init has shape {init.shape}, must be labels of shape ({n},), integers, or "
            f"weights of the rows of shape ({k}, {n})."
        )
    return np.asarray(W / W.sum(axis=1, keepdims=True))


def _products(
    model: Any, problem: KernelProblem, xs: list[Array], weight: Array | None, context: FitContext
) -> Products:
    """The kernels of the rows; sets those of the model, and whether they are stored."""
    views, specs = matched(xs, problem.kernels, not model._n_views, weight)
    options: dict[str, Any] = {"random": context.random, "n_threads": context.n_threads}
    kernels = [
        FittedKernel(x, spec, weight=weight, differences=True, **options)
        for x, spec in zip(views, specs)
    ]
    needed = Products.stored_bytes(kernels)
    stored = context.storage.check_fits(needed, "the kernel matrices")
    products = Products(kernels, context.n_threads, stored)
    model.cache_, model._kernels = stored, products.kernels
    for view, kernel in enumerate(kernels):

        def multiply(v: Array, view: int = view) -> Array:
            return np.asarray(products.multiply(v[None])[view, 0], dtype=np.float64)

        if not kernel.definite:
            values = ritz_values(multiply, kernel.n)
            products.definite &= not warn_if_indefinite(f"kernel {view}", values)
    if problem.smoothing:
        squares = products.diagonals
        means = np.average(squares, axis=1, weights=weight, keepdims=True)
        products.diagonals = squares + problem.smoothing * means
    return products


# ---- search --------------------------------------------------------------------------------------


def _search_components(found: PreparedKernels) -> tuple[KernelRun, StartEnd, Plan]:
    """The best of all starts over the principal components of the kernels, improved by swaps, which
    ends with the hard rule and the kernels themselves; its end, and the plan of the starts.

    The weights of several kernels are those at the end of one start with equal weights.
    """
    rows, alpha = found.rows, found.rows.equal
    if rows.objective.learns_weights and len(alpha) > 1:
        components, plan = _over_components(found, alpha)
        first = _begin(found, components, plan, -1)
        end = follow(first, plan.starts[-1], components.dtype)
        alpha = _settle(found, first, end, alpha, plan.schedule).alpha
    components, plan = _over_components(found, alpha)
    begin = partial(_begin, found, components, plan)
    best, end, cost = search(
        begin, plan.starts, rows.context.history, components.n, components.dtype
    )
    if plan.swaps:
        improve(best, cost, plan.swaps)
    return _settle(found, best, end, alpha, plan.schedule), end, plan


def _over_components(found: PreparedKernels, alpha: Array) -> tuple[Rows, Plan]:
    """Principal components of the kernel that kernel weights give, and the starts over them. What
    they leave out of the objective is added to it in the history."""
    rows, history = found.rows, found.rows.context.history
    components = found.components(alpha)
    plan = found.plan(components)
    p = np.ones(rows.products.n) if rows.weight is None else rows.weight
    left_out = kernel_variance(rows.products, alpha, p) - total_squares(components)
    penalty = rows.objective.penalty(alpha, rows.total_weight)
    history.left_out = max(left_out, 0.0) + penalty
    if history.progress is not None:
        history.progress.n_starts = len(plan.starts)
    return components, plan


def _begin(found: PreparedKernels, components: Rows, plan: Plan, number: int) -> FeatureRun:
    """The start over components with a number, at its initial centroids."""
    context = found.rows.context
    W = initial_weights(found.rows, components, found.problem.init)
    most = most_centroids(context.k, plan.swaps)
    return FeatureRun(
        components, W @ components.xs[0], found.rows.variance, PowerMean(), context, number, most
    )


def _settle(
    found: PreparedKernels, run: FeatureRun, end: StartEnd, alpha: Array, schedule: Schedule
) -> KernelRun:
    """The run with the kernels themselves that goes on from the clusters of one over components, to
    the end by the hard rule."""
    rows, components = found.rows, run.rows
    rows.context.history.left_out = 0.0
    labels = one_pass(components, run.theta, -math.inf, want=("labels",))[1]["labels"]
    W = cluster_means(rows.members(labels, len(run.theta)))
    for j in np.flatnonzero(~W.any(axis=1)):  # empty clusters: at a row, as seeds are
        W[j, _nearest_row(components, run.theta[j])] = 1.0
    settled = found.problem.run(rows, W, alpha, run.number, run.passes)
    left = max(schedule.max_iter - run.passes, 1)
    last = settled.follow(Stage("hard", -math.inf, 0.0, schedule.tol, left)).last
    end.converged = end.converged and last.shift <= schedule.tol
    if found.problem.annealed and math.isinf(end.s):  # no start was
        end.s = settled.nearly_hard_exponent()
    return settled


def _search_kernels(found: PreparedKernels) -> tuple[KernelRun, StartEnd, Plan]:
    """The best of all starts whose steps are made with the kernels, its end, and the plan."""
    rows, given, init = found.rows, found.given, found.problem.init
    context, alpha, components = rows.context, rows.equal, None
    if given is None and init != "random":
        components = found.components(alpha)

    def begin(number: int) -> KernelRun:
        W = initial_weights(rows, components, init) if given is None else given
        return found.problem.run(rows, W, alpha, number)

    plan = found.plan(None)
    run, end, _ = search(begin, plan.starts, context.history, rows.products.n, rows.products.dtype)
    if found.problem.annealed and math.isinf(end.s):  # it began at given centroids
        end.s = run.nearly_hard_exponent()
    return run, end, plan


def initial_weights(rows: KernelRows, components: Rows | None, init: str) -> Array:
    """Initial centroids of a start, (k, n): rows, or means of clusters of rows. Components of the
    kernels are needed unless rows are chosen at random."""
    n, k, random = rows.products.n, rows.context.k, rows.context.random
    rows.context.history.records.append({"stage": "seeding", "rows": n})
    if components is None:
        chosen = random_rows(rows.weight, n, k, random)
    elif init == "spectral":
        return cluster_means(rows.members(_spectral(components, k, random), k))
    else:
        chosen = seed_rows(components, components.xs[0], k, init, random)
    W = np.zeros((k, n))
    W[np.arange(k), chosen] = 1
    return W


def _spectral(components: Rows, k: int, random: Any) -> Array:
    """The clusters (n,) that k-means finds in the rows of the k leading eigenvectors, scaled to
    length one, of the kernel with these principal components."""
    x, p = components.xs[0][:, :k], components.weight
    lengths = np.linalg.norm(x if p is None else x * np.sqrt(p)[:, None], axis=0)
    H = normalize(x / np.where(lengths > 0, lengths, 1))
    with config.one_openmp_thread():
        labels: Array = k_means(H, k, sample_weight=p, n_init=10, random_state=random)[1]
    return labels


def _nearest_row(rows: Rows, center: Array) -> int:
    """The row with a weight that is nearest to a centroid."""
    gaps = ((rows.xs[0] - rows.shifts[0] - center) ** 2).sum(axis=1)
    if rows.weight is not None:
        gaps[rows.weight == 0] = np.inf
    return int(gaps.argmin())


# ---- finish and publish --------------------------------------------------------------------------


def finish(
    model: Any, found: PreparedKernels, run: KernelRun, end: StartEnd, plan: Plan
) -> tuple[Ending, dict[str, Any]]:
    """The end of the run, and the attributes of the fitted model."""
    rows, context, ends_hard = found.rows, found.rows.context, plan.schedule.ends_hard
    products, unit, weights = rows.products, context.history.unit, unit_weights(run.W)
    Y = products.multiply(weights, precise=True)
    squares = squared_norms(weights, Y)
    gaps = gaps_to_centroids(Y.swapaxes(1, 2), squares, run.alpha)
    labels = gaps.argmin(axis=1).astype(np.int32)
    diagonals = np.stack([each.diagonal for each in products.kernels])  # without smoothing
    signed = gaps + (run.alpha @ diagonals)[:, None]  # of indefinite kernels negative ones too
    d = np.maximum(signed, 0)
    members = rows.members(labels, context.k)
    attributes = {
        "labels_": labels,
        "dual_coef_": run.W,
        "objective_": unit * run.cost(end.s),
        "inertia_": unit * _inertia(run, members, weights, signed),
        "n_iter_": run.passes,
        "_alpha": run.alpha,
        "_squares": squares,
        "_gaps": gaps_of(np.einsum("l,in,ljn->ij", run.alpha, weights, Y)),
        "_masses": unit * members.sum(axis=1),
    }
    inside = rows.exponent(rows.gram(run.alpha), labels) if ends_hard else -math.inf
    exponent = inside - decompositions.BELOW if math.isfinite(inside) else end.s
    attributes["membership_exponent_"] = exponent
    if model.store_memberships:
        attributes["memberships_"] = _memberships(d, exponent, found.xs[0].dtype)
    s = -math.inf if ends_hard else end.s
    return _ending(rows, attributes, d, s, plan), attributes


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


def _inertia(run: KernelRun, members: Array, weights: Array, d: Array) -> float:
    """sum p ||phi - mean of its cluster||^2, from the weights (k, n) of the rows in clusters: the
    cost of the centroids less what they differ from the means by."""
    apart = cluster_means(members) - weights
    moved = squared_norms(apart, run.rows.products.multiply(apart)) @ members.sum(axis=1)
    return max(float(np.vdot(members, d.T) - run.alpha @ moved), 0.0)


def publish(
    model: Any, attributes: dict[str, Any], found: PreparedKernels, end: StartEnd, ending: Ending
) -> None:
    """Set the fitted attributes; warn of a run that did not converge, and of clusters that
    are missing."""
    publish_end(model, attributes, end, found.rows.context)
    if ending.found < ending.k and found.rows.products.definite:  # else that warning names it
        warn_of_ending(ending, [few_rows("X", found.xs, found.rows.weight)])
    for centered in model._kernels:
        centered.kernel.drop_matrix()


# ---- what a fitted model says of rows ------------------------------------------------------------


def measure(
    model: Any, X: Any, want: str, s: float | None = None, sample_weight: Any = None
) -> Any:
    """What `want` names of rows; see `Clusterer._measure`."""
    check_is_fitted(model)
    if want == "gaps":
        return model._gaps, model._masses
    xs = check_views(model, X, reset=False)
    centroids = KernelCentroids(
        unit_weights(model.dual_coef_), model._alpha, model._squares, model._kernels,
        model._n_views > 0, config.n_threads(model.n_jobs),
    )  # fmt: skip
    with config.one_blas_thread():
        if want == "labels":
            return centroids.labels(xs)
        if any(centered.kernel.precomputed for centered in model._kernels):
            raise ValueError(
                f"{_CALLERS[want]} needs k(x, x), which precomputed kernels of new rows do not "
                "contain. For the fitted rows, the score is -inertia_, and "
                "store_memberships=True keeps the memberships."
            )
        squares = np.maximum(centroids.distances(xs, True), 0)
    if want == "memberships":
        s = model.membership_exponent_ if s is None else s
        return _memberships(squares, s, xs[0].dtype)
    if want == "distances":
        return np.sqrt(squares).astype(xs[0].dtype, copy=False)
    if want == "medoids":
        return squares.argmin(axis=0)
    least = squares.min(axis=1)
    weight = validation.check_sample_weight(sample_weight, len(least), X)
    return float(least.sum() if weight is None else weight @ least)


_CALLERS = {
    "memberships": "predict_proba",
    "distances": "transform",
    "medoids": "medoids",
    "cost": "score",
}


def _memberships(squares: Array, s: float, dtype: Any) -> Array:
    """Memberships of rows with these squared distances, at an exponent."""
    shares = hard_weights(squares) if math.isinf(s) else power_weights(squares, s)
    return shares[2].astype(dtype, copy=False)

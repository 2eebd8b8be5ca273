"""The fit of centroids that are weights of the rows, with exact kernels, in four steps: prepare,
search, finish, publish."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
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
from rffpk._anneal.feature_steps import FeatureSpace
from rffpk._anneal.fit import find_number, publish_end
from rffpk._anneal.kernel_products import (
    CenteredKernel,
    Products,
    kernel_components,
    kernel_variance,
    squared_norms,
)
from rffpk._anneal.kernel_seeding import given_weights, initial_weights
from rffpk._anneal.kernel_steps import KernelRun, KernelSpace, cluster_means
from rffpk._anneal.objective import PowerMean
from rffpk._anneal.search import FitContext, History, Plan, Stage, StartEnd, search
from rffpk._anneal.seeding import seed_centroids
from rffpk._anneal.swaps import improve, most_centroids
from rffpk._rows.passes import one_pass, total_variance
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

KernelInit = Literal["k-means++", "random", "k-means", "spectral"]


@dataclass(frozen=True)
class KernelProblem:
    """What an estimator makes of its parameters: its kernels, what is minimised, and which starts
    run."""

    kernels: Any  # as `matched` takes them
    # from the number of clusters, the critical exponent, and whether they run on components
    plan: Callable[[int, float, bool], Plan]
    init: Any
    objective: PowerMean = field(default_factory=PowerMean)
    several: bool = False  # whether X may be a list of views
    annealed: bool = False  # whether starts have soft steps, before which centroids may be moved
    components: bool = False  # whether starts may run on principal components of one kernel
    space: type[KernelSpace] = KernelSpace
    smoothing: float = 0.0  # part of the mean squared norm that is added to squared distances
    # sets what else is fitted, after the rest
    published: Callable[[KernelRun], None] = lambda run: None


@dataclass(frozen=True)
class PreparedKernels:
    """The rows of a fit with their kernels, what is minimised, and the starts."""

    xs: list[Array]  # views, or kernel matrices
    space: KernelSpace
    components: Rows | None  # principal components of the kernel that starts run on
    several: bool  # whether each kernel has a view of its own
    annealed: bool
    plan: Plan


@dataclass(frozen=True)
class KernelCentroids:
    """Centroids as weights of the fitted rows, and the kernels of these."""

    coef: Array  # (k, n)
    alpha: Array  # (L,)
    squares: Array  # (L, k), their squared norms in each kernel
    kernels: list[CenteredKernel]
    several: bool  # whether each kernel has a view of its own
    n_threads: int

    @property
    def precomputed(self) -> bool:
        """Whether k(x, x) of new rows is not known."""
        return any(centered.kernel.precomputed for centered in self.kernels)

    def labels(self, xs: list[Array]) -> NDArray[np.int32]:
        """The nearest centroids, the first of equals, of rows that were fitted and of new ones."""
        return self.distances(xs, False).argmin(axis=1).astype(np.int32)

    def distances(self, xs: list[Array], whole: bool) -> Array:
        """Squared distances (n, k) of rows from the centroids; `whole`: with k(x, x), which does
        not change their order."""

        def of_block(xs: list[Array]) -> Array:
            products, diagonals = zip(*self._crossed(xs))
            return self.combined(products, diagonals if whole else [None] * len(products))

        return by_blocks(of_block, xs, self.kernels[0].n, self.n_threads)

    def products(self, xs: list[Array]) -> Array:
        """The inner products of rows with the centroids, kernel by kernel, (L, n, k)."""

        def of_block(xs: list[Array]) -> Array:
            return np.hstack([product for product, _ in self._crossed(xs)])

        found = by_blocks(of_block, xs, self.kernels[0].n, self.n_threads)
        return np.stack(np.split(found, len(self.kernels), axis=1))

    def combined(self, products: Any, diagonals: Any) -> Array:
        """The squared distances that follow from products of rows, and from their squared norms
        where these are not None."""
        total = np.zeros_like(products[0])
        for alpha, squares, product, diagonal in zip(self.alpha, self.squares, products, diagonals):
            gaps = squares - 2 * product
            if diagonal is not None:
                gaps += diagonal[:, None]
            total += alpha * gaps
        return total

    def _crossed(self, xs: list[Array]) -> Iterator[tuple[Array, Array | None]]:
        """For each kernel the products of rows with the centroids, and their squared norms."""
        for centered, x in zip(self.kernels, xs if self.several else xs * len(self.kernels)):
            block, diagonal = centered.cross(x)
            yield block @ self.weights.T, diagonal

    @cached_property
    def weights(self) -> Array:
        """The weights of the rows, (k, n), in double precision and of sum one: centroids that are
        far from the origin of the kernel would move with their sum."""
        coef = self.coef.astype(np.float64)
        sums = coef.sum(axis=1, keepdims=True)
        return coef / np.where(sums != 0, sums, 1)


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
        context = found.space.context
        run, end = search_centroids(found, context)
        ending, attributes = finish(self, found, run, end, context)
        publish(self, attributes, found, end, ending, context)
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
    context = replace(context, k=k)
    given = None if isinstance(problem.init, str) else given_weights(problem.init, k, n)
    products = _products(model, problem, xs, weight, context)
    if weight is not None:  # scaled to the range of float32
        context.history.unit = 2.0 ** math.frexp(float(weight.max()))[1]
        weight = weight / context.history.unit

    def seed(space: KernelSpace) -> Array:
        return initial_weights(space, k, problem.init) if given is None else given

    components = None
    if problem.components and len(products.kernels) == 1 and products.definite:
        components = kernel_components(products, weight, k, context.storage)
    n_directions = 2 * k if problem.annealed and components is None else 0
    space = problem.space(products, weight, problem.objective, seed, context, n_directions)
    exponent = 0.0
    if components is not None:
        exponent = decompositions.exponent_of_rows(components)
    elif problem.annealed:
        exponent = space.critical_exponent()
    plan = replace(problem.plan(k, exponent, components is not None), critical=exponent)
    several = model._n_views > 0
    return PreparedKernels(xs, space, components, several, problem.annealed, plan)


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


def search_centroids(found: PreparedKernels, context: FitContext) -> tuple[KernelRun, StartEnd]:
    """The best of all starts, and its end."""
    if found.components is not None:
        return _search_components(found.components, found.space, found.plan, context)
    run, end, _ = search(found.space, found.plan.starts, found.space.dtype)
    if found.annealed and math.isinf(end.s):  # it began at given centroids
        end.s = run.nearly_hard_exponent()
    return run, end


def _search_components(
    rows: Rows, space: KernelSpace, plan: Plan, context: FitContext
) -> tuple[KernelRun, StartEnd]:
    """The best of all starts over the components `rows` of a kernel, improved by swaps, and its
    end; the run goes on with the hard rule and the kernel itself."""
    history, weight, k = context.history, space.weight, context.k
    p = np.ones(rows.n) if weight is None else weight
    history.left_out = max(kernel_variance(space.products, p) - total_squares(rows), 0.0)

    def seed(number: int) -> Array:
        history.records.append({"stage": "seeding", "rows": rows.n})
        return seed_centroids(rows, rows.xs[0], k, "k-means++", context.random)

    most = most_centroids(k, plan.swaps)
    components = FeatureSpace(rows, total_variance(rows), PowerMean(), seed, context, most)
    first, end, cost = search(components, plan.starts, rows.dtype)
    if plan.swaps:
        improve(first, cost, plan.swaps)
    history.left_out = 0.0
    labels = one_pass(rows, first.theta, -math.inf, want=("labels",))[1]["labels"]
    means = cluster_means(space.members(labels, k))
    for j in np.flatnonzero(~means.any(axis=1)):  # empty clusters: at a row, as seeds are
        means[j, _nearest_row(rows, first.theta[j])] = 1.0
    space.seed = lambda _: means
    schedule = plan.schedule
    left = max(schedule.max_iter - first.passes, 1)
    [run], last = space.begin([first.number]), None
    while last is None:
        [last] = space.advance([run], [Stage("hard", -math.inf, 0.0, schedule.tol, left)])
    end.converged = end.converged and last.last.shift <= schedule.tol
    run.passes += first.passes
    return run, end


def _nearest_row(rows: Rows, center: Array) -> int:
    """The row with a weight that is nearest to a centroid."""
    gaps = ((rows.xs[0] - rows.shifts[0] - center) ** 2).sum(axis=1)
    if rows.weight is not None:
        gaps[rows.weight == 0] = np.inf
    return int(gaps.argmin())


# ---- finish and publish --------------------------------------------------------------------------


def finish(
    model: Any, found: PreparedKernels, run: KernelRun, end: StartEnd, context: FitContext
) -> tuple[Ending, dict[str, Any]]:
    """The end of the run, and the attributes of the fitted model."""
    products, unit, plan = found.space.products, context.history.unit, found.plan
    centroids = KernelCentroids(
        run.W, run.alpha, run.squares, products.kernels, found.several, context.n_threads
    )
    Y = centroids.products(found.xs)
    squares = np.einsum("kn,lnk->lk", centroids.weights, Y)
    centroids = replace(centroids, squares=squares)
    labels = centroids.combined(Y, [None] * len(Y)).argmin(axis=1).astype(np.int32)
    attributes = {
        "labels_": labels,
        "dual_coef_": run.W,
        "objective_": unit * run.cost(end.s),
        "inertia_": unit * _inertia(run, centroids, Y, labels),
        "n_iter_": run.passes,
        "_alpha": run.alpha,
        "_squares": squares,
        "_gaps": gaps_of(np.einsum("l,in,lnj->ij", run.alpha, centroids.weights, Y)),
        "_masses": unit * found.space.members(labels, run.k).sum(axis=1),
    }
    exponent = end.s
    if plan.schedule.ends_hard:
        found_exponent = found.space.exponent_of_memberships(run.alpha, labels)
        exponent = found_exponent if math.isfinite(found_exponent) else end.s
    attributes["membership_exponent_"] = exponent
    if model.store_memberships:
        d = centroids.combined(Y, [each.diagonal for each in products.kernels])
        attributes["memberships_"] = _memberships(np.maximum(d, 0), exponent, found.xs[0].dtype)
    s = -math.inf if plan.schedule.ends_hard else end.s
    return _ending(found, run, attributes, s), attributes


def _ending(found: PreparedKernels, run: KernelRun, fitted: dict[str, Any], s: float) -> Ending:
    """How the run ended: which clusters have rows, and can be told apart at an exponent."""
    weight, plan, labels = found.space.weight, found.plan, fitted["labels_"]
    used = int(np.count_nonzero(fitted["_masses"]))
    ending = Ending(run.k, used, s, plan.critical, plan.lowered_by)
    if math.isinf(s):
        return ending
    counted = np.arange(run.n_rows) if weight is None else np.flatnonzero(weight)
    index = counted[rows_of_clusters(labels[counted], run.k)]
    squares = run.distances()[index]
    u = power_weights(squares, s)[2]
    return ending.of_memberships(u, labels[index], squares, lambda part: fitted["_gaps"][part])


def _inertia(run: KernelRun, centroids: KernelCentroids, Y: Array, labels: Array) -> float:
    """sum p ||phi - mean of its cluster||^2 for these labels, from the products of the rows with
    the centroids: the cost of the centroids less what they differ from the means by."""
    members = run.space.members(labels, run.k)
    apart = cluster_means(members) - centroids.weights
    moved = squared_norms(apart, run.space.products.multiply(apart))
    costs = -(moved * members.sum(axis=1)).sum(axis=1)
    for view, kernel in enumerate(centroids.kernels):
        gaps = kernel.diagonal + centroids.squares[view][:, None] - 2 * Y[view].T
        costs[view] += np.vdot(members, gaps)
    return max(float(run.alpha @ costs), 0.0)


def publish(
    model: Any, attributes: dict[str, Any], found: PreparedKernels, end: StartEnd, ending: Ending,
    context: FitContext,
) -> None:  # fmt: skip
    """Set the fitted attributes; warn of a run that did not converge, and of clusters that
    are missing."""
    publish_end(model, attributes, end, context)
    if ending.found < ending.k and found.space.products.definite:  # else that warning names it
        warn_of_ending(ending, [few_rows("X", found.xs, found.space.weight)])
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
        model.dual_coef_, model._alpha, model._squares, model._kernels, model._n_views > 0,
        config.n_threads(model.n_jobs),
    )  # fmt: skip
    with config.one_blas_thread():
        if want == "labels":
            return centroids.labels(xs)
        if centroids.precomputed:
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

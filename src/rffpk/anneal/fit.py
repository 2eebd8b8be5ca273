"""The fit of centroids in a feature space: `fit_model`, in four steps.

`rows` are all rows, `some` those that means and variances are taken from, `samples` growing sets
for the starts and what follows them, `base` the first of these, or all rows, and `pool` the rows
that initial centroids are chosen from. The starts run on `base` or on principal components of it.
Section 21 of docs/math.md has the other terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances

from rffpk.anneal import decompositions
from rffpk.anneal.convergence_warnings import (
    Cause,
    Ending,
    equal_centroids,
    few_rows,
    rows_of_clusters,
    warn_of_ending,
)
from rffpk.anneal.decompositions import Compressed, compressed
from rffpk.anneal.hard_pass import Along, find_directions
from rffpk.anneal.plan import SearchParameters, search_plan
from rffpk.anneal.records import PowerMean
from rffpk.anneal.schedule import FitContext, History, Plan, Stage, StartEnd, converge, search
from rffpk.anneal.starts import (
    MERGED,
    checked_centroids,
    given_rows,
    merged_centroids,
    seed_centroids,
    seeding_rows,
)
from rffpk.anneal.steps import FeatureRun, count_distinct
from rffpk.anneal.swaps import follow_with_swaps, improve, reach_far_rows
from rffpk.estimators.base import fit_of, reporting
from rffpk.estimators.bases import with_callbacks
from rffpk.rows import checks, passes
from rffpk.rows.arrays import Array, Fourier, Identity, Numbers
from rffpk.rows.dask_collections import kind_of
from rffpk.rows.rows import Rows, identities
from rffpk.rows.sample import Opened, open_rows, sampling
from rffpk.rows.store import (
    ALL_PASSES,
    LAST_PASSES,
    Cache,
    Mapping,
    ScaledColumns,
    Storage,
    UnitRows,
)
from rffpk.rows.sums import Sums, empty_clusters, rounding_error
from rffpk.rows.table import as_type, occupied_columns, spread_columns, unit_rows
from rffpk.rows.weights import ones
from rffpk.system import config
from rffpk.system.report import Progress, warn

if TYPE_CHECKING:
    from rffpk.anneal.journal import Checkpoint
    from rffpk.choose.noise import Noise

M = TypeVar("M", bound=Any)

GivenInit = Numbers | Callable[..., Any]  # besides words


# Fits the maps of the views to rows.
Maps = Callable[[Opened, FitContext], list[Any]]


@dataclass(frozen=True)
class Problem:
    """What parameters say: how rows become features, what is minimised, which starts run."""

    search: SearchParameters
    # of the critical exponent, among others
    plan: Callable[[SearchParameters, FitContext, float, PowerMean], Plan] = search_plan
    maps: Maps = lambda sample, context: [*identities(sample.xs)]
    objective: Callable[[Rows, FitContext], PowerMean] = lambda rows, context: PowerMean()
    n_map_rows: int = 0  # that maps are fitted on, beyond those of the starts
    cache: Cache = False
    # the centroids that an array `init` stands for besides centroids
    given: Callable[[Rows, int], Array | None] = lambda rows, k: None
    unit_centroids: bool = False  # whether centroids are scaled to length one
    rows_name: str = "the map of X"  # what a warning calls the columns of the features
    least_exponent: float = -math.inf  # of memberships after a hard end, where there are maps
    # sets what else is fitted, after the rest
    published: Callable[[FitResult], None] = lambda result: None


@dataclass(frozen=True)
class Prepared:
    """The rows of a fit, with maps and shifts of their features, the objective and the starts."""

    problem: Problem
    context: FitContext
    sample: Opened  # all rows as they are given, noise without weight
    noise: Noise | None  # the rows that get the label -1
    mapped: bool  # whether the features of some view differ from its columns
    rows: Rows  # all
    some: Rows  # those that statistics are taken from
    samples: list[Rows]  # of growing size, the first for the starts; none: all rows are
    base: Rows  # the first sample, or all rows, with stored features where that pays
    components: Compressed | None  # principal components that the starts run on
    pool: Rows  # of which initial centroids are chosen
    variance: float  # total variance of the features
    init: Any  # the name of a method, a callable, or centroids
    objective: PowerMean
    plan: Plan
    # of each view, the columns that are its features; None: all columns, or mapped features
    columns: list[Array | None]

    def spread(self, lines: list[Array]) -> list[Array]:
        """Return lines of features of each view with a place for each column of the view."""
        views = zip(lines, self.columns, self.sample.xs)
        return [spread_columns(line, index, x.shape[1]) for line, index, x in views]


@dataclass(frozen=True)
class FitResult:
    """The end of a fit."""

    prepared: Prepared
    rows: Rows  # all, with the learned view weights
    ending: Ending
    attributes: dict[str, Any]  # of the fitted model


@with_callbacks
def fit(
    self: M, X: Any, y: Any = None, sample_weight: Any = None, *, labels_to: Any = None,
    checkpoint: Any = None, checkpoint_seconds: float = 60.0, resume: bool = True,
) -> M:  # fmt: skip
    """Cluster the rows of X.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), or a list of views
        Finite numbers. A list of views, arrays of shape (n_samples, n_features_l) with the same
        rows, is for classes with the parameter `kernels` only. C-ordered float32 and float64
        arrays, memory-mapped ones too, are read in place; anything else is converted, integers
        to float64. Arrays of float16, bfloat16 (ml_dtypes), int8 and uint8 are read in place by
        PowerKMeans, FuzzyCMeans and RFFKernelPowerKMeans, with the results of float32. Rows that
        are not in memory are a source, a function without arguments that returns an iterator of
        blocks of rows (`rffpk.sources`), or a list of such for views; they are read several
        times, and `labels_` is not set. So it is with arrays and frames of Dask, or a list of
        such, whose partitions stay where they are.
        X, or some or all views of a list, may be sparse: CSR of float32 or float64 is read in
        place, other formats are converted to it.
    y : Ignored
        Present for scikit-learn's conventions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights >= 0 of the rows, by default one each. A row of weight zero has no influence.
    labels_to : str, path or callable, optional
        Where the labels of a source go, which are not kept: a file that ends in .npy or
        .parquet, or a function that is called with the labels of consecutive rows, block by
        block. The file must not be one that X is read from, nor the checkpoint.
    checkpoint : str or path, optional
        A file that is replaced as the fit proceeds, and removed at its end. It needs a
        `random_state`. If it is there already, as after a fit that was killed, the fit goes on
        from it to the same bits.
    checkpoint_seconds : float, default=60
        Least time between two checkpoints, >= 0. They are written after a pass, or after a swap
        with its passes.
    resume : bool, default=True
        Whether to go on from a checkpoint that is there. One of other rows, parameters, random
        numbers or versions is refused; False begins anew. A file that is no checkpoint is refused
        in both cases.

    Returns
    -------
    self : object
        The fitted estimator.

    Raises
    ------
    ValueError, TypeError
        If a parameter, X, sample_weight or a checkpoint is not as described; nothing is changed
        then.
    MemoryError
        If the class has the parameter `cache`, it is True, and the features take more than a
        quarter of the available memory.

    Warns
    -----
    ConvergenceWarning
        If `max_iter` ended a run before it converged, if clusters have no rows, or if memberships
        at a finite exponent do not tell some of them apart.
    UserWarning
        If a checkpoint could not be written; the one before stays. If `noise` is a share that takes
        no rows.
    """
    seconds = checks.check_real(checkpoint_seconds, "checkpoint_seconds", 0)
    resume = checks.check_bool(resume, "resume")
    saved = None
    if checkpoint is not None:
        from rffpk.anneal.journal import Checkpoint

        saved = Checkpoint(checkpoint, seconds, resume)
    if labels_to is not None or saved is not None:
        from rffpk.system.files import check_labels_to, check_outputs

        labels_to = None if labels_to is None else check_labels_to(labels_to)
        outputs = {"labels_to": labels_to, "checkpoint": saved and saved.path}
        check_outputs(outputs, X, sample_weight, getattr(self, "init", None))
    with reporting(self, X) as progress:
        return fit_model(
            self, X, sample_weight, labels_to=labels_to, progress=progress, checkpoint=saved
        )


def fit_model(
    model: M, X: Any, sample_weight: Any = None, *, labels_to: Any = None,
    progress: Progress | None = None, checkpoint: Checkpoint | None = None,
    causes: Iterable[Cause] = (), rows_name: str | None = None,
) -> M:  # fmt: skip
    """`fit` of a model; `causes` of missing clusters are those in what X was computed from,
    which a warning calls `rows_name`."""
    problem: Problem = model._problem()
    if labels_to is not None:
        from rffpk.system.files import label_writer
    random = checks.check_random_state(model.random_state)
    with fit_of(model), config.one_blas_thread():
        if checkpoint is not None:
            checkpoint.open(model, random)
            problem = replace(problem, cache=checkpoint.cache(problem.cache))
        sample, noise, k = opened_rows(model, problem, X, sample_weight, random, progress)
        context = FitContext(
            random, History(progress=progress), config.n_threads(model.n_jobs), k,
            Storage(problem.cache), checkpoint, [*causes], rows_name or problem.rows_name,
            sample.coverage(k) if getattr(model, "allow_missing_views", False) else None,
        )  # fmt: skip
        found = prepare(model, problem, sample, noise, context)
        writer: Any = nullcontext() if labels_to is None else label_writer(labels_to, found.rows.n)
        with writer as write:
            run, end = search_centroids(found)
            if found.plan.soft_end is not None:
                found = soften(found, run, end)
            result = finish(model, found, run, end, write)
        publish_end(model, result.attributes, end, context)
        if result.ending.found < result.ending.k:
            warn_of_ending(result.ending, _causes(result))
        problem.published(result)
        if checkpoint is not None:
            checkpoint.remove()
    return model


Metric = Literal["euclidean", "cosine"]


def maps_of(metric: Any, whitening: Any) -> Maps:
    """The map of the columns of a model of one view, by its parameters `metric` and `whitening`,
    which are checked."""
    checks.check_choice(metric, "metric", get_args(Metric))
    if whitening is not None:
        checks.check_real(whitening, "whitening", 0, 1, also="None")
        if metric == "cosine":
            raise ValueError(
                f"whitening == {whitening} with metric='cosine', must be None: whitened columns "
                "have other angles."
            )
        from rffpk.spaces.whitening import WhiteningSpec

        spec = WhiteningSpec(whitening)
        return lambda sample, context: [
            spec.fit(sample, 0, context.k, context.random, context.n_threads)
        ]
    if metric == "cosine":
        return lambda sample, context: [UnitRows()]
    return lambda sample, context: [*identities(sample.xs)]


# ---- prepare: rows, maps, objective and plan -----------------------------------------------------


def opened_rows(
    model: Any, problem: Problem, X: Any, sample_weight: Any, random: Any, progress: Progress | None
) -> tuple[Opened, Noise | None, int]:
    """Return all rows, of which noise has no weight, the noise, and the number of clusters.

    Rows of a source are read once."""
    noise, distinct, is_sought = None, None, getattr(model, "noise", None) is not None
    given = problem.search.sample
    how = sampling(model.n_clusters, model.n_jobs, random, given, problem.n_map_rows)
    if is_sought:
        from rffpk.choose.noise import check_no_dask, find_noise
        from rffpk.rows.distinct import DistinctRows

        check_no_dask(X)
        distinct = DistinctRows(keep=kind_of(X) != "memory")
    rows = open_rows(X, sample_weight, model._schema(), how, model.n_jobs, distinct)
    model._remember(rows.shape)
    if is_sought:
        n_views, is_cosine = len(rows.shape.widths), model._is_cosine()
        noise = find_noise(model.noise, rows, distinct, n_views, is_cosine)
        rows = rows.without(noise.rows)
    return rows, noise, find_number(model, rows, random, progress)


def prepare(
    model: Any, problem: Problem, sample: Opened, noise: Noise | None, context: FitContext
) -> Prepared:
    """Return the rows with their features, what is minimised, and the starts. Set the feature maps
    of the model."""
    given, k, storage = problem.search, context.k, context.storage
    # the features of all rows, and of some
    maps = problem.maps(sample, context)
    model._feature_maps = maps
    columns = _occupied(sample, maps, given.init)
    packed = sample.with_columns(columns)
    mapping = Mapping(
        maps, packed.shape.views, storage, context.n_threads, context.coverage,
        problem.unit_centroids,
    )  # fmt: skip
    some, rows = mapping.pair(packed)
    variance, mapped = passes.total_variance(some), bool(mapping.mapped)
    if mapped:
        storage.check(rows)
    init = _checked_init(model, problem, rows, mapping, k)
    # what is minimised, of which rows have a part
    objective = problem.objective(some, context)
    typical = partial(replace, eta=objective.eta, m=objective.m)
    some, rows = typical(some), typical(rows)
    # the rows, or components of them, that starts run on; those that initial centroids are from
    samples = [typical(part) for part in _samples(problem, packed, rows, mapping, k)]
    base = rows
    if samples:
        base = samples[0] = storage.sample(samples[0])
    else:
        base = storage.all_rows(rows, k, ALL_PASSES)
    single = all(isinstance(mapped_by, Fourier) for mapped_by in rows.maps)
    components = compressed(base, k, storage, given.ends_hard, single) if given.differs else None
    pool = components.rows if components is not None else base if samples else some
    # The starts, by the critical exponent. Rows are drawn for it in any case, so that later random
    # numbers do not depend on whether it is used.
    exponent, seeds = 0.0, seeding_rows(pool, k, context.random)
    if given.start != -math.inf or not given.ends_hard:  # else no exponent is seen
        exponent = decompositions.exponent_of_rows(seeds)
    if context.checkpoint is not None:
        context.checkpoint.begin(sample, exponent, variance, rows.shift)
    return Prepared(
        problem, context, sample, noise, mapped, rows, some, samples, base, components, pool,
        variance, init, objective, problem.plan(given, context, exponent, objective), columns,
    )  # fmt: skip


def _checked_init(model: Any, problem: Problem, rows: Rows, mapping: Mapping, k: int) -> Any:
    """Return the word or the function that makes initial centroids, or their array (k, F)."""
    init = problem.search.init
    if isinstance(init, str) or callable(init):
        return init
    if (meant := problem.given(rows, k)) is not None:
        return meant
    if not mapping.mapped:
        names = vars(model).get("feature_names_in_")
        return checked_centroids(init, (k, len(rows.shift)), names)
    xs = [as_type(x, rows.dtype) for x in given_rows(model, init, k)]
    return passes.shifted_features(mapping(xs, ones(k))).astype(np.float64)


def _occupied(sample: Opened, maps: list[Any], init: Any) -> list[Array | None]:
    """Return the columns of each sparse view with entries; None: all columns.

    Features must be columns. With given centroids all columns count, as centroids may have numbers
    in empty columns."""
    kinds = UnitRows | ScaledColumns | Identity
    are_columns = [isinstance(init, str) and isinstance(mapped, kinds) for mapped in maps]
    return [occupied_columns(x) if own else None for x, own in zip(sample.xs, are_columns)]


def find_number(model: Any, sample: Opened, random: Any, progress: Progress | None) -> int:
    """The number of clusters; found on a sample of the rows where it is not given. Sets it."""
    wanted = model.n_clusters
    if isinstance(wanted, str):
        from rffpk.choose.number import Question, select_number

        random = np.random.RandomState(random.randint(2**31 - 1))
        say = None if progress is None else progress.say
        question = Question(model._schema().kind, model._is_cosine(), model._shape)
        found = select_number(question, sample, random, config.n_threads(model.n_jobs), say)
        model.selection_, wanted = found, found.number(wanted)
    k = checks.check_int(wanted, "n_clusters", 1)
    if k > sample.n:
        raise ValueError(f"n_clusters == {k}, must be <= n_samples == {sample.n}.")
    if k > sample.counted:
        raise ValueError(
            f"n_clusters == {k}, must be <= {sample.counted}, the number of rows with a positive "
            "sample_weight."
        )
    model.n_clusters_ = k
    return k


def _samples(problem: Problem, sample: Opened, rows: Rows, mapping: Mapping, k: int) -> list[Rows]:
    """Return samples of growing size, the first for the starts; none if these run on all rows.

    Where features are columns of `rows` already, samples are cut from the columns, so that no map
    runs twice."""
    if rows.stream is None and len(rows.computed) < len(mapping.mapped):  # else it may hold rows
        xs, maps = [*rows.xs], [*rows.maps]
        for i in rows.computed:
            xs[i], maps[i] = sample.xs[i], mapping.maps[i]
        sample = sample.with_tables(xs, tuple(range(len(xs))))
        mapping = replace(mapping, maps=maps, views=sample.shape.views)
    sizes = sample.sizes_of_starts(problem.search.sample, k)
    return [mapping(*sample.some(size), rows.shifts) for size in sizes]


# ---- search --------------------------------------------------------------------------------------


def search_centroids(found: Prepared) -> tuple[FeatureRun, StartEnd]:
    """The best of all starts, improved by swaps, and its end."""
    context, plan, components = found.context, found.plan, found.components
    history = context.history
    history.unit = plan.unit
    history.left_out = 0.0 if components is None else components.left_out
    if history.progress is not None and found.samples:
        history.progress.later = [*(each.n for each in found.samples[1:]), found.rows.n]
    rows = found.base if components is None else components.rows
    run, end, cost = search(partial(_begin, found, rows), plan.starts, history, rows.n, rows.dtype)
    if plan.swaps:
        improve(run, cost, plan.swaps)
    schedule = plan.schedule
    if plan.swaps or not schedule.exact:  # centroids have not converged
        stage = Stage("hard", -math.inf, tol=schedule.tol, most=schedule.max_iter, bounded=True)
        are_last = not (found.samples or components)  # no other passes follow
        end.converged, _ = converge(run, stage._replace(exact=are_last))
    if math.isinf(end.s):  # no start was annealed
        end.s = float(run.kept(run.nearly_hard_exponent))
    return run, end


def soften(found: Prepared, run: FeatureRun, end: StartEnd) -> Prepared:
    """Passes at a finite exponent after a search with a hard end; returns the rest of the fit."""
    context = found.context
    if found.components is not None:
        run.theta, context.history.left_out = found.components.expand(run.theta), 0.0
        run.go_on(found.base)

    def exponents() -> list[float]:
        critical = found.plan.critical
        if found.components is not None:  # that of the plan is of these components
            rows = seeding_rows(found.some, context.k, context.random)
            critical = decompositions.exponent_of_rows(rows)
        return [critical, float(decompositions.exponent_of_memberships(found.some, run.theta))]

    assert found.plan.soft_end is not None
    plan = found.plan.soft_end(*run.kept(exponents))
    context.history.unit, end.s = plan.unit, plan.schedule.end
    tol, most = plan.schedule.tol, plan.schedule.max_iter
    end.converged, _ = converge(run, Stage("settle", end.s, tol=tol, most=most, bounded=True))
    return replace(found, plan=plan, components=None)


def _begin(found: Prepared, rows: Rows, number: int) -> FeatureRun:
    """The run of a start over rows, at initial centroids that are chosen from some rows of the pool
    unless they are given."""
    init, pool, context, k = found.init, found.pool, found.context, found.context.k
    if not isinstance(init, str) and not callable(init):
        theta = np.asarray(init - pool.shift)
    else:
        merges = found.plan.starts[number].merges and pool.present is None
        some = seeding_rows(pool, MERGED * k if merges else k, context.random)
        context.history.records.append({"stage": "seeding", "rows": some.n})
        if callable(init):
            given = passes.features_for_callers(some)
            drawn = init(given, k, random_state=context.random)
            theta = checked_centroids(drawn, (k, given.shape[1])) - pool.shift
        else:
            features = passes.some_features(some)
            drawn = merged_centroids(some, features, k, context.random) if merges else None
            if drawn is None:
                drawn = seed_centroids(some, features, k, init, context.random)
            theta = drawn - passes.shift_left(some)
    return FeatureRun(
        rows, pool.on_sphere(theta, theta), found.variance, found.objective, context, number,
        found.plan.most,
    )  # fmt: skip


# ---- finish: larger samples, all rows, and what is published of these ----------------------------


def finish(model: Any, found: Prepared, run: FeatureRun, end: StartEnd, write: Any) -> FitResult:
    """Passes over growing samples and then over all rows, and what these tell at the end. `write`,
    unless it is None, is called with the labels of all rows, block by block."""
    plan, whole = found.plan, _go_on_to_all_rows(run, end, found)
    rows, hard_end = replace(found.rows, alpha=run.rows.alpha), plan.schedule.ends_hard
    centers = (run.theta + rows.shift).astype(rows.dtype)
    centers = _without_rounding(centers) if rows.unit_centroids else centers
    theta = centers.astype(np.float64) - rows.shift
    soft, hard, inertia, labels = _evaluated(found, rows, theta, end.s, write)
    s, last = (-math.inf, hard) if hard_end else (end.s, soft)
    exponent = _soft_exponent(found, rows, theta, end.s) if hard_end else end.s
    penalty = found.objective.penalty(rows.alpha, run.rows.total_weight)
    parts = found.spread(np.split(centers, np.cumsum(rows.widths)[:-1], axis=1))
    attributes = {
        "cluster_centers_": parts[0] if len(parts) == 1 else np.hstack(parts),
        "inertia_": inertia,
        "objective_": plan.unit * (soft.objective(end.s) + penalty),
        "n_iter_": run.passes,
        "sample_size_": found.base.n,
        "membership_exponent_": exponent,
        "_alpha": rows.alpha,
        "_objective": run.objective,
        "_shifts": found.spread(rows.shifts),
        "_cluster_weights": rows.weights_of_centroids(last),
        "_masses": hard.G.copy(),
        "_n_counted": found.sample.counted,
        "_s_of_batches": s,
    }
    if found.sample.in_memory:
        attributes["labels_"] = labels[0] if len(labels) == 1 else np.concatenate(labels)
    if "cache" in vars(model):
        attributes["cache_"] = found.mapped and not whole.computed
    if model.store_memberships:
        outputs = passes.one_pass(rows, theta, exponent, want=("memberships",))[1]
        attributes["memberships_"] = outputs["memberships"]
    if found.noise is not None:
        found.noise.add_to(attributes)
    return FitResult(found, rows, _ending(found, rows, theta, hard, s), attributes)


def _soft_exponent(found: Prepared, rows: Rows, theta: Array, s: float) -> float:
    """Return the exponent of memberships after a hard end, or s where the rows suggest none."""
    calibrated = decompositions.exponent_of_memberships(
        replace(found.some, alpha=rows.alpha), theta
    )
    least = found.problem.least_exponent if found.mapped else -math.inf
    return max(calibrated, least) if math.isfinite(calibrated) else s


def _without_rounding(centers: Array) -> Array:
    """Centroids of length one, each of them, or the first that differs from it by rounding alone:
    so do rows with one direction, which then have one label. O(k^2 F) if there are such."""
    close, exact = rounding_error(centers.dtype), centers.astype(np.float64)
    if count_distinct(exact, close) == len(exact):
        return centers
    return centers[[(((exact - x) ** 2).sum(axis=1) <= close).argmax() for x in exact]]


def _ending(found: Prepared, rows: Rows, theta: Array, hard: Sums, s: float) -> Ending:
    """How the run ended: which clusters have rows, and can be told apart at an exponent."""
    k, plan = len(theta), found.plan
    used = k - int(empty_clusters(hard.G, rows.dtype).sum())
    ending = Ending(k, used, s, plan.critical, plan.lowered_by)
    if math.isinf(s):
        return ending
    some = replace(found.some, alpha=rows.alpha).counted()
    plain = replace(some, eta=None)
    labels = passes.one_pass(plain, theta, -math.inf, want=("labels",))[1]["labels"]
    index = rows_of_clusters(labels, k)
    outputs = passes.one_pass(some.take(index), theta, s, want=("memberships", "distances"))[1]
    scaled = rows.scaled(theta)
    return ending.of_memberships(
        outputs["memberships"], labels[index], outputs["distances"],
        lambda part: euclidean_distances(scaled[part], scaled, squared=True),
    )  # fmt: skip


def _go_on_to_all_rows(run: FeatureRun, end: StartEnd, found: Prepared) -> Rows:
    """Passes at the exponent of the end over what starts did not run on: all features in place of
    components, growing samples, and then all rows, which are returned, with stored features where
    that pays. Centroids are swapped again where rows need it (`follow_with_swaps`), and rows far
    from all centroids that no start has seen get centroids of their own."""
    schedule, context, samples = found.plan.schedule, found.context, found.samples
    whole, levels = found.base, list[Rows]()
    if found.components is not None:
        run.theta, context.history.left_out = found.components.expand(run.theta), 0.0
        levels = [whole]
    if samples:
        whole = context.storage.all_rows(found.rows, context.k, LAST_PASSES)
        levels = [*samples[1:], whole]
    name, s = ("hard", -math.inf) if schedule.ends_hard else ("settle", end.s)
    stage = Stage(name, s, tol=schedule.tol, most=schedule.max_iter, bounded=True)
    converged, known, patience = end.converged, found.base, found.plan.swaps if samples else 0
    for rows in levels:
        run.go_on(rows)
        # the sampling error of the centroids is larger than this
        coarse = 0.1 * math.sqrt(context.k / rows.n) if rows is not whole else 0.0
        at = stage._replace(tol=max(schedule.tol, coarse))
        converged = follow_with_swaps(run, at, known, patience).last.shift <= at.tol
        known = rows
    # whether no row is far from all others, as with typicality and on spheres
    are_near = run.rows.eta is not None or found.rows.unit_centroids
    are_near |= any(isinstance(each, Fourier) for each in found.rows.maps)
    if isinstance(found.init, str) and run.rows.present is None and not are_near:
        seen = found.base if samples else found.some
        if found.components is not None:
            of = decompositions.rows_of_components(found.base, 0)
            seen = min(seen, of, key=lambda rows: rows.n)
        if seen.n < whole.n:
            converged = reach_far_rows(run, stage, seen, converged)
    # these passes do not lower s, so a final exponent that was not reached stays so
    end.converged = converged and (schedule.ends_hard or end.converged)
    return whole


_Pair = tuple[Sums, Sums]  # at an exponent, and in the hard limit


def _evaluated(
    found: Prepared, rows: Rows, theta: Array, s: float, write: Callable[[Array], Any] | None
) -> tuple[Sums, Sums, float, list[Array]]:
    """The sums of all rows at the centroids, at the last soft exponent and in the hard limit, in
    one reading; their inertia; and the labels of rows in memory, while those of others are
    written."""
    elsewhere = rows.stream is not None and rows.stream.on_workers
    blocks = list[Array]()

    def take(begin: int, labels: Array) -> None:
        if found.noise is not None:
            noise = found.noise.rows[begin : begin + len(labels)]
            labels = np.where(noise, np.int32(-1), labels)
        if found.sample.in_memory:
            blocks.append(labels)
        if write is not None:
            write(labels)

    ends_hard = found.plan.schedule.ends_hard
    directions = find_directions(rows, theta, s) if ends_hard else None
    visit = partial(_both_sums, theta, s, None if elsewhere else take, ends_hard, directions)
    soft, hard = rows.fold(visit, passes.added)
    plain = replace(rows, eta=None)
    inertia = passes.accurate_cost(plain, hard, theta)
    if elsewhere and write is not None:
        take(0, passes.one_pass(plain, theta, -math.inf, want=("labels",))[1]["labels"])
    return soft, hard, inertia, blocks


def _both_sums(
    theta: Array, s: float, take: Callable[[int, Array], None] | None, ends_hard: bool,
    directions: Along | None, block: Rows, before: _Pair | None,
) -> _Pair:  # fmt: skip
    """The sums of a block at an exponent and in the hard limit. One pass gives both if the fit
    ends hard and has no typicality, as only the objective at the exponent is needed then; else two
    passes do. `take` is given the number of the first row and the labels."""
    soft, hard = before or (None, None)
    one = ends_hard and block.eta is None
    plain, at, wanted = replace(block, eta=None), s if one else -math.inf, ("labels",) * bool(take)
    hard, outputs = passes.pass_of_block(
        plain, theta, at, want=wanted, before=hard, hard=True, directions=directions
    )
    if one:  # without the large array N
        N = np.empty((len(theta), 0))
        soft = replace(hard, N=N, G=hard.G.copy(), Q=hard.Q.copy(), E=hard.E.copy())
    else:
        soft = passes.pass_of_block(block, theta, s, before=soft)[0]
    if take is not None:
        take(block.begin, outputs["labels"])
    return soft, hard


# ---- publish -------------------------------------------------------------------------------------


def _causes(result: FitResult) -> list[Cause]:
    """Why clusters may be missing: few distinct rows, of X or of what it was computed from, and
    then of what it is mapped to."""
    some, found = result.prepared.some, result.ending.found
    xs, weight = result.prepared.sample.some()
    name = "X" if result.rows.n == some.n else "a sample of X"
    if some.unit_centroids:  # rows with one direction differ by rounding
        xs, name = (
            [unit_rows(x.astype("float64")).astype(np.float32) for x in xs],
            f"{name} scaled to length one",
        )
    context, noise = result.prepared.context, result.prepared.noise
    left_out = noise is not None and noise.rows.any()
    which = "that are not noise" if left_out else "of positive weight"
    causes = context.causes or [few_rows(name, xs, weight, found, which)]
    causes = [*causes, few_rows(context.rows_name, some.xs, some.weight, found, which)]
    init = result.prepared.init
    return [*causes, equal_centroids(init)] if isinstance(init, np.ndarray) else causes


def publish_end(model: Any, attributes: dict[str, Any], end: StartEnd, context: FitContext) -> None:
    """Set the attributes and those that all fits have; warn if the run did not converge."""
    vars(model).update(
        attributes, s_=end.s, history_=context.history.records, _n_features_out=context.k
    )
    if not end.converged:
        warn(
            f"max_iter={model.max_iter} passes ended the run before it converged.",
            ConvergenceWarning,
        )

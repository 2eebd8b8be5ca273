"""A fit of features: its rows and its objective, and what is evaluated at its end.

`rows` are all rows. Means and variances are of the rows of `pilot`. `samples` are of growing size,
and `base` is the first sample, or all rows. Starts run on `base` or on its principal components, at
initial centroids that are chosen from the rows of `pool`. docs/math.md, section 21, has the terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from sklearn.metrics import euclidean_distances

from rffpk.anneal import convergence_warnings, decompositions, starts
from rffpk.anneal.convergence_warnings import Cause, Ending
from rffpk.anneal.decompositions import Compressed, compressed
from rffpk.anneal.fitted import Centroids
from rffpk.anneal.hard_pass import Along, find_directions
from rffpk.anneal.plan import SearchParameters, search_plan
from rffpk.anneal.records import PowerMean, State
from rffpk.anneal.schedule import FitContext, Plan, Result, Stage, StartEnd, converge
from rffpk.anneal.steps import FeatureLevel
from rffpk.rows import checks, passes
from rffpk.rows.arrays import Array, Fourier, Identity, Numbers
from rffpk.rows.door import Schema
from rffpk.rows.rows import Rows
from rffpk.rows.sample import Opened
from rffpk.rows.store import Cache, Known, Mapping, ScaledColumns
from rffpk.rows.sums import Sums, empty_clusters, rounding_error
from rffpk.rows.table import UnitRows, as_type, occupied_columns, operand, spread_columns, unit_rows
from rffpk.rows.weights import ones
from rffpk.system import config
from rffpk.system.tuning import TUNING

if TYPE_CHECKING:
    from rffpk.choose.noise import Noise

GivenInit = Numbers | Callable[..., Any]  # values of `init` that are not words


# Fits the maps of the views to rows; a map may be `Known`.
Maps = Callable[[Opened, FitContext], list[Any]]


@dataclass(frozen=True)
class Problem:
    """The problem that the parameters define: features of rows, the objective, and the starts."""

    search: SearchParameters
    # the plan, which depends on the critical exponent
    plan: Callable[[SearchParameters, FitContext, float, PowerMean], Plan] = search_plan
    maps: Maps = lambda sample, context: [Identity(x.shape[1]) for x in sample.xs]
    objective: Callable[[Rows, FitContext], PowerMean] = lambda rows, context: PowerMean()
    n_map_rows: int = 0  # least number of rows in the sample that maps are fitted on
    cache: Cache = False
    # converts an array `init` without centroids, such as memberships, to centroids; else None
    given: Callable[[Rows, int], Array | None] = lambda rows, k: None
    unit_centroids: bool = False  # whether centroids are scaled to length one
    rows_name: str = "the map of X"  # what a warning calls the columns of the features
    # least exponent of memberships, after a hard end on mapped features
    least_exponent: float = -math.inf
    # sets further attributes of the fitted model
    published: Callable[[Result], None] = lambda result: None
    # set by the fit
    schema: Schema = field(default_factory=lambda: Schema(""))
    noise: Noise | None = None  # the rows that get the label -1
    causes: tuple[Cause, ...] = ()  # why clusters of the rows may be missing
    stores_memberships: bool = False

    def prepare(self, sample: Opened, context: FitContext) -> FeatureData:
        """Return the rows with their features, the objective, and the plan of the starts."""
        params, k, storage, history = self.search, context.k, context.storage, context.history
        # the features of all rows, and of a pilot sample
        fits = (fit if isinstance(fit, Known) else Known(fit) for fit in self.maps(sample, context))
        maps, known = map(list, zip(*fits))
        # from here on, `cut` takes the place of the sample: it lacks empty columns
        columns = _occupied(sample, maps, params.init)
        cut = sample.with_columns(columns)
        mapping = Mapping(
            maps, cut.shape.views, storage, context.n_threads, context.coverage, self.unit_centroids
        )
        pilot, rows = mapping.pair(cut, known)
        variance = passes.total_variance(pilot)
        if mapping.mapped:
            storage.check(rows)
        init = _checked_init(self, sample, rows, mapping, k)
        # the objective; rows get its reference distances and fuzzifier
        objective = self.objective(pilot, context)
        typical = partial(replace, eta=objective.eta, m=objective.m)
        pilot, rows = typical(pilot), typical(rows)
        # starts run on rows or on components; initial centroids are from the pool
        samples = [typical(part) for part in _samples(self, cut, rows, mapping, k)]
        if samples:
            samples[0] = storage.sample(samples[0])
        base = samples[0] if samples else storage.all_rows(rows, k, TUNING.storage.all_passes)
        hard, single = params.ends_hard, all(isinstance(view, Fourier) for view in rows.maps)
        components = compressed(base, k, storage, hard, single) if params.differs else None
        pool = components.rows if components is not None else base if samples else pilot
        # The starts, by the critical exponent. Rows are drawn for it in any case, so that later
        # random numbers do not depend on whether it is used.
        exponent, seeds = 0.0, starts.seeding_rows(pool, k, context.random)
        if params.start != -math.inf or not params.ends_hard:  # else it is not used
            exponent = decompositions.exponent_of_rows(seeds)
        if context.journal.keeps:
            context.journal.begin(history, context.random, sample, exponent, variance, rows.shift)
        plan = self.plan(params, context, exponent, objective)
        later = [*(part.n for part in samples[1:]), rows.n] if samples else []
        left_out = 0.0 if components is None else components.left_out
        history.begin(len(plan.starts), plan.unit, left_out, later)
        search, whole = (base, None) if components is None else (components.rows, base)
        level = FeatureLevel(search, variance, objective, context, plan.most, components, whole)
        return FeatureData(
            self, context, sample, maps, bool(mapping.mapped), rows, level, pilot, samples, base,
            components, pool, init, objective, plan, columns,
            plan.swaps if samples else 0,
        )  # fmt: skip


@dataclass(frozen=True)
class FeatureData:
    """The rows of a fit with their features, the objective and the starts."""

    problem: Problem
    context: FitContext
    opened: Opened  # all rows with the columns of X; noise points have weight zero
    maps: list[Any]  # the fitted map of each view
    mapped: bool  # whether the features of some view differ from its columns
    rows: Rows  # all rows, with their features
    search: FeatureLevel  # level of the starts
    pilot: Rows  # sample for means, variances and exponents
    samples: list[Rows]  # samples of growing size, the first for the starts; []: all rows instead
    base: Rows  # the first sample, or all rows, with stored features where that pays
    components: Compressed | None  # principal components that the starts run on
    pool: Rows  # initial centroids are chosen from these rows
    init: Any  # the name of a method, a callable, or centroids
    objective: PowerMean
    plan: Plan
    # for each view the columns that are its features; None: all columns, or mapped features
    columns: list[Array | None]
    patience: int  # consecutive failures that end swaps on larger samples

    def first(self, start: int) -> State:
        """Return the state of a start at its initial centroids.

        Unless centroids are given, they are chosen from rows of the pool."""
        init, pool, k, random = self.init, self.pool, self.context.k, self.context.random
        if not isinstance(init, str) and not callable(init):
            theta = np.asarray(init - pool.shift)
        else:
            merges = self.plan.starts[start].merges and pool.present is None
            rows = starts.seeding_rows(pool, TUNING.starts.merged * k if merges else k, random)
            self.context.history.records.append({"stage": "seeding", "rows": rows.n})
            if callable(init):
                # the function gets unshifted features, in a SciPy matrix if they are sparse
                given = passes.some_features(rows)
                given = operand(given) if rows.sparse_columns else given + rows.shift
                drawn = init(given, k, random_state=random)
                theta = starts.checked_centroids(drawn, (k, given.shape[1])) - pool.shift
            else:
                features = passes.some_features(rows)
                drawn = starts.merged_centroids(rows, features, k, random) if merges else None
                if drawn is None:  # not to be merged, or too few rows or too little memory
                    drawn = starts.seed_centroids(rows, features, k, init, random)
                # sparse columns are not shifted: the shift is a part of centroids alone
                theta = drawn - rows.shift if rows.sparse_columns else drawn
        return State(pool.on_sphere(theta, theta), self.search.rows.alpha)

    def settled(self, state: State, end: StartEnd) -> tuple[State, StartEnd]:
        """Make the last passes of the search, if starts and swaps have left them out.

        If no start was annealed, compute the exponent at which annealing would have ended. Return
        the state and the end of the start."""
        level, schedule = self.search, self.plan.schedule
        if self.plan.swaps or not schedule.exact:  # centroids have not converged
            are_last = not (self.samples or self.components)  # no other passes follow
            stage = Stage("hard", -math.inf, tol=schedule.tol, most=schedule.max_iter, bounded=True)
            state, converged, _ = converge(level, state, stage._replace(exact=are_last))
            end = end._replace(converged=converged)
        if math.isinf(end.s):
            state, s = self.context.journal.run(level.nearly_hard_exponent, state)
            end = end._replace(s=s)
        return state, end

    def softened(self, state: State, end: StartEnd) -> tuple[FeatureData, State, StartEnd]:
        """Make passes at a finite exponent after a search that ended hard.

        The exponent follows from the critical exponent and the exponent of memberships. Return the
        data with the new plan, the state, and the end of the start."""
        context, state = self.context, self.search.leave(state)

        def exponents(state: State) -> tuple[State, list[float]]:
            """Return the state, the critical exponent, and the exponent of memberships."""
            critical = self.plan.critical
            if self.components is not None:  # the plan has the critical exponent of components
                rows = starts.seeding_rows(self.pilot, context.k, context.random)
                critical = decompositions.exponent_of_rows(rows)
            of_clusters = decompositions.exponent_of_memberships(self.pilot, state.theta)
            return state, [critical, float(of_clusters)]

        assert self.plan.soft_end is not None
        state, numbers = context.journal.run(exponents, state)
        plan = replace(self.plan.soft_end(*numbers), most=self.plan.most)
        context.history.unit, s = plan.unit, plan.schedule.end
        level = replace(self.search, rows=self.base, components=None, whole=None)
        data = replace(self, plan=plan, components=None, search=level, patience=0)
        state, converged, _ = converge(data.search, state, plan.last(s))
        return data, state, StartEnd(s, converged)

    def later(self) -> list[FeatureLevel]:
        """Return the levels that follow the search, in order.

        After a search on a sample: a level for each larger sample, and a level for all rows. After
        a search on principal components of all rows: one level with all features. Else none."""
        level = replace(self.search, components=None, whole=None)
        if not self.samples:
            return [] if self.components is None else [replace(level, rows=self.base)]
        k, growing = self.context.k, self.samples[1:]
        whole = self.context.storage.all_rows(self.rows, k, TUNING.storage.last_passes)
        # tolerances below the sampling errors of centroids, about sqrt(k / n)
        parts = [(rows, 0.1 * math.sqrt(k / rows.n)) for rows in growing]
        return [replace(level, rows=rows, coarse=coarse) for rows, coarse in [*parts, (whole, 0.0)]]

    def sample_of_far_rows(self, level: FeatureLevel) -> Rows | None:
        """Return the rows that the starts have seen, if the level may have rows far from them.

        The result is None if the starts have seen all rows, or if centroids are given or rows lack
        views. It is also None where no row can be far from all centroids: with typicality, for
        centroids of length one, and for random features."""
        none_far = level.rows.eta is not None or self.rows.unit_centroids
        none_far |= any(isinstance(mapped, Fourier) for mapped in self.rows.maps)
        if not isinstance(self.init, str) or level.rows.present is not None or none_far:
            return None
        seen = self.base if self.samples else self.pilot
        if self.components is not None:  # of many rows, a sample gives the components
            decomposed = decompositions.rows_of_components(self.base, 0)
            seen = min(seen, decomposed, key=lambda rows: rows.n)
        return seen if seen.n < level.rows.n else None

    def result(
        self, level: FeatureLevel, state: State, end: StartEnd, write: Callable[..., Any] | None
    ) -> Result:
        """Evaluate the centroids on all rows, and return the result of the fit.

        `end` is the end of the start that was kept. `write` is called with the labels of each
        block of rows, unless it is None."""
        problem, plan = self.problem, self.plan
        rows, hard_end = replace(self.rows, alpha=state.alpha), plan.schedule.ends_hard
        centers = (state.theta + rows.shift).astype(rows.dtype)
        centers = _without_rounding(centers) if rows.unit_centroids else centers
        theta = centers.astype(np.float64) - rows.shift
        soft, hard, inertia, labels = _evaluated(self, rows, theta, end.s, write)
        # passes over new rows are made at s; memberships of the fit have `exponent`
        s, last = (-math.inf, hard) if hard_end else (end.s, soft)
        exponent = _soft_exponent(self, rows, theta, end.s) if hard_end else end.s
        penalty = self.objective.penalty(rows.alpha, level.rows.total_weight)
        parts = self.spread(np.split(centers, np.cumsum(rows.widths)[:-1], axis=1))
        attributes = {
            "cluster_centers_": parts[0] if len(parts) == 1 else np.hstack(parts),
            "inertia_": inertia,
            "objective_": plan.unit * (soft.objective(end.s) + penalty),
            "n_iter_": state.passes,
            "sample_size_": self.base.n,
            "membership_exponent_": exponent,
            "cache_": self.mapped and not level.rows.computed,
            "_centroids": Centroids(
                self.maps, self.spread(rows.shifts), rows.alpha, self.objective, hard.G.copy(),
                rows.weights_of_centroids(last), self.opened.counted, s,
                None if problem.noise is None else problem.noise.outliers,
            ),
        }  # fmt: skip
        if self.opened.in_memory:
            attributes["labels_"] = labels[0] if len(labels) == 1 else np.concatenate(labels)
        if problem.stores_memberships:
            outputs = passes.one_pass(rows, theta, exponent, want=("memberships",))[1]
            attributes["memberships_"] = outputs["memberships"]
        if problem.noise is not None:
            problem.noise.add_to(attributes)
        ending = _ending(self, rows, theta, hard, s)
        causes = [] if ending.found == ending.k else _causes(self, rows, ending)
        return Result(attributes, end, ending, causes, self, rows)

    def spread(self, lines: list[Array]) -> list[Array]:
        """Insert zeros for the columns that were left out, in the features of each view.

        `lines` has an array for each view. Its last axis has the columns that were kept."""
        views = zip(lines, self.columns, self.opened.xs)
        return [spread_columns(line, index, x.shape[1]) for line, index, x in views]


Metric = Literal["euclidean", "cosine"]


def maps_of(metric: Any, whitening: Any) -> Maps:
    """Check the parameters `metric` and `whitening`; return the maps of a model of one view.

    With a `whitening`, rows are whitened. Otherwise they are scaled to length one for the cosine
    metric, or used as they are."""
    checks.check_choice(metric, "metric", get_args(Metric))
    if whitening is not None:
        checks.check_real(whitening, "whitening", 0, 1, also="None")
        if metric == "cosine":
            raise ValueError(
                f"whitening={whitening}: whitened columns have other angles than metric='cosine' "
                "compares. Pass whitening=None."
            )
        from rffpk.spaces.whitening import WhiteningSpec

        spec = WhiteningSpec(whitening)
        return lambda sample, context: [
            spec.fit(sample, 0, context.k, context.random, context.n_threads)
        ]
    if metric == "cosine":
        return lambda sample, context: [UnitRows()]
    return lambda sample, context: [Identity(x.shape[1]) for x in sample.xs]


# ---- prepare: rows, maps, objective and plan -----------------------------------------------------


def _checked_init(problem: Problem, opened: Opened, rows: Rows, mapping: Mapping, k: int) -> Any:
    """Check the parameter `init`; return a name, a callable, or centroids (k, F).

    An array has centroids. If views are mapped, it has k rows, and their features are returned.
    Other arrays, such as memberships, are converted by `problem.given`."""
    init = problem.search.init
    if isinstance(init, str) or callable(init):
        return init
    if (meant := problem.given(rows, k)) is not None:
        return meant
    if not mapping.mapped:
        names = () if opened.shape.listed else opened.shape.names[0]
        return starts.checked_centroids(init, (k, len(rows.shift)), names)
    xs = starts.given_rows(problem.schema.of_new_rows(opened.shape), init, k)
    xs = [as_type(x, rows.dtype) for x in xs]
    return passes.shifted_features(mapping(xs, ones(k))).astype(np.float64)


def _occupied(sample: Opened, maps: list[Any], init: Any) -> list[Array | None]:
    """Return, for each view, the indices of the columns that are not empty; None: all columns.

    Only sparse views whose features are columns can leave out empty columns. With given centroids
    all columns are kept, because centroids may have numbers in empty columns."""
    kinds = UnitRows | ScaledColumns | Identity
    are_columns = [isinstance(init, str) and isinstance(mapped, kinds) for mapped in maps]
    return [occupied_columns(x) if own else None for x, own in zip(sample.xs, are_columns)]


def _samples(problem: Problem, sample: Opened, rows: Rows, mapping: Mapping, k: int) -> list[Rows]:
    """Return samples of growing size; the starts use the first sample.

    The list is empty if the starts run on all rows. Views of `rows` with stored features are cut
    into samples as they are, so that no map runs twice."""
    # Some features are stored. The rows of a stream have no columns in memory.
    if rows.stream is None and len(rows.computed) < len(mapping.mapped):
        xs, maps = [*rows.xs], [*rows.maps]
        for i in rows.computed:
            xs[i], maps[i] = sample.xs[i], mapping.maps[i]
        sample = sample.with_tables(xs, tuple(range(len(xs))))
        mapping = replace(mapping, maps=maps, views=sample.shape.views)
    sizes = sample.sizes_of_starts(problem.search.sample, k)
    return [mapping(*sample.some(size), rows.shifts) for size in sizes]


# ---- evaluate ------------------------------------------------------------------------------------


def _soft_exponent(data: FeatureData, rows: Rows, theta: Array, s: float) -> float:
    """Return the exponent of memberships after a hard end, from the shape of the clusters.

    On mapped features it is at least `least_exponent` of the problem. The result is s if all rows
    lie on centroids."""
    calibrated = decompositions.exponent_of_memberships(
        replace(data.pilot, alpha=rows.alpha), theta
    )
    least = data.problem.least_exponent if data.mapped else -math.inf
    return max(calibrated, least) if math.isfinite(calibrated) else s


def _without_rounding(centers: Array) -> Array:
    """Replace each centroid of length one by the first centroid that is equal up to rounding.

    Rows with the same direction differ by rounding. After the replacement they get one label.
    O(k^2 F) time if centroids are replaced."""
    close, exact = rounding_error(centers.dtype), centers.astype(np.float64)
    if config.backend().count_distinct(exact, close) == len(exact):
        return centers
    return centers[[(((exact - x) ** 2).sum(axis=1) <= close).argmax() for x in exact]]


def _ending(data: FeatureData, rows: Rows, theta: Array, hard: Sums, s: float) -> Ending:
    """Return the ending of a fit, from which warnings are made.

    Count the clusters that have rows, by the sums `hard`. At a finite exponent s, also judge on the
    pilot sample whether soft memberships distinguish the clusters. Labels do not depend on
    typicality, so they are computed without `eta`."""
    k, plan = len(theta), data.plan
    used = k - int(empty_clusters(hard.G, rows.dtype).sum())
    ending = Ending(k, used, s, plan.critical, plan.lowered_by)
    if math.isinf(s):
        return ending
    pilot = replace(data.pilot, alpha=rows.alpha).counted()
    untypical = replace(pilot, eta=None)
    labels = passes.one_pass(untypical, theta, -math.inf, want=("labels",))[1]["labels"]
    index = convergence_warnings.rows_of_clusters(labels, k)
    outputs = passes.one_pass(pilot.take(index), theta, s, want=("memberships", "distances"))[1]
    scaled = rows.scaled(theta)
    return ending.of_memberships(
        outputs["memberships"], labels[index], outputs["distances"],
        lambda part: euclidean_distances(scaled[part], scaled, squared=True),
    )  # fmt: skip


_Pair = tuple[Sums, Sums]  # sums at an exponent, and sums in the hard limit


def _evaluated(
    data: FeatureData, rows: Rows, theta: Array, s: float, write: Callable[[Array], Any] | None
) -> tuple[Sums, Sums, float, list[Array]]:
    """Return sums of all rows at the exponent s, sums in the hard limit, inertia and labels.

    The rows are read once for all results. Labels come in blocks, and only for rows in memory. The
    inertia is the weighted sum of the least squared distances, without typicality. `write` is
    called with the labels of each block, unless it is None."""
    # workers in other processes do not give labels to `take`, so another pass computes the labels
    elsewhere = rows.stream is not None and rows.stream.head is not None
    blocks = list[Array]()

    def take(begin: int, labels: Array) -> None:
        """Keep and write the labels of a block whose first row has the index `begin`."""
        if data.problem.noise is not None:
            noise = data.problem.noise.rows[begin : begin + len(labels)]
            labels = np.where(noise, np.int32(-1), labels)
        if data.opened.in_memory:
            blocks.append(labels)
        if write is not None:
            write(labels)

    ends_hard = data.plan.schedule.ends_hard
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
    """Return the sums of a block at the exponent s, and its sums in the hard limit.

    The sums `before` of earlier blocks are added, if there are any. If the fit ends hard and has no
    typicality, one pass gives both sums, because at s only the objective is needed. Otherwise two
    passes are made. `take` is called with the index of the first row and with the labels."""
    soft, hard = before or (None, None)
    once = ends_hard and block.eta is None
    plain, at, wanted = replace(block, eta=None), s if once else -math.inf, ("labels",) * bool(take)
    hard, outputs = passes.pass_of_block(
        plain, theta, at, want=wanted, before=hard, hard=True, directions=directions
    )
    if once:  # the objective does not need the large array N
        N = np.empty((len(theta), 0))
        soft = replace(hard, N=N, G=hard.G.copy(), Q=hard.Q.copy(), E=hard.E.copy())
    else:
        soft = passes.pass_of_block(block, theta, s, before=soft)[0]
    if take is not None:
        take(block.begin, outputs["labels"])
    return soft, hard


# ---- why clusters may be missing -----------------------------------------------------------------


def _causes(data: FeatureData, rows: Rows, ending: Ending) -> list[Cause]:
    """Return the causes that may explain missing clusters, in the order of trial.

    The causes of the problem come first. If it has none, X may have few distinct rows. Next, the
    features of X may have few distinct rows. Last, given centroids may be equal."""
    problem, sample = data.problem, data.pilot
    xs, weight = data.opened.some()
    name = "X" if rows.n == sample.n else "a sample of X"
    if sample.unit_centroids:  # rows with one direction differ by rounding
        xs = [unit_rows(x.astype("float64")).astype(np.float32) for x in xs]
        name = f"{name} scaled to length one"
    left_out = problem.noise is not None and problem.noise.rows.any()
    which = "that are not noise" if left_out else "of positive weight"
    few = partial(convergence_warnings.few_rows, least=ending.found, which=which)
    causes = [*problem.causes] or [partial(few, name, xs, weight)]
    causes.append(partial(few, problem.rows_name, sample.xs, sample.weight))
    if isinstance(data.init, np.ndarray):
        causes.append(partial(convergence_warnings.equal_centroids, data.init))
    return causes

"""How centroids move far in a feature space: by swaps.

A swap moves one centroid to a costly row: the centroid whose removal raises the hard objective
least. It is kept if it lowers the objective. If there are many clusters, many swaps are made at
once: rows become additional centroids, some passes follow, and as many centroids are removed. The
number of passes then does not grow with the number of clusters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import euclidean_distances

from rffpk.anneal.hard_pass import Need, add, hard_plan, remove, step
from rffpk.anneal.records import State
from rffpk.anneal.schedule import Stage, StageEnd
from rffpk.anneal.starts import draw
from rffpk.anneal.steps import FeatureLevel, costliest_rows, features_at, row_costs
from rffpk.rows.arrays import Array
from rffpk.rows.draws import MANY, Reservoir, row_keys
from rffpk.rows.passes import one_pass
from rffpk.rows.rows import Rows
from rffpk.rows.weights import weight_unit
from rffpk.system import config
from rffpk.system.tuning import TUNING


def improve(
    level: FeatureLevel, state: State, cost: float, patience: int, later: bool = False
) -> State:
    """Swap centroids until `patience` consecutive swaps fail; return the state.

    Swaps also end when every row lies on a centroid. `cost` is the hard objective at the start,
    and a swap fails if it does not lower the objective. `later`: many centroids were swapped on a
    smaller sample before, so that batches begin smaller."""
    k, journal, tuning = level.context.k, level.context.journal, TUNING.swaps
    if k >= TUNING.starts.some and level.rows.stream is None:  # batches keep a cost for each row
        state, cost = _improve_in_batches(level, state, patience, later)
        # swaps one by one then take no longer than with the least number of clusters
        patience = max(1, patience * TUNING.starts.some // k)
    if k >= MANY:  # swaps one by one would take too long
        return state
    failed, state = 0, state._replace(drawn=None)
    estimate = Estimate()
    for _ in range(patience + 10 * len(state.theta)):  # also limits successful swaps
        if failed == patience:
            break
        state, new = journal.run(_swap_one, state, level, estimate, cost)
        if new is None:
            break
        cost, failed = (new, 0) if new < (1 - tuning.least_gain) * cost else (cost, failed + 1)
    return state._replace(drawn=None)


class Estimate:
    """The rows on which swaps are estimated, kept until the centroids move."""

    known: _Nearest | None = None  # None: compute them before the next swap


def _swap_one(
    state: State, level: FeatureLevel, estimate: Estimate, cost: float
) -> tuple[State, float | None]:
    """Swap one centroid and make passes; undo both if they do not lower the hard objective `cost`.

    Return the state and the objective after the passes, before they were undone. The objective is
    infinite if the passes were given up, and None if every row lies on a centroid."""
    if estimate.known is None:
        state, estimate.known = _nearest(level, state)
    swapped = _swap(level, state, estimate.known)
    if swapped is None:
        return state, None
    tuning, tol = TUNING.swaps, 1e-3
    stage = Stage("swap", -math.inf, 0.0, tol, tuning.passes, cost)
    after, (last, steps) = level.follow(state._replace(theta=swapped), stage)
    # passes that ended early, without convergence, could not reach the goal
    new = math.inf
    if steps == tuning.passes or last.shift <= tol:
        after, new = level.cost(after, -math.inf)
    if new < (1 - tuning.least_gain) * cost:
        estimate.known = None
        return after._replace(drawn=None), new
    return after._replace(theta=state.theta, alpha=state.alpha), new


def _improve_in_batches(
    level: FeatureLevel, state: State, patience: int, later: bool = False
) -> tuple[State, float]:
    """Swap batches of centroids until a few consecutive batches of the smallest size fail.

    The size of a batch is halved when it fails. A failed batch of the smallest size counts as
    `TUNING.swaps.failures` of the `patience` failures. `later`: centroids were swapped on a smaller
    sample before, so the first batch is smaller. Return the state and its hard objective."""
    k, journal, tuning = len(state.theta), level.context.journal, TUNING.swaps
    small = level.rows.n * state.theta.size <= tuning.small_work
    least_gain = tuning.small_gain if small else tuning.batch_gain
    count = k // (tuning.later_part if later else tuning.first_part)
    smallest, failed = k // tuning.last_part, 0
    batches = Batches(level)
    state, cost = journal.run(batches.cost, state)
    while failed * tuning.failures < patience and cost > 0:
        state, new = journal.run(batches.swap, state, count, cost)
        lower = new < (1 - least_gain) * cost
        cost = min(new, cost)
        failed = 0 if lower else failed + (count == smallest)
        if not lower:
            count = max(smallest, count // 2)
    return state, cost


def follow_with_swaps(
    level: FeatureLevel, state: State, stage: Stage, known: FeatureLevel, patience: int
) -> tuple[State, StageEnd]:
    """Make the passes of a stage, from centroids that were found on the level `known`.

    With a `patience` for swaps, centroids may be swapped on drawn rows before these passes. They
    are swapped if the hard objective of the first pass is far from its estimate by `known`, or if
    there are MANY clusters and `known` has few rows of each.
    """
    if not patience:
        return level.follow(state, stage)
    before = known.rows if known.whole is None else known.whole
    journal, enough = level.context.journal, TUNING.swaps.rows_a_cluster * level.context.k
    state, (expected, of_cluster) = journal.run(_expected, state, before, level)
    if level.context.k < MANY or np.count_nonzero(before.weight) >= enough:
        usual = expected / TUNING.swaps.unlike, expected * TUNING.swaps.unlike
        state, end = level.follow(state, stage._replace(usual=usual))
        # else the stage ended after the first pass, because the objective is not as expected
        if end.steps > 1 or end.steps == stage.most or usual[0] <= end.last.hard <= usual[1]:
            return state, end
        stage = stage._replace(most=stage.most - end.steps)
    if level.variance > 0:  # else rows are equal
        shares = np.asarray(of_cluster)
        state = _improve_on_drawn(level, state, expected, shares, enough, patience)
    return level.follow(state, stage)


def _expected(state: State, known: Rows, level: FeatureLevel) -> tuple[State, list[Any]]:
    """Estimate the costs and the cluster weights of all rows of a level from the rows `known`.

    Return the state, the hard objective at its centroids, and a number (k,) for each cluster. The
    number is 1 / (weight of the cluster times number of clusters with rows), or zero without
    rows."""
    at, k = replace(known, alpha=state.alpha), len(state.theta)
    sums, found = one_pass(at, state.theta, -math.inf, want=("labels",))
    scale = level.rows.total_weight / known.total_weight
    masses = scale * known.weight_unit * np.bincount(found["labels"], known.weight, k)
    parts = masses * np.count_nonzero(masses)
    return state, [scale * sums.hard, np.divide(1, parts, out=np.zeros(k), where=parts > 0)]


def _improve_on_drawn(
    level: FeatureLevel, state: State, expected: float, of_cluster: Array, count: int,
    patience: int,
) -> State:  # fmt: skip
    """Swap centroids on `count` rows that are drawn by cost and cluster; return the state.

    The probability of a row grows with its share of the total cost, and with its share of the
    weight of its cluster. `expected` and `of_cluster` are results of `_expected`. Drawn rows are
    weighted by the inverse of their probability. If rows were drawn uniformly, too few would be far
    from all centroids or in a small cluster."""
    context, rows = level.context, level.at(state)
    seed = context.random.randint(2**31 - 1)
    rounding = float(np.finfo(rows.dtype).eps) * level.variance * rows.total_weight
    of_cost = 1 / max(expected, rounding, float(np.finfo(np.float64).tiny))

    def drawn_rows(state: State) -> tuple[State, list[Array]]:
        """Return the state, and the indices of the drawn rows with their probabilities."""
        visit = partial(_keyed, state.theta, of_cost, of_cluster, seed, count)
        kept = level.at(state).fold(visit, Reservoir.joined)
        index, [odds], threshold = kept.sample().first(count)
        # keys are exponential with the rate `odds`; rows with keys below the threshold are drawn
        return state, [index, -np.expm1(-odds * threshold)]

    state, drawn = context.journal.run(drawn_rows, state)
    index, p = map(np.asarray, drawn)
    sample = rows.take(index)
    weight = sample.weight / p
    unit = weight_unit(weight)
    weight, unit = (weight / unit).astype(rows.dtype), unit * rows.weight_unit
    sample = context.storage.sample(replace(sample, weight=weight, weight_unit=unit))
    drawn_level = replace(level, rows=sample)
    # infinity: the objective on the drawn rows is not known
    state = improve(drawn_level, state._replace(assigned=None), math.inf, patience, later=True)
    return state._replace(assigned=None)


def _keyed(
    theta: Array, of_cost: float, of_cluster: Array, seed: int, count: int, block: Rows,
    before: Reservoir | None,
) -> Reservoir:  # fmt: skip
    """Draw rows from a block and from the blocks before it; return them as a reservoir.

    `before` is the reservoir of the blocks before, or None. The odds of a row are its weight times
    the sum of two parts: its squared distance from the nearest centroid times `of_cost`, and the
    entry of `of_cluster` (k,) for its cluster."""
    kept = before or Reservoir(count)
    found = one_pass(block, theta, -math.inf, want=("labels", "nearest"))[1]
    odds = of_cost * found["nearest"].astype(np.float64) + of_cluster[found["labels"]]
    odds *= block.weight_unit  # in float64: float32 may not hold the products
    odds *= block.weight
    kept.add(block.begin, row_keys(seed, block.begin, block.n, odds), [odds])
    return kept


@dataclass
class Batches:
    """Swaps of batches of centroids, and the distances by which rows are drawn for them."""

    level: FeatureLevel
    _nearest: Array | None = None  # (n,), squared distances from the nearest centroids

    def cost(self, state: State) -> tuple[State, float]:
        """Return the state and its hard objective; keep the costs of the rows for `swap`."""
        level, rows = self.level, self.level.at(state)
        if hard_plan(rows, level.most, level.objective.learns_weights).near:
            if state.assigned is None or state.assigned.cost is None:
                assigned = step(rows, state.theta, None, Need())[1]
                state = state._replace(assigned=assigned)
            assert state.assigned is not None
            self._nearest = state.assigned.own
            return level.cost(state, -math.inf)
        sums, outputs = one_pass(rows, state.theta, -math.inf, want=("nearest",))
        self._nearest = outputs["nearest"]
        return state, sums.hard + level.objective.penalty(state.alpha, rows.total_weight)

    def swap(self, state: State, count: int, cost: float) -> tuple[State, float]:
        """Swap `count` centroids; undo that if it does not lower the hard objective `cost`.

        Return the state, and the objective of the swap even if it was undone."""
        if self._nearest is None:  # the cost came from a checkpoint
            state, _ = self.cost(state)
        assert self._nearest is not None
        before = self._nearest
        after, new = self.cost(_exchange(self.level, state, before, count))
        if not new < cost:
            self._nearest = before
            after = after._replace(theta=state.theta, alpha=state.alpha, assigned=state.assigned)
        return after, new


def _exchange(level: FeatureLevel, state: State, nearest: Array, count: int) -> State:
    """Add `count` rows as centroids, remove as many centroids, and return the new state.

    Some passes follow the addition, and some the removal. `nearest` (n,) has the squared distances
    of the rows from their nearest centroids. Rows are drawn in proportion to their costs."""
    rows, tuning = level.at(state), TUNING.swaps
    share = nearest.astype(np.float64) * rows.weight
    count = min(count, int(np.count_nonzero(share)))
    places = level.context.random.choice(rows.n, count, replace=False, p=share / share.sum())
    theta = np.vstack([state.theta, features_at(rows, places, state.theta)])
    assigned = None if state.assigned is None else add(state.assigned, count)
    added = Stage("swap", -math.inf, tol=tuning.batch_tol, most=tuning.passes_added, exact=False)
    state = state._replace(theta=theta, assigned=assigned)
    state = level.follow(state, added._replace(second=True))[0]
    state = _without_cheapest(level, state, count)
    return level.follow(state, added._replace(most=tuning.passes_removed))[0]


def _without_cheapest(level: FeatureLevel, state: State, count: int) -> State:
    """Remove the `count` centroids whose removal raises the objective least; return the state.

    The rise is estimated as if each row moved to its second nearest centroid. If centroid j is
    removed, its nearest neighbor among the centroids is kept where possible, because it takes over
    most rows of j."""
    rows, theta, assigned = level.at(state), state.theta, state.assigned
    labels, nearest, second = _two_nearest(rows, state)
    raised = (second.astype(np.float64) - nearest) * rows.weight
    order = np.argsort(np.bincount(labels, raised, len(theta)), kind="stable")
    # squared distances between centroids i and j, less ||theta_i||^2, which no argmin over j needs
    scaled = rows.scaled(theta)
    apart = (scaled**2).sum(axis=1) - 2 * (scaled @ scaled.T)
    np.fill_diagonal(apart, np.inf)
    neighbor = apart.argmin(axis=1)
    removed, kept = np.zeros((2, len(theta)), dtype=bool)
    left = count  # how many centroids are still to be removed
    for j in order:
        if left and not kept[j]:
            removed[j] = kept[neighbor[j]] = True
            left -= 1
    removed[order[~removed[order]][:left]] = True  # kept neighbors, if too few were removed
    if assigned is not None:
        assigned = remove(rows, theta, assigned, removed)
    return state._replace(theta=theta[~removed], assigned=assigned)


def _two_nearest(rows: Rows, state: State) -> tuple[Array, Array, Array]:
    """Return labels (n,), and squared distances (n,) from the nearest and second nearest centroid.

    They are taken from the assignment of the state. If it lacks a distance, a pass computes all."""
    found = state.assigned
    if found is not None and found.own is not None and found.other is not None:
        return found.labels, found.own, found.other
    _, outputs = one_pass(rows, state.theta, -math.inf, want=("labels", "nearest", "second"))
    return outputs["labels"], outputs["nearest"], outputs["second"]


def reach_far_rows(
    level: FeatureLevel, state: State, stage: Stage, seen: Rows
) -> tuple[State, bool | None]:
    """Move centroids to rows that are far from all centroids, and make the passes of a stage.

    Centroids move only if the mean cost of the level's rows is much above the mean cost of `seen`,
    the rows that the starts ran on. Moves are repeated while they lower the objective enough.
    Return the state, and whether the passes of the last successful move converged. The second
    result is None if no move succeeded."""

    def without_costliest(state: State) -> tuple[State, float]:
        """Return the state, and the mean cost of the rows of `seen` without the costliest rows."""
        sample = replace(seen, alpha=state.alpha)
        nearest = one_pass(sample, state.theta, -math.inf, want=("nearest",))[1]["nearest"]
        costs = np.sort(row_costs(nearest, sample.weight, level.variance, sample.dtype))
        left = float(costs[: -TUNING.swaps.costliest].sum())
        return state, sample.weight_unit * left / sample.total_weight

    journal, converged = level.context.journal, None
    state, mean = journal.run(without_costliest, state)
    if state.hard <= TUNING.swaps.lacked * mean * level.rows.total_weight:
        return state, converged
    state, cost = journal.run(level.cost, state, stage.s)
    while True:
        before = cost
        state, (new, shift) = journal.run(_reach, state, level, stage, cost)
        if new < before:
            cost, converged = new, shift <= stage.tol
        if not new < (1 - TUNING.swaps.least_reached) * before:
            return state, converged


def _reach(
    state: State, level: FeatureLevel, stage: Stage, cost: float
) -> tuple[State, list[float]]:
    """Add the k costliest rows as centroids, merge to k by Ward's method, and make passes.

    If the objective is not lower than `cost`, restore the centroids and the view weights. Return
    the state, the objective after the passes (also if they are undone), and how far the last pass
    moved the centroids."""
    from rffpk.system.tree import means, merged

    rows, theta = level.at(state), state.theta
    masses = one_pass(rows, theta, -math.inf)[0].G
    costs, far = costliest_rows(rows, theta, len(theta), level.variance)
    if not len(far):
        return state, [cost, 0.0]
    squares = euclidean_distances(rows.scaled(far), rows.scaled(theta), squared=True).min(axis=1)
    # weights that turn squared distances into the costs of the rows
    weight = np.divide(costs, squares, out=np.zeros_like(squares), where=squares > 0)
    masses = np.concatenate([masses, rows.weight_unit * weight])
    theta = np.vstack([theta, far])
    theta = means(theta, masses, merged(rows.scaled(theta), masses, len(state.theta)))
    after, (last, _) = level.follow(state._replace(theta=theta), stage._replace(name="swap"))
    after, new = level.cost(after, stage.s)
    if not new < cost:
        after = after._replace(theta=state.theta, alpha=state.alpha)
    return after, [new, last.shift]


@dataclass(frozen=True)
class _Nearest:
    """Rows on which swaps are estimated, with their distances from the centroids."""

    rows: Rows
    weight: Array  # (n,), float64
    labels: Array  # (n,)
    nearest: Array  # (n,), squared distances from the nearest centroids
    second: Array  # (n,), squared distances from the second nearest centroids
    sums: Array  # (n,), cumulative sums of the costs, weight * nearest


def _nearest(level: FeatureLevel, state: State) -> tuple[State, _Nearest]:
    """Return random rows with their nearest centroids, on which swaps are estimated.

    All rows are taken if they are few. The state keeps the indices of the random rows, so that
    the next estimate uses them again. O(k) memory for each row."""
    rows, k, tuning = level.at(state), len(state.theta), TUNING.swaps
    most = max(2 * k, min(tuning.rows, tuning.distances // k))
    if rows.n > most:
        if state.drawn is None:  # with replacement: rows may be drawn repeatedly
            drawn = np.sort(level.context.random.randint(rows.n, size=most))
            state = state._replace(drawn=drawn)
        rows = rows.take(np.asarray(state.drawn))
    _, outputs = one_pass(rows, state.theta, -math.inf, want=("labels", "nearest", "second"))
    weight = rows.weight.astype(np.float64)
    labels, nearest, second = (outputs[name] for name in ("labels", "nearest", "second"))
    return state, _Nearest(rows, weight, labels, nearest, second, (weight * nearest).cumsum())


def _swap(level: FeatureLevel, state: State, known: _Nearest) -> Array | None:
    """Return the centroids (k, F) after one of them moved far; None if all rows lie on centroids.

    A few candidate rows are drawn as in k-means++, in proportion to their costs. The candidate that
    lowers the objective most becomes a centroid. It replaces the centroid whose removal then raises
    the objective least."""
    rows, weight = known.rows, known.weight
    if not known.sums[-1] > 0:
        return None
    places = draw(known.sums, TUNING.swaps.candidates, level.context.random)
    candidates = features_at(rows, places, state.theta)
    distances = one_pass(rows, candidates, -math.inf, want=("distances",))[1]["distances"]
    if rows.eta is not None:
        distances = rows.effective_distances(distances)
    # the candidate that lowers the cost most
    chosen = int(config.backend().costs_with(distances, known.nearest, weight).argmin())
    new = distances[:, chosen]
    # by how much the cost of each row rises if its centroid is removed after the candidate is added
    raised = weight * (np.minimum(known.second, new) - np.minimum(known.nearest, new))
    costs = np.bincount(known.labels, raised, minlength=len(state.theta))
    theta = np.array(state.theta, dtype=np.float64)
    theta[int(costs.argmin())] = candidates[chosen]
    return theta

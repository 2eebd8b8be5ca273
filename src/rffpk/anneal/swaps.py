"""How centroids move far in a feature space: by swaps.

A swap moves one centroid far, from where its removal raises the hard objective least to a costly
row, and is kept if it lowers that objective. If there are many clusters, many swaps are made at
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
from rffpk.anneal.schedule import SOME, Stage, StageEnd
from rffpk.anneal.starts import draw
from rffpk.anneal.steps import FeatureRun, costliest_rows, features_at, row_costs
from rffpk.rows.arrays import Array
from rffpk.rows.draws import Reservoir, row_keys
from rffpk.rows.passes import one_pass
from rffpk.rows.rows import Rows
from rffpk.rows.weights import weight_unit
from rffpk.system import config

_PASSES = 8  # After a swap at most so many passes follow. ...
# ... They end when the centroids move by at most this, or the cost will not fall to that before the
# swap.
_TOL = 1e-3

_CANDIDATES = 5  # rows for the new position of a centroid
_ROWS = 20_000  # The change of the cost is estimated on at most so many rows, ...
_DISTANCES = 2**24  # ... and so many distances of rows from centroids.

_TRIALS = 10  # most swaps are `patience` and this many for each centroid
_GAIN = 1e-5  # the least relative gain that counts

# Batches of swaps have this part of the centroids at first, a third, ...
LARGEST = 3
_LARGEST_LATER = 8  # ... or an eighth after swaps on a sample; a failure halves it, ...
_SMALLEST = 16  # ... but not below this part.
# A batch fails if it lowers the objective by less than this part of itself, ...
_LEAST_GAIN = 1e-3
_SMALL = 1 << 26  # ... or, for up to so many multiply-adds of a pass, ...
_LEAST_GAIN_SMALL = 1e-4  # ... this part.
_FAILURES = 10  # of single swaps, that a failure of the smallest batch counts as
# Passes follow until the centroids move by at most this, ...
_BATCH_TOL = 3e-3
_PASSES_ADDED = 3  # ... but at most so many after centroids are added, ...
_PASSES_REMOVED = 5  # ... and so many after as many are removed.

# A sample lacks rows that cost much where the mean cost of all rows is larger than its own by this
# factor; few rows cost much where it is larger than that of a sample without so many of its
# costliest rows. ...
_COSTLIEST, _LACKED = 10, 1.1
_LEAST_REACHED = 0.02  # ... They are looked for again after at least this relative gain.

# A sample lacks rows of a heavy tail, or has too many of them, where the mean cost of all rows
# differs from that of the sample by this factor. It is 0.99 to 1.01 where tails are light.
_UNLIKE = 1.05

# Rows that are drawn for each cluster to swap centroids again: those of MANY clusters always are
# after a sample that has fewer.
_ENOUGH_ROWS = 250


def improve(run: FeatureRun, cost: float, patience: int, later: bool = False) -> None:
    """Swap centroids until `patience` swaps in a row have not lowered the hard objective `cost`, or
    no row is away from the centroids. `later`: many have been swapped on a sample before."""
    if run.context.k >= SOME and run.rows.stream is None:  # batches need a number of each row
        cost = _improve_in_batches(run, patience, later)
        patience = max(1, patience * SOME // run.context.k)  # which take as long as with SOME
    if run.context.many:
        return
    failed, known, run.drawn = 0, list[_Nearest](), None
    for _ in range(patience + _TRIALS * len(run.theta)):
        if failed == patience:
            break
        new = run.kept(partial(_swap_one, run, known, cost))
        if new is None:
            break
        cost, failed = (new, 0) if new < (1 - _GAIN) * cost else (cost, failed + 1)
    run.drawn = None


def _swap_one(run: FeatureRun, known: list[_Nearest], cost: float) -> float | None:
    """Swap a centroid, and make passes; undo that if the cost is not lower than `cost`. Returns the
    cost, infinite if the passes were given up, and None if no row is away from the centroids.
    `known`: the rows that the change of the cost is estimated on, once they are, until centroids
    move."""
    if not known:
        known.append(_nearest(run))
    before = run.theta, run.rows
    if not _swap(run, known[0]):
        return None
    last, steps = run.follow(Stage("swap", -math.inf, 0.0, _TOL, _PASSES, cost))
    # passes that ended before they converged left no hope
    new = math.inf if steps < _PASSES and last.shift > _TOL else run.cost(-math.inf)
    if new < (1 - _GAIN) * cost:
        run.drawn = None
        known.clear()
    else:
        run.theta, run.rows = before
    return new


def _improve_in_batches(run: FeatureRun, patience: int, later: bool = False) -> float:
    """Swap batches of centroids until some of the smallest batches have failed in a row; returns
    the hard objective."""
    k = len(run.theta)
    small = run.rows.n * run.theta.size <= _SMALL
    least_gain = _LEAST_GAIN_SMALL if small else _LEAST_GAIN
    count, smallest, failed = k // (_LARGEST_LATER if later else LARGEST), k // _SMALLEST, 0
    batches = _Batches(run)
    cost = run.kept(batches.cost)
    while failed * _FAILURES < patience and cost > 0:
        new = run.kept(partial(batches.swap, count, cost))
        lower = new < (1 - least_gain) * cost
        cost = min(new, cost)
        failed = 0 if lower else failed + (count == smallest)
        if not lower:
            count = max(smallest, count // 2)
    return cost


def follow_with_swaps(run: FeatureRun, stage: Stage, known: Rows, patience: int) -> StageEnd:
    """Make the passes of a stage, at centroids that were found on the rows `known`.

    With a `patience` for swaps, centroids may be swapped on drawn rows before these passes. They
    are swapped if the first pass shows that the sample `known` misjudges the tail of the rows, or
    if the sample is too small for MANY clusters.
    """
    if not patience:
        return run.follow(stage)
    enough = _ENOUGH_ROWS * run.context.k
    expected, of_cluster = run.kept(partial(_expected, known, run))
    if not run.context.many or len(known.counted_indices()) >= enough:
        usual = expected / _UNLIKE, expected * _UNLIKE
        end = run.follow(stage._replace(usual=usual))
        if end.steps > 1 or end.steps == stage.most or usual[0] <= end.last.hard <= usual[1]:
            return end
        stage = stage._replace(most=stage.most - end.steps)
    if run.variance > 0:  # else rows are equal
        _improve_on_drawn(run, expected, np.asarray(of_cluster), enough, patience)
    return run.follow(stage)


def _expected(known: Rows, run: FeatureRun) -> list[Any]:
    """Estimate on the rows `known` what holds of all rows of a run.

    Returns the hard objective at its centroids, and for each cluster the inverse of its weight
    times the number of clusters."""
    at, k = replace(known, alpha=run.rows.alpha), len(run.theta)
    sums, found = one_pass(at, run.theta, -math.inf, want=("labels",))
    scale = run.rows.total_weight / known.total_weight
    masses = scale * known.weight_unit * np.bincount(found["labels"], known.weight, k)
    parts = masses * np.count_nonzero(masses)
    return [scale * sums.hard, np.divide(1, parts, out=np.zeros(k), where=parts > 0)]


def _improve_on_drawn(
    run: FeatureRun, expected: float, of_cluster: Array, count: int, patience: int
) -> None:
    """Swap centroids on so many rows that are drawn. A row is drawn by its part of the cost and its
    part of its cluster, and has the inverse of the probability as a weight. Of as many rows drawn
    uniformly next to none are far from others or of a small cluster, so that centroids fit those
    few alone."""
    rows, seed = run.rows, run.context.random.randint(2**31 - 1)
    rounding = float(np.finfo(rows.dtype).eps) * run.variance * rows.total_weight
    of_cost = 1 / max(expected, rounding, float(np.finfo(np.float64).tiny))

    def drawn_rows() -> list[Array]:
        """Rows and their probabilities."""
        visit = partial(_keyed, run.theta, of_cost, of_cluster, seed, count)
        index, [odds], threshold = rows.fold(visit, Reservoir.joined).sample().first(count)
        return [index, -np.expm1(-odds * threshold)]

    index, p = map(np.asarray, run.kept(drawn_rows))
    some = rows.take(index)
    weight = some.weight / p
    unit = weight_unit(weight)
    weight, unit = (weight / unit).astype(rows.dtype), unit * rows.weight_unit
    run.go_on(run.context.storage.sample(replace(some, weight=weight, weight_unit=unit)))
    improve(run, math.inf, patience, later=True)
    run.go_on(rows)


def _keyed(
    theta: Array, of_cost: float, of_cluster: Array, seed: int, count: int, block: Rows,
    before: Reservoir | None,
) -> Reservoir:  # fmt: skip
    """So many rows of a block and those before: each is drawn by its part of the cost and of its
    cluster."""
    kept = before or Reservoir(count)
    found = one_pass(block, theta, -math.inf, want=("labels", "nearest"))[1]
    odds = of_cost * found["nearest"].astype(np.float64) + of_cluster[found["labels"]]
    odds *= block.weight_unit  # which float32 may not hold
    odds *= block.weight
    kept.add(block.begin, row_keys(seed, block.begin, block.n, odds), [odds])
    return kept


class _Batches:
    """Swaps of batches of centroids."""

    def __init__(self, run: FeatureRun) -> None:
        self.run = run
        self._nearest: Array | None = None  # (n,): the cost of each row without its weight

    def cost(self) -> float:
        """The hard objective."""
        run = self.run
        if hard_plan(run.rows, run.most, run.objective.learns_weights).near:
            if run.assigned is None or run.assigned.cost is None:
                _, run.assigned = step(run.rows, run.theta, None, Need())
            self._nearest = run.assigned.own
            return run.cost(-math.inf)
        sums, outputs = one_pass(run.rows, run.theta, -math.inf, want=("nearest",))
        self._nearest = outputs["nearest"]
        return sums.hard + run.objective.penalty(run.rows.alpha, run.rows.total_weight)

    def swap(self, count: int, cost: float) -> float:
        """Swap `count` centroids; undo that if the cost is not lower than `cost`. Returns the
        cost."""
        run = self.run
        if self._nearest is None:  # where a checkpoint knew the cost
            self.cost()
        assert self._nearest is not None
        before = run.theta, run.rows, run.assigned, self._nearest
        _exchange(run, self._nearest, count)
        new = self.cost()
        if not new < cost:
            run.theta, run.rows, run.assigned, self._nearest = before
        return new


def _exchange(run: FeatureRun, nearest: Array, count: int) -> None:
    """Add `count` rows, drawn in proportion to their costs, as centroids, and remove as many
    centroids; passes follow both."""
    rows = run.rows
    share = nearest.astype(np.float64) * rows.weight
    count = min(count, int(np.count_nonzero(share)))
    places = run.context.random.choice(rows.n, count, replace=False, p=share / share.sum())
    run.theta = np.vstack([run.theta, features_at(rows, places, run.theta)])
    if run.assigned is not None:
        run.assigned = add(run.assigned, count)
    added = Stage("swap", -math.inf, 0.0, _BATCH_TOL, _PASSES_ADDED, exact=False, second=True)
    run.follow(added)
    run.theta = _without_cheapest(run, count)
    run.follow(Stage("swap", -math.inf, 0.0, _BATCH_TOL, _PASSES_REMOVED, exact=False))


def _without_cheapest(run: FeatureRun, count: int) -> Array:
    """The centroids without those `count` whose removal raises the objective least, if each row
    goes to its second nearest centroid. The one nearest to a removed one is kept if possible: it
    takes over most of the rows."""
    rows, theta = run.rows, run.theta
    labels, nearest, second = _two_nearest(run)
    raised = (second.astype(np.float64) - nearest) * rows.weight
    order = np.argsort(np.bincount(labels, raised, len(theta)), kind="stable")
    neighbour = _nearest_others(rows, theta)
    removed, kept = np.zeros((2, len(theta)), dtype=bool)
    left = count
    for j in order:
        if left and not kept[j]:
            removed[j] = kept[neighbour[j]] = True
            left -= 1
    removed[order[~removed[order]][:left]] = True
    if run.assigned is not None:
        run.assigned = remove(rows, theta, run.assigned, removed)
    return np.asarray(theta[~removed])


def _two_nearest(run: FeatureRun) -> tuple[Array, Array, Array]:
    """The labels of the rows, and the squared distances from the two nearest centroids."""
    found = run.assigned
    if found is not None and found.own is not None and found.other is not None:
        return found.labels, found.own, found.other
    _, outputs = one_pass(run.rows, run.theta, -math.inf, want=("labels", "nearest", "second"))
    return outputs["labels"], outputs["nearest"], outputs["second"]


def _nearest_others(rows: Rows, theta: Array) -> Array:
    """The index of the centroid that is nearest to each one, apart from itself. O(k^2 F)."""
    scaled = rows.scaled(theta)
    distances = (scaled**2).sum(axis=1) - 2 * (scaled @ scaled.T)  # without the own squared length
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances.argmin(axis=1))


def reach_far_rows(run: FeatureRun, stage: Stage, seen: Rows, converged: bool) -> bool:
    """Give rows that are far from all centroids centroids of their own where few rows cost much,
    more than the others of a sample that starts have `seen`. Passes of a stage follow. Returns
    whether the last ones that count have converged; those before did if `converged`."""

    def without_costliest() -> float:
        some = replace(seen, alpha=run.rows.alpha)
        nearest = one_pass(some, run.theta, -math.inf, want=("nearest",))[1]["nearest"]
        costs = np.sort(row_costs(nearest, some.weight, run.variance, some.dtype))
        return some.weight_unit * float(costs[:-_COSTLIEST].sum()) / some.total_weight

    assert run.last is not None
    if run.last.hard <= _LACKED * run.kept(without_costliest) * run.rows.total_weight:
        return converged
    cost = run.cost(stage.s)
    while True:
        before, (new, shift) = cost, run.kept(partial(_reach, run, stage, cost))
        if new < before:
            cost, converged = new, shift <= stage.tol
        if not new < (1 - _LEAST_REACHED) * before:
            return converged


def _reach(run: FeatureRun, stage: Stage, cost: float) -> list[float]:
    """Merge the centroids and up to as many of the costliest rows by Ward's method, and make
    passes; undo that if the cost is not lower than `cost`. Returns the cost and the last shift."""
    from rffpk.system.tree import means, merged

    rows, theta, before = run.rows, run.theta, (run.theta, run.rows)
    masses = one_pass(rows, theta, -math.inf)[0].G
    costs, far = costliest_rows(rows, theta, len(theta), run.variance)
    if not len(far):
        return [cost, 0.0]
    squares = euclidean_distances(rows.scaled(far), rows.scaled(theta), squared=True).min(axis=1)
    weight = np.divide(costs, squares, out=np.zeros_like(squares), where=squares > 0)
    masses = np.concatenate([masses, rows.weight_unit * weight])
    theta = np.vstack([theta, far])
    run.theta = means(theta, masses, merged(rows.scaled(theta), masses, len(run.theta)))
    last, new = run.follow(stage._replace(name="swap")).last, run.cost(stage.s)
    if not new < cost:
        run.theta, run.rows = before
    return [new, last.shift]


@dataclass(frozen=True)
class _Nearest:
    """Rows, and which centroids of a run are nearest to them."""

    rows: Rows
    weight: Array  # (n,), float64
    labels: Array
    nearest: Array  # (n,), the squared distances from the nearest centroids, ...
    second: Array  # ... and from the second nearest
    sums: Array  # (n,), the cumulative sums of the costs


def _nearest(run: FeatureRun) -> _Nearest:
    """The nearest centroids of some random rows, on which changes of the cost are estimated: O(k)
    memory for each."""
    rows, k = run.rows, len(run.theta)
    most = max(2 * k, min(_ROWS, _DISTANCES // k))
    if rows.n > most:
        if run.drawn is None:
            run.drawn = np.sort(run.context.random.randint(rows.n, size=most))
        rows = rows.take(run.drawn)
    _, outputs = one_pass(rows, run.theta, -math.inf, want=("labels", "nearest", "second"))
    weight = rows.weight.astype(np.float64)
    labels, nearest, second = (outputs[name] for name in ("labels", "nearest", "second"))
    return _Nearest(rows, weight, labels, nearest, second, (weight * nearest).cumsum())


def _swap(run: FeatureRun, known: _Nearest) -> bool:
    """Move the centroid whose removal raises the objective least to the one of a few rows, drawn as
    k-means++ draws them, that lowers it most. Returns False if no row is away from the
    centroids."""
    rows, weight = known.rows, known.weight
    if not known.sums[-1] > 0:
        return False
    places = draw(known.sums, _CANDIDATES, run.context.random)
    candidates = features_at(rows, places, run.theta)
    distances = one_pass(rows, candidates, -math.inf, want=("distances",))[1]["distances"]
    if rows.eta is not None:
        distances = rows.effective_distances(distances)
    # the candidate that lowers the cost most
    chosen = int(config.backend().costs_with(distances, known.nearest, weight).argmin())
    new = distances[:, chosen]
    raised = weight * (np.minimum(known.second, new) - np.minimum(known.nearest, new))
    costs = np.bincount(known.labels, raised, minlength=len(run.theta))
    theta = np.array(run.theta, dtype=np.float64)
    theta[int(costs.argmin())] = candidates[chosen]
    run.theta = theta
    return True

"""Several starts on a sample, swaps of centroids where the best one stands, then all rows.

No single start is safe: annealing from the critical exponent is best on most data and poor on
skewed ones, where k-means++ is good. So a few of each run on a sample, the best end is kept, and
single centroids are tried elsewhere: annealing moves all of them a little, a swap one of them far.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rffpk._annealing.primal import Record, Run
from rffpk._annealing.schedule import Result, Schedule, Start, Step, course
from rffpk._data.arrays import Array
from rffpk._data.passes import one_pass

# After a swap passes go on until the centroids rest, so many at most, and while the cost may still
# fall below that of before: by no more than _SWAP_HOPE times what the last pass gained.
_SWAP_REST, _SWAP_PASSES, _SWAP_HOPE = 1e-3, 8, 4.0
_SWAP_CANDIDATES, _SWAP_ROWS, _SWAP_NUMBERS = 5, 20_000, 2**24
_SWAP_TRIALS = 10  # a centroid, and the failures that end them
_SWAP_GAIN = 1e-5  # the least relative gain that counts


def search(
    starts: list[Start], seed: Callable[[], Array], new_run: Callable[[Array, int], Run], swaps: int
) -> tuple[Run, Result]:
    """The best run of all starts and its end, improved until `swaps` swaps in a row have failed
    if that is not 0.

    `seed` draws initial centroids, `new_run` makes a run of them.
    """
    runs: list[Run] = []
    ends: list[Result] = []
    costs: list[float] = []
    for number, start in enumerate(starts):
        run = new_run(seed(), number)
        end = run.follow(course(start, lambda: min(costs, default=math.inf), run.rows.dtype))
        runs.append(run)
        ends.append(end)
        costs.append(math.inf if end.dropped else _cost(run, start.schedule))
    kept = int(np.argmin(costs))
    run, end, schedule = runs[kept], ends[kept], starts[kept].schedule
    for record in map(_outcome, starts, runs, ends, costs):
        run.history.append(record | ({"outcome": "kept"} if record["start"] == kept else {}))
    if swaps:
        _swap(run, costs[kept], swaps)
        end.converged = run.settle("hard", -math.inf, schedule.tol, schedule.max_iter)
    if math.isinf(end.s):  # k-means has no soft exponent: that of the start that was annealed
        end.s = ends[-1].s
    return run, end


def _outcome(start: Start, run: Run, end: Result, cost: float) -> Record:
    return {
        "stage": "start",
        "start": run.start,
        "kind": start.kind,
        "rows": run.rows.n,
        "passes": run.passes,
        "objective": run.objective_unit * cost,
        "outcome": "dropped" if end.dropped else "lost",
    }


def _cost(run: Run, schedule: Schedule) -> float:
    """The objective at the end of a run, at one exponent for all: the final one, or the hard
    limit where each start ends at its own."""
    s = schedule.s_final if schedule.stop == "annealed" else -math.inf
    return one_pass(run.rows, run.theta, s)[0].objective(s) + run.penalty(run.rows)


def _swap(run: Run, best: float, patience: int) -> None:
    """Try centroids elsewhere until `patience` trials in a row have not lowered the cost `best`,
    or no row costs anything."""
    failed = 0
    for _ in range(patience + _SWAP_TRIALS * len(run.theta)):
        before = run.theta, run.rows
        if failed == patience or not _move_one(run):
            break
        cost = _trial(run, best)
        if cost < (1 - _SWAP_GAIN) * best:
            best, failed = cost, 0
        else:
            (run.theta, run.rows), failed = before, failed + 1


def _trial(run: Run, best: float) -> float:
    """A few passes, fewer where they will not reach `best`; returns the cost."""
    cost = math.inf
    for _ in range(_SWAP_PASSES):
        seen = run.step(Step("swap", -math.inf))
        gain, cost = cost - seen.objective, seen.objective
        if seen.shift <= _SWAP_REST or cost - best > _SWAP_HOPE * gain:
            break
    return one_pass(run.rows, run.theta, -math.inf)[0].floor + run.penalty(run.rows)


def _move_one(run: Run) -> bool:
    """Move the centroid that is missed least to one of a few costly rows, drawn as k-means++ does,
    that gains most; False if no row costs anything. O(k) memory for each row that is looked at."""
    rows, k = run.rows, len(run.theta)
    most = max(2 * k, min(_SWAP_ROWS, _SWAP_NUMBERS // k))
    if rows.n > most:
        rows = rows.take(np.sort(run.random.randint(rows.n, size=most)))
    _, outputs = one_pass(rows, run.theta, -math.inf, want=("distances", "labels"))
    distances, labels = rows.seen(outputs["distances"]), outputs["labels"]
    each = np.arange(rows.n)
    least = distances[each, labels].astype(np.float64)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight.astype(np.float64)
    share = weight * least
    if not share.any():
        return False
    places = run.random.choice(rows.n, _SWAP_CANDIDATES, p=share / share.sum())
    candidates = rows.take(places).features()
    to_candidates = one_pass(rows, candidates, -math.inf, want=("distances",))[1]["distances"]
    to_candidates = rows.seen(to_candidates)
    chosen = int((weight @ np.minimum(least[:, None], to_candidates)).argmin())
    new = to_candidates[:, chosen]
    distances[each, labels] = np.inf
    missed = weight * (np.minimum(distances.min(axis=1), new) - np.minimum(least, new))
    theta = np.array(run.theta, dtype=np.float64)
    theta[int(np.bincount(labels, missed, minlength=k).argmin())] = candidates[chosen]
    run.theta = theta
    return True

"""One search over starts, for features and for exact kernels.

No single start is best on all data: annealing from the critical exponent is best on most data sets
and poor on skewed ones, where k-means++ is good. So several are run, and the best result is kept.
"""

from __future__ import annotations

import math
from typing import Any, Generic, Protocol, TypeVar

from rffpk._annealing.history import History
from rffpk._annealing.schedule import Result, Stage, StageEnd, Start, course


class Run(Protocol):
    """The state of one start."""

    number: int
    passes: int

    @property
    def n_rows(self) -> int: ...

    def cost(self, s: float) -> float:
        """The objective at the current centroids."""


R = TypeVar("R", bound=Run)


class Space(Protocol[R]):
    """What all starts of a search share: the rows or kernels, and the history."""

    lockstep: bool  # whether starts advance together, not one after the other
    history: History

    @property
    def dtype(self) -> Any: ...

    def begin(self, numbers: list[int]) -> list[R]:
        """Runs of the starts with these numbers, at their initial centroids."""

    def advance(self, runs: list[R], stages: list[Stage]) -> list[StageEnd | None]:
        """One step of each run, or several; None if its stage is not over."""


class Search(Generic[R]):
    """The starts of a search, with the results of those that have ended."""

    def __init__(self, space: Space[R], starts: list[Start]) -> None:
        self.space, self.starts = space, starts
        self.runs: dict[int, R] = {}  # that go on, and the best of those that have ended
        self.visits: dict[int, tuple[int, int]] = {}  # the rows and the passes of each
        self.ends: dict[int, Result] = {}
        self.costs: dict[int, float] = {}

    def best_cost(self) -> float:
        """The least cost at which a start has ended so far."""
        return min(self.costs.values(), default=math.inf)

    def run(self) -> tuple[R, Result]:
        """Run all starts to their ends; return the best run, the first of equals, and its end."""
        numbers, history = list(range(len(self.starts))), self.space.history
        if history.progress is not None:
            history.progress.n_starts = len(numbers)
        for group in [numbers] if self.space.lockstep else [[number] for number in numbers]:
            self.runs |= zip(group, self.space.begin(group))
            self._follow(group)
            kept = min(self.costs, key=lambda number: (self.costs[number], number))
            self.runs = {kept: self.runs[kept]}
        history.keep(kept)
        for number, start in enumerate(self.starts):
            end, cost = self.ends[number], self.costs[number]
            history.add_end(start, number, *self.visits[number], cost, end, number == kept)
        end = self.ends[kept]
        if math.isinf(end.s):  # plain k-means: the exponent of the last start, as far as it came
            end.s = self.ends[numbers[-1]].s
        return self.runs[kept], end

    def _follow(self, group: list[int]) -> None:
        """Advance all starts of a group together until each has ended."""
        courses = {n: course(self.starts[n], self.best_cost, self.space.dtype) for n in group}
        stages: dict[int, Stage] = {}

        def send(number: int, result: StageEnd | None) -> None:
            try:
                stages[number] = courses[number].send(result)  # type: ignore[arg-type]
            except StopIteration as end:
                stages.pop(number, None)
                self._end(number, end.value)

        for number in group:
            send(number, None)
        while stages:
            active = list(stages)
            ends = self.space.advance([self.runs[n] for n in active], [*stages.values()])
            for number, end in zip(active, ends):
                if end is not None:
                    send(number, end)

    def _end(self, number: int, end: Result) -> None:
        """Starts are compared by the objective at one exponent: the final one, or the hard limit
        if each start may end at a different exponent."""
        schedule = self.starts[number].schedule
        s = schedule.s_final if schedule.stop == "annealed" else -math.inf
        self.ends[number] = end
        if self.space.history.progress is not None:
            self.space.history.progress.start_ended()
        run = self.runs[number]
        self.costs[number] = math.inf if end.dropped else run.cost(s)
        self.visits[number] = run.n_rows, run.passes


def search(space: Space[R], starts: list[Start]) -> tuple[R, Result, float]:
    """The best of all starts: its run, its end, and its cost."""
    results = Search(space, starts)
    run, end = results.run()
    return run, end, results.costs[run.number]

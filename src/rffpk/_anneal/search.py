"""One search over starts, for features and for exact kernels, and what the steps of a fit share.

No single start is best on all data: annealing from the critical exponent is best on most data sets
and poor on skewed ones, where k-means++ is good. So several are run, and the best result is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rffpk._anneal.checkpoint import Checkpoint
from rffpk._anneal.convergence_warnings import Cause
from rffpk._anneal.schedule import Stage, StageEnd, Start, StartEnd, stages_of
from rffpk._rows.store import Storage
from rffpk._rows.sums import Step
from rffpk._utils.arrays import Array
from rffpk._utils.progress import Progress


@dataclass
class History:
    """The records of a fit: one for each pass, for each seeding, and for the end of each start."""

    records: list[dict[str, Any]] = field(default_factory=list)
    progress: Progress | None = None
    unit: float = 1.0  # objectives are multiplied by it when they are reported, ...
    left_out: float = 0.0  # ... after this part is added, of features that the search leaves out

    def add_seeding(self, rows: int) -> None:
        """Record that initial centroids were chosen from `rows` rows."""
        self.records.append({"stage": "seeding", "rows": rows})

    def add_step(
        self, stage: Stage, step: Step, start: int, rows: int, alpha: Array,
        parts: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Record a step of a start over `rows` rows with the view weights alpha, with `parts` of
        the seconds that it took, and report it."""
        record: dict[str, Any] = {
            "stage": stage.name,
            "start": start,
            "kept": True,
            "rows": rows,
            "s": stage.s,
            "objective": self.unit * (step.objective + self.left_out),
            "shift": step.shift,
            "distinct": step.distinct,
            "repairs": step.repairs,
            "kernel_weights": alpha,
            "seconds": step.seconds,
        }
        record |= parts or {}
        self.records.append(record)
        if self.progress is not None:
            self.progress.passed(record)

    def restore(self, records: list[dict[str, Any]]) -> None:
        """Set records that were written as JSON."""
        self.records[:] = records
        for record in self.records:
            if "kernel_weights" in record:
                record["kernel_weights"] = np.array(record["kernel_weights"])

    def keep(self, kept: int) -> None:
        """Say of the passes so far whether they are those of this start."""
        for record in self.records:
            if "kept" in record:
                record["kept"] = record["start"] == kept


@dataclass
class FitContext:
    """What the steps of one fit share."""

    random: Any
    history: History = field(default_factory=History)
    n_threads: int = 1
    k: int = 0  # the number of clusters, checked
    storage: Storage = field(default_factory=lambda: Storage("auto", None))  # of features
    checkpoint: Checkpoint | None = None
    # why centroids of the rows may coincide, and what a warning calls the rows
    causes: list[Cause] = field(default_factory=list)
    rows_name: str = "X"
    # (L,), the share of the rows that has each view; None: all have all
    coverage: NDArray[np.float64] | None = None
    noise_threshold: float | None = None  # rows of less typicality get the label -1
    store_memberships: bool = False
    labels: list[Array] | None = None  # of all rows, block by block; None: they are not kept
    write_labels: Callable[[Array], Any] | None = None

    def take_labels(self, labels: Array) -> None:
        """Keep the labels of the next rows, write them, or both."""
        if self.labels is not None:
            self.labels.append(labels)
        if self.write_labels is not None:
            self.write_labels(labels)


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
    """What all starts of a search share: the rows or kernels, and the context of the fit."""

    lockstep: bool  # whether starts advance together, not one after the other
    context: FitContext

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
        self.ends: dict[int, StartEnd] = {}
        self.costs: dict[int, float] = {}

    def best_cost(self) -> float:
        """The least cost at which a start has ended so far."""
        return min(self.costs.values(), default=math.inf)

    def run(self) -> tuple[R, StartEnd]:
        """Run all starts to their ends; return the best run, the first of equals, and its end."""
        numbers, history = list(range(len(self.starts))), self.space.context.history
        if history.progress is not None:
            history.progress.n_starts = len(numbers)
        for group in [numbers] if self.space.lockstep else [[number] for number in numbers]:
            self.runs |= zip(group, self.space.begin(group))
            self._follow(group)
            kept = min(self.costs, key=lambda number: (self.costs[number], number))
            self.runs = {kept: self.runs[kept]}
        history.keep(kept)
        history.records += [self._record(number, number == kept) for number in numbers]
        end = self.ends[kept]
        if math.isinf(end.s):  # plain k-means: the exponent of the last start, as far as it came
            end.s = self.ends[numbers[-1]].s
        return self.runs[kept], end

    def _record(self, number: int, kept: bool) -> dict[str, Any]:
        """The record of the end of a start, with the cost by which starts are compared."""
        history, (rows, passes) = self.space.context.history, self.visits[number]
        lost = "dropped" if self.ends[number].dropped else "lost"
        return {
            "stage": "start",
            "start": number,
            "kind": self.starts[number].kind,
            "rows": rows,
            "passes": passes,
            "objective": history.unit * (self.costs[number] + history.left_out),
            "outcome": "kept" if kept else lost,
        }

    def _follow(self, group: list[int]) -> None:
        """Advance all starts of a group together until each has ended."""
        given = {n: stages_of(self.starts[n], self.best_cost, self.space.dtype) for n in group}
        current: dict[int, Stage] = {}

        def send(number: int, result: StageEnd | None) -> None:
            try:
                current[number] = given[number].send(result)  # type: ignore[arg-type]
            except StopIteration as end:
                current.pop(number, None)
                self._end(number, end.value)

        for number in group:
            send(number, None)
        while current:
            active = list(current)
            ends = self.space.advance([self.runs[n] for n in active], [*current.values()])
            for number, end in zip(active, ends):
                if end is not None:
                    send(number, end)

    def _end(self, number: int, end: StartEnd) -> None:
        """Starts are compared by the objective at one exponent: the final one, or the hard limit
        if each start may end at a different exponent."""
        schedule = self.starts[number].schedule
        s = schedule.s_final if schedule.stop == "annealed" else -math.inf
        self.ends[number] = end
        if self.space.context.history.progress is not None:
            self.space.context.history.progress.start_ended()
        run = self.runs[number]
        self.costs[number] = math.inf if end.dropped else run.cost(s)
        self.visits[number] = run.n_rows, run.passes


def search(space: Space[R], starts: list[Start]) -> tuple[R, StartEnd, float]:
    """The best of all starts: its run, its end, and its cost."""
    results = Search(space, starts)
    run, end = results.run()
    return run, end, results.costs[run.number]

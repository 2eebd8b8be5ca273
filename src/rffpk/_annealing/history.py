"""The records of a fit: one for each pass, for each seeding, and for the end of each start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rffpk._annealing.schedule import Result, Stage, Start, StepResult
from rffpk._data.arrays import Array
from rffpk._data.progress import Progress

Record = dict[str, Any]


@dataclass
class History:
    """The records of all runs of one fit."""

    records: list[Record]
    progress: Progress | None = None
    unit: float = 1.0  # objectives are multiplied by it when they are reported, ...
    left_out: float = 0.0  # ... after this part is added, of features that the search leaves out

    def add_seeding(self, rows: int) -> None:
        """Record that initial centroids were chosen from `rows` rows."""
        self.records.append({"stage": "seeding", "rows": rows})

    def add_step(
        self, stage: Stage, result: StepResult, start: int, rows: int, alpha: Array, seconds: float,
        parts: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        """Record one pass of a start over `rows` rows, with `parts` of the seconds that it took,
        and report it."""
        record: Record = {
            "stage": stage.name,
            "start": start,
            "kept": True,
            "rows": rows,
            "s": stage.s,
            "objective": self.unit * (result.objective + self.left_out),
            "shift": result.shift,
            "distinct": result.distinct,
            "repairs": result.repairs,
            "kernel_weights": alpha,
            "seconds": seconds,
        }
        record |= parts or {}
        self.records.append(record)
        if self.progress is not None:
            self.progress.passed(record)

    def keep(self, kept: int) -> None:
        """Mark the passes so far of all other starts than this one."""
        for record in self.records:
            if "kept" in record:
                record["kept"] = record["start"] == kept

    def add_end(
        self, start: Start, number: int, rows: int, passes: int, cost: float, end: Result,
        kept: bool,
    ) -> None:  # fmt: skip
        """Record the end of a start, with the cost by which starts are compared."""
        outcome = "kept" if kept else "dropped" if end.dropped else "lost"
        self.records.append(
            {
                "stage": "start",
                "start": number,
                "kind": start.kind,
                "rows": rows,
                "passes": passes,
                "objective": self.unit * (cost + self.left_out),
                "outcome": outcome,
            }
        )

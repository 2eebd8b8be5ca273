"""The records of a fit: one for each pass, each seeding, and the end of each start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rffpk._annealing.schedule import Result, Start, Step, StepResult
from rffpk._data.arrays import Array

Record = dict[str, Any]


@dataclass
class History:
    """Where the runs of one fit leave their records."""

    records: list[Record]
    verbose: int = 0
    unit: float = 1.0  # objectives are reported in multiples of it

    def add_seeding(self, rows: int) -> None:
        """Initial centroids were chosen among so many rows."""
        self.records.append({"stage": "seeding", "rows": rows})

    def add_step(
        self, step: Step, result: StepResult, start: int, rows: int, alpha: Array, seconds: float
    ) -> None:
        """One pass of a start over so many rows, printed if that was asked for."""
        record: Record = {
            "stage": step.stage,
            "start": start,
            "rows": rows,
            "s": step.s,
            "objective": self.unit * result.objective,
            "shift": result.shift,
            "distinct": result.distinct,
            "repairs": result.repairs,
            "seconds": seconds,
        }
        if len(alpha) > 1:
            record["kernel_weights"] = alpha
        self.records.append(record)
        if self.verbose:
            print(
                f"[{step.stage}] rows={rows} s={step.s:.4g} objective={record['objective']:.8g} "
                f"shift={result.shift:.2e} distinct={result.distinct} repairs={result.repairs}"
            )

    def add_end(
        self, start: Start, number: int, rows: int, passes: int, cost: float, end: Result,
        kept: bool,
    ) -> None:  # fmt: skip
        """The end of a start, at the cost that starts are compared by."""
        outcome = "kept" if kept else "dropped" if end.dropped else "lost"
        self.records.append(
            {
                "stage": "start",
                "start": number,
                "kind": start.kind,
                "rows": rows,
                "passes": passes,
                "objective": self.unit * cost,
                "outcome": outcome,
            }
        )

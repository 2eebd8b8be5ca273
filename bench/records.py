"""Results in files of JSON lines: measurements append to them, reports read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        print(json.dumps(record), file=file)


def read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def resume(path: Path) -> list[Record]:
    """The records of an earlier run, if there are any."""
    return read(path) if path.exists() else []


def by_method(path: Path, *keys: str) -> dict[tuple[Any, ...], dict[str, Record]]:
    """Records by the values of the keys, then by method; of several records the last counts."""
    table: dict[tuple[Any, ...], dict[str, Record]] = {}
    for record in read(path):
        key = tuple(record[name] for name in keys)
        table.setdefault(key, {})[record["method"]] = record
    return table

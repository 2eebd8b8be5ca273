"""Results in files of JSON lines: what measures appends them, what reports reads them."""

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
    """What an earlier run left, or nothing."""
    return read(path) if path.exists() else []


def by_method(path: Path, *keys: str) -> dict[tuple[Any, ...], dict[str, Record]]:
    """Records by the values of the keys, then by method; the last of equals counts."""
    table: dict[tuple[Any, ...], dict[str, Record]] = {}
    for record in read(path):
        key = tuple(record[name] for name in keys)
        table.setdefault(key, {})[record["method"]] = record
    return table

"""Keep results in files of JSON lines: measurements append to them, reports read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """Append a result to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        print(json.dumps(record), file=file)


def read(path: Path) -> list[Record]:
    """Read the results of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def known(path: Path, *keys: str) -> set[tuple[Any, ...]]:
    """Return the values of the keys of all results of an earlier run."""
    return {tuple(r[key] for key in keys) for r in read(path)} if path.exists() else set()


def by_method(path: Path, *keys: str) -> dict[tuple[Any, ...], dict[str, Record]]:
    """Group results by the values of the keys, then by method; the last result counts."""
    table: dict[tuple[Any, ...], dict[str, Record]] = {}
    for record in read(path):
        key = tuple(record[name] for name in keys)
        table.setdefault(key, {})[record["method"]] = record
    return table

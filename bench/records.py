"""Keep results in files of JSON lines: measurements append to them, reports read them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def append(path: Path, record: Record) -> None:
    """Append a result to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        print(json.dumps(record), file=file)


def read(path: Path) -> list[Record]:
    """Read the results of a file; it need not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def add(path: Path, key: Record, measure: Callable[..., Record], *args: Any) -> None:
    """Measure, append the key and the result, and print both, unless the file has the key.

    So an interrupted command continues. There is no result where a package is missing.
    """
    if any(key.items() <= record.items() for record in read(path)):
        return
    try:
        record = key | measure(*args)
    except ImportError as missing:
        print(*key.values(), f"left out: {missing}", file=sys.stderr, flush=True)
    else:
        append(path, record)
        print(*record.values(), file=sys.stderr, flush=True)


def by_method(path: Path, *keys: str) -> dict[tuple[Any, ...], dict[str, Record]]:
    """Group results by the values of the keys, then by method; the last result counts."""
    table: dict[tuple[Any, ...], dict[str, Record]] = {}
    for record in read(path):
        key = tuple(record[name] for name in keys)
        table.setdefault(key, {})[record["method"]] = record
    return table

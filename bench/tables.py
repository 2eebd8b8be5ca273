"""Printing of Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def heading(columns: Sequence[object]) -> str:
    return f"{line(columns)}\n{'|---' * len(columns)}|"


def markdown(columns: Sequence[object], rows: Iterable[Iterable[object]]) -> str:
    return "\n".join([heading(columns), *map(line, rows)])


def print_heading(*columns: object) -> None:
    print(heading(columns), flush=True)


def print_row(*cells: object) -> None:
    """Print a row without buffering, so that a table that takes hours shows its progress."""
    print(line(cells), flush=True)

"""Print Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def line(cells: Iterable[object]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def heading(columns: Sequence[object]) -> str:
    """Return the first two lines of a table."""
    return f"{line(columns)}\n{'|---' * len(columns)}|"


def markdown(columns: Sequence[object], rows: Iterable[Iterable[object]]) -> str:
    """Return a table."""
    return "\n".join([heading(columns), *map(line, rows)])


def print_heading(*columns: object) -> None:
    """Print the first two lines of a table."""
    print(heading(columns), flush=True)


def print_row(*cells: object) -> None:
    """Print a row without buffering, so that a table that takes hours shows its progress."""
    print(line(cells), flush=True)


def cells(values: Iterable[float], spec: str = ".3f") -> list[str]:
    """Return numbers as text; None becomes an empty cell."""
    return ["" if value is None else format(value, spec) for value in values]

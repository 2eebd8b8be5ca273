"""Matrices cut into tiles of fixed sizes, and functions applied to the tiles by threads.

The bits of the results do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rffpk import _core
from rffpk.system.tuning import TUNING

Array = NDArray[Any]


def row_tiles(n: int, width: int, numbers: int | None = None, step: int = 1) -> list[slice]:
    """Cut n rows into slices, so that a slice has about `numbers` entries.

    `width` is the number of entries of a row. Except for the last, a slice has a multiple of `step`
    rows."""
    size = step * max(1, (numbers or TUNING.tiles.row_numbers) // max(1, width))
    # scikit-learn's `gen_batches` checks its arguments for half a millisecond
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def tiles(n: int, n_columns: int) -> list[tuple[slice, slice]]:
    """Return (rows, columns) of the tiles of a matrix, ordered by rows and then by columns."""
    columns = row_tiles(n_columns, 1, TUNING.tiles.kernel_columns)
    return [(rows, part) for rows in row_tiles(n, 1, TUNING.tiles.kernel_rows) for part in columns]


def run_all(function: Callable[[Any], Any], items: list[Any], n_threads: int) -> list[Any]:
    """Apply a function to all items on threads; return the results in the order of the items."""
    if n_threads == 1 or len(items) == 1:
        return [function(item) for item in items]
    return _core.call_all(function, items, n_threads)


def by_blocks(
    function: Callable[[list[Any]], Array], xs: list[Any], width: int, n_threads: int
) -> Array:
    """Apply `function` to blocks of rows, and return its results, one line for each row.

    `xs` has the rows of each view. `function` maps them to a matrix with about `width` columns. The
    bits of a line do not depend on other rows. Matrix products round differently for different
    shapes, so all blocks have one shape, and copies of the last row fill the last block. A block
    has at most as many rows as columns, because there may be few new rows where few rows were
    fitted."""
    size = block_rows(width)

    def lines(rows: slice) -> Array:
        index = np.minimum(np.arange(rows.start, rows.start + size), rows.stop - 1)
        return function([x[index] for x in xs])[: rows.stop - rows.start]

    return np.concatenate(run_all(lines, row_tiles(len(xs[0]), 1, size), n_threads))


def block_rows(width: int) -> int:
    """Return the number of rows of a block in `by_blocks`, for results of `width` columns."""
    step, width, tuning = 32, max(1, width), TUNING.tiles  # BLAS cuts rows into parts of 32
    most = min(tuning.block_numbers // width, -(-width // step) * step, tuning.block_rows)
    return max(most // step * step, step)

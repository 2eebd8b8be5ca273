"""Matrices cut into tiles of fixed sizes, and functions applied to the tiles by threads. The bits
of the results do not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rffpk import _core
from rffpk.rows.arrays import Array
from rffpk.rows.table import Columns, Csr

# Numbers in a tile of rows, 8 MB in float64: a few tiles for each thread take little memory
# compared with the rows, and products with them run at full rate.
ROW_NUMBERS = 1 << 20

# A block of `by_blocks`: a single row costs as much as a block, about a millisecond.
_BLOCK_NUMBERS = 1 << 17  # numbers in a block, at most
_MOST_BLOCK_ROWS = 512  # rows in a block, at most
_LEAST_BLOCK_ROWS = 32  # rows are a multiple of this, as are the parts into which BLAS cuts them

# Tiles of a kernel that is recomputed: terms of single rows and columns cost little compared with
# the tile itself, and its 2 MB stay in a core's cache.
_ROWS = 256  # of a tile
_COLUMNS = 1024  # of a tile


def row_tiles(n: int, width: int, numbers: int | None = None, step: int = 1) -> list[slice]:
    """Slices of n rows, each with about `numbers` numbers in steps of so many rows, which have
    `width`; at least one step."""
    size = step * max(1, (numbers or ROW_NUMBERS) // max(1, width))
    # scikit-learn's `gen_batches` checks its arguments for half a millisecond
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def tiles(n: int, n_columns: int) -> list[tuple[slice, slice]]:
    """(rows, columns) of the tiles of a matrix, ordered by rows and then by columns."""
    columns = row_tiles(n_columns, 1, _COLUMNS)
    return [(rows, part) for rows in row_tiles(n, 1, _ROWS) for part in columns]


def run_all(function: Callable[[Any], Any], items: list[Any], n_threads: int) -> list[Any]:
    """[function(item) for item in items], by threads."""
    if n_threads == 1 or len(items) == 1:
        return [function(item) for item in items]
    return _core.call_all(function, items, n_threads)


def by_blocks(
    function: Callable[[list[Any]], Array], xs: list[Columns], width: int, n_threads: int
) -> Array:
    """The results of `function`, one line for each row, for rows with views `xs` that it maps to
    matrices of about `width` columns.

    A line has the same bits whatever other rows there are: products of matrices round differently
    for different shapes, so all blocks have one shape, the last one filled with copies of its last
    row. It has not more rows than columns, as new rows may be few where fitted ones are.
    """
    size = _block_rows(width)

    def lines(rows: slice) -> Array:
        index = np.minimum(np.arange(rows.start, rows.start + size), rows.stop - 1)
        return function([x[index] for x in xs])[: rows.stop - rows.start]

    return np.concatenate(run_all(lines, row_tiles(len(xs[0]), 1, size), n_threads))


def centered_product(
    X: Columns, origin: Array, matrix: Array, n_threads: int,
    finish: Callable[[Array], Array] = np.asarray,
) -> Array:  # fmt: skip
    """`finish` of the lines of (X - origin) @ matrix, in the dtype of X, a line with the same bits
    whatever other rows there are: blocks as in `by_blocks`, many in one call, are a stack of
    matrices, which BLAS multiplies one by one."""
    (n, d), size = X.shape, _block_rows(X.shape[1])
    found = np.empty((n, matrix.shape[1]), dtype=X.dtype)

    def write(rows: slice) -> None:
        x = X[rows]
        if isinstance(x, Csr):  # a line at a time
            found[rows] = finish(x.astype(np.float64).matrix @ matrix - origin @ matrix)
            return
        x = x - origin
        if len(x) % size:  # of the last rows
            x = np.concatenate([x, x[-1:].repeat(-len(x) % size, axis=0)])
        lines = (x.reshape(-1, size, d) @ matrix).reshape(len(x), -1)
        found[rows] = finish(lines[: rows.stop - rows.start])

    def quietly(rows: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # of each thread; callers refuse these
            write(rows)

    run_all(quietly, row_tiles(n, size * d, _BLOCK_NUMBERS, size), n_threads)
    return found


def _block_rows(width: int) -> int:
    """The number of rows of a block, for rows that are mapped to matrices of so many columns."""
    step, width = _LEAST_BLOCK_ROWS, max(1, width)
    most = min(_BLOCK_NUMBERS // width, -(-width // step) * step, _MOST_BLOCK_ROWS)
    return max(most // step * step, step)

"""Sources: rows that do not fit into memory, for the `fit` and `predict` of the estimators.

A source is a function without arguments that returns a new iterator of blocks, arrays of
consecutive rows with the same columns, in the same order whenever it is called. The functions below
make sources from what rows are often stored in; any other function with this property is one, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

import numpy as np

from rffpk.rows import checks
from rffpk.rows.arrays import Array
from rffpk.rows.containers import are_numbers
from rffpk.rows.dask_collections import source_of
from rffpk.rows.source import Source, block_rows
from rffpk.system.files import arrow_module, files_of, path_of, whole_file, write_header
from rffpk.system.tuning import TUNING

__all__ = ["from_array", "from_arrow", "from_dask", "from_npy", "from_parquet", "spill"]

T = TypeVar("T")

_Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def from_array(X: Any, *, block_rows: int = 1 << 16) -> Callable[[], Iterator[Any]]:
    """Return the source of rows in an object whose slices are arrays.

    Such objects are memory maps, HDF5 datasets and Zarr arrays.

    Parameters
    ----------
    X : object of shape (n_samples, n_features)
        ``X[i:j]`` gives the rows i to j - 1.
    block_rows : int, default=65536
        Number of rows in a block, at least 1.

    Returns
    -------
    source : callable
        Returns an iterator of the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from rffpk.sources import from_array
    >>> [block.shape for block in from_array(np.zeros((5, 2)), block_rows=3)()]
    [(3, 2), (2, 2)]
    """
    checks.check_int(block_rows, "block_rows", 1)
    if len(getattr(X, "shape", ())) != 2:
        raise ValueError("X must have a shape of two numbers, (n_samples, n_features).")

    def blocks() -> Iterator[Any]:
        return (X[i : i + block_rows] for i in range(0, X.shape[0], block_rows))

    return _fresh(blocks, files_of(X))


def from_npy(paths: _Paths) -> Callable[[], Iterator[Array]]:
    """Return the source of rows in .npy files, which are read, not mapped into memory.

    Parameters
    ----------
    paths : path, or list of paths
        Files of two-dimensional arrays of numbers in C order, with equal numbers of columns, whose
        rows follow each other.

    Returns
    -------
    source : callable
        Returns an iterator of blocks of some megabytes, in the type of the files.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a file does not hold such an array, or is shorter than it says.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from rffpk.sources import from_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.arange(6.0).reshape(3, 2))
    ...     print(*from_npy(f"{folder}/rows.npy")())
    [[0. 1.]
     [2. 3.]
     [4. 5.]]
    """
    names = _names(paths)
    if not names:
        raise ValueError("paths is empty, must name at least one file.")
    widths = {name: _opened(name)[1][1] for name in names}
    if len({*widths.values()}) > 1:
        raise ValueError(f"the files have different numbers of columns: {widths}.")

    def blocks() -> Iterator[Array]:
        for name in names:
            dtype, (n, d), begin = _opened(name)
            # an empty block tells how many bytes a row has
            step = block_rows([np.empty((0, d), dtype=dtype)])
            for first in range(0, n, step):
                m = min(step, n - first)
                block = np.fromfile(name, dtype, m * d, offset=begin + first * d * dtype.itemsize)
                yield block.reshape(m, d)

    return _fresh(blocks, names)


def _fresh(
    blocks: Callable[[], Iterator[T]], files: Sequence[str] = ()
) -> Callable[[], Iterator[T]]:
    """Mark a source whose blocks need no copy, as they do not change, and name its files."""
    blocks.fresh, blocks.files = True, files  # type: ignore[attr-defined]
    return blocks


def _names(paths: _Paths) -> list[str]:
    if isinstance(paths, (str, bytes, os.PathLike)) or not isinstance(paths, Iterable):
        return [path_of(paths, "paths", "a path or a list of paths")]
    return [path_of(path, f"paths[{i}]") for i, path in enumerate(paths)]


def _opened(name: str) -> tuple[np.dtype[Any], tuple[int, int], int]:
    """Return the type and shape of the array in a .npy file, and where its numbers begin."""
    try:
        table = np.lib.format.open_memmap(name, mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(f"{name} is not a .npy file that can be read: {error}.") from error
    order = "" if table.flags.c_contiguous else ", in Fortran order"
    if table.ndim != 2 or not table.shape[1] or order or table.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} has an array of shape {table.shape} of {table.dtype}{order}; must have rows "
            "of numbers in C order."
        )
    return table.dtype, table.shape, table.offset


def from_parquet(
    paths: _Paths, *, columns: Sequence[str] | None = None, dtype: Any = np.float64
) -> Callable[[], Iterator[Array]]:
    """Return the source of rows in Parquet files, by pyarrow's datasets.

    Parameters
    ----------
    paths : path, or list of paths
        A file, a folder of files, or files in the order of their rows.
    columns : list of str, optional
        Columns to read, by default all. They must be numbers without missing values.
    dtype : {numpy.float64, numpy.float32}
        Type of the blocks.

    Returns
    -------
    source : callable
        Returns an iterator of the blocks.

    Raises
    ------
    ImportError
        If pyarrow is not installed.

    Notes
    -----
    Decoding and transposing columns takes about as long as a pass; `spill` saves that time where
    several passes are made.
    """
    dataset = arrow_module("pyarrow.dataset")
    names = _names(paths)  # one name may be that of a folder
    files = dataset.dataset(names[0] if len(names) == 1 else names, format="parquet")
    return from_arrow(files, columns=columns, dtype=dtype)


def from_arrow(
    data: Any, *, columns: Sequence[str] | None = None, dtype: Any = np.float64
) -> Callable[[], Iterator[Array]]:
    """Return the source of rows in a dataset or table of Arrow.

    Parameters
    ----------
    data : pyarrow.dataset.Dataset, or any object with ``__arrow_c_stream__``
        Such as a pyarrow.Table, a polars.DataFrame or a relation of DuckDB, which can give its rows
        as often as it is asked.
    columns : list of str, optional
        Columns to take, by default all. They must be numbers without missing values.
    dtype : {numpy.float64, numpy.float32}
        Type of the blocks.

    Returns
    -------
    source : callable
        Returns an iterator of the blocks.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    TypeError
        If `data` is not such an object.
    """
    arrow = arrow_module()
    dtype = np.dtype(dtype)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype={dtype}: must be float32 or float64.")
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: must be a list of names.")
    if not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "scanner"):
        raise TypeError(
            f"data is of type {type(data).__name__}, must be a dataset of pyarrow, or have "
            "__arrow_c_stream__."
        )
    if isinstance(data, arrow.RecordBatchReader):
        raise TypeError("data is a RecordBatchReader, which can be read only once: pass a dataset.")
    names = None if columns is None else list(columns)

    def blocks() -> Iterator[Array]:
        if hasattr(data, "scanner"):  # a dataset
            batches = data.to_batches(columns=names, batch_size=TUNING.tiles.arrow_rows)
        else:
            batches = arrow.RecordBatchReader.from_stream(data)
        for batch in batches:
            if batch.num_rows:
                yield _block(batch if names is None else batch.select(names), dtype)

    return _fresh(blocks, files_of(data))


def _block(batch: Any, dtype: np.dtype[Any]) -> Array:
    """Return the columns of a batch side by side. Refuse gaps, words and categories."""
    block = np.empty((batch.num_rows, batch.num_columns), dtype=dtype)
    for j, (name, column) in enumerate(zip(batch.schema.names, batch.columns)):
        if column.null_count:
            raise ValueError(f"column {name!r} has missing values, which are not supported.")
        nominal = str(column.type).startswith("dictionary")
        values = np.empty(0, object) if nominal else column.to_numpy(zero_copy_only=False)
        if nominal or not are_numbers(values):
            raise ValueError(f"column {name!r} has {column.type}, must have numbers.")
        block[:, j] = values
    return block


def from_dask(X: Any) -> Callable[[], Iterator[Any]]:
    """Return the source of rows in a Dask array or frame, computed partition by partition.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        An array of one chunk of columns, or a frame of numbers.

    Returns
    -------
    source : callable
        Returns an iterator of the partitions.

    Raises
    ------
    TypeError
        If X is not such a collection.
    """
    if not hasattr(X, "to_delayed"):
        raise TypeError(f"X is of type {type(X).__name__}, must be an array or frame of Dask.")
    try:
        source: Callable[[], Iterator[Any]] = source_of(X)
    except ValueError as error:
        raise TypeError(str(error)) from error
    return source


def spill(source: Source, path: str | os.PathLike[str]) -> Callable[[], Iterator[Array]]:
    """Write the rows of a source to a .npy file, and return the source of that file.

    Parameters
    ----------
    source : callable
        A source, which is read once.
    path : path
        The file, which ends in .npy. It is there once it is complete; one that is there already is
        replaced.

    Returns
    -------
    source : callable
        What `from_npy` returns for the file.

    Raises
    ------
    ValueError
        If the source gives no rows, or blocks of different numbers of columns.
    """
    name = path_of(path, "path")
    if Path(name).suffix.lower() != ".npy":
        raise ValueError(f"path={name!r}: must end in .npy.")
    with whole_file(name) as file:
        _write_rows(source, file)
    return from_npy(name)


def _write_rows(source: Source, file: BinaryIO) -> None:
    """Check the blocks of a source and write them in .npy format.

    The header is written again at the end, when the number of rows is known. The file is of float32
    if the first block is, else of float64."""
    if not callable(source):
        raise TypeError(
            f"source is of type {type(source).__name__}. Pass a function that returns an iterator "
            "of blocks, such as from_array(X)."
        )
    n, d = 0, 0
    dtype: np.dtype[Any] = np.dtype(np.float64)
    for block in source():
        checks.check_plain(block, "source")
        rows = np.asarray(block)
        if rows.dtype.kind not in "fiub":
            raise ValueError(f"source gave a block of {rows.dtype}, must give numbers.")
        if not len(rows):
            continue
        if rows.ndim != 2 or (n and rows.shape[1] != d):
            raise ValueError(f"source gave a block of shape {rows.shape}, must be (rows, {d}).")
        if not n:
            d = rows.shape[1]
            dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
            write_header(file, (0, d), dtype.str)
        file.write(np.ascontiguousarray(rows, dtype=dtype).tobytes())
        n += len(rows)
    if not n:
        raise ValueError("source gave no rows.")
    file.seek(0)
    write_header(file, (n, d), dtype.str)

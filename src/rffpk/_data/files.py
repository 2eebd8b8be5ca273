"""Tables in files for the command line: they are read by name, and written whole or not at all."""

from __future__ import annotations

import importlib
import io
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rffpk._data.arrays import Array

STANDARD = "-"  # standard input or output, as CSV
FORMATS = (".csv", ".npy", ".npz", ".parquet")


class TableError(ValueError):
    """A file that does not hold what was asked for."""


def read_table(path: str, key: str | None = None) -> Array:
    """The numbers of a table; of an .npz file the array `key`, or the only one.

    Raises
    ------
    TableError, OSError, ImportError
        If there is no such table.
    """
    kind = ".csv" if path == STANDARD else Path(path).suffix.lower()
    if key is not None and kind != ".npz":
        raise TableError(f"{path}: only .npz files have arrays with names")
    if kind == ".csv":
        return _read_csv(path)
    if kind == ".npy":
        return _checked(np.load(path, mmap_mode="r", allow_pickle=False), path)
    if kind == ".npz":
        return _read_npz(path, key)
    if kind == ".parquet":
        return _read_parquet(path)
    raise TableError(f"{path}: the name must end in one of {', '.join(FORMATS)}")


def _read_csv(path: str) -> Array:
    """Numbers with commas between; a first line that is not all numbers is a line of names."""
    text = sys.stdin.read() if path == STANDARD else Path(path).read_text(encoding="utf-8-sig")
    first, _, rest = text.partition("\n")
    body = text if _are_numbers(first) else rest
    if not body.strip():
        raise TableError(f"{path}: no rows")
    try:
        return np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def _are_numbers(line: str) -> bool:
    try:
        [float(field) for field in line.split(",")]
    except ValueError:
        return False
    return True


def _read_npz(path: str, key: str | None) -> Array:
    with np.load(path, allow_pickle=False) as arrays:
        names = arrays.files
        if key is None and len(names) != 1:
            raise TableError(f"{path}: has the arrays {', '.join(names)}; name one by --key")
        if key is not None and key not in names:
            raise TableError(f"{path}: has no array {key!r}, but {', '.join(names)}")
        return _checked(arrays[key or names[0]], path)


def _read_parquet(path: str) -> Array:
    try:
        pandas = importlib.import_module("pandas")
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(f"{path}: Parquet files need pandas and pyarrow ({error})") from error
    words = [name for name, kind in frame.dtypes.items() if kind.kind not in "fiub"]
    if words:
        raise TableError(f"{path}: the columns {words} are not numbers")
    return np.asarray(frame.to_numpy(dtype=np.float64))


def _checked(array: Any, path: str) -> Array:
    if array.dtype.kind not in "fiub":
        raise TableError(f"{path}: has {array.dtype}, must have numbers")
    return array if array.ndim == 2 else _column(array, path)


def _column(array: Array, path: str) -> Array:
    if array.ndim != 1:
        raise TableError(f"{path}: has {array.ndim} dimensions, must have one or two")
    return array[:, None]


def write_table(path: str, array: Array) -> None:
    """Write an array as CSV or .npy, by the end of the name."""
    kind = ".csv" if path == STANDARD else Path(path).suffix.lower()
    if kind not in (".csv", ".npy"):
        raise TableError(f"{path}: the name must end in .csv or .npy")
    if path == STANDARD:
        sys.stdout.write(_csv(array))
    elif kind == ".npy":
        write_whole(path, lambda file: np.save(file, array, allow_pickle=False))
    else:
        write_whole(path, lambda file: file.write(_csv(array).encode()))


def _csv(array: Array) -> str:
    text = io.StringIO()
    whole = np.issubdtype(array.dtype, np.integer)
    np.savetxt(text, array, fmt="%d" if whole else "%.9g", delimiter=",")
    return text.getvalue()


def write_whole(path: str, write: Callable[[BinaryIO], Any]) -> None:
    """Write a file beside its place and move it there, so that a partial one is never seen."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, part = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)  # as files that are opened by name get
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise

"""Tables in files for the command line: they are read by name, and written whole or not at all."""

from __future__ import annotations

import csv
import importlib
import io
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple
from zipfile import ZipFile

import numpy as np

from rffpk._utils.arrays import Array
from rffpk._utils.containers import are_numbers
from rffpk._utils.messages import optional_module, warn
from rffpk._utils.validation import converts

_HEADER_BYTES = 1 << 16  # of an array in a file, at most

STANDARD = "-"  # standard input or output, as CSV
FORMATS = {
    ".csv": "CSV in UTF-8",
    ".npy": "a file of arrays of numbers",
    ".npz": "a file of arrays of numbers",
    ".parquet": "a Parquet file",
}
_UNNAMED = ("", "Unnamed: 0")  # of an index that pandas has written, or read
_MARKS = {";": "semicolons", "\t": "tabs", " ": "spaces"}  # that separate fields elsewhere
RESULTS = (".csv", ".npy")  # that labels and memberships are written in


class TableError(ValueError):
    """A file that does not hold what was asked for."""


class Table(NamedTuple):
    numbers: Array  # of two dimensions
    names: list[str] | None  # of the columns, if they have others than their positions


def read_table(path: str, key: str | None = None, header: bool | None = None) -> Table:
    """A table of numbers; of an .npz file the array `key`, or the only one. `header`: whether the
    first line of CSV is one of names; None: if it has no number. A first column without a name is
    the index that pandas and R write: it is left out, with a warning.

    Raises
    ------
    TableError, OSError, ImportError
        If there is no such table.
    """
    kind = ".csv" if path == STANDARD else Path(path).suffix.lower()
    if kind not in FORMATS:
        raise TableError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
    if key is not None and kind != ".npz":
        raise TableError(f"{path}: --key is for .npz files only")
    names = None
    try:
        match kind:
            case ".csv":
                table, names = _read_csv(path, header)
            case ".npy":
                table = _read_npy(path)
            case ".npz":
                table = _read_npz(path, key)
            case _:
                table, names = _read_parquet(path)
    except (TableError, ImportError, MemoryError):
        raise
    except Exception as error:  # what reads a damaged file raises errors of any class
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise TableError(f"{path}: is not {FORMATS[kind]}") from error
    if table.ndim not in (1, 2):
        raise TableError(f"{path}: has {table.ndim} dimensions, must have one or two")
    if names == [str(j) for j in range(len(names or ()))]:  # as pandas writes columns without names
        names = None
    return Table(table if table.ndim == 2 else table[:, None], names)


def _read_csv(path: str, header: bool | None) -> Table:
    """Numbers with commas between, after a line of names if there is one."""
    lines = _lines(path)
    first = _fields(lines[0])
    if header is None:
        header = lines[0] != "" and not any(converts(field, float) for field in first)
    names = first if header else None
    rows = lines[1:] if header else lines
    if not rows or rows == [""]:
        raise TableError(f"{path}: no rows")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise TableError(f"{path}: line {number} is blank, must be a row")
    width = len(_fields(rows[0]))
    index = names is not None and _has_index(path, names, width)
    options: dict[str, Any] = {"converters": {0: lambda field: 0.0}} if index else {}
    try:
        if names is not None and len(names) + index != width:
            raise ValueError(f"has {len(names)} names of columns, but rows of {width} fields")
        table = np.loadtxt(rows, delimiter=",", ndmin=2, comments=None, quotechar='"', **options)
    except ValueError as error:
        what = _first_fault(rows, len(lines) - len(rows), index, names) or error
        raise TableError(f"{path}: {what}") from error
    if index:
        _say_index_is_left_out(path)
        table = np.ascontiguousarray(table[:, 1:])
    return Table(table, names)


def _has_index(path: str, names: list[str], width: int) -> bool:
    """Whether the first field of each row is its label, as pandas and R write it, under no name.
    Such a column is taken out of the names."""
    index = len(names) == width - 1
    if names[0] in _UNNAMED and len(names) == width > 1:
        del names[0]
        index = True
    if "" in names:
        number = names.index("") + 1 + index
        raise TableError(f"{path}: column {number} has no name: give it one, or remove it")
    return index


def _say_index_is_left_out(path: str) -> None:
    warn(
        f"{path}: the first column has no name, and is left out as the labels of rows: give it a "
        "name if it is to count",
        UserWarning,
    )


def _first_fault(rows: list[str], before: int, index: bool, names: list[str] | None) -> str | None:
    """What is wrong with the first row that has a field that is no number, or too few fields."""
    width = len(_fields(rows[0]))
    for number, row in enumerate(rows, before + 1):
        fields = _fields(row)
        if mark := _other_separator(row):
            return f"line {number} has {mark} between its fields, must have commas: {row[:40]}"
        if len(fields) != width:
            return f"line {number} has {len(fields)} fields, the lines before {width}"
        for j, field in enumerate(fields[index:]):
            if not converts(field, float):
                column = repr(names[j]) if names and j < len(names) else str(j + 1)
                gap = "" if field.strip() else ": fill in what is missing, or drop the row"
                return f"line {number} has {field!r} in column {column}, must be a number{gap}"
    return None


def _other_separator(row: str) -> str | None:
    """What separates the fields in place of commas, if something does; with semicolons, commas may
    stand in numbers."""
    if "," not in row or ";" in row:
        return next((name for mark, name in _MARKS.items() if mark in row.strip()), None)
    return None


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), None) or [""]


def _lines(path: str) -> list[str]:
    """At least one line, without blank ones at the end."""
    if path != STANDARD:
        text = Path(path).read_text(encoding="utf-8")
    elif sys.stdin is None:
        raise TableError("standard input is closed: name a file")
    else:
        text = sys.stdin.read()
    return text.removeprefix("\ufeff").rstrip().split("\n")


def _read_npy(path: str) -> Array:
    with open(path, "rb") as file:
        shape, order, dtype, offset = _header(file, path)
    return np.memmap(path, dtype, "r", offset, shape, order)


def _read_npz(path: str, key: str | None) -> Array:
    with ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        if not names:
            raise TableError(f"{path}: has no arrays")
        if key is None and len(names) != 1:
            raise TableError(f"{path}: has the arrays {', '.join(names)}; name one by --key")
        if key is not None and key not in names:
            raise TableError(f"{path}: has no array {key!r}, but {', '.join(names)}")
        with archive.open(f"{names[0] if key is None else key}.npy") as member:
            shape, order, dtype, offset = _header(member, path)
            member.seek(offset)
            return np.frombuffer(member.read(), dtype).reshape(shape, order=order)


def _header(file: IO[bytes], path: str) -> tuple[tuple[int, ...], Any, np.dtype[Any], int]:
    """Shape, order and dtype of an array, and where its numbers begin. A damaged header may be said
    to be of any length: no more is read than one has."""
    start = io.BytesIO(file.read(_HEADER_BYTES))
    major, minor = np.lib.format.read_magic(start)
    read = getattr(np.lib.format, f"read_array_header_{major}_{minor}")
    shape, fortran, dtype = read(start)
    if dtype.kind not in "fiub":
        raise TableError(f"{path}: has {dtype}, must have numbers")
    return shape, "F" if fortran else "C", dtype, start.tell()


def _read_parquet(path: str) -> Table:
    try:
        pandas = importlib.import_module("pandas")
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            f"{path}: Parquet files need pandas and pyarrow, pip install 'rffpk[parquet]' ({error})"
        ) from error
    names = [str(name) for name in frame.columns]
    index = bool(names) and _has_index(path, names, len(names))
    frame = frame.iloc[:, int(index) :]
    words = [name for j, name in enumerate(names) if not are_numbers(frame.iloc[:, j])]
    if words:
        raise TableError(f"{path}: the columns {words} are not numbers")
    if index:
        _say_index_is_left_out(path)
    # in the order of the other formats: sums over rows depend on it
    return Table(np.ascontiguousarray(frame.to_numpy(dtype=np.float64)), names)


def write_table(path: str, array: Array) -> None:
    """Write an array as CSV or .npy, by the end of the name."""
    if path == STANDARD:
        sys.stdout.write(_csv(array))
        return
    with whole_file(path) as file:
        if Path(path).suffix.lower() == ".npy":
            np.save(file, array, allow_pickle=False)
        else:
            file.write(_csv(array).encode())


def _csv(array: Array) -> str:
    text = io.StringIO()
    whole = np.issubdtype(array.dtype, np.integer)
    np.savetxt(text, array, fmt="%d" if whole else "%.9g", delimiter=",")
    return text.getvalue()


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """A file that is written beside its place and moved there at the end, so that a partial one is
    never seen, nor after a crash of the machine. It has the permissions of the file that is there,
    or those that any new one has. Links are followed, and what is no regular file, such as a pipe,
    is written directly. A process that is killed leaves a file rffpk-... there."""
    place = os.path.realpath(path)
    if os.path.exists(place) and not os.path.isfile(place):
        with open(place, "wb") as file:
            yield file
        return
    before = os.stat(place).st_mode & 0o777 if os.path.exists(place) else None
    create = partial(os.open, mode=0o666 if before is None else before)  # less the umask
    part = os.path.join(os.path.dirname(place), f"rffpk-{secrets.token_hex(8)}")
    try:
        with open(part, "xb", opener=create) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            os.chmod(part, before)
        os.replace(part, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def check_output(path: str, suffixes: tuple[str, ...] = (), others: tuple[str, ...] = ()) -> None:
    """Raise an error if a result could not be written there, before there is one, or would replace
    one of other files."""
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise TableError(f"{path}: the name must end in {' or '.join(suffixes)}")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise TableError(f"{path}: there is no folder {folder}")
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise TableError(f"{path}: cannot be written")
    if any(_is_same(path, other) for other in others if other != STANDARD):
        raise TableError(f"{path}: is named twice, so one file would replace the other")


def _is_same(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


# ---- labels of a fit -----------------------------------------------------------------------------


def check_labels_to(labels_to: Any) -> None:
    """Raise an error if labels cannot go there."""
    if callable(labels_to):
        return
    if not isinstance(labels_to, (str, os.PathLike)):
        raise TypeError(
            f"labels_to is of type {type(labels_to).__name__}, must be a path or a function."
        )
    try:
        check_output(os.fspath(labels_to), (".npy", ".parquet"))
    except ValueError as error:
        raise ValueError(f"labels_to == {error}.") from error
    if Path(labels_to).suffix.lower() == ".parquet":
        _pyarrow()


@contextmanager
def label_writer(labels_to: Any, n: int) -> Iterator[Callable[[Array], Any]]:
    """A function that is given the labels of n rows, block by block, and writes them; a file is
    there once all of them are."""
    if callable(labels_to):
        yield labels_to
        return
    with whole_file(os.fspath(labels_to)) as file:
        if Path(labels_to).suffix.lower() == ".npy":
            header = {"descr": "<i4", "fortran_order": False, "shape": (n,)}
            np.lib.format.write_array_header_1_0(file, header)
            yield lambda labels: file.write(labels.astype("<i4").tobytes())
        else:
            with _parquet_writer(file) as write:
                yield write


@contextmanager
def _parquet_writer(file: BinaryIO) -> Iterator[Callable[[Array], None]]:
    arrow, parquet = _pyarrow(), _pyarrow("pyarrow.parquet")
    schema = arrow.schema([("label", arrow.int32())])
    with parquet.ParquetWriter(file, schema) as writer:
        yield lambda labels: writer.write_table(arrow.table({"label": labels}, schema))


def _pyarrow(module: str = "pyarrow") -> Any:
    return optional_module(module, "Parquet files need pyarrow, pip install 'rffpk[parquet]'")

"""Tables in files for the command line: they are read by name, and written whole or not at all."""

from __future__ import annotations

import importlib
import io
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO
from zipfile import ZipFile

import numpy as np

from rffpk._utils.arrays import Array
from rffpk._utils.messages import optional_module
from rffpk._utils.validation import converts

_HEADER_BYTES = 1 << 16  # of an array in a file, at most

STANDARD = "-"  # standard input or output, as CSV
FORMATS = {
    ".csv": "UTF-8 text",
    ".npy": "a file of arrays of numbers",
    ".npz": "a file of arrays of numbers",
    ".parquet": "a Parquet file",
}
RESULTS = (".csv", ".npy")  # that labels and memberships are written in


class TableError(ValueError):
    """A file that does not hold what was asked for."""


def read_table(path: str, key: str | None = None, header: bool | None = None) -> Array:
    """The numbers of a table; of an .npz file the array `key`, or the only one. `header`: whether
    the first line of CSV is one of names; None: as its fields tell.

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
    try:
        match kind:
            case ".csv":
                table = _read_csv(path, header)
            case ".npy":
                table = _read_npy(path)
            case ".npz":
                table = _read_npz(path, key)
            case _:
                table = _read_parquet(path)
    except (TableError, ImportError, MemoryError):
        raise
    except Exception as error:  # what reads a damaged file raises errors of any class
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise TableError(f"{path}: is not {FORMATS[kind]}") from error
    if table.ndim not in (1, 2):
        raise TableError(f"{path}: has {table.ndim} dimensions, must have one or two")
    return table if table.ndim == 2 else table[:, None]


def _read_csv(path: str, header: bool | None) -> Array:
    """Numbers with commas between, after a line of names if there is one."""
    lines = _lines(path)
    if header is None:
        header = _are_names(lines[0])
        if not header and _may_be_names(lines):
            raise TableError(
                f"{path}: the first line may be names or a row: {lines[0][:40]}; say --header or "
                "--no-header"
            )
    rows = lines[1:] if header else lines
    if not rows or rows == [""]:
        raise TableError(f"{path}: no rows")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise TableError(f"{path}: line {number} is blank, must be a row")
    try:
        return np.loadtxt(rows, delimiter=",", ndmin=2, comments=None)
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def _lines(path: str) -> list[str]:
    """At least one line, without blank ones at the end."""
    if path != STANDARD:
        text = Path(path).read_text(encoding="utf-8")
    elif sys.stdin is None:
        raise TableError("standard input is closed: name a file")
    else:
        text = sys.stdin.read()
    return text.removeprefix("\ufeff").rstrip().split("\n")


def _are_names(line: str) -> bool:
    fields = line.split(",")
    return bool(line.strip(", \r")) and not any(converts(field, float) for field in fields)


def _may_be_names(lines: list[str]) -> bool:
    """Whether the numbers of the first line look like names: whole, all different, and in rising
    order, as the years or pandas' 0, 1, 2, or without another whole number in a column. A single
    column of whole numbers may be labels."""
    names = lines[0].split(",")
    if not all(converts(name, int) for name in names) or len({*map(int, names)}) < len(names):
        return False
    if len(names) > 1 and names == sorted(names, key=int):
        return True
    alone = {*range(len(names))}
    for line in lines[1:]:
        alone -= {j for j, field in enumerate(line.split(",")) if converts(field, int)}
        if not alone:
            return False
    return len(lines) > 1


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


def _read_parquet(path: str) -> Array:
    try:
        pandas = importlib.import_module("pandas")
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(f"{path}: Parquet files need pandas and pyarrow ({error})") from error
    words = [name for name, kind in frame.dtypes.items() if kind.kind not in "fiub"]
    if words:
        raise TableError(f"{path}: the columns {words} are not numbers")
    # in the order of the other formats: sums over rows depend on it
    return np.ascontiguousarray(frame.to_numpy(dtype=np.float64))


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
    return optional_module(module, "Parquet files need pyarrow")

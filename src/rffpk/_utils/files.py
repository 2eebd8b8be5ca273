"""Tables in files for the command line: they are read by name, and written whole or not at all."""

from __future__ import annotations

import csv
import gzip
import importlib
import io
import os
import re
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
    ".tsv": "a table in UTF-8",
    ".csv.gz": "CSV in UTF-8, compressed by gzip",
    ".tsv.gz": "a table in UTF-8, compressed by gzip",
    ".npy": "a file of arrays of numbers",
    ".npz": "a file of arrays of numbers",
    ".parquet": "a Parquet file",
}
_UNNAMED = ("", "Unnamed: 0")  # of an index that pandas has written, or read
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", " ": "spaces"}
_GAPS = {"", "na", "n/a", "#n/a", "nan", "null", "none"}  # in lower case, as pandas reads them
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
RESULTS = (".csv", ".npy")  # that labels and memberships are written in


class TableError(ValueError):
    """A file that does not hold what was asked for."""


class Table(NamedTuple):
    numbers: Array  # of two dimensions; objects where there are words or gaps, which are None
    names: list[str] | None  # of the columns, if they have others than their positions


class Choice(NamedTuple):
    """What is read of a table, and how."""

    key: str | None = None  # of the array in an .npz file that has several
    header: bool | None = (
        None  # whether the first line of text has names; None: if it has no number
    )
    separator: str | None = None  # of fields of text; None: by the name of the file
    columns: str | None = (
        None  # names or numbers from 1 of those that are read, with commas between
    )
    drop: str | None = None  # of those that are not


_ALL = Choice()


def read_table(path: str, choice: Choice = _ALL) -> Table:
    """The chosen columns of a table. A first column without a name is the index that pandas and R
    write: it is left out, with a warning.

    Raises
    ------
    TableError, OSError, ImportError
        If there is no such table.
    """
    kind = ".csv" if path == STANDARD else _kind(path)
    if kind not in FORMATS:
        raise TableError(f"{path}: the name must end in one of {', '.join(FORMATS)}")
    if choice.key is not None and kind != ".npz":
        raise TableError(f"{path}: --key is for .npz files only")
    is_text = kind[:4] in (".csv", ".tsv")
    if choice.separator is not None and not is_text:
        raise TableError(f"{path}: --sep is for text only")
    if choice.header is not None and not is_text:
        raise TableError(f"{path}: --header and --no-header are for text only")
    names = None
    try:
        match kind:
            case ".npy":
                table = _chosen_of_array(path, _read_npy(path), choice)
            case ".npz":
                table = _chosen_of_array(path, _read_npz(path, choice.key), choice)
            case ".parquet":
                table, names = _read_parquet(path, choice)
            case _:
                table, names = _read_text(path, kind, choice)
    except (TableError, ImportError, MemoryError):
        raise
    except Exception as error:  # what reads a damaged file raises errors of any class
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise TableError(f"{path}: is not {FORMATS[kind]}") from error
    return Table(table, names)


def _kind(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    return "".join(suffixes[-2:] if suffixes[-1:] == [".gz"] else suffixes[-1:])


def _chosen_of_array(path: str, table: Array, choice: Choice) -> Array:
    if table.ndim not in (1, 2):
        raise TableError(f"{path}: has {table.ndim} dimensions, must have one or two")
    table = table if table.ndim == 2 else table[:, None]
    chosen = _chosen(path, None, table.shape[1], choice)
    return table if chosen is None else np.ascontiguousarray(table[:, chosen])


def _chosen(path: str, names: list[str] | None, width: int, choice: Choice) -> list[int] | None:
    """The positions of the chosen columns; None for all. A field that is no name is a number."""
    given = choice.columns if choice.drop is None else choice.drop
    if given is None:
        return None
    option = "--columns" if choice.drop is None else "--drop"
    found = []
    for field in _fields(given):
        if names is not None and field in names:
            found.append(names.index(field))
        elif field.isdecimal() and 1 <= int(field) <= width:
            found.append(int(field) - 1)
        else:
            known = "" if names is None else f", which are {names}"
            raise TableError(
                f"{path}: {option} has {field!r}, must have names or numbers from 1 to {width} of "
                f"columns{known}"
            )
    if len({*found}) < len(found):
        raise TableError(f"{path}: {option} names a column twice")
    if choice.drop is not None:
        found = [j for j in range(width) if j not in found]
    if not found:
        raise TableError(f"{path}: {option} leaves no column")
    return found


def _read_text(path: str, kind: str, choice: Choice) -> Table:
    """Columns with commas, tabs or others between, after a line of names if there is one."""
    separator = choice.separator or ("\t" if kind.startswith(".tsv") else ",")
    lines = _lines(path)
    first = _fields(lines[0], separator)
    header = choice.header
    if header is None:
        header = lines[0] != "" and not any(map(_is_number, first))
    names = first if header else None
    rows = lines[1:] if header else lines
    if not rows or rows == [""]:
        raise TableError(f"{path}: no rows")
    for number, line in enumerate(lines, 1):
        if not line.strip() and separator not in line:
            raise TableError(f"{path}: line {number} is blank, must be a row")
    if choice.separator is None and (other := _other_separator(rows[0], separator)):
        raise TableError(
            f"{path}: row 1 has {_SEPARATORS[other]} between its columns, must have "
            f"{_SEPARATORS[separator]}, unless --sep names another separator: {rows[0][:40]}"
        )
    width = len(_fields(rows[0], separator))
    index = names is not None and _has_index(path, names, width)
    _check_widths(path, rows, separator, width if names is None else len(names) + index)
    if index:
        _say_index_is_left_out(path)
    if choice.header is None and not header:
        _say_if_first_line_may_be_names(path, first)
    names = _unless_positions(names)
    chosen = _chosen(path, names, width - index, choice)
    if chosen is None:
        chosen = [*range(width - index)]
    numbers = _numbers(path, rows, separator, [index + j for j in chosen])
    return Table(numbers, None if names is None else [names[j] for j in chosen])


def _unless_positions(names: list[str] | None) -> list[str] | None:
    """None for positions, as pandas writes columns without names."""
    return None if names == [str(j) for j in range(len(names or []))] else names


def _say_if_first_line_may_be_names(path: str, first: list[str]) -> None:
    """Words beside numbers, or whole numbers, such as years, are names in some files, and a row in
    others."""
    fields = [field.strip() for field in first[first[0] == "" :]]
    has_words = any(isinstance(_value(field), str) for field in fields)
    if not has_words and not all(field.isdecimal() for field in fields):
        return
    shown = ",".join(first[:8]) + (",..." if len(first) > 8 else "")
    if first[0] == "":  # above the index that pandas writes, or a gap
        raise TableError(
            f"{path}: the first line, {shown}, may be a row or names of columns: pass --header or "
            "--no-header"
        )
    warn(
        f"{path}: the first line, {shown}, is taken as a row: pass --header if it has the names of "
        "the columns, or --no-header if not",
        UserWarning,
    )


def _check_widths(path: str, rows: list[str], separator: str, width: int) -> None:
    for number, row in enumerate(rows, 1):
        if row.count(separator) != width - 1:
            columns = len(_fields(row, separator))
            if columns != width:
                raise TableError(f"{path}: row {number} has {columns} columns, must have {width}")


def _numbers(path: str, rows: list[str], separator: str, columns: list[int]) -> Array:
    """Some columns of text: numbers, or objects where there are words or gaps."""
    try:
        found = np.loadtxt(
            rows, delimiter=separator, ndmin=2, comments=None, quotechar='"', usecols=columns
        )
        if len(found) == len(rows):  # a quote that is not closed takes several lines
            return with_gaps(found)
    except ValueError:
        pass
    fields = (_fields(row, separator) for row in rows)
    table = np.array([[_value(row[j]) for j in columns] for row in fields], dtype=object)
    if all(isinstance(value, float) for value in table.flat):
        return table.astype(np.float64)
    for i, j in zip(*np.nonzero(table != None)):  # noqa: E711
        if isinstance(table[i, j], str) and _is_number(_DECIMAL_COMMA.sub(".", table[i, j])):
            raise TableError(
                f"{path}: row {i + 1} has {table[i, j]!r} in column {columns[j] + 1}: numbers have "
                "a decimal point, and no commas"
            )
    return table


def with_gaps(table: Array) -> Array:
    """Objects, with None in place of NaN, if there are any."""
    gaps = np.isnan(table)
    if not gaps.any():
        return table
    found = table.astype(object)
    found[gaps] = None
    return found


def _value(field: str) -> float | str | None:
    field = field.strip()
    if field.lower() in _GAPS:
        return None
    return float(field) if _is_number(field) else field


def _is_number(field: str) -> bool:
    """Whether a field is a number as files have it. Python's are more: 2024_05 is 202405 there."""
    field = field.strip()
    return field.isascii() and "_" not in field and converts(field, float)


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


def _other_separator(row: str, separator: str) -> str | None:
    """What separates the fields of a row, if it seems to be something else: there is nothing of the
    separator, or numbers are between others. Words have spaces and commas, too."""
    for mark in _SEPARATORS:
        fields = row.strip().split(mark)
        if mark == separator or len(fields) == 1:
            continue
        are_numbers = [_is_number(_DECIMAL_COMMA.sub(".", field)) for field in fields]
        several = any(are_numbers) if mark in ";\t" else all(are_numbers)
        if several or (mark != " " and separator not in row):
            return mark
    return None


def _fields(line: str, separator: str = ",") -> list[str]:
    return next(csv.reader([line], delimiter=separator), None) or [""]


def _lines(path: str) -> list[str]:
    """At least one line, without blank ones at the end."""
    if path != STANDARD:
        with (gzip.open if _kind(path).endswith(".gz") else open)(
            path, "rt", encoding="utf-8"
        ) as file:
            text = file.read()
    elif sys.stdin is None:
        raise TableError("standard input is closed: name a file")
    else:
        text = sys.stdin.read()
    return text.removeprefix("\ufeff").rstrip(" \r\n").split("\n")


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


def _read_parquet(path: str, choice: Choice) -> Table:
    try:
        pandas = importlib.import_module("pandas")
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            f"{path}: Parquet files need pandas and pyarrow, pip install 'rffpk[parquet]' ({error})"
        ) from error
    names = [str(name) for name in frame.columns]
    index = bool(names) and _has_index(path, names, len(names))
    if index:
        _say_index_is_left_out(path)
    known = _unless_positions(names)
    chosen = _chosen(path, known, len(names), choice)
    if chosen is None:
        chosen = [*range(len(names))]
    frame = frame.iloc[:, [index + j for j in chosen]]
    if all(are_numbers(frame.iloc[:, j]) for j in range(len(chosen))):
        # in the order of the other formats: sums over rows depend on it
        numbers = with_gaps(np.ascontiguousarray(frame.to_numpy(dtype=np.float64)))
    else:
        numbers = np.array(frame.to_numpy(dtype=object))
        numbers[frame.isna().to_numpy()] = None
    return Table(numbers, None if known is None else [known[j] for j in chosen])


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

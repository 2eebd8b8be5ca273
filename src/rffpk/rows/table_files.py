"""Tables in files, for the command line: NumPy reads arrays, pandas reads text and Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
from collections.abc import Iterable
from functools import partial
from itertools import compress
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from rffpk.rows.arrays import Array
from rffpk.rows.containers import are_numbers, are_times
from rffpk.system.files import STANDARD, TableError, arrow_module
from rffpk.system.report import optional_module, warn

_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_FORMATS = (*_TEXT, ".npy", ".npz", ".parquet")
# How words begin that are dates, times or durations in text and in Parquet files.
_DAY = r"(0?[1-9]|[12]\d|3[01])"
_MONTH = (
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?"
    r"|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)\.?"
)
_TIMES = re.compile(
    rf"\d{{4}}([-/.])(0?[1-9]|1[0-2])\1{_DAY}(?!\.?\d)|{_DAY}([-/.]){_DAY}\5\d{{4}}(?!\d)"
    rf"|(?i:{_DAY}[ -]{_MONTH}|{_MONTH} {_DAY}),?[ -]\d{{4}}(?!\d)"
    r"|\d\d?:\d\d:\d\d(?!:)|-?\d+ days?(,? |$)"
)
_UNNAMED = "Unnamed: "  # how pandas calls a column without a name, before its position


class Choice(NamedTuple):
    """What is read of a table, and how."""

    key: str | None = None  # the name of the array, in an .npz file that has several arrays
    header: bool | None = None  # whether the first line has names; None: if it has only words
    sep: str | None = None  # the separator of fields; None: by the name of the file
    columns: str | None = None  # names or numbers from 1 of the columns to read, with commas
    drop: str | None = None  # names or numbers of the columns to leave out


_ALL = Choice()


def read_table(path: str, choice: Choice = _ALL) -> Any:
    """Return the chosen columns of a table.

    Files of arrays give an array of two dimensions. Text and Parquet give a frame of pandas, in
    float64 and C order if all columns are numbers.

    Raises
    ------
    TableError, OSError, ImportError
        If there is no such table.
    """
    name = ".csv" if path == STANDARD else path.lower()
    kind = next((suffix for suffix in _FORMATS if name.endswith(suffix)), None)
    if kind is None:
        raise TableError(f"{path}: the name must end in one of {', '.join(_FORMATS)}")
    for option, kinds in (("key", (".npz",)), ("sep", _TEXT), ("header", _TEXT)):
        if getattr(choice, option) is not None and kind not in kinds:
            raise TableError(f"{path}: --{option} is for {', '.join(kinds)} only.")
    try:
        table = _read(path, kind, choice)
    except (TableError, ImportError):
        raise
    except Exception as error:  # what reads a damaged file raises errors of any class
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise TableError(f"{path}: cannot be read as {kind}: {error}") from error
    if not table.size:
        raise TableError(f"{path}: no rows, or no columns.")
    return table


def _read(path: str, kind: str, choice: Choice) -> Any:
    """Read a file of the format `kind`; return an array or a frame of the chosen columns.

    Raise a TableError if columns have dates or durations."""
    if kind in (".npy", ".npz"):
        array = _read_array(path, kind, choice.key)
        return np.ascontiguousarray(array[:, _chosen(path, range(array.shape[1]), choice)])
    pandas = optional_module("pandas", f"{kind} needs pandas (pip install pandas)")
    with _opened(path) as file:
        if kind == ".parquet":
            arrow_module()
            frame = pandas.read_parquet(file)
        else:
            _refuse_nul(path, file, kind)
            frame = _read_text(path, file, kind, choice, pandas)
    frame = _named(path, frame)
    frame = frame.iloc[:, _chosen(path, frame.columns, choice)]
    not_numbers = _columns_by_kind(frame)
    if "dates" in not_numbers:
        raise TableError(
            f"{path}: has dates or durations in the columns {not_numbers['dates']}. Leave the "
            "columns out by --drop, or write numbers in their place, such as days."
        )
    if not_numbers:
        return frame
    numbers = np.ascontiguousarray(frame.to_numpy(np.float64))
    return pandas.DataFrame(numbers, columns=frame.columns, copy=False)


def _named(path: str, frame: Any) -> Any:
    """Drop the columns without a name, with a warning; return the frame.

    If no column has a meaningful name, columns are labelled by position. Positions that were
    written as names count as no names."""
    names = [str(name) for name in frame.columns]
    is_named = [bool(name) and not name.startswith(_UNNAMED) for name in names]
    if not all(is_named):
        left_out = [j for j, named in enumerate(is_named, 1) if not named]
        warn(
            f"{path}: columns without a name, as those that have the labels of rows, are left out: "
            f"{left_out}. Give them names if they are to count.",
            UserWarning,
        )
        frame, names = frame.loc[:, is_named], [*compress(names, is_named)]
    positions = range(len(names))
    return frame.set_axis(positions if names == [*map(str, positions)] else names, axis=1)


def _chosen(path: str, labels: Iterable[Any], choice: Choice) -> list[int] | slice:
    """Return the positions of the columns that `choice` keeps.

    `choice` has the names of columns, or else their positions, counted from 1. Return a slice of
    all columns if it has neither `columns` nor `drop`."""
    given = choice.columns if choice.drop is None else choice.drop
    if given is None:
        return slice(None)
    by_name = {label: j for j, label in enumerate(labels)}
    places = {str(j + 1): j for j in range(len(by_name))} | by_name
    fields = next(csv.reader([given]))
    if unknown := [field for field in fields if field not in places]:
        raise TableError(
            f"{path}: has no columns {unknown}, must have names or numbers from 1 to {len(by_name)}"
        )
    found = [*dict.fromkeys(places[field] for field in fields)]
    return found if choice.drop is None else [j for j in by_name.values() if j not in found]


def _read_array(path: str, kind: str, key: str | None) -> Array:
    """Read an array from a .npy or .npz file, as two-dimensional."""
    if kind == ".npy":
        table: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    else:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            if key is None and len(archive.files) == 1:
                key = archive.files[0]
            if key not in archive.files:
                raise TableError(f"{path}: has the arrays {archive.files}: name one by --key.")
            table = np.asarray(archive[key])
    if table.dtype.kind not in "fiub" or table.ndim not in (1, 2):
        raise TableError(
            f"{path}: has {table.dtype} of {table.ndim} dimensions. It must have numbers of one or "
            "two."
        )
    return table if table.ndim == 2 else table[:, None]


def _opened(path: str) -> BinaryIO:
    """Open a file that can be rewound; standard input is read into memory."""
    if path != STANDARD:
        return open(path, "rb")
    if sys.stdin is None:
        raise TableError("standard input is closed: name a file.")
    return io.BytesIO(sys.stdin.buffer.read())


# ---- text ----------------------------------------------------------------------------------------


def _read_text(path: str, file: BinaryIO, kind: str, choice: Choice, pandas: Any) -> Any:
    """Read CSV or TSV text as a frame; raise a TableError if the separator or lines seem wrong."""
    separator = choice.sep or ("\t" if kind.startswith(".tsv") else ",")
    read = partial(
        pandas.read_csv,
        sep=separator,
        skip_blank_lines=False,  # rows after them would get labels of other rows
        skipinitialspace=True,
        low_memory=False,
        compression="gzip" if kind.endswith(".gz") else None,
    )
    first = read(file, header=None, nrows=1, dtype=str).iloc[0].dropna()
    header = _has_names(path, first, pandas) if choice.header is None else choice.header
    # read exact numbers, which from pandas 3.1 on needs no option
    version = tuple(map(int, pandas.__version__.split(".")[:2]))
    exact = {"float_precision": "round_trip"} if version < (3, 1) else {}
    file.seek(0)
    frame = read(file, header=0 if header else None, **exact)
    # pandas takes the first fields for names of rows where lines have more fields than names. They
    # are no names if a separator ends the lines, or if the first line alone is longer. The last
    # column then has at most one value.
    has_labels = not frame.index.equals(pandas.RangeIndex(len(frame)))
    if header and len(frame):  # names of rows such as 0, 1, 2, ... look like no names
        file.seek(0)
        has_labels |= read(file, header=None, skiprows=1, nrows=1).shape[1] > frame.shape[1]
    is_shifted = has_labels and frame.iloc[:, -1].count() < min(2, len(frame))
    if is_shifted or frame.index.nlevels > 1:
        raise TableError(
            f"{path}: rows have more fields than names. Pass the separator as --sep; no line may "
            "end with it."
        )
    if choice.sep is None:
        _check_separator(path, separator, [*first, *frame.head(1).to_numpy().flat], frame.shape[1])
    if not header and not frame.iloc[:, -1].count():
        file.seek(0)
        _refuse_ends(path, read(file, header=None, dtype=str, na_filter=False), separator)
    if has_labels:
        frame = frame.reset_index(names=_UNNAMED + "0")
    blank = frame.isna().all(axis=1).to_numpy()
    if blank.any():
        raise TableError(f"{path}: row {blank.argmax() + 1} is blank, or has gaps alone.")
    for name in frame.select_dtypes(exclude="number"):  # among words, 1 and 1.0 are one value
        numbers = pandas.to_numeric(frame[name], errors="coerce")
        frame[name] = frame[name].astype(object).where(numbers.isna(), numbers)
    return frame


def _refuse_nul(path: str, file: BinaryIO, kind: str) -> None:
    """Raise a TableError for the character NUL, at which pandas would cut a field."""
    text: Any = gzip.GzipFile(fileobj=file) if kind.endswith(".gz") else file
    line = 1
    for block in iter(partial(text.read, 1 << 20), b""):
        before, nul, _ = block.partition(b"\0")
        line += before.count(b"\n")
        if nul:
            raise TableError(
                f"{path}: line {line} has a NUL, as UTF-16 has. Write the text as UTF-8."
            )
    file.seek(0)


def _refuse_ends(path: str, fields: Any, separator: str) -> None:
    """Raise a TableError if every line ends with a separator, so that the last field is empty."""
    if fields.shape[1] > 1 and not fields.iloc[:, -1].fillna("").any():
        raise TableError(f"{path}: each line ends with {separator!r}. Take the ends away.")


def _has_names(path: str, first: Any, pandas: Any) -> bool:
    """Return whether the first line has column names: all its fields are words.

    Warn if it is unclear, because words and numbers are mixed or numbers may be years."""
    numbers = pandas.to_numeric(first, errors="coerce")
    if len(first) and numbers.isna().all():
        return True
    if numbers.isna().any() or all(map(str.isdecimal, first)):  # whole numbers may be years
        warn(
            f"{path}: the first line, {','.join(first[:8])}, is taken as a row. Pass --header if "
            "it has the names of the columns, or --no-header if not.",
            UserWarning,
        )
    return False


def _check_separator(path: str, separator: str, fields: list[Any], width: int) -> None:
    """Raise a TableError if a field seems to contain several fields, by another separator."""
    other = "[" + ",;|\t".replace(separator, "") + "]"
    # in a single column, spaces between numbers may be separators, too
    pattern = rf"\d{other}\d" if width > 1 else rf"{other}|^[-+.\d]+( +[-+.\d]+)+ *$"
    if found := next((each for each in fields if re.search(pattern, str(each))), None):
        raise TableError(
            f"{path}: {found!r} seems to be several fields. Pass the separator of fields as --sep "
            f"(the default is {separator!r})."
        )


def besides_numbers(table: Any) -> str:
    """Describe the columns of a frame that are not numbers, as text; "" if all are numbers."""
    by_kind = _columns_by_kind(table).items()
    return " and ".join(f"{kind} in the columns {names}" for kind, names in by_kind)


def _columns_by_kind(table: Any) -> dict[str, list[str | int]]:
    """Return the columns with gaps, dates or words, as lists by kind.

    A column is given by its name, or by its position counted from 1."""
    by_kind: dict[str, list[str | int]] = {}
    for name in getattr(table, "columns", ()):
        column = table[name]
        known = column.dropna()
        kinds = ["gaps"] * (len(known) < len(column))
        if not are_numbers(known):
            dates = are_times(known) or all(_TIMES.match(str(word)) for word in known)
            kinds.append("dates" if dates else "words")
        for kind in kinds:
            by_kind.setdefault(kind, []).append(name if isinstance(name, str) else name + 1)
    return by_kind

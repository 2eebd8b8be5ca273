"""Tables in files for the command line: NumPy and pandas read them; results are written whole."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rffpk.rows.containers import are_numbers, are_times
from rffpk.system.report import optional_module, warn

Array = NDArray[Any]

STANDARD = "-"  # standard input or output, as CSV
_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_FORMATS = (*_TEXT, ".npy", ".npz", ".parquet")
# How words begin that are dates, times or durations, as text and some Parquet files hold these.
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
RESULTS = (".csv", ".npy")  # that labels and memberships are written in


class TableError(ValueError):
    """A file that does not hold what was asked for."""


class Choice(NamedTuple):
    """What is read of a table, and how."""

    key: str | None = None  # of the array in an .npz file that has several
    header: bool | None = None  # whether text begins with names; None: if it begins with no number
    sep: str | None = None  # of fields of text; None: by the name of the file
    columns: str | None = None  # names or numbers from 1 of those that are read, with commas
    drop: str | None = None  # of those that are not


_ALL = Choice()


def read_table(path: str, choice: Choice = _ALL) -> Any:
    """The chosen columns of a table: an array of two dimensions from files of arrays, a frame of
    pandas from others, in C order and of float64 if it has numbers alone.

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
            raise TableError(f"{path}: --{option} is for {', '.join(kinds)} only")
    try:
        table = _read(path, kind, choice)
    except (TableError, ImportError):
        raise
    except Exception as error:  # what reads a damaged file raises errors of any class
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise TableError(f"{path}: cannot be read as {kind}: {error}") from error
    if not table.size:
        raise TableError(f"{path}: no rows, or no columns")
    return table


def _read(path: str, kind: str, choice: Choice) -> Any:
    if kind in (".npy", ".npz"):
        array = _read_array(path, kind, choice.key)
        return np.ascontiguousarray(array[:, _chosen(path, range(array.shape[1]), choice)])
    pandas = optional_module("pandas", f"{kind} is read by pandas, pip install 'rffpk[tables]'")
    with _opened(path) as file:
        if kind == ".parquet":
            arrow_module()
            frame = pandas.read_parquet(file)
        else:
            _refuse_nul(path, file, kind)
            frame = _read_text(path, file, kind, choice, pandas)
    frame = _named(path, frame)
    frame = frame.iloc[:, _chosen(path, frame.columns, choice)]
    besides = _columns_by_kind(frame)
    if "dates" in besides:
        raise TableError(
            f"{path}: has dates or durations in the columns {besides['dates']}, which are not "
            "numbers: leave them out by --drop, or write numbers in their place, such as days"
        )
    if besides:
        return frame
    numbers = np.ascontiguousarray(frame.to_numpy(np.float64))
    return pandas.DataFrame(numbers, columns=frame.columns, copy=False)


def _named(path: str, frame: Any) -> Any:
    """The columns that have names, or all of a table without names, whose columns have positions
    in their place, also where these were written as names."""
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
    """The positions of the chosen columns. A field that is no name is a number from 1."""
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
    if kind == ".npy":
        table: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    else:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            if key is None and len(archive.files) == 1:
                key = archive.files[0]
            if key not in archive.files:
                raise TableError(f"{path}: has the arrays {archive.files}: name one by --key")
            table = np.asarray(archive[key])
    if table.dtype.kind not in "fiub" or table.ndim not in (1, 2):
        raise TableError(
            f"{path}: has {table.dtype} of {table.ndim} dimensions, must have numbers of one or two"
        )
    return table if table.ndim == 2 else table[:, None]


def _opened(path: str) -> BinaryIO:
    """A file that can be read from its beginning again."""
    if path != STANDARD:
        return open(path, "rb")
    if sys.stdin is None:
        raise TableError("standard input is closed: name a file")
    return io.BytesIO(sys.stdin.buffer.read())


# ---- text ----------------------------------------------------------------------------------------


def _read_text(path: str, file: BinaryIO, kind: str, choice: Choice, pandas: Any) -> Any:
    separator = choice.sep or ("\t" if kind.startswith(".tsv") else ",")
    read = partial(
        pandas.read_csv,
        sep=separator,
        skip_blank_lines=False,  # the labels of rows after them would be those of others
        skipinitialspace=True,
        low_memory=False,
        compression="gzip" if kind.endswith(".gz") else None,
    )
    first = read(file, header=None, nrows=1, dtype=str).iloc[0].dropna()
    header = _has_names(path, first, pandas) if choice.header is None else choice.header
    # numbers are exact; from pandas 3.1 on they are without the option, which is deprecated
    version = tuple(map(int, pandas.__version__.split(".")[:2]))
    exact = {"float_precision": "round_trip"} if version < (3, 1) else {}
    file.seek(0)
    frame = read(file, header=0 if header else None, **exact)
    # pandas takes the first fields for names of rows where lines have more fields than names; they
    # are none if what ends the lines is a separator, or the first line alone is longer
    has_labels = not frame.index.equals(pandas.RangeIndex(len(frame)))
    if header and len(frame):  # names of rows may be their numbers
        file.seek(0)
        has_labels |= read(file, header=None, skiprows=1, nrows=1).shape[1] > frame.shape[1]
    is_shifted = has_labels and frame.iloc[:, -1].count() < min(2, len(frame))
    if is_shifted or frame.index.nlevels > 1:
        raise TableError(
            f"{path}: rows have more fields than names: --sep says what is between, and no line "
            "may end with it"
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
        raise TableError(f"{path}: row {blank.argmax() + 1} is blank, or has gaps alone")
    for name in frame.select_dtypes(exclude="number"):  # numbers among words have one name each
        numbers = pandas.to_numeric(frame[name], errors="coerce")
        frame[name] = frame[name].astype(object).where(numbers.isna(), numbers)
    return frame


def _refuse_nul(path: str, file: BinaryIO, kind: str) -> None:
    """Raise an error for the character NUL, at which pandas would cut a field."""
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
    """Raise an error if the last of several fields is empty in each line."""
    if fields.shape[1] > 1 and not fields.iloc[:, -1].fillna("").any():
        raise TableError(f"{path}: each line ends with {separator!r}. Take the ends away.")


def _has_names(path: str, first: Any, pandas: Any) -> bool:
    """Whether the fields of the first line are names: words without a number beside them."""
    numbers = pandas.to_numeric(first, errors="coerce")
    if len(first) and numbers.isna().all():
        return True
    if numbers.isna().any() or all(map(str.isdecimal, first)):  # as years are above columns
        warn(
            f"{path}: the first line, {','.join(first[:8])}, is taken as a row: pass --header if "
            "it has the names of the columns, or --no-header if not",
            UserWarning,
        )
    return False


def _check_separator(path: str, separator: str, fields: list[Any], width: int) -> None:
    """Raise an error for fields that seem to be several."""
    other = "[" + ",;|\t".replace(separator, "") + "]"
    pattern = rf"\d{other}\d" if width > 1 else rf"{other}|^[-+.\d]+( +[-+.\d]+)+ *$"
    if found := next((each for each in fields if re.search(pattern, str(each))), None):
        raise TableError(
            f"{path}: {found!r} seems to be several fields: pass --sep and what is between fields, "
            f"which is {separator!r} by default"
        )


def besides_numbers(table: Any) -> str:
    """What a frame has besides numbers, and in which columns; empty if there is nothing else."""
    found = _columns_by_kind(table).items()
    return " and ".join(f"{kind} in the columns {names}" for kind, names in found)


def _columns_by_kind(table: Any) -> dict[str, list[str | int]]:
    """The columns of a frame that have gaps, dates or words, by names or numbers from 1. An array
    has none."""
    found: dict[str, list[str | int]] = {}
    for name in getattr(table, "columns", ()):
        column = table[name]
        known = column.dropna()
        kinds = ["gaps"] * (len(known) < len(column))
        if not are_numbers(known):
            dates = are_times(known) or all(_TIMES.match(str(word)) for word in known)
            kinds.append("dates" if dates else "words")
        for kind in kinds:
            found.setdefault(kind, []).append(name if isinstance(name, str) else name + 1)
    return found


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
    if is_device(path):  # whose real path may be no path, such as that of /dev/fd/63
        with open(path, "wb") as file:
            yield file
        return
    place = os.path.realpath(path)
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
    except BaseException as error:
        with suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.filename == part:
            error.filename, error.filename2 = path, None  # the caller knows this name alone
        raise


def write_header(file: BinaryIO, shape: tuple[int, ...], dtype: str) -> None:
    """The header of a .npy file; NumPy leaves room for any number of rows."""
    description = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)


def is_device(path: str) -> bool:
    """Check whether this is a device or a pipe, which no name needs to end in a format for."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def check_output(path: str, suffixes: tuple[str, ...] = (), others: tuple[str, ...] = ()) -> None:
    """Raise an error if a result could not be written there, before there is one, or would replace
    one of other files."""
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise TableError(f"{path}: the name must end in {' or '.join(suffixes)}")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise TableError(f"{path}: there is no folder {folder}")
    device = is_device(path)
    if os.path.isdir(path) or not os.access(path if device else folder, os.W_OK):
        raise TableError(f"{path}: cannot be written")
    if not device and any(_is_same(path, other) for other in others if other != STANDARD):
        raise TableError(f"{path}: is named twice, so one file would replace the other")


def path_of(path: Any, name: str, must: str = "a path") -> str:
    """Return the text of a path; raise an error if an argument is none."""
    if isinstance(path, bytes):
        raise TypeError(f"{name}={path!r}: must be {must}, not bytes. Pass os.fsdecode({name}).")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name} is of type {type(path).__name__}, must be {must}.")
    text = os.fsdecode(path)
    if not text or "\0" in text:
        raise ValueError(f"{name}={text!r}: cannot be the name of a file. Pass {must}.")
    return text


def output_of(path: Any, name: str, must: str, suffixes: tuple[str, ...] = ()) -> str:
    """Return the text of a path; raise an error if nothing could be written there."""
    text = path_of(path, name, must)
    try:
        check_output(text, suffixes)
    except ValueError as error:
        raise ValueError(f"{name} == {error}.") from error
    return text


def check_outputs(outputs: dict[str, Any], *inputs: Any) -> None:
    """Raise an error if two outputs of a fit are one file, or one is a file that is read."""
    paths = {name: path for name, path in outputs.items() if isinstance(path, str)}
    for name, path in paths.items():
        reader = "the fit reads" if any(_is_same(path, file) for file in files_of(inputs)) else ""
        for other in paths.keys() - {name}:
            reader = f"{other} names" if _is_same(path, paths[other]) else reader
        if reader:
            raise ValueError(f"{name}={path!r}: {reader} this file, too. Name another file.")


def files_of(X: Any) -> tuple[str, ...]:
    """Return the files behind a source, a memory map, or a list of sources or maps."""
    if isinstance(X, (list, tuple)):
        return sum(map(files_of, X), ())
    files = getattr(X, "files", ())  # of sources, and of data sets of Arrow
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and X.filename is not None:
            return (os.fsdecode(X.filename),)
        X = X.base
    return tuple(files) if isinstance(files, (list, tuple)) else ()


def _is_same(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


# ---- labels of a fit -----------------------------------------------------------------------------


def check_labels_to(labels_to: Any) -> Any:
    """Return a function, or the text of a path; raise an error if labels cannot go there."""
    if callable(labels_to):
        return labels_to
    path = output_of(labels_to, "labels_to", "a path or a function", (".npy", ".parquet"))
    if Path(path).suffix.lower() == ".parquet":
        arrow_module()
    return path


@contextmanager
def label_writer(labels_to: Any, n: int) -> Iterator[Callable[[Array], Any]]:
    """A function that is given the labels of n rows, block by block, and writes them; a file is
    there once all of them are."""
    if callable(labels_to):  # a copy, as what it gets may become `labels_`
        yield lambda labels: labels_to(labels.copy())
        return
    with whole_file(labels_to) as file:
        if Path(labels_to).suffix.lower() == ".npy":
            write_header(file, (n,), "<i4")
            yield lambda labels: file.write(labels.astype("<i4").tobytes())
        else:
            arrow, parquet = arrow_module(), arrow_module("pyarrow.parquet")
            schema = arrow.schema([("label", arrow.int32())])
            with parquet.ParquetWriter(file, schema) as writer:
                yield lambda labels: writer.write_table(arrow.table({"label": labels}, schema))


def arrow_module(name: str = "pyarrow") -> Any:
    """A module of pyarrow, or an ImportError that says what is missing."""
    return optional_module(
        name, "Parquet files and Arrow data need pyarrow, pip install 'rffpk[parquet]'"
    )

"""Files that are written: results, whole or not at all, and labels of a source."""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rffpk.system.report import optional_module

Array = NDArray[Any]

STANDARD = "-"  # standard input or output, as CSV
RESULTS = (".csv", ".npy")  # types of files with labels or memberships


class TableError(ValueError):
    """An error about a table file, or about the path of a result."""


def write_table(path: str, array: Array) -> None:
    """Write an array to a .csv or .npy file, or to standard output as CSV."""
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
    """Open a temporary file for writing, and move it to `path` when the context ends.

    Thus nobody sees a partial file, even after a crash of the machine. The file gets the
    permissions of the file that it replaces, or of a new file. Links are followed. A pipe or
    another device is written directly. A killed process leaves a file rffpk-... in the folder."""
    if is_device(path):  # the real path of a device such as /dev/fd/63 may be no path
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
            error.filename, error.filename2 = path, None  # the name that the caller knows
        raise


def write_header(file: BinaryIO, shape: tuple[int, ...], dtype: str) -> None:
    """Write the header of a .npy file, padded so that another number of rows can be set later."""
    description = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)


def is_device(path: str) -> bool:
    """Check whether a path is a device or a pipe, whose name needs no suffix."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def check_output(path: str, suffixes: tuple[str, ...] = (), beside: tuple[str, ...] = ()) -> None:
    """Raise a TableError if a result cannot be written to `path`, or would replace another file.

    `suffixes` are the allowed ends of the name, and `beside` are the paths of other outputs."""
    if suffixes and Path(path).suffix.lower() not in suffixes:
        raise TableError(f"{path}: the name must end in {' or '.join(suffixes)}")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise TableError(f"{path}: there is no folder {folder}")
    device = is_device(path)
    if os.path.isdir(path) or not os.access(path if device else folder, os.W_OK):
        raise TableError(f"{path}: cannot be written.")
    if not device and any(_is_same(path, other) for other in beside if other != STANDARD):
        raise TableError(f"{path}: is named twice, so one file would replace the other.")


def path_of(path: Any, name: str, must: str = "a path") -> str:
    """Convert a path argument to text; raise an error if it is no path.

    `name` is the argument, and `must` says in messages what it must be."""
    if isinstance(path, bytes):
        raise TypeError(f"{name}={path!r}: must be {must}, not bytes. Pass os.fsdecode({name}).")
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name} is of type {type(path).__name__}, must be {must}.")
    text = os.fsdecode(path)
    if not text or "\0" in text:
        raise ValueError(f"{name}={text!r}: cannot be the name of a file. Pass {must}.")
    return text


def output_of(path: Any, name: str, must: str, suffixes: tuple[str, ...] = ()) -> str:
    """Convert a path argument to text; raise an error if no file can be written there."""
    text = path_of(path, name, must)
    try:
        check_output(text, suffixes)
    except ValueError as error:
        raise ValueError(f"{name}={error}") from error
    return text


def check_outputs(outputs: dict[str, Any], *inputs: Any) -> None:
    """Raise a ValueError if an output of a fit is also another output or an input.

    `outputs` are values by parameter names; values that are no paths are skipped."""
    paths = {name: path for name, path in outputs.items() if isinstance(path, str)}
    for name, path in paths.items():
        reader = "the fit reads" if any(_is_same(path, file) for file in files_of(inputs)) else ""
        for other in paths.keys() - {name}:
            reader = f"{other} names" if _is_same(path, paths[other]) else reader
        if reader:
            raise ValueError(f"{name}={path!r}: {reader} this file, too. Name another file.")


def files_of(X: Any) -> tuple[str, ...]:
    """Return the paths of the files behind a source or a memory map, or a list of them.

    Return () if there are no files."""
    if isinstance(X, (list, tuple)):
        return sum(map(files_of, X), ())
    files = getattr(X, "files", ())  # which sources, and data sets of Arrow, have
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
    """Check the parameter `labels_to`; return it as a function or as the text of a path."""
    if callable(labels_to):
        return labels_to
    path = output_of(labels_to, "labels_to", "a path or a function", (".npy", ".parquet"))
    if Path(path).suffix.lower() == ".parquet":
        arrow_module()
    return path


@contextmanager
def label_writer(labels_to: Any, n: int) -> Iterator[Callable[[Array], Any]]:
    """Yield a function that writes the labels of n rows, block by block, to a file or function.

    A file appears only when all labels are written."""
    if callable(labels_to):  # a copy, because the labels may also become `labels_`
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
    """Import a module of pyarrow, or raise an ImportError that says how to install it."""
    return optional_module(name, "Parquet files and Arrow data need pyarrow (pip install pyarrow)")

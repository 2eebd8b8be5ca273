"""Where the labels of a fit go: into an array, a file, or a function of the user."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rffpk._data.arrays import Array
from rffpk._data.files import check_output, whole_file

_SUFFIXES = (".npy", ".parquet")


class LabelSink:
    """Takes the labels of consecutive rows, block by block."""

    def __init__(self, keep: bool, write: Callable[[Array], Any] | None = None) -> None:
        self.keeps, self._write = keep, write
        self._blocks: list[Array] = []

    @property
    def wanted(self) -> bool:
        """Whether labels go anywhere."""
        return self.keeps or self._write is not None

    def __call__(self, labels: Array) -> None:
        """Take the labels of the next rows."""
        if self.keeps:
            self._blocks.append(labels)
        if self._write is not None:
            self._write(labels)

    def labels(self) -> NDArray[np.int32]:
        """All labels, if they are kept."""
        return self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks)


def check_labels_to(labels_to: Any) -> None:
    """Raise an error if labels cannot go there."""
    if labels_to is None or callable(labels_to):
        return
    if not isinstance(labels_to, (str, os.PathLike)):
        raise TypeError(
            f"labels_to is of type {type(labels_to).__name__}, must be a path or a function."
        )
    try:
        check_output(os.fspath(labels_to), _SUFFIXES)
    except ValueError as error:
        raise ValueError(f"labels_to == {error}.") from error
    if Path(labels_to).suffix.lower() == ".parquet":
        _pyarrow()


@contextmanager
def label_sink(labels_to: Any, n: int, keep: bool) -> Iterator[LabelSink]:
    """A sink of the labels of n rows that are kept, written to `labels_to`, or both; a file is
    there once all of them are."""
    if labels_to is None or callable(labels_to):
        yield LabelSink(keep, labels_to)
        return
    with whole_file(os.fspath(labels_to)) as file:
        if Path(labels_to).suffix.lower() == ".npy":
            header = {"descr": "<i4", "fortran_order": False, "shape": (n,)}
            np.lib.format.write_array_header_1_0(file, header)
            yield LabelSink(keep, lambda labels: file.write(labels.astype("<i4").tobytes()))
        else:
            with _parquet_writer(file) as write:
                yield LabelSink(keep, write)


@contextmanager
def _parquet_writer(file: BinaryIO) -> Iterator[Callable[[Array], None]]:
    arrow, parquet = _pyarrow()
    schema = arrow.schema([("label", arrow.int32())])
    with parquet.ParquetWriter(file, schema) as writer:
        yield lambda labels: writer.write_table(arrow.table({"label": labels}, schema))


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ImportError(f"Parquet files need pyarrow: {error}.") from error

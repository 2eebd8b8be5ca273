"""Checkpoints: files from which a fit goes on after it was interrupted or killed.

A fit is deterministic, given its rows, its parameters and its random numbers. So a checkpoint need
not say how far the program came. It holds the numbers that the calls of the fit have returned, in
their order, and the state, the random numbers and the history after the last call. A resumed fit
runs the code between the calls again, on a state that is out of date. It takes the results of the
calls from the file. With the last result it takes the right state.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from rffpk.anneal.hard_pass import Assignment, Bounds
from rffpk.anneal.records import Journal, State
from rffpk.anneal.schedule import History
from rffpk.rows.arrays import Array
from rffpk.rows.sample import Opened
from rffpk.rows.store import Cache, automatic_limit
from rffpk.rows.table import arrays_of
from rffpk.rows.weights import are_ones
from rffpk.system.files import output_of
from rffpk.system.report import warn
from rffpk.system.tensor_files import ModelFileError, read_tensors, write_tensors

T = TypeVar("T")

_FORMAT = "checkpoint of rffpk"
_START = 128  # the number of first bytes that contain the format of a file of tensors


class FileJournal(Journal):
    """The results of the calls of a fit, kept in a file.

    A call replaces the file if it ends `seconds` or more after the last replacement."""

    keeps = True

    def __init__(self, path: Any, seconds: float, resume: bool) -> None:
        self.path = output_of(path, "checkpoint", "a path")
        self.seconds, self.resume = seconds, resume
        self._fit: dict[str, str] = {}  # facts that distinguish this fit
        self._kept: dict[str, str] | None = None  # facts of the fit in the file
        self._numbers: list[Any] = []  # the results of all calls, in order
        self._made = 0  # number of calls of this fit
        self._stored: dict[str, Array] = {}  # the state after the last call in the file
        self._rest: dict[str, Any] = {}  # the random numbers and the history after that call
        self._inside = False  # whether a call is running; calls inside of it are not kept
        self._saved = time.monotonic()
        self._history, self._random = History(), np.random.RandomState(0)

    def open(self, fit: dict[str, str]) -> None:
        """Read the file of an interrupted fit, if it is there; `fit` has the parameters."""
        if os.path.exists(self.path) and not _is_checkpoint(self.path):
            raise ModelFileError(f"checkpoint={self.path!r}: is no checkpoint. Name another file.")
        if self.resume and os.path.exists(self.path):
            self._read()
        self._add(fit)

    def cache(self, given: Cache) -> Cache:
        """Return the parameter `cache`; replace "auto" by a limit in bytes, if known from the file.

        Whether features are stored changes their last bits, so the limit must stay."""
        if given != "auto":
            return given
        self._fit[_LIMIT] = (self._kept or {}).get(_LIMIT) or str(automatic_limit())
        return int(self._fit[_LIMIT])

    def begin(self, history: History, random: Any, rows: Opened, *computed: Any) -> None:
        """Check that the rows are the rows of the checkpoint, before the first call.

        `computed` are numbers from features of the rows."""
        self._history, self._random = history, random
        self._add(_of_rows(rows, *computed))
        if self._kept is None:  # resume=False
            with suppress(FileNotFoundError):
                os.unlink(os.path.realpath(self.path))

    def run(
        self, call: Callable[..., tuple[State, T]], state: State, *arguments: Any
    ) -> tuple[State, T]:
        """Make a call and keep its result, or take the result from the file.

        Results are taken from the file in order, with a state that is out of date. The last result
        in the file comes with the state after its call. Calls inside of a call are only made.
        Return the state and the result."""
        if self._inside:
            return call(state, *arguments)
        self._made += 1
        if self._made <= len(self._numbers):
            if self._made == len(self._numbers):
                state = self._restored()
            return state, self._numbers[self._made - 1]
        self._inside = True
        state, numbers = call(state, *arguments)
        self._inside = False
        self._numbers.append(numbers)
        if time.monotonic() - self._saved >= self.seconds:
            self._write(state)
            self._saved = time.monotonic()
        return state, numbers

    def _write(self, state: State) -> None:
        """Write the results of all calls to the file, with the state after the last call."""
        rest = {
            "numbers": self._numbers,
            "history": self._history.records,
            "random": self._random.get_state(legacy=False),
        }
        arrays = {"rest": json_bytes(rest), **arrays_of_record(state)}
        try:
            write_tensors(self.path, {"format": _FORMAT, "fit": json.dumps(self._fit)}, arrays)
        except OSError as error:
            warn(f"the fit goes on without a new checkpoint: {error}.", UserWarning)

    def remove(self) -> None:
        """Remove the file after a fit."""
        with suppress(OSError):  # a file that stays does no harm: it is of the same fit
            os.unlink(os.path.realpath(self.path))  # a link stays, and the next fit writes there

    def _read(self) -> None:
        """Read the results, the state and the fingerprint of the interrupted fit."""
        try:
            metadata, self._stored = read_tensors(self.path)
        except ModelFileError as error:
            raise ModelFileError(f"checkpoint {self.path}: {error} {_REMEDY}") from error
        self._kept = json.loads(metadata["fit"])
        self._rest = json.loads(self._stored.pop("rest").tobytes())
        self._numbers = self._rest["numbers"]

    def _add(self, fit: dict[str, str]) -> None:
        """Add facts that distinguish this fit; raise an error if the file has different facts."""
        for name, given in fit.items():
            if self._kept is not None and (kept := self._kept.get(name)) != given:
                raise ValueError(
                    f"checkpoint {self.path} is of another fit: {name} was {kept}, is {given}. "
                    f"{_REMEDY}"
                )
        self._fit |= fit

    def _restored(self) -> State:
        """Return the state after the last call in the file; restore history and random numbers."""
        records = self._history.records
        records[:] = self._rest["history"]
        for record in records:
            if "kernel_weights" in record:
                record["kernel_weights"] = np.array(record["kernel_weights"])
        self._random.set_state(self._rest["random"])
        state: State = record_of(State, self._stored)
        self._stored, self._rest = {}, {}
        if self._history.progress is not None:
            self._history.progress.say(
                f"The fit goes on from {self.path}, after {self._made} steps."
            )
        return state


# ---- records as arrays ---------------------------------------------------------------------------

_RECORDS = {"best": State, "assigned": Assignment, "bounds": Bounds}


def arrays_of_record(record: Any, prefix: str = "") -> dict[str, Array]:
    """Return the fields of a record, and of the records in it, as arrays by name."""
    arrays = dict[str, Array]()
    for name in record._fields if isinstance(record, State) else vars(record):
        value = getattr(record, name)
        if name in _RECORDS and value is not None:
            arrays |= arrays_of_record(value, f"{prefix}{name}.")
        elif value is not None:
            arrays[prefix + name] = np.asarray(value)
    return arrays


def record_of(cls: type[Any], arrays: dict[str, Array]) -> Any:
    """Return the record of a class whose fields were written by `arrays_of_record`.

    The name "a.b" is the field b of the record in the field a."""
    # arrays without dimensions were numbers
    values = {n: x if x.ndim else x.item() for n, x in arrays.items() if "." not in n}
    for name in {name.partition(".")[0] for name in arrays.keys() - values.keys()}:
        parts = {
            n.removeprefix(f"{name}."): x for n, x in arrays.items() if n.startswith(f"{name}.")
        }
        values[name] = record_of(_RECORDS[name], parts)
    return cls(**values)


def _is_checkpoint(path: str) -> bool:
    """Return whether a file begins like a checkpoint, so that it may be replaced if damaged."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return f'"format":"{_FORMAT}"'.encode() in file.read(_START)


_REMEDY = "resume=False begins anew and replaces it."
_LIMIT = "memory limit where none is given"  # a fact that resumed fits keep


# ---- what distinguishes fits ---------------------------------------------------------------------


def _of_rows(sample: Opened, *computed: Any) -> dict[str, str]:
    """Return facts that distinguish the rows of a fit, as texts by name.

    This takes at most one pass over the rows. `computed` are numbers from features of the rows,
    whose bits depend on the processor and on libraries."""
    xs, _ = sample.some()
    first = [sample.shape.views.index(i) for i in range(len(xs))]  # the first view of each table
    return {
        "number of rows": str(sample.n),
        "number of columns": str([x.shape[1] for x in xs]),
        "dtype of X": str(xs[0].dtype),
        "digest of sample_weight": "None" if are_ones(sample.weight) else digest(sample.weight),
        "digest of some rows of X": digest(*xs),
        "digest of the column means of X": digest(*(sample.moments(i).mean for i in first)),
        "digest of the features by this processor and these libraries": digest(*computed),
    }


def json_bytes(value: Any) -> Array:
    """Return numbers, arrays, and dicts and lists of numbers as JSON, in an array of bytes."""
    text = json.dumps(value, default=lambda array: array.tolist())
    return np.frombuffer(text.encode(), np.uint8)


def digest(*values: Any) -> str:
    """Return a checksum of numbers and arrays, of their dtypes and of their shapes, in hex."""
    checksum = hashlib.blake2b(digest_size=8)
    for part in (part for value in values for part in arrays_of(value)):
        array = np.ascontiguousarray(part)
        checksum.update(f"{array.dtype} {array.shape}".encode())
        checksum.update(array.data)
    return checksum.hexdigest()

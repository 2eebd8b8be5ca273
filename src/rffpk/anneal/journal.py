"""Checkpoints: files from which a fit goes on after it was interrupted or killed.

A fit is deterministic, given its rows, its parameters and its random numbers. So a checkpoint holds
no place in the program, but the results that decide its course, those of passes and swaps in their
order, and the centroids, random numbers and history after the last of them. A fit that goes on does
everything in between again, and takes those results from the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from rffpk.estimators.bases import BaseEstimator
from rffpk.rows.arrays import Array
from rffpk.rows.sample import Opened
from rffpk.rows.store import Cache, automatic_limit
from rffpk.rows.table import arrays_of
from rffpk.rows.weights import are_ones
from rffpk.system.config import __version__
from rffpk.system.files import output_of
from rffpk.system.report import warn
from rffpk.system.tensor_files import ModelFileError, read_tensors, write_tensors

_FORMAT = "checkpoint of rffpk"
_START = 128  # bytes, which contain the format of a file of tensors

# Parameters on which the result of a fit does not depend.
_FREE = {"n_jobs", "verbose"}


class Checkpoint:
    """The steps of a fit, kept in a file that a step replaces after `seconds` or more. The `state`
    of a run over features is what steps change, and `restore` sets it."""

    def __init__(self, path: Any, seconds: float, resume: bool) -> None:
        self.path, self.seconds, self.resume = (
            output_of(path, "checkpoint", "a path"),
            seconds,
            resume,
        )
        self._fit: dict[str, str] = {}  # what distinguishes this fit
        self._kept: dict[str, str] | None = None  # the same, of the fit in the file
        self._state: dict[str, Any] = {}  # after the last step in the file, with ...
        self._arrays: dict[str, Array] = {}  # ... what the runs had changed
        self._results: list[Any] = []
        self._taken = 0  # number of results that are known in this fit
        self._runs: dict[int, Any] = {}  # by number
        self._inside = False  # of a step
        self._saved = time.monotonic()

    def open(self, model: BaseEstimator, random: Any) -> None:
        """Before a fit: read what was kept of one with the same parameters."""
        fit = _of_model(model, random)
        if os.path.exists(self.path) and not _is_checkpoint(self.path):
            raise ModelFileError(f"checkpoint={self.path!r}: is no checkpoint. Name another file.")
        if self.resume and os.path.exists(self.path):
            self._read()
        self._add(fit)

    def cache(self, given: Cache) -> Cache:
        """The parameter, with the limit of stored features if it is automatic: whether they are
        stored changes their last bits."""
        if given != "auto":
            return given
        self._fit[_LIMIT] = (self._kept or {}).get(_LIMIT) or str(automatic_limit())
        return int(self._fit[_LIMIT])

    def begin(self, sample: Opened, *found: Any) -> None:
        """Before the first step: compare what distinguishes the rows."""
        self._add(_of_rows(sample, *found))
        if self._kept is None:  # resume=False
            with suppress(FileNotFoundError):
                os.unlink(os.path.realpath(self.path))

    def result(self, run: Any, step: Callable[[], Any]) -> Any:
        """The result of a step, which consists of numbers, None and lists of these, and may change
        the state of the run and nothing else. A step inside of a step is a part of it."""
        if self._inside:
            return step()
        self._runs[run.number] = run
        self._taken += 1
        if self._taken <= len(self._results):
            if self._taken == len(self._results):
                self._restore(run)
            return self._results[self._taken - 1]
        self._inside = True
        self._results.append(step())
        self._inside = False
        if time.monotonic() - self._saved >= self.seconds:
            self.save(run)
            self._saved = time.monotonic()
        return self._results[-1]

    def save(self, run: Any) -> None:
        """Replace the file; `run` made the last step."""
        state = {
            "results": self._results,
            "history": run.context.history.records,
            "random": run.context.random.get_state(legacy=False),
        }
        arrays = {"state": _bytes(state)}
        for number, each in self._runs.items():
            arrays |= {f"{number}.{name}": array for name, array in each.state().items()}
        try:
            write_tensors(self.path, {"format": _FORMAT, "fit": json.dumps(self._fit)}, arrays)
        except OSError as error:
            warn(f"the fit goes on without a new checkpoint: {error}.", UserWarning)

    def remove(self) -> None:
        """After a fit."""
        with suppress(OSError):  # a file that stays does no harm: it is of the same fit
            os.unlink(os.path.realpath(self.path))  # a link stays, and the next fit writes there

    def _read(self) -> None:
        try:
            metadata, self._arrays = read_tensors(self.path)
        except ModelFileError as error:
            raise ModelFileError(f"checkpoint {self.path}: {error} {_REMEDY}") from error
        self._kept = json.loads(metadata["fit"])
        self._state = json.loads(self._arrays.pop("state").tobytes())
        self._results = self._state["results"]

    def _add(self, fit: dict[str, str]) -> None:
        """Add to what distinguishes this fit, or raise an error if the file is of another one."""
        for name, given in fit.items():
            if self._kept is not None and (kept := self._kept.get(name)) != given:
                raise ValueError(
                    f"checkpoint {self.path} is of another fit: {name} was {kept}, is {given}. "
                    f"{_REMEDY}"
                )
        self._fit |= fit

    def _restore(self, run: Any) -> None:
        """Set what the last step in the file left, of which `run` made the last one."""
        history = run.context.history
        history.restore(self._state["history"])
        run.context.random.set_state(self._state["random"])
        for number, each in self._runs.items():
            parts = (name.partition(".") for name in self._arrays)
            each.restore(
                {name: self._arrays[f"{n}.{name}"] for n, _, name in parts if n == str(number)}
            )
        self._state, self._arrays = {}, {}
        if history.progress is not None:
            history.progress.say(f"The fit goes on from {self.path}, after {self._taken} steps.")


def _is_checkpoint(path: str) -> bool:
    """Return whether a file begins like a checkpoint: it may be replaced even if it is damaged."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return f'"format":"{_FORMAT}"'.encode() in file.read(_START)


_REMEDY = "resume=False begins anew and replaces it."
_LIMIT = "memory limit where none is given"  # of all fits with the same file


# ---- what distinguishes fits ---------------------------------------------------------------------


def _of_rows(sample: Opened, *computed: Any) -> dict[str, str]:
    """Return what distinguishes the rows of a fit, at the cost of a pass at most. `computed` is
    from features of the rows: its bits depend on the processor and on libraries."""
    xs, _ = sample.some()
    first = [sample.shape.views.index(i) for i in range(len(xs))]  # the views of the tables
    return {
        "number of rows": str(sample.n),
        "number of columns": str([x.shape[1] for x in xs]),
        "dtype of X": str(xs[0].dtype),
        "digest of sample_weight": "None" if are_ones(sample.weight) else _digest(sample.weight),
        "digest of some rows of X": _digest(*xs),
        "digest of the column means of X": _digest(*(sample.moments(i).mean for i in first)),
        "digest of the features by this processor and these libraries": _digest(*computed),
    }


def _of_model(model: BaseEstimator, random: Any) -> dict[str, str]:
    """The version, the class and the parameters. Raises a ValueError if the random numbers of a fit
    cannot be drawn again."""
    parameters = model.get_params(deep=False)
    seed = parameters["random_state"]
    if seed is None:
        raise ValueError(
            "checkpoint needs a random_state: a fit that goes on must draw the same random numbers."
        )
    if isinstance(seed, np.random.RandomState):
        parameters["random_state"] = _bytes(random.get_state(legacy=False))
    return {"rffpk version": __version__, "class": type(model).__name__, **_texts(parameters)}


def _texts(parameters: dict[str, Any]) -> dict[str, str]:
    """What distinguishes the values of the parameters that results depend on."""
    return {name: _text(value) for name, value in parameters.items() if name not in _FREE}


def _text(value: Any) -> str:
    """What distinguishes the value of a parameter."""
    if isinstance(value, BaseEstimator):
        return f"{type(value).__name__}({_text(value.get_params(deep=False))})"
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in _texts(value).items())
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if hasattr(value, "__array__") and np.ndim(value):
        array = np.asarray(value)
        return f"an array {_digest(array)}" if array.dtype.kind in "biuf" else repr(array.tolist())
    if callable(value):
        raise ValueError(
            "checkpoint cannot compare functions: set init to an array of centroids, or to the "
            "name of a method."
        )
    return repr(value)


def _bytes(value: Any) -> Array:
    """Numbers, arrays, and dicts and lists of these as JSON, in an array of bytes."""
    text = json.dumps(value, default=lambda array: array.tolist())
    return np.frombuffer(text.encode(), np.uint8)


def _digest(*values: Any) -> str:
    """A checksum of numbers and arrays."""
    digest = hashlib.blake2b(digest_size=8)
    for part in (part for value in values for part in arrays_of(value)):
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()

"""Warnings that name the line of the user's code, and errors that name a missing package."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Frames of these packages are skipped: this one, and those that wrap methods of estimators or call
# them in searches over parameters.
_SKIPPED = ("rffpk", "sklearn", "joblib")

_unwanted: ContextVar[tuple[type[Warning], ...]] = ContextVar("_unwanted", default=())


@contextmanager
def without(category: type[Warning]) -> Iterator[None]:
    """In this context `warn` gives no warnings of this category. A filter of `warnings` would hold
    in all threads."""
    token = _unwanted.set((*_unwanted.get(), category))
    try:
        yield
    finally:
        _unwanted.reset(token)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the innermost caller outside this package, scikit-learn and joblib.

    It must be called in the thread of the caller: the stack of a worker thread has no such frame.
    """
    if issubclass(category, _unwanted.get()):
        return
    frame, level = inspect.currentframe(), 1
    while frame and str(frame.f_globals.get("__name__")).partition(".")[0] in _SKIPPED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def optional_module(name: str, why: str) -> Any:
    """A module of a package that may be missing: then an ImportError says why it is needed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{why}: {error}.") from error

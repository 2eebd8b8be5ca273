"""What a fit says: warnings, errors that name a missing package, and its progress.

Warnings name the line of the user's code. Progress goes to people by a line, to the logger
"rffpk", and to scikit-learn's callbacks.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import math
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

# Frames of these packages are skipped: this package, and packages that wrap methods of estimators
# or call them in searches over parameters.
_SKIPPED = ("rffpk", "sklearn", "joblib")

_unwanted: ContextVar[tuple[type[Warning], ...]] = ContextVar("_unwanted", default=())


@contextmanager
def without(category: type[Warning]) -> Iterator[None]:
    """Suppress warnings of a category from `warn` inside this context.

    A filter of `warnings` would hold in all threads."""
    token = _unwanted.set((*_unwanted.get(), category))
    try:
        yield
    finally:
        _unwanted.reset(token)


def are_wanted(category: type[Warning]) -> bool:
    """Return whether `warn` gives warnings of a category in this context."""
    return not issubclass(category, _unwanted.get())


def warn(message: str, category: type[Warning]) -> None:
    """Warn, with the line of the innermost caller outside this package, scikit-learn and joblib.

    Call it in the thread of the caller: the stack of a worker thread has no such frame."""
    if not are_wanted(category):
        return
    frame, level = inspect.currentframe(), 1
    while frame and str(frame.f_globals.get("__name__")).partition(".")[0] in _SKIPPED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def optional_module(name: str, why: str) -> Any:
    """Import an optional module; if it is missing, raise an ImportError that begins with `why`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{why}: {error}.") from error


# ---- progress ------------------------------------------------------------------------------------

LOGGER = logging.getLogger("rffpk")
LOGGER.addHandler(logging.NullHandler())


class Progress:
    """Reports the passes or iterations of a fit, as the parameter `verbose` of a model says."""

    def __init__(self, estimator: Any, name: str, verbose: int, task: Any = None) -> None:
        """Begin a report. `name` begins its lines, and callbacks get `estimator` and `task`."""
        self._estimator, self._name, self._verbose, self._task = estimator, name, verbose, task
        self._logged = LOGGER.isEnabledFor(logging.DEBUG)
        self._begun = self._last_end = self._last_shown = time.perf_counter()
        self._unshown: dict[str, Any] | None = None  # the last record, if it has not been shown
        self._ended = 0
        self._bar: Any = None
        self.n_starts = 1
        self.later: list[int] = []  # sizes of the samples that are fitted after the starts

    def passed(self, record: dict[str, Any]) -> None:
        """Report a pass or an iteration to callbacks, the logger and the terminal.

        `record` is its entry in `history_`."""
        if self._task is not None:  # for callbacks, a pass is a task that begins and ends here
            task = self._task.subcontext(task_name=record["stage"])
            task.call_on_fit_task_begin(estimator=self._estimator)
            task.call_on_fit_task_end(estimator=self._estimator, metadata={"record": record})
        if self._logged:
            LOGGER.debug("%s", self._line(record))
        if self._verbose:
            self._show(record)

    def start_ended(self) -> None:
        """Count a start that has ended."""
        self._ended += 1
        self._last_end = time.perf_counter()

    def say(self, text: str) -> None:
        """Log a line about the result, and print it if `verbose` is set."""
        LOGGER.info("%s: %s", self._name, text)
        if self._verbose:
            self._leave_line()
            print(text)

    def close(self) -> None:
        """Show the last pass, unless it has been shown."""
        if self._unshown is not None:
            print(self._line(self._unshown))
            self._unshown = None
        self._leave_line()

    def _leave_line(self) -> None:
        """Close the progress bar, so that its last line stays on the terminal."""
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()
            self._bar = None

    def _line(self, record: dict[str, Any]) -> str:
        """Return the text of a record: stage, objective, rate, elapsed and estimated time."""
        rows, seconds, now = record["rows"], record["seconds"], time.perf_counter()
        rate = rows / seconds if seconds > 0 else math.inf
        parts = [record["stage"], f"objective={record['objective']:.8g}"]
        if record["s"] is not None:  # a pass of an annealed fit, not an iteration of another method
            start = f"start {record['start'] + 1}/{self.n_starts}"
            parts = [start, parts[0], f"s={record['s']:.4g}", parts[1]]
        parts += [f"{rate:.2g} rows/s", f"{_clock(now - self._begun)} elapsed"]
        left = self._left(rows, rate, now)
        if round(left) and record["stage"] != "swap":  # nobody knows how many swaps there will be
            parts.append(f"about {_clock(left)} left")
        return f"{self._name}: {', '.join(parts)}"

    def _left(self, rows: int, rate: float, now: float) -> float:
        """Estimate the seconds left from the mean time of ended starts; 0 before the first ends."""
        if not self._ended:
            return 0.0
        # samples that are still to be fitted: all of them while starts run, else the larger samples
        later = [n for n in self.later if n > rows or self._ended < self.n_starts]
        mean = (self._last_end - self._begun) / self._ended
        starts = mean * (self.n_starts - self._ended) - (now - self._last_end)
        return max(starts, 0.0) + 5 * sum(later) / rate  # about five passes over each later sample

    def _show(self, record: dict[str, Any]) -> None:
        """Show a record: update the progress bar or print a line.

        There is a bar only with verbose=1, on a terminal, with tqdm. Without a bar, verbose=1
        prints at most one line every few seconds, and larger numbers print all lines."""
        if self._verbose == 1 and self._bar is None:
            self._bar = _bar()
        now = time.perf_counter()
        if self._bar is not None:
            self._bar.set_description_str(self._line(record), refresh=False)
            self._bar.update()
        elif self._verbose > 1 or now - self._last_shown >= 5.0:  # seconds
            print(self._line(record))
            self._last_shown, self._unshown = now, None
        else:
            self._unshown = record


def _bar() -> Any:
    """Return a progress bar of tqdm, or None without a terminal or without tqdm."""
    if sys.stdout is None or not sys.stdout.isatty():  # None: it is closed
        return None
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return None
    return tqdm(bar_format="{desc}", file=sys.stdout, dynamic_ncols=True)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))

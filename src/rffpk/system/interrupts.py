"""Long calls of libraries that Ctrl-C ends the wait for."""

from __future__ import annotations

import _thread
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar, cast

from rffpk.system.tuning import TUNING

Result = TypeVar("Result")


def interruptible(work: float, function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function, in a thread of its own if it takes many multiply-adds (`work`).

    Python handles signals in the main thread, between its own instructions: a long call of a
    library there keeps Ctrl-C waiting until it returns. So the main thread waits for another
    thread instead. An exception of a signal's handler ends the wait; the call goes on until it
    ends by itself, and its result is dropped. `function` must release the interpreter's lock,
    and nobody else may write to its arguments, or read what it writes to."""
    if work < TUNING.linalg.long_work or threading.get_ident() != threading.main_thread().ident:
        return function(*arguments)
    handover: Handover[tuple[Result, None] | tuple[None, BaseException]] = Handover()
    context = copy_context()

    def run() -> None:
        try:
            handover.give((context.run(function, *arguments), None))
        except BaseException as error:
            handover.give((None, error))

    try:
        handover.start(run)
    except RuntimeError:  # no memory for the stack of a thread
        return function(*arguments)
    result, error = handover.take()
    if error is not None:
        raise error
    return cast(Result, result)


class Handover(Generic[Result]):
    """Items that a thread of its own gives and another thread takes, in turn."""

    def __init__(self) -> None:
        self._items: deque[Result] = deque()
        # A lock, since a queue of Python may ignore its timeout where a signal comes at its end.
        self._empty = threading.Lock()
        self._empty.acquire()

    def start(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function in a new thread, for which the end of the process does not wait.

        `threading.Thread.start` waits until the thread has begun: for ever, in most versions of
        Python, where that lacks the memory for its first lines.
        """
        call = partial(_traced, function, *arguments)
        self._process, self._call = os.getpid(), weakref.ref(call)  # which the thread alone keeps
        _thread.start_new_thread(call, ())

    def give(self, item: Result) -> None:
        """Pass an item on, once the item before it has been taken."""
        self._items.append(item)
        self._empty.release()

    def take(self) -> Result:
        """Return the next item; Ctrl-C ends the wait.

        Raises
        ------
        MemoryError
            If the thread has ended without one, as it lacked memory.
        RuntimeError
            If this is a forked process, without the thread.
        """
        while not self._empty.acquire(timeout=TUNING.linalg.wake_seconds):
            if os.getpid() != self._process:
                raise RuntimeError(
                    "a signal handler forked the process inside a call: the child lacks its thread."
                )
            if self._call() is None and not self._items:
                raise MemoryError("a thread ran out of memory.")
        return self._items.popleft()


def _traced(function: Callable[..., None], *arguments: object) -> None:
    """Make a call that debuggers and profilers see as they see `threading.Thread`."""
    sys.settrace(threading.gettrace())
    sys.setprofile(threading.getprofile())
    function(*arguments)

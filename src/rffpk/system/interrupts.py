"""Long calls of libraries: Ctrl-C ends the wait for their results."""

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
    """Call a function so that Ctrl-C can interrupt the wait for it; return its result.

    `work` is the number of multiply-adds; calls with little work run directly. Python handles
    signals in the main thread, between its own instructions, so a long library call there delays
    Ctrl-C. The call therefore runs in another thread, for which the main thread waits. After an
    exception of a signal handler, the call goes on until it ends, and its result is dropped.
    `function` must release the interpreter's lock. Nobody else may write to its arguments, or read
    what it writes to."""
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
    except RuntimeError:  # there is no memory for the stack of a thread
        return function(*arguments)
    result, error = handover.take()
    if error is not None:
        raise error
    return cast(Result, result)


class Handover(Generic[Result]):
    """A queue from one thread that gives items to another thread that takes them, one by one."""

    def __init__(self) -> None:
        self._items: deque[Result] = deque()
        # A lock: a queue of Python may ignore its timeout if a signal comes when the time is over.
        self._empty = threading.Lock()
        self._empty.acquire()

    def start(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function in a new daemon thread: the end of the process does not wait for it.

        `threading.Thread.start` waits until the thread has begun. In most versions of Python it
        waits forever if memory is too short for the first lines of the thread."""
        call = partial(_traced, function, *arguments)
        # Only the thread keeps `call`: the reference is dead once the thread has ended.
        self._process, self._call = os.getpid(), weakref.ref(call)
        _thread.start_new_thread(call, ())

    def give(self, item: Result) -> None:
        """Add an item for the other thread. Call it only after the item before has been taken."""
        self._items.append(item)
        self._empty.release()

    def take(self) -> Result:
        """Wait for the next item and return it. Ctrl-C ends the wait.

        Raises
        ------
        MemoryError
            If the thread has ended without giving an item, because it lacked memory.
        RuntimeError
            If this is a forked process, which lacks the thread."""
        while not self._empty.acquire(timeout=TUNING.linalg.wake_seconds):
            if os.getpid() != self._process:
                raise RuntimeError(
                    "a signal handler forked the process inside a call: the child lacks its thread."
                )
            if self._call() is None and not self._items:
                raise MemoryError("a thread ran out of memory.")
        return self._items.popleft()


def _traced(function: Callable[..., None], *arguments: object) -> None:
    """Call a function with the tracing and profiling that `threading` has set for its threads."""
    sys.settrace(threading.gettrace())
    sys.setprofile(threading.getprofile())
    function(*arguments)

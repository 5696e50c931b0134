"""Signals that ask a run to stop: raised as KeyboardInterrupt, or only noted during a run.

If a signal handler raises an exception inside a callback of another library, that library may print and ignore it,
and partial results may be lost. A run therefore checks whether a signal was noted, and stops at a convenient point.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: Seconds after which a signal that no code has reacted to ends the process.
UNHEARD = 1.5

#: Seconds after which a signal that came inside a callback is sent again.
LATER = 0.05
#: Functions that libraries call in a way in which an exception is printed and ignored, by the ends of their files'
#: names: those of numba's compiler, of dictionaries with weak references, and of locks of imports.
SWALLOWING = (
    (os.path.join("llvmlite", "binding", "executionengine.py"), "_raw_object_cache_"),
    (f"{os.sep}weakref.py", "remove"),
    ("<frozen importlib._bootstrap>", "cb"),
)

#: The signal of a terminal that is closed; Windows has none.
HANGUP = getattr(signal, "SIGHUP", None)
#: Signals that ask a run to stop.
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([HANGUP] if HANGUP else []))

#: Name of the thread that ends the process then.
GUARD = "milpbn-signals"

_noted = threading.Event()
_raised = threading.Event()
#: Number of signals that were raised, or were noted and then seen by `requested`.
_heard = 0
#: Whether `requested` has seen the noted signal.
_answered = threading.Event()
#: The signal that is to be sent again, 0 for none, and whether there is a guard, which sends it.
_postponed, _guarded = 0, False
#: Number of nested `deferred` blocks that are active, and of `saving` blocks.
_depth = _saving = 0


def install() -> None:
    """Make `SIGNALS` interrupt this process as the module describes; call it in the main thread."""
    _raised.clear()
    for number in SIGNALS:
        if number != HANGUP or signal.getsignal(number) != signal.SIG_IGN:  # as nohup does
            signal.signal(number, _interrupt)


def ignore(*numbers: signal.Signals) -> None:
    """Ignore signals in this process from now on, also while the interpreter ends, when Python's handlers are gone."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def handled() -> Iterator[None]:
    """Make Ctrl-C interrupt as the module describes within this block, where Python's own handler would raise.

    It is for calls from a notebook or an interpreter. In other threads than the main thread, and where the program has
    a handler of its own, it does nothing.
    """
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _raised.clear()  # a later command of this process is about other work


def guard() -> None:
    """Start a thread that ends this process if no code reacts to a signal within `UNHEARD` seconds.

    It is meant for a command line. The interpreter calls a signal handler only between two of its own instructions,
    and so not during a long call of compiled code. Work that defers signals may also not check for them in time.
    """
    global _guarded
    receive, send = os.pipe()
    os.set_blocking(send, False)
    signal.set_wakeup_fd(send, warn_on_full_buffer=False)

    def wait() -> None:
        number = 0
        while True:
            received = os.read(receive, 1)
            if not received:
                return
            if received[0] not in SIGNALS:
                continue
            number += 1
            end = time.monotonic() + UNHEARD
            while time.monotonic() < end:
                time.sleep(LATER)
                if _send_again():
                    break
            if _heard < number:
                with suppress(OSError):  # the terminal may be gone
                    os.write(2, b"Error: Interrupted before there was anything to keep.\n")
                os._exit(130)

    threading.Thread(target=wait, name=GUARD, daemon=True).start()
    _guarded = True


def _send_again() -> bool:
    """Send the signal that was postponed, if there is one."""
    global _postponed
    number, _postponed = _postponed, 0
    if number:
        os.kill(os.getpid(), number)
    return number != 0


def requested() -> bool:
    """Return whether a signal was noted in the current `deferred` block."""
    global _heard
    if not _noted.is_set():
        return False
    if not _answered.is_set():
        _answered.set()
        _heard += 1
    return True


def note() -> None:
    """Note a signal in the current `deferred` block of this process, if there is one, as if it had come."""
    if _depth > 0:
        _noted.set()


def raised() -> bool:
    """Return whether a signal has been raised as KeyboardInterrupt; later errors may follow from it.

    It counts since `install`, or until the `handled` block that it ended is over.
    """
    return _raised.is_set()


@contextmanager
def deferred() -> Iterator[None]:
    """Only note the first signal within this block; a second signal raises KeyboardInterrupt.

    Blocks may be nested, for example in a comparison that runs one search after another. The signal stays noted until
    the outermost block ends.
    """
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            _noted.clear()


@contextmanager
def saving() -> Iterator[None]:
    """Let the first signal change nothing within this block; a second signal raises KeyboardInterrupt.

    It is for the end of a run, when the work is done and its files are written.
    """
    global _saving
    with deferred():
        _saving += 1
        try:
            yield
        finally:
            _saving -= 1


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _heard, _postponed
    if number == HANGUP:  # a closed terminal sends it more than once
        ignore(HANGUP)
        number = signal.SIGTERM
    if _depth > 0 and not _noted.is_set():
        _answered.clear()
        _noted.set()
        if _saving > 0:
            requested()
    elif _guarded and _swallowed(frame):
        _heard += 1
        _postponed = number
    else:
        _heard += 1
        _raised.set()
        raise KeyboardInterrupt


def _swallowed(frame: FrameType | None) -> bool:
    """Return whether an exception that is raised now would end in a callback that ignores it."""
    while frame is not None:
        code = frame.f_code
        if any(
            code.co_filename.endswith(file) and code.co_name.startswith(name) for file, name in SWALLOWING
        ):
            return True
        frame = frame.f_back
    return False

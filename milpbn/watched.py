"""Work in a thread of its own, so that signals, progress and the time limit do not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from milpbn.session import Session

#: What has not stopped this many seconds after it was told to is left behind.
GRACE = 1.0


def run_watched(
    work: Callable[[], None], session: Session, tick: Callable[[], None], *, name: str, ends: bool
) -> BaseException | None:
    """Do something in a thread until it ends, or until `GRACE` after the session has stopped.

    Parameters
    ----------
    work : callable
        What to do.
    session : Session
        Says when to stop; Ctrl-C stops it, and a second one leaves the thread behind at once.
    tick : callable
        Called a few times per second, and whenever the session changed.
    name : str
        The thread's name.
    ends : bool
        The work ends by itself, sooner or later: the end of the process waits for it. Kernels may be compiling in it,
        and would not survive the end of the interpreter.

    Returns
    -------
    BaseException or None
        What the work raised.
    """
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # handed to the thread that waits
            failure.append(error)
        finally:
            session.changed.set()

    thread = threading.Thread(target=guarded, name=name, daemon=not ends)
    thread.start()
    told = None
    while thread.is_alive():
        try:
            session.changed.wait(0.2)
            session.changed.clear()
            tick()
            # Coalesce: many changes at once give one line.
            thread.join(0.05)
        except KeyboardInterrupt:
            if session.stopped == "user":
                break
            session.stop("user")
        if session.stopping():
            told = told or time.monotonic()
            if time.monotonic() - told > GRACE:
                break
    return failure[0] if failure else None

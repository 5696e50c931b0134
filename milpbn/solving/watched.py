"""Runs work in a thread of its own, so that signals, progress and the time limit do not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from milpbn.claims.reasons import Limit
from milpbn.solving.state import Session
from milpbn.util import clock


def run_watched(
    work: Callable[[], None], session: Session, tick: Callable[[], None], *, name: str, ends: bool
) -> BaseException | None:
    """Run a function in a thread, and wait until it ends or until `clock.GRACE` seconds after the session stopped.

    A thread that has not ended by then keeps running, and nobody waits for it.

    Parameters
    ----------
    work : callable
        The function.
    session : Session
        Says when to stop. Ctrl-C stops it; a second Ctrl-C ends the waiting at once.
    tick : callable
        Called a few times per second, and whenever the session changed.
    name : str
        The thread's name.
    ends : bool
        Whether the work ends by itself, sooner or later. If so, the process does not end before the thread: compiling
        a kernel in it would crash when the interpreter ends.

    Returns
    -------
    BaseException or None
        The exception that the work raised.
    """
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # returned by the thread that waits
            failure.append(error)
        finally:
            session.changed.set()

    thread = threading.Thread(target=guarded, name=name, daemon=not ends)
    thread.start()
    stopped_at = None
    while thread.is_alive():
        try:
            session.changed.wait(0.2)
            session.changed.clear()
            tick()
            # Many changes in a short time give one progress line.
            thread.join(0.05)
        except KeyboardInterrupt:
            if session.stopped is Limit.USER:
                break
            session.stop(Limit.USER)
        if session.stopping():
            stopped_at = stopped_at or time.monotonic()
            if time.monotonic() - stopped_at > clock.GRACE:
                break
    return failure[0] if failure else None

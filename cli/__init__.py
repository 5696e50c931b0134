"""The command line: a thin layer over the Python API, one module per verb.

Modules here import NumPy, and everything that needs it, only inside the functions that do the work, so that
``--help`` appears at once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from typing import NoReturn

from milpbn.errors import BoundWarning, DataWarning, MilpbnWarning
from milpbn.util import interrupts
from milpbn.util.progress_line import LINE

#: Seconds that a solver gets, after it was told to stop, to remove its files before the process ends.
SHUTDOWN_GRACE = 0.5


def main() -> NoReturn:
    """Run ``milpbn`` on the arguments of this process and end the process with its exit code.

    The time limit counts from this call. SIGTERM and SIGHUP do the same as Ctrl-C: the best structure so far is kept.
    """
    started = time.monotonic()
    interrupts.install()
    interrupts.guard()
    try:
        from milpbn.cli.app import app
        from milpbn.cli.streams import flush_streams, prepare_streams
    except KeyboardInterrupt:
        os._exit(130)
    prepare_streams()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # the user can do nothing about warnings of other libraries
        warnings.simplefilter("always", MilpbnWarning)
        for category in (DataWarning, BoundWarning):  # the verbs print the same sentences as notes
            warnings.simplefilter("ignore", category)
        warnings.showwarning = _show_warning
    try:
        code = app.run(obj=started)
        interrupts.ignore(*interrupts.SIGNALS)  # the work is done, and its exit code stands
        flush_streams()
    except KeyboardInterrupt:  # a second signal, while the first one was answered
        os._exit(130)
    _end(code)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    LINE.keep(f"Warning: {message}")


def _end(code: int) -> NoReturn:
    """End the process, even if a solver that ignores requests to stop still runs in a thread."""
    deadline = time.monotonic() + SHUTDOWN_GRACE
    others = [
        t for t in threading.enumerate() if t is not threading.current_thread() and t.name != interrupts.GUARD
    ]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in others):
        from milpbn.util.scratch import remove_all

        remove_all()
        os._exit(code)  # an ordinary exit would destroy the interpreter while the solver still uses it
    sys.exit(code)

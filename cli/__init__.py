"""The command line: a thin layer over the Python API, one module a verb.

Modules here import NumPy and everything that needs it inside the functions that do the work, so that help
appears at once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from typing import NoReturn

from milpbn import interrupts
from milpbn.errors import MilpbnWarning

#: Seconds that a solver which was told to stop gets to remove its files before the process ends.
FAREWELL = 0.5


def main() -> NoReturn:
    """Run ``milpbn`` on the arguments of this process and end the process with its exit code.

    The time limit counts from here. SIGTERM does what Ctrl-C does: the best structure so far is kept.
    """
    started = time.monotonic()
    interrupts.install()
    try:
        from milpbn.cli.app import app
        from milpbn.cli.streams import flush_streams, prepare_streams
    except KeyboardInterrupt:
        os._exit(130)
    prepare_streams()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # other libraries' remarks are not for the user
        warnings.simplefilter("always", MilpbnWarning)
        warnings.showwarning = _show_warning
    code = app.run(obj=started)
    flush_streams()
    _end(code)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"Warning: {message}", file=sys.stderr, flush=True)


def _end(code: int) -> NoReturn:
    """End the process, also when a solver that does not listen still runs in a thread."""
    last = time.monotonic() + FAREWELL
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(max(0.0, last - time.monotonic()))
    if threading.active_count() > 1:
        os._exit(code)  # an ordinary exit would pull the interpreter away from under the solver
    sys.exit(code)

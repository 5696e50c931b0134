"""Worker processes: what each of them does first, so that none outlives the process that started it."""

from __future__ import annotations

import os
import signal
import threading
import time

from milpbn.util import interrupts

#: Seconds between two checks whether the parent process still runs.
POLL_SECONDS = 1.0


def begin(parent: int | None = None) -> None:
    """Ignore Ctrl-C and a closed terminal in this worker process, and end it soon after its parent process has ended.

    A terminal sends both to the parent, too, which ends its workers. If the parent is killed, it cannot do that.
    With its number, it may also be killed before this call.
    """
    interrupts.ignore(*(s for s in interrupts.SIGNALS if s != signal.SIGTERM))
    parent = os.getppid() if parent is None else parent

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="milpbn-parent", daemon=True).start()

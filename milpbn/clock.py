"""The time limit: where no incumbent exists yet that a run could fall back on, and where options are chosen first."""

from __future__ import annotations

import time

from milpbn.errors import NoIncumbentError

#: Share of the time limit that choosing options by validation may take, before the work with what was chosen.
SELECTION_SHARE = 0.5


def check_deadline(deadline: float | None, doing: str) -> None:
    """Raise NoIncumbentError, which says what was going on, once `deadline` (of `time.monotonic`) has passed."""
    if deadline is not None and time.monotonic() >= deadline:
        raise NoIncumbentError(
            f"The time limit ended while {doing}, before any structure was scored; allow more time (a first run "
            "compiles for up to a minute), or reduce --max-parents."
        )

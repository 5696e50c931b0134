"""The time limit, where no incumbent exists yet that a run could fall back on."""

from __future__ import annotations

import time

from milpbn.errors import NoIncumbentError


def check_deadline(deadline: float | None, doing: str) -> None:
    """Raise NoIncumbentError, which says what was going on, once `deadline` (of `time.monotonic`) has passed."""
    if deadline is not None and time.monotonic() >= deadline:
        raise NoIncumbentError(
            f"The time limit ended while {doing}, before any structure was scored; allow more time, or reduce "
            "--max-parents."
        )

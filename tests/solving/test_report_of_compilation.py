"""A result says if compilation used up its time limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from running import random_data

import milpbn
from milpbn.claims.reasons import Limit
from milpbn.solving import report
from milpbn.solving.progress import closing_block
from milpbn.util.clock import Stopwatch


@pytest.mark.parametrize(
    ("seconds", "limit", "told"), [(3.0, Limit.TIME, True), (0.5, Limit.TIME, False), (9.0, None, False)]
)
def test_the_note_is_for_time_limits(
    seconds: float, limit: Limit | None, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stopwatch, "since", lambda self, start: seconds)
    notes = report._compiling(limit, 0.0, 10.0)
    assert bool(notes) == told
    result = milpbn.solve(random_data(3))
    block = closing_block(replace(result, notes=(*result.notes, *notes)))
    assert ("Compiling kernels took 3 of 10 seconds" in block) == told

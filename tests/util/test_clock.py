"""Pauses between saves."""

from __future__ import annotations

from contextlib import suppress

import pytest

from milpbn.util import clock
from milpbn.util.clock import Pause, Stopwatch


def test_pauses_double_and_grow_with_what_a_save_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(clock.time, "monotonic", lambda: now)
    pause = Pause(2.0, 10.0)
    pauses, working = [], 0.0
    for seconds in (0.125, 0.125, 0.125, 0.125, 3.0, 0.125):  # exact in binary
        begun = now
        while not pause.over():
            now += 0.25
        pauses.append(now - begun)
        with pause.after():
            now += seconds
            working += seconds
    assert pauses == [2.25, 4.25, 8.25, 10.25, 10.25, 60.25]
    assert working < 0.05 * now


def test_a_save_that_fails_is_followed_by_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 5.0
    monkeypatch.setattr(clock.time, "monotonic", lambda: now)
    pause = Pause(0.0, 10.0)
    with suppress(OSError), pause.after():
        now += 1.0
        raise OSError
    assert pause.took == 1.0
    now += 19.0
    assert not pause.over()
    now += 1.5
    assert pause.over()


def test_a_stopwatch_counts_threads_side_by_side_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(clock.time, "monotonic", lambda: now)
    watch = Stopwatch()
    with watch:
        now += 2.0
        with watch:  # a second thread
            now += 3.0
        assert watch.since(0.0) == 5.0
        assert watch.since(104.0) == 1.0
    now += 10.0
    assert watch.since(0.0) == 5.0
    with watch:
        now += 1.0
    assert watch.since(103.0) == 3.0
    assert watch.since(now) == 0.0

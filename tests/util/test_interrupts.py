"""Blocks that defer signals."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from milpbn.util import interrupts


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    interrupts.install()
    yield
    for number, handler in before:
        signal.signal(number, handler)
    interrupts._raised.clear()


def test_an_inner_block_does_not_end_the_outer_one() -> None:
    with interrupts.deferred():
        with interrupts.deferred():
            pass
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested()
    assert not interrupts.requested()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_note_of_an_inner_block_reaches_the_outer_one() -> None:
    with interrupts.deferred():
        with interrupts.deferred():
            signal.raise_signal(signal.SIGTERM)
        assert interrupts.requested()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_block_handles_ctrl_c_where_python_would() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupts.handled(), interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_of_a_program_is_kept() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.handled():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_the_first_signal_does_not_disturb_the_writing_of_files() -> None:
    with interrupts.saving():
        heard = interrupts._heard
        signal.raise_signal(signal.SIGTERM)
        assert interrupts._heard == heard + 1  # so that the guard does not end the process
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_within_a_callback_that_ignores_exceptions_is_raised_after_it() -> None:
    """llvmlite calls Python from its compiler by ctypes, which prints an exception and goes on."""
    code = "def callback(signal): signal.raise_signal(signal.SIGTERM); return 1"
    space: dict[str, Callable[[object], int]] = {}
    exec(compile(code, os.path.join("x", "llvmlite", "binding", "executionengine.py"), "exec"), space)
    before = signal.getsignal(signal.SIGALRM)
    try:
        assert space["callback"](signal) == 1
        assert not interrupts.raised()
        with pytest.raises(KeyboardInterrupt):
            time.sleep(30)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupts.raised()

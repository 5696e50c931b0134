"""Blocks that defer signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from milpbn.util import interrupts


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = [(number, signal.getsignal(number)) for number in interrupts.SIGNALS]
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


@pytest.mark.skipif(interrupts.HANGUP is None, reason="needs SIGHUP")
def test_a_closed_terminal_stops_a_run_once() -> None:
    """Kernel and shell both send SIGHUP; under nohup, it changes nothing."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    interrupts.install()
    with interrupts.deferred():
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.requested()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupts.install()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_a_block_handles_ctrl_c_where_python_would() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupts.handled(), interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_forgotten_after_the_block_that_it_ended() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with interrupts.handled():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interrupts.raised()
    assert not interrupts.raised()


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


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (os.path.join("llvmlite", "binding", "executionengine.py"), "_raw_object_cache_notify"),
        (os.path.join("lib", "weakref.py"), "remove"),
    ],
)
def test_a_signal_within_a_callback_that_ignores_exceptions_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, file: str, name: str
) -> None:
    """ctypes and the collector of garbage print an exception of a callback, and go on."""
    monkeypatch.setattr(interrupts, "_guarded", True)
    code = f"def {name}(signal): signal.raise_signal(signal.SIGTERM); return 1"
    space: dict[str, Callable[[object], int]] = {}
    exec(compile(code, os.path.join("x", file), "exec"), space)
    heard = interrupts._heard
    assert space[name](signal) == 1
    assert not interrupts.raised()
    assert interrupts._heard == heard + 1
    with pytest.raises(KeyboardInterrupt):
        interrupts._send_again()
    assert interrupts.raised()
    assert not interrupts._send_again()


def test_the_guard_sends_a_postponed_signal_again() -> None:
    """In a process of its own, whose guard ends it if a signal is not heard."""
    code = (
        "import signal, time\n"
        "from milpbn.util import interrupts\n"
        "interrupts.UNHEARD = 0.4\n"
        "interrupts.install(); interrupts.guard()\n"
        "space = {}\n"
        "exec(compile('def remove(s): s.raise_signal(s.SIGINT)', '/x/weakref.py', 'exec'), space)\n"
        "space['remove'](signal)\n"
        "try:\n"
        "    for _ in range(600): time.sleep(0.05)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(2 * interrupts.UNHEARD)\n"
        "    print('raised')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "raised\n"), done.stderr

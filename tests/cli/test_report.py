"""How errors are reported: sentence and exit code."""

import signal

import pytest

from milpbn.cli.report import FAILED, INTERRUPTED, USAGE, explain, report
from milpbn.errors import InputError
from milpbn.util import interrupts


@pytest.fixture
def handlers():
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interrupts.install()
    yield
    interrupts.install()  # forgets
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_errors_after_an_interrupt_are_reported_as_interrupts(handlers):
    # Numba swallows an interrupt that meets its compiler, and fails a little later.
    late = RuntimeError("no compiled object yet")
    assert explain(late)[0] == FAILED
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert explain(late)[0] == INTERRUPTED
    assert explain(InputError("no such file"))[0] == USAGE
    assert explain(FileNotFoundError(2, "gone", "x.csv"))[0] == USAGE


def test_a_noted_interrupt_is_not_raised(handlers):
    with interrupts.deferred():
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested()
    assert not interrupts.raised()


def test_sentences_stay_short_and_printable(capsys):
    assert report(InputError("The column 'a\x1b[31mb\u202ec' is\nunknown.")) == 2
    assert report(InputError("The name '" + "A" * 10**6 + "' is too long.")) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first == r"Error: The column 'a\x1b[31mb\u202ec' is unknown."
    assert second.startswith("Error: The name 'AAA")
    assert second.endswith("AAA' is too long.")
    assert " [...] " in second
    assert len(second) < 2100

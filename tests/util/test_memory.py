"""The memory in use, and its limit."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from milpbn.errors import InputError, NoIncumbentError
from milpbn.util import memory
from milpbn.util.budget import Budget, Limit

GIB = 2**30


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes in use, which a test may change; every call measures."""
    amount = [GIB]
    monkeypatch.setattr(memory, "used_memory", lambda: amount[0])
    monkeypatch.setattr(memory, "MEASURE_EVERY", 0.0)
    return amount


def test_the_smallest_limit_holds_until_its_block_ends(used: list[int]) -> None:
    assert memory.memory_limit() is None
    with memory.limited(4 * GIB), memory.limited(None):
        with memory.limited(2 * GIB), memory.limited(3 * GIB):
            assert memory.memory_limit() == 2 * GIB
            free = memory.available_memory()
            assert free is not None
            assert free <= memory.STOP_AT * 2 * GIB - GIB
        assert memory.memory_limit() == 4 * GIB
    assert memory.memory_limit() is None


def test_a_limit_below_what_the_program_needs_is_refused() -> None:
    with (
        pytest.raises(InputError, match=r"100 bytes is less than 512\.0 MiB.*larger one"),
        memory.limited(100),
    ):
        pass


def test_memory_near_the_limit_is_noticed(used: list[int]) -> None:
    used[0] = 100 * GIB
    assert not memory.exceeded()
    with memory.limited(2 * GIB):
        assert memory.exceeded()
        used[0] = GIB
        assert not memory.exceeded()


def test_a_whole_budget_knows_what_ended_a_part_of_it(used: list[int]) -> None:
    whole = Budget()
    with memory.limited(2 * GIB):
        used[0] = 2 * GIB
        assert whole.at_most(100.0).stop() is Limit.MEMORY
        used[0] = GIB
        assert whole.stop() is Limit.MEMORY
    assert Budget().at_most(0.0).stop() is Limit.TIME


def test_a_forecast_beyond_the_limit_is_refused(used: list[int]) -> None:
    memory.require_memory(GIB, "The work", "do less")
    with (
        memory.limited(2 * GIB),
        pytest.raises(InputError, match=r"would need 1\.0 GiB.*within the memory limit of 2\.0 GiB; do less"),
    ):
        memory.require_memory(GIB, "The work", "do less")


def test_work_before_any_structure_ends_with_a_sentence(used: list[int]) -> None:
    used[0] = 3 * GIB
    with memory.limited(2 * GIB):
        with pytest.raises(NoIncumbentError, match="memory limit was nearly reached while tables were made"):
            Budget().check("tables were made")
        assert Budget().before(lambda: 7, "the data were read") == 7  # it had ended already
    with pytest.raises(NoIncumbentError, match="or reduce --max-parents"):
        Budget(0.0).check("tables were made")
    with pytest.raises(NoIncumbentError, match=r"before any structure was scored; allow more time\.$"):
        Budget(0.0).check("the data were read", reading=True)


def test_work_that_is_not_waited_for_ends_with_a_sentence_even_if_memory_is_free_again(
    used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("milpbn.util.clock.GRACE", 0.05)
    answers = iter([True])
    monkeypatch.setattr(memory, "exceeded", lambda: next(answers, False))
    ended = threading.Event()
    with memory.limited(2 * GIB), pytest.raises(NoIncumbentError, match="memory limit was nearly reached"):
        Budget().before(ended.wait, "the data were read")
    ended.set()


def test_memory_that_is_free_again_after_the_work_does_not_end_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([True])
    seen = threading.Event()

    def exceeded() -> bool:
        seen.set()
        return next(answers, False)

    monkeypatch.setattr(memory, "exceeded", exceeded)
    budget = Budget()
    with memory.limited(2 * GIB):
        assert budget.before(lambda: seen.wait(60), "the data were read")
        assert budget.stop() is None
        budget.check("tables were made")


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_child_processes_are_counted() -> None:
    alone = memory.used_memory()
    code = "import sys; a = bytearray(range(256)) * 300_000; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        both = memory.used_memory()
        child.communicate()
    assert alone is not None
    assert both is not None
    assert both - alone > 60_000_000

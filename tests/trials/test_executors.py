"""Where calls run: the memory that processes share, and processes that end by themselves."""

from __future__ import annotations

import os
import time
from concurrent.futures import Future

import pytest

from milpbn.errors import SolverError
from milpbn.trials import executors
from milpbn.trials.executors import Inline, Processes, results, workers
from milpbn.util.memory import LEAST, limited, memory_limit


@pytest.mark.parametrize(
    ("room", "count", "share"), [(5 * LEAST, 3, 5 * LEAST // 3), (2 * LEAST, 2, LEAST), (9, 1, LEAST)]
)
def test_processes_share_the_memory_limit(
    monkeypatch: pytest.MonkeyPatch, room: int, count: int, share: int
) -> None:
    made: dict[str, object] = {}

    class Executor:
        def __init__(self, count: int, initargs: tuple[object, ...], **_: object) -> None:
            made.update(workers=count, share=initargs[1])

        def submit(self, *_: object) -> Future[None]:
            done: Future[None] = Future()
            done.set_result(None)
            return done

        def shutdown(self, **_: object) -> None:
            pass

    monkeypatch.setattr(executors, "ProcessPoolExecutor", Executor)
    monkeypatch.setattr(executors, "available_memory", lambda: room)
    with limited(2**40):
        assert len(list(Processes(3).run(abs, range(3), lambda: False))) == 3
    assert made == {"workers": count, "share": share}
    list(Processes(2).run(abs, range(3), lambda: False))
    assert made == {"workers": 2, "share": None}


def test_a_process_keeps_its_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors.processes, "begin", lambda: None)
    executors._keep(lambda _: memory_limit(), 2 * LEAST)
    try:
        assert executors._call_kept(1) == 2 * LEAST
    finally:
        executors._kept[1].__exit__(None, None, None)
    assert memory_limit() is None


def test_processes_find_what_this_process_finds() -> None:
    found = {n: list(n.run(abs, (-3, 2, -1), lambda: False)) for n in (Inline(), Processes(2))}
    assert found[Inline()] == [(-3, 3), (2, 2), (-1, 1)]
    assert sorted(found[Processes(2)]) == sorted(found[Inline()])


def test_a_process_that_dies_is_a_sentence_or_a_stop() -> None:
    with workers(1, killable=True) as pool, pytest.raises(SolverError, match="ended by itself"):
        results(pool, [(os._exit, 1)], lambda: False)
    asked = iter([False])
    with workers(1, killable=True) as pool:
        assert results(pool, [(os._exit, 1)], lambda: next(asked, time.sleep(1.0) or True)) is None
    with pytest.raises(SolverError, match=r"^Too large\."):
        list(Processes(1, "Too large.").run(os._exit, [1], lambda: False))

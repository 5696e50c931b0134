"""A worker gives a part back before its memory or its lifetime is used up; what it lost is searched alone."""

from __future__ import annotations

import pickle
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from running import random_data

pytest.importorskip("distributed")

from milpbn.distributed import worker
from milpbn.distributed.clusters import share_of
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree.bounding import Context
from milpbn.engine.tree.dispatch import TreeSearch
from milpbn.engine.tree.search import BranchAndBound
from milpbn.engine.tree.subtree import SubtreeTask
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.util import memory
from milpbn.util.memory import limited


@pytest.fixture(scope="module")
def part() -> tuple[Context, SubtreeTask]:
    """A part that takes much longer than the tests."""
    data = random_data([61, 0], n_features=16, n_samples=600, n_classes=2)
    empty = Structure.empty(data.names)
    root = Root(build_problem(data, Score()), empty)
    root.run(empty, EventLog(), reduce=False, max_steps=1)
    kept = []

    class Keeps:
        def run(self, search: TreeSearch) -> None:
            task = search.hand_out_subtree(1, 600.0, 600.0)
            assert task is not None
            kept.append((search.context, task))

    BranchAndBound(root, empty, EventLog(), dispatcher=Keeps()).run()
    return kept[0]


def plugin(part: tuple[Context, SubtreeTask], lifetime: float | None, **options: Any) -> worker.SearchPlugin:
    made = worker.SearchPlugin("part", pickle.dumps(part[0]), **options)
    made.setup(SimpleNamespace(lifetime=lifetime))
    return made


def test_a_part_is_given_back_before_the_end_of_a_lifetime(part: tuple[Context, SubtreeTask]) -> None:
    age = time.time() - psutil.Process().create_time()
    found = plugin(part, age + worker.LEAVES_BEFORE + 1.0).search(part[1])
    assert found.seconds < 100
    assert found.n_children > 0
    assert found.open


@pytest.mark.parametrize("share", [None, 2**30])
def test_a_part_is_given_back_before_memory_runs_out(
    part: tuple[Context, SubtreeTask], share: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the process takes grows with every measurement."""
    used = iter(range(2**29, 2**40, 2**24))
    monkeypatch.setattr(memory, "used_memory", lambda: next(used))
    monkeypatch.setattr(memory, "available_memory", lambda: 2**40 if share else 2**28)
    monkeypatch.setattr(memory, "MEASURE_EVERY", 0.0)
    found = plugin(part, None, share=share).search(part[1])
    # At half of what is free: 128 MiB, or 150 of the 400 MiB that the share leaves.
    assert 0 < found.n_children <= 26
    assert found.open


def test_workers_share_the_limit_of_the_run() -> None:
    assert share_of(3) is None
    with limited(4 * 2**30):
        assert share_of(3) == 2**30
        with pytest.raises(
            InputError, match=r"leaves 409\.6 MiB to this process and each of 9 workers.*5\.0 GiB"
        ):
            share_of(9)


def test_a_lost_part_is_searched_alone(part: tuple[Context, SubtreeTask], tmp_path: Path) -> None:
    path = tmp_path / "search.ckpt.part"
    path.write_bytes(pickle.dumps((part[0], part[1]._replace(seconds=0.1))))
    assert re.match(
        r"[1-9]\d* new nodes in \d+\.\d s, [1-9]\d* left open, peak memory .*iB\.", worker.search_file(path)
    )

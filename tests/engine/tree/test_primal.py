"""Climbs near the incumbent: how often they come."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from running import random_data

from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree import primal
from milpbn.engine.tree.primal import PrimalHeuristic
from milpbn.engine.tuning import TUNING
from milpbn.heuristics.local_search import search
from milpbn.heuristics.starts import plain_starts
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score


def test_climbs_that_find_nothing_take_a_part_of_the_work_only(monkeypatch: pytest.MonkeyPatch) -> None:
    tuned = replace(TUNING.primal, longest_pause=3.0, passes=0.5)
    monkeypatch.setattr(primal, "TUNING", replace(TUNING, primal=tuned))
    data = random_data([61, 1], n_features=6, n_samples=100)
    problem = build_problem(data, Score(p=0.95), for_milp=False)
    best = search(problem, plain_starts(problem), stopping=lambda: False)
    assert best is not None
    root = Root(problem, best)
    heuristic = PrimalHeuristic(root, best, EventLog(), threading.RLock(), 0)
    # No structure is better than this, so that every climb fails.
    heuristic._set(value=root.value(best) + 1e3)

    def climbs(branchings: range, steps: int) -> int:
        before = heuristic._state.climbs
        for branching in branchings:
            heuristic.climb_near_incumbent(branching, steps)
        return heuristic._state.climbs - before

    # The pauses grow from 1 to 3 branchings; then comes one more climb, after which the passes are too many.
    first = climbs(range(100), 0)
    assert 10 < first < 20
    assert climbs(range(100, 200), 0) == 0
    again = climbs(range(200, 300), 200)
    assert again > 0
    assert climbs(range(300, 400), 200) == 0
    assert climbs(range(400, 800), 800) > again

"""The caller's function for changes of incumbent or bound."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from running import random_data

import milpbn

QUICK = {"threads": 1, "verbose": False}


@pytest.mark.parametrize("backend", ["native", "highs"])
def test_every_call_has_a_valid_result(backend: str) -> None:
    seen: list[milpbn.Result] = []
    threads = set()

    def note(result: milpbn.Result) -> None:
        threads.add(threading.current_thread())
        seen.append(result)

    result = milpbn.solve(random_data(3), backend=backend, on_change=note, **QUICK)
    assert threads == {threading.current_thread()}
    assert {r.reason for r in seen} == {"running"}
    assert (seen[-1].objective, seen[-1].structure) == (result.objective, result.structure)
    assert all((r.classifier is None) == (r.structure is None) for r in seen)
    objectives = [r.objective for r in seen if r.objective is not None]
    bounds = [r.bound for r in seen if r.bound is not None]
    assert objectives == sorted(objectives)
    assert bounds == sorted(bounds, reverse=True)


def test_true_stops_the_search() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (300, 15)), rng.integers(0, 3, 300)
    result = milpbn.solve((X, y), on_change=lambda r: r.structure is not None, **QUICK)
    assert (result.reason, result.limit) == ("feasible", "user")


def test_an_exception_ends_the_search() -> None:
    def fail(result: milpbn.Result) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        milpbn.solve(random_data(3), on_change=fail, **QUICK)


@pytest.mark.parametrize("average", [1, 2])
def test_only_the_search_with_the_best_setting_calls_it(average: int) -> None:
    seen: list[milpbn.Result] = []
    result = milpbn.solve_selected(
        random_data(3), grid="p=.6,.9", average=average, on_change=lambda r: seen.append(r), **QUICK
    )
    assert {r.score for r in seen} == {result.score}

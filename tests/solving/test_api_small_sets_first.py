"""Where the tables of all parent sets take long, searches over small sets come first."""

from __future__ import annotations

import pytest
from running import random_data

import milpbn
from milpbn import Constraints, Score
from milpbn.claims.reasons import Limit
from milpbn.errors import NoIncumbentError
from milpbn.problem.candidates import admitted_sets
from milpbn.problem.constraints import Rules
from milpbn.problem.rescore import rescore
from milpbn.solving import reductions
from milpbn.solving.progress import closing_block


@pytest.fixture
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches over the sets of one member, then of two, and so on, on tiny problems."""
    monkeypatch.setattr(reductions, "SMALL_TABLES", 0)
    monkeypatch.setattr(reductions, "SMALL_TABLES_WITHIN_LIMIT", 0)
    monkeypatch.setattr(reductions, "GROWTH", 1)


def test_sizes_grow_until_all_sets_are_left() -> None:
    admitted = admitted_sets(180, Score(max_parents=3), Rules())
    assert reductions.small_sizes(admitted, 10_000) == [1, 2]
    assert reductions.small_sizes(admitted, 100_000) == [2]
    assert reductions.small_sizes(admitted, 10**8) == []
    assert reductions.small_sizes(admitted_sets(5, Score(max_parents=2), Rules()), 1) == [1]
    assert reductions.small_sizes(admitted_sets(5, Score(max_parents=1), Rules()), 1) == []


@pytest.mark.parametrize(
    ("score", "constraints"),
    [
        (Score(max_parents=3), Constraints()),
        (Score("cll", max_parents=3, hybrid=0.1), Constraints(required=(("X1", "X2"), ("X3", "X2")))),
        (Score("mdl", max_parents=3, parent_sets="all"), Constraints(max_children={"*": 1})),
        (Score("aicc", max_parents=3), Constraints()),
    ],
)
@pytest.mark.usefixtures("tiny_steps")
def test_the_optimum_is_that_of_one_search(
    score: Score, constraints: Constraints, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random_data(11, n_features=4, n_samples=60)
    found = milpbn.solve(data, score, constraints=constraints)
    monkeypatch.undo()
    plain = milpbn.solve(data, score, constraints=constraints)
    assert found.optimal
    assert plain.optimal
    assert found.objective == pytest.approx(plain.objective, abs=1e-9)
    assert not any(note.startswith("Only") for note in found.notes)


@pytest.mark.usefixtures("tiny_steps")
def test_a_limit_before_all_sets_are_listed_keeps_a_structure_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, score = random_data(11, n_features=6, n_samples=200), Score(max_parents=3)

    def too_slow(*arguments: object, **options: object) -> None:
        raise NoIncumbentError("The time limit ended.")

    monkeypatch.setattr(reductions, "list_candidates", too_slow)
    result = milpbn.solve(data, score, time_limit=60.0)
    assert (result.reason, result.limit) == ("feasible", Limit.TIME)
    assert result.structure is not None
    assert result.objective == pytest.approx(rescore(data, result.structure, score), abs=1e-9)
    assert result.objective >= max(
        rescore(data, milpbn.Structure.naive_bayes(data.names), score), 0.0
    )  # structures with two parents were searched as well
    block = closing_block(result)
    assert "Only parent sets of at most 2 parents were searched" in block
    assert "--screen 100" in block
    monkeypatch.undo()
    assert milpbn.solve(data, score).objective <= result.bound

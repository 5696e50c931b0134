"""Hill climbing over single arcs: every gain against the oracle, local optima, the tabu list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import oracle
import pytest
from running import random_data

from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.generative.hill_climbing import Climber, HillClimbing, climb
from milpbn.learners.generative.orders import AllOrders
from milpbn.network.structure import Structure, find_cycle
from milpbn.problem.scores.spec import Score


def neighbours(parents, score: Score) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every acyclic graph one addition, deletion or reversal away, within the score's parent sets."""
    V = len(parents)
    sets = oracle.candidate_sets(V, score.max_parents, score.class_parents, score.parent_sets)
    allowed = [{tuple(sorted(s)) for s in own} for own in sets]

    def admissible(graph) -> bool:
        return find_cycle(graph) is None and all(s in own for s, own in zip(graph, allowed, strict=True))

    def toggled(graph, j: int, i: int):
        return (*graph[:i], tuple(sorted(set(graph[i]) ^ {j})), *graph[i + 1 :])

    for i in range(V):
        for j in range(V):
            if i == j:
                continue
            graphs = [toggled(parents, j, i)]
            if j in parents[i]:
                graphs.append(toggled(graphs[0], i, j))
            yield from (g for g in graphs if admissible(g))


@pytest.mark.parametrize("parent_sets", ["paper", "all"])
@pytest.mark.parametrize("class_parents", [True, False])
@pytest.mark.parametrize("name", ["mdl", "aic", "bdeu", "ll"])
def test_every_step_is_the_best_of_all_neighbours(parent_sets: str, class_parents: bool, name: str) -> None:
    data = random_data([1, class_parents], n_features=4, n_samples=40, weights=True)
    score = Score(name=name, max_parents=2, class_parents=class_parents, parent_sets=parent_sets)

    def value(parents) -> float:
        return oracle.score_structure(data, parents, name)

    climber = Climber(data, score, Structure.naive_bayes(data.names), lambda: False)
    steps = 0
    while True:
        now = climber.structure.parents
        assert climber.value == pytest.approx(value(now), abs=1e-8)
        best = max((value(g) for g in neighbours(now, score)), default=-np.inf)
        found = climber.best_move((), climber.value)
        assert found is not None
        assert climber.value + found[0] == pytest.approx(best, abs=1e-8)
        if found[0] <= 1e-9:
            break
        climber.apply(found[1])
        steps += 1
    assert steps >= 1


def test_plain_search_ends_at_a_local_optimum() -> None:
    steps = 0
    for seed in range(5):
        data = random_data([2, seed], n_features=4, n_samples=50)
        learner = HillClimbing(tabu=0, parent_sets="all", max_parents=3, start="empty")
        learned = learner.fit(data)
        assert learned.structure is not None
        value = oracle.score_structure(data, learned.structure.parents, "mdl")
        assert learned.details["score"] == pytest.approx(value)
        around = [
            oracle.score_structure(data, g, "mdl")
            for g in neighbours(learned.structure.parents, learner.spec())
        ]
        assert value >= max(around) - 1e-8
        steps += learned.details["changes"]
    assert steps


def test_tabu_search_leaves_local_optima() -> None:
    better = 0
    for seed in range(20):
        data = random_data([3, seed], n_features=6, n_samples=40)
        options = {"score": "aic", "parent_sets": "all", "max_parents": 3}
        plain = HillClimbing(tabu=0, **options).fit(data).details["score"]
        tabu = HillClimbing(tabu=5, patience=30, **options).fit(data).details["score"]
        best = AllOrders(**options).fit(data).details["score"]
        assert plain <= tabu + 1e-9
        assert tabu <= best + 1e-7
        better += tabu > plain + 1e-6
    assert better


def test_tabu_changes_are_made_only_for_a_new_best() -> None:
    data = random_data(4, n_features=4, n_samples=50)
    score = Score(name="mdl", max_parents=2, parent_sets="all")
    climber = Climber(data, score, Structure.empty(data.names), lambda: False)
    gain, ((j, i), *_) = climber.best_move((), climber.value)
    pair = frozenset((j, i))
    assert climber.best_move([pair], climber.value)[1] == ((j, i),)  # its score is above the incumbent's
    other = climber.best_move([pair], climber.value + gain)
    assert frozenset(other[1][0]) != pair


def test_limits_end_the_search_with_the_best_so_far() -> None:
    data = random_data(5, n_features=5, n_samples=50)
    learned = HillClimbing().fit(data, Control(time_limit=0.0))
    assert learned.structure == Structure.naive_bayes(data.names)
    asked = []

    def interrupted() -> bool:
        asked.append(True)
        return len(asked) > data.n_variables + 1

    lines: list[str] = []
    learned = HillClimbing(start="empty").fit(data, Control(interrupted=interrupted, report=lines.append))
    assert learned.details["changes"] == 1
    assert len(lines) == 1


def test_patience_counts_changes_without_progress() -> None:
    data = random_data(6, n_features=4, n_samples=50)
    score = Score(name="mdl", max_parents=2, parent_sets="all")
    first = Structure.empty(data.names)

    def run(patience: int) -> tuple[Structure, int]:
        climber = Climber(data, score, first, lambda: False)
        return climb(climber, tabu=3, patience=patience, stopping=lambda: False)

    steps = [run(patience)[1] for patience in (0, 1, 7)]
    assert steps[1] >= steps[0] + 1
    assert steps[2] >= steps[0] + 7


def test_hold_out_chooses_max_parents() -> None:
    data = random_data(8, n_features=5, n_samples=60)
    learned = HillClimbing(score="ll", parent_sets="all", max_parents=4, holdout=0.3).fit(data)
    chosen = learned.details["max_parents"]
    assert chosen < 4
    assert max(learned.details["held_out"].values()) == learned.details["held_out"][str(chosen)]
    assert learned.structure is not None
    assert max(len(p) for p in learned.structure.parents) == chosen


def test_the_choice_of_max_parents_leaves_time_for_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def watched(climber: Climber, *, stopping: Any, **options: Any) -> Any:
        limits.append(stopping.__self__.left())
        return climb(climber, stopping=stopping, **options)

    monkeypatch.setattr("milpbn.learners.generative.hill_climbing.climb", watched)
    data = random_data(8, n_features=4, n_samples=60)
    learned = HillClimbing(score="ll", max_parents=4, holdout=0.3).fit(data, Control(time_limit=800.0))
    assert limits == pytest.approx([*[100.0] * 4, 800.0], rel=0.1)
    assert not learned.details["stopped_early"]
    assert HillClimbing().fit(data, Control(interrupted=lambda: True)).details["stopped_early"]
    assert HillClimbing(tabu=0).unused().keys() >= {"patience"}


@pytest.mark.parametrize(
    ("options", "word"), [({"score": "aicc"}, "AICc"), ({"start": "x"}, "start"), ({"tabu": -1}, "tabu")]
)
def test_impossible_options_are_refused(options, word: str) -> None:
    with pytest.raises(InputError, match=word):
        HillClimbing(**options).fit(random_data(9))

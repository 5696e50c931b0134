"""Simulated annealing: the seed determines the run, the answer is never worse than the start, its score is exact."""

from __future__ import annotations

import numpy as np
import plain_scores
import pytest
from running import random_data

from milpbn.heuristics.spanning import tan_structure
from milpbn.learners.base import Control
from milpbn.learners.discriminative import annealing
from milpbn.learners.discriminative.annealing import Annealing
from milpbn.learners.discriminative.margin_search import GreedyMargin
from milpbn.network import Structure


def feature_parents(structure: Structure) -> list[tuple[int, ...]]:
    c = len(structure.names) - 1
    return [tuple(j for j in s if j != c) for s in structure.parents[:-1]]


@pytest.mark.parametrize("start", ["naive-bayes", "tan"])
@pytest.mark.parametrize("evaluation", ["train", "cv"])
@pytest.mark.parametrize("steps", [1, 2500])
def test_never_worse_than_the_start_and_truly_scored(start: str, evaluation: str, steps: int) -> None:
    gains = []
    for seed in range(4):
        data = random_data([17, seed], n_features=5, n_samples=60, weights=bool(seed % 2)).merged
        fold = plain_scores.folds_of(data, seed) if evaluation == "cv" else None
        learned = Annealing(start=start, evaluation=evaluation, steps=steps, gamma=2.0).fit(
            data, Control(random_state=seed)
        )
        begin = tan_structure(data) if start == "tan" else Structure.naive_bayes(data.names)
        at_start = plain_scores.score(data, feature_parents(begin), "mm", 2.0, fold=fold)
        found = feature_parents(learned.structure)
        assert all(len(s) <= 1 for s in found)
        at_end = plain_scores.score(data, found, "mm", 2.0, fold=fold)
        assert learned.details["start_score"] == pytest.approx(at_start, abs=1e-9)
        assert learned.details["final_score"] == pytest.approx(at_end, abs=1e-9)
        assert at_end >= at_start - 1e-9
        gains.append(at_end - at_start)
    assert steps == 1 or max(gains) > 0.1


def test_long_annealing_beats_hill_climbing_on_average() -> None:
    gains = []
    for seed in range(8):
        data = random_data([18, seed], n_features=8, n_samples=80)
        greedy = GreedyMargin(gamma=2.0).fit(data).details["final_score"]
        gains.append(Annealing(gamma=2.0, steps=4000).fit(data).details["final_score"] - greedy)
    assert sum(gains) > 0
    assert max(gains) > 1.0


def test_the_temperature_falls_to_its_end_within_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's clock advances by a second at every call, so there is time for only 300 of a million steps."""
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += 1.0
        return now

    data = random_data(19, n_features=6, n_samples=60)
    monkeypatch.setattr("milpbn.learners.discriminative.annealing.time.monotonic", monotonic)
    learned = Annealing(steps=1_000_000, gamma=2.0).fit(data, Control(time_limit=600.0))
    assert learned.details["final_score"] > learned.details["start_score"] + 1.0
    assert learned.details["stopped_early"]


def test_equal_seeds_give_equal_runs_and_others_differ() -> None:
    data = random_data(19, n_features=6, n_samples=60)
    runs = {
        seed: [Annealing(steps=40, gamma=2.0).fit(data, Control(random_state=seed)) for _ in range(2)]
        for seed in range(4)
    }
    for one, again in runs.values():
        assert one.structure == again.structure
        assert one.details == again.details
    assert len({r[0].structure for r in runs.values()}) > 1


def test_the_temperature_decides_what_is_accepted() -> None:
    data = random_data(20, n_features=6, n_samples=60)
    accepted = [
        Annealing(steps=300, gamma=2.0, temperature=t).fit(data).details["accepted"] for t in (1e-9, 1.0, 1e9)
    ]
    assert accepted[0] < accepted[1] < accepted[2]


def test_lower_temperatures_accept_fewer_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lower the temperature, the fewer losses are accepted."""
    data = random_data(20, n_features=6, n_samples=60)
    accepted = []
    for cooled in (1.0, 1e-3, 1e-6):
        monkeypatch.setattr(annealing, "COOLING", cooled)
        accepted.append(Annealing(steps=1000, gamma=2.0, temperature=30.0).fit(data).details["accepted"])
    assert accepted[0] > 1.2 * accepted[1] > 1.2 * 1.2 * accepted[2] > 0


def test_rounding_errors_do_not_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Summing the log-joint anew changes no decision."""
    data = random_data(21, n_features=5, n_samples=60)
    results = []
    for steps in (10, 10**9):
        monkeypatch.setattr(annealing, "REFRESH_STEPS", steps)
        results.append(Annealing(steps=800, gamma=2.0).fit(data))
    assert results[0].structure == results[1].structure
    values = [r.details["final_score"] for r in results]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def test_constant_features_leave_nothing_to_change() -> None:
    data = random_data(22, n_features=3, max_states=2, n_samples=30)
    codes = data.codes.copy()
    codes[:, :-1] = 0
    constant = type(data)(data.name, data.variables, codes, data.weights)
    learned = Annealing(steps=50).fit(constant)
    assert learned.details["final_score"] == pytest.approx(learned.details["start_score"])

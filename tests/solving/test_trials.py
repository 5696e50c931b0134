"""Which settings of a selection go on, and what is said about the choice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from running import random_data

import milpbn
from milpbn.claims.result import Result
from milpbn.claims.selection import TIE, Trial
from milpbn.cli.app import app
from milpbn.data import read_table
from milpbn.errors import InputError, NoIncumbentError
from milpbn.network import Classifier, Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving import reductions
from milpbn.solving.chain import Chains
from milpbn.solving.grid import Grid, Setting
from milpbn.solving.options import Options
from milpbn.solving.progress import closing_block
from milpbn.solving.question import Question
from milpbn.solving.selection import choose, maximise_selected
from milpbn.solving.tally import Sums, Tally
from milpbn.solving.trials import compare, survivors
from milpbn.trials.parts import validation_splits

QUIET = Options(threads=1, verbose=False)


def tallied(setting: Setting, correct: float, loss: float, total: float = 100.0) -> Tally:
    return Tally(setting, {"ml": Sums(correct, loss, 1)}, total=total, splits=1)


def test_the_better_half_of_the_settings_is_kept() -> None:
    settings = Grid(tuple(np.linspace(0.55, 0.95, 24).tolist()), (2,)).settings(Score())
    found = {k: tallied(settings[k], 50.0 + k, 100.0 - k) for k in range(24)}
    assert survivors(found, "accuracy", 1000.0) == list(range(12, 24))
    assert survivors(found, "log-loss", 1000.0) == list(range(12, 24))
    assert survivors({k: found[k] for k in range(16, 24)}, "accuracy", 1000.0) == list(range(16, 24))
    for k in range(24):
        found[k].behind = float(23 - k), 9.0
    kept = survivors(found, "log-loss", 1000.0)
    assert kept == list(range(5, 24))  # the others are behind by more than two standard errors


def test_differences_have_the_standard_error_of_paired_rows() -> None:
    """Two folds, twice: a row counts once, with the mean of its differences."""
    rng = np.random.default_rng(0)
    settings = Grid((0.6, 0.7), (2,)).settings(Score())
    order = [rng.permutation(40) for _ in range(2)]
    positions = [np.sort(half) for rows in order for half in (rows[:20], rows[20:])]
    losses = rng.random((2, 4, 20))
    found = [
        Tally(
            setting,
            {"ml": Sums(0.0, float(own.sum()), 4, rows=[*own.astype(np.float32)])},
            total=80.0,
            splits=4,
            numbers=(0, 1, 2, 3),
        )
        for setting, own in zip(settings, losses, strict=True)
    ]
    compare(found, "log-loss", positions, np.ones(40))
    means = np.zeros((2, 40))
    for split, rows in enumerate(positions):
        means[:, rows] += losses[:, split] / 2
    difference = means[1] - means[0]
    best = 0 if difference.mean() > 0 else 1
    assert found[best].behind == (0.0, 0.0)
    behind, error = found[1 - best].behind
    assert behind == pytest.approx(abs(difference.mean()), rel=1e-5)
    assert error == pytest.approx(difference.std() / np.sqrt(40), rel=1e-5)
    assert found[1 - best].trial.standard_error == error


@pytest.mark.parametrize("by", ["accuracy", "log-loss"])
def test_a_setting_without_a_network_in_one_split_is_not_as_good_as_the_best(by: str) -> None:
    data = random_data(5, n_samples=60)
    classifier = milpbn.solve(data, time_limit=5, threads=1, verbose=False).classifier
    halves = [np.arange(30), np.arange(30, 60)]
    found = []
    for setting, last in zip(Grid((0.6, 0.7), (2,)).settings(Score()), (classifier, None), strict=True):
        sums = Sums()
        for network, rows in zip((classifier, last), halves, strict=True):
            sums.add(network, data.take(rows), by)
        found.append(Tally(setting, {"ml": sums}, total=60.0, splits=2, by=by, numbers=(0, 1)))
    compare(found, by, halves, np.ones(60))
    assert [tally.trial.ties for tally in found] == [True, False]


def test_settings_that_cannot_win_are_stopped() -> None:
    settings = Grid((0.6, 0.7, 0.8), (2,)).settings(Score())
    found = {k: tallied(settings[k], right, 1.0) for k, right in enumerate((90.0, 79.0, 80.0))}
    assert survivors(found, "accuracy", 10.0) == [0, 2]
    assert survivors(found, "log-loss", 10.0) == [0, 1, 2]


def test_the_log_loss_is_that_of_held_out_rows() -> None:
    data = random_data(3, n_samples=60)
    chosen = choose(Question(data, Score()), QUIET, Grid((0.9,), (2,), by="log-loss"))
    total = 0.0
    for train, held_out in validation_splits_of(data):
        classifier = milpbn.solve(train, Score(p=0.9), threads=1, verbose=False).classifier
        joint = classifier.predict_log_joint(held_out)
        joint -= np.logaddexp.reduce(joint, axis=1, keepdims=True)
        total -= joint[np.arange(len(joint)), held_out.y].sum()
    assert chosen.trials[0].log_loss == pytest.approx(total / 60)


def validation_splits_of(data):
    return [(data.take(a), data.take(b)) for a, b in validation_splits(data.y, 0)]


@pytest.mark.parametrize(
    ("by", "options"),
    [
        ("accuracy", "p=.6,.9 max-parents=1,2 smoothing=.1,5"),
        ("log-loss", "p=.6,.9 max-parents=1 smoothing=.1,1,5"),
    ],
)
def test_the_choice_is_the_best_and_reads_back(by: str, options: str, tmp_path: Path) -> None:
    data = random_data(11, n_samples=60)
    grid = Grid.parse(f"score=sm,cll {options}", by)
    result = maximise_selected(Question(data, Score()), replace(QUIET, output=str(tmp_path / "r.json")), grid)
    chosen = result.selection
    assert chosen.by == by
    assert {t.splits for t in chosen.trials} > {15}  # some were stopped
    whole = [t for t in chosen.trials if t.splits == 15]
    assert chosen.chosen.difference <= TIE * chosen.chosen.standard_error
    for t in whole:
        assert t.difference == pytest.approx(t.value(by) - min(other.value(by) for other in whole))
        if t.ties:
            assert (t.arcless > 0, t.max_parents) >= (chosen.chosen.arcless > 0, chosen.max_parents)
    assert result.score.name == chosen.options["score"]
    assert result.score.smoothing == chosen.options["smoothing"]
    again = Result.load(tmp_path / "r.json")
    assert again.selection == chosen
    text = closing_block(again)
    assert f"by {by} among {len(chosen.trials)} settings, 5-fold cross-validation, 3 times" in text
    assert f"smoothing = {chosen.options['smoothing']}" in text
    document = json.loads((tmp_path / "r.json").read_text())
    document["selection"]["options"]["smoothing"] = 0.77
    with pytest.raises(InputError, match="contradicts itself"):
        Result.from_dict(document)


def test_ties_are_reported() -> None:
    data = random_data(12, n_samples=40)
    same = Grid((0.9, 0.9000001), (1,))
    result = maximise_selected(Question(data, Score()), QUIET, same)
    assert result.selection.tied == 1
    assert "1 other setting is as good" in closing_block(result)
    assert result.selection.p == 0.9


def test_a_tie_is_never_decided_for_a_network_without_arcs() -> None:
    """At p=.9 the margin of the class alone, log 9, is enough, and no feature is used; the other p is as accurate."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 10 == 0
    noise = {"a": rng.integers(0, 2, 200), "b": np.where(rng.random(200) < 0.6, y, ~y).astype(int)}
    data = read_table(pd.DataFrame({**noise, "y": y}), target="y").dataset()
    alone = milpbn.solve(data, Score(p=0.9, max_parents=1), threads=1, verbose=False)
    assert not alone.structure.arcs
    result = maximise_selected(Question(data, Score()), QUIET, Grid((0.9, 0.99), (1,)))
    first, second = result.selection.trials
    assert first.accuracy == second.accuracy == 0.9
    assert first.arcless > 0 == second.arcless
    assert result.selection.p == 0.99
    assert result.structure.arcs
    assert result.selection.is_best
    assert "the choice is the one of those with arcs with the fewest parents" in closing_block(result)
    assert Result.from_dict(result.to_dict()).selection == result.selection
    # Among networks with arcs, the smallest p is taken as before.
    assert (
        maximise_selected(Question(data, Score()), QUIET, Grid((0.9, 0.99, 0.995), (1,))).selection.p == 0.99
    )
    # A better network without arcs stays the choice.
    assert Trial(0.5, 1, 0.9, 0, 5, arcless=5).rank() < Trial(0.9, 1, 0.8, 0, 5).rank()


def test_weights_of_validation_rows_are_named(tmp_path: Path) -> None:
    data = random_data(14, n_samples=60, weights=True)
    result = maximise_selected(Question(data, Score()), QUIET, Grid((0.6, 0.9), (1,)))
    best = result.selection.chosen
    splits = list(validation_splits_of(data))
    right, weight = [], []
    for train, held_out in splits:
        found = milpbn.solve(
            train, replace(Score(p=best.p), max_parents=1), threads=1, verbose=False
        ).classifier
        right += (found.predict_codes(held_out) == held_out.y).tolist()
        weight += held_out.weights.tolist()
    assert best.unweighted == pytest.approx(np.mean(right))
    assert best.accuracy == pytest.approx(np.average(right, weights=weight))
    assert (
        f"held-out: weighted accuracy {100 * best.accuracy:.2f} %, {100 * best.unweighted:.2f} % of the rows, weighted"
        in closing_block(result)
    )


@pytest.fixture(scope="module")
def whole() -> tuple[Question, Grid, Result]:
    """A question, a grid, and the result of a selection that has time enough."""
    question, grid = Question(random_data(13, n_features=3, n_samples=60), Score()), Grid((0.6, 0.9), (2,))
    return question, grid, maximise_selected(question, QUIET, grid)


def test_starved_trials_are_reported(
    whole: tuple[Question, Grid, Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search without time ends at its start: the structure of the trial before."""
    question, grid, result = whole
    assert sum(t.starved for t in result.selection.trials) == 0
    real = Tally.add
    monkeypatch.setattr(
        Tally, "add", lambda self, r, held_out, _, fitted: real(self, r, held_out, True, fitted)
    )
    result = maximise_selected(question, QUIET, grid)
    assert "10 of 10 searches ended at their start for lack of time" in closing_block(result)


def test_a_selection_that_the_time_limit_ends_says_so(
    whole: tuple[Question, Grid, Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    question, grid, in_time = whole
    real = Chains._problem
    built = []

    def late(self: Chains, *arguments: Any) -> Any:
        built.append(1)
        if len(built) == 2:
            raise NoIncumbentError("The time is over.")
        return real(self, *arguments)

    monkeypatch.setattr(Chains, "_problem", late)
    result = maximise_selected(question, QUIET, grid)
    assert result.selection.timed_out
    assert not result.selection.interrupted
    assert "ended by the time limit" in closing_block(result)
    assert "the chosen one was tried on 1 split" in closing_block(result)
    result.save(tmp_path / "r.json")
    assert Result.load(tmp_path / "r.json").selection == result.selection
    assert "ended by the time limit" not in closing_block(in_time)


def test_a_dataset_keeps_its_cuts() -> None:
    with pytest.raises(InputError, match="give the selection a table"):
        choose(Question(random_data(1, n_samples=40), Score()), QUIET, Grid.parse("discretise=mdl,uniform:3"))


def test_select_takes_a_grid_on_the_command_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 2, 60)
    rows = "\n".join(
        f"{a:.3f},{b:.3f},{c}"
        for a, b, c in zip(classes + rng.normal(size=60), rng.normal(size=60), classes, strict=True)
    )
    table = tmp_path / "t.csv"
    table.write_text(f"a,b,class\n{rows}\n")
    files = ["--output", str(tmp_path / "r.json"), "--threads", "1", "-q"]
    grid = "p=.6,.9 discretise=mdl,quantile:3"
    done = CliRunner().invoke(app, ["solve", str(table), "--select", grid, "--select-by", "log-loss", *files])
    assert done.exit_code == 0, done.output
    result = Result.load(tmp_path / "r.json")
    chosen = result.selection.options["discretise"]
    assert f"selection  discretise = {chosen}, p = {result.selection.p}, max-parents = 2" in done.stdout
    other = milpbn.read_table(table, discretise=chosen).dataset()
    assert result.data.sha256 == other.sha256


def test_settings_with_few_parents_can_come_first_on_all_splits() -> None:
    data = random_data(14, n_features=2, n_samples=60)
    grid = replace(Grid.parse("score=cll max-parents=2,1", "log-loss"), smallest_first=True)
    trials = choose(Question(data, Score()), QUIET, grid).trials
    assert [t.max_parents for t in trials] == [1, 2]
    assert len({t.splits for t in trials}) == 1
    plain = choose(Question(data, Score()), QUIET, Grid.parse("score=cll max-parents=1,2", "log-loss")).trials
    assert plain == trials


def test_trials_of_the_native_engine_need_no_room_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A MILP needs the tensor of all coefficients, the native engine the tables only."""
    asked = []

    def noted(*arguments, for_milp: bool = True, **options):
        asked.append(for_milp)
        return build_problem(*arguments, for_milp=for_milp, **options)

    monkeypatch.setattr(reductions, "build_problem", noted)
    data = random_data(15, n_samples=50)
    choose(Question(data, Score(name="cll")), QUIET, Grid(None, (1, 2)))
    assert not any(asked)
    choose(Question(data, Score(name="cll")), replace(QUIET, backend="highs"), Grid(None, (1,)))
    assert any(asked)


def test_accuracies_are_those_of_the_decisions():
    """With costs, and abstention, the class that is chosen counts, not the most probable one; the cost is that paid."""
    data = random_data(3, n_classes=2, n_samples=80, weights=True)
    plain = Classifier.fit(data, Structure.empty(data.names))
    often = str(plain.predict(data)[0])
    [seldom] = {*plain.classes} - {often}
    decided = plain.deciding({"missed": 9, "false_alarm": 1, "positive": seldom, "abstain": 0.1})
    sums, chosen = Sums(), decided.predict_codes(data)
    sums.add(decided, data)
    assert (
        sums.right == (chosen == data.y).sum() != (decided.deciding(None).predict_codes(data) == data.y).sum()
    )
    assert sums.correct == pytest.approx(data.weights[chosen == data.y].sum())
    assert sums.cost == pytest.approx(0.1 * data.weights.sum())  # no class costs less in any row

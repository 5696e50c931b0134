"""The average of a selection's best settings: which settings, what each of them finds, and what ends it early."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from running import random_data

import milpbn
from milpbn.claims.result import Result
from milpbn.errors import InputError, NoIncumbentError, SolverError
from milpbn.network import AveragedClassifier, Classifier
from milpbn.problem.scores.spec import Score
from milpbn.solving import averaging, trials
from milpbn.solving.averaging import averaged, to_average
from milpbn.solving.grid import Grid
from milpbn.solving.options import Options
from milpbn.solving.progress import closing_block
from milpbn.solving.question import Question
from milpbn.solving.selection import maximise_selected, solve_selected
from milpbn.solving.tally import Sums, Tally
from milpbn.solving.trials import Choosing
from milpbn.util.budget import Budget

QUIET = Options(threads=1, verbose=False)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 2, 90)
    return pd.DataFrame(
        {"size": 1.5 * kind + rng.normal(size=90), "other": rng.normal(size=90), "kind": kind.astype(str)}
    )


def ranked(settings, losses, splits=None):
    """Return settings with log-losses and numbers of splits, the best first."""
    found = [
        Tally(s, {"ml": Sums(0.5, loss, n)}, total=1.0, splits=n)
        for s, loss, n in zip(settings, losses, splits or [5] * len(losses), strict=True)
    ]
    return sorted(found, key=lambda one: one.trial.rank("log-loss"))


def test_settings_that_differ_in_parameters_only_count_once():
    settings = Grid.parse("max-parents=1,2 discretise=mdl,quantile:3 parameters=ml,hybrid").settings(Score())
    order = ranked(settings, [0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1])
    taken = to_average(order, 8)
    assert taken[0] is order[0]
    keys = [(one.setting.score.max_parents, str(one.setting.discretisation)) for one in taken]
    assert len(keys) == len(set(keys)) == 4
    assert [one.trial.log_loss for one in taken] == sorted(one.trial.log_loss for one in taken)
    assert to_average(order, 2) == taken[:2]
    assert to_average(order, 1) == [order[0]]


def test_settings_that_stopped_early_do_not_count():
    settings = Grid((0.6, 0.7, 0.8, 0.9), (2,)).settings(Score())
    order = ranked(settings, [0.1, 0.4, 0.2, 0.3], [3, 5, 5, 3])
    assert [one.setting.p for one in to_average(order, 4)] == [0.8, 0.7]


def test_the_members_are_the_networks_of_the_best_settings(frame, tmp_path):
    """Each is what a run with its setting and the parameters of its trial finds."""
    table = milpbn.read_table(frame)
    grid = Grid.parse(
        "score=cll leave-one-out=yes max-parents=1,2 discretise=mdl,quantile:4 parameters=temperature",
        "log-loss",
    )
    options = replace(QUIET, output=str(tmp_path / "r.json"), certificate=str(tmp_path / "p.npz"))
    single = maximise_selected(Question(table, Score()), QUIET, grid)
    result = maximise_selected(Question(table, Score()), options, replace(grid, average=3))
    assert isinstance(result.classifier, AveragedClassifier)
    assert (result.structure, result.objective, result.bound) == (
        single.structure,
        single.objective,
        single.bound,
    )
    assert result.selection == single.selection
    assert result.average.networks == result.average.asked == 3
    best = sorted(result.selection.trials, key=lambda trial: trial.rank("log-loss"))[:3]
    for trial, member in zip(best, result.classifier.members, strict=True):
        again = milpbn.solve(
            milpbn.read_table(frame, discretise=trial.options["discretise"]),
            Score(name="cll", leave_one_out=True, max_parents=trial.max_parents),
            parameters=trial.options["parameters"],
            threads=1,
            verbose=False,
        )
        assert member.structure == again.classifier.structure
        np.testing.assert_allclose(member.predict_proba(frame), again.classifier.predict_proba(frame))
        assert member.provenance["objective"] == pytest.approx(again.objective)
        assert member.provenance["bound"] >= member.provenance["objective"] - 1e-9
        assert member.provenance["score"]["max_parents"] == trial.max_parents
    expected = np.mean([member.predict_proba(frame) for member in result.classifier.members], axis=0)
    np.testing.assert_allclose(result.classifier.predict_proba(frame), expected)
    again = Result.load(tmp_path / "r.json")
    assert again.average == result.average
    assert "average of 3 networks; score, bound, gap and certificate are of the first" in closing_block(again)
    dataset = milpbn.read_table(frame, discretise=best[0].options["discretise"]).dataset()
    verified = milpbn.certificate.verify.check.verify(again, tmp_path / "p.npz", dataset)
    assert verified.objective == pytest.approx(result.objective)


def test_more_than_there_are_takes_all_and_says_so():
    data = random_data(5, n_samples=40)
    result = solve_selected(
        data, Score(), p_values=(0.6, 0.9), max_parents_values=(1,), average=5, threads=1, verbose=False
    )
    assert len(result.classifier.members) == 2
    text = closing_block(result)
    assert "average of 2 networks" in text
    assert "5 were asked for: no more settings differ" in text
    assert set(result.classifier.predict(data)) <= set(result.classifier.classes)


def test_an_average_of_one_is_a_network():
    data = random_data(5, n_samples=40)
    plain = {"p_values": (0.9,), "max_parents_values": (1,), "threads": 1, "verbose": False}
    result = solve_selected(data, Score(), average=3, **plain)
    assert isinstance(result.classifier, Classifier)
    assert "one network, not an average" in closing_block(result)
    result = solve_selected(data, Score(), **plain)
    assert result.average is None
    assert "network" not in closing_block(result)


@pytest.mark.parametrize("average", [0, -1, True, 1.5])
def test_impossible_numbers_are_refused(average):
    with pytest.raises(InputError, match="average"):
        solve_selected(random_data(1), Score(), average=average)


@pytest.fixture(scope="module")
def first():
    """Data, and the result of a search with the first of four settings."""
    data = random_data(6, n_samples=30)
    chosen = milpbn.select(data, Score(), p_values=(0.6,), max_parents_values=(2,), threads=1, verbose=False)
    return data, replace(milpbn.solve(data, Score(p=0.6), threads=1, verbose=False), selection=chosen)


@pytest.fixture
def order():
    """The four settings, ranked."""
    return ranked(Grid((0.6, 0.7, 0.8, 0.9), (2,)).settings(Score()), [0.1, 0.2, 0.3, 0.4])


def complete(result, order, data, *, interrupted=False, options=QUIET, seconds=None, began=0.0):
    options = replace(options, time_limit=seconds)
    given = Choosing(Question(data, Score()), options, Grid(average=4), Budget(seconds, began=began))
    return averaged(result, order, given, interrupted=interrupted)


def test_the_time_limit_leaves_the_networks_that_exist(first, order, monkeypatch):
    data, result = first
    found = complete(result, order, data, seconds=1e-9)
    assert found.classifier is result.classifier
    assert found.average.note == "the time limit came before the others"
    assert found.objective == result.objective

    calls, real = [], trials.maximise

    def stop_after_one(*arguments, **named):
        calls.append(named)
        if len(calls) > 1:
            raise NoIncumbentError("The time limit ended while it was tried.")
        return real(*arguments, **named)

    monkeypatch.setattr(trials, "maximise", stop_after_one)
    found = complete(result, order, data)
    assert found.average.networks == len(found.classifier.members) == 2
    assert found.average.note == "The time limit ended while it was tried"
    assert not found.average.interrupted
    assert Result.from_dict(found.to_dict()).average == found.average


def test_the_networks_share_the_time_that_is_left(first, order, monkeypatch):
    data, result = first
    asked, now = [], [100.0]

    def record(question, options, **named):
        asked.append((options.time_limit, named["started"], options.output, options.start))
        now[0] += 4.0
        return result

    monkeypatch.setattr(trials, "maximise", record)
    monkeypatch.setattr(averaging, "time", SimpleNamespace(monotonic=lambda: now[0]))
    order[1] = replace(order[1], incumbent=result.structure)
    found = complete(
        result, order, data, seconds=30.0, began=100.0, options=replace(QUIET, output="unused.json")
    )
    assert asked[0] == (10.0, 100.0, None, result.structure)
    assert asked[1] == (13.0, 104.0, None, None)
    assert asked[2] == (22.0, 108.0, None, None)
    assert found.seconds.average == 12.0
    assert found.seconds.total == result.seconds.total + 12.0


@pytest.mark.parametrize(
    ("failure", "note"),
    [
        (SolverError("It failed."), "It failed"),
        (MemoryError(), "the machine ran out of memory"),
        (None, "no structure was found for one of the others"),
    ],
)
def test_a_failure_of_another_network_loses_nothing(first, order, failure, note, monkeypatch):
    data, result = first

    def fail(*arguments, **named):
        if failure is not None:
            raise failure
        return replace(result, reason="no_solution", structure=None, objective=None, classifier=None)

    monkeypatch.setattr(trials, "maximise", fail)
    found = complete(result, order, data)
    assert (found.average.networks, found.average.note, found.average.interrupted) == (1, note, False)
    assert found.classifier is result.classifier


@pytest.mark.parametrize("how", ["raised", "noted", "before", "asked"])
def test_an_interrupt_keeps_the_networks_that_exist(first, order, how, monkeypatch):
    data, result = first
    calls, real = [], trials.maximise

    def interrupt(*arguments, **named):
        calls.append(1)
        if len(calls) == 2:
            if how == "raised":
                raise KeyboardInterrupt
            return replace(real(*arguments, **named), reason="feasible", limit="user")
        return real(*arguments, **named)

    monkeypatch.setattr(trials, "maximise", interrupt)
    options = replace(QUIET, interrupted=lambda: True) if how == "asked" else QUIET
    found = complete(result, order, data, interrupted=how == "before", options=options)
    assert found.average.networks == (1 if how in ("before", "asked") else 2)
    assert found.average.interrupted
    assert "4 were asked for: the run was interrupted" in closing_block(found)
    assert found.reason == result.reason


def test_an_interrupted_selection_gives_the_best_alone(monkeypatch):
    made, real = [], trials.Tally.add

    def interrupt_after_three(self, result, *others):
        real(self, result, *others)
        made.append(result)
        if len(made) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(trials.Tally, "add", interrupt_after_three)
    result = solve_selected(
        random_data(6, n_samples=40), Score(), p_values=(0.6, 0.9), average=2, threads=1, verbose=False
    )
    assert isinstance(result.classifier, Classifier)
    assert result.average.interrupted


def test_times_count_from_the_beginning(frame):
    """With a time limit the searches have limits of their own; the result's times include what came before."""
    options = replace(QUIET, time_limit=60.0)
    grid = Grid.parse("p=.6,.9 max-parents=1")
    began = time.monotonic()
    result = maximise_selected(Question(milpbn.read_table(frame), Score()), options, replace(grid, average=2))
    passed = time.monotonic() - began
    seconds = result.seconds
    assert seconds.total <= passed
    assert sum(list(vars(seconds).values())[1:]) == pytest.approx(seconds.total)
    assert seconds.average > 0
    assert Result.from_dict(result.to_dict()).average == result.average
    assert result.trace[0][0] > 0

"""Choosing options by validation: protocol, ties, sharing, interrupts, and what becomes of missing values."""

from __future__ import annotations

import signal

import numpy as np
import pandas as pd
import pytest
from running import random_data

import milpbn
from milpbn.claims.result import NotSavedError
from milpbn.data import stratified_folds
from milpbn.data.dataset import MISSING, Dataset, Variable
from milpbn.errors import DataWarning, InputError
from milpbn.network.margins import log_posterior
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.refit import fitted_path
from milpbn.sklearn import MaxMarginBNClassifier
from milpbn.solving import chain, reductions, report, selection
from milpbn.solving.grid import Grid
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.selection import choose, select, solve_selected
from milpbn.trials.parts import datasets_of, splits_of, validation_datasets
from milpbn.util import interrupts

QUICK = {"threads": 1, "verbose": False}


def test_small_data_are_folded_and_every_pair_of_values_is_tried():
    chosen = select(random_data(1, n_samples=40), milpbn.Score(), p_values=(0.6, 0.9), **QUICK)
    assert chosen.protocol == "5-fold cross-validation"
    assert {(t.p, t.max_parents) for t in chosen.trials} == {(p, k) for p in (0.6, 0.9) for k in (1, 2)}
    assert all(t.splits == 5 and t.proved == 5 for t in chosen.trials)
    assert all(0 <= t.accuracy <= 1 for t in chosen.trials)
    best = max(t.accuracy for t in chosen.trials)
    ties = [t for t in chosen.trials if t.accuracy == pytest.approx(best)]
    first = min(ties, key=lambda t: (t.max_parents, t.p))
    assert (chosen.p, chosen.max_parents) == (first.p, first.max_parents)


def test_large_data_get_one_validation_set():
    data = random_data(2, n_samples=1200)
    chosen = select(data, milpbn.Score(), p_values=(0.9,), max_parents_values=(1,), **QUICK)
    assert chosen.protocol == "validation set of 20 %"
    assert chosen.trials[0].splits == 1


def test_the_accuracy_is_that_of_rows_that_did_not_train():
    data = random_data(3, n_samples=60)
    chosen = select(data, milpbn.Score(), p_values=(0.9,), max_parents_values=(2,), **QUICK)
    right = 0
    for train, held_out in milpbn.data.stratified_folds(data.y, 5, 0):
        result = milpbn.solve(data.take(train), milpbn.Score(p=0.9), **QUICK)
        test = data.take(held_out)
        right += int((result.classifier.predict_log_joint(test).argmax(axis=1) == test.y).sum())
    assert chosen.trials[0].accuracy == pytest.approx(right / 60)


def test_the_seconds_of_a_trial_hold_where_there_is_no_time_limit(monkeypatch):
    asked = []

    def record(job):
        asked.append(job.options.time_limit)
        return run(job)

    run = chain.run
    monkeypatch.setattr(chain, "run", record)
    options = Options(threads=1, verbose=False)
    choose(
        Question(random_data(3, n_samples=40), milpbn.Score()), options, Grid((0.9,), (1,)), trial_seconds=7.5
    )
    assert asked == [7.5] * 5


def test_the_validation_samples_learn_their_own_states():
    rows = [[i % 7, "ab"[i % 2], "pq"[i % 2]] for i in range(30)]
    table = milpbn.read_table(pd.DataFrame(rows, columns=["x", "y", "c"]), nominal=["x"])
    splits = validation_datasets(table, 3)
    expected = stratified_folds(table.dataset("all").y, 5, 3)
    assert len(splits) == 5
    for (fit, held), (fit_rows, held_rows) in zip(splits, expected, strict=True):
        assert fit.sha256 == table.dataset(fit_rows).sha256
        assert held.sha256 == table.encode(fit.variables, held_rows).sha256


def test_scores_without_gamma_choose_max_parents_only():
    data = random_data(4, n_samples=40)
    chosen = select(data, milpbn.Score(name="mdl"), p_values=None, **QUICK)
    assert chosen.p is None
    assert [t.p for t in chosen.trials] == [None, None]
    with pytest.raises(InputError, match="p belongs to"):
        select(data, milpbn.Score(name="mdl"), **QUICK)


def test_the_final_solve_uses_all_rows_and_the_choice(tmp_path):
    data = random_data(5, n_samples=40)
    path = tmp_path / "r.json"
    result = solve_selected(data, milpbn.Score(), p_values=(0.6, 0.99), output=path, **QUICK)
    assert result.data.samples == 40
    assert result.score.gamma == milpbn.Score(p=result.selection.p).gamma
    assert result.score.max_parents == result.selection.max_parents
    assert milpbn.Result.load(path).selection == result.selection


def test_too_few_rows_for_validation_are_refused():
    table = milpbn.read_table(([["a"], ["b"], ["b"]], ["0", "1", "1"]))
    with pytest.raises(InputError, match="3 training rows are too few to choose by validation"):
        solve_selected(table, milpbn.Score(), **QUICK)


def test_the_output_of_a_selection_is_verified_with_all_rows(monkeypatch, tmp_path):
    """The best structure so far is scored on all rows, although its trial saw some of them."""
    monkeypatch.setattr(selection, "SAVE_FIRST", 0.0)
    path, proof = tmp_path / "r.json", tmp_path / "proof.npz"
    data = random_data(5, n_samples=40)
    proof.write_bytes(b"of an earlier run")
    select(
        data,
        milpbn.Score(),
        p_values=(0.6, 0.9),
        max_parents_values=(1,),
        output=path,
        certificate=proof,
        **QUICK,
    )
    saved = milpbn.Result.load(path)
    assert (saved.reason, saved.data.samples) == ("running", 40)
    assert saved.objective == pytest.approx(milpbn.rescore(data, saved.structure, saved.score))
    best = milpbn.solve(data, saved.score, **QUICK)
    assert saved.objective <= best.objective + 1e-9 <= saved.bound + 2e-9
    assert not proof.exists()


def test_a_selection_refuses_files_that_cannot_be_written(tmp_path):
    for option in ("output", "certificate"):
        with pytest.raises(InputError, match=r"no such folder|does not exist|cannot be written"):
            select(random_data(5), milpbn.Score(), **{option: tmp_path / "no" / "file"}, **QUICK)


@pytest.mark.parametrize("where", ["saving", "after the search"])
def test_a_signal_at_any_moment_of_a_selection_stops_it(monkeypatch, tmp_path, where):
    """Also while the best so far is written, and while a trial's classifier is made."""
    sent, data = [], random_data(5, n_samples=40)

    def once():
        if not sent:
            sent.append(signal.raise_signal(signal.SIGINT))

    if where == "saving":
        real, target, name = milpbn.Result.save, milpbn.Result, "save"
        monkeypatch.setattr(selection, "SAVE_FIRST", 0.0)
    else:
        real, target, name = report.fit_classifier, report, "fit_classifier"

    def disturbed(*arguments):
        once()
        return real(*arguments)

    monkeypatch.setattr(target, name, disturbed)
    with interrupts.handled():
        result = solve_selected(
            data, milpbn.Score(), p_values=(0.6, 0.99), output=tmp_path / "r.json", **QUICK
        )
    assert result.selection.interrupted
    assert sum(t.splits for t in result.selection.trials) < 20


def test_a_file_that_cannot_be_written_loses_nothing(monkeypatch, tmp_path):
    def refuse(self, path):
        raise InputError(f"{path} cannot be written.")

    monkeypatch.setattr(milpbn.Result, "save", refuse)
    data, path = random_data(5, n_samples=40), tmp_path / "r.json"
    with pytest.raises(NotSavedError, match="cannot be written") as caught:
        solve_selected(data, milpbn.Score(), p_values=(0.6, 0.99), output=path, **QUICK)
    result = caught.value.result
    assert result.structure is not None
    assert len(result.selection.trials) == 4


def test_an_interrupt_keeps_the_trials_made(monkeypatch):
    made = []
    real = chain.Tally.add

    def interrupt_after_three(self, result, *others):
        if len(made) == 3:
            raise KeyboardInterrupt
        real(self, result, *others)
        made.append(result)

    monkeypatch.setattr(chain.Tally, "add", interrupt_after_three)
    result = solve_selected(random_data(6, n_samples=40), milpbn.Score(), p_values=(0.6, 0.9), **QUICK)
    assert result.selection.interrupted
    assert result.structure is not None
    assert sum(t.splits for t in result.selection.trials) == 3


def test_an_interrupt_before_any_trial_is_raised(monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(reductions, "build_problem", interrupt)
    with pytest.raises(KeyboardInterrupt):
        select(random_data(7, n_samples=40), milpbn.Score(), **QUICK)


def test_cuts_are_learnt_on_the_training_rows_of_each_split():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    table = milpbn.read_table(
        (np.column_stack([y + rng.normal(size=120), rng.normal(size=120)]), y.astype(str))
    )
    splits, _ = splits_of(table, 0)
    cuts = [datasets_of(table, split)[0].variables[0].cuts for split in splits]
    assert len(cuts) == 5
    assert len(set(cuts)) > 1


@pytest.mark.parametrize(
    "option", [{"warm_start": False}, {"solver_options": {"presolve": "off"}}, {"log": "l"}]
)
def test_what_the_final_solve_would_refuse_is_refused_before_the_trials(option, monkeypatch):
    monkeypatch.setattr(chain, "run", None)  # no trial
    with pytest.raises(InputError, match="native"):
        select(random_data(1), milpbn.Score(), **option)


def test_files_say_running_until_the_last_solve_ends(tmp_path):
    """While settings are compared and while the last search runs, the output file says so."""
    said, save = [], milpbn.Result.save

    def record(self, path):
        said.append((self.reason, self.limit, self.selection is None))
        save(self, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(milpbn.Result, "save", record)
        patch.setattr(selection, "SAVE_FIRST", 0.0)
        solve_selected(
            random_data(7, n_samples=40), milpbn.Score(), p_values=(0.6,), output=tmp_path / "r.json", **QUICK
        )
    running = [entry for entry in said if entry[0] == "running"]
    assert running
    assert said[: len(running)] == running
    assert said[-1] == ("optimal", None, False)


def test_parameters_are_chosen_by_held_out_rows_of_structures_that_have_not_seen_them(tmp_path) -> None:
    data = random_data(21, n_samples=80)
    path = tmp_path / "r.json"
    result = solve_selected(
        data, grid="score=cll max-parents=2 parameters=hybrid", by="log-loss", output=path, **QUICK
    )
    chosen = ParameterMethod.parse(result.selection.options["parameters"])
    assert chosen.given
    loss = 0.0
    splits, _ = splits_of(data, 0, for_rare=True)
    for train, held_out in (datasets_of(data, split) for split in splits):
        trial = milpbn.solve(train, milpbn.Score(name="cll"), threads=1, verbose=False).classifier
        fitted = dict(fitted_path(trial, train, "hybrid"))
        posterior = log_posterior(fitted[chosen].predict_log_joint(held_out))
        loss -= float(posterior[np.arange(held_out.n_samples), held_out.y].sum())
    assert result.selection.chosen.log_loss == pytest.approx(5 * loss / (80 * len(splits)), rel=1e-6)
    assert result.parameters.folds is None
    assert (result.parameters.kappa, result.parameters.strength) == (
        (chosen.kappa, chosen.strength) if chosen.name != "ml" else (None, None)
    )
    assert milpbn.Result.load(path).selection == result.selection


def test_settings_that_differ_in_the_cuts_of_no_column_are_one(tmp_path) -> None:
    table = milpbn.read_table("corral")
    result = solve_selected(table, grid="p=.9 max-parents=1 discretise=mdl,quantile:3", **QUICK)
    assert len(result.selection.trials) == 1


def test_a_recipe_and_a_grid_exclude_each_other() -> None:
    data = random_data(22, n_samples=40)
    with pytest.raises(InputError, match="a grid of its own"):
        solve_selected(data, grid="p=.9", recipe="readable", **QUICK)
    with pytest.raises(InputError, match="no recipe 'best'; choose from accurate"):
        solve_selected(data, recipe="best", **QUICK)
    with pytest.raises(InputError, match="parameters is among the options to select"):
        solve_selected(data, grid="parameters=cll,ml", parameters="cll", **QUICK)
    with pytest.raises(InputError, match="give the name"):
        solve_selected(data, grid="parameters=cll:3", **QUICK)


TIMED = {"threads": 1, "time_limit": 20.0, "verbose": False}
GRID = "score=cll max-parents=1 missing=drop,state"


def frame(*, informative: bool, n: int = 120) -> pd.DataFrame:
    """Return a table that lacks values of `a` in rows of class 1, or at random."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    lacking = (
        np.where(y == 1, rng.random(n) < 0.7, rng.random(n) < 0.05) if informative else rng.random(n) < 0.3
    )
    a = np.where(rng.random(n) < 0.1, 1 - y, y) if not informative else rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "a": np.where(lacking, None, np.where(a == 1, "yes", "no")),
            "b": np.where(rng.random(n) < 0.3, 1 - y, y).astype(str),
            "c": y.astype(str),
        }
    )


def test_both_policies_are_scored_on_the_same_rows() -> None:
    table = milpbn.read_table(frame(informative=True), missing="state")
    splits, _ = splits_of(table, 0)
    assert not table.complete.all()
    for split in splits:
        dropped, held_out = datasets_of(table, split, None, "drop")
        kept, same = datasets_of(table, split, None, "state")
        assert held_out.n_samples == same.n_samples == len(split[1])
        np.testing.assert_array_equal(held_out.y, same.y)
        assert dropped.n_samples == table.complete[split[0]].sum() < kept.n_samples
        assert (held_out.codes == MISSING).sum() == (~table.complete[split[1]]).sum()
        assert not (same.codes == MISSING).any()


@pytest.mark.parametrize("informative", [True, False])
def test_what_held_out_rows_prefer_is_chosen(informative) -> None:
    data = frame(informative=informative)
    result = solve_selected(data, grid=GRID, by="log-loss", **TIMED)
    losses = {trial.options["missing"]: trial.log_loss for trial in result.selection.trials}
    assert set(losses) == {"drop", "state"}
    chosen = result.selection.options["missing"]
    assert losses[chosen] == min(losses.values())
    if informative:
        assert chosen == "state"
    lacking = int(data["a"].isna().sum())
    with pytest.warns(DataWarning):
        plain = milpbn.read_table(data, missing="drop")
    if chosen == "drop":
        assert result.data.samples == len(data) - lacking
        assert result.data.sha256 == plain.dataset().sha256
        assert f"Rows dropped for missing values: {lacking} of {len(data)}." in result.notes
    else:
        assert result.data.samples == len(data)
        assert result.data.sha256 == milpbn.read_table(data, missing="state").dataset().sha256


def test_the_table_of_complete_rows_is_the_one_that_drop_reads() -> None:
    data = frame(informative=False)
    table = milpbn.read_table(data, missing="state").of_complete_rows()
    with pytest.warns(DataWarning):
        other = milpbn.read_table(data, missing="drop")
    assert table.frame.equals(other.frame)
    assert (table.missing, table.notes, table.kinds) == (other.missing, other.notes, other.kinds)
    assert table.dataset().sha256 == other.dataset().sha256


def test_nothing_is_chosen_where_there_is_nothing_to_choose() -> None:
    data = frame(informative=False).dropna()
    result = solve_selected(data, grid=GRID, **TIMED)
    assert [dict(trial.options) for trial in result.selection.trials] == [{"score": "cll"}]
    with pytest.warns(DataWarning):
        dropped = milpbn.read_table(frame(informative=False))
    with pytest.raises(InputError, match="the table was read with missing='drop'"):
        solve_selected(dropped, grid=GRID, **TIMED)


def test_rows_are_not_dropped_where_a_class_would_be_lost() -> None:
    data = frame(informative=False)
    data.loc[data["c"] == "1", "a"] = None
    result = solve_selected(data, grid=GRID, **TIMED)
    assert result.selection.options["missing"] == "state"
    assert len(result.selection.trials) == 1


def test_an_estimator_leaves_the_choice_to_a_recipe() -> None:
    data = frame(informative=True)
    X, y = data[["a", "b"]], data["c"]
    options = {"max_parents": 1, "hybrid": 0.5, "parameters": "ml", "time_limit": 20}
    model = MaxMarginBNClassifier(recipe="readable", missing="select", **options).fit(X, y)
    trials = model.result_.selection.trials
    assert {trial.options["missing"] for trial in trials} == {"drop", "state"}
    assert model.n_dropped_ == len(data) - model.result_.data.samples
    assert model.predict(X).shape == (len(data),)
    with pytest.raises(InputError, match="leaves the choice to validation"):
        MaxMarginBNClassifier(missing="select").fit(X, y)


@pytest.mark.parametrize(
    ("rare", "rows", "protocol", "folds"),
    [
        (600, 3000, "validation set of 20 %", 1),
        (120, 3000, "5-fold cross-validation", 5),
        (60, 3000, "5-fold cross-validation, 2 times", 10),
        (10, 3000, "5-fold cross-validation, 3 times", 15),
        (200, 400, "5-fold cross-validation", 5),
    ],
)
def test_few_rows_of_a_class_are_held_out_more_often(rare, rows, protocol, folds) -> None:
    """The paper has one validation set above 1,000 rows, whatever their classes."""
    codes = np.zeros((rows, 2), np.int32)
    codes[:rare, 1] = 1
    variables = tuple(Variable(name, ("0", "1")) for name in ("x", "y"))
    data = Dataset("rare", variables, codes, np.ones(rows))
    splits, words = splits_of(data, 0, for_rare=True)
    assert (words, len(splits)) == (protocol, folds)
    held = sum(np.count_nonzero(data.y[rows] == 1) for _, rows in splits)
    assert held >= min(100, 3 * rare)
    assert len(splits_of(data, 0)[0]) == (1 if rows > 1000 else 5)


def test_accuracy_is_that_of_the_decisions() -> None:
    """With costs, the class of least cost is decided, which is the rarer one much more often."""
    data = random_data(5, n_samples=200, n_classes=2)
    costs = {"missed": 50, "false_alarm": 1, "positive": data.variables[-1].states[1]}
    grid = Grid.parse("score=cll max-parents=1", "accuracy")
    options = Options(costs=costs, **QUICK)
    trial = choose(Question.of(data, milpbn.Score(), None), options, grid).chosen
    right = 0
    for train, held_out in (datasets_of(data, split) for split in splits_of(data, 0, for_rare=True)[0]):
        fitted = milpbn.solve(
            train, milpbn.Score(name="cll", max_parents=1), threads=1, verbose=False
        ).classifier
        right += int((fitted.deciding(costs).predict_codes(held_out) == held_out.y).sum())
    assert trial.accuracy == pytest.approx(right / (200 * trial.splits / 5))
    assert trial.cost is not None

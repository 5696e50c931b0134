"""The recipe accurate: what it chooses and claims, on tables and datasets, with limits, constraints and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import milpbn
from milpbn.claims.reasons import Reason
from milpbn.claims.result import Result
from milpbn.data import relevance
from milpbn.data.relevance import MOST_FEATURES
from milpbn.errors import DataWarning, InputError, NoIncumbentError
from milpbn.estimators.max_margin import MaxMarginBNClassifier
from milpbn.network.additive import choice, learning
from milpbn.network.additive.fitting import Objective
from milpbn.network.additive.interactions import Room
from milpbn.network.additive.model import Additive
from milpbn.network.additive.record import AdditiveFit
from milpbn.network.classifier import Classifier
from milpbn.network.formats.classifier_files import load_classifier, save_classifier
from milpbn.network.parameters.record import FINER_TABLES, ParameterFit, recorded
from milpbn.problem.constraints import Constraints
from milpbn.problem.rescore import rescore
from milpbn.report.command import repeat_commands
from milpbn.solving import accurate
from milpbn.solving.selection import solve_selected
from milpbn.util.budget import Budget, Limit
from milpbn.util.jsonable import Fields


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few folds and candidates, so that a run takes seconds."""
    monkeypatch.setattr(learning, "PLANS", ((learning.MOST_ROWS, 2, 1),))
    monkeypatch.setattr(learning, "CUTS", ("quantile:8",))
    monkeypatch.setattr(choice, "PASSES", 1)


def frame_of(n: int, seed: int = 0) -> pd.DataFrame:
    """Two columns whose product decides the class, one with a curve, and one nominal with a missing value."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n))
    word = rng.choice(["u", "v", None], n, p=[0.5, 0.45, 0.05])
    score = 2 * np.sign(a * b) + 2 * np.sin(2 * c) + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "word": word, "kind": np.where(score > 0, "yes", "no")})


def run(data: Any, **options: Any) -> Result:
    return solve_selected(data, recipe="accurate", threads=1, verbose=False, **{"time_limit": 60, **options})


def test_it_finds_curves_and_interactions_and_says_what_it_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "CUTS", ("boosted:8", "quantile:8"))
    train, test = frame_of(400), frame_of(400, 1)
    out = tmp_path / "r.json"
    result = run(train, output=out)
    classifier, record = result.classifier, result.parameters
    counts = classifier.provenance["data"]["rows_by_state"]  # of the fine variables, too
    assert [len(own) for own in counts] == [v.n_states for v in classifier.variables]
    assert record is not None
    assert record.additive is not None
    assert record.describe()[-1] == FINER_TABLES
    # The structure is over the columns, its score and bound on the coarse cuts that were chosen.
    assert result.structure is not None
    assert result.structure.names == ("a", "b", "c", "word", "kind")
    assert {"a", "b"} & {result.structure.names[j] for own in result.structure.parents[:2] for j in own}
    table = milpbn.read_table(train, missing="state", discretise=result.data.discretisation).in_units()
    coarse = table.dataset()
    assert coarse.sha256 == result.data.sha256
    assert result.objective == pytest.approx(rescore(coarse, result.structure, result.score))
    assert result.bound is not None
    assert result.bound >= result.objective
    # The tables are on finer cuts.
    fine = [v for v in classifier.variables if v.column is not None]
    assert [v.column for v in fine] == ["a", "b", "c"]
    assert min(v.n_states for v in fine) > 40
    accuracy = np.mean(classifier.predict(test) == test["kind"])
    assert accuracy > 0.8  # without the interaction it is .7
    # A table without a column is predicted, too.
    with pytest.warns(milpbn.DataWarning, match="absent"):
        assert np.isfinite(classifier.predict_log_posterior(test.drop(columns="a"))).all()
    save_classifier(classifier, tmp_path / "c.json")
    again = Result.load(out, classifier=tmp_path / "c.json")
    assert again.to_dict() == result.to_dict()
    assert recorded(load_classifier(tmp_path / "c.json").provenance) == record
    assert ParameterFit.read(Fields(record.to_dict(), "x")) == record


def rule_of(n: int, seed: int) -> pd.DataFrame:
    """The class is a rule of three columns, none of which says anything alone or with one other, with 5 % of noise."""
    rng = np.random.default_rng(seed)
    a, b, c = (rng.choice(["n", "y"], n) for _ in range(3))
    size = rng.normal(size=n)
    odd = ((a == "y") ^ (b == "y") ^ (c == "y")) ^ (rng.random(n) < 0.05)
    return pd.DataFrame({"a": a, "b": b, "c": c, "size": size, "kind": np.where(odd, "odd", "even")})


def test_a_rule_of_three_columns_gets_a_table_over_them_and_a_score_that_admits_it() -> None:
    train, test = rule_of(300, 0), rule_of(300, 1)
    result = run(train, time_limit=20)
    record = result.parameters
    assert record is not None
    assert record.additive is not None
    assert record.additive.choice.structure in ("grown", "pairs")
    assert result.structure is not None
    families = [{c, *own} for c, own in result.structure.to_mapping().items()]
    assert any(own >= {"a", "b", "c", "kind"} for own in families)
    assert result.score.max_parents == max(map(len, families)) - 1 > 2
    coarse = (
        milpbn.read_table(train, missing="state", discretise=result.data.discretisation).in_units().dataset()
    )
    assert result.objective == pytest.approx(rescore(coarse, result.structure, result.score))
    assert result.bound is not None
    assert result.bound >= result.objective
    assert np.mean(result.classifier.predict(test) == test["kind"]) > 0.9
    # The report's command leaves the number of parents to the recipe; a number that is given is kept.
    assert "--max-parents" not in repeat_commands(result)[0]
    kept = run(train, score=replace(result.score, max_parents=2), time_limit=20)
    assert kept.score.max_parents == 2
    assert max(map(len, kept.classifier.structure.parents)) == 2
    assert kept.parameters is not None
    assert kept.parameters.additive is not None
    assert {trial.structure for trial in kept.parameters.additive.trials} == {
        "none",
        "forest",
        "tan",
        "exact",
    }


def test_held_out_rows_say_whether_few_integers_are_in_order() -> None:
    rng = np.random.default_rng(0)
    rating, code = rng.integers(1, 9, (2, 400))
    trend, jumps = 0.7 * (rating - 4.5), 6 * (code % 2) - 3
    for column, score, ordered in ((rating, trend, True), (code, jumps, False)):
        likely = rng.random(400) < 1 / (1 + np.exp(-score))
        frame = pd.DataFrame({"few": column, "kind": np.where(likely, "yes", "no")})
        record = run(frame).parameters.additive
        assert record.choice.ordered is ordered
        assert {trial.ordered for trial in record.trials} == {False, True}
        assert ("integers in order" in record.choice.describe()) is ordered
        declared = run(milpbn.read_table(frame, nominal=["few"], missing="state"))
        assert not any(trial.ordered for trial in declared.parameters.additive.trials)


def test_interactions_beyond_a_forest_need_no_search_among_as_many_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accurate, "MOST_SETS", 30)  # as in a table of many columns and rows
    result = run(rule_of(200, 0), time_limit=20)
    assert result.parameters is not None
    assert result.parameters.additive is not None
    assert result.parameters.additive.choice.structure == "grown"
    assert "the bound is one that needs no search" in result.parameters.note
    assert max(map(len, result.structure.parents)) == accurate.LEAST_ROOM == result.score.max_parents
    assert result.bound >= result.objective


def test_of_a_wide_table_the_features_that_matter_are_used_and_those_of_constraints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relevance, "LEAST_FEATURES", 8)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, MOST_FEATURES + 40))).add_prefix("x")
    kind = np.where(frame["x3"] + frame["x5"] > 0, "yes", "no")
    with pytest.warns(DataWarning, match=f"of {MOST_FEATURES + 40} features, which say less"):
        result = run(frame.assign(kind=kind), monotone={"x9": "+"})
    assert result.structure is not None
    assert {"x3", "x5", "x9"} < {*result.structure.names}
    assert len(result.structure.names) < MOST_FEATURES
    assert any("which say less" in note for note in result.notes)
    assert result.classifier is not None
    assert result.parameters is not None
    assert result.parameters.fitted
    assert np.mean(result.classifier.predict(frame) == kind) > 0.8


def test_constraints_against_a_wide_network_are_kept() -> None:
    result = run(rule_of(200, 0), time_limit=20, constraints=Constraints(max_children={"*": 1}))
    children = [sum(j in own for own in result.classifier.structure.parents[:3]) for j in range(3)]
    assert max(children) <= 1


def test_the_searchs_structure_stays_if_there_is_no_time_for_the_chosen_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(*_: Any) -> Any:
        raise choice.OutOfTime

    monkeypatch.setattr(accurate, "fitted", late)
    result = run(rule_of(200, 0), time_limit=200)
    assert result.parameters is not None
    assert result.parameters.note.startswith("The fit of the tables was stopped; the generative")
    assert result.classifier.structure == result.structure
    assert result.trace[-1][1] == result.objective  # that of the search, not of the folds' preference


def test_a_search_that_ends_without_a_structure_keeps_that_of_the_folds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def empty(*arguments: Any, **options: Any) -> Result:
        found = maximise(*arguments, **options)
        return replace(found, structure=None, reason=Reason.NO_SOLUTION, limit=Limit.TIME)

    maximise = accurate.maximise
    monkeypatch.setattr(accurate, "maximise", empty)
    result = run(rule_of(200, 0), time_limit=20)
    assert result.structure is not None
    assert result.parameters is not None
    assert result.parameters.fitted
    assert result.bound >= result.objective


@pytest.mark.parametrize("limit", [20, 0.01])
def test_without_time_for_coefficients_the_folds_structure_is_kept(
    monkeypatch: pytest.MonkeyPatch, limit: float
) -> None:
    def slow(*_: Any, **__: Any) -> Result:
        raise NoIncumbentError("The time limit ended.")

    monkeypatch.setattr(accurate, "maximise", slow)
    data = rule_of(200, 0)
    result = run(data, time_limit=limit)
    record = result.parameters
    assert record is not None
    assert record.fitted
    assert "the bound is one that needs no search" in record.note
    assert ParameterFit.read(Fields(record.to_dict(), "x")) == record
    assert (max(map(len, result.classifier.structure.parents)) > 2) is (limit > 1)
    assert result.limit is Limit.TIME
    coarse = learning.training_data(milpbn.read_table(data, missing="state"), "quantile:8")[0]
    exact = rescore(coarse, result.structure, result.score)
    assert result.objective == pytest.approx(exact)
    assert result.bound >= result.objective


def test_without_time_for_folds_and_structures_the_first_candidate_is_fitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the limit; the search goes on until it has a structure if that of the folds cannot be taken."""

    def late(*_: Any) -> Any:
        raise choice.OutOfTime

    def slow(*arguments: Any, **options: Any) -> Result:
        seconds.append(arguments[1].time_limit)
        if len(seconds) < 3:
            raise NoIncumbentError("The time limit ended.")
        return maximise(*arguments, **options)

    seconds: list[float] = []
    maximise = accurate.maximise
    monkeypatch.setattr(choice.Folds, "losses", late)
    monkeypatch.setattr(accurate, "maximise", slow)
    monkeypatch.setattr(accurate._Recipe, "_preferred", lambda *_: None)
    result = run(frame_of(300), time_limit=0.01)
    assert seconds[0] + 5 < seconds[2]
    assert result.parameters is not None
    assert result.parameters.fitted
    first, strengths, end = result.parameters.describe()[:3]
    assert first == "cuts quantile:8, a forest of interactions, kappa 0, the first candidate"
    assert strengths.startswith("ridge and smoothness of main effects 1 and 3")
    assert end == "The time limit ended the choice before one was compared on held-out rows."
    assert ParameterFit.read(Fields(result.parameters.to_dict(), "x")) == result.parameters
    test = frame_of(300, 1)
    assert np.mean(result.classifier.predict(test) == test["kind"]) > 0.7


def test_a_fit_that_is_cut_short_keeps_its_last_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    table = milpbn.read_table(rule_of(200, 0), discretise="quantile:4")
    data = learning.training_data(table, "quantile:4")[1]
    record = AdditiveFit(trials=(), chosen=0, rows=1, folds=2, repeats=1, complete=True)
    chosen = learning.Chosen(choice.Setup("quantile:4"), choice.Sources(), record)
    blocks, structure = chosen.interactions(data, Budget())
    plain = Additive.fit

    def fit(self: Additive, penalty: Any, start: Any, budget: Budget, *accuracy: float) -> Any:
        if start is not None:  # the second, more accurate fit
            budget.end(Limit.TIME)
        return plain(self, penalty, start, budget, *accuracy)

    shares = []
    for _ in range(2):
        found = learning.fitted(chosen, data, blocks, structure, Budget())
        assert not isinstance(found, str)
        shares.append(Classifier(data.variables, *found).predict_proba(data))
        monkeypatch.setattr(Additive, "fit", fit)
    np.testing.assert_allclose(*shares, atol=0.02)
    assert np.abs(shares[0] - shares[1]).max() > 1e-6


def test_a_late_fit_is_one_to_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of all rows, which starts from it, ends at once."""
    monkeypatch.setattr(learning, "MOST_ROWS", 150)
    table = milpbn.read_table(rule_of(600, 0), discretise="quantile:4")
    data = learning.training_data(table, "quantile:4")[1]
    record = AdditiveFit(trials=(), chosen=0, rows=1, folds=2, repeats=1, complete=True)
    chosen = learning.Chosen(choice.Setup("quantile:4"), choice.Sources(), record)
    blocks, structure = chosen.interactions(data, Budget())
    plain, calls = Objective.with_posterior, []

    def with_posterior(self: Objective, *arguments: Any) -> Any:
        calls.append(len(self._rows.classes))
        return plain(self, *arguments)

    monkeypatch.setattr(Objective, "with_posterior", with_posterior)
    shares = []
    for budget in (Budget(), Budget(0.0)):
        calls.clear()
        found = learning.fitted(chosen, data, blocks, structure, budget)
        assert not isinstance(found, str)
        shares.append(Classifier(data.variables, *found).predict_proba(data))
    assert {*calls} == {150, 600}
    assert calls.count(600) < calls.count(150)
    assert np.abs(shares[0] - shares[1]).mean() < 0.1


def test_the_log_odds_of_small_tables_are_multiplied_if_that_suits_held_out_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=200), rng.integers(0, 2, 200)
    odds = {}
    for rows, column in ((200, x > 0), (199, x > 0), (200, noise > 0)):  # two classes apart, and chance
        monkeypatch.setattr(learning, "FEW_ROWS", rows)
        frame = pd.DataFrame({"x": x, "kind": np.where(column, "yes", "no")})
        table = milpbn.read_table(frame, discretise="quantile:4")
        data = learning.training_data(table, "quantile:4")[1]
        chosen = learning.choose_model(table, sources=choice.Sources(), budget=Budget(), cuts="quantile:4")
        assert not isinstance(chosen, str)
        found = learning.fitted(chosen, data, *chosen.interactions(data, Budget()), Budget())
        assert not isinstance(found, str)
        logs = Classifier(data.variables, *found[:2]).predict_log_posterior(data)
        odds[chosen.record.sharper, rows] = logs[:, 1] - logs[:, 0]
    assert {*odds} == {(choice.SHARPER, 200), (1.0, 199), (1.0, 200)}
    np.testing.assert_allclose(odds[choice.SHARPER, 200], choice.SHARPER * odds[1.0, 199], rtol=1e-6)


def test_two_runs_give_the_same_answer() -> None:
    frame = frame_of(150)[["a", "c", "kind"]]
    one, other = (run(frame, time_limit=None) for _ in range(2))
    assert one.structure == other.structure
    assert one.objective == other.objective
    np.testing.assert_array_equal(one.classifier.predict_proba(frame), other.classifier.predict_proba(frame))


def test_rows_that_are_coded_already_keep_their_cuts() -> None:
    data = milpbn.read_table(frame_of(200).dropna(), discretise="quantile:4").dataset()
    result = run(data)
    assert result.classifier.variables == data.variables
    assert result.parameters is not None
    assert result.parameters.additive is not None
    assert {trial.cuts for trial in result.parameters.additive.trials} == {""}


def test_given_cuts_and_scores_are_kept() -> None:
    X = frame_of(150).dropna()
    y = X.pop("kind")
    model = MaxMarginBNClassifier(recipe="accurate", discretise="quantile:5", time_limit=40, n_jobs=1)
    model.fit(X, y)
    assert model.result_.data.discretisation == "quantile:5"
    assert model.result_.score.name == "cll"
    assert model.predict_proba(X).shape == (len(X), 2)
    kept = run(pd.concat([X, y], axis=1)[["a", "c", "kind"]], score=milpbn.Score(p=0.9))
    assert kept.score.name == "sm"


def test_constraints_hold_for_the_tables_or_are_named() -> None:
    frame = frame_of(200).dropna()
    forbidden = run(frame, constraints=Constraints(forbidden=[("a", "b"), ("b", "a")]))
    names = forbidden.classifier.structure.names
    arcs = {(names[j], names[i]) for j, i in forbidden.classifier.structure.arcs}
    assert not {("a", "b"), ("b", "a")} & arcs
    alone = run(frame, constraints=Constraints(forbidden=[("kind", "c")]))
    assert alone.parameters is not None
    assert not alone.parameters.fitted
    assert "the forbidden arc 'kind' -> 'c'" in alone.parameters.note.replace("kind -> c", "'kind' -> 'c'")
    assert alone.classifier.structure == alone.structure


def test_a_candidate_that_is_hopeless_is_given_up_before_its_last_fold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(learning, "PLANS", ((learning.MOST_ROWS, 4, 1),))
    table = milpbn.read_table(rule_of(200, 0), discretise="quantile:4")
    fits: list[tuple[int, float]] = []
    plain = Additive.fit

    def fit(self: Additive, penalty: Any, *arguments: Any) -> Any:
        fits.append((len(self.interactions), penalty.kappa))
        return plain(self, penalty, *arguments)

    monkeypatch.setattr(Additive, "fit", fit)
    counts = []
    for limit in (choice.HOPELESS, -1e9):
        monkeypatch.setattr(choice, "HOPELESS", limit)
        chosen = learning.choose_model(table, sources=choice.Sources(), budget=Budget(), cuts="quantile:4")
        assert not isinstance(chosen, str)
        for trial in chosen.record.trials:
            assert trial.log_loss == pytest.approx(chosen.record.choice.log_loss + trial.difference)
        counts.append(sum(kappa > 0 for _, kappa in fits))
        fits.clear()
    assert counts[1] == 2 * len(choice.KAPPAS) < counts[0]


def test_interactions_are_compared_again_beside_cuts_that_are_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a forest wins beside the first cuts, and none beside the finer ones that many rows have as a candidate."""
    loss = {("quantile:8", "forest"): 0.6, ("quantile:16", "forest"): 0.5, ("quantile:16", "none"): 0.4}
    asked: list[tuple[str, str]] = []

    def losses(self: choice.Folds, candidate: choice.Setup, rival: Any = None) -> Any:
        asked.append((candidate.cuts, candidate.structure))
        found = np.full(len(self.weights), loss.get(asked[-1], 0.7))
        self.known[candidate] = self.sharper[candidate] = found
        return found

    monkeypatch.setattr(choice.Folds, "losses", losses)
    monkeypatch.setattr(choice, "KAPPAS", ())
    frame = frame_of(200)[["a", "b", "c", "kind"]]
    for many, cuts, structure in ((201, "quantile:8", "forest"), (200, "quantile:16", "none")):
        monkeypatch.setattr(learning, "MANY_ROWS", many)
        chosen = learning.choose_model(milpbn.read_table(frame), sources=choice.Sources(), budget=Budget())
        assert not isinstance(chosen, str)
        assert (chosen.setup.cuts, chosen.setup.structure) == (cuts, structure)
        setups = [(one.cuts, one.structure, one.grouped, one.curvature) for one in chosen.record.trials]
        assert len(set(setups)) == len(setups)  # none is compared twice
        assert ("quantile:16" in {cuts for cuts, _ in asked}) == (many == 200)


def test_time_that_ends_the_choice_keeps_the_best_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    table = milpbn.read_table(rule_of(200, 0), discretise="quantile:4")
    plain, budget, left = Additive.fit, Budget(), iter(range(7))

    def fit(self: Additive, *arguments: Any) -> Any:
        if next(left, None) is None:
            budget.end(Limit.TIME)
        return plain(self, *arguments)

    monkeypatch.setattr(Additive, "fit", fit)
    chosen = learning.choose_model(table, sources=choice.Sources(), budget=budget, cuts="quantile:4")
    assert not isinstance(chosen, str)
    assert not chosen.record.complete
    assert chosen.record.choice.log_loss == min(trial.log_loss for trial in chosen.record.trials)


def test_time_that_ends_the_search_for_strengths_keeps_a_candidate_that_is_better_already() -> None:
    table = milpbn.read_table(rule_of(200, 0), discretise="quantile:4")
    budget = Budget()

    def report(line: str) -> None:
        if "interactions and more" in line:  # the rule needs its triple
            budget.end(Limit.TIME)

    sources = choice.Sources(room=Room(3))
    chosen = learning.choose_model(table, sources=sources, budget=budget, cuts="quantile:4", report=report)
    assert not isinstance(chosen, str)
    assert not chosen.record.complete
    assert chosen.record.choice.structure == "grown"


def test_a_short_limit_and_a_stop_keep_a_structure_and_say_why() -> None:
    hurried = run(frame_of(300), time_limit=3)
    assert hurried.structure is not None
    assert hurried.parameters is not None
    assert hurried.seconds.total < 8
    stopped = run(frame_of(300), interrupted=lambda: True)
    assert stopped.parameters is not None
    assert not stopped.parameters.fitted
    assert "generative parameters are kept" in stopped.parameters.note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": 3}, "leave out --average"),
        ({"by": "accuracy"}, "leave out --select-by"),
        ({"parameters": "hybrid"}, "leave out --parameters"),
        ({"grid": "p=.9"}, "a grid of its own"),
    ],
)
def test_options_of_grids_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(frame_of(30), **options)


def test_a_record_that_contradicts_itself_is_refused() -> None:
    trial = choice.AdditiveTrial(
        cuts="mdl", structure="none", main_ridge=1.0, main_smoothness=1.0, pair_ridge=1.0, pair_smoothness=1.0,
        kappa=0.5, log_loss=0.3, difference=0.0, standard_error=0.0,
    )  # fmt: skip
    fit = AdditiveFit(trials=(trial,), chosen=1, rows=9, folds=2, repeats=1, complete=True)
    with pytest.raises(InputError, match="no trial with the number"):
        AdditiveFit.read(Fields(fit.to_dict(), "It"))
    said = replace(fit, chosen=0).describe()
    assert said[0] == "cuts mdl, no interactions, kappa 0.5; log-loss 0.3000 in 2 folds"
    record = ParameterFit(method="additive", fitted=True, kappa=0.5)
    with pytest.raises(InputError, match="without how they were chosen"):
        ParameterFit.read(Fields(record.to_dict(), "It"))


def test_a_class_of_one_row_is_in_no_fold_or_leaves_the_choice_out() -> None:
    table = frame_of(60).drop(columns="word")
    table["kind"] = np.where(table["a"] > 0, "yes", "no")
    third = run(table.assign(kind=["third", *table["kind"][1:]]), time_limit=20)
    assert third.parameters is not None
    assert third.parameters.fitted
    assert third.parameters.additive is not None
    assert third.parameters.additive.choice.log_loss > 36 / 60  # no model of the row's fold knows its class
    one = run(table.assign(kind=["rare", *["common"] * 59]))
    assert one.parameters is not None
    assert not one.parameters.fitted
    assert one.parameters.note.startswith("Too few rows have another class than most")
    assert one.structure is not None


def odd_tables() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    kind, x = rng.choice(["a", "b"], 60), rng.normal(size=60)
    return {
        "constant": pd.DataFrame({"k": 1.0, "s": "v", "kind": kind}),
        "identical": pd.DataFrame({"x": [1.5] * 60, "s": ["u"] * 60, "kind": ["a"] * 25 + ["b"] * 35}),
        "huge": pd.DataFrame({"h": x * 1e300, "m": np.where(x > 1, 1e300, -1e300), "kind": kind}),
        "missing": pd.DataFrame({"e": np.where(np.arange(60) < 1, x, np.nan), "kind": kind}),
    }


@pytest.mark.parametrize("name", odd_tables())
def test_odd_tables_get_probabilities(name: str) -> None:
    frame = odd_tables()[name]
    result = run(frame, time_limit=20)
    assert result.parameters.fitted
    shares = result.classifier.predict_proba(frame)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    if name in ("constant", "identical"):
        likely = (frame["kind"] == "b").mean()
        np.testing.assert_allclose(shares[:, 1], likely, atol=0.02)


def test_curves_and_pairs_are_monotone_in_raw_values() -> None:
    frame = frame_of(300)
    monotone = {"c": "+", "a": "-", "positive": "yes"}
    result = run(frame, monotone=monotone)
    assert result.parameters is not None
    record = result.parameters.monotone
    assert record is not None
    assert record.holds
    assert record.log_loss > record.free_log_loss
    yes = result.classifier.classes.index("yes")
    for column, values in (("c", np.linspace(-3, 3, 80)), ("a", np.linspace(3, -3, 80))):
        rows = (frame.head(30).assign(**{column: value}) for value in values)
        found = [result.classifier.predict_proba(one)[:, yes] for one in rows]
        assert np.diff(found, axis=0).min() > -1e-12

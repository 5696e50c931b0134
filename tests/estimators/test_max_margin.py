from __future__ import annotations

import inspect
import math
import os
import pickle
import signal
import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import milpbn
from milpbn.claims.reasons import Limit, Reason
from milpbn.errors import MilpbnWarning
from milpbn.estimators.searched import warn_of_gap
from milpbn.estimators.settings import RENAMED, options_of
from milpbn.network.additive.choice import Setup, trial_of
from milpbn.network.additive.record import AdditiveFit
from milpbn.network.parameters.record import ADDITIVE, ParameterFit
from milpbn.sklearn import MaxMarginBNClassifier
from milpbn.solving.options import Options
from milpbn.solving.progress import closing_block
from milpbn.solving.recipes import READABLE, RECIPES

#: The values of p that "cv" compares here.
P_VALUES = (0.6, 0.9)


@pytest.fixture(autouse=True)
def _few_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selections of few settings: what they choose, and how, is tested in solving/."""
    recipe = RECIPES[READABLE]
    grid = recipe.grid.replace("max-parents=1,2,3", "max-parents=1,2").replace("=hybrid", "=temperature")
    monkeypatch.setitem(RECIPES, READABLE, replace(recipe, grid=grid))  # type: ignore[arg-type]
    monkeypatch.setattr("milpbn.solving.recipes.P_GRID", P_VALUES)


def small(n: int = 40, features: int = 4, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return nominal features, of which the second is the exclusive or of the first and the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    codes = rng.integers(0, 3, (n, features))
    codes[:, 1] = codes[:, 0] % 2 ^ y
    return pd.DataFrame(codes, columns=[f"f{i}" for i in range(features)]), np.where(y, "yes", "no")


def hard() -> tuple[np.ndarray, np.ndarray]:
    """Return data on which a proof takes longer than any test."""
    rng = np.random.default_rng(1)
    return rng.integers(0, 3, (400, 18)), rng.integers(0, 3, 400)


def test_every_option_of_solve_is_a_parameter() -> None:
    options = {field.name for field in (*fields(milpbn.Score), *fields(Options))}
    parameters = set(MaxMarginBNClassifier().get_params())
    assert {RENAMED.get(name, name) for name in options} - {"on_change"} <= parameters
    assert {"constraints", "subset", "recipe"} <= parameters
    defaults = {n: p.default for n, p in inspect.signature(milpbn.solve).parameters.items()}
    for name, value in MaxMarginBNClassifier().get_params().items():
        if name in defaults and name not in ("random_state", "verbose"):
            assert value == defaults[name], name


def test_the_result_is_that_of_solve() -> None:
    X, y = small()
    model = MaxMarginBNClassifier(p=0.9, max_parents=3).fit(X, y)
    data = milpbn.read_table((X, pd.Series(y, name="class")))
    result = milpbn.solve(data, milpbn.Score(p=0.9, max_parents=3), threads=1, verbose=False)
    assert result.structure is not None
    assert model.structure_ == result.structure.to_mapping()
    assert (model.objective_, model.bound_) == (result.objective, result.bound)
    assert model.optimal_
    assert model.stop_reason_ == "optimal"
    assert model.gap_ == model.bound_ - model.objective_ <= 1e-6 * max(1.0, model.objective_)
    assert model.trace_.shape[1] == 3
    assert model.trace_[-1, 1:].tolist() == [model.objective_, model.bound_]
    assert math.isnan(model.trace_[0, 1])  # the first bound comes before the first structure
    assert model.result_.classifier is model.classifier_
    assert model.score(X, y) > 0.9
    assert not {name for name in vars(model) if isinstance(vars(type(model)).get(name), property)}


def test_weights_are_copies_and_rows_without_weight_are_absent() -> None:
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(2)
    X[:, 3] = rng.integers(0, 3, len(y))
    weights = rng.integers(0, 3, len(y)) * (y != 1)
    y = np.where(rng.random(len(y)) < 0.2, 0, y) * (y != 1) + (y == 1)
    model = MaxMarginBNClassifier(p=0.8, nominal=[3])
    weighted = clone(model).fit(X, y, sample_weight=weights)
    rows = rng.permutation(np.repeat(np.arange(len(y)), weights))
    repeated = clone(model).fit(X[rows], y[rows])
    assert weighted.classes_.tolist() == [0, 2]
    assert weighted.optimal_
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-12)
    assert weighted.structure_ == repeated.structure_
    assert np.array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert any(v.cuts for v in weighted.classifier_.variables)


def test_options_of_the_score_and_constraints() -> None:
    X, y = small()
    constraints = milpbn.Constraints(required=[("f0", "f3")], forbidden=[("f0", "f1"), ("f1", "f0")])
    model = MaxMarginBNClassifier(objective="cll", hybrid=0.1, leave_one_out=True, constraints=constraints)
    model.fit(X, y)
    assert "f0" in model.structure_["f3"]
    assert "f0" not in model.structure_["f1"]
    assert model.result_.score == milpbn.Score(name="cll", hybrid=0.1, leave_one_out=True)
    with pytest.raises(milpbn.InputError, match="no score 'nonsense'"):
        clone(model).set_params(objective="nonsense").fit(X, y)


def test_no_time_gives_the_smallest_model() -> None:
    X, y = hard()
    model = MaxMarginBNClassifier(time_limit=0)
    with pytest.warns(
        ConvergenceWarning,
        match=r"its time limit before it proved the structure best; the gap is at most [\d.e+]+ nats \([\d.]+ %",
    ):
        model.fit(X, y)
    assert not any(model.structure_.values())
    assert (model.optimal_, model.stop_reason_) == (False, "time")
    assert model.bound_ > model.objective_
    assert np.unique(model.predict(X)).size == 1
    constraints = milpbn.Constraints(required=[("x3", "x1")])
    with pytest.warns(ConvergenceWarning):
        model.set_params(constraints=constraints, time_limit=1e-9).fit(X, y)
    assert model.structure_["x1"] == ["x3"]
    with pytest.raises(milpbn.InputError, match="time limit must be a positive number"):
        model.set_params(time_limit=-1).fit(X, y)


def test_a_gap_that_was_asked_for_needs_no_warning() -> None:
    X, y = hard()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MaxMarginBNClassifier(gap_rel=0.9).fit(X, y)
    assert model.stop_reason_ == "gap"
    assert model.gap_ > 0


def test_files_are_written(tmp_path: Path) -> None:
    X, y = small()
    output, trace = tmp_path / "result.json", tmp_path / "trace.jsonl"
    model = MaxMarginBNClassifier(output=output, trace=trace).fit(X, y)
    assert milpbn.Result.load(output).objective == model.objective_
    assert trace.read_text().count("\n") == len(model.trace_)
    with pytest.warns(ConvergenceWarning):
        model.set_params(time_limit=0).fit(X, y)
    assert milpbn.Result.load(output).limit == "time"


def test_pickle_and_clone() -> None:
    X, y = small()
    model = MaxMarginBNClassifier(constraints=milpbn.Constraints(forbidden=[("f0", "f1")])).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.result_.to_dict() == model.result_.to_dict()
    again = clone(copy)
    assert again.get_params() == model.get_params()
    assert again.fit(X, y).structure_ == model.structure_


def test_grid_search_over_a_pipeline() -> None:
    X, y = small()
    pipe = make_pipeline(
        OrdinalEncoder(dtype=np.int64).set_output(transform="pandas"), MaxMarginBNClassifier()
    )
    grid = {"maxmarginbnclassifier__objective": ["sm", "cll"], "maxmarginbnclassifier__max_parents": [1, 2]}
    search = GridSearchCV(pipe, grid, cv=2).fit(X, y)
    assert search.best_params_["maxmarginbnclassifier__max_parents"] == 2
    assert search.best_estimator_[-1].structure_.keys() == {*X.columns, "class"}


def test_the_recipe_and_what_is_given_beside_it() -> None:
    X, y = small(60, 3)
    model = MaxMarginBNClassifier(recipe="readable", hybrid=0.5, max_parents=2, discretise="uniform:3")
    model.set_params(time_limit=20.0).fit(X.assign(f3=np.linspace(0, 1, 60) ** 2), y)
    selection = model.result_.selection
    assert selection is not None
    assert model.result_.score.name == "cll"
    assert model.result_.score.hybrid == 0.5
    assert set(selection.options) == {"score", "leave-one-out", "parameters", "parent-sets"}
    assert len(model.classifier_.variables[3].cuts) == 2
    joint = model.predict_joint_log_proba(X.assign(f3=0.5))
    assert np.allclose(
        joint - np.logaddexp.reduce(joint, axis=1)[:, None], model.predict_log_proba(X.assign(f3=0.5))
    )
    with pytest.raises(milpbn.InputError, match="no recipe 'best'"):
        MaxMarginBNClassifier(recipe="best").fit(X, y)


def test_no_warning_of_a_gap_where_held_out_rows_prefer_another_structure_than_the_proved_one() -> None:
    X, y = small(60, 3)
    proved = MaxMarginBNClassifier(max_parents=1).fit(X, y).result_
    worse = replace(proved, reason=Reason.FEASIBLE, bound=proved.bound + 1.0)
    with pytest.warns(ConvergenceWarning, match="the gap is at most 1 nats"):
        warn_of_gap(worse)
    record = AdditiveFit(
        trials=(trial_of(Setup("mdl")),), chosen=0, rows=60, folds=5, repeats=1, complete=True
    )
    fit = ParameterFit(method=ADDITIVE, fitted=True, additive=record)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_gap(replace(worse, parameters=fit))
    with pytest.warns(ConvergenceWarning, match="time limit"):
        warn_of_gap(replace(worse, parameters=fit, limit=Limit.TIME))


def test_the_average_of_a_recipe_that_also_chooses_what_missing_values_mean() -> None:
    X, y = small(60, 3)
    X = X.astype(object).mask(np.arange(180).reshape(60, 3) == 4)
    model = MaxMarginBNClassifier(recipe="readable", average=2, time_limit=60.0, parameters="cll").fit(X, y)
    assert len(model.classifier_.members) == 2
    assert "missing" in model.result_.selection.options
    assert model._repr_html_().count("mb-picture") >= 2
    assert "Network 2 of 2" in model._repr_html_()
    assert np.allclose(model.predict_proba(X), model.classifier_.predict_proba(X))
    assert (model.predict(X) == y).mean() > 0.9
    assert not hasattr(model, "predict_joint_log_proba")
    assert model.structure_ == model.result_.structure.to_mapping()
    with pytest.raises(milpbn.InputError, match="takes the best settings of a selection"):
        MaxMarginBNClassifier(average=2).fit(X, y)


@pytest.mark.parametrize(
    ("choices", "how"),
    [
        ({"p": "cv", "max_parents": "cv"}, {"p_values": P_VALUES, "max_parents_values": (1, 2)}),
        (
            {"select": "score=sm,cll p=.9 max-parents=1 discretise=mdl,quantile:3", "select_by": "log-loss"},
            {},
        ),
        ({"p": "cv", "select": "max-parents=1"}, {"grid": "max-parents=1 p=.6,.9"}),
    ],
)
def test_a_selection_is_that_of_solve_selected(choices: dict[str, Any], how: dict[str, Any]) -> None:
    X, y = small(24, 2)
    X["f3"] = np.linspace(0, 1, 24) ** 2
    model = MaxMarginBNClassifier(**choices, time_limit=600.0).fit(X, y)
    data = milpbn.read_table((X, pd.Series(y, name="class")))
    how = how or {"grid": choices["select"]}
    by = choices.get("select_by", "accuracy")
    result = milpbn.solve_selected(data, **how, by=by, time_limit=600.0, threads=1, verbose=False)
    chosen, expected = model.result_.selection, result.selection
    assert chosen is not None
    assert expected is not None
    assert (chosen.p, chosen.max_parents, chosen.options, chosen.by) == (
        expected.p,
        expected.max_parents,
        expected.options,
        by,
    )
    assert len(chosen.trials) == len(expected.trials)
    assert (model.objective_, model.structure_) == (result.objective, result.structure.to_mapping())
    assert np.allclose(model.predict_proba(X), result.classifier.predict_proba(X))


def test_a_selection_may_choose_what_missing_values_mean_and_be_averaged() -> None:
    X, y = small(60, 3)
    X = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.1)
    model = MaxMarginBNClassifier(select="missing=drop,state p=.6,.9", missing="select", average=2)
    model.set_params(time_limit=30.0).fit(X, y)
    assert model.result_.selection.options["missing"] in ("drop", "state")
    assert len(model.classifier_.members) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"p": "cv", "gamma": 1.0}, "p='cv' chooses gamma itself"),
        ({"select": "p=.6,.9", "p": 0.9}, "p is among the options to select"),
        ({"select": "p=.6,.9", "p": "cv"}, "p is among the options to select"),
        ({"select": "q=1"}, "The grid has 'q=1'"),
        ({"select": "p=.6", "recipe": "readable"}, "has a grid of its own"),
        ({"select_by": "gain", "recipe": "readable"}, "not by 'gain'"),
        ({"p": "cv", "select_by": "gain"}, "not by 'gain'"),
        ({"select": "missing=drop,state"}, "set missing='select'"),
        ({"select": "p=.6,.9", "missing": "select"}, "leaves the choice to validation"),
        ({"missing": "select"}, "leaves the choice to validation"),
        ({"p": "often"}, "p"),
    ],
)
def test_selections_that_contradict_themselves_are_refused(given: dict[str, Any], message: str) -> None:
    X, y = small()
    with pytest.raises(milpbn.InputError, match=message):
        MaxMarginBNClassifier(**given).fit(X, y)


class Recorder:
    """A callback that asks for everything, and stops a search after some changes."""

    def __init__(self, most: float = math.inf) -> None:
        self.most = most
        self.calls: list[Any] = []

    def setup(self, estimator: Any, context: Any) -> None:
        self.calls.append("setup")

    def teardown(self, estimator: Any, context: Any) -> None:
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any, *, X: Any, y: Any, fitted_estimator: Any) -> bool:
        known = fitted_estimator
        self.calls.append((context.task_name, known.objective_, known.bound_, known.score(X, y)))
        return len(self.calls) > self.most


@pytest.mark.skipif(
    not hasattr(MaxMarginBNClassifier, "set_callbacks"), reason="this scikit-learn has no callbacks"
)
def test_callbacks_see_every_change() -> None:
    X, y = small()
    seen = Recorder()
    model = MaxMarginBNClassifier().set_callbacks(seen).fit(X, y)
    assert (seen.calls[0], seen.calls[-1]) == ("setup", "teardown")
    assert seen.calls[-2] == ("fit", model.objective_, model.bound_, model.score(X, y))
    changes = seen.calls[1:-2]
    assert changes[-1][1:] == seen.calls[-2][1:]
    objectives, bounds = np.array([c[1:3] for c in changes]).T
    assert (np.diff(objectives) >= 0).all()
    assert (np.diff(bounds) <= 0).all()


@pytest.mark.skipif(
    not hasattr(MaxMarginBNClassifier, "set_callbacks"), reason="this scikit-learn has no callbacks"
)
def test_a_callback_can_stop_the_search() -> None:
    X, y = hard()
    model = MaxMarginBNClassifier().set_callbacks(Recorder(most=1))
    with pytest.warns(ConvergenceWarning, match="The search was interrupted before") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.stop_reason_ == "user"
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("options", [{}, {"parameters": "cll"}])
def test_ctrl_c_keeps_the_incumbent(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = hard()
    before, pressed = signal.getsignal(signal.SIGINT), []

    def press(result: milpbn.Result) -> None:
        if result.structure is not None and not pressed:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    def with_press(model: MaxMarginBNClassifier, on_change: Any) -> Options:
        return replace(options_of(model, on_change), on_change=press)

    monkeypatch.setattr("milpbn.estimators.max_margin.options_of", with_press)
    model = MaxMarginBNClassifier(time_limit=300, **options)
    with pytest.warns(ConvergenceWarning, match="The search was interrupted before"):
        model.fit(X, y)
    assert model.stop_reason_ == "user"
    assert model.predict(X).shape == y.shape
    assert signal.getsignal(signal.SIGINT) is before


def test_warnings_name_the_line_that_called_fit(recwarn: pytest.WarningsRecorder) -> None:
    X, y = hard()
    frame = pd.DataFrame(X.astype(object), columns=[f"f{i}" for i in range(X.shape[1])])
    frame.iloc[0, 0] = None
    MaxMarginBNClassifier(time_limit=0, discretise="quantile:3").fit(frame, y)
    assert [warning.category for warning in recwarn] == [milpbn.DataWarning, ConvergenceWarning]
    assert {warning.filename for warning in recwarn} == {__file__}


def test_a_structure_in_which_no_feature_matters_is_said() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.choice(["a", "b"], (40, 2)), np.tile([0, 1], 20)
    with pytest.warns(MilpbnWarning, match="No arc joins the class: every row gets the same class"):
        model = MaxMarginBNClassifier(p=0.501).fit(X, y)
    assert set(model.predict(X)) == {0}
    assert "(no arc joins the class: this network gives every sample the same class)" in closing_block(
        model.result_
    )


@pytest.mark.parametrize(
    "options",
    [
        {"select": "leave-one-out=yes max-parents=1,2"},
        {"leave_one_out": True},
    ],
)
def test_leave_one_out_takes_balanced_classes(options: dict[str, Any]) -> None:
    X, y = small(40, 2)
    y[:15] = "no"
    balanced = MaxMarginBNClassifier(class_weight="balanced", **options).fit(X, y)
    few, many = np.sort(np.unique(y, return_counts=True)[1])
    weights = np.where(y == "yes", many / few, 1.0)
    weighted = MaxMarginBNClassifier(**options).fit(X, y, sample_weight=weights)
    assert balanced.objective_ == pytest.approx(weighted.objective_, rel=1e-9)
    np.testing.assert_allclose(balanced.predict_proba(X), weighted.predict_proba(X), rtol=1e-6)

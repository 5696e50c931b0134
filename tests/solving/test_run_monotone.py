"""Monotone features from a table to a classifier: on raw rows, in files, with limits, selections and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import milpbn
from milpbn.claims.result import Result
from milpbn.errors import DataWarning, InputError
from milpbn.estimators.max_margin import MaxMarginBNClassifier
from milpbn.network.classifier import rows_by_state
from milpbn.network.formats.classifier_files import load_classifier, save_classifier
from milpbn.network.monotone.check import check_classifier
from milpbn.network.parameters.record import recorded, recorded_checks
from milpbn.network.parameters.thresholds import decide_by_folds
from milpbn.report.command import repeat_commands
from milpbn.solving.options import Options
from milpbn.solving.selection import solve_selected
from milpbn.solving.smallest import smallest_model

QUICK = {"backend": "highs", "threads": 1, "verbose": False}
GRADES = ["low", "mid", "high"]


def frame_of(n: int, seed: int = 0) -> pd.DataFrame:
    """A class that is rare, with a wave in age, noise in grade, and missing incomes."""
    rng = np.random.default_rng(seed)
    age, income = rng.uniform(20, 80, n), rng.normal(size=n)
    grade = rng.choice(GRADES, n)
    score = 0.06 * age + np.sin(age / 4) - income + 0.3 * (grade == "low") + rng.logistic(size=n)
    frame = pd.DataFrame({"age": age, "income": income, "grade": grade})
    frame["ill"] = np.where(score > np.quantile(score, 0.7), "yes", "no")
    frame.loc[rng.random(n) < 0.1, "income"] = np.nan
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return frame_of(300)


@pytest.fixture(scope="module")
def table(frame):
    return milpbn.read_table(frame, target="ill", missing="state", discretise="quantile:6")


def falls(classifier, frame: pd.DataFrame, column: str, values) -> float:
    """Return the largest fall of P(yes) along the values of a column, whatever the other values of some rows are."""
    yes = classifier.classes.index("yes")
    rows = frame.head(40)
    found = [classifier.predict_proba(rows.assign(**{column: value}))[:, yes] for value in values]
    return float(-np.diff(found, axis=0).min())


def test_raw_rows_never_fall_and_files_and_reports_say_so(table, frame, tmp_path) -> None:
    out = tmp_path / "result.json"
    monotone = {"age": "+", "income": "-", "grade": GRADES}
    plain = milpbn.solve(table, **QUICK)
    result = milpbn.solve(table, monotone=monotone, output=out, **QUICK)
    assert (result.structure, result.bound) == (plain.structure, plain.bound)
    assert recorded(result.classifier.provenance) == result.parameters
    assert Result.load(out).parameters == result.parameters
    assert result.parameters.method == "hybrid"
    assert result.parameters.monotone.holds
    ages = np.linspace(15, 85, 50)
    assert falls(plain.classifier, frame, "age", ages) > 0.01
    assert falls(result.classifier, frame, "age", ages) < 1e-12
    assert falls(result.classifier, frame, "grade", GRADES) < 1e-12
    assert falls(result.classifier, frame, "income", np.linspace(3, -3, 50)) < 1e-12
    save_classifier(result.classifier, tmp_path / "c.json")
    again = load_classifier(tmp_path / "c.json")
    assert again.provenance["data"]["rows_by_state"] == rows_by_state(table.dataset())
    assert recorded_checks(again) == result.parameters.monotone.features
    assert check_classifier(again, monotone) == recorded_checks(again)  # yes is the rarer class
    assert not all(check.holds for check in check_classifier(plain.classifier, monotone))
    words = " ".join(repeat_commands(result))
    assert "--monotone age=+,income=-,grade=low:mid:high --positive yes" in words


def test_folds_of_a_threshold_have_the_same_constraints(table) -> None:
    data = table.dataset()
    result = milpbn.solve(data, monotone={"age": "+"}, parameters="hybrid:1:10", **QUICK)
    decided, figures = decide_by_folds(result.classifier, data, sensitivity=0.8)
    assert figures.sensitivity >= 0.8
    assert recorded_checks(decided) == result.parameters.monotone.features


def test_a_search_without_time_joins_states(table) -> None:
    data = table.dataset()
    result = smallest_model(data, milpbn.Score(), Options(monotone={"age": "+"}, **QUICK))
    assert result.parameters.monotone.holds
    stopped = milpbn.solve(table, monotone={"age": "+"}, interrupted=lambda: True, **QUICK)
    assert stopped.parameters.monotone.holds
    assert "interrupted" in stopped.parameters.note


def test_a_selection_ends_with_monotone_features(frame) -> None:
    rows = frame.drop(columns="income")
    options = {"grid": "max-parents=1,2", "p_values": None, "monotone": {"age": "+"}, **QUICK}
    assert solve_selected(rows, **options).parameters.monotone.holds
    with pytest.raises(InputError, match="leave out --average"):
        solve_selected(rows, average=2, **options)


def test_the_estimator_takes_names_and_scikit_learns_numbers(frame) -> None:
    X, y = frame[["age", "grade"]], frame["ill"]
    for monotone in ({"age": 1}, [1, 0]):
        model = MaxMarginBNClassifier(
            monotone=monotone, discretise="quantile:6", n_jobs=1, backend="highs"
        ).fit(X, y)
        (check,) = model.result_.parameters.monotone.features
        assert (check.constraint.column, check.constraint.classes, check.holds) == (
            "age",
            ("no", "yes"),
            True,
        )
        assert falls(model.classifier_, X, "age", np.linspace(15, 85, 50)) < 1e-12


@pytest.mark.parametrize("monotone", [{"2": 1}, {2: "+", 0: 0, 1: 0}, [0, 0, 1, 0]])
def test_the_estimator_takes_truth_values_and_columns_that_are_no_features(frame, monotone) -> None:
    X = frame[["grade"]].assign(id=np.arange(len(frame)), old=frame["age"] > 50, age=frame["age"] // 20)
    X.columns = range(4)
    model = MaxMarginBNClassifier(monotone=monotone, n_jobs=1, backend="highs")
    with pytest.warns(DataWarning, match="'1' looks like an identifier"):
        fitted = clone(model).fit(X, frame["ill"])
    (check,) = fitted.result_.parameters.monotone.features
    assert (check.constraint.column, check.holds) == ("2", True)


@pytest.mark.parametrize("nothing", [{}, {"age": 0}, [0, 0, 0], np.zeros(3)])
def test_no_constraint_changes_nothing(table, nothing) -> None:
    assert (
        milpbn.solve(table, monotone=nothing, **QUICK).parameters == milpbn.solve(table, **QUICK).parameters
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"monotone": {"size": "+"}}, "names 'size', which is not among the features"),
        ({"monotone": {"grade": "+"}}, "'grade' have no order of their own"),
    ],
)
def test_impossible_constraints_are_refused_before_the_search(table, options, sentence) -> None:
    with pytest.raises(InputError, match=sentence):
        milpbn.solve(table, **options, **QUICK)

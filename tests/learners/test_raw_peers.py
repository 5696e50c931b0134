"""Comparisons on raw columns: what the classifiers see, and that they are those of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegressionCV

import milpbn
from milpbn.data import Table, read_table
from milpbn.errors import InputError
from milpbn.learners import raw_recipes
from milpbn.learners.base import Control
from milpbn.learners.comparison import compare, training_and_test_rows
from milpbn.learners.contestants import names_by_default
from milpbn.learners.raw_peers import mean_curve, numbered
from milpbn.learners.raw_rows import RawData, RawRows
from milpbn.learners.registry import RAW_LEARNERS, get_learner
from milpbn.learners.repeated import compare_over_folds
from milpbn.trials import executors
from milpbn.trials.parts import validation_splits

ROWS = 160


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return rows whose class is a threshold of a number, turned round by a text; some numbers are missing."""
    rng = np.random.default_rng(0)
    found = pd.DataFrame(
        {"x": rng.normal(size=ROWS), "few": rng.integers(0, 4, ROWS), "t": rng.choice(["a", "b", "c"], ROWS)}
    )
    found["class"] = np.where((found["x"] > 0) ^ (found["t"] == "a"), "yes", "no")
    found.loc[::40, "x"] = np.nan
    return found


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit in threads: a process takes seconds to start."""
    real = executors.workers
    monkeypatch.setattr(executors, "workers", lambda count, *, killable: real(count, killable=False))


def read(frame: pd.DataFrame, **options: Any) -> Table:
    return read_table(frame, target="class", missing="state", **options)


def split(frame: pd.DataFrame, **options: Any) -> tuple[RawData, RawData]:
    train, test = training_and_test_rows(read(frame, **options), raw=True)
    assert isinstance(train, RawData)
    assert isinstance(test, RawData)
    return train, test


def test_columns_are_numbers_and_categories_of_the_training_rows(frame: pd.DataFrame) -> None:
    train, test = split(frame)
    for own in (train, test):
        origin = frame.iloc[own.positions].reset_index(drop=True)
        pd.testing.assert_frame_equal(own.frame[["x", "few"]], origin[["x", "few"]].astype(float))
        assert own.frame["t"].astype(str).tolist() == origin["t"].tolist()
        assert own.part.frame["class"].tolist() == origin["class"].tolist()
    large = split(frame.assign(x=frame["x"] * 1e300))[0].frame["x"].dropna()
    assert set(large) <= {1e37, -1e37}  # scaling and float32 would overflow
    few = test.take([3, 1])
    pd.testing.assert_frame_equal(few.frame, test.frame.iloc[[3, 1]].reset_index(drop=True))
    assert RawRows.of(train).texts == ["t"]
    assert RawRows.of(split(frame, nominal=["few"])[0]).texts == [
        "few",
        "t",
    ]  # it is not detected, but declared


def test_a_category_of_test_rows_alone_is_missing(frame: pd.DataFrame) -> None:
    changed = frame.copy()
    changed.loc[ROWS - 1, "t"] = "new"
    table = read(changed)
    train = table.dataset(np.arange(100))
    test = RawData.of(table.encode(train.variables), table, np.arange(ROWS))
    assert test.frame["t"].isna().tolist() == [False] * (ROWS - 1) + [True]


def test_hashes_tell_raw_numbers_apart(frame: pd.DataFrame) -> None:
    """Two tables may have the same states, and a checkpoint of the one is none of the other."""
    moved = frame.assign(x=frame["x"] * 1.0001)
    one, other = (split(each, discretise="uniform:3")[0] for each in (frame, moved))
    assert (one.codes == other.codes).all()
    assert one.sha256 != other.sha256


@pytest.mark.parametrize(
    ("name", "least"),
    [("boosting", 0.85), ("random-forest", 0.85), ("svm", 0.9), ("logistic", 0.5), ("splines", 0.5)],
)
def test_peers_learn_with_weights_and_missing_numbers(frame: pd.DataFrame, name: str, least: float) -> None:
    weights = np.where(frame["class"] == "yes", 3.0, 1.0)
    train, test = split(frame.assign(w=weights), weights="w")
    rows = RawRows.of(train)
    few: dict[str, Any] = {"boosting": {"most": 20, "rate": 0.3}, "random-forest": {"trees": 50}}.get(
        name, {}
    )
    learner = get_learner(name, raw=True)(**few)
    model, choice = learner.fitted(rows, 1)
    assert isinstance(choice, dict)
    assert learner.size(model) > 0
    found = model.predict_proba(test.frame)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (learner.predicted(model, test.frame) == test.y).mean() > least
    without = RawRows(rows.frame, rows.numbers, rows.texts, rows.classes)
    assert not np.allclose(learner.fitted(without, 1)[0].predict_proba(test.frame), found)


@pytest.mark.parametrize("rare", [1, 2])
def test_svm_has_probabilities_where_a_class_is_not_in_every_fold(rare: int) -> None:
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, 2, 3], [60, 60, 60, rare])
    centre = 20.0 * np.array([[0, 0], [0, 1], [1, 1], [1, 0]])[y]
    frame = pd.DataFrame(centre + rng.normal(size=(len(y), 2)), columns=["u", "v"])
    model, _ = get_learner("svm", raw=True)().fitted(RawRows(frame, ("u", "v"), (), y), 1)
    found = model.predict_proba(frame)[np.arange(180), y[:180]]
    assert np.median(found) > 0.7


def test_ebm_learns_pairs(frame: pd.DataFrame) -> None:
    pytest.importorskip("interpret")
    train, test = split(frame)
    learner = get_learner("ebm", raw=True)(outer_bags=2)
    model, choice = learner.fitted(RawRows.of(train))
    assert choice["pairs"] > 0
    assert learner.size(model) == sum(np.size(scores) for scores in model.term_scores_)
    assert (learner.predicted(model, test.frame) == test.y).mean() > 0.8


def test_ebm_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("raw_peers", "contestants"):
        monkeypatch.setattr(f"milpbn.learners.{module}.find_spec", lambda name: None)
    assert "ebm" not in names_by_default(raw=True)
    assert {*names_by_default(raw=True), "ebm"} == set(RAW_LEARNERS)
    with pytest.raises(InputError, match="ebm needs the package interpret-core: pip install"):
        get_learner("ebm", raw=True)().check()


def test_logistic_regression_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=["a", "b"])
    frame["class"] = np.where(frame["a"] + rng.normal(size=90) > 0, "p", "n")
    train, _ = split(frame)
    x, y = train.frame.to_numpy(), train.y
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    cv = validation_splits(y, 5)
    plain = LogisticRegressionCV(Cs=10, cv=cv, scoring="neg_log_loss", max_iter=1000).fit(x, y)
    ours = get_learner("logistic", raw=True)().fitted(RawRows.of(train), 5)[0]
    np.testing.assert_allclose(ours.predict_proba(train.frame), plain.predict_proba(x), atol=1e-6)


def test_many_categories_are_numbered() -> None:
    frame = pd.DataFrame(
        {"id": pd.Categorical([f"v{k:03}" for k in range(300)]), "t": pd.Categorical(["a"] * 300)}
    )
    frame.loc[7, "id"] = None
    found = numbered(frame)
    assert found["t"].dtype == "category"
    assert found["id"].isna().tolist() == [k == 7 for k in range(300)]
    assert found["id"].nunique() == 299


def test_a_curve_that_stopped_goes_on_rising() -> None:
    stopped, longer = np.array([3.0, 1.0, 1.5, 2.0]), np.array([3.0, 2.0, 1.5, 1.2, 1.0, 0.9])
    assert mean_curve([stopped, longer], patience=2) == pytest.approx([3, 1.5, 1.5, 1.6, 1.75, 1.95])


@pytest.mark.usefixtures("here")
def test_recipes_are_compared_with_what_users_take(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def in_short(table: Table, *, recipe: str, **options: Any) -> milpbn.Result:
        asked.append((recipe, table.n_rows, sorted(options)))
        return milpbn.solve(table, **options)

    monkeypatch.setattr(raw_recipes, "solve_selected", in_short)
    train, test = split(frame)
    found = compare(train, test, ("readable", "logistic"), raw=True)
    options = ["interrupted", "random_state", "threads", "time_limit", "verbose"]
    assert asked == [("readable", train.n_samples, options)]
    ours, logistic = found.rows
    assert [row.note for row in found.rows] == ["", ""]
    assert ours.test is not None
    assert logistic.test is not None
    assert ours.test > logistic.test + 0.1  # the class is a rule over two columns
    assert ours.gap is not None
    assert ours.gap >= 0
    assert (ours.score, logistic.gap) == (None, None)
    assert logistic.differences["test"].value == pytest.approx(logistic.test - ours.test)
    text = str(found)
    assert "gap in nats: that of a recipe's last search" in text
    assert "arcs" not in text


@pytest.mark.usefixtures("here")
def test_a_comparison_over_folds_goes_on(frame: pd.DataFrame, tmp_path: Path) -> None:
    how: dict[str, Any] = {"raw": True, "checkpoint": tmp_path / "state.npz"}
    first = compare_over_folds(read(frame), 2, 1, ("logistic",), **how)
    lines: list[str] = []
    again = compare_over_folds(read(frame), 2, 1, ("logistic",), control=Control(report=lines.append), **how)
    assert again.to_dict() == first.to_dict()
    assert [line.split(": ")[1] for line in lines if "part" in line] == ["logistic has finished before"] * 2
    for other, message in (
        ({**how, "raw": False}, "belongs to a comparison"),
        ({**how, "control": Control(parameters="cll")}, "leave out --raw"),
    ):
        with pytest.raises(InputError, match=message):
            compare_over_folds(read(frame), 2, 1, ("logistic",), **other)
    with pytest.raises(
        InputError, match=r"'sm' does not learn from raw columns \(--raw, raw\); choose among accurate"
    ):
        compare_over_folds(read(frame), 2, 1, ("sm",), raw=True)


def test_without_a_table_there_is_a_sentence(frame: pd.DataFrame) -> None:
    train, _ = training_and_test_rows(read(frame))
    with pytest.raises(InputError, match="take the rows of a table"):
        get_learner("logistic", raw=True)().fit(train)


def test_a_fit_that_takes_too_long_is_a_note(frame: pd.DataFrame) -> None:
    train, test = split(frame)
    found = compare(train, test, ("svm",), raw=True, control=Control(time_limit=1e-3))
    assert found.rows[0].note.startswith("not fitted within the time limit")
    assert found.classifiers == 0

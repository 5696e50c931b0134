"""Wrong arguments from Python raise an error with a sentence before the work; none is taken for something else."""

from __future__ import annotations

import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import milpbn
from milpbn.data import read_samples, read_table
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.registry import LEARNERS, get_learner
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescore

QUICK = {"threads": 1, "verbose": False, "time_limit": 20}


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    k = rng.integers(0, 2, 60)
    return pd.DataFrame({"a": (k + (rng.random(60) < 0.2)) % 2, "b": rng.integers(0, 3, 60), "k": k})


@pytest.fixture
def data(frame: pd.DataFrame) -> Dataset:
    return milpbn.read_table(frame).dataset()


@pytest.mark.parametrize("name", ["sm", "cll", "hard-margin", "ll", "mdl", "bdeu"])
def test_a_structure_in_another_order_is_refused(name: str, data: Dataset) -> None:
    turned = Structure.from_mapping(["b", "a", "k"], {"a": ["k"]})
    with pytest.raises(InputError, match="the same variables in the same order"):
        rescore(data, turned, milpbn.Score(name=name))
    with pytest.raises(InputError, match="the same variables in the same order"):
        milpbn.solve(data, name, start=turned, **QUICK)


@pytest.mark.parametrize("name", ["sm", "sbm", "cll", "mdl", "bdeu"])
def test_values_without_a_state_are_refused_by_every_score(
    name: str, frame: pd.DataFrame, data: Dataset
) -> None:
    holes = frame.astype(float)
    holes.loc[:9, "b"] = np.nan
    unknown = read_samples(holes, data.variables)
    with pytest.raises(InputError, match=r"'b'.*without a state"):
        rescore(unknown, Structure.empty(data.names), milpbn.Score(name=name))
    with pytest.raises(InputError, match=r"'b'.*without a state"):
        milpbn.solve(unknown, name, **QUICK)


def test_rescoring_counts_the_arc_weights_of_constraints(data: Dataset) -> None:
    constraints = milpbn.Constraints(required=(("a", "b"),), arc_weights={("a", "b"): 100.0})
    result = milpbn.solve(data, milpbn.Score(p=0.9), constraints=constraints, **QUICK)
    assert result.structure is not None
    assert rescore(data, result.structure, result.score, constraints) == pytest.approx(result.objective)


@pytest.mark.parametrize("option", ["output", "certificate"])
def test_files_that_cannot_be_written_are_refused_before_the_search(
    option: str, data: Dataset, tmp_path
) -> None:
    with pytest.raises(InputError, match=r"does not exist|cannot be written|Cannot write"):
        milpbn.solve(data, **{option: tmp_path / "none" / "file"}, **QUICK)
    with pytest.raises(InputError, match=f"{option} must be a path, got 5"):
        milpbn.solve(data, **{option: 5}, **QUICK)


def test_columns_may_be_named_by_whole_numbers(frame: pd.DataFrame) -> None:
    numbered = frame.set_axis([0, 1, 2], axis=1)
    assert milpbn.read_table(numbered, target=0, nominal=[1]).dataset().names == ("1", "2", "0")
    levels = frame.set_axis(pd.MultiIndex.from_tuples([("g", 1), ("g", 2), ("h", 1)]), axis=1)
    assert milpbn.read_table(levels, target=("g", 1)).dataset().names[-1] == "('g', 1)"
    with pytest.raises(InputError, match="'weights' must be the name of a column, got a ndarray"):
        milpbn.read_table(frame, weights=np.ones(60))
    with pytest.raises(InputError, match="'weights' must be the name of a column, got a ndarray"):
        read_samples(frame, milpbn.read_table(frame).dataset().variables, weights=np.ones(60))
    with pytest.raises(InputError, match="'target' must be the name of a column, got a list"):
        milpbn.read_table(frame, target=["k"])


def test_pairs_of_odd_shapes_are_refused(frame: pd.DataFrame) -> None:
    X, y = frame[["a", "b"]], frame["k"]
    with pytest.raises(InputError, match="one label per row"):
        milpbn.read_table((X, np.tile([["p", "q"]], (30, 1))))
    with pytest.raises(InputError, match="sparse matrix"):
        milpbn.read_table((sp.csr_array(X.to_numpy()), y))
    assert milpbn.read_table((X, y.rename(0))).dataset().names[-1] == "0"
    assert milpbn.read_table((X, y.to_numpy()[:, None])).dataset().names[-1] == "class"


@pytest.mark.parametrize(
    "options",
    [
        {"max_parents": 2.5},
        {"max_parents": "2"},
        {"p": "0.9"},
        {"smoothing": "1"},
        {"smoothing": float("nan")},
        {"hybrid": "1"},
        {"penalty": None},
        {"gamma": True},
        {"class_parents": "no"},
    ],
    ids=str,
)
def test_scores_say_which_option_has_the_wrong_type(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        milpbn.Score(**options)  # type: ignore[arg-type]


def test_numpy_numbers_are_accepted() -> None:
    score = milpbn.Score(max_parents=np.int64(3), p=np.float32(0.75), class_parents=np.bool_(False))
    assert (score.max_parents, score.class_parents) == (3, False)
    assert type(score.max_parents) is int
    assert score == milpbn.Score(max_parents=3, p=0.75, class_parents=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"random_state": None}, "random_state must be a whole number"),
        ({"random_state": 1.5}, "random_state must be a whole number"),
        ({"subset": 2.5}, "subset must be a whole number"),
        ({"threads": "2"}, "threads must be a whole number"),
        ({"time_limit": "5"}, "time_limit must be a number"),
        ({"start": {"a": ["k"]}}, "start must be a Structure"),
        ({"score": None}, "score must be a Score"),
        ({"constraints": {"required": [["a", "b"]]}}, "constraints must be Constraints"),
    ],
    ids=str,
)
def test_solving_says_which_option_has_the_wrong_type(
    options: dict[str, object], words: str, data: Dataset
) -> None:
    with pytest.raises(InputError, match=words):
        milpbn.solve(data, **{**QUICK, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"required": ("a", "bc")},
        {"forbidden": (("a",),)},
        {"tiers": ("ab", "k")},
        {"fixed": {"a": "k"}},
        {"max_children": {"a": 1.5}},
        {"arc_weights": {("a", "b"): "1"}},
    ],
    ids=str,
)
def test_constraints_say_which_of_them_has_another_form(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        milpbn.Constraints(**options)  # type: ignore[arg-type]


def test_constraints_that_are_no_object_are_refused() -> None:
    for values in ([], None, "required"):
        with pytest.raises(InputError, match="must be an object with the keys required"):
            milpbn.Constraints.from_dict(values)  # type: ignore[arg-type]


def test_models_without_tables_are_evaluated_or_refused(frame: pd.DataFrame, data: Dataset) -> None:
    multinet = get_learner("multinet")().fit(data).predictor
    found = milpbn.evaluate(multinet, frame, gamma=1.0)
    assert found.accuracy == pytest.approx(np.mean(multinet.predict(frame) == frame["k"]))
    machine = get_learner("svm")(cost=1.0, sigma=1.0).fit(data).predictor
    with pytest.raises(InputError, match="no log-probabilities"):
        milpbn.evaluate(machine, frame)
    for gamma in ("1", float("nan"), -1.0):
        with pytest.raises(InputError, match="gamma must be"):
            milpbn.evaluate(multinet, frame, gamma=gamma)


def test_a_table_in_place_of_a_dataset_is_refused(frame: pd.DataFrame) -> None:
    table = milpbn.read_table(frame)
    with pytest.raises(InputError, match=r"table\.dataset\(\)"):
        rescore(table, Structure.empty(("a", "b", "k")), milpbn.Score())
    with pytest.raises(InputError, match=r"table\.dataset\(\)"):
        get_learner("tan")().fit(table)


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_say_which_option_has_the_wrong_type(name: str) -> None:
    kind = get_learner(name)
    for field in fields(kind):
        with pytest.raises(InputError, match=rf"^{field.name} must be .*got \[1\]"):
            kind(**{field.name: [1]})


def test_learners_take_numbers_of_numpy_and_paths(tmp_path: Path) -> None:
    learner = get_learner("differentiable-tan")(
        k=np.int32(3), gamma=np.float32(2), checkpoint=tmp_path / "run.npz"
    )
    assert (type(learner.k), type(learner.gamma), type(learner.checkpoint)) == (int, float, str)
    with pytest.raises(InputError, match="random_state must be a whole number, got '1'"):
        Control(random_state="1")  # type: ignore[arg-type]


def test_a_column_coded_in_another_way_is_refused(frame: pd.DataFrame, data: Dataset) -> None:
    classifier = get_learner("naive-bayes")().fit(data).predictor
    coded = frame.assign(a=np.where(frame["a"] == 1, "one", "other"))
    for predict in (
        classifier.predict,
        classifier.explain_local,
        lambda rows: milpbn.evaluate(classifier, rows),
    ):
        with pytest.raises(
            InputError, match=r"No value of the column 'a' of 'table' .* it has 'o.*knows '0'.*ignore_unseen"
        ):
            predict(coded)
    said = "No value of the column 'a' of 'table' occurs in the training data, so that"
    with pytest.warns(milpbn.errors.MilpbnWarning, match=said):
        asked = classifier.encode(coded, ignore_unseen=True)
    with pytest.warns(milpbn.DataWarning, match="absent"):
        without = classifier.predict_proba(frame.drop(columns="a"))
    assert (asked.codes[:, 0] == milpbn.data.UNKNOWN).all()
    assert classifier.predict_proba(asked).shape == without.shape
    with pytest.warns(milpbn.errors.MilpbnWarning, match=said):  # a batch with one new value
        classifier.predict(frame.assign(a="new"))
    with pytest.warns(milpbn.errors.MilpbnWarning, match="^59 of 60 values of the column 'a'"):
        classifier.predict(frame.assign(a=[frame["a"][0], *range(100, 159)]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.predict(frame.assign(a=np.where(frame["b"] == 0, 7, frame["a"])))
        classifier.predict(frame.head(1).assign(a=7))


FRAME = {"a": ["u", "v", None, "u", "v", "u"], "b": ["1", "2", "1", "2", None, "1"], "class": list("xyxyxy")}


def test_dropped_rows_give_a_warning() -> None:
    """The warning comes once for each reading and gives the number, which is in the notes of every result, too."""
    frame = pd.DataFrame(FRAME)
    with pytest.warns(
        milpbn.DataWarning, match=r"^Rows dropped for missing values: 2 of 6 of .*missing='state'"
    ) as caught:
        result = milpbn.solve(frame, threads=1, verbose=False)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert issubclass(milpbn.DataWarning, UserWarning)
    assert result.data.samples == 4
    assert result.notes == ("Rows dropped for missing values: 2 of 6.",)
    assert result.to_dict()["notes"] == list(result.notes)
    again = milpbn.Result.from_dict(result.to_dict())
    assert again.notes == result.notes
    old = {key: value for key, value in result.to_dict().items() if key != "notes"}
    assert milpbn.Result.from_dict(old).notes == ()


def test_no_warning_where_no_row_was_dropped() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = pd.DataFrame(FRAME).fillna("w")
        assert milpbn.solve(whole, threads=1, verbose=False).notes == ()
        table = milpbn.read_table(pd.DataFrame(FRAME), missing="state")
    assert table.n_rows == 6


def test_integers_beside_nulls_of_arrow_keep_their_digits():
    """pandas reads such columns from Parquet as float64, in which 2^60 and 2^60 + 1 are one number."""
    pyarrow = pytest.importorskip("pyarrow")
    codes = pyarrow.array([2**60 + 1, 2**60, None, 2**60 + 1] * 5)
    table = pyarrow.table({"a": codes, "y": ["p", "q", "q", "p"] * 5})
    found = read_table(table, target="y", missing="state").dataset().variables[0]
    assert found.states == (str(2**60), str(2**60 + 1), "?")
    assert (
        read_table(pd.DataFrame({"a": ["p", "q"] * 10}), codes).dataset().variables[-1].states
        == found.states[:2]
    )
    masked = np.ma.array([[2**60 + 1], [2**60], [1]] * 5, mask=[[0], [0], [1]] * 5)
    assert (
        read_table(masked, ["p", "q", "q"] * 5, missing="state").dataset().variables[0].states == found.states
    )

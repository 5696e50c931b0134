"""Remarks on codes for missing values, and on features that alone tell the class."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import milpbn
from milpbn.data import read_table
from milpbn.data.dataset import PREDICTS_CLASS, Variable
from milpbn.data.remarks import remark_on_leaks
from milpbn.errors import DataWarning, InputError
from milpbn.sklearn import NaiveBayesClassifier

N = 100
RNG = np.random.default_rng(0)
Y = RNG.choice(list("pq"), N)
SOME = RNG.random(N) < 0.2


def notes(column: Any, **options: Any) -> str:
    frame = pd.DataFrame({"a": column, "b": RNG.integers(0, 2, N), "y": Y})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        table = read_table(frame, **options)
    return " ".join(note for note in table.notes if "stand for missing" in note or "look the same" in note)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (np.where(SOME, -1, RNG.integers(18, 90, N)), "-1"),
        (np.where(SOME, -9, RNG.integers(0, 5, N)), "-9"),
        (np.where(SOME, -999.0, RNG.normal(0, 10, N)), "-999"),
        (np.where(SOME, 9, RNG.integers(1, 6, N)), "9"),
        (np.where(SOME, 99, RNG.integers(0, 11, N)), "99"),
        (np.where(SOME, 99, RNG.integers(18, 96, N)), "99"),  # the most frequent age
        (np.where(SOME, 999.0, RNG.normal(50, 10, N)), "999"),
        (np.where(SOME, 88, np.where(RNG.random(N) < 0.2, 99, RNG.integers(1, 3, N))), "88"),
        (np.where(SOME, "-1", RNG.integers(2, 8, N).astype(str)), "-1"),
        (np.where(SOME, "unknown", RNG.choice(["u", "v"], N)), "unknown"),
        (np.where(SOME, " none", RNG.choice(["u", "v"], N)), "none"),
        (np.where(SOME, "n.a.", RNG.normal(0, 1, N).round(2).astype(str)), "n.a."),
        (pd.Categorical(np.where(SOME, "Unbekannt", "u")), "Unbekannt"),
    ],
)
def test_codes_for_missing_values_get_a_remark(values: Any, code: str) -> None:
    rows = sum(str(value).strip() in (code, f"{code}.0") for value in values)
    assert f"{code!r} in column 'a' ({rows} rows)" in notes(values)


@pytest.mark.parametrize("other", ["Ko\u0308ln", "K\u00f6ln\u200b"])
def test_labels_that_look_the_same_get_a_remark(other: str) -> None:
    values = np.where(SOME, other, RNG.choice(["K\u00f6ln", "Ulm", "ulm"], N))
    assert "look the same but differ in white space" in notes(values)
    assert "'K\u00f6ln' in column 'a'. If" in notes(values)
    assert "look the same" not in notes(np.where(SOME, "Linz", values[~SOME][0]))
    assert "look the same" not in notes(np.where(SOME, "m2", "m\u00b2"))


@pytest.mark.parametrize("word", ["N/A", "None", "NULL"])
def test_words_that_are_missing_values_get_a_remark(word: str) -> None:
    """pandas takes them for missing values, and so they are, but they may be meant as values."""
    frame = pd.DataFrame({"a": np.where(SOME, f" {word}", RNG.choice(["u", "v"], N)), "y": Y})
    said = rf"taken as missing values, as pandas does: '{word}' in column 'a' \({SOME.sum()} rows\)\. Where"
    with pytest.warns(DataWarning, match=said):
        table = read_table(frame, missing="state")
    assert table.dataset().variables[0].states == ("u", "v", "?")


@pytest.mark.parametrize(
    "values",
    [
        RNG.integers(-1, 2, N),
        RNG.choice([-1, 1], N),
        RNG.integers(0, 10, N),
        RNG.integers(1, 10, N),
        RNG.integers(0, 101, N),
        RNG.normal(0, 1, N),
        np.where(SOME, 9, 8),
        np.where(SOME, -9, RNG.integers(-20, 20, N)),
        RNG.choice(["u", "other", "no"], N),
        RNG.choice([5, 9], N),
    ],
)
def test_other_values_get_none(values: Any) -> None:
    assert notes(values) == ""


def test_the_class_is_looked_at_for_words_only() -> None:
    frame = pd.DataFrame({"b": RNG.integers(0, 2, N), "y": np.where(SOME, "unknown", Y)})
    with pytest.warns(DataWarning, match=r"'unknown' in column 'y' \(\d+ rows\)"):
        read_table(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(frame.assign(y=np.where(SOME, -9, RNG.integers(0, 3, N))))


def test_features_that_alone_tell_the_class_are_named() -> None:
    frame = pd.DataFrame(
        {
            "noise": RNG.choice(["u", "v"], N),
            "state": np.where(Y == "p", "dead", RNG.choice(["ill", "well"], N)),
            "cut": np.where(Y == "p", 1.5, 3.0) + RNG.random(N),
            "empty": np.where(Y == "p", None, "w"),
            "nearly": np.where(Y == "p", "s", "t"),
            "y": Y,
        }
    )
    frame.loc[0, "nearly"] = "t" if frame.loc[0, "nearly"] == "s" else "s"
    with pytest.warns(DataWarning, match=f"^{PREDICTS_CLASS}: 'state', 'cut', 'empty'. Check"):
        data = read_table(frame, missing="state").dataset()
    assert sum(note.startswith(PREDICTS_CLASS) for note in data.notes) == 1
    with pytest.warns(DataWarning, match=f"{PREDICTS_CLASS}: 'cut'"):
        result = milpbn.solve(frame[["noise", "cut", "y"]], threads=1, verbose=False)
    assert any(note.startswith(PREDICTS_CLASS) for note in result.notes)
    assert milpbn.Result.from_dict(result.to_dict()).notes == result.notes
    with pytest.warns(DataWarning, match=PREDICTS_CLASS):
        NaiveBayesClassifier().fit(frame[["state"]], Y)


@pytest.mark.parametrize("rows", [4, 8, 12])
def test_few_rows_tell_nothing(rows: int) -> None:
    """Of 12 rows with six of either class, a feature of two states tells the class by chance in 4 of 924 cases."""
    y = ["p", "q"] * (rows // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not any(PREDICTS_CLASS in note for note in read_table((np.array([y]).T, y)).dataset().notes)


def test_chance_is_rare_in_random_tables() -> None:
    """Features without any relation to the class get the remark in fewer than one of a hundred tables."""
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(6, 30))
        columns = [rng.integers(0, rng.integers(2, 6), rows) for _ in range(20)]
        columns.append(rng.permutation(rows) < rng.integers(2, rows - 1))
        codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in columns])
        sizes = (codes.max(axis=0) + 1).tolist()
        variables = [Variable(f"f{k}", tuple(map(str, range(size)))) for k, size in enumerate(sizes)]
        found += bool(remark_on_leaks(variables, codes.astype(np.int32), sizes))
    assert found <= 1


def test_one_class_that_is_left_by_dropped_rows_names_the_remedies() -> None:
    frame = pd.DataFrame(
        {
            "ca": ["u", *[None] * 9],
            "thal": ["u", None, None, *"u" * 7],
            "e": list("uv") * 5,
            "y": list("pq") * 5,
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(
            InputError,
            match=r"two classes\. Rows dropped .* 9 of 10\. Leave out .*\(--drop ca\), or .*--missing state",
        ):
            read_table(frame).dataset()
        state = read_table(frame, missing="state")
        with pytest.raises(InputError, match=r"--drop ca\), or give missing values a state"):
            state.of_complete_rows().dataset()
        assert state.dataset().n_classes == read_table(frame, drop=["ca"]).dataset().n_classes == 2
        with pytest.raises(InputError, match="9 of 10; missing='state' keeps them"):
            NaiveBayesClassifier(missing="drop").fit(frame[["ca", "e"]], frame["y"])
        with pytest.raises(InputError, match=r"two classes\.$"):
            read_table(frame[["e", "y"]].assign(y="p")).dataset()

"""Columns that are no features: identifiers, dates, free text, and what the options leave out."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_samples, read_table
from milpbn.data.column import Column
from milpbn.data.left_out import looks_like
from milpbn.errors import DataWarning, InputError

ROWS = 60
RNG = np.random.default_rng(4)


def why(values, name="x"):
    return looks_like(Column.of(pd.Series(values, name=name)))


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("x", [f"P{i:04d}" for i in range(ROWS)], "identifier"),
        ("x", [f"P{i // 2:04d}" for i in range(ROWS)], "identifier"),
        ("x", [f"city {i % 20}" for i in range(ROWS)], None),
        ("x", [f"city {i % 21}" for i in range(3 * ROWS)], None),
        ("Day", [f"D{i}" for i in range(14)], None),
        ("case_id", [f"D{i}" for i in range(14)], "identifier"),
        ("x", pd.Categorical([f"P{i:04d}" for i in range(ROWS)]), "identifier"),
        ("x", [f"the patient said {i} times" for i in range(ROWS)], "free text"),
        ("x", list(range(1, ROWS + 1)), "identifier"),
        ("x", [str(i) for i in range(ROWS, 0, -1)], "identifier"),
        ("x", RNG.permutation(ROWS) + 1000, "identifier"),
        ("x", np.cumsum(RNG.integers(1, 99, ROWS)), "identifier"),
        ("x", RNG.permutation(10**6)[:ROWS], None),
        ("x", RNG.permutation(100)[:ROWS] + 5000, "identifier"),
        ("x", RNG.permutation(200)[:ROWS], None),
        ("PassengerId", RNG.permutation(10**6)[:ROWS], "identifier"),
        ("patient id", RNG.permutation(10**6)[:12], "identifier"),
        ("acid", RNG.permutation(10**6)[:12], None),
        ("store_id", RNG.integers(1, 20, ROWS), None),
        ("x", list(range(20)), None),
        ("id", RNG.random(ROWS), None),
        ("x", np.arange(ROWS) + 0.5, None),
        ("x", pd.date_range("2024-01-31", periods=ROWS, freq="h"), "date"),
        ("x", [datetime.date(2024, 1, 1 + i % 28) for i in range(ROWS)], "date"),
        ("x", [f"2024-0{1 + i % 9}-1{i % 3}" for i in range(ROWS)], None),
        ("x", [f"2024-0{1 + i % 9}-1{i % 4}" for i in range(ROWS)], "date"),
        ("x", [f"2024-05-{1 + i % 28:02d}T10:{i % 60:02d}:00" for i in range(ROWS)], "date"),
        ("x", [f"{1 + i % 28}.5.2024" for i in range(ROWS)], "date"),
        ("x", [20240501 + i % 28 for i in range(ROWS)], "date"),
        ("x", [f"202405{1 + i % 28:02d}" for i in range(ROWS)], "date"),
        ("x", [20240501 + i % 40 for i in range(ROWS)], None),
        ("x", [20240501 + i % 10 for i in range(ROWS)], None),
        ("x", [f"5/{1 + i % 28}/24 10:30" for i in range(ROWS)], "date"),
        ("x", [f"{1 + i % 28}. 5. 2024" for i in range(3 * ROWS)], "date"),
        ("x", [f"{1 + i % 28} May 2024" for i in range(3 * ROWS)], "date"),
        ("x", [f"{1 + i % 28:02d}-Oct-24 10:30" for i in range(3 * ROWS)], "date"),
        ("x", [f"{1 + i % 28}. März 2024" for i in range(3 * ROWS)], "date"),
        ("x", [f"March {1 + i % 28}, 2024" for i in range(3 * ROWS)], "date"),
        ("x", [f"Fri, {1 + i % 28} Dec 2024" for i in range(3 * ROWS)], "date"),
        ("x", [f"2024年5月{1 + i % 28}日" for i in range(3 * ROWS)], "date"),
        ("x", [f"令和6年5月{1 + i % 28}日" for i in range(3 * ROWS)], "date"),
        ("x", ["unknown", *(f"2024-05-{1 + i % 28:02d}" for i in range(3 * ROWS))], "date"),
        ("x", [f"May {i % 28}" for i in range(3 * ROWS)], None),
        ("x", [f"昨日から頭痛と発熱{i}" for i in range(ROWS)], "free text"),
        ("x", [f"患者{i}" for i in range(ROWS)], "identifier"),
        ("x", [f"2024-13-{1 + i % 28:02d}" for i in range(ROWS)], "identifier"),
        ("x", pd.period_range("2024-01", periods=ROWS, freq="M"), "date"),
        ("x", [None] * ROWS, "empty"),
    ],
)
def test_what_columns_look_like(name, values, expected):
    assert why(values, name) == expected


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, ROWS)
    return pd.DataFrame(
        {
            "id": range(1, ROWS + 1),
            "seen": pd.date_range("2024-01-01", periods=ROWS).astype(str),
            "note": [f"seen at house number {i}" for i in range(ROWS)],
            "a": np.where(rng.random(ROWS) < 0.8, y, 1 - y),
            "b": rng.random(ROWS),
            "k": y,
        }
    )


def test_columns_without_use_are_left_out_and_named(frame):
    with pytest.warns(DataWarning, match="^Left out: 'id' looks like an identifier") as caught:
        table = read_table(frame)
    assert len(caught) == 1
    assert table.features == ("a", "b")
    assert dict(table.left_out) == {"id": "identifier", "seen": "date", "note": "free text"}
    (note,) = [note for note in table.notes if note.startswith("Left out")]
    for name in table.left_out:
        assert repr(name) in note
    assert "(60 different values in 60 rows)" in note
    assert table.dataset().left_out == table.left_out


def test_columns_without_values_drop_no_rows_but_stay_the_class_if_they_are_last(frame):
    with pytest.warns(DataWarning, match="'later' has no values"):
        table = read_table(frame.assign(later=None)[["a", "b", "later", "k"]])
    assert table.n_rows == ROWS
    assert dict(table.left_out) == {"later": "empty"}
    new = frame[["a", "b", "k"]].assign(later=1.5)
    assert read_samples(new, table.dataset().variables).n_samples == ROWS
    with pytest.raises(InputError, match="No row of the data frame has a class in column 'k'"):
        read_table(frame[["a", "b"]].assign(k=np.nan))


@pytest.mark.parametrize("option", ["nominal", "continuous", "features"])
def test_a_column_that_is_named_is_kept(frame, option):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        table = read_table(frame, **{option: ["id"]})
    assert "id" in table.features
    assert "id" not in table.left_out
    if option == "features":
        assert table.features == ("id",)
        assert set(table.left_out.values()) == {"asked"}


def test_drop_and_features_choose_the_columns(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is asked for needs no warning
        table = read_table(frame, drop=["id", "seen", "note", "b"])
        assert table.features == ("a",)
        assert "Left out, as asked: id, seen, note, b." in table.notes
        assert read_table(frame, features=["b", "a"]).features == ("a", "b")  # in the order of the columns
    assert read_table(frame, target="a", drop="b", features=["k"]).target == "a"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["z"]}, "'drop' names 'z', which is not a column"),
        ({"features": ["z"]}, "'features' names 'z', which is not a column"),
        ({"drop": ["k"]}, "'drop' names 'k', which is the target"),
        ({"features": ["k", "a"]}, "'features' names 'k', which is the target"),
        ({"drop": ["a"], "features": ["a", "b"]}, "'a' is in both"),
        ({"drop": ["a"], "nominal": ["a"]}, "'a' is declared nominal or continuous, but"),
        ({"drop": ["a", "b"]}, "No column of the data frame is left as a feature. Left out, as asked: a, b."),
    ],
)
def test_impossible_choices_are_refused(frame, options, message):
    with pytest.raises(InputError, match=message):
        read_table(frame, **options)


def test_missing_values_of_columns_that_are_left_out_drop_no_rows(frame):
    frame["note"] = frame["note"].where(frame.index % 2 == 0)
    with pytest.warns(DataWarning, match="Left out"):
        assert read_table(frame).n_rows == ROWS


def test_samples_may_lack_the_columns_that_were_left_out(frame):
    with pytest.warns(DataWarning):
        data = read_table(frame).dataset()
    again = read_samples(frame[["a", "b"]], data.variables)
    assert (again.X == data.X).all()


def test_a_number_with_a_typing_error_is_said_to_be_one(frame):
    frame["b"] = [*frame["b"].astype(str)[:-1], "1,5"]
    with pytest.warns(
        DataWarning, match="'b' looks like an identifier .*nearly all of them numbers, but '1,5' in row 60"
    ):
        read_table(frame)

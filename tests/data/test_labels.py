"""When two values are the same label."""

from __future__ import annotations

import datetime
import io
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import milpbn
from milpbn.data import read_samples, read_table
from milpbn.data.dataset import MISSING, UNKNOWN, Variable
from milpbn.data.labels import (
    MISSING_MARKERS,
    StateLabels,
    cuts_of_labels,
    find_markers,
    intervals_of,
    label_of,
    labels_of,
    number_of,
    numbers_of,
)
from milpbn.data.variables import encode_column, learn_nominal
from milpbn.learners.registry import get_learner


@pytest.mark.parametrize(
    ("states", "labels", "codes"),
    [
        # the label itself, also where others mean the same
        (("a b", "A b"), ("a b", "A b", "a  b"), (0, 1, None)),
        (("01", "1", "1.0"), ("01", "1", "1.0", "1.00", "001"), (0, 1, 2, None, None)),
        (("1", "1.0", "2"), ("1", "1.0", "2.0"), (0, 1, 2)),
        # numbers
        (("0.0", "1.0"), ("0", "1", "0.5"), (0, 1, None)),
        (("1", "x"), ("1.0", "01", "+1", "1.00", "1e0", "X"), (0, None, None, None, None, None)),
        (("0", "x"), ("-0.0", "-0", "-00"), (0, 0, None)),
        (("0", "-0", "x"), ("0.0", "-0", "-0.0"), (0, 1, None)),
        (("1.10", "1E5", "x"), ("1.1", "100000"), (None, None)),
        (("0.1", "x"), ("0.10000000149011612", "0.10"), (None, None)),
        (("9007199254740993", "x"), ("9007199254740992",), (None,)),
        # truth values, if all states are
        (("False", "True"), ("TRUE", "t", "F", "1", "-0.0", "yes"), (1, 1, 0, 1, 0, None)),
        (("F", "T"), ("False", "true", "1", "0"), (0, 1, 1, 0)),
        (("0", "1"), ("True", "false", "T"), (1, 0, None)),
        (("F", "M"), ("0", "False", "f"), (None, None, None)),
        (("True", "False", "unknown"), ("TRUE", "1"), (None, None)),
        (("1", "2"), ("True",), (None,)),
        (("False", "True"), ("tRue", "fALSE", "true"), (None, None, 1)),
        # times
        (("2024-05-31 00:00:00", "2024-06-01 10:30:00"), ("2024-05-31", "2024-06-01T10:30"), (0, 1)),
        # intervals, by themselves and by numbers
        (("(0.5, 1.5]", "(1.5, 2.5]"), ("]0.5;1.5]", "_1.5_2.5]", "[0.5, 1.5)"), (0, 1, None)),
        (("(0.5, 1.5]", "(1.5, 2.5]"), ("0.5", "1.5", "1.6", "2.5", "2.6"), (None, 0, 1, 1, None)),
        (("[10, 20)", "[5, 10)", "low"), ("10", "5", "9.99", "20", "low"), (0, 1, 1, None, 2)),
        (("(0, 1]", "(1, inf)", "x"), ("0.50", "01", "1e20", "inf", "-0"), (0, 0, 1, None, None)),
        (("5", "(0, 1]", "x"), ("5.0", "05", "+1"), (0, None, 1)),
        (("[0, 2]", "[1, 3]"), ("0.5", "[0,2]"), (None, 0)),  # they overlap
    ],
)  # fmt: skip
def test_a_label_belongs_to_a_state(states, labels, codes):
    known = StateLabels(states)
    assert tuple(known.code(label) for label in labels) == codes
    for code, texts in enumerate(known.spellings()):
        assert [known.code(text) for text in texts] == [code] * len(texts)


def test_times_have_the_texts_that_pandas_and_databases_write():
    day, hour = StateLabels(("2024-05-31 00:00:00", "2024-06-01T10:30")).spellings()
    assert {"2024-05-31", "2024-05-31T00:00:00", "2024-05-31 00:00:00.000000"} <= {*day}
    assert {"2024-06-01 10:30:00", "2024-06-01T10:30:00.000"} <= {*hour}
    both = ("2024-05-31", "2024-05-31 00:00:00")
    assert StateLabels(both).spellings() == [(label,) for label in both]


def test_fractions_are_equal_in_single_precision_where_all_states_are_numbers():
    known = StateLabels(("0.1", "0.2"), numeric=True)
    assert [known.code(text) for text in ("0.10000000149011612", "0.30000000000000004")] == [0, None]


@pytest.mark.parametrize(
    ("states", "order"),
    [
        (("9", "10", "-2"), [2, 0, 1]),
        (("01", "1"), [0, 1]),
        (("True", "FALSE"), [1, 0]),
        (("2024-05-31 10:00", "2024-05-31", "2023-01-01T09:30:01.5"), [2, 1, 0]),
        (("'(2.45-inf)'", "'(-inf-2.45]'"), [1, 0]),
        ((), []),
        (("[0, 10]", "[5, 7]"), None),
        (("nan", "1"), None),
        (("no", "yes"), None),
    ],
)
def test_states_that_mean_values_are_in_their_order(states, order):
    assert StateLabels(states).ascending() == order


@pytest.mark.parametrize(
    ("labels", "cuts"),
    [
        (("(-inf, 48.5]", "(48.5, inf)"), (48.5,)),
        (("(-inf-2.45]", "(2.45-4.75]", "(4.75-inf)"), (2.45, 4.75)),
        (("'(-inf-2.45]'", "'(2.45-4.75]'", "'(4.75-inf)'"), (2.45, 4.75)),
        (("'All'",), ()),
        (("(-inf--1e-05]", "(-1e-05-inf)"), (-1e-05,)),
        (("(-inf, inf)",), ()),
        (("(-inf, 1)", "[1, inf)"), (math.nextafter(1, 0),)),
        (("(-inf, 1]", "(1, inf]"), (1.0,)),
        (("(-Inf,1]", "(1, Inf]"), (1.0,)),  # R
        (("(0.5;1.5[", "[1.5;2.5)"), (math.nextafter(1.5, 0),)),  # pyAgrum, empirical
        (("_-inf_1]", "_1_inf_"), (1.0,)),
        (("(-inf, 1)", "(1, inf)"), None),  # 1 is in neither
        (("(-inf, 1]", "[1, inf)"), None),  # 1 is in both
        (("(-inf, 1]", "(2, inf)"), None),  # a hole
        (("(0, 1]", "(1, inf)"), None),
        (("(-inf, 1]",), None),
        (("(-inf, 2]", "(2, 1]", "(1, inf)"), None),
        (("low", "high"), None),
        ((), None),
    ],
)
def test_intervals_become_cuts(labels, cuts):
    assert cuts_of_labels(labels) == cuts


def test_intervals_have_closed_and_open_ends():
    above, below = math.nextafter(0.5, 1), math.nextafter(1.5, 0)
    spelt = {
        (above, 1.5): ["(0.5, 1.5]", "(0.5,1.5]", "]0.5;1.5]", "_0.5_1.5]", "'(0.5-1.5]'", "( 0.50, 1.50]"],
        (0.5, below): ["[0.5, 1.5)", "[0.5;1.5[", "[0.5_1.5_", "[5e-1,15E-1)"],
        (0.5, 1.5): ["[0.5, 1.5]", "[0.5_1.5]", "[0.5;1.5]"],
        (above, below): ["(0.5, 1.5)", "]0.5;1.5["],
    }  # fmt: skip
    for ends, labels in spelt.items():
        for label in labels:
            assert intervals_of([label, "x"]) == [ends, None], label


def test_the_words_for_missing_values_are_those_of_pandas():
    """Every text of the set is missing in a file and in a frame, and so is every text that pandas takes for missing."""
    words = sorted(MISSING_MARKERS)
    read = pd.read_csv(
        io.StringIO("x,i\n" + "".join(f'"{w}",{i}\n' for i, w in enumerate(words))), index_col="i"
    )["x"]
    assert [
        word
        for word, missing in zip(words, read.isna().reindex(range(len(words))), strict=True)
        if not missing
    ] == ["?"]
    assert not set(pd._libs.parsers.STR_NA_VALUES) - MISSING_MARKERS


@pytest.mark.parametrize("word", ["None", "NULL", "N/A", "<NA>", "null"])
def test_files_and_frames_have_the_same_missing_values(tmp_path, word):
    rows = pd.DataFrame({"a": ["u", word, "v", "u", "v", " " + word] * 5, "y": list("pqpqpq") * 5})
    rows.to_csv(tmp_path / "t.csv", index=False)
    said = f"Words that are taken as missing values, as pandas does: '{word}' in column 'a'"
    with pytest.warns(milpbn.DataWarning, match=said):
        data = read_table(tmp_path / "t.csv", missing="state").dataset()
    assert data.variables[0].states == ("u", "v", "?")
    classifier = get_learner("naive-bayes")().fit(data).predictor
    expected = classifier.predict_proba(rows.assign(a=rows["a"].where(rows["a"].isin(["u", "v"]))))
    for source in (rows, str(tmp_path / "t.csv"), pd.read_csv(tmp_path / "t.csv")):
        np.testing.assert_array_equal(classifier.predict_proba(source), expected)


def test_a_word_that_is_a_state_is_no_missing_value(tmp_path):
    """An ARFF file that declares its values, and a classifier that was learnt from it, know None as a value."""
    path = tmp_path / "t.arff"
    path.write_text(
        "@relation r\n@attribute a {None, mild}\n@attribute y {p, q}\n@data\n" + "None,p\nmild,q\n?,q\n" * 4
    )
    variables = read_table(path).dataset().variables
    assert variables[0].states == ("None", "mild")
    frame = pd.DataFrame({"a": ["None", "mild", "NULL", "severe", None]})
    for form in (frame, frame.astype("category")):
        data = read_samples(form, variables)
        assert data.codes[:, 0].tolist() == [0, 1, MISSING, UNKNOWN, MISSING]
    rows = pd.DataFrame({"a": pd.Categorical(["x", "y", "x", "None"] * 5), "y": list("pqpq") * 5})
    with pytest.warns(milpbn.DataWarning, match="Words that are taken"):
        learnt = read_table(rows).dataset().variables
    path.write_text("@relation r\n@attribute a {None, x}\n@data\nNone\nx\n")
    assert read_samples(path, learnt).codes[:, 0].tolist() == [MISSING, 0]


def test_truth_values_of_a_file_are_one_state_in_any_case(tmp_path):
    text = "a,y\n" + "TRUE,p\nTrue,q\nfalse,p\nFALSE,q\n" * 5
    (tmp_path / "t.csv").write_text(text)
    with pytest.warns(
        milpbn.DataWarning, match="TRUE and True, which are the same truth value and therefore one state"
    ):
        data = read_table(tmp_path / "t.csv").dataset()
    assert data.variables[0].states == ("FALSE", "TRUE")
    codes = [1, 1, 0, 0] * 5
    assert data.codes[:, 0].tolist() == codes
    for source in (pd.read_csv(io.StringIO(text)), pd.read_csv(io.StringIO(text)).astype({"a": int})):
        assert read_samples(source, data.variables).codes[:, 0].tolist() == codes
    typed = read_table(pd.read_csv(io.StringIO(text), dtype=str)).dataset()  # texts by their type stay apart
    assert typed.variables[0].states == ("FALSE", "TRUE", "True", "false")


@pytest.mark.parametrize("truth", ["TRUE FALSE", "true false", "True False"])
def test_a_file_with_truth_values_is_the_frame_that_pandas_reads(tmp_path, truth):
    """Trained by milpbn from the file, predicted and evaluated on what pandas reads, and the other way round."""
    yes, no = truth.split()
    rng = np.random.default_rng(0)
    v, w = rng.random(200) < 0.5, rng.choice(["x", "None", "z"], 200)
    y = v ^ (rng.random(200) < 0.2)
    path = tmp_path / "t.csv"
    pd.DataFrame({"v": np.where(v, yes, no), "w": w, "y": np.where(y, yes, no)}).to_csv(path, index=False)
    frame = pd.read_csv(path)
    assert frame["y"].dtype == bool
    for trained in (str(path), frame):
        table = read_table(trained, missing="state")
        classifier = get_learner("tan")().fit(table.dataset()).predictor
        np.testing.assert_array_equal(classifier.predict_proba(str(path)), classifier.predict_proba(frame))
        evaluations = [milpbn.evaluate(classifier, source) for source in (str(path), frame)]
        assert evaluations[0].accuracy == evaluations[1].accuracy > 0.7
        assert [one.unknown_class for one in evaluations] == [0, 0]
        assert (classifier.predict(frame) == frame["y"]).mean() == evaluations[0].accuracy


def test_frames_hold_the_labels_of_files():
    """Dates, decimals, single precision and codes of states of a frame are found in the texts of a file."""
    days = [datetime.date(2024, 5, 31), datetime.date(2024, 6, 1)]
    for values, texts in (
        (pd.to_datetime(pd.Series(days)), ["2024-05-31", "2024-06-01"]),
        (pd.Series(days, dtype=object), ["2024-05-31", "2024-06-01 00:00:00"]),
        (pd.Series([0.1, 0.7], dtype="float32"), ["0.1", "0.7"]),
        (pd.Series(["01", "02"]), ["1", "2.0"]),
        (pd.Series(pd.IntervalIndex.from_breaks([0, 1, 2])), ["(0.0, 1.0]", "1.5"]),
    ):
        column = milpbn.data.column.Column.of(values.rename("x"))
        variable = learn_nominal(column, np.arange(2))
        there = milpbn.data.column.Column.of(pd.Series(texts, name="x", dtype=object), untyped=True)
        assert encode_column(variable, there).tolist() == encode_column(variable, column).tolist() == [0, 1]


def test_a_continuous_column_takes_its_intervals_by_name():
    variable = Variable("x", ("(-inf, 0.5]", "(0.5, inf)"), cuts=(0.5,))
    cells = pd.Series(["0.5", "(0.5,inf)", "NULL", "(-inf, 0.5]", "7"], name="x", dtype=object)
    assert encode_column(variable, milpbn.data.column.Column.of(cells)).tolist() == [0, 1, MISSING, 0, 1]
    cells[1] = "(0.4, inf)"
    with pytest.raises(milpbn.errors.InputError, match=r"'\(0.4, inf\)' in row 2, not a finite number"):
        encode_column(variable, milpbn.data.column.Column.of(cells))


_TEXTS = st.one_of(
    st.floats().map(repr),
    st.text("0123456789+-.eE ", max_size=6),
    st.sampled_from(
        ["1_0", "1\u00a0", "\t2", "\u0663", "inf", "NaN", " NA ", "?", "", "1e999", "\ud800", "None"]
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_TEXTS | st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=2)))
@example(["1_0"])
@example(["1", "1-2"])
@example(["1", b"2"])
def test_many_values_at_once_are_the_values_one_by_one(values):
    np.testing.assert_array_equal(numbers_of(values), [number_of(value) for value in values])
    markers = [isinstance(value, str) and value.strip() in MISSING_MARKERS for value in values]
    assert find_markers(values).tolist() == markers
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    assert labels_of(cells) == tuple(map(label_of, values))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64", "int8"])
def test_labels_of_an_array_are_those_of_its_numbers(dtype):
    numbers = [0, 1, 0.1, -0.0, 2.5, 2.0**53, 2.0**53 - 1, 1e300, -7]
    numbers += [math.inf, -math.inf] if dtype.startswith("f") else []
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array(numbers).astype(dtype)
    assert labels_of(values) == tuple(map(label_of, values))

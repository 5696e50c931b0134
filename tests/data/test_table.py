"""States and cuts are learnt from the training rows only; encoding matches by name and counts unseen values."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milpbn.data import MISSING, UNKNOWN, mdlp_cuts, read_samples, read_table
from milpbn.data.discretisation import Discretisation
from milpbn.data.encodings import missing_values
from milpbn.data.variables import interval_labels
from milpbn.errors import InputError


def mixed(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "size": np.round(y * 3 + rng.normal(size=n), 3),
            "code": rng.integers(0, 4, n),
            "constant": "same",
            "colour": rng.choice(["red", "green", "blue"], n),
            "class": np.where(y == 1, "pos", "neg"),
        }
    )


def test_mixed_columns_become_codes():
    frame = mixed()
    data = read_table(frame).dataset()
    size, code, constant, colour, label = data.variables
    assert data.names == tuple(frame.columns)
    assert colour.states == ("blue", "green", "red")
    assert label.states == ("neg", "pos")
    assert constant.states == ("same",)
    assert (code.states, code.numeric) == (("0", "1", "2", "3"), True)
    np.testing.assert_array_equal(size.cuts, mdlp_cuts(frame["size"], data.y, 2))
    np.testing.assert_array_equal(data.codes[:, 0], [sum(v > c for c in size.cuts) for v in frame["size"]])
    np.testing.assert_array_equal(np.array(colour.states)[data.codes[:, 3]], frame["colour"])
    np.testing.assert_array_equal(np.array(label.states)[data.y], frame["class"])
    assert data.codes.dtype == np.int32
    assert data.codes.flags.c_contiguous


def test_cuts_and_states_come_from_the_given_rows_only():
    frame = mixed()
    rows = np.arange(0, 60, 3)
    table = read_table(frame)
    data = table.dataset(rows)
    alone = read_table(frame.iloc[rows]).dataset()
    assert data.variables == alone.variables
    np.testing.assert_array_equal(data.codes, alone.codes)
    changed = frame.copy()
    changed.loc[1::3, "size"] = 1000.0
    changed.loc[2::3, "colour"] = "violet"
    assert read_table(changed).dataset(rows).variables == data.variables


@settings(deadline=None, max_examples=20)  # the first call imports or compiles
@given(st.permutations(range(30)))
def test_rows_keep_the_given_order(order):
    table = read_table(mixed(30))
    whole, permuted = table.dataset("all"), table.dataset(order)
    assert permuted.variables == whole.variables
    np.testing.assert_array_equal(permuted.codes, whole.codes[list(order)])


def test_encoding_own_rows_gives_the_dataset_back():
    table = read_table(mixed())
    data = table.dataset()
    again = table.encode(data.variables)
    np.testing.assert_array_equal(again.codes, data.codes)
    assert again.notes == ()


def test_numbers_are_compared_by_value_in_numeric_columns_only(tmp_path):
    text = pd.DataFrame(
        {"x": ["1", "1.0", "2", "10"], "z": ["1", "1.0", "a", "10"], "y": ["0", "1", "0.0", "1"]}
    )
    text.to_csv(tmp_path / "text.csv", index=False)
    data = read_table(tmp_path / "text.csv").dataset()
    x, z, y = data.variables
    assert (x.states, x.numeric) == (("1", "2", "10"), True)
    assert (z.states, z.numeric) == (("1", "1.0", "10", "a"), False)
    assert y.states == ("0", "1")
    other = pd.DataFrame({"y": [1.0, 0.0], "x": [10, 1], "z": [1.0, 10.0]})
    assert read_table(other, target="y").encode(data.variables).codes.tolist() == [[2, 0, 1], [0, 2, 0]]
    # Cells that are text by their type are not numbers to whoever gave them that type.
    x, z, y = read_table(text).dataset().variables
    assert [x.states, z.states, y.states] == [
        ("1", "1.0", "10", "2"),
        ("1", "1.0", "10", "a"),
        ("0", "0.0", "1"),
    ]
    assert not x.numeric


def test_integers_beyond_float64_stay_apart():
    big = [str(2**53), str(2**53 + 1)] * 3
    data = read_table(pd.DataFrame({"x": big, "y": ["a", "b"] * 3}), nominal=["x"]).dataset()
    assert data.variables[0].n_states == 2


@pytest.mark.parametrize(
    "values",
    [
        [2**60 + k % 15 for k in range(60)],
        [str(2**60 + k % 15) for k in range(60)],
        [Decimal(1) + Decimal(k % 15) * Decimal("1e-20") for k in range(60)],
    ],
)
def test_numbers_that_float64_does_not_tell_apart_are_refused(values):
    frame = pd.DataFrame({"x": values, "y": ["a", "b"] * 30})
    with pytest.raises(InputError, match="which are one number in float64"):
        read_table(frame, target="y")
    whole = frame.assign(x=[2**60 + 4096 * (k % 15) for k in range(60)])
    assert read_table(whole, target="y").kinds["x"] == "continuous"


def test_unseen_and_missing_values_are_counted():
    variables = read_table(mixed()).dataset().variables
    sample = pd.DataFrame(
        {
            "extra": [1, 2, 3],
            "class": ["pos", "strange", None],
            "colour": ["violet", "red", "?"],
            "constant": ["same", "same", "other"],
            "size": [-50.0, np.nan, 50.0],
            "code": ["3", 2.0, "7"],
        }
    )
    data = read_samples(sample, variables)
    assert data.codes[0].tolist() == [0, 3, 0, UNKNOWN, 1]
    assert data.codes[1].tolist() == [MISSING, 2, 0, 2, UNKNOWN]  # a class that training never saw
    top = variables[0].n_states - 1
    assert data.codes[2].tolist() == [top, UNKNOWN, UNKNOWN, MISSING, MISSING]
    assert data.notes == (
        "Rows with a class label that training never saw: 1.",
        "Rows without a class label: 1.",
        "Values that training never saw, which contribute nothing to the class scores: "
        "3 (1 in 'code', 1 in 'constant', 1 in 'colour').",
        "2 values are missing (1 in 'size', 1 in 'colour'): marginalised.",
    )
    assert data.labels[1].tolist() == [None, "2", "same", "red", None]


def test_prediction_without_class_column_and_with_lacking_feature():
    variables = read_table(mixed()).dataset().variables
    data = read_samples(mixed().drop(columns="class"), variables)
    assert (data.y == MISSING).all()
    assert "no column 'class'" in data.notes[0]
    # An absent column is missing everywhere.
    lacking = read_samples(
        mixed().drop(columns=["colour", "size"]).assign(code=[None] * 2 + [2] * 58), variables
    )
    assert (lacking.codes[:, [0, 3]] == MISSING).all()
    assert lacking.notes == (
        "2 of 4 columns are absent ('size', 'colour'), 2 values are missing (2 in 'code'): marginalised.",
    )
    assert missing_values(lacking) == {"size": 60, "code": 2, "colour": 60}
    with pytest.raises(InputError, match="none of the columns that the classifier knows, such as 'size'"):
        read_samples(mixed()[["class"]], variables)
    with pytest.raises(InputError, match=r"'size' .* holds 'big' in row 2"):
        read_samples(mixed().astype(object).assign(size=["1", "big", *["2"] * 58]), variables)


def test_split_refers_to_rows_of_the_source():
    frame = pd.DataFrame({"x": ["a", "?", "b", "a", "b", "?"], "y": ["p", "q", "q", "p", "q", "p"]})
    table = replace(read_table(frame), train_rows=3)
    assert table.n_rows == 4
    assert "Rows dropped for missing values: 2 of 6." in table.notes
    assert table.train_indices.tolist() == [0, 1]
    assert table.test_indices.tolist() == [2, 3]
    assert table.dataset().codes.tolist() == [[0, 0], [1, 1]]
    assert table.encode(table.dataset().variables, "test").codes.tolist() == [[0, 0], [1, 1]]
    assert read_table(frame).train_indices.tolist() == [0, 1, 2, 3]
    with pytest.raises(InputError, match="no test rows"):
        read_table(frame).dataset("test")


def test_missing_values_as_states():
    frame = mixed()
    frame.loc[:4, "size"] = np.nan
    frame.loc[2:6, "colour"] = None
    frame["hole"] = ["?"] * 60
    table = read_table(frame, target="class", missing="state", nominal=["hole"])
    data = table.dataset()
    by_name = dict(zip(data.names, data.variables, strict=True))
    assert data.n_samples == 60
    assert by_name["size"].missing_state
    assert by_name["size"].states[-1] == "?"
    assert by_name["size"].n_states == len(by_name["size"].cuts) + 2
    assert by_name["colour"].states == ("blue", "green", "red", "?")
    assert by_name["hole"].states == ("?",)
    assert not by_name["code"].missing_state
    assert (data.codes[:5, 0] == by_name["size"].n_states - 1).all()
    assert (data.codes[2:7, 3] == 3).all()
    assert "Missing values have a state of their own in: size, colour, hole." in table.notes
    # A column without missing values in the training rows has no such state.
    later = table.dataset(np.arange(10, 60))
    assert not later.variables[0].missing_state
    assert (table.encode(later.variables).codes[:5, 0] == MISSING).all()
    # The state is for empty cells; an absent column says nothing.
    absent = read_samples(frame.drop(columns="size"), data.variables)
    assert (absent.codes[:, 0] == MISSING).all()
    assert absent.codes[2:7, 3].tolist() == [3] * 5


def test_missing_values_are_dropped_kept_or_refused():
    frame = pd.DataFrame({"x": ["a", None, "b", "a"], "y": ["p", "q", "q", ""]})
    assert read_table(frame).n_rows == 2
    kept = read_table(frame, missing="state")
    assert kept.n_rows == 3
    assert "Rows dropped for a missing class: 1 of 4." in kept.notes
    with pytest.raises(InputError, match=r"row 2 of .*'x', is missing"):
        read_table(frame, missing="error")
    with pytest.raises(InputError, match="one of drop, state, error"):
        read_table(frame, missing="impute")
    gaps = frame.assign(z=[None, "c", None, None], w=["d", "e", None, "f"])[["z", "w", "x", "y"]]
    with pytest.raises(InputError, match=r"Every row .* missing"):
        read_table(gaps)
    assert read_table(frame.assign(z=None)[["z", "x", "y"]]).features == ("x",)
    with pytest.raises(InputError, match=r"no values in 'z'; leave it out \(--drop z\)"):
        read_table(frame.assign(z=None)[["z", "x", "y"]], nominal=["z"])
    gaps = pd.concat([gaps, gaps.assign(z="d", w="e", y="p")])
    assert "Rows dropped for missing values (most of them in 'z', 'x'): 5 of 8." in read_table(gaps).notes
    with pytest.raises(InputError, match=r"No row .* has a class in column 'y'; name another target"):
        read_table(frame.assign(y=None))
    with pytest.raises(InputError, match=r"No row .* has a class"):
        read_table(frame.assign(y="?"), missing="state")


def test_declared_states():
    frame = pd.DataFrame(
        {
            "x": pd.Categorical(["low", "high", "low", "high"], ["low", "mid", "high"]),
            "k": pd.Categorical([1, 2, 1, 2], [3, 2, 1]),
            "y": ["p", "q", "q", "p"],
        }
    )
    declared = read_table(frame, states="declared").dataset()
    assert declared.variables[0].states == ("low", "mid", "high")
    assert declared.variables[1].states == ("3", "2", "1")
    assert declared.variables[1].numeric
    assert declared.codes[:, 0].tolist() == [0, 2, 0, 2]
    seen = read_table(frame).dataset()
    assert seen.variables[0].states == ("high", "low")
    assert seen.variables[1].states == ("1", "2")
    with pytest.raises(InputError, match="seen, declared"):
        read_table(frame, states="all")


def test_weights_in_units_and_class_weights_of_the_rows_that_are_kept():
    frame = pd.DataFrame(
        {"a": ["x", "y", None, "x", "y", "x"], "w": [2, 1, 1, 0.5, 1, 3], "y": list("ppqqpp")}
    )
    options = {"target": "y", "weights": "w", "class_weights": "balanced"}
    table = read_table(frame, missing="state", **options)
    units = table.in_units()
    assert units.weights.min() == 1
    np.testing.assert_allclose(units.weights / table.weights, 1 / table.weights.min())
    assert "so all weights are multiplied by" in units.notes[-1]
    dropped = read_table(frame, missing="drop", **options)
    assert table.of_complete_rows().weights.tolist() == dropped.weights.tolist()
    assert units.of_complete_rows().weights.tolist() == dropped.in_units().weights.tolist()
    assert units.of_complete_rows().notes[-1] == dropped.in_units().notes[-1]
    heavy = read_table(frame.assign(w=[2, 1, 1, 5, 1, 3]), target="y", weights="w", missing="state")
    assert heavy.in_units().weights.tolist() == heavy.weights.tolist()
    assert heavy.in_units().notes == heavy.notes
    with pytest.raises(InputError, match="divided by the smallest, sum to more than"):
        read_table(
            frame.assign(w=[1e-15, 1, 1, 1, 1, 1]), target="y", weights="w", missing="state"
        ).in_units()


def test_single_class_is_refused():
    frame = pd.DataFrame({"x": ["a", "b", "a"], "y": ["p", "p", "q"]})
    with pytest.raises(InputError, match=r"Every one of 2 training rows .* class 'p'.*classes.$"):
        read_table(frame).dataset([0, 1])
    lacking = pd.DataFrame({"x": ["a", "b"], "y": ["p", None]})
    with pytest.raises(
        InputError, match=r"The only training row .* class 'p'.*dropped for missing values: 1 of 2"
    ):
        read_table(lacking).dataset()
    with pytest.raises(InputError, match="'train', 'test', 'all'"):
        read_table(frame).dataset("some")
    for positions in ([0, 3], [-1, 0], [0.5], [[0, 1]]):
        with pytest.raises(InputError, match="integers from 0 to 2"):
            read_table(frame).dataset(positions)
    with pytest.raises(InputError, match="no chosen rows"):
        read_table(frame).dataset([])
    assert read_table(frame).dataset([False, True, True]).n_samples == 2


def test_interval_labels_stay_apart():
    assert interval_labels([]) == ("(-inf, inf)",)
    assert interval_labels([2.5, 4.0]) == ("(-inf, 2.5]", "(2.5, 4]", "(4, inf)")
    near = [1.0, float(np.nextafter(1.0, 2.0)), 1.5]
    assert len(set(interval_labels(near))) == 4


def test_other_cuts_keep_the_factorised_columns():
    table = read_table(mixed())
    other = table.changed(discretisation=Discretisation.parse("quantile:3"))
    assert other.columns is table.columns
    assert other.dataset().variables[0].n_states == 3
    assert table.reweighted(2 * table.weights).in_units().columns is table.columns

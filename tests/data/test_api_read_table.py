"""Sources of tables, and weights."""

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_samples, read_table
from milpbn.errors import InputError

TEXT = "a,b,y\n1,x,p\n2,y,q\n1,x,p\n3,y,q\n"
FRAME = pd.DataFrame({"a": ["1", "2", "1", "3"], "b": ["x", "y", "x", "y"], "y": ["p", "q", "p", "q"]})


def test_every_source_gives_the_same_codes(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text(TEXT)
    expected = read_table(FRAME).dataset().codes
    sources = [
        path,
        str(path),
        FRAME.to_numpy(dtype=object),
        (FRAME[["a", "b"]], FRAME["y"]),
        (FRAME[["a", "b"]].to_numpy(dtype=object), list(FRAME["y"])),
        FRAME.astype({"a": int}).set_index([[9, 9, 7, 7]]),
    ]
    for source in sources:
        np.testing.assert_array_equal(read_table(source).dataset().codes, expected)
    assert read_table(path).name == "small"
    assert read_table(path, name="other").dataset().name == "other"


def test_array_columns_get_names():
    array = np.array([[0, 1, 0], [1, 0, 1], [1, 1, 0]])
    assert read_table(array).dataset().names == ("x1", "x2", "class")
    assert read_table((array, [0, 1, 0])).dataset().names == ("x1", "x2", "x3", "class")
    assert read_table((FRAME[["a"]], FRAME["y"].rename("label"))).target == "label"
    variables = read_table(FRAME).dataset().variables
    for width in (2, 3):
        encoded = read_samples(FRAME.to_numpy(dtype=object)[:, :width], variables)
        assert encoded.codes[:, :2].tolist() == [[0, 0], [1, 1], [0, 0], [2, 1]]


def test_the_target_is_chosen_by_name():
    table = read_table(FRAME, target="b")
    assert table.target == "b"
    assert table.features == ("a", "y")
    with pytest.raises(InputError, match=r"'target' names 'class', which is not a column .*\(a, b, y\)"):
        read_table(FRAME, target="class")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (FRAME[["y"]], "only column of .* is 'y'"),
        (FRAME.iloc[:0], "no rows"),
        (FRAME.set_axis(["a", "a", "y"], axis=1), "'a' occurs more than once"),
        (FRAME.set_axis(["a", None, "y"], axis=1), "Column 2 .* no name"),
        (FRAME.assign(a=[[1], [2], [1], [2]]), "'a' of the data frame holds containers"),
        (np.zeros(4), "two dimensions"),
        ((FRAME[["a"]], [1, 2]), "X has 4 rows, but y has 2"),
        ((1, 2, 3), "pair"),
        (5, "not from a int"),
        ("missing/file.csv", "no file"),
        ("file.csv", "no file"),
        ("null\0.csv", "cannot be read"),
        ("n" * 5000, "is not a file"),
    ],
)
def test_bad_sources_are_refused(source, message):
    with pytest.raises(InputError, match=message):
        read_table(source)


def test_columns_of_lists_may_be_left_out():
    frame = FRAME.assign(lists=[[1], None, [1, 2], []], **{"class": list("pqpq")})
    with pytest.raises(InputError, match=r"'lists' of the data frame holds containers.*--drop"):
        read_table(frame, na_values=["q"])
    for options in ({"drop": ["lists"]}, {"features": ["a"], "na_values": ["9"]}):
        table = read_table(frame, **options)
        assert table.n_rows == 4
        assert table.left_out["lists"] == "asked"


def test_unknown_name_says_what_was_tried(monkeypatch):
    monkeypatch.delenv("MILPBN_DATA", raising=False)
    with pytest.raises(
        InputError, match=r"'nonsense' is not a file, not a catalog name .*MILPBN_DATA.* instance"
    ):
        read_table("nonsense")


def test_weights_come_from_their_column():
    frame = FRAME.assign(w=["1", "2.5", "0", "1"])
    table = read_table(frame, weights="w", target="y")
    assert table.features == ("a", "b")
    assert table.weights.tolist() == [1, 2.5, 1]
    assert "Rows dropped for a weight of zero: 1 of 4." in table.notes
    data = table.dataset()
    assert data.weights.tolist() == [1, 2.5, 1]
    assert data.n_samples == 3
    assert read_samples(frame, data.variables, weights="w").weights.tolist() == [1, 2.5, 0, 1]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["1", "-2", "1", "1"], "'-2' in row 2; weights must not be negative"),
        (["1", "x", "1", "1"], "'x' in row 2, not a finite number"),
        (["1", "1", "", "1"], "row 3 .* is missing"),
        ([1.0, np.inf, 1.0, 1.0], "'inf' in row 2"),
        ([0, 0, 0, 0], "are zero"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        read_table(FRAME.assign(w=weights), weights="w", target="y")
    with pytest.raises(InputError, match="'weights' names 'v'"):
        read_table(FRAME, weights="v")


def test_integer_weights_equal_copies():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=80), "w": rng.integers(1, 4, 80)})
    frame["y"] = np.where(frame["x"] + 0.3 * rng.normal(size=80) > 0, "p", "q")
    copies = frame.loc[np.repeat(frame.index, frame["w"])].drop(columns="w")
    weighted, copied = read_table(frame, weights="w").dataset(), read_table(copies).dataset()
    assert weighted.variables == copied.variables
    np.testing.assert_array_equal(weighted.merged.codes, copied.merged.codes)
    np.testing.assert_array_equal(weighted.merged.weights, copied.merged.weights)


def test_class_weights_multiply_the_weights(tmp_path):
    frame = pd.DataFrame({"x": ["a", "b", "c", "a"], "y": [1, 1, 1, 2]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert read_table(frame, class_weights={"2": 3}).weights.tolist() == [1, 1, 1, 3]
    assert read_table(frame, class_weights={1: 0.5, 2.0: 2}).weights.tolist() == [0.5, 0.5, 0.5, 2]
    balanced = read_table(frame, class_weights="balanced").weights
    np.testing.assert_allclose(balanced, [2 / 3, 2 / 3, 2 / 3, 2])
    for spec, message in [
        ({"3": 1}, r"'3', which is not a class of 'y' \(1, 2\)"),
        ({"1": 0}, "must be a positive number, not 0"),
        ({"1": "much"}, "must be a positive number"),
        ("equal", "got 'equal'"),
        ([1, 2], "map class labels to weights"),
    ]:
        for source in (frame, tmp_path / "t.csv"):
            with pytest.raises(InputError, match=message):
                read_table(source, class_weights=spec)


def test_an_embedded_instance_is_read_by_name():
    instances = pytest.importorskip("milpbn.instances")
    name = instances.names()[0]
    table = read_table(name)
    assert table.name == name
    assert table.n_rows == len(instances.load(name))


def test_arff_file_with_declared_states(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text("@relation r\n@attribute x {u,v,w}\n@attribute y {p,q}\n@data\nw,q\nu,p\n")
    assert read_table(path, states="declared").dataset().codes.tolist() == [[2, 1], [0, 0]]
    assert read_table(path).dataset().codes.tolist() == [[1, 1], [0, 0]]


def test_features_and_labels_may_be_two_arguments():
    X = pd.DataFrame({"a": [0, 1, 0, 1], "b": ["u", "v", "v", "u"]})
    y = pd.Series(["p", "q", "p", "q"], name="kind")
    table = read_table(X, y)
    assert (table.features, table.target) == (("a", "b"), "kind")
    assert read_table(X.to_numpy(), y.to_numpy()).target == "class"
    assert table.frame.equals(read_table((X, y)).frame)
    with pytest.raises(
        InputError, match="one per row, but is the text 'b'; name the class column with target='b'"
    ):
        read_table(X, "b")
    with pytest.raises(InputError, match="Class labels y go with an array or a data frame"):
        read_table("t.csv", y)

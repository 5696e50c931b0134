import warnings

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_samples, read_table
from milpbn.data.column import Column
from milpbn.data.kinds import detect_kind
from milpbn.data.labels import label_of, number_of
from milpbn.errors import DataWarning, InputError


def column(values, name="x"):
    return Column.of(
        pd.Series(values, name=name, dtype=None if isinstance(values, pd.Categorical) else object)
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b"], "nominal"),
        (["1", "2", "3"], "nominal"),
        (["1.0", "2.0"], "nominal"),
        ([str(i) for i in range(10)], "nominal"),
        ([str(i) for i in range(11)], "continuous"),
        ([*(str(i) for i in range(10)), "3.0", " 4 ", "5e0"], "nominal"),
        (["0.5", "1"], "continuous"),
        ([0.5, None, np.nan], "continuous"),
        (["0.5", "?", "", "NA", "NaN"], "continuous"),
        (["0.5", "low"], "nominal"),
        (["0.5", "1_000"], "nominal"),
        ([True, False], "nominal"),
        (["?", ""], "nominal"),
        (pd.Categorical([0.5, 1.5]), "nominal"),
        (["1e-3", "-.5", "+2.", "7"], "continuous"),
    ],
)
def test_kinds_are_detected(values, kind):
    assert detect_kind(column(values)) == kind


def test_numbers_and_labels_are_normalised():
    assert [number_of(v) for v in ("1", " 2.50 ", "-1e2", 3, np.int8(4), 0.5)] == [1, 2.5, -100, 3, 4, 0.5]
    assert np.isnan([number_of(v) for v in ("", "x", "1_0", "0x1", "nan", "١", True, None)]).all()
    assert [label_of(v) for v in (1, 1.0, 2.5, " a ", True, b"x", -0.0)] == [
        "1",
        "1",
        "2.5",
        "a",
        "True",
        "x",
        "0",
    ]


FRAME = pd.DataFrame(
    {
        "age": [str(20 + 7 * i % 31) for i in range(30)],
        "few": ["1", "2"] * 15,
        "text": ["a", "b", "c"] * 10,
        "class": ["yes", "no"] * 15,
    }
)


def test_choice_is_noted_and_overridden():
    table = read_table(FRAME)
    assert table.kinds == {"age": "continuous", "few": "nominal", "text": "nominal", "class": "nominal"}
    assert "Continuous, to be discretised: age." in table.notes
    assert "Numeric, taken as nominal: few." in table.notes
    table = read_table(FRAME, continuous=["few"], nominal="age")
    assert table.kinds["few"] == "continuous"
    assert table.kinds["age"] == "nominal"


def test_almost_numeric_column_is_noted():
    frame = FRAME.assign(age=[*(str(i % 15) for i in range(29)), "abc"])
    assert any("'age' is nominal because of 'abc' in row 30" in note for note in read_table(frame).notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"continuous": ["height"]}, "'height', which is not a column"),
        ({"nominal": ["height"]}, "'height', which is not a column"),
        ({"nominal": ["age"], "continuous": ["age"]}, "both"),
        ({"continuous": ["class"]}, "cannot be continuous"),
        ({"continuous": ["text"]}, "'text' .* holds 'a' in row 1, not a finite number"),
        ({"target": "age"}, "looks continuous"),
    ],
)
def test_bad_declarations_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        read_table(FRAME, **options)


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e999", 10**400, np.inf])
def test_infinite_values_are_refused(value):
    frame = FRAME.assign(age=[*FRAME["age"][:-1], value])
    with pytest.raises(InputError, match=r"'age' .* in row 30, not a finite number"):
        read_table(frame)


def test_numeric_class_labels_are_nominal_or_refused():
    many = pd.DataFrame({"x": ["a", "b"] * 20, "y": np.arange(40) % 15})
    assert read_table(many).dataset().n_classes == 15
    measured = many.assign(y=np.arange(40) / 7)
    with pytest.raises(InputError, match=r"'y' .* looks continuous"):
        read_table(measured)
    assert read_table(measured, nominal=["y"]).dataset().n_classes == 40


def test_a_target_with_nearly_all_labels_distinct_is_refused():
    names = pd.DataFrame({"x": ["a", "b"] * 20, "y": [f"row {i}" for i in range(40)]})
    with pytest.raises(
        InputError, match=r"'y' .* 40 different labels in 40 rows and looks like an identifier"
    ):
        read_table(names)
    assert read_table(names, nominal=["y"]).dataset().n_classes == 40
    assert read_table(names.assign(y=names["y"].str.replace(r"\d$", "", regex=True))).dataset().n_classes == 4


def zeros(**columns):
    """Return a table of four rows in which ``01`` and ``1`` are different texts."""
    return pd.DataFrame(
        {"zip": ["01", "1", "2", "2"], "b": ["1", "2", "1", " 1"], "k": ["x", "y", "x", "y"]} | columns
    )


def same_numbers(notes):
    return [note for note in notes if "the same number and therefore one state" in note]


def test_in_a_file_without_types_codes_that_differ_in_their_zeros_only_are_one_state(tmp_path):
    zeros().to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(DataWarning, match="Column 'zip' has 01 and 1, which are the same number"):
        table = read_table(tmp_path / "t.csv")
    (note,) = same_numbers(table.notes)
    assert note.startswith("Column 'zip' has 01 and 1, ")
    assert table.dataset().variables[0].states == ("1", "2")
    zeros(k=["1", "01", "2", "2"]).to_csv(tmp_path / "classes.csv", index=False)
    assert any(n.startswith("Column 'k' has 1 and 01, ") for n in read_table(tmp_path / "classes.csv").notes)
    zeros(zip=["z01", "z1", "z2", "z2"]).to_csv(tmp_path / "letters.csv", index=False)
    assert not same_numbers(read_table(tmp_path / "letters.csv").notes)


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_texts_that_are_the_same_number_are_different_states(dtype):
    frame = zeros(k=["1", "01", "2", "2"]).astype({"zip": dtype, "k": dtype})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(frame)
    data = table.dataset()
    assert data.variables[0].states == ("01", "1", "2")
    assert data.variables[1].states == ("1", "2")  # white space does not tell texts apart
    assert data.variables[-1].labels.tolist() == ["01", "1", "2"]
    assert data.labels[:, 0].tolist() == ["01", "1", "2", "2"]
    # A number is the text that it is written as.
    assert table.encode(data.variables).codes.tolist() == data.codes.tolist()
    numbers = read_samples(pd.DataFrame({"zip": [1, 2.0], "b": [1, 2], "k": [1, 2]}), data.variables)
    assert numbers.codes.tolist() == [[1, 0, 1], [2, 1, 2]]


def test_many_texts_that_are_the_same_number_are_not_cut_into_intervals():
    texts = [f"{'0' * (k % 2)}{k // 2}" for k in range(60)] * 3
    table = read_table(pd.DataFrame({"zip": texts, "k": ["x", "y", "y"] * 60}), nominal=["zip"])
    assert table.dataset().variables[0].n_states == 60
    assert read_table(pd.DataFrame({"z": texts, "k": ["x", "y", "y"] * 60})).kinds["z"] == "nominal"


def test_kinds_that_may_be_wrong_are_warned_about_in_the_line_that_called(recwarn):
    codes = pd.DataFrame({"zip_code": [*range(1000, 1020)] * 10, "k": ["x", "y"] * 100})
    read_table(codes)
    (warning,) = recwarn
    assert warning.category is DataWarning
    assert warning.filename == __file__
    text = str(warning.message)
    assert "Integers that may be codes, taken as numbers: zip_code." in text
    assert "--nominal zip_code" in text
    assert "nominal=['zip_code'] in Python" in text
    recwarn.clear()
    for declared in ({"nominal": ["zip_code"]}, {"continuous": ["zip_code"]}):
        read_table(codes, **declared)
    assert not recwarn


def codes_noted(**columns):
    frame = pd.DataFrame({**columns, "k": ["p", "q"] * (len(next(iter(columns.values()))) // 2)})
    found = [note for note in read_table(frame).notes if note.startswith("Integers that may be codes")]
    return found[0] if found else None


def test_integers_that_may_be_codes_are_remarked_on():
    rng = np.random.default_rng(0)
    department = rng.integers(1, 15, 400)
    diagnosis = rng.choice([250, 401, 427, 486, 560, 711, 786, 820, 997, 1402, 2011, 3999], 400)
    age, year, pay = (
        rng.integers(17, 90, 400),
        1990 + rng.integers(0, 30, 400),
        1000 * rng.integers(5, 40, 400),
    )
    note = codes_noted(age=age, department=department, year=year, diagnosis=diagnosis, pay=pay)
    assert note.startswith("Integers that may be codes, taken as numbers: department, diagnosis.")
    assert "--nominal department,diagnosis" in note
    assert "zip" in codes_noted(zip=rng.integers(10**4, 10**5, 400))
    assert "area" in codes_noted(area=[f"{n:05d}" for n in rng.integers(1, 10**5, 400)])
    assert codes_noted(age=age, pay=pay) is None
    frame = pd.DataFrame({"department": department, "k": ["p", "q"] * 200})
    declared = read_table(frame, continuous=["department"])
    assert not any(note.startswith("Integers that may") for note in declared.notes)


def test_identifiers_that_repeat_are_remarked_on():
    person = np.repeat(np.random.default_rng(0).permutation(1000)[:50], 4)
    frame = pd.DataFrame({"nr": person, "site_id": [f"s{n % 30}" for n in person], "k": ["p", "q"] * 100})
    remark = "Columns whose names say that they identify something, taken as features: nr, site_id."
    with pytest.warns(DataWarning, match=remark) as caught:
        read_table(frame)
    assert len(caught) == 1
    assert "--drop nr,site_id" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(frame, continuous=["nr"], nominal=["site_id"])
        read_table(
            frame.assign(nr=person / 2, site_id=[f"s{n % 20}" for n in person])
        )  # no numbers of persons


def test_few_integers_are_known_unless_they_are_declared():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "rating": rng.integers(1, 6, 60),
            "code": rng.integers(1, 6, 60),
            "text": rng.choice(["u", "v", "w"], 60),
            "kind": pd.Categorical(rng.integers(1, 4, 60)),
            "size": rng.random(60),
            "k": rng.integers(1, 4, 60),
        }
    )
    assert read_table(frame, nominal=["code"]).few_integers == ("rating",)

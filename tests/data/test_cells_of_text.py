"""Missing values and numbers in the cells of a raw table."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from milpbn.data.cells import mark_missing, read_cells
from milpbn.data.options import TextFormat
from milpbn.data.raw_table import RawTable
from milpbn.errors import InputError


def read(
    columns: dict[str, list[Any]],
    options: dict[str, Any] | None = None,
    *,
    untyped: bool = True,
    separator: str | None = None,
    **how: Any,
) -> RawTable:
    frame = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    form = TextFormat.of(options or {})
    return read_cells(RawTable(frame, "'f.csv'", untyped=untyped, separator=separator, form=form), **how)


def test_one_sentence_names_the_columns_with_an_example() -> None:
    cells = read({"t": ["36,1", "37", None], "p": ["12 %", "3 %", "?"], "y": ["a,5", "b", "c"]})
    assert cells.frame["t"].tolist()[:2] == ["36.1", "37"]
    assert cells.frame["p"].tolist() == ["12", "3", "?"]
    assert cells.frame["y"].tolist() == ["a,5", "b", "c"]
    assert cells.notes == (
        "Read as numbers: 't' ('36,1' as 36.1), 'p' ('12 %' as 12). To keep a column as text, declare it nominal "
        "(--nominal t).",
    )
    assert cells.decimal == ","


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["36,1", "36,2"] * 9 + ["36.3"], None),  # today's sentence names the one that differs
        (["36,1", "36.2"], "no one way of writing fits them all, such as '36,1' and '36.2'"),
        ([f"{k},5" for k in range(20)] + ["unbekannt"], "stays text because of 'unbekannt'.*--na-values"),
        (["12 %", "3"], "no one way of writing fits them all, such as '12 %' and '3'"),
        (["+49 171 123", "+49 171 124"], r"values look like numbers, such as '\+49 171 123'"),
        (["5 kg", "7 kg", "9.5 kg"], "numbers with a sign or a unit, such as '5 kg'"),
        (["<0.5", "0.7", "1.2"], "numbers with a sign or a unit, such as '<0.5'"),
        (["2", "3", "5more"], None),
        (["1.2.3", "1.2.4"], None),
        (["low", "high"], None),
        (["36.1", "36.2"], None),
    ],
)
def test_texts_that_may_be_numbers_get_a_sentence(cells: list[str], said: str | None) -> None:
    found = read({"t": cells})
    assert found.frame["t"].tolist() == cells
    if said is None:
        assert not any("stays text, though" in note for note in found.notes)
    else:
        with pytest.raises(AssertionError, match=said):
            raise AssertionError(found.notes)


def test_two_ways_of_writing_get_a_sentence() -> None:
    alone = read({"t": ["1,234", "2,345"]}, separator="\t")
    assert alone.frame["t"].tolist() == ["1234", "2345"]
    assert "In column 't', '1,234' may be 1234 or 1.234; it is read as 1234" in alone.notes[1]
    assert "as a decimal mark is a point unless something speaks against it" in alone.notes[1]
    other = read({"t": ["1.234", "2.345"], "u": ["0,5", "1"]})
    assert other.frame["t"].tolist() == ["1234", "2345"]
    assert "as the decimal mark of other columns is ','" in other.notes[1]
    plain = read({"t": ["1.234", "2.345"]})
    assert plain.frame["t"].tolist() == ["1.234", "2.345"]
    assert "may be 1.234 or 1234" in plain.notes[0]
    assert read({"t": ["1.234", "2.345"], "u": ["0.5", "1"]}).notes == ()
    assert read({"t": ["1,234"]}, {"decimal": ","}).frame["t"].tolist() == ["1.234"]


def test_columns_that_stay_text_and_columns_that_are_numbers() -> None:
    columns = {"t": ["36,1", "unknown"], "u": ["36,1", "37"]}
    assert read(columns, texts=["u"]).frame["u"].tolist() == ["36,1", "37"]
    cells = read(columns, numbers=["t"], only_numbers=True)
    assert cells.frame["t"].tolist() == ["36.1", "unknown"]
    assert cells.frame["u"].tolist() == ["36,1", "37"]


def test_text_that_has_a_type_stays_text_with_a_sentence() -> None:
    cells = read({"t": ["36,1", "37"]}, untyped=False)
    assert cells.frame["t"].tolist() == ["36,1", "37"]
    assert "Column 't' of 'f.csv' is text, though '36,1' looks like a number" in cells.notes[0]


@pytest.mark.parametrize(
    ("series", "values", "left"),
    [
        (pd.Series(["9", "9.0", "x", "unknown"], dtype=object), ["9", "unknown"], ["x"]),
        (pd.Series([9, 2**60, 3]), ["9"], [2**60, 3]),
        (pd.Series([9.0, 2.5]), ["9"], [2.5]),
        (pd.Series(["9", "a"], dtype="category"), ["9"], ["a"]),
        (pd.Series(["-9", "1"], dtype="string"), ["-9.0"], ["1"]),
    ],
)
def test_missing_values_are_found_by_text_and_by_number(
    series: pd.Series, values: list[str], left: list[Any]
) -> None:
    frame, absent = mark_missing(series.to_frame("a"), TextFormat.of({"na_values": values}).na_values, "here")
    assert frame["a"].dropna().tolist() == left
    assert absent == {}


def test_missing_values_of_one_column() -> None:
    cells = read({"a": ["9", "1"], "b": ["9", "9,5"]}, {"na_values": {"a": 9, "*": [77]}})
    assert cells.frame["a"].tolist() == [None, "1"]
    assert cells.frame["b"].tolist() == ["9", "9.5"]
    assert cells.notes[-1] == "No cell of 'f.csv' holds the missing value '77' that was given."
    comma = read({"a": ["-9,0", "1,5"]}, {"na_values": [-9]})
    assert comma.frame["a"].dropna().tolist() == ["1.5"]
    with pytest.raises(InputError, match="'na_values' names 'c', which is not a column"):
        read({"a": ["1"]}, {"na_values": {"c": 1}})

"""Which line of a text file holds the names, and which lines are no rows."""

from __future__ import annotations

import random

import pytest

from milpbn.data.delimited import parse_delimited
from milpbn.data.options import TextFormat
from milpbn.data.raw_table import RawTable
from milpbn.errors import InputError


def parse(*lines: str, known: tuple[str, ...] = (), **options: object) -> RawTable:
    return parse_delimited("\n".join(lines) + "\n", TextFormat.of(options), "'f.csv'", known=known)


def rows(n: int, seed: int = 0) -> list[str]:
    """Rows of a whole number, a decimal one, a label and a class."""
    rng = random.Random(seed)
    return [
        f"{rng.randint(1, 9)},{rng.uniform(1, 90):.1f},{rng.choice('MF')},{rng.choice('01')}"
        for _ in range(n)
    ]


def test_a_file_without_names_keeps_its_first_row() -> None:
    raw = parse(*rows(60))
    assert list(raw.frame.columns) == ["x1", "x2", "x3", "class"]
    assert ",".join(raw.frame.iloc[0]) == rows(60)[0]
    assert "looks like a row" in raw.notes[0]
    assert "--header (header=True in Python)" in raw.notes[0]


@pytest.mark.parametrize("line", ["age,size,sex,y", "2001,2002,2003,2004", "0,1,2,3", "a,2001,b,c"])
def test_names_stay_names(line: str) -> None:
    raw = parse(line, *rows(60))
    assert list(raw.frame.columns) == line.split(",")
    assert len(raw.frame) == 60
    numbers = [name for name in line.split(",") if name.isdecimal()]
    assert bool(raw.notes) == bool(numbers)
    assert all(repr(number) in raw.notes[0] for number in numbers[:3])


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        (["country,2001,2002", *(f"c{k},{k}.5,{k}.7" for k in range(20))], True),
        (["1,5,10,50", *("0,1,0,1", "1,0,1,0", "0,0,1,1") * 9], True),  # one column for each dose, 0 or 1
        ([".1,.5,1.0,class", *(f"{k}.5,{k * 7}.5,{k * 3},{'ab'[k % 2]}" for k in range(20))], True),
        (["low,high,p", *("low,low,q", "high,high,p", "low,high,q") * 9], False),  # labels only
        (["1;2,5;p", *(f"{k};{k % 7},5;{'pq'[k % 2]}" for k in range(20))], False),  # decimal commas
        (["1,2,3,yes", *(f"{k % 5},{k % 4},{k % 6},{('yes', 'no')[k % 2]}" for k in range(30))], False),
        (["0,1,0,1,0", *("0,1,0,0,1", "1,0,1,1,0", "0,0,1,1,1") * 9], False),
        (["a,b", "1,2"], True),
    ],
)
def test_names_or_a_row(lines: list[str], header: bool) -> None:
    raw = parse(*lines)
    assert ("x1" not in raw.frame) == header
    assert len(raw.frame) == len(lines) - header


def test_the_option_decides() -> None:
    assert list(parse(*rows(60), header=True).frame.columns) == rows(60)[0].split(",")
    raw = parse("age,size,sex,y", *rows(60), header=False)
    assert raw.frame.iloc[0].tolist() == ["age", "size", "sex", "y"]
    assert raw.notes == ()


def test_names_that_a_classifier_knows_are_names() -> None:
    lines = ["5,3,M,1", *rows(60)]
    assert list(parse(*lines, known=("5", "3", "M", "1")).frame.columns) == ["5", "3", "M", "1"]
    unlabelled = [row.rpartition(",")[0] for row in rows(60)]
    known = ("x1", "x2", "x3", "class")
    assert list(parse(*unlabelled, known=known).frame.columns) == ["x1", "x2", "x3"]


def test_lines_that_are_no_rows_are_left_out_with_a_sentence() -> None:
    body = rows(10)
    raw = parse("# made today, by me", "a,b,c,y", *body[:5], "a,b,c,y", "#", *body[5:])
    assert raw.frame.to_numpy().tolist() == [row.split(",") for row in body]
    said = " ".join(raw.notes)
    assert "begin with # are left out: 1 (line 1)" in said
    assert "begin with # are left out: 1 (line 9)" in said
    assert "repeat the names of the columns are left out: 1 (line 8)" in said


@pytest.mark.parametrize("line", ["# a,b,c,y", "#a,b,c,y"])
def test_names_behind_the_sign_of_a_comment(line: str) -> None:
    frame = parse(line, *rows(30)).frame
    assert [name.strip(" #") for name in frame.columns] == ["a", "b", "c", "y"]
    assert len(frame) == 30


def test_a_row_of_units_is_left_out_with_a_sentence() -> None:
    raw = parse("age,size,sex,y", "years,cm,,", *rows(10))
    assert len(raw.frame) == 10
    assert "'years' in 'age', 'cm' in 'size'" in raw.notes[0]
    one = parse("sex,size,y", "M,unknown,1", *(f"F,{k}.5,0" for k in range(9)))
    assert len(one.frame) == 10  # a single text above numbers may be a value


def test_a_row_of_another_length_is_named() -> None:
    with pytest.raises(InputError, match=r"Line 5 of 'f.csv' has 2 cells, but there are 4 .*--separator"):
        parse("a,b,c,y", *rows(3), "1,2")


def test_columns_of_blocks_of_rows_are_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("milpbn.data.delimited._AT_ONCE", 7)
    lines = rows(60)
    assert parse("a,b,c,d", *lines).frame.agg(",".join, axis=1).tolist() == lines

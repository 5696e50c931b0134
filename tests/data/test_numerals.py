"""Numbers in the ways of writing of many countries."""

from __future__ import annotations

import pytest

from milpbn.data.numerals import Marks, choose, convert, is_number, written

BLANKS = "\u00a0\u202f\u2009"


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["36,1", "37"], [36.1, 37]),
        (["1.234,56", "12"], [1234.56, 12]),
        (["1,234.5", "12"], [1234.5, 12]),
        (["1.234.567", "12"], [1234567, 12]),
        (["1'234.5", "1\u2019234\u2019567"], [1234.5, 1234567]),
        ([f"1{blank}234,5" for blank in BLANKS], [1234.5] * 3),
        (["1 234", "12"], [1234, 12]),
        (["1,23,456", "12,34,56,789"], [123456, 123456789]),
        (["12 %", "3%"], [12, 3]),
        (["€ 12,50", "3"], [12.5, 3]),
        (["CHF 1'200.50", "CHF 3"], [1200.5, 3]),
        (["12,50 €", "-3 €"], [12.5, -3]),
        (["-$1,200.5", "$ -3", "$5"], [-1200.5, -3, 5]),
        (["(1,200.5)", "1"], [-1200.5, 1]),
        (["\u22125", "\u20136", "+7"], [-5, -6, 7]),
        (["12,50-", "3"], [-12.5, 3]),
        (["1.5D+03", "2d-1"], [1500, 0.2]),
        (["1,5E3"], [1500]),
        (["1,234e-2", "1"], [0.01234, 1]),
        ([".5", "5.", "1e3", " 7 "], [0.5, 5, 1000, 7]),
        ([",5", "5,"], [0.5, 5]),
        (["01234", "5"], [1234, 5]),
    ],
)
def test_a_column_of_numbers_is_read(cells: list[str], numbers: list[float]) -> None:
    found = written(cells)
    assert found is not None
    assert found.other is None
    assert [float(convert(cell, found.marks) or "nan") for cell in cells] == numbers


@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.3", "1.2.4"],  # versions
        ["192.168.100.101", "192.168.100.102"],
        ["1.2.2020"],
        ["12:30"],
        ["+49 171 123 456", "+49 171 123 457"],
        ["171 123 456", "171 123 457"],
        ["(1)", "(2)"],
        ["2D6", "1D4"],  # dice
        ["1-", "2-"],  # marks at school
        ["0.123.456"],
        ["1,2,3"],
        ["12 %", "3"],
        ["€5", "$5"],
        ["36,1", "36.1"],
        ["1_000"],
        ["0x1F"],
        ["12,34,567.1.2"],
        ["--5"],
        ["5 kg"],
        ["low"],
        ["-"],
        [""],
    ],
)
def test_labels_and_mixtures_are_no_numbers(cells: list[str]) -> None:
    assert written(cells) is None


@pytest.mark.parametrize(
    ("cells", "decimals", "separator", "usual", "value"),
    [
        (["1,234"], [], ",", None, 1234),
        (["1,234"], [], "\t", None, 1234),
        (["1,234"], [], ";", None, 1.234),
        (["1,234"], ["."], ";", None, 1234),
        (["1,234"], [","], "\t", None, 1.234),
        (["1,234"], [".", ","], ";", None, 1.234),
        (["1,234"], [], "\t", ",", 1.234),
        (["1.234"], [], ";", None, 1.234),
        (["1.234"], [","], ";", None, 1234),
        (["1.234", "2.345", "12.500", "870"], [], ",", None, 1234),
        (["1,234", "2,345", "12,500", "870"], [], ";", None, 1234),
        (["1.234", "2.345", "12.500", "8700"], [], ",", None, 1.234),
        (["1.333", "1.667", "2.333", "2"], [], ",", None, 1.333),
    ],
)
def test_two_ways_of_writing(
    cells: list[str], decimals: list[str], separator: str, usual: str | None, value: float
) -> None:
    """Other columns decide, then the training table, integers beside, and the separator."""
    found = written(cells)
    assert found is not None
    assert found.other is not None
    marks, why = choose(found, cells, decimals, separator, usual)
    assert float(convert(cells[0], marks) or "nan") == value
    assert why.startswith("as ")


def test_marks_that_are_asked_for_count_alone() -> None:
    comma, blank = Marks(","), Marks("", " ")
    assert written(["1,234"], comma).marks == comma  # type: ignore[union-attr]
    assert written(["1.234"], comma).marks == Marks(",", ".")  # type: ignore[union-attr]
    assert written(["36.1"], comma) is None
    assert written(["171 123 456"], blank).marks == Marks(".", " ")  # type: ignore[union-attr]
    assert written(["1_000", "1"], Marks(".", "_")).marks == Marks(".", "_")  # type: ignore[union-attr]
    assert written(["36\u00b71"], Marks("\u00b7")).marks == Marks("\u00b7")  # type: ignore[union-attr]


def test_one_cell() -> None:
    assert is_number("1.234,5")
    assert is_number("inf")
    assert not is_number("nan")


def test_a_cell_with_thousands_is_the_example_before_one_with_a_unit() -> None:
    found = written(["$1.5", "8,957", "2.25"])
    assert found is not None
    assert (found.marks, found.other, found.example) == (Marks(".", ","), None, "8,957")

"""What separates the cells of a text file."""

from __future__ import annotations

import pytest

from milpbn.data.separators import divide, first_cells


@pytest.mark.parametrize(
    ("text", "separator", "first"),
    [
        ("a,b\n1,2\n", ",", ["a", "b"]),
        ("a|b\n1|2\n", "|", ["a", "b"]),
        (
            "Groesse, cm;Gewicht, kg;y\n156,7;100,8;p\n188,2;65,3;q\n",
            ";",
            ["Groesse, cm", "Gewicht, kg", "y"],
        ),
        ("id, code\tvalue, mg\ty\n1,2\t3,4\tp\n", "\t", ["id, code", "value, mg", "y"]),
        ("a;b,c\n1;2,5\n", ";", ["a", "b,c"]),
        ("l;m,a,b\n1;2,3,4\n5;6,7,8\n", ",", ["l;m", "a", "b"]),
        ('"a, b";"c, d"\n1;2\n', ";", ["a, b", "c, d"]),
        ('"a" "b"\n1  2\n "3" 4 \n5\t6\n', " ", ["a", "b"]),
        ("a b\n1 2\n3\n", ",", ["a b"]),
        ("full name,y\nA B,1\nC D\n", ",", ["full name", "y"]),
        ("sep=;\na,b;y\n1,2;3\n", ";", ["a,b", "y"]),
        ('"SEP=\t"\r\na,b\ty\r\n', "\t", ["a,b", "y"]),
        ("# one; two; three\na,b\n1,2\n", ",", ["a", "b"]),
        ('a, "b, c"\n1, "2, 3"\n', ",", ["a", "b, c"]),
        ("a;b;c\n1,5;2\n", ";", ["a", "b", "c"]),
        ("x\n1\n", ",", ["x"]),
        ("", ",", []),
    ],
)
def test_the_separator_divides_all_lines(text: str, separator: str, first: list[str]) -> None:
    assert divide(text, "here").separator == separator
    assert first_cells(text) == first


def test_a_second_separator_that_divides_all_lines_is_a_rival() -> None:
    assert divide("a, b;c\n1,5;2\n", "here").rivals == (",",)
    assert divide("a;b\n1,5;2\n", "here").rivals == ()


def test_lines_are_counted_in_the_file() -> None:
    assert [row.line for row in divide('sep=,\n\na,b\n"1\n2",3\n', "here").records] == [3, 5]

from __future__ import annotations

import numpy as np
import pytest

from milpbn.data import read_table
from milpbn.data.dat import format_dat, parse_dat
from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError

TEXT = "# a comment\nA B c\n2 12 3\nyes 1 x\nno 11 y\r\n\nyes 2 ?\n"


def test_a_file_is_read(tmp_path):
    (tmp_path / "t.dat").write_text(TEXT, newline="")
    frame = parse_dat(TEXT, "here")
    assert list(frame.columns) == ["A", "B", "c"]
    assert list(frame["B"].cat.categories) == ["1", "2", "11"]
    assert frame["c"].isna().tolist() == [False, False, True]
    table = read_table(tmp_path / "t.dat", target="A")
    assert table.kinds == {"A": "nominal", "B": "nominal", "c": "nominal"}
    assert parse_dat("3\n" + TEXT, "here").equals(frame)  # older files begin with the number of columns
    counted = TEXT.replace("yes 1 x", "3\nyes 1 x")
    assert parse_dat(counted, "here").equals(frame)  # as BLIP writes it
    assert parse_dat("3\n" + counted, "here").equals(frame)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a line with names"),
        ("A B\n2\n", "Line 2 of here does not have the arities of 2 columns"),
        ("A B\nx y\n", "Line 2 of here does not have the arities"),
        ("A B\n2 2\n\n1\n", "Line 4 of here has 1 values for 2 columns"),
        ("A B\n2 2\n3\n0 0\n1 1\n", "Line 3 of here says that there are 3 rows, but 2 follow"),
        ("A B\n1 2\n0 0\n1 0\n", "Column 'A' of here has 2 values, but the arity 1"),
    ],
)
def test_errors_name_the_line(text, said):
    with pytest.raises(InputError, match=said):
        parse_dat(text, "here")


def data(names=("a b", "c"), labels=(("x", "y"), ("(-inf, 1]", "(1, inf)")), weights=(1.0, 1.0)) -> Dataset:
    variables = tuple(Variable(name, states) for name, states in zip(names, labels, strict=True))
    return Dataset("d", variables, np.array([[0, 1], [1, 0]], dtype=np.int32), np.array(weights))


def test_labels_that_are_no_words_become_codes():
    text = format_dat(data())
    assert text.splitlines()[1:] == ["# c: 0 = '(-inf, 1]', 1 = '(1, inf)'", "a_b c", "2 2", "x 1", "y 0"]
    assert parse_dat(text, "here").to_numpy().tolist() == [["x", "1"], ["y", "0"]]


@pytest.mark.parametrize(
    "changed",
    [{"names": ("a b", "a_b")}, {"names": ("#a", "c")}, {"weights": (1.0, 2.0)}],
)
def test_what_the_format_cannot_hold_is_refused(changed):
    with pytest.raises(InputError, match=r"\.dat file"):
        format_dat(data(**changed))

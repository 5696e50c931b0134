"""Texts in columns of a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.network.structure import Structure
from milpbn.solving.progress import structure_lines
from milpbn.util.printing import columns_of, padded, right_aligned


@pytest.mark.parametrize(
    ("text", "columns"), [("", 0), ("age", 3), ("年齢", 4), ("ｱｷﾞ", 3), ("é", 1), ("e\u0301", 1)]
)
def test_wide_characters_take_two_columns(text: str, columns: int) -> None:
    assert columns_of(text) == columns
    assert columns_of(padded(text, 6)) == columns_of(right_aligned(text, 6)) == 6
    assert padded(text, 6).startswith(text)
    assert right_aligned(text, 6).endswith(text)


def test_a_longer_text_stays_whole() -> None:
    assert padded("運動習慣", 3) == right_aligned("運動習慣", 3) == "運動習慣"


def test_arrows_of_a_structure_stand_below_each_other() -> None:
    lines = structure_lines(Structure(("血圧", "age", "運動習慣"), ((2,), (2,), ())))[1:]
    assert np.unique([columns_of(line.partition("<-")[0]) for line in lines]).size == 1

"""Counts in words."""

from __future__ import annotations

import pytest

from milpbn.util.plurals import counted


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, ("arc",), "0 arcs"),
        (1, ("arc",), "1 arc"),
        (2, ("class", "classes"), "2 classes"),
        (1, ("class", "classes"), "1 class"),
        (123456789012, ("row",), "123456789012 rows"),
        (0.5, ("sample",), "0.5 samples"),
    ],
)
def test_only_one_is_singular(count, noun, text):
    assert counted(count, *noun) == text

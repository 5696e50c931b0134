"""Sizes of texts."""

from __future__ import annotations

import pytest

from milpbn.drawing.text import shortened, text_width, wrapped
from milpbn.errors import MilpbnWarning
from milpbn.util.printing import printable

NAMES = ["age", "WWWWMMMM", "petal-length (cm)", "größe", "年齢と性別", "Щука", "ﾊﾝｶｸ", "naïve", "a\u0301b"]


@pytest.mark.filterwarnings("error::milpbn.errors.MilpbnWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_estimate_is_not_below_the_width_of_a_wide_font(name):
    textpath = pytest.importorskip("matplotlib.textpath")
    from matplotlib.font_manager import FontProperties

    from milpbn.plotting.canvas import _families

    try:
        font = FontProperties(family=_families(set(name)), size=100)
    except MilpbnWarning:
        pytest.skip("no font has these characters")
    width, *_ = textpath.text_to_path.get_text_width_height_descent(name, font, False)
    assert text_width(name, 100) >= width - 1.0


def test_japanese_characters_count_a_full_em():
    assert text_width("年齢", 10.0) >= 20.0


@pytest.mark.parametrize(
    "name", [*NAMES, "x" * 500, "a_very_long_name_with_many_parts_" * 6, "", " ", "\n\ud800"]
)
def test_lines_fit_and_keep_the_name(name):
    lines = wrapped(name, 100.0)
    assert 1 <= len(lines) <= 3
    assert all(text_width(line) <= 100.0 for line in lines)
    if not any("…" in line for line in lines) and name.strip():
        assert "".join(lines).replace(" ", "") == printable(name).replace(" ", "")


def test_a_long_text_keeps_both_ends():
    short = shortened("sepal-length-of-the-flower-in-centimetres", 120.0)
    assert short.startswith("sepal")
    assert short.endswith("metres")
    assert "…" in short

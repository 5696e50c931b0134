"""Parts of web pages."""

from __future__ import annotations

from pictures import Page

from milpbn.drawing.html import card, facts, words


def test_texts_are_escaped():
    assert words("<script>\n") == "&lt;script&gt;\\n"
    assert "<script>" not in card("<script>", [("<script>", "<script>")])


def test_missing_facts_are_left_out():
    assert Page(facts([("a", 1), ("b", None), ("c", 0)])).text == "a1c0"

"""Parts of web pages."""

from __future__ import annotations

from html.parser import HTMLParser

from milpbn.drawing.html import card, facts, words


def test_texts_are_escaped():
    assert words("<script>\n") == "&lt;script&gt;\\n"
    assert "<script>" not in card("<script>", [("<script>", "<script>")])


def test_missing_facts_are_left_out():
    parser = HTMLParser()
    found: list[str] = []
    parser.handle_data = found.append
    parser.feed(facts([("a", 1), ("b", None), ("c", 0)]))
    assert found == ["a", "1", "c", "0"]

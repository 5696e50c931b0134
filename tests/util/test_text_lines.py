from __future__ import annotations

from milpbn.util.text_lines import content_lines


def test_blank_lines_and_comments_are_left_out_and_count() -> None:
    text = "a b\r\n\r  # note\n c # not a comment\n\n%d\n"
    assert list(content_lines(text)) == [(1, "a b"), (4, "c # not a comment"), (6, "%d")]
    assert list(content_lines(text, "%")) == [(1, "a b"), (3, "# note"), (4, "c # not a comment")]
    assert list(content_lines("")) == []

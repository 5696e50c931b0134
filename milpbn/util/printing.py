"""Texts with names from a file, which can contain any characters, as a terminal or a picture can show them.

Chinese, Japanese and Korean characters are two columns of a terminal wide.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def printable(text: str, keep: str = "") -> str:
    """Return a text with its unprintable characters escaped, such as line breaks and a terminal's escape sequences.

    Those in `keep` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def columns_of(text: str) -> int:
    """Return the number of columns that a terminal needs for a text."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def padded(text: str, width: int) -> str:
    """Return a text with spaces behind it, so that it is as many columns wide."""
    return text + " " * (width - columns_of(text))


def right_aligned(text: str, width: int) -> str:
    """Return a text with spaces before it, so that it is as many columns wide."""
    return " " * (width - columns_of(text)) + text


def aligned(rows: Sequence[Sequence[str]], *, left: int = 0, equal: bool = False) -> list[str]:
    """Return the lines of a table whose first `left` columns are aligned to the left, and the others to the right.

    Each column is as wide as its widest cell, or with `equal` as the widest cell of the table.
    """
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    if equal:
        widths = [max(widths)] * len(widths)
    sides = [padded] * left + [right_aligned] * (len(widths) - left)
    return [
        "  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True))
        for row in rows
    ]

"""Texts in columns of a terminal, where Chinese, Japanese and Korean characters are two columns wide."""

from __future__ import annotations

import unicodedata


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

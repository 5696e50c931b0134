"""Texts with names from a file, which can contain any characters, as a terminal or a picture can show them."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """Return a text with its unprintable characters escaped, such as line breaks and a terminal's escape sequences.

    Those in `keep` stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)

"""Counts of things in words."""

from __future__ import annotations


def counted(count: float, noun: str, plural: str | None = None) -> str:
    """Return a count, which may be a sum of weights, with its noun, such as "1 arc" and "2 arcs".

    By default, the plural is the noun with an s.
    """
    return f"{count:.15g} {noun if count == 1 else plural or noun + 's'}"

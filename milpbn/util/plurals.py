"""Counts of things in words."""

from __future__ import annotations


def counted(count: float, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, such as "1 arc" and "2 arcs".

    Parameters
    ----------
    count : int or float
        How many; a sum of weights may be a fraction.
    noun : str
        For one of them.
    plural : str, optional
        For any other number; by default the noun with an s.
    """
    return f"{count:.15g} {noun if count == 1 else plural or noun + 's'}"

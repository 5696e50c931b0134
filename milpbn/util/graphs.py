"""Facts about the graph of a classifier, for structures and for their pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def families_with_class(parents: Sequence[Sequence[int]]) -> frozenset[int]:
    """Return the variables in a family with the class: the class, its parents, its children and their parents.

    Parameters
    ----------
    parents : sequence of sequences of int, length V
        Parents of each variable, the class last.
    """
    last = len(parents) - 1
    families = ((i, *own) for i, own in enumerate(parents) if i == last or last in own)
    return frozenset({last}.union(*families))


def with_ancestors(parents: Sequence[Sequence[int]], start: Iterable[int]) -> set[int]:
    """Return some variables and all of their ancestors; `parents` has the parents of each variable."""
    left = list(start)
    found = set(left)
    while left:
        new = set(parents[left.pop()]) - found
        found |= new
        left.extend(new)
    return found

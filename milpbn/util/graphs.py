"""Facts about directed graphs: what the class reaches, ancestors, paths and d-separation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

#: The parents of each variable.
Parents = Sequence[Collection[int]]


def families_with_class(parents: Parents) -> frozenset[int]:
    """Return the variables in a family with the class: the class, its parents, its children and their parents.

    The parents are those of each variable, the class last.
    """
    last = len(parents) - 1
    families = ((i, *own) for i, own in enumerate(parents) if i == last or last in own)
    return frozenset({last}.union(*families))


def with_ancestors(parents: Parents, start: Iterable[int]) -> set[int]:
    """Return some variables and all of their ancestors."""
    left = list(start)
    found = set(left)
    while left:
        new = set(parents[left.pop()]) - found
        found |= new
        left.extend(new)
    return found


def separated(parents: Parents, a: int, b: int, given: Collection[int]) -> bool:
    """Return whether a and b are d-separated by the given variables.

    They are if `given` separates them in the moral graph of the ancestors of all (Lauritzen et al. 1990).
    """
    near: dict[int, set[int]] = {i: set() for i in with_ancestors(parents, (a, b, *given))}
    for i in near:
        family = {i, *parents[i]}
        for j in family:
            near[j] |= family
    found, waiting = {a}, [a]
    while waiting:
        new = near[waiting.pop()] - found - set(given)
        found |= new
        waiting += new
    return b not in found


def shortest_path(parents: Parents, a: int, b: int) -> list[int]:
    """Return a shortest directed path from a to b, both included; empty if there is none."""
    after: dict[int, int] = {b: b}
    waiting = [b]
    for i in waiting:
        for j in sorted(parents[i]):
            if j not in after:
                after[j] = i
                waiting.append(j)
    path = [a] if a in after else []
    while path and path[-1] != b:
        path.append(after[path[-1]])
    return path

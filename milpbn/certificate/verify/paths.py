"""Constraints on paths, for the verifier: which structures obey them, and which inequalities follow from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from milpbn.problem.constraints import Rules

#: The parents of each variable.
Parents = Sequence[Collection[int]]


def obeys_paths(rules: Rules, parents: Parents) -> bool:
    """Return whether an acyclic structure obeys the constraints on paths."""
    above = [_ancestors(parents, i) for i in range(len(parents))]
    return (
        all(a in above[d] for a, d in rules.ancestors)
        and not any(a in above[d] for a, d in rules.no_ancestors)
        and not any(connected(parents, *one) for one in rules.independences)
    )


def _ancestors(parents: Parents, i: int) -> set[int]:
    found, waiting = set[int](), [i]
    while waiting:
        new = set(parents[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def connected(parents: Parents, a: int, b: int, given: Collection[int]) -> bool:
    """Return whether an active trail connects a and b: the reachability of Koller & Friedman 2009, algorithm 3.1.

    A trail through a variable is active if the variable is not given; where two arcs meet head to head, if it or a
    descendant is given.
    """
    children = [[k for k, own in enumerate(parents) if i in own] for i in range(len(parents))]
    opened = set(given).union(*(_ancestors(parents, i) for i in given))
    seen, waiting = set[tuple[int, bool]](), [(a, True)]
    while waiting:
        step = i, upwards = waiting.pop()  # reached from a child (upwards) or from a parent
        if step in seen:
            continue
        seen.add(step)
        if i == b:
            return True
        if i not in given:
            waiting += ((k, False) for k in children[i])
        if i not in given if upwards else i in opened:
            waiting += ((j, True) for j in parents[i])
    return False

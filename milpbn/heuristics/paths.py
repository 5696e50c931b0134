"""Structures that obey constraints on paths, near structures that do not."""

from __future__ import annotations

import math

from milpbn.network.structure import Structure, topological_order
from milpbn.problem.problem import Problem
from milpbn.util.graphs import shortest_path, with_ancestors


def repaired(problem: Problem, structure: Structure) -> Structure | None:
    """Return a structure with the demanded paths and without the forbidden ones; None if none is found.

    In a topological order of arcs and demanded paths, one parent set is changed at a time: the one that breaks or makes
    a path and loses least of the linear terms.
    """
    rules, parents = problem.rules, [set(own) for own in structure.parents]
    wanted = [own | {a for a, b in rules.ancestors if b == i} for i, own in enumerate(parents)]
    order = topological_order([tuple(own) for own in wanted])
    pairs = [(*pair, True) for pair in sorted(rules.no_ancestors)]
    pairs += [(*pair, False) for pair in sorted(rules.ancestors)]
    for _ in range(len(parents) * len(pairs) + 1):
        wrong = [one for one in pairs if bool(shortest_path(parents, *one[:2])) == one[2]]
        if order is None or not wrong:
            break
        step = _cheapest(problem, parents, list(order), *wrong[0])
        if step is None:
            return None
        parents[step[0]] = set(step[1])
    found = Structure(structure.names, tuple(tuple(sorted(own)) for own in parents))
    return found if problem.obeys(found) else None


def _cheapest(
    problem: Problem, parents: list[set[int]], order: list[int], a: int, b: int, present: bool
) -> tuple[int, tuple[int, ...]] | None:
    """Return the cheapest change that cuts a shortest path from a to b, if paths are `present`, or else makes a path.

    A change is a variable and its new parent set, whose members come before it in the order. None if there is none.
    """
    behind = {i for i in order if a in with_ancestors(parents, [i])}
    best, least = None, math.inf
    for i in shortest_path(parents, a, b)[1:] if present else sorted(with_ancestors(parents, [b])):
        before, first = set(order[: order.index(i)]), int(problem.candidates.offsets[i])
        now = problem.candidates.position(i, tuple(sorted(parents[i])))
        for k, own in enumerate(problem.candidates.sets[i]):
            loss = -problem.linear[first + k] + (0.0 if now is None else problem.linear[now])
            if loss < least and before.issuperset(own) and behind.isdisjoint(own) == present:
                best, least = (i, own), loss
    return best

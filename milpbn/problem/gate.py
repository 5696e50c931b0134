"""The gate for structures: check on the arcs whether a structure obeys the score's limits and the constraints.

Every structure that is returned, imported or verified passes this check. It reads names, `Constraints` and `Score`, but
neither candidate sets nor rules nor coefficients, so that it finds mistakes in those.
"""

from __future__ import annotations

from collections.abc import Mapping

from milpbn.network.structure import Structure
from milpbn.problem.class_free import among, has_larger
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.util.graphs import separated, shortest_path


def objection(
    structure: Structure, score: Score, constraints: Constraints, *, any_class_free: bool = False
) -> str | None:
    """Return the first violation of a score's limits or of the constraints by a structure's arcs, or None.

    It is a clause such as "it has the forbidden arc X1 -> X2". The class is the structure's last variable. Arc weights
    forbid nothing. With `any_class_free`, any class-free parent set of a feature that the constraints and limits allow
    is accepted; otherwise only {} or the required parents where a search has no larger ones
    (`milpbn.problem.class_free.has_larger`).
    """
    parents = {child: set(members) for child, members in structure.to_mapping().items()}
    target = structure.names[-1]
    cyclic = _on_cycles(parents)
    if cyclic:
        return f"it has a cycle through {', '.join(map(repr, sorted(cyclic)))}"
    for child, members in parents.items():
        found = _limits(child, members, score, target) or _constraints(child, members, constraints)
        if found is not None:
            return found
        needed = {a for a, b in constraints.required if b == child}
        smallest = not (any_class_free or has_larger(score, constraints) or child in constraints.fixed)
        if smallest and child != target and target not in members and members != needed:
            only = among(score, constraints)
            return f"it gives {child!r} the parents {_listed(members)} without the class {target!r}, " + (
                f"and the search was among {only}" if only else f"where {_listed(needed)} scores no less"
            )
    most, used = constraints.max_features, len(structure.markov_blanket)
    if most is not None and used > most:
        return f"it has {used} features in the Markov blanket of the class, more than the {most} allowed"
    return _child_limits(parents, constraints, target) or _paths(structure, constraints)


def _paths(structure: Structure, constraints: Constraints) -> str | None:
    """Return how a structure violates a constraint on paths, or None."""
    at = {name: i for i, name in enumerate(structure.names)}
    for a, b in constraints.ancestors:
        if not shortest_path(structure.parents, at[a], at[b]):
            return f"it has no path from {a!r} to {b!r}"
    for a, b in constraints.no_ancestors:
        if path := shortest_path(structure.parents, at[a], at[b]):
            return f"it has the path {' -> '.join(structure.names[i] for i in path)}"
    for a, b, given in constraints.independences:
        if not separated(structure.parents, at[a], at[b], [at[name] for name in given]):
            return f"it does not separate {a!r} and {b!r} given {_listed(set(given))}"
    return None


def _limits(child: str, members: set[str], score: Score, target: str) -> str | None:
    if len(members) > score.max_parents:
        return f"it gives {child!r} {len(members)} parents, and max_parents is {score.max_parents}"
    if child == target and members and not score.class_parents:
        return f"it gives the class {child!r} the parents {_listed(members)}, and class parents are off"
    return None


def _constraints(child: str, members: set[str], constraints: Constraints) -> str | None:
    """Return how one parent set violates a constraint on single arcs or on parent sets, or None."""
    for a, b in constraints.required:
        if b == child and a not in members:
            return f"it lacks the required arc {a} -> {b}"
    for a, b in constraints.forbidden:
        if b == child and a in members:
            return f"it has the forbidden arc {a} -> {b}"
    if child in constraints.fixed and members != set(constraints.fixed[child]):
        fixed = _listed(set(constraints.fixed[child]))
        return f"it gives {child!r} the parents {_listed(members)}, where {fixed} is fixed"
    if child in constraints.allowed and not members <= set(constraints.allowed[child]):
        others = _listed(members - set(constraints.allowed[child]))
        return f"it gives {child!r} the parents {others}, which are not among those allowed"
    level = {name: k for k, tier in enumerate(constraints.tiers) for name in tier}
    if child in level:
        for parent in sorted(members & level.keys()):
            if level[parent] > level[child]:
                return f"it has the arc {parent} -> {child}, against the tiers"
    return None


def _child_limits(parents: Mapping[str, set[str]], constraints: Constraints, target: str) -> str | None:
    own = {name: limit for name, limit in constraints.max_children.items() if name != "*"}
    every = constraints.max_children.get("*")
    for name in parents:
        limit = own.get(name, None if name == target else every)
        children = sum(name in members for members in parents.values())
        if limit is not None and children > limit:
            return f"it gives {name!r} more children than the {limit} allowed"
    return None


def _on_cycles(parents: Mapping[str, set[str]]) -> set[str]:
    """Return the variables that remain when those without remaining parents are removed repeatedly.

    They are the variables on cycles and those below a cycle.
    """
    left = set(parents)
    while True:
        sources = {name for name in left if not parents[name] & left}
        if not sources:
            return left
        left -= sources


def _listed(names: set[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"

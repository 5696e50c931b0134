"""Leaves out arcs to and from features with one state: they change no probability, but look like a finding."""

from __future__ import annotations

from dataclasses import replace

from milpbn.data.dataset import Dataset
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem


def without_unused(problem: Problem, structure: Structure) -> Structure:
    """Return the structure without the arcs of features that have only one state, if they may be left out.

    The probabilities of such a feature are 1, and as a parent it distinguishes nothing. So the score stays the same, or
    rises by the penalties of the arcs. The structure stays as it is if no feature has one state, if an arc has a weight
    of the user, or if a constraint or a missing candidate set needs an arc.
    """
    unused = _with_one_state(problem.data)
    if not unused or problem.constraints.arc_weights:
        return structure
    parents = tuple(
        () if i in unused else tuple(j for j in own if j not in unused)
        for i, own in enumerate(structure.parents)
    )
    shown = Structure(structure.names, parents)
    fits = problem.objection(shown) is None and problem.choice(shown) is not None and problem.obeys(shown)
    return shown if fits else structure


def forbid_unused(data: Dataset, constraints: Constraints | None) -> Constraints | None:
    """Return constraints that also forbid all arcs from and to features with only one state.

    Otherwise every structure would have many twins with other such arcs and the same score. A feature of which the
    user's constraints require, fix or weigh an arc is left as it is.
    """
    given = Constraints() if constraints is None else constraints
    asked = {name for arc in (*given.required, *given.arc_weights) for name in arc}
    asked |= {name for child, parents in given.fixed.items() for name in (child, *parents)}
    unused = [data.names[i] for i in _with_one_state(data) if data.names[i] not in asked]
    arcs = [arc for u in unused for name in data.names if name != u for arc in ((u, name), (name, u))]
    if not arcs or given.ancestors:  # the only path may lead through one of them
        return constraints
    return replace(given, forbidden=tuple(dict.fromkeys((*given.forbidden, *arcs))))


def without_forbidden_unused(data: Dataset, constraints: Constraints, structure: Structure) -> Structure:
    """Return a structure without those forbidden arcs that come from or go to features with only one state."""
    unused = {data.names[i] for i in _with_one_state(data)}
    gone = {arc for arc in constraints.forbidden if unused & {*arc}}
    names = structure.names
    kept = (
        tuple(j for j in own if (names[j], names[i]) not in gone) for i, own in enumerate(structure.parents)
    )
    return Structure(names, tuple(kept))


def _with_one_state(data: Dataset) -> list[int]:
    """Return the numbers of the variables that have only one state, the class left out."""
    others = data.variables[:-1] if data.has_class else data.variables
    return [i for i, v in enumerate(others) if v.n_states == 1]

"""Arcs of features with one state. They change no probability, and a reader would take them for a finding."""

from __future__ import annotations

from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem


def without_unused(problem: Problem, structure: Structure) -> Structure:
    """Return the structure without the arcs of features that have only one state, if they may be left out.

    The probabilities of such a feature are 1, and as a parent it distinguishes nothing. So the score stays the same, or
    rises by the penalties of the arcs.

    Parameters
    ----------
    problem : Problem
        The problem whose constraints and candidate parent sets the result must obey.
    structure : Structure
        Over the problem's variables.

    Returns
    -------
    Structure
        The given one if no feature has one state, if an arc has a weight of the user, or if a constraint needs an arc.
    """
    unused = {i for i, v in enumerate(problem.data.variables[:-1]) if v.n_states == 1}
    if not unused or problem.constraints.arc_weights:
        return structure
    parents = tuple(
        () if i in unused else tuple(j for j in own if j not in unused)
        for i, own in enumerate(structure.parents)
    )
    shown = Structure(structure.names, parents)
    fits = problem.objection(shown) is None and problem.choice(shown) is not None and problem.obeys(shown)
    return shown if fits else structure

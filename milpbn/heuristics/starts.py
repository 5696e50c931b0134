"""The structures from which local search begins."""

from __future__ import annotations

from collections.abc import Iterator

from milpbn.errors import InputError
from milpbn.heuristics.paths import repaired
from milpbn.heuristics.spanning import tan_structure
from milpbn.network.cpt import require_match
from milpbn.network.structure import Structure
from milpbn.problem.class_free import among
from milpbn.problem.conflicts import feasible_structure
from milpbn.problem.problem import Problem


def plain_starts(problem: Problem, start: Structure | None = None) -> Iterator[Structure]:
    """Yield the structures that the search begins with: the user's, a feasible one, naive Bayes and TAN.

    The last two need a class. Structures that break a constraint are left out. Each is computed when the iterator
    reaches it, so that the first ones do not wait for TAN, which needs the information of all pairs of features.

    InputError if the user's `start` has other variables, is outside the candidate sets, breaks a constraint, or has too
    many parameters for AICc.
    """
    if start is not None:
        start = checked_start(problem, start)
    found = (problem.adopted(s) for s in _simple(problem, start) if s is not None)
    return (s for s in found if problem.obeys(s))


def _simple(problem: Problem, start: Structure | None) -> Iterator[Structure | None]:
    yield start
    feasible = feasible_structure(problem.candidates, problem.rules)
    yield repaired(problem, feasible) if feasible is not None and problem.rules.on_paths else feasible
    if not problem.data.has_class:
        return
    yield Structure.naive_bayes(problem.candidates.names)
    if problem.score.max_parents > 1:
        yield tan_structure(problem.data)


def checked_start(problem: Problem, start: Structure) -> Structure:
    """Return a user's start, or the structure of candidate sets that scores no less (`Problem.adopted`).

    Errors are those of `plain_starts`.
    """
    require_match(problem.data, start)
    adopted = problem.adopted(start)
    if not problem.obeys(adopted):
        raise InputError(_refusal(problem, adopted))
    return adopted


def _refusal(problem: Problem, start: Structure) -> str:
    """Return a sentence that says why the start is not feasible, and which option would make it feasible."""
    score, names, target = problem.score, start.names, len(start.names) - 1
    places = [problem.candidates.position(i, s) for i, s in enumerate(start.parents)]
    i = next((i for i, place in enumerate(places) if place is None), None)
    if i is None:
        if not problem.rules.keeps_paths(start.parents):
            return (
                "The start breaks a constraint on paths or independences; relax it, or leave the start out."
            )
        most = problem.rules.max_features
        if most is not None and problem.rules.too_many_features(start.parents):
            used = len(start.markov_blanket)
            told = f"In the start, predictions depend on {used} features, more than {most}"
            return f"{told}; raise that, or leave the start out."
        variable = problem.rules.over_limit(start.parents)
        if variable is None:
            return "The start has more parameters than AICc is defined for; choose another start, or none."
        limit = problem.rules.max_children[variable]
        return f"In the start, {names[variable]!r} has more than {limit} children; raise that, or leave the start out."
    parents = start.parents[i]
    shown = ", ".join(names[j] for j in parents) or "(none)"
    if len(parents) > score.max_parents:
        cure = f"raise --max-parents to {len(parents)}"
    elif i == target and parents and not score.class_parents:
        cure = "allow --class-parents"
    elif i != target and parents and target not in parents and among(score, problem.rules):
        cure = "allow --parent-sets all"
    else:
        cure = "relax the constraints"
    return (
        f"In the start, {names[i]!r} has the parents {shown}, which are not one of its candidate sets; {cure}, "
        "or leave the start out."
    )

"""A good first incumbent: simple structures, each climbed from."""

from __future__ import annotations

from collections.abc import Callable

from milpbn.errors import InputError
from milpbn.learners.local_search import RESTARTS, search
from milpbn.learners.tan import tan_structure
from milpbn.network.cpt import require_match
from milpbn.network.structure import Structure
from milpbn.scores.candidates import class_free_alike
from milpbn.scores.conflicts import feasible_structure
from milpbn.scores.problem import Problem


def plain_starts(problem: Problem, start: Structure | None = None) -> list[Structure]:
    """Return the structures that the search begins with: a user's start, some feasible structure, naive Bayes, TAN.

    Parameters
    ----------
    problem : Problem
        What is maximised; its constraints and candidates hold for all of them.
    start : Structure, optional
        A user's own structure, the first of them.

    Raises
    ------
    InputError
        If `start` is over other variables, outside the candidate sets, breaks a rule, or has no AICc.
    """
    if start is not None:
        require_match(problem.data, start)
        if not problem.obeys(start):
            raise InputError(_refusal(problem, start))
    starts = [start, feasible_structure(problem.candidates, problem.rules)]
    starts.append(Structure.naive_bayes(problem.candidates.names))
    if problem.score.max_parents > 1:
        starts.append(tan_structure(problem.data))
    return [s for s in starts if s is not None and problem.obeys(s)]


def _refusal(problem: Problem, start: Structure) -> str:
    """Return why a start cannot be one, and which option would let it."""
    score, names, target = problem.score, start.names, len(start.names) - 1
    alike = class_free_alike(score, problem.rules)
    i = problem.candidates.first_outside(start, class_free_alike=alike)
    if i is None:
        crowded = problem.rules.crowded(start.parents)
        if crowded is None:
            return "The start has more parameters than AICc is defined for; choose another start, or none."
        limit = problem.rules.max_children[crowded]
        return f"In the start {names[crowded]!r} has more than {limit} children; relax that, or leave the start out."
    parents = start.parents[i]
    shown = ", ".join(names[j] for j in parents) or "(none)"
    if len(parents) > score.max_parents:
        cure = f"raise --max-parents to {len(parents)}"
    elif i == target and parents and not score.class_parents:
        cure = "allow --class-parents"
    elif i != target and parents and target not in parents and score.parent_sets == "paper":
        # Unless something tells them apart, a margin score has accepted the set in place of a smaller one.
        cure = "leave penalties and arc weights out" if score.is_margin else "allow --parent-sets all"
    else:
        cure = "relax the constraints"
    return (
        f"In the start {names[i]!r} has the parents {shown}, which are none of its candidate sets; {cure}, "
        "or leave the start out."
    )


def first_incumbent(
    problem: Problem,
    start: Structure | None = None,
    *,
    random_state: int = 0,
    restarts: int = RESTARTS,
    stopping: Callable[[], bool] = lambda: False,
    found: Callable[[Structure], None] = lambda structure: None,
) -> Structure | None:
    """Return a locally optimal structure from a user's start, naive Bayes, TAN and some feasible structure.

    Parameters
    ----------
    problem : Problem
        What is maximised.
    start : Structure, optional
        A user's own structure, tried first.
    random_state : int
        Seed of the search.
    restarts : int
        Perturbations of the best structure.
    stopping : callable
        Asked often; True ends the search, which still returns its best so far.
    found : callable
        Told of every better structure.

    Raises
    ------
    InputError
        If `start` is over other variables, outside the candidate sets, breaks a rule, or has no AICc.
    """
    return search(
        problem,
        plain_starts(problem, start),
        random_state=random_state,
        restarts=restarts,
        stopping=stopping,
        found=found,
    )

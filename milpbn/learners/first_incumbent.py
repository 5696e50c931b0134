"""A good first incumbent: simple structures, each climbed from."""

from __future__ import annotations

from collections.abc import Callable

from milpbn.errors import InputError
from milpbn.learners.local_search import RESTARTS, search
from milpbn.learners.tan import tan_structure
from milpbn.network.structure import Structure
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
        If `start` is outside the candidate sets, breaks a rule, or has no AICc.
    """
    if start is not None and not problem.obeys(start):
        raise InputError(
            "The start is outside the candidate parent sets, breaks a constraint, or has more parameters than AICc "
            "is defined for; raise --max-parents, allow class parents, or leave it out."
        )
    starts = [start, feasible_structure(problem.candidates, problem.rules)]
    starts.append(Structure.naive_bayes(problem.candidates.names))
    if problem.score.max_parents > 1:
        starts.append(tan_structure(problem.data))
    return [s for s in starts if s is not None and problem.obeys(s)]


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
        If `start` is outside the candidate sets, breaks a rule, or has no AICc.
    """
    return search(
        problem,
        plain_starts(problem, start),
        random_state=random_state,
        restarts=restarts,
        stopping=stopping,
        found=found,
    )

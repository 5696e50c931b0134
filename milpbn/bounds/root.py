"""The bound before any branching, and the candidate sets that it leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from milpbn.bounds.frank_wolfe import FrankWolfe
from milpbn.bounds.oracle import StructureOracle
from milpbn.bounds.reduction import deletable, restricted
from milpbn.network.structure import Structure
from milpbn.scores.problem import Problem

#: The steps begin anew on the smaller problem if at least this share of the candidate sets was deleted.
WORTH_REPEATING = 0.1


def root_bound(
    problem: Problem,
    known: Structure | None,
    *,
    stopping: Callable[[], bool],
    bounded: Callable[[float], None],
    found: Callable[[Structure], Structure | None],
    reduce: bool = True,
) -> Problem:
    """Bound the score of every structure, by the dual of the margin rows or by one branching.

    A decomposable score is linear: one question to the oracle bounds it, and answers it where acyclicity was not
    relaxed. The soft margins take Frank-Wolfe steps, and the candidate sets that no better structure than the
    best known one can have are deleted. The hard margin and AICc have no bound here.

    Parameters
    ----------
    problem : Problem
        What is maximised.
    known : Structure or None
        The best structure so far, where the steps start.
    stopping : callable
        Asked after every step.
    bounded : callable
        Told of every smaller bound.
    found : callable
        Told of structures worth scoring; returns the best one that is known then.
    reduce : bool
        Delete candidate sets.

    Returns
    -------
    Problem
        Over the candidate sets that are left: its best structure is that of the whole problem, or `known`.
    """
    if problem.margins is None and problem.curve is None:
        _bound_linear(problem, bounded, found)
    if problem.margins is None or problem.margins.gamma is None or known is None:
        return problem
    best = known

    def obeying(structure: Structure) -> None:
        nonlocal best
        if problem.obeys(structure):
            best = found(structure) or best

    while True:
        steps = FrankWolfe(problem, best)
        steps.run(stopping=stopping, bounded=bounded, found=obeying)
        choice = problem.choice(best)
        if not reduce or choice is None:
            return problem
        incumbent = problem.value(problem.indicator(choice))
        keep = ~deletable(steps.oracle, steps.best_gradient, steps.best_constant, incumbent)
        keep[choice] = True
        if keep.all():
            return problem
        problem = restricted(problem, keep)
        if stopping() or np.mean(keep) > 1 - WORTH_REPEATING:
            return problem


def _bound_linear(
    problem: Problem, bounded: Callable[[float], None], found: Callable[[Structure], Structure | None]
) -> None:
    answer = StructureOracle(problem.candidates)(problem.linear)
    bounded(answer.bound)
    if answer.acyclic:
        structure = problem.candidates.structure(answer.choice)
        if problem.obeys(structure):
            found(structure)

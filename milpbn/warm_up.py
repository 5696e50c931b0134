"""Compiled kernels, loaded before anything is timed.

The first run on a machine compiles them, which takes longer than the share of the time limit that the heuristics
and the root bound have.
"""

from __future__ import annotations

from dataclasses import replace

from milpbn.bounds.root import root_bound
from milpbn.learners.local_search import LocalSearch
from milpbn.network.structure import Structure
from milpbn.scores.conflicts import feasible_structure
from milpbn.scores.problem import Problem


def warm_up(problem: Problem, *, bounds: bool) -> None:
    """Run the kernels once on the first two samples of a problem.

    Parameters
    ----------
    problem : Problem
        Of the score that will be maximised.
    bounds : bool
        The root bound will be computed, too.
    """
    margins = problem.margins
    start = feasible_structure(problem.candidates, problem.rules)
    if margins is None or start is None:
        return
    small = replace(problem, margins=replace(margins, alpha=margins.alpha[:2], weights=margins.weights[:2]))
    LocalSearch(small, start).scores(0)
    if not bounds:
        return
    steps = 0

    def stopping() -> bool:
        nonlocal steps
        steps += 1
        return steps > 3

    def ignore(structure: Structure) -> None:
        return None

    root_bound(small, start, stopping=stopping, bounded=lambda value: None, found=ignore)

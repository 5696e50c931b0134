"""Compiled kernels, loaded before anything is timed.

The first run on a machine compiles them, which takes longer than the share of the time limit that the heuristics
and the root bound have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from milpbn.bounds.root import Root
from milpbn.bounds.tree import Tree
from milpbn.learners.local_search import LocalSearch
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
    few = replace(margins, tables=margins.tables.first_samples(2), weights=margins.weights[:2])
    small = replace(problem, margins=few)
    for parallel in (False, True):
        LocalSearch(small, start, parallel=parallel).scores(0)
    if not bounds or margins.smallest:
        return
    Tree(
        Root(small, start), start, found=lambda s: None, bounded=lambda b: None, counted=lambda n: None,
        stopping=_after(20),
    ).run()
    root = Root(small, start)
    root.parallel = True
    root.run(start, stopping=_after(2), bounded=lambda b: None, found=lambda s: None)


def _after(count: int) -> Callable[[], bool]:
    """Return a question that is answered with yes from some time on."""
    asked = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        return asked > count

    return stopping

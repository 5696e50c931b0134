"""Compiled kernels, loaded before the heuristics and the root bound are timed.

The first run on a machine compiles them, which takes longer than the share of the time limit that the heuristics
and the root bound have. The steps that only branching takes (`take_compiled_steps`) are compiled when it begins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from milpbn.bounds.root import Root
from milpbn.data.dataset import Dataset, Variable
from milpbn.learners.local_search import LocalSearch
from milpbn.network.structure import Structure
from milpbn.scores.problem import Problem, build_problem


def warm_up(problem: Problem, *, bounds: bool) -> None:
    """Run the kernels once on a tiny problem of the same score.

    Parameters
    ----------
    problem : Problem
        Of the score that will be maximised.
    bounds : bool
        The project's own bounds will be computed, too.
    """
    if problem.margins is None:
        return
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 2, (12, 3)), np.arange(12) % 3]).astype(np.int32)
    variables = [Variable(f"x{i}", ("0", "1")) for i in range(3)] + [Variable("c", ("0", "1", "2"))]
    data = Dataset("tiny", tuple(variables), codes, np.ones(12))
    small = build_problem(data, replace(problem.score, penalty=0.0, hybrid=0.0), for_milp=False)
    start = Structure.naive_bayes(data.names)
    search = LocalSearch(small, start)
    search.climb(rng)
    if not bounds or small.margins is None or small.margins.smallest:
        return
    Root(small, start).run(start, stopping=_after(2), bounded=_ignore, found=_ignore)


def _ignore(anything: object) -> None:
    """Take no note."""


def _after(count: int) -> Callable[[], bool]:
    """Return a question that is answered with yes from some time on."""
    asked = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        return asked > count

    return stopping

"""The problem restricted to some of its candidate sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.problem.candidates import Candidates
from milpbn.problem.problem import Problem


def restricted(problem: Problem, keep: NDArray[np.bool_]) -> Problem:
    """Return the problem restricted to some of its candidate sets; the tables of the coefficients are shared.

    `keep`, bool array, shape (P,), has at least one parent set per variable.
    """
    old = problem.candidates
    sets = tuple(
        tuple(s for s, kept in zip(old.sets[i], keep[a:b], strict=True) if kept)
        for i, (a, b) in enumerate(pairwise(old.offsets))
    )
    margins = problem.margins
    if margins is not None:
        margins = replace(margins, tables=margins.tables.keep(keep))
    curve = problem.curve
    if curve is not None:
        curve = replace(curve, parameters=curve.parameters[keep])
    return replace(
        problem,
        candidates=Candidates(old.names, sets),
        linear=problem.linear[keep],
        linear_error=problem.linear_error[keep],
        margins=margins,
        curve=curve,
    )

"""Problems over fewer candidate sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.scores.candidates import Candidates
from milpbn.scores.generative import AiccCurve
from milpbn.scores.problem import Problem

#: A parent set goes if its bound is below the incumbent by this share, so that rounding deletes nothing.
MARGIN = 1e-9


def deletion_threshold(incumbent: float) -> float:
    """Return the bound below which no better structure than the incumbent is lost."""
    return incumbent - MARGIN * max(1.0, abs(incumbent))


def restricted(problem: Problem, keep: NDArray[np.bool_]) -> Problem:
    """Return the problem over some of its candidate sets; the tables of the coefficients are shared.

    Parameters
    ----------
    problem : Problem
        The whole problem.
    keep : bool array, shape (P,)
        Entries of eta to keep, at least one per variable.
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
        curve = AiccCurve(curve.parameters[keep], curve.total_weight)
    return replace(
        problem,
        candidates=Candidates(old.names, sets),
        linear=problem.linear[keep],
        margins=margins,
        curve=curve,
    )

"""Reduced-cost deletion: parent sets that no better structure than the incumbent can use."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.oracle import StructureOracle
from milpbn.scores.candidates import Candidates
from milpbn.scores.generative import AiccCurve
from milpbn.scores.problem import Problem

#: A parent set goes if its bound is below the incumbent by this share, so that rounding deletes nothing.
MARGIN = 1e-9


def deletable(
    oracle: StructureOracle, gradient: NDArray[np.float64], constant: float, incumbent: float
) -> NDArray[np.bool_]:
    """Return which entries of eta no structure better than the incumbent has.

    Parameters
    ----------
    oracle : StructureOracle
        Over the candidates.
    gradient : float64 array, shape (P,)
        Weights g of the dual bound ``constant + max g @ eta``.
    constant : float
        Its constant part, rounding included.
    incumbent : float
        Score z of a known structure.

    Returns
    -------
    bool array, shape (P,)
        True where the bound with the entry forced in lies below z.
    """
    threshold = incumbent - MARGIN * max(1.0, abs(incumbent)) - constant
    return oracle.heaviest_with(gradient, threshold) < threshold


def restricted(problem: Problem, keep: NDArray[np.bool_]) -> Problem:
    """Return the problem over some of its candidate sets; its coefficients are copied.

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
        columns = keep[margins.columns]
        place = np.cumsum(keep) - 1
        margins = replace(
            margins,
            alpha=np.ascontiguousarray(margins.alpha[:, :, columns]),
            columns=place[margins.columns[columns]],
        )
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

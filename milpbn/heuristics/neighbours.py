"""The neighbours of a structure, which give some variable another parent set: near the best are the next best."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from milpbn.heuristics.local_search import LocalSearch
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem


def best_neighbours(
    problem: Problem,
    structure: Structure,
    cutoff: Callable[[], float],
    most: int,
    stopping: Callable[[], bool],
    *,
    parallel: bool,
) -> Iterator[tuple[NDArray[np.int64], float]]:
    """Yield the neighbours that score more than a cutoff, with their scores; at most `most` of every variable.

    The scores are changes to that of the structure, so that they have a little more rounding than others.

    Parameters
    ----------
    problem : Problem
        A problem with margins, or with linear scores.
    structure : Structure
        It must obey the problem's rules; so do the neighbours.
    cutoff : callable
        Returns the score that a neighbour must exceed; it may rise meanwhile.
    most : int
        The best neighbours of every variable are yielded, at most this many.
    stopping : callable
        Asked before each variable whether to stop.
    parallel : bool
        Whether large products may use threads.

    Yields
    ------
    choice : int64 array, shape (V,)
        Indices of the neighbour's parent sets.
    value : float
        Its score in nats, computed from the coefficients; finite.
    """
    search = LocalSearch(problem, structure, parallel=parallel)
    slopes, value = search.supergradient(), search.value
    offsets = problem.candidates.offsets
    for i in range(problem.candidates.n_variables):
        if stopping():
            return
        wanted = search.admissible(i)
        now = search.choice[i] - offsets[i]
        wanted[now] = False
        if slopes is not None:
            # No neighbour scores more than its supergradient says.
            own = slopes[offsets[i] : offsets[i + 1]]
            wanted &= value + own - own[now] > cutoff()
        if not wanted.any():
            continue
        values = np.where(wanted, search.scores(i, wanted), -np.inf)
        for k in np.argsort(-values, kind="stable")[:most]:
            if not values[k] > cutoff():
                break
            choice = search.choice.copy()
            choice[i] = offsets[i] + k
            yield choice, float(values[k])

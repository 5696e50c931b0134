"""Ranks the candidate parent sets of every variable, block by block, and keeps the best.

The tables of all parent sets are never in memory together. Under margin scores a parent set is ranked by its linear
gain: the derivative of the softened score with respect to its indicator, at a point over the small parent sets. At the
point of the best bound over the small sets, this is the number by which column generation would choose a column.
Under a decomposable score, a parent set is ranked by its own term of the score.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.problem.candidates import Admitted, Candidates, ParentSet
from milpbn.problem.duals import Duals, add_gradient, empty_duals, weigh
from milpbn.problem.family_tables import Tables, family_tables
from milpbn.problem.problem import Problem, linear_terms, parameter_counts
from milpbn.problem.products import Softening
from milpbn.problem.screening import in_order
from milpbn.util import stages

#: Samples times domains whose tables are built together: a fraction of a second.
BLOCK_WORK = 1_000_000
#: Temperature of the softened score at a structure, as a share of gamma; the point of a bound comes with one.
TEMPERATURE = 0.1
#: The criteria, in the words of ``result.json``.
LINEAR_GAIN, LOCAL_SCORE = "linear gain", "local score"

Family = tuple[int, ParentSet]


def criterion(problem: Problem) -> str:
    """Return how the parent sets of a problem are ranked, `LINEAR_GAIN` or `LOCAL_SCORE`."""
    return LOCAL_SCORE if problem.margins is None else LINEAR_GAIN


class Ranking:
    """The gains of parent sets at a point.

    `problem` is over the small parent sets, and `eta`, shape (P,), is a point over them: a structure, or a convex
    combination of structures. The score is softened at `temperature` in nats, by default one that suits a structure.
    """

    def __init__(self, problem: Problem, eta: NDArray[np.float64], temperature: float | None = None) -> None:
        self.problem = problem
        self._duals: Duals | None = None
        margins = problem.margins
        if margins is None:
            return
        softening = margins.softening
        if margins.smallest:  # the hard margin depends on one sample only: the likelihood takes its place
            softening = Softening(0.0, True)
        if temperature is None:
            temperature = 1.0 if softening.smooth else TEMPERATURE * softening.cap
        self._duals = empty_duals(margins.tables)
        weigh(margins.tables, softening, margins.logits(eta), temperature, self._duals)

    def gains(self, candidates: Candidates) -> NDArray[np.float64]:
        """Return the gains of some parent sets, in nats, float64 array, shape (P,); comparable within a variable."""
        problem, score = self.problem, self.problem.score
        gains, _ = linear_terms(problem.data, score, candidates, problem.rules, None)
        if score.kind.curve is not None:  # AICc: the slope of its correction is at least 1 nat per parameter
            gains -= parameter_counts(problem.data, candidates)
        if self._duals is not None:
            self._add(family_tables(problem.data, candidates, score), gains)
        return gains

    def small_gains(self) -> NDArray[np.float64]:
        """Return the gains of the problem's own parent sets; its tables are not built again."""
        problem = self.problem
        gains = problem.linear.copy()
        if problem.curve is not None:
            gains -= problem.curve.parameters
        if problem.margins is not None:
            self._add(problem.margins.tables, gains)
        return gains

    def _add(self, tables: Tables, gains: NDArray[np.float64]) -> None:
        assert self._duals is not None
        add_gradient(tables, self._duals, np.ones(len(gains), dtype=bool), gains, False)


def best_sets(
    ranking: Ranking, admitted: Sequence[Admitted], k: int, stopping: Callable[[], bool]
) -> tuple[Candidates, int]:
    """Return the small parent sets and the best others, at most k per variable, and the number that was ranked.

    Features that gain most in the small sets come first. If the time ends early, all sets over the first features have
    been ranked, and the sets with other features are not kept.

    `ranking` is over a problem whose candidates are the small sets (`milpbn.problem.screening.small_sets`), and
    `admitted` has what rules and options admit for each of the V variables. Once `stopping`, asked before every block,
    returns True, the rest is not ranked.
    """
    problem = ranking.problem
    small = problem.candidates
    c = small.n_variables - 1
    room = [k - len(sets) for sets in small.sets]
    best: list[list[tuple[float, int, ParentSet]]] = [[] for _ in small.sets]
    ranked = 0
    total = sum(own.count(c) for own, left in zip(admitted, room, strict=True) if left > 0)
    for block in _blocks(problem, _important_first(ranking), admitted, room):
        stages.tell(f"screening candidate parent sets {ranked} of {total}")
        if stopping():
            break
        candidates = _candidates_of(small.names, block)
        gains = ranking.gains(candidates)
        for i, s, gain in zip(candidates.variable.tolist(), candidates.flat, gains.tolist(), strict=True):
            entry = (gain, -ranked, s)  # of equal gains the first one is kept
            ranked += 1
            if len(best[i]) < room[i]:
                heapq.heappush(best[i], entry)
            elif entry > best[i][0]:
                heapq.heapreplace(best[i], entry)
    sets = tuple(
        in_order([*kept, *(s for _, _, s in others)], c)
        for kept, others in zip(small.sets, best, strict=True)
    )
    return Candidates(small.names, sets), ranked


def _important_first(ranking: Ranking) -> list[int]:
    """Return the features, those first whose small families gain most over the same variable without features."""
    small = ranking.problem.candidates
    c = small.n_variables - 1
    gains = ranking.small_gains()
    largest = np.full(c, -np.inf)
    for i, (a, b) in enumerate(pairwise(small.offsets.tolist())):
        own = list(zip(small.flat[a:b], gains[a:b].tolist(), strict=True))
        base = max((gain for s, gain in own if not {*s} - {c}), default=0.0)
        for s, gain in own:
            for j in {i, *s} - {c} if {*s} - {c} else ():
                largest[j] = max(largest[j], gain - base)
    return [int(j) for j in np.argsort(-largest, kind="stable")]


def _blocks(
    problem: Problem, features: Sequence[int], admitted: Sequence[Admitted], room: Sequence[int]
) -> Iterator[list[Family]]:
    """Yield the families to rank, domain by domain; a block is a fraction of a second's work."""
    per_block = max(1, BLOCK_WORK // max(1, problem.data.n_samples))
    block: list[Family] = []
    domains = 0
    for families in _domains(problem, features, admitted, room):
        block += families
        domains += 1
        if domains == per_block:
            yield block
            block, domains = [], 0
    if block:
        yield block


def _domains(
    problem: Problem, features: Sequence[int], admitted: Sequence[Admitted], room: Sequence[int]
) -> Iterator[list[Family]]:
    """Yield the families over each set of features: all sets over the first features come before the others.

    Families that are small sets already, that belong to a variable without room, or whose tables would be too large for
    a classifier are left out.
    """
    small, n_states = problem.candidates, problem.data.n_states.tolist()
    c = small.n_variables - 1
    wanted = [left > 0 for left in room]
    most = [max(0, len(a.required) + max(a.without_class, a.with_class)) for a in admitted]
    largest = max((m + (i < c) for i, m in enumerate(most) if wanted[i]), default=0)
    for place, last in enumerate(features):
        for size in range(min(largest, place + 1)):
            for rest in combinations(features[:place], size):
                domain = tuple(sorted((*rest, last)))
                if prod(n_states[j] for j in domain) * n_states[c] > MAX_TABLE_ENTRIES:
                    continue
                families: list[Family] = [(c, domain)] if wanted[c] else []
                for i in domain:
                    if wanted[i]:
                        parents = tuple(j for j in domain if j != i)
                        families += [(i, parents), (i, (*parents, c))]
                families = [
                    (i, s) for i, s in families if small.position(i, s) is None and admitted[i].contains(s, c)
                ]
                if families:
                    yield families


def _candidates_of(names: Sequence[str], families: Sequence[Family]) -> Candidates:
    """Return families as candidates, by variable."""
    sets: list[list[ParentSet]] = [[] for _ in names]
    for i, s in families:
        sets[i].append(s)
    return Candidates(tuple(names), tuple(map(tuple, sets)))

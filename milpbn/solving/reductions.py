"""Smaller problems that are searched in place of the one that is asked, and what their results claim of it.

`apply` makes the problem and the steps that enlarge it; `invert` turns its result back. Some reductions lose
nothing, and need no way back: identical samples are merged (`Dataset.merged`), class-free parent sets are left out
(`milpbn.problem.class_free`), parent sets are fixed to 0 (`milpbn.engine.reduction`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.about import ONLY_SMALL
from milpbn.claims.parts import ScreenedClaim, SubsetClaim
from milpbn.claims.reasons import Reason
from milpbn.claims.result import Result
from milpbn.data import Dataset
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Admitted, list_candidates
from milpbn.problem.class_free import adapted
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.forecast import SCREENED, ParentSets, require_kept_room
from milpbn.problem.local import LocalDataset, obeying
from milpbn.problem.margins import margin_rows
from milpbn.problem.problem import Problem, build_problem, checked_constraints, require_usable
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screen, sets_up_to, small_sets
from milpbn.problem.subset import Subset
from milpbn.problem.undominated import can_leave_out
from milpbn.problem.unused import forbid_unused, without_forbidden_unused
from milpbn.solving.checkpoint import SavedSearch
from milpbn.solving.enlarging import BestSets, Enlargement, LargerSets
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.util.budget import Budget, Limit
from milpbn.util.plurals import counted

#: Samples times parent sets up to which the tables of all parent sets are built at once: they take a second or so, and
#: with a time limit much less. Above, a search over small parent sets comes first.
SMALL_TABLES, SMALL_TABLES_WITHIN_LIMIT = 30_000_000, 2_000_000
#: Where dominated parent sets are left out: samples times parent sets that are scored in a second; the share of the
#: time left up to which all sets are scored at once; and above it, the share for a first search over small sets.
SCORED, SCORING_SHARE, FIRST_SHARE = 1e9, 0.3, 0.03
#: How many times as many parent sets the next of several searches is over, at least.
GROWTH = 4
#: Samples for which a table takes as long as a parent set's local term, which takes some hundred microseconds.
LOCAL_SCORE = 2_000


@dataclass(frozen=True)
class Statement:
    """The problem that is asked, before its parent sets are listed and its coefficients computed.

    Its fields are those of `build_problem`, and the user's start. Dominated parent sets are kept (`dominated`) for a
    list of the K best, and for a certificate, which numbers all sets.
    """

    dataset: Dataset
    score: Score
    constraints: Constraints
    merge: bool = True
    for_milp: bool = False
    start: Structure | None = None
    budget: Budget = field(default_factory=Budget)
    dominated: bool = False

    @classmethod
    def of(
        cls, dataset: Dataset, question: Question, options: Options, *, for_milp: bool, budget: Budget
    ) -> Statement:
        """Return the problem with all structures that the question is about, which is asked of these training rows.

        If the K best are listed, these are all class-free sets, and no arcs of features with one state.
        """
        start, listed = options.start, options.most_listed > 1
        constraints = checked_constraints(question.constraints)
        score, asked = adapted(dataset, question.score, constraints, listed=listed)
        if listed:
            asked = forbid_unused(dataset, asked) or asked
            start = None if start is None else without_forbidden_unused(dataset, asked, start)
        dominated = listed or options.certificate is not None
        return cls(dataset, score, asked, options.merge, for_milp, start, budget, dominated)

    @property
    def samples(self) -> Dataset:
        """The rows that the coefficients are built from, identical ones merged unless that was switched off."""
        return self.dataset.merged if self.merge else self.dataset

    @cached_property
    def resolved(self) -> tuple[Rules, list[Admitted]]:
        """The rules, and the parent sets that these and the options admit."""
        return resolve(self.constraints, self.samples.names, self.score)

    @property
    def without_dominated(self) -> bool:
        """Whether parent sets that no best structure needs are left out while they are scored."""
        return not self.dominated and can_leave_out(self.samples, self.score, self.constraints)

    def up_to(self, size: int) -> ParentSets:
        """Return the parent sets of at most so many members, and those of the start."""
        names, (_, admitted) = self.samples.names, self.resolved
        if self.without_dominated:  # subsets of the start's sets score no less
            return [own.up_to(size) for own in admitted]
        return sets_up_to(names, admitted, [size] * len(names), self.start)

    def everything(self) -> ParentSets:
        """Return all admitted parent sets."""
        admitted = self.resolved[1]
        return (
            admitted if self.without_dominated else list_candidates(self.samples.names, admitted, self.budget)
        )

    def build(self, sets: ParentSets, weights: NDArray[np.float64] | None = None) -> Problem:
        """Return the problem over these parent sets, with these weights of the samples' margins."""
        return build_problem(
            self.dataset,
            self.score,
            self.constraints,
            merge=self.merge,
            for_milp=self.for_milp,
            budget=self.budget,
            subset=weights,
            listed=(self.resolved[0], sets),
            dominated=self.dominated,
        )


class Reduced(NamedTuple):
    """A problem to begin with, and the steps that enlarge it to the one that the result is about."""

    problem: Problem
    steps: tuple[Enlargement, ...] = ()


class SmallSetsFirst:
    """All parent sets in the end. Where their tables take long, smaller ones come first.

    If the time limit comes before the last problem is built, the bound is `loose_bound`, which needs no coefficients.
    With a `subset` of the samples, the margins are summed over it only; score and bound are those of this sum. A
    short search of the problem over all samples (`on_all_samples`) then gives a bound on the score over all.
    """

    def __init__(self, subset: Subset | None = None) -> None:
        self._subset = subset

    def apply(self, stated: Statement, earlier: SavedSearch | None = None) -> Reduced:
        """Return the problem over all parent sets, or over the small ones with steps to larger ones.

        An earlier run goes on with its own problem. Raise InputError if no problem can be built, and NoIncumbentError
        if the budget is used up.
        """
        samples, (rules, admitted) = stated.samples, stated.resolved
        fewer = stated.without_dominated
        # The whole problem is checked before a search over a part of it begins.
        require_usable(samples, stated.score, admitted, rules, for_milp=stated.for_milp, listed=not fewer)
        weights = None if earlier is None else earlier.sample_weights
        if weights is None and self._subset is not None:
            weights = self._subset.weights(samples, stated.score)
        total = sum(own.count(samples.n_features) for own in admitted)
        work, at_once, first = _pace(stated)
        goes_on = earlier is not None and earlier.tree is not None
        sizes: list[int] = []
        if total * work > at_once and not goes_on:
            sizes = small_sizes(admitted, int(first / work))
        if not sizes:
            return Reduced(stated.build(stated.everything(), weights))
        began = time.monotonic()
        problem = stated.build(stated.up_to(sizes[0]), weights)
        seconds = (time.monotonic() - began) / problem.n_asked

        def larger(size: int | None) -> LargerSets:
            """Return the step to the sets of at most `size` members; to all for None."""
            n_sets = total if size is None else _count(admitted, size)

            def make() -> Problem:
                return stated.build(stated.everything() if size is None else stated.up_to(size), weights)

            return LargerSets(make, seconds * n_sets, n_sets)

        return Reduced(problem, tuple(map(larger, [*sizes[1:], None])))

    @staticmethod
    def on_all_samples(problem: Problem, budget: Budget) -> Problem:
        """Return the problem over a subset with the margins of all samples; NoIncumbentError without time for that."""
        margins = margin_rows(problem.data, problem.candidates, problem.score, budget)
        return replace(problem, margins=margins, sample_weights=None)

    @staticmethod
    def invert(problem: Problem, result: Result, bound: float | None = None) -> Result:
        """Move the numbers over the subset to `Result.subset`; score the structure on all samples.

        The `bound` is one on the score over all samples.
        """
        weights = problem.subset_weights
        assert weights is not None
        subset = SubsetClaim(
            samples=int(np.count_nonzero(weights)),
            objective=result.objective,
            bound=result.bound,
            optimal=result.optimal,
        )
        objective = None
        if result.structure is not None:
            objective = rescore(problem.data, result.structure, problem.score, problem.rules)
            bound = None if bound is None else max(bound, objective)
        return replace(_unproved(result), objective=objective, bound=bound, subset=subset)


class BestParentSets:
    """The k best parent sets of every variable only; the bound holds for structures of these."""

    def __init__(self, screen: Screen) -> None:
        self._k = screen.k

    def accepts(self, stated: Statement) -> bool:
        """Return whether some variable has more than k parent sets; otherwise nothing is left out."""
        return max(own.count(stated.samples.n_features) for own in stated.resolved[1]) > self._k

    def apply(self, stated: Statement, earlier: SavedSearch | None = None) -> Reduced:
        """Return the problem over the small sets with the step to the best ones, or that over the sets of a run."""
        data, (rules, admitted), k = stated.samples, stated.resolved, self._k
        small = small_sets(data.names, admitted, k, stated.start)
        counts = [own.count(data.n_features) for own in admitted]
        kept = [max(len(sets), min(k, n)) for sets, n in zip(small.sets, counts, strict=True)]
        require_kept_room(data, stated.score, sum(kept), for_milp=stated.for_milp)
        require_usable(data, stated.score, small, rules, for_milp=stated.for_milp)
        problem = stated.build(small)
        step = BestSets(k, tuple(admitted), stated.for_milp)
        if earlier is None or earlier.tree is None:
            return Reduced(problem, (step,))
        # A checkpoint has no kept sets where the small ones are all.
        return Reduced(step.built(problem, earlier.candidates or small, earlier.ranked, stated.budget))

    @staticmethod
    def invert(problem: Problem, result: Result) -> Result:
        """Move bound and proof to `Result.screened`; the score is that of the structure among all."""
        candidates = problem.candidates
        claim = ScreenedClaim(
            **vars(problem.screened),
            kept={name: len(sets) for name, sets in zip(candidates.names, candidates.sets, strict=True)},
            objective=result.objective,
            bound=result.bound,
            optimal=result.optimal,
        )
        return replace(_unproved(result), screened=claim)


class GivenParentSets:
    """The parent sets that local scores list; the whole problem is there at once."""

    @staticmethod
    def apply(stated: Statement, earlier: SavedSearch | None = None) -> Reduced:
        """Return the problem over those that obey the constraints; errors are those of `obeying`."""
        assert isinstance(stated.dataset, LocalDataset)
        return Reduced(stated.build(obeying(stated.dataset.local, stated.resolved[0])))


def reduction(
    stated: Statement, scope: Subset | Screen | None
) -> SmallSetsFirst | BestParentSets | GivenParentSets:
    """Return how the scope of a question is searched."""
    if isinstance(stated.dataset, LocalDataset):
        return GivenParentSets()
    if isinstance(scope, Screen) and (best := BestParentSets(scope)).accepts(stated):
        return best
    return SmallSetsFirst(scope if isinstance(scope, Subset) else None)


def of_whole_problem(problem: Problem, result: Result, bound: float | None = None) -> Result:
    """Return a result that claims nothing about all data and all parent sets that holds for some of them only.

    The `bound` is one over all samples if the problem is over a subset of them.
    """
    if problem.screened is not None:
        return BestParentSets.invert(problem, result)
    return result if problem.subset_weights is None else SmallSetsFirst.invert(problem, result, bound)


def only_small(steps: Sequence[Enlargement], problem: Problem, limit: Limit | None) -> list[str]:
    """Return the note on a limit that came before the problem over all parent sets was built, if one did."""
    last = steps[-1] if steps else None
    if not isinstance(last, LargerSets) or problem.n_asked == last.n_sets or limit is None:
        return []
    size = counted(max(map(len, problem.candidates.flat)), "parent")
    return [
        f"{ONLY_SMALL} {size} were searched when the limit came, of {last.n_sets} candidate parent sets; "
        f"allow more time, reduce --max-parents, or keep the best sets of every variable with --screen {SCREENED}."
    ]


def small_sizes(admitted: Sequence[Admitted], most: int) -> list[int]:
    """Return the sizes up to which parent sets are searched before all of them, ascending; none if all are small.

    The first is the largest size with at most `most` sets, but at least 1. Each has `GROWTH` times as many sets as the
    one before, at least, and that share of all sets at most.
    """
    largest = max(own.largest_size for own in admitted)
    counts = {size: _count(admitted, size) for size in range(1, largest + 1)}
    first = max([size for size in counts if counts[size] <= most], default=1)
    sizes = [first] if first < largest else []
    for size in range(first + 1, largest):
        if counts[size] >= GROWTH * counts[sizes[-1]] and counts[largest] >= GROWTH * counts[size]:
            sizes.append(size)
    return sizes


def _pace(stated: Statement) -> tuple[float, float, float]:
    """Return the work for one parent set, the most for all sets at once, and the most for the first, small sets.

    Work is in seconds where dominated sets are left out, else in samples times parent sets.
    """
    left, n_samples = stated.budget.left(), stated.samples.n_samples
    if stated.without_dominated:
        return n_samples / SCORED, SCORING_SHARE * left, FIRST_SHARE * left
    own = max(LOCAL_SCORE if stated.score.kind.has_local_terms else 1, n_samples)
    return own, SMALL_TABLES if stated.budget.deadline is None else SMALL_TABLES_WITHIN_LIMIT, SMALL_TABLES


def _count(admitted: Sequence[Admitted], size: int) -> int:
    return sum(own.count(size) for own in admitted)


def _unproved(result: Result) -> Result:
    """Return a result without what it proves of all structures."""
    reason = Reason.FEASIBLE if result.optimal else result.reason
    return replace(result, reason=reason, bound=None, proved=None)

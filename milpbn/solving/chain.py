"""Trials of a selection that belong together: searches, and what they find on other rows; any process may make them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.data import Dataset
from milpbn.data.discretisation import Discretisation
from milpbn.data.folds import Split
from milpbn.network.classifier import Classifier
from milpbn.network.parameters.conditional import Stopped
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.refit import fitted_path
from milpbn.network.structure import Structure
from milpbn.problem.problem import checked_constraints, usable_sets
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screen
from milpbn.solving.engines.base import Engine
from milpbn.solving.grid import Setting
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.reductions import BestParentSets, Reduced, Statement
from milpbn.solving.run import objection_to_arcs, run
from milpbn.solving.tally import Tally
from milpbn.trials.parts import datasets_of
from milpbn.util import interrupts
from milpbn.util.budget import Budget

#: Share of a trial's seconds for its search, if parameters are fitted after it.
SEARCH_SHARE = 0.5


@dataclass(frozen=True)
class Chain:
    """Settings that differ in p only, on one split: they share coefficients, and each starts from the structure before.

    Split and members are positions.
    """

    split: int
    members: tuple[int, ...]
    #: Of all scores that are compared on the split the one with the most parents: if its problem is too large, it is
    #: refused before the first trial.
    largest: Score
    #: Whether one of these scores is maximised as a MILP.
    for_milp: bool
    #: On a worker, seconds of each trial, and those that building the problem may take; None without a limit.
    seconds: float = 0.0
    left: float | None = None

    def __str__(self) -> str:
        return f"the trials of settings {self.members[0] + 1} to {self.members[-1] + 1} on split {self.split + 1}"


class Chains:
    """What all trials of a selection have in common; pickled once for every process.

    The options are those of every trial, whose classifier has generative parameters; others are compared after it.
    """

    def __init__(
        self,
        question: Question,
        options: Options,
        settings: Sequence[Setting],
        splits: Sequence[Split],
        engines: Sequence[tuple[Engine, str]],
        *,
        by: str,
    ) -> None:
        self._question, self._options = question, options
        self._settings, self._splits, self._engines, self._by = settings, splits, engines, by
        self._screen = question.scope if isinstance(question.scope, Screen) else None
        #: The rows of the last chain, and what they depend on.
        self._rows: tuple[object, tuple[Dataset, Dataset]] | None = None
        #: `time.monotonic` value at which the current trial has to end.
        self._trial_end = 0.0

    def compute(self, chain: Chain) -> list[tuple[int, Tally]]:
        """Return what `tried` yields, on a worker."""
        return list(self.tried(chain, Budget(chain.left), lambda: chain.seconds))

    def tried(
        self, chain: Chain, budget: Budget, seconds: Callable[[], float]
    ) -> Iterator[tuple[int, Tally]]:
        """Yield each setting with what its trial found, until the user stops it, which raises KeyboardInterrupt.

        The budget is for building the problem; if it is over, NoIncumbentError is raised. `seconds` is called before
        each trial, and returns those that it may take.
        """
        first = self._settings[chain.members[0]]
        train, held_out = self._datasets(chain.split, first.discretisation, first.missing)
        if self._screen is None:
            usable_sets(train.merged, chain.largest, self._question.constraints, for_milp=chain.for_milp)
        reduced = self._problem(chain.members[0], train, budget)
        start: Structure | None = None
        for k in chain.members:
            result, stopped = self._search(k, reduced, train, start, seconds())
            starved = start is not None and result.limit is Limit.TIME and result.structure == start
            start = result.structure
            tally = Tally(self._settings[k], by=self._by)
            with suppress(Stopped):  # the parameters that were tried in time are compared
                tally.add(result, held_out, starved, self._fitted(k, result, train, held_out))
            yield k, tally
            if stopped or result.limit is Limit.USER:
                raise KeyboardInterrupt

    def _datasets(
        self, split: int, discretisation: Discretisation | None, missing: str | None
    ) -> tuple[Dataset, Dataset]:
        """Return training and held-out rows; kept for the next chain with the same ones."""
        key = split, discretisation, missing
        if self._rows is None or self._rows[0] != key:
            rows = datasets_of(self._question.data, self._splits[split], discretisation, missing)
            self._rows = key, rows
        return self._rows[1]

    def _problem(self, k: int, train: Dataset, budget: Budget) -> Reduced:
        """Return the problem of a setting on training rows; that over the small parent sets if some are screened."""
        score, merge = self._settings[k].score, self._options.merge
        for_milp = self._engines[k][0].capabilities.milp
        constraints = checked_constraints(self._question.constraints)
        stated = Statement(train, score, constraints, merge, for_milp, budget=budget)
        if self._screen is not None and (best := BestParentSets(self._screen)).accepts(stated):
            return best.apply(stated)
        return Reduced(stated.build(stated.everything()))

    def _search(
        self, k: int, reduced: Reduced, train: Dataset, start: Structure | None, seconds: float
    ) -> tuple[Result, bool]:
        """Search for the best structure of a setting on training rows; return also whether a signal has come."""
        problem, steps = reduced
        now, setting = time.monotonic(), self._settings[k]
        self._trial_end = now + seconds
        if steps and start is not None and problem.choice(problem.adopted(start)) is None:
            start = None  # parent sets of the trial before are kept only if they are small
        share = 1.0 if setting.parameters == "ml" else SEARCH_SHARE
        options = replace(self._options, time_limit=seconds * share, start=start)
        own = problem if setting.p is None else problem.with_p(setting.p)
        job = Job(own, train, options, *self._engines[k], Budget(options.time_limit, began=now), tuple(steps))
        with interrupts.deferred():
            result = run(job)
            # A signal that comes after the search, while its classifier is made, is forgotten at the end of the block.
            return result, interrupts.requested()

    def _fitted(
        self, k: int, result: Result, train: Dataset, held_out: Dataset
    ) -> Iterator[tuple[ParameterMethod, Classifier]]:
        """Return classifiers with all parameters that a setting compares, for the structure of its trial."""
        if not isinstance(result.classifier, Classifier):
            return iter(())
        asked = self._options.interrupted or (lambda: False)
        return fitted_path(
            result.classifier,
            train,
            self._settings[k].parameters,
            objection=objection_to_arcs(result.score, result.constraints),
            stopping=lambda: asked() or time.monotonic() >= self._trial_end,
            joint=bool((held_out.X < 0).any()),
        )

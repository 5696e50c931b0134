"""The trials of a selection: which settings each split compares, their searches, and what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

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
from milpbn.problem.problem import Problem, checked_constraints, usable_sets
from milpbn.problem.screening import Screen
from milpbn.solving.api import maximise
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.enlarging import Enlargement
from milpbn.solving.grid import Grid, Setting
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.solving.progress import wants_progress
from milpbn.solving.question import Question
from milpbn.solving.reductions import BestParentSets, Reduced, Statement
from milpbn.solving.run import objection_to_arcs, run
from milpbn.solving.tally import Tally
from milpbn.trials.parts import datasets_of
from milpbn.util import interrupts
from milpbn.util.budget import Budget
from milpbn.util.clock import SELECTION_SHARE
from milpbn.util.progress_line import LINE

#: Seconds for each trial without a time limit.
TRIAL_SECONDS = 60.0
#: Halving keeps at least so many settings.
FEWEST = 8
#: Share of a trial's seconds for its search, if parameters are fitted after it.
SEARCH_SHARE = 0.5


@dataclass(frozen=True)
class Choosing:
    """A selection: what validation chooses from, and how it searches. It is made once, and passed on.

    The data are those that `source_of` returned; cuts and states of a table are learnt on the training rows of each
    split. The options of the score are replaced. A subset is for the searches on all training rows only, a screening
    for every search. The trials take half of a time limit; without one, each takes at most `trial_seconds`.
    """

    question: Question
    options: Options
    grid: Grid
    budget: Budget
    trial_seconds: float = TRIAL_SECONDS

    def quiet(self, **changes: Any) -> Options:
        """Return the options of a search that writes no file and shows no progress, with other changes."""
        # Trials are short: starting workers for each would take as long as many of them.
        silent = replace(self.options, output=None, certificate=None, trace=None, log=None, verbose=False)
        silent = replace(silent, workers=None, dask=None)
        return replace(silent, n_best=1, checkpoint=None, resume=False, on_change=None, **changes)

    def search(self, tally: Tally, options: Options, started: float) -> Result:
        """Search on all training rows with the setting of a tally; a time limit counts from `started`."""
        score, rows, own = tally.applied(self.question.data, options)
        return maximise(replace(self.question, data=rows, score=score), own, started=started)


def trials_left(alive: int, splits: int, halving: bool) -> int:
    """Return the number of trials of the remaining splits, at most."""
    count = 0
    for _ in range(splits):
        count += alive
        alive = _kept(alive) if halving else alive
    return count


def _kept(alive: int) -> int:
    """Return how many of so many settings the next split compares, at most."""
    return min(alive, max(FEWEST, (alive + 1) // 2))


def survivors(tallies: Mapping[int, Tally], by: str, left: float) -> list[int]:
    """Return the settings that the next split compares: the better half, without those that cannot win any more.

    `left` is the weight of the held-out rows of all remaining splits.
    """
    order = sorted(tallies, key=lambda k: tallies[k].trial.rank(by))
    kept = set(order[: _kept(len(tallies))])
    if by == "accuracy":
        correct = {k: tally.best[1].correct for k, tally in tallies.items()}
        kept = {k for k in kept if correct[k] + left >= max(correct.values())}
    return [k for k in tallies if k in kept]


class Trials:
    """The trials of the settings of a grid, one split after another.

    Settings that differ in p only follow one another. `tallies` has what the trials found so far, by the position of
    the setting. Raise InputError if the engine that the options name cannot be used with one of the scores.
    """

    def __init__(
        self,
        choosing: Choosing,
        settings: Sequence[Setting],
        splits: Sequence[Split],
        after_trial: Callable[[Trials], object],
    ) -> None:
        self.tallies: dict[int, Tally] = {}
        self._choosing, self._settings, self._splits = choosing, settings, splits
        self._engines = [checked_engine(choosing.options, setting.score) for setting in settings]
        scope = choosing.question.scope
        self._screen = scope if isinstance(scope, Screen) else None
        self._after_trial = after_trial
        limit, began = choosing.options.time_limit, choosing.budget.began
        self._budget = Budget(None if limit is None else SELECTION_SHARE * limit, began=began)
        #: Whether a signal has come during the last trial.
        self._stopped = False
        #: Number of trials that are still to be made, at most.
        self._waiting = 0
        #: `time.monotonic` value at which the current trial has to end.
        self._trial_end = began

    def run(self) -> None:
        """Run all trials.

        Raises
        ------
        NoIncumbentError
            If the time is over while a problem is built.
        KeyboardInterrupt
            If the user stopped it. The tallies hold what was found before either.
        """
        everyone = list(range(len(self._settings)))
        tiers = [everyone]
        if self._choosing.grid.smallest_first:
            sizes = [setting.score.max_parents for setting in self._settings]
            tiers = [[k for k in everyone if sizes[k] == size] for size in sorted(set(sizes))]
        for number, tier in enumerate(tiers):
            self._run_tier(tier, sum(map(len, tiers[number + 1 :])))

    def ranked(self) -> list[Tally]:
        """Return what the trials found so far, the best setting first."""
        return sorted(self.tallies.values(), key=lambda tally: tally.trial.rank(self._choosing.grid.by))

    def _run_tier(self, tier: Sequence[int], others: int) -> None:
        """Compare settings on all splits; `others` is the number of settings that come after them."""
        alive, grid = list(tier), self._choosing.grid
        for number, split in enumerate(self._splits):
            later = self._splits[number + 1 :]
            self._waiting = trials_left(len(alive), 1 + len(later), grid.halving)
            self._waiting += others * len(self._splits)
            self._compare(split, alive)
            if grid.halving and later:
                weights = self._choosing.question.data.weights
                left = float(sum(weights[held_out].sum() for _, held_out in later))
                alive = survivors({k: self.tallies[k] for k in alive}, grid.by, left)

    def _compare(self, split: Split, alive: Sequence[int]) -> None:
        """Try settings on one split."""
        largest = max((self._settings[k].score for k in alive), key=lambda score: score.max_parents)

        def data(k: int) -> tuple[Discretisation | None, str | None]:
            return self._settings[k].discretisation, self._settings[k].missing

        for (discretisation, missing), same_data in groupby(alive, key=data):
            train, held_out = datasets_of(self._choosing.question.data, split, discretisation, missing)
            if self._screen is None:
                # Refuse a problem that is too large before the first trial, not after the small ones.
                for_milp = any(self._engines[k][0].capabilities.milp for k in alive)
                usable_sets(train.merged, largest, self._choosing.question.constraints, for_milp=for_milp)
            # The coefficients do not depend on p.
            for _, group in groupby(
                same_data, key=lambda k: replace(self._settings[k].score, gamma=None, p=None)
            ):
                self._try(list(group), train, held_out)

    def _try(self, group: Sequence[int], train: Dataset, held_out: Dataset) -> None:
        """Try settings that differ in p only, and share coefficients; each starts from the structure before."""
        problem, steps = self._problem(group[0], train)
        start: Structure | None = None
        for k in group:
            result = self._search(k, problem, steps, train, start)
            starved = start is not None and result.limit is Limit.TIME and result.structure == start
            start = result.structure
            tally = self.tallies.setdefault(k, Tally(self._settings[k]))
            with suppress(Stopped):  # the parameters that were tried in time are compared
                tally.add(result, held_out, starved, self._fitted(k, result, train, held_out))
            if wants_progress(self._choosing.options.verbose):
                self._report(tally)
            if self._stopped or result.limit is Limit.USER:
                raise KeyboardInterrupt
            self._after_trial(self)

    def _problem(self, k: int, train: Dataset) -> Reduced:
        """Return the problem of a setting on training rows; that over the small parent sets if some are screened."""
        # The first trial may take all the time: without a trial there is nothing to choose from.
        budget = self._budget if self.tallies else self._choosing.budget
        score, merge = self._settings[k].score, self._choosing.options.merge
        for_milp = self._engines[k][0].capabilities.milp
        constraints = checked_constraints(self._choosing.question.constraints)
        stated = Statement(train, score, constraints, merge, for_milp, budget=budget)
        if self._screen is not None and (best := BestParentSets(self._screen)).accepts(stated):
            return best.apply(stated)
        return Reduced(stated.build(stated.everything()))

    def _search(
        self,
        k: int,
        problem: Problem,
        steps: Sequence[Enlargement],
        train: Dataset,
        start: Structure | None,
    ) -> Result:
        """Search for the best structure of a setting on training rows."""
        now = time.monotonic()
        fitted = self._settings[k].parameters != "ml"
        seconds = self._choosing.trial_seconds
        if self._budget.deadline is not None:
            seconds = max(0.05, (self._budget.deadline - now) / max(1, self._waiting))
        self._waiting -= 1
        self._trial_end = now + seconds
        p = self._settings[k].p
        if steps and start is not None and problem.choice(problem.adopted(start)) is None:
            start = None  # parent sets of the trial before are kept only if they are small
        # Its classifier has generative parameters; others are compared after its search.
        options = self._choosing.quiet(
            time_limit=seconds * (SEARCH_SHARE if fitted else 1.0), start=start, parameters=None
        )
        own = problem if p is None else problem.with_p(p)
        budget = Budget(options.time_limit, began=now)
        job = Job(own, train, options, *self._engines[k], budget, tuple(steps))
        with interrupts.deferred():
            result = run(job)
            # A signal that comes after the search, while its classifier is made, is forgotten at the end of the block.
            self._stopped = interrupts.requested()
        return result

    def _fitted(
        self, k: int, result: Result, train: Dataset, held_out: Dataset
    ) -> Iterator[tuple[ParameterMethod, Classifier]]:
        """Return classifiers with all parameters that a setting compares, for the structure of its trial."""
        if not isinstance(result.classifier, Classifier):
            return iter(())
        asked = self._choosing.options.interrupted or (lambda: False)
        return fitted_path(
            result.classifier,
            train,
            self._settings[k].parameters,
            objection=objection_to_arcs(result.score, result.constraints),
            stopping=lambda: asked() or time.monotonic() >= self._trial_end,
            joint=bool((held_out.X < 0).any()),
        )

    def _report(self, tally: Tally) -> None:
        """Show what the trials of a setting found so far."""
        trial, seconds = tally.trial, time.monotonic() - self._choosing.budget.began
        weighted = "" if trial.unweighted is None else "weighted "
        LINE.keep(
            f"{seconds:8.1f}s  selection: {tally.setting.describe()}: {weighted}accuracy "
            f"{100 * trial.accuracy:.2f} %, log-loss {trial.log_loss:.4f}, {self._waiting} trials to go"
        )

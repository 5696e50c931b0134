"""The trials of a selection: which settings each split compares, their searches, and what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

from milpbn.claims.reasons import Limit
from milpbn.claims.result import Result
from milpbn.data import Dataset, Table
from milpbn.data.discretisation import Discretisation
from milpbn.data.folds import Split
from milpbn.network.classifier import Classifier
from milpbn.network.parameters.conditional import Stopped
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.path import fitted_path
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem, checked_constraints, usable_sets
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screen
from milpbn.solving.averaging import Ranked
from milpbn.solving.engines.base import Engine
from milpbn.solving.enlarging import Enlargement
from milpbn.solving.grid import Grid, Setting
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.solving.parameters import objection_to_arcs
from milpbn.solving.progress import wants_progress
from milpbn.solving.reductions import BestParentSets, Reduced, Statement
from milpbn.solving.run import run
from milpbn.solving.splits import datasets_of
from milpbn.solving.tally import Tally
from milpbn.util import interrupts
from milpbn.util.budget import Budget
from milpbn.util.clock import SELECTION_SHARE
from milpbn.util.progress_line import LINE

#: Halving keeps at least so many settings.
FEWEST = 8
#: Share of a trial's seconds for its search, if parameters are fitted after it.
SEARCH_SHARE = 0.5


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


def survivors(
    alive: Sequence[int], found: Mapping[int, tuple[Tally, Setting]], by: str, left: float
) -> list[int]:
    """Return the settings that the next split compares: the better half, without those that cannot win any more.

    `left` is the weight of the held-out rows of all remaining splits.
    """
    order = sorted(alive, key=lambda k: found[k][0].trial(found[k][1]).rank(by))
    kept = set(order[: _kept(len(alive))])
    if by == "accuracy":
        correct = {k: tally.best[1].correct for k, (tally, _) in found.items()}
        kept = {k for k in kept if correct[k] + left >= max(correct.values())}
    return [k for k in alive if k in kept]


class Trials:
    """The trials of the settings of a grid, one split after another.

    Parameters
    ----------
    settings : sequence of Setting
        What is compared. Settings that differ in p only follow one another.
    engines : sequence of (Engine, str)
        Engine of each setting, and its version.
    source : Table or Dataset
        The data; cuts and states of a table are learnt on the training rows of each split.
    splits : sequence of Split
        Training and held-out rows.
    options : Options
        How to search. The trials take half of its time limit.
    constraints : Constraints or None
        What every structure has to obey.
    screen : Screen or None
        How many parent sets per variable each trial searches over; None for all.
    grid : Grid
        What is compared, and whether the settings are halved after each split.
    began : float
        `time.monotonic` value from which the time limit counts.
    trial_seconds : float
        Limit of each trial if the options have no time limit.
    after_trial : function
        Is called after each trial.

    Attributes
    ----------
    tallies : dict from int to Tally
        What the trials found so far, by the position of the setting.
    """

    def __init__(
        self,
        settings: Sequence[Setting],
        engines: Sequence[tuple[Engine, str]],
        source: Table | Dataset,
        splits: Sequence[Split],
        options: Options,
        constraints: Constraints | None,
        screen: Screen | None,
        grid: Grid,
        began: float,
        trial_seconds: float,
        after_trial: Callable[[], None] = lambda: None,
    ) -> None:
        self.tallies: dict[int, Tally] = {}
        self._settings, self._engines, self._grid = settings, engines, grid
        self._source, self._splits = source, splits
        self._options, self._constraints, self._screen = options, constraints, screen
        self._began, self._trial_seconds, self._after_trial = began, trial_seconds, after_trial
        self._end = None if options.time_limit is None else began + SELECTION_SHARE * options.time_limit
        self._show = wants_progress(options.verbose)
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
        if self._grid.smallest_first:
            sizes = [setting.score.max_parents for setting in self._settings]
            tiers = [[k for k in everyone if sizes[k] == size] for size in sorted(set(sizes))]
        for number, tier in enumerate(tiers):
            self._run_tier(tier, sum(map(len, tiers[number + 1 :])))

    def ranked(self) -> list[Ranked]:
        """Return all settings with what their trials found so far, the best first."""
        found = (
            Ranked(self._settings[k], t.trial(self._settings[k]), t.incumbent)
            for k, t in self.tallies.items()
        )
        return sorted(found, key=lambda one: one.trial.rank(self._grid.by))

    def _run_tier(self, tier: Sequence[int], others: int) -> None:
        """Compare settings on all splits; `others` is the number of settings that come after them."""
        alive = list(tier)
        for number, split in enumerate(self._splits):
            later = self._splits[number + 1 :]
            self._waiting = trials_left(len(alive), 1 + len(later), self._grid.halving)
            self._waiting += others * len(self._splits)
            self._compare(split, alive)
            if self._grid.halving and later:
                left = float(sum(self._source.weights[held_out].sum() for _, held_out in later))
                found = {k: (self.tallies[k], self._settings[k]) for k in alive}
                alive = survivors(alive, found, self._grid.by, left)

    def _compare(self, split: Split, alive: Sequence[int]) -> None:
        """Try settings on one split."""
        largest = max((self._settings[k].score for k in alive), key=lambda score: score.max_parents)

        def data(k: int) -> tuple[Discretisation | None, str | None]:
            return self._settings[k].discretisation, self._settings[k].missing

        for (discretisation, missing), same_data in groupby(alive, key=data):
            train, held_out = datasets_of(self._source, split, discretisation, missing)
            if self._screen is None:
                # Refuse a problem that is too large before the first trial, not after the small ones.
                for_milp = any(self._engines[k][0].capabilities.milp for k in alive)
                usable_sets(train.merged, largest, self._constraints, for_milp=for_milp)
            for _, group in groupby(same_data, key=lambda k: _without_p(self._settings[k])):
                self._try(list(group), train, held_out)

    def _try(self, group: Sequence[int], train: Dataset, held_out: Dataset) -> None:
        """Try settings that differ in p only, and share coefficients; each starts from the structure before."""
        problem, steps = self._problem(group[0], train)
        start: Structure | None = None
        for k in group:
            result = self._search(k, problem, steps, train, start)
            starved = start is not None and result.limit is Limit.TIME and result.structure == start
            start = result.structure
            tally = self.tallies.setdefault(k, Tally())
            with suppress(Stopped):  # the parameters that were tried in time are compared
                tally.add(result, held_out, starved, self._fitted(k, result, train, held_out))
            if self._show:
                self._report(k)
            if self._stopped or result.limit is Limit.USER:
                raise KeyboardInterrupt
            self._after_trial()

    def _problem(self, k: int, train: Dataset) -> Reduced:
        """Return the problem of a setting on training rows; that over the small parent sets if some are screened."""
        # The first trial may take all the time: without a trial there is nothing to choose from.
        deadline = self._end if self.tallies else self._options.deadline(self._began)
        score, merge = self._settings[k].score, self._options.merge
        for_milp = self._engines[k][0].capabilities.milp
        now = time.monotonic()
        budget = Budget(None if deadline is None else deadline - now, began=now)
        if self._screen is not None:
            stated = Statement(
                train, score, checked_constraints(self._constraints), merge, for_milp, budget=budget
            )
            best = BestParentSets(self._screen)
            if best.accepts(stated):
                return best.apply(stated)
        return Reduced(
            build_problem(train, score, self._constraints, merge=merge, for_milp=for_milp, budget=budget)
        )

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
        seconds = self._trial_seconds
        if self._end is not None:
            seconds = max(0.05, (self._end - now) / max(1, self._waiting))
        self._waiting -= 1
        self._trial_end = now + seconds
        p = self._settings[k].p
        if steps and start is not None and problem.choice(problem.adopted(start)) is None:
            start = None  # parent sets of the trial before are kept only if they are small
        # A trial writes no file and shows no progress. Its classifier has generative parameters; others are compared
        # after its search.
        options = replace(
            self._options,
            time_limit=seconds * (SEARCH_SHARE if fitted else 1.0),
            start=start,
            output=None,
            certificate=None,
            trace=None,
            log=None,
            verbose=False,
            parameters=None,
            n_best=1,
            checkpoint=None,
            resume=False,
            on_change=None,
        )
        own = problem if p is None else problem.with_p(p)
        budget = Budget(options.time_limit, began=now)
        steps = tuple(step.within(budget) for step in steps)
        job = Job(own, train, options, *self._engines[k], budget, steps)
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
        asked = self._options.interrupted or (lambda: False)
        return fitted_path(
            result.classifier,
            train,
            self._settings[k].parameters,
            objection=objection_to_arcs(result.score, result.constraints),
            stopping=lambda: asked() or time.monotonic() >= self._trial_end,
            joint=bool((held_out.X < 0).any()),
        )

    def _report(self, k: int) -> None:
        """Show what the trials of a setting found so far."""
        trial = self.tallies[k].trial(self._settings[k])
        weighted = "" if trial.unweighted is None else "weighted "
        LINE.keep(
            f"{time.monotonic() - self._began:8.1f}s  selection: {self._settings[k].describe()}: {weighted}accuracy "
            f"{100 * trial.accuracy:.2f} %, log-loss {trial.log_loss:.4f}, {self._waiting} trials to go"
        )


def _without_p(setting: Setting) -> Score:
    """Return the score of a setting without p, which the coefficients do not depend on."""
    return setting.score if setting.p is None else replace(setting.score, gamma=None, p=None)

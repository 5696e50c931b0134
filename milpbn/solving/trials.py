"""The trials of a selection: which settings each split compares, where they are made, and what they found."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.result import Result
from milpbn.data.folds import Split
from milpbn.errors import NoIncumbentError
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import maximise
from milpbn.solving.chain import Chain, Chains
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.grid import Grid, Setting
from milpbn.solving.options import Options
from milpbn.solving.progress import compared_by, wants_progress
from milpbn.solving.question import Question
from milpbn.solving.tally import Tally, merged
from milpbn.trials.executors import Inline
from milpbn.trials.runner import INLINE
from milpbn.util import interrupts
from milpbn.util.budget import Budget
from milpbn.util.clock import SELECTION_SHARE
from milpbn.util.progress_line import LINE

#: Seconds for each trial without a time limit.
TRIAL_SECONDS = 60.0
#: Halving keeps at least so many settings, and those that are behind by at most so many standard errors.
FEWEST, CLEARLY = 8, 2.0


@dataclass(frozen=True)
class Choosing:
    """A selection: what validation chooses from, and how it searches. It is made once, and passed on.

    The data are those that `source_of` returned; cuts and states of a table are learnt on the training rows of each
    split. The options of the score are replaced. A subset is for the searches on all training rows only, a screening
    for every search. The trials take half of a time limit; without one, each takes at most `trial_seconds`.
    They are made `where` the executor runs them.
    """

    question: Question
    options: Options
    grid: Grid
    budget: Budget
    trial_seconds: float = TRIAL_SECONDS
    where: Inline = INLINE

    def quiet(self, **changes: Any) -> Options:
        """Return the options of a search that writes no file and shows no progress, with other changes."""
        silent = replace(self.options, output=None, certificate=None, trace=None, log=None, verbose=False)
        return replace(
            silent, n_best=1, within=None, checkpoint=None, resume=False, on_change=None, **changes
        )

    def search(self, tally: Tally, options: Options, started: float) -> Result:
        """Search on all training rows with the setting of a tally; a time limit counts from `started`."""
        score, rows, own = tally.applied(self.question.data, options)
        return maximise(replace(self.question, data=rows, score=score), own, started=started)


def compare(
    tallies: Iterable[Tally], by: str, positions: Sequence[NDArray[np.int64]], weights: NDArray[np.float64]
) -> None:
    """Set `Tally.behind` of every setting that was tried on the same splits as the best one.

    `weights` are those of all rows, and `positions` has for each split the positions of its held-out rows among them.
    """
    found = list(tallies)
    for tally in found:
        tally.behind = None
    best = min(found, key=lambda tally: tally.trial.rank(by))
    least, held_out = best.trial.value(by), [positions[number] for number in best.numbers]
    for tally in found:
        difference = tally.trial.value(by) - least
        if tally.numbers == best.numbers and math.isfinite(difference):
            error = tally.best[1].standard_error(best.best[1], by, held_out, weights)
            tally.behind = max(0.0, difference), error


def survivors(tallies: Mapping[int, Tally], by: str, left: float) -> list[int]:
    """Return the settings that the next split compares: the better half, and others that are not clearly behind.

    By accuracy, those are left out that cannot win any more. `left` is the weight of the held-out rows of all remaining
    splits.
    """
    order = sorted(tallies, key=lambda k: tallies[k].trial.rank(by))
    kept = set(order[: max(FEWEST, (len(order) + 1) // 2)])
    for k in order:
        difference, error = tallies[k].behind or (math.inf, 0.0)
        if difference <= CLEARLY * error:
            kept.add(k)
    if by == "accuracy":
        correct = {k: tally.best[1].correct for k, tally in tallies.items()}
        kept = {k for k in kept if correct[k] + left >= max(correct.values())}
    return [k for k in tallies if k in kept]


class Trials:
    """The trials of the settings of a grid, one split after another; without halving, on workers all splits at once.

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
        scores = {setting.score.name: setting.score for setting in settings}
        engines = {name: checked_engine(choosing.options, score) for name, score in scores.items()}
        self._engines = [engines[setting.score.name] for setting in settings]
        self._after_trial = after_trial
        limit, began = choosing.options.time_limit, choosing.budget.began
        self._budget = Budget(None if limit is None else SELECTION_SHARE * limit, began=began)
        #: Number of trials that are still to be made, at most.
        self._waiting = 0
        #: What the trials of each setting found on each split, and the settings in the order of their trials.
        self._found: dict[int, dict[int, Tally]] = {}
        everyone = range(len(settings))
        self._tiers = [list(everyone)]
        if choosing.grid.smallest_first:
            sizes = [setting.score.max_parents for setting in settings]
            self._tiers = [[k for k in everyone if sizes[k] == size] for size in sorted(set(sizes))]

    def run(self) -> None:
        """Run all trials; the tallies hold what was found when it raises.

        NoIncumbentError says that the time is over while a problem is built, or before workers have made all trials,
        and KeyboardInterrupt that the user stopped it.
        """
        choosing, where = self._choosing, self._choosing.where
        if where.in_turn:
            chains = self._chains(choosing.quiet(parameters=None, monotone=None))
            for chain in (chain for stage in self._stages() for chain in stage):
                for k, tally in chains.tried(chain, self._whole, self._share):
                    self._add(chain.split, k, tally)
                    self._after_trial(self)
            return
        # Functions of the caller stay here.
        quiet = choosing.quiet(parameters=None, monotone=None, interrupted=None, workers=None, dask=None)
        stages, compute = self._stages(), self._chains(quiet).compute
        waiting = deque(next(stages))
        left = len(waiting)
        with interrupts.deferred():
            for chain, found in where.run(compute, waiting, self._stopping):
                for k, tally in found:
                    self._waiting -= 1
                    self._add(chain.split, k, tally)
                self._after_trial(self)
                left -= 1
                if not left:
                    waiting.extend(next(stages, ()))
                    left = len(waiting)
            interrupted = self._interrupted()
        if interrupted:
            raise KeyboardInterrupt
        if left:
            raise NoIncumbentError(
                "The time limit ended before the first trial of a selection; allow more time."
            )

    def ranked(self) -> list[Tally]:
        """Return what the trials found so far, the best setting first."""
        self._compare(self.tallies)
        return sorted(self.tallies.values(), key=lambda tally: tally.trial.rank(self._choosing.grid.by))

    def _compare(self, members: Iterable[int]) -> None:
        """Compare settings with the best of them, but for the choice of the paper, where equal values alone tie."""
        if self._choosing.grid.halving:
            positions = [held_out for _, held_out in self._splits]
            weights = self._choosing.question.data.weights
            compare([self.tallies[k] for k in members], self._choosing.grid.by, positions, weights)

    def _chains(self, options: Options) -> Chains:
        asked, by = self._choosing.question, self._choosing.grid.by
        return Chains(asked, options, self._settings, self._splits, self._engines, by=by)

    def _stages(self) -> Iterator[list[Chain]]:
        """Yield lists of trials that may run at the same time. Later lists may depend on results of earlier ones."""
        grid, n_splits = self._choosing.grid, len(self._splits)
        together = 1 if grid.halving or self._choosing.where.in_turn else n_splits
        for number, tier in enumerate(self._tiers):
            alive, others = list(tier), sum(map(len, self._tiers[number + 1 :]))
            for first in range(0, n_splits, together):
                self._waiting = len(alive) * (n_splits - first) + others * n_splits
                chains = [
                    chain
                    for split in range(first, first + together)
                    for chain in self._of_split(split, alive)
                ]
                yield self._timed(chains)
                later = self._splits[first + together :]
                if grid.halving and later:
                    weights = self._choosing.question.data.weights
                    left = float(sum(weights[held_out].sum() for _, held_out in later))
                    self._compare(alive)
                    alive = survivors({k: self.tallies[k] for k in alive}, grid.by, left)

    def _of_split(self, split: int, alive: Sequence[int]) -> Iterator[Chain]:
        """Yield the trials of settings on one split."""
        settings = self._settings
        largest = max((settings[k].score for k in alive), key=lambda score: score.max_parents)
        for_milp = any(self._engines[k][0].capabilities.milp for k in alive)

        def shared(k: int) -> tuple[Any, ...]:
            score: Score = replace(settings[k].score, gamma=None, p=None)
            return settings[k].discretisation, settings[k].missing, score

        for _, group in groupby(alive, key=shared):
            yield Chain(split, tuple(group), largest, for_milp)

    def _timed(self, chains: list[Chain]) -> list[Chain]:
        """Return chains with the seconds of each trial, as workers need them."""
        if self._choosing.where.in_turn:
            return chains
        seconds, left = self._choosing.trial_seconds, None
        if self._budget.deadline is not None:
            left = max(0.05, self._whole.left())
            rounds = math.ceil(len(chains) / max(1, self._choosing.where.places))
            seconds = max(0.05, self._budget.left() * len(chains) / rounds / max(1, self._waiting))
        return [replace(chain, seconds=seconds, left=left) for chain in chains]

    def _share(self) -> float:
        """Return the seconds of the next trial in this process."""
        seconds = self._choosing.trial_seconds
        if self._budget.deadline is not None:
            seconds = max(0.05, self._budget.left() / max(1, self._waiting))
        self._waiting -= 1
        return seconds

    def _interrupted(self) -> bool:
        asked = self._choosing.options.interrupted
        return interrupts.requested() or (asked is not None and asked())

    def _stopping(self) -> bool:
        return self._interrupted() or self._whole.left() <= 0

    @property
    def _whole(self) -> Budget:
        """The budget of the trials. The first one may take all the time: without it there is nothing to choose from."""
        return self._budget if self.tallies else self._choosing.budget

    def _add(self, split: int, k: int, tally: Tally) -> None:
        """Keep what a trial found, and show it. Sums and order are the same whichever trial ends first."""
        own = self._found.setdefault(k, {})
        own[split] = tally
        numbers = tuple(sorted(own))
        self.tallies[k] = replace(merged([own[number] for number in numbers]), numbers=numbers)
        self.tallies = {i: self.tallies[i] for tier in self._tiers for i in tier if i in self.tallies}
        if wants_progress(self._choosing.options.verbose):
            self._report(self.tallies[k])

    def _report(self, tally: Tally) -> None:
        """Show what the trials of a setting found so far."""
        trial, seconds = tally.trial, time.monotonic() - self._choosing.budget.began
        weighted = "" if trial.unweighted is None else "weighted "
        LINE.keep(
            f"{seconds:8.1f}s  selection: {tally.setting.describe()}: {weighted}accuracy "
            f"{100 * trial.accuracy:.2f} %, log-loss {trial.log_loss:.4f}"
            f"{compared_by(trial, self._choosing.grid.by)}, {self._waiting} trials to go"
        )

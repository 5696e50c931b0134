"""Choice of gamma and max_parents by validation (Peharz and Pernkopf 2012, P12), before the final search."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Unpack

from milpbn.claims.reasons import Limit, Reason
from milpbn.claims.result import NotSavedError, Result
from milpbn.claims.selection import Selection
from milpbn.data import Table
from milpbn.errors import InputError, NoIncumbentError
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints
from milpbn.problem.gate import objection
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.accurate import maximise_accurate, score_of_recipe
from milpbn.solving.api import maximise
from milpbn.solving.averaging import LEAST_SECONDS, averaged, later, to_average
from milpbn.solving.files import SAVE_EVERY, SAVE_FIRST, check_files, remove_certificate, saved
from milpbn.solving.grid import MAX_PARENTS_GRID, MISSING, PARAMETERS, Grid, applicable, source_of
from milpbn.solving.options import OptionKeywords, Options, takes_options
from milpbn.solving.question import Question
from milpbn.solving.recipes import Choices
from milpbn.solving.smallest import unsearched
from milpbn.solving.tally import Tally
from milpbn.solving.trials import TRIAL_SECONDS, Choosing, Trials
from milpbn.solving.warm_up import compile_all
from milpbn.trials.executors import spread
from milpbn.trials.parts import splits_of
from milpbn.util.budget import Budget
from milpbn.util.clock import Pause

#: Seconds for the final search after the user has stopped the selection.
INTERRUPTED_SECONDS = 0.5


@takes_options
def select(
    data: Any,
    score: Score,
    *,
    p_values: Sequence[float] | None = P_GRID,
    max_parents_values: Sequence[int] = MAX_PARENTS_GRID,
    constraints: Constraints | None = None,
    started: float | None = None,
    **options: Unpack[OptionKeywords],
) -> Selection:
    """Choose p (and so gamma) and max_parents by accuracy on held-out rows (P12, section 6).

    Cuts and states are learnt anew on the training rows of every split. All values of p share the coefficients of a
    split, and the search for one p starts from the structure of the p before.

    Parameters
    ----------
    data, constraints, started
        As for `solve`.
    score : Score
        The score; p and max_parents are replaced by the values to choose from.
    p_values : sequence of float or None
        Values of p; None for scores without gamma, or to keep the value of the score.
    max_parents_values : sequence of int
        Values of max_parents.
    **options
        How to search; see `milpbn.solving.options.Options`. The selection takes half of a time limit.
    """
    question, grid = Question.of(data, score, constraints), Grid(p_values, max_parents_values)
    return choose(question, Options(**options), grid, started=started)


def choose(
    question: Question,
    options: Options,
    grid: Grid,
    *,
    started: float | None = None,
    trial_seconds: float = TRIAL_SECONDS,
) -> Selection:
    """Do the same as `select`, with the options in one object and the values in another.

    `trial_seconds` limits each trial if the options have no time limit.
    """
    with _begun(question, options, grid, started, trial_seconds) as choosing:
        return _compare(choosing)[0]


@contextmanager
def _begun(
    question: Question,
    options: Options,
    grid: Grid,
    started: float | None,
    trial_seconds: float = TRIAL_SECONDS,
) -> Iterator[Choosing]:
    """Begin a selection, whose time limit includes that the data are read. Its searches share the workers."""
    budget = Budget(options.time_limit, began=started)
    read = replace(question, data=source_of(question.data, grid))
    with spread(1, options.dask, workers=options.workers, prepare=compile_all) as where:
        own = replace(options, workers=None, dask=where.dask)
        yield Choosing(read, own, grid, budget, trial_seconds, where)


def _compare(choosing: Choosing) -> tuple[Selection, list[Tally]]:
    """Return the choice, and all settings with what their trials found, the best first."""
    options, grid = choosing.options, choosing.grid
    if options.checkpoint is not None:
        raise InputError(
            "A checkpoint keeps one search, and a selection makes many; leave out --checkpoint (checkpoint), or give "
            "the options that a selection has chosen instead of the selection."
        )
    asked = choosing.question
    splits, protocol = splits_of(asked.data, options.random_state, for_rare=grid.halving)
    settings = applicable(grid, asked.score, asked.data, splits)
    if grid.by == "cost" and options.costs is None:
        raise InputError(
            "--select-by cost (select_by) needs costs: --cost missed=20 false-alarm=1, or --costs FILE (costs)."
        )
    options.decision(asked.data)  # refuses costs of other classes
    if options.monotone_constraints(asked.data) and grid.average > 1:
        raise InputError(
            "Monotone features (--monotone, monotone) are those of one network; leave out --average (average)."
        )
    if PARAMETERS in grid.others and options.parameters is not None:
        raise InputError(
            f"{PARAMETERS} is among the options to select, and is given as --{PARAMETERS}; keep one of them."
        )
    trials = Trials(choosing, settings, splits, Interim(choosing).update)
    interrupted = timed_out = False
    try:
        trials.run()
    except (NoIncumbentError, KeyboardInterrupt) as error:  # the time is over, or the user has stopped it
        if not trials.tallies:
            raise
        interrupted = isinstance(error, KeyboardInterrupt)
        timed_out = not interrupted
    ranked = trials.ranked()
    best = ranked[0]
    return Selection(
        best.setting.p,
        best.setting.score.max_parents,
        protocol,
        tuple(tally.trial for tally in trials.tallies.values()),
        best.incumbent,
        interrupted,
        grid.by,
        best.trial.options,
        timed_out,
    ), ranked


class Interim:
    """Writes the best structure of a selection so far, so that a run that is killed leaves one.

    The file is a result with the status ``running``. Its score is that of the structure on all training rows, with the
    setting that is the best so far, and its bound the one that needs no search. The trials themselves search over a
    part of the rows and write nothing. Raise InputError if the output file or the certificate cannot be written when
    the selection begins.
    """

    def __init__(self, choosing: Choosing) -> None:
        self._choosing, self._begun = choosing, False
        check_files(choosing.options)
        self._pause = Pause(SAVE_FIRST, SAVE_EVERY)

    def update(self, trials: Trials) -> None:
        """Write the best so far, from time to time. If the file cannot be written, the final search says so."""
        if self._choosing.options.output is not None and self._pause.over():
            with self._pause.after(), suppress(InputError, MemoryError):
                self._save(self._choosing.options.output, trials.ranked()[0])

    def _save(self, output: str | os.PathLike[str], best: Tally) -> None:
        asked, structure = self._choosing.question, best.incumbent
        score, source, options = best.applied(asked.data, self._choosing.options)
        constraints = asked.constraints or Constraints()
        class_free = not among(score, constraints)
        if structure is None or objection(structure, score, constraints, any_class_free=class_free):
            return
        rows = source.dataset("train") if isinstance(source, Table) else source
        began = self._choosing.budget.began
        result = unsearched(rows, score, options, structure, constraints, began, Limit.TIME)
        if not self._begun:
            remove_certificate(options)
        self._begun = True
        replace(result, reason=Reason.RUNNING, limit=None).save(output)


@takes_options
def solve_selected(
    data: Any,
    score: Score | None = None,
    *,
    p_values: Sequence[float] | None = P_GRID,
    max_parents_values: Sequence[int] = MAX_PARENTS_GRID,
    grid: str | None = None,
    by: str | None = None,
    recipe: str | None = None,
    average: int = 1,
    constraints: Constraints | None = None,
    subset: int | None = None,
    screen: int | None = None,
    started: float | None = None,
    **options: Unpack[OptionKeywords],
) -> Result:
    """Choose options by validation, then solve on all training rows.

    Parameters
    ----------
    data, constraints, started
        As for `solve`.
    score : Score, optional
        The score; the chosen options are replaced. By default the soft margin.
    p_values, max_parents_values : sequences
        Values to choose from, as for `select`, if there is neither a grid nor a recipe.
    grid : str, optional
        Options and their values as for ``--select``, for example ``"p=.6,.9 leave-one-out=no,yes"``; see `Grid.parse`.
    by : {'accuracy', 'log-loss', 'roc-auc', 'average-precision', 'cost'}, optional
        What is compared (``cost`` with `costs`); by default what the recipe compares, or the accuracy.
    recipe : str, optional
        ``accurate``: tables on finer cuts (`milpbn.solving.accurate`); a given score is kept. ``readable``: a
        recommended grid (`milpbn.solving.recipes.RECIPES`), with what it compares. Its values replace those
        of the score. Parameters of the caller, ``ml`` included, replace its own, and so does a time limit. It also
        chooses between the missing value policies, unless the data are a `Table`, which was read with one.
    average : int
        Average the posteriors of the networks of so many of the best settings; `Grid.average` says which. All but the
        classifier of the result is about the best setting.
    subset, screen : int, optional
        As for `solve`: a subset in the final search only, a screening in every trial, too.
    **options
        How to search; see `milpbn.solving.options.Options`. The selection takes half of a time limit.

    Returns
    -------
    Result
        With the `Selection` as ``selection``, and under `average` with an `AveragedClassifier` as ``classifier``.

    Raises
    ------
    InputError
        If the grid or the recipe cannot be read, or both are given, or the number of networks is below 1.
    NotSavedError
        If a file could not be written; its attribute ``result`` is the result, with the selection.

    Examples
    --------
    >>> import milpbn
    >>> result = milpbn.solve_selected("corral", recipe="accurate", time_limit=20)
    >>> result.classifier.classes
    ('0', '1')
    """
    how, spec = Options(**options), Score() if score is None else score
    approach = Approach(spec, how, Grid(p_values, max_parents_values, by=by or "accuracy", average=average))
    if grid is not None or recipe is not None:
        choices = Choices(grid=grid, recipe=recipe, by=by, average=average)
        given = {"name", "max_parents"} if choices.additive and score is not None else set()
        if recipe is not None and isinstance(data, Table):
            given.add(MISSING)  # it was read with the policy that its reader wants
        approach = Approach.of(choices, spec, how, given)
        chosen = {} if approach.grid is None else approach.grid.others
        if MISSING in chosen and isinstance(data, Table) and data.missing != "state":
            raise InputError(
                f"{MISSING} is among the options to select, but the table was read with missing={data.missing!r}, "
                "which keeps no row with missing values; read it with missing='state'."
            )
    return approach.maximise(data, constraints, subset=subset, screen=screen, started=started)


@dataclass(frozen=True)
class Approach:
    """A score and how to search it: as given, by values of `grid` to choose from, or by the recipe ``accurate``.

    The recipe may give features more parents than the score has, if it may be `wider`.
    """

    score: Score
    options: Options
    grid: Grid | None = None
    additive: bool = False
    wider: bool = True

    @classmethod
    def of(cls, choices: Choices, score: Score, options: Options, given: Collection[str]) -> Approach:
        """Return what is to be done; `given` is as for `Choices.applied`."""
        if choices.additive:
            wider = "max_parents" not in given
            return cls(score_of_recipe(score, given), options, additive=True, wider=wider)
        if choices:
            grid, options = choices.applied(score, options, given)
            return cls(score, options, grid)
        return cls(score, options)

    @property
    def cuts(self) -> bool:
        """Whether it learns cuts of its own, and so takes a table rather than its states."""
        return self.additive or self.grid is not None

    def maximise(
        self,
        data: Any,
        constraints: Constraints | None,
        *,
        started: float | None,
        discretise: str | None = None,
        **scope: int | None,
    ) -> Result:
        """Return the result; `discretise` are the cuts for the recipe ``accurate``, `scope` as for `Question.of`."""
        seed = self.options.random_state
        question = Question.of(data, self.score, constraints, **scope, random_state=seed)
        if self.additive:
            return maximise_accurate(
                question, self.options, cuts=discretise, wider=self.wider, started=started
            )
        if self.grid is None:
            return maximise(question, self.options, started=started)
        return maximise_selected(question, self.options, self.grid, started=started)


def maximise_selected(
    question: Question, options: Options, grid: Grid, *, started: float | None = None
) -> Result:
    """Do the same as `solve_selected`, with the question, the options and the values in one object each."""
    with _begun(question, options, grid, started) as choosing:
        return _maximised(choosing)


def _maximised(choosing: Choosing) -> Result:
    """Choose, then solve on all training rows with the best settings."""
    options, grid = choosing.options, choosing.grid
    chosen, ranked = _compare(choosing)
    members, now = to_average(ranked, grid.average), time.monotonic()
    began, deadline = choosing.budget.began, choosing.budget.deadline
    own = options if options.start is not None else replace(options, start=chosen.incumbent)
    passed = 0.0
    if chosen.interrupted:
        # Long enough to score the chosen structure on all training rows, and to bound it.
        began, own = now, replace(own, time_limit=INTERRUPTED_SECONDS)
    elif deadline is not None and len(members) > 1:
        # The networks share what is left. A limit counts from the beginning of its search, as a part of it is for
        # the parameters.
        share = max(LEAST_SECONDS, (deadline - now) / len(members))
        passed, began, own = now - began, now, replace(own, time_limit=share)
    failures: list[str] = []
    try:
        result = choosing.search(ranked[0], own, began)
    except NotSavedError as error:
        failures, result = [str(error)], error.result
    result = later(result, passed)
    if grid.average > 1:
        result = averaged(result, members, choosing, interrupted=chosen.interrupted)
    if chosen.interrupted and result.reason is Reason.FEASIBLE:
        result = replace(result, limit=Limit.USER)
    return saved(replace(result, selection=chosen), options, failures)

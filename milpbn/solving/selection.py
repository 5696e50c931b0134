"""Choice of gamma and max_parents by validation (Peharz and Pernkopf 2012, P12), before the final search."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.parts import Selection
from milpbn.claims.reasons import Limit, Reason
from milpbn.claims.result import NotSavedError, Result
from milpbn.data import Dataset, Table, read_table, stratified_folds, validation_split
from milpbn.data.discretisation import Discretisation
from milpbn.data.folds import Split
from milpbn.errors import InputError, NoIncumbentError
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.forecast import require_room
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.problem.subset import Subset
from milpbn.solving.api import maximise
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.grid import MAX_PARENTS_GRID, Grid, Setting
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.solving.progress import wants_progress
from milpbn.solving.run import run
from milpbn.solving.trials import Tally, survivors, trials_left
from milpbn.util.clock import SELECTION_SHARE
from milpbn.util.progress_line import LINE

#: Above this many training rows, one validation set decides, of this share of the rows; else cross-validation with this
#: many folds (Peharz and Pernkopf 2012).
LARGE, VALIDATION_SHARE, FOLDS = 1000, 0.2, 5
#: Seconds for each trial without a time limit.
TRIAL_SECONDS = 60.0
#: Seconds for the final search after the user has stopped the selection.
INTERRUPTED_SECONDS = 0.5


def select(
    data: Any,
    score: Score,
    *,
    p_values: Sequence[float] | None = P_GRID,
    max_parents_values: Sequence[int] = MAX_PARENTS_GRID,
    constraints: Constraints | None = None,
    started: float | None = None,
    backend: str = "auto",
    acyclicity: str = "order",
    time_limit: float | None = None,
    gap_rel: float = 0.0,
    gap_abs: float = 0.0,
    threads: int | None = None,
    random_state: int = 0,
    start: Structure | None = None,
    warm_start: bool = True,
    root_bound: bool = True,
    root_only: bool = False,
    reduce: bool = True,
    merge: bool = True,
    solver_options: Mapping[str, str] | None = None,
    parameters: str = "ml",
    output: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    log: str | os.PathLike[str] | None = None,
    verbose: bool | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Selection:
    """Choose p (and so gamma) and max_parents by accuracy on held-out rows (P12, section 6).

    Cuts and states are learnt anew on the training rows of every split. All values of p share the coefficients of a
    split, and the search for one p starts from the structure of the p before.

    Parameters
    ----------
    data : Table, Dataset, or anything `read_table` reads
        Training rows.
    score : Score
        The score; p and max_parents are replaced by the values to choose from.
    p_values : sequence of float or None
        Values of p; None for scores without gamma, or to keep the value of the score.
    max_parents_values : sequence of int
        Values of max_parents.
    constraints : Constraints, optional
        What every structure has to obey.
    started : float, optional
        `time.monotonic` value from which the time limit counts.
    backend, acyclicity, time_limit, gap_rel, gap_abs, threads, random_state, start, warm_start, root_bound, \
root_only, reduce, merge, solver_options, parameters, output, trace, certificate, log, verbose, interrupted
        How to search; see `milpbn.solving.options.Options`. The selection takes half of a time limit.

    Returns
    -------
    Selection
    """
    options = Options.among(locals())
    return choose(data, score, options, Grid(p_values, max_parents_values), constraints, started=started)


def choose(
    data: Any,
    score: Score,
    options: Options,
    grid: Grid,
    constraints: Constraints | None = None,
    *,
    started: float | None = None,
    trial_seconds: float = TRIAL_SECONDS,
) -> Selection:
    """Do the same as `select`, with the options in one object and the values in another.

    `trial_seconds` limits each trial if the options have no time limit.
    """
    began = time.monotonic() if started is None else started
    settings = grid.settings(score)
    engines = [checked_engine(options, setting.score) for setting in settings]
    source = data if isinstance(data, Table | Dataset) else read_table(data)
    if isinstance(source, Dataset) and any(setting.discretisation for setting in settings):
        raise InputError(
            "Only a table can be discretised in other ways; give the selection a table, not a dataset."
        )
    splits, protocol = _splits(source, options.random_state)
    limit = None if options.time_limit is None else began + SELECTION_SHARE * options.time_limit
    show = wants_progress(options.verbose)
    tallies: dict[int, Tally] = {}
    alive = list(range(len(settings)))
    interrupted = False
    try:
        for number in range(len(splits)):
            scores = [settings[k].score for k in alive]
            waiting = trials_left(len(alive), len(splits) - number, grid.halving)
            cut: tuple[Discretisation | None] | None = None
            for (_, how), group in groupby(alive, key=lambda k: _shared(settings[k])):
                if cut != (how,):
                    cut, (train, held_out) = (how,), _split(source, splits[number], how)
                    if not constraints:
                        # Refuse a problem that is too large before the first trial, not after the small ones.
                        require_room(train.merged, max(scores, key=lambda each: each.max_parents))
                problem, start = None, None
                for k in group:
                    # The first trial may take all the time: without a trial there is nothing to choose from.
                    deadline = limit if tallies else options.deadline(began)
                    spec = settings[k].score
                    if problem is None:
                        problem = build_problem(
                            train, spec, constraints, merge=options.merge, deadline=deadline
                        )
                    now = time.monotonic()
                    seconds = trial_seconds if limit is None else max(0.05, (limit - now) / max(1, waiting))
                    waiting -= 1
                    p = settings[k].p
                    trial_problem = problem if p is None else problem.with_p(p)
                    # A trial updates the output file, which then names the rows of its split, and shows no progress.
                    # Its accuracy is that of the generative parameters, whatever the final search is followed by.
                    trial = replace(
                        options,
                        time_limit=seconds,
                        start=start,
                        trace=None,
                        log=None,
                        verbose=False,
                        parameters="ml",
                    )
                    try:
                        result = run(Job(trial_problem, train, trial, *engines[k], now, is_trial=True))
                    except NotSavedError as error:  # the final search tries to write again, and reports it
                        result = error.result
                    starved = start is not None and result.limit is Limit.TIME and result.structure == start
                    start = result.structure
                    tally = tallies.setdefault(k, Tally())
                    tally.add(result, held_out, starved)
                    if show:
                        _report(time.monotonic() - began, waiting, settings[k], tally)
                    if result.limit is Limit.USER:
                        raise KeyboardInterrupt
            if grid.halving and number + 1 < len(splits):
                left = _weight(source, splits[number + 1 :])
                alive = survivors(alive, {k: (tallies[k], settings[k]) for k in alive}, grid.by, left)
    except NoIncumbentError:
        if not tallies:
            raise
    except KeyboardInterrupt:
        if not tallies:
            raise
        interrupted = True
    trials = {k: tally.trial(settings[k]) for k, tally in tallies.items()}
    best = min(trials, key=lambda k: trials[k].rank(grid.by))
    return Selection(
        settings[best].p,
        settings[best].score.max_parents,
        protocol,
        tuple(trials.values()),
        tallies[best].incumbent,
        interrupted,
        grid.by,
        settings[best].options,
    )


def _shared(setting: Setting) -> tuple[Score, Discretisation | None]:
    """Return what settings have in common whose coefficients are the same: all but p."""
    score = setting.score if setting.p is None else replace(setting.score, gamma=None, p=None)
    return score, setting.discretisation


def _weight(source: Table | Dataset, splits: Sequence[Split]) -> float:
    """Return the weight of the held-out rows of some splits."""
    return float(sum(source.weights[held_out].sum() for _, held_out in splits))


def _report(seconds: float, waiting: int, setting: Setting, tally: Tally) -> None:
    trial = tally.trial(setting)
    LINE.keep(
        f"{seconds:8.1f}s  selection: {setting.describe()}: accuracy {100 * trial.accuracy:.2f} %, log-loss "
        f"{trial.log_loss:.4f}, {waiting} trials to go"
    )


def validation_parts(classes: NDArray[np.integer], random_state: int) -> list[Split]:
    """Return (training, validation) rows as in P12, section 6: one split if there are many rows, else folds."""
    if len(classes) > LARGE:
        return [validation_split(classes, VALIDATION_SHARE, random_state)]
    return stratified_folds(classes, min(FOLDS, len(classes)), random_state)


def validation_datasets(source: Table | Dataset, random_state: int) -> list[tuple[Dataset, Dataset]]:
    """Return the (training, validation) samples on which `choose` compares settings (P12, section 6).

    States and cuts of a table are learnt on the training rows of each split; a dataset keeps its own.

    Raises
    ------
    InputError
        If the training rows of a split have only one class.
    """
    return [_split(source, split) for split in _splits(source, random_state)[0]]


def _splits(source: Table | Dataset, random_state: int) -> tuple[list[Split], str]:
    """Return (training, validation) positions within the source, and how they were drawn."""
    if isinstance(source, Table):
        rows = source.train_indices
        classes = source.dataset(rows).y
    else:
        rows, classes = np.arange(source.n_samples), source.y
    parts = validation_parts(classes, random_state)
    # The classes of a table are learnt anew on the training rows of each split.
    if isinstance(source, Table) and any(len(np.unique(classes[train])) < 2 for train, _ in parts):
        raise InputError(
            f"{len(classes)} training rows are too few to choose by validation: the training rows of a split have one "
            "class only; give p and max_parents as numbers."
        )
    if len(parts) == 1:
        protocol = f"validation set of {100 * VALIDATION_SHARE:.0f} %"
    else:
        protocol = f"{len(parts)}-fold cross-validation"
    return [(rows[a], rows[b]) for a, b in parts], protocol


def _split(
    source: Table | Dataset, split: Split, discretisation: Discretisation | None = None
) -> tuple[Dataset, Dataset]:
    """Return the training and the held-out rows of a split. Cuts and states of a table come from its training rows."""
    train_rows, held_out_rows = split
    if isinstance(source, Dataset):
        return source.take(train_rows), source.take(held_out_rows)
    if discretisation is not None:
        source = replace(source, discretisation=discretisation)
    train = source.dataset(train_rows)
    return train, source.encode(train.variables, held_out_rows)


def solve_selected(
    data: Any,
    score: Score,
    *,
    p_values: Sequence[float] | None = P_GRID,
    max_parents_values: Sequence[int] = MAX_PARENTS_GRID,
    constraints: Constraints | None = None,
    subset: int | None = None,
    started: float | None = None,
    backend: str = "auto",
    acyclicity: str = "order",
    time_limit: float | None = None,
    gap_rel: float = 0.0,
    gap_abs: float = 0.0,
    threads: int | None = None,
    random_state: int = 0,
    start: Structure | None = None,
    warm_start: bool = True,
    root_bound: bool = True,
    root_only: bool = False,
    reduce: bool = True,
    merge: bool = True,
    solver_options: Mapping[str, str] | None = None,
    parameters: str = "ml",
    output: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    log: str | os.PathLike[str] | None = None,
    verbose: bool | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> Result:
    """Choose p and max_parents by validation, then solve on all training rows; see `select` and `solve`.

    Returns
    -------
    Result
        With the `Selection` as ``selection``.

    Raises
    ------
    NotSavedError
        If a file could not be written; its attribute ``result`` is the result, with the selection.
    """
    options = Options.among(locals())
    grid = Grid(p_values, max_parents_values)
    return maximise_selected(data, score, options, grid, constraints, subset=subset, started=started)


def maximise_selected(
    data: Any,
    score: Score,
    options: Options,
    grid: Grid,
    constraints: Constraints | None = None,
    *,
    subset: int | None = None,
    started: float | None = None,
) -> Result:
    """Do the same as `solve_selected`, with the options in one object and the values in another."""
    began = time.monotonic() if started is None else started
    Subset.of(subset)  # refuses an impossible size before the trials
    source = data if isinstance(data, Table | Dataset) else read_table(data)
    chosen = choose(source, score, options, grid, constraints, started=began)
    final, source = _chosen(grid, score, chosen, source)
    if options.start is None:
        options = replace(options, start=chosen.incumbent)
    if chosen.interrupted:
        # Long enough to score the chosen structure on all training rows, and to bound it.
        began = time.monotonic()
        options = replace(options, time_limit=INTERRUPTED_SECONDS)
    failures: list[str] = []
    try:
        result = maximise(source, final, options, constraints=constraints, subset=subset, started=began)
    except NotSavedError as error:
        failures, result = [str(error)], error.result
    if chosen.interrupted and result.reason is Reason.FEASIBLE:
        result = replace(result, limit=Limit.USER)
    result = replace(result, selection=chosen)
    if options.output is not None:
        try:
            result.save(options.output)
        except InputError as error:
            failures.append(str(error))
    if failures:
        raise NotSavedError(failures[0], result)
    return result


def _chosen(
    grid: Grid, score: Score, chosen: Selection, source: Table | Dataset
) -> tuple[Score, Table | Dataset]:
    """Return the score and the data of the chosen setting."""
    own = (chosen.p, chosen.max_parents, dict(chosen.options))
    setting = next(s for s in grid.settings(score) if (s.p, s.score.max_parents, dict(s.options)) == own)
    if setting.discretisation is not None and isinstance(source, Table):
        source = replace(source, discretisation=setting.discretisation)
    return setting.score, source

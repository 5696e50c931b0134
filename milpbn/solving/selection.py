"""Choice of gamma and max_parents by validation (Peharz and Pernkopf 2012, P12), before the final search."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.parts import Selection, Trial
from milpbn.claims.reasons import Limit, Reason
from milpbn.claims.result import NotSavedError, Result
from milpbn.data import Dataset, Table, read_table, stratified_folds, validation_split
from milpbn.data.dataset import UNKNOWN
from milpbn.data.folds import Split
from milpbn.errors import InputError, NoIncumbentError
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.forecast import require_room
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.registry import score_names
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.problem.subset import Subset
from milpbn.solving.api import maximise
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.solving.progress import wants_progress
from milpbn.solving.run import run
from milpbn.util.clock import SELECTION_SHARE
from milpbn.util.progress_line import LINE

#: Above this many training rows, one validation set decides, of this share of the rows; else cross-validation with this
#: many folds (P12).
LARGE, VALIDATION_SHARE, FOLDS = 1000, 0.2, 5
#: P12 chooses the number of parents from these.
MAX_PARENTS_GRID = (1, 2)
#: Seconds for each trial without a time limit.
TRIAL_SECONDS = 60.0
#: Seconds for the final search after the user has stopped the selection.
INTERRUPTED_SECONDS = 0.5


@dataclass(frozen=True)
class Grid:
    """The values to choose from.

    Attributes
    ----------
    p : sequence of float or None
        Values of p; None for scores without gamma, or to keep the value of the score.
    max_parents : sequence of int
        Values of max_parents.
    """

    p: Sequence[float] | None = P_GRID
    max_parents: Sequence[int] = MAX_PARENTS_GRID


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
) -> Selection:
    """Do the same as `select`, with the options in one object and the values in another."""
    began = time.monotonic() if started is None else started
    if grid.p is not None and not score.kind.takes("gamma"):
        those = " and ".join(score_names(lambda kind: kind.takes("gamma")))
        raise InputError(f"p belongs to the scores {those}, not to {score.name}; leave it out.")
    engine, version = checked_engine(options, score)
    source = data if isinstance(data, Table | Dataset) else read_table(data)
    splits, protocol = _splits(source, options.random_state)
    points: list[float | None] = [None] if grid.p is None else list(grid.p)
    limit = None if options.time_limit is None else began + SELECTION_SHARE * options.time_limit
    waiting = len(splits) * len(grid.max_parents) * len(points)

    show = wants_progress(options.verbose)
    tallies: dict[tuple[int, float | None], _Tally] = {}
    interrupted = False
    try:
        for train, held_out in _datasets(source, splits):
            if not constraints:
                # Refuse a problem that is too large before the first trial, not after the small ones.
                require_room(train.merged, replace(score, max_parents=max(grid.max_parents)))
            for max_parents in grid.max_parents:
                trial_score = replace(score, max_parents=max_parents)
                # The first trial may take all the time: without a trial there is nothing to choose from.
                deadline = limit if tallies else options.deadline(began)
                problem = build_problem(
                    train, trial_score, constraints, merge=options.merge, deadline=deadline
                )
                start = None
                for p in points:
                    now = time.monotonic()
                    seconds = TRIAL_SECONDS if limit is None else max(0.05, (limit - now) / waiting)
                    waiting -= 1
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
                        result = run(Job(trial_problem, train, trial, engine, version, now, is_trial=True))
                    except NotSavedError as error:  # the final search tries to write again, and reports it
                        result = error.result
                    start = result.structure
                    tally = tallies.setdefault((max_parents, p), _Tally())
                    tally.add(result, held_out)
                    if show:
                        _report(time.monotonic() - began, waiting, max_parents, p, tally)
                    if result.limit is Limit.USER:
                        raise KeyboardInterrupt
    except NoIncumbentError:
        if not tallies:
            raise
    except KeyboardInterrupt:
        if not tallies:
            raise
        interrupted = True
    trials = tuple(Trial(p, k, t.accuracy, t.proved, t.splits) for (k, p), t in tallies.items())
    best = min(trials, key=lambda trial: trial.rank)
    incumbent = tallies[best.max_parents, best.p].incumbent
    return Selection(best.p, best.max_parents, protocol, trials, incumbent, interrupted)


@dataclass
class _Tally:
    """Validation results of one pair of values, summed over the splits so far."""

    correct: float = 0.0
    total: float = 0.0
    proved: int = 0
    splits: int = 0
    incumbent: Structure | None = None

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    def add(self, result: Result, held_out: Dataset) -> None:
        self.total += float(held_out.weights.sum())
        self.proved += int(result.optimal)
        self.splits += 1
        self.incumbent = result.structure
        if result.classifier is not None:
            predicted = result.classifier.predict_log_joint(held_out).argmax(axis=1)
            correct = (predicted == held_out.y) & (held_out.y != UNKNOWN)
            self.correct += float(held_out.weights[correct].sum())


def _report(seconds: float, waiting: int, max_parents: int, p: float | None, tally: _Tally) -> None:
    values = f"max_parents = {max_parents}" + ("" if p is None else f", p = {p}")
    LINE.keep(
        f"{seconds:8.1f}s  selection: {values}: accuracy {100 * tally.accuracy:.2f} %, {waiting} trials to go"
    )


def validation_parts(classes: NDArray[np.integer], random_state: int) -> list[Split]:
    """Return (training, validation) rows as in P12, section 6: one split if there are many rows, else folds."""
    if len(classes) > LARGE:
        return [validation_split(classes, VALIDATION_SHARE, random_state)]
    return stratified_folds(classes, min(FOLDS, len(classes)), random_state)


def _splits(
    source: Table | Dataset, random_state: int
) -> tuple[list[tuple[NDArray[np.int64], NDArray[np.int64]]], str]:
    """Return (training, validation) positions within the source."""
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


def _datasets(
    source: Table | Dataset, splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> Iterator[tuple[Dataset, Dataset]]:
    for train_rows, held_out_rows in splits:
        if isinstance(source, Table):
            train = source.dataset(train_rows)
            yield train, source.encode(train.variables, held_out_rows)
        else:
            yield source.take(train_rows), source.take(held_out_rows)


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
    final = replace(score, max_parents=chosen.max_parents)
    if chosen.p is not None:
        final = replace(final, p=chosen.p, gamma=None)
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

"""P12's choice of gamma and max_parents by validation, before the final solve."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.registry import checked_backend
from milpbn.clock import SELECTION_SHARE
from milpbn.data import Dataset, Table, read_table, stratified_folds, validation_split
from milpbn.data.dataset import UNKNOWN
from milpbn.data.folds import Split
from milpbn.errors import InputError, NotSavedError
from milpbn.network.structure import Structure
from milpbn.options import Options
from milpbn.progress import wants_progress
from milpbn.result import Result
from milpbn.run import Run
from milpbn.scores.constraints import Constraints
from milpbn.scores.forecast import require_room
from milpbn.scores.problem import build_problem
from milpbn.scores.spec import P_GRID, Score, gamma_from_p
from milpbn.solving import solve

#: Above this many training rows one validation set of `VALIDATION_SHARE` decides, else cross-validation (P12).
LARGE, VALIDATION_SHARE, FOLDS = 1000, 0.2, 5
#: P12 chooses the number of parents from these.
MAX_PARENTS_GRID = (1, 2)
#: Without a time limit every trial gets so many seconds.
TRIAL_SECONDS = 60.0
#: Seconds for the answer after the user has stopped the selection.
INTERRUPTED_SECONDS = 2.0


@dataclass(frozen=True)
class Trial:
    """One pair of values.

    Attributes
    ----------
    p, max_parents : float or None, int
        The values tried (p is None for scores without gamma).
    accuracy : float
        Share of the validation weight classified correctly, over all splits.
    proved : int
        In how many splits the structure was proved optimal.
    splits : int
        In how many splits the values were tried.
    """

    p: float | None
    max_parents: int
    accuracy: float
    proved: int
    splits: int


@dataclass(frozen=True)
class Selection:
    """What was chosen, and everything that was tried.

    Attributes
    ----------
    p, max_parents : float or None, int
        The values with the highest accuracy; of equal ones fewer parents, then the smaller p.
    protocol : str
        ``validation set of 20 %`` or ``5-fold cross-validation``.
    trials : tuple of Trial
        In the order tried.
    incumbent : Structure or None
        The last split's structure at the chosen values, a start for the final solve.
    interrupted : bool
        The user stopped the selection: only the trials made by then count.
    """

    p: float | None
    max_parents: int
    protocol: str
    trials: tuple[Trial, ...]
    incumbent: Structure | None = None
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return {
            "p": self.p,
            "max_parents": self.max_parents,
            "protocol": self.protocol,
            "interrupted": self.interrupted,
            "trials": [vars(t) for t in self.trials],
        }


def select(
    data: Any,
    score: Score,
    *,
    p_values: Sequence[float] | None = P_GRID,
    max_parents_values: Sequence[int] = MAX_PARENTS_GRID,
    constraints: Constraints | None = None,
    started: float | None = None,
    **options: Any,
) -> Selection:
    """Choose p (that is gamma) and max_parents by accuracy on rows that did not train (P12, section 6).

    Cuts and states are learnt anew on the training rows of every split. The coefficients of a split are
    shared over all values of p, and the structure found for one p is where the next one starts.

    Parameters
    ----------
    data : Table, Dataset, or anything `read_table` reads
        Training rows.
    score : Score
        Everything but the values to choose.
    p_values : sequence of float or None
        Values of p; None for scores without gamma, or to keep the score's own.
    max_parents_values : sequence of int
        Values of max_parents.
    constraints : Constraints, optional
        What every structure has to obey.
    started : float, optional
        `time.monotonic` value from which the time limit counts.
    **options
        Attributes of `milpbn.options.Options`. Of a time limit the half goes to the selection.

    Returns
    -------
    Selection
    """
    began = time.monotonic() if started is None else started
    chosen = Options(**options)
    if p_values is not None and score.name not in ("sm", "sbm"):
        raise InputError(f"p belongs to the scores sm and sbm, not to {score.name}; leave it out.")
    backend, version = checked_backend(chosen, score)
    source = data if isinstance(data, Table | Dataset) else read_table(data)
    splits, protocol = _splits(source, chosen.random_state)
    points: list[float | None] = [None] if p_values is None else list(p_values)
    limit = None if chosen.time_limit is None else began + SELECTION_SHARE * chosen.time_limit
    waiting = len(splits) * len(max_parents_values) * len(points)

    show = wants_progress(chosen.verbose)
    tallies: dict[tuple[int, float | None], _Tally] = {}
    interrupted = False
    try:
        for train, held_out in _datasets(source, splits):
            if not constraints:
                # The largest problem is refused before the first trial, not after the small ones.
                require_room(train.merged, replace(score, max_parents=max(max_parents_values)))
            for max_parents in max_parents_values:
                own_score = replace(score, max_parents=max_parents)
                problem = build_problem(
                    train, own_score, constraints, merge=chosen.merge, deadline=chosen.deadline(began)
                )
                start = None
                for p in points:
                    now = time.monotonic()
                    seconds = TRIAL_SECONDS if limit is None else max(0.05, (limit - now) / waiting)
                    waiting -= 1
                    own = problem if p is None else problem.with_gamma(gamma_from_p(p))
                    trial = replace(chosen, time_limit=seconds, start=start, **_SILENT)
                    run = Run(own, train, trial, backend, version, constraints or Constraints(), now)
                    try:
                        result = run.result()
                    except NotSavedError as error:  # the final solve will say so, if it still is so
                        result = error.result
                    start = result.structure
                    tally = tallies.setdefault((max_parents, p), _Tally())
                    tally.add(result, held_out)
                    if show:
                        _report(time.monotonic() - began, waiting, max_parents, p, tally)
                    if result.limit == "user":
                        raise KeyboardInterrupt
    except KeyboardInterrupt:
        if not tallies:
            raise
        interrupted = True
    trials = tuple(Trial(p, k, t.accuracy, t.proved, t.splits) for (k, p), t in tallies.items())
    # Interrupted, the values that met the most splits compare best.
    best = min(trials, key=lambda t: (-t.splits, -round(t.accuracy, 12), t.max_parents, t.p or 0.0))
    incumbent = tallies[best.max_parents, best.p].incumbent
    return Selection(best.p, best.max_parents, protocol, trials, incumbent, interrupted)


#: A trial keeps the output file up to date, its training rows named in it, but its own progress is not shown.
_SILENT: dict[str, Any] = {"trace": None, "log": None, "verbose": False}


@dataclass
class _Tally:
    """Validation results of one pair of values, summed over the splits so far."""

    right: float = 0.0
    total: float = 0.0
    proved: int = 0
    splits: int = 0
    incumbent: Structure | None = None

    @property
    def accuracy(self) -> float:
        return self.right / self.total

    def add(self, result: Result, held_out: Dataset) -> None:
        self.total += float(held_out.weights.sum())
        self.proved += int(result.optimal)
        self.splits += 1
        self.incumbent = result.structure
        if result.classifier is not None:
            predicted = result.classifier.predict_log_joint(held_out).argmax(axis=1)
            right = (predicted == held_out.y) & (held_out.y != UNKNOWN)
            self.right += float(held_out.weights[right].sum())


def _report(seconds: float, waiting: int, max_parents: int, p: float | None, tally: _Tally) -> None:
    values = f"max_parents = {max_parents}" + ("" if p is None else f", p = {p}")
    print(
        f"{seconds:8.1f}s  selection: {values}: accuracy {100 * tally.accuracy:.2f} %, {waiting} trials to go",
        file=sys.stderr,
        flush=True,
    )


def validation_parts(classes: NDArray[np.integer], random_state: int) -> list[Split]:
    """Return (training, validation) rows as P12, section 6, has them: one split of many rows, else folds."""
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
    # A table's part learns its classes anew.
    if isinstance(source, Table) and any(len(np.unique(classes[train])) < 2 for train, _ in parts):
        raise InputError(
            f"{len(classes)} training rows are too few to choose by validation: a part of them has one class only; "
            "give p and max_parents as numbers."
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
    started: float | None = None,
    **options: Any,
) -> Result:
    """Choose p and max_parents by validation, then solve on all training rows; see `select` and `solve`.

    Returns
    -------
    Result
        With the `Selection` as ``selection``.

    Raises
    ------
    NotSavedError
        If a file could not be written; its result has the selection, too.
    """
    began = time.monotonic() if started is None else started
    source = data if isinstance(data, Table | Dataset) else read_table(data)
    chosen = select(
        source,
        score,
        p_values=p_values,
        max_parents_values=max_parents_values,
        constraints=constraints,
        started=began,
        **options,
    )
    final = replace(score, max_parents=chosen.max_parents)
    if chosen.p is not None:
        final = replace(final, gamma=gamma_from_p(chosen.p))
    if options.get("start") is None:
        options["start"] = chosen.incumbent
    if chosen.interrupted:
        # Only to score the chosen structure on all training rows, and to bound it.
        began = time.monotonic()
        options["time_limit"] = INTERRUPTED_SECONDS
    failures: list[str] = []
    try:
        result = solve(source, final, constraints=constraints, started=began, **options)
    except NotSavedError as error:
        failures, result = [str(error)], error.result
    if chosen.interrupted and result.reason == "feasible":
        result = replace(result, limit="user")
    result = replace(result, selection=chosen.to_dict())
    if options.get("output") is not None:
        try:
            result.save(options["output"])
        except InputError as error:
            failures.append(str(error))
    if failures:
        raise NotSavedError(failures[0], result)
    return result

"""Exact structures and other learners on one split, side by side: accuracy, score, gap and time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from itertools import accumulate
from operator import add
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.result import DataSummary, Gap
from milpbn.data.dataset import Dataset, dropped_notes, require_class
from milpbn.data.folds import validation_split
from milpbn.data.table import Table
from milpbn.errors import InputError
from milpbn.learners.appraisal import distance
from milpbn.learners.cells import SplitRows, in_order
from milpbn.learners.contestants import Contest, ContestOptions
from milpbn.learners.figures import Comparison
from milpbn.learners.finished import FinishedRows
from milpbn.learners.learning import Learning
from milpbn.learners.rows import ComparisonRow, reference_row
from milpbn.network.evaluation import labelled_rows, majority, unseen_classes
from milpbn.network.intervals import effective_rows
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.trials.executors import Inline, spread
from milpbn.trials.runner import INLINE, run_cells
from milpbn.util import interrupts
from milpbn.util.atomic import atomic_write_text, save_or_warn
from milpbn.util.jsonable import dump_json

#: Positions of rows.
IntArray: TypeAlias = NDArray[np.int64]
#: Share of the rows to test on, for data without test rows of their own.
TEST_SHARE = 0.3


def training_and_test_rows(
    source: Table, test_share: float | None = None, random_state: int = 0, *, raw: bool = False
) -> tuple[Dataset, Dataset | None]:
    """Return the data's own split, or a random one, stratified by class.

    Parameters
    ----------
    test_share : float, optional
        Share of the rows to test on, at least 0 (no test rows) and less than 1; by default `TEST_SHARE`.
    raw : bool
        Return `milpbn.learners.raw_rows.RawData`, for a comparison on raw columns.

    Raises
    ------
    InputError
        If the share is out of range, or is given for data that have test rows of their own.
    """
    if test_share is not None and not 0 <= test_share < 1:
        raise InputError(f"--test-share (test_share) must be at least 0 and less than 1, got {test_share}.")
    require_class(source, "A comparison")
    own = source.test_indices.size
    if test_share is not None and own:
        raise InputError(
            f"The data {source.name!r} have {own} test rows of their own, so --test-share (test_share) has no effect; "
            "leave it out, or split all rows anew with --split all."
        )
    share = TEST_SHARE if test_share is None else test_share
    if own or share == 0:
        train, rows, held = source.dataset("train"), source.train_indices, source.test_indices
    else:
        rows, held = validation_split(source.dataset("all").y, share, random_state)
        train = source.dataset(rows)
    test = source.encode(train.variables, held) if held.size else None
    return with_columns(source, (train, rows), (test, held)) if raw else (train, test)


def with_columns(
    source: Table, train: tuple[Dataset, IntArray], test: tuple[Dataset | None, IntArray]
) -> tuple[Dataset, Dataset | None]:
    """Return training and test samples with the rows of the table at these positions, which they code."""
    from milpbn.learners.raw_rows import RawData  # the modules of scikit-learn that only raw columns need

    held = None if test[0] is None else RawData.of(test[0], source, test[1])
    return RawData.of(train[0], source, train[1]), held


def with_differences(
    rows: Sequence[ComparisonRow], against: str | None, positive: int | None
) -> tuple[ComparisonRow, ...]:
    """Return rows of one split with the differences to one of them, as far as it is there.

    `positive` is the code of the class to detect, if it is one.
    """
    other = next((row.judged for row in rows if row.name == against and row.judged is not None), None)
    if other is None:
        return tuple(rows)
    return tuple(
        row
        if row.judged is None or row.name == against
        else replace(row, differences=row.judged.minus(other) | row.judged.ranked_minus(other, positive))
        for row in rows
    )


def compare(
    train: Dataset,
    test: Dataset | None,
    names: Sequence[str] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    dask: object = None,
    **how: Unpack[ContestOptions],
) -> Comparison:
    """Run one learner after the other on one split, and return all figures.

    Parameters
    ----------
    train : Dataset
        Training data.
    test : Dataset or None
        Test rows, encoded with the training data's variables.
    names : sequence of str
        Margin scores, whose structures are found by exact search, and learners; by default
        `milpbn.learners.contestants.names_by_default`.
    output : path-like, optional
        A JSON file that is updated after every learner.
    checkpoint : path-like, optional
        A file that keeps the figures of every learner that has finished: these do not run again. Exact searches and
        trainings by gradients go on where they were, from a file beside it, with what is left of their time limit.
    resume : bool
        Refuse to begin anew if there is no checkpoint yet.
    dask : str, Client or None
        Run each learner on a worker of a Dask cluster, with one thread: address or file of its scheduler, or a client.
        A learner that has not finished begins anew after a stop.
    score : mapping, optional
        Attributes of `Score` for the exact searches, without the name; p and gamma only for scores that take them.
    options : mapping of mappings, optional
        For each learner its options; those left out have their defaults.
    control : Control, optional
        Seed, threads, parameters, reports, and the time limit that each learner has for itself.
    against : str, optional
        The learner to which the others' differences are stated; by default the first.
    positive : str, optional
        The class to detect; by default the rarest of two. Of more classes, figures are means over all.
    raw : bool
        Compare recipes and users' classifiers on raw columns, those of `training_and_test_rows` with ``raw=True``.

    Returns
    -------
    Comparison
        An interrupt ends the comparison, which is returned with the figures so far; if there are none yet,
        KeyboardInterrupt is raised.

    Raises
    ------
    InputError
        As `compare_parts`; if a name or an option is unknown, out of range or without effect
        (`milpbn.learners.contestants.Contest`); if the checkpoint cannot be used.
    """
    asked = Contest(names, **how)
    contest, rarest_share = asked.detecting(train)
    data = train.sha256 if test is None else f"{train.sha256} {test.sha256}"
    finished = FinishedRows(checkpoint, asked.described(data), resume=resume)
    found = without_rows(
        train,
        contest,
        test_samples=0 if test is None else test.n_samples,
        effective_rows=None if test is None else effective_rows(test.weights),
        against=None if test is None else contest.against or contest.order[0],
        rarest_share=rarest_share,
        majority=None if test is None else majority(train, labelled_rows(test)),
    )
    if test is not None:
        found = replace(found, notes=(*found.notes, *unseen_classes(test.y, f"test rows of {test.name!r}")))
    with workers_for(contest, dask) as where:
        rows = compare_parts(
            SplitRows(1, [(train, test)].__getitem__), contest, finished=finished, where=where
        )
        listed = accumulate(([row] for _, row in rows), add)
        positive = contest.positive_code(train)
        steps = (replace(found, rows=with_differences(rows, found.against, positive)) for rows in listed)
        return last(found, steps, output)


def workers_for(contest: Contest, dask: object) -> AbstractContextManager[Inline]:
    """Return the context of where learners run: in this process, or on the workers of a Dask cluster."""
    return spread(1, dask, prepare=contest.on_worker().compile_kernels)


def without_rows(data: Dataset, contest: Contest, **others: Any) -> Comparison:
    """Return a comparison that has not begun; `others` are further attributes of it."""
    control = contest.control
    return Comparison(
        data=DataSummary.of(data),
        score=dict(contest.score or {}),
        time_limit=control.time_limit,
        random_state=control.random_state,
        parameters=control.parameters,
        positive=contest.positive,
        raw=contest.raw,
        notes=dropped_notes(data.notes),
        **others,
    )


def last(found: Comparison, steps: Iterator[Comparison], output: str | os.PathLike[str] | None) -> Comparison:
    """Return the last of the steps of a comparison, or `found` without any, and keep its JSON file up to date.

    An interrupt before the first step is raised, a later one ends the comparison. A warning says so if the file cannot
    be written.
    """
    try:
        with interrupts.deferred():
            for found in steps:
                if output is not None:
                    write = partial(atomic_write_text, output, dump_json(found.to_dict()))
                    save_or_warn(write, "The comparison")
    except KeyboardInterrupt:
        if not found.rows:
            raise
    return found


def compare_parts(
    parts: SplitRows,
    contest: Contest,
    *,
    finished: FinishedRows | None = None,
    where: Inline = INLINE,
) -> Iterator[tuple[int, ComparisonRow]]:
    """Run learners on all parts, and yield the number of the part and the figures of each learner in their order.

    On each part the exact searches come first. The first of them that has a bound is the reference (`reference_row`
    returns it): all structures are scored by its score, and all gaps are gaps to its bound.

    Parameters
    ----------
    finished : FinishedRows, optional
        Learners that have finished before are taken from it, and those that finish now are added.
    where : Inline or DaskWorkers
        Where learners run.

    Raises
    ------
    InputError
        If probability tables cannot be smoothed. If one learner fails or refuses the data, the error becomes the note
        of its row.
    """
    cells = [(number, name) for number in range(parts.count) for name in contest.order]
    kept = (FinishedRows(None, {}) if finished is None else finished).on(parts, contest.control)
    if where.in_turn:
        contest.compile_kernels()
    learning = Learning(contest, parts, kept) if where.in_turn else Learning(contest.on_worker(), parts)
    found = run_cells(cells, learning.learn, kept, where, stopping=contest.control.interrupted)
    so_far: dict[int, list[ComparisonRow]] = defaultdict(list)
    told = None if where.in_turn else contest.control.report  # workers report nothing themselves
    for (number, _), (row, structure, failed) in in_order(cells, found, told):
        so_far[number].append(row)
        if not failed and not contest.raw:
            row = _with_score(row, structure, parts[number][0], reference_row(so_far[number]))
        yield number, row


def _with_score(
    row: ComparisonRow, structure: Structure | None, train: Dataset, reference: ComparisonRow | None
) -> ComparisonRow:
    """Return a row with the score of the structure, its gap to the reference's bound, and the notes."""
    value, gap, notes = None, Gap(None, None, None), []
    if row.stopped_early:
        notes.append("stopped by the time limit")
    if structure is None:
        notes.append("not an acyclic graph over the variables, so without a score")
    elif reference is not None:
        score, bound = Score.from_dict(reference.details["score"]), reference.details["bound"]
        found = distance(train, structure, score, Constraints(), bound)
        value, gap = found.score, found.gap or gap
        notes += [found.reason] if found.reason else []
    return replace(
        row,
        score=value,
        gap=gap.absolute,
        relative_gap=gap.relative_to_bound,
        note="; ".join(filter(None, (*notes, row.note))),
    )

"""Exact structures and other learners on one split, side by side: accuracy, score, gap and time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from milpbn.claims.result import DataSummary, Gap, Result
from milpbn.data.dataset import Dataset, dropped_notes
from milpbn.data.folds import validation_split
from milpbn.data.table import Table
from milpbn.errors import InputError, MilpbnError
from milpbn.learners.appraisal import distance, share_right
from milpbn.learners.base import Control, Predictor
from milpbn.learners.contestants import DEFAULT, check_against, check_names, exact_scores, in_order
from milpbn.learners.figures import Comparison, ComparisonRow
from milpbn.learners.finished import FinishedPart, FinishedRows, Reference, described
from milpbn.learners.generative.closed_form import check_data
from milpbn.learners.judged import Judged, differences, intervals, means
from milpbn.learners.parameters import learn_with_parameters, note_on_parameters
from milpbn.learners.registry import get_learner
from milpbn.network.classifier import DESCRIBED
from milpbn.network.evaluation import unseen_classes
from milpbn.network.intervals import effective_rows
from milpbn.network.prior import Prior
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve  # whose first incumbent is one of these learners' structures
from milpbn.solving.engines.registry import automatic, get_engine
from milpbn.solving.warm_up import compile_all, count, tiny_data
from milpbn.util import interrupts
from milpbn.util.atomic import atomic_write_text, save_or_warn
from milpbn.util.checkpoints import seconds_of
from milpbn.util.clock import within
from milpbn.util.jsonable import dump_json
from milpbn.util.memory import exceeded

#: Share of the rows to test on, for data without test rows of their own.
TEST_SHARE = 0.3


def training_and_test_rows(
    source: Table, test_share: float | None = None, random_state: int = 0
) -> tuple[Dataset, Dataset | None]:
    """Return the data's own split, or a random one, stratified by class.

    Parameters
    ----------
    source : Table
        The data.
    test_share : float, optional
        Share of the rows to test on, at least 0 (no test rows) and less than 1; by default `TEST_SHARE`.
    random_state : int
        Seed of the split.

    Raises
    ------
    InputError
        If the share is out of range, or is given for data that have test rows of their own.
    """
    if test_share is not None and not 0 <= test_share < 1:
        raise InputError(f"--test-share (test_share) must be at least 0 and less than 1, got {test_share}.")
    own = source.test_indices.size
    if test_share is not None and own:
        raise InputError(
            f"The data {source.name!r} have {own} test rows of their own, so --test-share (test_share) has no effect; "
            "leave it out, or split all rows anew with --split all."
        )
    share = TEST_SHARE if test_share is None else test_share
    if own or share == 0:
        train = source.dataset("train")
        return train, source.encode(train.variables, "test") if own else None
    rows, held = validation_split(source.dataset("all").y, share, random_state)
    train = source.dataset(rows)
    return train, source.encode(train.variables, held)


def with_differences(rows: Sequence[ComparisonRow], against: str | None) -> tuple[ComparisonRow, ...]:
    """Return rows of one split with the differences to one of them, as far as it is there."""
    other = next((row.judged for row in rows if row.name == against and row.judged is not None), None)
    if other is None:
        return tuple(rows)
    return tuple(
        row
        if row.judged is None or row.name == against
        else replace(row, differences=differences(row.judged.values, other.values, other.weights))
        for row in rows
    )


def compare(
    train: Dataset,
    test: Dataset | None,
    names: Sequence[str] = DEFAULT,
    *,
    score: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    control: Control = Control(),
    against: str | None = None,
    output: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Comparison:
    """Run one learner after the other on one split, and return all figures.

    The parameters are those of `compare_each`, and besides:

    Parameters
    ----------
    against : str, optional
        The learner to which the others' differences are stated; by default the first.
    output : path-like, optional
        A JSON file that is updated after every learner.
    checkpoint : path-like, optional
        A file that keeps the figures of every learner that has finished. If it exists, the comparison goes on from it:
        these learners do not run again. Exact searches and trainings by gradients go on where they were, too, from a
        file beside it; their time limit is what is left of it.
    resume : bool
        Refuse to begin anew if there is no checkpoint yet.

    Returns
    -------
    Comparison
        An interrupt ends the comparison, which is returned with the figures so far; if there are none yet,
        KeyboardInterrupt is raised.

    Raises
    ------
    InputError
        As `compare_each`; if the checkpoint cannot be used.
    """
    check_names(names, options)
    check_against(names, against)
    rows = train.sha256 if test is None else f"{train.sha256} {test.sha256}"
    about = described(rows, names, score, options, control)
    finished = FinishedRows(checkpoint, about, resume=resume)
    found = without_rows(
        train,
        score,
        control,
        test_samples=0 if test is None else test.n_samples,
        effective_rows=None if test is None else effective_rows(test.weights),
        against=None if test is None else against or in_order(names)[0],
    )
    if test is not None:
        found = replace(found, notes=(*found.notes, *unseen_classes(test.y, f"test rows of {test.name!r}")))
    try:
        with interrupts.deferred():
            for row in compare_each(
                train,
                test,
                names,
                score=score,
                options=options,
                control=control,
                finished=finished.on(train, test),
            ):
                found = replace(found, rows=with_differences((*found.rows, row), found.against))
                save(found, output)
    except KeyboardInterrupt:
        if not found.rows:
            raise
    return found


def without_rows(
    data: Dataset, score: Mapping[str, Any] | None, control: Control, **others: Any
) -> Comparison:
    """Return a comparison that has not begun; `others` are further attributes of it."""
    return Comparison(
        data=DataSummary.of(data),
        score=dict(score or {}),
        time_limit=control.time_limit,
        random_state=control.random_state,
        parameters=control.parameters,
        notes=dropped_notes(data.notes),
        **others,
    )


def save(found: Comparison, output: str | os.PathLike[str] | None) -> None:
    """Write a comparison so far as JSON, if a file is named; a warning says so if it cannot be written."""
    if output is not None:
        save_or_warn(partial(atomic_write_text, output, dump_json(found.to_dict())), "The comparison")


def compare_each(
    train: Dataset,
    test: Dataset | None,
    names: Sequence[str] = DEFAULT,
    *,
    score: Mapping[str, Any] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    control: Control = Control(),
    rehearse: bool = True,
    finished: FinishedPart | None = None,
) -> Iterator[ComparisonRow]:
    """Run one learner after the other, and yield the figures of each as soon as they are known.

    The exact searches come first. The first of them that has a bound is the reference (`reference_row` returns it): all
    structures are scored by its score, and all gaps are gaps to its bound.

    Parameters
    ----------
    train : Dataset
        Training data.
    test : Dataset or None
        Test rows, encoded with the training data's variables.
    names : sequence of str
        Margin scores, whose structures are found by exact search, and learners.
    score : mapping, optional
        Attributes of `Score` for the exact searches, without the name; see `exact_scores`.
    options : mapping of mappings, optional
        For each learner its options; those left out have their defaults.
    control : Control
        Seed, threads, parameters, reports, and the time limit that each learner has for itself.
    rehearse : bool
        Whether to compile all kernels first.
    finished : FinishedPart, optional
        Learners that have finished before are taken from it, and those that finish now are added.

    Raises
    ------
    InputError
        See `check_names`. If one learner fails or refuses the data, the error becomes the note of its row.
    """
    check_names(names, options)
    for own in (options or {}).values():
        if own.get("smoothing") is not None:
            check_data(train, Prior(own["smoothing"]))
    exact = exact_scores(names, score or {})
    reference: Reference | None = None
    if rehearse:
        _compile(exact, names, options or {}, control)
    for name in in_order(names):
        if control.interrupted():
            return
        before = None if finished is None else finished.get(name, reference)
        if before is not None:
            control.report(f"{name} has finished before")
            bound = before.details.get("bound")
            if name in exact and reference is None and bound is not None:
                reference = Reference(name, exact[name], bound)
            yield before
            continue
        control.report(f"learning {name}")
        begun, earlier, own = time.monotonic(), reference, (options or {}).get(name, {})
        state, part = None if finished is None else finished.unfinished(name), control
        try:
            if state is not None:
                begun -= seconds_of(state)
            if control.time_limit is not None:
                left = begun + control.time_limit - time.monotonic()
                part = replace(control, time_limit=max(1e-9, left))
            stopping = part.watch()
            if name in exact:
                result = _solve(train, exact[name], part, state)
                if reference is None and result.bound is not None:
                    reference = Reference(name, exact[name], result.bound)
                predictor: Predictor | None = result.classifier  # None: nothing was found in time
                structure, stopped = result.structure, False
                values = result.to_dict()
                kept = ("score", "objective", "bound", "status", "parameters")
                details = {key: values[key] for key in kept} | {DESCRIBED: result.described_score}
            else:
                learner = get_learner(name)
                resumes = any(setting.name == "checkpoint" for setting in fields(learner))  # type: ignore[arg-type]
                going_on = {"checkpoint": str(state)} if resumes and state is not None else {}
                learned = learn_with_parameters(learner(**{**going_on, **own}), train, part)
                predictor, structure, details = learned.predictor, learned.structure, dict(learned.details)
                stopped = bool(details.get("stopped_early"))
        except Exception as error:
            note = str(error)
            if not isinstance(error, MilpbnError):
                note = f"failed unexpectedly ({type(error).__name__}: {error})"
            if finished is not None:
                finished.drop(name)
            yield ComparisonRow(name=name, seconds=time.monotonic() - begun, note=note, options=own)
            continue
        seconds = time.monotonic() - begun
        if predictor is None:
            yield ComparisonRow(
                name=name, seconds=seconds, note="nothing was found in time", options=own, details=details
            )
            continue
        value, gap, notes = None, Gap(None, None, None), ["stopped by the time limit"] if stopped else []
        if structure is None:
            notes.append("not an acyclic graph over the variables, so without a score")
        elif reference is not None:
            found = distance(train, structure, reference.score, Constraints(), reference.bound)
            value, gap = found.score, found.gap or gap
            notes += [found.reason] if found.reason else []
        judged = None if test is None else _judged(predictor, test, stopping)
        training, _ = share_right(predictor, train, stopping)
        if training is None:
            notes.append("accuracy not counted: the time was over")
        about = note_on_parameters(details)
        notes += [about] if about else []
        row = ComparisonRow(
            name=name,
            **({} if judged is None else means(judged.values, judged.weights)),
            training=training,
            intervals={} if judged is None else intervals(judged.values, judged.weights),
            arcs=None if structure is None else len(structure.arcs),
            parameters=getattr(predictor, "n_parameters", None),
            score=value,
            gap=gap.absolute,
            relative_gap=gap.relative_to_bound,
            seconds=seconds,
            stopped_early=stopped,
            note="; ".join(notes),
            options=own,
            details=details,
            judged=judged,
        )
        if finished is not None and not control.interrupted() and not exceeded():
            finished.add(row, earlier)
        yield row


def _judged(predictor: Predictor, test: Dataset, stopping: Callable[[], bool]) -> Judged | None:
    return within(lambda: Judged.of(predictor, test), stopping, name="milpbn-accuracy")


def _compile(
    exact: Collection[str], names: Sequence[str], options: Mapping[str, Mapping[str, Any]], control: Control
) -> None:
    """Compile the kernels of all searches and learners before the first time limit starts.

    Each learner runs once on a few rows for that. Its errors are ignored here: they occur again with the real data, and
    are reported then.
    """
    if exact:
        compile_all(lambda done, of: control.report(count(done, of)), control.interrupted)
    rehearsal = replace(control, time_limit=None, report=lambda line: None, parameters=None)
    for name in names:
        if name in exact or not get_learner(name).compiles or control.interrupted():
            continue
        # Without the user's checkpoint file, which must not contain the state of this rehearsal.
        own = {key: value for key, value in options.get(name, {}).items() if key != "checkpoint"}
        with suppress(Exception):
            get_learner(name)(**own).fit(tiny_data(), rehearsal)


def _solve(train: Dataset, score: Score, control: Control, state: Path | None) -> Result:
    resumes = get_engine(automatic("auto", score)).capabilities.resumes
    return solve(
        train,
        score,
        time_limit=control.time_limit,
        threads=control.n_jobs,
        random_state=control.random_state,
        verbose=False,
        interrupted=control.interrupted,
        parameters="ml" if control.parameters is None else control.parameters,
        checkpoint=state if resumes else None,
    )

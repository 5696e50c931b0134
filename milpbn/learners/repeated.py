"""Learners side by side over repeated stratified folds: means with intervals, and paired differences."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from milpbn.data.folds import repeated_folds
from milpbn.data.table import Table
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.comparison import compare_each, save, without_rows
from milpbn.learners.contestants import DEFAULT, check_against, check_names, in_order
from milpbn.learners.differences import corrected_interval, paired_parts
from milpbn.learners.figures import Comparison, ComparisonRow
from milpbn.learners.finished import FinishedRows, described
from milpbn.network.classifier import DESCRIBED
from milpbn.util import interrupts

#: Attributes of `ComparisonRow` that have intervals and differences.
FIGURES = ("test", "log_loss", "brier")
#: Attributes whose means are shown.
MEANS = (*FIGURES, "training", "arcs", "parameters", "score", "gap", "relative_gap", "seconds")


def compare_over_folds(
    source: Table,
    folds: int,
    repeats: int = 1,
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
    """Run every learner on every part of repeated stratified folds, and return means, intervals and differences.

    States and cuts are learnt from the training rows of each part. Intervals of means and of paired differences are
    those of the corrected resampled t-test (`milpbn.learners.differences.corrected_interval`).

    Parameters
    ----------
    source : Table
        Data without a split of their own.
    folds, repeats : int
        Number of folds, at least 2, and number of cross-validations; together at least 2 parts.
    names, score, options, control
        As for `milpbn.learners.comparison.compare_each`. Each learner has the whole time limit on each part.
    against : str, optional
        The learner to which the others' differences are stated; by default the first.
    output : path-like, optional
        A JSON file that is updated after every part.
    checkpoint, resume
        As for `milpbn.learners.comparison.compare`; the checkpoint keeps every learner on every part.

    Returns
    -------
    Comparison
        Its rows are the means over the parts on which the learner returned a classifier. An interrupt ends the
        comparison, which is returned with the complete parts so far; if there are none, KeyboardInterrupt is raised.

    Raises
    ------
    InputError
        If the data have test rows of their own, or an option is out of range; see `compare_each`. If a learner has a
        checkpoint of its own, which would be that of one part only.
    """
    if source.test_indices.size:
        raise InputError(
            f"The data {source.name!r} have {source.test_indices.size} test rows of their own, so --folds (folds) has "
            "no effect; leave it out, or split all rows anew with --split all."
        )
    check_names(names, options)
    check_against(names, against)
    for name, own in (options or {}).items():
        if own.get("checkpoint") is not None:
            raise InputError(
                f"--set {name}.checkpoint keeps one training, and over folds there are many; leave it out. The "
                "comparison's own --checkpoint (checkpoint) keeps every learner that has finished on a part."
            )
    whole = source.dataset("all")
    splits = repeated_folds(whole.y, folds, repeats, control.random_state)
    found = without_rows(
        whole,
        score,
        control,
        test_samples=whole.n_samples,
        folds=folds,
        repeats=repeats,
        parts_done=0,
        against=against or in_order(names)[0],
    )
    about = described(
        whole.sha256, names, score, options, control, **{"--folds": folds, "--repeats": repeats}
    )
    finished = FinishedRows(checkpoint, about, resume=resume)
    rows: dict[str, list[ComparisonRow]] = defaultdict(list)
    try:
        with interrupts.deferred():
            for number, (fit, held) in enumerate(splits):
                train = source.dataset(fit)
                test = source.encode(train.variables, held)
                part = replace(control, report=_numbered(control.report, number + 1, len(splits)))
                done = list(
                    compare_each(
                        train,
                        test,
                        names,
                        score=score,
                        options=options,
                        control=part,
                        rehearse=number == 0,
                        finished=finished.on(train, test),
                    )
                )
                if len(done) < len(in_order(names)):  # interrupted
                    raise KeyboardInterrupt
                for row in done:
                    rows[row.name].append(replace(row, judged=None))
                found = replace(
                    found,
                    parts_done=number + 1,
                    rows=pooled(
                        [rows[name] for name in rows], found.against, 1 / (folds - 1), whole.n_samples
                    ),
                )
                save(found, output)
    except KeyboardInterrupt:
        if not found.rows:
            raise
    return found


def _numbered(report: Callable[[str], None], number: int, of: int) -> Callable[[str], None]:
    return lambda line: report(f"part {number} of {of}: {line}")


def pooled(
    learners: Sequence[Sequence[ComparisonRow]], against: str | None, test_to_train: float, rows: int
) -> tuple[ComparisonRow, ...]:
    """Return the mean figures of each learner over the same parts, with intervals and differences.

    Parameters
    ----------
    learners : sequence of sequences of ComparisonRow
        For each learner its rows on all parts, in the same order.
    against : str or None
        The learner to which the differences are stated.
    test_to_train : float
        As for `corrected_interval`.
    rows : int
        Number of rows of the data.
    """
    others = next((parts for parts in learners if parts[0].name == against), ())
    return tuple(_pooled(parts, others, test_to_train, rows) for parts in learners)


def _pooled(
    parts: Sequence[ComparisonRow], others: Sequence[ComparisonRow], test_to_train: float, rows: int
) -> ComparisonRow:
    first = parts[0]
    figures: dict[str, Any] = {key: _mean([getattr(part, key) for part in parts]) for key in MEANS}
    intervals, differences = {}, {}
    for key in FIGURES:
        own = [getattr(part, key) for part in parts]
        present = [value for value in own if value is not None]
        if len(present) > 1:
            low, high = corrected_interval(present, test_to_train)
            intervals[key] = (max(0.0, low), min(1.0, high) if key == "test" else high)
        theirs = [getattr(part, key) for part in others]
        both = [(a, b) for a, b in zip(own, theirs, strict=False) if a is not None and b is not None]
        if first.name != (others[0].name if others else None) and len(both) > 1:
            ours, theirs = [a for a, _ in both], [b for _, b in both]
            differences[key] = paired_parts(ours, theirs, test_to_train, rows)
    bounds = [part.details.get("bound") for part in parts]
    known = [bound for bound in bounds if bound is not None]
    exact = len(known) == len(parts) and "score" in first.details
    return ComparisonRow(
        name=first.name,
        **figures,
        intervals=intervals,
        differences=differences,
        stopped_early=any(part.stopped_early for part in parts),
        note=_note(parts),
        options=first.options,
        details={**_score(first.details), "bound": float(np.mean(known))} if exact else {},
        parts=tuple(parts),
    )


def _score(details: Mapping[str, Any]) -> dict[str, Any]:
    return {key: details[key] for key in ("score", DESCRIBED) if key in details}


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


def _note(parts: Sequence[ComparisonRow]) -> str:
    """Return the clauses of all parts' notes, each once, with the number of parts that have it if not all do."""
    counts: dict[str, int] = defaultdict(int)
    for part in parts:
        for clause in filter(None, part.note.split("; ")):
            counts[clause] += 1
    return "; ".join(
        note if count == len(parts) else f"{note} (in {count} of {len(parts)} parts)"
        for note, count in counts.items()
    )

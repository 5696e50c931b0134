"""Learners side by side over repeated stratified folds: means with intervals, and paired differences."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, dropped_notes, require_class
from milpbn.data.folds import Split, repeated_folds
from milpbn.data.table import Table
from milpbn.errors import InputError
from milpbn.learners.cells import SplitRows
from milpbn.learners.comparison import compare_parts, last, with_columns, without_rows, workers_for
from milpbn.learners.contestants import Contest, ContestOptions
from milpbn.learners.figures import Comparison
from milpbn.learners.finished import FinishedRows
from milpbn.learners.rows import ComparisonRow
from milpbn.network.classifier import DESCRIBED
from milpbn.network.discrimination import NAMES
from milpbn.network.evaluation import majority, unseen_classes
from milpbn.network.intervals import Interval, effective_rows, wilson_interval
from milpbn.trials.differences import Difference, corrected_interval, paired_parts, paired_shares
from milpbn.trials.judged import LARGEST, Judged

#: Attributes of `ComparisonRow` that have intervals and differences.
FIGURES = ("test", "unweighted", "log_loss", "brier", *NAMES)
#: Those that are shares of correctly classified rows.
SHARES = ("test", "unweighted")
#: Attributes whose means are shown.
MEANS = (*FIGURES, "training", "arcs", "parameters", "score", "gap", "relative_gap", "seconds")


def compare_over_folds(
    source: Table,
    folds: int,
    repeats: int = 1,
    names: Sequence[str] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    dask: object = None,
    **how: Unpack[ContestOptions],
) -> Comparison:
    """Run every learner on every part of repeated stratified folds, and return means, intervals and differences.

    States and cuts are learnt from the training rows of each part. Intervals of means and of paired differences are
    those of the corrected resampled t-test (`milpbn.trials.differences.corrected_interval`). Where weights differ,
    few rows may decide, of which a part has hardly any; then the intervals also contain those of the rows, each with
    the mean of what it gives in all repetitions.

    Parameters
    ----------
    source : Table
        Data without a split of their own.
    folds, repeats : int
        Number of folds, at least 2, and number of cross-validations; together at least 2 parts.
    output : path-like, optional
        A JSON file that is updated after every part.
    names, checkpoint, resume, dask, score, options, control, against, positive, raw
        As for `milpbn.learners.comparison.compare`. The checkpoint keeps every learner on every part, and the time
        limit is that of each learner on each part.

    Returns
    -------
    Comparison
        Its rows are the means over the parts on which the learner returned a classifier. An interrupt ends the
        comparison, which is returned with the complete parts so far; if there are none, KeyboardInterrupt is raised.

    Raises
    ------
    InputError
        If the data have test rows of their own, or an option is out of range; see `compare`. If a learner has a
        checkpoint of its own, which would be that of one part only.
    """
    if source.test_indices.size:
        raise InputError(
            f"The data {source.name!r} have {source.test_indices.size} test rows of their own, so --folds (folds) has "
            "no effect; leave it out, or split all rows anew with --split all."
        )
    asked = Contest(names, **how)
    for name in asked.names:
        if asked.options_of(name).get("checkpoint") is not None:
            raise InputError(
                f"--set {name}.checkpoint keeps one training, and over folds there are many; leave it out. The "
                "comparison's own --checkpoint (checkpoint) keeps every learner that has finished on a part."
            )
    require_class(source, "A comparison")
    whole = source.dataset("all")
    contest, rarest_share = asked.detecting(whole)
    splits = repeated_folds(whole.y, folds, repeats, contest.control.random_state)
    found = without_rows(
        whole,
        contest,
        test_samples=whole.n_samples,
        effective_rows=effective_rows(whole.weights),
        folds=folds,
        repeats=repeats,
        parts_done=0,
        against=contest.against or contest.order[0],
        rarest_share=rarest_share,
        majority=majority(whole, whole),
    )
    about = asked.described(whole.sha256, **{"--folds": folds, "--repeats": repeats})
    finished = FinishedRows(checkpoint, about, resume=resume)
    with workers_for(contest, dask) as where:
        parts = SplitRows(len(splits), partial(_fold, source, splits, raw=contest.raw))
        rows = compare_parts(parts, contest, finished=finished, where=where)
        return last(found, _means(whole, splits, contest, parts, rows, found), output)


def _fold(
    source: Table, splits: Sequence[Split], number: int, *, raw: bool
) -> tuple[Dataset, Dataset | None]:
    """Return the training and the test rows of a part, with states and cuts learnt on the training rows."""
    fit, held = splits[number]
    train = source.dataset(fit)
    test = source.encode(train.variables, held)
    return with_columns(source, (train, fit), (test, held)) if raw else (train, test)


def _means(
    whole: Dataset,
    splits: Sequence[Split],
    contest: Contest,
    parts: SplitRows,
    listed: Iterator[tuple[int, ComparisonRow]],
    found: Comparison,
) -> Iterator[Comparison]:
    """Yield the comparison after every part that all learners have finished, and all parts before it."""
    rows: dict[str, list[ComparisonRow]] = defaultdict(list)
    tested: list[NDArray[np.int32]] = []
    assert found.folds is not None
    pooled = Parts(1 / (found.folds - 1), whole.n_samples, whole.weights, [held for _, held in splits])
    for number, of_part in groupby(listed, key=lambda pair: pair[0]):
        done = [row for _, row in of_part]
        if number > found.parts_done or len(done) < len(contest.order):
            break
        for row in done:
            rows[row.name].append(row if found.effective_rows is not None else replace(row, judged=None))
        test = parts[number][1]
        assert test is not None
        tested.append(test.y)
        found = replace(
            found,
            parts_done=number + 1,
            notes=(
                *dropped_notes(whole.notes),
                *unseen_classes(np.concatenate(tested), "test rows, over all parts,"),
            ),
            rows=pooled.means(list(rows.values()), found.against),
        )
        yield found
    if found.parts_done < len(splits):
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Parts:
    """The parts over which figures are averaged."""

    #: As for `corrected_interval`.
    test_to_train: float
    #: Number of rows of the data.
    rows: int
    #: Weights of all rows. Shape (M,), or None.
    weights: NDArray[np.float64] | None = None
    #: Test rows of each part. They are looked at where the parts say what the learners do with them.
    held: Sequence[NDArray[np.int64]] = ()

    def means(
        self, learners: Sequence[Sequence[ComparisonRow]], against: str | None
    ) -> tuple[ComparisonRow, ...]:
        """Return the mean figures of each learner, with intervals and with the differences to one of them.

        Every learner has a row on each part, in the same order.
        """
        others = next((parts for parts in learners if parts[0].name == against), ())
        return tuple(self._mean(parts, others) for parts in learners)

    def _mean(self, parts: Sequence[ComparisonRow], others: Sequence[ComparisonRow]) -> ComparisonRow:
        first = parts[0]
        figures: dict[str, Any] = {key: _mean([getattr(part, key) for part in parts]) for key in MEANS}
        found, compared = {}, {}
        of_rows, differing = self._of_rows(parts, others)
        for key in FIGURES:
            own = [getattr(part, key) for part in parts]
            present = [value for value in own if value is not None]
            if len(present) > 1:
                low, high = _around(corrected_interval(present, self.test_to_train), of_rows.get(key))
                if low == high and key in SHARES:  # that all parts agree says no more than their rows do
                    low, high = wilson_interval(low, self.rows)
                least = -1.0 if key == "matthews" else 0.0
                found[key] = max(least, low), min(1.0 if key in NAMES else LARGEST.get(key, np.inf), high)
            theirs = [getattr(part, key) for part in others]
            both = [(a, b) for a, b in zip(own, theirs, strict=False) if a is not None and b is not None]
            if first.name != (others[0].name if others else None) and len(both) > 1:
                ours, theirs = [a for a, _ in both], [b for _, b in both]
                difference = paired_parts(ours, theirs, self.test_to_train, self.rows)
                if difference.low == difference.high and key in SHARES:
                    difference = _of_equal_parts(difference)
                if key in differing:
                    of_key = differing[key].low, differing[key].high
                    least, most = _around((difference.low, difference.high), of_key)
                    effective = None if self.weights is None else effective_rows(self.weights)
                    difference = replace(difference, low=least, high=most, effective_rows=effective)
                compared[key] = difference
        bounds = [part.details.get("bound") for part in parts]
        known = [bound for bound in bounds if bound is not None]
        exact = len(known) == len(parts) and "score" in first.details
        return ComparisonRow(
            name=first.name,
            **figures,
            intervals=found,
            differences=compared,
            stopped_early=any(part.stopped_early for part in parts),
            note=_note(parts),
            options=first.options,
            details={**_score(first.details), "bound": float(np.mean(known))} if exact else {},
            parts=tuple(replace(part, judged=None) for part in parts),
        )

    def _of_rows(
        self, parts: Sequence[ComparisonRow], others: Sequence[ComparisonRow]
    ) -> tuple[dict[str, Interval], dict[str, Difference]]:
        """Return the intervals of the rows, of a learner's weighted figures, and its differences on the rows."""
        ours = [part.judged for part in parts]
        theirs = [part.judged for part in others]
        alone = self._by_row(ours, ours)
        if alone is None:
            return {}, {}
        one, other = self._by_row(ours, theirs), self._by_row(theirs, ours)
        found, differing = alone.intervals(), {} if one is None or other is None else one.minus(other)
        found.pop("unweighted", None)
        differing.pop("unweighted", None)
        return found, differing

    def _by_row(self, judged: Sequence[Judged | None], beside: Sequence[Judged | None]) -> Judged | None:
        """Return each tested row's mean over the parts in which both are known; None without any."""
        if self.weights is None:
            return None
        sums: dict[str, NDArray[np.float64]] = {}
        times = np.zeros(len(self.weights))
        for held, one, other in zip(self.held, judged, beside, strict=False):
            if one is not None and other is not None:
                times[held] += 1
                for key, values in one.values.items():
                    sums.setdefault(key, np.zeros(len(times)))[held] += values
        tested = times > 0
        if not tested.any():
            return None
        found = {key: values[tested] / times[tested] for key, values in sums.items()}
        return Judged(self.weights[tested], found["test"], found.get("log_loss"), found.get("brier"))


def _of_equal_parts(found: Difference) -> Difference:
    """Return a difference that all parts share, with the interval of as few discordant rows as it takes."""
    gained = np.arange(found.rows) < round(abs(found.value) * found.rows)
    by_rows = paired_shares(gained * np.sign(found.value), np.zeros(found.rows), np.ones(found.rows))
    return replace(found, low=by_rows.low, high=by_rows.high)


def _around(interval: Interval, other: Interval | None) -> Interval:
    """Return the interval from the lower of both ends to the higher."""
    if other is None:
        return interval
    return min(interval[0], other[0]), max(interval[1], other[1])


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
    found = []
    # The clauses of one sentence are neighbours with the same count.
    for count, clauses in groupby(counts, key=counts.__getitem__):
        note = "; ".join(clauses)
        found.append(note if count == len(parts) else f"{note} (in {count} of {len(parts)} parts)")
    return "; ".join(found)

"""One cell of a comparison: a learner learns on one part, and is judged on its test rows."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import MilpbnError
from milpbn.learners.appraisal import share_right
from milpbn.learners.base import Control, Predictor, solver_limits
from milpbn.learners.cells import LearnerCell, Learnt, SplitRows
from milpbn.learners.contestants import Contest
from milpbn.learners.finished import FinishedParts
from milpbn.learners.generative.closed_form import check_data
from milpbn.learners.parameters import learn_with_parameters, note_on_parameters
from milpbn.learners.rows import ComparisonRow
from milpbn.network.classifier import DESCRIBED
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve  # whose first incumbent is one of these learners' structures
from milpbn.solving.engines.registry import automatic, get_engine
from milpbn.trials.judged import Judged
from milpbn.util.budget import Budget
from milpbn.util.checkpoints import seconds_of
from milpbn.util.clock import within


@dataclass(frozen=True, eq=False)
class Learning:
    """What all cells of a comparison have in common; pickled once for every worker.

    `kept` says where learners that can go on after a stop keep their state; workers keep none.
    """

    contest: Contest
    parts: SplitRows
    kept: FinishedParts | None = None

    def learn(self, cell: LearnerCell) -> Learnt:
        """Learn with one learner on one part; without a classifier, the note of the row says why there is none."""
        number, name = cell
        (train, test), own = self.parts[number], self.contest.options_of(name)
        control = self.parts.control(self.contest.control, number)
        if own.get("smoothing") is not None:
            check_data(train, Prior(own["smoothing"]))
        control.report(f"learning {name}")
        begun, state = time.monotonic(), None if self.kept is None else self.kept.unfinished(cell)
        try:
            if state is not None:
                begun -= seconds_of(state)
            budget = Budget(control.time_limit, began=begun, cancelled=control.interrupted)
            contest = replace(self.contest, control=control)
            predictor, structure, details = _learn(contest, name, train, budget, state)
        except Exception as error:
            note = str(error)
            if not isinstance(error, MilpbnError):
                note = f"failed unexpectedly ({type(error).__name__}: {textwrap.shorten(str(error), 300)})"
            if self.kept is not None:
                self.kept.drop(cell)
            row = ComparisonRow(name=name, seconds=time.monotonic() - begun, note=note, options=own)
            return Learnt(row, failed=True)
        row = ComparisonRow(
            name=name,
            seconds=time.monotonic() - begun,
            stopped_early=bool(details.get("stopped_early")),
            gap=details.get("gap"),
            options=own,
            details=details,
        )
        if predictor is None:
            return Learnt(replace(row, note="nothing was found in time"), failed=True)
        row = replace(row, arcs=None if structure is None else len(structure.arcs))
        positive = self.contest.positive_code(train)
        return Learnt(_with_accuracy(row, predictor, train, test, budget, positive), structure)


def _learn(
    contest: Contest, name: str, train: Dataset, budget: Budget, state: Path | None
) -> tuple[Predictor | None, Structure | None, Mapping[str, Any]]:
    """Learn with one learner, or search for the best structure by one score; see `Learned`.

    Without a predictor nothing was found in time.
    """
    control = contest.control
    if name in contest.exact:
        result = _solve(train, contest.exact[name], control, budget, state)
        values = result.to_dict()
        kept = ("score", "objective", "bound", "status", "parameters")
        details = {key: values[key] for key in kept} | {DESCRIBED: result.described_score}
        return result.classifier, result.structure, details
    kind = contest.learner(name)
    resumes = any(setting.name == "checkpoint" for setting in fields(kind))  # type: ignore[arg-type]
    going_on = {"checkpoint": str(state)} if resumes and state is not None else {}
    learner = kind(**{**going_on, **contest.options_of(name)})
    learned = learn_with_parameters(learner, train, control, budget)
    return learned.predictor, learned.structure, learned.details


def _with_accuracy(
    row: ComparisonRow,
    predictor: Predictor,
    train: Dataset,
    test: Dataset | None,
    budget: Budget,
    positive: int | None,
) -> ComparisonRow:
    """Return a row with what the predictor does on training and test rows, as far as there is time, and notes."""
    judged = None
    if test is not None:
        judged = within(lambda: Judged.of(predictor, test), budget.over, name="milpbn-accuracy")
    training, _ = share_right(predictor, train, budget)
    values, intervals = ({}, {}) if judged is None else judged.detection(positive)
    late = "accuracy not counted: the time was over" if training is None else ""
    return replace(
        row,
        **({} if judged is None else judged.means() | values),
        training=training,
        intervals={} if judged is None else judged.intervals() | intervals,
        parameters=getattr(predictor, "n_parameters", None),
        note="; ".join(filter(None, (late, note_on_parameters(row.details)))),
        judged=judged,
    )


def _solve(train: Dataset, score: Score, control: Control, budget: Budget, state: Path | None) -> Result:
    resumes = get_engine(automatic("auto", score)).capabilities.resumes
    return solve(
        train,
        score,
        **solver_limits(budget),
        threads=control.n_jobs,
        random_state=control.random_state,
        verbose=False,
        parameters="ml" if control.parameters is None else control.parameters,
        checkpoint=state if resumes else None,
    )

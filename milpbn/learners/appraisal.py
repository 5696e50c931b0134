"""Learning with one learner: its classifier, the accuracy, and the gap between its structure and a proven bound."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from milpbn.claims.result import DataSummary, Gap, Result
from milpbn.data.dataset import Dataset, dropped_notes
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, require_used
from milpbn.learners.parameters import learn_with_parameters
from milpbn.network.evaluation import accuracies, unseen_classes
from milpbn.network.parameters.record import ParameterFit, recorded
from milpbn.network.predictor import Predictor
from milpbn.network.structure import Structure
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints
from milpbn.problem.gate import objection
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.util import interrupts
from milpbn.util.budget import Budget
from milpbn.util.clock import within
from milpbn.util.jsonable import json_safe
from milpbn.version import __version__


@dataclass(frozen=True)
class Suboptimality:
    """The score of a structure, and its gap to a proven bound."""

    #: The structure's score in nats, with the options of the bound's score and Laplace-smoothed maximum-likelihood
    #: parameters.
    score: float
    #: Upper bound in nats on the score of every structure over the candidate parent sets that obeys the constraints.
    bound: float
    #: The gap between the two; None if the bound does not hold for the structure.
    gap: Gap | None
    #: Why there is no gap, as a clause; empty if there is one.
    reason: str = ""


def check_bound(data: Dataset, result: Result, where: str) -> float:
    """Return the bound of a result of the same data; see `suboptimality`."""
    if result.subset is not None and result.bound is None:
        raise InputError(
            f"The result {where} is of a search over {result.subset.samples} representative samples: its bound holds "
            "for their score, not for the score of all data; solve without --subset (subset)."
        )
    if result.screened is not None:
        raise InputError(
            f"The result {where} is of a search over {result.screened.n_kept} of {result.screened.total} candidate "
            "parent sets: its bound holds for structures of these only; solve without --screen (screen)."
        )
    if result.bound is None:
        raise InputError(f"The result {where} contains no bound; solve again with a longer time limit.")
    if data.sha256 != result.data.sha256:
        raise result.data.refusal(result.request)
    return result.bound


def suboptimality(data: Dataset, structure: Structure, result: Result, where: str) -> Suboptimality:
    """Compute a structure's score by the score of a result, and its gap to the result's bound.

    The result is called `where` in messages, such as "'result.json'".

    Raises
    ------
    InputError
        If the result has no bound, or is of other data.
    """
    return distance(data, structure, result.score, result.constraints, check_bound(data, result, where))


def distance(
    data: Dataset, structure: Structure, score: Score, constraints: Constraints, bound: float
) -> Suboptimality:
    """Compute a structure's score, and its gap to a bound in nats on the score of all structures under constraints."""
    value = rescore(data, structure, score, constraints)
    # Unless the bound is about a class of structures, a class-free set that is no candidate scores no more than one.
    reason = objection(structure, score, constraints, any_class_free=not among(score, constraints)) or ""
    if not reason and not math.isfinite(value):
        reason = f"{score.name} has no finite value for it"
    gap = None if reason else Gap.between(value, bound)
    return Suboptimality(value, bound, gap, reason)


@dataclass(frozen=True, kw_only=True, eq=False)
class Appraisal:
    """The result of a learner on some data, with accuracies and gap."""

    learner: str
    #: The given options of the learner; the others have their defaults.
    options: Mapping[str, Any]
    learned: Learned
    data: DataSummary
    class_name: str
    #: Share of the weight of the training and test rows that is classified correctly; None without test rows, or if the
    #: time limit ended before the rows were classified.
    training: float | None
    test: float | None
    #: The same if every row counts once; None where all weights are equal.
    unweighted: tuple[float | None, float | None]
    test_samples: int
    #: Score and gap of the structure; None without a bound or without a structure.
    suboptimality: Suboptimality | None
    #: Wall-clock time of learning, and of the whole call.
    learning_seconds: float
    seconds: float
    random_state: int
    #: Whether the user stopped the learner.
    interrupted: bool
    #: Sentences on training rows that were dropped, and on test rows of a class that training lacks, with numbers.
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> ParameterFit | None:
        """How the structure got parameters that are not the learner's own; None without them."""
        return recorded(self.learned.details)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, under the keys of ``result.json`` where it has them."""
        structure, found = self.learned.structure, self.suboptimality
        details = {key: value for key, value in self.learned.details.items() if key != "parameters"}
        document = {
            "version": __version__,
            "learner": {"name": self.learner, **self.options},
            "data": asdict(self.data),
            "structure": None if structure is None else structure.to_mapping(),
            "class": self.class_name,
            "accuracy": {"training": self.training, "test": self.test},
            "unweighted_accuracy": dict(zip(("training", "test"), self.unweighted, strict=True)),
            "objective": None if found is None else found.score,
            "bound": None if found is None else found.bound,
            "gap": None if found is None or found.gap is None else asdict(found.gap),
            "details": details,
            "parameters": self.learned.details.get("parameters"),
            "seconds": {"learn": self.learning_seconds, "total": self.seconds},
            "seed": self.random_state,
            "notes": list(self.notes),
        }
        return dict(json_safe(document))


def appraise(
    learner: type[Learner],
    train: Dataset,
    test: Dataset | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    result: Result | None = None,
    where: str = "given",
    control: Control = Control(),
    started: float | None = None,
) -> Appraisal:
    """Learn a classifier, measure its accuracy, and compute its structure's gap to a bound.

    Parameters
    ----------
    learner : type of Learner
        The class of the learner; `milpbn.learners.registry.get_learner` finds it by name.
    test : Dataset, optional
        Test rows, encoded with the training data's variables.
    options : mapping, optional
        Options of the learner; those left out have their defaults.
    result : Result, optional
        A result on the same data, with whose bound the structure's score is compared.
    where : str
        Name of the result in messages, such as "'result.json'".
    control : Control
        Settings of the run. The time limit covers learning and the accuracies; accuracies that are not ready by then
        are None. Other parameters than the learner's change the accuracy, but not the score of the structure.
    started : float, optional
        `time.monotonic` value from which the seconds of the whole call count; by default now.

    Raises
    ------
    InputError
        If the options or the data do not fit the learner, or the result has no bound for these data.
    NoIncumbentError
        If the time limit ends before the learner has a result.
    """
    begun = time.monotonic()
    method = learner(**(options or {}))
    require_used(method, options or {})
    if control.parameters is not None and not learner.is_network:
        raise InputError(
            f"The model of {learner.name} is not a Bayesian network over the variables, so that it cannot get other "
            "parameters; leave --parameters (parameters) out."
        )
    if result is not None:
        check_bound(train, result, where)
    budget = control.budget()
    with interrupts.deferred():
        learned = learn_with_parameters(method, train, control, budget)
        learning_seconds, interrupted = time.monotonic() - begun, control.interrupted()
        shares = [share_right(learned.predictor, rows, budget) for rows in (train, test)]
    seconds = time.monotonic() - (begun if started is None else started)
    found = None
    if result is not None and learned.structure is not None:
        found = suboptimality(train, learned.structure, result, where)
    return Appraisal(
        learner=learner.name,
        options=dict(options or {}),
        learned=learned,
        data=DataSummary.of(train),
        class_name=train.names[-1],
        notes=(
            *dropped_notes(train.notes),
            *(() if test is None else unseen_classes(test.y, f"test rows of {test.name!r}")),
        ),
        training=shares[0][0],
        test=shares[1][0],
        unweighted=(shares[0][1], shares[1][1]),
        test_samples=0 if test is None else test.n_samples,
        suboptimality=found,
        learning_seconds=learning_seconds,
        seconds=seconds,
        random_state=control.random_state,
        interrupted=interrupted,
    )


def share_right(
    predictor: Predictor, data: Dataset | None, budget: Budget
) -> tuple[float | None, float | None]:
    """Return `milpbn.network.evaluation.accuracies`; None without rows, or if the budget ends before they are known."""
    if data is None:
        return None, None
    return within(lambda: accuracies(predictor, data), budget.over, name="milpbn-accuracy") or (None, None)

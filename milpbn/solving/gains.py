"""What each feature and each arc of a structure adds to the score, and what other arcs can make up for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from milpbn.claims.parts import ResultPart
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError, NoIncumbentError
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import maximise
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.util import stages
from milpbn.util.budget import Budget


@dataclass(frozen=True)
class FeatureGain(ResultPart):
    """What a feature is worth to the score of a structure."""

    variable: str
    #: The structure's score minus its score without all arcs from and to the feature, in nats; exact.
    gain: float
    #: The structure's score minus the best score of any structure without arcs from and to the feature lies between
    #: these two, in nats: what other arcs cannot make up for. Equal if a search proved the best one; None without a
    #: search, or if the constraints require an arc of the feature.
    least: float | None = None
    most: float | None = None


def feature_gains(
    question: Question,
    structure: Structure,
    options: Options,
    *,
    seconds: float = 0.0,
    bound: float | None = None,
) -> tuple[FeatureGain, ...]:
    """Return what every feature with arcs is worth to a structure's score on a dataset, the most valuable first.

    All searches for the best structures without a feature take at most so many `seconds`, wall-clock; each gets an
    equal share of what is left. With 0 there are none. A search without a proof still gives valid bounds. The upper
    `bound` on the score of every structure holds without a feature, too, and is used where a search ends with a worse
    one.
    """
    data, score, asked = question.data.merged, question.score, question.constraints or Constraints()
    question, own = Question(data, score, asked), rescore(data, structure, score, asked)
    used = sorted({i for arc in structure.arcs for i in arc} - {data.n_variables - 1})
    found = []
    for i in used:
        left = _without(structure, i)
        found.append((i, left, own - rescore(data, left, score, asked)))
    found.sort(key=lambda item: -item[2])
    budget, gains = Budget(seconds), []
    interrupted = options.interrupted or (lambda: False)
    for position, (i, left, gain) in enumerate(found):
        share = budget.left() / (len(found) - position)
        bounds: tuple[float | None, float | None] = (None, None)
        if seconds > 0 and share > 0 and not interrupted():
            bounds = _irreplaceable(question, replace(options, start=left, time_limit=share), i, own, bound)
        gains.append(FeatureGain(data.names[i], gain, *bounds))
    return tuple(gains)


def arc_losses(data: Dataset, structure: Structure, score: Score) -> dict[tuple[int, int], float]:
    """Return what the score loses without each arc (parent, child), in nats, with parameters estimated anew.

    It is negative where the arc makes the score worse. Under margin scores and the conditional log-likelihood a feature
    without the class as a parent counts as one without parents; so the loss of an arc from the class is that of all of
    the feature's arcs. Raise InputError if `rescore` refuses the structure.
    """
    data = data.merged
    if tuple(structure.names) != tuple(data.names):
        raise InputError(f"The structure has other variables than the data {data.name!r}.")
    last, own = len(structure.names) - 1, rescore(data, structure, score)
    losses = {}
    for count, (parent, child) in enumerate(structure.arcs):
        stages.tell(f"arcs {count} of {len(structure.arcs)}")
        rest = tuple(j for j in structure.parents[child] if j != parent)
        if parent == last and score.kind.class_free_alike:
            rest = ()
        sets = (*structure.parents[:child], rest, *structure.parents[child + 1 :])
        losses[parent, child] = own - rescore(data, Structure(structure.names, sets), score)
    return losses


def _without(structure: Structure, i: int) -> Structure:
    """Return a structure without the arcs from and to a variable."""
    return Structure(
        structure.names,
        tuple(
            () if child == i else tuple(j for j in parents if j != i)
            for child, parents in enumerate(structure.parents)
        ),
    )


def _irreplaceable(
    question: Question, options: Options, i: int, own: float, bound: float | None
) -> tuple[float | None, float | None]:
    """Return bounds on the loss of the best structure without arcs of a variable, from a search."""
    names, constraints = question.data.names, question.constraints or Constraints()
    name = names[i]
    arcs = {arc for other in names if other != name for arc in ((name, other), (other, name))}
    if arcs & set(constraints.required) or any(
        name in (child, *p) and p for child, p in constraints.fixed.items()
    ):
        return None, None
    asked = replace(constraints, forbidden=tuple(sorted({*constraints.forbidden, *arcs})))
    try:
        result = maximise(replace(question, constraints=asked), options)
    except NoIncumbentError:
        return None, None
    if result.objective is None or result.bound is None:
        return None, None
    limit = result.bound if bound is None else min(result.bound, max(bound, result.objective))
    return own - limit, own - result.objective

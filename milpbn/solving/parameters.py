"""The last stage of a run: parameters of the found structure that are not those of the score.

Score, bound and gap stay what they are: those of the structure under the score's own parameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from milpbn.claims.result import Result
from milpbn.network.classifier import Classifier
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.parameters.refit import Until, give_up, refit_classifier
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.gate import objection
from milpbn.problem.scores.spec import Score
from milpbn.solving.job import Job
from milpbn.util import interrupts, stages


def with_parameters(job: Job, result: Result, *, interrupted: bool) -> Result:
    """Return the result of a finished search with the parameters that the options ask for.

    The fit ends at the time limit of the run. If it is stopped, or tables cannot hold its parameters, the generative
    parameters are kept, and the record says why.
    """
    method = job.options.method
    if result.structure is None or not isinstance(result.classifier, Classifier):
        return result
    if method == "ml":
        return replace(result, parameters=ParameterFit())
    if interrupted:
        return _recorded(result, give_up(ParameterMethod.parse(method).name, interrupted=True), 0.0)

    begun = time.monotonic()
    stages.enter("parameters of the classifier")
    asked = job.options.interrupted or (lambda: False)
    with interrupts.deferred():
        classifier, record = refit_classifier(
            result.classifier,
            job.dataset,
            method,
            objection=objection_to_arcs(result.score, result.constraints),
            random_state=job.options.random_state,
            until=Until(job.budget.deadline, lambda: interrupts.requested() or asked()),
            report=stages.tell,
        )
    result = replace(result, classifier=classifier)
    return _recorded(result, record, time.monotonic() - begun)


def objection_to_arcs(score: Score, constraints: Constraints) -> Callable[[Structure], str | None]:
    """Return a function that says why a structure with arcs for normalisers breaks a constraint, or returns None.

    Such an arc does not count against max_parents, but it does against the constraints.
    """

    def forbidden(structure: Structure) -> str | None:
        free = replace(score, max_parents=len(structure.names))
        return objection(structure, free, constraints, any_class_free=True)

    return forbidden


def _recorded(result: Result, record: ParameterFit, seconds: float) -> Result:
    s = result.seconds
    total = replace(s, total=s.total + seconds, parameters=s.parameters + seconds)
    return replace(result, parameters=record, seconds=total)

"""The last stage of a run: parameters of the found structure that are not those of the score.

Score, bound and gap stay what they are: those of the structure under the score's own parameters.
"""

from __future__ import annotations

import time
from dataclasses import replace

from milpbn.claims.result import Result
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.parameters.refit import give_up, refit_classifier
from milpbn.network.structure import Structure
from milpbn.problem.gate import objection
from milpbn.solving.job import Job
from milpbn.util import interrupts, stages


def with_parameters(job: Job, result: Result, *, interrupted: bool) -> Result:
    """Return the result of a finished search with the parameters that the options ask for.

    The fit ends at the time limit of the run. If it is stopped, or tables cannot hold its parameters, the generative
    parameters stay, and the record says why.

    Parameters
    ----------
    job : Job
        The run.
    result : Result
        With a classifier that has generative parameters, or without a structure.
    interrupted : bool
        Whether the user stopped the search, and expects the run to end now.
    """
    method = job.options.parameters
    if result.structure is None or result.classifier is None or job.is_trial:
        return result
    if method == "ml":
        return replace(result, parameters=ParameterFit())
    if interrupted:
        return _recorded(result, give_up(method, interrupted=True), 0.0)

    begun = time.monotonic()
    stages.enter("parameters of the classifier")
    # An arc that only holds a normaliser does not count against max_parents, but it does against the constraints.
    free = replace(result.score, max_parents=len(result.structure.names))

    def forbidden(structure: Structure) -> str | None:
        return objection(structure, free, result.constraints, class_free_alike=True)

    asked = job.options.interrupted or (lambda: False)
    with interrupts.deferred():
        classifier, record = refit_classifier(
            result.classifier,
            job.dataset,
            method,
            objection=forbidden,
            random_state=job.options.random_state,
            deadline=job.options.deadline(job.started),
            report=stages.tell,
            interrupted=lambda: interrupts.requested() or asked(),
        )
    result = replace(result, classifier=classifier)
    return _recorded(result, record, time.monotonic() - begun)


def _recorded(result: Result, record: ParameterFit, seconds: float) -> Result:
    s = result.seconds
    total = replace(s, total=s.total + seconds, parameters=s.parameters + seconds)
    return replace(result, parameters=record, seconds=total)

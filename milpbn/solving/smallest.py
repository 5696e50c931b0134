"""The smallest valid model, for callers whose time ends before a search has found a structure."""

from __future__ import annotations

import math
import time
import uuid
from dataclasses import replace

from milpbn.claims.gap import is_optimal, tolerance_of
from milpbn.claims.reasons import BoundSource, Limit, Reason
from milpbn.claims.result import BackendInfo, DataSummary, Result, Seconds
from milpbn.data.dataset import Dataset, notes_of_results
from milpbn.errors import NoIncumbentError
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.monotone_fit import made_monotone
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.parameters.refit import give_up
from milpbn.network.structure import Structure
from milpbn.problem.bounds import loose_bound
from milpbn.problem.class_free import adapted
from milpbn.problem.conflicts import feasible_structure, resolve
from milpbn.problem.constraints import Constraints, atoms, combine
from milpbn.problem.problem import checked_constraints
from milpbn.problem.rescore import rescored
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import sets_up_to
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.files import saved
from milpbn.solving.options import Options
from milpbn.solving.report import fit_classifier


def smallest_model(
    data: Dataset,
    score: Score,
    options: Options,
    *,
    constraints: Constraints | None = None,
    started: float | None = None,
    limit: Limit = Limit.TIME,
) -> Result:
    """Return a result whose structure has no arc that the constraints do not require, without a search.

    Its bound is `loose_bound`, which needs no tables. Parameters other than ``ml`` are not fitted.

    With constraints, the first candidate parent sets that fit together are taken, small ones first. Seconds count from
    `started`, a `time.monotonic` value. `limit` says why there was no search, or none that found a structure. Raise
    InputError if no structure obeys the constraints, or an option is unusable, and NotSavedError, with the result as
    its attribute ``result``, if that could not be written.
    """
    began = time.monotonic() if started is None else started
    checked_engine(options, score)
    score, constraints = adapted(data, score, checked_constraints(constraints))
    if constraints:
        rules, admitted = resolve(constraints, data.names, score)
        structure = feasible_structure(sets_up_to(data.names, admitted, [0] * data.n_variables), rules)
        assert structure is not None  # `resolve` has found that there is one
        if not rules.keeps_paths(structure.parents):
            raise NoIncumbentError(
                "No structure with the demanded paths was found within the time limit; allow more time."
            )
    else:
        structure = Structure.empty(data.names)
    result = unsearched(data, score, options, structure, constraints, began, limit)
    fit, classifier = ParameterFit(), fit_classifier(data, result, options)
    if options.method != "ml":
        fit = give_up(ParameterMethod.parse(options.method).name, limit)
    if (monotone := options.monotone_constraints(data)) and classifier is not None:
        classifier, fit = made_monotone(classifier, monotone, fit)
    return saved(replace(result, parameters=fit, classifier=classifier), options)


def unsearched(
    data: Dataset,
    score: Score,
    options: Options,
    structure: Structure,
    constraints: Constraints | None,
    began: float,
    limit: Limit,
) -> Result:
    """Return a structure's score on data, and the bound of `loose_bound`, as a result without a classifier.

    Seconds count from `began`, a `time.monotonic` value. `limit` says why there was no search; it is left out if the
    bound proves the structure optimal.
    """
    engine, version = checked_engine(options, score)
    merged, rules = data.merged, combine(atoms(constraints or Constraints(), data.names))
    objective, error = rescored(merged, structure, score, rules)
    bound: float | None = max(loose_bound(score, merged, rules, None), objective)
    bound = bound if bound is not None and math.isfinite(bound) else None
    tolerance = tolerance_of(error)
    proved = bound is not None and is_optimal(objective, bound, error, tolerance)
    elapsed = time.monotonic() - began
    return Result(
        data=DataSummary.of(data),
        score=score,
        constraints=constraints or Constraints(),
        reason=Reason.OPTIMAL if proved else Reason.FEASIBLE,
        limit=None if proved else limit,
        structure=structure,
        objective=objective,
        bound=bound,
        tolerance=tolerance,
        bound_source=BoundSource.CERTIFIED,
        backend=BackendInfo(engine.name, version, options.n_threads),
        seconds=Seconds(total=elapsed, coefficients=elapsed),
        trace=((elapsed, objective, bound),),
        seed=options.random_state,
        run=uuid.uuid4().hex,
        request=data.request,
        notes=notes_of_results(data.notes),
    )

"""Import of another solver's solution of an exported model; its structure is scored from the data."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from milpbn.claims.gap import is_optimal, solver_tolerance
from milpbn.claims.reasons import BoundSource, Limit, Reason
from milpbn.claims.result import BackendInfo, DataSummary, Result, Seconds
from milpbn.data import Dataset, read_table
from milpbn.data.dataset import notes_of_results
from milpbn.data.request import DataRequest
from milpbn.errors import BoundWarning, InputError, warn
from milpbn.milp.files.sidecar import Sidecar, sidecar_path
from milpbn.milp.files.solution_files import read_solution
from milpbn.network.parameters.record import ParameterFit
from milpbn.problem.problem import Problem, build_problem
from milpbn.solving.api import training_data
from milpbn.solving.imported_bound import ImportedSolution
from milpbn.solving.reductions import of_whole_problem
from milpbn.solving.report import fit_classifier
from milpbn.util.raw_files import shown_name


def import_solution(
    solution: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | None = None,
    data: Any = None,
    bound: float | None = None,
    gap_rel: float | None = None,
) -> Result:
    """Read a solver's solution of an exported model, check it against the data, and return its result.

    Parameters
    ----------
    solution : path
        Solution file of CPLEX, Gurobi, COPT, Xpress (.slx), SCIP, HiGHS, CBC or GLPK.
    model : path, optional
        The exported model; by default the sidecar is found by the solution's name.
    data : optional
        The training data, as for `solve`; by default they are read again as at the export.
    bound : float, optional
        The bound that the solver printed, in the solver's sign, if the file has none.
    gap_rel : float, optional
        The relative gap at which the solver was told to stop, or at which it stops by itself. If the file calls its
        solution optimal, the bound is the objective plus this share of it.

    Returns
    -------
    Result
        Its bound is the solver's, if there is one (the table in `milpbn.milp.files.solution` says when), or the own one
        (root bound of the export, else trivial bound) if that is smaller or the only one; see `subset` for a subset.

    Raises
    ------
    InputError
        If the file is unusable or belongs to another model, if the data are not those of the export, or if a brief
        search finds a structure above the solver's bound.

    Warns
    -----
    BoundWarning
        If the file has no bound and none is given, or a bound rests on the file's status; also in the result's notes.
    """
    started, path = time.monotonic(), Path(solution)
    where = f"The solution {str(path)!r}"
    sidecar = Sidecar.load(_find_sidecar(path, None if model is None else Path(model)))
    parsed = read_solution(path)
    structure = sidecar.structure(parsed.values, where)
    dataset = _exported_data(sidecar, data)
    problem = _exported_problem(sidecar, dataset)
    objection = problem.objection(structure)
    if objection is not None or not problem.obeys(structure):
        raise InputError(f"{where} does not fit this model: {objection or 'its structure has no score'}.")
    objective, error = problem.rescored(structure)
    imported = ImportedSolution(parsed, sidecar, where, problem, structure, objective)
    best, source, note = imported.bound(bound, gap_rel)
    if note is not None:
        warn(note, BoundWarning)
    span = sidecar.span if source is BoundSource.SOLVER else 0.0
    tolerance = solver_tolerance(problem.score_error, objective, sidecar.constant, span)
    optimal, seconds = is_optimal(objective, best, error, tolerance), time.monotonic() - started
    result = Result(
        data=DataSummary.of(dataset),
        score=sidecar.score,
        constraints=sidecar.constraints,
        reason=Reason.OPTIMAL if optimal else Reason.FEASIBLE,
        limit=None if optimal or parsed.limit is None else Limit(parsed.limit),
        structure=structure,
        objective=objective,
        bound=best,
        tolerance=tolerance,
        standard_error=problem.standard_error(structure),
        bound_source=source,
        backend=BackendInfo(parsed.format, f"{parsed.format} (solution file {shown_name(path.name)})", None),
        seconds=Seconds(total=seconds, coefficients=seconds),
        trace=((seconds, objective, best),),
        detail=parsed.status,
        request=dataset.request,
        notes=(*notes_of_results(dataset.notes), *(() if note is None else (note,))),
    )
    result = of_whole_problem(problem, result)
    return replace(result, classifier=fit_classifier(dataset, result), parameters=ParameterFit())


def model_files(solution: str | os.PathLike[str], model: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return sidecar and model of a solution; raise InputError if the solution or the sidecar does not exist."""
    path = Path(solution)
    if not path.is_file():
        raise InputError(f"There is no solution file {str(path)!r}.")
    sidecar = _find_sidecar(path, None if model is None else Path(model))
    return [sidecar, sidecar.with_name(Sidecar.load(sidecar).model)]


def _find_sidecar(solution: Path, model: Path | None) -> Path:
    """Return the sidecar of a model, by default of the one whose name the solution's begins with."""
    if model is not None:
        return sidecar_path(model)
    name, found = solution.name, []
    while "." in name:
        name = name[: name.rindex(".")]
        found += [path] if (path := solution.with_name(name + ".json")).is_file() else []
    if found:  # a solver's own report in JSON, such as m.gurobi.json, may lie beside its m.gurobi.sol
        return next((path for path in found if Sidecar.is_at(path)), found[0])
    raise InputError(
        f"There is no sidecar (.json) of the model beside the solution {str(solution)!r}; name the model with --model."
    )


def _exported_data(sidecar: Sidecar, data: Any) -> Dataset:
    """Return the training data of the exported model, and refuse others."""
    if data is None or isinstance(data, str | os.PathLike):
        request = None if sidecar.request is None else DataRequest.from_dict(sidecar.request)
        if data is not None:
            source = os.fspath(data)
            request = DataRequest(source) if request is None else replace(request, source=source)
        if request is None:
            raise InputError("The model was exported from data in memory; give the same data to the import.")
        table = read_table(request.source, **request.options)
        dataset = (table.in_units() if sidecar.score.needs_units else table).dataset(request.rows)
    else:
        dataset = training_data(data)
    if dataset.sha256 != sidecar.data.get("sha256"):
        raise InputError(
            f"The data {dataset.name!r} are not those of the exported model {sidecar.data.get('name')!r} (their "
            "hashes differ); give the data, rows and options of the export."
        )
    return dataset


def _exported_problem(sidecar: Sidecar, dataset: Dataset) -> Problem:
    """Return the problem from which the model was made."""
    counted = None
    if sidecar.subset is not None:
        counted = np.zeros((dataset.merged if sidecar.merge else dataset).n_samples)
        rows = list(sidecar.subset)
        if not all(0 <= row < len(counted) for row in rows):
            raise InputError(f"The sidecar of {sidecar.model!r} names rows that the data do not have.")
        counted[rows] = list(sidecar.subset.values())
    return build_problem(
        dataset, sidecar.score, sidecar.constraints, merge=sidecar.merge, for_milp=False, subset=counted
    )

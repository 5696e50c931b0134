"""Export of models for solvers that milpbn does not run itself, and import of their solutions."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from milpbn.claims.reasons import BoundSource, Limit, Reason
from milpbn.claims.result import BackendInfo, DataSummary, Result, Seconds, is_optimal
from milpbn.data import Dataset
from milpbn.data.dataset import notes_of_results
from milpbn.data.request import DataRequest
from milpbn.engine.events import Record
from milpbn.engine.root import root_bound
from milpbn.errors import BoundWarning, InputError, warn
from milpbn.heuristics.starts import first_incumbent
from milpbn.milp.files.commands import solver_commands
from milpbn.milp.files.lp_file import write_lp
from milpbn.milp.files.mps_file import MPS_OBJECTIVE_SIGN, write_mps
from milpbn.milp.files.sidecar import Sidecar, fingerprint
from milpbn.milp.files.solution_files import read_solution
from milpbn.milp.files.start_files import write_starts
from milpbn.milp.formulation import formulate
from milpbn.milp.milp import Milp
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.registry import find_score, sums_of_samples
from milpbn.problem.scores.spec import Score
from milpbn.problem.subset import Subset
from milpbn.problem.trivial_bound import trivial_bound
from milpbn.solving.api import training_data
from milpbn.solving.imported_bound import check_objective, imported_bound, refuse_better
from milpbn.solving.options import Options
from milpbn.solving.report import fit_classifier, of_all_data
from milpbn.solving.warm_up import warm_up
from milpbn.util.raw_files import shown_name

#: Time limit in seconds of the search for the start structure.
START_SECONDS = 20.0

SUFFIXES = (".lp", ".lp.gz", ".mps", ".mps.gz")


@dataclass(frozen=True)
class Export:
    """Files of an exported model.

    Attributes
    ----------
    model, sidecar : Path
        The .lp or .mps file and the .json beside it.
    starts : dict of str to Path
        Start file of each solver.
    commands : dict of str to str
        Command line that solves the model, for each solver.
    columns, rows, nonzeros : int
        Size of the model.
    start_objective : float
        Score of the start.
    """

    model: Path
    sidecar: Path
    starts: dict[str, Path]
    commands: dict[str, str]
    columns: int
    rows: int
    nonzeros: int
    start_objective: float


def export_model(
    data: Any,
    score: Score | str = "sm",
    *,
    path: str | os.PathLike[str],
    constraints: Constraints | None = None,
    start: Structure | None = None,
    merge: bool = True,
    reduced: bool = False,
    subset: int | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    random_state: int = 0,
    request: DataRequest | None = None,
) -> Export:
    """Write problem (19) of Peharz & Pernkopf (2012) for another solver: model, sidecar, start files, command lines.

    Parameters
    ----------
    data : Dataset, Table, or anything `read_table` reads
        Training data.
    score : Score or str
        What to maximise.
    path : path
        ``.lp`` or ``.mps``, also with ``.gz``; the sidecar is the same name with ``.json``.
    constraints : Constraints, optional
        What the structure has to obey.
    start : Structure, optional
        A structure from which the search for the start begins.
    merge : bool
        Merge identical samples.
    reduced : bool
        Leave out the parent sets that are proved to be in no structure better than the start (`milpbn.engine`). The
        model is smaller and has the same optimum. Only for scores that the project bounds itself.
    subset : int, optional
        Sum the margins over this many representative samples only. The model is smaller, and its bound holds for their
        sum only.
    time_limit, threads : float, int, optional
        Written into the command lines.
    random_state : int
        Seed of the choice of a subset, and of the search for the start.
    request : DataRequest, optional
        How to read the data again; stored in the sidecar. Without it, `import_solution` needs the data as an argument.

    Returns
    -------
    Export

    Raises
    ------
    InputError
        If the path has another suffix, cannot be written, or the data or options are unusable.
    """
    checked = Options(merge=merge, time_limit=time_limit, threads=threads, random_state=random_state)
    target = Path(path)
    stem = _stem(target)
    if isinstance(data, str) and request is None:
        request = DataRequest(data)
    solver_commands(target, {}, stem)  # refuses names that no command line can hold
    sidecar_path = stem.with_name(stem.name + ".json")
    _refuse_strange_sidecar(sidecar_path, target)
    dataset = training_data(data)
    spec = Score(name=score) if isinstance(score, str) else score
    rules = constraints or Constraints()
    if spec.kind.shape is Shape.CONCAVE:
        raise InputError(
            f"The score {spec.name} is not piecewise linear, so a model in a file could only be a relaxation; "
            "maximise this score with milpbn solve."
        )
    problem = build_problem(
        dataset, spec, rules, merge=checked.merge, subset=Subset.of(subset, checked.random_state)
    )
    counted = problem.sample_weights
    samples = None if counted is None else {int(m): float(counted[m]) for m in np.flatnonzero(counted)}
    end = time.monotonic() + START_SECONDS
    best = first_incumbent(
        problem, start, random_state=checked.random_state, stopping=lambda: time.monotonic() > end
    )
    assert best is not None  # constraints without a feasible structure were refused
    kept = None
    if reduced:
        problem, best, kept = _reduced(problem, best)
    formulation = formulate(problem, reduce=reduced)
    mark = fingerprint(dataset.sha256, spec, rules, formulation.acyclicity, checked.merge, kept, samples)
    milp = _with_mark(formulation.milp, mark)
    x = np.append(formulation.vector(best), 1.0)

    is_lp = target.name.lower().removesuffix(".gz").endswith(".lp")
    (write_lp if is_lp else write_mps)(milp, target)
    candidates = problem.candidates
    sidecar = Sidecar(
        model=target.name,
        fingerprint=mark,
        names=candidates.names,
        columns={
            milp.column_names[p]: (
                candidates.names[candidates.variable[p]],
                [candidates.names[j] for j in candidates.flat[p]],
            )
            for p in range(candidates.n_sets)
        },
        score=spec,
        constraints=rules,
        data=vars(DataSummary.of(dataset)),
        request=None if request is None else request.to_dict(),
        merge=checked.merge,
        sign=1.0 if is_lp else float(MPS_OBJECTIVE_SIGN),
        constant=milp.constant,
        subset=samples,
    )
    sidecar.save(sidecar_path)
    starts = write_starts(milp, x, target)
    return Export(
        model=target,
        sidecar=sidecar_path,
        starts=starts,
        commands=solver_commands(target, starts, stem, checked.time_limit, checked.threads),
        columns=milp.n_columns,
        rows=milp.n_rows,
        nonzeros=int(milp.A.nnz),
        start_objective=problem.rescore(best),
    )


def _reduced(problem: Problem, best: Structure) -> tuple[Problem, Structure, list[int] | None]:
    """Return the problem over the parent sets that the root bound leaves, the best structure, and their indices."""
    if not problem.score.kind.sums_samples:
        those = " and ".join(n for n in sums_of_samples() if find_score(n).shape is not Shape.CONCAVE)
        raise InputError(
            f"Parent sets can be left out under {those}, not under {problem.score.name}; drop --reduced."
        )
    warm_up(problem, bounds=True)
    end = time.monotonic() + START_SECONDS
    record = Record(lambda: time.monotonic() > end)
    smaller, root = root_bound(problem, best, record)
    assert root is not None
    best = max([best, *record.structures], key=problem.rescore)
    return smaller, best, np.flatnonzero(root.allowed).tolist()


def _stem(path: Path) -> Path:
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return path.with_name(path.name[: -len(suffix)])
    raise InputError(f"A model file ends in {', '.join(SUFFIXES)}; {str(path)!r} does not.")


def _refuse_strange_sidecar(path: Path, target: Path) -> None:
    """Refuse to overwrite a file that is not the sidecar of this model."""
    if not path.exists():
        return
    try:
        owner = Sidecar.load(path).model
    except InputError:
        raise InputError(
            f"The sidecar of {str(target)!r} would overwrite {str(path)!r}, which is not a sidecar; choose another "
            "name."
        ) from None
    if owner != target.name and target.with_name(owner).exists():
        raise InputError(
            f"The sidecar {str(path)!r} belongs to {owner!r}; choose another name for {target.name!r}, not only "
            "another suffix."
        )


def _with_mark(milp: Milp, mark: str) -> Milp:
    """Return the model with one more column, fixed to 1, whose name is the fingerprint of the problem."""
    empty = sp.csr_array((milp.n_rows, 1))
    return replace(
        milp,
        c=np.append(milp.c, 0.0),
        A=sp.hstack([milp.A, empty], format="csr"),
        lower=np.append(milp.lower, 1.0),
        upper=np.append(milp.upper, 1.0),
        integer=np.append(milp.integer, False),
        column_names=[*milp.column_names, mark],
    )


def import_solution(
    solution: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | None = None,
    data: Any = None,
    bound: float | None = None,
) -> Result:
    """Read a solver's solution of an exported model, check it against the data, and return its result.

    Parameters
    ----------
    solution : path
        Solution file of CPLEX, Gurobi, SCIP, HiGHS or CBC.
    model : path, optional
        The exported model; by default the sidecar is found by the solution's name.
    data : Dataset, Table, or anything `read_table` reads, optional
        The training data; by default they are read again as at the export.
    bound : float, optional
        The bound that the solver printed, in the solver's sign, if the file has none.

    Returns
    -------
    Result
        Its bound is the solver's, if there is one (the table in `milpbn.milp.files.solution` says when), else the
        trivial bound. For a subset, score and bound are in `Result.subset`.

    Raises
    ------
    InputError
        If the file is unusable or belongs to another model, if the data are not those of the export, or if a brief
        search finds a structure above the solver's bound.

    Warns
    -----
    BoundWarning
        If the file has no bound and none is given. The warning says which bound is used; it is in the result's notes
        as well.
    """
    started = time.monotonic()
    path = Path(solution)
    where = f"The solution {str(path)!r}"
    sidecar = Sidecar.load(_sidecar_path(path, None if model is None else Path(model)))
    parsed = read_solution(path)
    structure = sidecar.structure(parsed.values, where)
    dataset = _exported_data(sidecar, data)
    problem = _exported_problem(sidecar, dataset)
    objection = problem.objection(structure)
    if objection is not None or not problem.obeys(structure):
        raise InputError(f"{where} does not fit this model: {objection or 'its structure has no score'}.")
    objective, error = problem.rescored(structure)
    check_objective(parsed, sidecar, objective, where)
    best, source, note = imported_bound(parsed, sidecar, bound, objective, trivial_bound(problem), where)
    if source is BoundSource.SOLVER:
        refuse_better(problem, structure, best, where)
    if note is not None:
        warn(note, BoundWarning)
    reason = Reason.OPTIMAL if is_optimal(objective, best, error) else Reason.FEASIBLE
    info = BackendInfo(parsed.format, f"{parsed.format} (solution file {shown_name(path.name)})", None)
    seconds = time.monotonic() - started
    result = Result(
        data=DataSummary.of(dataset),
        score=sidecar.score,
        constraints=sidecar.constraints,
        reason=reason,
        limit=Limit(parsed.limit) if reason is Reason.FEASIBLE and parsed.limit is not None else None,
        structure=structure,
        objective=objective,
        bound=best,
        bound_source=source,
        backend=info,
        seconds=Seconds(total=seconds, coefficients=seconds),
        trace=((seconds, objective, best),),
        detail=parsed.status,
        notes=(*notes_of_results(dataset.notes), *((note,) if note is not None else ())),
    )
    result = of_all_data(problem, result)
    return replace(result, classifier=fit_classifier(dataset, result), parameters=ParameterFit())


def model_files(solution: str | os.PathLike[str], model: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the files that belong to a solution: the sidecar of its model, and the model itself.

    Raises
    ------
    InputError
        If the solution or its sidecar does not exist.
    """
    path = Path(solution)
    if not path.is_file():
        raise InputError(f"There is no solution file {str(path)!r}.")
    sidecar = _sidecar_path(path, None if model is None else Path(model))
    return [sidecar, sidecar.with_name(Sidecar.load(sidecar).model)]


def _sidecar_path(solution: Path, model: Path | None) -> Path:
    if model is not None:
        stem = _stem(model)
        return stem.with_name(stem.name + ".json")
    name = solution.name
    while "." in name:
        name = name[: name.rindex(".")]
        candidate = solution.with_name(name + ".json")
        if candidate.is_file():
            return candidate
    raise InputError(
        f"There is no sidecar (.json) of the model beside the solution {str(solution)!r}; name the model with --model."
    )


def _exported_data(sidecar: Sidecar, data: Any) -> Dataset:
    if data is None or isinstance(data, str | os.PathLike):
        request = None if sidecar.request is None else DataRequest.from_dict(sidecar.request)
        if data is not None:
            source = os.fspath(data)
            request = DataRequest(source) if request is None else replace(request, source=source)
        if request is None:
            raise InputError("The model was exported from data in memory; give the same data to the import.")
        dataset = request.load()
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
        dataset,
        sidecar.score,
        sidecar.constraints,
        merge=sidecar.merge,
        for_milp=False,
        sample_weights=counted,
    )

"""Models for solvers that run elsewhere, and their solutions brought back."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from milpbn.bounds.root import root_bound
from milpbn.data import Dataset
from milpbn.data.request import DataRequest
from milpbn.errors import InputError
from milpbn.learners.first_incumbent import first_incumbent
from milpbn.model.commands import solver_commands
from milpbn.model.formulation import formulate
from milpbn.model.lp_file import write_lp
from milpbn.model.milp import Milp
from milpbn.model.mps_file import MPS_OBJECTIVE_SIGN, write_mps
from milpbn.model.sidecar import Sidecar, fingerprint
from milpbn.model.solution_files import Solution, read_solution
from milpbn.model.start_files import write_starts
from milpbn.network.structure import Structure
from milpbn.options import Options
from milpbn.result import BackendInfo, DataSummary, Result, Seconds, is_optimal
from milpbn.run import fit_classifier, of_all_data
from milpbn.scores.constraints import Constraints
from milpbn.scores.problem import Problem, build_problem
from milpbn.scores.spec import Score
from milpbn.scores.trivial_bound import trivial_bound
from milpbn.solving import training_data
from milpbn.warm_up import warm_up

#: Seconds that the search for the start may take.
START_SECONDS = 20.0
#: Relative difference allowed between the objective a file states and the structure's score: some solvers
#: print few digits.
OBJECTIVE_TOLERANCE = 1e-4

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
        Ready command line of each solver.
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
    """Write problem (19) of P12 for another solver: model, sidecar, start files, command lines.

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
        Where the search for the start begins.
    merge : bool
        Merge identical samples.
    reduced : bool
        Leave out the parent sets that no structure better than the start has (`milpbn.bounds`): a smaller model
        with the same optimum, for the scores that the project bounds itself.
    subset : int, optional
        Sum the margins over so many representative samples only: a smaller model, whose bound is the subset's.
    time_limit, threads : float, int, optional
        Written into the command lines.
    random_state : int
        Seed of the choice of a subset, and of the search for the start.
    request : DataRequest, optional
        How to read the data again, kept in the sidecar; without it `import_solution` has to be told.

    Returns
    -------
    Export

    Raises
    ------
    InputError
        If the path has another suffix, cannot be written, or the data or options are unusable.
    """
    checked = Options(
        merge=merge, subset=subset, time_limit=time_limit, threads=threads, random_state=random_state
    )
    target = Path(path)
    stem = _stem(target)
    if isinstance(data, str) and request is None:
        request = DataRequest(data)
    sidecar_path = stem.with_name(stem.name + ".json")
    _refuse_strange_sidecar(sidecar_path, target)
    dataset = training_data(data)
    spec = Score(name=score) if isinstance(score, str) else score
    rules = constraints or Constraints()
    if spec.name == "cll":
        raise InputError(
            "The score cll is not piecewise linear, so that a model in a file could only be a relaxation of it; "
            "maximise it with milpbn solve."
        )
    problem = build_problem(
        dataset, spec, rules, merge=checked.merge, subset=checked.subset, random_state=checked.random_state
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
    """Return the problem without hopeless parent sets, its best known structure, and which entries were kept."""
    if problem.margins is None or problem.margins.smallest:
        raise InputError(
            f"Parent sets can be left out under sm and sbm, not under {problem.score.name}; drop --reduced."
        )
    warm_up(problem, bounds=True)
    end = time.monotonic() + START_SECONDS

    def better(structure: Structure) -> Structure:
        nonlocal best
        best = max(best, structure, key=problem.rescore)
        return best

    smaller, root = root_bound(
        problem,
        best,
        stopping=lambda: time.monotonic() > end,
        bounded=lambda bound: None,
        found=better,
    )
    assert root is not None
    return smaller, best, np.flatnonzero(root.allowed).tolist()


def _stem(path: Path) -> Path:
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if path.name.lower().endswith(suffix) and len(path.name) > len(suffix):
            return path.with_name(path.name[: -len(suffix)])
    raise InputError(f"A model file ends in {', '.join(SUFFIXES)}; {str(path)!r} does not.")


def _refuse_strange_sidecar(path: Path, target: Path) -> None:
    """Keep a file that is not this model's sidecar from being overwritten."""
    if not path.exists():
        return
    try:
        owner = Sidecar.load(path).model
    except InputError:
        raise InputError(
            f"The sidecar of {str(target)!r} would overwrite {str(path)!r}, which is something else; choose another."
        ) from None
    if owner != target.name and target.with_name(owner).exists():
        raise InputError(
            f"The sidecar {str(path)!r} belongs to {owner!r}; choose another name for {target.name!r}, not only "
            "another suffix."
        )


def _with_mark(milp: Milp, mark: str) -> Milp:
    """Return the model with one more column, fixed to 1, whose name says which problem it is."""
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
        The training data; by default read again as at the export.
    bound : float, optional
        The solver's bound, as the solver prints it, if the file has none.

    Returns
    -------
    Result
        Its bound is the solver's where there is one, else the trivial one; of a subset both are in `subset`.

    Raises
    ------
    InputError
        If the file is unusable, belongs to another model, or the data are not those of the export.
    """
    started = time.monotonic()
    path = Path(solution)
    where = f"The solution {str(path)!r}"
    sidecar = Sidecar.load(_sidecar_path(path, None if model is None else Path(model)))
    parsed = read_solution(path)
    structure = sidecar.structure(parsed.values, where)
    dataset = _exported_data(sidecar, data)
    problem = _exported_problem(sidecar, dataset)
    if not problem.obeys(structure):
        raise InputError(f"{where} breaks a constraint of its model.")
    objective = problem.rescore(structure)
    _check_objective(parsed, sidecar, objective, where)
    best, source = _bound(parsed, sidecar, bound, objective, trivial_bound(problem), where)
    reason = "optimal" if is_optimal(objective, best) else "feasible"
    info = BackendInfo(parsed.format, f"{parsed.format} (solution file {path.name})", None)
    seconds = time.monotonic() - started
    result = Result(
        data=DataSummary.of(dataset),
        score=sidecar.score,
        constraints=sidecar.constraints,
        reason=reason,
        limit=parsed.limit if reason == "feasible" else None,
        structure=structure,
        objective=objective,
        bound=best,
        bound_source=source,
        backend=info,
        seconds=Seconds(total=seconds, coefficients=seconds),
        trace=((seconds, objective, best),),
        detail=parsed.status,
    )
    result = of_all_data(problem, result)
    return replace(result, classifier=fit_classifier(dataset, result))


def model_files(solution: str | os.PathLike[str], model: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return what an import reads beside a solution: the sidecar of its model, and the model itself.

    Raises
    ------
    InputError
        If there is no such solution, or no sidecar of it.
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
        f"No sidecar (.json) of the model lies beside the solution {str(solution)!r}; name the model with --model."
    )


def _exported_data(sidecar: Sidecar, data: Any) -> Dataset:
    if data is None or isinstance(data, str | os.PathLike):
        request = None if sidecar.request is None else DataRequest.from_dict(sidecar.request)
        if data is not None:
            source = os.fspath(data)
            request = DataRequest(source) if request is None else replace(request, source=source)
        if request is None:
            raise InputError(
                "The model was exported from data in memory; give the data to the import as well."
            )
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
    """Return the problem that the model is of."""
    counted = None
    if sidecar.subset is not None:
        counted = np.zeros((dataset.merged if sidecar.merge else dataset).n_samples)
        rows = list(sidecar.subset)
        if not all(0 <= row < len(counted) for row in rows):
            raise InputError(f"The sidecar of {sidecar.model!r} speaks of samples that there are none of.")
        counted[rows] = list(sidecar.subset.values())
    return build_problem(
        dataset,
        sidecar.score,
        sidecar.constraints,
        merge=sidecar.merge,
        for_milp=False,
        sample_weights=counted,
    )


def _check_objective(parsed: Solution, sidecar: Sidecar, objective: float, where: str) -> None:
    if parsed.objective is None:
        return
    stated = sidecar.sign * parsed.objective + sidecar.constant
    if abs(stated - objective) > OBJECTIVE_TOLERANCE * max(1.0, abs(objective)):
        raise InputError(
            f"{where} states the objective {stated:.10g}, but its structure scores {objective:.10g} on the data; "
            "it belongs to other data or options."
        )


def _bound(
    parsed: Solution, sidecar: Sidecar, given: float | None, objective: float, trivial: float, where: str
) -> tuple[float, str]:
    stated = parsed.bound if given is None else given
    if stated is None:
        return max(trivial, objective), "certified"
    if not math.isfinite(stated):
        raise InputError(f"The bound must be a finite number, got {stated}.")
    bound = sidecar.sign * stated + sidecar.constant
    if bound < objective - OBJECTIVE_TOLERANCE * max(1.0, abs(objective)):
        printed = ", a negative one as the model is minimised" if sidecar.sign < 0 else ""
        raise InputError(
            f"The bound {stated:.10g} would mean that no structure scores more than {bound:.10g}, which lies below the "
            f"score {objective:.10g} of {where[0].lower()}{where[1:]}; give the solver's best bound as it prints "
            f"it{printed}."
        )
    return max(min(bound, trivial), objective), "solver" if bound < trivial else "certified"

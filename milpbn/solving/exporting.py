"""Export of the MILP to files, for solvers that milpbn does not run itself; see `milpbn.solving.importing`, too."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from milpbn.claims.result import DataSummary
from milpbn.data.request import DataRequest
from milpbn.engine.events import EventLog
from milpbn.engine.root import root_bound
from milpbn.errors import InputError
from milpbn.heuristics.local_search import search
from milpbn.heuristics.starts import plain_starts
from milpbn.milp.files.dialects import solver_commands, write_starts
from milpbn.milp.files.model_files import MPS_OBJECTIVE_SIGN, write_lp, write_mps
from milpbn.milp.files.scripts import check_packages, script_path, solver_script
from milpbn.milp.files.sidecar import Sidecar, fingerprint, sidecar_path
from milpbn.milp.files.text_output import model_stem
from milpbn.milp.formulation import formulate
from milpbn.milp.milp import Milp
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.problem.class_free import adapted, among
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem, checked_constraints
from milpbn.problem.scores.base import Shape
from milpbn.problem.scores.registry import find_score, sums_of_samples
from milpbn.problem.scores.spec import Score
from milpbn.problem.subset import Subset
from milpbn.solvers.base import Settings
from milpbn.solving.api import training_data
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.warm_up import warm_up
from milpbn.util.atomic import atomic_write_text

#: Time limit in seconds of the search for the start structure.
START_SECONDS = 20.0


@dataclass(frozen=True)
class Export:
    """Files of an exported model."""

    #: The .lp or .mps file and the .json beside it.
    model: Path
    sidecar: Path
    #: Start file of each solver.
    starts: dict[str, Path]
    #: Command line that solves the model, for each solver.
    commands: dict[str, str]
    #: Size of the model.
    columns: int
    rows: int
    nonzeros: int
    #: Score of the start.
    start_objective: float
    #: Script of each Python package that was asked for.
    scripts: dict[str, Path]
    #: The project's own bound on the score of every structure; None if there is none under this score.
    root_bound: float | None
    #: The structures that the model is about (`milpbn.problem.class_free.among`); empty if all are meant.
    among: str


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
    scripts: Sequence[str] = (),
) -> Export:
    """Write problem (19) of Peharz & Pernkopf (2012) for another solver: model, sidecar, start files, command lines.

    Parameters
    ----------
    data, score, constraints
        As for `solve`.
    path : path
        ``.lp`` or ``.mps``, also with ``.gz``; the sidecar is the same name with ``.json``.
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
    scripts : sequence of str
        Python packages of solvers (`milpbn.milp.files.scripts.PACKAGES`) for which a script is written as well.

    Raises
    ------
    InputError
        If the path has another suffix, cannot be written, or the data or options are unusable.
    """
    options = Options(
        start=start, merge=merge, time_limit=time_limit, threads=threads, random_state=random_state
    )
    if isinstance(data, str) and request is None:
        request = DataRequest(data)
    question = Question.of(data, score, constraints, subset=subset, random_state=options.random_state)
    return export(question, options, Path(path), reduced=reduced, request=request, scripts=scripts)


def export(
    question: Question,
    options: Options,
    target: Path,
    *,
    reduced: bool = False,
    request: DataRequest | None = None,
    scripts: Sequence[str] = (),
) -> Export:
    """Do the same as `export_model`, with the question in one object and the options in another."""
    check_packages(tuple(scripts))
    stem, beside = model_stem(target), sidecar_path(target)
    solver_commands(target, {}, stem)  # refuses names that no command line can hold
    _refuse_strange_sidecar(beside, target)
    dataset, rules = training_data(question.data), checked_constraints(question.constraints)
    if question.score.kind.shape is Shape.CONCAVE:
        raise InputError(
            f"The score {question.score.name} is not piecewise linear, so a model in a file could only be a "
            "relaxation; maximise this score with milpbn solve."
        )
    spec, rules = adapted(dataset, question.score, rules)
    subset = question.scope if isinstance(question.scope, Subset) else None
    problem = build_problem(dataset, spec, rules, merge=options.merge, subset=subset)
    problem, best, kept, bound = _bounded(problem, _start(problem, options), reduced)
    shifted, shared = problem.shifted()
    formulation = formulate(shifted, reduce=reduced)
    counted = problem.sample_weights
    samples = None if counted is None else {int(m): float(counted[m]) for m in np.flatnonzero(counted)}
    mark = fingerprint(dataset.sha256, spec, rules, formulation.acyclicity, options.merge, kept, samples)
    milp = replace(_with_mark(formulation.milp, mark), constant=shared)

    is_lp = target.name.lower().removesuffix(".gz").endswith(".lp")
    (write_lp if is_lp else write_mps)(milp, target)
    Sidecar(
        model=target.name,
        fingerprint=mark,
        names=problem.candidates.names,
        columns=_meanings(milp, problem.candidates),
        score=spec,
        constraints=rules,
        data=vars(DataSummary.of(dataset)),
        request=None if request is None else request.absolute().to_dict(),
        merge=options.merge,
        sign=1.0 if is_lp else float(MPS_OBJECTIVE_SIGN),
        constant=milp.constant,
        span=formulation.span,
        subset=samples,
        root_bound=bound,
    ).save(beside)
    starts = write_starts(milp, np.append(formulation.vector(best), 1.0), target)
    names = {solver: path.name for solver, path in starts.items()}
    written = {package: script_path(package, stem) for package in scripts}
    limits = options.time_limit, options.threads
    for package, script in written.items():
        atomic_write_text(script, solver_script(package, target.name, names, stem.name, *limits))
    return Export(
        model=target,
        sidecar=beside,
        starts=starts,
        commands=solver_commands(target, starts, stem, *limits),
        columns=milp.n_columns,
        rows=milp.n_rows,
        nonzeros=int(milp.A.nnz),
        start_objective=problem.rescore(best),
        scripts=written,
        root_bound=bound,
        among=among(spec, rules),
    )


def _start(problem: Problem, options: Options) -> Structure:
    """Search for a start, for at most `START_SECONDS`."""
    end = time.monotonic() + START_SECONDS
    best = search(
        problem,
        plain_starts(problem, options.start),
        random_state=options.random_state,
        stopping=lambda: time.monotonic() > end,
    )
    if best is None:  # only with constraints on paths: others without a feasible structure were refused
        raise InputError(
            "No structure with the demanded paths was found to start from; name one (--start, start)."
        )
    return best


def _meanings(milp: Milp, candidates: Candidates) -> dict[str, tuple[str, list[str]]]:
    """Return variable and parents of each column of a parent set."""
    names = candidates.names
    return {
        milp.column_names[p]: (names[candidates.variable[p]], [names[j] for j in candidates.flat[p]])
        for p in range(candidates.n_sets)
    }


def _bounded(
    problem: Problem, best: Structure, reduced: bool
) -> tuple[Problem, Structure, list[int] | None, float | None]:
    """Bound the score by the root bound, for at most `START_SECONDS`.

    Return the problem, which is over the parent sets that the root bound leaves if it is `reduced`; the best structure
    found; the indices of the parent sets of a reduced problem; and the root bound in nats, None without one.
    """
    if reduced and not problem.score.kind.sums_samples:
        those = " and ".join(n for n in sums_of_samples() if find_score(n).shape is not Shape.CONCAVE)
        raise InputError(
            f"Parent sets can be left out under {those}, not under {problem.score.name}; drop --reduced."
        )
    if problem.curve is not None or (problem.margins is not None and problem.margins.smallest):
        return problem, best, None, None
    warm_up(problem, bounds=True)
    end = time.monotonic() + START_SECONDS
    record = EventLog(lambda: time.monotonic() > end)
    if problem.score.kind.shape is Shape.LINEAR:
        BranchAndCutEngine().run(problem, Start(best), Settings(root_only=True), record)
    smaller, root = root_bound(problem, best, record, reduce=reduced)
    best = max([best, *record.structures], key=problem.rescore)
    bound = min(record.bounds, default=math.inf)
    kept = None
    if reduced:
        assert root is not None
        kept = np.flatnonzero(root.allowed).tolist()
    return smaller, best, kept, bound if math.isfinite(bound) else None


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

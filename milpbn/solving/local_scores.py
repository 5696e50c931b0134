"""Local scores: written for GOBNILP and BLIP, and maximised by the MILP solvers without data."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from milpbn.data.dataset import Dataset, Variable
from milpbn.engine.events import EventLog
from milpbn.errors import InputError, NoIncumbentError
from milpbn.milp.files.jkl_file import LocalScores, read_jkl, write_jkl
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solvers.base import Settings
from milpbn.solvers.registry import find_solver, solver_names
from milpbn.solving.api import training_data
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.milp import MilpEngine


@dataclass(frozen=True)
class BestStructure:
    """The best structure that was found by its local scores.

    Attributes
    ----------
    structure : Structure
        The variables have the order of the file.
    objective : float
        Sum of its local scores.
    bound : float
        The solver's upper bound on the sum of every structure, at least `objective`.
    finished : bool
        Whether the solver finished its search.
    """

    structure: Structure
    objective: float
    bound: float
    finished: bool


def export_local_scores(
    data: Any,
    score: Score | str = "bdeu",
    *,
    path: str | os.PathLike[str],
    constraints: Constraints | None = None,
) -> LocalScores:
    """Write the local scores of all candidate parent sets as a ``.jkl`` file.

    Parameters
    ----------
    data : Dataset, Table, or anything `read_table` reads
        Training data.
    score : Score or str
        A sum of local scores: ``ll``, ``mdl`` (= ``bic``), ``aic`` or ``bdeu``. Arc weights are added to them.
    path : path
        The file.
    constraints : Constraints, optional
        Parent sets that they exclude are left out. Limits on the number of children cannot be written.

    Raises
    ------
    InputError
        If the score or a constraint is no sum over parent sets, the data are unusable, or the file cannot be written.
    """
    spec = Score(name=score) if isinstance(score, str) else score
    if spec.is_margin or spec.kind.curve is not None:
        raise InputError(
            f"The score {spec.name} is not a sum of local scores, as a .jkl file needs it; choose ll, mdl, aic or "
            "bdeu, or write the model as .lp or .mps."
        )
    problem = build_problem(training_data(data), spec, constraints)
    if problem.rules.max_children:
        raise InputError("A .jkl file cannot hold limits on the number of children; drop --max-children.")
    local = LocalScores(problem.candidates, problem.linear)
    write_jkl(local, path)
    return local


def solve_local_scores(
    scores: LocalScores | str | os.PathLike[str],
    *,
    backend: str = "highs",
    acyclicity: str = "cluster",
    time_limit: float | None = None,
    threads: int = 1,
) -> BestStructure:
    """Find the structure with the largest sum of local scores, such as those of a ``.jkl`` file.

    There are no data, so there is no classifier, and the structure's score is not computed anew from data.

    Parameters
    ----------
    scores : LocalScores or path
        The scores, or their file.
    backend : str
        A MILP solver (`milpbn.solvers.registry.solver_names`).
    acyclicity : {"cluster", "order"}
        How cycles are excluded.
    time_limit : float, optional
        Seconds.
    threads : int
        Threads of the solver.

    Raises
    ------
    InputError
        If the file or an option is unusable, or every choice of parent sets has a cycle.
    NoIncumbentError
        If no structure was found within the time limit.
    SolverError
        If the solver fails.
    """
    local = scores if isinstance(scores, LocalScores) else read_jkl(scores)
    solver = find_solver(backend)
    if solver is None:
        raise InputError(f"There is no MILP solver {backend!r}; choose one of {', '.join(solver_names())}.")
    solver.version()  # refuses one that is not installed
    deadline = None if time_limit is None else time.monotonic() + time_limit
    record = EventLog(lambda: deadline is not None and time.monotonic() > deadline)
    settings = Settings(deadline=deadline, threads=threads, acyclicity=acyclicity)
    problem = _problem(local)
    empty = Structure.empty(local.candidates.names)
    start = Start(empty if problem.obeys(empty) else None)
    outcome = MilpEngine(solver).run(problem, start, settings, record)
    if outcome.infeasible:
        raise InputError("Every choice of the listed parent sets has a cycle; add smaller parent sets.")
    found = [*record.structures, *([start.structure] if start.structure is not None else [])]
    if not found:
        raise NoIncumbentError(f"No structure was found within {time_limit:g} s; allow more time.")

    def total(structure: Structure) -> float:
        choice = local.candidates.choice(structure)
        assert choice is not None
        return math.fsum(local.scores[choice])

    best = max(found, key=total)
    bound = min(record.bounds, default=math.inf)
    return BestStructure(best, total(best), max(bound, total(best)), outcome.finished)


def _problem(local: LocalScores) -> Problem:
    """Return the problem of a linear score; its data are one row without meaning, since the scores are given."""
    names = local.candidates.names
    variables = tuple(Variable(name, ("0", "1")) for name in names)
    data = Dataset("local scores", variables, np.zeros((1, len(names)), dtype=np.int32), np.ones(1))
    return Problem(
        data, Score(name="ll"), local.candidates, Rules(), local.scores, np.zeros(len(local.scores))
    )
